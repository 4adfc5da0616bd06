"""Bands around curves: the points of a curve in resamples of the groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uq_tracking.bootstrap.resampling import FEWEST_GROUPS, FloatArray, deviation_range
from uq_tracking.curves import BUILDERS, Curve
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.statistics import Statistics

BANDED = {"calibration": 1.0, "coverage": 1.0, "reliability": np.inf, "sparsification_rmse": np.inf}
"""Curves that get a band, and the largest value of their points; none is negative."""

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
    """The curves, those in ``BANDED`` with the columns ``low`` and ``high`` of pointwise confidence intervals.

    Samples of one image are not independent, so a band over images replaces the band of independent samples that
    calibration and coverage have otherwise. With fewer than eight groups nothing is changed.
    """
    size, n_boot = len(tables), min(n_boot, MOST_RESAMPLES)
    wanted = [name for name in BANDED if name in curves]
    if size < FEWEST_GROUPS or not wanted:
        return curves
    weights = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), n_boot).astype(float)
    like = Statistics.zero()
    drawn: dict[str, list[FloatArray]] = {name: [] for name in wanted}
    with np.errstate(all="ignore"):
        for one in tables.resampled(weights, like):
            for name in wanted:
                _add_points(drawn[name], curves[name], one, settings)
    made = {name: _with_band(curves[name], drawn[name], level, size) for name in wanted}
    return {**curves, **made}


def _add_points(
    points: list[FloatArray], curve: Curve, statistics: Statistics, settings: Settings
) -> None:
    try:
        built = next(c for c in BUILDERS[curve.name](statistics, settings) if c.name == curve.name)
    except Undefined:
        return  # a resample in which the curve has no points says nothing of their spread
    column = built.columns[curve.main]
    if len(column) == len(curve.columns[curve.main]):
        points.append(column)


def _with_band(curve: Curve, drawn: list[FloatArray], level: float, n_groups: int) -> Curve:
    if len(drawn) < 2:
        return curve
    main, deviations = curve.columns[curve.main], np.asarray(drawn)
    ranges = np.asarray([deviation_range(column, level, n_groups) for column in deviations.T])
    low = np.clip(main + ranges[:, 0], 0, main)
    high = np.clip(main + ranges[:, 1], main, np.maximum(main, BANDED[curve.name]))
    return replace(curve, columns={**curve.columns, "low": low, "high": high})
