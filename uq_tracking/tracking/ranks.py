"""Which process of a distributed job this is; nothing is imported and nobody is asked to find out."""

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
"""Variables that are zero on rank zero, and the number of processes, by launcher: inner ones before outer ones."""

_log = logging.getLogger("uq_tracking")


def is_rank_zero() -> bool:
    """Whether this process is the first of its job, or alone.

    The process group of ``torch.distributed`` decides where there is one; else the environment that the innermost
    launcher has set. A variable counts only beside that launcher's number of processes, since ``RANK`` alone may
    be anybody's.
    """
    rank = _torch_rank()
    return rank == 0 if rank is not None else _is_launched_first()


def _torch_rank() -> int | None:
    """Rank in the default process group; None when torch is not loaded or no group is there."""
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
    """Say that nothing is logged here, in one line of level INFO per process."""
    _log.info(
        "not rank zero of this job and without a run of its own: this process scores but logs nothing; pass run=, "
        "or every_rank=True, to log here too"
    )
