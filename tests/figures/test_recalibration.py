from dataclasses import replace

import numpy as np
import pytest

import uq_tracking as uq
from tests.inference.made import classes
from uq_tracking.figures.calibration import before_after, class_before_after

from . import seen


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    std = rng.uniform(1, 2, (2, 2000))
    (truth, std), fit = ((rng.normal(0, 2 * part), part) for part in std)
    return uq.evaluate(truth, np.zeros(2000), std, unit="m", calibration=(fit[0], np.zeros(2000), fit[1]))


def test_both_reports_are_drawn_in_both_panels(report):
    left, right = before_after(report).axes
    for each, label in ((report, "before"), (report.after(), "after")):
        bins, shares = each.curves["reliability"].columns, each.curves["calibration"].columns
        np.testing.assert_array_equal(seen.curve(left, label), [bins["rmv"], bins["rmse"]])
        np.testing.assert_array_equal(seen.curve(right, label), [shares["expected"], shares["observed"]])


def test_axes_hold_both_reports(report):
    left, _ = before_after(report).axes
    highest = max(each.curves["reliability"].columns["rmse"].max() for each in (report, report.after()))
    assert left.get_ylim()[1] > highest


def test_scores_stand_before_and_after(report):
    text = seen.texts(before_after(report))
    assert "ENCE" in text
    assert text.count("→") == 2


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_after_a_cross_fit_the_half_is_named(task):
    rng = np.random.default_rng(0)
    if task == "regression":
        std = rng.uniform(1, 2, 600)
        report = uq.evaluate(rng.normal(0, 2 * std), np.zeros(600), std, calibration=True)
        text = seen.texts(before_after(report))
        before = report.recalibration["methods"]["std_scaling"]["before"]
        assert f"ENCE {before['ence']:.3f} →" in text
        assert "after, and the scores: the 300 that nothing was fitted to" in text
    else:
        labels, probs = classes(rng, 600)
        report = uq.evaluate(labels, probs=probs, calibration=True)
        text = seen.texts(class_before_after(report))
        assert "600 samples; after: the 300 that nothing was fitted to" in text


def test_missing_curve_gives_the_reason(report):
    without = replace(report, curves={}, undefined={"ence": "too few samples"})
    assert "too few samples" in seen.texts(before_after(without))


@pytest.mark.slow
def test_legible_as_a_thumbnail(report):
    figure = before_after(report)
    assert seen.thumbnail(figure).std() > 5
    assert min(seen.text_heights(figure)) > 4.5
