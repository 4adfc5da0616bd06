"""Runs that this package opens itself, to create or extend them; never those used by training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from uq_tracking.errors import TrackerUnreachableError
from uq_tracking.tracking.backend import finite
from uq_tracking_wandb.history import Recall
from uq_tracking_wandb.names import config_with, numbers, tags_in
from uq_tracking_wandb.run import WandbRun, is_finished

if TYPE_CHECKING:
    import wandb
    from wandb.apis.public import Run as ApiRun


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
    """A run that this package opened and therefore closes."""

    failed = False
    """True if the run had failed before it was reopened; it then stays failed."""

    def close(self) -> None:
        """Finish the run, with the exit code that keeps its status; TimeoutError if uploads take too long."""
        if not is_finished(self.sdk_run):
            self.sdk_run.finish(exit_code=int(self.failed))


SHOWN_SECONDS = 30.0
"""Seconds the server may take to show what it has accepted."""

_PAUSE = 0.25
"""Seconds before asking the server again, doubled every time."""


class OnlineRun(OwnedRun):
    """An online run opened by this package: it waits for every version of its artifact, and sets ``seal`` last.

    Parameters
    ----------
    run, recall
        As for ``WandbRun``.
    read
        Requests the run from the server.
    """

    def __init__(self, run: wandb.Run, read: Callable[[], ApiRun], recall: Recall | None = None) -> None:
        super().__init__(run, recall=recall, patience=int(FINISH_SECONDS))
        self._read = read
        self._scalars: dict[str, float] = {}
        self._tags: dict[str, str] = {}
        self._seal: dict[str, str] = {}

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Write the finite numbers; see `WandbRun`."""
        super().log_scalars(scalars, step=step)
        self._scalars.update(finite(scalars))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags in the run's config; see `WandbRun`."""
        super().set_tags(tags)
        self._tags.update({name: str(value) for name, value in tags.items()})

    def seal(self, tags: Mapping[str, str]) -> None:
        """Set these tags when the run is closed, after everything else has arrived."""
        self._seal.update(tags)

    def close(self) -> None:
        """Finish the run; then, if it has a seal, wait until the server shows what was written and set the seal.

        Raises
        ------
        TimeoutError
            Uploads take too long; TrackerUnreachableError if the server does not show them. In both cases no seal is
            set.
        """
        super().close()
        seal, self._seal = self._seal, {}
        if seal:
            run = self._shown()
            run.config.update(config_with(run.config, seal))
            run.update()

    def _shown(self) -> ApiRun:
        """The complete run from the server, because ``ApiRun.update`` writes back everything it has read."""
        end, pause = time.monotonic() + SHOWN_SECONDS, _PAUSE
        while not self._is_complete(run := self._read()):
            if time.monotonic() > end:
                raise TrackerUnreachableError(
                    f"{self.uri}: the server does not show the scores {SHOWN_SECONDS:g} s after they were sent; "
                    "the run is not marked as done; try again later"
                )
            time.sleep(pause)
            pause *= 2
        return run

    def _is_complete(self, run: ApiRun) -> bool:
        summary, tags = run.summary_metrics, tags_in(run.config)
        scalars = numbers(summary)
        shown = all(
            isinstance(summary.get(key), Mapping)  # an aggregate defined by the user
            or math.isclose(scalars.get(key, math.nan), value, rel_tol=1e-9)
            for key, value in self._scalars.items()
        )
        return shown and all(tags.get(name) == value for name, value in self._tags.items())
