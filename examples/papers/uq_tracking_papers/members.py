"""Metrics against the number M of samples of a method, over repeats: what Gustafsson's figures 5, 6 and 8 show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from uq_tracking.figures.style import MODEL, legend_below, line, new_figure, style_axes
from uq_tracking.report import Report
from uq_tracking_papers.study import Study

Columns = Mapping[str, npt.NDArray[np.generic]]

STYLES = {
    "Ensembling": {"color": MODEL, "linestyle": "-", "marker": "o"},
    "MC-dropout": {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    "SGLD": {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    "SGHMC": {"color": "#7B3F9E", "linestyle": ":", "marker": "D"},
}
LABELS = {
    "kl_to_reference": "KL to HMC",
    "ause_rmse": "AUSE (RMSE)",
    "auce": "AUCE",
    "rmse": "RMSE",
    "ause_brier": "AUSE (Brier)",
    "ece": "ECE",
    "miou": "mIoU",
}


def against_members(reports: Sequence[Report], keys: Sequence[str]) -> dict[str, npt.ArrayLike]:
    """Columns ``members`` and, for each metric, the mean over repeats and subsets and their range."""
    columns: dict[str, npt.ArrayLike] = {}
    for key in keys:
        found = [report.curves[f"by_members_{key}"].columns for report in reports]
        columns["members"] = found[0]["members"]
        columns[key] = np.mean([one["mean"] for one in found], axis=0)
        columns[f"{key} low"] = np.min([one["subset_low"] for one in found], axis=0)
        columns[f"{key} high"] = np.max([one["subset_high"] for one in found], axis=0)
    return columns


def at(columns: Columns, key: str, members: int) -> float:
    """The mean of a metric at a number of members."""
    (place,) = np.flatnonzero(columns["members"] == members)
    return float(columns[key][place])


def tell(
    study: Study, item: str, found: Mapping[str, Columns], keys: Sequence[str], members: Sequence[int]
) -> None:
    """Rows of each method at chosen numbers of members, and the figure."""
    for method, columns in found.items():
        for key in keys:
            for count in members:
                (place,) = np.flatnonzero(columns["members"] == count)
                bottom, mean, top = (float(columns[f"{key}{end}"][place]) for end in (" low", "", " high"))
                study.row(item, method, f"{LABELS[key]}, M = {count}", mean, None, bottom, top)
    figure = new_figure((3.7 * len(keys) + 0.6, 3.9))
    for ax, key in zip(np.atleast_1d(figure.subplots(1, len(keys))), keys, strict=True):
        style_axes(ax, "Samples M", LABELS[key])
        ax.set_xscale("log", base=2)
        if key == "kl_to_reference":
            ax.set_yscale("log")
        for method, columns in found.items():
            style = STYLES[method]
            low, high = (columns[f"{key} {end}"].astype(float) for end in ("low", "high"))
            ax.fill_between(
                columns["members"].astype(float), low, high, color=style["color"], alpha=0.12, linewidth=0
            )
            line(ax, columns["members"], columns[key], label=method, markersize=4, linewidth=1.8, **style)
    legend_below(figure, figure.axes[0])
    study.figure(item, figure, "Lines: means over repeats and random subsets; bands: their range.")
