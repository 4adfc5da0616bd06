"""The six uncertainties of MeRCI (2018, section 5) on a map: terrain with few measured cells.

It stands in for the papers' depth maps: a real surface, with large networks replaced by the demo's small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from uq_tracking.demo.methods import FAST, Effort, predict
from uq_tracking.demo.network import Schedule
from uq_tracking.demo.terrain import Terrain, load_terrain
from uq_tracking.npz import Arrays
from uq_tracking_papers.study import Study

FloatArray = npt.NDArray[np.float64]

METHODS = {
    "Multi Inits": "multi-inits",
    "Bagging": "bagging",
    "Monte Carlo Dropout": "mc-dropout",
    "Multi Epochs": "multi-epochs",
    "Multi Networks": "multi-networks",
    "Learned Error": "learned-error",
}
COMMON = "Multi Inits"
"""The method whose predictions all methods share if the predictor is common; the paper does not say which it uses."""
SHARED = "terrain"
SMALLEST = Effort(Schedule(epochs=15, batch=32), members=4, passes=8)
"""For tests."""
SET_UP = (
    "The paper's networks estimate depth from single images of NYU Depth v2; here small networks complete the "
    "digital elevation model around Jacksboro, Tennessee, of which 5 % of the cells were measured (heights in "
    "metres). So the paper's numbers are of other data, and only orders and signs can be compared. Learned Error "
    "learns here from the errors at measurements that its predictor has not seen; the paper does not say from which."
)


@dataclass(frozen=True, eq=False)
class Estimates:
    """A terrain, and mean and standard deviation (rows, columns) of each method."""

    terrain: Terrain
    mean: Mapping[str, FloatArray]
    std: Mapping[str, FloatArray]


def estimates(study: Study) -> Estimates:
    """Predict with every method: the whole terrain at full size, else its small crop."""
    terrain = load_terrain(study.seed, fast=study.quick)
    found = {
        name: study.cached(key, partial(_estimate, study, terrain, name), of=SHARED)
        for name, key in study.progress(METHODS.items(), "terrain", total=len(METHODS))
    }
    return Estimates(
        terrain,
        {name: arrays["mean"].astype(np.float64) for name, arrays in found.items()},
        {name: arrays["std"].astype(np.float64) for name, arrays in found.items()},
    )


def _estimate(study: Study, terrain: Terrain, name: str) -> Arrays:
    """Predict with one method, and log it as a run."""
    effort = study.pick(Effort(), FAST, SMALLEST)
    found = predict(METHODS[name], terrain, effort=effort, seed=study.seed)
    study.log(terrain.target, found.mean, found.std, method=name, unit="m", figures=False, maps=False)
    return {"mean": found.mean.astype(np.float32), "std": found.std.astype(np.float32)}
