"""The four uncertainties that MeRCI and n-MeRCI compare on their toy, over many repeats.

A repeat draws a training set and trains every method on it; the test set is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from uq_tracking.curves.regression import merci_by_alpha, n_merci_by_alpha
from uq_tracking.npz import Arrays
from uq_tracking.report import Report
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.verbs import evaluate
from uq_tracking_papers.committee import Array, Committee, Training
from uq_tracking_papers.datasets.merci import cubic, cubic_with_outliers
from uq_tracking_papers.datasets.sample import Sample
from uq_tracking_papers.study import Study

FloatArray = npt.NDArray[np.float64]

METHODS = ("Multi Inits", "Bagging", "Monte Carlo Dropout", "Multi Epochs")
SCORES = ("quadratic_score", "log_score", "spherical_score", "crps", "merci", "n_merci", "mae")
ALPHAS = np.arange(1, 101) / 100
MEMBERS = 20
HALF_WIDTH = 4.0
"""Inputs are divided by half the width of their range before they reach a network."""
TESTED = 1000
SHARED = "toy"
"""Name of the work that both papers use."""
AT_ONCE = 10
"""Repeats stored together."""
DENSITY_FLOOR = 1e-3
"""Added to the density inside the log. The papers' log scores never fall below -6.9 = log 0.001, even where the
quadratic score implies a density of almost zero."""
STD_FLOOR = 1e-3


@dataclass(frozen=True, eq=False)
class Ensembles:
    """Outputs (members, n) of each method, and the predictions (n,) of the one network shared by all."""

    base: FloatArray
    outputs: Mapping[str, FloatArray]

    @classmethod
    def trained(
        cls,
        data: Sample,
        at: FloatArray,
        rng: np.random.Generator,
        members: int = MEMBERS,
        training: Training | None = None,
    ) -> Ensembles:
        """Train every method on a toy set, and predict at inputs (n,).

        The shared predictions are those, without dropout, of the network whose last epochs and dropout passes make
        two of the uncertainties.
        """
        training = training or Training()
        x, y = (data.x / HALF_WIDTH).astype(np.float32), data.y.astype(np.float32)
        where = (at / HALF_WIDTH).astype(np.float32)
        drawn = rng.integers(0, len(x), (members, len(x)))
        snapshots: list[Array] = []
        one = Committee(1, training, rng)

        def keep(epoch: int) -> None:
            if epoch > training.epochs - members:
                snapshots.append(one.predict(where)[0])

        one.fit(x[None], y[None], keep)
        same = np.tile(x, (members, 1)), np.tile(y, (members, 1))
        found = {
            "Multi Inits": Committee(members, training, rng).fit(*same).predict(where),
            "Bagging": Committee(members, training, rng).fit(x[drawn], y[drawn]).predict(where),
            "Monte Carlo Dropout": one.sample(where, members)[:, 0],
            "Multi Epochs": np.stack(snapshots),
        }
        outputs = {name: values.astype(np.float64) for name, values in found.items()}
        return cls(one.predict(where)[0].astype(np.float64), outputs)

    def std(self, method: str) -> FloatArray:
        """Standard deviation over the members (n,)."""
        return np.asarray(np.maximum(self.outputs[method].std(0), STD_FLOOR))


def test_set(study: Study) -> Sample:
    """The test set for every repeat."""
    return cubic(TESTED, np.random.default_rng([study.seed, 0]))


def ensembles(study: Study, repeat: int, at: FloatArray) -> tuple[Sample, Ensembles]:
    """The training set of a repeat, and the ensembles trained on it."""
    rng = np.random.default_rng([study.seed, 1, repeat])
    data = cubic_with_outliers(20, rng)
    training = Training(epochs=study.pick(600, 600, 300))
    return data, Ensembles.trained(data, at, rng, study.pick(MEMBERS, MEMBERS, 10), training)


def repeats(study: Study) -> Arrays:
    """Every score of every repeat.

    Returns
    -------
    dict of arrays
        ``common`` and ``own`` (repeats, methods, scores), with the shared predictions and with each method's mean;
        ``merci`` (repeats, methods, alphas) and ``constant`` (repeats, alphas) with the shared predictions;
        ``n_merci`` (repeats, methods, alphas) with each method's mean.
    """
    count = study.pick(200, 20, 10)
    parts = [
        study.cached(f"repeats-{start:04d}", partial(_repeats, study, start), of=SHARED)
        for start in study.progress(range(0, count, AT_ONCE), "toy", total=count // AT_ONCE)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _repeats(study: Study, start: int) -> Arrays:
    rows = [_repeat(study, repeat) for repeat in range(start, start + AT_ONCE)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _repeat(study: Study, repeat: int) -> Arrays:
    test = test_set(study)
    _, found = ensembles(study, repeat, test.x)
    own, common, merci, n_merci = [], [], [], []
    constant = np.empty(0)
    for method in METHODS:
        mean, std = found.outputs[method].mean(0), found.std(method)
        shared = scored(test.y, found.base, std)
        by_alpha = merci_by_alpha(_statistics(shared), Settings(), ALPHAS)
        merci.append(by_alpha["merci"])
        constant = by_alpha["constant"]
        report = scored(test.y, mean, std)
        curve = n_merci_by_alpha(_statistics(report), Settings(), ALPHAS)
        line = np.full(len(ALPHAS), np.nan)
        line[np.rint(100 * curve["alpha"]).astype(int) - 1] = curve["n_merci"]
        n_merci.append(line)
        common.append(numbers(shared, test.y, found.base, std))
        own.append(numbers(report, test.y, mean, std))
    arrays = {"common": common, "own": own, "merci": merci, "n_merci": n_merci, "constant": constant}
    return {name: np.asarray(values) for name, values in arrays.items()}


def scored(y: FloatArray, mean: FloatArray, std: FloatArray) -> Report:
    """The report with the scores shown in the tables."""
    return evaluate(y, mean, std, metrics=[key for key in SCORES if key != "log_score"])


def numbers(report: Report, y: FloatArray, mean: FloatArray, std: FloatArray) -> list[float]:
    """The scores of the tables, NaN where undefined."""
    scores = {**report.scores, "log_score": floored_log_score((y - mean) / std, std)}
    return [scores.get(key, np.nan) for key in SCORES]


def floored_log_score(z: FloatArray, std: FloatArray) -> float:
    """Mean log of a Gaussian density plus `DENSITY_FLOOR`."""
    density = np.exp(-0.5 * z**2) / (std * np.sqrt(2 * np.pi))
    return float(np.mean(np.log(density + DENSITY_FLOOR)))


def _statistics(report: Report) -> Statistics:
    if report.statistics is None:
        raise TypeError("a report of arrays has statistics")
    return report.statistics
