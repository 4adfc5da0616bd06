"""Recalibrations of class probabilities beyond one temperature: logistic, isotonic, bias and temperature."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, special

import uq_tracking as uq
from uq_tracking.errors import InvalidValueError, RecalibrationError, TrackingWarning
from uq_tracking.recalibration import BiasTemperature, FittedOn, Isotonic, Logistic, read_recalibrations

ANY = FittedOn(n=10, source="arrays")


def events(n=4000, seed=0, spread=2.0):
    """Labels and the logits of a model whose logits are too extreme by half, at doubled odds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, spread, n)
    return (rng.random(n) < truth(x)).astype(int), x


def truth(x):
    return special.expit(x / 1.5 - np.log(2))


def shifted(n=3000, classes=10, seed=0):
    """Labels, and logits that lack a temperature of 1.5 and an offset per class."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, (n, classes))
    p = special.softmax(z / 1.5 + np.linspace(-1, 1, classes), axis=1)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), z, p


def divergence(p, q):
    """Mean Kullback-Leibler divergence of q from the true p, over the last axis."""
    return float(np.mean(np.sum(p * (np.log(p) - np.log(q)), axis=-1)))


class TestLogistic:
    def test_it_is_the_regression_of_scikit_learn(self):
        linear = pytest.importorskip("sklearn.linear_model")
        labels, x = events()
        one = uq.recalibrate((labels, x), "logistic", logits=True, split="val")
        wanted = linear.LogisticRegression(C=np.inf, tol=1e-12).fit(x[:, None], labels)
        assert_allclose([one.slope, one.offset], [wanted.coef_[0, 0], wanted.intercept_[0]], rtol=1e-4)
        assert_allclose(one.apply(x, logits=True), wanted.predict_proba(x[:, None])[:, 1], atol=1e-5)
        assert (one.fitted_on.n, one.fitted_on.split) == (4000, "val")

    def test_weights_repeat_samples(self):
        labels, x = events(500)
        k = np.random.default_rng(3).integers(0, 4, 500)
        weighted = uq.recalibrate((labels, x), "logistic", logits=True, weights=0.3 * k)
        repeated = uq.recalibrate((np.repeat(labels, k), np.repeat(x, k)), "logistic", logits=True)
        assert_allclose([weighted.slope, weighted.offset], [repeated.slope, repeated.offset], rtol=1e-9)

    def test_probabilities_two_columns_and_any_scale_of_logits(self):
        labels, x = events()
        one = uq.recalibrate((labels, x), "logistic", logits=True)
        p = special.expit(x)
        for probs in (p, np.stack([1 - p, p], axis=1)):
            found = uq.recalibrate(uq.Predictions.from_probs(labels, probs), "logistic")
            assert_allclose([found.slope, found.offset], [one.slope, one.offset], rtol=1e-9)
        large = uq.recalibrate((labels, 1e6 * x), "logistic", logits=True)
        assert_allclose([1e6 * large.slope, large.offset], [one.slope, one.offset], rtol=1e-9)

    def test_its_error_on_fresh_data_is_that_of_two_parameters(self):
        _, x = events(20_000, seed=99)
        p = truth(x)
        found = []
        for seed in range(20):
            q = uq.recalibrate(events(1000, seed), "logistic", logits=True).apply(x, logits=True)
            found.append(divergence(np.stack([1 - p, p], -1), np.stack([1 - q, q], -1)))
        assert 0.0005 < np.mean(found) < 0.0015  # two parameters: 2 / (2 n) = .001; a temperature leaves .044

    def test_probabilities_of_zero_and_one_count_as_extreme_ones(self):
        labels, x = events()
        p = special.expit(x)
        sure = np.where(p > 0.98, 1.0, np.where(p < 0.02, 0.0, p))
        one = uq.recalibrate(uq.Predictions.from_probs(labels, sure), "logistic")
        assert one.limit == pytest.approx(np.log(2) + np.abs(x[(sure > 0) & (sure < 1)]).max())
        near = special.expit(special.logit(sure).clip(-one.limit, one.limit))
        same = uq.recalibrate(uq.Predictions.from_probs(labels, near), "logistic")
        assert_allclose([one.slope, one.offset], [same.slope, same.offset], rtol=1e-6)
        with pytest.warns(TrackingWarning, match="logistic was fitted on the samples it is scored on"):
            report = uq.evaluate(labels, probs=sure, calibration=one)
        assert "nll" in report.undefined
        assert report.after().scores["nll"] < 0.6
        huge = uq.recalibrate((np.r_[labels, 1], np.r_[x, 40.0]), "logistic", logits=True)
        assert huge.limit == 40

    def test_it_keeps_the_order_of_the_samples(self):
        labels, x = events()
        new = uq.recalibrate((labels, x), "logistic", logits=True).apply(x, logits=True)
        assert_array_equal(np.argsort(new), np.argsort(x))

    @pytest.mark.parametrize(
        ("labels", "logits", "message"),
        [
            ([0, 0, 1, 1], [-2.0, -1.0, 0.5, 1.0], "no best slope: one probability separates"),
            ([1, 1, 0, 0], [-2.0, -1.0, 0.5, 1.0], "no best slope"),
            ([0, 1, 0, 1], [1.0, 1.0, 1.0, 1.0], "no best slope"),
            ([1, 0, 1, 0], [-2.0, -1.0, 0.5, 1.0], "no more frequent where its probability is higher"),
            ([1, 1, 1], [1.0, 2.0, 3.0], "needs samples of both classes, but all are of class 1"),
            ([0, 1, 2, 0], np.eye(4)[:, :3], "recalibrates two classes, but there are 3; use temperature"),
        ],
    )
    def test_refusals(self, labels, logits, message):
        with pytest.raises(RecalibrationError, match=message):
            uq.recalibrate((labels, logits), "logistic", logits=True)

    def test_a_constant_probability_of_the_events_alone_is_fitted(self):
        one = uq.recalibrate(([0, 0, 1, 1, 0], [-1.0, 2.0, 1.0, 1.0, 0.0]), "logistic", logits=True)
        assert np.isfinite(one.slope)


class TestIsotonic:
    def test_its_blocks_are_those_of_scikit_learn(self):
        isotonic = pytest.importorskip("sklearn.isotonic")
        labels, x = events()
        x = x.round(2)  # with ties
        p = special.expit(x)
        one = uq.recalibrate((labels, x), "isotonic", logits=True)
        level = np.unique(isotonic.IsotonicRegression().fit_transform(p, labels), return_inverse=True)[1]
        while True:
            count, happened = np.bincount(level), np.bincount(level, labels)
            observed = (happened + 0.5) / (count + 1)
            if np.all(np.diff(observed) > 0):
                break
            level -= level > np.argmax(np.diff(observed) <= 0)  # blocks that smoothing puts out of order
        assert_allclose(one.stated, np.bincount(level, p) / count, rtol=1e-12)
        assert_allclose(one.observed, observed, rtol=1e-12)
        assert_allclose(one.apply(x, logits=True), np.interp(p, one.stated, one.observed), rtol=1e-12)

    def test_blocks_that_smoothing_puts_out_of_order_are_pooled(self):
        p = np.repeat([0.01, 0.2, 0.6, 0.9], [1, 700, 600, 1])
        labels = np.r_[0, np.arange(700) % 7 == 0, np.arange(600) % 3 > 0, 1].astype(int)
        one = uq.recalibrate(uq.Predictions.from_probs(labels, p), "isotonic")
        assert_allclose(one.stated, [(0.01 + 140) / 701, 0.6, 0.9])
        assert_allclose(one.observed, [100.5 / 702, 400.5 / 601, 0.75])  # not 1/4 for the first sample alone

    def test_it_repairs_what_no_line_does(self):
        rng = np.random.default_rng(1)
        p = special.expit(rng.normal(0, 2, (2, 20_000)))
        q = p + 0.1 * np.sin(4 * np.pi * p)
        labels = (rng.random(q.shape) < q).astype(int)
        true = np.stack([1 - q[1], q[1]], -1)
        left = {}
        for method in ("logistic", "isotonic"):
            new = uq.recalibrate(uq.Predictions.from_probs(labels[0], p[0]), method).apply(p[1])
            left[method] = divergence(true, np.stack([1 - new, new], -1))
        assert left["isotonic"] < 0.002 < 0.005 < left["logistic"]

    def test_its_error_on_fresh_data_falls_with_the_number_of_samples(self):
        _, x = events(20_000, seed=99)
        p = truth(x)

        def error(n, fits):
            found = []
            for seed in range(fits):
                q = uq.recalibrate(events(n, seed), "isotonic", logits=True).apply(x, logits=True)
                found.append(divergence(np.stack([1 - p, p], -1), np.stack([1 - q, q], -1)))
            return np.mean(found)

        assert error(1000, 12) < 0.0063
        assert error(10_000, 6) < 0.0014

    def test_weights_count_as_many_samples_as_they_are_worth(self):
        labels, x = events(3000)
        same = uq.recalibrate((labels, x), "isotonic", logits=True)
        assert uq.recalibrate(
            (labels, x), "isotonic", logits=True, weights=np.full(3000, 7.0)
        ).observed == pytest.approx(same.observed)
        few = np.where(np.arange(3000) < 400, 1.0, 1e-9)
        with pytest.raises(RecalibrationError, match="there are 400"):
            uq.recalibrate((labels, x), "isotonic", logits=True, weights=few)

    @pytest.mark.parametrize(("n", "rare"), [(999, 300), (5000, 49)])
    def test_too_few_samples_or_events(self, n, rare):
        x = np.random.default_rng(0).normal(size=n)
        for labels in (np.arange(n) < rare, np.arange(n) >= rare):
            with pytest.raises(
                RecalibrationError, match=r"1000 samples and 50 of either class.*use logistic"
            ):
                uq.recalibrate((labels.astype(int), x), "isotonic", logits=True)

    def test_parameters_that_make_no_sense(self):
        for stated, observed in (((0.5, 0.2), (0.1, 0.2)), ((0.1,), (0.1, 0.2)), ((0.1,), (1.0,)), ((), ())):
            with pytest.raises(RecalibrationError, match="must"):
                Isotonic(n_logits=1, stated=stated, observed=observed, fitted_on=ANY)


class TestBiasTemperature:
    def test_it_is_the_maximum_of_the_likelihood(self):
        labels, z, _ = shifted(2000, 5)
        one = uq.recalibrate((labels, z), "bias_temperature", logits=True)
        rows = np.arange(len(labels))

        def loss(parameters):
            logs = special.log_softmax(parameters[0] * z + np.r_[0, parameters[1:]], axis=1)
            return -np.mean(logs[rows, labels])

        found = optimize.minimize(loss, np.r_[1.0, np.zeros(4)], method="L-BFGS-B", options={"ftol": 1e-15}).x
        offsets = np.r_[0, found[1:]]
        assert_allclose(one.temperature, 1 / found[0], rtol=1e-4)
        assert_allclose(one.offsets, offsets - offsets.mean(), atol=1e-4)
        assert_allclose(sum(one.offsets), 0, atol=1e-12)
        wanted = special.softmax(z / one.temperature + np.asarray(one.offsets), axis=1)
        assert_allclose(one.apply(z, logits=True), wanted, rtol=1e-10)
        k = np.random.default_rng(0).integers(0, 3, 2000)
        weighted = uq.recalibrate((labels, z), "bias_temperature", logits=True, weights=k)
        repeated = uq.recalibrate(
            (np.repeat(labels, k), np.repeat(z, k, axis=0)), "bias_temperature", logits=True
        )
        assert_allclose(weighted.offsets, repeated.offsets, atol=1e-6)

    def test_zeros_count_as_half_of_the_smallest_probability(self):
        rng = np.random.default_rng(0)
        truth = special.softmax(2 * rng.normal(size=(4000, 5)), axis=1)
        labels = (truth.cumsum(axis=1) > rng.random((4000, 1)) * 0.999999).argmax(axis=1)
        votes = np.stack([rng.multinomial(10, p) for p in truth]) / 10
        for method in ("temperature", "bias_temperature"):
            one = uq.recalibrate(uq.Predictions.from_probs(labels[:2000], votes[:2000]), method)
            assert one.floor == pytest.approx(np.log(0.05))
            same = uq.recalibrate(
                (labels[:2000], np.log(np.maximum(votes[:2000], 0.05))), method, logits=True
            )
            assert one.temperature == pytest.approx(
                same.temperature, abs=0.02
            )  # those rows sum to more than 1
            with np.errstate(divide="ignore"):
                new = one.apply(np.log(votes[2000:]), logits=True)
            assert_allclose(new, one.apply(np.log(np.maximum(votes[2000:], 1e-12)), logits=True), rtol=1e-9)
            assert new.min() > 0
            assert np.mean(new.argmax(axis=1) == labels[2000:]) > 0.59
            assert np.mean(np.log(new[np.arange(2000), labels[2000:]])) > -1.1

    def test_its_error_on_fresh_data(self):
        _, z, p = shifted(5000, seed=99)
        left = {"temperature": [], "bias_temperature": []}
        for seed in range(4):
            labels, logits, _ = shifted(3000, seed=seed)
            for method, found in left.items():
                found.append(
                    divergence(p, uq.recalibrate((labels, logits), method, logits=True).apply(z, logits=True))
                )
        assert np.mean(left["bias_temperature"]) < 0.0025  # ten parameters: 10 / (2 n) = .0017
        assert np.mean(left["temperature"]) > 0.02

    def test_with_few_samples_or_a_missing_class_there_are_no_offsets(self):
        labels, z, _ = shifted(499, 10)
        with pytest.warns(TrackingWarning, match="needs 500 samples for 10 classes, but there are 499"):
            few = uq.recalibrate((labels, z), "bias_temperature", logits=True)
        assert few.offsets == (0.0,) * 10
        assert few.temperature == uq.recalibrate((labels, z), "temperature", logits=True).temperature
        labels, z, _ = shifted(3000, 4)
        with pytest.warns(TrackingWarning, match="class 0 does not occur; fitted a temperature without off"):
            lacking = uq.recalibrate((labels[labels > 0], z[labels > 0]), "bias_temperature", logits=True)
        assert lacking.offsets == (0.0,) * 4

    def test_refusals(self):
        labels, x = events()
        with pytest.raises(RecalibrationError, match="more than two classes; use logistic"):
            uq.recalibrate((labels, x), "bias_temperature", logits=True)
        labels, z, _ = shifted(1000, 4)
        with pytest.raises(RecalibrationError, match="every label already has the largest logit"):
            uq.recalibrate((z.argmax(axis=1), z), "bias_temperature", logits=True)
        with pytest.raises(RecalibrationError, match="offsets must be of 4 classes, not of 3"):
            BiasTemperature(n_logits=4, temperature=1.0, offsets=(0.0, 0.1, -0.1), fitted_on=ANY)


def test_two_classes_are_recalibrated_by_an_offset_and_a_slope(tmp_path):
    labels, x = events(6000)
    groups = np.arange(6000) // 200
    report = uq.log(
        labels,
        probs=x,
        logits=True,
        groups=groups,
        calibration=True,
        run=f"dir:{tmp_path / 'runs'}",
        strict=True,
    )
    entry = report.recalibrations["logistic"]
    assert entry["how"] == "fitted on half of the groups, scored on the others"
    assert entry["scores"]["nll"] < entry["before"]["nll"] - 0.02
    (file,) = (tmp_path / "runs").rglob("recalibration.json")
    (one,) = read_recalibrations(file).values()
    assert isinstance(one, Logistic)
    assert one == uq.Recalibration.from_json(one.to_json())
    second = np.isin(groups, np.random.default_rng(0).permutation(30)[:15])
    half = uq.recalibrate((labels[~second], x[~second]), "logistic", logits=True)
    unseen = uq.evaluate(labels[second], probs=half.apply(x[second], logits=True))
    assert_allclose(entry["scores"]["nll"], unseen.scores["nll"], rtol=1e-9)


@pytest.mark.slow
def test_methods_of_a_second_set_side_by_side():
    labels, z, _ = shifted(4000, 4)
    held_out = shifted(4000, 4, seed=1)[:2]
    report = uq.evaluate(
        labels, probs=z, logits=True, calibration=held_out, recalibration=["temperature", "bias_temperature"]
    )
    nll = {name: entry["scores"]["nll"] for name, entry in report.recalibrations.items()}
    assert nll["bias_temperature"] < nll["temperature"] - 0.02 < report.scores["nll"]
    title = report.plot("recalibration").texts
    assert any("Before and after temperature" in text.get_text() for text in title)


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_what_is_fitted_and_applied_unless_logits_says_otherwise(classes):
    labels, logits = events() if classes == 2 else shifted(classes=classes)[:2]
    probs = special.expit(logits) if classes == 2 else special.softmax(logits, axis=-1)
    for method in ("logistic", "isotonic") if classes == 2 else ("temperature", "bias_temperature"):
        one = uq.recalibrate((labels, logits), method, logits=True)
        same = uq.recalibrate((labels, probs), method)
        applied = one.apply(logits, logits=True)
        for found in (one.apply(probs), same.apply(probs), same.apply(probs.astype(np.float32))):
            assert_allclose(found, applied, rtol=2e-4, atol=1e-6)
        with pytest.raises(InvalidValueError, match=r"no probabilities.*pass logits=True"):
            one.apply(logits)
        hidden = np.where(np.arange(probs.size).reshape(probs.shape) == 0, np.nan, probs)
        assert_array_equal(np.isnan(one.apply(hidden)).any(), True)
    report = uq.evaluate(labels, probs=probs)
    assert_allclose(uq.recalibrate(report, method).apply(probs), applied, rtol=2e-4, atol=1e-6)


def test_probabilities_are_no_logits():
    labels, z, p = shifted(classes=4)
    with pytest.raises(InvalidValueError, match=r"probabilities already.*leave out logits=True"):
        uq.recalibrate((labels, z), "temperature", logits=True).apply(p, logits=True)


def test_without_a_method_the_usual_one_of_what_is_given_is_fitted():
    labels, logits = events(500)
    assert uq.recalibrate((labels, special.expit(logits))).method == "logistic"
    labels, logits, *_ = shifted(500, classes=3)
    one = uq.recalibrate(labels, probs=logits, logits=True)
    assert one == uq.recalibrate((labels, logits), "temperature", logits=True)
    assert uq.recalibrate(uq.evaluate(labels, probs=logits, logits=True)).method == "temperature"
