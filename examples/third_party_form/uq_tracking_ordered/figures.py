"""A 2-D case of ordered classes: truth, median class, the distance between them, and the score that was implied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from uq_tracking.figures.style import new_figure
from uq_tracking_ordered.form import cumulative, median_class


def class_map(
    labels: npt.NDArray[Any],
    probs: npt.NDArray[Any],
    *,
    classes: Sequence[str] | None = None,
    image: npt.NDArray[Any] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw true classes, median classes, their distance, and the score that the probabilities imply.

    A useful uncertainty looks like the distance: bright where the median class is wrong. NaN labels stay white.

    Parameters
    ----------
    labels : array, shape (height, width)
    probs : array, shape (height, width, K)
    classes, image, title : optional
        Names of the classes in order; the model's input; the name of the case.
    """
    n_classes = probs.shape[-1]
    median, below = median_class(probs), cumulative(probs)
    colors = colormaps["viridis"].resampled(n_classes)
    of_class = {"cmap": colors, "norm": BoundaryNorm(np.arange(n_classes + 1) - 0.5, n_classes)}
    distance = np.abs(median - labels)
    panels: list[tuple[str, npt.NDArray[Any], dict[str, Any]]] = [
        *([] if image is None else [("input", image, {"cmap": "gray"})]),
        ("label", labels, of_class),
        ("median class", median, of_class),
        (f"distance, mean {np.nanmean(distance):.3g}", distance, {"cmap": "magma", "vmin": 0}),
        ("implied score", (below * (1 - below)).mean(axis=-1), {"cmap": "magma", "vmin": 0}),
    ]
    figure = new_figure((3.2 * len(panels), 3.8), "constrained")
    axes = list(figure.subplots(1, len(panels)))
    for ax, (name, values, look) in zip(axes, panels, strict=True):
        drawn = ax.imshow(values, interpolation="nearest", **look)
        ax.set(xticks=[], yticks=[])
        ax.set_title(name, fontsize=11)
        if look.get("cmap") == "magma":
            figure.colorbar(drawn, ax=ax, location="bottom")
        elif name == "median class":  # one bar below label and median
            bar = figure.colorbar(drawn, ax=axes[-4:-2], location="bottom", ticks=range(n_classes))
            bar.ax.set_xticklabels(classes or [str(k) for k in range(n_classes)])
    if title:
        figure.suptitle(title)
    return figure


def compared_classes(
    labels: npt.NDArray[Any], probs: npt.NDArray[Any], **options: Any
) -> dict[str, npt.NDArray[Any] | float]:
    """Return what a comparison shows: the class, the mean class, their distance, and the std of the class."""
    classes = np.arange(probs.shape[-1])
    mean = probs.astype(np.float64) @ classes
    std = np.sqrt(np.maximum(probs.astype(np.float64) @ np.square(classes) - np.square(mean), 0.0))
    return {
        "target": labels,
        "prediction": mean,
        "error": np.abs(mean - labels),
        "uncertainty": std,
        "scale": 1.0,
    }
