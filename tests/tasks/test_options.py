"""Options that make no sense are refused by name, before anything is computed."""

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import SettingsError, UnknownMetricError

DATA = ([1.5, 3.0, 2.0], [1.0, 2.0, 3.0], [0.1, 0.5, 1.0])


@pytest.mark.parametrize(
    ("option", "value"),
    [("alpha", "x"), ("alpha", None), ("n_bins", "10"), ("n_bins", True), ("dof", "a")],
)
def test_a_number_is_asked_for(option, value):
    with pytest.raises(SettingsError, match=f"{option} is .*; pass a number"):
        uq.evaluate(*DATA, **{option: value})


def test_a_whole_float_is_a_number_of_bins():
    assert uq.evaluate(*DATA, n_bins=3.0).scores == uq.evaluate(*DATA, n_bins=np.int64(3)).scores


def test_a_unit_is_a_text():
    with pytest.raises(SettingsError, match="unit is 3; pass text"):
        uq.evaluate(*DATA, unit=3)


def test_a_metric_is_named_by_its_key():
    with pytest.raises(UnknownMetricError, match="no regression metric is called 1; choose from"):
        uq.evaluate(*DATA, metrics=[1])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"maps": "x"}, "maps is 'x'; choose 'auto'"),
        ({"bits": "a"}, "bits is 'a'; choose 4 to 14"),
        ({"bits": 9.5}, "9.5"),
    ],
)
def test_accumulators_check_their_options(options, match):
    with pytest.raises(SettingsError, match=match):
        uq.Accumulator(**options)


@pytest.mark.parametrize("option", ["mask", "groups"])
def test_options_of_the_input_belong_to_predictions(option):
    data, values = uq.Predictions(*DATA), np.zeros(3, dtype=bool)
    with pytest.raises(SettingsError, match=f"pass {option} to Predictions"):
        uq.evaluate(data, **{option: values})
    with pytest.raises(SettingsError, match=f"pass {option} to Predictions"):
        uq.Accumulator().update(data, **{option: values})


def test_statistics_add_to_statistics_only():
    with pytest.raises(TypeError, match="unsupported operand"):
        uq.evaluate(*DATA).statistics + 3
