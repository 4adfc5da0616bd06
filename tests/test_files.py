"""Predictions in files of every kind: read back equal, columns found or asked for, nothing unpickled."""

import gzip
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from numpy.testing import assert_allclose, assert_array_equal

from uq_tracking.errors import (
    FileFormatError,
    InvalidValueError,
    MissingPackageError,
    SettingsError,
    ShapeError,
)
from uq_tracking.files import read_predictions
from uq_tracking.inputs import Predictions

NAN = float("nan")


def _columns(n=50, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=n).astype(dtype)
    target[3:4] = NAN
    return {
        "target": target,
        "mean": rng.normal(size=n).astype(dtype),
        "std": rng.uniform(0.1, 1, n).astype(dtype),
    }


def _write_npz(path, columns):
    np.savez(path, **columns)


def _write_structured(path, columns):
    np.save(path, np.rec.fromarrays(list(columns.values()), names=list(columns)).view(np.ndarray))


def _write_csv(path, columns):
    pd.DataFrame(columns).to_csv(path, index=False)


def _write_tsv(path, columns):
    pd.DataFrame(columns).to_csv(path, index=False, sep="\t")


def _write_parquet(path, columns):
    pd.DataFrame(columns).to_parquet(path)


def _write_zarr(path, columns, zarr_format=3):
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zarr.errors.UnstableSpecificationWarning)  # text arrays in format 3
        for name, values in columns.items():
            group.create_array(name, data=values)


def _write_zarr2(path, columns):
    _write_zarr(path, columns, zarr_format=2)


WRITERS = {
    "p.npz": _write_npz,
    "p.npy": _write_structured,
    "p.csv": _write_csv,
    "p.csv.gz": _write_csv,
    "p.tsv": _write_tsv,
    "p.parquet": _write_parquet,
    "p.PQ": _write_parquet,
    "p.zarr": _write_zarr,
    "v2.zarr": _write_zarr2,
}


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Writes columns as one kind of file and returns its path."""

    def write(columns, name=request.param):
        WRITERS[request.param](tmp_path / name, columns)
        return tmp_path / name

    return write


# --- kinds of files -----------------------------------------------------------------------------------------


def test_every_kind_reads_back_equal(write):
    columns = _columns()
    data = read_predictions(write(columns))
    for name in ("target", "mean", "std"):
        assert_array_equal(getattr(data, name), columns[name])
    assert data.counts["n_missing"] == 1


def test_float32_stays_float32_where_the_file_has_types(write):
    path = write(_columns(dtype=np.float32))
    data = read_predictions(str(path))
    assert data.std.dtype == (np.float64 if ".csv" in path.name or ".tsv" in path.name else np.float32)


def test_only_the_columns_needed_are_read(write):
    data = read_predictions(write({**_columns(), "note": np.array(["text"] * 50)}))
    assert data.n == 49


def test_labels_and_mask(write):
    columns = _columns()
    columns |= {"groups": np.arange(50) // 10, "land": np.arange(50) % 2, "out": np.arange(50) > 45}
    data = read_predictions(write(columns), {"mask": "out", "by": "land"})
    assert data.counts["n_masked"] == 4
    assert_array_equal(data.flat_labels("groups"), np.delete(np.arange(46), 3) // 10)
    assert_array_equal(data.flat_labels("by"), np.delete(np.arange(46), 3) % 2)


def test_text_labels(write):
    columns = {**_columns(), "group": np.array(["a", "b"] * 25)}
    assert_array_equal(read_predictions(write(columns)).label_codes("groups")[0], ["a", "b"])


def test_damaged_file(write):
    path = write(_columns())
    if path.is_dir():
        next(path.glob("*/*.json") if (path / "zarr.json").exists() else path.glob("*/.zarray")).write_text(
            "{"
        )
    else:
        path.write_bytes(path.read_bytes()[:40] if path.suffix not in (".csv", ".tsv") else b"\xff\xfe\x00")
    with pytest.raises((FileFormatError, SettingsError), match=path.name):
        read_predictions(path)


def test_plain_matrix_of_three_columns(tmp_path):
    matrix = np.stack(list(_columns().values()), axis=1).astype(np.float32)
    np.save(tmp_path / "p.npy", matrix)
    data = read_predictions(tmp_path / "p.npy")
    assert_array_equal(data.std, matrix[:, 2])


def test_plain_matrix_of_more_columns_is_addressed_by_number(tmp_path):
    matrix = np.random.default_rng(0).uniform(1, 2, (5, 4))
    np.save(tmp_path / "p.npy", matrix)
    data = read_predictions(tmp_path / "p.npy", {"target": "3", "mean": "0", "std": "1"})
    assert_array_equal(data.target, matrix[:, 3])
    with pytest.raises(
        SettingsError, match=r"no column looks like target, mean, std; the file has columns 0, 1, 2, 3"
    ):
        read_predictions(tmp_path / "p.npy")


def test_array_that_is_no_matrix(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros(3))
    with pytest.raises(FileFormatError, match=r"p\.npy holds an array of shape \(3,\)"):
        read_predictions(tmp_path / "p.npy")


def test_single_zarr_array(tmp_path):
    zarr.save_array(str(tmp_path / "p.zarr"), np.stack(list(_columns().values()), axis=1))
    assert read_predictions(tmp_path / "p.zarr").n == 49


@pytest.mark.parametrize("separator", [";", "|"])
def test_other_separators(tmp_path, separator):
    pd.DataFrame(_columns()).to_csv(tmp_path / "p.csv", index=False, sep=separator)
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
        pd.DataFrame(_columns(seed=k)).to_parquet(tmp_path / "p.parquet" / f"part{k}.parquet")
    assert read_predictions(tmp_path / "p.parquet").n == 98


def test_parquet_column_of_lists_as_samples(tmp_path):
    samples = np.random.default_rng(0).normal(size=(6, 4))
    table = pd.DataFrame({"target": np.zeros(6), "samples": list(samples)})
    table.to_parquet(tmp_path / "p.parquet")
    expected = np.sqrt(1.25 * samples.var(axis=1, ddof=1))
    assert_allclose(read_predictions(tmp_path / "p.parquet").std, expected, rtol=1e-13)


def test_categories_of_parquet_as_labels(tmp_path):
    table = pd.DataFrame({**_columns(4), "groups": pd.Categorical(list("abab"))})
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
    assert_allclose(data.target, [0.5, NAN, 1.5], rtol=1e-15)
    assert data.counts["n_missing"] == 1
    assert data.unit == "m"


def test_maps_keep_their_shape(tmp_path):
    maps = np.random.default_rng(0).uniform(1, 2, (3, 4, 5)).astype(np.float32)
    np.savez(tmp_path / "p.npz", target=maps[0], mean=maps[1], std=maps[2])
    assert read_predictions(tmp_path / "p.npz").shape == (4, 5)


def test_unknown_kind(tmp_path):
    (tmp_path / "p.nc").write_text("")
    with pytest.raises(
        FileFormatError, match=r"p\.nc is not of a kind that is read here \(\.npz, \.npy, .*\.zarr\)"
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
    WRITERS[name](tmp_path / name, _columns())
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


# --- nothing is unpickled -----------------------------------------------------------------------------------


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_pickles_in_numpy_files_are_refused(tmp_path):
    trap = np.array([Trap(str(tmp_path / "sprung"))], object)
    np.savez(tmp_path / "p.npz", target=trap, mean=[1.0], std=[1.0])
    np.save(tmp_path / "p.npy", trap, allow_pickle=True)
    for name in ("p.npz", "p.npy"):
        with pytest.raises(FileFormatError, match="cannot be read"):
            read_predictions(tmp_path / name)
    assert not (tmp_path / "sprung").exists()
    with open(tmp_path / "check.pkl", "wb") as file:
        pickle.dump(Trap(str(tmp_path / "sprung")), file)
    with open(tmp_path / "check.pkl", "rb") as file:
        pickle.load(file).close()
    assert (tmp_path / "sprung").exists()  # the trap works, so its silence above means something


@pytest.mark.parametrize("spelling", ['{"id": "pickle"}', '{"id": "\\u0070ickle"}'])
def test_pickle_codec_of_zarr_is_refused(tmp_path, spelling):
    _write_zarr2(tmp_path / "p.zarr", _columns())
    meta = tmp_path / "p.zarr" / "target" / ".zarray"
    text = meta.read_text()
    assert '"filters": null' in text
    meta.write_text(text.replace('"filters": null', f'"filters": [{spelling}]'))
    with pytest.raises(FileFormatError, match="asks for the pickle codec, which can run any code"):
        read_predictions(tmp_path / "p.zarr")


# --- roles --------------------------------------------------------------------------------------------------


def _npz(tmp_path, name="p.npz", **columns):
    np.savez(tmp_path / name, **columns)
    return tmp_path / name


ONE = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    "names",
    [
        ("y_true", "y_pred", "y_std"),
        ("label", "mu", "sigma"),
        ("Y", "Prediction", "UNCERTAINTY"),
        ("gt", "pred", "std"),
    ],
)
def test_usual_names_are_found(tmp_path, names):
    assert read_predictions(_npz(tmp_path, **dict(zip(names, (ONE, ONE, ONE), strict=True)))).n == 2


def test_coordinate_y_does_not_compete_with_a_better_name(tmp_path):
    data = read_predictions(_npz(tmp_path, x=ONE, y=ONE * 9, target=ONE, mean=ONE, std=ONE))
    assert_array_equal(data.target, ONE)


@pytest.mark.parametrize("role", ["variance", "log_variance"])
def test_variances(tmp_path, role):
    variance = np.array([0.25, 4.0])
    values = variance if role == "variance" else np.log(variance)
    data = read_predictions(_npz(tmp_path, target=ONE, mean=ONE, **{role: values}))
    assert_allclose(data.std, [0.5, 2.0], rtol=1e-14)


def test_std_wins_over_variance_when_both_are_there(tmp_path):
    assert_array_equal(read_predictions(_npz(tmp_path, target=ONE, mean=ONE, std=ONE, var=ONE * 9)).std, ONE)


def test_interval_needs_its_level(tmp_path):
    path = _npz(tmp_path, target=ONE, low=ONE - 1, high=ONE + 1)
    data = read_predictions(path, {"level": "0.9"})
    assert_array_equal(data.mean, ONE)
    assert_allclose(data.std, np.full(2, 1 / 1.6448536269514722), rtol=1e-14)
    with pytest.raises(SettingsError, match=r"add level=0\.9 to the columns"):
        read_predictions(path, {"low": "low", "high": "high"})
    with pytest.raises(SettingsError, match="is not a number"):
        read_predictions(path, {"level": "ninety"})
    own = read_predictions(
        _npz(tmp_path, target=ONE, low=ONE - 1, high=ONE + 1, mean=ONE * 5), {"level": "0.9"}
    )
    assert_array_equal(own.mean, ONE * 5)


NIXTLA = ["NHITS-lo-80", "NHITS-median", "NHITS-hi-80"]


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["q10", "q50", "q90"], None),
        (["0.1", "0.5", "0.9"], None),
        (["y_q0.1", "y_q0.5", "y_q0.9"], None),
        (["Quantile_0.10", "Quantile_0.50", "Quantile_0.90"], None),
        (NIXTLA, None),
        (NIXTLA, {"quantiles": "NHITS-*"}),
        (["a", "b", "c"], {"0.5": "b", "0.1": "a", ".9": "c"}),
    ],
)
def test_columns_of_quantiles(write, names, columns):
    q = {"target": np.arange(5.0), names[0]: np.zeros(5), names[1]: np.ones(5), names[2]: np.full(5, 3.0)}
    path = write(q)
    data = read_predictions(path, columns)
    expected = Predictions.from_quantiles(q["target"], [q[name] for name in names], [0.1, 0.5, 0.9], axis=0)
    assert data.digest() == expected.digest()
    assert data.facts == expected.facts


def test_a_point_prediction_beside_quantiles_is_kept_and_files_are_joined(tmp_path):
    for name in ("1.npz", "2.npz"):
        _npz(tmp_path, name, target=ONE, q05=ONE - 2, q95=ONE + 2, yhat=ONE * 5)
    data = read_predictions(tmp_path / "*.npz")
    assert_array_equal(data.mean, [5, 10, 5, 10])
    assert data.facts["levels"] == [0.05, 0.95]
    _npz(tmp_path, "3.npz", target=ONE, q10=ONE - 2, q90=ONE + 2, yhat=ONE * 5)
    with pytest.raises(FileFormatError, match=r"3\.npz has quantiles at other levels than .*1\.npz"):
        read_predictions(tmp_path / "*.npz")


def test_quantiles_of_two_forecasts_are_not_told_apart(tmp_path):
    columns = {f"{model}-{side}-80": ONE for model in ("A", "B") for side in ("lo", "hi")}
    path = _npz(tmp_path, target=ONE, **columns)
    with pytest.raises(SettingsError, match=r"A-hi-80.* could be quantiles, of 2 forecasts.*quantiles=A\*"):
        read_predictions(path)
    with pytest.raises(SettingsError, match="choose one"):
        read_predictions(path, {"quantiles": "A-*", "0.1": "A-lo-80"})


@pytest.mark.parametrize("axis", [0, -1])
def test_samples_along_the_first_or_last_axis(tmp_path, axis):
    samples = np.random.default_rng(0).normal(size=(5, 2))
    data = read_predictions(_npz(tmp_path, target=ONE, samples=np.moveaxis(samples, 0, axis)))
    assert_allclose(data.std, np.sqrt(1.2 * samples.var(axis=0, ddof=1)), rtol=1e-14)
    assert data.scored.form == "draws"
    assert_array_equal(data.samples, samples)


def test_square_samples_are_not_guessed(tmp_path):
    with pytest.raises(SettingsError, match=r"first or the last axis; .*Predictions\.from_samples"):
        read_predictions(_npz(tmp_path, target=ONE, samples=np.zeros((2, 2))))


def test_pattern_of_columns_as_members(tmp_path):
    table = pd.DataFrame(
        {"target": [0.0, 0.0], "mu_0": [1.0, 2.0], "mu_1": [3.0, 2.0], "s_0": 1.0, "s_1": 1.0}
    )
    table.to_csv(tmp_path / "p.csv", index=False)
    data = read_predictions(tmp_path / "p.csv", {"samples": "mu_*", "member_std": "s_*"})
    assert_allclose(data.std**2, [2.0, 1.0], rtol=1e-14)
    assert_allclose(data.epistemic, [1.0, 0.0], rtol=1e-14)


def test_missing_roles_name_the_columns_and_the_cure(tmp_path):
    path = _npz(tmp_path, depth=ONE, depth_hat=ONE, std=ONE)
    with pytest.raises(
        SettingsError,
        match=r"no column looks like target, mean; the file has columns depth, depth_hat, std; say which is which, "
        r"for example --columns target=depth,mean=depth_hat",
    ):
        read_predictions(path)
    assert read_predictions(path, {"target": "depth", "mean": "depth_hat"}).n == 2


def test_proposals_leave_out_the_numbers_of_rows_and_hold_in_a_shell(tmp_path):
    pd.DataFrame({"actual": ONE, "forecast": ONE, "my sd": ONE}).to_csv(tmp_path / "p.csv")
    with pytest.raises(SettingsError, match="for example --columns 'std=my sd'"):
        read_predictions(tmp_path / "p.csv")


def test_a_date_is_never_proposed_as_a_spread(tmp_path):
    other = {"year": ONE, "valid_time": ONE, "station": ONE, "lat": ONE}
    pd.DataFrame({**other, "actual": ONE, "forecast": ONE}).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(SettingsError, match=r"for example --columns std=\.\.\. "):
        read_predictions(tmp_path / "p.csv")


def test_two_candidates_are_not_guessed_between(tmp_path):
    with pytest.raises(SettingsError, match=r"mu and y_pred could each be the mean; .*--columns mean=mu"):
        read_predictions(_npz(tmp_path, target=ONE, mu=ONE, y_pred=ONE, std=ONE))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sigma": "std"}, r"unknown role sigma; the roles are target, mean, std"),
        ({"std": "s"}, r"has no column 's' \(for std\); it has target, mean, std, var"),
        ({"std": "std", "variance": "var"}, r"columns name std and variance; the uncertainty is stated once"),
        ({"std": "std", "level": "0.9"}, r"level belongs to low and high"),
        ({"member_std": "std"}, r"member_std belongs to samples"),
        ({"samples": "member_*"}, r"has no column 'member_\*'"),
    ],
)
def test_columns_that_make_no_sense(tmp_path, columns, message):
    with pytest.raises(SettingsError, match=message):
        read_predictions(_npz(tmp_path, target=ONE, mean=ONE, std=ONE, var=ONE), columns)


def test_column_named_mask_is_not_taken_unasked(tmp_path):
    path = _npz(tmp_path, target=ONE, mean=ONE, std=ONE, mask=np.array([True, False]))
    assert read_predictions(path).n == 2
    assert read_predictions(path, {"mask": "mask"}).n == 1


def test_errors_of_the_values_name_the_file(tmp_path):
    with pytest.raises(InvalidValueError, match=r"p\.npz: y_std has 2 negative values"):
        read_predictions(_npz(tmp_path, target=ONE, mean=ONE, std=-ONE))
    with pytest.raises(ShapeError, match=r"p\.npz: shapes differ"):
        read_predictions(_npz(tmp_path, target=ONE, mean=ONE, std=np.ones(3)))


def test_options_reach_the_predictions(tmp_path):
    path = _npz(tmp_path, target=ONE, mean=ONE, std=np.array([-1.0, 0.1]), groups=np.array([1, 2]))
    data = read_predictions(path, on_invalid="drop", std_floor=0.5, unit="m", groups=["a", "b"], columns=None)
    assert (data.n, data.unit, data.std_floor, list(data.groups)) == (1, "m", 0.5, ["a", "b"])


# --- files of Predictions.save, and many files --------------------------------------------------------------


def test_own_file_brings_everything_back(tmp_path):
    saved = Predictions.from_ensemble([1, NAN, 3], np.arange(6.0).reshape(2, 3), groups=[1, 2, 2], unit="K")
    data = read_predictions(saved.save(tmp_path / "p.npz"))
    assert data.digest() == saved.digest()
    assert data.counts == saved.counts
    assert_array_equal(data.samples, saved.samples)
    assert data.unit == "K"


def test_own_file_takes_unit_and_floor(tmp_path):
    path = Predictions([1, NAN, 3], [1, 2, 3], [0, 1, 1]).save(tmp_path / "p.npz")
    data = read_predictions(path, unit="m", std_floor=0.5, on_invalid="drop", groups=None)
    assert data.counts == {"n": 2, "n_missing": 1, "n_masked": 0, "n_invalid": 0, "n_zero_std": 1}
    assert_array_equal(data.flat()[2], [0.5, 1])
    assert data.unit == "m"
    with pytest.raises(SettingsError, match="says itself which samples count"):
        read_predictions(path, mask=[True, False, False])


def test_glob_joins_columns_in_order_of_names(write, tmp_path):
    suffix = write(_columns(1)).name.split(".", 1)[1]
    for k in range(3):
        write(_columns(10, seed=k), name=f"part{k}.{suffix}")
    data = read_predictions(str(tmp_path / f"part*.{suffix}"))
    assert data.n == 27  # each part lacks one truth
    assert_array_equal(data.mean, np.concatenate([_columns(10, seed=k)["mean"] for k in range(3)]))


def test_maps_of_one_size_become_a_stack(tmp_path):
    for k in range(3):
        maps = np.full((2, 4), 1.0 + k)
        np.savez(tmp_path / f"{k}.npz", target=maps, mean=maps, std=maps, groups=[f"{k}a", f"{k}b"])
    data = read_predictions(str(tmp_path / "*.npz"))
    assert data.shape == (3, 2, 4)
    assert_array_equal(data.target[:, 0, 0], [1, 2, 3])
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
    with pytest.raises(ShapeError, match=r"1\.npz: std has shape \(3, 2\), target has \(2, 3\)"):
        read_predictions(str(tmp_path / "*.npz"))


def test_a_name_with_brackets_is_a_name_first(tmp_path):
    np.savez(tmp_path / "run[1].npz", target=ONE, mean=ONE, std=ONE)
    assert read_predictions(tmp_path / "run[1].npz").n == 2
