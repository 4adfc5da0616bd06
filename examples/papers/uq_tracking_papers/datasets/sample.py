"""What every data set returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs import Predictions

Seed = int | np.random.Generator
"""A seed, or a generator to draw from."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Samples of a toy data set.

    Attributes
    ----------
    x : float64 array (n,) or (n, features)
    y : array (n,)
        Targets, or integer labels.
    truth : Predictions
        The distribution from which each target was drawn, as the predictions of a model that knows it.
    """

    x: npt.NDArray[np.float64]
    y: npt.NDArray[Any]
    truth: Predictions
