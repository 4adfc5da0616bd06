"""An accumulator is saved, resumed and pickled."""

import json
import pickle

import numpy as np
import pytest

import uq_tracking as uq
from uq_tracking.errors import (
    FileFormatError,
)
from uq_tracking.statistics.layout import BUILD_BLOCK

from .made import assert_same_arrays, counted, predictions


class TestFiles:
    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["sketch", "exact"])
    @pytest.mark.parametrize("cut", [0, 100, BUILD_BLOCK + 400])
    def test_interrupted_and_resumed_it_gives_the_same_report(self, tmp_path, method, cut):
        data = predictions(n=BUILD_BLOCK + 3000)
        path = tmp_path / "state.npz"
        first = uq.Accumulator(statistics=method)
        if cut:
            first.update(*(column[:cut] for column in data))
        first.save(path)
        resumed = uq.Accumulator.load(path)
        resumed.update(*(column[cut:] for column in data))
        assert resumed.compute() == counted(data, statistics=method).compute()

    def test_labels_and_cases_come_back(self, tmp_path):
        shape = (3, 20, 30)
        data = tuple(column.reshape(shape) for column in predictions(n=1800))
        accumulator = uq.Accumulator(alpha=0.9)
        accumulator.update(*data, groups=["a", "b", "c"], by=[1, 2, 1], images=np.ones((3, 20, 30, 3)))
        accumulator.save(tmp_path / "state")
        again = uq.Accumulator.load(tmp_path / "state")
        assert again.settings == accumulator.settings
        assert again.group_tables.labels == ("a", "b", "c")
        for label, statistics in accumulator.stratum_statistics.items():
            assert_same_arrays(again.stratum_statistics[label].to_arrays(), statistics.to_arrays())
        for number, case in accumulator.cases.items():
            np.testing.assert_array_equal(again.cases[number].arrays["target"], case.arrays["target"])
            assert again.cases[number].image.shape == (20, 30, 3)
        assert list(tmp_path.iterdir()) == [tmp_path / "state"]

    def test_pickles_in_the_compact_form(self):
        accumulator = counted(predictions(n=5000))
        data = pickle.dumps(accumulator)
        assert len(data) < 3_000_000
        assert pickle.loads(data).compute() == accumulator.compute()

    def test_a_missing_file_is_not_found(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            uq.Accumulator.load(tmp_path / "nowhere.npz")

    def test_foreign_and_damaged_files_are_named(self, tmp_path):
        foreign = tmp_path / "foreign.npz"
        np.savez(foreign, x=np.ones(3))
        with pytest.raises(FileFormatError, match=r"foreign\.npz was not written by Accumulator\.save"):
            uq.Accumulator.load(foreign)
        path = tmp_path / "state.npz"
        counted(predictions(n=10)).save(path)
        arrays = dict(np.load(path))
        np.savez(tmp_path / "cut.npz", **{k: v for k, v in arrays.items() if k != "counts"})
        with pytest.raises(FileFormatError, match=r"cut\.npz is a damaged accumulator"):
            uq.Accumulator.load(tmp_path / "cut.npz")
        about = json.loads(str(arrays["about"])) | {"version": 99}
        np.savez(tmp_path / "new.npz", **{**arrays, "about": np.asarray(json.dumps(about))})
        with pytest.raises(FileFormatError, match="format version 99"):
            uq.Accumulator.load(tmp_path / "new.npz")
