"""Forecasts whose calibration is known."""

import numpy as np

import uq_tracking as uq


def forecasts(rng, n, factor=1.0, groups=None, shared=0.2, draw=None):
    """Truth, mean, std and group of each sample; errors are ``factor`` times what the std says.

    With ``groups`` the errors of a group share the part ``shared`` of their variance.
    """
    std = np.exp(0.5 * rng.normal(size=n))
    z = rng.normal(size=n) if draw is None else draw(n)
    label = None
    if groups:
        label = np.repeat(np.arange(groups), n // groups)
        z = np.sqrt(shared) * rng.normal(size=groups)[label] + np.sqrt(1 - shared) * z
    return factor * std * z, np.zeros(n), std, label


def report(rng, n, factor=1.0, groups=None, **options):
    """The report of such forecasts; few resamples, as nothing here reads the intervals."""
    truth, mean, std, label = forecasts(rng, n, factor, groups, draw=options.pop("draw", None))
    return uq.evaluate(truth, mean, std, groups=label, **options)


def classes(rng, n, power=1.0, n_classes=4, concentration=1.0):
    """Labels drawn from probabilities, and these to a power: above 1 they are overconfident."""
    probs = rng.dirichlet(np.full(n_classes, concentration), n)
    labels = (rng.random(n)[:, None] > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    sharp = probs**power
    return labels, sharp / sharp.sum(axis=1, keepdims=True)
