"""Chunks that are merged equal the whole, in whatever order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import uq_tracking as uq
from tests.small_statistics import sketch_statistics
from uq_tracking.errors import IncompatibleStatisticsError
from uq_tracking.statistics.regression import REGRESSION, joint_counts, rank_correlation
from uq_tracking.statistics.statistics import Statistics

from .made import LAWS, predictions

TOLERANCE = 1e-12


def counted(data, **options):
    accumulator = uq.Accumulator()
    if len(data[0]):
        accumulator.update(*data, **options)
    return accumulator


def assert_alike(one, other):
    """Equal counts; sums that differ by rounding only, measured on the scale of what was summed."""
    assert one.counts == other.counts
    for order in REGRESSION.orders:
        mine, theirs = one.orders[order], other.orders[order]
        np.testing.assert_array_equal(mine.key, theirs.key)
        np.testing.assert_array_equal(mine.width, theirs.width)
        np.testing.assert_array_equal(mine.count, theirs.count)
        for name, column in theirs.sums.items():
            # samples of one bucket share a sign, except errors whose z is zero
            assert_allclose(mine.sums[name], column, rtol=TOLERANCE, err_msg=f"{order} {name}")
    for name in REGRESSION.moments:
        mine, theirs = one.moments[name], other.moments[name]
        assert (mine.count, mine.low, mine.high) == (theirs.count, theirs.low, theirs.high)
        scale = max(abs(theirs.low), abs(theirs.high)) if theirs.count else 1.0
        assert_allclose(mine.mean, theirs.mean, rtol=0, atol=TOLERANCE * scale)
        assert_allclose(mine.m2, theirs.m2, rtol=TOLERANCE, atol=TOLERANCE * scale**2 * theirs.count)
    assert_allclose(
        one.sums["log_std"], other.sums["log_std"], rtol=TOLERANCE, atol=TOLERANCE * max(one.n, 1)
    )
    assert rank_correlation(one) == rank_correlation(other)
    np.testing.assert_array_equal(joint_counts(one).key, joint_counts(other).key)
    np.testing.assert_array_equal(joint_counts(one).count, joint_counts(other).count)


@st.composite
def cut_samples(draw, pieces=None):
    law, n = draw(st.sampled_from(LAWS)), draw(st.integers(1, 400))
    data = predictions(law, n, seed=draw(st.integers(0, 99)))
    count = draw(st.integers(1, 6)) if pieces is None else pieces
    edges = sorted(draw(st.lists(st.integers(0, n), min_size=count - 1, max_size=count - 1)))
    edges = [0, *edges, n]
    return data, [tuple(c[a:b] for c in data) for a, b in pairwise(edges)]


@settings(max_examples=60)
@given(cut_samples())
@pytest.mark.slow
def test_chunks_merged_equal_the_whole(sample):
    data, pieces = sample
    union = uq.Accumulator()
    for piece in pieces:
        union.merge(counted(piece))
    whole = counted(data)
    assert_alike(union.statistics, whole.statistics)
    assert union.compute().provenance["digest"] == whole.compute().provenance["digest"]


@pytest.mark.slow
@settings(max_examples=40)
@given(cut_samples(pieces=3))
def test_merging_is_associative(sample):
    _, (a, b, c) = sample
    left = counted(a).merge(counted(b)).merge(counted(c))
    right = counted(a).merge(counted(b).merge(counted(c)))
    assert_alike(left.statistics, right.statistics)


@pytest.mark.slow
@settings(max_examples=40)
@given(cut_samples(pieces=2))
def test_merging_is_commutative(sample):
    _, (a, b) = sample
    assert_alike(counted(a).merge(counted(b)).statistics, counted(b).merge(counted(a)).statistics)


@pytest.mark.slow
@settings(max_examples=20)
@given(cut_samples())
def test_nothing_counted_is_the_zero(sample):
    data, _ = sample
    alone = counted(data).statistics
    assert_alike(counted(data).merge(uq.Accumulator()).statistics, alone)
    assert_alike(uq.Accumulator().merge(counted(data)).statistics, alone)
    assert_alike(alone + Statistics.counted(REGRESSION, []), alone)


@pytest.mark.slow
@settings(max_examples=30)
@given(cut_samples())
def test_statistics_add_up_like_accumulators(sample):
    data, pieces = sample
    total = Statistics.counted(REGRESSION, [])
    for piece in pieces:
        if len(piece[0]):
            total = total + sketch_statistics(*piece)
    assert_alike(total, counted(data).statistics)


@pytest.mark.slow
@settings(max_examples=20)
@given(cut_samples(), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter(sample, random):
    data, _ = sample
    order = list(range(len(data[0])))
    random.shuffle(order)
    assert_alike(counted(tuple(c[order] for c in data)).statistics, counted(data).statistics)


@settings(max_examples=20)
@given(cut_samples(), st.integers(2, 4))
def test_repeating_every_sample_multiplies_the_counts(sample, times):
    data, _ = sample
    once, often = counted(data).statistics, counted(tuple(np.repeat(c, times) for c in data)).statistics
    for order in REGRESSION.orders:
        one, other = once.orders[order], often.orders[order]
        np.testing.assert_array_equal(other.count, times * one.count)
        np.testing.assert_array_equal(other.key, one.key)


@pytest.mark.parametrize("law", LAWS)
def test_reports_of_merged_chunks_agree(law):
    data = predictions(law, 4000)
    union = uq.Accumulator()
    for start in range(0, 4000, 900):
        union.merge(counted(tuple(c[start : start + 900] for c in data)))
    merged, whole = union.compute(), counted(data).compute()
    assert merged.counts == whole.counts
    assert set(merged.scores) == set(whole.scores)
    for key, value in whole.scores.items():
        assert_allclose(merged.scores[key], value, rtol=1e-7, atol=1e-9, err_msg=key)


@pytest.mark.parametrize("other", [3, None, {}, "acc"])
def test_only_accumulators_merge(other):
    with pytest.raises(IncompatibleStatisticsError, match="is not an accumulator; merge accumulators"):
        uq.Accumulator().merge(other)


def test_saving_into_a_missing_folder_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*missing; create it before saving acc\.npz"):
        uq.Accumulator().save(tmp_path / "missing" / "acc.npz")
