"""Levi et al. (2019): what quantile calibration does not see, and what scaling the standard deviation does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from uq_tracking.curves.spec import Curve
from uq_tracking.demo.network import Architecture, Array, Network, Schedule
from uq_tracking.figures.style import legend, line, reference
from uq_tracking.npz import Arrays
from uq_tracking.report import Report, Reports
from uq_tracking_papers.datasets import Sample, cauchy, linear_noise, random_std
from uq_tracking_papers.drawing import panel, panels
from uq_tracking_papers.study import FloatArray, Study

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
COLORS = ("#D55E00", "#0072B2", "#009E73")
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
SET_UP = (
    "A network with three hidden layers of 32 units and one output layer learns the mean by the absolute error; then "
    "a branch for the logarithm of the variance is fitted to the log score with all else frozen. Adam replaces the "
    "paper's SGD, and the branch, a convex problem, is solved by L-BFGS."
)


def reproduce(study: Study) -> None:
    """The Cauchy example, figures 1, 4 and 5, table 1."""
    equation_4(study)
    synthetic = Synthetic.made(study)
    random, trained = synthetic.report(study, "random"), synthetic.report(study, "trained")
    figure_1(study, synthetic, random)
    figure_4(study, synthetic, random)
    figure_5(study, synthetic, trained)
    ence = {
        stage: [after(one, stage)[0]["ence"] for one in (random, trained)] for stage in (SCALING, ISOTONIC)
    }
    error = [after(one, ISOTONIC)[0]["calibration_error"] for one in (random, trained)]
    study.finding(
        "ENCE tells random from trained uncertainty after recalibration; calibration error does not",
        all(blind > 5 * seeing for blind, seeing in ence.values()) and max(error) < NOTHING,
        "ENCE of random and trained: "
        + ", ".join(
            f"{blind:.2f} and {seeing:.3f} ({STAGES[stage]})" for stage, (blind, seeing) in ence.items()
        )
        + f"; calibration_error {error[0]:.1e} and {error[1]:.1e}",
    )
    table_1(study)


class MedianNetwork(Network):
    """A network fitted to the absolute error."""

    def _pull(self, outputs: Array, y: Array) -> Array:
        slopes: Array = np.sign(outputs - y)
        return slopes


class MeanAndStd:
    """First the mean is trained on the absolute error; then, with all else frozen, the log variance (section 4).

    The second step fits one linear output on the last hidden layer to the Gaussian log score. That is a convex
    problem, so it is solved rather than descended.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers; with the output layer the paper's network has four layers.
    rng : numpy.random.Generator
    """

    def __init__(self, rng: np.random.Generator, hidden: tuple[int, ...] = (32, 32, 32)) -> None:
        self.network = MedianNetwork(1, Architecture(hidden), rng)
        self.head = np.zeros(hidden[-1] + 1)

    def fit_mean(self, x: FloatArray, y: FloatArray, schedule: Schedule) -> MeanAndStd:
        """Fit to inputs and targets, both (n,)."""
        self.network.fit(x.astype(np.float32)[:, None], y.astype(np.float32), schedule)
        return self

    def fit_std(self, x: FloatArray, y: FloatArray) -> MeanAndStd:
        """Fit the branch of the standard deviation."""
        features = self._branch(x)
        squares = (y - self.mean(x)) ** 2

        def loss(head: FloatArray) -> tuple[float, FloatArray]:
            """Mean Gaussian log score up to a constant, and its gradient."""
            log_variance = np.clip(features @ head, -30, 30)
            share = squares * np.exp(-log_variance)
            gradient = features.T @ (1 - share) / (2 * len(x))
            return float(np.mean(log_variance + share) / 2), gradient

        start = np.zeros(features.shape[1])
        start[-1] = np.log(squares.mean() + 1e-6)
        self.head = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
        return self

    def mean(self, x: FloatArray) -> FloatArray:
        """Predicted means (n,)."""
        return self.network.predict(x.astype(np.float32)[:, None]).astype(np.float64)

    def std(self, x: FloatArray) -> FloatArray:
        """Predicted standard deviations (n,)."""
        return np.asarray(np.exp(self._branch(x) @ self.head / 2))

    def _branch(self, x: FloatArray) -> FloatArray:
        hidden = self.network.hidden(x.astype(np.float32)[:, None]).astype(np.float64)
        return np.column_stack([hidden, np.ones(len(x))])


def trained(study: Study, name: str, x: FloatArray, y: FloatArray) -> MeanAndStd:
    """A network fitted in two steps."""
    schedule = Schedule(epochs=study.pick(20, 30, 15), batch=250, rate=2e-3)
    return MeanAndStd(study.rng("network", name)).fit_mean(x, y, schedule).fit_std(x, y)


def equation_4(study: Study) -> None:
    """A Cauchy distribution of random scale is calibrated, and knows nothing of its target.

    y is standard normal; each prediction is Cauchy(0, |z|) with z standard normal and independent of y.
    """
    study.item("equation 4", equation_4)
    n = study.pick(50_000, 20_000, 5000)
    _, predictions = cauchy(n, study.rng("cauchy"))
    report = study.log(predictions, method="Cauchy", figures=False)
    for key in ("calibration_error", "pit_ks", "spearman", "coverage_50", "coverage_95"):
        study.row("equation 4", "Cauchy(0, |z|)", key, report.scores[key])
    figure, (ax,) = panels(1, 1, width=4.2, height=4.0)
    calibration_lines(ax, {"Cauchy(0, |z|)": report.curves["calibration"]})
    study.figure("equation 4", figure, "Observed and expected shares are the same at every level.")
    error, rank = report.scores["calibration_error"], report.scores["spearman"]
    study.finding(
        "Predictions that are independent of the target can be perfectly calibrated by eq. 2",
        error < BY_CHANCE / n and abs(rank) < 4 / np.sqrt(n),
        f"calibration_error {error:.1e} (a calibrated forecast's is on average 1/(6 N) = {1 / (6 * n):.1e}), rank "
        f"correlation of scale and error {rank:.3f}",
    )


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Section 4.1: validation and recalibration sets with predicted means, and both kinds of standard deviation."""

    sets: Mapping[str, Sample]
    arrays: Arrays

    @classmethod
    def made(cls, study: Study) -> Synthetic:
        """Train the network."""
        n = study.pick(50_000, 20_000, 10_000)
        sizes = {"training": n, "recalibration": RECALIBRATION_SIZE, "validation": n}
        sets = {name: linear_noise(size, study.rng(name)) for name, size in sizes.items()}

        def predicted() -> Arrays:
            network = trained(study, "synthetic", sets["training"].x, sets["training"].y)
            found = {}
            for name in ("recalibration", "validation"):
                x = sets[name].x
                found[f"{name} mean"], found[f"{name} trained"] = network.mean(x), network.std(x)
                found[f"{name} random"] = random_std(len(x), study.rng("random", name))
            return found

        return cls(sets, study.cached("synthetic", predicted))

    def predictions(self, name: str, kind: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Targets, means and standard deviations of a set."""
        return self.sets[name].y, self.arrays[f"{name} mean"], self.arrays[f"{name} {kind}"]

    def report(self, study: Study, kind: str) -> Report:
        """Scores before and after both recalibrations; logged as a run."""
        report: Report = study.log(
            *self.predictions("validation", kind),
            calibration=self.predictions("recalibration", kind),
            recalibration=[SCALING, ISOTONIC],
            method=f"{kind} std",
            figures=False,
        )
        return report


def factor(report: Report, method: str) -> float:
    """The factor by which a recalibration multiplies every standard deviation."""
    scalars = report.scored_methods()[method]["scalars"]
    return float(scalars["std_scale" if method == SCALING else "cdf_scale"])


def after(report: Report, stage: str) -> tuple[Mapping[str, float], Mapping[str, Curve]]:
    """Scores and curves of a stage."""
    if stage == "before":
        return report.scores, report.curves
    found = report.after(stage)
    return found.scores, found.curves


def rows(study: Study, item: str, report: Report, what: str, stages: Sequence[str]) -> None:
    """One row per stage."""
    for stage in stages:
        scores = after(report, stage)[0]
        for key in KEYS:
            study.row(item, f"{what}, {STAGES[stage]}", key, scores[key])


def figure_1(study: Study, synthetic: Synthetic, report: Report) -> None:
    """Random standard deviations after the interval method.

    {set_up}
    """
    study.item("figure 1", figure_1, set_up=SET_UP)
    rows(study, "figure 1", report, "random std", ["before", ISOTONIC])
    scores, curves = after(report, ISOTONIC)
    figure, axes = panels(1, 3, width=3.7, height=3.6)
    dots(axes[0], "(a)", synthetic, "random", factor(report, ISOTONIC))
    calibration_lines(axes[1], {"after": curves["calibration"]}, "(b)")
    reliability_lines(axes[2], {"after": curves["reliability"]}, "(c)")
    study.figure(
        "figure 1",
        figure,
        "(a) True against predicted standard deviation; (b) the interval method's own evaluation; (c) reliability by "
        "the paper's definition.",
    )
    study.finding(
        "Calibration error is blind to random standard deviations, ENCE is not",
        scores["calibration_error"] < NOTHING and scores["ence"] > 0.2,
        f"after the interval method calibration_error is {scores['calibration_error']:.1e} (before "
        f"{report.scores['calibration_error']:.1e}), ENCE {scores['ence']:.2f}",
    )


def figure_4(study: Study, synthetic: Synthetic, report: Report) -> None:
    """Random standard deviations before and after std scaling."""
    study.item("figure 4", figure_4)
    rows(study, "figure 4", report, "random std", ["before", SCALING])
    scale = factor(report, SCALING)
    figure, axes = panels(2, 2, width=3.9, height=3.5)
    dots(axes[0], "(a) before", synthetic, "random", 1.0)
    dots(axes[1], "(b) after", synthetic, "random", scale)
    for ax, stage, title in ((axes[2], "before", "(c) before"), (axes[3], SCALING, "(d) after")):
        scores, curves = after(report, stage)
        reliability_lines(ax, {f"ENCE {scores['ence']:.2f}": curves["reliability"]}, title)
    study.figure(
        "figure 4", figure, "A factor on all standard deviations leaves them as uninformative as they were."
    )
    before, scaled = report.scores["cv"], after(report, SCALING)[0]["cv"]
    study.finding(
        "Std scaling leaves the coefficient of variation as it is",
        abs(scaled / before - 1) < 1e-12,
        f"cv {before:.6f} and {scaled:.6f}; the factor is {scale:.3f}",
    )


def figure_5(study: Study, synthetic: Synthetic, report: Report) -> None:
    """Trained standard deviations before and after both recalibrations.

    {set_up}
    """
    study.item("figure 5", figure_5, set_up=SET_UP)
    rows(study, "figure 5", report, "trained std", list(STAGES))
    figure, axes = panels(1, 3, width=3.7, height=3.6)
    dots(axes[0], "(a)", synthetic, "trained", 1.0)
    curves = {name: after(report, stage)[1] for stage, name in STAGES.items()}
    reliability_lines(
        axes[1], {name: curves[name]["reliability"] for name in ("before", "std scaling")}, "(b)"
    )
    calibration_lines(
        axes[2], {name: curves[name]["calibration"] for name in ("before", "interval method")}, "(c)"
    )
    study.figure(
        "figure 5", figure, "(a) True against predicted standard deviation, (b) reliability, (c) calibration."
    )
    truth, std = synthetic.sets["validation"].x, synthetic.arrays["validation trained"]
    off = float(np.mean(np.abs(std / truth - 1)))
    study.finding(
        "The network almost perfectly learns the standard deviation",
        off < 0.05,
        f"mean relative error {off:.1%}",
    )
    change = max(abs(after(report, stage)[0]["ence"] - report.scores["ence"]) for stage in STAGES)
    study.finding(
        "Trained standard deviations are hardly changed by either recalibration",
        change < 0.02,
        f"ENCE before {report.scores['ence']:.4f}, changed by at most {change:.4f}",
    )


def table_1(study: Study) -> None:
    """Before and after recalibration, for four outputs.

    The paper's outputs are positions and sizes of bounding boxes: a network trained on COCO, recalibrated and
    validated on KITTI. Here they are four synthetic targets with noise that depends on x. The samples they are
    recalibrated (6000) and validated on have more noise than those of the training set, {factors} times, so that the
    networks are overconfident, as the paper's are. Only the layout and the signs of the changes can be compared.
    {set_up}
    """
    study.item("table 1", table_1, factors=", ".join(f"{more:g}" for more in SHIFTED), set_up=SET_UP)
    n = study.pick(37_000, 12_000, 6000)
    arrays = study.cached("outputs", lambda: four_outputs(study, n))
    parts = {
        name: tuple(arrays[f"{name} {what}"] for what in ("y", "mean", "std"))
        for name in ("recalibration", "validation")
    }
    reports: Reports = study.log(
        *parts["validation"],
        outputs=OUTPUTS,
        calibration=parts["recalibration"],
        recalibration=[SCALING, ISOTONIC],
        method="four outputs",
        figures=False,
    )
    table = reports.before_after(["ence", "cv"]).table
    figure, axes = panels(1, len(OUTPUTS), width=3.1, height=3.2)
    ence, factors = {}, []
    for ax, output in zip(axes, OUTPUTS, strict=True):
        for stage, printed in TABLE_1[output].items():
            for key, paper in zip(("ence", "cv"), printed, strict=True):
                value = table[output][f"{stage} {key}"].value
                study.row("table 1", output, f"{STAGES[stage]}: {key}", value, paper)
        report = reports[output]
        reliability_lines(
            ax, {name: after(report, stage)[1]["reliability"] for stage, name in STAGES.items()}, output
        )
        ence[output] = [table[output][f"{stage} ence"].value or 0.0 for stage in STAGES]
        factors.append(factor(report, SCALING))
    study.figure("table 1", figure, "Reliability of each output before and after; the paper's figure 2.")
    study.finding(
        "Both recalibrations improve the ENCE of every output",
        all(values[0] > max(values[1:]) for values in ence.values()),
        "before, std scaling, interval method: "
        + "; ".join(
            f"{name} {', '.join(f'{value:.3f}' for value in values)}" for name, values in ence.items()
        ),
    )
    study.finding(
        "Overconfident predictions are scaled by a factor above 1",
        min(factors) > 1,
        "factors " + ", ".join(f"{scale:.3f}" for scale in factors) + " (paper: 1.1 to 1.2)",
    )
    alike = max(abs(values[1] - values[2]) for values in ence.values())
    study.finding(
        "One factor does as well as the interval method (ENCE within 0.05)",
        alike < 0.05,
        f"largest difference of ENCE {alike:.3f}",
    )


def four_outputs(study: Study, n: int) -> Arrays:
    """Targets and predictions of four outputs on the sets for recalibration and validation."""
    found: dict[str, list[FloatArray]] = {}
    for place, name in enumerate(study.progress(OUTPUTS, "outputs", total=len(OUTPUTS))):
        network = trained(study, name, *one_output(study, "training", place, n, 1.0))
        for part, size in (("recalibration", RECALIBRATION_SIZE), ("validation", n)):
            x, y = one_output(study, part, place, size, SHIFTED[place])
            for what, values in (("y", y), ("mean", network.mean(x)), ("std", network.std(x))):
                found.setdefault(f"{part} {what}", []).append(values)
    return {key: np.stack(columns, axis=-1) for key, columns in found.items()}


def one_output(study: Study, part: str, place: int, n: int, noise: float) -> tuple[FloatArray, FloatArray]:
    """Inputs and targets of one output: a wave, with noise that grows with x differently for each output."""
    rng = study.rng("four", part, place)
    x = rng.uniform(0, 1, n)
    std = 0.1 + 0.25 * x ** (1 + place / 2)
    return x, np.sin((2 + place) * x) + noise * std * rng.standard_normal(n)


def dots(ax: Axes, title: str, synthetic: Synthetic, kind: str, scale: float) -> None:
    """True against predicted standard deviation of some samples."""
    panel(ax, title, "predicted std", "true std")
    predicted = scale * synthetic.arrays[f"validation {kind}"][:DOTS]
    true = synthetic.sets["validation"].x[:DOTS]
    line(ax, predicted, true, linestyle="", marker="o", markersize=1.5, alpha=0.4)
    reference(ax, [0, 1], [0, 1])
    ax.set(xlim=(0, 1.03 * float(max(1.0, predicted.max()))), ylim=(0, 1.05))


def calibration_lines(ax: Axes, curves: Mapping[str, Curve], title: str = "") -> None:
    """Observed against expected shares."""
    panel(ax, title, "expected share", "observed share")
    reference(ax, [0, 1], [0, 1])
    for (name, curve), color in zip(curves.items(), COLORS, strict=False):
        line(ax, curve.columns["expected"], curve.columns["observed"], color=color, linewidth=1.8, label=name)
    legend(ax, loc="upper left")


def reliability_lines(ax: Axes, curves: Mapping[str, Curve], title: str = "") -> None:
    """RMSE against root mean variance."""
    panel(ax, title, "root mean variance", "RMSE")
    top = 0.0
    for (name, curve), color in zip(curves.items(), COLORS, strict=False):
        x, y = curve.columns["rmv"], curve.columns["rmse"]
        line(ax, x, y, color=color, linewidth=1.8, marker="o", markersize=3, label=name)
        top = max(top, float(x.max()), float(y.max()))
    reference(ax, [0, top], [0, top])
    ax.set(xlim=(0, 1.05 * top), ylim=(0, 1.05 * top))
    legend(ax, loc="best")
