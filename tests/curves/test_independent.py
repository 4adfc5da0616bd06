"""Metrics on independent test sets, against what sampling theory says of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import SettingsError
from uq_tracking.evaluation.parts import iid_stability


def normal(n, rng):
    return rng.standard_normal(n), np.zeros(n), np.ones(n)


def test_the_spread_of_a_mean_is_its_standard_error():
    curve = iid_stability(normal, metrics="nll", sizes=[50, 800], repeats=100)["nll"].columns
    assert_allclose(curve["samples"], [50, 800], rtol=0)
    assert_allclose(curve["subsets"], [100, 100], rtol=0)
    single = np.sqrt(0.5)  # standard deviation of z^2 / 2
    assert_allclose(curve["spread"], single / np.sqrt([50, 800]), rtol=0.3)  # 100 repeats know it to 7 %
    assert_allclose(curve["mean"], 0.5 * np.log(2 * np.pi) + 0.5, atol=0.04)


@pytest.mark.slow
def test_the_bias_of_the_calibration_error_falls_as_one_over_n():
    """Mean of (p - p_hat)^2 over levels p uniform in (0, 1): (1/6) / n."""
    curve = iid_stability(normal, metrics=["calibration_error"], sizes=[20, 80], repeats=300)
    assert_allclose(curve["calibration_error"].columns["mean"], [1 / 120, 1 / 480], rtol=0.2)


def test_classes_and_the_seed():
    def draw(n, rng):
        one = rng.random(n)
        return uq.Predictions.from_probs((rng.random(n) < one).astype(int), np.stack([1 - one, one], axis=1))

    first, same, other = (
        iid_stability(draw, sizes=[64], repeats=5, seed=seed)["brier"].columns["mean"] for seed in (0, 0, 1)
    )
    assert first == same != other


@pytest.mark.parametrize(("options", "said"), [
    ({"repeats": 0}, "pass whole numbers, 1 or above"),
    ({"sizes": []}, "pass whole numbers, 1 or above"),
    ({"metrics": ["kl_to_reference"]}, "kl_to_reference, which cannot be computed on parts"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused(options, said):
    with pytest.raises(SettingsError, match=said):
        iid_stability(normal, **options)
