"""What the callbacks of all training frameworks share: options, a report per epoch, and everything at the end."""

from __future__ import annotations

import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from inspect import signature
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np

from uq_tracking import plugins
from uq_tracking.checks import P, R, check_callable, check_choice, listing, named_options
from uq_tracking.errors import (
    EmptyInputError,
    InputTypeError,
    InvalidValueError,
    MissingPackageError,
    SettingsError,
    warn,
)
from uq_tracking.inputs.convert import read as read_array
from uq_tracking.inputs.forms.probabilities import look_like_probabilities
from uq_tracking.metrics.registry import select
from uq_tracking.report import Report
from uq_tracking.streams.accumulator import Accumulator, AccumulatorOptions
from uq_tracking.streams.engines import arguments_of
from uq_tracking.streams.map_samples import WantedMaps
from uq_tracking.tasks import CLASSIFICATION, REGRESSION, Task, task_of
from uq_tracking.tracking.content import LogOptions, RunOptions
from uq_tracking.tracking.log import log
from uq_tracking.tracking.names import ORIGIN_TAG, scalar_name
from uq_tracking.tracking.resolve import Target, targets_of
from uq_tracking.typed import Self

OnInvalid = Literal["skip", "drop", "raise"]
TaskName = Literal["regression", "classification"]

LOGGED = {name: getattr(LogOptions, name) for name in ("scores", "method", "figures", "tags", "strict")}
"""Options of `log` that every callback has, and their defaults."""
FOR_CLASSES = "pass task='classification' for class probabilities, logits=True for logits"


@dataclass
class GivenRuns:
    """Runs, addresses and ids, in the order given, and the name and tags of runs to be created."""

    given: list[Any] | None
    """None if none were given."""
    name: str
    tags: Mapping[str, str]

    def __post_init__(self) -> None:
        self.forget()

    def check(self, *, ids: bool) -> None:
        """Refuse what no tracker recognizes; folders and loggers are not opened, and ids may not exist yet."""
        for run in self.given or ():
            if isinstance(run, str):
                is_due = ids or ":" in run
            else:
                is_due = not (ids or isinstance(run, PathLike) or hasattr(run, "log_metrics"))
            if is_due:
                self._targets_of(run)

    def forget(self) -> None:
        """Make new runs from now on."""
        self.made: dict[str, Target] = {}
        """Runs to be made, and those that were, by the address given."""
        self.fit = f"fit-{uuid.uuid4().hex}"
        """Names the fit in its run, so that calls that a tracker takes only when the job is over find that run."""

    def opened_once(self) -> list[Any]:
        """Return what to log to: an address that makes a run per call makes one in the first, which others join."""
        return [self._once(run) if isinstance(run, str) else run for run in self.given or ()]

    def _once(self, run: str) -> Any:
        if run not in self.made:
            (target,) = self._targets_of(run)
            if target.given is not None:
                return run
            self.made[run] = replace(target, is_joined=True)
        return self.made[run].uri or self.made[run]

    def _targets_of(self, run: Any) -> list[Target]:
        tags = {**self.tags, ORIGIN_TAG: self.fit}
        return targets_of([run], None, name=self.name, tags=tags, every_rank=True)


class CallbackOptions(AccumulatorOptions, RunOptions, total=False):
    """Options of every callback, for type checkers; the frameworks' own classes explain them."""

    read: Callable[..., Any] | None
    task: TaskName | None
    on_invalid: OnInvalid  # type: ignore[misc]
    statistics: Literal["sketch", "exact"]
    maps: WantedMaps
    bits: int
    on_device: bool | None


class TrainingCallback(ABC):
    """A callback of a training framework; its options are explained there."""

    @staticmethod
    @abstractmethod
    def framework_bases() -> tuple[type, ...]:
        """Return the framework's own class of callbacks, which is imported when a callback is made."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make it a callback of the framework, too."""
        kind: Any = cls
        made: Self = object.__new__(_with_bases(kind, cls.framework_bases()))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        kind = getattr(self, "_written_as", type(self))
        return kind.__new__, (kind,), vars(self)  # with the frameworks of the process that reads it

    @listing(Accumulator, **LOGGED)
    def __init__(
        self,
        *,
        read: Callable[..., Any] | None = None,
        task: TaskName | None = None,
        on_invalid: OnInvalid = "skip",
        run: Any = None,
        **options: Any,
    ) -> None:
        super().__init__()
        check_choice("on_invalid", on_invalid, get_args(OnInvalid))
        _check_read(read)
        self.logging: dict[str, Any] = {name: options.pop(name, value) for name, value in LOGGED.items()}
        self.logging["every_rank"] = True  # the trainer knows which process logs
        about = LogOptions(**self.logging)
        self.task = _task_of(task, Accumulator(**options))
        """What the model predicts; None until its first outputs show it."""
        self.read, self.on_invalid, self.options = read, on_invalid, options
        given = None if run is None else list(run) if isinstance(run, list | tuple) else [run]
        self._runs = GivenRuns(given, about.method or "uq", about.tags or {})
        self._runs.check(ids=False)
        self._active: list[Any] = []
        """Runs that were active when the training began, if none are given."""
        self._gives_logits = False
        """Whether the framework says that the model is a classifier without a softmax."""
        self._failed: set[str] = set()
        """Splits whose last epoch could not be scored."""
        self._last: dict[str, Accumulator] = {}
        """The last epoch of each split during a fit."""

    def _empty(self) -> Accumulator:
        """Make an accumulator that leaves out and counts bad values, so that all ranks learn of those in any."""
        return Accumulator(**self.options, on_invalid="drop")

    def _read_outputs(self, outputs: Any, labels: Any) -> dict[str, Any]:
        """Return the arguments of ``Accumulator.update`` from what a model returned and its labels."""
        if self.read is not None:
            return arguments_of(self.read(outputs, labels), "what read returned")
        if self.task is None:
            are_classes = _hold_classes(outputs, labels, certain=self._gives_logits)
            self.task = CLASSIFICATION if are_classes else REGRESSION
        if self.task is CLASSIFICATION:
            return self._read_classes(outputs, labels)
        if not isinstance(outputs, tuple | list) and getattr(outputs, "shape", ())[-1:] == (2,):
            outputs = (outputs[..., 0], outputs[..., 1])
        if not isinstance(outputs, tuple | list) or len(outputs) != 2:
            shape = getattr(outputs, "shape", None)
            what = type(outputs).__name__ if shape is None else f"an array of shape {tuple(shape)}"
            raise InputTypeError(
                f"the model returned {what}, not a mean and a std as two outputs or columns; {FOR_CLASSES}, or "
                "read=lambda outputs, labels: (labels, mean, std) for anything else"
            )
        arrays = {"y_true": labels, "y_pred": outputs[0], "y_std": outputs[1]}
        least = min(np.ndim(array) for array in arrays.values())
        return {
            name: _without_column(array) if np.ndim(array) > least else array
            for name, array in arrays.items()
        }

    def _read_classes(self, outputs: Any, labels: Any) -> dict[str, Any]:
        """Return labels and probabilities, whose classes come last unless the shapes say otherwise."""
        if np.ndim(labels) == np.ndim(outputs):
            labels = _without_column(labels)
        if np.shape(outputs) == (*np.shape(labels), 1):
            outputs = _without_column(outputs)
        truth = read_array(labels, "labels").values
        if truth.dtype.kind == "f" and truth.shape == np.shape(outputs) and np.isin(truth, (0, 1)).all():
            labels = truth.astype(int)  # losses of one event want floats
        if self._gives_logits:
            self.options.setdefault("logits", True)
        if np.shape(outputs)[:-1] == np.shape(labels):
            self.options.setdefault("class_axis", -1)
        return {"y_true": labels, "probs": outputs}

    def _check_first(self, accumulator: Accumulator, split: str) -> None:
        """Raise InvalidValueError if none of the first predictions can be scored."""
        if accumulator.defect and not accumulator.n:
            raise InvalidValueError(
                f"no prediction of {split} could be scored in the sanity check: {_cure(accumulator)}"
                f"{accumulator.defect}"
            )

    def _scored(self, accumulator: Accumulator, split: str, *, leads: bool, epoch: str = "") -> Report | None:
        """The report, or None if there is nothing to score, with a warning in the first such epoch in a row.

        All ranks return the same.
        """
        try:
            report = accumulator.compute(intervals=False)  # computed for the final log
            bad = report.counts["n_invalid"] if self.on_invalid != "drop" else 0
            if bad:
                raise InvalidValueError(
                    f"{bad} of {bad + report.counts['n']} samples are bad; on_invalid='drop' scores the rest. First: "
                    f"{accumulator.defect or 'a non-finite prediction or a bad std'}"
                )
        except (EmptyInputError, InvalidValueError) as error:
            if self.on_invalid == "raise":
                raise
            if leads and split not in self._failed:
                warn(
                    f"{epoch}{split} is not logged: {_cure(accumulator)}{error}; later ones like it add no warning"
                )
            self._failed.add(split)
            return None
        self._failed.discard(split)
        return report

    def _monitored(self, accumulator: Accumulator, report: Report | None, split: str) -> dict[str, float]:
        """Every score by its logged name, NaN if undefined: frameworks would go on showing the last epoch's."""
        task = accumulator.task or (self.task or REGRESSION).name
        keys = [metric.key for metric in select(task, self.options.get("metrics"))]
        scores = dict.fromkeys(keys, math.nan) | dict(report.scores if report else {})
        return {scalar_name(key, split, task): value for key, value in scores.items()}

    def _begin_fit(self, *, leads: bool) -> None:
        """Log to runs of this fit: those given, else those active now."""
        self._failed.clear()
        self._runs.forget()
        if leads:
            self._runs.check(ids=True)
        if leads and self._runs.given is None:
            self._active = targets_of(None, None, name="uq", every_rank=True)

    def _destinations(self) -> list[Any] | None:
        return (self._active if self._runs.given is None else self._runs.opened_once()) or None

    def _log_all(self, accumulator: Accumulator, split: str, trainer: Any, **changes: Any) -> None:
        log(accumulator, run=self._destinations(), split=split, **{**self.logging, **changes})

    def _finish(self, trainer: Any, **changes: Any) -> None:
        """Log everything about the last epoch of each split."""
        last, self._last = self._last, {}
        for split, accumulator in last.items():
            self._log_all(accumulator, split, trainer, **changes)


def with_all_options(function: Callable[P, R]) -> Callable[P, R]:
    """List the options of every callback as those of one framework's, and refuse others."""
    return named_options(listing(TrainingCallback.__init__)(function))


def framework(name: str, *packages: str) -> Any:
    """Import the first of these packages that is installed; MissingPackageError if none is."""
    for package in packages:
        try:
            return import_module(package)
        except ModuleNotFoundError:
            continue
    raise MissingPackageError(f"{name} is not installed; pip install {packages[0].partition('.')[0]}")


def _check_read(read: Any) -> None:
    check_callable("read", read)
    if read is None:
        return
    try:
        signature(read).bind(None, None)
    except TypeError as error:
        raise SettingsError(
            "read cannot be called with two arguments, the outputs and the labels (of Lightning, the batch)"
        ) from error
    except ValueError:  # a compiled function does not tell
        return


def _task_of(name: TaskName | None, options: Accumulator) -> Task | None:
    """Return the task of this name, or the only one that has all options; None if several have."""
    if name is not None:
        if (problem := options.problem_with(task_of(name))) is not None:
            raise SettingsError(f"task is {name!r}, but {problem}")
        return task_of(name)
    fitting = [task for task in plugins.tasks().values() if options.problem_with(task) is None]
    return fitting[0] if len(fitting) == 1 else None


def _hold_classes(outputs: Any, labels: Any, *, certain: bool) -> bool:
    """Return True for labels of classes and a column for each class, or one of shares for labels of 0 and 1.

    Two columns may be a mean and a std as well: SettingsError, unless the model is certain to be a classifier.
    """
    truth = read_array(labels, "labels").values
    if isinstance(outputs, tuple | list | Mapping):
        return False
    if math.prod(np.shape(outputs)) == truth.size and truth.dtype.kind in "biuf":
        shares = read_array(outputs, "outputs").values
        return bool(np.isin(truth, (0, 1)).all() and ((shares >= 0) & (shares <= 1)).all())
    if truth.dtype.kind not in "biuUSO":
        return False
    if np.shape(outputs)[:-1] not in (truth.shape, truth.shape[: truth.ndim - (truth.shape[-1:] == (1,))]):
        return False
    columns = np.shape(outputs)[-1]
    if columns == 2 and not certain and not look_like_probabilities(read_array(outputs, "outputs").values):
        raise SettingsError(
            f"the model returned two columns for labels that are whole numbers; {FOR_CLASSES}, "
            "task='regression' for a mean and a std"
        )
    return bool(columns > 1)


def _without_column(array: Any) -> Any:
    """Return an array without a last axis of length 1, if it has one."""
    if np.ndim(array) < 2 or np.shape(array)[-1] != 1:
        return array
    return array[..., 0] if hasattr(array, "dtype") else np.asarray(array)[..., 0]


def _cure(accumulator: Accumulator) -> str:
    """Return what a model with negative standard deviations most likely returns instead."""
    if accumulator.task != "regression" or "negative" not in accumulator.defect:
        return ""
    return "if std is a log variance, let read= return Predictions.from_log_variance(truth, mean, log_variance); "


@lru_cache(maxsize=64)
def _with_bases(cls: Any, bases: tuple[type, ...]) -> Any:
    if issubclass(cls, bases):
        return cls
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls, *bases), {**names, "_written_as": cls})
