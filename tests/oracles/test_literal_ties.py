"""The literal handling of ties against the enumeration of every order that a tie allows."""

from __future__ import annotations

import itertools
import math

import pytest

from . import classification
from .literal import in_expected_order, kept, mean, order_statistic, trapezoid
from .regression import calibration, ranking

TIED = [
    ([1.0, -2.0, 0.5, 3.0], [1.0, 1.0, 1.0, 1.0]),
    ([1.0, -2.0, 0.5, 3.0, 0.0], [2.0, 1.0, 2.0, 1.0, 3.0]),
    ([0.0, 4.0, -1.0, 1.0, 2.0, -3.0], [1.0, 1.0, 2.0, 2.0, 2.0, 5.0]),
]


def every_order(key):
    """Indices in every order that is increasing in key; shuffled rows make each equally likely."""
    return [sorted(order, key=lambda i: key[i]) for order in itertools.permutations(range(len(key)))]


@pytest.mark.parametrize(("e", "s"), TIED)
def test_expected_cumulative_sums_are_linear_inside_a_tie(e, s):
    squares = [v * v for v in e]
    orders = every_order(s)
    ordered = in_expected_order(s, squares)
    for k in range(1, len(e) + 1):
        sums = [math.fsum(squares[i] for i in order[:k]) for order in orders]
        assert math.fsum(ordered[:k]) == pytest.approx(mean(sums), rel=1e-12)


@pytest.mark.parametrize(("e", "s"), TIED)
def test_ause_mae_is_the_mean_over_every_order_of_its_untied_formula(e, s):
    a = [abs(v) for v in e]
    oracle = sorted(a)

    def of(order):
        gaps = [mean([a[i] for i in order[:k]]) - mean(oracle[:k]) for k in range(1, len(a) + 1)]
        return mean(gaps) / mean(a)

    expected = mean([of(order) for order in every_order(s)])
    assert ranking.ause_mae(e, [0.0] * len(e), s) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("e", "s"), TIED)
def test_ause_rmse_is_the_root_of_the_expected_mean_square_not_the_expected_root(e, s):
    """The root is taken of the expected sums, so the mean over every order is at most as large (Jensen)."""
    squares = [v * v for v in e]
    full = math.sqrt(mean(squares))

    def of(order):
        model = [math.sqrt(mean([squares[i] for i in order[: kept(len(e), f)]])) / full for f in range(100)]
        best = [math.sqrt(mean(sorted(squares)[: kept(len(e), f)])) / full for f in range(100)]
        return trapezoid([m - o for m, o in zip(model, best, strict=True)], 0.01)

    over_orders = mean([of(order) for order in every_order(s)])
    assert over_orders < ranking.ause_rmse(e, [0.0] * len(e), s)


@pytest.mark.parametrize(("e", "s"), TIED)
def test_bins_of_tied_samples_hold_the_expected_sums(e, s):
    """Bin by bin, the mean squared error is its mean over every order; ENCE and UCE follow from it."""
    squares = [v * v for v in e]
    orders = every_order(s)
    for n_bins in (2, 3):
        rows = calibration.binned(e, [0.0] * len(e), s, n_bins)
        start = 0
        for _, squared, count, _, _ in rows:
            means = [mean([squares[i] for i in order[start : start + count]]) for order in orders]
            assert squared == pytest.approx(mean(means), rel=1e-12)
            start += count


def test_aurc_is_the_mean_over_every_order_of_its_untied_formula():
    labels = [0, 1, 1, 0, 1]
    probs = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.5, 0.5], [0.5, 0.5]]
    wrong = [1.0 - h for h in classification.hits(labels, probs)]
    key = [-c for c in classification.confidences(probs)]

    def of(order):
        return mean([mean([wrong[i] for i in order[:k]]) for k in range(1, 6)])

    expected = mean([of(order) for order in every_order(key)])
    assert classification.aurc(labels, probs) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("share", "n", "place"),
    [
        (0.95, 20, 19),
        (0.95, 40, 38),
        (0.55, 100, 55),
        (0.07, 100, 7),
        (0.95, 1, 1),
        (0.95, 21, 20),
        (1.0, 7, 7),
    ],
)
def test_order_statistic_reads_the_share_as_a_decimal(share, n, place):
    assert order_statistic([float(i) for i in range(n, 0, -1)], share) == place
