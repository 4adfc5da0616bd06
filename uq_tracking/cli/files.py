"""Commands that read a file of predictions: log, recalibrate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.status import Status

from uq_tracking.checks import check_choice
from uq_tracking.cli.app import command, messages, say
from uq_tracking.cli.options import SETTINGS, OneRun
from uq_tracking.cli.runs import show_scores
from uq_tracking.errors import SettingsError
from uq_tracking.formatting import format_number


@command("columns", "scores", "method", "on_invalid", *SETTINGS, "std_floor")
def log(
    files: Annotated[str, typer.Argument(help="npz, npy, csv, parquet or zarr file, or a quoted glob.")],
    to: Annotated[
        str, typer.Option(help="Where to log: mlflow:EXPERIMENT, wandb:ENTITY/PROJECT, dir:PATH, or a run.")
    ] = "dir:uq_runs",
    weights: Annotated[
        str | None, typer.Option(help="Column of sample weights, such as grid-cell areas.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Name added to every key, e.g. test.")] = None,
    figures: Annotated[bool, typer.Option(help="Draw and log figures.")] = True,
    stream: Annotated[
        bool | None,
        typer.Option(help="Read in blocks, in constant memory; default above ten million samples."),
    ] = None,
    columns: dict[str, str] | None = None,
    **options: Any,
) -> None:
    """Score a file of predictions (means and stds, quantiles, intervals, draws or classes) and log it as a run."""
    from uq_tracking.tracking.content import LogOptions
    from uq_tracking.tracking.deadline import PATIENCE
    from uq_tracking.tracking.log import log as log_predictions
    from uq_tracking.tracking.resolve import address_target

    about: dict[str, Any] = {name: options.pop(name) for name in ("scores", "method") if name in options}
    about |= {"split": split, "figures": figures, "strict": True, "deadline": PATIENCE}
    LogOptions(**about)  # checks them before a large file is read
    check_choice("on_invalid", options.get("on_invalid", "raise"), ("raise", "drop"))
    if weights is not None:
        columns = {**(columns or {}), "weights": weights}
    with messages.status(f"reading {files}") as status:
        data, scoring = _read(files, columns, stream, options, status)
        target = address_target(to, about.get("method") or "uq")
        status.update(f"scoring and logging to {to}")
        report: Any = log_predictions(data, run=target, **about, **scoring)
    show_scores(report, "all" if about.get("scores") == "all" else None)
    say(f"logged to {target.uri}")


def _read(
    files: str, columns: dict[str, str] | None, stream: bool | None, options: dict[str, Any], status: Status
) -> tuple[Any, dict[str, Any]]:
    """Return predictions, or the blocks of a large file, and the options left for scoring; show how far it is."""
    from uq_tracking.files import read_blocks, read_predictions
    from uq_tracking.settings import EXACT_LIMIT

    on_invalid = options.get("on_invalid", "raise")
    found = read_blocks(files, columns, on_invalid=on_invalid) if stream is not False else None
    if found is not None and (stream or (found.total or 0) > EXACT_LIMIT):
        return _shown(found, status), options
    of_input = {name: options.pop(name) for name in ("unit", "std_floor", "on_invalid") if name in options}
    return read_predictions(files, columns=columns, **of_input), options


def _shown(found: Any, status: Status) -> Iterator[Any]:
    """Yield the blocks of a file, and show how many samples were scored."""
    from uq_tracking.streams.engines import arguments_of

    done, of = 0, "" if found.total is None else f" of {found.total:,}"
    for block in found.blocks:
        yield block
        done += math.prod(arguments_of(block)["y_true"].shape)
        status.update(f"scored {done:,}{of} samples")


@command("split", "columns")
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
    columns: dict[str, str] | None = None,
    split: str | None = None,
) -> None:
    """Recalibrate the standard deviations in a file with a run's recalibration, logged or newly fitted.

    --columns names what the file holds, e.g. std=sigma,mean=mu,by=scene.
    """
    from uq_tracking.recalibration import recalibrate_file
    from uq_tracking.runs import run_recalibration

    names = columns or {}
    if names.keys() - {"std", "mean", "by"}:
        raise SettingsError(f"--columns {','.join(names)}: a recalibration reads only std, mean and by")
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
