"""Classification: a probability for every class per sample or pixel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import RecalibrationError, SettingsError, ShapeError
from uq_tracking.inputs.convert import read
from uq_tracking.inputs.forms.probabilities import class_axis_of, probabilities_of
from uq_tracking.inputs.predictions import Case, Predictions
from uq_tracking.recalibration.base import (
    ClassificationRecalibration,
    Recalibration,
)
from uq_tracking.recalibration.fitting import fit_classes
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import CLASSIFICATION as LAYOUT
from uq_tracking.statistics.classification import confusion_matrix
from uq_tracking.statistics.layout import Layout, Rows
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks.task import Fit, Samples, Task
from uq_tracking.typed import override


class Classification(Task):
    """Scores class probabilities."""

    name = "classification"
    layout: ClassVar[Layout] = LAYOUT
    settings = ("n_bins",)
    without = ("alpha", "family", "dof", "unit", "by_target")
    forecast = "class probabilities"
    recalibration = "temperature"
    curves = ("by_members", "stability")
    case_score = "error rate"
    accuracy: ClassVar[Mapping[str, str]] = {
        "exact": "exact; sums in float64",
        "sketch": "buckets of relative width 2^-11: accuracy, nll, brier, entropy_mean and miou are exact; about "
        "1e-4 absolute for areas (ause_brier, aurc), 0.1 / sqrt(n) for ece and ace, and 0.1 / sqrt(m) for mce, whose "
        "bin has m samples",
    }

    def lazy(
        self, arrays: dict[str, Any], options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Classes come last, members before them."""
        labels, probs = arrays["y_true"], arrays["probs"]
        members, classes = options.get("members_axis"), options.get("class_axis")
        if classes is None:
            classes = class_axis_of(labels.shape, probs.shape, members)
        binary = probs.ndim == labels.ndim + (members is not None)
        front = [] if members is None else [members % probs.ndim]
        back = [] if binary else [classes % probs.ndim]
        rest = [axis for axis in range(probs.ndim) if axis not in (*front, *back)]
        moved = probs.transpose(*rest, *front, *back)
        if tuple(probs.shape[axis] for axis in rest) != labels.shape:
            raise ShapeError(
                f"labels have shape {labels.shape} and probs {probs.shape}; probs need the labels' shape and an axis "
                "of classes, or the labels' shape for a binary classifier"
            )
        own = {**options, "class_axis": -1, "members_axis": -2 if front else None}
        if binary and front:
            raise ShapeError(
                "lazy members of a binary classifier are not supported; add an axis of two classes"
            )
        return {**arrays, "probs": moved}, own

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
        count = confusion_matrix(statistics).sum(axis=1)
        classes = np.flatnonzero(count)
        mean = float(np.average(classes, weights=count[classes]))
        spread = math.sqrt(float(np.average(np.square(classes - mean), weights=count[classes])))
        return {"mean": mean, "std": spread, "low": float(classes[0]), "high": float(classes[-1])}

    @override
    def map_options(self, report: Any) -> dict[str, Any]:
        return {"class_names": report.settings.get("class_names")}

    def case_error(self, case: Case) -> float:
        """The case's share of wrong labels."""
        labels, predicted = case.arrays["labels"], case.arrays["probs"].argmax(axis=-1)
        known = labels >= 0
        return float(np.mean((labels != predicted)[known])) if known.any() else float("nan")

    @override
    def samples(self, statistics: Statistics, data: Any) -> Samples:
        if data is None:
            raise RecalibrationError(
                "a recalibration of classes changes probabilities, which statistics do not hold; pass the predictions"
            )
        return ClassSamples(data)

    @override
    def second_set(self, calibration: Any, data: Any, settings: Settings) -> Fit:
        if isinstance(calibration, tuple) and len(calibration) == 2 and data is not None:
            calibration = Predictions.from_probs(*calibration, **probabilities_of(data).input_options)
        if not (isinstance(calibration, Predictions) and calibration.task == self.name):
            given = repr(calibration) if isinstance(calibration, str) else f"a {type(calibration).__name__}"
            raise SettingsError(
                f"calibration is {given}; pass a second set (labels, probs), Predictions.from_probs(...), a fitted "
                "recalibration, or True to fit on one half of the samples"
            )
        return lambda method: ClassSamples(calibration).fit(method, settings)


@dataclass(frozen=True, eq=False)
class ClassSamples(Samples):
    """Labels and probabilities of samples."""

    data: Predictions

    @property
    @override
    def n(self) -> int:
        return self.data.n

    @property
    @override
    def layout(self) -> Layout:
        return LAYOUT

    @property
    @override
    def facts(self) -> Mapping[str, Any]:
        return self.data.facts

    @property
    @override
    def codes(self) -> npt.NDArray[Any] | None:
        return None if self.data.groups is None else self.data.select(self.data.label_codes("groups")[1])

    @override
    def part(self, keep: npt.NDArray[np.bool_]) -> Samples:
        valid = np.zeros(self.data.shape, dtype=bool)
        valid[np.ones(self.data.shape, dtype=bool) if self.data.valid is None else self.data.valid] = keep
        return ClassSamples(self.data.part(valid))

    @override
    def fit(self, method: type[Recalibration], settings: Settings) -> Recalibration:
        return fit_classes(method, self.data)

    @override
    def rows(self) -> Iterator[Rows]:
        yield from self.data.row_blocks()

    @override
    def recalibrated(self, fitted: Recalibration) -> Iterator[Rows]:
        if not isinstance(fitted, ClassificationRecalibration):
            raise SettingsError(
                f"{fitted.method} recalibrates a {fitted.task}; pass a recalibration of probabilities"
            )
        form = probabilities_of(self.data)
        n_logits = 1 if form.binary else form.n_classes
        if fitted.n_logits != n_logits:
            raise SettingsError(
                f"{fitted.method} was fitted to {fitted.n_logits} logits per sample, but these predictions have "
                f"{n_logits}; fit it to predictions of the same model"
            )
        yield from self.data.with_form(replace(form, transform=fitted.new_logarithms)).row_blocks()


CLASSIFICATION = Classification()
