"""Tables as HTML for notebooks: no scripts, and nothing that affects the notebook's own style."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from uq_tracking.formatting import one_line, typographic
from uq_tracking.tables.colors import rank_color
from uq_tracking.tables.model import Table
from uq_tracking.tables.report import report_table
from uq_tracking.tables.summary import grouped_tables, scored_title

if TYPE_CHECKING:
    from uq_tracking.report import Report

VERDICTS = {
    "overconfident": "#b04a00",
    "overconfident in few samples": "#b04a00",
    "underconfident": "#1f6b97",
    "miscalibrated in shape": "#b04a00",
    "consistent with calibrated": "#00734f",
}
"""Colours of the verdict, as in the figures; readable on white and dark backgrounds."""


@lru_cache(maxsize=4)
def templates(package: str) -> Environment:
    """The templates of a package; every value is escaped, whatever the file name."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(one_line=one_line, rank_color=rank_color, typographic=typographic)
    return environment


def report_html(report: Report, picture: bytes) -> str:
    """A report for a notebook: the verdict, the headline scores, a picture, and every score by what it judges.

    Parameters
    ----------
    report : Report
    picture : bytes
        PNG file, shown inline.
    """
    return (
        templates("uq_tracking.tables")
        .get_template("report.html")
        .render(
            verdict=report.verdict.text,
            color=VERDICTS.get(report.verdict.calibration, "#555555"),
            title=scored_title(report),
            headline=grouped_tables(report, headline=True),
            families=grouped_tables(report),
            remarks=[*report.verdict.caveats, *report_table(report).remarks[len(report.verdict.caveats) :]],
            picture=b64encode(picture).decode(),
        )
    )


def tables_html(tables: Sequence[Table]) -> str:
    """The tables, one below the other, with colours by rank, warnings above and notes below."""
    return templates("uq_tracking.tables").get_template("tables.html").render(tables=tables)
