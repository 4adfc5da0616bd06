"""Every score of the classification suite, written out from its definition over raw labels and probabilities.

``labels`` is a list of class indices, ``probs`` a list of rows of class probabilities; ignored samples have
been left out by the caller. ``LITERAL`` maps each key to a function of (labels, probs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .literal import (
    Floats,
    UndefinedScoreError,
    divided,
    equal_count_bins,
    in_expected_order,
    kept,
    mean,
    trapezoid,
)

Labels = Sequence[int]
Probs = Sequence[Floats]


def top_label(row: Floats) -> int:
    """The most probable class; the first of several."""
    return max(range(len(row)), key=lambda c: (row[c], -c))


def hits(labels: Labels, probs: Probs) -> list[float]:
    return [1.0 if top_label(row) == label else 0.0 for label, row in zip(labels, probs, strict=True)]


def confidences(probs: Probs) -> list[float]:
    return [float(max(row)) for row in probs]


def entropy(row: Floats) -> float:
    """In nats; a probability of 0 contributes 0."""
    return -math.fsum(float(p) * math.log(p) for p in row if p > 0)


def brier_of(label: int, row: Floats) -> float:
    return math.fsum((float(p) - (1.0 if c == label else 0.0)) ** 2 for c, p in enumerate(row))


def accuracy(labels: Labels, probs: Probs) -> float:
    return mean(hits(labels, probs))


def nll(labels: Labels, probs: Probs) -> float:
    chosen = [float(row[label]) for label, row in zip(labels, probs, strict=True)]
    if any(p == 0 for p in chosen):
        raise UndefinedScoreError("a true class has probability 0: the score is infinite")
    return mean([-math.log(p) for p in chosen])


def brier(labels: Labels, probs: Probs) -> float:
    return mean([brier_of(label, row) for label, row in zip(labels, probs, strict=True)])


def equal_width(labels: Labels, probs: Probs, n_bins: int) -> list[tuple[int, float, float]]:
    """(count, accuracy, mean confidence) of each non-empty bin [b/n, (b+1)/n), the last one closed."""
    rows = []
    pairs = list(zip(confidences(probs), hits(labels, probs), strict=True))
    for b in range(n_bins):
        last = b == n_bins - 1
        inside = [(c, h) for c, h in pairs if b / n_bins <= c and (last or c < (b + 1) / n_bins)]
        if inside:
            rows.append((len(inside), mean([h for _, h in inside]), mean([c for c, _ in inside])))
    return rows


def ece(labels: Labels, probs: Probs, n_bins: int = 10) -> float:
    return math.fsum(n / len(labels) * abs(acc - conf) for n, acc, conf in equal_width(labels, probs, n_bins))


def mce(labels: Labels, probs: Probs, n_bins: int = 10) -> float:
    return max(abs(acc - conf) for _, acc, conf in equal_width(labels, probs, n_bins))


def equal_count(labels: Labels, probs: Probs, n_bins: int) -> list[tuple[int, float, float]]:
    """(count, accuracy, mean confidence) of each bin of the samples in order of confidence."""
    if len(labels) < n_bins:
        raise UndefinedScoreError(f"{len(labels)} samples do not fill {n_bins} bins")
    confidence = confidences(probs)
    right = in_expected_order(confidence, hits(labels, probs))
    ordered = sorted(confidence)
    bins = equal_count_bins(len(labels), n_bins)
    return [(len(b), mean([right[i] for i in b]), mean([ordered[i] for i in b])) for b in bins]


def ace(labels: Labels, probs: Probs, n_bins: int = 10) -> float:
    return mean([abs(acc - conf) for _, acc, conf in equal_count(labels, probs, n_bins)])


def brier_of_kept(ordered: Floats) -> list[float]:
    full, n = mean(ordered), len(ordered)
    return [divided(mean(ordered[: kept(n, i)]), full, "the Brier score") for i in range(100)]


def sparsification_brier(labels: Labels, probs: Probs) -> dict[str, list[float]]:
    """Brier score of what is left when the samples of highest predictive entropy are removed."""
    scores = [brier_of(label, row) for label, row in zip(labels, probs, strict=True)]
    return {
        "fraction": [i / 100 for i in range(100)],
        "model": brier_of_kept(in_expected_order([entropy(row) for row in probs], scores)),
        "oracle": brier_of_kept(sorted(scores)),
        "random": [1.0] * 100,
    }


def ause_brier(labels: Labels, probs: Probs) -> float:
    curve = sparsification_brier(labels, probs)
    return trapezoid([m - o for m, o in zip(curve["model"], curve["oracle"], strict=True)], 0.01)


def miou(labels: Labels, probs: Probs) -> float:
    """Mean intersection over union of the classes that occur among labels or predictions."""
    predicted = [top_label(row) for row in probs]
    ious = []
    for c in range(len(probs[0])):
        both = sum(1 for a, b in zip(labels, predicted, strict=True) if a == c and b == c)
        either = sum(1 for a, b in zip(labels, predicted, strict=True) if c in (a, b))
        if either:
            ious.append(both / either)
    return mean(ious)


def entropy_mean(labels: Labels, probs: Probs) -> float:
    return mean([entropy(row) for row in probs])


def aurc(labels: Labels, probs: Probs) -> float:
    """Mean over k = 1 ... N of the error rate of the k most confident samples."""
    wrong = in_expected_order([-c for c in confidences(probs)], [1.0 - h for h in hits(labels, probs)])
    return mean([mean(wrong[:k]) for k in range(1, len(wrong) + 1)])


Score = Callable[[Labels, Probs], float]

LITERAL: dict[str, Score] = {
    "accuracy": accuracy,
    "nll": nll,
    "brier": brier,
    "ece": ece,
    "mce": mce,
    "ace": ace,
    "ause_brier": ause_brier,
    "miou": miou,
    "entropy_mean": entropy_mean,
    "aurc": aurc,
}
