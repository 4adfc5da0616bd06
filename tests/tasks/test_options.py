"""Options that make no sense are refused by name, before anything is computed."""

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import SettingsError, UnknownMetricError, UQTrackingError
from uq_tracking.evaluation.parts import iid_stability
from uq_tracking.runs import RescoreOptions

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


@pytest.mark.parametrize(("unit", "said"), [(3, "3"), ("m" * 101, "a value of type str")])
def test_a_unit_is_a_short_text(unit, said):
    with pytest.raises(SettingsError, match=f"unit is {said}; pass text"):
        uq.evaluate(*DATA, unit=unit)


def test_a_metric_is_named_by_its_key():
    with pytest.raises(UnknownMetricError, match="no regression metric is called 1; choose from"):
        uq.evaluate(*DATA, metrics=[1])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"maps": "x"}, "maps is 'x'; choose 'auto'"),
        ({"bits": "a"}, "bits is 'a'; choose 4 to 14"),
        ({"bits": 9.5}, "9.5"),
        ({"maps": 7.5}, "maps is 7.5; choose 'auto', True, False, a whole number or a list of whole numbers"),
        ({"metrics": 3}, "metrics is 3; pass a name or a list of names"),
        ({"statistics": np.zeros(2)}, r"statistics is array.*; choose 'sketch' or 'exact'"),
    ],
)
def test_accumulators_check_their_options(options, match):
    with pytest.raises(SettingsError, match=match):
        uq.Accumulator(**options)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: uq.evaluate(*DATA, curves=3), "curves is 3; pass a name or a list of names"),
        (lambda: uq.evaluate(*DATA, curve_metrics=3), "curve_metrics is 3; pass a name"),
        (lambda: uq.evaluate(*DATA, outputs=3), "outputs is 3; pass a list of names"),
        (lambda: uq.evaluate(*DATA, by_target="m"), "by_target is 'm'; pass a width above 0, or edges"),
        (lambda: uq.evaluate(*DATA, level="95"), "level is '95'; pass a probability"),
        (lambda: uq.evaluate(*DATA, intervals="no"), "intervals is 'no'; pass True or False"),
        (lambda: uq.evaluate(*DATA, calibration=True, recalibration=3), "recalibration is 3; pass a name"),
        (
            lambda: uq.evaluate([0], probs=[[0.4, 0.6]], class_axis="c"),
            "class_axis is 'c'; pass a whole",
        ),
        (lambda: uq.Predictions.from_samples(DATA[0], DATA, axis=1.0), "axis is 1.0; pass a whole number"),
        (lambda: uq.Predictions.from_ensemble(DATA[0], DATA, ddof="1"), "ddof is '1'; pass a whole number"),
        (lambda: uq.Predictions.from_interval(*DATA, "90"), "level is '90'; pass a probability"),
        (lambda: uq.Predictions.from_quantiles(DATA[0], DATA, "ab", axis=0), "levels is 'ab'; pass shares"),
        (lambda: uq.Predictions.load(3), "path is 3; pass the path of a file"),
        (lambda: uq.Report.from_json(3), "path is 3; pass the path of a file"),
        (lambda: uq.log(*DATA, maps=2.5), "maps is 2.5; choose 'auto'"),
        (lambda: uq.log(*DATA, to=3), "to is 3; pass a name or a list of names"),
        (lambda: uq.log(*DATA, run=[None]), "run=None is not a run of"),
        (lambda: uq.compare({"a": 3}), "'a' names a int; pass a Report"),
        (lambda: uq.compare("dir:runs", baseline=["a"]), "baseline is .'a'.; pass text"),
        (lambda: uq.compare("dir:runs", progress=3), "progress is 3; pass a function"),
        (lambda: uq.pool(3), "cannot pool a int"),
        (lambda: uq.rescore(3), "an address of runs is text such as mlflow:EXPERIMENT or dir:PATH, not 3"),
        (lambda: RescoreOptions(workers="2"), "workers is '2'; pass a whole number"),
        (lambda: uq.rescore("dir:runs", dry_run="no"), "dry_run is 'no'; pass True or False"),
        (lambda: uq.rescore("dir:runs", where=3), "where is 3; pass text"),
        (lambda: uq.sync(3), "source is 3; pass text"),
        (lambda: uq.recalibrate(uq.evaluate(*DATA), ["std_scaling"]), "no recalibration method is called"),
        (lambda: iid_stability(3), "draw is 3; pass a function"),
        (lambda: iid_stability(len, sizes=8), "sizes is 8; pass a list"),
        (lambda: uq.evaluate([{"y": 1}]), "use the names of the arguments of Accumulator.update"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(call, match):
    with pytest.raises(UQTrackingError, match=match):
        call()


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
