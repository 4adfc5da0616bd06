"""Gustafsson et al. (2020): ensembling and MC-dropout against the number of samples, on toys and under a shift."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import uq_tracking as uq
from uq_tracking.demo.terrain import load_terrain
from uq_tracking.figures.style import MODEL, legend_below, line, new_figure, style_axes
from uq_tracking.inputs import Predictions
from uq_tracking_papers import landforms
from uq_tracking_papers.datasets import sine, two_classes
from uq_tracking_papers.networks import (
    Bundle,
    Loss,
    Sampling,
    Training,
    Watch,
    class_loss,
    fit,
    gaussian_loss,
    moments,
    probabilities,
    sample,
)
from uq_tracking_papers.study import FloatArray, Study, told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from uq_tracking.report import Report

Outputs = npt.NDArray[np.float32]
Columns = Mapping[str, npt.NDArray[np.generic]]

STYLES = {
    "Ensembling": {"color": MODEL, "linestyle": "-", "marker": "o"},
    "MC-dropout": {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    "SGLD": {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    "SGHMC": {"color": "#7B3F9E", "linestyle": ":", "marker": "D"},
}
LABELS = {
    "kl_to_reference": "KL to HMC",
    "ause_rmse": "AUSE (RMSE)",
    "auce": "AUCE",
    "rmse": "RMSE",
    "ause_brier": "AUSE (Brier)",
    "ece": "ECE",
    "miou": "mIoU",
}
KL = "kl_to_reference"
HMC = "HMC"
HIDDEN = (10, 10)
SHOWN_MEMBERS = 16
HIGHEST = 2.0
"""Log variances are capped at this, as in the released scripts: far from the data they are unbounded."""

WEST, EAST = slice(0, 180), slice(230, 403)
SHARES = 0.05, 0.02
"""Share of measured cells where models are trained, and where they are tested."""
REGRESSION_KEYS = ("ause_rmse", "auce", "rmse")
CLASS_KEYS = ("ause_brier", "ece", "miou")
SHIFT = (
    "Models are trained in the west of the demo's terrain, where 5 % of the cells are measured, and tested in the "
    "east, where 2 % are: a shift in place and in density, where the paper steps from rendered to real images."
)


def reproduce(study: Study) -> None:
    """Figures 3 to 6 and 8; figures 1, 2, 7 and 9 contain no further numbers."""
    toys(study)
    shift(study)


def against_members(reports: Sequence[Report], keys: Sequence[str]) -> dict[str, npt.ArrayLike]:
    """Columns ``members`` and, for each metric, the mean over repeats and subsets and their range."""
    columns: dict[str, npt.ArrayLike] = {}
    for key in keys:
        found = [report.curves[f"by_members_{key}"].columns for report in reports]
        columns["members"] = found[0]["members"]
        columns[key] = np.mean([one["mean"] for one in found], axis=0)
        columns[f"{key} low"] = np.min([one["subset_low"] for one in found], axis=0)
        columns[f"{key} high"] = np.max([one["subset_high"] for one in found], axis=0)
    return columns


def at(columns: Columns, key: str, members: int) -> float:
    """A column at a number of members."""
    (place,) = np.flatnonzero(columns["members"] == members)
    return float(columns[key][place])


def report_members(
    study: Study, item: str, found: Mapping[str, Columns], keys: Sequence[str], members: Sequence[int]
) -> None:
    """Rows of each method at chosen numbers of members, and the figure."""
    for method, columns in found.items():
        for key in keys:
            for count in members:
                low, mean, high = (at(columns, f"{key}{end}", count) for end in (" low", "", " high"))
                study.row(item, method, f"{LABELS[key]}, M = {count}", mean, None, low, high)
    figure = new_figure((3.7 * len(keys) + 0.6, 3.9))
    for ax, key in zip(np.atleast_1d(figure.subplots(1, len(keys))), keys, strict=True):
        style_axes(ax, "Samples M", LABELS[key])
        ax.set_xscale("log", base=2)
        if key == KL:
            ax.set_yscale("log")
        for method, columns in found.items():
            style = STYLES[method]
            sizes, bottom, top = (
                columns[name].astype(float) for name in ("members", f"{key} low", f"{key} high")
            )
            ax.fill_between(sizes, bottom, top, color=style["color"], alpha=0.12, linewidth=0)
            line(ax, sizes, columns[key], label=method, markersize=4, linewidth=1.8, **style)
    legend_below(figure, figure.axes[0])
    study.figure(item, figure, "Lines: means over repeats and random subsets; bands: their range.")


@dataclass(frozen=True)
class Toy:
    """One of the two problems of section 4.1.

    Attributes
    ----------
    name, title : str
    x, y : arrays (n, inputs) and (n,)
        Training set.
    at : array (m, inputs)
        Where predictive distributions are compared.
    truth : array (m,)
        A target drawn at each of these, for metrics logged beside the divergence.
    inside : bool array (m,)
        Which of these are covered by training.
    loss : callable
    apart : bool
        Whether mean and variance have separate networks.
    langevin : float
        Learning rate of SGLD, as in the released scripts.
    note : str
        Where it differs from the paper.
    """

    name: str
    title: str
    x: FloatArray
    y: npt.NDArray[Any]
    at: FloatArray
    truth: npt.NDArray[Any]
    inside: npt.NDArray[np.bool_]
    loss: Loss
    apart: bool
    langevin: float
    note: str

    @property
    def item(self) -> str:
        """The part of figure 5."""
        return f"figure 5, {self.name}"

    def bundle(self, count: int, seed: int, **options: Any) -> Bundle:
        """Untrained networks of this problem."""
        return Bundle(count, self.x.shape[1], HIDDEN, 2, seed=seed, apart=self.apart, **options)

    def parameters(self, outputs: Outputs) -> tuple[FloatArray, ...]:
        """Parameters of the members' predictive distributions: means and stds, or probabilities of two classes."""
        return moments(outputs, HIGHEST) if self.apart else (probabilities(outputs),)

    def mixed(self, outputs: Outputs) -> tuple[FloatArray, ...]:
        """Parameters of the members (members, m, outputs) together."""
        if not self.apart:
            return (probabilities(outputs).mean(axis=0),)
        means, stds = self.parameters(outputs)
        return means.mean(axis=0), np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))

    def report(
        self, study: Study, outputs: Outputs, reference: tuple[FloatArray, ...], log_as: str | None
    ) -> Report:
        """Scores against the number of members; the run is logged if it is given a name."""
        options: dict[str, Any] = {"curves": "by_members", "reference": reference}
        if self.apart:
            predictions = Predictions.from_ensemble(self.truth, *self.parameters(outputs))
            options["curve_metrics"] = ["rmse"]
        else:
            predictions = Predictions.from_probs(self.truth, *self.parameters(outputs), members_axis=0)
            options |= {"curve_metrics": ["accuracy"], "reference": reference[0]}
        report: Report = (
            uq.evaluate(predictions, **options)
            if log_as is None
            else study.log(predictions, method=log_as, **options)
        )
        return report

    def between(
        self,
        one: tuple[FloatArray, ...],
        other: tuple[FloatArray, ...],
        where: npt.NDArray[np.bool_] | slice = slice(None),
    ) -> float:
        """Mean KL(one || other) at some of the positions."""
        truth = self.truth[where]
        first, second = ([part[where] for part in parts] for parts in (one, other))
        if self.apart:
            report = uq.evaluate(truth, *first, reference=tuple(second), metrics=[KL])
        else:
            report = uq.evaluate(truth, probs=first[0], reference=second[0], metrics=[KL])
        return float(report.scores[KL])


def regression(study: Study) -> Toy:
    """The sine of eq. 5."""
    training = sine(1000, study.rng("sine"), training=True)
    x = np.linspace(*sine.domain, study.pick(1000, 500, 200))
    return Toy(
        "regression", "a sine with growing noise", training.x[:, None], training.y, x[:, None],
        sine.at(x, study.rng("sine test")).y, np.abs(x) <= 3, gaussian_loss, True, 0.01,
        "Log variances above 2 count as 2, as in the released scripts.",
    )  # fmt: skip


def classification(study: Study) -> Toy:
    """Two classes in the plane."""
    training = two_classes(520, study.rng("classes"))
    points = two_classes.grid(study.pick(60, 40, 16))
    inside = (points[:, 0] >= 0) & (np.abs(points) <= two_classes.half).all(axis=1)
    return Toy(
        "classification", "two classes in the plane", training.x, training.y, points,
        two_classes.at(points, study.rng("classes test")).y, inside, class_loss, False, 0.05,
        "The paper shows its classes as a picture only; the boundary here is ours. Its scripts normalize the map of "
        "one class's probabilities over the plane before they take a divergence; here it is that of the two classes' "
        "probabilities at each point.",
    )  # fmt: skip


def toys(study: Study) -> None:
    """Figures 3 to 5 (section 4.1), or a finding that says why they are missing."""
    try:
        from uq_tracking_papers import hmc
    except ModuleNotFoundError as error:
        missing = f"{error.name} is not installed: pip install uq-tracking-papers"
        study.item("figure 5", f"Divergence from HMC.\n\nNot run, because {missing}.")
        study.finding(
            "Figures 3 to 5 (toys, divergence from HMC) were reproduced", False, f"not run: {missing}"
        )
        return
    for toy in (regression(study), classification(study)):
        chains = study.cached(f"hmc-{toy.name}", partial(hmc_chains, study, toy, hmc))
        samples = {
            method: study.cached(f"{toy.name}-{method.lower()}", partial(method_samples, study, toy, method))[
                "outputs"
            ]
            for method in STYLES
        }
        figure_5(study, toy, chains, samples)


def hmc_chains(study: Study, toy: Toy, hmc: Any) -> dict[str, npt.ArrayLike]:
    """Outputs (chains, samples, m, outputs) of networks drawn by HMC, and the R-hat of what they determine."""
    effort = study.pick(hmc.Chains(4, 300, 300, 9), hmc.Chains(4, 150, 150, 7), hmc.Chains(2, 30, 30, 5))
    shape = hmc.Shape((toy.x.shape[1], *HIDDEN, 1 if toy.apart else 2), 2 if toy.apart else 1)
    energy = hmc.gaussian_energy if toy.apart else hmc.class_energy
    for _ in study.progress(range(1), f"HMC, {toy.name}"):
        outputs = hmc.sampled_outputs(shape, energy, toy.x, toy.y, toy.at, effort, seed=study.seed)
    identified = (
        outputs if toy.apart else outputs[..., 1:] - outputs[..., :1]
    )  # of two logits, the difference
    return {"outputs": outputs, "r_hat": hmc.r_hat(identified)}


def method_samples(study: Study, toy: Toy, method: str) -> dict[str, npt.ArrayLike]:
    """Outputs (repeats, members, m, outputs) of a method's samples."""
    seed = int(study.rng(toy.name, method).integers(2**31))
    watch = partial(study.progress, what=f"{method}, {toy.name}")
    members, repeats = study.pick((64, 5), (32, 3), (16, 2))
    epochs, rate = study.pick(150, 80, 40), study.pick(1e-3, 2e-3, 4e-3)
    if method == "Ensembling":
        networks = toy.bundle(2 * members, seed)
        fit(networks, toy.x, toy.y, toy.loss, Training(epochs, 32, rate), watch)
        return {"outputs": networks.predict(toy.at)[None]}
    if method == "MC-dropout":
        # The prior N(0, I) as weighted in the scripts: by the share of units kept, per training sample.
        training = Training(2 * epochs, 32, rate, decay=0.5 * 0.8 / len(toy.x))
        networks = toy.bundle(repeats, seed, dropout=0.2, dropped=(0,))
        fit(networks, toy.x, toy.y, toy.loss, training, watch)
        return {"outputs": np.stack([networks.predict(toy.at, drop=True) for _ in range(members)], axis=1)}
    every, early = study.pick(25, 8, 2), members // 4
    scale, friction = (0.1, 0.1) if method == "SGHMC" else (1.0, 1.0)
    chain = Sampling(members + early, every, scale * toy.langevin, friction)
    found: list[Outputs] = []
    networks = toy.bundle(repeats, seed)
    sample(networks, toy.x, toy.y, toy.loss, chain, lambda: found.append(networks.predict(toy.at)), watch)
    return {"outputs": np.stack(found[early:], axis=1)}


def figure_5(study: Study, toy: Toy, chains: Mapping[str, Any], samples: Mapping[str, Any]) -> None:
    """Divergence from HMC, {title}.

    KL(p || p_HMC), as in section 4.1, averaged over {places:,} places in the whole region, of which training covers
    {covered:.0%}. HMC: {chains} chains of {count} samples by numpyro's NUTS, each begun at a mode of its own; the
    paper has one chain of 1000. Ensembling draws subsets of one pool of networks; the other methods have several
    chains or networks. SGLD and SGHMC run for fewer epochs than the paper's 150 per sample.

    The released scripts compute KL(p_HMC || p), the other direction; the table has both for M = {members}.

    {note}
    """
    outputs = chains["outputs"]
    reference = toy.mixed(outputs.reshape(-1, *outputs.shape[2:]))
    study.item(
        toy.item, figure_5, title=toy.title, places=len(toy.at), covered=toy.inside.mean(),
        chains=len(outputs), count=outputs.shape[1], members=SHOWN_MEMBERS, note=toy.note,
    )  # fmt: skip

    def curves(method: str) -> dict[str, npt.ArrayLike]:
        reports = [
            toy.report(study, one, reference, None if number else f"{toy.name}, {method}")
            for number, one in enumerate(samples[method])
        ]
        return against_members(reports, [KL])

    found = {
        method: study.cached(f"{toy.name}-{method.lower()}-curves", partial(curves, method))
        for method in samples
    }
    counts = [int(m) for m in found["SGLD"]["members"] if m in (1, 4, SHOWN_MEMBERS, 64)]
    report_members(study, toy.item, found, [KL], counts)
    for method, repeats in samples.items():
        mixed = [toy.mixed(one[:SHOWN_MEMBERS]) for one in repeats]
        for quantity, values in (
            ("scripts' KL(HMC || p), M = 16", [toy.between(reference, one) for one in mixed]),
            ("KL to HMC where trained, M = 16", [toy.between(one, reference, toy.inside) for one in mixed]),
        ):
            study.row(toy.item, method, quantity, float(np.mean(values)), None, min(values), max(values))
    away = []
    for chain in range(len(outputs)):
        others = np.delete(outputs, chain, axis=0).reshape(-1, *outputs.shape[2:])
        away.append(toy.between(toy.mixed(outputs[chain]), toy.mixed(others)))
    noise = float(np.mean(away))
    study.row(toy.item, "HMC, one chain against the others", "KL to HMC", noise, None, min(away), max(away))
    figure_5_findings(study, toy, found, np.asarray(chains["r_hat"], dtype=float), noise)
    shown = {name: toy.mixed(one[0][:SHOWN_MEMBERS]) for name, one in samples.items()}
    figure_4(study, toy, {HMC: reference, **shown})


def figure_5_findings(
    study: Study, toy: Toy, found: Mapping[str, Columns], r_hat: FloatArray, noise: float
) -> None:
    """Findings of figure 5; ``noise`` is the mean divergence of one chain from the others."""
    inside, outside = r_hat[toy.inside].max(), r_hat[~toy.inside].max()
    study.row(toy.item, HMC, "largest R-hat where trained", float(inside))
    study.row(toy.item, HMC, "largest R-hat elsewhere", float(outside))
    study.finding(
        f"The chains of the HMC reference agree ({toy.name}): split R-hat at most 1.1 everywhere",
        max(inside, outside) <= 1.1,
        f"largest {inside:.2f} where trained, {outside:.2f} elsewhere, median {np.median(r_hat):.2f}; one chain is "
        f"{noise:.3g} nats from the others",
    )
    value = {method: at(columns, KL, SHOWN_MEMBERS) for method, columns in found.items()}
    study.finding(
        f"Ensembling is closer to HMC than MC-dropout ({toy.name}, M = {SHOWN_MEMBERS})",
        value["Ensembling"] < value["MC-dropout"],
        f"nats: {told(value)}; chains of HMC among themselves {noise:.3g}",
    )
    study.finding(
        f"Ensembling is closer to HMC than SGLD and SGHMC ({toy.name}, M = {SHOWN_MEMBERS})",
        value["Ensembling"] < min(value["SGLD"], value["SGHMC"]),
        f"nats: {told(value)}",
    )
    first, last = (at(found["Ensembling"], KL, m) for m in (1, SHOWN_MEMBERS))
    study.finding(
        f"An ensemble comes closer to HMC as members join ({toy.name})",
        last < first,
        f"{first:.3g} nats at M = 1, {last:.3g} at M = {SHOWN_MEMBERS}",
    )


def figure_4(study: Study, toy: Toy, found: Mapping[str, tuple[FloatArray, ...]]) -> None:
    """Predictive distributions with 16 samples, and HMC's.

    Training data as dots.
    """
    item = f"figure 4, {toy.name}"
    study.item(item, figure_4)
    figure = new_figure((3.0 * len(found), 3.1))
    axes = figure.subplots(1, len(found), sharey=True)
    for number, (ax, (method, parameters)) in enumerate(zip(axes, found.items(), strict=True)):
        ax.set_title(method, fontsize=12)
        if toy.apart:
            style_axes(ax, "x", "" if number else "y")
            band(ax, toy, *parameters)
        else:
            style_axes(ax, "x1", "" if number else "x2")
            plane(ax, toy, parameters[0][:, 1])
    caption = (
        "Mean and two standard deviations."
        if toy.apart
        else "Probability of the second class, from 0 (blue) to 1 (red)."
    )
    study.figure(item, figure, caption)


def band(ax: Axes, toy: Toy, mean: FloatArray, std: FloatArray) -> None:
    """Mean and two standard deviations over the inputs."""
    x = toy.at[:, 0]
    ax.fill_between(x, mean - 2 * std, mean + 2 * std, color=MODEL, alpha=0.2, linewidth=0)
    ax.plot(toy.x[::4, 0], toy.y[::4].astype(float), ".", color="#D55E00", markersize=2)
    ax.plot(x, mean, color=MODEL, linewidth=1.8)
    ax.set_ylim(-6, 6)


def plane(ax: Axes, toy: Toy, one: FloatArray) -> None:
    """Probability of class 1 over the plane."""
    ax.grid(False)
    side = round(len(one) ** 0.5)
    extent = (toy.at[:, 0].min(), toy.at[:, 0].max(), toy.at[:, 1].min(), toy.at[:, 1].max())
    ax.imshow(
        one.reshape(side, side),
        origin="lower",
        extent=extent,
        vmin=0,
        vmax=1,
        cmap="coolwarm",
        aspect="equal",
    )
    for label, color in ((0, "#0b3c78"), (1, "#7a1010")):
        ax.plot(*toy.x[::4][toy.y[::4] == label].T, ".", color=color, markersize=2)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of one half: what models see of them, their heights above the interpolated ones, and their landforms."""

    features: FloatArray
    rest: FloatArray
    labels: npt.NDArray[np.int64]

    @classmethod
    def drawn(cls, part: slice, share: float, count: int, rng: np.random.Generator) -> Cells:
        """``count`` random cells that are neither measured nor at the border."""
        terrain = load_terrain(int(rng.integers(2**31)), share=share)
        heights = landforms.interpolated(terrain)
        labels = landforms.labels(terrain.elevation)
        usable = (labels != landforms.IGNORED) & ~terrain.measured
        inside = np.zeros_like(usable)
        inside[:, part] = usable[:, part]
        chosen = rng.choice(np.flatnonzero(inside), count, replace=False)
        seen = landforms.features(heights, terrain.measured).reshape(usable.size, -1)[chosen]
        rest = (terrain.elevation - heights).ravel()[chosen]
        return cls(seen, rest, labels.ravel()[chosen].astype(np.int64))


def shift(study: Study) -> None:
    """Figures 6 and 8 (sections 4.2 and 4.3), on terrain."""
    training = Cells.drawn(WEST, SHARES[0], study.pick(4000, 3000, 1500), study.rng("west"))
    test = Cells.drawn(EAST, SHARES[1], study.pick(20_000, 8000, 3000), study.rng("east"))
    figure_6(study, training, test)
    figure_8(study, training, test)


def scored_members(
    study: Study,
    name: str,
    keys: Sequence[str],
    train: Callable[[Bundle, Watch], Bundle],
    training: Cells,
    test: Cells,
    outputs: int,
    reports: Callable[[str, Sequence[Outputs]], Sequence[Report]],
) -> dict[str, Columns]:
    """Metrics against the number of members, of an ensemble and of passes of several networks with dropout."""
    members, repeats = study.pick((32, 5), (16, 3), (8, 2))
    inputs = training.features.shape[1]

    def curves(method: str) -> dict[str, npt.ArrayLike]:
        seed = int(study.rng(name, method).integers(2**31))
        watch = partial(study.progress, what=f"{method}, {name}")
        if method == "Ensembling":
            networks = train(Bundle(members, inputs, (48, 48), outputs, seed=seed), watch)
            found = networks.predict(test.features)[None]
        else:
            networks = Bundle(repeats, inputs, (96, 96), outputs, seed=seed, dropout=0.2, dropped=(0, 1))
            train(networks, watch)
            passes = [networks.predict(test.features, drop=True) for _ in range(members)]
            found = np.stack(passes, axis=1)
        return against_members(reports(f"{name}, {method}", list(found)), keys)

    return {
        method: study.cached(f"{name}-{method.lower()}", partial(curves, method))
        for method in ("Ensembling", "MC-dropout")
    }


def figure_6(study: Study, training: Cells, test: Cells) -> None:
    """AUSE, AUCE and RMSE against the number of samples, terrain.

    {shift} A network predicts how far a cell lies above the heights interpolated around it, in metres, and the
    variance of that. MC-dropout switches off 20 % of twice as many units; the paper has 50 % of some layers.
    """
    study.item("figure 6", figure_6, shift=SHIFT)
    scale = float(training.rest.std())

    def train(bundle: Bundle, watch: Watch) -> Bundle:
        effort = Training(study.pick(60, 40, 15), 64, 2e-3)
        return fit(bundle, training.features, training.rest / scale, gaussian_loss, effort, watch)

    def reports(method: str, outputs: Sequence[Outputs]) -> list[Report]:
        options: dict[str, Any] = {"curves": "by_members", "curve_metrics": REGRESSION_KEYS, "unit": "m"}
        first, *others = (
            Predictions.from_ensemble(test.rest, *(scale * part for part in moments(one))) for one in outputs
        )
        logged = study.log(first, method=method, **options)
        return [logged, *(uq.evaluate(one, **options) for one in others)]

    found = scored_members(study, "terrain", REGRESSION_KEYS, train, training, test, 2, reports)
    most = int(found["Ensembling"]["members"][-1])
    report_members(study, "figure 6", found, REGRESSION_KEYS, (1, most))
    study.finding(
        "AUSE improves with the number of samples (terrain)",
        all(falls(columns, "ause_rmse", most) for columns in found.values()),
        ends(found, most, "ause_rmse"),
    )
    ensembling, dropout = found["Ensembling"], found["MC-dropout"]
    study.finding(
        "Ensembling has the lower AUSE (terrain)",
        at(ensembling, "ause_rmse", most) < at(dropout, "ause_rmse", most),
        ends(found, most, "ause_rmse"),
    )
    study.finding(
        "AUCE improves with the number of samples for ensembling and worsens for MC-dropout (terrain)",
        falls(ensembling, "auce", most) and not falls(dropout, "auce", most),
        ends(found, most, "auce"),
    )


def figure_8(study: Study, training: Cells, test: Cells) -> None:
    """AUSE, ECE and mIoU against the number of samples, segmentation of terrain.

    {shift} A network tells valley, slope and ridge apart. Dropout as for figure 6.
    """
    study.item("figure 8", figure_8, shift=SHIFT)

    def train(bundle: Bundle, watch: Watch) -> Bundle:
        effort = Training(study.pick(120, 80, 30), 64, 2e-3)
        return fit(bundle, training.features, training.labels, class_loss, effort, watch)

    def reports(method: str, outputs: Sequence[Outputs]) -> list[Report]:
        options: dict[str, Any] = {
            "members_axis": 0,
            "classes": landforms.NAMES,
            "curves": "by_members",
            "curve_metrics": CLASS_KEYS,
        }
        first, *others = map(probabilities, outputs)
        logged = study.log(test.labels, probs=first, method=method, **options)
        return [logged, *(uq.evaluate(test.labels, probs=one, **options) for one in others)]

    found = scored_members(study, "segmentation", CLASS_KEYS, train, training, test, 3, reports)
    most = int(found["Ensembling"]["members"][-1])
    report_members(study, "figure 8", found, CLASS_KEYS, (1, most))
    study.finding(
        "AUSE, ECE and mIoU all improve with the number of samples, for both methods (segmentation)",
        all(falls(columns, key, most) != (key == "miou") for columns in found.values() for key in CLASS_KEYS),
        "; ".join(f"{key}: {ends(found, most, key)}" for key in CLASS_KEYS),
    )
    gain = {
        method: at(columns, "ause_brier", 1) - at(columns, "ause_brier", most)
        for method, columns in found.items()
    }
    study.finding(
        "Ensembling gains more AUSE from its samples than MC-dropout (segmentation)",
        gain["Ensembling"] > gain["MC-dropout"],
        ends(found, most, "ause_brier"),
    )


def falls(columns: Columns, key: str, most: int) -> bool:
    """True if a metric is lower with all members than with one."""
    return at(columns, key, most) < at(columns, key, 1)


def ends(found: Mapping[str, Columns], most: int, key: str) -> str:
    """A metric with one member and with all, for a sentence."""
    return ", ".join(
        f"{method} {at(columns, key, 1):.4g} at M = 1 and {at(columns, key, most):.4g} at M = {most}"
        for method, columns in found.items()
    )
