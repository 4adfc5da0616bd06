"""The runs below a log folder, as TensorBoard finds them: every folder with event files is a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import count
from pathlib import Path

from uq_tracking.errors import BackendError, FileFormatError, RunNotFoundError, printable, warn
from uq_tracking.tracking.backend import Run, RunStore, StoredRun, name_parts
from uq_tracking.tracking.folder import FolderStore, slug
from uq_tracking.tracking.journal import Line
from uq_tracking_tensorboard.events import event_files, read_points, started
from uq_tracking_tensorboard.run import KEPT, TensorBoardRun


class TensorBoardStore(RunStore):
    """The runs below ``path``; a run's id is its folder's path relative to it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def runs(self, where: str | None = None) -> Iterator[StoredRun]:
        """List the runs by their first event; TensorBoard has no filter expressions."""
        if where is not None:
            raise BackendError(
                f"TensorBoard has no filters; omit {where!r}, or name a run with tensorboard:LOGDIR/RUN"
            )
        return self._listed()

    def _listed(self) -> Iterator[StoredRun]:
        """Readable runs; one damaged run does not hide the others."""
        begun: dict[Path, float] = {}
        for folder in {file.parent for file in self.path.rglob("*tfevents*")}:
            try:
                begun[folder] = started(folder)
            except FileFormatError as error:
                _leave_out(error)
        for folder in sorted(begun, key=lambda folder: (begun[folder], folder)):
            try:
                yield self._stored(folder)
            except FileFormatError as error:
                _leave_out(error)

    def series(self, run: StoredRun) -> dict[tuple[int | None, str], float]:
        """Last values, and those this backend wrote at every step; see `RunStore`."""
        folder = self._folder(run.run_id)
        kept = _kept(folder)
        ours = {} if kept is None else FolderStore(folder).series(kept)
        names = {name for _, name in ours}
        return ours | {key: value for key, value in super().series(run).items() if key[1] not in names}

    def files(self, run_id: str) -> list[str]:
        """List the files kept beside the event files; see `RunStore`."""
        folder = self._folder(run_id)
        return [] if _kept(folder) is None else FolderStore(folder).files(KEPT)

    def fetch(self, run_id: str, name: str, folder: Path) -> Path:
        """Copy one kept file; see `RunStore`."""
        run_folder = self._folder(run_id)
        if _kept(run_folder) is None:
            raise FileNotFoundError(f"run {run_id} in {self.path} keeps no files, so no {name!r}")
        return FolderStore(run_folder).fetch(KEPT, name, folder)

    def lines(self, run_id: str) -> Sequence[Line]:
        """Return what is kept beside the event files besides scalars and tags; see `RunStore`."""
        folder = self._folder(run_id)
        return () if _kept(folder) is None else FolderStore(folder).lines(KEPT)

    def size(self, run_id: str, name: str) -> int | None:
        """Size of a kept file in bytes; None if there is none."""
        folder = self._folder(run_id)
        return None if _kept(folder) is None else FolderStore(folder).size(KEPT, name)

    def reopen(self, run_id: str) -> TensorBoardRun:
        """Open the run with this id, with its own event file; see `RunStore`."""
        return TensorBoardRun(self._folder(run_id))

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> TensorBoardRun:
        """Create a run in a new folder of that name, with a number appended if needed."""
        self.path.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            folder = self.path / (slug(name) if number == 1 else f"{slug(name)}-{number}")
            try:
                folder.mkdir()
                break
            except FileExistsError:
                continue
        run = TensorBoardRun(folder)
        run.start()
        FolderStore(folder).open(KEPT, name, tags)
        return run

    def close_run(self, run: Run) -> None:
        """Close the run's event file."""
        if isinstance(run, TensorBoardRun):
            run.close()

    def link(self) -> str | None:
        """Return the command that shows the runs."""
        return f"tensorboard --logdir {self.path}"

    def _folder(self, run_id: str) -> Path:
        folder = self.path if run_id == "." else self.path.joinpath(*name_parts(run_id))
        if not event_files(folder):
            raise RunNotFoundError(f"{self.path} has no run {run_id!r}: there are no event files")
        return folder

    def _stored(self, folder: Path) -> StoredRun:
        run_id = folder.relative_to(self.path).as_posix()
        kept = _kept(folder)
        scalars = {
            name: (by_step := dict(points))[max(by_step)]
            for name, points in read_points(folder).items()
            if not (folder / KEPT / f"{name}.csv").is_file()  # a curve, whose axis is not a training step
        }
        return StoredRun(
            uri=f"tensorboard:{folder}",
            run_id=run_id,
            name=run_id if kept is None else kept.name,
            status="unknown",  # event files do not say whether more will come
            tags={} if kept is None else kept.tags,
            scalars=scalars if kept is None else {**scalars, **kept.scalars},
            created=datetime.fromtimestamp(started(folder), timezone.utc).isoformat(),
        )


def _leave_out(error: FileFormatError) -> None:
    warn(f"run skipped: {printable(str(error))}")


def _kept(folder: Path) -> StoredRun | None:
    """Return what this backend keeps beside the event files, if it has written to the run."""
    return next((run for run in FolderStore(folder).runs() if run.run_id == KEPT), None)
