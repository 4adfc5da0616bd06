"""``report.plot``, and what a report shows of itself in a session."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import SettingsError

from . import seen
from .test_pictures import problems


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    std = rng.gamma(3, 0.3, 600)
    return uq.evaluate(2 * std * rng.normal(size=600), np.zeros(600), std, unit="m", calibration=True)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 400)
    return uq.evaluate([int(rng.choice(3, p=p)) for p in probs], probs=probs)


@pytest.mark.slow
@pytest.mark.parametrize(("which", "panels"), [("report", 4), ("classes", 3)])
def test_one_sheet_holds_what_matters_and_can_be_read(which, panels, request):
    made = request.getfixturevalue(which)
    figure = made.plot()
    assert len([ax for ax in figure.axes if ax.get_title(loc="left")]) == panels
    assert made.verdict.calibration in seen.texts(figure).lower()
    assert problems(figure) == []


def test_figures_are_drawn_on_axes_that_are_given(report):
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set_xlabel("kept until it is drawn on")
    assert report.plot("reliability", ax=right) is figure
    bins = report.curves["reliability"].columns
    assert seen.holds_line(right, bins["rmv"], bins["rmse"])
    assert not left.lines
    assert right.get_title(loc="left").startswith("Reliability\nENCE")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["sparsification", "calibration", "error_vs_std", "pit_histogram", "coverage"]
)
def test_a_figure_alone_is_that_of_the_table(name, report):
    alone, logged = report.plot(name), plugins.figures()[name].draw(report)
    assert seen.texts(alone) == seen.texts(logged)


def test_what_cannot_be_drawn_is_named(report):
    with pytest.raises(
        SettingsError, match=r"no figure 'reliabilty' \(did you mean 'reliability'\?\); this report has"
    ):
        report.plot("reliabilty")
    with pytest.raises(SettingsError, match="no curves for 'by_group', which needs by_group_"):
        report.plot("by_group")
    ax = Figure().add_subplot()
    with pytest.raises(SettingsError, match="'recalibration' lays out its own axes; omit ax"):
        report.plot("recalibration", ax=ax)
    with pytest.raises(SettingsError, match="'overview' lays out its own axes"):
        report.plot(ax=ax)


def test_notebooks_show_figures_without_pyplot(report):
    png, shown_with = report.plot("calibration")._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert shown_with["alt"].startswith("Calibration")


def test_the_repr_of_curves_names_them():
    curves = uq.evaluate(np.arange(100.0), np.arange(100.0)[::-1], np.ones(100)).curves
    assert repr(curves) == f"<curves {', '.join(curves)}>"
    assert "calibration" in repr(curves)


@pytest.mark.parametrize("which", ["report", "classes"])
def test_a_repr_is_short_and_begins_with_the_verdict(which, request):
    made = request.getfixturevalue(which)
    lines = repr(made).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert " ".join(lines).startswith(made.verdict.text)
    words = re.split(r"[\s,]+", " ".join(lines)[len(made.verdict.text) :])
    assert set(made.scores) <= set(words)
    assert words.index("accuracy") < words.index("calibration") < words.index("ranking")


@pytest.mark.slow
def test_a_notebook_shows_verdict_scores_and_figures(report):
    html = report._repr_html_()
    assert html.index(report.verdict.text[:20]) < html.index("<table") < html.index("data:image/png;base64,")
    assert html.count("data:image/png;base64,") == 1
    assert all(f"<code>{key}</code>" in html for key in report.scores)
    assert "<script" not in html


def test_a_frame_has_a_row_per_score(report):
    frame = report.to_frame()
    assert dict(frame["value"]) == dict(report.scores)
    assert frame.loc["rmse", "unit"] == "m"
    assert frame.loc["ence", "by_chance"] == report.noise["ence"].high
    assert frame.loc["coverage_95", "judges"] == "calibration"


@pytest.mark.slow
def test_pictures_with_a_band_say_that_it_is_pointwise():
    rng = np.random.default_rng(0)
    std, labels = np.exp(0.3 * rng.normal(size=500)), rng.integers(0, 3, 500)
    reports = (
        uq.evaluate(std * rng.normal(size=500), np.zeros(500), std),
        uq.evaluate(labels, probs=rng.dirichlet(np.ones(3), 500)),
    )
    for report in reports:
        banded = [name for name, curve in report.curves.items() if "chance_low" in curve.columns]
        for name in ("overview", *banded):
            texts = [text.get_text() for text in report.plot(name).texts]
            assert any("pointwise: 5 % outside" in text for text in texts), name
