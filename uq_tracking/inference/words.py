"""The sentences of a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uq_tracking.formatting import format_factors, format_number

if TYPE_CHECKING:
    from uq_tracking.inference.classes import Found, OffClass
    from uq_tracking.inference.doctor import Cure
    from uq_tracking.inference.events import Event, Tested
    from uq_tracking.inference.findings import Findings, Share
    from uq_tracking.inference.regression import Few, Inside
    from uq_tracking.inference.samples import Dependence
    from uq_tracking.inference.verdict import Estimate, Verdict

SLIGHT = 1.05
"""Factors below this are called slight."""
RARE = 0.2
"""Rates below this are compared by their ratio."""
LITTLE = 0.2
"""A useful ranking that achieves less than this share of the oracle's gain is said to know little."""
NO_ERROR, UNTOLD = ("calibrated", "consistent with calibrated"), "not enough data"
_SHORT = {
    "miscalibrated in shape": "wrong shape",
    "miscalibrated in places": "wrong in places",
    "consistent with calibrated": "looks calibrated",
    "calibrated": "calibrated within 2 %",
    "too wide for most, too narrow for a few": "too wide for most",
}


def of_weights(statistics: Any) -> str:
    """Say how many equally weighted samples weighted ones are worth; "" without weights."""
    n, effective = statistics.counts["n"], statistics.n_effective
    if effective == n:
        return ""
    return f" With these weights, the {n} samples are worth {effective:.0f} equally weighted ones."


def is_little(recovered: float | None) -> bool:
    """Return whether a useful ranking recovers little of an oracle's gain."""
    return recovered is not None and recovered < LITTLE


def short(calibration: str, factor: float | None, ranking: str, recovered: float | None) -> str:
    """Calibration and ranking in a few words, the number first: ``1.49x overconfident, ranking 62 %``.

    The share is that of the oracle's gain; in a table of runs, the column shows only the first words.
    """
    if calibration == "not enough data" != ranking:
        calibration = "not judged"
    ranks = {
        "useful": "ranking useful" if recovered is None else f"ranking {100 * recovered:.0f} %",
        "no better than constant": "no ranking",
        "worse than constant": "ranking backwards",
    }
    return ", ".join([_named(calibration, factor), *([ranks[ranking]] if ranking in ranks else [])])


def _named(calibration: str, factor: float | None) -> str:
    """Name a calibration in a few words."""
    if calibration == "overconfident" and factor is not None:
        return f"{_times(factor)}x overconfident"
    if calibration == "underconfident" and factor:
        return f"{_times(1 / factor)}x underconfident"
    return _SHORT.get(calibration, calibration)


def of_parts(verdicts: Mapping[str, Verdict]) -> str:
    """Say which of several outputs or strata are wrong, the worst first.

    >>> of_parts({})
    'No error found in 0 of 0.'
    """
    factors = {name: found.scale.value for name, found in verdicts.items() if found.scale is not None}
    wrong = [name for name, found in verdicts.items() if found.calibration not in (*NO_ERROR, UNTOLD)]
    wrong.sort(key=lambda name: -abs(math.log(max(factors.get(name, 1.0), 1e-300))))
    few = sum(found.calibration == UNTOLD for found in verdicts.values())
    named = ", ".join(f"'{name}' ({_named(verdicts[name].calibration, factors.get(name))})" for name in wrong)
    of = f"{len(wrong) or len(verdicts) - few} of {len(verdicts)}"
    untold = f"; too few data in {few}" if few else ""
    return f"Errors in {of}: {named}{untold}." if wrong else f"No error found in {of}{untold}."


def of_few(few: Few) -> str:
    """Say that a few samples have errors far beyond the stated size."""
    count, total = (f"{round(number):,}" for number in (few.samples, few.of))
    share = min(math.floor(1000 * few.share) / 10, 99.9)
    return (
        f"Overconfident in few samples: {count} of {total} carr{'ies' if count == '1' else 'y'} {share:g} % of the "
        f"squared standardized errors; all other errors are {few.rest:.2f} times the stated size. Look at "
        f"{'that one' if count == '1' else 'those'} before any standard deviation is changed."
    )


def of_certain(errors: float) -> str:
    """Say that a classifier excludes errors, although this share of its predictions is wrong."""
    return f"Overconfident: it states certainty for every sample, but misclassifies {percent(errors)}."


def of_interval(
    calibration: str, shape_p: float | None, inside: Inside, worst: Share | None, found: Findings
) -> str:
    """Say how calibrated quantiles are, or the ends of an interval, by what their widest interval contains."""
    held = f"the {percent(inside.stated)} intervals contain {percent(inside.share)} of the true values"
    if calibration == "miscalibrated in shape":
        which = "other quantiles are wrong"
        if worst is not None:
            side = "high" if worst.value > worst.level else "low"
            which = f"the {percent(worst.level)} quantile is too {side}: {percent(worst.value)} lie below it"
        return f"Miscalibrated in shape: {held}, but {which} (p {_p(shape_p)} for all quantiles together)."
    word = calibration.capitalize() if calibration != UNTOLD else "Too few data to tell"
    if inside.misses and inside.grade == "slight":
        word = f"Slightly {calibration}"
    median = found.below_median
    if median is not None and not (inside.misses or median.low <= 0.5 <= median.high):
        word += " in width"
    return f"{word}: {held} ({percent(inside.low)} to {percent(inside.high)})."


def of_impossible(none: float, certain: float) -> str:
    """Say that probabilities exclude what happened."""
    said = [
        f"states {stated} for {_samples(count)} in which the event {happened}"
        for stated, count, happened in ((0, none, "occurred"), (1, certain, "did not occur"))
        if count > 0
    ]
    return f"Overconfident: it {' and '.join(said)}."


def of_too_many_errors(ratio: float) -> str:
    """Say how many times as many errors occur as near-certain probabilities imply."""
    return f"Overconfident: {_times(ratio)} times as many errors as its probabilities imply."


def of_level(event: Event) -> str:
    """Say that the event is stated too often or too rarely."""
    word = "Too high" if event.stated > event.observed else "Too low"
    word = f"Slightly {word.lower()}" if event.is_level_slight else word
    if min(event.stated, event.observed) >= RARE:
        digits = 2 if abs(event.stated - event.observed) >= 0.01 else 3
        within = f" ({event.low:.{digits}f} to {event.high:.{digits}f})" if event.limits_agree else ""
        return (
            f"{word}: the event is stated at {event.stated:.{digits}f} on average, but occurs in "
            f"{event.observed:.{digits}f} of cases{within}."
        )
    rates = f"{percent(event.stated)} stated, {percent(event.observed)} observed"
    if event.observed <= 0:
        return f"{word}: {rates}; it does not occur at all."
    limits = [event.stated / end if end > 0 else math.inf for end in (event.observed, event.high, event.low)]
    said = "it forecasts {} times as many events as occur{}: {}"
    if event.stated < event.observed:
        limits = [end / event.stated for end in (event.observed, event.low, event.high)]
        said = "{} times as many events occur as it forecasts{}: {}"
    within = f" ({_times(limits[1])} to {_times(limits[2])})" if limits[1] > 1 else ""
    return f"{word}: {said.format(_times(limits[0]), within, rates)}."


def of_slope(event: Event, *, extreme: bool, second: bool = False) -> str:
    """Say that probabilities are too extreme or too timid, or unrelated to the event."""
    slope, low, high = event.slope, event.slope_low, event.slope_high
    number = ""
    if slope is not None and low is not None and high is not None:
        if event.sorts is not None:
            lead = "Its probabilities are also" if second else "Overconfident: probabilities are"
            return (
                f"{lead} {event.sorts} (calibration slope {slope:.2f}, {low:.2f} to {high:.2f}; 1 is right)."
            )
        agrees = high < 1 if extreme else low > 1
        limits = f", {low:.2f} to {high:.2f}; 1 is right" if agrees else ""
        number = f"{', perhaps unrelated to the event' * (low <= 0)} (calibration slope {slope:.2f}{limits})"
    what = f"too {'extreme' if extreme else 'timid'}{number}."
    if second:
        return f"Its probabilities are also {what}"
    word = "Overconfident" if extreme else "Underconfident"
    word = f"Slightly {word.lower()}" if event.is_slope_slight else word
    return f"{word}: probabilities are {what}"


def of_event(calibration: str, event: Event, found: Tested) -> str:
    """Say how calibrated the probability of an event is."""
    if calibration in ("too high", "too low"):
        parts = [of_level(event)]
        if found.slope_rejects and found.slope is not None:
            parts.append(of_slope(event, extreme=found.slope < 0, second=True))
        return " ".join(parts)
    if calibration in ("overconfident", "underconfident"):
        parts = [of_slope(event, extreme=calibration == "overconfident")]
        return " ".join([*parts, of_level(event)] if found.level_rejects else parts)
    if calibration == "miscalibrated in shape":
        return (
            "Miscalibrated in shape: probabilities are too high at some levels and too low at others "
            f"(p {_p(found.shape_p)}), though right on average."
        )
    rates = f"{percent(event.stated)} stated, {percent(event.observed)} observed"
    within = f"({percent(event.low)} to {percent(event.high)})"
    if calibration == "not enough data":
        return f"Not enough data to tell: {rates} {within}."
    slope = ""
    if event.slope is not None:
        slope = f"; calibration slope {event.slope:.2f} ({event.slope_low:.2f} to {event.slope_high:.2f})"
    word = "Calibrated" if calibration == "calibrated" else "Consistent with calibrated"
    return f"{word}: {rates}{slope or ' ' + within}."


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
        said["underconfident"] = f"too timid (slope {event.slope:.2f})"
    return said.get(calibration, calibration)


def _samples(count: float) -> str:
    return "1 sample" if count == 1 else f"{count:,.6g} samples"


def of_classes(calibration: str, found: Found, scale: Estimate | None, losses: tuple[float, float]) -> str:
    """Say how calibrated the probabilities of more than two classes are."""
    size = "" if found.sharpness is None and not found.classes else f" or in any of {found.classes} classes"
    if calibration == "not enough data":
        event = found.top_event
        within = f"({percent(1 - event.high)} to {percent(1 - event.low)})"
        rates = f"{percent(1 - event.stated)} errors implied, {percent(1 - event.observed)} observed"
        return f"Not enough data to tell: {rates} {within}."
    if calibration == "calibrated":
        return (
            f"Calibrated: errors are as frequent as implied, within 5 %, and each of {found.classes} classes is as "
            "frequent as stated, within 0.01."
        )
    if calibration == "consistent with calibrated":
        return f"Consistent with calibrated: no error found in the confidence{_best_factor(scale)}{size}."
    if calibration == "miscalibrated in shape":
        lead = (
            "Miscalibrated in shape: confidences are too high at some levels and too low at others "
            f"(p {_p(found.top.shape_p)})."
        )
        return " ".join([lead, *_of_class(found.level or found.slope, "")])
    if calibration in ("overconfident", "underconfident"):
        return " ".join(
            [_of_whole(calibration, found, scale, losses), *_of_class(found.level or found.slope, "")]
        )
    off = found.level if found.lead == "level" else found.slope
    lead = (
        "Slightly miscalibrated in classes: "
        if off is not None and off.is_slight
        else "Miscalibrated in classes: "
    )
    also = []
    if found.is_extreme is not None:
        also = [f"Its probabilities are also too {'extreme' if found.is_extreme else 'timid'} as a whole."]
    return " ".join([*_of_class(off, lead), *also])


def _best_factor(scale: Estimate | None) -> str:
    """Say how large a scale error is still possible."""
    if scale is None:
        return ""
    value, low, high = format_factors(scale.value, scale.low, scale.high)
    return f" ({value} times the errors implied, {low} to {high})"


def _of_whole(calibration: str, found: Found, scale: Estimate | None, losses: tuple[float, float]) -> str:
    """Say that probabilities are too extreme, or too timid, as a whole."""
    is_extreme = calibration == "overconfident"
    if scale is not None and (scale.low > 1 if is_extreme else scale.high < 1):
        value, low, high = format_factors(scale.value, scale.low, scale.high)
        if is_extreme:
            degree = _degree("Overconfident", scale.value)
            return f"{degree}: {value} times as many errors as its probabilities imply ({low} to {high})."
        degree = _degree("Underconfident", 1 / max(scale.value, 1e-9))
        return f"{degree}: only {value} times the errors that its probabilities imply ({low} to {high})."
    ratio = math.inf if scale is None or scale.value <= 0 else scale.value
    word = _degree(calibration.capitalize(), max(ratio, 1 / ratio))
    how = f"too {'extreme' if is_extreme else 'timid'}"
    if "sharpness" in found.strength and math.isfinite(losses[0]):
        gap = abs(losses[0] - losses[1])
        digits = min(max(2, 1 - math.floor(math.log10(gap))), 6) if gap else 2
        found_and_implied = f"log loss {losses[0]:.{digits}f}, they imply {losses[1]:.{digits}f}"
        return f"{word}: probabilities are {how}: {found_and_implied}."
    slope = found.top_event.slope
    if "top slope" in found.strength and slope is not None:
        return f"{word}: confidences are {how} (calibration slope {slope:.2f}; 1 is right)."
    return f"{word}: probabilities are {how}."


def _of_class(off: OffClass | None, lead: str) -> list[str]:
    """Name the class that is off most, and how many are."""
    if off is None:
        return []
    count = f"; {off.off} of {off.of} classes are off" if off.off > 1 else ""
    name = f"class {off.name}" if lead else f"Class {off.name}"
    event = off.event
    if off.what == "slope":
        slope = "" if event.slope is None else f" (calibration slope {event.slope:.2f}; 1 is right)"
        are = f"too {'extreme' if off.is_extreme else 'timid'}" if event.sorts is None else event.sorts
        how = f"has probabilities that are {are}{slope}"
    elif off.what == "shape":
        how = "has probabilities that are too high at some levels and too low at others"
    elif min(event.stated, event.observed) >= RARE:
        digits = 2 if abs(event.stated - event.observed) >= 0.01 else 3
        how = f"is stated at {event.stated:.{digits}f} on average, but occurs in {event.observed:.{digits}f} of cases"
        how += f" ({event.low:.{digits}f} to {event.high:.{digits}f})" if event.limits_agree else ""
    else:
        rates = f"{percent(event.stated)} stated, {percent(event.observed)} observed"
        ratio, how = event.ratio, f"does not occur at all: {rates}"
        if 1 < ratio < math.inf:
            how = f"is stated {_times(ratio)} times as often as it occurs: {rates}"
        elif ratio <= 1:
            how = f"occurs {_times(1 / max(ratio, 1e-300))} times as often as stated: {rates}"
        how += f" ({percent(event.low)} to {percent(event.high)})" if event.limits_agree else ""
    return [f"{lead}{name} {how}{count}."]


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
        said.append("Sharpness is not tested: too few errors could occur.")
    if statistics.groups is not None:
        said.append(
            "Of each class only the level is tested: slope and shape need samples that are independent."
        )
    return said


def of_ranking(ranking: str, recovered: float | None) -> str:
    """Say whether the uncertainty knows where errors are; "" if that is not judged."""
    share = (
        ""
        if recovered is None
        else f": sparsification recovers {100 * recovered:.0f} % of what an oracle would"
    )
    words = {
        "useful": f"It knows {'little of ' if is_little(recovered) else ''}where it errs{share}.",
        "no better than constant": "No sign that its uncertainty ranks errors better than a constant would.",
        "worse than constant": "Its uncertainty ranks errors worse than a constant would.",
    }
    return words.get(ranking, "")


def _degree(word: str, factor: float) -> str:
    return f"Slightly {word.lower()}" if factor < SLIGHT else word


def of_cure(cure: Cure) -> str:
    """Say what removes the error, or most of it."""
    before, after = (format_number(each, 2) for each in (cure.before, cure.after))
    does = "removes this" if cure.removes else "removes most of this"
    score = cure.score if "_" in cure.score else cure.score.upper()
    return f"Recalibration with {cure.method} {does} ({score} {before} to {after}, cross-fitted)."


def of_dependence(found: Dependence, n: int) -> str:
    """Say how many independent samples these are worth."""
    if found.kind == "copies":
        return f"Rows are exact copies of others: {n:,} samples are {int(found.worth):,} different ones."
    worth = _about(found.worth)
    return f"Neighboring errors are alike: {n:,} samples carry as much information as about {worth} independent ones."


def of_too_alike(found: Dependence, size: float, *, beyond: bool) -> str:
    """Say that samples are too much alike to be judged; ``size`` is that of the errors over the stated one."""
    times = f"errors are {format_number(size)} times the stated size"
    if beyond:
        return f"Overconfident: {times}, more than any dependence explains."
    worth = _about(found.worth)
    if found.kind == "few maps":
        return (
            f"Not enough data to judge: {worth} map{' is' if found.worth == 1 else 's are'} too few to know how "
            "alike neighboring errors are, since not every pixel is kept. Pass 12 maps, or groups=, a label for each "
            "region whose errors are alike."
        )
    reason = (
        f"neighboring errors are alike; the series is worth about {worth} independent samples. Pass a longer one"
        if found.reach is None
        else f"errors of neighboring pixels are alike over {found.reach} pixels; the maps hold about {worth} "
        "independent areas. Pass more maps"
    )
    return f"Not enough data to judge: {reason}." + (f" Over all, {times}." if math.isfinite(size) else "")


def of_units(found: Dependence, statistics: Any) -> list[str]:
    """Say what was taken for independent."""
    n = int(statistics.counts["n"])
    caveats = [of_dependence(found, n)] if found.alike and 2 * found.worth > n else []
    if found.kind == "tiles":
        caveats.append(
            "Tiles of one map stand for independent samples: true for these maps only; errors shared by a whole map "
            "are not seen."
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
    return f"{factor:.2f}" if factor < 2 else f"{factor:.1f}" if factor < 100 else format_number(factor)


def percent(share: float) -> str:
    """A share in percent; 100 % only if it is all."""
    text = f"{100 * share:.3g}"
    if 0 < share < 1e-5:
        return "less than 0.001 %"
    return "over 99.9 %" if text == "100" and share < 1 else f"{text} %"


def _p(p: float | None) -> str:
    return "unknown" if p is None else "< 0.001" if p < 0.001 else f"= {format_number(p, 2)}"
