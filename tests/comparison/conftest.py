"""Methods on common data, as reports and as logged runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.tracking.folder import FolderStore

N = 400


def samples(seed=0, n=N):
    """Truth, mean and the true spread of the errors."""
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.2, 2.0, n)
    truth = rng.normal(10, 3, n)
    return truth, truth + spread * rng.normal(size=n), spread


def methods():
    """Standard deviations of one set of predictions: informed, constant, and without relation to the error."""
    _, _, spread = samples()
    rng = np.random.default_rng(9)
    return {
        "informed": spread,
        "constant": np.full(N, spread.mean()),
        "shuffled": rng.permutation(spread),
        "overconfident": spread / 5,
    }


@pytest.fixture(scope="session")
def reports():
    """A report per method, all with the same predicted means."""
    truth, mean, _ = samples()
    return {name: uq.evaluate(truth, mean, std, unit="m") for name, std in methods().items()}


@pytest.fixture(scope="session")
def seeds():
    """Three methods of four runs each; two of them differ by less than the seeds do."""
    truth, mean, spread = samples()
    made = {}
    for name, shift in (("good", 0.0), ("as good", 0.002), ("bad", 1.0)):
        rng = np.random.default_rng(len(name))
        made[name] = [
            uq.evaluate(truth, mean + shift + rng.normal(0, 0.05, N), spread * (1 + 0.02 * rng.normal()))
            for _ in range(4)
        ]
    return made


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Logged runs with maps: two methods, one of them twice."""
    path = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(3, 20, 24))
    truth[0, :4, :4] = np.nan
    for method, scale in (("small", 0.5), ("large", 1.5), ("large", 1.6)):
        mean = truth + scale * rng.normal(size=truth.shape)
        std = np.full(truth.shape, scale) * rng.uniform(0.8, 1.2, truth.shape)
        uq.log(
            truth,
            np.nan_to_num(mean),
            std,
            run=f"dir:{path}",
            method=method,
            unit="m",
            figures=False,
            maps=False,
        )
    return path


@pytest.fixture
def store(tmp_path):
    """An empty folder of runs."""
    return FolderStore(tmp_path / "runs")


def report_of(scores, task="regression", **changes):
    """A report with these scores only, of predictions that nobody can tell."""
    base = uq.evaluate([1.0, 2.0, 3.0], [1.1, 1.9, 3.2], [0.1, 0.2, 0.3])
    changes = {"provenance": {**base.provenance, "digest": None}, **changes}
    return replace(base, task=task, scores=scores, undefined={}, curves={}, statistics=None, **changes)
