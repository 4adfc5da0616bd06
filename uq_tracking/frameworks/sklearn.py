"""Get a mean and a std, or class probabilities, from scikit-learn estimators, and score or log them."""

# ruff: noqa: N803, N806  (X is scikit-learn's own name)

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from uq_tracking.checks import as_names, value_text
from uq_tracking.errors import InvalidValueError, SettingsError
from uq_tracking.inputs.predictions import Predictions
from uq_tracking.metrics.registry import check_known, every_metric, find
from uq_tracking.report import Report, Reports
from uq_tracking.tracking.log import log
from uq_tracking.verbs import evaluate

Array = npt.NDArray[np.floating[Any]]

_CURE = (
    "use an estimator whose predict takes return_std=True (GaussianProcessRegressor, BayesianRidge, ARDRegression), "
    "an ensemble (RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor, VotingRegressor) or a pair of "
    "quantile regressors; or pass your own means and standard deviations to uq.evaluate or uq.log"
)


class Prediction(NamedTuple):
    """Predictive mean and standard deviation, in the target's unit: shape (n,), or (n, outputs)."""

    mean: Array
    std: Array


def predict(estimator: Any, X: Any) -> Prediction:
    r"""Predictive mean and standard deviation of a fitted estimator.

    ======================================  ===========================================================
    estimator                               standard deviation
    ======================================  ===========================================================
    ``predict(X, return_std=True)``         its own (Gaussian processes, Bayesian linear models)
    random forest, extra trees, bagging,    spread of the members: :math:`\sigma^2 = \sum_i w_i (m_i -
    voting                                  \bar m)^2`, plus the mean of the members' own variances where
                                            every member states its own
    pair ``(low, high)`` of quantile        that of the Gaussian through both quantiles
    regressors
    ``MultiOutputRegressor``                one column per output
    ``Pipeline``, ``GridSearchCV`` ...      that of the final or best estimator
    ``TransformedTargetRegressor``          transformed back, if the transformation is affine
    ======================================  ===========================================================

    The spread of trees or bagged members shows what the model does not know; it omits the noise of the target, so it
    is too small as a predictive standard deviation wherever there is noise. Recalibrate it, or compare ``ause_rmse``
    and ``ence``.

    Quantiles that occasionally cross, as separately fitted ones do, are sorted, which brings them closer to the true
    ones: Chernozhukov, Fernandez-Val and Galichon, Econometrica 78 (2010).

    Parameters
    ----------
    estimator : fitted regressor, or a pair of fitted quantile regressors
    X : array or DataFrame, shape (n, features)

    Returns
    -------
    mean, std : arrays, shape (n,) or (n, outputs)

    Raises
    ------
    SettingsError
        The estimator provides no uncertainty, or is a search made with ``refit=False``.
    InvalidValueError
        The quantiles of a pair cross for most samples.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> model = BayesianRidge().fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9])
    >>> mean, std = predict(model, [[1.5]])
    >>> mean.round(2)
    array([1.5])
    """
    _require_estimator(estimator)
    if isinstance(estimator, tuple | list):
        return _of_quantiles(estimator, X)
    inner, X = _unwrapped(estimator, X)
    reader = _reader(inner)
    if reader is None:
        raise SettingsError(f"{type(inner).__name__} predicts no uncertainty; {_CURE}")
    return reader(inner, X)


def _forecast_of_classes(estimator: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return ``y``, shape (n,), an estimator's probabilities, shape (n, C), and its ``classes_``, which name both."""
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(estimator, "classes_"):
        check_is_fitted(estimator)
    name, truth = type(estimator).__name__, np.asarray(y)
    if not hasattr(estimator, "predict_proba"):
        raise SettingsError(f"{name} predicts no probabilities; wrap it in CalibratedClassifierCV")
    if isinstance(estimator.classes_, list) or (truth.ndim == 2 and truth.shape[1] > 1):
        raise SettingsError(
            f"{name} predicts several labels per sample; score them one by one: pass each column of y and its "
            "probabilities to uq.evaluate(labels, probs=...)"
        )
    probs = np.asarray(estimator.predict_proba(X))
    return {"y_true": truth, "probs": probs, "classes": np.asarray(estimator.classes_).tolist()}


@overload
def evaluate_estimator(estimator: Any, X: Any, y: Any, *, outputs: None = ..., **options: Any) -> Report: ...


@overload
def evaluate_estimator(
    estimator: Any, X: Any, y: Any, *, outputs: Sequence[str], **options: Any
) -> Reports: ...


def evaluate_estimator(estimator: Any, X: Any, y: Any, **options: Any) -> Report | Reports:
    """Score an estimator's uncertainty on data it was not fitted to.

    Parameters
    ----------
    estimator, X
        As for `predict`, or a classifier with ``predict_proba``.
    y : array, shape (n,) or (n, outputs)
        Truth. Several outputs are pooled unless ``outputs=`` names them. For a classifier, its classes.
    **options
        As for `evaluate`, without those of the other task.

    Returns
    -------
    Report
        With ``outputs``, `Reports`: one per output.
    """
    found: Report | Reports = evaluate(**{**forecast_of(estimator, X, y), **options})
    return found


@overload
def log_estimator(estimator: Any, X: Any, y: Any, *, outputs: None = ..., **options: Any) -> Report: ...


@overload
def log_estimator(estimator: Any, X: Any, y: Any, *, outputs: Sequence[str], **options: Any) -> Reports: ...


def log_estimator(
    estimator: Any, X: Any, y: Any, *, method: str | None = None, **options: Any
) -> Report | Reports:
    """Score an estimator's uncertainty and log it to the active run.

    Parameters
    ----------
    estimator, X, y
        As for `evaluate_estimator`.
    method : str, optional
        Name of the uncertainty method; by default the class of the estimator.
    **options
        As for `log`.

    Returns
    -------
    Report
        With ``outputs``, `Reports`: one per output.
    """
    forecast = forecast_of(estimator, X, y)
    name = type(_final(estimator)).__name__ if method is None else method
    found: Report | Reports = log(**{**forecast, **options}, method=name)
    return found


class Scorer:
    """A scorer for ``cross_validate``, ``GridSearchCV`` and whatever else takes ``scoring=``; see `scorer`."""

    def __init__(self, metric: str | Sequence[str], options: Mapping[str, Any]) -> None:
        self._keys = as_names("metric", metric)
        self.metric = metric if isinstance(metric, str) else self._keys
        self.options = dict(options)
        known = {each.key for each in every_metric()}
        check_known(self._keys, known, "no metric is called", "`uq-tracking metrics` lists them")

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float | dict[str, float]:
        """Score a fitted estimator's predictions; greater is better."""
        report = evaluate_estimator(
            estimator, X, y, metrics=self._keys, intervals=False, weights=sample_weight, **self.options
        )
        found = {}
        for metric in find(self._keys, report.task):
            if metric.key not in report.scores:
                raise InvalidValueError(f"{metric.key} is undefined: {report.undefined[metric.key]}")
            if metric.direction is None:
                raise SettingsError(f"{metric.key} is neither good nor bad, so it cannot rank models")
            found[metric.key] = -metric.loss(report.scores[metric.key])
        return found[self.metric] if isinstance(self.metric, str) else found

    def __repr__(self) -> str:
        return f"scorer({self.metric!r})"


def scorer(metric: str | Sequence[str], **options: Any) -> Scorer:
    """Make a scorer of estimators that `predict` takes, and of classifiers, for scikit-learn's ``scoring=``.

    Greater is better, as everywhere in scikit-learn: scores of which less is better are negative, those with a target
    value are minus the distance from it, such as ``-abs(coverage_95 - 0.95)``.

    Parameters
    ----------
    metric : str, or a sequence of str
        Key of a metric, as in ``uq-tracking metrics``. With several, the scorer returns a dict, and a search needs
        ``refit=`` with the key to choose by.
    **options
        As for `evaluate`.

    Raises
    ------
    SettingsError
        There is no such metric; when called, also if it has no better or worse.
    InvalidValueError
        When called: the metric is undefined for these predictions.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0) % 3
    >>> cross_val_score(BayesianRidge(), X, y, cv=2, scoring=scorer("crps")).round(2)
    array([-0.5 , -0.45])
    """
    return Scorer(metric, options)


def cross_predictions(
    estimator: Any, X: Any, y: Any, *, cv: Any = None, groups: Any = None, n_jobs: int | None = None
) -> Predictions:
    """Fit a clone to each fold's training part, predict its test part, and join all; the folds are groups.

    One report over all folds: ``uq.log(cross_predictions(estimator, X, y, cv=5), method=...)``. Its intervals
    resample folds, because predictions of one fold share a fit; a verdict needs at least 8 of them.

    Parameters
    ----------
    estimator : regressor that `predict` takes, a pair of quantile regressors, or a classifier
        Not changed.
    X : array or DataFrame, shape (n, features)
    y : array, shape (n,) or (n, outputs)
    cv, groups, n_jobs
        As for `sklearn.model_selection.cross_validate`.

    Returns
    -------
    Predictions
        In the order of ``X``; samples tested several times, as by ``RepeatedKFold``, count each time, and those never
        tested do not.

    Raises
    ------
    SettingsError
        The estimator provides no uncertainty.
    InvalidValueError
        The training parts do not have the same classes.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0) % 3
    >>> cross_predictions(BayesianRidge(), X, y, cv=4).n
    20
    """
    from sklearn.model_selection import check_cv
    from sklearn.utils.parallel import Parallel, delayed

    splits = list(check_cv(cv, y, classifier=_classifies(estimator)).split(X, y, groups))
    found = Parallel(n_jobs=n_jobs)(delayed(_forecast_of_fold)(estimator, X, y, *split) for split in splits)
    names = [each.pop("classes", None) for each in found]
    if names.count(names[0]) < len(names):
        raise InvalidValueError(
            "the training parts of the folds do not have the same classes; pass cv=StratifiedKFold(), or fewer folds"
        )
    tested = np.concatenate([test for _, test in splits])
    order = np.argsort(tested, kind="stable")
    folds = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])[order]
    joined: Any = {name: np.concatenate([each[name] for each in found])[order] for name in found[0]}
    if "probs" not in joined:
        return Predictions(**joined, groups=folds)
    return Predictions.from_probs(joined["y_true"], joined["probs"], classes=names[0], groups=folds)


def _forecast_of_fold(estimator: Any, X: Any, y: Any, train: Any, test: Any) -> dict[str, Any]:
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    fitted = clone(estimator)
    for one in fitted if isinstance(fitted, tuple | list) else [fitted]:
        one.fit(_safe_indexing(X, train), _safe_indexing(y, train))
    forecast = forecast_of(fitted, _safe_indexing(X, test), _safe_indexing(y, test))
    return {name: value if name == "classes" else np.asarray(value) for name, value in forecast.items()}


def forecast_of(estimator: Any, X: Any, y: Any) -> dict[str, Any]:
    """The arguments of `evaluate`: truth and what the estimator predicts."""
    _require_estimator(estimator)
    if _classifies(estimator):
        return _forecast_of_classes(estimator, X, y)
    mean, std = predict(estimator, X)
    return {"y_true": y, "y_pred": mean, "y_std": std}


def _require_estimator(estimator: Any) -> None:
    """Raise SettingsError for anything but an estimator or a pair of them."""
    is_pair = isinstance(estimator, tuple | list)
    if is_pair and len(estimator) != 2:
        raise SettingsError(
            f"got {len(estimator)} estimators; pass a pair (low, high) of quantile regressors"
        )
    for one in estimator if is_pair else [estimator]:
        if isinstance(one, type) or not hasattr(_final(one), "predict"):
            raise SettingsError(
                f"estimator is {value_text(one)}; pass a fitted estimator, or a pair of quantile regressors"
            )


def _classifies(estimator: Any) -> bool:
    from sklearn.base import is_classifier

    try:
        return not isinstance(estimator, tuple | list) and bool(is_classifier(estimator))
    except AttributeError:  # another library's estimator, without scikit-learn's tags
        return False


def _unwrapped(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the predicting estimator inside searches and pipelines, and its input if there is any."""
    from sklearn.utils.validation import check_is_fitted

    if hasattr(estimator, "best_estimator_"):
        return _unwrapped(estimator.best_estimator_, X)
    if hasattr(estimator, "refit") and hasattr(estimator, "estimator"):
        check_is_fitted(estimator)
        raise SettingsError(
            f"{type(estimator).__name__} was made with refit=False, so it keeps no fitted estimator; search with "
            "refit=True, or pass an estimator fitted with its best_params_"
        )
    if hasattr(estimator, "named_steps"):
        is_transformed = X is not None and len(estimator) > 1
        return _unwrapped(estimator[-1], estimator[:-1].transform(X) if is_transformed else X)
    return estimator, X


def _final(estimator: Any) -> Any:
    """The predicting estimator inside searches and pipelines; for a pair, of the first."""
    return _unwrapped(estimator[0] if isinstance(estimator, tuple | list) else estimator)[0]


def _reader(estimator: Any) -> Callable[[Any, Any], Prediction] | None:
    """Return what reads a fitted estimator's uncertainty, from its own ``predict`` or its parts; None if nothing."""
    predict = getattr(estimator, "predict", None)
    if callable(predict) and "return_std" in inspect.signature(predict).parameters:
        return _of_its_own
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor, VotingRegressor
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.utils.validation import check_is_fitted

    ensembles = (RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor, VotingRegressor)
    readers: dict[Any, Callable[[Any, Any], Prediction]] = {
        TransformedTargetRegressor: _of_transformed_target,
        MultiOutputRegressor: _of_outputs,
        ensembles: _of_members,
    }
    for classes, reader in readers.items():
        if isinstance(estimator, classes):
            check_is_fitted(estimator)
            return reader
    return None


def _knows_std(estimator: Any) -> bool:
    inner = _final(estimator)
    reader = _reader(inner)
    if reader is _of_transformed_target:
        return _knows_std(inner.regressor_)
    if reader is _of_outputs:
        return all(map(_knows_std, inner.estimators_))
    return reader is not None


def _of_its_own(estimator: Any, X: Any) -> Prediction:
    """Return what ``predict(X, return_std=True)`` does, checked."""
    found = estimator.predict(X, return_std=True)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise SettingsError(
            f"{type(estimator).__name__}.predict takes return_std=True but returned {type(found).__name__}, not "
            "(mean, std); pass your own means and standard deviations to uq.evaluate or uq.log"
        )
    return Prediction(*found)


def _weights(ensemble: Any) -> list[float]:
    """Weights of the members; only voting has unequal ones, given for all estimators including dropped ones."""
    given = getattr(ensemble, "weights", None)
    if given is None:
        return [1.0] * len(ensemble.estimators_)
    named = zip(ensemble.estimators, given, strict=True)
    return [float(weight) for (_, estimator), weight in named if not isinstance(estimator, str)]


def _of_members(ensemble: Any, X: Any) -> Prediction:
    """Return the moments of the mixture, by Welford's update with weights (West 1979): one member at a time."""
    members = ensemble.estimators_
    if not hasattr(ensemble, "named_estimators_"):
        X = X.tocsr() if hasattr(X, "tocsr") else X
        # refuses columns other than those of the fit; members saw arrays and cannot tell
        ensemble.predict(X[:1])
        X = X if hasattr(X, "tocsr") else np.asarray(X)
    features = getattr(ensemble, "estimators_features_", None)
    with_std = all(_knows_std(member) for member in members)
    total, middle, scatter = 0.0, np.zeros(()), np.zeros(())
    for place, (weight, member) in enumerate(zip(_weights(ensemble), members, strict=True)):
        if not weight:
            continue
        seen = X if features is None else X[:, features[place]]
        mean, std = predict(member, seen) if with_std else (np.asarray(member.predict(seen)), 0.0)
        total += weight
        away = mean - middle
        middle = middle + away * (weight / total)
        scatter = scatter + weight * away * (mean - middle) + weight * std**2
    return Prediction(middle, np.sqrt(scatter / total))


def _of_outputs(estimator: Any, X: Any) -> Prediction:
    """Return one column per output."""
    parts = [predict(output, X) for output in estimator.estimators_]
    return Prediction(*(np.stack(part, axis=-1) for part in zip(*parts, strict=True)))


def _of_transformed_target(estimator: Any, X: Any) -> Prediction:
    """Transform mean and standard deviation back; an affine transformation maps both exactly."""
    mean, std = predict(estimator.regressor_, X)
    centre, up, down = (_inverse(estimator, value) for value in (mean, mean + std, mean - std))
    rounding = 1e-9 * float(np.abs(centre).max(initial=0.0))
    if not np.allclose(up - centre, centre - down, rtol=1e-6, atol=rounding):
        raise SettingsError(
            f"the target's transformation {estimator.transformer_} is not affine, so it does not preserve standard "
            "deviations; fit to the untransformed target, or evaluate in the transformed unit with "
            "predict(estimator.regressor_, X)"
        )
    return Prediction(centre, np.abs(up - down) / 2)


def _inverse(estimator: Any, values: Array) -> Array:
    columns = values[:, None] if values.ndim == 1 else values
    found = np.asarray(estimator.transformer_.inverse_transform(columns))
    return found[:, 0] if values.ndim == 1 else found


def _of_quantiles(pair: Any, X: Any) -> Prediction:
    quantiles = [_quantile(estimator) for estimator in pair]
    if not quantiles[0] < quantiles[1]:
        raise SettingsError(
            f"the pair predicts quantiles {quantiles[0]} and {quantiles[1]}; pass (low, high)"
        )
    low, high = (np.asarray(estimator.predict(X), dtype=np.float64) for estimator in pair)
    crossed = int((high < low).sum())
    if 2 * crossed > low.size:
        raise InvalidValueError(
            f"the quantiles cross at {crossed} of {low.size} places (first at index {int((high < low).argmax())}): "
            "they are not quantiles of the same target; fit both to the same data"
        )
    low, high = np.minimum(low, high), np.maximum(low, high)
    z_low, z_high = (NormalDist().inv_cdf(quantile) for quantile in quantiles)
    std = (high - low) / (z_high - z_low)
    return Prediction(low - z_low * std, std)


def _quantile(estimator: Any) -> float:
    """The quantile that a regressor was fitted to predict."""
    final = _final(estimator)
    options = final.get_params(deep=False) if hasattr(final, "get_params") else {}
    found = options.get("quantile", options.get("alpha") if "loss" in options else None)
    if options.get("loss", "quantile") != "quantile" or found is None:
        raise SettingsError(
            f"{type(final).__name__} does not predict a quantile; use a pair of GradientBoostingRegressor or "
            "HistGradientBoostingRegressor with loss='quantile', or of QuantileRegressor"
        )
    return float(found)
