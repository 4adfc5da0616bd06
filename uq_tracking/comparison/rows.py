"""The runs of a comparison: those with a report, and those without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from uq_tracking.curves.spec import is_overlaid
from uq_tracking.report import Report

if TYPE_CHECKING:
    from uq_tracking.logged_run import LoggedRun


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """One run of a method, and its report without statistics.

    Attributes
    ----------
    label : str
        Name of the run, unique within the comparison.
    method : str
        Runs of one method differ by the seed, the fold or the shard only.
    uri : str or None
        Where the run is logged; None for a report that was given as it is.
    report : Report
    logged : LoggedRun or None
        Reads what else the run stored; None in a comparison that was read from a file.
    """

    label: str
    method: str
    uri: str | None
    report: Report
    logged: LoggedRun | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        curves = {k: curve for k, curve in self.report.curves.items() if is_overlaid(k, self.report.task)}
        report = replace(self.report, curves=curves).to_dict()
        return {"label": self.label, "method": self.method, "uri": self.uri, "report": report}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ScoredRun:
        """Inverse of ``to_dict``."""
        uri = values["uri"]
        return cls(
            label=str(values["label"]),
            method=str(values["method"]),
            uri=None if uri is None else str(uri),
            report=Report.from_dict(values["report"]),
        )


@dataclass(frozen=True)
class Skipped:
    """A run that is not compared, and why."""

    label: str
    uri: str
    reason: str


def by_method(runs: Iterable[ScoredRun]) -> dict[str, list[ScoredRun]]:
    """The runs of each method, in order of appearance."""
    groups: dict[str, list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(run.method, []).append(run)
    return groups


def with_unique_labels(runs: Iterable[ScoredRun]) -> list[ScoredRun]:
    """The runs with ``(2)``, ``(3)`` ... behind a label that an earlier one has."""
    taken: set[str] = set()
    unique = []
    for run in runs:
        label, number = run.label, 2
        while label in taken:
            label, number = f"{run.label} ({number})", number + 1
        taken.add(label)
        unique.append(replace(run, label=label))
    return unique
