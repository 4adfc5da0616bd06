"""The runs of a trackio project."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trackio.sqlite_storage import SQLiteStorage

from uq_tracking.errors import BackendError, RunNotFoundError
from uq_tracking.tracking.backend import Run, RunStore, StoredRun, name_parts
from uq_tracking_trackio.project import Points, Project, Record
from uq_tracking_trackio.run import TrackioRun


class TrackioStore(RunStore):
    """Runs of the project called ``project``, which ``create`` makes if it does not exist."""

    def __init__(self, project: str) -> None:
        self.project = Project(project)

    def runs(self, where: str | None = None) -> Iterator[StoredRun]:
        """List the runs by their first row; trackio has no filter expressions."""
        if where is not None:
            raise BackendError(
                f"trackio has no filters; omit {where!r}, or name a run with trackio:PROJECT/RUN"
            )
        records = self.project.records()
        if not records:
            names = ", ".join(SQLiteStorage.get_projects()) or "none"
            raise RunNotFoundError(f"trackio has no runs in project {self.project.name!r}; projects: {names}")
        return self._stored(records)

    def series(self, run: StoredRun) -> dict[tuple[int | None, str], float]:
        """All scalars at all steps, and their last values; see `RunStore`."""
        found: dict[tuple[int | None, str], float] = {}
        for name, points in self.project.scalars(run.run_id).items():
            if len(points) > 1:
                found.update({(step, name): value for step, value in points.items()})
        return found | super().series(run)

    def files(self, run_id: str) -> list[str]:
        """List the run's files; see `RunStore`."""
        self.project.find(run_id)
        folder = self.project.folder(run_id)
        paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".part")
        return sorted(path.relative_to(folder).as_posix() for path in paths)

    def fetch(self, run_id: str, name: str, folder: Path) -> Path:
        """Copy one stored file; see `RunStore`."""
        self.project.find(run_id)
        source = self._path(run_id, name)
        if not source.is_file():
            raise FileNotFoundError(
                f"run {run_id} of trackio project {self.project.name!r} has no file {name!r}"
            )
        target = folder.joinpath(*name_parts(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copyfile(source, target))

    def size(self, run_id: str, name: str) -> int | None:
        """Size of a stored file in bytes; None if it does not exist."""
        path = self._path(run_id, name)
        return path.stat().st_size if path.is_file() else None

    def reopen(self, run_id: str) -> Run:
        """Open the run with this id; see `RunStore`."""
        return TrackioRun(self.project.name, run_id, self.project.find(run_id).name)

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> Run:
        """Make a run, with an empty first row, and the project if it does not exist."""
        SQLiteStorage.validate_project_name(self.project.name)
        run = TrackioRun(self.project.name, uuid.uuid4().hex, name)
        self.project.append(run.run_id, name, {0: {}}, tags)
        return run

    def show(self) -> str | None:
        """Return the command that shows the project."""
        return f"trackio show --project {self.project.name}"

    def id_of(self, run: str) -> str:
        """The id of the run with this id, or else of the newest run with this name."""
        records = self.project.records()
        named = [record.run_id for record in records if record.name == run]
        return run if not named or any(record.run_id == run for record in records) else named[-1]

    def _stored(self, records: list[Record]) -> Iterator[StoredRun]:
        configs = self.project.configs()
        for record in records:
            yield StoredRun(
                uri=f"trackio:{self.project.name}/{record.run_id}",
                run_id=record.run_id,
                name=record.name,
                status="unknown",  # trackio does not store whether a run has ended
                tags=_tags(configs.get(record.run_id, {})),
                scalars={name: _last(points) for name, points in self.project.scalars(record.run_id).items()},
                created=record.created,
            )

    def _path(self, run_id: str, name: str) -> Path:
        return self.project.folder(run_id).joinpath(*name_parts(name))


def _last(points: Points) -> float:
    return points[max(points)]


def _tags(config: Mapping[str, Any]) -> dict[str, str]:
    """The texts in a configuration, except trackio's own."""
    return {key: value for key, value in config.items() if isinstance(value, str) and not key.startswith("_")}
