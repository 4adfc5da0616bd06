"""Values at the end of a type's range: the right number, or the reason why there is none; never a made-up one."""

import tracemalloc

import numpy as np
import pytest

import uq_tracking as uq
from tests.small_statistics import exact_statistics
from tests.streams.made import predictions
from uq_tracking import parallel
from uq_tracking.statistics import exact


@pytest.mark.parametrize("method", ["exact", "sketch"])
def test_minus_zero_is_zero(method):
    y, mean, std = predictions("gamma", 400)
    std[::7] = 0.0
    signed = np.where(std == 0, -0.0, std)
    one, other = (uq.evaluate(y, mean, s, statistics=method) for s in (std, signed))
    assert one.scores == other.scores
    assert one.provenance["digest"] == other.provenance["digest"]


def test_float32_is_left_where_z_would_leave_its_range(monkeypatch):
    data = [column.astype(np.float32) for column in predictions("gamma", 2000)]
    data[2][:3] = np.float32(5e-42)
    expected = uq.evaluate(*data, statistics="exact")
    monkeypatch.setattr(exact, "LARGE", 100)
    assert uq.evaluate(*data, statistics="exact").scores == expected.scores


def test_float32_differences_may_overflow(monkeypatch):
    monkeypatch.setattr(exact, "LARGE", 2)
    y, mean, std = (
        np.asarray(v, dtype=np.float32) for v in ([3e38, 1.0, 2.0], [-3e38, 0.0, 0.0], [1.0, 1.0, 1.0])
    )
    assert uq.evaluate(y, mean, std, statistics="exact").scores["mae"] == pytest.approx(2e38, rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "sketch"])
def test_squares_that_underflow_are_a_reason(method):
    report = uq.evaluate(
        [1e-170, 2e-170, 4e-170], [0.0, 0.0, 0.0], [1e-170, 2e-170, 3e-170], statistics=method
    )
    assert report.scores["mae"] == pytest.approx(7e-170 / 3)
    for key in ("rmse", "sharpness", "cv", "r2", "ause_rmse", "aurg_rmse"):
        assert "choose a smaller unit" in report.undefined[key], key


def long_runs(n):
    rng = np.random.default_rng(0)
    std = np.where(np.arange(n) % 2, 1.0, rng.gamma(2, 1, n) + 0.01)
    return std * np.where(np.arange(n) % 3, rng.normal(size=n), 0.5), np.zeros(n), std


def test_a_long_run_of_ties_is_a_block_of_its_own(monkeypatch):
    data = long_runs(40_000)
    whole = uq.evaluate(*data, statistics="exact").scores
    monkeypatch.setattr(parallel, "BLOCK", 512)
    rows = exact_statistics(*data).orders["std"]
    sizes = {end - start for start, end in rows.spans()}
    assert 20_000 in sizes
    assert max(sizes - {20_000}) <= 2 * 512
    scores = uq.evaluate(*data, statistics="exact").scores
    for key, value in scores.items():
        assert value == pytest.approx(whole[key], rel=1e-12, abs=1e-14), key


def test_ties_take_no_more_memory(monkeypatch):
    monkeypatch.setattr(
        "uq_tracking.parallel.MOST_WORKERS", 1
    )  # what two threads hold at once is up to chance

    def peak(y, mean, std):
        tracemalloc.start()
        uq.evaluate(y, mean, std, statistics="exact")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    y, mean, std = predictions("gamma", 200_000)
    free = peak(y, mean, std)
    assert peak(*long_runs(200_000)) < 1.2 * free
    assert peak(std * 1.5, np.zeros_like(std), std) < 1.2 * free
