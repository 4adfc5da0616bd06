"""Classification: a probability for every class per sample or pixel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from uq_tracking.errors import ShapeError
from uq_tracking.inference.classification import ClassTests
from uq_tracking.inference.verdict import Tests
from uq_tracking.inputs.convert import read
from uq_tracking.inputs.forms.probabilities import axes_of, class_axis_of, probabilities_of
from uq_tracking.inputs.predictions import Case, Predictions
from uq_tracking.statistics.classification import BINARY, TOP_LABEL, samples_by_class
from uq_tracking.statistics.classification import CLASSIFICATION as LAYOUT
from uq_tracking.statistics.layout import Layout
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks.task import Task
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
            return TOP_LABEL
        return LAYOUT if facts.get("event") is None else BINARY

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
        count, _, _ = samples_by_class(statistics)
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
