"""Files of Predictions.save, and many files as one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from uq_tracking.errors import (
    FileFormatError,
    SettingsError,
    ShapeError,
)
from uq_tracking.files import read_predictions
from uq_tracking.inputs import Predictions

from .made import NAN, ONE, made_columns


def test_own_file_brings_everything_back(tmp_path):
    saved = Predictions.from_ensemble([1, NAN, 3], np.arange(6.0).reshape(2, 3), groups=[1, 2, 2], unit="K")
    data = read_predictions(saved.save(tmp_path / "p.npz"))
    assert data.digest() == saved.digest()
    assert data.counts == saved.counts
    assert_array_equal(data.form.samples, saved.form.samples)
    assert data.unit == "K"


@pytest.mark.parametrize(
    ("data", "given", "named"),
    [
        (Predictions([1.0, 2.0], [1.0, 2.0], [1.0, 1.0]), {"weights": [1.0, 2.0]}, "weights"),
        (Predictions.from_probs([0, 1], [0.2, 0.7]), {"groups": [1, 2]}, "groups"),
    ],
)
def test_what_a_saved_file_cannot_be_given_is_named(tmp_path, data, given, named):
    with pytest.raises(SettingsError, match=f"{named} must be given when making them"):
        read_predictions(data.save(tmp_path / "p.npz"), **given)


def test_own_file_takes_unit_and_floor(tmp_path):
    path = Predictions([1, NAN, 3], [1, 2, 3], [0, 1, 1]).save(tmp_path / "p.npz")
    data = read_predictions(path, unit="m", std_floor=0.5, on_invalid="drop", groups=None)
    assert data.counts == {"n": 2, "n_missing": 1, "n_masked": 0, "n_invalid": 0, "n_zero_std": 1}
    assert_array_equal(data.flat()[2], [0.5, 1])
    assert data.unit == "m"
    with pytest.raises(SettingsError, match="already states which samples count"):
        read_predictions(path, mask=[True, False, False])


def test_glob_joins_columns_in_order_of_names(write, tmp_path):
    suffix = write(made_columns(1)).name.split(".", 1)[1]
    for k in range(3):
        write(made_columns(10, seed=k), name=f"part{k}.{suffix}")
    data = read_predictions(str(tmp_path / f"part*.{suffix}"))
    assert data.n == 27  # each part lacks one truth
    assert_array_equal(data.mean, np.concatenate([made_columns(10, seed=k)["mean"] for k in range(3)]))


def test_maps_of_one_size_become_a_stack(tmp_path):
    for k in range(3):
        maps = np.full((2, 4), 1.0 + k)
        np.savez(tmp_path / f"{k}.npz", target=maps, mean=maps, std=maps, groups=[f"{k}a", f"{k}b"])
    data = read_predictions(str(tmp_path / "*.npz"))
    assert data.shape == (3, 2, 4)
    assert_array_equal(data.truth[:, 0, 0], [1, 2, 3])
    assert_array_equal(data.groups[2], [["2a"] * 4, ["2b"] * 4])


@pytest.mark.parametrize("shapes", [((2, 4), (3, 4)), ((2, 4), (2, 5)), ((1, 2, 4), (1, 3, 4))])
def test_maps_of_several_sizes_are_flattened(tmp_path, shapes):
    for k, shape in enumerate(shapes):
        maps = np.full(shape, 1.0 + k)
        np.savez(tmp_path / f"{k}.npz", target=maps, mean=maps, std=maps)
    data = read_predictions(str(tmp_path / "*.npz"))
    assert data.shape == (sum(np.prod(shape) for shape in shapes),)


def test_stacks_grow_along_the_first_axis(tmp_path):
    for k in range(2):
        np.savez(
            tmp_path / f"{k}.npz",
            target=np.ones((k + 1, 2, 4)),
            mean=np.ones((k + 1, 2, 4)),
            var=np.ones((k + 1, 2, 4)),
        )
    assert read_predictions(str(tmp_path / "*.npz")).shape == (3, 2, 4)


def test_ensembles_in_many_files(tmp_path):
    samples = np.random.default_rng(0).normal(size=(3, 5, 2, 4))
    for k in range(3):
        np.savez(tmp_path / f"{k}.npz", target=np.ones((2, 4)), samples=samples[k])
    data = read_predictions(str(tmp_path / "*.npz"))
    assert_allclose(data.std, np.sqrt(1.2 * samples.var(axis=1, ddof=1)), rtol=1e-13)
    np.savez(tmp_path / "3.npz", target=np.ones((2, 4)), samples=samples[0, :4])
    with pytest.raises(FileFormatError, match="ensembles of different size"):
        read_predictions(str(tmp_path / "*.npz"))


def test_a_file_without_truth_does_not_stop_the_others(tmp_path):
    for k, target in enumerate([np.ones(3), np.full(3, NAN)]):
        np.savez(tmp_path / f"{k}.npz", target=target, mean=np.ones(3), std=np.ones(3))
    assert read_predictions(str(tmp_path / "*.npz")).counts["n_missing"] == 3


def test_files_unlike_each_other_are_refused(tmp_path):
    np.savez(tmp_path / "0.npz", target=ONE, mean=ONE, std=ONE)
    np.savez(tmp_path / "1.npz", target=ONE, mean=ONE, var=ONE)
    with pytest.raises(
        FileFormatError, match=r"1\.npz has mean, target, variance, but .*0\.npz has mean, std, target"
    ):
        read_predictions(str(tmp_path / "*.npz"))


def test_many_own_files_keep_their_choice_of_samples(tmp_path):
    for k in range(2):
        Predictions([1, 2, NAN], [1, 2, 3], [1, 1, 1], mask=[k == 0, False, False]).save(
            tmp_path / f"{k}.npz"
        )
    data = read_predictions(str(tmp_path / "*.npz"))
    assert data.n == 3
    assert_array_equal(data.valid, [False, True, False, True, True, False])


def test_own_files_with_and_without_gaps_are_alike(tmp_path):
    Predictions([1, NAN], [1, 2], [1, 1]).save(tmp_path / "0.npz")
    Predictions([3, 4], [1, 2], [1, 1]).save(tmp_path / "1.npz")
    assert_array_equal(read_predictions(str(tmp_path / "*.npz")).flat()[0], [1, 3, 4])


def test_own_file_read_by_columns_keeps_its_choice_of_samples(tmp_path):
    path = Predictions([1, 2, 3], [1, 2, 3], [1, 1, 1], mask=[True, False, False]).save(tmp_path / "p.npz")
    assert read_predictions(path, {"mean": "target"}).n == 2


def test_unequal_shapes_in_one_of_many_files(tmp_path):
    np.savez(tmp_path / "0.npz", target=np.ones((2, 3)), mean=np.ones((2, 3)), std=np.ones((2, 3)))
    np.savez(tmp_path / "1.npz", target=np.ones((2, 3)), mean=np.ones((2, 3)), std=np.ones((3, 2)))
    with pytest.raises(ShapeError, match=r"1\.npz: std has shape \(3, 2\), but target has \(2, 3\)"):
        read_predictions(str(tmp_path / "*.npz"))


def test_a_name_with_brackets_is_a_name_first(tmp_path):
    np.savez(tmp_path / "run[1].npz", target=ONE, mean=ONE, std=ONE)
    assert read_predictions(tmp_path / "run[1].npz").n == 2
