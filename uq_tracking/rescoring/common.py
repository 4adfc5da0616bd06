"""A common predictor: every run's standard deviations judged against one run's means (MeRCI, 2018, table 3).

Runs with different means cannot be compared by their uncertainty alone. Scored against the errors of the same
predictor, they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uq_tracking.errors import FileFormatError, ShapeError
from uq_tracking.inputs import Predictions
from uq_tracking.logged_run import LoggedRun, logged_run
from uq_tracking.report import Report
from uq_tracking.rescoring.request import Request
from uq_tracking.rescoring.source import NothingStoredError, Source, floored, stored_report

PREFIX = "common"


def prefix_of(split: str | None) -> str:
    """The name for scores against a common predictor, used as if it were a split.

    >>> prefix_of(None), prefix_of("test")
    ('common', 'test-common')
    """
    return PREFIX if split is None else f"{split}-{PREFIX}"


@dataclass(frozen=True)
class CommonPredictor:
    """The run whose means are used."""

    uri: str
    name: str
    predictions: Predictions

    def source(self, run: LoggedRun, request: Request, logged: Report | None) -> Source:
        """The run's standard deviations, combined with the common means.

        Raises
        ------
        NothingStoredError
            The run stores no predictions.
        ShapeError
            The targets differ in value, order or selection.
        """
        own = floored(_predictions(run, logged), request, logged)
        if own.target_digest() != self.predictions.target_digest():
            raise ShapeError(
                f"its targets differ from those of {self.name} (digests {own.target_digest()} and "
                f"{self.predictions.target_digest()}): other data, another order, or different samples left out"
            )
        if own.shape == self.predictions.shape:
            return Source("predictions", predictions=own.replace(mean=self.predictions.mean))
        target, _, std = own.flat()
        mean = self.predictions.flat()[1]
        made = Predictions(target, mean, std, std_floor=own.std_floor, unit=own.unit)
        return Source("predictions", predictions=made)


def common_predictor(uri: str, split: str | None, limit: int) -> CommonPredictor:
    """Read the run whose means are used.

    Raises
    ------
    NothingStoredError
        It stores no predictions.
    FileFormatError
        They are damaged.
    """
    run = logged_run(uri, split=split)
    run = LoggedRun(run.store, run.stored, split, limit)
    return CommonPredictor(run.stored.uri, run.name, _predictions(run, stored_report(run)))


def _predictions(run: LoggedRun, logged: Report | None) -> Any:
    if logged is not None and logged.task != "regression":
        raise FileFormatError(
            f"{run.name} is a {logged.task}; a common predictor needs means and standard deviations"
        )
    try:
        return run.predictions()
    except FileNotFoundError:
        raise NothingStoredError("it stores no predictions; log with predictions=True") from None
