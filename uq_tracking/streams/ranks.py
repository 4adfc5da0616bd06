"""Gather bytes from every process of a torch.distributed group."""

from __future__ import annotations

from typing import Any

from uq_tracking.errors import SettingsError


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
