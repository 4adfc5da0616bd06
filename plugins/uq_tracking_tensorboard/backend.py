"""Find TensorBoard runs: that of a writer the user holds, or the log folder behind an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uq_tracking.errors import BackendError, NoRunHereError
from uq_tracking.tracking.backend import BackendStatus, Run, RunStore
from uq_tracking.tracking.folder import FolderBackend
from uq_tracking_tensorboard.run import TensorBoardRun
from uq_tracking_tensorboard.store import TensorBoardStore


class TensorBoardBackend(FolderBackend):
    """TensorBoard's log folders. There is no active run: pass the writer as ``run=``."""

    name = "tensorboard"
    kind = TensorBoardStore

    def status(self) -> BackendStatus:
        """Report which TensorBoard is installed, from its metadata."""
        return BackendStatus.of_package(self.name, "pip install 'uq-tracking[tensorboard]'")

    def place(self, address: str, *, scheme: str | None = None) -> str:
        """Return the folder; BackendError for an address elsewhere, which no later call could reach."""
        _check_local(address)
        return super().place(address)

    def adopt(self, run: Any) -> Run | None:
        """Adopt a ``SummaryWriter`` of torch or tensorboardX, or Lightning's ``TensorBoardLogger``."""
        if _is_a(run, "TensorBoardLogger"):
            run = run.experiment
            if not _is_a(run, "SummaryWriter"):
                raise NoRunHereError(
                    "this process is not rank zero, where Lightning keeps its TensorBoard run; "
                    "merge the ranks and log on rank zero (trainer.is_global_zero)"
                )
        if not _is_a(run, "SummaryWriter"):
            return None
        folder = str(getattr(run, "log_dir", None) or run.logdir)
        _check_local(folder)
        return TensorBoardRun(Path(folder), run)

    def store(self, address: str, *, scheme: str | None = None) -> tuple[RunStore, str | None]:
        """Treat ``address`` as a run if it holds event files, else as a folder of runs."""
        _check_local(address)
        return super().store(address)


def _is_a(run: Any, name: str) -> bool:
    """Return whether one of its classes has this name: torch's and tensorboardX's writers share nothing else."""
    return any(kind.__name__ == name for kind in type(run).__mro__)


def _check_local(folder: str) -> None:
    if "://" in folder:
        raise BackendError(
            f"{folder} is not a local folder; TensorBoard runs can only be written and read locally"
        )
