"""Recalibrated statistics of samples, by given parameters or by those of the other half."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uq_tracking.curves import Curve
from uq_tracking.curves.regression import wilson_band
from uq_tracking.errors import IncompatibleStatisticsError, RecalibrationError, SettingsError
from uq_tracking.families import FloatArray, ShapedSettings, Standard
from uq_tracking.inputs import Predictions
from uq_tracking.metrics.registry import Undefined
from uq_tracking.recalibration.base import Recalibration, Recalibrator, RegressionRecalibration
from uq_tracking.recalibration.fitting import fit
from uq_tracking.settings import Settings
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.regression import RegressionStatistics, exact_statistics, sketch_statistics

if TYPE_CHECKING:
    from uq_tracking.report import Report

SKETCHED_AT_ONCE = 1 << 22
LEFT_OUT = ("n_missing", "n_masked", "n_invalid")
ONE_GROUP = "cross-fitting needs two groups at least; pass a second set as calibration="
_PER_HALF = "the halves have distributions of their own"

Array = npt.NDArray[Any]
Change = Callable[[FloatArray, FloatArray, slice], tuple[FloatArray, FloatArray]]
Score = Callable[[RegressionStatistics, Settings], "Report"]


@dataclass(frozen=True)
class Rows:
    """Samples that count, and what their statistics are made with."""

    target: Array
    mean: Array
    std: Array
    like: RegressionStatistics
    """Statistics of the same samples before recalibration: the new ones are of the same kind."""
    codes: npt.NDArray[np.int64] | None = None
    """Number of each sample's group."""
    target_moments: Moments | None = None
    """Of the target, where only errors are known."""

    def part(self, keep: npt.NDArray[np.bool_]) -> Rows:
        """Some of the samples."""
        return Rows(self.target[keep], self.mean[keep], self.std[keep], self.like)

    def statistics(self, change: Change) -> RegressionStatistics:
        """Statistics with changed means and standard deviations, in float64.

        ``change(mean, std, part)`` gets the rows ``part``.
        """
        exact = self.like.kind == "exact"
        step = max(len(self.std), 1) if exact else SKETCHED_AT_ONCE
        make = exact_statistics if exact else sketch_statistics
        made: RegressionStatistics | None = None
        for start in range(0, len(self.std), step):
            part = slice(start, start + step)
            mean, std = change(_float64(self.mean[part]), _float64(self.std[part]), part)
            some = make(_float64(self.target[part]), mean, std)
            made = some if made is None else made + some
        if made is None:
            raise RecalibrationError("a half holds no samples; pass more data")
        moments = {} if self.target_moments is None else {"target": self.target_moments}
        left_out = {name: self.like.counts[name] for name in LEFT_OUT}
        return replace(
            made,
            counts={**made.counts, **left_out},
            moments={**made.moments, **moments},
            std_floor=self.like.std_floor,
            memo={},
        )


def _float64(values: Array) -> FloatArray:
    return values.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Outcome:
    """One method: the parameters to use from now on, and the report after it on unseen data."""

    fitted: Recalibration
    after: Report
    halves: Sequence[Recalibration] = ()


def rows_of(report: Report, predictions: Predictions | None) -> Rows:
    """Samples of the predictions; without them, the std and error of each sample in exact statistics."""
    statistics = report.statistics
    if not isinstance(statistics, RegressionStatistics):
        raise RecalibrationError(
            "scores after a recalibration of std need regression statistics in the report"
        )
    if predictions is not None:
        grouped = predictions.groups is not None
        codes = predictions.label_codes("groups")[1] if grouped else None
        return Rows(*predictions.flat(), statistics, codes)
    try:
        std, error = statistics.rows()
    except IncompatibleStatisticsError:
        raise RecalibrationError(
            "these statistics are a sketch, whose samples are not known one by one; pass the predictions"
        ) from None
    return Rows(error, np.zeros_like(error), std, statistics, None, statistics.moments["target"])


def regression(fitted: Recalibration) -> RegressionRecalibration:
    """SettingsError unless it is a recalibration of mean and std."""
    if not isinstance(fitted, RegressionRecalibration):
        raise SettingsError(f"{fitted.method} recalibrates a {fitted.task}; pass one for mean and std")
    return fitted


def shaped(settings: Settings, shape: Standard | None) -> Settings:
    """Settings under the recalibrated distribution, where it has a shape of its own."""
    if shape is None:
        return settings
    return ShapedSettings(
        **{item.name: getattr(settings, item.name) for item in fields(Settings)}, shape=shape
    )


@dataclass(frozen=True)
class Bench:
    """Samples to recalibrate, and how they are scored."""

    data: Rows
    score: Score
    settings: Settings
    digest: str | None
    seed: int

    def applied(self, fitted: RegressionRecalibration) -> Outcome:
        """Score parameters that were fitted elsewhere."""
        return Outcome(fitted, self._after(fitted, self.data))

    def fitted(self, method: Recalibrator, statistics: RegressionStatistics, digest: str | None) -> Outcome:
        """Fit to other statistics, and score."""
        return self.applied(regression(fit(method, statistics, self.settings, digest=digest)))

    def _after(self, fitted: RegressionRecalibration, data: Rows) -> Report:
        def change(mean: FloatArray, std: FloatArray, part: slice) -> tuple[FloatArray, FloatArray]:
            return fitted.new_mean(mean, std), fitted.new_std(std)

        return self.score(data.statistics(change), shaped(self.settings, fitted.shape))

    def cross_fitted(self, method: Recalibrator) -> Outcome:
        """Recalibrate each half with parameters fitted on the other, and score all of it together."""
        side = self.halves()
        parts = [self.data.part(side == half) for half in (0, 1)]
        if not all(len(part.std) for part in parts):
            raise RecalibrationError(ONE_GROUP)
        fits = [regression(fit(method, part.statistics(_unchanged), self.settings)) for part in parts]
        statistics = self.data.statistics(partial(_each_half, side, fits[::-1]))
        if fits[0].shape is None:
            after = self.score(statistics, self.settings)
        else:
            own = [self._after(fitted, part) for fitted, part in zip(fits[::-1], parts, strict=True)]
            after = _joined(self.score(statistics, shaped(self.settings, _PerHalf())), own)
        return Outcome(fit(method, self.data.like, self.settings, digest=self.digest), after, fits)

    def halves(self) -> npt.NDArray[np.int8]:
        """Half (0 or 1) of each sample; whole groups where there are any, so that what belongs together stays so."""
        codes = self.data.codes
        if codes is None:
            return two_halves(len(self.data.std), self.seed)
        return two_halves(int(codes.max()) + 1, self.seed)[codes]


def two_halves(items: int, seed: int) -> npt.NDArray[np.int8]:
    """Half (0 or 1) of each of some items, drawn at random."""
    side = np.zeros(items, dtype=np.int8)
    side[np.random.default_rng(seed).permutation(items)[: items // 2]] = 1
    return side


def _each_half(
    side: npt.NDArray[np.int8],
    used: Sequence[RegressionRecalibration],
    mean: FloatArray,
    std: FloatArray,
    part: slice,
) -> tuple[FloatArray, FloatArray]:
    """Recalibrate the rows ``part``, each half with its own parameters."""
    new_mean, new_std = mean.copy(), std.copy()
    for half, fitted in enumerate(used):
        mine = side[part] == half
        new_mean[mine] = fitted.new_mean(mean[mine], std[mine])
        new_std[mine] = fitted.new_std(std[mine])
    return new_mean, new_std


def _unchanged(mean: FloatArray, std: FloatArray, part: slice) -> tuple[FloatArray, FloatArray]:
    return mean, std


class _PerHalf(Standard):
    """Stands for two distributions at once: a metric that asks for it is computed on each half instead."""

    name = "per half"
    pdf_square_integral = float("nan")

    def cdf(self, z: FloatArray) -> FloatArray:
        raise Undefined(_PER_HALF)

    def quantile(self, p: FloatArray) -> FloatArray:
        raise Undefined(_PER_HALF)

    def pdf(self, z: FloatArray) -> FloatArray:
        raise Undefined(_PER_HALF)

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        raise Undefined(_PER_HALF)


def _joined(pooled: Report, own: Sequence[Report]) -> Report:
    """The pooled report, with the halves' mean for what needs a half's own distribution, weighted by samples."""
    sizes = [report.counts["n"] for report in own]
    scores, undefined = dict(pooled.scores), {}
    for key, reason in pooled.undefined.items():
        reasons = [report.undefined[key] for report in own if key in report.undefined]
        if reason == _PER_HALF and not reasons:
            scores[key] = float(np.average([report.scores[key] for report in own], weights=sizes))
        else:
            undefined[key] = reasons[0] if reason == _PER_HALF else reason
    curves = dict(pooled.curves)
    if all("calibration" in report.curves for report in own):
        curves["calibration"] = _joined_calibration([report.curves["calibration"] for report in own], sizes)
    return replace(pooled, scores=scores, undefined=undefined, curves=curves)


def _joined_calibration(own: Sequence[Curve], sizes: Sequence[int]) -> Curve:
    """Shares add up over the halves."""
    observed = np.average([curve.columns["observed"] for curve in own], axis=0, weights=sizes)
    low, high = wilson_band(observed, sum(sizes))
    return replace(own[0], columns={**own[0].columns, "observed": observed, "low": low, "high": high})
