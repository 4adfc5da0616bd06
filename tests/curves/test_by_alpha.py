"""MeRCI and n-MeRCI on any grid of shares, and the figure of MeRCI; against the scores at single shares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from tests.small_statistics import exact_statistics
from uq_tracking import plugins
from uq_tracking.curves.regression import merci_by_alpha, n_merci_by_alpha
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings

RNG = np.random.default_rng(3)
STD = RNG.gamma(3, 0.5, 500)
Y = STD * RNG.normal(size=500)


@pytest.mark.parametrize("grid", [[0.05, 0.33, 0.951, 1.0], np.linspace(0.6, 0.99, 7)])
def test_any_grid_holds_the_scores_at_its_shares(grid):
    statistics = exact_statistics(Y, 0 * Y, STD)
    merci = merci_by_alpha(statistics, Settings(), grid)
    for place, alpha in enumerate(grid):
        scores = uq.evaluate(Y, 0 * Y, STD, alpha=float(alpha)).scores
        assert_allclose(merci["merci"][place], scores["merci"], rtol=1e-12)
        if "n_merci" in scores:
            (value,) = n_merci_by_alpha(statistics, Settings(), [alpha])["n_merci"]
            assert_allclose(value, scores["n_merci"], rtol=1e-12)


def test_the_bounds_are_what_oracle_and_constant_score():
    statistics = exact_statistics(Y, 0 * Y, STD)
    curve = merci_by_alpha(statistics, Settings(), [0.5, 0.9])
    for place, alpha in enumerate((0.5, 0.9)):
        constant = uq.evaluate(Y, 0 * Y, 1.0, alpha=alpha).scores["merci"]
        assert_allclose(curve["constant"][place], constant, rtol=1e-12)
    oracle = uq.evaluate(Y, 0 * Y, np.abs(Y)).scores["merci"]
    assert_allclose(curve["oracle"], oracle, rtol=1e-12)


def test_shares_that_no_scale_covers_are_left_out():
    std = STD.copy()
    std[:250] = 0
    curve = merci_by_alpha(exact_statistics(Y, 0 * Y, std), Settings(), [0.4, 0.6])
    assert curve["alpha"].tolist() == [0.4]
    with pytest.raises(Undefined, match=r"undefined at every alpha: no finite scale covers 0\.6"):
        merci_by_alpha(exact_statistics(Y, 0 * Y, std), Settings(), [0.6])


def test_it_is_made_and_drawn_when_asked_for():
    assert "merci_by_alpha" not in uq.evaluate(Y, 0 * Y, STD).curves
    report = uq.evaluate(Y, 0 * Y, STD, curves="merci_by_alpha", unit="m")
    figure = plugins.curves()["merci_by_alpha"]
    assert figure.score == "merci"
    drawn = report.plot("merci_by_alpha")
    (ax,) = drawn.axes
    assert ax.get_ylabel() == "MeRCI [m]"
    shown = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert_allclose(shown["model"], report.curves["merci_by_alpha"].columns["merci"])
    assert set(shown) == {"constant std", "oracle", "model"}
