"""MeRCI's section 6: metrics on the cubic with biased outliers."""

from __future__ import annotations

import numpy as np

from uq_tracking.datasets.merci import cubic, cubic_with_outliers
from uq_tracking.figures.style import line, new_figure, style_axes
from uq_tracking.reproduction.study import Study
from uq_tracking.reproduction.toy import Ensembles
from uq_tracking.verbs import evaluate

SWEPT = ("quadratic_score", "nll", "spherical_score", "crps", "coverage_95", "merci")
SIGMAS = np.geomspace(1, 100, 41)


def reproduce(study: Study) -> None:
    """Figure 2."""
    figure_2(study)


def figure_2(study: Study) -> None:
    """Every score of a constant uncertainty, from much too small to much too large."""
    study.item(
        "figure 2",
        "Scores of a constant uncertainty against its value",
        "One network's predictions, and one standard deviation for all of them.",
    )
    test = cubic(study.pick(10_000, 2000), study.rng("test"))
    predicted = Ensembles.trained(study, cubic_with_outliers(20, study.rng("training")), test.x).base
    scores = [
        evaluate(test.y, predicted, np.full(len(test.y), sigma), metrics=SWEPT).scores
        for sigma in SIGMAS.tolist()
    ]
    columns = {key: np.asarray([row[key] for row in scores]) for key in SWEPT}
    for key, values in columns.items():
        for sigma, value in ((1, values[0]), (10, values[20]), (100, values[-1])):
            study.row("figure 2", key, f"sigma = {sigma}", value)
    figure = new_figure((9.0, 5.0))
    for ax, (key, values) in zip(figure.subplots(2, 3).flat, columns.items(), strict=True):
        style_axes(ax, "Standard deviation", key)
        ax.set_xscale("log")
        line(ax, SIGMAS, values)
    study.figure("figure 2", figure, "Every metric but MeRCI changes with the scale of the uncertainty.")
    merci = columns["merci"]
    spread = float(np.ptp(merci) / merci.mean())
    moved = {key: float(np.ptp(values)) for key, values in columns.items() if key != "merci"}
    study.finding(
        "MeRCI is constant under scaling, while every other score moves",
        spread < 1e-12 and all(change > 0.05 for change in moved.values()),
        f"relative range of MeRCI {spread:.1e}; ranges of the others "
        + ", ".join(f"{key} {change:.3g}" for key, change in moved.items()),
    )
