"""The same data in every guise: a short form of benchmarks/same.py."""

import subprocess
import sys
from random import Random

import numpy as np
import pytest

import uq_tracking as uq
from tests.fuzz.same import case
from uq_tracking.errors import SettingsError
from uq_tracking.settings import MOST_BINS


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_equal_scores_or_a_refusal(part):
    found = [case(Random(f"same {number}")) for number in range(25 * part, 25 * part + 25)]
    assert set(found) <= {"equal", "refused", "not the same"}
    assert found.count("equal") >= 10


START = """
import resource
import numpy as np
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import uq_tracking as uq
"""
LIMITED = (
    START
    + """
from uq_tracking.settings import MOST_BINS
rng = np.random.default_rng(0)
n = 20 * MOST_BINS
probs = rng.dirichlet(np.ones(4), n)
mean, std = rng.normal(size=n), rng.gamma(4, 0.25, n)
y = mean + std * rng.normal(size=n)
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for arguments in ({"y_true": rng.integers(0, 4, n), "probs": probs}, {"y_true": y, "y_pred": mean, "y_std": std}):
    for groups in (False, np.arange(n) // 5):
        report = uq.evaluate(**arguments, groups=groups, n_bins=MOST_BINS)
        report.noise, report.verdict, report.plot()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)
"""
)
MANY = (
    START
    + """
rng = np.random.default_rng(0)
std = rng.gamma(4, 0.25, 20_000)
truth = std * rng.normal(size=len(std))
report = uq.evaluate(truth, 0 * std, std, groups=np.arange(len(std)) // 2, by=np.arange(len(std)) % 1000)
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report.noise, report.verdict
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)
report = uq.evaluate(np.arange(5), probs=np.full((5, 100_000), 1e-5))
report.noise, report.verdict
"""
)


@pytest.mark.faults
def test_many_labels_of_many_groups_and_many_classes_fit_in_memory():
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150_000  # kB, some of which are scipy


@pytest.mark.faults
def test_the_most_bins_fit_in_memory():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 500_000  # kB, about 150,000 of which are scipy and matplotlib


@pytest.mark.parametrize("n_bins", [MOST_BINS + 1, 10**6])
def test_more_bins_are_refused(n_bins):
    with pytest.raises(
        SettingsError, match=rf"n_bins is {n_bins}; pass a whole number from 1 to {MOST_BINS:,}"
    ):
        uq.evaluate([0, 1] * 10, probs=np.full((20, 2), 0.5), n_bins=n_bins)


def test_squares_that_overflow_explain_nothing():
    y = np.linspace(0, 1, 30) * 2.0**600
    assert "overflow" in uq.evaluate(y, y[::-1], np.full(30, 2.0**600), groups=False).undefined["r2"]


def test_suspicions_of_tiny_numbers():
    y = np.linspace(0, 1, 30) * 2.0**-400
    assert isinstance(uq.evaluate(y, y[::-1], np.full(30, 2.0**-400), groups=False).suspicions, tuple)
