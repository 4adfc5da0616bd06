"""Tables and batches that are read piece by piece: the same report and digest as one pass in this process."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import (
    EmptyInputError,
    InputTypeError,
    InvalidValueError,
    MissingPackageError,
    SettingsError,
)
from uq_tracking.streams import engines

from .made import counted, predictions

N = 3000
COLUMNS = {"y_true": "y", "y_pred": "mu", "y_std": "sigma"}
LABELS = {"groups": "scene", "by": "region"}


def table():
    y, mean, std = predictions(n=N)
    scene = np.arange(N) // 300
    region = np.where(scene % 2, "north", "south")
    return pd.DataFrame({"y": y, "mu": mean, "sigma": std, "scene": scene, "region": region})


def whole(frame, **options):
    """One pass over the table in this process."""
    acc = uq.Accumulator(**options)
    arrays = (frame[name].to_numpy() for name in ("y", "mu", "sigma"))
    acc.update(*arrays, groups=frame["scene"].to_numpy(), by=frame["region"].to_numpy(dtype=str))
    return acc.compute()


def assert_same(report, expected):
    assert report.provenance["digest"] == expected.provenance["digest"]
    assert report.counts == expected.counts
    assert report.settings == expected.settings
    for found, wanted in ((report.scores, expected.scores), (report.intervals, expected.intervals)):
        assert found.keys() == wanted.keys()
    assert_allclose(list(report.scores.values()), [expected.scores[key] for key in report.scores], rtol=1e-11)
    for key, interval in expected.intervals.items():
        assert_allclose(report.intervals[key], interval, rtol=1e-9)
    assert report.strata.keys() == expected.strata.keys()


def cursor(frame):
    connection = sqlite3.connect(":memory:")
    frame.to_sql("forecasts", connection, index=False)
    return connection.execute("SELECT * FROM forecasts")


def dataset(frame, folder):
    frame.to_parquet(folder / "forecasts.parquet", row_group_size=700)
    return pyarrow.dataset.dataset(folder)


SOURCES = {
    "a dask DataFrame": lambda frame, _: dd.from_pandas(frame, npartitions=11),
    "a polars LazyFrame": lambda frame, _: pl.from_pandas(frame).lazy(),
    "a pyarrow dataset": dataset,
    "a reader of record batches": lambda frame, _: pa.Table.from_pandas(frame).to_reader(max_chunksize=700),
    "a cursor": lambda frame, _: cursor(frame),
    "tables one after another": lambda frame, _: (frame[k : k + 700] for k in range(0, N, 700)),
}


@pytest.mark.parametrize("source", SOURCES)
class TestTables:
    @pytest.mark.slow
    def test_score_as_one_pass_with_groups_and_strata(self, source, tmp_path):
        lazy = SOURCES[source](table(), tmp_path)
        data = uq.Predictions.from_frame(lazy, **COLUMNS, **LABELS)
        assert_same(uq.evaluate(data, alpha=0.9), whole(table(), alpha=0.9))

    def test_bad_values_are_named_or_dropped(self, source, tmp_path):
        frame = table()
        frame.loc[1000, "sigma"] = -1.0
        with pytest.raises(InvalidValueError, match="y_std has 1 negative value"):
            uq.evaluate(uq.Predictions.from_frame(SOURCES[source](frame, tmp_path), **COLUMNS))
        lazy = SOURCES[source](frame, tmp_path)
        report = uq.evaluate(uq.Predictions.from_frame(lazy, **COLUMNS, on_invalid="drop"))
        assert (report.counts["n"], report.counts["n_invalid"]) == (N - 1, 1)

    def test_pieces_without_truth_are_counted(self, source, tmp_path):
        frame = table()
        frame.loc[:1500, "y"] = np.nan
        report = uq.evaluate(uq.Predictions.from_frame(SOURCES[source](frame, tmp_path), **COLUMNS))
        assert report.counts["n_missing"] == 1501

    def test_class_probabilities(self, source, tmp_path):
        rng = np.random.default_rng(0)
        probs = rng.dirichlet(np.ones(3), N)
        frame = pd.DataFrame(probs, columns=["p_0", "p_1", "p_2"])
        frame["label"] = [int(rng.choice(3, p=row)) for row in probs]
        lazy = SOURCES[source](frame, tmp_path)
        data = uq.Predictions.from_frame(lazy, "label", probs=["p_0", "p_1", "p_2"])
        acc = uq.Accumulator()
        acc.update(frame["label"].to_numpy(), probs=probs)
        found, expected = uq.evaluate(data), acc.compute()
        assert found.provenance["digest"] == expected.provenance["digest"]
        assert_allclose(list(found.scores.values()), list(expected.scores.values()), rtol=1e-11)

    def test_other_forms(self, source, tmp_path):
        frame = table()
        frame["low"], frame["high"] = frame["mu"] - frame["sigma"], frame["mu"] + frame["sigma"]
        lazy = SOURCES[source](frame, tmp_path)
        report = uq.evaluate(uq.Predictions.from_frame(lazy, "y", interval=("low", "high", 0.68)))
        inside = frame["y"].between(frame["low"], frame["high"])
        assert_allclose(report.scores["interval_coverage"], inside.mean(), rtol=1e-12)

    def test_logs_like_an_accumulator(self, source, tmp_path):
        (tmp_path / "tables").mkdir()
        data = uq.Predictions.from_frame(SOURCES[source](table(), tmp_path / "tables"), **COLUMNS)
        report = uq.log(data, run=f"dir:{tmp_path / 'runs'}", method="engine")
        assert_same(report, counted(predictions(n=N)).compute())


@pytest.mark.parametrize("source", ["a dask DataFrame", "a polars LazyFrame", "a pyarrow dataset"])
def test_a_column_that_is_missing_is_named_before_anything_is_read(source, tmp_path):
    lazy = SOURCES[source](table(), tmp_path)
    with pytest.raises(SettingsError, match="the table has no column 'std' for y_std; it has y, mu, sigma"):
        uq.Predictions.from_frame(lazy, y_true="y", y_pred="mu", y_std="std")


@pytest.mark.parametrize("source", [name for name in SOURCES if name[0] == "a"])
def test_a_table_alone_names_the_line(source, tmp_path):
    with pytest.raises(InputTypeError, match=r"Predictions.from_frame\(table, y_true='y'"):
        uq.evaluate(SOURCES[source](table(), tmp_path))


def test_options_of_the_input_belong_to_the_constructor():
    lazy = pl.from_pandas(table()).lazy()
    with pytest.raises(SettingsError, match=r"pass mask to Predictions.from_frame instead"):
        uq.evaluate(uq.Predictions.from_frame(lazy, **COLUMNS), mask=np.zeros(N, bool))
    with pytest.raises(SettingsError, match="groups: name a column, because this table is read in pieces"):
        uq.Predictions.from_frame(lazy, **COLUMNS, groups=np.zeros(N))
    with pytest.raises(SettingsError, match="reference cannot be used with lazy arrays"):
        uq.evaluate(uq.Predictions.from_frame(lazy, **COLUMNS), reference=uq.Predictions(*predictions()))


def count(part):
    acc = uq.Accumulator(alpha=0.9)
    acc.update(*(part[name].to_numpy() for name in ("y", "mu", "sigma")))
    return acc


class TestStreams:
    def test_what_a_pool_counted_is_merged(self):
        parts = [table()[k : k + 700] for k in range(0, N, 700)]
        expected = counted(predictions(n=N), alpha=0.9).compute()
        with ThreadPoolExecutor() as pool:
            assert_same(uq.evaluate(pool.map(count, parts)), expected)
        accumulators = [count(part) for part in parts]
        assert_same(uq.evaluate(accumulators), expected)
        assert accumulators[0].n == 700

    def test_an_accumulator_is_scored_as_its_compute_does(self):
        acc = count(table())
        assert uq.evaluate(acc) == acc.compute()
        with pytest.raises(SettingsError, match="the Accumulator already has its settings; pass alpha"):
            uq.evaluate(acc, alpha=0.5)

    def test_batches_of_class_probabilities(self):
        labels, probs = np.arange(90) % 3, np.random.default_rng(0).dirichlet(np.ones(3), 90)
        parts = ((labels[k : k + 30], probs[k : k + 30]) for k in range(0, 90, 30))
        acc = uq.Accumulator()
        for k in range(0, 90, 30):
            acc.update(labels[k : k + 30], probs=probs[k : k + 30])
        assert uq.evaluate(parts) == acc.compute()

    def test_anything_to_iterate_over_is_a_stream(self):
        class Loader:
            def __iter__(self):
                return iter([predictions(n=N)])

        assert uq.evaluate(Loader()) == counted(predictions(n=N)).compute()

    def test_maps_of_batches_are_drawn(self, tmp_path):
        batches = ([column.reshape(2, 30, 50) for column in predictions(n=N)] for _ in range(2))
        uq.log(batches, run=f"dir:{tmp_path}", maps=[3])
        assert list(tmp_path.rglob("*map*3*"))

    def test_what_is_no_batch_is_refused(self):
        with pytest.raises(EmptyInputError, match="there is no batch"):
            uq.evaluate(iter([]))
        with pytest.raises(InputTypeError, match=r"a batch is of type DataFrame.*Predictions.from_frame"):
            uq.evaluate(iter([table()]))
        with pytest.raises(SettingsError, match="pass mask to the batches instead"):
            uq.evaluate(iter([predictions()]), mask=np.zeros(N, bool))


def test_a_pattern_names_the_columns_of_the_classes():
    frame = {"label": [0, 1], "p_0": [0.8, 0.4], "p_1": [0.2, 0.6]}
    assert uq.Predictions.from_frame(frame, "label", probs="p_*").n == 2
    lists = pd.DataFrame({"label": [0, 1], "p": [[0.8, 0.2], [0.4, 0.6]]})
    named = uq.Predictions.from_frame(lists, "label", probs="p", classes=["no", "yes"])
    assert uq.evaluate(named).scores == uq.evaluate([0, 1], probs=[[0.8, 0.2], [0.4, 0.6]]).scores


def test_workers_that_run_another_python_are_told_apart_from_failing_ones(monkeypatch):
    def fail(*_):
        raise RuntimeError(words)

    monkeypatch.setitem(engines.ON_WORKERS, "Spark", fail)
    monkeypatch.setattr(engines, "engine_of", lambda _: "Spark")
    data = uq.Predictions.from_frame(pl.from_pandas(table()).lazy(), **COLUMNS)
    words = "ModuleNotFoundError: No module named 'uq_tracking'"
    with pytest.raises(
        MissingPackageError, match=r"lacks uq_tracking; set PYSPARK_PYTHON to one .* here .*python"
    ):
        uq.evaluate(data)
    words = "[PYTHON_VERSION_MISMATCH] Python in worker has different version"
    with pytest.raises(MissingPackageError, match="lacks the version of this one; set PYSPARK_PYTHON"):
        uq.evaluate(data)
    words = "the disk is full"
    with pytest.raises(RuntimeError, match="the disk is full"):
        uq.evaluate(data)
