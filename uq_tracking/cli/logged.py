"""Commands that work on logged runs: rescore, pool, sync."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, cast

import typer

from uq_tracking.cli.app import app, console, in_options, messages, say, shown_errors
from uq_tracking.cli.options import (
    RUNS,
    Alpha,
    Bins,
    Dof,
    FamilyName,
    Method,
    Runs,
    Scores,
    Split,
    StdFloor,
    Unit,
    Where,
    parse_list,
    parse_scores,
)


@app.command()
def rescore(
    uri: Annotated[str, typer.Argument(help=RUNS)],
    where: Where = None,
    split: Split = None,
    metrics: Annotated[str, typer.Option(help="Further metrics: comma-separated keys.")] = "",
    scores: Scores = "headline",
    alpha: Alpha = None,
    n_bins: Bins = None,
    family: FamilyName = None,
    dof: Dof = None,
    unit: Unit = None,
    std_floor: StdFloor = None,
    calibration: Annotated[
        str | None, typer.Option(help="JSON file of a fitted recalibration, or 'halves' to cross-fit.")
    ] = None,
    calibration_split: Annotated[
        str | None, typer.Option(help="Split of each run on which to fit recalibrations, e.g. val.")
    ] = None,
    recalibration: Annotated[str, typer.Option(help="Methods to fit, comma-separated.")] = "",
    figures: Annotated[
        bool | None,
        typer.Option(
            "--figures/--no-figures",
            help="Draw all figures, or none; by default those whose numbers changed.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and score, but write nothing.")] = False,
    workers: Annotated[int, typer.Option(help="Number of runs to process in parallel.")] = 1,
    force: Annotated[
        bool, typer.Option("--force", help="Include runs that already have these scores.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="Bytes above which a stored file is not read; by default 8 GiB.")
    ] = None,
) -> None:
    """Rescore logged runs: new metrics, other settings, recalibrations."""
    from uq_tracking.npz import LIMIT
    from uq_tracking.runs import RescoreOptions
    from uq_tracking.runs import rescore as rescore_runs
    from uq_tracking.runs.outcomes import progress_bar, show_summary

    with shown_errors(rescore):
        with progress_bar(console, "rescoring") as progress:
            summary = rescore_runs(
                uri,
                where=where,
                split=split,
                metrics=parse_list(metrics),
                alpha=alpha,
                n_bins=n_bins,
                family=cast(Any, family),
                dof=dof,
                unit=unit,
                std_floor=std_floor,
                calibration=True if calibration == "halves" else calibration,
                calibration_split=calibration_split,
                recalibration=parse_list(recalibration),
                dry_run=dry_run,
                progress=progress,
                options=RescoreOptions(
                    scores=parse_scores(scores),
                    figures="auto" if figures is None else figures,
                    force=force,
                    workers=workers,
                    limit=LIMIT if limit is None else limit,
                ),
            )
        show_summary(summary, console, partial(in_options, command=rescore))
        if summary.failed:
            raise typer.Exit(1)


@app.command()
def pool(
    uris: Runs,
    where: Where = None,
    split: Split = None,
    method: Method = None,
    metrics: Annotated[str, typer.Option(help="Metrics: comma-separated keys; by default all.")] = "",
    alpha: Alpha = None,
    n_bins: Bins = None,
    family: FamilyName = None,
    dof: Dof = None,
    unit: Unit = None,
    level: Annotated[
        float | None, typer.Option(help="Confidence level of intervals; by default that of the runs.")
    ] = None,
    log: Annotated[str | None, typer.Option(help="Run or experiment to log the pooled report to.")] = None,
) -> None:
    """Score the samples of several runs (seeds, folds, shards) as one set."""
    from uq_tracking.runs import pool as pool_runs
    from uq_tracking.tracking.deadline import PATIENCE
    from uq_tracking.tracking.log import log as log_run
    from uq_tracking.tracking.resolve import address_target

    with shown_errors(pool):
        with messages.status("merging statistics"):
            report = pool_runs(
                uris,
                where=where,
                split=split,
                metrics=parse_list(metrics),
                alpha=alpha,
                n_bins=n_bins,
                family=cast(Any, family),
                dof=dof,
                unit=unit,
                level=level,
            )
        say(report)
        if log is not None:
            target = address_target(log, method or "uq")
            log_run(report, run=target, method=method, split=split, strict=True, deadline=PATIENCE)
            say(f"logged to {target.open().run.uri}")


@app.command()
def sync(
    source: Annotated[
        str | None, typer.Argument(help="Runs to copy, or a folder of saved calls, e.g. dir:uq_runs.")
    ] = None,
    destination: Annotated[
        str | None, typer.Argument(help="Where to copy runs, e.g. mlflow:EXPERIMENT.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="Filter expression for the source.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be sent or copied.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep files after they are sent.")] = False,
    drop: Annotated[
        str | None,
        typer.Option(help="Delete the file of a saved call that cannot be sent, and do nothing else."),
    ] = None,
) -> None:
    """Send what trackers missed while they were down; with a destination, also copy runs there."""
    from uq_tracking.runs.outcomes import progress_bar, show_summary
    from uq_tracking.runs.sync import drop_entry
    from uq_tracking.runs.sync import sync as sync_runs

    with shown_errors(sync):
        if drop is not None:
            say(f"dropped {drop_entry(drop)}")
            return
        with progress_bar(console, "copying") as progress:
            summary = sync_runs(
                source, destination, where=where, dry_run=dry_run, keep=keep, progress=progress
            )
        show_summary(summary, console, partial(in_options, command=sync))
        if summary.failed:
            raise typer.Exit(1)
