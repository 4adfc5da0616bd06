"""Metrics on independent test sets of growing size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uq_tracking.checks import value_text, whole_number
from uq_tracking.curves.curve import Curve
from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.evaluation.repeats import Repeats
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.metrics.registry import Metric, compute, find, in_curves
from uq_tracking.settings import Settings, check_seed
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
    >>> def draw(n, rng):
    ...     mean, std = rng.normal(size=n), rng.gamma(2, 0.5, n)
    ...     return Predictions(rng.normal(mean, std), mean, std)
    >>> curves = iid_stability(draw, metrics=["nll"], sizes=[64, 256], repeats=20)
    >>> spread = curves["nll"].columns["spread"]
    >>> bool(spread[1] < spread[0])
    True
    """
    if not callable(draw):
        raise SettingsError(
            f"draw is {value_text(draw)}; pass a function draw(n, rng) that returns predictions"
        )
    if not isinstance(sizes, Iterable):
        raise SettingsError(f"sizes is {value_text(sizes)}; pass a list of numbers of samples")
    sizes, repeats = [whole_number("sizes", size) for size in sizes], whole_number("repeats", repeats)
    if repeats < 1 or not sizes or min(sizes) < 1:
        raise SettingsError(f"sizes are {sizes} and repeats {repeats}; pass whole numbers, 1 or above")
    check_seed(seed)
    rng, asked = np.random.default_rng(seed), Settings(**settings)
    found: dict[float, list[Mapping[str, float]]] = {}
    chosen: list[Metric] = []
    for size in sizes:
        rows = found[float(size)] = []
        for _ in range(repeats):
            task, data = _read(draw(size, rng))
            chosen = chosen or _metrics(metrics, task)
            with np.errstate(all="ignore"):
                statistics = build_statistics(task.layout_of(data), data, "exact")
                rows.append(compute(statistics, asked, chosen)[0])
    curves = Repeats(found).curves("iid_stability", "samples", "Number of samples", chosen, asked.unit)
    return {str(curve.score): curve for curve in curves}


def _read(drawn: Any) -> tuple[Task, Any]:
    if isinstance(drawn, ClassPredictions):
        return CLASSIFICATION, drawn
    if isinstance(drawn, tuple | list) and len(drawn) == len(Predictions.arguments):
        return REGRESSION, REGRESSION.read(*drawn)
    if not isinstance(drawn, Predictions):
        raise InputTypeError(
            f"draw returned {value_text(drawn)}; it must return (y_true, y_pred, y_std) or predictions"
        )
    return REGRESSION, drawn


def _metrics(names: str | Iterable[str] | None, task: Task) -> list[Metric]:
    chosen = in_curves(task.name) if names is None else find(names, task.name)
    needing = [metric.key for metric in chosen if metric.needs]
    if needing:
        raise SettingsError(
            f"{', '.join(needing)} needs more than predictions; choose metrics that need only statistics"
        )
    return chosen
