"""Reports made from samples by plain transcriptions of the definitions: realistic numbers for drawings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.integrate import trapezoid
from scipy.stats import norm, spearmanr

from uq_tracking import plugins
from uq_tracking.curves import Curve
from uq_tracking.formatting import axis_label
from uq_tracking.report import Report

LEVELS = np.arange(1, 100) / 100


def report(curves: Mapping[str, Mapping[str, Any]], **fields: Any) -> Report:
    unit = fields.get("settings", {}).get("unit")
    made = {}
    for name, columns in curves.items():
        spec = plugins.curves()[name]
        made[name] = Curve(
            name=name,
            columns={key: np.asarray(column, dtype=np.float64) for key, column in columns.items()},
            x=next(iter(columns)),
            main=list(columns)[-1],
            x_label=axis_label(spec.x_label, spec.units[0], unit),
            y_label=axis_label(spec.y_label, spec.units[1], unit),
            title=spec.title,
        )
    empty: dict[str, Any] = {"scores": {}, "undefined": {}, "counts": {}, "settings": {}, "provenance": {}}
    return Report(task="regression", curves=made, **{**empty, **fields})


def samples(kind: str, n: int = 20_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Errors and standard deviations of a kind of model."""
    rng = np.random.default_rng(seed)
    s = np.exp(rng.normal(0.0, 0.6, n))
    e = s * rng.normal(size=n)
    if kind == "overconfident":
        e *= 2.2
    elif kind == "underconfident":
        e *= 0.5
    elif kind == "biased":
        e += 0.8 * s
    elif kind == "heavy":
        s = np.exp(rng.normal(0.0, 1.6, n))
        e = s * rng.standard_t(2, n)
    elif kind == "tied":
        s = rng.choice([0.5, 1.0, 2.0], n)
        e = np.round(s * rng.normal(size=n), 1)
    elif kind == "constant":
        s = np.full(n, 1.5)
    elif kind == "zeros":
        s[: n // 10] = 0.0
        e[: n // 20] = 0.0
    return e, s


def scored(kind: str, n: int = 20_000, *, method: str | None = None, **settings: Any) -> Report:
    e, s = samples(kind, n)
    curves = all_curves(e, s)
    rmv, rmse = curves["reliability"]["rmv"], curves["reliability"]["rmse"]
    fraction = curves["sparsification_rmse"]["fraction"]
    gap = curves["sparsification_rmse"]["model"] - curves["sparsification_rmse"]["oracle"]
    miss = curves["calibration"]["observed"] - curves["calibration"]["expected"]
    cover = curves["coverage"]["observed"] - curves["coverage"]["nominal"]
    scores = {
        "ence": float(np.mean(np.abs(rmv - rmse) / np.maximum(rmv, 1e-12))),
        "calibration_error": float(np.mean(miss**2)),
        "miscalibration_area": float(trapezoid(np.abs(cover), LEVELS)),
        "auce": float(trapezoid(np.abs(cover), LEVELS)),
        "auce_over": float(trapezoid(np.maximum(-cover, 0), LEVELS)),
        "auce_under": float(trapezoid(np.maximum(cover, 0), LEVELS)),
        "ause_rmse": float(trapezoid(gap, fraction)),
        "pit_ks": 0.0123,
        "n_merci": float(np.interp(0.95, *curves["n_merci_by_alpha"].values())),
    }
    undefined = {}
    if np.ptp(s) > 0:
        scores["spearman"] = float(spearmanr(s, np.abs(e)).statistic)
    else:
        undefined["spearman"] = "all standard deviations are equal"
    return report(curves, scores=scores, undefined=undefined, settings=settings, counts={"n": n}).labelled(
        method=method
    )


def all_curves(e: np.ndarray, s: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    z = np.divide(e, s, out=np.zeros_like(e), where=s > 0)
    return {
        "reliability": _reliability(e, s),
        "calibration": _shares(norm.cdf(z), LEVELS, "expected"),
        "coverage": _shares(2 * norm.cdf(np.abs(z)) - 1, LEVELS, "nominal"),
        "pit_histogram": _pit(norm.cdf(z)),
        "sparsification_rmse": _sparsification(e, s),
        "n_merci_by_alpha": _n_merci(np.abs(e), s),
        "error_vs_std": _cells(np.abs(e), s),
    }


def _reliability(e: np.ndarray, s: np.ndarray) -> dict[str, np.ndarray]:
    bins = np.array_split(np.argsort(s, kind="stable"), 10)
    return {
        "rmv": np.array([np.sqrt(np.mean(s[b] ** 2)) for b in bins]),
        "rmse": np.array([np.sqrt(np.mean(e[b] ** 2)) for b in bins]),
        "count": np.array([len(b) for b in bins]),
        "std_low": np.array([s[b].min() for b in bins]),
        "std_high": np.array([s[b].max() for b in bins]),
    }


def _shares(values: np.ndarray, levels: np.ndarray, x: str) -> dict[str, np.ndarray]:
    n, z = len(values), 1.96
    p = np.searchsorted(np.sort(values), levels, side="right") / n
    center = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return {x: levels, "observed": p, "low": center - half, "high": center + half}


def _pit(values: np.ndarray) -> dict[str, np.ndarray]:
    count, edges = np.histogram(values, bins=20, range=(0, 1))
    return {"center": (edges[1:] + edges[:-1]) / 2, "density": count * 20 / len(values), "count": count}


def _sparsification(e: np.ndarray, s: np.ndarray) -> dict[str, np.ndarray]:
    n, kept = len(e), [max(1, len(e) * (100 - i) // 100) for i in range(100)]
    full = np.sqrt(np.mean(e**2))

    def left(order: np.ndarray) -> np.ndarray:
        sums = np.cumsum(e[order] ** 2)
        return np.array([np.sqrt(sums[k - 1] / k) for k in kept]) / full

    return {
        "fraction": np.arange(100) / 100,
        "model": left(np.argsort(s)),
        "oracle": left(np.argsort(np.abs(e))),
        "random": np.ones(100) * (n > 0),
    }


def _n_merci(a: np.ndarray, s: np.ndarray) -> dict[str, np.ndarray]:
    alphas = np.arange(50, 101) / 100
    ratio = np.sort(np.divide(a, s, out=np.full_like(a, np.inf), where=s > 0))
    ratio = np.where(np.isfinite(ratio), ratio, 50.0)
    errors = np.sort(a)
    place = np.ceil(alphas * len(a) - 1e-9).astype(int) - 1
    return {
        "alpha": alphas,
        "n_merci": (ratio[place] * s.mean() - a.mean()) / (errors[place] - a.mean()),
    }


def _cells(a: np.ndarray, s: np.ndarray, per_decade: int = 12) -> dict[str, np.ndarray]:
    def index(values: np.ndarray) -> np.ndarray:
        floor = np.full(len(values), -(10**6))
        return np.floor(per_decade * np.log10(values, out=floor.astype(float), where=values > 0)).astype(int)

    def edge(k: np.ndarray, step: int) -> np.ndarray:
        return np.where(k <= -(10**5), 0.0, 10.0 ** (np.maximum(k, -3000) / per_decade + step / per_decade))

    pairs, count = np.unique(np.stack([index(s), index(a)]), axis=1, return_counts=True)
    return {
        "std_low": edge(pairs[0], 0),
        "std_high": edge(pairs[0], 1),
        "error_low": edge(pairs[1], 0),
        "error_high": edge(pairs[1], 1),
        "count": count,
    }
