"""The maps of one 2-D prediction: truth, prediction, error, uncertainty, and where they disagree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.figures import panels, style
from uq_tracking.figures.panels import Limits, Panel, Scale
from uq_tracking.figures.style import FloatArray, plain_texts, readable, text_width
from uq_tracking.formatting import axis_label, one_line, shorten

Values = npt.NDArray[Any]

TIMES = "\N{MULTIPLICATION SIGN}"
PERCENTILES: dict[Scale, tuple[float, float]] = {
    "value": (0.5, 99.5),
    "error": (0.0, 99.0),
    "part": (0.0, 99.5),
}
DEFAULT_LIMITS = {"image": (0.0, 1.0), **dict.fromkeys(PERCENTILES, (0.0, 1.0))}
LABELS: dict[Scale, str] = {"error": "error", "value": "value", "part": "std"}
MOST_PIXELS = 1 << 22
"""Pixels that determine the color limits of a case."""
MOST_NAMED, MOST_LETTERS = 9, 16
"""Maximum number of classes in the legend, where the largest ones are named, and letters of a name."""
BASE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7A5195", "#8C564B")
"""Colors of the first classes: Okabe and Ito's plus two more."""
COMPARED = ("target", "prediction", "error", "uncertainty", "scale")
"""What a comparison shows of a case."""
OUTCOMES = {"found": "#A6A6A6", "missed": "#6A00A8", "false": "#E3120B"}
"""Colors of the pixels where a class is predicted and true, true only, and predicted only."""


def uncertainty_map(
    target: npt.ArrayLike,
    mean: npt.ArrayLike,
    std: npt.ArrayLike,
    *,
    scale: float,
    epistemic: npt.ArrayLike | None = None,
    aleatoric: npt.ArrayLike | None = None,
    unit: str | None = None,
    image: npt.ArrayLike | None = None,
    title: str | None = None,
    limits: Limits | None = None,
) -> Figure:
    """Draw one 2-D case: the absolute error beside the rescaled std, and the target beside the prediction.

    Target and prediction share a color scale, as do the absolute error and ``scale * std``: a useful uncertainty
    looks like the error beside it, bright where the error is large and dark elsewhere. Pixels without truth are
    hatched; a color bar has a pointed end if values lie beyond its limits. Maps with more pixels than a panel are
    reduced by block means.

    Parameters
    ----------
    target : array, shape (height, width)
        Truth in the target's unit; a non-finite pixel has no ground truth.
    mean, std : array, shape (height, width)
        Prediction and its standard deviation.
    scale : float
        Factor on ``std``, usually MeRCI's lambda, which makes the rescaled std cover a given share of the errors.
    epistemic, aleatoric : array, shape (height, width), optional
        Parts of the std, if known.
    unit : str, optional
        Unit of the target.
    image : array, shape (h, w) or (h, w, 1, 3 or 4), optional
        The model's input, drawn first; of any resolution.
    title : str, optional
        Title of the whole figure, for instance the case's name.
    limits : dict of (low, high), optional
        Color limits of ``value``, ``error`` and ``part``; by default those of this case.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ShapeError
        The maps are not 2-D and of equal shape, or the image is not a picture.
    SettingsError
        ``scale`` is not a finite number >= 0.

    References
    ----------
    .. [1] MeRCI, 2018, fig. 4 and eq. 8.
    """
    arrays = [panels.plain(array) for array in (target, mean, std)]
    parts = {"epistemic": epistemic, "aleatoric": aleatoric}
    known = {name: panels.plain(part) for name, part in parts.items() if part is not None}
    shapes = [array.shape for array in (*arrays, *known.values())]
    if len(shapes[0]) != 2 or len(set(shapes)) > 1 or 0 in shapes[0]:
        raise ShapeError(
            f"a map needs target, mean and std of equal 2-D shape, got {', '.join(map(str, shapes[:-1]))} and "
            f"{shapes[-1]}; pass one case at a time"
        )
    if not (np.isfinite(scale) and scale >= 0):
        raise SettingsError(
            f"scale is {scale}; pass a finite factor >= 0 for the std, such as MeRCI's lambda or 1.0"
        )
    pictures = [] if image is None else [panels.picture(panels.plain(image))]
    maps = _panels(arrays, known, float(scale))
    used = DEFAULT_LIMITS | (_own_limits(arrays, known, float(scale)) if limits is None else dict(limits))
    layout = panels.layout_for(shapes[0], [*pictures, *maps], used)
    if layout.rows == 2 and shapes[0][0] >= 0.45 * shapes[0][1]:  # the parts of the std right of both rows
        maps = [maps[place] for place in (0, 1, 4, 2, 3, 5) if place < len(maps)]
    figure = panels.framed(layout, title)
    drawn = panels.draw_panels(figure, [*pictures, *maps], used, layout)
    for name, label in LABELS.items():
        rows: dict[float, list[panels.Drawn]] = {}
        for ax, shown in drawn.get(name, []):
            rows.setdefault(round(ax.get_position().y0, 3), []).append((ax, shown))
        for row in rows.values():
            panels.color_bar(figure, row, axis_label(label, "target", unit), layout)
    return plain_texts(figure)


def _panels(arrays: Sequence[Values], parts: Mapping[str, Values], scale: float) -> list[Panel]:
    """Return the panels, with those that share colors side by side."""
    found = panels.reduced(*arrays, *parts.values(), of=lambda t, m, *more: [t, m, np.abs(m - t), *more])
    (target, _), (mean, _), (error, error_mean), (std, std_mean), *rest = found
    stated = scale * std_mean
    return [
        Panel(f"error, mean {panels.told_mean(error_mean)}", error, "error"),
        Panel(f"{readable(scale)} {TIMES} std, mean {panels.told_mean(stated)}", scale * std, "error"),
        Panel("target", target, "value"),
        Panel("prediction", mean, "value"),
        *(Panel(f"{name} std", part, "part") for name, (part, _) in zip(parts, rest, strict=True)),
    ]


def _own_limits(
    arrays: Sequence[Values], parts: Mapping[str, Values], scale: float
) -> dict[str, tuple[float, float]]:
    """Return color limits of one case, for each scale that it uses: for values, those of the target if it has any.

    They are those of single pixels, which vary more than the means that are drawn; of many pixels, some will do.
    """
    step = max(1, math.isqrt(arrays[0].size // MOST_PIXELS))
    target, mean, std, *known = (
        array[::step, ::step].astype(np.float64) for array in (*arrays, *parts.values())
    )
    with np.errstate(invalid="ignore", over="ignore"):
        error, stated = np.abs(mean - target), scale * std
    shown: dict[Scale, list[FloatArray]] = {"value": [target, mean], "error": [error, stated], "part": known}
    return {
        name: limits_of(maps, name)
        for name, maps in shown.items()
        if any(np.isfinite(values).any() for values in maps)
    }


def common_limits(cases: Iterable[Any], *, scale: float, **options: Any) -> dict[str, tuple[float, float]]:
    """Return color limits shared by several cases, with ``scale`` on their std: they contain the limits of each."""
    found: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        arrays = [panels.plain(array) for array in case.arrays.values()]
        parts = {name: panels.plain(part) for name, part in case.parts.items()}
        for name, pair in _own_limits(arrays, parts, float(scale)).items():
            found.setdefault(name, []).append(pair)
    return {name: (min(a for a, _ in pairs), max(b for _, b in pairs)) for name, pairs in found.items()}


def limits_of(maps: Iterable[FloatArray], scale: Scale) -> tuple[float, float]:
    """Return where the colors of a scale should end, by the first map whose finite values determine that."""
    for values in maps:
        seen = values[np.isfinite(values)]
        largest = float(seen.max(initial=-np.inf))
        if len(seen) and (scale == "value" or largest > 0):
            low, high = np.percentile(seen, PERCENTILES[scale], overwrite_input=True).tolist()
            return panels.distinct_limits(low, high) if scale == "value" else (0.0, high or largest)
    return 0.0, 1.0


def class_map(
    labels: npt.ArrayLike,
    probs: npt.ArrayLike,
    *,
    classes: Sequence[str] | None = None,
    of: int | str | None = None,
    image: npt.ArrayLike | None = None,
    title: str | None = None,
) -> Figure:
    """Draw one 2-D case: wrong pixels beside the predictive entropy, and true classes beside predicted ones.

    With ``of``, where that class is found, missed or falsely predicted, beside its probability, instead of all wrong
    pixels and the entropy.

    A useful uncertainty looks like the error: bright where the prediction is wrong, dark elsewhere. Entropy is shown
    from 0 to its 99th percentile. Maps with more pixels than a panel are reduced: classes by subsampling, the others
    by block means.

    Parameters
    ----------
    labels : int array, shape (height, width)
        True classes; negative values mean no label, and are drawn grey.
    probs : array, shape (height, width, C)
        Probabilities of the classes.
    classes : sequence of str, optional
        Names of the classes, for the legend.
    of : int or str, optional
        Number or name of a single class to judge.
    image : array, shape (h, w) or (h, w, 1, 3 or 4), optional
        The model's input, drawn first; of any resolution.
    title : str, optional
        Title of the whole figure, such as the name of the case.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ShapeError
        Labels and probabilities do not match, or the image is not a picture.
    SettingsError
        The class is unknown.
    """
    truth, p = np.asarray(labels), np.asarray(probs)
    if truth.ndim != 2 or p.shape[:-1] != truth.shape or 0 in p.shape:
        raise ShapeError(
            f"a map needs labels (height, width) and probs (height, width, C), got {truth.shape} and {p.shape}; "
            "pass one case at a time"
        )
    predicted, colors = p.argmax(axis=-1), class_colors(p.shape[-1])
    if of is None:
        wrong = np.where(truth >= 0, truth != predicted, np.nan)
        (error, share), (uncertain, mean) = panels.reduced(wrong, entropy_of(p))
        share_text = f"{readable(100 * share)} % wrong" if math.isfinite(share) else "undefined"
        first = Panel(f"error, {share_text}", error, "error")
        second = Panel(f"entropy, mean {panels.told_mean(mean)}", uncertain, "entropy")
        unit = "entropy [nats]"
        highest = float(np.percentile(uncertain.compressed(), 99) or uncertain.max() or 1.0)
        outcomes: list[tuple[str, str]] = []
    else:
        number = known_class(of, classes, p.shape[-1])
        name = shorten(name_of(number, classes), MOST_LETTERS)
        outcome = (truth == number) + 2 * (predicted == number)
        ((uncertain, _),) = panels.reduced(p[..., number])
        shades = to_rgba_array(["white", OUTCOMES["missed"], OUTCOMES["false"], OUTCOMES["found"]])[:, :3]
        first = Panel(f"{name}: where wrong", _colored(np.where(truth < 0, -1, outcome), shades), "class")
        second, unit, highest = Panel(f"probability of {name}", uncertain, "entropy"), "probability", 1.0
        outcomes = list(OUTCOMES.items())
    maps = [
        *([] if image is None else [panels.picture(panels.plain(image))]),
        first,
        second,
        Panel("label", _colored(truth, colors), "class"),
        Panel("prediction", _colored(predicted, colors), "class"),
    ]
    limits = {"image": (0.0, 1.0), "class": (0.0, 1.0), "error": (0.0, 1.0), "entropy": (0.0, highest)}
    layout = panels.layout_for(truth.shape, maps, limits)
    beside = layout.rows == 2 and layout.bars == "right"  # room for the legend to the right of the prediction
    handles = [
        Patch(color=color, label=shorten(name, MOST_LETTERS))
        for name, color in (*class_legend([truth, predicted], classes, MOST_NAMED), *outcomes)
    ]
    right, below = (_legend_room(handles, layout), 0.0) if beside else (0.0, 0.6)
    figure = panels.framed(layout, title, right, below)
    drawn = panels.draw_panels(figure, maps, limits, layout, below)
    panels.color_bar(figure, drawn["entropy"], unit, layout)
    look: dict[str, Any] = {"fontsize": style.TICKS - 1, "frameon": False, "labelcolor": "black"}
    look |= {"handlelength": 1.2, "handletextpad": 0.5, "borderaxespad": 0.0, "labelspacing": 0.35}
    if beside:
        prediction, _ = drawn["class"][-1]
        prediction.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.04, 1.0), **look)
    else:
        figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.01), ncols=4, **look)
    return plain_texts(figure)


def known_class(of: int | str, names: Sequence[str] | None, n_classes: int) -> int:
    """Return the number of a class, given by number or name; SettingsError if there is none."""
    known: list[int | str] = [*range(n_classes), *(names or ())]
    if of not in known or isinstance(of, bool):
        raise SettingsError(f"of={of!r} is not a class; choose from {', '.join(map(repr, known[-20:]))}")
    return known.index(of) % n_classes


def compared_values(
    target: Values, mean: Values, std: Values, *, scale: float, **options: Any
) -> dict[str, Any]:
    """Return what a comparison shows: target, mean, absolute error, and the std on the error's scale."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(mean.astype(np.float64) - target)
        parts = (target, mean, error, scale * std.astype(np.float64), float(scale))
    return dict(zip(COMPARED, parts, strict=True))


def compared_classes(labels: Values, probs: Values, **options: Any) -> dict[str, Any]:
    """Return what a comparison shows: true and predicted classes, where they differ, and the entropy."""
    predicted = probs.argmax(axis=-1)
    error = np.where(labels >= 0, labels != predicted, np.nan)
    return dict(zip(COMPARED, (labels, predicted, error, entropy_of(probs), None), strict=True))


def entropy_of(probs: npt.NDArray[Any]) -> FloatArray:
    """Return the predictive entropy in nats, row by row so that a large case needs little memory."""
    entropy = np.empty(probs.shape[:-1])
    for row, p in zip(entropy, probs, strict=True):
        p = p.astype(np.float64)
        row[:] = -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)
    return np.maximum(entropy, 0.0)


def class_colors(n_classes: int) -> FloatArray:
    """Return the color of each class, shape (C, 3)."""
    more = [colormaps[name](k)[:3] for name in ("tab20b", "tab20c") for k in range(20)]
    table = np.concatenate([to_rgba_array(BASE)[:, :3], more])
    return np.asarray(table[np.arange(n_classes) % len(table)])


def _colored(classes: npt.NDArray[Any], colors: FloatArray) -> panels.Masked:
    """Return colors of the classes at reduced resolution, masked where there is no class."""
    step = max(1, max(classes.shape) // panels.shown_pixels(classes.shape[0] / classes.shape[1]))
    picked = classes[::step, ::step]
    missing = np.repeat((picked < 0)[..., None], 3, axis=-1)
    return np.ma.masked_array(colors[np.maximum(picked, 0)], mask=missing)


def class_legend(
    maps: Sequence[npt.NDArray[Any]], names: Sequence[str] | None, most: int | None = None
) -> list[tuple[str, str]]:
    """Return name and color of the classes in these maps, in order, and of pixels without a class.

    Of more than ``most`` classes only the largest are named.
    """
    count = np.bincount(np.concatenate([each[each >= 0] for each in maps]))
    shown = [k for k in np.argsort(-count, kind="stable").tolist() if count[k]]
    kept = sorted(shown if most is None or len(shown) <= most + 1 else shown[:most])
    colors = class_colors(len(count))
    legend = [(name_of(k, names), to_hex(colors[k])) for k in kept]
    if len(kept) < len(shown):
        legend.append((f"and {len(shown) - len(kept)} more", "white"))
    return legend + [("no label", style.NO_DATA.lower())] * any(bool((each < 0).any()) for each in maps)


def name_of(number: int, names: Sequence[str] | None) -> str:
    """Return the name of a class on one line."""
    return one_line(names[number]) if names else f"class {number}"


def _legend_room(handles: Sequence[Patch], layout: panels.Layout) -> float:
    """Return how much wider, in inches, a figure must be for a legend to the right of its last panel."""
    widest = max(text_width(str(handle.get_label()), style.TICKS - 1) for handle in handles)
    left, _, across, _ = layout.places[-1]
    return max(0.5, (widest + 2 * style.TICKS) / 72 + 0.06 * across - (layout.size[0] - left - across))
