"""Where a run is: the URIs of online and offline runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.errors import BackendError
from uq_tracking.tracking.names import VERDICT_TAG

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


def run_folder(run: wandb.Run) -> Path:
    """Folder of an open run on this machine: ``.../wandb/offline-run-<time>-<id>``."""
    return Path(run.dir).parent


SECTION = "uq"


def config_with(config: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    """Config entries to update so that ``tags`` are set without losing other entries."""
    section = config.get(SECTION, {})
    if not isinstance(section, Mapping):
        raise BackendError(
            f"run.config[{SECTION!r}] is {section!r}, but tags are kept there as a dictionary; "
            f"rename your config entry {SECTION!r}"
        )
    changed: dict[str, Any] = {}
    for name, value in tags.items():
        prefix, _, rest = name.partition(".")
        if prefix == SECTION and rest:
            changed[SECTION] = {**changed.get(SECTION, section), rest: str(value)}
        else:
            changed[name] = str(value)
    return changed


def verdicts_in(tags: Mapping[str, str]) -> dict[str, str]:
    """The verdicts among the tags, named like the scores of their splits: ``uq/verdict``, ``uq/test/verdict``."""
    parts = {name: name.split(".") for name in tags if f"{name}.".startswith(f"{VERDICT_TAG}.")}
    return {"/".join([SECTION, *split, kind]): str(tags[name]) for name, (_, kind, *split) in parts.items()}


def tags_in(config: Mapping[str, Any]) -> dict[str, str]:
    """Tags in a config: its section ``uq``, and every other text entry."""
    section = config.get(SECTION, {})
    nested = section if isinstance(section, Mapping) else {}
    tags = {
        name: value for name, value in config.items() if isinstance(value, str) and not name.startswith("_")
    }
    return tags | {f"{SECTION}.{name}": value for name, value in nested.items() if isinstance(value, str)}


_SUFFIX = {"image-file": ".png", "table-file": ".table.json"}
_CHART_TABLE = "_table"
"""What ``wandb`` appends to a chart's key for the table behind it."""


def media_files(summary: Mapping[str, Any]) -> dict[str, str]:
    """Path inside the run of every table and of our images, by listed name."""
    found = {}
    for key, value in summary.items():
        if not (isinstance(value, Mapping) and "path" in value and "_type" in value):
            continue
        kind, is_ours = value["_type"], key.startswith("uq")
        if kind == "table-file" or (is_ours and kind in _SUFFIX):
            name = key.removesuffix(_CHART_TABLE) if is_ours and kind == "table-file" else key
            found[name + _SUFFIX[kind]] = str(value["path"])
    return found


def numbers(summary: Mapping[str, Any]) -> dict[str, float]:
    """Summary entries that are numbers, except W&B's own."""
    return {
        key: float(value)
        for key, value in summary.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not key.startswith("_")
    }
