"""Columns, and files of every kind that hold them."""

import warnings

import numpy as np
import pandas as pd
import zarr

NAN = float("nan")


def npz(tmp_path, name="p.npz", **columns):
    np.savez(tmp_path / name, **columns)
    return tmp_path / name


ONE = np.array([1.0, 2.0])


def made_columns(n=50, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=n).astype(dtype)
    target[3:4] = NAN
    return {
        "target": target,
        "mean": rng.normal(size=n).astype(dtype),
        "std": rng.uniform(0.1, 1, n).astype(dtype),
    }


def write_npz(path, columns):
    np.savez(path, **columns)


def write_structured(path, columns):
    np.save(path, np.rec.fromarrays(list(columns.values()), names=list(columns)).view(np.ndarray))


def write_csv(path, columns):
    pd.DataFrame(columns).to_csv(path, index=False)


def write_tsv(path, columns):
    pd.DataFrame(columns).to_csv(path, index=False, sep="\t")


def write_parquet(path, columns):
    pd.DataFrame(columns).to_parquet(path)


def write_zarr(path, columns, zarr_format=3):
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zarr.errors.UnstableSpecificationWarning)  # text arrays in format 3
        for name, values in columns.items():
            group.create_array(name, data=values)


def write_zarr2(path, columns):
    write_zarr(path, columns, zarr_format=2)


WRITERS = {
    "p.npz": write_npz,
    "p.npy": write_structured,
    "p.csv": write_csv,
    "p.csv.gz": write_csv,
    "p.tsv": write_tsv,
    "p.parquet": write_parquet,
    "p.PQ": write_parquet,
    "p.zarr": write_zarr,
    "v2.zarr": write_zarr2,
}
