"""Scores of an uncertainty equal to the error, and of one that is the same everywhere: MeRCI (2018), table 1.

Both follow from numbers in the report, so no statistics are fetched:

* ``merci``: the oracle's is the mean absolute error. A constant's is the alpha percentile of the errors, which
  is MAE + (merci - MAE) / n_merci because n_merci is (merci - MAE) / (percentile - MAE).
* ``ause_rmse``: the oracle's is 0. A constant orders nothing, so its curve is flat; the area between that and the
oracle's curve is AUSE + AURG of any method with these predictions.
* ``n_merci``, ``spearman``, ``ause_mae``, ``aurg_rmse``, ``cv``: by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from uq_tracking.comparison.runs import ScoredRun
from uq_tracking.metrics.registry import Metric

Scores = Mapping[str, float]
Range = tuple[float, float]


@dataclass(frozen=True)
class Bound:
    """A bound of one metric over the runs: lowest and highest, because it depends on each run's predictions."""

    low: float
    high: float

    @property
    def common(self) -> bool:
        """Whether all runs have the same bound, as they do if they share their predicted means."""
        return self.high - self.low <= 1e-9 * max(abs(self.low), abs(self.high))


def _constant_merci(scores: Scores) -> float | None:
    if not {"merci", "n_merci", "mae"} <= scores.keys() or abs(scores["n_merci"]) < 1e-6:
        return None  # an oracle says nothing about the percentile
    return scores["mae"] + (scores["merci"] - scores["mae"]) / scores["n_merci"]


def _unordered_area(scores: Scores) -> float | None:
    if not {"ause_rmse", "aurg_rmse"} <= scores.keys():
        return None
    return scores["ause_rmse"] + scores["aurg_rmse"]


def _fixed(value: float) -> Callable[[Scores], float | None]:
    return lambda scores: value


ORACLE: Mapping[str, Callable[[Scores], float | None]] = {
    "merci": lambda scores: scores.get("mae"),
    "n_merci": _fixed(0.0),
    "ause_rmse": _fixed(0.0),
    "ause_mae": _fixed(0.0),
    "aurg_rmse": _unordered_area,
    "spearman": _fixed(1.0),
}
CONSTANT: Mapping[str, Callable[[Scores], float | None]] = {
    "merci": _constant_merci,
    "n_merci": _fixed(1.0),
    "ause_rmse": _unordered_area,
    "aurg_rmse": _fixed(0.0),
    "cv": _fixed(0.0),
}
BOUNDS = {"oracle": ORACLE, "constant": CONSTANT}


def bounds(runs: Iterable[ScoredRun], metrics: Iterable[Metric]) -> dict[str, dict[str, Bound]]:
    """Bounds by name (``oracle``, ``constant``) and metric; those that no run determines are left out."""
    reports = [run.report for run in runs if run.report.task == "regression"]
    found: dict[str, dict[str, Bound]] = {}
    for name, formulas in BOUNDS.items():
        for metric in metrics:
            formula = formulas.get(metric.key)
            values = [formula(r.scores) for r in reports if metric.key in r.scores] if formula else []
            known = [value for value in values if value is not None]
            if known:
                found.setdefault(name, {})[metric.key] = Bound(min(known), max(known))
    return found
