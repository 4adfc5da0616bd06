"""Statistics in files: plain npz, never pickled, checked when read."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError
from uq_tracking.statistics.classification import CLASSIFICATION
from uq_tracking.statistics.layout import Layout
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.statistics import Statistics

LAYOUTS: dict[str, Layout] = {layout.task: layout for layout in (REGRESSION, CLASSIFICATION)}


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write named arrays into one compressed npz."""
    with path.open("wb") as file:  # a file object, or numpy would append .npz to the name
        np.savez_compressed(file, allow_pickle=False, **dict(arrays))


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read every array of an npz; FileFormatError for a damaged, pickled or foreign file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with (
            path.open("rb") as file,
            np.load(file, allow_pickle=False) as archive,
        ):  # numpy leaves damaged ones open
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, KeyError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{path.name} is not a readable npz file ({error})") from error


def statistics_from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> Statistics:
    """Statistics from named arrays, whatever their task; FileFormatError for anything else."""
    task = str(arrays.get("task"))
    if task not in LAYOUTS:
        raise FileFormatError(f"these arrays are not statistics: they state the task {task!r}")
    return Statistics.from_arrays(LAYOUTS[task], arrays)


def write_statistics(path: str | Path, statistics: Statistics) -> None:
    """Store statistics in the form that stays a few megabytes at any size."""
    write_arrays(Path(path), statistics.stored().to_arrays())


def read_statistics(path: str | Path) -> Statistics:
    """Read what ``write_statistics`` wrote; FileFormatError says what is wrong with the file."""
    return statistics_from_arrays(read_arrays(Path(path)))
