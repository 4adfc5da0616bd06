"""Count torch tensors on the devices where they live, and gather what the processes of a group have counted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.inputs.predictions import Case
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.streams.map_samples import case_image

NAMES = ("y_true", "y_pred", "y_std")


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
            truth = torch.where(tensor_mask(mask, target)[place], torch.nan, truth)
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
    import torch

    found = mask if isinstance(mask, torch.Tensor) else torch.as_tensor(np.asarray(mask))
    if found.dtype != torch.bool:
        raise InputTypeError(
            f"mask has dtype {found.dtype}, not bool; pass, for example, mask != 0, where True excludes a sample"
        )
    check_shapes(("y_true", tuple(like.shape)), ("mask", tuple(found.shape)))
    return found.to(like.device, non_blocking=True)


def gather(data: bytes, group: Any = None) -> list[bytes]:
    """Return the bytes of all processes, in rank order.

    Raises
    ------
    SettingsError
        There is no process group.
    """
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        raise SettingsError(
            "torch.distributed has no process group; call torch.distributed.init_process_group first, "
            "and all_reduce only with several processes"
        )
    parts: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(parts, data, group=group)
    return parts
