import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from uq_tracking.demo.methods import RATE, Adam, Network


def random_data(seed, n=40, inputs=3):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, inputs)).astype(np.float32)
    return x, np.sin(x).sum(1).astype(np.float32)


def smooth_here(network, rng):
    """Double precision, and biases that keep every unit off its kink even when all its inputs are dropped."""
    network.layers = [
        (weights.astype(float), rng.normal(0, 0.3, len(bias))) for weights, bias in network.layers
    ]
    return network


def masked_loss(network, masks, x, y):
    for (weights, bias), mask in zip(network.layers[:-1], masks, strict=True):
        x = np.maximum(x @ weights + bias, 0) * mask
    weights, bias = network.layers[-1]
    return 0.5 * np.mean(((x @ weights + bias)[:, 0] - y) ** 2)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("hidden", [(5,), (6, 4), (4, 3, 5)])
def test_gradients_are_those_of_finite_differences(hidden, dropout, monkeypatch):
    rng = np.random.default_rng(1)
    network = smooth_here(Network(3, hidden, rng, dropout), rng)
    x, y = (array.astype(float) for array in random_data(2))
    masks = [network._mask((len(x), units), np.random.default_rng(units)) for units in hidden]
    left = iter(masks)
    monkeypatch.setattr(network, "_mask", lambda shape, rng: next(left))

    gradients = network._gradients(x, y)

    for layer, gradient in zip(network.layers, gradients, strict=True):
        for parameter, slope in zip(layer, gradient, strict=True):
            for place in np.ndindex(parameter.shape):
                value, step = parameter[place], 1e-6
                parameter[place] = value + step
                above = masked_loss(network, masks, x, y)
                parameter[place] = value - step
                below = masked_loss(network, masks, x, y)
                parameter[place] = value
                assert_allclose(slope[place], (above - below) / (2 * step), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_dropout_drops_its_share_and_keeps_the_expected_activation(dropout):
    network = Network(3, (4,), np.random.default_rng(0), dropout)
    mask = network._mask((1000, 100), np.random.default_rng(1))
    assert_allclose((mask == 0).mean(), dropout, atol=0.005)
    assert_allclose(mask.mean(), 1, atol=0.01)


def test_adam_follows_its_published_algorithm():
    parameter = np.array([[1.0, -2.0]], np.float64)
    adam = Adam([(parameter, np.zeros(2))])
    first = second = np.zeros((1, 2))
    expected = parameter.copy()
    for t in range(1, 6):
        gradient = 2 * expected + t
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        expected = expected - 0.01 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        adam.step([(gradient, np.zeros(2))], 0.01)
        assert_allclose(parameter, expected, rtol=1e-12)


def test_fitting_learns_a_smooth_function():
    x, y = random_data(5, n=400)
    network = Network(3, (32, 32), np.random.default_rng(0))
    before = np.mean((network.predict(x) - y) ** 2)
    network.fit(x, y, epochs=60, batch=32)
    assert np.mean((network.predict(x) - y) ** 2) < 0.02 * before


def test_same_seed_same_network():
    x, y = random_data(5)
    outputs = [Network(3, (8,), np.random.default_rng(7), 0.1).fit(x, y, 3, 16).predict(x) for _ in range(2)]
    assert_array_equal(*outputs)


def test_learning_rate_falls_from_its_start_towards_zero(monkeypatch):
    rates = []
    monkeypatch.setattr(Adam, "step", lambda self, gradients, rate: rates.append(rate))
    x, y = random_data(1)
    Network(3, (4,), np.random.default_rng(0)).fit(x, y, 50, 20)
    assert len(rates) == 100
    assert rates[0] == RATE
    assert (np.diff(rates) < 0).all()
    assert 0 < rates[-1] < RATE / 500


def test_every_epoch_is_announced():
    x, y = random_data(1)
    told = []
    Network(3, (4,), np.random.default_rng(0)).fit(x, y, 4, 16, told.append)
    assert told == [1, 2, 3, 4]


def test_dropout_passes_differ_and_average_to_the_prediction_of_a_linear_network():
    network = Network(3, (50,), np.random.default_rng(3), 0.2)
    x, _ = random_data(4, n=5)
    passes = network.sample(x, 20_000, np.random.default_rng(5))
    assert passes.shape == (20_000, 5)
    assert (passes.std(0) > 0).all()
    error = passes.std(0) / np.sqrt(20_000)  # behind the only dropout layer the network is linear
    assert_allclose((passes.mean(0) - network.predict(x)) / error, 0, atol=4)


def test_prediction_is_without_dropout():
    network = Network(3, (50,), np.random.default_rng(3), 0.2)
    x, _ = random_data(4)
    assert_array_equal(network.predict(x), network.predict(x))
