"""Xiong et al. (2024): four metrics on four kinds of uncertainty, and on test sets of growing size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

import uq_tracking as uq
from uq_tracking.inputs import Predictions
from uq_tracking_papers import xiong_figures, xiong_stability
from uq_tracking_papers.datasets import Conditional
from uq_tracking_papers.datasets.xiong import DATASETS
from uq_tracking_papers.study import Study
from uq_tracking_papers.xiong_models import (
    ENERGY,
    ENSEMBLE,
    MIXTURE,
    MODE,
    TEST_SIZES,
    TRUTH,
    Models,
    ensemble_drawer,
)

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
    "have three hidden layers of 128 and 64 units (the paper: five and nine of 256)."
)
TRUE_SETS, TRUE_SIZE = 100, 1000

ADVICE = """Calibration error: bounded, so a value means something on its own, and the steadiest on small test sets;
but it needs a predicted distribution, and does not say how wrong predictions can be.

AUSE: says how well the uncertainty finds the large errors, whatever its scale; but it has no bound, its value depends
on the errors, and the true distribution need not have the lowest.

NLL: sees calibration and sharpness at once and is lowest, in expectation, at the truth; but it needs the most
samples, and its value means nothing without a model to compare with.

Spearman's correlation: advised against; AUSE takes its place.

Where the uncertainty is to warn of large errors, AUSE is the better guide; where the distribution itself is used,
calibration error and NLL are."""


def reproduce(study: Study) -> None:
    """Tables I to IV, figures 2 to 5 and the paper's advice."""
    models = {name: Models.trained(study, data) for name, data in DATASETS.items()}
    xiong_figures.densities(study, models)
    found = {name: table(study, f"table {number}", models[name]) for number, name in enumerate(DATASETS, 1)}
    _truth_findings(study, found)
    multimodal_findings(study, found["multimodal"])
    _epistemic_findings(study, found["epistemic"])
    _homoscedastic_finding(study, found["homoscedastic"])
    xiong_stability.reproduce(study, ensemble_drawer(models["heteroscedastic"]))
    xiong_figures.sparsifications(study, {name: scores[ENSEMBLE] for name, scores in found.items()})
    study.item("advice", "What the paper advises", ADVICE)


Scores = Mapping[str, npt.NDArray[np.generic]]
"""Scores by key, and the columns of the sparsification curve."""


def table(study: Study, item: str, models: Models) -> dict[str, Scores]:
    """One of tables I to IV; the true distribution's range is over test sets of a thousand samples."""
    name = models.data.name
    sets = f"Brackets: 5 % and 95 % quantiles over {TRUE_SETS} test sets of {TRUE_SIZE:,} samples."
    study.item(
        item,
        f"{name} data",
        f"{SETUP}\n\n{sets}" if item == "table 1" else sets,
        better=dict.fromkeys(QUANTITIES, "lower"),
        bounds=(TRUTH, MODE),
    )
    ranges = study.cached(f"true-sets-{name}", lambda: _true_sets(study, models))
    found = {}
    for method, predictions in models.predictions().items():
        found[method] = _scored(study, name, method, predictions)
        printed = PRINTED[name].get(method, (None, None, None))
        for (quantity, key), theirs in zip(QUANTITIES.items(), printed, strict=True):
            low, high = ranges[key].tolist() if method == TRUTH else (None, None)
            study.row(item, method, quantity, float(found[method][key]), theirs, low, high)
    return found


def _scored(study: Study, data: str, method: str, predictions: Predictions) -> Scores:
    """Log the predictions, and keep their scores."""

    def log() -> dict[str, npt.ArrayLike]:
        name = f"{data}, {method}"
        report = study.log(predictions, method=name, figures=study.size != "test", predictions=False)
        curve = report.curves["sparsification_mae"].columns
        return {**{key: report.scores[key] for key in QUANTITIES.values()}, **curve}

    return study.cached("-".join(f"scores {data} {method}".replace(",", "").replace(".", "").split()), log)


def _true_sets(study: Study, models: Models) -> dict[str, npt.ArrayLike]:
    """Quantiles of the true distribution's scores over test sets."""
    rng = study.rng("true sets", models.data.name)
    found = []
    for _ in range(study.pick(TRUE_SETS, TRUE_SETS, 20)):
        truth = models.data(TRUE_SIZE, rng, quantile_scores=False).truth
        found.append(uq.evaluate(truth, metrics=QUANTITIES.values()).scores)
    keys = QUANTITIES.values()
    return {key: np.quantile([scores[key] for scores in found], [0.05, 0.95]) for key in keys}


def _truth_findings(study: Study, found: Mapping[str, Mapping[str, Scores]]) -> None:
    """The true distributions' scores, against their expectations and against the printed values."""
    moments = {name: nll_moments(data) for name, data in DATASETS.items()}
    expected = {name: mean for name, (mean, _) in moments.items()}
    spread = {name: std for name, (_, std) in moments.items()}
    gaps = {name: float(found[name][TRUTH]["nll"]) - expected[name] for name in DATASETS}
    worst = max(float(found[name][TRUTH]["calibration_error"]) for name in DATASETS)
    n = study.pick(*TEST_SIZES)
    study.finding(
        "The true distribution reaches the NLL that is expected of it, and a calibration error near 0",
        all(abs(gaps[name]) < 4 * spread[name] / n**0.5 for name in DATASETS) and worst < 1 / n,
        f"NLL minus its expectation, by quadrature, at {n:,} samples: "
        + ", ".join(f"{name} {gap:+.4f}" for name, gap in gaps.items())
        + f"; calibration errors up to {worst:.5f}, {1 / (6 * n):.5f} expected",
    )
    printed = {name: PRINTED[name][TRUTH][2] for name in DATASETS}
    apart = {name: (printed[name] - expected[name]) / (spread[name] / TRUE_SIZE**0.5) for name in DATASETS}
    study.finding(
        f"The NLL printed for the true distributions is that of test sets of {TRUE_SIZE:,} samples or more",
        all(abs(errors) < 3 for errors in apart.values()),
        ", ".join(
            f"{name}: printed {printed[name]:.4f}, expected {expected[name]:.4f} ({apart[name]:+.1f} standard errors)"
            for name in DATASETS
        ),
    )


def _chosen(found: Mapping[str, Scores], methods: Sequence[str]) -> list[dict[str, float]]:
    """The scores of those of the given methods that the tables hold."""
    return [{key: float(found[one][key]) for key in QUANTITIES.values()} for one in methods]


def multimodal_findings(study: Study, found: Mapping[str, Scores]) -> None:
    """What table III shows."""
    ensemble, mixture, energy, truth, mode = _chosen(found, (ENSEMBLE, MIXTURE, ENERGY, TRUTH, MODE))
    study.finding(
        "On multimodal data a Gaussian ensemble fails in NLL and calibration error, but not in AUSE",
        ensemble["nll"] > truth["nll"] + 1
        and ensemble["calibration_error"] > 0.01
        and truth["calibration_error"] < 0.001
        and ensemble["ause_mae"] < 0.05,
        f"NLL {ensemble['nll']:.3f} against {truth['nll']:.3f} of the truth, calibration error "
        f"{ensemble['calibration_error']:.4f} against {truth['calibration_error']:.5f}, "
        f"AUSE {ensemble['ause_mae']:.4f}",
    )
    lost = ensemble["nll"] - truth["nll"]
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


def _epistemic_findings(study: Study, found: Mapping[str, Scores]) -> None:
    """What table IV shows."""
    truth = _chosen(found, (TRUTH,))[0]
    models = dict(zip((ENSEMBLE, ENERGY), _chosen(found, (ENSEMBLE, ENERGY)), strict=True))
    gap = {name: one["nll"] - truth["nll"] for name, one in models.items()}
    wrong = {name: one["calibration_error"] for name, one in models.items()}
    study.finding(
        "In a gap of the training data both models fail in NLL and calibration error",
        min(gap.values()) > 1 and min(wrong.values()) > 10 * truth["calibration_error"],
        ", ".join(f"{m}: NLL {gap[m]:.1f} above the truth's, calibration error {wrong[m]:.4f}" for m in gap),
    )
    ause = {name: one["ause_mae"] for name, one in models.items()}
    study.finding(
        "There AUSE differs more between the two models than NLL and calibration error do",
        _ratio(ause) > max(_ratio(gap), _ratio(wrong)),
        f"larger over smaller: AUSE {_ratio(ause):.1f}, NLL above the truth's {_ratio(gap):.1f}, calibration error "
        f"{_ratio(wrong):.1f}",
    )


def _homoscedastic_finding(study: Study, found: Mapping[str, Scores]) -> None:
    constant = {name: float(found[name]["ause_mae"]) for name in (ENSEMBLE, ENERGY, TRUTH)}
    study.finding(
        "With noise of one size the true distribution does not have the lowest AUSE",
        constant[TRUTH] > min(constant.values()),
        ", ".join(f"{name} {value:.4f}" for name, value in constant.items())
        + "; a constant standard deviation has 0.5700 in expectation, ties being in random order",
    )


def _ratio(values: Mapping[str, float]) -> float:
    return max(values.values()) / min(values.values())


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
