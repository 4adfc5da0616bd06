"""Count torch tensors on the devices where they live, and gather what the processes of a group have counted.

Nothing is copied to the host and nothing waits for the device until ``drain``: tables have a fixed size, samples
that do not count go to a slot of their own instead of being selected, and anything that needs judging (bad values,
say) is counted too and judged later. The buckets are those of ``BucketSums``; values outside float32's range share
the outermost bucket. All arithmetic is in float64, which the device must support.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.inputs.fingerprint import MODULUS, MULTIPLIERS, SHIFT
from uq_tracking.inputs.predictions import Case
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.statistics.exact import Derived
from uq_tracking.statistics.layout import Parts
from uq_tracking.statistics.orders import Buckets
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.sketch import JOINT_BITS, MANTISSA, SKETCH_BITS, Joint, bucket_edges
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import Moments
from uq_tracking.streams.map_samples import case_image

NAMES = ("y_true", "y_pred", "y_std")


def cutter(target: Any, mean: Any, std: Any, mask: Any, images: Any) -> Callable[[Any], Case]:
    """Return a function that slices a case out of tensors (the mask too) and leaves it on the device."""

    def cut(place: Any) -> Case:
        truth = target.detach()[place].float().clone()
        if mask is not None:
            truth = torch.where(mask[place], torch.nan, truth)
        image = case_image(images, place, tuple(target.shape))
        arrays = {
            "target": truth,
            "mean": mean.detach()[place].float().clone(),
            "std": std.detach()[place].float().clone(),
        }
        return Case(arrays, image)

    return cut


def tensor_mask(mask: Any, like: Any) -> Any:
    """The mask as a bool tensor on the device of ``like``.

    Raises
    ------
    InputTypeError
        Its dtype is not bool.
    ShapeError
        It has another shape.
    """
    if mask is None:
        return None
    found = mask if isinstance(mask, torch.Tensor) else torch.as_tensor(np.asarray(mask))
    if found.dtype != torch.bool:
        raise InputTypeError(
            f"mask has dtype {found.dtype}, not bool; pass, for example, mask != 0, where True excludes a sample"
        )
    check_shapes(("y_true", tuple(like.shape)), ("mask", tuple(found.shape)))
    return found.to(like.device, non_blocking=True)


def gather(part: Any, group: Any = None) -> list[Any]:
    """Return what each process passes, in rank order.

    Raises
    ------
    SettingsError
        There is no process group.
    """
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        raise SettingsError(
            "torch.distributed has no process group; call torch.distributed.init_process_group first, "
            "and all_reduce only with several processes"
        )
    parts: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(parts, part, group=group)
    return parts


Tensor = torch.Tensor

LOW_OCTAVE, HIGH_OCTAVE = -150, 128
"""Powers of two that bound float32's values; buckets further out are merged."""
BIAS = 1023
SIGN_BIT = 63
INFINITE = 2047
"""Exponent field of infinity."""

JOINT_OCTAVES, JOINT_HEADROOM = 64, 16
"""Octaves of the joint counts, and how many of them lie above the largest value of the first batch."""

CHUNK = 1 << 20
"""Samples processed at a time."""

DEFECTS = {
    "bad_mean": "{} non-finite values in y_pred",
    "bad_std": "{} non-finite values in y_std",
    "negative_std": "{} negative values in y_std",
}
FLAGS = (*REGRESSION.counts, *DEFECTS, "first_bad")


class BucketLayout:
    """Slots of a table: zero, the buckets of float32's range, infinity, and one for samples that do not count."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.lowest = (BIAS + LOW_OCTAVE) << bits
        self.span = (HIGH_OCTAVE - LOW_OCTAVE) << bits
        self.infinite, self.unused = self.span + 1, self.span + 2
        self.size = self.span + 3

    def slot(self, values: Tensor, valid: Tensor, *, signed: bool) -> Tensor:
        """Slot of each value (float64); negative values of a signed variable go to a second table."""
        size = values.abs()
        bucket = size.view(torch.int64) >> (MANTISSA - self.bits)
        slot = (bucket - self.lowest).clamp(0, self.span - 1) + 1
        slot = torch.where(size == 0, 0, slot)
        slot = torch.where(torch.isinf(size), self.infinite, slot)
        if signed:
            slot = torch.where(values < 0, slot + self.size, slot)
        return torch.where(valid, slot, self.unused)

    def bucket(self, slot: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Bucket numbers of slots, as in ``BucketSums``."""
        negative, slot = slot >= self.size, slot % self.size
        bucket = np.where(slot == 0, 0, slot - 1 + self.lowest)
        bucket = np.where(slot == self.infinite, INFINITE << self.bits, bucket).astype(np.uint64)
        sign = np.uint64(1) << np.uint64(SIGN_BIT - MANTISSA + self.bits)
        return np.asarray(np.where(negative, bucket | sign, bucket), dtype=np.uint64)


@dataclass(frozen=True)
class _Samples:
    """A chunk in float64, and which of its samples count."""

    target: Tensor
    mean: Tensor
    std: Tensor
    valid: Tensor

    def where(self, values: Tensor, other: float = 0.0) -> Tensor:
        return torch.where(self.valid, values, other)


class TorchSketch:
    """Sketch of tensors on one device, where its tables take about 130 MB.

    Parameters
    ----------
    device : torch.device
        Where the tensors live: CPU, CUDA or another device with float64.
    bits : int
        Mantissa bits of a bucket.
    std_floor : float, optional
        Smaller standard deviations are raised to it.
    """

    def __init__(self, device: torch.device, bits: int = SKETCH_BITS, std_floor: float | None = None) -> None:
        self.device, self.bits, self.std_floor = device, bits, std_floor
        self._layout = BucketLayout(bits)
        self._tables = {
            name: self._zeros(
                (self._layout.size * (2 if name == "z" else 1), 1 + len(REGRESSION.orders[name]))
            )
            for name in REGRESSION.orders
        }
        cells = JOINT_OCTAVES << JOINT_BITS
        self._axis = cells + 2  # zero first; last, a cell for samples that do not count
        self._joint = self._zeros((self._axis**2,), torch.int64)
        self._start()

    def _zeros(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.device)

    def _start(self) -> None:
        for table in (*self._tables.values(), self._joint):
            table.zero_()
        self._base = self._zeros((2,), torch.int64)
        self._moments = self._zeros((len(REGRESSION.moments), 5))
        self._moments[:, 3], self._moments[:, 4] = torch.inf, -torch.inf
        self._log_std = self._zeros(())
        self._hashes = self._zeros((), torch.int64)
        self._flags = {name: self._zeros((), torch.int64) for name in FLAGS}

    @torch.no_grad()
    def add(self, target: Tensor, mean: Tensor, std: Tensor, mask: Tensor | None, batch: int) -> None:
        """Count tensors of equal shape on this device, without waiting for it.

        Parameters
        ----------
        target, mean, std : floating or integer tensors of equal shape
            As for ``Predictions``: a non-finite target is missing.
        mask : bool tensor of that shape, optional
            True excludes a sample.
        batch : int
            Batch number, for messages about bad values.
        """
        columns = [tensor.detach().reshape(-1) for tensor in (target, mean, std)]
        hidden = None if mask is None else mask.reshape(-1)
        for start in range(0, len(columns[0]), CHUNK):
            part = slice(start, start + CHUNK)
            chunk = (columns[0][part], columns[1][part], columns[2][part])
            self._add(self._checked(*chunk, None if hidden is None else hidden[part], batch))

    def _checked(
        self, target: Tensor, mean: Tensor, std: Tensor, hidden: Tensor | None, batch: int
    ) -> _Samples:
        """Count missing and bad samples; the rest are valid."""
        there = torch.isfinite(target)
        hidden = torch.zeros_like(there) if hidden is None else hidden
        here = there & ~hidden
        bad_mean, bad_std = here & ~torch.isfinite(mean), here & ~torch.isfinite(std)
        negative_std = here & (std < 0) & torch.isfinite(std)
        bad = bad_mean | bad_std | negative_std
        valid = here & ~bad
        self._flags["first_bad"] += ((self._flags["n_invalid"] == 0) & bad.any()) * batch
        for name, hits in {
            "n_masked": hidden,
            "n_missing": ~there & ~hidden,
            "bad_mean": bad_mean,
            "bad_std": bad_std,
            "negative_std": negative_std,
            "n_invalid": bad,
            "n": valid,
            "n_zero_std": valid & (std == 0),
        }.items():
            self._flags[name] += hits.sum()
        if self.std_floor is not None:  # rounded to the dtype as `Predictions` does
            is_single = std.is_floating_point() and std.dtype != torch.float64
            floor = float(np.float32(self.std_floor)) if is_single else self.std_floor
            std = (std.float() if is_single else std.double()).clamp(min=floor)
        return _Samples(_safe(target, valid), _safe(mean, valid), _safe(std, valid), valid)

    def _add(self, samples: _Samples) -> None:
        std, error = samples.std, samples.target - samples.mean
        z = torch.nan_to_num(error / std, nan=0.0, posinf=torch.inf, neginf=-torch.inf)
        columns = Derived({"std": std, "error": error, "z": z})
        for name in REGRESSION.orders:
            slot = self._layout.slot(columns[name], samples.valid, signed=name == "z")
            payloads = torch.stack(
                [torch.ones_like(std), *(columns[payload] for payload in REGRESSION.orders[name])], dim=1
            )
            self._tables[name].index_add_(0, slot, payloads)
        self._add_joint(samples, columns["abs_error"])
        self._log_std += samples.where(torch.log(std)).sum()
        variables = {**columns, "target": samples.target}
        for row, name in enumerate(REGRESSION.moments):
            self._merge_moments(row, variables[name], samples)
        self._add_hashes(samples)

    def _add_joint(self, samples: _Samples, size: Tensor) -> None:
        """Count cells in a window of octaves positioned by the first batch with a positive value."""
        places = []
        for axis, values in enumerate((samples.std, size)):
            bucket = values.view(torch.int64) >> (MANTISSA - JOINT_BITS)
            largest = samples.where(values).max()
            top = (largest.view(torch.int64) >> (MANTISSA - JOINT_BITS)) + (JOINT_HEADROOM << JOINT_BITS)
            base = (top - (JOINT_OCTAVES << JOINT_BITS)).clamp(min=1)
            known = self._base[axis]
            known.copy_(torch.where((known == 0) & (largest > 0), base, known))
            place = (bucket - known).clamp(0, self._axis - 3) + 1
            places.append(samples.where(torch.where(values == 0, 0, place), self._axis - 1).long())
        cell = places[0] * self._axis + places[1]
        self._joint.index_add_(0, cell, torch.ones_like(cell))

    def _merge_moments(self, row: int, values: Tensor, samples: _Samples) -> None:
        """Merge the chunk's moments into the running ones (Chan et al. 1979), as ``Moments`` does."""
        count, mean, m2, low, high = self._moments[row].clone().unbind()
        n = samples.valid.sum().double()
        least = samples.where(values, torch.inf).min()
        origin = torch.where(torch.isfinite(least), least, 0.0)
        shifted = samples.where(values - origin)  # a constant gives exactly zero spread
        shift = shifted.sum() / n.clamp(min=1)
        spread = torch.square(samples.where(shifted - shift)).sum()
        total = (count + n).clamp(min=1)
        gap = torch.where(count > 0, origin + shift - mean, 0.0)
        merged = torch.where(count > 0, mean + gap * n / total, origin + shift)
        new = (
            count + n,
            torch.where(n > 0, merged, mean),
            m2 + spread + gap * gap * count * n / total,
            torch.minimum(low, least),
            torch.maximum(high, samples.where(values, -torch.inf).max()),
        )
        self._moments[row] = torch.stack(new)

    def _add_hashes(self, samples: _Samples) -> None:
        state = torch.zeros_like(samples.target, dtype=torch.int64)
        for column, multiplier in zip((samples.target, samples.mean, samples.std), MULTIPLIERS, strict=True):
            signed = multiplier - MODULUS if multiplier >= MODULUS // 2 else multiplier
            state = _mixed(_mixed(state + column.view(torch.int64), signed), signed)
        self._hashes += torch.where(samples.valid, state, 0).sum()

    def drain(self) -> tuple[Statistics, int, str]:
        """Return everything counted, and start over; this waits for the device.

        Statistics on the host, the sum of the hashes, and what was bad, empty if nothing was.
        """
        flags = {name: int(flag) for name, flag in self._flags.items()}
        hashes = int(self._hashes)
        orders = {name: self._buckets(name) for name in REGRESSION.orders}
        joint = self._joint_counts()
        rows = zip(REGRESSION.moments, self._moments.tolist(), strict=True)
        moments = {name: Moments(int(row[0]), *row[1:]) for name, row in rows}
        counts = {name: flags[name] for name in REGRESSION.counts}
        parts = Parts(orders, {"log_std": float(self._log_std)}, moments, {"joint": joint}, counts=counts)
        facts = {"std_floor": self.std_floor}
        statistics = Statistics.of(REGRESSION, parts, bits=self.bits, facts=facts)
        self._start()
        bad = " and ".join(text.format(flags[name]) for name, text in DEFECTS.items() if flags[name])
        defect = f"{bad} (first in batch {flags['first_bad']}, on {self.device})" if bad else ""
        return statistics, hashes, defect

    def _buckets(self, name: str) -> Buckets:
        table = self._tables[name]
        used = table[:, 0].clone()
        used[self._layout.unused] = 0  # in z's second table too: samples that do not count are never negative
        rows = used.nonzero().reshape(-1)
        found, slot = table[rows].cpu().numpy(), rows.cpu().numpy()
        low, width = bucket_edges(self._layout.bucket(slot), self.bits)
        order = np.argsort(low, kind="stable")
        sums = {
            payload: np.ascontiguousarray(found[order, k])
            for k, payload in enumerate(REGRESSION.orders[name], start=1)
        }
        return Buckets(name, low[order], width[order], found[order, 0].astype(np.int64), sums)

    def _joint_counts(self) -> Joint:
        table = self._joint.reshape(self._axis, self._axis)[:-1, :-1]
        places = table.nonzero()
        count = table[places[:, 0], places[:, 1]].cpu().numpy()
        base = self._base.cpu().numpy()
        place = places.cpu().numpy()
        buckets = [np.where(place[:, k] == 0, 0, place[:, k] - 1 + base[k]) for k in (0, 1)]
        return Joint(Joint.keys(*buckets), count.astype(np.int64), JOINT_BITS)


def _safe(values: Tensor, valid: Tensor) -> Tensor:
    """Values in float64, with -0.0 as zero, and 1 for samples that do not count, so that arithmetic stays safe."""
    return torch.where(valid, values.double() + 0.0, 1.0)


def _mixed(state: Tensor, multiplier: int) -> Tensor:
    """One round of a sample's hash, in signed arithmetic that wraps the same way."""
    state = state * multiplier
    return state ^ ((state >> SHIFT) & ((1 << SHIFT) - 1))
