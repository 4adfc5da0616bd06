"""The panel of maps for one 2-D prediction: target, prediction, error, uncertainty, and where they disagree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.figures.panels import (
    Panel,
    Scale,
    all_reduced,
    color_bar,
    distinct_limits,
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
from uq_tracking.formatting import axis_label

Limits = Mapping[str, tuple[float, float]]

TIMES, PLUS_MINUS = "\N{MULTIPLICATION SIGN}", "\N{PLUS-MINUS SIGN}"
LARGEST_Z = 4.0
"""Standardized errors beyond this have the last color."""
PERCENTILES = {"value": (0.5, 99.5), "error": (0.0, 99.0), "std": (0.5, 99.5), "part": (0.0, 99.5)}
LABELS: dict[Scale, str] = {"value": "value", "error": "error", "std": "std", "part": "std", "z": "z"}


def uncertainty_map(
    target: npt.ArrayLike,
    mean: npt.ArrayLike,
    std: npt.ArrayLike,
    *,
    scale: float,
    alpha: float = 0.95,
    interval: float | None = NormalDist().inv_cdf(0.975),
    epistemic: npt.ArrayLike | None = None,
    aleatoric: npt.ArrayLike | None = None,
    unit: str | None = None,
    image: npt.ArrayLike | None = None,
    title: str | None = None,
    limits: Limits | None = None,
    origin: Literal["upper", "lower"] = "upper",
) -> Figure:
    """Draw one 2-D case: target, prediction, error, uncertainty, and the error in units of the uncertainty.

    Target and prediction share a color scale, as do the absolute error and ``scale * std``: a useful uncertainty
    looks like the error, bright where the error is large and dark elsewhere. The std itself has its own colors, and
    z = (target
    - prediction) / std has a diverging scale: where it is deep red or blue, the truth lies outside the 95 % interval.
    Pixels without ground truth are hatched; a color bar has a pointed end if values lie beyond its limits. Maps with
    more pixels than a panel are reduced by block means.

    Parameters
    ----------
    target : array, shape (height, width)
        Truth in the target's unit; a non-finite pixel has no ground truth.
    mean, std : array, shape (height, width)
        Prediction and its standard deviation.
    scale : float
        Factor on ``std``, usually MeRCI's lambda, which makes the rescaled std cover ``alpha`` of the errors.
    alpha : float
        The share of the errors that ``scale * std`` covers.
    interval : float, optional
        Half-width of the 95 % interval in standard deviations, 1.96 for a Gaussian; None if there is none.
    epistemic, aleatoric : array, shape (height, width), optional
        Parts of the std, if known.
    unit : str, optional
        Unit of the target.
    image : array, shape (h, w) or (h, w, 1, 3 or 4), optional
        The model's input, drawn first; of any resolution.
    title : str, optional
        Title of the whole figure, for instance the case's name.
    limits : dict of (low, high), optional
        Color limits of ``value``, ``error``, ``std`` and ``part``; by default those of this case.
    origin : {"upper", "lower"}
        Where the first row is drawn.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ShapeError
        The maps are not 2-D and of equal shape, or the image is not a picture.
    SettingsError
        ``scale`` is not a finite number >= 0, or the origin is unknown.

    References
    ----------
    .. [1] MeRCI, 2018, fig. 4 and eq. 8.
    """
    arrays = [plain(array) for array in (target, mean, std)]
    parts = {"epistemic": epistemic, "aleatoric": aleatoric}
    known = {name: plain(part) for name, part in parts.items() if part is not None}
    _check([*arrays, *known.values()], scale, origin)
    panels = _panels(arrays, known, float(scale))
    given = dict(limits or {})
    if not {panel.scale for panel in panels} <= given.keys():
        given = _own_limits(arrays, known, float(scale)) | given
    panels.insert(5, _standardized(arrays[0], arrays[1], arrays[2], interval))
    first = [] if image is None else [picture(plain(image))]
    figure = _draw(first, panels, color_limits([]) | given, unit, origin, interval)
    title_over(figure, title, _explained(scale, alpha))
    return plain_texts(figure)


def _explained(scale: float, alpha: float) -> str:
    """What the factor on std means."""
    calibrated = (
        "" if alpha >= 1 else f"; a calibrated Gaussian needs {NormalDist().inv_cdf((1 + alpha) / 2):.2f}"
    )
    return (
        f"{readable(scale)} {TIMES} std is the std on the error's colors: stretched by lambda = {readable(scale)}, "
        f"it covers {100 * alpha:g} % of all errors{calibrated}. z = error / std. Hatched: no ground truth."
    )


def _check(arrays: Sequence[npt.NDArray[Any]], scale: float, origin: str) -> None:
    shapes = [array.shape for array in arrays]
    if len(shapes[0]) != 2 or len(set(shapes)) > 1 or 0 in shapes[0]:
        raise ShapeError(
            f"a map needs target, mean and std of equal 2-D shape, got {', '.join(map(str, shapes[:-1]))} and "
            f"{shapes[-1]}; pass one case at a time"
        )
    if not (np.isfinite(scale) and scale >= 0):
        raise SettingsError(
            f"scale is {scale}; pass a finite factor >= 0 for the std, such as MeRCI's lambda or 1.0"
        )
    if origin not in ("upper", "lower"):
        raise SettingsError(f"origin is {origin!r}; pass 'upper' or 'lower'")


def _panels(
    arrays: Sequence[npt.NDArray[Any]],
    parts: Mapping[str, npt.NDArray[Any]],
    scale: float,
) -> list[Panel]:
    """The panels in the target's unit, with those that share colors side by side."""
    (target, _), (mean, _), (own, own_mean), (error, error_mean), *rest = all_reduced(
        lambda t, m, s, *more: (t, m, s, np.abs(m - t), *more), *arrays, *parts.values()
    )
    return [
        Panel("target", target, "value"),
        Panel("prediction", mean, "value"),
        Panel(f"absolute error, mean {told_mean(error_mean)}", error, "error"),
        Panel(f"{readable(scale)} {TIMES} std, mean {told_mean(scale * own_mean)}", scale * own, "error"),
        Panel(f"std, mean {told_mean(own_mean)}", own, "std"),
        *(Panel(f"{name} std", part, "part") for name, (part, _) in zip(parts, rest, strict=True)),
    ]


def _own_limits(
    arrays: Sequence[npt.NDArray[Any]], parts: Mapping[str, npt.NDArray[Any]], scale: float
) -> dict[str, tuple[float, float]]:
    """Color limits of one case, for each scale that it uses.

    They are those of single pixels, which vary more than means; or of means if a scale's own pixels say nothing.
    """

    def picked(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        step = max(1, max(values.shape) // shown_pixels(values.shape[0] / values.shape[1]))
        return values[::step, ::step]

    panels = _panels(
        [picked(array) for array in arrays], {name: picked(part) for name, part in parts.items()}, scale
    )
    first = {panel.scale: panel for panel in reversed(panels)}.values()
    if not all(_tells(panel) for panel in first):
        means = _panels(arrays, parts, scale)
        panels = [panel for pair in zip(panels, means, strict=True) for panel in pair]
    there = {panel.scale for panel in panels if panel.values.count()}
    return {name: pair for name, pair in color_limits(panels).items() if name in there}


def _tells(panel: Panel) -> bool:
    """Whether its values determine where the colors should end."""
    known = panel.values.compressed()
    return len(known) > 0 and (panel.scale == "value" or known.max() > 0)


def _in_two_rows(panels: Sequence[Panel]) -> list[Panel]:
    """Truth, prediction and their disagreement above errors and uncertainties."""
    target, prediction, error, spread, std, z, *parts = panels
    return [target, prediction, z, *parts[:1], error, spread, std, *parts[1:]]


def _standardized(
    target: npt.NDArray[Any], mean: npt.NDArray[Any], std: npt.NDArray[Any], interval: float | None
) -> Panel:
    """The signed error in units of the std; the last color where a std of 0 is wrong."""

    def z(t: npt.NDArray[Any], m: npt.NDArray[Any], s: npt.NDArray[Any]) -> npt.NDArray[Any]:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(t == m, 0.0, (t - m) / s)
        return np.where(np.isfinite(t - m), np.clip(found, -2 * LARGEST_Z, 2 * LARGEST_Z), np.nan)

    if interval is None:
        return Panel("z", reduced(z, target, mean, std)[0], "z")
    limit = interval

    def and_outside(
        t: npt.NDArray[Any], m: npt.NDArray[Any], s: npt.NDArray[Any]
    ) -> Sequence[npt.NDArray[Any]]:
        found = z(t, m, s)
        return found, np.where(np.isfinite(t - m), 100.0 * (np.abs(found) > limit), np.nan)

    (values, _), (_, outside) = all_reduced(and_outside, target, mean, std)
    return Panel(f"z, {told_mean(outside)} % outside {PLUS_MINUS}{readable(limit)}", values, "z")


def common_limits(cases: Iterable[Any], *, scale: float, **options: Any) -> dict[str, tuple[float, float]]:
    """Color limits shared by several cases: those that contain the limits of each.

    Parameters
    ----------
    cases : iterable of Case
        With ``target``, ``mean`` and ``std``, and any known parts of the std.
    scale : float
        Factor on ``std``.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        arrays = [plain(array) for array in case.arrays.values()]
        parts = {name: plain(part) for name, part in case.parts.items()}
        for name, pair in _own_limits(arrays, parts, float(scale)).items():
            found.setdefault(name, []).append(pair)
    return {name: (min(a for a, _ in pairs), max(b for _, b in pairs)) for name, pairs in found.items()}


def color_limits(panels: Sequence[Panel]) -> dict[str, tuple[float, float]]:
    """Color limits of each scale: for values, those of the target; for errors, from 0."""
    limits = {"image": (0.0, 1.0), "z": (-LARGEST_Z, LARGEST_Z)}
    for scale, percentiles in PERCENTILES.items():
        same = [panel.values.compressed() for panel in panels if panel.scale == scale]
        seen = next(
            (values for values in same if len(values) and (scale == "value" or values.max() > 0)), None
        )
        if seen is None:
            limits[scale] = (0.0, 1.0)
            continue
        low, high = (float(limit) for limit in np.percentile(seen, percentiles))
        if scale in ("error", "part"):
            limits[scale] = (0.0, high or float(seen.max()))
        else:
            limits[scale] = distinct_limits(low, high)
    return limits


def _draw(
    first: Sequence[Panel],
    panels: Sequence[Panel],
    limits: Limits,
    unit: str | None,
    origin: Literal["upper", "lower"],
    interval: float | None,
) -> Figure:
    height, width = panels[-1].values.shape
    layout = layout_for(height / width, len(first) + len(panels), with_image=bool(first))
    panels = [*first, *(_in_two_rows(panels) if layout.rows == 2 else panels)]
    figure = new_figure(layout.size, "constrained")
    cells = figure.add_gridspec(layout.rows, layout.columns)
    drawn: dict[Scale, list[tuple[Axes, AxesImage]]] = {}
    for panel, (row, column) in zip(panels, layout.places(len(panels)), strict=True):
        ax = figure.add_subplot(cells[row, column])
        shown = show(ax, panel, limits[panel.scale], origin, layout.font)
        drawn.setdefault(panel.scale, []).append((ax, shown))
    marks = () if interval is None else (-LARGEST_Z, -interval, 0.0, interval, LARGEST_Z)
    for scale, label in LABELS.items():
        text = label if scale == "z" else axis_label(label, "target", unit)
        shared = drawn.get(scale, [])
        for panels_of_bar in [[one] for one in shared] if scale == "part" else [shared] if shared else []:
            color_bar(figure, panels_of_bar, text, layout, marks if scale == "z" else ())
    return figure
