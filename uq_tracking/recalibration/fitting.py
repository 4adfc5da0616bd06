"""The function `recalibrate`: fit a method to whatever holds the statistics it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from uq_tracking import plugins
from uq_tracking.checks import named_options
from uq_tracking.errors import RecalibrationError, SettingsError, closest
from uq_tracking.inputs import Predictions
from uq_tracking.recalibration.base import FittedOn, Recalibration, RegressionRecalibration
from uq_tracking.settings import Family, Settings
from uq_tracking.statistics.collecting import build_statistics
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.statistics import Statistics


@named_options
def recalibrate(
    source: Any,
    method: str = "std_scaling",
    *,
    family: Family | None = None,
    dof: float | None = None,
    n_bins: int | None = None,
    split: str | None = None,
    logits: bool = False,
    ignore_label: int | None = None,
    weights: Any = None,
    by: Any = None,
) -> Recalibration:
    """Fit a recalibration; ``apply`` it to other predictions, or pass it to ``evaluate(..., calibration=)``.

    Fit on data the model was not trained on, and score on data the fit has not seen.

    Parameters
    ----------
    source : Report, Statistics, Predictions, or tuple of arrays ``(y_true, y_pred, y_std)``
        What to fit on. A report made by ``evaluate`` or read by ``Report.from_npz`` holds its statistics, as does a
        stored run, so the predictions are not needed again. For methods of classification, those of
        `Predictions.from_probs`, which may have masks and members, or ``(labels, probs)``.
    method : str
        ``std_scaling``, ``cdf_isotonic``, ``std_isotonic``, ``std_binning``, ``conformal``, ``conformal_by``,
        of class probabilities ``temperature``, ``bias_temperature``, and for two classes ``logistic``, ``isotonic``;
        or a plugin's.
    family, dof : optional
        Distribution behind the recalibration, as in ``Settings``; by default the report's, else Gaussian.
    n_bins : int, optional
        Number of bins for ``std_binning``; by default the report's, else 10.
    split : str, optional
        Name of the set, stored with the parameters.
    logits : bool
        For ``(labels, probs)``, whether the latter are logits.
    ignore_label : int, optional
        Label that methods of classification ignore.
    weights : array, optional
        For a tuple of arrays, how much each sample counts, as for `Predictions`.
    by : labels, optional
        The group of each sample, for ``conformal_by``: as for `Predictions`, which may already hold it.

    Returns
    -------
    Recalibration
        Frozen parameters: ``apply(mean, std)``, ``quantile(mean, std, q)``, ``to_json()``.

    Raises
    ------
    RecalibrationError
        The method cannot be fitted to the source; the message says why and what to do.
    SettingsError
        The method is unknown, or an option is out of range.
    InputError
        The arrays cannot be scored.

    Examples
    --------
    >>> scale = recalibrate(([0.0, 0.0, 0.0, 0.0], [3.0, -3.0, 1.0, -1.0], [1.0, 1.0, 1.0, 1.0]), "std_scaling")
    >>> mean, std = scale.apply([0.0, 2.0], [1.0, 2.0])
    >>> std.round(3)
    array([2.236, 4.472])
    """
    chosen = find_recalibrator(method)
    if not issubclass(chosen, RegressionRecalibration):
        return _fit_probs(chosen, source, split, logits=logits, ignore_label=ignore_label, weights=weights)
    if ignore_label is not None or logits:
        raise SettingsError(f"logits and ignore_label are options of classification; {method} has no labels")
    if weights is not None:
        if not isinstance(source, tuple | list):
            raise SettingsError(f"weights= is for arrays; the {type(source).__name__} holds its own")
        source = _predictions(source, weights)
    options = {"family": family, "dof": dof, "n_bins": n_bins}
    given = {name: value for name, value in options.items() if value is not None}
    if chosen.by_group:
        return fit_groups(chosen, source, Settings.from_dict(given), by=by, split=split)
    if by is not None:
        raise SettingsError(
            f"by= is for conformal_by; fit {method} to the rows of each group: "
            f"{{k: uq.recalibrate((y[by == k], mean[by == k], std[by == k]), {method!r}) for k in set(by)}}"
        )
    statistics, digest, known = statistics_of(source)
    return fit(chosen, statistics, Settings.from_dict({**known, **given}), split=split, digest=digest)


def find_recalibrator(method: str) -> type[Recalibration]:
    """Return the method with this name; SettingsError lists those available."""
    known = plugins.recalibrators()
    if not isinstance(method, str) or method not in known:
        raise SettingsError(
            f"no recalibration method is called {method!r}; choose from {', '.join(known)}"
            f"{closest(method, known)}"
        )
    return known[method]


def fit(
    method: type[Recalibration],
    statistics: Statistics,
    settings: Settings,
    *,
    split: str | None = None,
    digest: str | None = None,
) -> Recalibration:
    """Fit a regression method to statistics."""
    n, floor = statistics.counts["n"], statistics.facts.get("std_floor")
    return method.fit(statistics, settings, FittedOn(n, statistics.kind, split, digest, floor))


def fit_groups(
    method: type[Recalibration], source: Any, settings: Settings, *, by: Any = None, split: str | None = None
) -> Recalibration:
    """Fit a method with groups to arrays or predictions."""
    if isinstance(source, tuple | list):
        source = _predictions(source)
    if not isinstance(source, Predictions):
        raise RecalibrationError(
            f"{method.method} is fitted to samples and the group of each, which a {type(source).__name__} does not "
            "hold; pass (y_true, y_pred, y_std) or Predictions, with by=, to uq.recalibrate"
        )
    if by is not None:
        source = source.replace(by=by)
    if source.by is None:
        raise RecalibrationError(f"{method.method} needs the group of each sample; pass by=")
    fitted_on = FittedOn(source.n, "arrays", split, source.digest(), source.numbers.std_floor)
    return method.fit_groups(source.rows(), source.flat_labels("by"), settings, fitted_on)


def _fit_probs(method: type[Recalibration], source: Any, split: str | None, **options: Any) -> Recalibration:
    data = getattr(getattr(source, "samples", None), "data", source)  # of a report that was just made
    if isinstance(source, tuple | list) and len(source) == 2:
        data = Predictions.from_probs(*source, **options)
    elif any(value is not None and value is not False for value in options.values()):
        raise SettingsError("Predictions hold their own weights, logits and ignore_label; pass them there")
    if not isinstance(data, Predictions) or data.task != method.task:
        raise RecalibrationError(
            f"{method.method} is fitted on Predictions.from_probs(...) or (labels, probs), not on a "
            f"{type(source).__name__}; statistics do not hold the probabilities, nor do reports that were read back"
        )
    fitted = method.fit(data, split)
    if getattr(source, "samples", None) is None:
        return fitted
    digest = source.provenance.get("digest")  # of all samples, of which the report may hold some
    return replace(fitted, fitted_on=replace(fitted.fitted_on, digest=digest))


def statistics_of(source: Any) -> tuple[Statistics, str | None, Mapping[str, Any]]:
    """Return the regression statistics of anything that has them, with its digest and settings if known."""
    if isinstance(source, tuple | list):
        source = _predictions(source)
    if isinstance(source, Predictions) and source.task == "regression":
        return build_statistics(REGRESSION, source), source.digest(), {}
    statistics = source if isinstance(source, Statistics) else getattr(source, "statistics", None)
    if not isinstance(statistics, Statistics) or statistics.task != "regression":
        raise RecalibrationError(_no_statistics(source, statistics))
    digest = getattr(source, "provenance", {}).get("digest")
    return statistics, digest, getattr(source, "settings", {})


def _predictions(arrays: tuple[Any, ...] | list[Any], weights: Any = None) -> Predictions:
    if len(arrays) != 3:
        raise RecalibrationError(
            f"a recalibration of mean and std is fitted on (y_true, y_pred, y_std), not on {len(arrays)} arrays"
        )
    return Predictions(*arrays, weights=weights)


def _no_statistics(source: Any, statistics: Any) -> str:
    kind = type(source).__name__
    if statistics is not None or isinstance(source, Predictions):
        task = plugins.tasks()[source.task]
        method = task.recalibration_of(getattr(source if statistics is None else statistics, "facts", {}))
        use = f"; use method={method!r}" if method else ""
        return f"this method needs a mean and a std, but the {kind} is a {task.name}'s{use}"
    if hasattr(source, "statistics"):
        return (
            f"the {kind} holds no statistics, as when read from JSON; read it with Report.from_npz, or pass the "
            "statistics or the predictions"
        )
    return f"cannot fit on a {kind}; pass a Report, statistics, Predictions, or (y_true, y_pred, y_std)"
