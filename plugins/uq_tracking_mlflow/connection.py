"""Calls to MLflow whose errors say what they mean and what to do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from uq_tracking.errors import BackendError, RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.deadline import check_listens
from uq_tracking.tracking.redaction import redact

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")

_FRESH = 1.0
"""Seconds for which an answer counts as a sign of life; later, a dead server is found out before MLflow retries."""
_UNREACHABLE = ("Max retries exceeded", "OperationalError")
"""Texts of errors of HTTP and of databases (locked, refused, disk full) that the next call would meet again."""
_REFUSED = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "INVALID_STATE")
"""Codes of errors that the same request would meet again, and others would not."""


class Connection:
    """A client whose errors have the class that says what they mean."""

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
            It has no such run or experiment, or the run is deleted.
        BackendError
            It refuses the request.
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
                "start it again, or correct MLFLOW_TRACKING_URI"
            ) from error
        except Exception as error:
            raise _translated(what, error) from error


def place_of(client: MlflowClient | None) -> str:
    """The tracking URI of a client, else the one that MLflow is set to, without credentials."""
    if client is not None:
        return redact(str(client.tracking_uri))
    mlflow = sys.modules.get("mlflow")
    return "" if mlflow is None else redact(str(mlflow.get_tracking_uri()))


def _translated(what: str, error: Exception) -> Exception:
    """Give an error of MLflow, or of a library below it, the class that says what it means."""
    text = redact(f"{what}: {error}")
    code = getattr(error, "error_code", None)
    if code == "RESOURCE_DOES_NOT_EXIST":
        return RunNotFoundError(f"{text}; check the run id and MLFLOW_TRACKING_URI")
    if "must be in the 'active' state" in str(error):
        return RunNotFoundError(f"{text}; restore it with `mlflow runs restore --run-id RUN_ID`")
    if isinstance(error, ConnectionError) or any(sign in str(error) for sign in _UNREACHABLE):
        return TrackerUnreachableError(text)
    return BackendError(text) if code in _REFUSED else error
