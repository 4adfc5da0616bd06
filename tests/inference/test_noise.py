"""Noise floors against simulated calibrated forecasts, and what they are functions of."""

import numpy as np
import pytest

import uq_tracking as uq
from tests.inference.made import classes, forecasts, report
from uq_tracking.families import GAUSSIAN, LAPLACE, LOGISTIC, UNIFORM, StudentT
from uq_tracking.inference.gaps import SCORES
from uq_tracking.inference.noise import NoiseFloor, kurtosis_of, variance_freedom
from uq_tracking.metrics.registry import Undefined
from uq_tracking.settings import Settings

REGRESSION, CLASSIFICATION = list(SCORES["regression"]), list(SCORES["classification"])


@pytest.mark.parametrize("n", [120, 1000])
def test_floors_are_the_scores_of_calibrated_forecasts(n):
    rng = np.random.default_rng(0)
    reports = [report(rng, n, metrics=REGRESSION) for _ in range(150)]
    for key in REGRESSION:
        seen = np.asarray([one.scores[key] for one in reports])
        floors = [one.noise[key] for one in reports]
        expected = np.mean([floor.mean for floor in floors])
        assert expected == pytest.approx(seen.mean(), abs=4 * seen.std() / np.sqrt(len(seen))), key
        below = np.mean([score <= floor.high for score, floor in zip(seen, floors, strict=True)])
        assert 0.88 <= below <= 0.995, key
        assert np.mean([one.noise[key].p <= 0.05 for one in reports]) <= 0.11, key


def test_the_floor_of_ence_is_its_known_size():
    floor = report(np.random.default_rng(1), 5000, metrics=["ence"]).noise["ence"]
    assert floor.mean == pytest.approx(1.81 / np.sqrt(5000), rel=0.05)


def test_floors_of_classification():
    rng = np.random.default_rng(2)
    reports = [uq.evaluate_classification(*classes(rng, 800), metrics=CLASSIFICATION) for _ in range(120)]
    for key in CLASSIFICATION:
        seen = np.asarray([one.scores[key] for one in reports])
        means = np.asarray([one.noise[key].mean for one in reports])
        assert means.mean() == pytest.approx(seen.mean(), rel=0.15), key
        assert np.mean([one.noise[key].p <= 0.05 for one in reports]) <= 0.11, key


def test_dependent_groups_raise_the_floor_and_keep_the_level():
    rng = np.random.default_rng(3)
    reports = [report(rng, 1500, groups=30, metrics=["ence", "auce", "pit_ks"]) for _ in range(30)]
    alone = report(rng, 1500, metrics=["auce"]).noise["auce"].mean
    assert np.mean([one.noise["auce"].mean for one in reports]) > 1.3 * alone
    for key in ("ence", "auce", "pit_ks"):
        assert np.mean([one.noise[key].p <= 0.05 for one in reports]) <= 0.13, key


def test_few_groups_have_a_note_and_fewer_none():
    rng = np.random.default_rng(4)
    assert "12 groups" in report(rng, 600, groups=12, metrics=["ence"]).noise["ence"].note
    assert report(rng, 600, groups=5, metrics=["ence"]).noise == {}


def test_a_scale_error_lies_above_the_floor():
    noise = report(np.random.default_rng(5), 1500, 1.3, metrics=["ence", "auce"]).noise
    assert noise["ence"].p < 0.01
    assert noise["auce"].p < 0.01


@pytest.mark.parametrize("method", ["exact", "sketch"])
def test_stored_and_streamed_statistics_have_the_same_floor(method):
    truth, mean, std, _ = forecasts(np.random.default_rng(6), 2000)
    whole = uq.evaluate(truth, mean, std)
    other = uq.evaluate(truth, mean, std, statistics=method)
    for key, floor in whole.noise.items():
        assert other.noise[key].high == pytest.approx(floor.high, rel=2e-3), key


def test_other_families_have_floors_of_their_own():
    truth, mean, std, _ = forecasts(np.random.default_rng(7), 2000)
    floors = {f: uq.evaluate(truth, mean, std, family=f).noise["ence"].mean for f in ("uniform", "laplace")}
    assert floors["laplace"] / floors["uniform"] == pytest.approx(np.sqrt(5 / 0.8), rel=0.06)


def test_fourth_moments():
    rng = np.random.default_rng(8)
    u = (rng.permutation(200_000) + 0.5) / 200_000
    for family in (GAUSSIAN, LAPLACE, UNIFORM, LOGISTIC, StudentT(9.0)):
        assert kurtosis_of(family) == pytest.approx(np.mean(family.quantile(u) ** 4), rel=0.03), family.name
    with pytest.raises(Undefined, match="no variance"):
        kurtosis_of(StudentT(4.0))


def test_weights_that_grow_with_the_variance():
    """Few samples carry the bins of large standard deviations; an effective number for all would not know it."""
    rng = np.random.default_rng(10)
    std = np.exp(0.5 * rng.normal(size=500))
    weights = std**2

    def scored(errors):
        return uq.evaluate(errors, np.zeros(500), std, weights=weights, metrics=["uce", "ence"])

    reports = [scored(std * rng.normal(size=500)) for _ in range(60)]
    for key in ("uce", "ence"):
        seen = np.asarray([one.scores[key] for one in reports])
        assert reports[0].noise[key].mean == pytest.approx(seen.mean(), abs=4 * seen.std() / np.sqrt(60)), key
    freedom, shares = variance_freedom(reports[0].statistics, Settings(n_bins=4))
    expected, edges = np.zeros(4), np.linspace(0, weights.sum(), 5)
    place = np.argsort(std)
    start = np.cumsum(weights[place]) - weights[place]
    for k in range(4):  # the part of each sample that lies in the bin
        inside = np.minimum(start + weights[place], edges[k + 1]) - np.maximum(start, edges[k])
        inside, variance = np.maximum(inside, 0), std[place] ** 2
        among = inside * weights[place] * variance**2
        expected[k] = (inside @ variance) ** 2 / among.sum()
        assert shares[k] == pytest.approx((inside @ variance) / weights.sum(), rel=1e-9)
    assert freedom == pytest.approx(expected, rel=1e-9)


def test_floors_are_stored_with_the_report():
    one = report(np.random.default_rng(9), 500)
    read = uq.Report.from_json(one.to_json())
    assert read.noise == one.noise
    assert isinstance(read.noise["ence"], NoiseFloor)
