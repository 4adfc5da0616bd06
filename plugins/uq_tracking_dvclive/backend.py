"""Find DVCLive runs: that of a ``Live`` the user holds, or the folder behind an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uq_tracking.tracking.backend import BackendStatus, Run
from uq_tracking.tracking.folder import FolderBackend
from uq_tracking_dvclive.run import DVCLiveRun
from uq_tracking_dvclive.store import DVCLiveStore


class DVCLiveBackend(FolderBackend):
    """DVCLive's folders. There is no active run: pass the ``Live`` as ``run=``."""

    name = "dvclive"
    kind = DVCLiveStore

    def status(self) -> BackendStatus:
        """Report which DVCLive is installed, from its metadata."""
        return BackendStatus.of_package(self.name, "pip install 'uq-tracking[dvclive]'")

    def adopt(self, run: Any) -> Run | None:
        """Adopt a ``Live``, or a logger of Lightning that holds one."""
        live = run.experiment if type(run).__name__ == "DVCLiveLogger" else run
        return DVCLiveRun(Path(live.dir), live) if type(live).__name__ == "Live" else None
