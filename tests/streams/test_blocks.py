"""Blocks of memory maps, zarr arrays and generators."""

import numpy as np
import pytest
import zarr

import uq_tracking as uq
from uq_tracking.errors import (
    InputTypeError,
    ShapeError,
)
from uq_tracking.streams.engines import array_blocks

from .made import batches, counted, predictions


class TestBatches:
    def test_score_like_the_whole(self):
        data = predictions(n=5000)
        report = uq.evaluate(iter(batches(data, 1000)), alpha=0.9)
        assert report == counted(data, alpha=0.9).compute()

    def test_dicts_and_predictions_are_batches(self):
        y, mean, std = predictions(n=100)
        made = [{"y_true": y, "y_pred": mean, "y_std": std}]
        assert uq.evaluate(made) == uq.evaluate([uq.Predictions(y, mean, std)])

    def test_other_things_are_not(self):
        with pytest.raises(InputTypeError, match="a batch is of type int; it must be"):
            uq.evaluate(iter([3]))

    @pytest.mark.slow
    def test_memory_maps_and_zarr_are_cut_along_the_first_axis(self, tmp_path):
        data = [column.reshape(50, 4, 10) for column in predictions(n=2000)]
        for k, column in enumerate(data):
            np.save(tmp_path / f"{k}.npy", column)
            zarr.create_array(tmp_path / f"{k}.zarr", data=column, chunks=(7, 4, 10))
        maps = [np.load(tmp_path / f"{k}.npy", mmap_mode="r") for k in range(3)]
        stores = [zarr.open_array(tmp_path / f"{k}.zarr", mode="r") for k in range(3)]
        whole = counted(data).compute()
        for arrays in (maps, stores):
            assert uq.evaluate(array_blocks(*arrays, samples=300)) == whole
        sizes = [block["y_true"].shape[0] for block in array_blocks(*stores, samples=300)]
        assert sizes == [7] * 7 + [1]

    def test_shapes_have_to_match(self):
        with pytest.raises(ShapeError, match="shapes differ"):
            list(array_blocks(np.ones(3), np.ones(4), np.ones(3)))
