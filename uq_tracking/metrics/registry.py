"""Metrics: their declaration, and their computation at once or when first accessed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial, update_wrapper, wraps
from inspect import getdoc, signature
from threading import Lock
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, get_args
from weakref import WeakKeyDictionary

import numpy as np

from uq_tracking import plugins
from uq_tracking.checks import as_names
from uq_tracking.errors import PluginError, SettingsError, UnknownMetricError, UQTrackingError, closest, warn
from uq_tracking.settings import Settings
from uq_tracking.typed import cached_property

if TYPE_CHECKING:
    from uq_tracking.metrics.gaps import Gap, Reduction

Direction = Literal["lower", "higher"]
Family = Literal["accuracy", "scoring", "calibration", "ranking", "spread"]
Unit = Literal["target", "1/target", "1/sqrt(target)", "nats", "target^2", ""]
TaskName = str

FAMILIES: dict[str, str] = {
    "accuracy": "Accuracy",
    "scoring": "Scoring rules",
    "calibration": "Calibration",
    "ranking": "Ranking of errors",
    "spread": "Spread",
}
"""Subjects of metrics in the order of reports, with their headings."""


class Undefined(Exception):  # noqa: N818  (a result, not a mistake of the caller)
    """Raised by a metric without a value for this input; its text is the reason, in one sentence."""


INFINITE = "infinite: "
"""Beginning of the reason of a score that is infinitely bad."""


class Infinite(Undefined):
    """Raised by a metric that is infinitely bad for this input, so that it ranks last; its text says why."""

    def __init__(self, why: str) -> None:
        super().__init__(INFINITE + why)


def is_infinite(reason: str) -> bool:
    """Return whether a score has no finite value because it is infinitely bad."""
    return reason.startswith(INFINITE)


NEEDS = {
    "predictions": "the predictions themselves, not only their statistics",
    "reference": "a distribution to compare with (reference=)",
    "seed": "a seed (uq_tracking.evaluate has one)",
}
"""Inputs that a metric may need besides statistics, with their names in error messages."""


@dataclass(frozen=True, eq=False)
class MetricInputs:
    """Inputs of a metric with ``needs``, instead of statistics alone.

    Attributes
    ----------
    statistics : Statistics
    predictions : Predictions or None
        The samples one by one.
    reference : (mean, std), Predictions or None
        What to compare with: arrays of the predictions' shape, or probabilities.
    seed : int
        Random seed, for metrics that draw at random.
    """

    statistics: Any
    predictions: Any = None
    reference: Any = None
    seed: int = 0

    @property
    def given(self) -> frozenset[str]:
        """Names of the available inputs, as in ``Metric.needs``."""
        return frozenset(name for name in NEEDS if getattr(self, name) is not None)


@dataclass(frozen=True)
class NeedsGroups:
    """Number of equal groups that the groups behind an interval must be worth, if a few of them may carry the score.

    Attributes
    ----------
    equal, weighted : int
        Groups of equal variance, without and with weights of the samples, which hide how few there are if they grow
        with the variance.
    even : float
        Share of the groups that their mean variances, whatever their sizes, must be worth.
    """

    equal: int = 0
    weighted: int = 0
    even: float = 0.0


Bound = float | Callable[[Mapping[str, float]], float | None] | None
F = TypeVar("F", bound=Callable[..., float | None])
S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def not_declared(statistics: Any, settings: Settings) -> float:
    """Stand in for the missing function of a metric that does not decorate one."""
    raise PluginError("the metric has no function; decorate one with @metric(...)")


def require_known(what: str, name: str, value: str, known: Iterable[str]) -> None:
    """Raise ``PluginError`` if a declaration names something that does not exist."""
    if value not in known:
        raise PluginError(
            f"{what}: {name} is {value!r}{closest(value, known)}; choose from {', '.join(map(repr, known))}"
        )


def require_declarable(what: str, name: str, needs: Iterable[str]) -> None:
    """Raise ``PluginError`` if the name or needs of a metric or curve are invalid."""
    if not name.isidentifier():
        raise PluginError(
            f"{what}: the name is also used for files; use only letters, digits and underscores"
        )
    for need in needs:
        require_known(what, "needs", need, NEEDS)


@dataclass(frozen=True)
class Metric:
    """A number as a pure function of statistics, declared by decorating that function.

    Attributes
    ----------
    key : str
        Name in reports and trackers; must be an identifier. By default the function's name.
    family : {"accuracy", "scoring", "calibration", "ranking", "spread"}
        What it judges; reports and comparisons are ordered by family.
    direction : "lower", "higher", a target value, or None
        Which values are better; None for metrics that describe without judging.
    formula, source : str
        The definition, and where it is from.
    summary : str
        A one-line description; by default the first line of the function's docstring.
    unit : {"", "target", "1/target", "1/sqrt(target)", "target^2", "nats"}
        Unit in terms of the target's; "" for none.
    task : str
        Name of the task whose forecasts it scores.
    bounds : (float, float)
        Smallest and largest possible value; confidence intervals end there.
    needs : tuple of str
        Inputs besides the statistics: ``predictions``, ``reference``, ``seed``; empty for most. A function that needs
        any receives `MetricInputs` instead of the statistics.
    default : bool
        Whether it is computed by default.
    headline : bool
        Whether it is among the few shown first.
    instead_of : str
        Key of a headline metric for which it stands in where that has no score; of several, the last declared does.
    gap, reduction : Gap and Reduction, optional
        For a score that is 0 at perfect calibration: the gap it reduces, and how. They give it a noise floor and an
        interval, and its value too, if the decorated function has no parameters.
    when : callable, optional
        ``when(statistics, settings)`` says whether it is computed by default; otherwise it would only repeat another
        metric, or belongs to another form of predictions.
    glance : str
        How to read it, in a few words, for chart titles if the direction does not say it.
    arguments : dict
        Further arguments of the function, if one function serves several metrics.
    share : bool
        Whether it is a share of the samples, whose interval is Clopper and Pearson's.
    squares : bool or callable
        Whether it averages squared errors, so that it has no interval if their tails are too heavy;
        ``squares(statistics, settings)`` if that depends on the predicted distribution.
    needs_groups : NeedsGroups
        What its interval needs of the groups.
    of_levels : bool
        Whether it depends on the levels at which quantiles are given, and does not rank runs if these differ.
    oracle, constant : float or callable, optional
        Its value for an uncertainty equal to the error, and for one that is the same everywhere, for comparisons:
        a number, or a function of the report's scores.
    on_scale : str
        Key of the score that says where it lies between oracle (0) and constant (1); below 0 neither ranks methods.
    remark : callable, optional
        ``remark(value)``: a sentence about a value at or beyond the ends of its scale, "" about others.
    against : str
        Key of the score on the horizontal axis, if comparisons draw it over another.
    swept : bool
        Whether ``scale_sweep`` shows how it changes with the scale of all standard deviations.
    in_curves : bool
        Whether curves over members, sample sizes and strata show it by default.
    of_top : bool
        Whether it needs no more of class probabilities than the top label, and that of the true one: where only such
        metrics are asked for, the others are not read.
    means : tuple of str
        Losses of samples whose means make it (``Layout.losses``), so that runs on the same samples can be compared
        pair by pair; ``of_means(*means)`` makes it, by default it is the mean of one. None if it is a multiple of
        one, by a factor that the levels of the intervals decide.
    function : callable
        ``function(statistics, settings) -> float``; raises ``Undefined`` with the reason if there is no value.

    Examples
    --------
    >>> @metric(family="spread", direction=None, formula="max s - min s", source="-")
    ... def std_range(statistics, settings):
    ...     "Range of the standard deviations."
    ...     return statistics.moments["std"].high - statistics.moments["std"].low
    """

    key: str = ""
    _: KW_ONLY
    family: Family
    direction: Direction | float | None
    formula: str
    summary: str = ""
    source: str = "Standard definition"
    unit: Unit = ""
    task: TaskName = "regression"
    bounds: tuple[float, float] = (-math.inf, math.inf)
    needs: tuple[str, ...] = ()
    default: bool = True
    headline: bool = False
    instead_of: str = ""
    gap: Gap | None = None
    reduction: Reduction | None = None
    when: Callable[[Any, Settings], bool] | None = None
    glance: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    share: bool = False
    squares: bool | Callable[[Any, Settings], bool] = False
    needs_groups: NeedsGroups = NeedsGroups()
    of_levels: bool = False
    oracle: Bound = None
    constant: Bound = None
    on_scale: str = ""
    remark: Callable[[float], str] | None = None
    against: str = ""
    swept: bool = False
    in_curves: bool = False
    of_top: bool = False
    means: tuple[str, ...] = ()
    of_means: Callable[..., float] | None = float
    function: Callable[..., float] = not_declared

    def __call__(self, function: F) -> F:
        """Declare that the function computes the metric; the function itself is unchanged.

        Raises
        ------
        PluginError
            The declaration is invalid.
        """
        named = self.named_after(function)
        what = f"metric {named.key!r}"
        require_declarable(what, named.key, self.needs)
        require_known(what, "family", self.family, FAMILIES)
        require_known(what, "unit", self.unit, get_args(Unit))
        if not (self.direction in (None, *get_args(Direction)) or isinstance(self.direction, int | float)):
            raise PluginError(
                f"{what}: direction is {self.direction!r}; pass 'lower', 'higher', a target value or None"
            )
        if (self.gap is None) != (self.reduction is None):
            raise PluginError(
                f"{what}: a gap needs a reduction, and a reduction a gap; pass gap= and reduction="
            )
        if not self.bounds[0] < self.bounds[1]:
            raise PluginError(f"{what}: bounds are {self.bounds}; pass the smaller one first")
        bound: Callable[..., Any] = function
        if self.gap is not None and self.reduction is not None and not signature(function).parameters:
            bound = update_wrapper(partial(self.gap.score, reduction=self.reduction), function)
        elif self.arguments:
            bound = update_wrapper(partial(function, **self.arguments), function)
        direction = float(self.direction) if isinstance(self.direction, int) else self.direction
        return plugins.declare("uq_metrics", replace(named, direction=direction, function=bound), function)

    def named_after(self, function: Callable[..., Any]) -> Metric:
        """Return it with the function's name as its key, and what its docstring begins with as its summary."""
        first = (getdoc(function) or "").partition("\n")[0].removesuffix(".")
        return replace(self, key=self.key or function.__name__, summary=self.summary or first)

    @property
    def place(self) -> tuple[int, bool]:
        """Position in the order of reports: by family, headline metrics first."""
        family = list(FAMILIES).index(self.family) if self.family in FAMILIES else len(FAMILIES)
        return family, not self.headline

    @cached_property
    def is_built_in(self) -> bool:
        """Return whether this package declares it."""
        return self.function.__module__.partition(".")[0] == __name__.partition(".")[0]

    def below_oracle(self, scores: Mapping[str, float]) -> bool:
        """Return whether it is better than its oracle, which is no merit, so that it does not rank methods."""
        return bool(self.on_scale) and scores.get(self.on_scale, 0.0) < 0

    def loss(self, value: float) -> float:
        """The value, transformed so that lower is better."""
        if self.direction == "higher":
            return -value
        if isinstance(self.direction, float):
            return abs(value - self.direction)
        return value


metric = Metric
"""The decorator that declares a metric: ``@metric(...)`` above its function."""


def every_metric() -> tuple[Metric, ...]:
    """Every metric of every task."""
    return tuple(metric for task in plugins.tasks() for metric in plugins.metrics(task).values())


def check_known(keys: Iterable[str], known: Collection[str], lacking: str, cure: str) -> None:
    """Raise UnknownMetricError for keys that are not known, with what lacks them, the closest one, and a cure."""
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise UnknownMetricError(f"{lacking} {', '.join(unknown)}{closest(unknown[0], known)}; {cure}")


def find(keys: Iterable[str], task: TaskName = "regression") -> list[Metric]:
    """Return the metrics with these keys; UnknownMetricError names those that do not exist."""
    known = plugins.metrics(task)
    wanted = as_names("metrics", keys)
    if not known.keys() >= set(wanted):
        check_known(wanted, known, f"no {task} metric is called", f"choose from {', '.join(sorted(known))}")
    return [known[key] for key in wanted]


def select(task: TaskName, keys: Iterable[str] | None = None, *, given: Iterable[str] = ()) -> list[Metric]:
    """Return the metrics of a task to compute: those named, or the default ones whose needs are ``given``."""
    if keys is not None:
        return [replace(each, when=None) for each in find(keys, task)]
    have = set(given)
    return [m for m in plugins.metrics(task).values() if m.default and have.issuperset(m.needs)]


def metrics_of_parts(
    task: TaskName, names: Iterable[str] | None, option: str = "curve_metrics"
) -> list[Metric]:
    """Return the metrics that an option names for parts of the samples; SettingsError if one needs more."""
    if names is None:
        return [metric for metric in plugins.metrics(task).values() if metric.in_curves]
    chosen = find(as_names(option, names), task)
    needing = [metric.key for metric in chosen if metric.needs]
    if needing:
        raise SettingsError(
            f"{option} names {', '.join(needing)}, which cannot be computed on parts of the samples; choose "
            "metrics that need only statistics"
        )
    return chosen


def headline(metrics: Iterable[Metric], scored: Collection[str]) -> list[Metric]:
    """Return the metrics of the headline; for one that has no score, what stands in for it and has one."""
    metrics = list(metrics)
    stand_ins = {metric.instead_of: metric for metric in metrics if metric.key in scored}
    return [
        metric if metric.key in scored else stand_ins.get(metric.key, metric)
        for metric in metrics
        if metric.headline
    ]


def headline_or_all(task: TaskName, scored: Collection[str]) -> list[str]:
    """Return the keys of the headline that have scores; all that have if none has."""
    shown = {metric.key for metric in headline(plugins.metrics(task).values(), scored)}
    return [key for key in scored if key in shown] or list(scored)


def compute(
    statistics: Any, settings: Settings, metrics: Iterable[Metric], inputs: MetricInputs | None = None
) -> tuple[dict[str, float], dict[str, str]]:
    """Compute scores, and the reasons why any are undefined.

    Metrics that need more than statistics receive ``inputs``, which also holds the statistics. A metric whose
    function fails is left out with a `TrackingWarning`: a faulty plugin costs its own score, not the report.
    """
    scores: dict[str, float] = {}
    undefined: dict[str, str] = {}
    for each in metrics:
        if each.when is not None and not each.when(statistics, settings):
            continue
        try:
            given = input_for(each.needs, statistics, inputs)
            with faults_named(f"metric {each.key!r}", each.function):
                value = float(each.function(given, settings))
        except Undefined as reason:
            undefined[each.key] = str(reason)
            continue
        except PluginError as fault:
            undefined[each.key] = str(fault)
            warn(f"{fault}; it is left out")
            continue
        if math.isfinite(value):
            scores[each.key] = value
        elif math.isnan(value):
            undefined[each.key] = (
                "the value is NaN: terms overflow, or the function lacks a raise of Undefined"
            )
        else:
            bad = each.direction is not None and each.loss(value) > 0
            undefined[each.key] = INFINITE * bad + "the value overflows the range of 64-bit numbers"
    return scores, undefined


def has_failed(key: str, reason: str) -> bool:
    """Return whether a metric is undefined because its function failed, not because it has no value."""
    return reason.startswith(f"metric {key!r} of ")


@contextmanager
def faults_named(what: str, function: Callable[..., Any]) -> Iterator[None]:
    """Raise PluginError, which names its module, if a declared function fails in the block.

    `Undefined`, and errors this package raises on purpose, pass through.
    """
    try:
        yield
    except (Undefined, UQTrackingError):
        raise
    except Exception as error:  # another package's function may raise anything
        raise PluginError(
            f"{what} of {function.__module__} failed: {type(error).__name__}: {error}"
        ) from error


def input_for(needs: Iterable[str], statistics: Any, inputs: MetricInputs | None) -> Any:
    """Return statistics, or all inputs if a function needs more; Undefined names what is missing."""
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
    """Raise ``Undefined`` if values between ``low`` and ``high`` are all too small to be squared."""
    largest = max(abs(low), abs(high))
    if 0 < largest < SMALLEST:
        raise Undefined(
            f"all {what} are below {SMALLEST:g}, whose squares are 0 in float64; choose a smaller unit"
        )


def intermediate(function: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Cache the results of a function of statistics for as long as the statistics live.

    Parameters
    ----------
    function : callable
        ``function(statistics, *arguments)`` of immutable statistics; the result may depend on nothing else, and the
        arguments must be hashable. Exceptions are not cached. The result must not refer to the statistics.

    Examples
    --------
    >>> class Numbers(list):
    ...     __hash__ = object.__hash__
    >>> @intermediate
    ... def power_sum(numbers, exponent):
    ...     print("summing")
    ...     return sum(number**exponent for number in numbers)
    >>> numbers = Numbers([1, 2, 3])
    >>> power_sum(numbers, 2), power_sum(numbers, 2), power_sum(numbers, 1)
    summing
    summing
    (14, 14, 6)
    """
    cache: WeakKeyDictionary[Any, dict[Any, T]] = WeakKeyDictionary()
    lock = Lock()

    @wraps(function)
    def shared(statistics: S, /, *arguments: P.args, **options: P.kwargs) -> T:
        key = (arguments, tuple(sorted(options.items())))
        with lock:
            results = cache.setdefault(statistics, {})
        if key not in results:  # two threads may both get here, with the same result
            results[key] = function(statistics, *arguments, **options)
        return results[key]

    return shared


class LaterScores:
    """Scores of statistics, each computed once, when first accessed.

    Scores that need more than statistics are computed at once, because the arrays behind them may change; so are
    those of other distributions, whose functions may fail, so that the warning appears in the call itself.
    """

    def __init__(
        self,
        statistics: Any,
        settings: Settings,
        metrics: Iterable[Metric],
        inputs: MetricInputs | None = None,
    ) -> None:
        self._statistics, self._settings = statistics, settings
        self._metrics = {each.key: each for each in metrics}
        self._done: set[str] = set()
        self._scores: dict[str, float] = {}
        self._undefined: dict[str, str] = {}
        self([key for key, each in self._metrics.items() if each.needs or not each.is_built_in], inputs)

    def __call__(
        self, keys: Collection[str] | None = None, inputs: MetricInputs | None = None
    ) -> dict[str, float]:
        """Scores of these metrics, by default of all, where they have a value."""
        keys = self._metrics if keys is None else keys
        asked = [self._metrics[key] for key in self._metrics if key in keys and key not in self._done]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # beyond float64 is undefined
            scores, undefined = compute(self._statistics, self._settings, asked, inputs)
        self._scores |= scores
        self._undefined |= undefined
        self._done |= {each.key for each in asked}
        return {key: self._scores[key] for key in self._metrics if key in keys and key in self._scores}

    def undefined(self) -> dict[str, str]:
        """Return why each undefined score has no value."""
        self()
        return {key: self._undefined[key] for key in self._metrics if key in self._undefined}


class Later(Generic[T]):
    """A dataclass field that may be given as a function, called when the field is first accessed."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> T:
        if instance is None:
            raise AttributeError(f"class {owner.__name__} has no {self._name}")  # so there is no default
        value: T = vars(instance)[self._name]
        if callable(value):
            value = vars(instance)[self._name] = value()
        return value

    def __set__(self, instance: Any, value: T | Callable[[], T]) -> None:
        vars(instance)[self._name] = value
