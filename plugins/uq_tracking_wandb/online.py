"""Runs on a W&B server as a store: read through the public API, extended by resuming them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.errors import BackendError, RunNotFoundError
from uq_tracking.tracking.backend import Run, RunStore, StoredRun
from uq_tracking.tracking.names import MAPS, METHOD_TAG
from uq_tracking_wandb.artifacts import artifact_name, is_missing, is_of_others, latest_version
from uq_tracking_wandb.names import ONLINE, OnlineAddress, config_with, media_files, numbers, tags_in
from uq_tracking_wandb.run import OnlineRun, open_run
from uq_tracking_wandb.workspace import save_workspace

if TYPE_CHECKING:
    import wandb
    from wandb.apis.public import Run as ApiRun

PAGE = 200
"""Runs per request when listing."""

HISTORY_ROWS = 10_000
"""Rows examined to find out what a reopened run already holds; beyond that the server samples."""

_FAILED = ("failed", "crashed", "killed")


class OnlineStore(RunStore):
    """Runs of one project.

    Every call uses a new ``wandb.Api``, because an existing one caches runs and shows no later changes.

    Parameters
    ----------
    address
        The project; without an entity, the account's default one.
    """

    def __init__(self, address: OnlineAddress) -> None:
        self._address = address

    def runs(self, where: str | None = None) -> Iterator[StoredRun]:
        """Runs of the project, oldest first; ``where`` is W&B's filter as JSON, e.g. ``{"state": "finished"}``."""
        api = self._api()
        # Releases that load runs lazily would request each run's summary separately.
        whole = {"lazy": False} if "lazy" in signature(api.runs).parameters else {}
        found = api.runs(
            self._address.path, filters=_filter(where), order="+created_at", per_page=PAGE, **whole
        )
        try:
            yield from (self._stored(run) for run in found)
        except ValueError as error:
            raise RunNotFoundError(f"{ONLINE}:{self._address.path}: {error}") from error

    def files(self, run_id: str) -> list[str]:
        """Names of the files of the run's artifact, its images and tables, and the user's own ``artifact/file``."""
        run = self._run(run_id)
        own = {*media_files(run.summary_metrics), *_entries(self._artifact(run))}
        return sorted(own | _artifacts_of_others(run).keys())

    def fetch(self, run_id: str, name: str, folder: Path) -> Path:
        """Download a file."""
        run = self._run(run_id)
        artifact = self._artifact(run)
        if artifact is not None and name in _entries(artifact):
            return Path(artifact.get_entry(name).download(root=str(folder), skip_cache=True))
        media = media_files(run.summary_metrics)
        if name not in media:
            others = _artifacts_of_others(run)
            if name in others:
                collection, _, path = name.partition("/")
                entry = others[name].get_entry(path)
                return Path(entry.download(root=str(folder / collection), skip_cache=True))
            names = sorted({*media, *_entries(artifact), *others})
            raise FileNotFoundError(
                f"{self._uri(run_id)} has no file {name}; it has {', '.join(names) or 'none'}"
            )
        return _download_media(run, media[name], name, folder)

    def reopen(self, run_id: str) -> Run:
        """Resume the run; its status, config, history and summary stay, and one row is added.

        Raises
        ------
        BackendError
            The run is still running: its process would overwrite what is written here.
        """
        run = self._run(run_id)
        if run.state in ("running", "pending"):
            raise BackendError(
                f"{self._uri(run_id)} is {run.state}: two processes cannot write to it. Log inside the open run, "
                "or wait until it is finished (W&B marks the run of a dead process as crashed after some minutes)"
            )
        sdk_run = open_run(mode="online", entity=run.entity, project=run.project, id=run_id, resume="must")
        opened = OnlineRun(sdk_run, partial(self._run, run_id), partial(_rows_with, run))
        opened.failed = run.state in _FAILED
        return opened

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> Run:
        """Start a new run in the project."""
        sdk_run = open_run(
            mode="online",
            entity=self._address.entity,
            project=self._address.project,
            name=name,
            config=config_with({}, tags or {}),
        )
        return OnlineRun(sdk_run, partial(self._run, sdk_run.id))

    def show(self) -> str | None:
        """Create or update a workspace of the project; return its address."""
        names: set[str] = set()
        methods: dict[str, str] = {}
        newest = None
        for run in self.runs():
            names |= run.scalars.keys()
            methods |= {run.run_id: run.tags[METHOD_TAG]} if METHOD_TAG in run.tags else {}
            newest = run.run_id
        media = [] if newest is None else media_files(self._run(newest).summary_metrics)
        maps = {name.removesuffix(".png") for name in media if name.startswith(f"{MAPS}/")}
        project = self._api().project(self._address.project, self._address.entity)
        return save_workspace(project.entity, project.name, names | maps, methods)

    def _api(self) -> wandb.Api:
        import wandb

        return wandb.Api()

    def _run(self, run_id: str) -> ApiRun:
        import wandb

        try:
            return self._api().run(f"{self._address.path}/{run_id}")
        except (wandb.errors.CommError, ValueError) as error:
            if not is_missing(error):
                raise
            raise RunNotFoundError(f"{self._uri(run_id)} does not exist on this server: {error}") from error

    def _artifact(self, run: ApiRun) -> wandb.Artifact | None:
        return latest_version(f"{run.entity}/{run.project}/{artifact_name(run.id)}:latest")

    def _stored(self, run: ApiRun) -> StoredRun:
        return StoredRun(
            uri=self._uri(run.id),
            run_id=run.id,
            name=run.name or run.id,
            status=run.state,
            tags=tags_in(run.config),
            scalars=numbers(run.summary_metrics),
        )

    def _uri(self, run_id: str) -> str:
        return f"{ONLINE}:{self._address.path}/{run_id}"


def _rows_with(run: ApiRun, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of the history that hold all keys; the server omits the others."""
    rows: list[dict[str, Any]] = run.history(samples=HISTORY_ROWS, keys=list(keys), pandas=False)
    return rows


def _filter(where: str | None) -> dict[str, Any] | None:
    if where is None:
        return None
    try:
        parsed = json.loads(where)
    except json.JSONDecodeError as error:
        raise BackendError(
            f"{where!r} is not a W&B filter ({error}); write JSON, e.g. "
            '{"config.uq.method": "mc-dropout"} or {"summary_metrics.uq/mae": {"$lt": 0.1}}'
        ) from error
    if not isinstance(parsed, dict):
        raise BackendError(f"{where!r} is not a W&B filter; write a JSON object")
    return parsed


def _entries(artifact: wandb.Artifact | None) -> dict[str, Any]:
    return dict(artifact.manifest.entries) if artifact is not None else {}


def _artifacts_of_others(run: ApiRun) -> dict[str, wandb.Artifact]:
    """The last version of each of the user's own artifacts, by each of its files as ``artifact/path``."""
    found: dict[str, wandb.Artifact] = {}
    for artifact in run.logged_artifacts():
        if is_of_others(artifact.type):
            name = artifact.name.partition(":")[0]
            entries = artifact.manifest.entries.items()
            found.update({f"{name}/{path}": artifact for path, entry in entries if entry.ref is None})
    return found


def _download_media(run: ApiRun, path: str, name: str, folder: Path) -> Path:
    """Download a file of the run to ``folder/name``."""
    with run.file(path).download(root=str(folder), replace=True) as file:
        downloaded = Path(file.name)
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    return downloaded.replace(target)
