"""Figures of the curves on demand: a panel for each metric, drawn from the curve's numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

import uq_tracking as uq
from uq_tracking import figures, plugins
from uq_tracking.figures import small_multiples, style

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


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_drawn_when_its_curves_are_there(name, report):
    spec = plugins.figures()[name]
    assert not spec.lacks(report)
    assert "which needs" in spec.lacks(replace(report, curves={}))
    figure = spec.draw(report)
    assert figures.to_png(figure).startswith(b"\x89PNG")
    if name != "scale_sweep":
        side = "get_xlabel" if name == "by_group" else "get_ylabel"
        assert [getattr(ax, side)() for ax in figure.axes] == ["rmse [m]", "ence"]
    assert "undefined" not in seen.texts(figure)


@pytest.mark.parametrize("name", NAMES)
def test_without_curves_the_figure_says_so(name):
    assert "undefined:" in seen.texts(made.draw(name, made.report({})))


@pytest.mark.slow
def test_panels_hold_the_numbers(report):
    rmse = made.draw("by_target", report).axes[0]
    curve = report.curves["by_target_rmse"].columns
    assert seen.holds_line(rmse, curve["target"], curve["rmse"])
    assert rmse.get_xlabel() == "Target [m]"
    members = report.curves["by_members_ence"].columns
    assert seen.holds_line(made.draw("by_members", report).axes[1], members["members"], members["mean"])
    sweep = report.curves["scale_sweep"].columns
    first = made.draw("scale_sweep", report).axes[0]
    assert first.get_ylabel() == "nll [nats]"
    assert seen.holds_line(first, sweep["factor"], sweep["nll"])
    assert seen.holds_line(first, sweep["factor"], sweep["nll_laplace"])


def test_bars_of_groups_are_named_and_as_high_as_the_score(report):
    ax = made.draw("by_group", report).axes[0]
    lengths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(lengths, report.curves["by_group_rmse"].columns["rmse"], rtol=1e-12)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a very long na…", "b"]


def test_a_set_that_is_too_small_is_marked(report):
    texts = [text for ax in made.draw("stability", report).axes for text in ax.texts]
    assert len(texts) == 2
    for text, key in zip(texts, ("rmse", "ence"), strict=True):
        small = report.verdicts[key].startswith("too small")
        assert text.get_text() == f"{'too small' if small else 'large enough'} at 400"
        assert (text.get_color() == style.OVERCONFIDENT) == small


def test_many_groups_keep_the_names_readable():
    n = 300
    y = np.random.default_rng(0).normal(size=n)
    many = uq.evaluate(y, 0 * y, 0 * y + 1, by=np.arange(n) // 3, curve_metrics=["mae"])
    ax = made.draw("by_group", many).axes[0]
    assert len(ax.get_yticks()) <= 16
    assert len(ax.patches) == 100
    assert {to_hex(bar.get_facecolor()) for bar in ax.patches} == {small_multiples.PALE.lower()}


def test_axes_do_not_follow_groups_of_few_samples():
    rng = np.random.default_rng(0)
    error, label = rng.normal(size=403), np.asarray(["many", "more", "few"]).repeat([200, 200, 3])
    error[label == "few"] = 1000.0
    report = uq.evaluate(error, 0 * error, 0 * error + 1, by=label, curve_metrics=["mae"], metrics=["bias"])
    figure = made.draw("by_group", report)
    (ax,) = figure.axes
    assert ax.get_xlim()[1] < 1
    (mark,) = [line for line in ax.lines if line.get_marker() == ">"]
    assert mark.get_xdata()[0] == ax.get_xlim()[1]
    assert "groups of fewer than 50 samples" in seen.texts(figure)
