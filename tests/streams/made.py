"""Predictions, and accumulators of them, that the tests of streams share."""

import numpy as np

import uq_tracking as uq

LAWS = (
    "gamma",
    "overconfident",
    "heavy",
    "cauchy",
    "ties",
    "tiny",
    "huge",
    "constant",
    "independent",
    "oracle",
)


def predictions(law="gamma", n=1000, seed=0):
    """(y_true, y_pred, y_std) of a kind of data, float64."""
    rng = np.random.default_rng(seed)
    mean, noise = rng.normal(size=n), rng.normal(size=n)
    std = rng.gamma(2, 1, n) + 0.01
    if law == "gamma":
        return mean + std * noise, mean, std
    if law == "overconfident":
        return mean + 1.5 * std * noise + 0.1, mean, std
    if law == "heavy":
        return mean + std * rng.standard_t(2, n), mean, np.exp(1.5 * rng.normal(size=n))
    if law == "cauchy":
        return mean + std * rng.standard_cauchy(n), mean, np.exp(rng.normal(size=n))
    if law == "ties":
        std = np.round(std, 1) + 0.1
        return np.round(mean + std * noise, 1), np.round(mean, 1), std
    if law == "tiny":
        return (mean + std * noise) * 1e-20, mean * 1e-20, std * 1e-20
    if law == "huge":
        return (mean + 1.2 * std * noise) * 1e18, mean * 1e18, std * 1e18
    if law == "constant":
        return mean + noise, mean, np.full(n, 0.7)
    if law == "independent":
        return mean + 3 * noise, mean, rng.uniform(1, 10, n)
    if law == "oracle":
        return mean + noise, mean, np.abs(noise) + 1e-3
    raise ValueError(law)


def batches(data, size):
    n = len(data[0])
    for start in range(0, n, size):
        yield tuple(column[start : start + size] for column in data)


def counted(data, size=None, **settings):
    accumulator = uq.Accumulator(**settings)
    for batch in batches(data, size or len(data[0])):
        accumulator.update(*batch)
    return accumulator


def assert_same_arrays(one, other):
    assert set(one) == set(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
