"""Location-scale families, standardised to mean 0 and standard deviation 1: everything is a function of z.

With ``z = (y - mu) / s`` the density of a sample is ``pdf(z) / s`` and its CRPS is ``s * crps(z)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from uq_tracking.settings import Settings

FloatArray = npt.NDArray[np.float64]
SQRT2, SQRT3, SQRT_PI = math.sqrt(2), math.sqrt(3), math.sqrt(math.pi)


class Standard(ABC):
    """A distribution with mean 0 and standard deviation 1."""

    name: str
    pdf_square_integral: float
    """Integral of the squared density; divided by s it is that of the scaled density."""

    @abstractmethod
    def cdf(self, z: FloatArray) -> FloatArray:
        """Share of the distribution at or below z."""

    @abstractmethod
    def quantile(self, p: FloatArray) -> FloatArray:
        """Inverse of ``cdf``; infinite at 0 and 1 where the support is."""

    @abstractmethod
    def pdf(self, z: FloatArray) -> FloatArray:
        """Density at z."""

    def central(self, level: npt.ArrayLike) -> FloatArray:
        """Half width of the central interval that holds the share ``level``."""
        return self.quantile((1 + np.asarray(level, dtype=float)) / 2)


class Proper(Standard):
    """A family whose proper scores have a closed form."""

    @abstractmethod
    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """Continuous ranked probability score of the standardised distribution at z, per unit of s.

        ``density`` is ``pdf(z)`` where it is known already.
        """


@dataclass(frozen=True)
class Gaussian(Proper):
    """Standard normal distribution."""

    name = "gaussian"
    pdf_square_integral = 1 / (2 * SQRT_PI)

    def cdf(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return _array(special.ndtr(z))

    def quantile(self, p: FloatArray) -> FloatArray:  # noqa: D102
        return _array(special.ndtri(p))

    def pdf(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return np.exp(-0.5 * np.square(z)) / math.sqrt(2 * math.pi)

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """``z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)``; ``2 Phi(z) - 1`` is erf, which keeps small z exact."""
        density = self.pdf(z) if density is None else density
        return z * _array(special.erf(z / SQRT2)) + 2 * density - 1 / SQRT_PI


@dataclass(frozen=True)
class Laplace(Proper):
    """Laplace distribution with scale ``b = 1 / sqrt 2``."""

    name = "laplace"
    pdf_square_integral = SQRT2 / 4

    def cdf(self, z: FloatArray) -> FloatArray:  # noqa: D102
        tail = 0.5 * np.exp(-SQRT2 * np.abs(z))
        return np.where(z < 0, tail, 1 - tail)

    def quantile(self, p: FloatArray) -> FloatArray:  # noqa: D102
        p = np.asarray(p, dtype=float)
        with np.errstate(divide="ignore"):
            return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p))) / SQRT2

    def pdf(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return np.exp(-SQRT2 * np.abs(z)) / SQRT2

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """``|z| + b exp(-|z| / b) - 3 b / 4``, the middle term being the density."""
        return np.abs(z) + (self.pdf(z) if density is None else density) - 0.75 / SQRT2


@dataclass(frozen=True)
class Uniform(Proper):
    """Uniform distribution with half width ``sqrt 3``."""

    name = "uniform"
    pdf_square_integral = 1 / (2 * SQRT3)

    def cdf(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return np.clip((np.asarray(z) / SQRT3 + 1) / 2, 0, 1)

    def quantile(self, p: FloatArray) -> FloatArray:  # noqa: D102
        return SQRT3 * (2 * np.asarray(p, dtype=float) - 1)

    def pdf(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return np.where(np.abs(z) <= SQRT3, 1 / (2 * SQRT3), 0.0)

    def crps(self, z: FloatArray, density: FloatArray | None = None) -> FloatArray:
        """``z^2 / (2 w) + w / 6`` inside the support and ``|z| - w / 3`` outside, ``w = sqrt 3``."""
        a = np.abs(z)
        return np.where(a <= SQRT3, np.square(np.minimum(a, SQRT3)) / (2 * SQRT3) + SQRT3 / 6, a - SQRT3 / 3)


@dataclass(frozen=True)
class StudentT(Standard):
    """Student t with ``dof`` degrees of freedom, scaled to standard deviation 1."""

    dof: float
    name = "student_t"

    @property
    def _scale(self) -> float:
        return math.sqrt((self.dof - 2) / self.dof)

    def cdf(self, z: FloatArray) -> FloatArray:  # noqa: D102
        return _array(special.stdtr(self.dof, np.asarray(z) / self._scale))

    def quantile(self, p: FloatArray) -> FloatArray:  # noqa: D102
        p = np.asarray(p, dtype=float)
        inner = _array(special.stdtrit(self.dof, p)) * self._scale
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inner))

    def pdf(self, z: FloatArray) -> FloatArray:  # noqa: D102
        t, v = np.asarray(z) / self._scale, self.dof
        log_norm = special.gammaln((v + 1) / 2) - special.gammaln(v / 2) - 0.5 * math.log(v * math.pi)
        return _array(np.exp(log_norm - (v + 1) / 2 * np.log1p(t * t / v)) / self._scale)


GAUSSIAN, LAPLACE, UNIFORM = Gaussian(), Laplace(), Uniform()


@dataclass(frozen=True)
class ShapedSettings(Settings):
    """Settings under a distribution that has no name, such as a recalibrated one."""

    shape: Standard = GAUSSIAN

    def to_dict(self) -> dict[str, Any]:
        """Plain values without the distribution."""
        return {field.name: getattr(self, field.name) for field in fields(Settings)}


def family_of(settings: Settings) -> Standard:
    """The family that the settings name or hold."""
    if isinstance(settings, ShapedSettings):
        return settings.shape
    if settings.family == "student_t":
        return StudentT(settings.dof)
    return {"gaussian": GAUSSIAN, "laplace": LAPLACE, "uniform": UNIFORM}[settings.family]


def _array(values: Any) -> FloatArray:
    return np.asarray(values, dtype=np.float64)
