"""Curves of the same name laid over each other, one line per run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from uq_tracking.comparison.runs import NOT_OVERLAID, ScoredRun
from uq_tracking.curves import Curve

FloatArray = npt.NDArray[np.float64]

ORDER = (
    "sparsification_error_rmse",
    "sparsification_rmse",
    "calibration",
    "coverage_error",
    "reliability",
    "n_merci_by_alpha",
    "coverage",
    "pit_histogram",
    "sparsification_error_mae",
    "sparsification_mae",
)
"""The curves that tell most come first; curves that are not named here come last."""

DIAGONAL = frozenset({"calibration", "coverage", "reliability"})
LEVELS = {
    "sparsification_error_rmse": (0.0,),
    "sparsification_error_mae": (0.0,),
    "coverage_error": (0.0,),
    "pit_histogram": (1.0,),
    "n_merci_by_alpha": (0.0, 1.0),
}
"""Values at which a reference line helps: a perfect model, or MeRCI's oracle and constant."""


@dataclass(frozen=True, eq=False)
class Line:
    """One run's curve."""

    label: str
    method: str
    x: FloatArray
    y: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None


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
        Heights worth showing, where some points lie far beyond the others.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    diagonal: bool = False
    levels: tuple[float, ...] = field(default=())
    y_limits: tuple[float, float] | None = None


def overlays(runs: Iterable[ScoredRun]) -> dict[str, Overlay]:
    """Every curve that a run has, by name."""
    found: dict[str, list[tuple[ScoredRun, Curve]]] = {}
    for run in runs:
        for name, curve in run.report.curves.items():
            if name not in NOT_OVERLAID and {curve.x, curve.main} <= curve.columns.keys():
                found.setdefault(name, []).append((run, curve))
    order = [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]
    made = {name: _overlay(name, found[name]) for name in order}
    return {name: overlay for name, overlay in made.items() if overlay.lines}


def _overlay(name: str, curves: Sequence[tuple[ScoredRun, Curve]]) -> Overlay:
    lines = tuple(line for run, curve in curves if (line := _line(run, curve)) is not None)
    first = curves[0][1]
    limits = _n_merci_limits(lines) if name == "n_merci_by_alpha" and lines else None
    return Overlay(
        name,
        first.title,
        first.x_label,
        first.y_label,
        lines,
        diagonal=name in DIAGONAL,
        levels=LEVELS.get(name, ()),
        y_limits=limits,
    )


def _line(run: ScoredRun, curve: Curve) -> Line | None:
    """The finite points of a curve, or None for a damaged or an empty one."""
    x, y = (np.ravel(curve.columns[column]) for column in (curve.x, curve.main))
    if len(x) != len(y):
        return None
    finite = np.isfinite(x) & np.isfinite(y)
    if not finite.any():
        return None
    low, high = (_band(curve, end, finite) for end in ("low", "high"))
    return Line(run.label, run.method, x[finite], y[finite], low, high)


def _band(curve: Curve, end: str, finite: npt.NDArray[np.bool_]) -> FloatArray | None:
    """One end of the confidence band, where the curve has a whole one."""
    values = np.ravel(curve.columns[end]) if end in curve.columns else np.empty(0)
    if len(values) != len(finite) or not np.isfinite(values[finite]).all():
        return None
    return values[finite]


def _n_merci_limits(lines: Sequence[Line]) -> tuple[float, float]:
    """Limits from the shares used in practice: the definition has a pole where the percentile meets the MAE."""
    seen = np.concatenate([line.y[line.x >= 0.9] for line in lines])
    if not len(seen):
        seen = np.concatenate([line.y for line in lines])
    return min(-0.1, 1.1 * float(seen.min())), max(1.6, 1.1 * float(seen.max()))
