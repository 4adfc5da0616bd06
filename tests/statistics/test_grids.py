"""The grid of std and absolute error that a sketch counts, against one counted from the samples."""

import numpy as np
import pytest

from uq_tracking.statistics import statistics as counting
from uq_tracking.statistics.regression import REGRESSION
from uq_tracking.statistics.sketch import Joint
from uq_tracking.statistics.statistics import SketchCollector


def columns(n=20_000):
    """Values over many octaves, some of them zero."""
    rng = np.random.default_rng(0)
    std, error = np.exp(3 * rng.normal(size=n)), np.exp(3 * rng.normal(size=n)) * rng.choice([-1, 0, 1], n)
    return {"target": error, "mean": np.zeros(n), "std": std}


def counted(rows, bits=11):
    collector = SketchCollector(REGRESSION, {}, bits)
    collector.add(rows)
    return collector.statistics().tables["joint"]


@pytest.mark.slow
@pytest.mark.parametrize("bits", [4, 5, 11, 14])
def test_equals_the_cells_of_the_samples(bits, monkeypatch):
    monkeypatch.setattr(counting, "BUILD_BLOCK", 1000)
    rows = columns()
    made, expected = counted(rows, bits), Joint.of(rows["std"], rows["target"])
    assert made.size == expected.size
    np.testing.assert_array_equal(made.key, expected.key)
    np.testing.assert_array_equal(made.count, expected.count)


def test_whole_weights_count_as_copies():
    rows = columns(3000)
    weight = np.random.default_rng(1).integers(1, 4, 3000)
    made = counted({**rows, "weight": weight.astype(float)})
    expected = counted({name: np.repeat(column, weight) for name, column in rows.items()})
    np.testing.assert_array_equal(made.key, expected.key)
    np.testing.assert_array_equal(made.count, expected.count)
