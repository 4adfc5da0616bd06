"""Series: blocks of consecutive samples for groups, and the test of Diebold and Mariano."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.signal import lfilter

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.inference.paired import diebold_mariano
from uq_tracking.inputs.labels import Series
from uq_tracking.metrics.registry import Undefined


def series(rng, n, phi):
    """Errors of variance 1, each resembling the one before."""
    return lfilter([np.sqrt(1 - phi**2)], [1, -phi], rng.normal(size=n + 100))[100:]


def test_blocks_follow_the_order_and_not_the_rows():
    time = np.random.default_rng(0).permutation(1000)
    blocks = Series(time).blocks
    assert np.bincount(blocks).tolist() == [50] * 20
    assert np.all(np.diff(blocks[np.argsort(time)]) >= 0)
    dates = np.datetime64("2024-01-01") + time
    np.testing.assert_array_equal(Series(dates).blocks, blocks)
    np.testing.assert_array_equal(Series(time.reshape(10, 100)).blocks, blocks.reshape(10, 100))


@pytest.mark.parametrize(
    "kind", [pd.DatetimeIndex, pd.Series, np.asarray, lambda times: list(times.to_pydatetime())]
)
def test_times_may_have_a_zone(kind):
    times = pd.date_range(
        "2024-03-30", periods=500, freq="h", tz="Europe/Berlin"
    )  # over the change of clocks
    np.testing.assert_array_equal(Series(kind(times)).blocks, Series(np.arange(500)).blocks)


def test_samples_of_one_time_stay_together():
    time = np.repeat(np.arange(100), 7)
    blocks = Series(time).blocks.reshape(100, 7)
    assert np.all(blocks == blocks[:, :1])


@pytest.mark.parametrize(("times", "blocks"), [(5, 5), (100, 8), (400, 11), (1000, 20), (9000, 20)])
def test_a_short_series_has_fewer_blocks(times, blocks):
    assert len(np.unique(Series(np.repeat(np.arange(times), 3)).blocks)) == blocks  # n^(2/3) / 5, 8 to 20


@pytest.mark.slow
def test_order_makes_the_blocks_the_groups():
    rng = np.random.default_rng(1)
    error, time = series(rng, 800, 0.7), rng.permutation(800)
    zero, one = np.zeros(800), np.ones(800)
    ordered = uq.evaluate(error, zero, one, order=time)
    grouped = uq.evaluate(error, zero, one, groups=Series(time).blocks)
    assert ordered.intervals == grouped.intervals
    assert replace(ordered.verdict, places=None) == replace(grouped.verdict, places=None)
    labels, probs = (error > 0).astype(int), np.full((800, 2), 0.5)
    assert uq.evaluate(labels, probs=probs, order=time).provenance["intervals"]["groups"] == 17
    made = uq.Predictions(error, zero, one, groups=Series(time))
    assert uq.evaluate(made).intervals == ordered.intervals
    with pytest.raises(SettingsError, match=r"make the Predictions with groups=Series\(order\), from "):
        uq.evaluate(made, order=time)
    with pytest.raises(SettingsError, match="omit groups="):
        uq.evaluate(error, zero, one, order=time, groups=time)
    with pytest.raises(InvalidValueError, match="missing values"):
        uq.evaluate(error, zero, one, order=np.where(time == 3, np.nan, time))
    for missing in (
        np.where(time == 3, np.datetime64("NaT"), time.astype("M8[s]")),
        np.where(time == 3, np.timedelta64("NaT"), time.astype("m8[s]")),
        np.ma.masked_equal(time, 3),
    ):
        with pytest.raises(InvalidValueError, match="order has missing values"):
            uq.evaluate(error, zero, one, order=missing)
    with pytest.raises(InputTypeError, match="numbers or dates"):
        uq.evaluate(error, zero, one, order=time.astype(str))


@pytest.mark.slow
def test_it_is_logged_and_compared_in_pairs(tmp_path):
    rng = np.random.default_rng(2)
    time, truth = np.arange(600), series(rng, 600, 0.8)
    for name, noise in (("good", 0.3), ("poor", 0.6)):
        uq.log(
            truth,
            truth + noise * rng.normal(size=600),
            np.full(600, noise),
            order=time,
            method=name,
            run=f"dir:{tmp_path}",
        )
    found = uq.compare(f"dir:{tmp_path}", baseline="good").difference("poor", "crps")
    assert (found.how, found.verdict) == ("paired groups", "worse")


def times_rejected(repeats):
    """How often no bias is rejected, knowing the order of the errors and not knowing it."""
    rng = np.random.default_rng(3)
    rejected = {"order": 0, "none": 0}
    for _ in range(repeats):
        error = series(rng, 500, 0.8)
        for name, order in (("order", np.arange(500)), ("none", None)):
            bias = uq.evaluate(error, np.zeros(500), np.ones(500), order=order, metrics=["bias"]).verdict.bias
            rejected[name] += bias is not None and not bias.low <= 0 <= bias.high
    return rejected


@pytest.mark.simulation
def test_the_bias_of_dependent_errors_is_tested_at_its_level():
    rejected = times_rejected(60)
    assert rejected["order"] <= 9  # Binomial(60, .06): .998
    assert rejected["none"] <= 9  # blocks are found without being told


@pytest.mark.slow
def test_the_bias_of_six_series_is_rejected_as_often():
    assert times_rejected(6) == {"order": 0, "none": 0}


def no_interval(made):
    return made.intervals == {} and made.verdict.calibration == "not enough data"


def times_refused(repeats):
    """How often series get no interval, by how alike their neighbors are."""
    rng = np.random.default_rng(7)
    zero, one, time = np.zeros(100), np.ones(100), np.arange(100)
    refused = {0.0: 0, 0.5: 0, 0.95: 0}
    for phi in refused:
        for _ in range(repeats):
            made = uq.evaluate(series(rng, 100, phi), zero, one, order=time, metrics=["bias", "rmse"])
            refused[phi] += no_interval(made)
    return refused


@pytest.mark.simulation
def test_most_series_too_short_for_how_long_their_errors_stay_alike_have_no_interval():
    refused = times_refused(40)
    assert refused[0.0] == refused[0.5] == 0
    assert refused[0.95] >= 30


@pytest.mark.slow
def test_a_series_too_short_for_how_long_its_errors_stay_alike_has_no_interval():
    assert times_refused(4) == {0.0: 0, 0.5: 0, 0.95: 4}
    zero, one, time = np.zeros(100), np.ones(100), np.arange(100)
    alike = uq.evaluate(np.sin(time / 30), zero, one, order=time)
    reason = "a series worth 0.5 independent samples is too few for"
    assert alike.verdict.text == f"Not enough data to tell: {reason} a test; pass a longer one."
    reasons = set(alike.provenance["intervals"]["undefined"].values())
    assert reasons == {f"{reason} an interval; pass a longer one"}


def test_what_stays_alike_may_be_the_size_of_errors_or_the_classes():
    rng, time = np.random.default_rng(8), np.arange(400)
    early = time // 100 % 2 == 0
    rough = np.where(early, 0.2, 1.8) * rng.choice([-1, 1], 400)
    assert no_interval(uq.evaluate(rough, np.zeros(400), np.ones(400), order=time))
    probs = np.tile([0.3, 0.7], (400, 1))
    assert no_interval(uq.evaluate(early.astype(int), probs=probs, order=time))
    mixed = uq.evaluate((rng.random(400) < 0.7).astype(int), probs=probs, order=time)
    assert "accuracy" in mixed.intervals


def test_many_samples_of_a_time_hide_nothing():
    rng, time = np.random.default_rng(9), np.arange(100)
    frames = np.sin(time / 30)[:, None] + 5 * rng.normal(size=(100, 400))
    made = uq.evaluate(frames, np.zeros((100, 400)), np.full((100, 400), 5.0), order=time)
    assert no_interval(made)
    masked = np.zeros((100, 400), dtype=bool)
    masked[:30] = True
    assert no_interval(
        uq.evaluate(frames, np.zeros((100, 400)), np.full((100, 400), 5.0), order=time, mask=masked)
    )


@pytest.mark.parametrize("error", [0.0, 0.1, 1e-200, 1e200])
def test_errors_that_are_all_the_same_are_no_reason(error):
    made = uq.evaluate(np.full(90, error), np.zeros(90), np.ones(90), order=np.arange(90), metrics=["mae"])
    assert made.provenance["intervals"]["groups"] == 8


def literally(one, other, terms):
    d = [a - b for a, b in zip(one, other, strict=True)]
    n, mean = len(d), sum(d) / len(d)
    squares = 0.0
    for j in range(1, terms + 1):
        wave = sum(d[t - 1] * math.cos(math.pi * j * (t - 0.5) / n) for t in range(1, n + 1))
        squares += 2 / n * wave**2
    statistic = mean / math.sqrt(squares / terms / n)
    return statistic, 2 * stats.t.sf(abs(statistic), terms)


@pytest.mark.parametrize("terms", [None, 1, 12])
def test_diebold_mariano_literally(terms):
    rng = np.random.default_rng(4)
    one, other = series(rng, 150, 0.5) ** 2, 1.3 * series(rng, 150, 0.5) ** 2
    found = diebold_mariano(one, other, terms=terms)
    assert found.terms == (terms or 6)  # 150^(2/3) / 5 = 5.6
    assert (found.statistic, found.p) == pytest.approx(literally(one, other, found.terms), rel=1e-10)
    assert found.difference == pytest.approx(np.mean(one - other), rel=1e-12)
    assert (found.interval[0] <= 0 <= found.interval[1]) == (found.p >= 0.05)
    assert found.effect == pytest.approx(np.mean(one - other) / np.std(one - other), rel=1e-12)


def test_its_level_holds_where_plain_t_tests_fail():
    rng = np.random.default_rng(5)
    rejected = np.zeros(2)
    for _ in range(400):
        one, other = series(rng, 600, 0.8), series(rng, 600, 0.8)
        rejected += [diebold_mariano(one, other).p < 0.05, diebold_mariano(one, other, terms=599).p < 0.05]
    assert rejected[0] / 400 <= 0.09  # Binomial(400, .058): .99
    assert rejected[1] / 400 > 0.3


def test_its_refusals():
    with pytest.raises(ShapeError, match="two series"):
        diebold_mariano(np.zeros(9), np.zeros(8))
    with pytest.raises(Undefined, match="too few"):
        diebold_mariano(np.zeros(5), np.ones(5))
    for same in (np.ones(50), np.full(50, 0.1)):
        with pytest.raises(Undefined, match="differ by a constant"):
            diebold_mariano(np.zeros(50), same)
    with pytest.raises(SettingsError, match="terms is 50"):
        diebold_mariano(np.zeros(50), np.arange(50), terms=50)
    with pytest.raises(SettingsError, match="level is 95"):
        diebold_mariano(np.zeros(50), np.arange(50), level=95)
