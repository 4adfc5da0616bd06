"""Labelled rows that mean different places are never scored against each other."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import uq_tracking as uq
from uq_tracking.errors import AlignmentError, InputError
from uq_tracking.inputs import Predictions


def _grid(values, y, dims=("y", "x")):
    coords = {dims[0]: y, dims[1]: [0.0, 1.0]}
    return xr.DataArray(values, dims=dims, coords=coords, attrs={"units": "m"})


def test_equal_coordinates_are_accepted():
    grid = _grid(np.ones((2, 2)), [10, 20])
    data = Predictions(grid, grid + 1, grid)
    assert data.n == 4
    assert data.unit == "m"


def test_given_unit_wins():
    grid = _grid(np.ones((2, 2)), [10, 20])
    assert Predictions(grid, grid, grid, unit="km").unit == "km"
    assert Predictions(grid, in_km(grid), grid, unit="m").unit == "m"


def in_km(grid):
    return grid.assign_attrs(units="km")


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda grid: Predictions(grid, in_km(grid), grid), "y_true is in 'm' and y_pred in 'km'"),
        (lambda grid: Predictions(grid.values, grid, in_km(grid)), "y_pred is in 'm' and y_std in 'km'"),
        (lambda grid: Predictions.from_interval(grid, grid, in_km(grid), 0.9), "and high in 'km'"),
        (lambda grid: uq.evaluate(grid, grid, in_km(grid), outputs=["a", "b"]), "and y_std in 'km'"),
        (lambda grid: uq.evaluate(grid.chunk(), grid.chunk(), in_km(grid).chunk()), "and y_std in 'km'"),
        (lambda grid: uq.Accumulator().update(grid, grid, in_km(grid)), "and y_std in 'km'"),
    ],
)
def test_meters_are_not_scored_against_kilometers(made, named):
    with pytest.raises(AlignmentError, match=f"{named}.*pass unit= if"):
        made(_grid(np.ones((2, 2)), [10, 20]))


def test_a_variance_has_a_unit_of_its_own():
    grid = _grid(np.ones((2, 2)), [10, 20])
    assert Predictions.from_variance(grid, grid, grid.assign_attrs(units="m2")).unit == "m"
    uq.Accumulator(unit="m").update(grid, grid, in_km(grid))


def test_reversed_coordinates_are_refused():
    grid = _grid(np.ones((2, 2)), [10, 20])
    with pytest.raises(
        AlignmentError, match=r"y_true and y_pred have different labels along 'y'.*xarray\.align"
    ):
        Predictions(grid, grid.isel(y=slice(None, None, -1)), grid)


def test_transposed_dimensions_are_refused():
    grid = _grid(np.ones((2, 2)), [10, 20])
    with pytest.raises(AlignmentError, match=r"axis 0 is 'y' in y_true and 'x' in y_std; .*y_std\.transpose"):
        Predictions(grid, grid, grid.transpose("x", "y"))


def test_misaligned_mask_is_refused():
    grid = _grid(np.ones((2, 2)), [10, 20])
    with pytest.raises(AlignmentError, match="y_true and mask"):
        Predictions(grid, grid, grid, mask=_grid(np.zeros((2, 2), bool), [20, 10]))


def test_without_coordinates_only_names_count():
    bare = xr.DataArray(np.ones((2, 2)), dims=("y", "x"))
    grid = _grid(np.ones((2, 2)), [10, 20])
    assert Predictions(grid, bare, bare).n == 4


def test_unlabelled_arrays_match_anything():
    grid = _grid(np.ones((2, 2)), [10, 20])
    assert Predictions(np.ones((2, 2)), grid, np.ones((2, 2))).n == 4


def test_equal_pandas_index_is_accepted():
    index = [5, 3, 9]
    series = pd.Series([1.0, 2.0, 3.0], index=index)
    assert Predictions(series, series, pd.Series([1.0, 1.0, 1.0], index=index)).n == 3


def test_shuffled_pandas_index_is_refused():
    truth = pd.Series([1.0, 2.0], index=[1, 0])
    with pytest.raises(
        AlignmentError, match=r"along 'index'; align them \(y_pred\.reindex\(index=y_true\.index\)\)"
    ):
        Predictions(truth, pd.Series([1.0, 2.0]), [1.0, 1.0])


def test_columns_of_other_names_are_accepted_and_shuffled_ones_refused():
    truth = pd.DataFrame({"a": [1.0], "b": [2.0]})
    other = truth.rename(columns={"a": "a_mean", "b": "b_mean"})
    assert Predictions(truth, other, truth).n == 2
    with pytest.raises(AlignmentError, match="different labels along 'columns'"):
        Predictions(truth, truth[["b", "a"]], truth)


def test_members_of_an_ensemble_must_align_with_the_truth():
    truth = _grid(np.ones((2, 2)), [10, 20])
    members = xr.concat([truth, truth + 1], dim="member")
    assert Predictions.from_ensemble(truth, members).n == 4
    assert Predictions.from_ensemble(truth, [truth, truth + 1]).n == 4
    with pytest.raises(AlignmentError, match="y_true and means"):
        Predictions.from_ensemble(truth, members.isel(y=[1, 0]))
    with pytest.raises(AlignmentError, match=r"means\[0\] and means\[1\]"):
        Predictions.from_ensemble(truth, [truth, truth.isel(y=[1, 0])])
    moved = members.transpose("y", "x", "member")
    assert Predictions.from_ensemble(truth, moved, axis=-1).n == 4


def test_alignment_error_is_an_input_error():
    assert issubclass(AlignmentError, InputError)
