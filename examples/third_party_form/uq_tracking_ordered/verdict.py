"""The verdict on ordered classes: whether errors are as large, and events ``y <= k`` as frequent, as stated.

Under calibration the truth is a draw from the stated probabilities, so the mean and the variance of every sum below
are known, and its standardized value z is nearly normal (Spiegelhalter 1986, for a single event). The score has one
test at 2.5 %, and all thresholds together another one. With groups, variances are those between groups instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from uq_tracking.formatting import format_factors
from uq_tracking.inference.limits import Estimated
from uq_tracking.inference.verdict import (
    LEVEL,
    TEST_LEVEL,
    Calibration,
    Tests,
    Verdict,
    no_verdict,
    rank_sign,
)
from uq_tracking.inference.words import of_ranking
from uq_tracking.metrics.ranking import Sparsification, sparsification
from uq_tracking.metrics.registry import Undefined


@dataclass(frozen=True)
class Threshold:
    """A threshold whose events are more or less frequent than stated."""

    k: int
    stated: float
    observed: float
    z: float


class OrderedTests(Tests):
    """Tests of z of the score, and of the events of each threshold."""

    shows = "the ranked probability score"

    def scale(self) -> Estimated:
        """Return the ranked probability score over the one that the probabilities imply."""
        expected = self.statistics.sums["expected_rps"]
        if expected <= 0:
            raise Undefined("every stated probability is 0 or 1, which implies no errors")
        rps = self.statistics.sums["rps"]
        reach = self._reach("rps", "expected_rps", "rps_variance", TEST_LEVEL)
        return Estimated(rps / expected, max(rps - reach, 0.0) / expected, (rps + reach) / expected, 0.0)

    def bias(self) -> Estimated:
        """Return the mean class of the forecast minus the true one."""
        n, sums = self.statistics.n, self.statistics.sums
        reach = self._reach("mean_class", "label", "class_variance", LEVEL) / n
        bias = (sums["mean_class"] - sums["label"]) / n
        return Estimated(bias, bias - reach, bias + reach, 0.0)

    def ranking(self) -> tuple[Sparsification, Callable[[float, float], int]]:
        """Return the score of the rest as the least certain samples are removed, and whether it grows as expected."""
        curve = sparsification(self.statistics, "rps", "expected_rps", "rps", "every score is 0")
        return curve, lambda _, level: rank_sign(self.statistics, "expected_rps", "rps", level)

    def thresholds(self) -> list[Threshold]:
        """Return the thresholds whose tests reject, at 2.5 % for all together, the clearest one first."""
        n, sums = self.statistics.n, self.statistics.sums
        number = self.statistics.facts["n_classes"] - 1
        level = 1 - (1 - TEST_LEVEL) / number
        found = []
        for k in range(number):
            names = (f"event_{k}", f"stated_{k}", f"variance_{k}")
            observed, stated = (sums[name] / n for name in names[:2])
            if abs(observed - stated) * n > self._reach(*names, level):
                found.append(Threshold(k, stated, observed, self._z(*names)))
        return sorted(found, key=_clearness)

    def _error(self, one: str, other: str, variance: str) -> tuple[float, float]:
        """Return the standard error of the difference of two sums, and its degrees of freedom."""
        groups = self.statistics.groups
        if groups is None:
            wide = self.statistics.n / self.statistics.n_effective
            return math.sqrt(self.statistics.sums[variance] * wide), math.inf
        gaps = groups.sums[one] - groups.sums[other]
        gaps = (gaps - gaps.mean()) / groups.unit
        return math.sqrt(float(np.sum(np.square(gaps))) * len(gaps) / (len(gaps) - 1)), len(gaps) - 1.0

    def _reach(self, one: str, other: str, variance: str, level: float) -> float:
        """Return how far the difference of two sums may be from 0 by chance, two-sided."""
        error, freedom = self._error(one, other, variance)
        tail = (1 + level) / 2
        return error * float(special.ndtri(tail) if math.isinf(freedom) else special.stdtrit(freedom, tail))

    def _z(self, one: str, other: str, variance: str) -> float:
        """Return the difference of two sums over its standard error."""
        error, _ = self._error(one, other, variance)
        difference = self.statistics.sums[one] - self.statistics.sums[other]
        return difference / error if error > 0 else math.copysign(math.inf, difference)

    def verdict(self) -> Verdict:
        """Test everything, and say it."""
        reason = self.too_little()
        if reason:
            return no_verdict(reason)
        scale, _, untested = self._scale()
        wrong = self.thresholds()
        calibration: Calibration = "consistent with calibrated"
        if scale is not None and scale.low > 1:
            calibration = "overconfident"
        elif scale is not None and scale.high < 1:
            calibration = "underconfident"
        elif wrong:
            same = len({each.z > 0 for each in wrong}) == 1
            calibration = "biased" if same else "miscalibrated in shape"
        if untested:
            self.caveats.append(f"The scale is not tested: {untested}.")
        said = f"{calibration.capitalize()}"
        if scale is not None:
            value, low, high = format_factors(scale.value, scale.low, scale.high)
            said += f": ranked probability scores are {value} times what the probabilities imply ({low} to {high})"
        parts = [f"{said}."]
        if wrong:
            first = wrong[0]
            parts.append(
                f"Classes up to {first.k} are {'more' if first.z > 0 else 'less'} frequent than stated: "
                f"{first.observed:.3g} of the samples, stated {first.stated:.3g} (z = {first.z:.1f})."
            )
        ranked = self._ranking()
        parts.append(of_ranking(ranked))
        text = " ".join(part for part in parts if part)
        return Verdict(
            calibration,
            scale,
            None,
            ranked.word,
            ranked.recovered,
            self._bias(),
            True,
            text,
            tuple(self.caveats),
        )


def _clearness(threshold: Threshold) -> float:
    return -abs(threshold.z)
