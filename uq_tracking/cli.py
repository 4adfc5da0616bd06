"""The command line: parse, call a verb, print."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from uq_tracking import __version__
from uq_tracking.errors import SettingsError, UnknownMetricError, UQTrackingError

if TYPE_CHECKING:
    from uq_tracking.inputs import Predictions
    from uq_tracking.metrics.registry import Metric
    from uq_tracking.streams.accumulator import Accumulator

app = typer.Typer(
    help="Judge predictive uncertainty where you already compare your models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
WIDE = 400
"""Columns of a table that goes to a file or a pipe, where nothing should be cut."""
console = Console()
errors = Console(stderr=True)


@contextmanager
def _errors() -> Iterator[None]:
    """Show a mistake of the user as one line and exit with 1; anything else is a bug and keeps its traceback."""
    try:
        yield
    except (UQTrackingError, FileNotFoundError) as error:
        errors.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None


def _version(show: bool) -> None:
    if show:
        console.print(__version__, highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Judge predictive uncertainty where you already compare your models."""


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path(),
    backend: Annotated[str, typer.Option(help="mlflow, wandb (offline) or dir.")] = "mlflow",
    method: Annotated[
        list[str] | None,
        typer.Option(help="Only this method; may be given several times."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    fast: Annotated[bool, typer.Option(help="A small piece of the terrain, for a quick look.")] = False,
) -> None:
    """Complete real terrain with seven uncertainty methods, log each as a run, and compare them."""
    from uq_tracking.demo.run import run_demo

    with _errors():
        run_demo(output, backend=backend, methods=method, seed=seed, fast=fast)


@app.command()
def log(
    files: Annotated[str, typer.Argument(help="npz, npy, csv, parquet or zarr file, or a quoted glob.")],
    to: Annotated[
        str, typer.Option(help="Where to log: mlflow:EXPERIMENT, wandb:ENTITY/PROJECT, dir:PATH, or a run.")
    ] = "dir:uq_runs",
    columns: Annotated[str, typer.Option(help="Names in the file, e.g. target=y,mean=mu,std=sigma.")] = "",
    method: Annotated[str | None, typer.Option(help="Name of the uncertainty method.")] = None,
    split: Annotated[str | None, typer.Option(help="Name put into every key, e.g. test.")] = None,
    unit: Annotated[str | None, typer.Option(help="Unit of the target, e.g. m.")] = None,
    alpha: Annotated[float, typer.Option(help="Share of the errors that MeRCI covers.")] = 0.95,
    n_bins: Annotated[int, typer.Option(help="Bins of ENCE and reliability.")] = 10,
    std_floor: Annotated[float | None, typer.Option(help="Raise smaller std to this.")] = None,
    on_invalid: Annotated[str, typer.Option(help="raise, or drop bad predictions and count them.")] = "raise",
    figures: Annotated[bool, typer.Option(help="Draw and log figures.")] = True,
    stream: Annotated[
        bool | None,
        typer.Option(help="Read in blocks, in constant memory; by default above ten million samples."),
    ] = None,
) -> None:
    """Score a file of predictions and log it as a run."""
    from uq_tracking.streams.accumulator import Accumulator
    from uq_tracking.tracking.log import log as log_run

    with _errors():
        options: dict[str, Any] = {"unit": unit, "std_floor": std_floor, "on_invalid": _policy(on_invalid)}
        scoring: dict[str, Any] = {"alpha": alpha, "n_bins": n_bins}
        data = _read(files, parse_columns(columns), stream, options, scoring)
        if isinstance(data, Accumulator):
            scoring = {}  # part of the accumulator
        report = log_run(data, run=to, method=method, split=split, figures=figures, strict=True, **scoring)
        console.print(str(report), markup=False, highlight=False, soft_wrap=True)
        console.print(f"logged to {to}", markup=False, highlight=False, soft_wrap=True)


def _read(
    files: str,
    columns: dict[str, str] | None,
    stream: bool | None,
    options: dict[str, Any],
    scoring: dict[str, Any],
) -> Predictions | Accumulator:
    """The predictions, or an accumulator that has counted them a block at a time, with a bar of progress."""
    from uq_tracking.files import read_blocks, read_predictions
    from uq_tracking.settings import EXACT_LIMIT
    from uq_tracking.streams.accumulator import Accumulator
    from uq_tracking.streams.blocks import count_blocks

    found = read_blocks(files, columns, on_invalid=options["on_invalid"]) if stream is not False else None
    if found is None or not (stream or (found.total or 0) > EXACT_LIMIT):
        return read_predictions(files, columns=columns, **options)
    with Progress(*Progress.get_default_columns(), console=errors, transient=True) as bar:
        task = bar.add_task("scoring", total=found.total)
        return count_blocks(
            Accumulator(**options, **scoring), found.blocks, progress=lambda n: bar.advance(task, n)
        )


def _policy(text: str) -> Literal["raise", "drop"]:
    if text == "raise":
        return "raise"
    if text == "drop":
        return "drop"
    raise SettingsError(f"--on-invalid is {text!r}; choose raise or drop")


def parse_columns(text: str) -> dict[str, str] | None:
    """``target=y,mean=mu`` as a dict; None for an empty text."""
    if not text:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    wrong = [name for name, equals, value in pairs if not (name and equals and value)]
    if wrong:
        raise SettingsError(
            f"--columns {text!r} is not understood; write role=name pairs: target=y,mean=mu,std=sigma"
        )
    return {name.strip(): value.strip() for name, _, value in pairs}


@app.command()
def recalibrate(
    run: Annotated[str, typer.Argument(help="A logged run, e.g. mlflow:EXPERIMENT/RUN_ID.")],
    apply: Annotated[
        Path | None,
        typer.Option(help="npz, npy, csv or parquet file of std (and mean); a recalibrated copy is written."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The new file; by default FILE.recalibrated.SUFFIX."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="std_scaling, cdf_isotonic, ...; by default what the run logged, else std_scaling."
        ),
    ] = None,
    split: Annotated[str | None, typer.Option(help="The split it was logged under.")] = None,
    columns: Annotated[str, typer.Option(help="Names in the file, e.g. std=sigma,mean=mu.")] = "",
) -> None:
    """Recalibrate the standard deviations of a file with what a run was recalibrated by, or could be."""
    from uq_tracking.recalibration import recalibrate_file
    from uq_tracking.tracking.recalibration import run_recalibration

    with _errors():
        names = parse_columns(columns) or {}
        if names.keys() - {"std", "mean"}:
            raise SettingsError(f"--columns {columns!r}: a recalibration reads std and mean")
        fitted = run_recalibration(run, method, split=split)
        about = fitted.fitted_on
        facts = {"method": fitted.method, **fitted.scalars(), "fitted on": f"{about.n:,} samples"}
        for name, value in facts.items():
            text = value if isinstance(value, str) else f"{value:.6g}"
            console.print(f"{name}: {text}", markup=False, highlight=False, soft_wrap=True)
        if apply is not None:
            written = recalibrate_file(fitted, apply, output, **names)
            console.print(f"written to {written}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def rescore(
    uri: Annotated[
        str, typer.Argument(help="Runs: mlflow:EXPERIMENT[/RUN], wandb:ENTITY/PROJECT[/RUN], dir:PATH ...")
    ],
    where: Annotated[str | None, typer.Option(help="The tracker's own filter expression.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the runs, e.g. test.")] = None,
    metrics: Annotated[str, typer.Option(help="Further metrics: keys with commas.")] = "",
    alpha: Annotated[float | None, typer.Option(help="Share of the errors that MeRCI covers.")] = None,
    n_bins: Annotated[int | None, typer.Option(help="Bins of ENCE and reliability.")] = None,
    family: Annotated[
        str | None,
        typer.Option(help="gaussian, laplace, uniform or student_t."),
    ] = None,
    dof: Annotated[float | None, typer.Option(help="Degrees of freedom of student_t.")] = None,
    unit: Annotated[str | None, typer.Option(help="Unit of the target, e.g. m.")] = None,
    std_floor: Annotated[float | None, typer.Option(help="Raise smaller std to this.")] = None,
    calibration: Annotated[
        str | None,
        typer.Option(help="JSON file of a fitted recalibration, or halves to cross-fit."),
    ] = None,
    calibration_split: Annotated[
        str | None,
        typer.Option(help="Split of each run that recalibrations are fitted on, e.g. val."),
    ] = None,
    recalibration: Annotated[str, typer.Option(help="Methods to fit, with commas.")] = "",
    predictions: Annotated[
        str | None,
        typer.Option(help="For runs logged without uq_tracking: a stored file, folder or quoted glob."),
    ] = None,
    columns: Annotated[str, typer.Option(help="Names in those files, e.g. target=y,mean=mu,std=sigma.")] = "",
    prediction_from: Annotated[
        str | None,
        typer.Option(help="A run against whose means each run's std is scored, under uq/common/."),
    ] = None,
    figures: Annotated[
        bool | None,
        typer.Option(
            "--figures/--no-figures", help="Draw all, or none; by default those whose numbers changed."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and score, write nothing.")] = False,
    workers: Annotated[int, typer.Option(help="Runs worked on at the same time.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Also runs that have these scores already.")] = False,
) -> None:
    """Score logged runs again: new metrics, other settings, recalibrations; also runs of strangers."""
    from uq_tracking.rescoring import rescore as rescore_runs
    from uq_tracking.rescoring.terminal import progress_bar, show_summary

    with _errors():
        with progress_bar(console, "rescoring") as progress:
            summary = rescore_runs(
                uri,
                where=where,
                split=split,
                metrics=_listed(metrics),
                alpha=alpha,
                n_bins=n_bins,
                family=cast(Any, family),
                dof=dof,
                unit=unit,
                std_floor=std_floor,
                calibration=True if calibration == "halves" else calibration,
                calibration_split=calibration_split,
                recalibration=_listed(recalibration),
                predictions=predictions,
                columns=parse_columns(columns),
                prediction_from=prediction_from,
                figures="auto" if figures is None else figures,
                dry_run=dry_run,
                workers=workers,
                force=force,
                progress=progress,
            )
        show_summary(summary, console)
        if summary.failed:
            raise typer.Exit(1)


def _listed(text: str) -> list[str] | None:
    """``a,b`` as a list; None for an empty text."""
    return [item.strip() for item in text.split(",") if item.strip()] or None


@app.command()
def pool(
    uris: Annotated[list[str], typer.Argument(help="Runs whose statistics are merged.")],
    where: Annotated[str | None, typer.Option(help="The tracker's own filter expression.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the runs, e.g. test.")] = None,
    method: Annotated[str | None, typer.Option(help="Name of the uncertainty method.")] = None,
    log: Annotated[
        str | None,
        typer.Option(help="Run or experiment that the pooled report is logged to."),
    ] = None,
) -> None:
    """Score the samples of several runs (seeds, folds, shards) as one set."""
    from uq_tracking.rescoring import pool as pool_runs
    from uq_tracking.tracking.log import log as log_run

    with _errors():
        report = pool_runs(uris, where=where, split=split)
        console.print(str(report), markup=False, highlight=False, soft_wrap=True)
        if log is not None:
            log_run(report, run=log, method=method, split=split, strict=True)
            console.print(f"logged to {log}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def sync(
    source: Annotated[
        str | None,
        typer.Argument(
            help="Runs to copy, or the folder of kept calls, e.g. dir:uq_runs; by default all kept calls."
        ),
    ] = None,
    destination: Annotated[
        str | None, typer.Argument(help="Where to copy runs, e.g. mlflow:EXPERIMENT.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="Filter expression of the source.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent or copied.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the files of what was sent.")] = False,
) -> None:
    """Send what trackers did not take while they were down; with a destination, copy runs there too."""
    from uq_tracking.rescoring import sync as sync_runs
    from uq_tracking.rescoring.terminal import progress_bar, show_summary

    with _errors():
        with progress_bar(console, "copying") as progress:
            summary = sync_runs(
                source, destination, where=where, dry_run=dry_run, keep=keep, progress=progress
            )
        show_summary(summary, console)
        if summary.failed:
            raise typer.Exit(1)


@app.command()
def compare(
    uris: Annotated[
        list[str],
        typer.Argument(help="Runs: mlflow:EXPERIMENT, wandb:ENTITY/PROJECT, dir:PATH, or single runs."),
    ],
    where: Annotated[str | None, typer.Option(help="The tracker's own filter expression.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the runs, e.g. test.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Method the others are compared to.")] = None,
    metrics: Annotated[
        str, typer.Option(help="Metrics to show: keys with commas, or all; a few of every kind by default.")
    ] = "",
    level: Annotated[float, typer.Option(help="Confidence level of intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    maps: Annotated[bool, typer.Option(help="Draw maps of spatial predictions in the HTML page.")] = True,
    form: Annotated[str, typer.Option("--format", help="text, markdown, csv, latex, json or html.")] = "text",
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; by default the terminal, for html uq_comparison.html."),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(help="Run or experiment that the HTML page is stored in, e.g. mlflow:EXPERIMENT."),
    ] = None,
) -> None:
    """Set the methods of logged runs beside each other: ranks, differences, agreement, curves and maps."""
    from uq_tracking.comparison import compare as compare_runs
    from uq_tracking.comparison.output import check_format, chosen, write

    with _errors():
        check_format(form)
        drawn: Literal["auto", False] = "auto" if maps and (form in ("html", "json") or log) else False
        with console.status("reading runs"):
            comparison = compare_runs(
                *uris,
                where=where,
                split=split,
                baseline=baseline,
                metrics=chosen(metrics),
                level=level,
                seed=seed,
                maps=drawn,
            )
        write(comparison, form, output, metrics, console)
        if log is not None:
            comparison.log(log)
            console.print(f"page logged to {log}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def metrics(
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="Metrics to explain in full; without them, one line for each."),
    ] = None,
) -> None:
    """Show every metric: key, task, unit, direction and meaning; formula and source of those named."""
    from uq_tracking.metrics.registry import every_metric
    from uq_tracking.tables import better_text

    with _errors():
        if not keys:
            rows = [(m.key, m.task, m.unit, better_text(m), m.summary) for m in every_metric()]
            _show(("key", "task", "unit", "better", "meaning"), rows)
        for metric in _named(keys or []):
            facts = {"task": metric.task, "meaning": metric.summary, "formula": metric.formula}
            facts |= {"source": metric.source, "unit": metric.unit or "none"}
            facts |= {"better": better_text(metric) or "does not judge"}
            console.print(metric.key, style="bold", markup=False, highlight=False)
            for name, text in facts.items():
                console.print(f"  {name:8}{text}", markup=False, highlight=False, soft_wrap=True)


def _named(keys: list[str]) -> list[Metric]:
    """Metrics of any task with these keys."""
    from uq_tracking.metrics.registry import every_metric

    known = {metric.key for metric in every_metric()}
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise UnknownMetricError(
            f"no metric is called {', '.join(unknown)}; `uq-tracking metrics` lists them all"
        )
    return [metric for key in keys for metric in every_metric() if metric.key == key]


@app.command()
def backends() -> None:
    """Show the trackers that are known here, and how to install what is missing."""
    from uq_tracking import hooks

    with _errors():
        rows = []
        for backend in hooks.backends().values():
            status = backend.status()
            schemes = ", ".join(f"{scheme}:" for scheme in (backend.name, *backend.schemes))
            rows.append(
                (
                    status.name,
                    schemes,
                    status.version or "-",
                    "yes" if status.usable else "no",
                    status.hint or "",
                )
            )
        _show(("backend", "addresses", "version", "usable", "hint"), rows)


def _show(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    table = Table(*header, show_edge=False, pad_edge=False)
    table.columns[0].no_wrap = True  # names can be copied
    for row in rows:
        table.add_row(*(str(cell).replace("[", r"\[") for cell in row))
    (console if console.is_terminal else Console(width=WIDE)).print(table)
