"""The function that scores: arrays of any kind in, even lazy ones, a report out; no tracker is involved."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from uq_tracking import plugins
from uq_tracking.checks import listing
from uq_tracking.errors import InputTypeError, SettingsError, UnknownOptionError
from uq_tracking.evaluation.plan import Plan
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.convert import Pieces
from uq_tracking.inputs.labels import groups_of
from uq_tracking.inputs.predictions import Forecast
from uq_tracking.report import Report, Reports
from uq_tracking.settings import SCORE_OPTIONS, ScoreOptions
from uq_tracking.streams.accumulator import Accumulator, AccumulatorOptions
from uq_tracking.streams.engines import count_dask, count_pieces, is_stream, stream_of
from uq_tracking.tasks import Task, task_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class EvaluateOptions(AccumulatorOptions, total=False):
    """Options of `evaluate`, explained there, for type checkers: those of `Accumulator`, and more."""

    mask: Any
    weights: Any
    groups: Any
    order: Any
    by: Any
    statistics: Literal["auto", "exact", "sketch"]
    calibration: Any
    recalibration: Iterable[str] | None
    intervals: bool | None
    level: float
    seed: int
    reference: Any
    curves: Iterable[str] | None
    by_target: Any
    curve_metrics: Iterable[str] | None


@overload
def evaluate(
    y_true: Any = ...,
    y_pred: Any = ...,
    y_std: Any = ...,
    *,
    probs: Any = ...,
    outputs: None = ...,
    **options: Unpack[EvaluateOptions],
) -> Report: ...


@overload
def evaluate(
    y_true: Any,
    y_pred: Any = ...,
    y_std: Any = ...,
    *,
    probs: Any = ...,
    outputs: Sequence[str],
    **options: Unpack[EvaluateOptions],
) -> Reports: ...


@listing(Predictions, Predictions.from_probs, ScoreOptions, order=None)
def evaluate(
    y_true: Any = None,
    y_pred: Any = None,
    y_std: Any = None,
    *,
    probs: Any = None,
    outputs: Sequence[str] | None = None,
    **options: Any,
) -> Report | Reports:
    """Score a forecast against the truth: means and standard deviations, class probabilities, or any `Predictions`.

    Parameters
    ----------
    y_true : array of any shape, or Predictions
        Truth: targets in their unit, where a non-finite one means missing ground truth; or, with ``probs``, true
        classes 0 ... C - 1. A ``Predictions`` (draws, quantiles, a table's columns ...) replaces the arrays and the
        options of the input. Dask arrays are scored chunk by chunk on the active scheduler, without loading them
        whole; ``groups="chunk"`` makes each chunk a group.
    y_pred, y_std : arrays of the same shape
        Predictive means and standard deviations, in the target's unit.
    probs : array of the labels' shape with an added axis of C classes, or of the labels' shape
        Class probabilities, or logits with ``logits=True``; in the labels' shape, a binary classifier's probability
        of class 1.
    outputs : sequence of str, optional
        Names of the outputs along the last axis of the truth, each of which gets its own report.
    mask, weights, groups, by, on_invalid, std_floor
        As for ``Predictions``.
        ``groups`` give confidence intervals, and False says that samples are independent; ``by`` gives a curve of
        each chosen metric over its labels.
    order : array of numbers or dates, optional
        Time of each sample in a series, in any shape that ``groups`` accepts: up to twenty blocks of consecutive
        samples become the groups, so that intervals, verdict and comparisons hold although neighboring samples are
        correlated. If errors stay correlated for longer than a block, everything is one group, without intervals.
    logits, class_axis, members_axis, ignore_label, classes, event
        With ``probs``, as for ``Predictions.from_probs``.
    alpha, n_bins, family, dof, unit
        As for ``Settings``; with ``probs`` only ``n_bins``.
    metrics, statistics, calibration, recalibration, intervals, level, seed, reference
        As for ``ScoreOptions``: which scores, how, after which recalibration, and with which intervals.
    curves, by_target, curve_metrics
        As for ``ScoreOptions``: curves to make besides the default ones.

    Returns
    -------
    Report
        With ``outputs``, `Reports`: a mapping of the outputs' names to reports.

    Raises
    ------
    InputError
        The arrays cannot be scored; the message says what, where and the cure.
    SettingsError
        An option is unknown, out of range, or belongs to another kind of forecast.

    Examples
    --------
    >>> report = evaluate([1.5, 3.0, 2.0], [1.0, 2.0, 3.0], [0.1, 0.5, 1.0])
    >>> round(report.scores["crps"], 6)
    0.590806
    >>> report = evaluate([0, 1, 1], probs=[[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
    >>> round(report.scores["accuracy"], 3), round(report.scores["brier"], 3)
    (0.667, 0.46)
    """
    arrays = {"y_pred": y_pred, "y_std": y_std, "probs": probs}
    source = stream_of(y_true) if is_stream(y_true) else y_true
    if isinstance(source, Accumulator):
        check_alone(source, {**arrays, "outputs": outputs})
        check_counted(evaluate, source, options)
        return source.compute(**options)
    plan, forecast = planned(evaluate, Forecast.of(source, arrays, options), options, outputs)
    if forecast.is_lazy:
        count = count_pieces if isinstance(forecast.y_true, Pieces) else count_dask
        return count(plan, forecast).report(plan)
    if outputs is None:
        return plan.report(forecast.predictions(), narrow=True)
    parts = plan.split(forecast, outputs, forecast.options)
    return Reports({name: own.report(data, narrow=True) for name, (own, data) in parts.items()})


def check_alone(source: Any, beside: Mapping[str, Any]) -> None:
    """Raise InputTypeError for arrays beside a report or an accumulator."""
    spare = [name for name, value in beside.items() if value is not None]
    if spare:
        kind = type(source).__name__
        raise InputTypeError(f"{' and '.join(spare)} are part of the {kind}; pass the {kind} alone")


def check_counted(verb: Callable[..., Any], source: Accumulator, options: Mapping[str, Any]) -> None:
    """Raise SettingsError for options that come too late for an accumulator."""
    known = inspect.signature(source.compute).parameters.keys()
    spare = options.keys() - known
    if spare & source.settings.keys():
        raise SettingsError(
            f"the Accumulator already has its settings; pass {', '.join(sorted(spare))} when making it"
        )
    if spare:
        raise UnknownOptionError(verb.__name__, spare, known)


def planned(
    verb: Callable[..., Any], forecast: Forecast, options: Mapping[str, Any], outputs: Sequence[str] | None
) -> tuple[Plan, Forecast]:
    """Check what a verb was given, before anything is read; return the plan, and the forecast with its options.

    Raises
    ------
    UnknownOptionError
        The verb has no such option; the message names the one that was probably meant.
    SettingsError
        An option is out of range or belongs to another kind of forecast.
    """
    task = task_of(forecast.kind)
    check_options(verb, task, options)
    scoring = {name: value for name, value in options.items() if name in SCORE_OPTIONS}
    given = {name: value for name, value in options.items() if name not in scoring}
    if "unit" in options and "unit" not in task.without:
        given["unit"] = options["unit"]
    if "order" in given:
        given["groups"] = groups_of(given.get("groups"), given.pop("order"))
    plan, forecast = Plan(task, ScoreOptions(**scoring)), replace(forecast, options=given)
    if isinstance(forecast.y_true, Forecast):  # made by a constructor, with its own options
        forecast.check_whole()
        forecast = forecast.y_true
    if forecast.is_lazy:
        asked = {"outputs": outputs, "curves": plan.options.curves or None}
        asked |= {"reference": plan.options.reference, "by_target": plan.options.by_target}
        refused = [name for name, value in asked.items() if value is not None]
        if refused:
            raise SettingsError(
                f"{', '.join(refused)} cannot be used with lazy arrays; load them into memory"
            )
    return plan, forecast


_CURE_OF_PARTS = (
    "pass what the two parts come from: Predictions.from_ensemble(y_true, means, stds) or "
    "Predictions.from_evidential(y_true, gamma, nu, alpha, beta); or, if only the parts are known, "
    "y_std = sqrt(aleatoric**2 + epistemic**2)"
)
_AS_VARIANCE = "pass Predictions.from_variance(y_true, y_pred, variance), or y_std = sqrt(variance)"
_AS_LOG_VARIANCE = "pass Predictions.from_log_variance(y_true, y_pred, log_variance)"
_COLUMNS = (
    "for a table, pass Predictions.from_frame(table, y_true='y', {}=...); for arrays, Predictions.from_{}"
)
MEANT: dict[str, str] = {
    **dict.fromkeys(
        ("std", "stds", "sigma", "y_sigma", "y_stds", "y_err", "uncertainty", "scale"), "did you mean y_std=?"
    ),
    **dict.fromkeys(("mean", "mu", "pred", "y_mean", "y_mu", "y_hat", "loc"), "did you mean y_pred=?"),
    **dict.fromkeys(("target", "targets", "truth", "labels", "y"), "pass the truth first, or as y_true="),
    **dict.fromkeys(("y_prob", "y_probs", "prob", "proba", "y_proba", "y_score"), "did you mean probs=?"),
    **dict.fromkeys(("var", "variance", "y_var", "y_variance"), _AS_VARIANCE),
    **dict.fromkeys(("log_var", "logvar", "log_variance", "y_log_var", "y_logvar"), _AS_LOG_VARIANCE),
    **dict.fromkeys(("draws", "samples"), _COLUMNS.format("samples", "samples(y_true, draws)")),
    "quantiles": _COLUMNS.format("quantiles", "quantiles(y_true, quantiles, levels)"),
    "interval": _COLUMNS.format("interval", "interval(y_true, low, high, level)"),
    "ensemble": "pass Predictions.from_ensemble(y_true, means, stds)",
    "cov": "pass Predictions.from_covariance(y_true, y_pred, cov)",
    **dict.fromkeys(("epoch", "global_step"), "uq.log takes it as step="),
    **dict.fromkeys(("name", "run_name"), "uq.log takes it as method="),
    "experiment": "uq.log takes its address as run=, for example run='mlflow:EXPERIMENT'",
    "dist": "pass Predictions.from_distribution(y_true, dist)",
}
"""What to pass instead of a name that other libraries use."""


def check_options(verb: Callable[..., Any], task: Task, options: Mapping[str, Any]) -> None:
    """Refuse options that the verb does not have, and those of another kind of forecast."""
    known = {*inspect.signature(verb).parameters}
    unknown = options.keys() - known - task.options
    if unknown:
        parts = any(part in name for name in unknown for part in ("aleatoric", "epistemic"))
        meant = next((MEANT[name] for name in sorted(unknown) if name in MEANT), "")
        raise UnknownOptionError(verb.__name__, unknown, known, _CURE_OF_PARTS if parts else meant)
    for name, value in options.items():
        if value is not None and name not in task.options:
            owners = " or ".join(
                other.forecast for other in plugins.tasks().values() if name in other.options
            )
            forms = [
                form for form in plugins.forms().values() if name in form.options and len(form.takes) == 1
            ]
            named = " or ".join(f"{form.takes[0]}=" for form in forms)
            cure = f"pass those as {named}, or omit it" if named else "omit it"
            raise SettingsError(f"{name}= is an option of {owners}, not of {task.forecast}; {cure}")
