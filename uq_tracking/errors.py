"""One class per mistake a user can make; every message says what, where and the cure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


class UQTrackingError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(UQTrackingError, ValueError):
    """Arrays that cannot be scored."""


class ShapeError(InputError):
    """Arrays whose shapes differ; nothing is broadcast."""


class AlignmentError(InputError):
    """Arrays whose named axes or labels differ (xarray, pandas); nothing is aligned unasked."""


class EmptyInputError(InputError):
    """No sample is left to score; ``counts`` says what was left out, as in a report."""

    def __init__(self, message: str, counts: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.counts = dict(counts or {})


class InvalidValueError(InputError):
    """A non-finite prediction, or a non-finite or negative standard deviation, at a place that counts."""


class InputTypeError(InputError, TypeError):
    """A value that is not an array of real numbers."""


class SettingsError(UQTrackingError, ValueError):
    """An option outside its range, or options that exclude each other."""


class UnknownMetricError(SettingsError):
    """A metric key that no installed distribution registers."""


class UnknownOptionError(SettingsError, TypeError):
    """A keyword that a function does not take."""

    def __init__(self, function: str, unknown: Iterable[str], known: Iterable[str], cure: str = "") -> None:
        names, choices = sorted(unknown), sorted(known)
        close = get_close_matches(names[0], choices, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(choices)}"
        super().__init__(f"{function} has no option {', '.join(names)}; {cure or hint}")


class IncompatibleStatisticsError(UQTrackingError, ValueError):
    """Statistics built with differing settings cannot be merged."""


class RecalibrationError(UQTrackingError, ValueError):
    """A recalibration that cannot be fitted to, or applied to, this input."""


class MissingPackageError(UQTrackingError, ImportError):
    """An optional package that the task needs is not installed."""


class FileFormatError(UQTrackingError, ValueError):
    """A report, statistics or predictions file that is damaged, foreign or too new."""


class BackendError(UQTrackingError):
    """A tracker that is missing, unusable, or asked for something it does not have."""


class UnknownBackendError(BackendError, LookupError):
    """A URI scheme or name that no installed backend claims."""


class RunNotFoundError(BackendError, LookupError):
    """A run or experiment that the tracker does not hold."""


class NoRunHereError(BackendError):
    """A logger that keeps its run in another process, rank zero; other ranks leave the logging to that one."""


class TrackerUnreachableError(BackendError, ConnectionError):
    """A tracker that does not answer; nothing else is sent to it in this call."""


class PluginError(UQTrackingError):
    """A plugin that cannot be loaded, or two plugins that claim one name."""


class TrackingWarning(UserWarning):
    """Something could not be logged; training goes on."""


def closest(name: object, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the known one that was probably meant, or nothing.

    >>> closest("spaerman", ["nll", "spearman"]), closest("x", ["nll", "spearman"])
    ("; did you mean 'spearman'?", '')
    """
    found = get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
