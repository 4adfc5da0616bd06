"""The sentence is right in at least 95 % of the sets of every scenario, each statement judged on its own."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

import uq_tracking as uq

from . import classification, regression
from .regression import Scenario

SCENARIOS = {**regression.SCENARIOS, **classification.SCENARIOS}

CHEAP, FEW = 20, 6
"""Sets of a scenario in every run of the tests, and of a slow one."""
MANY = 40 if os.environ.get("SHORT") else 400
"""Sets of a scenario in a simulation: `make simulate`, or `make simulate SHORT=1`."""
RIGHT = 0.95


def missed(scenario: Scenario, seed: int) -> set[str]:
    """Return what the verdict gets wrong on one set."""
    arguments, options = scenario.make(np.random.default_rng([seed, len(scenario.name)]))
    report = uq.evaluate(*arguments, **options)
    verdict = report.verdict
    said = " ".join([verdict.text, *verdict.caveats])
    biased = verdict.bias is not None and not verdict.bias.low <= 0 <= verdict.bias.high
    wrong = {
        "calibration": verdict.calibration not in scenario.calibration,
        "ranking": verdict.ranking not in scenario.ranking,
        "bias": scenario.bias is not None and biased != scenario.bias,
        "words": not all(text in said for text in scenario.says)
        or any(text in said for text in scenario.never),
    }
    return {name for name, is_wrong in wrong.items() if is_wrong}


def most_wrong(sets: int) -> int:
    """Return how often a statement may be wrong that is wrong in 5 % of sets, at three standard errors."""
    return int(sets * (1 - RIGHT) + 3 * np.sqrt(sets * RIGHT * (1 - RIGHT)))


def count(scenario: Scenario, sets: int) -> Counter[str]:
    return Counter(name for seed in range(sets) for name in missed(scenario, seed))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_sentence_is_right(scenario):
    sets = FEW if scenario.slow else CHEAP
    wrong = count(scenario, sets)
    assert max(wrong.values(), default=0) <= most_wrong(sets), f"{scenario.truth}: {dict(wrong)} of {sets}"


@pytest.mark.simulation
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_sentence_is_right_in_95_percent(scenario):
    sets = FEW if scenario.slow else MANY
    wrong = count(scenario, sets)
    assert max(wrong.values(), default=0) <= most_wrong(sets), f"{scenario.truth}: {dict(wrong)} of {sets}"


def test_a_wrong_sentence_would_be_found():
    scenario = SCENARIOS["too_small"]
    other = Scenario(scenario.name, scenario.make, scenario.truth, ("underconfident",), says=("too large",))
    assert count(other, 3) == {"calibration": 3, "words": 3}
