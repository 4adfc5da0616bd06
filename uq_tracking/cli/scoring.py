"""Commands that read a file of predictions."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from uq_tracking.cli.app import app, messages, say, shown_errors
from uq_tracking.cli.options import (
    ALPHA,
    BINS,
    Columns,
    Method,
    OneRun,
    Scores,
    Split,
    StdFloor,
    Unit,
    parse_columns,
    parse_policy,
    parse_scores,
)
from uq_tracking.cli.showing import scores_table, show
from uq_tracking.errors import SettingsError
from uq_tracking.formatting import format_number

if TYPE_CHECKING:
    from uq_tracking.inputs import Predictions
    from uq_tracking.inputs.classification import ClassPredictions
    from uq_tracking.streams.accumulator import Accumulator


@app.command()
def log(
    files: Annotated[str, typer.Argument(help="npz, npy, csv, parquet or zarr file, or a quoted glob.")],
    to: Annotated[
        str, typer.Option(help="Where to log: mlflow:EXPERIMENT, wandb:ENTITY/PROJECT, dir:PATH, or a run.")
    ] = "dir:uq_runs",
    columns: Columns = "",
    weights: Annotated[
        str | None, typer.Option(help="Column of sample weights, such as grid-cell areas.")
    ] = None,
    scores: Scores = "headline",
    method: Method = None,
    split: Annotated[str | None, typer.Option(help="Name added to every key, e.g. test.")] = None,
    unit: Unit = None,
    alpha: Annotated[float, typer.Option(help=ALPHA)] = 0.95,
    n_bins: Annotated[int, typer.Option(help=BINS)] = 10,
    std_floor: StdFloor = None,
    on_invalid: Annotated[
        str, typer.Option(help="Invalid predictions: raise an error, or drop and count them.")
    ] = "raise",
    figures: Annotated[bool, typer.Option(help="Draw and log figures.")] = True,
    stream: Annotated[
        bool | None,
        typer.Option(help="Read in blocks, in constant memory; default above ten million samples."),
    ] = None,
) -> None:
    """Score a file of predictions (means and stds, quantiles, intervals, draws or classes) and log it as a run."""
    from uq_tracking.inputs.classification import ClassPredictions
    from uq_tracking.streams.accumulator import Accumulator
    from uq_tracking.tracking.deadline import PATIENCE
    from uq_tracking.tracking.log import log as log_predictions
    from uq_tracking.tracking.resolve import address_target

    with shown_errors(log):
        options: dict[str, Any] = {
            "unit": unit,
            "std_floor": std_floor,
            "on_invalid": parse_policy(on_invalid),
        }
        scoring: dict[str, Any] = {"alpha": alpha, "n_bins": n_bins}
        named = parse_columns(columns)
        if weights is not None:
            named = {**(named or {}), "weights": weights}
        data: Any = _read(files, named, stream, options, scoring)
        if isinstance(data, ClassPredictions):
            scoring = {"n_bins": n_bins}
        if isinstance(data, Accumulator):
            scoring = {}  # part of the accumulator
        target = address_target(to, method or "uq")
        with messages.status(f"scoring and logging to {to}"):
            report: Any = log_predictions(
                data,
                scores=parse_scores(scores),
                run=target,
                method=method,
                split=split,
                figures=figures,
                strict=True,
                deadline=PATIENCE,
                **scoring,
            )
        show(scores_table(report, "all" if scores == "all" else ""))
        say(f"logged to {target.open().run.uri}")


def _read(
    files: str,
    columns: dict[str, str] | None,
    stream: bool | None,
    options: dict[str, Any],
    scoring: dict[str, Any],
) -> Predictions | ClassPredictions | Accumulator:
    """The predictions, or an accumulator that has counted them block by block, with a progress bar."""
    from uq_tracking.files import read_blocks, read_predictions
    from uq_tracking.inputs.classification import ClassPredictions
    from uq_tracking.settings import EXACT_LIMIT
    from uq_tracking.streams.accumulator import Accumulator
    from uq_tracking.streams.blocks import count_blocks

    found = read_blocks(files, columns, on_invalid=options["on_invalid"]) if stream is not False else None
    if found is not None and (stream or (found.total or 0) > EXACT_LIMIT):
        first = next(found.blocks)
        if not isinstance(first, ClassPredictions):
            with Progress(*Progress.get_default_columns(), console=messages, transient=True) as bar:
                task = bar.add_task("scoring", total=found.total)
                return count_blocks(
                    Accumulator(**options, **scoring),
                    chain([first], found.blocks),
                    progress=lambda n: bar.advance(task, n),
                )
    with messages.status(f"reading {files}"):  # classes are read whole
        return read_predictions(files, columns=columns, **options)


@app.command()
def recalibrate(
    run: OneRun,
    apply: Annotated[
        Path | None,
        typer.Option(help="npz, npy, csv or parquet file of std (and mean) to write a recalibrated copy of."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The new file; default: FILE.recalibrated.SUFFIX.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="std_scaling, cdf_isotonic, ...; default: what the run logged, else std_scaling."),
    ] = None,
    split: Split = None,
    columns: Annotated[
        str, typer.Option(help="Column names in the file, e.g. std=sigma,mean=mu,by=scene.")
    ] = "",
) -> None:
    """Recalibrate the standard deviations in a file with a run's recalibration, logged or newly fitted."""
    from uq_tracking.recalibration import recalibrate_file
    from uq_tracking.runs import run_recalibration

    with shown_errors(recalibrate):
        names = parse_columns(columns) or {}
        if names.keys() - {"std", "mean", "by"}:
            raise SettingsError(f"--columns {columns!r}: a recalibration reads only std, mean and by")
        with messages.status(f"reading {run}"):
            fitted = run_recalibration(run, method, split=split)
        say(f"method: {fitted.method}")
        for name, value in fitted.scalars().items():
            say(f"{name}: {format_number(value, 6)}")
        say(f"fitted on: {fitted.fitted_on.n:,} samples")
        if apply is not None:
            if apply.is_dir():
                raise SettingsError(f"--apply {apply} is a folder; name a file of std")
            say(f"written to {recalibrate_file(fitted, apply, output, **names)}")
