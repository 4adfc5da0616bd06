"""Drawings of the curves built on demand: a small panel for each metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, MaxNLocator

from uq_tracking import plugins
from uq_tracking.figures import style
from uq_tracking.figures.calibration import accuracies
from uq_tracking.figures.curves import Columns, NothingToDrawError, columns, undefined_figure
from uq_tracking.figures.header import family_text, report_header
from uq_tracking.figures.style import PALE, FloatArray, cut, legend, line, new_figure, readable, reference
from uq_tracking.formatting import axis_label, one_line

if TYPE_CHECKING:
    from uq_tracking.metrics.registry import Metric
    from uq_tracking.report import Report

WIDTH, HEIGHT, HEAD = 3.2, 2.55, 0.85
"""Size of a panel, and height of the header, in inches."""
IN_A_ROW, MOST_PANELS, MOST_NAMES = 3, 9, 16
LONGEST_NAME = 86.0
"""Maximum width of a group's name, in points."""
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


@dataclass(frozen=True)
class Panel:
    """The curve of one metric in a report."""

    report: Report
    key: str
    curve: str
    table: Columns

    @property
    def metric(self) -> Metric | None:
        """The declaration of the metric, unless a plugin that had it is gone."""
        return plugins.metrics(self.report.task).get(self.key)

    @property
    def tiny(self) -> npt.NDArray[np.bool_]:
        """Parts of few samples."""
        return self.table["count"] < style.FEW


DrawPanel = Callable[[Axes, Panel], None]


def _grid(
    report: Report, title: str, draw: DrawPanel, prefix: str, needed: Sequence[str], keys: Sequence[str] = ()
) -> Figure:
    """Draw a small panel for each metric whose curve's name begins so, or for these columns of one curve."""
    shown = [(name, name.removeprefix(prefix)) for name in report.curves if name.startswith(prefix)]
    try:
        if not shown:
            raise NothingToDrawError(f"the report has no curve {repr(prefix) if keys else f'{prefix}*'}")
        panels = [
            Panel(report, key, name, columns(report, name, *(part.format(key) for part in needed)))
            for name, key in ([(prefix, key) for key in keys] or shown)
        ]
    except NothingToDrawError as nothing:
        return undefined_figure(report, title, str(nothing))
    notes, height = [], HEIGHT
    if "count" in needed:
        part = "intervals" if "target" in needed else "groups"
        notes = ["dashed: all samples"] + ["grey: where the samples are"] * (part == "intervals")
        if any(panel.tiny.any() for panel in panels):
            notes.append(f"pale: {part} of fewer than {style.FEW} samples")
    if "group" in needed:
        height = min(HEIGHT, 0.75 + 0.26 * max(len(panel.table["group"]) for panel in panels))
    more = len(panels) - MOST_PANELS
    if more > 0:
        notes.append(f"{more} more metrics are not drawn")
    figure, axes = _small_axes(min(MOST_PANELS, len(panels)), height)
    for ax, panel in zip(axes, panels, strict=False):
        unit = panel.metric.unit if panel.metric else ""
        label = cut(axis_label(panel.key, unit, report.settings.get("unit")), style.SMALL, 72 * HEIGHT - 20)
        _style_small(ax, report.curves[panel.curve].x_label, label)
        ax.tick_params(which="major", labelsize=style.SMALL - 1)
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        draw(ax, panel)
    return report_header(figure, report, title, notes)


def _small_axes(count: int, height: float = HEIGHT) -> tuple[Figure, list[Axes]]:
    """Make a figure of this many small panels."""
    wide = min(IN_A_ROW, count)
    high = -(-count // wide)
    figure = new_figure((max(WIDTH * wide, 4.4), height * high + HEAD))
    figure.set_layout_engine("compressed", w_pad=0.1, h_pad=0.06)
    return figure, [figure.add_subplot(high, wide, place) for place in range(1, count + 1)]


def _style_small(ax: Axes, x_label: str, y_label: str) -> None:
    style.style_axes(ax, x_label, y_label)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(style.SMALL)


def _log_x(ax: Axes, x: FloatArray, ticks: FloatArray | None = None) -> None:
    low, high = float(x.min()), float(x.max())
    if 0 < low < high:
        margin = (high / low) ** 0.04
        style.log_axes(ax, x=(low / margin, high * margin))
        style.fixed_ticks(ax.xaxis, style.decades(low, high) if ticks is None else ticks, _thousands)


def _thousands(value: float) -> str:
    return f"{readable(value / 1000)}k" if value >= 10_000 else readable(value)


def scale_sweep(report: Report) -> Figure:
    """Draw each proper score as all standard deviations are multiplied by a common factor.

    The vertical line is the scale as predicted, the dots are the best scales. If a dot is off the line, plain
    rescaling would gain the difference between them. After MeRCI, 2018, fig. 2.
    """
    there = report.curves["scale_sweep"].columns if "scale_sweep" in report.curves else SWEPT
    keys = [key for key in SWEPT if any(column.startswith(key) for column in there)]
    return _grid(report, "Scores against scale", _sweep_panel, "scale_sweep", ("factor",), keys)


def _sweep_panel(ax: Axes, panel: Panel) -> None:
    table, factor = panel.table, panel.table["factor"]
    family = family_text(panel.report).replace(" distribution", "") or "Gaussian"
    shown = [
        (panel.key + end, *look)
        for end, *look in (("", family, "-", style.MODEL), *PRIORS)
        if panel.key + end in table
    ]
    near = (factor >= NEAR[0]) & (factor <= NEAR[1])
    limits = np.concatenate([table[column][near] for column, *_ in shown])
    for column, name, dashes, color in shown:
        metric = plugins.metrics(panel.report.task).get(column)
        values = table[column]
        best = int(np.argmin(values if metric is None else [metric.loss(value) for value in values.tolist()]))
        line(ax, factor, values, color=color, linestyle=dashes, linewidth=1.8, label=name)
        line(ax, [factor[best]], [values[best]], color=color, marker="o", markersize=5)
        limits = np.append(limits, values[best])
    spread, size = float(np.ptp(limits)), float(np.abs(limits).max())
    margin = 0.08 * spread if spread > 1e-6 * size else 0.1 * size or 0.1
    ax.set_ylim(float(limits.min()) - margin, float(limits.max()) + margin)
    _log_x(ax, factor)
    ax.axvline(1.0, color=style.REFERENCE, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1.5)
    if len(shown) > 1:
        legend(ax, loc="best")


def by_group(report: Report) -> Figure:
    """Draw metrics in each stratum of ``by``, with the score of all samples as a dashed line.

    Strata of fewer than 50 samples are pale, and do not affect the axis limits.
    """
    return _grid(report, "By group", _group_panel, "by_group_", ("group", "{}", "count"))


def _group_panel(ax: Axes, panel: Panel) -> None:
    names = panel.report.curves[panel.curve].labels
    group, values = panel.table["group"], panel.table[panel.key]
    if names is not None and _stepped(group, names):
        _parts_along(ax, panel, group)
        return
    place, key = -group, panel.key
    ax.set(xlabel=ax.get_ylabel(), ylabel="")
    ax.grid(False, axis="y")
    look: dict[str, Any] = {"height": 0.7, "edgecolor": "white", "linewidth": 0.6, "zorder": 2}
    ax.barh(place, values, color=np.where(panel.tiny, PALE, style.MODEL).tolist(), **look)
    ax.set_ylim(float(place.min()) - 0.6, float(place.max()) + 0.6)
    _follow(ax, panel, place, across=True)
    labels = [one_line(name) for name in names or [readable(value) for value in group]]
    step = -(-len(place) // MOST_NAMES)
    named = [cut(label, style.SMALL - 1, LONGEST_NAME) for label in labels[::step]]
    ax.set_yticks(place[::step])
    ax.yaxis.set_major_formatter(FixedFormatter(named))
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    if key in panel.report.scores:
        reference(ax, [panel.report.scores[key]] * 2, ax.get_ylim(), zorder=2.6)


def _follow(ax: Axes, panel: Panel, x: FloatArray, *, across: bool = False) -> None:
    """Set limits around parts with enough samples and the overall score, within the metric's range.

    Parts with few samples beyond the limits are marked by a triangle at the border. Bars go ``across`` from zero.
    """
    values, scores = panel.table[panel.key], panel.report.scores
    whole = [scores[panel.key]] if panel.key in scores else []
    seen = np.concatenate([values if panel.tiny.all() else values[~panel.tiny], whole, [0.0] * across])
    low, high = float(seen.min()), float(seen.max())
    least, most = panel.metric.bounds if panel.metric else (-np.inf, np.inf)
    margin = 0.1 * (high - low or abs(high) or 1.0)
    bottom = low if across and low == 0 else max(low - margin, least)
    top = 0.0 if across and high == 0 else min(high + margin, most + 0.02 * abs(most))
    (ax.set_xlim if across else ax.set_ylim)(bottom, top)
    for beyond, end, marker in ((values > top, top, "^>"), (values < bottom, bottom, "v<")):
        if beyond.any():
            place = (x[beyond], np.full(int(beyond.sum()), end))
            look: dict[str, Any] = {"marker": marker[across], "markersize": 5, "linestyle": ""}
            line(ax, *(place[::-1] if across else place), **look, color=style.QUIET, clip_on=False, zorder=5)


def _stepped(x: FloatArray, names: tuple[str, ...]) -> bool:
    """Return whether groups are numbers with gaps or fractions, such as lead times of 6, 12 and 24 hours."""
    numbers = all(name == str(value) or name == str(int(value)) for name, value in zip(names, x, strict=True))
    return numbers and len(x) > 2 and bool(np.any(x != x[0] + np.arange(len(x))))


def by_target(report: Report) -> Figure:
    """Draw metrics in intervals of the target; grey bars are the intervals' numbers of samples.

    Intervals of fewer than 50 samples are pale, and do not affect the axis limits. After n-MeRCI, 2019, fig. 4 and 5.
    """
    needed = ("target", "target_low", "target_high", "count", "{}")
    return _grid(report, "By target", _target_panel, "by_target_", needed)


def _target_panel(ax: Axes, panel: Panel) -> None:
    low, high, count = (panel.table[name] for name in ("target_low", "target_high", "count"))
    look: dict[str, Any] = {"align": "edge", "color": style.COUNTS, "linewidth": 0, "zorder": 1.5}
    ax.bar(low, 0.22 * count / count.max(), width=high - low, transform=ax.get_xaxis_transform(), **look)
    ax.set_xlim(float(low.min()), float(high.max()))
    _parts_along(ax, panel, panel.table["target"])


def _parts_along(ax: Axes, panel: Panel, x: FloatArray) -> None:
    """Draw a line through the parts, pale through those with few samples, and the overall score."""
    values = panel.table[panel.key]
    line(ax, x, values, color=PALE, linewidth=1.0, marker="o", markersize=3.5, markerfacecolor="white")
    line(ax, x, np.where(panel.tiny, np.nan, values), linewidth=1.8, marker="o", markersize=3.5)
    _follow(ax, panel, x)
    _whole(ax, panel)


def _whole(ax: Axes, panel: Panel) -> None:
    """Draw the score of all samples."""
    if panel.key in panel.report.scores:
        low, high = ax.get_xlim()
        reference(ax, [low, high], [panel.report.scores[panel.key]] * 2, zorder=2.6)


def by_members(report: Report) -> Figure:
    """Draw metrics against the number of members: the mean over random subsets, and the band they lie in.

    After Gustafsson et al., 2020, fig. 6 and 8.
    """
    needed = ("members", "mean", "subset_low", "subset_high")
    return _grid(report, "By number of members", _mean_and_band, "by_members_", needed)


def stability(report: Report) -> Figure:
    """Draw metrics on random subsets of growing size: their mean, and a band of one standard deviation.

    The dashed line is the score of all samples. A mean that bends towards it shows a metric that is biased on small
    sets; a wide band, a set that is too small. Panels of metrics for which the set is too small say so. After Xiong
    et al., 2024, fig. 4.
    """
    return _grid(report, "Stability", _mean_and_band, "stability_", ("mean", "spread"))


def _mean_and_band(ax: Axes, panel: Panel) -> None:
    """Draw the mean over subsets of each size with its band, and what is known of the score of all samples."""
    table, x = panel.table, panel.table[panel.report.curves[panel.curve].x]
    if "members" not in table:
        low, high = table["mean"] - table["spread"], table["mean"] + table["spread"]
    else:
        low, high = table["subset_low"], table["subset_high"]
    style.band(ax, x, low, high, color=PALE, alpha=0.5, zorder=1.8)
    line(ax, x, table["mean"], marker="o", markersize=4, linewidth=1.8)
    _log_x(ax, x, x[:: max(1, -(-len(x) // 6))])
    if "members" in table:
        return
    _whole(ax, panel)
    if said := panel.report.verdicts.get(panel.key, "").partition(":")[0]:
        color = style.QUIET if said == "large enough" else style.OVERCONFIDENT
        look: dict[str, Any] = {"fontsize": style.SMALL - 1, "color": color, "ha": "right", "va": "top"}
        ax.text(0.97, 0.95, f"{said} at {x.max():,.0f}", transform=ax.transAxes, zorder=4, **look)


def by_class(report: Report) -> Figure:
    """Draw the reliability of each class against the rest, the worst nine first.

    Bars show how often a class occurs where it is stated with a probability in this bin; the gap to the mean stated
    probability is orange where the class is stated too often and blue where too rarely.
    """
    table = report.class_table
    if table is None or not table.bins:
        return undefined_figure(report, "By class", "the report holds no probabilities of classes")
    worst = table.worst_first()[:MOST_PANELS]
    figure, axes = _small_axes(len(worst))
    width = 1 / table.bins["count"].shape[1]
    for ax, k in zip(axes, worst.tolist(), strict=True):
        _style_small(ax, "Stated probability", "Observed share")
        count, stated, observed = (table.bins[name][k] for name in ("count", "stated", "observed"))
        filled = count > 0
        low = np.arange(len(count)) * width
        bars = Columns(
            {
                "confidence_low": low[filled],
                "confidence_high": low[filled] + width,
                "confidence": stated[filled],
                "accuracy": observed[filled],
            }
        )
        accuracies(ax, bars, of_event=True)
        ax.set_xticks(style.QUARTERS)
        if (own := ax.get_legend()) is not None:
            own.remove()
        rate, share = float(table.values["stated"][k]), float(table.values["observed"][k])
        name = cut(one_line(table.labels[k]), style.SMALL, LONGEST_NAME)
        text = f"{name}: {readable(100 * rate, 2)} % stated, {readable(100 * share, 2)} % true"
        ax.set_title(text, fontsize=style.SMALL, loc="left")
    notes = ["orange: stated too often", "blue: too rarely"]
    if len(table) > len(worst):
        notes.append(f"the {len(worst)} worst of {len(table)} classes")
    return report_header(figure, report, "By class, worst first", notes)
