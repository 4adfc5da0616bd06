"""MeRCI's section 6: metrics on the cubic with biased outliers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from uq_tracking.figures.style import ORACLE, RANDOM, REFERENCE, legend, line
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets.merci import BIAS, OUTLIERS, TEST_RANGE
from uq_tracking_papers.drawing import LOOKS, lines, panel, panels
from uq_tracking_papers.results import Better
from uq_tracking_papers.study import Study
from uq_tracking_papers.toy import (
    ALPHAS,
    METHODS,
    SCORES,
    FloatArray,
    ensembles,
    repeats,
    test_set,
)

SHOWN: Mapping[str, Better] = {
    "quadratic_score": "higher",
    "log_score": "higher",
    "spherical_score": "higher",
    "crps": "lower",
    "merci": "lower",
}
TABLE_1 = {
    "Multi Inits": (-0.65, -6.0, 0.07, 19.0, 64),
    "Bagging": (-0.02, -4.8, 0.13, 16.8, 53),
    "Monte Carlo Dropout": (-0.03, -4.9, 0.11, 17.1, 60),
    "Multi Epochs": (-28, -6.9, 0.0, 19.3, 81),
}
"""The scores of ``SHOWN`` as printed in the paper."""
ORACLE_MERCI, CONSTANT_MERCI = 19, 81
SWEPT = ("quadratic_score", "nll", "spherical_score", "crps", "coverage_95", "merci")
SIGMA = 10.0
"""Constant standard deviation, which the sweep multiplies by .1 ... 10."""

SET_UP = (
    f"The papers do not state the outliers' bias, the range of the test set, or how the networks are trained. Here "
    f"the bias is {BIAS:g}, x of the test set is uniform in [{TEST_RANGE[0]:g}, {TEST_RANGE[1]:g}], and one hidden "
    f"layer of 100 rectified linear units with dropout .2 is trained for 600 full-batch steps of Adam (rate .01)."
)


def reproduce(study: Study) -> None:
    """Figures 1 to 3 and table 1."""
    figure_1(study)
    figure_2(study)
    found = repeats(study)
    figure_3(study, found["merci"], found["constant"], found["common"])
    table_1(study, found["common"], found["constant"])


def figure_1(study: Study) -> None:
    """The toy, and each method's mean and standard deviation."""
    study.item("figure 1", "The toy data set and what the methods predict", SET_UP)
    at = np.linspace(*TEST_RANGE, 300)
    data, found = ensembles(study, 0, at)
    figure, axes = panels(2, 2, width=4.0)
    for ax, method, (color, _) in zip(axes, METHODS, LOOKS, strict=False):
        panel(ax, method, "x", "y")
        mean, std = found.outputs[method].mean(0), found.std(method)
        ax.axvspan(*OUTLIERS, color="#EEEEEE", linewidth=0)
        ax.fill_between(at, mean - 2 * std, mean + 2 * std, color=color, alpha=0.25, linewidth=0)
        line(ax, at, at**3, color=REFERENCE, linewidth=1.0, linestyle=":")
        line(ax, at, mean, color=color)
        line(ax, data.x, data.y, color=REFERENCE, linestyle="", marker="o", markersize=3.5)
        ax.set_ylim(-220, 220)
    study.figure(
        "figure 1",
        figure,
        "Dots: 20 training samples, those in the grey band biased. Dotted: the cubic. Line and band: mean and two "
        "standard deviations of 20 outputs.",
    )


def figure_2(study: Study) -> None:
    """Every score of a constant uncertainty, from much too small to much too large."""
    study.item(
        "figure 2",
        "Scores of a constant uncertainty against its value",
        "One network's predictions with one standard deviation for all of them, swept by the curve scale_sweep.",
    )
    test = test_set(study)
    predicted = ensembles(study, 0, test.x)[1].base
    sweep = evaluate(test.y, predicted, SIGMA, curves="scale_sweep").curves["scale_sweep"].columns
    sigma = SIGMA * sweep["factor"]
    for key in SWEPT:
        for place in (0, 20, 40):
            study.row("figure 2", key, f"sigma = {sigma[place]:g}", sweep[key][place])
    figure, axes = panels(2, 3)
    for ax, key in zip(axes, SWEPT, strict=True):
        panel(ax, key, "standard deviation", "")
        ax.set_xscale("log")
        line(ax, sigma, sweep[key])
    axes[1].set_yscale("log")
    axes[5].set_ylim(0, 1.5 * sweep["merci"][0])
    study.figure("figure 2", figure, "Every score but MeRCI moves with the scale of the uncertainty.")
    again = [evaluate(test.y, predicted, value).scores["merci"] for value in sigma[[0, 20, 40]].tolist()]
    spread = float(np.ptp(again) / np.mean(again))
    moved = {key: float(np.ptp(sweep[key]) / np.abs(sweep[key]).max()) for key in SWEPT if key != "merci"}
    study.finding(
        "MeRCI is constant under scaling, while every other score moves",
        spread < 1e-12 and all(change > 0.2 for change in moved.values()),
        f"from sigma = 1 to 100 MeRCI changes by {spread:.1e} of its value, the others by, "
        "of their largest, " + ", ".join(f"{change:.0%} ({key})" for key, change in moved.items()),
    )
    crps = sweep["crps"]
    study.finding(
        "Coverage only grows with sigma; CRPS has its best sigma inside the range and worsens beyond it",
        np.all(np.diff(sweep["coverage_95"]) >= 0) and 0 < np.argmin(crps) < len(crps) - 1,
        f"coverage {sweep['coverage_95'][0]:.2f} to {sweep['coverage_95'][-1]:.2f}; CRPS {crps.min():.3g} at sigma "
        f"{sigma[np.argmin(crps)]:.3g}, {crps[-1]:.3g} at 100",
    )


def figure_3(study: Study, merci: FloatArray, constant: FloatArray, common: FloatArray) -> None:
    """MeRCI against the share of errors to cover, median over repeats."""
    count = len(merci)
    study.item(
        "figure 3",
        "MeRCI against the percentile",
        f"Median over {count} repeats, each with its own training set (the paper: 1000 runs). Predictions are those "
        "of one network, the same for all methods.",
    )
    middle = dict(zip(METHODS, np.median(merci, axis=0), strict=True))
    bounds = np.median(constant, axis=0), np.full(len(ALPHAS), np.median(common[:, 0, SCORES.index("mae")]))
    for method, values in middle.items():
        for alpha in (0.5, 0.74, 0.85, 0.92, 0.95):
            study.row("figure 3", method, f"alpha = {alpha:g}", values[round(100 * alpha) - 1])
    figure, (ax,) = panels(1, 1, width=6.0, height=4.2)
    panel(ax, "", "share alpha of errors to cover", "MeRCI")
    line(ax, ALPHAS, bounds[0], color=RANDOM, linestyle=":", label="constant")
    line(ax, ALPHAS, bounds[1], color=ORACLE, linestyle="--", linewidth=1.2, label="oracle")
    lines(ax, ALPHAS, middle, names=False)
    ax.axvline(0.85, color="#B22222", linewidth=1.0)
    ax.set_ylim(0, 3 * bounds[0][94])
    legend(ax, loc="upper left")
    study.figure(
        "figure 3", figure, "Medians over repeats; red: the share of training samples without bias, 85 %."
    )
    wanted = [round(100 * alpha) - 1 for alpha in (0.74, 0.85, 0.92)]
    orders = [tuple(sorted(METHODS, key=lambda name: middle[name][place])) for place in wanted]
    study.finding(
        "Between the 74th and the 92nd percentile MeRCI ranks the methods in one order",
        len(set(orders)) == 1,
        "; ".join(
            f"alpha {ALPHAS[place]:g}: {', '.join(order)}"
            for place, order in zip(wanted, orders, strict=True)
        ),
    )


def table_1(study: Study, common: FloatArray, constant: FloatArray) -> None:
    """Scores with the shared predictions."""
    study.item(
        "table 1",
        "Scores on the toy, with the same predictions for all methods",
        f"Medians over {len(common)} repeats. log_score is the mean of log(density + 0.001): the paper's log scores "
        "end at -6.9 = log 0.001, also for Multi Epochs, whose quadratic score of -28 tells of standard deviations "
        "near 0.01 beside errors of 19, so that the plain log score would be below -100 000. " + SET_UP,
        better=SHOWN,
        bounds=("Oracle", "Constant"),
    )
    merci = SCORES.index("merci")
    study.repeats("table 1", "Oracle", "merci", common[:, 0, SCORES.index("mae")], ORACLE_MERCI)
    study.repeats("table 1", "Constant", "merci", constant[:, 94], CONSTANT_MERCI)
    for place, method in enumerate(METHODS):
        for key, paper in zip(SHOWN, TABLE_1[method], strict=True):
            study.repeats("table 1", method, key, common[:, place, SCORES.index(key)], paper)
    middle = {
        key: dict(zip(METHODS, np.median(common[:, :, SCORES.index(key)], axis=0), strict=True))
        for key in SHOWN
    }
    losses = {
        key: {name: -value if SHOWN[key] == "higher" else value for name, value in values.items()}
        for key, values in middle.items()
    }
    firsts = np.argmin(common[:, :, merci], axis=1)
    ahead = common[:, METHODS.index("Bagging"), merci] < common[:, METHODS.index("Multi Epochs"), merci]
    orders = {key: sorted(METHODS, key=values.__getitem__) for key, values in losses.items()}
    study.finding(
        "Bagging is ahead of Multi Epochs by every score",
        all(values["Bagging"] < values["Multi Epochs"] for values in losses.values()),
        "; ".join(
            f"{key} {values['Bagging']:.3g} and {values['Multi Epochs']:.3g}"
            for key, values in middle.items()
        )
        + f"; by MeRCI on {np.mean(ahead):.0%} of the training sets",
    )
    study.finding(
        "Bagging is the best method by every score",
        all(order[0] == "Bagging" for order in orders.values()),
        "; ".join(f"{key}: {order[0]}" for key, order in orders.items())
        + "; by MeRCI first on so many training sets: "
        + ", ".join(f"{name} {np.mean(firsts == place):.0%}" for place, name in enumerate(METHODS)),
    )
    study.finding(
        "Multi Epochs is the worst method by every score",
        all(order[-1] == "Multi Epochs" for order in orders.values()),
        "; ".join(f"{key}: {order[-1]}" for key, order in orders.items()),
    )
    ratio = common[:, METHODS.index("Multi Epochs"), merci] / constant[:, 94]
    study.finding(
        "By MeRCI, Multi Epochs is no better than a constant uncertainty",
        np.median(ratio) > 0.95,
        f"its MeRCI over a constant's: median {np.median(ratio):.2f}, {np.quantile(ratio, 0.05):.2f} to "
        f"{np.quantile(ratio, 0.95):.2f} over repeats (paper 81/81)",
    )
