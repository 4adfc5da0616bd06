"""Bands around the diagonal: exact quantiles, and how often points of calibrated forecasts lie inside."""

import numpy as np
import pytest
from scipy import stats

import uq_tracking as uq
from tests.inference.made import classes, forecasts, report

CURVES = ("calibration", "coverage", "coverage_error", "pit_histogram", "reliability", "reliability_isotonic")


def band(curve):
    return curve.columns["chance_low"], curve.columns["chance_high"]


def inside(curve):
    """Share of the points inside, of an isotonic curve at even places: its corners are its extremes."""
    x, names = curve.columns[curve.x], ("chance_low", curve.main, "chance_high")
    places = np.linspace(x[0], x[-1], 82)[1:-1] if curve.name == "reliability_isotonic" else x
    low, main, high = (np.interp(places, x, curve.columns[name]) for name in names)
    return np.mean((low <= main + 1e-12) & (main <= high + 1e-12))


def test_shares_have_binomial_quantiles():
    curve = report(np.random.default_rng(0), 200, metrics=["rmse"]).curves["calibration"]
    low, high = band(curve)
    levels = curve.columns["expected"]
    np.testing.assert_allclose(low, stats.binom.ppf(0.025, 200, levels) / 200, atol=1e-12)
    np.testing.assert_allclose(high, stats.binom.ppf(0.975, 200, levels) / 200, atol=1e-12)


def test_cells_of_the_pit_histogram_have_binomial_quantiles():
    curve = report(np.random.default_rng(0), 200, metrics=["rmse"]).curves["pit_histogram"]
    for end, tail in zip(band(curve), (0.025, 0.975), strict=True):
        np.testing.assert_allclose(end, 20 * stats.binom.ppf(tail, 200, 1 / 20) / 200, atol=1e-12)


def test_bins_of_nearly_equal_stds_have_chi_squared_quantiles():
    truth = np.random.default_rng(1).normal(size=500)
    std = 2 + 1e-12 * np.arange(500)  # equal ones would share one mean squared error
    curve = uq.evaluate(truth, np.zeros(500), std, n_bins=5).curves["reliability"]
    low, high = band(curve)
    np.testing.assert_allclose(low, 2 * np.sqrt(stats.chi2.ppf(0.025, 100) / 100), rtol=1e-9)
    np.testing.assert_allclose(high, 2 * np.sqrt(stats.chi2.ppf(0.975, 100) / 100), rtol=1e-9)


def shares_inside(groups, repeats):
    """Shares of the points that lie inside the band, by curve."""
    rng = np.random.default_rng(2)
    found = {name: [] for name in CURVES}
    for _ in range(repeats):
        one = report(rng, 900, groups=groups, metrics=["rmse"], curves="reliability_isotonic")
        for name in CURVES:
            found[name].append(inside(one.curves[name]))
    return rng, found


@pytest.mark.parametrize(
    ("groups", "pinned"),
    [(None, [86 / 99, 1, 1, 0.975, 1, 31 / 32]), (30, [96 / 99, 193 / 198, 193 / 198, 0.9, 0.95, 0.95])],
)
def test_shares_of_points_inside_the_band_of_two_forecasts(groups, pinned):
    found = shares_inside(groups, 2)[1]
    assert list(found) == [
        *("calibration", "coverage", "coverage_error", "pit_histogram", "reliability", "reliability_isotonic")
    ]
    assert [np.mean(shares) for shares in found.values()] == pytest.approx(pinned, rel=1e-9)


@pytest.mark.simulation
@pytest.mark.parametrize("groups", [None, 30])
def test_points_of_calibrated_forecasts_lie_inside(groups):
    rng, found = shares_inside(groups, 40)
    for name, shares in found.items():
        error = 4 * np.std(shares) / np.sqrt(len(shares))
        assert np.mean(shares) == pytest.approx(0.95, abs=error + 0.02), name
    wrong = report(rng, 900, 1.5, groups=groups, metrics=["rmse"], curves="reliability_isotonic")
    assert all(
        inside(wrong.curves[name]) < 0.6 for name in ("coverage", "reliability", "reliability_isotonic")
    )


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, 30])
def test_points_of_calibrated_classifiers_lie_inside(groups):
    rng = np.random.default_rng(3)
    found = {"reliability": [], "reliability_isotonic": []}
    for _ in range(40):
        labels, probs = classes(rng, 900)
        label = None if groups is None else np.arange(900) % groups
        one = uq.evaluate(labels, probs=probs, groups=label, metrics=["ece"], curves="reliability_isotonic")
        for name, shares in found.items():
            shares.append(inside(one.curves[name]))
    for name, shares in found.items():
        error = 4 * np.std(shares) / np.sqrt(len(shares))
        assert np.mean(shares) == pytest.approx(0.955, abs=error + 0.02), name


@pytest.mark.slow
def test_bins_of_few_samples_have_room_for_chance():
    rng, inside_thin = np.random.default_rng(4), []
    for _ in range(60):
        labels, probs = classes(rng, 1500, concentration=0.3)
        report = uq.evaluate(labels, probs=probs, groups=np.arange(1500) % 30, metrics=["ece"])
        columns = report.curves["reliability"].columns
        thin = columns["count"] < 20
        low, high = band(report.curves["reliability"])
        inside_thin += ((low <= columns["accuracy"]) & (columns["accuracy"] <= high))[thin].tolist()
    assert len(inside_thin) > 40
    assert np.mean(inside_thin) > 0.9


@pytest.mark.parametrize("rounding", [0.0, 1.2e-16])
@pytest.mark.slow
def test_confidences_on_edges_of_bins_have_the_same_band_from_a_stream(rounding):
    rng, shares = np.random.default_rng(5), []
    for _ in range(20):
        label, confidence = np.arange(3000) % 30, rng.choice([0.6, 0.7, 0.8, 0.9], 3000)
        labels = (rng.random(3000) > confidence).astype(int)
        confidence *= 1 + rounding * rng.choice([-1, 0, 1], 3000)
        probs = np.stack([confidence, 1 - confidence], axis=1)
        stream = uq.Accumulator(metrics=["ece"])
        for part in np.split(np.arange(3000), 3):
            stream.update(labels[part], probs=probs[part], groups=label[part])
        whole = uq.evaluate(labels, probs=probs, groups=label, metrics=["ece"]).curves["reliability"]
        curve = stream.compute().curves["reliability"]
        for name, column in whole.columns.items():
            np.testing.assert_allclose(curve.columns[name], column, rtol=1e-9, err_msg=name)
        shares.append(inside(curve))
        assert np.ptp(band(curve), axis=0).max() < 0.1
    assert np.mean(shares) == pytest.approx(0.95, abs=0.05)


def test_dependent_samples_widen_it_and_few_groups_have_none():
    truth, mean, std, label = forecasts(np.random.default_rng(4), 1200, groups=30)
    alone, grouped = (uq.evaluate(truth, mean, std, groups=g).curves["calibration"] for g in (None, label))
    widths = [np.mean(high - low) for low, high in map(band, (alone, grouped))]
    assert widths[1] > 1.5 * widths[0]
    few = uq.evaluate(truth, mean, std, groups=label // 6).curves["calibration"]
    assert "chance_low" not in few.columns


def test_the_isotonic_curve_is_the_fit_at_the_ends_of_its_steps():
    from sklearn.isotonic import IsotonicRegression

    truth, mean, std, _ = forecasts(np.random.default_rng(5), 500)
    curve = uq.evaluate(truth, mean, std, curves="reliability_isotonic").curves["reliability_isotonic"]
    fit = IsotonicRegression().fit(std**2, truth**2)
    predicted = curve.columns["predicted"]
    np.testing.assert_allclose(curve.columns["observed"], np.sqrt(fit.predict(predicted**2)), rtol=1e-9)
    np.testing.assert_allclose(predicted[[0, -1]], [std.min(), std.max()], rtol=1e-12)
