"""The contract of a task, and the two tasks: a mean and a std per sample, or a probability for every class."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from uq_tracking import plugins
from uq_tracking.errors import RecalibrationError, SettingsError, ShapeError
from uq_tracking.inference.classification import ClassTests
from uq_tracking.inference.regression import RegressionTests
from uq_tracking.inference.verdict import Tests
from uq_tracking.inputs.convert import Source, read, read_floats
from uq_tracking.inputs.forms.mean_std import MeanStd
from uq_tracking.inputs.forms.probabilities import axes_of, class_axis_of, probabilities_of
from uq_tracking.inputs.predictions import Case, Predictions
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.recalibration.fitting import FitSet
from uq_tracking.settings import SCORE_OPTIONS
from uq_tracking.statistics import classification, regression
from uq_tracking.statistics.layout import Layout
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import WEIGHT
from uq_tracking.typed import override

INPUT_OPTIONS = ("mask", "weights", "groups", "order", "by", "on_invalid")
"""Options of the input that every form has."""


class Task(ABC):
    """What a task does in its own way.

    Attributes
    ----------
    name : str
    layout : Layout
        What its statistics consist of.
    settings : tuple of str
        Names of the `Settings` that affect its numbers; a report states them.
    without : tuple of str
        Names of the `ScoreOptions` that have no meaning for it.
    forecast : str
        What is scored, in words.
    recalibration : str
        The default method.
    curves : tuple of str
        Curves available on request.
    case_score : str
        Name of what ``case_error`` measures.
    accuracy : dict of str
        Accuracy of exact and sketched statistics, in words.
    tests : type of Tests
        The tests behind its verdict.
    overview : tuple of str
        Names of the figures on the sheet that shows the most important ones.
    factor : str
        What the scale of a verdict multiplies, in words; empty if it multiplies standard deviations.
    uncertainty : str
        What sorts its samples in a sparsification, in words.
    """

    name: ClassVar[str]
    layout: ClassVar[Layout]
    settings: ClassVar[tuple[str, ...]]
    without: ClassVar[tuple[str, ...]]
    forecast: ClassVar[str]
    recalibration: ClassVar[str] = ""
    curves: ClassVar[tuple[str, ...]] = ("stability",)
    case_score: ClassVar[str]
    accuracy: ClassVar[Mapping[str, str]]
    tests: ClassVar[type[Tests]]
    overview: ClassVar[tuple[str, ...]]
    factor: ClassVar[str] = ""
    uncertainty: ClassVar[str] = "uncertainty"

    @property
    def options(self) -> frozenset[str]:
        """Names of all options of a forecast of this task."""
        forms = [form for form in plugins.forms().values() if form.task == self.name]
        own = {name for form in forms for name in form.options}
        return (SCORE_OPTIONS - {*self.without}) | own | {*INPUT_OPTIONS}

    def layout_for(self, facts: Mapping[str, Any]) -> Layout:
        """What statistics with these facts consist of."""
        return self.layout

    def lazy(
        self, arrays: dict[str, Any], options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Check dask arrays, move the axes that only predictions have to the end, and adapt the options."""
        check_shapes(*((name, array.shape) for name, array in arrays.items()))
        return arrays, dict(options)

    def recalibration_of(self, facts: Mapping[str, Any]) -> str:
        """The default method for what has statistics with these facts."""
        return self.recalibration

    def reference(self, reference: Any, data: Any) -> Any:
        """Check what ``kl_to_reference`` compares with."""
        return reference

    @abstractmethod
    def targets(self, statistics: Statistics) -> dict[str, float]:
        """Facts that show whether two runs were scored on the same truth, whatever its order, dtype or batches."""

    @abstractmethod
    def map_options(self, report: Any) -> dict[str, Any]:
        """Keyword arguments of the map panels of this task."""

    @abstractmethod
    def case_error(self, case: Case) -> float:
        """How wrong the predictions of a 2-D case are, NaN without truth; used to choose the worst case."""

    @property
    def needs_predictions(self) -> str:
        """Why a recalibration needs predictions, not only statistics; empty if it does not."""
        return f"a recalibration changes {self.forecast}, which statistics do not hold"

    def samples(self, statistics: Statistics, data: Any) -> Predictions:
        """The samples behind a report; RecalibrationError if neither data nor statistics hold them."""
        if data is None:
            raise RecalibrationError(f"{self.needs_predictions}; pass the predictions")
        held: Predictions = data
        return held

    def second_set(self, calibration: Any, data: Any) -> FitSet:
        """The second set that methods are fitted to; error messages list what a set may be."""
        kind = next(form for form in plugins.forms().values() if form.task == self.name)
        if isinstance(calibration, tuple) and len(calibration) == 1 + len(kind.takes) and data is not None:
            arrays = dict(zip(kind.takes, calibration[1:], strict=True))
            calibration = Predictions.of(kind, calibration[0], arrays, **data.form.input_options)
        if not (isinstance(calibration, Predictions) and calibration.task == self.name):
            given = repr(calibration) if isinstance(calibration, str) else f"a {type(calibration).__name__}"
            raise SettingsError(
                f"calibration is {given}; pass a second set ({', '.join((kind.truth_name, *kind.takes))}), "
                f"{kind.made_by}(...), a fitted recalibration, or True to fit on one half of the samples"
            )
        return FitSet.of(calibration, self.name)


class Regression(Task):
    """Scores predicted means and standard deviations."""

    name = "regression"
    layout: ClassVar[Layout] = regression.REGRESSION
    settings = ("alpha", "n_bins", "family", "dof", "unit")
    without = ()
    forecast = "a forecast of numbers"
    recalibration = "std_scaling"
    curves = ("scale_sweep", "by_members", "stability")
    case_score = "RMSE"
    tests: ClassVar[type[Tests]] = RegressionTests
    overview = ("reliability", "calibration", "sparsification", "error_vs_std")
    needs_predictions = ""
    accuracy: ClassVar[Mapping[str, str]] = {
        "exact": "exact; sums in float64",
        "sketch": "buckets of relative width 2^-11: about 1e-6 relative for scores that are sums (nll, crps, "
        "sharpness), 1e-4 absolute for areas (ause unless single errors carry most of it, auce, calibration_error), "
        "1e-3 relative for merci, n_merci and ence, the last two not below 1e-3 and 0.15 / sqrt(n) absolute (from "
        "1e5 samples on; n_merci unless the bias is hundreds of times the spread of errors, ence if standard "
        "deviations spread over a factor of two); standard deviations closer than a bucket count as tied",
    }

    @override
    def layout_for(self, facts: Mapping[str, Any]) -> Layout:
        if facts.get("distribution"):
            return regression.DISTRIBUTION
        return regression.COVARIANCE if facts.get("vector_length") else regression.REGRESSION

    @override
    def reference(self, reference: Any, data: Any) -> Any:
        if reference is None:
            return None
        if not isinstance(reference, tuple | list) or len(reference) != 2:
            raise SettingsError(
                "reference is not a pair; pass reference=(mean, std), arrays of the target's shape"
            )
        names = ("reference mean", "reference std")
        parts = [read_floats(part, name) for part, name in zip(reference, names, strict=True)]
        check_shapes(("y_true", data.shape), *((part.name, part.values.shape) for part in parts))
        return tuple(part.values for part in parts)

    @override
    def targets(self, statistics: Statistics) -> dict[str, float]:
        moments = statistics.moments["target"]
        spread = math.sqrt(max(moments.m2, 0.0) / statistics.n) if statistics.n else 0.0
        summary = {"mean": moments.mean, "std": spread, "low": moments.low, "high": moments.high}
        return {name: float(value) for name, value in summary.items() if math.isfinite(value)}

    def map_options(self, report: Any) -> dict[str, Any]:
        """``scale`` brings standard deviations to the scale of the errors: MeRCI's lambda, else 1."""
        scores = report.scores
        known = scores.get("mean_std") and "merci" in scores
        scale = scores["merci"] / scores["mean_std"] if known else 1.0
        return {"scale": scale, "unit": report.settings.get("unit")}

    def case_error(self, case: Case) -> float:
        """The case's RMSE."""
        with np.errstate(invalid="ignore", over="ignore"):
            gap = np.asarray(case.arrays["mean"], dtype=np.float64) - case.arrays["target"]
        known = gap[np.isfinite(gap)]
        return float(np.sqrt(np.mean(np.square(known)))) if known.size else math.nan

    @override
    def samples(self, statistics: Statistics, data: Any) -> Predictions:
        """Means and stds of samples, whatever their form; or their errors as the truth, if no more is known."""
        floor = statistics.facts.get("std_floor")
        if data is not None:
            held: Predictions = data
            return held.with_form(MeanStd(mean=data.mean, std=data.std, std_floor=floor))
        if statistics.kind == "sketch":
            raise RecalibrationError(
                "these statistics are a sketch, which does not hold individual samples; pass the predictions, "
                "or count a stream with statistics='exact'"
            )
        rows = statistics.rows()
        form = MeanStd(mean=np.zeros_like(rows["error"]), std=rows["std"], std_floor=floor)
        return Predictions.made([Source("error", rows["error"])], form, weights=rows.get(WEIGHT))

    @override
    def second_set(self, calibration: Any, data: Any) -> FitSet:
        return FitSet.of(calibration, self.name)


REGRESSION = Regression()


class Classification(Task):
    """Scores class probabilities."""

    name = "classification"
    layout: ClassVar[Layout] = classification.CLASSIFICATION
    settings = ("n_bins",)
    without = ("alpha", "family", "dof", "unit", "by_target")
    forecast = "class probabilities"
    recalibration = "temperature"
    curves = ("by_members", "stability")
    case_score = "error rate"
    tests: ClassVar[type[Tests]] = ClassTests
    overview = ("reliability", "sparsification", "risk_coverage")
    factor = "the errors it implies"
    uncertainty = "entropy"
    accuracy: ClassVar[Mapping[str, str]] = {
        "exact": "exact; sums in float64",
        "sketch": "buckets of relative width 2^-11: accuracy, nll, brier, entropy_mean and miou are exact; about "
        "1e-4 absolute for areas (ause_brier, aurc), 0.1 / sqrt(n) for ece and ace, and 0.1 / sqrt(m) for mce, whose "
        "bin has m samples",
    }

    @override
    def layout_for(self, facts: Mapping[str, Any]) -> Layout:
        if facts.get("top_label_only"):
            return classification.TOP_LABEL
        return classification.CLASSIFICATION if facts.get("event") is None else classification.BINARY

    def lazy(
        self, arrays: dict[str, Any], options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Classes come last, members before them."""
        labels, probs = arrays["y_true"], arrays["probs"]
        members, classes = options.get("members_axis"), options.get("class_axis")
        if classes is None:
            classes = class_axis_of(labels.shape, probs.shape, members)
        front, rest, back = axes_of(labels.shape, probs.shape, classes, members)
        own = {**options, "class_axis": -1, "members_axis": -2 if front else None}
        if front and not back:
            raise ShapeError(
                "lazy members of a binary classifier are not supported; add an axis of two classes"
            )
        return {**arrays, "probs": probs.transpose(*rest, *front, *back)}, own

    @override
    def recalibration_of(self, facts: Mapping[str, Any]) -> str:
        """An offset and a slope for two classes, which a temperature cannot shift."""
        return "logistic" if facts.get("n_classes") == 2 else self.recalibration

    def reference(self, reference: Any, data: Predictions) -> Any:
        """Probabilities in the same form as the scored ones, or without their members axis."""
        if reference is None:
            return None
        form = probabilities_of(data)
        members_axis = form.axes[1]
        if members_axis is not None:
            given = read(reference, "reference").values
            whole = data.truth.ndim + (0 if form.binary else 1)
            reference = np.expand_dims(given, members_axis) if given.ndim == whole else given
        mask, options = None if data.valid is None else ~data.valid, replace(form, as_given={}).input_options
        return Predictions.from_probs(data.truth, reference, mask=mask, **options)

    def targets(self, statistics: Statistics) -> dict[str, float]:
        """Moments of the true classes."""
        count, _, _ = classification.samples_by_class(statistics)
        classes = np.flatnonzero(count)
        mean = float(np.average(classes, weights=count[classes]))
        spread = math.sqrt(float(np.average(np.square(classes - mean), weights=count[classes])))
        return {"mean": mean, "std": spread, "low": float(classes[0]), "high": float(classes[-1])}

    @override
    def map_options(self, report: Any) -> dict[str, Any]:
        return {"classes": report.settings.get("classes")}

    def case_error(self, case: Case) -> float:
        """The case's share of wrong labels."""
        labels, predicted = case.arrays["labels"], case.arrays["probs"].argmax(axis=-1)
        known = labels >= 0
        return float(np.mean((labels != predicted)[known])) if known.any() else float("nan")


CLASSIFICATION = Classification()
