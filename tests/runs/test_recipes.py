"""What `uq.log` can do with logged runs: score their own files, or their standard deviations on other means."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest

import uq_tracking as uq
from tests.runs.places import QUIET, arrays, predictions
from uq_tracking.errors import FileFormatError
from uq_tracking.files import read_predictions
from uq_tracking.runs import logged_runs
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.folder import FolderStore

COLUMNS = {"target": "y", "mean": "mu", "std": "sigma"}


def as_npz(path, columns):
    np.savez(path, **columns)


def as_npy(path, columns):
    np.save(path, np.stack(list(columns.values()), axis=1))


def as_csv(path, columns):
    pd.DataFrame(columns).to_csv(path, index=False)


def as_parquet(path, columns):
    pd.DataFrame(columns).to_parquet(path)


def as_json(path, columns):
    rows = np.stack(list(columns.values()), axis=1).tolist()
    path.write_text(json.dumps({"columns": list(columns), "data": rows}))


def as_zarr(path, columns):
    import zarr

    group = zarr.open_group(str(path), mode="w")
    for name, values in columns.items():
        group[name] = values


WRITERS = {
    "npz": as_npz,
    "npy": as_npy,
    "csv": as_csv,
    "parquet": as_parquet,
    "json": as_json,
    "zarr": as_zarr,
}


def columns_of(seed=0, n=300):
    target, mean, std = arrays(n, seed)
    return {"y": target, "mu": mean, "sigma": std}


@pytest.fixture
def stranger(dir_place, tmp_path):
    """A run that knows nothing of us, and the folder to put its files in."""
    run = FolderStore(tmp_path / "runs").create("stranger")
    run.log_scalars({"loss": 1.0})
    (run.path / "out").mkdir()
    return run.path / "out"


def log_files(uri, pattern, columns=COLUMNS, **options):
    """The recipe of docs/rescoring.md: score the files of runs logged without this package."""
    for run in logged_runs(uri):
        with TemporaryDirectory() as folder:
            paths = [run.fetch(name, Path(folder)) for name in run.files if fnmatch(name, pattern)]
            data = read_predictions(paths if len(paths) > 1 else paths[0], columns)
        uq.log(data, run=run.stored.uri, **{**QUIET, **options})


@pytest.mark.parametrize("kind", [kind for kind in WRITERS if kind != "zarr"])
def test_files_of_runs_that_never_knew_us_are_scored(stranger, dir_place, kind):
    WRITERS[kind](stranger / f"p.{kind}", columns_of())
    columns = None if kind == "npy" else COLUMNS
    log_files(dir_place.uri, f"out/*.{kind}", columns, unit="m")
    run = dir_place.run()
    report = run.scored()
    assert report.scores == pytest.approx(uq.evaluate(predictions()).scores, rel=1e-12)
    assert report.settings["unit"] == "m"
    assert run.stored.scalars["loss"] == 1.0
    assert run.stored.scalars["uq/nll"] == report.scores["nll"]
    assert "uq_curve/calibration.csv" in run.files
    assert len(uq.rescore(dir_place.uri, alpha=0.9).done) == 1
    assert dir_place.run().report().settings["alpha"] == 0.9


def test_a_zarr_store_is_scored(stranger, dir_place):
    as_zarr(stranger / "p.zarr", columns_of())
    run = dir_place.run()
    with TemporaryDirectory() as folder:
        for name in run.files:
            run.fetch(name, Path(folder))
        data = read_predictions(Path(folder) / "out/p.zarr", COLUMNS)
    assert uq.evaluate(data).scores == uq.evaluate(predictions()).scores


def test_a_folder_of_images_is_joined(stranger, dir_place):
    for number in range(3):
        target, mean, std = (column.reshape(20, 15) for column in arrays(300, number))
        np.savez(stranger / f"image_{number}.npz", y=target, mu=mean, sigma=std)
    log_files(dir_place.uri, "out/*")
    assert dir_place.run().report().counts["n"] == 900


def test_members_of_an_ensemble_are_read(stranger, dir_place):
    rng = np.random.default_rng(0)
    target = rng.normal(size=200)
    members = target + rng.normal(size=(5, 200))
    np.savez(stranger / "p.npz", y=target, members=members)
    log_files(dir_place.uri, "out/p.npz", {"target": "y", "samples": "members"})
    wanted = uq.evaluate(uq.Predictions.from_samples(target, members))
    assert dir_place.run().report().scores == wanted.scores


@pytest.mark.slow
def test_tables_of_mlflow_are_read(mlflow_sqlite_place):
    import mlflow

    client = mlflow.MlflowClient()
    experiment = client.create_experiment(mlflow_sqlite_place.uri.removeprefix("mlflow:"))
    run_id = client.create_run(experiment).info.run_id
    target, mean, std = arrays()
    table = {"y": target.tolist(), "mu": mean.tolist(), "sigma": std.tolist()}
    client.log_table(run_id, table, "eval/predictions.json")
    client.set_terminated(run_id, "FAILED")
    before = client.get_run(run_id).info
    log_files(mlflow_sqlite_place.uri, "eval/predictions.json")
    after = client.get_run(run_id)
    wanted = uq.evaluate(target, mean, std).scores["nll"]
    assert after.data.metrics["uq/nll"] == pytest.approx(wanted, rel=1e-8)  # log_table keeps ten decimals
    assert (after.info.status, after.info.end_time) == (before.status, before.end_time)


@pytest.mark.parametrize("tracker", ["wandb_offline", "wandb_online"])
@pytest.mark.slow
def test_tables_and_artifacts_of_wandb_are_read(tracker, request, tmp_path):
    import wandb

    place = request.getfixturevalue(f"{tracker}_place")
    target, mean, std = arrays(60)
    np.savez(tmp_path / "p.npz", y=target, mu=mean, sigma=std)
    with wandb.init(project="p") as run:
        run.log(
            {
                "loss": 1.0,
                "eval": wandb.Table(list(COLUMNS.values()), list(zip(target, mean, std, strict=True))),
            }
        )
        artifact = wandb.Artifact("preds", "predictions")
        artifact.add_file(str(tmp_path / "p.npz"), name="deep/p.npz")
        run.log_artifact(artifact)
    wanted = {"eval.table.json", "preds/deep/p.npz"}
    assert wanted <= place.files(wanted)
    wanted = uq.evaluate(target, mean, std).scores
    for pattern, split in (("eval.table.json", "table"), ("preds/*/*.npz", "artifact")):
        log_files(place.uri, pattern, split=split)
        run = place.run(split)
        assert run.report().scores == pytest.approx(wanted, rel=1e-12)
        assert run.stored.scalars[f"uq/{split}/nll"] == pytest.approx(wanted["nll"], rel=1e-12)
        assert run.stored.scalars["loss"] == 1.0


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"columns": ["y"], "data": [[1.0, 2.0]]}', "rows must be as long as its 1 column names"),
        (
            '{"columns": ["y", "mu", "sigma"], "data": [[1.0, "a", 1.0]]}',
            "column 'mu' \\(for mean\\) holds text such as 'a' \\(data row 1\\), not numbers",
        ),
        ('[{"y": 1.0}]', "is not a table"),
        ("{", "cannot be read"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path, text, match):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises((FileFormatError, TypeError), match=match):
        read_predictions(tmp_path / "t.json", COLUMNS)


def test_an_empty_cell_of_the_target_is_no_ground_truth(tmp_path):
    rows = [[1.0, 1.5, 0.5], [None, 1.0, 0.5]]
    (tmp_path / "t.json").write_text(json.dumps({"columns": ["y", "mu", "sigma"], "data": rows}))
    assert read_predictions(tmp_path / "t.json", COLUMNS).counts["n_missing"] == 1


class TestACommonPredictor:
    """Every run's standard deviations against one run's means."""

    @pytest.fixture
    def three(self, dir_place):
        target, mean, std = arrays()
        rng = np.random.default_rng(9)
        for method in "abc":
            dir_place.log((uq.Predictions(target, mean, std)), method=method)
            mean, std = mean + 0.1 * rng.normal(size=mean.shape), rng.permutation(std)

    @pytest.mark.slow
    def test_scores_stand_under_a_split_of_their_own(self, dir_place, three):
        before = [run.report() for run in dir_place.runs()]
        common = dir_place.runs()[0].predictions()
        for run in logged_runs(dir_place.uri):
            own = run.predictions()
            assert own.target_digest() == common.target_digest()
            uq.log(own.replace(mean=common.mean), run=run.stored.uri, split="common", **QUIET)
        for run, old in zip(dir_place.runs(), before, strict=True):
            own = run.predictions()
            wanted = uq.evaluate(common.truth, common.form.mean, own.form.std)
            assert logged_scores(wanted, "common").items() <= run.stored.scalars.items()
            assert run.report() == old
            assert run.stored.scalars["uq/nll"] == old.scores["nll"]
        assert len({run.report().scores["rmse"] for run in dir_place.runs("common")}) == 1
        assert len(uq.rescore(dir_place.uri, split="common", alpha=0.9).done) == 3
        assert uq.compare(dir_place.uri, split="common").methods

    @pytest.mark.parametrize("change", ["values", "order", "choice"])
    def test_other_targets_have_another_digest(self, change):
        target, mean, std = arrays()
        digest = uq.Predictions(target, mean, std).target_digest()
        if change == "values":
            target[0] += 1
        elif change == "order":
            target, mean, std = target[::-1], mean[::-1], std[::-1]
        else:
            target[0] = np.nan
        assert uq.Predictions(target, mean, std).target_digest() != digest
