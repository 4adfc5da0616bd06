"""Random uncertainty, perfectly calibrated
========================================

Why quantile calibration alone says little.

The experiment of Levi et al. 2019, section 4.1. The target is y ~ N(x, x^2) with x ~ U[.1, 1]. The model predicts
the mean x and a standard deviation drawn from U[1, 10], independently of x. Correcting the quantiles
(`cdf_isotonic`) makes `calibration_error` vanish, although the standard deviations are still random. `ence`, which
compares samples of similar standard deviation, is not fooled::

    python examples/gallery/levi.py [--log]

With ``--log``, both runs are logged to the active tracker, or to ./uq_runs.
"""

# sphinx_gallery_thumbnail_path = 'images/papers/levi-figure-1.png'
from __future__ import annotations

import argparse

import numpy as np

import uq_tracking as uq

N = 50_000
KEYS = ("calibration_error", "ence", "nll", "coverage_95", "ause_rmse", "n_merci", "cv")
METHODS = ("std_scaling", "cdf_isotonic", "std_isotonic", "std_binning")


def draw(rng: np.random.Generator, *, informed: bool = False) -> uq.Predictions:
    """One set of predictions, with random or with true standard deviations."""
    x = rng.uniform(0.1, 1.0, N)
    std = x if informed else rng.uniform(1.0, 10.0, N)
    return uq.Predictions(rng.normal(x, x), x, std)


def experiment(seed: int = 0, *, informed: bool = False) -> uq.Report:
    """Fit every method on one set, and score it on another."""
    rng = np.random.default_rng(seed)
    calibration, test = draw(rng, informed=informed), draw(rng, informed=informed)
    return uq.evaluate(test, calibration=calibration, recalibration=METHODS)


def show(title: str, report: uq.Report) -> None:
    """Print scores before and after."""
    widths = {key: max(len(key), 9) + 2 for key in KEYS}
    print(f"\n{title}\n{'':14}" + "".join(f"{key:>{width}}" for key, width in widths.items()))
    rows = {"before": report.scores}
    rows |= {name: entry["scores"] for name, entry in report.recalibration["methods"].items()}
    for name, scores in rows.items():
        cells = {key: f"{scores[key]:.5f}" if key in scores else "undefined" for key in KEYS}
        print(f"{name:14}" + "".join(f"{cells[key]:>{width}}" for key, width in widths.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Why quantile calibration alone says little.")
    parser.add_argument("--log", action="store_true", help="log both runs as well")
    options = parser.parse_args()
    for title, informed in (("random std", False), ("true std", True)):
        report = experiment(informed=informed)
        show(title, report)
        if options.log:
            uq.log(report, method=title)


if __name__ == "__main__":
    main()
