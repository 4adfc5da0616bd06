"""Xiong et al. (2024): four metrics on four kinds of uncertainty, and on test sets of growing size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

import uq_tracking as uq
from uq_tracking.evaluation.subsets import iid_stability
from uq_tracking.figures.style import MODEL, ORACLE, legend, line, new_figure, reference, style_axes
from uq_tracking.inputs import Predictions
from uq_tracking_papers.datasets import DATASETS, Conditional
from uq_tracking_papers.networks import Bundle, Effort, Energy, Training, fit, gaussian_loss, moments
from uq_tracking_papers.study import FloatArray, Study, told

Columns = Mapping[str, npt.NDArray[np.generic]]
"""Scores by key, and the columns of a curve."""
Draw = Callable[[int, np.random.Generator], Predictions]
"""Predictions for new samples, in the form that `iid_stability` expects."""

MEMBERS = 5
ENSEMBLE, MIXTURE, ENERGY, TRUTH = "Ensemble", "Ensemble as a mixture", "EBR", "True dist."
MODE = "True dist., a mode predicts"
TEST_SIZES = 4096, 2048, 2000
"""Sizes of the test sets, by the size of the study."""
TRUE_SETS, TRUE_SIZE = 100, 1000
ROOM = 0.3
"""How far the energy-based model's density extends beyond the training targets."""

QUANTITIES = {"AUSE": "ause_mae", "calibration error": "calibration_error", "NLL": "nll"}
PRINTED = {
    "homoscedastic": {
        ENSEMBLE: (0.5915, 0.0023, -0.8819),
        ENERGY: (0.5707, 0.0032, -0.8568),
        TRUTH: (0.5917, 0.0003, -0.8965),
    },
    "heteroscedastic": {
        ENSEMBLE: (0.2334, 0.0001, -0.1091),
        ENERGY: (0.2422, 0.0001, -0.0990),
        TRUTH: (0.2305, 0.0001, -0.1472),
    },
    "multimodal": {
        ENSEMBLE: (0.0071, 0.0229, 0.8098),
        ENERGY: (0.5821, 0.0018, -0.6535),
        TRUTH: (0.5180, 0.0001, -0.7935),
    },
    "epistemic": {
        ENSEMBLE: (0.6016, 0.0145, 36.4332),
        ENERGY: (1.3888, 0.0298, 31.2425),
        TRUTH: (0.5454, 0.0001, -1.5871),
    },
}
"""Tables I to IV."""
SETUP = (
    "Deep ensemble of five Gaussian networks, once as the normal distribution of its moments (as in the paper) and "
    "once as the mixture that it is; energy-based regression, whose normalizer is summed over a grid of y. The paper "
    "states neither the size of its training and test sets nor how the true distribution predicts. Networks here "
    "have three hidden layers of 128 and 64 units (the paper: five and nine of 256).\n\n"
)
STABLE = {
    "calibration_error": "calibration error",
    "ause_mae": "AUSE (MAE)",
    "nll": "NLL",
    "spearman": "Spearman's correlation",
}
TOLERANCE = 0.02
"""A metric has settled once the standard deviation between test sets is at most this."""
DOTS = "#D55E00"


def reproduce(study: Study) -> None:
    """Tables I to IV, figures 2 to 5 and the paper's advice."""
    models = {name: Models.trained(study, data) for name, data in DATASETS.items()}
    figures_2_and_3(study, models)
    found = {name: table(study, f"table {number}", models[name]) for number, name in enumerate(DATASETS, 1)}
    truth_findings(study, found)
    multimodal_findings(study, found["multimodal"])
    epistemic_findings(study, found["epistemic"])
    constant = {name: float(found["homoscedastic"][name]["ause_mae"]) for name in (ENSEMBLE, ENERGY, TRUTH)}
    study.finding(
        "With noise of one size the true distribution does not have the lowest AUSE",
        constant[TRUTH] > min(constant.values()),
        f"{told(constant, '.4f')}; a constant standard deviation has 0.5700 in expectation, ties being in random "
        "order",
    )
    figure_4(study, models["heteroscedastic"].draw)
    figure_5(study, found)
    study.item("advice", advice)


def advice() -> None:
    """What the paper advises.

    Calibration error: bounded, so a value means something on its own, and the steadiest on small test sets; but it
    needs a predicted distribution, and does not say how wrong predictions can be.

    AUSE: says how well the uncertainty finds the large errors, whatever its scale; but it has no bound, its value
    depends on the errors, and the true distribution need not have the lowest.

    NLL: sees calibration and sharpness at once and is lowest, in expectation, at the truth; but it needs the most
    samples, and its value means nothing without a model to compare with.

    Spearman's correlation: advised against; AUSE takes its place.

    Where the uncertainty is to warn of large errors, AUSE is the better guide; where the distribution itself is used,
    calibration error and NLL are.
    """


@dataclass(frozen=True, eq=False)
class Models:
    """The models trained on one problem.

    Attributes
    ----------
    data : Conditional
    arrays : dict of arrays
        Test inputs ``x`` and targets ``y`` (n,), members' means and standard deviations over the fine inputs
        ``table_x``, the summary of the energy-based model at the test set, and its log density over ``image_x`` and
        ``image_y``.
    """

    data: Conditional
    arrays: Columns

    @classmethod
    def trained(cls, study: Study, data: Conditional) -> Models:
        """Train the models, or read those of a finished run."""
        return cls(data, study.cached(f"models-{data.name}", partial(trained, study, data)))

    def __getitem__(self, name: str) -> FloatArray:
        """One of the arrays, as float64."""
        return np.asarray(self.arrays[name], dtype=np.float64)

    def ensemble_at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Members' means and standard deviations (5, n), interpolated between finely spaced inputs."""
        means, stds = (
            np.stack([np.interp(x, self["table_x"], row) for row in self[table]])
            for table in ("table_mean", "table_std")
        )
        return means, stds

    def draw(self, n: int, rng: np.random.Generator) -> Predictions:
        """Predictions of the ensemble for new samples."""
        sample = self.data(n, rng, quantile_scores=False)
        return Predictions.from_ensemble(sample.y, *self.ensemble_at(sample.x))

    def predictions(self) -> dict[str, Predictions]:
        """The test set as predicted by each method; quantiles of mixtures are not computed."""
        x, y = self["x"], self["y"]
        means, stds = self.ensemble_at(x)
        true_means, true_stds = self.data.components(x)
        mixture = partial(Predictions.from_ensemble, y, combine="mixture", quantile_scores=False)
        found = {
            ENSEMBLE: Predictions.from_ensemble(y, means, stds),
            MIXTURE: mixture(means, stds),
            ENERGY: Predictions.from_density(
                y, pit=self["pit"], log_density=self["log_density"], y_pred=self["mode"], y_std=self["std"]
            ),
        }
        if len(true_means) == 1:
            return found | {TRUTH: Predictions(y, true_means[0], true_stds[0])}
        truth = mixture(true_means, true_stds)
        z = (y - true_means) / true_stds
        mode = Predictions.from_density(
            y,
            pit=ndtr(z).mean(axis=0),
            log_density=logsumexp(norm.logpdf(z) - np.log(true_stds), axis=0) - np.log(len(z)),
            y_pred=true_means[0],
            y_std=truth.std,
        )
        return found | {TRUTH: truth, MODE: mode}


def trained(study: Study, data: Conditional) -> dict[str, npt.ArrayLike]:
    """Train an ensemble and an energy-based model, and keep what `Models` needs of them."""
    size = study.pick(8192, 4096, 2048)
    seed = int(study.rng("networks", data.name).integers(2**31))
    training = data(size, study.rng("training", data.name), training=True, quantile_scores=False)
    test = data(study.pick(*TEST_SIZES), study.rng("test", data.name), quantile_scores=False)
    x, y = training.x, training.y

    hidden, epochs = study.pick(((128,) * 3, 40), ((64,) * 3, 30), ((64,) * 2, 25))
    networks = Bundle(MEMBERS, 1, hidden, 2, seed=seed)
    effort = Training(epochs, 128, study.pick(1e-3, 2e-3, 1e-2))
    fit(
        networks, x[:, None], y, gaussian_loss, effort, partial(study.progress, what=f"ensemble, {data.name}")
    )
    fine = np.linspace(*data.domain, 4001)
    means, stds = moments(networks.predict(fine[:, None]))

    hidden, energy_effort = study.pick(
        ((64,) * 3, Effort(20, 64, 96, 3e-3)),
        ((48,) * 3, Effort(15, 64, 64, 5e-3)),
        ((32,) * 2, Effort(10, 128, 32, 1e-2)),
    )
    model = Energy(float(y.min()) - ROOM, float(y.max()) + ROOM, hidden, seed)
    model.fit(x, y, energy_effort, partial(study.progress, what=f"energy, {data.name}"))
    image_x, image_y = np.linspace(*data.domain, 160), np.linspace(model.low, model.high, 200)
    return {
        "x": test.x,
        "y": test.y,
        "table_x": fine,
        "table_mean": means,
        "table_std": stds,
        **model.summary(test.x, test.y),
        "image_x": image_x,
        "image_y": image_y,
        "image": model.log_density(image_x, image_y),
    }


def table(study: Study, item: str, models: Models) -> dict[str, Columns]:
    """{data} data.

    {setup}Brackets: 5 % and 95 % quantiles over {sets} test sets of {size:,} samples.
    """
    name = models.data.name
    study.item(
        item, table, better=dict.fromkeys(QUANTITIES, "lower"), bounds=(TRUTH, MODE), data=name,
        setup=SETUP if item == "table 1" else "", sets=TRUE_SETS, size=TRUE_SIZE,
    )  # fmt: skip

    def true_ranges() -> dict[str, npt.ArrayLike]:
        """Quantiles of the true distribution's scores over test sets."""
        rng, scores = study.rng("true sets", name), []
        for _ in range(study.pick(TRUE_SETS, TRUE_SETS, 20)):
            truth = models.data(TRUE_SIZE, rng, quantile_scores=False).truth
            scores.append(uq.evaluate(truth, metrics=QUANTITIES.values()).scores)
        return {key: np.quantile([one[key] for one in scores], [0.05, 0.95]) for key in QUANTITIES.values()}

    def logged(method: str, predictions: Predictions) -> dict[str, npt.ArrayLike]:
        """Log the predictions, and keep their scores."""
        report = study.log(predictions, method=f"{name}, {method}")
        scores = {key: report.scores[key] for key in QUANTITIES.values()}
        return {**scores, **report.curves["sparsification_mae"].columns}

    ranges = study.cached(f"true-sets-{name}", true_ranges)
    found: dict[str, Columns] = {}
    for method, predictions in models.predictions().items():
        words = f"scores {name} {method}".replace(",", "").replace(".", "").split()
        found[method] = study.cached("-".join(words), partial(logged, method, predictions))
        printed = PRINTED[name].get(method, (None, None, None))
        for (quantity, key), theirs in zip(QUANTITIES.items(), printed, strict=True):
            low, high = ranges[key].tolist() if method == TRUTH else (None, None)
            study.row(item, method, quantity, float(found[method][key]), theirs, low, high)
    return found


def truth_findings(study: Study, found: Mapping[str, Mapping[str, Columns]]) -> None:
    """Findings on the true distributions' scores: against their expectations and against the printed values."""
    moments = {name: nll_moments(data) for name, data in DATASETS.items()}
    gaps = {name: float(found[name][TRUTH]["nll"]) - mean for name, (mean, _) in moments.items()}
    worst = max(float(found[name][TRUTH]["calibration_error"]) for name in DATASETS)
    n = study.pick(*TEST_SIZES)
    study.finding(
        "The true distribution reaches the NLL that is expected of it, and a calibration error near 0",
        all(abs(gaps[name]) < 4 * std / n**0.5 for name, (_, std) in moments.items()) and worst < 1 / n,
        f"NLL minus its expectation, by quadrature, at {n:,} samples: {told(gaps, '+.4f')}; calibration errors up to "
        f"{worst:.5f}, {1 / (6 * n):.5f} expected",
    )
    printed = {name: PRINTED[name][TRUTH][2] for name in DATASETS}
    apart = {name: (printed[name] - mean) / (std / TRUE_SIZE**0.5) for name, (mean, std) in moments.items()}
    study.finding(
        f"The NLL printed for the true distributions is that of test sets of {TRUE_SIZE:,} samples or more",
        all(abs(errors) < 3 for errors in apart.values()),
        ", ".join(
            f"{name}: printed {printed[name]:.4f}, expected {mean:.4f} ({apart[name]:+.1f} standard errors)"
            for name, (mean, _) in moments.items()
        ),
    )


def chosen(found: Mapping[str, Columns], methods: Sequence[str]) -> list[dict[str, float]]:
    """The scores of the given methods in a table."""
    return [{key: float(found[one][key]) for key in QUANTITIES.values()} for one in methods]


def multimodal_findings(study: Study, found: Mapping[str, Columns]) -> None:
    """Findings of table III."""
    ensemble, mixture, energy, truth, mode = chosen(found, (ENSEMBLE, MIXTURE, ENERGY, TRUTH, MODE))
    lost = ensemble["nll"] - truth["nll"]
    study.finding(
        "On multimodal data a Gaussian ensemble fails in NLL and calibration error, but not in AUSE",
        lost > 1
        and ensemble["calibration_error"] > 0.01
        and truth["calibration_error"] < 0.001
        and ensemble["ause_mae"] < 0.05,
        f"NLL {ensemble['nll']:.3f} against {truth['nll']:.3f} of the truth, calibration error "
        f"{ensemble['calibration_error']:.4f} against {truth['calibration_error']:.5f}, "
        f"AUSE {ensemble['ause_mae']:.4f}",
    )
    study.finding(
        "Scoring that ensemble as a mixture does not help: each member has one mode",
        abs(mixture["nll"] - ensemble["nll"]) < 0.1 * lost,
        f"NLL {mixture['nll']:.3f} as a mixture, {ensemble['nll']:.3f} as a normal distribution",
    )
    share = (ensemble["nll"] - energy["nll"]) / lost
    study.finding(
        "Energy-based regression learns both modes: NLL and calibration error near the truth's, AUSE far above the "
        "ensemble's",
        share > 0.8
        and energy["calibration_error"] < 0.5 * ensemble["calibration_error"]
        and energy["ause_mae"] > 10 * ensemble["ause_mae"],
        f"NLL {energy['nll']:.3f}: {share:.0%} of the way from the ensemble to the truth; calibration error "
        f"{energy['calibration_error']:.4f}; AUSE {energy['ause_mae']:.3f} with a mode as the prediction, where the "
        f"true distribution has {mode['ause_mae']:.3f}",
    )
    printed = PRINTED["multimodal"][TRUTH][0]
    study.finding(
        "The AUSE printed for the true multimodal distribution is that of its mean or of one of its modes",
        any(abs(one["ause_mae"] - printed) < 0.05 for one in (truth, mode)),
        f"printed {printed:.4f}; {truth['ause_mae']:.4f} where the mean predicts, {mode['ause_mae']:.4f} where a "
        "mode does, the standard deviation being the uncertainty",
    )


def epistemic_findings(study: Study, found: Mapping[str, Columns]) -> None:
    """Findings of table IV."""
    names = (ENSEMBLE, ENERGY)
    *models, truth = chosen(found, (*names, TRUTH))
    gap, wrong, ause = (
        {name: one[key] - base for name, one in zip(names, models, strict=True)}
        for key, base in (("nll", truth["nll"]), ("calibration_error", 0.0), ("ause_mae", 0.0))
    )
    study.finding(
        "In a gap of the training data both models fail in NLL and calibration error",
        min(gap.values()) > 1 and min(wrong.values()) > 10 * truth["calibration_error"],
        ", ".join(
            f"{m}: NLL {gap[m]:.1f} above the truth's, calibration error {wrong[m]:.4f}" for m in names
        ),
    )
    of_ause, of_gap, of_wrong = (max(one.values()) / min(one.values()) for one in (ause, gap, wrong))
    study.finding(
        "There AUSE differs more between the two models than NLL and calibration error do",
        of_ause > max(of_gap, of_wrong),
        f"larger over smaller: AUSE {of_ause:.1f}, NLL above the truth's {of_gap:.1f}, calibration error "
        f"{of_wrong:.1f}",
    )


def nll_moments(data: Conditional, points: int = 20_001) -> tuple[float, float]:
    """Mean and standard deviation of one sample's NLL under the true distribution, by quadrature.

    Over inputs with the midpoint rule, over the noise with Gauss-Hermite.
    """
    x = data.domain[0] + (np.arange(points) + 0.5) / points * (data.domain[1] - data.domain[0])
    means, stds = data.components(x)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    share = weights[:, None] / weights.sum() / (points * len(means))
    first = second = 0.0
    for mean, std in zip(means, stds, strict=True):
        z = (mean + std * nodes[:, None] - means[:, None]) / stds[:, None]
        logs = logsumexp(-0.5 * z**2 - np.log(stds[:, None]), axis=0) - np.log(
            len(means) * np.sqrt(2 * np.pi)
        )
        first -= float((share * logs).sum())
        second += float((share * logs**2).sum())
    return first, float(np.sqrt(second - first**2))


def figures_2_and_3(study: Study, models: Mapping[str, Models]) -> None:
    """The four data sets and what the models make of them.

    Log density, dark where it is low; test targets as dots; the predicted mean of the ensemble and the predicted mode
    of the energy-based model in white.
    """
    study.item("figures 2 and 3", figures_2_and_3)
    figure = new_figure((11.0, 6.6))
    panels = figure.subplots(3, 4)
    for column, (name, one) in enumerate(models.items()):
        x, y = one["image_x"], one["image_y"]
        means, stds = one.ensemble_at(x)
        mean, spread = means.mean(axis=0), np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))
        energy = one["image"]
        shown = {
            "Ensemble": (log_mixture(y, mean[None], spread[None]), mean),
            "EBR": (energy, y[energy.argmax(axis=1)]),
            "True": (log_mixture(y, *one.data.components(x)), None),
        }
        extent = (float(x[0]), float(x[-1]), float(y[0]), float(y[-1]))
        panels[0, column].set_title(name, fontsize=12)
        for row, (title, (image, path)) in enumerate(shown.items()):
            ax = style_axes(panels[row, column], "x" if row == 2 else "", "" if column else f"{title}: y")
            ax.grid(False)
            ax.imshow(
                image.T, origin="lower", extent=extent, aspect="auto", vmin=-8, vmax=2, cmap="viridis",
                interpolation="nearest",
            )  # fmt: skip
            ax.plot(one["x"][:250], one["y"][:250], ".", color=DOTS, markersize=2, linestyle="")
            if path is not None:
                dots = {"marker": ".", "markersize": 3, "linestyle": ""} if title == "EBR" else {}
                line(ax, x, path, **{"color": "white", "linewidth": 1.2, **dots})
            ax.set_ylim(extent[2], extent[3])
    study.figure("figures 2 and 3", figure, "Only the energy-based model can have two branches.")


def log_mixture(y: FloatArray, means: FloatArray, stds: FloatArray) -> FloatArray:
    """Log density (n, points) of an equally weighted mixture (K, n) at places (points,)."""
    logs = norm.logpdf(y[None, None], means[..., None], stds[..., None])
    return np.asarray(logsumexp(logs, axis=0) - np.log(len(means)))


def figure_4(study: Study, draw: Draw) -> None:
    """Metrics against the size of the test set.

    The ensemble on heteroscedastic data. (a) One set of {most:,} samples, of which the first 8, 16 ... are scored.
    (b) {repeats} independent sets of each size: their mean, and a band of one standard deviation;
    uq_tracking.iid_stability makes it. The ensemble is a function of one input and is interpolated between 4001
    values of it.
    """
    largest, repeats = study.pick((16, 100), (13, 40), (11, 30))
    sizes = [2**k for k in range(3, largest + 1)]
    study.item("figure 4", figure_4, most=sizes[-1], repeats=repeats)
    growing = study.cached("growing", lambda: growing_set(study, draw, sizes))
    independent = study.cached("independent", lambda: independent_sets(study, draw, sizes, repeats))
    figure = new_figure((11.0, 5.6))
    size = independent["samples"].astype(float)
    for (top, bottom), (key, label) in zip(figure.subplots(2, len(STABLE)).T, STABLE.items(), strict=True):
        for ax, part in ((top, "a"), (bottom, "b")):
            style_axes(ax, "Samples", "")
            ax.set_xscale("log", base=2)
            ax.set_title(f"({part}) {label}", fontsize=11)
        line(top, growing["samples"], growing[key], marker="o", markersize=4, linewidth=1.6)
        mean, spread = (independent[f"{key} {what}"].astype(float) for what in ("mean", "spread"))
        bottom.fill_between(size, mean - spread, mean + spread, color=MODEL, alpha=0.2, linewidth=0)
        line(bottom, size, mean, marker="o", markersize=4, linewidth=1.6)
        for place, number in ((0, sizes[0]), (-1, sizes[-1])):
            study.row("figure 4", key, f"mean, {number:,} samples", mean[place])
            study.row("figure 4", key, f"spread, {number:,} samples", spread[place])
    study.figure("figure 4", figure, "Each panel has its own scale.")
    stability_findings(study, independent)


def growing_set(study: Study, draw: Draw, sizes: Sequence[int]) -> dict[str, npt.ArrayLike]:
    """Scores of the first samples of one test set."""
    whole = draw(sizes[-1], study.rng("growing"))
    _, mean, std = whole.flat()
    y = whole.truth.reshape(-1)
    rows = [uq.evaluate(y[:n], mean[:n], std[:n], metrics=STABLE).scores for n in sizes]
    return {"samples": sizes, **{key: [row.get(key, np.nan) for row in rows] for key in STABLE}}


def independent_sets(
    study: Study, draw: Draw, sizes: Sequence[int], repeats: int
) -> dict[str, npt.ArrayLike]:
    """Mean and spread of the scores over independent test sets of each size."""
    columns: dict[str, list[float]] = {"samples": [float(size) for size in sizes]}
    for size in study.progress(sizes, "i.i.d. test sets"):
        seed = int(study.rng("independent", size).integers(2**31))
        curves = iid_stability(draw, metrics=STABLE, sizes=[size], repeats=repeats, seed=seed)
        for key in STABLE:
            for what in ("mean", "spread"):
                value = float(curves[key].columns[what][0]) if key in curves else np.nan
                columns.setdefault(f"{key} {what}", []).append(value)
    return {name: np.asarray(values) for name, values in columns.items()}


def settled(columns: Columns, key: str) -> float:
    """The smallest size from which the spread stays within the tolerance; infinite if it never does."""
    wide = np.flatnonzero(~(columns[f"{key} spread"].astype(float) <= TOLERANCE))
    first = 0 if not len(wide) else int(wide[-1]) + 1
    sizes = columns["samples"]
    return float(sizes[first]) if first < len(sizes) else np.inf


def stability_findings(study: Study, columns: Columns) -> None:
    """Findings of figure 4."""
    spread = {key: columns[f"{key} spread"].astype(float) for key in STABLE}
    last = {key: float(columns[f"{key} mean"][-1]) for key in STABLE}
    first = {key: settled(columns, key) for key in STABLE}
    most = int(columns["samples"][-1])
    study.finding(
        "Calibration error settles first as the test set grows, AUSE second and NLL third",
        first["calibration_error"] < first["ause_mae"] <= first["nll"]
        and bool(np.all(spread["calibration_error"] < np.fmin(spread["ause_mae"], spread["nll"]))),
        f"samples from which i.i.d. sets differ by at most {TOLERANCE} (one standard deviation): "
        f"{told(first, ',.0f')}. This compares absolute numbers, as the paper's figure does",
    )
    relative = {key: float(spread[key][-1] / abs(last[key])) for key in STABLE}
    study.finding(
        "Calibration error is also the steadiest in proportion to its own value",
        min(relative, key=relative.__getitem__) == "calibration_error",
        f"standard deviation over mean at {most:,} samples: {told(relative, '.1%')}; its mean over small sets is "
        "1/(6N) above its limit, so it falls with every doubling there",
    )
    study.finding(
        "Spearman's correlation converges to 0 on heteroscedastic data",
        abs(last["spearman"]) < 0.1,
        f"mean {last['spearman']:.3f} at {most:,} samples, where the true distribution has 0.537; the paper sees 0 "
        "and explains it by points near x = 0",
    )


def figure_5(study: Study, found: Mapping[str, Mapping[str, Columns]]) -> None:
    """Sparsification of the ensemble.

    With noise of one size the standard deviation says nothing of the error: the curve stays near the random one.
    """
    study.item("figure 5", figure_5)
    figure = new_figure((9.0, 3.8))
    for ax, name in zip(figure.subplots(1, 2), ("homoscedastic", "heteroscedastic"), strict=True):
        columns = found[name][ENSEMBLE]
        ause = float(columns["ause_mae"])
        style_axes(ax, "Share of most uncertain samples removed", "MAE of the rest / MAE of all")
        ax.set_title(f"{name}, AUSE {ause:.3f}", fontsize=12)
        line(ax, columns["fraction"], columns["model"], label="ensemble")
        line(ax, columns["fraction"], columns["oracle"], color=ORACLE, linestyle="--", label="oracle")
        reference(ax, [0, 1], [1, 1], label="random order")
        legend(ax)
        study.row("figure 5", name, "AUSE", ause)
    study.figure("figure 5", figure)
