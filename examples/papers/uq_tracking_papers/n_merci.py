"""n-MeRCI (Moukari et al. 2019): its toy with own predictors, and scores by interval of the depth on a real scene."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from uq_tracking.figures.style import ORACLE, RANDOM, REFERENCE, legend_below, line
from uq_tracking.npz import Arrays
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets import OUTLIERS
from uq_tracking_papers.drawing import LOOKS, lines, panel, panels
from uq_tracking_papers.merci import by_range, maps, over_seeds_names, six
from uq_tracking_papers.moukari import (
    ALPHAS,
    CHOICE,
    EVERY,
    LEARNED,
    LEARNED_CHOICE,
    LEARNED_FROM,
    MAPPED,
    METHODS,
    RANGES,
    SCENE_SET_UP,
    SET_UP,
    WHOLE,
    Estimates,
    ensembles,
    estimates,
    toys,
)
from uq_tracking_papers.study import ANALOGUE, FloatArray, Study, over_seeds, told

FIGURE_2 = {"Bagging": 0.22, "Multi Epochs": 0.48, "Monte Carlo Dropout": 0.9}
"""n-MeRCI at alpha = .85 as printed in the paper."""
FIGURE_4 = {"Multi Epochs": 0.29, LEARNED: 0.34}
FIGURE_5 = {"Multi Epochs": 0.11, LEARNED: 0.65}
ALPHA = 0.85
INTERVAL = 0.1
"""Metres of depth, as in the paper."""
FEWEST = 200
"""Minimum number of pixels for an interval of depths to be scored."""


def reproduce(study: Study) -> None:
    """Figures 1 to 5; the paper has no tables."""
    figure_1(study)
    figure_2(study, toys(study))
    found = estimates(study)
    figure_3(study, found)
    arrays = study.cached("intervals", partial(by_depth, study, found))
    figure_4(study, arrays)
    figure_5(study, arrays)
    words(study, found)


def words(study: Study, found: Estimates) -> None:
    """Log each method's map of the first seed, and check what the verdict says of its ranking."""

    def logged() -> dict[str, list[float]]:
        """Log, and keep n-MeRCI and whether the words are there."""
        kept: dict[str, list[float]] = {"n_merci": [], "said": []}
        for method in EVERY:
            mean, std = found.mean[method][0], found.std[method][0]
            report = study.log(found.target(0), mean, std, method=method, unit="m", figures=False, maps=False)
            kept["n_merci"].append(report.scores["n_merci"])
            kept["said"].append("knows where it errs" in report.verdict.text)
        return kept

    kept = study.cached("verdicts", logged)
    n_merci, said = kept["n_merci"], kept["said"].astype(bool)
    study.diagnostic(
        'No verdict says "it knows where it errs" of a method with an n-MeRCI of 1 or more',
        not np.any(said & (n_merci >= 1)),
        "n-MeRCI, and whether the words are there: "
        + ", ".join(
            f"{name} {value:.2f} {'yes' if of else 'no'}"
            for name, value, of in zip(EVERY, n_merci, said, strict=True)
        ),
    )


def figure_1(study: Study) -> None:
    """The toy data set and where each method is unsure.

    {set_up}
    """
    study.item("figure 1", figure_1, note="the paper's one panel as four", set_up=SET_UP)
    at = np.linspace(-6, 6, 300)
    found = ensembles(study, 0, 1, at)[0]
    figure, axes = panels(2, 2, width=4.2)
    for ax, method, (color, _) in zip(axes, METHODS, LOOKS, strict=False):
        panel(ax, method, "x", "y")
        mean, std = found.outputs[method].mean(0), 10 * found.std(method)
        ax.axvspan(*OUTLIERS, color="#EEEEEE", linewidth=0)
        for end in (-4, 4):
            ax.axvline(end, color=REFERENCE, linewidth=0.8, linestyle=":")
        ax.fill_between(at, mean - std, mean + std, color=color, alpha=0.3, linewidth=0)
        line(ax, at, mean, color=color, linewidth=1.8)
        line(ax, found.data.x, found.data.y, color=REFERENCE, linestyle="", marker="o", markersize=3.5)
        ax.set_ylim(-300, 300)
    study.figure(
        "figure 1",
        figure,
        "Band: one standard deviation, ten times enlarged, as in the paper. Grey: where the training "
        "samples are biased; "
        "dotted: the range of training.",
    )


def figure_2(study: Study, found: Arrays) -> None:
    """n-MeRCI against the percentile.

    Medians over {seeds} seeds of {sets} training sets each; each method with its own predictions. The paper shows one
    training set, and calls its curves very noisy.
    """
    seeds, _, sets = found["n_merci"].shape[:3]
    curves = by_range(median(found["n_merci"], 2))  # seeds, methods, alphas
    quantities = {name: f"n-MeRCI at alpha = 0.85, {name}" for name in RANGES}
    better: Any = dict.fromkeys(quantities.values(), "lower")
    study.item("figure 2", figure_2, note="both test ranges", better=better, seeds=seeds, sets=sets)
    at = {name: values[..., round(100 * ALPHA) - 1] for name, values in curves.items()}
    figure, axes = panels(1, 2, width=4.6, height=4.0)
    for ax, name in zip(axes, RANGES, strict=True):
        panel(ax, name, "share alpha of errors to cover", "n-MeRCI")
        line(ax, [0.5, 1], [1, 1], color=RANDOM, linestyle=":", label="constant")
        line(ax, [0.5, 1], [0, 0], color=REFERENCE, linestyle="--", linewidth=1.2, label="oracle")
        shown = np.isfinite(curves[name]).mean(axis=(0, 1)) >= 0.9
        lines(ax, ALPHAS[shown], dict(zip(METHODS, median(curves[name], 0)[:, shown], strict=True)))
        ax.axvline(ALPHA, color="#B22222", linewidth=1.0)
        ax.set(xlim=(0.5, 1), ylim=(-0.5, 4))
        for place, method in enumerate(METHODS):
            study.repeats("figure 2", method, quantities[name], at[name][:, place], FIGURE_2.get(method))
    legend_below(figure, axes[0])
    study.figure(
        "figure 2",
        figure,
        "Lower is better; 1 is a constant uncertainty, 0 the oracle. Red: the share of inliers. Left of "
        "the curves "
        "n-MeRCI is undefined: the percentile of the errors must lie above their mean.",
    )
    bagging, dropout, epochs = (
        METHODS.index(name) for name in ("Bagging", "Monte Carlo Dropout", "Multi Epochs")
    )
    evidence = "medians: " + "; ".join(
        f"{name}: {told(dict(zip(METHODS, median(values, 0).tolist(), strict=True)), '.2f')}"
        for name, values in at.items()
    )
    study.finding(
        "At alpha = 0.85 Bagging is best",
        {name: np.nanargmin(values, axis=1) == bagging for name, values in at.items()},
        evidence,
        choice=CHOICE,
    )
    study.finding(
        "At alpha = 0.85 Monte Carlo Dropout is worst",
        {name: np.nanargmax(values, axis=1) == dropout for name, values in at.items()},
        evidence,
        choice=CHOICE,
    )
    study.finding(
        "At alpha = 0.85 Multi Epochs is worse than Bagging and better than Monte Carlo Dropout",
        {
            name: (values[:, bagging] < values[:, epochs]) & (values[:, epochs] < values[:, dropout])
            for name, values in at.items()
        },
        evidence,
        choice=CHOICE,
    )
    study.finding(
        "At alpha = 0.85 every method is better than a constant (its printed values are below 1)",
        {name: np.nanmax(values, axis=1) < 1 for name, values in at.items()},
        evidence,
        choice=CHOICE,
    )
    low, high = (round(100 * alpha) - 1 for alpha in (0.75, 0.95))
    falls = {
        name: np.nanmean(values[..., low] > values[..., high], axis=1) for name, values in curves.items()
    }
    study.finding(
        "n-MeRCI decreases as the share of errors to cover grows, to some extent (from 75 to 95 %, for "
        "most methods)",
        {name: share > 0.5 for name, share in falls.items()},
        "share of the methods that fall: "
        + "; ".join(f"{name}: {over_seeds(v, '.0%')}" for name, v in falls.items()),
        choice=CHOICE,
    )


def median(values: FloatArray, axis: int) -> FloatArray:
    """Median over an axis without undefined values; NaN if there are no others."""
    defined = np.isfinite(values).any(axis=axis)
    found = np.nanmedian(np.where(np.expand_dims(defined, axis), values, 0.0), axis=axis)
    return np.where(defined, found, np.nan)


def figure_3(study: Study, found: Estimates) -> None:
    """The error of a prediction, and which uncertainty resembles it.

    {set_up} Each uncertainty is rescaled so that it covers 95 % of the errors, as in MeRCI: then all maps are metres
    on one scale.
    """
    study.item(
        "figure 3",
        figure_3,
        status=ANALOGUE,
        note="the motorcycle for a bedroom of NYU Depth v2",
        set_up=SCENE_SET_UP,
    )
    caption = (
        "In the order of MeRCI, which is that of n-MeRCI, best first; rho: rank correlation with the error."
    )
    study.figure("figure 3", maps(found, 0, WHOLE), caption)


def by_depth(study: Study, found: Estimates) -> Arrays:
    """Scores (seeds, methods, intervals) by interval of the depth, and (seeds, methods) of the whole scene."""
    target = found.scene.target
    step = INTERVAL if np.nanmax(target) < 100 else 50.0  # the terrain is in hundreds of metres
    edges = np.arange(np.floor(np.nanmin(target) / step), np.ceil(np.nanmax(target) / step) + 1) * step
    keys = ("trimmed_mae", "n_merci")
    arrays = {key: np.full((len(found.measured), len(EVERY), len(edges) - 1), np.nan) for key in keys}
    whole = {key: np.full((len(found.measured), len(EVERY)), np.nan) for key in keys}
    for seed in study.progress(range(len(found.measured)), "intervals of depth"):
        truth = found.target(seed)
        for place, method in enumerate(EVERY):
            mean, std = found.mean[method][seed], found.std[method][seed]
            scores = evaluate(truth, mean, std, metrics=keys).scores
            for key in keys:
                whole[key][seed, place] = scores[key]
            for number in range(len(edges) - 1):
                inside = (truth >= edges[number]) & (truth < edges[number + 1])
                if inside.sum() >= FEWEST:
                    part = evaluate(truth[inside], mean[inside], std[inside], metrics=keys).scores
                    for key in keys:
                        arrays[key][seed, place, number] = part.get(key, np.nan)
    return {**arrays, **{f"whole {key}": values for key, values in whole.items()}, "edges": edges}


def drawn_by_depth(study: Study, item: str, found: Arrays, key: str, label: str, caption: str) -> None:
    """The figure of a score by interval of depth: medians over seeds, each method in front of the others."""
    middle = 0.5 * (found["edges"][1:] + found["edges"][:-1])
    figure, axes = panels(2, 3, width=3.3, height=2.8)
    curves = median(found[key], 0)
    for ax, method, (color, _) in zip(axes, MAPPED, LOOKS, strict=False):
        place = EVERY.index(method)
        panel(ax, f"{method}: {np.nanmedian(found[f'whole {key}'][:, place]):.2f}", "depth [m]", label)
        for other in range(len(MAPPED)):
            line(ax, middle, curves[other], color="#D0D0D0", linewidth=1.0)
        line(ax, middle, curves[place], color=color, linewidth=2.4)
        if key == "n_merci":
            ax.axhline(1, color=RANDOM, linestyle=":", linewidth=1.5)
            ax.axhline(0, color=ORACLE, linestyle="--", linewidth=1.2)
            ax.set_ylim(-0.3, 2.0)
    study.figure(item, figure, caption)


def figure_4(study: Study, found: Arrays) -> None:
    """MAE of the lowest 95 % of the errors, by interval of the depth.

    {set_up} Intervals of 0.1 m, as in the paper; those with fewer than {fewest} pixels are left out.
    """
    quantity, of_scene = "MAE of 95 %, average over intervals", "MAE of 95 %, whole scene"
    better: Any = {quantity: "lower", of_scene: "lower"}
    note = "the motorcycle for the NYU test set"
    study.item(
        "figure 4", figure_4, status=ANALOGUE, note=note, better=better, set_up=SCENE_SET_UP, fewest=FEWEST
    )
    average = np.nanmean(found["trimmed_mae"], axis=2)
    for place, method in enumerate(EVERY):
        study.repeats("figure 4", method, quantity, average[:, place], FIGURE_4.get(method))
        study.repeats("figure 4", method, of_scene, found["whole trimmed_mae"][:, place])
    drawn_by_depth(
        study,
        "figure 4",
        found,
        "trimmed_mae",
        "MAE [m]",
        "Titles: the whole scene. Grey: the other methods.",
    )
    chosen = {name: six(learned) for name, learned in LEARNED_FROM.items()}
    epochs, learned = MAPPED.index("Multi Epochs"), MAPPED.index(LEARNED)
    middle = told(dict(zip(EVERY, np.median(average, axis=0).tolist(), strict=True)), ".3f")
    study.finding(
        "Learned Error has the largest MAE, because it does not average",
        {name: np.argmax(average[:, of], axis=1) == learned for name, of in chosen.items()},
        f"medians: {middle}; Learned Error has the predictions of one network, as Monte Carlo Dropout and "
        "Multi Epochs "
        "have averages of one",
        choice=LEARNED_CHOICE,
    )
    study.finding(
        "Multi Epochs has the smallest MAE, if slightly",
        {name: np.argmin(average[:, of], axis=1) == epochs for name, of in chosen.items()},
        f"medians: {middle}",
        choice=LEARNED_CHOICE,
    )
    slopes = slope_by_depth(found, "trimmed_mae")
    study.finding(
        "The MAE increases as depth grows",
        np.all(slopes[:, : len(MAPPED)] > 0, axis=1),
        "metres of error per metre of depth: "
        f"{told(dict(zip(EVERY, np.median(slopes, axis=0).tolist(), strict=True)), '.3f')}",
    )


def slope_by_depth(found: Arrays, key: str) -> FloatArray:
    """Slope of a score over the intervals of depth, (seeds, methods)."""
    middle = 0.5 * (found["edges"][1:] + found["edges"][:-1])
    seeds, methods, _ = found[key].shape
    slopes = np.empty((seeds, methods))
    for seed in range(seeds):
        for place in range(methods):
            values = found[key][seed, place]
            kept = np.isfinite(values)
            slopes[seed, place] = np.polyfit(middle[kept], values[kept], 1)[0]
    return slopes


def figure_5(study: Study, found: Arrays) -> None:
    """n-MeRCI by interval of the depth, alpha = .95."""
    quantity, of_scene = "n-MeRCI, average over intervals", "n-MeRCI of the whole scene"
    better: Any = {quantity: "lower", of_scene: "lower"}
    study.item(
        "figure 5", figure_5, status=ANALOGUE, note="the motorcycle for the NYU test set", better=better
    )
    average, whole = np.nanmean(found["n_merci"], axis=2), found["whole n_merci"]
    for place, method in enumerate(EVERY):
        study.repeats("figure 5", method, quantity, average[:, place], FIGURE_5.get(method))
        study.repeats("figure 5", method, of_scene, whole[:, place])
    drawn_by_depth(
        study, "figure 5", found, "n_merci", "n-MeRCI",
        "Titles: the whole scene. Grey: the other methods; dotted: a constant uncertainty; dashed: the "
        "oracle.",
    )  # fmt: skip
    chosen = {name: six(learned) for name, learned in LEARNED_FROM.items()}
    epochs, learned = MAPPED.index("Multi Epochs"), MAPPED.index(LEARNED)
    middle = told(dict(zip(EVERY, np.median(average, axis=0).tolist(), strict=True)), ".2f")
    best = {name: np.argmin(average[:, of], axis=1) for name, of in chosen.items()}
    study.finding(
        "Multi Epochs has the best n-MeRCI (scene)",
        {name: of == epochs for name, of in best.items()},
        "first in so many seeds: "
        + "; ".join(f"{name}: {over_seeds_names(of, MAPPED)}" for name, of in best.items()),
        choice=LEARNED_CHOICE,
    )
    study.finding(
        "Learned Error has the worst n-MeRCI (scene)",
        {name: np.argmax(average[:, of], axis=1) == learned for name, of in chosen.items()},
        f"medians: {middle}",
        choice=LEARNED_CHOICE,
    )
    study.finding(
        "Every method is better than a constant (its printed values are below 1)",
        {name: np.max(whole[:, of], axis=1) < 1 for name, of in chosen.items()},
        "of the whole scene: "
        f"{told(dict(zip(EVERY, np.median(whole, axis=0).tolist(), strict=True)), '.2f')}",
        choice=LEARNED_CHOICE,
    )
    slopes = slope_by_depth(found, "n_merci")[:, : len(MAPPED)]
    study.finding(
        "n-MeRCI worsens as depth grows",
        np.mean(slopes > 0, axis=1) > 0.5,
        "change per metre of depth: "
        f"{told(dict(zip(MAPPED, np.median(slopes, axis=0).tolist(), strict=True)), '.2f')}",
    )
