"""Runs that this package opens itself, to create or extend them; never those used by training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking_wandb.history import Recall
from uq_tracking_wandb.run import WandbRun, is_finished

if TYPE_CHECKING:
    import wandb

FINISH_SECONDS = 120.0
"""Seconds that closing a run may wait for its uploads."""

_QUIET: dict[str, Any] = {
    "console": "off",
    "silent": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
    "disable_git": True,
    "disable_code": True,
    "finish_timeout": FINISH_SECONDS,
    "finish_timeout_raises": True,
}
"""No console capture, machine statistics or code of this process: the run belongs to another one."""


def open_run(**options: Any) -> wandb.Run:
    """Open a run alongside the active ones; ``wandb.run`` is unchanged."""
    import wandb

    known = {name: value for name, value in _QUIET.items() if name in wandb.Settings.model_fields}
    return wandb.init(reinit="create_new", settings=wandb.Settings(**known), **options)


class OwnedRun(WandbRun):
    """A run that this package opened and therefore closes.

    Parameters
    ----------
    run, stored, recall, patience
        As for ``WandbRun``.
    failed
        Whether the run had failed before it was reopened; it then stays failed.
    """

    def __init__(
        self,
        run: wandb.Run,
        stored: Mapping[str, Path] | None = None,
        recall: Recall | None = None,
        patience: int | None = None,
        *,
        failed: bool = False,
    ) -> None:
        super().__init__(run, stored, recall, patience)
        self._exit_code = 1 if failed else 0

    def close(self) -> None:
        """Finish the run, with the exit code that keeps its status; TimeoutError if uploads take too long."""
        if not is_finished(self.sdk_run):
            self.sdk_run.finish(exit_code=self._exit_code)
