"""Where stated standard deviations are the wrong size, and where predictions are one-sided.

Scale and bias are tested against the standard deviation and the prediction, as a trend and in fifths of equal count
(fewer where there are few samples), all together at one level (Bonferroni). The factor of a fifth is the root of its
mean squared standardized error, with limits of its own that hold for all fifths together.

A bias that depends on the prediction also changes the size of errors along it. So a difference of scale is claimed
only if it is also found in what remains of the errors after a straight line is fitted to them within each fifth of
the predictions. An offset that all errors share is more standard deviations where these are small; so a difference of
bias must also be found without it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy import special

from uq_tracking.inference.limits import (
    FEWEST_GROUPS,
    Contrasts,
    Influence,
    Ordered,
    contrast_parts,
    contrast_trend,
    means_of,
)
from uq_tracking.inputs.labels import MOST_BLOCKS, Series, without_change
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.parallel import SIDE_BY_SIDE, inner, map_threads
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.sketch import dense

SIZE_LEVEL = 0.98
ONE_SIDED = 0.03
"""Mean of z beyond which errors may be too large only because predictions are one-sided."""
LEVEL = 0.02
"""Share of calibrated models of which any of these tests claims something."""
LEVEL_OF_CELLS = 0.005
"""The same of the tests of halves of std and prediction, where nothing else is found."""
LEVEL_OF_LABELS = 0.01
"""The same of the tests of labels and of an order, together; then half of the level is left to the others."""
PARTS = 5
DIGITS = 9
"""Digits of the logs of standard deviations: those that differ by less are equal."""
SMALLEST, LARGEST = 1e-300, 1e300
"""Factors and limits beyond these are 0, or unknown; infinite ones have no place in a file."""
FEWEST_IN_ORDER, FOLLOWING, OF_LABEL = 100, 2.5, 0.06
"""Fewest samples of a label whose drift is looked for, correlation of neighbors, in its standard error, from which on
few and long blocks are compared, and least share of these that is named."""
PER_PART = 20
"""Fewest independent samples in a part; with fewer than two parts, nothing is tested."""
FEWEST_GROUPS_OF_PARTS = 20
"""With fewer groups only the trends are tested."""
MOST = 1 << 18
"""Samples looked at along std and prediction; more would narrow limits that are far below what matters."""

Grade = Literal["fine", "unclear", "slight", "off"]
Covariate = Literal["std", "mean", "order", "label", "within"]
Quantity = Literal["scale", "bias"]
Made = Literal["given", "period", "area", "cell"]
NEGLIGIBLE: Mapping[Quantity, float] = {"scale": math.log(1.05), "bias": 0.05}
"""Size, log factor or standard deviations, that does not matter in a part of the samples."""
SLIGHT: Mapping[Quantity, float] = {"scale": math.log(1.10), "bias": 0.10}
"""Size from which an error in a part of the samples is more than slight."""
NEGLIGIBLE_FACTOR, SLIGHT_FACTOR = math.log(1.02), math.log(1.05)
"""The same of the size of all standard deviations."""
NEGLIGIBLE_SHAPE = 0.01
"""Largest gap between shares below quantiles and their levels that does not matter."""
END_TO_END = 1.39
"""Deviation in the outer fifths per unit of slope on standardized ranks."""
IN_SQUARES, AS_SIZES, LARGEST_SQUARE = 0.02, 0.8, 25.0
"""A trend of mean sizes, which also differ where only the shape does, must be found in squares at this level, with
this share of its slope. Squares count up to so many mean ones, else a single one tells."""
LEAST_STD = 1e-6
"""Standard deviations that are smaller, in the largest one, weigh no more than this one when lines are fitted."""
NEARLY_ALL = 0.97
"""Share of the samples from which on those of one value stand for all."""
SAME = 0.75
"""Two parts that share more than this are said once."""
TREND = 0.5
"""Share of a drift's level that its trend takes; the rest is for parts of the order."""
TOGETHER = 0.25
"""Share of the level of labels that is left to what all of them show together."""
MOST_LABELS = 0.5
"""Share of labels that must be wrong for one that is not to be the exception."""
MOST_MEDIANS = 5.0
"""Size of errors, in medians, from which on a part is not told by them."""
OUTER = 0.4
"""Distance of the middle of the outer fifths from that of the whole."""


@dataclass(frozen=True)
class Part:
    """One part of the samples along a covariate.

    Attributes
    ----------
    share : float
        Share of the samples, by weight.
    low, high : float
        Smallest and largest value of the covariate in the part.
    factor, factor_low, factor_high : float
        Root of the mean squared standardized error, with its limits.
    bias, bias_low, bias_high : float
        Mean of truth minus prediction in standard deviations, with its limits.
    inside : float or None
        Of quantiles and intervals, the share of the targets that the widest interval contains.
    """

    share: float
    low: float
    high: float
    factor: float
    factor_low: float
    factor_high: float
    bias: float
    bias_low: float
    bias_high: float
    inside: float | None = field(default=None, kw_only=True)
    above: float | None = field(default=None, kw_only=True)
    """The share that lies above it, where no median is stated."""

    @property
    def factors(self) -> tuple[float, float, float]:
        """The factor with its limits."""
        return self.factor, self.factor_low, self.factor_high

    def is_off(self, quantity: Quantity) -> bool:
        """Check whether the limits of its own factor or bias exclude none."""
        _, low, high = self.size(quantity)
        return not low <= 0 <= high

    def is_of_bias(self) -> bool:
        """Check whether the bias explains errors that are too large."""
        return self.is_off("bias") and 1 < self.factor_low <= math.hypot(1, self.bias)

    def size(self, quantity: Quantity) -> tuple[float, float, float]:
        """Return the log of the factor, or the bias, with limits."""
        if quantity == "bias":
            return self.bias, self.bias_low, self.bias_high
        value, low, high = (math.log(max(each, SMALLEST)) for each in self.factors)
        return value, low, high

    def distance(self, quantity: Quantity) -> float:
        """Return how far it is from calibrated."""
        return abs(self.size(quantity)[0])

    def graded(self, quantity: Quantity) -> Grade:
        """Return how much its factor or bias matters."""
        return grade(*self.size(quantity), NEGLIGIBLE[quantity], SLIGHT[quantity])


@dataclass(frozen=True)
class Stratum(Part):
    """The samples with one label of ``by=``.

    Attributes
    ----------
    name : str
    n : int
        Number of samples.
    p : float
        Smaller p-value of scale and bias, adjusted for all labels.
    word : str
        What was found: "1.80x overconfident", "no difference", "too few".
    of : str
        Name of its set of labels; "" if there is one.
    """

    name: str
    n: int
    p: float
    word: str
    of: str = ""


@dataclass(frozen=True)
class Pattern:
    """How scale or bias depends on a covariate.

    Attributes
    ----------
    quantity : {"scale", "bias"}
    on : {"std", "mean", "order", "label", "within"}
        "within" is the order of the samples of one label.
    p : float
        Smallest p-value, adjusted for all tests; 1 if a difference of scale may be due to bias alone.
    slope : float
        Of the trend, if that is what was found; else 0.
    named : tuple of int
        Parts to name, the worst first.
    grade : {"fine", "unclear", "slight", "off"}
        How much it matters; "fine" is proven.
    spread : float
        Standard deviation of log factors or biases of labels, of which none stands out, but which together differ by
        more than chance; the ones named are the lowest and the highest. Else 0.
    enough : float
        Samples with which chance moves the mean of a label as much as labels differ.
    """

    quantity: Quantity
    on: Covariate
    p: float
    slope: float
    named: tuple[int, ...]
    grade: Grade
    spread: float = 0.0
    enough: float = 0.0
    within: str = ""
    """Name of that label."""
    made: Made = "given"
    """What labels are: given with ``by=``, places in a period, areas of maps, or halves of std and prediction."""

    @property
    def found(self) -> bool:
        """Whether the tests claim it."""
        return self.grade in ("slight", "off")


@dataclass(frozen=True)
class Places:
    """What was found along each covariate: its parts, and the patterns, the most significant first.

    What recurs comes before all others: it explains some of them, and is mended first.
    """

    parts: Mapping[Covariate, tuple[Part, ...]] = field(default_factory=dict)
    patterns: tuple[Pattern, ...] = ()
    size: tuple[float, ...] | None = None
    """Root mean square of z, with its 98 % limits, without the bias within fifths of the prediction, blocks of an
    order or places of a period; None where there is hardly any."""
    strata: tuple[Stratum, ...] = ()
    """The labels of ``by=``."""

    def found(self) -> tuple[Pattern, ...]:
        """Return at most two patterns that matter, the most significant first."""
        return tuple(pattern for pattern in self.patterns if pattern.found)[:2]

    @property
    def enough(self) -> float:
        """Samples that a label needs for a correction of its own, where none stands out; 0 if all have as many."""
        most = max((each.enough for each in self.found()), default=0.0)
        return most * any(part.n < max(most, PER_PART) for part in self.strata)

    def joined(self, other: Places) -> Places:
        """Add what was found along something else."""
        moved = (
            replace(each, named=tuple(place + len(self.strata) for place in each.named))
            if each.on == "label"
            else each
            for each in other.patterns
        )
        patterns = sorted((*self.patterns, *moved), key=lambda pattern: (pattern.made != "period", pattern.p))
        sizes = [places.size for places in (self, other) if places.size is not None]
        size = min(sizes, key=lambda limits: limits[1], default=None)
        return Places({**self.parts, **other.parts}, tuple(patterns), size, (*self.strata, *other.strata))


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of samples, and what else is known of these.

    Attributes
    ----------
    error, std : array, shape (n,)
        Truth minus prediction, and stated standard deviation, above 0.
    mean : array, shape (n,), or None
        Prediction; without it only the dependence on the standard deviation is tested.
    weight : array, shape (n,), or None
    group : array of int, shape (n,), or None
        Number of each sample's group; without it samples are independent.
    inside : array, shape (n, 1) or (n, 2), or None
        Whether the widest interval contains the target; and whether this lies above it, if no median is stated.
    square, variance : array, shape (n,), or None
        Squared errors and variances, if the factors of parts are roots of their ratios.
    plain : array, shape (n,), or None
        Truth minus prediction in standard deviations, if errors are scores of something else: those of a wrong shape
        are one-sided where predictions are right on average.
    """

    error: FloatArray
    std: FloatArray
    mean: Any = None
    weight: FloatArray | None = None
    group: IntArray | None = None
    inside: FloatArray | None = None
    square: FloatArray | None = None
    variance: FloatArray | None = None
    plain: FloatArray | None = None

    def at(self, place: slice | IntArray) -> Errors:
        """Return those at some places."""
        columns: dict[str, Any] = {name: column for name, column in vars(self).items() if column is not None}
        return Errors(**{name: column[place] for name, column in columns.items()})

    def thinned(self) -> Errors:
        """Return some of them, evenly spread, with groups numbered anew."""
        some = self.at(some_of(len(self.error), MOST))
        return some if some.group is None else replace(some, group=dense(some.group)[1])

    @property
    def z(self) -> FloatArray:
        """Errors in standard deviations."""
        return self.error / self.std

    @property
    def units(self) -> dict[str, Any]:
        """Weights and groups, as tests take them."""
        return {"weight": self.weight, "group": self.group}

    def shifted(self) -> FloatArray:
        """Return z without what all errors have in common, which is more stds where these are small."""
        z, unit = (np.average(each / self.std, weights=self.weight) for each in (self.error, 1.0))
        return np.asarray((self.error - z / unit) / self.std)

    def seconds(self) -> list[FloatArray]:
        """Return other z in which a difference of bias must be found too."""
        return [self.shifted()] if self.plain is None else [self.shifted(), self.plain]


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Errors in the order of a covariate."""

    on: Covariate
    covariate: FloatArray
    order: Ordered
    errors: Errors

    def without_lines(self, values: FloatArray, weight: FloatArray | None) -> FloatArray:
        """Return what remains of values after a straight line in the covariate within each part."""
        starts, sizes = self.order.starts, self.order.sizes
        mass = sizes if weight is None else np.add.reduceat(weight, starts)

        def mean(column: FloatArray) -> FloatArray:
            product = column if weight is None else weight * column
            return np.asarray(np.add.reduceat(product, starts) / mass)

        x, y = (column - np.repeat(mean(column), sizes) for column in (self.covariate, values))
        square = mean(np.square(x))
        slope = np.divide(mean(x * y), square, out=np.zeros(len(starts)), where=square > 0)
        return np.asarray(y - np.repeat(slope, sizes) * x)

    def tests(self, quantity: Quantity, score: FloatArray, *, in_parts: bool) -> Contrasts:
        """Test the trend, and then the parts, if they are tested."""
        units: dict[str, Any] = {"ratio": quantity == "scale", **self.errors.units}
        trend = contrast_trend(score, self.order.rank, **units)
        if not in_parts:
            return trend
        return Contrasts.joined([trend, contrast_parts(score, self.order.starts, **units)])

    def is_of_shape(self, of_sizes: Contrasts, level: float) -> bool:
        """Return whether mean sizes have a trend that squares do not have, or hardly."""
        square, slope = np.square(self.errors.z), float(of_sizes.estimate[0])
        most = LARGEST_SQUARE * float(np.average(square, weights=self.errors.weight))
        trend = contrast_trend(np.minimum(square, most), self.order.rank, ratio=True, **self.errors.units)
        expected = 2 * slope / (1 + slope**2 / 2)  # nearly, where the log of sizes follows a line
        found = trend.p[0] < IN_SQUARES and trend.estimate[0] / expected > AS_SIZES
        return bool(of_sizes.p[0] < level and not found)


def some_of(n: int, most: int) -> slice | IntArray:
    """Choose at most ``most`` of n samples: one of each stretch of equal length, at random, but always the same."""
    if n <= most:
        return slice(None)
    ends = np.arange(most + 1) * n // most
    return np.random.default_rng(0).integers(ends[:-1], ends[1:])


def find_places(errors: Errors, level: float = LEVEL) -> Places:
    """Test where scale and bias depend on the standard deviation and on the prediction.

    Parameters
    ----------
    errors : Errors
    level : float
        Share of calibrated models of which anything is claimed.
    """
    errors = errors.thinned() if len(errors.error) > MOST else errors
    weight, group = errors.weight, errors.group
    n = len(errors.error) if weight is None else float(weight.sum() ** 2 / (weight @ weight))
    count = min(PARTS, int(n // PER_PART))
    groups = None if group is None else int(group.max()) + 1
    if count < 2 or (groups is not None and groups < FEWEST_GROUPS):
        return Places()
    covariates: dict[Covariate, FloatArray] = {"std": errors.std}
    covariates |= {} if errors.mean is None else {"mean": errors.mean}

    def ordered_by(on: Covariate) -> _Sorted:
        # rounding makes no widths differ, else its size, that of the ends, would be found
        values = np.asarray(np.log(errors.std).round(DIGITS), np.float64) if on == "std" else covariates[on]
        order = Ordered.by(values, count, weight)
        return _Sorted(on, covariates[on][order.place], order, errors.at(order.place))

    ordered = map_threads(ordered_by, covariates, least=2 if len(errors.error) >= SIDE_BY_SIDE else 3)
    ordered = [each for each in ordered if each.order.sizes.max() < NEARLY_ALL * len(errors.error)]
    in_parts = groups is None or groups >= FEWEST_GROUPS_OF_PARTS
    tested: dict[tuple[Quantity, Covariate], Contrasts] = {}
    for each in ordered:
        z = each.errors.z
        tested["scale", each.on] = each.tests("scale", np.abs(z), in_parts=in_parts)
        tested["bias", each.on] = each.tests("bias", z, in_parts=in_parts)
    number = sum(len(tests.p) for tests in tested.values())
    own = {each.on: _parts(each, 1 - level / number) for each in ordered}
    also = dict.fromkeys(tested, 0.0)
    size = None
    significant = {what for what, tests in tested.items() if number * tests.p.min() < level}

    def test_again(samples: _Sorted, quantity: Quantity, values: Iterable[FloatArray]) -> None:
        p = (samples.tests(quantity, z, in_parts=in_parts).p.min() for z in values)
        also[quantity, samples.on] = max(also[quantity, samples.on], min(1.0, number * float(max(p))))

    for each in ordered:
        if ("bias", each.on) in significant:
            test_again(each, "bias", each.errors.seconds())
        if ("scale", each.on) in significant and each.is_of_shape(tested["scale", each.on], level / number):
            also["scale", each.on] = 1.0
    of_mean = next((each for each in ordered if each.on == "mean"), None)
    if of_mean is not None and (significant or abs(float(np.mean(errors.z))) > ONE_SIDED):
        # by lines through all errors alike, and through those of small stds most of all
        by_mean, rest = of_mean.errors, np.empty((2, len(errors.error)))
        relative = np.maximum(by_mean.std / by_mean.std.max(), LEAST_STD)
        precision = (1.0 if by_mean.weight is None else by_mean.weight) / np.square(relative)
        for row, weights in zip(rest, (by_mean.weight, precision), strict=True):
            row[of_mean.order.place] = of_mean.without_lines(by_mean.error, weights)
        of_z = (of_mean.without_lines(z, by_mean.weight) for z in (by_mean.z, by_mean.shifted()))
        ways = (*(rest[:, of_mean.order.place] / by_mean.std), *of_z)
        size = min(size_of(z, by_mean.units) for z in ways)
        for each in ordered:
            if ("scale", each.on) in significant:
                test_again(each, "scale", np.abs(rest[:, each.order.place] / each.errors.std))
    patterns = [_pattern(of, tests, also[of], number, level, own[of[1]]) for of, tests in tested.items()]
    patterns = [each for each in patterns if not _repeats(each, patterns, ordered)]
    return Places(own, tuple(sorted(patterns, key=lambda pattern: pattern.p)), size)


def find_narrow(errors: Errors, level: float = LEVEL) -> Places:
    """Find parts whose errors are too large, though no smaller ones are possible; their bias is not known."""
    parts: dict[Covariate, tuple[Part, ...]] = {}
    patterns: list[Pattern] = []
    unknown = {"factor_high": LARGEST, "bias": 0.0, "bias_low": -LARGEST, "bias_high": LARGEST}
    for on, known in find_places(errors, level).parts.items():
        parts[on] = tuple(replace(part, **unknown) for part in known)
        worst_first = np.argsort([-part.factor for part in known]).tolist()
        named = tuple(k for k in worst_first if known[k].factor_low > 1)[:2]
        found = worst_of([known[k].graded("scale") for k in named] or ["unclear"])
        patterns.append(Pattern("scale", on, level if named else 1.0, 0.0, named, found))
    return Places(parts, tuple(patterns))


def _repeats(pattern: Pattern, patterns: Sequence[Pattern], ordered: Sequence[_Sorted]) -> bool:
    """Check whether a pattern names the samples that the same quantity along the other covariate names.

    Where predictions and standard deviations rise together, scale is said along these and bias along those.
    """
    if not pattern.found or pattern.on == ("std" if pattern.quantity == "scale" else "mean"):
        return False
    place_of = {each.on: np.split(each.order.place, each.order.starts[1:]) for each in ordered}
    for other in patterns:
        if other.found and other.quantity == pattern.quantity and other.on != pattern.on:
            named = np.zeros(len(ordered[0].covariate), dtype=bool)
            for part in other.named or (0, -1):
                named[place_of[other.on][part]] = True
            mine = np.concatenate([place_of[pattern.on][part] for part in pattern.named or (0, -1)])
            return bool(named[mine].mean() > SAME)
    return False


def find_strata(
    errors: Errors,
    label: IntArray,
    names: Sequence[str],
    *,
    level: float = LEVEL_OF_LABELS,
    of: str = "",
    made: Made = "given",
    tests_of_all: int = 0,
) -> Places:
    """Test whether scale and bias of the samples with one label differ from those of all.

    A bias of a label also makes its errors larger; so a difference of scale must also be found without it.

    Parameters
    ----------
    errors : Errors
    label : array of int, shape (n,)
        Place of each sample's label among the names; each is there.
    names : sequence of str
    level : float
        Share of calibrated models of which anything is claimed.
    of : str
        Name of the set of labels, one of several.
    made : {"given", "period", "area", "cell"}
        What labels are; those of a period are said together.
    tests_of_all : int
        Number of tests of all sets, `tests_of` each; by default of this one.
    """
    group = errors.group
    if group is not None and int(group.max()) + 1 < FEWEST_GROUPS:
        return Places()
    if made == "area":
        some = some_of(len(label), MOST)
        errors, label, group = errors.at(some), label[some], None if group is None else group[some]
    place = np.argsort(label, kind="stable")
    order = Ordered(place, np.zeros(len(place)), np.searchsorted(label[place], np.arange(len(names))))
    samples = _Sorted("label", label[place].astype(float), order, errors.at(place))
    few = order.sizes < PER_PART
    own = tests_of(label)
    number = (tests_of_all or max(own, 1)) / (1 - TOGETHER)
    parts = _parts(samples, 1 - level / number)
    z, options = samples.errors.z, samples.errors.units
    means = np.repeat([part.bias for part in parts], order.sizes)
    are_nested, least = made != "cell" and is_nested(group, label), level * TOGETHER * own / number / 2
    patterns: list[Pattern] = []
    claims, untested = np.zeros((2, len(names)), dtype=bool), few
    adjusted = np.ones((2, len(names)))
    quantities: tuple[Quantity, ...] = ("bias", "scale")
    for row, quantity in enumerate(quantities):
        score = z if quantity == "bias" else np.abs(z)
        tests = contrast_parts(score, order.starts, ratio=quantity == "scale", **options)
        untested, p = few | ((tests.freedom < 2) & (group is not None)), tests.p
        apart = tests.together(order.sizes, ~untested) if are_nested else None
        differ = number * p.min() < level or (apart is not None and apart.p < least)
        if quantity == "bias" and differ:
            for also in samples.errors.seconds():
                p = np.maximum(p, contrast_parts(also, order.starts, ratio=False, **options).p)
        if quantity == "scale" and (adjusted[0].min() < level or patterns[0].spread):
            p = np.maximum(p, contrast_parts(np.abs(z - means), order.starts, ratio=True, **options).p)
        adjusted[row] = np.where(untested, 1.0, np.minimum(1, number * p))
        low, high = tests.limits(1 - level / number)
        ends = zip(tests.estimate.tolist(), low.tolist(), high.tolist(), strict=True)
        grades = [grade(*each, NEGLIGIBLE[quantity], SLIGHT[quantity]) for each in ends]
        claims[row] = (adjusted[row] < level) & [each in ("slight", "off") for each in grades]
        is_off = np.asarray([part.is_off(quantity) for part in parts])
        off = claims[row] & is_off
        if made == "cell":  # no exceptions: of a wrong shape, mean sizes differ
            off &= [part.distance(quantity) >= NEGLIGIBLE[quantity] for part in parts]
            claims[row] = off
        # One bad label makes the good ones differ from the mean; a right one may also be the exception.
        others = ~claims[row]
        stands_out = off.any() or np.sum(is_off & others) > MOST_LABELS * np.sum(others)
        is_right = stands_out and made in ("given", "period") and quantity == "scale"
        claims[row] = claims[row] if is_right and not off.any() else off
        # overconfidence does more harm
        harm = [part.distance(quantity) * (1 + (part.factor > 1)) for part in parts]
        named = sorted(np.flatnonzero(claims[row]).tolist(), key=lambda k: -harm[k])
        worst: Grade = "fine" if all(each == "fine" for each in grades) else "unclear"
        if named:
            worst = "off" if "off" in [grades[k] for k in named] else "slight"
        pattern = Pattern(quantity, "label", float(adjusted[row].min()), 0.0, tuple(named), worst)
        apart = replace(tests, p=p).together(order.sizes, ~untested) if are_nested else None
        joint = apart
        if apart is not None and named and stands_out:  # do the others differ too?
            joint = replace(tests, p=p).together(order.sizes, ~untested & ~claims[row], recentred=True)
        if apart and joint and joint.p < least and joint.spread >= NEGLIGIBLE[quantity]:
            how_much: Grade = "slight" if apart.spread < SLIGHT[quantity] else "off"
            pattern = Pattern(
                quantity, "label", apart.p, 0.0, apart.ends, how_much, apart.spread, apart.enough
            )
        if made == "period" and pattern.found and not pattern.spread:
            known = np.flatnonzero(~untested)
            values = tests.estimate[known]
            outer = int(known[values.argmin()]), int(known[values.argmax()])
            pattern = replace(pattern, named=outer, spread=float(values.std()))
        patterns.append(replace(pattern, made=made))
    strata = []
    for k, part in enumerate(parts):
        word = "too few" if untested[k] else _word(part, *claims[:, k].tolist())
        least, n = float(adjusted[:, k].min()), int(order.sizes[k])
        strata.append(Stratum(**vars(part), name=names[k], n=n, p=least, word=word, of=of))
    grown, is_of_period = math.sqrt(len(z) / max(len(z) - len(names), 1)), made == "period" and own > 2
    size = size_of(grown * (z - means), options) if is_of_period and patterns[0].found else None
    return Places(patterns=tuple(patterns) if own > 2 else (), size=size, strata=tuple(strata))


def is_nested(group: IntArray | None, label: IntArray) -> bool:
    """Return whether all samples of each group have the same label, so that labels are independent."""
    return group is None or len(np.unique(label * (group.max() + 1) + group)) == len(np.unique(group))


def tests_of(label: IntArray) -> int:
    """Return the number of tests of a set of labels: scale and bias of each that has enough samples."""
    return 2 * int(np.count_nonzero(np.bincount(label) >= PER_PART))


def find_drift(errors: Errors, block: Any, *, level: float = LEVEL_OF_LABELS) -> Places:
    """Test whether scale and bias change along the blocks of a series: the trend of what blocks find, and fifths.

    Blocks are long, so that what neighbors have in common hardly passes from one to the next. A bias that drifts also
    changes the size of errors; so a drift of scale must also be found in their spread within blocks.

    Parameters
    ----------
    errors : Errors
    block : array of int, shape (n,)
        Number of each sample's block, in their order.
    level : float
        Share of calibrated models of which anything is claimed.
    """
    weight, block = errors.weight, dense(block)[1]
    blocks = int(block.max()) + 1
    if blocks < FEWEST_GROUPS:
        return Places()
    mass, z = np.bincount(block, weight).astype(float), errors.z
    bias, square = means_of(z, block, weight), means_of(np.square(z), block, weight)
    with np.errstate(divide="ignore"):
        size, spread = np.log(square) / 2, np.log(square - np.square(bias)) / 2
        clipped = np.minimum(np.abs(z), MOST_MEDIANS * np.median(np.abs(z)))  # else a single one tells
        of_most = np.log(means_of(clipped, block, weight))
    if not np.isfinite(spread).all():
        return Places()
    at = (np.cumsum(mass) - mass / 2) / mass.sum()
    of_bias, of_size, of_spread = (trend_of(at, values) for values in (bias, size, spread))
    tests: tuple[tuple[Quantity, Trend, Trend, tuple[FloatArray, ...]], ...] = (
        ("bias", of_bias, of_bias, (bias,)),
        ("scale", of_size, of_spread, (size, spread, of_most)),
    )
    of_parts = ((quantity, _odd_part(values, level)) for quantity, *_, values in tests)
    odd = {quantity: found for quantity, found in of_parts if found is not None}
    part = odd["bias"][0] if "bias" in odd else np.zeros(blocks)
    if part.sum() == 1 and np.square(bias @ part) < square @ part / 4:
        del odd["bias"]  # errors of any sign are large there
    fifths = np.minimum(PARTS * at, PARTS - 1).astype(np.int64) == np.arange(PARTS)[:, None]
    inside = np.stack([*fifths, *(part for part, *_ in odd.values())])
    share = (inside * mass).sum(axis=1) / mass.sum()
    end = np.max(inside * np.cumsum(mass), axis=1) / mass.sum()
    in_part = inside * mass / (inside * mass).sum(axis=1, keepdims=True)
    reach = float(special.stdtrit(blocks - 2, 1 - level / 4))
    held = np.sqrt(inside.sum(axis=1))

    def half(quantity: Quantity, usual: float, values: FloatArray) -> FloatArray:
        if blocks > 2 * PARTS:  # a wave is no noise
            usual = min(usual, _noise_within(fifths, values))
        own = [odd[each][2] if each == quantity else usual for each in odd]
        return np.asarray(reach * np.asarray([usual] * PARTS + own) / held)

    half_size, half_bias = half("scale", of_size.noise, size), half("bias", of_bias.noise, bias)
    factor, own = np.sqrt(in_part @ square), in_part @ bias
    factors = (factor, factor * np.exp(-half_size), factor * np.exp(half_size))
    columns = (share, 100 * (end - share), 100 * end, *factors, own, own - half_bias, own + half_bias)
    parts = tuple(Part(*row.tolist()) for row in np.stack(columns, axis=1))
    patterns = []
    for quantity, trend, also, values in tests:
        p = min(1.0, 2 / TREND * max(trend.p, also.p))
        value, low, high = (OUTER * (trend.slope + sign * reach * trend.error) for sign in (0, -1, 1))
        found = grade(value, low, high, NEGLIGIBLE[quantity], SLIGHT[quantity])
        sure = "unclear" if found in ("slight", "off") and p >= level else found
        outer = tuple(place for place in (0, PARTS - 1) if parts[place].is_off(quantity))
        pattern = Pattern(quantity, "order", p, trend.slope, outer, sure)
        if not pattern.found and blocks > 2 * PARTS:
            differs = 4 * apart(fifths, values)
            place = int(differs.argmin())
            how_much = parts[place].graded(quantity)
            if differs[place] < level and how_much in ("slight", "off"):
                pattern = Pattern(quantity, "order", float(differs[place]), 0.0, (place,), how_much)
        if not pattern.found and quantity in odd:
            place = PARTS + list(odd).index(quantity)
            how_much = parts[place].graded(quantity)
            pattern = Pattern(quantity, "order", odd[quantity][1], 0.0, (place,), how_much)
        patterns.append(pattern)
    beyond = float(special.stdtrit(blocks - 2, (1 + SIZE_LEVEL) / 2))
    error = beyond * of_spread.noise / math.sqrt(blocks)
    logs = np.average(spread, weights=mass) + error * np.asarray([0, -1, 1])
    without_bias = tuple(np.exp(logs).tolist()) if patterns[0].found else None
    return Places({"order": parts}, tuple(patterns), without_bias)


def find_drifting_label(errors: Errors, label: IntArray, names: Sequence[str], *, level: float) -> Places:
    """Find the label whose own samples drift most surely, in the order given, unless most labels drift."""
    held = np.bincount(label)
    known = np.flatnonzero(held >= FEWEST_IN_ORDER).tolist()
    drifting: list[Places] = []
    for place in known:
        own, at = errors.at(np.flatnonzero(label == place)), np.arange(held[place])
        rest = without_change(own.z)
        follow = abs(inner(rest[1:], rest[:-1])) > FOLLOWING * inner(rest, rest) / math.sqrt(len(rest))
        blocks = Series(at).blocks if follow else at * MOST_BLOCKS // len(at)
        drift = find_drift(own, blocks, level=level / len(known))
        parts = drift.parts.get("order", ())
        found = tuple(
            replace(each, on="within", within=names[place])
            for each in drift.found()
            if each.slope or parts[each.named[0]].share > OF_LABEL  # a single error fills a short block
        )
        drifting += [Places({"within": parts}, found)] if found else []
    if not 0 < len(drifting) <= len(known) / 2:
        return Places()
    return min(drifting, key=lambda each: min(pattern.p for pattern in each.patterns))


def _noise_within(inside: Any, values: FloatArray) -> float:
    """Return the standard deviation of what blocks find within parts."""
    means = inside @ values / inside.sum(axis=1)
    return math.sqrt(float(np.square(values - means @ inside).sum()) / (len(values) - len(inside)))


def _beside_rest(inside: Any, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the means of what blocks find in each part, and in all others, and the noise within both."""
    own, number = inside.sum(axis=1), len(values)
    mean = inside @ values / own
    rest = (values.sum() - own * mean) / (number - own)
    square = np.square(values).sum() - own * np.square(mean) - (number - own) * np.square(rest)
    return mean, rest, np.sqrt(np.maximum(square / (number - 2), SMALLEST))


def apart(inside: Any, values: Sequence[FloatArray]) -> FloatArray:
    """Return how surely what blocks find differs in each part from the others: the larger p, for all parts."""
    own, number, found = inside.sum(axis=1), len(values[0]), []
    is_cut = own.sum() == number  # then several parts may differ, as in a wave, which is no noise
    for each in values:
        mean, rest, noise = _beside_rest(inside, each)
        within = _noise_within(inside, each) if is_cut else noise
        t = np.abs(mean - rest) / (within * np.sqrt(1 / own + 1 / (number - own)))
        found.append(2 * special.stdtr(number - (len(inside) if is_cut else 2), -t))
    return np.asarray(np.max(found, axis=0) * len(inside) / (1 - TREND))


def _odd_part(values: Sequence[FloatArray], level: float) -> tuple[FloatArray, float, float] | None:
    """Return the block, or first or last blocks, that differ most surely from the others, how surely, and the noise.

    The larger p of the values counts, for all such parts. None if none do.
    """
    number = len(values[0])
    first = np.arange(number) < np.arange(2, number - 1)[:, None]
    tried = np.concatenate([np.eye(number), first]).astype(np.float64)
    p = 2 * apart(tried, values)
    place = int(p.argmin())
    if p[place] >= level:
        return None
    part, (mean, rest, noise) = tried[place], (float(each[place]) for each in _beside_rest(tried, values[0]))
    is_first = part.sum() > 1 and abs(mean) < abs(rest)
    return (1 - part if is_first else part), float(p[place]), noise


@dataclass(frozen=True)
class Trend:
    """A straight line through the means of blocks, its slope with standard error and p, and what remains."""

    slope: float
    error: float
    p: float
    noise: float


def trend_of(at: FloatArray, values: FloatArray) -> Trend:
    """Fit a straight line to the means of blocks."""
    centred, freedom = at - at.mean(), len(at) - 2
    square = float(centred @ centred)
    slope = float(centred @ values) / square
    rest = values - values.mean() - slope * centred
    noise = math.sqrt(max(float(rest @ rest) / freedom, SMALLEST))
    error = noise / math.sqrt(square)
    return Trend(slope, error, 2 * float(special.stdtr(freedom, -abs(slope) / error)), noise)


def _word(part: Part, one_sided: bool, other_size: bool) -> str:
    """Say in a few words what was found of a label."""
    found = []
    if other_size:
        times = max(part.factor, 1 / max(part.factor, SMALLEST))
        side = "over" if part.factor > 1 else "under"
        found.append(f"{times:.2f}x {side}confident" if part.is_off("scale") else "differs in size")
    if one_sided:
        size = f"{abs(part.bias):.2f} std " if part.above is None else ""
        found.append(f"{size}too {'low' if part.bias > 0 else 'high'}")
    return ", ".join(found) or "no difference"


def grade(value: float, low: float, high: float, negligible: float, slight: float) -> Grade:
    """Return how much a statement matters, whose size without an error is 0."""
    if -negligible <= low and high <= negligible:
        return "fine"
    if low <= 0 <= high or abs(value) < negligible or not math.isfinite(low + high):
        return "unclear"
    return "slight" if abs(value) < slight else "off"


def worst_of(grades: Collection[Grade]) -> Grade:
    """Return the worst of some grades."""
    order: tuple[Grade, ...] = ("off", "slight", "unclear", "fine")
    return next(each for each in order if each in grades)


def grade_of_factor(value: float, low: float, high: float) -> Grade:
    """Return how much a factor on all standard deviations matters."""
    logs = [math.log(max(each, SMALLEST)) for each in (value, low, high)]
    return grade(logs[0], logs[1], logs[2], NEGLIGIBLE_FACTOR, SLIGHT_FACTOR)


def _pattern(
    of: tuple[Quantity, Covariate],
    tests: Contrasts,
    also: float,
    number: int,
    level: float,
    parts: Sequence[Part],
) -> Pattern:
    """Return the pattern of a quantity along a covariate; ``also`` is the p-value of a second test it must pass."""
    (quantity, on), adjusted, grades = of, np.minimum(1.0, number * tests.p), list[Grade]()
    negligible, slight = NEGLIGIBLE[quantity], SLIGHT[quantity]
    p, trend = max(float(adjusted.min()), also), float(adjusted[0])
    lows, highs = tests.limits(1 - level / number)
    for value, low, high, own in zip(tests.estimate[1:], lows[1:], highs[1:], adjusted[1:], strict=True):
        of_part = grade(value, low, high, negligible, slight)
        certain = own < level or of_part == "fine"
        grades.append(of_part if certain else "unclear")
    if not grades or (trend < level and not {"slight", "off"} & set(grades) and set(grades) != {"fine"}):
        span, low, high = (END_TO_END * float(each[0]) for each in (tests.estimate, lows, highs))
        of_trend = grade(span, low, high, negligible, slight)
        grades.append(of_trend if trend < level or of_trend == "fine" else "unclear")
    worst = worst_of(grades)
    slope = float(tests.estimate[0]) if trend < level else 0.0
    claimed = [0, len(parts) - 1] if slope else np.flatnonzero(adjusted[1:] < level).tolist()
    named = _named(quantity, parts, claimed) if slope or len(adjusted) > 1 else ()
    may_be_right = not slope and not any(parts[place].is_off(quantity) for place in named)
    may_be_right |= bool(named) and parts[named[0]].distance(quantity) < negligible
    may_be_right |= quantity == "scale" and bool(named) and all(parts[place].is_of_bias() for place in named)
    if worst in ("off", "slight") and (p >= level or (named and may_be_right)):
        worst = "unclear"  # it differs from the others, but may be right itself
    return Pattern(quantity, on, p, slope, named, worst)


def _named(quantity: Quantity, parts: Sequence[Part], claimed: list[int]) -> tuple[int, ...]:
    """Return the parts to name: the two that differ most among those claimed, as the outer ones of a trend are.

    Those whose own limits exclude no error are left out: others that differ from them are named, if any are off.
    """
    worst_first = sorted(range(len(parts)), key=lambda place: -parts[place].distance(quantity))
    off = [place for place in worst_first if parts[place].is_off(quantity)]
    of_claimed = [place for place in worst_first if place in claimed]
    return tuple([place for place in off if place in claimed][:2] or off[:2] or of_claimed[:1])


def _finite(value: float) -> float:
    """Keep a value within what a file holds; what is no number is 0."""
    return float(np.clip(np.nan_to_num(value, posinf=LARGEST, neginf=-LARGEST), -LARGEST, LARGEST))


def _parts(samples: _Sorted, level: float) -> tuple[Part, ...]:
    """Describe each part, with limits at this level."""
    made: list[Part] = []
    weights, starts, n = samples.errors.weight, samples.order.starts, len(samples.covariate)
    total = n if weights is None else float(weights.sum())
    for start, end in zip(starts, [*starts[1:], n], strict=True):
        here, covariate = samples.errors.at(slice(start, end)), samples.covariate[start:end]
        weight, z = here.weight, here.z
        held = [] if here.inside is None else np.average(here.inside, 0, weight).tolist()
        bias, size = z if here.plain is None else here.plain, np.square(z)
        if here.square is not None and here.variance is not None:
            size = here.square / np.average(here.variance, weights=weight)
        square, *of_square = mean_limits(size, **here.units, level=level, log=True)
        made.append(
            Part(
                float(end - start if weight is None else weight.sum()) / total,
                float(covariate[0]),
                float(covariate[-1]),
                *(_finite(math.sqrt(each)) for each in (square, *of_square)),
                *(_finite(each) for each in mean_limits(bias, **here.units, level=level)),
                **dict(zip(("inside", "above"), held, strict=False)),
            )
        )
    return tuple(made)


def size_of(z: FloatArray, units: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the root mean square with its limits."""
    found = mean_limits(np.square(z), **units, level=SIZE_LEVEL, log=True)
    return tuple(_finite(math.sqrt(each)) for each in found)


def mean_limits(
    values: FloatArray,
    weight: FloatArray | None,
    group: IntArray | None,
    level: float,
    *,
    log: bool = False,
) -> tuple[float, float, float]:
    """Return a mean with its limits; with ``log``, those of the log of a positive mean, taken back."""
    if weight is None:
        mean, u = float(values.mean()), (values - values.mean()) / len(values)
    else:
        mean = float(weight @ values / weight.sum())
        u = weight * (values - mean) / weight.sum()
    if group is not None:
        held = np.bincount(group, weight)
        u = np.bincount(group, u)[held > 0]
        most = size_freedom(np.square(held[held > 0]))
    else:
        most = math.inf if weight is None else size_freedom(np.square(weight))
    influence = Influence.of(u, None, most)
    if not log:
        low, high = influence.limits(mean, level, cautious=True)
        return (mean, low, high) if math.isfinite(low + high) else (mean, -LARGEST, LARGEST)
    if mean <= 0 or influence.units < 2 or not math.isfinite(influence.square):
        return mean, 0.0, LARGEST
    return mean, *influence.log_limits(mean, level)
