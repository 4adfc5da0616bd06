"""The uncertainties that MeRCI (2018) and n-MeRCI (2019) both compare, on the toy and on a map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from uq_tracking.curves.regression import merci_by_alpha, n_merci_by_alpha
from uq_tracking.demo.methods import FAST, Effort, predict
from uq_tracking.demo.network import Adam, Schedule
from uq_tracking.demo.terrain import Terrain, load_terrain
from uq_tracking.npz import Arrays
from uq_tracking.report import Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets import BIAS, TEST_RANGE, Sample, cubic, cubic_with_outliers
from uq_tracking_papers.study import FloatArray, Study

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Training:
    """Training of the networks: full batches with Adam at a constant rate, on standardized targets."""

    epochs: int = 600
    rate: float = 0.01
    hidden: int = 100
    dropout: float = 0.2


class Committee:
    """Networks with one input, trained side by side.

    Parameters
    ----------
    size : int
        Number of networks.
    training : Training
    rng : numpy.random.Generator
        Source of initial weights and dropout masks.
    """

    def __init__(self, size: int, training: Training, rng: np.random.Generator) -> None:
        self.training, self.rng = training, rng
        hidden = training.hidden
        self.parameters: list[Array] = [
            rng.standard_normal((size, hidden), np.float32) * np.float32(np.sqrt(2)),
            rng.uniform(-1, 1, (size, hidden)).astype(np.float32),
            rng.standard_normal((size, hidden), np.float32) * np.float32(np.sqrt(1 / hidden)),
            np.zeros((size, 1), np.float32),
        ]
        self.centre = self.scale = np.zeros((size, 1), np.float32)

    def fit(self, x: Array, y: Array, after_epoch: Callable[[int], None] | None = None) -> Committee:
        """Fit each network to its row of inputs ``x`` and targets ``y``, both (size, n)."""
        self.centre, self.scale = y.mean(1, keepdims=True), y.std(1, keepdims=True)
        targets = (y - self.centre) / self.scale
        adam = Adam([(self.parameters[0], self.parameters[1]), (self.parameters[2], self.parameters[3])])
        for epoch in range(1, self.training.epochs + 1):
            first, second, third, fourth = self._gradients(x, targets)
            adam.step([(first, second), (third, fourth)], self.training.rate)
            if after_epoch is not None:
                after_epoch(epoch)
        return self

    def predict(self, x: Array) -> Array:
        """Outputs (size, n) at inputs (n,), without dropout."""
        return self.centre + self.scale * self._output(self._hidden(x[None]))

    def sample(self, x: Array, passes: int) -> Array:
        """Outputs (passes, size, n) at inputs (n,) with dropout active."""
        hidden = self._hidden(x[None])
        draws = [self._output(hidden * self._mask()) for _ in range(passes)]
        return self.centre + self.scale * np.stack(draws)

    def _hidden(self, x: Array) -> Array:
        weights, bias = self.parameters[:2]
        sums: Array = x[:, :, None] * weights[:, None] + bias[:, None]
        np.maximum(sums, 0, out=sums)
        return sums

    def _output(self, hidden: Array) -> Array:
        weights, bias = self.parameters[2:]
        outputs: Array = (hidden @ weights[:, :, None])[:, :, 0] + bias
        return outputs

    def _mask(self, samples: int = 1) -> Array:
        """1/(1 - dropout) for units that stay, 0 for the others; (size, samples, hidden)."""
        size, hidden = self.parameters[0].shape
        kept = self.rng.random((size, samples, hidden), np.float32) >= self.training.dropout
        mask: Array = kept.astype(np.float32) / np.float32(1 - self.training.dropout)
        return mask

    def _gradients(self, x: Array, y: Array) -> list[Array]:
        """Gradient of half the mean squared error of each network, with dropout active."""
        hidden = self._hidden(x)
        active = (hidden > 0) * self._mask(x.shape[1])
        hidden = hidden * active
        residual = (self._output(hidden) - y) / np.float32(x.shape[1])
        back = residual[:, :, None] * self.parameters[2][:, None] * active
        return [
            (x[:, None] @ back)[:, 0],
            back.sum(1),
            (residual[:, None] @ hidden)[:, 0],
            residual.sum(1, keepdims=True),
        ]


SET_UP = (
    f"The papers do not state the outliers' bias, the range of the test set, or how the networks are trained. Here "
    f"the bias is {BIAS:g}, x of the test set is uniform in [{TEST_RANGE[0]:g}, {TEST_RANGE[1]:g}], and one hidden "
    f"layer of 100 rectified linear units with dropout .2 is trained for 600 full-batch steps of Adam (rate .01)."
)
METHODS = ("Multi Inits", "Bagging", "Monte Carlo Dropout", "Multi Epochs")
SCORES = ("quadratic_score", "log_score", "spherical_score", "crps", "merci", "n_merci", "mae")
ALPHAS = np.arange(1, 101) / 100
MEMBERS = 20
HALF_WIDTH = 4.0
"""Inputs are divided by half the width of their range before they reach a network."""
TESTED = 1000
AT_ONCE = 10
"""Repeats stored together."""
DENSITY_FLOOR = 1e-3
"""Added to the density inside the log. The papers' log scores never fall below -6.9 = log 0.001, even where the
quadratic score implies a density of almost zero."""
STD_FLOOR = 1e-3


@dataclass(frozen=True, eq=False)
class Ensembles:
    """Outputs (members, n) of each method, and the predictions (n,) of the one network shared by all."""

    base: FloatArray
    outputs: Mapping[str, FloatArray]

    @classmethod
    def trained(
        cls,
        data: Sample,
        at: FloatArray,
        rng: np.random.Generator,
        members: int = MEMBERS,
        training: Training | None = None,
    ) -> Ensembles:
        """Train every method on a toy set, and predict at inputs (n,).

        The shared predictions are those, without dropout, of the network whose last epochs and dropout passes make
        two of the uncertainties.
        """
        training = training or Training()
        x, y = (data.x / HALF_WIDTH).astype(np.float32), data.y.astype(np.float32)
        where = (at / HALF_WIDTH).astype(np.float32)
        drawn = rng.integers(0, len(x), (members, len(x)))
        snapshots: list[Array] = []
        one = Committee(1, training, rng)

        def keep(epoch: int) -> None:
            if epoch > training.epochs - members:
                snapshots.append(one.predict(where)[0])

        one.fit(x[None], y[None], keep)
        same = np.tile(x, (members, 1)), np.tile(y, (members, 1))
        found = {
            "Multi Inits": Committee(members, training, rng).fit(*same).predict(where),
            "Bagging": Committee(members, training, rng).fit(x[drawn], y[drawn]).predict(where),
            "Monte Carlo Dropout": one.sample(where, members)[:, 0],
            "Multi Epochs": np.stack(snapshots),
        }
        outputs = {name: values.astype(np.float64) for name, values in found.items()}
        return cls(one.predict(where)[0].astype(np.float64), outputs)

    def std(self, method: str) -> FloatArray:
        """Standard deviation over the members (n,)."""
        return np.asarray(np.maximum(self.outputs[method].std(0), STD_FLOOR))


def test_set(study: Study) -> Sample:
    """The test set for every repeat."""
    return cubic(TESTED, np.random.default_rng([study.seed, 0]))


def ensembles(study: Study, repeat: int, at: FloatArray) -> tuple[Sample, Ensembles]:
    """The training set of a repeat, and the ensembles trained on it."""
    rng = np.random.default_rng([study.seed, 1, repeat])
    data = cubic_with_outliers(20, rng)
    training = Training(epochs=study.pick(600, 600, 300))
    return data, Ensembles.trained(data, at, rng, study.pick(MEMBERS, MEMBERS, 10), training)


def repeats(study: Study) -> Arrays:
    """Every score of every repeat.

    Returns
    -------
    dict of arrays
        ``common`` and ``own`` (repeats, methods, scores), with the shared predictions and with each method's mean;
        ``merci`` (repeats, methods, alphas) and ``constant`` (repeats, alphas) with the shared predictions;
        ``n_merci`` (repeats, methods, alphas) with each method's mean.
    """
    count = study.pick(200, 20, 10)
    parts = [
        study.cached(f"repeats-{start:04d}", partial(_some_repeats, study, start), of="toy")
        for start in study.progress(range(0, count, AT_ONCE), "toy", total=count // AT_ONCE)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _some_repeats(study: Study, start: int) -> Arrays:
    rows = [_repeat(study, repeat) for repeat in range(start, start + AT_ONCE)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _repeat(study: Study, repeat: int) -> Arrays:
    test = test_set(study)
    _, found = ensembles(study, repeat, test.x)
    own, common, merci, n_merci = [], [], [], []
    constant = np.empty(0)
    for method in METHODS:
        mean, std = found.outputs[method].mean(0), found.std(method)
        shared = scored(test.y, found.base, std)
        by_alpha = merci_by_alpha(_statistics(shared), Settings(), ALPHAS)
        merci.append(by_alpha["merci"])
        constant = by_alpha["constant"]
        report = scored(test.y, mean, std)
        curve = n_merci_by_alpha(_statistics(report), Settings(), ALPHAS)
        line = np.full(len(ALPHAS), np.nan)
        line[np.rint(100 * curve["alpha"]).astype(int) - 1] = curve["n_merci"]
        n_merci.append(line)
        common.append(numbers(shared, test.y, found.base, std))
        own.append(numbers(report, test.y, mean, std))
    arrays = {"common": common, "own": own, "merci": merci, "n_merci": n_merci, "constant": constant}
    return {name: np.asarray(values) for name, values in arrays.items()}


def scored(y: FloatArray, mean: FloatArray, std: FloatArray) -> Report:
    """The report with the scores shown in the tables."""
    return evaluate(y, mean, std, metrics=[key for key in SCORES if key != "log_score"])


def _statistics(report: Report) -> Statistics:
    if report.statistics is None:
        raise TypeError("a report of arrays has statistics")
    return report.statistics


def numbers(report: Report, y: FloatArray, mean: FloatArray, std: FloatArray) -> list[float]:
    """The scores of the tables, NaN where undefined."""
    scores = {**report.scores, "log_score": floored_log_score((y - mean) / std, std)}
    return [scores.get(key, np.nan) for key in SCORES]


def floored_log_score(z: FloatArray, std: FloatArray) -> float:
    """Mean log of a Gaussian density plus `DENSITY_FLOOR`."""
    density = np.exp(-0.5 * z**2) / (std * np.sqrt(2 * np.pi))
    return float(np.mean(np.log(density + DENSITY_FLOOR)))


MAPPED = {
    "Multi Inits": "multi-inits",
    "Bagging": "bagging",
    "Monte Carlo Dropout": "mc-dropout",
    "Multi Epochs": "multi-epochs",
    "Multi Networks": "multi-networks",
    "Learned Error": "learned-error",
}
COMMON = "Multi Inits"
"""The method whose predictions all methods share if the predictor is common; the paper does not say which it uses."""

SMALLEST = Effort(Schedule(epochs=15, batch=32), members=4, passes=8)
"""For tests."""
TERRAIN_SET_UP = (
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
        name: study.cached(key, partial(_estimate, study, terrain, name), of="terrain")
        for name, key in study.progress(MAPPED.items(), "terrain", total=len(MAPPED))
    }
    return Estimates(
        terrain,
        {name: arrays["mean"].astype(np.float64) for name, arrays in found.items()},
        {name: arrays["std"].astype(np.float64) for name, arrays in found.items()},
    )


def _estimate(study: Study, terrain: Terrain, name: str) -> Arrays:
    """Predict with one method, and log it as a run."""
    effort = study.pick(Effort(), FAST, SMALLEST)
    found = predict(MAPPED[name], terrain, effort=effort, seed=study.seed)
    study.log(terrain.target, found.mean, found.std, method=name, unit="m", figures=False, maps=False)
    return {"mean": found.mean.astype(np.float32), "std": found.std.astype(np.float32)}
