"""Commands that work on logged runs: report, plot, compare, view, rescore, pool, sync."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uq_tracking.cli.app import command, console, in_options, messages, prepared, say
from uq_tracking.cli.options import RUNS, SETTINGS, OneRun, Runs
from uq_tracking.errors import FileFormatError, SettingsError, closest

if TYPE_CHECKING:
    from uq_tracking.comparison import Comparison
    from uq_tracking.comparison.facts import MetricKeys
    from uq_tracking.report import Report
    from uq_tracking.runs import Summary
    from uq_tracking.tables import Table

REPORT_FORMATS = ("text", "markdown", "json")
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


@command("split", "metrics")
def report(
    run: OneRun,
    form: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
    metrics: list[str] | None = None,
    split: str | None = None,
) -> None:
    """Show a run's report: the verdict and the scores; --metrics all shows every score, else the headline."""
    from uq_tracking.tables.formats import table_markdown

    _check_format(form, REPORT_FORMATS)
    found = _report_of(run, split)
    if form == "text":
        show_scores(found, metrics)
        return
    table = _scores_table(found, metrics)
    console.out(table_markdown(table) if form == "markdown" else found.to_json(), end="", highlight=False)


@command("split")
def plot(
    run: OneRun,
    figure: Annotated[
        str, typer.Option(help="Name of the figure, e.g. reliability, calibration, sparsification.")
    ] = "reliability",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="png, svg or pdf file; default: uq_FIGURE.png."),
    ] = None,
    split: str | None = None,
) -> None:
    """Draw a figure from a run's stored report, without its predictions."""
    path = output or Path(f"uq_{figure}.png")
    drawn = _report_of(run, split).plot(figure)
    kinds = drawn.canvas.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in kinds:
        raise SettingsError(
            f"--output {path} has no known suffix; end it in one of .{', .'.join(sorted(kinds))}"
        )
    drawn.savefig(prepared(path), dpi="figure")
    say(f"written to {path}")


def show_scores(found: Report, metrics: list[str] | str | None) -> None:
    """Print the verdict and some scores: keys, or all; by default the headline scores."""
    from uq_tracking.tables.terminal import View

    console.print(View([_scores_table(found, metrics)]))


def _scores_table(found: Report, metrics: list[str] | str | None) -> Table:
    """The verdict and some scores; UnknownMetricError names those the report does not have."""
    from uq_tracking.metrics.registry import check_known, headline_or_all
    from uq_tracking.tables.report import report_table

    if metrics in ("all", ["all"]):
        return report_table(found, None)
    present = [*found.scores, *found.undefined]
    check_known(
        metrics or (), present, "the report has no score called", f"it has {', '.join(sorted(present))}"
    )
    return report_table(found, list(metrics) if metrics else headline_or_all(found.task, found.scores))


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


@command("baseline", "where", "split", "metrics", "level")
def compare(
    uris: Runs,
    maps: Annotated[bool, typer.Option(help="Include maps of spatial predictions in the HTML page.")] = True,
    form: Annotated[
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
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with 3 if this holds for a method: 'coverage_95 < .93', 'crps > baseline + .5'; repeatable."
        ),
    ] = None,
    metrics: list[str] | None = None,
    **options: Any,
) -> None:
    """Compare the methods of logged runs side by side: ranks, differences, agreement, curves and maps.

    Of metrics, a few of every kind are shown; --metrics names others, or all.
    """
    from uq_tracking.comparison import compare as compare_runs
    from uq_tracking.tracking.names import PAGE_FILE

    conditions = [_condition(text) for text in fail_if or ()]
    suffix = output.suffix.lower() if output else ""
    if not form and suffix not in SUFFIXES:
        known = ", ".join(filter(None, SUFFIXES))
        raise SettingsError(
            f"--output {output} has no known suffix; end it in one of {known}, or pass --format"
        )
    form = form or SUFFIXES[suffix]
    _check_format(form, FORMATS)
    shown: MetricKeys = "all" if metrics == ["all"] else None
    asked = None if shown or not metrics else [*metrics, *(condition.key for condition in conditions)]
    with messages.status("reading runs") as status:
        comparison = compare_runs(
            *uris,
            metrics=asked,
            maps="auto" if maps and (form in ("html", "json") or log) else False,
            progress=lambda name, count: status.update(f"reading runs: {count}, {name}"),
            **options,
        )
    if output is None and form == "text":
        console.print(comparison.to_rich(shown))
    elif output is None and form != "html":
        console.out(FORMATS[form](comparison, shown), end="", highlight=False)
    else:  # a page always goes to a file
        path = prepared(output or Path(PAGE_FILE))
        path.write_text(FORMATS[form](comparison, shown), encoding="utf-8")
        say(f"written to {path}")
    if log is not None:
        comparison.log(log)
        say(f"page logged to {log}")
    failures = [line for condition in conditions for line in _failures(comparison, condition)]
    for line in failures:
        typer.echo(line, err=True)
    if failures:
        raise typer.Exit(FAILED)


FAILED = 3
"""Exit code if a condition of ``--fail-if`` holds."""
BASELINE = "baseline"
SIDES: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """A score beside a number, or beside the baseline's score and a margin."""

    text: str
    key: str
    side: str
    to_baseline: bool
    number: float


def _condition(text: str) -> Condition:
    """Read a condition; SettingsError for anything else."""
    number = r"\d*\.?\d+(?:e[+-]?\d+)?"
    found = re.fullmatch(
        rf"\s*(\w+)\s*(<=?|>=?)\s*(?:({BASELINE})(?:\s*([+-])\s*({number}))?|([+-]?{number}))\s*",
        text,
        re.IGNORECASE,
    )
    if found is None:
        raise SettingsError(
            f"cannot read --fail-if {text!r}; pass, for example, 'coverage_95 < .93' or 'crps > baseline + .5'"
        )
    key, side, baseline, sign, margin, level = found.groups()
    value = float(f"{sign}{margin}") if margin else float(level or 0)
    return Condition(text.strip(), key, side, baseline is not None, value)


def _failures(comparison: Comparison, condition: Condition) -> Iterator[str]:
    """Yield a line for every method for which a condition holds, or for which it cannot be checked."""
    if condition.to_baseline and comparison.baseline is None:
        raise SettingsError(f"--fail-if {condition.text!r} needs --baseline")
    metric = next((metric for metric in comparison.metrics if metric.key == condition.key), None)
    if metric is None:
        raise SettingsError(f"--fail-if {condition.text!r}: no run has a metric called {condition.key}")
    low, high = metric.bounds
    if not (condition.to_baseline or low <= condition.number <= high):
        raise SettingsError(f"--fail-if {condition.text!r}: {metric.key} lies between {low:g} and {high:g}")
    limit: float | None = condition.number
    if condition.to_baseline:
        known = comparison.table[comparison.baseline or ""][condition.key].value
        limit = None if known is None else known + condition.number
    for name in comparison.methods:
        value = comparison.table[name][condition.key].value
        if condition.to_baseline and name == comparison.baseline:
            continue
        if value is None or limit is None:
            yield f"{name}: {condition.text} cannot be checked: {_why_unknown(comparison, name, condition)}"
        elif SIDES[condition.side](value, limit):
            yield f"{name}: {condition.key} is {value:.6g} ({condition.text})"


def _why_unknown(comparison: Comparison, name: str, condition: Condition) -> str:
    """Return why a method, or else the baseline, has no value, and which scores it has instead."""
    rows = [comparison.table[row] for row in (name, comparison.baseline or name)]
    lacking = next(row for row in rows if row[condition.key].value is None)
    known = {metric.key for metric in comparison.metrics if lacking[metric.key].value is not None}
    alike = sorted(key for key in known if key.partition("_")[0] == condition.key.partition("_")[0])
    why = lacking[condition.key].reason or "it has no value"
    return f"{why}; it has {', '.join(alike)}" if alike else why


def _check_format(form: str, known: Mapping[str, object] | tuple[str, ...]) -> None:
    if form not in known:
        raise SettingsError(f"--format is {form!r}; choose {', '.join(known)}{closest(form, known)}")


@command()
def view(
    uri: Annotated[str, typer.Argument(help="Runs: mlflow:EXPERIMENT, wandb:ENTITY/PROJECT.")],
    browse: Annotated[
        bool | None, typer.Option("--open/--no-open", help="Open a browser; by default only in a terminal.")
    ] = None,
) -> None:
    """Set up an overview of all runs on the tracker's own page, and print its address."""
    from uq_tracking.tracking.resolve import open_store

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


WORK = ("scores", "figures", "force", "workers")
"""Options of `rescore` that say what is written, and how."""


@command(
    *("calibration", "calibration_split", "recalibration", "where", "split", "metrics"),
    *(*SETTINGS, "std_floor", *WORK, "dry_run"),
)
def rescore(uri: Annotated[str, typer.Argument(help=RUNS)], **options: Any) -> None:
    """Rescore logged runs: new metrics, other settings, recalibrations. Settings not given stay the run's own."""
    from uq_tracking.runs import RescoreOptions
    from uq_tracking.runs import rescore as rescore_runs

    work = RescoreOptions(**{name: options.pop(name) for name in WORK if name in options})
    _each_run("rescoring", rescore, partial(rescore_runs, uri, options=work, **options))


@command("where", "split", "method", "metrics", *SETTINGS, "level")
def pool(
    uris: Runs,
    log: Annotated[str | None, typer.Option(help="Run or experiment to log the pooled report to.")] = None,
    method: str | None = None,
    split: str | None = None,
    **options: Any,
) -> None:
    """Score the samples of several runs (seeds, folds, shards) as one set, with the runs' own settings by default."""
    from uq_tracking.runs import pool as pool_runs
    from uq_tracking.tracking.deadline import PATIENCE
    from uq_tracking.tracking.log import log as log_run
    from uq_tracking.tracking.resolve import address_target

    with messages.status("merging statistics"):
        pooled = pool_runs(uris, split=split, **options)
    say(pooled)
    if log is not None:
        target = address_target(log, method or "uq")
        log_run(pooled, run=target, method=method, split=split, strict=True, deadline=PATIENCE)
        say(f"logged to {target.uri}")


@command("where", "dry_run", "keep")
def sync(
    source: Annotated[
        str | None, typer.Argument(help="Runs to copy, or a folder of saved calls, e.g. dir:uq_runs.")
    ] = None,
    destination: Annotated[
        str | None, typer.Argument(help="Where to copy runs, e.g. mlflow:EXPERIMENT.")
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(help="Delete the file of a saved call that cannot be sent, and do nothing else."),
    ] = None,
    **options: Any,
) -> None:
    """Send what trackers missed while they were down; with a destination, also copy runs there."""
    from uq_tracking.runs.sync import drop_entry
    from uq_tracking.runs.sync import sync as sync_runs

    if drop is not None:
        say(f"dropped {drop_entry(drop)}")
        return
    _each_run("copying", sync, partial(sync_runs, source, destination, **options))


def _each_run(what: str, command: Callable[..., None], work: Callable[..., Summary]) -> None:
    """Do something with each run, show what was done, and exit with 1 if any failed."""
    from uq_tracking.runs.outcomes import show_summary

    done = count(1)
    with messages.status(what) as status:
        summary = work(progress=lambda _, total: status.update(f"{what}: {next(done)} of {total}"))
    show_summary(summary, console, partial(in_options, command=command))
    if summary.failed:
        raise typer.Exit(1)
