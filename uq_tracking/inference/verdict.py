"""The verdict: what a report says about its model, every word the outcome of a test.

===================  ==================================================================================
calibration          scale and shape are tested at 2.5 % each, so together at most 5 % of calibrated
                     models are called anything else
scale                overconfident if its 97.5 % interval lies above 1, underconfident if below; overconfident
                     in few samples if a thousandth of them carries most of the squared errors. Quantiles and
                     intervals: by the 97.5 % limits of the share of targets inside the widest interval
shape                regression: Kolmogorov-Smirnov on F(y), with groups by their own covariance;
                     classification: the noise floor of ``ece``
ranking              95 % interval of the area under the random gain: "useful" above 0; of a
                     classification with too few errors it is not tested
bias                 95 % interval of the mean error
===================  ==================================================================================

Scale is the root of the mean squared standardized error, or the errors made over those the probabilities imply.
Where a few samples or groups carry most of its spread, too small a scale is no evidence: large errors are missing
from most samples of such data. Then only overconfidence can be concluded from the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from uq_tracking.formatting import format_number
from uq_tracking.inference import read, scale, words
from uq_tracking.inference.few_errors import too_few_errors, too_few_of
from uq_tracking.inference.gaps import largest
from uq_tracking.inference.inside import Inside, inside_widest
from uq_tracking.inference.leave_out import too_few
from uq_tracking.inference.limits import DOMINATED
from uq_tracking.inference.noise import (
    NO_STD,
    TRUSTED_GROUPS,
    NoiseFloor,
    floor_of,
    group_moves,
    kolmogorov_floor,
    left_out_moves,
    multivariate_t,
)
from uq_tracking.inference.ranking import gain_influence
from uq_tracking.inference.scale import Few, few_samples
from uq_tracking.inference.tails import heavy_tails
from uq_tracking.metrics.calibration import pit_ks
from uq_tracking.metrics.classification import sparsification_brier
from uq_tracking.metrics.ranking import FRACTIONS, n_merci, sparsification
from uq_tracking.metrics.registry import Undefined
from uq_tracking.metrics.scoring import LEVELS
from uq_tracking.metrics.spread import cv
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import FloatArray
from uq_tracking.typed import record

Calibration = Literal[
    "overconfident",
    "overconfident in few samples",
    "underconfident",
    "consistent with calibrated",
    "miscalibrated in shape",
    "not enough data",
]
Ranking = Literal["useful", "no better than constant", "worse than constant", "not enough data"]

ENOUGH_DRAWS = 50
"""With at least this many draws, the noise of their std inflates the spread of z by less than 3 %."""
TEST_LEVEL = 0.975
"""Level of each of the two tests, of scale and of shape."""
LEVEL = 0.95
FEWEST_SAMPLES = 20
"""With fewer independent samples than this, nothing is tested."""
ALIKE = 0.02
"""Standard deviations with a coefficient of variation below this count as all alike."""
FEWEST_RANKED = 100
"""The same for the test of ranking: with 60 samples it calls 12 % of uninformative stds useful or harmful."""


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    low: float
    high: float
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """What the data say of a model's uncertainties.

    Attributes
    ----------
    calibration : {"overconfident", "overconfident in few samples", "underconfident", \
"consistent with calibrated", "miscalibrated in shape", "not enough data"}
    scale : Estimate or None
        Factor by which standard deviations (for a classification: error probabilities) should be multiplied, with a
        97.5 % interval; above 1 is overconfident.
    shape_p : float or None
        p-value of the test of shape.
    ranking : {"useful", "no better than constant", "worse than constant", "not enough data"}
    recovered : float or None
        Share of the oracle's gain over a random order that sorting by uncertainty achieves: 1 for the oracle, 0 for a
        constant.
    bias : Estimate or None
        Mean of prediction minus truth; for a classification, mean confidence minus accuracy.
    enough_data : bool
        Whether calibration could be tested.
    text : str
        Two or three plain sentences.
    caveats : tuple of str
        What limits confidence in these statements, a sentence each.
    """

    calibration: Calibration
    scale: Estimate | None
    shape_p: float | None
    ranking: Ranking
    recovered: float | None
    bias: Estimate | None
    enough_data: bool
    text: str
    caveats: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def short(self) -> str:
        """The verdict in a few words, for a column of a table."""
        factor = None if self.scale is None else self.scale.value
        return words.short(self.calibration, factor, self.ranking, self.recovered)

    @property
    def knows_little(self) -> bool:
        """Whether the uncertainty ranks errors, but recovers little of what an oracle would."""
        return self.ranking == "useful" and words.is_little(self.recovered)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "caveats": list(self.caveats)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Verdict:
        """Inverse of ``to_dict``; unknown names (from a newer version) are ignored."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        parts = {name: known[name] and record(Estimate, known[name]) for name in ("scale", "bias")}
        return record(cls, {**known, **parts, "caveats": tuple(known.get("caveats", ()))})


def verdict_of(statistics: Any, task: str, settings: Settings, noise: Mapping[str, NoiseFloor]) -> Verdict:
    """The verdict on statistics; for a task it cannot judge, "not enough data"."""
    tests = _Tests(statistics, task, settings, noise)
    reason = tests.too_little()
    if reason:
        return no_verdict(reason)
    caveats = list(tests.caveats())
    factor, dominated, untested = tests.scale(caveats)
    shape_p, inside = tests.shape(), tests.inside()
    calibration = (inside and inside.misses) or _calibration(factor, dominated, shape_p)
    few = tests.few() if dominated and calibration == "overconfident" else None
    certain = tests.errors_of_the_certain()
    if few is not None:
        calibration = "overconfident in few samples"
        told = words.of_few(few)
    elif certain:
        calibration, untested = "overconfident", ""
        told = words.of_certain(certain)
    else:
        told = tests.told(calibration, factor, shape_p, inside)
    if untested and inside is None and calibration != "not enough data":
        caveats.append(f"The scale is not tested: {untested}.")
    ranking, recovered = tests.ranking(caveats)
    if ranking == "useful":
        caveats += tests.of_spread()
    bias = tests.bias()
    text = words.sentences(
        told or f"Calibration is not judged: {untested}.",
        ranking,
        recovered,
        bias if task == "regression" else None,
        settings,
    )
    return Verdict(
        calibration,
        factor,
        shape_p,
        ranking,
        recovered,
        bias,
        calibration != "not enough data",
        text,
        tuple(caveats),
    )


def no_verdict(reason: str) -> Verdict:
    """The verdict if no test is possible, with the reason."""
    text = f"Not enough data to judge: {reason}."
    return Verdict("not enough data", None, None, "not enough data", None, None, False, text)


def _calibration(factor: Estimate | None, dominated: bool, shape_p: float | None) -> Calibration:
    if factor is not None and factor.low > 1:
        return "overconfident"
    if factor is not None and factor.high < 1 and not dominated:
        return "underconfident"
    if shape_p is not None and shape_p < 1 - TEST_LEVEL:
        return "miscalibrated in shape"
    if factor is None and shape_p is None:
        return "not enough data"
    return "consistent with calibrated"


@dataclass(frozen=True)
class _Tests:
    """The tests behind the words."""

    statistics: Any
    task: str
    settings: Settings
    noise: Mapping[str, NoiseFloor]

    def too_little(self) -> str | None:
        """The reason why nothing can be tested, or None."""
        groups = self.statistics.groups
        if self.task not in ("regression", "classification"):
            return f"there is no test for the task {self.task}"
        if groups is not None and (few := too_few(groups, "a test")):
            return few
        n = int(self.statistics.n_effective)
        if groups is None and n < FEWEST_SAMPLES:
            return f"{n} {'sample is' if n == 1 else 'samples are'} too few; a test needs {FEWEST_SAMPLES}"
        if self.task == "regression" and not self.statistics.orders["abs_error"].sum("abs_error"):
            return "every error is 0"
        return None

    def caveats(self) -> list[str]:
        """Caveats that follow from the number of units, the form of the forecasts and the targets alone."""
        return [*self._of_units(), *self._of_form(), *self._of_targets()]

    def _of_targets(self) -> list[str]:
        found = read.repeated_target(self.statistics)
        if found is None:
            return []
        value, share = found
        return [
            f"{format_number(100 * share, 2)} % of the true values are exactly {format_number(value)}: if that "
            "stands for missing values, mask them (mask=)."
        ]

    def _of_form(self) -> list[str]:
        size = self.statistics.moments.get("size")
        form = self.statistics.facts.get("distribution")
        if form == "draws" and size is not None and size.low < ENOUGH_DRAWS:
            return [
                f"The std of {size.low:.0f} draws is noisy, which inflates ence, uce and z_std, so ence and uce have "
                "no noise floor; coverage, crps and the scale above do not depend on the number of draws."
            ]
        if form in NO_STD:
            return [f"There is no noise floor for ence and uce: {NO_STD[form]}."]
        return []

    def _of_units(self) -> list[str]:
        groups = read.group_count(self.statistics)
        if groups is None:
            count = "" if self.statistics.n_effective == self.statistics.counts["n"] else self._of_weights()
            return [
                "Samples are assumed to be independent; if they are not (pixels, time steps), score them with groups."
                + count
            ]
        few = self._few_errors()
        if few:
            return [f"Shape is not tested: {few}."]
        if groups < TRUSTED_GROUPS:
            return [f"With {groups} groups, this is only a rough guide; {TRUSTED_GROUPS} make it reliable."]
        return []

    def of_spread(self) -> list[str]:
        """Caveats about uncertainties that sort errors but hardly vary, or do not follow the sizes of errors."""
        if self.task != "regression":
            return []
        caveats, dispersion, width = [], self._score(cv), self._score(n_merci)
        if dispersion is not None and dispersion < ALIKE:
            caveats.append(
                f"Standard deviations vary by only {format_number(100 * dispersion, 2)} %: they sort errors, but "
                "state nearly the same size for all."
            )
        if width is not None and width >= 1:
            caveats.append(
                "The uncertainty sorts errors, but intervals scaled by it are no shorter than those of a constant "
                f"(n_merci {format_number(width)})."
            )
        return caveats

    def _score(self, metric: Callable[[Any, Settings], float]) -> float | None:
        try:
            return metric(self.statistics, self.settings)
        except Undefined:
            return None

    def _of_weights(self) -> str:
        n, effective = self.statistics.counts["n"], self.statistics.n_effective
        return f" With these weights, the {n} samples are worth {effective:.0f} equally weighted ones."

    def scale(self, caveats: list[str]) -> tuple[Estimate | None, bool, str]:
        """The scale, whether a few units dominate it, and why there is none."""
        try:
            if self.task == "regression":
                found = scale.std_scale(self.statistics, read.family(self.settings), TEST_LEVEL)
            else:
                found = scale.error_scale(self.statistics, TEST_LEVEL)
        except Undefined as reason:
            return None, False, str(reason)
        dominated = found.dominance > DOMINATED or (
            self.task == "regression" and heavy_tails(self.statistics)
        )
        if dominated:
            units = "samples" if read.group_count(self.statistics) is None else "groups"
            caveats.append(
                f"A few {units} carry most of the spread (heavy tails): intervals may be too narrow, and rare large "
                "errors may be missing from these data."
            )
        return Estimate(found.value, found.low, found.high, TEST_LEVEL), dominated, ""

    def errors_of_the_certain(self) -> float | None:
        """Share of wrong predictions of a classifier that states probability 1 for all of them; None for others."""
        if self.task != "classification":
            return None
        doubt = self.statistics.orders["one_minus_confidence"]
        return None if doubt.sum("one_minus_confidence") > 0 else 1 - doubt.sum("correct") / self.statistics.n

    def inside(self) -> Inside | None:
        """How many targets the widest interval of quantiles contains, if predictions are such."""
        return (
            None
            if self.task == "classification"
            else inside_widest(self.statistics, self.settings, TEST_LEVEL)
        )

    def told(
        self, calibration: Calibration, factor: Estimate | None, shape_p: float | None, inside: Inside | None
    ) -> str:
        """The sentence on calibration."""
        if self.task == "classification":
            return words.of_probabilities(calibration, factor, shape_p)
        if inside is not None:
            return words.of_interval(calibration, shape_p, inside)
        return words.of_deviations(calibration, factor, shape_p, self.settings)

    def few(self) -> Few | None:
        """The few samples that determine the scale, if there are such."""
        if self.task != "regression":
            return None
        return few_samples(self.statistics, read.family(self.settings))

    def _few_errors(self) -> str | None:
        """Why the errors of a classification are too few to test its order, or None."""
        if self.task != "classification":
            return None
        if self.statistics.groups is not None:
            return too_few_errors(self.statistics.groups)
        n, share = read.effective(self.statistics)
        return too_few_of(n - share * self.statistics.orders["one_minus_confidence"].sum("correct"))

    def shape(self) -> float | None:
        """p-value of the test of shape, or None."""
        if self.task == "classification":
            floor = self.noise.get("ece") or self._floor_of_ece()
            return None if floor is None else floor.p
        if self.statistics.counts["n_zero_std"] and self.statistics.moments["std"].low <= 0:
            return None
        if read.group_count(self.statistics) is None:
            known = self.noise.get("pit_ks")
            return (
                known.p
                if known
                else kolmogorov_floor(
                    round(self.statistics.n_effective), pit_ks(self.statistics, self.settings)
                ).p
            )
        moves, weights = group_moves(self.statistics, "quantiles", self.settings)
        observed = read.below_quantiles(self.statistics, read.family(self.settings), LEVELS).sum(axis=0)
        gap = float(np.abs(observed / read.group_total(self.statistics) - LEVELS).max())
        noise = multivariate_t(left_out_moves(moves), read.group_freedom(self.statistics))
        return floor_of(np.sort(largest(noise, weights)), gap).p

    def _floor_of_ece(self) -> NoiseFloor | None:
        from uq_tracking.inference.noise import noise_floors
        from uq_tracking.metrics.classification import ece

        value = ece(self.statistics, self.settings)
        return noise_floors(self.statistics, self.task, self.settings, {"ece": value}).get("ece")

    def ranking(self, caveats: list[str]) -> tuple[Ranking, float | None]:
        """Whether uncertainty sorts errors, and the share of the oracle's gain."""
        try:
            model, oracle, mean = self._curves()
        except Undefined:
            return "not enough data", None
        gain, best = (float(np.trapezoid(1 - curve, FRACTIONS)) for curve in (model, oracle))
        recovered = gain / best if best > 1e-12 else None
        if abs(gain) < 1e-9:
            return "no better than constant", recovered
        if read.group_count(self.statistics) is None and self.statistics.n < FEWEST_RANKED:
            caveats.append(f"The ranking is not tested: that needs {FEWEST_RANKED} independent samples.")
            return "not enough data", recovered
        if few := self._few_errors():
            caveats.append(f"The ranking is not tested: {few}.")
            return "not enough data", recovered
        try:
            influence = gain_influence(self.statistics, self.task, model, mean)
        except Undefined as reason:
            caveats.append(f"The ranking is not tested: {reason}.")
            return "not enough data", recovered
        low, high = influence.limits(gain, LEVEL, cautious=True)
        if not low <= high:  # a single sample carries all the error
            return "not enough data", recovered
        return (
            "useful" if low > 0 else "worse than constant" if high < 0 else "no better than constant"
        ), recovered

    def _curves(self) -> tuple[FloatArray, FloatArray, float]:
        """Sparsification curves of model and oracle, and the mean error."""
        if self.task == "classification":
            curve = sparsification_brier(self.statistics)
            mean = self.statistics.orders["brier"].sum("brier") / self.statistics.n
        else:
            curve = sparsification(self.statistics, "sq_error")
            mean = self.statistics.orders["abs_error"].sum("sq_error") / self.statistics.n
        return curve.model, curve.oracle, mean

    def bias(self) -> Estimate | None:
        """Mean error, or mean confidence minus accuracy."""
        find = scale.mean_bias if self.task == "regression" else scale.confidence_gap
        try:
            found = find(self.statistics, LEVEL)
        except Undefined:
            return None
        return Estimate(found.value, found.low, found.high, LEVEL)
