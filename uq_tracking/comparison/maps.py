"""The same 2-D cases as predicted by every method, on one color scale: MeRCI (2018), figures 4 and 5."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.comparison.cases import same_cases
from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.errors import ShapeError
from uq_tracking.inputs.base import Case
from uq_tracking.tasks import CLASSIFICATION, REGRESSION
from uq_tracking.tracking.cases import Maps
from uq_tracking.typed import record

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ColorScale:
    """The values of the first and the last color, and evenly spaced colors from one to the other, as ``#rrggbb``."""

    low: float
    high: float
    colors: tuple[str, ...]


@dataclass(frozen=True)
class MapPanel:
    """One method's maps of a case, as PNG files.

    Attributes
    ----------
    method, label : str
        Method and label of the run that made the predictions.
    prediction, error, uncertainty : bytes
        Predicted mean, absolute error, and standard deviation times ``scale``; of classes, the predicted class, where
        it is wrong, and the entropy.
    scale : float or None
        MeRCI's lambda of the run: rescaled by it, the standard deviation covers alpha of the errors; None of classes.
    mean_error, mean_uncertainty : float
        Means over the case's pixels with a target, in the target's unit; of classes, the share of wrong pixels, and
        nats.
    """

    method: str
    label: str
    prediction: bytes
    error: bytes
    uncertainty: bytes
    scale: float | None
    mean_error: float
    mean_uncertainty: float


@dataclass(frozen=True)
class MapCase:
    """One case: the target, and every method's panel.

    Attributes
    ----------
    name : str
    shape : (int, int)
        Height and width of the pictures.
    image : bytes or None
        The model's input, of any shape, if a run stored it.
    target : bytes
    panels : tuple of MapPanel
    scales : dict of ColorScale
        Common to all methods: ``value`` of target and predictions, and ``error`` of errors and rescaled standard
        deviations; of classes, ``error`` and ``entropy``.
    classes : tuple of (str, str)
        Names and colors of the classes in target and predictions, in order; empty if values are predicted.
    """

    name: str
    shape: tuple[int, int]
    image: bytes | None
    target: bytes
    panels: tuple[MapPanel, ...]
    scales: Mapping[str, ColorScale] = field(hash=False)
    classes: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; pictures as base64."""
        panels = [{k: _plain(value) for k, value in vars(panel).items()} for panel in self.panels]
        scales = {name: vars(scale) for name, scale in self.scales.items()}
        return {**{k: _plain(value) for k, value in vars(self).items()}, "panels": panels, "scales": scales}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MapCase:
        """Inverse of ``to_dict``."""
        if set(values["scales"]) not in _SCALES:
            raise ValueError("unknown color scales")
        made = {
            "shape": tuple(values["shape"]),
            "image": None if values["image"] is None else base64.b64decode(values["image"]),
            "target": base64.b64decode(values["target"]),
            "panels": tuple(_panel_from_dict(panel) for panel in values["panels"]),
            "scales": {name: _scale_from_dict(scale) for name, scale in values["scales"].items()},
            "classes": tuple((str(name), str(color)) for name, color in values["classes"]),
        }
        return record(cls, {"name": values["name"], **made})


_SCALES = ({"value", "error"}, {"error", "entropy"})
_PICTURES = ("prediction", "error", "uncertainty")


def _panel_from_dict(values: Mapping[str, Any]) -> MapPanel:
    pictures = {name: base64.b64decode(values[name]) for name in _PICTURES}
    return record(MapPanel, {**values, **pictures})


def _scale_from_dict(values: Mapping[str, Any]) -> ColorScale:
    return record(ColorScale, {**values, "colors": tuple(map(str, values["colors"]))})


@dataclass(frozen=True)
class _Seen:
    """A case of one run, reduced to the size of a picture."""

    run: ScoredRun
    target: npt.NDArray[Any]
    prediction: npt.NDArray[Any]
    error: FloatArray
    uncertainty: FloatArray
    mean_error: float
    mean_uncertainty: float
    scale: float | None = None
    rounding: float = 0.0
    """Relative rounding error of the target's dtype; 0 for classes."""
    image: bytes | None = None


def map_cases(groups: Mapping[str, Sequence[ScoredRun]], maps: Maps) -> tuple[tuple[MapCase, ...], list[str]]:
    """Draw the chosen cases of one run per method; also return which methods lack them and why.

    Raises SettingsError as `same_cases` does.
    """
    cases, problems = same_cases(groups, maps, _seen)
    drawn = tuple(_drawn(str(number), items, problems) for number, items in cases.items())
    return drawn, list(dict.fromkeys(problems)) if drawn else []


def _seen(run: ScoredRun, case: Case) -> _Seen:
    from uq_tracking.figures.compared_maps import image_png

    see = _see_classes if run.report.task == CLASSIFICATION.name else _see_values
    image = None
    if case.image is not None:
        with suppress(ShapeError):  # a file may hold anything; single maps show why
            image = image_png(case.image)
    return replace(see(run, case.arrays), image=image)


def _see_values(run: ScoredRun, case: Mapping[str, Any]) -> _Seen:
    from uq_tracking.figures.compared_maps import reduced

    scale = REGRESSION.map_options(run.report)["scale"]
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(case["mean"].astype(np.float64) - case["target"])
        uncertainty = scale * case["std"].astype(np.float64)
    return _Seen(
        run,
        reduced(case["target"]),
        reduced(case["mean"]),
        reduced(error),
        reduced(uncertainty),
        *_means(error, uncertainty),
        scale=scale,
        rounding=float(np.finfo(case["target"].dtype).eps),
    )


def _see_classes(run: ScoredRun, case: Mapping[str, Any]) -> _Seen:
    from uq_tracking.figures.maps import entropy_of
    from uq_tracking.figures.compared_maps import reduced, reduced_classes

    labels, predicted, entropy = case["labels"], case["probs"].argmax(axis=-1), entropy_of(case["probs"])
    wrong = np.where(labels >= 0, labels != predicted, np.nan)
    return _Seen(
        run,
        reduced_classes(labels),
        reduced_classes(predicted),
        reduced(wrong),
        reduced(entropy),
        *_means(wrong, entropy),
    )


def _means(error: FloatArray, uncertainty: FloatArray) -> tuple[float, float]:
    """Means over the pixels with a target; 0 if there are none."""
    known = np.isfinite(error)
    return (float(error[known].mean()), float(uncertainty[known].mean())) if known.any() else (0.0, 0.0)


def _drawn(name: str, items: Sequence[_Seen], problems: list[str]) -> MapCase:
    first = items[0]
    same = [item for item in items if _is_same_target(item, first)]
    problems += [
        f"No map of {item.run.method}, case {name}: its target differs from that of {first.run.label}."
        for item in items
        if item not in same
    ]
    scales = _scales(same)
    height, width = first.target.shape
    return MapCase(
        name=name,
        shape=(height, width),
        image=next((item.image for item in items if item.image is not None), None),
        target=_picture(first.target, "value", scales),
        panels=tuple(_panel(item, scales) for item in same),
        scales=scales,
        classes=_classes(same),
    )


def _scales(items: Sequence[_Seen]) -> dict[str, ColorScale]:
    from uq_tracking.figures.compared_maps import color_stops, error_limits, value_limits

    if items[0].scale is None:
        limits = {"error": (0.0, 1.0), "entropy": error_limits(item.uncertainty for item in items)}
    else:
        limits = {"value": value_limits(items[0].target), "error": error_limits(item.error for item in items)}
    return {kind: ColorScale(*ends, tuple(color_stops(kind))) for kind, ends in limits.items()}


def _classes(items: Sequence[_Seen]) -> tuple[tuple[str, str], ...]:
    """The legend of the classes; empty for values."""
    from uq_tracking.figures.compared_maps import class_legend

    if items[0].scale is not None:
        return ()
    names = CLASSIFICATION.map_options(items[0].run.report)["class_names"]
    return tuple(class_legend([items[0].target, *(item.prediction for item in items)], names))


def _is_same_target(one: _Seen, other: _Seen) -> bool:
    """Whether two runs have the same target; float32 and float64 copies of it may differ by rounding."""
    if one.rounding == other.rounding or one.target.shape != other.target.shape:
        return np.array_equal(one.target, other.target, equal_nan=True)
    slack = max(one.rounding, other.rounding) * float(
        np.abs(one.target).max(initial=0, where=np.isfinite(one.target))
    )
    return np.allclose(one.target, other.target, rtol=0, atol=slack, equal_nan=True)


def _panel(item: _Seen, scales: Mapping[str, ColorScale]) -> MapPanel:
    return MapPanel(
        method=item.run.method,
        label=item.run.label,
        prediction=_picture(item.prediction, "value", scales),
        error=_picture(item.error, "error", scales),
        uncertainty=_picture(item.uncertainty, "entropy" if "entropy" in scales else "error", scales),
        scale=item.scale,
        mean_error=item.mean_error,
        mean_uncertainty=item.mean_uncertainty,
    )


def _picture(values: npt.NDArray[Any], kind: str, scales: Mapping[str, ColorScale]) -> bytes:
    """A map on its color scale; without one, of classes."""
    from uq_tracking.figures.compared_maps import class_png, map_png

    return (
        map_png(values, (scales[kind].low, scales[kind].high), kind) if kind in scales else class_png(values)
    )


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
