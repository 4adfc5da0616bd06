"""Maps of runs: the cases of largest error, the same cases and colors in every run, input images in any layout."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import SettingsError, TrackingWarning
from uq_tracking.runs import RescoreOptions
from uq_tracking.runs.read import logged_runs
from uq_tracking.streams.map_samples import case_arrays
from uq_tracking.tracking.cases import DrawnCases

pytestmark = pytest.mark.pictures

Y = np.random.default_rng(0).normal(size=(5, 18, 20))
SIZES = np.array([2.0, 1.0, 5.0, 3.0, 4.0])[:, None, None]


def log(folder, factor=1.0, **options):
    """Log a model whose errors are the sizes times a factor; returns the folder of the run."""
    before = set(folder.glob("*/run.json"))
    uq.log(
        Y,
        Y + factor * SIZES,
        factor + 0 * Y,
        run=f"dir:{folder}",
        figures=False,
        strict=True,
        deadline=300,
        **options,
    )
    (made,) = set(folder.glob("*/run.json")) - before
    return made.parent


def drawn(run):
    return DrawnCases.load(run / "uq/maps.npz")


def pictures(run):
    return {path.name: path.read_bytes() for path in sorted(run.glob("uq_map*.png"))}


@pytest.mark.slow
def test_extremes_are_the_worst_the_median_and_the_best(tmp_path):
    found = drawn(log(tmp_path, maps="extremes"))
    words = {2: "worst of 5 by RMSE", 3: "median of 5 by RMSE", 1: "best of 5 by RMSE"}
    assert dict(found.notes) == words
    assert list(found.cases) == [2, 3, 1]


@pytest.mark.slow
def test_another_run_shows_the_same_cases_in_the_same_colors(tmp_path):
    first = log(tmp_path, maps="extremes")
    second = log(tmp_path, 3.0, maps=f"dir:{first}")
    assert list(drawn(second).cases) == [2, 3, 1]
    assert drawn(second).limits == drawn(first).limits
    assert drawn(second).limits != drawn(log(tmp_path, 3.0, maps=[2, 3, 1])).limits
    assert not drawn(second).notes  # they speak of the other run
    assert pictures(second).keys() == pictures(first).keys()


def test_a_run_without_maps_cannot_be_followed(tmp_path):
    first = log(tmp_path, maps=False)
    with pytest.raises(SettingsError, match="drew no maps"):
        log(tmp_path, maps=f"dir:{first}")


@pytest.mark.slow
def test_large_cases_are_thinned_out_in_the_file(tmp_path, monkeypatch):
    images = np.random.default_rng(0).random((*Y.shape, 3))
    whole = drawn(log(tmp_path, maps=[1], images=images, predictions=False))
    size = sum(array.nbytes for array in case_arrays(whole.cases).values())
    monkeypatch.setattr("uq_tracking.tracking.content.LARGEST", size // 3)
    found = drawn(log(tmp_path, maps=[1], images=images, predictions=False))
    assert found.limits == whole.limits
    for name, array in whole.cases[1].arrays.items():
        assert np.array_equal(found.cases[1].arrays[name], array[::2, ::2])
    assert np.array_equal(found.cases[1].image, whole.cases[1].image[::2, ::2])


@pytest.mark.slow
def test_channels_of_images_come_first_or_last(tmp_path):
    images = np.random.default_rng(1).uniform(size=(5, 18, 20, 3))
    runs = (log(tmp_path, maps=[0], images=each) for each in (images, np.moveaxis(images, -1, 1)))
    one, other = (pictures(run) for run in runs)
    assert one == other != pictures(log(tmp_path, maps=[0]))


@pytest.mark.slow
def test_images_of_another_shape_are_named_in_one_line(tmp_path):
    with pytest.warns(
        TrackingWarning, match=r"images are 20 x 18, of another shape than maps of 18 x 20: drawn"
    ):
        log(tmp_path, maps=[0], images=np.ones((5, 20, 18, 3)))
    log(
        tmp_path, maps=[0], images=np.ones((5, 36, 40))
    )  # a warning would be an error: finer images are usual


@pytest.mark.slow
def test_rescoring_draws_the_stored_cases_again(tmp_path):
    run = log(tmp_path, maps="extremes", predictions=False)
    before = pictures(run)
    for path in run.glob("uq_map*.png"):
        path.unlink()
    uq.rescore(f"dir:{tmp_path}", options=RescoreOptions(figures=True))
    assert pictures(run) == before


@pytest.mark.slow
def test_nothing_is_stored_twice(tmp_path):
    images = np.random.default_rng(0).random((*Y.shape, 3))
    kept, alone = (log(tmp_path, maps=[1, 3], images=images, predictions=choice) for choice in (True, False))
    with np.load(kept / "uq/maps.npz") as arrays:
        assert set(arrays) == {"about.json", "1/image", "3/image"}
    assert not (alone / "uq/predictions.npz").exists()
    found = [next(logged_runs(f"dir:{run}")).drawn() for run in (kept, alone)]
    assert found[0].limits == found[1].limits
    for one, other in zip(*(case_arrays(each.cases).items() for each in found), strict=True):
        assert one[0] == other[0]
        assert np.array_equal(one[1], other[1])
    before = pictures(kept)
    uq.rescore(f"dir:{kept}", options=RescoreOptions(figures=True))
    assert pictures(kept) == before == pictures(alone)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("f4", (1000, 1000)), ("f8", (1000, 1000)), ("f4", (4, 600, 600))]
)
@pytest.mark.slow
def test_a_call_leaves_at_most_20_mb(tmp_path, shape, dtype, caplog):
    rng = np.random.default_rng(0)
    truth, mean, std = rng.normal(size=(3, *shape)).astype(dtype)
    report = uq.log(truth, mean, abs(std) + 1, run=f"dir:{tmp_path}", strict=True, deadline=300)
    (run,) = (path.parent for path in tmp_path.glob("*/run.json"))
    assert sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) < 20e6
    is_kept = (run / "uq/predictions.npz").exists()
    assert is_kept == (dtype == "f4" and len(shape) == 2)
    assert (
        ("not_stored" in report.provenance)
        == ("predictions=True stores them" in caplog.text)
        == (not is_kept)
    )


@pytest.mark.slow
def test_a_run_without_predictions_says_what_cannot_be_answered(tmp_path):
    run = log(tmp_path, maps=[1, 3], predictions=False)
    report = next(logged_runs(f"dir:{run}")).report()
    text = "Predictions are not stored: rescore cannot apply std_floor= or compute adversarial_group_calibration; "
    assert report.provenance["not_stored"] == text + "compare shows maps of cases 1, 3 only."
    assert text in str(report)
    (failed,) = uq.rescore(f"dir:{run}", std_floor=2.0).failed
    assert failed.reason == "a std floor can only be applied to predictions, and the run stores none"
    (done,) = uq.rescore(f"dir:{run}", alpha=0.9).done
    assert done.source == "exact statistics"
    assert next(logged_runs(f"dir:{run}")).report().provenance["not_stored"].startswith(text)
