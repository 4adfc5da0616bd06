"""Levi et al. (2019): what quantile calibration does not see, and what scaling the standard deviation does.

A network with three hidden layers of 32 units and one output layer learns the mean by the absolute error; then a
branch for the logarithm of the variance is fitted to the log score with all else frozen. Adam replaces the paper's
SGD, and the branch, a convex problem, is solved by L-BFGS.

The paper's four outputs are positions and sizes of bounding boxes: a network trained on COCO, recalibrated and
validated on KITTI. Here they are synthetic targets with noise that depends on x, and the samples they are
recalibrated (6000) and validated on have 1.15, 1.25, 1.2 and 1.1 times the noise of the training set, so that the
networks are overconfident, as the paper's are. Only the layout and the signs of the changes can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize

from uq_tracking.curves.spec import Curve
from uq_tracking.figures.style import legend, line, reference
from uq_tracking.npz import Arrays
from uq_tracking.report import Report, Reports
from uq_tracking_papers.datasets import cauchy, linear_noise, random_std
from uq_tracking_papers.drawing import panel, panels
from uq_tracking_papers.networks import Bundle, Training, absolute_loss, as_tensor, fit
from uq_tracking_papers.study import ANALOGUE, FloatArray, Study, over_seeds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCALING, ISOTONIC = "std_scaling", "cdf_isotonic"
STAGES = {"before": "before", SCALING: "std scaling", ISOTONIC: "interval method"}
KEYS = ("ence", "cv", "calibration_error")
RECALIBRATION_SIZE = 6000
BY_CHANCE = 1.17
"""99.9 % point of N times calibration_error of a calibrated forecast: the statistic of Cramer and von Mises."""
NOTHING = BY_CHANCE / RECALIBRATION_SIZE
"""The most that may remain of calibration_error after fitting the interval method to this many samples."""
DOTS = 1500
STYLES = (
    {"color": "#D55E00", "linewidth": 3.2},
    {"color": "#0072B2", "linewidth": 2.2},
    {"color": "#56D8A8", "linewidth": 1.4, "linestyle": (0, (3, 2))},
)
"""Before and after the recalibrations; a line that coincides with another is seen on it."""
SYNTHETIC = "synthetic outputs for KITTI's boxes"
OUTPUTS = ("t_x", "t_y", "t_w", "t_h")
TABLE_1 = {
    "t_x": {"before": (0.165, 0.40), SCALING: (0.083, 0.40), ISOTONIC: (0.060, 0.40)},
    "t_y": {"before": (0.254, 0.33), SCALING: (0.047, 0.33), ISOTONIC: (0.039, 0.33)},
    "t_w": {"before": (0.244, 0.38), SCALING: (0.084, 0.38), ISOTONIC: (0.126, 0.38)},
    "t_h": {"before": (0.126, 0.26), SCALING: (0.057, 0.26), ISOTONIC: (0.112, 0.26)},
}
"""ENCE and cv as printed in the paper."""
SHIFTED = (1.15, 1.25, 1.2, 1.1)
"""How much larger the noise of each output is in the data used for recalibration and validation."""
SAME = (
    "it follows from the definitions: both methods multiply every standard deviation by one factor, std scaling by "
    "sqrt(mean z^2), the interval method by the standard deviation of z, so that only the mean of z sets them apart: "
    "the paper's gap of 8.4 and 12.6 % for t_w would need a bias of a quarter of the RMSE at least, or another "
    "standard deviation to be read off the intervals"
)


def reproduce(study: Study) -> None:
    """The Cauchy example, figures 1 to 6, table 1."""
    equation_4(study)
    data = study.cached("synthetic", partial(synthetic, study))
    names = {"random": "random std", "trained": "trained std"}
    reports = {
        kind: [scored(study, data, kind, name, seed) for seed in range(study.seeds)]
        for kind, name in names.items()
    }
    boxes = study.cached("boxes", partial(four_outputs, study))
    of_boxes, of_random = (
        [
            scored(study, boxes, kind, name, seed, outputs=OUTPUTS)
            for seed in study.progress(range(study.seeds), name)
        ]
        for kind, name in (("std", "four outputs"), ("random", "four outputs, random std"))
    )
    figure_1(study, data, reports["random"])
    figure_2(study, of_boxes)
    table_1(study, of_boxes)
    figure_3(study, of_random)
    figure_4(study, data, reports["random"])
    figure_5(study, data, reports)
    figure_6(study, of_random)


# --- methods ---


class MeanAndStd:
    """First the mean is trained on the absolute error; then, with all else frozen, the log variance (section 4).

    The second step fits one linear output on the last hidden layer to the Gaussian log score. That is a convex
    problem, so it is solved rather than descended.

    Parameters
    ----------
    count : int
        Number of networks, each with a data set of its own.
    seed : int
    hidden : tuple of int
        Units of the hidden layers; with the output layer the paper's network has four layers.
    """

    def __init__(self, count: int, seed: int, hidden: tuple[int, ...] = (32, 32, 32)) -> None:
        self.network = Bundle(count, 1, hidden, 1, seed=seed)
        self.heads = np.zeros((count, hidden[-1] + 1))

    def fit_mean(self, x: FloatArray, y: FloatArray, training: Training) -> MeanAndStd:
        """Fit to inputs and targets, both (networks, n)."""
        fit(self.network, x[..., None], y, absolute_loss, training)
        return self

    def fit_std(self, x: FloatArray, y: FloatArray) -> MeanAndStd:
        """Fit the branches of the standard deviation."""
        features, squares = self._branch(x), (y - self.mean(x)) ** 2
        self.heads = np.stack([_log_variance(*one) for one in zip(features, squares, strict=True)])
        return self

    def mean(self, x: FloatArray) -> FloatArray:
        """Predicted means (networks, n)."""
        return self.network.predict(x[..., None])[..., 0].astype(np.float64)

    def std(self, x: FloatArray) -> FloatArray:
        """Predicted standard deviations (networks, n)."""
        return np.asarray(np.exp((self._branch(x) @ self.heads[..., None])[..., 0] / 2))

    def _branch(self, x: FloatArray) -> FloatArray:
        """Inputs of the branches (networks, n, units + 1)."""
        with torch.no_grad():
            hidden = self.network.hidden(as_tensor(x[..., None])).numpy().astype(np.float64)
        return np.concatenate([hidden, np.ones((*x.shape, 1))], axis=-1)


def _log_variance(features: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the weights (units,) of the log variance that minimize the Gaussian log score."""

    def loss(head: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean log score up to a constant, and its gradient."""
        log_variance = np.clip(features @ head, -30, 30)
        share = squares * np.exp(-log_variance)
        gradient = features.T @ (1 - share) / (2 * len(features))
        return float(np.mean(log_variance + share) / 2), gradient

    start = np.zeros(features.shape[1])
    start[-1] = np.log(squares.mean() + 1e-6)
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x)


def trained(study: Study, name: str, x: FloatArray, y: FloatArray) -> MeanAndStd:
    """Networks fitted in two steps, each to its own samples (networks, n)."""
    seed = int(study.rng("network", name).integers(2**31))
    training = Training(study.pick(10, 15, 15), 250, study.pick(2e-3, 2e-3, 4e-3))
    return MeanAndStd(len(x), seed).fit_mean(x, y, training).fit_std(x, y)


def scored(study: Study, data: Arrays, kind: str, name: str, seed: int, **options: Any) -> Any:
    """Scores of a seed before and after both recalibrations by a kind of standard deviation; the first is logged."""
    validation, recalibration = (
        tuple(data[f"{part} {what}"][seed] for what in ("y", "mean", kind))
        for part in ("validation", "recalibration")
    )
    options |= {"intervals": False} if seed else {"figures": False}
    return study.scored(
        *validation, method=None if seed else name, metrics=KEYS, calibration=recalibration,
        recalibration=[SCALING, ISOTONIC], **options,
    )  # fmt: skip


def after(report: Report, stage: str) -> tuple[Mapping[str, float], Mapping[str, Curve]]:
    """Scores and curves of a stage."""
    if stage == "before":
        return report.scores, report.curves
    found = report.after(stage)
    return found.scores, found.curves


def factor(report: Report, method: str) -> float:
    """The factor by which a recalibration multiplies every standard deviation."""
    scalars = report.scored_methods()[method]["scalars"]
    return float(scalars["std_scale" if method == SCALING else "cdf_scale"])


def score(reports: Sequence[Report], stage: str, key: str) -> FloatArray:
    """A score of a stage for each seed."""
    return np.asarray([after(report, stage)[0][key] for report in reports])


# --- section 2: the definition of calibration ---


def equation_4(study: Study) -> None:
    """Y is standard normal; each prediction is Cauchy(0, |z|) with z standard normal and independent of y."""
    study.item(
        "equation 4", "A Cauchy distribution of random scale is calibrated, and knows nothing of its target"
    )
    n, keys = study.pick(50_000, 20_000, 5000), ("calibration_error", "spearman")
    samples = [cauchy(n, study.rng("cauchy", seed)) for seed in range(study.seeds)]
    reports = [
        study.scored(
            predictions,
            method=None if seed else "Cauchy",
            metrics=keys,
            **({} if seed else {"figures": False}),
        )
        for seed, (_, predictions) in enumerate(samples)
    ]
    error, rank = (np.asarray([report.scores[key] for report in reports]) for key in keys)
    for key, values in zip(keys, (error, rank), strict=True):
        study.repeats("Cauchy(0, |z|)", key, values)
    figure, axes = panels(1, 2, width=4.2, height=3.6)
    shown = samples[0][0]
    panel(axes[0], "(a) it knows nothing", "scale |z| predicted", "|y|")
    line(axes[0], shown.x[:DOTS], np.abs(shown.y[:DOTS]), linestyle="", marker="o", markersize=1.5, alpha=0.4)
    calibration_lines(axes[1], {"Cauchy(0, |z|)": reports[0].curves["calibration"]}, "(b) yet is calibrated")
    study.figure(
        figure,
        "(a) The scale says nothing of the target, yet (b) observed shares are the expected ones at every level.",
    )
    study.finding(
        "Predictions that are independent of the target can be perfectly calibrated by eq. 2",
        (error < BY_CHANCE / n) & (np.abs(rank) < 4 / np.sqrt(n)),
        f"calibration_error {over_seeds(error, '.1e')} (a calibrated forecast's is on average 1/(6 N) = "
        f"{1 / (6 * n):.1e}), rank correlation of scale and error {over_seeds(rank, '.3f')}",
    )


# --- section 4.1: the synthetic problem ---


def synthetic(study: Study) -> Arrays:
    """Recalibration and validation sets (seeds, n): truth, predicted means, and both kinds of standard deviation."""
    n = study.pick(50_000, 20_000, 10_000)
    sizes = {
        "training": study.pick(50_000, 10_000, 10_000),
        "recalibration": RECALIBRATION_SIZE,
        "validation": n,
    }
    samples = {
        name: [linear_noise(size, study.rng(name, seed)) for seed in range(study.seeds)]
        for name, size in sizes.items()
    }
    x, y = (
        {name: np.stack([getattr(one, part) for one in of]) for name, of in samples.items()}
        for part in ("x", "y")
    )
    network = trained(study, "synthetic", x["training"], y["training"])
    found: dict[str, FloatArray] = {}
    for name in ("recalibration", "validation"):
        found |= {f"{name} x": x[name], f"{name} y": y[name], f"{name} mean": network.mean(x[name])}
        found[f"{name} trained"] = network.std(x[name])
        found[f"{name} random"] = np.stack(
            [random_std(sizes[name], study.rng("random", name, seed)) for seed in range(study.seeds)]
        )
    return found


def rows(study: Study, reports: Sequence[Report], what: str, stages: Sequence[str]) -> None:
    """One row per stage."""
    for stage in stages:
        for key in KEYS:
            study.repeats(f"{what}, {STAGES[stage]}", key, score(reports, stage, key))


def figure_1(study: Study, data: Arrays, reports: Sequence[Report]) -> None:
    """Before and after the interval method."""
    study.item("figure 1", "Random standard deviations after the interval method", "the optimizer differs")
    rows(study, reports, "random std", ["before", ISOTONIC])
    curves = after(reports[0], ISOTONIC)[1]
    figure, axes = panels(1, 3, width=3.7, height=3.6)
    dots(axes[0], "(a) it knows nothing", data, "random", factor(reports[0], ISOTONIC))
    calibration_lines(axes[1], {STAGES[ISOTONIC]: curves["calibration"]}, "(b) yet looks calibrated")
    reliability_lines(axes[2], {STAGES[ISOTONIC]: curves["reliability"]}, "(c) ENCE sees it")
    study.figure(
        figure,
        "(a) Predictions say nothing of the true standard deviations; yet (b) the interval method's own evaluation "
        "finds them perfect; (c) the paper's does not.",
    )
    error, ence = (score(reports, ISOTONIC, key) for key in ("calibration_error", "ence"))
    study.finding(
        "The interval method calibrates random standard deviations almost perfectly by its own definition",
        error < NOTHING,
        f"calibration_error {over_seeds(error, '.1e')}, before "
        f"{over_seeds(score(reports, 'before', 'calibration_error'))}",
    )
    study.finding(
        "By ENCE random standard deviations are clearly not calibrated after the interval method",
        ence > 0.2,
        f"ENCE after the interval method {over_seeds(ence, '.2f')}",
    )


def figure_4(study: Study, data: Arrays, reports: Sequence[Report]) -> None:
    """Before and after std scaling."""
    study.item("figure 4", "Random standard deviations before and after std scaling")
    rows(study, reports, "random std", ["before", SCALING])
    figure, axes = panels(2, 2, width=3.9, height=3.5)
    dots(axes[0], "(a) before", data, "random", 1.0)
    dots(axes[1], "(b) after std scaling", data, "random", factor(reports[0], SCALING))
    for ax, stage, title in ((axes[2], "before", "(c) before"), (axes[3], SCALING, "(d) after std scaling")):
        scores, curves = after(reports[0], stage)
        reliability_lines(ax, {f"ENCE {scores['ence']:.2f}": curves["reliability"]}, title)
    study.figure(figure, "A factor on all standard deviations leaves them as uninformative as they were.")
    before, scaled = (score(reports, stage, "cv") for stage in ("before", SCALING))
    study.finding(
        "Std scaling leaves the coefficient of variation of random standard deviations as it is (synthetic problem)",
        np.abs(scaled / before - 1) < 1e-12,
        f"cv {before[0]:.6f} and {scaled[0]:.6f}; the factor is {factor(reports[0], SCALING):.3f}",
    )
    ence = score(reports, SCALING, "ence")
    study.finding(
        "After std scaling, ENCE still reveals that random standard deviations are not calibrated",
        ence > 0.2,
        f"ENCE {over_seeds(ence, '.2f')}",
    )


def figure_5(study: Study, data: Arrays, reports: Mapping[str, Sequence[Report]]) -> None:
    """Before and after both recalibrations."""
    study.item(
        "figure 5",
        "Trained standard deviations before and after both recalibrations",
        "the optimizer differs",
    )
    network = reports["trained"]
    rows(study, network, "trained std", list(STAGES))
    figure, axes = panels(1, 3, width=3.7, height=3.6)
    dots(axes[0], "(a) it knows its noise", data, "trained", 1.0)
    curves = {name: after(network[0], stage)[1] for stage, name in STAGES.items()}
    pairs = (("reliability", reliability_lines, SCALING, "(b) ENCE agrees"),
             ("calibration", calibration_lines, ISOTONIC, "(c) so do intervals"))  # fmt: skip
    for ax, (key, draw, stage, title) in zip(axes[1:], pairs, strict=True):
        draw(ax, {name: curves[name][key] for name in ("before", STAGES[stage])}, title)
    study.figure(
        figure, "Trained standard deviations are right before and after either method: all lines coincide."
    )
    off = np.mean(np.abs(data["validation trained"] / data["validation x"] - 1), axis=1)
    study.finding(
        "The network almost perfectly learns the standard deviation (within 5 % on average)",
        off < 0.05,
        f"mean relative error {over_seeds(off, '.1%')}",
    )
    before = score(network, "before", "ence")
    change = np.max([np.abs(score(network, stage, "ence") - before) for stage in STAGES], axis=0)
    study.finding(
        "Trained standard deviations are hardly changed by either recalibration (ENCE by less than 0.02)",
        change < 0.02,
        f"ENCE before {over_seeds(before)}, changed by at most {over_seeds(change)}",
    )
    both = reports["random"], network
    ence = {stage: [score(of, stage, "ence") for of in both] for stage in (SCALING, ISOTONIC)}
    error = [score(of, ISOTONIC, "calibration_error") for of in both]
    told = [
        f"{np.median(blind):.2f} and {np.median(seeing):.3f} ({STAGES[stage]})"
        for stage, (blind, seeing) in ence.items()
    ]
    study.finding(
        "After recalibration ENCE tells random from trained standard deviations; calibration error does not",
        np.all([blind > 5 * seeing for blind, seeing in ence.values()], axis=0)
        & (np.max(error, axis=0) < NOTHING),
        f"ENCE of random and trained: {', '.join(told)}; calibration_error {np.median(error[0]):.1e} and "
        f"{np.median(error[1]):.1e}",
    )


# --- section 4.2: four outputs ---


def four_outputs(study: Study) -> Arrays:
    """Truths, predictions and random standard deviations (seeds, n, outputs) of both sets."""
    n, seeds = study.pick(20_000, 8000, 6000), range(study.seeds)
    found: dict[str, list[FloatArray]] = {}
    for place, name in enumerate(study.progress(OUTPUTS, "outputs", total=len(OUTPUTS))):
        x, y = one_output(study, "training", place, n, 1.0)
        network = trained(study, name, x, y)
        for part, size in (("recalibration", RECALIBRATION_SIZE), ("validation", n)):
            x, y = one_output(study, part, place, size, SHIFTED[place])
            blind = np.stack(
                [study.rng("blind", part, place, seed).uniform(0.05, 0.5, size) for seed in seeds]
            )
            for what, values in (
                ("y", y),
                ("mean", network.mean(x)),
                ("std", network.std(x)),
                ("random", blind),
            ):
                found.setdefault(f"{part} {what}", []).append(values)
    return {key: np.stack(columns, axis=-1) for key, columns in found.items()}


def one_output(study: Study, part: str, place: int, n: int, noise: float) -> tuple[FloatArray, FloatArray]:
    """Inputs and targets (seeds, n) of one output: a wave, with noise that grows with x in its own way."""
    xs, ys = [], []
    for seed in range(study.seeds):
        rng = study.rng("four", part, place, seed)
        x = rng.uniform(0, 1, n)
        std = 0.1 + 0.25 * x ** (1 + place / 2)
        xs.append(x)
        ys.append(np.sin((2 + place) * x) + noise * std * rng.standard_normal(n))
    return np.stack(xs), np.stack(ys)


def of_outputs(reports: Sequence[Reports], stage: str, key: str) -> FloatArray:
    """A score of a stage, (seeds, outputs)."""
    return np.stack([score([one[output] for one in reports], stage, key) for output in OUTPUTS], axis=1)


def figure_2(study: Study, reports: Sequence[Reports]) -> None:
    """Before and after both recalibrations."""
    study.item(
        "figure 2", "Reliability of each output before and after recalibration", SYNTHETIC, status=ANALOGUE
    )
    figure, axes = panels(1, len(OUTPUTS), width=3.1, height=3.4)
    for ax, output in zip(axes, OUTPUTS, strict=True):
        curves = {name: after(reports[0][output], stage)[1]["reliability"] for stage, name in STAGES.items()}
        reliability_lines(ax, curves, output)
    study.figure(
        figure, "Above the diagonal: overconfident. Both methods bring all four outputs to the diagonal."
    )
    study.cannot_judge(
        "A detector's uncertainties, learned on COCO, are overconfident on KITTI",
        "it needs both data sets and the detector; here overconfidence is made",
    )


def table_1(study: Study, reports: Sequence[Reports]) -> None:
    """ENCE and cv, before and after both recalibrations."""
    study.item("table 1", "Before and after recalibration, for four outputs", SYNTHETIC, status=ANALOGUE)
    ence, cv = ({stage: of_outputs(reports, stage, key) for stage in STAGES} for key in ("ence", "cv"))
    for stage, name in STAGES.items():
        for place, output in enumerate(OUTPUTS):
            printed = TABLE_1[output][stage]
            study.repeats(output, f"{name}: ence", ence[stage][:, place], printed[0])
            study.repeats(output, f"{name}: cv", cv[stage][:, place], printed[1])
    told = "; ".join(
        f"{output} {', '.join(f'{np.median(of[:, place]):.3f}' for of in ence.values())}"
        for place, output in enumerate(OUTPUTS)
    )
    study.finding(
        "Both recalibrations improve the ENCE of every output considerably",
        np.all(np.maximum(ence[SCALING], ence[ISOTONIC]) < 0.8 * ence["before"], axis=1),
        f"before, std scaling, interval method: {told}",
    )
    apart = np.abs(ence[SCALING] - ence[ISOTONIC])
    study.finding(
        "One factor does as well as the interval method (ENCE within 0.02)",
        np.all(apart < 0.02, axis=1),
        f"{SAME}. Largest difference of ENCE here {over_seeds(np.max(apart, axis=1), '.4f')}",
    )
    study.finding(
        "Std scaling leaves the coefficient of variation of each of the four outputs as it is",
        np.all(np.abs(cv[SCALING] / cv["before"] - 1) < 1e-12, axis=1),
        "it does not depend on a factor",
    )
    scaling, interval = (
        np.asarray([[factor(one[output], method) for output in OUTPUTS] for one in reports])
        for method in (SCALING, ISOTONIC)
    )
    study.finding(
        "Overconfident predictions are scaled by a factor above 1",
        np.all(scaling > 1, axis=1),
        f"factors {', '.join(f'{x:.3f}' for x in np.median(scaling, axis=0))} (paper: 1.1 to 1.2)",
    )
    apart = np.max(np.abs(interval / scaling - 1), axis=1)
    study.diagnostic(
        "Either method multiplies all standard deviations of an output by one factor: cv after both is exactly that "
        "before",
        np.all([np.abs(cv[stage] / cv["before"] - 1) < 1e-12 for stage in (SCALING, ISOTONIC)]),
        f"the two factors differ by {over_seeds(apart, '.1%')} over seeds, at most of four outputs: they are "
        "sqrt(mean z^2) and the standard deviation of z, equal where the mean of z is 0",
    )


def figure_3(study: Study, reports: Sequence[Reports]) -> None:
    """Standard deviations drawn from U[.05, .5], whatever the input."""
    title = "Random standard deviations of one output look calibrated after the interval method"
    study.item("figure 3", title, "a synthetic output for KITTI's t_x", status=ANALOGUE)
    figure, (ax,) = panels(1, 1, width=4.2, height=4.0)
    stages = {STAGES[stage]: after(reports[0]["t_x"], stage)[1] for stage in ("before", ISOTONIC)}
    curves = {name: of["calibration"] for name, of in stages.items()}
    calibration_lines(ax, curves, 'random standard deviations,\nyet "calibrated"')
    study.figure(
        figure,
        "Standard deviations are random, and yet, after the interval method, observed and expected shares are the "
        "same at every level.",
    )
    error = of_outputs(reports, ISOTONIC, "calibration_error")[:, 0]
    study.repeats("t_x, random std, interval method", "calibration_error", error)
    study.finding(
        "The interval method calibrates random standard deviations of t_x almost perfectly, by its own definition",
        error < NOTHING,
        f"calibration_error {over_seeds(error, '.1e')}",
    )


def figure_6(study: Study, reports: Sequence[Reports]) -> None:
    """Standard deviations drawn as for figure 3."""
    title = "Random standard deviations of four outputs before and after std scaling"
    study.item("figure 6", title, SYNTHETIC, status=ANALOGUE)
    figure, axes = panels(2, len(OUTPUTS), width=3.1, height=3.1)
    for row, stage in enumerate(("before", SCALING)):
        ence = of_outputs(reports, stage, "ence")
        for place, output in enumerate(OUTPUTS):
            scores, curves = after(reports[0][output], stage)
            title = f"{output}, {STAGES[stage]}: ENCE {scores['ence']:.2f}"
            reliability_lines(axes[row * len(OUTPUTS) + place], {"": curves["reliability"]}, title)
            study.repeats(output, f"{STAGES[stage]}: ence", ence[:, place])
    study.figure(
        figure, "Flat lines, also after scaling: the error does not depend on the standard deviation stated."
    )
    scaled = of_outputs(reports, SCALING, "ence")
    study.finding(
        "After std scaling, random standard deviations of all four outputs are far from calibrated by ENCE",
        np.all(scaled > 0.2, axis=1),
        f"smallest ENCE of the four {over_seeds(scaled.min(axis=1), '.2f')}",
    )


# --- drawing ---


def dots(ax: Axes, title: str, data: Arrays, kind: str, scale: float) -> None:
    """True against predicted standard deviation of some samples."""
    panel(ax, title, "predicted std", "true std")
    predicted, true = scale * data[f"validation {kind}"][0, :DOTS], data["validation x"][0, :DOTS]
    line(ax, predicted, true, linestyle="", marker="o", markersize=1.5, alpha=0.4)
    reference(ax, [0, 1], [0, 1])
    ax.set(xlim=(0, 1.03 * float(max(1.0, predicted.max()))), ylim=(0, 1.05))


def calibration_lines(ax: Axes, curves: Mapping[str, Curve], title: str = "") -> None:
    """Observed against expected shares."""
    panel(ax, title, "expected share", "observed share")
    reference(ax, [0, 1], [0, 1])
    for (name, curve), look in zip(curves.items(), STYLES, strict=False):
        line(ax, curve.columns["expected"], curve.columns["observed"], label=name, **look)
    legend(ax, loc="upper left")


def reliability_lines(ax: Axes, curves: Mapping[str, Curve], title: str = "") -> None:
    """RMSE against root mean variance."""
    panel(ax, title, "root mean variance", "RMSE")
    top = 0.0
    for (name, curve), look in zip(curves.items(), STYLES, strict=False):
        x, y = curve.columns["rmv"], curve.columns["rmse"]
        line(ax, x, y, marker="o", markersize=3, label=name or None, **look)
        top = max(top, float(x.max()), float(y.max()))
    reference(ax, [0, top], [0, top])
    ax.set(xlim=(0, 1.05 * top), ylim=(0, 1.05 * top))
    if any(curves):
        legend(ax, loc="best")
