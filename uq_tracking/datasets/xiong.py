"""The four regression problems of Xiong et al. (2024), section IV-A: a kind of uncertainty each.

``N(0, s)`` there has standard deviation s. The paper states the size of neither its training nor its test sets.
"""

from __future__ import annotations

import numpy as np

from uq_tracking.datasets.conditional import Conditional, FloatArray


def _cosine(x: FloatArray) -> FloatArray:
    return np.asarray(np.cos(1.5 * np.pi * x)[None])


def _two_waves(x: FloatArray) -> FloatArray:
    wave = np.cos(2 * np.pi * x)
    return 0.5 + np.stack([wave, -wave])


def _fast_cosine(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 + np.cos(4 * np.pi * x)[None])


homoscedastic = Conditional("homoscedastic", (-1, 1), ((-1, 1),), _cosine, lambda x: np.full(len(x), 0.1))
"""Noise of one size everywhere."""

heteroscedastic = Conditional(
    "heteroscedastic", (-1, 1), ((-1, 1),), _cosine, lambda x: 0.4 * np.abs(np.cos(1.5 * np.pi * x))
)
"""Noise that depends on the input."""

multimodal = Conditional("multimodal", (0, 1), ((0, 1),), _two_waves, lambda x: np.full(len(x), 0.05))
"""Two branches; a target lies on either."""

epistemic = Conditional(
    "epistemic", (0, 1), ((0, 0.35), (0.65, 1)), _fast_cosine, lambda x: np.full(len(x), 0.05)
)
"""A gap in the training inputs."""

DATASETS = {data.name: data for data in (homoscedastic, heteroscedastic, multimodal, epistemic)}
"""All four by name, in the paper's order."""
