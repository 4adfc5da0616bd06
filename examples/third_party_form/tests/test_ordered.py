"""Ordered classes as a user sees them: scored, counted, logged, read back, rescored and compared."""

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.testing import assert_allclose
from scipy.special import expit

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import (
    EmptyInputError,
    IncompatibleStatisticsError,
    InvalidValueError,
    SettingsError,
    ShapeError,
)
from uq_tracking.runs.read import logged_runs
from uq_tracking_ordered import OrderedProbabilities

NAMES = ("healthy", "mild", "moderate", "severe", "critical")


def graded(n=2000, sharp=1.0, shift=0.0, seed=0):
    """Return classes, and the probabilities of a model that is too sure by ``sharp`` and off by ``shift``."""
    rng = np.random.default_rng(seed)
    severity, cuts = 2 * rng.normal(size=n), np.linspace(-2, 2, 4)

    def probs(at, slope):
        below = np.pad(expit((cuts - at[:, None]) * slope), ((0, 0), (1, 1)), constant_values=(0, 1))
        return np.diff(below, axis=1)

    labels = (rng.random(n)[:, None] > np.cumsum(probs(severity, 1.5), axis=1)[:, :-1]).sum(axis=1)
    return labels, probs(severity + shift, 1.5 * sharp)


def evaluated(**options):
    labels, probs = graded(**options)
    return uq.evaluate(labels, ordered_probs=probs)


@pytest.mark.parametrize("method", ["exact", "sketch"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_the_definitions(method, weighted):
    labels, probs = graded()
    weights = np.random.default_rng(1).uniform(0.5, 2, len(labels)) if weighted else np.ones(len(labels))
    report = uq.evaluate(
        labels, ordered_probs=probs, statistics=method, weights=weights if weighted else None
    )
    rps, distance = [], []
    for label, own in zip(labels, probs, strict=True):
        below = [own[: k + 1].sum() for k in range(4)]
        rps.append(sum((each - (label <= k)) ** 2 for k, each in enumerate(below)) / 4)
        distance.append(abs(next((k for k, each in enumerate(below) if each >= 0.5), 4) - label))
    assert_allclose(report.scores["rps"], np.average(rps, weights=weights), rtol=1e-12)
    assert_allclose(report.scores["class_error"], np.average(distance, weights=weights), rtol=1e-12)
    if not weighted:
        gaps = []
        for k in range(4):
            below = probs[:, : k + 1].sum(axis=1)
            for part in np.array_split(np.argsort(below, kind="stable"), 10):
                gaps.append(abs(np.mean(labels[part] <= k) - below[part].mean()))
        tolerance = 1e-9 if method == "exact" else 2e-3
        assert_allclose(report.scores["cumulative_ece"], np.mean(gaps), atol=tolerance)


def test_the_curve_joins_the_bins_of_all_thresholds_and_lies_on_the_diagonal_if_calibrated():
    columns = evaluated(n=50_000).curves["reliability"].columns
    assert len(columns["stated"]) == 10
    assert np.all(np.diff(columns["stated"]) > 0)
    assert_allclose(columns["observed"], columns["stated"], atol=0.02)


@pytest.mark.parametrize(
    ("model", "word", "said"),
    [
        ({}, "consistent with calibrated", "Consistent with calibrated: ranked probability scores are"),
        ({"sharp": 1.6}, "overconfident", "Overconfident: ranked probability scores are 1."),
        ({"sharp": 0.6}, "underconfident", "Underconfident: ranked probability scores are 0."),
        ({"shift": 0.3}, "biased", "Classes up to 2 are more frequent than stated"),
    ],
)
def test_the_verdict_says_what_is_wrong(model, word, said):
    verdict = evaluated(**model).verdict
    assert verdict.calibration == word
    assert said in verdict.text
    assert "The uncertainty ranks errors" in verdict.text


@pytest.mark.slow
def test_a_calibrated_model_is_seldom_called_anything_else():
    wrong = {"none": 0, "groups": 0}
    for seed in range(60):
        labels, probs = graded(n=400, seed=seed)
        for name, options in (("none", {}), ("groups", {"groups": np.arange(400) // 10})):
            report = uq.evaluate(labels, ordered_probs=probs, metrics="rps", **options)
            wrong[name] += report.verdict.calibration != "consistent with calibrated"
    assert max(wrong.values()) <= 8  # 5 % of 60 are 3, and 99 % of such numbers are at most 8


def test_groups_that_err_together_are_no_evidence():
    labels, probs = graded(n=40)
    labels, probs = (np.repeat(each, 50, axis=0) for each in (labels, probs))
    alone = uq.evaluate(labels, ordered_probs=probs).verdict
    together = uq.evaluate(labels, ordered_probs=probs, groups=np.repeat(np.arange(40), 50)).verdict
    assert together.scale.high - together.scale.low > 4 * (alone.scale.high - alone.scale.low)


def test_batches_merge_to_the_whole_and_are_kept_in_a_file(tmp_path):
    labels, probs = graded()
    whole = uq.evaluate(labels, ordered_probs=probs, statistics="sketch")
    one, other = uq.Accumulator(), uq.Accumulator()
    for count, part in ((one, slice(900)), (other, slice(900, None))):
        count.update(labels[part], ordered_probs=probs[part])
    one.merge(other)
    one.save(tmp_path / "half.npz")
    for counted in (one, uq.Accumulator.load(tmp_path / "half.npz")):
        report = counted.compute()
        assert_allclose(list(report.scores.values()), list(whole.scores.values()), rtol=1e-12)
        assert report.verdict.text == whole.verdict.text
    with pytest.raises(IncompatibleStatisticsError, match="the number of classes differs"):
        one.update(labels, ordered_probs=np.eye(6)[labels])
    with pytest.raises(IncompatibleStatisticsError, match="earlier batches held probabilities of ordered"):
        one.update(labels, probs=probs)


def test_predictions_are_saved_and_read_back(tmp_path):
    labels, probs = graded()
    truth = np.where(np.arange(2000) < 10, np.nan, labels)
    data = uq.Predictions.of(OrderedProbabilities, truth, {"ordered_probs": probs}, classes=NAMES)
    back = uq.Predictions.load(data.save(tmp_path / "grades.npz"))
    assert back.digest() == data.digest()
    assert back.counts == {"n": 1990, "n_missing": 10, "n_masked": 0, "n_invalid": 0}
    assert uq.evaluate(back) == uq.evaluate(data)
    assert uq.evaluate(back).settings["classes"] == list(NAMES)


class TestLogged:
    @pytest.fixture
    def runs(self, tmp_path):
        for name, model in (("honest", {}), ("too-sure", {"sharp": 1.6})):
            labels, probs = graded(n=2 * 20 * 30, **model)
            uq.log(
                labels.reshape(2, 20, 30),
                ordered_probs=probs.reshape(2, 20, 30, 5),
                classes=NAMES,
                method=name,
                run=f"dir:{tmp_path}",
            )
        return tmp_path

    @pytest.mark.pictures
    @pytest.mark.slow
    def test_scores_curve_figure_and_maps_are_in_the_run(self, runs):
        run = next(path for path in runs.iterdir() if path.is_dir())
        found = {path.name for path in run.rglob("*")}
        assert {"uq_reliability.png", "predictions.npz", "statistics.npz", "report.json"} <= found
        pictures = list(run.rglob("uq_map*.png"))
        assert len(pictures) == 2
        assert len(np.unique(imread(pictures[0]).reshape(-1, 4), axis=0)) > 50

    def test_runs_are_compared_with_maps(self, runs):
        comparison = uq.compare(f"dir:{runs}", maps=1)
        assert comparison.table["honest"]["rps"].rank == 1
        assert "reliability" in comparison.curves
        (case,) = comparison.maps
        assert [panel.method for panel in case.panels] == ["honest", "too-sure"]
        page = comparison.to_html()
        assert "Distances to the mean class" in page
        assert "overconfident" in page

    def test_runs_are_rescored_from_their_statistics(self, runs):
        before = {run.name: run.report() for run in logged_runs(f"dir:{runs}")}
        outcome = uq.rescore(f"dir:{runs}", n_bins=20)
        assert not outcome.failed
        for run in logged_runs(f"dir:{runs}"):
            report, old = run.report(), before[run.name]
            assert len(report.curves["reliability"].columns["stated"]) == 20
            assert report.scores["rps"] == old.scores["rps"]
            assert report.verdict.text == old.verdict.text

    def test_the_same_cases_are_drawn_again(self, runs):
        labels, probs = graded(n=2 * 20 * 30)
        uq.log(
            labels.reshape(2, 20, 30),
            ordered_probs=probs.reshape(2, 20, 30, 5),
            maps="extremes",
            method="again",
            run=f"dir:{runs}",
        )


def test_the_report_is_drawn():
    report = evaluated(sharp=1.6)
    for name in (None, "reliability"):
        figure = report.plot() if name is None else report.plot(name)
        texts = [text.get_text() for text in figure.texts]
        assert any("the errors it implies" in text for text in texts)


@pytest.mark.parametrize(
    ("labels", "probs", "options", "error", "match"),
    [
        ([0, 1], [[0.5, 0.5]], {}, ShapeError, r"y_true has shape \(2,\) and ordered_probs \(1, 2\)"),
        (
            [0, 2],
            [[0.5, 0.5]] * 2,
            {},
            InvalidValueError,
            r"y_true has 1 unknown value \(first at index \(1,\)\); pass classes 0 ... 1",
        ),
        (
            [0, 1],
            [[0.5, 0.5], [0.9, 0.3]],
            {},
            InvalidValueError,
            r"ordered_probs has 1 impossible value \(first at index \(1,\)\)",
        ),
        ([np.nan], [[0.5, 0.5]], {}, EmptyInputError, "none of 1 samples is left"),
        ([0], [[0.5, 0.5]], {"classes": ["a"]}, SettingsError, "1 names for 2 classes"),
        ([0], [[0.5, 0.5]], {"alpha": 0.9}, SettingsError, "alpha= is an option of a forecast of numbers"),
        (
            [0],
            [[0.5, 0.5]],
            {"calibration": "temperature"},
            SettingsError,
            "temperature recalibrates a classification",
        ),
        ([0], [[0.5, 0.5]], {"probs": [[0.5, 0.5]]}, SettingsError, "are two forecasts; pass one"),
    ],
)
def test_what_cannot_be_scored_is_refused(labels, probs, options, error, match):
    with pytest.raises(error, match=match):
        uq.evaluate(labels, ordered_probs=probs, **options)


def test_samples_with_invalid_probabilities_are_dropped_on_request():
    report = uq.evaluate([0, 1], ordered_probs=[[0.5, 0.5], [0.9, 0.3]], on_invalid="drop")
    assert (report.counts["n"], report.counts["n_invalid"]) == (1, 1)


def test_several_outputs_are_scored_apart():
    (labels, probs), (others, of_others) = graded(), graded(seed=1)
    found = uq.evaluate(
        np.stack([labels, others], axis=-1),
        ordered_probs=np.stack([probs, of_others], axis=-2),
        outputs=["left", "right"],
    )
    assert found["left"].scores == uq.evaluate(labels, ordered_probs=probs).scores
    assert found["right"].scores == uq.evaluate(others, ordered_probs=of_others).scores


def test_plugins_bring_it():
    assert plugins.forms()["ordered_probs"] is OrderedProbabilities
    assert list(plugins.metrics("ordered")) == ["class_error", "rps", "cumulative_ece"]
    assert list(plugins.curves("ordered")) == ["reliability"]
