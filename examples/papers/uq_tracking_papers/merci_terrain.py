"""MeRCI's section 7: the metrics on maps, where they disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from uq_tracking.families import Gaussian, Laplace, Standard, Uniform
from uq_tracking.verbs import evaluate
from uq_tracking_papers.drawing import SMALL, panels
from uq_tracking_papers.results import Better
from uq_tracking_papers.study import Study
from uq_tracking_papers.terrain import COMMON, METHODS, SET_UP, Estimates, FloatArray, estimates
from uq_tracking_papers.toy import DENSITY_FLOOR

RULES: Mapping[str, Better] = {
    "quadratic_score": "higher",
    "log_score": "higher",
    "spherical_score": "higher",
    "crps": "lower",
}
PRIORS: Mapping[str, tuple[str, type[Standard]]] = {
    "U": ("_uniform", Uniform),
    "G": ("", Gaussian),
    "L": ("_laplace", Laplace),
}
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


def reproduce(study: Study) -> None:
    """Tables 2 to 4 and figure 4."""
    found = estimates(study)
    common = dict.fromkeys(METHODS, found.mean[COMMON])
    table_2(study, found, common)
    with_common = table_3(study, found, common)
    table_4(study, found, with_common)


@dataclass(frozen=True)
class Scored:
    """A quantity, which values of it are better, and its value by method."""

    key: str
    better: Better
    values: Mapping[str, float]

    def order(self) -> list[str]:
        """Methods from the best to the worst."""
        return sorted(self.values, key=self.values.__getitem__, reverse=self.better == "higher")


def scored(
    found: Estimates,
    mean: Mapping[str, FloatArray],
    window: tuple[slice, slice],
    priors: Sequence[str] = ("G",),
) -> tuple[list[Scored], dict[str, float]]:
    """Scores of all methods in a window of the terrain, and MeRCI's bounds with the common predictor."""
    target = found.terrain.target[window]
    table: dict[tuple[str, str], dict[str, float]] = {}
    bounds = {}
    for method in METHODS:
        m, s = mean[method][window], found.std[method][window]
        keys = [f"{rule}{PRIORS[prior][0]}" for rule in RULES if rule != "log_score" for prior in priors]
        scores = evaluate(target, m, s, metrics=[*keys, "merci", "mae"]).scores
        seen = np.isfinite(target)
        z, std = ((target - m) / s)[seen], s[seen]
        for rule in RULES:
            for prior in priors:
                ending, family = PRIORS[prior]
                value = log_score(family(), z, std) if rule == "log_score" else scores[f"{rule}{ending}"]
                table.setdefault((rule, prior), {})[method] = value
        table.setdefault(("merci", ""), {})[method] = scores["merci"]
        if method == COMMON:
            bounds = {
                "Oracle": scores["mae"],
                "Constant": evaluate(target, m, 1.0, metrics=["merci"]).scores["merci"],
            }
    several = len(priors) > 1
    return [
        Scored(f"{rule} {prior}" if several and prior else rule, RULES.get(rule, "lower"), values)
        for (rule, prior), values in table.items()
    ], bounds


def log_score(family: Standard, z: FloatArray, std: FloatArray) -> float:
    """Mean log of the density plus 0.001."""
    return float(np.mean(np.log(family.pdf(z) / std + DENSITY_FLOOR)))


def _tell(
    study: Study,
    item: str,
    columns: Sequence[Scored],
    bounds: Mapping[str, float],
    paper: Mapping[str, Sequence[float]],
    paper_bounds: Mapping[str, float],
) -> None:
    for name in BOUNDS if bounds else ():
        study.row(item, name, "merci", bounds[name], paper_bounds.get(name))
    for place, column in enumerate(columns):
        for method in METHODS:
            study.row(item, method, column.key, column.values[method], paper[method][place])


def window_of(terrain_shape: tuple[int, int], quick: bool) -> tuple[slice, slice]:
    """One "image" of the terrain: the demo's crop, or a part of it if the crop is all there is."""
    rows, columns = terrain_shape
    return (slice(0, rows // 2), slice(0, columns // 2)) if quick else (slice(120, 200), slice(150, 246))


def table_2(study: Study, found: Estimates, common: Mapping[str, FloatArray]) -> None:
    """One window of the map, with a common predictor, and its maps."""
    window = window_of(found.terrain.shape, study.quick)
    columns, bounds = scored(found, common, window)
    better = {column.key: column.better for column in columns}
    study.item(
        "table 2",
        "Scores on one window of the map, with a common predictor",
        f"{SET_UP} The paper's table is of one image. {SCALE}",
        better=better,
        bounds=BOUNDS,
    )
    _tell(study, "table 2", columns, bounds, TABLE_2, {})
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
        top = float(np.quantile(known, 0.99))
        low = float(known.min()) if title in ("height [m]", "prediction") else 0.0
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
    values = [[column.values[name] for name in METHODS] for column in (one, other)]
    return sign * float(stats.spearmanr(*values).statistic)


def table_3(study: Study, found: Estimates, common: Mapping[str, FloatArray]) -> list[Scored]:
    """The whole map with a common predictor, under three priors."""
    whole = slice(None), slice(None)
    columns, bounds = scored(found, common, whole, tuple(PRIORS))
    study.item(
        "table 3",
        "Scores on the whole map, with a common predictor",
        f"U, G, L: uniform, Gaussian and Laplace prior of the same mean and standard deviation. {SCALE} The paper's "
        "CRPS under a Laplace prior is 2.5 for every method, which cannot be: with the same standard deviations it "
        "lies within a few per cent of the Gaussian's.",
        better={column.key: column.better for column in columns},
        bounds=BOUNDS,
    )
    _tell(study, "table 3", columns, bounds, TABLE_3, {"Oracle": 0.356, "Constant": 1.11})
    by_rule = {rule: [column for column in columns if column.key.split()[0] == rule] for rule in RULES}
    alike = {rule: min(agreement(a, b) for a in three for b in three) for rule, three in by_rule.items()}
    study.finding(
        "The prior hardly changes how a rule ranks the methods (rank correlation of 0.8 or more)",
        min(alike.values()) >= 0.8,
        "least rank correlation between priors: "
        + ", ".join(f"{rule} {value:.2f}" for rule, value in alike.items()),
    )
    merci = columns[-1]
    gaussian = [three[1] for three in by_rule.values()]
    apart = {column.key: agreement(column, merci) for column in gaussian}
    study.finding(
        "The rules and MeRCI rank the methods differently (some rank correlation below 0.8)",
        min(apart.values()) < 0.8,
        "rank correlation with MeRCI: " + ", ".join(f"{key} {value:.2f}" for key, value in apart.items()),
    )
    first = favorite(gaussian)
    useless = [name for name in METHODS if merci.values[name] >= bounds["Constant"]]
    study.finding(
        "The method that most rules place first is no better than a constant uncertainty by MeRCI",
        first in useless,
        f"first by the rules: {first} with MeRCI {merci.values[first]:.3g} beside {bounds['Constant']:.3g} of a "
        f"constant; at or above it: {', '.join(useless) or 'none'}",
    )
    study.finding(
        "Multi Epochs is MeRCI's first, and the only one better than a constant",
        merci.order()[0] == "Multi Epochs" and len(useless) == len(METHODS) - 1,
        f"MeRCI's order: {', '.join(merci.order())}; constant {bounds['Constant']:.3g}",
    )
    return [*gaussian, merci]


def table_4(study: Study, found: Estimates, with_common: Sequence[Scored]) -> None:
    """The whole map, each method with its own predictor."""
    whole = slice(None), slice(None)
    columns, _ = scored(found, found.mean, whole)
    study.item(
        "table 4",
        "Scores on the whole map, each method with its own predictor",
        f"Gaussian prior. {SCALE}",
        better={column.key: column.better for column in columns},
    )
    _tell(study, "table 4", columns, {}, TABLE_4, {})
    alike = {own.key: agreement(own, common) for own, common in zip(columns, with_common, strict=True)}
    study.finding(
        "Common and own predictors lead to the same conclusions (rank correlation of 0.8 or more)",
        min(alike.values()) >= 0.8,
        "rank correlation of common and own: "
        + ", ".join(f"{key} {value:.2f}" for key, value in alike.items()),
    )
