"""Evaluator for ``mlflow.models.evaluate``: scores the uncertainty of predictions, functions and models.

MLflow finds it by the entry point ``mlflow.model_evaluator`` and loads it when ``evaluate`` is first called. It takes
part only if it is configured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from mlflow.models.evaluation.artifacts import ImageEvaluationArtifact, JsonEvaluationArtifact
from mlflow.models.evaluation.base import EvaluationArtifact, EvaluationResult, ModelEvaluator
from mlflow.tracking.artifact_utils import get_artifact_uri

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.settings import ScoreOptions
from uq_tracking.tracking.backend import finite
from uq_tracking_mlflow.run import MLflowRun

if TYPE_CHECKING:
    from mlflow.data.evaluation_dataset import EvaluationDataset

Table = dict[str, Any]
"""Values by column."""

LABELS = {
    "groups_col": "groups",
    "by_col": "by",
    "mask_col": "mask",
    "weights_col": "weights",
    "order_col": "order",
}
"""Configuration keys that name further columns, and their ``uq_tracking.log`` arguments."""

OPTIONS = (
    *("scores", "method", "split", "tags", "figures", "predictions", "strict", "std_floor", "on_invalid"),
    *("classes", "event", "logits", "ignore_label"),
    *(field.name for field in fields(ScoreOptions) if field.name != "reference"),
)
"""Configuration keys that ``uq_tracking.log`` accepts under the same name."""

_ARTIFACTS: dict[str, Any] = {".png": ImageEvaluationArtifact, ".json": JsonEvaluationArtifact}


class UncertaintyEvaluator(ModelEvaluator):
    """Scores means and standard deviations, or class probabilities, and logs to the evaluation's run."""

    name = "uq"

    @classmethod
    def can_evaluate(cls, *, model_type: str | None, evaluator_config: Mapping[str, Any], **_: Any) -> bool:
        """Return whether there is a configuration for it; MLflow tries every evaluator it finds."""
        return bool(evaluator_config)

    def evaluate(
        self,
        *,
        model_type: str | None,
        dataset: EvaluationDataset,
        run_id: str,
        evaluator_config: Mapping[str, Any],
        model: Any = None,
        predictions: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Score, log to the run ``run_id`` as ``uq_tracking.log`` does, and return what was logged.

        Parameters
        ----------
        model_type
            "classifier" for class probabilities; anything else is not used.
        dataset
            Targets, and features or predictions.
        run_id
            Run of the evaluation.
        evaluator_config
            ``std_col``, ``mean_col``, ``probs_col``, further columns (`LABELS`) and options (`OPTIONS`).
        model
            With ``std_col``: model whose ``predict`` returns mean and standard deviation, a DataFrame or dict with
            both columns, a list of such dicts, or a tuple (mean, std). Without: a logged scikit-learn estimator that
            knows its std, or a classifier with ``predict_proba``. None for data that already hold predictions.
        predictions
            Column of the mean in the model's output.

        Returns
        -------
        EvaluationResult
            Scores by their logged names, and figures and reports.

        Raises
        ------
        SettingsError
            A key is unknown, a column is missing, or an option is out of range.
        InputError
            The values cannot be scored.
        """
        _check(evaluator_config, dataset)
        options = {name: value for name, value in evaluator_config.items() if name in OPTIONS}
        if "std_col" in evaluator_config:
            if model is None:
                table, mean = _of_data(dataset, evaluator_config.get("mean_col"))
            else:
                table, mean = _of_model(model, dataset, evaluator_config, predictions)
            std = _pick(table, evaluator_config["std_col"], "std_col")
            forecast = {
                "y_true": dataset.labels_data,
                "y_pred": _pick(table, mean, "the predictive mean"),
                "y_std": std,
            }
        elif "probs_col" in evaluator_config:
            table = _features(dataset)
            forecast = _of_columns(table, dataset.labels_data, evaluator_config["probs_col"])
        else:
            table = _features(dataset)
            forecast, options = _of_estimator(model, dataset, model_type, options)
        digest = getattr(dataset, "digest", None)  # since MLflow 3
        run = _RecordedRun(run_id, (dataset.name, digest) if digest else None)
        uq.log(
            **forecast,
            run=run,
            maps=False,
            **{
                name: _pick(table, evaluator_config[key], key)
                for key, name in LABELS.items()
                if key in evaluator_config
            },
            **options,
        )
        return EvaluationResult(run.scalars, run.artifacts, run_id)  # type: ignore[no-untyped-call]


class _RecordedRun(MLflowRun):
    """Remembers what arrived, in the form that MLflow's result needs."""

    def __init__(self, run_id: str, dataset: tuple[str, str] | None) -> None:
        super().__init__(run_id, dataset=dataset)
        self.scalars: dict[str, float] = {}
        self.artifacts: dict[str, EvaluationArtifact] = {}

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        super().log_scalars(scalars, step=step)
        self.scalars |= finite(scalars)

    def log_file(self, path: Path, name: str) -> None:
        super().log_file(path, name)
        kind = _ARTIFACTS.get(path.suffix)
        if kind is not None:
            artifact = kind(uri=get_artifact_uri(self.run_id, name))  # type: ignore[no-untyped-call]
            # The only way to set it; otherwise the content would be downloaded on first access.
            artifact._load(path)
            self.artifacts[name.removesuffix(path.suffix)] = artifact


def _check(config: Mapping[str, Any], dataset: EvaluationDataset) -> None:
    known = ("std_col", "mean_col", "probs_col", *LABELS, *OPTIONS)
    unknown = [key for key in config if key not in known]
    if unknown:
        raise SettingsError(
            f"evaluator_config of 'uq' has no {', '.join(map(repr, unknown))}; choose from {', '.join(known)}. "
            "Pass options of other evaluators separately: evaluator_config={'uq': {...}, 'default': {...}}"
        )
    if dataset.labels_data is None:
        raise SettingsError("there is no truth to compare with; pass targets= to mlflow.models.evaluate")


def _of_data(dataset: EvaluationDataset, mean: str | None) -> tuple[Table, str]:
    """The columns of data that hold predictions, and the name of the mean."""
    table = _features(dataset)
    if dataset.predictions_data is not None:
        table[dataset.predictions_name] = dataset.predictions_data
    name = mean or dataset.predictions_name
    if name is None:
        raise SettingsError(
            "the predictive mean is not named; pass predictions= to mlflow.models.evaluate, or mean_col in "
            "evaluator_config"
        )
    return table, name


def _of_model(
    model: Any, dataset: EvaluationDataset, config: Mapping[str, Any], predictions: str | None
) -> tuple[Table, str]:
    """The columns of a model's output, those of its input missing there, and the name of the mean."""
    name, std = config.get("mean_col") or predictions, config["std_col"]
    output = _read_output(model.predict(dataset.features_data.copy()), name or "mean", std)
    if name is None:
        rest = [column for column in output if column != std]
        name = rest[0] if len(rest) == 1 else "mean"
    return {**_features(dataset), **output}, name


def _of_estimator(
    model: Any, dataset: EvaluationDataset, model_type: str | None, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The forecast of a logged scikit-learn estimator that knows its uncertainty, and options with its name."""
    what = "probs_col" if model_type == "classifier" else "std_col"
    estimator = getattr(model, "get_raw_model", lambda: None)()
    if estimator is None or not hasattr(estimator, "get_params"):
        raise SettingsError(
            f"evaluator_config of 'uq' names no {what}; name it, or evaluate a logged scikit-learn estimator that "
            "predicts its uncertainty"
        )
    from uq_tracking.frameworks.sklearn import forecast_of

    features = dataset.features_data
    if isinstance(features, pd.DataFrame) and hasattr(estimator, "feature_names_in_"):
        features = features[list(estimator.feature_names_in_)]  # others may hold groups or weights
    forecast = forecast_of(estimator, features, dataset.labels_data)
    return forecast, {"method": type(estimator).__name__, **options}


def _of_columns(table: Table, labels: Any, columns: str | Sequence[str]) -> dict[str, Any]:
    """Labels, and probabilities of classes from one column each, or from one that holds them all."""
    if isinstance(columns, str):
        values = _pick(table, columns, "probs_col")
        return {"y_true": labels, "probs": np.stack(values) if values.dtype == object else values}
    return {
        "y_true": labels,
        "probs": pd.DataFrame({name: _pick(table, name, "probs_col") for name in columns}),
    }


def _read_output(output: Any, mean: str, std: str) -> Table:
    if isinstance(output, tuple) and len(output) == 2:
        return {mean: output[0], std: output[1]}
    if isinstance(output, list) and output and all(isinstance(row, Mapping) for row in output):
        output = pd.DataFrame(output)
    if isinstance(output, Mapping | pd.DataFrame):
        return {str(column): output[column] for column in output}
    raise InputTypeError(
        f"the model returned {type(output).__name__}, which holds no standard deviations; return a DataFrame with "
        f"the columns {mean!r} and {std!r}, or a tuple (mean, std)"
    )


def _features(dataset: EvaluationDataset) -> Table:
    data = dataset.features_data
    if isinstance(data, pd.DataFrame):
        return {str(column): data[column] for column in data}
    return {name: data[:, place] for place, name in enumerate(dataset.feature_names)}


def _pick(table: Table, column: str, what: str) -> Any:
    if column not in table:
        raise SettingsError(
            f"{what}: there is no column {column!r}; choose from {', '.join(map(repr, table))}"
        )
    return np.asarray(table[column])  # without the index: rows are paired by position
