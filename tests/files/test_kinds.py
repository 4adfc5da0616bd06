"""Files of every kind are read back equal."""

import gzip
import json
import os
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from numpy.testing import assert_allclose, assert_array_equal

from uq_tracking import Accumulator, Predictions, Report
from uq_tracking.errors import (
    FileFormatError,
    InvalidValueError,
    MissingPackageError,
    SettingsError,
)
from uq_tracking.files import read_blocks, read_predictions

from .made import NAN, WRITERS, made_columns


def test_every_kind_reads_back_equal(write):
    columns = made_columns()
    data = read_predictions(write(columns))
    for name, found in zip(("target", "mean", "std"), (data.truth, data.mean, data.std), strict=True):
        assert_array_equal(found, columns[name])
    assert data.counts["n_missing"] == 1


def test_float32_stays_float32_where_the_file_has_types(write):
    path = write(made_columns(dtype=np.float32))
    data = read_predictions(str(path))
    assert data.std.dtype == (np.float64 if ".csv" in path.name or ".tsv" in path.name else np.float32)


def test_only_the_columns_needed_are_read(write):
    data = read_predictions(write({**made_columns(), "note": np.array(["text"] * 50)}))
    assert data.n == 49


def test_labels_and_mask(write):
    columns = made_columns()
    columns |= {"groups": np.arange(50) // 10, "land": np.arange(50) % 2, "out": np.arange(50) > 45}
    data = read_predictions(write(columns), {"mask": "out", "by": "land"})
    assert data.counts["n_masked"] == 4
    assert_array_equal(data.flat_labels("groups"), np.delete(np.arange(46), 3) // 10)
    assert_array_equal(data.flat_labels("by"), np.delete(np.arange(46), 3) % 2)


def test_text_labels(write):
    columns = {**made_columns(), "group": np.array(["a", "b"] * 25)}
    assert_array_equal(read_predictions(write(columns)).label_codes("groups")[0], ["a", "b"])


def test_damaged_file(write):
    path = write(made_columns())
    if path.is_dir():
        next(path.glob("*/*.json") if (path / "zarr.json").exists() else path.glob("*/.zarray")).write_text(
            "{"
        )
    else:
        path.write_bytes(path.read_bytes()[:40] if path.suffix not in (".csv", ".tsv") else b"\xff\xfe\x00")
    with pytest.raises((FileFormatError, SettingsError), match=path.name):
        read_predictions(path)


def test_whole_numbers_that_float64_cannot_hold_are_refused(tmp_path):
    """Beside a missing value, every library reads them as floats."""
    rows = [[1_700_000_000_000_000_123, 5, 20.0], [None, 6, 21.0]]
    table = pd.DataFrame(rows, columns=["target", "mean", "std"])
    table["target"] = pd.array([row[0] for row in rows], dtype="Int64")
    table.to_csv(tmp_path / "p.csv", index=False)
    table.to_parquet(tmp_path / "p.parquet")
    (tmp_path / "p.json").write_text(json.dumps({"columns": list(table.columns), "data": rows}))
    for path in tmp_path.iterdir():
        with pytest.raises(
            InvalidValueError, match=r"column 'target' has 1 value .* subtract a common offset"
        ):
            read_predictions(path)


def test_plain_matrix_of_three_columns(tmp_path):
    matrix = np.stack(list(made_columns().values()), axis=1).astype(np.float32)
    np.save(tmp_path / "p.npy", matrix)
    data = read_predictions(tmp_path / "p.npy")
    assert_array_equal(data.std, matrix[:, 2])


def test_plain_matrix_of_more_columns_is_addressed_by_number(tmp_path):
    matrix = np.random.default_rng(0).uniform(1, 2, (5, 4))
    np.save(tmp_path / "p.npy", matrix)
    data = read_predictions(tmp_path / "p.npy", {"target": "3", "mean": "0", "std": "1"})
    assert_array_equal(data.truth, matrix[:, 3])
    with pytest.raises(
        SettingsError, match=r"no column looks like target, mean, std; the file has columns 0, 1, 2, 3"
    ):
        read_predictions(tmp_path / "p.npy")


def test_array_that_is_no_matrix(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros(3))
    with pytest.raises(FileFormatError, match=r"p\.npy holds an array of shape \(3,\)"):
        read_predictions(tmp_path / "p.npy")


def test_single_zarr_array(tmp_path):
    zarr.save_array(str(tmp_path / "p.zarr"), np.stack(list(made_columns().values()), axis=1))
    assert read_predictions(tmp_path / "p.zarr").n == 49


@pytest.mark.parametrize("separator", [";", "|"])
def test_other_separators(tmp_path, separator):
    pd.DataFrame(made_columns()).to_csv(tmp_path / "p.csv", index=False, sep=separator)
    assert read_predictions(tmp_path / "p.csv").n == 49


def test_gzip_is_really_compressed(tmp_path):
    with gzip.open(tmp_path / "p.csv.gz", "wt") as file:
        file.write("y_true,y_pred,y_std\n1,2,0.5\n")
    assert read_predictions(tmp_path / "p.csv.gz").n == 1


def test_csv_numbers_keep_every_digit(tmp_path):
    std = np.random.default_rng(0).uniform(size=2000) * 10.0 ** np.arange(-100, 100, 0.1)
    pd.DataFrame({"target": std, "mean": std, "std": std}).to_csv(tmp_path / "p.csv", index=False)
    assert_array_equal(read_predictions(tmp_path / "p.csv").std, std)


def test_nulls_of_parquet_are_missing_truth(tmp_path):
    table = pd.DataFrame(
        {"target": pd.array([1, None], dtype="Int64"), "mean": [1.0, 2.0], "std": [1.0, 1.0]}
    )
    table.to_parquet(tmp_path / "p.parquet")
    assert read_predictions(tmp_path / "p.parquet").counts["n_missing"] == 1


def test_folder_of_parquet_parts(tmp_path):
    (tmp_path / "p.parquet").mkdir()
    for k in range(2):
        pd.DataFrame(made_columns(seed=k)).to_parquet(tmp_path / "p.parquet" / f"part{k}.parquet")
    assert read_predictions(tmp_path / "p.parquet").n == 98


def test_parquet_column_of_lists_as_samples(tmp_path):
    samples = np.random.default_rng(0).normal(size=(6, 4))
    table = pd.DataFrame({"target": np.zeros(6), "samples": list(samples)})
    table.to_parquet(tmp_path / "p.parquet")
    expected = np.sqrt(1.25 * samples.var(axis=1, ddof=1))
    assert_allclose(read_predictions(tmp_path / "p.parquet").std, expected, rtol=1e-13)


def test_categories_of_parquet_as_labels(tmp_path):
    table = pd.DataFrame({**made_columns(4), "groups": pd.Categorical(list("abab"))})
    table.to_parquet(tmp_path / "p.parquet")
    assert_array_equal(read_predictions(tmp_path / "p.parquet").groups, list("abab"))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_packed_zarr_of_xarray_is_decoded(tmp_path, zarr_format):
    """Stored as int16 with a scale and a fill value: read raw, the truth would be ten times too large, and -9999."""
    dataset = xr.Dataset(
        {
            "target": ("y", [0.5, NAN, 1.5], {"units": "m"}),
            "mean": ("y", [0.5, 1.0, 1.5]),
            "std": ("y", [0.1, 0.1, 0.1]),
        },
        coords={"y": [10, 20, 30]},
    )
    dataset["target"].encoding = {"dtype": "int16", "scale_factor": 0.1, "_FillValue": -9999}
    dataset.to_zarr(tmp_path / "p.zarr", zarr_format=zarr_format, consolidated=False)
    data = read_predictions(tmp_path / "p.zarr")
    assert_allclose(data.truth, [0.5, NAN, 1.5], rtol=1e-15)
    assert data.counts["n_missing"] == 1
    assert data.unit == "m"


def test_maps_keep_their_shape(tmp_path):
    maps = np.random.default_rng(0).uniform(1, 2, (3, 4, 5)).astype(np.float32)
    np.savez(tmp_path / "p.npz", target=maps[0], mean=maps[1], std=maps[2])
    assert read_predictions(tmp_path / "p.npz").shape == (4, 5)


def test_unknown_kind(tmp_path):
    (tmp_path / "p.nc").write_text("")
    with pytest.raises(
        FileFormatError, match=r"p\.nc is not a supported kind of file \(\.npz, \.npy, .*\.zarr\)"
    ):
        read_predictions(tmp_path / "p.nc")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.npz"):
        read_predictions(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*\*\.csv"):
        read_predictions(str(tmp_path / "*.csv"))


@pytest.mark.parametrize(
    ("name", "module"), [("p.csv", "pandas"), ("p.parquet", "pyarrow.dataset"), ("p.zarr", "zarr")]
)
def test_missing_package_says_how_to_install_it(tmp_path, monkeypatch, name, module):
    WRITERS[name](tmp_path / name, made_columns())
    monkeypatch.setitem(sys.modules, module, None)
    expected = rf'{module.split(".")[0]}, which is not installed: pip install "uq-tracking\[files\]"'
    with pytest.raises(MissingPackageError, match=expected):
        read_predictions(tmp_path / name)


def test_zarr_of_xarray_without_xarray_says_so(tmp_path, monkeypatch):
    xr.Dataset({"target": ("y", [1.0]), "mean": ("y", [1.0]), "std": ("y", [1.0])}).to_zarr(
        tmp_path / "p.zarr", zarr_format=2
    )
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingPackageError, match="pip install xarray"):
        read_predictions(tmp_path / "p.zarr")


def test_packed_zarr_of_xarray_is_streamed(tmp_path, monkeypatch):
    monkeypatch.setattr("uq_tracking.files.reading.BLOCK_SAMPLES", 2)
    names = ("target", "mean", "std")
    dataset = xr.Dataset({name: ("y", [0.5, 1.0, 1.5], {"units": "m"}) for name in names})
    dataset["target"].encoding = {"dtype": "int16", "scale_factor": 0.1, "_FillValue": -9999}
    dataset.to_zarr(tmp_path / "p.zarr", zarr_format=3, consolidated=False)
    found = read_blocks(tmp_path / "p.zarr")
    assert found.total == 3
    blocks = list(found.blocks)
    assert_allclose(np.concatenate([block["y_true"] for block in blocks]), [0.5, 1.0, 1.5], rtol=1e-15)
    assert [block["y_true"].attrs["units"] for block in blocks] == ["m", "m"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("suffix", ["npz", "npy", "csv", "csv.gz", "parquet", "json"])
def test_a_pipe_is_no_file(tmp_path, suffix):
    """Opening one waits for ever."""
    path = tmp_path / f"pipe.{suffix}"
    os.mkfifo(path)
    with pytest.raises(FileFormatError, match="a pipe or a device"):
        read_predictions(path)
    for read in (Predictions.load, Report.from_npz, Accumulator.load):
        with pytest.raises(FileFormatError, match="not a plain file"):
            read(path)
