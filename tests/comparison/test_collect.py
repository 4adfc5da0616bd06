"""Which runs are compared, and what is said of the others."""

from __future__ import annotations

import json
import operator
import shutil
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

import uq_tracking as uq
from tests.comparison.conftest import report_of
from uq_tracking.errors import (
    BackendError,
    InputTypeError,
    SettingsError,
    TrackerUnreachableError,
    UnknownBackendError,
)
from uq_tracking.runs.read import logged_runs
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.names import PAGE_FILE

QUICK = {"figures": False, "maps": False}
TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]


def logged(store, name, **options):
    run = store.create(name)
    uq.log(TRUTH, MEAN, STD, run=run, **QUICK, **options)
    return run


def reason(comparison, label):
    return next(run.reason for run in comparison.skipped if run.label == label)


def test_runs_are_grouped_by_their_method(folder):
    found = uq.compare(f"dir:{folder}", maps=False)
    assert {name: len(runs) for name, runs in found.groups.items()} == {"small": 1, "large": 2}


def test_a_run_without_a_method_is_its_own(store):
    for name in ("one", "two"):
        logged(store, name)
    assert set(uq.compare(f"dir:{store.path}").methods) == {"one", "two"}


def test_runs_of_one_name_get_labels_of_their_own(store):
    for seed in range(3):
        uq.log(
            TRUTH, MEAN, [s * (1 + 0.01 * seed) for s in STD], run=store.create("same"), **QUICK, method="m"
        )
    assert [run.label for run in uq.compare(f"dir:{store.path}").runs] == ["same", "same (2)", "same (3)"]


def test_a_run_named_twice_counts_once(folder):
    run = next(iter(FolderStore(folder).runs()))
    found = uq.compare(f"dir:{folder}", run.uri, *logged_runs(f"dir:{folder}"), maps=False)
    assert len(found.runs) == 3


@pytest.mark.slow
@pytest.mark.parametrize("place", ["scores rmse", "counts n", "intervals rmse 0", "left_out without rmse 3"])
def test_an_altered_report_does_not_rank(store, place):
    for name in ("honest", "edited"):
        uq.log(
            8 * TRUTH,
            8 * MEAN,
            8 * STD,
            groups=np.arange(32) % 8,
            run=store.create(name),
            **QUICK,
            method=name,
        )
    edited = next(run for run in logged_runs(f"dir:{store.path}") if run.name == "edited")
    path = next(path for path in store.path.rglob("report.json") if edited.stored.run_id in path.parts)
    values = json.loads(path.read_text())
    *parts, last = (int(part) if part.isdigit() else part for part in place.split())
    operator.setitem(reduce(operator.getitem, parts, values), last, 1e-3 if last != "n" else 7)
    path.write_text(json.dumps(values))
    found = uq.compare(f"dir:{store.path}", maps=False)
    assert found.methods == ("honest",)
    assert "does not hold the scores that were logged: it was altered" in reason(found, "edited")


def test_where_is_the_trackers_filter(folder):
    assert uq.compare(f"dir:{folder}", where="uq.method=large", maps=False).methods == ("large",)


def test_reports_and_addresses_mix(folder, reports):
    found = uq.compare(f"dir:{folder}", reports, maps=False)
    assert set(found.methods) == {"small", "large", *reports}
    assert any("Scored on different data" in warning for warning in found.warnings)


def test_splits_are_read_apart_and_named_when_missing(store):
    logged(store, "a", split="val")
    logged(store, "b", split="test")
    found = uq.compare(f"dir:{store.path}", split="test")
    assert found.methods == ("b",)
    assert reason(found, "a") == "it has no report of split 'test'; choose one with split=: val"
    with pytest.raises(BackendError, match=r"none of 2 runs can be compared.*choose one with split=: val"):
        uq.compare(f"dir:{store.path}", split="other")


def test_a_run_with_one_split_is_compared_by_it(store):
    for name in ("a", "b"):
        logged(store, name, split="test")
    found = uq.compare(f"dir:{store.path}")
    assert found.methods == ("a", "b")
    assert {run.split for run in found.runs} == {"test"}
    assert found.warnings == ()


def test_only_splits_that_differ_are_a_warning(store):
    logged(store, "a", split="val")
    logged(store, "b", split="test")
    found = uq.compare(f"dir:{store.path}")
    assert set(found.methods) == {"a", "b"}
    assert "Splits or outputs differ (choose one with split=). val: a; test: b." in found.warnings


@pytest.mark.parametrize("split", [None, "test"])
def test_every_output_of_a_run_is_a_method_of_its_own_unless_one_is_chosen(store, split):
    truth = np.arange(20.0).reshape(10, 2)
    for method in ("a", "b"):
        uq.log(
            truth,
            truth + 1,
            np.ones_like(truth),
            outputs=["tx", "ty"],
            run=f"dir:{store.path}",
            method=method,
            split=split,
            **QUICK,
        )
    below = "" if split is None else f"{split}/"
    found = uq.compare(f"dir:{store.path}", split=split)
    assert set(found.methods) == {f"{m} [{below}{output}]" for m in "ab" for output in ("tx", "ty")}
    assert any(text.startswith("Splits or outputs differ") for text in found.warnings)
    if split is None:
        assert set(uq.compare(f"dir:{store.path}", split="ty").methods) == {"a", "b"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "states no version"),
        ('{"schema": 99}', "format version 99"),
        ('{"schema": 1}', "not a uq_tracking report"),
        ("PK\x03\x04", "not JSON"),
    ],
)
def test_a_damaged_report_is_listed_and_the_others_are_compared(store, content, words):
    logged(store, "fine")
    broken = logged(store, "broken")
    (broken.path / "uq" / "report.json").write_text(content)
    found = uq.compare(f"dir:{store.path}")
    assert found.methods == ("fine",)
    assert words in reason(found, "broken")


@pytest.mark.parametrize(
    ("value", "words"), [("NaN", "NaN is not a JSON number"), ("1e999", "it holds the number inf")]
)
def test_a_score_that_is_no_number_is_damage(store, value, words):
    logged(store, "fine")
    broken = logged(store, "broken")
    path = broken.path / "uq" / "report.json"
    path.write_text(path.read_text().replace('"mae": ', f'"mae": {value}, "x": '))
    assert words in reason(uq.compare(f"dir:{store.path}"), "broken")


def test_a_text_of_megabytes_is_damage(store):
    """Nothing of ours is as long, and printing a hundred of them takes a minute."""
    logged(store, "fine")
    broken = logged(store, "broken")
    path = broken.path / "uq" / "report.json"
    path.write_text(path.read_text().replace('"task": "', f'"task": "{"x " * 2**20}'))
    assert "a text of 2,097" in reason(uq.compare(f"dir:{store.path}"), "broken")


def test_a_damaged_curve_costs_the_curve(store):
    broken = logged(store, "broken")
    path = broken.path / "uq" / "report.json"
    path.write_text(path.read_text().replace('"main": "rmse"', '"main": "gone"'))
    found = uq.compare(f"dir:{store.path}")
    assert "reliability" not in found.curves
    assert "calibration" in found.curves


def test_a_run_without_files_of_ours_is_listed(store):
    logged(store, "fine")
    store.create("training only").log_scalars({"loss": 1.0})
    told = reason(uq.compare(f"dir:{store.path}"), "training only")
    assert told == "it has no report of its own; uq.log writes one when called without step="


def test_a_run_that_holds_a_comparison_is_not_mentioned(store):
    logged(store, "fine")
    uq.compare(f"dir:{store.path}").log(f"dir:{store.path}")
    assert [run.name for run in store.runs()] == ["fine", "uq comparison"]
    again = uq.compare(f"dir:{store.path}")
    assert again.methods == ("fine",)
    assert again.skipped == ()


def test_a_tracker_that_does_not_answer_is_asked_once(store):
    class Dead(FolderStore):
        asked = 0

        def fetch(self, run_id, name, folder):
            Dead.asked += 1
            raise TrackerUnreachableError("nobody listens")

    for name in "abc":
        logged(store, name)
    runs = [replace(run, store=Dead(store.path)) for run in logged_runs(f"dir:{store.path}")]
    with pytest.raises(TrackerUnreachableError, match="nobody listens"):
        uq.compare(*runs)
    assert Dead.asked == 1


def test_a_tracker_that_fails_for_one_run_costs_that_run(store):
    class Moody(FolderStore):
        def fetch(self, run_id, name, folder):
            if "-b-" in run_id:
                raise RuntimeError("quota")
            return super().fetch(run_id, name, folder)

    for name in "abc":
        logged(store, name)
    runs = [replace(run, store=Moody(store.path)) for run in logged_runs(f"dir:{store.path}")]
    found = uq.compare(*runs)
    assert set(found.methods) == {"a", "c"}
    assert reason(found, "b") == "RuntimeError: quota"


def test_another_task_is_listed(reports):
    other = report_of({"accuracy": 0.9}, task="classification")
    found = uq.compare({**reports, "classifier": other})
    assert "classifier" not in found.methods
    assert reason(found, "classifier") == "it scores classification, but the first run scores regression"


def test_nothing_to_compare(store):
    with pytest.raises(SettingsError, match="nothing to compare; pass addresses"):
        uq.compare()
    with pytest.raises(BackendError, match="there are no runs to compare"):
        uq.compare(f"dir:{store.path}")
    with pytest.raises(UnknownBackendError, match="no installed backend is called 'ftp'"):
        uq.compare("ftp:somewhere")


def test_a_report_needs_a_name(reports):
    with pytest.raises(InputTypeError, match=r'cannot compare a Report.*pass \{"a name": report\}'):
        uq.compare(reports["informed"])
    with pytest.raises(InputTypeError, match="'a' names a str; pass a Report or a list of Reports"):
        uq.compare({"a": ["no report"]})


def test_a_split_that_no_tracker_takes(reports):
    with pytest.raises(SettingsError, match="split is 'a/b'"):
        uq.compare(reports, split="a/b")


def test_the_page_file_is_stored_at_the_root(store):
    run = logged(store, "fine")
    uq.compare(f"dir:{store.path}").log(run.uri)
    assert (run.path / PAGE_FILE).read_text().startswith("<!doctype html>")


def test_logging_needs_a_run(reports, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    with pytest.raises(BackendError, match="no tracker has an active run; pass run="):
        uq.compare(reports).log()


@pytest.mark.slow
def test_a_tracker_that_does_not_take_the_page(reports, store):
    run = store.create("gone")
    shutil.rmtree(run.path)
    with pytest.raises(BackendError, match="did not take the comparison"):
        uq.compare(reports).log(run)
