"""The sentences of a verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from uq_tracking.formatting import format_factors, format_number

if TYPE_CHECKING:
    from uq_tracking.inference.regression import Few, Inside
    from uq_tracking.inference.verdict import Estimate

SLIGHT = 1.05
"""Factors below this are called slight."""
LITTLE = 0.2
"""A useful ranking that achieves less than this share of the oracle's gain is said to know little."""
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
    if calibration == "overconfident" and factor is not None:
        calibration = f"{_times(factor)}x overconfident"
    elif calibration == "underconfident" and factor:
        calibration = f"{_times(1 / factor)}x underconfident"
    elif calibration == "not enough data" != ranking:
        calibration = "not judged"
    ranks = {
        "useful": "ranking useful" if recovered is None else f"ranking {100 * recovered:.0f} %",
        "no better than constant": "no ranking",
        "worse than constant": "ranking backwards",
    }
    return ", ".join([_SHORT.get(calibration, calibration), *([ranks[ranking]] if ranking in ranks else [])])


def of_few(few: Few) -> str:
    """Say that a few samples have errors far beyond the stated size."""
    count, total = (f"{round(number):,}" for number in (few.samples, few.of))
    share = min(math.floor(1000 * few.share) / 10, 99.9)
    return (
        f"Overconfident in few samples: {count} of {total} carr{'ies' if count == '1' else 'y'} {share:g} % of the "
        f"squared standardized errors; all others are {few.rest:.2f} times the stated size."
    )


def of_certain(errors: float) -> str:
    """Say that a classifier excludes errors, although this share of its predictions is wrong."""
    return f"Overconfident: it states certainty for every sample, but misclassifies {percent(errors)}."


def of_interval(calibration: str, shape_p: float | None, inside: Inside) -> str:
    """Say how calibrated quantiles are, or the ends of an interval, by what their widest interval contains."""
    held = f"the {percent(inside.stated)} intervals contain {percent(inside.share)} of the true values"
    if inside.misses:
        return f"{inside.misses.capitalize()}: {held} ({percent(inside.low)} to {percent(inside.high)})."
    if calibration == "miscalibrated in shape":
        return f"Miscalibrated in shape: {held} (p {_p(shape_p)} for all quantiles together)."
    return f"Consistent with calibrated: {held}." if calibration == "consistent with calibrated" else ""


def of_probabilities(calibration: str, scale: Estimate | None, shape_p: float | None) -> str:
    """Say how calibrated class probabilities are; "" if that is not judged."""
    if calibration in ("overconfident", "underconfident") and scale is not None:
        value, low, high = format_factors(scale.value, scale.low, scale.high)
        if calibration == "overconfident":
            return (
                f"{_degree('Overconfident', scale.value)}: {value} times as many errors as its probabilities imply "
                f"({low} to {high})."
            )
        degree = _degree("Underconfident", 1 / max(scale.value, 1e-9))
        return f"{degree}: only {value} times the errors that its probabilities imply ({low} to {high})."
    if calibration == "miscalibrated in shape":
        return (
            f"Miscalibrated in shape: probabilities are too high at some levels and too low at others "
            f"(p {_p(shape_p)}){_though_scale(scale)}."
        )
    if calibration == "consistent with calibrated":
        return f"Consistent with calibrated{_within(scale)}."
    return ""


def _within(scale: Estimate | None) -> str:
    """Say how large a scale error is still possible."""
    if scale is None:
        return ""
    value, low, high = format_factors(scale.value, scale.low, scale.high)
    return f": no scale error found (best factor {value}, {low} to {high})"


def _though_scale(scale: Estimate | None) -> str:
    if scale is None:
        return ""
    value, low, high = format_factors(scale.value, scale.low, scale.high)
    return f"; their scale is {value} times the stated one ({low} to {high})"


def of_ranking(ranking: str, recovered: float | None) -> str:
    """Say whether the uncertainty knows where errors are; "" if that is not judged."""
    share = (
        ""
        if recovered is None
        else f": sparsification recovers {100 * recovered:.0f} % of what an oracle would"
    )
    words = {
        "useful": f"It knows {'little of ' if is_little(recovered) else ''}where it errs{share}.",
        "no better than constant": "Its uncertainty ranks errors no better than a constant would.",
        "worse than constant": "Its uncertainty ranks errors worse than a constant would.",
    }
    return words.get(ranking, "")


def _degree(word: str, factor: float) -> str:
    return f"Slightly {word.lower()}" if factor < SLIGHT else word


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
