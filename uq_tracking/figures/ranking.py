"""Drawings of how well a regression report's uncertainty ranks the errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uq_tracking.figures import style
from uq_tracking.figures.source import (
    band,
    columns,
    curve_axes,
    curve_of,
    finish,
    report_figure,
    score_text,
    start,
)
from uq_tracking.figures.style import legend, line, points

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]


@report_figure("Sparsification")
def sparsification(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the remaining RMSE as the most uncertain samples are removed, over the RMSE of all.

    The oracle removes the samples with the largest error; the shaded area between them is AUSE. The dotted line
    removes samples at random.

    Parameters
    ----------
    report : Report
        With the curve ``sparsification_rmse``: columns ``fraction``, ``model``, ``oracle``, ``random``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow", 2018.
    """
    scores = [score_text(report, "ause_rmse", "AUSE"), score_text(report, "aurg_rmse", "AURG")]
    return sparsified(report, "sparsification_rmse", "ause_rmse", scores, ax=ax)


@report_figure("Sparsification, MAE")
def sparsification_mae(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the same for the MAE, which is less sensitive to single large errors.

    Parameters
    ----------
    report : Report
        With the curve ``sparsification_mae``: columns ``fraction``, ``model``, ``oracle``, ``random``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Xiong et al., "Evaluating Metrics for Uncertainty in Deep Regression", 2024, fig. 5.
    """
    scores = [score_text(report, "ause_mae", "AUSE")]
    return sparsified(report, "sparsification_mae", "ause_mae", scores, ax=ax)


def sparsified(
    report: Report,
    name: str,
    score: str,
    scores: Sequence[str],
    *,
    label: str = "by uncertainty",
    ax: Axes | None = None,
) -> Figure:
    """Draw a sparsification curve with its oracle and the area between them."""
    keys = ("model", "oracle", "random")
    curve = columns(report, name, ("fraction", *keys), score=score)
    on = curve_axes(start(ax), curve_of(report, name))
    x, top = curve["fraction"], max(1.0, *(float(curve[key].max()) for key in keys))
    area: dict[str, Any] = {"color": style.MODEL, "alpha": 0.18, "linewidth": 0, "label": "area: AUSE"}
    on.fill_between(x, curve["oracle"], curve["model"], **area)
    band(on, report, name, x)
    points(on, x, curve["random"], color=style.RANDOM, linestyle=":", label="random")
    points(on, x, curve["model"], label=label)
    points(on, x, curve["oracle"], color=style.ORACLE, linestyle="--", label="oracle")
    on.set(xlim=(0, 1), ylim=(0, 1.1 * top), xticks=[0, 0.25, 0.5, 0.75, 1])
    if curve["model"].mean() > 0.5 * top:
        legend(on, loc="lower left")
    else:  # below the line of a random order
        legend(on, loc="upper right", bbox_to_anchor=(1.0, 0.89))
    return finish(on, ax, report, curve_of(report, name).title, scores, "ranking")


@report_figure("n-MeRCI")
def n_merci_by_alpha(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw n-MeRCI against the share of errors that the rescaled uncertainty must cover.

    0 is the oracle and 1 a constant standard deviation. The denominator of n-MeRCI is zero at the share of errors
    that are below the mean absolute error (often near .6): there the line leaves the picture, and the part to the
    left of that pole, where the denominator is negative, is drawn faint.

    Parameters
    ----------
    report : Report
        With the curve ``n_merci_by_alpha``: columns ``alpha``, ``n_merci``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] n-MeRCI, 2019, fig. 2.
    """
    curve = columns(report, "n_merci_by_alpha", ("alpha", "n_merci"), score="n_merci")
    on = start(ax)
    curve_axes(on, curve_of(report, "n_merci_by_alpha"))
    x, y = curve["alpha"], curve["n_merci"]
    left, right = min(0.5, float(x.min())), max(1.0, float(x.max()))
    low, high = _n_merci_limits(x, y)
    line(on, [left, right], [1, 1], color=style.RANDOM, linestyle=":", label="constant std")
    line(on, [left, right], [0, 0], color=style.ORACLE, linestyle="--", label="oracle")
    pole = _last_jump(y, low, high)
    line(on, x[:pole], y[:pole], color="#9CC6E0", linewidth=1.2)
    points(on, x[pole:], y[pole:], label="model")
    on.set(xlim=(left, right), ylim=(low, high))
    legend(on, loc="best")
    return finish(on, ax, report, "n-MeRCI", [score_text(report, "n_merci", "n-MeRCI")], "ranking")


@report_figure("MeRCI")
def merci_by_alpha(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw MeRCI against the share of errors to cover, between the oracle's and a constant's.

    Parameters
    ----------
    report : Report
        With the curve ``merci_by_alpha``: columns ``alpha``, ``merci``, ``oracle``, ``constant``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] MeRCI, 2018, fig. 3.
    """
    curve = columns(report, "merci_by_alpha", ("alpha", "merci", "oracle", "constant"), score="merci")
    on = curve_axes(start(ax), curve_of(report, "merci_by_alpha"))
    line(on, curve["alpha"], curve["constant"], color=style.RANDOM, linestyle=":", label="constant std")
    line(on, curve["alpha"], curve["oracle"], color=style.ORACLE, linestyle="--", label="oracle")
    points(on, curve["alpha"], curve["merci"], label="model")
    on.set_ylim(0, None)
    legend(on, loc="best")
    return finish(on, ax, report, "MeRCI", [score_text(report, "merci", "MeRCI")], "ranking")


def _n_merci_limits(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Choose limits from the levels used in practice, far above the pole of the definition."""
    seen = y[x >= min(0.9, float(x.max()))]
    return min(-0.1, 1.1 * float(seen.min())), max(1.6, 1.1 * float(seen.max()))


def _last_jump(y: FloatArray, low: float, high: float) -> int:
    """Find the first point after the last jump across the whole picture, as at a pole."""
    place = np.where(y < low, -1, np.where(y > high, 1, 0))
    jumps = np.flatnonzero(place[1:] * place[:-1] < 0) + 1
    return int(jumps[-1]) if len(jumps) else 0
