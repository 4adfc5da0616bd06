"""Ranking: large errors told from small ones by the uncertainty, whatever its scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.families import FloatArray
from uq_tracking.metrics.accuracy import mae, of_errors
from uq_tracking.metrics.registry import NeedsGroups, Undefined, intermediate, metric, require_squares
from uq_tracking.parallel import inner
from uq_tracking.settings import Settings
from uq_tracking.statistics.orders import Block, Order
from uq_tracking.statistics.regression import rank_correlation
from uq_tracking.statistics.sketch import JOINT_BITS
from uq_tracking.statistics.statistics import Statistics

FRACTIONS = np.arange(100) / 100
"""Share of the most uncertain samples removed."""

ALL_ZERO = "all errors are 0, so there is no error to normalize by"

NEAR = 4000
"""From here on, ``log(n^2 + n + 1/3) / 2`` is exact to the last digit: the next term is -1 / (180 n^4)."""


@dataclass(frozen=True)
class Sparsification:
    """Error of the remaining samples over the error of all."""

    fraction: FloatArray
    model: FloatArray
    oracle: FloatArray

    def of_rest(self) -> dict[str, FloatArray]:
        """Columns of the error of the rest, also for a random order."""
        return {**vars(self), "random": np.ones_like(self.fraction)}

    def area(self) -> float:
        """Area between model and oracle."""
        return float(np.trapezoid(self.model - self.oracle, self.fraction))

    def gap(self) -> dict[str, FloatArray]:
        """Columns of the gap between model and oracle."""
        return {"fraction": self.fraction, "error": self.model - self.oracle}


def remaining_counts(n: float) -> FloatArray:
    """Samples remaining at each of the fractions 0, .01 ... .99: ``max(1, n (100 - i) // 100)``."""
    return np.asarray(np.maximum(1, n * np.arange(100, 0, -1) // 100), dtype=float)


@intermediate
def sparsification(
    statistics: Statistics, payload: str, by: str = "std", oracle: str = "abs_error", zero: str = ALL_ZERO
) -> Sparsification:
    """Sparsification curves of the mean of a payload, or of the RMSE; ``zero`` says why there may be none."""
    if payload == "sq_error":
        require_squares(0, float(statistics.orders["abs_error"].value([statistics.n])[0]), "errors")
    total = statistics.orders[oracle].sum(payload)
    if total == 0:
        raise Undefined(zero)
    kept = remaining_counts(statistics.n)
    root = np.sqrt if payload == "sq_error" else np.asarray

    def curve(order: Order) -> FloatArray:
        mean = np.maximum(order.cumulative(payload, kept), 0) / kept
        return np.asarray(root(mean / (total / statistics.n)))

    return Sparsification(FRACTIONS, curve(statistics.orders[by]), curve(statistics.orders[oracle]))


def unordered_area(scores: Mapping[str, float]) -> float | None:
    """Area between a flat sparsification curve and the oracle's, from the scores of any uncertainty."""
    if not {"ause_rmse", "aurg_rmse"} <= scores.keys():
        return None
    return scores["ause_rmse"] + scores["aurg_rmse"]


of_order = partial(metric, family="ranking", direction="lower", bounds=(0, math.inf))
"""Declares a score of how the uncertainties order the errors."""


@of_order(
    formula="trapezoid over f = 0, .01 ... .99 of [RMSE of the least uncertain 1 - f - oracle's] / RMSE",
    source="Ilg 2018; Gustafsson 2020 section 4.1",
    headline=True,
    glance="0 is best",
    against="rmse",
    oracle=0.0,
    constant=unordered_area,
    squares=True,
    in_curves=True,
    needs_groups=NeedsGroups(weighted=12, even=0.4),
)
def ause_rmse(statistics: Statistics, settings: Settings) -> float:
    """Area under the sparsification error, RMSE.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ause_rmse")
    0.0491163
    """
    return sparsification(statistics, "sq_error").area()


@of_order(
    direction="higher",
    formula="trapezoid over f = 0, .01 ... .99 of 1 - RMSE of the least uncertain 1 - f / RMSE",
    source="Poggi 2020",
    bounds=(-math.inf, 1),
    oracle=unordered_area,
    constant=0.0,
    squares=True,
    needs_groups=NeedsGroups(weighted=12, even=0.4),
)
def aurg_rmse(statistics: Statistics, settings: Settings) -> float:
    """Area under the random gain, RMSE.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("aurg_rmse")
    0.496746
    """
    curve = sparsification(statistics, "sq_error")
    return float(np.trapezoid(1 - curve.model, FRACTIONS))


@of_order(
    formula="(1/MAE) mean over k of [MAE of the k least uncertain - MAE of the k smallest errors]",
    source="Xiong 2024 eq. 4",
    oracle=0.0,
)
def ause_mae(statistics: Statistics, settings: Settings) -> float:
    """Area under the sparsification error, MAE.

    The exact mean over k of the gap between the k least uncertain samples and the k smallest errors.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("ause_mae")
    0.0360788
    """
    total = mae(statistics, settings)
    if total == 0:
        raise Undefined(ALL_ZERO)
    gap = sum_of_prefix_means(statistics.orders["std"], "abs_error") - sum_of_prefix_means(
        statistics.orders["abs_error"], "abs_error"
    )
    return gap / statistics.n / total


def sum_of_prefix_means(order: Order, payload: str) -> float:
    """Sum over k = 1 ... N of the mean payload of the first k samples.

    The j-th sample enters the means from k = j on and contributes H(N) - H(j - 1), where H are the harmonic numbers.
    Averaged over the c samples that end at q, that is ``H(N) - H(q - c) + 1 - q (H(q) - H(q - c)) / c``.
    """
    last = harmonic([order.total])

    def block_sum(block: Block) -> float:
        start = block.ends - block.count
        weight = last - harmonic(start)
        several = np.flatnonzero(block.count > 1)
        if len(several):
            ends, start, count = block.ends[several], start[several], block.count[several]
            weight[several] += 1 - ends * harmonic_gap(start, ends) / count
        return inner(weight, block.sums[payload])

    return math.fsum(order.map_blocks(block_sum, (payload,), "merged"))


def harmonic(n: npt.ArrayLike) -> FloatArray:
    """Harmonic numbers H(n) minus Euler's constant."""
    count = np.asarray(n, dtype=np.float64)
    values: FloatArray = 0.5 * np.log(count * (count + 1) + 1 / 3)
    near = np.flatnonzero(count < NEAR)
    values[near] = special.digamma(count[near] + 1)
    return values


def harmonic_gap(start: FloatArray, end: FloatArray) -> FloatArray:
    """``H(end) - H(start)`` without cancellation for large arguments."""
    x, y = start + 0.5, end + 0.5
    gap = np.log1p((end - start) / x) + (1 / y**2 - 1 / x**2) / 24
    near = np.flatnonzero(x < NEAR)
    gap[near] = special.digamma(y[near] + 0.5) - special.digamma(x[near] + 0.5)
    return gap


def order_of(share: float, n: float) -> float:
    """Rank of the smallest sample with at least ``share`` of n at or below it; .95 of 20 is the 19th."""
    if not isinstance(n, int):
        return share * n
    return max(1, math.ceil(_as_written(repr(float(share))) * n))


_as_written = lru_cache(maxsize=1024)(Fraction)
"""A share, as written in decimals, as a ratio of whole numbers."""


def constant_merci(scores: Mapping[str, float]) -> float | None:
    """Percentile of the errors, from the scores of any uncertainty: n_merci is (merci - MAE) / (percentile - MAE)."""
    if not {"merci", "n_merci", "mae"} <= scores.keys() or abs(scores["n_merci"]) < 1e-6:
        return None  # an oracle says nothing about the percentile
    return scores["mae"] + (scores["merci"] - scores["mae"]) / scores["n_merci"]


@of_order(
    unit="target",
    formula="lambda mean s, lambda the order statistic ceil(alpha N) of |z|",
    source="MeRCI 2018 eq. 8",
    oracle=lambda scores: scores.get("mae"),
    constant=constant_merci,
    on_scale="n_merci",
)
def merci(statistics: Statistics, settings: Settings) -> float:
    """Mean uncertainty once scaled to cover alpha of the errors.

    Mean rescaled calibrated interval (MeRCI).

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("merci")
    0.525
    """
    scale = float(statistics.orders["z"].absolute_value([order_of(settings.alpha, statistics.n)])[0])
    if not math.isfinite(scale):
        raise Undefined(
            f"no finite scale covers {settings.alpha:g} of the errors: too many standard deviations are (nearly) 0"
        )
    return scale * statistics.moments["std"].mean


def beyond_ends(value: float) -> str:
    """Remark on an n_merci at or beyond an end of its scale.

    The oracle's mean covers all errors, but MeRCI only the uncertainties that cover a share alpha of them: if the
    errors beyond carry much of the mean, a model that ignores them comes out below the oracle.

    >>> beyond_ends(1.25)
    '1.25 is no better than a constant uncertainty, which scores 1'
    """
    if value < 0:
        return (
            f"{value:.3g} is below its oracle, which scores 0: errors beyond alpha carry much of the mean "
            "error, and merci leaves them out. Neither ranks methods here"
        )
    return f"{value:.3g} is no better than a constant uncertainty, which scores 1" if value >= 1 else ""


@metric(
    family="ranking",
    direction="lower",
    formula="(MeRCI - MAE) / (Q_alpha(|e|) - MAE)",
    source="n-MeRCI 2019 eq. 2",
    headline=True,
    glance="1 = constant",
    oracle=0.0,
    constant=1.0,
    on_scale="n_merci",
    remark=beyond_ends,
    in_curves=True,
)
def n_merci(statistics: Statistics, settings: Settings) -> float:
    """MeRCI between oracle (0) and constant uncertainty (1).

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("n_merci")
    0.4
    """
    oracle = statistics.orders["abs_error"].sum("abs_error") / statistics.n
    constant = float(statistics.orders["abs_error"].value([order_of(settings.alpha, statistics.n)])[0])
    if constant <= oracle * (1 + 1e-12):  # equal up to the rounding of the mean, or the scale runs backwards
        raise Undefined(
            f"the oracle's mean error is not below the error's {settings.alpha:g} percentile, so there is no scale"
        )
    return (merci(statistics, settings) - oracle) / (constant - oracle)


@of_errors(
    formula="mean of the ceil(alpha N) smallest |y - mu|",
    source="n-MeRCI 2019 fig. 4",
)
def trimmed_mae(statistics: Statistics, settings: Settings) -> float:
    """Mean of the alpha smallest absolute errors.

    That is the mean absolute error of the samples that MeRCI covers: all but the largest errors.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("trimmed_mae")
    0.341667
    """
    kept = order_of(settings.alpha, statistics.n)
    return float(statistics.orders["abs_error"].cumulative("abs_error", [kept])[0]) / kept


@of_order(
    direction="higher",
    formula="Pearson correlation of the average ranks of s and |e|",
    source="Xiong 2024 eq. 10",
    bounds=(-1, 1),
    oracle=1.0,
    needs_groups=NeedsGroups(weighted=12),
)
def spearman(statistics: Statistics, settings: Settings) -> float:
    """Rank correlation of uncertainty and absolute error.

    Examples
    --------
    >>> from uq_tracking.testing.examples import example_score
    >>> example_score("spearman")
    0.915491
    """
    correlation = rank_correlation(statistics)
    if correlation is None:
        std = statistics.moments["std"]
        alike = std.high <= std.low * (1 + 2.0**-JOINT_BITS)
        constant = "standard deviations" if alike else "absolute errors"
        raise Undefined(
            f"all {constant} are equal (or closer than the statistics resolve), so they have no ranks"
        )
    return correlation
