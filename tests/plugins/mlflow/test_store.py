"""Experiments and runs are found by the addresses that people write."""

from __future__ import annotations

import mlflow
import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import BackendError, RunNotFoundError
from uq_tracking.tracking.resolve import open_store

ONE_MORE = "/with/slashes"


@pytest.fixture
def run_id(in_experiment, experiment):
    return mlflow.MlflowClient().create_run(experiment, run_name="x").info.run_id


@pytest.mark.parametrize("form", ["{name}/{run}", "{id}/{run}", "{run}"])
def test_a_run_is_addressed(run_id, experiment, experiment_name, form):
    store, found = open_store("mlflow:" + form.format(name=experiment_name, id=experiment, run=run_id))
    assert found == run_id
    assert [run.run_id for run in store.runs()] == [run_id]
    assert store.reopen(found).uri == f"mlflow:{experiment}/{run_id}"


@pytest.mark.parametrize("form", ["{name}", "{id}"])
def test_an_experiment_is_addressed(run_id, experiment, experiment_name, form):
    store, found = open_store("mlflow:" + form.format(name=experiment_name, id=experiment))
    assert found is None
    assert [run.name for run in store.runs()] == ["x"]


def test_an_experiment_whose_name_ends_like_a_run_id(in_experiment, experiment_name):
    name = f"{experiment_name}/{'a' * 32}"
    mlflow.MlflowClient().create_experiment(name)
    store, found = open_store(f"mlflow:{name}")
    assert (store.experiment, found) == (name, None)


def test_a_run_id_that_was_cut_makes_no_experiment(run_id, experiment_name):
    cut = f"{experiment_name}/1{run_id[:9]}"
    store, found = open_store(f"mlflow:{cut}")
    assert found is None
    with pytest.raises(RunNotFoundError, match="has 10 hexadecimal digits, but a run id has 32"):
        store.create("m")
    assert mlflow.get_experiment_by_name(cut) is None


def test_an_experiment_is_made_when_a_run_is(in_experiment, experiment_name):
    store, _ = open_store(f"mlflow:{experiment_name}/new")
    with pytest.raises(
        RunNotFoundError, match=r"no experiment '.*/new' in .*; see `mlflow experiments search`"
    ):
        store.runs()
    run = store.create("first", {"seed": "3"})
    (stored,) = store.runs()
    assert (stored.uri, stored.name, stored.status, stored.tags["seed"]) == (
        run.uri,
        "first",
        "finished",
        "3",
    )


def test_a_deleted_experiment_refuses_with_the_cure(in_experiment, experiment, experiment_name):
    mlflow.MlflowClient().delete_experiment(experiment)
    store, _ = open_store(f"mlflow:{experiment_name}")
    with pytest.raises(RunNotFoundError, match=f"mlflow experiments restore --experiment-id {experiment}"):
        store.create("x")


def test_deleted_runs_are_not_listed(run_id, experiment_name):
    mlflow.MlflowClient().delete_run(run_id)
    store, _ = open_store(f"mlflow:{experiment_name}")
    assert list(store.runs()) == []


@pytest.mark.parametrize(
    ("where", "found"),
    [("metrics.`uq/nll` < 1", 1), ("tags.`uq.rescored` IS NULL", 1), ("metrics.`uq/nll` > 1", 0)],
)
def test_mlflows_own_filters(run_id, experiment_name, where, found):
    store, _ = open_store(f"mlflow:{experiment_name}")
    store.reopen(run_id).log_scalars({"uq/nll": 0.5})
    assert len(list(store.runs(where))) == found


def test_a_filter_mlflow_refuses_is_its_own_error(run_id, experiment_name):
    store, _ = open_store(f"mlflow:{experiment_name}")
    with pytest.raises(BackendError, match=r"(?i)searching runs: .*invalid"):
        list(store.runs("nonsense ~ 3"))


def test_an_address_without_an_experiment_is_refused():
    with pytest.raises(BackendError, match="write mlflow:EXPERIMENT"):
        open_store("mlflow:")


def test_the_store_tells_how_to_look_at_it(run_id, experiment, experiment_name, tracking_uri):
    store, _ = open_store(f"mlflow:{experiment_name}")
    server = f"{tracking_uri}/#/experiments/{experiment}/runs?workflowType=machine_learning"
    command = f"mlflow ui --backend-store-uri {tracking_uri}\n"
    assert store.show().startswith(server if tracking_uri.startswith("http") else command)


def test_downloads_are_quiet(run_id, experiment_name, tmp_path, capfd):
    store, _ = open_store(f"mlflow:{experiment_name}")
    (tmp_path / "report.json").write_text("{}")
    store.reopen(run_id).log_file(tmp_path / "report.json", "uq/report.json")
    capfd.readouterr()
    assert store.fetch(run_id, "uq/report.json", tmp_path / "new").read_text() == "{}"
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_score_that_rescoring_leaves_undefined_is_hidden(in_experiment, experiment, experiment_name):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    with mlflow.start_run() as run:
        uq.log(truth, 3 * rng.normal(size=200), np.ones(200), figures=False, strict=True, deadline=120)

    def shown():
        return mlflow.MlflowClient().get_run(run.info.run_id).data.metrics["uq/nll"]

    before = shown()
    uq.rescore(f"mlflow:{experiment_name}", family="uniform").raise_failures()
    assert np.isfinite(before)
    assert np.isnan(shown())
    (stored,) = open_store(f"mlflow:{experiment_name}")[0].runs()
    assert "uq/nll" not in stored.scalars
    assert "uniform" in stored.tags["uq.settings"]
    uq.rescore(f"mlflow:{experiment_name}", family="gaussian").raise_failures()
    assert shown() == before
