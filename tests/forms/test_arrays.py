"""Other forms than mean and std on dask arrays and torch tensors: the numbers of numpy."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import torch
import xarray as xr
from numpy.testing import assert_allclose

import uq_tracking as uq
from uq_tracking.errors import InvalidValueError, SettingsError, ShapeError

RNG = np.random.default_rng(0)
N = (60, 4)
Y, CENTRE, SCALE = RNG.normal(size=N), 0.3 * RNG.normal(size=N), RNG.gamma(4, 0.25, N)
DRAWS = CENTRE + SCALE * RNG.normal(size=(9, *N))
STDS = np.stack([SCALE, 2 * SCALE, SCALE / 2])
LEVELS = [0.05, 0.5, 0.95]
QUANTILES = CENTRE[..., None] + SCALE[..., None] * np.array([-1.6, 0.0, 1.6])

FORMS = {
    "draws": ("from_samples", (Y, DRAWS), {}),
    "joint draws": ("from_samples", (Y, np.moveaxis(DRAWS, 0, 1)), {"axis": 1, "joint": True}),
    "moments": ("from_ensemble", (Y, DRAWS[:3], STDS), {}),
    "mixture": ("from_ensemble", (Y, DRAWS[:3], STDS), {"combine": "mixture"}),
    "quantiles": ("from_quantiles", (Y, QUANTILES), {"levels": LEVELS}),
    "quantiles and a point": ("from_quantiles", (Y, QUANTILES), {"levels": LEVELS, "y_pred": CENTRE}),
}


def make(form, convert=lambda array: array, **options):
    name, arrays, arguments = FORMS[form]
    arguments = {key: convert(value) if key == "y_pred" else value for key, value in arguments.items()}
    return getattr(uq.Predictions, name)(*map(convert, arrays), **arguments, **options)


def chunked(array):
    place = next(k for k in range(array.ndim) if array.shape[k] == 60)
    return da.from_array(array, chunks=tuple(17 if k == place else -1 for k in range(array.ndim)))


def assert_same(found, expected, rtol=1e-9):
    assert found.scores.keys() == expected.scores.keys()
    assert found.undefined == expected.undefined
    assert found.counts == expected.counts
    for key, value in expected.scores.items():
        assert_allclose(found.scores[key], value, rtol=rtol, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("form", FORMS)
class TestEveryForm:
    @pytest.mark.slow
    def test_dask_chunk_by_chunk(self, form):
        options = {"groups": np.arange(60) // 10, "mask": Y > 2, "weights": 1 + np.arange(60) % 3}
        whole, lazy = uq.evaluate(make(form, **options)), uq.evaluate(make(form, chunked, **options))
        assert_same(lazy, whole)
        assert lazy.settings.get("distribution") == whole.settings.get("distribution")
        assert lazy.intervals.keys() == whole.intervals.keys()

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_torch_tensors(self, form, dtype):
        def tensor(array):
            return torch.tensor(array, dtype=dtype, requires_grad=True)

        numpy = {torch.float64: np.float64, torch.float32: np.float32}[dtype]
        assert_same(
            uq.evaluate(make(form, tensor)), uq.evaluate(make(form, lambda a: a.astype(numpy))), rtol=0
        )


def test_lazy_forms_are_logged(tmp_path):
    report = uq.log(make("draws", chunked), run=f"dir:{tmp_path}", figures=False)
    assert_same(report, uq.evaluate(make("draws")))


@pytest.mark.slow
def test_lists_of_lazy_members_and_labelled_arrays():
    lazy = uq.Predictions.from_samples(chunked(Y), [chunked(draw) for draw in DRAWS], by=["a", "b", "c", "d"])
    whole = uq.evaluate(make("draws", by=["a", "b", "c", "d"]))
    assert_same(uq.evaluate(lazy), whole)
    for label, row in uq.evaluate(lazy).strata.items():
        assert_allclose(row.scores["rmse"], whole.strata[label].scores["rmse"])
    labelled = xr.DataArray(chunked(Y), dims=("time", "lead"))
    assert_same(uq.evaluate(uq.Predictions.from_samples(labelled, chunked(DRAWS))), whole)


def test_a_chunk_without_truth_and_a_bad_one():
    y = Y.copy()
    y[:17] = np.nan
    lazy = uq.evaluate(uq.Predictions.from_samples(chunked(y), chunked(DRAWS)))
    assert_same(lazy, uq.evaluate(uq.Predictions.from_samples(y, DRAWS)))
    q = QUANTILES.copy()
    q[40, 2] = np.nan
    with pytest.raises(InvalidValueError, match=r"in the block starting at \(34, 0\)"):
        uq.evaluate(uq.Predictions.from_quantiles(chunked(Y), chunked(q), LEVELS))
    dropped = uq.Predictions.from_quantiles(chunked(Y), chunked(q), LEVELS, on_invalid="drop")
    assert uq.evaluate(dropped).counts["n_invalid"] == 1


def test_what_cannot_be_read_is_named():
    with pytest.raises(ShapeError, match=r"draws has shape \(9, 60, 4\), but y_true has .*: each draw must"):
        uq.evaluate(uq.Predictions.from_samples(chunked(Y), chunked(DRAWS), axis=-1))
    with pytest.raises(SettingsError, match=r"pass groups to Predictions\.from_samples"):
        uq.evaluate(make("draws", chunked), groups=np.arange(60))
    with pytest.raises(SettingsError, match=r"pass y_pred, y_std to Predictions\.from_samples"):
        uq.evaluate(make("draws", chunked), chunked(Y), chunked(Y))
    with pytest.raises(SettingsError, match="load them into memory"):
        uq.evaluate(make("draws", chunked), curves="by_members")
