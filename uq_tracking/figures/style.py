"""How every figure looks: sizes, colors, lines, legends, ticks, and numbers and names as text.

A figure must look the same whatever the user's own matplotlib settings are, because runs are compared side by side.
``matplotlib.rc_context`` would change those settings for the whole process while a figure is drawn, which another
thread could see (and two threads could leave changed), so artists get everything explicitly.

Colors are those of Okabe and Ito (Color Universal Design, 2008), which stay distinct under the common color vision
deficiencies; lines in the same picture also differ in their dashes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter, MaxNLocator, NullLocator

from uq_tracking.figures.picture import ShownFigure
from uq_tracking.formatting import format_number, shorten, typographic

FloatArray = npt.NDArray[np.float64]

SIZE = (5.0, 5.0)
"""Size in inches of every single-panel figure: 800 x 800 pixels; a 300 pixel thumbnail has 10 pixel letters."""
DPI = 160
FAMILY = "DejaVu Sans"
"""Font of all texts; it ships with matplotlib, so every machine has it."""

MODEL = "#0072B2"
PALE = "#9CC6E0"
BEFORE = "#D55E00"
ORACLE = "#009E73"
RANDOM = "#6E6E6E"
REFERENCE = "#222222"
OVERCONFIDENT = "#D55E00"
UNDERCONFIDENT = "#56B4E9"
OVERCONFIDENT_TEXT, UNDERCONFIDENT_TEXT = "#B04A00", "#1F6B97"  # the same hues, dark enough to read on white
QUIET = "#555555"
COUNTS = "#CFCFCF"
NO_DATA = "#D9D9D9"
NO_INPUT = "#C9DDF2"  # not grey, because inputs are

LABEL_ROOM = (290.0, 220.0)
"""Maximum size of an axis label in points, across and up; longer ones are first shrunk and then cut."""
HANDLE, PAD, GAP = 2.0, 0.8, 1.4
"""Lengths in a legend below the panels, in font sizes: a sample, the room right of it, and between columns."""
MARGIN = 8.0
"""Points between texts and the borders of the figure."""
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Ticks of an axis of shares."""
FEW = 50
"""Parts and bins of fewer samples say little: they are drawn pale."""
TEXT, SMALL, TICKS, TITLE = 12.0, 10.5, 11.0, 14.0


def new_figure(
    size: tuple[float, float] = SIZE, layout: Literal["compressed", "constrained"] | None = "compressed"
) -> Figure:
    """Make an empty white figure with an Agg canvas, not registered with pyplot."""
    figure = ShownFigure(figsize=size, dpi=DPI, facecolor="white", edgecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    return figure


def style_axes(ax: Axes, x_label: str, y_label: str) -> Axes:
    """Set everything about the axes that the user's own settings could otherwise change."""
    ax.set_facecolor("white")
    ax.set_axisbelow(True)
    ax.grid(True, which="major", color="#E6E6E6", linewidth=0.8, linestyle="-")
    style_ticks(ax, TICKS, top=False, right=False, labeltop=False, labelright=False)
    for side, spine in ax.spines.items():
        # in a layout, their measurement would double its time
        spine.set(visible=side in ("left", "bottom"), color=QUIET, linewidth=0.8, in_layout=False)
    labels = zip((ax.xaxis, ax.yaxis), (x_label, y_label), LABEL_ROOM, strict=True)
    for axis, label, room in labels:
        size = min(TEXT, max(SMALL, TEXT * room / max(text_width(label, TEXT), 1.0)))
        axis.set_label_text(cut(label, size, room), fontsize=size, color="black")
        axis.labelpad = 4
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(TickNumbers())
    return ax


def style_ticks(ax: Axes, size: float, *, length: float = 4, **sides: bool) -> None:
    """Set everything about the ticks that the user's own settings could otherwise change."""
    look: dict[str, Any] = {"labelsize": size, "labelcolor": "black", "color": QUIET, "direction": "out"}
    ax.tick_params(which="major", **look | sides, length=length, width=0.8, pad=3.5)


def style_color_bar(bar: Colorbar, label: str, *, size: float, ticks: float) -> None:
    """Set everything about a color bar that the user's own settings could otherwise change."""
    bar.set_label(label, fontsize=size, color="black", labelpad=4)
    bar.outline.set(edgecolor=QUIET, linewidth=0.8)
    bar.ax.grid(False)
    style_ticks(bar.ax, ticks, length=3)
    bar.ax.tick_params(which="minor", length=0)


class TickNumbers(Formatter):
    """Plain numbers with enough digits to tell the ticks apart."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        """Format one number, as for the cursor."""
        return readable(value)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Format all ticks of an axis."""
        ticks = np.unique(np.asarray(values, dtype=np.float64))
        if len(ticks) < 2:
            return [readable(value) for value in values]
        ratio = float(np.abs(ticks).max() / np.diff(ticks).min())
        digits = max(3, math.ceil(math.log10(ratio)) + 2)
        return [readable(value, digits, compact=True) for value in values]


def line(ax: Axes, x: npt.ArrayLike, y: npt.ArrayLike, **style: Any) -> Line2D:
    """Plot one line with every property set, independent of the user's settings."""
    look: dict[str, Any] = {"linewidth": 2.2, "linestyle": "-", "marker": "", "color": MODEL}
    look |= {"solid_capstyle": "projecting", "dash_capstyle": "butt"}
    (drawn,) = ax.plot(np.asarray(x), np.asarray(y), **look | style)
    return drawn


def points(ax: Axes, x: npt.ArrayLike, y: npt.ArrayLike, **style: Any) -> Line2D:
    """Plot one line, with markers if it has too few points to be visible otherwise."""
    return line(ax, x, y, **{"marker": "o" if np.size(x) < 3 else "", **style})


def reference(ax: Axes, x: npt.ArrayLike, y: npt.ArrayLike, **style: Any) -> Line2D:
    """Plot the thin dashed line that a perfect model would follow."""
    return line(ax, x, y, **{"color": REFERENCE, "linewidth": 1.3, "linestyle": (0, (4, 3)), **style})


def band(ax: Axes, x: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, **style: Any) -> None:
    """Fill between two lines, without an outline."""
    ax.fill_between(x, low, high, **{"color": MODEL, "linewidth": 0, **style})


def bars(ax: Axes, x: npt.ArrayLike, height: npt.ArrayLike, width: npt.ArrayLike, **style: Any) -> None:
    """Draw bars from their left ends, with white gaps in between."""
    look: dict[str, Any] = {"align": "edge", "edgecolor": "white", "linewidth": 0.8, "color": MODEL}
    ax.bar(x, height, width, **look | style)


def legend(ax: Axes, **where: Any) -> None:
    """Add a legend of the labelled artists, on a translucent white background, inside the axes."""
    if "handles" not in where:
        where["handles"], where["labels"] = _entries(ax)
    added = ax.legend(
        fontsize=SMALL, frameon=True, framealpha=0.85, edgecolor="none", facecolor="white", fancybox=False,
        borderpad=0.3, labelspacing=0.35, handlelength=HANDLE, labelcolor="black", **where,
    )  # fmt: skip
    added.set_in_layout(False)


def _entries(ax: Axes) -> tuple[list[Any], list[str]]:
    """Return samples and texts of a legend; artists with the same text share an entry."""
    entries: dict[str, tuple[Any, ...]] = {}
    for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
        entries[text] = (*entries.get(text, ()), handle)
    return list(entries.values()), list(entries)


def legend_below(figure: Figure, ax: Axes) -> None:
    """Add one legend below all panels, for the labelled artists of one, so that no curve runs through it."""
    handles, labels = _entries(ax)
    widths = np.asarray([text_width(text, SMALL) + (HANDLE + PAD + GAP) * SMALL for text in labels])
    room = 72 * figure.get_figwidth() - MARGIN + GAP * SMALL
    fitting = (  # the first columns have the longer lists
        columns
        for columns in range(len(labels), 1, -1)
        if sum(column.max() for column in np.array_split(widths, columns)) <= room
    )
    figure.legend(
        handles, labels, loc="outside lower center", ncols=next(fitting, 1), fontsize=SMALL, frameon=False,
        labelcolor="black", handlelength=HANDLE, handletextpad=PAD, labelspacing=0.35, columnspacing=GAP,
    )  # fmt: skip


def plain_texts(figure: Figure, within: Axes | None = None) -> Figure:
    """Make every text of the figure, or of some axes, plain: no TeX or mathtext, only characters in the font."""
    for text in (within or figure).findobj(Text):
        text.set_usetex(False)
        text.set_parse_math(False)
        text.set_fontfamily(FAMILY)
        text.set_text(printable(text.get_text()))
    return figure


def decades(low: float, high: float) -> FloatArray:
    """Return at most about six round tick positions on a logarithmic axis: 1-2-5 steps, or whole decades."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    span = math.log10(high) - math.log10(low)
    steps: tuple[int, ...] = (1,) if span > 2.5 else (1, 3) if span > 1.2 else (1, 2, 5)
    stride = max(1, math.ceil(span / 6))
    ticks = np.asarray([step * 10.0**power for power in range(first, last + 1, stride) for step in steps])
    ticks = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
    return ticks if len(ticks) > 1 else round_ticks(low, high, 4, min_n_ticks=2)


def round_ticks(low: float, high: float, most: int, **options: Any) -> FloatArray:
    """Return a few round numbers within limits."""
    found = np.asarray(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], **options).tick_values(low, high))
    return found[(found >= low) & (found <= high)]


def log_axes(ax: Axes, **limits: tuple[float, float]) -> None:
    """Make the axes ``x`` and ``y``, or one, logarithmic within positive limits, with plain numbers at the ticks."""
    for name, ends in limits.items():
        ax.set(**{f"{name}scale": "log", f"{name}lim": ends})
        fixed_ticks(ax.xaxis if name == "x" else ax.yaxis, decades(*ends))


def fixed_ticks(axis: Axis, places: Iterable[float], text: Callable[[float], str] | None = None) -> None:
    """Put ticks at these places only, each with its number or another text."""
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: (text or readable)(value)))


@lru_cache(maxsize=1)
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=FAMILY))).get_charmap())


def printable(text: str) -> str:
    """Replace every character that the font lacks with a box (drawing it would warn)."""
    return "".join(letter if letter == "\n" or ord(letter) in _letters() else "□" for letter in text)


def readable(value: float, digits: int = 3, *, padded: bool = False, compact: bool = False) -> str:
    """Format a number for a figure; see `uq_tracking.formatting.format_number`.

    >>> [readable(x) for x in (0.0123456, 0.7, 12.3456, 1234567.0, 0.0, 1.5e-7, 2e9)]
    ['0.0123', '0.7', '12.3', '1,234,567', '0', '1.5e−7', '2e9']
    >>> readable(0.7, padded=True)
    '0.700'
    """
    return typographic(format_number(value, digits, padded=padded, compact=compact))


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width in points of a line of text, ignoring kerning."""
    return size * sum(_advance(letter, weight) for letter in printable(text))


@lru_cache(maxsize=4096)
def _advance(letter: str, weight: str) -> float:
    """Return the advance width of a letter, in font sizes."""
    font = get_font(findfont(FontProperties(family=FAMILY, weight=weight)))
    font.set_size(1000, 72)
    return float(font.load_char(ord(letter)).linearHoriAdvance) / 65536 / 1000


def first_fitting(texts: Sequence[str], size: float, width: float, weight: str = "normal") -> str:
    """Return the first text that is not longer than this many points, or the last one."""
    return next((text for text in texts if text_width(text, size, weight) <= width), texts[-1])


def wrapped(
    parts: Iterable[str], size: float, width: float, weight: str = "normal", between: str = " "
) -> list[str]:
    """Join words, or other parts, to lines of at most this many points."""
    lines: list[str] = []
    for part in filter(None, parts):
        longer = f"{lines[-1]}{between}{part}" if lines else part
        if lines and text_width(longer, size, weight) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def cut(
    text: str,
    size: float,
    width: float,
    weight: str = "normal",
    shorter: Callable[[str, int], str] = shorten,
) -> str:
    """Cut a line of text to this many points, with an ellipsis for what is left out."""
    letters = len(text)
    while letters > 1 and text_width(shorter(text, letters), size, weight) > width:
        letters -= 1 + letters // 64
    return shorter(text, letters)
