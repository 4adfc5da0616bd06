"""The whole way through MLflow on sqlite: log, compare, store the page."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import uq_tracking as uq

with warnings.catch_warnings():  # MLflow's own imports warn of what its dependencies deprecate
    warnings.simplefilter("ignore")
    import mlflow

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning")  # MLflow's own queries


@pytest.fixture
def experiment(own_sqlite_uri, tmp_path):
    before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
    mlflow.set_tracking_uri(own_sqlite_uri)
    made = mlflow.create_experiment("terrain", artifact_location=(tmp_path / "artifacts").as_uri())
    yield made
    mlflow.set_tracking_uri(before)


@pytest.mark.slow
def test_runs_of_mlflow_are_compared_and_the_page_is_stored_with_them(experiment, tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(2, 16, 18))
    expected = {}
    for method, scale in (("narrow", 0.5), ("wide", 2.0)):
        with mlflow.start_run(experiment_id=experiment, run_name=f"run of {method}"):
            expected[method] = uq.log(
                truth,
                truth + rng.normal(size=truth.shape),
                np.full(truth.shape, scale),
                method=method,
                figures=False,
            )
    with mlflow.start_run(experiment_id=experiment, run_name="training only"):
        mlflow.log_metric("loss", 1.0)

    found = uq.compare("mlflow:terrain", baseline="wide")
    assert {name: found.report(runs[0].label) for name, runs in found.groups.items()} == expected
    assert [run.label for run in found.skipped] == ["training only"]
    assert len(found.maps) == 2

    found.log("mlflow:terrain")
    (stored,) = mlflow.search_runs(
        [experiment], "attributes.run_name = 'uq comparison'", output_format="list"
    )
    path = mlflow.artifacts.download_artifacts(
        run_id=stored.info.run_id, artifact_path="uq_comparison.html", dst_path=str(tmp_path)
    )
    with open(path, encoding="utf-8") as file:
        assert file.read() == found.to_html()
    assert [run.label for run in uq.compare("mlflow:terrain", maps=False).skipped] == ["training only"]
