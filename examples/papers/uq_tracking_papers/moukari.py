"""The uncertainties that MeRCI (2018) and n-MeRCI (2019) both compare, on the toy and on a real scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from uq_tracking.curves.regression import merci_by_alpha, n_merci_by_alpha
from uq_tracking.families import Gaussian, Laplace, Standard, Uniform
from uq_tracking.npz import Arrays
from uq_tracking.report import Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets import BIAS, Sample, cubic, cubic_with_outliers
from uq_tracking_papers.networks import Bundle, Loss, Training, fit, positive_loss, squared_loss
from uq_tracking_papers.scenes import BoolArray, Scene, Views, motorcycle, terrain, views
from uq_tracking_papers.study import Better, FloatArray, Study

# --- the toy ---

METHODS = ("Multi Inits", "Bagging", "Monte Carlo Dropout", "Multi Epochs")
SCORES = ("quadratic_score", "log_score", "spherical_score", "crps", "merci", "n_merci", "mae")
ALPHAS = np.arange(1, 101) / 100
RANGES = {"test x in [-4, 4]": 4.0, "test x in [-6, 6]": 6.0}
"""Ranges of the test inputs: that of training, and the wider one of Hernandez-Lobato and Adams (2015), from whom the
papers have the cubic."""
CHOICE = "the range of the test inputs, which the papers do not state"
NARROW, WIDE = RANGES
SWEPT = ("quadratic_score", "nll", "spherical_score", "crps", "coverage_95", "merci")
SIGMA = 10.0
"""Constant standard deviation, which the sweep multiplies by .1 ... 10."""
MEMBERS = 20
HIDDEN, DROPOUT = 100, 0.2
EPOCHS, RATE = 600, 0.01
HALF_WIDTH = 4.0
"""Inputs are divided by half the width of their range before they reach a network."""
TESTED = 1000
DENSITY_FLOOR = 1e-3
"""Added to the density inside the log. The papers' log scores never fall below -6.9 = log 0.001, even where the
quadratic score implies a density of almost zero."""
STD_FLOOR = 1e-3
SET_UP = (
    "The papers do not state the outliers' bias, the range of the test set, or how the networks are "
    "trained. Here "
    f"the bias is {BIAS:g}, x of the test set is uniform in [-4, 4], as in training, or in [-6, 6], and "
    "one hidden "
    f"layer of {HIDDEN} rectified linear units with dropout {DROPOUT:g} is trained for {EPOCHS} full-batch "
    "steps of "
    f"Adam (rate {RATE:g})."
)


@dataclass(frozen=True, eq=False)
class Ensembles:
    """Outputs (members, n) of each method for a training set, and the predictions (n,) of one network for all."""

    data: Sample
    base: FloatArray
    outputs: Mapping[str, FloatArray]

    def std(self, method: str) -> FloatArray:
        """Standard deviation over the members (n,)."""
        return np.asarray(np.maximum(self.outputs[method].std(0), STD_FLOOR))


def ensembles(study: Study, seed: int, sets: int, at: FloatArray) -> list[Ensembles]:
    """Draw training sets of a seed, train every method on each, and predict at inputs (n,).

    The shared predictions are those, without dropout, of the network whose last epochs and dropout passes make two of
    the uncertainties.
    """
    rng = np.random.default_rng([study.seed, 1, seed])
    drawn = [cubic_with_outliers(20, rng) for _ in range(sets)]
    x = np.stack([one.x for one in drawn])[..., None] / HALF_WIDTH
    y = np.stack([one.y for one in drawn])
    centre, scale = y.mean(1, keepdims=True), y.std(1, keepdims=True)
    targets, where = (y - centre) / scale, at[:, None] / HALF_WIDTH
    members = study.pick(MEMBERS, MEMBERS, 6)
    training = Training(study.pick(EPOCHS, EPOCHS, 150), y.shape[1], RATE)

    def bundle(each: int) -> Bundle:
        first = int(rng.integers(2**31))
        return Bundle(each * sets, 1, (HIDDEN,), 1, seed=first, dropout=DROPOUT, dropped=(0,))

    def outputs(networks: Bundle, drop: bool = False) -> FloatArray:
        """Outputs (sets, networks of each, n)."""
        found = networks.predict(where, drop=drop)[..., 0].reshape(sets, -1, len(at))
        return np.asarray(centre[..., None] + scale[..., None] * found)

    one, snapshots = bundle(1), []

    def keep(epoch: int) -> None:
        if epoch > training.epochs - members:
            snapshots.append(outputs(one))

    fit(one, x, targets, squared_loss, training, after_epoch=keep)
    inits, bags = bundle(members), bundle(members)
    fit(inits, x, targets, squared_loss, training)
    fit(bags, x, targets, squared_loss, training, drawn=rng.integers(0, y.shape[1], (bags.count, y.shape[1])))
    found = {
        "Multi Inits": outputs(inits),
        "Bagging": outputs(bags),
        "Monte Carlo Dropout": np.concatenate([outputs(one, drop=True) for _ in range(members)], axis=1),
        "Multi Epochs": np.concatenate(snapshots, axis=1),
    }
    base = outputs(one)[:, 0]
    return [
        Ensembles(data, base[place], {name: values[place] for name, values in found.items()})
        for place, data in enumerate(drawn)
    ]


def toys(study: Study) -> Arrays:
    """Every score on the toy, over seeds, ranges of the test set, and training sets of each seed.

    Returns
    -------
    dict of arrays
        ``common`` and ``own`` (seeds, ranges, sets, methods, scores), with the shared predictions and with each
        method's mean; ``merci`` (seeds, ranges, sets, methods, alphas) and ``constant`` (seeds, ranges, sets, alphas)
        with the shared predictions; ``n_merci`` (seeds, ranges, sets, methods, alphas) with each method's mean;
        ``sweep`` (seeds, ranges, scores, factors) of a constant standard deviation ``sigma`` (seeds, factors).
    """
    seeds = study.progress(range(study.seeds), "toy", total=study.seeds)
    parts = [study.cached(f"toy-{seed}", partial(_toy, study, seed), of="toy") for seed in seeds]
    return {name: np.stack([part[name] for part in parts]) for name in parts[0]}


def _toy(study: Study, seed: int) -> Arrays:
    """The scores of one seed."""
    tests = [
        cubic(TESTED, np.random.default_rng([study.seed, 0, seed, number]), half_width=half)
        for number, half in enumerate(RANGES.values())
    ]
    at = np.concatenate([test.x for test in tests])
    trained = ensembles(study, seed, study.pick(5, 5, 2), at)
    rows, sweeps = [], []
    for number, test in enumerate(tests):
        part = slice(number * TESTED, (number + 1) * TESTED)
        rows.append([_scores(test.y, one, part) for one in trained])
        curve = (
            evaluate(test.y, trained[0].base[part], SIGMA, curves="scale_sweep").curves["scale_sweep"].columns
        )
        sweeps.append([curve[key] for key in SWEPT])
    arrays = {
        name: np.asarray([[scores[name] for scores in of_range] for of_range in rows]) for name in rows[0][0]
    }
    return {**arrays, "sweep": np.asarray(sweeps), "sigma": SIGMA * curve["factor"]}


def _scores(y: FloatArray, one: Ensembles, part: slice) -> Arrays:
    """The scores of the methods trained on one set, on one test set."""
    own, common, merci, n_merci = [], [], [], []
    base, constant = one.base[part], np.empty(0)
    for method in METHODS:
        mean, std = one.outputs[method].mean(0)[part], one.std(method)[part]
        shared = scored(y, base, std)
        by_alpha = merci_by_alpha(_statistics(shared), Settings(), ALPHAS)
        merci.append(by_alpha["merci"])
        constant = by_alpha["constant"]
        report = scored(y, mean, std)
        curve = n_merci_by_alpha(_statistics(report), Settings(), ALPHAS)
        defined = np.full(len(ALPHAS), np.nan)
        defined[np.rint(100 * curve["alpha"]).astype(int) - 1] = curve["n_merci"]
        n_merci.append(defined)
        common.append(numbers(shared, y, base, std))
        own.append(numbers(report, y, mean, std))
    arrays = {"common": common, "own": own, "merci": merci, "n_merci": n_merci, "constant": constant}
    return {name: np.asarray(values) for name, values in arrays.items()}


def scored(y: FloatArray, mean: FloatArray, std: FloatArray) -> Report:
    """The report with the scores shown in the tables."""
    return evaluate(y, mean, std, metrics=[key for key in SCORES if key != "log_score"])


def _statistics(report: Report) -> Statistics:
    """Return the statistics of a report of arrays."""
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


# --- the scene ---

PRIORS: Mapping[str, tuple[str, type[Standard]]] = {
    "U": ("_uniform", Uniform),
    "G": ("", Gaussian),
    "L": ("_laplace", Laplace),
}
RULES: Mapping[str, Better] = {
    "quadratic_score": "higher",
    "log_score": "higher",
    "spherical_score": "higher",
    "crps": "lower",
}

LEARNED, HELD_OUT = "Learned Error", "Learned Error, held out"
MAPPED = (*METHODS, "Multi Networks", LEARNED)
EVERY = (*MAPPED, HELD_OUT)
LEARNED_FROM = {"from training pixels": LEARNED, "from pixels held out": HELD_OUT}
LEARNED_CHOICE = "the pixels from whose errors Learned Error learns, which the papers do not state"
ARCHITECTURES = ((64, 64), (128,), (32, 32, 32), (96, 32), (48, 48), (32, 64))
COMMON = "one network"
SCENE_SET_UP = (
    "The paper's networks estimate depth from single images of NYU Depth v2. Here small networks complete "
    "the depth "
    "of the Middlebury motorcycle, of which 5 % of the pixels were measured, from the 8 nearest "
    "measurements and the "
    "colors of the image; each seed has its own measurements and networks. So the paper's numbers are of "
    "other data, "
    "and orders and signs can be compared. Learned Error learns, as far as the paper says, from the "
    "errors on the "
    "pixels on which the first network was trained."
)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Six uncertainties of one scene.

    Attributes
    ----------
    scene : Scene
    measured : bool array (seeds, rows, columns)
    base : array (seeds, rows, columns)
        Predictions of one network, which all methods share if the predictor is common.
    mean, std : dict of arrays (seeds, rows, columns)
    """

    scene: Scene
    measured: BoolArray
    base: FloatArray
    mean: Mapping[str, FloatArray]
    std: Mapping[str, FloatArray]

    def target(self, seed: int) -> FloatArray:
        """The truth, NaN where it is unknown or was measured."""
        return np.where(self.measured[seed], np.nan, self.scene.target)


def scene_of(study: Study) -> Scene:
    """The motorcycle; for tests the terrain, which needs no scikit-image, at a fifth of its resolution."""
    return terrain(5) if study.size == "test" else motorcycle(study.pick(2, 3))


def estimates(study: Study) -> Estimates:
    """Complete the scene with every method and seed."""
    scene = scene_of(study)
    arrays = study.cached("six-uncertainties", partial(completed, study, scene), of="scene")
    return Estimates(
        scene,
        arrays["measured"].astype(bool),
        arrays["base"].astype(np.float64),
        {name: arrays[f"{name} mean"].astype(np.float64) for name in EVERY},
        {name: arrays[f"{name} std"].astype(np.float64) for name in EVERY},
    )


def completed(study: Study, scene: Scene) -> Arrays:
    """Train every method for every seed; ``measured``, ``base``, and means and stds of every pixel by method."""
    rng, seeds = np.random.default_rng([study.seed, 2]), study.few_seeds
    measured = np.stack([scene.measured(rng) for _ in range(seeds)])
    seen = [views(scene, one, one) for one in measured]
    x, base = np.stack([one.x for one in seen]), np.stack([one.base for one in seen])
    rest = np.stack([scene.target[one] for one in measured]) - base
    scale = float(rest.std())
    members, training = study.pick(8, 6, 3), Training(study.pick(15, 12, 4), 64, 2e-3)

    def networks(each: int = 1, hidden: tuple[int, ...] = ARCHITECTURES[0]) -> Bundle:
        first, last = int(rng.integers(2**31)), len(hidden) - 1
        return Bundle(each * seeds, x.shape[-1], hidden, 1, seed=first, dropout=DROPOUT, dropped=(last,))

    def train(
        bundle: Bundle,
        wanted: FloatArray = rest,
        part: slice = slice(None),
        loss: Loss = squared_loss,
        after: Callable[[int], None] | None = None,
    ) -> Bundle:
        watch = partial(study.progress, what=f"{bundle.count} networks, {scene.name}")
        return fit(bundle, x[:, part], wanted[:, part] / scale, loss, training, watch, after_epoch=after)

    snapshots: list[Bundle] = []

    def keep(epoch: int) -> None:
        if epoch > training.epochs - members:
            snapshots.append(one.part())

    one, half = networks(), networks()
    train(one, after=keep)
    bags = networks(members)
    drawn = rng.integers(0, x.shape[1], (bags.count, x.shape[1]))
    fit(bags, x, rest / scale, squared_loss, training, drawn=drawn)
    train(half, part=slice(0, None, 2))
    errors = {
        name: np.abs(rest - scale * model.predict(x)[..., 0]) for name, model in (("in", one), ("out", half))
    }
    learned = {
        LEARNED: train(networks(), errors["in"], loss=positive_loss),
        HELD_OUT: train(networks(), errors["out"], slice(1, None, 2), positive_loss),
    }
    committees: dict[str, list[Bundle]] = {
        "Multi Inits": [train(networks(members))],
        "Bagging": [bags],
        "Multi Epochs": snapshots,
        "Multi Networks": [train(networks(1, hidden)) for hidden in ARCHITECTURES],
    }
    found: dict[str, list[FloatArray]] = {}
    everywhere = np.ones(scene.target.shape, bool)
    for seed in range(seeds):
        view = views(scene, measured[seed], everywhere)

        def outputs(bundle: Bundle, drop: bool = False, view: Views = view, seed: int = seed) -> FloatArray:
            each = bundle.count // seeds
            own = bundle.part(slice(seed * each, (seed + 1) * each))
            return scale * own.predict(view.x, drop=drop)[..., 0].astype(np.float64)

        spread = {name: np.concatenate([outputs(one) for one in of]) for name, of in committees.items()}
        spread["Monte Carlo Dropout"] = np.concatenate([outputs(one, drop=True) for _ in range(2 * members)])
        alone = outputs(one)[0]
        results = {"base": alone + view.base}
        for name, values in spread.items():
            results[f"{name} mean"] = values.mean(0) + view.base
            results[f"{name} std"] = np.maximum(values.std(0), STD_FLOOR)
        for name, model in learned.items():
            results[f"{name} mean"] = alone + view.base
            softplus = scale * np.logaddexp(0, outputs(model)[0] / scale)
            results[f"{name} std"] = np.maximum(softplus, STD_FLOOR)
        for name, values in results.items():
            found.setdefault(name, []).append(values.reshape(scene.target.shape).astype(np.float32))
    return {"measured": measured, **{name: np.stack(values) for name, values in found.items()}}


Window = tuple[slice, slice]
WHOLE: Window = (slice(None), slice(None))


def scene_scores(study: Study, found: Estimates, window: Window, predictor: str) -> dict[str, FloatArray]:
    """Scores (seeds, methods of `EVERY`) in a window, by rule and prior, with "common" or "own" predictions.

    Keys are "crps G" and the like, "merci", and (seeds,) the bounds "Oracle" and "Constant" of the common predictor.
    """
    seeds = range(len(found.measured))
    rows = [
        _window_scores(found, seed, window, predictor)
        for seed in study.progress(seeds, "scores of the scene")
    ]
    return {key: np.asarray([row[key] for row in rows]) for key in rows[0]}


def _window_scores(
    found: Estimates, seed: int, window: Window, predictor: str
) -> dict[str, list[float] | float]:
    """The scores of one seed."""
    target = found.target(seed)[window]
    seen = np.isfinite(target)
    y, base = target[seen], found.base[seed][window][seen]
    columns: dict[str, list[float] | float] = {}
    per_method = []
    for method in EVERY:
        mean = base if predictor == "common" else found.mean[method][seed][window][seen]
        std = found.std[method][seed][window][seen]
        keys = [f"{rule}{ending}" for rule in RULES if rule != "log_score" for ending, _ in PRIORS.values()]
        scores = evaluate(y, mean, std, metrics=[*keys, "merci"]).scores
        row = {"merci": scores["merci"]}
        for prior, (ending, family) in PRIORS.items():
            density = family().pdf((y - mean) / std) / std
            row[f"log_score {prior}"] = float(np.mean(np.log(density + DENSITY_FLOOR)))
            row |= {f"{rule} {prior}": scores[f"{rule}{ending}"] for rule in RULES if rule != "log_score"}
        per_method.append(row)
    for key in per_method[0]:
        columns[key] = [row[key] for row in per_method]
    columns["Oracle"] = float(np.abs(y - base).mean())
    columns["Constant"] = evaluate(y, base, 1.0, metrics=["merci"]).scores["merci"]
    return columns
