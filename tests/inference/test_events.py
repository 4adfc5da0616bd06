"""The tests of an event's probability against a literal transcription, and what the verdict says of known truths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special, stats

import uq_tracking as uq
from uq_tracking.errors import SettingsError
from uq_tracking.inference.events import LEVEL_OF_EACH, EventTests, level_p
from uq_tracking.inference.verdict import Verdict
from uq_tracking.metrics.registry import compute, select
from uq_tracking.settings import Settings
from uq_tracking.statistics.classification import CLASSIFICATION
from uq_tracking.statistics.statistics import Statistics


def drawn(n, truth, seed=0, spread=2.0, mean=0.0):
    """Events that occur with ``truth(p)``, and their stated probabilities."""
    rng = np.random.default_rng(seed)
    p = special.expit(mean + spread * rng.normal(size=n))
    return (rng.random(n) < truth(p)).astype(int), p


def odds(factor, slope=1.0):
    return lambda p: special.expit(math.log(factor) + slope * special.logit(p))


def wave(p):
    return np.clip(p + 0.1 * np.sin(4 * np.pi * p), 0, 1)


def literal(y, p, w=None):
    """Level, slope and shape of independent samples, sample by sample."""
    w = np.ones(len(p)) if w is None else w
    x, v = special.logit(p), p * (1 - p)

    def loss(theta):
        eta = theta[0] + (theta[1] if len(theta) > 1 else 1.0) * x
        return np.sum(w * (np.logaddexp(0, eta) - y * eta)) / w.sum()

    a = optimize.minimize(loss, [0.0], tol=1e-14).x
    both = optimize.minimize(loss, [0.0, 1.0], tol=1e-14).x
    q = special.expit(a[0] + x)
    vq = q * (1 - q)
    centred = x - np.sum(w * vq * x) / np.sum(w * vq)
    level = np.sum(w * (y - p)) / math.sqrt(np.sum(w * w * v))
    slope = np.sum(w * (y - q) * centred) / math.sqrt(np.sum(w * w * vq * centred**2))
    return level, slope, both[1]


@pytest.mark.parametrize("truth", [odds(1.0), odds(1.5), odds(1.0, 1.3), wave])
@pytest.mark.parametrize("weighted", [False, True])
def test_level_and_slope_are_those_written_out(truth, weighted):
    y, p = drawn(1500, truth)
    w = np.random.default_rng(1).exponential(size=1500) + 0.01 if weighted else None
    statistics = uq.evaluate(y, probs=p, weights=w).statistics
    found, event = EventTests.of(statistics).tested()
    level, slope, fitted = literal(y, p, w)
    assert_allclose([found.level, found.slope], [level, slope], rtol=1e-4)
    assert_allclose(event.slope, fitted, rtol=1e-4)
    sketched, _ = EventTests.of(statistics.sketched()).tested()
    if not weighted:
        assert_allclose([sketched.level, sketched.slope], [found.level, found.slope], atol=2e-3)
        assert_allclose(sketched.shape_p, found.shape_p, atol=1e-3)


def test_the_shape_is_a_chi_square_of_gaps():
    """Five values, so five bins: the test of Hosmer and Lemeshow, given offset and slope."""
    p = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 400)
    y = (np.random.default_rng(4).random(2000) < p).astype(int)
    found, event = EventTests.of(uq.evaluate(y, probs=p).statistics).tested()
    x = special.logit(p)
    offset = optimize.brentq(lambda a: np.sum(y - special.expit(a + event.slope * x)), -5, 5)
    q = special.expit(offset + event.slope * x)
    cells = p.reshape(5, 400)[:, 0]
    gap = (y - q).reshape(5, 400).sum(axis=1)
    pearson = np.sum(gap**2 / (q * (1 - q)).reshape(5, 400).sum(axis=1))
    assert len(cells) == 5
    assert_allclose(found.shape_p, stats.chi2.sf(pearson, 3), rtol=1e-6)


def test_the_shape_of_weighted_samples_is_what_no_offset_and_slope_explain():
    """Minimum chi-square of the gaps over both; weights that follow the probability made 4 % of right ones wrong."""
    cells, weight = np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.array([1.0, 3.0, 1.2, 2.5, 1.0])
    p = np.repeat(cells, 400)
    y = (np.random.default_rng(4).random(2000) < p).astype(int)
    statistics = uq.evaluate(y, probs=p, weights=np.repeat(weight, 400), groups=False).statistics
    found, event = EventTests.of(statistics).tested()
    x = special.logit(cells)
    offset = optimize.brentq(
        lambda a: weight @ (y.reshape(5, 400).mean(axis=1) - special.expit(a + event.slope * x)), -5, 5
    )
    q = special.expit(offset + event.slope * x)
    gap, variance = weight * (y.reshape(5, 400).sum(axis=1) - 400 * q), 400 * q * (1 - q)
    moves = (weight * variance)[:, None] * np.stack([np.ones(5), x], axis=1)
    error = weight * np.sqrt(variance)
    rest = optimize.lsq_linear(moves / error[:, None], gap / error).cost
    assert_allclose(found.shape_p, stats.chi2.sf(2 * rest, 3), rtol=1e-6)


@pytest.mark.parametrize(("events", "n", "p"), [(2, 40, 0.12), (9, 40, 0.12), (33, 40, 0.9), (0, 500, 0.01)])
def test_the_level_of_equal_probabilities_is_exact(events, n, p):
    law = stats.binom(n, p)
    expected = min(1.0, 2 * min(law.cdf(events), law.sf(events - 1)))
    assert_allclose(level_p(events, n * p, n * p * (1 - p), n), expected, rtol=1e-9)


def test_a_slope_whose_limits_reach_one_is_not_said():
    happened, p = drawn(800, odds(2.0, 0.9), seed=[3, 137])
    found = uq.evaluate(happened, probs=p).verdict
    assert found.event.slope_high > 0.995
    assert "Its probabilities" not in found.text


SAID = {
    "too low": (
        odds(1.6),
        3000,
        "Probabilities too low: the event is stated at 0.49 on average, but occurs in 0.56",
    ),
    "overconfident": (
        odds(1.0, 0.75),
        3000,
        "Overconfident: probabilities are too extreme (calibration slope 0.7",
    ),
    "underconfident": (
        odds(1.0, 1.35),
        3000,
        "Underconfident: probabilities are not extreme enough (calibration slope 1.",
    ),
    "consistent with calibrated": (odds(1.0), 3000, "Consistent with calibrated: "),
    "calibrated": (odds(1.0), 400_000, "Calibrated: "),
    "not enough data": (odds(1.0), 40, "Not enough data to tell: "),
}


@pytest.mark.parametrize("word", SAID)
def test_words(word):
    truth, n, text = SAID[word]
    verdict = uq.evaluate(drawn_first(n, truth)).verdict
    assert verdict.calibration == word
    assert verdict.text.startswith(text)
    assert Verdict.from_dict(verdict.to_dict()) == verdict
    grades = {"consistent with calibrated": "unclear", "not enough data": "unclear", "calibrated": "fine"}
    assert verdict.grade == grades.get(word, "off")


def drawn_first(n, truth, **options):
    y, p = drawn(n, truth, **options)
    return uq.Predictions.from_probs(y, p)


def test_a_rare_event_forecast_too_often_is_too_high():
    verdict = uq.evaluate(drawn_first(20_000, lambda p: p / 5, mean=-5, spread=1.2)).verdict
    assert verdict.calibration == "too high"
    assert "times as often as it occurs (" in verdict.text
    assert verdict.short.split(",")[0].endswith("x too high")


def test_the_fold_hides_what_the_event_shows():
    """Of .2 and .8 where .4 and 1 are true, the top label's confidence is right on average."""
    rng = np.random.default_rng(3)
    p = rng.choice([0.2, 0.8], 20_000)
    y = (rng.random(20_000) < p + 0.2).astype(int)
    report = uq.evaluate(y, probs=p)
    assert report.scores["ece"] == pytest.approx(0.2, abs=0.01)
    assert report.scores["ece_top"] < 0.01
    assert report.verdict.calibration == "too low"


def test_events_that_were_excluded_are_counted():
    p = np.linspace(0.05, 0.95, 200)
    y = (np.random.default_rng(5).random(200) < p).astype(int)
    p[:2], y[:2] = 0.0, 1
    p[2], y[2] = 1.0, 0
    text = uq.evaluate(y, probs=p).verdict.text
    assert text.startswith(
        "Overconfident: the model states 0 for 2 samples in which the event occurred (100 % of those stated at 0) "
        "and states 1 for 1 sample in "
    )


def test_near_certain_errors_are_told_before_tests_are_refused():
    y = np.arange(300) % 10 == 0
    verdict = uq.evaluate(y.astype(int), probs=np.full(300, 0.001)).verdict
    assert verdict.text.startswith(
        "Overconfident: the model expects 0.1 % errors and makes 10 %, 100 times as many."
    )
    assert (
        "Slope and shape are not tested: samples are too few, or probabilities too close to 0 and 1"
        in " ".join(verdict.caveats)
    )


def test_probabilities_that_run_backwards_are_reversed():
    verdict = uq.evaluate(drawn_first(2000, lambda p: 1 - p)).verdict
    assert verdict.text.startswith("Probabilities are reversed (calibration slope -")


def test_statistics_of_an_older_version_know_the_top_label_only():
    y, p = drawn(500, odds(1.0))
    report = uq.evaluate(y, probs=p)
    statistics = report.statistics
    rows = {name: column for name, column in statistics.rows().items() if name != "predicted"}
    older = Statistics.exact(CLASSIFICATION, rows, facts={"n_classes": 2}, known=statistics)
    older = older.with_counts(statistics.counts)
    scores, undefined = compute(older, Settings(), select("classification"))
    assert scores["ece_top"] == pytest.approx(report.scores["ece_top"], rel=1e-12)
    assert "stored by an older version" in undefined["ece"]


GROUPS = 30


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_calibrated_events_are_rarely_called_wrong(groups):
    """Three tests at 1.7 % each; more of 60 calibrated sets than allowed here once in a thousand times."""
    wrong = 0
    codes = None if groups is None else np.arange(600) % groups
    for seed in range(60):
        y, p = drawn(600, odds(1.0), seed=seed)
        found, _ = EventTests.of(uq.evaluate(y, probs=p, groups=codes, metrics=["brier"]).statistics).tested()
        wrong += bool(found.strength)
    assert stats.binom.sf(wrong - 1, 60, 0.05) > 1e-3
    assert pytest.approx(0.017, abs=1e-4) == LEVEL_OF_EACH


FOUND = {
    "calibrated, 50": (50, 2.0, 0.0, odds(1.0), 0.05),
    "calibrated, 300": (300, 2.0, 0.0, odds(1.0), 0.05),
    "calibrated, 1500": (1500, 2.0, 0.0, odds(1.0), 0.05),
    "rare": (1500, 1.2, -5.0, odds(1.0), 0.05),
    "odds times 1.3": (1500, 2.0, 0.0, odds(1.3), 0.93),
    "slope 1/1.2": (1500, 2.0, 0.0, odds(1.0, 1 / 1.2), 0.89),
    "slope 1.3": (1500, 2.0, 0.0, odds(1.0, 1.3), 0.99),
    "wave": (1500, 2.0, 0.0, wave, 1.0),
}
"""Samples, spread and mean of the logit, truth, and the share of sets in which a test rejects: at most, or about."""


@pytest.mark.simulation
@pytest.mark.parametrize("case", FOUND)
def test_errors_are_found_as_often_as_documented(case):
    n, spread, mean, truth, share = FOUND[case]
    sets, wrong = 200, 0
    for seed in range(sets):
        y, p = drawn(n, truth, seed=seed, spread=spread, mean=mean)
        statistics = uq.evaluate(y, probs=p, metrics=["accuracy"]).statistics
        found, _ = EventTests.of(statistics).tested()
        wrong += bool(found.strength)
    assert stats.binom.sf(wrong - 1, sets, 0.05) > 1e-3 if share == 0.05 else wrong >= 0.9 * share * sets


def test_the_event_is_chosen_by_number_or_by_name():
    y, p = drawn(2000, odds(1.5))
    rate = float(np.mean(y == 0))
    chosen = [
        uq.evaluate(y, probs=p, event=0),
        uq.evaluate(y, probs=np.stack([1 - p, p], axis=1), classes=["ill", "healthy"], event="ill"),
    ]
    streamed = uq.Accumulator(event=0)
    for part in (slice(0, 700), slice(700, None)):
        streamed.update(y[part], probs=p[part])
    for report in (*chosen, streamed.compute()):
        assert report.scores["event_rate"] == pytest.approx(rate, rel=1e-12)
        assert report.verdict.calibration == "too high"


@pytest.mark.parametrize("event", [2, "ill", True])
def test_an_event_that_is_no_class_is_refused(event):
    with pytest.raises(SettingsError, match=r"is not a class; choose from 0, 1"):
        uq.evaluate([0, 1], probs=[0.2, 0.7], event=event)


def test_more_than_two_classes_have_no_event():
    with pytest.raises(SettingsError, match="chooses one of two classes, but these probs hold 3"):
        uq.evaluate([0, 1], probs=[[0.2, 0.3, 0.5]] * 2, event=1)
