"""Which 2-D cases of spatial predictions are drawn as maps, and the file that keeps them with their color scale."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from uq_tracking.errors import FileFormatError, SettingsError
from uq_tracking.inputs.predictions import Case, Predictions, case_count, case_place
from uq_tracking.npz import read_arrays, write_arrays
from uq_tracking.streams.map_samples import (
    AUTO_CASES,
    case_arrays,
    case_image,
    cases_of,
    check_image_count,
    has_cases,
)
from uq_tracking.tasks import Task
from uq_tracking.tracking.names import MAPS_FILE, file_name
from uq_tracking.tracking.places import scratch_folder
from uq_tracking.tracking.resolve import open_store

ABOUT = "about.json"
LARGEST = 12 * 10**6
"""Most bytes of a file of cases, before compression; larger cases are thinned out."""
SCREEN = 352**2
"""Most pixels that are stored or compared of a case: about what a panel shows."""

Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class DrawnCases:
    """Cases by number, a note on why each was chosen, and their shared color limits."""

    cases: Mapping[int, Case] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    limits: Limits | None = None

    def of(self, data: Predictions) -> DrawnCases:
        """Return the cases with the arrays that these predictions hold."""
        cases = {
            number: data.case(case_place(number, data.shape), case.image)
            for number, case in self.cases.items()
        }
        return replace(self, cases=cases)

    def within(self, nbytes: float = math.inf) -> DrawnCases:
        """Return the cases, thinned to every k-th row and column if they are larger than this or than a screen."""
        arrays = [np.asarray(array) for array in case_arrays(self.cases).values()]
        size = sum(array.nbytes for array in arrays)
        pixels = max((math.prod(array.shape[:2]) for array in arrays), default=0)
        step = max(1, math.ceil(math.sqrt(max(size / nbytes, pixels / SCREEN))))
        if step == 1:
            return self

        def thinned(arrays: Mapping[str, Any]) -> dict[str, Any]:
            return {name: np.asarray(array)[::step, ::step] for name, array in arrays.items()}

        cases = {}
        for number, case in self.cases.items():
            image = None if case.image is None else np.asarray(case.image)[::step, ::step]
            cases[number] = Case(thinned(case.arrays), image, thinned(case.parts))
        return replace(self, cases=cases)

    def save(self, path: Path) -> None:
        """Write the file."""
        limits = None if self.limits is None else dict(self.limits)
        about = {"notes": dict(self.notes), "limits": limits, "cases": list(self.cases)}
        arrays = {ABOUT: np.asarray(json.dumps(about, allow_nan=False)), **case_arrays(self.cases)}
        write_arrays(path, arrays, compressed=True)

    @classmethod
    def load(cls, path: Path) -> DrawnCases:
        """Read what ``save`` wrote; FileFormatError for anything else.

        Cases of a run that stores its predictions have no arrays: `of` fills them in.
        """
        arrays = read_arrays(path)
        try:
            about = json.loads(str(arrays.pop(ABOUT)))
            found = about["limits"]
            limits = None if found is None else {name: (float(a), float(b)) for name, (a, b) in found.items()}
            notes = {int(number): str(note) for number, note in about["notes"].items()}
            cases = cases_of(arrays)
            known = {int(number): cases.get(int(number), Case({})) for number in about["cases"]}
            return cls(known, notes, limits)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(f"{path.name} holds no cases of maps ({error!r})") from error


def cases_like(address: str, split: str | None) -> DrawnCases:
    """The cases that a run drew, for drawing the same ones with the same colors.

    Raises
    ------
    SettingsError
        The address does not name a run, or the run drew no maps.
    BackendError
        No backend claims the address, or its tracker does not answer.
    """
    store, run_id = open_store(address)
    found = [run.run_id for run in store.runs() if run_id in (None, run.run_id)]
    if len(found) != 1:
        raise SettingsError(f"maps={address!r} names {len(found)} runs; name the one whose cases to draw")
    name = file_name(MAPS_FILE, split)
    if name not in store.files(found[0]):
        raise SettingsError(f"maps={address!r}: that run drew no maps; log it with maps= first")
    with scratch_folder() as folder:
        return DrawnCases.load(store.fetch(found[0], name, folder))


Maps = Literal["auto"] | str | int | Sequence[int] | bool
EXTREMES = "extremes"
"""Draw the worst, median and best cases."""


def choose(
    shape: tuple[int, ...], maps: Maps, split: str | None, task: Task, data: Any = None, images: Any = None
) -> DrawnCases:
    """Choose the cases to draw, with images, and with arrays if ``data`` is given; accepts more than `choose_cases`.

    ``"extremes"``: the worst, median and best cases by the task's ``case_score``; the address of a run: the cases
    it drew, with its colors.

    Raises
    ------
    SettingsError
        As for `choose_cases`; also for ``"extremes"`` of predictions not in memory, or a run that drew no maps.
    ShapeError
        The images do not fit.
    """
    chosen = DrawnCases()
    if maps == EXTREMES:
        if data is None:
            raise SettingsError("maps='extremes' compares all cases, so it needs predictions in memory")
        has_cases(shape, maps)
        chosen = DrawnCases(notes=_extremes(shape, task, data))
        numbers = list(chosen.notes)
    elif isinstance(maps, str) and maps != "auto":
        like = cases_like(maps, split)  # whose notes describe that run
        chosen, numbers = DrawnCases(limits=like.limits), choose_cases(shape, list(like.cases))
    else:
        numbers = choose_cases(shape, maps)
    if images is not None:
        check_image_count(shape, images)
    cases = {}
    for number in numbers:
        place = case_place(number, shape)
        image = case_image(images, place, shape)
        cases[number] = Case({}, image) if data is None else data.case(place, image)
    return replace(chosen, cases=cases)


def _extremes(shape: tuple[int, ...], task: Task, data: Any) -> dict[int, str]:
    """Why the worst, median and best of the cases with ground truth are drawn, the worst first."""
    places = [case_place(k, shape) for k in range(case_count(shape))]
    errors = np.asarray([task.case_error(data.case(place)) for place in places])
    order = np.argsort(-errors, kind="stable")[: int(np.isfinite(errors).sum())]  # NaN sorts last
    last = len(order) - 1
    words = {last: "best", last // 2: "median", 0: "worst"} if len(order) else {}
    told = f"of {len(order)} by {task.case_score}"
    return {int(order[rank]): f"{word} {told}" for rank, word in sorted(words.items())}


def choose_cases(shape: tuple[int, ...], maps: Maps) -> list[int]:
    """Choose the cases to draw: all axes but the last two index cases; (height, width) is a single case.

    Parameters
    ----------
    shape
        Shape of the predictions.
    maps
        ``"auto"``: up to four evenly spaced cases if the last two axes look like a picture (both at least 16
        long, neither more than eight times the other); True: the same without that condition; an int: that many,
        evenly spaced; a list: these cases; False: none.

    Returns
    -------
    list of int
        The same for every run on the same data, so that runs can be compared case by case.

    Raises
    ------
    SettingsError
        Maps are requested but the predictions are not spatial, or have no such case.

    Examples
    --------
    >>> choose_cases((100, 240, 320), "auto")
    [0, 33, 66, 99]
    >>> choose_cases((5000, 3), "auto")
    []
    """
    if not has_cases(shape, maps):
        return []
    count = case_count(shape)
    if isinstance(maps, str | int):
        wanted = AUTO_CASES if isinstance(maps, str) or maps is True else maps
        if wanted < 0:
            raise SettingsError(f"maps={wanted}; pass how many cases to draw, or a list of their indices")
        return sorted({int(index) for index in np.linspace(0, count - 1, min(wanted, count)).round()})
    chosen = [int(index) for index in maps]
    wrong = [index for index in chosen if not 0 <= index < count]
    if wrong:
        raise SettingsError(f"maps names case {wrong[0]}, but the predictions hold cases 0 to {count - 1}")
    return chosen
