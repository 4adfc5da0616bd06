"""The numbers that the page's script draws, as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.comparison.overlays import FloatArray, Overlay
from uq_tracking.comparison.page.scores import direction_mark
from uq_tracking.tables import better_text, unit_text

if TYPE_CHECKING:
    from uq_tracking.comparison.result import Comparison

DIGITS = 5
"""Significant digits of a curve's points: more than a screen shows."""


def page_data(comparison: Comparison) -> str:
    """JSON that may stand inside a ``script`` element: no ``<`` can end it."""
    text = json.dumps(_data(comparison), allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _data(comparison: Comparison) -> dict[str, Any]:
    index = {name: k for k, name in enumerate(comparison.groups)}
    return {
        "methods": list(index),
        "baseline": comparison.baseline,
        "level": comparison.level,
        "metrics": {metric.key: _metric(comparison, metric) for metric in comparison.metrics},
        "curves": [_overlay(overlay, index) for overlay in comparison.curves.values()],
        "differences": sorted(
            ({**item.to_dict(), "method": index[item.method]} for item in comparison.differences),
            key=lambda item: item["method"],
        ),
    }


def _metric(comparison: Comparison, metric: Any) -> dict[str, Any]:
    return {
        "summary": metric.summary,
        "formula": metric.formula,
        "source": metric.source,
        "unit": unit_text(metric.unit, comparison.unit),
        "better": better_text(metric) or "does not judge",
        "mark": direction_mark(metric),
    }


def _overlay(overlay: Overlay, index: dict[str, int]) -> dict[str, Any]:
    """One name's curves; horizontal positions that several runs share are written once."""
    places: dict[tuple[float, ...], int] = {}
    lines = []
    for line in overlay.lines:
        x = tuple(_rounded(line.x))
        place = places.setdefault(x, len(places))
        lines.append({"method": index[line.method], "run": line.label, "x": place, "y": _rounded(line.y)})
    return {
        "name": overlay.name,
        "title": overlay.title,
        "xLabel": overlay.x_label,
        "yLabel": overlay.y_label,
        "diagonal": overlay.diagonal,
        "levels": list(overlay.levels),
        "yLimits": None if overlay.y_limits is None else list(overlay.y_limits),
        "x": [list(x) for x in places],
        "lines": lines,
    }


def _rounded(values: FloatArray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=float).tolist()]
