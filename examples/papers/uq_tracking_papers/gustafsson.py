"""Gustafsson et al. (2020): ensembling and MC-dropout against the number of samples, on toys and under a shift.

The toys have the authors' training points and HMC outputs (fregu856/evaluating_bdl, MIT license); SGLD and SGHMC
run for fewer epochs per sample than the 150 of the paper. The paper writes KL(p || HMC), its released scripts
compute KL(HMC || p), and claims are judged by the scripts'. Their own values at M = 16: ensembling 0.43, MC-dropout
1.78, SGHMC 18, SGLD 20 (regression). For classes it is the divergence of the two classes' probabilities at each
point, averaged; the scripts normalize the map of one class over the plane first.

Depth: models are trained on the left of a scene, where 5 % of the pixels are measured, and tested on the right,
where 2 % are, where the paper steps from Virtual KITTI to KITTI. A network with two hidden layers of 48 units
predicts how far a pixel lies from the depth interpolated between measurements, and the variance of that. Classes:
networks learn 1000 upright digits of scikit-learn and are tested on 700 rotated ones, where the paper steps from
Synscapes to Cityscapes. MC-dropout switches off half of the units of the same network, as the paper's does.
"""

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
from uq_tracking_papers.study import ANALOGUE, FloatArray, Study, each_over_seeds, medians, over_seeds, told

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
KEPT = 0.45
"""Share of the columns, from the left, where models of depth are trained."""
SHARES = 0.05, 0.02
"""Share of measured pixels where models are trained, and where they are tested."""
DEPTH = {"ause_rmse": "AUSE (RMSE)", "auce": "AUCE", "rmse": "RMSE [m]"}
CLASSES = {"ause_brier": "AUSE (Brier)", "ece": "ECE", "miou": "mIoU"}
ROTATED = {f"rotated by {angle} degrees": angle for angle in (10, 20)}
"""Degrees by which test digits are rotated."""
PAIR = (ENSEMBLING, DROPOUT)
SCENE_CHOICE = "the scene, which stands for KITTI here"
SHIFT_CHOICE = "how far the test data lie from the training data, which is ours"


def reproduce(study: Study) -> None:
    """Figures 1 to 9."""
    toys = [
        (toy, {method: toy_outputs(study, toy, method) for method in METHODS})
        for toy in (toy_regression(study), toy_classification())
    ]
    scenes = {scene.name: scene for scene in scenes_of(study)}
    depth, of_depth = {}, {}
    for name, scene in scenes.items():
        depth[name] = study.cached(f"depth-{name}", partial(depth_outputs, study, scene))
        scored = partial(depth_scores, study, name, depth[name])
        of_depth[name] = study.cached(f"depth-scores-{name}", scored)
    digits = study.cached("digits", partial(digits_outputs, study))
    first = next(iter(scenes))
    figure_1(study, scenes[first], depth[first])
    figure_2(study, toys[0][0], toys[0][1][ENSEMBLING])
    figure_3(study, toys[1][0])
    figure_4(study, toys)
    figure_5(study, toys)
    figure_6(study, of_depth)
    figure_7(study, depth)
    figure_8(study, study.cached("digits-scores", partial(digits_scores, study, digits)))
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


Toys = Sequence[tuple[Toy, Mapping[str, Outputs]]]
"""The toys, each with the outputs (seeds, M, m, outputs) of every method."""


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


def toy_outputs(study: Study, toy: Toy, method: str) -> Outputs:
    """Outputs (seeds, M, m, outputs) of a method's samples."""
    return study.cached(f"{toy.name}-{method.lower()}", partial(toy_samples, study, toy, method))["outputs"]


def toy_samples(study: Study, toy: Toy, method: str) -> dict[str, npt.ArrayLike]:
    """Train, or run a chain, and keep the outputs."""
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
    """The Gaussian network shown is the one of median coverage outside the training range."""
    study.item(
        "figure 2", "Three networks of growing honesty on one problem", "with the authors' points and HMC"
    )
    networks = Bundle(study.seeds, 1, HIDDEN, 1, seed=int(study.rng("direct").integers(2**31)))
    effort = Training(study.pick(150, 80, 10), 32, study.pick(1e-3, 2e-3, 5e-3))
    direct = fit(networks, toy.x, toy.y, squared_loss, effort).predict(toy.at)[..., 0].astype(float)
    x, y = toy.at[:, 0], toy.truth
    true_mean, true_std = (part[0] for part in sine.components(x))
    single = [toy.mixed(one[:1]) for one in ensembles]
    inside = np.abs(x) <= 3

    def coverage(found: Sequence[Distribution], where: npt.NDArray[np.bool_]) -> FloatArray:
        return np.array([np.mean(np.abs(y - mean)[where] <= 1.96 * std[where]) for mean, std in found])

    inner, outer, (hmc,) = coverage(single, inside), coverage(single, ~inside), coverage([toy.hmc], ~inside)
    typical = single[int(np.argsort(outer)[len(outer) // 2])]
    figure, axes = panels(2, 2, width=4.4, height=3.0)
    shown = {
        "(a) the truth, and training points": (true_mean, true_std),
        "(b) direct: no uncertainty": (direct[0], 0 * x),
        "(c) Gaussian: sure where it saw nothing": typical,
        "(d) HMC: unsure where it saw nothing": toy.hmc,
    }
    for ax, (title, (mean, std)) in zip(axes, shown.items(), strict=True):
        band(panel(ax, title, "x", "y"), toy, mean, std)
        line(ax, x, true_mean, color=REFERENCE, linewidth=1.0, linestyle=":")
    study.figure(
        figure,
        "Mean and two standard deviations, true mean (dotted) and training points (orange, from -3 to 3): only HMC "
        "widens where there were none.",
    )
    off = np.sqrt(np.mean((direct[:, inside] - true_mean[inside]) ** 2, axis=1))
    study.finding(
        "A network trained to predict y regresses the mean accurately where it was trained (RMSE below 0.05)",
        off < 0.05,
        f"RMSE from the true mean {over_seeds(off)}, beside noise of 0.01 to 0.14",
    )
    study.finding(
        "A Gaussian network matches the truth where it was trained (its 95 % intervals cover 90 to 99 %)",
        (inner >= 0.9) & (inner <= 0.99),
        f"coverage {over_seeds(inner, '.0%')}",
    )
    study.finding(
        "A Gaussian network is overconfident where it was not trained (95 % intervals cover less than 80 %)",
        outer < 0.8,
        f"coverage {over_seeds(outer, '.0%')}",
    )
    study.finding(
        "Where there were no training points HMC predicts more reasonable uncertainties (coverage nearer to 95 %)",
        abs(hmc - 0.95) < np.abs(outer - 0.95),
        f"coverage of the authors' HMC {hmc:.0%}, of a Gaussian network {over_seeds(outer, '.0%')}",
    )


def figure_3(study: Study, toy: Toy) -> None:
    """The true classes (a) exist as a picture only."""
    note = "(b) and (c) from the authors' files; (a) exists as a picture only"
    study.item("figure 3", "The toy classification problem and its HMC", note)
    figure, axes = panels(1, 2, width=4.0, height=3.7)
    plane(panel(axes[0], "(b) training points", "x1", "x2"), toy, None)
    plane(panel(axes[1], "(c) HMC: probability of the red class", "x1", "x2"), toy, toy.hmc[0][:, 1])
    study.figure(
        figure, "Training saw the right half of the centre only, and HMC is unsure (pale) on the left."
    )


def figure_4(study: Study, toys: Toys) -> None:
    """The first seed."""
    study.item("figure 4", "Predictive distributions with 16 samples, beside HMC's", "HMC by the authors")
    figure, axes = panels(2, 3, width=3.6, height=3.4)
    for row, (toy, samples) in enumerate(toys):
        shown = {HMC: toy.hmc, **{name: toy.mixed(samples[name][0]) for name in PAIR}}
        for ax, (name, found) in zip(axes[3 * row :], shown.items(), strict=False):
            away = ", the target" if name == HMC else f": KL {toy.divergence(toy.hmc, found):.2f}"
            if toy.apart:
                band(panel(ax, f"{name}{away}", "x", "y"), toy, *found)
            else:
                plane(panel(ax, f"{name}{away}", "x1", "x2"), toy, found[0][:, 1])
    study.figure(
        figure,
        "Which is more like the left column? Mean and two standard deviations; below, probability of the red class: "
        "ensembling, also by KL(HMC || p).",
    )


def band(ax: Axes, toy: Toy, mean: FloatArray, std: FloatArray) -> None:
    """Mean and two standard deviations over the inputs."""
    x = toy.at[:, 0]
    ax.fill_between(x, mean - 2 * std, mean + 2 * std, color=MODEL, alpha=0.25, linewidth=0)
    ax.plot(toy.x[::4, 0], toy.y[::4].astype(float), ".", color="#D55E00", markersize=3)
    ax.plot(x, mean, color=MODEL, linewidth=2.0)
    ax.set(xlim=(-7, 7), ylim=(-6, 6), xticks=range(-6, 7, 3))


def plane(ax: Axes, toy: Toy, one: FloatArray | None) -> None:
    """Probability of class 1 over the plane, or only the training points."""
    ax.grid(False)
    ax.set(xlim=(-6, 6), ylim=(-6, 6), aspect="equal")
    if one is not None:
        side = round(len(one) ** 0.5)
        grid, extent = one.reshape(side, side), (-6.0, 6.0, -6.0, 6.0)
        ax.imshow(grid, origin="lower", extent=extent, vmin=0, vmax=1, cmap="coolwarm", aspect="equal")
    for label, color in ((0, "#0b3c78"), (1, "#7a1010")):
        ax.plot(*toy.x[::3][toy.y[::3] == label].T, ".", color=color, markersize=3)


def figure_5(study: Study, toys: Toys) -> None:
    """Both directions of the divergence; the scripts' above."""
    note = "up to M = 16 of the paper's 64; HMC by the authors"
    study.item("figure 5", "Divergence from HMC against the number of samples", note)
    figure, axes = panels(2, 2, width=4.6, height=3.6)
    for column, (toy, samples) in enumerate(toys):
        found = study.cached(f"{toy.name}-divergence", partial(divergences, toy, samples))
        for row, direction in enumerate((FORWARD, BACKWARD)):
            ax = panel(
                axes[2 * row + column], f"{toy.name}: {direction}", "samples M", "nats, lower is closer"
            )
            against_members(study, ax, f"{toy.name}: {direction}", METHODS, found, direction)
            ax.set_yscale("log")
        if toy.apart:
            axes[0].set_ylim(0.1, 1000)
        divergence_findings(study, toy, found)
    legend_below(figure, axes[0])
    study.figure(
        figure,
        "Above, in the scripts' direction, ensembling comes closest to HMC from M = 2 or 4; below, the direction "
        "that the paper writes (medians; bars: half of the seeds).",
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
    last = {method: of[:, -1] for method, of in value.items()}
    for rivals, words in (((DROPOUT,), "MC-dropout"), ((SGLD, SGHMC), "SGLD and SGHMC")):
        closer, reverse = (
            np.all([of[ENSEMBLING][:, 1:] < of[rival][:, 1:] for rival in rivals], axis=0)
            for of in (value, other)
        )
        study.finding(
            f"Ensembling is closer to HMC than {words} ({toy.name}, M = {MOST})",
            closer[:, -1],
            f"{FORWARD}: {medians(last)}; at every M from 2 in {np.all(closer, axis=1).mean():.0%} of the seeds; by "
            f"{BACKWARD} at M = {MOST} in {reverse[:, -1].mean():.0%}",
        )
    one, four, eight = (value[ENSEMBLING][:, COUNTS.index(count)] for count in (1, 4, 8))
    reverse = other[ENSEMBLING][:, -1] < other[ENSEMBLING][:, 0]
    study.finding(
        f"An ensemble comes closer to HMC as members join ({toy.name})",
        last[ENSEMBLING] < one,
        f"{FORWARD}: {np.median(one):.3g} nats at M = 1, {np.median(last[ENSEMBLING]):.3g} at M = {MOST}; by "
        f"{BACKWARD} in {np.mean(reverse):.0%} of the seeds",
    )
    study.finding(
        "Ensembling approximates HMC reasonably even for quite small M, compared with MC-dropout: 8 members are "
        f"closer than {MOST} passes ({toy.name})",
        eight < last[DROPOUT],
        f"{over_seeds(eight)} and {over_seeds(last[DROPOUT])} nats; 4 members {over_seeds(four)}",
    )


def against_members(
    study: Study, ax: Axes, quantity: str, methods: Sequence[str], found: Arrays, key: str
) -> None:
    """A metric (seeds, numbers of samples) by method: rows of its ends, medians, bars for half of the seeds."""
    ax.set_xscale("log", base=2)
    ax.set_xticks(COUNTS, [str(count) for count in COUNTS])
    for place, method in enumerate(methods):
        values, style = found[f"{method} {key}"], STYLES[method]
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
        at = np.asarray(COUNTS) * 1.06 ** (place - (len(methods) - 1) / 2)  # bars beside each other
        ax.vlines(at, low, high, color=style["color"], linewidth=3, alpha=0.35)
        line(ax, at, middle, label=method, markersize=4, linewidth=1.8, **style)
        for number in (0, len(COUNTS) - 1):
            study.repeats(method, f"{quantity}, M = {COUNTS[number]}", values[:, number])


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
    for method in PAIR:
        networks = shifted_networks(study, f"depth {scene.name}", method, x.shape[-1], 2)
        effort = Training(study.pick(60, 40, 8), 64, 2e-3)
        watch = partial(study.progress, what=f"{method}, {scene.name}")
        fit(networks, x, rest / scale, gaussian_loss, effort, watch)
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
    scores: dict[str, npt.ArrayLike] = {}
    for method in PAIR:
        rows = []
        for seed, truth in enumerate(found["rest"].astype(float)):
            means, stds = (found[f"{method} {what}"][seed].astype(float) for what in ("mean", "std"))
            forecasts = [(truth, *together(means[:count], stds[:count])) for count in COUNTS]
            run = "" if seed else f"{name}, {method}"
            rows.append(
                [by_count(study, run, place, DEPTH, *one, unit="m") for place, one in enumerate(forecasts)]
            )
        scores |= {f"{method} {key}": [[of[key] for of in row] for row in rows] for key in DEPTH}
    return scores


def by_count(
    study: Study, run: str, place: int, keys: Mapping[str, str], *data: Any, **options: Any
) -> Mapping[str, float]:
    """Scores with one of the numbers of samples; the first seed's with all samples are logged."""
    method = run if run and COUNTS[place] == MOST else None
    scores: Mapping[str, float] = study.scored(*data, method=method, metrics=keys, **options).scores
    return scores


def figure_1(study: Study, scene: Scene, found: Arrays) -> None:
    """The first seed's ensemble on the whole scene."""
    study.item(
        "figure 1",
        "What an ensemble predicts, and where it is unsure",
        f"the motorcycle for KITTI, without the half on segmentation; M = {MOST} for the paper's 8",
        status=ANALOGUE,
    )
    shape = scene.target.shape
    mean, std = (found[f"{ENSEMBLING} {what}"].reshape(shape) for what in ("map", "map std"))
    low, high = np.nanquantile(scene.target, [0.01, 0.99])
    error = np.abs(mean - scene.target)
    top = float(np.nanquantile(error, 0.97))
    figure, axes = panels(2, 2, width=4.4, height=4.4 * shape[0] / shape[1] + 0.3)
    picture(figure, axes[0], "input image", scene.image if scene.image.size else scene.target)
    picture(figure, axes[1], "prediction [m]", mean, low, high)
    picture(figure, axes[2], "ERROR [m]", error, 0, top, "inferno")
    picture(figure, axes[3], "standard deviation stated [m]", std, 0, top, "inferno")
    for ax in axes:
        ax.axvline(round(KEPT * shape[1]), color="white", linewidth=1.5)
    study.figure(
        figure,
        f"An ensemble of {MOST}, trained left of the line, is unsure where it errs, at the edges of objects, and "
        "more so on the right, with fewer measurements (slate: truth unknown).",
    )


def by_members(study: Study, labels: Mapping[str, str], variants: Mapping[str, Arrays], caption: str) -> None:
    """Rows and the figure of metrics against the number of samples; a row of panels for each variant."""
    figure, axes = panels(len(variants), len(labels), width=4.0, height=3.4)
    places = iter(axes)
    for variant, found in variants.items():
        for key, label in labels.items():
            arrow = "↑" if key == "miou" else "↓"
            ax = panel(next(places), f"{variant}: {label} {arrow}", "samples M", "")
            against_members(study, ax, f"{variant}: {label}", PAIR, found, key)
    legend_below(figure, axes[0])
    study.figure(figure, caption)


def ends(found: Arrays, key: str) -> str:
    """A metric with one sample and with all, for a sentence."""
    middle = {method: np.median(found[f"{method} {key}"], axis=0) for method in PAIR}
    return ", ".join(
        f"{method} {of[0]:.3g} at M = 1 and {of[-1]:.3g} at M = {MOST}" for method, of in middle.items()
    )


def gain(found: Arrays, method: str, key: str) -> FloatArray:
    """How much better a metric is with all samples than with one, for each seed."""
    values = found[f"{method} {key}"]
    return np.asarray((values[:, 0] - values[:, -1]) * (-1 if key == "miou" else 1))


def both_gain(variants: Mapping[str, Arrays], key: str) -> dict[str, npt.NDArray[np.bool_]]:
    """Whether a metric improves for both methods, by variant."""
    return {
        name: np.all([gain(of, method, key) > 0 for method in PAIR], axis=0) for name, of in variants.items()
    }


def figure_6(study: Study, found: Mapping[str, Arrays]) -> None:
    """Two scenes."""
    title = "AUSE, AUCE and RMSE of depth against the number of samples"
    note = "the motorcycle and a terrain for KITTI"
    study.item("figure 6", title, note, status=ANALOGUE, choice=SCENE_CHOICE)
    caption = (
        "Arrows: better. AUSE falls for both, yet MC-dropout has the lower one on the motorcycle, and the lower RMSE "
        "on both scenes; the paper says that ensembling consistently outperforms it in AUSE. With members, "
        "ensembling's AUCE improves on the terrain, as in the paper, not on the motorcycle; MC-dropout's worsens on "
        "both."
    )
    by_members(study, DEPTH, found, caption)
    evidence = {key: "; ".join(f"{name}: {ends(of, key)}" for name, of in found.items()) for key in DEPTH}
    ause = "ause_rmse"
    lower = {
        name: of[f"{ENSEMBLING} {ause}"][:, 1:] < of[f"{DROPOUT} {ause}"][:, 1:] for name, of in found.items()
    }
    always = {name: float(np.mean(np.all(of, axis=1))) for name, of in lower.items()}
    study.finding(
        f"Ensembling has the lower AUSE (depth, M = {MOST})",
        {name: of[:, -1] for name, of in lower.items()},
        f"{evidence[ause]}; at every M from 2 in these shares of the seeds: {told(always, '.0%')}",
    )
    study.finding(
        "AUSE decreases with the number of samples, for both methods (depth)",
        both_gain(found, ause),
        evidence[ause],
    )
    study.finding(
        "AUCE of ensembling clearly improves with the number of samples (depth)",
        {name: gain(of, ENSEMBLING, "auce") > 0 for name, of in found.items()},
        f"{evidence['auce']}; single networks are overconfident on the terrain, and not on the motorcycle",
    )
    study.finding(
        "AUCE of MC-dropout gets progressively worse (depth)",
        {name: gain(of, DROPOUT, "auce") <= 0 for name, of in found.items()},
        evidence["auce"],
    )


def figure_7(study: Study, found: Mapping[str, Arrays]) -> None:
    """Shares of central intervals that cover the truth."""
    title, note = "Condensed calibration plots of depth, M = 16", "the motorcycle and a terrain for KITTI"
    study.item("figure 7", title, note, status=ANALOGUE)
    levels = np.arange(1, 100) / 100
    figure, axes = panels(len(found), 2, width=4.4, height=3.7)
    places = iter(axes)
    for name, of in found.items():
        for method in PAIR:
            covered, color = [], STYLES[method]["color"]
            for rest, means, stds in zip(of["rest"], of[f"{method} mean"], of[f"{method} std"], strict=True):
                mean, std = together(means.astype(float), stds.astype(float))
                z = np.sort(np.abs(rest - mean) / std)
                covered.append(np.searchsorted(z, norm.ppf(0.5 + levels / 2), side="right") / len(z))
            ax = panel(next(places), f"{method}, {name}", "expected share", "observed share")
            line(ax, [0, 1], [0, 1], color=REFERENCE, linestyle=":", linewidth=1.2)
            for one in covered:
                line(ax, levels, one, color=color, linewidth=0.6, alpha=0.5)
            line(ax, levels, np.median(covered, axis=0), color=color, linewidth=2.4)
            for place in (9, 49, 89):
                quantity = f"{name}: observed share where {levels[place]:g} is expected"
                study.repeats(method, quantity, np.asarray(covered)[:, place])
    study.figure(
        figure,
        "Shares of central intervals that cover the truth: above the dotted line too cautious, MC-dropout more so "
        "than ensembling on both scenes (thin: seeds).",
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
        for angle in ROTATED.values()
    }
    size, tested = study.pick((1000, 700), (1000, 700), (400, 300))
    orders = np.stack([study.rng("digits", seed).permutation(len(labels)) for seed in range(study.few_seeds)])
    training, test = orders[:, :size], orders[:, size : size + tested]
    found: dict[str, npt.ArrayLike] = {"labels": labels[test]}
    for method in PAIR:
        networks = shifted_networks(study, "digits", method, 64, 10)
        effort = Training(study.pick(40, 40, 20), 50, 2e-3)
        watch = partial(study.progress, what=f"{method}, digits")
        fit(networks, images.reshape(-1, 64)[training], labels[training], class_loss, effort, watch)
        for angle, turned in rotated.items():
            outputs = drawn_outputs(networks, turned[test], study.few_seeds)
            found[f"{method} {angle}"] = probabilities(outputs).astype(np.float32)
    return found


def digits_scores(study: Study, found: Arrays) -> dict[str, npt.ArrayLike]:
    """Scores (seeds, numbers of samples) of both methods for each angle."""
    scores: dict[str, npt.ArrayLike] = {}
    for method in PAIR:
        for angle in ROTATED.values():
            rows = []
            for seed, labels in enumerate(found["labels"]):
                probs = [mean_of(found[f"{method} {angle}"][seed, :count]) for count in COUNTS]
                run = "" if seed else f"digits rotated by {angle}, {method}"
                rows.append(
                    [by_count(study, run, place, CLASSES, labels, probs=of) for place, of in enumerate(probs)]
                )
            scores |= {
                f"{method} {key} {angle}": [[of[key] for of in row] for row in rows] for key in CLASSES
            }
    return scores


def mean_of(members: npt.NDArray[Any]) -> FloatArray:
    """Mean probabilities of members (members, n, classes), exactly normalized."""
    probs = members.astype(float).mean(axis=0)
    return np.asarray(probs / probs.sum(axis=-1, keepdims=True))


def figure_8(study: Study, scores: Arrays) -> None:
    """Two angles."""
    title = "AUSE, ECE and mIoU of rotated digits against the number of samples"
    study.item("figure 8", title, "rotated digits for Cityscapes", status=ANALOGUE, choice=SHIFT_CHOICE)
    variants = {
        name: {key.removesuffix(f" {angle}"): of for key, of in scores.items() if key.endswith(f" {angle}")}
        for name, angle in ROTATED.items()
    }
    caption = (
        "Arrows: better. Ensembling improves slowly in all. MC-dropout gains more in AUSE and mIoU, and its ECE "
        f"worsens at 10 degrees; at M = {MOST} it has the lower AUSE at both angles, and the lower ECE at 20 degrees."
    )
    by_members(study, CLASSES, variants, caption)
    main = next(iter(variants.values()))
    for key, label in CLASSES.items():
        claim = f"{label} improves with the number of samples, for both methods (classes)"
        study.finding(claim, both_gain(variants, key), ends(main, key))
    faster = {
        name: np.sum([gain(of, ENSEMBLING, key) > gain(of, DROPOUT, key) for key in CLASSES], axis=0)
        for name, of in variants.items()
    }
    gains = {
        label: [float(np.median(gain(main, method, key))) for method in PAIR]
        for key, label in CLASSES.items()
    }
    study.finding(
        "The rate of improvement is generally greater for ensembling (at least two of the three metrics; classes)",
        {name: of >= 2 for name, of in faster.items()},
        "; ".join(f"{label}: {of[0]:.3f} and {of[1]:.3f}" for label, of in gains.items())
        + "; one pass of so small a network with half of its units is far worse than one without dropout, so that "
        "MC-dropout has more to gain",
    )
    ece = {name: of[f"{ENSEMBLING} ece"] for name, of in variants.items()}
    paths = {name: ", ".join(f"{value:.3f}" for value in np.median(of, axis=0)) for name, of in ece.items()}
    study.finding(
        "ECE of ensembling improves drastically and then stays (by a third at least, nine tenths of it by M = 8)",
        {
            name: (of[:, 0] - of[:, -1] > of[:, 0] / 3)
            & (of[:, 0] - of[:, COUNTS.index(8)] > 0.9 * (of[:, 0] - of[:, -1]))
            for name, of in ece.items()
        },
        "; ".join(f"{name}: {path} for M = 1, 2, 4, 8, 16" for name, path in paths.items()),
    )
    late = {
        name: of[f"{DROPOUT} ece"][:, -1] - of[f"{DROPOUT} ece"][:, COUNTS.index(8)]
        for name, of in variants.items()
    }
    study.finding(
        f"ECE of MC-dropout stagnates (from M = 8 to {MOST} it changes by less than 0.01; classes)",
        {name: np.abs(of) < 0.01 for name, of in late.items()},
        f"change {each_over_seeds(late, '+.3f')}",
    )


def figure_9(study: Study, found: Arrays) -> None:
    """All seeds together; bins of fewer than 30 digits are left out."""
    title, note = "Reliability of the classes, M = 16", "rotated digits for Cityscapes"
    study.item("figure 9", title, note, status=ANALOGUE, choice=SHIFT_CHOICE)
    figure, axes = panels(2, 2, width=4.2, height=3.8)
    labels, places = found["labels"], iter(axes)
    over: dict[tuple[str, int], dict[str, FloatArray]] = {}
    for name, angle in ROTATED.items():
        for method in PAIR:
            for count in (1, MOST):
                probs = np.stack([mean_of(one[:count]) for one in found[f"{method} {angle}"]])
                confidence, right = probs.max(axis=-1), probs.argmax(axis=-1) == labels
                gap = (confidence - right).mean(axis=1)
                over.setdefault((method, count), {})[name] = gap
                study.repeats(method, f"confidence minus accuracy, M = {count}, {name}", gap)
            ax = panel(next(places), f"{method}, {name}", "stated confidence", "share correct")
            line(ax, [0, 1], [0, 1], color=REFERENCE, linestyle=":", linewidth=1.2)
            bins = np.clip((10 * confidence).astype(int), 0, 9)
            kept = [number for number in range(10) if np.sum(bins == number) >= 30]
            heights = [float(right[bins == number].mean()) for number in kept]
            ax.bar((np.asarray(kept) + 0.5) / 10, heights, 0.09, color=STYLES[method]["color"], alpha=0.6)
    study.figure(
        figure,
        "Below the dotted line overconfident: ensembling is, the more the farther digits are turned; MC-dropout is "
        "timid at 10 degrees and nearly right at 20.",
    )
    alone, all_members = over[ENSEMBLING, 1], over[ENSEMBLING, MOST]
    study.finding(
        "Ensembling passes from clear overconfidence to slight over-conservatism (classes)",
        {name: (alone[name] > 0.02) & (gap < 0) for name, gap in all_members.items()},
        "confidence minus accuracy: "
        + "; ".join(
            f"{name}: {np.median(alone[name]):+.3f} to {np.median(gap):+.3f}"
            for name, gap in all_members.items()
        ),
    )
    study.finding(
        f"MC-dropout is still somewhat overconfident with {MOST} samples (classes)",
        {name: gap > 0 for name, gap in over[DROPOUT, MOST].items()},
        f"confidence minus accuracy: {each_over_seeds(over[DROPOUT, MOST], '+.3f')}; without half of its 48 units a "
        "network here is timid",
    )
