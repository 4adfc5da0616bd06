from __future__ import annotations

import numpy as np
import pytest

from tests.wandb_server.fixtures import wandb_home, wandb_offline, wandb_online
from uq_tracking.curves import Curve
from uq_tracking_wandb.backend import WandbBackend

__all__ = ["wandb_home", "wandb_offline", "wandb_online"]


@pytest.fixture
def backend() -> WandbBackend:
    return WandbBackend()


@pytest.fixture
def curve() -> Curve:
    """One line: a calibration curve of 11 points."""
    p = np.linspace(0.0, 1.0, 11)
    columns = {"expected": p, "observed": p**2}
    steps = np.arange(0, 101, 10)
    return Curve("calibration", columns, "expected", "observed", "level", "share", "Calibration", None, steps)


@pytest.fixture
def sparsification() -> Curve:
    """Three lines of 500 points and a count."""
    f = np.linspace(0.0, 0.99, 500)
    columns = {
        "fraction": f,
        "model": 1 - f / 2,
        "oracle": 1 - f,
        "random": np.ones_like(f),
        "count": 1e6 * (1 - f),
    }
    labels = ("fraction removed", "RMSE", "Sparsification")
    return Curve("sparsification_rmse", columns, "fraction", "model", *labels, None, np.arange(500))
