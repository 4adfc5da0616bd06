"""Xiong et al. (2024): four metrics on four kinds of uncertainty, and on test sets of growing size."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

import uq_tracking as uq
from uq_tracking.datasets import Conditional
from uq_tracking.datasets.xiong import DATASETS
from uq_tracking.inputs import Predictions
from uq_tracking.reproduction import xiong_figures, xiong_stability
from uq_tracking.reproduction.study import Study
from uq_tracking.reproduction.xiong_models import (
    ENERGY,
    ENSEMBLE,
    MIXTURE,
    MODE,
    TEST_SIZES,
    TRUTH,
    Models,
    true_predictions,
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
    "once as the mixture that it is; energy-based regression, whose normaliser is summed over a grid of y. The paper "
    "states neither the size of its training and test sets nor how the true distribution predicts. Networks here have "
    "three hidden layers of 128 and 64 units (the paper: five and nine of 256)."
)
TRUE_SETS, TRUE_SIZE = 100, 1000
NLL_SPREAD = 0.5**0.5
"""Standard deviation of one sample's NLL under a normal distribution that is true: that of z^2/2."""

ADVICE = """Calibration error: bounded, so a value means something on its own, and the steadiest on small test sets; but
it needs a predicted distribution, and does not say how wrong predictions can be.

AUSE: says how well the uncertainty finds the large errors, whatever its scale; but it has no bound, its value depends
on the errors, and the true distribution need not have the lowest.

NLL: sees calibration and sharpness at once and is lowest, in expectation, at the truth; but it needs the most samples,
and its value means nothing without a model to compare with.

Spearman's correlation: advised against; AUSE takes its place.

Where the uncertainty is to warn of large errors, AUSE is the better guide; where the distribution itself is used,
calibration error and NLL are."""


def reproduce(study: Study) -> None:
    """Tables I to IV, figures 2 to 5 and the paper's advice."""
    models = {name: Models.trained(study, data) for name, data in DATASETS.items()}
    xiong_figures.densities(study, models)
    found = {name: _table(study, f"table {number}", models[name]) for number, name in enumerate(DATASETS, 1)}
    _findings(study, found)
    xiong_stability.reproduce(study, models["heteroscedastic"])
    xiong_figures.sparsifications(study, {name: scores[ENSEMBLE] for name, scores in found.items()})
    _advice(study)


Scores = Mapping[str, npt.NDArray[np.generic]]
"""Scores by key, and the columns of the sparsification curve."""


def _table(study: Study, item: str, models: Models) -> dict[str, Scores]:
    """One of tables I to IV; the true distribution's range is that of test sets of a thousand."""
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
        sample = models.data(TRUE_SIZE, rng)
        truth = true_predictions(models.data, sample.x, sample.y)
        found.append(uq.evaluate(truth, metrics=QUANTITIES.values()).scores)
    keys = QUANTITIES.values()
    return {key: np.quantile([scores[key] for scores in found], [0.05, 0.95]) for key in keys}


def _findings(study: Study, found: Mapping[str, Mapping[str, Scores]]) -> None:
    def score(data: str, method: str, key: str) -> float:
        return float(found[data][method][key])

    true_nll = {name: expected_nll(data) for name, data in DATASETS.items()}
    gaps = {name: score(name, TRUTH, "nll") - true_nll[name] for name in DATASETS}
    errors = {name: score(name, TRUTH, "calibration_error") for name in DATASETS}
    n = study.pick(*TEST_SIZES)
    study.finding(
        "The true distribution has the lowest NLL that can be expected and a calibration error near 0",
        all(abs(gap) < 4 * NLL_SPREAD / n**0.5 for gap in gaps.values()) and max(errors.values()) < 1 / n,
        f"NLL minus its expectation, by quadrature, at {n:,} samples: "
        + ", ".join(f"{name} {gap:+.4f}" for name, gap in gaps.items())
        + f"; calibration errors up to {max(errors.values()):.5f}, {1 / (6 * n):.5f} expected",
    )
    printed = {name: PRINTED[name][TRUTH][2] for name in DATASETS}
    apart = {name: (printed[name] - true_nll[name]) / (NLL_SPREAD / TRUE_SIZE**0.5) for name in DATASETS}
    study.finding(
        f"The paper's NLL of the true distribution is that of a test set of {TRUE_SIZE:,} samples or more",
        all(abs(errors) < 3 for errors in apart.values()),
        ", ".join(
            f"{name}: printed {printed[name]:.4f}, expected {true_nll[name]:.4f} ({apart[name]:+.1f} standard errors)"
            for name in DATASETS
        ),
    )
    ensemble, truth, energy = (
        {key: score("multimodal", one, key) for key in QUANTITIES.values()}
        for one in (ENSEMBLE, TRUTH, ENERGY)
    )
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
    mixture = score("multimodal", MIXTURE, "nll")
    study.finding(
        "Scoring that ensemble as a mixture does not help: each member is as unimodal as the next",
        abs(mixture - ensemble["nll"]) < 0.1 * (ensemble["nll"] - truth["nll"]),
        f"NLL {mixture:.3f} as a mixture, {ensemble['nll']:.3f} as a normal distribution",
    )
    share = (ensemble["nll"] - energy["nll"]) / (ensemble["nll"] - truth["nll"])
    study.finding(
        "Energy-based regression learns both modes: NLL and calibration error near the truth's, AUSE far above the "
        "ensemble's",
        share > 0.8
        and energy["calibration_error"] < 0.5 * ensemble["calibration_error"]
        and energy["ause_mae"] > 10 * ensemble["ause_mae"],
        f"NLL {energy['nll']:.3f}: {share:.0%} of the way from the ensemble to the truth; calibration error "
        f"{energy['calibration_error']:.4f}; AUSE {energy['ause_mae']:.3f} with a mode as the prediction, where the "
        f"true distribution has {score('multimodal', MODE, 'ause_mae'):.3f}",
    )
    gap = {method: score("epistemic", method, "nll") - true_nll["epistemic"] for method in (ENSEMBLE, ENERGY)}
    wrong = {method: score("epistemic", method, "calibration_error") for method in gap}
    study.finding(
        "In a gap of the training data both models fail in NLL and calibration error",
        min(gap.values()) > 1 and min(wrong.values()) > 10 * score("epistemic", TRUTH, "calibration_error"),
        ", ".join(f"{m}: NLL {gap[m]:.1f} above the truth's, calibration error {wrong[m]:.4f}" for m in gap),
    )
    ause = {method: score("epistemic", method, "ause_mae") for method in (ENSEMBLE, ENERGY)}
    study.finding(
        "There AUSE differs more between the two models than NLL and calibration error do",
        _ratio(ause) > max(_ratio(gap), _ratio(wrong)),
        f"larger over smaller: AUSE {_ratio(ause):.1f}, NLL above the truth's {_ratio(gap):.1f}, calibration error "
        f"{_ratio(wrong):.1f}",
    )
    constant = {name: score("homoscedastic", name, "ause_mae") for name in (ENSEMBLE, ENERGY, TRUTH)}
    study.finding(
        "With noise of one size the true distribution does not have the lowest AUSE",
        constant[TRUTH] > min(constant.values()),
        ", ".join(f"{name} {value:.4f}" for name, value in constant.items())
        + "; a constant standard deviation has 0.5700 in expectation, ties being in random order",
    )


def _ratio(values: Mapping[str, float]) -> float:
    return max(values.values()) / min(values.values())


def expected_nll(data: Conditional, points: int = 2001) -> float:
    """Expected negative log-likelihood of the true distribution: its entropy, by quadrature over inputs and noise."""
    x = data.domain[0] + (np.arange(points) + 0.5) / points * (data.domain[1] - data.domain[0])
    means, stds = data.components(x)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    total = 0.0
    for mean, std in zip(means, stds, strict=True):
        y = mean + std * nodes[:, None]
        z = (y - means[:, None]) / stds[:, None]
        logs = logsumexp(-0.5 * z**2 - np.log(stds[:, None]), axis=0) - np.log(
            len(means) * np.sqrt(2 * np.pi)
        )
        total -= float((weights @ logs).mean() / weights.sum() / len(means))
    return total


def _advice(study: Study) -> None:
    study.item("advice", "What the paper advises", ADVICE)
