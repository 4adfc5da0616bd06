"""The comparison as one HTML page that needs no network."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from uq_tracking import plugins
from uq_tracking._version import __version__
from uq_tracking.comparison.curves import Overlay
from uq_tracking.comparison.facts import UNJUDGED, Facts, MethodVerdict, by_family, family
from uq_tracking.comparison.table import disagreement, intervals_used, skipped_by_reason, without_value
from uq_tracking.curves import FloatArray
from uq_tracking.formatting import COLORS, format_score, one_line, shorten_middle, shortened
from uq_tracking.inference.words import SLIGHT
from uq_tracking.metrics.registry import Metric
from uq_tracking.tables import Table, better_text, unit_text
from uq_tracking.tables.formats import templates
from uq_tracking.tables.report import classes_table
from uq_tracking.tracking.overview import scored_as
from uq_tracking.typed import plain

TITLE = "Uncertainty methods compared"
ARROWS = {"lower": "↓", "higher": "↑", "": ""}
LETTERS, TWO_LINES = 26, 48
"""Maximum characters of a method's name, if names stay distinct: in pictures, and in tables."""
SIDES = {
    "overconfident": "over",
    "overconfident in few samples": "over",
    "overconfident in the tails": "over",
    "overconfident, most in the tails": "over",
    "underconfident": "under",
    "calibrated": "fine",
    "consistent with calibrated": "fine",
}
OF_FEW = ("overconfident in few samples", "overconfident in the tails")
"""Words whose factor is determined by few samples."""
WIDEST = 4.0
"""Factor on the std at which a verdict's bar is full."""
MOST_CLASSES = 25
"""Rows of a method's table of classes."""
DIGITS = 5
"""Significant digits of a curve's points: more than a screen can show."""


def comparison_page(facts: Facts, table: Table, csv: str) -> str:
    """Return the whole page; browsers may run only its script, show its pictures, and load nothing."""
    style = _resource("page.css") + _map_colors(facts)
    script = _resource("plot.min.js") + _resource("page.js")
    index, labels = {name: k for k, name in enumerate(facts.methods)}, _labels(facts, LETTERS)
    data = {
        "methods": list(index),
        "labels": list(labels.values()),
        "looks": list(facts.looks.values()),
        "baseline": facts.baseline,
        "baseline_label": labels.get(facts.baseline or ""),
        "sorted_by": None if facts.sorted_by is None else facts.sorted_by.key,
        "metrics": {metric.key: _metric(facts, metric) for metric in facts.metrics},
        "curves": _curves(facts, index),
        "scatter": _scatter(facts, table),
        "csv": csv,
        "differences": sorted(
            ({**plain(item), "method": index[item.method]} for item in facts.differences),
            key=lambda item: item["method"],
        ),
    }
    lines = [line for overlay in facts.curves.values() for line in overlay.lines]
    environment = templates("uq_tracking.comparison")
    environment.filters.update(
        base64=lambda data: base64.b64encode(data).decode(),
        color_class=_color_class,
        score=format_score,
        scored_as=scored_as,
        shorten=shorten_middle,
        swatch=lambda k: f"swatch c{k % len(COLORS)} d{min(k // len(COLORS), 3)}",
    )
    return environment.get_template("page.html").render(
        comparison=facts,
        map_note=Markup(plugins.maps(facts.task)["uncertainty"].note) if facts.maps else "",
        table=table,
        title=TITLE,
        version=__version__,
        policy=f"default-src 'none'; img-src data:; script-src '{_digest(script)}'; "
        f"style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'",
        style=Markup(style),
        script=Markup(script),
        data=htmlsafe_json_dumps(data, allow_nan=False, separators=(",", ":")),
        scatter=data["scatter"],
        marks=_marks(facts.verdicts),
        glossary=by_family(facts.metrics),
        about=data["metrics"],
        intervals_used=intervals_used(facts),
        without=without_value(table),
        disagreement=disagreement(facts, facts.shown()),
        columns={column.key: column for column in table.columns},
        index=index,
        looks=list(facts.looks.values()),
        labels=labels,
        two_lines=_labels(facts, TWO_LINES),
        banded=any(line.low is not None for line in lines),
        by_chance=any(line.chance is not None for line in lines),
        half=any(run.of_half for run in facts.runs),
        class_tables=_classes(facts),
        skipped=skipped_by_reason(facts.skipped),
    )


def _resource(name: str) -> str:
    return files("uq_tracking.comparison").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """Return the digest by which a content security policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _map_colors(facts: Facts) -> str:
    """Return the colors of the maps as a style sheet: the policy forbids style attributes."""
    if not facts.maps:
        return ""
    scales = facts.maps[0].scales
    stops = {kind: ", ".join(map(_color, scale.colors)) for kind, scale in scales.items()}
    rules = [
        f".bar.{kind} {{ background: linear-gradient(to right, {found}); }}" for kind, found in stops.items()
    ]
    named = sorted({_color(color) for case in facts.maps for _, color in case.classes})
    rules += [f".class.{_color_class(color)} {{ background: {color}; }}" for color in named]
    return "\n" + "\n".join(rules) + "\n"


def _color_class(color: str) -> str:
    """Return the name of a color in the style sheet."""
    return f"x{_color(color)[1:]}"


def _color(value: str) -> str:
    """Return a color, grey if it is none; a comparison's file may come from anywhere."""
    return f"#{value[-6:]}" if re.fullmatch("#?[0-9a-fA-F]{6}", value) else "#808080"


def _classes(facts: Facts) -> dict[str, tuple[Table, dict[str, str]]]:
    """Return, by method, the table of classes of the first run that has one, and the lines of its classes.

    A line holds the points of a reliability curve in a square of 40.
    """
    found: dict[str, tuple[Table, dict[str, str]]] = {}
    for name, runs in facts.groups.items():
        report = next((run.report for run in runs if run.report.class_table is not None), None)
        classes = None if report is None else report.class_table
        if report is None or classes is None or (table := classes_table(report, MOST_CLASSES)) is None:
            continue
        lines = {}
        for place, label in enumerate(classes.labels if classes.bins else ()):
            count, stated, observed = (classes.bins[key][place] for key in ("count", "stated", "observed"))
            known = zip(40 * stated[count > 0], 40 - 40 * observed[count > 0], strict=True)
            lines[one_line(label)] = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
        found[name] = table, lines
    return found


def _labels(facts: Facts, letters: int) -> dict[str, str]:
    """Return a name of about this many characters for each method."""
    names = [one_line(name) for name in facts.methods]
    return dict(zip(facts.methods, shortened(names, letters), strict=True))


def _marks(verdicts: Mapping[str, MethodVerdict]) -> dict[str, dict[str, Any]]:
    """Return lengths of each verdict's bars, 0 to 100: distance from calibrated, and gain relative to an oracle's.

    Those that find most errors have a star, if they find more than a constant uncertainty would.
    """
    marks = {}
    gains = [found.recovered or 0.0 for found in verdicts.values() if found.ranking == "useful"]
    for name, verdict in verdicts.items():
        said, side = verdict.calibration, SIDES.get(verdict.calibration, "other")
        factor, recovered = None if said in OF_FEW else verdict.scale, verdict.recovered
        reach = 0.0 if not factor else min(abs(math.log(factor)) / math.log(WIDEST), 1.0)
        if factor and side in ("over", "under"):
            times = max(factor, 1 / factor)
            said, side = f"{times:.2f} \N{MULTIPLICATION SIGN} {said}", "other" if times < SLIGHT else side
        marks[name] = {
            "side": side,
            "calibration": said,
            "left": bool(factor and factor < 1),
            "reach": round(50 * reach, 1),
            "ranking": None if recovered is None or verdict.ranking == UNJUDGED else round(100 * recovered),
            "starred": verdict.ranking == "useful" and recovered == max(gains),
        }
    return marks


def _metric(facts: Facts, metric: Metric) -> dict[str, Any]:
    """Return what to know of a metric; its mark is an arrow, the target value, or nothing."""
    better = better_text(metric)
    return {
        "summary": metric.summary,
        "formula": metric.formula,
        "source": metric.source,
        "family": family(metric),
        "unit": unit_text(metric.unit, facts.unit),
        "better": better or "does not judge",
        "mark": ARROWS.get(better, f"→ {better}"),
    }


def _scatter(facts: Facts, table: Table) -> dict[str, Any] | None:
    """Return a point per method with both scores; None if fewer than two have them."""
    known = {metric.key for metric in facts.metrics}
    pairs = ((metric.against, metric.key) for metric in facts.metrics if metric.against)
    pair = next((pair for pair in pairs if known.issuperset(pair)), None)
    if pair is None:
        return None
    cells = {name: [table[name][key] for key in pair] for name in facts.methods}
    points = [
        {"method": k, "x": x.value, "y": y.value, "x_interval": x.interval, "y_interval": y.interval}
        for k, (x, y) in enumerate(cells.values())
        if x.value is not None and y.value is not None and not (x.infinite or y.infinite)
    ]
    bounds = {name: found.get(pair[1]) for name, found in facts.bounds.items()}
    levels = [{"name": name, "value": bound.high} for name, bound in bounds.items() if bound is not None]
    return {"x": pair[0], "y": pair[1], "points": points, "levels": levels} if len(points) > 1 else None


def _curves(facts: Facts, index: dict[str, int]) -> list[dict[str, Any]]:
    """Return every curve; duplicate titles are completed by the end of the curve's name."""
    found = [_overlay(overlay, index) for overlay in facts.curves.values()]
    titles = [curve["title"] for curve in found]
    for curve in found:
        if titles.count(curve["title"]) > 1:
            curve["title"] += f", {curve['name'].rpartition('_')[2].upper()}"
    return found


def _overlay(overlay: Overlay, index: dict[str, int]) -> dict[str, Any]:
    """Return one name's curves; positions and bands shared by several runs are written once."""
    places: dict[tuple[float, ...], int] = {}
    chances: dict[tuple[Any, ...], int] = {}
    lines = []
    for line in overlay.lines:
        x = tuple(_rounded(line.x))
        place = places.setdefault(x, len(places))
        made = {"method": index[line.method], "run": line.label, "x": place, "y": _rounded(line.y)}
        if line.low is not None and line.high is not None:
            made |= {"low": _rounded(line.low), "high": _rounded(line.high)}
        if line.chance is not None:
            ends = (place, *(tuple(_rounded(end)) for end in line.chance))
            made["chance"] = chances.setdefault(ends, len(chances))
        lines.append(made)
    return {
        **plain(replace(overlay, lines=())),
        "x": [list(x) for x in places],
        "chances": [{"x": place, "low": low, "high": high} for place, low, high in chances],
        "lines": lines,
    }


def _rounded(values: FloatArray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=float).tolist()]
