"""Predictions as an npz file, and digests that show whether two runs were scored on the same data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uq_tracking.errors import FileFormatError
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray
from uq_tracking.inputs.digest import digest as digest_of
from uq_tracking.inputs.forms.scored import Scored
from uq_tracking.inputs.validation import blocks, check_shapes, scan
from uq_tracking.inputs.weights import check_weights
from uq_tracking.npz import read_arrays, write_arrays
from uq_tracking.typed import DAMAGE

FORMAT = "uq_tracking.predictions"
VERSION = 1
ABOUT = "about"
"""Entry of the npz file that holds format, version, counts and settings as JSON."""
SCORED = "scored/"
"""Prefix of the entries that hold the columns of a distribution in another form."""
REQUIRED = ("target", "mean", "std")
OPTIONAL = ("valid", "weights", "groups", "by", "aleatoric", "epistemic", "samples", "member_std")
SETTINGS = ("counts", "std_floor", "unit")


def write(path: Path, values: Mapping[str, Any]) -> None:
    """Write the attributes of `Predictions`; the file appears whole or not at all."""
    entries: dict[str, Any] = {
        name: values[name] for name in (*REQUIRED, *OPTIONAL) if values[name] is not None
    }
    about = {"format": FORMAT, "version": VERSION, **{name: values[name] for name in SETTINGS}}
    scored: Scored | None = values["scored"]
    if scored is not None:
        about["scored"] = {"form": scored.form, "facts": dict(scored.facts)}
        entries |= {SCORED + name: column for name, column in scored.columns.items()}
    write_arrays(path, {**entries, ABOUT: np.asarray(json.dumps(about))})


def read(path: Path) -> dict[str, Any]:
    """Read what `write` wrote.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, foreign or too new.
    """
    arrays = read_arrays(path)
    about = _read_about(path, arrays)
    values: dict[str, Any] = {name: arrays.get(name) for name in (*REQUIRED, *OPTIONAL)}
    values.update({name: about.get(name) for name in SETTINGS})
    columns = {name.removeprefix(SCORED): array for name, array in arrays.items() if name.startswith(SCORED)}
    kind = about.get("scored")
    values["scored"] = None if kind is None else Scored(kind["form"], columns, kind["facts"])
    _check(path, values)
    return values


def is_own(arrays: Mapping[str, AnyArray]) -> bool:
    """Whether an npz file was written by `write`."""
    about = arrays.get(ABOUT)
    return about is not None and about.dtype.kind == "U" and FORMAT in str(about)


def _read_about(path: Path, arrays: Mapping[str, AnyArray]) -> dict[str, Any]:
    missing = [name for name in (ABOUT, *REQUIRED) if name not in arrays]
    if missing:
        raise FileFormatError(
            f"{path} was not written by Predictions.save (no {', '.join(missing)}); "
            "read other files with uq_tracking.files.read_predictions"
        )
    try:
        about = json.loads(str(arrays[ABOUT]))
        if about["format"] != FORMAT:
            raise FileFormatError(f"{path} holds {about['format']!r}, not {FORMAT!r}")
        version = int(about["version"])
    except DAMAGE as error:
        raise FileFormatError(f"{path}: the entry {ABOUT!r} is damaged: {error}") from error
    if version > VERSION:
        raise FileFormatError(
            f"{path} has format version {version}, but this package reads up to {VERSION}; upgrade it"
        )
    return dict(about)


def _check(path: Path, values: Mapping[str, Any]) -> None:
    """Reject a file whose parts do not fit together."""
    try:
        check_shapes(*((name, values[name].shape) for name in REQUIRED))
        valid: BoolArray | None = values["valid"]
        if any(values[name].dtype not in (np.float32, np.float64) for name in REQUIRED):
            raise FileFormatError("target, mean and std must be float32 or float64")
        if valid is not None and (valid.dtype != bool or valid.shape != values["target"].shape):
            raise FileFormatError("valid must be bool and have the shape of target")
        if values["weights"] is not None:
            check_shapes(("target", values["target"].shape), ("weights", values["weights"].shape))
            check_weights(values["weights"], valid)
        target, mean, std = (values[name] for name in REQUIRED)
        found = scan(target, mean, std, None if valid is None else ~valid)
        if found.n_missing or found.n_invalid or found.counts["n"] != values["counts"]["n"]:
            raise FileFormatError("values and counts disagree")
    except DAMAGE as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error


DIGEST_BLOCK = 1 << 18
"""Values hashed at a time: many, because the statistics computed in parallel wait at every hand-over."""


def digest(arrays: Iterable[FloatArray], valid: BoolArray | None) -> str:
    """Digest of the valid values."""

    def parts() -> Iterator[FloatArray]:
        for array in arrays:
            columns = (array,) if valid is None else (array, valid)
            for block in blocks(*columns, size=DIGEST_BLOCK):
                yield block[0] if valid is None else block[0][block[1]]

    return digest_of(parts())
