import numpy as np
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from uq_tracking.demo.methods import ROUNDING, Matern, condition, fit_kernel


def test_given_all_measurements_it_is_the_exact_gaussian_process():
    rng = np.random.default_rng(0)
    positions, cells = rng.uniform(0, 60, (30, 2)), rng.uniform(0, 60, (12, 2))
    heights = rng.normal(0, 100, 30)
    exact = GaussianProcessRegressor(
        kernels.ConstantKernel(120.0**2) * kernels.Matern(15.0, nu=1.5), alpha=ROUNDING, optimizer=None
    ).fit(positions, heights)
    mean, std = exact.predict(cells, return_std=True)

    near = np.broadcast_to(positions, (12, 30, 2))
    distances = np.linalg.norm(cells[:, None] - near, axis=-1)
    got_mean, got_std = condition(Matern(120, 15), near, np.broadcast_to(heights, (12, 30)), distances)

    assert_allclose(got_mean, mean, rtol=1e-8, atol=1e-8)
    assert_allclose(
        got_std, np.sqrt(std**2 + ROUNDING), rtol=1e-7
    )  # of a measurement, rounded to whole metres


def test_kernel_of_a_drawn_process_is_found_again():
    rng = np.random.default_rng(1)
    positions = rng.uniform(0, 100, (300, 2))
    distances = np.linalg.norm(positions[:, None] - positions, axis=-1)
    covariance = Matern(80, 12)(distances) + ROUNDING * np.eye(300)
    heights = np.linalg.cholesky(covariance) @ rng.standard_normal(300)
    kernel = fit_kernel(positions, heights, centre=np.array([50.0, 50.0]))
    assert_allclose(kernel.length, 12, rtol=0.2)
    assert_allclose(kernel.std, 80, rtol=0.2)
