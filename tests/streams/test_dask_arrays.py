"""Dask arrays: scored chunk by chunk, on threads and on a cluster that loses a worker."""

import json
from dataclasses import replace

import dask.array as da
import distributed
import numpy as np
import pytest
import xarray
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.statistics.statistics import by_label

from .made import predictions

SHAPE = (30, 16, 24)


def data(seed=0):
    return tuple(c.reshape(SHAPE) for c in predictions(n=int(np.prod(SHAPE)), seed=seed))


def lazy(columns, chunks=(7, 16, 12)):
    return tuple(da.from_array(column, chunks=chunks) for column in columns)


def assert_same_scores(one, other, rtol=1e-12):
    assert one.counts == other.counts
    assert one.undefined == other.undefined
    assert_allclose([one.scores[key] for key in other.scores], list(other.scores.values()), rtol=rtol)


class TestEvaluate:
    @pytest.mark.parametrize("method", ["auto", "exact", "sketch"])
    def test_equals_the_report_of_the_loaded_arrays(self, method):
        y, mean, std = data()
        y[0], mask = np.nan, np.zeros(SHAPE, bool)
        mask[5] = True
        options = {"alpha": 0.9, "n_bins": 7, "std_floor": 0.2, "family": "laplace", "statistics": method}
        loaded = uq.evaluate(y, mean, std, mask=mask, **options)
        chunked = uq.evaluate(*lazy((y, mean, std)), mask=mask, **options)
        assert_same_scores(chunked, loaded, rtol=1e-9)
        assert chunked.settings == loaded.settings

    def test_auto_is_a_sketch_for_many_samples(self, monkeypatch):
        monkeypatch.setattr("uq_tracking.statistics.collecting.EXACT_LIMIT", 100)
        assert uq.evaluate(*lazy(data())).provenance["statistics"] == "sketch"
        monkeypatch.undo()
        assert uq.evaluate(*lazy(data())).provenance["statistics"] == "exact"

    def test_arrays_of_other_chunks_or_in_memory_are_cut_alike(self):
        y, mean, std = data()
        chunked = uq.evaluate(
            da.from_array(y, chunks=(7, 16, 12)),
            mean,
            da.from_array(std, chunks=(30, 4, 24)),
            statistics="sketch",
        )
        assert_same_scores(chunked, uq.evaluate(y, mean, std, statistics="sketch"), rtol=1e-9)

    def test_nothing_is_loaded_whole(self):
        largest = []

        def watch(block):
            largest.append(block.size)
            return block

        columns = [column.map_blocks(watch, meta=np.empty((0, 0, 0))) for column in lazy(data())]
        uq.evaluate(*columns, statistics="sketch")
        assert max(largest) == 7 * 16 * 12

    def test_outputs_of_one_model_are_computed_once(self):
        calls = []

        def model(block):
            calls.append(block.shape)
            return np.stack([block, np.ones_like(block)])

        y = da.from_array(data()[0], chunks=(10, 16, 24))
        both = y.map_blocks(model, chunks=((2,), *y.chunks), new_axis=0, meta=np.empty((0, 0, 0, 0)))
        uq.evaluate(y, both[0], both[1], statistics="sketch")
        assert len(calls) == 3

    def test_xarray_on_dask(self):
        unit = {"units": "m"}
        y, mean, std = (xarray.DataArray(c, dims=("t", "y", "x"), attrs=unit) for c in lazy(data()))
        assert uq.evaluate(y, mean, std).settings["unit"] == "m"
        assert_same_scores(uq.evaluate(y, mean, std), uq.evaluate(*data()), rtol=1e-9)
        with pytest.raises(uq.errors.AlignmentError, match="y_pred"):
            uq.evaluate(y, mean.rename(t="time"), std)

    def test_a_lazy_prediction_for_a_loaded_truth_is_refused(self):
        y, mean, std = data()
        with pytest.raises(InputTypeError, match="y_pred is a lazy dask array"):
            uq.evaluate(y, lazy((mean,))[0], std)


class TestLabels:
    def count(self, **labels):
        from uq_tracking.evaluation.plan import Plan
        from uq_tracking.inputs.predictions import Forecast
        from uq_tracking.settings import ScoreOptions
        from uq_tracking.streams.engines import count_dask
        from uq_tracking.tasks import REGRESSION

        plan = Plan(REGRESSION, ScoreOptions(statistics="sketch"))
        y_true, y_pred, y_std = lazy(data())
        forecast = Forecast.of(y_true, {"y_pred": y_pred, "y_std": y_std})
        return count_dask(plan, replace(forecast, options=labels))

    def test_one_per_entry_of_the_first_axis(self):
        labels = np.arange(30) // 3
        counted = self.count(groups=labels, by=da.from_array(labels % 2, chunks=11))
        assert {label: s.n for label, s in by_label(counted.group_tables).items()} == dict.fromkeys(
            range(10), 3 * 384
        )
        assert set(counted.stratum_statistics) == {0, 1}

    def test_one_per_sample(self):
        y, _, _ = data()
        counted = self.count(by=da.from_array(np.where(y > 0, "above", "below"), chunks=(30, 16, 24)))
        assert counted.stratum_statistics["above"].n == (y > 0).sum()

    def test_one_per_chunk(self):
        counted = self.count(groups="chunk")
        groups = by_label(counted.group_tables)
        assert len(groups) == 5 * 2
        assert groups["4.0.1"].n == 2 * 16 * 12

    def test_of_the_wrong_shape_are_refused(self):
        with pytest.raises(ShapeError, match=r"groups has shape \(7,\)"):
            self.count(groups=np.zeros(7))
        with pytest.raises(SettingsError, match="by is 'chunk'; pass labels"):
            self.count(by="chunk")


class TestBadInput:
    def test_bad_values_name_their_block(self):
        y, mean, std = data()
        std[8, 3, 13] = -1
        with pytest.raises(InvalidValueError, match=r"in the block starting at \(7, 0, 12\): y_std has 1"):
            uq.evaluate(*lazy((y, mean, std)))

    def test_shapes_have_to_match(self):
        y, mean, std = lazy(data())
        with pytest.raises(ShapeError, match="shapes differ"):
            uq.evaluate(y, mean[:5], std)

    def test_chunks_of_unknown_size_are_refused(self):
        y, mean, std = (column.ravel() for column in lazy(data()))
        with pytest.raises(
            ShapeError, match=r"y_true has chunks of unknown size; call y_true\.compute_chunk_sizes"
        ):
            uq.evaluate(y[y > 0], mean, std)

    def test_wrong_options_raise_before_any_work(self):
        with pytest.raises(SettingsError, match="alpha is 3"):
            uq.evaluate(*lazy(data()), alpha=3)
        with pytest.raises(SettingsError, match="choose 'auto', 'exact' or 'sketch'"):
            uq.evaluate(*lazy(data()), statistics="fast")

    def test_the_std_is_needed(self):
        with pytest.raises(SettingsError, match="y_std is missing"):
            uq.evaluate(*lazy(data())[:2])


def test_the_verb_logs_scores_and_maps(tmp_path):
    report = uq.log(
        *lazy(data()),
        run=f"dir:{tmp_path}",
        maps=[29],
        statistics="sketch",
        unit="m",
        images=np.ones((30, 16, 24, 3)),
    )
    (run,) = tmp_path.iterdir()
    assert (run / "uq_map_29.png").exists()
    assert not list(run.rglob("predictions.npz"))
    logged = json.loads((run / "uq" / "report.json").read_text())
    assert logged["scores"] == report.scores
    assert logged["settings"]["unit"] == "m"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dask")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            local_directory=str(folder),
            silence_logs=50,
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.mark.slow
def test_two_workers_of_which_one_dies_give_the_same_report(cluster, tmp_path):
    columns = data()
    expected = uq.evaluate(*columns, statistics="sketch")
    before = set(cluster.scheduler_info()["workers"])
    marker = str(tmp_path / "died")

    def fragile(block):  # the first worker that comes to this one dies over it
        import os

        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return block
        os._exit(1)

    y, mean, std = lazy(columns)
    y = da.concatenate([y[:14], y[14:].map_blocks(fragile, meta=np.empty((0, 0, 0)))])
    report = uq.evaluate(y, mean, std, statistics="sketch")
    assert (tmp_path / "died").exists()
    assert_same_scores(report, expected, rtol=1e-9)
    cluster.wait_for_workers(2, timeout=60)
    assert set(cluster.scheduler_info()["workers"]) != before  # a nanny has started another one


@pytest.mark.slow
def test_a_bad_value_on_a_worker_reaches_the_caller(cluster):
    y, mean, std = data()
    mean[20, 0, 0] = np.inf
    with pytest.raises(
        InvalidValueError, match=r"in the block starting at \(14, 0, 0\): y_pred has 1 non-finite"
    ):
        uq.evaluate(*lazy((y, mean, std)))
