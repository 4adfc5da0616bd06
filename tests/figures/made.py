"""Reports of kinds of models, and ones made of given columns, for drawings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.curves import Curve
from uq_tracking.formatting import axis_label
from uq_tracking.report import Report


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
    return uq.evaluate(e, np.zeros(n), s, **settings).labelled(method=method)


def all_curves(e: np.ndarray, s: np.ndarray) -> dict[str, Mapping[str, np.ndarray]]:
    return {name: curve.columns for name, curve in uq.evaluate(e, np.zeros(len(e)), s).curves.items()}


def draw(name: str, report: Report) -> Figure:
    return plugins.figures(report.task)[name].draw(report)
