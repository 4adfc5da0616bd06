"""Find Aim runs: the one that the user holds, or those of the repository behind an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uq_tracking.errors import BackendError
from uq_tracking.tracking.backend import BackendStatus, Run
from uq_tracking.tracking.folder import FolderBackend
from uq_tracking_aim.run import AIM, AimRun
from uq_tracking_aim.store import AimStore


class AimBackend(FolderBackend):
    """Aim's local repositories. There is no active run: pass the ``aim.Run`` as ``run=``."""

    name = "aim"

    def status(self) -> BackendStatus:
        """Report which Aim is installed, from its metadata."""
        return BackendStatus.of_package(self.name, "pip install 'uq-tracking[aim]'")

    def place(self, address: str, *, scheme: str | None = None) -> str:
        """Return the folder that holds the repository; see `Backend`."""
        return str(_local(address))

    def adopt(self, run: Any) -> Run | None:
        """Adopt an ``aim.Run``, or a logger of Lightning that holds one."""
        live = run.experiment if type(run).__name__ == "AimLogger" else run
        if type(live).__name__ != "Run" or not type(live).__module__.startswith("aim."):
            return None
        return AimRun(_local(live.repo.path).parent, live.hash, live)

    def store(self, address: str, *, scheme: str | None = None) -> tuple[AimStore, str | None]:
        """Treat ``address`` as a run if it is one below a repository, else as the folder of a repository."""
        path = _local(address)
        store = AimStore(path.parent)
        is_run = not (path / AIM).is_dir() and store.is_run(store.path / path.name)
        return (store, path.name) if is_run else (AimStore(path), None)


def _local(address: str) -> Path:
    if "://" in address:
        raise BackendError(f"{address} is a server; Aim runs are only logged to a repository in a folder")
    return Path(address or ".").expanduser().absolute()
