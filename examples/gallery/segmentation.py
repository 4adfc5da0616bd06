"""Segment terrain into landforms
==============================

Does an ensemble improve the uncertainty of a segmentation?

The data is the elevation model around Jacksboro, Tennessee, that ships with matplotlib. Cells are labeled valley,
slope or ridge by comparing their height with the mean height around them. The classifiers only see heights
interpolated from 5 % of the cells. They are trained in the west, calibrated on a strip in the middle, and scored in
the east. Cells at the border, whose surroundings are unknown, have the ignore label 255::

    pip install "uq-tracking[demo]" ./examples/papers
    python examples/gallery/segmentation.py [--to mlflow:segmentation]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import uq_tracking as uq
from uq_tracking.demo.terrain import load_terrain
from uq_tracking_papers import landforms

TRAINING, CALIBRATION, TEST = slice(0, 180), slice(180, 230), slice(230, 403)


def train(x: np.ndarray, labels: np.ndarray, seed: int) -> MLPClassifier:
    """One member of the ensemble, with its own initial weights and its own sample of training cells."""
    rng = np.random.default_rng(seed)
    places = rng.choice(np.flatnonzero(labels != landforms.IGNORED), 1500)
    member = MLPClassifier((48, 48), alpha=1e-5, max_iter=400, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # slight overfitting is intended
        return member.fit(x.reshape(-1, x.shape[-1])[places], labels.reshape(-1)[places])


def predict(members: list[MLPClassifier], x: np.ndarray) -> np.ndarray:
    """Probabilities of every member, shape (members, height, width, classes)."""
    flat = x.reshape(-1, x.shape[-1])
    made = [member.predict_proba(flat).astype(np.float32) for member in members]
    return np.stack(made).reshape(len(members), *x.shape[:2], -1)


def run(n_members: int = 6, to: str | None = None) -> dict[str, uq.Report]:
    """Reports of a single network and of the ensemble, each with its scores after temperature scaling."""
    terrain = load_terrain(seed=0)
    labels = landforms.labels(terrain.elevation)
    heights = landforms.interpolated(terrain)
    x = landforms.features(heights, terrain.measured)
    members = [train(x[:, TRAINING], labels[:, TRAINING], seed) for seed in range(n_members)]
    test, calibration = (predict(members, x[:, part]) for part in (TEST, CALIBRATION))
    reports = {}
    for name, used in (("single network", members[:1]), (f"ensemble of {n_members}", members)):
        count = len(used)
        options = {
            "members_axis": 0,
            "ignore_label": landforms.IGNORED,
            "classes": landforms.NAMES,
            "calibration": (labels[:, CALIBRATION], calibration[:count]),
        }
        truth, probs = labels[:, TEST], test[:count]
        if to is None:
            reports[name] = uq.evaluate(truth, probs=probs, **options)
        else:
            reports[name] = uq.log(
                truth, probs=probs, **options, run=to, method=name, images=heights[:, TEST]
            )
    return reports


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Does an ensemble improve the uncertainty of a segmentation?"
    )
    parser.add_argument("--to", help="where to log, such as mlflow:segmentation or dir:runs")
    keys = ("accuracy", "miou", "nll", "brier", "ece", "ause_brier", "aurc")
    print(f"{'':34}" + "".join(f"{key:>11}" for key in keys))
    for name, report in run(to=parser.parse_args().to).items():
        after = report.recalibration["methods"]["temperature"]
        label = f"{name}, T = {after['scalars']['temperature']:.2f}"
        for row, scores in ((name, report.scores), (label, after["scores"])):
            print(f"{row:34}" + "".join(f"{scores[key]:11.4f}" for key in keys))


if __name__ == "__main__":
    main()
