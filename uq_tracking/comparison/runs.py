"""The runs of a comparison: read from what a user names, each once, with the names of their methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from statistics import fmean
from typing import Any, TypeAlias, TypeVar

from uq_tracking.curves.spec import is_overlaid
from uq_tracking.errors import BackendError, FileFormatError, InputTypeError, TrackerUnreachableError
from uq_tracking.formatting import COLORS, looks, run_text, some_of
from uq_tracking.metrics.registry import Metric, is_infinite
from uq_tracking.report import Report, same_targets, targets_of
from uq_tracking.runs.read import LoggedRun, logged_runs
from uq_tracking.tracking.names import split_order

T = TypeVar("T")

RunSource: TypeAlias = "str | LoggedRun | Mapping[str, Report | Iterable[Report]]"
"""An address, a logged run, or reports by method."""

ALTERED = (
    "its report does not hold the scores that were logged: it was altered, or its writing was interrupted; "
    "uq.rescore makes it anew or says what differs"
)


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """One run of a method, and its report without statistics; equal to another with equal ``to_dict()``.

    Attributes
    ----------
    label : str
        Name of the run, unique within a comparison.
    method : str
        Name of the method; its runs differ only by seed, fold or shard. The run's name if it has no method.
    uri : str or None
        Where the run is logged; None for a report passed directly.
    report : Report
    split : str or None
        The split or output that the report covers.
    color : str or None
        The color in which the tracker shows the run, as ``#rrggbb``, if it is known.
    logged : LoggedRun or None
        Gives access to what else the run stored; None in a comparison read from a file.
    """

    label: str
    method: str
    uri: str | None
    report: Report
    split: str | None = None
    color: str | None = None
    logged: LoggedRun | None = field(default=None, repr=False)

    def score(self, metric: Metric) -> float | None:
        """Return the value of a score, infinite if it is infinitely bad; None without one."""
        if is_infinite(self.report.undefined.get(metric.key, "")):
            return -math.inf if metric.direction == "higher" else math.inf
        return self.report.scores.get(metric.key)

    @property
    def of_half(self) -> bool:
        """True if scores after recalibration are of the half of the samples to which nothing was fitted."""
        return any("split" in entry for entry in self.report.scored_methods().values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        curves = {k: curve for k, curve in self.report.curves.items() if is_overlaid(k, self.report.task)}
        names = ("label", "method", "uri", "split", "color")
        shown = {name: curve.to_dict() for name, curve in curves.items()}
        report = {**self.report.to_dict(), "curves": shown, "blocks": None}
        return {name: getattr(self, name) for name in names} | {"report": report}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScoredRun) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.label, self.method, self.uri, self.split))


@dataclass(frozen=True)
class SkippedRun:
    """A run that is not compared, and why."""

    label: str
    uri: str
    reason: str


def by_method(runs: Iterable[ScoredRun]) -> dict[str, list[ScoredRun]]:
    """Return the runs of each method, in order of appearance."""
    return by_value(runs, lambda run: run.method)


def values_of(runs: Iterable[ScoredRun], metric: Metric) -> list[float]:
    """Return the values of the runs that have one."""
    return [value for run in runs if (value := run.score(metric)) is not None]


def losses_of(runs: Iterable[ScoredRun], metric: Metric) -> list[float]:
    """Return the values, transformed so that lower is better."""
    return [metric.loss(value) for value in values_of(runs, metric)]


def mean_losses(groups: Mapping[str, Sequence[ScoredRun]], metric: Metric) -> dict[str, float]:
    """Return the mean over a method's runs of the value, transformed so that lower is better; none without values.

    With a target, the mean of the distances to it: two runs that miss a target on either side are not as good as two
    that meet it. Infinite if it is so for one of the runs. A score better than its oracle's is no merit and does not
    rank (`Metric.below_oracle`).
    """
    return {
        name: fmean(losses)
        for name, runs in groups.items()
        if (losses := losses_of(runs, metric))
        and not any(metric.below_oracle(run.report.scores) for run in runs)
    }


def by_value(runs: Iterable[ScoredRun], of: Callable[[ScoredRun], T]) -> dict[T, list[ScoredRun]]:
    """Return the runs of each value, in order of appearance."""
    groups: dict[T, list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(of(run), []).append(run)
    return groups


def data_of(runs: Sequence[ScoredRun]) -> dict[str, int]:
    """Return the number of the targets of each run, by label; nothing if some report does not describe them."""
    if any(targets_of(run.report) is None for run in runs):
        return {}
    first: list[ScoredRun] = []
    found: dict[str, int] = {}
    for run in runs:
        known = (k for k, other in enumerate(first) if same_targets(other.report, run.report))
        found[run.label] = next(known, len(first))
        first += [run] if found[run.label] == len(first) else []
    return found


def set_of(run: ScoredRun, data: Mapping[str, int]) -> tuple[int | None, bytes | None]:
    """Return what tells the test set of a run: sets of equal shares of classes differ by their order."""
    blocks = run.report.blocks if run.report.task == "classification" else None
    return data.get(run.label), None if blocks is None else blocks.targets.tobytes()


def by_order(runs: Sequence[ScoredRun], data: Mapping[str, int]) -> Mapping[str, int]:
    """Return the number of each run's targets; where all methods have runs of each order, as of folds, of its own."""
    sets = list(by_value(runs, lambda run: set_of(run, data)).values())
    if not data or len({frozenset(run.method for run in each) for each in sets}) > 1:
        return data
    return {run.label: number for number, each in enumerate(sets) for run in each}


def is_alike(one: Sequence[ScoredRun], other: Sequence[ScoredRun], data: Mapping[str, int]) -> bool:
    """Return whether two methods have runs of the same split, or of the same targets."""
    mine, theirs = (
        {run.split for run in runs} | {data[run.label] for run in runs if run.label in data}
        for runs in (one, other)
    )
    return not mine.isdisjoint(theirs)


def by_part(
    groups: Mapping[str, Sequence[ScoredRun]], data: Mapping[str, int]
) -> list[dict[str, Sequence[ScoredRun]]]:
    """Return the methods of each split or output, the test split first: only these are ranked against each other.

    So are those of each set of targets, where each method has one set and shares it with others.
    """
    groups = dict(sorted(groups.items(), key=lambda item: split_order(item[1][0].split)))
    sets = by_value(chain.from_iterable(groups.values()), lambda run: data.get(run.label, run.split))
    parts = [{run.method: groups[run.method] for run in each} for each in sets.values()]
    if min(map(len, parts), default=0) > 1 and sum(map(len, parts)) == len(groups):
        return parts
    parts = []
    for name, runs in groups.items():
        known = (part for part in parts if is_alike(runs, next(iter(part.values())), data))
        part = next(known, None)
        if part is None:
            parts.append({name: runs})
        else:
            part[name] = runs
    return parts


def looks_of(groups: Mapping[str, Sequence[ScoredRun]]) -> dict[str, int]:
    """Return the place in the palette of each method's color: that of the tracker, else by name.

    The splits of a method have its color with other dashes.
    """
    whole = {name: name.removesuffix(f" [{runs[0].split}]") for name, runs in groups.items()}
    given: dict[str, int] = {}
    for name, runs in groups.items():
        color = (runs[0].color or "").lower()
        if color in COLORS and COLORS.index(color) not in given.values():
            given.setdefault(whole[name], COLORS.index(color))
    places = looks(whole.values(), given)
    found: dict[str, int] = {}
    for name in groups:
        place = places[whole[name]]
        found[name] = next(k for k in count(place, len(COLORS)) if k not in found.values())
    return found


def collect(
    sources: Iterable[RunSource],
    where: str | None = None,
    split: str | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> tuple[list[ScoredRun], list[SkippedRun]]:
    """Read the reports of all sources, of the task of the first; return runs with unique labels, and those skipped.

    A run that is named twice is read once.

    Raises InputTypeError if a source is not a URI, a logged run or a mapping of names to reports, and BackendError if
    no backend handles a URI, or its tracker does not answer.
    """
    found: list[ScoredRun | SkippedRun] = []
    seen: set[tuple[str, str | None]] = set()
    for source in sources:
        if isinstance(source, Mapping):
            found += _given(source)
            continue
        for logged in _logged(source, where, split):
            if (logged.stored.uri, logged.split) in seen:
                continue
            seen.add((logged.stored.uri, logged.split))
            if progress is not None:
                progress(logged.name, len(seen))
            found += _scored(logged)
    runs = [run for run in found if isinstance(run, ScoredRun)]
    task = runs[0].report.task if runs else ""
    skipped = [run for run in found if isinstance(run, SkippedRun)]
    skipped += [
        SkippedRun(run.label, run.uri or "", f"it scores {run.report.task}, but the first run scores {task}")
        for run in runs
        if run.report.task != task
    ]
    runs, repeats = once([run for run in runs if run.report.task == task])
    return named(runs), [*skipped, *repeats]


def _given(reports: Mapping[str, Any]) -> Iterator[ScoredRun]:
    for method, value in reports.items():
        if isinstance(value, Mapping) and value:
            raise InputTypeError(
                f"{method!r} names reports of {some_of(value, 3)}; compare one at a time: pass "
                f"reports[{next(iter(value))!r}] of each method"
            )
        for report in value if isinstance(value, Iterable) else [value]:
            if not isinstance(report, Report):
                raise InputTypeError(
                    f"{method!r} names a {type(report).__name__}; pass a Report or a list of Reports"
                )
            yield ScoredRun(str(method), str(method), None, report)


def _logged(source: Any, where: str | None, split: str | None) -> Iterable[LoggedRun]:
    if isinstance(source, LoggedRun):
        return [source if split is None else replace(source, split=split)]
    if isinstance(source, str):
        return logged_runs(source, where=where, split=split)
    cure = 'pass {"a name": report}' if isinstance(source, Report) else "see uq.compare"
    raise InputTypeError(
        f"cannot compare a {type(source).__name__}: sources are addresses such as mlflow:EXPERIMENT or dir:PATH, "
        f"logged runs, and mappings of names to reports; {cure}"
    )


def _scored(run: LoggedRun) -> list[ScoredRun | SkippedRun]:
    """Read a run's report; if it has none at this level, those of its splits or outputs."""
    uri = run.stored.uri
    try:
        report = run.report()
        if run.matches(report) is False:
            return [SkippedRun(run.name, uri, ALTERED)]
        return [ScoredRun(run.name, run.method or run.name, uri, report, run.split, run.stored.color, run)]
    except TrackerUnreachableError:
        raise  # every further run would wait for the same tracker
    except FileNotFoundError:
        return _below(run)
    except FileFormatError as error:
        return [SkippedRun(run.name, uri, f"its report cannot be read: {error}")]
    except Exception as error:  # a single run may fail in any way; the others are still compared
        return [SkippedRun(run.name, uri, f"{type(error).__name__}: {error}")]


def _below(run: LoggedRun) -> list[ScoredRun | SkippedRun]:
    """Read the splits or outputs of a run without its own report; nothing for a comparison's run."""
    try:
        if run.holds_comparison():
            return []
    except BackendError as error:
        return [SkippedRun(run.name, run.stored.uri, str(error))]
    if splits := run.splits():
        return [item for split in splits for item in _scored(replace(run, split=split))]
    return [SkippedRun(run.name, run.stored.uri, f"it has {run.lacking()}")]


def once(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], list[SkippedRun]]:
    """Return only the last one of a method's runs with the same predictions; and why the others are skipped.

    The same predictions are not a second seed, however they were scored.
    """
    last = {_predictions(run): run for run in runs}
    repeats = []
    for run in runs:
        counted = last[_predictions(run)]
        if counted is not run:
            name = "a later report" if counted.uri is None else run_text(counted.label, counted.uri)
            reason = f"it holds the same predictions as {name}, which counts"
            repeats.append(SkippedRun(run.label, run.uri or "", reason))
    return list(last.values()), repeats


def _predictions(run: ScoredRun) -> tuple[object, ...]:
    """Return what identifies the predictions of a run; without a digest in its report, the run itself."""
    digest = run.report.provenance.get("digest")
    return (id(run),) if digest is None else (run.method, run.split, digest)


def named(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Return the runs with unique labels and the final names of their methods.

    A run without a method forms one of its own, even if other runs have the same name. If the runs of a method are
    of several splits or outputs, each of these is a method: scores of different data are never averaged.
    """
    has_method = [run.logged is None or run.logged.method is not None for run in runs]
    taken = {run.method for run, has in zip(runs, has_method, strict=True) if has}
    own: dict[str | None, str] = {}
    apart = []
    for run, has in zip(runs, has_method, strict=True):
        if not has and run.uri not in own:
            own[run.uri] = _unique(run.method, taken)
        apart.append(run if has else replace(run, label=own[run.uri], method=own[run.uri]))
    splits = {name: {run.split for run in group} for name, group in by_method(apart).items()}
    ends = [f" [{run.split}]" if run.split and len(splits[run.method]) > 1 else "" for run in apart]
    labels: set[str] = set()
    return [
        replace(run, label=_unique(run.label + end, labels), method=run.method + end)
        for run, end in zip(apart, ends, strict=True)
    ]


def _unique(name: str, taken: set[str]) -> str:
    """Return the name, with ``(2)``, ``(3)`` ... appended if it is taken; add it to those taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    taken.add(found)
    return found
