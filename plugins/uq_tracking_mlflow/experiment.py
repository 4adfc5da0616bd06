"""The runs of one MLflow experiment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from uq_tracking.errors import BackendError, RunNotFoundError, redact
from uq_tracking.tracking.backend import Run, RunStore, StoredRun, finite, name_parts
from uq_tracking.tracking.names import METHOD_TAG
from uq_tracking_mlflow import view
from uq_tracking_mlflow.connection import Connection, StoredArtifacts, read_run
from uq_tracking_mlflow.run import COLOR_TAG, MLflowRun, tag_key

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment
    from mlflow.entities import Run as StoredEntity

_PAGE = 1000
_ALMOST_RUN_ID = re.compile(r"(?=.*\d)[0-9a-f]{6,40}")
"""A run id that was cut or mistyped, rather than a name."""


class MLflowStore(RunStore):
    """Runs of the experiment called ``experiment``, which ``create`` creates if missing."""

    def __init__(self, client: MlflowClient, experiment: str) -> None:
        self.client = client
        self.experiment = experiment
        self._connection = Connection(client)
        self._opened: dict[str, StoredArtifacts] = {}
        """Artifacts of the listed runs: rereading a run costs more than its files."""
        self._in_view: set[str] = set()

    def runs(self, where: str | None = None) -> Iterator[StoredRun]:
        """List the runs by start time; ``where`` is MLflow's filter, such as ``metrics.`uq/nll` < 1``.

        Everything is read before the first run is yielded: pages are counted by offset, so runs that stop matching
        while being processed would make the next page skip others.
        """
        experiment_id = self._found().experiment_id
        runs: list[StoredEntity] = []
        token: str | None = ""
        while token is not None:
            search = partial(
                self.client.search_runs,
                [experiment_id],
                filter_string=where or "",
                max_results=_PAGE,
                order_by=["attributes.start_time ASC"],
                page_token=token or None,
            )
            page = self._connection.call("searching runs", search)
            runs.extend(page)
            token = page.token or None
        self._opened.update((run.info.run_id, StoredArtifacts(run.info, self._connection)) for run in runs)
        return (_stored_run(run) for run in runs)

    def files(self, run_id: str) -> list[str]:
        """List the run's artifacts; see `RunStore`."""
        return sorted(self._artifacts(run_id).walk(""))

    def fetch(self, run_id: str, name: str, folder: Path) -> Path:
        """Download one artifact; see `RunStore`."""
        if self.size(run_id, name) is None:
            raise FileNotFoundError(f"MLflow run {run_id} has no artifact {name!r}")
        return self._artifacts(run_id).download(name, folder)

    def size(self, run_id: str, name: str) -> int | None:
        """Size of an artifact in bytes; None if there is none."""
        parent = "/".join(name_parts(name)[:-1])
        items = self._artifacts(run_id).list(parent)
        return next((item.file_size or 0 for item in items if item.path == name and not item.is_dir), None)

    def reopen(self, run_id: str) -> Run:
        """Open the run with this id; RunNotFoundError also for a deleted one, which MLflow still shows."""
        run = MLflowRun(run_id, self.client, self._artifacts(run_id).experiment_id, in_view=self._in_view)
        run.read()
        return run

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> Run:
        """Create a finished run, and the experiment if missing."""
        experiment_id = self._experiment_id()
        named = {tag_key(tag): text for tag, text in (tags or {}).items()}
        run = self._connection.call(
            "making a run",
            lambda: self.client.create_run(experiment_id, tags=named, run_name=name),
        )
        self._connection.call("ending the run", lambda: self.client.set_terminated(run.info.run_id))
        return MLflowRun(run.info.run_id, self.client, experiment_id)

    def show(self) -> str | None:
        """Create or update the view of the experiment; return its address, or how to get there."""
        from mlflow import __version__

        experiment = self._found()
        number = experiment.experiment_id
        runs = list(self.runs())
        names = {name for run in runs for name in run.scalars}
        methods = [run.tags[METHOD_TAG] for run in runs if METHOD_TAG in run.tags]
        several = len(set(methods)) < len(methods)
        value = view.updated(experiment.tags.get(view.TAG), names, __version__, grouped=several, anew=True)
        if value is not None:
            self._connection.call(
                "writing the view", lambda: self.client.set_experiment_tag(number, view.TAG, value)
            )
        address = view.view_link(self._connection.uri, number)
        if address is not None:
            return address
        page = view.view_link("http://127.0.0.1:5000", number)
        return f"mlflow ui --backend-store-uri {redact(self._connection.uri)}\n{page}"

    def _artifacts(self, run_id: str) -> StoredArtifacts:
        """The run's artifacts; RunNotFoundError."""
        if run_id not in self._opened:
            run = read_run(self._connection, f"reading run {run_id}", run_id)
            self._opened[run_id] = StoredArtifacts(run.info, self._connection)
        return self._opened[run_id]

    def _find(self) -> Experiment | None:
        return find_experiment(self._connection, self.experiment)

    def _found(self) -> Experiment:
        experiment = self._find()
        if experiment is None:
            raise RunNotFoundError(
                f"MLflow has no experiment {self.experiment!r} in {redact(self._connection.uri)}; "
                "see `mlflow experiments search`, or correct MLFLOW_TRACKING_URI"
            )
        return experiment

    def _experiment_id(self) -> str:
        found = self._find()
        if found is None:
            parent, _, last = self.experiment.rpartition("/")
            if parent and _ALMOST_RUN_ID.fullmatch(last) and find_experiment(self._connection, parent):
                raise RunNotFoundError(
                    f"{last} in mlflow:{self.experiment} has {len(last)} hexadecimal digits, but a run id has 32; "
                    "an experiment of this name must be created first, with mlflow experiments create"
                )
            try:
                made = self._connection.call(
                    "making it", lambda: self.client.create_experiment(self.experiment)
                )
                return str(made)
            except BackendError:
                raise
            except Exception:  # another process may have created it at the same moment
                found = self._find()
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":
            raise RunNotFoundError(
                f"MLflow experiment {self.experiment!r} is deleted; restore it with "
                f"`mlflow experiments restore --experiment-id {found.experiment_id}`"
            )
        return str(found.experiment_id)


def find_experiment(connection: Connection, name_or_id: str) -> Experiment | None:
    """Find an experiment by name, else by id."""
    client = connection.client
    named = connection.call("looking for it", lambda: client.get_experiment_by_name(name_or_id))
    if named is not None or not name_or_id.isdigit():
        return named
    try:
        return connection.call("looking for it", lambda: client.get_experiment(name_or_id))
    except RunNotFoundError:
        return None


def _stored_run(run: StoredEntity) -> StoredRun:
    info = run.info
    return StoredRun(
        uri=f"mlflow:{info.experiment_id}/{info.run_id}",
        run_id=info.run_id,
        name=info.run_name or "",
        status=info.status.lower(),
        tags=dict(run.data.tags),
        scalars=finite(run.data.metrics),
        color=run.data.tags.get(COLOR_TAG),
    )
