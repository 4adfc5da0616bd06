"""Which organ is stated too often?
================================

Five classes, twelve patients, three sets of probabilities.

::

    python examples/gallery/organs.py

Maps of organs of random place and size, whose labels follow the first set; the second states one organ three times
too often, as odds; the third states everything too sharply. Logs all three to MLflow, and writes organs.html.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage, special

import uq_tracking as uq

NAMES = ["background", "liver", "spleen", "kidney", "tumour"]
SIZE = 96
PLACES = {1: (44, 34, 24, 20), 2: (40, 74, 12, 9), 3: (70, 64, 9, 7)}
"""Row, column, and half-axes of liver, spleen and kidney, in pixels."""


def smooth(rng: np.random.Generator, sigma: float) -> np.ndarray:
    """Return a random field with values near each other alike, of standard deviation 1."""
    field = ndimage.gaussian_filter(rng.normal(size=(SIZE, SIZE)), sigma)
    return field / field.std()


def patient(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of a patient, shape (96, 96), and the probabilities they follow, shape (96, 96, 5)."""
    row, column = np.mgrid[:SIZE, :SIZE]
    organs = np.zeros((SIZE, SIZE), dtype=int)
    for organ, (y, x, high, wide) in PLACES.items():
        y, x = y + rng.normal(0, 3), x + rng.normal(0, 3)
        scale = np.exp(rng.normal(0, 0.12))
        organs[np.hypot((row - y) / (high * scale), (column - x) / (wide * scale)) < 1] = organ
    y, x, radius = 44 + rng.normal(0, 6), 34 + rng.normal(0, 5), 3 + rng.gamma(4, 0.5)
    organs[(np.hypot(row - y, column - x) < radius) & (organs == 1)] = 4
    blurred = np.stack([ndimage.gaussian_filter((organs == k) * 1.0, 2.0) for k in range(5)], axis=-1)
    fields = np.stack([smooth(rng, 3.0) for _ in NAMES], axis=-1)
    logits = 1.2 * np.log(np.clip(blurred, 1e-4, None)) + 0.5 * fields + 0.35 * rng.normal(size=5)
    probs = special.softmax(logits, axis=-1)
    alike = np.clip(special.ndtr(smooth(rng, 1.2)), 0, 0.999999)
    return (probs.cumsum(axis=-1) > alike[..., None]).argmax(axis=-1), probs


def patients(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and probabilities of twelve patients."""
    rng = np.random.default_rng(seed)
    labels, probs = zip(*(patient(rng) for _ in range(12)), strict=True)
    return np.stack(labels), np.stack(probs)


def methods(probs: np.ndarray) -> dict[str, np.ndarray]:
    """Return the probabilities as they are, with one organ stated too often, and sharpened."""
    too_sure = probs * np.asarray([1, 1, 1, 1, 3])
    return {
        "calibrated": probs,
        "too sure of the tumour": too_sure / too_sure.sum(axis=-1, keepdims=True),
        "too sure of everything": special.softmax(1.6 * np.log(probs), axis=-1),
    }


def main() -> None:
    """Log, and compare."""
    import mlflow

    mlflow.set_experiment("organs")
    labels, probs = patients()
    for method, stated in methods(probs).items():
        with mlflow.start_run(run_name=method):
            report = uq.log(
                labels, probs=stated, groups=np.arange(12), classes=NAMES, by="boundary", method=method
            )
        print(f"\n{method}: {report.verdict}")
        print("ECE by place:", {place: round(part.scores["ece"], 4) for place, part in report.strata.items()})
    uq.compare("mlflow:organs").to_html("organs.html")


if __name__ == "__main__":
    main()
