"""The backend: finds the active run, adopts runs, opens stores. Can be imported without ``wandb``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from uq_tracking.errors import NoRunHereError, RunFinishedError, redact
from uq_tracking.tracking.backend import Backend, BackendStatus, Run, RunStore
from uq_tracking_wandb.names import OFFLINE, ONLINE, parse_offline, parse_online, uri_of

if TYPE_CHECKING:
    import wandb

OLDEST = (0, 20)
"""First release with ``reinit="create_new"``, which opens runs alongside the active one."""

_INSTALL = "pip install 'uq-tracking[wandb]'"


class WandbBackend(Backend):
    """Weights & Biases, online and offline."""

    name = ONLINE
    schemes = (OFFLINE,)

    def __init__(self) -> None:
        self._adopted: WeakKeyDictionary[Any, Run] = WeakKeyDictionary()

    def status(self) -> BackendStatus:
        """Return whether ``wandb`` is installed and new enough."""
        return BackendStatus.of_package(ONLINE, _INSTALL, oldest=OLDEST)

    def active_run(self) -> Run | None:
        """Return ``wandb.run`` if the process has loaded ``wandb`` and opened a run; never starts one."""
        run = getattr(sys.modules.get("wandb"), "run", None)
        return None if run is None else self._run(run)

    def own_run(self) -> Run | None:
        """Return the active run unless it was inherited by a fork, or is shared and belongs to another process."""
        run = getattr(sys.modules.get("wandb"), "run", None)
        return self._run(run) if run is not None and _is_own(run) else None

    def place(self, address: str, *, scheme: str | None = None) -> str:
        """Return the server's address, if the environment names it, or the folder; see `Backend`."""
        if scheme == OFFLINE:
            return address
        return redact(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai"))

    def adopt(self, run: Any) -> Run | None:
        """Return the run for a ``wandb.Run``, Lightning's ``WandbLogger``, or the id of an open run."""
        sdk = sys.modules.get("wandb")
        if sdk is None:
            return None
        if isinstance(run, str):
            run = sdk.run if sdk.run is not None and sdk.run.id == run else None
        elif any(kind.__name__ == "WandbLogger" for kind in type(run).__mro__):
            run = _of_lightning(run, sdk.Run)
        return self._run(run) if isinstance(run, sdk.Run) else None

    def store(self, address: str, *, scheme: str | None = None) -> tuple[RunStore, str | None]:
        """Return the store of ``wandb:ENTITY/PROJECT[/RUN]`` or ``wandb-offline:DIR[/RUN]``."""
        if scheme == OFFLINE:
            from uq_tracking_wandb.offline import OfflineStore

            folder, run_id = parse_offline(address)
            return OfflineStore(folder), run_id
        from uq_tracking_wandb.online import OnlineStore

        parsed = parse_online(address)
        return OnlineStore(parsed), parsed.run_id

    def _run(self, run: wandb.Run) -> Run:
        """One adapter per run, because it remembers the last version of the run's artifact."""
        from uq_tracking_wandb.run import DisabledRun, WandbRun, is_finished

        if run.disabled:
            return DisabledRun()
        if is_finished(run):
            raise RunFinishedError(uri_of(run))
        if run not in self._adopted:
            self._adopted[run] = WandbRun(run)
        return self._adopted[run]


def _is_own(run: wandb.Run) -> bool:
    """Return whether this process opened the run and is the primary one of those sharing it."""
    opened_by = getattr(run, "_init_pid", os.getpid())
    return opened_by == os.getpid() and getattr(run.settings, "x_primary", True)


def _of_lightning(logger: Any, kind: type[Any]) -> Any:
    """Return the run that a Lightning logger has open; accessing ``experiment`` would start one."""
    run = vars(logger).get("_experiment")
    if isinstance(run, kind):
        return run
    raise NoRunHereError(
        "this WandbLogger has no open run here. Lightning opens none on ranks other than zero: merge the ranks and "
        "log on rank zero (trainer.is_global_zero); before training, open it with logger.experiment"
    )
