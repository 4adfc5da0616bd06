"""Class probabilities whose truth is known, and what a verdict must say of them: the contract of the sentence.

As for `regression`: whoever changes a word of the verdict changes it here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import spatial, special

import uq_tracking as uq
from uq_tracking.recalibration.classification import Isotonic

from .regression import (
    ANY,
    ANY_RANKING,
    FINE,
    FLAT,
    OVER,
    SHAPE,
    UNDER,
    UNKNOWN,
    USEFUL,
    Scenario,
    field,
    into,
    series,
    streamed,
)

HIGH, LOW, CLASSES = ("too high",), ("too low",), ("miscalibrated in classes",)
FEW = ("overconfident in few samples",)
SCENARIOS: dict[str, Scenario] = {}
scenario = into(SCENARIOS, ("brier",))
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


@scenario(
    "odds 2 % too high, 400,000 samples: too little to matter", ("calibrated",), USEFUL, bias=None, slow=True
)
def event_negligibly_too_high(rng):
    p = stated(rng, 400_000)
    return events(rng, odds(p, 1.02), p)


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


def by_class(rng: np.random.Generator, n: int, mean: float, weight: float, factor: float = 1.0) -> Made:
    """Return events that weigh more than others, stated as the weighted ones occur, or odds that much higher."""
    rate = stated(rng, n, 1.0, mean)
    happened = (rng.random(n) < rate).astype(int)
    weights = np.where(happened == 1, weight, 1.0)
    return (happened,), {"probs": odds(rate, weight * factor), "weights": weights}


@scenario("calibrated for weights of 10 of the events, 3 % of the samples", (*FINE, *UNKNOWN), bias=None)
def event_weighted_by_class(rng):
    return by_class(rng, 3000, -4, 10.0)


@scenario("odds 1.3 times too high for weights of 10 of all but the events", HIGH, bias=None)
def event_weighted_too_high(rng):
    return by_class(rng, 4000, -2, 0.1, 1.3)


@scenario("calibrated, weights that grow with the probability", (*FINE, *UNKNOWN), bias=None)
def event_weighted_by_probability(rng):
    p = stated(rng, 1500)
    return events(rng, p, p, weights=np.exp(4 * p))


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


@scenario(
    "true odds twice the stated ones", LOW, bias=None, says=("Probabilities too low: ",),
    never=(" to 1.00; 1 is", "limits 1.00 to"),
)  # fmt: skip
def event_too_low(rng):
    p = stated(rng, 1500)
    return events(rng, p, odds(p, 2))


@scenario(
    "odds 5 % too high, 40,000 samples: slightly", (*HIGH, *FINE), USEFUL, bias=None,
    never=("Slightly prob",),
)  # fmt: skip
def event_slightly_too_high(rng):
    p = stated(rng, 40_000)
    return events(rng, odds(p, 1.05), p)


@scenario("true odds half of the stated ones", HIGH, bias=None, says=("Probabilities too high: ",))
def event_too_high(rng):
    p = stated(rng, 1500)
    return events(rng, p, odds(p, 0.5))


@scenario("rare events, stated five times too often", HIGH, bias=None, says=("times as often as it occurs",))
def event_rare_too_high(rng):
    p = stated(rng, 20_000, 1.2, -4)
    return events(rng, p, p / 5)


@scenario("rare events, stated at a third", LOW, bias=None, says=("times as often as stated",))
def event_rare_too_low(rng):
    p = stated(rng, 20_000, 1.0, -5)
    return events(rng, p, 3 * p)


@scenario("logits 1.5 times too large", OVER, bias=None, says=("too extreme",), never=("Too high", "Too low"))
def event_extreme(rng):
    p = stated(rng, 1500)
    return events(rng, p, odds(p, 1, 1 / 1.5))


@scenario(
    "logits 1.5 times too small",
    UNDER,
    bias=None,
    says=("not extreme enough",),
    never=("Too high", "Too low"),
)
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


@scenario(
    "right on average, too low at both ends and in the middle, 1500 samples: too few for isotonic", SHAPE, bias=None,
    says=("Instead, pass at least 2,000 samples, 150 of each class, so that",), never=("change the model",),
)  # fmt: skip
def event_wave_of_few(rng):
    p = rng.uniform(0.1, 0.9, 1500)
    return events(rng, p, np.clip(p + 0.15 * np.cos(5 * np.pi * (p - 0.5)), 0, 1))


@scenario("0 stated for events that occur", OVER, bias=None, says=("the model states 0 for 3 samples",))
def event_excluded(rng):
    p = stated(rng, 1000)
    (happened,), options = events(rng, p, p)
    p[:3], happened[:3] = 0.0, 1
    return (happened,), options


@scenario("one in ten wrong, .001 stated", OVER, bias=None, says=("times as many",))
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


@scenario(
    "logits 3 times too large, 150 samples", OVER, bias=None,
    says=("Recalibrate with logistic, then score other samples",), never=("on held-out halves, the",),
)  # fmt: skip
def event_of_few_extreme(rng):
    p = stated(rng, 150, 3.0)
    return events(rng, p, odds(p, 1, 1 / 3))


@scenario(
    "log odds 2.5 times too large, about 30 events in 500 samples", (*OVER, *LOW), bias=None,
    says=("Recalibrate with logistic",), never=("calibration error", "No recalibration"),
)  # fmt: skip
def event_rare_extreme(rng):
    p = stated(rng, 500, 1.2, -3.2)
    return events(rng, odds(p, 0.5, 2.5), p)


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


@scenario("calibrated, 10 classes, but one of the most certain samples is wrong", ANY, USEFUL, bias=None)
def ten_classes_one_certain_error(rng):
    (labels,), options = labelled(rng, 600, 10, spread=9.0)
    certain = np.argsort(-options["probs"].max(axis=1))[3]
    labels[certain] = np.argsort(options["probs"][certain])[-2]
    return (labels,), options


@scenario("calibrated, 1000 classes", (*FINE, *UNKNOWN), bias=None)
def thousand_classes(rng):
    return labelled(rng, 400, 1000, spread=3.0)


@scenario("logits 1.5 times too large, 3 classes", OVER, USEFUL, bias=None, says=("times as many",))
def three_classes_extreme(rng):
    return labelled(rng, 1500, 3, 1.5)


@scenario(
    "logits 2.5 times too large, 3 classes, 90 samples", (*OVER, *CLASSES), bias=None,
    says=("Recalibrate with temperature, then score other samples",),
)  # fmt: skip
def three_classes_of_few_extreme(rng):
    return labelled(rng, 90, 3, 2.5, 1.0)


@scenario(
    "logits 2.5 times too large, 10 classes, 200 samples", OVER, bias=None,
    says=("Recalibrate with temperature (",),
)  # fmt: skip
def ten_classes_of_few_extreme(rng):
    return labelled(rng, 200, 10, 2.5, 1.0)


@scenario("logits 1.5 times too small, 10 classes", UNDER, bias=None)
def ten_classes_timid(rng):
    return labelled(rng, 1500, 10, 1 / 1.5)


@scenario("logits 1.3 times too large, 1000 classes", OVER, bias=None, slow=True)
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


def drawn(rng: np.random.Generator, truth: np.ndarray, probs: np.ndarray, **options: Any) -> Made:
    """Return classes drawn from ``truth``, stated as ``probs``."""
    labels = (truth.cumsum(axis=-1) > rng.random((*truth.shape[:-1], 1)) * 0.999999).argmax(axis=-1)
    return (labels,), {"probs": probs, **options}


def shifted(probs: np.ndarray, place: int, factor: float) -> np.ndarray:
    """Return probabilities in which the odds of one class are ``factor`` times as high."""
    made = probs.copy()
    made[..., place] *= factor
    return np.asarray(made / made.sum(axis=-1, keepdims=True))


@scenario(
    "4 classes, the odds of one stated 1.8 times too high",
    CLASSES,
    bias=None,
    says=("class 2 is stated",),
    never=("probabilities are", "classes are miscalibrated"),
)
def one_class_too_high(rng):
    truth = special.softmax(1.5 * rng.normal(size=(3000, 4)), axis=1)
    return drawn(rng, truth, shifted(truth, 2, 1.8))


@scenario(
    "the odds of one of 4 classes stated 3.3 times too high, 220 samples", (*CLASSES, *OVER), bias=None,
    says=("Recalibrate with bias_temperature, then score other samples",),
)  # fmt: skip
def one_class_of_few_too_high(rng):
    truth = special.softmax(1.5 * rng.normal(size=(220, 4)), axis=1)
    return drawn(rng, truth, shifted(truth, 2, 3.3))


@scenario(
    "three classes, at one of four sites with other frequencies", ("miscalibrated in places",), bias=None,
    says=("recalibrate each stratum separately with bias_temperature",), never=("First check labels",),
)  # fmt: skip
def classes_of_one_site(rng):
    logits, site = 1.5 * rng.normal(size=(3000, 3)), rng.integers(0, 4, 3000)
    shift = (site == 0)[:, None] * np.asarray([1.5, 0, -1.5])
    truth = (logits + shift + rng.gumbel(size=(3000, 3))).argmax(axis=1)
    return (truth,), {"probs": special.softmax(logits, axis=1), "by": site}


@scenario(
    "4 classes with names, the odds of one stated at a third",
    (*CLASSES, *UNDER, *OVER),
    bias=None,
    says=("lass liver occurs",),
)
def named_class_too_low(rng):
    truth = special.softmax(1.5 * rng.normal(size=(4000, 4)) + [1.0, 0.0, 0.0, -1.0], axis=1)
    names = ["air", "bone", "fat", "liver"]
    return drawn(rng, truth, shifted(truth, 3, 1 / 3), classes=names)


@scenario(
    "10 classes, a rare one stated four times too often",
    CLASSES,
    bias=None,
    slow=True,
    says=("class 9 is stated",),
)
def rare_class_too_high(rng):
    truth = special.softmax(1.5 * rng.normal(size=(20_000, 10)) - 4 * np.eye(10)[9], axis=1)
    return drawn(rng, truth, shifted(truth, 9, 4))


@scenario(
    "3 classes that are stated at .45, .45 and .10, and occur at .38, .52 and .10",
    CLASSES,
    bias=None,
    says=("class 0 is stated at 0.45", "All confidences are equal, so they cannot rank errors."),
    never=("classes are miscalibrated", "No sign"),
)
def two_classes_exchanged(rng):
    truth = np.tile([0.38, 0.52, 0.10], (5000, 1))
    return drawn(rng, truth, np.tile([0.45, 0.45, 0.10], (5000, 1)))


@scenario("calibrated, 100 classes of which most are rare", (*FINE, *UNKNOWN), bias=None)
def hundred_rare_classes(rng):
    return labelled_with(
        rng, special.softmax(2 * rng.normal(size=(1500, 100)) - 4 * np.linspace(0, 1, 100), axis=1)
    )


def labelled_with(rng: np.random.Generator, truth: np.ndarray, **options: Any) -> Made:
    """Return classes drawn from probabilities that are stated as they are."""
    return drawn(rng, truth, truth, **options)


@scenario("calibrated, 3 classes, 60 samples", (*FINE, *UNKNOWN), bias=None)
def three_classes_of_sixty(rng):
    return labelled(rng, 60, 3)


@scenario(
    "calibrated, 5 classes, 200,000 samples: proven",
    ("calibrated",),
    USEFUL,
    bias=None,
    says=("Calibrated: ",),
)
def five_classes_proven(rng):
    return labelled(rng, 200_000, 5)


@scenario(
    "logits 1 % too large, 5 classes, 300,000 samples: too little to matter",
    ("calibrated",),
    USEFUL,
    bias=None,
)
def five_classes_negligibly_extreme(rng):
    return labelled(rng, 300_000, 5, 1.01)


@scenario(
    "columns in another order than the labels, 5 classes", (*OVER, *CLASSES), ANY_RANKING, bias=None,
    says=("First check the input: ", "the columns may be in another order than the labels"),
)  # fmt: skip
def class_order(rng):
    (labels,), options = labelled(rng, 1000, 5)
    return (labels,), {"probs": np.roll(options["probs"], 1, axis=1)}


@scenario("calibrated, 5 classes, exponential weights", (*FINE, *UNKNOWN), bias=None)
def five_classes_weighted(rng):
    (labels,), options = labelled(rng, 1500, 5)
    return (labels,), {**options, "weights": rng.exponential(size=1500) + 0.01}


@scenario("calibrated for weights of 1, 3 and 10 by class", (*FINE, *UNKNOWN), bias=None)
def three_classes_weighted_by_class(rng):
    logits = 1.5 * rng.normal(size=(2000, 3)) + [2.0, 1.0, 0.0]
    labels, weight = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1), np.array([1.0, 3.0, 10.0])
    return (labels,), {"probs": special.softmax(logits + np.log(weight), axis=1), "weights": weight[labels]}


@scenario("every class stated at 1/5, and so they occur", (*FINE, *UNKNOWN), bias=None)
def five_classes_constant(rng):
    return labelled_with(rng, np.full((2000, 5), 0.2))


@scenario(
    "3 classes, hardly an error is implied, one in twenty is wrong", OVER, bias=None, says=("All confidences are",),
    never=(" Class ",),
)  # fmt: skip
def three_classes_near_certain(rng):
    place = rng.integers(0, 3, 400)
    probs = np.full((400, 3), 0.0005)
    probs[np.arange(400), place] = 0.999
    return drawn(rng, 0.925 * np.eye(3)[place] + 0.025, probs)


@scenario("calibrated, nearly certain, 3 classes", (*FINE, *UNKNOWN), bias=None)
def three_classes_certain(rng):
    return labelled(rng, 1000, 3, spread=12.0)


@scenario("calibrated, 5 classes of 30 patients whose labels are alike", (*FINE, *UNKNOWN), bias=None)
def five_classes_of_patients(rng):
    code = np.repeat(np.arange(30), 50)
    base = special.softmax(1.5 * rng.normal(size=(1500, 5)), axis=1)
    shared = special.ndtr(0.45 * rng.normal(size=30)[code] + np.sqrt(1 - 0.45**2) * rng.normal(size=1500))
    labels = (base.cumsum(axis=1) > shared[:, None] * 0.999999).argmax(axis=1)
    return (labels,), {"probs": base, "groups": code}


@scenario(
    "maps of 5 organs of 12 patients, the odds of one stated 3 times too high",
    (*CLASSES, *OVER, *UNDER),
    bias=None,
    says=("lass spleen is stated",),
)
def segmentation_of_one_organ(rng):
    truth = special.softmax(1.5 * rng.normal(size=(12, 16, 16, 5)), axis=-1)
    names = ["air", "bone", "fat", "liver", "spleen"]
    return drawn(rng, truth, shifted(truth, 4, 3), groups=np.arange(12), classes=names)


@scenario(
    "logits twice too large in one half, twice too small in the other, 4 classes", (*OVER, *UNDER, *CLASSES),
    ANY_RANKING, bias=None, never=("Slightly",),
)  # fmt: skip
def four_classes_of_two_temperatures(rng):
    (labels,), options = labelled(rng, 5000, 4)
    factor = np.where(rng.random(5000) < 0.5, 2.0, 0.5)
    logits = np.log(options["probs"]) * factor[:, None]
    return (labels,), {"probs": special.softmax(logits, axis=1)}


# ---- labels of `by=` ----


PLACES = ("miscalibrated in places",)


def sites(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return one of four sites per sample."""
    return np.array(["coast", "hill", "plain", "town"])[rng.integers(0, 4, n)]


@scenario("calibrated at four sites", (*FINE, *UNKNOWN), bias=None, never=("stratum",))
def event_of_sites(rng):
    p = stated(rng, 1500)
    return events(rng, p, p, by=sites(rng, 1500))


@scenario(
    "the odds of the event are stated 3 times too high at one of four sites", (*PLACES, *HIGH, *OVER, *SHAPE),
    bias=None, says=("stratum 'coast' the event is stated",), never=("Recalibrate",),
)  # fmt: skip
def event_at_one_site(rng):
    by, truth = sites(rng, 2000), stated(rng, 2000)
    return events(rng, np.where(by == "coast", odds(truth, 3), truth), truth, by=by)


@scenario(
    "the odds of the event are stated twice too high in one half, twice too low in the other",
    (*PLACES, *OVER, *SHAPE, *HIGH, *LOW), bias=None, says=("stratum '", "' is off the other way"),
    never=("Recalibrate",),
)  # fmt: skip
def event_of_halves(rng):
    by, truth = rng.integers(0, 2, 2000), stated(rng, 2000)
    return events(rng, odds(truth, np.where(by, 2, 0.5)), truth, by=by)


@scenario(
    "probabilities are those of the other class at one of four sites", (*PLACES, *OVER, *SHAPE), bias=None,
    says=("stratum 'coast' the event is rarer the higher its probability",), never=("Recalibrate",),
)  # fmt: skip
def event_reversed_at_one_site(rng):
    by, p = sites(rng, 2000), stated(rng, 2000)
    return events(rng, p, np.where(by == "coast", 1 - p, p), by=by)


@scenario(
    "log odds 2.5 times too large at one of four sites", (*PLACES, *OVER, *SHAPE), bias=None,
    says=("stratum 'coast' probabilities are too extreme",), never=("Recalibrate",),
)  # fmt: skip
def event_too_extreme_at_one_site(rng):
    by, logit = sites(rng, 4000), 1.5 * rng.normal(size=4000)
    return events(
        rng, special.expit(logit), special.expit(np.where(by == "coast", 0.4 * logit, logit)), by=by
    )


@scenario(
    "one of four sites has another mix of five classes, confidences are right", PLACES, bias=None,
    says=("in stratum 'hill' class", "recalibrate each stratum"), never=("Recalibrate with",),
)  # fmt: skip
def five_classes_mixed_at_one_site(rng):
    by, logits = sites(rng, 3000), 1.5 * rng.normal(size=(3000, 5))
    mixed = logits + np.outer(by == "hill", [1.0, -1.0, 0, 0, 0])
    return drawn(rng, special.softmax(mixed, axis=1), special.softmax(logits, axis=1), by=by)


@scenario(
    "six hospitals of 300 rows each, one after the other, odds .4 to 2.5 times too high", PLACES, bias=None,
    says=("in stratum '", "recalibrate each stratum"), never=("rift",),
)  # fmt: skip
def hospitals_in_rows(rng):
    p, by = stated(rng, 1800, 1.5), np.repeat(np.arange(6), 300)
    return events(rng, odds(p, np.array([0.4, 0.6, 1, 1, 1.6, 2.5])[by]), p, by=by)


@scenario(
    "five folds of 600 rows each, one after the other, logits 2 to .6 times as large", PLACES, bias=None,
    says=("in stratum '", "extreme"), never=("rift",),
)  # fmt: skip
def folds_in_rows(rng):
    p, by = stated(rng, 3000, 1.5), np.repeat(np.arange(5), 600)
    return events(rng, odds(p, 1, np.array([2, 1.5, 1, 0.75, 0.6])[by]), p, by=by)


@scenario(
    "order=: log odds 2 times too small at all times; the event becomes more frequent, as the model knows",
    UNDER, bias=None, says=("Recalibrate with logistic",), never=("Drift",),
)  # fmt: skip
def timid_at_all_times(rng):
    log_odds = np.linspace(-2, 2, 1500) + 1.2 * rng.normal(size=1500)
    return events(rng, special.expit(log_odds / 2), special.expit(log_odds), order=np.arange(1500))


@scenario(
    "order=: an event more frequent at weekends, log odds 1.2 too low there, .5 too high else", PLACES, bias=None,
    says=("rrors recur every 7 steps", "step % 7", "Recalibrate each place in the period"),
)  # fmt: skip
def event_at_weekends(rng):
    p, day = stated(rng, 1400, 1.0), np.arange(1400)
    return events(rng, p, odds(p, np.exp(np.where(day % 7 >= 5, 1.2, -0.5))), order=day)


@scenario(
    "order=: the event becomes rarer and then more frequent again, log odds by 2.2", PLACES, bias=None,
    says=("of the way through the samples, the model expects", "Find out what is special"),
)  # fmt: skip
def rate_in_waves(rng):
    p = stated(rng, 4000, 1.5)
    return events(
        rng, p, odds(p, np.exp(2.2 * np.abs(np.linspace(-1, 1, 4000)) - 1.1)), order=np.arange(4000)
    )


@scenario(
    "the confidence in the predicted class passed as the probability of the event", (*HIGH, *OVER), ANY_RANKING,
    bias=None, says=("None is below 0.5: if these are confidences in the predicted class",), never=("First check",),
)  # fmt: skip
def confidences(rng):
    p = stated(rng, 1500, 1.5, -3)
    return events(rng, np.maximum(p, 1 - p), p)


@scenario(
    "a fifth class, stated at 3 %, never occurs", CLASSES, bias=None,
    says=("never occurs", "to 0, if it cannot occur"),
)  # fmt: skip
def class_never_occurs(rng):
    probs = special.softmax(1.5 * rng.normal(size=(2000, 4)), axis=1)
    return drawn(rng, probs, np.concatenate([0.97 * probs, np.full((2000, 1), 0.03)], axis=1))


@scenario(
    "rows in the order of time: class 0 of five becomes more frequent, its probability does not", PLACES,
    bias=None, says=("Drift along the order of the samples", "the model expects class 0"), never=("Recalibrate",),
)  # fmt: skip
def class_drifts(rng):
    logits = 1.5 * rng.normal(size=(3000, 5))
    drifting = logits + np.outer(np.linspace(-0.9, 0.9, 3000), [1, 0, 0, 0, 0])
    return drawn(
        rng, special.softmax(drifting, axis=1), special.softmax(logits, axis=1), order=np.arange(3000)
    )


@scenario(
    "order=: probabilities lose two thirds of their logits' slope, rates stay", PLACES, bias=None,
    says=("Drift along the order of the samples", "where probabilities rise by 0.1"), never=("Recalibrate",),
)  # fmt: skip
def skill_drifts(rng):
    p = stated(rng, 3000)
    return events(rng, p, odds(p, 1, np.linspace(1.5, 0.5, 3000)), order=np.arange(3000))


@scenario(
    "rows in the order of time: the event becomes more frequent, its probability does not", PLACES, bias=None,
    says=("Drift along the order of the samples", "no fixed correction will hold"), never=("Recalibrate",),
)  # fmt: skip
def event_drifts(rng):
    p = rng.uniform(0.2, 0.6, 2000)
    return events(rng, p, p + np.linspace(-0.15, 0.15, 2000))


@scenario(
    "order=: the event becomes more frequent, its probability does not", PLACES, bias=None,
    says=("Drift along the order of the samples", "no fixed correction will hold"), never=("Recalibrate",),
)  # fmt: skip
def event_drifts_with_order(rng):
    (labels,), options = event_drifts(rng)
    place = rng.permutation(2000)
    return (labels[place],), {"probs": options["probs"][place], "order": place}


@scenario(
    "order=: log odds fall by 1.5 in the last 30 %", PLACES, bias=None,
    says=("Drift along the order of the samples",), never=("Recalibrate",),
)  # fmt: skip
def event_steps_with_order(rng):
    p, at = stated(rng, 3000), np.arange(3000)
    return events(rng, p, odds(p, np.where(at < 2100, 1, np.exp(-1.5))), order=at)


@scenario("order=: calibrated", (*FINE, *UNKNOWN), bias=None, never=("along the order",))
def event_with_order(rng):
    p = stated(rng, 2000)
    return events(rng, p, p, order=np.arange(2000))


@scenario(
    "rows in the order of time: rate and probability rise alike",
    (*FINE, *UNKNOWN),
    bias=None,
    never=("along the order",),
)
def event_rises_as_stated(rng):
    p = rng.uniform(0.1, 0.3, 2000) + np.linspace(0, 0.5, 2000)
    return events(rng, p, p)


@scenario(
    "5 classes, rows in the order of time: logits become too large", (*PLACES, *OVER, *CLASSES), bias=None,
    says=("along the order of the samples: in the first 20 %, the model expects", "no fixed correction will hold"),
    never=("Recalibrate",),
)  # fmt: skip
def five_classes_drift(rng):
    logits = 1.5 * rng.normal(size=(3000, 5))
    probs = special.softmax(logits * np.linspace(0.6, 1.8, 3000)[:, None], axis=1)
    return (drawn(rng, special.softmax(logits, axis=1), probs)[0][0],), {"probs": probs}


@scenario(
    "calibrated, three classes, rows in time: what occurs is like what occurred before",
    (*FINE, *UNKNOWN),
    bias=None,
)
def three_classes_in_time(rng):
    probs = special.softmax(rng.normal(size=(1500, 3)), axis=1)
    latent = special.ndtr(series(rng, 1500, 0.9))[:, None]
    return ((latent > probs.cumsum(axis=1)).sum(axis=1).clip(max=2),), {"probs": probs}


def class_by_class(rng: np.random.Generator, factor: float) -> Made:
    """Return ten classes one after the other, in any order."""
    (labels,), options = labelled(rng, 2000, 10, factor)
    place = np.argsort(rng.permutation(10)[labels], kind="stable")
    return (labels[place],), {"probs": options["probs"][place]}


@scenario("calibrated, rows class by class", (*FINE, *UNKNOWN), bias=None, never=("correlated",))
def ten_classes_sorted(rng):
    return class_by_class(rng, 1.0)


@scenario(
    "logits 1.5 times too large, rows class by class", (*OVER, *CLASSES), bias=None,
    says=("Recalibrate with",), never=("correlated",),
)  # fmt: skip
def ten_classes_extreme_sorted(rng):
    return class_by_class(rng, 1.5)


@scenario(
    "logits 1.6 times too large, at each of ten sites the events first", (*OVER, *UNKNOWN), bias=None,
    says=("pass groups=False",),
)  # fmt: skip
def events_first_at_sites(rng):
    p = stated(rng, 1500)
    happened = events(rng, p, odds(p, 1, 1 / 1.6))[0][0]
    place = np.lexsort((-happened, np.arange(1500) // 150))
    return (happened[place],), {"probs": p[place]}


@scenario(
    "calibrated, half of the events in front of the other rows", (*FINE, *UNKNOWN), bias=None,
    says=("pass groups=False; if they are in time, order=",), never=("Drift",),
)  # fmt: skip
def events_in_front(rng):
    p = stated(rng, 2000)
    happened = events(rng, p, p)[0][0]
    place = np.argsort(happened * rng.random(2000) < 0.5, kind="stable")
    return (happened[place],), {"probs": p[place]}


@scenario(
    "calibrated, the event differs by the hour as stated, which is a label", (*FINE, *UNKNOWN), bias=None,
    never=("stratum", "correlated"),
)  # fmt: skip
def event_of_hours(rng):
    hour = np.arange(2400) % 24
    p = stated(rng, 2400, 0.7, -1 + 1.2 * np.sin(2 * np.pi * hour / 24))
    return events(rng, p, p, by=hour)


@scenario("the odds of the event depend on the hour, which is a label", PLACES, bias=None, says=("trat",))
def event_off_by_the_hour(rng):
    hour, p = np.arange(2400) % 24, stated(rng, 2400, 0.7, -1)
    return events(rng, p, odds(p, np.exp(1.2 * np.sin(2 * np.pi * hour / 24))), by=hour)


@scenario("calibrated, 5 classes at four sites", (*FINE, *UNKNOWN), bias=None, never=("stratum",))
def five_classes_of_sites(rng):
    labels, options = labelled(rng, 1500, 5)
    return labels, {**options, "by": sites(rng, 1500)}


@scenario(
    "log odds 1.6 times too large at four sites of other prevalence", (*OVER, *HIGH, *LOW), bias=None,
    says=("Recalibrate with",), never=("stratum",),
)  # fmt: skip
def event_of_sites_of_other_prevalence(rng):
    by = rng.integers(0, 4, 2000)
    p = special.expit(1.5 * (by - 1.5) + rng.normal(size=2000))
    return events(rng, odds(p, 1, 1.6), p, by=by)


@scenario(
    "log odds of 200 users of 20 samples differ", (*PLACES, *OVER), bias=None, says=("n / (n + 50)",),
    never=("Recalibrate",),
)  # fmt: skip
def event_of_users(rng):
    by, p = rng.integers(0, 200, 4000), stated(rng, 4000, 1.5)
    return events(rng, p, odds(p, np.exp(rng.normal(size=200))[by]), by=by)


OF_TRUTH = ("Labels of by= are not judged: they are made of the truth",)


@scenario(
    "calibrated, labels are groups of classes",
    (*FINE, *UNKNOWN),
    bias=None,
    says=OF_TRUTH,
    never=("stratum",),
)
def six_classes_in_two(rng):
    truth = special.softmax(1.5 * rng.normal(size=(2000, 6)) + np.repeat([1.5, 0.0], 3), axis=1)
    (labels,), options = labelled_with(rng, truth)
    return (labels,), {**options, "by": np.where(labels < 3, "vehicle", "animal")}


@scenario(
    "calibrated, labels say whether it is right",
    (*FINE, *UNKNOWN),
    bias=None,
    says=OF_TRUTH,
    never=("stratum",),
)
def event_right_or_wrong(rng):
    p = stated(rng, 2000)
    (happened,), options = events(rng, p, p)
    return (happened,), {**options, "by": np.where((p > 0.5) == happened, "right", "wrong")}


@scenario(
    "logits 1.8 times too large at one of four sites", (*PLACES, *OVER, *CLASSES), bias=None,
    says=("stratum 'coast' the model expects", "times as many"), never=("Recalibrate",),
)  # fmt: skip
def five_classes_at_one_site(rng):
    by, logits = sites(rng, 2000), 1.5 * rng.normal(size=(2000, 5))
    probs = special.softmax(logits * np.where(by == "coast", 1.8, 1)[:, None], axis=1)
    return (drawn(rng, special.softmax(logits, axis=1), probs)[0][0],), {"probs": probs, "by": by}


@scenario("logits 1.5 times too large at four sites alike", (*OVER, *CLASSES), bias=None, never=("stratum",))
def five_classes_of_sites_alike(rng):
    labels, options = labelled(rng, 2000, 5, 1.5)
    return labels, {**options, "by": sites(rng, 2000)}


@scenario(
    "calibrated, errors of each of 30 patients are alike, left and right half", (*FINE, *UNKNOWN), bias=None,
    never=("stratum",),
)  # fmt: skip
def event_of_patients_in_halves(rng):
    p, alike, code = patients(rng, 30, 50, 0.2)
    return (alike < p,), {"probs": p, "groups": code, "by": np.arange(1500) % 2}


@scenario(
    "four maps of smooth probabilities, calibrated, pixels independent", (*FINE, *UNKNOWN), bias=None,
    never=("correlated",),
)  # fmt: skip
def smooth_probabilities(rng):
    p = special.expit(1.5 * field(rng, 4, 64, 6) - 1)
    return events(rng, p, p)


# ---- streams of classes ----

IN_BATCHES = {"evaluate": partial(streamed, batch=8, metric="brier")}


def class_maps(rng: np.random.Generator, maps: int, factor: float = 1.0, spread: float = 1.5) -> Made:
    """Return maps of four classes whose neighbors are alike."""
    logits = spread * np.stack([field(rng, maps, 48, 4) for _ in range(4)], axis=-1)
    probs, latent = special.softmax(logits, axis=-1), special.ndtr(field(rng, maps, 48, 3))
    labels = (latent[..., None] > probs.cumsum(axis=-1)).sum(axis=-1).clip(max=3)
    return (labels,), {"probs": special.softmax(factor * logits, axis=-1), **IN_BATCHES}


@scenario(
    "batches of 32 calibrated maps of 4 classes, neighbors alike; half of the pixels are kept",
    (*FINE, *UNKNOWN), bias=None, never=("assumes independent",), slow=True,
)  # fmt: skip
def stream_of_class_maps(rng):
    return class_maps(rng, 32)


@scenario(
    "16 calibrated maps of 4 classes, of which only the accuracy is asked for", (*FINE, *UNKNOWN), bias=None,
    says=("are alike",), never=("rows are sorted",),
)  # fmt: skip
def class_maps_of_accuracy(rng):
    labels, options = class_maps(rng, 16, spread=5)
    return labels, {**options, "evaluate": partial(uq.evaluate, metrics=["accuracy"])}


@scenario(
    "24 maps of an event, its odds stated 4 times too low in the left third", ("miscalibrated in places",),
    bias=None, says=("in columns 0:10 the event",), never=("stratum",),
)  # fmt: skip
def event_maps_of_a_region(rng):
    truth = special.expit(1.5 * field(rng, 24, 48, 6) - 1.5)
    happened = (special.ndtr(field(rng, 24, 48, 1.5)) < truth).astype(int)
    return (happened,), {"probs": odds(truth, np.where(np.arange(48) < 16, 0.25, 1.0))}


@scenario(
    "24 maps of an event, hardly stated in 6 of them",
    FEW,
    bias=None,
    says=("at indices ", " of the first axis"),
)
def event_maps_of_missed_events(rng):
    truth = special.expit(2.5 * field(rng, 24, 48, 6) - 4)
    happened = (special.ndtr(field(rng, 24, 48, 1.5)) < truth).astype(int)
    return (happened,), {"probs": truth * np.where(np.arange(24) % 4, 1, 0.02)[:, None, None]}


@scenario(
    "batches of 32 maps of 4 classes, logits 1.6 times too large", (*OVER, *CLASSES), bias=None, slow=True
)
def stream_of_extreme_class_maps(rng):
    return class_maps(rng, 32, 1.6)


@scenario("batches of 3 calibrated classes, neighbors in time alike", (*FINE, *UNKNOWN), bias=None, slow=True)
def stream_of_classes_in_time(rng):
    labels, options = three_classes_in_time(rng)
    return labels, {**options, **IN_BATCHES}


@scenario(
    "batches of an event whose logits are twice too large at one of four sites", (*PLACES, *OVER, *HIGH, *LOW),
    bias=None, says=("stratum 'coast'",), slow=True,
)  # fmt: skip
def stream_of_event_at_one_site(rng):
    by, p = sites(rng, 3000), stated(rng, 3000)
    labels, options = events(rng, np.where(by == "coast", odds(p, 1, 2), p), p, by=by)
    return labels, {**options, "evaluate": partial(streamed, batch=500, metric="brier")}


@scenario(
    "log odds twice too large at four of eight sites", (*PLACES, *OVER), bias=None,
    never=("no miscalibration is found",),
)  # fmt: skip
def half_of_the_sites_extreme(rng):
    logit, site = 1.5 * rng.normal(size=4000), np.arange(4000) % 8
    return events(rng, special.expit(logit * np.where(site < 4, 2, 1)), special.expit(logit), by=site)


@scenario(
    "logits twice too large at four of eight sites, 4 classes", (*PLACES, *OVER), bias=None,
    never=("no miscalibration is found",),
)  # fmt: skip
def four_classes_at_half_of_the_sites(rng):
    logits, site = 1.5 * rng.normal(size=(4000, 4)), np.arange(4000) % 8
    probs = special.softmax(logits * np.where(site < 4, 2, 1)[:, None], axis=1)
    return (drawn(rng, special.softmax(logits, axis=1), probs)[0][0],), {"probs": probs, "by": site}


@scenario(
    "an event at .999 or .001, right in 80 %", OVER, bias=None, says=("times as many", "Recalibrate with")
)
def certain_of_either(rng):
    is_stated = rng.random(1000) < 0.4
    occurs = np.where(rng.random(1000) < 0.8, is_stated, ~is_stated)
    return (occurs.astype(int),), {"probs": np.where(is_stated, 0.999, 0.001)}


@scenario(
    "log odds 1.1 times too small: a curve would only add noise",
    (*UNDER, *FINE),
    bias=None,
    never=("isotonic",),
)
def event_hardly_timid(rng):
    p = stated(rng, 5000)
    return events(rng, p, odds(p, 1, 1.1))


@scenario(
    "10 classes, a tenth of each probability smeared over all", UNDER, bias=None, says=("Recalibrate with",)
)
def ten_classes_smoothed(rng):
    probs = special.softmax(3 * rng.normal(size=(5000, 10)), axis=1)
    return drawn(rng, probs, 0.9 * probs + 0.01)


@scenario(
    "a quarter of class 0 is labelled as class 1", CLASSES, bias=None,
    says=("lass 0 is stated", "are some of class 1 in fact class 0? Then correct them", "miscalibration is left"),
)  # fmt: skip
def class_labelled_as_another(rng):
    probs = special.softmax(2.5 * rng.normal(size=(5000, 4)), axis=1)
    taken = 0.25 * probs[:, 0]
    return drawn(rng, probs + np.stack([-taken, taken, 0 * taken, 0 * taken], axis=1), probs)


@scenario(
    "votes of 5 neighbors", OVER, bias=None, never=("Check those labels",),
    says=("the model states 0 for", " % of those stated at 1)", "Recalibrate with"),
)  # fmt: skip
def event_by_votes(rng):
    truth = rng.random(5000)
    return events(rng, rng.binomial(5, truth) / 5, truth)


@scenario(
    "log odds 1.5 times too large, above .5 of at most .65: what mends them makes more errors at .5", OVER,
    bias=None, says=("Recalibrate with logistic",), never=("No recalibration",),
)  # fmt: skip
def event_right_at_half(rng):
    logit = 3 * rng.normal(size=1000)
    truth = np.where(logit < 0, special.expit(logit), 0.5 + 0.15 * np.tanh(logit))
    return events(rng, special.expit(1.5 * logit), truth)


@scenario(
    "calibrated, but 0 is stated for less than .15 and 1 for more than .85", OVER, bias=None,
    says=("the model states",), never=("Check those labels", "No recalibration"),
)  # fmt: skip
def event_without_ends(rng):
    p = stated(rng, 800)
    return events(rng, np.where(np.abs(p - 0.5) < 0.35, p, np.round(p)), p)


@scenario(
    "confidences of a language model, a fifth of them 1: it is right in .35 + half of what it states", OVER,
    bias=None, says=("the model states 1 for", "Probabilities too high", "Recalibrate with"),
    never=("Check those labels",),
)  # fmt: skip
def event_by_language_model(rng):
    p = rng.choice([0.6, 0.7, 0.8, 0.9, 0.95, 1.0], 5000, p=[0.05, 0.05, 0.1, 0.2, 0.4, 0.2])
    return events(rng, p, 0.35 + 0.5 * p)


@scenario(
    "confidences of a language model from .8 to .99: it is right in 75 % whatever it states", (*HIGH, *OVER),
    FLAT, bias=None, says=("Probabilities too high: the event is stated at 0.9",),
    never=("First check", "in the same order"),
)  # fmt: skip
def event_whatever_a_language_model_states(rng):
    return events(rng, rng.choice([0.8, 0.9, 0.95, 0.99], 500), 0.75)


@scenario(
    "5 classes by votes of 10 trees: zeros are those of a grid", (*OVER, *CLASSES), bias=None,
    says=("Recalibrate with",), never=("miscalibration is left",),
)  # fmt: skip
def five_classes_by_votes(rng):
    (labels,), options = labelled(rng, 2000, 5, spread=2.0)
    return (labels,), {"probs": np.stack([rng.multinomial(10, p) for p in options["probs"]]) / 10}


@scenario(
    "10 classes by votes of the 5 nearest of 500 samples, confidences .08 too high", (*OVER, *CLASSES),
    ANY_RANKING, bias=None, never=("No recalibration",),
    says=("Classes stated at about 0", "No class should get 0: ", "Recalibrate with temperature"),
)  # fmt: skip
def ten_classes_of_nearest(rng):
    labels, centres = rng.integers(0, 10, 1000), 0.7 * rng.normal(size=(10, 8))
    place = centres[labels] + rng.normal(size=(1000, 8))
    nearest = spatial.KDTree(place[500:]).query(place[:500], 5)[1]
    return (labels[:500],), {"probs": np.eye(10)[labels[500:]][nearest].mean(axis=1)}


@scenario(
    "5 classes, logits 1.5 times too large, probabilities of two digits", (*OVER, *CLASSES), bias=None,
    says=("Recalibrate with",),
)  # fmt: skip
def five_classes_rounded(rng):
    (labels,), options = labelled(rng, 3000, 5, 1.5, 2.0)
    probs = np.round(options["probs"], 2)
    return (labels,), {"probs": probs / probs.sum(axis=1, keepdims=True)}


COPIED = ("Rows repeat others, with equal truth and equal probabilities: the 300 different ones of 1,500",)


@scenario("calibrated, each row five times", (*FINE, *UNKNOWN), bias=None, says=COPIED)
def event_copied(rng):
    p, place = stated(rng, 300), rng.permutation(np.repeat(np.arange(300), 5))
    return (events(rng, p, p)[0][0][place],), {"probs": p[place]}


@scenario("calibrated, 4 classes, each row five times", (*FINE, *UNKNOWN), bias=None, says=COPIED)
def four_classes_copied(rng):
    (labels,), options = labelled(rng, 300, 4)
    place = rng.permutation(np.repeat(np.arange(300), 5))
    return (labels[place],), {"probs": options["probs"][place]}


@scenario(
    "calibrated, each event repeated eight times", (*FINE, *UNKNOWN), bias=None, says=("Rows repeat others",)
)
def events_oversampled(rng):
    p = stated(rng, 1000, 1.3, -2.2)
    happened = events(rng, p, p)[0][0]
    place = rng.permutation(np.append(np.arange(1000), np.repeat(np.flatnonzero(happened), 8)))
    return (happened[place],), {"probs": p[place]}


SIDES = ("Rows repeat others, with equal truth and equal probabilities, or both reversed: the 7",)


@scenario("calibrated, each game as both teams see it", (*FINE, *UNKNOWN), USEFUL, bias=None, says=SIDES)
def event_of_both_sides(rng):
    p = stated(rng, 750, 1.2)
    (won,), _ = events(rng, p, p)
    return (np.append(won, 1 - won),), {"probs": np.append(p, 1 - p)}


@scenario(
    "log odds 1.5 times too large, each game as both teams see it, 32 bits", OVER, bias=None, says=SIDES
)  # fmt: skip
def event_of_both_sides_extreme(rng):
    p = stated(rng, 750, 1.8)
    (won,), _ = events(rng, p, odds(p, 1, 1 / 1.5))
    place, p = rng.permutation(1500), p.astype(np.float32)
    return (np.append(won, 1 - won)[place],), {"probs": np.append(p, 1 - p)[place]}


def matched(rng: np.random.Generator, labels: np.ndarray, factor: float = 1.0) -> Made:
    """Return independent rows of these labels, 0 or 1 in equal shares, with ``factor`` times the log odds."""
    seen = 0.4 * (2 * labels - 1) + rng.normal(size=len(labels))
    return (labels,), {"probs": special.expit(0.8 * factor * seen)}


@scenario("calibrated, independent, labels 0, 1, 0, 1", FINE, bias=None, never=("correlated", "Rows repeat"))
def event_alternating(rng):
    return matched(rng, np.tile([0, 1], 400))


@scenario(
    "log odds twice too large, independent pairs of one label each", OVER, bias=None,
    says=("Recalibrate with",), never=("correlated",),
)  # fmt: skip
def event_of_pairs(rng):
    return matched(rng, rng.permuted(np.tile([0, 1], (400, 1)), axis=1).ravel(), 2.0)


@scenario("calibrated, independent, classes in turn", FINE, bias=None, never=("correlated", "Rows repeat"))
def three_classes_in_turn(rng):
    labels = np.tile([0, 1, 2], 300)
    return (labels,), {"probs": special.softmax(np.eye(3)[labels] + rng.normal(size=(900, 3)), axis=1)}


@scenario(
    "log odds .01 times too large, in steps of .01, 220 samples: few stumps that separate two classes", UNDER,
    bias=None, never=("Rows repeat",),
)  # fmt: skip
def event_by_few_stumps(rng):
    p = special.expit(np.round(0.6 * rng.normal(size=220), 2))
    return events(rng, p, odds(p, 1, 100))


@scenario("calibrated, 60 probabilities", (*FINE, *UNKNOWN), bias=None, never=("Rows repeat others",))
def event_of_sixty_values(rng):
    p = rng.choice(stated(rng, 60), 1500)
    return events(rng, p, p)


@scenario(
    "probabilities passed as logits", (*UNDER, *HIGH), bias=None,
    says=("First check the input: Every logit lies between 0 and 1",), never=("Recalibrate",),
)  # fmt: skip
def event_as_logits(rng):
    p = stated(rng, 1500)
    return events(rng, p, p, logits=True)


@scenario(
    "5 classes, rows of the labels in another order", OVER, bias=None,
    says=("First check the input: Predictions are right in", "in the same order, of rows and of classes?"),
)  # fmt: skip
def five_classes_shuffled(rng):
    (labels,), options = labelled(rng, 1500, 5, spread=2.0)
    return (rng.permutation(labels),), options


@scenario(
    "calibrated, probabilities of two digits", (*FINE, *UNKNOWN), bias=None, never=("Check those labels",)
)
def event_rounded(rng):
    p = stated(rng, 5000, 3.0)
    return events(rng, np.round(p, 2), p)


@scenario(
    "log odds 1.4 times too small, votes of 100", UNDER, bias=None, says=("Recalibrate with",),
    never=("Check those labels",),
)  # fmt: skip
def event_by_timid_votes(rng):
    p = stated(rng, 3000, 4.0)
    return events(rng, rng.binomial(100, odds(p, 1, 0.7)) / 100, p)


@scenario(
    "calibrated, but labels of one of 40 patients are inverted", FEW, USEFUL, bias=None,
    says=("in group '7' (2.5 % of the samples), the model expects", "Without them: consistent with calibrated"),
)  # fmt: skip
def event_of_one_inverted_patient(rng):
    p, code = stated(rng, 3600, 3.0), np.repeat(np.arange(40), 90)
    (happened,), options = events(rng, p, p, groups=code)
    return (np.where(code == 7, 1 - happened, happened),), options


@scenario(
    "4 classes, calibrated, but one of 30 images has labels of another", FEW, USEFUL, bias=None,
    says=("at index 7 of the first axis (3.33 % of the samples)", "Check the labels and inputs"), slow=True,
)  # fmt: skip
def four_classes_of_one_wrong_image(rng):
    (labels,), options = labelled(rng, 30 * 144, 4, spread=3.0)
    labels = labels.reshape(30, 12, 12)
    labels[7] = rng.permutation(labels[7])
    labels[7] = rng.permutation(labels[7].T)
    return (labels,), {"probs": options["probs"].reshape(30, 12, 12, 4)}


@scenario(
    "order=: calibrated, but labels are inverted for 8 % of the time", FEW, bias=None,
    says=("of the way through the samples, the model expects", "Without them: consistent with calibrated"),
)  # fmt: skip
def event_with_outage(rng):
    p, start = stated(rng, 3000, 3.0), rng.integers(600, 2000)
    (happened,), options = events(rng, p, p, order=np.arange(3000))
    happened[start : start + 240] ^= 1
    return (happened,), options


@scenario(
    "logits 10 times too large, so that some events are stated at 0", OVER, bias=None,
    says=("too extreme", "Recalibrate with"), never=("Check those labels",),
)  # fmt: skip
def event_of_overtrained(rng):
    p = stated(rng, 4000, 3.0)
    return events(rng, odds(p, 1, 10), p)


@scenario(
    "log odds 1.7 times too small, and 3 % of the labels are wrong", UNDER, bias=None,
    says=("not extreme enough", "Recalibrate with logistic"),
)  # fmt: skip
def event_timid_with_wrong_labels(rng):
    p = stated(rng, 1500, 3.0)
    return events(rng, odds(p, 1, 1 / 1.7), 0.97 * p + 0.015)


def of_top_three(rng: np.random.Generator, floor: float) -> Made:
    """Return probabilities of the top three of eight classes, the others at a floor."""
    truth = special.softmax(2 * rng.normal(size=(1500, 8)), axis=1)
    kept = np.where(truth >= np.sort(truth, axis=1)[:, [-3]], truth, floor)
    return drawn(rng, truth, kept / kept.sum(axis=1, keepdims=True))


TOP_THREE = ("Classes stated at about 0 occur in 1", "pass the probabilities of all classes")


@scenario("top three of eight classes, the others at 0", OVER, ANY_RANKING, bias=None, says=TOP_THREE)
def eight_classes_of_top_three(rng):
    return of_top_three(rng, 0.0)


@scenario("top three of eight classes, the others at 1e-9", OVER, ANY_RANKING, bias=None, says=TOP_THREE)
def eight_classes_of_top_three_with_floor(rng):
    return of_top_three(rng, 1e-9)


@scenario(
    "the training rows of a forest: all labels are predicted right", UNDER, ANY_RANKING, bias=None,
    says=("0 % of the predictions are wrong", "Score held-out ones"), never=("No recalibration",),
)  # fmt: skip
def event_of_training_rows(rng):
    happened = rng.integers(2, size=1500)
    return (happened,), {"probs": np.abs(1 - happened - rng.beta(8, 1, 1500).clip(0.51).round(2))}


@scenario(
    "10 classes, 1500 nearly certain samples, the logit of one is noisy", (*OVER, *CLASSES, *UNKNOWN), ANY_RANKING,
    bias=None, says=("First look at the scores of class 8. Recalibrate with",),
    never=("No recalibration", "classes are miscalibrated", "Over all classes"),
)  # fmt: skip
def ten_classes_of_one_noisy(rng):
    logits = 10 * rng.normal(size=(1500, 10))
    noise = np.outer(rng.normal(size=1500), 8 * np.eye(10)[8])
    return drawn(rng, special.softmax(logits, axis=1), special.softmax(logits + noise, axis=1))


@scenario("5 classes, a tenth of the objects are of any", OVER, bias=None, says=("Recalibrate with",))
def five_classes_with_unknown_objects(rng):
    truth = special.softmax(2 * rng.normal(size=(1500, 5)), axis=1)
    return drawn(rng, 0.9 * truth + 0.02, truth)


@scenario("calibrated, about 4 events in 5000", (*FINE, *UNKNOWN), bias=None, never=("correlated",))
def event_of_one_in_thousand(rng):
    p = special.expit(np.minimum(-7.5 + rng.normal(size=5000), 0))
    return events(rng, p, p)


@scenario("10 classes by right votes, 95 % unanimous", (*FINE, *UNKNOWN), bias=None, never=("correlated",))
def ten_classes_of_votes(rng):
    share, label = rng.choice([1, 0.8, 0.6], 900, p=[0.95, 0.025, 0.025]), rng.integers(10, size=(900, 1))
    probs = np.where(np.arange(10) == label, share[:, None], 0)
    return drawn(rng, *[probs + (np.arange(10) == (label + 1) % 10) * (1 - share[:, None])] * 2)


@scenario(
    "3 classes one after the other, in each neighbors alike, logits 1.5 times too small", (*UNDER, *UNKNOWN),
    ANY_RANKING, bias=None, says=("If rows are sorted by y_true, even in part, pass groups=False",),
)  # fmt: skip
def three_classes_sorted_in_time(rng):
    logits = 2 * np.stack([series(rng, 900, 0.95) for _ in range(3)], axis=1)
    (labels,), options = drawn(rng, special.softmax(logits, axis=1), special.softmax(logits / 1.5, axis=1))
    place = np.argsort(labels, kind="stable")
    return (labels[place],), {"probs": options["probs"][place]}


@scenario(
    "true probabilities of an event, recalibrated by isotonic fitted to the same rows", FINE, bias=None,
    says=("The fit is exact", "score others"),
)  # fmt: skip
def event_fitted_on_the_same(rng):
    p = stated(rng, 1500)
    (happened,), _ = events(rng, p, p)
    logits = special.logit(p)
    new = Isotonic.best(happened, np.stack([-logits, logits], axis=1) / 2, None)
    return (happened,), {"probs": np.interp(p, new["stated"], new["observed"])}
