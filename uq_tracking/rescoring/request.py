"""What a rescoring requests, the same for every run, and the digest that shows whether a run already has it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from uq_tracking import plugins
from uq_tracking._version import __version__
from uq_tracking.checks import as_names
from uq_tracking.errors import SettingsError
from uq_tracking.metrics.registry import TaskName, find
from uq_tracking.npz import LIMIT
from uq_tracking.recalibration import Recalibration, read_recalibrations
from uq_tracking.recalibration.fitting import find_recalibrator
from uq_tracking.report import SCHEMA, Report
from uq_tracking.settings import Settings, require_number
from uq_tracking.tracking.arguments import check_scores
from uq_tracking.tracking.content import Scores
from uq_tracking.tracking.names import RESCORED_TAG, SCORES_TAG, check_split, tag_name

Figures = Literal["auto"] | bool


@dataclass(frozen=True)
class Request:
    """What to do with each run.

    Attributes
    ----------
    split
        The split to read.
    metrics
        Keys to compute besides the default suite and those in the run's report.
    given
        Settings that replace those of the run's report.
    std_floor
        Smaller standard deviations are raised to it; 0 removes a floor, None keeps the report's.
    calibration, recalibration, calibration_split
        As for ``rescore``.
    predictions, columns
        Stored files of runs not logged by this package, and the column names in them.
    figures
        ``"auto"``: those the run holds whose numbers changed.
    scores
        ``"headline"``: the headline, requested scores, and those the run already shows; or ``"all"``.
    prefix
        Name to use for the scores instead of the split's.
    source_digest
        Digest of further input, such as a common predictor.
    limit
        Stored files larger than this, in bytes, are not read.
    """

    split: str | None = None
    metrics: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    std_floor: float | None = None
    calibration: Any = None
    recalibration: tuple[str, ...] = ()
    calibration_split: str | None = None
    predictions: str | None = None
    columns: Mapping[str, str] | None = None
    figures: Figures = "auto"
    scores: Scores = "headline"
    prefix: str | None = None
    source_digest: str | None = None
    limit: int = LIMIT

    @property
    def written_split(self) -> str | None:
        """The split under which the scores are written."""
        return self.split if self.prefix is None else self.prefix

    @property
    def recalibrates(self) -> bool:
        """Whether scores after a recalibration are requested."""
        return self.calibration not in (None, False) or self.calibration_split is not None

    def settings(self, report: Report | None) -> Settings:
        """Settings to score with: those given, else the report's, else the defaults."""
        kept = {} if report is None else report.settings
        return Settings.from_dict({**kept, **self.given})

    def changes(self, report: Report) -> bool:
        """Whether the settings differ from the report's."""
        return self.changes_floor(report) or self.settings(report) != Settings.from_dict(report.settings)

    def changes_floor(self, report: Report | None) -> bool:
        """Whether the std floor differs from the report's; 0 means none."""
        known = None if report is None else report.settings.get("std_floor")
        return self.std_floor is not None and (self.std_floor or None) != known

    def digest(self) -> str:
        """Twelve hexadecimal digits of everything that affects the numbers, including the installed metrics."""
        skipped = ("calibration", "limit", "figures", "split")
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in skipped}
        values["calibration"] = _described(self.calibration)
        values["figures"] = self.figures is True
        values["scores"] = self.scores == "all"
        values["suite"] = [
            __version__,
            SCHEMA,
            *sorted(_suite("regression")),
            *sorted(_suite("classification")),
        ]
        text = json.dumps(values, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def seal(self, scores: str) -> dict[str, str]:
        """The tag of a run that has been rescored as requested and shows the scores with this digest."""
        return {tag_name(RESCORED_TAG, self.written_split): f"{SCHEMA}-{self.digest()}-{scores}"}

    def is_done(self, tags: Mapping[str, str]) -> bool:
        """Whether a run with these tags has been rescored as requested, and not logged again since."""
        scores = tags.get(tag_name(SCORES_TAG, self.written_split))
        sealed = {} if scores is None else self.seal(scores)
        return bool(sealed) and all(tags.get(name) == value for name, value in sealed.items())


def make_request(
    split: str | None = None,
    metrics: str | Iterable[str] | None = None,
    std_floor: float | None = None,
    calibration: Any = None,
    recalibration: str | Iterable[str] | None = None,
    calibration_split: str | None = None,
    settings: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Request:
    """Check a user's request.

    Raises
    ------
    SettingsError
        An option is out of range, options are mutually exclusive, or a metric is not installed (UnknownMetricError).
    """
    given = {name: value for name, value in (settings or {}).items() if value is not None}
    Settings.from_dict(given)
    if std_floor is not None:
        require_number("std_floor", std_floor)
    if std_floor is not None and not 0 <= std_floor < float("inf"):
        raise SettingsError(f"std_floor is {std_floor}; pass a standard deviation, at least 0")
    if calibration is not None and calibration_split is not None:
        raise SettingsError("calibration= and calibration_split= both say what to fit on; pass only one")
    names = () if recalibration is None else as_names("recalibration", recalibration)
    if names and calibration is None and calibration_split is None:
        raise SettingsError(
            "recalibration= names methods, but not what to fit them to; pass calibration_split= or calibration=True"
        )
    crossed = (calibration,) if isinstance(calibration, str) else calibration
    for name in (*names, *(crossed if isinstance(crossed, list | tuple) else ())):
        if isinstance(name, str) and not name.endswith(".json"):
            find_recalibrator(name)
    check_scores(rest.get("scores", "headline"))
    return Request(
        split=check_split(split),
        metrics=_known(metrics),
        given=given,
        std_floor=std_floor,
        calibration=_loaded(calibration),
        recalibration=names,
        calibration_split=check_split(calibration_split, "calibration_split"),
        **rest,
    )


def _known(metrics: str | Iterable[str] | None) -> tuple[str, ...]:
    """The keys, each of which must be a metric of some task."""
    keys = () if metrics is None else as_names("metrics", metrics)
    strange = [key for key in keys if key not in plugins.metrics("classification")]
    find(strange)
    return keys


def _loaded(calibration: Any) -> Any:
    """Fitted parameters from their file; anything else unchanged."""
    if isinstance(calibration, Path) or (isinstance(calibration, str) and calibration.endswith(".json")):
        if not Path(calibration).is_file():
            raise SettingsError(
                f"calibration={str(calibration)!r}: there is no such file; pass the file of a fitted recalibration"
            )
        found = list(read_recalibrations(calibration).values())
        return found[0] if len(found) == 1 else found
    return calibration


def _described(calibration: Any) -> Any:
    if isinstance(calibration, Recalibration):
        return hashlib.sha256(calibration.to_json().encode()).hexdigest()
    if isinstance(calibration, list | tuple):
        return [_described(item) for item in calibration]
    if calibration is None or isinstance(calibration, bool | str):
        return calibration
    raise SettingsError(
        f"calibration is a {type(calibration).__name__}; for logged runs pass True, names of methods, a fitted "
        "recalibration or its file, or calibration_split= to fit on another split of each run"
    )


def _suite(task: TaskName) -> list[str]:
    return [key for key, metric in plugins.metrics(task).items() if metric.default]
