"""Predictions whose uncertainty is wrong in known ways."""

from __future__ import annotations

import numpy as np

METHODS = ("std_scaling", "cdf_isotonic", "std_isotonic", "std_binning")


def overconfident(n=4000, seed=0, *, factor=2.0, bias=0.0):
    """(y, mu, s) whose errors are ``factor`` times what s claims, around a mean that is off by ``bias * s``."""
    rng = np.random.default_rng(seed)
    std = rng.gamma(4, 0.25, n)
    mean = rng.normal(size=n)
    return mean + std * (bias + factor * rng.normal(size=n)), mean, std
