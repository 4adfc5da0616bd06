"""What stands above a figure: its name and method, the verdict, scores, and what was scored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from uq_tracking import plugins
from uq_tracking.figures import style
from uq_tracking.figures.style import MARGIN, cut, readable, text_width, wrapped
from uq_tracking.formatting import format_factors, one_line, shorten_middle

if TYPE_CHECKING:
    from uq_tracking.report import Report

SPACING = 1.32
"""Line height relative to the font size."""
HINTED = 0.97
"""Share of the available width to fill, because hinting makes letters wider."""
NEUTRAL, GOOD = "#444444", "#00734F"
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Line:
    """One line over a figure."""

    text: str
    size: float = style.TEXT
    color: str = "black"
    weight: Literal["normal", "bold"] = "normal"


def put_header(figure: Figure, lines: Sequence[Line]) -> None:
    """Put lines above everything else, cut to the figure's width; the axes get the room below."""
    width, height = (72 * side for side in figure.get_size_inches())
    top = MARGIN
    for line in lines:
        text = cut(line.text, line.size, width - 2 * MARGIN, line.weight)
        figure.text(
            MARGIN / width, 1 - top / height, text, ha="left", va="top", fontsize=line.size, color=line.color,
            fontweight=line.weight,
        )  # fmt: skip
        top += SPACING * line.size
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, 0, 1, 1 - top / height))


def report_header(
    figure: Figure,
    report: Report,
    name: str,
    facts: Iterable[str] = (),
    judged: Sequence[str] = (),
    *,
    when: str = "",
    samples: str = "",
) -> Figure:
    """Name the figure and the method, and state the verdict, some facts, the split and the number of samples.

    ``judged`` lists the parts of the verdict to state, and ``when`` precedes them if they concern only one of several
    things in the figure; ``samples`` follows the number of samples if it does.
    """
    room = 72 * figure.get_figwidth() - 2 * MARGIN
    about = report.provenance
    lines = title_lines(f"{name}: {one_line(about['method'])}" if about.get("method") else name, room)
    if report.verdict.enough_data or report.statistics is not None:
        for part, told in (("calibration", _calibration), ("ranking", _ranking)):
            if part in judged:
                wordings, color = told(report)
                said = style.first_fitting([when + wording for wording in wordings], style.TEXT, room, "bold")
                lines.append(Line(said, color=color, weight="bold"))
    lines += [Line(text) for text in wrapped(facts, style.TEXT, HINTED * room, between=", ")]
    n = report.counts.get("n")
    counted = "" if n is None else f"{n:,.0f} sample{'' if n == 1 else 's'}"
    split = one_line(about["split"]) if about.get("split") else ""
    scored = ", ".join(filter(None, (split, counted, family_text(report))))
    if scored or samples:
        lines.append(Line("; ".join(filter(None, (scored, samples))), style.SMALL, style.QUIET))
    put_header(figure, lines)
    return style.plain_texts(figure)


def title_lines(text: str, room: float, largest: float = style.TITLE) -> list[Line]:
    """Set a title on one line, if necessary in a smaller font, or on two; cut anything longer in the middle."""
    size = min(largest, style.TITLE * room / text_width(text, style.TITLE, "bold"))
    if size >= style.TEXT:
        return [Line(text, size, weight="bold")]
    room *= HINTED
    first, *_ = wrapped(text.split(), style.TEXT, room, "bold")
    parts = (first, text.removeprefix(first).strip())
    return [
        Line(cut(part, style.TEXT, room, "bold", shorten_middle), style.TEXT, weight="bold")
        for part in parts
        if part
    ]


def family_text(report: Report) -> str:
    """Name the predicted distribution, unless it is the Gaussian."""
    form = report.settings.get("distribution")
    if form:
        return f"scored as {form}"
    family = str(report.settings.get("family", "gaussian"))
    if family == "gaussian":
        return ""
    if family == "student_t":
        return f"Student t distribution, {report.settings.get('dof', 5):g} dof"
    return f"{family.capitalize()} distribution"


def _calibration(report: Report) -> tuple[list[str], str]:
    """Return wordings of the verdict on calibration, longest first, and their color."""
    word, factor = report.verdict.calibration, report.verdict.scale
    if word in ("overconfident", "underconfident") and factor is not None:
        over = word == "overconfident"
        color = style.OVERCONFIDENT_TEXT if over else style.UNDERCONFIDENT_TEXT
        ends, multiplied = (factor.value, factor.low, factor.high), plugins.tasks()[report.task].factor
        if not (multiplied or over):
            ends = (1 / factor.value, 1 / factor.high, 1 / max(factor.low, 1e-300))
        value, low, high = format_factors(*ends)
        too = "small" if over else "large"
        what = f"{value}{TIMES} {multiplied}" if multiplied else f"std {value}{TIMES} too {too}"
        start = f"{word.capitalize()}: {what}"
        return [f"{start} ({low}\N{EN DASH}{high})", start, word.capitalize()], color
    if word == "not enough data":
        return ["Calibration is not judged"], NEUTRAL
    colors = {
        "calibrated": GOOD,
        "consistent with calibrated": GOOD,
        "underconfident": style.UNDERCONFIDENT_TEXT,
        "biased": NEUTRAL,
    }
    text = "Calibrated within 2 %" if word == "calibrated" else word.capitalize()
    return [text], colors.get(word, style.OVERCONFIDENT_TEXT)


def _ranking(report: Report) -> tuple[list[str], str]:
    """Return wordings of the verdict on the ranking of errors, longest first, and their color."""
    verdict = report.verdict
    if verdict.ranking == "not enough data":
        return ["Not enough data to judge the ranking"], NEUTRAL
    if verdict.sorts_only:
        return [
            "Larger stds go with larger errors, but intervals are no shorter",
            "Sorts errors only",
        ], NEUTRAL
    if verdict.ranking == "useful":
        start = "Ranks errors, but weakly" if verdict.knows_little else "Ranks errors"
        color = NEUTRAL if verdict.knows_little else GOOD
        if verdict.recovered is None:
            return [start], color
        return [f"{start}: {100 * verdict.recovered:.0f} % of an oracle's gain", start], color
    start = f"Ranks errors {verdict.ranking.removesuffix(' constant')}"
    return [f"{start} a constant std", f"{start} constant"], style.OVERCONFIDENT_TEXT


def score_text(report: Report, key: str, label: str) -> str:
    """Format a score with its interval, or as undefined; empty if the report does not include it."""
    if key in report.undefined and key != "coverage_95":
        return f"{label} undefined"
    if key not in report.scores:
        return ""
    value, interval = report.shown(key)
    told, unit = (percent, " %") if key == "coverage_95" else (partial(readable, padded=True), "")
    text = f"{label} {told(value)}{unit}"
    return text if interval is None else f"{text} ({' to '.join(map(told, interval))})"


def percent(share: float) -> str:
    """Format a share in per cent, with enough decimals to distinguish it from 0 and 100.

    >>> percent(0.8123), percent(0.99995), percent(1.0)
    ('81.2', '99.995', '100')
    """
    value = 100 * share
    distance = min(value, 100 - value)
    decimals = 0 if distance <= 0 else 1 if distance >= 0.1 else min(6, int(-np.floor(np.log10(distance))))
    return f"{value:.{decimals}f}"
