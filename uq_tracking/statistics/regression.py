"""The statistics of a regression: samples by std, absolute error and z."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import IncompatibleStatisticsError
from uq_tracking.parallel import SIDE_BY_SIDE, keep_memory, map_spans, map_threads, spans
from uq_tracking.statistics.cells import CellCounts, Joint
from uq_tracking.statistics.exact import (
    LARGE,
    Column,
    SortedRows,
    errors,
    sort_by_abs_error,
    sort_by_std,
    sort_by_z,
    z_column,
)
from uq_tracking.statistics.layout import Layout, OnDemand, Parts, Rows
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.orders import FloatArray, Order
from uq_tracking.statistics.sketch import JOINT_BITS
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weighted import weighted_correlation
from uq_tracking.typed import override

REPEATED, REPEATED_SHARE = "repeated_target", "repeated_share"
"""Names of a target that may stand for a missing one, and of the share of the targets equal to it."""
OFTEN = 0.01
"""A target counts as repeated if at least this share of the targets is equal to it ..."""
OFTENER = 10
"""... and it is more than this many times as frequent as the next higher one: counts and rounded targets are not."""
LOOKED_AT = 10_000
"""How many targets, drawn at random, are looked at to find a repeated one."""


class RegressionLayout(Layout):
    """Orders by std, absolute error and z.

    Rows are ``target``, ``mean`` and ``std`` of validated samples (finite, std >= 0), float32 or float64; or, if the
    target is no longer known, ``std`` and ``error``.
    """

    task = "regression"
    orders: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "std": ("std", "std2", "abs_error", "sq_error"),
        "abs_error": ("abs_error", "sq_error"),
        "z": ("z", "z2", "std", "error", "inv_std", "inv_sqrt_std"),
    }
    sums: ClassVar[tuple[str, ...]] = ("log_std",)
    moments: ClassVar[tuple[str, ...]] = ("target", "std", "error", "z")
    tables: ClassVar[Mapping[str, type[CellCounts]]] = {"joint": Joint}
    grids: ClassVar[Mapping[str, tuple[str, str]]] = {"joint": ("std", "abs_error")}
    counts: ClassVar[tuple[str, ...]] = ("n", "n_missing", "n_masked", "n_invalid", "n_zero_std")
    counted: ClassVar[tuple[str, ...]] = ("n_zero_std",)
    kept: ClassVar[tuple[str, ...]] = ("std", "error")
    forgotten: ClassVar[tuple[str, ...]] = ("target",)
    noted: ClassVar[tuple[str, ...]] = (REPEATED, REPEATED_SHARE)
    alike: ClassVar[Mapping[str, str]] = {"std_floor": "std_floor"}

    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Every payload in float64; for a point mass (std 0), z is 0 if the error is 0, else infinite."""
        std, made = rows["std"].astype(np.float64), {}
        if "target" in rows:
            made["target"] = rows["target"].astype(np.float64)
            error = made["target"] - rows["mean"]
        else:
            error = rows["error"].astype(np.float64)
        z = z_column(error, std)
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 1 / std
            return {
                **made,
                "std": std,
                "std2": std * std,
                "abs_error": np.abs(error),
                "sq_error": error * error,
                "z": z,
                "z2": z * z,
                "error": error,
                "inv_std": inverse,
                "inv_sqrt_std": np.sqrt(inverse),
                "log_std": np.log(std),
                "n_zero_std": std == 0,
            }

    @override
    def places(
        self, columns: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any], bits: int
    ) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any], int]]:
        return {"joint": (*Joint.places(columns["std"], columns["abs_error"], bits), bits)}

    @override
    def empty_tables(self, facts: Mapping[str, Any]) -> dict[str, CellCounts]:
        return {"joint": Joint.empty(JOINT_BITS)}

    @override
    def sort(self, rows: Rows, facts: Mapping[str, Any], known: Parts | None = None) -> Parts:
        std, samples = rows["std"], _Samples(rows)
        orders = {
            name: SortedRows(name, unsorted=lambda: samples.unsorted, sort=sort)
            for name, sort in {
                "std": lambda: samples.by_std,
                "abs_error": lambda: samples.by_abs_error,
                "z": lambda: sort_by_z(**samples.columns),
            }.items()
        }

        def moments_of(name: str) -> Moments:
            if name == "target":
                return Moments.of(rows["target"]) if known is None else known.moments["target"]
            if name == "z":
                by_z = orders["z"]
                return Moments.of(by_z.values if by_z.is_sorted else z_column(**samples.columns))
            return Moments.of(samples.columns[name])

        moments = OnDemand({name: partial(moments_of, name) for name in ("target", "std", "error", "z")})
        noted = cache(
            lambda: (
                repeated_target(rows["target"], moments["target"].low)
                if known is None
                else self.noted_in(known)
            )
        )
        derived: dict[str, Callable[[], float | None]] = {
            name: partial(lambda name: noted().get(name), name) for name in self.noted
        }
        return Parts(
            orders,
            OnDemand({"log_std": lambda: _log_sum(samples.columns["std"])}),
            moments,
            derived=OnDemand({"rank_correlation": lambda: samples.ranked[1], **derived}),
            counts=OnDemand(
                {"n": lambda: len(std), "n_zero_std": lambda: len(std) - int(np.count_nonzero(std))}
            ),
        )

    @override
    def complete(self, parts: Parts) -> None:
        keep_memory(32 * parts.counts["n"])
        parts.orders["std"].value([1])
        works: list[Callable[[], object]] = [
            lambda: dict(parts.derived),
            lambda: (parts.orders["z"].value([1]), dict(parts.moments), dict(parts.sums)),
        ]
        map_threads(lambda work: work(), works, least=2 if parts.counts["n"] >= SIDE_BY_SIDE else 3)
        for order in parts.orders.values():
            order.value([1])

    @override
    def derived(self, columns: Mapping[str, npt.NDArray[Any]], counts: FloatArray) -> dict[str, float | None]:
        target = columns.get("target")
        return {
            "rank_correlation": weighted_correlation(columns["std"], columns["abs_error"], counts),
            **({} if target is None else repeated_target(target, float(target.min()))),
        }

    @override
    def rows_of(self, orders: Mapping[str, Order]) -> Rows:
        by_std = orders["std"]
        if not isinstance(by_std, SortedRows):
            raise IncompatibleStatisticsError("these orders hold buckets, not samples")
        return {name: by_std.columns[name] for name in ("std", "error")}


REGRESSION = RegressionLayout()


class _Samples:
    """Std and error of samples, sorted when first asked for; what is no longer needed is let go."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @property
    def unsorted(self) -> Mapping[str, Column]:
        """What std and error follow from, sample by sample."""
        return self.columns if "columns" in vars(self) else self._rows

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """In the order given, or by std once they are sorted."""
        rows, std = self._rows, self._rows["std"]
        if "target" not in rows:
            return {"std": std, "error": rows["error"]}
        return {"std": std, "error": errors(rows["target"], rows["mean"], std, many=len(std) >= LARGE)}

    @cached_property
    def by_std(self) -> Mapping[str, Column]:
        self.columns = sort_by_std(**self.columns)
        self._rows = self.columns
        return self.columns

    @cached_property
    def ranked(self) -> tuple[Mapping[str, Column], float | None]:
        """By absolute error, and its rank correlation with the std."""
        return sort_by_abs_error(**self.by_std)

    @cached_property
    def by_abs_error(self) -> Mapping[str, Column]:
        if "ranked" in vars(self):
            return self.ranked[0]
        return {"abs_error": np.sort(np.abs(self.columns["error"]))}


def repeated_target(target: npt.NDArray[Any], low: float) -> dict[str, float]:
    """The target that may stand for a missing one, 0 or the lowest, and the share of the targets equal to it.

    >>> repeated_target(np.asarray([0.0] * 12 + [1.5, 2.5, 2.25, 3.0]), 0.0)
    {'repeated_target': 0.0, 'repeated_share': 0.75}
    >>> repeated_target(np.asarray([0.0] * 12 + [1.0] * 8), 0.0)
    {}
    """
    n = len(target)
    some = target if n <= LOOKED_AT else target[np.random.default_rng(0).integers(n, size=LOOKED_AT)]
    for value in (0.0, low) if low < 0 else (low,):
        count = int(np.count_nonzero(some == value))
        if count <= max(OFTENER, OFTEN / 2 * len(some)):
            continue
        above = some[some > value]
        if len(above) and count > OFTENER * np.count_nonzero(above == above.min()):
            share = float(np.count_nonzero(target == value) / n)
            if share >= OFTEN:
                return {REPEATED: value, REPEATED_SHARE: share}
    return {}


def _log_sum(std: npt.NDArray[Any]) -> float:
    def block(start: int, end: int) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(std[start:end].astype(np.float64)).sum())

    return math.fsum(map_spans(block, spans(len(std))))


def joint_counts(statistics: Statistics) -> Joint:
    """Coarse joint counts of std and absolute error; exact statistics compute them on demand."""
    table = statistics.tables.get("joint")
    if isinstance(table, Joint):
        return table
    rows = statistics.rows()
    return Joint.of(rows["std"], rows["error"])


def joint_within(statistics: Statistics, cells: int) -> Joint:
    """The same on the finest grid that uses at most ``cells`` cells along each axis."""
    table = statistics.tables.get("joint")
    if isinstance(table, Joint):
        return table.fitting(cells)
    rows = statistics.rows()
    return Joint.of(rows["std"], rows["error"], cells)


def rank_correlation(statistics: Statistics) -> float | None:
    """Spearman correlation of std and absolute error; None if either is constant."""
    if statistics.kind == "exact":
        return statistics.derived["rank_correlation"]
    return joint_counts(statistics).rank_correlation()
