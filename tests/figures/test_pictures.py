"""Every registered figure can be read: no text is cut off or lies over another, every axis says what it shows."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.evaluation.scoring import score
from uq_tracking.report import Report

SMALL = 60
"""Dots per inch at which a figure of five inches is 300 pixels wide."""
ALL = "all"
LONG = "W" * 80
CASES = {
    "twenty": (ALL, SMALL),
    "a hundred": (("reliability", "calibration", "error_vs_std", "sparsification"), SMALL),
    "ten thousand": (ALL, SMALL),
    "ten million": (
        ("reliability", "calibration", "sparsification", "error_vs_std", "n_merci_by_alpha", "coverage"),
        SMALL,
    ),
    "lead times": (("by_group",), SMALL),
    "vectors": (("joint_coverage",), SMALL),
    "classes": (ALL, SMALL),
    "twenty classes": (ALL, None),
    "ties": (("reliability", "pit_histogram", "error_vs_std", "coverage"), SMALL),
    "constant std": (
        ("reliability", "sparsification", "sparsification_mae", "error_vs_std", "recalibration"),
        None,
    ),
    "outliers": (("reliability", "error_vs_std", "by_group", "by_target", "recalibration"), SMALL),
    "one group": (("by_group", "by_target", "calibration"), SMALL),
    "long names": (ALL, None),
}


@lru_cache
def report(case: str) -> Report:
    rng = np.random.default_rng(0)
    n = {"twenty": 20, "a hundred": 100, "ten thousand": 10_000}.get(case, 2000)
    y, std = rng.uniform(0, 30, n), np.exp(rng.normal(0, 0.6, n))
    error = 1.5 * std * rng.normal(size=n)
    if case == "ties":
        std, error = rng.choice([0.5, 1.0, 2.0], n), np.round(error, 1)
    elif case == "constant std":
        std = np.full(n, 1.5)
    elif case == "outliers":
        error[:3] *= 1e5
    if case == "ten million":
        return ten_million(y, error, std)
    if case.endswith("classes"):
        return classes(20 if case.startswith("twenty") else 2000, rng)
    if case == "lead times":
        by = np.asarray([6.0, 12.0, 24.0, 48.0])[np.arange(n) % 4]
        return uq.evaluate(uq.Predictions(y, y + error, std, by=by), unit="m")
    if case == "vectors":
        truth, size = rng.normal(size=(n, 2)), np.broadcast_to(np.eye(2), (n, 2, 2))
        return uq.evaluate(uq.Predictions.from_covariance(truth, 0 * truth, size))
    names = [LONG, LONG[:-1] + "b", "c" * 40] if case == "long names" else ["kitchen", "hall", "cellar"]
    label = np.asarray(names[:1] if case == "one group" else names)
    data = uq.Predictions(y, y + error, std, by=label[np.arange(n) % len(label)], groups=np.arange(n) % 25)
    if case == "twenty":
        return uq.evaluate(data, unit="m")
    made = uq.evaluate(
        data, unit="kg m^-2 s^-1 a^-1 K" if case == "long names" else "m", by_target=3.0, calibration=True,
        curves=["scale_sweep", "stability"], curve_metrics=["rmse", "n_merci", "coverage_95", "spherical_score"],
    )  # fmt: skip
    return made.labelled(method=LONG if case == "long names" else "mc-dropout", split="test")


def classes(n: int, rng: np.random.Generator) -> Report:
    p = rng.dirichlet(np.ones(4), n)
    return uq.evaluate(
        (rng.uniform(size=(n, 1)) > p.cumsum(axis=1)).sum(axis=1), probs=p, calibration=n > 100, by=np.arange(n) % 2,
        curves=["stability"] if n > 100 else [],
    ).labelled(method="mc-dropout", split="test")  # fmt: skip


def ten_million(y: np.ndarray, error: np.ndarray, std: np.ndarray) -> Report:
    """A sketch that is added to itself until it counts so many."""
    statistics = uq.evaluate(y, y + error, std, statistics="sketch").statistics
    for _ in range(13):
        statistics = statistics + statistics
    assert statistics.n > 10**7
    return score(statistics).labelled(method="deep-ensemble", split="test")


def texts(figure: Figure) -> list[tuple[str, object]]:
    """What can be read, with its place; labels of ticks beyond the limits are not drawn."""
    hidden = {label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for label in beyond(axis)}
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in found if text not in hidden]


def beyond(axis: Axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    slack = 1e-6 * (high - low)
    ticks = (tick for tick in axis.get_major_ticks() if not low - slack <= tick.get_loc() <= high + slack)
    return [label for tick in ticks for label in (tick.label1, tick.label2)]


def problems(figure: Figure) -> list[str]:
    """Texts that leave the canvas or lie over one another, and axes that do not say what they show."""
    figure.draw_without_rendering()
    width, height = figure.bbox.width, figure.bbox.height
    found = []
    seen = texts(figure)
    for text, box in seen:
        if box.x0 < -0.5 or box.y0 < -0.5 or box.x1 > width + 0.5 or box.y1 > height + 0.5:
            found.append(f"{text!r} is cut off")
    for (one, a), (other, b) in combinations(seen, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > 1 and high > 0.15 * min(a.height, b.height):
            found.append(f"{one!r} lies over {other!r}")
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            numbered = any(label.get_visible() and label.get_text() for label in axis.get_ticklabels())
            named = isinstance(axis.get_major_formatter(), FixedFormatter)
            if ax.axison and numbered and not named and not axis.get_label_text():
                found.append(f"the {axis.axis_name} axis has no label")
    return found


def drawn(case: str) -> list[tuple[str, int | None]]:
    names, dpi = CASES[case]
    made = report(case)
    known = plugins.figures(made.task)
    chosen = [name for name, spec in known.items() if not spec.lacks(made)] if names == ALL else names
    return [(name, dpi) for name in chosen]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_every_figure_can_be_read(case: str) -> None:
    found = {}
    for name, dpi in drawn(case):
        figure = plugins.figures(report(case).task)[name].draw(report(case))
        if dpi is not None:
            figure.set_dpi(dpi)
        found[name] = problems(figure)
    assert {name: list_ for name, list_ in found.items() if list_} == {}


@lru_cache
def in_unit(unit: str, factor: float) -> Report:
    """The same predictions of a length, told in metres or in shorter pieces."""
    rng = np.random.default_rng(0)
    y, std = rng.uniform(0, 30, 1000), np.exp(rng.normal(0, 0.6, 1000))
    error = 1.5 * std * rng.normal(size=1000)
    columns = (factor * column for column in (y, y + error, std))
    label = np.asarray(["a", "b", "c"])[np.arange(1000) % 3]
    data = uq.Predictions(*columns, by=label, groups=np.arange(1000) % 25)
    curves = ["scale_sweep", "stability", "reliability_isotonic", "merci_by_alpha"]
    judged = ["rmse", "n_merci", "spherical_score", "nll"]
    return uq.evaluate(
        data, unit=unit, by_target=3 * factor, calibration=True, curves=curves, curve_metrics=judged
    )


@pytest.mark.slow
@pytest.mark.parametrize(  # that of "where" names ranges
    "name", sorted(plugins.figures("regression").keys() - {"by_members", "joint_coverage", "where"})
)
def test_axes_that_change_with_the_unit_of_the_target_say_it(name: str) -> None:
    long, short = (
        plugins.figures("regression")[name].draw(in_unit(unit, factor))
        for unit, factor in (("m", 1.0), ("m/1024", 1024.0))
    )
    long.draw_without_rendering()
    short.draw_without_rendering()
    for one, other in zip(long.axes, short.axes, strict=True):
        for axis, scaled in ((one.xaxis, other.xaxis), (one.yaxis, other.yaxis)):
            if one.axison and any(label.get_text() for label in axis.get_ticklabels()):
                label = axis.get_label_text()
                changes = not np.allclose(axis.get_view_interval(), scaled.get_view_interval(), rtol=1e-3)
                assert changes == label.endswith("]"), label
                assert changes <= (label != scaled.get_label_text() or label.endswith("[nats]")), label
