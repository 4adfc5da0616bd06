"""The functions that score: arrays of any kind in, even lazy ones, a report out; no tracker is involved."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from uq_tracking.errors import SettingsError, UnknownOptionError
from uq_tracking.evaluation.outputs import Reports
from uq_tracking.evaluation.plan import Plan
from uq_tracking.inputs.lazy import is_lazy
from uq_tracking.inputs.time_blocks import groups_of
from uq_tracking.report import Report
from uq_tracking.settings import Family, Settings
from uq_tracking.statistics.collecting import How
from uq_tracking.streams.dask_arrays import count_dask
from uq_tracking.tasks import CLASSIFICATION, REGRESSION, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack


class EvaluateOptions(TypedDict, total=False):
    """Options of `evaluate`, explained there."""

    y_true: Any
    quantiles: Any
    interval: Any
    samples: Any
    mask: Any
    weights: Any
    groups: Any
    order: Any
    by: Any
    metrics: Iterable[str] | None
    alpha: float
    n_bins: int
    family: Family
    dof: float
    std_floor: float | None
    on_invalid: Literal["raise", "drop"]
    statistics: How
    unit: str | None
    calibration: Any
    recalibration: str | Iterable[str] | None
    intervals: bool | None
    level: float
    seed: int
    reference: Any
    curves: str | Iterable[str] | None
    by_target: Any
    curve_metrics: str | Iterable[str] | None


@overload
def evaluate(
    y_true: Any = ...,
    /,
    y_pred: Any = ...,
    y_std: Any = ...,
    *,
    outputs: None = ...,
    **options: Unpack[EvaluateOptions],
) -> Report: ...


@overload
def evaluate(
    y_true: Any, /, y_pred: Any, y_std: Any, *, outputs: Sequence[str], **options: Unpack[EvaluateOptions]
) -> Reports: ...


def evaluate(
    data: Any = None,
    /,
    y_pred: Any = None,
    y_std: Any = None,
    *,
    y_true: Any = None,
    quantiles: Mapping[float, str] | None = None,
    interval: tuple[str, str, float] | None = None,
    samples: str | Sequence[str] | None = None,
    mask: Any = None,
    weights: Any = None,
    groups: Any = None,
    order: Any = None,
    by: Any = None,
    outputs: Sequence[str] | None = None,
    metrics: Iterable[str] | None = None,
    alpha: float = 0.95,
    n_bins: int = 10,
    family: Family = "gaussian",
    dof: float = 5.0,
    std_floor: float | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
    statistics: How = "auto",
    unit: str | None = None,
    calibration: Any = None,
    recalibration: str | Iterable[str] | None = None,
    intervals: bool | None = None,
    level: float = 0.95,
    seed: int = 0,
    reference: Any = None,
    curves: str | Iterable[str] | None = None,
    by_target: Any = None,
    curve_metrics: str | Iterable[str] | None = None,
) -> Report | Reports:
    """Score predicted means and standard deviations against targets.

    Parameters
    ----------
    y_true : array of any shape, or Predictions
        Targets, in their unit; a non-finite target means missing ground truth. A ``Predictions`` replaces the first
        three arguments and the input options. Dask arrays are scored chunk by chunk on the active scheduler, without
        loading them whole; ``groups="chunk"`` makes each chunk a group. A table may come first, followed by the
        names of its columns: ``evaluate(df, y_true="y", y_pred="mu", y_std="sigma")``.
    y_pred, y_std : arrays of the same shape
        Predictive means and standard deviations, in the target's unit.
    quantiles, interval, samples
        For tables only; as for ``Predictions.from_frame``.
    mask, weights, groups, by, std_floor, on_invalid
        As for ``Predictions``.
        ``groups`` give confidence intervals; ``by`` gives a curve of each chosen metric over its labels.
    order : array of numbers or dates, optional
        Time of each sample in a series, in any shape that ``groups`` accepts: up to twenty blocks of consecutive
        samples become the groups, so that intervals, verdict and comparisons hold although neighboring samples are
        correlated. If errors stay correlated for longer than a block, everything is one group, without intervals.
    outputs : sequence of str, optional
        Names of the outputs along the last axis of the arrays, each of which gets its own report.
    metrics : iterable of str, optional
        Keys to compute; by default the whole suite.
    alpha, n_bins, family, dof, unit
        As for ``Settings``.
    statistics : {"auto", "exact", "sketch"}
        Exact statistics, or a sketch of constant size; "auto" is exact up to ten million samples.
    calibration : optional
        Adds scores after recalibration, in ``report.recalibration``, and says how to obtain them:

        - a second set (``Predictions``, ``Report``, statistics, or a tuple ``(y_true, y_pred, y_std)``) to fit on;
        - fitted parameters (`recalibrate`), or a list of them;
        - True, a method's name or a list of names, without a second set: one half of the samples is scored before
          and after, with parameters fitted on the other half; whole groups if ``groups`` are given, else at random.
    recalibration : str or iterable of str, optional
        Methods to fit to the second set or to each half; by default ``std_scaling``.
    intervals : bool, optional
        Whether to compute confidence intervals, ``report.intervals``. By default only if ``groups`` are given, which
        are then resampled. True without groups resamples the samples as if they were independent: neighboring
        pixels are not, so their intervals come out much too narrow.
    level, seed
        Confidence level of the intervals, and random seed.
    reference : (mean, std), optional
        Arrays of the target's shape for ``kl_to_reference`` to compare with, such as those of a long MCMC run.
    curves : str or iterable of str, optional
        Curves to make besides the default ones: ``scale_sweep`` (proper scores with all stds multiplied by 0.1 ...
        10), ``by_members`` (metrics against the size of an ensemble), ``stability`` (metrics on growing subsets, with
        a verdict on the size of the test set in ``report.verdicts``).
    by_target : float or sequence of float, optional
        Width or edges of target intervals in which to compute the chosen metrics.
    curve_metrics : iterable of str, optional
        Metrics of these curves; by default six of different kinds.

    Returns
    -------
    Report
        With ``outputs``, `Reports`: a mapping of the outputs' names to reports.

    Raises
    ------
    InputError
        The arrays cannot be scored; the message says what, where and the cure.
    SettingsError
        An option is out of range, or a metric is unknown.

    Examples
    --------
    >>> report = evaluate([1.5, 3.0, 2.0], [1.0, 2.0, 3.0], [0.1, 0.5, 1.0])
    >>> round(report.scores["crps"], 6)
    0.590806
    """
    plan = Plan.of(
        REGRESSION,
        Settings(alpha=alpha, n_bins=n_bins, family=family, dof=dof, unit=unit),
        metrics=metrics,
        curves=curves,
        by_target=by_target,
        curve_metrics=curve_metrics,
        statistics=statistics,
        calibration=calibration,
        recalibration=recalibration,
        intervals=intervals,
        level=level,
        seed=seed,
        reference=reference,
    )
    columns = {"y_true": y_true, "quantiles": quantiles, "interval": interval, "samples": samples}
    truth, named = truth_of(data, columns)
    given = {
        "mask": mask,
        "weights": weights,
        "groups": groups_of(groups, order),
        "by": by,
        "std_floor": std_floor,
        "on_invalid": on_invalid,
    }
    return _run(plan, (truth, y_pred, y_std), outputs, {**named, **given, "unit": unit})


def evaluate_classification(
    labels: Any,
    probs: Any = None,
    *,
    logits: bool = False,
    class_axis: int = -1,
    members_axis: int | None = None,
    ignore_label: int | None = None,
    mask: Any = None,
    weights: Any = None,
    on_invalid: Literal["raise", "drop"] = "raise",
    class_names: Sequence[str] | None = None,
    groups: Any = None,
    order: Any = None,
    by: Any = None,
    outputs: Sequence[str] | None = None,
    metrics: Iterable[str] | None = None,
    n_bins: int = 10,
    statistics: How = "auto",
    calibration: Any = None,
    recalibration: str | Iterable[str] | None = None,
    intervals: bool | None = None,
    level: float = 0.95,
    seed: int = 0,
    reference: Any = None,
    curves: str | Iterable[str] | None = None,
    curve_metrics: str | Iterable[str] | None = None,
) -> Any:
    """Score class probabilities of samples or pixels against true classes.

    Parameters
    ----------
    labels : integer array of any shape, or ClassPredictions
        True classes 0 ... C - 1. A ``ClassPredictions`` replaces the first two arguments and the input options.
        Dask arrays are scored chunk by chunk, as by `evaluate`.
    probs : array of the labels' shape with an added axis of C classes, or of the labels' shape
        Class probabilities; in the labels' shape, a binary classifier's probability of class 1.
    logits : bool
        Whether ``probs`` holds logits; their softmax, or a binary classifier's sigmoid, is then scored.
    class_axis, members_axis, ignore_label, mask, weights, on_invalid, class_names, groups, by
        As for ``ClassPredictions``: ``class_axis=1`` for (N, C, H, W), ``members_axis`` for an ensemble, whose
        members' probabilities are averaged. ``groups`` give confidence intervals, ``by`` gives curves over its
        labels.
    order : optional
        As for `evaluate`.
    outputs : sequence of str, optional
        Names of the outputs along the last axis of the labels, each of which gets its own report.
    metrics : iterable of str, optional
        Keys to compute; by default the whole suite.
    n_bins : int
        Number of bins for ``ece``, ``mce``, ``ace`` and the reliability curve.
    statistics : {"auto", "exact", "sketch"}
        As for `evaluate`.
    calibration : optional
        Adds scores after recalibration, in ``report.recalibration``, and says how to obtain them: a second set to fit
        on (a tuple ``(labels, probs)`` in the same form, or ``ClassPredictions``), fitted parameters, or, without a
        second set, True or names of methods.
    recalibration : str or iterable of str, optional
        Methods to fit; by default ``temperature``.
    intervals, level, seed
        As for `evaluate`.
    reference : array like ``probs``, optional
        Probabilities for ``kl_to_reference`` to compare with, such as those of a long MCMC run; the members axis may
        be omitted.
    curves : str or iterable of str, optional
        Curves to make besides the default ones: ``by_members``, ``stability``.
    curve_metrics : iterable of str, optional
        Metrics of these curves and of those over ``by``.

    Returns
    -------
    Report
        With ``task`` "classification"; with ``outputs``, `Reports`.

    Raises
    ------
    InputError
        The arrays cannot be scored; the message says what, where and the cure.
    SettingsError
        An option is out of range, or a metric is unknown.

    Examples
    --------
    >>> report = evaluate_classification([0, 1, 1], [[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
    >>> round(report.scores["accuracy"], 3), round(report.scores["brier"], 3)
    (0.667, 0.46)
    """
    plan = Plan.of(
        CLASSIFICATION,
        Settings(n_bins=n_bins),
        metrics=metrics,
        curves=curves,
        curve_metrics=curve_metrics,
        statistics=statistics,
        calibration=calibration,
        recalibration=recalibration,
        intervals=intervals,
        level=level,
        seed=seed,
        reference=reference,
    )
    given = {
        "logits": logits,
        "class_axis": class_axis,
        "members_axis": members_axis,
        "ignore_label": ignore_label,
        "mask": mask,
        "weights": weights,
        "on_invalid": on_invalid,
        "groups": groups_of(groups, order),
        "by": by,
        "class_names": class_names,
    }
    return _run(plan, (labels, probs), outputs, given)


def truth_of(first: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The truth, or the table that contains it, and the other given options."""
    given = {name: value for name, value in options.items() if value is not None}
    return (given.pop("y_true", None) if first is None else first), given


def _run(
    plan: Plan, arrays: Sequence[Any], outputs: Sequence[str] | None, given: Mapping[str, Any]
) -> Report | Reports:
    """The report of arrays, or a report per output; lazy arrays are never in memory as a whole."""
    if not is_lazy(arrays[0]):
        return plan.run(arrays, outputs, given)
    asked = {
        "outputs": outputs,
        "reference": plan.reference,
        "curves": plan.wanted.curves or None,
        "by_target": plan.wanted.by_target,
    }
    refused = [name for name, value in asked.items() if value is not None]
    if refused:
        raise SettingsError(f"{', '.join(refused)} cannot be used with lazy arrays; load them into memory")
    return count_dask(plan.task, arrays, plan=plan, **given).report(plan)


_PARTS = ("aleatoric", "epistemic")
_CURE_OF_PARTS = (
    "pass what the two parts come from: Predictions.from_ensemble(y_true, means, stds) or "
    "Predictions.from_evidential(y_true, gamma, nu, alpha, beta); or, if only the parts are known, "
    "y_std = sqrt(aleatoric**2 + epistemic**2)"
)

VERBS: dict[str, Callable[..., Any]] = {
    REGRESSION.name: evaluate,
    CLASSIFICATION.name: evaluate_classification,
}


@lru_cache(maxsize=8)
def options_of(function: Callable[..., Any]) -> frozenset[str]:
    """Names of the options of a scoring function, except ``outputs``."""
    parameters = inspect.signature(function).parameters
    named = (name for name, item in parameters.items() if item.kind is item.KEYWORD_ONLY)
    return frozenset(named) - {"outputs"}


def planned(
    task: Task, function: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[Plan, dict[str, Any]]:
    """Turn the options of a task's function into a plan, and those of the predictions.

    Raises
    ------
    UnknownOptionError
        Neither the task's function nor ``function``, which passes its other options on to it, has such an option.
    SettingsError
        An option is out of range.
    """
    known = options_of(VERBS[task.name])
    unknown = options.keys() - known
    if unknown:
        own = inspect.signature(function).parameters.keys() - {"options"}
        of_parts = task is REGRESSION and any(part in name for name in unknown for part in _PARTS)
        cure = _CURE_OF_PARTS if of_parts else ""
        raise UnknownOptionError(function.__name__, unknown, known | own, cure)
    settings = {name: options[name] for name in task.settings if name in options}
    plan = {name: options[name] for name in options_of(Plan.of) if name in options}
    rest = {name: value for name, value in options.items() if name not in plan}
    given = {name: value for name, value in rest.items() if name not in settings or name == "unit"}
    if "order" in given:
        given["groups"] = groups_of(given.get("groups"), given.pop("order"))
    return Plan.of(task, Settings(**settings), **plan), given
