"""What a run's scores are computed from: its statistics if they suffice, else its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from uq_tracking import plugins
from uq_tracking.errors import BackendError, FileFormatError, SettingsError
from uq_tracking.evaluation.recalibrated import AT_RANDOM, BY_GROUPS
from uq_tracking.inputs import Predictions
from uq_tracking.logged_run import LoggedRun
from uq_tracking.metrics.registry import Metric
from uq_tracking.report import Report
from uq_tracking.rescoring.request import Request
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.tracking.names import PREDICTIONS_FILE, REPORT_FILE, STATISTICS_FILE

PREDICTIONS = "predictions"


class NothingStoredError(BackendError):
    """A run holds nothing to score."""


@dataclass(frozen=True)
class Source:
    """Statistics or predictions; ``name`` says which, and of what kind."""

    name: str
    statistics: Statistics | None = None
    predictions: Any = None
    """``Predictions`` or ``ClassPredictions``."""
    stored_digest: str | None = None
    """Digest of the stored predictions, which a rescoring's std floor does not change."""


def stored_report(run: LoggedRun) -> Report | None:
    """The run's stored report, or None; FileFormatError if it is damaged."""
    try:
        return run.report()
    except FileNotFoundError:
        return None


def read_source(run: LoggedRun, request: Request, old: Report | None) -> Source:
    """Read what to score the run from.

    Statistics come first, unless the predictions would give more; if one is missing or damaged, the other is used if
    it suffices.

    Raises
    ------
    NothingStoredError
        The run holds neither.
    FileFormatError
        What it holds is damaged, foreign, too large, or does not belong to its report.
    SettingsError
        The request needs predictions that the run does not hold.
    """
    reason, is_needed = needs_predictions(request, old)
    order: list[Callable[[LoggedRun, Request, Report | None], Source]]
    order = [_from_predictions] if is_needed else [_from_statistics, _from_predictions]
    problems: list[str] = []
    for read in order if is_needed or not reason else order[::-1]:
        try:
            return read(run, request, old)
        except FileNotFoundError:
            continue
        except FileFormatError as error:
            problems.append(str(error))
    if problems:
        raise FileFormatError("; ".join(problems))
    if is_needed and run.has(STATISTICS_FILE):
        raise SettingsError(f"{reason}, and the run stores none")
    raise NothingStoredError(_nothing(run))


def needs_predictions(request: Request, old: Report | None) -> tuple[str, bool]:
    """Why predictions are better than statistics, "" if they are not, and whether they are indispensable."""
    if request.changes_floor(old):
        return "a std floor can only be applied to predictions", True
    wanting = [key for key in request.metrics if _needs(key, old)]
    if wanting:
        return f"{', '.join(wanting)} cannot be computed from statistics, only from predictions", True
    if request.calibration is True or isinstance(request.calibration, str):
        return "the halves of a cross-fit need predictions", False
    if old is None:
        return "", False
    changes = request.changes(old)
    if old.task == "classification" and (request.recalibrates or (changes and old.recalibrations)):
        return "a temperature changes probabilities, which statistics do not hold", False
    if changes and any(_needs(key, old) for key in old.scores):
        return "some of the run's scores cannot be computed from statistics", False
    crossed = [entry for entry in old.recalibrations.values() if entry.get("how") in (AT_RANDOM, BY_GROUPS)]
    return ("the halves of a cross-fit need predictions" if crossed and changes else ""), False


def _needs(key: str, old: Report | None) -> bool:
    metric: Metric | None = plugins.metrics("regression" if old is None else old.task).get(key)
    return metric is not None and bool(metric.needs)


def _from_statistics(run: LoggedRun, request: Request, old: Report | None) -> Source:
    statistics = run.statistics(old)
    if old is not None and dict(statistics.counts) != dict(old.counts):
        raise FileFormatError(
            f"{STATISTICS_FILE} counts {statistics.counts['n']} samples but {REPORT_FILE} {old.counts.get('n')}: "
            "they come from different predictions; log the run again"
        )
    return Source("exact statistics" if statistics.kind == "exact" else "sketch", statistics)


def _from_predictions(run: LoggedRun, request: Request, old: Report | None) -> Source:
    predictions = run.predictions("regression" if old is None else old.task)
    digest = predictions.digest()
    known = None if old is None else stored_predictions_digest(old)
    if known is not None and digest != known:
        raise FileFormatError(
            f"{PREDICTIONS_FILE} is not what {REPORT_FILE} was made from (digests {digest} and {known}); log the run "
            "again with predictions=True"
        )
    return Source(PREDICTIONS, predictions=floored(predictions, request, old), stored_digest=digest)


def stored_predictions_digest(report: Report) -> str | None:
    """Digest of the predictions behind a report, as stored, if the report knows it."""
    rescored = report.provenance.get("rescored") or {}
    digest = rescored.get("predictions") or report.provenance.get("digest")
    return digest if isinstance(digest, str) and len(digest) == len("0123456789abcdef") else None


def floored(predictions: Any, request: Request, old: Report | None) -> Any:
    """The predictions with the requested std floor, else the report's."""
    floor = request.std_floor
    if floor is None and old is not None:
        floor = old.settings.get("std_floor")
    if floor is None or not isinstance(predictions, Predictions) or (floor or None) == predictions.std_floor:
        return predictions
    if predictions.std_floor is not None and floor < predictions.std_floor:
        raise SettingsError(
            f"std was raised to {predictions.std_floor:g} before it was stored; a floor of {floor:g} needs the "
            "model's original predictions"
        )
    return predictions.replace(std_floor=floor)


def _nothing(run: LoggedRun) -> str:
    whole = replace(run, split=None)
    splits = whole.splits()
    if (splits and run.split not in splits) or (run.split is not None and whole.has(REPORT_FILE)):
        return f"it has {run.lacking()}"
    return (
        "it holds neither statistics nor predictions from uq_tracking; name its own files with predictions="
    )
