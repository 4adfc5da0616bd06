"""A verdict is found for what real files hold: codes for missing values, hard labels, constants, periods of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import special

import uq_tracking as uq
from uq_tracking.errors import UQTrackingError

SEEDS = [pytest.param(k, marks=pytest.mark.slow if k >= 20 else ()) for k in range(300)]
CODES = (-3.4028234663852886e38, 1e30, -9999.0, 0.0, 65535.0, 1e150, 1e-300)


def options_of(rng, shape):
    """Labels, groups and weights, each in some cases."""
    count, made = np.arange(int(np.prod(shape))).reshape(shape), {}
    if rng.random() < 0.25:
        made["by"] = count % int(rng.integers(2, 8))
    if rng.random() < 0.25:
        made["groups"] = count // int(rng.integers(2, 20))
    if rng.random() < 0.15:
        made["weights"] = rng.exponential(size=shape)
    if rng.random() < 0.15:
        made["statistics"] = "sketch"
    return made


def said(*arrays, **options):
    """The sentence; "" where input is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return uq.evaluate(*arrays, **options).verdict.text
        except UQTrackingError:
            return ""


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_regression(seed):
    rng = np.random.default_rng(seed)
    ends = ((2, 14), (4, 40), (4, 40)) if rng.random() < 0.3 else ((30, 1200),)
    shape = tuple(int(rng.integers(*each)) for each in ends)
    mean = 10 ** rng.uniform(-3, 3) * rng.normal(size=shape)
    std = mean.std() * (0.1 + rng.choice([0, 0.1, 1]) * np.abs(rng.normal(size=shape)))
    y = mean + rng.choice([0, 0.5, 1, 3]) * std * rng.normal(size=shape)
    place, code = np.arange(y.size).reshape(shape), rng.choice(CODES)
    there = (place % int(rng.integers(2, 40)) == 0, rng.random(shape) < 0.1, place < y.size // 5, place == 3)
    missing, columns = there[rng.integers(4)], rng.integers(5)
    if columns in (0, 2):
        y = np.where(missing, code, y)
    if columns in (1, 2):
        mean = np.where(missing, code, mean)
    if columns == 3:
        std = np.where(missing, abs(code) + 1e-9, std)
    with np.errstate(all="ignore"):
        arrays = [each.astype(rng.choice(["f4", "f8"])) for each in (y, mean, std)]
    text = said(*arrays, **options_of(rng, shape))
    assert text or not all(np.isfinite(each).all() for each in arrays)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_classes(seed):
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(5, 1200)), int(rng.choice([2, 3, 5, 12, 60]))
    logits = rng.choice([0.01, 1, 5, 60]) * rng.normal(size=(n, classes))
    probs = special.softmax(logits, axis=1)
    of_truth = special.softmax(rng.choice([0.3, 1, 2.5]) * logits, axis=1)
    labels = (of_truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    if rng.random() < 0.2:
        labels[:] = labels[0]
    kind = rng.integers(6)
    if kind == 0:
        probs = np.eye(classes)[labels]
    elif kind == 1:
        probs = np.eye(classes)[rng.integers(0, classes, n)]
    elif kind == 2:
        probs = np.full((n, classes), 1 / classes)
    elif kind == 3:
        probs[:: int(rng.integers(2, 30))] = np.eye(classes)[0]
    assert said(labels, probs=probs.astype(rng.choice(["f4", "f8"])), **options_of(rng, (n,)))
