"""The comparison as one HTML page that needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment
from markupsafe import Markup

from uq_tracking._version import __version__
from uq_tracking.comparison.metrics import by_family, family
from uq_tracking.comparison.overlays import FloatArray, Overlay
from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.comparison.table import disagreement, intervals_used, without_value
from uq_tracking.comparison.verdicts import UNJUDGED, MethodVerdict, unjudged
from uq_tracking.errors import BackendError
from uq_tracking.formatting import COLORS, format_score, one_line, shorten_middle, shortened
from uq_tracking.inference.words import SLIGHT
from uq_tracking.metrics.registry import Metric
from uq_tracking.tables.html import templates
from uq_tracking.tables.model import Cell, Column, better_text, unit_text
from uq_tracking.tracking.names import COMPARISON_NAME, PAGE_FILE
from uq_tracking.tracking.resolve import targets_of
from uq_tracking.tracking.writer import RunWriter

if TYPE_CHECKING:
    from uq_tracking.comparison.maps import MapPanel
    from uq_tracking.comparison.result import Comparison

TITLE = "Uncertainty methods compared"
SETTINGS = ("alpha", "n_bins", "distribution", "family", "std_floor")
ARROWS = {"lower": "↓", "higher": "↑", "": ""}
SIGNS = {"best": "★", "worst": "▾", "tied": "≈"}
LETTERS, TWO_LINES = 26, 48
"""Maximum characters of a method's name, if names stay distinct: in pictures, and in tables."""
SHADES = 10
"""Steps from the best rank's color to the worst's; the style sheet has a class for each."""
SIDES = {
    "overconfident": "over",
    "overconfident in few samples": "over",
    "underconfident": "under",
    "consistent with calibrated": "fine",
}
WIDEST = 4.0
"""Factor on the std at which a verdict's bar is full."""
DIGITS = 5
"""Significant digits of a curve's points: more than a screen can show."""


def comparison_page(comparison: Comparison) -> str:
    """The whole page. The browser may run only this script and style, show embedded pictures, and load nothing."""
    style = _resource("page.css") + _map_colors(comparison)
    script = _resource("page.js")
    lines = [line for overlay in comparison.curves.values() for line in overlay.lines]
    return (
        _environment()
        .get_template("page.html")
        .render(
            comparison=comparison,
            table=comparison.table,
            title=TITLE,
            version=__version__,
            policy=f"default-src 'none'; img-src data:; script-src '{_digest(script)}'; "
            f"style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'",
            style=Markup(style),
            script=Markup(script),
            data=Markup(_json(_data(comparison))),
            families=_families(comparison),
            scatter=_scatter(comparison),
            marks={name: _marks(verdict) for name, verdict in comparison.verdicts.items()},
            starred=_starred(comparison.verdicts),
            unjudged=unjudged(comparison.groups),
            glossary=by_family(comparison.metrics),
            intervals_used=intervals_used(comparison),
            without=without_value(comparison.table),
            disagreement=disagreement(comparison, comparison.shown()),
            columns={column.key: column for column in comparison.table.columns},
            index={name: k for k, name in enumerate(comparison.methods)},
            labels=_labels(comparison, LETTERS),
            two_lines=_labels(comparison, TWO_LINES),
            banded=any(line.low is not None for line in lines),
            by_chance=any(line.chance is not None for line in lines),
            settings=SETTINGS,
            half=any(run.of_half for run in comparison.runs),
        )
    )


def log_page(comparison: Comparison, run: Any = None) -> None:
    """Write the page to a run, or to a new one if an address names none; see ``Comparison.log``."""
    targets = targets_of(run, None, name=COMPARISON_NAME)
    if not targets:
        raise BackendError(
            "no tracker has an active run; pass run=, for example mlflow:EXPERIMENT, or write a file with to_html"
        )
    with TemporaryDirectory(prefix="uq_tracking_") as folder:
        path = Path(folder) / PAGE_FILE
        comparison.to_html(path)
        writers = [RunWriter(target) for target in targets]
        for writer in writers:
            writer.write_together([("the comparison", lambda run: run.log_file(path, PAGE_FILE))])
            writer.close()
    problems = [problem for writer in writers if (problem := writer.problem())]
    if problems:
        raise BackendError(" ".join(problems))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = templates("uq_tracking.comparison").overlay()
    environment.filters = {
        **environment.filters,
        "arrow": _arrow,
        "base64": lambda data: base64.b64encode(data).decode(),
        "better": better_text,
        "classes": _classes,
        "column_arrow": _column_arrow,
        "color_class": _color_class,
        "details": _details,
        "in_order": _in_order,
        "run_facts": _run_facts,
        "score": format_score,
        "shorten": shorten_middle,
        "sign": lambda cell: SIGNS.get(cell.mark or "", ""),
        "sort_key": _sort_key,
        "swatch": lambda k: f"swatch c{k % len(COLORS)} d{min(k // len(COLORS), 3)}",
        "unit": lambda metric, unit: unit_text(metric.unit, unit),
    }
    return environment


def _resource(name: str) -> str:
    return files("uq_tracking.comparison").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """The digest by which a content security policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _map_colors(comparison: Comparison) -> str:
    """The colors of the maps, as a style sheet: the policy forbids style attributes."""
    if not comparison.maps:
        return ""
    scales = comparison.maps[0].scales
    stops = {kind: ", ".join(map(_color, scale.colors)) for kind, scale in scales.items()}
    rules = [
        f".bar.{kind} {{ background: linear-gradient(to right, {found}); }}" for kind, found in stops.items()
    ]
    named = sorted({_color(color) for case in comparison.maps for _, color in case.classes})
    rules += [f".class.{_color_class(color)} {{ background: {color}; }}" for color in named]
    return "\n" + "\n".join(rules) + "\n"


def _color_class(color: str) -> str:
    """The name of a color in the style sheet."""
    return f"x{_color(color)[1:]}"


def _color(value: str) -> str:
    """A color, if it is one; a comparison's file may come from anywhere."""
    digits = value.removeprefix("#")
    valid = len(digits) == 6 and all(digit in "0123456789abcdefABCDEF" for digit in digits)
    return f"#{digits}" if valid else "#808080"


def _labels(comparison: Comparison, letters: int) -> dict[str, str]:
    """A name of about this many characters for each method."""
    names = [one_line(name) for name in comparison.methods]
    return dict(zip(comparison.methods, shortened(names, letters), strict=True))


def _marks(verdict: MethodVerdict) -> dict[str, Any]:
    """What a verdict's bars show, 0 to 100: how far from calibrated, and how close the ranking is to an oracle's."""
    few = verdict.calibration == "overconfident in few samples"  # which determine the factor
    factor, recovered = None if few else verdict.scale, verdict.recovered
    reach = 0.0 if not factor else min(abs(math.log(factor)) / math.log(WIDEST), 1.0)
    said, side = verdict.calibration, SIDES.get(verdict.calibration, "other")
    if factor and side in ("over", "under"):
        times = max(factor, 1 / factor)
        said, side = f"{times:.2f} \N{MULTIPLICATION SIGN} {said}", "other" if times < SLIGHT else side
    return {
        "side": side,
        "calibration": said,
        "left": bool(factor and factor < 1),
        "reach": round(50 * reach, 1),
        "ranking": None if recovered is None or verdict.ranking == UNJUDGED else round(100 * recovered),
    }


def _starred(verdicts: Mapping[str, MethodVerdict]) -> set[str]:
    """Methods that find most errors, of those that find more than a constant uncertainty would."""
    found = {
        name: verdict.recovered
        for name, verdict in verdicts.items()
        if verdict.ranking == "useful" and verdict.recovered is not None
    }
    return {name for name, share in found.items() if share == max(found.values())}


def _families(comparison: Comparison) -> list[tuple[str, str]]:
    """Buttons that choose which metrics to show; none if all are headline metrics."""
    if len(comparison.headline) == len(comparison.metrics):
        return []
    found = list(by_family(comparison.metrics))
    single = [(name, name) for name in found] if len(found) > 1 else []
    return [("headline", "Headline"), *single, ("all", "All metrics")]


def _arrow(metric: Metric) -> str:
    """An arrow, the target value, or nothing."""
    better = better_text(metric)
    return ARROWS.get(better, f"→ {better}")


def _column_arrow(column: Column) -> str:
    return ARROWS.get(column.better, f"→ {column.better}")


def _classes(cell: Cell) -> str:
    """Classes of the cell's color."""
    if cell.place is None:
        return ""
    found = ["worst" if cell.mark == "worst" else f"s{round(SHADES * cell.place)}"]
    if cell.best or cell.mark == "tied":
        found.append("best" if cell.best else "tied")
    return " ".join(found)


def _in_order(panels: Sequence[MapPanel], index: Mapping[str, int]) -> list[MapPanel]:
    """The panels in the order of the rows."""
    return sorted((p for p in panels if p.method in index), key=lambda panel: index[panel.method])


def _sort_key(cell: Cell) -> str | None:
    """The rank where the metric judges, else the value; None sorts last."""
    if cell.value is None or (cell.rank is None and cell.infinite):
        return None
    return repr(cell.value if cell.rank is None else cell.rank)


def _details(cell: Cell) -> str:
    """All digits, and everything else known about a cell."""
    if cell.value is None:
        return f"no value: {cell.reason}" if cell.reason else "no value"
    parts = [(cell.reason or "infinite") if cell.infinite else repr(cell.value)]
    if cell.spread is not None:
        parts.append(f"mean of {cell.runs} runs, standard deviation {cell.spread!r}")
    elif cell.runs < cell.of:
        parts.append(f"{cell.runs} of {cell.of} runs have it")
    if cell.interval is not None:
        parts.append(f"interval {cell.interval[0]!r} to {cell.interval[1]!r}")
    if cell.ranked:
        meaning = {"best": ", best", "worst": ", worst", "tied": ", not distinguishable from the best"}
        parts.append(f"rank {cell.rank} of {cell.worst_rank}{meaning.get(cell.mark or '', '')}")
    return "; ".join(parts)


def _json(values: Any) -> str:
    """JSON that is safe inside a ``script`` element: no ``<`` can end it."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _data(comparison: Comparison) -> dict[str, Any]:
    """The numbers that the page's script draws."""
    index, labels = {name: k for k, name in enumerate(comparison.methods)}, _labels(comparison, LETTERS)
    return {
        "methods": list(index),
        "labels": list(labels.values()),
        "baseline": comparison.baseline,
        "baselineLabel": labels.get(comparison.baseline or ""),
        "sortedBy": None if comparison.sorted_by is None else comparison.sorted_by.key,
        "level": comparison.level,
        "metrics": {metric.key: _metric(comparison, metric) for metric in comparison.metrics},
        "curves": _curves(comparison, index),
        "scatter": _scatter(comparison),
        "csv": comparison.to_csv(),
        "differences": sorted(
            ({**item.to_dict(), "method": index[item.method]} for item in comparison.differences),
            key=lambda item: item["method"],
        ),
    }


def _metric(comparison: Comparison, metric: Metric) -> dict[str, Any]:
    return {
        "summary": metric.summary,
        "formula": metric.formula,
        "source": metric.source,
        "family": family(metric),
        "unit": unit_text(metric.unit, comparison.unit),
        "better": better_text(metric) or "does not judge",
        "mark": _arrow(metric),
    }


def _scatter(comparison: Comparison) -> dict[str, Any] | None:
    """A point per method with both scores; None if fewer than two have them."""
    known = {metric.key for metric in comparison.metrics}
    pairs = ((metric.against, metric.key) for metric in comparison.metrics if metric.against)
    pair = next((pair for pair in pairs if known.issuperset(pair)), None)
    if pair is None:
        return None
    cells = {name: [comparison.table[name][key] for key in pair] for name in comparison.methods}
    points = [
        {"method": k, "x": x.value, "y": y.value, "xInterval": x.interval, "yInterval": y.interval}
        for k, (x, y) in enumerate(cells.values())
        if x.value is not None and y.value is not None and not (x.infinite or y.infinite)
    ]
    bounds = {name: found.get(pair[1]) for name, found in comparison.bounds.items()}
    levels = [{"name": name, "value": bound.high} for name, bound in bounds.items() if bound is not None]
    return {"x": pair[0], "y": pair[1], "points": points, "levels": levels} if len(points) > 1 else None


def _curves(comparison: Comparison, index: dict[str, int]) -> list[dict[str, Any]]:
    """Every curve; duplicate titles are completed by the end of the curve's name."""
    found = [_overlay(overlay, index) for overlay in comparison.curves.values()]
    titles = [curve["title"] for curve in found]
    for curve in found:
        if titles.count(curve["title"]) > 1:
            curve["title"] += f", {curve['name'].rpartition('_')[2].upper()}"
    return found


def _overlay(overlay: Overlay, index: dict[str, int]) -> dict[str, Any]:
    """One name's curves; positions and bands shared by several runs are written once."""
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
        "name": overlay.name,
        "title": overlay.title,
        "xLabel": overlay.x_label,
        "yLabel": overlay.y_label,
        "diagonal": overlay.diagonal,
        "levels": list(overlay.levels),
        "labels": list(overlay.labels),
        "yLimits": None if overlay.y_limits is None else list(overlay.y_limits),
        "x": [list(x) for x in places],
        "chances": [{"x": place, "low": low, "high": high} for place, low, high in chances],
        "lines": lines,
    }


def _rounded(values: FloatArray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=float).tolist()]


def _run_facts(run: ScoredRun) -> list[object]:
    """How a run was scored, for the list of runs."""
    report = run.report
    found = [report.settings.get(name) for name in SETTINGS]
    return [
        f"{report.counts.get('n', 0):,}",
        report.provenance.get("statistics"),
        *found,
        report.provenance.get("version"),
    ]
