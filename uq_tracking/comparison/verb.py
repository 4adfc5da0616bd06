"""The function `compare`: read runs and compare them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from uq_tracking.checks import check_callable, check_text
from uq_tracking.comparison import comparability
from uq_tracking.comparison.differences import Difference, difference
from uq_tracking.comparison.methods import named, once
from uq_tracking.comparison.metrics import headline, metrics_of
from uq_tracking.comparison.paired import PairedGroups, paired_groups
from uq_tracking.comparison.result import Comparison
from uq_tracking.comparison.runs import RunSource, ScoredRun, SkippedRun, by_method, collect
from uq_tracking.comparison.table import mean_loss
from uq_tracking.errors import BackendError, SettingsError, closest
from uq_tracking.metrics.registry import Metric
from uq_tracking.runs.read import LoggedRun
from uq_tracking.settings import check_level, check_seed
from uq_tracking.streams.map_samples import checked_maps
from uq_tracking.tracking.cases import Maps
from uq_tracking.tracking.names import check_split


def compare(
    *sources: RunSource,
    where: str | None = None,
    split: str | None = None,
    baseline: str | None = None,
    metrics: Iterable[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
    maps: Maps = "auto",
    progress: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Compare uncertainty methods side by side: ranks, bounds, differences, agreement, curves and maps.

    Runs are grouped by their tag ``uq.method``; the runs of a method differ, say, by seed, and are shown as mean and
    spread. A run without the tag is a method of its own, called by its name. Runs with no report, or a damaged one,
    are listed in ``skipped``.

    Parameters
    ----------
    *sources : str, LoggedRun or mapping of str to Report
        Addresses (``mlflow:EXPERIMENT``, ``mlflow:EXPERIMENT/RUN_ID``, ``wandb:ENTITY/PROJECT``, ``dir:PATH``),
        logged runs, or reports by method; a list of reports stands for several runs of the method.
    where : str, optional
        Filter expression, in the tracker's own syntax.
    split : str, optional
        Which of the runs' splits or outputs to compare. By default what a run holds without a split; if it holds only
        splits or outputs, the only one, or each as its own method.
    baseline : str, optional
        The method to compare the others with, with intervals of the differences.
    metrics : iterable of str, optional
        Keys of the metrics to compare; by default all that the runs have. Rows are sorted by the first judging metric
        given, by default by the first scoring rule.
    level : float
        Confidence level of the intervals.
    seed : int
        Seed of the resamples that show how large the largest of many differences is by chance.
    maps : "auto", bool, int or list of int
        Which cases of spatial predictions to draw; "auto" draws up to two. This downloads the predictions of one run
        per method; False reads only reports.
    progress : callable, optional
        Called with the name of each run read, and the number read so far.

    Returns
    -------
    Comparison

    Raises
    ------
    BackendError
        There are no runs to compare, or no backend handles an address.
    SettingsError
        The baseline is not one of the methods, or an option is out of range.
    UnknownMetricError
        No run has one of the requested metrics.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> truth, mean = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6]
    >>> good, bad = uq.evaluate(truth, mean, [0.1, 0.2, 0.3, 0.4]), uq.evaluate(truth, mean, [1, 1, 1, 1])
    >>> comparison = uq.compare({"informed": good, "constant": bad}, metrics=["nll", "ause_rmse"])
    >>> comparison.methods, comparison.table["constant"]["nll"].rank
    (('informed', 'constant'), 2)
    """
    check_split(split)
    check_text("baseline", baseline, "the name of a method")
    check_callable("progress", progress)
    check_level(level)
    if not sources:
        raise SettingsError(
            "nothing to compare; pass addresses such as mlflow:EXPERIMENT, or reports by method"
        )
    check_seed(seed)
    found, skipped = collect(sources, where, split, progress)
    runs, others = _of_one_task(found)
    runs, repeats = once(runs)
    runs = named(runs)
    skipped += [*others, *repeats]
    if not runs:
        raise BackendError(_nothing(sources, skipped))
    groups = by_method(runs)
    if baseline is not None and baseline not in groups:
        raise SettingsError(
            f"baseline {baseline!r} is not a method here; choose from {', '.join(groups)}{closest(baseline, groups)}"
        )
    task = runs[0].report.task
    chosen = comparability.judged(metrics_of(runs, task, metrics), runs)
    paired, unpaired = paired_groups(runs, chosen, seed)
    pairs = Pairs(paired, level)
    drawn, problems = _maps(groups, cast(Maps, checked_maps(maps)))
    return Comparison(
        task=task,
        runs=tuple(runs),
        metrics=tuple(chosen),
        headline=tuple(m.key for m in chosen) if metrics is not None else headline(chosen),
        level=level,
        baseline=baseline,
        differences=_against(groups, chosen, baseline, pairs),
        ties=_ties(groups, chosen, pairs),
        maps=drawn,
        warnings=(*comparability.warnings(runs), *unpaired, *problems),
        skipped=tuple(skipped),
        sources=tuple(_named(source) for source in sources),
    )


def _of_one_task(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], list[SkippedRun]]:
    """Runs of the same task as the first run; the others cannot be compared with them."""
    task = runs[0].report.task if runs else None
    others = [
        SkippedRun(run.label, run.uri or "", f"it scores {run.report.task}, but the first run scores {task}")
        for run in runs
        if run.report.task != task
    ]
    return [run for run in runs if run.report.task == task], others


def _nothing(sources: Sequence[RunSource], skipped: Sequence[SkippedRun]) -> str:
    names = ", ".join(_named(source) for source in sources)
    if not skipped:
        return f"{names}: there are no runs to compare"
    reasons = "; ".join(f"{run.label}: {run.reason}" for run in skipped[:3])
    more = f"; and {len(skipped) - 3} more" if len(skipped) > 3 else ""
    return f"{names}: none of {len(skipped)} runs can be compared. {reasons}{more}"


def _named(source: Any) -> str:
    if isinstance(source, LoggedRun):
        return source.stored.uri
    return source if isinstance(source, str) else "reports of this process"


@dataclass(frozen=True)
class Pairs:
    """Computes differences between two methods."""

    paired: PairedGroups
    level: float

    def difference(
        self, one: Sequence[ScoredRun], other: Sequence[ScoredRun], metric: Metric, methods: int = 2
    ) -> Difference | None:
        """The difference in one metric, with the best interval that the runs allow, jointly for so many methods."""
        level = 1 - (1 - self.level) / math.comb(methods, 2)
        paired = self.paired.limits(one, other, metric, level)
        return difference(one, other, metric, self.level, paired, methods)

    def ties(self, groups: Mapping[str, Sequence[ScoredRun]], metric: Metric) -> list[Difference]:
        """Differences of all methods to the best one, with verdicts that hold for all pairs jointly.

        By the largest studentised difference, over groups if those of all runs are known, else over runs. If only
        some methods have several runs, what is paired over groups is tested at the level divided by the number of
        pairs (Bonferroni).
        """
        losses = {name: mean_loss(runs, metric) for name, runs in groups.items()}
        known = {name: loss for name, loss in losses.items() if loss is not None and math.isfinite(loss)}
        if len(known) < 2:
            return []
        best = min(known, key=known.__getitem__)
        found = [
            self.difference(groups[name], groups[best], metric, len(known)) for name in known if name != best
        ]
        differences = [item for item in found if item is not None]
        if any(item.how not in ("paired groups", "none") for item in differences):
            return differences
        tied = self.paired.tied({name: groups[name] for name in known}, metric, self.level)
        if tied is None:
            return differences
        return [
            replace(item, verdict="indistinguishable" if item.method in tied else "worse")
            for item in differences
        ]


def _against(
    groups: Mapping[str, Sequence[ScoredRun]], metrics: Sequence[Metric], baseline: str | None, pairs: Pairs
) -> tuple[Difference, ...]:
    """Differences of every other method to the baseline."""
    if baseline is None:
        return ()
    found = [
        pairs.difference(runs, groups[baseline], metric)
        for name, runs in groups.items()
        if name != baseline
        for metric in metrics
        if metric.direction is not None
    ]
    return tuple(item for item in found if item is not None)


def _ties(
    groups: Mapping[str, Sequence[ScoredRun]], metrics: Sequence[Metric], pairs: Pairs
) -> tuple[Difference, ...]:
    """Differences of every other method to the best one, for each judging metric."""
    found: list[Difference] = []
    for metric in metrics:
        if metric.direction is not None:
            found += pairs.ties(groups, metric)
    return tuple(found)


def _maps(groups: Mapping[str, Sequence[ScoredRun]], maps: Maps) -> tuple[Any, list[str]]:
    if maps is False:
        return (), []
    from uq_tracking.comparison.maps import map_cases

    return map_cases(groups, maps)
