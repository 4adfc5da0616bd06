"""Warnings when runs were not scored alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

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
