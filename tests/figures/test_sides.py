"""On a reliability figure no legend, word or limit hides the dots, their intervals or the diagonal."""

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.figures.sides import name_sides
from uq_tracking.figures.style import new_figure

from . import made, seen

N, GROUPS = 2000, 20
KINDS = {
    "calibrated": lambda s: s,
    "overconfident": lambda s: 1.25 * s,
    "very overconfident": lambda s: 4 * s,
    "underconfident": lambda s: 0.5 * s,
    "very underconfident": lambda s: 0.2 * s,
    "crossing": lambda s: 11 - s,
}


def grouped(kind):
    """Uncertainties from 1 to 10 whose errors differ between groups, so that intervals are wide."""
    rng = np.random.default_rng(0)
    s, group = rng.uniform(1, 10, N), np.arange(N) % GROUPS
    e = KINDS[kind](s) * rng.normal(size=N) * np.exp(rng.normal(0, 0.5, GROUPS))[group]
    return uq.evaluate(e, np.zeros(N), s, groups=group)


@pytest.fixture(scope="module", params=KINDS)
def drawn(request):
    report = grouped(request.param)
    figure = made.draw("reliability", report)
    figure.draw_without_rendering()
    return report.curves["reliability"].columns, figure


@pytest.mark.slow
def test_the_axes_hold_the_intervals(drawn):
    bins, figure = drawn
    (ax,) = figure.axes
    low, high = ax.get_ylim()
    assert low <= min(bins["low"])
    assert max(bins["high"]) <= high


@pytest.mark.slow
def test_the_legend_names_the_intervals_and_lies_beside_the_axes(drawn):
    figure = drawn[1]
    (ax,), (legend,) = figure.axes, figure.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert named == ["calibrated", "95 % interval", "10 bins of 200 samples", "histogram of std"]
    assert legend.get_window_extent().y1 < ax.xaxis.get_tightbbox().y0
    assert ax.get_legend() is None


def test_words_lie_on_no_dot_interval_or_diagonal(drawn):
    bins, figure = drawn
    (ax,) = figure.axes
    x = np.concatenate([np.repeat(bins["rmv"], 50), np.linspace(*ax.get_xlim(), 500)])
    y = np.concatenate(
        [np.linspace(bins["low"], bins["high"], 50).T.ravel(), np.linspace(*ax.get_ylim(), 500)]
    )
    points = ax.transData.transform(np.stack([x, y], axis=1))
    words = [text for text in ax.texts if "confident" in text.get_text()]
    assert len(words) == 2
    for word in words:
        assert word.get_window_extent().count_contains(points) == 0, word.get_text()


def test_each_word_is_on_its_side(drawn):
    (ax,) = drawn[1].axes
    for word in ax.texts:
        box = word.get_window_extent().transformed(ax.transAxes.inverted())
        over = word.get_text() == "overconfident"
        assert (box.y0 > box.x1) if over else (box.y1 < box.x0), word.get_text()


def test_a_legend_without_intervals_has_no_entry_for_them():
    rng = np.random.default_rng(0)
    s = rng.uniform(1, 10, N)
    figure = made.draw("reliability", uq.evaluate(s * rng.normal(size=N), np.zeros(N), s))
    assert "95 % interval" not in seen.texts(figure)


def test_a_side_full_of_data_is_not_named():
    ax = new_figure().add_subplot()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    across = np.linspace(0, 1, 30)
    for level in np.linspace(0, 1, 30):
        ax.plot(across, level * across)
    name_sides(ax)
    assert [text.get_text() for text in ax.texts] == ["overconfident"]
