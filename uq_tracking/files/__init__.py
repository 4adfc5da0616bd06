"""Tables and arrays of predictions in files: npz, npy, csv, parquet and zarr."""

from uq_tracking.files.reading import read_predictions

__all__ = ["read_predictions"]
