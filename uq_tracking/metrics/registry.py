"""What a metric is, how one is declared, and how metrics are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from typing import Any, Literal, TypeAlias, TypeVar

from uq_tracking import plugins
from uq_tracking.errors import UnknownMetricError, closest
from uq_tracking.settings import Settings

Direction = Literal["lower", "higher"]
Family = Literal["accuracy", "scoring", "calibration", "ranking", "spread"]
Unit = Literal["target", "1/target", "1/sqrt(target)", "nats", "target^2", ""]
Task: TypeAlias = str

FAMILIES: dict[str, str] = {
    "accuracy": "Accuracy",
    "scoring": "Scoring rules",
    "calibration": "Calibration",
    "ranking": "Ranking of errors",
    "spread": "Spread",
}
"""What metrics judge, in the order of reports, and its heading."""


class Undefined(Exception):  # noqa: N818  (a result, not a mistake of the caller)
    """Raised by a metric that has no value for this input; its text is the reason, one sentence."""


NEEDS = {
    "predictions": "the predictions themselves, not their statistics alone",
    "reference": "a distribution to compare with (reference=)",
    "seed": "a seed (uq_tracking.evaluate has one)",
}
"""What a metric may need besides statistics, and how a reason names it."""


@dataclass(frozen=True, eq=False)
class MetricInputs:
    """What a metric with ``needs`` gets in place of statistics alone.

    Attributes
    ----------
    statistics : Statistics
    predictions : Predictions, ClassPredictions or None
        The samples one by one.
    reference : (mean, std), ClassPredictions or None
        What to compare with: arrays of the predictions' shape, or probabilities.
    seed : int
        Of metrics that draw at random.
    """

    statistics: Any
    predictions: Any = None
    reference: Any = None
    seed: int = 0

    @property
    def given(self) -> frozenset[str]:
        """Names of the inputs that are present, as in ``Metric.needs``."""
        there = {
            "predictions": self.predictions is not None,
            "reference": self.reference is not None,
            "seed": True,
        }
        return frozenset(name for name, is_there in there.items() if is_there)


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
    task : {"regression", "classification"}
    family : {"accuracy", "scoring", "calibration", "ranking", "spread"}
        What it judges; reports and comparisons are ordered by family.
    needs : tuple of str
        Input besides the statistics: ``predictions``, ``reference``, ``seed``; empty for most. A
        function that needs any gets `MetricInputs` in place of the statistics.
    default : bool
        Whether it is computed without being asked for.
    bounds : (float, float)
        Least and greatest value there can be; confidence intervals end there.
    headline : bool
        Whether it is among the few that are shown first.
    floor : bool
        Whether finite data push it above zero even where the forecast is perfectly calibrated.
    when : callable, optional
        ``when(statistics, settings)`` tells whether it is computed without being asked for; elsewhere it would only
        repeat another, or belongs to another form of predictions.
    glance : str
        How to read it above a chart, in a few words, where the direction does not say it.
    """

    key: str
    function: Callable[[Any, Settings], float]
    direction: Direction | float | None
    unit: Unit
    summary: str
    formula: str
    source: str
    task: Task = "regression"
    family: Family = "accuracy"
    needs: tuple[str, ...] = ()
    default: bool = True
    bounds: tuple[float, float] = (-math.inf, math.inf)
    headline: bool = False
    floor: bool = False
    when: Callable[[Any, Settings], bool] | None = None
    glance: str = ""

    @property
    def place(self) -> tuple[int, bool]:
        """Place in the order of reports: by family, those of the headline first."""
        family = list(FAMILIES).index(self.family) if self.family in FAMILIES else len(FAMILIES)
        return family, not self.headline

    def better(self, one: float, other: float) -> bool:
        """Whether ``one`` is strictly better than ``other``; False for a metric that does not judge."""
        return self.direction is not None and self.loss(one) < self.loss(other)

    def loss(self, value: float) -> float:
        """The value, transformed so that lower is better."""
        if self.direction == "higher":
            return -value
        if isinstance(self.direction, float):
            return abs(value - self.direction)
        return value


F = TypeVar("F", bound=Callable[..., float])


def metric(
    key: str,
    *,
    family: Family,
    direction: Direction | float | None,
    summary: str,
    formula: str,
    source: str,
    unit: Unit = "",
    task: Task = "regression",
    bounds: tuple[float, float] = (-math.inf, math.inf),
    needs: tuple[str, ...] = (),
    default: bool = True,
    headline: bool = False,
    floor: bool = False,
    when: Callable[[Any, Settings], bool] | None = None,
    glance: str = "",
    arguments: dict[str, Any] | None = None,
) -> Callable[[F], F]:
    """Declare that the function below computes a metric; the function itself is unchanged.

    Parameters
    ----------
    key, family, direction, summary, formula, source, unit, task, bounds, needs, default, headline, floor, when, \
glance
        As for `Metric`.
    arguments : dict, optional
        Further arguments of the function, where one function makes several metrics.

    Examples
    --------
    >>> @metric("range", family="spread", direction=None, summary="Range of std", formula="max s - min s", source="-")
    ... def std_range(statistics, settings):
    ...     return statistics.moments["std"].high - statistics.moments["std"].low
    """

    def declare(function: F) -> F:
        bound = update_wrapper(partial(function, **arguments), function) if arguments else function
        declared = Metric(
            key, bound, direction, unit, summary, formula, source, task, family, needs, default, bounds, headline,
            floor, when, glance,
        )  # fmt: skip
        return plugins.declare("uq_metrics", declared, function)

    return declare


def every_metric() -> tuple[Metric, ...]:
    """Every metric of every task."""
    return (*plugins.metrics("regression").values(), *plugins.metrics("classification").values())


def find(keys: Iterable[str], task: Task = "regression") -> list[Metric]:
    """The metrics with these keys; UnknownMetricError names those that do not exist."""
    known = plugins.metrics(task)
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
        return [replace(each, when=None) for each in find(keys, task)]
    have = set(given)
    return [m for m in plugins.metrics(task).values() if m.default and have.issuperset(m.needs)]


def compute(
    statistics: Any, settings: Settings, metrics: Iterable[Metric], inputs: MetricInputs | None = None
) -> tuple[dict[str, float], dict[str, str]]:
    """Scores, and the reasons of those that are undefined.

    Metrics that need more than statistics get ``inputs``, which holds these too.
    """
    scores: dict[str, float] = {}
    undefined: dict[str, str] = {}
    for each in metrics:
        if each.when is not None and not each.when(statistics, settings):
            continue
        try:
            value = float(each.function(input_for(each.needs, statistics, inputs), settings))
        except Undefined as reason:
            undefined[each.key] = str(reason)
            continue
        if math.isfinite(value):
            scores[each.key] = value
        else:
            undefined[each.key] = "the value overflows the range of 64-bit numbers"
    return scores, undefined


def input_for(needs: Iterable[str], statistics: Any, inputs: MetricInputs | None) -> Any:
    """The argument of a function with these needs: statistics, or all inputs; Undefined names what is lacking."""
    if not needs:
        return statistics
    have = frozenset() if inputs is None else inputs.given
    lacking = [name for name in needs if name not in have]
    if lacking:
        raise Undefined(f"it needs {' and '.join(NEEDS.get(name, name) for name in lacking)}")
    return inputs


SMALLEST = 1e-150
"""Values below this have squares that float64 cannot hold."""


def require_squares(low: float, high: float, what: str) -> None:
    """Raise ``Undefined`` where values between ``low`` and ``high`` are all too small to be squared."""
    largest = max(abs(low), abs(high))
    if 0 < largest < SMALLEST:
        raise Undefined(
            f"all {what} are below {SMALLEST:g}, whose squares are 0 in float64; choose a smaller unit"
        )
