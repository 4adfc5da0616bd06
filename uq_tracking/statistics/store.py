"""Statistics in files: plain npz, never pickled, validated when read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.errors import FileFormatError
from uq_tracking.inputs.forms.form import SCORES
from uq_tracking.npz import read_arrays, write_arrays
from uq_tracking.statistics.layout import Layout
from uq_tracking.statistics.regression import DISTRIBUTION
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import DAMAGE

BINDING = "binding"
"""Entry that says which data the statistics describe, and holds their digest from when they were written."""


def statistics_from_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> Statistics:
    """Statistics of any task from named arrays; FileFormatError for anything else."""
    task = str(arrays.get("task"))
    if task not in plugins.tasks():
        raise FileFormatError(f"these arrays are not statistics: they state the task {task!r}")
    try:
        layout: Layout = plugins.tasks()[task].layout_for(json.loads(str(arrays["facts"])))
    except DAMAGE as error:
        raise FileFormatError(f"these arrays are not statistics of a {task} ({error!r})") from error
    for name, values in arrays.items():
        # sums of scores are NaN if the form of a distribution does not determine them
        may_be_nan = layout is DISTRIBUTION and (
            name == "sums" or name.endswith(tuple(f"sum/{score}" for score in SCORES))
        )
        has_nan = values.dtype.kind == "f" and np.isnan(values).any()
        if values.dtype.kind not in "biufU" or (has_nan and not may_be_nan):
            raise FileFormatError(
                f"the column {name} holds a NaN or something other than plain numbers and text"
            )
    with np.errstate(invalid="raise"):  # e.g. of a negative std
        return Statistics.from_arrays(layout, arrays)


def write_statistics(path: str | Path, statistics: Statistics, *, data: str | None = None) -> None:
    """Store statistics in a form that stays at a few megabytes for any sample size.

    Parameters
    ----------
    path, statistics
        Where to write, and what.
    data
        Digest of their data, as stated in the report stored beside them; it ties the two together.
    """
    arrays = statistics.stored().to_arrays()
    binding = {"data": data, "content": content_digest(arrays)}
    write_arrays(Path(path), {**arrays, BINDING: np.asarray(json.dumps(binding))}, compressed=True)


def read_statistics(path: str | Path, *, data: str | None = None) -> Statistics:
    """Read statistics written by ``write_statistics``.

    Parameters
    ----------
    path
        The file.
    data
        Digest of the data they must describe.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, was changed after it was written, or describes other data.
    """
    arrays = read_arrays(Path(path))
    try:
        binding = dict(json.loads(str(arrays.pop(BINDING))))
    except DAMAGE as error:
        raise FileFormatError(
            f"these arrays are not statistics: {BINDING!r} is missing or damaged; log the run again"
        ) from error
    if binding.get("content") != content_digest(arrays):
        raise FileFormatError("the statistics were changed after they were written; log the run again")
    if data is not None and binding.get("data") not in (None, data):
        raise FileFormatError(
            f"the statistics are of other predictions (digest {binding['data']}) than the report ({data}); "
            "log the run again"
        )
    return statistics_from_arrays(arrays)


def content_digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Digest of arrays, with their names, shapes and types."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        sha.update(repr((name, values.shape, values.dtype.str)).encode())
        sha.update(values.tobytes())
    return sha.hexdigest()
