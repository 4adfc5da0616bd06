"""How far every metric is from the same number of other libraries: the largest relative difference seen."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import properscoring
import scoringrules
import torch
import torchmetrics.classification as tm
import uncertainty_toolbox as uct
from scipy import integrate, optimize, stats
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

import uq_tracking as uq
from uq_tracking import plugins

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import itertools

from conventions import AGREEMENT, PAGE
from oracles import regression  # noqa: F401  (enters its scores into LITERAL)
from oracles.classification import LITERAL as LITERAL_CLASSIFICATION
from oracles.literal import LITERAL

Array = Any
LEVELS = np.arange(1, 100) / 100
QUANTILE_LEVELS = [0.05, 0.5, 0.95]
Q95 = stats.norm.ppf(0.95)
ROOT3 = math.sqrt(3)
ROUNDING = 1e-14
"""Smaller differences are shown as this one, so that the table does not change with the order of sums."""

PRIORS = {
    "": lambda mu, s: stats.norm(mu, s),
    "_gaussian": lambda mu, s: stats.norm(mu, s),
    "_laplace": lambda mu, s: stats.laplace(mu, s / math.sqrt(2)),
    "_uniform": lambda mu, s: stats.uniform(mu - s * ROOT3, 2 * s * ROOT3),
}


def datasets() -> dict[str, tuple[Array, Array, Array]]:
    """Calibrated, overconfident, heavy-tailed and biased predictions, 600 samples each."""
    rng = np.random.default_rng(11)
    mu, s = rng.normal(size=600), rng.gamma(3, 0.4, 600)
    noise = {
        "calibrated": rng.normal(size=600),
        "overconfident": 2 * rng.normal(size=600),
        "heavy tails": rng.standard_t(3, 600),
        "biased": 0.7 + rng.normal(size=600),
        "inside the uniform's support": rng.uniform(-1.7, 1.7, 600),
    }
    return {name: (mu + s * z, mu, s) for name, z in noise.items()}


def coverage(level: float) -> Callable[[Array, Array, Array], float]:
    def share(y: Array, mu: Array, s: Array) -> float:
        low, high = stats.norm.interval(level, mu, s)
        return float(np.mean((low <= y) & (y <= high)))

    return share


def gaps(y: Array, mu: Array, s: Array) -> Array:
    return np.array([coverage(p)(y, mu, s) for p in LEVELS]) - LEVELS


def by_quadrature(kind: str, prior: str) -> Callable[[Array, Array, Array], float]:
    """Mean of a score, its integral of the squared density taken numerically (first 60 samples are enough)."""

    def score(y: Array, mu: Array, s: Array) -> float:
        values = []
        for yi, mi, si in zip(y[:60], mu[:60], s[:60], strict=True):
            law = PRIORS[prior](mi, si)
            edges = law.support() if prior == "_uniform" else (mi - 30 * si, mi, mi + 30 * si)
            square = sum(
                integrate.quad(lambda t, law=law: law.pdf(t) ** 2, a, b, epsabs=1e-13, epsrel=1e-12)[0]
                for a, b in itertools.pairwise(edges)
            )
            p = law.pdf(yi)
            values.append(2 * p - square if kind == "quadratic" else p / math.sqrt(square))
        return float(np.mean(values))

    return score


def binned(score: Callable[[Array, Array], float]) -> Callable[[Array, Array, Array], float]:
    def over_bins(y: Array, mu: Array, s: Array) -> float:
        return float(np.mean([score((y - mu)[b], s[b]) for b in np.array_split(np.argsort(s), 10)]))

    return over_bins


def quantile_gap(y: Array, mu: Array, s: Array) -> float:
    """uncertainty-toolbox counts (mu - y) / s: with y and mu swapped its sign comes out right."""
    _, observed = uct.get_proportion_lists_vectorized(y, s, mu, num_bins=101, prop_type="quantile")
    return float(np.mean((observed[1:-1] - LEVELS) ** 2))


PEERS: dict[str, dict[str, Callable[[Array, Array, Array], float]]] = {
    "mae": {"scikit-learn": lambda y, mu, s: sk.mean_absolute_error(y, mu)},
    "rmse": {"scikit-learn": lambda y, mu, s: sk.root_mean_squared_error(y, mu)},
    "medae": {"scikit-learn": lambda y, mu, s: sk.median_absolute_error(y, mu)},
    "r2": {"scikit-learn": lambda y, mu, s: sk.r2_score(y, mu)},
    "nll": {"scoringrules": lambda y, mu, s: scoringrules.logs_normal(y, mu, s).mean()},
    "nll_laplace": {
        "scoringrules": lambda y, mu, s: scoringrules.logs_laplace(y, mu, s / math.sqrt(2)).mean()
    },
    "nll_uniform": {"scipy": lambda y, mu, s: -PRIORS["_uniform"](mu, s).logpdf(y).mean()},
    "crps": {
        "scoringrules": lambda y, mu, s: scoringrules.crps_normal(y, mu, s).mean(),
        "properscoring": lambda y, mu, s: properscoring.crps_gaussian(y, mu, s).mean(),
        "uncertainty-toolbox": lambda y, mu, s: uct.crps_gaussian(mu, s, y),
    },
    "crps_gain": {"scoringrules and scipy": lambda y, mu, s: crps_gain(y, mu, s)},
    "crps_laplace": {
        "scoringrules": lambda y, mu, s: scoringrules.crps_laplace(y, mu, s / math.sqrt(2)).mean()
    },
    "crps_uniform": {
        "scoringrules": lambda y, mu, s: scoringrules.crps_uniform(y, mu - ROOT3 * s, mu + ROOT3 * s).mean()
    },
    "interval_score": {"uncertainty-toolbox": lambda y, mu, s: uct.interval_score(mu, s, y)},
    "pinball": {
        "uncertainty-toolbox": lambda y, mu, s: uct.check_score(mu, s, y),
        "scikit-learn": lambda y, mu, s: np.mean(
            [sk.mean_pinball_loss(y, mu + stats.norm.ppf(q) * s, alpha=q) for q in LEVELS]
        ),
    },
    **{f"coverage_{p}": {"scipy": coverage(p / 100)} for p in (50, 68, 80, 90, 95)},
    "interval_width_95": {
        "scipy": lambda y, mu, s: np.mean(np.diff(stats.norm.interval(0.95, mu, s), axis=0))
    },
    "auce": {"scipy": lambda y, mu, s: np.trapezoid(np.abs(gaps(y, mu, s)), dx=0.01)},
    "auce_over": {"scipy": lambda y, mu, s: np.trapezoid(np.maximum(-gaps(y, mu, s), 0), dx=0.01)},
    "auce_under": {"scipy": lambda y, mu, s: np.trapezoid(np.maximum(gaps(y, mu, s), 0), dx=0.01)},
    "calibration_error": {"uncertainty-toolbox": quantile_gap},
    "mace": {
        "uncertainty-toolbox": lambda y, mu, s: uct.mean_absolute_calibration_error(mu, s, y, vectorized=True)
    },
    "rmsce": {
        "uncertainty-toolbox": lambda y, mu, s: uct.root_mean_squared_calibration_error(
            mu, s, y, vectorized=True
        )
    },
    "miscalibration_area": {
        "uncertainty-toolbox": lambda y, mu, s: uct.miscalibration_area(mu, s, y, vectorized=True)
    },
    "pit_ks": {"scipy": lambda y, mu, s: stats.kstest(stats.norm.cdf((y - mu) / s), "uniform").statistic},
    "ence": {"numpy": binned(lambda e, s: abs(1 - np.sqrt(np.mean(e**2)) / np.sqrt(np.mean(s**2))))},
    "uce": {"numpy": binned(lambda e, s: abs(np.mean(e**2) - np.mean(s**2)))},
    "spearman": {"scipy": lambda y, mu, s: stats.spearmanr(s, np.abs(y - mu)).statistic},
    "sharpness": {"uncertainty-toolbox": lambda y, mu, s: uct.sharpness(s)},
    "cv": {"scipy": lambda y, mu, s: stats.variation(s, ddof=1)},
    "z_mean": {"scipy": lambda y, mu, s: stats.tmean((y - mu) / s)},
    "z_std": {"scipy": lambda y, mu, s: stats.tstd((y - mu) / s, ddof=0)},
}
PEERS |= {
    "crps_ensemble": {
        "scoringrules": lambda y, mu, s: scoringrules.crps_ensemble(
            y, draws_of(mu, s).T, estimator="nrg"
        ).mean(),
        "properscoring": lambda y, mu, s: properscoring.crps_ensemble(y, draws_of(mu, s).T).mean(),
    },
    "wis": {"scoringrules": lambda y, mu, s: bracher(y, mu, s)},
    "winkler_score": {"scoringrules": lambda y, mu, s: winkler(y, mu, s)},
    "interval_gain": {
        "scoringrules and scipy": lambda y, mu, s: (
            1
            - winkler(y, mu, s)
            / winkler(y, mu, np.quantile(np.abs(y - mu), 0.9, method="inverted_cdf") / Q95)
        )
    },
    "interval_coverage": {"scipy": coverage(0.9)},
    "interval_width": {"scipy": lambda y, mu, s: np.mean(np.diff(stats.norm.interval(0.9, mu, s), axis=0))},
}
PEERS |= {
    "energy_score": {
        "scoringrules": lambda y, mu, s: scoringrules.es_ensemble(
            pairs(y), pairs(draws_of(mu, s)), m_axis=0, estimator="fair"
        ).mean()
    },
    "variogram_score": {
        "scoringrules": lambda y, mu, s: scoringrules.vs_ensemble(
            pairs(y), pairs(draws_of(mu, s)), m_axis=0, p=0.5, estimator="fair"
        ).mean()
    },
    "joint_nll": {
        "scipy": lambda y, mu, s: (
            -np.mean(
                [
                    stats.multivariate_normal(cov=c).logpdf(e)
                    for e, c in zip(pairs(y - mu), covariances(s), strict=True)
                ]
            )
        )
    },
    "joint_ks": {"scipy": lambda y, mu, s: stats.kstest(distances(y - mu, s), stats.chi2(2).cdf).statistic},
    **{
        f"joint_coverage_{p}": {
            "scipy": lambda y, mu, s, p=p: np.mean(distances(y - mu, s) <= stats.chi2(2).ppf(p / 100))
        }
        for p in (50, 90, 95)
    },
}
PEERS |= {f"{key}_gaussian": PEERS[key] for key in ("nll", "crps")}
QUADRATURE = {
    f"{kind}_score{prior}": by_quadrature(kind, prior)
    for kind in ("quadratic", "spherical")
    for prior in PRIORS
}


def classes() -> tuple[Array, Array]:
    """Overconfident probabilities of four classes, 600 samples."""
    rng = np.random.default_rng(12)
    probs = rng.dirichlet(np.full(4, 0.7), 600)
    softened = probs**0.6 / (probs**0.6).sum(axis=1, keepdims=True)
    labels = np.array([rng.choice(4, p=p) for p in softened])
    return labels, probs


CLASS_PEERS: dict[str, dict[str, Callable[[Array, Array], float]]] = {
    "accuracy": {"scikit-learn": lambda y, p: sk.accuracy_score(y, p.argmax(axis=1))},
    "nll": {"scikit-learn": lambda y, p: sk.log_loss(y, p, labels=range(p.shape[1]))},
    "brier": {"scikit-learn": lambda y, p: brier_of_classes(y, p)},
    "ece": {"torchmetrics": lambda y, p: calibration(y, p, "l1")},
    "mce": {"torchmetrics": lambda y, p: calibration(y, p, "max")},
    "mdice": {"scikit-learn": lambda y, p: sk.f1_score(y, p.argmax(axis=1), average="macro")},
    "miou": {"scikit-learn": lambda y, p: sk.jaccard_score(y, p.argmax(axis=1), average="macro")},
    "cwece": {"torchmetrics": lambda y, p: np.mean(class_calibrations(y, p))},
    "worst_class_gap": {"scipy": lambda y, p: class_gaps(y, p).max()},
    "entropy_mean": {"scipy": lambda y, p: stats.entropy(p, axis=1).mean()},
    "failure_auroc": {
        "scikit-learn": lambda y, p: sk.roc_auc_score(p.argmax(axis=1) == y, p.max(axis=1)),
    },
}
EVENT_PEERS: dict[str, dict[str, Callable[[Array, Array], float]]] = {
    **CLASS_PEERS,
    "ece": {"torchmetrics": lambda y, p: event_calibration(y, p, "l1")},
    "mce": {"torchmetrics": lambda y, p: event_calibration(y, p, "max")},
    "event_rate": {"scipy": lambda y, p: stats.tmean(y)},
    "stated_rate": {"scipy": lambda y, p: stats.tmean(p[:, 1])},
    "event_ratio": {"scipy": lambda y, p: stats.tmean(p[:, 1]) / stats.tmean(y)},
    "cal_slope": {"scikit-learn": lambda y, p: odds(y, p)},
    "auroc": {"scikit-learn": lambda y, p: sk.roc_auc_score(y, p[:, 1])},
    "average_precision": {"scikit-learn": lambda y, p: sk.average_precision_score(y, p[:, 1])},
}
"""Scores of two classes: those of calibration are the event's."""


def event_calibration(y: Array, p: Array, norm: str) -> float:
    metric = tm.BinaryCalibrationError(n_bins=10, norm=norm)
    return float(metric(torch.as_tensor(p[:, 1].copy(), dtype=torch.float64), torch.as_tensor(y)))


def class_calibrations(y: Array, p: Array) -> list[float]:
    """Calibration error of each class against the rest."""
    return [event_calibration(y == c, p[:, [c, c]], "l1") for c in range(p.shape[1])]


def class_gaps(y: Array, p: Array) -> Array:
    """Distance of the mean probability of each class from its share."""
    return np.abs([stats.tmean(p[:, c]) - stats.tmean((y == c) * 1.0) for c in range(p.shape[1])])


def odds(y: Array, p: Array) -> float:
    """Slope of an unpenalized logistic regression on the logit."""
    fit = LogisticRegression(C=math.inf, tol=1e-14, solver="newton-cholesky")
    return float(fit.fit(np.log(p[:, 1:] / p[:, :1]), y).coef_[0, 0])


def brier_of_classes(y: Array, p: Array) -> float:
    """Add the Brier scores of the classes: older versions of scikit-learn know only those of an event."""
    return float(sum(sk.brier_score_loss(y == k, column) for k, column in enumerate(p.T)))


def calibration(y: Array, p: Array, norm: str) -> float:
    metric = tm.MulticlassCalibrationError(p.shape[1], n_bins=10, norm=norm)
    return float(metric(torch.as_tensor(p, dtype=torch.float64), torch.as_tensor(y)))


def difference(ours: float, theirs: float) -> float:
    """Relative to the larger of the two; absolute where both are nearly zero."""
    return abs(ours - theirs) / max(abs(ours), abs(theirs), 1e-3)


def _scores(y: Array, mu: Array, s: Array) -> dict[str, float]:
    """Every score, those of the Gaussian prior beside another family too."""
    priors = [key for key in plugins.metrics("regression") if key.endswith("_gaussian")]
    beside = uq.evaluate(y, mu, s, family="laplace", metrics=priors).scores
    return {**uq.evaluate(y, mu, s).scores, **beside, **_form_scores(y, mu, s)}


def draws_of(mu: Array, s: Array) -> Array:
    """Twelve draws, shape (12, N)."""
    return mu + s * np.random.default_rng(3).normal(size=(12, len(mu)))


def quantiles_of(mu: Array, s: Array) -> Array:
    """Quantiles at .05, .5 and .95, shape (3, N)."""
    return mu + s * stats.norm.ppf(np.array(QUANTILE_LEVELS))[:, None]


def pairs(values: Array) -> Array:
    """Vectors of two neighbors each, shape (..., N/2, 2)."""
    return values.reshape(*values.shape[:-1], -1, 2)


def covariances(s: Array) -> Array:
    """Covariances of the pairs with a correlation of .4, shape (N/2, 2, 2)."""
    return pairs(s)[:, :, None] * pairs(s)[:, None] * np.array([[1.0, 0.4], [0.4, 1.0]])


def distances(error: Array, s: Array) -> Array:
    """Squared Mahalanobis distances of the pairs."""
    solved = np.linalg.solve(covariances(s), pairs(error)[..., None])[..., 0]
    return np.asarray((pairs(error) * solved).sum(axis=1))


def _form_scores(y: Array, mu: Array, s: Array) -> dict[str, float]:
    """Scores of draws, of quantiles and of vectors only."""
    draws = uq.evaluate(uq.Predictions.from_samples(y, draws_of(mu, s))).scores
    given = uq.Predictions.from_quantiles(y, quantiles_of(mu, s), QUANTILE_LEVELS, axis=0)
    found = uq.evaluate(given).scores
    interval = uq.evaluate(uq.Predictions.from_interval(y, mu - Q95 * s, mu + Q95 * s, 0.9)).scores
    joint = uq.evaluate(uq.Predictions.from_samples(pairs(y), pairs(draws_of(mu, s)), joint=True)).scores
    normal = uq.evaluate(uq.Predictions.from_covariance(pairs(y), pairs(mu), covariances(s))).scores
    return {
        "crps_ensemble": draws["crps_ensemble"],
        **{key: interval[key] for key in ("winkler_score", "interval_gain")},
        **{key: found[key] for key in ("wis", "interval_coverage", "interval_width")},
        **{key: value for key, value in normal.items() if key.startswith("joint_")},
        **{key: joint[key] for key in ("energy_score", "variogram_score")},
    }


def winkler(y: Array, mu: Array, s: Array | float) -> float:
    """Mean Winkler score of the central 90 % intervals of a normal distribution."""
    return float(np.mean(scoringrules.interval_score(y, mu - Q95 * s, mu + Q95 * s, 0.1)))


def crps_gain(y: Array, mu: Array, s: Array) -> float:
    """Gain over the constant std that minimizes the CRPS."""

    def score(log_std: float) -> float:
        return float(scoringrules.crps_normal(y, mu, np.exp(log_std)).mean())

    size = np.log(np.mean(np.abs(y - mu)))
    best = optimize.minimize_scalar(score, bounds=(size - 3, size + 3), options={"xatol": 1e-9}).fun
    return float(1 - scoringrules.crps_normal(y, mu, s).mean() / best)


def bracher(y: Array, mu: Array, s: Array) -> float:
    """Weighted interval score of one interval and the median."""
    low, median, high = quantiles_of(mu, s)
    score = scoringrules.interval_score(y, low, high, 0.1)
    return float(np.mean((np.abs(y - median) / 2 + 0.05 * score) / 1.5))


def regression_rows() -> list[tuple[str, str, float]]:
    """(key, peer, largest difference) for every metric."""
    worst: dict[tuple[str, str], float] = {}
    for y, mu, s in datasets().values():
        scores, first = _scores(y, mu, s), _scores(y[:60], mu[:60], s[:60])
        for key in plugins.metrics("regression"):
            if key not in scores:
                continue
            found = [(peer, f(y, mu, s), scores[key]) for peer, f in PEERS.get(key, {}).items()]
            if key in QUADRATURE:
                found.append(("scipy quadrature", QUADRATURE[key](y, mu, s), first[key]))
            if key in LITERAL:
                found.append(("literal formula", LITERAL[key](y, mu, s), scores[key]))
            for peer, theirs, ours in found:
                worst[key, peer] = max(worst.get((key, peer), 0.0), difference(ours, float(theirs)))
    return [(key, peer, value) for (key, peer), value in worst.items()]


def classification_rows() -> list[tuple[str, str, float]]:
    """The same for class probabilities, of four classes and of two."""
    labels, probs = classes()
    two = np.stack([probs[:, 1:].sum(axis=1), probs[:, 0]], axis=1)
    worst: dict[tuple[str, str], float] = {}
    for y, p, peers in ((labels, probs, CLASS_PEERS), ((labels == 0).astype(int), two, EVENT_PEERS)):
        for key, score in uq.evaluate(y, probs=p).scores.items():
            found = {peer: f(y, p) for peer, f in peers.get(key, {}).items()}
            if key in LITERAL_CLASSIFICATION:
                found["literal formula"] = LITERAL_CLASSIFICATION[key](y.tolist(), p.tolist())
            for peer, theirs in found.items():
                worst[key, peer] = max(worst.get((key, peer), 0.0), difference(score, float(theirs)))
    return [(key, peer, value) for (key, peer), value in worst.items()]


HEAD = f"""{AGREEMENT}
Written by `docs/generate.py agreement`. The tables give the largest relative difference between our number and each
peer's over five datasets of 600 samples (calibrated, overconfident, heavy-tailed, biased, bounded), or the absolute
difference if both numbers are below 0.001; 1e-14 means 1e-14 or less. *Literal formula* is the slow transcription of the
definition in `tests/oracles`; *quadrature* integrates the squared density numerically on 60 samples.

The quantile proportions of uncertainty-toolbox count (mu - y)/s below the quantile, so overprediction reads as
underprediction. We do not copy this defect; its numbers are compared with y and mu swapped. torchmetrics sums its bins in
float32.

"""


def agreement() -> str:
    """Return the page of conventions with this section as it is today."""
    peers = ["scipy", "scikit-learn", "scoringrules", "properscoring", "uncertainty-toolbox", "torchmetrics"]
    versions = ", ".join(f"{peer} {version(peer)}" for peer in peers)
    lines = [HEAD + f"Versions: {versions}.\n", "| metric | peer | largest difference |\n|---|---|---|"]
    lines += [f"| `{key}` | {peer} | {max(value, ROUNDING):.0e} |" for key, peer, value in regression_rows()]
    lines += ["\n### Agreement on classification\n", "| metric | peer | largest difference |\n|---|---|---|"]
    lines += [
        f"| `{key}` | {peer} | {max(value, ROUNDING):.0e} |" for key, peer, value in classification_rows()
    ]
    before = PAGE.read_text(encoding="utf-8").partition(AGREEMENT)[0]
    return before + "\n".join(lines) + "\n"
