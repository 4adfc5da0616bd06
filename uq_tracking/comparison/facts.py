"""Facts of a comparison, and what follows from them: ranks, bounds, verdicts, agreement of the metrics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Any, Literal

from uq_tracking import plugins
from uq_tracking.checks import as_names
from uq_tracking.comparison.curves import Overlay, overlays
from uq_tracking.comparison.differences import Difference
from uq_tracking.comparison.maps import MapCase
from uq_tracking.comparison.runs import (
    ScoredRun,
    SkippedRun,
    by_method,
    by_part,
    data_of,
    looks_of,
    mean_losses,
)
from uq_tracking.errors import FileFormatError
from uq_tracking.inference import words
from uq_tracking.metrics.registry import FAMILIES, Metric, check_known, headline
from uq_tracking.typed import cached_property

TIE = 1e-9
"""Numbers within this relative difference share a rank: summing in another order can change them this much."""
FEWEST = 3
"""Minimum number of methods for an agreement: two are ranked either alike or oppositely, which says nothing."""
UNJUDGED = "not enough data"

MetricKeys = Iterable[str] | Literal["all"] | None


def metrics_of(runs: Iterable[ScoredRun], task: str, keys: Iterable[str] | None = None) -> list[Metric]:
    """Return the metrics with these keys, by default all that a run has, in the registry's order.

    Raises UnknownMetricError if no run has one of them.
    """
    known = plugins.metrics(task)
    present = {key for run in runs for key in (*run.report.scores, *run.report.undefined)}
    if keys is None:
        keys = [key for key in known if key in present] + sorted(present - set(known))
    keys, names = dict.fromkeys(as_names("metrics", keys)), sorted(present)
    check_known(keys, names, "no run has a metric called", f"the runs have {', '.join(names)}")
    summary = "From a plugin that is not installed here, so nothing is known about it"
    return [known[key] if key in known else _uninstalled(key, task, summary=summary) for key in keys]


def headline_keys(metrics: Sequence[Metric], runs: Iterable[ScoredRun]) -> tuple[str, ...]:
    """Return the keys of the metrics shown by default; all if none is declared a headline."""
    scored = {key for run in runs for key in run.report.scores}
    return tuple(metric.key for metric in headline(metrics, scored) or metrics)


def family(metric: Metric) -> str:
    """Return what a metric judges, in a word or two."""
    return FAMILIES.get(metric.family, "Other")


def by_family(metrics: Sequence[Metric]) -> dict[str, list[Metric]]:
    """Return the metrics of each family that occurs."""
    names = [name for name in (*FAMILIES.values(), "Other") if name in map(family, metrics)]
    return {name: [metric for metric in metrics if family(metric) == name] for name in names}


def metric_to_dict(metric: Metric) -> dict[str, Any]:
    """Return what a reader needs to know about a metric, as plain values."""
    names = ("key", "task", "direction", "unit", "summary", "formula", "source", "family")
    return {name: getattr(metric, name) for name in names}


def metric_from_dict(values: Mapping[str, Any]) -> Metric:
    """Return the metric as installed here, else as the file describes it; unranked if it is unranked in the file."""
    installed = plugins.metrics(values["task"]).get(values["key"])
    direction = values["direction"]
    if installed is not None and direction in (None, installed.direction):
        is_same = installed.direction == direction
        return installed if is_same else replace(installed, direction=None, summary=str(values["summary"]))
    if isinstance(direction, int | float):
        direction = float(direction)
    elif direction not in ("lower", "higher", None):
        raise FileFormatError(f"metric {values['key']!r} has the direction {direction!r}")
    texts = {name: str(values[name]) for name in ("unit", "summary", "formula", "source", "family")}
    return _uninstalled(str(values["key"]), str(values["task"]), direction=direction, **texts)


def _uninstalled(key: str, task: str, **known: Any) -> Metric:
    """Return a metric that is shown, but cannot be computed."""
    about = {"family": "", "direction": None, "formula": "", "source": "", **known}
    return Metric(key, task=task, **about)


def ranks(losses: Mapping[str, float]) -> dict[str, int]:
    """Return the rank of each name, 1 for the lowest loss; losses that differ only by rounding share a rank."""
    found: dict[str, int] = {}
    first, rank = 0.0, 0
    for place, name in enumerate(sorted(losses, key=losses.__getitem__), start=1):
        loss = losses[name]
        least = TIE * abs(first) if math.isinf(loss) else TIE * max(abs(loss), abs(first))
        if rank == 0 or loss - first > least:
            first, rank = loss, place
        found[name] = rank
    return found


@dataclass(frozen=True)
class Bound:
    """A bound of one metric over the runs: lowest and highest, because it depends on each run's predictions."""

    low: float
    high: float

    @property
    def common(self) -> bool:
        """True if all runs have the same bound, as they do if they share their predicted means."""
        return self.high - self.low <= 1e-9 * max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau-b between the rankings of the methods by any two judging metrics.

    MeRCI (2018) table 2's disagreement as a number.

    Attributes
    ----------
    keys : tuple of str
        Metrics that rank at least three methods, and not all equally.
    tau : tuple of tuple
        Symmetric, 1 on the diagonal; None if the two metrics have fewer than three methods in common or one of them
        ranks these all equally.
    """

    keys: tuple[str, ...]
    tau: tuple[tuple[float | None, ...], ...]

    def between(self, one: str, other: str) -> float | None:
        """Return the tau of two metrics, or None."""
        if one not in self.keys or other not in self.keys:
            return None
        return self.tau[self.keys.index(one)][self.keys.index(other)]

    def pairs(self, keys: Sequence[str]) -> list[tuple[str, str, float]]:
        """Return pairs of these metrics with their tau, most discordant first."""
        found = [(a, b, self.between(a, b)) for a, b in combinations(keys, 2)]
        return sorted(((a, b, tau) for a, b, tau in found if tau is not None), key=lambda pair: pair[2])


def agreement(places: Mapping[str, Mapping[str, int]]) -> Agreement:
    """Return the agreement of metrics, given each metric's rank of each method."""
    keys = [key for key, found in places.items() if len(found) >= FEWEST and len(set(found.values())) > 1]
    known: dict[tuple[str, str], float | None] = {(key, key): 1.0 for key in keys}
    for a, b in combinations(keys, 2):
        known[a, b] = known[b, a] = _tau(places[a], places[b])
    return Agreement(tuple(keys), tuple(tuple(known[a, b] for b in keys) for a in keys))


def _tau(one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    from scipy.stats import kendalltau

    common = [name for name in one if name in other]
    first, second = [one[name] for name in common], [other[name] for name in common]
    if len(common) < FEWEST or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(kendalltau(first, second, variant="b").statistic)


@dataclass(frozen=True)
class MethodVerdict:
    """The verdict on a method.

    Attributes
    ----------
    calibration, ranking : str
        As in the reports' verdicts; for several runs, the most frequent one.
    text : str
        Sentences; for several runs, the counts of each verdict.
    scale : float or None
        Factor by which standard deviations should be multiplied; for several runs, the median.
    recovered : float or None
        Share of the oracle's gain that sorting by uncertainty achieves; for several runs, the median.
    """

    calibration: str
    ranking: str
    text: str
    scale: float | None = None
    recovered: float | None = None


def _verdict(runs: Sequence[ScoredRun]) -> MethodVerdict:
    verdicts = [run.report.verdict for run in runs]
    scales = [verdict.scale.value for verdict in verdicts if verdict.scale is not None]
    shares = [verdict.recovered for verdict in verdicts if verdict.recovered is not None]
    scale, recovered = (median(found) if found else None for found in (scales, shares))
    calibration = Counter[str](verdict.calibration for verdict in verdicts)
    ranking = Counter[str](verdict.ranking for verdict in verdicts)
    most, often = (counter.most_common(1)[0][0] for counter in (calibration, ranking))
    if len(verdicts) == 1:
        return MethodVerdict(most, often, verdicts[0].text, scale, recovered)
    plain = words.short(most, None, "", None)
    middle = words.short(most, scale, "", None) if len(calibration) == 1 else plain
    factor = f" ({middle.split()[0]} in the median)" if middle != plain else ""
    text = (
        f"Of {len(verdicts)} runs, {_counted(calibration)}{factor}; ranking of errors: {_counted(ranking)}."
    )
    return MethodVerdict(most, often, text, scale, recovered)


def _counted(counter: Counter[str]) -> str:
    if len(counter) == 1:
        return f"all {next(iter(counter))}"
    return ", ".join(f"{count} {word}" for word, count in counter.most_common())


def _places(part: Mapping[str, Sequence[ScoredRun]], metric: Metric) -> dict[str, int]:
    return {} if metric.direction is None else ranks(mean_losses(part, metric))


@dataclass(frozen=True)
class Facts:
    """Facts of a comparison; attributes as those of `Comparison`, which shows them."""

    task: str
    runs: tuple[ScoredRun, ...]
    metrics: tuple[Metric, ...]
    headline: tuple[str, ...]
    level: float = 0.95
    baseline: str | None = None
    differences: tuple[Difference, ...] = ()
    ties: tuple[Difference, ...] = ()
    answer: tuple[str, ...] = ()
    maps: tuple[MapCase, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: tuple[SkippedRun, ...] = ()
    sources: tuple[str, ...] = ()

    @cached_property
    def sorted_by(self) -> Metric | None:
        """The metric that rows are sorted by; None if none judges.

        The first judging one of those chosen, else the first scoring rule: it judges predictions and uncertainties
        together, so no method comes first by only one of the two.
        """
        judging = [metric for metric in self.shown() if metric.direction is not None]
        rules = [metric for metric in judging if metric.family == "scoring"]
        nobody_chose = self.headline == headline_keys(self.metrics, self.runs)
        return next(iter(rules if nobody_chose and rules else judging), None)

    @cached_property
    def groups(self) -> dict[str, list[ScoredRun]]:
        """The runs of each method; the best by ``sorted_by`` comes first, of the test split if there are several."""
        groups, first = by_method(self.runs), self.sorted_by
        losses = {} if first is None else mean_losses(groups, first)
        best = {name: groups[name] for name in (*sorted(losses, key=losses.__getitem__), *groups)}
        return {name: groups[name] for part in by_part(best, data_of(self.runs)) for name in part}

    @cached_property
    def parts(self) -> list[dict[str, Sequence[ScoredRun]]]:
        """The runs of each method, by the splits or outputs that are not ranked against each other."""
        return by_part(self.groups, data_of(self.runs))

    @cached_property
    def looks(self) -> dict[str, int]:
        """The place in the palette of each method's color, as in the tracker; from 8 on with other dashes."""
        return looks_of(self.groups)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, the best by ``sorted_by`` first."""
        return tuple(self.groups)

    def shown(self, keys: MetricKeys = None) -> list[Metric]:
        """Return the metrics to show: the headline, those named, or ``"all"``; UnknownMetricError for others."""
        known = {metric.key: metric for metric in self.metrics}
        names = self.headline if keys is None else as_names("metrics", keys)
        if names == ("all",):
            return list(self.metrics)
        check_known(names, known, "the comparison has no metric called", f"it has {', '.join(known)}")
        return [known[key] for key in names]

    @cached_property
    def ordered_metrics(self) -> tuple[Metric, ...]:
        """All metrics, those of the headline first."""
        first = self.shown()
        return (*first, *(metric for metric in self.metrics if metric not in first))

    @cached_property
    def ranks(self) -> dict[str, dict[str, int]]:
        """Rank of each method by each judging metric, 1 for the best; without methods that have no value."""
        return {
            metric.key: {name: place for part in self.parts for name, place in _places(part, metric).items()}
            for metric in self.ordered_metrics
        }

    @cached_property
    def bounds(self) -> dict[str, dict[str, Bound]]:
        """Scores of an uncertainty equal to the error, and of a constant one (MeRCI 2018, table 1), if known."""
        found: dict[str, dict[str, Bound]] = {}
        for name in ("oracle", "constant"):
            for metric in self.metrics:
                bound = getattr(metric, name)
                scores = [run.report.scores for run in self.runs if metric.key in run.report.scores]
                values = [bound(known) if callable(bound) else bound for known in scores]
                known = [value for value in values if value is not None]
                if known:
                    found.setdefault(name, {})[metric.key] = Bound(min(known), max(known))
        return found

    @cached_property
    def _every_verdict(self) -> dict[str, MethodVerdict]:
        return {name: _verdict(runs) for name, runs in self.groups.items()}

    @property
    def verdicts(self) -> dict[str, MethodVerdict]:
        """Whether each method is over- or underconfident and knows where it errs, if that can be judged."""
        return {name: found for name, found in self._every_verdict.items() if found.calibration != UNJUDGED}

    @property
    def unjudged(self) -> dict[str, str]:
        """Why each of the other methods has no verdict."""
        return {
            name: found.text for name, found in self._every_verdict.items() if found.calibration == UNJUDGED
        }

    @cached_property
    def agreement(self) -> Agreement:
        """How similarly the metrics rank the methods, of the first split if there are more."""
        return agreement({metric.key: _places(self.parts[0], metric) for metric in self.ordered_metrics})

    @cached_property
    def curves(self) -> dict[str, Overlay]:
        """Curves of all runs by name, ready to be overlaid."""
        return overlays(self.runs)

    @cached_property
    def tied_with_best(self) -> Mapping[str, frozenset[str]]:
        """Methods not distinguishable from the best one, which is included, by metric.

        Equally good methods are all included in a share ``level`` of cases, however many there are.
        """
        found: dict[str, set[str]] = {}
        for tie in self.ties:
            if tie.verdict != "unknown":
                found.setdefault(tie.metric, set()).add(tie.reference)
            if tie.verdict == "indistinguishable":
                found[tie.metric].add(tie.method)
        return {key: frozenset(names) for key, names in found.items()}

    def difference(self, method: str, key: str) -> Difference | None:
        """Return the difference of a method to the baseline in one metric, or None."""
        return self._differences.get((method, key))

    @cached_property
    def _differences(self) -> dict[tuple[str, str], Difference]:
        return {(found.method, found.metric): found for found in self.differences}

    @property
    def unit(self) -> str | None:
        """Unit of the target, or None."""
        units = {run.report.settings.get("unit") for run in self.runs}
        unit = units.pop() if len(units) == 1 else None
        return None if unit is None else str(unit)
