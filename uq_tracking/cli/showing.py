"""Commands that show one logged run: its report and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uq_tracking.cli.app import app, console, messages, prepared, say, shown_errors
from uq_tracking.cli.options import OneRun, Split, parse_list
from uq_tracking.errors import FileFormatError, SettingsError, UnknownMetricError, closest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.report import Report
    from uq_tracking.tables.model import Table

FORMATS = ("text", "markdown", "json")


@app.command()
def report(
    run: OneRun,
    split: Split = None,
    metrics: Annotated[
        str,
        typer.Option(help="Scores to show: comma-separated keys, or all; by default the headline scores."),
    ] = "",
    form: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
) -> None:
    """Show a run's report: the verdict and the scores."""
    from uq_tracking.tables.markup import table_markdown

    with shown_errors(report):
        if form not in FORMATS:
            raise SettingsError(f"--format is {form!r}; choose {', '.join(FORMATS)}{closest(form, FORMATS)}")
        found = _report_of(run, split)
        table = scores_table(found, metrics)
        if form == "text":
            show(table)
        else:
            console.out(
                table_markdown(table) if form == "markdown" else found.to_json(), end="", highlight=False
            )


@app.command()
def plot(
    run: OneRun,
    figure: Annotated[
        str, typer.Option(help="Name of the figure, e.g. reliability, calibration, sparsification.")
    ] = "reliability",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="png, svg or pdf file; default: uq_FIGURE.png."),
    ] = None,
    split: Split = None,
) -> None:
    """Draw a figure from a run's stored report, without its predictions."""
    with shown_errors(plot):
        path = output or Path(f"uq_{figure}.png")
        _save(_report_of(run, split).plot(figure), path)
        say(f"written to {path}")


def scores_table(found: Report, metrics: str = "") -> Table:
    """The verdict and some scores: comma-separated keys, or all; by default the headline scores."""
    from uq_tracking.tables.report import report_table

    return report_table(found, None if metrics == "all" else _keys(found, parse_list(metrics)))


def show(table: Table) -> None:
    """Print a table at the width of the terminal."""
    from uq_tracking.tables.terminal import View

    console.print(View([table]))


def _report_of(uri: str, split: str | None) -> Report:
    """The report of the one run that an address names, with its statistics if stored.

    If the run holds only a single split or output, that one.
    """
    from uq_tracking.runs.read import logged_run

    with messages.status(f"reading {uri}"):
        run = logged_run(uri, split=split).settled()
        try:
            return run.scored()
        except FileNotFoundError:
            raise FileFormatError(f"{run.stored.uri} has {run.lacking()}") from None


def _keys(found: Report, wanted: list[str] | None) -> list[str]:
    """The scores to show; UnknownMetricError names those the report does not have."""
    from uq_tracking.metrics.registry import headline_or_all

    present = [*found.scores, *found.undefined]
    if wanted is None:
        return headline_or_all(found.task, present)
    lacking = [key for key in wanted if key not in present]
    if lacking:
        raise UnknownMetricError(
            f"the report has no score called {', '.join(lacking)}{closest(lacking[0], present)}; "
            f"it has {', '.join(sorted(present))}"
        )
    return wanted


def _save(figure: Figure, path: Path) -> None:
    kinds = figure.canvas.get_supported_filetypes()
    kind = path.suffix.lower().removeprefix(".")
    if kind not in kinds:
        raise SettingsError(
            f"--output {path} has no known suffix; end it in one of .{', .'.join(sorted(kinds))}"
        )
    figure.savefig(prepared(path), dpi="figure")
