"""Seeded class predictions of a model whose logits are a multiple of the true ones."""

from __future__ import annotations

import numpy as np


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def samples(
    n: int = 2000, classes: int = 4, *, factor: float = 2.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from the true probabilities, and the model's logits: overconfident for a factor above 1."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 1.2, (n, classes))
    labels = (softmax(z).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return labels, factor * z


def pixels(cases: int = 3, height: int = 24, width: int = 32, classes: int = 4, seed: int = 0):
    """Labels (cases, height, width) and probabilities (cases, height, width, classes)."""
    labels, z = samples(cases * height * width, classes, seed=seed)
    shape = (cases, height, width)
    return labels.reshape(shape), softmax(z).reshape(*shape, classes)


def same(one, other, *, rtol: float = 1e-12, atol: float = 1e-14) -> None:
    """Both reports have the same scores and the same undefined keys."""
    assert one.scores.keys() == other.scores.keys()
    assert one.undefined.keys() == other.undefined.keys()
    for key, value in one.scores.items():
        np.testing.assert_allclose(other.scores[key], value, rtol=rtol, atol=atol, err_msg=key)
