"""Metrics on independent test sets of growing size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uq_tracking.curves.curve import Curve
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.repeats import Repeats
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.metrics.registry import Metric, compute, find
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import build_statistics
from uq_tracking.tasks import CLASSIFICATION, REGRESSION, Task

SIZES = tuple(2**k for k in range(3, 13))


def iid_stability(
    draw: Callable[[int, np.random.Generator], Any],
    *,
    metrics: str | Iterable[str] | None = None,
    sizes: Sequence[int] = SIZES,
    repeats: int = 100,
    seed: int = 0,
    **settings: Any,
) -> dict[str, Curve]:
    """How much metrics vary between independent test sets, and how biased small sets make them.

    For targets that can be drawn at will, as in a simulation; ``curves="stability"`` of `evaluate` draws subsets of
    one test set instead.

    Parameters
    ----------
    draw : callable
        ``draw(n, rng)`` returns the predictions of ``n`` new samples: ``Predictions``, ``ClassPredictions``, or the
        arguments of ``Predictions``, ``(y_true, y_pred, y_std)``.
    metrics : iterable of str, optional
        Keys; by default six of different kinds.
    sizes : sequence of int
        Numbers of samples.
    repeats : int
        Number of test sets of each size.
    seed : int
        Seed of ``rng``.
    **settings
        As for `Settings`: ``n_bins``, ``alpha``, ``family`` ...

    Returns
    -------
    dict of str to Curve
        By metric, with columns ``samples``, ``mean``, ``spread`` (standard deviation between sets), ``low``, ``high``
        and ``subsets``. Sizes at which a metric is undefined for some set are left out of its curve.

    Raises
    ------
    SettingsError
        A size or the number of repeats is not positive.
    UnknownMetricError
        There is no such metric.

    References
    ----------
    .. [1] Xiong et al., 2024, section IV-C and fig. 4 b.

    Examples
    --------
    >>> from uq_tracking.datasets import xiong
    >>> truth = lambda n, rng: xiong.heteroscedastic(n, rng).truth
    >>> curves = iid_stability(truth, metrics=["nll"], sizes=[64, 256], repeats=20)
    >>> spread = curves["nll"].columns["spread"]
    >>> bool(spread[1] < spread[0])
    True
    """
    if repeats < 1 or not len(sizes) or min(sizes) < 1:
        raise SettingsError(f"sizes are {list(sizes)} and repeats {repeats}; pass whole numbers, 1 or above")
    rng, asked = np.random.default_rng(seed), Settings(**settings)
    found: dict[float, list[Mapping[str, float]]] = {}
    chosen: list[Metric] = []
    for size in sizes:
        rows = found[float(size)] = []
        for _ in range(repeats):
            task, data = _read(draw(int(size), rng))
            chosen = chosen or _metrics(metrics, task)
            with np.errstate(all="ignore"):
                statistics = build_statistics(task.layout_of(data), data, "exact")
                rows.append(compute(statistics, asked, chosen)[0])
    curves = Repeats(found).curves("iid_stability", "samples", "Number of samples", chosen, asked.unit)
    return {str(curve.score): curve for curve in curves}


def _read(drawn: Any) -> tuple[Task, Any]:
    if isinstance(drawn, ClassPredictions):
        return CLASSIFICATION, drawn
    return REGRESSION, drawn if isinstance(drawn, Predictions) else REGRESSION.read(*drawn)


def _metrics(names: str | Iterable[str] | None, task: Task) -> list[Metric]:
    if names is None:
        names = task.curve_metrics
    chosen = find([names] if isinstance(names, str) else names, task.name)
    needing = [metric.key for metric in chosen if metric.needs]
    if needing:
        raise SettingsError(
            f"{', '.join(needing)} needs more than predictions; choose metrics that need only statistics"
        )
    return chosen
