"""Xiong et al. (2024): four metrics on four kinds of uncertainty, and on test sets of growing size.

Deep ensemble of five Gaussian networks, once as the normal distribution of its moments (as in the paper) and once
as the mixture that it is; energy-based regression, whose normalizer is summed over a grid of y. The paper states
neither the size of its training and test sets nor how the true distribution predicts. Networks here have three
hidden layers of 64 and 48 units (the paper: five and nine of 256). Each seed has its own training set, networks and
test set. For figure 4 the ensemble, a function of one input, is interpolated between 2001 values of it.

The paper's advice: calibration error means something on its own and is steadiest on small test sets, but needs a
distribution and does not say how wrong predictions can be. AUSE finds the large errors whatever the scale, but has
no bound, and the truth need not have the lowest. NLL sees calibration and sharpness at once and is lowest, in
expectation, at the truth, but needs the most samples and a model to compare with. Against Spearman's correlation it
advises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr
from scipy.stats import norm, spearmanr

import uq_tracking as uq
from uq_tracking.evaluation.parts import iid_stability
from uq_tracking.figures.style import MODEL, ORACLE, RANDOM, SMALL, legend, line, reference
from uq_tracking.inputs import Predictions
from uq_tracking_papers.datasets import DATASETS, Conditional
from uq_tracking_papers.drawing import panel, panels
from uq_tracking_papers.networks import Bundle, Energy, Training, fit, gaussian_loss, moments
from uq_tracking_papers.study import Better, FloatArray, Study, each_over_seeds, medians, over_seeds, told

Columns = Mapping[str, npt.NDArray[np.generic]]
"""Scores by key, and the columns of a curve."""


HOMO, HETERO = "homoscedastic", "heteroscedastic"
MEMBERS = 5
ENSEMBLE, MIXTURE, ENERGY, TRUTH = "Ensemble", "Ensemble as a mixture", "EBR", "True dist."
MODE = "True dist., a mode predicts"
TEST_SIZE = 2000
TRUE_SIZE = 1000
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
STABLE = {
    "calibration_error": "calibration error",
    "ause_mae": "AUSE (MAE)",
    "nll": "NLL",
    "spearman": "Spearman's correlation",
}
TOLERANCE = 0.02
"""A metric has settled once the standard deviation between test sets is at most this."""
DOTS = "#D55E00"
P_VALUE = "p-value"
MEANINGS = {"the correlation": "spearman", "its p-value": P_VALUE}
CONVERGED, UNBIASED = 2**10, 2**6
"""Sizes of the test set beyond which the paper sees every metric converge, and no bias."""

NEAR_TRUTH = {"ause_mae": 0.1, "calibration_error": 0.005, "nll": 0.2}
"""How far from the truth's a score may be to be near it."""


def reproduce(study: Study) -> None:
    """Tables I to IV and figures 1 to 5."""
    study.absent("figure 1", "UQ metrics and regression metrics", "a sketch without numbers")
    models = {name: Models.trained(study, data) for name, data in DATASETS.items()}
    figures_2_and_3(study, models)
    homoscedastic, heteroscedastic = (table(study, models[name]) for name in (HOMO, HETERO))
    unimodal_findings(study, homoscedastic, heteroscedastic)
    multimodal = table(study, models["multimodal"])
    multimodal_findings(study, multimodal)
    epistemic = table(study, models["epistemic"])
    epistemic_findings(study, epistemic)
    truth_checks(
        study, dict(zip(DATASETS, (homoscedastic, heteroscedastic, multimodal, epistemic), strict=True))
    )
    figure_4(study, models[HETERO])
    figure_5(study, models)


# --- models ---


@dataclass(frozen=True, eq=False)
class Models:
    """The models trained on one problem.

    Attributes
    ----------
    data : Conditional
    arrays : dict of arrays
        Test inputs ``x`` and targets ``y`` (seeds, n), members' means and standard deviations (seeds, 5, m) over the
        fine inputs ``table_x``, the summary of the energy-based model at the test sets, and its log density with the
        first seed over ``image_x`` and ``image_y``.
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

    @property
    def seeds(self) -> range:
        """The seeds."""
        return range(len(self.arrays["x"]))

    def ensemble_at(self, seed: int, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Members' means and standard deviations (5, n), interpolated between finely spaced inputs."""
        means, stds = (
            np.stack([np.interp(x, self["table_x"], row) for row in self[table][seed]])
            for table in ("table_mean", "table_std")
        )
        return means, stds

    def draw(self, seed: int, n: int, rng: np.random.Generator) -> Predictions:
        """Predictions of the ensemble for new samples."""
        sample = self.data(n, rng, quantile_scores=False)
        return Predictions.from_ensemble(sample.y, *self.ensemble_at(seed, sample.x))

    def predictions(self, seed: int) -> dict[str, Predictions]:
        """The test set as predicted by each method; quantiles of mixtures are not computed."""
        x, y = self["x"][seed], self["y"][seed]
        means, stds = self.ensemble_at(seed, x)
        true_means, true_stds = self.data.components(x)
        mixture = partial(Predictions.from_ensemble, y, combine="mixture", quantile_scores=False)
        pit, log_density, places, std = (self[name][seed] for name in ("pit", "log_density", "mode", "std"))
        found = {
            ENSEMBLE: Predictions.from_ensemble(y, means, stds),
            MIXTURE: mixture(means, stds),
            ENERGY: Predictions.from_density(y, pit=pit, log_density=log_density, y_pred=places, y_std=std),
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
    """Train ensembles and energy-based models, and keep what `Models` needs of them."""
    size, seeds = study.pick(4096, 2048, 2048), range(study.few_seeds)
    first = int(study.rng("networks", data.name).integers(2**31))

    def samples(what: str, n: int, training: bool) -> tuple[FloatArray, FloatArray]:
        """Inputs and targets (seeds, n)."""
        drawn = [
            data(n, study.rng(what, data.name, s), training=training, quantile_scores=False) for s in seeds
        ]
        return np.stack([one.x for one in drawn]), np.stack([one.y for one in drawn])

    (x, y), (test_x, test_y) = samples("training", size, True), samples("test", TEST_SIZE, False)
    hidden, epochs = study.pick(((64,) * 3, 40), ((64,) * 3, 30), ((64,) * 2, 25))
    networks = Bundle(MEMBERS * len(seeds), 1, hidden, 2, seed=first)
    effort, watch = (
        Training(epochs, study.pick(64, 64, 128), study.pick(2e-3, 3e-3, 1e-2)),
        partial(study.progress, what=f"{data.name}"),
    )
    fit(networks, x[..., None], y, gaussian_loss, effort, watch)
    fine = np.linspace(*data.domain, 2001)
    means, stds = moments(networks.predict(fine[:, None]))
    two_modes = len(data.components(x[0])[0]) > 1  # their ridges take longer to find
    long = 2 if two_modes else 1
    hidden, training, points = study.pick(
        ((48,) * 3, Training(20 * long, 32, 4e-3), 48 if two_modes else 40),
        ((48,) * 3, Training(16 * long, 32, 5e-3), 40 if two_modes else 32),
        ((32,) * 2, Training(10, 128, 1e-2), 32),
    )
    model = Energy(float(y.min()) - ROOM, float(y.max()) + ROOM, hidden, first, len(seeds))
    model.fit(x, y, training, points, partial(study.progress, what=f"energy, {data.name}"))
    summaries = model.summary(test_x, test_y)
    image_x, image_y = np.linspace(*data.domain, 160), np.linspace(model.low, model.high, 200)
    shape = (len(seeds), MEMBERS, len(fine))
    return {
        "x": test_x,
        "y": test_y,
        "table_x": fine,
        "table_mean": means.reshape(shape),
        "table_std": stds.reshape(shape),
        **{name: np.stack([one[name] for one in summaries]) for name in summaries[0]},
        "image_x": image_x,
        "image_y": image_y,
        "image": model.log_density(image_x, image_y)[0],
    }


# --- figures 2 and 3: data and models ---


def figures_2_and_3(study: Study, models: Mapping[str, Models]) -> None:
    """Log densities; the predicted mean of the ensemble and the predicted mode of the energy-based model."""
    study.item("figures 2 and 3", "The four data sets and what the models make of them", "smaller networks")
    figure, axes = panels(3, 4, width=2.75, height=2.3)
    for column, (name, one) in enumerate(models.items()):
        x, y = one["image_x"], one["image_y"]
        mean, spread = moments_of(*one.ensemble_at(0, x))
        energy = one["image"]
        shown = {
            "ensemble": (log_mixture(y, mean[None], spread[None]), mean),
            "energy-based": (energy, y[energy.argmax(axis=1)]),
            "truth": (log_mixture(y, *one.data.components(x)), None),
        }
        extent = (float(x[0]), float(x[-1]), float(y[0]), float(y[-1]))
        for row, (title, (image, path)) in enumerate(shown.items()):
            ax = panel(
                axes[4 * row + column], f"{name}: {title}", "x" if row == 2 else "", "" if column else "y"
            )
            ax.grid(False)
            ax.set_title(ax.get_title(), fontsize=SMALL)
            ax.imshow(
                image.T,
                origin="lower",
                extent=extent,
                aspect="auto",
                vmin=-8,
                vmax=2,
                interpolation="nearest",
            )
            ax.plot(one["x"][0, :250], one["y"][0, :250], ".", color=DOTS, markersize=2, linestyle="")
            if path is not None:
                dots = {"marker": ".", "markersize": 3, "linestyle": ""} if title == "energy-based" else {}
                line(ax, x, path, **{"color": "white", "linewidth": 1.2, **dots})
            ax.set_ylim(extent[2], extent[3])
    study.figure(
        figure,
        "Log density (bright: high), test targets (orange), predictions (white): only the energy-based model can "
        "have two branches, and both miss the gap of the epistemic data.",
    )


def moments_of(means: FloatArray, stds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the mixture of members (members, n)."""
    return means.mean(axis=0), np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))


def log_mixture(y: FloatArray, means: FloatArray, stds: FloatArray) -> FloatArray:
    """Log density (n, points) of an equally weighted mixture (K, n) at places (points,)."""
    logs = norm.logpdf(y[None, None], means[..., None], stds[..., None])
    return np.asarray(logsumexp(logs, axis=0) - np.log(len(means)))


# --- tables I to IV: metrics under different types of uncertainty ---

Scores = Mapping[str, Mapping[str, FloatArray]]
"""For each method and metric, the score with each seed."""


def table(study: Study, models: Models) -> Scores:
    """Rows of one data set."""
    name = models.data.name
    better: dict[str, Better] = dict.fromkeys(QUANTITIES, "lower")
    numeral = ("I", "II", "III", "IV")[list(DATASETS).index(name)]
    study.item(
        f"table {numeral}", f"{name.capitalize()} data", "smaller networks", better=better, bounds=(TRUTH, MODE),
        choice="how the true distribution predicts, which the paper does not state",
    )  # fmt: skip
    arrays = study.cached(f"scores-{name}", partial(scored, study, models))
    found: dict[str, dict[str, FloatArray]] = {}
    for method in models.predictions(0):
        found[method] = {key: arrays[f"{method} {key}"] for key in QUANTITIES.values()}
        printed = PRINTED[name].get(method, (None, None, None))
        for (quantity, key), theirs in zip(QUANTITIES.items(), printed, strict=True):
            study.repeats(method, quantity, found[method][key], theirs)
    return found


def scored(study: Study, models: Models) -> dict[str, npt.ArrayLike]:
    """Scores (seeds,) of each method and metric; those of the first seed are logged."""
    found: dict[str, list[float]] = {}
    for seed in models.seeds:
        for method, predictions in models.predictions(seed).items():
            name = None if seed else f"{models.data.name}, {method}"
            report = study.scored(predictions, method=name, metrics=QUANTITIES.values())
            for key in QUANTITIES.values():
                found.setdefault(f"{method} {key}", []).append(report.scores[key])
    return dict(found)


def unimodal_findings(study: Study, homoscedastic: Scores, heteroscedastic: Scores) -> None:
    """Findings of tables I and II."""
    ause = {name: homoscedastic[name]["ause_mae"] for name in (ENSEMBLE, ENERGY, TRUTH)}
    study.finding(
        "With noise of one size AUSE finds the ensemble or the energy-based model better than the true distribution",
        ause[TRUTH] > np.minimum(ause[ENSEMBLE], ause[ENERGY]),
        f"{medians(ause, '.4f')}; a constant standard deviation has 0.5700, ties being in random order",
    )
    near = {"ause_mae": 0.05, "calibration_error": 0.005, "nll": 0.1}
    for name, found in ((HOMO, homoscedastic), (HETERO, heteroscedastic)):
        apart = {key: np.abs(found[ENSEMBLE][key] - found[ENERGY][key]) for key in near}
        study.finding(
            f"All metrics suggest that both models learn the {name} data about equally well (within 0.05, "
            "0.005, 0.1)",
            np.all([apart[key] < most for key, most in near.items()], axis=0),
            f"difference of the two models: {each_over_seeds(apart)}",
        )
    nll = {name: heteroscedastic[name]["nll"] for name in (ENSEMBLE, ENERGY, TRUTH)}
    middle = medians(nll, ".3f")
    study.finding(
        "On heteroscedastic data the true distribution has the best NLL",
        nll[TRUTH] < np.minimum(nll[ENSEMBLE], nll[ENERGY]),
        middle,
    )
    study.finding(
        "On heteroscedastic data the ensemble is slightly better than energy-based regression in NLL",
        nll[ENSEMBLE] < nll[ENERGY],
        middle,
    )
    study.cannot_judge(
        "A perfectly uniform variance is rare in real-world applications", "it is a statement about the world"
    )


def multimodal_findings(study: Study, found: Scores) -> None:
    """Findings of table III."""
    ensemble, mixture, energy, truth, mode = (
        found[name] for name in (ENSEMBLE, MIXTURE, ENERGY, TRUTH, MODE)
    )
    lost = ensemble["nll"] - truth["nll"]
    study.finding(
        "On multimodal data a Gaussian ensemble fails in NLL and calibration error",
        (lost > 1) & (ensemble["calibration_error"] > 0.01) & (truth["calibration_error"] < 0.002),
        f"NLL {np.median(ensemble['nll']):.3f} against {np.median(truth['nll']):.3f} of the truth, "
        "calibration error "
        f"{np.median(ensemble['calibration_error']):.4f} against {np.median(truth['calibration_error']):.5f}",
    )
    study.finding(
        "On multimodal data the Gaussian ensemble is near perfect by AUSE, and better than the truth",
        {
            what: (ensemble["ause_mae"] < 0.05) & (ensemble["ause_mae"] < one["ause_mae"])
            for what, one in (("a mode predicts", mode), ("the mean predicts", truth))
        },
        f"AUSE {over_seeds(ensemble['ause_mae'])}; the truth's {over_seeds(mode['ause_mae'])} where one of "
        "its modes "
        f"predicts, {over_seeds(truth['ause_mae'])} where its mean does",
    )
    share = (ensemble["nll"] - energy["nll"]) / lost
    study.finding(
        "On multimodal data energy-based regression learns both modes: NLL and calibration error are near the "
        "truth's",
        (share > 0.8) & (energy["calibration_error"] < 0.5 * ensemble["calibration_error"]),
        f"of the NLL between ensemble and truth it gains {over_seeds(share, '.0%')}; calibration error "
        f"{over_seeds(energy['calibration_error'])}",
    )
    study.finding(
        "On multimodal data AUSE places energy-based regression far behind the ensemble",
        energy["ause_mae"] > 10 * ensemble["ause_mae"],
        f"AUSE {over_seeds(energy['ause_mae'])}, with a mode as the prediction",
    )
    study.finding(
        "On multimodal data all metrics place energy-based regression near the truth (within 0.1, 0.005, 0.2)",
        {
            what: np.all([np.abs(energy[key] - one[key]) < most for key, most in NEAR_TRUTH.items()], axis=0)
            for what, one in (("a mode predicts", mode), ("the mean predicts", truth))
        },
        f"AUSE {over_seeds(energy['ause_mae'])}, the truth's {over_seeds(mode['ause_mae'])} or "
        f"{over_seeds(truth['ause_mae'])}; NLL {over_seeds(energy['nll'] - truth['nll'], '.2f')} above the truth's",
    )
    study.diagnostic(
        "On multimodal data scoring the ensemble as a mixture does not help: each member has one mode",
        np.all(np.abs(mixture["nll"] - ensemble["nll"]) < 0.1 * lost),
        f"NLL {over_seeds(mixture['nll'])} as a mixture, {over_seeds(ensemble['nll'])} as a normal "
        "distribution",
    )
    printed = PRINTED["multimodal"][TRUTH][0]
    study.diagnostic(
        "The AUSE printed for the true multimodal distribution is that of its mean or of one of its modes",
        any(abs(np.median(one["ause_mae"]) - printed) < 0.05 for one in (truth, mode)),
        f"printed {printed:.4f}; {np.median(truth['ause_mae']):.4f} where the mean predicts, "
        f"{np.median(mode['ause_mae']):.4f} where a mode does, the standard deviation being the uncertainty",
    )


def epistemic_findings(study: Study, found: Scores) -> None:
    """Findings of table IV."""
    names, truth = (ENSEMBLE, ENERGY), found[TRUTH]
    gap = {name: found[name]["nll"] - truth["nll"] for name in names}
    wrong, ause = ({name: found[name][key] for name in names} for key in ("calibration_error", "ause_mae"))
    study.finding(
        "In a gap of the training data both models fail in NLL and calibration error",
        np.all([(gap[m] > 1) & (wrong[m] > 10 * truth["calibration_error"]) for m in names], axis=0),
        ", ".join(
            f"{m}: NLL {np.median(gap[m]):.1f} above the truth's, calibration error {np.median(wrong[m]):.4f}"
            for m in names
        ),
    )
    study.finding(
        "In a gap of the training data NLL and calibration error disagree on which model is worse",
        (gap[ENSEMBLE] > gap[ENERGY]) != (wrong[ENSEMBLE] > wrong[ENERGY]),
        f"the ensemble is worse by NLL with {np.mean(gap[ENSEMBLE] > gap[ENERGY]):.0%} of the seeds, by "
        "calibration error "
        f"with {np.mean(wrong[ENSEMBLE] > wrong[ENERGY]):.0%}",
    )
    told_ause = (
        f"AUSE: ensemble {over_seeds(ause[ENSEMBLE])}, EBR {over_seeds(ause[ENERGY])}, "
        f"truth {over_seeds(truth['ause_mae'])}"
    )
    study.finding(
        "In a gap of the training data AUSE places the ensemble near the truth (within 0.1) and energy-based "
        "regression far off (twice the ensemble's)",
        (np.abs(ause[ENSEMBLE] - truth["ause_mae"]) < 0.1) & (ause[ENERGY] > 2 * ause[ENSEMBLE]),
        told_ause,
    )
    of_ause, of_gap, of_wrong = (
        np.maximum(one[ENSEMBLE], one[ENERGY]) / np.minimum(one[ENSEMBLE], one[ENERGY])
        for one in (ause, gap, wrong)
    )
    study.finding(
        "In a gap of the training data AUSE differs more between the two models than NLL and calibration error do",
        of_ause > np.maximum(of_gap, of_wrong),
        f"larger over smaller: AUSE {over_seeds(of_ause)}, NLL above the truth's {over_seeds(of_gap)}, "
        "calibration error "
        f"{over_seeds(of_wrong)}",
    )


def truth_checks(study: Study, found: Mapping[str, Scores]) -> None:
    """Checks of the true distributions' scores: against their expectations and against the printed values."""
    moments = {name: nll_moments(data) for name, data in DATASETS.items()}
    seeds = study.few_seeds
    gaps = {name: float(np.mean(found[name][TRUTH]["nll"])) - mean for name, (mean, _) in moments.items()}
    worst = max(float(np.mean(found[name][TRUTH]["calibration_error"])) for name in DATASETS)
    study.diagnostic(
        "The true distribution reaches the NLL that is expected of it, and a calibration error near 0",
        all(abs(gaps[name]) < 4 * std / (seeds * TEST_SIZE) ** 0.5 for name, (_, std) in moments.items())
        and worst < 1 / TEST_SIZE,
        f"NLL minus its expectation, by quadrature, over {seeds} sets of {TEST_SIZE:,} samples: "
        f"{told(gaps, '+.4f')}; "
        f"calibration errors up to {worst:.5f}, {1 / (6 * TEST_SIZE):.5f} expected",
    )
    printed = {name: PRINTED[name][TRUTH][2] for name in DATASETS}
    apart = {name: (printed[name] - mean) / (std / TRUE_SIZE**0.5) for name, (mean, std) in moments.items()}
    study.diagnostic(
        f"The NLL printed for the true distributions is that of test sets of {TRUE_SIZE:,} samples or more",
        all(abs(errors) < 3 for errors in apart.values()),
        ", ".join(
            f"{name}: printed {printed[name]:.4f}, expected {mean:.4f} ({apart[name]:+.1f} standard errors)"
            for name, (mean, _) in moments.items()
        ),
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


# --- figure 4: stability ---


def figure_4(study: Study, models: Models) -> None:
    """(a) Growing parts of one set; (b) independent sets of each size, by uq_tracking.iid_stability."""
    largest, repeats = study.pick((16, 30), (13, 20), (11, 16))
    growing_sizes = [2**k for k in range(3, largest + 1)]
    sizes = [2**k for k in range(3, min(13, largest) + 1)]
    study.item(
        "figure 4", "Metrics against the size of the test set",
        f"(b) {repeats} sets for the paper's 100, of up to 2^13 samples",
        choice="which of the two numbers that scipy.stats.spearmanr returns is meant",
    )  # fmt: skip
    growing = study.cached("growing", lambda: growing_set(study, models, growing_sizes))
    found = [
        study.cached(f"independent-{seed}", partial(independent_sets, study, models, seed, sizes, repeats))
        for seed in models.seeds
    ]
    shown = {**STABLE, P_VALUE: "Spearman's p-value"}
    figure, axes = panels(2, len(shown), width=2.6, height=2.8)
    for top, bottom, (key, label) in zip(axes, axes[len(shown) :], shown.items(), strict=False):
        first = top is axes[0]
        for ax, row in ((top, "(a) one set, growing"), (bottom, "(b) many sets, mean ± std")):
            panel(ax, label, "samples", row if first else "")
            ax.set_title(ax.get_title(), fontsize=SMALL)
            ax.set_xscale("log", base=2)
            ax.axhline(0, color=RANDOM, linestyle=":", linewidth=1.2)
        line(top, growing["samples"], growing[key], marker="o", markersize=4, linewidth=1.6)
        mean, spread = (found[0][f"{key} {what}"].astype(float) for what in ("mean", "spread"))
        low = np.maximum(mean - spread, 0) if key == P_VALUE else mean - spread
        bottom.fill_between(sizes, low, mean + spread, color=MODEL, alpha=0.2, linewidth=0)
        line(bottom, sizes, mean, marker="o", markersize=4, linewidth=1.6)
        for place in (0, 3, -1):
            for what in ("mean", "spread"):
                values = [one[f"{key} {what}"][place] for one in found]
                study.repeats(key, f"{what}, {sizes[place]:,} samples", values)
    study.figure(
        figure,
        "Calibration error settles first; Spearman's p-value (its band is cut at 0) tends to 0 (dotted), its "
        "correlation does not.",
    )
    stability_findings(study, found)


def growing_set(study: Study, models: Models, sizes: Sequence[int]) -> dict[str, npt.ArrayLike]:
    """Scores of the first samples of one test set."""
    whole = models.draw(0, sizes[-1], study.rng("growing"))
    _, mean, std = whole.flat()
    y = whole.truth.reshape(-1)
    rows = [uq.evaluate(y[:n], mean[:n], std[:n], metrics=STABLE).scores for n in sizes]
    found: dict[str, npt.ArrayLike] = {key: [row.get(key, np.nan) for row in rows] for key in STABLE}
    p_values = [spearmanr(std[:n], np.abs(y - mean)[:n]).pvalue for n in sizes]
    return {"samples": sizes, P_VALUE: p_values, **found}


def independent_sets(
    study: Study, models: Models, seed: int, sizes: Sequence[int], repeats: int
) -> dict[str, npt.ArrayLike]:
    """Mean and spread of the scores over independent test sets of each size."""
    columns: dict[str, list[float]] = {"samples": [float(size) for size in sizes]}
    for size in study.progress(sizes, "i.i.d. test sets"):
        first = int(study.rng("independent", seed, size).integers(2**31))
        draw = partial(models.draw, seed)
        curves = iid_stability(draw, metrics=STABLE, sizes=[size], repeats=repeats, seed=first)
        rng, p_values = np.random.default_rng(first), []
        for _ in range(repeats):
            predictions = draw(size, rng)
            _, mean, std = predictions.flat()
            p_values.append(spearmanr(std, np.abs(predictions.truth.reshape(-1) - mean)).pvalue)
        for key in STABLE:
            for what in ("mean", "spread"):
                value = float(curves[key].columns[what][0]) if key in curves else np.nan
                columns.setdefault(f"{key} {what}", []).append(value)
        columns.setdefault(f"{P_VALUE} mean", []).append(float(np.mean(p_values)))
        columns.setdefault(f"{P_VALUE} spread", []).append(float(np.std(p_values)))
    return {name: np.asarray(values) for name, values in columns.items()}


def settled(columns: Columns, key: str) -> float:
    """The smallest size from which the spread stays within the tolerance; infinite if it never does."""
    wide = np.flatnonzero(~(columns[f"{key} spread"].astype(float) <= TOLERANCE))
    first = 0 if not len(wide) else int(wide[-1]) + 1
    sizes = columns["samples"]
    return float(sizes[first]) if first < len(sizes) else np.inf


def stability_findings(study: Study, found: Sequence[Columns]) -> None:
    """Findings of figure 4."""
    sizes = found[0]["samples"].astype(int).tolist()

    def at(key: str, what: str, size: int) -> FloatArray:
        return np.array([columns[f"{key} {what}"][sizes.index(size)] for columns in found])

    first = {key: np.array([settled(columns, key) for columns in found]) for key in STABLE}
    told_first = (
        f"samples from which i.i.d. sets differ by at most {TOLERANCE} (one standard deviation), medians: "
        f"{medians(first, ',.0f')}"
    )
    large = [size for size in sizes if size >= UNBIASED]
    wide = {
        key: np.exp(np.mean([np.log(at(key, "spread", size)) for size in large], axis=0)) for key in STABLE
    }
    error, ause, nll, spearman = wide.values()
    study.finding(
        "Calibration error is the most stable metric",
        error < np.min([ause, nll, spearman], axis=0),
        f"{told_first}. This compares absolute numbers, as the paper's figure does",
    )
    study.finding(
        "AUSE is the second most stable", (error < ause) & (ause < np.minimum(nll, spearman)), told_first
    )
    study.finding(
        "Spearman's correlation is the least stable of the four",
        spearman > np.max([error, ause, nll], axis=0),
        f"standard deviation between i.i.d. sets, geometric mean over sizes: {medians(wide)}",
    )
    rest = [key for key in STABLE if key != "spearman"]
    spread = {key: at(key, "spread", CONVERGED) for key in rest}
    study.finding(
        f"All metrics have converged beyond {CONVERGED:,} samples (one standard deviation of 0.05 at most)",
        np.all([of <= 0.05 for of in spread.values()], axis=0),
        f"standard deviation there: {each_over_seeds(spread)}",
    )
    bias = {key: np.abs(at(key, "mean", UNBIASED) - at(key, "mean", sizes[-1])) for key in rest}
    chance = {key: 3 * at(key, "spread", UNBIASED) / np.sqrt(study.pick(30, 20, 16)) for key in rest}
    study.finding(
        f"No metric has a meaningful bias beyond {UNBIASED} samples (0.02, or three standard errors of the mean)",
        np.all([of <= np.maximum(0.02, chance[key]) for key, of in bias.items()], axis=0),
        f"mean at {UNBIASED} less that at {sizes[-1]:,}: {each_over_seeds(bias)}",
    )
    last = {name: at(key, "mean", sizes[-1]) for name, key in MEANINGS.items()}
    path = {size: float(np.median(at(P_VALUE, "mean", size))) for size in (8, 16, 32, 64, 128)}
    study.finding(
        "Spearman's correlation has a large value with small test sets and converges to 0",
        {name: np.abs(of) < 0.05 for name, of in last.items()},
        f"at {sizes[-1]:,} samples the correlation is {over_seeds(last['the correlation'])} (the true distribution "
        f"has 0.537); scipy's p-value beside it is {', '.join(f'{value:.3f}' for value in path.values())} at "
        f"{', '.join(map(str, path))} samples: that is what the paper describes",
    )
    relative = {key: at(key, "spread", sizes[-1]) / np.abs(at(key, "mean", sizes[-1])) for key in STABLE}
    study.diagnostic(
        "Calibration error is also the steadiest in proportion to its own value",
        np.all(relative["calibration_error"] <= np.min(list(relative.values()), axis=0)),
        f"standard deviation over mean at {sizes[-1]:,} samples: {medians(relative, '.1%')}",
    )


# --- figure 5: sparsification ---


def figure_5(study: Study, models: Mapping[str, Models]) -> None:
    """MAE of what is left."""
    study.item("figure 5", "Sparsification of the ensemble")
    figure, axes = panels(1, 2, width=4.5, height=3.8)
    away: dict[str, FloatArray] = {}
    for ax, name in zip(axes, (HOMO, HETERO), strict=True):
        predictions = [models[name].predictions(seed)[ENSEMBLE] for seed in models[name].seeds]
        reports = [uq.evaluate(one, metrics=["ause_mae"]) for one in predictions]
        ause = [report.scores["ause_mae"] for report in reports]
        curves = [report.curves["sparsification_mae"].columns for report in reports]
        away[name] = np.array([np.abs(of["model"][of["fraction"] <= 0.8] - 1).max() for of in curves])
        panel(
            ax,
            f"{name}: AUSE {ause[0]:.3f}",
            "share of most uncertain samples removed",
            "MAE of the rest / of all",
        )
        line(ax, curves[0]["fraction"], curves[0]["model"], label="ensemble")
        line(ax, curves[0]["fraction"], curves[0]["oracle"], color=ORACLE, linestyle="--", label="oracle")
        reference(ax, [0, 1], [1, 1], label="random order")
        legend(ax)
        study.repeats(name, "AUSE", ause)
    study.figure(
        figure,
        "The nearer to the oracle, the better the uncertainty sorts the errors: with noise of one size it cannot.",
    )
    study.finding(
        "With noise of one size the sparsification curve is nearly horizontal (within 0.15 until 80 % are removed)",
        away[HOMO] < 0.15,
        f"largest distance from 1: {each_over_seeds(away, '.2f')}",
    )
