"""Draw the pictures of the concept pages: one toy, a wave whose noise grows and whose middle was never measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import uq_tracking as uq

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "concepts"
BLUE, ORANGE, GREY, RED = "#0072b2", "#d55e00", "#8a8a8a", "#c0392b"
Array = Any


def wave(x: Array) -> Array:
    """Return the true curve."""
    return np.sin(1.3 * x) + 0.15 * x


def noise_std(x: Array) -> Array:
    """Return the true standard deviation of the noise."""
    return 0.08 + 0.04 * x


def sampled(n: int, seed: int, low: float = 0.0, high: float = 10.0) -> tuple[Array, Array]:
    """Draw places and noisy values of the wave."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(low, high, n))
    return x, wave(x) + noise_std(x) * rng.normal(size=n)


def ensemble(grid: Array, members: int = 40) -> tuple[Array, Array, Array, Array]:
    """Fit curves to resampled data without a middle; return the data, the members' means, and the fitted noise."""
    rng = np.random.default_rng(1)
    x, y = sampled(160, 0)
    seen = (x < 3.6) | (x > 6.2)
    x, y = x[seen], y[seen]

    def features(at: Array) -> Array:
        centers = np.linspace(-0.5, 10.5, 16)
        return np.hstack([np.exp(-0.5 * (at[:, None] - centers) ** 2 / 0.6), np.ones((len(at), 1))])

    means = []
    for _ in range(members):
        chosen = rng.integers(0, len(x), len(x))
        inside = features(x[chosen])
        prior = rng.normal(0, 0.8, inside.shape[1])
        weights = np.linalg.solve(
            inside.T @ inside + 0.05 * np.eye(inside.shape[1]), inside.T @ y[chosen] + 0.05 * prior
        )
        means.append(features(grid) @ weights)
    fitted = np.interp(x, grid, np.mean(means, axis=0))
    line = np.polyfit(x, np.sqrt(np.pi / 2) * np.abs(y - fitted), 1)
    return x, y, np.array(means), np.maximum(np.polyval(line, grid), 0.02)


def sheet(columns: int, rows: int = 1, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """Return a figure of equal panels."""
    figure = Figure(figsize=(3.7 * columns, height * rows), dpi=110, layout="constrained")
    axes = list(np.ravel(figure.subplots(rows, columns)))
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def kinds() -> Figure:
    """Epistemic and aleatoric parts of a total uncertainty."""
    grid = np.linspace(0, 10, 300)
    x, y, means, noise = ensemble(grid)
    mean, doubt = means.mean(axis=0), means.std(axis=0)
    total = np.hypot(doubt, noise)
    figure, (left, right) = sheet(2)
    left.fill_between(
        grid, mean - 2 * total, mean + 2 * total, color=BLUE, alpha=0.18, lw=0, label="total, 2 std"
    )
    left.fill_between(
        grid, mean - 2 * noise, mean + 2 * noise, color=ORANGE, alpha=0.3, lw=0, label="noise alone"
    )
    left.plot(grid, mean, color=BLUE)
    left.plot(x, y, ".", color="black", ms=3)
    left.set(title="An ensemble's forecast", xlabel="x", ylabel="y")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    right.stackplot(
        grid,
        noise**2,
        doubt**2,
        labels=["aleatoric: noise", "epistemic: never measured"],
        colors=["#f0b38a", "#8fbfe0"],
    )
    right.set(title="Variances add up", xlabel="x", ylabel="variance", ylim=(0, 0.68))
    right.legend(frameon=False, fontsize=8, loc="upper right")
    return figure


def coverage_by_fifth(x: Array, inside: Array) -> Array:
    """Return the share inside in each fifth of x."""
    return np.array([part.mean() for part in np.array_split(inside[np.argsort(x)], 5)])


def calibrated() -> Figure:
    """Three standard deviations: right, too small, and right only on average."""
    x, y = sampled(4000, 2)
    true = noise_std(x)
    constant = np.full_like(x, np.sqrt(np.mean(true**2)))
    stated = {"calibrated": true, "overconfident": true / 1.6, "right only on average": constant}
    figure, axes = sheet(3, 2, 2.6)
    for (name, std), top, bottom in zip(stated.items(), axes[:3], axes[3:], strict=True):
        inside = np.abs(y - wave(x)) <= 1.96 * std
        few = slice(None, None, 12)
        top.fill_between(x, wave(x) - 1.96 * std, wave(x) + 1.96 * std, color=BLUE, alpha=0.2, lw=0)
        top.scatter(x[few], y[few], s=4, c=np.where(inside[few], "black", RED))
        top.set(title=f"{name}\n{100 * inside.mean():.0f} % inside the 95 % band", xticks=[])
        bottom.bar(range(1, 6), coverage_by_fifth(x, inside), color=BLUE)
        bottom.axhline(0.95, color="black", lw=1)
        bottom.set(ylim=(0.5, 1.02), xlabel="fifth of x", ylabel="share inside" if top is axes[0] else "")
    return figure


def sharp() -> Figure:
    """Three calibrated forecasts, of which the sharpest has the best score."""
    x, y = sampled(4000, 3)
    trend = np.polyval(np.polyfit(x, y, 1), x)
    forecasts = {
        "one value for all": (np.full_like(y, y.mean()), np.full_like(y, y.std())),
        "a straight line": (trend, np.full_like(y, (y - trend).std())),
        "the wave": (wave(x), noise_std(x)),
    }
    figure, axes = sheet(3)
    for ax, (name, (mean, std)) in zip(axes, forecasts.items(), strict=True):
        scores = uq.evaluate(y, mean, std, metrics=["crps", "coverage_95"]).scores
        ax.fill_between(x, mean - 1.96 * std, mean + 1.96 * std, color=BLUE, alpha=0.2, lw=0)
        ax.plot(x[::12], y[::12], ".", color="black", ms=2)
        ax.set(
            title=f"{name}\n{100 * scores['coverage_95']:.0f} % inside, CRPS {scores['crps']:.2f}", xlabel="x"
        )
    return figure


def ranked() -> Figure:
    """The same standard deviations at the right samples and shuffled."""
    rng = np.random.default_rng(4)
    x, y = sampled(4000, 4)
    error = y - wave(x)
    stated = {
        "large where errors are large": noise_std(x),
        "the same, shuffled": rng.permutation(noise_std(x)),
    }
    figure, axes = sheet(3)
    for ax, color, (name, std) in zip(axes, (BLUE, ORANGE), stated.items(), strict=False):
        report = uq.evaluate(y, wave(x), std)
        ax.plot(std[::4], np.abs(error)[::4], ".", color=color, ms=2, alpha=0.6)
        ax.set(
            title=f"{name}\nn-MeRCI {report.scores['n_merci']:.2f}",
            xlabel="stated std",
            ylabel="absolute error",
        )
        curve = report.curves["sparsification_rmse"].columns
        axes[2].plot(curve["fraction"], curve["model"], color=color, label=name)
    axes[2].plot(curve["fraction"], curve["oracle"], color=GREY, ls="--", label="by the error itself")
    axes[2].axhline(1, color=GREY, lw=0.8)
    axes[2].set(title="Remove the most uncertain:\nwhat is left has what error?", xlabel="share removed")
    axes[2].set(ylabel="RMSE of the rest / of all", ylim=(0, 1.15))
    axes[2].legend(frameon=False, fontsize=7, loc="lower left")
    return figure


def errors_of_images(images: int, size: int, smooth: int, seed: int) -> Array:
    """Draw calibrated errors that neighboring pixels share."""
    rng = np.random.default_rng(seed)
    field = rng.normal(size=(images, size, size))
    wavenumber = np.fft.fftfreq(size)
    kernel = np.exp(-2 * (np.pi * smooth) ** 2 * (wavenumber[:, None] ** 2 + wavenumber**2))
    field = np.fft.ifft2(np.fft.fft2(field) * kernel).real
    return field / np.sqrt(np.mean(kernel**2))


def pixels() -> Figure:
    """Shares inside the band by image, beside what independent pixels would show."""
    size, images = 64, 20
    independent, smooth = errors_of_images(images, size, 0, 5), errors_of_images(images, size, 6, 5)
    figure, axes = sheet(3)
    for ax, name, errors in zip(
        axes, ("independent pixels", "neighbors share their error"), (independent, smooth), strict=False
    ):
        ax.imshow(errors[0], cmap="RdBu_r", vmin=-3, vmax=3)
        ax.set(title=f"{name}\n{size * size} pixels", xticks=[], yticks=[])
    half = 2.6 * np.sqrt(0.95 * 0.05 / size**2)
    axes[2].axhspan(
        0.95 - half, 0.95 + half, color=GREY, alpha=0.4, lw=0, label="99 % of images, if pixels counted"
    )
    for place, color, errors in ((0.0, BLUE, independent), (1.0, ORANGE, smooth)):
        inside = np.mean(np.abs(errors) <= 1.96, axis=(1, 2))
        axes[2].plot(np.linspace(place - 0.2, place + 0.2, images), inside, "o", color=color, ms=4)
    axes[2].set(title=f"{images} calibrated images:\nshare inside the 95 % band", xticks=[0, 1])
    axes[2].set_xticklabels(["independent", "neighbors alike"])
    axes[2].legend(frameon=False, fontsize=7, loc="lower left")
    return figure


DRAWN = {"kinds": kinds, "calibrated": calibrated, "sharp": sharp, "ranked": ranked, "pixels": pixels}


def draw() -> None:
    """Write every picture."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, make in DRAWN.items():
        make().savefig(PICTURES / f"{name}.png", metadata={"Software": None})
