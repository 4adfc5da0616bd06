"""The same data in every container, dtype, order, offset and scale: equal scores, or a refusal."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch
import xarray as xr

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import UQTrackingError
from uq_tracking.report import Report

OFFSETS = (0, 1, 1024, -(10**6), 2**31, 2**40, 2**51, 2**53 + 1, 1_700_000_000_000_000_000, 2**62, 2**63)
EXPONENTS = (0, 0, 0, -1, 4, -20, 20, -140, 90, -500, 500)
"""Powers of two by which data are scaled: without rounding, so that scores must scale exactly."""
DTYPES = (
    *(np.float16, np.float32, np.float64, np.longdouble),
    *(np.int8, np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64),
)
WIDE = (np.float64, np.int64, np.uint64, np.longdouble)
"""Those that are tried if a dtype cannot hold the numbers."""
SINGLE, DOUBLE = 3e-5, 1e-8
"""Largest relative difference of scores, of floats that are scored in float32, and of others."""
POWERS = {"": 0, "target": 1, "target^2": 2}
"""Power with which a scale enters a score, by its unit; other scores are not compared across scales."""


class _OnlyArray:
    """Any other library's array."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values


def _reversed(values: Any) -> Any:
    return np.ascontiguousarray(values[..., ::-1])[..., ::-1]


def _masked(values: Any) -> Any:
    return np.ma.MaskedArray(values, np.zeros(values.shape, dtype=bool))


def _strided(values: Any) -> Any:
    return np.repeat(values, 2, axis=-1)[..., ::2]


def _swapped(values: Any) -> Any:
    return values.astype(values.dtype.newbyteorder())


def _nullable(values: Any) -> Any:
    return pd.array(values.tolist(), dtype={"i": "Int64", "u": "UInt64", "f": "Float64"}[values.dtype.kind])


CONTAINERS: Mapping[str, Callable[[Any], Any]] = {
    "numpy": np.asarray,
    "list": np.ndarray.tolist,
    "rows": list,
    "Fortran": np.asfortranarray,
    "reversed": _reversed,
    "strided": _strided,
    "swapped": _swapped,
    "masked": _masked,
    "array": _OnlyArray,
    "xarray": xr.DataArray,
    "torch": torch.from_numpy,
    "Series": pd.Series,
    "nullable": _nullable,
    "polars": pl.Series,
    "pyarrow": pa.array,
}
FLAT = ("Series", "nullable", "polars", "pyarrow")
"""Containers of one axis."""


def grid(rng: Random) -> dict[str, list[int]]:
    """A random forecast in whole numbers."""
    n, size = rng.choice((24, 60, 120)), rng.choice((3, 100, 3000))
    mean = [rng.randint(-size, size) for _ in range(n)]
    std = [rng.randint(1, max(2, size // 4)) for _ in range(n)]
    return {
        "y_true": [m + round(rng.gauss(0, 1.5 * s)) for m, s in zip(mean, std, strict=True)],
        "y_pred": mean,
        "y_std": std,
    }


def held(values: list[Fraction], dtype: Any) -> Any:
    """The numbers in a dtype; None if it cannot hold them exactly."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if np.dtype(dtype).kind in "iu":
                whole = [int(value) for value in values]
                return np.array(whole, dtype) if whole == values else None
            found = np.array([_as_float(value, dtype) for value in values], dtype)
        except (OverflowError, ValueError):
            return None
    exact = all(
        np.isfinite(one) and Fraction(*one.as_integer_ratio()) == value
        for one, value in zip(found, values, strict=True)
    )
    return found if exact else None


def _as_float(value: Fraction, dtype: Any) -> Any:
    return dtype(value.numerator) / dtype(value.denominator)


def case(rng: Random) -> str:
    """Score one forecast in float64 and in another guise: "equal", "refused", "not the same", or what differs.

    It is not the same if no dtype holds its numbers exactly.
    """
    return _of_classes(rng) if rng.random() < 0.2 else _of_numbers(rng)


def _of_numbers(rng: Random) -> str:
    data, offset, scale = grid(rng), rng.choice(OFFSETS), Fraction(2) ** rng.choice(EXPONENTS)
    shape, order = rng.choice(((-1,), (-1, 4))), list(range(len(data["y_std"])))
    if rng.random() < 0.5:
        rng.shuffle(order)
    arrays, told, tolerance = {}, f"offset {offset}, scale {float(scale)}, shape {shape}", SINGLE
    for name, values in data.items():
        moved = [(values[k] + (0 if name == "y_std" else offset)) * scale for k in order]
        found = next(
            (made for dtype in (rng.choice(DTYPES), *WIDE) if (made := held(moved, dtype)) is not None), None
        )
        if found is None:
            return "not the same"
        arrays[name], kind = wrapped(found.reshape(shape), rng)
        told += f", {name} a {kind} of {found.dtype}"
    if all("float16" not in part and "float32" not in part for part in told.split(",")):
        tolerance = DOUBLE
    exact = {name: np.array(values, np.float64) for name, values in data.items()}
    return compared(exact, arrays, {"groups": False}, told, float(scale), tolerance, rng)


def _of_classes(rng: Random) -> str:
    n, classes = rng.choice((24, 120)), rng.choice((2, 3, 7))
    labels = np.array([rng.randrange(classes) for _ in range(n)])
    cuts = np.sort([[rng.randint(0, 64) for _ in range(classes - 1)] for _ in range(n)], axis=1)
    probs = np.diff(np.pad(cuts, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 64)))) / 64
    order = np.array(rng.sample(range(n), n)) if rng.random() < 0.5 else np.arange(n)
    exact = {"y_true": labels, "probs": probs}
    label_type, prob_type = rng.choice(DTYPES[4:]), rng.choice(DTYPES[:4])
    given, kind = wrapped(labels[order].astype(label_type), rng)
    stated, kind_of_probs = wrapped(probs[order].astype(prob_type), rng)
    told = f"labels a {kind} of {label_type.__name__}, probs a {kind_of_probs} of {prob_type.__name__}"
    tolerance = SINGLE if prob_type in (np.float16, np.float32) else DOUBLE
    return compared(exact, {"y_true": given, "probs": stated}, {"groups": False}, told, 1.0, tolerance, rng)


def wrapped(values: Any, rng: Random) -> tuple[Any, str]:
    """An array in a random container that takes its dtype and shape, and the container's name."""
    kind = rng.choice(list(CONTAINERS))
    short, unsigned = values.dtype in (np.float16, np.longdouble), values.dtype.kind == "u"
    if (kind in FLAT and (values.ndim > 1 or short)) or (kind == "torch" and (unsigned or short)):
        kind = "numpy"
    return CONTAINERS[kind](values), kind


def compared(
    exact: Mapping[str, Any],
    arrays: Mapping[str, Any],
    options: Mapping[str, Any],
    told: str,
    scale: float,
    tolerance: float,
    rng: Random,
) -> str:
    """Score both, ask for what is computed on access, and say what became of it."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = uq.evaluate(**exact, **options)
        try:
            found = uq.evaluate(**arrays, **options)
        except UQTrackingError as error:
            return "refused" if "subtract a common offset first" in str(error) else f"{told}: {error}"
        difference = differs(expected, found, scale, tolerance)
        lazy(found, rng)
    return f"{told}: {difference}" if difference else "equal"


def differs(expected: Report, found: Report, scale: float, tolerance: float) -> str:
    """The first score that is not the same, in words; "" if all are."""
    size = max(expected.scores.get("rmse", 1.0), expected.scores.get("sharpness", 1.0))
    for key, metric in plugins.metrics(expected.task).items():
        if key not in expected.scores or metric.unit not in POWERS:
            continue
        power = POWERS[metric.unit]
        if key not in found.scores:
            if key not in found.undefined:
                return f"{key} is missing"
            continue
        try:
            value = found.scores[key] / scale**power
        except (OverflowError, ZeroDivisionError):
            continue
        if abs(value - expected.scores[key]) > tolerance * max(abs(expected.scores[key]), size**power):
            return f"{key} is {value}, not {expected.scores[key]}"
    return ""


def lazy(report: Report, rng: Random) -> None:
    """Ask for what is computed on access."""
    str(report), repr(report.noise), report.verdict.text, report.suspicions
    if rng.random() < 0.02:
        report.plot()
