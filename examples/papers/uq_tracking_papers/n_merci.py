"""n-MeRCI (Moukari et al. 2019): its toy with own predictors, and scores by interval of the target on a map."""

from __future__ import annotations

import numpy as np

from uq_tracking.figures.style import ORACLE, RANDOM, REFERENCE, legend, legend_below, line
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets import OUTLIERS, TEST_RANGE
from uq_tracking_papers.drawing import LOOKS, lines, panel, panels
from uq_tracking_papers.moukari import (
    ALPHAS,
    MAPPED,
    METHODS,
    SCORES,
    SET_UP,
    TERRAIN_SET_UP,
    ensembles,
    estimates,
    repeats,
)
from uq_tracking_papers.study import FloatArray, Study, order, told

FIGURE_2 = {"Bagging": 0.22, "Multi Epochs": 0.48, "Monte Carlo Dropout": 0.9}
"""n-MeRCI at alpha = .85 as printed in the paper."""
FIGURE_4 = {"Multi Epochs": 0.29, "Learned Error": 0.34}
FIGURE_5 = {"Multi Epochs": 0.11, "Learned Error": 0.65}
ALPHA = 0.85
INTERVALS = 16
FEWEST = 200
"""Minimum number of cells for an interval of heights to be scored."""


def reproduce(study: Study) -> None:
    """Figures 1, 2, 4 and 5."""
    figure_1(study)
    figure_2(study)
    figures_4_and_5(study)


def figure_1(study: Study) -> None:
    """The toy data set; uncertainties ten times enlarged, as in the paper.

    {set_up}
    """
    study.item("figure 1", figure_1, set_up=SET_UP)
    at = np.linspace(*TEST_RANGE, 300)
    data, found = ensembles(study, 0, at)
    figure, (ax,) = panels(1, 1, width=6.5, height=4.4)
    panel(ax, "", "x", "y")
    ax.axvspan(*OUTLIERS, color="#EEEEEE", linewidth=0)
    line(ax, at, at**3, color=REFERENCE, linewidth=1.0, linestyle=":", label="x^3")
    for method, (color, dashes) in zip(METHODS, LOOKS, strict=False):
        mean, std = found.outputs[method].mean(0), 10 * found.std(method)
        ax.fill_between(at, mean - std, mean + std, color=color, alpha=0.12, linewidth=0)
        line(ax, at, mean, color=color, linestyle=dashes, linewidth=1.5, label=method)
    line(ax, data.x, data.y, color=REFERENCE, linestyle="", marker="o", markersize=3.5)
    ax.set_ylim(-250, 250)
    legend(ax, loc="upper left")
    study.figure("figure 1", figure)


def figure_2(study: Study) -> None:
    """n-MeRCI against the percentile.

    Median over {count} repeats, each with its own training set; each method with its own predictions. The paper shows
    one training set, and calls its curves very noisy.
    """
    found = repeats(study)
    curves = found["n_merci"]
    at_85, at_95 = "n-MeRCI at alpha = 0.85", "n-MeRCI at alpha = 0.95"
    study.item("figure 2", figure_2, better={at_85: "lower", at_95: "lower"}, count=len(curves))
    shown = np.isfinite(curves).mean(axis=(0, 1)) >= 0.5
    middle, at_alpha = {}, {}
    for place, method in enumerate(METHODS):
        middle[method] = np.nanmedian(curves[:, place][:, shown], axis=0)
        values = curves[:, place, round(100 * ALPHA) - 1]
        at_alpha[method] = float(np.nanmedian(values))
        study.repeats("figure 2", method, at_85, values, FIGURE_2.get(method))
        study.repeats("figure 2", method, at_95, curves[:, place, 94])
    figure, (ax,) = panels(1, 1, width=6.0, height=4.2)
    panel(ax, "", "share alpha of errors to cover", "n-MeRCI")
    line(ax, [0.5, 1], [1, 1], color=RANDOM, linestyle=":", label="constant")
    line(ax, [0.5, 1], [0, 0], color=ORACLE, linestyle="--", linewidth=1.2, label="oracle")
    lines(ax, ALPHAS[shown], middle)
    ax.axvline(ALPHA, color="#B22222", linewidth=1.0)
    ax.set(xlim=(0.5, 1), ylim=(-0.5, 4))
    legend_below(figure, ax)
    study.figure(
        "figure 2",
        figure,
        "Medians over repeats, where n-MeRCI is defined in at least half of them: the percentile of the errors must "
        "lie above their mean, and near that point n-MeRCI is unbounded.",
    )
    ranked = order(at_alpha)
    evidence = told({name: at_alpha[name] for name in ranked}, ".2f")
    study.finding("At alpha = 0.85 Bagging is best", ranked[0] == "Bagging", evidence)
    study.finding(
        "At alpha = 0.85 Monte Carlo Dropout is worst", ranked[-1] == "Monte Carlo Dropout", evidence
    )
    study.finding(
        "At alpha = 0.85 every method is better than a constant", max(at_alpha.values()) < 1, evidence
    )
    own = found["own"][:, :, SCORES.index("n_merci")]
    useless = {name: float(np.nanmean(own[:, place] >= 1)) for place, name in enumerate(METHODS)}
    study.finding(
        "At alpha = 0.95 Multi Epochs is no better than a constant (n-MeRCI of 1 or above) more often than Bagging",
        useless["Multi Epochs"] > useless["Bagging"],
        f"share of repeats at or above 1: {told(useless, '.0%')}",
    )


def figures_4_and_5(study: Study) -> None:
    """{title}.

    {set_up} {intervals} equal intervals of the height in place of depth intervals of 0.1 m; those with fewer than
    {fewest} cells are left out. Numbers are averages over the intervals, as in the paper.
    """
    found = estimates(study)
    target = found.terrain.target
    edges = np.linspace(np.nanmin(target), np.nanmax(target), INTERVALS + 1)
    keys = ("trimmed_mae", "n_merci")
    by_method: dict[str, dict[str, tuple[FloatArray, FloatArray]]] = {key: {} for key in keys}
    whole: dict[str, float] = {}
    for method in MAPPED:
        report = evaluate(
            target, found.mean[method], found.std[method], metrics=keys, by_target=edges, curve_metrics=keys
        )
        whole[method] = report.scores["n_merci"]
        for key in keys:
            columns = report.curves[f"by_target_{key}"].columns
            kept = columns["count"] >= FEWEST
            by_method[key][method] = columns["target"][kept], columns[key][kept]
    average = {key: {m: float(np.mean(y)) for m, (_, y) in by_method[key].items()} for key in keys}
    for item, key, title, label, caption, paper in (
        ("figure 4", "trimmed_mae", "MAE of the lowest 95 % of the errors, by interval of the target",
         "MAE of the lowest 95 % [m]", "", FIGURE_4),
        ("figure 5", "n_merci", "n-MeRCI by interval of the target, alpha = .95", "n-MeRCI",
         "1 and above: no better than a constant uncertainty.", FIGURE_5),
    ):  # fmt: skip
        quantity, of_map = f"{key}, average over intervals", "n_merci of the whole map"
        study.item(
            item,
            figures_4_and_5,
            better={quantity: "lower", of_map: "lower"},
            title=title,
            set_up=TERRAIN_SET_UP,
            intervals=INTERVALS,
            fewest=FEWEST,
        )
        figure, (ax,) = panels(1, 1, width=6.5, height=4.2)
        panel(ax, "", "height [m]", label)
        if key == "n_merci":
            ax.axhline(1, color=RANDOM, linestyle=":", linewidth=1.5)
        for (method, (x, y)), (color, dashes) in zip(by_method[key].items(), LOOKS, strict=False):
            study.row(item, method, quantity, average[key][method], paper.get(method))
            if key == "n_merci":
                study.row(item, method, of_map, whole[method])
            line(ax, x, y, color=color, linestyle=dashes, linewidth=1.8, label=method)
        legend_below(figure, ax)
        study.figure(item, figure, caption)
    n_merci = average["n_merci"]
    ranked = order(n_merci)
    evidence = told({name: n_merci[name] for name in ranked}, ".2f")
    useless = [name for name in ranked if n_merci[name] >= 1]
    study.finding("Multi Epochs has the best n-MeRCI on the map", ranked[0] == "Multi Epochs", evidence)
    study.finding("Learned Error has the worst n-MeRCI on the map", ranked[-1] == "Learned Error", evidence)
    study.finding(
        "Every method is better than a constant (n-MeRCI below 1)",
        not useless,
        f"{evidence}; no better than a constant: {', '.join(useless) or 'none'}",
    )
    slopes = {name: 100 * float(np.polyfit(x, y, 1)[0]) for name, (x, y) in by_method["trimmed_mae"].items()}
    study.finding(
        "The MAE increases with the target",
        all(slope > 0 for slope in slopes.values()),
        f"metres of error per 100 m of height: {told(slopes, '.2f')}",
    )
