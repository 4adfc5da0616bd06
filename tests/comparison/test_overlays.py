"""Curves over labels, of runs that do not have the same ones."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from tests.comparison.conftest import N, samples


def labelled(names):
    truth, mean, std = samples()
    labels = np.resize(names, N)
    return uq.evaluate(uq.Predictions(truth, mean, std, by=labels), curve_metrics=["rmse"])


def test_a_label_has_one_place_in_all_runs():
    found = uq.compare({"all": labelled(["near", "middle", "far"]), "two": labelled(["far", "near"])})
    curve = found.curves["by_group_rmse"]
    assert curve.labels == ("far", "middle", "near")
    assert {line.method: line.x.tolist() for line in curve.lines} == {"all": [0, 1, 2], "two": [0, 2]}
    (ax,) = found.plot("by_group_rmse").axes
    assert [text.get_text() for text in ax.get_xticklabels()] == ["far", "middle", "near"]


def test_labels_that_happen_to_be_numbers_are_aligned_too():
    found = uq.compare({"all": labelled(["0", "1", "2"]), "some": labelled(["2", "10"])})
    curve = found.curves["by_group_rmse"]
    assert curve.labels == ("0", "1", "2", "10")
    assert [line.x.tolist() for line in curve.lines] == [
        [0, 1, 2],
        [3, 2],
    ]  # in the order of the strata, as text


@pytest.mark.parametrize("names", [[6, 12, 24], [0.5, 1.5]])
def test_numbers_are_places_themselves(names):
    found = uq.compare({"one": labelled(names), "other": labelled(names[1:])})
    curve = found.curves["by_group_rmse"]
    assert curve.labels == ()
    assert [line.x.tolist() for line in curve.lines] == [names, names[1:]]
