"""Metrics in strata of the samples: by label, or by interval of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.checks import value_text
from uq_tracking.curves.curve import Curve, FloatArray
from uq_tracking.errors import SettingsError
from uq_tracking.formatting import axis_label
from uq_tracking.metrics.registry import Metric, compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import How, statistics_of_rows
from uq_tracking.statistics.group_pooling import Label
from uq_tracking.statistics.group_tally import plain_labels
from uq_tracking.statistics.layout import Layout
from uq_tracking.statistics.statistics import Statistics

MOST_STRATA = 1000


def by_group(
    strata: Mapping[Label, Statistics], settings: Settings, metrics: Sequence[Metric]
) -> list[Curve]:
    """One curve per metric over labelled strata, in the order of the mapping.

    Columns ``group`` (the label itself if all are numbers, such as lead times; else its position, named in
    ``labels``), the metric's key, and ``count``; strata in which a metric is undefined are left out of its curve.
    """
    numbers = [label for label in strata if isinstance(label, int | float) and not isinstance(label, bool)]
    place = np.asarray(numbers if len(numbers) == len(strata) else range(len(strata)), dtype=float)
    names = tuple(str(label) for label in strata)
    parts = list(strata.values())
    return _curves("by_group", {"group": place}, "group", "Group", parts, settings, metrics, names)


def by_target(
    parts: Sequence[Statistics], edges: FloatArray, settings: Settings, metrics: Sequence[Metric]
) -> list[Curve]:
    """One curve per metric over intervals of the target.

    Columns ``target`` (middle), ``target_low`` and ``target_high``, the metric's key, and ``count``.

    References
    ----------
    .. [1] n-MeRCI, 2019, fig. 4 and 5: depth in intervals of 0.1 m.
    """
    low, high = edges[:-1], edges[1:]
    table = {"target": (low + high) / 2, "target_low": low, "target_high": high}
    x_label = axis_label("Target", "target", settings.unit)
    return _curves("by_target", table, "target", x_label, parts, settings, metrics, None)


def _curves(
    name: str,
    table: dict[str, FloatArray],
    x: str,
    x_label: str,
    parts: Sequence[Statistics],
    settings: Settings,
    metrics: Sequence[Metric],
    labels: tuple[str, ...] | None,
) -> list[Curve]:
    with np.errstate(all="ignore"):
        rows = [compute(part, settings, metrics)[0] if part.n else {} for part in parts]
    count = np.asarray([part.counts["n"] for part in parts], dtype=float)
    made = []
    for metric in metrics:
        kept = np.asarray([i for i, row in enumerate(rows) if metric.key in row], dtype=np.int64)
        if not len(kept):
            continue
        columns = {column: values[kept] for column, values in table.items()}
        columns[metric.key] = np.asarray([rows[i][metric.key] for i in kept.tolist()])
        columns["count"] = count[kept]
        own = None if labels is None else tuple(labels[i] for i in kept.tolist())
        y_label = axis_label(metric.key, metric.unit, settings.unit)
        texts = (x_label, y_label, f"{metric.key} by {x}")
        made.append(Curve(f"{name}_{metric.key}", columns, x, metric.key, *texts, metric.key, kept, own))
    return made


def strata_of(layout: Layout, data: Any, how: How = "auto") -> dict[Label, Statistics]:
    """Statistics of each label of ``by``, of the same kind as those of the whole."""
    labels, codes = data.label_codes("by")
    used, codes = np.unique(data.select(codes), return_inverse=True)
    _check_number(len(used), "by has", "labels")
    parts = _split(layout, data, codes, len(used), how)
    return dict(zip(plain_labels(labels[used]), parts, strict=True))


def target_strata(
    layout: Layout, data: Any, width: float | Sequence[float] | npt.NDArray[Any], how: How = "auto"
) -> tuple[list[Statistics], FloatArray]:
    """Statistics in intervals of the target, and the intervals' edges.

    Parameters
    ----------
    layout, data
        What the statistics consist of, and predictions of a regression.
    width : float or ascending sequence of floats
        Width of the intervals, which start at multiples of it, or all edges. Targets outside are left out; the last
        interval includes its upper edge.
    how : {"auto", "exact", "sketch"}

    Raises
    ------
    SettingsError
        The width is not positive, the edges do not ascend, or there are more than 1000 intervals.
    """
    target = data.rows()["target"].astype(np.float64)
    edges = _edges(width, float(target.min()), float(target.max()))
    codes = np.searchsorted(edges, target, side="right") - 1
    codes[target == edges[-1]] = len(edges) - 2
    return _split(layout, data, codes, len(edges) - 1, how), edges


def _edges(width: Any, low: float, high: float) -> FloatArray:
    try:
        edges = np.asarray(width, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise SettingsError(f"by_target is {value_text(width)}; pass a width above 0, or edges") from None
    if edges.ndim == 0:
        step = float(edges)
        if not 0 < step < np.inf:
            raise SettingsError(f"by_target is {width}; pass a width above 0, or edges")
        first, last = np.floor(low / step), np.floor(high / step) + 1
        _check_number(last - first, f"by_target={step:g} makes", "intervals")
        return np.arange(first, last + 1) * step
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise SettingsError("by_target edges must ascend; pass at least two, or a single width")
    _check_number(len(edges) - 1, "by_target has", "intervals")
    return edges


def _check_number(number: float, has: str, what: str) -> None:
    if number > MOST_STRATA:
        raise SettingsError(f"{has} {number:.0f} {what}; pass at most {MOST_STRATA}")


def _split(layout: Layout, data: Any, codes: npt.NDArray[Any], size: int, how: How) -> list[Statistics]:
    """Statistics of the samples of each code 0 ... size - 1."""
    order = np.argsort(codes, kind="stable")
    cuts = np.searchsorted(codes[order], np.arange(size + 1)).tolist()
    rows = data.rows()
    parts = (
        {name: column[order[start:end]] for name, column in rows.items()} for start, end in pairwise(cuts)
    )
    return [statistics_of_rows(layout, part, data.facts, how) for part in parts]
