"""Runs that never knew this package are scored from files of their own."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import uq_tracking as uq
from tests.rescoring.places import arrays, predictions
from uq_tracking.errors import FileFormatError, SettingsError
from uq_tracking.files import read_predictions
from uq_tracking.rescoring.foreign import matching, zarr_roots
from uq_tracking.tracking.folder import DirectoryStore

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
    run = DirectoryStore(tmp_path / "runs").create("stranger")
    run.log_scalars({"loss": 1.0})
    (run.path / "out").mkdir()
    return run.path / "out"


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_is_read(stranger, dir_place, kind):
    WRITERS[kind](stranger / f"p.{kind}", columns_of())
    columns = None if kind == "npy" else COLUMNS
    for pattern in (f"out/p.{kind}", f"out/*.{kind}", "out"):
        summary = uq.rescore(dir_place.uri, predictions=pattern, columns=columns, unit="m")
        assert [outcome.source for outcome in summary.done] == ["predictions"], str(summary)
    run = dir_place.run()
    report = run.scored()
    assert report.scores == pytest.approx(uq.evaluate(predictions()).scores, rel=1e-12)
    assert report.settings["unit"] == "m"
    assert run.stored.scalars["loss"] == 1.0
    assert run.stored.scalars["uq/nll"] == report.scores["nll"]
    assert "uq_curve/calibration.csv" in run.files
    assert "uq_calibration.png" not in run.files
    assert len(uq.rescore(dir_place.uri, alpha=0.9).done) == 1
    again = uq.rescore(dir_place.uri, predictions=f"out/p.{kind}", columns=columns)
    assert len(again.done) == 1
    assert dir_place.run().report().settings["alpha"] == 0.9


def test_scores_of_our_own_are_not_replaced_by_those_of_a_file(dir_place):
    logged = dir_place.log(predictions())
    as_npz(dir_place.run().store.path / dir_place.run().stored.run_id / "p.npz", columns_of(seed=5))
    (outcome,) = uq.rescore(dir_place.uri, predictions="p.npz", columns=COLUMNS).skipped
    assert "it was logged by uq_tracking" in outcome.reason
    uq.rescore(dir_place.uri, predictions="p.npz", columns=COLUMNS, split="file").raise_failures()
    assert dir_place.run().report() == logged
    assert dir_place.run("file").report().scores != logged.scores


@pytest.mark.parametrize("pattern", ["**/*.npz", "*/*.npz", "*/a.npz"])
def test_files_of_our_own_are_no_files_of_the_run(dir_place, tmp_path, pattern):
    dir_place.log(predictions(), maps=False)
    as_npz(tmp_path / "a.npz", dict(zip(("y_true", "y_pred", "y_std"), arrays(), strict=True)))
    run = dir_place.run()
    run.store.reopen(run.stored.run_id).log_file(tmp_path / "a.npz", "outputs/a.npz")
    assert {"uq/predictions.npz", "uq/statistics.npz"} <= set(dir_place.run().files)
    (done,) = uq.rescore(dir_place.uri, predictions=pattern, split="again").outcomes
    assert done.status == "done", done.reason
    assert dir_place.run("again").report().counts["n"] == 300


def test_our_predictions_are_found_by_their_folder():
    names = ["uq/maps.npz", "uq/predictions.npz", "uq/statistics.npz", "uq/test/predictions.npz"]
    assert matching(names, "uq/*.npz") == ["uq/predictions.npz"]
    assert matching(names, "uq/test") == ["uq/test/predictions.npz"]
    assert matching(names, "uq/maps.npz") == ["uq/maps.npz"]


def test_a_folder_of_images_is_joined(stranger, dir_place):
    for number in range(3):
        target, mean, std = (column.reshape(20, 15) for column in arrays(300, number))
        np.savez(stranger / f"image_{number}.npz", y=target, mu=mean, sigma=std)
    uq.rescore(dir_place.uri, predictions="out", columns=COLUMNS).raise_failures()
    assert dir_place.run().report().counts["n"] == 900


def test_members_of_an_ensemble_are_read(stranger, dir_place):
    rng = np.random.default_rng(0)
    target = rng.normal(size=200)
    members = target + rng.normal(size=(5, 200))
    np.savez(stranger / "p.npz", y=target, members=members)
    uq.rescore(dir_place.uri, predictions="out/p.npz", columns={"target": "y", "samples": "members"})
    wanted = uq.evaluate(uq.Predictions.from_samples(target, members))
    assert dir_place.run().report().scores == wanted.scores


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
    summary = uq.rescore(mlflow_sqlite_place.uri, predictions="eval/predictions.json", columns=COLUMNS)
    assert len(summary.done) == 1, str(summary)
    after = client.get_run(run_id)
    wanted = uq.evaluate(target, mean, std).scores["nll"]
    assert after.data.metrics["uq/nll"] == pytest.approx(wanted, rel=1e-8)  # log_table keeps ten decimals
    assert (after.info.status, after.info.end_time) == (before.status, before.end_time)


@pytest.mark.parametrize("tracker", ["wandb_offline", "wandb_online"])
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
        summary = uq.rescore(place.uri, predictions=pattern, columns=COLUMNS, force=True)
        assert len(summary.done) == 1, str(summary)
        run = place.run()
        assert run.report().scores == pytest.approx(wanted, rel=1e-12), split
        assert run.stored.scalars["uq/nll"] == pytest.approx(wanted["nll"], rel=1e-12)
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


def test_runs_without_such_a_file_are_skipped_and_damaged_ones_fail(dir_place, tmp_path):
    store = DirectoryStore(tmp_path / "runs")
    for name in ("none", "damaged", "fine"):
        folder = store.create(name).path
        if name != "none":
            np.savez(folder / "p.npz", **columns_of())
        if name == "damaged":
            (folder / "p.npz").write_bytes(b"PK\x03\x04")
    summary = uq.rescore(dir_place.uri, predictions="p.npz", columns=COLUMNS)
    assert {outcome.name: outcome.status for outcome in summary.outcomes} == {
        "none": "skipped",
        "damaged": "failed",
        "fine": "done",
    }
    assert "has no file p.npz; it has none" in summary.skipped[0].reason


def test_wrong_columns_are_named(stranger, dir_place):
    as_npz(stranger / "p.npz", columns_of())
    (outcome,) = uq.rescore(dir_place.uri, predictions="out/p.npz", columns={"target": "truth"}).failed
    assert "no column 'truth'" in outcome.reason
    assert isinstance(outcome.error, SettingsError)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("a.npz", ["a.npz"]),
        ("out", ["out/a.npz", "out/deep/b.npz"]),
        ("out/", ["out/a.npz", "out/deep/b.npz"]),
        ("out/*.npz", ["out/a.npz"]),
        ("*.npz", ["a.npz"]),
        ("*/*/*.npz", ["out/deep/b.npz"]),
        ("x/*.zarr", ["x/s.zarr/y/0"]),
        ("b.npz", []),
    ],
)
def test_patterns(pattern, wanted):
    assert matching(["out/deep/b.npz", "out/a.npz", "a.npz", "x/s.zarr/y/0"], pattern) == wanted


def test_zarr_stores_are_folders():
    assert zarr_roots(["x/s.zarr/y/0", "x/s.zarr/.zgroup", "x/t.npz"]) == ["x/s.zarr"]
