"""The tables of a comparison: methods by metrics, with ranks and bounds, and differences to the baseline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from uq_tracking.comparison.bounds import Bound
from uq_tracking.comparison.metrics import ACCURACY, family
from uq_tracking.comparison.over_runs import MOSTLY, found_mostly
from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.formatting import format_number
from uq_tracking.metrics.registry import Metric
from uq_tracking.tables.before_after import BEFORE
from uq_tracking.tables.model import NO_VALUE, Cell, Mark, Row, Table, metric_column

if TYPE_CHECKING:
    from uq_tracking.comparison.result import Comparison

TIE = 1e-9
"""Numbers within this relative difference share a rank: summing in another order can change them this much."""
DISAGREES = 0.5
"""A tau below this is worth a line: more than a quarter of the pairs of methods swap places."""

HALF = "half"
"""Note on scores of the half of the samples to which a recalibration was not fitted."""


def mean_loss(runs: Sequence[ScoredRun], metric: Metric) -> float | None:
    """Mean over the runs of the value, transformed so that lower is better; with a target, of the distances to it.

    Infinite if it is so for one of the runs. Two runs that miss a target on either side are not as good as two that
    meet it. A score better than its oracle's is no merit and does not rank (`Metric.below_oracle`).
    """
    if any(metric.below_oracle(run.report.scores) for run in runs):
        return None
    losses = [metric.loss(value) for value in _values(runs, metric)]
    return statistics.fmean(losses) if losses else None


def ranks(losses: Mapping[str, float]) -> dict[str, int]:
    """Rank of each name, 1 for the lowest loss; losses that differ only by rounding share a rank."""
    found: dict[str, int] = {}
    first, rank = 0.0, 0
    for place, name in enumerate(sorted(losses, key=losses.__getitem__), start=1):
        loss = losses[name]
        least = TIE * abs(first) if math.isinf(loss) else TIE * max(abs(loss), abs(first))
        if rank == 0 or loss - first > least:
            first, rank = loss, place
        found[name] = rank
    return found


def score_table(comparison: Comparison) -> Table:
    """Methods by metrics: bounds above, single runs and recalibrated scores below their method."""
    metrics = comparison.ordered_metrics
    return Table(
        corner="method",
        columns=tuple(
            metric_column(m, comparison.unit, family(m), headline=m.key in comparison.headline)
            for m in metrics
        ),
        rows=(*_bound_rows(comparison), *_method_rows(comparison, metrics)),
        title=_title(comparison),
        lead=tuple(f"{name}: {verdict.text}" for name, verdict in comparison.verdicts.items()),
        warnings=comparison.warnings,
        notes=tuple(_legend(comparison)),
        remarks=tuple(f"skipped {run.label}: {run.reason}" for run in comparison.skipped),
    )


def difference_table(comparison: Comparison) -> Table:
    """Every method minus the baseline, for the metrics that judge."""
    metrics = [metric for metric in comparison.ordered_metrics if metric.direction is not None]
    others = [name for name in comparison.methods if name != comparison.baseline]
    rows = tuple(
        Row(name, {metric.key: _difference(comparison, name, metric) for metric in metrics})
        for name in others
    )
    return Table(
        corner="method",
        columns=tuple(
            metric_column(m, comparison.unit, family(m), headline=m.key in comparison.headline)
            for m in metrics
        ),
        rows=rows,
        title=f"difference to {comparison.baseline}",
        notes=tuple(_difference_legend(comparison)),
    )


def _difference_legend(comparison: Comparison) -> Iterator[str]:
    yield f"better, worse or = not distinguishable at {comparison.level:.0%}; ? no interval"
    if any(found.effect is not None for found in comparison.differences):
        yield "d: the difference over the standard deviation of differences of groups, or of runs"


def _difference(comparison: Comparison, method: str, metric: Metric) -> Cell:
    found = comparison.difference(method, metric.key)
    if found is None:
        return _infinite_difference(comparison, method, metric)
    return Cell(
        found.value,
        words=found.how,
        interval=found.interval,
        mark=found.verdict,
        relative=found.relative,
        effect=found.effect,
    )


def _infinite_difference(comparison: Comparison, method: str, metric: Metric) -> Cell:
    """Of a method or baseline with an infinite loss, but not of both; else nothing."""
    names = (method, comparison.baseline)
    mine, theirs = (None if name is None else mean_loss(comparison.groups[name], metric) for name in names)
    if mine is None or theirs is None or math.isinf(mine) == math.isinf(theirs):
        return Cell()
    gap = theirs - mine if metric.direction == "higher" else mine - theirs
    return Cell(gap, words="none", mark="unknown")


def _bound_rows(comparison: Comparison) -> Iterator[Row]:
    for name, bounds in comparison.bounds.items():
        yield Row(name, {m.key: _bound(bounds.get(m.key)) for m in comparison.metrics}, "bound")


def _bound(bound: Bound | None) -> Cell:
    if bound is None:
        return Cell()
    return Cell(bound.low, upper=None if bound.common else bound.high)


def _method_rows(comparison: Comparison, metrics: Sequence[Metric]) -> Iterator[Row]:
    columns = {metric.key: _column(comparison, metric) for metric in metrics}
    for name, runs in comparison.groups.items():
        notes = [f"{len(runs)} runs"] * (len(runs) > 1) + ["baseline"] * (name == comparison.baseline)
        yield Row(name, {key: cells[name] for key, cells in columns.items()}, notes=tuple(notes))
        of = (HALF,) if any(run.of_half for run in runs) else ()
        for method, scores in _recalibrated(runs).items():
            cells = {m.key: _mean([found[m.key] for found in scores if m.key in found]) for m in metrics}
            yield Row(f"{name}, {method}", cells, "recalibrated", of)
        for run in runs if len(runs) > 1 else ():
            yield Row(run.label, {m.key: _run_cell(run, m) for m in metrics}, "run")


def _column(comparison: Comparison, metric: Metric) -> dict[str, Cell]:
    """The cells of one metric, by method."""
    groups = comparison.groups
    losses = {name: loss for name, runs in groups.items() if (loss := mean_loss(runs, metric)) is not None}
    places = ranks(losses) if metric.direction is not None else {}
    last = max(places.values(), default=None)
    tied = comparison.tied_with_best.get(metric.key, frozenset())
    return {
        name: _method_cell(runs, metric, places.get(name), last, name in tied)
        for name, runs in groups.items()
    }


def _method_cell(
    runs: Sequence[ScoredRun], metric: Metric, rank: int | None, last: int | None, tied: bool
) -> Cell:
    values = _values(runs, metric)
    if not values:
        return Cell(of=len(runs), reason=_reason(runs, metric.key))
    single = runs[0].report.intervals.get(metric.key) if len(runs) == 1 else None
    mean = statistics.fmean(values)
    return Cell(
        value=mean,
        spread=statistics.stdev(values) if len(values) > 1 and math.isfinite(mean) else None,
        runs=len(values),
        of=len(runs),
        interval=None if single is None else (single[0], single[1]),
        rank=rank,
        worst_rank=None if rank is None else last,
        mark=_mark(rank, last, tied),
        reason=None if math.isfinite(mean) else _reason(runs, metric.key),
    )


def _mark(rank: int | None, last: int | None, tied: bool) -> Mark | None:
    if rank is None or last is None or last == 1:
        return None
    if rank == 1:
        return "best"
    if tied:
        return "tied"
    return "worst" if rank == last else None


def _run_cell(run: ScoredRun, metric: Metric) -> Cell:
    interval, reason = run.report.intervals.get(metric.key), run.report.undefined.get(metric.key)
    return Cell(run.score(metric), runs=1, interval=interval, reason=reason)


def _recalibrated(runs: Sequence[ScoredRun]) -> dict[str, list[Mapping[str, float]]]:
    """Scores after each recalibration stored in a method's runs; of one half, first those of this half before."""
    found: dict[str, list[Mapping[str, float]]] = {BEFORE: []}
    for run in runs:
        entries = run.report.scored_methods()
        found[BEFORE] += [entry["before"] for entry in entries.values() if "before" in entry][:1]
        for method, entry in entries.items():
            found.setdefault(method, []).append(entry["scores"])
    return {name: scores for name, scores in found.items() if scores}


def _mean(values: Sequence[float]) -> Cell:
    if not values:
        return Cell()
    spread = statistics.stdev(values) if len(values) > 1 else None
    return Cell(statistics.fmean(values), spread=spread, runs=len(values))


def _values(runs: Iterable[ScoredRun], metric: Metric) -> list[float]:
    return [value for run in runs if (value := run.score(metric)) is not None]


def _reason(runs: Sequence[ScoredRun], key: str) -> str:
    reasons = {run.report.undefined[key] for run in runs if key in run.report.undefined}
    return "; ".join(sorted(reasons)) or "not computed"


def _title(comparison: Comparison) -> str:
    """What was compared, in one line."""
    methods, runs = len(comparison.groups), len(comparison.runs)
    counts = sorted({run.report.counts.get("n", 0) for run in comparison.runs})
    samples = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return (
        f"{methods} method{'s' * (methods != 1)}, {runs} run{'s' * (runs != 1)}, {samples} samples each; "
        f"{comparison.task}"
    )


def _legend(comparison: Comparison) -> Iterator[str]:
    """What the marks mean, for those that occur."""
    tied = any(len(names) > 1 for names in comparison.tied_with_best.values())
    yield "* best, ! worst" + (
        f", = not distinguishable from the best at {comparison.level:.0%}" if tied else ""
    )
    yield from _seen_by_runs(comparison)
    used = intervals_used(comparison)
    if used:
        yield f"intervals of differences: {', '.join(used)}"
    elif len(comparison.groups) > 1:
        yield (
            "single runs without confidence intervals: it is not known whether methods differ by more than chance; "
            "log with groups=, or log three runs of each method"
        )
    if any(len(runs) > 1 for runs in comparison.groups.values()):
        yield "mean ± standard deviation over the runs of a method"


def _seen_by_runs(comparison: Comparison) -> Iterator[str]:
    """How large a difference to the best must be to be seen, where it is judged by the spread over runs."""
    by_key: dict[str, set[str]] = {}
    for tie in comparison.ties:
        if tie.how == "over runs":
            by_key.setdefault(tie.metric, set()).update((tie.method, tie.reference))
    if not by_key:
        return
    names = max(by_key.values(), key=len)
    runs = min(len(comparison.groups[name]) for name in names)
    least = found_mostly(runs, comparison.level, len(names))
    yield (
        f"with {runs} runs of each of {len(names)} methods, a difference to the best is found in {MOSTLY:.0%} of "
        f"cases if it is {format_number(least, 2)} standard deviations of the runs, smaller ones less often"
    )


def without_value(table: Table) -> dict[str, str]:
    """What a score without a finite value is shown as, and what this means, where another method has one."""
    rows = [row for row in table.rows if row.kind == "method"]
    cells = [[row[column.key] for row in rows] for column in table.columns if column.better]
    found = {}
    if any(0 < sum(cell.infinite for cell in column) < len(column) for column in cells):
        found["inf"] = "infinite, so it ranks last"
    if any(0 < sum(cell.value is None for cell in column) < len(column) for column in cells):
        found[NO_VALUE] = "no value, so no rank"
    return found


def intervals_used(comparison: Comparison) -> list[str]:
    """How intervals of differences were made, for the legend."""
    return sorted({d.how for d in (*comparison.differences, *comparison.ties) if d.how != "none"})


def disagreement(comparison: Comparison, metrics: Sequence[Metric], most: int = 3) -> str | None:
    """The pairs of uncertainty metrics whose rankings of the methods differ most, in one line."""
    keys = [metric.key for metric in metrics if family(metric) != ACCURACY]
    pairs = [pair for pair in comparison.agreement.pairs(keys) if pair[2] < DISAGREES][:most]
    if not pairs:
        return None
    texts = (f"{one} / {other} {tau:+.2f}" for one, other, tau in pairs)
    return f"metrics that rank the methods differently (Kendall's tau): {', '.join(texts)}"
