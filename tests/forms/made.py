"""One data set in every form."""

from __future__ import annotations

import numpy as np
from scipy import stats

import uq_tracking as uq

LEVELS = [0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975]


def arrays(n=600, seed=0, times=1.0):
    rng = np.random.default_rng(seed)
    centre, scale = times * rng.normal(size=n), times * rng.gamma(4, 0.25, n)
    return rng, centre + scale * rng.normal(size=n), centre, scale


def rounded(n, seed):
    """Forecasts on a grid, so that draws tie with each other and with the truth."""
    rng, y, centre, scale = arrays(n, seed)
    return np.round(2 * y) / 2, np.round(2 * (centre + scale * rng.normal(size=(25, n)))) / 2


def make(form, n=600, seed=0, times=1.0, **options):
    """One data set in a form, in a unit that is ``times`` smaller."""
    rng, y, centre, scale = arrays(n, seed, times)
    made = uq.Predictions
    if form == "draws":
        return made.from_samples(y, centre + scale * rng.normal(size=(45, n)), **options)
    if form == "tied draws":
        return made.from_samples(*rounded(n, seed), **options)
    if form == "mixture":
        means = np.stack([centre - 0.4 * times, centre + 0.4 * times, centre])
        return made.from_ensemble(y, means, np.stack([scale, scale / 2, scale]), combine="mixture", **options)
    if form == "quantiles":
        q = centre[:, None] + scale[:, None] * stats.norm.ppf(LEVELS)
        return made.from_quantiles(y, q, LEVELS, **options)
    if form == "interval":
        half = scale * stats.norm.ppf(0.95)
        return made.from_interval(y, centre - half, centre + half, 0.9, **options)
    if form == "distribution":
        return made.from_distribution(y, stats.gumbel_r(centre, scale), **options)
    if form == "counts":
        rate = np.exp(0.5 * centre)
        return made.from_distribution(rng.poisson(rate).astype(float), stats.poisson(rate), **options)
    if form == "density":
        pit, log = stats.norm.cdf(y, centre, scale), stats.norm.logpdf(y, centre, scale)
        return made.from_density(y, pit=pit, log_density=log, y_pred=centre, y_std=scale, **options)
    raise ValueError(form)


FORMS = ("draws", "tied draws", "mixture", "quantiles", "interval", "distribution", "counts", "density")
