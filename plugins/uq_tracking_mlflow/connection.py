"""Call MLflow with errors that say what they mean and what to do."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from uq_tracking.errors import BackendError, RunNotFoundError, TrackerUnreachableError, redact
from uq_tracking.tracking.deadline import check_listens

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")

ROOM = 8 * 2**20
"""With less free space than this, in bytes, nothing is written to MLflow's file store."""
_FRESH = 1.0
"""Seconds for which an answer counts as a sign of life; after that, check for a dead server before MLflow retries."""
_UNREACHABLE = ("Max retries exceeded", "OperationalError")
"""Texts of HTTP and database errors (locked, refused, disk full) that the next call would meet again."""
_REFUSED = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "INVALID_STATE")
"""Codes of errors that the same request would meet again, but others would not."""


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
        RunNotFoundError
            There is no such run or experiment, or the run is deleted.
        BackendError
            The request is rejected.
        """
        try:
            if time.monotonic() - self._answered > _FRESH:
                check_listens(self.uri)
            found = function()
            self._answered = time.monotonic()
            return found
        except TrackerUnreachableError as error:
            raise TrackerUnreachableError(
                f"the MLflow server does not answer: {redact(str(error))}; "
                "restart it, or correct MLFLOW_TRACKING_URI"
            ) from error
        except Exception as error:
            raise _translated(what, error) from error


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
    """The tracking URI of a client, else MLflow's own, without credentials."""
    if client is not None:
        return redact(str(client.tracking_uri))
    mlflow = sys.modules.get("mlflow")
    return "" if mlflow is None else redact(str(mlflow.get_tracking_uri()))


def _translated(what: str, error: Exception) -> Exception:
    """Translate an error of MLflow, or of a library below it, to a class that says what it means."""
    text = redact(f"{what}: {error}")
    code = getattr(error, "error_code", None)
    if code == "RESOURCE_DOES_NOT_EXIST":
        return RunNotFoundError(f"{text}; check the run id and MLFLOW_TRACKING_URI")
    if "must be in the 'active' state" in str(error):
        return RunNotFoundError(f"{text}; restore it with `mlflow runs restore --run-id RUN_ID`")
    if isinstance(error, ConnectionError) or any(sign in str(error) for sign in _UNREACHABLE):
        return TrackerUnreachableError(text)
    return BackendError(text) if code in _REFUSED else error
