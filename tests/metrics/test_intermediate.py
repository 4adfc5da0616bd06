"""Shared work is done once per statistics and arguments, and forgotten with the statistics."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import uq_tracking as uq
from uq_tracking.metrics.gaps import equal_count_bins
from uq_tracking.metrics.registry import Undefined, intermediate


class Numbers:
    pass


def counting():
    calls = []

    @intermediate
    def work(numbers, power=1):
        """Docstring of the work."""
        calls.append(power)
        if power < 0:
            raise Undefined("negative")
        return [power]

    return work, calls


def test_it_is_done_once_per_statistics_and_arguments():
    work, calls = counting()
    one, other = Numbers(), Numbers()
    assert work(one, 2) is work(one, 2)
    assert work(one, 2) is not work(other, 2)
    assert work(one, power=3) == work(one, power=3) == [3]
    assert calls == [2, 2, 3]
    assert work.__doc__ == "Docstring of the work."


def test_a_reason_is_not_remembered():
    work, calls = counting()
    numbers = Numbers()
    for _ in range(2):
        with pytest.raises(Undefined, match="negative"):
            work(numbers, -1)
    assert calls == [-1, -1]


def test_it_is_forgotten_with_the_statistics():
    work, _ = counting()
    numbers = Numbers()
    work(numbers)
    alive = ref(numbers)
    del numbers
    gc.collect()
    assert alive() is None


def test_threads_find_the_same():
    work, _ = counting()
    many = [Numbers() for _ in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda place: work(many[place % 200], place % 7), range(4000)))
    assert found == [[place % 7] for place in range(4000)]


def test_bins_are_those_of_their_own_number_and_statistics():
    rng = np.random.default_rng(0)
    y, mean, std = rng.normal(size=(3, 200))
    one = uq.evaluate(y, mean, np.abs(std)).statistics
    other = uq.evaluate(y, mean, 2 * np.abs(std)).statistics
    for n_bins in (5, 10):
        assert len(equal_count_bins(one, n_bins).count) == n_bins
    assert_array_equal(equal_count_bins(other, 5).std_low, 2 * equal_count_bins(one, 5).std_low)
    assert equal_count_bins(one, 5) is equal_count_bins(one, 5)
