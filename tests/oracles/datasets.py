"""Seeded data sets: the ordinary, the tied, the extreme in scale, the tiny, and the papers' synthetic ones.

``REGRESSION`` maps a name to a function without arguments; ``CLASSIFICATION`` likewise.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Regression:
    """Targets, predictive means and predictive standard deviations."""

    y: Array
    mu: Array
    s: Array

    def permuted(self, rng: np.random.Generator) -> Regression:
        order = rng.permutation(len(self.y))
        return Regression(self.y[order], self.mu[order], self.s[order])


@dataclass(frozen=True)
class Classification:
    """Class indices and rows of class probabilities."""

    labels: npt.NDArray[np.int64]
    probs: Array


def rng_of(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


# --- ordinary and misspecified predictions ---


def gaussian(name: str, n: int, factor: float = 1.0, shift: float = 0.0) -> Regression:
    """y ~ N(mu + shift, (factor s)^2): calibrated for factor 1, overconfident above, underconfident below."""
    rng = rng_of(name)
    mu = rng.normal(0.0, 3.0, n)
    s = rng.gamma(2.0, 0.5, n) + 0.05
    return Regression(mu + shift + factor * s * rng.normal(size=n), mu, s)


def student_t(name: str, n: int, dof: float) -> Regression:
    rng = rng_of(name)
    mu, s = rng.normal(size=n), rng.uniform(0.2, 2.0, n)
    return Regression(mu + s * rng.standard_t(dof, n), mu, s)


def uniform_noise(n: int = 300) -> Regression:
    """Every target lies inside the uniform prior's support, so every score has a value."""
    rng = rng_of("uniform_noise")
    mu, s = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    return Regression(mu + 1.7 * s * rng.uniform(-1.0, 1.0, n), mu, s)


# --- ties ---


def integers(name: str, n: int) -> Regression:
    """All three from a handful of integers: ties in s, in e and in z, and errors of 0."""
    rng = rng_of(name)
    draw = rng.integers
    return Regression(draw(0, 6, n).astype(float), draw(0, 6, n).astype(float), draw(1, 4, n).astype(float))


def constant_std(n: int = 257) -> Regression:
    rng = rng_of("constant_std")
    return Regression(rng.normal(size=n), np.zeros(n), np.full(n, 0.7))


def few_std(n: int = 403) -> Regression:
    rng = rng_of("few_std")
    s = rng.choice([0.1, 0.3, 2.5], n, p=[0.6, 0.3, 0.1])
    return Regression(s * rng.normal(size=n), np.zeros(n), s)


def repeated_rows(n: int = 60, times: int = 5) -> Regression:
    base = gaussian("repeated_rows", n)
    return Regression(np.repeat(base.y, times), np.repeat(base.mu, times), np.repeat(base.s, times))


def equal_errors(n: int = 40) -> Regression:
    rng = rng_of("equal_errors")
    return Regression(rng.choice([-0.1, 0.1], n), np.zeros(n), rng.uniform(0.05, 0.2, n))


# --- scale and conditioning ---


def scaled(factor: float, n: int = 251) -> Regression:
    base = gaussian("scaled", n, factor=1.4)
    return Regression(base.y * factor, base.mu * factor, base.s * factor)


def large_offset(n: int = 300) -> Regression:
    """A naive sum of squares loses every digit of r2's total here."""
    base = gaussian("large_offset", n)
    return Regression(base.y + 1e7, base.mu + 1e7, base.s)


def nearly_constant_std(n: int = 300) -> Regression:
    """A naive mean of squares loses most digits of cv here."""
    rng = rng_of("nearly_constant_std")
    s = 1.0 + 1e-6 * rng.random(n)
    return Regression(s * rng.normal(size=n), np.zeros(n), s)


def far_off(n: int = 300) -> Regression:
    """z is about a million with a spread of one: a naive mean of squares loses most digits of z_std."""
    rng = rng_of("far_off")
    s = rng.uniform(1e-3, 2e-3, n)
    return Regression(s * (1e6 + rng.normal(size=n)), np.zeros(n), s)


def wide_std(n: int = 300) -> Regression:
    """Standard deviations over sixteen decades."""
    rng = rng_of("wide_std")
    s = 10.0 ** rng.uniform(-8.0, 8.0, n)
    return Regression(s * rng.normal(size=n), np.zeros(n), s)


def confident_blunder(n: int = 300) -> Regression:
    """The most certain prediction is the worst by far: later bins drown in a difference of running sums."""
    rng = rng_of("confident_blunder")
    s = rng.uniform(0.1, 1.0, n)
    e = s * rng.normal(size=n)
    e[np.argmin(s)] = 1e8
    return Regression(e, np.zeros(n), s)


def opposite_std(n: int = 300) -> Regression:
    """The smaller the standard deviation, the larger the error, over eight decades of each."""
    rng = rng_of("opposite_std")
    s = 10.0 ** rng.uniform(-4.0, 4.0, n)
    return Regression(rng.normal(size=n) / s, np.zeros(n), s)


# --- degenerate ---


def right_where_uncertain(n: int = 100) -> Regression:
    """The ten least certain predictions are right to the last digit: the RMSE of their bin is 0."""
    rng = rng_of("right_where_uncertain")
    e = 3.3 * rng.normal(size=n)
    e[-10:] = 0.0
    return Regression(e, np.zeros(n), np.arange(1.0, n + 1.0))


def oracle(n: int = 250) -> Regression:
    """s = |e|: the sparsification errors and n_merci are 0."""
    rng = rng_of("oracle")
    e = rng.normal(size=n)
    return Regression(e, np.zeros(n), np.abs(e))


def tenths(y: list[float], mu: list[float], s: list[float]) -> Regression:
    """Decimal numbers whose sums are rounded: three times .1 divided by three is not .1."""
    return Regression(np.array(y) / 10, np.array(mu) / 10, np.array(s) / 10)


def perfect(n: int = 50) -> Regression:
    rng = rng_of("perfect")
    y = rng.normal(size=n)
    return Regression(y, y.copy(), rng.uniform(0.5, 1.0, n))


def some_zero_std(n: int = 300, share: float = 0.03) -> Regression:
    """A few standard deviations of 0, half of them with a right prediction."""
    base = gaussian("some_zero_std", n)
    y, s = base.y.copy(), base.s.copy()
    zero = np.arange(int(n * share))
    s[zero] = 0.0
    y[zero[::2]] = base.mu[zero[::2]]
    return Regression(y, base.mu, s)


def all_zero_std(n: int = 30) -> Regression:
    base = gaussian("all_zero_std", n)
    return Regression(base.y, base.mu, np.zeros(n))


# --- the papers' synthetic sets ---


def xiong(kind: str, n: int) -> Regression:
    """Xiong et al. 2024, section IV-A, predicted by the true mean and standard deviation of y given x."""
    rng = rng_of(f"xiong_{kind}")
    noise = rng.normal(size=n)
    if kind in ("homoscedastic", "heteroscedastic"):
        centre = np.cos(1.5 * np.pi * rng.uniform(-1.0, 1.0, n))
        s = np.full(n, 0.1) if kind == "homoscedastic" else 0.4 * np.abs(centre)
        return Regression(centre + s * noise, centre, s)
    x = rng.uniform(0.0, 1.0, n)
    if kind == "epistemic":
        mu = 0.5 + np.cos(4.0 * np.pi * x)
        return Regression(mu + 0.05 * noise, mu, np.full(n, 0.05))
    arm = np.cos(2.0 * np.pi * x)
    y = 0.5 + rng.choice([-1.0, 1.0], n) * arm + 0.05 * noise
    return Regression(y, np.full(n, 0.5), np.sqrt(arm**2 + 0.05**2))


def levi(n: int = 50_000) -> Regression:
    """Levi et al. 2019, section 4.1: x ~ U[.1, 1], y ~ N(x, x^2), the predicted std drawn from U[1, 10]."""
    rng = rng_of("levi")
    x = rng.uniform(0.1, 1.0, n)
    return Regression(rng.normal(x, x), x, rng.uniform(1.0, 10.0, n))


def three_points() -> Regression:
    """The case uncertainty-toolbox tests itself with."""
    return Regression(np.array([1.5, 3.0, 2.0]), np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.5, 1.0]))


REGRESSION: dict[str, Callable[[], Regression]] = {
    "calibrated": lambda: gaussian("calibrated", 997),
    "overconfident": lambda: gaussian("overconfident", 500, factor=3.0),
    "underconfident": lambda: gaussian("underconfident", 500, factor=0.3),
    "biased": lambda: gaussian("biased", 500, shift=0.8),
    "student_t": lambda: student_t("student_t", 700, 2.5),
    "cauchy": lambda: student_t("cauchy", 333, 1.0),
    "uniform_noise": uniform_noise,
    "integers": lambda: integers("integers", 500),
    "constant_std": constant_std,
    "few_std": few_std,
    "repeated_rows": repeated_rows,
    "equal_errors": equal_errors,
    "equal_errors_of_tenths": lambda: tenths([1, 1, 1], [0, 0, 0], [1, 2, 3]),
    "all_equal": lambda: tenths([1] * 23, [3] * 23, [1] * 23),
    "tiny": lambda: scaled(1e-30),
    "float32_small": lambda: scaled(1e-38),
    "huge": lambda: scaled(1e30),
    "large_offset": large_offset,
    "nearly_constant_std": nearly_constant_std,
    "far_off": far_off,
    "wide_std": wide_std,
    "confident_blunder": confident_blunder,
    "opposite_std": opposite_std,
    "right_where_uncertain": right_where_uncertain,
    "oracle": oracle,
    "perfect": perfect,
    "some_zero_std": some_zero_std,
    "many_zero_std": lambda: some_zero_std(share=0.4),
    "all_zero_std": all_zero_std,
    "xiong_homoscedastic": lambda: xiong("homoscedastic", 512),
    "xiong_heteroscedastic": lambda: xiong("heteroscedastic", 512),
    "xiong_multimodal": lambda: xiong("multimodal", 512),
    "xiong_epistemic": lambda: xiong("epistemic", 512),
    "levi": lambda: levi(1000),
    "three_points": three_points,
    **{f"continuous_{n}": lambda n=n: gaussian(f"continuous_{n}", n) for n in range(1, 13)},
    **{f"integers_{n}": lambda n=n: integers(f"integers_{n}", n) for n in range(1, 13)},
    **{f"continuous_{n}": lambda n=n: gaussian(f"continuous_{n}", n) for n in (99, 100, 101, 137)},
}


# --- classification ---


def softmax(name: str, n: int, classes: int, scale: float) -> Classification:
    """Labels drawn from the softmax of the logits; the predicted logits are ``scale`` times the true ones."""
    rng = rng_of(name)
    logits = rng.normal(0.0, 1.5, (n, classes))
    true = np.exp(logits)
    true /= true.sum(axis=1, keepdims=True)
    labels = np.array([rng.choice(classes, p=row) for row in true])
    probs = np.exp(scale * logits)
    return Classification(labels, probs / probs.sum(axis=1, keepdims=True))


def dyadic(n: int = 400) -> Classification:
    """Probabilities in sixteenths: exact sums, ties, zeros, confidences on an edge, several top labels."""
    rng = rng_of("dyadic")
    rows = np.array([[16, 0, 0], [8, 8, 0], [8, 4, 4], [10, 5, 1], [12, 3, 1], [6, 5, 5]]) / 16.0
    probs = rng.permuted(rows[rng.integers(0, len(rows), n)], axis=1)
    return Classification(rng.integers(0, 3, n), probs)


def hot(n: int = 50) -> Classification:
    """Every sample is predicted right with certainty."""
    rng = rng_of("hot")
    labels = rng.integers(0, 4, n)
    return Classification(labels, np.eye(4)[labels])


def absent_classes(n: int = 120) -> Classification:
    """Ten classes of which five are never the label and some are never predicted."""
    base = softmax("absent_classes", n, 10, 1.0)
    return Classification(base.labels % 5, base.probs)


CLASSIFICATION: dict[str, Callable[[], Classification]] = {
    "calibrated": lambda: softmax("class_calibrated", 600, 5, 1.0),
    "overconfident": lambda: softmax("class_overconfident", 600, 5, 3.0),
    "binary": lambda: softmax("class_binary", 501, 2, 1.0),
    "dyadic": dyadic,
    "hot": hot,
    "absent_classes": absent_classes,
    **{f"small_{n}": lambda n=n: softmax(f"class_small_{n}", n, 3, 1.0) for n in range(1, 13)},
}
