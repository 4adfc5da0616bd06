import numpy as np
import pytest

from uq_tracking import figures

from . import made, seen


@pytest.fixture(scope="module")
def pair():
    return made.scored("overconfident", n=2000, unit="m"), made.scored("calibrated", n=2000, unit="m")


def test_both_reports_are_drawn_in_both_panels(pair):
    left, right = figures.before_after(*pair).axes
    for report, label in zip(pair, ("before", "after"), strict=True):
        bins, shares = report.curves["reliability"].columns, report.curves["calibration"].columns
        np.testing.assert_array_equal(seen.curve(left, label), [bins["rmv"], bins["rmse"]])
        np.testing.assert_array_equal(seen.curve(right, label), [shares["expected"], shares["observed"]])


def test_axes_hold_both_reports(pair):
    left, _ = figures.before_after(*pair).axes
    assert left.get_ylim()[1] > max(report.curves["reliability"].columns["rmse"].max() for report in pair)


def test_scores_stand_before_and_after(pair):
    text = seen.texts(figures.before_after(*pair))
    assert "ENCE" in text
    assert text.count("→") == 2


def test_missing_curve_gives_the_reason(pair):
    text = seen.texts(figures.before_after(pair[0], made.report({}, undefined={"ence": "too few samples"})))
    assert "too few samples" in text


def test_legible_as_a_thumbnail(pair):
    figure = figures.before_after(*pair)
    assert seen.thumbnail(figure).std() > 5
    assert min(seen.text_heights(figure)) > 4.5
