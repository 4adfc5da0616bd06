"""The one line: score predictions and log the result to the run that is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.evaluation.outputs import Reports, split_all
from uq_tracking.evaluation.regression import evaluate
from uq_tracking.inputs import Options, Predictions
from uq_tracking.inputs.lazy import is_lazy
from uq_tracking.report import Report
from uq_tracking.settings import Method
from uq_tracking.streams.base import Streaming
from uq_tracking.tracking.cases import Maps, check_images, choose_cases
from uq_tracking.tracking.deadline import checked_deadline
from uq_tracking.tracking.dispatch import checked_step, send
from uq_tracking.tracking.names import check_split, output_split
from uq_tracking.tracking.publish import Content
from uq_tracking.tracking.resolve import targets_of


@overload
def log(
    y_true: Any, y_pred: Any = ..., y_std: Any = ..., *, outputs: None = ..., **options: Any
) -> Report: ...


@overload
def log(y_true: Any, y_pred: Any, y_std: Any, *, outputs: Sequence[str], **options: Any) -> Reports: ...


def log(
    y_true: Any,
    y_pred: Any = None,
    y_std: Any = None,
    *,
    run: Any = None,
    to: str | Sequence[str] | None = None,
    method: str | None = None,
    split: str | None = None,
    step: int | None = None,
    unit: str | None = None,
    outputs: Sequence[str] | None = None,
    calibration: Any = None,
    images: Any = None,
    figures: bool = True,
    maps: Maps = "auto",
    predictions: Literal["auto"] | bool = "auto",
    tags: Mapping[str, str] | None = None,
    statistics: Method = "auto",
    strict: bool = False,
    every_rank: bool = False,
    deadline: float | None = None,
    **options: Any,
) -> Report | Reports:
    """Score predictions and log scores, curves, figures, maps, statistics and predictions to a run.

    The run is ``run`` if given; else the active run of every installed tracker that has one; else a folder in
    ``./uq_runs``, named in a line on the log. Runs are never started, ended or renamed. Logging the same again
    changes nothing.

    **In a job that costs thousands**: arrays or options that cannot be scored raise, before any tracker is
    asked. From then on no tracker can stop the job, or hold it up for longer than the deadline. What a tracker did
    not take becomes one `TrackingWarning` that names the tracker and why; the other trackers still get it, and the
    call is kept in ``./uq_runs/spool``. Until the tracker answers again, further calls are kept there at once; then
    all are sent in the background, in order, into the same run. `sync` sends what is left.

    **In a distributed job** every process may call it, and each gets the report of what it passed. Rank zero logs; a
    process of another rank, by ``torch.distributed`` or else by the launcher's environment (``RANK``, ``LOCAL_RANK``,
    ``OMPI_COMM_WORLD_RANK``, ``PMI_RANK``, ``SLURM_PROCID``), logs only into a run that it opened itself, or that
    ``run`` names. Nothing is exchanged here: call `Accumulator.all_reduce` first to score the union of all.

    Parameters
    ----------
    y_true : array of any shape, `Predictions`, `Report` or `Accumulator`
        Truth, in the target's unit; or predictions, a report or an accumulator made before, then without
        ``y_pred``, ``y_std``. Dask arrays are scored chunk by chunk; like those of an accumulator, their
        predictions are not stored.
    y_pred, y_std : array of the same shape
        Predictive mean and standard deviation, in the target's unit.
    run : optional
        A tracker's run object or run id, a Lightning logger, a `Run`, an address (``mlflow:EXPERIMENT`` makes a
        run there, ``mlflow:EXPERIMENT/RUN_ID``, ``dir:PATH``), or a list of these. Active runs belong to a
        thread: pass the run when calling from another one.
    to : str or list of str, optional
        Names of the trackers to consider, when several have an active run.
    method : str, optional
        Name of the uncertainty method: tag ``uq.method``, by which runs are compared.
    split : str, optional
        Put into every name, e.g. ``uq/test/nll``.
    step : int, optional
        Log only the scores, as a point of a series; for every epoch. The final call goes without a step.
    unit : str, optional
        Unit of the target, for axes and tables.
    outputs : sequence of str, optional
        Names of the outputs along the last axis of the arrays: each is scored and logged by itself, as
        ``uq/<output>/<key>``.
    calibration : optional
        A second set of predictions, a fitted recalibration, or a method's name: logs parameters and scores after
        recalibration too; see `evaluate`.
    images : array, shape (cases, h, w) or (cases, h, w, channels), optional
        Input images, shown beside the maps.
    figures : bool
        Whether to draw figures.
    maps : "auto", bool, int or list of int
        Cases of spatial predictions, shape (..., height, width), that are drawn; see `choose_cases`.
    predictions : "auto" or bool
        Whether to store the predictions; "auto" up to 256 MB.
    tags : mapping, optional
        Further tags.
    statistics : {"auto", "exact", "sketch"}
        How the statistics are made: `evaluate`'s ``method``, a word that here names the uncertainty method.
    strict : bool
        Raise instead of warning when a tracker fails, after everything was tried.
    every_rank : bool
        Log on every process of a distributed job as on rank zero, each for itself.
    deadline : float, optional
        Seconds that this call may wait for all its trackers together; by default ``UQ_TRACKING_DEADLINE``, else 10.
    **options
        Options of `Predictions` and `evaluate`: ``mask``, ``alpha``, ``n_bins``, ``std_floor``, ``groups`` ...

    Returns
    -------
    Report
        All scores, with the reasons for those that are undefined. With ``outputs``, `Reports`: one by output.

    Raises
    ------
    InputError
        The arrays cannot be scored.
    SettingsError
        An option is out of range, or ``run`` is nothing that a tracker knows.
    UnknownBackendError
        ``to`` or the scheme of an address names no installed backend.
    BackendError
        With ``strict=True``, a tracker failed.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> report = uq.log([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3], run="dir:runs", method="example")
    >>> round(report.scores["mae"], 3)
    0.167
    """
    check_split(split)
    step, deadline = checked_step(step), checked_deadline(deadline)
    targets = targets_of(run, to, name=method or "uq", tags=tags, every_rank=every_rank)
    if calibration is not None:
        options["calibration"] = calibration
    about: dict[str, Any] = {
        "step": step,
        "method": method,
        "tags": tags or {},
        "figures": figures,
        "keep_predictions": predictions,
    }
    if outputs is not None:
        parts = split_all(y_true, y_pred, y_std, outputs, {**options, "unit": unit})
        made = {
            name: replace(
                _scored(part, None, statistics, maps, images, own), split=output_split(split, name), **about
            )
            for name, (part, own) in parts.items()
        }
        first, *others = made.values()
        send(
            replace(first, also=others), targets, to, strict=strict, every_rank=every_rank, deadline=deadline
        )
        return Reports({name: content.report for name, content in made.items()})
    if is_lazy(y_true) or isinstance(y_true, Streaming):
        content = _streamed(y_true, y_pred, y_std, unit, statistics, maps, images, predictions, options)
    else:
        content = _scored(
            _read(y_true, y_pred, y_std, unit, options), unit, statistics, maps, images, options
        )
    return send(
        replace(content, split=split, **about),
        targets,
        to,
        strict=strict,
        every_rank=every_rank,
        deadline=deadline,
    )


def _scored(
    data: Predictions | Report,
    unit: str | None,
    statistics: Method,
    maps: Maps,
    images: Any,
    options: Mapping[str, Any],
) -> Content:
    """What is to be logged of arrays in memory, or of a report."""
    if isinstance(data, Report):
        return Content(data, cases=_no_cases(maps), images=images)
    chosen = choose_cases(data.target.shape, maps)
    check_images(data.target.shape, images)
    report = evaluate(data, unit=unit, method=statistics, **options)
    return Content(report, data, cases=chosen, images=images)


def _streamed(
    y_true: Any,
    y_pred: Any,
    y_std: Any,
    unit: str | None,
    statistics: Method,
    maps: Maps,
    images: Any,
    predictions: Literal["auto"] | bool,
    options: dict[str, Any],
) -> Content:
    """What is to be logged of an accumulator or of lazy arrays."""
    from uq_tracking.tracking.streams import AFTER, as_stream, check_stream, kept_cases

    if isinstance(y_true, Streaming):
        check_stream(unit, options, maps, images, predictions)
    stream = as_stream(
        y_true,
        y_pred,
        y_std,
        unit=unit,
        statistics=statistics,
        maps=maps,
        images=images,
        options=options,
    )
    after = {name: options[name] for name in AFTER if name in options}
    return Content(stream.compute(**after), kept=kept_cases(stream) if maps is not False else ())


def _read(
    y_true: Any, y_pred: Any, y_std: Any, unit: str | None, options: dict[str, Any]
) -> Predictions | Report:
    """Make the predictions, taking their options out of ``options``."""
    if not isinstance(y_true, Predictions | Report):
        own = {name: options.pop(name) for name in Options.__annotations__ if name in options}
        return Predictions(y_true, y_pred, y_std, unit=unit, **own)
    kind = type(y_true).__name__
    if y_pred is not None or y_std is not None:
        raise InputTypeError(f"y_pred and y_std are part of the {kind}; pass the {kind} alone")
    spare = [*options, *(["unit"] if unit is not None else [])]
    if isinstance(y_true, Report) and spare:
        raise SettingsError(f"a Report is already scored; pass {', '.join(spare)} to evaluate instead")
    return y_true


def _no_cases(maps: Maps) -> list[int]:
    if maps in ("auto", False):
        return []
    raise SettingsError(f"maps={maps!r} needs predictions; a Report holds none")
