"""Maps of the same cases as predicted by every method, on one color scale: MeRCI (2018), figures 4 and 5."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs.predictions import Case, case_count
from uq_tracking.runs.read import LoggedRun
from uq_tracking.tasks import task_of
from uq_tracking.tracking.cases import DrawnCases, Maps, choose_cases

AUTO_CASES = 2
COMPARED = "uncertainty"
"""Name of the panel whose parts are compared."""

T = TypeVar("T")


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

    def __post_init__(self) -> None:
        if set(self.scales) not in ({"value", "error"}, {"error", "entropy"}):
            raise ValueError("unknown color scales")


@dataclass(frozen=True)
class _Seen:
    """A case of one run, reduced to the size of a picture."""

    run: ScoredRun
    target: npt.NDArray[Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    """``prediction``, ``error`` and ``uncertainty``."""
    means: Mapping[str, float]
    """``mean_error`` and ``mean_uncertainty``."""
    scale: float | None
    image: bytes | None


def map_cases(groups: Mapping[str, Sequence[ScoredRun]], maps: Maps) -> tuple[tuple[MapCase, ...], list[str]]:
    """Draw the chosen cases of one run per method; also return which methods lack them and why.

    Predictions are read only if the cases that the runs drew do not suffice, and held one method at a time. Raises
    SettingsError if maps are requested by number or index, but no run stored any, the predictions are not spatial, or
    have no such case.
    """
    problems: list[str] = []
    task = next((run.report.task for runs in groups.values() for run in runs), "")
    if COMPARED not in plugins.maps(task) or plugins.maps(task)[COMPARED].compared is None:
        return (), problems
    seen = {method: _drawn(runs, problems) for method, runs in groups.items()}
    numbers = _completed(groups, maps, seen, problems)
    for method, cases in seen.items():
        lacking = [str(number) for number in numbers if number not in cases]
        if cases and lacking:
            problems.append(f"No maps of {method} for {', '.join(lacking)}: it stored only other cases.")
    found = {number: [cases[number] for cases in seen.values() if number in cases] for number in numbers}
    made = tuple(_case(str(number), items, problems) for number, items in found.items() if items)
    if maps != "auto" and not made:
        raise SettingsError(f"maps={maps!r}, but no run stored drawable predictions")
    return made, list(dict.fromkeys(problems)) if made else []


def _seen(run: ScoredRun, case: Case) -> _Seen:
    from uq_tracking.figures.compared import image_png, reduced, reduced_classes

    compared = plugins.named(plugins.maps(run.report.task)[COMPARED].compared or "")
    shown = compared(*case.arrays.values(), **task_of(run.report).map_options(run.report))
    shrink = reduced_classes if shown["scale"] is None else reduced
    known, image = np.isfinite(shown["error"]), None
    arrays: dict[str, npt.NDArray[Any]] = {name: reduced(shown[name]) for name in ("error", "uncertainty")}
    means = {f"mean_{name}": float(shown[name][known].mean()) if known.any() else 0.0 for name in arrays}
    if case.image is not None:
        with suppress(ShapeError):  # a file may hold anything; single maps show why
            image = image_png(case.image)
    arrays["prediction"] = shrink(shown["prediction"])
    return _Seen(run, shrink(shown["target"]), arrays, means, shown["scale"], image)


def _case(name: str, items: Sequence[_Seen], problems: list[str]) -> MapCase:
    """Draw the panels of all runs with the target of the first one on common scales."""
    from uq_tracking.figures.compared import class_png, color_stops, map_png
    from uq_tracking.figures.maps import class_legend, limits_of

    first = items[0]
    same = [item for item in items if _is_same_target(item, first)]
    problems += [
        f"No map of {item.run.method}, case {name}: its target differs from that of {first.run.label}"
        f"{', or is stored at another resolution' * (item.target.shape != first.target.shape)}."
        for item in items
        if item not in same
    ]
    classes: list[tuple[str, str]] = []
    if first.scale is None:
        entropies = np.concatenate([item.arrays["uncertainty"].ravel() for item in same])
        limits = {"error": (0.0, 1.0), "entropy": limits_of([entropies], "error")}
        names = task_of(first.run.report).map_options(first.run.report)["classes"]
        classes = class_legend([first.target, *(item.arrays["prediction"] for item in same)], names)
    else:
        errors = np.concatenate([item.arrays["error"].ravel() for item in same])
        limits = {"value": limits_of([first.target], "value"), "error": limits_of([errors], "error")}

    def picture(values: npt.NDArray[Any], kind: str) -> bytes:
        return map_png(values, limits[kind], kind) if kind in limits else class_png(values)

    def panel(item: _Seen) -> MapPanel:
        shown: dict[str, Any] = {name: picture(item.arrays[name], kind) for name, kind in kinds.items()}
        shown |= item.means
        return MapPanel(item.run.method, item.run.label, scale=item.scale, **shown)

    kinds = {
        "prediction": "value",
        "error": "error",
        "uncertainty": "entropy" if "entropy" in limits else "error",
    }
    height, width = first.target.shape
    return MapCase(
        name=name,
        shape=(height, width),
        image=next((item.image for item in items if item.image is not None), None),
        target=picture(first.target, "value"),
        panels=tuple(map(panel, same)),
        scales={kind: ColorScale(*ends, tuple(color_stops(kind))) for kind, ends in limits.items()},
        classes=tuple(classes),
    )


def _is_same_target(one: _Seen, other: _Seen) -> bool:
    """True if two runs have the same target, or a float32 copy of it."""
    if one.target.shape != other.target.shape:
        return False
    rounding = np.finfo(np.float32).eps * np.abs(one.target).max(initial=0, where=np.isfinite(one.target))
    return np.allclose(one.target, other.target, rtol=0, atol=float(rounding), equal_nan=True)


def _drawn(runs: Sequence[ScoredRun], problems: list[str]) -> dict[int, _Seen]:
    """Read the cases of the first run of a method that drew any."""
    for run, drawn in _stored(runs, LoggedRun.drawn, problems):
        if drawn.cases:
            return {number: _seen(run, case) for number, case in drawn.within().cases.items()}
    return {}


def _completed(
    groups: Mapping[str, Sequence[ScoredRun]],
    maps: Maps,
    seen: Mapping[str, dict[int, _Seen]],
    problems: list[str],
) -> list[int]:
    """Add the cases that were not drawn to ``seen``, from predictions; return the numbers of the chosen cases."""
    drawn = [set(cases) for cases in seen.values() if cases]
    common = sorted(set.intersection(*drawn)) if drawn else []
    numbers = common[:AUTO_CASES] if maps == "auto" and common else None
    shape: tuple[int, ...] | None = None
    for method, runs in groups.items():
        if numbers is not None and set(numbers) <= seen[method].keys():
            continue
        known = len(problems)
        stored = next(_stored(runs, LoggedRun.predictions, problems), None)
        if stored is None:
            if not seen[method] and len(problems) == known:
                problems.append(f"No maps of {method}: it stored no predictions.")
            continue
        run, data = stored
        if numbers is None:
            shape = data.shape
            numbers = choose_cases(shape, maps)[: AUTO_CASES if maps == "auto" else None]
        has_them = not numbers or (len(data.shape) > 1 and max(numbers) < case_count(data.shape))
        if data.shape != (shape or data.shape) or not has_them:
            other = f", not {shape}" if shape else ""
            problems.append(f"No maps of {method}: its predictions have shape {data.shape}{other}.")
            continue
        wanted = {number: Case({}) for number in set(numbers) - seen[method].keys()}
        for number, case in DrawnCases(wanted).of(data).within().cases.items():
            seen[method][number] = _seen(run, case)
    if numbers is not None:
        return numbers
    if isinstance(maps, Sequence) and not isinstance(maps, str):  # no predictions tell how many there are
        return [int(number) for number in maps]
    return common if maps is True or isinstance(maps, str) else common[: int(maps)]


def _stored(
    runs: Sequence[ScoredRun], read: Callable[[LoggedRun], T], problems: list[str]
) -> Iterator[tuple[ScoredRun, T]]:
    """Read one file of each run that has it; a damaged one or a failing tracker costs only the maps."""
    for run in runs:
        try:
            if run.logged is not None:
                yield run, read(run.logged)
        except FileNotFoundError:
            continue
        except Exception as error:
            problems.append(f"Maps of {run.method}: {type(error).__name__}: {error}.")
