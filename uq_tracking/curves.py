"""The numbers behind every plot: pure functions of the statistics; figures and trackers only draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """Columns of equal length; ``x`` names the horizontal one and ``main`` the one that runs are overlaid by."""

    name: str
    columns: Mapping[str, FloatArray]
    x: str
    main: str
    x_label: str
    y_label: str
    title: str
    score: str | None = None
    """Key of the score that summarises the curve."""
    steps: npt.NDArray[np.int64] | None = None
    """Increasing integers for trackers whose axis is an integer step: per cent of x, or the bin's index."""
