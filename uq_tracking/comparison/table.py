"""The tables of a comparison: methods by metrics, with ranks and bounds, and differences to the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

from scipy import special

from uq_tracking.comparison.comparability import NAMED
from uq_tracking.comparison.differences import MANY_RUNS, MOSTLY, SKILLS, Difference, found_mostly
from uq_tracking.comparison.facts import Facts, family
from uq_tracking.comparison.runs import ScoredRun, SkippedRun, mean_losses, values_of
from uq_tracking.formatting import format_number, some_of
from uq_tracking.metrics.registry import FAMILIES, Metric
from uq_tracking.tables import NO_VALUE, Cell, Column, Mark, Row, Table, metric_column
from uq_tracking.tables.report import BEFORE

DISAGREES = 0.5
"""A tau below this is worth a line: more than a quarter of the pairs of methods swap places."""

HALF = "half"
"""Note on scores of the half of the samples to which a recalibration was not fitted."""


def score_table(facts: Facts) -> Table:
    """Return methods by metrics: bounds above, single runs and recalibrated scores below their method."""
    methods, runs = len(facts.groups), len(facts.runs)
    counts = sorted({run.report.counts.get("n", 0) for run in facts.runs})
    samples = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return Table(
        corner="method",
        columns=_columns(facts, facts.ordered_metrics),
        rows=(*_bound_rows(facts), *_method_rows(facts)),
        title=f"{methods} method{'s' * (methods != 1)}, {runs} run{'s' * (runs != 1)}, {samples} samples each; "
        f"{facts.task}",
        lead=tuple(f"{name}: {verdict.text}" for name, verdict in facts.verdicts.items()),
        warnings=facts.warnings,
        notes=tuple(_legend(facts)),
        remarks=tuple(
            f"skipped {names}: {reason}" for reason, names in skipped_by_reason(facts.skipped).items()
        ),
    )


def skipped_by_reason(skipped: Sequence[SkippedRun]) -> dict[str, str]:
    """Return the names of the runs that were skipped for each reason."""
    found: dict[str, list[str]] = {}
    for run in skipped:
        found.setdefault(run.reason, []).append(run.label)
    return {reason: some_of(names, NAMED) for reason, names in found.items()}


def difference_table(facts: Facts) -> Table:
    """Return every method minus the baseline, for the metrics that judge."""
    metrics = [metric for metric in facts.ordered_metrics if metric.direction is not None]
    skills = {name: key for key, name in SKILLS.items() if any(d.metric == name for d in facts.differences)}
    notes = [f"better, worse or = not distinguishable at {facts.level:.0%}; ? no interval"]
    if any(found.effect is not None for found in facts.differences):
        notes.append("d: the difference over the standard deviation of differences of groups, or of runs")
    return Table(
        corner="method",
        columns=(
            *(Column(name, "%", "higher", headline=key in facts.headline) for name, key in skills.items()),
            *_columns(facts, metrics),
        ),
        rows=tuple(
            Row(
                name,
                {key: _stated(facts.difference(name, key), 100) for key in skills}
                | {metric.key: _difference(facts, name, metric) for metric in metrics},
            )
            for name in next((part for part in facts.parts if facts.baseline in part), {})
            if name != facts.baseline
        ),
        title=f"difference to {facts.baseline}",
        notes=tuple(notes),
    )


def _columns(facts: Facts, metrics: Sequence[Metric]) -> tuple[Column, ...]:
    return tuple(
        metric_column(metric, facts.unit, family(metric), headline=metric.key in facts.headline)
        for metric in metrics
    )


def _difference(facts: Facts, method: str, metric: Metric) -> Cell:
    if (found := facts.difference(method, metric.key)) is not None:
        return _stated(found)
    losses = mean_losses(facts.groups, metric)
    mine, theirs = losses.get(method), losses.get(facts.baseline or "")
    if mine is None or theirs is None or math.isinf(mine) == math.isinf(theirs):
        return Cell()
    gap = theirs - mine if metric.direction == "higher" else mine - theirs
    return Cell(gap, words="none", mark="unknown")


def _stated(found: Difference | None, times: float = 1.0) -> Cell:
    """Return the cell of a difference; of a skill, ``times`` 100, in per cent."""
    if found is None:
        return Cell()
    ends = None if found.interval is None else (times * found.interval[0], times * found.interval[1])
    made = Cell(times * found.value, words=found.how, interval=ends, mark=found.verdict)
    return replace(made, relative=found.relative, effect=found.effect)


def _bound_rows(facts: Facts) -> Iterator[Row]:
    for name, bounds in facts.bounds.items():
        cells = {
            key: Cell(bound.low, upper=None if bound.common else bound.high) for key, bound in bounds.items()
        }
        yield Row(name, {m.key: cells.get(m.key, Cell()) for m in facts.metrics}, "bound")


def _method_rows(facts: Facts) -> Iterator[Row]:
    metrics = facts.ordered_metrics
    for name, runs in facts.groups.items():
        notes = [f"{len(runs)} runs"] * (len(runs) > 1) + ["baseline"] * (name == facts.baseline)
        yield Row(name, {m.key: _method_cell(facts, name, m) for m in metrics}, notes=tuple(notes))
        of = (HALF,) if any(run.of_half for run in runs) else ()
        for method, scores in _recalibrated(runs).items():
            cells = {m.key: _cell([found[m.key] for found in scores if m.key in found]) for m in metrics}
            yield Row(f"{name}, {method}", cells, "recalibrated", of)
        for run in runs if len(runs) > 1 else ():
            known, why = run.report.intervals, run.report.undefined
            cells = {
                m.key: _cell(values_of([run], m), interval=known.get(m.key), reason=why.get(m.key))
                for m in metrics
            }
            yield Row(run.label, cells, "run")


def _cell(values: Sequence[float], **known: Any) -> Cell:
    """Return the mean of values and their spread, and what else is known."""
    if not values:
        return Cell(**known)
    mean = fmean(values)
    spread = stdev(values) if len(values) > 1 and math.isfinite(mean) else None
    return Cell(mean, spread=spread, runs=len(values), **known)


def _method_cell(facts: Facts, name: str, metric: Metric) -> Cell:
    runs, places = facts.groups[name], facts.ranks[metric.key]
    part = next(part for part in facts.parts if name in part)
    rank, last = places.get(name), max((places[other] for other in part if other in places), default=None)
    reasons = {run.report.undefined[metric.key] for run in runs if metric.key in run.report.undefined}
    values = values_of(runs, metric)
    return _cell(
        values,
        of=len(runs),
        interval=runs[0].report.intervals.get(metric.key)
        if len(runs) == 1
        else _over_runs(values, facts.level, metric),
        rank=rank,
        worst_rank=None if rank is None else last,
        mark=_mark(rank, last, name in facts.tied_with_best.get(metric.key, ())),
        reason=None
        if values and math.isfinite(fmean(values))
        else "; ".join(sorted(reasons)) or "not computed",
    )


def _over_runs(values: Sequence[float], level: float, metric: Metric) -> tuple[float, float] | None:
    """Return Student's interval of the mean over runs, within the metric's bounds; None of fewer than three."""
    if len(values) < MANY_RUNS or not math.isfinite(fmean(values)):
        return None
    half = float(special.stdtrit(len(values) - 1, (1 + level) / 2)) * stdev(values) / math.sqrt(len(values))
    return max(fmean(values) - half, metric.bounds[0]), min(fmean(values) + half, metric.bounds[1])


def _mark(rank: int | None, last: int | None, is_tied: bool) -> Mark | None:
    if rank is None or last == 1:
        return None
    if rank == 1:
        return "best"
    if is_tied:
        return "tied"
    return "worst" if rank == last else None


def _recalibrated(runs: Sequence[ScoredRun]) -> dict[str, list[Mapping[str, float]]]:
    """Return scores after each recalibration in a method's runs; of one half, first those of this half before."""
    found: dict[str, list[Mapping[str, float]]] = {BEFORE: []}
    for run in runs:
        entries = run.report.scored_methods()
        found[BEFORE] += [entry["before"] for entry in entries.values() if "before" in entry][:1]
        for method, entry in entries.items():
            found.setdefault(method, []).append(entry["scores"])
    return {name: scores for name, scores in found.items() if scores}


def _legend(facts: Facts) -> Iterator[str]:
    """Yield what the marks mean, for those that occur."""
    tied = any(len(names) > 1 for names in facts.tied_with_best.values())
    yield "* best, ! worst" + (f", = not distinguishable from the best at {facts.level:.0%}" if tied else "")
    yield from _seen_by_runs(facts)
    used = intervals_used(facts)
    if used:
        named = (f"{how} (on this test set)" if how == "over runs" else how for how in used)
        yield f"intervals of differences: {', '.join(named)}"
        lacking = [
            metric.key for metric in facts.shown() if metric.direction is not None and not metric.means
        ]
        if used == ["paired blocks"] and lacking:
            yield f"no intervals of {', '.join(lacking)}: no function of mean losses, so needs groups= or order="
    elif len(facts.groups) > 1:
        yield (
            "single runs without confidence intervals: it is not known whether methods differ by more than chance; "
            "log with groups=, or log two or more runs of each method"
        )
    if any(len(runs) > 1 for runs in facts.groups.values()):
        yield "mean ± standard deviation over the runs of a method"


def _seen_by_runs(facts: Facts) -> Iterator[str]:
    """Yield how large a difference to the best must be to be seen, where it is judged by the spread over runs."""
    by_key: dict[str, set[str]] = {}
    for tie in facts.ties:
        if tie.how == "over runs":
            by_key.setdefault(tie.metric, set()).update((tie.method, tie.reference))
    if not by_key:
        return
    names = max(by_key.values(), key=len)
    runs = min(len(facts.groups[name]) for name in names)
    least = found_mostly(runs, facts.level, len(names))
    yield (
        f"with {runs} runs of each of {len(names)} methods, a difference to the best is found in {MOSTLY:.0%} of "
        f"cases if it is {format_number(least, 2)} standard deviations of the runs, smaller ones less often"
    )


def without_value(table: Table) -> dict[str, str]:
    """Return what a score without a finite value is shown as, and what this means, where another method has one."""
    rows = [row for row in table.rows if row.kind == "method"]
    cells = [[row[column.key] for row in rows] for column in table.columns if column.better]
    found = {}
    if any(0 < sum(cell.infinite for cell in column) < len(column) for column in cells):
        found["inf"] = "infinite, so it ranks last"
    if any(0 < sum(cell.value is None for cell in column) < len(column) for column in cells):
        found[NO_VALUE] = "no value, so no rank"
    return found


def intervals_used(facts: Facts) -> list[str]:
    """Return how intervals of differences were made, for the legend."""
    return sorted({d.how for d in (*facts.differences, *facts.ties) if d.how != "none"})


def disagreement(facts: Facts, metrics: Sequence[Metric], most: int = 3) -> str | None:
    """Return the pairs of uncertainty metrics whose rankings of the methods differ most, in one line."""
    keys = [metric.key for metric in metrics if family(metric) != FAMILIES["accuracy"]]
    pairs = [pair for pair in facts.agreement.pairs(keys) if pair[2] < DISAGREES][:most]
    if not pairs:
        return None
    texts = (f"{one} / {other} {tau:+.2f}" for one, other, tau in pairs)
    return f"metrics that rank the methods differently (Kendall's tau): {', '.join(texts)}"
