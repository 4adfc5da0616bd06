"""Laws that every classification metric obeys: a metric is tested by being registered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small_statistics import classification_statistics
from uq_tracking import plugins
from uq_tracking.errors import FileFormatError, IncompatibleStatisticsError
from uq_tracking.metrics.registry import compute
from uq_tracking.settings import Settings
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.store import read_statistics, statistics_from_arrays, write_statistics

from .made import samples, softmax

METRICS = [metric for metric in plugins.metrics("classification").values() if not metric.needs]
ON_A_GRID = {"ause_brier", "ace", "aurc", "augrc", "risk_at_80"}
"""Defined by places in the order: k-fold repetition changes them within 1/N."""

quarters = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)).filter(any)
rows = st.lists(st.tuples(st.integers(0, 2), quarters), min_size=12, max_size=50)
pairs = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any)
events = st.lists(st.tuples(st.integers(0, 1), pairs), min_size=12, max_size=50)
either = st.one_of(rows, events)
"""Samples of three classes, or of two, of which one is the event."""


def arrays(drawn):
    labels = np.array([label for label, _ in drawn])
    weights = np.array([weight for _, weight in drawn], dtype=float)
    return labels, weights / weights.sum(axis=1, keepdims=True)


def scores_of(statistics):
    return compute(statistics, Settings(), METRICS)


def assert_same(one, other, *, rtol=1e-11, atol=1e-13, skip=()):
    assert one[0].keys() == other[0].keys()
    assert one[1].keys() == other[1].keys()
    for key in one[0].keys() - set(skip):
        np.testing.assert_allclose(other[0][key], one[0][key], rtol=rtol, atol=atol, err_msg=key)


@pytest.mark.slow
@given(either, st.randoms())
@settings(max_examples=40)
def test_the_order_of_the_samples_changes_nothing(drawn, random):
    one = classification_statistics(*arrays(drawn))
    shuffled = list(drawn)
    random.shuffle(shuffled)
    assert_same(scores_of(one), scores_of(classification_statistics(*arrays(shuffled))))


@pytest.mark.slow
@given(rows, st.permutations(range(3)))
@settings(max_examples=40)
def test_the_names_of_the_classes_change_nothing(drawn, names):
    """Up to who wins a tie for the top probability: the first class does, so those samples are left out."""
    labels, probs = arrays(drawn)
    top = np.sort(probs, axis=1)
    clear = top[:, -1] > top[:, -2]
    if clear.sum() < 10:
        return
    names = np.asarray(names)
    one = scores_of(classification_statistics(labels[clear], probs[clear]))
    other = scores_of(classification_statistics(np.argsort(names)[labels[clear]], probs[clear][:, names]))
    assert_same(one, other, rtol=1e-15, atol=0)


@given(either, st.integers(1, 11))
@settings(max_examples=40)
@pytest.mark.slow
def test_parts_merge_to_the_whole(drawn, cut):
    labels, probs = arrays(drawn)
    for method in ("exact", "sketch"):
        whole = classification_statistics(labels, probs, statistics=method)
        parts = [
            classification_statistics(labels[part], probs[part], statistics=method)
            for part in (slice(0, cut), slice(cut, None))
        ]
        assert_same(scores_of(whole), scores_of(parts[0] + parts[1]))
        assert_same(scores_of(whole), scores_of(parts[1] + parts[0]))


@pytest.mark.slow
@given(either, st.integers(2, 4))
@settings(max_examples=30)
def test_repeated_samples_are_counted(drawn, times):
    one = scores_of(classification_statistics(*arrays(drawn)))
    repeated = scores_of(classification_statistics(*arrays(drawn * times)))
    assert_same(one, repeated, skip=ON_A_GRID)


@pytest.mark.slow
@given(either)
@settings(max_examples=40)
def test_a_sketch_of_few_distinct_values_is_exact(drawn):
    exact = classification_statistics(*arrays(drawn))
    assert_same(scores_of(exact), scores_of(exact.sketched()), rtol=1e-9, atol=1e-11)


def test_permuted_rows_tie_to_the_last_bit():
    """Sums over classes in another order differ in the last bits; ties would break, and with them the ranking."""
    rng = np.random.default_rng(0)
    row = softmax(rng.normal(size=11))
    orders = np.array([rng.permutation(11) for _ in range(400)])
    labels = np.array([int(np.argmax(order == 3)) for order in orders])  # each row's own place of one class
    statistics = classification_statistics(labels, row[orders])
    for order, name in (("entropy", "entropy"), ("entropy", "brier"), ("one_minus_confidence",) * 2):
        assert len(np.unique(statistics.orders[order].columns[name])) == 1
    logits = classification_statistics(labels, np.log(row)[orders], logits=True)
    assert len(np.unique(logits.orders["entropy"].columns["entropy"])) == 1


def test_tiny_brier_scores_keep_their_digits():
    doubt = 1e-9
    statistics = classification_statistics([0], [[1 - doubt, doubt, 0.0]])
    np.testing.assert_allclose(scores_of(statistics)[0]["brier"], 2 * doubt**2, rtol=1e-6)


@pytest.mark.slow
@given(events)
@settings(max_examples=40)
def test_the_other_class_as_the_event_is_the_same_turned_around(drawn):
    labels, probs = arrays(drawn)
    one = classification_statistics(1 - labels, probs[:, ::-1], event=0)
    top = np.sort(probs, axis=1)
    clear = top[:, -1] > top[:, -2]  # the first class wins ties
    skip = (
        ()
        if clear.all()
        else {"accuracy", "miou", "mdice", "ece_top", "aurc", "augrc", "failure_auroc", "risk_at_80"}
    )
    found, expected = scores_of(one)[0], scores_of(classification_statistics(labels, probs))[0]
    for key in (found.keys() & expected.keys()) - {*skip}:
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-9, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("classes", [2, 5])
def test_every_metric_gets_worse_with_the_predictions(classes):
    labels, z = samples(20_000, classes, factor=1.0)
    statistics = classification_statistics(labels, softmax(z))
    good = scores_of(statistics)[0]
    rng = np.random.default_rng(1)
    worse = softmax(3 * z + 3 * rng.normal(size=z.shape) + np.arange(classes))
    bad = scores_of(classification_statistics(labels, worse))[0]
    for metric in METRICS:
        if metric.direction is not None and (metric.when is None or metric.when(statistics, None)):
            assert metric.loss(good[metric.key]) < metric.loss(bad[metric.key]), metric.key


@pytest.mark.parametrize("key", ["nll", "brier"])
def test_proper_scores_are_best_at_the_truth(key):
    labels, z = samples(50_000, 4, factor=1.0, seed=3)
    values = [
        scores_of(classification_statistics(labels, softmax(factor * z)))[0][key]
        for factor in (0.6, 0.8, 1.0, 1.25, 1.6)
    ]
    assert values[2] == min(values)


def test_a_sketch_is_close_at_any_size():
    labels, z = samples(100_000, 6)
    exact = classification_statistics(labels, softmax(z))
    one, two = scores_of(exact)[0], scores_of(exact.sketched())[0]
    for key, tolerance in (("ece", 1e-6), ("mce", 1e-3), ("ace", 1e-6), ("ause_brier", 1e-4), ("aurc", 1e-5)):
        np.testing.assert_allclose(two[key], one[key], rtol=0, atol=tolerance, err_msg=key)
    for key in ("accuracy", "nll", "brier", "miou", "entropy_mean"):
        np.testing.assert_allclose(two[key], one[key], rtol=1e-12, err_msg=key)


def test_statistics_are_the_same_from_a_file(tmp_path):
    labels, z = samples(500)
    for method in ("exact", "sketch"):
        made = classification_statistics(labels, softmax(z), statistics=method, ignore_label=3)
        write_statistics(tmp_path / "s.npz", made)
        read = read_statistics(tmp_path / "s.npz")
        assert isinstance(read, Statistics)
        assert (read.kind, read.counts, read.bits) == (made.kind, made.counts, made.bits)
        np.testing.assert_array_equal(read.tables["confusion"].count, made.tables["confusion"].count)
        assert_same(scores_of(made), scores_of(read), rtol=0, atol=0)
        assert_same(scores_of(made + made), scores_of(read + read), rtol=0, atol=0)


def test_large_exact_statistics_are_stored_as_a_sketch(tmp_path):
    labels, z = samples(60_000)
    made = classification_statistics(labels, softmax(z))
    write_statistics(tmp_path / "s.npz", made)
    assert (tmp_path / "s.npz").stat().st_size < 1e6
    assert read_statistics(tmp_path / "s.npz").kind == "sketch"


def test_damaged_statistics_are_refused():
    arrays = classification_statistics(*arrays_of_three()).to_arrays()
    for name, value in (
        ("row/one_minus_confidence", np.zeros(2)),
        ("table/confusion/key", np.array([0, 4, 9])),
        ("table/confusion/count", np.array([1, 1, 2])),
        ("kind", "x"),
    ):
        with pytest.raises(FileFormatError, match="not classification statistics"):
            statistics_from_arrays({**arrays, name: np.asarray(value)})
    del arrays["counts"]
    with pytest.raises(FileFormatError, match="counts"):
        statistics_from_arrays(arrays)


def arrays_of_three():
    return np.array([0, 1, 2]), np.eye(3)


def test_other_classes_cannot_be_merged():
    with pytest.raises(IncompatibleStatisticsError, match=r"number of classes differs \(3 and 2\)"):
        classification_statistics(*arrays_of_three()) + classification_statistics([0], [[1.0, 0.0]])
