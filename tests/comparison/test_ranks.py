"""Cells of the table: mean, spread, ranks, best and worst."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from tests.comparison.conftest import report_of
from uq_tracking.comparison import Comparison
from uq_tracking.comparison.facts import ranks
from uq_tracking.errors import UnknownMetricError
from uq_tracking.metrics.registry import is_infinite

MERCI_TABLE_2 = {  # quadratic, logarithmic and spherical score (higher is better), CRPS and MeRCI (lower)
    "Multi Inits": (-3.4, -1.9, 0.87, 0.12, 0.40),
    "Bagging": (-2.7, -1.6, 0.90, 0.12, 0.55),
    "Monte Carlo Dropout": (-7.5, -3.3, 0.61, 0.13, 0.37),
    "Multi Epochs": (-2.3, -1.6, 0.87, 0.12, 0.34),
    "Multi Networks": (1.8, 0.25, 1.3, 0.10, 0.41),
    "Learned Error": (-67, -3.1, 0.80, 0.13, 2.3),
}
KEYS = ("quadratic_score", "nll", "spherical_score", "crps", "merci")


@pytest.fixture(scope="module")
def table_2():
    scores = {
        name: dict(zip(KEYS, (q, -log, s, crps, merci), strict=True))
        for name, (q, log, s, crps, merci) in MERCI_TABLE_2.items()
    }
    return uq.compare({name: report_of(values) for name, values in scores.items()}, metrics=KEYS)


def places(comparison, key):
    return {name: comparison.table[name][key].rank for name in comparison.methods}


class TestPublishedTable:
    """MeRCI (2018), table 2 and what the text says of it."""

    def test_multi_networks_leads_all_but_merci_where_it_is_fourth(self, table_2):
        found = [places(table_2, key)["Multi Networks"] for key in KEYS]
        assert found == [1, 1, 1, 1, 4]

    def test_dropout_is_fifth_or_sixth_and_second_by_merci(self, table_2):
        found = [places(table_2, key)["Monte Carlo Dropout"] for key in KEYS]
        assert set(found[:-1]) <= {5, 6}
        assert found[-1] == 2

    def test_multi_epochs_leads_by_merci(self, table_2):
        cell = table_2.table["Multi Epochs"]["merci"]
        assert cell.mark == "best"
        assert cell.place == 0

    def test_methods_of_equal_score_share_the_better_rank(self, table_2):
        assert places(table_2, "crps") == {
            "Multi Networks": 1,
            "Multi Inits": 2,
            "Bagging": 2,
            "Multi Epochs": 2,
            "Monte Carlo Dropout": 5,
            "Learned Error": 5,
        }

    def test_all_that_share_the_last_rank_are_worst(self, table_2):
        worst = {name for name in table_2.methods if table_2.table[name]["crps"].mark == "worst"}
        assert worst == {"Monte Carlo Dropout", "Learned Error"}


def test_losses_that_differ_by_rounding_share_a_rank():
    assert ranks({"a": 0.1 + 0.2, "b": 0.3, "c": 0.3 + 1e-6}) == {"a": 1, "b": 1, "c": 3}


def test_zeros_and_opposite_signs_do_not_share_a_rank():
    assert ranks({"a": 0.0, "b": 1e-30, "c": -1e-30}) == {"c": 1, "a": 2, "b": 3}


def test_a_target_is_judged_by_the_distance_to_it():
    found = uq.compare(
        {name: report_of({"coverage_95": v}) for name, v in (("a", 1.0), ("b", 0.93), ("c", 0.8))}
    )
    assert places(found, "coverage_95") == {"b": 1, "a": 2, "c": 3}


def test_runs_that_miss_a_target_on_both_sides_are_not_as_good_as_runs_that_meet_it():
    reports = {"scattered": [report_of({"bias": v}) for v in (-1.0, 1.0)], "steady": report_of({"bias": 0.1})}
    found = uq.compare(reports)
    assert found.table["scattered"]["bias"].value == 0
    assert places(found, "bias") == {"steady": 1, "scattered": 2}


def test_a_metric_that_does_not_judge_has_no_ranks(reports):
    found = uq.compare(reports)
    assert {found.table[name]["cv"].rank for name in reports} == {None}
    assert not any(found.table[name]["cv"].mark for name in reports)


def test_equal_means_have_no_best_and_no_worst(reports):
    found = uq.compare(reports)
    assert {found.table[name]["rmse"].rank for name in reports} == {1}
    assert not any(found.table[name]["rmse"].mark for name in reports)


def test_mean_and_spread_over_the_runs_of_a_method():
    found = uq.compare({"a": [report_of({"nll": v}) for v in (1.0, 2.0, 6.0)], "b": report_of({"nll": 4.0})})
    cell = found.table["a"]["nll"]
    assert (cell.value, cell.runs, cell.of) == (3.0, 3, 3)
    assert_allclose(cell.spread, 7**0.5, rtol=1e-15)
    assert found.table["b"]["nll"].spread is None


def test_a_metric_that_some_runs_lack_counts_those_that_have_it():
    other = report_of({"crps": 1.0})
    found = uq.compare({"a": [report_of({"nll": 1.0, "crps": 1.0}), other]})
    assert (found.table["a"]["nll"].runs, found.table["a"]["nll"].of) == (1, 2)


def test_an_undefined_metric_keeps_its_reason(reports):
    found = uq.compare(reports)
    cell = found.table["constant"]["spearman"]
    assert cell.value is None
    assert cell.rank is None
    assert "standard deviations are equal" in cell.reason


@pytest.fixture(scope="module")
def impossible():
    """A finite score, an infinite one in one of three runs, and one that has no value."""
    bad = replace(report_of({"crps": 2.0}), undefined={"nll": "infinite: some targets have density 0"})
    lost = replace(report_of({"crps": 3.0}), undefined={"nll": "the value is NaN"})
    good = [report_of({"nll": value, "crps": 1.0}) for value in (1.0, 2.0, 3.0)]
    return uq.compare({"bad": [bad, *good[:2]], "lost": lost, "good": good}, baseline="good")


def test_an_infinite_score_ranks_last_and_nothing_breaks(impossible):
    assert impossible.methods == ("good", "bad", "lost")
    cells = {name: impossible.table[name]["nll"] for name in impossible.methods}
    assert {name: cell.rank for name, cell in cells.items()} == {"good": 1, "bad": 2, "lost": None}
    assert (cells["bad"].value, cells["bad"].mark, cells["bad"].spread) == (math.inf, "worst", None)
    assert impossible.difference("bad", "nll") is None
    text = " ".join(str(impossible).split())
    assert "inf (2)!" in text
    assert "+inf ?" in text
    assert "inf: infinite, so it ranks last" in text
    assert "-: no value, so no rank" in text
    assert r"\infty" in impossible.to_latex(["nll"])
    assert Comparison.from_json(impossible.to_json()) == impossible


def test_the_page_says_why_a_score_is_infinite_or_lacks(impossible):
    page = impossible.to_html()
    assert "∞: infinite, so it ranks last; point at it" in page
    assert ": no value, so no rank; point at it" in page
    assert 'title="infinite: some targets have density 0' in page
    assert 'title="no value: the value is NaN"' in page


def test_methods_that_are_all_infinite_share_the_rank():
    assert ranks({"a": math.inf, "b": 1.0, "c": math.inf}) == {"b": 1, "a": 2, "c": 2}


@pytest.mark.parametrize("family", ["gaussian", "uniform"])
def test_a_score_is_infinite_only_where_it_is_worse_than_any_other(family):
    report = uq.evaluate(
        [0.0, 9.0], [0.0, 0.0], [1.0, 1e-200 if family == "gaussian" else 1.0], family=family
    )
    assert report.undefined["nll"].startswith("infinite: ")
    assert not any(map(is_infinite, uq.evaluate([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]).undefined.values()))


def test_rows_are_sorted_by_the_first_metric_that_judges(reports):
    assert uq.compare(reports, metrics=["cv", "nll"]).methods[0] == "informed"
    assert uq.compare(reports, metrics=["cv", "nll"]).methods[-1] == "overconfident"


def test_metrics_come_in_the_order_they_are_asked_for(reports):
    found = uq.compare(reports, metrics=["nll", "ause_rmse", "crps"])
    assert [metric.key for metric in found.metrics] == ["nll", "ause_rmse", "crps"]
    assert found.headline == ("nll", "ause_rmse", "crps")


def test_an_unknown_metric_is_named(reports):
    with pytest.raises(UnknownMetricError, match="no run has a metric called nope"):
        uq.compare(reports, metrics=["nope"])
    with pytest.raises(UnknownMetricError, match="the comparison has no metric called nope"):
        uq.compare(reports).shown(["nope"])


def test_a_metric_of_a_plugin_that_is_not_installed_is_shown_and_not_judged():
    found = uq.compare({"a": report_of({"acme_score": 1.0}), "b": report_of({"acme_score": 2.0})})
    assert found.table["a"]["acme_score"].value == 1.0
    assert found.table["a"]["acme_score"].rank is None
    assert "not installed" in found.metrics[0].summary
