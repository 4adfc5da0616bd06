"""Options are seen: by help, completion and type checkers; a name that no verb has is answered with the one meant."""

import inspect
import pydoc
from typing import get_type_hints

import pytest

import uq_tracking as uq
from uq_tracking.errors import SettingsError, UnknownOptionError
from uq_tracking.streams.accumulator import AccumulatorOptions
from uq_tracking.tracking.log import LogKeywords
from uq_tracking.verbs import EvaluateOptions

DATA = ([1.5, 3.0, 2.0], [1.0, 2.0, 3.0], [0.1, 0.5, 1.0])
CLASSES = ([0, 1, 1], [0.2, 0.9, 0.4])
ARRAYS = {"y_true", "y_pred", "y_std", "probs", "outputs"}


@pytest.mark.parametrize(
    ("function", "options"),
    [(uq.evaluate, EvaluateOptions), (uq.log, LogKeywords)],
    ids=["evaluate", "log"],
)
def test_what_people_and_type_checkers_see_agrees(function, options):
    assert inspect.signature(function).parameters.keys() - ARRAYS == options.__annotations__.keys() | (
        EvaluateOptions.__annotations__.keys() if function is uq.log else set()
    )


def test_an_accumulator_lists_its_options():
    own = {"statistics", "maps", "bits", "on_device"}
    assert (
        inspect.signature(uq.Accumulator).parameters.keys() - own == get_type_hints(AccumulatorOptions).keys()
    )


def test_help_lists_every_option():
    text = pydoc.render_doc(uq.log)
    for name in ("groups", "mask", "unit", "calibration", "run", "method", "probs", "class_axis"):
        assert f"{name}: " in text or f"{name}=" in text


def test_the_package_lists_public_names_only():
    assert set(dir(uq)) == set(uq.__all__)


@pytest.mark.parametrize(
    ("option", "match"),
    [
        ("std", "did you mean y_std="),
        ("y_sigma", "did you mean y_std="),
        ("y_var", r"pass Predictions\.from_variance\(y_true, y_pred, variance\)"),
        ("log_var", r"Predictions\.from_log_variance"),
        ("labels", "pass the truth first"),
        ("y_prob", "did you mean probs="),
        ("draws", r"Predictions\.from_samples\(y_true, draws\)"),
        ("quantiles", r"Predictions\.from_frame\(table, y_true='y', quantiles="),
        ("n_bin", r"did you mean n_bins\?"),
        ("epoch", r"uq\.log takes it as step="),
        ("name", r"uq\.log takes it as method="),
        ("experiment", r"uq\.log takes its address as run="),
    ],
)
@pytest.mark.parametrize("verb", [uq.evaluate, uq.log])
def test_an_unknown_keyword_names_the_one_meant(verb, option, match):
    with pytest.raises(UnknownOptionError, match=match):
        verb(*DATA[:2], **{option: DATA[2]})


@pytest.mark.parametrize(
    ("option", "meant"), [("std", "did you mean y_std"), ("aleatoric", "choose from by, groups")]
)
def test_predictions_name_it_too(option, meant):
    with pytest.raises(UnknownOptionError, match=f"Predictions has no option {option}; {meant}"):
        uq.Predictions(*DATA[:2], **{option: DATA[2]})


@pytest.mark.parametrize("verb", [uq.compare, uq.rescore, uq.pool, uq.sync, uq.recalibrate])
def test_the_other_verbs_name_it_too(verb):
    with pytest.raises(UnknownOptionError, match=rf"{verb.__name__} has no option "):
        verb("dir:runs", no_such_option=1)


@pytest.mark.parametrize("std", [[[0.2, 0.8], [0.9, 0.1]], [1.0, 1.0]], ids=["probs", "ones"])
def test_probabilities_beside_a_std_are_named(std):
    with pytest.raises(
        SettingsError, match=r"^these look like labels and class probabilities; pass .* probs="
    ):
        uq.evaluate([1, 0], [[0.2, 0.8], [0.9, 0.1]], std)


def test_options_of_another_kind_of_forecast_are_refused_by_name():
    with pytest.raises(
        SettingsError, match=r"alpha= is an option of a forecast of numbers, not of class prob"
    ):
        uq.evaluate(CLASSES[0], probs=CLASSES[1], alpha=0.9)
    for options in ({"logits": True}, {"class_axis": 1}, {"ignore_label": 255}):
        with pytest.raises(
            SettingsError, match=r"is an option of class probabilities, .*pass those as probs="
        ):
            uq.evaluate(*DATA, **options)
    with pytest.raises(SettingsError, match="two forecasts; pass one"):
        uq.evaluate(*DATA, probs=CLASSES[1])


@pytest.mark.parametrize("probs", [CLASSES[1], [[0.8, 0.2], [0.1, 0.9], [0.6, 0.4]]])
def test_probabilities_without_their_name_are_recognized(probs):
    with pytest.raises(
        SettingsError, match=r"pass those as probs=, for example uq.evaluate\(labels, probs=probs\)"
    ):
        uq.evaluate(CLASSES[0], probs)


class TestOneAccumulator:
    def test_an_empty_one_merges_with_any(self):
        for given in (DATA, (CLASSES[0],)):
            acc, extra = uq.Accumulator(), {} if given is DATA else {"probs": CLASSES[1]}
            acc.update(*given, **extra)
            whole = acc.compute()
            assert uq.Accumulator().merge(acc).merge(uq.Accumulator()).compute() == whole

    def test_the_first_batch_decides(self):
        acc = uq.Accumulator()
        assert acc.task is None
        acc.update(CLASSES[0], probs=CLASSES[1])
        with pytest.raises(uq.errors.IncompatibleStatisticsError, match="earlier batches held class probab"):
            acc.update(*DATA)

    def test_metrics_are_checked_at_the_first_batch(self):
        acc = uq.Accumulator(metrics=["brier"])
        with pytest.raises(SettingsError, match="no regression metric is called brier"):
            acc.update(*DATA)
        with pytest.raises(SettingsError, match="no regression metric is called brir"):
            uq.Accumulator(metrics=["brir"])

    def test_options_that_no_forecast_has_together_are_refused_at_once(self):
        with pytest.raises(SettingsError, match="logits cannot be used with a forecast of numbers; omit it"):
            uq.Accumulator(alpha=0.9, logits=True)

    def test_an_empty_one_is_stored(self, tmp_path):
        acc = uq.Accumulator(n_bins=5)
        acc.save(tmp_path / "acc.npz")
        again = uq.Accumulator.load(tmp_path / "acc.npz")
        again.update(CLASSES[0], probs=CLASSES[1])
        assert again.compute().settings["n_bins"] == 5
