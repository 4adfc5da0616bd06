"""Which process of a distributed job this is, found without imports or communication."""

from __future__ import annotations

import logging
import os
import sys
from functools import lru_cache

_LAUNCHERS = (
    (("RANK",), "WORLD_SIZE"),  # torchrun, accelerate, deepspeed
    (("LOCAL_RANK", "NODE_RANK"), "WORLD_SIZE"),  # Lightning's own launcher
    (("OMPI_COMM_WORLD_RANK",), "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    (("PMI_RANK",), "PMI_SIZE"),  # MPICH, Intel MPI
    (("SLURM_PROCID",), "SLURM_NTASKS"),  # srun
)
"""Variables that are zero on rank zero, and the number of processes, by launcher: inner before outer."""

_log = logging.getLogger("uq_tracking")


def is_rank_zero() -> bool:
    """Whether this process is the first of its job, or alone.

    The process group of ``torch.distributed`` decides if there is one; else the environment set by the innermost
    launcher. A variable counts only together with that launcher's number of processes, since ``RANK`` alone could be
    anyone's.
    """
    rank = _torch_rank()
    return rank == 0 if rank is not None else _is_launched_first()


def _torch_rank() -> int | None:
    """Rank in the default process group; None if torch is not loaded or there is no group."""
    group = sys.modules.get("torch.distributed")
    if group is None or not group.is_available() or not group.is_initialized():
        return None
    return int(group.get_rank())


def _is_launched_first() -> bool:
    for variables, size in _LAUNCHERS:
        if _number(variables[0]) is not None and _number(size) is not None:
            return not any(_number(variable) for variable in variables)
    return True


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "").strip()
    return int(text) if text.isdecimal() else None


@lru_cache(maxsize=1)
def tell_once() -> None:
    """Log at level INFO, once per process, that nothing is logged here."""
    _log.info(
        "this process is not rank zero of its job and has no run of its own, so it scores but logs nothing; "
        "pass run= or every_rank=True to log from here too"
    )
