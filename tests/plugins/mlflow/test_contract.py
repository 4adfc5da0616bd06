"""MLflow over sqlite and over a real server passes the suite that every backend has to pass."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import uuid
from contextlib import contextmanager
from pathlib import Path

import mlflow
import pytest

from uq_tracking.testing import Capabilities, RunContract, StoreContract
from uq_tracking_mlflow.experiment import MLflowStore
from uq_tracking_mlflow.run import MLflowRun


class MLflow:
    capabilities = Capabilities(where=lambda tag, value: f"tags.`{tag}` = '{value}'", listing=1100)

    @pytest.fixture
    def store(self, uri, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        mlflow.set_tracking_uri(uri)
        return MLflowStore(mlflow.MlflowClient(), f"test {uuid.uuid4().hex}")

    def series(self, store, run_id, name):
        points = store.client.get_metric_history(run_id, name)
        return sorted((point.step, point.value) for point in points)

    curve_points = series


class Sqlite(MLflow):
    @pytest.fixture
    def uri(self, sqlite_uri):
        return sqlite_uri

    def fill(self, store, count):
        copy_runs(store.client.tracking_uri.removeprefix("sqlite:///"), store, count)

    @contextmanager
    def outage(self, store, run):
        """The database is deleted under the client that has opened it."""
        database = Path(store.client.tracking_uri.removeprefix("sqlite:///"))
        lost = Path(shutil.copyfile(database, f"{uuid.uuid4().hex}.db"))
        client = mlflow.MlflowClient(f"sqlite:///{lost}")
        client.get_run(run.run_id)
        lost.unlink()
        yield MLflowRun(run.run_id, client)


class Http(MLflow):
    @pytest.fixture
    def uri(self, server):
        self.database = server[1]
        return server[0]

    def fill(self, store, count):
        copy_runs(self.database, store, count)

    @contextmanager
    def outage(self, store, run):
        """Nobody listens at the address any more."""
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            yield MLflowRun(run.run_id, mlflow.MlflowClient(f"http://127.0.0.1:{closed.getsockname()[1]}"))


def copy_runs(database, store, count):
    """Make runs the quick way: one through MLflow, the others as copies of its row."""
    first = store.create("run 0").run_id
    connection = sqlite3.connect(database, timeout=30)
    columns = [row[1] for row in connection.execute("pragma table_info(runs)")]
    kept = ", ".join(column for column in columns if column not in ("run_uuid", "name"))
    connection.execute(
        f"""with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < {count - 1})
        insert into runs (run_uuid, name, {kept})
        select lower(hex(randomblob(16))), 'run ' || n, {kept} from runs, numbers where run_uuid = '{first}'"""
    )
    connection.commit()
    connection.close()


class TestSqliteRun(Sqlite, RunContract):
    pass


class TestSqliteStore(Sqlite, StoreContract):
    pass


class TestHttpRun(Http, RunContract):
    pass


class TestHttpStore(Http, StoreContract):
    pass
