"""Oracle and constant bounds, against the bounds evaluated literally."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from tests.comparison.conftest import N, samples

KEYS = ("merci", "n_merci", "ause_rmse", "aurg_rmse")


@pytest.fixture(scope="module")
def literal():
    """Reports of the oracle and of a constant uncertainty for the same predictions."""
    truth, mean, _ = samples()
    return {
        "oracle": uq.evaluate(truth, mean, np.abs(truth - mean)),
        "constant": uq.evaluate(truth, mean, np.full(N, 3.0)),
    }


@pytest.mark.parametrize("name", ["oracle", "constant"])
@pytest.mark.parametrize("key", KEYS)
def test_bounds_are_the_scores_of_an_oracle_and_of_a_constant(reports, literal, name, key):
    bound = uq.compare(reports).bounds[name][key]
    assert bound.common
    assert_allclose(bound.low, literal[name].scores[key], rtol=1e-9, atol=1e-12)


def test_the_oracle_of_the_rank_correlation_is_one(reports, literal):
    assert uq.compare(reports).bounds["oracle"]["spearman"].low == 1
    assert_allclose(literal["oracle"].scores["spearman"], 1, rtol=1e-12)


def test_methods_with_means_of_their_own_have_a_range(reports):
    truth, mean, spread = samples()
    other = uq.evaluate(truth, truth + 2 * (mean - truth), spread)
    bound = uq.compare({"a": reports["informed"], "b": other}).bounds["oracle"]["merci"]
    assert not bound.common
    assert_allclose(bound.high, 2 * bound.low, rtol=1e-9)


def test_a_constant_cannot_be_told_from_the_oracle_alone(literal):
    found = uq.compare({"oracle": literal["oracle"]})
    assert "merci" not in found.bounds["constant"]


def test_scoring_rules_have_no_bounds(reports):
    assert all("nll" not in bounds for bounds in uq.compare(reports).bounds.values())
