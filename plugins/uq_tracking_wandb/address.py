"""Where a run is: the URIs of online and offline runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uq_tracking.errors import BackendError, redact

if TYPE_CHECKING:
    import wandb

ONLINE = "wandb"
OFFLINE = "wandb-offline"


@dataclass(frozen=True)
class OnlineAddress:
    """``ENTITY/PROJECT[/RUN]`` on the server that the ``wandb`` settings name."""

    entity: str | None
    project: str
    run_id: str | None = None

    @property
    def path(self) -> str:
        """The project's path in the public API's form."""
        return f"{self.entity}/{self.project}" if self.entity else self.project


def parse_online(address: str) -> OnlineAddress:
    """Split ``PROJECT``, ``ENTITY/PROJECT`` or ``ENTITY/PROJECT/RUN``; BackendError for anything else."""
    parts = address.strip("/").split("/")
    if not all(parts) or len(parts) > 3:
        raise BackendError(f"{ONLINE}:{address} is not an address; write {ONLINE}:ENTITY/PROJECT[/RUN]")
    if len(parts) == 1:
        return OnlineAddress(None, parts[0])
    return OnlineAddress(*parts)


def parse_offline(address: str) -> tuple[Path, str | None]:
    """Split ``DIR`` or ``DIR/RUN``; the last part is a run id if no folder has that name."""
    path = Path(address).expanduser()
    if path.is_dir():
        return path, None
    if path.parent.is_dir():
        return path.parent, path.name
    raise BackendError(
        f"{OFFLINE}:{address}: no such folder; pass the folder that holds the offline-run-* folders, "
        "by default ./wandb"
    )


def uri_of(run: wandb.Run) -> str:
    """Address at which the store finds this open run again."""
    if run.offline:
        return f"{OFFLINE}:{run_folder(run).parent}/{run.id}"
    return f"{ONLINE}:{run.entity}/{run.project}/{run.id}"


def place_of(run: wandb.Run) -> str:
    """The server of an open run, without credentials, or the folder of an offline one."""
    return str(run_folder(run).parent) if run.offline else redact(str(run.settings.base_url))


def run_folder(run: wandb.Run) -> Path:
    """Folder of an open run on this machine: ``.../wandb/offline-run-<time>-<id>``."""
    return Path(run.dir).parent
