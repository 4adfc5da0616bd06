"""The decomposition against scikit-learn's isotonic regression, and its laws."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import uq_tracking as uq
from tests.inference.made import classes, forecasts
from uq_tracking.metrics.isotonic import decompose
from uq_tracking.metrics.registry import Undefined


def log_score(variance, error):
    return np.mean(np.log(variance) + error**2 / variance) / 2


def test_of_a_regression_literally():
    truth, mean, std, _ = forecasts(np.random.default_rng(0), 800, 1.5)
    found = decompose(uq.evaluate(truth, mean, std))
    fitted = IsotonicRegression().fit_transform(std**2, truth**2)
    score, best, constant = (log_score(v, truth) for v in (std**2, fitted, np.full(800, np.mean(truth**2))))
    expected = (score, score - best, constant - best, constant)
    parts = (found.score, found.miscalibration, found.discrimination, found.uncertainty)
    np.testing.assert_allclose(parts, expected, rtol=1e-9)
    assert uq.evaluate(truth, mean, std).scores["nll"] == pytest.approx(
        found.score + 0.5 * np.log(2 * np.pi), rel=1e-9
    )


def test_of_a_classification_literally():
    labels, probs = classes(np.random.default_rng(1), 900, 1.6)
    found = decompose(uq.evaluate(labels, probs=probs))
    top, right = probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(float)
    fitted = IsotonicRegression().fit_transform(top, right)
    score, best, constant = (np.mean((p - right) ** 2) for p in (top, fitted, np.full(900, right.mean())))
    parts = (found.score, found.miscalibration, found.discrimination, found.uncertainty)
    np.testing.assert_allclose(parts, (score, score - best, constant - best, constant), rtol=1e-9)


@pytest.mark.parametrize("statistics", ["exact", "sketch"])
def test_the_parts_add_up_and_are_no_less_than_zero(statistics):
    truth, mean, std, _ = forecasts(np.random.default_rng(2), 3000)
    for scale in (0.5, 1.0, 2.0):
        found = decompose(uq.evaluate(truth, mean, scale * std, statistics=statistics))
        total = found.miscalibration - found.discrimination + found.uncertainty
        assert total == pytest.approx(found.score, rel=1e-12)
        assert found.miscalibration >= 0
        assert found.discrimination >= 0


def test_a_scale_error_is_miscalibration_and_a_constant_discriminates_nothing():
    truth, mean, std, _ = forecasts(np.random.default_rng(3), 5000)
    right, wrong = (decompose(uq.evaluate(truth, mean, f * std)) for f in (1.0, 2.0))
    assert right.miscalibration < 0.02 < wrong.miscalibration
    assert wrong.discrimination == pytest.approx(right.discrimination, rel=1e-9)
    constant = decompose(uq.evaluate(truth, mean, np.full(5000, 0.7)))
    assert constant.discrimination == pytest.approx(0, abs=1e-12)


def test_no_log_score_no_decomposition():
    with pytest.raises(Undefined, match="standard deviation of 0"):
        decompose(uq.evaluate([1.0, 2.0, 3.0], [1.1, 1.9, 3.2], [0.0, 1.0, 1.0]))
    with pytest.raises(Undefined, match="have zero error"):
        decompose(uq.evaluate([1.0, 2.0, 3.0], [1.0, 1.9, 3.2], [0.5, 1.0, 1.0]))
