"""The options that affect the numbers, in one frozen object that every report carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal, get_args

from uq_tracking.checks import check_choice
from uq_tracking.errors import SettingsError

Family = Literal["gaussian", "laplace", "uniform", "logistic", "student_t"]

EXACT_LIMIT = 10_000_000
"""``statistics="auto"`` keeps exact statistics up to this many samples and a sketch above."""


def require_number(name: str, value: object) -> None:
    """Raise SettingsError for an option that is not a real number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise SettingsError(f"{name} is {value!r}; pass a number")


def check_seed(seed: object) -> None:
    """Raise SettingsError for an invalid random seed."""
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise SettingsError(f"seed is {seed!r}; pass a whole number, 0 or above")


def check_level(level: float) -> None:
    """Raise SettingsError for an invalid confidence level."""
    require_number("level", level)
    if not 0 < level < 1:
        raise SettingsError(f"level is {level}; pass a confidence level between 0 and 1, such as 0.95")


MOST_BINS = 10**6
"""More bins than any data set fills; at some point they would not fit in memory."""


@dataclass(frozen=True)
class Settings:
    """How statistics become scores.

    Parameters
    ----------
    alpha : float
        Share of the samples that ``merci`` and ``n_merci`` cover, in (0, 1].
    n_bins : int
        Number of equal-count bins for ``ence``, ``uce`` and the reliability curve.
    family : {"gaussian", "laplace", "uniform", "logistic", "student_t"}
        Family of the predicted distribution, which has the predicted mean and standard deviation. Coverage,
        calibration, PIT, log score, CRPS, quadratic, spherical, interval and pinball scores and recalibrations
        refer to it.
    dof : float
        Degrees of freedom of ``family="student_t"``. At or below 2 there is no standard deviation: predictions are
        then read as location and scale, and anything that needs a variance is undefined.
    unit : str or None
        Unit of the target, for axes and tables.
    """

    alpha: float = 0.95
    n_bins: int = 10
    family: Family = "gaussian"
    dof: float = 5.0
    unit: str | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "n_bins", "dof"):
            require_number(name, getattr(self, name))
        if self.unit is not None and not isinstance(self.unit, str):
            raise SettingsError(f"unit is {self.unit!r}; pass text such as 'm', or None")
        if not 0 < self.alpha <= 1:
            raise SettingsError(f"alpha is {self.alpha}; pass a share of the samples, in (0, 1]")
        if not 1 <= self.n_bins <= MOST_BINS or int(self.n_bins) != self.n_bins:
            raise SettingsError(f"n_bins is {self.n_bins}; pass a whole number from 1 to {MOST_BINS:,}")
        object.__setattr__(self, "n_bins", int(self.n_bins))
        check_choice("family", self.family, get_args(Family))
        if not self.dof > 0:
            raise SettingsError(f"dof is {self.dof}; pass degrees of freedom above 0")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Inverse of ``to_dict``; unknown names (from a newer version) are ignored."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})
