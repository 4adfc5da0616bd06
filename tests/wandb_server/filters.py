"""The part of W&B's Mongo-style run filters that the tests use; anything else raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .state import StoredRun

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, wanted: value == wanted,
    "$ne": lambda value, wanted: value != wanted,
    "$gt": lambda value, wanted: value is not None and value > wanted,
    "$gte": lambda value, wanted: value is not None and value >= wanted,
    "$lt": lambda value, wanted: value is not None and value < wanted,
    "$lte": lambda value, wanted: value is not None and value <= wanted,
    "$in": lambda value, wanted: value in wanted,
    "$exists": lambda value, wanted: (value is not None) == wanted,
    "$regex": lambda value, wanted: isinstance(value, str) and re.search(wanted, value) is not None,
}


def matches(filters: Mapping[str, Any], run: StoredRun) -> bool:
    """Whether a run passes a filter."""
    return all(_clause(name, condition, run) for name, condition in filters.items())


def _clause(name: str, condition: Any, run: StoredRun) -> bool:
    if name == "$and":
        return all(matches(part, run) for part in condition)
    if name == "$or":
        return any(matches(part, run) for part in condition)
    value = _value(name, run)
    if isinstance(condition, Mapping):
        return all(_OPERATORS[operator](value, wanted) for operator, wanted in condition.items())
    return bool(value == condition)


def _value(name: str, run: StoredRun) -> Any:
    kind, _, path = name.partition(".")
    if kind == "summary_metrics":
        return run.summary.get(path)
    if kind == "config":
        return run.config_value(path)
    return {"state": run.state, "name": run.name, "display_name": run.display_name}[name]
