"""Drawings of Gustafsson et al.: predictive distributions of the toys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from uq_tracking.figures.style import MODEL, new_figure, style_axes
from uq_tracking_papers.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = npt.NDArray[np.float64]


def predictive(
    study: Study,
    name: str,
    at: FloatArray,
    found: Mapping[str, tuple[FloatArray, ...]],
    x: FloatArray,
    y: npt.NDArray[np.generic],
) -> None:
    """Figures 3 and 4: what HMC and each method with 16 samples predict."""
    item = f"figure 4, {name}"
    study.item(item, "Predictive distributions with 16 samples, and HMC's", "Training data as dots.")
    figure = new_figure((3.0 * len(found), 3.1))
    for number, (ax, (method, parameters)) in enumerate(
        zip(figure.subplots(1, len(found), sharey=True), found.items(), strict=True)
    ):
        ax.set_title(method, fontsize=12)
        if len(parameters) == 2:
            _band(ax, at[:, 0], *parameters, x[::4, 0], y[::4], "y" if number == 0 else "")
        else:
            _plane(ax, at, parameters[0][:, 1], x[::4], y[::4], "x2" if number == 0 else "")
    study.figure(item, figure, _CAPTION[name])


_CAPTION = {
    "regression": "Mean and two standard deviations.",
    "classification": "Probability of the second class, from 0 (blue) to 1 (red).",
}


def _band(
    ax: Axes,
    at: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    x: FloatArray,
    y: npt.NDArray[np.generic],
    label: str,
) -> None:
    style_axes(ax, "x", label)
    ax.fill_between(at, mean - 2 * std, mean + 2 * std, color=MODEL, alpha=0.2, linewidth=0)
    ax.plot(x, y.astype(float), ".", color="#D55E00", markersize=2)
    ax.plot(at, mean, color=MODEL, linewidth=1.8)
    ax.set_ylim(-6, 6)


def _plane(
    ax: Axes, at: FloatArray, one: FloatArray, x: FloatArray, y: npt.NDArray[np.generic], label: str
) -> None:
    style_axes(ax, "x1", label)
    ax.grid(False)
    side = round(len(at) ** 0.5)
    extent = (at[:, 0].min(), at[:, 0].max(), at[:, 1].min(), at[:, 1].max())
    ax.imshow(
        one.reshape(side, side),
        origin="lower",
        extent=extent,
        vmin=0,
        vmax=1,
        cmap="coolwarm",
        aspect="equal",
    )
    for label_, color in ((0, "#0b3c78"), (1, "#7a1010")):
        ax.plot(*x[y == label_].T, ".", color=color, markersize=2)
