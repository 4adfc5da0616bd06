"""Small seeded samples to log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from uq_tracking.curves import Curve
from uq_tracking.inputs import Predictions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sample_predictions(cases: int = 2, side: int = 20, seed: int = 0) -> Predictions:
    """Predictions of pictures with honest standard deviations and some missing targets.

    Parameters
    ----------
    cases, side
        The arrays have shape (cases, side, side).
    seed
        Random seed.
    """
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(cases, side, side))
    std = rng.uniform(0.1, 1.0, size=target.shape)
    mean = target + std * rng.standard_normal(target.shape)
    target[:, 0, :3] = np.nan
    return Predictions(target, mean, std, unit="m")


def sample_curve(values: tuple[float, ...] = (0.0, 0.5, 0.75, 1.0), name: str = "sample") -> Curve:
    """A curve over 0 ... 100 per cent through the given values."""
    steps = np.linspace(0, 100, len(values)).round().astype(np.int64)
    columns = {"expected": steps / 100, "observed": np.asarray(values, dtype=np.float64)}
    return Curve(
        name=name,
        columns=columns,
        x="expected",
        main="observed",
        x_label="expected share",
        y_label="observed share",
        title="A sample curve",
        steps=steps,
    )


def sample_figure(shade: float = 0.5) -> Figure:
    """A uniformly grey figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(1, 1), dpi=40, facecolor=(shade, shade, shade))
