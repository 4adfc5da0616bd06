"""Warnings when runs were not scored alike: other data, settings, statistics or versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from uq_tracking.comparison.rows import ScoredRun

SETTINGS = ("alpha", "n_bins", "family", "dof", "std_floor", "unit")
NAMED = 4
"""Runs that a warning names of each kind."""


def differences(runs: Sequence[ScoredRun]) -> list[str]:
    """One sentence for everything in which the runs were not scored alike."""
    return list(_differences(runs))


def same_data(runs: Sequence[ScoredRun]) -> bool:
    """Whether all runs are known to be scored on the same targets."""
    digests = {_target_digest(run) for run in runs}
    return len(digests) == 1 and digests != {None}


def _differences(runs: Sequence[ScoredRun]) -> Iterator[str]:
    yield from _data(runs)
    for name in SETTINGS:
        if name == "dof" and not any(run.report.settings.get("family") == "student_t" for run in runs):
            continue
        yield from _differ(
            runs,
            lambda run, name=name: run.report.settings.get(name),  # type: ignore[misc]
            f"{name} differs",
            "score all runs with the same settings",
        )
    yield from _differ(
        runs,
        lambda run: run.report.provenance.get("statistics"),
        "Statistics differ in kind",
        "differences within a sketch's accuracy mean nothing",
    )
    for name in ("schema", "version"):
        yield from _differ(
            runs,
            lambda run, name=name: run.report.provenance.get(name),  # type: ignore[misc]
            f"The {name} of uq_tracking differs",
            "definitions may have changed; rescore the runs with one version",
        )


def _data(runs: Sequence[ScoredRun]) -> Iterator[str]:
    counted = list(
        _differ(
            runs,
            lambda run: f"{run.report.counts.get('n', 0):,} samples",
            "Scored on different data",
            "ranks and differences compare the data as much as the methods",
        )
    )
    yield from counted or _differ(
        [run for run in runs if _target_digest(run) is not None],
        _target_digest,
        "Scored on different data (digest of the targets)",
        "ranks and differences compare the data as much as the methods",
    )
    unknown = [run for run in runs if _target_digest(run) is None]
    if unknown and not counted and len(runs) > 1:
        yield (
            f"Whether the data are the same cannot be told: no digest of the targets in the report of "
            f"{_named(unknown)}."
        )


def _target_digest(run: ScoredRun) -> str | None:
    digest = run.report.provenance.get("target_digest")
    return None if digest is None else str(digest)


def _differ(runs: Sequence[ScoredRun], of: Callable[[ScoredRun], Any], what: str, so: str) -> Iterator[str]:
    groups: dict[str, list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(_shown(of(run)), []).append(run)
    if len(groups) > 1:
        parts = "; ".join(f"{value}: {_named(group)}" for value, group in groups.items())
        yield f"{what} ({so}). {parts}."


def _shown(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _named(runs: Sequence[ScoredRun]) -> str:
    names = [run.label for run in runs]
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
