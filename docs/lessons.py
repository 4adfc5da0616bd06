"""The forecasters that the pages *Choose a metric* and *Read a figure* judge: their scores and pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import image
from matplotlib.figure import Figure

import uq_tracking as uq
from uq_tracking.plugins import figures

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "lessons"
N = 6000

COLUMNS = ("rmse", "nll", "crps", "coverage_95", "calibration_error", "z_std", "ence", "ause_rmse", "n_merci")
READ = ("good", "overconfident", "underconfident", "uninformative", "wrong ranking")
DRAWN = ("reliability", "calibration", "sparsification")


def forecasters() -> dict[str, uq.Predictions]:
    """Predictions of one target, whose true standard deviation varies by a factor of about ten, by name."""
    rng = np.random.default_rng(0)
    std = np.exp(rng.normal(0, 0.6, N))
    mean = rng.normal(0, 3, N)
    truth = mean + std * rng.normal(size=N)
    random = rng.permutation(std)
    constant = np.full(N, np.sqrt(np.mean(std**2)))
    blurred = mean + 0.8 * std * rng.normal(size=N)
    wild = np.where(rng.uniform(size=N) < 0.01, mean + 40, truth)
    stated = {
        "good": (truth, mean, std),
        "overconfident": (truth, mean, std / 1.5),
        "underconfident": (truth, mean, std * 1.5),
        "uninformative": (truth, mean, constant),
        "wrong ranking": (truth, mean, random),
        "half too small, half too large": (truth, mean, std * np.where(np.arange(N) % 2, 1.8, 0.769)),
        "ten times too sure": (truth, mean, std / 10),
        "less accurate, calibrated": (truth, blurred, std * np.sqrt(1.64)),
        "1 % outliers": (wild, mean, std),
    }
    return {name: uq.Predictions(*arrays) for name, arrays in stated.items()}


def table(reports: dict[str, uq.Report]) -> str:
    """Scores of every forecaster, as Markdown."""
    head = "| forecaster | " + " | ".join(f"`{key}`" for key in COLUMNS) + " |"
    rule = "|---|" + "---:|" * len(COLUMNS)
    rows = [
        f"| {name} | " + " | ".join(_text(report.scores.get(key)) for key in COLUMNS) + " |"
        for name, report in reports.items()
    ]
    return "\n".join((head, rule, *rows))


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def reports() -> dict[str, uq.Report]:
    """Reports of all forecasters."""
    return {name: uq.evaluate(data) for name, data in forecasters().items()}


def choose_a_metric(made: dict[str, uq.Report]) -> str:
    """The page whose marked block holds the table of scores, as it is today."""
    page = (DOCS / "choose-a-metric.md").read_text(encoding="utf-8")
    before, _, rest = page.partition("<!-- scores -->")
    _, _, after = rest.partition("<!-- end -->")
    return f"{before}<!-- scores -->\n\n{table(made)}\n\n<!-- end -->{after}"


def draw(made: dict[str, uq.Report]) -> None:
    """Draw every figure for the five forecasters, side by side."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    drawings = {spec.name: spec for spec in figures("regression").values()}
    for name in DRAWN:
        sheet = Figure(figsize=(13, 9), dpi=90, layout="compressed")
        places = list(sheet.subplots(2, 3).flat)
        places[-1].axis("off")
        for ax, forecaster in zip(places, READ, strict=False):
            single = PICTURES / "single.png"
            drawings[name].draw(made[forecaster]).savefig(single)
            ax.imshow(image.imread(single))
            ax.set_title(forecaster, fontsize=20)
            ax.axis("off")
            single.unlink()
        sheet.savefig(PICTURES / f"{name}.png")
