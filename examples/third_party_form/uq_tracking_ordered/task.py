"""What ordered classes do in their own way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from uq_tracking.inference.verdict import Tests
from uq_tracking.inputs.predictions import Case
from uq_tracking.statistics.layout import Layout
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tasks import Task
from uq_tracking_ordered.form import median_class
from uq_tracking_ordered.statistics import layout_of
from uq_tracking_ordered.verdict import OrderedTests


class Ordered(Task):
    """Scores probabilities of ordered classes."""

    name = "ordered"
    layout: ClassVar[Layout] = layout_of(2)
    tests: ClassVar[type[Tests]] = OrderedTests
    settings = ("n_bins",)
    without = ("alpha", "family", "dof", "unit", "by_target", "reference")
    forecast = "probabilities of ordered classes"
    case_score = "mean absolute error of the median class"
    factor = "the errors it implies"
    overview = ("reliability",)
    accuracy: ClassVar[Mapping[str, str]] = {
        "exact": "exact; sums in float64",
        "sketch": "rps and class_error are exact; buckets of relative width 2^-11: 0.1 / sqrt(n) for cumulative_ece",
    }

    def layout_for(self, facts: Mapping[str, Any]) -> Layout:
        """Return the layout for the number of classes."""
        return layout_of(facts["n_classes"])

    def targets(self, statistics: Statistics) -> dict[str, float]:
        """Return moments of the true classes."""
        label = statistics.moments["label"]
        spread = math.sqrt(max(label.m2, 0.0) / statistics.n) if statistics.n else 0.0
        return {"mean": label.mean, "std": spread, "low": label.low, "high": label.high}

    def map_options(self, report: Any) -> dict[str, Any]:
        """Return the names of the classes."""
        return {"classes": report.settings.get("classes")}

    def case_error(self, case: Case) -> float:
        """Return the mean absolute error of the median class."""
        error = np.abs(median_class(case.arrays["probs"]) - case.arrays["labels"])
        return float(np.nanmean(error)) if np.isfinite(error).any() else math.nan
