"""Which column of a file is what: the roles, their usual names, and the user's choice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from shlex import quote

from uq_tracking.errors import SettingsError, closest

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

ROLES = (*GUESSES, "quantiles", "member_std", "mask", "weights", "level")
SPREADS: tuple[tuple[str, ...], ...] = (
    ("std",),
    ("variance",),
    ("log_variance",),
    ("low", "high"),
    ("samples",),
    ("quantiles",),
)
"""Ways to state the uncertainty, in the order they are looked for."""
NUMERIC = frozenset(
    {"target", "mean", "member_std", "weights", *(role for roles in SPREADS for role in roles)}
)
"""Roles whose columns hold numbers."""
_WITHOUT_MEAN = (("low", "high"), ("samples",), ("quantiles",))
"""Ways that also give the mean if it is absent: as the midpoint, the mean of the members, or the median."""
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
_ALIASES = {"group": "groups"}


def choose(
    path: Path,
    names: Sequence[str],
    columns: Mapping[str, str] | None,
    holds_numbers: Callable[[str], bool] = lambda name: True,
) -> dict[str, list[str]]:
    """The columns of a file by role; only ``samples``, ``member_std`` and ``quantiles`` may have several.

    Quantiles are given by level, ``{"0.1": "lower", "0.9": "upper"}``, or by a pattern of columns named after their
    levels, ``{"quantiles": "q*"}``; the role ``levels`` of the result holds the levels.

    Parameters
    ----------
    path
        How error messages refer to the file.
    names
        Its columns.
    columns
        The user's choice; roles not mentioned are guessed from `GUESSES`.
    holds_numbers
        Whether a column holds numbers; only such columns are proposed for a missing role.

    Raises
    ------
    SettingsError
        A role is unknown, missing or claimed by several columns, the file lacks a column, or the uncertainty is
        stated in two ways.
    """
    given, levels = _levels(columns or {})
    chosen = {role: _find(path, names, role, name) for role, name in _known(given).items()}
    if levels:
        chosen["quantiles"] = [_find(path, names, level, name)[0] for level, name in levels.items()]
        chosen["levels"] = list(levels)
    elif "quantiles" in chosen:
        chosen |= _by_level(path, chosen["quantiles"])
    if _spread(chosen) is None:
        chosen |= _guess_spread(path, names, "level" in chosen)
    needed = ["target"] if _spread(chosen) in _WITHOUT_MEAN else ["target", "mean"]
    own_mean = ["mean"] if _spread(chosen) in (("low", "high"), ("quantiles",)) else []
    for role in (*needed, *own_mean, "groups", "by"):
        if role not in chosen:
            chosen |= _guess(path, names, role)
    missing = [role for role in (*needed, *(_spread(chosen) or ("std",))) if role not in chosen]
    if missing:
        taken = {name for several in chosen.values() for name in several}
        free = [
            name
            for name in names
            if name not in taken and not _PLACES.fullmatch(name) and holds_numbers(name)
        ]
        raise SettingsError(_missing_columns(path, names, missing, free))
    _check_companions(chosen)
    return chosen


def _known(columns: Mapping[str, str]) -> dict[str, str]:
    named = {_ALIASES.get(role, role): str(name) for role, name in columns.items()}
    unknown = [role for role in named if role not in ROLES]
    if unknown:
        raise SettingsError(
            f"columns= has an unknown role {', '.join(unknown)}{closest(unknown[0], ROLES)}; "
            f"the roles are {', '.join(ROLES)}"
        )
    return named


def _find(path: Path, names: Sequence[str], role: str, name: str) -> list[str]:
    if role == "level":  # a number, not a column
        return [name]
    if name in names:
        return [name]
    if role in ("samples", "member_std", "quantiles"):
        several = [candidate for candidate in names if fnmatchcase(candidate, name)]
        if several:
            return several
    raise SettingsError(
        f"{path} has no column {name!r} for {role}{closest(name, names)}; it has {_listed(names)}"
    )


def _spread(chosen: Mapping[str, object]) -> tuple[str, ...] | None:
    stated = [roles for roles in SPREADS if any(role in chosen for role in roles)]
    if len(stated) > 1:
        raise SettingsError(
            f"columns name {' and '.join('/'.join(roles) for roles in stated)}; state the uncertainty only once"
        )
    return stated[0] if stated else None


def _guess(path: Path, names: Sequence[str], role: str) -> dict[str, list[str]]:
    found = [name for name in names if name.lower() in GUESSES[role]]
    strong = [name for name in found if name.lower() not in _WEAK]
    found = strong or found
    if len(found) > 1:
        raise SettingsError(
            f"{path}: {' and '.join(found)} could each be the {role}; say which, for example "
            f"--columns {role}={found[0]} (in Python columns={{{role!r}: {found[0]!r}}})"
        )
    return {role: found} if found else {}


def _levels(columns: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The roles, and the columns of quantiles by level."""
    levels = {role: name for role, name in columns.items() if re.fullmatch(r"0?\.\d+|[01]\.?0*", role)}
    if levels and "quantiles" in columns:
        raise SettingsError("columns name quantiles by level and by pattern; choose one")
    return {role: name for role, name in columns.items() if role not in levels}, levels


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


def _by_level(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Columns of quantiles named after their levels, and the levels; empty if there are none."""
    found = {name: level for name in names if (level := quantile_level(name)) is not None}
    owners = list(dict.fromkeys(owner for owner, _ in found.values()))
    levels = [level for _, level in found.values()]
    if len(owners) > 1 or len(set(levels)) < len(levels):
        raise SettingsError(
            f"{path}: {_listed(found)} could be quantiles of {len(owners)} forecasts; say which, for example "
            f"--columns 0.1=...,0.9=..., or quantiles={owners[0]}*"
        )
    return {"quantiles": list(found), "levels": [f"{level:g}" for level in levels]} if len(found) > 1 else {}


def _guess_spread(path: Path, names: Sequence[str], has_level: bool) -> dict[str, list[str]]:
    for roles in SPREADS:
        found: dict[str, list[str]] = {}
        if roles == ("quantiles",):
            return _by_level(path, names)
        if has_level == (roles == ("low", "high")):
            for role in roles:
                found |= _guess(path, names, role)
        if len(found) == len(roles):
            return found
    return {}


def _missing_columns(path: Path, names: Sequence[str], missing: Sequence[str], free: Sequence[str]) -> str:
    """Say what is missing and how to name it, using numeric columns without a role as the example."""
    found = zip_longest(missing, free[: len(missing)], fillvalue="...")
    example = ",".join(f"{role}={name}" for role, name in found)
    first = next((name for name in free if name.endswith("0") and f"{name[:-1]}1" in free), None)
    classes = "" if first is None else f"; of classes, --columns 'labels=NAME,probs={first[:-1]}[0-9]*'"
    return (
        f"{path}: no column looks like {', '.join(missing)}; the file has columns {_listed(names)}; "
        f"say which is which, for example --columns {quote(example)} (roles: {', '.join(ROLES)}){classes}"
    )


def _check_companions(chosen: Mapping[str, object]) -> None:
    """Check for roles that require or exclude each other."""
    spread = _spread(chosen)
    if spread == ("low", "high") and "level" not in chosen:
        raise SettingsError(
            "low and high need the probability between them; add, for example, level=0.9 to the columns"
        )
    if "level" in chosen and spread != ("low", "high"):
        raise SettingsError("level belongs to low and high; also name those columns")
    if "member_std" in chosen and spread != ("samples",):
        raise SettingsError("member_std belongs to samples; also name that column")
    if "mean" in chosen and spread == ("samples",):
        raise SettingsError("samples determine the mean; omit mean from the columns")


def _listed(names: Iterable[str], most: int = 40) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
