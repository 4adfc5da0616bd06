"""Spark and Ray, on this machine: the same report and digest as one pass in this process."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, InvalidValueError, SettingsError

pytestmark = [
    pytest.mark.engines,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets and processes that the engines keep
]

N = 20_000
COLUMNS = {"y_true": "y", "y_pred": "mu", "y_std": "sigma"}
LABELS = {"groups": "scene", "by": "region"}


def table():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=N), rng.gamma(2, 1, N) + 0.01
    scene = np.arange(N) // 1000
    return pd.DataFrame(
        {
            "y": mean + std * rng.normal(size=N),
            "mu": mean,
            "sigma": std,
            "scene": scene,
            "region": np.where(scene % 2, "north", "south"),
            "unused": "x" * 20,
        }
    )


def whole(frame, **options):
    acc = uq.Accumulator(**options)
    arrays = (frame[name].to_numpy() for name in ("y", "mu", "sigma"))
    acc.update(*arrays, groups=frame["scene"].to_numpy(), by=frame["region"].to_numpy(dtype=str))
    return acc.compute()


def assert_same(report, expected):
    assert report.provenance["digest"] == expected.provenance["digest"]
    assert report.counts == expected.counts
    assert report.settings == expected.settings
    assert report.scores.keys() == expected.scores.keys()
    for key, value in expected.scores.items():
        assert_allclose(report.scores[key], value, rtol=1e-11, atol=1e-12, err_msg=key)
    assert report.intervals.keys() == expected.intervals.keys()
    for key, interval in expected.intervals.items():
        assert_allclose(report.intervals[key], interval, rtol=1e-9, err_msg=key)
    assert report.strata.keys() == expected.strata.keys()


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()
    del os.environ["PYSPARK_PYTHON"]


@pytest.fixture(scope="module")
def ray():
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.fixture(params=["spark", "ray"])
def held(request):
    """Hand a table to the engine, in several pieces."""
    engine = request.getfixturevalue(request.param)
    if request.param == "spark":
        return lambda frame: engine.createDataFrame(frame).repartition(5)
    return lambda frame: engine.data.from_pandas(frame).repartition(5)


def test_scores_as_one_pass_with_groups_and_strata(held):
    data = uq.Predictions.from_frame(held(table()), **COLUMNS, **LABELS)
    assert_same(uq.evaluate(data, alpha=0.9), whole(table(), alpha=0.9))


def test_logs_the_same(held, tmp_path):
    data = uq.Predictions.from_frame(held(table()), **COLUMNS, **LABELS)
    assert_same(uq.log(data, run=f"dir:{tmp_path}"), whole(table()))


def test_pieces_without_truth_are_counted(held):
    frame = table()
    frame.loc[:9000, "y"] = np.nan
    report = uq.evaluate(uq.Predictions.from_frame(held(frame), **COLUMNS))
    assert report.counts["n_missing"] == 9001


def test_bad_values_raise_the_error_of_one_machine(held):
    frame = table()
    frame.loc[1000, "sigma"] = -1.0
    with pytest.raises(InvalidValueError, match="in one piece of the table: y_std has 1 negative value"):
        uq.evaluate(uq.Predictions.from_frame(held(frame), **COLUMNS))
    report = uq.evaluate(uq.Predictions.from_frame(held(frame), **COLUMNS, on_invalid="drop"))
    assert report.counts["n_invalid"] == 1


def test_class_probabilities_in_columns_and_in_a_column_of_lists(held):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), N)
    frame = pd.DataFrame(probs, columns=["p_0", "p_1", "p_2"])
    frame["label"] = rng.integers(0, 3, N)
    frame["probs"] = list(probs)
    acc = uq.Accumulator()
    acc.update(frame["label"].to_numpy(), probs=probs)
    for named in ("p_*", "probs"):
        found = uq.evaluate(uq.Predictions.from_frame(held(frame), "label", probs=named))
        assert found.provenance["digest"] == acc.compute().provenance["digest"]
        assert_allclose(found.scores["brier"], acc.compute().scores["brier"], rtol=1e-11)


def test_a_table_alone_names_the_line(held):
    frame = held(table())
    with pytest.raises(InputTypeError, match=r"is a table of \w+; .* Predictions.from_frame\(table"):
        uq.evaluate(frame)
    with pytest.raises(SettingsError, match="the table has no column 'std' for y_std"):
        uq.Predictions.from_frame(frame, "y", "mu", "std")


def test_a_column_of_spark_names_the_line(spark):
    frame = spark.createDataFrame(table())
    with pytest.raises(InputTypeError, match=r"Predictions.from_frame\(table, y_true='y'"):
        uq.evaluate(frame["y"], frame["mu"], frame["sigma"])


def test_the_lines_of_the_page_run(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = table()
    frame.to_parquet("forecasts.parquet")
    paths = [f"part_{k}.npz" for k in range(2)]
    for path in paths:
        np.savez(path, y=frame["y"], mean=frame["mu"], std=frame["sigma"])
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    reports = []
    for block in blocks:
        script = f"import numpy as np\nimport uq_tracking as uq\npaths = {paths}\n{block}"
        names = {"__name__": "page"}
        here = script.replace("ProcessPool", "ThreadPool").replace(
            "forecasts.parquet", str(tmp_path / "forecasts.parquet")
        )
        exec(compile(here, "scale.md", "exec"), names)
        reports.append(names["report"])
    assert [report.counts["n"] for report in reports] == [N, 2 * N]
