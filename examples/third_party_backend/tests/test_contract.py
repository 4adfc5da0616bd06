"""trackio passes the suite that every backend must pass, within its declared capabilities."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from uq_tracking.testing import Capabilities, RunContract, StoreContract
from uq_tracking.tracking.backend import Run
from uq_tracking_trackio import uq_backends

if TYPE_CHECKING:
    from uq_tracking_trackio.store import TrackioStore


class Trackio:
    capabilities = Capabilities(curves=False, where=None)

    @pytest.fixture
    def store(self, project: str) -> TrackioStore:
        return uq_backends()[0].store(project)[0]

    def series(self, store: TrackioStore, run_id: str, name: str) -> list[tuple[int, float]]:
        from trackio.sqlite_storage import SQLiteStorage

        rows = SQLiteStorage.get_logs(store.project.name, run_id=run_id)
        return [(row["step"], row[name]) for row in rows if name in row]

    def fill(self, store: TrackioStore, count: int) -> None:
        """A shortcut: create one run through the store, and the others as copies of its row."""
        from trackio.sqlite_storage import SQLiteStorage

        run_id = store.create("run 0").uri.rpartition("/")[2]
        with (
            closing(sqlite3.connect(SQLiteStorage.get_project_db_path(store.project.name))) as database,
            database,
        ):
            database.executemany(
                "insert into metrics (run_id, run_name, timestamp, step, metrics) "
                "select ?, ?, timestamp, step, metrics from metrics where run_id = ?",
                [(uuid.uuid4().hex, f"run {number}", run_id) for number in range(1, count)],
            )

    @contextmanager
    def outage(self, store: TrackioStore, run: Run) -> Iterator[Run]:
        """The database has been overwritten."""
        from trackio.sqlite_storage import SQLiteStorage

        database = SQLiteStorage.get_project_db_path(store.project.name)
        kept = database.rename(database.with_suffix(".kept"))
        database.write_bytes(b"this is no database" * 100)
        yield run
        kept.replace(database)


class TestRun(Trackio, RunContract):
    pass


class TestStore(Trackio, StoreContract):
    pass
