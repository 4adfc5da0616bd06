"""What a metric is, and all that are installed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar

from uq_tracking.errors import UnknownMetricError, closest
from uq_tracking.settings import Settings

Direction = Literal["lower", "higher"]
Unit = Literal["target", "1/target", "1/sqrt(target)", "nats", "target^2", ""]
Task = Literal["regression", "classification"]


class Undefined(Exception):  # noqa: N818  (a result, not a mistake of the caller)
    """Raised by a metric that has no value for this input; its text is the reason, one sentence."""


WANTED = {
    "predictions": "the predictions themselves, not their statistics alone",
    "samples": "raw samples of the predictive distribution (Predictions.from_samples without member_std)",
    "reference": "the mean and std to compare with (reference=)",
    "seed": "a seed (uq_tracking.evaluate has one)",
}
"""What a metric may need beyond statistics, and how it is called in a reason."""


@dataclass(frozen=True, eq=False)
class Extra:
    """What metrics with ``needs`` get in place of statistics alone.

    Attributes
    ----------
    statistics : RegressionStatistics or ClassificationStatistics
    predictions : Predictions or None
        The samples one by one.
    reference : (mean, std) or None
        Arrays of the predictions' shape, to compare with.
    seed : int
        Of metrics that draw at random.
    """

    statistics: Any
    predictions: Any = None
    reference: tuple[Any, Any] | None = None
    seed: int = 0

    @property
    def given(self) -> frozenset[str]:
        """Names of what is there, as in ``Metric.needs``."""
        there = {
            "predictions": self.predictions is not None,
            "samples": getattr(self.predictions, "samples", None) is not None
            and self.predictions.member_std is None,
            "reference": self.reference is not None,
            "seed": True,
        }
        return frozenset(name for name, is_there in there.items() if is_there)


T = TypeVar("T")


def shared(statistics: Any, key: str, make: Callable[[], T]) -> T:
    """What several metrics of the same statistics read, made when first asked for."""
    memo: dict[str, T] = statistics.memo
    if key not in memo:
        memo[key] = make()
    return memo[key]


SMALLEST = 1e-150
"""Values below this have squares that float64 cannot hold."""


def require_squares(low: float, high: float, what: str) -> None:
    """Raise ``Undefined`` where values between ``low`` and ``high`` are all too small to be squared."""
    largest = max(abs(low), abs(high))
    if 0 < largest < SMALLEST:
        raise Undefined(
            f"all {what} are below {SMALLEST:g}, whose squares are 0 in float64; choose a smaller unit"
        )


@dataclass(frozen=True)
class Metric:
    """A number as a pure function of statistics.

    Attributes
    ----------
    key : str
        Name in reports and trackers.
    function : callable
        ``function(statistics, settings) -> float``; raises ``Undefined`` with the reason when there is no value.
    direction : "lower", "higher", a target value, or None
        Which values are better; None describes without judging.
    unit : str
        Unit in terms of the target's; "" is none.
    summary, formula, source : str
        One line for people, the definition, and where it comes from.
    needs : tuple of str
        Input beyond the statistics: ``predictions``, ``samples``, ``reference``, ``seed``; empty for most. A
        function that needs any gets an `Extra` in place of the statistics.
    default : bool
        Whether it is computed without being asked for.
    bounds : (float, float)
        Least and greatest value there can be; confidence intervals end there.
    """

    key: str
    function: Callable[[Any, Settings], float]
    direction: Direction | float | None
    unit: Unit
    summary: str
    formula: str
    source: str
    task: Task = "regression"
    needs: tuple[str, ...] = ()
    default: bool = True
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def better(self, one: float, other: float) -> bool:
        """Whether ``one`` is strictly better than ``other``; False for a metric that does not judge."""
        return self.direction is not None and self.loss(one) < self.loss(other)

    def loss(self, value: float) -> float:
        """The value turned so that lower is better."""
        if self.direction == "higher":
            return -value
        if isinstance(self.direction, float):
            return abs(value - self.direction)
        return value


@lru_cache(maxsize=1)
def every_metric() -> tuple[Metric, ...]:
    """Every metric that an installed distribution registers; a key is unique within its task."""
    from uq_tracking.hooks import collect

    found: dict[str, Metric] = collect("uq_metrics", lambda metric: f"{metric.task}/{metric.key}")
    return tuple(found.values())


def registry(task: str = "regression") -> dict[str, Metric]:
    """The metrics of one task, by key."""
    return {metric.key: metric for metric in every_metric() if metric.task == task}


def find(keys: Iterable[str], task: Task = "regression") -> list[Metric]:
    """The metrics with these keys; UnknownMetricError names those that do not exist."""
    known = registry(task)
    wanted = [keys] if isinstance(keys, str) else list(keys)
    unknown = [str(key) for key in wanted if key not in known]
    if unknown:
        raise UnknownMetricError(
            f"no {task} metric is called {', '.join(unknown)}{closest(unknown[0], known)}; "
            f"known are {', '.join(sorted(known))}"
        )
    return [known[key] for key in wanted]


def select(task: Task, keys: Iterable[str] | None = None, *, given: Iterable[str] = ()) -> list[Metric]:
    """The metrics of a task to compute: those named, or the default ones whose needs are ``given``."""
    if keys is not None:
        return find(keys, task)
    have = set(given)
    return [m for m in registry(task).values() if m.default and have.issuperset(m.needs)]


def compute(
    statistics: Any, settings: Settings, metrics: Iterable[Metric], extra: Extra | None = None
) -> tuple[dict[str, float], dict[str, str]]:
    """Scores, and the reasons of those that are undefined.

    Metrics that need more than statistics get ``extra``, which holds these too.
    """
    scores: dict[str, float] = {}
    undefined: dict[str, str] = {}
    for metric in metrics:
        try:
            value = float(metric.function(_input(metric, statistics, extra), settings))
        except Undefined as reason:
            undefined[metric.key] = str(reason)
            continue
        if math.isfinite(value):
            scores[metric.key] = value
        else:
            undefined[metric.key] = "the value overflows the range of 64-bit numbers"
    return scores, undefined


def _input(metric: Metric, statistics: Any, extra: Extra | None) -> Any:
    if not metric.needs:
        return statistics
    have = frozenset() if extra is None else extra.given
    lacking = [name for name in metric.needs if name not in have]
    if lacking:
        raise Undefined(f"it needs {' and '.join(WANTED.get(name, name) for name in lacking)}")
    return extra
