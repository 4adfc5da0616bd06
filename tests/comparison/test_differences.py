"""Differences between methods: intervals, verdicts, and what is not distinguishable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import uq_tracking as uq
from tests.comparison.conftest import report_of
from uq_tracking.comparison.differences import cohens_d, found_mostly, mover, welch
from uq_tracking.errors import SettingsError


class TestOverRuns:
    @pytest.mark.parametrize("level", [0.9, 0.95])
    def test_the_interval_is_welchs(self, level):
        rng = np.random.default_rng(3)
        one, other = rng.normal(0, 1, 5), rng.normal(0.3, 2, 9)
        expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval(level)
        assert_allclose(welch(one.tolist(), other.tolist(), level), tuple(expected), rtol=1e-12)

    def test_the_effect_is_cohens_d(self):
        one, other = [1.0, 4.0, 2.0], [3.0, 3.5, 8.0, 1.0]
        expected = (np.mean(one) - np.mean(other)) / np.sqrt(
            (np.var(one, ddof=1) + np.var(other, ddof=1)) / 2
        )
        assert_allclose(cohens_d(one, other), expected, rtol=1e-12)
        assert cohens_d([1.0, 1.0], [2.0, 2.0]) is None

    def test_runs_that_do_not_vary_differ_by_exactly_their_difference(self):
        assert welch([1.0, 1.0], [3.0, 3.0], 0.95) == (-2.0, -2.0)

    def test_methods_closer_than_their_seeds_are_not_distinguishable(self, seeds):
        found = uq.compare(seeds, baseline="good", metrics=["crps"])
        assert found.difference("as good", "crps").verdict == "indistinguishable"
        assert found.difference("bad", "crps").verdict == "worse"
        assert {d.how for d in found.differences} == {"paired blocks"}
        mine, theirs = ([report.scores["crps"] for report in seeds[name]] for name in ("bad", "good"))
        assert_allclose(found.difference("bad", "crps").effect, cohens_d(mine, theirs), rtol=1e-12)
        relative = np.mean(mine) / np.mean(theirs) - 1
        assert_allclose(found.difference("bad", "crps").relative, relative, rtol=1e-9)

    def test_the_mean_of_seeds_has_students_interval(self, seeds):
        values = [report.scores["crps"] for report in seeds["bad"]]
        cell = uq.compare(seeds, metrics=["crps"], level=0.9).table["bad"]["crps"]
        expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
        assert cell.interval == pytest.approx(tuple(expected), rel=1e-9)
        assert uq.compare({"bad": seeds["bad"][:2]}).table["bad"]["crps"].interval is None

    def test_what_is_not_distinguishable_from_the_best_is_marked(self, seeds):
        found = uq.compare(seeds, metrics=["crps"])
        best = next(name for name in found.methods if found.table[name]["crps"].mark == "best")
        assert found.tied_with_best["crps"] == {"good", "as good"}
        assert best in found.tied_with_best["crps"]

    def test_equal_methods_are_all_marked_in_most_cases_however_unequally_they_vary(self):
        rng, marked = np.random.default_rng(0), 0
        for _ in range(400):
            runs = rng.normal(size=(7, 3)) * np.asarray([1, 10, 1, 10, 1, 1, 0.1])[:, None]
            best = runs[runs.mean(axis=1).argmin()].tolist()
            marked += all(welch(own, best, 1 - 0.05 / 21)[0] <= 0 for own in runs.tolist())
        assert marked / 400 >= 0.92

    def test_the_legend_says_what_so_few_runs_can_distinguish(self, seeds):
        found = " ".join(str(uq.compare(seeds, metrics=["pit_ks"])).split())
        assert (
            "with 4 runs of each of 3 methods, a difference to the best is found in 80% of cases if" in found
        )
        rng, least = np.random.default_rng(1), found_mostly(4, 0.95, 3)
        one, other = rng.normal(least, 1, (400, 4)).tolist(), rng.normal(0, 1, (400, 4)).tolist()
        seen = [welch(a, b, 1 - 0.05 / 3)[0] > 0 for a, b in zip(one, other, strict=True)]
        assert np.mean(seen) == pytest.approx(0.8, abs=0.06)

    def test_a_higher_level_makes_wider_intervals(self, seeds):
        low = (
            uq.compare(seeds, baseline="good", metrics=["crps"], level=0.5).difference("bad", "crps").interval
        )
        high = (
            uq.compare(seeds, baseline="good", metrics=["crps"], level=0.99)
            .difference("bad", "crps")
            .interval
        )
        assert high[0] < low[0] < low[1] < high[1]


class TestFromIntervals:
    def test_independent_normal_intervals_add_in_quadrature(self):
        """For symmetric intervals the method is the textbook's square root of the sum of squares."""
        low, high = mover(5.0, (4.0, 6.0), 2.0, (1.0, 3.0))
        assert_allclose((low, high), (3 - 2**0.5, 3 + 2**0.5), rtol=1e-15)

    @pytest.mark.parametrize(
        ("key", "mine", "theirs", "verdict"),
        [
            ("nll", (1.0, (0.9, 1.1)), (2.0, (1.9, 2.1)), "better"),
            ("nll", (2.0, (1.9, 2.1)), (1.0, (0.9, 1.1)), "worse"),
            ("nll", (1.0, (0.5, 1.5)), (1.2, (0.7, 1.7)), "indistinguishable"),
            ("spearman", (0.8, (0.75, 0.85)), (0.2, (0.15, 0.25)), "better"),
            ("coverage_95", (0.95, (0.94, 0.96)), (0.7, (0.69, 0.71)), "better"),
            ("coverage_95", (0.99, (0.985, 0.995)), (0.91, (0.905, 0.915)), "indistinguishable"),
        ],
    )
    def test_the_verdict_knows_the_direction(self, key, mine, theirs, verdict):
        made = {
            name: report_of({key: value}, intervals={key: interval})
            for name, (value, interval) in (("mine", mine), ("theirs", theirs))
        }
        found = uq.compare(made, baseline="theirs").difference("mine", key)
        assert found.verdict == verdict
        assert found.how == "from the intervals"
        assert found.interval[0] <= found.value <= found.interval[1]

    @pytest.mark.parametrize(("methods", "tied"), [(2, False), (7, True)])
    def test_a_tie_is_judged_for_all_pairs_jointly(self, methods, tied):
        """A gap of 1.6 lies outside of one pair's interval of 1.41, but inside of seven methods' of 2.19."""
        values = [1.0, *[2.6] * (methods - 1)]
        made = {
            f"m{k}": report_of({"nll": value}, intervals={"nll": (value - 1, value + 1)})
            for k, value in enumerate(values)
        }
        assert ("m1" in uq.compare(made).tied_with_best["nll"]) == tied

    def test_rounding_is_no_difference(self):
        near = 1.0 - 2.2e-16
        made = {
            "a": report_of({"nll": near}, intervals={"nll": (near, near)}),
            "b": report_of({"nll": 1.0}, intervals={"nll": (1.0, 1.0)}),
        }
        found = uq.compare(made, baseline="b").difference("a", "nll")
        assert (found.value, found.interval, found.verdict) == (0.0, (0.0, 0.0), "indistinguishable")

    def test_values_keep_their_sign_when_higher_is_better(self):
        made = {"a": report_of({"r2": 0.9}), "b": report_of({"r2": 0.7})}
        found = uq.compare(made, baseline="b").difference("a", "r2")
        assert_allclose(found.value, 0.2, rtol=1e-12)
        assert found.relative is None  # r2 may be negative
        made = {"a": report_of({"spherical_score": 0.9}), "b": report_of({"spherical_score": 0.6})}
        assert_allclose(
            uq.compare(made, baseline="b").difference("a", "spherical_score").relative, 0.5, rtol=1e-12
        )

    def test_for_a_target_it_is_the_difference_of_distances(self):
        made = {"a": report_of({"coverage_95": 0.93}), "b": report_of({"coverage_95": 1.0})}
        found = uq.compare(made, baseline="b").difference("a", "coverage_95")
        assert_allclose((found.value, found.relative), (-0.03, -0.6), rtol=1e-9)


@pytest.mark.slow
def test_single_runs_without_intervals_are_not_judged(reports):
    bare = {name: replace(report, samples=None) for name, report in reports.items()}
    found = uq.compare(bare, baseline="constant")
    assert {d.verdict for d in found.differences} == {"unknown"}
    assert {d.how for d in found.differences} == {"none"}
    assert not any(found.tied_with_best.values())
    assert "not known whether methods differ by more than chance" in " ".join(str(found).split())


def test_metrics_that_do_not_judge_have_no_differences(reports):
    found = uq.compare(reports, baseline="constant")
    assert found.difference("informed", "cv") is None
    assert found.difference("constant", "nll") is None


def test_an_undefined_metric_has_no_difference(reports):
    assert uq.compare(reports, baseline="constant").difference("informed", "spearman") is None


def test_the_baseline_must_be_a_method(reports):
    with pytest.raises(SettingsError, match=r"baseline 'nope' is not a method here; choose from informed"):
        uq.compare(reports, baseline="nope")


@pytest.mark.parametrize("level", [0, 1, 1.5, float("nan")])
def test_the_level_is_a_share(reports, level):
    with pytest.raises(SettingsError, match="pass a probability between 0 and 1"):
        uq.compare(reports, level=level)
