"""Every reading of a score's name that libraries compute, written out from its definition.

Nothing here uses `uq_tracking`; its own readings come from the transcriptions in ``tests/oracles``. A convention states
what tells it from the others of its score: how samples are binned, which edge belongs to a bin, what is averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np

Array = Any
Facts = dict[str, str | int]

ARRAYS = {
    "event": ("labels", "p"),
    "weighted event": ("labels", "p", "weights"),
    "classes": ("labels", "probs"),
    "normal": ("y", "mean", "std"),
    "weighted normal": ("y", "mean", "std", "weights"),
    "grouped normal": ("y", "mean", "std", "groups"),
    "draws": ("y", "draws"),
    "quantiles": ("y", "quantiles", "levels"),
    "interval": ("y", "low", "high", "level"),
}
"""What a forecast is given by, in the order in which a score takes it."""

LEVELS = np.arange(1, 100) / 100


@dataclass(frozen=True)
class Convention:
    """One reading of a score's name. ``compute`` takes the arrays of its ``kind`` in order."""

    score: str
    kind: str
    facts: Facts
    compute: Callable[..., float]

    @property
    def text(self) -> str:
        """What tells it from other readings, in words."""
        return "; ".join(
            f"{value} bins" if name == "bins" else str(value) for name, value in self.facts.items()
        )


CONVENTIONS: list[Convention] = []


def convention(
    score: str, kind: str, **facts: str | int
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Enter a function as one reading of a score."""

    def enter(function: Callable[..., float]) -> Callable[..., float]:
        CONVENTIONS.append(Convention(score, kind, facts, function))
        return function

    return enter


def mean(values: Array) -> float:
    """Return the correctly rounded sum divided by the count."""
    values = np.ravel(np.asarray(values, dtype=np.float64))
    return math.fsum(values.tolist()) / values.size


# Bins of probabilities. Each function returns the bin of every sample.


def inner_edges(bins: int, made_by: str) -> Array:
    """Return the edges between bins: b / bins, or as a library's ``linspace`` rounds them."""
    b = np.arange(1, bins)
    if made_by == "numpy.linspace":
        return np.linspace(0, 1, bins + 1)[1:-1]
    if made_by == "torch.linspace":
        step = 1 / bins
        return np.where(b < (bins + 1) // 2, step * b, 1 - step * (bins - b))
    return b / bins


def width(side: str, made_by: str, apart: float | None = None) -> Callable[[Array, int], Array]:
    """Return a binning of equal width: the side of an edge that a value on it goes to, and a value kept apart."""

    def place(stated: Array, bins: int) -> Array:
        found = np.searchsorted(inner_edges(bins, made_by), stated, side=side)  # type: ignore[call-overload]
        return found if apart is None else np.where(np.asarray(stated) == apart, bins, found)

    return place


def mass_at_quantiles(stated: Array, bins: int) -> Array:
    """Return bins (low, high] between interpolated quantiles of the stated values; ties stay together."""
    edges = np.quantile(stated, np.linspace(0, 1, bins + 1))
    return np.searchsorted(edges[1:-1], stated, side="left")


def mass_by_rank(stated: Array, bins: int) -> Array:
    """Return bins of equal count in stable order, the larger ones first."""
    place = np.empty(len(stated), dtype=np.int64)
    for b, members in enumerate(np.array_split(np.argsort(stated, kind="stable"), bins)):
        place[members] = b
    return place


BINNINGS = {
    "equal width [low, high)": width("right", "division"),
    "equal width (low, high]": width("left", "division"),
    "equal width [low, high), edges as numpy.linspace rounds them": width("right", "numpy.linspace"),
    "equal width (low, high], edges as numpy.linspace rounds them": width("left", "numpy.linspace"),
    "equal width [low, high), edges as torch.linspace rounds them": width("right", "torch.linspace"),
    "equal width [low, high), edges as torch.linspace rounds them, 1 in a bin of its own": width(
        "right", "torch.linspace", apart=1
    ),
    "equal mass, edges at interpolated quantiles": mass_at_quantiles,
    "equal mass by rank, ties in order of rows": mass_by_rank,
}
BINS = (5, 10, 15, 20)
ONE_LESS = {
    "equal width (low, high], edges as numpy.linspace rounds them, 0 in a bin of its own": width(
        "left", "numpy.linspace", apart=0
    ),
    "equal mass, edges at interpolated quantiles": mass_at_quantiles,
}
"""Binnings of functions that take the number of edges for that of bins: asked for 10 or 50, they make 9 or 49."""
BINNED = [*product(BINNINGS.items(), BINS), *product(ONE_LESS.items(), (9, 49))]


def gaps(stated: Array, observed: Array, place: Array) -> tuple[Array, Array]:
    """Return the share of samples and the gap (observed minus stated) of each bin that holds any."""
    used = np.unique(place)
    share = np.array([np.mean(place == b) for b in used])
    gap = np.array([mean(observed[place == b]) - mean(stated[place == b]) for b in used])
    return share, gap


REDUCTIONS: dict[str, tuple[str, Callable[[Array, Array], float]]] = {
    "ece": ("mean absolute gap, weighted by count", lambda share, gap: math.fsum(share * np.abs(gap))),
    "rms_ce": (
        "root mean squared gap, weighted by count",
        lambda share, gap: math.sqrt(math.fsum(share * gap**2)),
    ),
    "mce": ("largest absolute gap", lambda share, gap: float(np.max(np.abs(gap)))),
    "ace": ("mean absolute gap of the bins that hold samples", lambda share, gap: mean(np.abs(gap))),
}


def top(probs: Array) -> tuple[Array, Array]:
    """Return the most probable class of each row, the first of several, and its probability."""
    chosen = np.argmax(probs, axis=1)
    return chosen, probs[np.arange(len(probs)), chosen]


def of_event(labels: Array, p: Array) -> tuple[Array, Array]:
    """Return stated and observed: the event's probability and whether it occurred."""
    return p, labels.astype(float)


def of_top_of_two(labels: Array, p: Array) -> tuple[Array, Array]:
    """Return stated and observed of the more probable of two classes; at one half, of class 0."""
    return np.maximum(p, 1 - p), ((p > 0.5) == (labels == 1)).astype(float)


def of_top(labels: Array, probs: Array) -> tuple[Array, Array]:
    """Return stated and observed: the top label's probability and whether it is right."""
    chosen, confidence = top(probs)
    return confidence, (chosen == labels).astype(float)


def enter_binned(kind: str, of: str, pairs: Callable[..., tuple[Array, Array]]) -> None:
    """Enter every binned calibration score of stated and observed values."""
    for (score, (reduction, fold)), ((binning, place), bins) in product(REDUCTIONS.items(), BINNED):

        def compute(
            labels: Array, probs: Array, fold: Any = fold, place: Any = place, bins: int = bins
        ) -> float:
            stated, observed = pairs(labels, probs)
            return fold(*gaps(stated, observed, place(stated, bins)))

        convention(score, kind, of=of, bins=bins, binning=binning, reduction=reduction)(compute)


enter_binned("event", "the event", of_event)
enter_binned("event", "the top label", of_top_of_two)
enter_binned("classes", "the top label", of_top)


def class_errors(labels: Array, probs: Array, bins: int, place: Callable[[Array, int], Array]) -> Array:
    """Return each class's calibration error against the rest."""
    found = []
    for c in range(probs.shape[1]):
        share, gap = gaps(probs[:, c], (labels == c).astype(float), place(probs[:, c], bins))
        found.append(math.fsum(share * np.abs(gap)))
    return np.array(found)


def enter_classwise() -> None:
    """Enter the calibration errors of classes."""
    for (binning, place), bins in BINNED:
        folds: dict[str, Callable[[Array, Array], float]] = {
            "mean over all classes": lambda errors, _: mean(errors),
            "sum over all classes": lambda errors, _: math.fsum(errors),
            "mean over the classes that occur": lambda errors, labels: mean(errors[np.unique(labels)]),
        }
        for fold_name, fold in folds.items():

            def compute(
                labels: Array, probs: Array, fold: Any = fold, place: Any = place, bins: int = bins
            ) -> float:
                return fold(class_errors(labels, probs, bins, place), labels)

            convention(
                "cwece",
                "classes",
                of="each class against the rest",
                bins=bins,
                binning=binning,
                over=fold_name,
            )(compute)

        def by_predicted(labels: Array, probs: Array, place: Any = place, bins: int = bins) -> float:
            stated, observed = of_top(labels, probs)
            chosen = top(probs)[0]
            errors = []
            for c in np.unique(chosen):
                inside = chosen == c
                share, gap = gaps(stated[inside], observed[inside], place(stated[inside], bins))
                errors.append(math.fsum(share * np.abs(gap)))
            return mean(errors)

        convention(
            "ece", "classes", of="the top label, mean over predicted classes", bins=bins, binning=binning
        )(by_predicted)


enter_classwise()


# Proper scores of probabilities.


@convention("brier", "event", of="the event alone")
def brier_event(labels: Array, p: Array) -> float:
    """Mean of (p - y)^2."""
    return mean((p - labels) ** 2)


@convention("brier", "event", of="the sum over both classes")
def brier_both(labels: Array, p: Array) -> float:
    """Mean of the sum over both classes."""
    return 2 * brier_event(labels, p)


def squared(labels: Array, probs: Array) -> Array:
    """Return each sample's sum of squared differences over classes."""
    return np.sum((probs - np.eye(probs.shape[1])[labels]) ** 2, axis=1)


BRIER = {
    "sum over classes": lambda classes: 1.0,
    "half the sum over classes": lambda classes: 0.5,
    "mean over classes": lambda classes: 1 / classes,
}
for _over, _factor in BRIER.items():
    convention("brier", "classes", over=_over)(
        lambda labels, probs, factor=_factor: factor(probs.shape[1]) * mean(squared(labels, probs))
    )

CLIPS = {
    "not clipped": 0.0,
    "clipped at 1e-15": 1e-15,
    "clipped at 2.2e-16": 2.0**-52,
    "clipped at 1e-7": 1e-7,
}


def enter_log_losses() -> None:
    """Enter log losses: base and clipping."""
    for (unit, base), (clipping, least) in product((("nats", 1.0), ("bits", math.log(2))), CLIPS.items()):

        def of_chosen(chosen: Array, base: float = base, least: float = least) -> float:
            chosen = np.clip(chosen, least, 1 - least)
            return mean(-np.log(chosen)) / base if np.all(chosen > 0) else math.inf

        def event(labels: Array, p: Array, score: Any = of_chosen) -> float:
            return score(np.where(labels == 1, p, 1 - p))

        def classes(labels: Array, probs: Array, score: Any = of_chosen) -> float:
            return score(probs[np.arange(len(labels)), labels])

        convention("nll", "event", unit=unit, clipping=clipping)(event)
        convention("nll", "classes", unit=unit, clipping=clipping)(classes)


enter_log_losses()


# Level and slope of an event's log odds.

LARGEST_ODDS = 1e7


def log_odds(p: Array) -> Array:
    """Return log odds, within those of 1 to ten million."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p) - np.log1p(-p), -math.log(LARGEST_ODDS), math.log(LARGEST_ODDS))


def logistic_fit(columns: Array, fixed: Array, labels: Array) -> Array:
    """Return the coefficients of the largest likelihood by Newton's method; NaN if it does not settle."""
    found = np.zeros(columns.shape[1])
    for _ in range(100):
        q = 1 / (1 + np.exp(-(fixed + columns @ found)))
        step = np.linalg.solve((columns.T * (q * (1 - q))) @ columns, columns.T @ (labels - q))
        found = found + step
        if np.max(np.abs(step)) < 1e-14 * max(1.0, np.max(np.abs(found))):
            return found
    return found if np.max(np.abs(step)) < 1e-9 else np.full_like(found, math.nan)


@convention(
    "cal_offset", "event", of="offset of the log odds, slope 1", clipping="odds within 1 to ten million"
)
def cal_offset(labels: Array, p: Array) -> float:
    """Offset that a logistic regression on the stated log odds, slope 1, would add."""
    return float(logistic_fit(np.ones((len(p), 1)), log_odds(p), labels)[0])


@convention(
    "cal_slope", "event", of="slope of the joint fit with an offset", clipping="odds within 1 to ten million"
)
def cal_slope(labels: Array, p: Array) -> float:
    """Slope of a logistic regression on the stated log odds."""
    columns = np.stack([np.ones(len(p)), log_odds(p)], axis=1)
    return float(logistic_fit(columns, np.zeros(len(p)), labels)[1])


# Discrimination and selective prediction.


def area_under_roc(values: Array, positive: Array) -> float:
    """Share of pairs of a positive and a negative in which the positive has the higher value; ties count half."""
    ups, downs = values[positive == 1], values[positive == 0]
    wins = (ups[:, None] > downs).sum() + (ups[:, None] == downs).sum() / 2
    return float(wins) / len(ups) / len(downs) if len(ups) and len(downs) else math.nan


@convention("auroc", "event", ties="count half")
def auroc(labels: Array, p: Array) -> float:
    """Area under the ROC curve of the event."""
    return area_under_roc(p, labels)


@convention("failure_auroc", "classes", ties="count half")
def failure_auroc(labels: Array, probs: Array) -> float:
    """Area under the ROC curve of confidence for being right."""
    confidence, right = of_top(labels, probs)
    return area_under_roc(confidence, right)


def precision_recall(labels: Array, p: Array) -> tuple[Array, Array]:
    """Return precision and recall at each distinct threshold, from the highest."""
    thresholds = np.unique(p)[::-1]
    chosen = [labels[p >= t] for t in thresholds]
    return np.array([c.mean() for c in chosen]), np.array([c.sum() for c in chosen]) / labels.sum()


@convention("average_precision", "event", area="steps")
def average_precision(labels: Array, p: Array) -> float:
    """Sum of each rise of recall times the precision there."""
    precision, recall = precision_recall(labels, p)
    return math.fsum(np.diff(recall, prepend=0) * precision)


@convention("average_precision", "event", area="trapezoid, from precision 1")
def precision_area(labels: Array, p: Array) -> float:
    """Area under the precision-recall curve by trapezoids."""
    precision, recall = precision_recall(labels, p)
    return float(np.trapezoid(np.r_[1, precision], np.r_[0, recall]))


def wrong_in_order(labels: Array, probs: Array, ties: str) -> Array:
    """Return errors (0 or 1) from the surest sample on; tied ones in order of rows, or each group's mean."""
    confidence, right = of_top(labels, probs)
    order = np.argsort(-confidence, kind="stable")
    wrong = 1 - right[order]
    if ties == "expected over orders of ties":
        _, group = np.unique(-confidence[order], return_inverse=True)
        wrong = (np.bincount(group, wrong) / np.bincount(group))[group]
    return wrong


def enter_risks() -> None:
    """Enter areas under risk-coverage curves."""
    for ties in ("expected over orders of ties", "ties in order of rows"):

        def risks(labels: Array, probs: Array, ties: str = ties) -> Array:
            wrong = wrong_in_order(labels, probs, ties)
            return np.cumsum(wrong) / np.arange(1, len(wrong) + 1)

        def generalized(labels: Array, probs: Array, ties: str = ties) -> Array:
            wrong = wrong_in_order(labels, probs, ties)
            return np.cumsum(wrong) / len(wrong)

        for score, curve in (("aurc", risks), ("augrc", generalized)):

            def averaged(labels: Array, probs: Array, curve: Any = curve) -> float:
                return mean(curve(labels, probs))

            def area(labels: Array, probs: Array, curve: Any = curve) -> float:
                heights = curve(labels, probs)
                return float(np.trapezoid(heights)) / (len(heights) - 1)

            convention(score, "classes", area="mean over all coverages", ties=ties)(averaged)
            convention(score, "classes", area="trapezoid from one sample on", ties=ties)(area)

        def excess(labels: Array, probs: Array, curve: Any = risks) -> float:
            wrong = 1 - of_top(labels, probs)[1]
            best = np.cumsum(np.sort(wrong)) / np.arange(1, len(wrong) + 1)
            return mean(curve(labels, probs)) - mean(best)

        convention("e_aurc", "classes", area="mean over all coverages, minus the best order's", ties=ties)(
            excess
        )


enter_risks()


@convention("accuracy", "classes", ties="the first of several top classes")
def accuracy(labels: Array, probs: Array) -> float:
    """Share of samples whose top class is right."""
    return mean(of_top(labels, probs)[1])


def overlaps(labels: Array, probs: Array) -> Array:
    """Return, by class, samples of both, of either, and the sum of label and prediction counts."""
    chosen = top(probs)[0]
    return np.array(
        [
            (
                np.sum((labels == c) & (chosen == c)),
                np.sum((labels == c) | (chosen == c)),
                np.sum(labels == c) + np.sum(chosen == c),
            )
            for c in range(probs.shape[1])
        ]
    )


for _score, _column, _double in (("miou", 1, 1), ("mdice", 2, 2)):
    for _absent in ("left out", "count as 0"):

        def _overlap(
            labels: Array, probs: Array, column: int = _column, double: int = _double, absent: str = _absent
        ) -> float:
            found = overlaps(labels, probs)
            used = found[:, 1] > 0
            values = double * found[used, 0] / found[used, column]
            return mean(values) if absent == "left out" else math.fsum(values) / len(found)

        convention(
            _score,
            "classes",
            over="classes",
            absent=f"classes that neither occur nor are predicted {_absent}",
        )(_overlap)


# Normal forecasts: accuracy, scores, calibration, ranking.

NORMAL = NormalDist()
Z95 = NORMAL.inv_cdf(0.975)


def density(z: Array) -> Array:
    """Density of the standard normal."""
    return np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)


def below(z: Array) -> Array:
    """Distribution function of the standard normal."""
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in np.ravel(z)]).reshape(np.shape(z))


def crps_of(y: Array, mu: Array, s: Array) -> Array:
    """Return the closed form of each sample's CRPS."""
    z = (y - mu) / s
    return s * (z * (2 * below(z) - 1) + 2 * density(z) - 1 / math.sqrt(math.pi))


@convention("crps", "normal", of="a normal law, closed form")
def crps(y: Array, mu: Array, s: Array) -> float:
    """Mean CRPS of normal forecasts."""
    return mean(crps_of(y, mu, s))


@convention("nll", "normal", constant="with log(2 pi) / 2")
def nll(y: Array, mu: Array, s: Array) -> float:
    """Mean negative log density."""
    return mean(0.5 * math.log(2 * math.pi) + np.log(s) + 0.5 * ((y - mu) / s) ** 2)


@convention("nll", "normal", constant="without log(2 pi) / 2")
def nll_short(y: Array, mu: Array, s: Array) -> float:
    """Mean negative log density up to a constant, as torch's GaussianNLLLoss by default."""
    return mean(np.log(s) + 0.5 * ((y - mu) / s) ** 2)


@convention("rmse", "normal", over="all samples")
def rmse(y: Array, mu: Array, s: Array) -> float:
    """Root of the mean squared error."""
    return math.sqrt(mean((y - mu) ** 2))


@convention("mae", "normal", over="all samples")
def mae(y: Array, mu: Array, s: Array) -> float:
    """Mean absolute error."""
    return mean(np.abs(y - mu))


@convention("sharpness", "normal", of="root of the mean variance")
def sharpness(y: Array, mu: Array, s: Array) -> float:
    """Root of the mean variance."""
    return math.sqrt(mean(s**2))


@convention("sharpness", "normal", of="mean standard deviation")
def mean_std(y: Array, mu: Array, s: Array) -> float:
    """Mean standard deviation."""
    return mean(s)


for _ddof in (0, 1):
    convention("cv", "normal", divisor="N - 1" if _ddof else "N")(
        lambda y, mu, s, ddof=_ddof: float(np.std(s, ddof=ddof)) / mean(s)
    )

for _half, _text in (
    (Z95, "1.959964 standard deviations"),
    (1.96, "1.96 standard deviations"),
    (2.0, "2 standard deviations"),
):
    convention("coverage_95", "normal", interval=_text, ends="included")(
        lambda y, mu, s, half=_half: mean(np.abs(y - mu) <= half * s)
    )


def share_inside(y: Array, mu: Array, s: Array, levels: Array) -> Array:
    """Return the share of truths inside each central interval, its ends included."""
    z = np.abs(y - mu) / s
    return np.array([np.mean(z <= NORMAL.inv_cdf((1 + p) / 2)) if p < 1 else 1.0 for p in levels])


def share_below(y: Array, mu: Array, s: Array, levels: Array) -> Array:
    """Return the share of truths at or below each quantile."""
    z = (y - mu) / s
    return np.array([np.mean(z <= NORMAL.inv_cdf(p)) if 0 < p < 1 else float(p == 1) for p in levels])


def share_below_turned(y: Array, mu: Array, s: Array, levels: Array) -> Array:
    """Return shares below quantiles with the residual's sign reversed, as uncertainty-toolbox counts them."""
    return share_below(-y, -mu, s, levels)


SHARES = {
    "central intervals": share_inside,
    "quantiles": share_below,
    "quantiles of the reversed residual": share_below_turned,
}
GRIDS = {
    "levels .01 to .99": LEVELS,
    "100 levels from 0 to 1": np.linspace(0, 1, 100),
    "99 levels from 1/100 to 99/100, and both ends": np.linspace(0, 1, 101),
}


def polygon_area(levels: Array, shares: Array) -> float:
    """Return the area between the polygon of shares and the diagonal."""
    gap = shares - levels
    area = 0.0
    for left, right, step in zip(gap[:-1], gap[1:], np.diff(levels), strict=True):
        if left * right < 0:
            crossing = left / (left - right)
            area += step * (abs(left) * crossing + abs(right) * (1 - crossing)) / 2
        else:
            area += step * (abs(left) + abs(right)) / 2
    return float(area)


CALIBRATION: dict[str, tuple[str, Callable[[Array, Array], float]]] = {
    "mace": ("mean absolute gap", lambda levels, shares: mean(np.abs(shares - levels))),
    "rmsce": ("root mean squared gap", lambda levels, shares: math.sqrt(mean((shares - levels) ** 2))),
    "calibration_error": ("mean squared gap", lambda levels, shares: mean((shares - levels) ** 2)),
    "miscalibration_area": ("area of the polygon", polygon_area),
    "auce": (
        "trapezoids of absolute gaps",
        lambda levels, shares: float(np.trapezoid(np.abs(shares - levels), levels)),
    ),
}
for (_score, (_fold_name, _fold)), (_grid_name, _grid), (_share_name, _share) in product(
    CALIBRATION.items(), GRIDS.items(), SHARES.items()
):
    convention(_score, "normal", of=_share_name, levels=_grid_name, reduction=_fold_name)(
        lambda y, mu, s, fold=_fold, grid=_grid, share=_share: fold(grid, share(y, mu, s, grid))
    )
for _share_name, _share in SHARES.items():
    convention(
        "calibration_error",
        "normal",
        of=_share_name,
        levels="levels .01 to .99",
        reduction="sum of squared gaps",
    )(lambda y, mu, s, share=_share: math.fsum((share(y, mu, s, LEVELS) - LEVELS) ** 2))


def std_width(s: Array, bins: int) -> Array:
    """Return bins of equal width between the least and the largest value."""
    edges = np.linspace(np.min(s), np.max(s), bins + 1)[1:-1]
    return np.searchsorted(edges, s, side="right")


def binned_std(y: Array, mu: Array, s: Array, place: Array) -> Iterator[tuple[int, float, float, float]]:
    """Yield count, mean variance, mean std and mean squared error of each bin that holds samples."""
    for b in np.unique(place):
        inside = place == b
        yield int(inside.sum()), mean(s[inside] ** 2), mean(s[inside]), mean((y - mu)[inside] ** 2)


STD_BINNINGS = {
    "equal mass by rank, the larger bins first": mass_by_rank,
    "equal mass, edges at interpolated quantiles": mass_at_quantiles,
    "equal width between the least and the largest std": std_width,
    "equal width in variance": lambda s, bins: std_width(s**2, bins),
}
for (_binning, _place), _bins in product(STD_BINNINGS.items(), (5, 10, 15, 20, 100)):

    def _ence(y: Array, mu: Array, s: Array, place: Any = _place, bins: int = _bins) -> float:
        rows = list(binned_std(y, mu, s, place(s, bins)))
        return mean([abs(math.sqrt(v) - math.sqrt(e)) / math.sqrt(v) for _, v, _, e in rows])

    def _ence_of_mean_std(y: Array, mu: Array, s: Array, place: Any = _place, bins: int = _bins) -> float:
        rows = list(binned_std(y, mu, s, place(s, bins)))
        return mean([abs(m - math.sqrt(e)) / m for _, _, m, e in rows])

    def _weighted_ence(y: Array, mu: Array, s: Array, place: Any = _place, bins: int = _bins) -> float:
        rows = list(binned_std(y, mu, s, place(s, bins)))
        return math.fsum(n / len(s) * abs(math.sqrt(v) - math.sqrt(e)) / math.sqrt(v) for n, v, _, e in rows)

    def _uce(y: Array, mu: Array, s: Array, place: Any = _place, bins: int = _bins) -> float:
        rows = list(binned_std(y, mu, s, place(s, bins)))
        return math.fsum(n / len(s) * abs(e - v) for n, v, _, e in rows)

    def _uce_of_std(y: Array, mu: Array, s: Array, place: Any = _place, bins: int = _bins) -> float:
        rows = list(binned_std(y, mu, s, place(s, bins)))
        return math.fsum(n / len(s) * abs(math.sqrt(e) - math.sqrt(v)) for n, v, _, e in rows)

    convention(
        "ence", "normal", bins=_bins, binning=_binning, of="root mean variance", over="mean over bins"
    )(_ence)
    convention("ence", "normal", bins=_bins, binning=_binning, of="mean std", over="mean over bins")(
        _ence_of_mean_std
    )
    convention(
        "ence", "normal", bins=_bins, binning=_binning, of="root mean variance", over="bins weighted by count"
    )(_weighted_ence)
    convention("uce", "normal", bins=_bins, binning=_binning, of="variances", over="bins weighted by count")(
        _uce
    )
    convention(
        "uce", "normal", bins=_bins, binning=_binning, of="root mean variances", over="bins weighted by count"
    )(_uce_of_std)


def pinball_of(y: Array, x: Array, q: Array) -> Array:
    """Return the pinball loss of each truth and quantile."""
    return np.maximum(q * (y - x), (q - 1) * (y - x))


def interval_score_of(y: Array, low: Array, high: Array, alpha: Array) -> Array:
    """Return the Winkler score of each truth and interval of level 1 - alpha."""
    return high - low + 2 / alpha * (np.maximum(low - y, 0) + np.maximum(y - high, 0))


@convention("pinball", "normal", of="mean over quantiles .01 to .99")
def pinball(y: Array, mu: Array, s: Array) -> float:
    """Mean pinball loss of 99 quantiles."""
    return mean([mean(pinball_of(y, mu + NORMAL.inv_cdf(q) * s, q)) for q in LEVELS])


@convention("interval_score", "normal", of="mean over central levels .01 to .99")
def interval_score(y: Array, mu: Array, s: Array) -> float:
    """Mean Winkler score of 99 central intervals."""
    halves = [NORMAL.inv_cdf((1 + p) / 2) for p in LEVELS]
    return mean(
        [
            mean(interval_score_of(y, mu - k * s, mu + k * s, 1 - p))
            for k, p in zip(halves, LEVELS, strict=True)
        ]
    )


@convention("interval_score", "normal", of="the 95 % interval")
def interval_score_95(y: Array, mu: Array, s: Array) -> float:
    """Winkler score of the central 95 % interval."""
    return mean(interval_score_of(y, mu - Z95 * s, mu + Z95 * s, 0.05))


def remaining(order: Array, errors: Array, fold: Callable[[Array], float], fractions: Array) -> Array:
    """Return the fold of what is left when the given fractions are removed from the end of the order."""
    ordered = errors[order]
    n = len(ordered)
    return np.array([fold(ordered[: max(1, math.floor(n * (1 - f) + 1e-9))]) for f in fractions])


AUSE_FRACTIONS = {
    "removed in steps of 1 % to 99 %": np.arange(100) / 100,
    "removed in steps of 5 % to 95 %": np.arange(20) / 20,
    "removed in steps of 10 % to 90 %": np.arange(10) / 10,
}
AUSE_ERRORS: dict[str, tuple[str, Callable[[Array], Array], Callable[[Array], float]]] = {
    "ause_rmse": ("RMSE", lambda e: e**2, lambda part: math.sqrt(float(np.mean(part)))),
    "ause_mae": ("MAE", np.abs, lambda part: float(np.mean(part))),
}
for (_score, (_name, _loss, _fold)), (_steps, _fractions), _normalised, _area in product(
    AUSE_ERRORS.items(), AUSE_FRACTIONS.items(), (True, False), ("trapezoids", "mean")
):

    def _ause(
        y: Array,
        mu: Array,
        s: Array,
        loss: Any = _loss,
        fold: Any = _fold,
        fractions: Any = _fractions,
        normalised: bool = _normalised,
        area: str = _area,
    ) -> float:
        errors = loss(y - mu)
        model = remaining(np.argsort(s, kind="stable"), errors, fold, fractions)
        best = remaining(np.argsort(errors, kind="stable"), errors, fold, fractions)
        gap = (model - best) / (fold(errors) if normalised else 1.0)
        return mean(gap) if area == "mean" else float(np.trapezoid(gap, fractions))

    convention(
        _score,
        "normal",
        steps=_steps,
        divisor=f"{_name} of all samples" if _normalised else "none",
        area=_area,
        ties="ties in order of rows",
    )(_ause)

# Weights and groups.


@convention("rmse", "weighted normal", divisor="sum of the weights")
def weighted_rmse(y: Array, mu: Array, s: Array, w: Array) -> float:
    """Root of the weighted mean squared error."""
    return math.sqrt(math.fsum(w * (y - mu) ** 2) / math.fsum(w))


@convention("crps", "weighted normal", divisor="sum of the weights")
def weighted_crps(y: Array, mu: Array, s: Array, w: Array) -> float:
    """Weighted mean CRPS."""
    return math.fsum(w * crps_of(y, mu, s)) / math.fsum(w)


@convention("nll", "weighted normal", divisor="sum of the weights")
def weighted_nll(y: Array, mu: Array, s: Array, w: Array) -> float:
    """Weighted mean negative log density."""
    losses = 0.5 * math.log(2 * math.pi) + np.log(s) + 0.5 * ((y - mu) / s) ** 2
    return math.fsum(w * losses) / math.fsum(w)


for _divisor in ("sum of the weights", "N"):
    convention("brier", "weighted event", of="the event alone", divisor=_divisor)(
        lambda labels, p, w, divisor=_divisor: (
            math.fsum(w * (p - labels) ** 2) / (len(w) if divisor == "N" else math.fsum(w))
        )
    )
    convention("nll", "weighted event", unit="nats", divisor=_divisor)(
        lambda labels, p, w, divisor=_divisor: (
            math.fsum(-w * np.log(np.where(labels == 1, p, 1 - p)))
            / (len(w) if divisor == "N" else math.fsum(w))
        )
    )


@convention("rmse", "grouped normal", over="all samples")
def pooled_rmse(y: Array, mu: Array, s: Array, groups: Array) -> float:
    """Root of the mean squared error over all samples, whatever their group."""
    return rmse(y, mu, s)


@convention("rmse", "grouped normal", over="mean over groups of each group's RMSE")
def mean_of_groups(y: Array, mu: Array, s: Array, groups: Array) -> float:
    """Mean of the groups' RMSE."""
    return mean([rmse(y[groups == g], mu[groups == g], s[groups == g]) for g in np.unique(groups)])


# Draws, quantiles, intervals.


def pairs_of_draws(draws: Array) -> Array:
    """Return each row's sum of absolute differences over all pairs of draws."""
    return np.array([np.abs(row[:, None] - row).sum() for row in draws])


for _name, _divisor in (
    ("all pairs, M^2", lambda m: m * m),
    ("pairs of different draws, M (M - 1): fair", lambda m: m * (m - 1)),
):
    convention("crps", "draws", spread=_name)(
        lambda y, draws, divisor=_divisor: mean(
            np.mean(np.abs(draws - y[:, None]), axis=1)
            - pairs_of_draws(draws) / (2 * divisor(draws.shape[1]))
        )
    )
for _ddof in (0, 1):
    convention("nll", "draws", of="a normal law with the draws' moments", divisor="M - 1" if _ddof else "M")(
        lambda y, draws, ddof=_ddof: nll(y, draws.mean(axis=1), draws.std(axis=1, ddof=ddof))
    )
    convention("crps", "draws", of="a normal law with the draws' moments", divisor="M - 1" if _ddof else "M")(
        lambda y, draws, ddof=_ddof: crps(y, draws.mean(axis=1), draws.std(axis=1, ddof=ddof))
    )
    convention(
        "dawid_sebastiani",
        "draws",
        of="log variance + squared error over variance",
        divisor="M - 1" if _ddof else "M",
    )(
        lambda y, draws, ddof=_ddof: mean(
            np.log(draws.var(axis=1, ddof=ddof))
            + (y - draws.mean(axis=1)) ** 2 / draws.var(axis=1, ddof=ddof)
        )
    )
    convention("sharpness", "draws", of="root of the mean variance", divisor="M - 1" if _ddof else "M")(
        lambda y, draws, ddof=_ddof: math.sqrt(mean(draws.var(axis=1, ddof=ddof)))
    )


@convention("rmse", "draws", of="the mean of the draws")
def rmse_of_draws(y: Array, draws: Array) -> float:
    """Root mean squared error of the draws' mean."""
    return math.sqrt(mean((y - draws.mean(axis=1)) ** 2))


for _twice in (1, 2):
    convention(
        "pinball", "quantiles", of="mean over levels" if _twice == 1 else "twice the mean over levels"
    )(lambda y, quantiles, levels, twice=_twice: twice * mean(pinball_of(y[:, None], quantiles, levels)))


@convention(
    "wis", "quantiles", of="Winkler scores of central pairs, weights alpha / 2, and half the median's error"
)
def weighted_interval_score(y: Array, quantiles: Array, levels: Array) -> float:
    """Weighted interval score of Bracher et al. (2021)."""
    middle = len(levels) // 2
    total = 0.5 * np.abs(y - quantiles[:, middle])
    for k in range(middle):
        alpha = 2 * levels[k]
        total = total + alpha / 2 * interval_score_of(y, quantiles[:, k], quantiles[:, -1 - k], alpha)
    return mean(total / (middle + 0.5))


@convention("coverage", "interval", ends="included")
def coverage_closed(y: Array, low: Array, high: Array, level: float) -> float:
    """Share of truths inside, ends included."""
    return mean((low <= y) & (y <= high))


@convention("coverage", "interval", ends="excluded")
def coverage_open(y: Array, low: Array, high: Array, level: float) -> float:
    """Share of truths strictly inside."""
    return mean((low < y) & (y < high))


@convention("interval_width", "interval", of="mean of high - low")
def interval_width(y: Array, low: Array, high: Array, level: float) -> float:
    """Mean width."""
    return mean(high - low)


@convention("interval_score", "interval", of="Winkler score with alpha = 1 - level")
def winkler(y: Array, low: Array, high: Array, level: float) -> float:
    """Mean Winkler score."""
    return mean(interval_score_of(y, low, high, 1 - level))
