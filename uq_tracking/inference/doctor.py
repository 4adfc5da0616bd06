"""Mistakes in what was passed (a variance for a std, another unit, a code for "missing"), and cures of what is wrong.

Mistakes are recognized by the numbers. A suspicion never changes a score and never raises. The rules stay silent on
honest models, however badly calibrated, as the simulations in their tests show. At most one suspicion about the
standard deviations, and one about truth against prediction, are voiced.

A cure is a recalibration of standard deviations, or of the shape, after which a cross-fit finds no error, or clearly
less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from uq_tracking.errors import RecalibrationError
from uq_tracking.formatting import format_number
from uq_tracking.inference.limits import means_of
from uq_tracking.inference.places import (
    NEGLIGIBLE_SHAPE,
    Errors,
    find_places,
    find_strata,
    grade_of_factor,
    mean_limits,
    size_of,
    some_of,
)
from uq_tracking.inputs.validation import log_size, root_mean_square, slope_of
from uq_tracking.metrics.gaps import ERROR, Reduction
from uq_tracking.recalibration.base import FittedOn
from uq_tracking.recalibration.quantiles import CdfIsotonic
from uq_tracking.recalibration.std import StdIsotonic, StdScaling
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import FloatArray, IntArray
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.statistics import Statistics

FEWEST = 50
"""Fewest samples to compare truth and prediction."""
FEWEST_STDS = 200
"""Fewest samples to recognize what the standard deviations are."""
MOST, MOST_CURED = 1 << 15, 100_000
"""Samples looked at for mistakes, and for cures; of more, as many are drawn, always the same ones."""
LEVELS = (0.5, 0.6827, 0.9, 0.95)
QUANTILES = special.ndtri((1 + np.asarray(LEVELS)) / 2)
FACTORS = (100.0, 1000.0, 255.0, 180 / math.pi)
"""Ratios of units that are often mixed up."""
FACTOR_OF_SPREAD = 5.0
"""Factor beyond which it is compared with the spread of the targets."""
APART, SAME_UNIT, MOST_UNITS = 0.35, 0.2, 4
"""Least gap between logs of stds in two units, over their spread; log of how far their ratio may be from a unit; most
gaps looked at."""
OF_REPEATED = 0.05
"""Share of the samples from which on a truth of one value tells nothing of errors."""
OF_LEAKED = 1.4
"""Ratio of the quartiles of errors in stds below which the stds are suspicious, if their own quartiles exceed it."""
TINY = 1e-3
"""Standard deviations below this share of their median are next to 0."""
CODES = (0, -1, -9, -99, -999, -9999, -32768, 255, 65535)
"""Values that often stand for a missing one."""
NOISE_ABOVE = 3.0
"""Factor from which on draws may lack the noise of the data."""
SMALL, OF_SEEN, FITS = 0.1, 0.2, 0.05
"""Errors below this, in stds, are hardly any; share of them from which on they are too many if coverage of the others
is right within so much."""
OF_FILLED, LARGER_FILLED = 0.02, 1.8
"""Share of the values that a recurring one must be, and how many times as large as others its errors."""
OF_OTHERS = 0.7
"""Least size of the other errors where a true value that recurs is suspected."""
OPPOSITE = 0.25
"""Share of samples of which both truth and prediction are high, or low, below which a sign may be wrong."""
MOST_SHIFTED, OF_SHIFTED = 24, 0.5
"""Most rows by which predictions may be early or late, and the share of the median error that is left without."""
SAME_ORDER = 0.9
"""Correlation from which on another slope is one of units."""
EQUAL_LABELS = 0.3
"""Share of equal truths and predictions from which whole numbers may be labels."""
OF_SCALER = (
    "If that is the mean which scaler.inverse_transform adds, multiply scaled stds by scaler.scale_ instead."
)
OF_EXCHANGED = 0.7
"""Share of the truth's variance that stds must explain to be predictions; those of absolute errors reach .6."""
ALIKE = 0.02
"""Standard deviations with a coefficient of variation below this count as all alike."""


@dataclass(frozen=True)
class Suspicion:
    """A likely mistake in the input.

    Attributes
    ----------
    name : str
        ``variance``, ``precision``, ``log-variance``, ``log-std``, ``unit of std``, ``unit of some``, ``tiny std``,
        ``relative std``, ``shifted std``, ``no noise``, ``constant truth``, ``unit``, ``sign``, ``standardized``,
        ``offset``, ``shuffled``, ``early rows``, ``late rows``, ``missing code``, ``corrupt target``,
        ``near-constant std``, ``spread of means``, ``crossing quantiles``, ``classes``, ``exchanged``,
        ``order of classes``, ``logits``, ``filled truth``, ``stuck truth``, ``filled prediction``,
        ``std from errors``, ``seen``, ``padding``, ``crossed groups`` or ``groups in sequence``.
    text : str
        What was seen, in one or two sentences.
    fix : str
        What to type if the suspicion is right.
    """

    name: str
    text: str
    fix: str

    def __str__(self) -> str:
        return f"{self.text} {self.fix}".strip()

    @property
    def is_mistake(self) -> bool:
        """Whether it must be checked before anything else is believed."""
        return self.name not in ("near-constant std", "late rows")


def examine(
    target: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    *,
    gaussian: bool = True,
    spread_of_means: int | None = None,
    in_order: bool = False,
    group: IntArray | None = None,
) -> tuple[Suspicion, ...]:
    """Look for mistakes in truth, prediction and standard deviation.

    Parameters
    ----------
    target, mean, std : array, shape (n,)
    gaussian : bool
        Whether the standard deviations are those of normal distributions; for others, they are not examined.
    spread_of_means : int, optional
        Number of members if the standard deviation is the spread of an ensemble's means alone.
    in_order : bool
        Whether the samples are consecutive rows.
    group : array of int, shape (n,), optional
        Number of the group of each sample.
    """
    error = target - mean
    shifted = _shifted_rows(target, mean, error) if in_order else None
    if shifted is not None and shifted.is_mistake:
        return (shifted,)
    corrupt = _corrupt_target(error)
    some = some_of(len(error), MOST)
    target, mean, std, error = (values[some].astype(np.float64) for values in (target, mean, std, error))
    group = None if group is None else group[some]
    if (other := _classes(target, mean, std) or _exchanged(target, mean, std)) is not None:
        return (other,)
    found = [corrupt or _of_truth(target, mean, std, group), _filled(target, std, error, in_order), shifted]
    if np.all(std > 0):
        z = error / std
        of_some = _unit_of_some(error, std) or _tiny_stds(error, std)
        if gaussian and spread_of_means is not None:
            found.append(_spread_of_means(error, std, spread_of_means))
        elif gaussian and (of_some is None or of_some.name != "unit of some"):
            leaked = _seen(z) or _std_from_errors(target, error, std)
            of_std = leaked or _of_std(error, std, float(target.std()))
            found.append(of_std or _transformed(target, mean, std))
        of_truth = _missing_code(target, z) or _recurring("stuck truth", "true values", "y_true", target, z)
        filled = _recurring("filled prediction", "predictions", "y_pred", mean, z)
        found += [of_some, of_truth, filled, _near_constant(std)]
    return tuple(each for each in found if each is not None)


def _classes(target: FloatArray, mean: FloatArray, std: FloatArray) -> Suspicion | None:
    """Recognize classes, with probabilities or confidences, that were passed as a regression."""
    whole = [bool(np.all(values == np.floor(values)) and values.min() >= 0) for values in (target, mean)]
    if len(target) < FEWEST or not whole[0] or np.ptp(target) == 0:
        return None
    if not whole[1] and target.max() == 1 and mean.min() >= 0 and mean.max() <= 1:
        text, probs = "The truth is 0 or 1, and predictions lie between: probabilities of an event?", "y_pred"
    elif whole[1] and std.max() <= 1 and np.ptp(mean) > 0 and np.mean(target == mean) >= EQUAL_LABELS:
        text, probs = "Truth and predictions are whole numbers, stds at most 1: labels and confidences?", "p"
    else:
        return None
    return Suspicion("classes", text, f"Score them as classes: uq.log(y_true, probs={probs}).")


def _exchanged(target: FloatArray, mean: FloatArray, std: FloatArray) -> Suspicion | None:
    """Recognize standard deviations that predict the truth, though the predictions do not."""
    if len(target) < FEWEST or not target.var() > 0:
        return None
    of_mean, of_std = (1 - np.mean(np.square(target - each)) / target.var() for each in (mean, std))
    if of_mean >= 0 or not of_std >= OF_EXCHANGED or np.median(mean) >= np.median(std):
        return None
    text = f"The truth follows y_std (r2 {of_std:.2f} if that were the prediction), but not y_pred ({of_mean:.2f})."
    return Suspicion("exchanged", text, "Are arguments exchanged? Pass y_true, y_pred, y_std in this order.")


def _shifted_rows(target: FloatArray, mean: FloatArray, error: FloatArray) -> Suspicion | None:
    """Recognize predictions that fit the truth of another row: a later one no model knows."""
    if len(error) < FEWEST:
        return None
    target, mean, error = (values[:MOST].astype(np.float64) for values in (target, mean, error))
    own, rows = float(np.median(np.abs(error))), range(1, MOST_SHIFTED + 1)
    for name, one, other in (("early rows", target, mean), ("late rows", mean, target)):
        found = [float(np.median(np.abs(one[row:] - other[:-row]))) for row in rows]
        best, row = min(found), 1 + int(np.argmin(found))
        if best < OF_SHIFTED * own:
            which = f"{row} row{'s' * (row > 1)} {'later' if name == 'early rows' else 'before'}"
            fits = f"half of the errors are below {format_number(best)} instead of {format_number(own)}"
            fix = f"If rows are shifted, pass y_true[{row}:], y_pred[:-{row}], y_std[:-{row}]."
            if name == "late rows":
                fix = "Are rows shifted, or does the model repeat past values?"
            return Suspicion(name, f"Predictions fit the truth of {which} far better: {fits}.", fix)
    return None


def _gap(error: FloatArray, std: FloatArray) -> float:
    """Return the largest gap of coverage at four levels."""
    share = np.searchsorted(np.sort(np.abs(error) / std), QUANTILES, side="right") / len(error)
    return float(np.abs(share - LEVELS).max())


def _losses(error: FloatArray, std: FloatArray) -> FloatArray:
    return np.asarray(np.log(std) + np.square(error / std) / 2 + math.log(2 * math.pi) / 2)


def _nll(error: FloatArray, std: FloatArray) -> float:
    return float(np.mean(_losses(error, std)))


def surely_fall(before: FloatArray, after: FloatArray, errors: float = 2) -> bool:
    """Return whether losses, some of them infinite, fall by more than so many standard errors of the mean."""
    falls = np.minimum(before - after, MOST_FALLS)
    return bool(falls.mean() > errors * falls.std() / math.sqrt(len(falls)))


def _of_std(error: FloatArray, std: FloatArray, of_target: float) -> Suspicion | None:
    if len(error) < FEWEST_STDS or not np.any(error):
        return None
    size, log = log_size(error), np.log(std)
    factor, slope, spread = root_mean_square(error / std), slope_of(size, log), float(log.std())
    nll, of_best = _nll(error, std), _nll(error, std * factor)
    wrong = (factor > 1.25 or factor < 0.8) and _gap(error, std) >= 0.1
    use = "use Predictions.from_{}(y_true, y_pred, y_std)"
    for name, made, log_std, cure in (
        ("variance", "their square roots", log / 2, use.format("variance")),
        ("precision", "1 / sqrt(y_std)", -log / 2, "pass 1 / np.sqrt(y_std)"),
        ("log-variance", "exp(y_std / 2)", std / 2, use.format("log_variance")),
        ("log-std", "exp(y_std)", std, "pass np.exp(y_std)"),
    ):
        own = slope_of(size, log_std)
        if own is None or slope is None or min(spread, own.spread) < 0.1 or np.ptp(log_std) > 100:
            continue
        other = np.exp(log_std)
        fits, fitted = root_mean_square(error / other), _nll(error, other)
        if not fits or abs(math.log(fits)) > 0.1:
            continue
        if name.startswith("log-"):  # a power of the std that fits better is no log
            power = np.exp(slope.value * (log - log.mean()))
            if _nll(error, power * root_mean_square(error / power)) < fitted:
                continue
        clear = of_best - fitted >= 0.2  # one factor for all stds does clearly worse
        strict = (
            (wrong or clear)
            and abs(own.value - 1) <= min(0.15, 3 * own.error)
            and own.error <= 0.1
            and abs(slope.value - 1) >= max(0.3, 4 * slope.error)
            and _gap(error, other * fits) <= 0.025 + 1 / math.sqrt(len(error))
            and nll - fitted >= 0.1
        )
        # A variance also shows where errors are not normal.
        plain = (
            name == "variance"
            and wrong
            and abs(math.log(factor)) > math.log(2)
            and abs(own.value - 1) <= 0.35
            and clear
        )
        if strict or plain:
            return Suspicion(
                name,
                f"The stds look like {name}s: with {made}, errors are {fits:.2f} times the stated size and nll falls "
                f"from {format_number(nll)} to {format_number(fitted)}.",
                f"If they are, {cure}.",
            )
    if _gap(error, std * factor) > 0.025 + 1 / math.sqrt(len(error)):
        return None
    if not (spread < 0.1 or (slope is not None and abs(slope.value - 1) <= 0.2)):
        return None
    side, times = ("small", factor) if factor > 1 else ("large", 1 / factor)
    text = f"The stds are {format_number(times)} times too {side} but otherwise fit."
    for unit in (*FACTORS, *(1 / unit for unit in FACTORS)):
        if abs(math.log(factor / unit)) <= 0.12:
            change = f"{'multiply' if unit > 1 else 'divide'} it by {format_number(max(unit, 1 / unit))}"
            variance = abs(math.log(root_mean_square(error / np.sqrt(std)))) <= 0.12
            also = " Or does it hold variances (Predictions.from_variance)?" if variance else ""
            fix = f"Is y_std in another unit than y_true? Then {change}.{also}"
            return Suspicion("unit of std", text, fix)
    if times > FACTOR_OF_SPREAD and of_target > 0 and abs(math.log(factor / of_target)) <= 0.12:
        by = f"{format_number(of_target)}, the standard deviation of y_true"
        fix = f"Is y_std on the scale of standardized targets? Then multiply it by {by}."
        return Suspicion("unit of std", text, fix)
    return None


def _transformed(target: FloatArray, mean: FloatArray, std: FloatArray) -> Suspicion | None:
    """Recognize relative standard deviations, those of the logarithm, and those to which a mean was added."""
    error, centre = target - mean, float(target.mean())
    factor = root_mean_square(error / std)
    if len(error) < FEWEST_STDS or not factor or not abs(math.log(factor)) > math.log(3):
        return None
    relative = std * np.abs(mean)
    tried = {
        "y_std * abs(y_pred)": (relative, np.log(std).std() > 0.1, "relative, or those of the logarithm"),
        "y_std * abs(y_pred) / 100": (relative / 100, True, "percent"),
        f"y_std - {format_number(centre)}": (std - centre, np.median(std) < 1.5 * centre, ""),
    }
    for code, (made, is_plausible, unit) in tried.items():
        if is_plausible and np.all(made > 0) and np.log(made / std).std() > 0.1:
            fits = root_mean_square(error / made)
            falls = surely_fall(_losses(error, std * factor), _losses(error, made * fits), 3)
            if abs(math.log(fits)) < math.log(1.5) and falls and _gap(error, made) < 0.15:
                text = f"With {code} as the std, errors are {fits:.2f} times the stated size; as passed, "
                fix = f"If stds are {unit}, pass that product." if unit else OF_SCALER
                name = "relative std" if unit else "shifted std"
                return Suspicion(name, f"{text}{format_number(factor)} times.", fix)
    return None


def unit_of_label(
    target: FloatArray, mean: FloatArray, label: IntArray, names: Sequence[str]
) -> Suspicion | None:
    """Recognize a label whose true values are a multiple of the predictions, where those of others are not."""
    count = np.bincount(label)
    centres = [means_of(values.astype(np.float64), label) for values in (target, mean)]
    truth, predicted = target - centres[0][label], mean - centres[1][label]
    variances = means_of(np.square(truth), label), means_of(np.square(predicted), label)
    slopes = np.sqrt(variances[0] / variances[1])
    correlation = means_of(truth * predicted, label) / np.sqrt(variances[0] * variances[1])
    known = np.flatnonzero((count >= FEWEST) & (correlation > SAME_ORDER))
    off = known[np.abs(np.log(slopes[known])) > math.log(1.5)]
    if len(known) < 3 or not len(off) or abs(np.median(np.log(slopes[known]))) > math.log(1.2):
        return None
    slope, start = float(slopes[off[0]]), float(centres[0][off[0]] - slopes[off[0]] * centres[1][off[0]])
    also = f" (and in {len(off) - 1} others)" * (len(off) > 1)
    return Suspicion(
        "unit",
        f"In stratum '{names[off[0]]}'{also}, true values are about {format_number(slope, 2)} x prediction "
        f"{'+' if start > 0 else '-'} {format_number(abs(start), 2)}; elsewhere they are as large as predicted.",
        "Are all true values in the same unit?",
    )


def _unit_of_some(error: FloatArray, std: FloatArray) -> Suspicion | None:
    """Recognize a part of the standard deviations, apart from the others, that is in another unit."""
    log, edge = np.sort(np.log(std)), len(std) // 100 + 9
    gaps = np.diff(log)[edge:-edge]
    z = np.maximum(np.abs(error) / std / QUANTILES[0], 1e-300)
    for gap in np.argsort(-gaps)[: MOST_UNITS * (len(error) >= FEWEST_STDS)].tolist():
        first = edge + gap + 1
        if gaps[gap] <= APART * max(log[:first].std(), log[first:].std(), 0.1):
            continue
        low = np.log(std) < (log[first - 1] + log[first]) / 2
        sizes = [(math.log(float(np.median(z[part]))), part.mean()) for part in (low, ~low)]
        (right, _), (wrong, share) = sorted(sizes, key=lambda size: abs(size[0]))
        unit = min(FACTORS, key=lambda unit: abs(abs(wrong - right) - math.log(unit)))
        if abs(right) <= math.log(2) and abs(abs(wrong - right) - math.log(unit)) <= SAME_UNIT:
            side, cure = ("small", "multiply") if wrong > right else ("large", "divide")
            return Suspicion(
                "unit of some",
                f"{format_number(100 * share, 2)} % of the stds are {format_number(math.exp(abs(wrong)), 2)} times "
                f"too {side}; the others fit.",
                f"If the former are in another unit, {cure} them by {format_number(unit)}.",
            )
    return None


def _tiny_stds(error: FloatArray, std: FloatArray) -> Suspicion | None:
    """Recognize standard deviations next to 0 whose errors are as large as any."""
    there = std < TINY * np.median(std)
    if len(error) < FEWEST or not 0 < there.mean() < 0.5:
        return None
    cure = "? Then mask them; else set std_floor= to the smallest plausible std."
    said = "stds are below a thousandth of the median"
    return _placeholder("tiny std", said, there, error / std, 1 / TINY / 10, cure)


def _std_from_errors(target: FloatArray, error: FloatArray, std: FloatArray) -> Suspicion | None:
    """Recognize standard deviations that were computed from the very errors they are to predict.

    Half of normal errors lie between .32 and 1.15 stds, whatever these are; of leaked ones, in a narrower range. So
    do those of a truth that is often 0, if stds are proportional to predictions: such values are left out.
    """
    size = np.abs(error / std)
    low, high = np.quantile(size, [0.25, 0.75]).tolist()
    sizes = np.log(np.quantile(std, [0.25, 0.75]))
    if len(error) < FEWEST or not 0 < high < OF_LEAKED * low or sizes[1] - sizes[0] < math.log(OF_LEAKED):
        return None
    _, place, counts = np.unique(target, return_inverse=True, return_counts=True)
    often = (counts > OF_REPEATED * len(target))[place]
    if often.any():
        return None if often.all() else _std_from_errors(*(each[~often] for each in (target, error, std)))
    within = " to ".join(dict.fromkeys(format_number(each, 3) for each in (low, high)))
    return Suspicion(
        "std from errors",
        f"Half of the errors are {within} times their std, a narrower range than chance allows: the stds seem to be "
        "computed from the errors themselves.",
        "Pass stds that were predicted without the true values.",
    )


def _seen(z: FloatArray) -> Suspicion | None:
    """Recognize samples the model was trained on among others: hardly any errors, while those of all others fit."""
    small = (np.abs(z) < SMALL) & (z != 0)
    share, rest = float(small.mean()), np.sort(np.abs(z[~small & (z != 0)]))
    if len(z) < FEWEST_STDS or not OF_SEEN < share < 1 - OF_SEEN:
        return None
    expected = 2 * special.ndtr(SMALL) - 1
    within = np.searchsorted(rest, QUANTILES, side="right") / len(rest)
    if np.abs(within - (np.asarray(LEVELS) - expected) / (1 - expected)).max() > FITS:
        return None
    return Suspicion(
        "seen",
        f"{format_number(100 * share, 2)} % of the errors are below a tenth of their std ({100 * expected:.0f} % "
        "expected), though all others fit.",
        "Was the model trained on those samples? Score held-out ones.",
    )


def _filled(target: FloatArray, std: FloatArray, error: FloatArray, in_order: bool) -> Suspicion | None:
    """Recognize padding of arrays, and targets that were filled with predictions; zeros of rows are honest."""
    there = error == 0
    count = int(np.count_nonzero(there))
    if len(error) < FEWEST or count < max(10, 0.01 * len(error)) or count == len(error):
        return None
    share = f"{format_number(100 * count / len(error), 2)} %"
    if not in_order and np.ptp(target[there]) == np.ptp(std[there]) == 0 < np.ptp(std[~there]):
        value = _literal(target[there][0])
        fix = f"If they are padding, mask them: mask=(y_true == {value}) & (y_pred == {value})."
        return Suspicion("padding", f"{share} of the samples have the same truth, prediction and std.", fix)
    sizes = np.abs(error[~there]).astype(np.float32)
    rounded = 2 * np.unique(sizes, return_counts=True)[1].max() > count  # another size is about as frequent
    if rounded or len(np.unique(target[there])) < 0.5 * count:
        return None
    return Suspicion(
        "filled truth",
        f"{share} of the errors are exactly 0.",
        "If the truth was filled with predictions there, mask these samples: mask=(y_true == y_pred). If the model "
        "was trained on them, score held-out data.",
    )


def _of_truth(target: FloatArray, mean: FloatArray, std: FloatArray, group: Any) -> Suspicion | None:
    error, n = target - mean, len(target)
    with np.errstate(over="ignore", under="ignore"):
        square, bias, chance = float(np.mean(np.square(error))), float(error.mean()), 1 / math.sqrt(n)
    if n < FEWEST or not 0 < square < math.inf:  # none, or beyond float64
        return None
    if np.ptp(target) == 0 < np.ptp(mean) and square > 4 * float(np.mean(np.square(std))):
        text = f"All true values are exactly {format_number(float(target[0]))}."
        return Suspicion("constant truth", text, "Is mask= inverted? It is True where samples are left out.")
    of_target, of_mean = float(target.var()), float(mean.var())
    both = of_target > 0 and of_mean > 1e-12 * square
    spreads = math.sqrt(of_target) * math.sqrt(of_mean)  # the product of the variances may vanish
    correlation = (of_target + of_mean - float(error.var())) / 2 / spreads if both else 0.0
    slope = correlation * math.sqrt(of_target / of_mean) if both else math.nan
    if correlation >= max(0.3, 5 * chance) and abs(math.log(slope)) >= math.log(3):
        far = [abs(values.mean()) > 0.1 or abs(values.std() - 1) > 0.1 for values in (target, mean)]
        apart = abs(target.mean() - mean.mean()) > 0.1 * max(math.sqrt(of_target), math.sqrt(of_mean))
        if far[0] != far[1] and (apart or slope < 1):
            one, other = ("targets", "predictions") if far[1] else ("predictions", "targets")
            return Suspicion(
                "standardized",
                f"The {one} have mean 0 and standard deviation 1, the {other} do not.",
                "Standardize both or neither.",
            )
        if abs(math.log(slope)) >= math.log(8) and correlation >= max(0.5, 10 * chance):
            start = float(target.mean() - slope * mean.mean())
            return Suspicion(
                "unit",
                f"True values are {format_number(start)} {'+' if slope > 0 else '-'} {format_number(abs(slope))} x "
                f"prediction (correlation {correlation:.2f}).",
                "Are y_true and y_pred in the same unit?",
            )
    if bias**2 >= 0.9 * square and bias**2 >= 4 * float(np.mean(np.square(std))):
        return Suspicion(
            "offset",
            f"Nearly all of the error is one offset: y_true - y_pred is {format_number(bias)} on average, with a "
            f"spread of only {format_number(float(error.std()))}.",
            "Are both in the same unit and centered alike?",
        )
    is_opposite = np.mean((target > np.median(target)) == (mean > np.median(mean))) < OPPOSITE
    if is_opposite and float(np.mean(np.square(target + mean))) < square / 4:
        text = f"True values fall where predictions rise (correlation {correlation:.2f})."
        return Suspicion("sign", text, "Is the sign of one of them reversed?")
    claimed = min(1.0, math.sqrt(of_mean / of_target)) if of_target > 0 else 0.0
    if group is not None and both:  # their products, not their errors, tell how many samples count
        product = (target - target.mean()) * (mean - mean.mean())
        chance = float(np.linalg.norm(np.bincount(group, product))) / n / spreads
    most = (0.3 if group is None else 0.45) * claimed - 2.6 * chance
    alike = -min(4 * chance, 0.3) <= correlation <= min(4 * chance, 0.15, most)
    if of_mean >= 0.2 * of_target and alike and bias**2 <= 0.1 * of_target:
        random = math.sqrt(of_target + of_mean + bias**2)
        return Suspicion(
            "shuffled",
            f"Predictions do not correlate with the truth ({correlation:.2f}): rmse "
            f"{format_number(math.sqrt(square))} is about that of shuffled pairs, {format_number(random)}.",
            "Are both in the same order along every axis?",
        )
    return None


def _corrupt_target(error: FloatArray) -> Suspicion | None:
    if len(error) < FEWEST:
        return None
    size = np.abs(error)
    second, first = (float(value) for value in np.partition(size, -2)[-2:])
    if not first > 30 * second > 0:
        return None
    square = float(np.sum(np.square(size / first, dtype=np.float64)))
    if square >= 2:
        return None
    rest = first * math.sqrt(max(square - 1, 0.0) / (len(error) - 1))
    return Suspicion(
        "corrupt target",
        f"One error ({format_number(first)}) is {format_number(first / second)} times as large as the next.",
        f"Is that target corrupt? Without it rmse is {format_number(rest)}.",
    )


def _literal(value: float) -> str:
    """Return a number as it is typed in code, where it must be equal."""
    return repr(float(value)).removesuffix(".0")


def _larger(here: float, rest: float) -> str:
    """Say how much larger errors of some samples are."""
    size = format_number(here, 2, compact=True)
    return f"with errors {size} times the stated size; elsewhere {rest:.2f} times."


def _missing_code(target: FloatArray, z: FloatArray) -> Suspicion | None:
    value, count = np.unique(target, return_counts=True)
    n = len(target)
    for place in np.argsort(-count, kind="stable")[:3]:
        if count[place] < max(5, 0.005 * n) or len(value) < 3:
            return None
        there = target == value[place]
        here, rest = root_mean_square(z[there]), root_mean_square(z[~there])
        others = target[~there]
        spread = float(others.std())
        near = count[max(0, place - 5) : place + 6].copy()
        near[min(place, 5)] = 0
        frequent = count[place] >= 10 and near.max() * 10 < count[place]
        filled = abs(value[place] - others.mean()) <= 1e-3 * spread
        beyond = bool(value[place] < others.min() or value[place] > others.max())
        alien = bool(value[place] < others.min() - spread or value[place] > others.max() + spread)
        listed = value[place] in CODES
        lonely = np.mean(np.abs(others - value[place]) <= 0.1 * spread) <= 0.1 * count[place] / n
        least = 2 if listed and beyond else 3
        code = here >= least * rest and lonely and (listed or alien) and (frequent or beyond)
        if not code and not (filled and frequent):
            continue
        share, named = format_number(100 * count[place] / n, 2), _literal(value[place])
        return Suspicion(
            "missing code",
            f"{share} % of the true values are exactly {named}, "
            + (_larger(here, rest) if code else "the mean of all others."),
            f"If {named} stands for missing, mask it: mask=(y_true == {named}).",
        )
    return None


def _recurring(name: str, of: str, code: str, values: FloatArray, z: FloatArray) -> Suspicion | None:
    """Recognize a single value that recurs, though no other does, and whose errors are far too large.

    A true value such as 0 may be honest where stds make room for it: then those of all others are too large.
    """
    value, count = np.unique(values, return_counts=True)
    place = int(count.argmax())
    most, next_most = int(count[place]), int(np.partition(count, -2)[-2]) if len(count) > 1 else 0
    if most < max(10, OF_FILLED * len(values)) or 10 * next_most > most or 2 * most > len(values):
        return None
    named, there = _literal(value[place]), values == value[place]
    if code == "y_true" and root_mean_square(z[~there]) < OF_OTHERS:
        return None
    cure = f", or is a sensor stuck? Then mask them: mask=({code} == {named})."
    return _placeholder(name, f"{of} are exactly {named}", there, z, LARGER_FILLED, cure)


def _placeholder(name: str, said: str, there: Any, z: FloatArray, least: float, fix: str) -> Suspicion | None:
    """Take samples for placeholders if their errors are so many times as large as others."""
    here, rest = root_mean_square(z[there]), root_mean_square(z[~there])
    text = f"{format_number(100 * float(there.mean()), 2)} % of the {said}, {_larger(here, rest)}"
    return Suspicion(name, text, f"Are these placeholders{fix}") if here >= least * rest else None


def _near_constant(std: FloatArray) -> Suspicion | None:
    ordered = np.sort(std)
    if ordered.std() < ALIKE * ordered.mean() or len(std) < FEWEST:
        return None
    held = np.searchsorted(ordered, ordered * (1 + ALIKE), side="right") - np.arange(len(ordered))
    share = float(held.max()) / len(ordered)
    if share >= 0.9:
        value = float(ordered[held.argmax()] * (1 + ALIKE / 2))
        return Suspicion(
            "near-constant std",
            f"{format_number(100 * share, 2)} % of the stds lie within 1 % of {format_number(value)}: the ranking "
            f"rests on the other {format_number(100 * (1 - share), 2)} % (a border?).",
            "",
        )
    return None


def no_noise(error: FloatArray, std: FloatArray) -> Suspicion | None:
    """Recognize draws, far too near to each other, that lack the noise of the data."""
    factor = root_mean_square(error / std)
    if len(error) < FEWEST_STDS or factor < NOISE_ABOVE:
        return None
    made, text = _with_noise(error, std)
    fits = _gap(error, made) <= 0.025 + 1 / math.sqrt(len(error))
    if not (fits and surely_fall(_losses(error, std * factor), _losses(error, made), 3)):
        return None
    return Suspicion(
        "no noise",
        f"A constant noise seems to be missing: {text}",
        "If draws leave out the noise of the data, as MC dropout does, add noise of that std to each draw, or pass "
        "the members' stds too: from_ensemble(y_true, means, stds).",
    )


def _with_noise(error: FloatArray, std: FloatArray) -> tuple[FloatArray, str]:
    """Return stds to which a constant noise is added, so that errors have the stated size, and how well they fit."""
    square, variance = np.square(error), np.square(std)
    low, high = 0.0, float(square.max())
    for _ in range(200):  # the mean falls as the added variance grows
        middle = (low + high) / 2
        low, high = (middle, high) if np.mean(square / (variance + middle)) > 1 else (low, middle)
    added, factor = math.sqrt((low + high) / 2), root_mean_square(error / std)
    made = np.hypot(std, added)
    names = f"sqrt(std^2 + {format_number(added)}^2)", f"{format_number(factor)} times the std"
    scored = zip((_nll(error, each) for each in (made, std * factor)), names, strict=True)
    (nll, better), (other, worse) = sorted(scored)
    return made, f"{better} fits better (nll {format_number(nll)}) than {worse} (nll {format_number(other)})."


def _spread_of_means(error: FloatArray, std: FloatArray, members: int) -> Suspicion | None:
    larger = 1 + 0.2 * math.sqrt(max(FEWEST_STDS / len(error), 1.0))
    if len(error) < FEWEST or root_mean_square(error / std) <= larger:
        return None
    return Suspicion(
        "spread of means",
        f"The std is the spread of {members} members' means only, without the noise of the data. "
        + _with_noise(error, std)[1],
        "Pass the members' stds too: from_ensemble(y_true, means, stds). Without them, pass what fits better as "
        "y_std. If the members are draws that include the noise, use from_samples.",
    )


FEWEST_CURED = 200
"""With fewer samples, halves tell little of a recalibration."""
TWO_SAMPLES = 1.628
"""1 % point of the largest gap between two samples, in roots of the sum of the inverses of their sizes."""
SHAPE_AT = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Levels of the quantiles that tell whether a cure leaves a wrong shape."""
MOST_FALLS = 16.0
"""The most that the loss of one sample counts for: as if a probability of 0 were 1e-7."""
GAIN = 0.5
"""ENCE after a cure: at most this share of what it was; it removes what is wrong, no mere fifth of it."""


@dataclass(frozen=True)
class Cure:
    """A recalibration that helps, and a score before and after it, both of samples it did not see.

    Its method is None if none that was tried helps; its score is "" if samples were too few to try any.
    """

    method: str | None = None
    before: float = math.nan
    after: float = math.nan
    score: str = "ence"
    removes: bool = True
    """Whether no error is left that is more than chance; else there is less of it."""
    instead: str = (
        "check whether parts differ (pass by=, such as the site of each sample) or values were rounded (pass exact "
        "ones); else change the model"
    )
    """What to do if no recalibration helps."""
    step: str = "Recalibrate"
    """What to do with the method, and what to check before."""


def alike_across(
    samples: Any, dependence: Any, errors: FloatArray, also: Sequence[FloatArray]
) -> Suspicion | None:
    """Suspect that samples belong together across groups or in rows and columns of a table, or that groups are times.

    Groups may be sorted by ``also``.
    """
    if samples.is_crossed(dependence, errors):
        alike, instead = "Errors are alike in each row of the array, and in each column too", ""
        if samples.group is not None:
            alike = (
                "The first samples of all groups have similar errors, and so have the second ones, and so on"
            )
            instead = ", in place of yours"
        return Suspicion(
            "crossed groups",
            f"{alike}: they are not independent.",
            f"Pass for each sample what they share: a date as groups={instead}, a lead time or station as by=.",
        )
    if samples.in_sequence(errors, also):
        return Suspicion(
            "groups in sequence",
            "Each group has errors like those of the group before, as dates have: they are not independent.",
            "Replace groups= by order=, the time of each sample, or by groups of neighboring ones.",
        )
    return None


def halves_of(n: int, group: IntArray | None, fewest: int = FEWEST_CURED) -> IntArray | None:
    """Draw the half of each of n samples, or of groups numbered from 0; None if samples are too few."""
    if n < fewest:
        return None
    unit = np.arange(n) if group is None else group
    return np.asarray(np.random.default_rng(0).permutation(int(unit.max()) + 1)[unit] % 2)


def find_cure(
    rows: Mapping[str, Any],
    group: IntArray | None,
    settings: Settings,
    *,
    shape: bool = False,
    label: IntArray | None = None,
) -> Cure | None:
    """Return the simplest recalibration after which neither size, places nor shape are wrong.

    If only the shape still is, a table of quantiles, which mends the size too. If there is none, the one that lowers
    ENCE most, if it halves it, though some error is left. Of a wrong ``shape``, that table is looked at alone. One
    without a method says that none helps; None, that this is not known.

    Each half of the samples (or of the groups) gets the parameters that were fitted to the other.

    Parameters
    ----------
    rows : mapping of array, shape (n,)
        ``target``, ``mean``, ``std``, and ``weight`` if there are weights.
    group : array of int, shape (n,), or None
    settings : Settings
    label : array of int, shape (n,), optional
        Of ``by=``: no label may be wrong either.
    """
    every = some_of(len(rows["std"]), MOST_CURED)
    needed = [name for name in ("target", "mean", "std", "weight") if name in rows]
    kept = {name: np.asarray(rows[name], np.float64)[every] for name in needed}
    unit = None if group is None else np.unique(group[every], return_inverse=True)[1]
    label = None if label is None else label[every]
    side = halves_of(len(kept["std"]), unit)
    if side is None:
        return None
    if shape:
        return _cure_of_shape(kept, unit, side, settings)
    before, best = _ence(kept, settings), Cure()
    for method in (StdScaling, StdIsotonic):
        made = kept["std"].copy()
        try:
            for half in (side == 0, side == 1):
                known = Statistics.exact(REGRESSION, {name: column[~half] for name, column in kept.items()})
                made[half] = method.fit(known, settings, FittedOn(len(side), "exact")).new_std(made[half])
        except RecalibrationError:
            continue
        cured = {**kept, "std": made}
        if np.all(made > 0):
            after, removes = _ence(cured, settings), _is_right(cured, unit, label)
            was, falls = (_losses(each["target"] - each["mean"], each["std"]) for each in (kept, cured))
            has_shape = _has_shape(cured, unit)
            if removes and not has_shape and method is StdScaling and "weight" not in kept:
                of_shape = _cure_of_shape(kept, unit, side, settings)
                if of_shape is not None and of_shape.method and of_shape.removes:
                    return of_shape
            if removes and after <= GAIN * before and np.average(falls - was, weights=kept.get("weight")) < 0:
                return Cure(method.method, before, after, removes=has_shape)
            if removes and best.method is None and "weight" not in kept:  # without an error, ENCE is not 0
                nll = Cure(method.method, float(was.mean()), float(falls.mean()), "nll", has_shape)
                return nll if surely_fall(was, falls) else None
            if removes:
                return best if best.method else None
            if after <= GAIN * before and (best.method is None or after < best.after):
                best = Cure(method.method, before, after, removes=False)
    return best


def _cure_of_shape(
    rows: Mapping[str, FloatArray], group: IntArray | None, side: IntArray, settings: Settings
) -> Cure | None:
    """Return the table of quantiles if it halves the largest gap, in each half by what was fitted to the other.

    It leaves an error where the shape depends on the standard deviation or on the prediction.
    """
    std, mean = rows["std"], rows["mean"]
    z, before, after = (rows["target"] - mean) / std, 0.0, 0.0
    pit = np.empty_like(z)
    for half in (side == 0, side == 1):
        known = Statistics.exact(REGRESSION, {name: column[~half] for name, column in rows.items()})
        try:
            made = CdfIsotonic.fit(known, settings, FittedOn(len(side), "exact"))
        except RecalibrationError:  # every error is the same, or beyond float64
            return None
        before += _largest_gap(special.ndtr(z[half])) / 2
        pit[half] = np.interp(z[half], made.z, made.levels)
        after += _largest_gap(pit[half]) / 2
    error = std * special.ndtri(np.clip(pit, 0.5 / len(pit), 1 - 0.5 / len(pit)))
    removes = after <= TWO_SAMPLES * math.sqrt(4 / len(side))
    removes = removes and not find_places(Errors(error, std, mean, group=group)).found()
    if after <= GAIN * before:
        return Cure(CdfIsotonic.method, before, after, "pit_ks", removes)
    return None if removes else Cure()


def _largest_gap(pit: FloatArray) -> float:
    """Return the largest distance of a distribution from uniform."""
    return float(np.abs(np.sort(pit) - (np.arange(len(pit)) + 0.5) / len(pit)).max())


def _is_right(rows: Mapping[str, FloatArray], group: IntArray | None, label: IntArray | None) -> bool:
    """Check that neither the size nor places of standard deviations are wrong, combinations of halves, nor labels."""
    mean, std = rows["mean"], rows["std"]
    errors = Errors(rows["target"] - mean, std, mean, rows.get("weight"), group)
    halves = [(column > np.median(column)).astype(np.int64) for column in (std, mean)]
    found = find_places(errors).found()
    for each in (halves[0] + 2 * halves[1], label):
        if each is not None:
            names, cell = np.unique(each, return_inverse=True)
            found = (*found, *find_strata(errors, cell, [str(name) for name in names]).found())
    wrong = any(each.quantity == "scale" or each.on == "label" for each in found)
    return grade_of_factor(*size_of(errors.z, errors.units)) in ("fine", "unclear") and not wrong


def _has_shape(rows: Mapping[str, FloatArray], group: IntArray | None) -> bool:
    """Check that standardized errors are normal: that shares below some of their quantiles are as stated."""
    z = (rows["target"] - rows["mean"]) / rows["std"]
    for level in SHAPE_AT:
        below = (z <= special.ndtri(level)).astype(float)
        value, *limits = mean_limits(below, rows.get("weight"), group, 1 - 0.01 / len(SHAPE_AT))
        if abs(value - level) > NEGLIGIBLE_SHAPE and not limits[0] <= level <= limits[1]:
            return False
    return True


def _ence(rows: Mapping[str, FloatArray], settings: Settings) -> float:
    return ERROR.score(Statistics.exact(REGRESSION, rows), settings, Reduction("absolute"))
