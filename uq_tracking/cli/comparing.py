"""Commands that compare methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from uq_tracking.cli.app import app, console, messages, prepared, say, shown_errors
from uq_tracking.cli.options import Runs, Split, Where, parse_list
from uq_tracking.errors import SettingsError, closest

if TYPE_CHECKING:
    from uq_tracking.comparison import Comparison
    from uq_tracking.comparison.facts import MetricKeys

WIDE_ENOUGH = 10_000
"""Line length for files, so that no table is split and no name shortened."""

FORMATS: Mapping[str, Callable[[Comparison, MetricKeys], str]] = {
    "text": lambda comparison, shown: comparison.to_text(shown, width=WIDE_ENOUGH) + "\n",
    "markdown": lambda comparison, shown: comparison.to_markdown(shown),
    "csv": lambda comparison, shown: comparison.to_csv(shown or "all"),
    "latex": lambda comparison, shown: comparison.to_latex(shown),
    "json": lambda comparison, shown: comparison.to_json() + "\n",
    "html": lambda comparison, shown: comparison.to_html(),
}
SUFFIXES: Mapping[str, str] = {
    "": "text",
    ".txt": "text",
    ".md": "markdown",
    ".csv": "csv",
    ".tex": "latex",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
}


@app.command()
def compare(
    uris: Runs,
    where: Where = None,
    split: Split = None,
    baseline: Annotated[str | None, typer.Option(help="Method to compare the others with.")] = None,
    metrics: Annotated[
        str,
        typer.Option(help="Metrics to show: comma-separated keys, or all; by default a few of every kind."),
    ] = "",
    level: Annotated[float, typer.Option(help="Confidence level of intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    maps: Annotated[bool, typer.Option(help="Include maps of spatial predictions in the HTML page.")] = True,
    given_form: Annotated[
        str,
        typer.Option(
            "--format",
            help="text, markdown, csv, latex, json or html; by default from the suffix of --output, else text.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; default: the terminal, or uq_comparison.html for html."
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(help="Run or experiment to store the HTML page in, e.g. mlflow:EXPERIMENT."),
    ] = None,
) -> None:
    """Compare the methods of logged runs side by side: ranks, differences, agreement, curves and maps."""
    from uq_tracking.comparison import compare as compare_runs

    with shown_errors(compare):
        form = given_form or _form_of(output)
        if form not in FORMATS:
            raise SettingsError(f"--format is {form!r}; choose {', '.join(FORMATS)}{closest(form, FORMATS)}")
        drawn: Literal["auto", False] = "auto" if maps and (form in ("html", "json") or log) else False
        with messages.status("reading runs") as status:
            comparison = compare_runs(
                *uris,
                where=where,
                split=split,
                baseline=baseline,
                metrics=None if metrics == "all" else parse_list(metrics),
                level=level,
                seed=seed,
                maps=drawn,
                progress=lambda name, count: status.update(f"reading runs: {count}, {name}"),
            )
        _write(comparison, form, output, "all" if metrics == "all" else None)
        if log is not None:
            comparison.log(log)
            say(f"page logged to {log}")


@app.command()
def view(
    uri: Annotated[str, typer.Argument(help="Runs: mlflow:EXPERIMENT, wandb:ENTITY/PROJECT.")],
    browse: Annotated[
        bool | None, typer.Option("--open/--no-open", help="Open a browser; by default only in a terminal.")
    ] = None,
) -> None:
    """Set up an overview of all runs on the tracker's own page, and print its address."""
    from uq_tracking.tracking.resolve import open_store

    with shown_errors(view):
        with messages.status(f"reading {uri}"):
            store, run_id = open_store(uri)
            if run_id is not None:
                raise SettingsError(f"{uri} is a single run; pass its experiment, or use `report` or `plot`")
            page = store.show()
        if page is None:
            raise SettingsError(
                f"{uri} has no page of its own; make one with `uq-tracking compare {uri} --format html`"
            )
        say(page)
        if page.startswith("http") and (console.is_terminal if browse is None else browse):
            typer.launch(page)


def _form_of(output: Path | None) -> str:
    """The format that a file's suffix names."""
    suffix = output.suffix.lower() if output else ""
    if suffix not in SUFFIXES:
        known = ", ".join(filter(None, SUFFIXES))
        raise SettingsError(
            f"--output {output} has no known suffix; end it in one of {known}, or pass --format"
        )
    return SUFFIXES[suffix]


def _write(comparison: Comparison, form: str, output: Path | None, shown: MetricKeys) -> None:
    """Write the comparison to a file, or to the terminal if none is named; a page always goes to a file."""
    from uq_tracking.tracking.names import PAGE_FILE

    if output is None and form == "text":
        console.print(comparison.to_rich(shown))
        return
    text = FORMATS[form](comparison, shown)
    if output is None and form != "html":
        console.out(text, end="", highlight=False)
        return
    output = prepared(output or Path(PAGE_FILE))
    output.write_text(text, encoding="utf-8")
    say(f"written to {output}")
