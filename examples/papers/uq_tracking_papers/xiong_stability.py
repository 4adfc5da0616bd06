"""Figure 4 of Xiong et al.: metrics on test sets of growing size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

import uq_tracking as uq
from uq_tracking.evaluation.subsets import iid_stability
from uq_tracking.inputs import Predictions
from uq_tracking_papers import xiong_figures
from uq_tracking_papers.study import Study

KEYS = ("calibration_error", "ause_mae", "nll", "spearman")
TOLERANCE = 0.02
"""A metric has settled once the standard deviation between test sets is at most this."""

Draw = Callable[[int, np.random.Generator], Predictions]
"""Predictions for new samples, in the form that `iid_stability` expects."""

Columns = Mapping[str, npt.NDArray[np.generic]]


def reproduce(study: Study, draw: Draw) -> None:
    """One growing test set (a), and the mean and spread over i.i.d. test sets of each size (b)."""
    largest, repeats = study.pick((16, 100), (13, 40), (11, 30))
    sizes = [2**k for k in range(3, largest + 1)]
    study.item(
        "figure 4",
        "Metrics against the size of the test set",
        f"The ensemble on heteroscedastic data. (a) One set of {sizes[-1]:,} samples, of which the first 8, 16 ... "
        f"are scored. (b) {repeats} independent sets of each size: their mean, and a band of one standard deviation; "
        "uq_tracking.iid_stability makes it. The ensemble is a function of one input and is interpolated between "
        "4001 values of it.",
    )
    growing = study.cached("growing", lambda: _growing(study, draw, sizes))
    independent = study.cached("independent", lambda: _independent(study, draw, sizes, repeats))
    xiong_figures.stability(study, KEYS, growing, independent)
    for key in KEYS:
        for size in (sizes[0], sizes[-1]):
            at = np.flatnonzero(independent["samples"] == size)[0]
            mean, spread = (float(independent[f"{key} {what}"][at]) for what in ("mean", "spread"))
            study.row("figure 4", key, f"mean, {size:,} samples", mean)
            study.row("figure 4", key, f"spread, {size:,} samples", spread)
    _findings(study, independent)


def _growing(study: Study, draw: Draw, sizes: list[int]) -> dict[str, npt.ArrayLike]:
    whole = draw(sizes[-1], study.rng("growing"))
    _, mean, std = whole.flat()
    y = whole.target.reshape(-1)
    rows = [uq.evaluate(y[:n], mean[:n], std[:n], metrics=KEYS).scores for n in sizes]
    return {"samples": sizes, **{key: [row.get(key, np.nan) for row in rows] for key in KEYS}}


def _independent(study: Study, draw: Draw, sizes: list[int], repeats: int) -> dict[str, npt.ArrayLike]:
    columns: dict[str, list[float]] = {
        "samples": [],
        **{f"{k} {w}": [] for k in KEYS for w in ("mean", "spread")},
    }
    for size in study.progress(sizes, "i.i.d. test sets"):
        seed = int(study.rng("independent", size).integers(2**31))
        curves = iid_stability(draw, metrics=KEYS, sizes=[size], repeats=repeats, seed=seed)
        columns["samples"].append(size)
        for key in KEYS:
            for what in ("mean", "spread"):
                columns[f"{key} {what}"].append(
                    float(curves[key].columns[what][0]) if key in curves else np.nan
                )
    return {name: np.asarray(values) for name, values in columns.items()}


def settled(columns: Columns, key: str) -> float:
    """The smallest size from which the spread stays within the tolerance; infinite if it never does."""
    wide = np.flatnonzero(~(columns[f"{key} spread"].astype(float) <= TOLERANCE))
    first = 0 if not len(wide) else int(wide[-1]) + 1
    sizes = columns["samples"]
    return float(sizes[first]) if first < len(sizes) else np.inf


def _findings(study: Study, columns: Columns) -> None:
    spread = {key: np.asarray(columns[f"{key} spread"], dtype=float) for key in KEYS}
    first = {key: settled(columns, key) for key in KEYS}
    study.finding(
        "Calibration error settles first as the test set grows, AUSE second and NLL third",
        first["calibration_error"] < first["ause_mae"] <= first["nll"]
        and bool(np.all(spread["calibration_error"] < np.fmin(spread["ause_mae"], spread["nll"]))),
        f"samples from which i.i.d. sets differ by at most {TOLERANCE} (one standard deviation): "
        + ", ".join(f"{key} {first[key]:,.0f}" for key in KEYS)
        + ". This compares absolute numbers, as the paper's figure does",
    )
    mean = {key: np.asarray(columns[f"{key} mean"], dtype=float) for key in KEYS}
    relative = {key: float(spread[key][-1] / abs(mean[key][-1])) for key in KEYS}
    study.finding(
        "Calibration error is also the steadiest in proportion to its own value",
        min(relative, key=relative.__getitem__) == "calibration_error",
        f"standard deviation over mean at {int(columns['samples'][-1]):,} samples: "
        + ", ".join(f"{key} {value:.1%}" for key, value in relative.items())
        + "; its mean over small sets is 1/(6N) above its limit, so it falls with every doubling there",
    )
    study.finding(
        "Spearman's correlation converges to 0 on heteroscedastic data",
        abs(mean["spearman"][-1]) < 0.1,
        f"mean {mean['spearman'][-1]:.3f} at {int(columns['samples'][-1]):,} samples, where the true distribution "
        "has 0.537; the paper sees 0 and explains it by points near x = 0",
    )
