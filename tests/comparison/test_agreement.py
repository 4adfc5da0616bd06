"""Agreement between the rankings of metrics."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose
from scipy.stats import kendalltau

import uq_tracking as uq
from tests.comparison.conftest import report_of
from tests.comparison.test_ranks import KEYS, MERCI_TABLE_2
from uq_tracking.comparison.table import disagreement


@pytest.fixture(scope="module")
def table_2():
    scores = {
        name: dict(zip(KEYS, (q, -log, s, crps, merci), strict=True))
        for name, (q, log, s, crps, merci) in MERCI_TABLE_2.items()
    }
    return uq.compare({name: report_of(values) for name, values in scores.items()}, metrics=KEYS)


def test_tau_is_that_of_the_published_numbers(table_2):
    crps = [row[3] for row in MERCI_TABLE_2.values()]
    merci = [row[4] for row in MERCI_TABLE_2.values()]
    assert_allclose(table_2.agreement.between("crps", "merci"), kendalltau(crps, merci).statistic, rtol=1e-12)


def test_direction_is_taken_into_account(table_2):
    """The quadratic score is better when higher, the CRPS when lower; both order the methods alike."""
    assert table_2.agreement.between("quadratic_score", "crps") > 0.7


def test_merci_disagrees_with_all_others(table_2):
    others = [table_2.agreement.between("merci", key) for key in KEYS[:-1]]
    among = [table_2.agreement.between("quadratic_score", key) for key in KEYS[1:-1]]
    assert max(others) < 0.5 < min(among)


def test_the_disagreement_is_put_into_words(table_2):
    line = disagreement(table_2, table_2.shown())
    assert line.startswith("metrics that rank the methods differently")
    assert "merci" in line


def test_the_matrix_is_symmetric_with_ones_on_the_diagonal(table_2):
    tau = table_2.agreement.tau
    assert all(tau[i][i] == 1 for i in range(len(tau)))
    assert all(tau[i][j] == tau[j][i] for i in range(len(tau)) for j in range(len(tau)))


@pytest.mark.slow
def test_metrics_that_do_not_judge_or_rank_all_alike_are_left_out(reports):
    keys = uq.compare(reports).agreement.keys
    assert "cv" not in keys
    assert "rmse" not in keys
    assert "nll" in keys


def test_two_methods_say_nothing():
    found = uq.compare({"a": report_of({"nll": 1.0, "crps": 2.0}), "b": report_of({"nll": 2.0, "crps": 1.0})})
    assert found.agreement.keys == ()
    assert found.agreement.between("nll", "crps") is None


def test_too_few_methods_in_common_leave_a_gap():
    rows = {"a": {"nll": 1.0, "crps": 1.0}, "b": {"nll": 2.0, "crps": 2.0}}
    rows |= {"c": {"nll": 3.0}, "d": {"crps": 3.0}}
    found = uq.compare({name: report_of(row) for name, row in rows.items()}, metrics=["nll", "crps"])
    assert found.agreement.keys == ("nll", "crps")
    assert found.agreement.between("nll", "crps") is None
