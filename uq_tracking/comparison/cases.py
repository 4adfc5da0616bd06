"""The same 2-D cases of every method, from what its runs stored: the cases they drew, else their predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.errors import SettingsError
from uq_tracking.inputs.base import Case, PredictionsBase, case_count, case_place
from uq_tracking.tasks import task_of
from uq_tracking.tracking.cases import DrawnCases, Maps, choose_cases
from uq_tracking.tracking.names import MAPS_FILE, PREDICTIONS_FILE

AUTO_CASES = 2

S = TypeVar("S")
T = TypeVar("T")
See = Callable[[ScoredRun, Case], S]
"""What is kept of a case; the case itself may be much larger."""


def same_cases(
    groups: Mapping[str, Sequence[ScoredRun]], maps: Maps, see: See[S]
) -> tuple[dict[int, list[S]], list[str]]:
    """The chosen cases, by number, of one run per method; also which methods lack them and why.

    Predictions are read only if the cases that the runs drew do not suffice, and held one method at a time.

    Raises
    ------
    SettingsError
        Maps are requested by number or index, but no run stored any, the predictions are not spatial, or have no such
        case.
    """
    problems: list[str] = []
    seen = {method: _drawn(runs, see, problems) for method, runs in groups.items()}
    common = _common(seen)[:AUTO_CASES] if maps == "auto" else []
    numbers = _from_predictions(groups, maps, see, seen, common or None, problems)
    for method, cases in seen.items():
        lacking = [str(number) for number in numbers if number not in cases]
        if cases and lacking:
            problems.append(f"No maps of {method} for {', '.join(lacking)}: it stored only other cases.")
    found = {number: [cases[number] for cases in seen.values() if number in cases] for number in numbers}
    found = {number: cases for number, cases in found.items() if cases}
    if maps != "auto" and not found:
        raise SettingsError(f"maps={maps!r}, but no run stored drawable predictions")
    return found, problems


def _drawn(runs: Sequence[ScoredRun], see: See[S], problems: list[str]) -> dict[int, S]:
    """The cases that the first run of a method drew that drew any."""
    for run in runs:
        drawn = _read(run, MAPS_FILE, DrawnCases.load, problems)
        if drawn is not None and drawn.cases:
            return {number: see(run, case) for number, case in drawn.cases.items()}
    return {}


def _common(seen: Mapping[str, Mapping[int, S]]) -> list[int]:
    """Numbers of the cases that all methods drew that drew any."""
    drawn = [set(cases) for cases in seen.values() if cases]
    return sorted(set.intersection(*drawn)) if drawn else []


def _from_predictions(
    groups: Mapping[str, Sequence[ScoredRun]],
    maps: Maps,
    see: See[S],
    seen: dict[str, dict[int, S]],
    numbers: list[int] | None,
    problems: list[str],
) -> list[int]:
    """Add the cases that were not drawn to ``seen``; return the numbers of the cases, chosen here if None."""
    shape: tuple[int, ...] | None = None
    for method, runs in groups.items():
        if numbers is not None and set(numbers) <= seen[method].keys():
            continue
        known = len(problems)
        stored = _predictions(runs, problems)
        if stored is None:
            if not seen[method] and len(problems) == known:
                problems.append(f"No maps of {method}: it stored no predictions.")
            continue
        run, data = stored
        if numbers is None:
            shape = data.shape
            numbers = choose_cases(shape, maps)[: AUTO_CASES if maps == "auto" else None]
        if data.shape != (shape or data.shape) or not _has(data.shape, numbers):
            other = f", not {shape}" if shape else ""
            problems.append(f"No maps of {method}: its predictions have shape {data.shape}{other}.")
            continue
        for number in numbers:
            if number not in seen[method]:
                seen[method][number] = see(run, data.case(case_place(number, data.shape)))
    return _among_drawn(seen, maps) if numbers is None else numbers


def _has(shape: tuple[int, ...], numbers: Sequence[int]) -> bool:
    """Whether predictions of this shape hold these cases."""
    return not numbers or (len(shape) > 1 and max(numbers) < case_count(shape))


def _among_drawn(seen: Mapping[str, Mapping[int, S]], maps: Maps) -> list[int]:
    """The cases that were asked for, where no predictions tell how many there are."""
    if isinstance(maps, Sequence) and not isinstance(maps, str):
        return [int(number) for number in maps]
    drawn = _common(seen)
    return drawn if maps is True or isinstance(maps, str) else drawn[: int(maps)]


def _predictions(runs: Sequence[ScoredRun], problems: list[str]) -> tuple[ScoredRun, PredictionsBase] | None:
    """The first run of a method whose predictions can be read."""
    for run in runs:
        data = _read(run, PREDICTIONS_FILE, task_of(run.report).predictions.load, problems)
        if data is not None:
            return run, data
    return None


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
