"""The built-in backend passes the suite that every backend has to pass."""

from __future__ import annotations

import csv
import json
import shutil
from contextlib import contextmanager

import pytest

from uq_tracking.testing import Capabilities, RunContract, StoreContract
from uq_tracking.tracking.folder import FolderStore


class Directory:
    capabilities = Capabilities(where=lambda tag, value: f"{tag}={value}")

    @pytest.fixture
    def store(self, tmp_path):
        return FolderStore(tmp_path / "runs")

    def series(self, store, run_id, name):
        lines = [json.loads(line) for line in (store.path / run_id / "log.jsonl").read_text().splitlines()]
        scalars = [line for line in lines if line["kind"] == "scalars"]
        return [(line["step"], line["values"][name]) for line in scalars if name in line["values"]]

    def curve_points(self, store, run_id, name):
        with (store.path / run_id / f"{name}.csv").open() as file:
            return [(float(row["expected"]), float(row["observed"])) for row in csv.DictReader(file)]

    @contextmanager
    def outage(self, store, run):
        elsewhere = run.path.with_name("moved-away")
        shutil.move(run.path, elsewhere)
        yield run
        shutil.move(elsewhere, run.path)

    refusal = outage


class TestRun(Directory, RunContract):
    pass


class TestStore(Directory, StoreContract):
    pass
