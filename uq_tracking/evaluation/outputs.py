"""Several outputs of one model, along the last axis: scored separately, shown side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from uq_tracking.report import Report
from uq_tracking.tables.before_after import KEYS, BeforeAfter, before_after
from uq_tracking.tables.report import outputs_table


@dataclass(frozen=True, eq=False)
class Reports(Mapping[str, Report]):
    """One report per output, in the order of the outputs.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> boxes = uq.evaluate([[0.0, 5.0], [1.0, 6.0]], [[0.1, 4.0], [0.8, 6.5]], [[0.1, 1.0], [0.2, 1.0]],
    ...                     outputs=["x", "y"], metrics=["mae", "rmse"])
    >>> round(boxes["y"].scores["mae"], 3)
    0.75
    >>> print(boxes)
    x: Not enough data to judge: 2 samples are too few; a test needs 20.
    y: Not enough data to judge: 2 samples are too few; a test needs 20.
    <BLANKLINE>
    output       x       y
    ----------------------
    mae     0.1500  0.7500
    rmse    0.1581  0.7906
    """

    reports: Mapping[str, Report]

    def __getitem__(self, output: str) -> Report:
        return self.reports[output]

    def __iter__(self) -> Iterator[str]:
        return iter(self.reports)

    def __len__(self) -> int:
        return len(self.reports)

    def before_after(self, metrics: str | Sequence[str] = KEYS) -> BeforeAfter:
        """Scores before and after each recalibration, one row per output.

        Parameters
        ----------
        metrics : str or sequence of str
            Keys.

        Returns
        -------
        BeforeAfter
            A printable table.

        References
        ----------
        .. [1] Levi et al., 2019, table 1.
        """
        return before_after(self, metrics)

    def __str__(self) -> str:
        from uq_tracking.tables.terminal import tables_text

        return tables_text([outputs_table(self)], width=1000)

    def _repr_html_(self) -> str:
        from uq_tracking.tables.html import tables_html

        return tables_html([outputs_table(self)])
