"""The contract of `RunStore`: runs are listed, read back whole, and reopened."""

# ruff: noqa: D102  (the names of the tests are sentences)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from uq_tracking.errors import BackendError, RunNotFoundError
from uq_tracking.inputs import Predictions
from uq_tracking.report import Report
from uq_tracking.statistics.store import read_statistics
from uq_tracking.testing.case import BackendCase, run_id_of, sample_predictions
from uq_tracking.testing.runs import BAD_FILE_NAMES
from uq_tracking.tracking.backend import RunStore
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.log import log

MISSING_RUN = "0123456789abcdef0123456789abcdef"


class StoreContract(BackendCase):
    """Inherit to test a backend's `RunStore`."""

    def test_runs_are_listed_oldest_first_with_what_they_hold(self, store: RunStore) -> None:
        ids = []
        for number in range(3):
            with self.writing(store, name=f"run {number}") as run:
                run.log_scalars({"uq/nll": float(number)})
                run.set_tags({"uq.method": f"m{number}"})
                ids.append(run_id_of(run))
        runs = [run for run in store.runs() if run.run_id in ids]
        assert [run.run_id for run in runs] == ids
        assert [run.name for run in runs] == ["run 0", "run 1", "run 2"]
        assert [run.scalars["uq/nll"] for run in runs] == [0.0, 1.0, 2.0]
        assert [run.tags["uq.method"] for run in runs] == ["m0", "m1", "m2"]
        assert all(run.uri.endswith(run.run_id) for run in runs)
        assert not any("running" in run.status.lower() for run in runs)

    def test_the_trackers_own_filter_selects(self, store: RunStore) -> None:
        if self.capabilities.where is None:
            return
        for method in ("a", "b", "a"):
            with self.writing(store) as run:
                run.set_tags({"uq.method": method})
        assert [run.tags["uq.method"] for run in store.runs(self.capabilities.where("uq.method", "a"))] == [
            "a",
            "a",
        ]
        assert list(store.runs(self.capabilities.where("uq.method", "c"))) == []

    def test_every_run_of_a_long_list_is_listed_once(self, store: RunStore) -> None:
        self.fill(store, self.capabilities.listing)
        names = [run.name for run in store.runs()]
        assert len(names) == self.capabilities.listing
        assert set(names) == {f"run {number}" for number in range(self.capabilities.listing)}

    def test_runs_can_be_changed_while_they_are_listed(self, store: RunStore) -> None:
        for _ in range(3):
            with self.writing(store) as run:
                run.set_tags({"uq.method": "a"})
        where = None if self.capabilities.where is None else self.capabilities.where("uq.method", "a")
        seen = []
        for stored in store.runs(where):
            with self.writing(store, stored.run_id) as run:
                run.set_tags({"uq.method": "b"})
            seen.append(stored.run_id)
        assert len(set(seen)) == 3
        assert {run.tags["uq.method"] for run in store.runs()} == {"b"}

    def test_a_logged_run_reads_back_whole(self, store: RunStore, run_id: str, tmp_path: Path) -> None:
        predictions = sample_predictions()
        with self.writing(store, run_id) as run:
            report = log(predictions, run=run, method="m", split="test", strict=True)
        stored = self.stored(store, run_id)
        assert logged_scores(report, "test").items() <= stored.scalars.items()
        assert stored.tags["uq.method"] == "m"
        if not self.capabilities.files:
            return
        folder = tmp_path / "fetched"
        size = store.fetch(run_id, "uq/test/statistics.npz", folder).stat().st_size
        assert store.size(run_id, "uq/test/statistics.npz") in (None, size)
        assert store.series(stored).items() >= {(None, "uq/test/rmse"): report.scores["rmse"]}.items()
        assert Report.from_json(store.fetch(run_id, "uq/test/report.json", folder)) == report
        statistics = read_statistics(store.fetch(run_id, "uq/test/statistics.npz", folder))
        assert statistics.counts == report.counts
        stored_predictions = Predictions.load(store.fetch(run_id, "uq/test/predictions.npz", folder))
        np.testing.assert_array_equal(stored_predictions.truth, predictions.truth)
        np.testing.assert_array_equal(stored_predictions.std, predictions.std)

    def test_a_missing_file_is_named(self, store: RunStore, run_id: str, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"uq/report\.json"):
            store.fetch(run_id, "uq/report.json", tmp_path)

    @pytest.mark.parametrize("name", BAD_FILE_NAMES)
    def test_nothing_outside_the_run_is_fetched(
        self, store: RunStore, run_id: str, name: str, tmp_path: Path
    ) -> None:
        with pytest.raises((BackendError, FileNotFoundError)):
            store.fetch(run_id, name, tmp_path)

    def test_a_missing_run_is_named(self, store: RunStore, run_id: str, tmp_path: Path) -> None:
        with pytest.raises(RunNotFoundError, match=MISSING_RUN):
            store.files(MISSING_RUN)
        with pytest.raises(RunNotFoundError, match=MISSING_RUN):
            store.fetch(MISSING_RUN, "uq/report.json", tmp_path)
        with pytest.raises(RunNotFoundError, match=MISSING_RUN):
            store.reopen(MISSING_RUN)

    def test_an_empty_run_holds_no_files(self, store: RunStore, run_id: str) -> None:
        assert [name for name in store.files(run_id) if name.startswith("uq")] == []
