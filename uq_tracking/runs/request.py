"""Request of a rescore, the same for every run, and the digest that shows whether a run has already met it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from uq_tracking import plugins
from uq_tracking._version import __version__
from uq_tracking.checks import check_choice, check_flag, whole_number
from uq_tracking.errors import SettingsError
from uq_tracking.inputs.forms.mean_std import check_floor
from uq_tracking.metrics.registry import every_metric, find
from uq_tracking.recalibration import Recalibration, read_recalibrations
from uq_tracking.recalibration.fitting import find_recalibrator
from uq_tracking.report import SCHEMA, Report
from uq_tracking.settings import Settings
from uq_tracking.tracking.content import SCORES, Scores
from uq_tracking.tracking.names import RESCORED_TAG, SCORES_TAG, tag_name


def checked_changes(**settings: Any) -> dict[str, Any]:
    """Return the settings that are given; SettingsError if one is wrong."""
    changes = {name: value for name, value in settings.items() if value is not None}
    Settings.from_dict(changes)
    return changes


@dataclass(frozen=True)
class RescoreOptions:
    """Options of `rescore` that are rarely needed: what is written, and how the work is done.

    Parameters
    ----------
    scores : "headline" or "all"
        Which scores the tracker shows: the headline, those named in ``metrics`` and those the run already shows; or
        all.
    figures : "auto" or bool
        "auto" draws the figures that a run has and whose numbers changed; True draws all; False none.
    force : bool
        Also rescore runs already rescored as requested, and rewrite everything.
    workers : int
        Number of runs to process in parallel.

    Raises
    ------
    SettingsError
        An option has the wrong type or is out of range.
    """

    scores: Scores = "headline"
    figures: Literal["auto"] | bool = "auto"
    force: bool = False
    workers: int = 1

    def __post_init__(self) -> None:
        check_choice("scores", self.scores, SCORES)
        check_flag("force", self.force)
        if whole_number("workers", self.workers) < 1:
            raise SettingsError(f"workers is {self.workers}; pass at least 1")


@dataclass(frozen=True)
class Request:
    """Work to do with each run; attributes as the options of `rescore`.

    ``changes`` holds the settings that replace those of the run's report, and ``std_floor``: smaller standard
    deviations are raised to it, 0 removes a floor.

    Raises
    ------
    SettingsError
        An option is out of range or contradicts another, or a metric is not installed.
    """

    split: str | None
    metrics: tuple[str, ...]
    changes: Mapping[str, Any]
    calibration: Any
    recalibration: tuple[str, ...]
    calibration_split: str | None
    options: RescoreOptions

    def __post_init__(self) -> None:
        check_floor(self.changes.get("std_floor") or None)  # 0 removes a floor
        if self.calibration is not None and self.calibration_split is not None:
            raise SettingsError("calibration= and calibration_split= both say what to fit on; pass only one")
        if self.recalibration and self.calibration is None and self.calibration_split is None:
            raise SettingsError(
                "recalibration= names methods, but not what to fit them to; pass calibration_split= or "
                "calibration=True"
            )
        known = {metric.key for metric in every_metric()}
        find([key for key in self.metrics if key not in known])
        fitted = self.calibration if isinstance(self.calibration, list) else ()
        for name in (*self.recalibration, *fitted):
            if isinstance(name, str):
                find_recalibrator(name)

    @property
    def recalibrates(self) -> bool:
        """True if scores after a recalibration are requested."""
        return self.calibration is not None or self.calibration_split is not None

    def settings(self, report: Report) -> Settings:
        """Return the settings to score with: those given, else the report's, else the defaults."""
        return Settings.from_dict({**report.settings, **self.changes})

    def alters(self, report: Report) -> bool:
        """True if the settings differ from the report's."""
        return self.alters_floor(report) or self.settings(report) != Settings.from_dict(report.settings)

    def alters_floor(self, report: Report) -> bool:
        """True if the std floor differs from the report's; 0 means none."""
        known = report.settings.get("std_floor")
        return "std_floor" in self.changes and (self.changes["std_floor"] or None) != known

    def digest(self) -> str:
        """Return twelve hexadecimal digits of everything that affects the numbers, also the installed metrics."""
        suites = [
            sorted(key for key, metric in plugins.metrics(task).items() if metric.default)
            for task in plugins.tasks()
        ]
        asked = (self.metrics, self.changes, self.calibration, self.recalibration, self.calibration_split)
        values = (__version__, SCHEMA, suites, *asked, self.options.figures is True, self.options.scores)

        def plain(value: object) -> str:
            return value.to_json() if isinstance(value, Recalibration) else str(value)

        return hashlib.sha256(json.dumps(values, sort_keys=True, default=plain).encode()).hexdigest()[:12]

    def seal(self, scores: str) -> dict[str, str]:
        """Return the tag of a run that was rescored as requested and shows the scores with this digest."""
        return {tag_name(RESCORED_TAG, self.split): f"{SCHEMA}-{self.digest()}-{scores}"}

    def is_done(self, tags: Mapping[str, str]) -> bool:
        """True if a run with these tags was rescored as requested, and not logged again since."""
        scores = tags.get(tag_name(SCORES_TAG, self.split))
        return scores is not None and self.seal(scores).items() <= tags.items()


def loaded(calibration: Any) -> Any:
    """Return None, True, or a list of methods' names and fitted parameters, read from files where named."""
    if calibration is None or calibration is True:
        return calibration
    found: list[Any] = []
    for item in calibration if isinstance(calibration, list | tuple) else [calibration]:
        if isinstance(item, Path) or (isinstance(item, str) and item.endswith(".json")):
            if not Path(item).is_file():
                raise SettingsError(
                    f"calibration={str(item)!r}: there is no such file; pass the file of a fitted recalibration"
                )
            found += read_recalibrations(item).values()
        elif isinstance(item, str | Recalibration):
            found.append(item)
        else:
            raise SettingsError(
                f"calibration is a {type(calibration).__name__}; a run keeps its recalibrations; to add one, pass "
                "True, names of methods, a fitted one or its file, or calibration_split= to fit on another split"
            )
    return found
