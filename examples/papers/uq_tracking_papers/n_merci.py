"""n-MeRCI (Moukari et al. 2019): its toy with own predictors, and scores by interval of the depth on a real scene.

Toy and scene are those of MeRCI. On the toy each method has its own predictions, over 5 training sets for each seed;
the paper computes 20 runs, and calls its curves very noisy. Intervals of depth are 0.1 m wide, as in the paper; those
with fewer than 200 pixels are left out.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from uq_tracking.figures.style import RANDOM, REFERENCE, line
from uq_tracking.npz import Arrays
from uq_tracking.verbs import evaluate
from uq_tracking_papers.drawing import LOOKS, panel, panels
from uq_tracking_papers.moukari import (
    ALPHAS,
    CHOICE,
    EVERY,
    INLIERS,
    LEARNED,
    LEARNED_CHOICE,
    LEARNED_FROM,
    MAPPED,
    METHODS,
    RANGES,
    WHOLE,
    Estimates,
    by_percentile,
    by_range,
    counted,
    estimates,
    first,
    maps,
    toy_panels,
    toys,
)
from uq_tracking_papers.study import ANALOGUE, Better, FloatArray, Study, each_over_seeds, medians

FIGURE_2 = {"Bagging": 0.22, "Multi Epochs": 0.48, "Monte Carlo Dropout": 0.9}
"""n-MeRCI at alpha = .85 as printed in the paper."""
FIGURE_4 = {"Multi Epochs": 0.29, LEARNED: 0.34}
FIGURE_5 = {"Multi Epochs": 0.11, LEARNED: 0.65}
INTERVAL = 0.1
"""Metres of depth, as in the paper."""
FEWEST = 200
"""Minimum number of pixels for an interval of depths to be scored."""


def reproduce(study: Study) -> None:
    """Figures 1 to 5; the paper has no tables."""
    title, note = "The toy data set and where each method is unsure", "the paper's one panel as four"
    study.item("figure 1", title, note)
    study.figure(
        toy_panels(study, 10, 300),
        "Mean and ten standard deviations, as in the paper, and training samples, biased in the grey band: Bagging "
        "and Monte Carlo Dropout are unsure outside the dotted lines, only Bagging in the band.",
    )
    figure_2(study, toys(study))
    found = estimates(study)
    title = "The error of a prediction, and which uncertainty resembles it"
    study.item("figure 3", title, "the motorcycle for a bedroom of NYU Depth v2", status=ANALOGUE)
    study.figure(
        maps(found, 0, WHOLE, "n_merci"),
        "Which map resembles ERROR? Best first, in metres on one scale (slate: truth unknown; rho: rank "
        "correlation with it): five alike, Learned Error least.",
    )
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
            is_said = "The uncertainty ranks errors" in report.verdict.text
            kept["said"].append(is_said and report.verdict.ranking == "useful")
        return kept

    kept = study.cached("verdicts", logged)
    n_merci, said = kept["n_merci"], kept["said"].astype(bool)
    study.diagnostic(
        'No verdict says "the uncertainty ranks errors" of a method with an n-MeRCI of 1 or more',
        not np.any(said & (n_merci >= 1)),
        f"n-MeRCI from {n_merci.min():.2f} to {n_merci.max():.2f}; said of {said.sum()} of {len(EVERY)}",
    )


def figure_2(study: Study, found: Arrays) -> None:
    """Medians over seeds and training sets."""
    curves = by_range(median(found["n_merci"], 2))  # seeds, methods, alphas
    quantities = {name: f"n-MeRCI at alpha = {INLIERS:g}, {name}" for name in RANGES}
    better: dict[str, Better] = dict.fromkeys(quantities.values(), "lower")
    title, note = (
        "n-MeRCI against the percentile",
        "both test ranges; undefined unless the percentile exceeds the MAE",
    )
    study.item("figure 2", title, note, better=better, choice=CHOICE)
    at = {name: values[..., round(100 * INLIERS) - 1] for name, values in curves.items()}
    shown, ones = {}, np.ones(len(ALPHAS))
    for name, values in curves.items():
        defined = np.isfinite(values).mean(axis=(0, 1)) >= 0.9
        shown[name] = np.where(defined, median(values, 0), np.nan)
        for place, method in enumerate(METHODS):
            study.repeats(method, quantities[name], at[name][:, place], FIGURE_2.get(method))
    study.figure(
        by_percentile("n-MeRCI", shown, dict.fromkeys(RANGES, ones), 4.0),
        "Lower is better, 1 is a constant uncertainty and 0 the oracle: at the share of inliers (red) Bagging is "
        "best, and below 1 only if tests stay where training was. To the left the curves stop where the percentile "
        "of the errors is not above their mean: there n-MeRCI is undefined.",
    )
    bagging, dropout, epochs = (
        METHODS.index(name) for name in ("Bagging", "Monte Carlo Dropout", "Multi Epochs")
    )
    evidence = "medians: " + "; ".join(
        f"{name}: {medians(dict(zip(METHODS, of.T, strict=True)), '.2f')}" for name, of in at.items()
    )
    claims = {
        "Bagging is best": {name: np.nanargmin(of, axis=1) == bagging for name, of in at.items()},
        "Monte Carlo Dropout is worst": {
            name: np.nanargmax(of, axis=1) == dropout for name, of in at.items()
        },
        "Multi Epochs is worse than Bagging and better than Monte Carlo Dropout": {
            name: (of[:, bagging] < of[:, epochs]) & (of[:, epochs] < of[:, dropout])
            for name, of in at.items()
        },
        "every method is better than a constant (its printed values are below 1)": {
            name: np.nanmax(of, axis=1) < 1 for name, of in at.items()
        },
    }
    for claim, outcomes in claims.items():
        study.finding(f"At alpha = {INLIERS:g} {claim}", outcomes, evidence)
    low, high = (round(100 * alpha) - 1 for alpha in (0.75, 0.95))
    falls = {name: np.nanmean(of[..., low] > of[..., high], axis=1) for name, of in curves.items()}
    study.finding(
        "n-MeRCI decreases as the share of errors to cover grows, to some extent (from 75 to 95 %, for most methods)",
        {name: share > 0.5 for name, share in falls.items()},
        f"share of the methods that fall: {each_over_seeds(falls, '.0%')}",
    )


def median(values: FloatArray, axis: int) -> FloatArray:
    """Median over an axis without undefined values; NaN if there are no others."""
    defined = np.isfinite(values).any(axis=axis)
    found = np.nanmedian(np.where(np.expand_dims(defined, axis), values, 0.0), axis=axis)
    return np.where(defined, found, np.nan)


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


def drawn_by_depth(
    study: Study, found: Arrays, key: str, label: str, printed: dict[str, float], caption: str
) -> FloatArray:
    """Rows and figure of a score by interval of depth, each method in front of the others; its averages."""
    average, whole, curves = np.nanmean(found[key], axis=2), found[f"whole {key}"], median(found[key], 0)
    for place, method in enumerate(EVERY):
        study.repeats(method, f"{label}, average over intervals", average[:, place], printed.get(method))
        study.repeats(method, f"{label}, whole scene", whole[:, place])
    figure, axes = panels(2, 3, width=3.3, height=2.8)
    for place, (ax, method, (color, _)) in enumerate(zip(axes, MAPPED, LOOKS, strict=False)):
        panel(ax, f"{method}: {np.nanmedian(average[:, place]):.3f}", "depth [m]", label)
        for other in curves[: len(MAPPED)]:
            line(ax, middle_of(found), other, color="#D0D0D0", linewidth=1.0)
        line(ax, middle_of(found), curves[place], color=color, linewidth=2.4)
        if key == "n_merci":
            ax.axhline(1, color=RANDOM, linestyle=":", linewidth=1.5)
        ax.set_ylim(0, 1.05 * np.nanmax(curves[: len(MAPPED)]))
        ax.axhline(0, color=REFERENCE, linewidth=1.0)
    study.figure(figure, caption)
    return np.asarray(average)


def middle_of(found: Arrays) -> FloatArray:
    """The middles of the intervals."""
    edges = found["edges"]
    return np.asarray((edges[1:] + edges[:-1]) / 2, dtype=np.float64)


def slope_by_depth(found: Arrays, key: str) -> FloatArray:
    """Slope of a score over the intervals of depth, (seeds, methods of `MAPPED`)."""
    middle, slopes = middle_of(found), []
    for values in found[key][:, : len(MAPPED)].reshape(-1, len(middle)):
        kept = np.isfinite(values)
        slopes.append(np.polyfit(middle[kept], values[kept], 1)[0])
    return np.asarray(slopes).reshape(-1, len(MAPPED))


def figure_4(study: Study, found: Arrays) -> None:
    """Each method with its own predictions."""
    label, note = "MAE of 95 % [m]", "the motorcycle for the NYU test set"
    better: dict[str, Better] = {
        f"{label}, average over intervals": "lower",
        f"{label}, whole scene": "lower",
    }
    title = "MAE of the lowest 95 % of the errors, by interval of the depth"
    study.item("figure 4", title, note, status=ANALOGUE, better=better, choice=LEARNED_CHOICE)
    average = drawn_by_depth(
        study, found, "trimmed_mae", label, FIGURE_4,
        "Each method before the others in grey, its average in the title: the six hardly differ, and the error grows "
        "with depth.",
    )  # fmt: skip
    evidence = f"medians: {medians(dict(zip(EVERY, average.T, strict=True)), '.3f')}"
    epochs, learned = MAPPED.index("Multi Epochs"), MAPPED.index(LEARNED)
    study.finding(
        "Learned Error has the largest MAE, because it does not average",
        {name: first(average, "higher", of) == learned for name, of in LEARNED_FROM.items()},
        f"{evidence}; it has the predictions of one network, Monte Carlo Dropout and Multi Epochs averages of one",
    )
    study.finding(
        "Multi Epochs has the smallest MAE, if slightly",
        {name: first(average, "lower", of) == epochs for name, of in LEARNED_FROM.items()},
        evidence,
    )
    slopes = slope_by_depth(found, "trimmed_mae")
    study.finding(
        "The MAE increases as depth grows",
        np.all(slopes > 0, axis=1),
        f"metres of error per metre of depth: {medians(dict(zip(MAPPED, slopes.T, strict=True)), '.3f')}",
    )


def figure_5(study: Study, found: Arrays) -> None:
    """The same intervals."""
    label, note = "n-MeRCI", "the motorcycle for the NYU test set"
    better: dict[str, Better] = {
        f"{label}, average over intervals": "lower",
        f"{label}, whole scene": "lower",
    }
    title = "n-MeRCI by interval of the depth, alpha = .95"
    study.item("figure 5", title, note, status=ANALOGUE, better=better, choice=LEARNED_CHOICE)
    average = drawn_by_depth(
        study, found, "n_merci", label, FIGURE_5,
        "Each method before the others in grey, its average in the title; dotted: a constant uncertainty. Learned "
        "Error is the worst at most depths, the others are alike.",
    )  # fmt: skip
    best = {name: first(average, "lower", of) for name, of in LEARNED_FROM.items()}
    study.finding(
        "Multi Epochs has the best n-MeRCI (scene)",
        {name: of == MAPPED.index("Multi Epochs") for name, of in best.items()},
        f"first in so many seeds: {counted(best, MAPPED)}",
    )
    study.finding(
        "Learned Error has the worst n-MeRCI (scene)",
        {name: first(average, "higher", of) == MAPPED.index(LEARNED) for name, of in LEARNED_FROM.items()},
        f"medians: {medians(dict(zip(EVERY, average.T, strict=True)), '.2f')}",
    )
    whole = found["whole n_merci"]
    study.finding(
        "Every method is better than a constant (its printed values are below 1)",
        {name: np.max(whole[:, of], axis=1) < 1 for name, of in LEARNED_FROM.items()},
        f"of the whole scene: {medians(dict(zip(EVERY, whole.T, strict=True)), '.2f')}",
    )
    slopes = slope_by_depth(found, "n_merci")
    study.finding(
        "n-MeRCI worsens as depth grows",
        np.mean(slopes > 0, axis=1) > 0.5,
        f"change per metre of depth: {medians(dict(zip(MAPPED, slopes.T, strict=True)), '.2f')}",
    )
