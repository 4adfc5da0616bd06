"""The panel of maps for one 2-D case of class predictions: labels, prediction, error and predictive entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.figures import style
from uq_tracking.figures.panels import (
    Layout,
    Masked,
    Panel,
    color_bar,
    layout_for,
    picture,
    plain,
    reduced,
    show,
    shown_pixels,
    title_over,
    told_mean,
)
from uq_tracking.figures.style import new_figure, plain_texts, readable
from uq_tracking.formatting import one_line, shorten

FloatArray = npt.NDArray[np.float64]
MOST_NAMED = 9
"""Maximum number of classes in the legend; the largest ones are named."""
BASE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7A5195", "#8C564B")
"""Colors of the first classes: Okabe and Ito's plus two more."""


def class_map(
    labels: npt.ArrayLike,
    probs: npt.ArrayLike,
    *,
    class_names: Sequence[str] | None = None,
    image: npt.ArrayLike | None = None,
    title: str | None = None,
    origin: Literal["upper", "lower"] = "upper",
) -> Figure:
    """Draw one 2-D case: true classes, predicted classes, where they differ, and the predictive entropy.

    A useful uncertainty looks like the error: bright where the prediction is wrong, dark elsewhere. Entropy is shown
    from 0 to its 99th percentile. Maps with more pixels than a panel are reduced: classes by subsampling, the others
    by block means.

    Parameters
    ----------
    labels : int array, shape (height, width)
        True classes; negative values mean no label, and are drawn grey.
    probs : array, shape (height, width, C)
        Probabilities of the classes.
    class_names : sequence of str, optional
        Names of the classes, for the legend.
    image : array, shape (h, w) or (h, w, 1, 3 or 4), optional
        The model's input, drawn first; of any resolution.
    title : str, optional
        Title of the whole figure, such as the name of the case.
    origin : {"upper", "lower"}
        Where the first row is drawn.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ShapeError
        Labels and probabilities do not match, or the image is not a picture.
    SettingsError
        The origin is unknown.
    """
    truth, p = np.asarray(labels), np.asarray(probs)
    if truth.ndim != 2 or p.shape[:-1] != truth.shape or 0 in p.shape:
        raise ShapeError(
            f"a map needs labels (height, width) and probs (height, width, C), got {truth.shape} and {p.shape}; "
            "pass one case at a time"
        )
    if origin not in ("upper", "lower"):
        raise SettingsError(f"origin is {origin!r}; pass 'upper' or 'lower'")
    predicted = p.argmax(axis=-1)
    panels = [] if image is None else [picture(plain(image))]
    panels += _panels(truth, predicted, entropy_of(p), p.shape[-1])
    layout = layout_for(truth.shape[0] / truth.shape[1], len(panels), with_image=image is not None)
    figure = _draw(panels, layout, origin)
    _legend(figure, layout, shown_classes(truth, predicted), class_names, missing=bool((truth < 0).any()))
    title_over(figure, title)
    return plain_texts(figure)


def entropy_of(probs: npt.NDArray[Any]) -> FloatArray:
    """Predictive entropy in nats, row by row so that a large case needs little memory."""
    entropy = np.empty(probs.shape[:-1])
    for row, p in zip(entropy, probs, strict=True):
        p = p.astype(np.float64)
        row[:] = -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)
    return np.maximum(entropy, 0.0)


def class_colors(n_classes: int) -> FloatArray:
    """Color of each class, shape (C, 3)."""
    first = [[int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)] for color in BASE]
    more = [colormaps[name](k)[:3] for name in ("tab20b", "tab20c") for k in range(20)]
    table = np.asarray(first + more)
    return np.asarray(table[np.arange(n_classes) % len(table)])


def _panels(
    truth: npt.NDArray[Any], predicted: npt.NDArray[Any], entropy: FloatArray, n_classes: int
) -> list[Panel]:
    wrong = np.where(truth >= 0, truth != predicted, np.nan)
    error = reduced(lambda values: values, wrong)[0]
    uncertain, mean = reduced(lambda values: values, entropy)
    share = f"{readable(100 * float(np.nanmean(wrong)))} % wrong" if (truth >= 0).any() else "undefined"
    return [
        Panel("label", _colored(truth, n_classes), "class"),
        Panel("prediction", _colored(predicted, n_classes), "class"),
        Panel(f"error, {share}", error, "error"),
        Panel(f"entropy, mean {told_mean(mean)}", uncertain, "value"),
    ]


def _colored(classes: npt.NDArray[Any], n_classes: int) -> Masked:
    """Colors of the classes at reduced resolution, masked where there is no class."""
    step = max(1, max(classes.shape) // shown_pixels(classes.shape[0] / classes.shape[1]))
    picked = classes[::step, ::step]
    missing = np.repeat((picked < 0)[..., None], 3, axis=-1)
    return np.ma.masked_array(class_colors(n_classes)[np.maximum(picked, 0)], mask=missing)


def _draw(panels: Sequence[Panel], layout: Layout, origin: Literal["upper", "lower"]) -> Figure:
    width, height = layout.size
    figure = new_figure(
        (width + 0.5, height) if _legend_beside(layout) else (width, height + 0.6), "constrained"
    )
    cells = figure.add_gridspec(layout.rows, layout.columns)
    shown: list[tuple[Axes, AxesImage]] = []
    for panel, (row, column) in zip(panels, layout.places(len(panels)), strict=True):
        ax = figure.add_subplot(cells[row, column])
        limits = (0.0, _highest(panel.values)) if panel.scale == "value" else (0.0, 1.0)
        shown.append((ax, show(ax, panel, limits, origin, layout.font)))
        if panel.scale == "value":
            shown[-1][1].set_cmap("magma")
    color_bar(figure, shown[-1:], "entropy [nats]", layout)
    return figure


def _highest(values: Masked) -> float:
    seen = values.compressed()
    return float(np.percentile(seen, 99) or seen.max() or 1.0)


def shown_classes(*maps: npt.NDArray[Any]) -> list[int]:
    """Classes that occur, largest first."""
    highest = max(int(m.max()) for m in maps)
    count = sum(np.bincount(m[m >= 0].ravel(), minlength=highest + 1) for m in maps)
    return [int(k) for k in np.argsort(-np.asarray(count), kind="stable") if np.asarray(count)[k]]


def _legend(
    figure: Figure, layout: Layout, classes: Sequence[int], names: Sequence[str] | None, *, missing: bool
) -> None:
    colors = class_colors(max(classes) + 1)
    kept = sorted(classes if len(classes) <= MOST_NAMED + 1 else classes[:MOST_NAMED])
    labels = [shorten(one_line(names[k] if names else f"class {k}"), 16) for k in kept]
    handles = [Patch(color=colors[k], label=label) for k, label in zip(kept, labels, strict=True)]
    if len(kept) < len(classes):
        handles.append(Patch(color="white", label=f"and {len(classes) - len(kept)} more"))
    if missing:
        handles.append(Patch(color=style.NO_DATA, label="no label"))
    look: dict[str, Any] = {"fontsize": layout.font - 1, "frameon": False, "labelcolor": "black"}
    look |= {"handlelength": 1.2, "handletextpad": 0.5, "borderaxespad": 0.0, "labelspacing": 0.35}
    if _legend_beside(layout):
        prediction = figure.axes[[ax.get_title() for ax in figure.axes].index("prediction")]
        prediction.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.04, 1.0), **look)
    else:
        figure.legend(handles=handles, loc="outside lower center", ncols=4, **look)


def _legend_beside(layout: Layout) -> bool:
    """Whether there is room for the legend to the right of the prediction."""
    return layout.rows == 2
