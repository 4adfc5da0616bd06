"""Which cases are drawn as maps."""

from __future__ import annotations

import numpy as np
import pytest

from uq_tracking.errors import SettingsError
from uq_tracking.inputs import Predictions
from uq_tracking.tracking.cases import choose_cases


@pytest.mark.parametrize(
    ("shape", "maps", "chosen"),
    [
        ((100, 240, 320), "auto", [0, 33, 66, 99]),
        ((2, 3, 20, 20), "auto", [0, 2, 3, 5]),
        ((344, 403), "auto", [0]),
        ((2, 20, 20), "auto", [0, 1]),
        ((1000,), "auto", []),
        ((1000, 4), "auto", []),
        ((5000, 32), "auto", []),
        ((5000, 32), True, [0]),
        ((10, 8, 8), True, [0, 3, 6, 9]),
        ((10, 8, 8), 2, [0, 9]),
        ((10, 8, 8), 1, [0]),
        ((10, 8, 8), 0, []),
        ((3, 8, 8), 50, [0, 1, 2]),
        ((10, 8, 8), [7, 2], [7, 2]),
        ((10, 240, 320), False, []),
        ((10, 240, 320), [], []),
    ],
)
def test_choice(shape, maps, chosen):
    assert choose_cases(shape, maps) == chosen


@pytest.mark.parametrize(
    ("shape", "maps", "match"),
    [
        ((10,), True, r"\(\.\.\., height, width\), not \(10,\)"),
        ((10, 8, 8), [10], "case 10, but the predictions hold cases 0 to 9"),
        ((10, 8, 8), [-1], "case -1"),
        ((10, 8, 8), -2, "maps=-2"),
    ],
)
def test_impossible_choice(shape, maps, match):
    with pytest.raises(SettingsError, match=match):
        choose_cases(shape, maps)


def test_cases_are_cut_out_with_missing_truth_as_nan():
    target = np.arange(24.0).reshape(2, 1, 3, 4)
    predictions = Predictions(target, target + 1, np.ones_like(target), mask=target == 13)
    case = predictions.case((1, 0))
    np.testing.assert_array_equal(case.arrays["mean"], target[1, 0] + 1)
    assert np.isnan(case.arrays["target"][0, 1])
    assert np.isfinite(np.delete(case.arrays["target"].ravel(), 1)).all()


def test_a_single_picture_is_one_case():
    target = np.ones((3, 4))
    case = Predictions(target, target, target).case((), np.zeros((3, 4, 3)))
    assert (case.arrays["target"].shape, case.image.shape) == ((3, 4), (3, 4, 3))
