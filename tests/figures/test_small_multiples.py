"""Figures of the curves on demand: a panel for each metric, drawn from the curve's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking import figures, plugins
from uq_tracking.figures import style

from . import made, seen

NAMES = ["scale_sweep", "by_group", "by_target", "by_members", "stability"]


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    y, std = rng.uniform(0.5, 3, 400), rng.gamma(3, 0.3, 400)
    draws = y + std * rng.normal(size=(8, 400))
    data = uq.Predictions.from_ensemble(
        y, draws, by=np.asarray(["a very long name of a room", "b"])[np.arange(400) % 2]
    )
    curves = ["scale_sweep", "by_members", "stability"]
    return uq.evaluate(data, curves=curves, by_target=0.5, curve_metrics=["rmse", "ence"], unit="m")


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_drawn_when_its_curves_are_there(name, report):
    spec = plugins.figures()[name]
    assert spec.has_curves(report.curves)
    assert not spec.has_curves({"reliability"})
    figure = spec.draw(report)
    assert figures.to_png(figure).startswith(b"\x89PNG")
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == (["rmse", "ence"] if name != "scale_sweep" else [*titles])
    assert "undefined" not in seen.texts(figure)


@pytest.mark.parametrize("name", NAMES)
def test_without_curves_the_figure_says_so(name):
    assert "undefined:" in seen.texts(getattr(figures, name)(made.report({})))


def test_panels_hold_the_numbers(report):
    rmse = figures.by_target(report).axes[0]
    curve = report.curves["by_target_rmse"].columns
    assert seen.holds_line(rmse, curve["target"], curve["rmse"])
    assert rmse.get_xlabel() == "target [m]"
    members = report.curves["by_members_ence"].columns
    assert seen.holds_line(figures.by_members(report).axes[1], members["members"], members["mean"])
    sweep = report.curves["scale_sweep"].columns
    first = figures.scale_sweep(report).axes[0]
    assert first.get_title() == "nll"
    assert seen.holds_line(first, sweep["factor"], sweep["nll"])
    assert seen.holds_line(first, sweep["factor"], sweep["nll_laplace"])


def test_bars_of_groups_are_named_and_as_high_as_the_score(report):
    ax = figures.by_group(report).axes[0]
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, report.curves["by_group_rmse"].columns["rmse"], rtol=1e-12)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a very long…", "b"]


def test_a_set_that_is_too_small_is_marked(report):
    texts = [text for ax in figures.stability(report).axes for text in ax.texts]
    assert len(texts) == 2
    for text, key in zip(texts, ("rmse", "ence"), strict=True):
        small = report.verdicts[key].startswith("too small")
        assert text.get_text() == f"{'too small' if small else 'large enough'} at 400"
        assert (text.get_color() == style.OVERCONFIDENT) == small


def test_many_groups_keep_the_names_readable():
    n = 300
    y = np.random.default_rng(0).normal(size=n)
    many = uq.evaluate(y, 0 * y, 0 * y + 1, by=np.arange(n) // 3, curve_metrics=["mae"])
    ax = figures.by_group(many).axes[0]
    assert len(ax.get_xticks()) <= 24
    assert len(ax.patches) == 100
