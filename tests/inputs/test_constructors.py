"""Moments from samples, variances, intervals and evidence, against literal formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import trapezoid

import uq_tracking as uq
from uq_tracking.errors import (
    EmptyInputError,
    InputTypeError,
    InvalidValueError,
    SettingsError,
    ShapeError,
)
from uq_tracking.inputs import Predictions

NAN, INF = float("nan"), float("inf")


def _ensemble(members=5, shape=(3, 4), dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=shape).astype(dtype)
    return (
        truth,
        rng.normal(size=(members, *shape)).astype(dtype),
        rng.uniform(0.1, 1, (members, *shape)).astype(dtype),
    )


# --- samples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ddof", [0, 1])
def test_draws(ddof):
    truth, samples, _ = _ensemble()
    data = Predictions.from_ensemble(truth, samples, ddof=ddof)
    assert_allclose(data.mean, samples.mean(axis=0), rtol=1e-14)
    assert_allclose(data.std, samples.std(axis=0, ddof=ddof), rtol=1e-14)
    assert data.form.aleatoric is None
    assert data.form.epistemic is None
    assert data.form.member_std is None
    assert np.shares_memory(data.form.samples, samples)


def test_mixture_of_members_with_their_own_std():
    truth, means, stds = _ensemble()
    data = Predictions.from_ensemble(truth, means, stds)
    assert_allclose(data.mean, means.mean(axis=0), rtol=1e-14)
    assert_allclose(data.form.aleatoric**2, (stds**2).mean(axis=0), rtol=1e-13)
    assert_allclose(data.form.epistemic**2, means.var(axis=0), rtol=1e-13)
    assert_allclose(data.std**2, data.form.aleatoric**2 + data.form.epistemic**2, rtol=1e-13)
    assert_array_equal(data.form.member_std, stds)


def test_moments_are_those_of_the_mixture_by_quadrature():
    means, stds = np.array([[-1.0], [2.0], [0.5]]), np.array([[0.5], [1.0], [2.0]])
    data = Predictions.from_ensemble([0.0], means, stds)
    grid = np.linspace(-20, 22, 200_001)
    density = stats.norm.pdf(grid, means, stds).mean(axis=0)
    mean = trapezoid(grid * density, grid)
    assert_allclose(data.mean, [mean], rtol=1e-9)
    assert_allclose(data.std**2, [trapezoid((grid - mean) ** 2 * density, grid)], rtol=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_members_along_any_axis(axis):
    truth, means, stds = _ensemble()
    moved = [np.ascontiguousarray(np.moveaxis(array, 0, axis)) for array in (means, stds)]
    data = Predictions.from_ensemble(truth, *moved, axis=axis)
    expected = Predictions.from_ensemble(truth, means, stds)
    assert data.digest() == expected.digest()
    assert_array_equal(data.form.samples, means)


def test_list_of_tensors_as_members():
    truth, means, _ = _ensemble(dtype=np.float32)
    members = [torch.tensor(member, requires_grad=True) for member in means]
    data = Predictions.from_ensemble(torch.tensor(truth), members)
    assert data.std.dtype == np.float32
    assert_allclose(data.std, means.astype(np.float64).std(axis=0), rtol=1e-6)


def test_float32_moments_are_computed_in_float64():
    """Large common offset: a float32 computation of the variance would lose every digit."""
    samples = (10_000 + np.arange(8.0).reshape(8, 1) / 1024 * np.ones(3)).astype(np.float32)
    data = Predictions.from_ensemble(np.zeros(3, np.float32), samples)
    assert_allclose(data.std, samples.astype(np.float64).std(axis=0), rtol=1e-6)


def test_many_members_and_samples_cross_block_borders():
    truth, means, stds = _ensemble(members=3, shape=(400_001,), dtype=np.float32)
    data = Predictions.from_ensemble(truth, means, stds)
    expected = np.sqrt((stds.astype(np.float64) ** 2).mean(axis=0) + means.astype(np.float64).var(axis=0))
    assert_allclose(data.std, expected, rtol=1e-6)


def test_single_member_without_std_is_refused_saying_why():
    with pytest.raises(
        SettingsError, match=r"a single member \(M = 1\), so its spread is zero.*their own stds"
    ):
        Predictions.from_ensemble([1.0, 2.0], [[1.0, 2.0]])


def test_single_member_with_std_is_that_member():
    data = Predictions.from_ensemble([1.0], [[2.0]], [[0.5]])
    assert (data.mean[0], data.std[0], data.form.epistemic[0]) == (2.0, 0.5, 0.0)


def test_no_members():
    with pytest.raises(EmptyInputError, match="means has no members"):
        Predictions.from_ensemble([1.0, 2.0], np.zeros((0, 2)))


@pytest.mark.parametrize("ddof", [-1, 5])
def test_ddof_out_of_range(ddof):
    truth, samples, _ = _ensemble()
    with pytest.raises(SettingsError, match=rf"ddof={ddof} with 5 samples"):
        Predictions.from_ensemble(truth, samples, ddof=ddof)


def test_wrong_member_axis_says_so():
    truth, samples, _ = _ensemble()
    with pytest.raises(
        ShapeError, match=r"means has shape \(4, 3, 5\), but y_true has \(3, 4\): each member"
    ):
        Predictions.from_ensemble(truth, np.zeros((4, 3, 5)))
    with pytest.raises(ShapeError, match=r"no members axis 3"):
        Predictions.from_ensemble(truth, samples, axis=3)


def test_single_number_as_truth_is_refused():
    with pytest.raises(ShapeError, match="y_true is a single number"):
        Predictions.from_ensemble(1.0, [1.0, 2.0])


def test_member_std_of_another_shape_is_refused():
    truth, means, stds = _ensemble()
    with pytest.raises(ShapeError, match=r"means has shape \(5, 3, 4\) and stds \(4, 3, 4\)"):
        Predictions.from_ensemble(truth, means, stds[1:])


@pytest.mark.parametrize("bad", [NAN, INF])
def test_bad_sample_is_named(bad):
    truth, samples, _ = _ensemble()
    samples[3, 1, 2] = bad
    with pytest.raises(
        InvalidValueError, match=r"the mean of the members has 1 non-finite value \(first at index \(1, 2\)\)"
    ):
        Predictions.from_ensemble(truth, samples)
    assert Predictions.from_ensemble(truth, samples, on_invalid="drop").counts["n_invalid"] == 1


def test_negative_member_std_is_not_squared_away():
    truth, means, stds = _ensemble()
    stds[0, 0, 1] = -0.5
    with pytest.raises(InvalidValueError, match=r"the std of the members has 1 .*\(0, 1\).*negative std"):
        Predictions.from_ensemble(truth, means, stds)


def test_sample_masked_in_one_member_is_left_out():
    truth, means, _ = _ensemble()
    masked = np.ma.MaskedArray(means, np.zeros(means.shape, bool))
    masked[2, 1, 1] = np.ma.masked
    data = Predictions.from_ensemble(truth, masked)
    assert data.counts["n_masked"] == 1
    assert not data.valid[1, 1]
    moved = Predictions.from_ensemble(truth, np.ma.MaskedArray(np.moveaxis(masked, 0, -1)), axis=-1)
    assert_array_equal(moved.valid, data.valid)


def test_samples_may_be_bad_where_truth_is_missing():
    data = Predictions.from_ensemble([1.0, NAN], [[1.0, NAN], [2.0, NAN]], axis=0)
    assert_array_equal(data.flat()[1], [1.5])
    assert_array_equal(data.form.samples[:, data.valid], [[1.0], [2.0]])


def test_options_reach_every_constructor():
    truth, samples, _ = _ensemble()
    data = Predictions.from_ensemble(
        truth, samples, mask=truth > 1, std_floor=100.0, groups=[1, 2, 3], by=["a", "b", "b"], unit="K"
    )
    assert (data.form.std_floor, data.unit, data.n) == (100.0, "K", np.count_nonzero(truth <= 1))
    assert_array_equal(data.flat()[2], np.full(data.n, 100.0))
    with pytest.raises(TypeError, match="floor"):
        Predictions.from_ensemble(truth, samples, floor=1.0)


# --- variances ----------------------------------------------------------------------------------------------

POSITIVE = arrays(np.float64, 7, elements=st.floats(1e-6, 1e6))


@settings(max_examples=50)
@given(POSITIVE)
def test_three_ways_to_say_one_std(std):
    target = np.zeros(7)
    plain = Predictions(target, target, std)
    assert_allclose(Predictions.from_variance(target, target, std**2).std, plain.std, rtol=1e-12)
    assert_allclose(Predictions.from_log_variance(target, target, np.log(std**2)).std, plain.std, rtol=1e-12)
    half = stats.norm.ppf(0.95) * std
    assert_allclose(Predictions.from_interval(target, -half, half, 0.9).std, plain.std, rtol=1e-12)


@pytest.mark.parametrize("name", ["from_variance", "from_log_variance"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_and_shape_of_variances_are_kept(name, dtype):
    values = np.full((2, 3), 0.25, dtype)
    data = getattr(Predictions, name)(values, values, values.T.copy().T)
    assert data.std.dtype == dtype
    assert data.std.shape == (2, 3)


def test_negative_variance_is_named_as_variance():
    with pytest.raises(
        InvalidValueError, match=r"^variance has 2 negative values \(first at index \(1,\)\); pass var"
    ):
        Predictions.from_variance([1, 2, 3], [1, 2, 3], [1, -1e-9, -4])


def test_zero_variance_is_legal_and_counted():
    assert Predictions.from_variance([1, 2], [1, 2], [0, 1]).counts["n_zero_std"] == 1
    assert Predictions.from_log_variance([1, 2], [1, 2], [-INF, 0]).counts["n_zero_std"] == 1


def test_overflowing_log_variance_is_named():
    with pytest.raises(
        InvalidValueError, match=r"exp\(log_variance / 2\) has 1 non-finite value .*177 in float32"
    ):
        Predictions.from_log_variance([1, 2], [1, 2], np.float32([0, 200]))


def test_stated_limits_of_log_variance_hold():
    assert Predictions.from_log_variance([1], [1], np.float32([177])).n == 1
    assert Predictions.from_log_variance([1], [1], [1400.0]).n == 1


def test_missing_variance_is_named():
    with pytest.raises(InvalidValueError, match=r"variance has 1 non-finite value"):
        Predictions.from_variance([1, 2], [1, 2], [1, NAN])


# --- intervals ----------------------------------------------------------------------------------------------


def test_interval_that_lies_off_centre():
    data = Predictions.from_interval([0.0], [1.0], [5.0], 0.95)
    assert_allclose(data.mean, [3.0], rtol=1e-15)
    assert_allclose(stats.norm(data.mean, data.std).cdf([[1.0], [5.0]]), [[0.025], [0.975]], rtol=1e-12)


def test_crossed_interval_is_refused():
    with pytest.raises(InvalidValueError, match=r"high - low has 1 negative value .*low exceeds high there"):
        Predictions.from_interval([1, 2], [0, 3], [1, 2], 0.9)


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, NAN])
def test_level_must_be_a_probability(level):
    with pytest.raises(SettingsError, match=r"level is .*; pass a probability between 0 and 1"):
        Predictions.from_interval([1.0], [0.0], [2.0], level)


@pytest.mark.parametrize("axis", [0, 1])
def test_intervals_at_several_levels_are_quantiles(axis):
    rng = np.random.default_rng(0)
    target, middle = rng.normal(size=(2, 30))
    low, high = np.stack([middle - 1, middle - 2], axis), np.stack([middle + 2, middle + 4], axis)
    found = uq.evaluate(Predictions.from_interval(target, low, high, [0.5, 0.9], middle))
    ends = np.concatenate([low, high], axis)
    wanted = uq.evaluate(Predictions.from_quantiles(target, ends, [0.25, 0.05, 0.75, 0.95], middle))
    assert found.scores == pytest.approx(dict(wanted.scores), rel=1e-12)
    assert {"coverage_50", "coverage_90", "crps"} <= found.scores.keys()
    hidden = np.arange(30) == 3
    masked = np.ma.MaskedArray(low, np.expand_dims(hidden, axis) | np.zeros(low.shape, bool))
    data = Predictions.from_interval(target, masked, high, [0.5, 0.9], middle)
    assert data.counts["n_masked"] == 1
    one = Predictions.from_interval(target, low.take([1], axis), high.take([1], axis), [0.9], middle)
    assert uq.evaluate(one).scores["coverage_90"] == found.scores["coverage_90"]


def test_wrong_levels_of_intervals_are_named():
    low, high = np.zeros((30, 2)), np.ones((30, 2))
    with pytest.raises(SettingsError, match=r"level is 90; pass a probability between 0 and 1"):
        Predictions.from_interval(np.zeros(30), low, high, [0.5, 90])
    with pytest.raises(ShapeError, match=r"low has 2 levels, but level has 3; pass one for each"):
        Predictions.from_interval(np.zeros(30), low, high, [0.5, 0.8, 0.9])
    with pytest.raises(
        ShapeError, match=r"more than one axis may hold the levels; say which: axis=0 or axis=1"
    ):
        Predictions.from_interval(np.zeros(2), low[:2], high[:2], [0.5, 0.9])
    data = Predictions.from_interval(np.zeros(2), low[:2], high[:2], [0.5, 0.9], axis=1)
    assert data.form.facts["levels"] == pytest.approx([0.05, 0.25, 0.75, 0.95])


def test_unbounded_interval_is_refused():
    with pytest.raises(InvalidValueError, match=r"midpoint of low and high has 1 non-finite"):
        Predictions.from_interval([1.0], [0.0], [INF], 0.9)


# --- evidence -----------------------------------------------------------------------------------------------


def test_evidential_moments():
    rng = np.random.default_rng(0)
    gamma, nu = rng.normal(size=50), rng.uniform(0.1, 5, 50)
    alpha, beta = rng.uniform(1.1, 5, 50), rng.uniform(0.1, 5, 50)
    data = Predictions.from_evidential(np.zeros(50), gamma, nu, alpha, beta)
    assert_array_equal(data.mean, gamma)
    assert_allclose(data.form.aleatoric**2, beta / (alpha - 1), rtol=1e-13)
    assert_allclose(data.form.epistemic**2, beta / (nu * (alpha - 1)), rtol=1e-13)
    assert_allclose(data.std**2, data.form.aleatoric**2 + data.form.epistemic**2, rtol=1e-13)


def test_evidential_std_is_that_of_its_student_t():
    """The posterior predictive is a Student t with 2 alpha degrees of freedom; its variance must agree."""
    nu, alpha, beta = 2.0, 3.0, 1.5
    scale = np.sqrt(beta * (1 + nu) / (nu * alpha))
    data = Predictions.from_evidential([0.0], [0.3], [nu], [alpha], [beta])
    assert_allclose(data.std, [stats.t(2 * alpha, 0.3, scale).std()], rtol=1e-13)


@pytest.mark.parametrize(
    ("nu", "alpha", "beta"), [(0, 2, 1), (-1, 2, 1), (1, 1, 1), (1, 0.5, 1), (1, 2, 0), (1, 2, -1)]
)
def test_infinite_variance_is_refused(nu, alpha, beta):
    with pytest.raises(
        InvalidValueError, match=r"std of nu, alpha and beta has 1 non-finite .*finite only for nu > 0"
    ):
        Predictions.from_evidential([0.0], [0.0], [nu], [alpha], [beta])


def test_evidential_shapes():
    with pytest.raises(ShapeError, match=r"beta \(2,\)"):
        Predictions.from_evidential([0.0], [0.0], [1.0], [2.0], [1.0, 2.0])


def test_arguments_are_named_in_type_errors():
    with pytest.raises(InputTypeError, match="log_variance has dtype"):
        Predictions.from_log_variance([1.0], [1.0], ["a"])
    with pytest.raises(InputTypeError, match="stds has dtype"):
        Predictions.from_ensemble([1.0], [[1.0]], [["a"]])
