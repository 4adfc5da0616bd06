"""The cases that a run drew as maps, with their notes and color limits, as a file of the run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from uq_tracking.errors import FileFormatError, SettingsError
from uq_tracking.inputs.base import Case
from uq_tracking.npz import read_arrays, write_arrays
from uq_tracking.streams.map_samples import case_arrays, cases_of
from uq_tracking.tracking.backend import RunStore
from uq_tracking.tracking.names import MAPS_FILE, file_name
from uq_tracking.tracking.resolve import open_store

ABOUT = "about.json"
LARGEST = 64 * 2**20
"""Most bytes of a file of cases, before compression; larger cases are thinned out."""

Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class DrawnCases:
    """Cases by number, a note on why each was chosen, and their shared color limits."""

    cases: Mapping[int, Case]
    notes: Mapping[int, str] = field(default_factory=dict)
    limits: Limits | None = None

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return sum(int(np.asarray(array).nbytes) for array in case_arrays(self.cases).values())

    def within(self, nbytes: int) -> DrawnCases:
        """The same cases, of which only every k-th row and column is left if they are larger than this."""
        step = math.ceil(math.sqrt(self.nbytes / nbytes))
        if step <= 1:
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
        limits = None if self.limits is None else {name: list(pair) for name, pair in self.limits.items()}
        about = {"notes": {str(number): note for number, note in self.notes.items()}, "limits": limits}
        arrays = {ABOUT: np.asarray(json.dumps(about, allow_nan=False)), **case_arrays(self.cases)}
        write_arrays(path, arrays, compressed=True)

    @classmethod
    def load(cls, path: Path) -> DrawnCases:
        """Read what ``save`` wrote; FileFormatError for anything else."""
        arrays = read_arrays(path)
        try:
            about = json.loads(str(arrays.pop(ABOUT)))
            found = about["limits"]
            limits = None if found is None else {name: (float(a), float(b)) for name, (a, b) in found.items()}
            notes = {int(number): str(note) for number, note in about["notes"].items()}
            return cls(cases_of(arrays), notes, limits)
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
    drawn = stored_cases(store, found[0], split)
    if drawn is None:
        raise SettingsError(f"maps={address!r}: that run drew no maps; log it with maps= first")
    return drawn


def stored_cases(store: RunStore, run_id: str, split: str | None) -> DrawnCases | None:
    """The cases that a run drew; None if it drew none."""
    name = file_name(MAPS_FILE, split)
    if name not in store.files(run_id):
        return None
    with TemporaryDirectory(prefix="uq_tracking_") as folder:
        return DrawnCases.load(store.fetch(run_id, name, Path(folder)))
