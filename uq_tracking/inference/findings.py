"""What the tests of a regression found, how much it matters, and which word of the verdict it makes.

===================  ==================================================================================
scale                98 % interval of the factor; what kind of error it is, by the shares of targets inside
                     central intervals
places               trends and fifths along the standard deviation and the prediction, 2 % together
shape                Kolmogorov-Smirnov on F(y) at 1 %, or of a few quantiles the share below each, 1 % together; not
                     said where scale and bias explain it
vectors              shares of whole vectors inside five ellipsoids, 1 % together
ranking              Spearman's correlation, and the area under the random gain, at 97.5 % each, without the
                     samples with the very largest errors
bias                 95 % interval of the mean error, or of the share of targets below the median
===================  ==================================================================================

So at most 5 % of calibrated models (6 % with a covariance) are called anything else, as are 5 % of rankings and of
biases. Every statement has a grade: *fine* (proven to matter less than the limits below), *unclear*, *slight* or
*off*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from uq_tracking.inference.places import (
    LEVEL,
    NEGLIGIBLE_FACTOR,
    NEGLIGIBLE_SHAPE,
    SLIGHT_FACTOR,
    Grade,
    Places,
    grade,
    grade_of_factor,
    worst_of,
)
from uq_tracking.inference.verdict import Calibration, Estimate

SHAPE_LEVEL = 0.99
ONE = 0.6827
"""Share of normal errors within one standard deviation."""
NEGLIGIBLE_BIAS, SLIGHT_BIAS = 0.03, 0.07
SLIGHT_SHAPE = 0.02
"""Largest gap between shares below quantiles and their levels from which it is more than slight."""
PER_LOG = 0.24
"""Largest gap of a normal F(y) per log of a small factor on the stds."""
UNKNOWN = 1.5
"""A factor that data must exclude, or they are too few to tell: at 1.5, 95 % intervals contain 81 %."""
WHOLE = ("overconfident", "underconfident")
OF_TAILS = (
    "overconfident in the tails",
    "overconfident, most in the tails",
    "too wide for most, too narrow for a few",
)
"""Kinds of scale errors that standard deviations which are wrong in places look like."""
ONE_SIDED = 0.9
"""Share of the large errors on one side from which on they are those of a skewed distribution."""
MOST_GROSS, GROSS = 0.6, 2.0
"""Largest share of errors that are gross while all others fit, and how many times the stated size all of them are."""
OF_TAIL = 0.25
"""Share of a tail by which its quantile may be off without mattering."""
TOLERATED = 0.02
"""A share of outliers lowers the shares inside the inner intervals by itself."""
CERTAIN = 1.432
"""Half-width of a 99.5 % interval, in those of a 95 % one."""


@dataclass(frozen=True)
class Share:
    """Share of the targets inside a central interval, or below a quantile, with its limits, and what it should be."""

    level: float
    value: float
    low: float
    high: float

    @property
    def is_off(self) -> bool:
        """Whether its limits exclude the level."""
        return not self.low <= self.level <= self.high

    @property
    def is_high(self) -> bool:
        """Whether it is above the level."""
        return self.value > self.level

    @property
    def severity(self) -> float:
        """Distance from the level, in the largest one that does not matter: less in the tails."""
        return abs(self.value - self.level) / min(NEGLIGIBLE_SHAPE, OF_TAIL * min(self.level, 1 - self.level))


@dataclass(frozen=True)
class Tail:
    """Errors beyond three standard deviations.

    Attributes
    ----------
    share, up : float
        Share of all errors, and of all those where the truth is above the prediction.
    carried : float
        Share of the squared errors that they carry.
    rest : float
        Size of all others.
    """

    share: float
    up: float
    carried: float
    rest: float


@dataclass(frozen=True)
class Shape:
    """Distance of F(y) from uniform: largest gap, p-value, and an upper limit of the true gap if there is one.

    Attributes
    ----------
    own : bool
        Whether some of the gap remains once scale and bias are taken away.
    level, below : float
        Level of the quantile that is wrong by most, in steps of 1 %, and the share of the targets below it.
    """

    gap: float
    p: float
    high: float | None
    own: bool
    level: float
    below: float
    above: float | None = None
    """Share of the targets above the quantile that is as far from the other end; None if not known."""
    is_light: bool = False
    """Whether fewer targets than stated lie in one tail."""


@dataclass(frozen=True)
class Findings:
    """What the tests found, before it is put into words.

    Attributes
    ----------
    scale : Estimate or None
        Factor by which standard deviations should be multiplied; None with ``untested`` saying why.
    dominated : bool
        Whether a few samples carry most of its spread: then too small a scale is no evidence.
    shares : tuple of Share
        Empty where there are no standardized errors.
    within_scale : Share or None
        Share of the errors within the overall factor times the stated size: 68.27 % of normal ones.
    bulk : float
        Size within which 68.27 % of the errors lie, in stated standard deviations, or the factor that fits F(y) of
        distributions best; NaN without shares.
    left : float
        Gap that this factor leaves, of distributions; else NaN.
    tail : Tail or None
    places : Places or None
        None where predictions have no standard deviation of their own, or samples are gone.
    shape : Shape or None
    bias : Estimate or None
        Mean of prediction minus truth.
    bias_in_std : Estimate or None
        The same, of standardized errors.
    below_median : Share or None
        Share of the targets below the predicted median, of quantiles.
    """

    scale: Estimate | None
    untested: str
    dominated: bool
    shares: tuple[Share, ...]
    within_scale: Share | None
    bulk: float
    tail: Tail | None
    places: Places | None
    shape: Shape | None
    bias: Estimate | None
    bias_in_std: Estimate | None
    shift_in_std: bool
    """Whether shifts by shares of the standard deviations mend more than one by the bias."""
    below_median: Share | None
    left: float = math.nan
    multiple: float | None = None
    """What to multiply distributions of positive numbers by, where that mends more than a shift."""
    single_values: bool = False
    """Whether some distributions are single values, as draws of no rain are, so that no factor widens them."""
    all_shifted: bool = False
    """Whether the other quantiles are off to the same side as the median."""
    median_is_right: bool = False
    """Whether half of the truth may lie below the medians of distributions, so that no shift mends them."""
    of_small_stds: bool = False
    """Whether errors are large only for their standard deviations, not among errors."""
    shape_level: float = SHAPE_LEVEL

    @property
    def in_places(self) -> Places:
        """The places; none where they are not tested."""
        return self.places or Places()

    @property
    def scale_grade(self) -> Grade:
        """How much the scale matters."""
        if self.scale is None:
            return "unclear"
        found = grade_of_factor(self.scale.value, self.scale.low, self.scale.high)
        return "unclear" if self.dominated and self.scale.value < 1 and found != "fine" else found

    @property
    def bias_grade(self) -> Grade:
        """How much the bias matters; unclear where it is not found."""
        found = self._size_of_bias
        return found if found == "fine" or self.is_biased() or self.certain_bias() else "unclear"

    @property
    def _size_of_bias(self) -> Grade:
        if self.bias_in_std is None:
            return "unclear"
        found = self.bias_in_std
        return grade(found.value, found.low, found.high, NEGLIGIBLE_BIAS, SLIGHT_BIAS)

    @property
    def shape_grade(self) -> Grade:
        """How much the shape matters, where scale and bias do not explain it."""
        shape = self.shape
        if shape is None:
            return "unclear"
        if shape.high is not None and shape.high <= NEGLIGIBLE_SHAPE:
            return "fine"
        said = ("slight", "off")
        factor = 1.0 if self.scale is None or self.scale_grade not in said else self.scale.value
        bias = 0.0 if self.bias_in_std is None or self._size_of_bias not in said else self.bias_in_std.value
        rest = shape.gap - PER_LOG * abs(math.log(max(factor, 1e-300)))
        rest = (rest if math.isnan(self.left) else self.left) - 0.4 * abs(bias)
        if shape.p >= 1 - self.shape_level or min(shape.gap, rest) < NEGLIGIBLE_SHAPE or not shape.own:
            return "unclear"
        return "slight" if shape.gap < SLIGHT_SHAPE else "off"

    def is_clean(self) -> bool:
        """Whether no test found anything, be it too small to matter."""
        right = self.scale is None or self.scale.low <= 1 <= self.scale.high
        fits = self.shape is None or self.shape.p >= 1 - self.shape_level
        return right and fits and all(each.p >= LEVEL for each in self.in_places.patterns)

    def is_biased(self) -> bool:
        """Whether predictions are one-sided by more than chance, in the target's unit."""
        if self.bias is None or self.median_is_right:
            return False
        return not self.bias.low <= 0 <= self.bias.high

    def certain_bias(self) -> bool:
        """Whether a bias that matters is beyond doubt, so that it is a word of its own."""
        found = self.bias_in_std
        if found is None or self.median_is_right or self._size_of_bias not in ("slight", "off"):
            return False
        half = (found.high - found.low) / 2 * CERTAIN
        return abs(found.value) > half

    def is_skewed(self) -> bool:
        """Whether errors are large on one side, and rarely so on the other."""
        tail = self.tail
        if tail is None or self.shape is None or self.is_gross():
            return False
        return self.shape.is_light and max(tail.up, tail.share - tail.up) > ONE_SIDED * tail.share

    def is_gross(self) -> bool:
        """Whether some errors are far too large, while all others fit: then no correction of all is right."""
        tail, shares = self.tail, [each for each in self.shares if each.level <= 0.9]
        if self.scale is None or tail is None or self.of_small_stds:
            return False
        are_large = self.scale.value >= GROSS and TOLERATED < tail.share < MOST_GROSS
        return are_large and all(
            abs(each.value / (1 - tail.share) - each.level) < 3 * TOLERATED for each in shares
        )

    def kind(self) -> Calibration:
        """Return the word for what is wrong, the most general first."""
        kind = self.kind_of_scale()
        places = self.in_places.found()
        along = [self.in_places.parts.get(each.on, ()) for each in places if each.quantity == "scale"]
        of_places, of_shape = kind in OF_TAILS and bool(along), False
        if of_places and all(part.factor_low > 1 for parts in along for part in parts) and all(along):
            kind, of_places = "overconfident", False  # everywhere, though not by the same factor
        if self.shape is not None and self.scale is not None and self.shape_grade == "off" and kind in WHOLE:
            explained = PER_LOG * abs(math.log(max(self.scale.value, 1e-300)))
            left = self.shape.gap - explained if math.isnan(self.left) else self.left
            of_shape = 2 * left > self.shape.gap or self.differs_in_tails()  # no factor helps much
        if kind is not None and not (of_places or of_shape or self.has_opposite_places()):
            return kind
        if places:
            return "miscalibrated in places"
        if self.shape_grade in ("slight", "off"):
            return "miscalibrated in shape"
        if self.certain_bias():
            return "biased"
        if self.scale is None:
            return "not enough data" if self.shape is None else "consistent with calibrated"
        if self.is_fine():
            return "calibrated"
        if max(self.scale.high, 1 / max(self.scale.low, 1e-9)) > UNKNOWN:
            return "not enough data"
        return "consistent with calibrated"

    def is_fine(self) -> bool:
        """Whether everything is proven to matter little."""
        of_places = {each.grade for each in self.in_places.patterns}
        return of_places == {self.scale_grade} == {self.shape_grade} == {self.bias_grade} == {"fine"}

    def grade(self) -> Grade:
        """Return the worst of the grades of what is tested."""
        found = {self.scale_grade, self.shape_grade, self.bias_grade}
        found |= {"unclear"} if self.places is None else {each.grade for each in self.places.found()}
        return worst_of(found)

    def grade_of_places(self, misses: str | None, *, aside: bool) -> Grade | None:
        """Return how much intervals are wrong in places; None if they are not, or everywhere as they are overall.

        A bias that is not the cause is set ``aside``.
        """
        found = [each for each in self.in_places.found() if not (aside and each.quantity == "bias")]
        sides = [
            part.factor_low > 1 if misses == "overconfident" else part.factor_high < 1
            for each in found
            for part in self.in_places.parts.get(each.on, self.in_places.strata)
        ]
        is_everywhere = misses and all(sides) and all(each.quantity == "scale" for each in found)
        if not found or is_everywhere:
            return None
        return worst_of([each.grade for each in found])

    def is_biased_in_places(self) -> bool:
        """Whether predictions are biased in places, which are corrected before all."""
        return any(each.quantity == "bias" for each in self.in_places.found())

    def bias_of_one_label(self) -> bool:
        """Whether a single label is biased, which makes the mean of all so."""
        found = self.in_places.found()
        return any((each.quantity, each.on, len(each.named)) == ("bias", "label", 1) for each in found)

    def has_opposite_places(self) -> bool:
        """Whether some place is off to the other side than the overall scale, and by more."""
        if self.scale is None:
            return False
        overall = math.log(max(self.scale.value, 1e-300))
        named = [
            self.in_places.parts.get(each.on, self.in_places.strata)[place]
            for each in self.in_places.found()
            for place in each.named
            if each.quantity == "scale"
        ]
        certain = [part.factor for part in named if part.is_off("scale")]
        opposite = any(overall * math.log(max(each, 1e-300)) < -(overall**2) for each in certain)
        spreads = [each.spread for each in self.in_places.found() if each.quantity == "scale"]
        return opposite or any(spread > abs(overall) for spread in spreads)

    def is_explained_by_bias(self) -> bool:
        """Whether errors are too large only because predictions are one-sided."""
        size = self.in_places.size
        if self.scale is None or self.scale.low <= 1 or size is None:
            return False
        return (self.is_biased_in_places() or self.certain_bias()) and size[1] <= 1

    def is_beyond_bias(self) -> bool:
        """Whether the size of errors is wrong by more than their bias explains."""
        if self.scale is None:
            return False
        bias = 0.0 if self.bias_in_std is None else self.bias_in_std.value
        left = (math.sqrt(max(each * each - bias * bias, 0.0)) for each in (self.scale.low, self.scale.high))
        low, high = left if self.in_places.size is None else self.in_places.size[1:]
        return low > 1 or high < 1

    def is_explained_by_places(self) -> bool:
        """Whether the size is right but for the labels that are named, or for one stretch of the order."""
        strata, named, shift = self.in_places.strata, set[int](), set[int]()
        for each in self.in_places.found():
            if each.on == "label":
                (named if each.quantity == "scale" else shift).update(each.named)
                shift.update(range(len(strata)) if each.spread and each.quantity == "bias" else ())
        of = {strata[place].of for place in sorted(named | shift)[:1]}
        rest = [place for place, part in enumerate(strata) if place not in named and part.of in of]
        share = sum(strata[place].share for place in rest)
        square = sum(
            strata[place].share * (strata[place].factor ** 2 - strata[place].bias ** 2 * (place in shift))
            for place in rest
        )
        for each in self.in_places.found():
            if self.scale is not None and (each.on, each.quantity, each.slope) == ("order", "scale", 0):
                part = self.in_places.parts["order"][each.named[0]]
                share, square = 1 - part.share, self.scale.value**2 - part.share * part.factor**2
        return square > 0 and abs(math.log(square / share)) < 2 * SLIGHT_FACTOR

    def differs_in_tails(self) -> bool:
        """Whether a factor fits most of F(y) of distributions, but clearly another than the scale."""
        if self.scale is None or not self.left <= 2 * SLIGHT_SHAPE:
            return False
        is_within = self.scale.low <= self.bulk <= self.scale.high
        log = math.log(max(self.scale.value, 1e-300))
        return not is_within and abs(math.log(self.bulk) - log) > max(abs(log) / 3, NEGLIGIBLE_FACTOR)

    def kind_of_scale(self) -> Calibration | None:
        """Return what kind of scale error there is, or None.

        The tests of scale and shape decide whether anything is said; the shares of targets inside central intervals
        only sort what they reject.
        """
        scale, within = self.scale, self.within_scale
        if scale is None or self.is_explained_by_bias() or self.is_explained_by_places():
            return None
        shares = {share.level: share for share in self.shares}
        matters = self.scale_grade in ("slight", "off")
        if self.is_gross():
            return "overconfident in the tails"
        if scale.low > 1 and matters:
            if not shares or not (self.differs_in_tails() if within is None else within.low > ONE):
                return "overconfident"
            log, of_bulk = math.log(scale.value), math.log(max(self.bulk, 1e-9))
            if of_bulk <= log / 3 and not self.is_skewed():
                if self.bulk < 0.95 and shares[ONE].low > ONE:
                    return "too wide for most, too narrow for a few"
                if all(shares[level].high >= level - TOLERATED for level in (0.5, ONE)):
                    return "overconfident in the tails"
            return "overconfident, most in the tails" if of_bulk <= 2 * log / 3 else "overconfident"
        if scale.high < 1 and not self.dominated and matters:
            return "underconfident"
        of_size = grade_of_factor(scale.value, scale.low, scale.high)
        if not shares or not {of_size, self.shape_grade} & {"slight", "off"}:
            return None
        inner = [share for level, share in shares.items() if level < 0.99]
        outer = [share for level, share in shares.items() if level >= 0.99]
        if scale.value < 1 and all(s.low > s.level for s in inner) and all(s.value >= s.level for s in outer):
            return "underconfident"
        return "overconfident" if all(share.high < share.level for share in self.shares) else None
