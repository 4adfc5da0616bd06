r"""The verdict: what a report says about its model, every word the outcome of a test.

Where a few samples or groups dominate the errors of a scale, too small a scale is no evidence: large errors are
missing from most samples of such data. Then only overconfidence can be concluded from the scale.

`Tests` holds what all tasks have in common; `regression` and `classification` hold their own tests. Tests find,
`words` puts what they found into sentences.

The ranking of a classification is tested by the area under the ROC curve of its errors, as a correlation with ranks.
That of a regression is tested by Spearman's correlation, and by the area under the random gain.
The area is :math:`A = \int 1 - \sqrt{M_f / M_1}\,df`, where :math:`M_f` is the mean squared error of the samples
remaining after the share f of the most uncertain is removed; a random order, and a constant, score 0. Each group
contributes

.. math:: u_i = -\int \tfrac12 \sqrt{M_f / M_1} \left[\frac{\sum_{j \in i, f} (b_j - M_f)}{K_f M_f}
          - \frac{\sum_{j \in i} (b_j - M_1)}{N M_1}\right] df

for squared errors b and :math:`K_f` remaining samples, with the thresholds held fixed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy import special

from uq_tracking.formatting import encodable
from uq_tracking.inference import words
from uq_tracking.inference.classes import OffClass
from uq_tracking.inference.doctor import Cure, Suspicion
from uq_tracking.inference.events import Event
from uq_tracking.inference.limits import DOMINATED, FEWEST_CARRYING, Estimated, Influence, p_of_gamma, too_few
from uq_tracking.inference.noise import TRUSTED_GROUPS
from uq_tracking.inference.places import Grade, Places
from uq_tracking.inference.samples import Dependence
from uq_tracking.metrics import groups
from uq_tracking.metrics.gaps import Reduction
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.metrics.ranking import FRACTIONS, Sparsification, remaining_counts
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import Block, FloatArray, IntArray
from uq_tracking.statistics.regression import joint_counts, rank_correlation
from uq_tracking.typed import plain, record

Calibration = Literal[
    "overconfident",
    "overconfident in few samples",
    "overconfident in the tails",
    "overconfident, most in the tails",
    "too wide for most, too narrow for a few",
    "underconfident",
    "too high",
    "too low",
    "miscalibrated in classes",
    "miscalibrated in places",
    "miscalibrated in shape",
    "biased",
    "consistent with calibrated",
    "calibrated",
    "not enough data",
]
Ranking = Literal["useful", "no better than constant", "worse than constant", "not enough data"]

TEST_LEVEL = 0.975
"""Level of each of the two tests, of scale and of shape."""
LEVEL = 0.95
FEWEST_SAMPLES = 20
"""With fewer independent samples than this, nothing is tested."""
FEWEST_RANKED = 100
"""The same for the test of ranking: with 60 samples it calls 12 % of uninformative stds useful or harmful."""

TRAPEZOID = Reduction("absolute", over="area").weights(FRACTIONS, FRACTIONS, len(FRACTIONS))
"""Weights of the fractions in an area."""
FIFTH = 0.2
"""Share of the samples, the most uncertain ones, of which a sentence says what leaving them out gains."""


class Ranked(NamedTuple):
    """How well the uncertainty ranks errors: the word, and the share of the oracle's gain that it achieves."""

    word: Ranking
    recovered: float | None = None
    score: str = ""
    """What the sparsification curve shows."""
    left: tuple[float, float] = (1.0, 1.0)
    """That of all but the most uncertain fifth over that of all samples, for the uncertainty and for the oracle."""


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Verdict:
    """What the data say of a model's uncertainties.

    Attributes
    ----------
    calibration : str
        "overconfident", "overconfident in few samples", "overconfident in the tails", "overconfident, most in the
        tails", "too wide for most, too narrow for a few", "underconfident", "miscalibrated in places", "miscalibrated
        in shape", "biased"; of two classes also "too high" or "too low", if the event is stated too often or too
        rarely, and of more "miscalibrated in classes"; "consistent with calibrated" (no error found), "calibrated"
        (proven within 2 %; of two classes within 5 % of the rate and of the slope, of more also of each class's
        rate), or "not enough data".
    scale : Estimate or None
        Factor by which standard deviations (for a classification: error probabilities) should be multiplied, with a
        98 % interval (97.5 %); above 1 is overconfident. None for two classes; see ``event``.
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
    grade : {"fine", "unclear", "slight", "off"}
        How much the errors found matter; "fine" is proven.
    suspicions : tuple of Suspicion
        Likely mistakes in the input.
    places : Places or None
        Scale and bias in fifths of the standard deviation and of the prediction; None if not tested.
    worth : float or None
        Number of independent samples that samples which are alike are worth; None if they are not.
    distant : float or None
        The most that they can be worth to a comparison, where samples far apart in their order are alike: rows of one
        date at many stations, or copies of a row; None elsewhere.
    sorts_only : bool
        Whether the uncertainty sorts errors, but intervals scaled by it are no shorter than constant ones, or hardly
        differ.
    event : Event or None
        Of two classes, how often the event is stated and occurs, and the calibration slope.
    off_class : OffClass or None
        Of more than two classes, the one whose probability is wrong by most.
    cure : str or None
        Recalibration that mends what is wrong, or most of it, in a cross-fit.
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
    grade: Grade = "unclear"
    suspicions: tuple[Suspicion, ...] = ()
    places: Places | None = None
    worth: float | None = None
    distant: float | None = None
    sorts_only: bool = False
    event: Event | None = None
    off_class: OffClass | None = None
    cure: str | None = None

    def __str__(self) -> str:
        return encodable(self.text)

    @property
    def short(self) -> str:
        """The verdict in a few words, for a column of a table."""
        said: str = self.calibration
        if self.event is not None:
            said = words.short_event(said, self.event)
        elif self.off_class is not None and said == "miscalibrated in classes":
            said = f"class {self.off_class.name} off"
        factor = None if self.scale is None else self.scale.value
        return words.short(said, factor, self.ranking, self.recovered)

    @property
    def knows_little(self) -> bool:
        """Whether the uncertainty ranks errors, but recovers little of an oracle's gain."""
        return self.ranking == "useful" and words.is_little(self.recovered)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {item.name: plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Verdict:
        """Inverse of ``to_dict``; unknown names (from a newer version) are ignored."""
        return record(cls, {item.name: values[item.name] for item in fields(cls) if item.name in values})


@dataclass(frozen=True)
class Tests(ABC):
    """The tests behind a verdict; a subclass holds those of its task.

    Parameters
    ----------
    statistics : Statistics
    settings : Settings
    """

    statistics: Any
    settings: Settings
    samples: Any = None
    """The samples in the order given, if they are in memory."""
    dependence: Dependence | None = None
    """Which samples belong together, where nobody said so."""
    caveats: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences that end the text."""
    among: int = 1
    """Number of reports that are judged together: each test has its share of the level."""
    names: Sequence[str] | None = None
    """Names of the classes."""
    shows: ClassVar[str]
    """What the sparsification curve shows."""

    @abstractmethod
    def scale(self) -> Estimated:
        """Factor on stated uncertainties, with limits; Undefined says why it cannot be tested."""

    @abstractmethod
    def bias(self) -> Estimated:
        """Mean of prediction minus truth, with limits at `LEVEL`."""

    @property
    def bias_level(self) -> float:
        """Level of the limits of the bias."""
        return LEVEL

    @abstractmethod
    def ranking(self) -> tuple[Sparsification, Callable[[float, float], int]]:
        """Return sparsification curves, and a test of ranking: better than chance (1), worse (-1), or not shown (0).

        The test takes the area under the random gain, and a level.
        """

    def at(self, level: float) -> float:
        """Return the level of one of the reports that are judged together."""
        return 1 - (1 - level) / self.among

    def too_little(self) -> str | None:
        """Say why nothing can be tested, or None."""
        tables = self.statistics.groups
        if tables is not None:
            return too_few(tables, "a test")
        n = int(self.statistics.n_effective)
        if n < FEWEST_SAMPLES:
            if weighted := words.of_weights(self.statistics):
                return f"a test needs {FEWEST_SAMPLES} samples.{weighted}".removesuffix(".")
            return f"{n} {'sample is' if n == 1 else 'samples are'} too few; a test needs {FEWEST_SAMPLES}"
        return None

    def too_few_errors(self) -> str | None:
        """Say why there are too few errors to test shape and ranking, or None."""
        return None

    @abstractmethod
    def verdict(self) -> Verdict:
        """Test everything."""

    def conclude(
        self,
        calibration: Calibration,
        said: str,
        ranked: Ranked,
        rest: Sequence[str],
        *,
        suspicions: tuple[Suspicion, ...] = (),
        cure: Cure | None = None,
        **found: Any,
    ) -> Verdict:
        """Make the verdict of what was found: ``said`` of the calibration, and the ``rest`` of the sentences."""
        alike = self.dependence if self.dependence is not None and self.dependence.alike else None
        n, total = int(self.statistics.counts["n"]), None if self.samples is None else self.samples.total
        mistakes = suspicions and words.of_mistakes(suspicions, calibration, said)
        if calibration == words.UNTOLD:
            rest = [words.UNRANKED if each == words.NO_SIGN else each for each in rest]
        parts = [said, "" if cure is None else words.of_cure(cure), *rest]
        parts += ["" if alike is None or 2 * alike.worth > n else words.of_dependence(alike, n, total)]
        if self.samples is None and self.statistics.groups is None and calibration not in words.NO_CLAIM:
            parts.append(words.IF_INDEPENDENT)
        return Verdict(
            calibration=calibration,
            ranking=ranked.word,
            recovered=ranked.recovered,
            enough_data=calibration != "not enough data",
            text=mistakes or " ".join(part for part in parts if part),
            caveats=(
                *(str(each) for each in suspicions if not each.is_mistake),
                *self.caveats,
                *self._of_units(total),
            ),
            suspicions=suspicions,
            worth=None if alike is None else alike.worth,
            cure=None if cure is None else cure.method,
            **found,
        )

    def _of_units(self, total: int | None) -> list[str]:
        if self.samples is not None and self.samples.independent:
            weighted = words.of_weights(self.statistics)
            return [f"Samples were taken for independent, as groups=False says.{weighted}"]
        if self.dependence is not None:
            return words.of_units(self.dependence, self.statistics, total)
        n_groups = groups.count(self.statistics)
        if n_groups is None:
            return [
                "Samples are assumed to be independent; if they are not (pixels, time steps), score them with groups."
                + words.of_weights(self.statistics)
            ]
        if few := self.too_few_errors():
            return [f"Shape is not tested: {few}."]
        if n_groups < TRUSTED_GROUPS:
            return [f"With {n_groups} groups, this is only a rough guide; {TRUSTED_GROUPS} make it reliable."]
        return []

    def _where(self, few: IntArray, count: FloatArray) -> str:
        """Say where few groups are: in the order of the samples, or by their labels."""
        kind, of = "groups" if self.dependence is None else self.dependence.kind, len(count)
        ends = np.cumsum(count) / count.sum()
        if kind == "blocks" or (self.samples is not None and self.samples.ordered):
            if few[-1] - few[0] < len(few):
                low, high = ends[few[0]] - count[few[0]] / count.sum(), ends[few[-1]]
                return words.between(100 * low, 100 * high)
            kind = "blocks"
        share = f"({words.percent(float(count[few].sum() / count.sum()))} of the samples)"
        if kind == "cases" and len(self.samples.shape) == 1 and len(few) <= words.MOST_NAMED:
            return f"where row % {of} is {' or '.join(map(str, few.tolist()))} {share}"
        if kind == "cases" and self.samples.shape[0] == of:
            which = f"ind{'ex' if len(few) == 1 else 'ices'} {', '.join(map(str, few.tolist()))}"
            return f"at {which} of the first axis {share}"
        if kind == "groups" and len(few) == 1:
            return f"in group '{self.statistics.groups.labels[few[0]]}' {share}"
        return f"in {len(few)} of {of} {kind} {share}"

    def _scale(self, level: float = TEST_LEVEL) -> tuple[Estimate | None, bool, str]:
        """Scale, whether a few units dominate it, and why there is none."""
        try:
            found = self.scale()
        except Undefined as reason:
            return None, False, str(reason)
        dominated = found.dominance > DOMINATED
        if dominated:
            units = "samples" if groups.count(self.statistics) is None else "groups"
            self.caveats.append(
                f"A few {units} dominate the errors (heavy tails): limits may be too narrow, and rare "
                "large errors may be missing from these data."
            )
        return Estimate(found.value, found.low, found.high, level), dominated, ""

    def _ranking(self) -> Ranked:
        """Test whether uncertainty sorts errors, and find what that gains."""
        try:
            curve, sign_of_gain = self.ranking()
        except Undefined:
            return Ranked("not enough data")
        gain, best = (float(np.trapezoid(1 - each, FRACTIONS)) for each in (curve.model, curve.oracle))
        recovered = gain / best if best > 1e-12 else None
        fifth = int(np.searchsorted(FRACTIONS, FIFTH))
        left = float(curve.model[fifth]), float(curve.oracle[fifth])
        found = Ranked("no better than constant", recovered, self.shows, left)
        if abs(gain) < 1e-9:
            return found
        try:
            if groups.count(self.statistics) is None and self.statistics.n < FEWEST_RANKED:
                raise Undefined(f"at least {FEWEST_RANKED} independent samples are needed")
            if few := self.too_few_errors():
                raise Undefined(few)
            sign = sign_of_gain(gain, self.at(LEVEL))
        except Undefined as reason:
            self.caveats.append(f"The ranking is not tested: {reason}.")
            return found._replace(word="not enough data")
        ranking: tuple[Ranking, ...] = ("no better than constant", "useful", "worse than constant")
        return found._replace(word=ranking[sign])

    def _bias(self) -> Estimate | None:
        try:
            found = self.bias()
        except Undefined:
            return None
        return Estimate(found.value, found.low, found.high, self.bias_level)


def no_verdict(reason: str) -> Verdict:
    """Say that no test is possible, and why."""
    text = f"Not enough data to tell: {reason}."
    return Verdict("not enough data", None, None, "not enough data", None, None, False, text)


def sign_of(t: float, p: float, level: float) -> int:
    """Return the sign of a test statistic, or 0 if its p-value does not reject at this level."""
    return int(np.sign(t)) if p < 1 - level else 0


def correlation_sign(correlation: float, n: float, level: float) -> int:
    """Return the sign of a correlation of n samples, or 0 if it may be chance."""
    t = correlation * math.sqrt((n - 2) / max(1 - correlation**2, 1e-12))
    return sign_of(t, 2 * special.stdtr(n - 2, -abs(t)), level)


def rank_sign(statistics: Any, by: str, payload: str, level: float) -> int:
    """Test whether a payload between 0 and 1 grows along an order (1), falls (-1), or neither is shown (0).

    A payload of 0 or 1 has the largest variance that its mean allows, which is taken for that of any.
    """
    order, n = statistics.orders[by], statistics.n
    mean = order.sum(payload) / n

    def moments(block: Block) -> FloatArray:
        rank = (block.ends - block.count / 2) / n - 0.5
        return np.asarray([block.sums[payload] @ rank / n, block.count @ rank**2 / n])

    if groups.count(statistics) is None:
        covariance, variance = np.sum(order.map_blocks(moments, (payload,), "merged"), axis=0)
        correlation = covariance / math.sqrt(max(mean * (1 - mean) * variance, 1e-12))
        return correlation_sign(correlation, statistics.n_effective, level)
    table = statistics.groups.orders[by]
    count, own = (table.sums[name].toarray() for name in ("count", payload))
    share, excess = count.sum(axis=0) / count.sum(), own - mean * count
    of_all = excess.sum(axis=0)
    above = of_all / 2 - np.cumsum(of_all)  # of the samples whose rank grows with each sample
    parts = excess @ (np.cumsum(share) - share / 2 - 0.5) + count @ above / count.sum()
    return sign_of(*Influence.of(parts, None, groups.freedom(statistics)).tested(parts.sum() / 2), level)


def gain_sign(statistics: Any, model: FloatArray, gain: float, level: float) -> int:
    """Test whether larger stds go with larger errors (1), with smaller ones (-1), or neither is shown (0).

    Groups are tested by their contributions to the area under the random gain.

    Parameters
    ----------
    statistics : statistics of the task
    model : array, shape (100,)
        The model's sparsification curve.
    gain : float
        That area.
    level : float

    Raises
    ------
    Undefined
        Too few groups hold most of the errors.
    """
    if groups.count(statistics) is None:
        return sign_without_largest(statistics, (1 + level) / 2)
    mean_error = statistics.orders["abs_error"].sum("sq_error") / statistics.n
    mean, step = mean_error * np.square(model), TRAPEZOID * model / 2
    kept = groups.positions(statistics, remaining_counts)
    table = statistics.groups.orders["std"]
    count, error = (groups.sums_below(table, name, kept) for name in ("count", "sq_error"))
    worth = size_freedom(error[:, 0]) + 1
    if worth < FEWEST_CARRYING:
        raise Undefined(
            f"few groups hold most of the errors, worth {worth:.1f} equal ones; at least {FEWEST_CARRYING} are needed"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(mean > 0, (error - count * mean) / (kept * mean), 0.0)
    influence = Influence.of((part[:, :1] - part) @ step, None, groups.freedom(statistics))
    return sign_of(*influence.tested(gain), level)


def sign_without_largest(statistics: Any, level: float) -> int:
    """Test at a level of each of two tests whether larger stds go with larger errors: 1, -1 or 0.

    The one sample in a thousand with the largest error, at least one, is left out, so that it decides nothing. Two
    tests look at the others: Spearman's correlation, which decides if it speaks, and the area under the random gain,
    which of squares instead of roots is a correlation of squared errors with the weights of their places, and has the
    law of a random permutation.
    """
    joint, order = joint_counts(statistics), statistics.orders["std"]
    std_low, std_high, *ends = joint.edges()
    square = np.square((ends[0] + ends[1]) / 2)
    largest = np.argsort(-square, kind="stable")
    count = joint.count.astype(float)
    before = np.cumsum(count[largest]) - count[largest]
    dropped = np.zeros(len(count))
    dropped[largest] = np.clip(max(1.0, count.sum() // 1000) - before, 0, count[largest])
    rank = (order.position(std_low) + order.position(std_high)) / order.total - 1
    correlation = (rank_correlation(statistics) or 0.0) * count.sum() - 3 * float(dropped @ rank)
    left = count > dropped
    count, square = (count - dropped)[left], square[left]
    n, total = float(statistics.n_effective), float(count.sum())
    if sign := correlation_sign(correlation / total, n, level):
        return sign
    kept = remaining_counts(total)
    stds, place = np.unique(std_low[left], return_inverse=True)
    high = np.cumsum(np.bincount(place, count, len(stds))).astype(float)
    low = np.concatenate([[0.0], high[:-1]])
    weight, weight_skew = _standardized(_remaining(low, high, kept, -TRAPEZOID / kept)[place], count)
    error, error_skew = _standardized(square, count)
    t = math.sqrt(n - 1) * float(count @ (weight * error)) / total
    skew = weight_skew * error_skew * math.sqrt(n - 1) / (n - 2)
    return sign_of(t, float(p_of_gamma(np.asarray([t]), np.asarray([skew]))[0]), level)


def _standardized(values: FloatArray, count: FloatArray) -> tuple[FloatArray, float]:
    """Return values with mean 0 and variance 1, and their skewness; zeros where all are equal."""
    centred = values - count @ values / count.sum()
    variance = float(count @ np.square(centred)) / count.sum()
    made = centred / math.sqrt(variance) if variance > 0 else np.zeros(len(values))
    return made, float(count @ made**3) / count.sum()


def _remaining(low: FloatArray, high: FloatArray, kept: FloatArray, weight: FloatArray) -> FloatArray:
    """Sum over the fractions of weight times the remaining share of the samples between two positions."""
    knots, first = np.unique(np.concatenate([[0.0], kept]), return_inverse=True)
    drop = np.zeros(len(knots))
    np.add.at(drop, first[1:], weight)  # a weight counts for positions below its number of samples
    height = weight.sum() - np.cumsum(drop)[:-1] + drop[0]
    area = np.concatenate([[0.0], np.cumsum(np.diff(knots) * height)])
    return np.asarray((np.interp(high, knots, area) - np.interp(low, knots, area)) / (high - low))
