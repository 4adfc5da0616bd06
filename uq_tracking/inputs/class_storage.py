"""Class predictions as an npz file, and a digest that shows whether two runs were scored on the same data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError
from uq_tracking.inputs.assemble import read_only
from uq_tracking.inputs.class_validation import TOLERANCES, scan_classes
from uq_tracking.inputs.convert import AnyArray
from uq_tracking.inputs.digest import digest as digest_of
from uq_tracking.inputs.probabilities import ClassScores
from uq_tracking.inputs.storage import ABOUT
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.inputs.weights import check_weights
from uq_tracking.npz import read_arrays, write_arrays
from uq_tracking.typed import DAMAGE

if TYPE_CHECKING:
    from uq_tracking.inputs.classification import ClassPredictions

FORMAT = "uq_tracking.class_predictions"
VERSION = 1
SCORE_SETTINGS = ("logits", "binary")


def write(path: Path, data: ClassPredictions) -> None:
    """Write class predictions; the file appears whole or not at all."""
    about = {
        "format": FORMAT,
        "version": VERSION,
        "counts": data.counts,
        "ignore_label": data.ignore_label,
        "class_names": data.class_names,
        "axes": data.axes,
        **{name: getattr(data.scores, name) for name in SCORE_SETTINGS},
    }
    arrays = {
        "labels": data.labels,
        "scores": data.scores.values,
        "valid": data.valid,
        "weights": data.weights,
        "groups": data.groups,
        "by": data.by,
    }
    present = {name: array for name, array in arrays.items() if array is not None}
    write_arrays(path, {**present, ABOUT: np.asarray(json.dumps(about))})


def read(path: Path) -> dict[str, Any]:
    """Read the attributes that ``write`` wrote.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, foreign or too new.
    """
    arrays = read_arrays(path)
    if is_own(arrays) is False:
        raise FileFormatError(f"{path} was not written by Predictions.save")
    try:
        about = json.loads(str(arrays[ABOUT]))
        if int(about["version"]) > VERSION:
            raise FileFormatError(
                f"{path} has format version {about['version']}, but this package reads up to {VERSION}; upgrade it"
            )
        values = _values(arrays, about)
        _check(values)
    except FileFormatError:
        raise
    except DAMAGE as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error
    return values


def is_own(arrays: Mapping[str, AnyArray]) -> bool:
    """Whether an npz file was written by ``write``."""
    about = arrays.get(ABOUT)
    return about is not None and about.dtype.kind == "U" and FORMAT in str(about)


def _values(arrays: Mapping[str, AnyArray], about: Mapping[str, Any]) -> dict[str, Any]:
    names = about["class_names"]
    scores = ClassScores(arrays["scores"], *(about[name] for name in SCORE_SETTINGS))
    return {
        "labels": read_only(arrays["labels"]),
        "scores": scores,
        "valid": read_only(arrays.get("valid")),
        "weights": read_only(arrays.get("weights")),
        "groups": read_only(arrays.get("groups")),
        "by": read_only(arrays.get("by")),
        "counts": dict(about["counts"]),
        "ignore_label": about["ignore_label"],
        "class_names": None if names is None else tuple(names),
        "axes": (int(about["axes"][0]), about["axes"][1]),
    }


def _check(values: Mapping[str, Any]) -> None:
    """Reject parts that do not fit together."""
    labels, scores, valid = (values[name] for name in ("labels", "scores", "valid"))
    if labels.dtype.kind not in "iu" or scores.values.dtype not in (np.float32, np.float64):
        raise ValueError("labels must be integers, and scores float32 or float64")
    if labels.shape != scores.shape or (
        valid is not None and (valid.dtype != bool or valid.shape != labels.shape)
    ):
        raise ValueError("the shapes differ")
    for name in ("groups", "by"):
        if values[name] is not None and values[name].shape not in (labels.shape, labels.shape[:1]):
            raise ValueError(f"{name} and labels do not belong together")
    if values["weights"] is not None:
        check_shapes(("labels", labels.shape), ("weights", values["weights"].shape))
        check_weights(values["weights"], valid)
    found = scan_classes(
        labels, scores, left_out=None if valid is None else ~valid, tolerance=max(TOLERANCES.values())
    )
    if found.outside.count or found.n_invalid or found.counts["n"] != values["counts"]["n"]:
        raise ValueError("values and counts disagree")


def digest(data: ClassPredictions) -> str:
    """Digest of the labels and scores that count, and of how the scores are read."""
    weights = [] if data.weights is None else [data.weights]

    def parts() -> Iterator[npt.NDArray[Any]]:
        for column in (data.labels, *data.scores.values, *weights):
            for place in data.places():
                yield column[place] if data.valid is None else column[place][data.valid[place]]

    return digest_of(parts(), repr([getattr(data.scores, name) for name in SCORE_SETTINGS]))
