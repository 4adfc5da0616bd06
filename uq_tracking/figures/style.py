"""How every figure looks: sizes, colours, titles, numbers as text, and pixels.

A figure must look the same whatever the user's own matplotlib settings are, because runs are compared side by side.
``matplotlib.rc_context`` would change those settings for the whole process while a figure is drawn, which another
thread could see (and two threads could leave changed), so artists get everything explicitly.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which stay distinct under the common colour vision
deficiencies; lines in the same picture also differ in their dashes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter, MaxNLocator, NullLocator

from uq_tracking.figures.picture import Picture, packed
from uq_tracking.figures.text import FAMILY, cut, printable, readable, text_width

FloatArray = npt.NDArray[np.float64]

SIZE = (5.0, 5.0)
"""Size in inches of every single-panel figure: 800 x 800 pixels; a 300 pixel thumbnail has 10 pixel letters."""
DPI = 160

MODEL = "#0072B2"
BEFORE = "#D55E00"
ORACLE = "#009E73"
RANDOM = "#6E6E6E"
REFERENCE = "#222222"
OVERCONFIDENT = "#D55E00"
UNDERCONFIDENT = "#56B4E9"
OVERCONFIDENT_TEXT, UNDERCONFIDENT_TEXT = "#B04A00", "#1F6B97"  # the same hues, dark enough to read on white
QUIET = "#555555"
LABEL_ROOM = (290.0, 220.0)
"""Maximum size of an axis label in points, across and up; longer ones are first shrunk and then cut."""
COUNTS = "#CFCFCF"
NO_DATA = "#D9D9D9"
NO_INPUT = "#C9DDF2"  # not grey, because inputs are

HANDLE, PAD, GAP = 2.0, 0.8, 1.4
"""Lengths in a legend below the panels, in font sizes: a sample, the room right of it, and between columns."""
MARGIN = 8.0
"""Total free points on both sides of a legend below."""

ENDS = {"solid_capstyle": "projecting", "dash_capstyle": "butt"}

TEXT, SMALL, TICKS, TITLE = 12.0, 10.5, 11.0, 14.0


class ShownFigure(Figure):
    """A figure that notebooks show without pyplot, with its titles as alternative text."""

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        titles = [text.get_text() for text in self.texts]
        titles += [ax.get_title(side) for ax in self.axes for side in ("left", "center")]
        return to_png(self, dpi=80), {"alt": "; ".join(filter(None, titles))}


def new_figure(
    size: tuple[float, float] = SIZE, layout: Literal["compressed", "constrained"] = "compressed"
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
    style_ticks(ax, TICKS)
    ax.tick_params(which="both", top=False, right=False, labeltop=False, labelright=False)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color="#555555", linewidth=0.8)
    for put, label, room in (
        (ax.set_xlabel, x_label, LABEL_ROOM[0]),
        (ax.set_ylabel, y_label, LABEL_ROOM[1]),
    ):
        size = min(TEXT, max(SMALL, TEXT * room / max(text_width(label, TEXT), 1.0)))
        put(cut(label, size, room), fontsize=size, color="black", labelpad=4)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(TickNumbers())
    return ax


def style_ticks(ax: Axes, size: float, *, length: float = 4) -> None:
    """Set everything about the ticks that the user's own settings could otherwise change."""
    look: dict[str, Any] = {"labelsize": size, "labelcolor": "black", "color": "#555555", "direction": "out"}
    ax.tick_params(which="major", **look, length=length, width=0.8, pad=3.5)


def style_colour_bar(bar: Colorbar, label: str, *, size: float, ticks: float) -> None:
    """Do the same for a colour bar."""
    bar.set_label(label, fontsize=size, color="black", labelpad=4)
    bar.outline.set(edgecolor="#555555", linewidth=0.8)
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
    given = {"linewidth": 2.2, "linestyle": "-", "marker": "", "color": MODEL, **ENDS, **style}
    (drawn,) = ax.plot(np.asarray(x), np.asarray(y), **given)
    return drawn


def points(ax: Axes, x: npt.ArrayLike, y: npt.ArrayLike, **style: Any) -> Line2D:
    """Plot one line, with markers if it has too few points to be visible otherwise."""
    return line(ax, x, y, **{"marker": "o" if np.size(x) < 3 else "", **style})


def reference(ax: Axes, x: npt.ArrayLike, y: npt.ArrayLike, **style: Any) -> Line2D:
    """Plot the thin dashed line that a perfect model would follow."""
    return line(ax, x, y, **{"color": REFERENCE, "linewidth": 1.3, "linestyle": (0, (4, 3)), **style})


def legend(ax: Axes, **where: Any) -> None:
    """Add a legend of the labelled artists, on a translucent white background, inside the axes."""
    if "handles" not in where:
        where["handles"], where["labels"] = _entries(ax)
    added = ax.legend(
        fontsize=SMALL, frameon=True, framealpha=0.85, edgecolor="none", facecolor="white", fancybox=False,
        borderpad=0.3, labelspacing=0.35, handlelength=HANDLE, labelcolor="black", **where,
    )  # fmt: skip
    added.set_in_layout(False)


def legend_size(ax: Axes) -> tuple[float, float]:
    """Approximate width and height of a legend inside the axes, as shares of them."""
    texts = _entries(ax)[1]
    width = max(text_width(text, SMALL) for text in texts) + (HANDLE + PAD + 0.6) * SMALL
    box = ax.get_position()
    sides = (box.width * ax.figure.figure.get_figwidth(), box.height * ax.figure.figure.get_figheight())
    side = 72 * min(sides)
    return width / side, 1.4 * SMALL * len(texts) / side


def _entries(ax: Axes) -> tuple[list[Any], list[str]]:
    """Samples and texts of a legend; artists with the same text share an entry."""
    entries: dict[str, tuple[Any, ...]] = {}
    for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
        entries[text] = (*entries.get(text, ()), handle)
    return list(entries.values()), list(entries)


def legend_below(figure: Figure, ax: Axes) -> None:
    """Add one legend below all panels, for the labelled artists of one, so that no curve runs through it."""
    handles, labels = _entries(ax)
    columns = _columns(labels, 72 * figure.get_figwidth() - MARGIN)
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, fontsize=SMALL, frameon=False,
        labelcolor="black", handlelength=HANDLE, handletextpad=PAD, labelspacing=0.35, columnspacing=GAP,
    )  # fmt: skip


def _columns(texts: Sequence[str], room: float) -> int:
    """The most columns that fit in this many points; the first ones have the longer lists."""
    widths = np.asarray([text_width(text, SMALL) + (HANDLE + PAD + GAP) * SMALL for text in texts])
    fitting = (
        count
        for count in range(len(texts), 1, -1)
        if sum(column.max() for column in np.array_split(widths, count)) <= room + GAP * SMALL
    )
    return next(fitting, 1)


def plain_texts(figure: Figure, within: Axes | None = None) -> Figure:
    """Make every text of the figure, or of some axes, plain: no TeX or mathtext, only characters in the font."""
    for text in (within or figure).findobj(Text):
        text.set_usetex(False)
        text.set_parse_math(False)
        text.set_fontfamily(FAMILY)
        text.set_text(printable(text.get_text()))
    return figure


def decades(low: float, high: float) -> FloatArray:
    """At most about six round tick positions on a logarithmic axis: 1-2-5 steps, or whole decades."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    span = math.log10(high) - math.log10(low)
    steps: tuple[int, ...] = (1,) if span > 2.5 else (1, 3) if span > 1.2 else (1, 2, 5)
    stride = max(1, math.ceil(span / 6))
    ticks = np.asarray([step * 10.0**power for power in range(first, last + 1, stride) for step in steps])
    ticks = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
    return ticks if len(ticks) > 1 else _round_between(low, high)


def _round_between(low: float, high: float) -> FloatArray:
    """Two to four round numbers within narrow limits."""
    found = np.asarray(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10], min_n_ticks=2).tick_values(low, high))
    return found[(found >= low) & (found <= high)]


def log_axes(ax: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Make both axes logarithmic within the given positive limits, with plain numbers at the ticks."""
    ax.set_xscale("log", nonpositive="clip")
    ax.set_yscale("log", nonpositive="clip")
    for axis, (low, high) in ((ax.xaxis, x), (ax.yaxis, y)):
        axis.set_major_locator(FixedLocator(list(decades(low, high))))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: readable(value)))
    ax.set_xlim(x)
    ax.set_ylim(y)


def to_png(figure: Figure, *, dpi: float | None = None) -> bytes:
    """Write the figure as a PNG file; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Any figure; it is left unchanged.
    dpi : float, optional
        Pixels per inch; the figure's own by default.

    Returns
    -------
    bytes
        PNG file, without a date or the name of the software.
    """
    if isinstance(figure, Picture) and dpi is None:
        return figure.png
    return packed(drawn(figure, dpi), dpi or figure.get_dpi())


def to_rgb(figure: Figure, *, dpi: float | None = None) -> npt.NDArray[np.uint8]:
    """Draw the figure as pixels, for trackers that take arrays.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Any figure; it is left unchanged.
    dpi : float, optional
        Pixels per inch; the figure's own by default.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
    """
    return drawn(figure, dpi)[..., :3].copy()


def drawn(figure: Figure, dpi: float | None = None) -> npt.NDArray[np.uint8]:
    """The RGBA pixels, shape (height, width, 4)."""
    if isinstance(figure, Picture) and dpi is None:
        return figure.pixels()
    before, shown_by = figure.get_dpi(), figure.canvas
    canvas: Any = FigureCanvasAgg(figure)  # its methods are untyped
    figure.set_dpi(dpi or before)
    try:
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())
    finally:
        figure.set_dpi(before)
        figure.set_canvas(shown_by)
