"""Class probabilities whose truth is known, and what a verdict must say of them: the contract of the sentence.

As for `regression`: whoever changes a word of the verdict changes it here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .regression import ANY_RANKING, FINE, OVER, SHAPE, UNDER, UNKNOWN, USEFUL, Scenario, into

HIGH, LOW = ("too high",), ("too low",)
SCENARIOS: dict[str, Scenario] = {}
scenario = into(SCENARIOS)
Made = tuple[tuple[Any, ...], dict[str, Any]]


def events(rng: np.random.Generator, p: Any, truth: Any, **options: Any) -> Made:
    """Return events that occur with probability ``truth``, stated as ``p``."""
    happened = (rng.random(np.shape(p)) < truth).astype(int)
    return (happened,), {"probs": p, **options}


def stated(rng: np.random.Generator, n: int, spread: float = 2.0, mean: float = 0.0) -> np.ndarray:
    """Return probabilities as a logistic regression states them."""
    return special.expit(mean + spread * rng.normal(size=n))


def odds(p: np.ndarray, factor: float, slope: float = 1.0) -> np.ndarray:
    """Return probabilities whose odds are ``factor`` times the odds of ``p`` to the power ``slope``."""
    return special.expit(np.log(factor) + slope * special.logit(p))


def patients(rng: np.random.Generator, groups: int, size: int, correlation: float) -> tuple[Any, Any, Any]:
    """Return probabilities, uniform numbers that are alike within a group, and the groups."""
    code = np.repeat(np.arange(groups), size)
    shared = np.sqrt(correlation) * rng.normal(size=groups)[code]
    alike = special.ndtr(shared + np.sqrt(1 - correlation) * rng.normal(size=len(code)))
    return stated(rng, len(code)), alike, code


def labelled(
    rng: np.random.Generator, n: int, classes: int, factor: float = 1.0, spread: float = 1.5
) -> Made:
    """Return classes drawn from a model, whose stated logits are ``factor`` times its own."""
    logits = spread * rng.normal(size=(n, classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return (labels,), {"probs": special.softmax(factor * logits, axis=1)}


# ---- an event, calibrated ----


@scenario("calibrated, 1500 samples", (*FINE, *UNKNOWN), USEFUL, bias=None)
def event_calibrated(rng):
    p = stated(rng, 1500)
    return events(rng, p, p)


@scenario("calibrated, 100 samples", (*FINE, *UNKNOWN), bias=None)
def event_of_hundred(rng):
    p = stated(rng, 100)
    return events(rng, p, p)


@scenario("calibrated, 200,000 samples: proven", ("calibrated",), USEFUL, bias=None, says=("Calibrated: ",))
def event_proven(rng):
    p = stated(rng, 200_000)
    return events(rng, p, p)


@scenario("calibrated, events of 1.3 %", (*FINE, *UNKNOWN), bias=None)
def event_rare(rng):
    p = stated(rng, 3000, 1.2, -5)
    return events(rng, p, p)


@scenario("calibrated, events of .2 %", (*FINE, *UNKNOWN), bias=None)
def event_very_rare(rng):
    p = stated(rng, 3000, 1.0, -7)
    return events(rng, p, p)


@scenario("the same probability everywhere, right", (*FINE, *UNKNOWN), bias=None, says=("hardly vary",))
def event_constant(rng):
    p = np.full(1000, 0.12)
    return events(rng, p, p)


@scenario("calibrated, probabilities close to 0 and 1", (*FINE, *UNKNOWN), bias=None)
def event_saturated(rng):
    p = stated(rng, 1500, 12)
    return events(rng, p, p)


@scenario("calibrated, skewed probabilities", (*FINE, *UNKNOWN), bias=None)
def event_skewed(rng):
    p = special.expit(2 - rng.gamma(1, 2, 1500))
    return events(rng, p, p)


@scenario("calibrated, exponential weights", (*FINE, *UNKNOWN), bias=None)
def event_weighted(rng):
    p = stated(rng, 1500)
    return events(rng, p, p, weights=rng.exponential(size=1500) + 0.01)


@scenario("calibrated, 30 patients whose events are alike", (*FINE, *UNKNOWN), bias=None)
def event_of_patients(rng):
    p, alike, code = patients(rng, 30, 50, 0.2)
    return ((alike < p).astype(int),), {"probs": p, "groups": code}


@scenario("calibrated, 12 patients whose events are alike", (*FINE, *UNKNOWN), bias=None)
def event_of_few_patients(rng):
    p, alike, code = patients(rng, 12, 100, 0.2)
    return ((alike < p).astype(int),), {"probs": p, "groups": code}


@scenario("10 samples", UNKNOWN, bias=None)
def event_of_ten(rng):
    p = stated(rng, 10)
    return events(rng, p, p)


# ---- an event, miscalibrated ----


@scenario("true odds twice the stated ones", LOW, bias=None, says=("Too low: ",))
def event_too_low(rng):
    p = stated(rng, 1500)
    return events(rng, p, odds(p, 2))


@scenario("true odds half of the stated ones", HIGH, bias=None, says=("Too high: ",))
def event_too_high(rng):
    p = stated(rng, 1500)
    return events(rng, p, odds(p, 0.5))


@scenario(
    "rare events, stated five times too often", HIGH, bias=None, says=("times as many events as occur",)
)
def event_rare_too_high(rng):
    p = stated(rng, 20_000, 1.2, -4)
    return events(rng, p, p / 5)


@scenario(
    "rare events, stated at a third", LOW, bias=None, says=("times as many events occur as it forecasts",)
)
def event_rare_too_low(rng):
    p = stated(rng, 20_000, 1.0, -5)
    return events(rng, p, 3 * p)


@scenario("logits 1.5 times too large", OVER, bias=None, says=("too extreme",), never=("Too high", "Too low"))
def event_extreme(rng):
    p = stated(rng, 1500)
    return events(rng, p, odds(p, 1, 1 / 1.5))


@scenario("logits 1.5 times too small", UNDER, bias=None, says=("too timid",), never=("Too high", "Too low"))
def event_timid(rng):
    p = stated(rng, 1500)
    return events(rng, p, odds(p, 1, 1.5))


@scenario(
    "odds twice as high, logits 1.6 times too large", (*LOW, *OVER), bias=None, says=("too extreme", "oo low")
)
def event_low_and_extreme(rng):
    p = stated(rng, 3000)
    return events(rng, p, odds(p, 2, 1 / 1.6))


@scenario(".2 and .8 stated, .4 and 1 true", LOW, bias=None)
def event_of_two_values(rng):
    p = rng.choice([0.2, 0.8], 1000)
    return events(rng, p, p + 0.2)


@scenario(
    "right on average, too high at some levels and too low at others", (*SHAPE, *OVER, *UNDER), bias=None
)
def event_wave(rng):
    p = stated(rng, 5000)
    return events(rng, p, np.clip(p + 0.1 * np.sin(4 * np.pi * p), 0, 1))


@scenario("0 stated for events that occur", OVER, bias=None, says=("it states 0 for 3 samples",))
def event_excluded(rng):
    p = stated(rng, 1000)
    (happened,), options = events(rng, p, p)
    p[:3], happened[:3] = 0.0, 1
    return (happened,), options


@scenario("one in ten wrong, .001 stated", OVER, bias=None, says=("times as many errors",))
def event_near_certain(rng):
    p = np.full(300, 0.001)
    return events(rng, p, 0.1)


@scenario("probabilities of the other class", OVER, bias=None, says=("reversed",))
def event_reversed(rng):
    p = stated(rng, 1500)
    return events(rng, p, 1 - p)


@scenario(
    "probabilities that have nothing to do with the event", OVER, bias=None, says=("calibration slope",)
)
def event_unrelated(rng):
    p = stated(rng, 1500)
    return events(rng, p, 0.5)


@scenario("true odds three times the stated ones, 30 patients", LOW, bias=None)
def event_of_patients_too_low(rng):
    p, alike, code = patients(rng, 30, 50, 0.2)
    return ((alike < odds(p, 3)).astype(int),), {"probs": p, "groups": code}


@scenario("logits 1.6 times too large, 30 patients", (*OVER, *HIGH, *LOW), bias=None, says=("too extreme",))
def event_of_patients_extreme(rng):
    p, alike, code = patients(rng, 30, 50, 0.1)
    return ((alike < odds(p, 1, 1 / 1.6)).astype(int),), {"probs": p, "groups": code}


@scenario("the event is class 0, stated five times too often", HIGH, bias=None)
def event_is_class_zero(rng):
    p = stated(rng, 20_000, 1.2, -4)
    (happened,), _ = events(rng, p, p / 5)
    return (1 - happened,), {"probs": 1 - p, "event": 0}


# ---- several classes ----


@scenario("calibrated, 3 classes", (*FINE, *UNKNOWN), USEFUL, bias=None)
def three_classes(rng):
    return labelled(rng, 1500, 3)


@scenario("calibrated, 10 classes", (*FINE, *UNKNOWN), ANY_RANKING, bias=None)
def ten_classes(rng):
    return labelled(rng, 1500, 10)


@scenario("calibrated, 1000 classes", (*FINE, *UNKNOWN), bias=None)
def thousand_classes(rng):
    return labelled(rng, 400, 1000, spread=3.0)


@scenario("logits 1.5 times too large, 3 classes", OVER, USEFUL, bias=None, says=("times as many errors",))
def three_classes_extreme(rng):
    return labelled(rng, 1500, 3, 1.5)


@scenario("logits 1.5 times too small, 10 classes", UNDER, bias=None)
def ten_classes_timid(rng):
    return labelled(rng, 1500, 10, 1 / 1.5)


@scenario("logits 1.3 times too large, 1000 classes", OVER, bias=None)
def thousand_classes_extreme(rng):
    return labelled(rng, 1000, 1000, 1.3, spread=3.0)


@scenario("maps of 5 classes of 12 patients, calibrated", (*FINE, *UNKNOWN), bias=None)
def segmentation(rng):
    (labels,), options = labelled(rng, 12 * 256, 5)
    shape = (12, 16, 16)
    return (labels.reshape(shape),), {"probs": options["probs"].reshape(*shape, 5), "groups": np.arange(12)}


@scenario("maps of 5 classes of 12 patients, logits twice too large", OVER, bias=None)
def segmentation_extreme(rng):
    (labels,), options = labelled(rng, 12 * 256, 5, 2.0)
    shape = (12, 16, 16)
    return (labels.reshape(shape),), {"probs": options["probs"].reshape(*shape, 5), "groups": np.arange(12)}
