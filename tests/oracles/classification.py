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


def event_probabilities(probs: Probs) -> list[float]:
    """Probability of class 1 of two classes."""
    if len(probs[0]) != 2:
        raise UndefinedScoreError("more than two classes have no event")
    return [float(row[1]) for row in probs]


def stated_and_observed(labels: Labels, probs: Probs) -> tuple[list[float], list[float]]:
    """Of two classes the event's probability and occurrence; of more, confidence and correctness."""
    if len(probs[0]) == 2:
        return event_probabilities(probs), [float(label) for label in labels]
    return confidences(probs), hits(labels, probs)


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


def equal_width(stated: Floats, observed: Floats, n_bins: int) -> list[tuple[int, float, float]]:
    """(count, share observed, mean stated) of each non-empty bin [b/n, (b+1)/n), the last one closed."""
    rows = []
    pairs = list(zip(stated, observed, strict=True))
    for b in range(n_bins):
        last = b == n_bins - 1
        inside = [(c, h) for c, h in pairs if b / n_bins <= c and (last or c < (b + 1) / n_bins)]
        if inside:
            rows.append((len(inside), mean([h for _, h in inside]), mean([c for c, _ in inside])))
    return rows


def ece(labels: Labels, probs: Probs, n_bins: int = 10) -> float:
    rows = equal_width(*stated_and_observed(labels, probs), n_bins)
    return math.fsum(n / len(labels) * abs(observed - stated) for n, observed, stated in rows)


def ece_top(labels: Labels, probs: Probs, n_bins: int = 10) -> float:
    event_probabilities(probs)
    rows = equal_width(confidences(probs), hits(labels, probs), n_bins)
    return math.fsum(n / len(labels) * abs(observed - stated) for n, observed, stated in rows)


def mce(labels: Labels, probs: Probs, n_bins: int = 10) -> float:
    rows = equal_width(*stated_and_observed(labels, probs), n_bins)
    return max(abs(observed - stated) for _, observed, stated in rows)


def equal_count(labels: Labels, probs: Probs, n_bins: int) -> list[tuple[int, float, float]]:
    """(count, share observed, mean stated) of each bin of the samples in order of the stated probability."""
    if len(labels) < n_bins:
        raise UndefinedScoreError(f"{len(labels)} samples do not fill {n_bins} bins")
    stated, observed = stated_and_observed(labels, probs)
    right = in_expected_order(stated, observed)
    ordered = sorted(stated)
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


def mdice(labels: Labels, probs: Probs) -> float:
    """Mean Dice coefficient of the classes that occur among labels or predictions."""
    predicted = [top_label(row) for row in probs]
    found = []
    for c in range(len(probs[0])):
        both = sum(1 for a, b in zip(labels, predicted, strict=True) if a == c and b == c)
        total = sum(1 for label in (*labels, *predicted) if label == c)
        if total:
            found.append(2 * both / total)
    return mean(found)


def cwece(labels: Labels, probs: Probs) -> float:
    """Mean over classes of the ECE of each against the rest."""
    found = []
    for c in range(len(probs[0])):
        events = [int(label == c) for label in labels]
        found.append(ece(events, [[1 - row[c], row[c]] for row in probs]))
    return mean(found)


def worst_class_gap(labels: Labels, probs: Probs) -> float:
    """Largest difference between the mean probability of a class and its share."""
    classes = range(len(probs[0]))
    return max(abs(mean([row[c] for row in probs]) - mean([float(y == c) for y in labels])) for c in classes)


def entropy_mean(labels: Labels, probs: Probs) -> float:
    return mean([entropy(row) for row in probs])


def aurc(labels: Labels, probs: Probs) -> float:
    """Mean over k = 1 ... N of the error rate of the k most confident samples."""
    wrong = in_expected_order([-c for c in confidences(probs)], [1.0 - h for h in hits(labels, probs)])
    return mean([mean(wrong[:k]) for k in range(1, len(wrong) + 1)])


def augrc(labels: Labels, probs: Probs) -> float:
    """Mean over k = 1 ... N of the errors among the k most confident samples, over N."""
    wrong = in_expected_order([-c for c in confidences(probs)], [1.0 - h for h in hits(labels, probs)])
    return mean([math.fsum(wrong[:k]) / len(wrong) for k in range(1, len(wrong) + 1)])


def area_under_roc(values: Floats, positive: Floats) -> float:
    """Share of the pairs of a positive and a negative sample of which the former has the higher value; ties half."""
    ups = [value for value, hit in zip(values, positive, strict=True) if hit]
    downs = [value for value, hit in zip(values, positive, strict=True) if not hit]
    if not ups or not downs:
        raise UndefinedScoreError("only one kind of sample")
    return math.fsum((up > down) + (up == down) / 2 for up in ups for down in downs) / len(ups) / len(downs)


def failure_auroc(labels: Labels, probs: Probs) -> float:
    return area_under_roc(confidences(probs), hits(labels, probs))


def risk_at_80(labels: Labels, probs: Probs) -> float:
    wrong = in_expected_order([-c for c in confidences(probs)], [1.0 - h for h in hits(labels, probs)])
    return mean(wrong[: -(-4 * len(wrong) // 5)])


def event_rate(labels: Labels, probs: Probs) -> float:
    event_probabilities(probs)
    return mean([float(label) for label in labels])


def stated_rate(labels: Labels, probs: Probs) -> float:
    return mean(event_probabilities(probs))


def event_ratio(labels: Labels, probs: Probs) -> float:
    return divided(stated_rate(labels, probs), event_rate(labels, probs), "the share of events")


def auroc(labels: Labels, probs: Probs) -> float:
    return area_under_roc(event_probabilities(probs), [float(label) for label in labels])


def average_precision(labels: Labels, probs: Probs) -> float:
    """Over the thresholds at which recall rises: the rise times the precision there."""
    p, total = event_probabilities(probs), sum(labels)
    if not total:
        raise UndefinedScoreError("no event")
    area = 0.0
    for threshold in set(p):
        chosen = [label for value, label in zip(p, labels, strict=True) if value >= threshold]
        fresh = sum(label for value, label in zip(p, labels, strict=True) if value == threshold)
        area += fresh / total * sum(chosen) / len(chosen)
    return area


def logits(probs: Probs) -> list[float]:
    return [
        max(min(math.log(p / (1 - p)) if 0 < p < 1 else (p - 0.5) * math.inf, math.log(1e7)), -math.log(1e7))
        for p in event_probabilities(probs)
    ]


def odds_score(x: Floats, labels: Labels, offset: float, slope: float) -> tuple[float, float]:
    """Derivative of the log likelihood by offset and slope."""
    rest = [label - 1 / (1 + math.exp(-offset - slope * v)) for v, label in zip(x, labels, strict=True)]
    return math.fsum(rest), math.fsum(r * v for r, v in zip(rest, x, strict=True))


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, by bisection."""
    if function(low) <= 0 or function(high) >= 0:
        raise UndefinedScoreError("no finite maximum")
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def cal_offset(labels: Labels, probs: Probs) -> float:
    x = logits(probs)
    return root(lambda a: odds_score(x, labels, a, 1.0)[0], -40.0, 40.0)


def cal_slope(labels: Labels, probs: Probs) -> float:
    """The slope at which the likelihood is largest, with the best offset for each slope."""
    x = logits(probs)
    if len(set(x)) < 2:
        raise UndefinedScoreError("the probability is the same everywhere")

    def best_offset(slope: float) -> float:
        return root(lambda a: odds_score(x, labels, a, slope)[0], -400.0, 400.0)

    return root(lambda b: odds_score(x, labels, best_offset(b), b)[1], -20.0, 20.0)


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
    "mdice": mdice,
    "cwece": cwece,
    "worst_class_gap": worst_class_gap,
    "entropy_mean": entropy_mean,
    "aurc": aurc,
    "augrc": augrc,
    "failure_auroc": failure_auroc,
    "risk_at_80": risk_at_80,
    "ece_top": ece_top,
    "event_rate": event_rate,
    "stated_rate": stated_rate,
    "event_ratio": event_ratio,
    "cal_slope": cal_slope,
    "cal_offset": cal_offset,
    "auroc": auroc,
    "average_precision": average_precision,
}
OF_EVENTS = (
    "ece_top", "event_rate", "stated_rate", "event_ratio", "cal_slope", "cal_offset", "auroc", "average_precision",
)  # fmt: skip
"""Scores of two classes only."""
OF_CLASSES = ("cwece", "worst_class_gap")
"""Scores of more than two classes only."""
