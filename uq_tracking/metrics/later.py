"""Scores that are computed when first accessed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, TypeVar, overload

import numpy as np

from uq_tracking.metrics.registry import Metric, MetricInputs, compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics

T = TypeVar("T")


class LaterScores:
    """Scores of statistics, each computed once, when first accessed.

    Scores that need more than statistics are computed at once, because the arrays behind them may change; so are
    those of other distributions, whose functions may fail, so that the warning appears in the call itself.
    """

    def __init__(
        self,
        statistics: Statistics,
        settings: Settings,
        metrics: Iterable[Metric],
        inputs: MetricInputs | None = None,
    ) -> None:
        self._statistics, self._settings = statistics, settings
        self._metrics = {each.key: each for each in metrics}
        self._done: set[str] = set()
        self._scores: dict[str, float] = {}
        self._undefined: dict[str, str] = {}
        self._compute([each for each in self._metrics.values() if each.needs or not each.is_built_in], inputs)

    def of(self, keys: Collection[str]) -> dict[str, float]:
        """Scores of these metrics, where they have a value."""
        self._compute([self._metrics[key] for key in self._metrics if key in keys and key not in self._done])
        return {key: self._scores[key] for key in self._metrics if key in keys and key in self._scores}

    def __call__(self) -> dict[str, float]:
        """All scores, in the order of the metrics."""
        return self.of(self._metrics)

    def undefined(self) -> dict[str, str]:
        """Why each undefined score has no value."""
        self.of(self._metrics)
        return {key: self._undefined[key] for key in self._metrics if key in self._undefined}

    def _compute(self, metrics: Collection[Metric], inputs: MetricInputs | None = None) -> None:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # beyond float64 is undefined
            scores, undefined = compute(self._statistics, self._settings, metrics, inputs)
        self._scores |= scores
        self._undefined |= undefined
        self._done |= {each.key for each in metrics}


class Later(Generic[T]):
    """A dataclass field that may be given as a function, called when the field is first accessed."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Later[T]: ...

    @overload
    def __get__(self, instance: Any, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            raise AttributeError(f"class {owner.__name__} has no {self._name}")  # so there is no default
        value = vars(instance)[self._name]
        if callable(value):
            value = vars(instance)[self._name] = value()
        return value

    def __set__(self, instance: Any, value: T | Callable[[], T]) -> None:
        vars(instance)[self._name] = value
