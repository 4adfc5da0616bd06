"""The models of Xiong et al.: a deep ensemble and energy-based regression, trained on each of the four problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

from uq_tracking.inputs import Predictions
from uq_tracking_papers.bundle import Bundle, Training, fit, gaussian_loss, moments
from uq_tracking_papers.datasets import Conditional
from uq_tracking_papers.energy import Effort, Energy
from uq_tracking_papers.study import Study

FloatArray = npt.NDArray[np.float64]

MEMBERS = 5
ENSEMBLE, MIXTURE, ENERGY, TRUTH = "Ensemble", "Ensemble as a mixture", "EBR", "True dist."
MODE = "True dist., a mode predicts"
TEST_SIZES = 4096, 2048, 2000
"""Sizes of the test sets, by the size of the study."""

ROOM = 0.3
"""How far the energy-based model's density extends beyond the training targets."""


@dataclass(frozen=True, eq=False)
class Models:
    """The models trained on one problem.

    Attributes
    ----------
    data : Conditional
    arrays : dict of arrays
        Test inputs ``x`` and targets ``y`` (n,), members' means and standard deviations over the fine inputs
        ``table_x``, the summary of the energy-based model at the test set, and its log density over ``image_x`` and
        ``image_y``.
    """

    data: Conditional
    arrays: Mapping[str, npt.NDArray[np.generic]]

    @classmethod
    def trained(cls, study: Study, data: Conditional) -> Models:
        """Train both models, or read them if they are already trained."""
        return cls(data, study.cached(f"models-{data.name}", lambda: _train(study, data)))

    def __getitem__(self, name: str) -> FloatArray:
        return np.asarray(self.arrays[name], dtype=np.float64)

    def ensemble_at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Members' means and standard deviations (5, n), interpolated between finely spaced inputs."""
        tables = (self["table_mean"], self["table_std"])
        return tuple(np.stack([np.interp(x, self["table_x"], row) for row in one]) for one in tables)  # type: ignore[return-value]

    def predictions(self) -> dict[str, Predictions]:
        """The test set as predicted by each method."""
        x, y = self["x"], self["y"]
        means, stds = self.ensemble_at(x)
        true_means, true_stds = self.data.components(x)
        found = {
            ENSEMBLE: Predictions.from_ensemble(y, means, stds),
            MIXTURE: Predictions.from_ensemble(y, means, stds, combine="mixture", quantile_scores=False),
            ENERGY: Predictions.from_density(
                y, pit=self["pit"], log_density=self["log_density"], y_pred=self["mode"], y_std=self["std"]
            ),
            TRUTH: true_predictions(self.data, x, y),
        }
        if len(true_means) > 1:
            z = (y - true_means) / true_stds
            found[MODE] = Predictions.from_density(
                y,
                pit=ndtr(z).mean(axis=0),
                log_density=logsumexp(norm.logpdf(z) - np.log(true_stds), axis=0) - np.log(len(z)),
                y_pred=true_means[0],
                y_std=found[TRUTH].std,
            )
        return found


def ensemble_drawer(models: Models) -> Callable[[int, np.random.Generator], Predictions]:
    """Predictions of the ensemble for new samples."""

    def draw(n: int, rng: np.random.Generator) -> Predictions:
        sample = models.data(n, rng, quantile_scores=False)
        return Predictions.from_ensemble(sample.y, *models.ensemble_at(sample.x))

    return draw


def true_predictions(data: Conditional, x: FloatArray, y: FloatArray) -> Predictions:
    """The true distribution as predictions; quantiles of mixtures are not computed."""
    means, stds = data.components(x)
    if len(means) == 1:
        return Predictions(y, means[0], stds[0])
    return Predictions.from_ensemble(y, means, stds, combine="mixture", quantile_scores=False)


def _train(study: Study, data: Conditional) -> dict[str, npt.ArrayLike]:
    size = study.pick(8192, 4096, 2048)
    seed = int(study.rng("networks", data.name).integers(2**31))
    training = data(size, study.rng("training", data.name), training=True, quantile_scores=False)
    test = data(study.pick(*TEST_SIZES), study.rng("test", data.name), quantile_scores=False)
    made: dict[str, npt.ArrayLike] = {"x": test.x, "y": test.y}
    made.update(_ensemble(study, data, training.x, training.y, seed))
    made.update(_energy(study, data, training.x, training.y, test.x, test.y, seed))
    return made


def _ensemble(
    study: Study, data: Conditional, x: FloatArray, y: FloatArray, seed: int
) -> dict[str, npt.ArrayLike]:
    hidden, epochs = study.pick(((128,) * 3, 40), ((64,) * 3, 30), ((64,) * 2, 25))
    networks = Bundle(MEMBERS, 1, hidden, 2, seed=seed)
    training = Training(epochs, 128, study.pick(1e-3, 2e-3, 1e-2))
    fit(
        networks,
        x[:, None],
        y,
        gaussian_loss,
        training,
        partial(study.progress, what=f"ensemble, {data.name}"),
    )
    fine = np.linspace(*data.domain, 4001)
    means, stds = moments(networks.predict(fine[:, None]))
    return {"table_x": fine, "table_mean": means, "table_std": stds}


def _energy(
    study: Study,
    data: Conditional,
    x: FloatArray,
    y: FloatArray,
    test_x: FloatArray,
    test_y: FloatArray,
    seed: int,
) -> dict[str, npt.ArrayLike]:
    hidden, effort = study.pick(
        ((64,) * 3, Effort(20, 64, 96, 3e-3)),
        ((48,) * 3, Effort(15, 64, 64, 5e-3)),
        ((32,) * 2, Effort(10, 128, 32, 1e-2)),
    )
    model = Energy(float(y.min()) - ROOM, float(y.max()) + ROOM, hidden, seed)
    model.fit(x, y, effort, partial(study.progress, what=f"energy, {data.name}"))
    image_x = np.linspace(*data.domain, 160)
    image_y = np.linspace(model.low, model.high, 200)
    image = model.log_density(image_x, image_y)
    return {**model.summary(test_x, test_y), "image_x": image_x, "image_y": image_y, "image": image}
