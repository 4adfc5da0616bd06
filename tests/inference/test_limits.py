"""Confidence limits against closed forms and by simulation."""

import numpy as np
import pytest
from scipy import stats

from uq_tracking.inference.limits import DOMINATED, Influence, poisson_limits, share_limits
from uq_tracking.metrics.groups import size_freedom


def test_symmetric_contributions_get_students_limits():
    values = np.asarray([-2.0, -1.0, 0.0, 1.0, 2.0] * 20)
    low, high = Influence.of(values / len(values)).limits(3.0, 0.9)
    kurtosis = stats.kurtosis(values, fisher=False)
    freedom = min(len(values) - 1, 2 * len(values) / (kurtosis - 1))
    half = stats.t.ppf(0.95, freedom) * values.std(ddof=1) / np.sqrt(len(values))
    assert (low, high) == pytest.approx((3 - half, 3 + half), rel=1e-12)


def test_cautious_limits_hold_those_without_a_correction_for_skewness():
    one = Influence.of(np.random.default_rng(3).gamma(1.0, size=40) / 40)
    half = stats.t.ppf(0.975, one.freedom) * one.standard_error
    low, high = one.limits(0.0, 0.95)
    assert -half < low  # skewed to the right
    assert high > half
    assert one.limits(0.0, 0.95, cautious=True) == pytest.approx((-half, high), rel=1e-12)


def test_heavy_contributions_get_fewer_degrees_of_freedom():
    values = np.asarray([-3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0])
    low, high = Influence.of(values / 10).limits(0.0, 0.95)
    freedom = 2 * 10 / (stats.kurtosis(values, fisher=False, bias=False) - 1)
    assert high == pytest.approx(stats.t.ppf(0.975, freedom) * stats.sem(values), rel=1e-9)
    assert low == pytest.approx(-high, rel=1e-12)


def test_unequal_units_get_fewer_degrees_of_freedom():
    values, sizes = np.asarray([-1.0, 1.0] * 10), np.asarray([1.0] * 18 + [5.0] * 2)
    free = size_freedom(sizes**2)
    assert free == pytest.approx((18 + 2 * 25) ** 2 / (18 + 2 * 625) - 1, rel=1e-12)
    high = Influence.of(values, None, free).limits(0.0, 0.95)[1]
    assert high == pytest.approx(stats.t.ppf(0.975, free) * stats.sem(values) * 20, rel=1e-12)


def test_leaving_units_out_is_the_jackknife_of_a_mean():
    values = np.random.default_rng(0).gamma(2.0, size=30)
    left = (values.sum() - values) / 29
    one, other = Influence.left_out(left), Influence.of(values / 30)
    assert one.standard_error == pytest.approx(stats.sem(values), rel=1e-12)
    assert one.limits(1.0, 0.95) == pytest.approx(other.limits(1.0, 0.95), rel=1e-9)


def test_counts_repeat_contributions():
    values, counts = np.asarray([0.1, -0.3, 2.0]), np.asarray([3.0, 2.0, 1.0])
    one, other = Influence.of(values, counts), Influence.of(np.repeat(values, [3, 2, 1]))
    assert one.limits(0.0, 0.9) == pytest.approx(other.limits(0.0, 0.9), rel=1e-12)


def test_a_single_unit_that_carries_everything_dominates():
    values = np.zeros(200)
    values[7] = 1.0
    influence = Influence.of(values)
    assert influence.dominance == pytest.approx(1, abs=0.02)
    assert influence.freedom < 2.1
    assert Influence.of(np.random.default_rng(1).normal(size=200)).dominance < DOMINATED / 2


def test_limits_of_a_skewed_mean_cover():
    rng, inside = np.random.default_rng(2), 0
    for _ in range(1000):
        values = rng.chisquare(1, size=60)
        low, high = Influence.of(values / 60).limits(values.mean(), 0.95)
        inside += low <= 1 <= high
    assert 0.93 <= inside / 1000 <= 0.985


def test_limits_of_few_squares_cover_and_stay_short():
    """Of 30 squared normal errors, as of a stratum; the transform alone has upper limits of 24 times the mean."""
    rng, missed, ends = np.random.default_rng(0), np.zeros(2), []
    for _ in range(2000):
        squares = rng.normal(size=30) ** 2
        mean = squares.mean()
        low, high = Influence.of((squares - mean) / 30).log_limits(mean, 0.99)
        missed += low > 1, high < 1
        ends.append(high / mean)
    assert np.all(missed <= stats.binom.ppf(0.999, 2000, 0.005))
    assert np.median(ends) < 4


def test_one_unit_has_no_limits():
    assert np.isnan(Influence.of(np.asarray([1.0])).limits(0.0, 0.95)).all()


@pytest.mark.parametrize("events", [0, 1, 7, 40])
def test_poisson_limits(events):
    low, high = poisson_limits(events, 0.95)
    assert stats.poisson.cdf(events, high) == pytest.approx(0.025, abs=1e-10)
    assert low == 0 if events == 0 else stats.poisson.sf(events - 1, low) == pytest.approx(0.025, abs=1e-10)


@pytest.mark.parametrize(("inside", "total"), [(0, 10), (3, 10), (10, 10), (95, 100)])
def test_share_limits(inside, total):
    own = stats.binomtest(inside, total).proportion_ci(0.95, method="exact")
    assert share_limits(inside, total, 0.95) == pytest.approx((own.low, own.high), abs=1e-10)
