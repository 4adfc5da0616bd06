"""Drawings of the curves that are built on demand: a small panel for each metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from uq_tracking import plugins
from uq_tracking.figures import style
from uq_tracking.figures.source import (
    Columns,
    NothingToDrawError,
    columns,
    family_text,
    heading,
    report_figure,
    unit_of,
)
from uq_tracking.figures.style import decades, legend, line, new_figure, points, reference, style_axes
from uq_tracking.figures.text import counted, readable, with_unit
from uq_tracking.formatting import one_line, shorten

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]
DrawPanel = Callable[[Axes, "Report", str, str], None]

WIDTH, HEIGHT, HEAD = 3.2, 2.55, 0.35
"""Inches of a panel, and of the title over all."""
IN_A_ROW, MOST_PANELS, MOST_NAMES = 3, 9, 24

BAND = "#9CC6E0"
PRIORS = (
    ("_gaussian", "Gaussian", "-.", style.RANDOM),
    ("_laplace", "Laplace", "--", style.BEFORE),
    ("_uniform", "uniform", ":", style.ORACLE),
)
"""Distributions that scores are swept under besides the predicted one: ending of the key, name, dashes, colour."""
SWEPT = (
    "nll", "crps", "interval_score", "quadratic_score", "spherical_score", "pinball", "coverage_95", "merci",
)  # fmt: skip
NEAR = (0.4, 2.5)
"""Factors whose scores have to be seen in whole; a log score is thousands at a tenth of the scale."""


def _grid(report: Report, name: str, panels: list[tuple[str, str]], draw: DrawPanel) -> Figure:
    """A figure of small panels, each drawn by ``draw(ax, report, curve, key)``."""
    panels = panels[:MOST_PANELS]
    wide = min(IN_A_ROW, len(panels))
    high = -(-len(panels) // wide)
    figure = new_figure((max(WIDTH * wide, 4.2), HEIGHT * high + HEAD))
    for place, (curve, key) in enumerate(panels, start=1):
        ax = figure.add_subplot(high, wide, place)
        draw(ax, report, curve, key)
        ax.set_title(key, fontsize=style.TEXT, color="black", fontweight="normal", pad=5)
    figure.suptitle(heading(report, name), fontsize=style.TITLE, fontweight="bold", color="black")
    return figure


def _panels(report: Report, prefix: str) -> list[tuple[str, str]]:
    """Curves of a family of names, and the metric each is of."""
    found = [(name, name.removeprefix(prefix)) for name in report.curves if name.startswith(prefix)]
    if not found:
        raise NothingToDrawError(f"the report has no curve {prefix}*")
    return found


def _small(ax: Axes, x_label: str, y_label: str = "") -> Axes:
    style_axes(ax, x_label, y_label)
    ax.xaxis.label.set_fontsize(style.SMALL)
    ax.yaxis.label.set_fontsize(style.SMALL)
    ax.tick_params(which="major", labelsize=style.SMALL - 1)
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    return ax


def _log_x(ax: Axes, x: FloatArray, *, base_two: bool = False) -> None:
    low, high = float(x.min()), float(x.max())
    if not 0 < low < high:
        return
    ax.set_xscale("log", nonpositive="clip")
    ticks = x[:: max(1, -(-len(x) // 6))] if base_two else decades(low, high)
    ax.xaxis.set_major_locator(FixedLocator(list(ticks)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    margin = (high / low) ** 0.04
    ax.set_xlim(low / margin, high * margin)


def _short(value: float) -> str:
    return f"{readable(value / 1000)}k" if value >= 10_000 else readable(value)


@report_figure("Scores against scale")
def scale_sweep(report: Report) -> Figure:
    """Draw each proper score as all standard deviations are multiplied by a common factor.

    The vertical line is the scale as predicted, the dots are the best scales. Where a dot lies beside the line, a
    plain rescaling would gain what lies between them.

    Parameters
    ----------
    report : Report
        With the curve ``scale_sweep``: ``factor`` and a column per score.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] MeRCI, 2018, fig. 2.
    """
    table = columns(report, "scale_sweep", ("factor",))
    panels = [("scale_sweep", key) for key in SWEPT if any(column.startswith(key) for column in table)]
    return _grid(report, "Scores against scale", panels, _sweep_panel)


def _sweep_panel(ax: Axes, report: Report, curve: str, key: str) -> None:
    table = columns(report, curve, ("factor",))
    _small(ax, "factor on every std")
    factor = table["factor"]
    predicted = ("", family_text(report).replace(" distribution", "") or "Gaussian", "-", style.MODEL)
    shown = [(key + end, *look) for end, *look in (predicted, *PRIORS) if key + end in table]
    near = (factor >= NEAR[0]) & (factor <= NEAR[1])
    limits = np.concatenate([table[column][near] for column, *_ in shown])
    for column, name, dashes, color in shown:
        line(ax, factor, table[column], color=color, linestyle=dashes, linewidth=1.8, label=name)
        best = _best(report, column, table[column])
        limits = np.append(limits, table[column][best])
        line(ax, [factor[best]], [table[column][best]], color=color, marker="o", markersize=5)
    margin = 0.08 * float(np.ptp(limits)) or 0.1
    ax.set_ylim(float(limits.min()) - margin, float(limits.max()) + margin)
    _log_x(ax, factor)
    ax.axvline(1.0, color=style.REFERENCE, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1.5)
    if len(shown) > 1:
        legend(ax, loc="best")


def _best(report: Report, key: str, values: FloatArray) -> int:
    metric = plugins.metrics(report.task).get(key)
    losses = values if metric is None else [metric.loss(value) for value in values.tolist()]
    return int(np.argmin(losses))


@report_figure("By group")
def by_group(report: Report) -> Figure:
    """Draw metrics in each stratum of ``by``, with the score of all samples as a dashed line.

    Parameters
    ----------
    report : Report
        With curves ``by_group_<metric>``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return _grid(report, "By group", _panels(report, "by_group_"), _group_panel)


def _group_panel(ax: Axes, report: Report, curve: str, key: str) -> None:
    table, names = columns(report, curve, ("group", key)), report.curves[curve].labels
    _small(ax, "")
    x = table["group"]
    if names is not None and _stepped(x, names):
        points(ax, x, table[key], linewidth=1.8)
        _room(ax, table[key])
        _whole(ax, report, key)
        return
    ax.bar(x, table[key], width=0.7, color=style.MODEL, edgecolor="white", linewidth=0.6, zorder=2)
    _whole(ax, report, key)
    labels = [shorten(one_line(name), 12) for name in names or [readable(value) for value in x]]
    step = -(-len(x) // MOST_NAMES)
    ax.xaxis.set_major_locator(FixedLocator(list(x[::step])))
    ax.xaxis.set_major_formatter(FixedFormatter(labels[::step]))
    crowded = len(labels) > 4 or max(map(len, labels), default=0) > 6
    ax.tick_params(axis="x", rotation=90 if crowded else 0)
    ax.set_xlim(float(x.min()) - 0.6, float(x.max()) + 0.6)


def _stepped(x: FloatArray, names: tuple[str, ...]) -> bool:
    """Whether groups are numbers with gaps or fractions, such as lead times of 6, 12 and 24 hours."""
    numbers = all(name == str(value) or name == str(int(value)) for name, value in zip(names, x, strict=True))
    return numbers and len(x) > 2 and bool(np.any(x != x[0] + np.arange(len(x))))


def _whole(ax: Axes, report: Report, key: str) -> None:
    """The score of all samples, and a metric's target value."""
    if key in report.scores:
        low, high = ax.get_xlim()
        reference(ax, [low, high], [report.scores[key]] * 2, zorder=2.6)


@report_figure("By target")
def by_target(report: Report) -> Figure:
    """Draw metrics in intervals of the target; grey bars are the intervals' numbers of samples.

    Parameters
    ----------
    report : Report
        With curves ``by_target_<metric>``.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] n-MeRCI, 2019, fig. 4 and 5.
    """
    return _grid(report, "By target", _panels(report, "by_target_"), _target_panel)


def _target_panel(ax: Axes, report: Report, curve: str, key: str) -> None:
    table = columns(report, curve, ("target", "low", "high", "count", key))
    _small(ax, with_unit("target", unit_of(report)))
    count = table["count"] / table["count"].max()
    ax.bar(
        table["low"], 0.22 * count, width=table["high"] - table["low"], align="edge", color=style.COUNTS,
        linewidth=0, transform=ax.get_xaxis_transform(), zorder=1.5,
    )  # fmt: skip
    points(ax, table["target"], table[key], linewidth=1.8)
    ax.set_xlim(float(table["low"].min()), float(table["high"].max()))
    _room(ax, table[key], below=0.3)
    _whole(ax, report, key)


def _room(ax: Axes, values: FloatArray, *, below: float = 0.06) -> None:
    """Limits around the values, with room for what stands at the lower border."""
    low, high = float(values.min()), float(values.max())
    span = high - low or abs(high) or 1.0
    ax.set_ylim(low - below * span, high + 0.08 * span)


@report_figure("By number of members")
def by_members(report: Report) -> Figure:
    """Draw metrics against the number of members: mean over random subsets, and the band they lie in.

    Parameters
    ----------
    report : Report
        With curves ``by_members_<metric>``.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Gustafsson et al., 2020, fig. 6 and 8.
    """
    return _grid(report, "By number of members", _panels(report, "by_members_"), _members_panel)


def _members_panel(ax: Axes, report: Report, curve: str, key: str) -> None:
    table = columns(report, curve, ("members", "mean", "low", "high"))
    _small(ax, "members")
    _mean_and_band(ax, table, "members", table["low"], table["high"])
    _log_x(ax, table["members"], base_two=True)


@report_figure("Stability")
def stability(report: Report) -> Figure:
    """Draw metrics on random subsets of growing size: their mean, and a band of one standard deviation.

    The dashed line is the score of all samples. A mean that bends towards it tells a metric that is biased on small
    sets; a wide band, a set that is too small. Panels of metrics for which the set is too small say so.

    Parameters
    ----------
    report : Report
        With curves ``stability_<metric>``.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Xiong et al., 2024, fig. 4.
    """
    return _grid(report, "Stability", _panels(report, "stability_"), _stability_panel)


def _stability_panel(ax: Axes, report: Report, curve: str, key: str) -> None:
    what = report.curves[curve].x
    table = columns(report, curve, (what, "mean", "spread"))
    _small(ax, f"{what} in a subset")
    low, high = table["mean"] - table["spread"], table["mean"] + table["spread"]
    _mean_and_band(ax, table, what, low, high)
    _log_x(ax, table[what], base_two=True)
    _whole(ax, report, key)
    said = report.verdicts.get(key, "").partition(":")[0]
    if said:
        color = "#555555" if said == "large enough" else style.OVERCONFIDENT
        text = f"{said} at {counted(table[what].max())}"
        ax.text(
            0.97, 0.95, text, fontsize=style.SMALL - 1, color=color, ha="right", va="top",
            transform=ax.transAxes, zorder=4,
        )  # fmt: skip


def _mean_and_band(ax: Axes, table: Columns, x: str, low: FloatArray, high: FloatArray) -> None:
    ax.fill_between(table[x], low, high, color=BAND, alpha=0.5, linewidth=0, zorder=1.8)
    line(ax, table[x], table["mean"], marker="o", markersize=4, linewidth=1.8)
