"""Warnings if runs were not scored alike: different data, settings, statistics or versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from uq_tracking import plugins
from uq_tracking.comparison.runs import ScoredRun, by_method, by_part, by_value, data_of
from uq_tracking.formatting import format_levels, some_of
from uq_tracking.metrics.registry import Metric
from uq_tracking.report import targets_of

SETTINGS = ("alpha", "n_bins", "family", "dof", "std_floor", "unit")
NAMED = 4
"""How many runs of each kind a warning names."""
OTHER_DATA = "ranks and differences compare the data as much as the methods"


def warnings(runs: Sequence[ScoredRun]) -> Iterator[str]:
    """Yield one sentence for each way in which the runs were not scored alike."""

    def differ(head: str, of: Callable[..., Any]) -> Iterator[str]:
        if groups := _by_value(runs, of):
            yield f"{head}. {groups}."

    yield from differ("Splits or outputs differ (choose one with split=)", lambda run: run.split)
    if not _share_data(runs):
        yield from differ(
            f"Scored on different data ({OTHER_DATA})",
            lambda run: f"{run.report.counts.get('n', 0):,} samples",
        )
        for of_number in by_value(runs, lambda run: run.report.counts.get("n")).values():
            yield from _weights_or_targets(of_number)
    yield from differ(
        "Forms of the predictions differ (to compare like with like, log all methods in one form)",
        lambda run: run.report.settings.get("distribution") or "mean and std",
    )
    lost = ", ".join(_not_comparable(runs))
    not_ranked = f"not ranked, as they depend on the levels: {lost}; " if lost else ""
    yield from differ(
        f"Levels of quantiles differ ({not_ranked}log all methods as quantiles at the same levels, or compare "
        "those of the same levels apart)",
        _levels,
    )
    has_dof = any(run.report.settings.get("family") == "student_t" for run in runs)
    for name in SETTINGS:
        if name != "dof" or has_dof:
            yield from differ(
                f"{name} differs (rescore the runs with the same settings)",
                lambda run, name=name: run.report.settings.get(name),
            )
    yield from differ(
        "Statistics differ in kind (differences within a sketch's accuracy mean nothing)",
        lambda run: run.report.provenance.get("statistics"),
    )
    for name in ("schema", "version"):
        yield from differ(
            f"The {name} of uq_tracking differs (rescore the runs with a single version)",
            lambda run, name=name: run.report.provenance.get(name),
        )
    half = [run for run in runs if run.of_half]
    if half:
        yield (
            "Scores after recalibration are of the half of the samples to which nothing was fitted: compare them "
            f"with those of the same half before, not with scores of all samples. {_named(half)}."
        )


def _share_data(runs: Sequence[ScoredRun]) -> bool:
    """Return whether all methods are known to have equally many runs on each set of targets, as of folds."""
    data = data_of(runs)
    sets = by_value(
        runs, lambda run: (data.get(run.label), _key(run.report.counts.get("n_effective")))
    ).values()
    methods = [Counter(run.method for run in each) for each in sets]
    return bool(data) and all(each == methods[0] for each in methods)


def judged(metrics: Sequence[Metric], runs: Sequence[ScoredRun]) -> list[Metric]:
    """Return the metrics; those that depend on the levels of quantiles have no direction if the levels differ."""
    lost = _not_comparable(runs)
    return [
        replace(
            metric, direction=None, summary=f"{metric.summary}; not ranked, as the levels of quantiles differ"
        )
        if metric.key in lost
        else metric
        for metric in metrics
    ]


def _not_comparable(runs: Sequence[ScoredRun]) -> list[str]:
    """Return scores that are computed from quantiles in some runs, and from other levels or none in others.

    From few quantiles these come out too low, as CRPS and F(y) are unknown between the levels.
    """
    return [
        metric.key
        for metric in plugins.metrics().values()
        if metric.of_levels and len({_levels(run) for run in runs if metric.key in run.report.scores}) > 1
    ]


def _levels(run: ScoredRun) -> tuple[float, ...]:
    """Return the levels of the run's quantiles, without rounding errors; empty for a whole distribution."""
    return tuple(round(level, 9) for level in run.report.settings.get("levels") or ())


def _weights_or_targets(runs: Sequence[ScoredRun]) -> Iterator[str]:
    """Yield how runs of equally many samples differ in their weights, else in their targets."""
    weighted = _by_value(runs, lambda run: run.report.counts.get("n_effective"))
    if weighted:
        yield f"Sample weights differ ({OTHER_DATA}). Effective samples: {weighted}."
        return
    known = [run for run in runs if targets_of(run.report) is not None]
    data = data_of(known)
    groups = list(by_value(known, lambda run: data[run.label]).values())
    some = [run for group in groups if len(by_method(group)) < len(by_method(known)) for run in group]
    if 0 < len(some) < len(known):
        yield f"Not all methods were scored on the targets of {_named(some)} ({OTHER_DATA})."
    elif len(groups) > 1:
        moments = [targets_of(group[0].report) or {} for group in groups]
        shown = [", ".join(f"{name} {value:.6g}" for name, value in each.items()) for each in moments]
        parts = "; ".join(f"{text}: {_named(group)}" for text, group in zip(shown, groups, strict=True))
        are_apart = len(by_part(by_method(known), data)) > 1
        yield f"Scored on different targets ({'ranked apart' if are_apart else OTHER_DATA}). {parts}."
    elif 0 < len(known) < len(runs):
        others = [run for run in runs if targets_of(run.report) is None]
        yield f"Cannot tell whether all targets are the same: not described in the report of {_named(others)}."


def _by_value(runs: Sequence[ScoredRun], of: Callable[[ScoredRun], Any]) -> str:
    """Return the runs of each value, or nothing if all share it."""
    groups = by_value(runs, lambda run: _key(of(run)))
    if len(groups) < 2:
        return ""
    return "; ".join(f"{_shown(value)}: {_named(group)}" for value, group in groups.items())


def _key(value: Any) -> Any:
    """Return what values are grouped by: the text shown, but levels themselves, as their text is shortened."""
    return value if isinstance(value, tuple) else _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"levels {format_levels(value)}" if value else "no levels"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _named(runs: Sequence[ScoredRun]) -> str:
    return some_of((run.label for run in runs), NAMED)
