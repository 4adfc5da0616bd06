"""MeRCI (Moukari et al. 2018): the cubic with biased outliers (section 6), and six uncertainties of one scene (7).

The toy: the paper states neither the bias of the outliers, nor the range of the test inputs, nor how the networks
are trained. Here the bias is 60, test inputs are uniform in [-4, 4], as in training, or in [-6, 6], and one hidden
layer of 100 rectified linear units with dropout 0.2 is trained for 600 full-batch steps of Adam (rate 0.01), with 5
training sets for each seed (the paper: 1000 runs). All methods share the predictions of one network.

The scene: where the paper's networks estimate depth from images of NYU Depth v2, small ones complete the depth of
the Middlebury motorcycle, of which 5 % of the pixels were measured, from the 8 nearest measurements and the colors
of the image. Numbers are of other data; orders and signs can be compared. U, G and L are a uniform, Gaussian and
Laplace prior of the same mean and standard deviation; densities are per metre.

log_score is the mean of log(density + 0.001): the paper's end at -6.9 = log 0.001, where the plain ones would be
below -100 000. Its CRPS of 2.5 under a Laplace prior cannot be: it lies within a few per cent of the Gaussian's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import stats

from uq_tracking.figures.style import line
from uq_tracking.npz import Arrays
from uq_tracking.verbs import evaluate
from uq_tracking_papers.drawing import panel, panels
from uq_tracking_papers.moukari import (
    CHOICE,
    ENDS,
    ENGINE,
    EVERY,
    HELD_OUT,
    INLIERS,
    LEARNED,
    LEARNED_CHOICE,
    LEARNED_FROM,
    MAPPED,
    METHODS,
    PRIORS,
    RANGES,
    RULES,
    SCORES,
    SWEPT,
    WHEEL,
    WHOLE,
    Estimates,
    Window,
    by_percentile,
    by_range,
    counted,
    estimates,
    first,
    maps,
    memorized,
    part_of,
    scene_scores,
    toy_panels,
    toys,
)
from uq_tracking_papers.study import (
    ANALOGUE,
    Better,
    FloatArray,
    Study,
    each_over_seeds,
    medians,
    order,
    over_seeds,
    told,
)

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
PRINTED_BOUNDS = {"table 1": (19, 81), "table 3": (0.356, 1.11)}
ALIKE = 0.8
"""Rank correlation from which two orders of the methods count as the same."""
STABLE = 0.74, 0.92
"""Percentiles between which the paper sees one order."""
GAUSSIAN = {f"{rule} G": rule for rule in RULES} | {"merci": "merci"}
TITLES = {
    "quadratic_score": "quadratic score ↑",
    "nll": "negative log score ↓",
    "spherical_score": "spherical score ↑",
    "crps": "CRPS ↓",
    "coverage_95": "coverage at 95 %",
    "merci": "MeRCI ↓",
}


def reproduce(study: Study) -> None:
    """Every figure and table of the paper."""
    scores = toys(study)
    figure_1(study)
    figure_2(study, scores)
    figure_3(study, scores)
    table_1(study, scores)
    found = estimates(study)
    common, own = (
        study.cached(f"whole-{predictor}", partial(scene_scores, study, found, WHOLE, predictor))
        for predictor in ("common", "own")
    )
    table_2(study, found)
    figure_4(study, found)
    table_3(study, common, found)
    table_4(study, common, own)
    figures_5_and_6(study, found)


# --- the toy ---


def figure_1(study: Study) -> None:
    """Panel by panel what each method makes of one training set."""
    study.item("figure 1", "The toy data set and what the methods predict", "bias and test range are ours")
    study.figure(
        toy_panels(study, 2, 220),
        "Mean and two standard deviations, the cubic (dashed), and training samples from between the dotted lines, "
        "biased in the grey band: only Bagging is unsure there.",
    )


def figure_2(study: Study, found: Arrays) -> None:
    """One network's predictions with one standard deviation for all, swept by the curve scale_sweep."""
    study.item("figure 2", "Scores of a constant uncertainty against its value", choice=CHOICE)
    sigma, sweep = found["sigma"][0], dict(zip(SWEPT, np.moveaxis(found["sweep"], 2, 0), strict=True))
    shown = {key: np.median(values[:, 0], axis=0) for key, values in sweep.items()}
    best = {
        key: np.argmin(values, axis=-1) if key in ("nll", "crps") else np.argmax(values, axis=-1)
        for key, values in sweep.items()
        if key not in ("coverage_95", "merci")
    }  # seeds, ranges
    figure, axes = panels(2, 3)
    for ax, key in zip(axes, SWEPT, strict=True):
        panel(ax, TITLES[key], "standard deviation", "")
        ax.set_xscale("log")
        line(ax, sigma, shown[key])
        if key in best:
            place = shown[key].argmin() if key in ("nll", "crps") else shown[key].argmax()
            line(ax, sigma[[place]], shown[key][[place]], marker="o", markersize=7)
        for place in (0, 20, 40):
            study.row(key, f"sigma = {sigma[place]:g}", shown[key][place])
    axes[1].set_yscale("log")
    axes[5].set_ylim(0, 1.5 * shown["merci"][0])
    study.figure(
        figure, "Every score but MeRCI moves with the uncertainty stated (arrows: better; dots: best)."
    )
    moved = {key: np.ptp(values, axis=-1) / np.abs(values).max(axis=-1) for key, values in sweep.items()}
    still = moved.pop("merci") < 1e-12
    study.finding(
        "MeRCI is constant under scaling, while every other score is greatly impacted by it",
        by_range(still & (np.min(list(moved.values()), axis=0) > 0.2)),
        f"from sigma = 1 to 100 MeRCI does not change; the others by, of their largest: {medians(moved, '.0%')}",
    )
    study.finding(
        "Coverage is only sensitive to calibration: it grows with sigma",
        by_range(np.all(np.diff(sweep["coverage_95"], axis=-1) >= 0, axis=-1)),
        f"from {shown['coverage_95'][0]:.2f} to {shown['coverage_95'][-1]:.2f}",
    )
    study.finding(
        "CRPS keeps worsening as sigma increases",
        by_range(best["crps"] == 0),
        f"it is best at sigma = {over_seeds(sigma[best['crps'][:, 0]])} and worsens beyond",
    )
    highest = sigma[np.max(list(best.values()), axis=0)]
    study.finding(
        "Whatever the rule, its best sigma is rather low",
        by_range(highest < 50),
        f"largest of the rules' best sigmas, of 1 to 100: {over_seeds(highest[:, 0])}",
    )


def figure_3(study: Study, found: Arrays) -> None:
    """Medians over seeds and training sets."""
    study.item("figure 3", "MeRCI against the percentile", "both test ranges", choice=CHOICE)
    merci = by_range(np.median(found["merci"], axis=2))
    middle = {name: np.median(values, axis=0) for name, values in merci.items()}
    constant = by_range(np.median(found["constant"], axis=2))
    mae = by_range(np.median(found["common"][:, :, :, 0, SCORES.index("mae")], axis=2))
    figure = by_percentile(
        "MeRCI",
        middle,
        {name: np.median(values, axis=0) for name, values in constant.items()},
        2.5,
        {name: float(np.median(values)) for name, values in mae.items()},
        STABLE,
    )
    study.figure(
        figure,
        "Lower is better, above the grey dots worse than a constant: in the grey band, around the share of inliers "
        "(red), the paper sees one order, and here Bagging overtakes the others. Where few errors have to "
        "be covered, curves pass below the oracle, whose MeRCI is the mean error whatever alpha.",
    )
    for name, values in middle.items():
        for method, curve in zip(METHODS, values, strict=True):
            for alpha in (STABLE[0], INLIERS, STABLE[1]):
                study.row(method, f"alpha = {alpha:g}, {name}", curve[round(100 * alpha) - 1])
    narrow, *_ = RANGES
    ranks = {name: np.argsort(values, axis=1) for name, values in merci.items()}
    study.finding(
        "Between the 74th and the 92nd percentile MeRCI ranks the methods in one order",
        {name: np.all(of[..., 73:92] == of[..., 73:74], axis=(1, 2)) for name, of in ranks.items()},
        "; ".join(
            f"alpha {alpha:g}: {', '.join(np.array(METHODS)[np.argsort(middle[narrow][:, at])])}"
            for alpha, at in zip(STABLE, (73, 91), strict=True)
        ),
    )
    steps = {name: (of[..., 80:90] / of[..., 79:89]).max(axis=(1, 2)) - 1 for name, of in merci.items()}
    study.finding(
        "There is no abrupt change of MeRCI around the share of inliers (at most 15 % per percentile from 80 to 90)",
        {name: step < 0.15 for name, step in steps.items()},
        f"largest step {each_over_seeds(steps, '.0%')}",
    )


def table_1(study: Study, found: Arrays) -> None:
    """Medians over seeds and training sets, with test inputs in [-4, 4]; MeRCI also with [-6, 6]."""
    common = by_range(np.median(found["common"], axis=2))  # seeds, methods, scores
    constant = by_range(np.median(found["constant"][..., 94], axis=2))
    narrow, wide = RANGES
    column = SCORES.index("merci")
    better: dict[str, Better] = {**SHOWN, f"merci, {wide}": "lower"}
    title = "Scores on the toy, with the same predictions for all methods"
    study.item("table 1", title, "both test ranges", better=better, bounds=BOUNDS, choice=CHOICE)
    for name, quantity in ((narrow, "merci"), (wide, f"merci, {wide}")):
        bounds = common[name][:, 0, SCORES.index("mae")], constant[name]
        for bound, values, printed in zip(BOUNDS, bounds, PRINTED_BOUNDS["table 1"], strict=True):
            study.repeats(bound, quantity, values, printed)
    for place, method in enumerate(METHODS):
        for key, paper in zip(SHOWN, TABLE_1[method], strict=True):
            study.repeats(method, key, common[narrow][:, place, SCORES.index(key)], paper)
        study.repeats(method, f"merci, {wide}", common[wide][:, place, column], TABLE_1[method][-1])
    ranks = {name: ranked(values) for name, values in common.items()}  # seeds, scores, methods, best first
    bagging, dropout, epochs = (
        METHODS.index(name) for name in ("Bagging", "Monte Carlo Dropout", "Multi Epochs")
    )
    best = f"first by MeRCI in so many seeds: {counted({name: of[:, -1, 0] for name, of in ranks.items()})}"
    four = np.all(ranks[narrow][:, :4] == ranks[narrow][:, :1], axis=(1, 2))
    study.finding(
        "All scores, MeRCI included, agree on the ranking",
        {name: np.all(of == of[:, :1], axis=(1, 2)) for name, of in ranks.items()},
        f"medians over seeds, {narrow}: {orders(common[narrow])}; the four scoring rules agree among "
        f"themselves in {np.mean(four):.0%} of the seeds",
    )
    study.finding(
        "Bagging is the best method by every score",
        {name: np.all(of[..., 0] == bagging, axis=1) for name, of in ranks.items()},
        best,
    )
    two = {name: np.sort(of[..., :2], axis=-1) == sorted((bagging, dropout)) for name, of in ranks.items()}
    rules = {name: float(np.mean(np.all(of[:, :4], axis=(1, 2)))) for name, of in two.items()}
    study.finding(
        "Bagging and Monte Carlo Dropout are the two best by every score",
        {name: np.all(of, axis=(1, 2)) for name, of in two.items()},
        f"by the four scoring rules alone: {told(rules, '.0%')}; {best}",
    )
    last = {name: of[..., -1] == epochs for name, of in ranks.items()}
    study.finding(
        "Multi Epochs is the worst method by every score",
        {name: np.all(of, axis=1) for name, of in last.items()},
        f"last by so many of the five: {medians({name: np.sum(of, axis=1) for name, of in last.items()}, '.0f')}",
    )
    ratio = {name: of[..., column] / constant[name][:, None] for name, of in common.items()}
    study.finding(
        "By MeRCI, Multi Epochs is no better than a constant uncertainty",
        {name: of[:, epochs] > 0.98 for name, of in ratio.items()},
        "its MeRCI over a constant's (paper 81/81): "
        + each_over_seeds({name: of[:, epochs] for name, of in ratio.items()}),
    )
    mae = found["common"][..., SCORES.index("mae")]  # seeds, ranges, training sets, methods
    least = {
        f"{name}, alpha {alpha:g}": (
            found["merci"][:, place, ..., round(100 * alpha) - 1] / mae[:, place]
        ).min(axis=(1, 2))
        for place, name in enumerate(RANGES)
        for alpha in (0.95, STABLE[0])
    }
    study.finding(
        "No method has a lower MeRCI than the oracle (alpha = 0.95)",
        {name: least[f"{name}, alpha 0.95"] >= 1 for name in RANGES},
        f"least MeRCI over the oracle's: {each_over_seeds(least, '.2f')}",
    )
    study.finding(
        "By MeRCI, Bagging is better than a constant uncertainty",
        {name: of[:, bagging] < 1 for name, of in ratio.items()},
        "its MeRCI over a constant's (paper 53/81): "
        + each_over_seeds({name: of[:, bagging] for name, of in ratio.items()}),
    )


def ranked(values: FloatArray) -> npt.NDArray[np.intp]:
    """Places of the methods from the best to the worst, (seeds, scores of `SHOWN`, methods)."""
    signs = [1 if better == "lower" else -1 for better in SHOWN.values()]
    columns = [sign * values[..., SCORES.index(key)] for sign, key in zip(signs, SHOWN, strict=True)]
    return np.argsort(np.stack(columns, axis=1), axis=-1)


def orders(values: FloatArray) -> str:
    """The scores by the order in which their medians put the methods, in words."""
    found: dict[str, list[str]] = {}
    for key, better in SHOWN.items():
        middle = dict(zip(METHODS, np.median(values[..., SCORES.index(key)], axis=0).tolist(), strict=True))
        found.setdefault(", ".join(order(middle, better)), []).append(key)
    return "; ".join(f"{words} by {', '.join(keys)}" for words, keys in found.items())


# --- the scene ---


def report(
    study: Study,
    scores: Arrays,
    keys: Mapping[str, str],
    paper: Mapping[str, Sequence[float]],
    item: str = "",
) -> None:
    """Rows of a table: quantities by key of the scores; the bounds first."""
    for name, printed in zip(BOUNDS, PRINTED_BOUNDS.get(item, (None, None)), strict=True):
        study.repeats(name, "merci", scores[name], printed)
    for place, method in enumerate(EVERY):
        values = paper.get(method, (None,) * len(keys))
        for (key, quantity), value in zip(keys.items(), values, strict=True):
            study.repeats(method, quantity, scores[key][:, place], value)


def agreement(one: FloatArray, other: FloatArray, chosen: Sequence[int]) -> FloatArray:
    """Rank correlation of two scores over the methods, for each seed."""
    pairs = zip(one[:, chosen], other[:, chosen], strict=True)
    return np.asarray([stats.spearmanr(a, b).statistic for a, b in pairs])


def firsts(scores: Arrays) -> dict[str, npt.NDArray[np.intp]]:
    """The method that each rule places first, (seeds, rules), by what Learned Error learns from."""
    return {
        name: np.stack([first(scores[f"{rule} G"], better, of) for rule, better in RULES.items()], axis=1)
        for name, of in LEARNED_FROM.items()
    }


def favorite(of: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The method that most rules place first, for each seed; firsts (seeds, rules)."""
    return np.asarray([np.bincount(row).argmax() for row in of], dtype=np.intp)


def table_2(study: Study, found: Estimates) -> None:
    """The paper's table is of one image, ours of the rear wheel of figure 5."""
    compute = partial(scene_scores, study, found, part_of(found.scene, WHEEL), "common")
    scores = study.cached("part-common", compute)
    study.item(
        "table 2", "Scores on one part of the scene, with a common predictor",
        "the motorcycle's rear wheel for an image of NYU Depth v2, small networks for a ResNet",
        status=ANALOGUE, better=SHOWN, bounds=BOUNDS, choice=LEARNED_CHOICE,
    )  # fmt: skip
    report(study, scores, GAUSSIAN, TABLE_2)
    of_rules = firsts(scores)
    by_merci = {name: first(scores["merci"], "lower", of) for name, of in LEARNED_FROM.items()}
    main, *_ = of_rules.values()
    study.finding(
        "On one image all scoring rules agree on the best method",
        {name: np.all(of == of[:, :1], axis=1) for name, of in of_rules.items()},
        counted(dict(zip(RULES, main.T, strict=True)), MAPPED),
    )
    study.finding(
        "On one image the method that most scoring rules place first is not MeRCI's first",
        {name: favorite(of) != by_merci[name] for name, of in of_rules.items()},
        f"MeRCI's first: {counted(by_merci, MAPPED)}",
    )


def table_3(study: Study, scores: Arrays, found: Estimates) -> None:
    """All rules under all priors."""
    keys = {f"{rule} {prior}": f"{rule} {prior}" for rule in RULES for prior in PRIORS} | {"merci": "merci"}
    better: dict[str, Better] = {key: SHOWN[key.split()[0]] for key in keys}
    title, note = "Scores on the whole scene, with a common predictor", "the motorcycle for the NYU test set"
    study.item("table 3", title, note, status=ANALOGUE, better=better, bounds=BOUNDS, choice=LEARNED_CHOICE)
    report(study, scores, keys, TABLE_3, "table 3")
    pairs = [(f"{rule} G", f"{rule} {prior}") for rule in RULES for prior in ("U", "L")]
    alike = {
        name: np.min([agreement(scores[one], scores[other], of) for one, other in pairs], axis=0)
        for name, of in LEARNED_FROM.items()
    }
    study.finding(
        "The prior does not influence much how a rule ranks the methods (rank correlation of 0.8 or more)",
        {name: of >= ALIKE for name, of in alike.items()},
        f"least rank correlation between priors: {each_over_seeds(alike, '.2f')}",
    )
    networks, epochs, learned = (MAPPED.index(name) for name in ("Multi Networks", "Multi Epochs", LEARNED))
    of_rules = firsts(scores)
    study.finding(
        "Multi Networks is by far the best method by every scoring rule (scene)",
        {name: np.all(of == networks, axis=1) for name, of in of_rules.items()},
        f"first by quadratic score: {counted({name: of[:, 0] for name, of in of_rules.items()}, MAPPED)}; its "
        "networks differ here in width and depth only",
    )
    ratio = scores["merci"] / scores["Constant"][:, None]
    useless = {
        name: ratio[np.arange(len(ratio)), np.asarray(of)[favorite(of_rules[name])]]
        for name, of in LEARNED_FROM.items()
    }
    study.finding(
        "By MeRCI, the method that most rules place first is no better than a constant uncertainty",
        {name: of >= 1 for name, of in useless.items()},
        f"its MeRCI over a constant's: {each_over_seeds(useless, '.2f')}",
    )
    best = {name: first(scores["merci"], "lower", of) for name, of in LEARNED_FROM.items()}
    study.finding(
        "Multi Epochs is MeRCI's best (scene)",
        {name: of == epochs for name, of in best.items()},
        f"first by MeRCI in so many seeds: {counted(best, MAPPED)}; the paper explains its first place by the "
        "oscillations of a large network on a complex task, and ours are small",
    )
    middle = dict(zip(EVERY, ratio.T, strict=True))
    study.finding(
        "By MeRCI, Multi Epochs is the only method better than a constant uncertainty (scene)",
        {
            name: np.all((ratio[:, of] < 1) == (np.arange(len(of)) == epochs), axis=1)
            for name, of in LEARNED_FROM.items()
        },
        f"MeRCI over a constant's: {medians(middle, '.2f')}; here all are better: large errors lie at the edges of "
        "objects, where measurements disagree, and every method finds those",
    )
    worst: dict[str, Better] = {"lower": "higher", "higher": "lower"}
    study.finding(
        "MeRCI places Learned Error last, while some scoring rules do not",
        {
            name: (first(scores["merci"], "higher", of) == learned)
            & np.any(
                [first(scores[f"{rule} G"], worst[way], of) != learned for rule, way in RULES.items()], axis=0
            )
            for name, of in LEARNED_FROM.items()
        },
        f"MeRCI over a constant's: {medians({name: middle[name] for name in (LEARNED, HELD_OUT)}, '.2f')}",
    )
    memory = study.cached("memorized", partial(memorized, study, found))
    by_end = {name: memory[name] for name in ENDS}
    study.diagnostic(
        "In-sample Learned Error can be several times worse than a constant, as in the paper (n-MeRCI of 5.2 by "
        "its table 3): where the network memorized its training pixels and its output may come near 0",
        max(float(np.median(of)) for of in by_end.values()) > 2,
        "by how its output is kept positive, which the paper does not state, n-MeRCI is "
        f"{each_over_seeds(by_end, '.2f')}; this setting was sought for the purpose. Errors are "
        f"{np.median(memory['seen']):.3f} m on pixels seen, {np.median(memory['unseen']):.3f} m on others: it "
        "learns that they are small, and where it says almost none sets MeRCI's factor. The networks of table 3 "
        "(dropout, 15 passes) do not memorize; the paper of 2019 prints 0.65",
    )
    study.cannot_judge(
        "Multi Networks varies at the edges of the image, because its networks transfer artifacts from it",
        "it is said of networks of another kind, which turn whole images into maps",
    )


def table_4(study: Study, common: Arrays, own: Arrays) -> None:
    """Gaussian prior."""
    title, note = (
        "Scores on the whole scene, each method with its own predictor",
        "the motorcycle for the NYU test set",
    )
    study.item("table 4", title, note, status=ANALOGUE, better=SHOWN, bounds=BOUNDS, choice=LEARNED_CHOICE)
    report(study, own, GAUSSIAN, TABLE_4)
    alike = {
        name: np.asarray([agreement(own[key], common[key], of) for key in GAUSSIAN])
        for name, of in LEARNED_FROM.items()
    }
    main, *_ = alike.values()
    study.finding(
        "Common and own predictors lead to the same conclusions (rank correlation of 0.8 or more by every score)",
        {name: np.min(of, axis=0) >= ALIKE for name, of in alike.items()},
        f"rank correlation of common and own: {medians(dict(zip(SHOWN, main, strict=True)), '.2f')}",
    )


def figure_4(study: Study, found: Estimates) -> None:
    """Each uncertainty is rescaled by MeRCI's factor, so that it covers 95 % of the errors; its mean is its MeRCI."""
    title = "The error of a prediction, and which uncertainty resembles it"
    study.item("figure 4", title, "the motorcycle for a bedroom of NYU Depth v2", status=ANALOGUE)
    study.figure(
        maps(found, 0, WHOLE, apart=True),
        "How the others differ from the best map (left, on ERROR's scale; slate: truth unknown): red where they are "
        "less sure, blue where surer. Monte Carlo Dropout is less sure along edges, Learned Error also inside "
        "objects and on the ground; the rest differ by noise. rho: rank correlation with ERROR.",
    )


def figures_5_and_6(study: Study, found: Estimates) -> None:
    """Two further parts of the scene; and one of them where the truth of a patch is 1 m too far."""
    study.item(
        "figure 5",
        "The same on further parts of the scene",
        "two parts of the motorcycle, without the column of the ground truth",
        status=ANALOGUE,
    )
    study.figure(
        maps(found, 1, part_of(found.scene, WHEEL)), "Rear wheel, best first: Learned Error is last again."
    )
    study.figure(
        maps(found, 0, part_of(found.scene, ENGINE)), "Engine, best first: Learned Error is last again."
    )
    window = part_of(found.scene, ENGINE)
    rows, columns = found.scene.target[window].shape
    wrong = np.zeros((rows, columns))
    by = float(np.round(1.25 * np.nanstd(found.scene.target), 1))
    wrong[rows // 8 : rows // 8 + rows // 6, columns // 3 : columns // 3 + columns // 9] = by
    title = "The same where the ground truth is wrong in places"
    note = f"the truth of a patch, {np.mean(wrong > 0):.1%} of the pixels, made {by:g} m too far"
    study.item("figure 6", title, note, status=ANALOGUE)
    study.figure(
        maps(found, 0, window, wrong=wrong),
        "The wrong patch (outlined in the truth) is the bright rectangle of ERROR: no uncertainty foresees it, and "
        "the order hardly changes.",
    )
    before, after = (merci_by_seed(found, window, add) for add in (0 * wrong, wrong))
    for place, method in enumerate(MAPPED):
        study.repeats(method, "MeRCI, right truth", before[:, place])
        study.repeats(method, "MeRCI, wrong truth", after[:, place])
    alike = agreement(before, after, range(len(MAPPED)))
    study.diagnostic(
        "A wrong patch leaves MeRCI's order of the methods as it is (median rank correlation of 0.8 or more)",
        np.median(alike) >= ALIKE,
        f"rank correlation {over_seeds(alike, '.2f')}; MeRCI grows {over_seeds(after / before, '.2f')} times: the "
        "patch takes up the room that the percentile leaves",
    )


def merci_by_seed(found: Estimates, window: Window, add: FloatArray) -> FloatArray:
    """MeRCI (seeds, methods) with a common predictor where ``add`` is added to the truth."""
    rows = []
    for seed, base in enumerate(found.base):
        y, stds = found.target(seed)[window] + add, [found.std[method][seed][window] for method in MAPPED]
        rows.append([evaluate(y, base[window], std, metrics=["merci"]).scores["merci"] for std in stds])
    return np.asarray(rows)
