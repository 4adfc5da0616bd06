"""One or more files of labels and class probabilities as `ClassPredictions`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from uq_tracking.errors import SettingsError
from uq_tracking.files.columns import GUESSES as OF_REGRESSION
from uq_tracking.files.formats import ColumnFile, open_table, reading
from uq_tracking.files.reading import matching
from uq_tracking.inputs.class_storage import is_own
from uq_tracking.inputs.classification import ClassPredictions
from uq_tracking.inputs.storage import ABOUT

ROLES = ("labels", "probs", "logits", "mask", "weights", "groups", "by")
GUESSES = {
    "labels": ("labels", "label", "y_true", "target", "class"),
    "probs": ("probs", "probabilities", "proba", "y_prob", "softmax"),
    "logits": ("logits", "scores"),
    "groups": ("groups", "group", "image", "scene"),
    "by": ("by", "stratum"),
}
"""Names tried for a role that the user does not name."""
_NUMBERED = {
    "probs": (*GUESSES["probs"], "prob", "probability", "p_class", "prob_class"),
    "logits": ("logits", "logit"),
}
"""What precedes the number of the class if each class has a column: ``prob_0``, ``prob_1``."""


def holds_classes(path: str | Path, columns: Mapping[str, str] | None = None) -> bool:
    """Whether a file holds class probabilities or logits, judging by its names or those the user gave."""
    if columns and {"probs", "logits", "labels"} & columns.keys():
        return True
    table = open_table(matching(path)[0])
    if any(name.lower() in (*GUESSES["probs"], "logits") for name in table.names) or _is_saved(table):
        return True
    lower = {name.lower() for name in table.names}
    is_labelled = bool(lower & set(GUESSES["labels"])) and not lower & set(OF_REGRESSION["std"])
    return is_labelled and any(_of_classes(table.names, role) for role in _NUMBERED)


def read_class_predictions(
    path: str | Path, columns: Mapping[str, str] | None = None, **options: Any
) -> ClassPredictions:
    """Read labels and probabilities, or logits, from any file that `read_predictions` reads.

    Parameters
    ----------
    path
        A file, or a glob: files are read in name order and joined along the first axis.
    columns
        Names in the file by role: ``labels``; ``probs`` or ``logits`` (one array with the classes along its last
        axis, or a pattern such as ``"prob_*"`` with one column per class, in the order of their numbers); ``mask``,
        ``weights``, ``groups``, ``by``. Roles that are not named are guessed; columns numbered by class have to start
        at 0.
    **options
        As for `ClassPredictions`.

    Raises
    ------
    SettingsError
        A role is unknown, missing, or does not name a column; or there are both probabilities and logits.
    FileFormatError
        The file is damaged or of an unsupported kind.
    """
    paths = matching(path)
    if len(paths) == 1 and _is_saved(open_table(paths[0])):
        if columns or options:
            raise SettingsError(
                f"{paths[0]} was written by ClassPredictions.save, which needs no further options"
            )
        return ClassPredictions.load(paths[0])
    parts = [_read(open_table(one), columns) for one in paths]
    values = {role: np.concatenate([part[role] for part in parts]) for role in parts[0]}
    kinds = [role for role in ("probs", "logits") if role in values]
    if len(kinds) != 1:
        raise SettingsError(f"{path}: name probs or logits, not both: --columns probs=NAME")
    given: dict[str, Any] = {
        role: values[role] for role in ("mask", "weights", "groups", "by") if role in values
    }
    if "mask" in given:
        given["mask"] = given["mask"] != 0
    options = {**given, **{name: value for name, value in options.items() if value is not None}}
    return ClassPredictions(values["labels"], values[kinds[0]], **{"logits": kinds[0] == "logits", **options})


def _is_saved(table: ColumnFile) -> bool:
    if table.path.suffix.lower() != ".npz" or ABOUT not in table.names:
        return False
    with reading(table.path):
        return is_own(table.load([ABOUT]))


def _read(table: ColumnFile, columns: Mapping[str, str] | None) -> dict[str, Any]:
    """Columns of one file by role."""
    chosen = {role: _named(table, role, name) for role, name in (columns or {}).items()}
    for role, guesses in GUESSES.items():
        other = {"probs": "logits", "logits": "probs"}.get(role)
        found = [name for name in table.names if name.lower() in guesses]
        found = found[:1] or _of_classes(table.names, role)
        if role not in chosen and other not in chosen and found:
            chosen[role] = found
    missing = [] if "labels" in chosen else ["labels"]
    missing += [] if {"probs", "logits"} & chosen.keys() else ["probs"]
    if missing:
        raise SettingsError(
            f"{table.path}: no column looks like {' or '.join(missing)}; the file has columns "
            f"{', '.join(table.names)}; say which is which, for example --columns 'labels=NAME,probs=prob_*'"
        )
    with reading(table.path):
        arrays = table.load([name for names in chosen.values() for name in names])
    return {
        role: np.asarray(arrays[names[0]])
        if len(names) == 1
        else np.stack([np.asarray(arrays[name]) for name in names], axis=-1)
        for role, names in chosen.items()
    }


def _of_classes(names: Sequence[str], role: str) -> list[str]:
    """The columns of the classes 0, 1, ... by their names; empty where a class is missing."""
    for stem in _NUMBERED.get(role, ()):
        matches = (re.fullmatch(rf"{stem}[_-]?(\d+)", name, re.IGNORECASE) for name in names)
        found = {int(match[1]): match[0] for match in matches if match}
        if len(found) > 1 and found.keys() == set(range(len(found))):
            return [found[number] for number in range(len(found))]
    return []


def _by_number(name: str) -> list[int | str]:
    """Sorts ``prob_2`` before ``prob_10``."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _named(table: ColumnFile, role: str, name: str) -> Sequence[str]:
    if role not in ROLES:
        raise SettingsError(
            f"columns= has an unknown role {role}; for classes, choose from {', '.join(ROLES)}"
        )
    found = (
        [name]
        if name in table.names
        else sorted((n for n in table.names if fnmatchcase(n, name)), key=_by_number)
    )
    if not found:
        raise SettingsError(
            f"{table.path} has no column {name!r} (for {role}); it has {', '.join(table.names)}"
        )
    return found
