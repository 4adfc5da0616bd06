"""What this backend needs from trackio's local storage: rows, configurations and a folder for files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trackio.sqlite_storage import ProcessLock, SQLiteStorage
from trackio.utils import MEDIA_DIR, TRACKIO_DIR, canonical_project_name, project_media_dir

from uq_tracking.errors import RunNotFoundError

Points = dict[int, float]
"""Values by step."""


@dataclass(frozen=True)
class Record:
    """A run listed in the project."""

    run_id: str
    name: str
    created: str


@dataclass(frozen=True)
class Project:
    """The project called ``name``: a SQLite database in trackio's folder, with files next to it."""

    name: str

    def records(self) -> list[Record]:
        """Every run, oldest first."""
        found = SQLiteStorage.get_run_records(self.name)
        return [Record(str(run["id"]), str(run["name"]), str(run["created_at"])) for run in found]

    def find(self, run_id: str) -> Record:
        """The run with this id; raises RunNotFoundError."""
        for record in self.records():
            if record.run_id == run_id:
                return record
        raise RunNotFoundError(
            f"trackio project {self.name!r} in {TRACKIO_DIR} has no run {run_id!r}; "
            f"see `trackio list runs --project {self.name}`"
        )

    def scalars(self, run_id: str) -> dict[str, Points]:
        """All numbers of the run by name and step; the last one if a step has several."""
        found: dict[str, Points] = {}
        for row in SQLiteStorage.get_logs(self.name, run_id=run_id, scalar_only=True):
            for name in row.keys() - {"step", "timestamp"}:
                if isinstance(row[name], int | float):
                    found.setdefault(name, {})[row["step"]] = float(row[name])
        return found

    def holds(self, run_id: str, name: str, value: Any) -> bool:
        """Return whether a row of the run has this value."""
        rows = SQLiteStorage.get_logs(self.name, run_id=run_id)
        return any(row.get(name) == value for row in rows)

    def config(self, run_id: str) -> dict[str, Any]:
        """The run's configuration; empty if none is stored."""
        return SQLiteStorage.get_run_config(self.name, run_id=run_id) or {}

    def configs(self) -> dict[str, dict[str, Any]]:
        """The configurations of all runs, by run id."""
        return dict(SQLiteStorage.get_all_run_configs(self.name))

    def append(
        self,
        run_id: str,
        run_name: str,
        rows: Mapping[int, Mapping[str, Any]],
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Add rows by step, and replace the configuration if one is given."""
        SQLiteStorage.bulk_log(
            self.name,
            run_name,
            [dict(row) for row in rows.values()],
            steps=list(rows),
            config=None if config is None else dict(config),
            log_ids=[uuid.uuid4().hex for _ in rows],
            run_id=run_id,
        )

    def folder(self, run_id: str) -> Path:
        """The run's files, inside the folder that ``trackio.save`` and the page "Files" use."""
        return project_media_dir(self.name) / "files" / run_id

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep out other writers of this backend between a read and a write."""
        with ProcessLock(TRACKIO_DIR / f"{canonical_project_name(self.name)}.uq.lock"):
            yield


def image(path: Path) -> dict[str, str]:
    """The value that makes the page "Media" show the image in this file."""
    return {"_type": "trackio.image", "file_path": str(path.relative_to(MEDIA_DIR)), "caption": path.stem}
