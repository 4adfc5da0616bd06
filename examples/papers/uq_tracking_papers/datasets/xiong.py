"""The four regression problems of Xiong et al. (2024), section IV-A, one for each kind of uncertainty.

``N(0, s)`` there has standard deviation s. The paper does not state the sizes of its training and test sets.
"""

from __future__ import annotations

import numpy as np

from uq_tracking_papers.datasets.conditional import Conditional, FloatArray


def _cosine(x: FloatArray) -> FloatArray:
    return np.asarray(np.cos(1.5 * np.pi * x)[None])


def _two_waves(x: FloatArray) -> FloatArray:
    wave = np.cos(2 * np.pi * x)
    return 0.5 + np.stack([wave, -wave])


def _fast_cosine(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 + np.cos(4 * np.pi * x)[None])


homoscedastic = Conditional("homoscedastic", (-1, 1), ((-1, 1),), _cosine, lambda x: np.full(len(x), 0.1))
"""The same noise everywhere."""

heteroscedastic = Conditional(
    "heteroscedastic", (-1, 1), ((-1, 1),), _cosine, lambda x: 0.4 * np.abs(np.cos(1.5 * np.pi * x))
)
"""Noise that depends on the input."""

multimodal = Conditional("multimodal", (0, 1), ((0, 1),), _two_waves, lambda x: np.full(len(x), 0.05))
"""Two branches; each target lies on one of them."""

epistemic = Conditional(
    "epistemic", (0, 1), ((0, 0.35), (0.65, 1)), _fast_cosine, lambda x: np.full(len(x), 0.05)
)
"""A gap in the training inputs."""

DATASETS = {data.name: data for data in (homoscedastic, heteroscedastic, multimodal, epistemic)}
"""All four by name, in the paper's order."""
