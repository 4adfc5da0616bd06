r"""Test of the ranking of errors by stated uncertainties: the area under the random gain.

The area is :math:`A = \int 1 - \sqrt{M_f / M_1}\,df`, where :math:`M_f` is the mean error of the samples remaining
after the share f of the most uncertain is removed; a random order, and a constant, score 0. Each sample (or group)
contributes

.. math:: u_i = -\int \tfrac12 \sqrt{M_f / M_1} \left[\frac{\sum_{j \in i, f} (b_j - M_f)}{K_f M_f}
          - \frac{\sum_{j \in i} (b_j - M_1)}{N M_1}\right] df

for errors b (squared errors, or Brier scores) and :math:`K_f` remaining samples, with the thresholds held fixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from uq_tracking.inference.limits import FEWEST_CARRYING, Influence, p_of_gamma
from uq_tracking.metrics import groups
from uq_tracking.metrics.groups import size_freedom
from uq_tracking.metrics.ranking import FRACTIONS, remaining_counts
from uq_tracking.metrics.registry import Undefined
from uq_tracking.statistics.orders import FloatArray
from uq_tracking.statistics.regression import joint_counts, rank_correlation

_STEPS = np.diff(FRACTIONS)
TRAPEZOID = np.concatenate([[0.0], _STEPS]) / 2 + np.concatenate([_STEPS, [0.0]]) / 2
"""Weights of the fractions in an area."""


@dataclass(frozen=True)
class Order:
    """Quantity that samples are ordered by, the payload that is their error, and the order that knows its sum.

    Roots of the mean errors make the curve of a regression; ``power`` is 2 there, and 1 otherwise; then ``most`` is
    the largest error of a sample.
    """

    by: str
    payload: str
    errors: str
    power: Literal[1, 2]
    most: float = math.inf


def gain_influence(statistics: Any, order: Order, model: FloatArray) -> Influence:
    """Compute the contributions of samples, or of groups if there are any, to the area under the random gain.

    Parameters
    ----------
    statistics : statistics of the task
    order : Order
    model : array, shape (100,)
        The model's sparsification curve.

    Raises
    ------
    Undefined
        Too few groups hold most of the errors.
    """
    mean_error = statistics.orders[order.errors].sum(order.payload) / statistics.n
    mean = mean_error * model**order.power
    step = TRAPEZOID * model / order.power
    if groups.count(statistics) is not None:
        kept = groups.positions(statistics, remaining_counts)
        table = statistics.groups.orders[order.by]
        count, error = (groups.sums_below(table, name, kept) for name in ("count", order.payload))
        worth = size_freedom(error[:, 0]) + 1
        if worth < FEWEST_CARRYING:
            raise Undefined(
                f"few groups hold most of the errors, worth {worth:.1f} equal ones; it needs {FEWEST_CARRYING}"
            )
        contributions = _contributions(count, error, mean, kept, step)
        return Influence.of(contributions, None, groups.freedom(statistics))
    parts, count = _of_bounded(statistics, order, mean, remaining_counts(statistics.n), step)
    share = groups.effective(statistics)[1]
    return Influence.of(parts / share, count * share)


def sign_without_largest(statistics: Any, level: float) -> int:
    """Test whether larger stds go with larger errors (1), with smaller ones (-1), or neither is shown (0).

    The one sample in a thousand with the largest error, at least one, is left out, so that it decides nothing. Two
    tests look at the others: Spearman's correlation, which decides if it speaks, and the area under the random gain,
    which of squares instead of roots is a correlation of squared errors with the weights of their places, and has the
    law of a random permutation.
    """
    joint, order = joint_counts(statistics), statistics.orders["std"]
    std_low, std_high, *ends = joint.edges()
    square = np.square((ends[0] + ends[1]) / 2)
    largest = np.argsort(-square, kind="stable")
    count = joint.count.astype(float)
    before = np.cumsum(count[largest]) - count[largest]
    dropped = np.zeros(len(count))
    dropped[largest] = np.clip(max(1.0, count.sum() // 1000) - before, 0, count[largest])
    rank = (order.position(std_low) + order.position(std_high)) / order.total - 1
    correlation = (rank_correlation(statistics) or 0.0) * count.sum() - 3 * float(dropped @ rank)
    left = count > dropped
    count, square = (count - dropped)[left], square[left]
    n, total = float(statistics.n_effective), float(count.sum())
    correlation /= total
    t = correlation * math.sqrt((n - 2) / max(1 - correlation**2, 1e-12))
    if 2 * special.stdtr(n - 2, -abs(t)) < 1 - level:
        return int(np.sign(t))
    kept = remaining_counts(total)
    stds, place = np.unique(std_low[left], return_inverse=True)
    high = np.cumsum(np.bincount(place, count, len(stds))).astype(float)
    low = np.concatenate([[0.0], high[:-1]])
    weight, weight_skew = _standardized(_remaining(low, high, kept, -TRAPEZOID / kept)[place], count)
    error, error_skew = _standardized(square, count)
    t = math.sqrt(n - 1) * float(count @ (weight * error)) / total
    skew = weight_skew * error_skew * math.sqrt(n - 1) / (n - 2)
    return int(np.sign(t)) if p_of_gamma(np.asarray([t]), np.asarray([skew]))[0] < 1 - level else 0


def _standardized(values: FloatArray, count: FloatArray) -> tuple[FloatArray, float]:
    """Return values with mean 0 and variance 1, and their skewness; zeros where all are equal."""
    centred = values - count @ values / count.sum()
    variance = float(count @ np.square(centred)) / count.sum()
    made = centred / math.sqrt(variance) if variance > 0 else np.zeros(len(values))
    return made, float(count @ made**3) / count.sum()


def _contributions(
    count: FloatArray, error: FloatArray, mean: FloatArray, kept: FloatArray, step: FloatArray
) -> FloatArray:
    """Contributions of units from their remaining samples and errors, each of shape (units, fractions)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(mean > 0, (error - count * mean) / (kept * mean), 0.0)
    return np.asarray((part[:, :1] - part) @ step)


def _of_places(
    low: FloatArray,
    high: FloatArray,
    error: FloatArray,
    mean: FloatArray,
    kept: FloatArray,
    step: FloatArray,
) -> FloatArray:
    """Contributions of single samples that lie anywhere between two positions of the order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(mean > 0, step / (kept * mean), 0.0)
    start, end = _remaining(low, high, kept, weight), _remaining(low, high, kept, weight * mean)
    return np.asarray(end - error * start + step.sum() * (error - mean[0]) / (kept[0] * mean[0]))


def _remaining(low: FloatArray, high: FloatArray, kept: FloatArray, weight: FloatArray) -> FloatArray:
    """Sum over the fractions of weight times the remaining share of the samples between two positions."""
    knots, first = np.unique(np.concatenate([[0.0], kept]), return_inverse=True)
    drop = np.zeros(len(knots))
    np.add.at(drop, first[1:], weight)  # a weight counts for positions below its number of samples
    height = weight.sum() - np.cumsum(drop)[:-1] + drop[0]
    area = np.concatenate([[0.0], np.cumsum(np.diff(knots) * height)])
    return np.asarray((np.interp(high, knots, area) - np.interp(low, knots, area)) / (high - low))


def _of_bounded(
    statistics: Any, order: Order, mean: FloatArray, kept: FloatArray, step: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Contributions of samples with bounded errors; where uncertainties are equal, with the largest possible spread.

    Brier scores lie between 0 and 2: for samples with the same entropy and mean b, spread is largest if a share b / 2
    of them scores 2 and the others 0.
    """
    parts: list[FloatArray] = []
    for block in statistics.orders[order.by].blocks((order.payload,)):
        low, errors = block.ends - block.count, block.sums[order.payload]
        alone = block.count <= 1
        parts.append(np.stack([low[alone], block.ends[alone], errors[alone], block.count[alone]]))
        several = ~alone
        worst = np.clip(errors[several] / order.most, 0, block.count[several])
        for value, count in ((order.most, worst), (0.0, block.count[several] - worst)):
            parts.append(np.stack([low[several], block.ends[several], np.full(len(count), value), count]))
    low, high, error, count = np.concatenate(parts, axis=1)
    return _of_places(low, high, error, mean, kept, step), count
