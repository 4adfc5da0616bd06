"""Draws from a predictive distribution, scored by their order alone: nothing is fitted to them.

And vectors predicted as a whole, by joint draws or by a mean and a covariance: what only these determine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from uq_tracking.checks import check_flag
from uq_tracking.errors import InvalidValueError
from uq_tracking.inputs.convert import BoolArray, FloatArray, Source, read_floats
from uq_tracking.inputs.forms.form import EVERY_LEVEL, Columns, in_blocks, quantile_scores
from uq_tracking.inputs.forms.mean_std import Numbers, Wording
from uq_tracking.inputs.validation import BLOCK, members_first, without_members
from uq_tracking.typed import Self, override

if TYPE_CHECKING:
    from uq_tracking.inputs.predictions import Predictions

FEWEST_DRAWS = {"interval_width_95": 39, "pinball": 99, "interval_score": 199}
"""Number of draws needed for a score's outermost quantile to lie between draws: level 1/(M + 1) or above."""
FEWEST_TO_HALVE, MOST_HALVED = 4, 200
"""Number of draws of which each half still has a std, and of which their noise no longer matters."""
ORDERS = 10
"""Binary logarithm of the number of orders of draws, one of which each sample gets."""
HASH = np.uint64(0x9E3779B97F4A7C15)
"""Odd, and near the golden section of 2^64: multiples of it scatter."""
STEP, FIRST, LAST = 0.25, -18.0, 27.0
"""Nodes of the sum that approximates an integral over the real line, and where its geometric tails begin."""

ROOT = 2**0.25 * math.gamma(0.75) / math.sqrt(math.pi)
"""Expected square root of the absolute value of a standard normal variable."""
FAR = 400.0
"""Above this value of half the squared mean-to-std ratio, four series terms give that expectation to 1e-13."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Draws(Numbers):
    """Exchangeable draws from the predictive distribution."""

    name: ClassVar[str] = "draws"
    std_caveat: ClassVar[str] = "the std of draws is an estimate"
    noisy_std: ClassVar[bool] = True
    own_scores: ClassVar[tuple[str, ...]] = ("crps_ensemble",)
    made_by: ClassVar[str] = "Predictions.from_samples"
    splits: ClassVar[tuple[str, ...]] = ("draws",)
    member: ClassVar[str] = "draw"

    wording: Wording = Wording(
        mean="the mean of the draws",
        std="the std of the draws",
        non_finite_cure="every sample needs at least two finite draws; NaN draws are ignored",
    )

    @classmethod
    @override
    def read(
        cls, y_true: Any, *, draws: Any, axis: int | None, joint: bool, **more: Any
    ) -> tuple[Self, Sequence[Source]]:
        truth = read_floats(y_true, "y_true")
        check_flag("joint", joint)
        source = members_first(draws, "draws", truth, axis, cls.member, fewest=2)
        values = source.values
        if source.left_out is not None:
            values, source = np.where(source.left_out, np.nan, values), source._replace(left_out=None)
        if joint:
            last = np.moveaxis(values, 0, -2)
            cost = last.shape[-2] * (2 + last.shape[-1]) * 3
            more["vectors"] = partial(spread_over_vectors, draw_vectors, (truth.values, last), cost)
        form = cls.of(score_draws(truth.values, values), values.dtype, samples=values, **more)
        return form, [truth, without_members(source)]

    @override
    def of_members(self, data: Predictions, chosen: Sequence[int], **options: Any) -> Predictions:
        draws, joint = np.asarray(self.samples)[list(chosen)], "vector_length" in self.known
        return type(data).from_samples(data.truth, draws, axis=0, joint=joint, **data.input_options)

    @classmethod
    @override
    def why_not(cls, key: str, facts: Mapping[str, Any], size: float) -> str:
        if key in FEWEST_DRAWS:
            return (
                f"{key} needs {FEWEST_DRAWS[key]} draws per sample, to contain its outermost quantiles; "
                f"the fewest here are {size:.0f}"
            )
        return "draws have no density; crps scores them"


def score_draws(target: FloatArray, draws: FloatArray) -> Columns:
    """Score draws.

    Parameters
    ----------
    target : array, any shape
    draws : array, shape (M, ...)
        NaN draws are left out; a sample with fewer than two has a NaN std.
    """
    quantiles = len(EVERY_LEVEL) if len(draws) >= min(FEWEST_DRAWS.values()) else 0
    return in_blocks(draw_columns, target, draws, cost=3 * (len(draws) + quantiles))


def draw_columns(target: FloatArray, draws: FloatArray) -> Columns:
    """Everything that M exchangeable draws say about each sample.

    With r draws below the truth and t equal to it, its probability integral transform is spread over ``[r / (M + 1),
    (r + t + 1) / (M + 1)]``: if the truth is exchangeable with the draws, the result is exactly uniform, for any M.

    ==================  ==========================================================================
    ``mean``            of the draws
    ``std``             root of ``(1 + 1/M)`` times their variance (``ddof=1``): the variance of a further draw
                        about their mean
    ``crps``            fair: ``mean |x - y| - sum over i < j of |x_i - x_j| / (M (M - 1))`` [1]_
    ``crps_ensemble``   of the empirical distribution: the same with ``M^2``
    quantiles           type 6 of Hyndman and Fan 1996, the inverse of the rule above
    ``one_mean`` ...    the same of two halves, chosen at random: what ``other_`` says of the truth does not depend on
                        the chance in the std and mean of ``one_``
    ==================  ==========================================================================

    Parameters
    ----------
    target : float64 array, shape (n,)
    draws : float64 array, shape (M, n)

    References
    ----------
    .. [1] Ferro, 2014, Quarterly Journal of the Royal Meteorological Society 140.

    Examples
    --------
    >>> made = draw_columns(np.array([2.0]), np.array([[1.0], [2.0], [4.0]]))
    >>> float(made["pit_low"][0]), float(made["pit_high"][0]), float(made["crps"][0].round(6))
    (0.25, 0.75, 0.0)
    """
    ordered = np.sort(np.ascontiguousarray(draws.T), axis=1)  # NaN sorts last
    there = np.isfinite(ordered) | np.isinf(ordered)
    whole = bool(there.all())
    y = target[:, None]
    made, centered = _moments(y, ordered, there)
    size, mean = made["size"], made["mean"]
    distance = np.abs(centered - (y - mean[:, None]))
    if not whole:
        distance[~there] = 0.0
    distance = distance.sum(axis=1) / size
    weight = 2 * np.arange(1, draws.shape[0] + 1) - size[:, None] - 1
    spread = np.einsum("nm,nm->n", weight, centered)
    made |= {
        "crps": distance - spread / (size * (size - 1)),
        "crps_ensemble": distance - spread / (size * size),
    }
    if FEWEST_TO_HALVE <= len(draws) <= MOST_HALVED:
        mixed = _mixed(ordered, target, mean)
        for half, some in (("one", mixed[:, ::2]), ("other", mixed[:, 1::2])):
            with np.errstate(divide="ignore", invalid="ignore"):  # of a sample with few draws there
                of_half, _ = _moments(y, some, ~np.isnan(some))
            made |= {f"{half}_{name}": column for name, column in of_half.items()}
    return {**made, **_quantile_columns(target, ordered, size)}


def _mixed(draws: FloatArray, *seeds: FloatArray) -> FloatArray:
    """Return draws in an order that is as good as random, and the same in whatever block their sample is."""
    size = draws.shape[1]
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(size), (1 << ORDERS, 1)), axis=1)
    key = sum(np.ascontiguousarray(seed).view(np.uint64) for seed in seeds) * HASH
    chosen = (key ^ (key >> np.uint64(32))) * HASH >> np.uint64(64 - ORDERS)
    return np.take_along_axis(draws, orders[chosen], axis=1)


def _moments(y: FloatArray, draws: FloatArray, there: Any) -> tuple[Columns, FloatArray]:
    """Return mean, std, F(y) and number of the draws that are there, and how far each is from the mean."""
    size = there.sum(axis=1).astype(float)
    mean = np.where(there, draws, 0.0).sum(axis=1) / size
    centered = np.where(there, draws - mean[:, None], 0.0)
    below, upto = (draws < y).sum(axis=1), (draws <= y).sum(axis=1)
    made = {
        "mean": mean,
        "std": np.sqrt((1 + 1 / size) * np.einsum("nm,nm->n", centered, centered) / (size - 1)),
        "pit_low": below / (size + 1),
        "pit_high": (upto + 1) / (size + 1),
        "size": size,
    }
    return made, centered


def _quantile_columns(target: FloatArray, ordered: FloatArray, size: FloatArray) -> Columns:
    """Scores of the draws' quantiles, NaN for samples with too few draws."""
    wanted = {name: least for name, least in FEWEST_DRAWS.items() if len(ordered[0]) >= least}
    if not wanted:
        return {}
    if "pinball" in wanted:
        found = quantile_scores(target, draw_quantiles(ordered, size, EVERY_LEVEL))
    else:
        edges = draw_quantiles(ordered, size, np.asarray([0.025, 0.975]))
        found = {"interval_width_95": edges[:, 1] - edges[:, 0]}
    return {name: np.where(size >= least, found[name], np.nan) for name, least in wanted.items()}


def draw_quantiles(ordered: FloatArray, size: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles of type 6 (numpy's "weibull") of sorted draws, NaN last; shape (n, levels).

    Examples
    --------
    >>> draw_quantiles(np.array([[1.0, 2.0, 4.0]]), np.array([3.0]), np.array([0.25, 0.6]))
    array([[1. , 2.8]])
    """
    rank = np.clip((size[:, None] + 1) * levels, 1, size[:, None])
    rank = np.where(np.abs(rank - np.rint(rank)) < 1e-9, np.rint(rank), rank)  # 0.29 * 100 is 28.999...
    left = np.floor(rank).astype(np.int64)
    low = np.take_along_axis(ordered, left - 1, axis=1)
    high = np.take_along_axis(ordered, np.minimum(left, size[:, None].astype(np.int64) - 1), axis=1)
    part = rank - left
    return np.asarray(np.where(part > 0, low + part * (high - low), low))


def spread_over_vectors(
    function: Callable[..., Columns], arrays: tuple[FloatArray, ...], cost: int, whole: BoolArray
) -> Columns:
    """Columns of the components, shape (..., D), each with the value of its vector; 0 if the vector is incomplete.

    Parameters
    ----------
    function : callable
        Maps blocks of vectors to one value each: arrays (n, D), (n, D, D) or (n, M, D).
    arrays : arrays
        In the vectors' shape, with their own axes at the end; truth first.
    cost : int
        Numbers in memory per vector.
    whole : bool array, shape (...)
        Which vectors count with all their components.
    """
    shape, size = whole.shape, arrays[0].shape[-1]
    chosen = np.flatnonzero(whole)
    flat = [array.reshape(whole.size, *array.shape[len(shape) :]) for array in arrays]
    step = max(1, 8 * BLOCK // max(cost, 1))
    made: Columns = {}
    for start in range(0, max(len(chosen), 1), step):
        rows = chosen[start : start + step]
        for name, values in function(*(array[rows].astype(np.float64) for array in flat)).items():
            made.setdefault(name, np.zeros(whole.size))[rows] = values
    made["whole"] = whole.reshape(-1).astype(np.float64)
    return {
        name: np.ascontiguousarray(np.broadcast_to(column.reshape(*shape, 1), (*shape, size)))
        for name, column in made.items()
    }


def gaussian_vectors(target: FloatArray, mean: FloatArray, cov: FloatArray) -> Columns:
    """What multivariate normal distributions say about vectors, without drawing from them.

    ====================  =============================================================================
    ``joint_nll``         ``(D log 2 pi + log det S + d^2) / 2``, with ``d^2 = (y - m)' S^-1 (y - m)``
    ``joint_pit``         distribution function of chi-square with D degrees of freedom at ``d^2``
    ``energy_score``      ``E |X - y| - E |X - X'| / 2`` [1]_, as one-dimensional integrals
    ``variogram_score``   ``sum over i, j of (|y_i - y_j|^p - E |X_i - X_j|^p)^2``, p = 1/2 [2]_, in closed form
    ====================  =============================================================================

    Parameters
    ----------
    target, mean : float64 arrays, shape (n, D)
    cov : float64 array, shape (n, D, D)

    References
    ----------
    .. [1] Gneiting and Raftery, 2007, Journal of the American Statistical Association 102.
    .. [2] Scheuerer and Hamill, 2015, Monthly Weather Review 143.

    Examples
    --------
    >>> made = gaussian_vectors(np.zeros((1, 2)), np.zeros((1, 2)), np.eye(2)[None])
    >>> {name: round(float(column[0]), 6) for name, column in made.items()}
    {'joint_nll': 1.837877, 'joint_pit': 0.0, 'energy_score': 0.367087, 'variogram_score': 1.911955}
    """
    size = target.shape[1]
    values, vectors = _decomposed(cov)
    turned = np.einsum("nij,ni->nj", vectors, target - mean)
    distance = (turned * turned / values).sum(axis=1)
    log_det = np.log(values).sum(axis=1)
    from_truth = expected_norm(values, turned)
    between = expected_norm(2 * values, np.zeros_like(turned))
    return {
        "joint_nll": 0.5 * (size * math.log(2 * math.pi) + log_det + distance),
        "joint_pit": np.asarray(special.gammainc(size / 2, distance / 2)),
        "energy_score": from_truth - 0.5 * between,
        "variogram_score": _gaussian_variogram(target, mean, cov),
    }


def _decomposed(cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    tallest = np.abs(cov).max(axis=(1, 2), initial=0)
    skew = np.abs(cov - cov.swapaxes(1, 2)).max(axis=(1, 2), initial=0) > 1e-5 * tallest
    if skew.any():
        raise InvalidValueError(
            f"cov is not symmetric for {int(skew.sum())} vectors; pass (cov + cov.swapaxes(-1, -2)) / 2"
        )
    values, vectors = np.linalg.eigh(cov)
    flat = values[:, 0] <= np.finfo(np.float64).eps * cov.shape[1] * values[:, -1]
    if flat.any():
        raise InvalidValueError(
            f"cov is not positive definite for {int(flat.sum())} vectors (smallest eigenvalue "
            f"{values[:, 0].min():.3g}); add a small number to its diagonal, or pass joint=False to score the "
            "marginals alone"
        )
    return values, vectors


def expected_norm(variances: FloatArray, centre: FloatArray) -> FloatArray:
    """Expected length of independent normal vectors, to about 1e-11.

    With W the squared length, ``E sqrt W = integral over t > 0 of (1 - E exp(-t W)) t^(-3/2) / (2 sqrt pi)``. In
    ``log t`` the integrand is analytic and decays exponentially, so equidistant sums converge fastest.

    Parameters
    ----------
    variances, centre : arrays, shape (n, D)

    Examples
    --------
    >>> float(expected_norm(np.ones((1, 3)), np.zeros((1, 3)))[0].round(9)), round(2 * math.sqrt(2 / math.pi), 9)
    (1.595769122, 1.595769122)
    """
    square = centre * centre
    size = (variances + square).sum(axis=1)
    size = np.where(size > 0, size, 1.0)
    ratio, share = variances / size[:, None], square / size[:, None]
    total = np.zeros(len(size))
    for x in np.arange(FIRST, LAST, STEP).tolist():
        t = math.exp(x)
        widened = 2 * t * ratio
        log_transform = (0.5 * np.log1p(widened) + t * share / (1 + widened)).sum(axis=1)
        total -= math.exp(-x / 2) * np.expm1(-log_transform)
    below = math.exp((FIRST - STEP) / 2) / -math.expm1(-STEP / 2)
    above = math.exp(-(FIRST + math.ceil((LAST - FIRST) / STEP) * STEP) / 2) / -math.expm1(-STEP / 2)
    return np.asarray(np.sqrt(size) * (total + below + above) * STEP / (2 * math.sqrt(math.pi)))


def _gaussian_variogram(target: FloatArray, mean: FloatArray, cov: FloatArray) -> FloatArray:
    diagonal, total = np.einsum("nii->ni", cov), np.zeros(len(target))
    for i in range(target.shape[1] - 1):
        rest = slice(i + 1, None)
        variance = diagonal[:, i, None] + diagonal[:, rest] - 2 * cov[:, i, rest]
        expected = expected_root(mean[:, i, None] - mean[:, rest], np.maximum(variance, 0))
        seen = np.sqrt(np.abs(target[:, i, None] - target[:, rest]))
        total += 2 * np.square(seen - expected).sum(axis=1)
    return total


def expected_root(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Expectation of ``sqrt |X|`` for X normal, a confluent hypergeometric function of mean^2 / variance.

    Examples
    --------
    >>> expected_root(np.array([0.0, 4.0]), np.array([1.0, 0.0])).round(6)
    array([0.822179, 2.      ])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.square(mean) / (2 * variance)
        near = ROOT * variance**0.25 * special.hyp1f1(-0.25, 0.5, -np.minimum(x, FAR))
        v = 1 / x
        series = 1 - v / 16 * (1 + v * 15 / 32 * (1 + v * 63 / 48 * (1 + v * 143 / 64)))
        far = np.sqrt(np.abs(mean)) * series
    return np.asarray(np.where(x < FAR, near, np.where(variance > 0, far, np.sqrt(np.abs(mean)))))


def draw_vectors(target: FloatArray, draws: FloatArray) -> Columns:
    """Energy and variogram score of joint draws, by estimators whose mean does not depend on the number of draws.

    ====================  ================================================================================
    ``energy_score``      ``mean |x - y| - sum over k < l of |x_k - x_l| / (M (M - 1))``
    ``variogram_score``   ``sum over i, j of (|y_i - y_j|^p - V)^2 - S^2 / M`` with p = 1/2, V and S^2 the mean
                          and the variance (``ddof=1``) of ``|x_i - x_j|^p`` over the draws
    ====================  ================================================================================

    Parameters
    ----------
    target : float64 array, shape (n, D)
    draws : float64 array, shape (n, M, D)
        Draws with a NaN are left out.

    Examples
    --------
    >>> made = draw_vectors(np.zeros((1, 2)), np.array([[[3.0, 4.0], [0.0, 0.0]]]))
    >>> made["energy_score"], made["variogram_score"]
    (array([0.]), array([0.]))
    """
    there = np.asarray(~np.isnan(draws).any(axis=2))
    count = there.sum(axis=1).astype(np.float64)
    kept = np.where(there[:, :, None], draws, 0.0)
    distance = (np.linalg.norm(kept - target[:, None], axis=2) * there).sum(axis=1) / count
    spread = np.zeros(len(target))
    for k in range(draws.shape[1] - 1):
        apart = np.linalg.norm(kept[:, k + 1 :] - kept[:, k, None], axis=2)
        spread += (apart * (there[:, k + 1 :] & there[:, k, None])).sum(axis=1)
    variogram = np.zeros(len(target))
    for i in range(target.shape[1] - 1):
        seen = np.sqrt(np.abs(target[:, i, None] - target[:, i + 1 :]))
        roots = np.sqrt(np.abs(kept[:, :, i, None] - kept[:, :, i + 1 :])) * there[:, :, None]
        mean = roots.sum(axis=1) / count[:, None]
        centered = np.square(roots - mean[:, None]) * there[:, :, None]
        variance = centered.sum(axis=1) / (count - 1)[:, None]
        variogram += 2 * (np.square(seen - mean) - variance / count[:, None]).sum(axis=1)
    return {"energy_score": distance - spread / (count * (count - 1)), "variogram_score": variogram}
