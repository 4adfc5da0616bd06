"""The one line: score predictions and log the result to the active run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

from uq_tracking.errors import InputTypeError, SettingsError, UnknownOptionError
from uq_tracking.evaluation.outputs import Reports
from uq_tracking.evaluation.plan import Plan
from uq_tracking.inputs.lazy import is_lazy
from uq_tracking.report import Report
from uq_tracking.streams.batches import BatchAccumulator
from uq_tracking.streams.dask_arrays import count_dask
from uq_tracking.streams.map_samples import check_image_count
from uq_tracking.tasks import CLASSIFICATION, REGRESSION, Task
from uq_tracking.tracking.arguments import Destination, LogOptions
from uq_tracking.tracking.cases import Maps, choose
from uq_tracking.tracking.content import Content, Scores
from uq_tracking.tracking.deadline import checked_deadline
from uq_tracking.tracking.dispatch import send
from uq_tracking.tracking.names import output_split
from uq_tracking.tracking.resolve import targets_of
from uq_tracking.verbs import options_of, planned, truth_of


@overload
def log(
    y_true: Any = ..., /, y_pred: Any = ..., y_std: Any = ..., *, outputs: None = ..., **options: Any
) -> Report: ...


@overload
def log(y_true: Any, /, y_pred: Any, y_std: Any, *, outputs: Sequence[str], **options: Any) -> Reports: ...


def log(
    y_true: Any = None,
    /,
    y_pred: Any = None,
    y_std: Any = None,
    *,
    scores: Scores = "headline",
    run: Any = None,
    to: str | Sequence[str] | None = None,
    method: str | None = None,
    split: str | None = None,
    step: int | None = None,
    outputs: Sequence[str] | None = None,
    images: Any = None,
    figures: bool = True,
    maps: Maps = "auto",
    predictions: Literal["auto"] | bool = "auto",
    tags: Mapping[str, str] | None = None,
    strict: bool = False,
    every_rank: bool = False,
    deadline: float | None = None,
    **options: Any,
) -> Report | Reports:
    """Score predictions and log scores, curves, figures, maps, statistics and predictions to a run.

    The run is ``run`` if given; else the active run of every installed tracker that has one; else a folder in
    ``./uq_runs``, announced in a log message. Runs are never started, ended or renamed. Logging the same thing again
    changes nothing.

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
        Truth, in the target's unit; or an existing `Predictions`, report or accumulator, then without ``y_pred`` and
        ``y_std``. Dask arrays are scored chunk by chunk; as with an accumulator, their predictions are not stored. A
        table may come first, followed by the names of its columns:
        ``log(df, y_true="y", y_pred="mu", y_std="sigma")``, or ``quantiles={0.1: "q10", 0.9: "q90"}``.
    y_pred, y_std : array of the same shape
        Predictive mean and standard deviation, in the target's unit.
    scores : "headline" or "all"
        Which scores the tracker shows. "headline": the few that answer whether the model is accurate, honest and
        knows where it errs (``uq/<key>``), plus those requested with ``metrics=``; "all": all others too, by what
        they judge (``uq_accuracy/<key>``, ``uq_scoring/``, ``uq_calibration/``, ``uq_ranking/``, ``uq_spread/``).
        Either way all are in the report stored with the run, where `compare` and `rescore` find them.
    run : optional
        A tracker's run object or run id, a Lightning logger, a `Run`, an address (``mlflow:EXPERIMENT``, which
        creates a run there, ``mlflow:EXPERIMENT/RUN_ID``, ``dir:PATH``), or a list of these. Active runs belong to a
        thread: pass the run when calling from another one.
    to : str or list of str, optional
        Names of the trackers to log to, when several have an active run.
    method : str, optional
        Name of the uncertainty method, stored in the tag ``uq.method`` by which runs are compared.
    split : str, optional
        Name of the split, made part of every logged name, e.g. ``uq/test/nll``.
    step : int, optional
        Log only the scores, as one point of a series, e.g. per epoch; make the final call without a step. The
        report's other scores are computed when first accessed.
    outputs : sequence of str, optional
        Names of the outputs along the last axis of the arrays: each is scored and logged separately, as
        ``uq/<output>/<key>``.
    images : array, shape (cases, h, w), (cases, h, w, channels) or (cases, channels, h, w), optional
        Input images with 1, 3 or 4 channels, shown beside the maps.
    figures : bool
        Whether to draw figures.
    maps : "auto", bool, int, list of int, "extremes" or an address
        Which cases of spatial predictions, shape (..., height, width), to draw: up to four, evenly spaced ("auto",
        True); this many (int); these (list); the worst, median and best by RMSE ("extremes"); or the cases that
        another run drew, with its colors
        (``mlflow:EXPERIMENT/RUN_ID``, ``dir:PATH``).
    predictions : "auto" or bool
        Whether to store the predictions; "auto" stores up to 256 MB.
    tags : mapping, optional
        Further tags.
    strict : bool
        Raise instead of warning if a tracker fails, after trying everything.
    every_rank : bool
        Log from every process of a distributed job as if it were rank zero, each on its own.
    deadline : float, optional
        Seconds this call may wait for all its trackers together; by default ``UQ_TRACKING_DEADLINE``, else 10.
    **options
        Options of `evaluate`: ``unit``, ``mask``, ``calibration``, ``alpha``, ``n_bins``, ``std_floor``,
        ``groups``, ``statistics`` ...; for an accumulator, those of its ``compute``.

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
    """
    truth, options = truth_of(y_true, options)
    return _log(
        REGRESSION,
        (truth, y_pred, y_std),
        options,
        outputs,
        LogOptions(scores, method, split, step, images, figures, maps, predictions, tags).checked(),
        Destination(run, to, strict, every_rank, checked_deadline(deadline)),
    )


def log_classification(
    labels: Any,
    probs: Any = None,
    *,
    scores: Scores = "headline",
    run: Any = None,
    to: str | Sequence[str] | None = None,
    method: str | None = None,
    split: str | None = None,
    step: int | None = None,
    outputs: Sequence[str] | None = None,
    images: Any = None,
    figures: bool = True,
    maps: Maps = "auto",
    predictions: Literal["auto"] | bool = "auto",
    tags: Mapping[str, str] | None = None,
    strict: bool = False,
    every_rank: bool = False,
    deadline: float | None = None,
    **options: Any,
) -> Report | Reports:
    """Score class probabilities and log scores, curves, figures, maps, statistics and predictions to a run.

    Where it goes, and what happens with failing trackers or several processes, is as for `log`.

    Parameters
    ----------
    labels : integer array of any shape, `ClassPredictions`, `Report` or `ClassificationAccumulator`
        True classes 0 ... C - 1; or existing predictions, a report or an accumulator, then without ``probs``.
    probs : array of the labels' shape with an added axis of classes, or of the labels' shape
        Class probabilities, or logits with ``logits=True``; see `evaluate_classification`.
    scores, run, to, method, split, step, outputs, figures, tags, strict, every_rank, deadline
        As for `log`.
    images : array, shape (cases, h, w), (cases, h, w, channels) or (cases, channels, h, w), optional
        Input images with 1, 3 or 4 channels, shown beside the maps.
    maps : "auto", bool, int, list of int, "extremes" or an address
        Which cases of labels of shape (..., height, width) to draw, as for `log`; the worst has the largest share of
        wrong labels.
    predictions : "auto" or bool
        Whether to store labels and probabilities; "auto" stores up to 256 MB.
    **options
        Options of `evaluate_classification`: ``logits``, ``class_axis``, ``ignore_label``, ``calibration``,
        ``groups``, ``statistics`` ...; for an accumulator, those of its ``compute``.

    Returns
    -------
    Report

    Raises
    ------
    InputError, SettingsError, UnknownBackendError, BackendError
        As for `log`.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> report = uq.log_classification([0, 1, 1], [0.2, 0.9, 0.4], run="dir:runs", method="example")
    >>> round(report.scores["accuracy"], 3)
    0.667
    """
    return _log(
        CLASSIFICATION,
        (labels, probs),
        options,
        outputs,
        LogOptions(scores, method, split, step, images, figures, maps, predictions, tags).checked(),
        Destination(run, to, strict, every_rank, checked_deadline(deadline)),
    )


def _log(
    task: Task,
    arrays: Sequence[Any],
    options: Mapping[str, Any],
    outputs: Sequence[str] | None,
    about: LogOptions,
    destination: Destination,
) -> Report | Reports:
    """Score and send what a logging function was given."""
    plan, given = None, options
    if outputs is None and isinstance(arrays[0], Report | BatchAccumulator):
        _check_alone(task, arrays)
        _check_options(arrays[0], options, about)
    else:
        plan, given = planned(task, log if task is REGRESSION else log_classification, options)
    run, to, every_rank = destination.run, destination.to, destination.every_rank
    targets = targets_of(run, to, name=about.method or "uq", tags=about.tags, every_rank=every_rank)
    if plan is None:
        content = [_collected(arrays[0], given, about)]
    elif outputs is not None:
        parts = plan.split(arrays, outputs, given)
        content = [
            _scored(own, data, replace(about, split=output_split(about.split, output)))
            for output, (own, data) in parts.items()
        ]
    elif is_lazy(arrays[0]):
        content = [_counted(plan, arrays, given, about)]
    else:
        content = [_scored(plan, task.read(*arrays, **given), about)]
    send(replace(content[0], also=content[1:]), targets, destination)
    reports = [item.report for item in content]
    return reports[0] if outputs is None else Reports(dict(zip(outputs, reports, strict=True)))


def _check_alone(task: Task, arrays: Sequence[Any]) -> None:
    """Raise InputTypeError for arrays beside a report or an accumulator."""
    kind, names = type(arrays[0]).__name__, task.predictions.arguments[1:]
    spare = [name for name, array in zip(names, arrays[1:], strict=True) if array is not None]
    if spare:
        raise InputTypeError(f"{' and '.join(spare)} are part of the {kind}; pass the {kind} alone")


def _check_options(source: Report | BatchAccumulator, options: Mapping[str, Any], about: LogOptions) -> None:
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
    kind, known = type(source).__name__, options_of(type(source).compute)
    spare = options.keys() - known
    if spare & source.settings.keys():
        raise SettingsError(
            f"the {kind} already has its settings; pass {', '.join(sorted(spare))} when making it"
        )
    if spare:
        raise UnknownOptionError("log", spare, known)
    if about.maps not in ("auto", True, False):
        raise SettingsError(f"maps={about.maps!r} comes too late; pass maps= when making the {kind}")
    if about.images is not None:
        raise SettingsError(f"images cannot be passed here; pass them to {kind}.update, batch by batch")
    if about.predictions is True:
        raise SettingsError(f"predictions=True needs predictions, and the {kind} holds none")


def _collected(source: Report | BatchAccumulator, options: Mapping[str, Any], about: LogOptions) -> Content:
    """What to log of a report or an accumulator."""
    if isinstance(source, Report):
        return _labelled(Content(source), about)
    report = source.compute(**options)
    return _labelled(Content(report, kept=source.cases if about.maps is not False else {}), about)


def _scored(plan: Plan, data: Any, about: LogOptions) -> Content:
    """What to log of arrays in memory; a step shows a few scores, and the others wait."""
    chosen = choose(data.shape, about.maps, about.split, plan.task, data)
    check_image_count(data.shape, about.images)
    report = plan.report(data, later=about.step is not None)
    content = Content(
        report, data, cases=chosen.numbers, images=about.images, notes=chosen.notes, limits=chosen.limits
    )
    return _labelled(content, about)


def _counted(plan: Plan, arrays: Sequence[Any], given: Mapping[str, Any], about: LogOptions) -> Content:
    """What to log of lazy arrays."""
    shape = tuple(arrays[0].shape)
    chosen = choose(shape, about.maps, about.split, plan.task)
    check_image_count(shape, about.images)
    stream = count_dask(plan.task, arrays, plan=plan, cases=chosen.numbers, images=about.images, **given)
    report = stream.report(plan)
    return _labelled(Content(report, kept=stream.cases, notes=chosen.notes, limits=chosen.limits), about)


def _labelled(content: Content, about: LogOptions) -> Content:
    """The content under its names, which its report also states."""
    return replace(
        content,
        report=content.report.labelled(method=about.method, split=about.split),
        scores=about.scores,
        split=about.split,
        step=about.step,
        method=about.method,
        tags=about.tags or {},
        figures=about.figures,
        keep_predictions=about.predictions,
    )
