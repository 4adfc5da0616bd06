"""Curves of the same name overlaid, one line per run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from uq_tracking import plugins
from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.curves import Curve, FloatArray
from uq_tracking.curves.spec import is_overlaid, spec_of


@dataclass(frozen=True, eq=False)
class Line:
    """One run's curve."""

    label: str
    method: str
    x: FloatArray
    y: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    chance: tuple[FloatArray, FloatArray] | None = None
    """Ends of the band that contains each point of a calibrated run in 95 % of cases."""


@dataclass(frozen=True, eq=False)
class Overlay:
    """The curves of one name.

    Attributes
    ----------
    name, title, x_label, y_label : str
    lines : tuple of Line
    diagonal : bool
        Whether a perfect model lies on the diagonal.
    levels : tuple of float
        Heights of horizontal reference lines.
    y_limits : (float, float) or None
        The y range worth showing, if some points lie far beyond the others.
    labels : tuple of str
        What the points stand for, if x is only their number: labels of any run, which have the same x in all.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    diagonal: bool = False
    levels: tuple[float, ...] = field(default=())
    y_limits: tuple[float, float] | None = None
    labels: tuple[str, ...] = ()


def overlays(runs: Iterable[ScoredRun]) -> dict[str, Overlay]:
    """Return every curve that a run has, by name."""
    found: dict[str, list[tuple[ScoredRun, Curve]]] = {}
    for run in runs:
        for name, curve in run.report.curves.items():
            if is_overlaid(name, run.report.task) and {curve.x, curve.main} <= curve.columns.keys():
                found.setdefault(name, []).append((run, curve))
    task = next((curves[0][0].report.task for curves in found.values()), "regression")
    declared = [name for name in plugins.curves(task) if name in found]  # before others, in this order
    made = {name: _overlay(name, found[name]) for name in dict.fromkeys([*declared, *found])}
    return {name: overlay for name, overlay in made.items() if overlay.lines}


def _overlay(name: str, curves: Sequence[tuple[ScoredRun, Curve]]) -> Overlay:
    labels = _labels([curve for _, curve in curves])
    lines = tuple(line for run, curve in curves if (line := _line(run, curve, labels)) is not None)
    run, first = curves[0]
    spec = spec_of(name, run.report.task)
    reference = () if spec is None else spec.reference
    limits = None
    if spec is not None and spec.limits is not None and lines:
        limits = spec.limits(
            *(np.concatenate(values) for values in zip(*((one.x, one.y) for one in lines), strict=True))
        )
    return Overlay(
        name,
        first.title,
        first.x_label,
        first.y_label,
        lines,
        diagonal=reference == "diagonal",
        levels=() if reference == "diagonal" else reference,
        y_limits=limits,
        labels=labels,
    )


def _labels(curves: Sequence[Curve]) -> tuple[str, ...]:
    """Return the labels of all curves, if x only numbers them."""
    if any(curve.labels is None for curve in curves) or not any(map(_numbers_labels, curves)):
        return ()
    return tuple(sorted({name for curve in curves for name in curve.labels or ()}, key=_by_number))


def _by_number(label: str) -> tuple[float, str]:
    """Sort numbers in their order, before other labels."""
    try:
        return float(label), label
    except ValueError:
        return np.inf, label


def _numbers_labels(curve: Curve) -> bool:
    """True if x is the number of each label, not the label itself, such as a lead time."""
    try:
        return [float(label) for label in curve.labels or ()] != np.ravel(curve.columns[curve.x]).tolist()
    except ValueError:
        return True


def _line(run: ScoredRun, curve: Curve, labels: Sequence[str]) -> Line | None:
    """Return the points of a curve, or None if it is damaged or empty; a report's numbers are finite."""
    x, y = (np.ravel(curve.columns[column]) for column in (curve.x, curve.main))
    if labels:
        x = np.asarray([labels.index(label) for label in curve.labels or ()], dtype=float)
    if len(x) != len(y) or not len(x):
        return None
    ends = (np.ravel(curve.columns.get(end, ())) for end in ("low", "high", "chance_low", "chance_high"))
    low, high, *chance = (end if len(end) == len(y) else None for end in ends)
    band = None if chance[0] is None or chance[1] is None else (chance[0], chance[1])
    return Line(run.label, run.method, x, y, low, high, band)
