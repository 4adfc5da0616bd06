"""One class per kind of user mistake; every message says what is wrong, where, and how to fix it, but no secrets."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from types import FrameType

CALLERS = frozenset(
    (
        *("joblib", "keras", "lightning", "lightning_fabric", "mlflow", "pluggy", "pytorch_lightning"),
        *("sklearn", "torch", "transformers"),
    )
)
"""Packages that call this one on behalf of a user's line."""


class UQTrackingError(Exception):
    """Base class of every error this package raises on purpose."""


class InputError(UQTrackingError, ValueError):
    """Arrays that cannot be scored."""


class ShapeError(InputError):
    """Arrays whose shapes differ; nothing is broadcast."""


class AlignmentError(InputError):
    """Arrays whose axes, labels or units differ (xarray, pandas); nothing is aligned or converted implicitly."""


class EmptyInputError(InputError):
    """No samples left to score; ``counts`` says what was left out, as in a report."""

    def __init__(self, message: str, counts: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.counts = dict(counts or {})


class InvalidValueError(InputError):
    """A non-finite prediction, or a non-finite or negative standard deviation, in a sample that counts."""


class InputTypeError(InputError, TypeError):
    """A value that is not an array of real numbers."""


class SettingsError(UQTrackingError, ValueError):
    """An option out of range, or mutually exclusive options."""


class UnknownMetricError(SettingsError):
    """A metric key that no installed package registers."""


class UnknownOptionError(SettingsError, TypeError):
    """A keyword argument that a function does not accept."""

    def __init__(self, function: str, unknown: Iterable[str], known: Iterable[str], cure: str = "") -> None:
        names, choices = sorted(unknown), sorted(known)
        close = get_close_matches(names[0], choices, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(choices)}"
        if "task" in names:
            cure = "the task follows from what is passed, for example uq.evaluate(labels, probs=probs)"
        super().__init__(f"{function} has no option {', '.join(names)}; {cure or hint}")


class IncompatibleStatisticsError(UQTrackingError, ValueError):
    """Statistics built with different settings, which cannot be merged."""


class RecalibrationError(UQTrackingError, ValueError):
    """A recalibration that cannot be fitted to, or applied to, this input."""


class MissingPackageError(UQTrackingError, ImportError):
    """An optional package that the task needs but is not installed."""


class FileFormatError(UQTrackingError, ValueError):
    """A report, statistics or predictions file that is damaged, foreign or too new."""


class BackendError(UQTrackingError):
    """A tracker that is missing, unusable, or asked for something it does not have."""


class UnknownBackendError(BackendError, LookupError):
    """A URI scheme or name that no installed backend handles."""


class RunNotFoundError(BackendError, LookupError):
    """A run or experiment that the tracker does not have."""


class RunFinishedError(BackendError):
    """A run that takes nothing until it is reopened by its address, ``uri``."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"{uri} is finished; log before run.finish(), or pass run={uri!r} to reopen it")
        self.uri = uri


class NoRunHereError(BackendError):
    """A logger that keeps its run in another process, rank zero; other ranks leave logging to that process."""


class TrackerUnreachableError(BackendError, ConnectionError):
    """A tracker that does not answer; the call sends nothing more to it."""


class PermissionDeniedError(BackendError):
    """A run or an experiment that the tracker lets others write to, but not this user."""


class PluginError(UQTrackingError):
    """A plugin that cannot be loaded, or two plugins that claim the same name."""


class TrackingWarning(UserWarning):
    """Something could not be logged; training continues."""


def warn(message: str) -> None:
    """Issue a `TrackingWarning` at the user's line, the first outside this package, its plugins and their callers."""
    here = found = sys._getframe(1)
    while _is_passed(found) and found.f_back is not None:
        found = found.f_back
    if _is_passed(found):  # a thread of ours
        found = here
    about = found.f_globals
    registry = about.setdefault("__warningregistry__", {})
    where = (found.f_code.co_filename, found.f_lineno, about.get("__name__"), registry)
    warnings.warn_explicit(message, TrackingWarning, *where)


@lru_cache(maxsize=128)
def log_once(level: int, message: str, *names: str) -> None:
    """Log something once per process: a log line is visible and, unlike a warning, can never stop the job."""
    logging.getLogger("uq_tracking").log(level, message, *names)


def _is_passed(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package.startswith("uq_tracking") or package in CALLERS or package in sys.stdlib_module_names


def closest(name: object, known: Iterable[str]) -> str:
    """What follows an unknown name in an error message: the known one probably meant, or nothing.

    >>> closest("spaerman", ["nll", "spearman"]), closest("x", ["nll", "spearman"])
    (" (did you mean 'spearman'?)", '')
    """
    found = get_close_matches(str(name), [str(one) for one in known], n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


_USERINFO = re.compile(r"(?<=://)(?:[^/\s'\"@]*:[^\s'\"]*|[^/\s'\"]+)@")
"""Up to the last ``@``, because unquoted passwords may contain ``/`` and ``@``."""
_SECRETS = re.compile(
    r"(?i)\b([\w.-]*(?:password|passwd|pwd|token|secret|api[_-]?key|access[_-]?key(?:[_-]?id)?|account[_-]?key"
    r"|signature|credential|sig|auth))(=|%3D)[^&\s'\";,)]+"
)
_HEADER = re.compile(
    r"(?i)\b(authorization|bearer|basic)(:?\s+)(?:(?:bearer|basic)\s+)?[A-Za-z0-9._~+/=-]{8,}"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def redact(text: str) -> str:
    """Hide credentials in addresses, such as those in error messages and tracking URIs.

    >>> redact("https://me:p@ss/word@host/api?token=abc failed")
    'https://***@host/api?token=*** failed'
    >>> redact("wasbs://box?sv=1&sig=abc%3D&access_key=x")
    'wasbs://box?sv=1&sig=***&access_key=***'
    """
    text = _SECRETS.sub(r"\1\2***", _USERINFO.sub("***@", text))
    return _HEADER.sub(r"\1\2***", text)


def printable(text: str) -> str:
    r"""Replace control characters, which a terminal or a browser acts on, and lone surrogates, which UTF-8 rejects.

    >>> printable("red\x1b[31m and \ud800")
    'red\\x1b[31m and \\ud800'
    """
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
