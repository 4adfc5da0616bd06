"""Bands around curves, from the points of a curve without each set of groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special
from scipy.ndimage import median_filter

from uq_tracking import plugins
from uq_tracking.curves import Curve, CurveSpec
from uq_tracking.inference import read
from uq_tracking.inference.leave_out import FEWEST_GROUPS, set_weights
from uq_tracking.inference.limits import Influence
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.orders import FloatArray
from uq_tracking.statistics.statistics import resampled


def banded(
    curves: dict[str, Curve], tables: GroupTables, settings: Settings, level: float = 0.95
) -> dict[str, Curve]:
    """Add ``low`` and ``high`` of pointwise intervals to the curves that are declared with a ceiling.

    Samples from one image are not independent, so a band over images replaces the band for independent samples that
    calibration and coverage otherwise have. With fewer than eight groups nothing changes.
    """
    specs = plugins.curves(tables.layout.task)
    wanted = [
        name for name in curves if name in specs and specs[name].ceiling is not None and not specs[name].needs
    ]
    if len(tables) < FEWEST_GROUPS or not wanted:
        return curves
    points: dict[str, list[FloatArray]] = {name: [] for name in wanted}
    with np.errstate(all="ignore"):
        for one in resampled(tables, set_weights(len(tables))):
            for name in wanted:
                _add_points(points[name], specs[name], one, settings)
    freedom = read.group_freedom(read.of_groups(tables))
    made = {
        name: _with_band(curves[name], points[name], level, specs[name].ceiling, freedom) for name in wanted
    }
    return {**curves, **made}


def _add_points(points: list[FloatArray], spec: CurveSpec, statistics: object, settings: Settings) -> None:
    try:
        points.append(spec.function(statistics, settings)[spec.y])
    except Undefined:
        return  # without these groups the curve has no points, which says nothing about their spread


def _with_band(
    curve: Curve, points: list[FloatArray], level: float, ceiling: float | None, freedom: float
) -> Curve:
    main = curve.columns[curve.main]
    points = [each for each in points if len(each) == len(main)]
    if len(points) < FEWEST_GROUPS:
        return curve
    moves = [Influence.left_out(column, freedom) for column in np.asarray(points).T]
    # The degrees of freedom of a single point are poorly known, those of its neighborhood well; the skewness is
    # known so poorly that correcting for it makes bands wider and jagged without improving coverage.
    known = median_filter([each.freedom for each in moves], len(main) // 10 * 2 + 1, mode="nearest")
    reach = -special.stdtrit(known, (1 - level) / 2) * [each.standard_error for each in moves]
    if not np.isfinite(reach).all():  # squares overflow: nothing is known about any band
        columns = {name: column for name, column in curve.columns.items() if name not in ("low", "high")}
        return replace(curve, columns=columns)
    low = np.clip(main - reach, 0, main)
    high = np.clip(main + reach, main, np.maximum(main, np.inf if ceiling is None else ceiling))
    return replace(curve, columns={**curve.columns, "low": low, "high": high})
