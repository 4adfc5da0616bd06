"""Metrics with extra input, against other libraries, quadrature and the definition."""

from __future__ import annotations

import itertools

import numpy as np
import properscoring
import pytest
import scoringrules
import uncertainty_toolbox.metrics_calibration as toolbox
from numpy.testing import assert_allclose
from scipy import integrate, stats

import uq_tracking as uq
from tests.small_statistics import exact_statistics
from uq_tracking import plugins
from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs import Predictions
from uq_tracking.metrics.reference import group_calibration
from uq_tracking.metrics.registry import MetricInputs, select
from uq_tracking.settings import Settings

ENSEMBLE = ["crps_ensemble", "crps"]


def ensemble(members=7, shape=(40, 5), seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape).astype(dtype), rng.normal(size=(members, *shape)).astype(dtype)


class TestEnsembleCrps:
    @pytest.mark.parametrize("members", [2, 3, 10, 51])
    def test_agrees_with_properscoring_and_scoringrules(self, members):
        y, draws = ensemble(members)
        found = uq.evaluate(Predictions.from_samples(y, draws)).scores
        last = np.moveaxis(draws, 0, -1)
        assert_allclose(found["crps_ensemble"], properscoring.crps_ensemble(y, last).mean(), rtol=1e-12)
        assert_allclose(
            found["crps_ensemble"], scoringrules.crps_ensemble(y, last, estimator="nrg").mean(), rtol=1e-12
        )
        fair = scoringrules.crps_ensemble(y, last, estimator="fair").mean()
        assert_allclose(found["crps"], fair, rtol=1e-12)

    def test_is_the_integral_of_the_squared_gap_of_distributions(self):
        y, draws = ensemble(4, (1,), seed=3)
        found = uq.evaluate(Predictions.from_samples(y, draws), metrics=["crps_ensemble"]).scores[
            "crps_ensemble"
        ]

        def gap(t):
            return (np.mean(draws <= t) - (y[0] <= t)) ** 2

        places = np.sort(np.append(draws.ravel(), y))
        whole = sum(integrate.quad(gap, a, b)[0] for a, b in itertools.pairwise(places))
        assert_allclose(found, whole, rtol=1e-9)

    def test_the_fair_one_does_not_depend_on_the_number_of_members(self):
        y, draws = ensemble(64, (4000,), seed=1)
        few, many = (
            uq.evaluate(Predictions.from_samples(y, draws[:m]), metrics=ENSEMBLE).scores for m in (4, 64)
        )
        # of N(0, 1) at N(0, 1): 1 / sqrt(pi); the plain estimator adds E|x - x'| / (2 M)
        assert_allclose(few["crps"], 1 / np.sqrt(np.pi), atol=0.02)
        assert_allclose(many["crps"], 1 / np.sqrt(np.pi), atol=0.02)
        assert_allclose(few["crps_ensemble"] - few["crps"], 2 / np.sqrt(np.pi) / 8, rtol=0.03)

    def test_masked_and_missing_samples_do_not_count(self):
        y, draws = ensemble()
        y[3, 2] = np.nan
        mask = np.zeros(y.shape, bool)
        mask[0] = True
        found = uq.evaluate(Predictions.from_samples(y, draws, mask=mask), metrics=ENSEMBLE).scores
        keep = np.isfinite(y) & ~mask
        expected = properscoring.crps_ensemble(y[keep], draws[:, keep].T).mean()
        assert_allclose(found["crps_ensemble"], expected, rtol=1e-12)

    def test_far_from_zero_and_in_float32(self):
        y, draws = ensemble(dtype=np.float32)
        near, far = (
            Predictions.from_samples(y + shift, draws + shift) for shift in (np.float32(0), np.float32(4096))
        )
        assert_allclose(
            uq.evaluate(far).scores["crps_ensemble"],
            uq.evaluate(near).scores["crps_ensemble"],
            rtol=1e-3,  # 4096 leaves float32 a resolution of 5e-4
        )

    def test_members_with_a_std_are_no_raw_samples(self):
        y, draws = ensemble()
        data = Predictions.from_ensemble(y, draws, np.ones_like(draws))
        report = uq.evaluate(data)
        assert "crps_ensemble" not in {**report.scores, **report.undefined}
        asked = uq.evaluate(data, metrics=ENSEMBLE)
        assert "needs draws" in asked.undefined["crps_ensemble"]


class TestKl:
    def test_agrees_with_quadrature(self):
        mean, std, ref = 0.3, 0.7, (0.1, 1.1)
        report = uq.evaluate([0.0], [mean], [std], reference=([ref[0]], [ref[1]]))
        p, q = stats.norm(mean, std), stats.norm(*ref)
        expected = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -10, 10)[0]
        assert_allclose(report.scores["kl_to_reference"], expected, rtol=1e-9)

    def test_is_zero_at_the_reference_and_not_symmetric(self):
        y, mean, std = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0])
        same = uq.evaluate(y, mean, std, reference=(mean, std)).scores["kl_to_reference"]
        assert_allclose(same, 0, atol=1e-15)
        there, back = (
            uq.evaluate(y, mean, a, reference=(mean, b)).scores["kl_to_reference"]
            for a, b in ((std, 2 * std), (2 * std, std))
        )
        assert there != pytest.approx(back)
        assert_allclose(there, np.log(2) + 1 / 8 - 1 / 2, rtol=1e-12)

    def test_places_that_do_not_count_are_left_out(self):
        y = np.array([np.nan, 0.0])
        report = uq.evaluate(y, np.zeros(2), np.ones(2), reference=([np.nan, 0.0], [0.0, 1.0]))
        assert report.scores["kl_to_reference"] == 0

    @pytest.mark.parametrize(
        ("std", "ref", "reason"), [(0.0, 1.0, "set std_floor"), (1.0, 0.0, "invalid at 2")]
    )
    def test_is_undefined_with_a_reason(self, std, ref, reason):
        report = uq.evaluate(
            np.zeros(2), np.zeros(2), np.full(2, std), reference=(np.zeros(2), np.full(2, ref))
        )
        assert reason in report.undefined["kl_to_reference"]

    def test_a_bad_reference_is_refused(self):
        with pytest.raises(SettingsError, match="reference is not a pair"):
            uq.evaluate([0.0], [0.0], [1.0], reference=[1.0])
        with pytest.raises(ShapeError, match="reference mean"):
            uq.evaluate([0.0], [0.0], [1.0], reference=([0.0, 1.0], [1.0, 1.0]))


class TestAdversarialGroups:
    def data(self):
        rng = np.random.default_rng(0)
        std = rng.gamma(3, 0.5, 600)
        return 1.4 * std * rng.normal(size=600), np.zeros(600), std

    @pytest.mark.slow
    def test_agrees_with_uncertainty_toolbox_within_the_error_of_its_trials(self, monkeypatch):
        y, mean, std = self.data()
        statistics = exact_statistics(y, mean, std)
        share, found, error = group_calibration(MetricInputs(statistics, seed=1), Settings())
        monkeypatch.setattr(np.random, "choice", np.random.default_rng(0).choice)  # the peer takes no seed
        peer = toolbox.adversarial_group_calibration(mean, std, y, cali_type="mean_abs", num_trials=10)
        assert_allclose(share, peer.group_size, rtol=1e-12)
        gap = np.abs(found - peer.score_mean) / np.hypot(error, peer.score_stderr).clip(1e-12)
        assert np.all((gap < 4) | (np.abs(found - peer.score_mean) < 1e-9))

    def test_the_whole_set_is_one_group(self):
        y, mean, std = self.data()
        report = uq.evaluate(y, mean, std, metrics=["mace", "adversarial_group_calibration"])
        _, found, error = group_calibration(MetricInputs(report.statistics), Settings())
        assert_allclose(found[-1], report.scores["mace"], rtol=1e-12)
        assert error[-1] < 1e-12
        assert report.scores["adversarial_group_calibration"] > report.scores["mace"]

    def test_it_is_asked_for_and_seeded(self):
        y, mean, std = self.data()
        key = "adversarial_group_calibration"
        assert key not in {metric.key for metric in select("regression", given=["seed"])}
        one, same, other = (uq.evaluate(y, mean, std, metrics=[key], seed=s).scores[key] for s in (1, 1, 2))
        assert one == same != other


def test_what_a_metric_lacks_is_its_reason():
    report = uq.evaluate([0.0, 1.0], [0.0, 0.0], [1.0, 1.0], metrics=["kl_to_reference"])
    assert "(reference=)" in report.undefined["kl_to_reference"]


def test_metrics_with_needs_have_no_interval_and_no_score_after_recalibration():
    rng = np.random.default_rng(0)
    y, mean, std = rng.normal(size=400), np.zeros(400), rng.gamma(4, 0.25, 400)
    data = Predictions(y, mean, std, groups=np.arange(400) // 40)
    report = uq.evaluate(data, calibration=True, reference=(mean, std))
    assert "kl_to_reference" in report.scores
    assert "kl_to_reference" not in report.intervals
    after = report.recalibration["methods"]["std_scaling"]
    assert "kl_to_reference" not in {**after["scores"], **after["undefined"]}


def test_bounds_hold_the_examples():
    from uq_tracking.testing.examples import example_score

    for metric in plugins.metrics().values():
        if metric.function.__module__.startswith("uq_tracking."):
            assert metric.bounds[0] <= example_score(metric.key) <= metric.bounds[1], metric.key
