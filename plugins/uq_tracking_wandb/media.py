"""Names of images and tables: the summary entry ``uq_map/case`` of an image is the file ``uq_map/case.png``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_SUFFIX = {"image-file": ".png", "table-file": ".table.json"}
_CHART_TABLE = "_table"
"""What ``wandb`` appends to a chart's key for the table behind it."""


def media_files(summary: Mapping[str, Any]) -> dict[str, str]:
    """Path inside the run of every table and of our images, by listed name."""
    found = {}
    for key, value in entries(summary):
        if value["_type"] == "table-file" or (key.startswith("uq") and value["_type"] in _SUFFIX):
            found[_listed_name(key, value["_type"])] = str(value["path"])
    return found


def _listed_name(key: str, kind: str) -> str:
    if kind == "table-file" and key.startswith("uq"):
        key = key.removesuffix(_CHART_TABLE)
    return key + _SUFFIX[kind]


def entries(summary: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Summary entries that stand for a media file."""
    for key, value in summary.items():
        if isinstance(value, Mapping) and "path" in value and "_type" in value:
            yield key, value


def numbers(summary: Mapping[str, Any]) -> dict[str, float]:
    """Summary entries that are numbers, except W&B's own."""
    return {
        key: float(value)
        for key, value in summary.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not key.startswith("_")
    }
