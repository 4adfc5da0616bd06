from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import uq_tracking as uq
from uq_tracking import plugins
from uq_tracking.errors import (
    FileFormatError,
    InvalidValueError,
    RecalibrationError,
    SettingsError,
    ShapeError,
)
from uq_tracking.recalibration import (
    CdfIsotonic,
    FittedOn,
    StdBinning,
    StdIsotonic,
    StdScaling,
)
from uq_tracking.recalibration.quantiles import Conformal

from .samples import METHODS, overconfident

OF_CLASSES = ("temperature", "bias_temperature", "logistic", "isotonic")
HERE = FittedOn(n=10, source="exact")
DOUBLE = StdScaling(factor=2.0, fitted_on=HERE)


@pytest.fixture(scope="module")
def fitted():
    data = uq.Predictions(*overconfident(bias=0.3))
    made = {method: uq.recalibrate(data, method, split="val") for method in METHODS}
    rng = np.random.default_rng(0)
    labels, logits = rng.integers(0, 3, 300), rng.normal(size=(300, 3))
    logits[np.arange(300), labels] += 1
    made["temperature"] = uq.recalibrate((labels, logits), "temperature", logits=True, split="val")
    made["bias_temperature"] = uq.recalibrate((labels, logits), "bias_temperature", logits=True, split="val")
    event, log_odds = np.tile(labels == 0, 4).astype(int), np.tile(logits[:, 0], 4)
    for method in ("logistic", "isotonic"):
        made[method] = uq.recalibrate((event, log_odds), method, logits=True, split="val")
    return made


@pytest.mark.parametrize("method", [*METHODS, *OF_CLASSES])
def test_parameters_survive_json(fitted, method, tmp_path):
    one = fitted[method]
    one.to_json(tmp_path / "fit.json")
    for source in (one.to_json(), tmp_path / "fit.json", str(tmp_path / "fit.json")):
        assert uq.Recalibration.from_json(source) == one
    assert type(one).from_json(one.to_json()) == one
    assert hash(one) == hash(type(one).from_json(one.to_json()))
    assert len(one.to_json()) < 100_000


@pytest.mark.parametrize("method", [*METHODS, *OF_CLASSES])
def test_parameters_are_frozen_and_name_themselves(fitted, method):
    one = fitted[method]
    assert one.method == method
    assert isinstance(one, plugins.recalibrators()[method])
    assert all(np.isfinite(value) for value in one.scalars().values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.fitted_on = HERE


def test_parameters_say_what_they_were_fitted_on():
    y, mu, s = overconfident()
    data = uq.Predictions(y, mu, np.where(s < 0.2, 0.0, s), std_floor=0.1)
    about = uq.recalibrate(uq.evaluate(data, statistics="sketch"), split="val").fitted_on
    assert about == FittedOn(len(y), "sketch", "val", data.digest(), 0.1)
    assert uq.recalibrate(data).fitted_on.digest == data.digest()


@pytest.mark.parametrize("method", [*METHODS, "conformal"])
def test_what_was_fitted_above_a_floor_is_applied_above_it(method):
    y, mu, s = overconfident()
    low = np.where(s < 0.2, 0.0, s)
    fitted = uq.recalibrate(uq.Predictions(y, mu, low, std_floor=0.1), method)
    raised = np.maximum(low, 0.1)
    assert_array_equal(fitted.apply(mu, low), fitted.apply(mu, raised))
    assert_array_equal(fitted.apply_std(low), fitted.apply_std(raised))
    if isinstance(fitted, Conformal):
        assert_array_equal(fitted.interval(mu, low), fitted.interval(mu, raised))
    y, mu, s = overconfident(seed=1)
    scored = [
        uq.evaluate(y, mu, std, calibration=fitted).recalibration
        for std in (np.where(s < 0.2, 0.05, s), np.maximum(np.where(s < 0.2, 0.05, s), 0.1))
    ]
    assert scored[0] == scored[1]


@pytest.mark.parametrize("method", METHODS)
def test_shapes_and_types_are_kept_and_the_input_is_not_touched(fitted, method):
    for dtype, out in ((np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64)):
        mean, std = np.arange(6, dtype=dtype).reshape(2, 3), np.arange(1, 7, dtype=dtype).reshape(2, 3)
        kept = mean.copy(), std.copy()
        new_mean, new_std = fitted[method].apply(mean, std)
        assert new_mean.shape == new_std.shape == (2, 3)
        assert new_mean.dtype == new_std.dtype == out
        assert not np.shares_memory(new_mean, mean)
        assert not np.shares_memory(new_std, std)
        assert_array_equal(mean, kept[0])
        assert_array_equal(std, kept[1])
        assert_array_equal(fitted[method].apply_std(std), new_std)
        assert np.all(new_std > 0)


@pytest.mark.parametrize("method", METHODS)
def test_any_array_library_and_missing_values(fitted, method):
    expected = fitted[method].apply([1.0, 2.0], [0.5, 1.0])
    given = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([0.5, 1.0])
    for got, want in zip(fitted[method].apply(*given), expected, strict=True):
        assert_allclose(got, want, rtol=1e-6)
    mean, std = fitted[method].apply([1.0, np.nan, 2.0], [0.5, np.nan, 1.0])
    assert_array_equal(np.isnan(mean), [False, True, False])
    assert_array_equal(np.isnan(std), [False, True, False])
    hidden = np.ma.MaskedArray([0.5, -99.0, 1.0], [False, True, False])
    assert_array_equal(fitted[method].apply_std(hidden).mask, hidden.mask)
    assert fitted[method].apply_std(0.5).shape == ()


def test_apply_refuses_what_it_cannot_mean():
    with pytest.raises(ShapeError, match=r"mean has shape \(2,\), std \(3,\); pass equal shapes"):
        DOUBLE.apply([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidValueError, match="std has 2 negative values; pass standard deviations"):
        DOUBLE.apply_std([1.0, -1.0, -2.0])
    with pytest.raises(SettingsError, match=r"outside \[0, 1\]"):
        DOUBLE.quantile([0.0], [1.0], 1.5)


def test_quantiles_of_a_scaled_gaussian_and_laplace():
    from scipy import stats

    q = [[0.025, 0.5], [0.9, 0.99]]
    expected = 3 + 8 * stats.norm.ppf(q)
    assert_allclose(DOUBLE.quantile([3.0], [4.0], q)[..., 0], expected, rtol=1e-12)
    laplace = StdScaling(factor=2.0, family="laplace", fitted_on=HERE)
    assert_allclose(laplace.quantile(3.0, 4.0, 0.9), stats.laplace.ppf(0.9, 3, 8 / np.sqrt(2)), rtol=1e-12)
    assert DOUBLE.quantile(np.zeros((2, 3)), np.ones((2, 3)), q).shape == (2, 2, 2, 3)


def test_quantiles_moments_and_std_of_the_corrected_distribution_agree():
    y, mu, s = overconfident(bias=0.5)
    y = mu + s * np.abs(y - mu) / s  # asymmetric
    one = uq.recalibrate((y, mu, s), "cdf_isotonic")
    levels = (np.arange(200_000) + 0.5) / 200_000
    draws = one.quantile([1.0], [2.0], levels)[:, 0]
    mean, std = one.apply([1.0], [2.0])
    assert_allclose(draws.mean(), mean[0], rtol=1e-4)
    assert_allclose(draws.std(), std[0], rtol=1e-3)


def test_recalibrated_predictions_keep_what_is_left_out():
    y, mu, s = overconfident(200)
    mask = np.arange(200) % 3 == 0
    s = np.where(mask, -1.0, s)
    data = uq.Predictions(y, mu, s, mask=mask, groups=np.arange(200) // 10, unit="m")
    new = DOUBLE.apply_to(data)
    assert new.n == data.n
    assert new.counts["n_masked"] == data.counts["n_masked"]
    assert new.unit == "m"
    assert_array_equal(new.flat()[2], 2 * data.flat()[2])
    assert_array_equal(new.groups, data.groups)
    assert_array_equal(DOUBLE.apply_to(uq.Predictions(y, mu, np.abs(s))).std, 2 * np.abs(s))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "pickle"}, "does not state the format"),
        ({"schema": 99}, "version 99, but this package reads up to 1; upgrade"),
        ({"schema": None}, "states no version"),
        ({"method": "voodoo"}, "knows the recalibration method 'voodoo'; known are std_scaling"),
        ({"parameters": {"factor": 2.0, "extra": 1}}, "std_scaling is damaged .*extra"),
        ({"parameters": {"factor": "two"}}, "std_scaling is damaged .*finite numbers"),
        ({"parameters": {"factor": -2.0}}, "std_scaling is damaged .*above 0"),
        ({"parameters": {"factor": 2.0, "family": "cauchy"}}, "damaged .*choose 'gaussian'"),
        ({"parameters": 3}, "std_scaling is damaged"),
        ({"fitted_on": {"color": "red"}}, "std_scaling is damaged"),
    ],
)
def test_foreign_and_damaged_files_are_named(change, message):
    text = json.dumps({**DOUBLE.to_dict(), **change})
    with pytest.raises(FileFormatError, match=message):
        uq.Recalibration.from_json(text)


def test_other_things_are_no_recalibration(tmp_path):
    (tmp_path / "broken.json").write_text("{,}", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"broken\.json is not JSON"):
        uq.Recalibration.from_json(tmp_path / "broken.json")
    with pytest.raises(FileFormatError, match="not a recalibration"):
        uq.Recalibration.from_dict([])
    with pytest.raises(FileFormatError, match="by std_scaling; read it with StdScaling"):
        CdfIsotonic.from_json(DOUBLE.to_json())


@pytest.mark.parametrize(
    "make",
    [
        lambda: StdScaling(factor=float("nan"), fitted_on=HERE),
        lambda: StdIsotonic(variance=(1.0, 0.5), observed=(1.0, 2.0), fitted_on=HERE),
        lambda: StdIsotonic(variance=(0.5, 1.0), observed=(2.0, 1.0), fitted_on=HERE),
        lambda: StdIsotonic(variance=(0.5, 1.0), observed=(2.0,), fitted_on=HERE),
        lambda: StdIsotonic(variance=(), observed=(), fitted_on=HERE),
        lambda: StdBinning(edges=(1.0,), values=(1.0,), fitted_on=HERE),
        lambda: StdBinning(edges=(1.0,), values=(1.0, 0.0), fitted_on=HERE),
        lambda: CdfIsotonic(z=(0.0, 1.0), levels=(0.1, 1.0), z_mean=0.0, z_scale=1.0, fitted_on=HERE),
        lambda: CdfIsotonic(z=(0.0, 1.0), levels=(0.0, 1.0), z_mean=0.0, z_scale=0.0, fitted_on=HERE),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make):
    with pytest.raises(RecalibrationError, match=r"must|separate"):
        make()
