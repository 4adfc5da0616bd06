"""The sorts behind exact statistics, against numpy's and scipy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from scipy import stats

import uq_tracking as uq
from tests.streams.made import LAWS, predictions
from uq_tracking.statistics import exact
from uq_tracking.statistics.exact import (
    centered_ranks,
    sort_by_abs_error,
    sort_by_z,
    sort_columns,
    stable_order,
)

TYPES = [np.float32, np.float64]


def columns(dtype, n=5000, law="gamma"):
    y, mean, std = predictions(law, n)
    return std.astype(dtype), (y - mean).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "values",
    [
        [3.0],
        [2.0, 2.0, 2.0],
        [0.0, -0.0, 0.0, -1.0, 1.0, -0.0],
        [np.inf, -np.inf, 1e30, -1e30, 5.0, np.inf],
        [1e-40, -1e-40, 1e-45, 0.0, 1e-38],
        [1.0, 1.0 + 2**-20, 1.0 - 2**-20, 2.0, 65536.0, 65537.0],
    ],
)
def test_stable_order_is_a_stable_argsort(dtype, values):
    check_order(np.asarray(values, dtype=dtype))


def check_order(values):
    order, ordered = stable_order(values)
    expected = np.argsort(values, kind="stable")
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(ordered, values[expected])
    assert ordered.dtype == values.dtype


@pytest.mark.slow
@settings(max_examples=150, derandomize=True)
@given(
    st.sampled_from([32, 64]).flatmap(
        lambda width: some.arrays(
            f"f{width // 8}", st.integers(1, 60), elements=st.floats(allow_nan=False, width=width)
        )
    )
)
def test_stable_order_of_anything(values):
    check_order(values)


@pytest.mark.parametrize("n", [16_383, 16_384, 16_385, 70_000])
def test_stable_order_across_blocks(n):
    check_order(np.random.default_rng(n).normal(size=n))


@pytest.mark.parametrize("n", [300, 40_000])
@pytest.mark.parametrize("sign", [1, -1])
def test_values_that_differ_only_where_the_index_is(n, sign):
    steps = np.random.default_rng(n).integers(0, n // 3, n)
    check_order(sign * (1 + steps * 2.0**-52))


@pytest.mark.parametrize("digits", [0, 1, 2, 12])
def test_centered_ranks_are_scipys(digits):
    values = np.sort(np.round(np.random.default_rng(0).normal(size=40_000), digits))
    ranks, spread = centered_ranks(values)
    np.testing.assert_array_equal(ranks, 2 * stats.rankdata(values) - (len(values) + 1))
    assert spread == 3 * sum(rank**2 for rank in ranks.tolist())


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("law", ["gamma", "ties", "constant", "cauchy"])
def test_every_way_sorts_the_same_samples(packed, law, monkeypatch):
    std, error = columns(np.float32, law=law)
    monkeypatch.setattr(exact, "_packable", lambda *columns: packed)
    by_std = sort_columns("std", {"std": std, "error": error})
    (by_abs_error, correlation), by_z = sort_by_abs_error(**by_std), sort_by_z(**by_std)
    z = (error.astype(float) / std).astype(np.float32)
    np.testing.assert_array_equal(by_std["std"], np.sort(std))
    np.testing.assert_array_equal(by_abs_error["abs_error"], np.sort(np.abs(error)))
    np.testing.assert_array_equal(by_z["z"], np.sort(z))
    assert _rows(by_std["std"], by_std["error"]) == _rows(std, error)
    assert _rows(by_z["z"], by_z["std"]) == _rows(z, std)
    if law == "constant":
        assert correlation is None
    else:
        assert correlation == pytest.approx(stats.spearmanr(std, np.abs(error)).statistic, rel=1e-12)


def _rows(*arrays):
    return sorted(zip(*(array.tolist() for array in arrays), strict=True))


def test_zero_stds_are_not_packed():
    std, error = columns(np.float32)
    std[:10], error[:5] = 0, 0
    by_z = sort_by_z(std, error)
    assert np.count_nonzero(np.isinf(by_z["z"])) == 5
    assert "error" in by_z


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("law", [law for law in LAWS if law not in ("tiny", "huge")])
def test_large_float32_input_gives_the_scores_of_float64(law, packed, monkeypatch):
    data = [column.astype(np.float32) for column in predictions(law, 4000)]
    expected = uq.evaluate(*(column.astype(float) for column in data), statistics="exact").scores
    monkeypatch.setattr(exact, "LARGE", 100)
    if not packed:
        monkeypatch.setattr(exact, "_packable", lambda *columns: False)
    scores = uq.evaluate(*data, statistics="exact").scores
    assert set(scores) == set(expected)
    for key, value in scores.items():
        # One sample more or less below a threshold is 1 / n; everything else carries a float32's rounding.
        counted = key.startswith(("coverage", "auce", "mace", "rmsce", "miscal", "pit", "calibration"))
        tied = (
            key == "spearman" and law == "ties"
        )  # equal errors of rounded values differ in their last digit
        spread = 2 / 4000 if counted or tied else 2e-6
        assert value == pytest.approx(expected[key], rel=2e-6, abs=spread), key
