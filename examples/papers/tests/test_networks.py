"""Bundles of networks against torch's own layers, samplers against posteriors in closed form, densities on grids."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

from uq_tracking_papers.networks import (
    Bundle,
    Energy,
    Sampling,
    Training,
    class_loss,
    fit,
    gaussian_loss,
    moments,
    on_grid,
    probabilities,
    sample,
    squared_loss,
)


def torch_networks(bundle, inputs, hidden, outputs):
    """The same networks made of torch's layers."""
    networks = []
    for k in range(bundle.count * bundle.heads):
        layers, rows = [], inputs
        for number, columns in enumerate([*hidden, outputs // bundle.heads]):
            linear = torch.nn.Linear(rows, columns)
            linear.weight.data = bundle.layers[number][0][k].T.detach()
            linear.bias.data = bundle.layers[number][1][k, 0].detach()
            layers += [linear, torch.nn.ReLU()]
            rows = columns
        networks.append(torch.nn.Sequential(*layers[:-1]))
    return networks


def test_networks_side_by_side_are_networks():
    bundle = Bundle(3, 2, (5, 4), 2, seed=0)
    x = np.random.default_rng(0).normal(size=(7, 2))
    alone = [n(torch.as_tensor(x, dtype=torch.float32)) for n in torch_networks(bundle, 2, (5, 4), 2)]
    assert_allclose(bundle.predict(x), torch.stack(alone).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_networks_trained_at_once_on_data_sets_of_their_own_are_those_trained_alone():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (3, 20, 1))
    y = (x**3)[..., 0] + 0.1 * rng.standard_normal((3, 20))
    together, effort = Bundle(6, 1, (30,), 1, seed=0), Training(200, 20, 1e-2)
    alone = [together.part(slice(place, place + 1)) for place in range(6)]
    fit(together, x, y, squared_loss, effort)
    for place, network in enumerate(alone):
        group = place // 2
        fit(network, x[group], y[group], squared_loss, effort)
        assert_allclose(together.predict(x)[place], network.predict(x[group])[0], rtol=1e-2, atol=5e-3)
        assert np.mean((network.predict(x[group])[0, :, 0] - y[group]) ** 2) < 0.02


def test_a_network_sees_only_the_samples_drawn_for_it():
    x, y = np.linspace(-1, 1, 40)[:, None], np.repeat([0.0, 1.0], 20)
    drawn = np.stack([np.arange(40) % 20, 20 + np.arange(40) % 20])
    bundle = fit(Bundle(2, 1, (), 1, seed=0), x, y, squared_loss, Training(300, 40, 5e-2), drawn=drawn)
    assert_allclose(bundle.predict(x)[0, :20, 0], 0, atol=0.05)
    assert_allclose(bundle.predict(x)[1, 20:, 0], 1, atol=0.05)


def test_a_part_keeps_its_weights_when_the_whole_is_trained():
    x = np.linspace(-1, 1, 32)[:, None]
    bundle = Bundle(4, 1, (5,), 2, seed=0, apart=True)
    before = bundle.predict(x)
    part = bundle.part(slice(1, 3))
    fit(bundle, x, x[:, 0], gaussian_loss, Training(5, 32, 1e-1))
    assert_allclose(part.predict(x), before[1:3], rtol=1e-6)
    assert np.abs(bundle.predict(x) - before).max() > 0.1


def test_outputs_may_have_networks_of_their_own():
    bundle = Bundle(2, 1, (4,), 2, seed=0, apart=True)
    x = torch.linspace(-1, 1, 6)[:, None]
    alone = [n(x)[:, 0] for n in torch_networks(bundle, 1, (4,), 2)]
    pairs = [torch.stack(alone[k : k + 2], dim=1) for k in (0, 2)]
    assert_allclose(bundle.predict(x.numpy()), torch.stack(pairs).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_dropout_keeps_the_expected_activation():
    bundle = Bundle(1, 1, (200,), 1, seed=0, dropout=0.5, dropped=(0,))
    x = np.ones((1, 1))
    passes = np.stack([bundle.predict(x, drop=True) for _ in range(400)])
    spread = passes.std()
    assert spread > 0
    assert abs(passes.mean() - bundle.predict(x).item()) < 4 * spread / 20


def test_losses_are_the_likelihoods():
    rng = np.random.default_rng(0)
    outputs, y, labels = rng.normal(size=(2, 9, 2)), rng.normal(size=(2, 9)), rng.integers(2, size=(2, 9))
    mean, std = moments(outputs)
    nll = -stats.norm.logpdf(y, mean, std).mean(axis=1) - 0.5 * np.log(2 * np.pi)
    assert_allclose(gaussian_loss(torch.tensor(outputs), torch.tensor(y)).numpy(), nll, rtol=1e-12)
    one = np.take_along_axis(probabilities(outputs), labels[..., None], axis=-1)[..., 0]
    found = class_loss(torch.tensor(outputs), torch.tensor(labels)).numpy()
    assert_allclose(found, -np.log(one).mean(axis=1), rtol=1e-12)


def test_training_finds_a_line():
    x = np.linspace(-1, 1, 128)
    bundle = fit(Bundle(2, 1, (), 2, seed=0), x[:, None], 2 * x + 1, gaussian_loss, Training(60, 32, 3e-2))
    assert_allclose(moments(bundle.predict(x[:, None]))[0], np.stack([2 * x + 1] * 2), atol=0.05)


def line_posterior(x, y):
    """Mean and covariance of intercept and slope under y ~ N(a + b x, 1) and a, b ~ N(0, 1)."""
    design = np.stack([np.ones_like(x), x], axis=1)
    covariance = np.linalg.inv(design.T @ design + np.eye(2))
    return covariance @ design.T @ y, covariance


def line_data(n=20):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, n)
    return x, 0.5 - x + rng.normal(size=n)


@pytest.mark.parametrize("friction", [1.0, 0.2])
def test_langevin_samples_a_posterior_in_closed_form(friction):
    """The last states of a thousand chains are independent draws; the size of the step leaves a small bias."""
    x, y = line_data()
    networks = Bundle(1000, 1, (), 1, seed=0)

    found = []
    chain = Sampling(1, 250, 0.1 * friction, friction, batch=len(x))
    sample(
        networks, x[:, None], y, squared_loss, chain, lambda: found.append(networks.predict([[0.0], [1.0]]))
    )
    at = found[0][..., 0].astype(float)
    mean, covariance = line_posterior(x, y)
    places = np.array([[1, 0], [1, 1]])
    spread = np.sqrt(np.diag(places @ covariance @ places.T))
    assert_allclose(at.mean(axis=0), places @ mean, atol=0.15 * spread.max())
    assert_allclose(at.std(axis=0), spread, rtol=0.15)


def test_a_density_on_a_grid_is_read_exactly_enough():
    rng = np.random.default_rng(0)
    mean, std, y = rng.normal(size=50), rng.uniform(0.5, 1, 50), rng.normal(size=50)
    places = np.linspace(-9, 9, 2000)
    logs = stats.norm.logpdf(places, mean[:, None], std[:, None])
    found = on_grid(y, places, logs)
    assert_allclose(found["pit"], stats.norm.cdf(y, mean, std), atol=1e-5)
    assert_allclose(found["log_density"], stats.norm.logpdf(y, mean, std), atol=1e-4)
    assert_allclose(found["mean"], mean, atol=1e-8)
    assert_allclose(found["std"], std, rtol=1e-6)
    assert_allclose(found["mode"], mean, atol=0.01)


def test_an_energy_learns_two_modes():
    """y is -1 or 1, give or take .2: the NLL is log 2 above that of one normal distribution."""
    rng = np.random.default_rng(0)
    x, sign = rng.uniform(size=1024), rng.choice([-1, 1], 1024)
    y = sign + 0.2 * rng.normal(size=1024)
    model = Energy(-2, 2, (16, 16), seed=0).fit(x, y, Training(12, 64, 2e-2), 48)
    (found,) = model.summary(x, y, points=200)
    best = np.log(2) + stats.norm(0, 0.2).entropy()
    assert best - 0.1 < -found["log_density"].mean() < best + 0.15
    assert stats.norm(0, np.sqrt(1.04)).entropy() > best + 0.5
