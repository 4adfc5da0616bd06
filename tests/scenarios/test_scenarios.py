"""The sentence is right in at least 95 % of the sets of every scenario, each statement judged on its own."""

from __future__ import annotations

import os
import re
from collections import Counter

import pytest
from scipy import stats

from uq_tracking.inference.words import NO_CLAIM

from . import classification, regression
from .regression import Scenario

SCENARIOS = {**regression.SCENARIOS, **classification.SCENARIOS}

FEW = 2
"""Sets of a scenario in every run of the tests, if the first is wrong: they ask only whether most are right."""
QUICK = 20
"""So few sets are enough only where at most one is wrong."""
IS_SHORT = bool(os.environ.get("SHORT"))
STAGES = (QUICK, 40, 400) if IS_SHORT else (400, 2000)
"""Sets of a scenario in `make simulate SHORT=1` or `make simulate`; more only if more of the first are wrong than 5 %
explain."""
STAGES_OF_SLOW = (40, 120) if IS_SHORT else STAGES
WRONG = 0.05
DOUBT, SURE = 0.95, 0.999
"""How improbable so many wrong sets must be for more to be counted, and for a scenario to fail. Of 250 statements
that are each wrong in exactly 5 %, one fails in 4 % of suites; if `DOUBT` decided, it would in 86 %."""
STEP = re.compile(
    r"\b(check|recalibrate|multiply|replace|correct|state|look|find out|fit|widen|narrow|shift|add|subtract|raise|"
    r"lower|pass|score|clip|mask|mend|try|see|are (?:they|labels|its))\b",
    re.IGNORECASE,
)
"""A verb of the steps that a sentence names."""
OF_BIAS = ("on average (", "lie below the predicted median")
"""What is said of a bias."""


def missed(scenario: Scenario, seed: int) -> set[str]:
    """Return what the verdict gets wrong on one set."""
    verdict = scenario.verdict(seed)
    said = " ".join([verdict.text, *verdict.caveats])
    biased = any(text in verdict.text for text in OF_BIAS)
    wrong = {
        "calibration": verdict.calibration not in scenario.calibration,
        "ranking": verdict.ranking not in scenario.ranking,
        "bias": scenario.bias is not None and biased != scenario.bias,
    }
    if not any(wrong.values()):  # a wrong word brings its own texts
        told = all(text in said for text in scenario.says)
        acts = verdict.calibration in NO_CLAIM or STEP.search(verdict.text)
        wrong["words"] = not (told and acts) or any(text in said for text in scenario.never)
    return {name for name, is_wrong in wrong.items() if is_wrong}


def most_wrong(sets: int, level: float = SURE) -> int:
    """Return how many sets may be wrong: a statement wrong in 5 % of all has at most so many at this level.

    >>> [most_wrong(sets, DOUBT) for sets in (40, 400)], [most_wrong(sets) for sets in (120, 400, 2000)]
    ([4, 27], [14, 35, 131])
    """
    return 1 if sets == QUICK else int(stats.binom.ppf(level, sets, WRONG))


def count(scenario: Scenario, sets: range) -> Counter[str]:
    return Counter(name for seed in sets for name in missed(scenario, seed))


def too_often(scenario: Scenario, stages: tuple[int, ...]) -> str:
    """Say which statement is wrong in more than 5 % of sets, as all stages find; else ""."""
    wrong: Counter[str] = Counter()
    known = 0
    for sets in stages:
        wrong += count(scenario, range(known, sets))
        if max(wrong.values(), default=0) <= most_wrong(sets, SURE if sets == stages[-1] else DOUBT):
            return ""
        known = sets
    return f"{scenario.truth}: {dict(wrong)} of {known}"


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(each, marks=[pytest.mark.slow] * each.slow) for each in SCENARIOS.values()],
    ids=SCENARIOS,
)
def test_the_sentence_is_right(scenario):
    wrong = count(scenario, range(1))
    if wrong:
        wrong += count(scenario, range(1, FEW))
    assert max(wrong.values(), default=0) < FEW, f"{scenario.truth}: {dict(wrong)} of {FEW}"


@pytest.mark.simulation
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_sentence_is_right_in_95_percent(scenario):
    assert not too_often(scenario, STAGES_OF_SLOW if scenario.slow else STAGES)


def test_a_wrong_sentence_would_be_found():
    scenario = SCENARIOS["too_small"]
    word = Scenario(scenario.name, scenario.make, scenario.truth, ("underconfident",))
    assert count(word, range(3)) == {"calibration": 3}
    text = Scenario(scenario.name, scenario.make, scenario.truth, ("overconfident",), says=("too large",))
    assert count(text, range(3)) == {"words": 3}
    assert too_often(text, (2, 4)) == "1.5 times too small: {'words': 4} of 4"
