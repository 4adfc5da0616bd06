"""Calls to MLflow that fail soon and say what to do.

A call to a dead server blocks for minutes (247 s with MLflow's default of seven retries with growing pauses), and
the settings that shorten this belong to the whole process, so to the user's own calls too. Hence a server is asked
for its health first, with a short time-out, unless it has just answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from uq_tracking.errors import RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.delivery import redact

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 15.0
_FRESH = 1.0
"""Seconds for which an answer counts as a sign of life."""
_DOWN = (502, 503, 504)


class Connection:
    """A client whose calls are made only while its server answers."""

    def __init__(self, client: MlflowClient) -> None:
        self.client = client
        self.uri = str(client.tracking_uri)
        self._answered = float("-inf")

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Return the function's result.

        Raises
        ------
        TrackerUnreachableError
            The server does not answer, or stopped answering.
        RunNotFoundError
            It has no such run or experiment, or the run is deleted.
        """
        self._check_alive()
        try:
            result = function()
        except Exception as error:
            self._answered = float("-inf")
            raise _translated(what, error) from error
        self._answered = time.monotonic()
        return result

    def _check_alive(self) -> None:
        if not self.uri.startswith(("http://", "https://")) or time.monotonic() - self._answered < _FRESH:
            return
        problem = probe(self.uri)
        if problem is not None:
            raise TrackerUnreachableError(
                f"the MLflow server at {redact(self.uri)} does not answer ({problem}); "
                "start it again, or correct MLFLOW_TRACKING_URI"
            )
        self._answered = time.monotonic()


def probe(uri: str) -> str | None:
    """Ask a server for its health, and tell what is wrong, or None. Any answer of the server itself is fine."""
    import requests

    try:
        answer = requests.get(
            f"{uri.rstrip('/')}/health", timeout=(CONNECT_TIMEOUT, READ_TIMEOUT), allow_redirects=False
        )
    except requests.exceptions.SSLError:
        return None  # it is there; MLflow has its own settings for certificates
    except requests.exceptions.RequestException as error:
        return type(error).__name__
    return f"HTTP {answer.status_code}" if answer.status_code in _DOWN else None


def _translated(what: str, error: Exception) -> Exception:
    """Give an error of MLflow, or of a library below it, the class that says what it means."""
    text = redact(f"{what}: {error}")
    code = getattr(error, "error_code", None)
    if code == "RESOURCE_DOES_NOT_EXIST":
        return RunNotFoundError(f"{text}; check the run id and MLFLOW_TRACKING_URI")
    if "must be in the 'active' state" in str(error):
        return RunNotFoundError(f"{text}; restore it with `mlflow runs restore --run-id RUN_ID`")
    if isinstance(error, ConnectionError) or "Max retries exceeded" in str(error):
        return TrackerUnreachableError(text)
    return error
