"""The function `rescore`: read a logged run, score it again, and write what changed, sealed at last."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from uq_tracking import plugins
from uq_tracking.checks import as_names, check_callable, check_flag, named_options
from uq_tracking.errors import BackendError, RunNotFoundError
from uq_tracking.report import Report
from uq_tracking.runs.outcomes import Outcome, Progress, Summary, worked
from uq_tracking.runs.read import NO_REPORT, LoggedRun, logged_runs
from uq_tracking.runs.request import Request, RescoreOptions, checked_changes, loaded
from uq_tracking.runs.score import NothingStoredError, Source, new_report, same_curve
from uq_tracking.settings import Family
from uq_tracking.tasks import task_of
from uq_tracking.tracking.cases import DrawnCases
from uq_tracking.tracking.content import Content, LogOptions, scores_digest
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.names import (
    COMPARISON_NAME,
    MAPS_FILE,
    RECALIBRATION_FILE,
    REPORT_FILE,
    STATISTICS_FILE,
    check_split,
    curve_name,
    figure_name,
    scalar_name,
)
from uq_tracking.tracking.places import work_lock
from uq_tracking.tracking.publish import publish
from uq_tracking.tracking.resolve import Target
from uq_tracking.tracking.writer import RunWriter

if TYPE_CHECKING:
    from uq_tracking.drawings import FigureSpec


@named_options
def rescore(
    uri: str,
    *,
    where: str | None = None,
    split: str | None = None,
    metrics: str | Iterable[str] | None = None,
    calibration: Any = None,
    recalibration: str | Iterable[str] | None = None,
    calibration_split: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    options: RescoreOptions | None = None,
    alpha: float | None = None,
    n_bins: int | None = None,
    family: Family | None = None,
    dof: float | None = None,
    unit: str | None = None,
    std_floor: float | None = None,
) -> Summary:
    """Rescore logged runs: new metrics, other settings, recalibrations, figures.

    A run is scored from its stored statistics if they suffice, else from its stored predictions; its report says
    which (``provenance["rescored"]["from"]``). Settings that are not given stay those of the run's own report, which
    the last rescore may have changed; to go back, pass the old ones. The scores are written to the same run, whose
    status and end time stay unchanged. A rescore never replaces a file with a less complete one. A run already
    rescored as requested, with the same version and metrics, is skipped, so an interrupted call continues where it
    stopped.

    Parameters
    ----------
    uri : str
        Runs: ``mlflow:EXPERIMENT[/RUN_ID]``, ``wandb:ENTITY/PROJECT[/RUN_ID]``, ``wandb-offline:DIR``,
        ``dir:PATH`` ...
    where : str, optional
        Filter expression, in the tracker's own syntax; for MLflow, for example, ``tags.`uq.rescored` IS NULL``.
    split : str, optional
        The split to rescore.
    metrics : str or iterable of str, optional
        Keys to compute besides the default suite and what the run has.
    calibration : optional
        Adds scores after recalibration: fitted parameters, or the path of their JSON file; True or names of methods
        to cross-fit.
    recalibration : str or iterable of str, optional
        Methods to fit; by default ``std_scaling``.
    calibration_split : str, optional
        Fit on each run's stored statistics of this split, such as ``val``.
    dry_run : bool
        Read and score, but write nothing.
    progress : callable, optional
        ``progress(outcome, total)`` is called after every run.
    options : RescoreOptions, optional
        Which scores and figures are written; how many runs are processed in parallel; whether to rescore runs that
        are done.
    alpha, n_bins, family, dof, unit : optional
        As for ``Settings``.
    std_floor : float, optional
        Smaller standard deviations are raised to it; 0 removes the floor of an earlier rescore. Needs the
        predictions.

    Returns
    -------
    Summary
        ``done``, ``skipped`` and ``failed``, each with reasons. A failed run keeps what it has.

    Raises
    ------
    SettingsError
        An option is out of range, or a metric is unknown (UnknownMetricError).
    BackendError
        No backend handles the URI, or its tracker is unavailable; RunNotFoundError if there is no such run.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> _ = uq.log([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3], run="dir:rescored", method="example")
    >>> summary = uq.rescore("dir:rescored", alpha=0.9)
    >>> [(outcome.status, outcome.source) for outcome in summary.outcomes]
    [('done', 'exact statistics')]
    >>> len(uq.rescore("dir:rescored", alpha=0.9).skipped)
    1
    """
    check_flag("dry_run", dry_run)
    check_callable("progress", progress)
    options = options or RescoreOptions()
    request = Request(
        check_split(split),
        () if metrics is None else as_names("metrics", metrics),
        checked_changes(alpha=alpha, n_bins=n_bins, family=family, dof=dof, unit=unit, std_floor=std_floor),
        loaded(calibration),
        () if recalibration is None else as_names("recalibration", recalibration),
        check_split(calibration_split, "calibration_split"),
        options,
    )
    runs = [run for run in logged_runs(uri, where=where, split=split) if not _is_of_a_comparison(run)]
    if not runs and where is None:
        raise RunNotFoundError(f"{uri}: there is no run to rescore; check the address")
    work = partial(_outcome, request=request, dry_run=dry_run, drawing=threading.Lock())
    return Summary(list(worked(runs, work, options.workers, progress)), dry_run=dry_run)


def _is_of_a_comparison(run: LoggedRun) -> bool:
    """True if ``Comparison.log`` made the run; only the files of runs with its name are listed."""
    try:
        return run.name == COMPARISON_NAME and run.holds_comparison()
    except Exception:  # the run's own outcome says what is wrong with it
        return False


def _outcome(run: LoggedRun, request: Request, dry_run: bool, drawing: threading.Lock) -> Outcome:
    """Rescore one run, unless there is nothing to do; several threads may do so, but draw only one at a time."""
    run = replace(run, split=request.split)
    if not request.options.force and request.is_done(run.stored.tags):
        return Outcome(run.stored.uri, run.name, "skipped", "it already has these scores")
    try:
        with nullcontext() if dry_run else work_lock(f"rescoring {run.stored.uri}", PATIENCE):
            return _rescored(run, request, dry_run, drawing)
    except NothingStoredError as nothing:
        split = run.settled().split
        if split == run.split:
            return Outcome(run.stored.uri, run.name, "skipped", str(nothing))
        return _outcome(run, replace(request, split=split), dry_run, drawing)


def _rescored(run: LoggedRun, request: Request, dry_run: bool, drawing: threading.Lock) -> Outcome:
    try:
        old = run.report()
    except FileNotFoundError:
        old = NO_REPORT
    report, source = new_report(run, request, old)
    if not dry_run:
        content = _changed(run, request, report, old, source)
        with drawing if content.figures or content.drawn.cases else nullcontext():
            _write(run, content)
    as_before = {*report.provenance.get("kept", ()), *report.provenance.get("exact", ())}
    unchanged = len(as_before & report.scores.keys())
    message = f"{len(report.scores)} scores" + (f", {unchanged} of them unchanged" if unchanged else "")
    return Outcome(run.stored.uri, run.name, "done", message, source=source.name)


def _changed(run: LoggedRun, request: Request, report: Report, old: Report, source: Source) -> Content:
    """Return what to write: whatever differs from what the run shows."""
    shown = old if run.matches(old) and not request.options.force else NO_REPORT
    curves = [name for name in report.curves if not _shows(shown, report, name)]
    return Content(
        report.labelled(method=run.method, split=run.split),
        LogOptions(scores=request.options.scores),
        run.split,
        drawn=_maps(run, request, report, shown),
        shown=[
            key for key in report.scores if scalar_name(key, run.split, report.task) in run.stored.scalars
        ],
        figures=_figures(run, request, report, shown, curves),
        curves=curves,
        files=_files(report, shown, source),
        seal=request.seal(scores_digest(report)),
    )


def _shows(shown: Report, report: Report, name: str) -> bool:
    """True if the run shows a curve of the new report, under the same name."""
    if name not in shown.curves or not same_curve(shown.curves[name], report.curves[name]):
        return False
    names = {curve_name(name, settings=each.settings, task=each.task) for each in (shown, report)}
    return len(names) == 1


def _figures(
    run: LoggedRun, request: Request, report: Report, shown: Report, curves: Collection[str]
) -> bool | list[str]:
    """Return those that are requested, or that the run holds and whose curves or printed scores changed."""
    if request.options.figures != "auto":
        return request.options.figures
    known = plugins.metrics(report.task)

    def is_stale(spec: FigureSpec) -> bool:
        if shown is not NO_REPORT and spec.needs_places:
            return shown.verdict.places != report.verdict.places
        if shown is NO_REPORT or not spec.needs:
            return shown.scores != report.scores
        keys = {report.curves[name].score for name in spec.needs if name in report.curves}
        changed = {key for key in known if shown.scores.get(key) != report.scores.get(key)}
        return bool(keys & changed or set(spec.needs) & set(curves))

    return [
        spec.name
        for spec in plugins.figures(report.task).values()
        if f"{figure_name(spec.name, run.split)}.png" in run.files and is_stale(spec)
    ]


def _maps(run: LoggedRun, request: Request, report: Report, shown: Report) -> DrawnCases:
    """Read the cases that the run drew, if they look different now or all are requested."""
    figures, options = request.options.figures, task_of(report).map_options
    is_same = figures is not True and shown is not NO_REPORT and options(shown) == options(report)
    if figures is False or is_same or request.alters_floor(shown) or not run.has(MAPS_FILE):
        return DrawnCases()
    return run.drawn()


def _files(report: Report, shown: Report, source: Source) -> list[str]:
    """Return the files to write: statistics only if the run has none of these predictions."""
    files = [REPORT_FILE]
    if source.statistics is None and shown.provenance.get("digest") != report.provenance.get("digest"):
        files.append(STATISTICS_FILE)
    if shown is NO_REPORT or shown.recalibration != report.recalibration:
        files.append(RECALIBRATION_FILE)
    return files


def _write(run: LoggedRun, content: Content) -> None:
    """Write to the run; BackendError if something did not arrive, in which case the run is not marked done."""
    uri = run.stored.uri
    target = Target(uri.partition(":")[0], uri, partial(run.store.reopen, run.stored.run_id))
    writer = RunWriter(target)
    unmade = publish([content], [writer])
    problem = writer.problem()
    if problem or unmade:
        raise BackendError(" ".join([*unmade, *([problem] if problem else [])])) from writer.error
