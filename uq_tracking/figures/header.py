"""The header of a figure: its name and method, the verdict, scores, and what was scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from uq_tracking.figures import style
from uq_tracking.figures.text import counted, cut, cut_middle, text_width, wrapped
from uq_tracking.formatting import format_factors, one_line

if TYPE_CHECKING:
    from uq_tracking.report import Report

Judged = Literal["calibration", "ranking", "both"]

MARGIN = 8.0
"""Points between the header and the borders of the figure."""
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
    scores: Sequence[str] = (),
    judged: Judged | None = None,
    *,
    when: str = "",
    samples: str = "",
) -> None:
    """Name the figure and the method, and state the verdict, the scores, the split and the number of samples.

    ``when`` precedes the verdict if it concerns only one of several things in the figure; ``samples`` follows the
    number of samples if it does.
    """
    room = 72 * figure.get_figwidth() - 2 * MARGIN
    verdict = [] if judged is None else _verdict(report, judged, room, when)
    put_header(
        figure,
        [
            *title_lines(heading(report, name), room),
            *verdict,
            *(Line(text) for text in _packed(scores, room)),
            *_scored(report, samples),
        ],
    )


def title_lines(text: str, room: float) -> list[Line]:
    """A title on one line, if necessary in a smaller font, or on two; anything longer is cut in the middle."""
    size = style.TITLE * min(1.0, room / text_width(text, style.TITLE, "bold"))
    if size >= style.TEXT:
        return [Line(text, size, weight="bold")]
    room *= HINTED
    first, *_ = wrapped(text, style.TEXT, room, "bold")
    parts = (first, text.removeprefix(first).strip())
    return [
        Line(cut_middle(part, style.TEXT, room, "bold"), style.TEXT, weight="bold") for part in parts if part
    ]


def heading(report: Report, name: str) -> str:
    """Name the figure and, if the report states it, the uncertainty method."""
    method = report.provenance.get("method")
    return f"{name}: {one_line(method)}" if method else name


def _scored(report: Report, rest: str) -> list[Line]:
    """The split, the number of samples, and the distribution unless it is the Gaussian."""
    split, n = report.provenance.get("split"), report.counts.get("n")
    samples = "" if n is None else f"{counted(n)} sample{'' if n == 1 else 's'}"
    parts = [one_line(split) if split else "", samples, family_text(report)]
    text = "; ".join(part for part in (", ".join(part for part in parts if part), rest) if part)
    return [Line(text, style.SMALL, style.QUIET)] if text else []


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


def _packed(parts: Sequence[str], room: float) -> list[str]:
    """As many parts per line as fit, separated by commas."""
    lines: list[str] = []
    for part in filter(None, parts):
        longer = f"{lines[-1]}, {part}" if lines else part
        if lines and text_width(longer, style.TEXT) <= room:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _verdict(report: Report, judged: Judged, room: float, when: str) -> list[Line]:
    """The verdict in lines that fit; none if the report was not judged at all."""
    verdict = report.verdict
    if not verdict.enough_data and report.statistics is None:
        return []
    found = {"calibration": _calibration, "ranking": _ranking}
    said = [say(report) for name, say in found.items() if judged in (name, "both")]
    return [_fitting([when + text for text in texts], color, room) for texts, color in said]


def _fitting(texts: Sequence[str], color: str, room: float) -> Line:
    """The first text that fits."""
    fitting = (text for text in texts if text_width(text, style.TEXT, "bold") <= room)
    return Line(next(fitting, texts[-1]), color=color, weight="bold")


def _calibration(report: Report) -> tuple[list[str], str]:
    """Wordings of the verdict on calibration, longest first, and their color."""
    verdict = report.verdict
    word, factor = verdict.calibration, verdict.scale
    if word in ("overconfident", "underconfident") and factor is not None:
        over = word == "overconfident"
        color = style.OVERCONFIDENT_TEXT if over else style.UNDERCONFIDENT_TEXT
        of_errors = report.task == "classification"
        told = (factor.value, factor.low, factor.high)
        if not (over or of_errors):
            told = (1 / factor.value, 1 / factor.high, 1 / max(factor.low, 1e-300))
        value, low, high = format_factors(*told)
        what = (
            f"{value}{TIMES} the errors it implies"
            if of_errors
            else f"std {value}{TIMES} too {'small' if over else 'large'}"
        )
        start = f"{word.capitalize()}: {what}"
        return [f"{start} ({low}\N{EN DASH}{high})", start, word.capitalize()], color
    if word == "not enough data":
        return ["Calibration is not judged"], NEUTRAL
    colors = {"consistent with calibrated": GOOD, "underconfident": style.UNDERCONFIDENT_TEXT}
    return [word.capitalize()], colors.get(word, style.OVERCONFIDENT_TEXT)


def _ranking(report: Report) -> tuple[list[str], str]:
    """Wordings of the verdict on the ranking of errors, longest first, and their color."""
    verdict = report.verdict
    if verdict.ranking == "not enough data":
        return ["Not enough data to judge the ranking"], NEUTRAL
    if verdict.ranking == "useful":
        recovered = verdict.recovered
        start = "Knows little of where it errs" if verdict.knows_little else "Knows where it errs"
        share = [] if recovered is None else [f"{start}: {100 * recovered:.0f} % of an oracle's gain"]
        return [*share, start], NEUTRAL if verdict.knows_little else GOOD
    start = f"Ranks errors {verdict.ranking.removesuffix(' constant')}"
    return [f"{start} a constant std", f"{start} constant"], style.OVERCONFIDENT_TEXT
