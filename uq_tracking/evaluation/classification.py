"""From class probabilities to a report; no tracker is involved."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np

from uq_tracking.bootstrap import RESAMPLES, check_level, with_intervals
from uq_tracking.curves import build_curves
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.regression import compute, provenance
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.metrics.registry import Metric, select
from uq_tracking.report import Report
from uq_tracking.settings import Method, Settings
from uq_tracking.statistics.classification import ClassificationStatistics
from uq_tracking.statistics.make import make_class_statistics

ACCURACY = {
    "exact": "exact; sums in float64",
    "sketch": "buckets of relative width 2^-11: accuracy, nll, brier, entropy_mean and miou are exact; about 1e-6 "
    "absolute for calibration errors (ece, mce, ace), 1e-4 for areas (ause_brier, aurc)",
}


def evaluate_classification(
    labels: Any,
    probs: Any = None,
    *,
    logits: bool = False,
    class_axis: int = -1,
    members_axis: int | None = None,
    ignore_label: int | None = None,
    mask: Any = None,
    on_invalid: Literal["raise", "drop"] = "raise",
    class_names: Sequence[str] | None = None,
    groups: Any = None,
    metrics: Iterable[str] | None = None,
    n_bins: int = 10,
    method: Method = "auto",
    calibration: Any = None,
    intervals: bool | None = None,
    level: float = 0.95,
    n_boot: int = RESAMPLES,
    seed: int = 0,
) -> Report:
    """Score class probabilities of samples or pixels against true classes.

    Parameters
    ----------
    labels : integer array of any shape, or ClassPredictions
        True classes 0 ... C - 1. A ``ClassPredictions`` stands for the first two arguments and the input options.
    probs : array of the labels' shape and an axis of C classes, or of the labels' shape
        Probabilities of the classes; of the labels' shape, the probability of class 1 of a binary classifier.
    logits : bool
        ``probs`` holds logits; their softmax, or for a binary classifier their sigmoid, is scored.
    class_axis, members_axis, ignore_label, mask, on_invalid, class_names
        As for ``ClassPredictions``: ``class_axis=1`` for (N, C, H, W), ``members_axis`` for an ensemble, whose
        members' probabilities are averaged.
    groups : labels, optional
        Image, scene or block of each sample, as for ``ClassPredictions``: makes confidence intervals.
    metrics : iterable of str, optional
        Keys to compute; by default the whole suite.
    n_bins : int
        Bins of ``ece``, ``mce``, ``ace`` and the reliability curve.
    method : {"auto", "exact", "sketch"}
        Exact statistics, or a sketch of constant size; "auto" is exact up to ten million samples.
    calibration : optional
        Adds scores after temperature scaling, in ``report.recalibration``, and says how they came about: a second
        set to fit the temperature on (a tuple ``(labels, probs)`` in the same form, or ``ClassPredictions``), a
        fitted temperature, or True where there is no second set. Then each half of the samples is scored at the
        temperature that was fitted on the other half; whole groups where ``groups`` are given, else at random.
    intervals, level, n_boot, seed
        As for ``evaluate``: intervals are made where ``groups`` are given, unless ``intervals`` is False.

    Returns
    -------
    Report
        With ``task`` "classification".

    Raises
    ------
    InputError
        Arrays that cannot be scored; the message names what, where and the cure.
    SettingsError
        An option out of range, or an unknown metric.

    Examples
    --------
    >>> report = evaluate_classification([0, 1, 1], [[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
    >>> round(report.scores["accuracy"], 3), round(report.scores["brier"], 3)
    (0.667, 0.46)
    """
    data = as_class_predictions(
        labels,
        probs,
        logits=logits,
        class_axis=class_axis,
        members_axis=members_axis,
        ignore_label=ignore_label,
        mask=mask,
        on_invalid=on_invalid,
        groups=groups,
        class_names=class_names,
    )
    check_level(level, n_boot)
    plan = ClassPlan(Settings(n_bins=n_bins), tuple(select("classification", metrics)), method)
    wanted = data.groups is not None if intervals is None else intervals
    report = plan.report(data, grouped=wanted)
    if wanted and isinstance(report.statistics, ClassificationStatistics) and report.statistics.groups:
        options = {"level": level, "n_boot": n_boot, "seed": seed}
        report = with_intervals(report, report.statistics.groups, plan.settings, plan.metrics, **options)
    if calibration is None or calibration is False:
        return report
    from uq_tracking.evaluation.recalibrated_classification import add_temperature

    return add_temperature(report, data, calibration, score=plan.together)


@dataclass(frozen=True)
class ClassPlan:
    """How class predictions are scored."""

    settings: Settings
    metrics: tuple[Metric, ...]
    method: Method = "auto"

    def report(self, data: ClassPredictions, *, grouped: bool = False) -> Report:
        """The report of class predictions; with ``grouped`` its statistics hold those of the groups."""
        facts = {
            "n_classes": data.n_classes,
            "n_members": data.n_members,
            "logits": data.scores.logits,
            "ignore_label": data.ignore_label,
            "class_names": None if data.class_names is None else list(data.class_names),
        }
        statistics = make_class_statistics(data, self.method, grouped=grouped)
        return score_classification(
            statistics, self.settings, self.metrics, digest=data.digest(), facts=facts
        )

    def together(self, parts: Sequence[ClassPredictions]) -> Report:
        """Scores and curves of all samples of several parts."""
        statistics = reduce(operator.add, (make_class_statistics(part, self.method) for part in parts))
        return score_classification(statistics, self.settings, self.metrics)


def as_class_predictions(labels: Any, probs: Any, **options: Any) -> ClassPredictions:
    """The arguments as one ``ClassPredictions``."""
    if not isinstance(labels, ClassPredictions):
        if probs is None:
            raise SettingsError("probs are missing; pass labels and probs, or one ClassPredictions")
        return ClassPredictions(labels, probs, **options)
    defaults = {"logits": False, "class_axis": -1, "on_invalid": "raise"}
    given = [
        name
        for name, value in options.items()
        if value is not None and (name not in defaults or value != defaults[name])
    ]
    given += ["probs"] if probs is not None else []
    if given:
        raise SettingsError(
            f"{', '.join(given)}: give these to ClassPredictions, which holds the input already"
        )
    return labels


def score_classification(
    statistics: ClassificationStatistics,
    settings: Settings | None = None,
    metrics: Iterable[Metric] | None = None,
    *,
    digest: str | None = None,
    facts: dict[str, Any] | None = None,
) -> Report:
    """Every score and curve of statistics: the pure function behind rescoring and pooling too.

    ``facts`` go into the report's settings: what the input was like.
    """
    settings = settings or Settings()
    chosen = list(select("classification") if metrics is None else metrics)
    scores, undefined = compute(statistics, settings, chosen)
    return Report(
        task="classification",
        scores=scores,
        undefined=undefined,
        curves=build_curves(statistics, settings, "classification"),
        counts=statistics.counts,
        settings={"n_bins": settings.n_bins, **(facts or {})},
        provenance={
            **provenance(statistics, digest),
            "accuracy": ACCURACY[statistics.kind],
            "targets": label_summary(statistics),
        },
        statistics=statistics,
    )


def label_summary(statistics: ClassificationStatistics) -> dict[str, float]:
    """Moments of the true classes, which tell whether two runs were scored on the same labels."""
    count = statistics.confusion.sum(axis=1)
    classes = np.flatnonzero(count)
    mean = float(np.average(classes, weights=count[classes]))
    spread = math.sqrt(float(np.average(np.square(classes - mean), weights=count[classes])))
    return {"mean": mean, "std": spread, "low": float(classes[0]), "high": float(classes[-1])}
