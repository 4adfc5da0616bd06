"""Tables and arrays of predictions in files: npz, npy, csv, parquet and zarr."""

from uq_tracking.files.reading import FileBlocks, read_blocks, read_predictions

__all__ = ["FileBlocks", "read_blocks", "read_predictions"]
