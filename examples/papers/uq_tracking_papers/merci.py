"""MeRCI (Moukari et al. 2018): the cubic with biased outliers (section 6), and six uncertainties of one scene (7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import stats

from uq_tracking.figures.style import ORACLE, RANDOM, REFERENCE, legend, line
from uq_tracking.npz import Arrays
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets import OUTLIERS
from uq_tracking_papers.drawing import LOOKS, lines, panel, panels, picture
from uq_tracking_papers.moukari import (
    ALPHAS,
    CHOICE,
    EVERY,
    HELD_OUT,
    LEARNED,
    LEARNED_CHOICE,
    LEARNED_FROM,
    MAPPED,
    METHODS,
    PRIORS,
    RANGES,
    RULES,
    SCENE_SET_UP,
    SCORES,
    SET_UP,
    SWEPT,
    WHOLE,
    Estimates,
    Window,
    ensembles,
    estimates,
    scene_scores,
    toys,
)
from uq_tracking_papers.study import ANALOGUE, Better, FloatArray, Study, order, over_seeds, told

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN: Mapping[str, Better] = {**RULES, "merci": "lower"}
TABLE_1 = {
    "Multi Inits": (-0.65, -6.0, 0.07, 19.0, 64),
    "Bagging": (-0.02, -4.8, 0.13, 16.8, 53),
    "Monte Carlo Dropout": (-0.03, -4.9, 0.11, 17.1, 60),
    "Multi Epochs": (-28, -6.9, 0.0, 19.3, 81),
}
"""The scores of ``SHOWN`` as printed in the paper."""
ORACLE_MERCI, CONSTANT_MERCI = 19, 81
TABLE_2 = {
    "Multi Inits": (-3.4, -1.9, 0.87, 0.12, 0.40),
    "Bagging": (-2.7, -1.6, 0.90, 0.12, 0.55),
    "Monte Carlo Dropout": (-7.5, -3.3, 0.61, 0.13, 0.37),
    "Multi Epochs": (-2.3, -1.6, 0.87, 0.12, 0.34),
    "Multi Networks": (1.8, 0.25, 1.3, 0.10, 0.41),
    "Learned Error": (-67, -3.1, 0.80, 0.13, 2.3),
}
TABLE_3 = {
    "Multi Inits": (-3.1, -3.0, -4.3, -4.7, -3.4, -2.8, 0.56, 0.56, 0.50, 0.32, 0.32, 2.5, 1.22),
    "Bagging": (-3.1, -3.0, -4.4, -4.8, -3.5, -2.9, 0.55, 0.56, 0.50, 0.32, 0.32, 2.5, 1.18),
    "Monte Carlo Dropout": (-7.7, -7.5, -10, -5.7, -4.8, -4.3, 0.40, 0.41, 0.36, 0.34, 0.34, 2.5, 1.10),
    "Multi Epochs": (-2.9, -2.7, -4.1, -4.9, -3.7, -3.0, 0.54, 0.54, 0.48, 0.32, 0.32, 2.5, 0.91),
    "Multi Networks": (-0.45, -0.37, -1.1, -3.3, -1.9, -1.6, 0.73, 0.74, 0.67, 0.30, 0.30, 2.5, 1.18),
    "Learned Error": (-137, -134, -169, -5.2, -4.3, -3.8, 0.46, 0.46, 0.41, 0.33, 0.33, 2.5, 4.31),
}
TABLE_4 = {
    "Multi Inits": (-3.0, -3.4, 0.57, 0.31, 1.20),
    "Bagging": (-3.0, -3.5, 0.55, 0.32, 1.19),
    "Monte Carlo Dropout": (-7.7, -5.0, 0.37, 0.37, 1.20),
    "Multi Epochs": (-2.8, -3.7, 0.53, 0.32, 0.91),
    "Multi Networks": (-0.63, -2.3, 0.66, 0.32, 1.20),
    "Learned Error": (-81, -4.6, 0.43, 0.33, 4.70),
}
BOUNDS = ("Oracle", "Constant")
SCALE = (
    "Medians over {seeds} seeds. Densities are per metre. The log score is that of the density plus 0.001 "
    "per metre, "
    "as in table 1, so that a target outside a uniform prior has one too."
)
ALIKE = 0.8
"""Rank correlation from which two orders of the methods count as the same."""
WINDOWS = {"front wheel": (0.45, 0.95, 0.05, 0.45), "engine": (0.3, 0.8, 0.4, 0.8)}
"""Parts of the scene that stand for further images: first and last row and column, as shares."""


def reproduce(study: Study) -> None:
    """Every figure and table of the paper."""
    scores = toys(study)
    figure_1(study)
    figure_2(study, scores)
    figure_3(study, scores)
    table_1(study, scores)
    found = estimates(study)
    whole = {
        predictor: study.cached(f"whole-{predictor}", partial(scene_scores, study, found, WHOLE, predictor))
        for predictor in ("common", "own")
    }
    table_2(study, found)
    figure_4(study, found)
    table_3(study, whole["common"])
    table_4(study, whole)
    figure_5(study, found)
    figure_6(study, found)


# --- the toy ---


def figure_1(study: Study) -> None:
    """The toy data set and what the methods predict.

    {set_up}
    """
    study.item("figure 1", figure_1, note="with a bias and a test range of our choice", set_up=SET_UP)
    at = np.linspace(-6, 6, 300)
    found = ensembles(study, 0, 1, at)[0]
    figure, axes = panels(2, 2, width=4.0)
    for ax, method, (color, _) in zip(axes, METHODS, LOOKS, strict=False):
        panel(ax, method, "x", "y")
        mean, std = found.outputs[method].mean(0), found.std(method)
        ax.axvspan(*OUTLIERS, color="#EEEEEE", linewidth=0)
        ax.fill_between(at, mean - 2 * std, mean + 2 * std, color=color, alpha=0.25, linewidth=0)
        line(ax, at, at**3, color=REFERENCE, linewidth=1.0, linestyle=":")
        line(ax, at, mean, color=color)
        line(ax, found.data.x, found.data.y, color=REFERENCE, linestyle="", marker="o", markersize=3.5)
        ax.set_ylim(-220, 220)
    study.figure(
        "figure 1",
        figure,
        "Dots: 20 training samples, those in the grey band biased. Dotted: the cubic. Line and band: mean "
        "and two "
        "standard deviations of 20 outputs. Only Bagging is unsure where the biased samples are.",
    )


def figure_2(study: Study, found: Arrays) -> None:
    """Scores of a constant uncertainty against its value.

    One network's predictions with one standard deviation for all of them, swept by the curve scale_sweep.
    """
    study.item("figure 2", figure_2, note="test x in [-4, 4] shown")
    sigma, sweep = found["sigma"][0], dict(zip(SWEPT, np.moveaxis(found["sweep"], 2, 0), strict=True))
    shown = {key: np.median(values[:, 0], axis=0) for key, values in sweep.items()}
    for key in SWEPT:
        for place in (0, 20, 40):
            study.row("figure 2", key, f"sigma = {sigma[place]:g}", shown[key][place])
    figure, axes = panels(2, 3)
    for ax, key in zip(axes, SWEPT, strict=True):
        panel(ax, key, "standard deviation", "")
        ax.set_xscale("log")
        line(ax, sigma, shown[key])
    axes[1].set_yscale("log")
    axes[5].set_ylim(0, 1.5 * shown["merci"][0])
    study.figure("figure 2", figure, "Every score but MeRCI moves with the scale of the uncertainty.")

    def each(what: npt.ArrayLike) -> dict[str, npt.ArrayLike]:
        return dict(zip(RANGES, np.asarray(what).T, strict=True))

    moved = {
        key: np.ptp(values, axis=-1) / np.abs(values).max(axis=-1) for key, values in sweep.items()
    }  # seeds, ranges
    study.finding(
        "MeRCI is constant under scaling, while every other score is greatly impacted by it",
        each((moved.pop("merci") < 1e-12) & (np.min(list(moved.values()), axis=0) > 0.2)),
        "from sigma = 1 to 100 MeRCI does not change; the others by, of their largest: "
        + ", ".join(f"{key} {np.median(change):.0%}" for key, change in moved.items()),
        choice=CHOICE,
    )
    study.finding(
        "Coverage is only sensitive to calibration: it grows with sigma",
        each(np.all(np.diff(sweep["coverage_95"], axis=-1) >= 0, axis=-1)),
        f"from {shown['coverage_95'][0]:.2f} to {shown['coverage_95'][-1]:.2f}",
        choice=CHOICE,
    )
    best = np.argmin(sweep["crps"], axis=-1)
    study.finding(
        "CRPS keeps worsening as sigma increases",
        each(best == 0),
        f"its best sigma is {over_seeds(sigma[best[:, 0]])}; it worsens beyond it, to "
        f"{shown['crps'][-1]:.3g} at 100",
        choice=CHOICE,
    )
    places = [
        np.argmin(values, axis=-1) if key in ("nll", "crps") else np.argmax(values, axis=-1)
        for key, values in sweep.items()
        if key not in ("coverage_95", "merci")
    ]
    study.finding(
        "Whatever the rule, its best sigma is rather low",
        each(sigma[np.max(places, axis=0)] < 50),
        f"largest of the rules' best sigmas, of 1 to 100: {over_seeds(sigma[np.max(places, axis=0)][:, 0])}",
        choice=CHOICE,
    )


def by_range(values: FloatArray) -> dict[str, FloatArray]:
    """Values (seeds, ranges, ...) by the range of the test inputs, (seeds, ...)."""
    return {name: values[:, place] for place, name in enumerate(RANGES)}


def figure_3(study: Study, found: Arrays) -> None:
    """MeRCI against the percentile.

    Medians over {seeds} seeds of {sets} training sets each (the paper: 1000 runs). Predictions are those of one
    network, the same for all methods.
    """
    seeds, _, sets = found["merci"].shape[:3]
    study.item("figure 3", figure_3, note="both test ranges", seeds=seeds, sets=sets)
    merci, constant = (
        by_range(np.median(found["merci"], axis=2)),
        by_range(np.median(found["constant"], axis=2)),
    )
    mae = by_range(np.median(found["common"][:, :, :, 0, SCORES.index("mae")], axis=2))
    figure, axes = panels(1, 2, width=4.6, height=4.0)
    for ax, name in zip(axes, RANGES, strict=True):
        panel(ax, name, "share alpha of errors to cover", "MeRCI")
        middle = dict(zip(METHODS, np.median(merci[name], axis=0), strict=True))
        constants = np.median(constant[name], axis=0)
        line(ax, ALPHAS, constants, color=RANDOM, linestyle=":", label="constant")
        line(
            ax,
            [0, 1],
            2 * [np.median(mae[name])],
            color=ORACLE,
            linestyle="--",
            linewidth=1.2,
            label="oracle",
        )
        lines(ax, ALPHAS, middle)
        ax.axvline(0.85, color="#B22222", linewidth=1.0)
        ax.set(xlim=(0.5, 1), ylim=(0, 2.5 * constants[94]))
        for method, values in middle.items():
            for alpha in (0.74, 0.85, 0.92):
                study.row("figure 3", method, f"alpha = {alpha:g}, {name}", values[round(100 * alpha) - 1])
    legend(axes[0], loc="upper left")
    study.figure(
        "figure 3",
        figure,
        "Lower is better; above the dotted line a method is no better than a constant uncertainty. Red: "
        "the share of "
        "training samples without bias, 85 %.",
    )
    ranks = {name: np.argsort(values, axis=1) for name, values in merci.items()}
    study.finding(
        "Between the 74th and the 92nd percentile MeRCI ranks the methods in one order",
        {name: np.all(of[..., 73:92] == of[..., 73:74], axis=(1, 2)) for name, of in ranks.items()},
        "; ".join(
            f"{name}, alpha {alpha:g}: {', '.join(order(_at(np.median(merci[name], axis=0), alpha)))}"
            for name in RANGES
            for alpha in (0.74, 0.92)
        ),
        choice=CHOICE,
    )
    steps = {
        name: (values[..., 80:90] / values[..., 79:89]).max(axis=(1, 2)) for name, values in merci.items()
    }
    study.finding(
        "There is no abrupt change of MeRCI around the share of inliers (at most 15 % per percentile from "
        "80 to 90)",
        {name: step < 1.15 for name, step in steps.items()},
        "; ".join(f"{name}: largest step {over_seeds(step - 1, '.0%')}" for name, step in steps.items()),
        choice=CHOICE,
    )


def _at(curves: FloatArray, alpha: float) -> dict[str, float]:
    """Values by method of curves (methods, alphas) at a percentile."""
    return dict(zip(METHODS, curves[:, round(100 * alpha) - 1].tolist(), strict=True))


def table_1(study: Study, found: Arrays) -> None:
    """Scores on the toy, with the same predictions for all methods.

    Medians over {seeds} seeds of {sets} training sets each, with test x in [-4, 4], and MeRCI with [-6, 6]. log_score
    is the mean of log(density + 0.001): the paper's log scores end at -6.9 = log 0.001, also for Multi Epochs, whose
    quadratic score of -28 tells of standard deviations near 0.01 beside errors of 19, so that the plain log score
    would be below -100 000. {set_up}
    """
    common = by_range(np.median(found["common"], axis=2))  # seeds, methods, scores
    constant = by_range(np.median(found["constant"][..., 94], axis=2))
    narrow, wide = RANGES
    seeds, _, sets = found["common"].shape[:3]
    better: dict[str, Better] = {**SHOWN, f"merci, {wide}": "lower"}
    study.item(
        "table 1",
        table_1,
        note="both test ranges",
        better=better,
        bounds=BOUNDS,
        seeds=seeds,
        sets=sets,
        set_up=SET_UP,
    )
    for name, quantity in ((narrow, "merci"), (wide, f"merci, {wide}")):
        mae = common[name][:, 0, SCORES.index("mae")]
        study.repeats("table 1", "Oracle", quantity, mae, ORACLE_MERCI)
        study.repeats("table 1", "Constant", quantity, constant[name], CONSTANT_MERCI)
    for place, method in enumerate(METHODS):
        for key, paper in zip(SHOWN, TABLE_1[method], strict=True):
            study.repeats("table 1", method, key, common[narrow][:, place, SCORES.index(key)], paper)
        values = common[wide][:, place, SCORES.index("merci")]
        study.repeats("table 1", method, f"merci, {wide}", values, TABLE_1[method][-1])
    ranks = {
        name: ranked(values) for name, values in common.items()
    }  # seeds, scores, methods from best to worst
    bagging, dropout, epochs = (
        METHODS.index(name) for name in ("Bagging", "Monte Carlo Dropout", "Multi Epochs")
    )
    two = sorted((bagging, dropout))
    merci_first = "; ".join(f"{name}: {over_seeds_names(of[:, -1, 0])}" for name, of in ranks.items())
    study.finding(
        "All scores, MeRCI included, agree on the ranking",
        {name: np.all(of == of[:, :1], axis=(1, 2)) for name, of in ranks.items()},
        f"medians over seeds, {narrow}: "
        + "; ".join(orders(common[narrow]))
        + f"; the four scoring rules agree among "
        f"themselves in {np.mean(np.all(ranks[narrow][:, :4] == ranks[narrow][:, :1], axis=(1, 2))):.0%} "
        "of the seeds",
        choice=CHOICE,
    )
    study.finding(
        "Bagging is the best method by every score",
        {name: np.all(of[..., 0] == bagging, axis=1) for name, of in ranks.items()},
        f"first by MeRCI in so many seeds: {merci_first}",
        choice=CHOICE,
    )
    study.finding(
        "Bagging and Monte Carlo Dropout are the two best by every score",
        {name: np.all(np.sort(of[..., :2], axis=-1) == two, axis=(1, 2)) for name, of in ranks.items()},
        "by the four scoring rules alone: "
        + "; ".join(
            f"{name} {np.mean(np.all(np.sort(of[:, :4, :2], axis=-1) == two, axis=(1, 2))):.0%}"
            for name, of in ranks.items()
        )
        + "; by MeRCI the first are "
        f"{'; '.join(f'{name}: {over_seeds_names(of[:, -1, 0])}' for name, of in ranks.items())}, "
        "and the second "
        f"{'; '.join(f'{name}: {over_seeds_names(of[:, -1, 1])}' for name, of in ranks.items())}",
        choice=CHOICE,
    )
    study.finding(
        "Multi Epochs is the worst method by every score",
        {name: np.all(of[..., -1] == epochs, axis=1) for name, of in ranks.items()},
        "last by so many of the five scores, median over seeds: "
        + told(
            {name: float(np.median(np.sum(of[..., -1] == epochs, axis=1))) for name, of in ranks.items()},
            ".0f",
        ),
        choice=CHOICE,
    )
    merci = {
        name: values[..., SCORES.index("merci")] / constant[name][:, None] for name, values in common.items()
    }
    study.finding(
        "By MeRCI, Multi Epochs is no better than a constant uncertainty",
        {name: ratio[:, epochs] > 0.98 for name, ratio in merci.items()},
        "its MeRCI over a constant's (paper 81/81): "
        + "; ".join(f"{name} {over_seeds(ratio[:, epochs])}" for name, ratio in merci.items()),
        choice=CHOICE,
    )
    study.finding(
        "By MeRCI, Bagging is better than a constant uncertainty",
        {name: ratio[:, bagging] < 1 for name, ratio in merci.items()},
        "its MeRCI over a constant's (paper 53/81): "
        + "; ".join(f"{name} {over_seeds(ratio[:, bagging])}" for name, ratio in merci.items()),
        choice=CHOICE,
    )


def ranked(values: FloatArray) -> npt.NDArray[np.intp]:
    """Places of the methods from the best to the worst, (seeds, scores of `SHOWN`, methods)."""
    signs = [1 if better == "lower" else -1 for better in SHOWN.values()]
    columns = [sign * values[..., SCORES.index(key)] for sign, key in zip(signs, SHOWN, strict=True)]
    return np.argsort(np.stack(columns, axis=1), axis=-1)


def orders(values: FloatArray) -> list[str]:
    """The order of the methods by the median of each score, in words."""
    found = []
    for key, better in SHOWN.items():
        middle = dict(zip(METHODS, np.median(values[..., SCORES.index(key)], axis=0).tolist(), strict=True))
        found.append(f"{key}: {', '.join(order(middle, better))}")
    return found


def over_seeds_names(places: npt.NDArray[np.intp], names: Sequence[str] = METHODS) -> str:
    """How many seeds have each name, in words."""
    counts = {name: int(np.sum(places == place)) for place, name in enumerate(names)}
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count)


# --- the scene ---


def part_of(found: Estimates, name: str) -> Window:
    """Rows and columns of one of the parts of the scene."""
    rows, columns = found.scene.target.shape
    top, bottom, left, right = WINDOWS[name]
    return slice(round(top * rows), round(bottom * rows)), slice(
        round(left * columns), round(right * columns)
    )


def places(methods: Sequence[str]) -> list[int]:
    """Columns of `EVERY`."""
    return [EVERY.index(method) for method in methods]


def six(learned: str) -> list[int]:
    """Columns of the six methods, with one of the two ways to learn the error."""
    return places([learned if name == LEARNED else name for name in MAPPED])


def report(
    study: Study, item: str, scores: Arrays, keys: Mapping[str, str], paper: Mapping[str, Sequence[float]]
) -> None:
    """Rows of a table: quantities by key of the scores; the bounds first."""
    for name in BOUNDS:
        study.repeats(
            item,
            name,
            "merci",
            scores[name],
            {"Oracle": 0.356, "Constant": 1.11}[name] if item == "table 3" else None,
        )
    for place, method in enumerate(EVERY):
        printed = paper.get(method, (None,) * len(keys))
        for (key, quantity), value in zip(keys.items(), printed, strict=True):
            study.repeats(item, method, quantity, scores[key][:, place], value)


def first(scores: FloatArray, better: Better, chosen: Sequence[int]) -> npt.NDArray[np.intp]:
    """Which of the chosen methods is best, for each seed."""
    sign = 1 if better == "lower" else -1
    return np.asarray(np.argmin(sign * scores[:, chosen], axis=1), dtype=np.intp)


def agreement(one: FloatArray, other: FloatArray, chosen: Sequence[int], same: bool = True) -> FloatArray:
    """Rank correlation of two scores over the methods, for each seed."""
    sign = 1.0 if same else -1.0
    pairs = zip(one[:, chosen], other[:, chosen], strict=True)
    return sign * np.asarray([stats.spearmanr(a, b).statistic for a, b in pairs])


GAUSSIAN = {f"{rule} G": rule for rule in RULES} | {"merci": "merci"}


def table_2(study: Study, found: Estimates) -> None:
    """Scores on one part of the scene, with a common predictor.

    {set_up} The paper's table is of one image, ours of the part of the scene shown in figure 5. {scale}
    """
    compute = partial(scene_scores, study, found, part_of(found, "front wheel"), "common")
    scores = study.cached("part-common", compute)
    scale = SCALE.format(seeds=len(found.measured))
    note = "the Middlebury motorcycle for NYU Depth v2, small networks for a ResNet"
    study.item(
        "table 2",
        table_2,
        status=ANALOGUE,
        note=note,
        better=SHOWN,
        bounds=BOUNDS,
        set_up=SCENE_SET_UP,
        scale=scale,
    )
    report(study, "table 2", scores, GAUSSIAN, TABLE_2)
    firsts = {
        name: np.stack(
            [first(scores[f"{rule} G"], better, six(learned)) for rule, better in RULES.items()], axis=1
        )
        for name, learned in LEARNED_FROM.items()
    }
    by_merci = {name: first(scores["merci"], "lower", six(learned)) for name, learned in LEARNED_FROM.items()}
    study.finding(
        "On one image all scoring rules agree on the best method",
        {name: np.all(of == of[:, :1], axis=1) for name, of in firsts.items()},
        "; ".join(
            f"{rule}: {over_seeds_names(firsts[next(iter(firsts))][:, place], MAPPED)}"
            for place, rule in enumerate(RULES)
        ),
        choice=LEARNED_CHOICE,
    )
    study.finding(
        "On one image the method that most scoring rules place first is not MeRCI's first",
        {name: favorite(of) != by_merci[name] for name, of in firsts.items()},
        "MeRCI's first: "
        + "; ".join(f"{name}: {over_seeds_names(of, MAPPED)}" for name, of in by_merci.items()),
        choice=LEARNED_CHOICE,
    )


def favorite(firsts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The method that most rules place first, for each seed; firsts (seeds, rules)."""
    return np.asarray([np.bincount(row).argmax() for row in firsts], dtype=np.intp)


def table_3(study: Study, scores: Arrays) -> None:
    """Scores on the whole scene, with a common predictor.

    U, G, L: uniform, Gaussian and Laplace prior of the same mean and standard deviation. {scale} The paper's CRPS
    under a Laplace prior is 2.5 for every method, which cannot be: with the same standard deviations it lies within a
    few per cent of the Gaussian's.
    """
    keys = {f"{rule} {prior}": f"{rule} {prior}" for rule in RULES for prior in PRIORS} | {"merci": "merci"}
    better: dict[str, Better] = {key: SHOWN[key.split()[0]] for key in keys}
    note = "the motorcycle for the NYU test set"
    scale = SCALE.format(seeds=len(scores["merci"]))
    study.item("table 3", table_3, status=ANALOGUE, note=note, better=better, bounds=BOUNDS, scale=scale)
    report(study, "table 3", scores, keys, TABLE_3)
    chosen = {name: six(learned) for name, learned in LEARNED_FROM.items()}
    alike = {
        name: np.min(
            [
                agreement(scores[f"{rule} G"], scores[f"{rule} {prior}"], of)
                for rule in RULES
                for prior in ("U", "L")
            ],
            axis=0,
        )
        for name, of in chosen.items()
    }
    study.finding(
        "The prior does not influence much how a rule ranks the methods (rank correlation of 0.8 or more)",
        {name: of >= ALIKE for name, of in alike.items()},
        "least rank correlation between priors: "
        + "; ".join(f"{n}: {over_seeds(v, '.2f')}" for n, v in alike.items()),
        choice=LEARNED_CHOICE,
    )
    networks, epochs, learned = (MAPPED.index(name) for name in ("Multi Networks", "Multi Epochs", LEARNED))
    firsts = {
        name: np.stack([first(scores[f"{rule} G"], better, of) for rule, better in RULES.items()], axis=1)
        for name, of in chosen.items()
    }
    study.finding(
        "Multi Networks is by far the best method by every scoring rule (scene)",
        {name: np.all(of == networks, axis=1) for name, of in firsts.items()},
        "first by quadratic score: "
        + "; ".join(f"{n}: {over_seeds_names(of[:, 0], MAPPED)}" for n, of in firsts.items())
        + "; its networks differ here in width and depth only",
        choice=LEARNED_CHOICE,
    )
    ratio = scores["merci"] / scores["Constant"][:, None]
    useless = {
        name: ratio[np.arange(len(ratio)), np.asarray(of)[favorite(firsts[name])]]
        for name, of in chosen.items()
    }
    study.finding(
        "By MeRCI, the method that most rules place first is no better than a constant uncertainty",
        {name: of >= 1 for name, of in useless.items()},
        "its MeRCI over a constant's: "
        + "; ".join(f"{n}: {over_seeds(v, '.2f')}" for n, v in useless.items()),
        choice=LEARNED_CHOICE,
    )
    best = {name: first(scores["merci"], "lower", of) for name, of in chosen.items()}
    told_first = "; ".join(f"{name}: {over_seeds_names(of, MAPPED)}" for name, of in best.items())
    study.finding(
        "Multi Epochs is MeRCI's best (scene)",
        {name: of == epochs for name, of in best.items()},
        f"first by MeRCI in so many seeds: {told_first}; the paper explains its first place by the "
        "oscillations of a "
        "large network on a complex task, and ours are small",
        choice=LEARNED_CHOICE,
    )
    middle = dict(zip(EVERY, np.median(ratio, axis=0).tolist(), strict=True))
    study.finding(
        "By MeRCI, Multi Epochs is the only method better than a constant uncertainty (scene)",
        {
            name: np.all((ratio[:, of] < 1) == (np.arange(len(of)) == epochs), axis=1)
            for name, of in chosen.items()
        },
        f"MeRCI over a constant's: {told(middle, '.2f')}; here all are better: large errors lie at the "
        "edges of objects, "
        "where measurements disagree, and every method finds those",
        choice=LEARNED_CHOICE,
    )
    last = {name: np.argmax(scores["merci"][:, of], axis=1) == learned for name, of in chosen.items()}
    spared = {
        name: np.any(
            [
                first(scores[f"{rule} G"], "higher" if better == "lower" else "lower", of) != learned
                for rule, better in RULES.items()
            ],
            axis=0,
        )
        for name, of in chosen.items()
    }
    study.finding(
        "MeRCI places Learned Error last, while some scoring rules do not",
        {name: last[name] & spared[name] for name in chosen},
        f"MeRCI over a constant's: {told({name: middle[name] for name in (LEARNED, HELD_OUT)}, '.2f')}",
        choice=LEARNED_CHOICE,
    )
    study.cannot_judge(
        "Multi Networks varies at the edges of the image, because its networks transfer artifacts from it",
        "it is said of networks of another kind, which turn whole images into maps",
    )


def table_4(study: Study, whole: Mapping[str, Arrays]) -> None:
    """Scores on the whole scene, each method with its own predictor.

    Gaussian prior. {scale}
    """
    note, scale = "the motorcycle for the NYU test set", SCALE.format(seeds=len(whole["own"]["merci"]))
    study.item("table 4", table_4, status=ANALOGUE, note=note, better=SHOWN, bounds=BOUNDS, scale=scale)
    report(study, "table 4", whole["own"], GAUSSIAN, TABLE_4)
    alike = {
        name: np.asarray(
            [agreement(whole["own"][key], whole["common"][key], six(learned)) for key in GAUSSIAN]
        )
        for name, learned in LEARNED_FROM.items()
    }
    study.finding(
        "Common and own predictors lead to the same conclusions (rank correlation of 0.8 or more by every "
        "score)",
        {name: np.min(of, axis=0) >= ALIKE for name, of in alike.items()},
        "median rank correlation of common and own: "
        + told(
            dict(zip(GAUSSIAN.values(), np.median(alike[next(iter(alike))], axis=1).tolist(), strict=True)),
            ".2f",
        ),
        choice=LEARNED_CHOICE,
    )


def figure_4(study: Study, found: Estimates) -> None:
    """The error of a prediction, and which uncertainty resembles it.

    One seed. Each uncertainty is rescaled by MeRCI's factor, so that it covers 95 % of the errors: then all maps are
    metres on one scale, and the mean of a map is its MeRCI.
    """
    study.item("figure 4", figure_4, status=ANALOGUE, note="the motorcycle for a bedroom of NYU Depth v2")
    study.figure(
        "figure 4",
        maps(found, 0, WHOLE),
        "In the order of MeRCI, best first; rho: rank correlation with the error.",
    )


def figure_5(study: Study, found: Estimates) -> None:
    """The same on further parts of the scene."""
    study.item(
        "figure 5", figure_5, status=ANALOGUE, note="two parts of the motorcycle, each with its own seed"
    )
    for seed, name in enumerate(WINDOWS):
        study.figure(
            "figure 5", maps(found, 1 - seed, part_of(found, name)), f"{name.capitalize()}, best first."
        )


def figure_6(study: Study, found: Estimates) -> None:
    """The same where the ground truth is wrong in places.

    The paper shows images of NYU Depth v2 whose ground truth is locally erroneous. Here the truth of a patch, {share}
    of the pixels, is made {by:g} m too far. MeRCI leaves out the 5 % of the pixels whose errors are largest for their
    uncertainty.
    """
    window = part_of(found, "engine")
    rows, columns = found.scene.target[window].shape
    patch = (slice(rows // 8, rows // 8 + rows // 6), slice(columns // 3, columns // 3 + columns // 9))
    wrong = np.zeros((rows, columns))
    by = float(np.round(1.25 * np.nanstd(found.scene.target), 1))
    wrong[patch] = by
    share = f"{np.mean(wrong > 0):.1%}"
    study.item(
        "figure 6", figure_6, status=ANALOGUE, note="a patch of the truth made wrong", share=share, by=by
    )
    study.figure(
        "figure 6",
        maps(found, 0, window, wrong),
        "Best first; the wrong patch is the bright rectangle of the error.",
    )
    before, after = (merci_by_seed(found, window, add) for add in (0 * wrong, wrong))
    for place, method in enumerate(MAPPED):
        study.repeats("figure 6", method, "MeRCI, right truth", before[:, place])
        study.repeats("figure 6", method, "MeRCI, wrong truth", after[:, place])
    alike = agreement(before, after, range(len(MAPPED)))
    study.diagnostic(
        "A wrong patch leaves MeRCI's order of the methods as it is (median rank correlation of 0.8 or more)",
        np.median(alike) >= ALIKE,
        f"rank correlation {over_seeds(alike, '.2f')}; MeRCI with over without the patch "
        f"{over_seeds(after / before, '.2f')}: "
        "no uncertainty foresees the patch, so it takes up the room that the percentile leaves",
    )


def merci_by_seed(found: Estimates, window: Window, add: FloatArray) -> FloatArray:
    """MeRCI (seeds, methods) with a common predictor where ``add`` is added to the truth."""
    return np.asarray(
        [
            [
                evaluate(
                    found.target(seed)[window] + add, found.base[seed][window], found.std[method][seed][window],
                    metrics=["merci"],
                ).scores["merci"]
                for method in MAPPED
            ]
            for seed in range(len(found.measured))
        ]
    )  # fmt: skip


def maps(found: Estimates, seed: int, window: Window, wrong: float | FloatArray = 0.0) -> Figure:
    """Image, truth, prediction and error, and below the six rescaled uncertainties from the best to the worst."""
    scene = found.scene
    target, mean = found.target(seed)[window] + wrong, found.base[seed][window]
    error = np.abs(scene.target[window] + wrong - mean)
    shown = []
    for method in MAPPED:
        std = found.std[method][seed][window]
        scores = evaluate(target, mean, std, metrics=["merci", "spearman"]).scores
        shown.append(
            (
                scores["merci"],
                method,
                scores["spearman"],
                std * scores["merci"] / std[np.isfinite(target)].mean(),
            )
        )
    image = scene.image[window] if scene.image.size else scene.target[window]
    figure, axes = panels(3, 4, width=2.9, height=2.4 if window == WHOLE else 2.9)
    for ax in axes[-2:]:
        ax.set_visible(False)
    low, high = np.nanquantile(scene.target[window], [0.01, 0.99])
    top = float(np.nanquantile(error, 0.98))
    picture(figure, axes[0], "the image", image)
    picture(figure, axes[1], "true depth [m]", scene.target[window] + wrong, low, high)
    picture(figure, axes[2], "prediction [m]", mean, low, high)
    picture(figure, axes[3], "ERROR [m]", error, 0, top, colors="inferno")
    for ax, (merci, method, rho, values) in zip(
        axes[4:-2], sorted(shown, key=lambda one: one[0]), strict=True
    ):
        picture(figure, ax, f"{method}\nMeRCI {merci:.3f}, rho {rho:.2f}", values, 0, top, colors="inferno")
    return figure
