"""The contract of a task, and the two tasks: a mean and a std per sample, or a probability for every class."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.errors import IncompatibleStatisticsError, RecalibrationError, SettingsError, ShapeError
from uq_tracking.inference.classification import ClassTests
from uq_tracking.inference.regression import RegressionTests
from uq_tracking.inference.verdict import Tests
from uq_tracking.inputs.convert import read, read_floats
from uq_tracking.inputs.forms.probabilities import axes_of, class_axis_of, probabilities_of
from uq_tracking.inputs.predictions import Case, Forecast, Predictions, entry_of, outputs_of
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.recalibration.base import FittedOn, Recalibration, RegressionRecalibration
from uq_tracking.recalibration.fitting import fit, fit_groups, statistics_of
from uq_tracking.settings import SCORE_OPTIONS, Settings
from uq_tracking.statistics import classification, regression
from uq_tracking.statistics.collecting import statistics_of_rows
from uq_tracking.statistics.layout import Layout, Rows
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import WEIGHT
from uq_tracking.typed import override

AT_ONCE = 1 << 22
"""Samples recalibrated at a time."""
INPUT_OPTIONS = ("mask", "weights", "groups", "order", "by", "on_invalid")
"""Options of the input that every form has."""

Fit = Callable[[type[Recalibration]], Recalibration]


@dataclass(frozen=True, eq=False)
class FormSamples:
    """Truth and forecast of samples, in a form whose recalibration statistics cannot hold."""

    data: Predictions

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.data.n

    @property
    def codes(self) -> npt.NDArray[Any] | None:
        """Number of each sample's group, shape (n,); None without groups."""
        return None if self.data.groups is None else self.data.select(self.data.label_codes("groups")[1])

    def part(self, keep: npt.NDArray[np.bool_]) -> FormSamples:
        """Return the samples that ``keep``, shape (n,), selects."""
        valid = np.zeros(self.data.shape, dtype=bool)
        valid[np.ones(self.data.shape, dtype=bool) if self.data.valid is None else self.data.valid] = keep
        return FormSamples(self.data.part(valid))

    def fit(self, method: type[Recalibration], settings: Settings) -> Recalibration:
        """Fit the parameters of a method to these samples."""
        return method.fit(self.data)

    def rows(self) -> Iterator[Rows]:
        """Rows as they are, block by block."""
        return self.data.row_blocks()

    def recalibrated(self, fitted: Recalibration) -> Iterator[Rows]:
        """Rows after the recalibration, block by block."""
        if fitted.task != self.data.task:
            raise SettingsError(
                f"{fitted.method} recalibrates a {fitted.task}; pass a recalibration of a {self.data.task}"
            )
        return self.data.with_form(self.data.form.recalibrated(fitted)).row_blocks()


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

    def split(
        self, forecast: Forecast, outputs: Sequence[str], options: Mapping[str, Any]
    ) -> dict[str, tuple[Predictions, dict[str, Any]]]:
        """Predictions of each output along the last axis of the truth, and the other options split to match."""
        kind = forecast.kind
        if not kind.takes or forecast.arrays.keys() != {*kind.takes}:
            *first, last = kind.truth_is.split()[0], *kind.takes
            raise SettingsError(
                f"outputs= splits arrays along their last axis; pass {', '.join(first)} and {last}"
            )
        names = {*INPUT_OPTIONS, *kind.options, "unit"}
        own = {name: value for name, value in options.items() if name in names and value is not None}
        parts = outputs_of(forecast, outputs, own)
        rest = {name: value for name, value in options.items() if name not in names}
        found = {}
        for k, (output, part) in enumerate(parts.items()):
            more = {name: self.of_output(name, value, output, k, len(parts)) for name, value in rest.items()}
            found[output] = part, more
        return found

    def of_output(self, name: str, given: Any, output: str, k: int, size: int) -> Any:
        """Return what an option says about output k of several."""
        return entry_of(given, name, output)

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

    def samples(self, statistics: Statistics, data: Any) -> Samples:
        """The samples behind a report; RecalibrationError if neither data nor statistics hold them."""
        if data is None:
            raise RecalibrationError(f"{self.needs_predictions}; pass the predictions")
        return FormSamples(data)

    def second_set(self, calibration: Any, data: Any, settings: Settings) -> Fit:
        """The function that fits a method to a second set; error messages list what a set may be."""
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
        return lambda method: method.fit(calibration)


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
    def of_output(self, name: str, given: Any, output: str, k: int, size: int) -> Any:
        if isinstance(given, tuple) and not isinstance(given[0], str):
            return tuple(_last(part, name, k, size) for part in given)
        return super().of_output(name, given, output, k, size)

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
    def samples(self, statistics: Statistics, data: Any) -> Samples:
        if statistics.task != self.name:
            raise RecalibrationError("scores after a recalibration of std need regression statistics")
        if data is not None:
            codes = None if data.groups is None else data.select(data.label_codes("groups")[1])
            labels = None if data.by is None else data.flat_labels("by")
            return RegressionSamples(data.rows(), statistics, codes, labels)
        try:
            return RegressionSamples(statistics.rows(), statistics)
        except IncompatibleStatisticsError:
            raise RecalibrationError(
                "these statistics are a sketch, which does not hold individual samples; pass the predictions, "
                "or count a stream with statistics='exact'"
            ) from None

    @override
    def second_set(self, calibration: Any, data: Any, settings: Settings) -> Fit:
        statistics, digest, _ = statistics_of(calibration)

        def fitted(method: type[Recalibration]) -> Recalibration:
            if method.by_group:
                return fit_groups(method, calibration, settings)
            return fit(method, statistics, settings, digest=digest)

        return fitted


@dataclass(frozen=True, eq=False)
class RegressionSamples:
    """Truth, mean and std of samples; or std and error, if no more is known."""

    columns: Rows
    like: Statistics
    """Statistics of the same samples before recalibration."""
    codes: npt.NDArray[Any] | None = None
    """Number of each sample's group; None without groups."""
    labels: npt.NDArray[Any] | None = None
    """Value of ``by`` of each sample."""
    whole: bool = True
    """Whether these are all the samples behind ``like``."""

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.columns["std"])

    def part(self, keep: npt.NDArray[np.bool_]) -> RegressionSamples:
        """Return the samples that ``keep``, shape (n,), selects."""
        columns = {name: column[keep] for name, column in self.columns.items()}
        labels = None if self.labels is None else self.labels[keep]
        return RegressionSamples(columns, self.like, labels=labels, whole=False)

    def fit(self, method: type[Recalibration], settings: Settings) -> Recalibration:
        """Fit the parameters of a method to these samples."""
        if method.by_group:
            if self.labels is None:
                raise RecalibrationError(f"{method.method} needs the group of each sample; pass by=")
            fitted_on = FittedOn(self.n, "arrays", std_floor=self.like.facts.get("std_floor"))
            return method.fit_groups(self.columns, self.labels, settings, fitted_on)
        if self.whole:
            return fit(method, self.like, settings)
        rows = {name: column.astype(np.float64, copy=False) for name, column in self.columns.items()}
        known = None if "target" in rows else self.like
        made = statistics_of_rows(self.like.layout, rows, self.like.facts, self.like.kind, known)
        return fit(method, made, settings)

    def rows(self) -> Iterator[Rows]:
        """Rows as they are, block by block."""
        for start in range(0, self.n, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            yield {name: column[part].astype(np.float64, copy=False) for name, column in self.columns.items()}

    def recalibrated(self, fitted: Recalibration) -> Iterator[Rows]:
        """Rows after the recalibration, block by block."""
        if not isinstance(fitted, RegressionRecalibration):
            raise SettingsError(
                f"{fitted.method} recalibrates a {fitted.task}; pass a recalibration of mean and std"
            )
        for number, rows in enumerate(self.rows()):
            part = slice(number * AT_ONCE, (number + 1) * AT_ONCE)
            weight = {WEIGHT: rows[WEIGHT]} if WEIGHT in rows else {}
            before = fitted.floored(rows["std"])
            std = fitted.new_std_by(before, None if self.labels is None else self.labels[part])
            if "target" in rows:
                mean = fitted.new_mean(rows["mean"], before)
                yield {"target": rows["target"], "mean": mean, "std": std, **weight}
            else:
                shift = fitted.new_mean(np.zeros_like(before), before)
                yield {"std": std, "error": rows["error"] - shift, **weight}


Samples = FormSamples | RegressionSamples
"""Samples to fit a recalibration to, or to recalibrate and score."""


def _last(values: Any, name: str, k: int, size: int) -> Any:
    array = read(values, name).values
    if not array.ndim or array.shape[-1] != size:
        raise ShapeError(f"{name} has shape {array.shape}; its last axis must hold the {size} outputs")
    return array[..., k]


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
        mask = None if data.valid is None else ~data.valid
        return Predictions.from_probs(data.truth, reference, mask=mask, **form.input_options)

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
