"""Classes by name: ``classes=`` and labels that are text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, InvalidValueError

from .made import pixels, same, samples

NAMES = ["sky", "road", "car", "tree"]


@pytest.mark.parametrize(
    "kind",
    [
        np.asarray,
        lambda labels: np.asarray(labels, dtype=object),
        lambda labels: np.asarray(labels).astype("S"),
        lambda labels: np.asarray(labels).tolist(),
        pd.Series,
        pd.Categorical,
    ],
)
def test_labels_may_be_names(kind):
    labels, z = samples(500)
    named = uq.evaluate(kind(np.asarray(NAMES)[labels]), probs=z, logits=True, classes=NAMES)
    same(named, uq.evaluate(labels, probs=z, logits=True))
    assert named.settings["classes"] == NAMES
    assert named.classes.index.tolist() == NAMES


def test_categories_and_columns_name_the_classes():
    labels, z = samples(500)
    plain = uq.evaluate(labels, probs=z, logits=True)
    text = np.asarray(NAMES)[labels]
    columns = pd.DataFrame(z, columns=NAMES)[NAMES[::-1]]
    swapped = uq.evaluate(3 - labels, probs=z[:, ::-1], logits=True, class_axis=1)
    for given in (text, pd.Series(text), pd.Categorical(text, NAMES)):
        named = uq.evaluate(given, probs=columns, logits=True, class_axis=1)
        same(named, swapped)
        assert named.settings["classes"] == NAMES[::-1]
    letters = pd.Categorical.from_codes(labels, ["a", "b", "c", "d"])
    for kind in (pd.Categorical, pd.Series):
        named = uq.evaluate(kind(letters), probs=z, logits=True)
        same(named, plain)
        assert named.settings["classes"] == ["a", "b", "c", "d"]
    assert uq.evaluate(labels, probs=columns, logits=True).settings["classes"] is None
    acc = uq.Accumulator(logits=True)
    for part in (slice(0, 300), slice(300, 500)):
        acc.update(letters[part], probs=z[part])
    same(acc.compute(), uq.evaluate(labels, probs=z, logits=True, statistics="sketch"))


def test_an_order_of_categories_that_may_not_be_that_of_probs_is_asked_for():
    labels, z = samples(50)
    sizes = pd.Series(pd.Categorical.from_codes(labels, ["small", "large", "huge", "vast"]))
    with pytest.raises(
        InputTypeError, match=r"categories small, .* vast, which are not in alphabetical order"
    ):
        uq.evaluate(sizes, probs=z, logits=True)
    found = uq.evaluate(sizes, probs=z, logits=True, classes=["small", "large", "huge", "vast"])
    same(found, uq.evaluate(labels, probs=z, logits=True))


def test_names_of_pixels_streams_and_second_sets(tmp_path):
    labels, probs = pixels()
    text = np.asarray(NAMES)[labels]
    wanted = uq.evaluate(labels, probs=probs, calibration=(labels[:1], probs[:1]))
    found = uq.evaluate(text, probs=probs, classes=NAMES, calibration=(text[:1], probs[:1]))
    assert found.after().scores == wanted.after().scores
    acc = uq.Accumulator(classes=NAMES)
    for truth, p in zip(text, probs, strict=True):
        acc.update(truth, probs=p)
    same(acc.compute(), uq.evaluate(labels, probs=probs, statistics="sketch"))
    data = uq.Predictions.from_probs(text, probs, classes=NAMES)
    data.save(tmp_path / "data.npz")
    assert uq.Predictions.load(tmp_path / "data.npz").form.classes == tuple(NAMES)


def test_the_event_may_be_named_by_labels_and_option():
    labels, z = samples(500, 2)
    p = 1 / (1 + np.exp(z[:, 0] - z[:, 1]))
    named = uq.evaluate(np.asarray(["ill", "well"])[labels], probs=p, classes=["ill", "well"], event="ill")
    same(named, uq.evaluate(labels, probs=p, event=0))


def test_whole_numbers_may_name_the_classes():
    labels, z = samples(500)
    names, options = np.asarray([3, 1, 20, 0]), {"probs": z, "logits": True}
    wanted = uq.evaluate(labels, **options, calibration=(labels[:200], z[:200]), reference=z)
    for given in (names[labels], names[labels].tolist(), names[labels].astype(np.uint8)):
        named = uq.evaluate(given, **options, classes=names, calibration=(given[:200], z[:200]), reference=z)
        same(named, wanted)
        assert named.after().scores == wanted.after().scores
        assert named.settings["classes"] == ["3", "1", "20", "0"]
    columns = pd.DataFrame(z, columns=names)
    same(uq.evaluate(names[labels], probs=columns, logits=True), uq.evaluate(labels, **options))
    one = labels == 1  # named 1, and the only class that occurs
    found = uq.evaluate(names[labels][one], probs=z[one], logits=True, classes=names)
    same(found, uq.evaluate(labels[one], probs=z[one], logits=True))
    for text in (["1", "2", "3", "4"], range(4)):
        same(uq.evaluate(labels, **options, classes=text), uq.evaluate(labels, **options))
    with pytest.raises(
        InvalidValueError, match=r"not among the classes \(first: 2\).* as text if labels count from 0"
    ):
        uq.evaluate(np.arange(500) % 4, **options, classes=names)


def test_numbered_names_of_streams_events_and_samples_without_a_class(tmp_path):
    labels, z = samples(500)
    void = np.arange(500) % 7 == 0  # by the number of no class, though a place among them
    given = np.where(void, 0, labels + 1)
    named = uq.Predictions.from_probs(given, z, logits=True, classes=[1, 2, 3, 4], ignore_label=0)
    named.save(tmp_path / "data.npz")
    wanted = uq.evaluate(np.where(void, 255, labels), probs=z, logits=True, ignore_label=255)
    for data in (named, uq.Predictions.load(tmp_path / "data.npz")):
        same(uq.evaluate(data), wanted)
    assert uq.evaluate(named).settings["ignore_label"] == 0
    acc = uq.Accumulator(classes=np.asarray([1, 2, 3, 4]), ignore_label=0, logits=True)
    for part in (slice(0, 300), slice(300, 500)):
        acc.update(given[part], probs=z[part])
    same(acc.compute(), uq.evaluate(labels, probs=z, logits=True, mask=void, statistics="sketch"))
    labels, z = samples(500, 2)
    for event in (1, 2):
        named = uq.evaluate(labels + 1, probs=z, logits=True, classes=[1, 2], event=event)
        same(named, uq.evaluate(labels, probs=z, logits=True, event=event - 1))


def test_a_label_that_is_no_class_is_named():
    labels, z = samples(50)
    text = np.asarray(NAMES)[labels].astype(object)
    text[3] = "lake"
    with pytest.raises(InvalidValueError, match=r"1 values that are not among the classes \(first: 'lake'\)"):
        uq.evaluate(text, probs=z, logits=True, classes=NAMES)
    hidden = np.arange(50) == 3
    found = uq.evaluate(np.ma.MaskedArray(text, hidden), probs=z, logits=True, classes=NAMES)
    same(found, uq.evaluate(labels, probs=z, logits=True, mask=hidden))
