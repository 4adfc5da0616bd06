"""The artifacts of a stored run, read without requesting the run each time."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking_mlflow.connection import Connection
from uq_tracking_mlflow.quiet import no_progress_bar

if TYPE_CHECKING:
    from mlflow.entities import FileInfo, RunInfo


class StoredArtifacts:
    """Artifacts of one run.

    ``MlflowClient.list_artifacts`` and ``download_artifacts`` read the whole run, with every metric, to learn where
    its artifacts are; for a listed run that is already known.

    Parameters
    ----------
    info
        MLflow's information about the run.
    connection
        Connection to the tracker, which may also serve the artifacts.
    """

    def __init__(self, info: RunInfo, connection: Connection) -> None:
        self.experiment_id = str(info.experiment_id)
        self._uri = str(info.artifact_uri)
        self._connection = connection

    def list(self, folder: str) -> list[FileInfo]:
        """Files and folders in a folder; none if it does not exist."""
        found: list[FileInfo] = self._connection.call(
            f"listing {folder or 'artifacts'}", lambda: self._repository.list_artifacts(folder or None)
        )
        return found

    def walk(self, folder: str) -> Iterator[str]:
        """Names of all files below a folder."""
        for item in self.list(folder):
            if item.is_dir:
                yield from self.walk(item.path)
            else:
                yield item.path

    def download(self, name: str, folder: Path) -> Path:
        """Download a file into ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        with no_progress_bar():
            path = self._connection.call(
                f"reading {name}", lambda: self._repository.download_artifacts(name, str(folder))
            )
        return Path(path)

    @cached_property
    def _repository(self) -> Any:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        takes_uri = (
            "tracking_uri" in inspect.signature(get_artifact_repository).parameters
        )  # from MLflow 3 on
        options = {"tracking_uri": self._connection.uri} if takes_uri else {}
        return get_artifact_repository(self._uri, **options)
