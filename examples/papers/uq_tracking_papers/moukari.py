"""The uncertainties that MeRCI (2018) and n-MeRCI (2019) both compare, on the toy and on a real scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from uq_tracking.curves.regression import merci_by_alpha, n_merci_by_alpha
from uq_tracking.families import Gaussian, Laplace, Standard, Uniform
from uq_tracking.figures.style import RANDOM, REFERENCE, legend_below, line
from uq_tracking.npz import Arrays
from uq_tracking.report import Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets import OUTLIERS, Sample, cubic, cubic_with_outliers
from uq_tracking_papers.datasets import RANGE as TRAINED
from uq_tracking_papers.drawing import LOOKS, panel, panels, picture
from uq_tracking_papers.networks import Bundle, Loss, Training, fit, positive_loss, squared_loss
from uq_tracking_papers.scenes import BoolArray, Scene, Views, motorcycle, terrain, views
from uq_tracking_papers.study import Better, FloatArray, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- the toy ---

METHODS = ("Multi Inits", "Bagging", "Monte Carlo Dropout", "Multi Epochs")
SCORES = ("quadratic_score", "log_score", "spherical_score", "crps", "merci", "n_merci", "mae")
ALPHAS = np.arange(1, 101) / 100
INLIERS = 0.85
"""Share of the training samples without bias."""
RANGES = {"test x in [-4, 4]": 4.0, "test x in [-6, 6]": 6.0}
"""Ranges of the test inputs: that of training, and the wider one of Hernandez-Lobato and Adams (2015), from whom the
papers have the cubic."""
CHOICE = "the range of the test inputs, which the papers do not state"
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
    arrays: dict[str, list[FloatArray]] = {}
    base = one.base[part]
    constant = np.empty(0)
    for method in METHODS:
        mean, std = one.outputs[method].mean(0)[part], one.std(method)[part]
        shared, own = (_scored(y, predicted, std) for predicted in (base, mean))
        of_shared = merci_by_alpha(cast(Statistics, shared.statistics), Settings(), ALPHAS)
        constant = of_shared["constant"]
        curve = n_merci_by_alpha(cast(Statistics, own.statistics), Settings(), ALPHAS)
        n_merci = np.full(len(ALPHAS), np.nan)
        n_merci[np.rint(100 * curve["alpha"]).astype(int) - 1] = curve["n_merci"]
        numbers = {"common": _numbers(shared, y, base, std), "own": _numbers(own, y, mean, std)}
        for name, values in {**numbers, "merci": of_shared["merci"], "n_merci": n_merci}.items():
            arrays.setdefault(name, []).append(values)
    return {**{name: np.asarray(values) for name, values in arrays.items()}, "constant": constant}


def _scored(y: FloatArray, mean: FloatArray, std: FloatArray) -> Report:
    """The report with the scores shown in the tables."""
    return evaluate(y, mean, std, metrics=[key for key in SCORES if key != "log_score"])


def _numbers(report: Report, y: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    """The scores of the tables, NaN where undefined."""
    scores = {**report.scores, "log_score": floored_log_score(Gaussian(), (y - mean) / std, std)}
    return np.asarray([scores.get(key, np.nan) for key in SCORES])


def floored_log_score(family: Standard, z: FloatArray, std: FloatArray) -> float:
    """Mean log of a density plus `DENSITY_FLOOR`."""
    return float(np.mean(np.log(family.pdf(z) / std + DENSITY_FLOOR)))


def by_range(values: FloatArray) -> dict[str, FloatArray]:
    """Values (seeds, ranges, ...) by the range of the test inputs, (seeds, ...)."""
    return {name: values[:, place] for place, name in enumerate(RANGES)}


def toy_panels(study: Study, factor: float, top: float) -> Figure:
    """Training points, and each method's mean with a band of so many standard deviations."""
    at = np.linspace(-6, 6, 300)
    found = ensembles(study, 0, 1, at)[0]
    figure, axes = panels(2, 2, width=4.0)
    for ax, method, (color, _) in zip(axes, METHODS, LOOKS, strict=False):
        panel(ax, method, "x", "y")
        mean, std = found.outputs[method].mean(0), factor * found.std(method)
        ax.axvspan(*OUTLIERS, color="#EEEEEE", linewidth=0)
        for end in TRAINED:
            ax.axvline(end, color=REFERENCE, linewidth=0.8, linestyle=":")
        ax.fill_between(at, mean - std, mean + std, color=color, alpha=0.25, linewidth=0)
        line(ax, at, at**3, color=REFERENCE, linewidth=1.0, linestyle="--")
        line(ax, at, mean, color=color)
        line(ax, found.data.x, found.data.y, color=REFERENCE, linestyle="", marker="o", markersize=3.5)
        ax.set(xlim=(-6, 6), ylim=(-top, top), xticks=range(-6, 7, 2))
    return figure


def by_percentile(
    label: str,
    curves: Mapping[str, FloatArray],
    constant: Mapping[str, FloatArray],
    top: float,
    oracle: Mapping[str, float] | None = None,
    shaded: tuple[float, float] | None = None,
) -> Figure:
    """Curves (methods, alphas) by range of the test inputs, up to ``top`` times a constant's at 95 %."""
    figure, axes = panels(1, 2, width=4.6, height=4.0)
    for ax, name in zip(axes, RANGES, strict=True):
        panel(ax, name, "share alpha of errors to cover", label)
        if shaded:
            ax.axvspan(*shaded, color="#EEEEEE", linewidth=0)
        ax.axvline(INLIERS, color="#B22222", linewidth=1.0)
        line(ax, ALPHAS, constant[name], color=RANDOM, linestyle=":", label="constant")
        if oracle:
            line(
                ax, [0, 1], [oracle[name]] * 2, color=REFERENCE, linestyle="--", linewidth=1.2, label="oracle"
            )
        for method, values, (color, dashes) in zip(METHODS, curves[name], LOOKS, strict=False):
            line(ax, ALPHAS, values, color=color, linestyle=dashes, linewidth=1.8, label=method)
        ax.set(xlim=(0.5, 1), ylim=(0, top * constant[name][94]))
    legend_below(figure, axes[0])
    return figure


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

LABELS = {"merci": "MeRCI", "n_merci": "n-MeRCI"}
LEARNED, HELD_OUT = "Learned Error", "Learned Error, held out"
MAPPED = (*METHODS, "Multi Networks", LEARNED)
EVERY = (*MAPPED, HELD_OUT)
LEARNED_FROM = {
    "from training pixels": [EVERY.index(name) for name in MAPPED],
    "from pixels held out": [EVERY.index(HELD_OUT if name == LEARNED else name) for name in MAPPED],
}
"""Columns of `EVERY` that make the six methods, with one of the two ways to learn the error."""
LEARNED_CHOICE = "the pixels from whose errors Learned Error learns, which the papers do not state"
WHEEL, ENGINE = "rear wheel", "engine"
WINDOWS = {WHEEL: (0.45, 0.95, 0.05, 0.45), ENGINE: (0.3, 0.8, 0.4, 0.8)}
"""Parts of the scene that stand for further images: first and last row and column, as shares."""
ARCHITECTURES = ((64, 64), (128,), (32, 32, 32), (96, 32), (48, 48), (32, 64))


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


def training_pixels(scene: Scene, measured: BoolArray) -> tuple[FloatArray, FloatArray, float]:
    """What networks see of the measured pixels (seeds, n, features), what they learn (seeds, n), and its scale."""
    seen = [views(scene, one, one) for one in measured]
    rest = np.stack([scene.target[one] - view.base for one, view in zip(measured, seen, strict=True)])
    return np.stack([view.x for view in seen]), rest, float(rest.std())


def completed(study: Study, scene: Scene) -> Arrays:
    """Train every method for every seed; ``measured``, ``base``, and means and stds of every pixel by method."""
    rng, seeds = np.random.default_rng([study.seed, 2]), study.few_seeds
    measured = np.stack([scene.measured(rng) for _ in range(seeds)])
    x, rest, scale = training_pixels(scene, measured)
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


CUTS = 1e-3, 1e-4
"""Metres; the least uncertainty where the output of Learned Error is cut."""
ENDS = ("softplus", "cut at 1 mm", "cut at 0.1 mm", "exponential")
"""How the output of Learned Error is kept positive, which the papers do not state."""


def memorized(study: Study, found: Estimates) -> dict[str, FloatArray]:
    """n-MeRCI (seeds,) of Learned Error for each of `ENDS`, in-sample, where the network memorized; and its errors.

    Both networks see each training pixel 100 times, without dropout. "seen" and "unseen" (seeds,) are the mean errors
    of the first on the pixels of which it learned, and on the others.
    """
    scene, measured = found.scene, found.measured
    x, rest, scale = training_pixels(scene, measured)
    training = Training(study.pick(100, 60, 4), 64, 2e-3)
    watch = partial(study.progress, what=f"memorizing, {scene.name}")

    def trained(wanted: FloatArray, loss: Loss, seed: int) -> Bundle:
        networks = Bundle(len(measured), x.shape[-1], ARCHITECTURES[0], 1, seed=seed)
        return fit(networks, x, wanted, loss, training, watch)

    first = trained(rest / scale, squared_loss, 1)
    errors = np.abs(rest / scale - first.predict(x)[..., 0])
    wanted = errors, errors, np.log(np.maximum(errors, CUTS[-1]))
    losses = positive_loss, squared_loss, squared_loss
    second = [trained(of, loss, 2) for of, loss in zip(wanted, losses, strict=True)]
    scores: dict[str, list[float]] = {"seen": (scale * errors.mean(axis=1)).tolist()}
    for seed, mask in enumerate(measured):
        view = views(scene, mask, scene.known & ~mask)
        y, own = scene.target[scene.known & ~mask], slice(seed, seed + 1)
        mean = scale * first.part(own).predict(view.x)[0, :, 0] + view.base
        raw = [networks.part(own).predict(view.x)[0, :, 0].astype(float) for networks in second]
        cut = [np.maximum(scale * raw[1], least) for least in CUTS]
        stds = scale * np.logaddexp(0, raw[0]), *cut, scale * np.exp(raw[2])
        for name, std in zip(ENDS, stds, strict=True):
            report = evaluate(y, mean, std, metrics=["n_merci", "mae"])
            scores.setdefault(name, []).append(report.scores["n_merci"])
        scores.setdefault("unseen", []).append(report.scores["mae"])
    return {name: np.asarray(values) for name, values in scores.items()}


Window = tuple[slice, slice]
WHOLE: Window = (slice(None), slice(None))


def part_of(scene: Scene, name: str) -> Window:
    """Rows and columns of one of the parts of a scene."""
    rows, columns = scene.target.shape
    top, bottom, left, right = WINDOWS[name]
    down, across = (round(top * rows), round(bottom * rows)), (round(left * columns), round(right * columns))
    return slice(*down), slice(*across)


def scene_scores(study: Study, found: Estimates, window: Window, predictor: str) -> dict[str, FloatArray]:
    """Scores (seeds, methods of `EVERY`) in a window, by rule and prior, with "common" or "own" predictions.

    Keys are "crps G" and the like, "merci", and (seeds,) the bounds "Oracle" and "Constant" of the common predictor.
    """
    arrays: dict[str, list[Any]] = {}
    for seed in study.progress(range(len(found.measured)), "scores of the scene"):
        target = found.target(seed)[window]
        seen = np.isfinite(target)
        y, base = target[seen], found.base[seed][window][seen]
        columns: dict[str, list[float]] = {}
        for method in EVERY:
            mean = base if predictor == "common" else found.mean[method][seed][window][seen]
            for key, value in _prior_scores(y, mean, found.std[method][seed][window][seen]).items():
                columns.setdefault(key, []).append(value)
        constant = evaluate(y, base, 1.0, metrics=["merci", "mae"]).scores
        bounds = {"Oracle": constant["mae"], "Constant": constant["merci"]}
        for key, values in {**columns, **bounds}.items():
            arrays.setdefault(key, []).append(values)
    return {key: np.asarray(values) for key, values in arrays.items()}


def _prior_scores(y: FloatArray, mean: FloatArray, std: FloatArray) -> dict[str, float]:
    """Every rule under every prior, and MeRCI."""
    rules = [rule for rule in RULES if rule != "log_score"]
    keys = {f"{rule} {prior}": f"{rule}{ending}" for prior, (ending, _) in PRIORS.items() for rule in rules}
    scores = evaluate(y, mean, std, metrics=[*keys.values(), "merci"]).scores
    logs = {
        f"log_score {prior}": floored_log_score(family(), (y - mean) / std, std)
        for prior, (_, family) in PRIORS.items()
    }
    return {**{name: scores[key] for name, key in keys.items()}, **logs, "merci": scores["merci"]}


def first(scores: FloatArray, better: Better, chosen: Sequence[int]) -> npt.NDArray[np.intp]:
    """Which of the chosen methods is best, for each seed."""
    sign = 1 if better == "lower" else -1
    return np.asarray(np.argmin(sign * scores[:, chosen], axis=1), dtype=np.intp)


def counted(places: Mapping[str, npt.NDArray[np.intp]], names: Sequence[str] = METHODS) -> str:
    """How many seeds have each name, by variant, in words."""
    found = []
    for variant, of in places.items():
        counts = {name: int(np.sum(of == place)) for place, name in enumerate(names)}
        found.append(f"{variant}: " + ", ".join(f"{name} {count}" for name, count in counts.items() if count))
    return "; ".join(found)


def maps(
    found: Estimates,
    seed: int,
    window: Window,
    key: str = "merci",
    wrong: float | FloatArray = 0.0,
    apart: bool = False,
) -> Figure:
    """Image, prediction and error, and below the six rescaled uncertainties by a score, from the best to the worst.

    What is added to the truth of a patch, if anything, is shown in place of the prediction. The others are shown as
    they differ from the best, if told so.
    """
    scene = found.scene
    truth = scene.target[window] + wrong
    target, mean = found.target(seed)[window] + wrong, found.base[seed][window]
    error = np.abs(truth - mean)
    low, high = np.nanquantile(scene.target[window], [0.01, 0.99])
    top = float(np.nanquantile(error, 0.98))
    shown = []
    for method in MAPPED:
        std = found.std[method][seed][window]
        scores = evaluate(target, mean, std, metrics=["merci", "n_merci", "spearman"]).scores
        scaled = std * scores["merci"] / std[np.isfinite(target)].mean()
        label = f"{method}: {LABELS[key]} {scores[key]:.3f}, rho {scores['spearman']:.2f}"
        shown.append((scores[key], label, scaled))
    image = scene.image[window] if scene.image.size else scene.target[window]
    rows, columns = truth.shape
    figure, axes = panels(3, 3, width=3.7, height=3.7 * rows / columns + 0.35)
    picture(figure, axes[0], "image", image)
    title, second = (
        (f"ground truth [m], {np.max(wrong):+g} m in a patch", truth)
        if np.any(wrong)
        else ("depth predicted [m]", mean)
    )
    picture(figure, axes[1], title, second, low, high)
    if np.any(wrong):
        axes[1].contour(wrong, [np.max(wrong) / 2], colors="white", linewidths=1.5)
    picture(figure, axes[2], "ERROR [m]", error, 0, top, "inferno", bar=True)
    ordered = sorted(shown, key=itemgetter(0))
    for place, (ax, (_, label, values)) in enumerate(zip(axes[3:], ordered, strict=True)):
        if apart and place:
            less = values - ordered[0][-1]
            title = f"{label}\nless the best map"
            picture(figure, ax, title, less, -top / 2, top / 2, "RdBu_r", bar=place % 3 == 2)
        else:
            picture(figure, ax, label, values, 0, top, "inferno", bar=apart or place % 3 == 2)
    return figure
