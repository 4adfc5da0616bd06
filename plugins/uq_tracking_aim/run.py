"""An Aim run open for writing: what Aim shows goes to the run, and is kept with all else in Aim's repository."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.errors import RunNotFoundError
from uq_tracking.tracking.backend import picture_file, points_of
from uq_tracking.tracking.folder import KEPT, FolderStore, KeptRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.curves import Curve

AIM = ".aim"
"""Folder of a repository."""
QUIET = {"system_tracking_interval": None, "capture_terminal_logs": False, "log_system_params": False}
"""Leaves out what Aim adds to a run by itself."""
_lock = threading.RLock()
"""Aim's runs are not made for several threads."""


class AimRun(KeptRun):
    """A run in the repository of a folder.

    Parameters
    ----------
    root : Path
        Folder that holds the repository ``.aim``.
    run_hash : str
        Aim's name of the run.
    live : aim.Run, optional
        Whoever trains; else the run is opened when something is written.
    own : aim.Run, optional
        A run that `close` closes.
    """

    def __init__(self, root: Path, run_hash: str, live: Any = None, own: Any = None) -> None:
        super().__init__(root / AIM / KEPT / run_hash, "aim")
        self.uri, self.root, self.hash = f"aim:{root / run_hash}", root, run_hash
        self._live, self._own = live, own

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Track the numbers that are new; without a step, each at its own last one; see `Run`."""
        with _lock:
            live = self._opened()
            for name, value, place in self.new(scalars, step):
                live.track(value, name=name, step=place)
            super().log_scalars(scalars, step=step)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set the tags as the run's parameters, and keep them; see `Run`."""
        with _lock:
            live = self._opened()
            for name, value in tags.items():
                live[name] = str(value)
            super().set_tags(tags)

    def log_curve(self, name: str, curve: Curve) -> None:
        """Track the curve over integer steps, and keep it; see `Run`."""
        with _lock:
            live = self._opened()
            for step, value in points_of(curve).items():
                live.track(value, name=name, step=step)
            super().log_curve(name, curve)

    def link(self) -> str | None:
        """Return the command that shows the run."""
        return f"aim up --repo {self.root}"

    def close(self) -> None:
        """Close the run if it was opened here, so that others can write to it."""
        with _lock:
            if self._own is not None:
                self._own.close()
                self._own = None

    def _opened(self) -> Any:
        """Return the user's own run while it is open, else one that is opened here."""
        from aim import Run
        from aim.sdk.errors import MissingRunError

        self._check_exists()
        if getattr(self._live, "meta_run_tree", None) is not None:
            return self._live
        if self._own is None:
            try:
                self._own = Run(self.hash, repo=str(self.root), **QUIET)
            except MissingRunError:  # Aim lists the runs twice a second, and this one exists
                time.sleep(0.6)
                self._own = Run(self.hash, repo=str(self.root), **QUIET)
        return self._own

    def _note_picture(self, kind: str, name: str, figure: Figure) -> None:
        """Keep a figure or map, and show it among the images."""
        from aim import Image

        super()._note_picture(kind, name, figure)
        with _lock:
            picture = Image(str(self.path / picture_file(name)))
            self._opened().track(picture, name=name, step=0)

    def _check_exists(self) -> None:
        if not (self.root / AIM / "meta" / "chunks" / self.hash).is_dir():
            raise RunNotFoundError(f"{self.root} holds no Aim run {self.hash}; was it deleted?")
        self.folder.mkdir(parents=True, exist_ok=True)
        FolderStore(self.folder).open(KEPT, self.hash if self._live is None else self._live.name)
