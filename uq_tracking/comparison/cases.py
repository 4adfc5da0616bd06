"""The same 2-D cases of every method, from what its runs stored: the cases they drew, else their predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.errors import SettingsError
from uq_tracking.inputs.base import Case, PredictionsBase, case_place
from uq_tracking.tasks import task_of
from uq_tracking.tracking.cases import Maps, choose_cases
from uq_tracking.tracking.map_file import DrawnCases
from uq_tracking.tracking.names import MAPS_FILE, PREDICTIONS_FILE

AUTO_CASES = 2

T = TypeVar("T")
CasesOfRuns = dict[int, list[tuple[ScoredRun, Case]]]
"""By the number of a case, the runs that predict it, one per method."""


@dataclass(frozen=True)
class _Stored:
    """What a run stored of its cases."""

    run: ScoredRun
    drawn: Mapping[int, Case]
    problems: list[str]
    """What it lacks, and what of it cannot be read."""

    @cached_property
    def predictions(self) -> PredictionsBase | None:
        """All predictions: much larger than the drawn cases, so read only if they are needed."""
        return _read(self.run, PREDICTIONS_FILE, task_of(self.run.report).predictions.load, self.problems)

    def case(self, number: int, shape: tuple[int, ...] | None) -> Case | None:
        """A case by its number, of predictions that must have this shape."""
        if number in self.drawn:
            return self.drawn[number]
        method, found = self.run.method, self.predictions
        if found is None:
            self.problems.append(
                f"No map of {method}, case {number}: it stored neither this case nor predictions."
            )
        elif found.shape != shape:
            self.problems.append(
                f"No maps of {method}: its predictions have shape {found.shape}, not {shape}."
            )
        else:
            return found.case(case_place(number, shape))
        return None


def same_cases(groups: Mapping[str, Sequence[ScoredRun]], maps: Maps) -> tuple[CasesOfRuns, list[str]]:
    """The chosen cases of one run per method; also which methods lack them and why.

    Raises
    ------
    SettingsError
        Maps are requested by number or index, but no run stored any, the predictions are not spatial, or have no such
        case.
    """
    problems: list[str] = []
    stored = [one for runs in groups.values() if (one := _stored(runs, problems)) is not None]
    if not stored:
        if maps == "auto":
            return {}, problems
        raise SettingsError(f"maps={maps!r}, but no run stored drawable predictions")
    numbers, shape = _numbers(stored, maps)
    found = {
        number: [(one.run, case) for one in stored if (case := one.case(number, shape)) is not None]
        for number in numbers
    }
    return {number: cases for number, cases in found.items() if cases}, problems


def _stored(runs: Sequence[ScoredRun], problems: list[str]) -> _Stored | None:
    """The first run of a method that stored anything readable."""
    known = len(problems)
    for run in runs:
        drawn = _read(run, MAPS_FILE, DrawnCases.load, problems)
        made = _Stored(run, {} if drawn is None else drawn.cases, problems)
        if made.drawn or made.predictions is not None:
            return made
    if len(problems) == known:
        problems.append(f"No maps of {runs[0].method}: it stored no predictions.")
    return None


def _numbers(stored: Sequence[_Stored], maps: Maps) -> tuple[list[int], tuple[int, ...] | None]:
    """The numbers of the cases to show, and the shape of the predictions if they were needed to choose them."""
    common = sorted(set.intersection(*(set(one.drawn) for one in stored)))
    if maps == "auto" and common:
        return common[:AUTO_CASES], None
    shape = next((one.predictions.shape for one in stored if one.predictions is not None), None)
    if shape is not None:
        chosen = choose_cases(shape, maps)
        return (chosen[:AUTO_CASES] if maps == "auto" else chosen), shape
    drawn = common or sorted(stored[0].drawn)
    if maps is True:
        return drawn, None
    if isinstance(maps, Sequence) and not isinstance(maps, str):
        return [int(number) for number in maps], None
    return drawn[: maps if isinstance(maps, int) else AUTO_CASES], None


def _read(run: ScoredRun, file: str, load: Callable[[Path], T], problems: list[str]) -> T | None:
    """One of a run's files; a damaged one or a failing tracker costs the maps, not the comparison."""
    if run.logged is None:
        return None
    try:
        return run.logged.read(file, load)
    except FileNotFoundError:
        return None
    except Exception as error:
        problems.append(f"Maps of {run.method}: {type(error).__name__}: {error}.")
        return None
