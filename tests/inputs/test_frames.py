"""Columns of tables: every library's table gives what its arrays give; a wrong name is told the right one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import uq_tracking as uq
from uq_tracking.errors import InputTypeError, SettingsError

RNG = np.random.default_rng(0)
COLUMNS = {
    "y": RNG.normal(size=60),
    "mu": RNG.normal(size=60),
    "sigma": RNG.uniform(0.5, 2, 60),
    "q10": RNG.normal(-2, 0.1, 60),
    "q50": RNG.normal(0, 0.1, 60),
    "q90": RNG.normal(2, 0.1, 60),
    "draw_0": RNG.normal(size=60),
    "draw_1": RNG.normal(size=60),
    "draw_2": RNG.normal(size=60),
    "scene": np.repeat(["a", "b", "c"], 20),
    "bad": np.arange(60) % 7 == 0,
}
Y, MU, SIGMA = (COLUMNS[name] for name in ("y", "mu", "sigma"))
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table, "dict": dict}


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param](COLUMNS)


def same(one, other):
    assert one.scores == other.scores
    assert one.undefined == other.undefined
    assert one.counts == other.counts


def test_mean_and_std(table):
    named = {"mask": "bad", "groups": "scene", "by": "scene"}
    report = uq.evaluate(uq.Predictions.from_frame(table, "y", "mu", "sigma", **named))
    plain = uq.evaluate(Y, MU, SIGMA, mask=COLUMNS["bad"], groups=COLUMNS["scene"], by=COLUMNS["scene"])
    same(report, plain)
    assert report.intervals == plain.intervals
    assert report.curves["by_group_rmse"].labels == ("a", "b", "c")
    same(
        uq.evaluate(uq.Predictions.from_frame(table, y_true="y", y_pred="mu", y_std=0.7)),
        uq.evaluate(Y, MU, 0.7),
    )


def test_quantiles_intervals_and_draws(table):
    made, q = uq.Predictions, [COLUMNS[name] for name in ("q10", "q50", "q90")]
    levels = {0.1: "q10", 0.5: "q50", 0.9: "q90"}
    same(
        uq.evaluate(uq.Predictions.from_frame(table, y_true="y", y_pred="mu", quantiles=levels)),
        uq.evaluate(made.from_quantiles(Y, q, list(levels), MU, axis=0)),
    )
    same(
        uq.evaluate(uq.Predictions.from_frame(table, y_true="y", interval=("q10", "q90", 0.8))),
        uq.evaluate(made.from_interval(Y, q[0], q[2], 0.8)),
    )
    draws = [COLUMNS[f"draw_{k}"] for k in range(3)]
    for samples in ("draw_*", ["draw_0", "draw_1", "draw_2"]):
        data = made.from_frame(table, "y", samples=samples)
        same(uq.evaluate(data), uq.evaluate(made.from_samples(Y, draws)))


def test_it_is_logged(tmp_path):
    report = uq.log(
        uq.Predictions.from_frame(pd.DataFrame(COLUMNS), "y", "mu", "sigma"), run=f"dir:{tmp_path}"
    )
    same(report, uq.evaluate(Y, MU, SIGMA))
    same(uq.log(y_true=Y, y_pred=MU, y_std=SIGMA, run=f"dir:{tmp_path}"), report)
    same(uq.evaluate(y_true=Y, y_pred=MU, y_std=SIGMA), report)


def test_nulls_of_the_truth_are_missing():
    columns = {"y": [1.0, None, 3.0], "mu": [1.0, 2.0, 2.5], "s": [0.5, 0.5, 0.5]}
    for frame in (pl.DataFrame(columns), pd.DataFrame(columns).astype("Float64"), pa.table(columns)):
        data = uq.Predictions.from_frame(frame, "y", "mu", "s")
        assert data.counts["n_missing"] == 1
        assert_array_equal(data.mean, columns["mu"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"y_true": "y", "y_pred": "mu", "y_std": "sgima"},
            r"no column 'sgima' for y_std \(did you mean 'sigma'\?",
        ),
        (
            {"y_true": "y", "quantiles": {0.1: "q01", 0.9: "q90"}},
            r"no column 'q01' for quantiles \(did you mean",
        ),
        (
            {"y_true": "y", "y_pred": "mu", "y_std": "sigma", "groups": "scenes"},
            r"for groups \(did you mean 'scene'",
        ),
        ({"y_true": "y", "samples": "drow_*"}, r"no column of the table matches 'drow_\*'"),
        ({"y_true": "y", "y_std": "sigma"}, "name its column with y_pred="),
        ({"y_true": "y", "y_pred": "mu"}, "the uncertainty is stated by no column"),
        ({"y_true": "y", "y_std": "sigma", "samples": "draw_*"}, "stated by y_std and samples"),
        ({"y_true": "y", "quantiles": "q*"}, "pass columns by level"),
        ({"y_true": "y", "interval": ("q10", "q90")}, "pass two columns and a level"),
        (
            {"y_true": Y, "y_pred": "mu", "y_std": "sigma"},
            "y_true is a ndarray; with a table, pass the name",
        ),
    ],
)
def test_what_cannot_be_read_is_named(options, message):
    with pytest.raises(SettingsError, match=message):
        uq.Predictions.from_frame(pd.DataFrame(COLUMNS), **options)


def test_names_without_a_table():
    with pytest.raises(InputTypeError, match="a ndarray has no columns; pass a table first"):
        uq.Predictions.from_frame(Y, y_true="y", y_pred="mu", y_std="sigma")
    with pytest.raises(InputTypeError, match=r"for columns of a table, pass Predictions\.from_frame"):
        uq.evaluate(Y, "mu", "sigma")
