"""MeRCI (Moukari et al. 2018): the cubic with biased outliers (section 6), and six uncertainties of one map (7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from uq_tracking.families import Gaussian, Laplace, Standard, Uniform
from uq_tracking.figures.style import ORACLE, RANDOM, REFERENCE, legend, line
from uq_tracking.verbs import evaluate
from uq_tracking_papers.datasets import OUTLIERS, TEST_RANGE
from uq_tracking_papers.drawing import LOOKS, SMALL, lines, panel, panels
from uq_tracking_papers.moukari import (
    ALPHAS,
    COMMON,
    DENSITY_FLOOR,
    MAPPED,
    METHODS,
    SCORES,
    SET_UP,
    TERRAIN_SET_UP,
    Estimates,
    ensembles,
    estimates,
    repeats,
    test_set,
)
from uq_tracking_papers.study import Better, FloatArray, Study, order, told

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

PRIORS: Mapping[str, tuple[str, type[Standard]]] = {
    "U": ("_uniform", Uniform),
    "G": ("", Gaussian),
    "L": ("_laplace", Laplace),
}
RULES = tuple(SHOWN)[:4]
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
    "Densities are per metre. The log score is that of the density plus 0.001 per metre, as in table 1, so that a "
    "target outside a uniform prior has one too."
)
WHOLE = (slice(None), slice(None))


def reproduce(study: Study) -> None:
    """Every figure and table of the paper except its further example images."""
    figure_1(study)
    figure_2(study)
    found = repeats(study)
    figure_3(study, found["merci"], found["constant"], found["common"])
    table_1(study, found["common"], found["constant"])
    predicted = estimates(study)
    common = dict.fromkeys(MAPPED, predicted.mean[COMMON])
    table_2(study, predicted, common)
    with_common = table_3(study, predicted, common)
    table_4(study, predicted, with_common)


def figure_1(study: Study) -> None:
    """The toy data set and what the methods predict.

    {set_up}
    """
    study.item("figure 1", figure_1, set_up=SET_UP)
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
    """Scores of a constant uncertainty against its value.

    One network's predictions with one standard deviation for all of them, swept by the curve scale_sweep.
    """
    study.item("figure 2", figure_2)
    test = test_set(study)
    predicted = ensembles(study, 0, test.x)[1].base
    sweep = evaluate(test.y, predicted, SIGMA, curves="scale_sweep").curves["scale_sweep"].columns
    sigma, crps = SIGMA * sweep["factor"], sweep["crps"]
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
    study.finding(
        "Coverage only grows with sigma; CRPS has its best sigma inside the range and worsens beyond it",
        np.all(np.diff(sweep["coverage_95"]) >= 0) and 0 < np.argmin(crps) < len(crps) - 1,
        f"coverage {sweep['coverage_95'][0]:.2f} to {sweep['coverage_95'][-1]:.2f}; CRPS {crps.min():.3g} at sigma "
        f"{sigma[np.argmin(crps)]:.3g}, {crps[-1]:.3g} at 100",
    )


def figure_3(study: Study, merci: FloatArray, constant: FloatArray, common: FloatArray) -> None:
    """MeRCI against the percentile.

    Median over {count} repeats, each with its own training set (the paper: 1000 runs). Predictions are those of one
    network, the same for all methods.
    """
    study.item("figure 3", figure_3, count=len(merci))
    middle = dict(zip(METHODS, np.median(merci, axis=0), strict=True))
    constants = np.median(constant, axis=0)
    oracle = np.full(len(ALPHAS), np.median(common[:, 0, SCORES.index("mae")]))
    for method, values in middle.items():
        for alpha in (0.5, 0.74, 0.85, 0.92, 0.95):
            study.row("figure 3", method, f"alpha = {alpha:g}", values[round(100 * alpha) - 1])
    figure, (ax,) = panels(1, 1, width=6.0, height=4.2)
    panel(ax, "", "share alpha of errors to cover", "MeRCI")
    line(ax, ALPHAS, constants, color=RANDOM, linestyle=":", label="constant")
    line(ax, ALPHAS, oracle, color=ORACLE, linestyle="--", linewidth=1.2, label="oracle")
    lines(ax, ALPHAS, middle)
    ax.axvline(0.85, color="#B22222", linewidth=1.0)
    ax.set_ylim(0, 3 * constants[94])
    legend(ax, loc="upper left")
    study.figure(
        "figure 3", figure, "Medians over repeats; red: the share of training samples without bias, 85 %."
    )
    orders = {
        f"alpha {alpha:g}": order({name: values[round(100 * alpha) - 1] for name, values in middle.items()})
        for alpha in (0.74, 0.85, 0.92)
    }
    study.finding(
        "Between the 74th and the 92nd percentile MeRCI ranks the methods in one order",
        len(set(map(tuple, orders.values()))) == 1,
        "; ".join(f"{alpha}: {', '.join(names)}" for alpha, names in orders.items()),
    )


def table_1(study: Study, common: FloatArray, constant: FloatArray) -> None:
    """Scores on the toy, with the same predictions for all methods.

    Medians over {count} repeats. log_score is the mean of log(density + 0.001): the paper's log scores end at -6.9 =
    log 0.001, also for Multi Epochs, whose quadratic score of -28 tells of standard deviations near 0.01 beside
    errors of 19, so that the plain log score would be below -100 000. {set_up}
    """
    study.item("table 1", table_1, better=SHOWN, bounds=BOUNDS, count=len(common), set_up=SET_UP)
    study.repeats("table 1", "Oracle", "merci", common[:, 0, SCORES.index("mae")], ORACLE_MERCI)
    study.repeats("table 1", "Constant", "merci", constant[:, 94], CONSTANT_MERCI)
    scores = {
        method: {key: common[:, place, SCORES.index(key)] for key in SHOWN}
        for place, method in enumerate(METHODS)
    }
    for method, values in scores.items():
        for key, paper in zip(SHOWN, TABLE_1[method], strict=True):
            study.repeats("table 1", method, key, values[key], paper)
    middle = {key: {name: float(np.median(scores[name][key])) for name in METHODS} for key in SHOWN}
    orders = {key: order(values, SHOWN[key]) for key, values in middle.items()}
    merci = common[:, :, SCORES.index("merci")]
    ahead = scores["Bagging"]["merci"] < scores["Multi Epochs"]["merci"]
    study.finding(
        "Bagging is ahead of Multi Epochs by every score",
        all(names.index("Bagging") < names.index("Multi Epochs") for names in orders.values()),
        "; ".join(f"{key} {v['Bagging']:.3g} and {v['Multi Epochs']:.3g}" for key, v in middle.items())
        + f"; by MeRCI on {np.mean(ahead):.0%} of the training sets",
    )
    firsts = {name: np.mean(np.argmin(merci, axis=1) == place) for place, name in enumerate(METHODS)}
    study.finding(
        "Bagging is the best method by every score",
        all(names[0] == "Bagging" for names in orders.values()),
        "; ".join(f"{key}: {names[0]}" for key, names in orders.items())
        + f"; by MeRCI first on so many training sets: {told(firsts, '.0%')}",
    )
    study.finding(
        "Multi Epochs is the worst method by every score",
        all(names[-1] == "Multi Epochs" for names in orders.values()),
        "; ".join(f"{key}: {names[-1]}" for key, names in orders.items()),
    )
    ratio = scores["Multi Epochs"]["merci"] / constant[:, 94]
    study.finding(
        "By MeRCI, Multi Epochs is no better than a constant uncertainty",
        np.median(ratio) > 0.95,
        f"its MeRCI over a constant's: median {np.median(ratio):.2f}, {np.quantile(ratio, 0.05):.2f} to "
        f"{np.quantile(ratio, 0.95):.2f} over repeats (paper 81/81)",
    )


@dataclass(frozen=True)
class Scored:
    """A quantity, which values of it are better, and its value by method."""

    key: str
    better: Better
    values: Mapping[str, float]

    def order(self) -> list[str]:
        """Methods from the best to the worst."""
        return order(self.values, self.better)


def scored(
    found: Estimates,
    mean: Mapping[str, FloatArray],
    window: tuple[slice, slice],
    priors: Sequence[str] = ("G",),
) -> tuple[list[Scored], dict[str, float]]:
    """Scores of all methods in a window of the terrain, and MeRCI's bounds with the common predictor."""
    target = found.terrain.target[window]
    seen = np.isfinite(target)
    table: dict[tuple[str, str], dict[str, float]] = {}
    bounds = {}
    for method in MAPPED:
        m, s = mean[method][window], found.std[method][window]
        keys = [f"{rule}{PRIORS[prior][0]}" for rule in RULES if rule != "log_score" for prior in priors]
        scores = evaluate(target, m, s, metrics=[*keys, "merci", "mae"]).scores
        z, std = ((target - m) / s)[seen], s[seen]
        for rule in RULES:
            for prior in priors:
                ending, family = PRIORS[prior]
                value = log_score(family(), z, std) if rule == "log_score" else scores[f"{rule}{ending}"]
                table.setdefault((rule, prior), {})[method] = value
        table.setdefault(("merci", ""), {})[method] = scores["merci"]
        if method == COMMON:
            constant = evaluate(target, m, 1.0, metrics=["merci"]).scores["merci"]
            bounds = {"Oracle": scores["mae"], "Constant": constant}
    several = len(priors) > 1
    columns = [
        Scored(f"{rule} {prior}" if several and prior else rule, SHOWN[rule], values)
        for (rule, prior), values in table.items()
    ]
    return columns, bounds


def log_score(family: Standard, z: FloatArray, std: FloatArray) -> float:
    """Mean log of the density plus 0.001."""
    return float(np.mean(np.log(family.pdf(z) / std + DENSITY_FLOOR)))


def report(
    study: Study,
    item: str,
    columns: Sequence[Scored],
    paper: Mapping[str, Sequence[float]],
    bounds: Mapping[str, float] | None = None,
    paper_bounds: Mapping[str, float] | None = None,
) -> None:
    """The rows of a table, the bounds first."""
    for name, value in (bounds or {}).items():
        study.row(item, name, "merci", value, (paper_bounds or {}).get(name))
    for place, column in enumerate(columns):
        for method in MAPPED:
            study.row(item, method, column.key, column.values[method], paper[method][place])


def window_of(terrain_shape: tuple[int, int], quick: bool) -> tuple[slice, slice]:
    """One "image" of the terrain: the demo's crop, or a part of it if the crop is all there is."""
    rows, columns = terrain_shape
    return (slice(0, rows // 2), slice(0, columns // 2)) if quick else (slice(120, 200), slice(150, 246))


def table_2(study: Study, found: Estimates, common: Mapping[str, FloatArray]) -> None:
    """Scores on one window of the map, with a common predictor.

    {set_up} The paper's table is of one image. {scale}
    """
    window = window_of(found.terrain.shape, study.quick)
    columns, bounds = scored(found, common, window)
    better = {column.key: column.better for column in columns}
    study.item("table 2", table_2, better=better, bounds=BOUNDS, set_up=TERRAIN_SET_UP, scale=SCALE)
    report(study, "table 2", columns, TABLE_2, bounds)
    *rules, merci = columns
    study.finding(
        "On one image, the method that most scoring rules place first is not MeRCI's first",
        favorite(rules) != merci.order()[0],
        f"scoring rules: {'; '.join(f'{column.key} {column.order()[0]}' for column in rules)}; "
        f"MeRCI: {merci.order()[0]}",
    )
    study.item("figure 4", "Predictions, errors and uncertainties on that window")
    target, mean = found.terrain.target[window], common[COMMON][window]
    figure, axes = panels(3, 3, width=3.2, height=2.9)
    maps = {"height [m]": target, "prediction": mean, "absolute error": np.abs(target - mean)}
    titles = {f"{name}\nMeRCI {merci.values[name]:.3g}": found.std[name][window] for name in merci.order()}
    for ax, (title, values) in zip(axes, {**maps, **titles}.items(), strict=True):
        ax.set_axis_off()
        ax.set_title(title, fontsize=SMALL)
        known = values[np.isfinite(values)]
        low = float(known.min()) if title in ("height [m]", "prediction") else 0.0
        top = float(np.quantile(known, 0.99))
        drawn = ax.imshow(values, cmap="viridis", vmin=low, vmax=top, interpolation="nearest")
        figure.colorbar(drawn, ax=ax, fraction=0.04, pad=0.02).ax.tick_params(labelsize=SMALL - 2)
    study.figure(
        "figure 4",
        figure,
        "Uncertainties in the order of MeRCI, each on its own scale; metres; white cells were measured.",
    )


def favorite(columns: Sequence[Scored]) -> str:
    """The method that is most often first."""
    firsts = [column.order()[0] for column in columns]
    return max(firsts, key=firsts.count)


def agreement(one: Scored, other: Scored) -> float:
    """Rank correlation of two columns, 1 if both rank the methods alike."""
    sign = 1.0 if one.better == other.better else -1.0
    values = [[column.values[name] for name in MAPPED] for column in (one, other)]
    return sign * float(stats.spearmanr(*values).statistic)


def table_3(study: Study, found: Estimates, common: Mapping[str, FloatArray]) -> list[Scored]:
    """Scores on the whole map, with a common predictor.

    U, G, L: uniform, Gaussian and Laplace prior of the same mean and standard deviation. {scale} The paper's CRPS
    under a Laplace prior is 2.5 for every method, which cannot be: with the same standard deviations it lies within a
    few per cent of the Gaussian's.
    """
    columns, bounds = scored(found, common, WHOLE, tuple(PRIORS))
    better = {column.key: column.better for column in columns}
    study.item("table 3", table_3, better=better, bounds=BOUNDS, scale=SCALE)
    report(study, "table 3", columns, TABLE_3, bounds, {"Oracle": 0.356, "Constant": 1.11})
    by_rule = {rule: [column for column in columns if column.key.split()[0] == rule] for rule in RULES}
    alike = {rule: min(agreement(a, b) for a in three for b in three) for rule, three in by_rule.items()}
    study.finding(
        "The prior hardly changes how a rule ranks the methods (rank correlation of 0.8 or more)",
        min(alike.values()) >= 0.8,
        f"least rank correlation between priors: {told(alike, '.2f')}",
    )
    merci = columns[-1]
    gaussian = [three[1] for three in by_rule.values()]
    apart = {column.key: agreement(column, merci) for column in gaussian}
    study.finding(
        "The rules and MeRCI rank the methods differently (some rank correlation below 0.8)",
        min(apart.values()) < 0.8,
        f"rank correlation with MeRCI: {told(apart, '.2f')}",
    )
    first = favorite(gaussian)
    useless = [name for name in MAPPED if merci.values[name] >= bounds["Constant"]]
    study.finding(
        "The method that most rules place first is no better than a constant uncertainty by MeRCI",
        first in useless,
        f"first by the rules: {first} with MeRCI {merci.values[first]:.3g} beside {bounds['Constant']:.3g} of a "
        f"constant; at or above it: {', '.join(useless) or 'none'}",
    )
    study.finding(
        "Multi Epochs is MeRCI's first, and the only one better than a constant",
        merci.order()[0] == "Multi Epochs" and len(useless) == len(MAPPED) - 1,
        f"MeRCI's order: {', '.join(merci.order())}; constant {bounds['Constant']:.3g}",
    )
    return [*gaussian, merci]


def table_4(study: Study, found: Estimates, with_common: Sequence[Scored]) -> None:
    """Scores on the whole map, each method with its own predictor.

    Gaussian prior. {scale}
    """
    columns, _ = scored(found, found.mean, WHOLE)
    study.item("table 4", table_4, better={column.key: column.better for column in columns}, scale=SCALE)
    report(study, "table 4", columns, TABLE_4)
    alike = {own.key: agreement(own, common) for own, common in zip(columns, with_common, strict=True)}
    study.finding(
        "Common and own predictors lead to the same conclusions (rank correlation of 0.8 or more)",
        min(alike.values()) >= 0.8,
        f"rank correlation of common and own: {told(alike, '.2f')}",
    )
