"""Where standard deviations are the wrong size and predictions one-sided, as the verdict found out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uq_tracking.figures import style
from uq_tracking.figures.curves import undefined_figure
from uq_tracking.figures.header import TIMES, report_header
from uq_tracking.figures.sides import name_side
from uq_tracking.figures.style import FloatArray, legend_below, line, new_figure, readable, style_axes
from uq_tracking.formatting import axis_label, one_line, shorten, shortened

if TYPE_CHECKING:
    from uq_tracking.inference.places import Covariate, Part, Places, Quantity
    from uq_tracking.report import Report

MARGIN, WIDTH, HEIGHT = 1.4, 3.6, 6.6
"""Width, in inches, beside all columns and of each, and height of the figure."""
MOST_LABELS, LETTERS, MOST_LETTERS = 8, 10, 30
"""Labels in a column, the most certain ones, letters of each, and of the name of a set."""
PERFECT: dict[Quantity, float] = {"scale": 1.0, "bias": 0.0}
NEGLIGIBLE: dict[Quantity, tuple[float, float]] = {"scale": (1 / 1.05, 1.05), "bias": (-0.05, 0.05)}
SEEN: dict[Quantity, tuple[float, float]] = {"scale": (1 / 1.1, 1.1), "bias": (-0.1, 0.1)}
"""Range that is always visible."""
FARTHEST = 3.0
"""Error bars leave the axes beyond this many times the farthest point."""
AXES: dict[Quantity, str] = {"scale": "RMS error / std", "bias": "Bias [std]"}
SIDES: dict[Quantity, tuple[str, str]] = {
    "scale": ("std too small", "std too large"),
    "bias": ("predictions too high", "predictions too low"),
}
SIZES: dict[Quantity, tuple[str, str]] = {
    "scale": (f"std {{}}{TIMES} too small", f"std {{}}{TIMES} too large"),
    "bias": ("{} std too high", "{} std too low"),
}
COVARIATES: dict[Covariate, tuple[str, str, str]] = {
    "std": ("Standard deviation", "target", "where std is {}{}"),
    "mean": ("Prediction", "target", "where prediction is {}{}"),
    "order": ("Place in the order", "%", "at {} % of the order"),
}
"""Label of an axis, its unit, and where that is."""
SCORES: dict[Quantity, str] = {"scale": "RMS score of F(y)", "bias": "Mean score of F(y)"}
"""Axes of intervals and quantiles, whose places are told by normal scores of F(y)."""
ROOM = 40
"""Letters of labels that stand beside one another; more are turned."""
LONG = 1e6
"""From here on, numbers are written with an exponent."""
NOTHING = "No part of the samples is found to differ by an amount that matters."


@dataclass(frozen=True)
class _Column:
    """What is drawn along one covariate, or for one set of labels."""

    on: Covariate
    label: str
    parts: tuple[Part, ...]
    ticks: list[str]
    places: list[int]
    """Of the parts among those that patterns name."""

    def named(self, places: Places, quantity: Quantity) -> list[int]:
        """Return the parts that the verdict names, without those that may well be right."""
        found = [each for each in places.found() if (each.quantity, each.on) == (quantity, self.on)]
        ends = (0, len(self.parts) - 1) if self.on != "label" else ()
        named = [self.places.index(k) for each in found for k in each.named or ends if k in self.places]
        _, low, high = _values(quantity, self.parts)
        sure = [place for place in named if not low[place] <= PERFECT[quantity] <= high[place]]
        return sure or named


def _columns(places: Places, unit: str | None) -> list[_Column]:
    """Return a column per covariate, and per set of labels."""
    made = []
    for on, parts in places.parts.items():
        ticks = ["\n".join(texts) for texts in _ranges(parts)]
        quantity, own_unit, _ = COVARIATES[on]
        label = axis_label("Width" if on == "std" and _is_interval(parts) else quantity, own_unit, unit)
        made.append(_Column(on, label, parts, ticks, list(range(len(parts)))))
    strata = places.strata
    for of in dict.fromkeys(part.of for part in strata):
        known = [k for k, part in enumerate(strata) if part.of == of and part.word != "too few"]
        kept = sorted(sorted(known, key=lambda k: strata[k].p)[:MOST_LABELS])
        ticks = shortened([one_line(strata[k].name).removeprefix(f"{of}: ") for k in kept], LETTERS)
        share = f" ({len(kept)} of {len(known)})" if len(kept) < len(known) else ""
        if len(kept) > 1:
            label = shorten(one_line(of or "Stratum"), MOST_LETTERS) + share
            made.append(_Column("label", label, tuple(strata[k] for k in kept), ticks, kept))
    return made


def where(report: Report) -> Figure:
    """Draw factor and bias in parts of equal count along std, prediction and order, and for each label of ``by=``.

    Points are the parts of ``report.verdict.places``, whose limits hold for all parts together; those that the header
    names are orange. A calibrated model lies at 1 and at 0; within the grey band, it does not matter if it does not.
    """
    places = report.verdict.places
    if places is None or not places.parts:
        return undefined_figure(report, "Where it is wrong", "the verdict looked at no parts of the samples")
    unit = report.settings.get("unit")
    columns = _columns(places, unit)
    figure = new_figure((MARGIN + WIDTH * len(columns), HEIGHT))
    grid = figure.subplots(2, len(columns), squeeze=False)
    for row, quantity in zip(grid, AXES, strict=True):
        limits = _limits(quantity, [part for column in columns for part in column.parts])
        for ax, column in zip(row, columns, strict=True):
            below, first = ax in grid[-1], ax is row[0]
            axes = SCORES if _is_interval(column.parts) else AXES
            style_axes(ax, column.label if below else "", axes[quantity] if first else "")
            ax.tick_params(labelbottom=below, labelleft=first)
            _draw(ax, quantity, column, column.named(places, quantity), limits)
    legend_below(figure, max(grid.flat, key=lambda ax: len(ax.get_legend_handles_labels()[0])))
    facts = [
        _fact(each.quantity, column, place, unit)
        for each in places.found()
        for column in columns
        if column.on == each.on and (each.on != "label" or set(each.named) & set(column.places))
        for place in column.named(places, each.quantity)
    ]
    return report_header(figure, report, "Where it is wrong", facts or [NOTHING], ("calibration",))


def _fact(quantity: Quantity, column: _Column, place: int, unit: str | None) -> str:
    """Say how wrong a part is."""
    value = float(_values(quantity, column.parts)[0, place])
    size = max(value, 1 / max(value, 1e-300)) if quantity == "scale" else abs(value)
    above, under = SIZES[quantity]
    what = (above if value > PERFECT[quantity] else under).format(
        readable(size, 3 if quantity == "scale" else 2, padded=True)
    )
    inside = column.parts[place].inside
    if inside is not None and quantity == "scale":
        what = f"widest intervals contain {100 * inside:.3g} %"
    if column.on == "label":
        return f"{what} in {column.label}: {column.ticks[place]}"
    between = _ranges(column.parts)[place][0].replace("\n", " ")
    at = COVARIATES[column.on][2] if inside is None else COVARIATES[column.on][2].replace("std", "width")
    return f"{what} {at.format(between, f' {unit}' if unit else '')}"


def _is_interval(parts: tuple[Part, ...]) -> bool:
    """Whether parts are those of intervals or quantiles."""
    return any(part.inside is not None for part in parts)


def _values(quantity: Quantity, parts: list[Part] | tuple[Part, ...]) -> FloatArray:
    """Return values and limits, shape (3, parts); as a score, bias is prediction minus truth."""
    if quantity == "scale":
        return np.asarray([[part.factor, part.factor_low, part.factor_high] for part in parts]).T
    return np.asarray([[-part.bias, -part.bias_high, -part.bias_low] for part in parts]).T


def _limits(quantity: Quantity, parts: list[Part]) -> tuple[float, float]:
    """Return limits of an axis around all points and, unless they are far away, the ends of all bars."""
    place, back = (np.log, np.exp) if quantity == "scale" else (np.asarray, np.asarray)
    with np.errstate(divide="ignore"):
        values, lows, highs = place(_values(quantity, parts))
    around = place(SEEN[quantity])
    far = FARTHEST * max(float(np.abs(values[np.isfinite(values)]).max(initial=0.0)), around[1])
    low, high = max(-far, min(lows.min(), around[0])), min(far, max(highs.max(), around[1]))
    room = 0.2 * (high - low)
    return float(back(low - room)), float(back(high + room))


def _draw(
    ax: Axes, quantity: Quantity, column: _Column, named: list[int], limits: tuple[float, float]
) -> None:
    """Draw one quantity along one covariate, or for one set of labels."""
    parts = column.parts
    if quantity == "scale":
        style.log_axes(ax, y=limits)
    band: dict[str, Any] = {"color": style.REFERENCE, "alpha": 0.13, "linewidth": 0, "zorder": 1.6}
    ax.axhspan(*NEGLIGIBLE[quantity], **band, label="within 5 %, or 0.05 std")
    ends = (-0.5, len(parts) - 0.5)
    style.reference(ax, ends, (PERFECT[quantity],) * 2, label="calibrated")
    values, low, high = np.clip(_values(quantity, parts), *limits)
    for chosen, color, label in (
        (False, style.MODEL, "joint limits"),
        (True, style.OVERCONFIDENT, "named above"),
    ):
        at = [place for place in range(len(parts)) if (place in named) == chosen]
        if at:
            ax.vlines(at, low[at], high[at], color=color, linewidth=2.2, zorder=3, label=label)
            look: dict[str, Any] = {"marker": "o", "markersize": 7, "markeredgecolor": "white"}
            line(ax, at, values[at], **look, linestyle="", color=color, label=label, zorder=3.5)
    above, under = SIDES[quantity]
    if quantity == "scale" and _is_interval(parts):
        above, under = "too narrow", "too wide"
    name_side(ax, 0.02, 0.97, above, over=True, va="top")
    name_side(ax, 0.02, 0.03, under, over=False, va="bottom")
    turned = 90 if max(map(len, column.ticks)) * len(parts) > ROOM and column.on == "label" else 0
    ax.tick_params(axis="x", labelsize=style.SMALL - 1.5, rotation=turned)
    ax.grid(False, axis="x")
    ax.set_xticks(range(len(parts)), column.ticks)  # after all that would change each tick
    ax.set(xlim=ends, ylim=limits)


def _ranges(parts: tuple[Part, ...]) -> list[tuple[str, ...]]:
    """Return the range of each part, with enough digits to tell its ends apart, and shares if these differ."""
    compact = max(max(abs(part.low), abs(part.high)) for part in parts) >= LONG
    wide = [part.low < part.high for part in parts]
    for digits in range(2, 8):
        texts = [
            tuple(readable(end, digits, compact=compact) for end in (part.low, part.high)) for part in parts
        ]
        if all(low != high for (low, high), differ in zip(texts, wide, strict=True) if differ):
            break
    shares = [part.share for part in parts]
    alike = max(shares) - min(shares) < 0.01
    return [
        (f"{low} to\n{high}" if differ else low, *([] if alike else [f"{100 * share:.0f} %"]))
        for (low, high), differ, share in zip(texts, wide, shares, strict=True)
    ]
