import numpy as np
import pytest

import uq_tracking as uq
from tests.inference.made import classes
from uq_tracking.figures.calibration import before_after, class_before_after

from . import made, seen


@pytest.fixture(scope="module")
def pair():
    return made.scored("overconfident", n=2000, unit="m"), made.scored("calibrated", n=2000, unit="m")


def test_both_reports_are_drawn_in_both_panels(pair):
    left, right = before_after(*pair).axes
    for report, label in zip(pair, ("before", "after"), strict=True):
        bins, shares = report.curves["reliability"].columns, report.curves["calibration"].columns
        np.testing.assert_array_equal(seen.curve(left, label), [bins["rmv"], bins["rmse"]])
        np.testing.assert_array_equal(seen.curve(right, label), [shares["expected"], shares["observed"]])


def test_axes_hold_both_reports(pair):
    left, _ = before_after(*pair).axes
    assert left.get_ylim()[1] > max(report.curves["reliability"].columns["rmse"].max() for report in pair)


def test_scores_stand_before_and_after(pair):
    text = seen.texts(before_after(*pair))
    assert "ENCE" in text
    assert text.count("→") == 2


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


def test_missing_curve_gives_the_reason(pair):
    text = seen.texts(before_after(pair[0], made.report({}, undefined={"ence": "too few samples"})))
    assert "too few samples" in text


def test_legible_as_a_thumbnail(pair):
    figure = before_after(*pair)
    assert seen.thumbnail(figure).std() > 5
    assert min(seen.text_heights(figure)) > 4.5
