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


def test_a_label_that_is_no_class_is_named():
    labels, z = samples(50)
    text = np.asarray(NAMES)[labels].astype(object)
    text[3] = "lake"
    with pytest.raises(InvalidValueError, match=r"1 values that are not among the classes \(first: 'lake'\)"):
        uq.evaluate(text, probs=z, logits=True, classes=NAMES)
    hidden = np.arange(50) == 3
    found = uq.evaluate(np.ma.MaskedArray(text, hidden), probs=z, logits=True, classes=NAMES)
    same(found, uq.evaluate(labels, probs=z, logits=True, mask=hidden))
