"""Levi et al. 2019, section 4.1, as the example runs it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

EXAMPLE = Path(__file__).parents[2] / "examples" / "gallery" / "levi.py"


@pytest.fixture(scope="module")
def levi():
    spec = importlib.util.spec_from_file_location("levi_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def report(levi):
    return levi.experiment()


def after(report, method):
    return report.recalibration["methods"][method]["scores"]


def test_random_uncertainty_passes_quantile_calibration_and_fails_ence(report):
    scores = after(report, "cdf_isotonic")
    assert report.scores["calibration_error"] > 0.01
    assert scores["calibration_error"] < 0.001
    assert scores["ence"] > 0.3
    assert scores["auce"] < 0.01
    assert_allclose(scores["coverage_95"], 0.95, atol=0.005)


def test_scaling_leaves_what_it_cannot_repair(report):
    scores = after(report, "std_scaling")
    for key in ("n_merci", "ause_rmse", "ause_mae", "aurg_rmse", "spearman", "cv"):
        assert_allclose(scores[key], report.scores[key], rtol=0, atol=1e-9, err_msg=key)
    assert scores["ence"] > 0.3
    assert scores["nll"] < report.scores["nll"]


@pytest.mark.parametrize("method", ["std_isotonic", "std_binning"])
def test_methods_that_see_the_error_of_each_std_make_it_constant(report, method):
    scores = after(report, method)
    assert scores["cv"] < 0.05
    assert scores["ence"] < 0.05
    assert_allclose(scores["n_merci"], 1, atol=0.02)


def test_true_uncertainty_passes_both_before_and_after(levi):
    report = levi.experiment(informed=True)
    for scores in (report.scores, after(report, "std_scaling"), after(report, "cdf_isotonic")):
        assert scores["calibration_error"] < 1e-4
        assert scores["ence"] < 0.03


@pytest.mark.slow
def test_the_example_runs_as_a_script(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, cwd=tmp_path, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("before", "cdf_isotonic"))]
    assert [line[0] for line in lines] == ["before", "cdf_isotonic"] * 2
    assert float(lines[1][1]) < 0.001 < 0.3 < float(lines[1][2])
