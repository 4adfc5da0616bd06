"""Find DVCLive runs: that of a ``Live`` the user holds, or the folder behind an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uq_tracking.tracking.backend import Backend, BackendStatus, Run
from uq_tracking_dvclive.run import DVCLiveRun
from uq_tracking_dvclive.store import DVCLiveStore


class DVCLiveBackend(Backend):
    """DVCLive's folders. There is no active run: pass the ``Live`` as ``run=``."""

    name = "dvclive"

    def status(self) -> BackendStatus:
        """Report which DVCLive is installed, from its metadata."""
        return BackendStatus.of_package(self.name, "pip install 'uq-tracking[dvclive]'")

    def active_run(self) -> Run | None:
        """Return None: a ``Live`` belongs to whoever created it."""
        return None

    def place(self, address: str, *, scheme: str | None = None) -> str:
        """Return the folder; see `Backend`."""
        return str(Path(address or ".").expanduser().absolute())

    def adopt(self, run: Any) -> Run | None:
        """Adopt a ``Live``, or a logger of Lightning that holds one."""
        live = run.experiment if type(run).__name__ == "DVCLiveLogger" else run
        return DVCLiveRun(Path(live.dir), live) if type(live).__name__ == "Live" else None

    def store(self, address: str, *, scheme: str | None = None) -> tuple[DVCLiveStore, str | None]:
        """Treat ``address`` as a run if it holds metrics.json, else as a folder of runs."""
        path = Path(address or ".").expanduser().absolute()
        store = DVCLiveStore(path)
        return (DVCLiveStore(path.parent), path.name) if store.is_run(path) else (store, None)
