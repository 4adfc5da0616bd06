"""Contrasts of parts and trends against a literal transcription of their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from uq_tracking.inference.limits import Ordered, contrast_parts, contrast_trend


def kurtosis_freedom(u, n):
    square, fourth = (u**2).sum(0), (u**4).sum(0)
    kurtosis = n * fourth / square**2
    kurtosis = 3 + (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (kurtosis - 3) + 6)
    return np.minimum(n - 1.0, 2 * n / np.maximum(kurtosis - 1, 1e-9))


def of_groups(estimate, u, group, leverage, most=np.inf):
    groups = group.max() + 1
    added = np.stack([np.bincount(group, column, groups) for column in u.T], 1)
    held = np.stack([np.bincount(group, column, groups) for column in leverage.T], 1)
    share = (held / held.max(0)) ** 2
    freedom = np.minimum(kurtosis_freedom(added, groups), share.sum(0) ** 2 / (share**2).sum(0) - 1)
    freedom = np.minimum(freedom, most)
    error = np.sqrt((added**2).sum(0) * groups / (groups - 1))
    p = np.where(freedom >= 1, 2 * stats.t.sf(np.abs(estimate / error), np.maximum(freedom, 1)), 1.0)
    return error, freedom, p


def hall(t, skew):
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6


def pearson(t, skew):
    law = stats.pearson3(skew)
    return 2 * np.maximum(stats.norm.sf(np.abs(t)), np.where(t > 0, law.sf(t), law.cdf(t)))


def literal_parts(score, part, ratio, weight, group):
    n, parts = len(score), part.max() + 1
    total, mean = weight.sum(), weight @ score / weight.sum()
    of_part = np.bincount(part, weight, parts)
    mean_of_part = np.bincount(part, weight * score, parts) / of_part
    estimate = np.log(mean_of_part / mean) if ratio else mean_of_part - mean
    own = np.zeros((n, parts))
    own[np.arange(n), part] = weight / of_part[part]
    u = own * (score[:, None] - mean_of_part) / (mean_of_part if ratio else 1)
    centre = mean if group is None else mean_of_part[part]  # the sizes of parts are given
    u = u - (weight * (score - centre) / total / (mean if ratio else 1))[:, None]
    if group is not None:
        there = np.stack([np.bincount(group, own[:, k] > 0, group.max() + 1) > 0 for k in range(parts)], 1)
        return estimate, *of_groups(estimate, u, group, own, there.sum(0) - 1.0)
    effective = of_part**2 / np.bincount(part, weight**2, parts)
    square, cube, fourth = ((u**k).sum(0) for k in (2, 3, 4))
    kurtosis = effective * fourth / square**2
    freedom = np.clip(np.minimum(effective - 1, 2 * effective / (kurtosis - 1)), 1, None)
    error = np.sqrt(square * effective / (effective - 1))
    skew = cube / square**1.5 * np.sqrt(effective * (effective - 1)) / (effective - 2)
    t = estimate / error
    p = np.maximum(2 * stats.t.sf(np.abs(t), freedom), 2 * stats.t.sf(np.abs(hall(t, skew)), freedom))
    centred = (score - mean) / (mean if ratio else 1)
    variance = weight @ centred**2 / total
    pooled = np.sqrt(variance * (1 / effective - weight @ weight / total**2))
    skew = weight @ centred**3 / total / variance**1.5 / np.sqrt(effective)
    return estimate, np.maximum(error, pooled), freedom, np.maximum(p, pearson(estimate / pooled, skew))


def literal_trend(score, rank, ratio, weight, group):
    total, mean = weight.sum(), weight @ score / weight.sum()
    c = rank - weight @ rank / total
    c = c / np.sqrt(weight @ c**2 / total)
    slope = weight @ (c * score) / total
    unit = mean if ratio else 1.0
    u = (weight * c * (score - mean - slope * c) / total / unit)[:, None]
    estimate = np.array([slope / unit])
    if group is not None:
        return estimate, *of_groups(estimate, u, group, (weight * np.abs(c))[:, None])
    n = len(score)
    square, cube = (u**2).sum(0), (u**3).sum(0)
    error, freedom = np.sqrt(square * n / (n - 1)), kurtosis_freedom(u, n)
    t, skew = estimate / error, cube / square**1.5
    p = np.maximum(2 * stats.t.sf(np.abs(t), freedom), 2 * stats.t.sf(np.abs(hall(t, skew)), freedom))
    return estimate, error, freedom, p


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("n", [60, 400, 3000])
def test_contrasts_are_those_of_the_formulas(n, ratio, grouped, weighted):
    rng = np.random.default_rng(n)
    z, x = 1.1 * rng.standard_t(4, n) + 0.1, rng.gamma(2, 1, n).round(1)
    score = np.abs(z) if ratio else z
    weight = rng.exponential(size=n) if weighted else None
    group = rng.permutation(np.arange(n) % 25) if grouped else None
    parts = 5 if n > 100 else 2
    order = Ordered.by(x, parts, weight)
    part = np.repeat(np.arange(len(order.starts)), order.sizes)
    mass = np.ones(n) if weight is None else weight
    score, mass = score[order.place], mass[order.place]
    group = None if group is None else group[order.place]
    given = {"ratio": ratio, "weight": mass if weighted else None, "group": group}
    for found, literal in (
        (contrast_parts(score, order.starts, **given), literal_parts(score, part, ratio, mass, group)),
        (contrast_trend(score, order.rank, **given), literal_trend(score, order.rank, ratio, mass, group)),
    ):
        for value, expected in zip(
            (found.estimate, found.error, found.freedom, found.p), literal, strict=True
        ):
            np.testing.assert_allclose(value, expected, rtol=1e-7)


def test_parts_are_equal_and_keep_ties_together():
    order = Ordered.by(np.array([3.0, 1.0, 1.0, 2.0, 5.0, 4.0]), 3)
    np.testing.assert_array_equal(order.sizes, [2, 2, 2])
    np.testing.assert_allclose(order.rank * 6, [1, 1, 2.5, 3.5, 4.5, 5.5])
    assert len(Ordered.by(np.ones(10), 5).starts) == 1
