"""The function `recalibrate`: fit a method to whatever holds the statistics it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uq_tracking import plugins
from uq_tracking.checks import named_options
from uq_tracking.errors import RecalibrationError, SettingsError, closest
from uq_tracking.inputs import Predictions
from uq_tracking.recalibration.base import FittedOn, Recalibration
from uq_tracking.settings import Family, Settings
from uq_tracking.statistics.collecting import build_statistics
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import cached_property

STD_SCALING = "std_scaling"


@named_options
def recalibrate(
    source: Any,
    method: str | None = None,
    *arrays: Any,
    probs: Any = None,
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
    method : str, optional
        By default ``std_scaling``, of class probabilities ``temperature``, of two classes ``logistic``. The others
        are ``cdf_isotonic``, ``std_isotonic``, ``std_binning``, ``conformal``, ``conformal_by``, of class
        probabilities ``bias_temperature``, and for two classes ``isotonic``; or a plugin's.
    *arrays
        None: arrays belong in the tuple.
    probs : array, optional
        ``recalibrate(labels, probs=probs)`` is ``recalibrate((labels, probs))``.
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
    if arrays or hasattr(method, "shape"):
        raise SettingsError("pass a tuple: recalibrate((y_true, y_pred, y_std)) or ((labels, probs))")
    source = source if probs is None else (source, probs)
    own = {"logits": logits, "ignore_label": ignore_label} if logits or ignore_label is not None else {}
    chosen = find_recalibrator(method or usual_method(source, **own))
    of_numbers = chosen.task == REGRESSION.task
    if of_numbers and own:
        raise SettingsError(f"logits= and ignore_label= are of classification; {chosen.method} has no labels")
    if by is not None and not (of_numbers and chosen.of_samples):
        names = ("y", "mean", "std") if of_numbers else ("labels", "probs")
        rows = ", ".join(f"{each}[by == k]" for each in names)
        raise SettingsError(
            f"by= is for conformal_by; fit {chosen.method} to the rows of each group: "
            f"{{k: uq.recalibrate(({rows}), {chosen.method!r}) for k in set(by)}}"
        )
    if isinstance(source, tuple | list):
        source = _predictions(source, chosen.task, weights=weights, by=by, **own)
    elif weights is not None or own:
        raise SettingsError(
            f"weights=, logits= and ignore_label= are for arrays; the {type(source).__name__} holds its own"
        )
    elif by is not None and isinstance(source, Predictions):
        source = source.replace(by=by)
    options = {"family": family, "dof": dof, "n_bins": n_bins}
    given = {name: value for name, value in options.items() if value is not None}
    settings = Settings.from_dict({**getattr(source, "settings", {}), **given})
    return FitSet.of(source, chosen.task).fit(chosen, settings, split)


def usual_method(source: Any, **own: Any) -> str:
    """Return the method for what a source holds, by default ``std_scaling``; of two arrays, these are classes."""
    if isinstance(source, tuple | list) and len(source) == 2:
        source = _predictions(source, "classification", **own)
    held = getattr(source, "statistics", None) or source
    task = plugins.tasks().get(getattr(source, "task", REGRESSION.task))
    return (task and task.recalibration_of(getattr(held, "facts", {}))) or STD_SCALING


def find_recalibrator(method: str) -> type[Recalibration]:
    """Return the method with this name; SettingsError lists those available."""
    known = plugins.recalibrators()
    if not isinstance(method, str) or method not in known:
        raise SettingsError(
            f"no recalibration method is called {method!r}; choose from {', '.join(known)}"
            f"{closest(method, known)}"
        )
    return known[method]


@dataclass(frozen=True, eq=False)
class FitSet:
    """Samples to fit methods to, or their statistics."""

    held: Predictions | Statistics
    digest: str | None = None
    """Digest of all samples, some of which may not be held."""

    @classmethod
    def of(cls, source: Any, task: str) -> FitSet:
        """Return what a source holds that methods of a task are fitted to; RecalibrationError says what it lacks."""
        if isinstance(source, tuple | list):
            source = _predictions(source, task)
        if isinstance(source, Predictions) and source.task == task:
            return cls(source, source.digest())
        if task == REGRESSION.task:
            held = source if isinstance(source, Statistics) else getattr(source, "statistics", None)
        else:
            held = getattr(getattr(source, "samples", None), "data", None)  # of a report that was just made
        if isinstance(held, Predictions | Statistics) and held.task == task:
            return cls(held, getattr(source, "provenance", {}).get("digest"))
        if task == REGRESSION.task:
            raise RecalibrationError(_no_statistics(source, held))
        raise RecalibrationError(
            "this method is fitted on Predictions.from_probs(...) or (labels, probs), not on a "
            f"{type(source).__name__}; statistics do not hold the probabilities, nor do reports that were read back"
        )

    @cached_property
    def statistics(self) -> Statistics:
        """Statistics of the samples, made when a method first needs them."""
        return self.held if isinstance(self.held, Statistics) else build_statistics(REGRESSION, self.held)

    def fit(self, method: type[Recalibration], settings: Settings, split: str | None = None) -> Recalibration:
        """Fit a method of the task."""
        held = self.held if method.of_samples else self.statistics
        kind = held.kind if isinstance(held, Statistics) else "arrays"
        about = FittedOn(held.counts["n"], kind, split, self.digest, held.facts.get("std_floor"))
        if not method.of_samples:
            return method.fit(held, settings, about)
        if isinstance(held, Statistics):
            raise RecalibrationError(
                f"{method.method} is fitted to samples, which statistics and reports do not hold; pass "
                "(y_true, y_pred, y_std) or Predictions, with by=, to uq.recalibrate"
            )
        return method.fit_to(held, settings, about)


def _predictions(arrays: Sequence[Any], task: str, **options: Any) -> Predictions:
    """Read arrays that methods of a task are fitted to."""
    names = ("y_true", "y_pred", "y_std") if task == REGRESSION.task else ("labels", "probs")
    if len(arrays) != len(names):
        raise RecalibrationError(f"it is fitted on ({', '.join(names)}), not on {len(arrays)} arrays")
    made = Predictions if task == REGRESSION.task else Predictions.from_probs
    return made(*arrays, **options)


def _no_statistics(source: Any, statistics: Any) -> str:
    kind = type(source).__name__
    if statistics is not None or isinstance(source, Predictions):
        method = usual_method(source)
        use = "" if method == STD_SCALING else f"; use method={method!r}"
        return f"this method needs a mean and a std, but the {kind} is a {source.task}'s{use}"
    if hasattr(source, "statistics"):
        return (
            f"the {kind} holds no statistics, as when read from JSON; read it with Report.from_npz, or pass the "
            "statistics or the predictions"
        )
    return f"cannot fit on a {kind}; pass a Report, statistics, Predictions, or (y_true, y_pred, y_std)"
