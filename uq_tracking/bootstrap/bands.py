"""Bands around curves: the points of a curve in resamples of the groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uq_tracking import plugins
from uq_tracking.bootstrap.resampling import FEWEST_GROUPS, FloatArray, deviation_range
from uq_tracking.curves import Curve, CurveSpec
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.statistics import Statistics, resampled

MOST_RESAMPLES = 200
"""A band is read by eye: more resamples would not be seen."""


def banded(
    curves: dict[str, Curve],
    tables: GroupTables,
    settings: Settings,
    level: float = 0.95,
    n_boot: int = MOST_RESAMPLES,
    seed: int = 0,
) -> dict[str, Curve]:
    """The curves, those that are declared with a ceiling with ``low`` and ``high`` of pointwise intervals.

    Samples of one image are not independent, so a band over images replaces the band of independent samples that
    calibration and coverage have otherwise. With fewer than eight groups nothing is changed.
    """
    size, n_boot = len(tables), min(n_boot, MOST_RESAMPLES)
    specs = plugins.curves(tables.layout.task)
    wanted = [
        name for name in curves if name in specs and specs[name].ceiling is not None and not specs[name].needs
    ]
    if size < FEWEST_GROUPS or not wanted:
        return curves
    weights = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), n_boot).astype(float)
    drawn: dict[str, list[FloatArray]] = {name: [] for name in wanted}
    with np.errstate(all="ignore"):
        for one in resampled(tables, weights):
            for name in wanted:
                _add_points(drawn[name], specs[name], one, settings)
    made = {name: _with_band(curves[name], drawn[name], level, size, specs[name].ceiling) for name in wanted}
    return {**curves, **made}


def _add_points(
    points: list[FloatArray], spec: CurveSpec, statistics: Statistics, settings: Settings
) -> None:
    try:
        points.append(spec.function(statistics, settings)[spec.y])
    except Undefined:
        return  # a resample in which the curve has no points says nothing of their spread


def _with_band(
    curve: Curve, drawn: list[FloatArray], level: float, n_groups: int, ceiling: float | None
) -> Curve:
    main = curve.columns[curve.main]
    drawn = [points for points in drawn if len(points) == len(main)]
    if len(drawn) < 2:
        return curve
    deviations = np.asarray(drawn)
    ranges = np.asarray([deviation_range(column, level, n_groups) for column in deviations.T])
    low = np.clip(main + ranges[:, 0], 0, main)
    high = np.clip(main + ranges[:, 1], main, np.maximum(main, np.inf if ceiling is None else ceiling))
    return replace(curve, columns={**curve.columns, "low": low, "high": high})
