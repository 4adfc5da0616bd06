"""Drawings for Xiong et al.: predicted densities, stability, sparsification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from scipy.stats import norm

from uq_tracking.figures.style import MODEL, ORACLE, legend, line, new_figure, reference, style_axes
from uq_tracking_papers.study import Study
from uq_tracking_papers.xiong_models import Models

FloatArray = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[np.generic]]

LABELS = {
    "calibration_error": "calibration error",
    "ause_mae": "AUSE (MAE)",
    "nll": "NLL",
    "spearman": "Spearman's correlation",
}
DOTS = "#D55E00"


def densities(study: Study, models: Mapping[str, Models]) -> None:
    """Figures 2 and 3: the data, and the log densities predicted by the models."""
    study.item(
        "figures 2 and 3",
        "The four data sets and what the models make of them",
        "Log density, dark where it is low; test targets as dots; the predicted mean of the ensemble and the "
        "predicted mode of the energy-based model in white.",
    )
    figure = new_figure((11.0, 6.6))
    panels = figure.subplots(3, 4)
    for column, (name, one) in enumerate(models.items()):
        x, y = one["image_x"], one["image_y"]
        true = _log_mixture(y, *one.data.components(x))
        means, stds = one.ensemble_at(x)
        spread = np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))
        ensemble = _log_mixture(y, means.mean(axis=0)[None], spread[None])
        energy = one["image"]
        shown = {
            "Ensemble": (ensemble, means.mean(axis=0)),
            "EBR": (energy, y[energy.argmax(axis=1)]),
            "True": (true, None),
        }
        for row, (title, (image, path)) in enumerate(shown.items()):
            ax = panels[row, column]
            style_axes(ax, "x" if row == 2 else "", f"{title}: y" if column == 0 else "")
            ax.grid(False)
            extent = (float(x[0]), float(x[-1]), float(y[0]), float(y[-1]))
            ax.imshow(
                image.T, origin="lower", extent=extent, aspect="auto", vmin=-8, vmax=2, cmap="viridis",
                interpolation="nearest",
            )  # fmt: skip
            ax.plot(one["x"][:250], one["y"][:250], ".", color=DOTS, markersize=2, linestyle="")
            if path is not None:
                dots = {"marker": ".", "markersize": 3, "linestyle": ""} if title == "EBR" else {}
                line(ax, x, path, **{"color": "white", "linewidth": 1.2, **dots})
            ax.set_ylim(extent[2], extent[3])
            if row == 0:
                ax.set_title(name, fontsize=12)
    study.figure("figures 2 and 3", figure, "Only the energy-based model can have two branches.")


def _log_mixture(y: FloatArray, means: FloatArray, stds: FloatArray) -> FloatArray:
    """Log density (n, points) of an equally weighted mixture (K, n) at places (points,)."""
    logs = norm.logpdf(y[None, None], means[..., None], stds[..., None])
    return np.asarray(logsumexp(logs, axis=0) - np.log(len(means)))


def stability(study: Study, keys: Sequence[str], growing: Columns, independent: Columns) -> None:
    """Figure 4."""
    figure = new_figure((11.0, 5.6))
    panels = figure.subplots(2, len(keys))
    size = independent["samples"].astype(float)
    for column, key in enumerate(keys):
        top, bottom = panels[:, column]
        for ax, title in ((top, f"(a) {LABELS[key]}"), (bottom, f"(b) {LABELS[key]}")):
            style_axes(ax, "Samples", "")
            ax.set_xscale("log", base=2)
            ax.set_title(title, fontsize=11)
        line(top, growing["samples"], growing[key], marker="o", markersize=4, linewidth=1.6)
        mean, spread = (independent[f"{key} {what}"].astype(float) for what in ("mean", "spread"))
        bottom.fill_between(size, mean - spread, mean + spread, color=MODEL, alpha=0.2, linewidth=0)
        line(bottom, size, mean, marker="o", markersize=4, linewidth=1.6)
    study.figure("figure 4", figure, "Each panel has its own scale.")


def sparsifications(study: Study, found: Mapping[str, Columns]) -> None:
    """Figure 5: sparsification of the ensemble with constant noise and with varying noise."""
    study.item(
        "figure 5",
        "Sparsification of the ensemble",
        "With noise of one size the standard deviation says nothing of the error: the curve stays near the random "
        "one.",
    )
    figure = new_figure((9.0, 3.8))
    for ax, name in zip(figure.subplots(1, 2), ("homoscedastic", "heteroscedastic"), strict=True):
        columns = found[name]
        style_axes(ax, "Share of most uncertain samples removed", "MAE of the rest / MAE of all")
        ax.set_title(f"{name}, AUSE {float(columns['ause_mae']):.3f}", fontsize=12)
        line(ax, columns["fraction"], columns["model"], label="ensemble")
        line(ax, columns["fraction"], columns["oracle"], color=ORACLE, linestyle="--", label="oracle")
        reference(ax, [0, 1], [1, 1], label="random order")
        legend(ax)
        study.row("figure 5", name, "AUSE", float(columns["ause_mae"]))
    study.figure("figure 5", figure)
