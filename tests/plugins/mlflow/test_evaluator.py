"""``mlflow.models.evaluate`` with the evaluator "uq": the real MLflow finds it, runs it and returns its scores."""

from __future__ import annotations

import subprocess
import sys
import warnings

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.models import MetricThreshold
from mlflow.models.evaluation import EvaluationResult
from mlflow.models.evaluation.validation import ModelValidationFailedException
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression

import uq_tracking as uq
from uq_tracking.errors import (
    BackendError,
    InputTypeError,
    InvalidValueError,
    SettingsError,
    TrackingWarning,
)
from uq_tracking.tracking.content import logged_scores
from uq_tracking.verbs import EvaluateOptions

with warnings.catch_warnings():  # MLflow's import hooks use what Python deprecates
    warnings.simplefilter("ignore")
    import mlflow.models.evaluation.evaluator_registry

from uq_tracking_mlflow.evaluator import LABELS, OPTIONS

pytestmark = pytest.mark.filterwarnings(
    r"ignore:::mlflow\."
)  # what MLflow itself calls is deprecated by pandas

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"x": RNG.normal(size=60), "std": RNG.uniform(0.5, 1.5, size=60)}, index=range(100, 160))
FRAME["mean"] = 2 * FRAME["x"]
FRAME["y"] = FRAME["mean"] + FRAME["std"] * RNG.normal(size=60)
FRAME["scene"] = np.repeat(list("abcdefghijklmnopqrst"), 3)
REPORT = uq.evaluate(*(FRAME[name].to_numpy() for name in ("y", "mean", "std")))
SCORES = logged_scores(REPORT)
FEATURES = FRAME[["x", "y"]]
NUMBERS = FRAME.drop(columns="scene")  # MLflow 3.17's own evaluators fail on text of pandas 3
ARRAYS = {"data": FRAME[["mean", "std"]].to_numpy(), "targets": FRAME["y"].to_numpy()}
ARRAY_COLUMNS = {"mean_col": "feature_1", "std_col": "feature_2"}


@pytest.fixture
def tracking_uri(sqlite_uri):
    return sqlite_uri


@pytest.fixture
def evaluate(experiment):
    def call(data=FRAME, *, model=None, config=None, evaluators=("uq",), **options):
        config = {"std_col": "std", "figures": False, "strict": True} | (config or {})
        config = {key: value for key, value in config.items() if value is not None}
        options = {"targets": "y", "model_type": "regressor"} | options
        return mlflow.models.evaluate(
            model, data, evaluators=list(evaluators), evaluator_config={"uq": config}, **options
        )

    return call


def stored():
    (run,) = mlflow.search_runs(output_format="list")
    return run


def predict(data):
    return pd.DataFrame({"mean": 2 * data["x"], "std": FRAME["std"].to_numpy()})


@pytest.mark.slow
def test_static_data_are_scored_and_logged_to_the_run_of_the_evaluation(evaluate):
    result = evaluate(predictions="mean", config={"method": "exact", "unit": "m"})
    assert result.metrics == pytest.approx(SCORES, rel=1e-12)
    run = stored()
    assert result.metrics.items() <= run.data.metrics.items()
    assert run.data.metrics["uq_curve/calibration"] is not None
    assert run.data.tags["uq.method"] == "exact"
    assert run.info.status == "FINISHED"
    files = [item.path for item in mlflow.MlflowClient().list_artifacts(run.info.run_id, "uq")]
    assert files == ["uq/predictions.npz", "uq/report.json", "uq/statistics.npz"]


def test_the_active_run_gets_it_and_stays_open(evaluate):
    with mlflow.start_run() as run:
        evaluate(predictions="mean")
        assert mlflow.active_run().info.run_id == run.info.run_id
    assert stored().info.run_id == run.info.run_id
    assert SCORES.items() <= stored().data.metrics.items()


def test_a_dataset_of_mlflow_names_its_own_columns(evaluate):
    data = mlflow.data.from_pandas(FRAME, targets="y", predictions="mean")
    assert evaluate(data, targets=None).metrics == pytest.approx(SCORES, rel=1e-12)


def test_the_mean_can_be_named_in_the_configuration(evaluate):
    frame = FRAME.rename(columns={"mean": "mu", "std": "sigma"})
    assert evaluate(frame, config={"std_col": "sigma", "mean_col": "mu"}).metrics == pytest.approx(SCORES)


def test_arrays_have_numbered_columns(evaluate):
    assert evaluate(**ARRAYS, config=ARRAY_COLUMNS).metrics == pytest.approx(SCORES)


@pytest.mark.parametrize(
    "output",
    [
        predict,
        lambda data: predict(data).rename(columns={"mean": "prediction"}),
        lambda data: tuple(predict(data).to_numpy().T),
        lambda data: dict(predict(data)),
        lambda data: predict(data).to_dict("records"),
    ],
    ids=["frame", "two columns", "tuple", "dict", "records"],
)
def test_a_function_returns_mean_and_std(evaluate, output):
    assert evaluate(FEATURES, model=output).metrics == pytest.approx(SCORES, rel=1e-12)


@pytest.mark.slow
def test_a_logged_model_is_scored_and_its_metrics_belong_to_it_and_name_the_data(evaluate, request):
    request.addfinalizer(mlflow.clear_active_model)  # logging a model makes it the active one
    with warnings.catch_warnings(record=True), mlflow.start_run():

        class Model(mlflow.pyfunc.PythonModel):  # MLflow warns that it would rather have type hints
            def predict(self, context, model_input, params=None):
                spread = np.abs(model_input["x"]) + 1
                return pd.DataFrame({"mu": 2 * model_input["x"], "std": spread, "other": spread})

        info = mlflow.pyfunc.log_model(name="model", python_model=Model(), pip_requirements=[])
        result = evaluate(FEATURES, model=info.model_uri, predictions="mu")
    expected = uq.evaluate(
        FRAME["y"].to_numpy(), 2 * FRAME["x"].to_numpy(), np.abs(FRAME["x"].to_numpy()) + 1
    )
    assert result.metrics["uq/nll"] == pytest.approx(expected.scores["nll"], rel=1e-12)
    metrics = [
        metric for metric in mlflow.get_logged_model(info.model_id).metrics if metric.key.startswith("uq")
    ]
    assert {metric.key: metric.value for metric in metrics} == result.metrics
    (used,) = stored().inputs.dataset_inputs
    assert {(metric.dataset_name, metric.dataset_digest) for metric in metrics} == {
        (used.dataset.name, used.dataset.digest)
    }


@pytest.fixture
def logged_estimator(experiment):
    """Log a fitted scikit-learn estimator, and return its address."""

    def log(estimator):
        with warnings.catch_warnings(record=True):
            return mlflow.sklearn.log_model(estimator, name="model", pip_requirements=[]).model_uri

    yield log
    mlflow.clear_active_model()  # logging a model makes it the active one


@pytest.mark.slow
def test_a_logged_estimator_that_knows_its_std_is_asked_for_it(evaluate, logged_estimator):
    estimator = BayesianRidge().fit(FRAME[["x"]], FRAME["y"])
    uri = logged_estimator(estimator)
    result = evaluate(FRAME[["x", "y", "scene"]], model=uri, config={"std_col": None, "groups_col": "scene"})
    expected = uq.evaluate(FRAME["y"].to_numpy(), *estimator.predict(FRAME[["x"]], return_std=True))
    assert result.metrics == pytest.approx(logged_scores(expected), rel=1e-9)
    run = stored()
    assert run.data.tags["uq.method"] == "BayesianRidge"
    with pytest.raises(SettingsError, match="LinearRegression predicts no uncertainty"):
        evaluate(
            FEATURES,
            model=logged_estimator(LinearRegression().fit(FRAME[["x"]], FRAME["y"])),
            config={"std_col": None},
        )


@pytest.mark.slow
def test_a_classifier_is_scored_by_its_probabilities(evaluate, logged_estimator):
    labels = np.where(FRAME["y"] > 0, "up", "down")
    estimator = LogisticRegression().fit(FRAME[["x"]], labels)
    probs = estimator.predict_proba(FRAME[["x"]])
    expected = logged_scores(uq.evaluate(labels, probs=probs, classes=["down", "up"]))
    data, options = FRAME[["x"]].assign(label=labels), {"targets": "label", "model_type": "classifier"}
    config = {"std_col": None, "method": "logistic"}
    found = evaluate(data, model=logged_estimator(estimator), config=config, **options)
    assert found.metrics == pytest.approx(expected, rel=1e-9)
    columns = data.assign(down=probs[:, 0], up=probs[:, 1], predicted="up", both=list(probs))
    static = {**options, "predictions": "predicted"}
    for given in ({"probs_col": ["down", "up"]}, {"probs_col": "both", "classes": ["down", "up"]}):
        found = evaluate(columns, config={"std_col": None, **given}, **static)
        assert found.metrics == pytest.approx(expected, rel=1e-9)
    with pytest.raises(SettingsError, match="names no probs_col; name it, or evaluate a logged scikit-learn"):
        evaluate(columns, config=config, **static)
    with pytest.raises(SettingsError, match="probs_col: there is no column 'p'"):
        evaluate(columns, config={"std_col": None, "probs_col": "p"}, **static)


def test_scores_are_a_gate(evaluate):
    result = evaluate(predictions="mean")
    better, worse = (
        {"uq/crps": MetricThreshold(threshold=SCORES["uq/crps"] * factor, greater_is_better=False)}
        for factor in (1.1, 0.9)
    )
    mlflow.validate_evaluation_results(validation_thresholds=better, candidate_result=result)
    with pytest.raises(ModelValidationFailedException, match="uq/crps"):
        mlflow.validate_evaluation_results(validation_thresholds=worse, candidate_result=result)


@pytest.mark.slow
def test_options_reach_the_scores_and_the_names(evaluate):
    config = {"split": "test", "alpha": 0.8, "n_bins": 5, "calibration": True, "recalibration": "std_scaling"}
    result = evaluate(predictions="mean", config=config)
    expected = uq.evaluate(*(FRAME[name].to_numpy() for name in ("y", "mean", "std")), alpha=0.8, n_bins=5)
    assert result.metrics["uq/test/n_merci"] == expected.scores["n_merci"]
    assert result.metrics["uq/test/ence"] == expected.scores["ence"]
    assert result.metrics["uq_recalibrated/test/nll"] > 0
    assert result.artifacts["uq/test/report"].content["settings"]["alpha"] == 0.8


@pytest.mark.slow
def test_further_columns_group_stratify_and_mask(evaluate):
    frame = FRAME.assign(bad=FRAME["x"] > 1)
    result = evaluate(
        frame, predictions="mean", config={"groups_col": "scene", "mask_col": "bad", "by_col": "scene"}
    )
    report = result.artifacts["uq/report"].content
    assert report["counts"]["n_masked"] == frame["bad"].sum() > 0
    kept = FRAME[FRAME["x"] <= 1]
    assert report["intervals"]["rmse"][0] < result.metrics["uq/rmse"] < report["intervals"]["rmse"][1]
    assert result.metrics["uq/rmse"] == pytest.approx(np.sqrt(((kept["y"] - kept["mean"]) ** 2).mean()))


@pytest.mark.slow
def test_columns_of_the_input_serve_a_model_too(evaluate):
    frame = FEATURES.assign(bad=FRAME["x"] > 1)
    result = evaluate(frame, model=predict, config={"mask_col": "bad"})
    assert result.artifacts["uq/report"].content["counts"]["n_masked"] == frame["bad"].sum()


@pytest.mark.pictures
@pytest.mark.slow
def test_figures_and_reports_are_artifacts_of_the_result(evaluate, tmp_path):
    result = evaluate(predictions="mean", config={"figures": True})
    assert {"uq/report", "uq_calibration", "uq_reliability"} <= set(result.artifacts)
    figure = result.artifacts["uq_calibration"]
    assert figure.content.size[0] > 200
    assert figure.uri.endswith("/artifacts/uq_calibration.png")
    assert result.artifacts["uq/report"].content["scores"]["nll"] == result.metrics["uq/nll"]
    result.save(tmp_path / "saved")
    again = EvaluationResult.load(tmp_path / "saved")
    assert again.metrics == result.metrics
    assert set(again.artifacts) == set(result.artifacts)


def test_it_runs_beside_the_default_evaluator(evaluate):
    result = mlflow.models.evaluate(
        data=NUMBERS,
        targets="y",
        predictions="mean",
        model_type="regressor",
        evaluator_config={"uq": {"std_col": "std", "figures": False}},
    )
    assert result.metrics["uq/rmse"] == pytest.approx(result.metrics["root_mean_squared_error"], rel=1e-12)


@pytest.mark.parametrize("evaluators", [None, "default"])
@pytest.mark.parametrize("config", [None, {"default": {"metric_prefix": "val_"}}])
def test_evaluations_that_do_not_ask_for_it_are_left_alone(experiment, evaluators, config):
    if evaluators == "default" and config is not None:
        config = config["default"]
    result = mlflow.models.evaluate(
        data=NUMBERS,
        targets="y",
        predictions="mean",
        model_type="regressor",
        evaluators=evaluators,
        evaluator_config=config,
    )
    assert len(result.metrics) > 5
    assert not [name for name in stored().data.metrics if name.startswith("uq")]
    assert not [name for name in stored().data.tags if name.startswith("uq")]


def test_asked_for_without_a_configuration_it_cannot_evaluate(experiment):
    with pytest.raises(mlflow.MlflowException, match="could not be evaluated by any"):
        mlflow.models.evaluate(
            data=FRAME, targets="y", predictions="mean", model_type="regressor", evaluators="uq"
        )


def test_every_option_of_evaluate_can_be_configured():
    elsewhere = {"reference", "y_true", "samples", "quantiles", "interval"}  # arrays and other forms
    elsewhere |= {"class_axis", "members_axis"}
    known = {*OPTIONS, *LABELS.values()}
    assert set(EvaluateOptions.__annotations__) - elsewhere <= known


@pytest.mark.parametrize(
    ("config", "options", "error", "message"),
    [
        (
            {"alhpa": 0.9},
            {"predictions": "mean"},
            SettingsError,
            r"no 'alhpa'; choose from std_col, .* alpha, ",
        ),
        (
            {"std_col": "sd"},
            {"predictions": "mean"},
            SettingsError,
            r"std_col: there is no column 'sd'; .*'std'",
        ),
        (
            {"groups_col": "image"},
            {"predictions": "mean"},
            SettingsError,
            "groups_col: there is no column 'image'",
        ),
        ({"mean_col": "m"}, {}, SettingsError, "the predictive mean: there is no column 'm'"),
        ({}, {}, SettingsError, "the predictive mean is not named; pass predictions="),
        ({"alpha": 2}, {"predictions": "mean"}, SettingsError, "alpha is 2"),
        ({"std_col": "x"}, {"predictions": "mean"}, InvalidValueError, "negative values"),
        (
            {},
            {"model": lambda data: data["x"]},
            InputTypeError,
            "returned Series, which holds no standard deviations",
        ),
        (
            {},
            {"model": lambda data: data[["x"]]},
            SettingsError,
            "std_col: there is no column 'std'; choose from 'x'",
        ),
    ],
)
def test_mistakes_are_named(evaluate, config, options, error, message):
    data = FEATURES if "model" in options else FRAME
    with pytest.raises(error, match=message):
        evaluate(data, config=config, **options)


def test_without_targets_there_is_nothing_to_compare_with(evaluate):
    extra = [
        mlflow.models.make_metric(eval_fn=lambda predictions, targets: 0.0, greater_is_better=True, name="x")
    ]
    with pytest.raises(SettingsError, match="no truth to compare with; pass targets="):
        evaluate(predictions="mean", targets=None, model_type=None, extra_metrics=extra)


@pytest.mark.slow
def test_a_tracker_that_fails_stops_a_strict_evaluation_only(evaluate, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    with mlflow.start_run():
        monkeypatch.setattr(mlflow.MlflowClient, "log_artifact", fail)
        with pytest.raises(BackendError, match="disk full"):
            evaluate(**ARRAYS, config=ARRAY_COLUMNS)
        with pytest.warns(TrackingWarning, match="disk full"):
            result = evaluate(**ARRAYS, config=ARRAY_COLUMNS | {"strict": False})
    assert result.metrics == pytest.approx(SCORES)
    assert result.artifacts == {}


@pytest.mark.slow
def test_mlflow_loads_the_evaluator_when_it_evaluates_and_the_scores_when_asked_for_them():
    code = """
import sys, mlflow
ours = lambda *rooms: [name for name in sys.modules if name.startswith(rooms)]
assert not ours("uq_tracking"), ours("uq_tracking")
import mlflow.models.evaluation.evaluator_registry as registry
assert registry._model_evaluation_registry.is_registered("uq")
heavy = ours("uq_tracking.evaluation", "uq_tracking.metrics", "uq_tracking.figures", "uq_tracking.statistics")
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)
