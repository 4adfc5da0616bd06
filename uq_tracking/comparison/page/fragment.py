"""The table of scores for notebooks: no script, and nothing that touches the notebook's own style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uq_tracking.comparison import wording
from uq_tracking.comparison.page.markup import joined, tag, text
from uq_tracking.comparison.text import GREY_COLOR, rank_color
from uq_tracking.metrics.registry import Metric

if TYPE_CHECKING:
    from uq_tracking.comparison.result import Comparison


def comparison_fragment(comparison: Comparison) -> str:
    """A table with rank colours, warnings above and the legend below."""
    shown = comparison.shown()
    heads = [tag("th", text("method"))]
    heads += [tag("th", "<br>".join(map(text, wording.heading(metric, comparison.unit)))) for metric in shown]
    rows = [tag("tr", joined(heads))]
    for name, bounds in comparison.bounds.items():
        cells = (tag("td", tag("i", text(wording.bound_text(bounds.get(metric.key))))) for metric in shown)
        rows.append(tag("tr", tag("td", tag("i", text(name))) + joined(cells)))
    for method in comparison.methods:
        cells = (_cell(comparison, method, metric) for metric in shown)
        rows.append(tag("tr", tag("td", text(method)) + joined(cells)))
    above = joined(tag("p", tag("b", "Warning: ") + text(warning)) for warning in comparison.warnings)
    below = tag("p", tag("small", text("; ".join(wording.legend(comparison)))))
    table = tag("table", tag("caption", text(wording.headline_text(comparison))) + joined(rows))
    return tag("div", above + table + below)


def _cell(comparison: Comparison, method: str, metric: Metric) -> str:
    cell = comparison.table[method][metric.key]
    rank = f" ({cell.rank}){wording.mark(comparison, method, metric.key)}" if cell.ranked else ""
    shown = text(wording.value_text(cell)) + tag("small", text(rank))
    if cell.place is None:
        return tag("td", shown)
    background = GREY_COLOR if cell.worst else rank_color(cell.place)
    return tag(
        "td", tag("b", shown) if cell.best else shown, style=f"background: {background}; color: #1b1b1b"
    )
