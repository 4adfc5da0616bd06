"""Which runs are seeds or folds of one method, and what methods are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from uq_tracking.comparison.runs import ScoredRun, SkippedRun, by_method


def once(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], list[SkippedRun]]:
    """Runs without repeats: of a method's runs with the same predictions only the last one counts.

    However they are scored, the same predictions are no second seed.
    """
    last = {_predictions(run): run for run in runs}
    repeats = [
        SkippedRun(
            run.label,
            run.uri or "",
            f"it holds the same predictions as {last[_predictions(run)].uri or 'a later report'}, which counts",
        )
        for run in runs
        if last[_predictions(run)] is not run
    ]
    return list(last.values()), repeats


def _predictions(run: ScoredRun) -> tuple[object, ...]:
    """What two runs of the same predictions have in common; reports that do not say are all different."""
    digest = run.report.provenance.get("digest")
    return (id(run),) if digest is None else (run.method, run.split, digest)


def named(runs: Iterable[ScoredRun]) -> list[ScoredRun]:
    """The runs with the final names of their methods, and labels that are unique.

    A run without a method is one of its own, whatever other runs are called. Different splits or outputs of a
    method are methods of their own, as scores of different data are never averaged.
    """
    runs = _apart(runs)
    splits = {name: {run.split for run in group} for name, group in by_method(runs).items()}
    ends = [f" [{run.split}]" if run.split and len(splits[run.method]) > 1 else "" for run in runs]
    labels: set[str] = set()
    return [
        replace(run, label=_unique(run.label + end, labels), method=run.method + end)
        for run, end in zip(runs, ends, strict=True)
    ]


def _apart(runs: Iterable[ScoredRun]) -> list[ScoredRun]:
    """The runs with a name that no other method has for each run without a method."""
    runs = list(runs)
    taken = {run.method for run in runs if _has_method(run)}
    own: dict[str | None, str] = {}
    for run in runs:
        if not _has_method(run) and run.uri not in own:
            own[run.uri] = _unique(run.method, taken)
    return [
        run if _has_method(run) else replace(run, label=own[run.uri], method=own[run.uri]) for run in runs
    ]


def _has_method(run: ScoredRun) -> bool:
    return run.logged is None or run.logged.method is not None


def _unique(name: str, taken: set[str]) -> str:
    """The name, with ``(2)``, ``(3)`` ... behind it if it is taken already; it is taken then."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    taken.add(found)
    return found
