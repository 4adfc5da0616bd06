"""The package's scores and curves against the literal transcriptions, on every data set."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.metrics.registry import select

from . import curves, datasets  # noqa: F401  (they enter what they compute into LITERAL)
from .literal import LITERAL, LITERAL_CURVES, UndefinedScoreError
from .test_known_figures import CLOSED_FORMS, PRINTED, homoscedastic_ause_mae


def score_or_none(score, d, **options):
    try:
        return score(d.y, d.mu, d.s, **options)
    except UndefinedScoreError:
        return None


def zero_below(key, d):
    """What counts as 0: rounding of a difference of numbers of order one, in the score's unit."""
    scale = np.mean(np.abs(d.y - d.mu)) + np.mean(d.s) if plugins.metrics()[key].unit == "target" else 1.0
    return 1e-12 * scale


def subtracted(key, value):
    """A gain is 1 minus a ratio of sums, and only the ratio has digits of its own: that is what is compared."""
    return 1 - value if key.endswith("_gain") else value


def differs(got, expected, relative, zero):
    return abs(got - expected) > max(relative * abs(expected), zero if abs(expected) <= zero else 0.0)


def evaluated(d, **options):
    return uq.evaluate(d.y, d.mu, d.s, **{"curves": "merci_by_alpha", **options})


@cache
def report_of(name):
    return evaluated(datasets.REGRESSION[name]())


def discrepancies(report, expected, d, relative):
    """One line for each key that is missing, invented, or not the expected number."""
    lines = []
    for key, value in expected.items():
        got = report.scores.get(key)
        if value is None and (got is not None or key not in report.undefined):
            lines.append(f"{key}: {got} where there is no value")
        elif value is not None and got is None:
            lines.append(f"{key}: undefined ({report.undefined.get(key)}), expected {value}")
        elif value is not None and differs(
            subtracted(key, got), subtracted(key, value), relative, zero_below(key, d)
        ):
            lines.append(f"{key}: {got!r}, expected {value!r}")
    return lines


@pytest.mark.parametrize("name", datasets.REGRESSION)
def test_scores_agree_with_the_literal_formulas(name):
    d, report = datasets.REGRESSION[name](), report_of(name)
    expected = {key: score_or_none(score, d) for key, score in LITERAL.items()}
    assert discrepancies(report, expected, d, 1e-9) == []
    assert not set(report.scores) & set(report.undefined)
    assert all(math.isfinite(v) and isinstance(v, float) for v in report.scores.values())
    assert all(reason.strip() for reason in report.undefined.values())


def test_every_score_of_the_package_has_a_literal_transcription():
    """Those of other families and forms of forecasts have their oracles beside these: tests/forms, tests/metrics."""
    own = {m.key for m in select("regression") if m.when is None and of_the_package(m)}
    assert own - set(LITERAL) == set(), "write the formula out in tests/oracles/regression, under @literal"
    assert set(LITERAL) - own == set()


CHECKED_ELSEWHERE = {
    "error_vs_std": "tests/oracles/test_curves_peers.py",
    "reliability_isotonic": "tests/oracles/test_curves_peers.py",
    "joint_coverage": "tests/forms/test_vectors.py",
}


def test_every_curve_of_the_package_has_a_literal_transcription():
    own = {c.name for c in plugins.curves().values() if of_the_package(c)}
    assert own - set(LITERAL_CURVES) - set(CHECKED_ELSEWHERE) == set(), "write it out under @literal_curve"


def of_the_package(declared):
    return declared.function.__module__.startswith("uq_tracking.")


def options_of_the_scores(d, alpha, n_bins):
    """The scores that depend on an option."""
    return {
        "merci": score_or_none(LITERAL["merci"], d, alpha=alpha),
        "n_merci": score_or_none(LITERAL["n_merci"], d, alpha=alpha),
        "trimmed_mae": score_or_none(LITERAL["trimmed_mae"], d, alpha=alpha),
        "ence": score_or_none(LITERAL["ence"], d, n_bins=n_bins),
        "uce": score_or_none(LITERAL["uce"], d, n_bins=n_bins),
    }


@pytest.mark.parametrize("name", ["calibrated", "integers", "few_std", "cauchy", "continuous_12", "levi"])
@pytest.mark.parametrize(("alpha", "n_bins"), [(0.5, 3), (0.8, 7), (0.99, 12), (1.0, 1), (0.07, 5)])
def test_options_agree_with_the_literal_formulas(name, alpha, n_bins):
    d = datasets.REGRESSION[name]()
    report = evaluated(d, alpha=alpha, n_bins=n_bins)
    assert discrepancies(report, options_of_the_scores(d, alpha, n_bins), d, 1e-9) == []


@pytest.mark.parametrize("name", datasets.REGRESSION)
def test_curves_agree_with_the_literal_formulas(name):
    d, report = datasets.REGRESSION[name](), report_of(name)
    for curve, literal in LITERAL_CURVES.items():
        expected = score_or_none(literal, d)
        if expected is None:
            assert curve not in report.curves, curve
            continue
        columns = report.curves[curve].columns
        assert set(expected) <= set(columns), curve
        for column, values in expected.items():
            np.testing.assert_allclose(
                columns[column],
                values,
                rtol=1e-9,
                atol=1e-12 * column_scale(column, d),
                err_msg=f"{column} of {curve}",
            )


def column_scale(column, d):
    """The absolute tolerance is for zeros; columns in units of the target get it in these units."""
    in_units = column in ("rmv", "rmse", "std_low", "std_high")
    return float(np.mean(np.abs(d.y - d.mu)) + np.mean(d.s)) if in_units else 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", datasets.REGRESSION)
def test_float32_input_agrees_with_its_own_float64_copy(name):
    d = datasets.REGRESSION[name]()
    small = [v.astype(np.float32) for v in (d.y, d.mu, d.s)]
    copy = datasets.Regression(*[v.astype(np.float64) for v in small])
    report, expected = uq.evaluate(*small), evaluated(copy)
    assert set(report.undefined) == set(expected.undefined)
    assert discrepancies(report, expected.scores, copy, 1e-6) == []


@pytest.mark.parametrize(
    "name", ["calibrated", "integers", "few_std", "repeated_rows", "large_offset", "levi"]
)
def test_float32_input_agrees_with_the_literal_formulas(name):
    d = datasets.REGRESSION[name]()
    small = [v.astype(np.float32) for v in (d.y, d.mu, d.s)]
    copy = datasets.Regression(*[v.astype(np.float64) for v in small])
    expected = {key: score_or_none(score, copy) for key, score in LITERAL.items()}
    assert discrepancies(uq.evaluate(*small), expected, copy, 1e-6) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", datasets.REGRESSION)
def test_the_order_of_the_rows_changes_nothing(name):
    d, report = datasets.REGRESSION[name](), report_of(name)
    rng = np.random.default_rng(11)
    for _ in range(2):
        other = evaluated(d.permuted(rng))
        assert set(other.undefined) == set(report.undefined)
        assert discrepancies(other, report.scores, d, 1e-11) == []
        assert set(other.curves) == set(report.curves)
        for curve, drawn in report.curves.items():
            for column, values in drawn.columns.items():
                np.testing.assert_allclose(
                    other.curves[curve].columns[column],
                    values,
                    rtol=1e-11,
                    atol=1e-12 * column_scale(column, d),
                )


@pytest.mark.parametrize("name", ["calibrated", "integers", "few_std", "some_zero_std", "tiny", "huge"])
def test_the_exact_method_is_what_auto_chooses_for_small_input(name):
    d = datasets.REGRESSION[name]()
    assert evaluated(d).scores == evaluated(d, statistics="exact").scores


TENTHS = st.integers(-3, 3).map(lambda i: i / 10)
ROWS = st.lists(
    st.tuples(TENTHS, TENTHS, st.integers(0, 4).map(lambda i: i / 4)) | st.tuples(*[st.floats(0.5, 2.0)] * 3),
    min_size=1,
    max_size=25,
)
OPTIONS = st.fixed_dictionaries(
    {"alpha": st.sampled_from([0.05, 0.5, 0.9, 0.95, 1.0]), "n_bins": st.integers(1, 12)}
)


@settings(max_examples=150, derandomize=True)
@given(rows=ROWS, options=OPTIONS)
@pytest.mark.slow
def test_any_small_input_agrees_with_the_literal_formulas(rows, options):
    d = datasets.Regression(*np.array(rows, dtype=float).T)
    report = evaluated(d, **options)
    expected = {key: score_or_none(score, d) for key, score in LITERAL.items()}
    expected |= options_of_the_scores(d, **options)
    assert discrepancies(report, expected, d, 1e-9) == []


@pytest.mark.parametrize("key", PRINTED)
def test_three_points(key):
    value, digits = PRINTED[key]
    assert abs(evaluated(datasets.three_points()).scores[key] - value) <= 0.5 * 10.0**-digits


LARGE = 2**16


@pytest.fixture(scope="module")
def large_reports():
    kinds = ("homoscedastic", "heteroscedastic", "multimodal", "epistemic")
    return {kind: evaluated(datasets.xiong(kind, LARGE)) for kind in kinds}


@pytest.mark.parametrize(
    ("kind", "key", "expected"), [c for c in CLOSED_FORMS if c[1] != "calibration_error"]
)
def test_expectations_under_the_true_distribution(large_reports, kind, key, expected):
    """The standard error of each of these, relative to its value or to 1, is below 2 / sqrt(N)."""
    tolerance = 4.0 * 2.0 / math.sqrt(LARGE) * max(abs(expected), 1.0 if key == "nll" else 0.0)
    assert large_reports[kind].scores[key] == pytest.approx(expected, abs=tolerance)


def test_figures_published_for_the_synthetic_sets(large_reports):
    heteroscedastic, multimodal = large_reports["heteroscedastic"].scores, large_reports["multimodal"].scores
    assert heteroscedastic["ause_mae"] == pytest.approx(0.2128, abs=0.005)
    assert heteroscedastic["ause_rmse"] == pytest.approx(0.2538, abs=0.005)
    assert large_reports["homoscedastic"].scores["ause_mae"] == pytest.approx(
        homoscedastic_ause_mae(), abs=0.005
    )
    assert multimodal["calibration_error"] == pytest.approx(0.0198, abs=0.002)
    assert multimodal["ause_mae"] == pytest.approx(0.0072, abs=0.001)
    assert all(
        large_reports[kind].scores["calibration_error"] < 1e-4 for kind in ("homoscedastic", "epistemic")
    )


@pytest.mark.parametrize(
    "name", ["integers", "few_std", "some_zero_std", "many_zero_std", "all_zero_std", "perfect"]
)
def test_the_sketch_leaves_the_same_scores_undefined(name):
    d = datasets.REGRESSION[name]()
    assert set(evaluated(d, statistics="sketch").undefined) == set(report_of(name).undefined)
