"""Which runs are the seeds or folds of one method, and what methods are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from uq_tracking.comparison.runs import ScoredRun, SkippedRun, by_method
from uq_tracking.formatting import run_text


def once(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], list[SkippedRun]]:
    """Of a method's runs with the same predictions, only the last one; and why the others are skipped.

    The same predictions are not a second seed, however they were scored.
    """
    last = {_predictions(run): run for run in runs}
    repeats = [
        SkippedRun(run.label, run.uri or "", f"it holds the same predictions as {_later(kept)}, which counts")
        for run in runs
        if (kept := last[_predictions(run)]) is not run
    ]
    return list(last.values()), repeats


def _later(run: ScoredRun) -> str:
    return "a later report" if run.uri is None else run_text(run.label, run.uri)


def _predictions(run: ScoredRun) -> tuple[object, ...]:
    """What identifies the predictions of a run; without a digest in its report, the run itself."""
    digest = run.report.provenance.get("digest")
    return (id(run),) if digest is None else (run.method, run.split, digest)


def named(runs: Iterable[ScoredRun]) -> list[ScoredRun]:
    """The runs with unique labels and the final names of their methods.

    A run without a method forms one of its own, even if other runs have the same name. If the runs of a method are
    of several splits or outputs, each of these is a method: scores of different data are never averaged.
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
    """The runs; those without a method are given a name that no other method has."""
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
    """The name, with ``(2)``, ``(3)`` ... appended if it is taken; adds it to those taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    taken.add(found)
    return found
