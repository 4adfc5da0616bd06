"""What the callbacks of all training frameworks share: options, a report per epoch, and everything at the end."""

from __future__ import annotations

import inspect
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, get_args

from uq_tracking.checks import check_callable, check_choice
from uq_tracking.errors import (
    EmptyInputError,
    InputTypeError,
    InvalidValueError,
    SettingsError,
    UnknownOptionError,
    warn,
)
from uq_tracking.metrics.registry import select
from uq_tracking.report import Report
from uq_tracking.settings import SCORE_OPTIONS
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.streams.blocks import arguments_of
from uq_tracking.tasks import task_of
from uq_tracking.tracking.content import LogOptions, Scores
from uq_tracking.tracking.log import log
from uq_tracking.tracking.names import ORIGIN_TAG, scalar_name
from uq_tracking.tracking.resolve import Opened, Target, reopened, targets_of

if TYPE_CHECKING:
    from typing_extensions import Self

OnInvalid = Literal["skip", "drop", "raise"]
TaskName = Literal["regression", "classification"]


def _new_fit() -> str:
    return f"fit-{uuid.uuid4().hex}"


@dataclass
class GivenRuns:
    """Runs, addresses and ids, in the order given, and the name and tags of runs to be created."""

    given: list[Any]
    name: str
    tags: Mapping[str, str]
    made: dict[str, str] = field(default_factory=dict)
    """Addresses of the runs that were made, by the address given."""
    fit: str = field(default_factory=_new_fit)
    """Names the fit in its run, so that calls that a tracker takes only when the job is over find that run."""

    def check(self, *, ids: bool) -> None:
        """Refuse what no tracker recognizes; folders and loggers are not opened, and ids may not exist yet."""
        for run in self.given:
            if isinstance(run, str):
                is_due = ids or ":" in run
            else:
                is_due = not (ids or isinstance(run, PathLike) or hasattr(run, "log_metrics"))
            if is_due:
                self._targets_of(run)

    def forget(self) -> None:
        """Make new runs from now on."""
        self.made.clear()
        self.fit = _new_fit()

    def opened_once(self) -> list[Any]:
        """Return what to log to: an address that makes a run per call makes one in the first, which others join."""
        return [self._once(run) if isinstance(run, str) else run for run in self.given]

    def _once(self, run: str) -> Any:
        (target,) = self._targets_of(run)
        if run in self.made or not target.is_address:
            return self.made.get(run, run)

        def open_it() -> Opened:
            opened = reopened(self.made[run]) if run in self.made else target.open()
            self.made[run] = opened.run.uri
            return replace(opened, is_new=False)

        return replace(target, open=open_it)

    def _targets_of(self, run: Any) -> list[Target]:
        tags = {**self.tags, ORIGIN_TAG: self.fit}
        return targets_of([run], None, name=self.name, tags=tags, every_rank=True)


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
        return _restored, (getattr(self, "_written_as", type(self)), vars(self))

    def __init__(
        self,
        *,
        read: Callable[..., Any] | None = None,
        task: TaskName = "regression",
        scores: Scores = "headline",
        on_invalid: OnInvalid = "skip",
        method: str | None = None,
        run: Any = None,
        figures: bool = True,
        tags: Mapping[str, str] | None = None,
        strict: bool = False,
        statistics: Literal["sketch", "exact"] = "sketch",
        **options: Any,
    ) -> None:
        super().__init__()
        self.task = task_of(task)
        check_choice("on_invalid", on_invalid, get_args(OnInvalid))
        check_callable("read", read)
        self.logging: dict[str, Any] = {"scores": scores, "method": method, "figures": figures, "tags": tags}
        self.logging |= {"strict": strict, "every_rank": True}  # the trainer knows which process logs
        about = LogOptions(**self.logging)
        options["statistics"] = statistics
        self._check_known(options)
        Accumulator(**options)  # checks them
        self.read, self.on_invalid, self.options = read, on_invalid, options
        self._runs = None
        if run is not None:
            given = list(run) if isinstance(run, list | tuple) else [run]
            self._runs = GivenRuns(given, about.method or "uq", about.tags or {})
            self._runs.check(ids=False)
        self._active: list[Any] = []
        """Runs that were active when the training began, if none are given."""
        self._keys_of_scores = [metric.key for metric in select(task, options.get("metrics"))]
        self._last: dict[str, Accumulator] = {}
        """The last epoch of each split during a fit."""

    def _check_known(self, options: Mapping[str, Any]) -> None:
        known = inspect.signature(Accumulator).parameters.keys()
        unknown = [name for name in options if name not in known]
        if unknown:
            own = set(inspect.signature(TrainingCallback.__init__).parameters)
            own |= set(inspect.signature(type(self).__init__).parameters)
            raise UnknownOptionError("UncertaintyCallback", unknown, known | own - {"self", "options"})
        strange = [name for name in options if name in SCORE_OPTIONS and name not in self.task.options]
        if strange:
            raise SettingsError(f"{', '.join(strange)} cannot be used with task={self.task.name!r}; omit it")

    def _empty(self) -> Accumulator:
        """Make an accumulator that leaves out and counts bad values, so that all ranks learn of those in any."""
        return Accumulator(**self.options, on_invalid="drop")

    def _read_outputs(self, outputs: Any, labels: Any) -> dict[str, Any]:
        """Return the arguments of ``Accumulator.update`` from what a model returned and its labels."""
        if self.read is not None:
            return arguments_of(self.read(outputs, labels), "what read returned")
        if self.task.name == "classification":
            return {"y_true": labels, "probs": outputs}
        if not isinstance(outputs, tuple | list) and getattr(outputs, "shape", ())[-1:] == (2,):
            outputs = (outputs[..., 0], outputs[..., 1])
        if not isinstance(outputs, tuple | list) or len(outputs) != 2:
            raise InputTypeError(
                f"the model returned {type(outputs).__name__}, not a mean and a std; pass "
                "read=lambda outputs, labels: (labels, mean, std)"
            )
        return {"y_true": labels, "y_pred": outputs[0], "y_std": outputs[1]}

    def _scored(self, accumulator: Accumulator, what: str, *, leads: bool) -> Report | None:
        """The report, or None and a warning if there is nothing to score; the same on all ranks."""
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
            if leads:
                warn(f"{what} is not logged: {error}")
            return None
        return report

    def _monitored(self, report: Report | None, split: str) -> dict[str, float]:
        """Every score by its logged name, NaN if undefined: frameworks would go on showing the last epoch's."""
        scores = dict.fromkeys(self._keys_of_scores, math.nan) | dict(report.scores if report else {})
        return {scalar_name(key, split, self.task.name): value for key, value in scores.items()}

    def _begin_fit(self, *, leads: bool) -> None:
        """Log to runs of this fit: those given, else those active now."""
        if self._runs is not None:
            self._runs.forget()
        if leads and self._runs is not None:
            self._runs.check(ids=True)
        elif leads:
            self._active = targets_of(None, None, name="uq", every_rank=True)

    def _destinations(self) -> list[Any] | None:
        return (self._active if self._runs is None else self._runs.opened_once()) or None

    def _log_all(self, accumulator: Accumulator, split: str, trainer: Any, **changes: Any) -> None:
        log(accumulator, run=self._destinations(), split=split, **{**self.logging, **changes})

    def _finish(self, trainer: Any, **changes: Any) -> None:
        """Log everything about the last epoch of each split."""
        last, self._last = self._last, {}
        for split, accumulator in last.items():
            self._log_all(accumulator, split, trainer, **changes)


@lru_cache(maxsize=64)
def _with_bases(cls: Any, bases: tuple[type, ...]) -> Any:
    if issubclass(cls, bases):
        return cls
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls, *bases), {**names, "_written_as": cls})


def _restored(cls: type[TrainingCallback], state: dict[str, Any]) -> TrainingCallback:
    """Undo pickling, with the frameworks of this process."""
    made = cls.__new__(cls)
    vars(made).update(state)
    return made
