"""Call MLflow with errors that say what they mean and what to do."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from uq_tracking.errors import (
    BackendError,
    PermissionDeniedError,
    RunNotFoundError,
    TrackerUnreachableError,
    redact,
)
from uq_tracking.tracking.deadline import check_listens
from uq_tracking.tracking.guard import watch
from uq_tracking.typed import cached_property

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import FileInfo, RunInfo
    from mlflow.entities import Run as StoredEntity


T = TypeVar("T")

ROOM = 8 * 2**20
"""With less free space than this, in bytes, nothing is written to MLflow's file store."""
LONGEST = 10_000
"""Characters of an error that are looked through: MLflow puts whole answers there."""
_FRESH = 1.0
"""Seconds for which an answer counts as a sign of life; after that, check for a dead server before MLflow retries."""
_UNREACHABLE = ("Max retries exceeded", "OperationalError")
"""Texts of HTTP and database errors (locked, refused, disk full) that the next call would meet again."""
_REFUSED = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "INVALID_STATE")
"""Codes of errors that the same request would meet again, but others would not."""
_REFUSED_REQUEST = re.compile(r"\b(400|405|411|413|414|415|422|431) (Client Error|!= 200)")
"""Texts of such HTTP errors: a request that is too large, for example."""


class Connection:
    """A client whose errors have classes that say what they mean."""

    def __init__(self, client: MlflowClient) -> None:
        self.client = client
        self.uri = str(client.tracking_uri)
        self._answered = float("-inf")

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Return the function's result.

        Raises
        ------
        TrackerUnreachableError
            The server or database does not answer.
        PermissionDeniedError
            The server forbids it.
        RunNotFoundError
            There is no such run or experiment, or the run is deleted.
        BackendError
            The request is rejected.
        """
        try:
            if time.monotonic() - self._answered > _FRESH:
                check_listens(self.uri)
        except TrackerUnreachableError as error:
            raise TrackerUnreachableError(
                f"the MLflow server does not answer: {redact(str(error))}; "
                "restart it, or correct MLFLOW_TRACKING_URI"
            ) from error
        watch()  # MLflow may have been imported in this very call
        try:
            found = function()
        except Exception as error:
            raise _translated(what, error) from error
        self._answered = time.monotonic()
        return found


def read_run(connection: Connection, what: str, run_id: str) -> StoredEntity:
    """Read a run; TrackerUnreachableError if something else is answered, as by a proxy that answers ``{}``."""
    found = connection.call(what, lambda: connection.client.get_run(run_id))
    if found.info.run_id != run_id:
        raise TrackerUnreachableError(f"{what}: {redact(connection.uri)} does not answer as an MLflow server")
    return found


def check_room(tracking_uri: str) -> None:
    """Raise TrackerUnreachableError if the disk of MLflow's file store is nearly full.

    A failed write there leaves an empty file behind, and MLflow cannot read a run that contains one.
    """
    if urlsplit(tracking_uri).scheme not in ("", "file"):
        return
    from mlflow.utils import file_utils

    path_of: Callable[[str], str] = file_utils.local_file_uri_to_path
    try:
        free = shutil.disk_usage(path_of(tracking_uri)).free
    except OSError:  # MLflow says what is wrong with the folder
        return
    if free < ROOM:
        raise TrackerUnreachableError(
            f"the disk of {redact(tracking_uri)} is nearly full ({free / 2**20:.1f} MB free); free some space"
        )


def place_of(client: MlflowClient | None) -> str:
    """The tracking URI of a client, else MLflow's own, which the environment gives before MLflow is imported."""
    if client is not None:
        return _absolute(str(client.tracking_uri))
    mlflow = sys.modules.get("mlflow")
    own = getattr(mlflow, "get_tracking_uri", None)  # None while another thread imports MLflow
    return _absolute(str(os.environ.get("MLFLOW_TRACKING_URI", "") if own is None else own()))


_RELATIVE = re.compile(r"(sqlite(?:\+\w+)?:///|file:(?!/)|(?=\.))(.+)")
"""Tracking URIs of files, and what precedes the path."""


@lru_cache(maxsize=128)
def _absolute(uri: str) -> str:
    """Return a tracking URI without credentials; a relative one belongs to the folder in which it was first used."""
    relative = _RELATIVE.fullmatch(uri)
    return redact(f"{relative[1]}{os.path.abspath(relative[2])}" if relative else uri)


def _translated(what: str, error: Exception) -> Exception:
    """Translate an error of MLflow, or of a library below it, to a class that says what it means."""
    cause: BaseException | None = error
    while cause is not None:  # MLflow wraps what the guard of its requests raises
        for kind in (PermissionDeniedError, TrackerUnreachableError):
            if isinstance(cause, kind):
                return kind(redact(f"{what}: {cause}"))
        cause = cause.__cause__ or cause.__context__
    text = redact(f"{what}: {str(error)[:LONGEST]}")
    code = getattr(error, "error_code", None)
    if code == "RESOURCE_DOES_NOT_EXIST":
        return RunNotFoundError(f"{text}; check the run id and MLFLOW_TRACKING_URI")
    if "must be in the 'active' state" in text:
        return RunNotFoundError(f"{text}; restore it with `mlflow runs restore --run-id RUN_ID`")
    if isinstance(error, ConnectionError) or any(sign in text for sign in _UNREACHABLE):
        return TrackerUnreachableError(text)
    return BackendError(text) if code in _REFUSED or _REFUSED_REQUEST.search(text) else error


OLDEST = (2, 16)
"""The first version that works with numpy 2."""
LONG_TAGS = (3, 15)
"""From this version on, an experiment's tag may have 20000 characters; before, 5000."""
IMAGE_GRID = (3, 11)
"""Before this version, ``log_image`` with a slash in its key stores files that can be neither shown nor downloaded
(mlflow issues 21085 and 22165)."""


CLASSIC = "?workflowType=machine_learning"
"""Without it, MLflow 3 opens its pages for language models."""


def base_address(tracking_uri: str) -> str | None:
    """Return the server's address for a browser, or None if the tracking URI is not a server.

    >>> base_address("https://me:secret@mlflow.example.org/team/")
    'https://mlflow.example.org/team'
    """
    if not tracking_uri.startswith(("http://", "https://")):
        return None
    parts = urlsplit(tracking_uri)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def view_command(tracking_uri: str, experiment_id: str) -> str:
    """Return the command that opens an experiment's view from a shell without the tracking URI set.

    >>> view_command("sqlite:///mlflow.db", "1")
    'MLFLOW_TRACKING_URI=sqlite:///mlflow.db uq-tracking view mlflow:1'
    """
    return f"MLFLOW_TRACKING_URI={shlex.quote(redact(tracking_uri))} uq-tracking view mlflow:{experiment_id}"


VARIABLE = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"


_silence = threading.Lock()
_before: list[str | None] = []
"""What the variable was when each of the threads that want silence came: first the user's value, then ours."""


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Keep MLflow silent during a download, in whichever threads there are any."""
    with _silence:
        _before.append(os.environ.get(VARIABLE))
        os.environ[VARIABLE] = "false"
    try:
        yield
    finally:
        with _silence:
            before = _before.pop()
            if not _before:
                os.environ.pop(VARIABLE, None)
                os.environ.update({} if before is None else {VARIABLE: before})


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

        if "tracking_uri" in inspect.signature(get_artifact_repository).parameters:  # from MLflow 3 on
            return get_artifact_repository(self._uri, tracking_uri=self._connection.uri)
        return get_artifact_repository(self._uri)
