"""Xiong et al. (2024): four metrics on four kinds of uncertainty, and on test sets of growing size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import uq_tracking as uq
from uq_tracking.datasets.xiong import DATASETS
from uq_tracking.inputs import Predictions
from uq_tracking.report import Report
from uq_tracking.reproduction import xiong_figures, xiong_stability
from uq_tracking.reproduction.study import Study
from uq_tracking.reproduction.xiong_models import (
    ENERGY,
    ENSEMBLE,
    MIXTURE,
    MODE,
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
    "Deep ensemble of five Gaussian networks, once as the normal distribution of its moments (as in the paper) and once "
    "as the mixture that it is; energy-based regression, whose normaliser is summed over a grid of y. The paper states "
    "neither the size of its training and test sets nor how the true distribution predicts. Networks here have three "
    "hidden layers (the paper: five and nine of 256 units)."
)
TRUE_SETS, TRUE_SIZE = 100, 1000


def reproduce(study: Study) -> None:
    """Tables I to IV, figures 2 to 5 and the paper's advice."""
    models = {name: Models.trained(study, data) for name, data in DATASETS.items()}
    xiong_figures.densities(study, models)
    reports = {name: _table(study, f"table {number}", models[name]) for number, name in enumerate(DATASETS, 1)}
    _findings(study, reports)
    xiong_stability.reproduce(study, models["heteroscedastic"])
    xiong_figures.sparsifications(study, {name: found[ENSEMBLE] for name, found in reports.items()})
    _advice(study)


def _table(study: Study, item: str, models: Models) -> dict[str, Report]:
    """One of tables I to IV; the true distribution's range is that of test sets of a thousand."""
    name = models.data.name
    study.item(
        item,
        f"{name} data",
        f"{SETUP if item == 'table 1' else ''}\n\nBrackets: {TRUE_SETS} test sets of {TRUE_SIZE:,} samples.",
        better=dict.fromkeys(QUANTITIES, "lower"),
        bounds=(TRUTH, MODE),
    )
    sets = _true_sets(study, models)
    reports = {}
    for method, predictions in models.predictions().items():
        reports[method] = _logged(study, f"{name}, {method}", predictions)
        printed = PRINTED[name].get(method, (None, None, None))
        for (quantity, key), theirs in zip(QUANTITIES.items(), printed, strict=True):
            low, high = sets[key] if method == TRUTH else (None, None)
            study.row(item, method, quantity, reports[method].scores[key], theirs, low, high)
    return reports


def _logged(study: Study, method: str, predictions: Predictions) -> Report:
    """A report of the predictions; the run is logged once."""
    study.once(method, lambda: study.log(predictions, method=method))
    report = uq.evaluate(predictions)
    assert isinstance(report, Report)
    return report


def _true_sets(study: Study, models: Models) -> dict[str, tuple[float, float]]:
    """5 % and 95 % quantiles of the true distribution's scores over test sets of a thousand samples."""
    rng = study.rng("true sets", models.data.name)
    found = []
    for _ in range(study.pick(TRUE_SETS, TRUE_SETS, 20)):
        sample = models.data(TRUE_SIZE, rng)
        truth = true_predictions(models.data, sample.x, sample.y)
        found.append(uq.evaluate(truth, metrics=QUANTITIES.values()).scores)
    return {
        key: tuple(np.quantile([scores[key] for scores in found], [0.05, 0.95]).tolist())
        for key in QUANTITIES.values()
    }
