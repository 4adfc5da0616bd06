"""Calls to MLflow that fail soon and say what to do.

A call to a dead server blocks for minutes (247 s with MLflow's default of seven retries with growing pauses), and
the settings that shorten this belong to the whole process, so to the user's own calls too. Hence a server is asked
for its health before a call, with a short time-out, unless it has just answered, and every few seconds during one:
a call lasts as long as it needs while the server lives, and not much longer than the server.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import TYPE_CHECKING, TypeVar

from uq_tracking.errors import RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.run_writer import redact

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 15.0
LOOK_AFTER = 5.0
"""Seconds between two looks at a server that is working on a call."""
_FRESH = 1.0
"""Seconds for which an answer counts as a sign of life."""
_DOWN = (502, 503, 504)
_UNREACHABLE = ("Max retries exceeded", "OperationalError")
"""Texts of errors of HTTP and of databases (locked, refused, disk full) that the next call would meet again."""


class Connection:
    """A client whose calls end soon after its server did."""

    def __init__(self, client: MlflowClient) -> None:
        self.client = client
        self.uri = str(client.tracking_uri)
        self._is_server = self.uri.startswith(("http://", "https://"))
        self._answered = float("-inf")

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Return the function's result.

        Raises
        ------
        TrackerUnreachableError
            The server or database does not answer, or stopped answering.
        RunNotFoundError
            It has no such run or experiment, or the run is deleted.
        """
        try:
            return self._watched(function) if self._is_server else function()
        except TrackerUnreachableError:
            raise
        except Exception as error:
            raise _translated(what, error) from error

    def _watched(self, function: Callable[[], T]) -> T:
        if time.monotonic() - self._answered > _FRESH:
            self._check_alive()
        outcome = in_thread(function)
        while not futures.wait([outcome], timeout=LOOK_AFTER).done:
            self._check_alive()  # if it raises, the call is left to end by itself
        self._answered = time.monotonic() if outcome.exception() is None else float("-inf")
        return outcome.result()

    def _check_alive(self) -> None:
        problem = probe(self.uri)
        if problem is not None:
            raise TrackerUnreachableError(
                f"the MLflow server at {redact(self.uri)} does not answer ({problem}); "
                "start it again, or correct MLFLOW_TRACKING_URI"
            )


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


def in_thread(function: Callable[[], T]) -> futures.Future[T]:
    """Start the function in a thread that does not keep the process alive, with the caller's context."""
    outcome: futures.Future[T] = futures.Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(function))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, name="uq-tracking-mlflow", daemon=True).start()
    return outcome


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
    return error
