"""Count torch tensors on the devices where they live, and gather what the processes of a group have counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.inputs.fingerprint import Fingerprint
from uq_tracking.inputs.predictions import Case
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.streams.map_samples import case_image

if TYPE_CHECKING:
    from uq_tracking.statistics.torch_sketch import TorchSketch


NAMES = ("y_true", "y_pred", "y_std")

DEFECTS = {
    "bad_mean": "{} non-finite values in y_pred",
    "bad_std": "{} non-finite values in y_std",
    "negative_std": "{} negative values in y_std",
}


class DevicePart(NamedTuple):
    """What one device has counted."""

    statistics: Statistics
    flags: dict[str, int]
    fingerprint: Fingerprint
    defect: str
    """What was bad, and in which batch first; empty if nothing was."""


class DeviceCounts:
    """A sketch per device."""

    def __init__(self, bits: int, std_floor: float | None) -> None:
        self.bits, self.std_floor = bits, std_floor
        self._sketches: dict[Any, TorchSketch] = {}

    def add(self, target: Any, mean: Any, std: Any, mask: Any, batch: int) -> None:
        """Count tensors on one device; arguments as for ``Accumulator.update``, plus the batch number."""
        from uq_tracking.statistics.torch_sketch import TorchSketch

        tensors = (target, mean, std)
        check_shapes(*((name, tuple(each.shape)) for name, each in zip(NAMES, tensors, strict=True)))
        mask = _tensor_mask(mask, target)
        if target.device not in self._sketches:
            self._sketches[target.device] = TorchSketch(target.device, self.bits, self.std_floor)
        self._sketches[target.device].add(target, mean, std, mask, batch)

    def drain(self) -> Iterator[DevicePart]:
        """What the devices have counted since the last drain; waits for them."""
        for device, sketch in self._sketches.items():
            part = sketch.drain()
            yield DevicePart(part.statistics, part.flags, part.fingerprint, _described(part.flags, device))


def countable(tensors: tuple[Any, ...], *, on_device: bool | None) -> bool:
    """Whether these are tensors on one device, to be counted there.

    ``on_device=None`` means CUDA only: numpy can view CPU tensors anyway.
    """
    torch = sys.modules.get("torch")
    if on_device is False or torch is None or len(tensors) != len(NAMES):
        return False
    if not all(isinstance(tensor, torch.Tensor) and not tensor.is_complex() for tensor in tensors):
        return False
    kinds = {"cuda", "cpu"} if on_device else {"cuda"}
    return len({tensor.device for tensor in tensors}) == 1 and tensors[0].device.type in kinds


def cutter(target: Any, mean: Any, std: Any, mask: Any, images: Any) -> Callable[[Any], Case]:
    """Return a function that slices a case out of tensors and leaves it on the device."""

    def cut(place: Any) -> Case:
        import torch

        truth = target.detach()[place].float().clone()
        if mask is not None:
            truth = torch.where(_tensor_mask(mask, target)[place], torch.nan, truth)
        image = case_image(images, place, tuple(target.shape))
        arrays = {
            "target": truth,
            "mean": mean.detach()[place].float().clone(),
            "std": std.detach()[place].float().clone(),
        }
        return Case(arrays, image)

    return cut


def _tensor_mask(mask: Any, like: Any) -> Any:
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
    import torch

    found = mask if isinstance(mask, torch.Tensor) else torch.as_tensor(np.asarray(mask))
    if found.dtype != torch.bool:
        raise InputTypeError(
            f"mask has dtype {found.dtype}, not bool; pass, for example, mask != 0, where True excludes a sample"
        )
    check_shapes(("y_true", tuple(like.shape)), ("mask", tuple(found.shape)))
    return found.to(like.device, non_blocking=True)


def _described(flags: dict[str, int], device: Any) -> str:
    parts = [text.format(flags[name]) for name, text in DEFECTS.items() if flags[name]]
    return f"{' and '.join(parts)} (first in batch {flags['first_bad']}, on {device})" if parts else ""


def gather(data: bytes, group: Any = None) -> list[bytes]:
    """The bytes of all processes, in rank order: one all-gather of the sizes and one of the contents.

    Raises
    ------
    SettingsError
        There is no process group.
    """
    import torch
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        raise SettingsError(
            "torch.distributed has no process group; call torch.distributed.init_process_group first, "
            "and all_reduce only with several processes"
        )
    device = _device_of(group)
    world = distributed.get_world_size(group)
    content = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(device)
    sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(world)]
    distributed.all_gather(sizes, torch.tensor([len(data)], dtype=torch.int64, device=device), group=group)
    lengths = [int(size) for size in sizes]
    padded = torch.zeros(max(lengths), dtype=torch.uint8, device=device)
    padded[: len(data)] = content
    parts = [torch.empty_like(padded) for _ in range(world)]
    distributed.all_gather(parts, padded, group=group)
    return [part[:length].cpu().numpy().tobytes() for part, length in zip(parts, lengths, strict=True)]


def _device_of(group: Any) -> Any:
    """Where the group's backend expects its tensors: nccl on the GPU, gloo on the host."""
    import torch
    from torch import distributed

    if "gloo" in str(distributed.get_backend(group)):
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())
