"""Scores of samples with weights against numpy, scipy, scikit-learn and literal formulas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats
from sklearn import metrics as sk

import uq_tracking as uq

RNG = np.random.default_rng(7)
N = 500
MU, S = RNG.normal(size=N), RNG.gamma(4, 0.25, N)
Y = MU + 1.3 * S * RNG.normal(size=N)
W = RNG.gamma(0.7, 1.0, N)
"""Skewed weights, no multiples of one another."""
E, A, Z = Y - MU, np.abs(Y - MU), (Y - MU) / S
LABELS = RNG.integers(0, 3, N)
LOGITS = RNG.normal(size=(N, 3)) + 1.5 * np.eye(3)[LABELS]
PROBS = special.softmax(LOGITS, axis=1)


@pytest.fixture(scope="module")
def report():
    return uq.evaluate(Y, MU, S, weights=W)


@pytest.fixture(scope="module")
def classes():
    return uq.evaluate(LABELS, probs=PROBS, weights=W)


def mean(values):
    return np.average(values, weights=W)


def smallest_reaching(values, share):
    """The smallest value at or below which lies at least a share of the weight."""
    order = np.argsort(values)
    return values[order][np.searchsorted(np.cumsum(W[order]), share * W.sum())]


def sum_up_to(order, values, shares):
    """Weighted sum of values over the first shares of the weight, a sample at the edge cut."""
    ends = np.concatenate([[0.0], np.cumsum(W[order])])
    sums = np.concatenate([[0.0], np.cumsum((W * values)[order])])
    return np.interp(np.asarray(shares) * W.sum(), ends, sums)


def test_accuracy_is_that_of_scikit_learn(report):
    assert_allclose(report.scores["rmse"], sk.root_mean_squared_error(Y, MU, sample_weight=W), rtol=1e-12)
    assert_allclose(report.scores["mae"], sk.mean_absolute_error(Y, MU, sample_weight=W), rtol=1e-12)
    assert_allclose(report.scores["r2"], sk.r2_score(Y, MU, sample_weight=W), rtol=1e-12)
    assert_allclose(report.scores["bias"], mean(MU - Y), rtol=1e-12)


def test_quantiles_are_those_of_numpy(report):
    median = np.quantile(A, 0.5, weights=W, method="inverted_cdf")
    assert_allclose(report.scores["medae"], median, rtol=1e-12)
    scale = np.quantile(np.abs(Z), 0.95, weights=W, method="inverted_cdf")
    assert_allclose(report.scores["merci"], scale * mean(S), rtol=1e-12)
    constant = smallest_reaching(A, 0.95)
    expected = (scale * mean(S) - mean(A)) / (constant - mean(A))
    assert_allclose(report.scores["n_merci"], expected, rtol=1e-10)


def test_proper_scores_are_weighted_means(report):
    assert_allclose(report.scores["nll"], mean(-stats.norm.logpdf(Y, MU, S)), rtol=1e-12)
    crps = S * (Z * (2 * stats.norm.cdf(Z) - 1) + 2 * stats.norm.pdf(Z) - 1 / np.sqrt(np.pi))
    assert_allclose(report.scores["crps"], mean(crps), rtol=1e-12)
    levels = np.arange(1, 100) / 100
    q = MU[:, None] + S[:, None] * stats.norm.ppf(levels)
    loss = np.maximum(levels * (Y[:, None] - q), (levels - 1) * (Y[:, None] - q)).mean(axis=1)
    assert_allclose(report.scores["pinball"], mean(loss), rtol=1e-10)
    pdf = stats.norm.pdf(Y, MU, S)
    assert_allclose(
        report.scores["quadratic_score"], mean(2 * pdf - 1 / (2 * S * np.sqrt(np.pi))), rtol=1e-11
    )


def test_calibration_counts_weight(report):
    levels = np.arange(1, 100) / 100
    half = stats.norm.ppf((1 + levels) / 2)
    inside = np.asarray([mean(np.abs(Z) <= h) for h in half])
    assert_allclose(report.scores["coverage_90"], inside[89], rtol=1e-12)
    assert_allclose(report.scores["auce"], np.trapezoid(np.abs(inside - levels), levels), rtol=1e-10)
    below = np.asarray([mean(stats.norm.cdf(Z) <= p) for p in levels])
    assert_allclose(report.scores["calibration_error"], np.mean((below - levels) ** 2), rtol=1e-10)
    u = np.sort(stats.norm.cdf(Z))
    share = np.cumsum(W[np.argsort(Z)]) / W.sum()
    gap = max((share - u).max(), (u - np.concatenate([[0.0], share[:-1]])).max())
    assert_allclose(report.scores["pit_ks"], gap, rtol=1e-10)
    assert_allclose(report.scores["z_std"], np.sqrt(np.cov(Z, aweights=W, ddof=0)), rtol=1e-12)


def test_bins_hold_equal_weight(report):
    order, edges = np.argsort(S), np.arange(11) / 10
    variance, square = (np.diff(sum_up_to(order, v, edges)) / (W.sum() / 10) for v in (S**2, E**2))
    expected = np.mean(np.abs(np.sqrt(variance) - np.sqrt(square)) / np.sqrt(variance))
    assert_allclose(report.scores["ence"], expected, rtol=1e-10)
    assert_allclose(report.scores["uce"], np.abs(variance - square).mean(), rtol=1e-10)


def test_sparsification_removes_weight(report):
    units = W.sum() / W.min()
    kept = np.asarray([np.floor(units * (100 - i) / 100) for i in range(100)]) / units
    curves = [np.sqrt(sum_up_to(np.argsort(by), E**2, kept) / (kept * W.sum()) / mean(E**2)) for by in (S, A)]
    expected = np.trapezoid(curves[0] - curves[1], np.arange(100) / 100)
    assert_allclose(report.scores["ause_rmse"], expected, rtol=1e-9)


def test_ranks_are_those_of_repeated_samples():
    k = RNG.integers(1, 5, N)
    found = uq.evaluate(Y, MU, S, weights=k / 7, metrics=["spearman"]).scores["spearman"]
    assert_allclose(found, stats.spearmanr(np.repeat(S, k), np.repeat(A, k)).statistic, rtol=1e-12)


def test_classes_are_those_of_scikit_learn(classes):
    guess = PROBS.argmax(axis=1)
    assert_allclose(classes.scores["accuracy"], sk.accuracy_score(LABELS, guess, sample_weight=W), rtol=1e-12)
    assert_allclose(classes.scores["nll"], sk.log_loss(LABELS, PROBS, sample_weight=W), rtol=1e-12)
    miou = sk.jaccard_score(LABELS, guess, average="macro", sample_weight=W)
    assert_allclose(classes.scores["miou"], miou, rtol=1e-12)
    assert_allclose(
        classes.scores["brier"], mean(np.square(PROBS - np.eye(3)[LABELS]).sum(axis=1)), rtol=1e-12
    )
    top, right = PROBS.max(axis=1), guess == LABELS
    place = np.minimum((top * 10).astype(int), 9)
    gaps = [W[place == b] @ (right - top)[place == b] for b in range(10)]
    assert_allclose(classes.scores["ece"], np.abs(gaps).sum() / W.sum(), rtol=1e-11)


def test_temperature_is_the_weighted_maximum_of_likelihood():
    k = RNG.integers(1, 4, N)
    weighted = uq.recalibrate((LABELS, LOGITS), "temperature", logits=True, weights=0.5 * k)
    repeated = uq.recalibrate(
        (np.repeat(LABELS, k), np.repeat(LOGITS, k, axis=0)), "temperature", logits=True
    )
    assert_allclose(weighted.temperature, repeated.temperature, rtol=1e-7)


@pytest.mark.parametrize("method", ["std_scaling", "cdf_isotonic", "std_isotonic", "std_binning"])
def test_recalibrations_weigh_samples(method):
    k = RNG.integers(1, 4, N)
    weighted = uq.recalibrate((Y, MU, S), method, weights=k)
    repeated = uq.recalibrate(tuple(np.repeat(a, k) for a in (Y, MU, S)), method)
    inside = S
    if method == "std_isotonic":  # its end levels rest on 20 rows, whatever these count
        low, high = np.quantile(S, [0.15, 0.85])
        inside = S[(low <= S) & (high >= S)]
    assert_allclose(weighted.new_std(inside), repeated.new_std(inside), rtol=1e-10)


def test_a_reference_is_weighed_too():
    reference = (MU + 0.1, 0.9 * S)
    found = uq.evaluate(Y, MU, S, weights=W, reference=reference).scores["kl_to_reference"]
    ratio = S / reference[1]
    divergence = -np.log(ratio) + 0.5 * (ratio**2 + ((MU - reference[0]) / reference[1]) ** 2 - 1)
    assert_allclose(found, mean(divergence), rtol=1e-12)
