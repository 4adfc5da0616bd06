"""The runs below a log folder, as TensorBoard finds them: every folder with event files is a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from uq_tracking.tracking.folder import KeptStore
from uq_tracking_tensorboard.events import event_files, read_points, started
from uq_tracking_tensorboard.run import TensorBoardRun


class TensorBoardStore(KeptStore):
    """The runs below ``path``; a run's id is its folder's path relative to it."""

    scheme, tracker, evidence = "tensorboard", "TensorBoard", "event files"

    def is_run(self, folder: Path) -> bool:
        """Whether a folder holds event files."""
        return bool(event_files(folder))

    def folders(self) -> Iterable[Path]:
        """Find all folders with event files."""
        return {file.parent for file in self.path.rglob("*tfevents*")}

    def started(self, folder: Path) -> float:
        """Return the time of the first event."""
        return started(folder)

    def last_scalars(self, folder: Path) -> dict[str, float]:
        """Read the last value of every number in the event files."""
        return {name: (by_step := dict(points))[max(by_step)] for name, points in read_points(folder).items()}

    def opened(self, folder: Path) -> TensorBoardRun:
        """Open a run, with its own event file."""
        return TensorBoardRun(folder)

    def link(self) -> str | None:
        """Return the command that shows the runs."""
        return f"tensorboard --logdir {self.path}"
