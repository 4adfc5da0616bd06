"""An interval that excludes its own score says why."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq


def excluded(report):
    """Scores outside their intervals, and whether a note explains it."""
    notes = report.provenance["intervals"]["notes"]
    return {
        key: "debiased" in notes.get(key, "")
        for key, (low, high) in report.intervals.items()
        if not low <= report.scores[key] <= high
    }


def regression(rng):
    count = int(rng.choice([8, 12, 16, 30]))
    groups = np.arange(count * 20) % count
    s = np.exp(rng.choice([0.01, 0.5]) * rng.normal(size=len(groups)))
    e = s * rng.choice([1.0, 1.6]) * rng.normal(size=len(groups))
    e *= np.exp(rng.choice([0.0, 0.4]) * rng.normal(size=count))[groups]
    return uq.evaluate(e, np.zeros(len(e)), s, groups=groups)


def classification(rng):
    groups = np.arange(600) % int(rng.choice([8, 16]))
    probs = rng.dirichlet(np.ones(3), 600)
    labels = np.asarray([rng.choice(3, p=p) for p in probs])
    return uq.evaluate(labels, probs=probs, groups=groups)


@pytest.mark.slow
def test_every_score_outside_its_interval_has_a_note():
    rng = np.random.default_rng(0)
    found = [excluded(regression(rng)) for _ in range(40)] + [
        excluded(classification(rng)) for _ in range(10)
    ]
    assert any("ence" in one for one in found)
    assert all(all(one.values()) for one in found)


@pytest.mark.slow
def test_scores_inside_have_no_such_note():
    rng = np.random.default_rng(1)
    for _ in range(5):
        report = regression(rng)
        notes = report.provenance["intervals"]["notes"]
        assert {key for key, note in notes.items() if "debiased" in note} == set(excluded(report))
