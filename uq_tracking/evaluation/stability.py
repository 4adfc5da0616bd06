"""Metrics on subsets of growing size, and whether the test set is large enough for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.curves.curve import Curve
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.repeats import Repeats
from uq_tracking.formatting import format_number
from uq_tracking.metrics.registry import Metric, compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.group_tables import GroupTables
from uq_tracking.statistics.layout import Layout
from uq_tracking.statistics.statistics import Statistics, resampled

REPEATS = 20
SMALLEST = 8
LARGEST = 1 << 16
"""Size of the largest random subset; beyond it the spread is extrapolated."""

TOLERANCE = 0.05
"""Acceptable uncertainty of a score, as a share of the score."""
LEAST = {"": 0.01, "nats": 0.05}
"""Uncertainty that is always acceptable, for scores near 0, by unit."""


@dataclass(frozen=True)
class Stability:
    """Curves of the scores on growing subsets, and what they say about the test set, by metric."""

    curves: Sequence[Curve]
    verdicts: Mapping[str, str]


def stability(
    layout: Layout,
    data: Any,
    settings: Settings,
    metrics: Sequence[Metric],
    scores: Mapping[str, float],
    *,
    groups: GroupTables | None = None,
    seed: int = 0,
    repeats: int = REPEATS,
) -> Stability:
    """Score random subsets of 2^3, 2^4 ... samples, drawn without replacement, several times each.

    With ``groups``, whole groups are drawn, at least two: samples from one image carry redundant information.

    Parameters
    ----------
    layout, data
        What the statistics consist of, and the predictions.
    settings, metrics
        How to score, and what.
    scores : mapping of float
        Scores of all samples.
    groups : GroupTables, optional
    seed : int
        Seed of the subsets.
    repeats : int
        Number of subsets of each size.

    Raises
    ------
    SettingsError
        There are fewer than 16 samples, or fewer than four groups.

    References
    ----------
    .. [1] Xiong et al., 2024, fig. 4.
    """
    rng = np.random.default_rng(seed)
    if groups is None:
        name, total = "samples", data.n
        sizes = [2**k for k in range(3, 64) if 2**k <= min(total // 2, LARGEST)]
        draw = _sample_subsets(layout, data)
    else:
        name, total = "groups", len(groups)
        sizes = [2**k for k in range(1, 64) if 2**k <= total // 2]
        draw = _group_subsets(groups)
    if not sizes:
        raise SettingsError(
            f"{total} {name} are too few for stability; it needs {16 if groups is None else 4}"
        )
    found: dict[float, list[Mapping[str, float]]] = {}
    with np.errstate(all="ignore"):
        for size in sizes:
            picks = [rng.choice(total, size, replace=False) for _ in range(repeats)]
            found[float(size)] = [compute(part, settings, metrics)[0] for part in draw(picks)]
    found[float(total)] = [dict(scores)]
    curves = Repeats(found).curves("stability", name, f"Number of {name}", metrics, settings.unit)
    by_key = {curve.score: curve for curve in curves}
    verdicts = {
        m.key: verdict(by_key[m.key], m, scores, name) for m in metrics if m.key in by_key and m.key in scores
    }
    return Stability(curves, verdicts)


def _sample_subsets(layout: Layout, data: Any) -> Any:
    rows = data.rows()

    def draw(picks: Sequence[npt.NDArray[np.int64]]) -> list[Statistics]:
        parts = ({name: column[pick] for name, column in rows.items()} for pick in picks)
        return [Statistics.exact(layout, part, facts=data.facts) for part in parts]

    return draw


def _group_subsets(groups: GroupTables) -> Any:
    def draw(picks: Sequence[npt.NDArray[np.int64]]) -> list[Statistics]:
        weights = np.zeros((len(picks), len(groups)))
        for row, pick in zip(weights, picks, strict=True):
            row[pick] = 1
        return list(resampled(groups, weights))

    return draw


@dataclass(frozen=True)
class Precision:
    """What the curve says about the score of all samples.

    Attributes
    ----------
    error : float
        Standard error: the subsets' spread, extrapolated with the inverse root of their size.
    drift : float
        Change of the mean score from the largest subsets to all samples.
    tolerance : float
        Acceptable size of either.
    """

    error: float
    drift: float
    tolerance: float


def precision(curve: Curve, metric: Metric, scores: Mapping[str, float]) -> Precision | None:
    """Precision of the last point of a stability curve; None if the metric is defined at fewer than two sizes."""
    size, spread, mean = (curve.columns[name] for name in (curve.x, "spread", "mean"))
    total, repeats = size[-1], curve.columns["subsets"]
    parts = np.flatnonzero(size[:-1] <= total / 2)
    if len(size) < 2 or not len(parts) or scores.get(metric.key) is None:
        return None
    used = parts[-3:]
    # The variance of a subset of n of N samples is 1 - n/N times that of n new samples.
    unlimited = spread[used] * np.sqrt(repeats[used] / np.maximum(repeats[used] - 1, 1))
    errors = unlimited * np.sqrt(size[used] / total) / np.sqrt(1 - size[used] / total)
    last = parts[-1]
    noise = spread[last] / math.sqrt(repeats[last])
    drift = max(abs(mean[last] - scores[metric.key]) - 2 * noise, 0.0)
    return Precision(float(np.median(errors)), float(drift), _tolerance(metric, scores))


def _tolerance(metric: Metric, scores: Mapping[str, float]) -> float:
    size = scores["rmse"] if metric.key == "bias" and "rmse" in scores else abs(scores[metric.key])
    return max(TOLERANCE * size, LEAST.get(metric.unit, 0.0))


def verdict(curve: Curve, metric: Metric, scores: Mapping[str, float], what: str) -> str:
    """Say in one sentence whether the test set is large enough for this metric."""
    found = precision(curve, metric, scores)
    if found is None:
        return "unknown: too few subset sizes have a value"
    total = int(curve.columns[curve.x][-1])
    known = f"{total:,} {what} give it to within ±{format_number(2 * found.error, 2)} (2 standard errors)"
    if 2 * found.error > found.tolerance:
        factor = (2 * found.error / found.tolerance) ** 2
        more = (
            f"; about {_rounded(total * factor):,} would bring that to ±{format_number(found.tolerance, 2)}"
        )
        return f"too small: {known}{more}"
    if found.drift > found.tolerance:
        return f"too small: {known}, but its mean still moves by {format_number(found.drift, 2)} when subsets double"
    return f"large enough: {known}"


def _rounded(number: float) -> int:
    """Round up to two significant digits."""
    unit = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return int(math.ceil(number / unit) * unit)
