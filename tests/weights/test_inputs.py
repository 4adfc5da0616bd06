"""Weights of every form and on every route: shapes, errors, outputs, files, streams, dask, trackers, stored runs."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import uq_tracking as uq
from uq_tracking.errors import (
    AlignmentError,
    IncompatibleStatisticsError,
    InvalidValueError,
    RecalibrationError,
    SettingsError,
    ShapeError,
)
from uq_tracking.files import read_predictions

RNG = np.random.default_rng(3)
SHAPE = (4, 10, 12)
MU, S = RNG.normal(size=SHAPE), RNG.gamma(4, 0.25, SHAPE)
Y = MU + S * RNG.normal(size=SHAPE)
Y[0, :2] = np.nan
W = RNG.gamma(1, 1, SHAPE)
LATITUDES = np.cos(np.linspace(-1.2, 1.2, 10))


def same(one, other, rtol=1e-12):
    assert one.scores.keys() == other.scores.keys()
    for key, value in one.scores.items():
        assert_allclose(other.scores[key], value, rtol=rtol, atol=1e-13, err_msg=key)


@pytest.mark.parametrize("kind", ["f2", "f4", "i2"])
def test_narrow_weights_are_taken_as_they_are(kind):
    narrow = np.ceil(W).astype(kind)
    same(uq.evaluate(Y, MU, S, weights=narrow), uq.evaluate(Y, MU, S, weights=np.ceil(W)))
    with pytest.raises(InvalidValueError, match="1 negative, non-finite or extreme number "):
        uq.evaluate(Y, MU, S, weights=np.where(np.arange(W.size).reshape(SHAPE) == 200, -narrow, narrow))


@pytest.fixture(scope="module")
def whole():
    return uq.evaluate(Y, MU, S, weights=W, statistics="sketch")


def test_weights_repeat_along_axes_that_they_lack():
    full = uq.evaluate(Y, MU, S, weights=np.broadcast_to(LATITUDES[:, None], SHAPE))
    same(full, uq.evaluate(Y, MU, S, weights=LATITUDES[None, :, None]))
    dims = ("time", "lat", "lon")
    truth = xr.DataArray(Y, dims=dims, coords={"lat": np.arange(10.0)})
    area = xr.DataArray(LATITUDES, dims=("lat",), coords={"lat": np.arange(10.0)})
    same(full, uq.evaluate(truth, MU, S, weights=area))
    with pytest.raises(AlignmentError, match="lat"):
        uq.evaluate(truth, MU, S, weights=area.assign_coords(lat=np.arange(1.0, 11.0)))
    images = np.asarray([1.0, 2.0, 3.0, 4.0])
    same(
        uq.evaluate(Y, MU, S, weights=images),
        uq.evaluate(Y, MU, S, weights=np.broadcast_to(images[:, None, None], SHAPE)),
    )


@pytest.mark.parametrize(
    ("weights", "error", "match"),
    [
        (-W, InvalidValueError, r"weights has \d+ negative"),
        (np.where(W > 2, np.inf, W), InvalidValueError, "non-finite"),
        (0 * W, InvalidValueError, "weights are all 0"),
        (W[:, :3], ShapeError, r"weights have shape \(4, 3, 12\)"),
    ],
)
def test_what_is_no_weight_is_refused(weights, error, match):
    with pytest.raises(error, match=match):
        uq.evaluate(Y, MU, S, weights=weights)


def test_weights_of_samples_without_truth_do_not_matter():
    holes = np.where(np.isnan(Y), np.nan, W)
    same(uq.evaluate(Y, MU, S, weights=W), uq.evaluate(Y, MU, S, weights=holes))


def test_outputs_have_weights_of_their_own_or_in_common():
    parts = uq.evaluate(Y, MU, S, outputs=list("abcdefghijkl"), weights=W)
    same(parts["c"], uq.evaluate(Y[..., 2], MU[..., 2], S[..., 2], weights=W[..., 2]))
    common = uq.evaluate(Y, MU, S, outputs=list("abcdefghijkl"), weights=W[..., 0])
    same(common["c"], uq.evaluate(Y[..., 2], MU[..., 2], S[..., 2], weights=W[..., 0]))
    labels = RNG.integers(0, 2, (50, 2))
    probs, w = RNG.uniform(size=(50, 2)), RNG.gamma(1, 1, 50)
    both = uq.evaluate(labels, probs=probs, outputs=["a", "b"], weights=w)
    same(both["b"], uq.evaluate(labels[:, 1], probs=probs[:, 1], weights=w))


def test_streams_count_weights(whole):
    acc = uq.Accumulator()
    for k in range(4):
        acc.update(Y[k], MU[k], S[k], weights=W[k], groups=np.full(10, k))
    same(whole, acc.compute())
    with pytest.raises(IncompatibleStatisticsError, match="weighted differs"):
        acc.update(Y[1], MU[1], S[1], groups=np.full(10, 9))


def test_streams_go_on_from_a_file(whole, tmp_path):
    first, second = uq.Accumulator(), uq.Accumulator()
    first.update(Y[:1], MU[:1], S[:1], weights=W[:1])
    first.save(tmp_path / "first.npz")
    again = uq.Accumulator.load(tmp_path / "first.npz")
    second.update(Y[1:], MU[1:], S[1:], weights=W[1:])
    same(whole, again.merge(second).compute())


def test_dask_counts_weights(whole):
    lazy = (da.from_array(a, chunks=(1, 10, 6)) for a in (Y, MU, S))
    same(whole, uq.evaluate(*lazy, weights=da.from_array(W, chunks=(2, 5, 12)), statistics="sketch"))
    lazy = (da.from_array(a, chunks=(1, 10, 6)) for a in (Y, MU, S))
    rows = uq.evaluate(*lazy, weights=LATITUDES[None, :, None], statistics="sketch")
    same(uq.evaluate(Y, MU, S, weights=LATITUDES[None, :, None], statistics="sketch"), rows)


def test_files_keep_weights(tmp_path):
    data = uq.Predictions(Y, MU, S, weights=W)
    found = uq.Predictions.load(data.save(tmp_path / "one.npz"))
    assert_array_equal(found.weights, W)
    assert found.digest() == data.digest() != uq.Predictions(Y, MU, S).digest()
    labels, probs = RNG.integers(0, 3, 20), RNG.dirichlet(np.ones(3), 20)
    classes = uq.Predictions.from_probs(labels, probs, weights=np.arange(20.0))
    again = uq.Predictions.load(classes.save(tmp_path / "classes.npz"))
    assert again.counts["n_masked"] == 1
    same(uq.evaluate(classes), uq.evaluate(again))


def test_tables_name_the_column_of_weights(tmp_path):
    table = pd.DataFrame({"y": MU.ravel() + 1, "mu": MU.ravel(), "sigma": S.ravel(), "area": W.ravel()})
    expected = uq.evaluate(*(table[name].to_numpy() for name in ("y", "mu", "sigma")), weights=W.ravel())
    same(
        expected,
        uq.evaluate(uq.Predictions.from_frame(table, y_true="y", y_pred="mu", y_std="sigma", weights="area")),
    )
    table.to_csv(tmp_path / "area.csv", index=False)
    read = read_predictions(tmp_path / "area.csv", {"weights": "area"})
    same(expected, uq.evaluate(read), rtol=1e-9)


@pytest.mark.slow
def test_stored_runs_are_scored_again_and_pooled(tmp_path):
    for k in range(2):
        uq.log(
            Y[2 * k : 2 * k + 2], MU[2 * k : 2 * k + 2], S[2 * k : 2 * k + 2], weights=W[2 * k : 2 * k + 2],
            run=f"dir:{tmp_path}", method="m", figures=False, strict=True,
        )  # fmt: skip
    pooled = uq.pool(f"dir:{tmp_path}")
    same(uq.evaluate(Y, MU, S, weights=W), pooled, rtol=1e-9)
    assert pooled.counts["n_effective"] < pooled.counts["n"]
    uq.rescore(f"dir:{tmp_path}", alpha=0.9)
    report = uq.pool(f"dir:{tmp_path}", alpha=0.9)
    same(uq.evaluate(Y, MU, S, weights=W, alpha=0.9), report, rtol=1e-9)


@pytest.mark.slow
def test_recalibrations_after_weights():
    report = uq.evaluate(Y, MU, S, weights=W, calibration=["std_scaling", "cdf_isotonic"])
    assert report.recalibration["methods"]["std_scaling"]["scores"]["rmse"] > 0
    with pytest.raises(RecalibrationError, match="weight of each new sample"):
        uq.recalibrate((Y, MU, S), "conformal", weights=W)
    with pytest.raises(SettingsError, match="weights=, logits= and ignore_label= are for arrays"):
        uq.recalibrate(report, weights=W)


def test_sets_with_and_without_weights_do_not_merge():
    weighted, plain = uq.evaluate(Y, MU, S, weights=W), uq.evaluate(Y, MU, S)
    with pytest.raises(IncompatibleStatisticsError, match="weights"):
        weighted.statistics + plain.statistics
