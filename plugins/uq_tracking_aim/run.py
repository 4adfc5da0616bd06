"""An Aim run open for writing: what Aim shows goes to the run, and is kept with all else in Aim's repository."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.errors import RunNotFoundError
from uq_tracking.tracking.backend import finite
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
            live, known = self._opened(), self.journal.at(step)
            new = {name: value for name, value in finite(scalars).items() if known.get(name) != value}
            steps = sorted((at, name) for at, name in self.journal.scalars() if at is not None)
            last = {name: at for at, name in steps}
            for name, value in new.items():
                live.track(value, name=name, step=last.get(name, 0) if step is None else step)
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
            if curve.steps is not None:  # else it is not a line, but a two-dimensional histogram
                for step, value in zip(curve.steps.tolist(), curve.columns[curve.main].tolist(), strict=True):
                    if np.isfinite(value):
                        live.track(value, name=name, step=step)
            super().log_curve(name, curve)

    def log_figure(self, name: str, figure: Figure) -> None:
        """Keep the figure, and show it among the images; see `Run`."""
        super().log_figure(name, figure)
        self._show_image(name)

    def log_map(self, name: str, figure: Figure) -> None:
        """Keep the map, and show it among the images; see `Run`."""
        super().log_map(name, figure)
        self._show_image(name)

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

    def _show_image(self, name: str) -> None:
        from aim import Image

        with _lock:
            picture = Image(str(self.path / f"{name.replace('/', '_')}.png"))
            self._opened().track(picture, name=name, step=0)

    def _check_exists(self) -> None:
        if not (self.root / AIM / "meta" / "chunks" / self.hash).is_dir():
            raise RunNotFoundError(f"{self.root} holds no Aim run {self.hash}; was it deleted?")
        self.folder.mkdir(parents=True, exist_ok=True)
        FolderStore(self.folder).open(KEPT, self.hash if self._live is None else self._live.name)
