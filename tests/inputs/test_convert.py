"""Arrays of every library arrive as numpy arrays of real numbers, or are refused with a cure."""

import array
import subprocess
import sys
from collections import UserList, deque
from decimal import Decimal

import dask.array
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
import xarray as xr
from numpy.testing import assert_array_equal

from uq_tracking.errors import InputTypeError, InvalidValueError
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.convert import read_floats, read_mask

VALUES = [0.5, 1.25, 2.0, -3.0]


def _floats(value):
    return read_floats(value, "y_true").values


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (VALUES, np.float64),
        (tuple(VALUES), np.float64),
        (np.array(VALUES), np.float64),
        (np.array(VALUES, np.float32), np.float32),
        (np.array(VALUES, np.float16), np.float32),
        (np.array(VALUES, np.longdouble), np.float64),
        (np.array(VALUES, ">f4"), np.float32),
        (np.array(VALUES, ">f8"), np.float64),
        (array.array("d", VALUES), np.float64),
        (memoryview(np.array(VALUES)), np.float64),
        (np.array([VALUES]).view(np.matrix), np.float64),  # its constructor warns
        (torch.tensor(VALUES), np.float32),
        (torch.tensor(VALUES, dtype=torch.float64), np.float64),
        (torch.tensor(VALUES, dtype=torch.float16), np.float32),
        (torch.tensor(VALUES, dtype=torch.bfloat16), np.float32),
        (torch.tensor(VALUES, requires_grad=True), np.float32),
        (torch.tensor(VALUES, requires_grad=True) * 1, np.float32),
        (torch.nn.Parameter(torch.tensor(VALUES)), np.float32),
        (-torch.tensor(VALUES).neg(), np.float32),
        ([torch.tensor(v, requires_grad=True) for v in VALUES], np.float32),
        ([np.float32(v) for v in VALUES], np.float32),
        (xr.DataArray(VALUES), np.float64),
        (xr.DataArray(np.array(VALUES, np.float32), dims="place"), np.float32),
        (pd.Series(VALUES), np.float64),
        (pd.Series(VALUES, dtype="float32"), np.float32),
        (pd.Series(VALUES, dtype="Float64"), np.float64),
        (pd.Series(VALUES, dtype="Float32"), np.float32),
        (pd.Series(VALUES, dtype="double[pyarrow]"), np.float64),
        (pd.Series(VALUES, dtype="float[pyarrow]"), np.float32),
        (pd.array(VALUES, dtype="Float64"), np.float64),
        (pd.Index(VALUES), np.float64),
        (pd.Series(VALUES, dtype=pd.SparseDtype("float64")), np.float64),
        (pd.Series(VALUES).astype("category"), np.float64),
    ],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}-{getattr(value, 'dtype', '')}",
)
def test_every_library_gives_the_same_numbers(value, dtype):
    floats = _floats(value)
    assert type(floats) is np.ndarray
    assert floats.dtype == dtype
    assert floats.dtype.isnative
    assert_array_equal(floats.ravel(), VALUES)


@pytest.mark.parametrize(
    "value",
    [
        [1, 0, 3],
        np.array([1, 0, 3], np.int8),
        np.array([1, 0, 3], np.uint64),
        torch.tensor([1, 0, 3]),
        pd.Series([1, 0, 3], dtype="Int64"),
        pd.Series([1, 0, 3], dtype="int8[pyarrow]"),
        xr.DataArray([1, 0, 3]),
    ],
)
def test_integers_become_float64(value):
    floats = _floats(value)
    assert floats.dtype == np.float64
    assert_array_equal(floats, [1, 0, 3])


def test_bool_becomes_float64():
    assert_array_equal(_floats([True, False]), [1.0, 0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wrap", [np.asarray, torch.from_numpy, xr.DataArray, np.ma.MaskedArray])
def test_nothing_is_copied_that_can_be_viewed(dtype, wrap):
    data = np.arange(6, dtype=dtype).reshape(2, 3)
    assert np.shares_memory(_floats(wrap(data)), data)


def test_a_strided_view_stays_a_view():
    data = np.arange(24.0).reshape(4, 6)
    floats = _floats(data.T[::2])
    assert np.shares_memory(floats, data)
    assert floats.shape == (3, 4)


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "double[pyarrow]", "int64[pyarrow]"])
def test_missing_values_of_nullable_pandas_become_nan(dtype):
    assert_array_equal(_floats(pd.Series([1, None, 3], dtype=dtype)), [1, np.nan, 3])


def test_dataframe_of_numpy_columns():
    table = pd.DataFrame({"x": np.float32([1, 2]), "y": np.float32([3, 4])})
    floats = _floats(table)
    assert floats.dtype == np.float32
    assert_array_equal(floats, [[1, 3], [2, 4]])


def test_dataframe_with_nullable_columns():
    table = pd.DataFrame({"x": pd.array([1.0, None], dtype="Float64"), "y": [3, 4]})
    assert_array_equal(_floats(table), [[1, 3], [np.nan, 4]])


def test_dataframe_with_text_names_the_column():
    table = pd.DataFrame({"x": [1.0], "station": ["a"]})
    with pytest.raises(InputTypeError, match=r"column 'station' of y_true has dtype .*; drop it"):
        _floats(table)


def test_list_of_arrays_is_stacked_with_its_masks():
    rows = [np.ma.masked_greater([1.0, 9.0], 5), np.array([3.0, 4.0])]
    source = read_floats(rows, "y_true")
    assert_array_equal(source.values, [[1, 9], [3, 4]])
    assert_array_equal(source.left_out, [[False, True], [False, False]])


def test_nested_lists_of_tensors():
    rows = [[torch.tensor([1.0, 2.0], requires_grad=True)], [torch.tensor([3.0, 4.0])]]
    assert_array_equal(_floats(rows), [[[1, 2]], [[3, 4]]])


@pytest.mark.parametrize("kind", [torch.zeros, np.zeros])
def test_list_of_batches_of_unequal_size_is_refused(kind):
    message = r"items of y_true differ in shape: \[\(2,\), \(3,\)\]; join batches with concatenate"
    with pytest.raises(InputTypeError, match=message):
        _floats([kind(3), kind(2)])


def test_ragged_list_is_refused():
    with pytest.raises(InputTypeError, match=r"y_true \(list\) cannot be read as a numpy array"):
        _floats([[1.0], [2.0, 3.0]])


LARGE = 2**53 + 1
"""The first whole number that float64 lacks."""


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, LARGE]),
        np.array([0, 2**64 - 1], np.uint64),
        np.array([0, 2**63 - 1]),
        np.array([1, 2, 3], np.longdouble) / 3 + 1e18,
        np.array(["0", "1e400"], np.longdouble),
        np.ma.MaskedArray([LARGE, LARGE], [True, False]),
        [1, LARGE],
        [0.5, LARGE],
        [-1, 2**63 + 1],
        [np.array([0.5]), np.array([LARGE])],
        [torch.tensor([0.5], dtype=torch.float64), torch.tensor([LARGE])],
        torch.tensor([1, LARGE]),
        xr.DataArray([1, LARGE]),
        pd.Series([1, LARGE]),
        pd.Series([None, LARGE], dtype="Int64"),
        pd.Series([None, LARGE], dtype="int64[pyarrow]"),
        pd.DataFrame({"x": [0.5], "y": [LARGE]}),
        pd.DataFrame({"x": pd.array([None], dtype="Int64"), "y": [LARGE]}),
        pa.array([None, LARGE]),
        pa.chunked_array([[None, LARGE]]),
        pl.Series([None, LARGE]),
        pl.DataFrame({"x": [0.5], "y": [LARGE]}),
    ],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}-{getattr(value, 'dtype', '')}",
)
def test_numbers_that_float64_cannot_hold_are_refused(value):
    message = (
        r"y_true\S* has \d+ values? that 64-bit floating point cannot hold.*subtract a common offset first"
    )
    with pytest.raises(InvalidValueError, match=message):
        _floats(value)


@pytest.mark.parametrize(
    "value",
    [
        np.array([-(2**63), 2**62]),
        np.array([2**63], np.uint64),
        np.array([np.nan, np.inf, 1e300], np.longdouble),
        np.ma.MaskedArray([LARGE, 1], [True, False]),
        [1e300, -1.0],
        pl.Series([1e300, None]),
    ],
)
def test_large_numbers_that_float64_holds_are_read(value):
    assert_array_equal(_floats(value), np.ma.getdata(value).astype(np.float64))


@pytest.mark.parametrize("error", [OSError("disk"), KeyError("x"), MemoryError()])
@pytest.mark.parametrize("name", ["y_true", "y_pred", "y_std", "mask", "weights", "groups", "by"])
def test_an_array_that_cannot_be_loaded_is_named(name, error):
    class Unread:
        def __array__(self, dtype=None, copy=None):
            raise error

    given = {"y_true": VALUES, "y_pred": VALUES, "y_std": [1.0] * 4, name: Unread()}
    with pytest.raises(
        InputTypeError, match=rf"^{name} .* cannot be read .*: {type(error).__name__}"
    ) as found:
        Predictions(**given)
    assert found.value.__cause__ is error


class OnlyGet:
    """Like a CuPy array: on another device, with get() as the way to the host."""

    __cuda_array_interface__ = {"version": 3}  # noqa: RUF012

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def get(self):
        return np.float32(VALUES)


def test_device_array_with_get():
    assert_array_equal(_floats(OnlyGet()), VALUES)


class OnlyArray:
    """Any other library's array."""

    def __array__(self, dtype=None, copy=None):
        return np.float32(VALUES)


def test_anything_with_array_protocol():
    assert _floats(OnlyArray()).dtype == np.float32


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"y_true is None"),
        (np.array([1 + 2j]), r"y_true has dtype complex128, not real numbers; pass the real part"),
        (torch.tensor([1 + 2j]), r"complex64, not real numbers"),
        (np.array([1.0, None]), r"object, not real numbers; .*float\('nan'\) for missing values"),
        ([1.0, None], r"object, not real numbers"),
        ([Decimal("1.5")], r"object, not real numbers; convert it with \.astype\(float\)"),
        (["1.5"], r"not real numbers; convert the text"),
        ([b"1.5"], r"not real numbers; convert the text"),
        ("predictions.csv", r"not real numbers"),
        (pd.Series(["1.5"]), r"not real numbers; convert"),
        (np.array(["2020-01-01"], "M8[D]"), r"datetime64\[D\], not real numbers; dates"),
        (np.array([3], "m8[s]"), r"timedelta64\[s\], not real numbers; divide by a unit"),
        (np.zeros(2, [("mean", "f4"), ("std", "f4")]), r"not real numbers; pick one field"),
        ({"mean": [1.0]}, r"y_true is a dict, not an array"),
        ({1.0, 2.0}, r"y_true is a set, not an array"),
        ((v for v in VALUES), r"y_true is a generator, not an array"),
        (dask.array.zeros(3), r"y_true is a lazy dask array; load it with \.compute\(\)"),
        (xr.DataArray(dask.array.zeros(3)), r"lazy dask array"),
        (xr.Dataset({"mean": ("x", [1.0])}), r"xarray\.Dataset; pick one variable"),
        (torch.zeros(3, device="meta"), r"torch\.Tensor\) cannot be read"),
        (torch.zeros(3).to_sparse(), r"torch\.Tensor\) cannot be read"),
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(value, message):
    with pytest.raises(InputTypeError, match=message):
        _floats(value)


def test_what_numpy_would_read_item_by_item_is_refused_unread():
    """As a Darts ``TimeSeries``, which has no array protocol and logs an error for every item it cannot give."""
    read = []

    class Series:
        def __len__(self):
            return 3

        def __getitem__(self, place):
            read.append(place)
            raise IndexError(place)

        def values(self):
            raise AssertionError

    message = r"y_true is a \w+.Series, not an array; .* y_true\.values\(\) of a Darts series"
    with pytest.raises(InputTypeError, match=message):
        _floats(Series())
    assert read == []


@pytest.mark.parametrize("kind", [deque, UserList, lambda values: range(len(values))])
def test_sequences_of_the_standard_library_are_read(kind):
    assert len(_floats(kind(VALUES))) == 4


def test_refusals_name_the_argument():
    with pytest.raises(InputTypeError, match="y_std has dtype"):
        Predictions([1.0], [1.0], ["a"])


def test_input_type_error_is_a_type_error_too():
    with pytest.raises(TypeError, match="y_pred is None"):
        Predictions([1.0], None, [1.0])


@pytest.mark.parametrize(
    "mask",
    [
        [True, False],
        np.array([True, False]),
        torch.tensor([True, False]),
        xr.DataArray([True, False]),
        pd.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
        pd.Series([True, False], dtype="bool[pyarrow]"),
    ],
)
def test_masks_of_every_library(mask):
    source = read_mask(mask, "mask")
    assert source.values.dtype == bool
    assert_array_equal(source.values, [True, False])


@pytest.mark.parametrize("mask", [[1, 0], [1.0, 0.0], pd.Series([True, None], dtype="boolean")])
def test_mask_that_is_not_bool_is_refused(mask):
    with pytest.raises(InputTypeError, match=r"mask has dtype .*, not bool; .*mask != 0"):
        read_mask(mask, "mask")


def test_input_is_never_modified():
    target, mean = np.array([1.0, np.nan, 3.0]), np.array([1.0, 2.0, np.inf])
    std = np.array([0.0, -1.0, 0.5])
    before = [a.copy() for a in (target, mean, std)]
    data = Predictions(target, mean, std, on_invalid="drop", std_floor=0.1)
    for now, was in zip((target, mean, std), before, strict=True):
        assert_array_equal(now, was)
        assert now.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        data.std[0] = 1.0


def test_no_array_library_is_imported():
    code = (
        "import sys; from uq_tracking.inputs import Predictions; "
        "Predictions([1.0, 2.0], [1.0, 2.5], [1.0, 1.0]); "
        "heavy = {'torch', 'pandas', 'xarray', 'dask', 'scipy', 'matplotlib', 'mlflow', 'wandb'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
