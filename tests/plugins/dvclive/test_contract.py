"""DVCLive passes the suite that every backend has to pass, by its own files."""

from __future__ import annotations

import csv
import shutil
from contextlib import contextmanager

import pytest

from uq_tracking.testing import Capabilities, RunContract, StoreContract
from uq_tracking_dvclive.backend import DVCLiveRun, DVCLiveStore


class DVCLive:
    capabilities = Capabilities(where=None, listing=300)

    @pytest.fixture
    def store(self, tmp_path):
        return DVCLiveStore(tmp_path / "runs")

    def series(self, store, run_id, name):
        """What DVC reads: a table of the plot, or the number alone."""
        path = store.path / run_id / "plots" / "metrics" / f"{name}.tsv"
        if not path.is_file():
            return [(0, store.last_scalars(store.path / run_id)[name])]
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        return [(int(row["step"]), float(row[path.stem])) for row in rows]

    curve_points = series

    @contextmanager
    def outage(self, store, run):
        """The run's folder is gone."""
        elsewhere = run.folder.with_name("moved-away")
        shutil.move(run.folder, elsewhere)
        yield DVCLiveRun(run.folder)
        shutil.move(elsewhere, run.folder)

    refusal = outage


class TestRun(DVCLive, RunContract):
    pass


class TestStore(DVCLive, StoreContract):
    pass
