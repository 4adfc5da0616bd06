import numpy as np
from numpy.testing import assert_allclose

from uq_tracking.demo.methods import learned_stds, surroundings


def test_stds_are_recovered_from_absolute_errors():
    rng = np.random.default_rng(0)
    clues = rng.uniform(0, 2, (4000, 3))
    std = np.exp(1 + clues[:, 0])
    errors = np.abs(std * rng.standard_normal(4000))
    learned = learned_stds(clues, errors, clues, seed=0, batch=128)
    assert_allclose(np.median(learned / std), 1, atol=0.1)
    assert np.corrcoef(np.log(learned), np.log(std))[0, 1] > 0.97


def test_surroundings_know_distance_and_relief():
    positions = np.array([[row, column] for row in range(3) for column in range(3)], float)
    flat, steep = np.zeros(9), positions[:, 0] * 50
    near, far = np.array([[1.0, 1.0]]), np.array([[9.0, 9.0]])
    assert (surroundings(far, positions, flat)[0, :2] > surroundings(near, positions, flat)[0, :2]).all()
    assert surroundings(near, positions, flat)[0, 2] == 0
    assert surroundings(near, positions, steep)[0, 2] > 3
