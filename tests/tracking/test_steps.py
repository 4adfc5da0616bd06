"""The report of a step: scores that are not logged wait until they are looked at, and nobody can tell."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import TrackingWarning
from uq_tracking.metrics import registry
from uq_tracking.metrics.registry import compute, metric
from uq_tracking.tracking.folder import FolderStore

RNG = np.random.default_rng(4)
N = 300
STD = RNG.uniform(0.1, 1.0, N)
TRUTH = RNG.normal(size=N)
MEAN = TRUTH + STD * RNG.standard_normal(N)
DRAWS = MEAN + STD * RNG.standard_normal((9, N))
LABELS = RNG.integers(0, 3, N)
PROBS = RNG.dirichlet(np.ones(3), N)

FORMS = {
    "mean and std": lambda: (TRUTH.copy(), MEAN.copy(), STD.copy()),
    "float32": lambda: tuple(array.astype(np.float32) for array in (TRUTH, MEAN, STD)),
}
BUILT = {
    "samples": lambda arrays: uq.Predictions.from_samples(*arrays),
    "ensemble": lambda arrays: uq.Predictions.from_ensemble(*arrays),
}


@pytest.fixture
def computed(monkeypatch):
    """Keys of the metrics that were computed, in order."""
    found = []

    def noted(statistics, settings, metrics, inputs=None):
        metrics = list(metrics)
        found.extend(each.key for each in metrics)
        return compute(statistics, settings, metrics, inputs)

    monkeypatch.setattr(registry, "compute", noted)
    return found


@pytest.mark.parametrize("weights", [None, STD], ids=["", "weighted"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_looked_at_later_is_what_evaluate_finds(form, weights, tmp_path):
    arrays = FORMS[form]()
    whole = uq.evaluate(*arrays, weights=weights)
    report = uq.log(*arrays, weights=weights, run=f"dir:{tmp_path}", step=0)
    for array in arrays:
        array[:] = 1  # a loop may use its memory again
    assert list(report.scores.items()) == list(whole.scores.items())
    assert list(report.undefined.items()) == list(whole.undefined.items())
    assert report == whole
    assert report.to_json() == whole.to_json()


@pytest.mark.parametrize("form", BUILT)
def test_so_it_is_with_other_forms(form, tmp_path):
    arrays = TRUTH.copy(), DRAWS.copy()
    whole = uq.evaluate(BUILT[form](arrays))
    report = uq.log(BUILT[form](arrays), run=f"dir:{tmp_path}", step=0)
    for array in arrays:
        array[:] = 1
    assert report.to_json() == whole.to_json()


def test_so_it_is_with_classes(tmp_path):
    arrays = LABELS.copy(), PROBS.copy()
    labels, probs = arrays
    whole = uq.evaluate(labels, probs=probs)
    report = uq.log(labels, probs=probs, run=f"dir:{tmp_path}", step=0)
    for array in arrays:
        array[:] = 1
    found, expected = json.loads(report.to_json()), json.loads(whole.to_json())
    for part in (
        found,
        expected,
    ):  # what is stated of each class needs another pass, which a step does without
        columns = part.pop("classes")["columns"]
        part["counted"] = {key: columns[key] for key in ("support", "recall", "dice")}
        part["verdict"] = part["verdict"]["calibration"]
        for name in ("scores", "undefined", "noise"):
            part[name] = {key: v for key, v in part[name].items() if key not in ("cwece", "worst_class_gap")}
    assert found == expected
    assert "steps, older versions and calls for metrics of the top label" in report.undefined["cwece"]
    by_name = uq.log(LABELS, probs=PROBS, run=f"dir:{tmp_path}", step=1, metrics=["cwece", "nll"])
    assert by_name.scores["cwece"] == whole.scores["cwece"]


@pytest.mark.slow
def test_so_it_is_with_a_reference_and_intervals(tmp_path):
    mean, std = MEAN + 0.1, STD.copy()
    options = {"groups": np.arange(N) // 10}
    whole = uq.evaluate(TRUTH, MEAN, STD, reference=(mean.copy(), std.copy()), **options)
    report = uq.log(TRUTH, MEAN, STD, reference=(mean, std), run=f"dir:{tmp_path}", step=0, **options)
    mean[:], std[:] = 0, 1
    assert "kl_to_reference" in report.scores
    assert report.to_json() == whole.to_json()


@pytest.mark.slow
def test_the_scores_are_a_dict_wherever_they_go(tmp_path):
    def made():
        return uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}", step=0, method="m", split="val")

    whole = dict(made().scores)
    assert type(made().scores) is dict
    assert pickle.loads(pickle.dumps(made())).scores == whole
    assert copy.deepcopy(made()).scores == copy.copy(made()).scores == whole
    assert made().labelled(method="other").scores == whole
    assert made().undefined.keys().isdisjoint(whole)
    whole_report = uq.evaluate(TRUTH, MEAN, STD).labelled(method="m", split="val")
    assert repr(made()) == repr(whole_report)
    assert str(made()) == str(whole_report)


def test_steps_to_an_address_that_makes_a_run_each_time_are_told_once(tmp_path, caplog):
    for step in range(2):
        uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}/many", step=step)
        uq.log(TRUTH, MEAN, STD, run=tmp_path / "runs/one", step=step)
    uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}/runs/one", step=2)
    told = [message for message in caplog.messages if "creates a new run in every call" in message]
    assert len(told) == 1
    assert f"its own address (dir:{tmp_path}/many/RUN_ID)" in told[0]
    assert len(list(FolderStore(tmp_path / "many").runs())) == 2
    (one,) = FolderStore(tmp_path / "runs").runs()
    assert sorted(step for step, name in FolderStore(tmp_path / "runs").series(one) if name == "uq/nll") == [
        0,
        1,
        2,
    ]


def test_a_step_computes_what_it_logs(computed, tmp_path):
    report = uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}", step=0, method="m", split="val")
    (run,) = FolderStore(tmp_path).runs()
    logged = {name.removeprefix("uq/val/") for name in run.scalars}
    own = {
        key for key, each in plugins.metrics().items() if each.function.__module__.startswith("uq_tracking.")
    }
    assert logged & own == set(computed) & own
    assert report.scores["mae"] > 0
    assert len(computed) == len(set(computed)) > len(logged)


def test_what_is_asked_for_by_name_is_logged(computed, tmp_path):
    uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}", step=0, metrics=["mae", "crps"])
    (run,) = FolderStore(tmp_path).runs()
    assert run.scalars.keys() == {"uq_accuracy/mae", "uq/crps"}
    assert sorted(computed) == ["crps", "mae"]


def test_where_the_headline_is_empty_the_others_are_logged(monkeypatch, tmp_path):
    plain = {key: replace(each, headline=False) for key, each in plugins.metrics().items()}
    monkeypatch.setattr(plugins, "metrics", lambda task="regression": plain)
    report = uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}", step=0)
    (run,) = FolderStore(tmp_path).runs()
    assert {name.rpartition("/")[2] for name in run.scalars} == report.scores.keys()


def test_all_scores_are_logged_where_all_are_asked_for(tmp_path):
    report = uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}", step=0, scores="all")
    (run,) = FolderStore(tmp_path).runs()
    assert {name.rpartition("/")[2] for name in run.scalars} == report.scores.keys()


def test_a_metric_of_a_plugin_that_fails_says_so_at_the_call(monkeypatch, tmp_path):
    @metric("odd", family="spread", direction=None, summary="Odd", formula="-", source="-")
    def odd(statistics, settings):
        raise ValueError("broken")

    known = {**plugins.metrics(), "odd": odd.uq_metrics[0]}
    monkeypatch.setattr(plugins, "metrics", lambda task="regression": known)
    with pytest.warns(TrackingWarning, match=r"metric 'odd' of .*test_steps failed: ValueError: broken"):
        report = uq.log(TRUTH, MEAN, STD, run=f"dir:{tmp_path}", step=0)
    assert "broken" in report.undefined["odd"]
    assert report.scores["mae"] > 0
