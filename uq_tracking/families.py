"""Location-scale families standardized to mean 0 and standard deviation 1: everything is a function of z.

With ``z = (y - mu) / s`` the density of a sample is ``pdf(z) / s`` and its CRPS is ``s * crps(z)``. A Student t with
at most 2 degrees of freedom has no standard deviation: there ``mu`` and ``s`` are its location and scale.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.settings import Settings
from uq_tracking.typed import override

FloatArray = npt.NDArray[np.float64]
SQRT2, SQRT3, SQRT_PI = math.sqrt(2), math.sqrt(3), math.sqrt(math.pi)
LOGISTIC_SCALE = SQRT3 / math.pi


class Standard(ABC):
    """A distribution with location 0 and scale 1, which are its mean and standard deviation if it has a variance."""

    name: str

    @property
    @abstractmethod
    def pdf_square_integral(self) -> float:
        """Integral of the squared density; divide by s for the scaled density. NaN without a density."""

    @abstractmethod
    def cdf(self, z: FloatArray) -> FloatArray:
        """Share of the distribution at or below z."""

    @abstractmethod
    def quantile(self, p: FloatArray) -> FloatArray:
        """Inverse of ``cdf``; infinite at 0 and 1 if the support is unbounded."""

    def pdf(self, z: FloatArray) -> FloatArray:
        """Density at z; a family has this or ``log_pdf``, and gets the other."""
        return np.exp(self.log_pdf(z))

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Natural log of the density at z, minus infinity outside the support."""
        with np.errstate(divide="ignore"):
            return np.log(self.pdf(z))

    @abstractmethod
    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """Continuous ranked probability score of the standardized distribution at z, per unit of s.

        ``density`` is ``pdf(z)`` if already known.
        """

    @property
    def has_variance(self) -> bool:
        """Return whether the distribution has a standard deviation, which is then 1."""
        return True

    @property
    def has_crps(self) -> bool:
        """Return whether the integral behind the CRPS is finite."""
        return True

    def central(self, level: npt.ArrayLike) -> FloatArray:
        """Half-width of the central interval that contains the share ``level``."""
        return self.quantile((1 + np.asarray(level, dtype=float)) / 2)


@dataclass(frozen=True)
class Gaussian(Standard):
    """Standard normal distribution."""

    name = "gaussian"
    pdf_square_integral = 1 / (2 * SQRT_PI)

    @override
    def cdf(self, z: FloatArray) -> FloatArray:
        return _array(special.ndtr(z))

    @override
    def quantile(self, p: FloatArray) -> FloatArray:
        return _array(special.ndtri(p))

    @override
    def pdf(self, z: FloatArray) -> FloatArray:
        return np.exp(-0.5 * np.square(z)) * (1 / math.sqrt(2 * math.pi))

    @override
    def log_pdf(self, z: FloatArray) -> FloatArray:
        return -0.5 * np.square(z) - 0.5 * math.log(2 * math.pi)

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """``z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)``; ``2 Phi(z) - 1`` is erf, which keeps small z exact."""
        density = self.pdf(z) if density is None else density
        return z * _array(special.erf(z * (1 / SQRT2))) + 2 * density - 1 / SQRT_PI


@dataclass(frozen=True)
class Laplace(Standard):
    """Laplace distribution with scale ``b = 1 / sqrt 2``."""

    name = "laplace"
    pdf_square_integral = SQRT2 / 4

    @override
    def cdf(self, z: FloatArray) -> FloatArray:
        tail = 0.5 * np.exp(-SQRT2 * np.abs(z))
        return np.where(z < 0, tail, 1 - tail)

    @override
    def quantile(self, p: FloatArray) -> FloatArray:
        p = np.asarray(p, dtype=float)
        with np.errstate(divide="ignore"):
            return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p))) / SQRT2

    @override
    def pdf(self, z: FloatArray) -> FloatArray:
        return np.exp(-SQRT2 * np.abs(z)) / SQRT2

    @override
    def log_pdf(self, z: FloatArray) -> FloatArray:
        return -SQRT2 * np.abs(z) - 0.5 * math.log(2)

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """``|z| + b exp(-|z| / b) - 3 b / 4``, the middle term being the density."""
        return np.abs(z) + (self.pdf(z) if density is None else density) - 0.75 / SQRT2


@dataclass(frozen=True)
class Uniform(Standard):
    """Uniform distribution with half-width ``sqrt 3``."""

    name = "uniform"
    pdf_square_integral = 1 / (2 * SQRT3)

    @override
    def cdf(self, z: FloatArray) -> FloatArray:
        return np.clip((np.asarray(z) / SQRT3 + 1) / 2, 0, 1)

    @override
    def quantile(self, p: FloatArray) -> FloatArray:
        return SQRT3 * (2 * np.asarray(p, dtype=float) - 1)

    @override
    def pdf(self, z: FloatArray) -> FloatArray:
        return _array((np.abs(z) <= SQRT3) * (1 / (2 * SQRT3)))

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """``m^2 / (2 w) + w / 6 + |z| - m`` with ``m = min(|z|, w)`` and ``w = sqrt 3``."""
        a = np.abs(z)
        m = np.minimum(a, SQRT3)
        return _array(np.square(m) * (1 / (2 * SQRT3)) + SQRT3 / 6 + (a - m))


@dataclass(frozen=True)
class Logistic(Standard):
    """Logistic distribution with scale ``b = sqrt 3 / pi``."""

    name = "logistic"
    pdf_square_integral = math.pi / (6 * SQRT3)

    @override
    def cdf(self, z: FloatArray) -> FloatArray:
        return _array(special.expit(np.asarray(z) / LOGISTIC_SCALE))

    @override
    def quantile(self, p: FloatArray) -> FloatArray:
        return LOGISTIC_SCALE * _array(special.logit(np.asarray(p, dtype=float)))

    @override
    def log_pdf(self, z: FloatArray) -> FloatArray:
        x = np.abs(z) / LOGISTIC_SCALE
        return _array(-x - 2 * np.log1p(np.exp(-x)) - math.log(LOGISTIC_SCALE))

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """``b (x - 2 log F(x) - 1)`` with ``x = z / b``, even in x [1]_.

        References
        ----------
        .. [1] Jordan, Krueger and Lerch, 2019, Journal of Statistical Software 90, appendix A.
        """
        x = np.abs(z) / LOGISTIC_SCALE
        return LOGISTIC_SCALE * _array(x + 2 * np.log1p(np.exp(-x)) - 1)


@dataclass(frozen=True)
class StudentT(Standard):
    """Student t with ``dof`` degrees of freedom, scaled to standard deviation 1 if it has one (``dof > 2``)."""

    dof: float
    name = "student_t"

    @property
    def _scale(self) -> float:
        return math.sqrt((self.dof - 2) / self.dof) if self.has_variance else 1.0

    @property
    @override
    def has_variance(self) -> bool:
        return self.dof > 2

    @property
    @override
    def has_crps(self) -> bool:
        return self.dof > 0.5

    @property
    @override
    def pdf_square_integral(self) -> float:
        """``c^2 sqrt(pi v) Gamma(v + 1/2) / Gamma(v + 1)`` over the scale, with c the constant of the density."""
        return float(t_square_integral(np.asarray(self.dof))) / self._scale

    @override
    def cdf(self, z: FloatArray) -> FloatArray:
        return _array(special.stdtr(self.dof, np.asarray(z) / self._scale))

    @override
    def quantile(self, p: FloatArray) -> FloatArray:
        p = np.asarray(p, dtype=float)
        inner = _array(special.stdtrit(self.dof, p)) * self._scale
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inner))

    @override
    def log_pdf(self, z: FloatArray) -> FloatArray:
        t, v = np.asarray(z) / self._scale, self.dof
        return _array(_log_norm_of_t(v) - (v + 1) / 2 * np.log1p(t * t / v) - math.log(self._scale))

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """``t (2 F(t) - 1) + 2 f(t) (v + t^2) / (v - 1) - 2 sqrt(v) B(1/2, v - 1/2) / ((v - 1) B(1/2, v/2)^2)``.

        The formula [1]_ holds for every ``v > 1/2`` except 1, where it is 0/0; near 1 it is interpolated in v from
        two values on each side, to about 1e-12. Up to 1/2 the score is infinite.

        References
        ----------
        .. [1] Jordan, Krueger and Lerch, 2019, Journal of Statistical Software 90, appendix A.
        """
        t, v = np.asarray(z, dtype=float) / self._scale, self.dof
        if not self.has_crps:
            return np.full(t.shape, np.inf)
        if abs(v - 1) >= NEAR_CAUCHY:
            return self._scale * _crps_of_t(t, v)
        x, nodes = (v - 1) / NEAR_CAUCHY, range(-2, 3)
        total = np.zeros_like(t)
        for k in nodes:  # Lagrange's polynomial
            own = _crps_of_t(t, 1 + k * NEAR_CAUCHY) if k else _crps_of_cauchy(t)
            total += own * math.prod((x - j) / (k - j) for j in nodes if j != k)
        return total


NEAR_CAUCHY = 1e-3
"""Distance of the degrees of freedom from 1 below which the CRPS of Student's t is interpolated."""


LARGE = 20.0
"""From this argument on, the gamma ratio is computed from its series; differences of log gammas would lose digits."""


def log_gamma_ratio(x: npt.ArrayLike) -> FloatArray:
    """Logarithm of ``Gamma(x + 1/2) / (Gamma(x) sqrt x)``, which tends to 0, to about 1e-14.

    ``-1/(8 x) + 1/(192 x^3) - 1/(640 x^5) + 17/(14336 x^7) - 31/(18432 x^9)``, from Stirling's series.
    """
    x = np.asarray(x, dtype=float)
    u = 1 / np.square(np.maximum(x, LARGE))
    series = -1 / 8 + u * (1 / 192 + u * (-1 / 640 + u * (17 / 14336 - u * 31 / 18432)))
    small = np.minimum(x, LARGE)
    exact = special.gammaln(small + 0.5) - special.gammaln(small) - 0.5 * np.log(small)
    return _array(np.where(x < LARGE, exact, series / x))


def t_square_integral(v: FloatArray) -> FloatArray:
    """Integral of the squared density of Student's t with scale 1."""
    return _array(np.exp(2 * log_gamma_ratio(v / 2) + log_gamma_ratio(v)) / (2 * SQRT_PI))


def _log_norm_of_t(v: float) -> float:
    """Log of Student's density at 0."""
    return float(log_gamma_ratio(v / 2)) - 0.5 * math.log(2 * math.pi)


def _crps_of_t(t: FloatArray, v: float) -> FloatArray:
    density = np.exp(_log_norm_of_t(v) - (v + 1) / 2 * np.log1p(t * t / v))
    ratio = math.exp(2 * float(log_gamma_ratio(v / 2)) - float(log_gamma_ratio(v - 0.5)))
    spread = ratio * v * math.sqrt(v / (v - 0.5)) / SQRT_PI
    centered = 2 * _array(special.stdtr(v, np.abs(t))) - 1
    return np.abs(t) * centered + (2 * density * (v + t * t) - spread) / (v - 1)


def _crps_of_cauchy(t: FloatArray) -> FloatArray:
    """``(2/pi) (t atan t - log(1 + t^2) / 2 + log 2)``: its derivative is ``2 F - 1``."""
    return 2 / math.pi * (t * np.arctan(t) - 0.5 * np.log1p(t * t) + math.log(2))


GAUSSIAN, LAPLACE, UNIFORM, LOGISTIC = Gaussian(), Laplace(), Uniform(), Logistic()


NAMED: dict[str, Standard] = {family.name: family for family in (GAUSSIAN, LAPLACE, UNIFORM, LOGISTIC)}
"""The families without parameters of their own."""


@dataclass(frozen=True)
class ShapedSettings(Settings):
    """Settings with an unnamed distribution, such as a recalibrated one."""

    shape: Standard = GAUSSIAN


def shaped(settings: Settings, shape: Standard) -> Settings:
    """Settings with an unnamed distribution."""
    return ShapedSettings(**settings.to_dict(), shape=shape)


def family_of(settings: Settings) -> Standard:
    """The family that the settings name or contain."""
    if isinstance(settings, ShapedSettings):
        return settings.shape
    if settings.family == "student_t":
        return StudentT(settings.dof)
    return NAMED[settings.family]


def _array(values: Any) -> FloatArray:
    return np.asarray(values, dtype=np.float64)
