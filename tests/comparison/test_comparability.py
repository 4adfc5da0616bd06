"""Warnings when runs were not scored alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import uq_tracking as uq
from tests.comparison.conftest import N, samples


@pytest.fixture(scope="module")
def report():
    truth, mean, std = samples()
    return uq.evaluate(truth, mean, std)


def warnings_of(*reports):
    return uq.compare({f"m{k}": report for k, report in enumerate(reports)}).warnings


def test_runs_scored_alike_raise_no_warning(report):
    truth, mean, std = samples()
    assert warnings_of(report, uq.evaluate(truth, mean + 1, 2 * std)) == ()


def test_order_dtype_and_shape_of_the_data_do_not_matter(report):
    truth, mean, std = samples()
    order = np.random.default_rng(0).permutation(N)
    shuffled = uq.evaluate(truth[order], mean[order], std[order])
    single = uq.evaluate(*(array.astype(np.float32).reshape(20, 20) for array in (truth, mean, std)))
    assert warnings_of(report, shuffled, single) == ()


def test_other_targets_of_equal_number_are_noticed(report):
    (found,) = warnings_of(report, uq.evaluate(*samples(seed=1)))
    assert found.startswith("Scored on different targets")
    assert "m0" in found
    assert "m1" in found


def test_one_target_that_differs_is_noticed(report):
    truth, mean, std = samples()
    truth = truth.copy()
    truth[7] += 0.5
    (found,) = warnings_of(report, uq.evaluate(truth, mean, std))
    assert found.startswith("Scored on different targets")


def test_another_number_of_samples_is_noticed(report):
    (found,) = warnings_of(report, uq.evaluate(*(array[1:] for array in samples())))
    assert found.startswith("Scored on different data")
    assert "400 samples: m0; 399 samples: m1" in found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0.9}, "alpha differs"),
        ({"n_bins": 20}, "n_bins differs"),
        ({"family": "laplace"}, "family differs"),
        ({"std_floor": 0.5}, "std_floor differs"),
        ({"unit": "m"}, "unit differs"),
        ({"statistics": "sketch"}, "Statistics differ in kind"),
    ],
)
def test_other_settings_are_noticed(report, options, words):
    (found,) = warnings_of(report, uq.evaluate(*samples(), **options))
    assert found.startswith(words)


def test_other_targets_are_noticed_though_a_third_run_has_fewer(report):
    fewer = uq.evaluate(*(array[1:] for array in samples()))
    counted, targets = warnings_of(report, uq.evaluate(*samples(seed=1)), fewer)
    assert counted.startswith("Scored on different data")
    assert targets.startswith("Scored on different targets")
    assert "m0; mean" in targets
    assert "m2" not in targets


def quantiles(levels):
    truth, mean, std = samples()
    q = mean[:, None] + std[:, None] * norm.ppf(levels)
    return uq.evaluate(uq.Predictions.from_quantiles(truth, q, levels))


class TestLevels:
    """Scores of quantiles depend on the levels: that of two levels is a third of the whole distribution's."""

    def test_scores_of_other_levels_are_not_ranked(self, report):
        runs = {"normal": report, "two": quantiles([0.05, 0.95]), "three": quantiles([0.1, 0.5, 0.9])}
        found = uq.compare(runs, baseline="normal")
        assert found.table["two"]["crps"].value < 0.5 * found.table["normal"]["crps"].value
        for key in ("crps", "pinball", "calibration_error", "pit_ks"):
            assert {(found.table[name][key].rank, found.table[name][key].mark) for name in runs} == {
                (None, None)
            }
            assert found.difference("two", key) is None
            assert key not in found.tied_with_best
        assert found.table["three"]["wis"].rank == 1
        assert found.table["normal"]["rmse"].rank == 1
        text = found.warnings[1]
        assert text.startswith(
            "Levels of quantiles differ (not ranked, as they depend on the levels: crps, crps_gain, pinball, "
        )
        assert "rescore" not in " ".join(found.warnings)
        assert text.endswith("no levels: normal; levels 0.05, 0.95: two; levels 0.1, 0.5, 0.9: three.")
        assert "not ranked, as the levels of quantiles differ" in found.to_html()

    def test_a_comparison_that_is_read_back_does_not_rank_them_either(self, report):
        found = uq.compare({"normal": report, "two": quantiles([0.05, 0.95])})
        again = uq.Comparison.from_json(found.to_json())
        assert again.metrics == found.metrics
        assert again.table["two"]["crps"].rank is None

    def test_equal_levels_are_ranked_whatever_rounding_has_left(self):
        found = uq.compare({"a": quantiles([0.1, 0.5, 0.9]), "b": quantiles([0.1, 0.5, 1 - 0.1 + 1e-15])})
        assert found.warnings == ()
        assert found.table["a"]["crps"].rank == 1

    def test_levels_are_not_spelled_out_but_told_apart(self):
        many = np.arange(1, 100) / 100
        (found,) = warnings_of(quantiles(many), quantiles(np.where(many == 0.5, 0.505, many)))
        assert found.count("levels 0.01, 0.02, 0.03 ... 0.99 (99 in all): m") == 2

    def test_an_interval_has_round_levels(self, report):
        truth, mean, std = samples()
        interval = uq.Predictions.from_interval(truth, mean - std, mean + std, 0.9)
        assert "levels 0.05, 0.95: m1" in warnings_of(report, uq.evaluate(interval))[1]


def test_degrees_of_freedom_matter_for_the_student_only(report):
    assert warnings_of(report, uq.evaluate(*samples(), dof=7)) == ()
    found = warnings_of(*(uq.evaluate(*samples(), family="student_t", dof=dof) for dof in (4, 7)))
    assert [warning.split(" (")[0] for warning in found] == ["dof differs"]


@pytest.mark.parametrize("name", ["schema", "version"])
def test_other_versions_are_noticed(report, name):
    older = replace(report, provenance={**report.provenance, name: 0})
    (found,) = warnings_of(report, older)
    assert found.startswith(f"The {name} of uq_tracking differs")


def test_a_report_that_does_not_describe_its_targets_leaves_it_open(report):
    provenance = {name: value for name, value in report.provenance.items() if name != "targets"}
    (found,) = warnings_of(report, replace(report, provenance=provenance))
    assert "Cannot tell whether all targets are the same: not described in the report of m1" in found


def test_many_runs_are_counted_not_listed(report):
    other = uq.evaluate(*samples(), alpha=0.9)
    (found,) = warnings_of(*([report] * 9), other)
    assert "m3 and 5 more; 0.9: m9" in found
