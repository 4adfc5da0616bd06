"""Aim runs: what Aim shows goes to the run, and is kept with all else in Aim's repository."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.errors import BackendError, RunNotFoundError
from uq_tracking.tracking.backend import BackendStatus, Run, StoredRun, picture_file, points_of
from uq_tracking.tracking.folder import KEPT, FolderBackend, FolderStore, KeptRun, KeptStore

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


class AimStore(KeptStore):
    """The runs of the repository in the folder ``root``; a run's id is Aim's hash."""

    scheme, tracker, evidence = "aim", "Aim", "data of Aim"

    def __init__(self, root: Path) -> None:
        super().__init__(root / AIM / KEPT)
        self.root, self.chunks = root, root.absolute() / AIM / "meta" / "chunks"

    def is_run(self, folder: Path) -> bool:
        """Whether Aim has a run of this name."""
        return (self.chunks / folder.name).is_dir()

    def folders(self) -> Iterable[Path]:
        """Return what is kept, or would be, of every run of the repository."""
        return (self.path / chunk.name for chunk in self.chunks.glob("*"))

    def started(self, folder: Path) -> float:
        """Return when this package first wrote to the run, else when Aim created its database."""
        for run in FolderStore(folder).runs():
            return datetime.fromisoformat(run.created).timestamp()
        return (self.chunks / folder.name / "IDENTITY").stat().st_mtime

    def last_scalars(self, folder: Path) -> dict[str, float]:
        """Read the numbers without a context of a run that ``aim storage reindex`` or ``aim up`` has indexed."""
        from aim import Repo

        run = Repo(str(self.root)).get_run(folder.name)
        metrics = [] if run is None else [each for each in run.metrics() if not each.context.to_dict()]
        return {each.name: series_of(each)[-1][1] for each in metrics}

    def opened(self, folder: Path) -> AimRun:
        """Open a run for writing."""
        return AimRun(self.root, folder.name)

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> AimRun:
        """Create a run of that name, and the repository if there is none."""
        from aim import Repo, Run

        live = Run(repo=Repo.from_path(str(self.root), init=True), **QUIET)
        live.name = name
        run = AimRun(self.root, live.hash, own=live)
        FolderStore(self.path / run.hash).open(KEPT, name)
        run.set_tags(tags or {})
        return run

    def _stored(self, folder: Path) -> StoredRun:
        return replace(super()._stored(folder), uri=f"aim:{self.root / folder.name}")


def series_of(metric: Any) -> list[tuple[int, float]]:
    """Return step and value of every point of a metric of Aim, by step."""
    steps, (values, *_) = metric.data.items_list()
    return list(zip(steps, values, strict=True))


class AimBackend(FolderBackend):
    """Aim's local repositories. There is no active run: pass the ``aim.Run`` as ``run=``."""

    name = "aim"

    def status(self) -> BackendStatus:
        """Report which Aim is installed, from its metadata."""
        return BackendStatus.of_package(self.name, "pip install 'uq-tracking[aim]'")

    def place(self, address: str, *, scheme: str | None = None) -> str:
        """Return the folder that holds the repository; see `Backend`."""
        return str(_local(address))

    def adopt(self, run: Any) -> Run | None:
        """Adopt an ``aim.Run``, or a logger of Lightning that holds one."""
        live = run.experiment if type(run).__name__ == "AimLogger" else run
        if type(live).__name__ != "Run" or not type(live).__module__.startswith("aim."):
            return None
        return AimRun(_local(live.repo.path).parent, live.hash, live)

    def store(self, address: str, *, scheme: str | None = None) -> tuple[AimStore, str | None]:
        """Treat ``address`` as a run if it is one below a repository, else as the folder of a repository."""
        path = _local(address)
        store = AimStore(path.parent)
        is_run = not (path / AIM).is_dir() and store.is_run(store.path / path.name)
        return (store, path.name) if is_run else (AimStore(path), None)


def _local(address: str) -> Path:
    if "://" in address:
        raise BackendError(f"{address} is a server; Aim runs are only logged to a repository in a folder")
    return Path(address or ".").expanduser().absolute()
