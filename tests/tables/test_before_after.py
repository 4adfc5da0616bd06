"""Scores before and after recalibration in one table: Levi et al. 2019, table 1."""

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import UnknownMetricError
from uq_tracking.tables.report import before_after

RNG = np.random.default_rng(0)
STD = RNG.uniform(1, 2, (300, 2))
METHODS = ["std_scaling", "cdf_isotonic"]


@pytest.fixture(scope="module")
def reports():
    arrays = RNG.normal(0, 2 * STD), 0 * STD, STD
    fresh = RNG.normal(0, 2 * STD), 0 * STD, STD
    return uq.evaluate(
        *arrays,
        outputs=["x", "y"],
        calibration=fresh,
        recalibration=METHODS,
        unit="m",
        metrics=["ence", "cv", "nll"],
    )


def test_every_cell_is_the_reports_number(reports):
    table = reports.before_after().table
    assert [column.key for column in table.columns] == [
        f"{stage} {key}" for stage in ("before", *METHODS) for key in ("ence", "cv")
    ]
    for name, report in reports.items():
        assert table[name]["before ence"].value == report.scores["ence"]
        for method in METHODS:
            after = report.recalibration["methods"][method]["scores"]
            assert table[name][f"{method} ence"].value == after["ence"]
            assert table[name][f"{method} cv"].value == after["cv"]


def test_what_has_no_value_says_why(reports):
    table = reports.before_after("nll").table
    cell = table["x"]["cdf_isotonic nll"]
    assert cell.value is None
    assert cell.reason


def test_rows_may_be_methods_of_which_some_were_not_recalibrated(reports):
    plain = uq.evaluate([1.0, 2.0, 3.0], [1.1, 2.2, 2.9], [0.1, 0.2, 0.1])
    found = before_after({"plain": plain, "other": reports["x"]}, "cv", corner="method")
    assert found.table["plain"]["std_scaling cv"].reason == "the report has no such recalibration"
    assert "plain" in str(found)
    assert found.to_markdown().startswith("| method |")
    assert "<table>" in found._repr_html_()


def test_a_printed_report_says_what_each_recalibration_changed(reports):
    report = reports["x"]
    after = report.after().scores["ence"]
    for text in (str(report), repr(report)):
        text = " ".join(text.split())
        assert f"ence {report.scores['ence']:.3g} -> {after:.3g}" in text
        assert all(f"after {method} (second set): " in text for method in METHODS)


def test_classifications_have_one_too():
    labels = RNG.integers(0, 3, (200, 2))
    probs = 0.7 * RNG.dirichlet([1, 1, 1], (200, 2)) + 0.3 * np.eye(3)[labels]
    reports = uq.evaluate(labels, probs=probs, outputs=["a", "b"], calibration=True)
    table = reports.before_after(["ece", "accuracy"]).table
    for name in reports:
        assert table[name]["before accuracy"].value == table[name]["temperature accuracy"].value
        assert table[name]["before ece"].value != table[name]["temperature ece"].value


def test_an_unknown_metric_is_named(reports):
    with pytest.raises(UnknownMetricError, match="no regression metric is called ense"):
        reports.before_after("ense")
