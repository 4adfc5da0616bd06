"""Curves on demand: scores of strata and of intervals of the target, and what is declared elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.checks import value_text
from uq_tracking.curves.regression import best_factor, scale_sweep
from uq_tracking.curves.spec import Curve, FloatArray, finite
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.scoring import LaterReports
from uq_tracking.evaluation.subsets import by_members, stability
from uq_tracking.formatting import axis_label, format_number
from uq_tracking.inference.noise import with_chance
from uq_tracking.inputs.labels import sets_of
from uq_tracking.metrics.registry import Metric, MetricInputs, Undefined, compute, select
from uq_tracking.report import Report
from uq_tracking.settings import ScoreOptions, Settings
from uq_tracking.statistics.collecting import How, statistics_of_rows
from uq_tracking.statistics.groups import GroupTables, Label, plain_labels
from uq_tracking.statistics.layout import Layout
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import Task

MOST_STRATA = 1000
UNKNOWN_GROUPS = (
    "which samples of a stratum belong to which group is not kept, so chance cannot be told from skill"
)


def check_curves(task: Task, names: Iterable[str] | None) -> None:
    """Raise SettingsError for a curve that a task has not."""
    optional = (spec.name for spec in plugins.curves(task.name).values() if not spec.default)
    known = [*task.curves, *optional]
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise SettingsError(
            f"a {task.name} has no curve called {', '.join(unknown)}; choose from {', '.join(known)}"
        )


def with_curves(
    report: Report,
    task: Task,
    options: ScoreOptions,
    settings: Settings,
    inputs: MetricInputs,
    metrics: Sequence[Metric],
    scored: Sequence[Metric],
    tables: GroupTables | None = None,
) -> Report:
    """Add the curves that the options ask for, and those over the strata of ``by`` if the predictions have any.

    The reports of strata hold the metrics ``scored``; ``tables`` are statistics of the groups, for ``stability``.
    """
    data, how = inputs.predictions, options.statistics
    layout, declared = task.layout_for(data.facts), plugins.curves(task.name)
    statistics = inputs.statistics
    if data.by is not None:
        report = with_strata(report, strata_of(layout, data, how), settings, metrics, scored, tables)
    if options.by_target is not None:
        parts, edges = target_strata(layout, data, options.by_target, how)
        report = _with(report, by_target(parts, edges, settings, metrics))
    for name in options.curves or ():
        try:
            if name == "by_members":
                report = _with(report, by_members(task, data, settings, metrics, inputs, how))
            elif name == "stability":
                whole = compute(statistics, settings, metrics)[0]
                found = stability(layout, data, settings, metrics, whole, groups=tables, seed=inputs.seed)
                report = _with(report, *found)
            elif name == "scale_sweep":
                curve = scale_sweep(statistics, settings)
                report = _with(report, [curve], {name: _best_scale(curve)})
            else:
                made = {name: declared[name].build(statistics, settings, inputs)}
                chance = with_chance(made, statistics, task.name, settings)
                report = _with(report, chance.values())
        except Undefined as reason:
            report = _with(report, [], {name: f"not made: {reason}"})
    return report


def _with(report: Report, curves: Iterable[Curve], verdicts: Mapping[str, str] | None = None) -> Report:
    """Add the points of curves that 64-bit numbers can represent, and sentences about them."""
    whole = {curve.name: curve for curve in map(finite, curves) if len(curve.columns[curve.x])}
    return replace(
        report, curves={**report.curves, **whole}, verdicts={**report.verdicts, **(verdicts or {})}
    )


def _best_scale(sweep: Curve) -> str:
    key = "nll" if "nll" in sweep.columns else sweep.main
    factor = format_number(best_factor(sweep, key))
    return f"{key} is best with every standard deviation multiplied by {factor}"


def with_strata(
    report: Report,
    strata: Mapping[Label, Statistics],
    settings: Settings,
    metrics: Sequence[Metric],
    scored: Sequence[Metric],
    tables: GroupTables | None,
) -> Report:
    """Add one curve per metric over labelled strata, in the order of the mapping, and their reports.

    Columns ``group`` (the label itself if all are numbers, such as lead times; else its position, named in
    ``labels``), the metric's key, and ``count``; strata in which a metric is undefined are left out of its curve.
    """
    numbers = [label for label in strata if isinstance(label, int | float) and not isinstance(label, bool)]
    place = np.asarray(numbers if len(numbers) == len(strata) else range(len(strata)), dtype=float)
    names = tuple(str(label) for label in strata)
    parts = dict(zip(names, strata.values(), strict=True))
    keys = {metric.key for metric in (*scored, *metrics) if not metric.needs}
    chosen = [metric for metric in select(report.task) if metric.key in keys]
    reports = LaterReports(parts, settings, chosen, None if tables is None else UNKNOWN_GROUPS)
    curves = _curves("by_group", {"group": place}, "Group", list(parts.values()), settings, metrics, names)
    return replace(_with(report, curves), parts=reports)


def by_target(
    parts: Sequence[Statistics], edges: FloatArray, settings: Settings, metrics: Sequence[Metric]
) -> list[Curve]:
    """Return one curve per metric over intervals of the target.

    Columns ``target`` (middle), ``target_low`` and ``target_high``, the metric's key, and ``count``.

    References
    ----------
    .. [1] n-MeRCI, 2019, fig. 4 and 5: depth in intervals of 0.1 m.
    """
    low, high = edges[:-1], edges[1:]
    table = {"target": (low + high) / 2, "target_low": low, "target_high": high}
    return _curves(
        "by_target", table, axis_label("Target", "target", settings.unit), parts, settings, metrics
    )


def _curves(
    name: str,
    table: dict[str, FloatArray],
    x_label: str,
    parts: Sequence[Statistics],
    settings: Settings,
    metrics: Sequence[Metric],
    labels: tuple[str, ...] | None = None,
) -> list[Curve]:
    with np.errstate(all="ignore"):
        rows = [compute(part, settings, metrics)[0] if part.n else {} for part in parts]
    count = np.asarray([part.counts["n"] for part in parts], dtype=float)
    x, made = next(iter(table)), []
    for metric in metrics:
        kept = np.asarray([i for i, row in enumerate(rows) if metric.key in row], dtype=np.int64)
        columns = {column: values[kept] for column, values in table.items()}
        columns[metric.key] = np.asarray([rows[i][metric.key] for i in kept.tolist()])
        columns["count"] = count[kept]
        own = None if labels is None else tuple(labels[i] for i in kept.tolist())
        texts = (x_label, axis_label(metric.key, metric.unit, settings.unit), f"{metric.key} by {x}")
        made.append(Curve(f"{name}_{metric.key}", columns, x, metric.key, *texts, metric.key, kept, own))
    return made


def strata_of(layout: Layout, data: Any, how: How = "auto") -> dict[Label, Statistics]:
    """Return the statistics of each label of ``by``."""
    labels, codes = data.label_codes("by")
    used, codes = np.unique(data.select(codes), return_inverse=True)
    strata: dict[Label, Statistics] = {}
    for names, place in sets_of(plain_labels(labels[used])):
        _check_number(len(names), "by has", "labels")
        strata |= zip(names, _split(layout, data, place[codes], len(names), how), strict=True)
    return strata


def target_strata(
    layout: Layout, data: Any, width: float | Sequence[float] | npt.NDArray[Any], how: How = "auto"
) -> tuple[list[Statistics], FloatArray]:
    """Return statistics in intervals of the target, and their edges: all that are given, or multiples of a width.

    Targets outside are left out; the last interval includes its upper edge.
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
    """Return statistics of the samples of each code 0 ... size - 1."""
    order = np.argsort(codes, kind="stable")
    cuts = np.searchsorted(codes[order], np.arange(size + 1)).tolist()
    rows = data.rows()
    parts = (
        {name: column[order[start:end]] for name, column in rows.items()} for start, end in pairwise(cuts)
    )
    return [statistics_of_rows(layout, part, data.facts, how) for part in parts]
