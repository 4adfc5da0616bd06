"""Comparisons draw the curves of all runs over each other."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

import uq_tracking as uq
from tests.figures.test_pictures import problems
from uq_tracking.errors import SettingsError
from uq_tracking.figures.compared import MOST_NAMED
from uq_tracking.formatting import COLORS


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    std = rng.uniform(0.5, 2, 500)
    mean = rng.normal(size=500)
    truth = mean + std * rng.normal(size=500)
    for factor in (1.0, 0.5):
        uq.log(truth, mean, factor * std, run=f"dir:{folder}", method=f"x{factor}", unit="m", figures=False)
    return uq.compare(f"dir:{folder}")


def test_a_line_per_run_in_the_color_of_its_method(compared):
    ax = compared.plot("calibration").axes[0]
    named = {line.get_label(): to_hex(line.get_color()) for line in ax.lines if line.get_label()[0] != "_"}
    assert named == {method: COLORS[k] for method, k in compared.looks.items()}
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    for line in compared.curves["calibration"].lines:
        np.testing.assert_array_equal(drawn[line.label.split(" (")[0]], line.y)


def test_units_stand_on_the_axes_and_a_perfect_model_on_the_diagonal(compared):
    ax = compared.plot("reliability").axes[0]
    assert ax.get_xlabel().endswith("[m]")
    assert any(np.array_equal(line.get_xdata(), line.get_ydata()) for line in ax.lines)


def test_the_name_of_a_figure_draws_its_curve(compared):
    one, other = (compared.plot(name).axes[0] for name in ("sparsification", "sparsification_rmse"))
    assert [line.get_label() for line in one.lines] == [line.get_label() for line in other.lines]
    assert one.get_ylabel() == other.get_ylabel()


def test_the_overview_has_four_curves_and_one_legend(compared):
    figure = compared.plot()
    assert len(figure.axes) == 4
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(compared.methods)


def test_given_axes_are_drawn_on(compared):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert compared.plot("coverage", ax=ax) is ax.figure
    assert ax.lines
    with pytest.raises(SettingsError, match="several axes"):
        compared.plot(ax=ax)


def test_an_unknown_curve_is_named_with_the_closest(compared):
    with pytest.raises(SettingsError, match=r"no curve .calibrated.*calibration"):
        compared.plot("calibrated")


@pytest.mark.parametrize("curve", ["overview", "calibration"])
@pytest.mark.slow
def test_forty_runs_stay_readable(curve):
    y = np.random.default_rng(0).normal(size=60)
    stds = {f"method {k} " + "x" * 40: 0 * y + 0.5 + k / 40 for k in range(40)}
    reports = {name: uq.evaluate(y, 0 * y, std, unit="m", metrics=["rmse"]) for name, std in stds.items()}
    figure = uq.compare(reports).plot(curve)
    assert problems(figure) == []
    (legend,) = figure.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert len(set(named)) == MOST_NAMED
    assert all(not legend.get_window_extent().overlaps(ax.get_window_extent()) for ax in figure.axes)
