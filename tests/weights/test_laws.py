"""Laws of sample weights over the whole registry: a new metric or curve is tested by being registered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.evaluation.scoring import score
from uq_tracking.statistics import collecting
from uq_tracking.statistics import statistics as counting

values = st.integers(-8, 8).map(lambda i: i / 4)
positive = st.integers(1, 12).map(lambda i: i / 4)
counts = st.integers(1, 4)
rows = st.lists(st.tuples(values, values, positive, counts), min_size=12, max_size=40)
labelled = st.lists(
    st.tuples(st.integers(0, 2), st.tuples(positive, positive, positive), counts), min_size=12, max_size=40
)
BANDS = ("low", "high", "chance_low", "chance_high")
"""Columns that tell how sure a curve is: by the number of samples, not by their weights."""


def regression(samples):
    y, mu, s, k = (np.asarray(column, dtype=float) for column in zip(*samples, strict=True))
    return uq.evaluate, (y, mu, s), with_one(k)


def classified(labels, probs, **options):
    return uq.evaluate(labels, probs=probs, **options)


def classification(samples):
    labels, raw, k = zip(*samples, strict=True)
    probs = np.asarray(raw, dtype=float)
    arrays = np.asarray(labels), probs / probs.sum(axis=1, keepdims=True)
    return classified, arrays, with_one(np.asarray(k, dtype=float))


def with_one(k):
    """Whole numbers of which the lightest is 1."""
    k[0] = 1
    return k


def draws(samples):
    evaluate, (y, mu, s), k = regression(samples)
    shifts = np.asarray([-1.5, -0.5, 0.25, 1.0])[:, None]

    def of_draws(y, mu, s, weights=None, **options):
        return evaluate(uq.Predictions.from_samples(y, mu + s * shifts, weights=weights, axis=0), **options)

    return of_draws, (y, mu, s), k


TASKS = {
    "regression": rows.map(regression),
    "classification": labelled.map(classification),
    "draws": rows.map(draws),
}


def assert_same(one, other, *, rtol=1e-9, atol=1e-11, counts=True):
    assert one.scores.keys() == other.scores.keys()
    assert one.undefined.keys() == other.undefined.keys()
    for key, value in one.scores.items():
        assert_allclose(other.scores[key], value, rtol=rtol, atol=atol, err_msg=key)
    assert one.curves.keys() == other.curves.keys()
    for name, curve in one.curves.items():
        skip = () if counts else BANDS
        for column in curve.columns.keys() - set(skip):
            assert_allclose(
                other.curves[name].columns[column],
                curve.columns[column],
                rtol=rtol,
                atol=10 * atol,
                err_msg=f"{name} {column}",
            )


@pytest.mark.parametrize("how", ["exact", "sketch"])
@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
@settings(max_examples=6)
def test_a_whole_weight_is_the_sample_so_many_times(task, how, data):
    evaluate, arrays, k = data.draw(TASKS[task])
    repeated = evaluate(*(np.repeat(a, k.astype(int), axis=0) for a in arrays), statistics=how)
    assert_same(repeated, evaluate(*arrays, weights=k, statistics=how), counts=False)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exact", "sketch"])
@pytest.mark.parametrize("task", TASKS)
@given(data=st.data(), factor=st.sampled_from([1e-9, 0.1, 1 / 3, 7.0, 1e12]))
@settings(max_examples=4)
def test_a_factor_on_all_weights_changes_nothing(task, how, data, factor):
    evaluate, arrays, k = data.draw(TASKS[task])
    root = np.sqrt(k)  # no multiples of one another
    one, other = (evaluate(*arrays, weights=w, statistics=how) for w in (root, factor * root))
    assert_same(one, other)
    assert one.counts == other.counts
    assert one.verdict.text == other.verdict.text


def test_tiny_weights_say_as_much_of_classes():
    raw = [(0.25, 0.25, 0.25)] * 17 + [(0.25, 0.25, 0.5)] * 4 + [(0.5, 0.25, 0.5)]
    evaluate, arrays, k = classification([(i // 20, probs, 1) for i, probs in enumerate(raw)])
    one, other = (evaluate(*arrays, weights=w).verdict.text for w in (k, 1e-9 * k))
    assert "log loss 1.174; these probabilities imply 1.086" in one
    assert other == one


@pytest.mark.parametrize("factor", [1e-9, 0.1, 1 / 3, 7.0, 1e12])
def test_rounding_decides_nothing_where_one_class_is_all_there_is(factor):
    evaluate, arrays, k = classification([(0, (0.25, 0.25, 0.25), 1)] * 19 + [(0, (0.5, 0.25, 0.25), 1)])
    one, other = (evaluate(*arrays, weights=w).verdict.text for w in (k, factor * k))
    assert other == one
    assert one.startswith(
        "Miscalibrated in classes: class 1 never occurs, but is stated at 32.9 % on average"
    )


@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
@settings(max_examples=4)
def test_equal_weights_are_none(task, data):
    evaluate, arrays, k = data.draw(TASKS[task])
    plain, equal = evaluate(*arrays), evaluate(*arrays, weights=np.full(len(k), 0.3))
    assert_same(plain, equal)
    assert {**plain.counts, "n_effective": len(k)} == equal.counts
    assert plain.verdict.text == equal.verdict.text
    assert plain.noise.keys() == equal.noise.keys()
    for key, floor in plain.noise.items():
        assert_allclose(equal.noise[key].high, floor.high, rtol=1e-9, err_msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exact", "sketch"])
@pytest.mark.parametrize("task", TASKS)
@given(data=st.data(), cut=st.integers(1, 11), random=st.randoms())
@settings(max_examples=4)
def test_order_and_parts_change_nothing(task, how, data, cut, random):
    evaluate, arrays, k = data.draw(TASKS[task])
    w, order = np.sqrt(k), np.arange(len(k))
    random.shuffle(order)
    whole = evaluate(*arrays, weights=w, statistics=how)
    parts = [
        evaluate(*(a[part] for a in arrays), weights=w[part], statistics=how).statistics
        for part in (order[:cut], order[cut:])
    ]
    merged = parts[0] + parts[1]
    assert_same(whole, score(merged), rtol=1e-8)
    assert merged.counts == whole.counts


@pytest.mark.parametrize("task", TASKS)
@given(data=st.data(), out=st.integers(1, 5))
@settings(max_examples=4)
def test_a_weight_of_zero_leaves_a_sample_out(task, data, out):
    evaluate, arrays, k = data.draw(TASKS[task])
    w = np.sqrt(k)
    w[-out:] = 0
    kept = evaluate(*(a[:-out] for a in arrays), weights=w[:-out])
    zero = evaluate(*arrays, weights=w)
    assert_same(kept, zero)
    assert zero.counts["n_masked"] == out
    assert zero.counts["n"] == len(k) - out


@pytest.mark.slow
def test_weights_that_are_whole_groups_resample_as_repetition_does():
    rng = np.random.default_rng(0)
    n = 600
    mu, s = rng.normal(size=n), rng.gamma(4, 0.25, n)
    y, groups, k = mu + s * rng.normal(size=n), np.arange(n) // 20, rng.integers(1, 4, n)
    repeated = uq.evaluate(*(np.repeat(a, k) for a in (y, mu, s)), groups=np.repeat(groups, k))
    weighted = uq.evaluate(y, mu, s, groups=groups, weights=k * 0.1)
    for key, interval in repeated.intervals.items():
        assert_allclose(weighted.intervals[key], interval, rtol=1e-8, atol=1e-10, err_msg=key)
    for key, floor in repeated.noise.items():
        assert_allclose(weighted.noise[key].high, floor.high, rtol=1e-8, err_msg=key)
    assert weighted.verdict.text == repeated.verdict.text


@pytest.mark.parametrize("block", [7, 64])
def test_blocks_of_a_sketch_add_up(block, monkeypatch):
    rng = np.random.default_rng(4)
    mu, s, w = rng.normal(size=300), rng.gamma(4, 0.25, 300), rng.gamma(1, 1, 300)
    arrays = mu + s * rng.normal(size=300), mu, s
    whole = uq.evaluate(*arrays, weights=w, statistics="sketch")
    monkeypatch.setattr(counting, "BUILD_BLOCK", block)
    monkeypatch.setattr(collecting, "BUILD_BLOCK", block)
    assert_same(whole, uq.evaluate(*arrays, weights=w, statistics="sketch"))
    stream = uq.Accumulator()
    for start in range(0, 300, 50):
        part = slice(start, start + 50)
        stream.update(*(a[part] for a in arrays), weights=w[part])
    assert_same(whole, stream.compute())


def test_a_sketch_is_as_close_with_weights_as_it_states():
    rng = np.random.default_rng(1)
    n = 100_000
    mu, s, w = rng.normal(size=n), rng.gamma(4, 0.25, n), rng.gamma(2, 1, n)
    y = mu + 1.2 * s * rng.normal(size=n)
    exact, sketch = (uq.evaluate(y, mu, s, weights=w, statistics=how).scores for how in ("exact", "sketch"))
    for key in ("nll", "crps", "sharpness", "rmse", "z_std"):
        assert_allclose(sketch[key], exact[key], rtol=1e-6, err_msg=key)
    for key in ("ause_rmse", "ause_mae", "auce", "calibration_error", "pit_ks"):
        assert_allclose(sketch[key], exact[key], rtol=0, atol=1e-4, err_msg=key)
    for key in ("merci", "n_merci", "ence"):
        assert_allclose(sketch[key], exact[key], rtol=1e-3, atol=1e-3, err_msg=key)


@pytest.mark.parametrize("how", ["exact", "sketch"])
def test_vectors_count_with_the_weights_of_their_components(how):
    rng = np.random.default_rng(2)
    mean, k = rng.normal(size=(60, 2)), with_one(rng.integers(1, 4, 60).astype(float))
    covariance = np.asarray([[1.0, 0.5], [0.5, 2.0]])
    y = mean + rng.multivariate_normal([0, 0], 1.3 * covariance, 60)
    several = np.repeat(np.arange(60), k.astype(int))
    repeated = uq.Predictions.from_covariance(
        y[several], mean[several], np.broadcast_to(covariance, (len(several), 2, 2))
    )
    weighted = uq.Predictions.from_covariance(
        y, mean, np.broadcast_to(covariance, (60, 2, 2)), weights=0.1 * k
    )
    one, other = (uq.evaluate(data, statistics=how) for data in (repeated, weighted))
    assert "energy_score" in one.scores
    assert_same(one, other, counts=False)
