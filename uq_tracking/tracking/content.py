"""What one call may log, under which options, and which of its numbers a tracker shows."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from uq_tracking import plugins
from uq_tracking.checks import check_choice, check_flag, check_text, value_text, whole_number
from uq_tracking.drawings import LARGEST_PICTURE
from uq_tracking.errors import SettingsError, printable
from uq_tracking.inputs.predictions import Predictions
from uq_tracking.metrics.registry import MetricInputs, headline
from uq_tracking.report import Report
from uq_tracking.streams.map_samples import checked_maps
from uq_tracking.tasks import task_of
from uq_tracking.tracking.cases import LARGEST, DrawnCases, Maps
from uq_tracking.tracking.deadline import checked_deadline
from uq_tracking.tracking.names import check_split, parameter_name, recalibrated_name, scalar_name
from uq_tracking.typed import plain

Scores = Literal["headline", "all"]
SCORES: tuple[Scores, ...] = get_args(Scores)
PREDICTIONS_LIMIT = 16 * 10**6
"""Most bytes of predictions that ``predictions="auto"`` stores, and of the pictures of their maps."""
LONGEST_METHOD = 250
"""Characters that every tracker accepts in a name."""
LARGEST_STEP = 2**62
"""Trackers store steps in 64 bits, and some add to them."""


class RunOptions(TypedDict, total=False):
    """Options of `log` that are also those of callbacks, for type checkers."""

    scores: Scores
    run: Any
    method: str | None
    figures: bool
    tags: Mapping[str, str] | None
    strict: bool


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Choose what to log, under which names, where, and what to do if a tracker fails or is slow.

    Text is kept in the form that trackers accept, without control characters or lone surrogates. Images and maps are
    checked later, against the shape of the predictions.

    Parameters
    ----------
    scores : "headline" or "all"
        Which scores the tracker shows. "headline": the few that answer whether the model is accurate, honest and
        knows where it errs (``uq/<key>``), plus those requested with ``metrics=``; "all": all others too, by what
        they judge (``uq_accuracy/<key>``, ``uq_scoring/``, ``uq_calibration/``, ``uq_ranking/``, ``uq_spread/``).
        Either way all are in the report stored with the run, where `compare` and `rescore` find them.
    run : optional
        A tracker's run object or run id, a Lightning logger, a `Run`, an address (``mlflow:EXPERIMENT``, which
        creates a run there, ``mlflow:EXPERIMENT/RUN_ID``, ``dir:PATH``), or a list of these. Active runs belong to a
        thread: pass the run when calling from another one.
    to : str or list of str, optional
        Names of the trackers to log to, when several have an active run.
    method : str, optional
        Name of the uncertainty method, stored in the tag ``uq.method`` by which runs are compared.
    split : str, optional
        Name of the split, made part of every logged name, e.g. ``uq/test/nll``.
    step : int, optional
        Log only the scores, as one point of a series, e.g. per epoch; make the final call without a step. The
        report's other scores are computed when first accessed.
    images : array, shape (cases, h, w), (cases, h, w, channels) or (cases, channels, h, w), optional
        Input images with 1, 3 or 4 channels, shown beside the maps.
    figures : bool
        Whether to draw figures.
    maps : "auto", bool, int, list of int, "extremes" or an address
        Which cases of spatial predictions, shape (..., height, width), to draw: up to four, evenly spaced ("auto",
        True); this many (int); these (list); the worst, median and best by RMSE, or by the share of wrong labels
        ("extremes"); or the cases that another run drew, with its colors (``mlflow:EXPERIMENT/RUN_ID``,
        ``dir:PATH``).
    predictions : "auto" or bool
        Whether to store the predictions; "auto" stores them if the call then leaves at most 20 MB in the run:
        up to 16 MB, less 0.75 MB for each drawn case.
    tags : mapping, optional
        Further tags.
    model_id : str, optional
        The logged model that the scores belong to, on whose page MLflow lists them; by default the active model.
    dataset : optional
        The data set that was scored, such as ``mlflow.data.from_pandas(frame)``; MLflow shows it with the scores.
    strict : bool
        Raise instead of warning if a tracker fails, after trying everything; what it refuses is not sent later.
    every_rank : bool
        Log from every process of a distributed job as if it were rank zero, each on its own.
    deadline : float, optional
        Seconds the call may wait for all its trackers together; by default ``UQ_TRACKING_DEADLINE``, else 10.

    Raises
    ------
    SettingsError
        An option has the wrong type or is out of range.
    """

    scores: Scores = "headline"
    run: Any = None
    to: str | Sequence[str] | None = None
    method: str | None = None
    split: str | None = None
    step: int | None = None
    images: Any = None
    figures: bool = True
    maps: Maps = "auto"
    predictions: Literal["auto"] | bool = "auto"
    tags: Mapping[str, str] | None = None
    model_id: str | None = None
    dataset: Any = None
    strict: bool = False
    every_rank: bool = False
    deadline: float | None = None

    def __post_init__(self) -> None:
        check_choice("scores", self.scores, SCORES)
        check_text("method", self.method, "'deep ensemble'")
        check_text("model_id", self.model_id, "'m-4f1a'")
        if self.method is not None and len(self.method) > LONGEST_METHOD:
            raise SettingsError(
                f"method has {len(self.method)} characters; a name has at most {LONGEST_METHOD}"
            )
        if self.tags is not None and not isinstance(self.tags, Mapping):
            raise SettingsError(f"tags is a {type(self.tags).__name__}; pass a mapping of names to text")
        for name in ("figures", "strict", "every_rank"):
            check_flag(name, getattr(self, name))
        is_auto = isinstance(self.predictions, str) and self.predictions == "auto"
        if not (is_auto or isinstance(self.predictions, bool | np.bool_)):
            raise SettingsError(f"predictions is {value_text(self.predictions)}; pass 'auto', True or False")
        check_split(self.split)
        checked_deadline(self.deadline)
        plain = {
            "method": None if self.method is None else printable(self.method),
            "tags": {printable(str(tag)): printable(str(text)) for tag, text in (self.tags or {}).items()},
            "step": None if self.step is None else whole_number("step", self.step),
            "figures": bool(self.figures),
            "maps": checked_maps(self.maps, addresses=True),
            "dataset": None if self.dataset is None else _checked_dataset(self.dataset),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if self.step is not None and abs(self.step) > LARGEST_STEP:
            raise SettingsError(f"step is {self.step}; trackers store steps in 64 bits, up to {LARGEST_STEP}")


_log = logging.getLogger("uq_tracking")


def _checked_dataset(dataset: Any) -> dict[str, str]:
    """Return what a tracker says of its data set, as text."""
    about = dataset if isinstance(dataset, Mapping) else getattr(dataset, "to_dict", dict)()
    if not {"name", "digest"} <= about.keys():
        raise SettingsError(
            f"dataset is {value_text(dataset)}; pass a tracker's data set, such as mlflow.data.from_pandas(frame)"
        )
    return {str(name): str(value) for name, value in about.items() if value is not None}


@dataclass(frozen=True)
class Content:
    """Everything one call may log.

    ``shown`` names the scores that the run already shows. ``figures``, ``curves`` and ``files`` may name those to
    write, if the run already holds the others; ``seal`` holds tags that are set last, along with the scores' tag,
    once everything else has arrived.
    """

    report: Report
    options: LogOptions = field(default_factory=LogOptions)
    split: str | None = None
    """The split of the options, or that of one output below it."""
    predictions: Predictions | None = None
    """What is stored, after `weighed`."""
    drawn: DrawnCases = field(default_factory=DrawnCases)
    room: int = LARGEST
    """Bytes for the arrays and images of the drawn cases."""
    shown: Collection[str] = ()
    figures: bool | Collection[str] = True
    curves: Collection[str] | None = None
    files: Collection[str] | None = None
    seal: Mapping[str, str] = field(default_factory=dict)


def weighed(contents: Sequence[Content]) -> list[Content]:
    """Return the content of a call as it is stored, by default in at most 20 MB; its reports say what is not.

    So does a log line: a warning if predictions are left out that nobody asked to leave out.
    """
    choice = contents[0].options.predictions
    total = sum(each.predictions.nbytes for each in contents if each.predictions is not None)
    if not total or contents[0].options.step is not None:
        return list(contents)
    left = PREDICTIONS_LIMIT - total - LARGEST_PICTURE * sum(len(each.drawn.cases) for each in contents)
    keeps = left >= 0 if choice == "auto" else bool(choice)
    room = (min(max(left, LARGEST // 8), LARGEST) if keeps else LARGEST) // len(contents)
    lost = "" if keeps else f"Predictions are not stored: {_unanswered(contents[0], room)}."
    if lost and choice == "auto":
        _log.warning("%s They have %.1f MB; predictions=True stores them", lost, total / 1e6)
    elif lost:
        _log.info("%s", lost)
    return [
        replace(
            each,
            report=each.report.labelled(not_stored=lost or None),
            predictions=each.predictions if keeps else None,
            room=room,
        )
        for each in contents
    ]


def _unanswered(content: Content, room: int) -> str:
    """Say what rescore and compare cannot answer about a run that stores no predictions."""
    report, task = content.report, task_of(content.report)
    data, cases = content.predictions, content.drawn.cases
    known, needs = {*report.scores, *report.undefined}, frozenset[str]()
    if data is not None:
        needs = MetricInputs(None, data).given
    keys = [
        key
        for key, metric in plugins.metrics(report.task).items()
        if metric.needs and needs.issuperset(metric.needs) and key not in known
    ]
    lost = ["apply std_floor="] if "std_floor" in task.options else []
    if task.needs_predictions:
        lost.append("recalibrate")
    elif report.provenance.get("statistics") == "sketch":
        lost.append("cross-fit (calibration=True)")
    if keys:
        lost.append(f"compute {', '.join(keys)}")
    found = [f"rescore cannot {' or '.join(lost)}"] if lost else []
    if cases:
        drawn = ", ".join(map(str, cases))
        thinned = "" if content.drawn.within(room) is content.drawn else ", thinned to what a screen shows"
        found.append(f"compare shows maps of case{'s' if len(cases) > 1 else ''} {drawn} only{thinned}")
    return "; ".join(found) or "rescore and compare have all they need"


def _shown(report: Report, shown: Collection[str]) -> set[str]:
    """Keys of the headline, of scores requested by name, and of those the run already shows."""
    known = plugins.metrics(report.task)
    keys = {key for key, metric in known.items() if metric.headline}
    lacking = keys - report.scores_of(keys).keys()
    scored = report.scores_of(keys | {key for key, metric in known.items() if metric.instead_of in lacking})
    first = (metric.key for metric in headline(known.values(), scored))
    asked = (key for key, metric in known.items() if metric.needs or not metric.default)
    return {*first, *asked, *report.provenance.get("asked", ()), *shown}


def logged_scores(
    report: Report, split: str | None = None, choice: Scores = "headline", shown: Collection[str] = ()
) -> dict[str, float]:
    """The scores that a tracker shows, by their names in a run: the headline and those requested by name, or all.

    Also all when the headline is empty, as for a plugin's task that declares none.
    """
    chosen = (choice != "all" and report.scores_of(_shown(report, shown))) or report.scores
    return {scalar_name(key, split, report.task): value for key, value in chosen.items()}


def recalibrated_scores(content: Content) -> dict[str, float]:
    """Parameters and scores after recalibration; those of the first method have the short names."""
    found: dict[str, float] = {}
    report, is_all = content.report, content.options.scores == "all"
    requested = _shown(report, content.shown) if report.recalibrations and not is_all else set()
    for place, (method, entry) in enumerate(report.recalibrations.items()):
        for name, value in entry.get("scalars", {}).items():
            found[parameter_name(name, content.split)] = value
        scores = entry.get("scores", {})
        for key, value in ({key: scores[key] for key in scores if key in requested} or scores).items():
            found[recalibrated_name(key, content.split, method if place else None)] = value
    return found


def scores_digest(report: Report) -> str:
    """Sixteen hexadecimal digits of a report's scores and settings, and of all that tells how sure the scores are."""
    values = [report.scores, report.settings, report.recalibrations or None, report.counts, report.intervals]
    values += [report.provenance.get("intervals"), plain(report.left_out)]
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]
