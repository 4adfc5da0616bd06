"""Drawings of the curves built on demand: a small panel for each metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from uq_tracking import plugins
from uq_tracking.figures import style
from uq_tracking.figures.header import family_text, report_header
from uq_tracking.figures.source import Columns, NothingToDrawError, columns, report_figure
from uq_tracking.figures.style import decades, legend, line, new_figure, reference, style_axes
from uq_tracking.figures.text import counted, cut, readable
from uq_tracking.formatting import axis_label, one_line

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]
DrawPanel = Callable[[Axes, "Report", str, str], None]

WIDTH, HEIGHT, HEAD = 3.2, 2.55, 0.85
"""Size of a panel, and height of the header, in inches."""
IN_A_ROW, MOST_PANELS, MOST_NAMES = 3, 9, 16
LONGEST_NAME = 86.0
"""Maximum width of a group's name, in points."""
TINY = 30
"""With fewer samples than this, a part says little: it is drawn pale, and does not affect the axis limits."""
PALE = "#9CC6E0"

BAND = "#9CC6E0"
PRIORS = (
    ("_gaussian", "Gaussian", "-.", style.RANDOM),
    ("_laplace", "Laplace", "--", style.BEFORE),
    ("_uniform", "uniform", ":", style.ORACLE),
)
"""Distributions to sweep besides the predicted one: suffix of the key, name, dashes, color."""
SWEPT = (
    "nll", "crps", "interval_score", "quadratic_score", "spherical_score", "pinball", "coverage_95", "merci",
)  # fmt: skip
NEAR = (0.4, 2.5)
"""Factors whose scores must be fully visible; a log score reaches thousands at a tenth of the scale."""


def _grid(
    report: Report,
    name: str,
    all_panels: list[tuple[str, str]],
    draw: DrawPanel,
    notes: Sequence[str] = (),
    height: float = HEIGHT,
) -> Figure:
    """A figure of small panels, each drawn by ``draw(ax, report, curve, key)``."""
    panels = all_panels[:MOST_PANELS]
    wide = min(IN_A_ROW, len(panels))
    high = -(-len(panels) // wide)
    figure = new_figure((max(WIDTH * wide, 4.4), height * high + HEAD))
    for place, (curve, key) in enumerate(panels, start=1):
        draw(figure.add_subplot(high, wide, place), report, curve, key)
    figure.set_layout_engine("compressed", w_pad=0.1, h_pad=0.06)
    more = len(all_panels) - len(panels)
    report_header(figure, report, name, [*notes, *([f"{more} more metrics are not drawn"] if more else [])])
    return figure


def _panels(report: Report, prefix: str) -> list[tuple[str, str]]:
    """Curves of a family of names, and the metric of each."""
    found = [(name, name.removeprefix(prefix)) for name in report.curves if name.startswith(prefix)]
    if not found:
        raise NothingToDrawError(f"the report has no curve {prefix}*")
    return found


def _small(ax: Axes, report: Report, x_label: str, key: str) -> Axes:
    """Style a small panel; the vertical axis names the metric and its unit."""
    metric = plugins.metrics(report.task).get(key)
    y_label = axis_label(key, "" if metric is None else metric.unit, report.settings.get("unit"))
    style_axes(ax, x_label, cut(y_label, style.SMALL, 72 * HEIGHT - 20))
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

    The vertical line is the scale as predicted, the dots are the best scales. If a dot is off the line, plain
    rescaling would gain the difference between them.

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
    _small(ax, report, report.curves[curve].x_label, key)
    factor = table["factor"]
    predicted = ("", family_text(report).replace(" distribution", "") or "Gaussian", "-", style.MODEL)
    shown = [(key + end, *look) for end, *look in (predicted, *PRIORS) if key + end in table]
    near = (factor >= NEAR[0]) & (factor <= NEAR[1])
    ax.set_ylabel(ax.get_ylabel(), fontsize=style.SMALL)
    limits = np.concatenate([table[column][near] for column, *_ in shown])
    for column, name, dashes, color in shown:
        line(ax, factor, table[column], color=color, linestyle=dashes, linewidth=1.8, label=name)
        best = _best(report, column, table[column])
        limits = np.append(limits, table[column][best])
        line(ax, [factor[best]], [table[column][best]], color=color, marker="o", markersize=5)
    spread, size = float(np.ptp(limits)), float(np.abs(limits).max())
    margin = 0.08 * spread if spread > 1e-6 * size else 0.1 * size or 0.1
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

    Strata of fewer than 30 samples are pale, and do not affect the axis limits.

    Parameters
    ----------
    report : Report
        With curves ``by_group_<metric>``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    panels = _panels(report, "by_group_")
    bars = max(len(columns(report, curve, ("group",))["group"]) for curve, _ in panels)
    height = min(HEIGHT, 0.75 + 0.26 * bars)
    return _grid(report, "By group", panels, _group_panel, _tiny_note(report, panels, "groups"), height)


def _tiny_note(report: Report, panels: list[tuple[str, str]], what: str) -> list[str]:
    """Explains the dashed line, and grey and pale parts."""
    counts = [columns(report, curve, ("count",))["count"] for curve, _ in panels]
    notes = ["dashed: all samples"]
    notes += ["grey: where the samples are"] if what == "intervals" else []
    pale = any((count < TINY).any() for count in counts)
    return notes + ([f"pale: {what} of fewer than {TINY} samples"] if pale else [])


def _group_panel(ax: Axes, report: Report, curve: str, key: str) -> None:
    table, names = columns(report, curve, ("group", key, "count")), report.curves[curve].labels
    place, values, tiny = -table["group"], table[key], table["count"] < TINY
    if names is not None and _stepped(table["group"], names):
        _small(ax, report, report.curves[curve].x_label, key)
        _parts_along(ax, report, key, table["group"], values, tiny)
        return
    _small(ax, report, "", key)
    ax.set(xlabel=ax.get_ylabel(), ylabel="")
    ax.grid(False, axis="y")
    colors = np.where(tiny, PALE, style.MODEL).tolist()
    ax.barh(place, values, height=0.7, color=colors, edgecolor="white", linewidth=0.6, zorder=2)
    ax.set_ylim(float(place.min()) - 0.6, float(place.max()) + 0.6)
    _follow(ax, report, key, place, values, tiny, across=True)
    labels = [one_line(name) for name in names or [readable(value) for value in table["group"]]]
    step = -(-len(place) // MOST_NAMES)
    named = [cut(label, style.SMALL - 1, LONGEST_NAME) for label in labels[::step]]
    ax.yaxis.set_major_locator(FixedLocator(list(place[::step])))
    ax.yaxis.set_major_formatter(FixedFormatter(named))
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    if key in report.scores:
        reference(ax, [report.scores[key]] * 2, ax.get_ylim(), zorder=2.6)


def _follow(
    ax: Axes,
    report: Report,
    key: str,
    x: FloatArray,
    values: FloatArray,
    tiny: npt.NDArray[np.bool_],
    *,
    across: bool = False,
) -> None:
    """Set limits around parts with enough samples and the overall score, within the metric's range.

    Parts with few samples beyond the limits are marked by a triangle at the border. Bars go ``across`` from zero.
    """
    seen = values if tiny.all() else values[~tiny]
    whole = [report.scores[key]] if key in report.scores else []
    seen = np.concatenate([seen, whole, [0.0] * across])
    low, high = float(seen.min()), float(seen.max())
    metric = plugins.metrics(report.task).get(key)
    least, most = (-np.inf, np.inf) if metric is None else metric.bounds
    margin = 0.1 * (high - low or abs(high) or 1.0)
    bottom = low if across and low == 0 else max(low - margin, least)
    top = 0.0 if across and high == 0 else min(high + margin, most + 0.02 * abs(most))
    (ax.set_xlim if across else ax.set_ylim)(bottom, top)
    for beyond, end, marker in ((values > top, top, "^>"), (values < bottom, bottom, "v<")):
        if beyond.any():
            place = (x[beyond], np.full(int(beyond.sum()), end))
            look: dict[str, Any] = {
                "marker": marker[across],
                "markersize": 5,
                "linestyle": "",
                "color": style.QUIET,
            }
            line(ax, *(place[::-1] if across else place), **look, clip_on=False, zorder=5)


def _stepped(x: FloatArray, names: tuple[str, ...]) -> bool:
    """Whether groups are numbers with gaps or fractions, such as lead times of 6, 12 and 24 hours."""
    numbers = all(name == str(value) or name == str(int(value)) for name, value in zip(names, x, strict=True))
    return numbers and len(x) > 2 and bool(np.any(x != x[0] + np.arange(len(x))))


def _whole(ax: Axes, report: Report, key: str) -> None:
    """The score of all samples."""
    if key in report.scores:
        low, high = ax.get_xlim()
        reference(ax, [low, high], [report.scores[key]] * 2, zorder=2.6)


@report_figure("By target")
def by_target(report: Report) -> Figure:
    """Draw metrics in intervals of the target; grey bars are the intervals' numbers of samples.

    Intervals of fewer than 30 samples are pale, and do not affect the axis limits.

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
    panels = _panels(report, "by_target_")
    return _grid(report, "By target", panels, _target_panel, _tiny_note(report, panels, "intervals"))


def _target_panel(ax: Axes, report: Report, curve: str, key: str) -> None:
    table = columns(report, curve, ("target", "target_low", "target_high", "count", key))
    _small(ax, report, report.curves[curve].x_label, key)
    x, values, tiny = table["target"], table[key], table["count"] < TINY
    low, high = table["target_low"], table["target_high"]
    ax.bar(
        low, 0.22 * table["count"] / table["count"].max(), width=high - low,
        align="edge", color=style.COUNTS, linewidth=0, transform=ax.get_xaxis_transform(), zorder=1.5,
    )  # fmt: skip
    ax.set_xlim(float(low.min()), float(high.max()))
    _parts_along(ax, report, key, x, values, tiny)


def _parts_along(
    ax: Axes, report: Report, key: str, x: FloatArray, values: FloatArray, tiny: npt.NDArray[np.bool_]
) -> None:
    """A line through the parts, pale through those with few samples, and the overall score."""
    line(ax, x, values, color=PALE, linewidth=1.0, marker="o", markersize=3.5, markerfacecolor="white")
    line(ax, x, np.where(tiny, np.nan, values), linewidth=1.8, marker="o", markersize=3.5)
    _follow(ax, report, key, x, values, tiny)
    _whole(ax, report, key)


@report_figure("By number of members")
def by_members(report: Report) -> Figure:
    """Draw metrics against the number of members: the mean over random subsets, and the band they lie in.

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
    table = columns(report, curve, ("members", "mean", "subset_low", "subset_high"))
    _small(ax, report, report.curves[curve].x_label, key)
    _mean_and_band(ax, table, "members", table["subset_low"], table["subset_high"])
    _log_x(ax, table["members"], base_two=True)


@report_figure("Stability")
def stability(report: Report) -> Figure:
    """Draw metrics on random subsets of growing size: their mean, and a band of one standard deviation.

    The dashed line is the score of all samples. A mean that bends towards it shows a metric that is biased on small
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
    _small(ax, report, report.curves[curve].x_label, key)
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
