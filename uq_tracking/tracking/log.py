"""The one line: score predictions and log the result to the active run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, overload

from uq_tracking.checks import listing, usual_errors
from uq_tracking.errors import BackendError, SettingsError, log_once, redact, warn
from uq_tracking.evaluation.plan import Plan
from uq_tracking.inputs.convert import Pieces
from uq_tracking.inputs.predictions import Forecast, Predictions
from uq_tracking.report import Report, Reports
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.streams.engines import count_dask, count_pieces, is_stream, stream_of
from uq_tracking.tracking.backend import calling
from uq_tracking.tracking.cases import DrawnCases, Maps, choose
from uq_tracking.tracking.content import Content, LogOptions, RunOptions, weighed
from uq_tracking.tracking.deadline import Budget, checked_deadline
from uq_tracking.tracking.folder import fallback_target
from uq_tracking.tracking.health import health_of
from uq_tracking.tracking.names import output_split
from uq_tracking.tracking.overview import hint
from uq_tracking.tracking.publish import publish
from uq_tracking.tracking.resolve import Target, is_rank_zero, targets_of
from uq_tracking.tracking.writer import RunWriter, Safety
from uq_tracking.verbs import EvaluateOptions, check_alone, check_counted, evaluate, planned

if TYPE_CHECKING:
    from typing_extensions import Unpack


class LogKeywords(EvaluateOptions, RunOptions, total=False):
    """Options of `log`, explained there, for type checkers."""

    to: str | Sequence[str] | None
    split: str | None
    step: int | None
    images: Any
    maps: Maps
    predictions: Literal["auto"] | bool
    model_id: str | None
    dataset: Any
    every_rank: bool
    deadline: float | None


@overload
def log(
    y_true: Any = ...,
    y_pred: Any = ...,
    y_std: Any = ...,
    *,
    probs: Any = ...,
    outputs: None = ...,
    **options: Unpack[LogKeywords],
) -> Report: ...


@overload
def log(
    y_true: Any,
    y_pred: Any = ...,
    y_std: Any = ...,
    *,
    probs: Any = ...,
    outputs: Sequence[str],
    **options: Unpack[LogKeywords],
) -> Reports: ...


@listing(LogOptions, evaluate)
@usual_errors()
def log(
    y_true: Any = None,
    y_pred: Any = None,
    y_std: Any = None,
    *,
    probs: Any = None,
    outputs: Sequence[str] | None = None,
    **options: Any,
) -> Report | Reports:
    """Score predictions and log scores, curves, figures, maps, statistics and predictions to a run.

    The run is ``run`` if given; else the active run of every installed tracker that has one; else the MLflow run that
    ended last in this thread, if no other is open; else a folder in ``./uq_runs``. A log message announces the last
    two. Runs are never started, ended or renamed. Logging the same thing again changes nothing.

    **In an expensive job**: arrays or options that cannot be scored raise before any tracker is contacted. After that
    no tracker can stop the job, or hold it up for longer than the deadline. If a tracker fails, one `TrackingWarning`
    names it and says why; the others still get everything, and the call is kept in ``./uq_runs/spool``. Until the
    tracker answers again, further calls go straight there; then all are sent in the background, in order, to the same
    run. `sync` sends what is left.

    **In a distributed job** every process may call it, and each gets the report of what it passed. Rank zero logs;
    other ranks, identified by ``torch.distributed`` or else by the launcher's environment (``RANK``, ``LOCAL_RANK``,
    ``OMPI_COMM_WORLD_RANK``, ``PMI_RANK``, ``SLURM_PROCID``), log only to a run they opened themselves or that
    ``run`` names. Nothing is exchanged here: call `Accumulator.all_reduce` first to score the data of all ranks
    together.

    Parameters
    ----------
    y_true : array of any shape, `Predictions`, `Report` or `Accumulator`
        Truth, in the target's unit, or true classes with ``probs``; or an existing `Predictions`, report or
        accumulator alone. Dask arrays are scored chunk by chunk; as with an accumulator, their predictions are not
        stored.
    y_pred, y_std : array of the same shape
        Predictive mean and standard deviation, in the target's unit.
    probs : array of the labels' shape with an added axis of classes, or of the labels' shape
        Class probabilities, or logits with ``logits=True``.
    outputs : sequence of str, optional
        Names of the outputs along the last axis of the truth: each is scored and logged separately, as
        ``uq/<output>/<key>``.
    scores, run, to, method, split, step, images, figures, maps, predictions, tags, strict, every_rank, deadline
        As for `LogOptions`: ``run`` says where, ``method`` and ``split`` under which names; ``step`` logs one point
        of a series, ``scores="all"`` shows all scores, ``strict`` raises if a tracker fails.
    mask, weights, groups, unit, calibration, alpha, n_bins, std_floor, statistics ...
        All options of `evaluate`; for an accumulator, those of its ``compute``.

    Returns
    -------
    Report
        All scores, with the reasons why any are undefined. With ``outputs``, `Reports`: one per output.

    Raises
    ------
    InputError
        The arrays cannot be scored.
    SettingsError
        An option is out of range, or no tracker recognizes ``run``.
    UnknownBackendError
        ``to`` or the scheme of an address does not name an installed backend.
    BackendError
        With ``strict=True``, a tracker failed.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> report = uq.log([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3], run="dir:runs", method="example")
    >>> round(report.scores["mae"], 3)
    0.167
    >>> report = uq.log([0, 1, 1], probs=[0.2, 0.9, 0.4], run="dir:runs", method="classes")
    >>> round(report.scores["accuracy"], 3)
    0.667
    """
    about = LogOptions(**{name: options.pop(name) for name in LOG_OPTIONS if name in options})
    arrays = {"y_pred": y_pred, "y_std": y_std, "probs": probs}
    source = stream_of(y_true) if is_stream(y_true) else y_true
    if isinstance(source, Report | Accumulator):
        check_alone(source, {**arrays, "outputs": outputs})
        _check_options(source, options, about)
    else:
        plan, forecast = planned(log, Forecast.of(source, arrays, options), options, outputs)
    targets = targets_of(
        about.run, about.to, name=about.method or "uq", tags=about.tags, every_rank=about.every_rank
    )
    if isinstance(source, Report | Accumulator):
        report = source if isinstance(source, Report) else source.compute(**options)
        drawn = {} if isinstance(source, Report) or about.maps is False else source.cases
        contents = [_content(report, about, about.split, drawn=DrawnCases(drawn))]
    elif forecast.is_lazy:
        contents = [_counted(plan, forecast, about)]
    elif outputs is None:
        contents = [_scored(plan, forecast.predictions(), about, about.split)]
    else:
        contents = [
            _scored(own, data, about, output_split(about.split, output))
            for output, (own, data) in plan.split(forecast, outputs, forecast.options).items()
        ]
    contents = weighed(contents)
    _send(contents, targets)
    reports = [item.report for item in contents]
    return reports[0] if outputs is None else Reports(zip(outputs, reports, strict=True))


LOG_OPTIONS = tuple(field.name for field in fields(LogOptions))
_METHODS: dict[str, str | None] = {}
"""The method of each run that got a whole report from this process."""
_log = logging.getLogger("uq_tracking")


def _check_options(source: Report | Accumulator, options: Mapping[str, Any], about: LogOptions) -> None:
    """Raise SettingsError for options that come too late for a report or an accumulator."""
    if isinstance(source, Report):
        if options:
            raise SettingsError(f"a Report is already scored; pass {', '.join(options)} to evaluate instead")
        if about.maps not in ("auto", False):
            raise SettingsError(f"maps={about.maps!r} needs predictions; a Report holds none")
        if about.images is not None or about.predictions is True:
            what = "images need" if about.images is not None else "predictions=True needs"
            raise SettingsError(f"{what} predictions; a Report holds none")
        return
    check_counted(log, source, options)
    kind = type(source).__name__
    if about.maps not in ("auto", True, False):
        raise SettingsError(f"maps={about.maps!r} comes too late; pass maps= when making the {kind}")
    if about.images is not None:
        raise SettingsError(f"images cannot be passed here; pass them to {kind}.update, batch by batch")
    if about.predictions is True:
        raise SettingsError(f"predictions=True needs predictions, and the {kind} holds none")


def _scored(plan: Plan, data: Predictions, about: LogOptions, split: str | None) -> Content:
    """Score arrays in memory; a step shows a few scores, and the others wait."""
    drawn = choose(data.shape, about.maps, split, plan.task, data, about.images)
    report = plan.report(data, later=about.step is not None)
    return _content(report, about, split, predictions=data, drawn=drawn)


def _counted(plan: Plan, forecast: Forecast, about: LogOptions) -> Content:
    """Score lazy arrays, or what is read in pieces, whose maps are the first of the batches."""
    if isinstance(forecast.y_true, Pieces):
        if about.images is not None:
            raise SettingsError("images cannot be passed here; pass them in each batch, as a dict")
        stream = count_pieces(plan, forecast, about.maps)
        return _content(stream.report(plan), about, about.split, drawn=DrawnCases(stream.cases))
    shape = tuple(forecast.y_true.shape)
    drawn = choose(shape, about.maps, about.split, plan.task, images=about.images)
    stream = count_dask(plan, forecast, drawn.cases)
    return _content(stream.report(plan), about, about.split, drawn=replace(drawn, cases=stream.cases))


def _content(report: Report, about: LogOptions, split: str | None, **parts: Any) -> Content:
    """Return the content under its names, which its report also states."""
    report = report.labelled(method=about.method, split=split)
    return Content(report, about, split, figures=about.figures, **parts)


def _send(contents: Sequence[Content], targets: list[Target]) -> None:
    """Write the content to the targets, or to a folder if there is none.

    In a distributed job only rank zero creates the folder, unless ``every_rank``.

    Warns
    -----
    TrackingWarning
        A tracker has just failed. While it is known to be down, further calls are spooled without another warning.

    Raises
    ------
    BackendError
        With ``strict``, whenever a tracker did not take something.
    """
    content, about = contents[0], contents[0].options
    if not targets and not (about.every_rank or is_rank_zero()):
        log_once(
            logging.INFO,
            "this process is not rank zero of its job and has no run of its own, so it scores but logs nothing; "
            "pass run= or every_rank=True to log from here too",
        )
        return
    problems: list[str] = []
    if not targets:
        try:
            targets = [_fallback(content)]
        except BackendError as error:
            problems.append(redact(f"The report could not be saved anywhere: {error}."))
    deadline = checked_deadline(about.deadline)
    budget, splits = Budget(deadline, len(targets)), [each.split for each in contents]
    kind = f"{content.report.task} {about.scores}"
    writers = []
    for target in targets:
        health = health_of(target.backend, target.place, deadline)
        safety = Safety(budget, health, about.step, splits, kind, strict=about.strict)
        writers.append(RunWriter(target, safety))
    with calling():
        problems += publish(contents, writers)
    if about.step is None:
        hint(content.report, [writer.page for writer in writers])
        for run in [each.run for each in writers if each.run is not None and about.method is not None]:
            former, _METHODS[run.uri] = _METHODS.get(run.uri, about.method), about.method
            if former != about.method:
                warn(
                    f"{run.uri} was logged as method {former!r}, which {about.method!r} replaces; start a run for "
                    "each method, or pass an experiment, such as run='mlflow:EXPERIMENT', to create one in every call"
                )
    told = [writer for writer in writers if about.strict or writer.is_news or writer.kept is None]
    problems += [message for writer in told if (message := writer.problem())]
    if problems:
        message = " ".join(problems)
        if about.strict:
            raise BackendError(message) from next((item.error for item in writers if item.error), None)
        warn(message)


def _fallback(content: Content) -> Target:
    """Target a folder and log where: a log line is visible and, unlike a warning, can never stop the job."""
    about = content.options
    considered = [about.to] if isinstance(about.to, str) else list(about.to or ())
    target, is_new = fallback_target(about.method, content.split, about.step)
    if is_new and "dir" not in considered:
        _log.warning(
            "%s an active run: logging to %s; to log elsewhere, start a run first or pass run=",
            f"to={'/'.join(considered)} does not have" if considered else "no tracker has",
            target.label,
        )
    return target
