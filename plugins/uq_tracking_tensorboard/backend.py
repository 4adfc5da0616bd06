"""TensorBoard runs: drawn from event files, kept whole in a folder beside them.

TensorBoard has no files or tags, shows numbers in single precision and never forgets a point. So everything is kept
in ``<run>/uq``, as the ``dir:`` backend keeps a run, and event files receive only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.errors import BackendError, NoRunHereError
from uq_tracking.tracking.backend import BackendStatus, Run, RunStore, picture_file, points_of
from uq_tracking.tracking.folder import FolderBackend, KeptRun, KeptStore
from uq_tracking.tracking.journal import csv_of
from uq_tracking_tensorboard.events import EventWriter, event_files, read_points, started

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.curves import Curve
    from uq_tracking.tracking.overview import Description


class TensorBoardRun(KeptRun):
    """The run in the folder ``path``.

    Parameters
    ----------
    path
        Folder of the run.
    writer
        The writer open on it, if any. Without its fast data server, a running TensorBoard follows only a run's newest
        event file: a second one would hide what the first writer still adds.
    """

    def __init__(self, path: Path, writer: Any = None) -> None:
        super().__init__(path, "tensorboard")
        self._given = writer
        self._own: EventWriter | None = None

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Draw the numbers that are new; without a step, at each one's last step; see `Run`."""
        self._check_exists()
        for name, value, place in self.new(scalars, step):
            self._writer().add_scalar(name, value, place)
        self._flush()
        super().log_scalars(scalars, step=step)

    def log_curve(self, name: str, curve: Curve) -> None:
        """Draw the curve as a scalar over integer steps, which the charts overlay run by run.

        Points cannot be taken back: a curve with other values becomes ``<name>-2``.
        """
        content = csv_of(curve)
        for version in count(1):
            key = name if version == 1 else f"{name}-{version}"
            stored = self.path / f"{key}.csv"
            if not stored.is_file():
                self._check_exists()
                for step, value in points_of(curve).items():
                    self._writer().add_scalar(key, value, step)
                self._flush()
                break
            if stored.read_bytes() == content:
                break
        self._note_curve(name, curve, f"{key}.csv")

    def describe(self, description: Description) -> None:
        """Show verdict and headline among the texts, if they are new; see `Run`."""
        self._check_exists()
        shown = [line["values"] for line in self.journal.others() if line["kind"] == "description"]
        if asdict(description) not in shown:
            name = f"uq/{description.split}/verdict" if description.split else "uq/verdict"
            self._writer().add_text(name, description.text, 0)
            self._flush()
        super().describe(description)

    def start(self) -> None:
        """Create the event file, by which TensorBoard recognizes a run."""
        self._writer().flush()

    def close(self) -> None:
        """Close the event file, unless it belongs to the user's own writer."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _note_picture(self, kind: str, name: str, figure: Figure) -> None:
        """Show a figure or map among the images, unless it is the one that is kept, and keep it."""
        from uq_tracking.figures import to_png, to_rgb

        stored = self.path / picture_file(name)
        self._check_exists()
        if not stored.is_file() or stored.read_bytes() != to_png(figure):
            self._writer().add_image(name, to_rgb(figure), 0, dataformats="HWC")
            self._flush()
        super()._note_picture(kind, name, figure)

    def _writer(self) -> Any:
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = EventWriter(self.folder)
        return self._own

    def _flush(self) -> None:
        writer = self._given or self._own
        if writer is not None:
            writer.flush()


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

    def show(self) -> str | None:
        """Return the command that shows the runs."""
        return f"tensorboard --logdir {self.path}"


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
