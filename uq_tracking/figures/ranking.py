"""Drawings of how well a regression report's uncertainty ranks the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from uq_tracking.figures import style
from uq_tracking.figures.source import band, columns, heading, report_figure, score_text, unit_of
from uq_tracking.figures.style import legend, line, new_figure, points, set_titles, style_axes
from uq_tracking.figures.text import with_unit

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]


@report_figure("Sparsification")
def sparsification(report: Report) -> Figure:
    """Draw the RMSE that is left when the most uncertain samples are removed, over the RMSE of all.

    The oracle removes the samples of largest error; the shaded area to it is AUSE. The dotted line removes at
    random.

    Parameters
    ----------
    report : Report
        With the curve ``sparsification_rmse``: columns ``fraction``, ``model``, ``oracle``, ``random``.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow", 2018.
    """
    figure = sparsified(report, "RMSE", "ause_rmse")
    scores = [score_text(report, "ause_rmse", "AUSE"), score_text(report, "aurg_rmse", "AURG")]
    set_titles(figure.axes[0], heading(report, "Sparsification"), scores)
    return figure


def sparsified(report: Report, error: str, score: str, *, label: str = "by uncertainty") -> Figure:
    """Draw the curve ``sparsification_<error>`` with its oracle and the area between them, without a title."""
    keys = ("model", "oracle", "random")
    curve = columns(report, f"sparsification_{error.lower()}", ("fraction", *keys), score=score)
    figure = new_figure()
    ax = style_axes(
        figure.add_subplot(), "fraction of most uncertain removed", f"{error} of the rest / {error} of all"
    )
    x, top = curve["fraction"], max(1.0, *(float(curve[key].max()) for key in keys))
    area: dict[str, Any] = {"color": style.MODEL, "alpha": 0.18, "linewidth": 0, "label": "area: AUSE"}
    ax.fill_between(x, curve["oracle"], curve["model"], **area)
    band(ax, report, f"sparsification_{error.lower()}", x)
    points(ax, x, curve["random"], color=style.RANDOM, linestyle=":", label="random")
    points(ax, x, curve["model"], label=label)
    points(ax, x, curve["oracle"], color=style.ORACLE, linestyle="--", label="oracle")
    ax.set(xlim=(0, 1), ylim=(0, 1.1 * top), xticks=[0, 0.25, 0.5, 0.75, 1])
    legend(ax, loc="best")
    return figure


@report_figure("n-MeRCI")
def n_merci_by_alpha(report: Report) -> Figure:
    """Draw n-MeRCI against the share of errors that the rescaled uncertainty must cover.

    0 is the oracle and 1 a constant standard deviation. The denominator of n-MeRCI is zero at the share of
    errors that are below the mean absolute error (often near .6): there the line leaves the picture, and what
    lies left of that pole, where the denominator is negative, is drawn faint.

    Parameters
    ----------
    report : Report
        With the curve ``n_merci_by_alpha``: columns ``alpha``, ``n_merci``.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] n-MeRCI, 2019, fig. 2.
    """
    curve = columns(report, "n_merci_by_alpha", ("alpha", "n_merci"), score="n_merci")
    figure = new_figure()
    ax = style_axes(figure.add_subplot(), "share \N{GREEK SMALL LETTER ALPHA} of errors to cover", "n-MeRCI")
    x, y = curve["alpha"], curve["n_merci"]
    left, right = min(0.5, float(x.min())), max(1.0, float(x.max()))
    low, high = _n_merci_limits(x, y)
    line(ax, [left, right], [1, 1], color=style.RANDOM, linestyle=":", label="constant std")
    line(ax, [left, right], [0, 0], color=style.ORACLE, linestyle="--", label="oracle")
    pole = _last_jump(y, low, high)
    line(ax, x[:pole], y[:pole], color="#9CC6E0", linewidth=1.2)
    points(ax, x[pole:], y[pole:], label="model")
    ax.set(xlim=(left, right), ylim=(low, high))
    legend(ax, loc="best")
    set_titles(ax, heading(report, "n-MeRCI"), [score_text(report, "n_merci", "n-MeRCI")])
    return figure


@report_figure("MeRCI")
def merci_by_alpha(report: Report) -> Figure:
    """Draw MeRCI against the share of errors to cover, between the oracle's and a constant's.

    Parameters
    ----------
    report : Report
        With the curve ``merci_by_alpha``: columns ``alpha``, ``merci``, ``oracle``, ``constant``.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    .. [1] MeRCI, 2018, fig. 3.
    """
    curve = columns(report, "merci_by_alpha", ("alpha", "merci", "oracle", "constant"), score="merci")
    figure = new_figure()
    y_label = with_unit("MeRCI", unit_of(report))
    ax = style_axes(figure.add_subplot(), "share \N{GREEK SMALL LETTER ALPHA} of errors to cover", y_label)
    line(ax, curve["alpha"], curve["constant"], color=style.RANDOM, linestyle=":", label="constant std")
    line(ax, curve["alpha"], curve["oracle"], color=style.ORACLE, linestyle="--", label="oracle")
    points(ax, curve["alpha"], curve["merci"], label="model")
    ax.set_ylim(0, None)
    legend(ax, loc="best")
    set_titles(ax, heading(report, "MeRCI"), [score_text(report, "merci", "MeRCI")])
    return figure


def _n_merci_limits(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Choose limits from the levels that are used in practice, far above the pole of the definition."""
    seen = y[x >= min(0.9, float(x.max()))]
    return min(-0.1, 1.1 * float(seen.min())), max(1.6, 1.1 * float(seen.max()))


def _last_jump(y: FloatArray, low: float, high: float) -> int:
    """Find the first point after the line last jumps across all of the picture, as it does at a pole."""
    place = np.where(y < low, -1, np.where(y > high, 1, 0))
    jumps = np.flatnonzero(place[1:] * place[:-1] < 0) + 1
    return int(jumps[-1]) if len(jumps) else 0
