"""The documented accuracy of the sketch, against the exact route."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import uq_tracking as uq
from uq_tracking.metrics.ranking import FRACTIONS, remaining_counts

from .made import LAWS, predictions

SUMS = [
    "nll",
    "nll_laplace",
    "crps",
    "crps_laplace",
    "sharpness",
    "mean_std",
    "cv",
    "mae",
    "rmse",
    "bias",
    "r2",
    "z_mean",
    "z_std",
    "interval_score",
    "pinball",
]
AREAS = [
    "auce",
    "auce_over",
    "auce_under",
    "calibration_error",
    "mace",
    "rmsce",
    "pit_ks",
]
QUANTILES = ["medae", "merci"]


def data_of(law, n, seed=0):
    data = predictions(law, n, seed)
    if law not in ("tiny", "huge"):  # whose products leave float32's range
        data = tuple(column.astype(np.float32) for column in data)
    return data


def reports(data):
    return uq.evaluate(*data, statistics="exact"), uq.evaluate(*data, statistics="sketch")


def within_buckets(data):
    """How far the order of samples within a bucket of the stds moves AUSE: far where single errors carry it."""
    y, mean, std = (column.astype(float) for column in data)
    error = np.abs(y - mean)
    bucket = std.astype(np.float32).view(np.uint32) >> 12
    everyone, kept = np.arange(1, len(y) + 1), remaining_counts(len(y)).astype(int)
    _, tied, times = np.unique(std, return_inverse=True, return_counts=True)
    linear, square = ((np.bincount(tied, part) / times)[tied] for part in (error, (error / error.max()) ** 2))
    mae, rmse = [], []
    for sign in (1, -1):
        ordered = linear[np.lexsort((sign * linear, bucket))]
        mae.append(np.mean(ordered.cumsum() / everyone) / error.mean())
        ordered = square[np.lexsort((sign * square, bucket))]
        curve = np.sqrt(ordered.cumsum()[kept - 1] / kept)
        rmse.append(np.trapezoid(curve / curve[0], FRACTIONS))
    spans = {"ause_mae": np.ptp(mae), "ause_rmse": np.ptp(rmse)}
    return {**spans, "aurg_rmse": spans["ause_rmse"]}


def bin_noise(n):
    """Bound of ENCE's error, a fraction of its sampling error: within the documented one from 1e5 samples on."""
    return (0.05 if n >= 100_000 else 0.3) / math.sqrt(n)


def check(data):
    exact, sketch = reports(data)
    n = len(data[0])
    assert set(exact.scores) == set(sketch.scores)
    one, other = exact.scores, sketch.scores
    scale = max(one["rmse"], one["sharpness"])
    for key in SUMS:
        if key in one:
            unit = scale if key in ("bias", "mae", "crps", "pinball") else 1.0
            assert abs(other[key] - one[key]) <= 1e-6 * max(abs(one[key]), 1e-3 * unit), key
    for key in AREAS:
        if key in one:
            assert abs(other[key] - one[key]) <= (1e-4 if n >= 10_000 else 1e-3), key
    for key, span in within_buckets(data).items():
        if key in one:
            assert abs(other[key] - one[key]) <= 1e-4 + span, key
    for key in QUANTILES:
        assert abs(other[key] - one[key]) <= 1e-3 * one[key], key
    if "n_merci" in one:
        assert abs(other["n_merci"] - one["n_merci"]) <= 1e-3 * max(abs(one["n_merci"]), 1)
    square = np.square((data[0] - data[1]).astype(float) / scale)
    if "ence" in one and square.max() < 0.2 * square.sum():  # else one error, on an edge of bins, makes a bin
        assert abs(other["ence"] - one["ence"]) <= max(1e-3 * one["ence"], bin_noise(n))
        assert abs(other["uce"] - one["uce"]) <= max(1e-3 * one["uce"], bin_noise(n) * scale**2)
    if "spearman" in one:
        assert abs(other["spearman"] - one["spearman"]) <= max(2e-3, 0.1 / math.sqrt(n))


@pytest.mark.parametrize("n", [1000, 10_000, 100_000])
@pytest.mark.parametrize("law", LAWS)
def test_the_sketch_keeps_its_word(law, n):
    check(data_of(law, n))


@pytest.mark.parametrize("law", ["gamma", "heavy"])
@pytest.mark.slow
def test_also_for_a_million(law):
    check(data_of(law, 1_000_000))


@pytest.mark.slow
@settings(max_examples=40, derandomize=True)  # rare outliers in a bin's last bucket exist
@given(st.sampled_from(LAWS), st.integers(1000, 3000), st.integers(0, 1000))
@example("ties", 1184, 454)
@example("cauchy", 1110, 600)  # one error carries most of AUSE
def test_the_bound_holds_whatever_the_data(law, n, seed):
    check(data_of(law, n, seed))


@pytest.mark.parametrize(("n", "seed"), [(1184, 454), (2871, 5)])
def test_equal_errors_of_rounded_data_are_ties_in_the_sketch(n, seed):
    """Rounding makes 1.3 - 1.2 and 0.9 - 0.8 differ, which exact statistics rank; the sketch is nearer to right."""
    y, mean, std = predictions("ties", n, seed)
    right = spearmanr(np.round(std, 1), np.round(np.abs(y - mean), 1))[0]
    exact, sketch = reports(data_of("ties", n, seed))
    assert abs(sketch.scores["spearman"] - right) <= 0.02 / math.sqrt(n)
    assert abs(sketch.scores["spearman"] - right) < abs(exact.scores["spearman"] - right)


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "evenness"), [(3, 5.0), (3, 0.5), (5, 0.4), (10, 0.2)])
def test_the_sketch_of_a_classification_keeps_its_word(classes, evenness):
    n = 60_000
    for seed in range(3):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet(np.full(classes, evenness), n)
        labels = np.minimum((probs.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), classes - 1)
        exact, sketch = (uq.evaluate(labels, probs=probs, statistics=how) for how in ("exact", "sketch"))
        off = {key: abs(sketch.scores[key] - value) for key, value in exact.scores.items()}
        for key in ("accuracy", "nll", "brier", "entropy_mean", "miou"):
            assert off[key] <= 1e-12, key
        assert max(off["ause_brier"], off["aurc"]) <= 1e-4
        assert max(off["ece"], off["ace"]) <= 0.1 / math.sqrt(n)
        bins = exact.curves["reliability"].columns
        gap = np.abs(bins["accuracy"] - bins["confidence"])
        assert off["mce"] <= 0.1 / math.sqrt(bins["count"][gap.argmax()])
    assert "0.1 / sqrt(n) for ece" in sketch.provenance["accuracy"]


def test_stds_within_one_bucket_count_as_tied():
    y, mean, _ = predictions("gamma", 20_000)
    std = np.random.default_rng(0).uniform(1.0001, 1.0004, 20_000)
    sketch = uq.evaluate(y, mean, std, statistics="sketch")
    assert sketch.undefined["spearman"].startswith("all standard deviations are equal (or closer")
    constant = uq.evaluate(y, mean, np.ones(20_000), statistics="exact")
    assert abs(sketch.scores["ause_rmse"] - constant.scores["ause_rmse"]) < 1e-4


def test_the_report_states_its_accuracy():
    data = predictions(n=100)
    assert "2^-11" in uq.evaluate(*data, statistics="sketch").provenance["accuracy"]
    assert uq.evaluate(*data, statistics="exact").provenance["accuracy"].startswith("exact")


def test_more_bits_are_finer():
    data = predictions("independent", 50_000)
    exact = uq.evaluate(*data, statistics="exact").scores["merci"]
    errors = []
    for bits in (6, 11, 14):
        accumulator = uq.Accumulator(bits=bits)
        accumulator.update(*data)
        errors.append(abs(accumulator.compute().scores["merci"] - exact))
    assert errors[0] > errors[1] > errors[2]
