"""Sufficient statistics of a regression with uncertainty: what every score, curve and recalibration reads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError, IncompatibleStatisticsError
from uq_tracking.statistics.exact import PAYLOADS, SortedRows
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.grouped import FloatArray, Grouped, Groups
from uq_tracking.statistics.joint import JOINT_BITS, Joint
from uq_tracking.statistics.moments import Moments
from uq_tracking.statistics.parallel import (
    WORTH_THREADS,
    keep_memory,
    map_spans,
    map_threads,
    spans,
    worker_count,
)
from uq_tracking.statistics.sketch import SKETCH_BITS, BucketSums
from uq_tracking.statistics.sorting import other_orders, sort_by_std, standardised

Kind = Literal["exact", "sketch"]
ORDERS = ("std", "abs_error", "z")
VARIABLES = ("target", "std", "error", "z")
COUNTS = ("n", "n_missing", "n_masked", "n_invalid", "n_zero_std")

BUILD_BLOCK = 1 << 18
"""Samples counted at a time: the buckets' tables are added once per block."""

JOINED_AT_ONCE = 16
"""Blocks whose joint counts wait to be added in one go."""

LARGE = 10**6
"""From this many samples on, float32 errors stay so, being rounded once: one sample that crosses a threshold for that
is then no more than 1e-6 of them. Below they are worked on in float64."""

SAFE = 1e30
"""Factor by which float32 errors may lie above or below the stds, so that z stays in the range of float32."""

STORED_ROWS = 50_000
"""Exact statistics up to this many samples are stored as they are, larger ones as a sketch."""


@dataclass(frozen=True, eq=False)
class RegressionStatistics:
    """Samples grouped by std, absolute error and z, with moments and counts; statistics merge with ``+``.

    Attributes
    ----------
    kind : {"exact", "sketch"}
        One group per distinct value, or one per log-spaced bucket of ``bits`` mantissa bits.
    by_std, by_abs_error, by_z : Groups
        The samples in three orders, with the payload sums each serves.
    joint : Joint or None
        Coarse joint counts of a sketch; exact statistics make them when asked.
    moments : dict of Moments
        Of target, std, error and z.
    counts : dict of int
        n, n_missing, n_masked, n_invalid, n_zero_std.
    log_std : float
        Sum of log std; minus infinity when a std is zero.
    rank_correlation : float or None
        Spearman's, of std and absolute error; None when one of them is constant.
    std_floor : float or None
        The floor that std was raised to before counting.
    groups : GroupTables or None
        Coarse statistics of each group (image, scene), which are resampled for confidence intervals.
    """

    kind: Kind
    by_std: Groups
    by_abs_error: Groups
    by_z: Groups
    moments: Mapping[str, Moments]
    counts: Mapping[str, int]
    log_std: float
    rank_correlation: float | None
    joint: Joint | None = None
    bits: int | None = None
    std_floor: float | None = None
    groups: GroupTables | None = None
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Results shared between metrics; derived, never stored."""

    @classmethod
    def zero(cls, bits: int = SKETCH_BITS, std_floor: float | None = None) -> RegressionStatistics:
        """The sketch of no samples: adding it changes nothing."""
        return replace(SketchBuilder(bits).finish(), std_floor=std_floor)

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return self.counts["n"]

    def rows(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Std and error of every sample, sorted by std; exact statistics only."""
        if not isinstance(self.by_std, SortedRows):
            raise IncompatibleStatisticsError(
                "a sketch has no rows; evaluate with method='exact' to keep them"
            )
        return self.by_std.columns["std"], self.by_std.columns["error"]

    def joint_counts(self) -> Joint:
        """Coarse joint counts of std and absolute error."""
        return self.joint if self.joint is not None else Joint.of(*self.rows())

    def joint_within(self, cells: int) -> Joint:
        """The same on the finest grid that uses at most ``cells`` cells along each axis."""
        if self.joint is not None:
            return self.joint.fitting(cells)
        return Joint.within(*self.rows(), cells)

    def sketched(self, bits: int = SKETCH_BITS) -> RegressionStatistics:
        """The same samples as a sketch of ``bits`` mantissa bits."""
        if self.kind == "exact":
            std, error = self.rows()
            made = sketch_rows(std, error, bits=bits)
            return replace(
                made,
                moments=self.moments,
                counts=self.counts,
                std_floor=self.std_floor,
                groups=self.groups,
            )
        if bits != self.bits:
            raise IncompatibleStatisticsError(f"a sketch of {self.bits} bits cannot become one of {bits}")
        return self

    def stored(self) -> RegressionStatistics:
        """The form that is kept with a run: a few megabytes at any size."""
        made = self.sketched() if self.kind == "exact" and self.n > STORED_ROWS else self
        return made if self.groups is None else replace(made, groups=self.groups.stored())

    def __add__(self, other: RegressionStatistics) -> RegressionStatistics:
        return merge(self, other) if isinstance(other, RegressionStatistics) else NotImplemented

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Plain arrays that ``from_arrays`` reads back."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "kind": np.asarray(self.kind),
            "counts": np.asarray([self.counts[name] for name in COUNTS], dtype=np.int64),
            "std_floor": np.asarray(np.nan if self.std_floor is None else self.std_floor),
        }
        for name, m in self.moments.items():
            arrays[f"moments/{name}"] = np.asarray([m.mean, m.m2, m.low, m.high])
        if self.groups is not None:
            arrays |= {f"groups/{name}": values for name, values in self.groups.to_arrays().items()}
        if self.kind == "exact":
            arrays["std"], arrays["error"] = self.rows()
            return arrays
        arrays["bits"], arrays["log_std"] = np.asarray(self.bits), np.asarray(self.log_std)
        joint = self.joint_counts()
        arrays["joint/key"], arrays["joint/count"] = joint.key, joint.count
        arrays["joint/bits"] = np.asarray(joint.bits)
        for name, groups in self.sketch_groups():
            arrays[f"{name}/key"], arrays[f"{name}/width"] = groups.key, groups.width
            arrays[f"{name}/count"] = groups.count
            arrays.update({f"{name}/sum/{payload}": column for payload, column in groups.sums.items()})
        return arrays

    def sketch_groups(self) -> Iterator[tuple[str, Grouped]]:
        """The three orders of a sketch, by name."""
        for name in ORDERS:
            groups = getattr(self, f"by_{name}")
            if isinstance(groups, Grouped):
                yield name, groups

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> RegressionStatistics:
        """Statistics from the arrays that ``to_arrays`` made; FileFormatError for anything else."""
        own = {name.removeprefix("groups/"): arrays[name] for name in arrays if name.startswith("groups/")}
        try:
            made = _from_arrays(arrays)
            return replace(made, groups=GroupTables.from_arrays(own)) if own else made
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise FileFormatError(f"these arrays are not regression statistics ({error!r})") from error


def exact_statistics(
    target: npt.NDArray[Any],
    mean: npt.NDArray[Any],
    std: npt.NDArray[Any],
    *,
    counts: Mapping[str, int] | None = None,
    std_floor: float | None = None,
) -> RegressionStatistics:
    """Exact statistics of validated samples.

    Parameters
    ----------
    target, mean, std : arrays, shape (N,), float32 or float64
        Finite; std >= 0. See ``Predictions``, which validates.
    counts : dict of int, optional
        What was left out before.
    std_floor : float, optional
        Recorded; the caller has applied it.
    """
    keep_memory(32 * len(std))
    return _exact_from_rows(
        sort_by_std(std, _errors(target, mean, std)), Moments.of(target), counts, std_floor
    )


def _errors(target: npt.NDArray[Any], mean: npt.NDArray[Any], std: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Target less mean, in float32 where there are many such samples and neither errors nor z leave its range."""
    if len(std) >= LARGE and np.result_type(target, mean, std) == np.float32:
        with np.errstate(over="ignore"):
            error = np.asarray(np.subtract(target, mean))
        largest = max(abs(float(error.min())), abs(float(error.max())))
        least = float(np.min(std, where=std > 0, initial=np.inf))
        if float(std.max()) / SAFE <= largest <= least * SAFE:
            return error
    return np.asarray(np.subtract(target, mean, dtype=np.float64))


def _exact_from_rows(
    by_std: SortedRows, target: Moments, counts: Mapping[str, int] | None, std_floor: float | None
) -> RegressionStatistics:
    orders, std = other_orders(by_std), by_std.values
    columns = (std, by_std.columns["error"], orders.by_z.values)
    found = map_threads(Moments.of, columns, least=2 if len(std) >= WORTH_THREADS else 4)
    return RegressionStatistics(
        kind="exact",
        by_std=by_std,
        by_abs_error=orders.by_abs_error,
        by_z=orders.by_z,
        moments={**dict(zip(("std", "error", "z"), found, strict=True)), "target": target},
        counts=_full_counts(counts, std),
        log_std=_log_sum(std),
        rank_correlation=orders.rank_correlation,
        std_floor=std_floor,
    )


def sketch_statistics(
    target: npt.NDArray[Any],
    mean: npt.NDArray[Any],
    std: npt.NDArray[Any],
    *,
    counts: Mapping[str, int] | None = None,
    std_floor: float | None = None,
    bits: int = SKETCH_BITS,
) -> RegressionStatistics:
    """Sketched statistics of validated samples; parameters as for ``exact_statistics``."""
    made = sketch_rows(std, target, mean, bits=bits)
    return replace(made, counts={**made.counts, **(counts or {})}, std_floor=std_floor)


def _full_counts(counts: Mapping[str, int] | None, std: npt.NDArray[Any]) -> dict[str, int]:
    made = dict.fromkeys(COUNTS, 0)
    made.update(n=len(std), n_zero_std=int(np.count_nonzero(std == 0)))
    made.update(counts or {})
    return made


def _log_sum(std: npt.NDArray[Any]) -> float:
    def block(start: int, end: int) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(std[start:end].astype(np.float64)).sum())

    return math.fsum(map_spans(block, spans(len(std))))


def payload_columns(std: FloatArray, error: FloatArray) -> dict[str, FloatArray]:
    """Every payload of samples, by name."""
    z = standardised(error, std)
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1 / std
        return {
            "std": std,
            "std2": std * std,
            "abs_error": np.abs(error),
            "sq_error": error * error,
            "z": z,
            "z2": z * z,
            "error": error,
            "inv_std": inverse,
            "inv_sqrt_std": np.sqrt(inverse),
        }


class SketchBuilder:
    """Counts blocks of rows into buckets; ``finish`` gives the statistics so far."""

    def __init__(self, bits: int = SKETCH_BITS) -> None:
        self.bits = bits
        self._sums = {name: BucketSums(name, PAYLOADS[name], bits) for name in ORDERS}
        self._joints = [Joint.empty()]
        self._moments = {name: Moments() for name in VARIABLES}
        self._log_std = 0.0
        self._zero = 0

    def add(self, std: npt.NDArray[Any], target: npt.NDArray[Any], mean: npt.NDArray[Any] | None) -> None:
        """Count samples (std >= 0, all finite), a cache-sized block at a time.

        Without ``mean``, ``target`` holds the errors ``y - mu`` themselves.
        """
        for start in range(0, len(std), BUILD_BLOCK):
            part = slice(start, start + BUILD_BLOCK)
            error = target[part].astype(np.float64)
            if mean is not None:
                self._moments["target"] = self._moments["target"].merge(Moments.of(error))
                error = error - mean[part]
            self._add_block(std[part].astype(np.float64), error)

    def absorb(self, statistics: RegressionStatistics) -> None:
        """Add the samples of a finished sketch of the same ``bits``."""
        for name, groups in statistics.sketch_groups():
            self._sums[name].absorb(groups)
        self._join(statistics.joint_counts())
        for name in VARIABLES:
            self._moments[name] = self._moments[name].merge(statistics.moments[name])
        self._log_std += statistics.log_std
        self._zero += statistics.counts["n_zero_std"]

    def _add_block(self, std: FloatArray, error: FloatArray) -> None:
        self._join(Joint.of(std, error))
        columns = payload_columns(std, error)
        with np.errstate(divide="ignore"):
            self._log_std += float(np.log(std).sum())
        for name, sums in self._sums.items():
            sums.add(columns[name], columns)
        for name in VARIABLES[1:]:
            self._moments[name] = self._moments[name].merge(Moments.of(columns[name]))
        self._zero += int(np.count_nonzero(std == 0))

    def _join(self, joint: Joint) -> None:
        self._joints.append(joint)
        if len(self._joints) > JOINED_AT_ONCE:
            self._joints = [Joint.total(self._joints)]

    def finish(self) -> RegressionStatistics:
        """Statistics of everything added."""
        joint = Joint.total(self._joints)
        counts = {**dict.fromkeys(COUNTS, 0), "n": self._moments["std"].count, "n_zero_std": self._zero}
        groups = {name: sums.grouped() for name, sums in self._sums.items()}
        return RegressionStatistics(
            kind="sketch",
            by_std=groups["std"],
            by_abs_error=groups["abs_error"],
            by_z=groups["z"],
            moments=dict(self._moments),
            counts=counts,
            log_std=self._log_std,
            rank_correlation=joint.rank_correlation(),
            joint=joint,
            bits=self.bits,
        )


def sketch_rows(
    std: npt.NDArray[Any],
    target: npt.NDArray[Any],
    mean: npt.NDArray[Any] | None = None,
    *,
    bits: int = SKETCH_BITS,
    workers: int | None = None,
) -> RegressionStatistics:
    """Sketch of samples, a share on each of ``workers`` threads; arguments as for ``SketchBuilder.add``."""
    workers = (workers or worker_count()) if len(std) > 4 * BUILD_BLOCK else 1
    edges = np.linspace(0, len(std), workers + 1).astype(int)

    def count(start: int, end: int) -> RegressionStatistics:
        builder = SketchBuilder(bits)
        builder.add(std[start:end], target[start:end], None if mean is None else mean[start:end])
        return builder.finish()

    return reduce(merge, map_threads(lambda span: count(*span), itertools.pairwise(edges)))


def merge(one: RegressionStatistics, other: RegressionStatistics) -> RegressionStatistics:
    """Statistics of both sets of samples; IncompatibleStatisticsError names settings that differ."""
    if not one.n or not other.n:
        return _with_counts(one, other)
    if one.std_floor != other.std_floor:
        raise IncompatibleStatisticsError(
            f"std_floor differs ({one.std_floor} and {other.std_floor}); evaluate both with the same floor"
        )
    groups = None if one.groups is None or other.groups is None else one.groups.merge(other.groups)
    if one.kind == other.kind == "exact":
        return replace(_merge_exact(one, other), groups=groups)
    bits = one.bits or other.bits or SKETCH_BITS
    if {one.bits or bits, other.bits or bits} != {bits}:
        raise IncompatibleStatisticsError(
            f"bits differs ({one.bits} and {other.bits}); sketch both with the same resolution"
        )
    return replace(_merge_sketch(one.sketched(bits), other.sketched(bits)), groups=groups)


def _with_counts(one: RegressionStatistics, other: RegressionStatistics) -> RegressionStatistics:
    full = one if one.n else other
    return replace(full, counts=_added(one.counts, other.counts), memo={})


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one[name] + other[name] for name in COUNTS}


def _merge_exact(one: RegressionStatistics, other: RegressionStatistics) -> RegressionStatistics:
    (s1, e1), (s2, e2) = one.rows(), other.rows()
    return _exact_from_rows(
        sort_by_std(np.concatenate([s1, s2]), np.concatenate([e1, e2])),
        one.moments["target"].merge(other.moments["target"]),
        _added(one.counts, other.counts),
        one.std_floor,
    )


def _merge_sketch(one: RegressionStatistics, other: RegressionStatistics) -> RegressionStatistics:
    joint = one.joint_counts().merge(other.joint_counts())
    mine, theirs = dict(one.sketch_groups()), dict(other.sketch_groups())
    return replace(
        one,
        by_std=mine["std"].merge(theirs["std"]),
        by_abs_error=mine["abs_error"].merge(theirs["abs_error"]),
        by_z=mine["z"].merge(theirs["z"]),
        moments={name: one.moments[name].merge(other.moments[name]) for name in VARIABLES},
        counts=_added(one.counts, other.counts),
        log_std=one.log_std + other.log_std,
        rank_correlation=joint.rank_correlation(),
        joint=joint,
        memo={},
    )


def _from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> RegressionStatistics:
    counts = dict(zip(COUNTS, (int(c) for c in arrays["counts"]), strict=True))
    moments = {}
    for name in VARIABLES:
        mean, m2, low, high = (float(v) for v in arrays[f"moments/{name}"])
        moments[name] = Moments(counts["n"], mean, m2, low, high)
    floor = float(arrays["std_floor"])
    std_floor = None if np.isnan(floor) else floor
    if str(arrays["kind"]) == "exact":
        by_std = sort_by_std(arrays["std"], arrays["error"])
        return _exact_from_rows(by_std, moments["target"], counts, std_floor)
    joint = Joint(arrays["joint/key"], arrays["joint/count"], int(arrays.get("joint/bits", JOINT_BITS)))
    groups = {name: _groups_from_arrays(name, arrays) for name in ORDERS}
    return RegressionStatistics(
        kind="sketch",
        by_std=groups["std"],
        by_abs_error=groups["abs_error"],
        by_z=groups["z"],
        moments=moments,
        counts=counts,
        log_std=float(arrays["log_std"]),
        rank_correlation=joint.rank_correlation(),
        joint=joint,
        bits=int(arrays["bits"]),
        std_floor=std_floor,
    )


def _groups_from_arrays(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Grouped:
    sums = {payload: arrays[f"{name}/sum/{payload}"] for payload in PAYLOADS[name]}
    columns = (arrays[f"{name}/key"], arrays[f"{name}/width"], arrays[f"{name}/count"])
    if len({len(column) for column in (*columns, *sums.values())}) != 1:
        raise ValueError(f"columns of {name} differ in length")
    return Grouped(name, *columns, sums)
