"""The sentences of a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from uq_tracking.formatting import format_factors, format_number
from uq_tracking.inference.places import PARTS, PER_PART, Part, Pattern, Places, Stratum
from uq_tracking.settings import Settings

if TYPE_CHECKING:
    from uq_tracking.inference.class_samples import OffPart
    from uq_tracking.inference.classes import Found, OffClass
    from uq_tracking.inference.doctor import Cure, Suspicion
    from uq_tracking.inference.events import Event, Tested
    from uq_tracking.inference.findings import Findings, Shape, Share, Tail
    from uq_tracking.inference.regression import Few, Inside
    from uq_tracking.inference.samples import Dependence
    from uq_tracking.inference.verdict import Estimate, Ranked, Verdict

SLIGHT = 1.05
"""Factors below this are called slight."""
RARE = 0.2
"""Rates below this are compared by their ratio."""
MORE = "Pass more samples."
TRY_ISOTONIC = (
    "pass at least 2,000 samples, 150 of each class, so that isotonic can be tried; if parts differ, also pass by=, "
    "such as the site of each sample"
)
NO_SIGN = "No sign that the uncertainty ranks errors better than chance."
REPEATED = "maps have pixels in common, as crops, flips and overlapping tiles do"
STUDENT_T, SKEWED, OWN = "that Student t", "a skewed distribution", "has its own probability"
WHOLE_NUMBERS = "a distribution of whole numbers, as true values are (draws of counts, for example)"
IF_CONFIDENCES = (
    "None is below 0.5: if these are confidences in the predicted class, pass the probability of class 1; if each is "
    "the confidence that an answer is right, state the observed rate instead."
)
NO_CURE = f"{NO_SIGN[:-1]}, and recalibration does not change that."
IF_INDEPENDENT = (
    "This assumes independent samples: if some belong together (pixels, time steps), pass groups=."
)
IF_SORTED = "If rows are sorted by y_true, even in part, pass groups=False; if they are in time, order=."
UNRANKED = "Whether the uncertainty ranks errors cannot be told either."
MOST_NAMED = 3
"""Other labels that are named one by one."""
EQUAL_CONFIDENCES = "All confidences are equal, so they cannot rank errors."
EQUAL_STDS = "All standard deviations are equal, so they cannot rank errors."
FAR_BEYOND = 3.0
"""Size of all errors, in that of most, beyond which a few may be mistakes."""
LITTLE = 0.2
"""A useful ranking that achieves less than this share of the oracle's gain is said to know little."""
NEAR_THE_MIDDLE = 0.25
"""Distance from the median below which the quantile at the other side says nothing more."""
BEYOND_THREE = 0.0027
"""Share of normal errors beyond three standard deviations."""
ONE_SIDED = 0.8
"""Mean of errors, over their size, from which on nearly all are on one side."""
HARDLY = 0.25
"""Probabilities whose calibration slope is surely below this are hardly related to the event."""
LOOK = "Look at the largest errors first: is their truth right, and from the right row?"
LOOK_FIRST = f"{LOOK} A correction that follows them makes most predictions worse."
OF_MEDIANS = (
    "If predictions are medians, as exp of a mean of logs is, pass means; else recalibrate with cdf_isotonic, or "
    "state {}. Then score other samples."
)
OF_CASES = (
    "Errors of each case (image, series) are all alike: look at cases one by one, as each may have a scale or an "
    "offset of its own, before you correct all in the same way."
)
OF_SKEWED = (
    "As errors are skewed, recalibrate with cdf_isotonic (a new shape of the distribution, and its mean) or state "
    "{}, then score other samples."
)
OF_SPELLS = (
    "Errors come in calm and wild spells, which the standard deviations {} recent errors (as GARCH does), or pass a "
    "label of each sample's spell as by=."
)
BESIDE_SPELLS = "do not follow: predict them from", "follow in part at most: give more weight to"
"""What standard deviations do that jump from sample to sample, or change slowly."""
AT_LIMIT = "If predictions are clipped at a limit, no correction mends that: mask them (mask=), and score the others."
NO_CURVE = "Find out what else errors depend on: no curve of predictions that was tried makes them smaller."
ONLY_SHAPE = "No error is found in the shape. The scale is not tested"
OF_FITTED = "The fit is exact, as after a recalibration that was fitted to these samples: score others."
MORE_FIRST = "Score more samples before you correct that."
SEPARATED = (
    "multiply all log odds by the factor of the lowest log loss on other samples: these probabilities separate the "
    "classes nearly without error, so that none can be fitted to them"
)
SPECIAL = "Find out what is special there before changing anything elsewhere."
OF_WAVE = "Find out what changes along the samples: no one correction fits them all."
NOT_FOR_LONG = "If this goes on, no fixed correction will hold: recalibrate regularly, on recent samples."
CHECK_LABELS = "Check those labels, or clip probabilities away from 0 and 1."
NO_ZEROS = "No class should get 0: recalibration first replaces 0 by half the least other probability. "
UNEVEN = "Miscalibrated in shape: {} are too high at some levels and too low at others (p {})"
OF_ZEROS = "pass the probabilities of all classes, or spread that share over those stated at about 0"
CLIP = (
    "Clip probabilities away from 0 and 1, at 1 / n if each is a share of n training samples, as of a leaf, "
    "neighbors or a calibration bin."
)
NO_ERROR, UNTOLD = ("calibrated", "consistent with calibrated"), "not enough data"
NO_CLAIM, IN_PLACES, IN_SHAPE = (*NO_ERROR, UNTOLD), "miscalibrated in places", "miscalibrated in shape"
UNORDERED = (
    "neighboring errors are correlated, but statistics keep no samples in their order; log with groups="
)
FEW_OF_LABELS = (
    "Whether labels of by= differ is not known: a label needs at least 20 samples, from 3 groups or independent "
    "stretches of rows. Pass coarser labels, such as a season, or the site of several groups."
)
OF_EQUAL = (
    "Many true values equal a quantile, and count half: right intervals then contain more than stated, so only "
    "widths that are too small are looked for."
)
OF_WEIGHTS = (
    "Samples of a class have equal weights: this holds for data in which classes are as frequent as these make "
    "them."
)
OF_TRUTH = (
    "Labels of by= are not judged: they are made of the truth, as classes and intervals of the truth are, in which "
    "even a right model looks biased. Pass labels that are known when predicting."
)
OF_VECTORS = "Whether components vary together as stated is not tested; variogram_score compares models."
UNLIKE = 1.25
"""Factor of the size of errors from which on a distribution of another shape may also be too wide or narrow."""
ENOUGH = 200
"""Samples of a stratum that a recalibration of its own needs."""
COVARIATES = {"std": "standard deviations", "mean": "predictions"}
_DOES = {
    "std_scaling": "one factor for all",
    "std_isotonic": "a factor for each size of std",
    "cdf_isotonic": "a new shape of the distribution: use its quantiles",
    "logistic": "a shift and a factor of the logits",
    "isotonic": "an increasing curve of probabilities",
    "temperature": "one divisor of the logits",
    "bias_temperature": "one divisor of the logits and a shift for each class",
}
"""What the recalibrations that a verdict names change."""
_SHORT = {
    "miscalibrated in shape": "wrong shape",
    "miscalibrated in places": "wrong in places",
    "consistent with calibrated": "looks calibrated",
    "calibrated": "calibrated within 2 %",
    "too wide for most, too narrow for a few": "too wide for most",
}


def if_sorted(said: str) -> str:
    """Ask whether rows are sorted, before more samples are asked for."""
    seen, asked, more = said.partition(MORE[:-1])
    return f"{seen}{IF_SORTED} Else {lowered(asked)}{more}" if asked else f"{said} {IF_SORTED}"


def of_weights(statistics: Any) -> str:
    """Say how many equally weighted samples weighted ones are worth; "" without weights."""
    n, effective = statistics.counts["n"], statistics.n_effective
    if effective == n:
        return ""
    return f" With these weights, the {n:,} samples count like {int(effective):,} equally weighted ones."


def of_mistakes(suspicions: Sequence[Suspicion], calibration: str, said: str) -> str:
    """Say which mistakes are likely, and little else: numbers of a wrong input mislead; "" if there are none."""
    mistakes = " Also: ".join(str(each) for each in suspicions if each.is_mistake)
    of_rows = any(each.name in ("missing code", "stuck truth") for each in suspicions)
    if calibration != "overconfident in few samples" or of_rows:  # that one leaves the others as they are
        settle = f'Until then, disregard the verdict "{calibration}".'
        said = "" if any(each.name == "classes" for each in suspicions) else settle
    return f"First check the input: {mistakes} {said}".rstrip() if mistakes else ""


def of_crossed(share: float) -> str:
    """Say in how many rows quantiles cross."""
    return f"Quantiles cross in {percent(share)} of the rows; they were sorted before scoring."


def is_little(recovered: float | None) -> bool:
    """Return whether a useful ranking recovers little of an oracle's gain."""
    return recovered is not None and recovered < LITTLE


def short(calibration: str, factor: float | None, ranking: str, recovered: float | None) -> str:
    """Calibration and ranking in a few words, the number first: ``1.49x overconfident, ranking 62 %``.

    The share is that of the oracle's gain; in a table of runs, the column shows only the first words.
    """
    if calibration == UNTOLD != ranking:
        calibration = "not judged"
    named = _SHORT.get(calibration, calibration)
    if calibration == "overconfident" and factor is not None:
        named = f"{_times(factor)}x overconfident"
    elif calibration == "underconfident" and factor:
        named = f"{_times(1 / factor)}x underconfident"
    ranks = {
        "useful": "ranking useful" if recovered is None else f"ranking {100 * recovered:.0f} %",
        "no better than constant": "no ranking",
        "worse than constant": "ranking backwards",
    }
    return f"{named}, {ranks[ranking]}" if ranking in ranks else named


def of_parts(verdicts: Mapping[str, Verdict], whole: Verdict | None = None) -> str:
    """Say which of several outputs or strata are wrong, the worst first, and which strata the ``whole`` names.

    >>> of_parts({})
    'Nothing to judge.'
    """
    factors = {name: found.scale.value for name, found in verdicts.items() if found.scale is not None}
    wrong = [name for name, found in verdicts.items() if found.calibration not in NO_CLAIM]
    wrong.sort(key=lambda name: -abs(math.log(max(factors.get(name, 1.0), 1e-300))))
    of, few = len(verdicts), sum(found.calibration == UNTOLD for found in verdicts.values())
    named = ", ".join(
        f"'{name}' ({short(verdicts[name].calibration, factors.get(name), '', None)})" for name in wrong
    )
    said = f"Errors in {len(wrong)} of {of}: {named}" if wrong else f"No error found in {of - few} of {of}"
    said += f"; too few data in {few}" * (few > 0)
    if few == of:
        said = f"Too few data in each of {of} to judge it alone" if of else "Nothing to judge"
    places = (whole and whole.places) or Places()
    of_labels = [each for each in places.found() if each.on == "label"]
    joint = [_also(places.strata[k], each, None) for each in of_labels for k in each.named]
    return f"{said}." + f" Judged together, errors in {', '.join(joint)}." * bool(few and joint)


def of_calibration(calibration: str, found: Findings, settings: Settings, few: Few | None = None) -> str:
    """Say how calibrated the standard deviations are."""
    if few is not None and few.where:
        of_one_side = abs(few.bias) > ONE_SIDED * few.carried
        side = f" (predictions are too {'low' if few.bias > 0 else 'high'})" * of_one_side
        return (
            f"Overconfident in few samples: {few.where}, errors are {few.carried:.2f} times the stated size{side}; "
            f"all other errors are {few.rest:.2f} times. Check the truth and inputs of those samples before changing "
            "any standard deviation."
        )
    if few is not None:
        count, total = (f"{round(number):,}" for number in (few.samples, few.of))
        share = min(math.floor(1000 * few.carried) / 10, 99.9)
        return (
            f"Overconfident in few samples: {count} of {total} carr{'ies' if count == '1' else 'y'} {share:g} % of "
            f"the squared standardized errors; all other errors are {few.rest:.2f} times the stated size. Look at "
            f"{'that one' if count == '1' else 'those'} before changing any standard deviation."
        )
    unit = f" {settings.unit}" if settings.unit else ""
    parts = []
    if found.scale is not None and calibration not in (IN_PLACES, IN_SHAPE):
        parts.append(_of_scale(calibration, found, found.scale, settings))
    if not math.isnan(found.left):
        narrow = (("standard deviations are", "distributions are"), ("too small", "too narrow"))
        for of_std, of_shape in (*narrow, ("too large", "too wide")):
            parts = [part.replace(of_std, of_shape) for part in parts]
    parts += _of_places(found, calibration, unit)
    if calibration == IN_SHAPE and found.shape is not None:
        family = "stated"
        if settings.family != "gaussian":
            family += f" {settings.family.replace('student_t', 'Student t')}"
        word = "Slightly wrong" if found.shape_grade == "slight" else "Miscalibrated"
        parts.insert(
            0,
            f"{word} in shape: errors do not follow the {family} distribution; {_of_shape(found, found.shape)}.",
        )
    return " ".join(part for part in parts if part)


def of_all(calibration: str, scale: Estimate | None) -> str:
    """Say how large errors are overall, where it is said of places or of the shape."""
    if calibration not in (IN_PLACES, IN_SHAPE) or scale is None:
        return ""
    return f"Overall, errors are {_times_stated(scale.value, scale.low, scale.high)}."


def _of_places(found: Findings, calibration: str, unit: str, level: float | None = None) -> list[str]:
    """Say what is wrong where: of quantiles and intervals, by what those of a ``level`` contain."""
    parts: list[str] = []
    places, leads = found.in_places, calibration == IN_PLACES
    recurring = [each for each in places.found() if each.made == "period"]
    for number, each in enumerate(places.found()):
        first = leads and not parts
        if each.made == "period" and each is not recurring[0]:
            continue
        if each.made == "period":
            parts.append(_of_period(recurring, places.strata, level))
        elif each.on == "label":
            parts.append(_of_strata(each, places.strata, level, leads=leads))
        elif each.on in ("order", "within"):
            parts.append(_of_drift(each, places.parts[each.on], is_known=level is None))
        else:
            said = _of_pattern(each, places.parts[each.on], unit, calibration, level, leads=first)
            follows = any(before.on == "label" for before in places.found()[:number])
            parts.append(f"Perhaps for the same reason, {lowered(said)}" if follows else said)
        if first:
            parts[0] = of_places(parts[0], slight=found.grade() == "slight")
    if any(each.on in ("order", "within") and each.slope for each in places.found()):
        parts.append(NOT_FOR_LONG)
    of_labels = [each for each in places.found() if each.on == "label"]
    if of_labels and all(each.quantity == "scale" for each in of_labels):
        named, made = [places.strata[each.named[0]] for each in of_labels], {each.made for each in of_labels}
        rest = of_each(places.enough, joint=len({part.of for part in named}) > 1)
        if level is not None:
            rest = f"In each stratum, multiply the widths by what makes {percent(level)} lie inside."
        if recurring:
            period, unit = named[0].of.split()[-2:]
            is_long = any(":" in part.name for part in places.strata if part.of == named[0].of)
            place = "part of the period, such as a month," if is_long else f"value of {unit[:-1]} % {period}"
            rest = f"Recalibrate each {place} separately."
        elif "area" in made:
            rest = "See their true outlines on a map of abs(error) / std, then recalibrate each separately."
            if any(part.name.startswith("map") for part in named):
                rest = "Find out what differs between maps (light, scene), and pass it as by=."
            elif any(part.name.startswith("axis") for part in named):
                rest = "Recalibrate each place along that axis separately."
        elif "cell" in made:
            rest = (
                "Fit std_scaling to each of these four parts, which the medians of std and prediction divide."
            )
        parts.append(rest)
    return parts if level is None else list(map(of_widths, parts))


def of_widths(said: str) -> str:
    """Name what intervals and quantiles state."""
    said = said.replace("Standard deviations", "Widths")
    return re.sub(r"standard deviations (?=are|vary|go)", "widths ", said)


def _of_shape(found: Findings, shape: Shape) -> str:
    """Say that tails are too heavy, or else which quantile is wrong by most."""
    tail, half = found.tail, of_heavy(found)
    if tail and tail.share > 2 * BEYOND_THREE and found.is_skewed():
        return f"they are skewed: {_one_sided_tail(tail)}"
    if half and tail:
        return (
            f"their tails are heavier. The 50 % intervals contain {percent(half.value)} of the true values, yet "
            f"{percent(tail.share)} of the errors exceed 3 standard deviations ({percent(BEYOND_THREE)} expected). "
            f"A Student t with the same standard deviations fits better: family='student_t', dof={_dof(half.value)}"
        )
    said = f"{percent(shape.below)} of the true values lie at or below the stated {percent(shape.level)} quantile"
    if shape.above is None or abs(shape.level - 0.5) < NEAR_THE_MIDDLE:
        return said
    return f"{said}, and {percent(shape.above)} above the {percent(1 - shape.level)} one"


def of_heavy(found: Findings) -> Share | None:
    """Return the share inside the 50 % intervals, too large, of errors with heavy tails; else None."""
    half = next((share for share in found.shares if share.level == 0.5), None)
    if half is None or found.shape is None or found.tail is None or found.is_skewed():
        return None
    return half if found.tail.share > 2 * BEYOND_THREE and half.value - 0.5 > found.shape.gap else None


def _one_sided_tail(tail: Tail) -> str:
    """Say on which side errors are large."""
    up, down = percent(tail.up), percent(abs(round(tail.share - tail.up, 9)))
    return (
        f"{up} of the true values lie more than 3 standard deviations above their prediction, and {down} below "
        f"({percent(BEYOND_THREE / 2)} expected each)"
    )


def _dof(inside: float) -> int:
    """Return the degrees of freedom of Student's t, of variance 1, that has this share in normal 50 % intervals."""
    dofs = np.arange(3, 31)
    share = 2 * special.stdtr(dofs, special.ndtri(0.75) * np.sqrt(dofs / (dofs - 2))) - 1
    return int(dofs[np.abs(share - inside).argmin()])


def of_bias(found: Findings, settings: Settings) -> str:
    """Say that predictions are one-sided, if they are by more than chance and it matters; else ""."""
    if found.below_median is not None:
        share = found.below_median
        if not share.is_off:
            return ""
        (side, step), low, high = _side(share), percent(share.low), percent(share.high)
        mend = f" {step.capitalize()} the median until 50 % do." * (not found.is_biased_in_places())
        if found.all_shifted:
            way = "down" if share.is_high else "up"
            mend = f" Shift all quantiles {way} equally, until 50 % do. Then score again."
        return (
            f"Predictions are too {side}: {percent(share.value)} of the true values ({low} to {high}) lie below the "
            f"predicted median.{mend}"
        )
    bias, in_std = found.bias, found.bias_in_std
    if found.bias_grade == "fine":
        return ""
    if bias is not None and found.is_biased():
        side, sign = ("high", 1) if bias.value > 0 else ("low", -1)
        ends = sorted((sign * bias.low, sign * bias.high))
        value, *limits = (format_number(part, compact=True) for part in (sign * bias.value, *ends))
        unit = f" {settings.unit}" if settings.unit else ""
        agrees = in_std is not None and (in_std.low > 0 if sign > 0 else in_std.high < 0)
        stds = f", or {_stds(in_std.value)}" if in_std is not None and agrees else ""
        return f"Predictions are {value}{unit} too {side} on average ({' to '.join(limits)}){stds}."
    if in_std is None or not found.certain_bias():
        return ""
    return f"Predictions are {_one_sided(in_std.value, in_std.low, in_std.high, ' on average')}."


def of_vectors(share: Share, correlation: float) -> str:
    """Say that vectors are wrong as a whole, and begin what is said of single components.

    ``correlation`` is the mean of those of their standardized errors.
    """
    value, low, high, stated = map(percent, (share.value, share.low, share.high, share.level))
    return (
        f"Miscalibrated in shape: whole vectors do not follow the stated distribution. Its {stated} ellipsoids "
        f"contain {value} of them ({low} to {high}). Keep the standard deviations, and replace the stated "
        "correlations by those of (y_true - y_pred) / y_std, "
        f"{format_number(round(correlation, 2) + 0.0)} on average. One by one:"
    )


def of_shift(found: Findings, settings: Settings) -> str:
    """Say how to correct all predictions: by a constant, or by a share of each standard deviation."""
    bias, in_std = found.bias, found.bias_in_std
    if found.multiple is not None:
        ratio = format_number(found.multiple)
        return (
            f"Multiply each prediction and its spread (for counts, its variance) by {ratio}, the ratio of true "
            "values to predictions"
        )
    if bias is not None and found.is_biased() and not found.shift_in_std:
        size = format_number(abs(bias.value), compact=True) + (f" {settings.unit}" if settings.unit else "")
        return f"Subtract {size} from each prediction" if bias.value > 0 else f"Add {size} to each prediction"
    if in_std is None:
        return "Correct the predictions by as much"
    share = f"{format_number(abs(in_std.value), 2)} * y_std"
    return f"Subtract {share} from each prediction" if in_std.value > 0 else f"Add {share} to each prediction"


def of_sizes(calibration: str, found: Findings, *, is_std: bool, are_counts: bool = False) -> str:
    """Say how to correct the sizes of errors along standard deviations or predictions, or of all; "" if not known."""
    on = {each.on for each in found.in_places.found() if each.quantity == "scale"}
    of_all = is_std and calibration in ("overconfident", "underconfident") and found.is_beyond_bias()
    if not on:
        return "recalibrate with std_scaling" * of_all
    if not on <= COVARIATES.keys():
        return ""
    fifth = f"each fifth of the {COVARIATES['mean' if 'mean' in on else 'std']}"
    if is_std:
        return f"fit std_scaling to {fifth}" if "mean" in on else "recalibrate with std_isotonic"
    if are_counts:
        return "state another distribution of counts, such as a negative binomial"
    return (
        f"in {fifth}, multiply the spread about the mean by the standard deviation of (y_true - mean) / std"
    )


def of_values(values: int) -> str:
    """Say how to correct few different probabilities of an event."""
    if values == 1:
        return "state the observed rate, or use a model that tells samples apart"
    return f"replace each of the {values} stated values by the rate of the event where it is stated"


def of_frequent(value: float, share: float) -> str:
    """Name a distribution of targets of which a share has the same value."""
    number = format_number(value)
    seen = f"{percent(share)} of the true values are {number}; mask them if they are padding"
    return f"a distribution in which {number} {OWN} ({seen})"


def of_step(calibration: str, found: Findings, settings: Settings, law: str, *, is_std: bool) -> str:
    """Say what to do where no recalibration was tried on held-out halves; ``law`` names a likely distribution."""
    scale, of_size = found.scale, ("overconfident", "underconfident", "overconfident, most in the tails")
    if calibration in of_size and scale is not None and not scale.low <= 1 <= scale.high:
        if found.single_values:
            is_all = found.multiple is not None and scale.low <= found.multiple <= scale.high
            what = of_shift(found, settings) if is_all else "State another distribution"
            return f"{what}, then score other samples."
        if calibration != of_size[-1]:
            spread = "standard deviations" if is_std else "the spread of each distribution about its mean"
            factor = format_factors(scale.value, scale.low, scale.high)[0]
            return f"Multiply {spread} by {factor}, then score other samples."
    if found.is_skewed() and calibration not in NO_CLAIM:
        return OF_SKEWED.format(law or SKEWED)
    if calibration == of_size[-1]:
        means = "family='student_t' for means and stds"
        return f"State heavier tails{f' ({means})' * is_std}, then score again."
    if calibration == IN_SHAPE and is_std and settings.family != "gaussian":
        return "Try other families, such as family='gaussian', and keep the one of the lowest nll."
    if calibration == IN_SHAPE:
        shown = "report.plot('pit_histogram') shows where it differs"
        if not is_std and scale is not None and not 1 / UNLIKE < scale.value < UNLIKE:
            kinds = ("wider", "heavier") if scale.value > 1 else ("narrower", "lighter")
            shown += "; first try {} ones, or ones with {} tails".format(*kinds)
        or_else = ", or recalibrate with cdf_isotonic" * is_std
        return f"State {law or f'another distribution ({shown})'}{or_else}, then score other samples."
    return ""


def _of_scale(calibration: str, found: Findings, scale: Estimate, settings: Settings) -> str:
    factors = (scale.value, scale.low, scale.high)
    value, low, high = format_factors(*factors)
    word = _graded(calibration.capitalize(), found.scale_grade == "slight")
    if calibration == "overconfident":
        return f"{word}: stated standard deviations are {_times_too(*factors, 'small')}."
    if calibration == "underconfident":
        if scale.high < 1 and not found.dominated:
            return f"{word}: stated standard deviations are {_times_too(*factors, 'large')}."
        half = next(share for share in found.shares if share.level == 0.5)
        about, *_ = format_factors(1 / scale.value, 1 / scale.high, 1 / scale.low)
        return (
            f"{word}: stated standard deviations are about {about} times too large (a few large errors make the "
            f"factor uncertain); the 50 % intervals contain {percent(half.value)} of the true values."
        )
    bulk, tail, places = f"{found.bulk:.2f}", found.tail, found.in_places
    if calibration == "overconfident in the tails" and tail is not None:
        rest, look = f"the bulk is {bulk}", "Look at those errors. Do not widen every standard deviation."
        if found.is_gross():
            rest = f"all others are {tail.rest:.2f}"
            look = (
                "Look at those samples: is the truth in another unit, or from another row? Do not correct "
                "predictions or standard deviations because of them."
            )
        return (
            f"Overconfident in the tails: {percent(tail.share)} of the errors exceed 3 standard deviations "
            f"({percent(BEYOND_THREE)} expected) and carry {percent(tail.carried)} of the squared errors; {rest} "
            f"times the stated size. {look}"
        )
    if calibration == "overconfident in the tails":
        return (
            f"Overconfident in the tails: errors are {value} times the stated size, but most of them only {bulk} "
            "times. Look at the largest errors. Do not widen every distribution."
        )
    if calibration == "too wide for most, too narrow for a few":
        return (
            f"Too wide for most, too narrow for a few: 68 % of the errors lie within {bulk} stated standard "
            f"deviations, but a few are so large that errors are {value} times the stated size. Look at "
            "those few."
        )
    if calibration == "overconfident, most in the tails":
        skewed = f" They are skewed: {_one_sided_tail(tail)}." if tail and found.is_skewed() else ""
        return (
            f"Overconfident: errors are {value} times the stated size overall, and {bulk} times if their heavy tails "
            f"are left out.{skewed}{f' {LOOK}' * (scale.value > FAR_BEYOND * found.bulk)}"
        )
    along = {each.on for each in places.patterns}
    tested = [name for on, name in COVARIATES.items() if on in along]
    best = f"errors are {_times_stated(*factors)}"
    if calibration == "calibrated":
        fifths = " and of the ".join(tested)
        everywhere = f" In each quintile of the {fifths}, they are within 5 % of it." if tested else ""
        return f"Calibrated within 2 %: {best}.{everywhere}"
    of_the_bias = of_bias(found, settings)
    if calibration == "consistent with calibrated":
        if of_the_bias:
            return f"Consistent with calibrated in size: {best}."
        by_labels = not any(each.made == "period" for each in places.patterns)
        strata = by_labels * sum(part.word != "too few" for part in places.strata)
        nowhere = f", nor where {' or '.join(tested)} are small or large" * bool(tested)
        nowhere += f", nor in any of {strata} strata" * (strata > 1)
        nowhere += ", nor a drift along the order of the samples" * ("order" in along)
        error = "no miscalibration found" + (not found.is_clean()) * " that matters"
        return f"Consistent with calibrated: {error}{', neither overall' * bool(nowhere)}{nowhere}; {best}."
    if calibration == UNTOLD:
        no_error = "" if of_the_bias else "no miscalibration is found, but "
        return f"Not enough data to tell: {no_error}errors could be {low} to {high} times the stated size. {MORE}"
    word = _graded("Biased", found.bias_grade == "slight")
    return f"{word}: {of_the_bias.replace('Predictions', 'predictions', 1)}"


def of_places(said: str, *, slight: bool = False) -> str:
    """Begin a sentence on the places that are wrong; a drift speaks for itself."""
    if "rift along the order" in said:
        return said
    return f"{_graded('Miscalibrated', slight)} in places: {lowered(said)}"


def _graded(word: str, is_slight: bool) -> str:
    return f"Slightly {lowered(word)}" if is_slight else word


def lowered(sentence: str) -> str:
    """Return a sentence that does not begin a new one."""
    return sentence[0].lower() + sentence[1:]


def label_name(part: Stratum, made: str) -> str:
    """Name a label: ``stratum 'coast'``, ``rows 0:10``."""
    return part.name.replace(": ", " ") if made in ("area", "cell") else f"stratum '{part.name}'"


def _of_strata(pattern: Pattern, strata: tuple[Stratum, ...], level: float | None, *, leads: bool) -> str:
    """Name the worst label: ``In stratum 'coast' standard deviations are 1.8 times too small ...``.

    Or the ends: ``Strata differ by more than chance: errors are from 0.8 times ... to ...``.
    """
    if pattern.spread:
        what, ends = _of_ends(pattern, strata, level)
        low, high = (f"{end} in '{name}'" for name, end in ends.items())
        return (
            f"{_differ('', 'Maps' if pattern.made == 'area' else 'Strata')}: {what} are from {low} to {high}."
        )
    part = strata[pattern.named[0]]
    is_right = level is None and not part.is_off(pattern.quantity)
    is_area = pattern.made in ("area", "cell")
    where = label_name(part, pattern.made) + "," * (pattern.made == "cell")
    text = f"In {where} {_found_in(part, pattern.quantity, level)}"
    if is_right and pattern.quantity == "scale":
        text = (
            f"{where[0].upper()}{where[1:]} is the exception: its errors are {_times_stated(*part.factors)}"
        )
    others = len(pattern.named) - 1
    tested = [place for place, each in enumerate(strata) if each.of == part.of and each.word != "too few"]
    rest = [strata[place] for place in tested if place not in pattern.named]
    all_wrong = is_right or not leads or any(each.is_off("scale") or each.is_off("bias") for each in rest)
    both = len({strata[place].size(pattern.quantity)[0] > 0 for place in pattern.named}) > 1
    noun = {"axis": "places", "map ": "maps"}.get(part.name[:4], "areas")
    also = f"; {others} other {noun if is_area else 'strata'} too{', in either direction' * both}"
    also += " (verdict.places.strata lists them)"
    if others <= MOST_NAMED:
        named = ", ".join(_also(strata[place], pattern, level) for place in pattern.named[1:])
        also = f"; also {named}" if named else ""
    return text + also + _of_others(len(rest), all_wrong=all_wrong, noun=f" {noun}" * is_area) + "."


def _also(part: Stratum, pattern: Pattern, level: float | None) -> str:
    """Name another label, and how it is wrong: ``'1' (too high)``."""
    name = label_name(part, pattern.made).removeprefix("stratum ")
    if pattern.quantity == "bias":
        return f"{name} (too {'low' if part.bias > 0 else 'high'})"
    inside = None if level is None else part.inside
    how = _times_too(*part.factors).partition(" (")[0] if inside is None else percent(inside)
    return f"{name} ({how})"


def _of_period(recurring: Sequence[Pattern], strata: tuple[Stratum, ...], level: float | None) -> str:
    """Name the ends of a period: ``Errors recur every 24 rows ...: predictions are ... at position 3 (row % 24)``."""
    of, said = strata[recurring[0].named[0]].of, list[str]()
    period, unit = of.split()[-2:]
    for pattern in recurring:
        what, ends = _of_ends(pattern, strata, level)
        low, high = (
            f"{end} where {unit[:-1]} % {period} is {'in ' * (':' in name)}{name}"
            for name, end in ends.items()
        )
        said.append(f"{what} are {low}, and {high}")
    return f"{_differ(of)}: {'; '.join(said)}."


def _of_ends(
    pattern: Pattern, strata: tuple[Stratum, ...], level: float | None
) -> tuple[str, dict[str, str]]:
    """Return what differs between labels, and how much of it the lowest and the highest have, by name."""
    what, ends = "errors", {}
    for part in (strata[place] for place in pattern.named):
        if pattern.quantity == "bias":
            what, end = "predictions", f"{_stds(part.bias)} too {'low' if part.bias > 0 else 'high'}"
            end = end if part.above is None else _bias_of(part)
        elif level is not None and part.inside is not None:
            what, end = f"shares inside the {percent(level)} intervals", percent(part.inside)
        else:
            end = f"{format_number(part.factor, 2)} times the stated size"
        ends[part.name] = end
    return what, ends


def with_enough(enough: float) -> str:
    """Say how many samples a stratum needs for a correction of its own, where no single one stands out."""
    return f" of {format_number(max(enough, PER_PART), 1)} samples or more" if enough else ""


def of_correction(biased: Sequence[Pattern], *, of_quantiles: bool = False, in_std: bool = False) -> str:
    """Say how to correct predictions that are biased in places: in a period first, then by the prediction."""
    fit = "fit a smooth curve of y_true against y_pred, and replace y_pred by it"
    move = "add mean(y_true - y_pred) to y_pred"
    if in_std:
        move = "add y_std * mean((y_true - y_pred) / y_std) to y_pred"
        fit = f"in each fifth of the predictions, {move}"
    if of_quantiles:
        fit = (
            "fit a smooth curve of y_true against each quantile, by the pinball loss at its level, and replace the "
            "quantile by it"
        )
        move = "shift each quantile until its stated share of the true values lies below it"
    by = {each.on: each for each in biased}
    label = by.get("label")
    if "mean" in by and not (label and label.made == "period"):
        return f": {fit}"
    if label is None:
        return f" there: {move}"
    one, several = ("part", "parts") if label.made == "cell" else ("stratum", "strata")
    one, several = ("area", "areas") if label.made == "area" else (one, several)
    where = f"in that {one}" if len(label.named) == 1 else f"in each of these {len(label.named)} {several}"
    if label.spread:
        where = f"in each {one}{with_enough(label.enough)}"
    if label.made == "period":
        where = "at each place in the period"
    return f": {where}, {move}"


def of_each(enough: float = 0.0, *, joint: bool = False, method: str = "std_scaling") -> str:
    """Say which strata need a recalibration of their own: joint ones, if several sets of labels are wrong."""
    others = ", and the others together" if enough else ""
    which = "combination of these labels" if joint else "stratum"
    each = f"recalibrate each {which}{with_enough(enough)} separately with {method}{others}"
    return f"If the stratum is known at prediction time, {each}."


def _of_others(alike: int, *, all_wrong: bool = False, noun: str = "") -> str:
    """Say how many labels are like all samples."""
    if alike > 1 and all_wrong:
        return f"; the other {alike}{noun} do not differ from the rest by more than chance"
    return f"; no error found in the other {alike}{noun}" if alike > 1 else ""


def _of_drift(pattern: Pattern, parts: tuple[Part, ...], *, is_known: bool) -> str:
    """Compare the first samples of an order with the last."""
    of_label = f" of stratum '{pattern.within}'" if pattern.within else ""
    if not pattern.slope:
        part = parts[pattern.named[0]]
        size = part.size(pattern.quantity)[0]
        other = min(parts[:PARTS], key=lambda each: each.size(pattern.quantity)[0] / size)
        is_wave = other.is_off(pattern.quantity) and 2 * other.size(pattern.quantity)[0] / size < -1
        said = []
        for each in (part, other)[: 1 + is_wave]:
            what = f"errors are {_times_stated(*each.factors)}"
            if pattern.quantity == "bias":
                what = f"predictions are {_bias_of(each, is_known=is_known)}"
            said.append(f"{between(each.low, each.high)}{of_label}, {what}")
        where = "; ".join(said)
        return f"{where[0].upper()}{where[1:]}. {OF_WAVE if is_wave else SPECIAL}"
    first, last = parts[0], parts[PARTS - 1]
    shares = [f"{round(100 * part.share, 9):.0f} %" for part in (first, last)]
    what = (
        f"{'Slight drift' if pattern.grade == 'slight' else 'Drift'} along the order of the samples{of_label}"
    )
    if pattern.quantity == "bias":
        was, becomes = (_bias_of(part, is_known=is_known) for part in (first, last))
        return (
            f"{what}: predictions are {was} in the first {shares[0]}, and {becomes} in the last {shares[1]}."
        )
    was, becomes = ("{} ({} to {}) times".format(*format_factors(*part.factors)) for part in (first, last))
    grow = f"errors {'grow' if pattern.slope > 0 else 'shrink'} from {was} the stated size in the first {shares[0]}"
    return f"{what}: {grow} to {becomes} in the last {shares[1]}."


def between(low: float, high: float) -> str:
    """Name a stretch of the samples, in percent of their order."""
    if high > 99.5:
        return f"in the last {high - low:.0f} % of the samples"
    return f"between {low:.0f} % and {high:.0f} % of the way through the samples"


def _of_pattern(
    pattern: Pattern,
    parts: tuple[Part, ...],
    unit: str,
    calibration: str,
    level: float | None,
    *,
    leads: bool,
) -> str:
    """Say how scale or bias depends on a covariate; what ``leads`` follows the word for it."""
    named = pattern.named or (0, len(parts) - 1)
    certain = tuple(place for place in named if parts[place].is_off(pattern.quantity))
    of_spread = pattern.quantity == "scale" and pattern.on == "std" and pattern.slope != 0
    places = certain if certain or of_spread else named
    slightly = "slightly " if pattern.grade == "slight" else ""
    if of_spread:
        stated = "Stated standard deviations" if level is None else "Widths"
        what = f"{stated} vary {slightly}too "
        what += "much" if pattern.slope < 0 else "little"
    elif pattern.quantity == "bias" and pattern.on == "mean" and pattern.slope and len(named) > 1:
        what = f"Predictions vary {slightly}too {'little' if pattern.slope > 0 else 'much'}"
    elif pattern.quantity == "scale" and calibration in ("overconfident", "underconfident"):
        what = "Factors differ"
    elif pattern.quantity == "scale":
        what = "" if leads else f"Stated standard deviations are {slightly}wrong in places"
    else:
        what = "predictions are biased" if leads else f"Predictions are {slightly}biased in places"
    said = "; ".join(_of_part(pattern, parts, place, unit, level) for place in places)
    if leads and what and said:  # a colon stands before it
        return f"{what}. {said[0].upper()}{said[1:]}."
    return f"{': '.join(filter(None, [what, said]))}."


def _of_part(pattern: Pattern, parts: tuple[Part, ...], place: int, unit: str, level: float | None) -> str:
    """Describe one part: ``the smallest 20 % (up to 0.61 m) are 1.51 times too small (1.33 to 1.72)``."""
    part, share = parts[place], f"{round(100 * parts[place].share, 9):.0f} %"
    tried = ([format_number(end, digits) for end in (part.low, part.high)] for digits in range(2, 9))
    low, high = next((ends for ends in tried if ends[0] != ends[1]), [format_number(part.low, 2)] * 2)
    smallest, largest = ("smallest", "largest") if pattern.on == "std" else ("lowest", "highest")
    said, own = _found_in(part, pattern.quantity, level), COVARIATES[pattern.on]
    if low == high:
        limit = ", perhaps a limit" * (pattern.on == "mean" and place in (0, len(parts) - 1))
        what = f"they{said.removeprefix(own)}" if said.startswith(own) else said
        return f"where {own} are {low}{unit} ({share} of them{limit}), {what}"
    if place == 0:
        which = f"the {smallest} {share} (up to {high}{unit})"
    elif place == len(parts) - 1:
        which = f"the {largest} {share} (from {low}{unit})"
    else:
        which = f"the {share} from {low} to {high}{unit}"
    if said.startswith(own):
        return f"{which}{said.removeprefix(own)}"
    return f"where {own} are {which}{',' * (pattern.quantity == 'scale')} {said}"


def _found_in(part: Part, quantity: str, level: float | None) -> str:
    """Say what is wrong in a part: ``standard deviations are 1.51 times too small (1.33 to 1.72)``."""
    if quantity == "bias":
        return f"predictions are {_bias_of(part)}"
    if level is not None and part.inside is not None:
        return _contain(level, part.inside)
    if not part.is_off("scale"):
        return f"errors are {_times_stated(*part.factors)}"
    return f"standard deviations are {_times_too(*part.factors)}"


def _contain(level: float, share: float) -> str:
    return f"the {percent(level)} intervals contain {percent(share)} of the true values"


def _times_stated(value: float, low: float, high: float) -> str:
    return "{} times the stated size ({} to {})".format(*format_factors(value, low, high))


def _times_too(value: float, low: float, high: float, side: str = "") -> str:
    """Say how many times standard deviations are too small, or too large."""
    side = side or ("small" if value >= 1 else "large")
    if side == "large":
        value, high, low = (1 / max(each, 1e-300) for each in (value, low, high))
    return "{} times too {side} ({} to {})".format(*format_factors(value, low, high), side=side)


def _bias_of(part: Part, *, is_known: bool = True) -> str:
    """Say on which side predictions are, and by how much, if that is known: two quantiles do not tell."""
    side = "low" if part.bias > 0 else "high"
    if part.above is not None and part.inside is not None:
        below = percent(abs(round(1 - part.inside - part.above, 9)))
        return f"too {side} ({below} of the true values lie below the intervals, {percent(part.above)} above)"
    return _one_sided(-part.bias, -part.bias_low, -part.bias_high) if is_known else f"too {side}"


def _one_sided(bias: float, low: float, high: float, where: str = "") -> str:
    """Say by how many standard deviations predictions are too high, or too low."""
    side, sign = ("high", 1) if bias > 0 else ("low", -1)
    limits = sorted((sign * low, sign * high))
    within = " to ".join(format_number(each, 2) for each in limits)
    return f"{_stds(bias)} too {side}{where}" + f" ({within})" * (limits[0] > 0)


def _stds(number: float) -> str:
    """Say how many standard deviations these are."""
    text = format_number(abs(number), 2)
    return f"{text} standard deviation{'s' * (text != '1')}"


def of_interval(
    calibration: str, inside: Inside, found: Findings, ends: Sequence[Share], off: Sequence[Share]
) -> str:
    """Say how calibrated quantiles are, or the ends of an interval, by what their widest interval contains."""
    held = _contain(inside.level, inside.value)
    of_places = _of_places(found, calibration, "", inside.level)
    if calibration == IN_PLACES:
        on = [each.on for each in found.in_places.found() if each.quantity == "scale"]
        along = "predictions" if "mean" in on else "widths"
        cure = f"In each fifth of the {along}, multiply the widths by what makes {percent(inside.level)} lie inside."
        cure *= not (found.is_biased_in_places() or COVARIATES.keys().isdisjoint(on) or "label" in on)
        return " ".join(filter(None, [*of_places, cure, f"Overall, {held}."]))
    mend = not found.all_shifted
    if calibration == IN_SHAPE:
        which = "the median is wrong"
        if off:
            which = _of_quantile(max(off, key=lambda each: each.severity), off, mend=mend)
        shift = "" if mend else ", perhaps by that shift alone"
        return f"Miscalibrated in shape{shift}: {held}, {'but' if inside.misses is None else 'and'} {which}."
    word = calibration.capitalize() if calibration != UNTOLD else "Not enough data to tell"
    word = _graded(word, inside.misses is not None and inside.grade == "slight")
    if found.below_median is not None and found.below_median.is_off and not inside.misses:
        word += " in width"
    said = [f"{word}: {held} ({percent(inside.low)} to {percent(inside.high)})."]
    adjust = {"overconfident": "Widen", "underconfident": "Narrow"}
    if calibration in adjust and mend and len(ends) == 1:
        said.append(f"But t{_of_quantile(ends[0], off)[1:]}.")
    elif calibration in adjust and mend:
        inner = _and_move(off, ends)
        said.append(f"{adjust[calibration]} them until they contain {percent(inside.level)}{inner}.")
    return " ".join([*said, *of_places])


def _of_quantile(share: Share, off: Sequence[Share], *, mend: bool = True) -> str:
    """Say how a quantile is wrong, and how to move it, and others."""
    (side, step), level = _side(share), percent(share.level)
    said = f"the {level} quantile is too {side}: {percent(share.value)} lie below it"
    step = f"{step.capitalize()} it, by a share of each row's width, until"
    return f"{said}. {step} {level} do{_and_move(off, [share])}" if mend else said


def _side(share: Share) -> tuple[str, str]:
    """Return on which side a quantile is wrong, and how to mend that."""
    return ("high", "lower") if share.is_high else ("low", "raise")


def _and_move(off: Sequence[Share], said: Sequence[Share]) -> str:
    """Say which quantiles to move beside those of which it is said."""
    others = [each for each in off if each.level not in [share.level for share in said]]
    if not others:
        return ""
    level = percent(others[0].level)
    if len(others) > 2:
        return (
            f", and move each other quantile until its share lies below it (as {level} below the {level} one)"
        )
    steps = [f"{_side(each)[1]} the {percent(each.level)} quantile" for each in others]
    until = [f"{percent(each.level)} lie below it (now {percent(each.value)})" for each in others]
    return "".join(f", and {step} until {share}" for step, share in zip(steps, until, strict=True))


def of_certain(errors: float) -> str:
    """Say that a classifier excludes errors, although this share of its predictions is wrong."""
    return f"Overconfident: the model states certainty for every sample, but misclassifies {percent(errors)}."


def of_few_units(where: str, expected: float, made: float, others: str) -> str:
    """Say in which few units errors are far more frequent than stated, and what is found without them."""
    return (
        f"Overconfident in few samples: {where}, {_of_errors(expected, made)}. Check the labels and inputs of those "
        f"samples before changing anything. Without them: {lowered(others)}"
    )


def of_impossible(none: tuple[float, float], certain: tuple[float, float], *, aside: bool = False) -> str:
    """Say that probabilities exclude what happened, and in which share of the samples stated so."""
    said = [
        f"states {stated} for {'1 sample' if count == 1 else f'{count:,.6g} samples'} in which the event {happened} "
        f"({percent(count / total)} of those stated at {stated})"
        for stated, (count, total), happened in ((0, none, "occurred"), (1, certain, "did not occur"))
        if count > 0
    ]
    return f"{'Besides,' if aside else 'Overconfident:'} the model {' and '.join(said)}."


def of_too_many_errors(expected: float, made: float) -> str:
    """Say how many times as many errors occur as near-certain probabilities imply."""
    return f"Overconfident: {_of_errors(expected, made)}, {_times(made / expected)} times as many."


def _of_errors(expected: float, made: float) -> str:
    return f"the model expects {percent(expected)} errors and makes {percent(made)}"


def _rates(event: Event) -> str:
    return f"{percent(event.stated)} stated, {percent(event.observed)} observed"


def _level(event: Event, name: str) -> str:
    """Compare how often an event, or a class, is stated with how often it occurs: rare ones by their ratio."""
    if min(event.stated, event.observed) >= RARE:
        digits = 2 if abs(event.stated - event.observed) >= 0.01 else 3
        within = f" ({event.low:.{digits}f} to {event.high:.{digits}f})" if event.limits_agree else ""
        stated, observed = f"{event.stated:.{digits}f}", f"{event.observed:.{digits}f}"
        return f"{name} is stated at {stated} on average, but occurs in {observed} of cases{within}"
    if event.observed <= 0:
        return f"{name} never occurs, but is stated at {percent(event.stated)} on average"
    if event.stated <= 0:
        return f"{name} is stated in no case, but occurs in {percent(event.observed)} of them"
    ends, often = (event.observed, event.low, event.high), "occurs {} times as often as stated"
    value, low, high = (end / event.stated for end in ends)
    if value < 1:
        often = "is stated {} times as often as it occurs"
        value, high, low = (event.stated / max(end, 1e-300) for end in ends)
    within = f" ({_times(low)} to {_times(high)})" if low > 1 and event.low > 0 else ""
    return f"{name} {often.format(_times(value))}{within}: {_rates(event)}"


def of_level(event: Event) -> str:
    """Say that the event is stated too often or too rarely."""
    word = _graded("Too high" if event.stated > event.observed else "Too low", event.is_level_slight)
    return f"Probabilities {lowered(word)}: {_level(event, 'the event')}."


def of_slope(event: Event, *, extreme: bool, only_high: bool, second: bool = False) -> str:
    """Say that probabilities are too extreme or not extreme enough, or unrelated to the event.

    If ``only_high``, none is below one half, as with confidences, whatever these are of.
    """
    slope, low, high = event.slope, event.slope_low, event.slope_high
    word, what, end = ("Overconfident" if extreme else "Underconfident"), _how(extreme), "."
    word = _graded(word, event.is_slope_slight)
    if slope is not None and low is not None and high is not None:
        limits = f", limits {low:.2f} to {high:.2f}; 1 is ideal"
        if event.sorts is not None:
            word, what = "Overconfident", event.sorts
        elif low <= 0 and extreme:
            little = "hardly related to the event"
            what = little if high < HARDLY else "too extreme, or say nothing about the event"
        limits *= event.sorts is not None or (high < 1 if extreme else low > 1)
        step = "; recalibrate with logistic, then score other samples." if "nothing" in what else "."
        asked = "; are labels and probabilities in the same order?" if "related" in what else step
        end = "; are they those of the other class?" if event.sorts == "reversed" else asked
        end = f". {IF_CONFIDENCES}" if only_high and end != "." else end
        what += f" (calibration slope {slope:.2f}{limits})"
    if second:
        return f"Its probabilities are also {what}{end}"
    lead = "Probabilities" if event.sorts == "reversed" else f"{word}: probabilities"
    return f"{lead} are {what}{end}"


def of_event(calibration: str, event: Event, found: Tested, *, only_high: bool) -> str:
    """Say how calibrated the probability of an event is."""
    if calibration in ("too high", "too low"):
        parts = [of_level(event)]
        low, high = (round(end or 0, 2) for end in (event.slope_low, event.slope_high))
        if "slope" in found.strength and found.slope is not None and not low <= 1 <= high:
            parts.append(of_slope(event, extreme=found.slope < 0, only_high=only_high, second=True))
        return " ".join(parts)
    if calibration in ("overconfident", "underconfident"):
        parts = [of_slope(event, extreme=calibration == "overconfident", only_high=only_high)]
        return " ".join([*parts, *[of_level(event)] * ("level" in found.strength and event.limits_agree)])
    if calibration == IN_SHAPE:
        return f"{UNEVEN.format('probabilities', _p(found.shape_p))}, though right on average."
    within = f" ({percent(event.low)} to {percent(event.high)})"
    if calibration == UNTOLD:
        return f"Not enough data to tell: event rate {_rates(event)}{within}. {MORE}"
    if event.slope is not None:
        within = f"; calibration slope {event.slope:.2f} ({event.slope_low:.2f} to {event.slope_high:.2f})"
    return f"{calibration.capitalize()}: event rate {_rates(event)}{within}."


def short_event(calibration: str, event: Event) -> str:
    """Say in a few words how calibrated an event's probability is."""
    gap, ratio = event.stated - event.observed, event.ratio
    rare = min(event.stated, event.observed) < RARE
    said = {"calibrated": "calibrated within 5 %"}
    if calibration == "too high":
        said[calibration] = f"{_times(ratio)}x too high" if rare and event.observed else f"{gap:.2f} too high"
    if calibration == "too low":
        said[calibration] = f"{_times(1 / ratio)}x too low" if rare and ratio > 0 else f"{-gap:.2f} too low"
    if event.slope is not None and event.slope_high is not None:
        said["overconfident"] = event.sorts or f"too extreme (slope {event.slope:.2f})"
        said["underconfident"] = f"not extreme enough (slope {event.slope:.2f})"
    return said.get(calibration, calibration)


def of_off_stratum(off: OffPart, *, all_wrong: bool) -> str:
    """Name the label that is off by most: ``In stratum 'b' the event is stated at 0.49 on average, but ...``.

    Those that are furthest off to each side, where all differ, but none stands out. Labels are places in a period if
    errors recur.
    """
    (name, event), of_errors, cure = off.ends[0], off.of == "errors", _of_each_label(off)
    if len(off.ends) > 1:
        shown = (f"in {_at_place(label, off)}, {_seen(end, off.of)}" for label, end in off.ends)
        differ = "Areas differ by more than chance" if off.is_area else _differ(off.recur)
        return f"{differ}: {'; '.join(shown)}. {cure}"
    slopes = [each for each in (event.slope, event.slope_low, event.slope_high) if each is not None]
    if slopes and event.sorts == "reversed":
        what, its = ("errors are", "their") if of_errors else ("the event is", "its")
        said = f"{what} rarer the higher {its} probability"
        cure = cure if off.recur else "Are its labels swapped?"
    elif slopes:
        value, low, high = (format_number(0.1 * each, 2) for each in slopes)
        rises = f"where they rise by 0.1, the rate of {off.of} rises by {value} ({low} to {high})"
        said = f"probabilities are {_how(slopes[0] < 1)}: {rises}"
    elif of_errors:
        ends = [end / (event.stated or 1) for end in (event.observed, event.low, event.high)]
        said = _of_errors(event.stated, event.observed) + f", {_times_as_many(*ends)}" * (event.stated > 0)
    else:
        said = _level(event, off.of)
    if off.recur:
        return f"{_differ(off.recur)}: in {_at_place(name, off)} {said}. {cure}"
    noun = "areas" if off.is_area else "strata"
    others = f"; {len(off.others)} other {noun} are off too" if off.others else ""
    if len(off.others) == 1:
        others = f"; {_at_place(off.others[0], off)} is off {'the other way' if off.opposite else 'too'}"
    others += "" if all_wrong else _of_others(off.alike, noun=" areas" * off.is_area)
    return f"In {'' if off.is_area else 'stratum '}{_at_place(name, off)} {said}{others}. {cure}"


def _differ(recur: str, parts: str = "Strata") -> str:
    """Say that errors recur after a period, or else that labels differ."""
    as_those = f"Errors recur {recur}, as by hour or season"
    return as_those if recur else f"{parts} differ by more than chance"


def _at_place(name: str, off: OffPart) -> str:
    """Name a label, an area, or a place in a period: ``steps with step % 7 = 5``."""
    if not off.recur:
        return name.replace(": ", " ") if off.is_area else f"'{name}'"
    period, unit = off.recur.split()[-2:]
    return f"{unit} with {unit[:-1]} % {period} {'in' if ':' in name else '='} {name}"


def _seen(event: Event, of: str) -> str:
    """Say how often an event is stated and occurs, or how its rate rises with its probability."""
    if event.slope is not None:
        rise = format_number(0.1 * event.slope, 2)
        return f"where probabilities rise by 0.1, the rate of {of} rises by {rise}"
    if of == "errors":
        return _of_errors(event.stated, event.observed)
    seen = f"it occurs in {percent(event.observed)}"
    return f"the model expects {of} in {percent(event.stated)} of cases, and {seen}"


def _of_each_label(off: OffPart) -> str:
    """Say which strata need a recalibration of their own: of few samples, a fit is worse than none."""
    if off.recur:
        return "Recalibrate each place in the period separately, or tell the model the time."
    if off.is_area:
        outlines = "; a map of what occurs minus what is stated shows their true outlines"
        return f"Recalibrate such parts separately{outlines * (not off.ends[0][0].startswith('axis'))}."
    if off.least >= ENOUGH or off.of == "errors":
        method = "logistic" if off.of == "the event" else "bias_temperature"
        return of_each(ENOUGH * (off.least < ENOUGH), method=method)
    return (
        f"If the stratum is known at prediction time, recalibrate each that has {ENOUGH} samples or more separately. "
        f"In each other one, of n samples, add n / (n + {ENOUGH / 4:.0f}) * log(observed odds / stated odds) to the "
        "log odds, counting half a sample more of either kind."
    )


def of_class_drift(found: OffPart) -> str:
    """Say how often an event is stated and occurs, or its slope, in the first and the last fifth, or in one."""
    said = []
    for name, event in found.ends:
        where = f"in the {name} 20 %" if name else between(20 * found.fifth, 20 * found.fifth + 20)
        said.append(f"{where}, {_seen(event, found.of)}")
    step = NOT_FOR_LONG if len(said) > 1 else SPECIAL
    return f"Drift along the order of the samples: {'; '.join(said)}. {step}"


def of_classes(
    calibration: str, found: Found, scale: Estimate | None, losses: tuple[float, float], *, slight: bool
) -> str:
    """Say how calibrated the probabilities of more than two classes are."""
    if calibration == UNTOLD:
        event = found.top_event
        within = f"({percent(1 - event.high)} to {percent(1 - event.low)})"
        rates = f"{percent(1 - event.stated)} errors expected, {percent(1 - event.observed)} observed"
        return f"Not enough data to tell: {rates} {within}. {MORE}"
    if calibration == "calibrated":
        return (
            f"Calibrated: errors are as frequent as implied, within 5 %, and each of {found.classes} classes is as "
            "frequent as stated, within 0.01."
        )
    if calibration == "consistent with calibrated":
        are_tested = found.sharpness is not None or found.classes
        any_class = f" or in any of {found.classes} classes" if are_tested else ""
        best = ""
        if scale is not None:
            factors = format_factors(scale.value, scale.low, scale.high)
            best = "; errors are {} times as many as implied ({} to {})".format(*factors)
        return f"Consistent with calibrated: no miscalibration found in the confidence{any_class}{best}."
    off = found.level or found.slope
    if calibration == IN_SHAPE:
        lead = f"{UNEVEN.format('confidences', _p(found.top.shape_p))}."
    elif calibration in ("overconfident", "underconfident"):
        lead = _of_whole(calibration, found, scale, losses, slight=slight)
    else:
        off = found.level if found.lead == "level" else found.slope
        word = _graded("Miscalibrated", slight)
        named = "" if off is None else f"{word} in classes: class {_of_class(off)}"
        if found.lead == "slope" and found.level is not None and not found.level.is_slight:
            named += f" {_level(found.level.event, f'Class {found.level.name}')}."
        if found.is_extreme is None or found.level is not None:  # as that may explain it
            return named
        return f"{named} Over all classes, probabilities are also {_how(found.is_extreme)}."
    is_same = off is not None and off.what == "slope" and off.is_extreme == (calibration == "overconfident")
    if off is None or is_same or not (off.what == "shape" or off.event.is_off):
        return lead
    return f"{lead} Class {_of_class(off)}"


def _of_whole(
    calibration: str, found: Found, scale: Estimate | None, losses: tuple[float, float], *, slight: bool
) -> str:
    """Say that probabilities are too extreme, or not extreme enough, over all classes."""
    is_extreme = calibration == "overconfident"
    word = _graded(calibration.capitalize(), slight)
    if scale is not None and (scale.low > 1 if is_extreme else scale.high < 1):
        errors = _of_errors(1 - found.top_event.stated, 1 - found.top_event.observed)
        return f"{word}: {errors}, {_times_as_many(scale.value, scale.low, scale.high)}."
    how = _how(is_extreme)
    if "sharpness" in found.strength and math.isfinite(losses[0]):
        gap = abs(losses[0] - losses[1])
        digits = min(max(2, 1 - math.floor(math.log10(gap))), 6) if gap else 2
        implied = f"log loss {losses[0]:.{digits}f}; these probabilities imply {losses[1]:.{digits}f}"
        return f"{word}: probabilities are {how} ({implied})."
    slope = found.top_event.slope
    if "top slope" in found.strength and slope is not None:
        return f"{word}: confidences are {how} (calibration slope {slope:.2f}; 1 is ideal)."
    return f"{word}: probabilities are {how}."


def _of_class(off: OffClass) -> str:
    """Name the class that is off most, and how many are."""
    event = off.event
    if off.what == "slope":
        slope = "" if event.slope is None else f" (calibration slope {event.slope:.2f}; 1 is ideal)"
        are = _how(off.is_extreme) if event.sorts is None else event.sorts
        said = f"{off.name} has probabilities that are {are}{slope}"
    elif off.what == "shape":
        said = f"{off.name} has probabilities that are too high at some levels and too low at others"
    else:
        said = _level(event, off.name)
    which = f"all {off.of}" if off.off == off.of else f"{off.off} of {off.of}"
    count = f"; {which} classes are miscalibrated" if off.off > 1 else ""
    return f"{said}{count}."


def untested_classes(statistics: Any, found: Found, untested: str) -> list[str]:
    """Say what of more than two classes is not tested, and why."""
    said = [f"The number of errors is not tested: {untested}."] if untested else []
    if not found.classes:
        held = "these statistics hold no sums by class; strata and runs of older versions lack them"
        if "entropy" not in statistics.orders:
            held = "metrics= asked for no more than the top label"
        if statistics.classes is not None:
            held = "there are too many groups and classes to keep"
        return [*said, f"Sharpness and classes are not tested: {held}."]
    if found.sharpness is None:
        said.append(
            "Whether probabilities are too extreme over all classes is not tested: they imply too few errors."
        )
    if statistics.groups is not None:
        said.append(
            "Of each class, only the mean probability is tested: slope and shape need independent samples."
        )
    return said


def of_ranking(found: Ranked, *, of_classes: bool = False) -> str:
    """Say whether the uncertainty ranks errors, and what that gains; "" if that is not judged.

    Of classes, the uncertainty is made of probabilities, so that nothing can be inverted.
    """
    gains = (100 * (1 - left) for left in found.left)
    lower, best = (f"{gain:.0f}" if 1 <= gain < 99 else f"{gain:.3g}" for gain in gains)
    said = f": without the most uncertain 20 %, {found.score} is {lower} % lower ({best} % with a perfect ranking)"
    if found.word == "useful":
        weakly = ", but weakly" * is_little(found.recovered)
        return f"The uncertainty ranks errors{weakly}{said * (found.left[0] < 1)}."
    if found.word == "worse than constant":
        check = "check whether larger values mean more certain; " * (not of_classes)
        return f"The uncertainty ranks errors worse than chance: {check}a constant would do better."
    is_equal = of_classes and found.recovered is not None and abs(found.recovered) < 1e-9
    return (EQUAL_CONFIDENCES if is_equal else NO_SIGN) * (found.word == "no better than constant")


def of_cure(cure: Cure) -> str:
    """Say which recalibration helps, and whether a cross-fit still finds an error after it."""
    if not cure.score:
        return (
            f"{cure.instead.capitalize()}, then score other samples: these are too few to show that it helps."
        )
    if cure.method is None:
        return f"No single recalibration fixes it on held-out halves. Instead, {cure.instead}."
    ends, left = (cure.before, cure.after), "after which no miscalibration is found."
    if not cure.removes:
        left = "though some miscalibration is left. Then score other samples."
    if cure.score == "nll":
        gap = min(max(cure.before - cure.after, 1e-6), 1)
        score, digits = "negative log likelihood", max(2, 1 - math.floor(math.log10(gap)))
        before, after = (f"{each:.{digits}f}".replace("inf", "infinity") for each in ends)
    else:
        score = f"calibration error {cure.score if '_' in cure.score else cure.score.upper()}"
        before, after = ("less than 0.001" if each < 0.001 else format_number(each, 2) for each in ends)
    found = f"on held-out halves, the {score} falls from {before} to {after}, {left}"
    return f"{cure.step} with {cure.method} ({_DOES[cure.method]}): {found}"


def of_dependence(found: Dependence, n: int, total: int | None) -> str:
    """Say how many independent samples these are worth; of a ``total``, if only some were looked at."""
    if found.kind == "copies":
        return of_copies(int(found.worth), n, "similar predictions")
    seen = f"{n:,} samples" if total is None else f"the {n:,} samples looked at, of {total:,},"
    alike = (
        "Errors of each case (image, series) are alike"
        if found.kind == "cases"
        else "Neighboring errors are correlated"
    )
    return f"{alike}: {seen} count as about {_about(found.worth)} independent ones."


def of_copies(different: int, n: int, predictions: str) -> str:
    """Say that rows repeat others, which count once."""
    counted = f"the {different:,} different ones of {n:,} were judged"
    return f"Rows repeat others, with equal truth and {predictions}: {counted}."


def of_beyond(size: float, explains: str) -> str:
    """Say that errors are larger than what is named explains; ``size`` is theirs over the stated one."""
    times = f"errors are {format_number(size)} times the stated size, more than {explains} explains"
    return f"Overconfident: {times}. Look at the largest errors, and at the unit of y_std."


def of_too_alike(found: Dependence, size: float, shape: Sequence[int]) -> str:
    """Say that samples are too much alike to be judged; ``size`` is that of the errors over the stated one."""
    rows = "rows" if len(shape) == 1 else "first axis (slices, images or times)"
    times = f"errors are {format_number(size)} times the stated size"
    worth = _about(found.worth)
    if found.kind == "repeats":
        return (
            f"Not enough data to tell: {REPEATED}. Score each pixel once, or pass groups=, the scene of each."
        )
    if found.kind == "few maps":
        return (
            f"Not enough data to tell: {worth} map{' is' if found.worth == 1 else 's are'} too few to know how "
            "correlated neighboring errors are, as they came in batches. Pass all maps in one call, or at least 12 "
            "maps in total, or groups=, the region of each pixel, in which errors are correlated."
        )
    reason = (
        f"errors are correlated along the {rows}, which are worth about {worth} independent "
        f"{'sample' if worth == '1' else 'samples'}. Pass more samples; if they belong to several independent "
        "series, pass groups=, the series of each row"
        if found.reach is None
        else f"errors are correlated over about {found.reach} pixels; the maps hold about {worth} "
        "independent areas. Pass more maps"
    )
    return f"Not enough data to tell: {reason}." + (f" Overall, {times}." if math.isfinite(size) else "")


def of_units(found: Dependence, statistics: Any, total: int | None) -> list[str]:
    """Say what was taken for independent."""
    n = int(statistics.counts["n"])
    caveats = [of_dependence(found, n, total)] if found.alike and 2 * found.worth > n else []
    if found.kind == "tiles":
        caveats.append(
            "Tiles of maps stand for independent samples, so this holds for these maps only, and errors that a whole "
            "map shares are not seen."
        )
    elif found.group is None:
        caveats.append(
            "Samples were treated as independent. If some belong together (image, patient, site), pass groups=."
            + of_weights(statistics)
        )
    return caveats


def _about(number: float) -> str:
    """A number with two digits."""
    return f"{float(f'{number:.2g}'):,g}"


def _times(factor: float) -> str:
    """A factor with the digits that matter at a glance."""
    return f"{factor:.2f}" if factor < 2 else f"{factor:.1f}" if factor < 99.95 else format_number(factor)


def percent(share: float) -> str:
    """A share in percent; 100 % only if it is all."""
    text = f"{100 * share:.3g}"
    if 0 < share < 1e-5:
        return "less than 0.001 %"
    return "over 99.9 %" if text == "100" and share < 1 else f"{text} %"


def _times_as_many(value: float, low: float, high: float) -> str:
    only = "only " * (value < 1)
    return only + "{} times as many ({} to {})".format(*format_factors(value, low, high))


def _how(is_extreme: bool | None) -> str:
    """Say on which side probabilities are wrong."""
    return "too extreme" if is_extreme else "not extreme enough"


def _p(p: float | None) -> str:
    return "unknown" if p is None else "< 0.001" if p < 0.001 else f"= {format_number(p, 2)}"
