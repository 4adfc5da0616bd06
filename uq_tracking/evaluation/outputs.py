"""Several outputs of one model, along the last axis: scored each on its own, shown side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from uq_tracking.report import Report
from uq_tracking.tables import format_number


@dataclass(frozen=True, eq=False)
class Reports(Mapping[str, Report]):
    """A report per output, in the order of the outputs.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> boxes = uq.evaluate([[0.0, 5.0], [1.0, 6.0]], [[0.1, 4.0], [0.8, 6.5]], [[0.1, 1.0], [0.2, 1.0]],
    ...                     outputs=["x", "y"], metrics=["mae", "rmse"])
    >>> round(boxes["y"].scores["mae"], 3)
    0.75
    >>> print(boxes)
    output       x       y
    mae       0.15    0.75
    rmse    0.1581  0.7906
    """

    reports: Mapping[str, Report]

    def __getitem__(self, output: str) -> Report:
        return self.reports[output]

    def __iter__(self) -> Iterator[str]:
        return iter(self.reports)

    def __len__(self) -> int:
        return len(self.reports)

    def rows(self) -> list[tuple[str, ...]]:
        """A heading and one row per score: the key and its value for every output, "-" where undefined."""
        keys = list(dict.fromkeys(key for report in self.values() for key in report.scores))
        found = [("output", *self)]
        for key in keys:
            values = [report.scores.get(key) for report in self.values()]
            found.append((key, *("-" if value is None else format_number(value) for value in values)))
        return found

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = []
        for key, *cells in rows:
            numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            lines.append("  ".join([key.ljust(widths[0]), *numbers]))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        head, *rows = self.rows()
        return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
