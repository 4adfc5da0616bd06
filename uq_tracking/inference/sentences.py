"""The findings of a regression in plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from uq_tracking.formatting import format_factors, format_number
from uq_tracking.inference import words
from uq_tracking.inference.findings import Findings
from uq_tracking.inference.places import Part, Pattern, Stratum
from uq_tracking.settings import Settings

if TYPE_CHECKING:
    from uq_tracking.inference.regression import Few

UNORDERED = (
    "neighboring errors are alike, but stored statistics keep no samples in their order; log with groups="
)
LASTING = "What is fitted to the past will not hold if this goes on."
COVARIATES = {"std": "standard deviations", "mean": "predictions"}


def of_calibration(calibration: str, found: Findings, settings: Settings, few: Few | None = None) -> str:
    """Say how calibrated the standard deviations are."""
    if few is not None:
        return words.of_few(few)
    parts = [_of_scale(calibration, found, settings), *_of_places(found, settings)]
    if calibration == "miscalibrated in shape":
        parts.append(_of_shape(found, settings))
    return " ".join(part for part in parts if part)


def of_bias(found: Findings, settings: Settings) -> str:
    """Say that predictions are one-sided, if they are by more than chance and it matters; else ""."""
    if found.below_median is not None:
        share = found.below_median
        if share.low <= 0.5 <= share.high:
            return ""
        side = "high" if share.value > 0.5 else "low"
        low, high = words.percent(share.low), words.percent(share.high)
        return (
            f"{words.percent(share.value)} ({low} to {high}) of the true values lie below the predicted median: "
            f"predictions are too {side}."
        )
    bias, in_std = found.bias, found.bias_in_std
    if bias is None or bias.low <= 0 <= bias.high or found.bias_grade == "fine":
        return ""
    unit = f" {settings.unit}" if settings.unit else ""
    side, sign = ("high", 1) if bias.value > 0 else ("low", -1)
    ends = sorted((sign * bias.low, sign * bias.high))
    value, *limits = (format_number(part, compact=True) for part in (sign * bias.value, *ends))
    agrees = in_std is not None and (in_std.low > 0 if sign > 0 else in_std.high < 0)
    stds = f", {_stds(in_std.value)}" if in_std is not None and agrees else ""
    return f"Predictions are {value}{unit} too {side} on average ({' to '.join(limits)}{stds})."


def _of_scale(calibration: str, found: Findings, settings: Settings) -> str:
    scale = found.scale
    if scale is None:
        return ""
    value, low, high = format_factors(scale.value, scale.low, scale.high)
    slightly = "Slightly " if found.scale_grade == "slight" else ""
    if calibration == "overconfident":
        word = f"{slightly}overconfident".capitalize()
        return f"{word}: stated standard deviations are {value} times too small ({low} to {high})."
    if calibration == "underconfident":
        inverse = [1 / part if part > 0 else math.inf for part in (scale.value, scale.high, scale.low)]
        value, low, high = format_factors(*inverse)
        word = f"{slightly}underconfident".capitalize()
        if scale.high < 1 and not found.dominated:
            return f"{word}: stated standard deviations are {value} times too large ({low} to {high})."
        half = next(share for share in found.shares if share.level == 0.5)
        return (
            f"{word}: stated standard deviations are about {value} times too large; the 50 % intervals contain "
            f"{words.percent(half.value)}. A few large errors decide the factor, so it is uncertain."
        )
    bulk, tail = f"{found.bulk:.2f}", found.tail
    if calibration == "overconfident in the tails" and tail is not None:
        return (
            f"Overconfident in the tails: {words.percent(tail.share)} of the errors exceed 3 standard deviations "
            f"(0.27 % would) and carry {words.percent(tail.carried)} of the squared errors; the bulk is {bulk} times "
            "the stated size. Look at those errors. Do not widen every standard deviation."
        )
    if calibration == "too wide for most, too narrow for a few":
        return (
            f"Too wide for most, too narrow for a few: 68 % of the errors lie within {bulk} stated standard "
            f"deviations, but a few are so large that over all, errors are {value} times the stated size. Look at "
            "those few."
        )
    if calibration == "overconfident, most in the tails":
        return (
            f"Overconfident: stated standard deviations are {bulk} times too small for most errors, {value} times "
            "over all, since tails are heavy."
        )
    along = set() if found.places is None else {each.on for each in found.places.patterns}
    tested = [name for on, name in COVARIATES.items() if on in along]
    best = f"errors are {value} times the stated size ({low} to {high})."
    if calibration == "calibrated":
        fifths = " and of the ".join(tested)
        everywhere = f" In every fifth of the {fifths} that size is right within 5 %." if tested else ""
        return f"Calibrated within 2 %: {best}{everywhere}"
    biased = bool(of_bias(found, settings))
    if calibration == "consistent with calibrated":
        if biased:
            return f"Consistent with calibrated in size: {best}"
        strata = sum(part.word != "too few" for part in found.places.strata) if found.places else 0
        places = {
            f"where {' or '.join(tested)} are small or large": bool(tested),
            f"in any of {strata} strata": strata > 1,
            "a drift along the order of the samples": "order" in along,
        }
        nowhere = "".join(f", nor {place}" for place, is_tested in places.items() if is_tested)
        error = "no error found" if found.is_clean() else "no error found that matters"
        return f"Consistent with calibrated: {error}{nowhere}; {best}"
    if calibration == "not enough data":
        no_error = "" if biased else "no error is found, but "
        return f"Too few data to tell: {no_error}errors could be {low} to {high} times the stated size."
    if calibration == "biased":
        word = "Slightly biased" if found.bias_grade == "slight" else "Biased"
        return f"{word}: {of_bias(found, settings).replace('Predictions', 'predictions', 1)}"
    return f"Over all, errors are {value} times the stated size ({low} to {high})."


def _of_shape(found: Findings, settings: Settings) -> str:
    if found.shape is None:
        return ""
    family = "stated" if settings.family == "gaussian" else f"stated {settings.family.replace('_', ' ')}"
    word = "Slightly wrong" if found.shape_grade == "slight" else "Miscalibrated"
    return (
        f"{word} in shape: errors do not follow the {family} distribution; some quantiles are off by "
        f"{format_number(100 * found.shape.gap, 2)} percentage points."
    )


def _of_places(found: Findings, settings: Settings) -> list[str]:
    if found.places is None:
        return []
    unit = f" {settings.unit}" if settings.unit else ""
    texts = []
    for each in found.places.found():
        if each.on == "label":
            texts.append(_of_strata(each, found.places.strata, unit))
        elif each.on == "order":
            texts.append(_of_drift(each, found.places.parts[each.on], unit))
        else:
            texts.append(_of_pattern(each, found.places.parts[each.on], unit))
    return texts + [LASTING] * any(each.on == "order" for each in found.places.found())


def _of_strata(pattern: Pattern, strata: tuple[Stratum, ...], unit: str) -> str:
    """Name the worst label: ``Stratum 'coast' is 1.8 times overconfident (1.6 to 2.0); ...``."""
    part = strata[pattern.named[0]]
    if pattern.quantity == "bias":
        text = f"In stratum '{part.name}' predictions are {_bias_of(part, unit)}"
    elif part.factor_low <= 1 <= part.factor_high:
        text = f"Stratum '{part.name}' is unlike the others: its {_size_of(part)}"
    else:
        times = _factor_of(part).replace("too small", "overconfident").replace("too large", "underconfident")
        text = f"Stratum '{part.name}' is {times}"
    others = len(pattern.named) - 1
    alike = sum(each.word != "too few" for each in strata if each.of == part.of) - others - 1
    also = f"; {others} other{'s differ' if others > 1 else ' differs'} too" if others else ""
    return text + also + (f"; the other {alike} show no difference." if alike > 1 else ".")


def _of_drift(pattern: Pattern, parts: tuple[Part, ...], unit: str) -> str:
    """Compare the first samples of an order with the last."""
    first, last = parts[0], parts[-1]
    shares = [f"{round(100 * part.share, 9):.0f} %" for part in (first, last)]
    what = f"{'Slight drift' if pattern.grade == 'slight' else 'Drift'} along the order of the samples"
    if pattern.quantity == "bias":
        return (
            f"{what}: predictions are {_bias_of(first, unit)}, in the first {shares[0]}, and {_bias_of(last, unit)}, "
            f"in the last {shares[1]}."
        )
    sizes = []
    for part in (first, last):
        value, low, high = format_factors(part.factor, part.factor_low, part.factor_high)
        sizes.append(f"{value} ({low} to {high})")
    grow = "grow" if pattern.slope > 0 else "shrink"
    return (
        f"{what}: errors {grow} from {sizes[0]} times the stated size in the first {shares[0]} to {sizes[1]} times "
        f"in the last {shares[1]}."
    )


def _of_pattern(pattern: Pattern, parts: tuple[Part, ...], unit: str) -> str:
    places = pattern.named or (0, len(parts) - 1)
    slightly = "slightly " if pattern.grade == "slight" else ""
    if pattern.quantity == "scale" and pattern.on == "std" and pattern.slope:
        what = f"Stated standard deviations {'vary' if pattern.slope < 0 else 'differ'} {slightly}too "
        what += "much" if pattern.slope < 0 else "little"
    elif pattern.quantity == "bias" and pattern.on == "mean" and pattern.slope:
        what = f"Predictions vary {slightly}too {'little' if pattern.slope > 0 else 'much'}"
    elif pattern.quantity == "scale":
        what = f"Stated standard deviations are {slightly}wrong in places"
    else:
        what = f"Predictions are {slightly}one-sided in places"
    return f"{what}: {'; '.join(_of_part(pattern, parts, place, unit) for place in places)}."


def _of_part(pattern: Pattern, parts: tuple[Part, ...], place: int, unit: str) -> str:
    """Describe one part: ``the smallest 20 % (up to 0.61 m) are 1.51 times too small (1.33 to 1.72)``."""
    part, share = parts[place], f"{round(100 * parts[place].share, 9):.0f} %"
    low, high = format_number(part.low, 2), format_number(part.high, 2)
    smallest, largest = ("smallest", "largest") if pattern.on == "std" else ("lowest", "highest")
    if place == 0:
        which = f"the {smallest} {share} (up to {high}{unit})"
    elif place == len(parts) - 1:
        which = f"the {largest} {share} (from {low}{unit})"
    else:
        which = f"the {share} from {low} to {high}{unit}"
    if pattern.quantity == "bias":
        among = "" if pattern.on == "mean" else "where standard deviations are "
        return f"{among}{which} {'are' if pattern.on == 'mean' else 'predictions are'} {_bias_of(part, unit)}"
    where = f"where {COVARIATES[pattern.on]} are {which}"
    if part.factor_low <= 1 <= part.factor_high:
        return f"{where}, {_size_of(part)}"
    return f"{which if pattern.on == 'std' else f'{where}, standard deviations'} are {_factor_of(part)}"


def _size_of(part: Part) -> str:
    value, low, high = format_factors(part.factor, part.factor_low, part.factor_high)
    return f"errors are {value} times the stated size ({low} to {high})"


def _factor_of(part: Part) -> str:
    factors = (part.factor, part.factor_low, part.factor_high)
    if part.factor < 1:
        factors = (1 / max(factors[0], 1e-300), 1 / max(factors[2], 1e-300), 1 / max(factors[1], 1e-300))
    value, low, high = format_factors(*factors)
    return f"{value} times too {'small' if part.factor >= 1 else 'large'} ({low} to {high})"


def _bias_of(part: Part, unit: str) -> str:
    sign = 1 if part.bias > 0 else -1
    low, high = sorted((sign * part.bias_low, sign * part.bias_high))
    size, *limits = (format_number(each, 2) for each in (abs(part.error), low, high))
    value = _stds(part.bias)
    side = "low" if part.bias > 0 else "high"
    return f"{size}{unit} too {side}, {value} ({' to '.join(limits)})"


def _stds(number: float) -> str:
    """Say how many standard deviations these are."""
    text = format_number(abs(number), 2)
    return f"{text} standard deviation{'s' * (text != '1')}"
