"""Numbers, marks and sentences that all outputs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uq_tracking.comparison.bounds import Bound
from uq_tracking.comparison.columns import ACCURACY, family
from uq_tracking.comparison.ranks import Cell
from uq_tracking.metrics.registry import Metric
from uq_tracking.tables import better_text, unit_text

if TYPE_CHECKING:
    from uq_tracking.comparison.differences import Difference
    from uq_tracking.comparison.result import Comparison

BEST, WORST, TIED = "*", "!", "="
VERDICTS = {"better": "+", "worse": "-", "not told apart": "=", "unknown": "?"}
NO_VALUE = "-"
DISAGREES = 0.5
"""A tau below this is worth a line: then more than a quarter of the pairs of methods change places."""


def number(value: float, digits: int = 3) -> str:
    """So many significant digits, trailing zeros kept so that columns can be compared.

    >>> number(0.5), number(12345.6), number(0.0), number(1e-7)
    ('0.500', '12346', '0', '1.00e-07')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if 10 ** (digits - 1) <= size < 1e6:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}" if 1e-4 <= size < 1e6 else f"{value:.{digits - 1}e}"


def value_text(cell: Cell) -> str:
    """Mean and spread of a cell."""
    if cell.value is None:
        return NO_VALUE
    spread = "" if cell.spread is None else f" ± {number(cell.spread, 2)}"
    return number(cell.value) + spread


def bound_text(bound: Bound | None) -> str:
    """A bound, or its range over the runs."""
    if bound is None:
        return NO_VALUE
    return number(bound.low) if bound.common else f"{number(bound.low)} .. {number(bound.high)}"


def mark(comparison: Comparison, method: str, key: str) -> str:
    """The sign behind a cell, for eyes and terminals without colour."""
    cell = comparison.table[method][key]
    if cell.best:
        return BEST
    if method in comparison.tied_with_best.get(key, ()):
        return TIED
    return WORST if cell.worst else ""


def heading(metric: Metric, unit: str | None) -> tuple[str, str, str]:
    """Key, unit and which values are better."""
    return metric.key, unit_text(metric.unit, unit), better_text(metric)


def interval_text(interval: tuple[float, float] | None) -> str:
    """A confidence interval in square brackets."""
    return "" if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"


def difference_text(difference: Difference) -> str:
    """A difference with its sign and what the interval says of it."""
    sign = "+" if difference.value > 0 else ""
    return f"{sign}{number(difference.value)} {VERDICTS[difference.verdict]}"


def headline_text(comparison: Comparison) -> str:
    """What was compared, in one line."""
    methods, runs = len(comparison.groups), len(comparison.runs)
    counts = sorted({run.report.counts.get("n", 0) for run in comparison.runs})
    samples = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return (
        f"{methods} method{'s' * (methods != 1)}, {runs} run{'s' * (runs != 1)}, {samples} samples each; "
        f"{comparison.task}"
    )


def intervals_used(comparison: Comparison) -> list[str]:
    """The ways in which intervals of differences were made, for the legend."""
    return sorted({d.how for d in (*comparison.differences, *comparison.ties) if d.how != "none"})


def legend(comparison: Comparison, *, ranks: bool = True) -> list[str]:
    """What the marks mean; only those that occur."""
    lines = [f"{'rank in brackets; ' if ranks else ''}{BEST} best, {WORST} worst"]
    if any(comparison.tied_with_best.values()):
        lines[0] += f", {TIED} not told apart from the best at {comparison.level:.0%}"
    used = intervals_used(comparison)
    if used:
        lines.append(f"intervals of differences: {', '.join(used)}")
    elif len(comparison.groups) > 1:
        lines.append(
            "single runs without confidence intervals: whether methods differ by more than chance is not known"
        )
    if any(cell.spread is not None for row in comparison.table.values() for cell in row.values()):
        lines.append("mean ± standard deviation over the runs of a method")
    return lines


def disagreement(comparison: Comparison, metrics: Sequence[Metric], most: int = 3) -> str | None:
    """The pairs of metrics of the uncertainty that rank the methods most unlike, in one line."""
    keys = [metric.key for metric in metrics if family(metric) != ACCURACY]
    pairs = [pair for pair in comparison.agreement.pairs(keys) if pair[2] < DISAGREES][:most]
    if not pairs:
        return None
    texts = (f"{one} / {other} {tau:+.2f}" for one, other, tau in pairs)
    return f"metrics that rank the methods differently (Kendall's tau): {', '.join(texts)}"
