"""Section 4.1 of Gustafsson et al.: four approximations of a posterior, and the distance of each from HMC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import uq_tracking as uq
from uq_tracking.inputs import Predictions
from uq_tracking_papers import gustafsson_figures
from uq_tracking_papers.bundle import (
    Bundle,
    Loss,
    Training,
    class_loss,
    fit,
    gaussian_loss,
    moments,
    probabilities,
)
from uq_tracking_papers.datasets.gustafsson import sine, two_classes
from uq_tracking_papers.langevin import Sampling, sample
from uq_tracking_papers.members import Columns, against_members, at, tell
from uq_tracking_papers.study import Study

if TYPE_CHECKING:
    from uq_tracking.report import Report

FloatArray = npt.NDArray[np.float64]
Outputs = npt.NDArray[np.float32]

KL = "kl_to_reference"
HIDDEN = (10, 10)
SHOWN_MEMBERS = 16
HMC = "HMC"
HIGHEST = 2.0
"""Log variances are capped at this, as in the released scripts: far from the data they are unbounded."""


@dataclass(frozen=True)
class Toy:
    """One of the two problems.

    Attributes
    ----------
    name, item, title : str
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
    """

    name: str
    item: str
    title: str
    x: FloatArray
    y: npt.NDArray[Any]
    at: FloatArray
    truth: npt.NDArray[Any]
    inside: npt.NDArray[np.bool_]
    loss: Loss
    apart: bool
    langevin: float

    def bundle(self, count: int, seed: int, **options: Any) -> Bundle:
        """Untrained networks of this problem."""
        return Bundle(count, self.x.shape[1], HIDDEN, 2, seed=seed, apart=self.apart, **options)

    def parameters(self, outputs: Outputs) -> tuple[FloatArray, ...]:
        """Parameters of the members' predictive distributions: means and stds, or probabilities of two classes."""
        return moments(outputs, HIGHEST) if self.apart else (probabilities(outputs),)

    def mixed(self, outputs: Outputs) -> tuple[FloatArray, ...]:
        """The same of the members (members, m, outputs) together."""
        if not self.apart:
            return (probabilities(outputs).mean(axis=0),)
        means, stds = self.parameters(outputs)
        return means.mean(axis=0), np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))

    def report(
        self, study: Study, outputs: Outputs, reference: tuple[FloatArray, ...], log_as: str | None
    ) -> Report:
        """Scores against the number of members; the run is logged if it is given a name."""
        options: dict[str, Any] = {"curves": "by_members"}
        given: tuple[Any, ...]
        if self.apart:
            given = (Predictions.from_ensemble(self.truth, *self.parameters(outputs)),)
            options |= {"reference": reference, "curve_metrics": ["rmse"]}
        else:
            given = (self.truth,)
            (options["probs"],) = self.parameters(outputs)
            options |= {"reference": reference[0], "curve_metrics": ["accuracy"], "members_axis": 0}
        if log_as is None:
            report: Report = uq.evaluate(*given, **options)
            return report
        made: Report = study.log(
            *given, method=log_as, figures=study.size != "test", predictions=False, **options
        )
        return made

    def between(
        self, one: tuple[FloatArray, ...], other: tuple[FloatArray, ...], where: npt.NDArray[np.bool_]
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
    truth = sine.at(x, study.rng("sine test")).y
    inside = np.abs(x) <= 3
    return Toy(
        "regression", "figure 5, regression", "a sine with growing noise", training.x[:, None], training.y,
        x[:, None], truth, inside, gaussian_loss, True, 0.01,
    )  # fmt: skip


def classification(study: Study) -> Toy:
    """Two classes in the plane."""
    training = two_classes(520, study.rng("classes"))
    points = two_classes.grid(study.pick(60, 40, 16))
    truth = two_classes.at(points, study.rng("classes test")).y
    half = two_classes.half
    inside = (points[:, 0] >= 0) & (np.abs(points) <= half).all(axis=1)
    return Toy(
        "classification", "figure 5, classification", "two classes in the plane", training.x, training.y,
        points, truth, inside, class_loss, False, 0.05,
    )  # fmt: skip


def reproduce(study: Study) -> None:
    """Figures 3 to 5, or a finding that says why they are missing."""
    try:
        from uq_tracking_papers import hmc
    except ModuleNotFoundError as error:
        missing = f"{error.name} is not installed: pip install uq-tracking-papers"
        study.item("figure 5", "Divergence from HMC", f"Not run, because {missing}.")
        study.finding(
            "Figures 3 to 5 (toys, divergence from HMC) were reproduced", False, f"not run: {missing}"
        )
        return
    for toy in (regression(study), classification(study)):
        chains = study.cached(f"hmc-{toy.name}", partial(_hmc, study, toy, hmc))
        samples = {
            method: study.cached(f"{toy.name}-{method.lower()}", partial(_samples, study, toy, method))[
                "outputs"
            ]
            for method in ("Ensembling", "MC-dropout", "SGLD", "SGHMC")
        }
        _figure_5(study, toy, chains, samples)


def _hmc(study: Study, toy: Toy, hmc: Any) -> dict[str, npt.ArrayLike]:
    """Outputs (chains, samples, m, outputs) of networks drawn by HMC."""
    effort = study.pick(hmc.Chains(4, 300, 300, 9), hmc.Chains(4, 150, 150, 7), hmc.Chains(2, 30, 30, 5))
    shape = (
        hmc.Shape((toy.x.shape[1], *HIDDEN, 1), 2) if toy.apart else hmc.Shape((toy.x.shape[1], *HIDDEN, 2))
    )
    energy = hmc.gaussian_energy if toy.apart else hmc.class_energy
    for _ in study.progress(range(1), f"HMC, {toy.name}"):
        outputs = hmc.sampled_outputs(shape, energy, toy.x, toy.y, toy.at, effort, seed=study.seed)
    return {"outputs": outputs, "r_hat": hmc.r_hat(_identified(toy, outputs))}


def _identified(toy: Toy, outputs: Outputs) -> Outputs:
    """Outputs that the likelihood determines: for two logits, only their difference."""
    return outputs if toy.apart else outputs[..., 1:] - outputs[..., :1]


def _samples(study: Study, toy: Toy, method: str) -> dict[str, npt.ArrayLike]:
    """Outputs (repeats, members, m, outputs) of a method's samples."""
    seed = int(study.rng(toy.name, method).integers(2**31))
    watch = partial(study.progress, what=f"{method}, {toy.name}")
    members, repeats = study.pick((64, 5), (32, 3), (16, 2))
    epochs = study.pick(150, 80, 40)
    if method == "Ensembling":
        training = Training(epochs, 32, study.pick(1e-3, 2e-3, 4e-3))
        networks = fit(toy.bundle(2 * members, seed), toy.x, toy.y, toy.loss, training, watch)
        return {"outputs": networks.predict(toy.at)[None]}
    if method == "MC-dropout":
        # The prior N(0, I) as weighted in the scripts: by the share of units kept, per training sample.
        training = Training(2 * epochs, 32, study.pick(1e-3, 2e-3, 4e-3), decay=0.5 * 0.8 / len(toy.x))
        networks = toy.bundle(repeats, seed, dropout=0.2, dropped=(0,))
        fit(networks, toy.x, toy.y, toy.loss, training, watch)
        passes = [networks.predict(toy.at, drop=True) for _ in range(members)]
        return {"outputs": np.stack(passes, axis=1)}
    every = study.pick(25, 8, 2)
    early = members // 4
    chain = Sampling(members + early, every, toy.langevin)
    if method == "SGHMC":
        chain = Sampling(members + early, every, 0.1 * toy.langevin, friction=0.1)
    found: list[Outputs] = []
    networks = toy.bundle(repeats, seed)
    sample(networks, toy.x, toy.y, toy.loss, chain, lambda: found.append(networks.predict(toy.at)), watch)
    return {"outputs": np.stack(found[early:], axis=1)}


def _figure_5(study: Study, toy: Toy, chains: Mapping[str, Any], samples: Mapping[str, Any]) -> None:
    outputs = chains["outputs"]
    pooled = outputs.reshape(-1, *outputs.shape[2:])
    reference = toy.mixed(pooled)
    study.item(toy.item, f"Divergence from HMC, {toy.title}", _text(toy, outputs))

    def curves(method: str) -> dict[str, npt.ArrayLike]:
        repeats = samples[method]
        reports = [
            toy.report(study, one, reference, f"{toy.name}, {method}" if number == 0 else None)
            for number, one in enumerate(repeats)
        ]
        return against_members(reports, [KL])

    found = {
        method: study.cached(f"{toy.name}-{method.lower()}-curves", partial(curves, method))
        for method in samples
    }
    shared = [int(m) for m in found["SGLD"]["members"] if m in (1, 4, SHOWN_MEMBERS, 64)]
    tell(study, toy.item, found, [KL], shared)
    _directions(study, toy, samples, reference)
    noise = _between_chains(study, toy, outputs)
    _r_hat(study, toy, np.asarray(chains["r_hat"], dtype=float), noise, found)
    _findings(study, toy, found, noise)
    shown = {name: toy.mixed(one[0][:SHOWN_MEMBERS]) for name, one in samples.items()}
    gustafsson_figures.predictive(study, toy.name, toy.at, {HMC: reference, **shown}, toy.x, toy.y)


def _text(toy: Toy, outputs: Outputs) -> str:
    chains, count = outputs.shape[:2]
    parts = [
        f"KL(p || p_HMC), as in section 4.1, averaged over {len(toy.at):,} places in the whole region, of which "
        f"training covers {toy.inside.mean():.0%}. HMC: {chains} chains of {count} samples by numpyro's NUTS, each "
        "begun at a mode of its own; the paper has one chain of 1000. Ensembling draws subsets of one pool of "
        "networks; the other methods have several chains or networks. SGLD and SGHMC run for fewer epochs than the "
        "paper's 150 per sample.",
        "The released scripts compute KL(p_HMC || p), the other direction; the table has both for "
        f"M = {SHOWN_MEMBERS}.",
    ]
    if toy.apart:
        parts.append("Log variances above 2 count as 2, as in the released scripts.")
    else:
        parts.append(
            "The paper shows its classes as a picture only; the boundary here is ours. Its scripts normalize the map "
            "of one class's probabilities over the plane before they take a divergence; here it is that of the two "
            "classes' probabilities at each point."
        )
    return "\n\n".join(parts)


def _directions(
    study: Study, toy: Toy, samples: Mapping[str, Any], reference: tuple[FloatArray, ...]
) -> None:
    """Both directions of the divergence, and the divergence over the training region."""
    everywhere = np.ones(len(toy.at), dtype=bool)
    for method, repeats in samples.items():
        mixed = [toy.mixed(one[:SHOWN_MEMBERS]) for one in repeats]
        kept = {
            "scripts' KL(HMC || p), M = 16": [toy.between(reference, one, everywhere) for one in mixed],
            "KL to HMC where trained, M = 16": [toy.between(one, reference, toy.inside) for one in mixed],
        }
        for quantity, values in kept.items():
            study.row(toy.item, method, quantity, float(np.mean(values)), None, min(values), max(values))


def _between_chains(study: Study, toy: Toy, outputs: Outputs) -> float:
    """Mean divergence of one chain from the others: the uncertainty of HMC itself."""
    everywhere = np.ones(len(toy.at), dtype=bool)
    found = []
    for chain in range(len(outputs)):
        others = np.delete(outputs, chain, axis=0)
        pooled = toy.mixed(others.reshape(-1, *outputs.shape[2:]))
        found.append(toy.between(toy.mixed(outputs[chain]), pooled, everywhere))
    mean = float(np.mean(found))
    study.row(toy.item, "HMC, one chain against the others", "KL to HMC", mean, None, min(found), max(found))
    return mean


def _r_hat(study: Study, toy: Toy, r_hat: FloatArray, noise: float, found: Mapping[str, Columns]) -> None:
    inside, outside = r_hat[toy.inside].max(), r_hat[~toy.inside].max()
    for where, value in (("where trained", inside), ("elsewhere", outside)):
        study.row(toy.item, HMC, f"largest R-hat {where}", float(value))
    study.finding(
        f"The chains of the HMC reference agree ({toy.name}): split R-hat at most 1.1 everywhere",
        max(inside, outside) <= 1.1,
        f"largest {inside:.2f} where trained, {outside:.2f} elsewhere, median {np.median(r_hat):.2f}; one chain is "
        f"{noise:.3g} nats from the others",
    )


def _findings(study: Study, toy: Toy, found: Mapping[str, Columns], noise: float) -> None:
    value = {method: at(columns, KL, SHOWN_MEMBERS) for method, columns in found.items()}
    told = ", ".join(f"{method} {kl:.3g}" for method, kl in value.items())
    study.finding(
        f"Ensembling is closer to HMC than MC-dropout ({toy.name}, M = {SHOWN_MEMBERS})",
        value["Ensembling"] < value["MC-dropout"],
        f"nats: {told}; chains of HMC among themselves {noise:.3g}",
    )
    study.finding(
        f"Ensembling is closer to HMC than SGLD and SGHMC ({toy.name}, M = {SHOWN_MEMBERS})",
        value["Ensembling"] < min(value["SGLD"], value["SGHMC"]),
        f"nats: {told}",
    )
    first, last = (at(found["Ensembling"], KL, m) for m in (1, SHOWN_MEMBERS))
    study.finding(
        f"An ensemble comes closer to HMC as members join ({toy.name})",
        last < first,
        f"{first:.3g} nats at M = 1, {last:.3g} at M = {SHOWN_MEMBERS}",
    )
