"""Statistics from a few arrays, for tests of metrics, curves and recalibrations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs import Predictions
from uq_tracking.statistics.collecting import How, build_statistics
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.sketch import SKETCH_BITS
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import CLASSIFICATION


def exact_statistics(
    target: npt.ArrayLike, mean: npt.ArrayLike, std: npt.ArrayLike, std_floor: float | None = None
) -> Statistics:
    """Exact statistics of a regression, from valid arrays of shape (n,)."""
    rows = {"target": np.asarray(target), "mean": np.asarray(mean), "std": np.asarray(std)}
    return Statistics.exact(REGRESSION, rows, facts={"std_floor": std_floor})


def sketch_statistics(
    target: npt.ArrayLike,
    mean: npt.ArrayLike,
    std: npt.ArrayLike,
    std_floor: float | None = None,
    bits: int = SKETCH_BITS,
) -> Statistics:
    """Sketched statistics of a regression, from valid arrays of shape (n,)."""
    rows = {"target": np.asarray(target), "mean": np.asarray(mean), "std": np.asarray(std)}
    return Statistics.counted(REGRESSION, [rows], bits=bits, facts={"std_floor": std_floor})


def classification_statistics(
    labels: npt.ArrayLike, probs: npt.ArrayLike, *, statistics: How = "exact", **options: Any
) -> Statistics:
    """Statistics of labels, shape (n,), and probabilities, shape (n, C); options as for `Predictions.from_probs`."""
    data = Predictions.from_probs(labels, probs, **options)
    return build_statistics(CLASSIFICATION.layout_for(data.facts), data, statistics)
