"""What a curve is: named columns of equal length, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError
from uq_tracking.typed import DAMAGE

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """Columns of equal length; ``x`` names the horizontal one and ``main`` the one drawn when runs are overlaid."""

    name: str
    columns: Mapping[str, FloatArray]
    x: str
    main: str
    x_label: str
    y_label: str
    title: str
    score: str | None = None
    """Key of the score that summarises the curve."""
    steps: npt.NDArray[np.int64] | None = None
    """Increasing integers for trackers whose axis is an integer step: per cent of x, or the bin's index."""
    labels: tuple[str, ...] | None = None
    """Names of the rows, if ``x`` only numbers them."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain = {name: getattr(self, name) for name in _TEXTS}
        columns = {name: column.tolist() for name, column in self.columns.items()}
        steps = None if self.steps is None else self.steps.tolist()
        made = {**plain, "columns": columns, "steps": steps}
        return made if self.labels is None else {**made, "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Curve:
        """Inverse of ``to_dict``; FileFormatError for anything else."""
        try:
            columns = {name: np.asarray(column, dtype=float) for name, column in values["columns"].items()}
            steps = None if values["steps"] is None else np.asarray(values["steps"], dtype=np.int64)
            labels = values.get("labels")
            labels = None if labels is None else tuple(str(label) for label in labels)
            return cls(columns=columns, steps=steps, labels=labels, **{name: values[name] for name in _TEXTS})
        except DAMAGE as error:
            raise FileFormatError(f"this is not a curve ({error!r})") from error


_TEXTS = ("name", "x", "main", "x_label", "y_label", "title", "score")


def finite(curve: Curve) -> Curve:
    """The curve without points that 64-bit numbers cannot represent."""
    kept = np.all([np.isfinite(column) for column in curve.columns.values()], axis=0)
    if kept.all():
        return curve
    columns = {name: column[kept] for name, column in curve.columns.items()}
    labels = None if curve.labels is None else tuple(np.asarray(curve.labels, dtype=object)[kept].tolist())
    return replace(
        curve, columns=columns, steps=None if curve.steps is None else curve.steps[kept], labels=labels
    )
