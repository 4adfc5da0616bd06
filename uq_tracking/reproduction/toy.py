"""The four uncertainties that MeRCI compares on its toy: predictions of ensembles of small networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uq_tracking.datasets.sample import Sample
from uq_tracking.reproduction.committee import Array, Committee, Training
from uq_tracking.reproduction.study import Study

FloatArray = npt.NDArray[np.float64]

METHODS = ("Multi Inits", "Bagging", "Monte Carlo Dropout", "Multi Epochs")
MEMBERS = 20
HALF_WIDTH = 4.0
"""Inputs are divided by half the width of their range before they reach a network."""


@dataclass(frozen=True, eq=False)
class Ensembles:
    """Outputs (members, n) of each method, and the predictions (n,) of the one network that all share."""

    base: FloatArray
    outputs: Mapping[str, FloatArray]

    @classmethod
    def trained(
        cls, study: Study, data: Sample, at: FloatArray, seed: int = 0, training: Training | None = None
    ) -> Ensembles:
        """Train every method on a toy set, and predict at inputs (n,).

        The shared predictions are those of the network whose last epochs and whose dropout passes make two of the
        uncertainties, without dropout.
        """
        rng = study.rng("networks", seed)
        training = training or Training()
        x, y = (data.x / HALF_WIDTH).astype(np.float32), data.y.astype(np.float32)
        where = (at / HALF_WIDTH).astype(np.float32)
        drawn = rng.integers(0, len(x), (MEMBERS, len(x)))
        snapshots: list[Array] = []
        one = Committee(1, training, rng)

        def keep(epoch: int) -> None:
            if epoch > training.epochs - MEMBERS:
                snapshots.append(one.predict(where)[0])

        one.fit(x[None], y[None], keep)
        same = np.tile(x, (MEMBERS, 1)), np.tile(y, (MEMBERS, 1))
        found = {
            "Multi Inits": Committee(MEMBERS, training, rng).fit(*same).predict(where),
            "Bagging": Committee(MEMBERS, training, rng).fit(x[drawn], y[drawn]).predict(where),
            "Monte Carlo Dropout": one.sample(where, MEMBERS)[:, 0],
            "Multi Epochs": np.stack(snapshots),
        }
        outputs = {name: values.astype(np.float64) for name, values in found.items()}
        return cls(one.predict(where)[0].astype(np.float64), outputs)
