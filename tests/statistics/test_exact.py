"""Sums over sorted rows, wherever a position falls, against the literal expectation over orders of ties."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.small_statistics import exact_statistics, sketch_statistics
from tests.streams.made import predictions
from uq_tracking.metrics.calibration import pit_ks
from uq_tracking.metrics.ranking import NEAR, harmonic, harmonic_gap, sum_of_prefix_means
from uq_tracking.parallel import BLOCK
from uq_tracking.settings import Settings
from uq_tracking.statistics.exact import FEW, STEP, SortedRows

SIZES = [1, 2, STEP - 1, STEP, STEP + 1, 2 * STEP, 1000, 16_384, 16_385, 40_000]


def rows(n, decimals=1, dtype=float):
    rng = np.random.default_rng(n)
    std = np.sort(np.round(rng.gamma(2, 1, n), decimals) + 0.5).astype(dtype)
    return SortedRows("std", {"std": std, "error": rng.normal(size=n).astype(dtype)})


def shared_out(values, column):
    """The column with every run of ties replaced by its mean."""
    _, run = np.unique(values, return_inverse=True)
    return (np.bincount(run, column) / np.bincount(run))[run]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [1, 12])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ["std2", "abs_error", "sq_error"])
def test_cumulative_is_linear_inside_a_tie(name, n, decimals, dtype):
    groups = rows(n, decimals, dtype)
    running = np.append(0, np.cumsum(shared_out(groups.values, groups.payload(name, slice(0, n)))))
    positions = np.unique(np.append(np.linspace(0, n, 57), [0, n, n // 2, n / 3]))
    expected = np.interp(positions, np.arange(n + 1), running)
    np.testing.assert_allclose(groups.cumulative(name, positions), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(groups.between(name, positions), np.diff(expected), rtol=1e-9, atol=1e-9)
    assert groups.sum(name) == pytest.approx(math.fsum(groups.payload(name, slice(0, n))), rel=1e-14)


@pytest.mark.parametrize("decimals", [0, 1, 12])
@pytest.mark.parametrize("n", SIZES)
def test_blocks_hold_every_row_once(n, decimals):
    groups = rows(n, decimals)
    for ties in ("merged", "free"):
        blocks = [groups.block(("abs_error",), *span, ties) for span in groups.spans()]
        count = np.concatenate([block.count for block in blocks])
        ends = np.concatenate([block.ends for block in blocks])
        np.testing.assert_array_equal(ends, np.cumsum(count))
        value = np.concatenate([block.low for block in blocks])
        np.testing.assert_array_equal(np.repeat(value, count.astype(int)), groups.values)
        total = math.fsum(float(block.sums["abs_error"].sum()) for block in blocks)
        assert total == pytest.approx(groups.sum("abs_error"), rel=1e-13)
        if ties == "merged":
            assert len(np.unique(value)) == len(value)


@pytest.mark.parametrize("n", [1, 2, 10, NEAR - 1, NEAR, NEAR + 1, 3 * NEAR])
@pytest.mark.parametrize("decimals", [0, 2, 12])
def test_prefix_means_are_those_of_a_loop(n, decimals):
    groups = rows(n, decimals)
    column = shared_out(groups.values, groups.payload("abs_error", slice(0, n)))
    expected = math.fsum(np.cumsum(column) / np.arange(1, n + 1))
    assert sum_of_prefix_means(groups, "abs_error") == pytest.approx(expected, rel=1e-12)


def test_prefix_means_of_a_sketch_are_those_of_its_groups():
    y, mean, std = predictions("gamma", 30_000)
    groups = sketch_statistics(y, mean, std).orders["std"]
    column = np.repeat(groups.sums["abs_error"] / groups.count, groups.count)
    expected = math.fsum(np.cumsum(column) / np.arange(1, len(column) + 1))
    assert sum_of_prefix_means(groups, "abs_error") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [1, 5, NEAR - 2, NEAR, NEAR + 7])
def test_harmonic_numbers(n):
    exact = float(sum(Fraction(1, k) for k in range(1, n + 1)))
    assert harmonic([n])[0] + np.euler_gamma == pytest.approx(exact, rel=1e-15)
    gap = float(sum(Fraction(1, k) for k in range(n + 1, n + 4)))
    assert harmonic_gap(np.asarray([float(n)]), np.asarray([n + 3.0]))[0] == pytest.approx(gap, rel=1e-11)


def test_harmonic_gaps_do_not_cancel_far_out():
    start = 1e12
    assert harmonic_gap(np.asarray([start]), np.asarray([start + 1]))[0] == pytest.approx(
        1 / (start + 1), rel=1e-12
    )


@pytest.mark.parametrize("law", ["gamma", "overconfident", "heavy", "ties", "constant"])
@pytest.mark.parametrize("n", [1, 2, 1000, 50_000, BLOCK, BLOCK + 1])
def test_the_largest_pit_gap_is_that_of_scipy(law, n):
    y, mean, std = predictions(law, n)
    found = pit_ks(exact_statistics(y, mean, std), Settings())
    assert found == pytest.approx(stats.kstest((y - mean) / std, "norm").statistic, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [9, 1000, FEW, FEW + 1])
def test_absolute_values_are_ranked_however_many_are_asked_for(n, dtype):
    values = np.sort(np.round(np.random.default_rng(n).standard_t(2, n), 2)).astype(dtype)
    groups, ranks = SortedRows("z", {"z": values}), np.unique(np.linspace(1, n, 11).astype(int))
    expected = np.sort(np.abs(values))[ranks - 1].astype(float)
    assert groups.absolute_value(ranks).tolist() == expected.tolist()
    assert [groups.absolute_value([rank])[0] for rank in ranks] == expected.tolist()
