"""The page put together: template, style, script, data, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from uq_tracking._version import __version__
from uq_tracking.comparison import wording
from uq_tracking.comparison.page import scores, sections
from uq_tracking.comparison.page.data import page_data
from uq_tracking.comparison.page.markup import joined, tag, text

if TYPE_CHECKING:
    from uq_tracking.comparison.result import Comparison

TITLE = "Uncertainty methods compared"


def comparison_page(comparison: Comparison) -> str:
    """The whole page. The browser may run this script and this style, show embedded pictures, and load nothing."""
    style = _resource("page.css") + _bars(comparison)
    script = _resource("page.js")
    return Template(_resource("page.html")).substitute(
        policy=f"default-src 'none'; img-src data:; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'",
        title=text(TITLE),
        style=style,
        script=script,
        data=page_data(comparison),
        headline=text(wording.headline_text(comparison)),
        sources=joined(tag("code", text(source)) + " " for source in comparison.sources),
        warnings=sections.warnings(comparison),
        chips=sections.chips(comparison),
        families=scores.families(comparison),
        options=_options(comparison),
        scores=scores.score_table(comparison),
        legend=joined(tag("p", text(line)) for line in _legend(comparison)),
        differences=_differences(comparison),
        curves=_section("curves", "Curves", _CURVES) if comparison.curves else "",
        maps=_maps(comparison),
        agreement=sections.agreement(comparison),
        disagreement=_disagreement(comparison),
        glossary=sections.glossary(comparison),
        runs=sections.runs(comparison),
        navigation=_navigation(comparison),
        version=text(__version__),
    )


_CURVES = (
    '<p class="quiet">One line per run. Point at a picture to read the values; the thin dashed line is a perfect '
    'model, or the bound named in the axis.</p><div id="curve-grid" class="grid"></div>'
)


def _resource(name: str) -> str:
    return files("uq_tracking.comparison.page").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """How a content security policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _section(name: str, title: str, content: str) -> str:
    return tag("section", tag("h2", text(title)) + content, id=name)


def _bars(comparison: Comparison) -> str:
    """The colour bars of the maps, as style: the policy allows none in an attribute."""
    if not comparison.maps:
        return ""
    case = comparison.maps[0]
    colors = {"value": case.value_colors, "error": case.error_colors}
    rules = (
        f".bar.{kind} {{ background: linear-gradient(to right, {', '.join(map(_color, stops))}); }}"
        for kind, stops in colors.items()
    )
    return "\n" + "\n".join(rules) + "\n"


def _color(value: str) -> str:
    """A colour, if that is what it is; a comparison's file may come from anywhere."""
    digits = value.removeprefix("#")
    valid = len(digits) == 6 and all(digit in "0123456789abcdefABCDEF" for digit in digits)
    return f"#{digits}" if valid else "#808080"


def _options(comparison: Comparison) -> str:
    if all(len(runs) == 1 for runs in comparison.groups.values()):
        return ""
    return '<label class="option"><input type="checkbox" id="single-runs"> single runs</label>'


def _legend(comparison: Comparison) -> list[str]:
    lines = ["Colours go by rank from yellow (best) to red; the worst is grey. The small number is the rank."]
    marks = ["★ best", "▾ worst"]
    if any(comparison.tied_with_best.values()):
        marks.append(f"≈ not told apart from the best at {comparison.level:.0%}")
    lines.append(", ".join(marks) + ". Ranks count all methods, shown or hidden.")
    if comparison.bounds:
        lines.append(
            "Oracle: an uncertainty equal to the error. Constant: the same uncertainty everywhere. A range where the "
            "methods differ in their predicted means."
        )
    return lines + [f"{line[0].upper()}{line[1:]}." for line in wording.legend(comparison)[1:]]


def _differences(comparison: Comparison) -> str:
    if not comparison.differences:
        return ""
    used = wording.intervals_used(comparison)
    how = f"Intervals at {comparison.level:.0%}: {', '.join(used)}" if used else "The runs allow no intervals"
    note = tag(
        "p", text(f"{how}; one difference at a time, not corrected for looking at many."), class_="quiet"
    )
    grid = '<div id="difference-grid" class="grid"></div>'
    return _section("differences", f"Differences to {comparison.baseline}", note + grid)


def _maps(comparison: Comparison) -> str:
    if not comparison.maps:
        return ""
    note = (
        "Errors and uncertainties of all methods share one colour scale. Each standard deviation is multiplied "
        "so that it covers the same share of its method's errors: a useful uncertainty looks like the error above it."
    )
    return _section("maps", "Maps", tag("p", text(note), class_="quiet") + sections.maps(comparison))


def _disagreement(comparison: Comparison) -> str:
    found = wording.disagreement(comparison, comparison.shown())
    return tag("p", text(f"{found[0].upper()}{found[1:]}.")) if found else ""


def _navigation(comparison: Comparison) -> str:
    present = [
        ("scores", "Scores", True),
        ("differences", "Differences", bool(comparison.differences)),
        ("curves", "Curves", bool(comparison.curves)),
        ("maps", "Maps", bool(comparison.maps)),
        ("agreement", "Agreement", True),
        ("metrics", "Metrics", True),
        ("runs", "Runs", True),
    ]
    return joined(tag("a", text(label), href=f"#{name}") for name, label, there in present if there)
