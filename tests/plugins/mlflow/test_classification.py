"""A classification goes to the active MLflow run and comes back."""

import mlflow
import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.runs.read import logged_runs


@pytest.mark.slow
def test_a_segmentation_is_logged_to_the_active_run(in_experiment, experiment_name):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 20, 24)).astype(np.float32)
    labels = rng.integers(0, 3, (2, 20, 24), dtype=np.uint8)
    labels[:, :4] = 255
    with mlflow.start_run() as active:
        report = uq.log(
            labels, probs=logits, logits=True, class_axis=1, ignore_label=255, method="net", strict=True
        )
    stored = mlflow.MlflowClient().get_run(active.info.run_id)
    assert stored.data.metrics["uq/ece"] == pytest.approx(report.scores["ece"], rel=1e-12)
    assert stored.data.tags["uq.method"] == "net"
    names = {file.path for file in mlflow.MlflowClient().list_artifacts(active.info.run_id)}
    assert {"uq_reliability.png", "uq_sparsification.png", "uq_risk_coverage.png"} <= names
    (run,) = logged_runs(f"mlflow:{experiment_name}")
    assert run.scored() == report
    assert uq.evaluate(run.predictions()).scores == report.scores
