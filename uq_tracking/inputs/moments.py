"""Mean and standard deviation from what models output instead: samples, variances, intervals, evidence.

Everything is computed in float64 within cache-sized blocks and stored in the input's dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from uq_tracking.errors import SettingsError
from uq_tracking.inputs.convert import FloatArray
from uq_tracking.inputs.validation import BLOCK

Moments = Callable[..., tuple[FloatArray, ...]]


class Mixture(NamedTuple):
    """Moments of an equally weighted mixture; the two parts exist only if members have their own std."""

    mean: FloatArray
    std: FloatArray
    aleatoric: FloatArray | None
    epistemic: FloatArray | None


def pointwise(function: Moments, n_out: int, *inputs: FloatArray) -> tuple[FloatArray, ...]:
    """Apply a function of float64 blocks to arrays of equal shape; results have the inputs' common dtype."""
    dtype = np.result_type(*inputs)
    outputs = tuple(np.empty(inputs[0].shape, dtype) for _ in range(n_out))
    if inputs[0].size == 0:
        return outputs
    settings: Any = {
        "flags": ["external_loop", "buffered"],
        "op_flags": [["readonly"]] * len(inputs) + [["writeonly"]] * n_out,
        "op_dtypes": [np.float64] * (len(inputs) + n_out),  # numpy casts block by block, both ways
        "casting": "same_kind",
        "order": "C",
        "buffersize": BLOCK,
    }
    walk: Any = np.nditer([*inputs, *outputs], **settings)
    with walk, np.errstate(all="ignore"):  # validation finds, counts and names non-finite values
        for block in walk:
            for out, values in zip(block[len(inputs) :], function(*block[: len(inputs)]), strict=True):
                out[...] = values
    return outputs


def root(variance: FloatArray) -> tuple[FloatArray]:
    """Convert a variance to a std; negative values stay negative, so that validation can count them."""
    return (np.copysign(np.sqrt(np.abs(variance)), variance),)


def root_of_log(log_variance: FloatArray) -> tuple[FloatArray]:
    """Convert the natural log of a variance to a std."""
    return (np.exp(0.5 * log_variance),)


def interval_moments(width_per_std: float) -> Moments:
    """Return the function from (low, high) to the mean and std of the Gaussian with that central interval."""

    def moments(low: FloatArray, high: FloatArray) -> tuple[FloatArray, ...]:
        return low + 0.5 * (high - low), (high - low) / width_per_std

    return moments


def evidential_moments(nu: FloatArray, alpha: FloatArray, beta: FloatArray) -> tuple[FloatArray, ...]:
    """Total, aleatoric and epistemic std of a normal-inverse-gamma; NaN if its variance is infinite."""
    proper = (nu > 0) & (alpha > 1) & (beta > 0)
    aleatoric = np.where(proper, beta / (alpha - 1), np.nan)
    epistemic = aleatoric / nu
    return np.sqrt(aleatoric + epistemic), np.sqrt(aleatoric), np.sqrt(epistemic)


def mixture(samples: FloatArray, member_std: FloatArray | None, ddof: int) -> Mixture:
    """Match the first two moments of the mixture of M members along the first axis.

    Parameters
    ----------
    samples : (M, ...) array
        Draws, or the members' means.
    member_std : (M, ...) array, optional
        The members' standard deviations.
    ddof
        Delta degrees of freedom of the variance of ``samples``.
    """
    members, shape = samples.shape[0], samples.shape[1:]
    if not 0 <= ddof < members:
        raise SettingsError(
            f"ddof={ddof} with {members} samples leaves no degrees of freedom; pass 0 <= ddof < M"
        )
    dtype = samples.dtype if member_std is None else np.result_type(samples, member_std)
    names = ("mean", "std") if member_std is None else ("mean", "std", "aleatoric", "epistemic")
    out = {name: np.empty(shape, dtype) for name in names}
    flat = {name: array.reshape(-1) for name, array in out.items()}
    draws = samples.reshape(members, -1) if samples.size else np.empty((members, 0))
    noise = None if member_std is None else member_std.reshape(members, -1)
    step = max(1, 8 * BLOCK // members)
    with np.errstate(all="ignore"):
        for start in range(0, draws.shape[1], step):
            part = slice(start, start + step)
            block = _mix(draws[:, part], None if noise is None else noise[:, part], ddof)
            for name in names:
                flat[name][part] = block[name]
    return Mixture(out["mean"], out["std"], out.get("aleatoric"), out.get("epistemic"))


def _mix(draws: FloatArray, noise: FloatArray | None, ddof: int) -> dict[str, FloatArray]:
    exact = draws.astype(np.float64, order="C")  # so that results do not depend on the memory layout
    mean = exact.mean(axis=0)
    exact -= mean
    between = np.einsum("mi,mi->i", exact, exact) / (draws.shape[0] - ddof)
    if noise is None:
        return {"mean": mean, "std": np.sqrt(between)}
    stds = noise.astype(np.float64, order="C")
    within = np.where((stds < 0).any(axis=0), np.nan, np.einsum("mi,mi->i", stds, stds) / draws.shape[0])
    return {
        "mean": mean,
        "std": np.sqrt(within + between),
        "aleatoric": np.sqrt(within),
        "epistemic": np.sqrt(between),
    }
