"""A rescoring that is killed at any moment and started again ends with exactly one set of scores in every run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import uq_tracking as uq
from tests.runs.places import predictions
from uq_tracking.tracking.content import logged_scores

RUNS = 8
SCRIPT = """
import sys
import uq_tracking as uq

uq.rescore(sys.argv[1], alpha=0.8, n_bins=7, progress=lambda outcome, total: print(outcome.status, flush=True))
"""


def rescore_and_die(uri, tmp_path, after, delay):
    """Start a rescoring in a process of its own, and kill it that many seconds after so many runs are done."""
    errors = tmp_path / "errors.txt"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, uri],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        ) as process,
    ):
        done = [line for line, _ in zip(process.stdout, range(after), strict=False)]
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, errors.read_text()
    assert len(done) == after, errors.read_text()
    return done


@pytest.mark.parametrize("tracker", ["dir", "mlflow_sqlite"])
def test_every_run_ends_with_one_set_of_scores(tracker, request, tmp_path):
    place = request.getfixturevalue(f"{tracker}_place")
    wanted = {}
    for seed in range(RUNS):
        data = predictions(n=100, seed=seed)
        place.log(data, method=f"m{seed}")
        wanted[f"m{seed}"] = uq.evaluate(data, alpha=0.8, n_bins=7)

    for after, delay in ((1, 0.002), (2, 0.02), (2, 0.04)):
        rescore_and_die(place.uri, tmp_path, after, delay)
        for run in place.runs():  # whatever happened, what is there can be read
            assert run.scored().settings["alpha"] in (0.8, 0.95)
            run.predictions()

    summary = uq.rescore(place.uri, alpha=0.8, n_bins=7)
    assert not summary.failed, str(summary)
    assert len(summary.skipped) >= 3
    for run in place.runs():
        report = wanted[run.method]
        scalars = {name: value for name, value in run.stored.scalars.items() if name.startswith("uq/")}
        assert scalars == pytest.approx(logged_scores(report), rel=1e-12)
        found = run.scored()
        assert found.settings == report.settings
        assert found.scores == pytest.approx(report.scores, rel=1e-12)
        assert run.files.count("uq/report.json") == 1
    assert len(uq.rescore(place.uri, alpha=0.8, n_bins=7).skipped) == RUNS
