"""Gustafsson et al. (2020): ensembling and MC-dropout against the number of samples, on toys and under a shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

import uq_tracking as uq
from uq_tracking.figures.style import MODEL, REFERENCE, legend_below, line
from uq_tracking.npz import Arrays
from uq_tracking_papers.datasets import sine
from uq_tracking_papers.drawing import panel, panels, picture
from uq_tracking_papers.networks import (
    Bundle,
    Loss,
    Sampling,
    Training,
    class_loss,
    fit,
    gaussian_loss,
    moments,
    probabilities,
    sample,
    squared_loss,
)
from uq_tracking_papers.scenes import Scene, motorcycle, terrain, views
from uq_tracking_papers.study import ANALOGUE, FloatArray, Study, over_seeds, told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Outputs = npt.NDArray[np.float32]
Distribution = tuple[FloatArray, ...]
"""Means and standard deviations (m,), or probabilities (m, classes)."""

ENSEMBLING, DROPOUT, SGLD, SGHMC = METHODS = ("Ensembling", "MC-dropout", "SGLD", "SGHMC")
HMC = "HMC"
STYLES = {
    ENSEMBLING: {"color": MODEL, "linestyle": "-", "marker": "o"},
    DROPOUT: {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    SGLD: {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    SGHMC: {"color": "#7B3F9E", "linestyle": ":", "marker": "D"},
}
COUNTS = (1, 2, 4, 8, 16)
"""Numbers of samples M; the paper compares at 16, and goes on to 64 in some figures."""
MOST = COUNTS[-1]
KL = "kl_to_reference"
FORWARD, BACKWARD = "KL(HMC || p)", "KL(p || HMC)"
HIDDEN = (10, 10)
HIGHEST = 2.0
"""Log variances are capped at this, as in the released scripts: far from the data they are unbounded."""
THEIRS = "regression: ensembling 0.43, MC-dropout 1.78, SGHMC 18, SGLD 20"

KEPT = 0.45
"""Share of the columns, from the left, where models of depth are trained."""
SHARES = 0.05, 0.02
"""Share of measured pixels where models are trained, and where they are tested."""
DEPTH = {"ause_rmse": "AUSE (RMSE)", "auce": "AUCE", "rmse": "RMSE"}
CLASSES = {"ause_brier": "AUSE (Brier)", "ece": "ECE", "miou": "mIoU"}
ANGLES = (10, 20)
"""Degrees by which test digits are rotated."""
DEPTH_SET_UP = (
    "Models are trained on the left of a scene, where 5 % of the pixels are measured, and tested on the "
    "right, where 2 % "
    "are: a shift in place and in density, where the paper steps from Virtual KITTI to KITTI. The scenes "
    "are the "
    "Middlebury motorcycle and, without an image, the terrain around Jacksboro. A network with two hidden "
    "layers of 48 "
    "units predicts how far a pixel lies from the depth interpolated between measurements, and the "
    "variance of that. "
    "MC-dropout switches off half of the units of the same network, as the paper does."
)
SCENE_CHOICE = "the scene, which stands for KITTI here"
SHIFT_CHOICE = "how far the test data lie from the training data, which is ours"
DIGITS_SET_UP = (
    "Networks are trained on 1000 upright digits of scikit-learn (8 x 8 pixels) and tested on 700 others, "
    "rotated by 10 or "
    "20 degrees, where the paper steps from Synscapes to Cityscapes. MC-dropout switches off half of the "
    "units of the "
    "same network."
)


def reproduce(study: Study) -> None:
    """Figures 1 to 9."""
    regression, classification = toy_regression(study), toy_classification()
    samples = {
        toy.name: {
            method: study.cached(f"{toy.name}-{method.lower()}", partial(toy_samples, study, toy, method))[
                "outputs"
            ]
            for method in METHODS
        }
        for toy in (regression, classification)
    }
    scenes = {scene.name: scene for scene in scenes_of(study)}
    depth = {
        name: study.cached(f"depth-{name}", partial(depth_outputs, study, scene))
        for name, scene in scenes.items()
    }
    digits = study.cached("digits", partial(digits_outputs, study))
    of_depth = {
        name: study.cached(f"depth-scores-{name}", partial(depth_scores, study, name, arrays))
        for name, arrays in depth.items()
    }
    of_digits = study.cached("digits-scores", partial(digits_scores, study, digits))
    first = next(iter(scenes))
    figure_1(study, scenes[first], depth[first])
    figure_2(study, regression, samples["regression"][ENSEMBLING])
    figure_3(study, classification)
    toys = ((regression, samples["regression"]), (classification, samples["classification"]))
    figure_4(study, toys)
    figure_5(study, toys)
    figure_6(study, of_depth)
    figure_7(study, depth)
    figure_8(study, of_digits)
    figure_9(study, digits)


# --- section 4.1: toys ---


@dataclass(frozen=True)
class Toy:
    """One of the two problems of section 4.1, with the authors' points and their HMC's predictions.

    Attributes
    ----------
    name : str
    x, y : arrays (n, inputs) and (n,)
        Training set.
    at : array (m, inputs)
        Where predictive distributions are compared.
    truth : array (m,)
        Targets at these, which the divergence does not depend on.
    hmc : Distribution
    loss : callable
    apart : bool
        Whether mean and variance have separate networks.
    langevin : float
        Learning rate of SGLD, as in the released scripts.
    """

    name: str
    x: FloatArray
    y: npt.NDArray[Any]
    at: FloatArray
    truth: npt.NDArray[Any]
    hmc: Distribution
    loss: Loss
    apart: bool
    langevin: float

    def mixed(self, outputs: Outputs) -> Distribution:
        """The members (members, m, outputs) together: a normal distribution of their moments, or their mean."""
        return together(*moments(outputs, HIGHEST)) if self.apart else (probabilities(outputs).mean(axis=0),)

    def divergence(self, one: Distribution, other: Distribution) -> float:
        """Mean KL(one || other) over the places."""
        if self.apart:
            report = uq.evaluate(self.truth, *one, reference=tuple(other), metrics=[KL])
        else:
            report = uq.evaluate(self.truth, probs=one[0], reference=other[0], metrics=[KL])
        return float(report.scores[KL])


def authors_data() -> Arrays:
    """Training points and HMC outputs of the authors' repository, fregu856/evaluating_bdl (MIT license)."""
    with (
        files("uq_tracking_papers").joinpath("data/evaluating_bdl_toys.npz").open("rb") as file,
        np.load(file) as archive,
    ):
        return dict(archive)


def toy_regression(study: Study) -> Toy:
    """The sine of eq. 5."""
    data = authors_data()
    x = data["regression_hmc_x"].astype(float)
    hmc = data["regression_hmc_mean"], np.sqrt(data["regression_hmc_var_total"])
    return Toy(
        "regression", data["regression_x"][:, None], data["regression_y"], x[:, None],
        sine.at(x, study.rng("sine")).y, hmc, gaussian_loss, True, 0.01,
    )  # fmt: skip


def toy_classification() -> Toy:
    """Two classes in the plane, of which the right half is seen in training."""
    data = authors_data()
    seen = data["classification_x"][:, 0] > 0
    zero = data["classification_hmc_false_prob"].ravel()  # rows follow the second coordinate
    axis = np.linspace(-6, 6, 60)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    labels = (zero < 0.5).astype(np.int64)
    hmc = (np.stack([zero, 1 - zero], axis=-1),)
    return Toy(
        "classification", data["classification_x"][seen], data["classification_y"][seen], grid, labels, hmc,
        class_loss, False, 0.05,
    )  # fmt: skip


def together(means: FloatArray, stds: FloatArray) -> Distribution:
    """Moments of the mixture of members (members, m)."""
    return means.mean(axis=0), np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))


def toy_samples(study: Study, toy: Toy, method: str) -> dict[str, npt.ArrayLike]:
    """Outputs (seeds, M, m, outputs) of a method's samples."""
    seed = int(study.rng(toy.name, method).integers(2**31))
    watch = partial(study.progress, what=f"{method}, {toy.name}")
    epochs, rate = study.pick(150, 80, 10), study.pick(1e-3, 2e-3, 5e-3)
    seeds = study.seeds

    def bundle(count: int, **options: Any) -> Bundle:
        return Bundle(count, toy.x.shape[1], HIDDEN, 2, seed=seed, apart=toy.apart, **options)

    if method == ENSEMBLING:
        networks = fit(bundle(seeds * MOST), toy.x, toy.y, toy.loss, Training(epochs, 32, rate), watch)
        outputs = networks.predict(toy.at)
        return {"outputs": outputs.reshape(seeds, MOST, *outputs.shape[1:])}
    if method == DROPOUT:
        # The prior N(0, I) as weighted in the scripts: by the share of units kept, per training sample.
        training = Training(2 * epochs, 32, rate, decay=0.5 * 0.8 / len(toy.x))
        networks = fit(bundle(seeds, dropout=0.2, dropped=(0,)), toy.x, toy.y, toy.loss, training, watch)
        return {"outputs": np.stack([networks.predict(toy.at, drop=True) for _ in range(MOST)], axis=1)}
    early, every = MOST // 4, study.pick(20, 8, 1)
    scale, friction = (0.1, 0.1) if method == SGHMC else (1.0, 1.0)
    chain = Sampling(MOST + early, every, scale * toy.langevin, friction)
    found: list[Outputs] = []
    networks = bundle(seeds)
    sample(networks, toy.x, toy.y, toy.loss, chain, lambda: found.append(networks.predict(toy.at)), watch)
    return {"outputs": np.stack(found[early:], axis=1)}


def figure_2(study: Study, toy: Toy, ensembles: Outputs) -> None:
    """Three networks of growing honesty on one problem.

    The authors' training points and their HMC; networks of ours.
    """
    study.item("figure 2", figure_2, note="with the authors' points and HMC")
    networks = Bundle(study.seeds, 1, HIDDEN, 1, seed=int(study.rng("direct").integers(2**31)))
    effort = Training(study.pick(150, 80, 10), 32, study.pick(1e-3, 2e-3, 5e-3))
    direct = fit(networks, toy.x, toy.y, squared_loss, effort).predict(toy.at)[..., 0].astype(float)
    x = toy.at[:, 0]
    true_mean, true_std = (part[0] for part in sine.components(x))
    single = [toy.mixed(one[:1]) for one in ensembles]
    figure, axes = panels(2, 2, width=4.4, height=3.0)
    shown = {
        "(a) training points and truth": (true_mean, true_std),
        "(b) a network that states no uncertainty": (direct[0], 0 * x),
        "(c) a Gaussian network: sure where it saw nothing": single[0],
        "(d) HMC: unsure where it saw nothing": toy.hmc,
    }
    for ax, (title, (mean, std)) in zip(axes, shown.items(), strict=True):
        band(panel(ax, title, "x", "y"), toy, mean, std)
        line(ax, x, true_mean, color=REFERENCE, linewidth=1.0, linestyle=":")
    study.figure(
        "figure 2", figure, "Mean and two standard deviations; dotted: the true mean; dots: training points."
    )
    inside = np.abs(x) <= 3
    off = np.sqrt(np.mean((direct[:, inside] - true_mean[inside]) ** 2, axis=1))
    study.finding(
        "A network trained to predict y regresses the mean accurately where it was trained (RMSE below 0.05)",
        off < 0.05,
        f"RMSE from the true mean {over_seeds(off)}, beside noise of 0.01 to 0.14",
    )
    y = toy.truth
    inner, outer = (
        np.array([np.mean(np.abs(y - mean)[where] <= 1.96 * std[where]) for mean, std in single])
        for where in (inside, ~inside)
    )
    study.finding(
        "A Gaussian network matches the truth where it was trained (its 95 % intervals cover 90 to 99 %)",
        (inner >= 0.9) & (inner <= 0.99),
        f"coverage {over_seeds(inner, '.0%')}",
    )
    study.finding(
        "It is overconfident where it was not (95 % intervals cover less than 80 %)",
        outer < 0.8,
        f"coverage {over_seeds(outer, '.0%')}",
    )
    hmc = float(np.mean(np.abs(y - toy.hmc[0])[~inside] <= 1.96 * toy.hmc[1][~inside]))
    study.finding(
        "HMC predicts more reasonable uncertainties there (coverage nearer to 95 %)",
        abs(hmc - 0.95) < np.abs(outer - 0.95),
        f"coverage of the authors' HMC {hmc:.0%}, of a Gaussian network {over_seeds(outer, '.0%')}",
    )


def figure_3(study: Study, toy: Toy) -> None:
    """The toy classification problem: the authors' training points and their HMC.

    The true classes (a) exist as a picture only.
    """
    study.item("figure 3", figure_3, note="(b) and (c) from the authors' files; (a) exists as a picture only")
    figure, axes = panels(1, 2, width=4.0, height=3.7)
    for ax, title in zip(
        axes, ("(b) training points", "(c) HMC: probability of the second class"), strict=True
    ):
        plane(panel(ax, title, "x1", "x2"), toy, None if "points" in title else toy.hmc[0][:, 1])
    study.figure(
        "figure 3", figure, "Blue and red: the two classes. Training saw the right half of the centre only."
    )


def figure_4(study: Study, toys: Sequence[tuple[Toy, Mapping[str, Outputs]]]) -> None:
    """Predictive distributions with 16 samples, beside HMC's."""
    study.item("figure 4", figure_4, note="HMC by the authors")
    figure, axes = panels(2, 3, width=4.0, height=3.6)
    for row, (toy, samples) in enumerate(toys):
        shown = {name: toy.mixed(samples[name][0]) for name in (ENSEMBLING, DROPOUT)} | {HMC: toy.hmc}
        for place, (name, found) in enumerate(shown.items()):
            away = "" if name == HMC else f": {toy.divergence(toy.hmc, found):.2f} from HMC"
            ax = panel(
                axes[3 * row + place], f"{name}{away}", "x" if toy.apart else "x1", "y" if toy.apart else "x2"
            )
            if toy.apart:
                band(ax, toy, *found)
            else:
                plane(ax, toy, found[0][:, 1])
    study.figure(
        "figure 4",
        figure,
        "Above: mean and two standard deviations. Below: probability of the second class, from 0 (blue) "
        "to 1 (red). "
        f"The number is {FORWARD}: which picture is more like the right one?",
    )


def band(ax: Axes, toy: Toy, mean: FloatArray, std: FloatArray) -> None:
    """Mean and two standard deviations over the inputs."""
    x = toy.at[:, 0]
    ax.fill_between(x, mean - 2 * std, mean + 2 * std, color=MODEL, alpha=0.25, linewidth=0)
    ax.plot(toy.x[::4, 0], toy.y[::4].astype(float), ".", color="#D55E00", markersize=3)
    ax.plot(x, mean, color=MODEL, linewidth=2.0)
    ax.set_ylim(-6, 6)


def plane(ax: Axes, toy: Toy, one: FloatArray | None) -> None:
    """Probability of class 1 over the plane, or only the training points."""
    ax.grid(False)
    if one is not None:
        side = round(len(one) ** 0.5)
        grid = one.reshape(side, side)
        ax.imshow(
            grid, origin="lower", extent=(-6, 6, -6, 6), vmin=0, vmax=1, cmap="coolwarm", aspect="equal"
        )
    for label, color in ((0, "#0b3c78"), (1, "#7a1010")):
        ax.plot(*toy.x[::3][toy.y[::3] == label].T, ".", color=color, markersize=3)
    ax.set(xlim=(-6, 6), ylim=(-6, 6))


def figure_5(study: Study, toys: Sequence[tuple[Toy, Mapping[str, Outputs]]]) -> None:
    """Divergence from HMC against the number of samples.

    The paper writes KL(p || HMC); the released scripts compute KL(HMC || p), and so the figure shows that. Both are
    here, and the claims are judged by the scripts'. Training points and HMC (1000 samples) are the authors'. Their
    own values at M = 16, by the scripts: {theirs}. SGLD and SGHMC run for fewer epochs per sample here than the 150
    of the paper. For classification, the scripts normalize the map of one class's probabilities over the plane before
    they take a divergence; here it is that of the two classes' probabilities at each point, and averaged.
    """
    study.item("figure 5", figure_5, note="up to M = 16 of the paper's 64; HMC by the authors", theirs=THEIRS)
    figure, axes = panels(2, 2, width=4.6, height=3.6)
    for column, (toy, samples) in enumerate(toys):
        found = study.cached(f"{toy.name}-divergence", partial(divergences, toy, samples))
        for row, direction in enumerate((FORWARD, BACKWARD)):
            ax = panel(axes[2 * row + column], f"{toy.name}: {direction}", "samples M", "nats")
            against_members(ax, {name: found[f"{name} {direction}"] for name in METHODS})
            ax.set_yscale("log")
            for method in METHODS:
                for place in (0, len(COUNTS) - 1):
                    quantity = f"{toy.name}: {direction}, M = {COUNTS[place]}"
                    study.repeats("figure 5", method, quantity, found[f"{method} {direction}"][:, place])
        divergence_findings(study, toy, found)
    legend_below(figure, axes[0])
    study.figure(
        "figure 5",
        figure,
        "Above: the scripts' direction, in which an ensemble comes closer with every member; below: the "
        "other. "
        "Lower is closer to HMC. Lines: medians over seeds; bands: their range.",
    )


def divergences(toy: Toy, samples: Mapping[str, Outputs]) -> dict[str, npt.ArrayLike]:
    """Both divergences (seeds, numbers of samples) of each method."""
    found: dict[str, npt.ArrayLike] = {}
    for method, outputs in samples.items():
        mixed = [[toy.mixed(one[:count]) for count in COUNTS] for one in outputs]
        found[f"{method} {FORWARD}"] = [[toy.divergence(toy.hmc, one) for one in row] for row in mixed]
        found[f"{method} {BACKWARD}"] = [[toy.divergence(one, toy.hmc) for one in row] for row in mixed]
    return found


def divergence_findings(study: Study, toy: Toy, found: Arrays) -> None:
    """Findings of figure 5, by the scripts' direction; the evidence has the other."""
    value, other = (
        {method: found[f"{method} {direction}"] for method in METHODS} for direction in (FORWARD, BACKWARD)
    )
    medians = told({method: float(np.median(value[method][:, -1])) for method in METHODS})
    for rivals, words in (((DROPOUT,), "MC-dropout"), ((SGLD, SGHMC), "SGLD and SGHMC")):
        closer, reverse = (
            np.all([of[ENSEMBLING][:, 1:] < of[rival][:, 1:] for rival in rivals], axis=0)
            for of in (value, other)
        )
        study.finding(
            f"Ensembling is closer to HMC than {words} ({toy.name}, M = {MOST})",
            closer[:, -1],
            f"{FORWARD}: {medians}; at every M from 2 in {np.all(closer, axis=1).mean():.0%} of the seeds; "
            f"by {BACKWARD} at "
            f"M = {MOST} in {reverse[:, -1].mean():.0%}",
        )
    first, last = value[ENSEMBLING][:, 0], value[ENSEMBLING][:, -1]
    study.finding(
        f"An ensemble comes closer to HMC as members join ({toy.name})",
        last < first,
        f"{FORWARD}: {np.median(first):.3g} nats at M = 1, {np.median(last):.3g} at M = {MOST}; by "
        f"{BACKWARD} in "
        f"{np.mean(other[ENSEMBLING][:, -1] < other[ENSEMBLING][:, 0]):.0%} of the seeds",
    )
    eight = value[ENSEMBLING][:, COUNTS.index(8)]
    study.finding(
        "Ensembling approximates HMC reasonably even for quite small M, compared with MC-dropout: 8 "
        "members are closer "
        f"than {MOST} passes ({toy.name})",
        eight < value[DROPOUT][:, -1],
        f"{over_seeds(eight)} and {over_seeds(value[DROPOUT][:, -1])} nats; "
        f"4 members {over_seeds(value[ENSEMBLING][:, COUNTS.index(4)])}",
    )


def against_members(ax: Axes, found: Mapping[str, FloatArray]) -> None:
    """A metric (seeds, numbers of samples) of each method: the median and the range over seeds."""
    ax.set_xscale("log", base=2)
    for method, values in found.items():
        style = STYLES[method]
        ax.fill_between(
            COUNTS, values.min(axis=0), values.max(axis=0), color=style["color"], alpha=0.15, linewidth=0
        )
        line(ax, COUNTS, np.median(values, axis=0), label=method, markersize=4, linewidth=1.8, **style)


# --- section 4.2: depth completion ---


def scenes_of(study: Study) -> list[Scene]:
    """The motorcycle and the terrain; for tests the terrain alone, which needs no scikit-image."""
    return [terrain(5)] if study.size == "test" else [motorcycle(study.pick(2, 3)), terrain(study.pick(2, 3))]


def depth_data(study: Study, scene: Scene, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Training and test pixels of a seed: what networks see of them, and their rest; and which were measured."""
    rng = study.rng("depth", scene.name, seed)
    left = np.zeros(scene.target.shape, bool)
    left[:, : round(KEPT * scene.target.shape[1])] = True
    measured = np.where(left, scene.measured(rng, SHARES[0]), scene.measured(rng, SHARES[1]))
    found: dict[str, npt.NDArray[Any]] = {"measured": measured}
    sizes = {"training": study.pick(4000, 2500, 500), "test": study.pick(8000, 5000, 800)}
    for (name, size), side in zip(sizes.items(), (left, ~left), strict=True):
        usable = np.flatnonzero(side & scene.known & ~measured)
        at = np.zeros(scene.target.size, bool)
        at[rng.choice(usable, size, replace=False)] = True
        view = views(scene, measured, at.reshape(scene.target.shape))
        found[f"{name} x"] = view.x
        found[f"{name} rest"] = scene.target.ravel()[at] - view.base
    return found


def depth_outputs(study: Study, scene: Scene) -> dict[str, npt.ArrayLike]:
    """Means and standard deviations (seeds, M, n) of both methods at the test pixels, and seed 0's maps."""
    data = [depth_data(study, scene, seed) for seed in range(study.few_seeds)]
    x, rest = (np.stack([one[f"training {what}"] for one in data]) for what in ("x", "rest"))
    test = np.stack([one["test x"] for one in data])
    scale = float(rest.std())
    everywhere = views(scene, data[0]["measured"], np.ones(scene.target.shape, bool))
    found: dict[str, npt.ArrayLike] = {"rest": np.stack([one["test rest"] for one in data])}
    for method in (ENSEMBLING, DROPOUT):
        networks = shifted_networks(study, f"depth {scene.name}", method, x.shape[-1], 2)
        effort = Training(study.pick(60, 40, 8), 64, 2e-3)
        fit(
            networks,
            x,
            rest / scale,
            gaussian_loss,
            effort,
            partial(study.progress, what=f"{method}, {scene.name}"),
        )
        means, stds = moments(drawn_outputs(networks, test, len(data)))
        of_first = networks.part(slice(0, networks.count // len(data)))
        mean, std = together(*moments(drawn_outputs(of_first, everywhere.x, 1)[0]))
        found |= {f"{method} mean": scale * means, f"{method} std": scale * stds}
        found |= {f"{method} map": everywhere.base + scale * mean, f"{method} map std": scale * std}
    return {name: np.asarray(values, dtype=np.float32) for name, values in found.items()}


def shifted_networks(study: Study, name: str, method: str, inputs: int, outputs: int) -> Bundle:
    """Untrained networks of a method for every seed, the same but for dropout."""
    seed = int(study.rng(name, method).integers(2**31))
    if method == DROPOUT:
        return Bundle(study.few_seeds, inputs, (48, 48), outputs, seed=seed, dropout=0.5, dropped=(0, 1))
    return Bundle(study.few_seeds * MOST, inputs, (48, 48), outputs, seed=seed)


def drawn_outputs(networks: Bundle, x: FloatArray, seeds: int) -> Outputs:
    """Outputs (seeds, M, n, outputs) of M networks of each seed, or M passes of one with dropout."""
    if networks.count > seeds:
        found = networks.predict(x)
        return found.reshape(seeds, MOST, *found.shape[1:])
    return np.stack([networks.predict(x, drop=True) for _ in range(MOST)], axis=1)


def depth_scores(study: Study, name: str, found: Arrays) -> dict[str, npt.ArrayLike]:
    """Scores (seeds, numbers of samples) of both methods."""
    scores: dict[str, list[list[float]]] = {}
    for method in (ENSEMBLING, DROPOUT):
        for seed in range(len(found["rest"])):
            truth, means, stds = (
                found[key][seed].astype(float) for key in ("rest", f"{method} mean", f"{method} std")
            )
            rows = []
            for count in COUNTS:
                mixed = together(means[:count], stds[:count])
                if seed or count < MOST:
                    rows.append(uq.evaluate(truth, *mixed, metrics=DEPTH).scores)
                else:
                    rows.append(study.log(truth, *mixed, method=f"{name}, {method}", unit="m").scores)
            for key in DEPTH:
                scores.setdefault(f"{method} {key}", []).append([row[key] for row in rows])
    return dict(scores)


def figure_1(study: Study, scene: Scene, found: Arrays) -> None:
    """What an ensemble predicts, and where it is unsure.

    {set_up}
    """
    study.item("figure 1", figure_1, status=ANALOGUE, note="the motorcycle for KITTI", set_up=DEPTH_SET_UP)
    shape = scene.target.shape
    mean, std = (found[f"{ENSEMBLING} {what}"].reshape(shape) for what in ("map", "map std"))
    low, high = np.nanquantile(scene.target, [0.01, 0.99])
    figure, axes = panels(2, 2, width=4.4, height=3.2)
    picture(figure, axes[0], "input image", scene.image if scene.image.size else scene.target)
    picture(figure, axes[1], "prediction [m]", mean, low, high)
    error = np.abs(mean - scene.target)
    top = float(np.nanquantile(error, 0.97))
    picture(figure, axes[2], "ERROR [m]", error, 0, top, "inferno")
    picture(figure, axes[3], "stated std [m]", std, 0, top, "inferno")
    for ax in axes:
        ax.axvline(round(KEPT * shape[1]), color="white", linewidth=1.5)
    study.figure(
        "figure 1",
        figure,
        f"M = {MOST}. Trained on the left of the white line; few measurements on the right.",
    )


def by_members(study: Study, item: str, labels: Mapping[str, str], variants: Mapping[str, Arrays]) -> None:
    """Rows and the figure of metrics against the number of samples; a row of panels for each variant."""
    figure, axes = panels(len(variants), len(labels), width=4.0, height=3.4)
    for row, (variant, found) in enumerate(variants.items()):
        for column, (key, label) in enumerate(labels.items()):
            ax = panel(axes[row * len(labels) + column], variant, "samples M", label)
            against_members(ax, {method: found[f"{method} {key}"] for method in (ENSEMBLING, DROPOUT)})
            for method in (ENSEMBLING, DROPOUT):
                for place in (0, len(COUNTS) - 1):
                    name = f"{variant + ': ' if variant else ''}{label}, M = {COUNTS[place]}"
                    study.repeats(item, method, name, found[f"{method} {key}"][:, place])
    legend_below(figure, axes[0])
    study.figure(item, figure, "Lines: medians over seeds; bands: their range.")


def ends(found: Arrays, key: str) -> str:
    """A metric with one sample and with all, for a sentence."""
    return ", ".join(
        f"{method} {np.median(found[f'{method} {key}'][:, 0]):.3g} at M = 1 and "
        f"{np.median(found[f'{method} {key}'][:, -1]):.3g} at M = {MOST}"
        for method in (ENSEMBLING, DROPOUT)
    )


def falls(found: Arrays, method: str, key: str) -> npt.NDArray[np.bool_]:
    """For each seed, whether a metric is lower with all samples than with one."""
    values = found[f"{method} {key}"]
    return np.asarray(values[:, -1] < values[:, 0])


def figure_6(study: Study, found: Mapping[str, Arrays]) -> None:
    """AUSE, AUCE and RMSE of depth against the number of samples.

    {set_up}
    """
    note = "the motorcycle and a terrain for KITTI"
    study.item("figure 6", figure_6, status=ANALOGUE, note=note, set_up=DEPTH_SET_UP)
    by_members(study, "figure 6", DEPTH, found)
    evidence = {key: "; ".join(f"{name}: {ends(of, key)}" for name, of in found.items()) for key in DEPTH}
    lower = {
        name: of[f"{ENSEMBLING} ause_rmse"][:, 1:] < of[f"{DROPOUT} ause_rmse"][:, 1:]
        for name, of in found.items()
    }
    study.finding(
        f"Ensembling has the lower AUSE (depth, M = {MOST})",
        {name: of[:, -1] for name, of in lower.items()},
        f"{evidence['ause_rmse']}; at every M from 2 in "
        + ", ".join(f"{np.all(of, axis=1).mean():.0%} of the seeds ({name})" for name, of in lower.items()),
        choice=SCENE_CHOICE,
    )
    study.finding(
        "AUSE decreases with the number of samples, for both methods (depth)",
        {
            name: falls(of, ENSEMBLING, "ause_rmse") & falls(of, DROPOUT, "ause_rmse")
            for name, of in found.items()
        },
        evidence["ause_rmse"],
        choice=SCENE_CHOICE,
    )
    study.finding(
        "AUCE of ensembling clearly improves with the number of samples (depth)",
        {name: falls(of, ENSEMBLING, "auce") for name, of in found.items()},
        f"{evidence['auce']}; single networks are overconfident on the terrain, and not on the motorcycle",
        choice=SCENE_CHOICE,
    )
    study.finding(
        "AUCE of MC-dropout gets progressively worse (depth)",
        {name: ~falls(of, DROPOUT, "auce") for name, of in found.items()},
        evidence["auce"],
        choice=SCENE_CHOICE,
    )


def figure_7(study: Study, found: Mapping[str, Arrays]) -> None:
    """Condensed calibration plots of depth, M = 16."""
    study.item("figure 7", figure_7, status=ANALOGUE, note="the motorcycle and a terrain for KITTI")
    levels = np.arange(1, 100) / 100
    figure, axes = panels(len(found), 2, width=4.4, height=3.7)
    for row, (name, of) in enumerate(found.items()):
        for ax, method in zip(axes[2 * row :], (ENSEMBLING, DROPOUT), strict=False):
            covered = []
            for seed in range(len(of["rest"])):
                mean, std = together(
                    *(of[f"{method} {what}"][seed].astype(float) for what in ("mean", "std"))
                )
                z = np.sort(np.abs(of["rest"][seed] - mean) / std)
                covered.append(np.searchsorted(z, norm.ppf(0.5 + levels / 2), side="right") / len(z))
            panel(ax, f"{method}, {name}", "expected share", "observed share")
            line(ax, [0, 1], [0, 1], color=REFERENCE, linestyle=":", linewidth=1.2)
            for one in covered:
                line(ax, levels, one, color=STYLES[method]["color"], linewidth=0.6, alpha=0.5)
            line(ax, levels, np.median(covered, axis=0), color=STYLES[method]["color"], linewidth=2.4)
            for place in (9, 49, 89):
                quantity = f"{name}: observed share where {levels[place]:g} is expected"
                study.repeats("figure 7", method, quantity, np.asarray(covered)[:, place])
    study.figure(
        "figure 7",
        figure,
        "Share of central intervals that cover the truth. On the dotted line: calibrated; above it, too cautious. "
        "Thin lines: single seeds.",
    )


# --- section 4.3: classification under a shift ---


def digits_outputs(study: Study) -> dict[str, npt.ArrayLike]:
    """Labels (seeds, n) and probabilities (seeds, M, n, 10) of both methods for digits rotated by each angle."""
    from scipy.ndimage import rotate
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8) / 16
    rotated = {
        angle: np.clip(rotate(images, angle, axes=(1, 2), reshape=False, order=1), 0, 1).reshape(-1, 64)
        for angle in ANGLES
    }
    size, tested = study.pick((1000, 700), (1000, 700), (400, 300))
    orders = np.stack([study.rng("digits", seed).permutation(len(labels)) for seed in range(study.few_seeds)])
    training, test = orders[:, :size], orders[:, size : size + tested]
    found: dict[str, npt.ArrayLike] = {"labels": labels[test]}
    for method in (ENSEMBLING, DROPOUT):
        networks = shifted_networks(study, "digits", method, 64, 10)
        effort = Training(study.pick(40, 40, 20), 50, 2e-3)
        watch = partial(study.progress, what=f"{method}, digits")
        fit(networks, images.reshape(-1, 64)[training], labels[training], class_loss, effort, watch)
        for angle, turned in rotated.items():
            outputs = drawn_outputs(networks, turned[test], study.few_seeds)
            found[f"{method} {angle}"] = probabilities(outputs).astype(np.float32)
    return found


def digits_scores(study: Study, found: Arrays) -> dict[str, npt.ArrayLike]:
    """Scores (seeds, numbers of samples) of both methods for each angle; "over": confidence above accuracy."""
    scores: dict[str, list[list[float]]] = {}
    for method in (ENSEMBLING, DROPOUT):
        for angle in ANGLES:
            for seed in range(study.few_seeds):
                labels, rows = found["labels"][seed], []
                for count in COUNTS:
                    probs = renormalized(found[f"{method} {angle}"][seed, :count])
                    metrics = {**CLASSES, "accuracy": ""}
                    if seed or count < MOST:
                        report = uq.evaluate(labels, probs=probs, metrics=metrics)
                    else:
                        report = study.log(labels, probs=probs, method=f"digits rotated by {angle}, {method}")
                    over = float(probs.max(axis=-1).mean()) - report.scores["accuracy"]
                    rows.append({**report.scores, "over": over})
                for key in (*CLASSES, "over"):
                    scores.setdefault(f"{method} {key} {angle}", []).append([row[key] for row in rows])
    return dict(scores)


def renormalized(members: npt.NDArray[Any]) -> FloatArray:
    """Mean probabilities of members (members, n, classes), exactly normalized."""
    probs = members.astype(float).mean(axis=0)
    return np.asarray(probs / probs.sum(axis=-1, keepdims=True))


def by_angle(found: Arrays) -> dict[str, Arrays]:
    """Scores by the angle of rotation."""
    return {
        f"rotated by {angle} degrees": {
            name.removesuffix(f" {angle}"): values
            for name, values in found.items()
            if name.endswith(f" {angle}")
        }
        for angle in ANGLES
    }


def figure_8(study: Study, scores: Arrays) -> None:
    """AUSE, ECE and mIoU of rotated digits against the number of samples.

    {set_up}
    """
    study.item(
        "figure 8", figure_8, status=ANALOGUE, note="rotated digits for Cityscapes", set_up=DIGITS_SET_UP
    )
    variants = by_angle(scores)
    by_members(study, "figure 8", CLASSES, variants)

    def better(found: Arrays, method: str, key: str) -> npt.NDArray[np.bool_]:
        return ~falls(found, method, key) if key == "miou" else falls(found, method, key)

    def gain(found: Arrays, method: str, key: str) -> FloatArray:
        values = found[f"{method} {key}"]
        return np.asarray((values[:, 0] - values[:, -1]) * (-1 if key == "miou" else 1))

    main = next(iter(variants.values()))
    for key, label in CLASSES.items():
        study.finding(
            f"{label} improves with the number of samples, for both methods (classes)",
            {name: better(of, ENSEMBLING, key) & better(of, DROPOUT, key) for name, of in variants.items()},
            ends(main, key),
            choice=SHIFT_CHOICE,
        )
    study.finding(
        "The rate of improvement is generally greater for ensembling (at least two of the three metrics; "
        "classes)",
        {
            name: np.sum([gain(of, ENSEMBLING, key) > gain(of, DROPOUT, key) for key in CLASSES], axis=0) >= 2
            for name, of in variants.items()
        },
        "; ".join(
            f"{label}: {np.median(gain(main, ENSEMBLING, key)):.3f} and "
            f"{np.median(gain(main, DROPOUT, key)):.3f}"
            for key, label in CLASSES.items()
        )
        + "; one pass of so small a network with half of its units is far worse than one without dropout, "
        "so that "
        "MC-dropout has more to gain",
        choice=SHIFT_CHOICE,
    )
    eight = COUNTS.index(8)
    study.finding(
        "ECE of ensembling improves drastically and then stays (by a third at least, nine tenths of it by "
        "M = 8)",
        {
            name: (gain(of, ENSEMBLING, "ece") > of[f"{ENSEMBLING} ece"][:, 0] / 3)
            & (
                of[f"{ENSEMBLING} ece"][:, 0] - of[f"{ENSEMBLING} ece"][:, eight]
                > 0.9 * gain(of, ENSEMBLING, "ece")
            )
            for name, of in variants.items()
        },
        "; ".join(
            f"{name}: "
            + ", ".join(f"{value:.3f}" for value in np.median(of[f"{ENSEMBLING} ece"], axis=0))
            + " for M = 1, 2, 4, 8, 16"
            for name, of in variants.items()
        ),
        choice=SHIFT_CHOICE,
    )


def figure_9(study: Study, found: Arrays) -> None:
    """Reliability of the classes, M = 16."""
    study.item("figure 9", figure_9, status=ANALOGUE, note="rotated digits for Cityscapes")
    figure, axes = panels(2, 2, width=4.2, height=3.8)
    over: dict[str, dict[str, FloatArray]] = {}
    for row, angle in enumerate(ANGLES):
        name = f"rotated by {angle} degrees"
        for place, method in enumerate((ENSEMBLING, DROPOUT)):
            ax = panel(axes[2 * row + place], f"{method}, {name}", "stated confidence", "share correct")
            line(ax, [0, 1], [0, 1], color=REFERENCE, linestyle=":", linewidth=1.2)
            probs = np.concatenate([renormalized(one) for one in found[f"{method} {angle}"]])
            labels = found["labels"].ravel()
            right = probs.argmax(axis=-1) == labels
            confidence = probs.max(axis=-1)
            bins = np.clip((10 * confidence).astype(int), 0, 9)
            kept = [number for number in range(10) if np.sum(bins == number) >= 30]
            shares = [float(right[bins == number].mean()) for number in kept]
            ax.bar(
                [(number + 0.5) / 10 for number in kept],
                shares,
                0.09,
                color=STYLES[method]["color"],
                alpha=0.6,
            )
            gap = (confidence - right).reshape(found["labels"].shape).mean(axis=1)
            first = renormalized_first(found, method, angle)
            over.setdefault(method, {})[name] = gap
            over.setdefault(f"{method} alone", {})[name] = first
            study.repeats("figure 9", method, f"confidence minus accuracy, M = 1, {name}", first)
            study.repeats("figure 9", method, f"confidence minus accuracy, M = {MOST}, {name}", gap)
    study.figure("figure 9", figure, "Bars below the dotted line: overconfident. All seeds together.")
    study.finding(
        "Ensembling passes from clear overconfidence to slight over-conservatism (classes)",
        {
            name: (over[f"{ENSEMBLING} alone"][name] > 0.02) & (gap < 0)
            for name, gap in over[ENSEMBLING].items()
        },
        "confidence minus accuracy: "
        + "; ".join(
            f"{name}: {np.median(over[f'{ENSEMBLING} alone'][name]):+.3f} to {np.median(gap):+.3f}"
            for name, gap in over[ENSEMBLING].items()
        ),
        choice=SHIFT_CHOICE,
    )
    study.finding(
        f"MC-dropout is still somewhat overconfident with {MOST} samples (classes)",
        {name: gap > 0 for name, gap in over[DROPOUT].items()},
        "confidence minus accuracy: "
        + "; ".join(f"{name}: {over_seeds(gap, '+.3f')}" for name, gap in over[DROPOUT].items())
        + "; without half of its 48 units a network here is timid",
        choice=SHIFT_CHOICE,
    )


def renormalized_first(found: Arrays, method: str, angle: int) -> FloatArray:
    """Confidence minus accuracy of a single sample, for each seed."""
    probs = found[f"{method} {angle}"][:, 0]
    return np.asarray((probs.max(axis=-1) - (probs.argmax(axis=-1) == found["labels"])).mean(axis=1))
