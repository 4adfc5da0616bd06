"""The same 2-D cases as predicted by every method, on one color scale: MeRCI (2018), figures 4 and 5."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.errors import SettingsError
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.base import case_place
from uq_tracking.tasks import REGRESSION
from uq_tracking.tracking.cases import Maps, choose_cases
from uq_tracking.typed import record

FloatArray = npt.NDArray[np.float64]

AUTO_CASES = 2


@dataclass(frozen=True)
class MapPanel:
    """One method's maps of a case, as PNG files.

    Attributes
    ----------
    method, label : str
        Method and label of the run that made the predictions.
    prediction, error, uncertainty : bytes
        Predicted mean, absolute error, and standard deviation times ``scale``.
    scale : float
        MeRCI's lambda of the run: rescaled by it, the standard deviation covers alpha of the errors.
    mean_error, mean_uncertainty : float
        Means over the case, in the target's unit.
    """

    method: str
    label: str
    prediction: bytes
    error: bytes
    uncertainty: bytes
    scale: float
    mean_error: float
    mean_uncertainty: float


@dataclass(frozen=True)
class MapCase:
    """One case: the target, and every method's panel.

    Errors and rescaled uncertainties of all methods share the color scale ``error_limits``; target and predictions
    share ``value_limits``.
    """

    name: str
    shape: tuple[int, int]
    target: bytes
    panels: tuple[MapPanel, ...]
    value_limits: tuple[float, float]
    error_limits: tuple[float, float]
    value_colors: tuple[str, ...]
    error_colors: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; pictures as base64."""
        panels = [{k: _plain(value) for k, value in vars(panel).items()} for panel in self.panels]
        return {**{k: _plain(value) for k, value in vars(self).items()}, "panels": panels}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MapCase:
        """Inverse of ``to_dict``."""
        ranges = {name: tuple(values[name]) for name in _TUPLES}
        target = base64.b64decode(values["target"])
        panels = tuple(_panel_from_dict(panel) for panel in values["panels"])
        return record(cls, {"name": values["name"], "target": target, "panels": panels, **ranges})


_TUPLES = ("shape", "value_limits", "error_limits", "value_colors", "error_colors")
_PICTURES = ("prediction", "error", "uncertainty")


def _panel_from_dict(values: Mapping[str, Any]) -> MapPanel:
    pictures = {name: base64.b64decode(values[name]) for name in _PICTURES}
    return record(MapPanel, {**values, **pictures})


@dataclass(frozen=True)
class _Seen:
    """A case of one run, reduced to the size of a picture."""

    run: ScoredRun
    name: str
    target: FloatArray
    mean: FloatArray
    error: FloatArray
    uncertainty: FloatArray
    scale: float
    mean_error: float
    mean_uncertainty: float
    rounding: float
    """Relative rounding error of the target's dtype."""


def map_cases(groups: Mapping[str, Sequence[ScoredRun]], maps: Maps) -> tuple[tuple[MapCase, ...], list[str]]:
    """Draw the chosen cases of one run per method; also return which methods lack them and why.

    Raises
    ------
    SettingsError
        Maps are requested by number or index, but the predictions are not spatial or have no such case.
    """
    problems: list[str] = []
    seen: dict[str, list[_Seen]] = {}
    shape: tuple[int, ...] | None = None
    for method, runs in groups.items():
        found = _predictions(runs, problems)
        if found is None:
            continue
        run, predictions = found
        if shape is None:
            shape = predictions.shape
        if predictions.shape != shape:
            problems.append(
                f"No maps of {method}: its predictions have shape {predictions.shape}, not {shape}."
            )
            continue
        for case in _cases(run, predictions, maps):
            seen.setdefault(case.name, []).append(case)
    if maps != "auto" and not seen:
        raise SettingsError(f"maps={maps!r}, but no run stored drawable predictions")
    drawn = tuple(_drawn(name, items, problems) for name, items in seen.items())
    return drawn, list(dict.fromkeys(problems)) if drawn else []


def _predictions(runs: Sequence[ScoredRun], problems: list[str]) -> tuple[ScoredRun, Predictions] | None:
    """The first run of a method whose predictions can be read."""
    reason = "it stored no predictions"
    for run in runs:
        if run.logged is None:
            continue
        try:
            return run, run.logged.predictions()
        except FileNotFoundError:
            continue
        except Exception as error:  # a damaged file or a failing tracker costs the maps, not the comparison
            reason = f"{type(error).__name__}: {error}"
    problems.append(f"No maps of {runs[0].method}: {reason}.")
    return None


def _cases(run: ScoredRun, predictions: Predictions, maps: Maps) -> Iterator[_Seen]:
    chosen = choose_cases(predictions.shape, maps)
    if maps == "auto":
        chosen = chosen[:AUTO_CASES]
    shape, scale = predictions.shape, REGRESSION.map_options(run.report)["scale"]
    for number in chosen:
        place = case_place(number, shape)
        yield _reduced(run, str(number), predictions.case(place).arrays, scale)


def _reduced(run: ScoredRun, name: str, case: Mapping[str, Any], scale: float) -> _Seen:
    from uq_tracking.figures.compared_maps import reduced

    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(case["mean"].astype(np.float64) - case["target"])
        uncertainty = scale * case["std"].astype(np.float64)
    known = np.isfinite(error)
    return _Seen(
        run,
        name,
        target=reduced(case["target"]),
        mean=reduced(case["mean"]),
        error=reduced(error),
        uncertainty=reduced(uncertainty),
        scale=scale,
        mean_error=float(error[known].mean()) if known.any() else 0.0,
        mean_uncertainty=float(uncertainty[known].mean()) if known.any() else 0.0,
        rounding=float(np.finfo(case["target"].dtype).eps),
    )


def _drawn(name: str, items: Sequence[_Seen], problems: list[str]) -> MapCase:
    from uq_tracking.figures import compared_maps

    first = items[0]
    same = [item for item in items if _is_same_target(item, first)]
    problems += [
        f"No map of {item.run.method}, case {name}: its target differs from that of {first.run.label}."
        for item in items
        if item not in same
    ]
    values = compared_maps.value_limits(first.target)
    errors = compared_maps.error_limits(item.error for item in same)
    height, width = first.target.shape
    return MapCase(
        name=name,
        shape=(height, width),
        target=compared_maps.map_png(first.target, values, "value"),
        panels=tuple(_panel(item, values, errors) for item in same),
        value_limits=values,
        error_limits=errors,
        value_colors=tuple(compared_maps.color_stops("value")),
        error_colors=tuple(compared_maps.color_stops("error")),
    )


def _is_same_target(one: _Seen, other: _Seen) -> bool:
    """Whether two runs have the same target; float32 and float64 copies of it may differ by rounding."""
    if one.rounding == other.rounding or one.target.shape != other.target.shape:
        return np.array_equal(one.target, other.target, equal_nan=True)
    slack = max(one.rounding, other.rounding) * float(
        np.abs(one.target).max(initial=0, where=np.isfinite(one.target))
    )
    return np.allclose(one.target, other.target, rtol=0, atol=slack, equal_nan=True)


def _panel(item: _Seen, values: tuple[float, float], errors: tuple[float, float]) -> MapPanel:
    from uq_tracking.figures.compared_maps import map_png

    return MapPanel(
        method=item.run.method,
        label=item.run.label,
        prediction=map_png(item.mean, values, "value"),
        error=map_png(item.error, errors, "error"),
        uncertainty=map_png(item.uncertainty, errors, "error"),
        scale=item.scale,
        mean_error=item.mean_error,
        mean_uncertainty=item.mean_uncertainty,
    )


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
