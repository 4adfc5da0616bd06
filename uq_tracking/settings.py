"""The options of a call: those that affect the numbers, which every report carries, and what to compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal, get_args

from uq_tracking.checks import as_names, check_choice, check_flag, value_text
from uq_tracking.errors import SettingsError

Family = Literal["gaussian", "laplace", "uniform", "logistic", "student_t"]

EXACT_LIMIT = 10_000_000
"""``statistics="auto"`` keeps exact statistics up to this many samples and a sketch above."""


def require_number(name: str, value: object) -> None:
    """Raise SettingsError for an option that is not a real number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise SettingsError(f"{name} is {value_text(value)}; pass a number")


def check_seed(seed: object) -> None:
    """Raise SettingsError for an invalid random seed."""
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise SettingsError(f"seed is {seed!r}; pass a whole number, 0 or above")


def check_level(level: float) -> None:
    """Raise SettingsError for an invalid level of intervals."""
    if not (isinstance(level, Real) and 0 < level < 1):
        raise SettingsError(f"level is {value_text(level)}; pass a probability between 0 and 1, such as 0.95")


LONGEST_UNIT = 100
"""Characters of a unit, which stands at every score and on every axis."""

MOST_BINS = 500
"""Most bins: with them, floors and bands of two thousand simulated forecasts take less than 100 MB."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How statistics become scores.

    Parameters
    ----------
    alpha : float
        Share of the samples that ``merci`` and ``n_merci`` cover, in (0, 1].
    n_bins : int
        Number of equal-count bins for ``ence``, ``uce`` and the reliability curve, at most 500.
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
        if self.unit is not None and not (isinstance(self.unit, str) and len(self.unit) <= LONGEST_UNIT):
            raise SettingsError(f"unit is {value_text(self.unit)}; pass text such as 'm', or None")
        if not 0 < self.alpha <= 1:
            raise SettingsError(f"alpha is {self.alpha}; pass a share of the samples, in (0, 1]")
        if not 1 <= self.n_bins <= MOST_BINS or int(self.n_bins) != self.n_bins:
            raise SettingsError(f"n_bins is {self.n_bins}; pass a whole number from 1 to {MOST_BINS:,}")
        object.__setattr__(self, "n_bins", int(self.n_bins))
        check_choice("family", self.family, get_args(Family))
        if not self.dof > 0:
            raise SettingsError(f"dof is {self.dof}; pass degrees of freedom above 0")

    def to_dict(self) -> dict[str, Any]:
        """Plain values of the options that affect the numbers, ready for JSON."""
        return {item.name: getattr(self, item.name) for item in fields(Settings)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Inverse of ``to_dict``; unknown names (from a newer version) are ignored."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(Settings):
    """What to compute from a forecast and how: the `Settings`, and the options of `evaluate` beyond them.

    Parameters
    ----------
    metrics : iterable of str, optional
        Keys to compute; by default the whole suite.
    statistics : {"auto", "exact", "sketch"}
        Exact statistics, or a sketch of constant size; "auto" is exact up to ten million samples.
    calibration : optional
        Adds scores after recalibration, in ``report.recalibration``, and says how to obtain them:

        - a second set (``Predictions``, ``Report``, statistics, or a tuple like the scored arrays, such as
          ``(y_true, y_pred, y_std)`` or ``(labels, probs)``) to fit on;
        - fitted parameters (`recalibrate`), or a list of them;
        - True, a method's name or a list of names, without a second set: one half of the samples is scored before
          and after, with parameters fitted on the other half; whole groups if ``groups`` are given, else at random.
    recalibration : str or iterable of str, optional
        Methods to fit to the second set or to each half; by default ``std_scaling``; for class probabilities
        ``temperature``, or ``logistic`` if there are two.
    intervals : bool, optional
        Whether to compute confidence intervals, ``report.intervals``. By default only if ``groups`` are given, which
        are then resampled. True without groups resamples the samples as if they were independent: neighboring
        pixels are not, so their intervals come out much too narrow.
    level, seed
        Confidence level of the intervals, and random seed.
    reference : (mean, std) or probabilities, optional
        Arrays in the form of the forecast for ``kl_to_reference`` to compare with, such as those of a long MCMC run.
    curves : str or iterable of str, optional
        Curves to make besides the default ones: ``scale_sweep`` (proper scores with all stds multiplied by 0.1 ...
        10), ``by_members`` (metrics against the size of an ensemble), ``stability`` (metrics on growing subsets, with
        a verdict on the size of the test set in ``report.verdicts``).
    by_target : float or sequence of float, optional
        Width or edges of target intervals in which to compute the chosen metrics.
    curve_metrics : iterable of str, optional
        Metrics of these curves and of those over ``by``; by default six of different kinds.
    """

    metrics: Iterable[str] | None = None
    statistics: Literal["auto", "exact", "sketch"] = "auto"
    calibration: Any = None
    recalibration: Iterable[str] | None = None
    intervals: bool | None = None
    level: float = 0.95
    seed: int = 0
    reference: Any = None
    curves: Iterable[str] | None = None
    by_target: Any = None
    curve_metrics: Iterable[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level(self.level)
        check_seed(self.seed)
        if self.intervals is not None:
            check_flag("intervals", self.intervals)
        if self.recalibration is not None and self.calibration in (None, False):
            raise SettingsError(
                "recalibration= names methods but not what to fit them to; pass calibration= data or True"
            )
        for name in ("metrics", "recalibration", "curves", "curve_metrics"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else as_names(name, value))

    @property
    def settings(self) -> Settings:
        """The options that affect the numbers."""
        return Settings(**self.to_dict())


SCORE_OPTIONS = frozenset(field.name for field in fields(ScoreOptions))
