"""Runs copied from a folder into every tracker, once."""

from __future__ import annotations

import shutil
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import uq_tracking as uq
from tests.runs.places import Place, predictions
from uq_tracking.errors import BackendError
from uq_tracking.figures.picture import picture
from uq_tracking.runs.read import logged_runs
from uq_tracking.testing import sample_predictions
from uq_tracking.tracking.folder import FolderStore


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A folder with one run that was logged in steps, with figures and maps, and one plain run."""
    folder = tmp_path_factory.mktemp("logged")
    run = FolderStore(folder).create("trained")
    for step in range(3):
        uq.log(predictions(seed=step), run=run, step=step, strict=True)
    uq.log(sample_predictions(), run=run, method="m", split="test", tags={"team": "a"}, strict=True)
    Place(f"dir:{folder}").log(predictions(), method="plain")
    return folder


@pytest.fixture
def waiting(logged, tmp_path):
    """A copy of the folder that the test may change."""
    shutil.copytree(logged, tmp_path / "waiting")
    return Place(f"dir:{tmp_path}/waiting")


@pytest.mark.slow
def test_a_copy_holds_what_the_run_holds_and_is_made_once(waiting, place):
    summary = uq.sync(waiting.uri, place.uri)
    assert [outcome.status for outcome in summary.outcomes] == ["done", "done"], str(summary)
    assert not any("left out" in outcome.reason for outcome in summary.done)
    for original, copy in zip(waiting.runs("test"), place.runs("test"), strict=True):
        assert copy.name == original.name
        assert copy.stored.tags.items() >= original.stored.tags.items()
        shown = {name: copy.stored.scalars.get(name) for name in original.stored.scalars}
        assert shown == dict(original.stored.scalars)
        ours = {name for name in original.files if name.startswith("uq/")}
        assert ours <= set(copy.files)
    trained = place.runs("test")[0]
    assert trained.scored() == waiting.runs("test")[0].scored()
    assert {"uq_test_calibration.png"} <= set(trained.files)
    assert len([name for name in trained.files if "map" in name and name.endswith(".png")]) >= 2
    again = uq.sync(waiting.uri, place.uri)
    assert [outcome.status for outcome in again.outcomes] == ["skipped", "skipped"], str(again)
    assert len(place.runs()) == 2


def test_curves_of_the_outputs_of_a_split_are_copied(tmp_path, dir_place):
    arrays = np.random.default_rng(0).gamma(2, size=(3, 50, 2))
    here = Place(f"dir:{tmp_path}/here")
    options = {"outputs": ["x", "y"], "split": "test", "figures": False, "predictions": False, "strict": True}
    uq.log(*arrays, run=here.uri, **options)
    uq.sync(here.uri, dir_place.uri)
    found = [{name for name in place.run().files if "curve" in name} for place in (here, dir_place)]
    assert found[0]
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_run_that_has_changed_is_brought_up_to_date(waiting, dir_place):
    uq.sync(waiting.uri, dir_place.uri)
    uq.rescore(waiting.runs()[1].stored.uri, alpha=0.8)
    summary = uq.sync(waiting.uri, dir_place.uri)
    assert sorted(outcome.status for outcome in summary.outcomes) == ["done", "skipped"]
    assert len(dir_place.runs()) == 2
    assert dir_place.runs()[1].report() == waiting.runs()[1].report()
    assert len(uq.rescore(dir_place.runs()[1].stored.uri, alpha=0.8).done) == 0


@pytest.mark.slow
def test_series_keep_their_steps(waiting, mlflow_sqlite_place):
    import mlflow

    uq.sync(waiting.uri, mlflow_sqlite_place.uri)
    run_id = mlflow_sqlite_place.runs()[0].stored.run_id
    points = mlflow.MlflowClient().get_metric_history(run_id, "uq/nll")
    wanted = [uq.evaluate(predictions(seed=step)).scores["nll"] for step in range(3)]
    assert sorted((point.step, point.value) for point in points) == list(enumerate(wanted))


def test_an_interrupted_copy_is_finished_and_not_made_twice(waiting, dir_place, monkeypatch):
    fetch = FolderStore.fetch
    left = iter(range(4))

    def interrupted(self, run_id, name, folder):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return fetch(self, run_id, name, folder)

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "fetch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            uq.sync(waiting.uri, dir_place.uri)
    summary = uq.sync(waiting.uri, dir_place.uri)
    assert [outcome.status for outcome in summary.outcomes] == ["done", "done"]
    assert "updated in" in summary.outcomes[0].reason
    assert [run.name for run in dir_place.runs()] == ["trained", "plain"]
    assert dir_place.runs("test")[0].scored() == waiting.runs("test")[0].scored()


def test_a_damaged_report_is_left_out_and_named(waiting, dir_place):
    folder = Path(waiting.runs()[1].stored.uri.removeprefix("dir:"))
    (folder / "uq/report.json").write_text("{")
    (folder / "log.jsonl").unlink()  # a tracker keeps none
    summary = uq.sync(waiting.uri, dir_place.uri)
    assert "left out: curves (uq/report.json of run plain" in summary.done[1].reason


def test_a_damaged_or_missing_file_of_the_journal_is_left_out_and_named(waiting, dir_place):
    folder = Path(waiting.runs()[1].stored.uri.removeprefix("dir:"))
    (folder / "uq_curve/reliability.csv").write_text("rmv,rmse\n1.0\n")
    (folder / "uq/statistics.npz").unlink()
    summary = uq.sync(waiting.uri, dir_place.uri)
    assert "left out: uq_curve/reliability (reliability.csv is not a curve" in summary.done[1].reason
    assert "uq/statistics.npz (uq/statistics.npz is gone)" in summary.done[1].reason
    assert dir_place.runs()[1].report() == waiting.runs()[1].report()


def test_a_dry_run_copies_nothing(waiting, dir_place):
    assert len(uq.sync(waiting.uri, dir_place.uri, dry_run=True).done) == 2
    assert dir_place.runs() == []


def test_a_single_run_is_no_destination(waiting):
    with pytest.raises(BackendError, match="is a single run"):
        uq.sync(waiting.uri, waiting.runs()[0].stored.uri)


def test_a_place_is_not_copied_into_itself(waiting, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source in (waiting.uri, waiting.runs()[0].stored.uri):
        with pytest.raises(BackendError, match="are the same place; name another one"):
            uq.sync(source, "dir:waiting")
    assert len(waiting.runs()) == 2


@pytest.mark.slow
def test_a_copy_does_not_go_back_to_its_original(waiting, dir_place, tmp_path):
    third = f"dir:{tmp_path}/third"
    uq.sync(waiting.uri, dir_place.uri)
    rescored = uq.rescore(dir_place.uri, alpha=0.8).done
    uq.sync(dir_place.uri, third)
    for copies in (dir_place.uri, third):
        back = uq.sync(copies, waiting.uri)
        assert [outcome.status for outcome in back.outcomes] == ["skipped", "skipped"]
        assert all("it is a copy of" in outcome.reason for outcome in back.outcomes)
    assert len(waiting.runs()) == 2
    assert len(uq.sync(waiting.uri, third).done) == len(rescored) > 0  # back to the original's alpha
    assert len(list(logged_runs(third))) == 2


def test_runs_of_one_name_from_two_folders_stay_two(tmp_path, dir_place):
    for folder in ("one", "two"):
        uq.log(predictions(), run=Path(tmp_path / folder / "fold"), strict=True, figures=False)
        uq.sync(f"dir:{tmp_path}/{folder}", dir_place.uri)
    assert len(list(logged_runs(dir_place.uri))) == 2


@pytest.mark.parametrize("channels", [3, 4])
def test_a_picture_is_drawn_pixel_by_pixel(tmp_path, channels):
    from uq_tracking.figures import to_rgb

    pixels = np.random.default_rng(0).integers(0, 256, size=(37, 53, channels), dtype=np.uint8)
    pixels[..., 3:] = 255
    matplotlib.image.imsave(tmp_path / "p.png", pixels)
    np.testing.assert_array_equal(to_rgb(picture(tmp_path / "p.png")), pixels[..., :3])
