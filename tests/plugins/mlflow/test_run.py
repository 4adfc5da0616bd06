"""Which MLflow run is written to, and what it looks like afterwards."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

import uq_tracking as uq
from uq_tracking.errors import BackendError, RunNotFoundError, SettingsError, TrackingWarning
from uq_tracking.testing import sample_curve, sample_figure, sample_predictions
from uq_tracking.tracking.backend import calling
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.spool import entries
from uq_tracking_mlflow.backend import MLflowBackend
from uq_tracking_mlflow.run import AT_ONCE, MLflowRun, series_of, tag_key

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
QUICK = {"figures": False, "maps": False, "strict": True}


@pytest.fixture
def client(in_experiment):
    return mlflow.MlflowClient()


def test_the_active_run_gets_it_and_stays_open(client):
    with mlflow.start_run() as run:
        report = uq.log(TRUTH, MEAN, STD, method="m", **QUICK)
        assert mlflow.active_run().info.run_id == run.info.run_id
        assert client.get_run(run.info.run_id).info.status == "RUNNING"
    stored = client.get_run(run.info.run_id)
    assert stored.info.status == "FINISHED"
    assert logged_scores(report).items() <= stored.data.metrics.items()
    assert stored.data.tags["uq.method"] == "m"


def test_the_innermost_of_nested_runs_gets_it(client):
    with mlflow.start_run() as outer, mlflow.start_run(nested=True) as inner:
        uq.log(TRUTH, MEAN, STD, **QUICK)
    assert client.get_run(outer.info.run_id).data.metrics == {}
    assert client.get_run(inner.info.run_id).data.metrics


ODD = {
    "augment(strong)": "augment_strong_",
    "a//b": "a__b",
    "": "_",
    "x" * 300: "x" * 250,
    ".": "_",
    "../c": "___c",
}


@pytest.mark.slow
def test_a_tag_that_mlflow_refuses_costs_no_score(client, experiment_name, caplog):
    tags = dict.fromkeys((*ODD, "fold/a:1"), "yes")
    with mlflow.start_run() as run:
        report = uq.log(TRUTH, MEAN, STD, tags=tags, **QUICK)
    uq.log(TRUTH, MEAN, STD, tags=tags, run=f"mlflow:{experiment_name}", method="made", **QUICK)
    made = client.search_runs([run.info.experiment_id], "tags.`uq.method` = 'made'")
    for stored in (client.get_run(run.info.run_id), *made):
        assert logged_scores(report).items() <= stored.data.metrics.items()
        assert dict.fromkeys((*ODD.values(), "fold/a:1"), "yes").items() <= stored.data.tags.items()
    tag_key.cache_clear()
    tag_key("seed=1")
    assert caplog.messages[-1] == "MLflow refuses the tag name seed=1; logged as seed_1"


def test_a_series_reads_the_run_once(client, monkeypatch):
    read, get_run = [], mlflow.MlflowClient.get_run
    with mlflow.start_run() as run:
        uq.log(TRUTH, MEAN, STD, step=0, **QUICK)
        monkeypatch.setattr(
            mlflow.MlflowClient, "get_run", lambda self, run_id: read.append(run_id) or get_run(self, run_id)
        )
        for step in (1, 2, 3):
            uq.log(TRUTH, MEAN, STD, step=step, **QUICK)
        assert read == []
        uq.log(TRUTH, MEAN, STD, step=2, **QUICK)  # the same again: nothing changes
        uq.log(TRUTH, MEAN[::-1], STD, step=3, **QUICK)
        uq.log(TRUTH, MEAN, STD, step=4, method="m", **QUICK)
    history = client.get_metric_history(run.info.run_id, "uq/rmse")
    assert [point.step for point in history] == [0, 1, 2, 3, 3, 4]
    assert history[3].value != history[4].value
    assert client.get_run(run.info.run_id).data.tags["uq.method"] == "m"


def test_a_series_that_goes_back_behind_what_is_stored_is_compared(client):
    with mlflow.start_run() as run:
        for step in range(4):
            uq.log(TRUTH, MEAN, STD, step=step, **QUICK)
        series_of.cache_clear()  # as a process does that continues from a checkpoint
        for step in range(1, 5):
            uq.log(TRUTH, MEAN, STD, step=step, **QUICK)
    history = client.get_metric_history(run.info.run_id, "uq/rmse")
    assert [point.step for point in history] == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_the_grid_shows_the_stored_picture_itself(client):
    maps = np.random.default_rng(0).normal(size=(3, 20, 30))
    with mlflow.start_run() as run:
        uq.log(*maps[:2], np.abs(maps[2]), figures=False, strict=True)
    names = [item.path for item in client.list_artifacts(run.info.run_id, "images")]
    (stored,) = [name for name in names if name.endswith(".png")]
    pictures = [
        Path(client.download_artifacts(run.info.run_id, name)).read_bytes()
        for name in (stored, "uq_map_0.png")
    ]
    assert pictures[0] == pictures[1]
    assert any(name.endswith("compressed.webp") for name in names)


def test_without_an_active_run_none_is_made(client, tmp_path, experiment):
    uq.log(TRUTH, MEAN, STD, **QUICK)
    assert client.search_runs([experiment]) == []
    assert list(tmp_path.glob("uq_runs/*/uq/report.json"))


@pytest.mark.slow
def test_the_run_that_just_ended_is_followed_and_stays_ended(client, tmp_path, caplog):
    with mlflow.start_run() as first:
        pass
    with mlflow.start_run() as run, mlflow.start_run(nested=True):
        pass
    uq.log(TRUTH, MEAN, STD, **QUICK)
    uq.log(TRUTH, MEAN, STD, split="test", **QUICK)
    stored = client.get_run(run.info.run_id)
    assert {"uq/crps", "uq/test/crps"} <= stored.data.metrics.keys()
    assert stored.info.status == "FINISHED"
    assert not client.get_run(first.info.run_id).data.metrics
    assert not list(tmp_path.glob("uq_runs/*"))
    (told,) = [record.message for record in caplog.records if "ended last" in record.message]
    assert f"logging to the run that ended last, mlflow:{run.info.run_id}; to log elsewhere" in told


def test_a_run_that_ended_is_not_followed_when_another_is_open(client, tmp_path):
    with mlflow.start_run() as ended:
        pass
    is_open, may_end = threading.Event(), threading.Event()

    def other():
        with mlflow.start_run():
            is_open.set()
            may_end.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    is_open.wait(30)
    uq.log(TRUTH, MEAN, STD, **QUICK)
    may_end.set()
    thread.join()
    assert not client.get_run(ended.info.run_id).data.metrics
    assert list(tmp_path.glob("uq_runs/*/uq/report.json"))


@pytest.mark.slow
def test_scores_belong_to_a_named_model_and_data_set(client, experiment):
    frame = pd.DataFrame({"y": TRUTH})
    data = mlflow.data.from_pandas(frame, name="depths", targets="y")
    model = client.create_logged_model(experiment)
    with mlflow.start_run() as run:
        uq.log(TRUTH, MEAN, STD, model_id=model.model_id, dataset=data, **QUICK)
    (used,) = client.get_run(run.info.run_id).inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("depths", data.digest)
    metrics = {metric.key: metric for metric in client.get_logged_model(model.model_id).metrics}
    assert metrics["uq/crps"].dataset_name == "depths"
    assert mlflow.get_active_model_id() is None
    with mlflow.start_run() as other:
        uq.log(TRUTH, MEAN, STD, **QUICK)
    assert client.get_run(other.info.run_id).inputs.dataset_inputs[0].dataset.name == "truth"


def test_what_is_no_data_set_is_refused():
    with pytest.raises(SettingsError, match="pass a tracker's data set, such as mlflow"):
        uq.log(TRUTH, MEAN, STD, dataset="depths")
    with pytest.raises(SettingsError, match="model_id is 5"):
        uq.log(TRUTH, MEAN, STD, model_id=5)


def test_the_run_of_the_environment_is_used_without_starting_it(client, monkeypatch, experiment):
    run = client.create_run(experiment)
    client.set_terminated(run.info.run_id)
    monkeypatch.setenv("MLFLOW_RUN_ID", run.info.run_id)
    uq.log(TRUTH, MEAN, STD, **QUICK)
    stored = client.get_run(run.info.run_id)
    assert stored.data.metrics
    assert stored.info.status == "FINISHED"
    assert mlflow.active_run() is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["entity", "active", "id", "uri"])
def test_a_run_is_given_in_any_form(client, experiment, kind):
    with mlflow.start_run() as active:
        pass
    run_id = active.info.run_id
    given = {
        "entity": client.get_run(run_id),
        "active": active,
        "id": run_id,
        "uri": f"mlflow:{experiment}/{run_id}",
    }
    uq.log(TRUTH, MEAN, STD, run=given[kind], **QUICK)
    assert client.get_run(run_id).data.metrics


@pytest.mark.slow
def test_after_its_end_a_run_keeps_status_and_end_time(client):
    with pytest.raises(ZeroDivisionError), mlflow.start_run() as run:
        raise ZeroDivisionError
    before = client.get_run(run.info.run_id).info
    uq.log(sample_predictions(), run=run, strict=True)
    after = client.get_run(run.info.run_id).info
    assert (after.status, after.end_time, after.start_time) == ("FAILED", before.end_time, before.start_time)


def test_from_another_thread_the_run_is_given(client):
    with mlflow.start_run() as run:
        thread = threading.Thread(target=lambda: uq.log(TRUTH, MEAN, STD, run=run, **QUICK))
        thread.start()
        thread.join()
    assert client.get_run(run.info.run_id).data.metrics


def test_a_deleted_run_refuses_with_the_cure(client, tmp_path):
    with mlflow.start_run() as run:
        pass
    client.delete_run(run.info.run_id)
    cure = f"mlflow runs restore --run-id {run.info.run_id}"
    with pytest.raises(BackendError, match=cure):
        uq.log(TRUTH, MEAN, STD, run=run, **QUICK)
    (tmp_path / "x").write_text("x")
    with pytest.raises(RunNotFoundError, match=cure):
        MLflowRun(run.info.run_id).log_file(tmp_path / "x", "uq/x")
    client.restore_run(run.info.run_id)
    assert client.get_run(run.info.run_id).data.metrics == {}
    assert client.list_artifacts(run.info.run_id) == []


def test_an_unknown_run_warns_and_is_kept(client, tmp_path):
    with pytest.warns(TrackingWarning, match="mlflow.*not found.*Everything is kept in"):
        uq.log(TRUTH, MEAN, STD, run="0" * 32, figures=False)
    assert len(list(entries(tmp_path / "uq_runs"))) == 1


@pytest.mark.slow
def test_the_artifacts_have_the_documented_names(client):
    with mlflow.start_run() as run:
        report = uq.log(sample_predictions(), method="m", strict=True)
    root = {item.path for item in client.list_artifacts(run.info.run_id)}
    assert {"uq_reliability.png", "uq_calibration.png", "uq_sparsification.png"} <= root
    assert {"uq_map_0.png", "uq_map_1.png", "uq", "images"} <= root
    files = {item.path for item in client.list_artifacts(run.info.run_id, "uq")}
    assert files == {"uq/report.json", "uq/statistics.npz", "uq/predictions.npz", "uq/maps.npz"}
    lines = {name: curve for name, curve in report.curves.items() if curve.steps is not None}
    no_lines = report.curves.keys() - lines.keys()
    assert no_lines - {"tails"} == {"error_vs_std"}  # the plugin of examples/ has a curve without steps too
    logged = client.get_run(run.info.run_id).data.metrics.keys()
    assert not logged & {f"uq_curve/{name}" for name in no_lines}
    for name, curve in lines.items():
        points = client.get_metric_history(run.info.run_id, f"uq_curve/{name}")
        values = np.asarray(curve.columns[curve.main], dtype=np.float64)
        assert len(points) == np.isfinite(values).sum()
        assert {point.timestamp for point in points} == {run.info.start_time}


@pytest.mark.slow
def test_the_same_again_adds_no_row_and_no_image(client):
    with mlflow.start_run() as run:
        counts = []
        for _ in range(2):
            uq.log(sample_predictions(), strict=True, figures=False)
            keys = client.get_run(run.info.run_id).data.metrics
            rows = sum(len(client.get_metric_history(run.info.run_id, key)) for key in list(keys)[::7])
            counts.append((len(keys), rows, len(client.list_artifacts(run.info.run_id, "images"))))
    assert counts[0] == counts[1]
    assert counts[0][2] == 4  # two maps, each with its thumbnail


def test_a_changed_map_is_added(client):
    with mlflow.start_run() as run:
        for shade in (0.1, 0.9, 0.9):
            MLflowRun(run.info.run_id).log_map("uq_map/test/3", sample_figure(shade))
    assert len(client.list_artifacts(run.info.run_id, "images")) == 4
    assert [item.path for item in client.list_artifacts(run.info.run_id)] == ["images", "uq_map_test_3.png"]


def test_a_picture_that_was_given_up_and_arrived_is_not_sent_twice(client, monkeypatch):
    """The file beside it is the last to arrive; a kept call writes both again."""
    with mlflow.start_run() as run:
        monkeypatch.setattr(MLflowRun, "log_file", lambda *_: None)
        with calling(1.0):
            for shade in (0.2, 0.2, 0.7):
                MLflowRun(run.info.run_id).log_map("uq_map/test/3", sample_figure(shade))
    pictures = client.list_artifacts(run.info.run_id, "images")
    assert len([item for item in pictures if item.path.endswith(".png")]) == 2


def test_an_mlflow_that_cannot_show_images_gets_files_only(client, monkeypatch):
    monkeypatch.setattr(mlflow, "__version__", "3.10.1")
    with mlflow.start_run() as run:
        MLflowRun(run.info.run_id).log_map("uq_map/3", sample_figure())
    assert [item.path for item in client.list_artifacts(run.info.run_id)] == ["uq_map_3.png"]


def test_a_curve_with_other_values_gets_a_name_of_its_own(client):
    with mlflow.start_run() as run:
        ours = MLflowRun(run.info.run_id)
        for values in ((0.0, 1.0), (0.0, 0.5), (0.0, 1.0), (0.0, 0.5), (0.0, 0.2)):
            ours.log_curve("uq_curve/sample", sample_curve(values))
    series = {
        name: [point.value for point in client.get_metric_history(run.info.run_id, name)]
        for name in client.get_run(run.info.run_id).data.metrics
    }
    assert series == {
        "uq_curve/sample": [0.0, 1.0],
        "uq_curve/sample-2": [0.0, 0.5],
        "uq_curve/sample-3": [0.0, 0.2],
    }


def test_a_curve_that_was_cut_off_is_completed(client):
    with mlflow.start_run() as run:
        ours = MLflowRun(run.info.run_id)
        ours.log_curve("uq_curve/sample", sample_curve((0.0, np.nan, 1.0)))
        ours.log_curve("uq_curve/sample", sample_curve((0.0, 0.5, 1.0)))
    assert [p.value for p in client.get_metric_history(run.info.run_id, "uq_curve/sample")] == [0.0, 0.5, 1.0]


@pytest.mark.slow
def test_the_users_own_metrics_are_untouched(client):
    with mlflow.start_run() as run:
        for step in range(3):
            mlflow.log_metric("loss", 1.0 - step, step=step)
            uq.log(TRUTH, MEAN, STD, split="val", step=step, **QUICK)
        uq.log(TRUTH, MEAN, STD, **QUICK)
    assert [point.value for point in client.get_metric_history(run.info.run_id, "loss")] == [1.0, 0.0, -1.0]
    assert [point.step for point in client.get_metric_history(run.info.run_id, "uq/val/nll")] == [0, 1, 2]


def test_one_call_is_one_request(client, monkeypatch):
    sent = []
    log_batch = mlflow.MlflowClient.log_batch

    def counting(self, run_id, metrics=(), *args, **options):
        sent.extend([len(metrics)] if metrics else [])  # not the description
        return log_batch(self, run_id, metrics, *args, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", counting)
    with mlflow.start_run():
        report = uq.log(TRUTH, MEAN, STD, **QUICK)
        points = [len(curve.steps) for curve in report.curves.values() if curve.steps is not None]
        assert sent == [len(logged_scores(report)) + sum(points)]
        uq.log(TRUTH, MEAN, STD, step=1, split="val", **QUICK)
        assert len(sent) == 2


def test_the_address_of_a_run_names_its_experiment(client, experiment):
    run = MLflowRun(client.create_run(experiment).info.run_id, experiment_id=experiment)
    assert run.uri == f"mlflow:{experiment}/{run.run_id}"


def test_what_is_not_ours_is_not_adopted():
    backend = MLflowBackend()
    for thing in (None, 3, "abc", "A" * 32, object(), {"run_id": "0" * 32}):
        assert backend.adopt(thing) is None


class TestLightning:
    @pytest.fixture
    def logger(self, client, tracking_uri):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # lightning's own imports
            from lightning.pytorch.loggers import MLFlowLogger

            return MLFlowLogger(experiment_name="lightning", tracking_uri=tracking_uri)

    def test_its_logger_is_a_run(self, client, logger):
        uq.log(TRUTH, MEAN, STD, run=logger, **QUICK)
        assert client.get_run(logger.run_id).data.metrics
        assert client.get_run(logger.run_id).info.status == "RUNNING"

    def test_a_process_that_is_not_rank_zero_is_told_so(self, client, logger, monkeypatch, tmp_path):
        from lightning.fabric.utilities.rank_zero import rank_zero_only

        monkeypatch.setattr(rank_zero_only, "rank", 1)
        with pytest.warns(TrackingWarning, match="not rank zero"):
            uq.log(TRUTH, MEAN, STD, run=logger, figures=False)
        assert len(list(entries(tmp_path / "uq_runs"))) == 1


def test_a_failed_batch_leaves_the_run_usable(client, experiment):
    run = MLflowRun(client.create_run(experiment).info.run_id)
    with pytest.raises(ZeroDivisionError), run.batch():
        run.log_scalars({"uq/a": 1 / 0})
    run.log_scalars({"uq/b": 2.0})
    assert client.get_run(run.run_id).data.metrics == {"uq/b": 2.0}


@pytest.mark.slow
@pytest.mark.parametrize(("points", "requests"), [(10, 1), (AT_ONCE, 2)])
def test_tags_arrive_with_the_last_points_or_after_them(client, monkeypatch, points, requests):
    sent, log_batch = [], mlflow.MlflowClient.log_batch

    def noted(self, run_id, metrics=(), params=(), tags=(), **options):
        sent.append((len(metrics), len(tags)))
        return log_batch(self, run_id, metrics, params, tags, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", noted)
    with mlflow.start_run() as run:
        target = MLflowRun(run.info.run_id)
        with target.batch():
            target.set_tags({"done": "yes"})
            target.log_scalars({f"score/{number}": 1.0 for number in range(points)})
    assert len(sent) == requests
    assert sum(metrics for metrics, _ in sent) == points
    assert sent[-1][1] == 1
    stored = client.get_run(run.info.run_id).data
    assert (len(stored.metrics), stored.tags["done"]) == (points, "yes")


def test_scores_belong_to_the_active_model_and_points_of_curves_do_not(client, experiment):
    with mlflow.start_run() as run:
        model = mlflow.set_active_model(name="uq-test-model")
        try:
            uq.log(TRUTH, MEAN, STD, **QUICK)
        finally:
            mlflow.clear_active_model()
    logged = client.get_logged_model(model.model_id)
    names = {metric.key for metric in logged.metrics}
    assert names >= {"uq/nll", "uq/crps"}
    assert not {name for name in names if name.startswith("uq_curve/")}
    assert "uq_curve/calibration" in client.get_run(run.info.run_id).data.metrics
