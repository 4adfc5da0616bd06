"""n-MeRCI (Moukari et al. 2019): its toy with own predictors, and scores by interval of the target on a map."""

from __future__ import annotations

import numpy as np

from uq_tracking.figures.style import ORACLE, RANDOM, REFERENCE, legend, legend_below, line
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets.merci import OUTLIERS, TEST_RANGE
from uq_tracking_papers.drawing import LOOKS, lines, panel, panels
from uq_tracking_papers.merci_toy import SET_UP
from uq_tracking_papers.study import Study
from uq_tracking_papers.terrain import METHODS as MAPPED
from uq_tracking_papers.terrain import SET_UP as TERRAIN_SET_UP
from uq_tracking_papers.terrain import Estimates, estimates
from uq_tracking_papers.toy import ALPHAS, METHODS, SCORES, FloatArray, ensembles, repeats

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
    found = estimates(study)
    figures_4_and_5(study, found)


def figure_1(study: Study) -> None:
    """The toy with mean and ten standard deviations of every method."""
    study.item("figure 1", "The toy data set; uncertainties ten times enlarged, as in the paper", SET_UP)
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
    """n-MeRCI against the percentile."""
    found = repeats(study)
    curves, count = found["n_merci"], len(found["n_merci"])
    study.item(
        "figure 2",
        "n-MeRCI against the percentile",
        f"Median over {count} repeats, each with its own training set; each method with its own predictions. The "
        "paper shows one training set, and calls its curves very noisy.",
        better={"n-MeRCI at alpha = 0.85": "lower", "n-MeRCI at alpha = 0.95": "lower"},
    )
    shown = np.isfinite(curves).mean(axis=(0, 1)) >= 0.5
    middle = {
        method: np.nanmedian(curves[:, place][:, shown], axis=0) for place, method in enumerate(METHODS)
    }
    at_alpha = {}
    for place, method in enumerate(METHODS):
        values = curves[:, place, round(100 * ALPHA) - 1]
        at_alpha[method] = float(np.nanmedian(values))
        study.repeats("figure 2", method, "n-MeRCI at alpha = 0.85", values, FIGURE_2.get(method))
        study.repeats("figure 2", method, "n-MeRCI at alpha = 0.95", curves[:, place, 94])
    figure, (ax,) = panels(1, 1, width=6.0, height=4.2)
    panel(ax, "", "share alpha of errors to cover", "n-MeRCI")
    line(ax, [0.5, 1], [1, 1], color=RANDOM, linestyle=":", label="constant")
    line(ax, [0.5, 1], [0, 0], color=ORACLE, linestyle="--", linewidth=1.2, label="oracle")
    lines(ax, ALPHAS[shown], middle, names=False)
    ax.axvline(ALPHA, color="#B22222", linewidth=1.0)
    ax.set(xlim=(0.5, 1), ylim=(-0.5, 4))
    legend_below(figure, ax)
    study.figure(
        "figure 2",
        figure,
        "Medians over repeats, where n-MeRCI is defined in at least half of them: the percentile of the errors must "
        "lie above their mean, and near that point n-MeRCI is unbounded.",
    )
    order = sorted(at_alpha, key=at_alpha.__getitem__)
    told = ", ".join(f"{name} {at_alpha[name]:.2f}" for name in order)
    study.finding("At alpha = 0.85 Bagging is best", order[0] == "Bagging", told)
    study.finding("At alpha = 0.85 Monte Carlo Dropout is worst", order[-1] == "Monte Carlo Dropout", told)
    study.finding("At alpha = 0.85 every method is better than a constant", max(at_alpha.values()) < 1, told)
    own = found["own"][:, :, SCORES.index("n_merci")]
    useless = {name: np.nanmean(own[:, place] >= 1) for place, name in enumerate(METHODS)}
    study.finding(
        "At alpha = 0.95 Multi Epochs is no better than a constant (n-MeRCI of 1 or above) more often than Bagging",
        useless["Multi Epochs"] > useless["Bagging"],
        "share of repeats at or above 1: "
        + ", ".join(f"{name} {share:.0%}" for name, share in useless.items()),
    )


def intervals(found: Estimates) -> FloatArray:
    """Edges of equal intervals of the target's range."""
    target = found.terrain.target
    return np.linspace(np.nanmin(target), np.nanmax(target), INTERVALS + 1)


def figures_4_and_5(study: Study, found: Estimates) -> None:
    """Trimmed MAE and n-MeRCI in intervals of the height."""
    edges = intervals(found)
    target = found.terrain.target
    by_method: dict[str, dict[str, tuple[FloatArray, FloatArray]]] = {"trimmed_mae": {}, "n_merci": {}}
    averages: dict[str, dict[str, float]] = {"trimmed_mae": {}, "n_merci": {}}
    whole: dict[str, float] = {}
    for method in MAPPED:
        report = evaluate(
            target,
            found.mean[method],
            found.std[method],
            metrics=["trimmed_mae", "n_merci"],
            by_target=edges,
            curve_metrics=["trimmed_mae", "n_merci"],
        )
        whole[method] = report.scores["n_merci"]
        for key, lines_of in by_method.items():
            columns = report.curves[f"by_target_{key}"].columns
            kept = columns["count"] >= FEWEST
            lines_of[method] = columns["target"][kept], columns[key][kept]
            averages[key][method] = float(np.mean(columns[key][kept]))
    for item, key, title, paper in (
        (
            "figure 4",
            "trimmed_mae",
            "MAE of the lowest 95 % of the errors, by interval of the target",
            FIGURE_4,
        ),
        ("figure 5", "n_merci", "n-MeRCI by interval of the target, alpha = .95", FIGURE_5),
    ):
        study.item(
            item,
            title,
            f"{TERRAIN_SET_UP} {INTERVALS} equal intervals of the height in place of depth intervals of 0.1 m; those "
            f"with fewer than {FEWEST} cells are left out. Numbers are averages over the intervals, as in the paper.",
            better={f"{key}, average over intervals": "lower", "n_merci of the whole map": "lower"},
        )
        for method, value in averages[key].items():
            study.row(item, method, f"{key}, average over intervals", value, paper.get(method))
            if key == "n_merci":
                study.row(item, method, "n_merci of the whole map", whole[method])
        figure, (ax,) = panels(1, 1, width=6.5, height=4.2)
        panel(ax, "", "height [m]", "MAE of the lowest 95 % [m]" if key == "trimmed_mae" else "n-MeRCI")
        if key == "n_merci":
            ax.axhline(1, color=RANDOM, linestyle=":", linewidth=1.5)
        for (name, (x, y)), (color, dashes) in zip(by_method[key].items(), LOOKS, strict=False):
            line(ax, x, y, color=color, linestyle=dashes, linewidth=1.8, label=name)
        legend_below(figure, ax)
        caption = "1 and above: no better than a constant uncertainty." if key == "n_merci" else ""
        study.figure(item, figure, caption)
    verdicts(study, averages, by_method["trimmed_mae"])


def verdicts(
    study: Study,
    averages: dict[str, dict[str, float]],
    errors: dict[str, tuple[FloatArray, FloatArray]],
) -> None:
    """What the paper concludes from figures 4 and 5."""
    n_merci = averages["n_merci"]
    order = sorted(n_merci, key=n_merci.__getitem__)
    told = ", ".join(f"{name} {n_merci[name]:.2f}" for name in order)
    useless = [name for name in order if n_merci[name] >= 1]
    study.finding("Multi Epochs has the best n-MeRCI on the map", order[0] == "Multi Epochs", told)
    study.finding("Learned Error has the worst n-MeRCI on the map", order[-1] == "Learned Error", told)
    study.finding(
        "Every method is better than a constant (n-MeRCI below 1)",
        not useless,
        f"{told}; no better than a constant: {', '.join(useless) or 'none'}",
    )
    slopes = {name: float(np.polyfit(x, y, 1)[0]) for name, (x, y) in errors.items()}
    study.finding(
        "The MAE increases with the target",
        all(slope > 0 for slope in slopes.values()),
        "metres of error per 100 m of height: "
        + ", ".join(f"{name} {100 * slope:.2f}" for name, slope in slopes.items()),
    )
