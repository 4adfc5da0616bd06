"""Which samples of a classification count, and whether those that count can be scored.

Labels and scores are read once, a piece at a time; a boolean array is made only when a sample is left out.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from uq_tracking.errors import EmptyInputError, InvalidValueError
from uq_tracking.inputs.convert import AnyArray, BoolArray
from uq_tracking.inputs.probabilities import ClassScores, Floats, Place
from uq_tracking.inputs.validation import Finding

TOLERANCES = {"float64": 1e-5, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""How far from 1 a sample's probabilities may sum, by the dtype they were given in."""


@dataclass
class ClassScan:
    """What one pass over labels and scores found."""

    shape: tuple[int, ...]
    valid: BoolArray | None = None
    n_masked: int = 0
    n_ignored: int = 0
    n_invalid: int = 0
    outside: Finding = field(default_factory=Finding)
    """Labels that are not a class."""
    not_finite: Finding = field(default_factory=Finding)
    negative: Finding = field(default_factory=Finding)
    off: Finding = field(default_factory=Finding)
    """Probabilities that do not sum to 1, or exceed 1."""

    @property
    def counts(self) -> dict[str, int]:
        """The counts of a report."""
        n = math.prod(self.shape) - self.n_masked - self.n_ignored - self.n_invalid
        return {
            "n": n,
            "n_ignored": self.n_ignored,
            "n_masked": self.n_masked,
            "n_invalid": self.n_invalid,
        }


def scan_classes(
    labels: AnyArray,
    scores: ClassScores,
    *,
    left_out: BoolArray | None = None,
    ignore_label: int | None = None,
    tolerance: float = 1e-5,
) -> ClassScan:
    """Read every sample once and count those left out or bad."""
    result = ClassScan(labels.shape)
    valid = np.ones(labels.size, dtype=bool)
    offset = 0
    for place in scores.places():
        truth = labels[place].reshape(-1)
        here = np.ones(truth.size, dtype=bool) if left_out is None else ~left_out[place].reshape(-1)
        result.n_masked += truth.size - int(np.count_nonzero(here))
        if ignore_label is not None:
            ignored = here & (truth == ignore_label)
            result.n_ignored += int(np.count_nonzero(ignored))
            here &= ~ignored
        result.outside.add(here & ((truth < 0) | (truth >= scores.n_classes)), offset)
        good = here & ~_bad_scores(result, here, scores, place, tolerance, offset)
        result.n_invalid += int(np.count_nonzero(here)) - int(np.count_nonzero(good))
        valid[offset : offset + truth.size] = good
        offset += truth.size
    if not valid.all():
        result.valid = valid.reshape(labels.shape)
    return result


def _bad_scores(
    result: ClassScan, here: BoolArray, scores: ClassScores, place: Place, tolerance: float, offset: int
) -> BoolArray:
    """Count the defects in one piece's scores; return which samples have one, counting each sample once."""
    defects = [_defects(member, scores, tolerance) for member in scores.members(place)]
    bad = np.zeros(here.size, dtype=bool)
    for finding, kind in ((result.not_finite, 0), (result.negative, 1), (result.off, 2)):
        hits: BoolArray = here & ~bad & reduce(operator.or_, [of[kind] for of in defects])
        finding.add(hits, offset)
        bad |= hits
    return bad


def _defects(member: Floats, scores: ClassScores, tolerance: float) -> tuple[Any, Any, Any]:
    """Where scores are non-finite, where negative, and where they do not sum to 1; False if nowhere."""
    if scores.logits:
        return ~np.isfinite(member) if scores.binary else _bad_logits(member), False, False
    with np.errstate(invalid="ignore"):
        total = member if scores.binary else np.einsum("ij->i", member)
        off = member > 1 + tolerance if scores.binary else np.abs(total - 1) > tolerance
        least = member.min(initial=0)  # NaN if any value is
    if least >= 0 and np.isfinite(total).all():
        return False, False, off
    finite = np.isfinite(member)
    negative = member < 0
    return (~finite, negative, off) if scores.binary else (~finite.all(axis=1), negative.any(axis=1), off)


def _bad_logits(member: Floats) -> BoolArray:
    """Where logits are bad; minus infinity only rules out a class, as long as another class is left."""
    highest = member.max(axis=1)
    return np.asarray(np.isnan(highest) | np.isinf(highest))


def check_class_scan(result: ClassScan, scores: ClassScores, labels: AnyArray, on_invalid: str) -> None:
    """Judge a scan by the user's policy.

    Raises
    ------
    InvalidValueError
        Some labels are not a class, or some samples that count have bad scores under ``on_invalid="raise"``.
    EmptyInputError
        No samples are left.
    """
    if result.outside.count:
        raise InvalidValueError(_outside(result, scores, labels))
    if result.n_invalid and on_invalid == "raise":
        raise InvalidValueError(_bad_values(result, scores))
    if result.counts["n"] == 0:
        raise EmptyInputError(_nothing_left(result), result.counts)


def _outside(result: ClassScan, scores: ClassScores, labels: AnyArray) -> str:
    index = result.outside.index(result.shape)
    value, count = int(labels[index]), result.outside.count
    cure = f"pass ignore_label={value} if that means 'no label here', or mask="
    if value == scores.n_classes and labels.min() == 1:
        cure = f"subtract 1 if classes start at 1; {cure}"
    elif scores.binary:
        cure = f"probs of the labels' shape are read as the probability of class 1 of the two classes 0 and 1; {cure}"
    return (
        f"labels have {count} value{'s' * (count != 1)} outside 0 ... "
        f"{scores.n_classes - 1} (first: {value} at index {index}); {cure}"
    )


def _bad_values(result: ClassScan, scores: ClassScores) -> str:
    name = "logits" if scores.logits else "probs"
    parts = [
        f"{name} of {_samples(finding)} are {what} (first at index {finding.index(result.shape)})"
        for finding, what in ((result.not_finite, "non-finite"), (result.negative, "negative"))
        if finding.count
    ]
    cures = []
    if result.off.count:
        parts.append(_off(result, scores))
    if result.negative.count or result.off.count:
        cures.append("pass logits=True if these are logits")
    if result.off.count and not scores.binary:
        cures.append("divide by their sum if these are weights")
    cures.append("exclude such samples with mask= or on_invalid='drop'")
    return "; ".join([*parts, *cures])


def _samples(finding: Finding) -> str:
    return f"{finding.count} sample{'s' * (finding.count != 1)}"


def _off(result: ClassScan, scores: ClassScores) -> str:
    index, samples = result.off.index(result.shape), _samples(result.off)
    place: Place = (slice(None), *index)
    values = scores.values[place].astype(np.float64)
    if scores.binary:
        return f"probs of {samples} exceed 1 (first at index {index}: {values.max():.4g})"
    sums = values.sum(axis=-1)
    worst = sums[np.argmax(np.abs(sums - 1))]
    return f"probs of {samples} do not sum to 1 (first at index {index}: {worst:.6g})"


def _nothing_left(result: ClassScan) -> str:
    size = math.prod(result.shape)
    if size == 0:
        return f"labels are empty (shape {result.shape}); there is nothing to score"
    parts = {"ignored": result.n_ignored, "masked": result.n_masked, "invalid": result.n_invalid}
    listed = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
    cure = (
        "; mask=True excludes a sample: pass ~mask if yours marks the samples to keep"
        if result.n_masked
        else ""
    )
    cure += "; pass logits=True if these are logits" if result.n_invalid else ""
    return f"none of {size} samples is left: {listed}{cure}"
