"""The roles of a file's columns: their usual names, and the user's choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import EmptyInputError, InputTypeError, SettingsError, closest
from uq_tracking.files.formats import ColumnFile
from uq_tracking.formatting import some_of

GUESSES: Mapping[str, tuple[str, ...]] = {
    "target": ("target", "y_true", "truth", "ground_truth", "gt", "label", "observed", "actual", "y"),
    "mean": ("mean", "y_pred", "mu", "pred", "prediction", "predicted", "y_hat", "yhat", "forecast"),
    "std": ("std", "y_std", "sigma", "y_sigma", "uncertainty", "stddev", "std_dev", "stdev", "sd", "spread"),
    "variance": ("variance", "var", "sigma2", "y_var"),
    "log_variance": ("log_variance", "log_var", "logvar"),
    "low": ("low", "lower", "y_low"),
    "high": ("high", "upper", "y_high"),
    "samples": ("samples", "members", "ensemble"),
    "groups": ("groups", "group"),
    "by": ("by",),
}
"""Names tried, ignoring case, for a role the user does not mention. ``mask`` is not among them, because it marks what
to leave out in one file and what to keep in another; nor are ``weights``, because a weight may be an ordinary
quantity."""
CLASS_GUESSES: Mapping[str, tuple[str, ...]] = {
    "target": ("labels", "label", "y_true", "target", "class"),
    "probs": ("probs", "probabilities", "proba", "y_prob", "softmax"),
    "logits": ("logits", "scores"),
    "groups": ("groups", "group", "image", "scene"),
    "by": ("by", "stratum"),
}
"""Names tried in a file of classes."""
OF_CLASSES = {
    "probs": (*CLASS_GUESSES["probs"], "prob", "probability", "p_class", "prob_class"),
    "logits": ("logits", "logit"),
}
"""Roles of class probabilities, and the prefixes of columns numbered by class: ``prob_0``, ``prob_1``."""

ROLES = (*GUESSES, "quantiles", "member_std", "probs", "logits", "mask", "weights", "level")
WAYS: Mapping[tuple[str, ...], Literal["needed", "optional", "refused"]] = {
    ("std",): "needed",
    ("variance",): "needed",
    ("log_variance",): "needed",
    ("low", "high"): "optional",
    ("samples",): "refused",
    ("quantiles",): "optional",
    ("probs",): "refused",
    ("logits",): "refused",
}
"""Ways to state the uncertainty, in the order they are looked for, and whether the mean is stated beside them."""
SEVERAL = ("samples", "member_std", "quantiles", "probs", "logits")
"""Roles that may have several columns: one for each member, level or class."""
NUMERIC = frozenset({"mean", "member_std", "weights", *(role for roles in WAYS for role in roles)})
"""Roles whose columns hold numbers; so does the target, unless it holds labels."""
_QUANTILE = re.compile(
    r"(?P<of>.*[_-])?(?:q|quantile)[_-]?(?P<level>\d*\.?\d+)|(?P<share>0?\.\d+)", re.IGNORECASE
)
_BOUND = re.compile(r"(?P<of>.+)-(?:(?P<side>lo|hi)-(?P<inside>\d+(?:\.\d+)?)|median)")
"""Names of quantile columns: ``q10``, ``q0.1``, ``y_quantile_0.1``, ``0.1``; ``ARIMA-lo-90``, ``NHITS-median``."""
_WEAK = {"y"}
"""Often a coordinate, so used only if there is no better name."""
_PLACES = re.compile(
    r"(unnamed: \d+|index|id|.*_id|.*(date|time|stamp)|years?|months?|weeks?|days?|hours?|minutes?|seconds?|doy|"
    r"lat|latitude|lon|lng|longitude|x|row|column|station|site|fold|seed|step|epoch|split)?",
    re.IGNORECASE,
)
"""Names of columns that identify rows: numbers, dates and places are not a spread, and not proposed as one."""
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*|nan|[-+]?inf(inity)?", re.IGNORECASE)
"""A number as text, to find the text that is none."""
_ROLE = "|".join(name for names in GUESSES.values() for name in names)
_ENDING = re.compile(rf"(?<=[_-])(?!({_ROLE})$)[^_-]+$|\d+$", re.IGNORECASE)
"""By what columns differ that mean alike: a number, or a word that names no role, as in ``p0`` and ``share_cat``."""
_ALIASES = {"group": "groups", "labels": "target"}

MOST_LISTED = 40
Chosen = dict[str, list[str]]


def choose(table: ColumnFile, columns: Mapping[str, str] | None) -> Chosen:
    """Choose the columns of a file by role; only `SEVERAL` may have more than one.

    Quantiles are given by level, ``{"0.1": "lower", "0.9": "upper"}``, or by a pattern of columns named after their
    levels, ``{"quantiles": "q*"}``; the role ``levels`` of the result holds the levels. Labels of classes are the
    target.
    Only columns that hold numbers are proposed for a missing role.
    """
    columns = columns or {}
    levels = {role: name for role, name in columns.items() if re.fullmatch(r"0?\.\d+|[01]\.?0*", role)}
    named = {_ALIASES.get(role, role): str(name) for role, name in columns.items() if role not in levels}
    unknown = [role for role in named if role not in ROLES]
    if unknown:
        raise SettingsError(
            f"columns= has an unknown role {', '.join(unknown)}{closest(unknown[0], ROLES)}; "
            f"the roles are {', '.join(ROLES)}"
        )
    chosen = {role: _find(table, role, name) for role, name in named.items()}
    if levels and "quantiles" in chosen:
        raise SettingsError("columns name quantiles by level and by pattern; choose one")
    if levels:
        chosen["quantiles"] = [_find(table, level, name)[0] for level, name in levels.items()]
        chosen["levels"] = list(levels)
    elif "quantiles" in chosen:
        chosen |= _by_level(table.path, chosen["quantiles"])
    guesses = CLASS_GUESSES if _are_classes(table.names, columns) else GUESSES
    if _spread(chosen) is None:
        # Ends that have the usual names ask for a level, where there is nothing else.
        chosen |= _guess_spread(table, guesses, "level" in chosen) or _guess_spread(table, guesses, True)
    spread = _spread(chosen) or (("probs",) if guesses is CLASS_GUESSES else ("std",))
    for role in ("target", *(["mean"] if WAYS[spread] != "refused" else []), "groups", "by"):
        if role not in chosen:
            chosen |= _guess(table, role, guesses)
    needed = ("target", *(["mean"] if WAYS[spread] == "needed" else []), *spread)
    missing = [role for role in needed if role not in chosen]
    if missing:
        raise SettingsError(_missing_columns(table, chosen, missing, guesses is CLASS_GUESSES))
    _check_companions(chosen)
    return chosen


def _are_classes(names: Sequence[str], columns: Mapping[str, str]) -> bool:
    """True if the file holds classes, judging by its names or by those the user gave."""
    if {"probs", "logits", "labels"} & columns.keys():
        return True
    lower = {name.lower() for name in names}
    if lower & {*CLASS_GUESSES["probs"], "logits"}:
        return True
    is_labelled = bool(lower & set(CLASS_GUESSES["target"])) and not lower & set(GUESSES["std"])
    return is_labelled and any(_by_class(names, role) for role in OF_CLASSES)


def _by_class(names: Sequence[str], role: str) -> list[str]:
    """The columns of the classes 0, 1, ... by their names; empty where a class is missing."""
    for stem in OF_CLASSES[role]:
        matches = (re.fullmatch(rf"{stem}[_-]?(\d+)", name, re.IGNORECASE) for name in names)
        found = {int(match[1]): match[0] for match in matches if match}
        if len(found) > 1 and found.keys() == set(range(len(found))):
            return [found[number] for number in range(len(found))]
    return []


def _find(table: ColumnFile, role: str, name: str) -> list[str]:
    """The columns that a name or pattern means; those of classes in the order of their numbers."""
    names = table.names
    if role == "level" or name in names:  # a level is a number, not a column
        return [name]
    found = [candidate for candidate in names if role in SEVERAL and fnmatchcase(candidate, name)]
    if not found:
        listed = some_of(names, MOST_LISTED)
        raise SettingsError(
            f"{table.path} has no column {name!r} for {role}{closest(name, names)}; it has {listed}"
        )
    if role in OF_CLASSES:  # prob_2 before prob_10
        found.sort(key=lambda one: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", one)])
    return found


def _spread(chosen: Mapping[str, object]) -> tuple[str, ...] | None:
    stated = [roles for roles in WAYS if any(role in chosen for role in roles)]
    if len(stated) > 1:
        raise SettingsError(
            f"columns name {' and '.join('/'.join(roles) for roles in stated)}; state the uncertainty only once"
        )
    return stated[0] if stated else None


def _guess(table: ColumnFile, role: str, guesses: Mapping[str, tuple[str, ...]]) -> Chosen:
    found = [name for name in table.names if name.lower() in guesses[role]]
    found = [name for name in found if name.lower() not in _WEAK] or found
    if len(found) > 1:
        raise SettingsError(
            f"{table.path}: {' and '.join(found)} could each be the {role}; say which, for example "
            f"--columns {role}={found[0]} (in Python columns={{{role!r}: {found[0]!r}}})"
        )
    return {role: found} if found else {}


def quantile_level(name: str) -> tuple[str, float] | None:
    """The forecast and level of a quantile column, by its name; None for other columns.

    Examples
    --------
    >>> quantile_level("q10"), quantile_level("0.25"), quantile_level("NHITS-hi-90"), quantile_level("quality")
    (('', 0.1), ('', 0.25), ('NHITS', 0.95), None)
    """
    if found := _BOUND.fullmatch(name):
        half = float(found["inside"] or 0) / 200
        return found["of"], round(0.5 + (half if found["side"] == "hi" else -half), 9)
    if found := _QUANTILE.fullmatch(name):
        text = found["level"] or found["share"]
        level = float(text) / (1 if "." in text and float(text) < 1 else 100)
        return (found["of"] or "", round(level, 9)) if 0 < level < 1 else None
    return None


def _by_level(path: Path, names: Sequence[str]) -> Chosen:
    """Columns of quantiles named after their levels, and the levels; empty if there are none."""
    found = {name: level for name in names if (level := quantile_level(name)) is not None}
    owners = list(dict.fromkeys(owner for owner, _ in found.values()))
    levels = [level for _, level in found.values()]
    if len(owners) > 1 or len(set(levels)) < len(levels):
        raise SettingsError(
            f"{path}: {some_of(found, MOST_LISTED)} could be quantiles of {len(owners)} forecasts; say which, for "
            f"example --columns 0.1=...,0.9=..., or quantiles={owners[0]}*"
        )
    return {"quantiles": list(found), "levels": [f"{level:g}" for level in levels]} if len(found) > 1 else {}


def _guess_spread(table: ColumnFile, guesses: Mapping[str, tuple[str, ...]], has_level: bool) -> Chosen:
    for roles in WAYS:
        found: Chosen = {}
        if (roles[0] in OF_CLASSES) != (guesses is CLASS_GUESSES):
            continue
        if roles == ("quantiles",):
            return _by_level(table.path, table.names)
        if has_level == (roles == ("low", "high")):
            for role in roles:
                found |= _guess(table, role, guesses)
        if roles[0] in OF_CLASSES and not found and (by_class := _by_class(table.names, *roles)):
            return {roles[0]: by_class}
        if len(found) == len(roles):
            return found
    return {}


def _missing_columns(table: ColumnFile, chosen: Chosen, missing: Sequence[str], are_classes: bool) -> str:
    """Say what is missing and how to name it, using numeric columns without a role as the example."""
    start = f"{table.path}: no column looks like "
    listed = some_of(table.names, MOST_LISTED)
    middle = f"; the file has columns {listed}; say which is which, for example --columns "
    if are_classes:
        told = " or ".join("labels" if role == "target" else role for role in missing)
        return f"{start}{told}{middle}'labels=NAME,probs=prob_*'"
    taken = {name for several in chosen.values() for name in several}
    spare = [name for name in table.names if name not in taken and not _PLACES.fullmatch(name)]
    stems = {name: _ENDING.sub("", name) for name in spare if table.holds_numbers(name)}
    alike = [stem for name, stem in stems.items() if stem != name and [*stems.values()].count(stem) > 1]
    free = [name for name, stem in stems.items() if stem not in alike]
    found = zip_longest(missing, free[: len(missing)], fillvalue="...")
    example = ",".join(f"{role}={name}" for role, name in found)
    pattern = f"{alike[0]}{'*' if alike[0].endswith(('_', '-')) else '[0-9]*'}" if alike else ""
    classes = f"; of classes, --columns 'labels=NAME,probs={pattern}'" if alike else ""
    return f"{start}{', '.join(missing)}{middle}{quote(example)} (roles: {', '.join(ROLES)}){classes}"


def _check_companions(chosen: Mapping[str, object]) -> None:
    """Check for roles that require or exclude each other."""
    spread = _spread(chosen)
    if spread == ("low", "high") and "level" not in chosen:
        raise SettingsError(
            "low and high need the probability between them; add, for example, level=0.9 to the columns"
        )
    for role, roles in (("level", ("low", "high")), ("member_std", ("samples",))):
        if role in chosen and spread != roles:
            raise SettingsError(f"{role} belongs to {' and '.join(roles)}; also name these columns")
    if spread is not None and "mean" in chosen and WAYS[spread] == "refused":
        raise SettingsError(f"{spread[0]} determine the mean; omit mean from the columns")


def check_numbers(path: Path, chosen: Chosen, arrays: Mapping[str, Any]) -> None:
    """Raise InputTypeError, naming the column, if it holds dates or text; EmptyInputError if a table has no rows."""
    numeric = NUMERIC if OF_CLASSES.keys() & chosen.keys() else NUMERIC | {"target"}
    for role, several in chosen.items():
        for name in several if role in numeric else ():
            array = np.asarray(arrays[name])
            if array.dtype.kind == "O" and not array.size:
                raise EmptyInputError(f"{path} has column names but no rows; there is nothing to score")
            found = _other_than_numbers(array)
            if found:
                raise InputTypeError(f"{path}: column {name!r} (for {role}) holds {found}, not numbers")


def _other_than_numbers(array: npt.NDArray[Any]) -> str:
    """Name what an array holds instead of numbers; empty for numbers, and if only the values would tell."""
    if array.dtype.kind in "fiubc":
        return ""
    first = next((value for value in array.flat if value is not None and value == value), None)
    texts = [(row, value) for row, value in enumerate(array.flat, start=1) if isinstance(value, str)]
    if texts:
        row, text = next(((row, text) for row, text in texts if not _NUMBER.fullmatch(text)), texts[0])
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return f"text such as {str(text)!r}" + (f" (data row {row})" if array.ndim == 1 else "")
        return "dates"
    return "dates" if isinstance(first, date | np.datetime64) else ""
