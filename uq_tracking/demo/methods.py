"""Seven ways to predict with uncertainty: the six compared in MeRCI (2018), and a Gaussian process.

One small multilayer perceptron in numpy, with the two things scikit-learn's lacks (dropout and snapshots), serves
every method that needs a network, so the methods differ only in where their uncertainty comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from uq_tracking.demo.terrain import Heights, Positions, Terrain
from uq_tracking.errors import SettingsError

Array = npt.NDArray[np.float32]
Layers = list[tuple[Array, Array]]
"""Weights (inputs, outputs) and biases (outputs,) from the first layer to the last."""

LENGTH_SCALE = 20.0
"""Distance, in cells, over which the phase of a typical wave advances by one radian."""
WAVES = 128
"""Number of random plane waves."""
ROWS_AT_ONCE = 8192
"""Cells predicted at a time, so that their features stay in cache."""


RATE = 8e-3
"""Learning rate at the start of a training; it falls to zero along half a cosine."""


class Network:
    """ReLU layers of ``hidden`` units and one linear output, fitted with Adam to squared error.

    In each training pass, ``dropout`` switches off this share of the hidden units.
    ``rng`` makes the initial weights (normal with variance 2/inputs: He et al. 2015, eq. 10), the order of the
    minibatches and the dropout masks while training.
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], rng: np.random.Generator, dropout: float = 0.0
    ) -> None:
        self.dropout, self.rng = dropout, rng
        self.layers: Layers = []
        for rows, columns in pairwise([inputs, *hidden, 1]):
            weights = rng.standard_normal((rows, columns), np.float32) * np.float32(np.sqrt(2 / rows))
            self.layers.append((weights, np.zeros(columns, np.float32)))

    def fit(
        self, x: Array, y: Array, epochs: int, batch: int, after_epoch: Callable[[int], None] | None = None
    ) -> Network:
        """Fit to features ``x`` (n, inputs) and standardized targets ``y`` (n,).

        ``after_epoch`` is called with 1, 2, ... after each pass through the data.
        """
        adam = Adam(self.layers)
        batches = -(-len(y) // batch)
        rates = RATE * 0.5 * (1 + np.cos(np.pi * np.arange(epochs * batches) / (epochs * batches)))
        for epoch, epoch_rates in enumerate(rates.reshape(epochs, batches), start=1):
            parts = np.array_split(self.rng.permutation(len(y)), batches)
            for rows, rate in zip(parts, epoch_rates, strict=True):
                adam.step(self._gradients(x[rows], y[rows]), rate)
            if after_epoch is not None:
                after_epoch(epoch)
        return self

    def predict(self, x: Array) -> Array:
        """Outputs (n,) for features (n, inputs), without dropout."""
        for weights, bias in self.layers[:-1]:
            x = np.maximum(x @ weights + bias, 0)
        return self._output(x)

    def sample(self, x: Array, passes: int, rng: np.random.Generator) -> Array:
        """Outputs (passes, n) with dropout active: Monte Carlo dropout (Gal and Ghahramani 2016)."""
        (weights, bias), *rest = self.layers[:-1]
        first = np.maximum(x @ weights + bias, 0)  # the same in every pass
        outputs = np.empty((passes, len(x)), np.float32)
        for row in outputs:
            hidden = first * self._mask(first.shape, rng)
            for weights, bias in rest:
                hidden = np.maximum(hidden @ weights + bias, 0)
                hidden *= self._mask(hidden.shape, rng)
            row[:] = self._output(hidden)
        return outputs

    def _output(self, hidden: Array) -> Array:
        weights, bias = self.layers[-1]
        return (hidden @ weights + bias)[:, 0]

    def _mask(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """1/(1 - dropout) for units that stay and 0 for the others, so the expected activation is unchanged."""
        kept = rng.random(shape, np.float32) >= self.dropout
        return kept.astype(np.float32) / np.float32(1 - self.dropout)

    def _gradients(self, x: Array, y: Array) -> Layers:
        """Gradient of the mean loss with respect to every weight and bias, with dropout active."""
        inputs: list[Array] = [x]
        slopes: list[Array] = []
        for weights, bias in self.layers[:-1]:
            sums = inputs[-1] @ weights + bias
            slope = (sums > 0).astype(np.float32)
            if self.dropout > 0:
                slope *= self._mask(slope.shape, self.rng)
            slopes.append(slope)
            inputs.append(sums * slope)
        # The derivative of half the squared error with respect to each output.
        delta: Array = (self._output(inputs[-1]) - y)[:, None] / np.float32(len(y))
        found: Layers = [(inputs[-1].T @ delta, delta.sum(0))]
        for layer, slope in zip(range(len(slopes), 0, -1), reversed(slopes), strict=True):
            delta = (delta @ self.layers[layer][0].T) * slope
            found.append((inputs[layer - 1].T @ delta, delta.sum(0)))
        return found[::-1]


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1); updates ``layers`` in place."""

    def __init__(self, layers: Layers) -> None:
        self.parameters = [array for layer in layers for array in layer]
        self.first = [np.zeros_like(array) for array in self.parameters]
        self.second = [np.zeros_like(array) for array in self.parameters]
        self.steps = 0

    def step(self, gradients: Layers, rate: float) -> None:
        """Update the layers once against ``gradients`` with learning rate ``rate``."""
        self.steps += 1
        bias1, bias2 = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        flat = [array for layer in gradients for array in layer]
        for parameter, gradient, first, second in zip(
            self.parameters, flat, self.first, self.second, strict=True
        ):
            first += (1 - 0.9) * (gradient - first)
            second += (1 - 0.999) * (gradient * gradient - second)
            parameter -= float(rate) / bias1 * first / (np.sqrt(second / bias2) + 1e-8)


class HeightModel:
    """Heights in metres from positions in cells: sines and cosines of random plane waves, then the network.

    From raw positions the network would only learn smooth hills. The waves are those of Rahimi and Recht (2007), with
    the spectrum of a Matern-3/2 kernel: frequencies follow a bivariate t-distribution with three degrees of freedom.
    """

    def __init__(self, seed: int, hidden: Sequence[int] = (64, 64), dropout: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        normal = rng.standard_normal((2, WAVES))
        spread = np.sqrt(rng.chisquare(3, WAVES) / 3)
        self.frequencies = (normal / spread / LENGTH_SCALE).astype(np.float32)
        self.network = Network(2 * WAVES, hidden, rng, dropout)
        self.mean, self.scale = 0.0, 1.0

    def fit(
        self,
        positions: Positions,
        heights: Heights,
        effort: Effort,
        after_epoch: Callable[[int], None] | None = None,
    ) -> HeightModel:
        """Fit to measurements; ``after_epoch`` is called with the number of epochs done."""
        self.mean, self.scale = float(heights.mean()), float(heights.std())
        standardized = ((heights - self.mean) / self.scale).astype(np.float32)
        self.network.fit(self._features(positions), standardized, effort.epochs, effort.batch, after_epoch)
        return self

    def predict(self, positions: Positions) -> Heights:
        """Heights (n,)."""
        return self._heights(positions, self.network.predict)

    def sample(self, positions: Positions, passes: int, seed: int) -> Heights:
        """Heights (passes, n) from passes with dropout active."""
        rng = np.random.default_rng(seed)
        return self._heights(positions, lambda x: self.network.sample(x, passes, rng))

    def _features(self, positions: Positions) -> Array:
        phase = positions.astype(np.float32) @ self.frequencies
        return np.concatenate([np.sin(phase), np.cos(phase)], axis=1)

    def _heights(self, positions: Positions, outputs: Callable[[Array], Array]) -> Heights:
        starts = range(0, len(positions), ROWS_AT_ONCE)
        blocks = [outputs(self._features(positions[start : start + ROWS_AT_ONCE])) for start in starts]
        standardized: Heights = np.concatenate(blocks, axis=-1).astype(np.float64)
        return self.mean + self.scale * standardized


Map = npt.NDArray[np.float64]

HIDDEN: tuple[tuple[int, ...], ...] = (
    (64, 64), (128,), (64, 64, 64), (32, 32), (128, 64), (32, 32, 32),
    (128, 128), (64,), (96, 48), (64, 32, 16), (48, 48, 48, 48), (64, 128),
)  # fmt: skip
"""Hidden layers of the different networks."""
WIDE, DROPPED = (128, 128), 0.1
"""Hidden layers of the network with dropout, which leaves only part of it active, and the share of units dropped."""

FOLDS = 4
NEIGHBORS_OF_ERROR = 8
SMALLEST_ERROR = 0.5
"""Metres: the measurements are whole metres, so smaller errors carry no information."""
LOG_STD_OVER_ERROR = 0.5 * (np.euler_gamma + np.log(2))
"""Mean of -log |z| for a standard normal z: converts the mean log error to the log standard deviation."""
ERROR_HIDDEN, ERROR_EPOCHS = (16,), 30

FITTED_TO = 800
"""Number of measurements to which the kernel is fitted; the cost grows with its cube."""
NEIGHBORS = 16
CELLS_AT_ONCE = 4096
ROUNDING = 1 / 12
"""Variance, in square metres, of rounding to whole metres: the noise of the measurements."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Predictive mean and standard deviation of every cell, in metres; float64 (rows, columns)."""

    mean: Map
    std: Map


@dataclass(frozen=True)
class Effort:
    """Computing effort of a method: training of each network, ensemble members, dropout passes."""

    epochs: int = 60
    batch: int = 256
    members: int = 12
    passes: int = 30


FAST = Effort(batch=32, members=6, passes=15)
"""For the small crop of the terrain."""

MethodFunction = Callable[[Terrain, Effort, int], Estimate]
"""A method's function: from terrain, effort and seed to an estimate for every cell."""


def _seeds(seed: int, method: str, count: int) -> list[int]:
    """``count`` seeds that depend only on the demo's seed and the method's name."""
    sequence = np.random.SeedSequence([seed, *method.encode()])
    return [int(word) for word in sequence.generate_state(count)]


def _spread(terrain: Terrain, members: Sequence[Map]) -> Estimate:
    """Mean and standard deviation over the members of an ensemble, as in MeRCI (2018), section 5."""
    heights = np.stack(members)
    return Estimate(heights.mean(0).reshape(terrain.shape), heights.std(0).reshape(terrain.shape))


def _networks(
    terrain: Terrain,
    effort: Effort,
    seeds: Sequence[int],
    hidden: Sequence[tuple[int, ...]] | None = None,
    bootstrap: bool = False,
) -> Estimate:
    """The disagreement of networks of different seeds, hidden layers or training sets."""
    n, members = len(terrain.heights), []
    for number, seed in enumerate(seeds):
        drawn = np.random.default_rng(seed).integers(0, n, n) if bootstrap else slice(None)
        model = HeightModel(seed, hidden[number]) if hidden else HeightModel(seed)
        model.fit(terrain.positions[drawn], terrain.heights[drawn], effort)
        members.append(model.predict(terrain.cells))
    return _spread(terrain, members)


def multi_inits(terrain: Terrain, effort: Effort, seed: int) -> Estimate:
    """Networks with different random initializations (Lakshminarayanan et al. 2017)."""
    return _networks(terrain, effort, _seeds(seed, "multi-inits", effort.members))


def bagging(terrain: Terrain, effort: Effort, seed: int) -> Estimate:
    """Networks trained on bootstrap samples of the measurements (Breiman 1996)."""
    return _networks(terrain, effort, _seeds(seed, "bagging", effort.members), bootstrap=True)


def multi_networks(terrain: Terrain, effort: Effort, seed: int) -> Estimate:
    """Networks of different depth and width."""
    hidden = HIDDEN[: effort.members]
    return _networks(terrain, effort, _seeds(seed, "multi-networks", len(hidden)), hidden)


def multi_epochs(terrain: Terrain, effort: Effort, seed: int) -> Estimate:
    """Snapshots of one network from several epochs in the second half of its training."""
    model = HeightModel(_seeds(seed, "multi-epochs", 1)[0])
    epochs = effort.epochs
    kept = {round(epoch) for epoch in np.linspace(epochs / 2, epochs, effort.members)}
    members: list[Map] = []

    def keep(epoch: int) -> None:
        if epoch in kept:
            members.append(model.predict(terrain.cells))

    model.fit(terrain.positions, terrain.heights, effort, after_epoch=keep)
    return _spread(terrain, members)


def mc_dropout(terrain: Terrain, effort: Effort, seed: int) -> Estimate:
    """One network whose dropout stays active during prediction (Gal and Ghahramani 2016)."""
    model_seed, pass_seed = _seeds(seed, "mc-dropout", 2)
    model = HeightModel(model_seed, WIDE, DROPPED).fit(terrain.positions, terrain.heights, effort)
    return _spread(terrain, list(model.sample(terrain.cells, effort.passes, pass_seed)))


def learned_error(terrain: Terrain, effort: Effort, seed: int) -> Estimate:
    """A second network predicts |error| from the relief around a cell and its distance to measurements.

    It learns from errors at measurements the first has not seen. On its own training data a network's errors are far
    too small: learned from those, nominal 95 % intervals contained about a third of the truth here.
    """
    height_seed, fold_seed, error_seed = _seeds(seed, "learned-error", 3)
    shuffle_seed, *fold_seeds = _seeds(fold_seed, "folds", FOLDS + 1)
    n = len(terrain.heights)
    fold_of = np.random.default_rng(shuffle_seed).permutation(n) % FOLDS
    errors, clues = np.empty(n), np.empty((n, 3))
    for fold, fold_seed in enumerate(fold_seeds):
        held = fold_of == fold
        positions, heights = terrain.positions[~held], terrain.heights[~held]
        model = HeightModel(fold_seed).fit(positions, heights, effort)
        errors[held] = np.abs(model.predict(terrain.positions[held]) - terrain.heights[held])
        clues[held] = surroundings(terrain.positions[held], positions, heights)
    model = HeightModel(height_seed)
    model.fit(terrain.positions, terrain.heights, effort)
    at = surroundings(terrain.cells, terrain.positions, terrain.heights)
    std = learned_stds(clues, errors, at, error_seed, effort.batch)
    return Estimate(model.predict(terrain.cells).reshape(terrain.shape), std.reshape(terrain.shape))


def surroundings(at: Positions, positions: Positions, heights: Heights) -> Map:
    """Predictors of a large error: log distances to the nearest measurements, and log relief among them; (n, 3)."""
    distances, nearest = cKDTree(positions).query(at, NEIGHBORS_OF_ERROR)
    relief = heights[nearest].std(1)
    return np.asarray(np.log1p(np.column_stack([distances[:, 0], distances.mean(1), relief])))


def learned_stds(clues: Map, errors: Heights, at: Map, seed: int, batch: int) -> Heights:
    """Standard deviations (m,) where the clues are ``at`` (m, 3), learned from clues (n, 3) and absolute errors (n,).

    The log of the error is fitted, so they are positive by construction.
    """
    logs = np.log(np.maximum(errors, SMALLEST_ERROR))
    x, wanted = (((part - clues.mean(0)) / clues.std(0)).astype(np.float32) for part in (clues, at))
    y = ((logs - logs.mean()) / logs.std()).astype(np.float32)
    network = Network(3, ERROR_HIDDEN, np.random.default_rng(seed)).fit(x, y, ERROR_EPOCHS, batch)
    found = logs.mean() + logs.std() * network.predict(wanted).astype(np.float64)
    return np.asarray(np.exp(found + LOG_STD_OVER_ERROR))


@dataclass(frozen=True)
class Matern:
    """Covariance of heights by distance, Matern with smoothness 3/2: ``std`` in metres, ``length`` in cells."""

    std: float
    length: float

    def __call__(self, distance: Map) -> Map:
        """Covariance in square metres; the shape of ``distance``."""
        scaled = np.sqrt(3) * distance / self.length
        return np.asarray(self.std**2 * (1 + scaled) * np.exp(-scaled))


def gaussian_process(terrain: Terrain, effort: Effort, seed: int) -> Estimate:
    """A stationary Gaussian process: its uncertainty depends on the distance to measurements, not on the relief.

    Scikit-learn fits its kernel, and each cell is predicted from the nearest measurements (Datta et al. 2016; in
    geostatistics, kriging with a moving neighborhood): many systems of 16 equations replace one of 7000. More distant
    measurements are screened by nearer ones and change little.
    """
    level = terrain.heights.mean()
    kernel = fit_kernel(terrain.positions, terrain.heights - level, centre=np.array(terrain.shape) / 2)
    tree = cKDTree(terrain.positions)
    blocks = np.array_split(terrain.cells, -(-len(terrain.cells) // CELLS_AT_ONCE))
    means, stds = [], []
    for block in blocks:
        distances, nearest = tree.query(block, NEIGHBORS)
        near, heights = terrain.positions[nearest], terrain.heights[nearest] - level
        mean, std = condition(kernel, near, heights, distances)
        means.append(level + mean)
        stds.append(std)
    return Estimate(np.concatenate(means).reshape(terrain.shape), np.concatenate(stds).reshape(terrain.shape))


def fit_kernel(positions: Positions, heights: Heights, centre: Positions) -> Matern:
    """Maximise the marginal likelihood of the measurements around ``centre``, heights about zero.

    A patch, not a random draw from everywhere: thinned out, measurements would not show how rough the terrain is over
    the distances to be bridged.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    patch = np.argsort(np.linalg.norm(positions - centre, axis=1), kind="stable")[:FITTED_TO]
    variance = float(heights.var())
    start = kernels.ConstantKernel(variance, (variance / 100, variance * 100)) * kernels.Matern(
        20.0, (1.0, 1000.0), nu=1.5
    )
    fitted = GaussianProcessRegressor(start, alpha=ROUNDING).fit(positions[patch], heights[patch]).kernel_
    return Matern(float(np.sqrt(fitted.k1.constant_value)), float(fitted.k2.length_scale))


def condition(kernel: Matern, near: Positions, heights: Heights, distances: Map) -> tuple[Heights, Heights]:
    """Mean and standard deviation (n,) of n cells, each given its k nearest measurements.

    ``near`` (n, k, 2) are their positions, ``heights`` (n, k) their heights about zero, and ``distances`` (n, k)
    those from each cell.
    """
    between = np.linalg.norm(near[:, :, None] - near[:, None], axis=-1)
    covariance = kernel(between) + ROUNDING * np.eye(near.shape[1])
    to_cell = kernel(distances)
    weights = np.linalg.solve(covariance, to_cell[..., None])[..., 0]
    variance = kernel.std**2 - (weights * to_cell).sum(1) + ROUNDING
    return (weights * heights).sum(1), np.sqrt(variance)


METHODS: dict[str, MethodFunction] = {
    "multi-inits": multi_inits,
    "bagging": bagging,
    "mc-dropout": mc_dropout,
    "multi-epochs": multi_epochs,
    "multi-networks": multi_networks,
    "learned-error": learned_error,
    "gaussian-process": gaussian_process,
}
"""The methods by name, in the order of MeRCI (2018), table 2."""


def predict(name: str, terrain: Terrain, *, effort: Effort = Effort(), seed: int = 0) -> Estimate:
    """Predict every cell of a terrain with one of `METHODS`; the same seed gives the same numbers.

    The default effort suits the whole terrain.
    """
    from threadpoolctl import threadpool_limits

    method = choose([name])[name]
    with threadpool_limits(1):  # the arrays are small, so more threads cost more than they gain
        return method(terrain, effort, seed)


def choose(names: Sequence[str] | None) -> dict[str, MethodFunction]:
    """Return the named methods, or all for None; SettingsError for an unknown name."""
    unknown = [name for name in names or () if name not in METHODS]
    if unknown:
        raise SettingsError(f"no method is called {', '.join(unknown)}; choose from {', '.join(METHODS)}")
    return {name: function for name, function in METHODS.items() if names is None or name in names}
