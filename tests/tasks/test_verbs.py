"""Every verb serves every task: one suite, run over both."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import InputError, SettingsError, TrackingWarning, UnknownOptionError
from uq_tracking.runs.read import logged_run, logged_runs
from uq_tracking.settings import Settings
from uq_tracking.tracking.names import scalar_name

SHAPE = (6, 20, 24)
N = int(np.prod(SHAPE))


def named(given):
    """Positional arrays as the arguments of the verbs: two are labels and probabilities."""
    return (
        {"y_true": given[0], "probs": given[1]} if len(given) == 2 else dict(zip(NAMES, given, strict=False))
    )


NAMES = ("y_true", "y_pred", "y_std")


@dataclass(frozen=True)
class Case:
    """Arrays of a task, and the verbs for them."""

    task: str
    arrays: tuple[Any, ...]
    predictions: Any
    recalibration: str
    metric: str
    reference: Any

    def cut(self, part):
        return tuple(array[part] for array in self.arrays)

    def evaluate(self, *given, **options):
        return uq.evaluate(**named(given), **options)

    def log(self, *given, **options):
        return uq.log(**named(given), **options)

    def accumulator(self, **options):
        return uq.Accumulator(**options)

    def count(self, acc, *given, **options):
        acc.update(**named(given), **options)


def regression():
    rng = np.random.default_rng(0)
    std = rng.gamma(4, 0.25, SHAPE)
    mean = rng.normal(size=SHAPE)
    target = mean + 1.4 * std * rng.normal(size=SHAPE)
    return Case(
        "regression", (target, mean, std), uq.Predictions, "std_scaling",
        "rmse", (mean + 0.1, 0.9 * std),
    )  # fmt: skip


def classification():
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(*SHAPE, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    labels = (probs.cumsum(axis=-1) > rng.random((*SHAPE, 1))).argmax(axis=-1)
    sharp = probs**2 / (probs**2).sum(axis=-1, keepdims=True)
    return Case(
        "classification", (labels, sharp), uq.Predictions.from_probs, "temperature", "brier", probs,
    )  # fmt: skip


@pytest.fixture(params=[regression, classification], ids=["regression", "classification"])
def case(request):
    return request.param()


def close(one, other, rtol=1e-9, atol=1e-12):
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert_allclose(other[key], value, rtol=rtol, atol=atol, err_msg=key)


def whole(case, **options):
    return case.evaluate(*case.arrays, **options)


def test_evaluate_scores_everything_that_is_registered(case):
    report = whole(case)
    default = {
        key
        for key, metric in plugins.metrics(case.task).items()
        if metric.default and not metric.needs
        if metric.when is None or metric.when(report.statistics, Settings())
    }
    assert set(report.scores) | set(report.undefined) == default
    assert report.task == case.task
    assert report.counts["n"] == N
    data = case.predictions(*case.arrays)
    assert case.evaluate(data) == report


@pytest.mark.parametrize("statistics", ["exact", "sketch"])
def test_a_stream_scores_as_the_whole(case, statistics):
    acc = case.accumulator(statistics=statistics)
    for start in range(0, 6, 2):
        case.count(acc, *case.cut(slice(start, start + 2)))
    report, expected = acc.compute(), whole(case, statistics=statistics)
    close(expected.scores, report.scores)
    assert report.settings == expected.settings
    assert report.counts == expected.counts


def test_streams_merge_and_go_on_from_a_file(case, tmp_path):
    first, second = (case.accumulator() for _ in range(2))
    case.count(first, *case.cut(slice(0, 4)))
    first.save(tmp_path / "acc.npz")
    case.count(second, *case.cut(slice(4, 6)))
    again = type(first).load(tmp_path / "acc.npz").merge(second)
    close(whole(case, statistics="sketch").scores, again.compute().scores)


@pytest.mark.parametrize("statistics", ["exact", "sketch"])
def test_dask_arrays_score_as_the_loaded_ones(case, statistics):
    import dask.array as da

    lazy = [da.from_array(array, chunks=(1, 20, 12, -1)[: array.ndim]) for array in case.arrays]
    report = case.evaluate(*lazy, groups="chunk", statistics=statistics)
    close(whole(case, statistics=statistics).scores, report.scores)
    assert report.intervals


@pytest.mark.slow
def test_groups_make_intervals_bands_and_rescored_ones(case, tmp_path):
    images = np.repeat(np.arange(48), N // 48).reshape(SHAPE)
    options = {"groups": images, "seed": 3}
    report = whole(case, **options)
    assert case.metric in report.intervals
    assert {"chance_low", "chance_high"} <= report.curves["reliability"].columns.keys()
    acc = case.accumulator()
    for start in range(0, 6, 3):
        case.count(acc, *case.cut(slice(start, start + 3)), groups=images[start : start + 3])
    streamed = acc.compute(seed=3)
    for key in (case.metric, "nll"):
        assert_allclose(streamed.intervals[key], report.intervals[key], rtol=1e-5)
    case.log(*case.arrays, run=f"dir:{tmp_path}", figures=False, maps=False, predictions=False, **options)
    uq.rescore(f"dir:{tmp_path}", n_bins=7)
    (run,) = logged_runs(f"dir:{tmp_path}")
    assert case.metric in run.report().intervals
    with pytest.raises(SettingsError, match="intervals only over groups"):
        case.accumulator().merge(_counted(case)).compute(intervals=True)
    with pytest.raises(SettingsError, match=r"level is 5.0"):
        _counted(case).compute(level=5.0)


def _counted(case):
    acc = case.accumulator()
    case.count(acc, *case.arrays)
    return acc


def test_strata_have_curves(case):
    labels = np.where(np.arange(N).reshape(SHAPE) % 3, "day", "night")
    report = whole(case, by=labels)
    curve = report.curves[f"by_group_{case.metric}"]
    assert curve.labels == ("day", "night")
    night = case.evaluate(*case.cut(labels == "night"))
    assert_allclose(curve.columns[case.metric][1], night.scores[case.metric], rtol=1e-9)
    acc = case.accumulator()
    case.count(acc, *case.arrays, by=labels)
    assert_allclose(
        acc.compute().curves[f"by_group_{case.metric}"].columns[case.metric],
        curve.columns[case.metric],
        rtol=1e-6,
    )


def test_outputs_have_reports_of_their_own(case, tmp_path):
    truth, *others = case.arrays
    arrays = (
        np.stack([truth, truth[::-1]], axis=-1),
        *(np.stack([a, a[::-1]], axis=truth.ndim) for a in others),
    )
    reports = case.evaluate(*arrays, outputs=["there", "back"], metrics=[case.metric])
    expected = whole(case, metrics=[case.metric]).scores
    close(expected, reports["there"].scores)
    close(expected, reports["back"].scores)
    logged = case.log(*arrays, outputs=["there", "back"], run=f"dir:{tmp_path}", figures=False, maps=False)
    (stored,) = logged_runs(f"dir:{tmp_path}")
    name = scalar_name(case.metric, "back", case.task)
    assert_allclose(stored.stored.scalars[name], logged["back"].scores[case.metric])
    with pytest.raises(InputError, match="last axis"):
        case.evaluate(*arrays, outputs=["there", "back", "again"])


@pytest.mark.parametrize("curves", [["stability"]])
def test_curves_on_demand(case, curves):
    report = whole(case, curves=curves, curve_metrics=[case.metric])
    assert report.curves[f"stability_{case.metric}"].columns["subsets"][0] == 20
    assert report.verdicts[case.metric]


def test_members_have_a_curve(case):
    rng = np.random.default_rng(1)
    truth = case.arrays[0]
    if case.task == "regression":
        data = uq.Predictions.from_samples(truth, case.arrays[1] + rng.normal(size=(4, *SHAPE)))
    else:
        members = case.arrays[1] * rng.uniform(0.5, 1.5, (4, *SHAPE, 3))
        data = uq.Predictions.from_probs(truth, members / members.sum(-1, keepdims=True), members_axis=0)
    report = case.evaluate(data, curves="by_members", curve_metrics=[case.metric])
    assert report.curves[f"by_members_{case.metric}"].columns["members"][-1] == 4
    with pytest.raises(SettingsError, match="needs the members"):
        whole(case, curves="by_members")


def test_a_reference_is_compared_with(case):
    value = whole(case, reference=case.reference).scores["kl_to_reference"]
    assert 0 < value < 1
    same = case.arrays[1:] if case.task == "regression" else case.arrays[1]
    assert_allclose(case.evaluate(*case.arrays, reference=same).scores["kl_to_reference"], 0, atol=1e-12)
    with pytest.raises(SettingsError, match="kl_to_reference"):
        whole(case, curve_metrics=["kl_to_reference"], by=np.zeros(SHAPE, int))


@pytest.mark.parametrize("calibration", ["second", "fitted", True])
def test_recalibration_has_scores_after_it(case, calibration):
    second = case.cut(slice(0, 3))
    test = case.cut(slice(3, 6))
    if calibration == "fitted":
        made = case.evaluate(*test, calibration=second).recalibration["methods"][case.recalibration]
        calibration = uq.Recalibration.from_dict(made["recalibration"])
    elif calibration == "second":
        calibration = second
    report = case.evaluate(*test, calibration=calibration)
    entry = report.recalibration["methods"][case.recalibration]
    assert entry["scores"]["nll"] < report.scores["nll"]
    assert "reliability_recalibrated" in report.curves


def test_the_seed_reaches_the_halves(case):
    scores = [
        whole(case, calibration=True, seed=seed).recalibration["methods"][case.recalibration]["scores"]["nll"]
        for seed in (0, 0, 1)
    ]
    assert scores[0] == scores[1] != scores[2]


@pytest.mark.slow
def test_log_rescore_pool_and_compare(case, tmp_path):
    uri = f"dir:{tmp_path}"
    for name, part in (("one", slice(0, 3)), ("two", slice(3, 6))):
        case.log(*case.cut(part), run=uri, method=name, figures=False, maps=False)
    with pytest.warns(TrackingWarning, match="several methods"):
        pooled = uq.pool(uri)
    close(whole(case).scores, pooled.scores, rtol=1e-9)
    summary = uq.rescore(uri, n_bins=5)
    assert len(summary.outcomes) == 2
    first = next(iter(logged_runs(uri)))
    expected = case.evaluate(*case.cut(slice(0, 3)), n_bins=5)
    close(expected.scores, first.report().scores)
    comparison = uq.compare(uri)
    assert {"one", "two"} <= set(str(comparison).split())
    assert first.predictions().task == case.task


def test_maps_of_arrays_and_of_streams(case, tmp_path):
    images = np.linspace(0, 1, N).reshape(SHAPE)
    case.log(*case.arrays, run=tmp_path / "whole", images=images, maps=[1], figures=False)
    acc = case.accumulator(maps=[1], statistics="exact")
    case.count(acc, *case.arrays, images=images)
    case.log(acc, run=tmp_path / "stream", figures=False)
    pictures = [(tmp_path / name / "uq_map_1.png").read_bytes() for name in ("whole", "stream")]
    assert pictures[0] == pictures[1]


@pytest.mark.pictures
@pytest.mark.slow
def test_rescoring_redraws_the_figures(case, tmp_path):
    case.log(*case.arrays, run=tmp_path / "run", maps=False)
    before = (tmp_path / "run" / "uq_reliability.png").read_bytes()
    uq.rescore(f"dir:{tmp_path}", n_bins=5)
    assert (tmp_path / "run" / "uq_reliability.png").read_bytes() != before
    assert logged_run(f"dir:{tmp_path / 'run'}").report().settings["n_bins"] == 5


def test_a_std_of_two_parts_is_told_where_parts_are_known():
    with pytest.raises(
        UnknownOptionError, match=r"from_ensemble\(y_true, means, stds\) or .*from_evidential"
    ):
        uq.log([1.0, 2.0], [1.1, 1.9], aleatoric=[0.1, 0.1], epistemic=[0.1, 0.2])


def test_wrong_options_are_named_with_the_closest_one(case):
    with pytest.raises(UnknownOptionError, match=r"log\w* has no option n_bin; did you mean n_bins\?"):
        case.log(*case.arrays, n_bin=5)
    with pytest.raises(UnknownOptionError, match=r"has no option meth; did you mean method\?"):
        case.log(*case.arrays, meth="bagging")
    with pytest.raises(UnknownOptionError, match=r"no option task; the task follows from what is passed"):
        case.log(*case.arrays, task="classification")
    with pytest.raises(UnknownOptionError, match=r"no option levle; did you mean level\?"):
        case.log(_counted(case), levle=0.9)
    with pytest.raises(TypeError):
        whole(case, n_bin=5)


def test_an_accumulator_refuses_what_it_cannot_do(case):
    acc = _counted(case)
    for options, message in (
        ({"maps": [7]}, r"comes too late; pass maps= when making the"),
        ({"images": np.zeros(SHAPE)}, "batch by batch"),
        ({"predictions": True}, "holds none"),
        ({"n_bins": 5}, "already has its settings"),
    ):
        with pytest.raises(SettingsError, match=message):
            case.log(acc, **options)


def test_reports_survive_their_files(case, tmp_path):
    report = whole(case)
    report.to_npz(tmp_path / "report.npz")
    back = uq.Report.from_npz(tmp_path / "report.npz")
    assert back == report
    assert json.loads(report.to_json())["task"] == case.task
