"""Regression: a mean and a standard deviation per sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import IncompatibleStatisticsError, RecalibrationError, SettingsError, ShapeError
from uq_tracking.inference.regression import RegressionTests
from uq_tracking.inference.verdict import Tests
from uq_tracking.inputs.convert import read, read_floats
from uq_tracking.inputs.predictions import Case
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.recalibration.base import FittedOn, Recalibration, RegressionRecalibration
from uq_tracking.recalibration.fitting import fit, fit_groups, statistics_of
from uq_tracking.settings import Settings
from uq_tracking.statistics.collecting import statistics_of_rows
from uq_tracking.statistics.layout import Layout, Rows
from uq_tracking.statistics.regression import COVARIANCE, DISTRIBUTION
from uq_tracking.statistics.regression import REGRESSION as LAYOUT
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import WEIGHT
from uq_tracking.tasks.task import Fit, Samples, Task
from uq_tracking.typed import override

AT_ONCE = 1 << 22
"""Samples recalibrated at a time."""


class Regression(Task):
    """Scores predicted means and standard deviations."""

    name = "regression"
    layout: ClassVar[Layout] = LAYOUT
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
            return DISTRIBUTION
        return COVARIANCE if facts.get("vector_length") else LAYOUT

    @override
    def of_output(self, options: Mapping[str, Any], output: str, k: int, size: int) -> dict[str, Any]:
        own = super().of_output(options, output, k, size)
        for name in ("calibration", "reference"):
            given = own.get(name)
            if isinstance(given, tuple) and not isinstance(given[0], str) and given is options[name]:
                own[name] = tuple(_last(part, name, k, size) for part in given)
        return own

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
class RegressionSamples(Samples):
    """Truth, mean and std of samples; or std and error, if no more is known."""

    columns: Rows
    like: Statistics
    """Statistics of the same samples before recalibration."""
    codes: npt.NDArray[Any] | None = None
    labels: npt.NDArray[Any] | None = None
    """Value of ``by`` of each sample."""
    whole: bool = True
    """Whether these are all the samples behind ``like``."""

    @property
    @override
    def n(self) -> int:
        return len(self.columns["std"])

    @override
    def part(self, keep: npt.NDArray[np.bool_]) -> Samples:
        columns = {name: column[keep] for name, column in self.columns.items()}
        labels = None if self.labels is None else self.labels[keep]
        return RegressionSamples(columns, self.like, labels=labels, whole=False)

    @override
    def fit(self, method: type[Recalibration], settings: Settings) -> Recalibration:
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

    @override
    def rows(self) -> Iterator[Rows]:
        for start in range(0, self.n, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            yield {name: column[part].astype(np.float64, copy=False) for name, column in self.columns.items()}

    @override
    def recalibrated(self, fitted: Recalibration) -> Iterator[Rows]:
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


def _last(values: Any, name: str, k: int, size: int) -> Any:
    array = read(values, name).values
    if not array.ndim or array.shape[-1] != size:
        raise ShapeError(f"{name} has shape {array.shape}; its last axis must hold the {size} outputs")
    return array[..., k]


REGRESSION = Regression()
