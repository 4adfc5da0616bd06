"""Curves of a mean over random subsets, with the subsets' spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from uq_tracking.curves.curve import Curve
from uq_tracking.formatting import axis_label
from uq_tracking.metrics.registry import Metric


@dataclass(frozen=True)
class Repeats:
    """Scores of several subsets of each size, by size; a metric may be undefined for a subset."""

    scores: Mapping[float, Sequence[Mapping[str, float]]] = field(default_factory=dict)

    def curves(
        self, name: str, x: str, x_label: str, metrics: Sequence[Metric], unit: str | None
    ) -> list[Curve]:
        """One curve per metric, against ``x``.

        Columns ``mean``, ``spread`` (population std), ``subset_low`` and ``subset_high`` (the range), ``subsets``. A
        size counts for a metric if the metric is defined for all its subsets.
        """
        made = (self._curve(name, x, x_label, metric, unit) for metric in metrics)
        return [curve for curve in made if curve is not None]

    def _curve(self, name: str, x: str, x_label: str, metric: Metric, unit: str | None) -> Curve | None:
        found = {
            size: np.asarray([row[metric.key] for row in rows])
            for size, rows in self.scores.items()
            if rows and all(metric.key in row for row in rows)
        }
        if not found:
            return None
        values = list(found.values())
        columns = {
            x: np.asarray(list(found), dtype=float),
            "mean": np.asarray([v.mean() for v in values]),
            "spread": np.asarray([v.std() for v in values]),
            "subset_low": np.asarray([v.min() for v in values]),
            "subset_high": np.asarray([v.max() for v in values]),
            "subsets": np.asarray([float(len(v)) for v in values]),
        }
        y_label = axis_label(metric.key, metric.unit, unit)
        texts = (x_label, y_label, f"{metric.key} by {x_label.lower()}")
        steps = np.rint(columns[x]).astype(np.int64)
        return Curve(f"{name}_{metric.key}", columns, x, "mean", *texts, metric.key, steps)
