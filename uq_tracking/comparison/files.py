"""The comparison as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.checks import path_of
from uq_tracking.comparison.differences import Difference
from uq_tracking.comparison.maps import MapCase
from uq_tracking.comparison.metrics import metric_from_dict, metric_to_dict
from uq_tracking.comparison.runs import ScoredRun, SkippedRun
from uq_tracking.errors import FileFormatError
from uq_tracking.tables.model import Cell
from uq_tracking.typed import DAMAGE, record

if TYPE_CHECKING:
    from uq_tracking.comparison.result import Comparison

FORMAT = "uq_tracking.comparison"
SCHEMA = 1
"""Version of the file format; increased when older readers would misread new files."""


def comparison_json(comparison: Comparison) -> str:
    """Strict JSON. The entry ``derived`` is for other programs; it is recomputed when read back."""
    return json.dumps(comparison_dict(comparison), allow_nan=False, indent=1)


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """Facts and what follows from them, as plain values."""
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "task": comparison.task,
        "sources": list(comparison.sources),
        "level": comparison.level,
        "baseline": comparison.baseline,
        "headline": list(comparison.headline),
        "metrics": [metric_to_dict(metric) for metric in comparison.metrics],
        "runs": [run.to_dict() for run in comparison.runs],
        "differences": [item.to_dict() for item in comparison.differences],
        "ties": [item.to_dict() for item in comparison.ties],
        "maps": [case.to_dict() for case in comparison.maps],
        "warnings": list(comparison.warnings),
        "skipped": [vars(run) for run in comparison.skipped],
        "derived": _derived(comparison),
    }


def _derived(comparison: Comparison) -> dict[str, Any]:
    table = {
        name: {key: _cell_dict(cell) for key, cell in comparison.table[name].cells.items()}
        for name in comparison.methods
    }
    bounds = {
        name: {key: vars(bound) for key, bound in found.items()} for name, found in comparison.bounds.items()
    }
    tied = {key: sorted(names) for key, names in comparison.tied_with_best.items()}
    agreement = {"metrics": comparison.agreement.keys, "kendall_tau": comparison.agreement.tau}
    return {
        "methods": comparison.methods,
        "table": table,
        "bounds": bounds,
        "tied_with_best": tied,
        "agreement": agreement,
        "verdicts": {name: vars(verdict) for name, verdict in comparison.verdicts.items()},
    }


def _cell_dict(cell: Cell) -> dict[str, Any]:
    names = ("value", "spread", "runs", "of", "interval", "rank", "worst_rank", "mark", "reason")
    found = {name: getattr(cell, name) for name in names} | {"infinite": cell.infinite}
    return found | {"value": None} if cell.infinite else found


def comparison_fields(source: str | Path) -> dict[str, Any]:
    """The arguments of the comparison in a text, or in the file at a path; FileFormatError for anything else."""
    is_path = not isinstance(source, str) or not source.lstrip().startswith("{")
    name = str(source) if is_path else "the text"
    try:
        values = json.loads(path_of(source).read_text(encoding="utf-8") if is_path else str(source))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{name} is not JSON ({error})") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FileFormatError(f"{name} is not a uq_tracking comparison")
    if not isinstance(values.get("schema"), int) or values["schema"] > SCHEMA:
        raise FileFormatError(
            f"{name} has schema {values.get('schema')}, but this version reads up to {SCHEMA}; upgrade uq-tracking"
        )
    try:
        return _fields(values)
    except DAMAGE as error:
        raise FileFormatError(f"{name} is a damaged comparison ({error!r})") from error


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``Comparison``."""
    return {
        "task": str(values["task"]),
        "runs": tuple(ScoredRun.from_dict(run) for run in values["runs"]),
        "metrics": tuple(metric_from_dict(metric) for metric in values["metrics"]),
        "headline": tuple(map(str, values["headline"])),
        "level": float(values["level"]),
        "baseline": values["baseline"],
        "differences": tuple(Difference.from_dict(item) for item in values["differences"]),
        "ties": tuple(Difference.from_dict(item) for item in values["ties"]),
        "maps": tuple(MapCase.from_dict(case) for case in values["maps"]),
        "warnings": tuple(map(str, values["warnings"])),
        "skipped": tuple(record(SkippedRun, run) for run in values["skipped"]),
        "sources": tuple(map(str, values["sources"])),
    }
