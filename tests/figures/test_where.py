"""The figure of where a model is wrong draws the places of the verdict."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from matplotlib.colors import to_hex

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import SettingsError
from uq_tracking.figures import style
from uq_tracking.report import Report

from . import seen
from .test_pictures import problems


@lru_cache
def report(kind: str) -> Report:
    rng = np.random.default_rng(0)
    n = 2000
    mean, std, noise = rng.normal(10, 3, n), np.exp(rng.normal(0, 0.6, n)), rng.normal(size=n)
    error = std * noise
    if kind == "small":
        error = np.sqrt(std) * noise
    elif kind == "bias":
        error += 0.4 * std * np.sign(mean - 10)
    elif kind == "constant":
        std = np.full(n, 1.5)
        error = 1.5 * noise * (1 + 0.5 * (mean > 12))
    elif kind == "tied":
        std = rng.choice([0.5, 1.0, 2.0], n, p=[0.5, 0.3, 0.2])
        error = std * noise
    elif kind == "wild":
        mean, std, error = (1e5 * each for each in (mean, std, std**3 * rng.standard_t(2, n)))
    return uq.evaluate(mean + error, mean, std, unit="m")


KINDS = ("calibrated", "small", "bias", "constant", "tied", "wild")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_read(kind):
    assert problems(report(kind).plot("where")) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_points_and_bars_are_those_of_the_verdict(kind):
    made = report(kind)
    figure, places = made.plot("where"), made.verdict.places
    across = len(places.parts)
    assert len(figure.axes) == 2 * across
    for column, parts in enumerate(places.parts.values()):
        for ax, value, low, high in (
            (figure.axes[column], "factor", "factor_low", "factor_high"),
            (figure.axes[across + column], "bias", "bias_high", "bias_low"),
        ):
            sign = 1 if value == "factor" else -1
            points = {x: y for drawn in ax.lines if drawn.get_marker() == "o" for x, y in drawn.get_xydata()}
            bars = {bar[0][0]: bar[:, 1] for drawn in ax.collections for bar in drawn.get_segments()}
            for place, part in enumerate(parts):
                assert points[place] == pytest.approx(sign * getattr(part, value))
                ends = np.clip([sign * getattr(part, low), sign * getattr(part, high)], *ax.get_ylim())
                assert bars[place] == pytest.approx(ends)


@pytest.mark.slow
def test_named_parts_are_orange_and_the_header_says_them():
    figure = report("small").plot("where")
    orange = [
        (number, x)
        for number, ax in enumerate(figure.axes)
        for drawn in ax.lines
        if drawn.get_marker() == "o" and to_hex(drawn.get_color()) == style.OVERCONFIDENT.lower()
        for x in drawn.get_xdata()
    ]
    assert sorted(orange) == [(0, 0), (0, 4)]
    header = " ".join(text.get_text() for text in figure.texts)
    assert "too small where std is 0.16 to 0.6 m" in header
    assert figure.axes[2].get_xlabel() == "Standard deviation [m]"
    nothing = report("calibrated").plot("where")
    assert any("No part of the samples" in text.get_text() for text in nothing.texts)


def test_parts_of_unequal_size_say_their_share():
    labels = [label.get_text() for label in report("tied").plot("where").axes[2].get_xticklabels()]
    assert [label.split("\n")[0] for label in labels] == ["0.5", "1", "2"]
    assert all(label.endswith(" %") for label in labels)


@pytest.mark.slow
def test_it_is_drawn_from_a_stored_report_and_logged(tmp_path):
    made = report("small")
    again = Report.from_json(made.to_json())
    assert seen.texts(again.plot("where")) == seen.texts(made.plot("where"))
    uq.log(made, run=f"dir:{tmp_path}")
    assert list(tmp_path.rglob("uq_where.png"))


@pytest.mark.slow
def test_without_places_there_is_no_figure(tmp_path):
    made = uq.evaluate(np.arange(30.0), np.zeros(30), np.ones(30))
    assert "where" not in made.figures
    with pytest.raises(SettingsError, match="the verdict looked at none"):
        made.plot("where")
    uq.log(made, run=f"dir:{tmp_path}")
    assert not list(tmp_path.rglob("uq_where.png"))
    assert "undefined" in seen.texts(plugins.figures()["where"].draw(made))


@pytest.mark.slow
def test_labels_have_a_column_for_each_set():
    rng = np.random.default_rng(1)
    n = 4000
    mean, std = rng.normal(size=n), np.exp(rng.normal(0, 0.3, n))
    organ, site = rng.choice(["kidney", "liver"], n), rng.integers(0, 12, n)
    truth = mean + std * rng.normal(size=n) * np.where(organ == "liver", 1.6, 1)
    named = np.asarray([f"hospital number {k}" for k in range(12)])[site]
    made = uq.evaluate(truth, mean, std, by={"organ": organ, "site": named}, metrics=["rmse"])
    figure, strata = made.plot("where"), made.verdict.places.strata
    assert problems(figure) == []
    assert [ax.get_xlabel() for ax in figure.axes[6:]] == ["organ", "site (8 of 12)"]
    factors = [y for ax in figure.axes[2:4] for drawn in ax.lines for y in seen_points(drawn)]
    assert sorted(factors[:2]) == pytest.approx(sorted(part.factor for part in strata[:2]))
    assert set(factors[2:]) < {part.factor for part in strata[2:]}
    assert "too small in organ: liver" in header(figure)


def seen_points(drawn):
    return drawn.get_ydata() if drawn.get_marker() == "o" else []


def header(figure):
    return " ".join(text.get_text() for text in figure.texts)


def test_an_order_has_a_column():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=2000) * np.linspace(0.7, 2, 2000)
    made = uq.evaluate(truth, np.zeros(2000), np.ones(2000), order=np.arange(2000), metrics=["rmse"])
    figure = made.plot("where")
    assert problems(figure) == []
    assert figure.axes[-1].get_xlabel() == "Place in the order [%]"
    assert "at 80 to 100 % of the order" in header(figure)
