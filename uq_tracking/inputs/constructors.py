"""Constructors of predictions from what models give: samples, variances, intervals, evidence."""

from __future__ import annotations

from dataclasses import fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from uq_tracking.errors import EmptyInputError, SettingsError, ShapeError
from uq_tracking.inputs import moments
from uq_tracking.inputs.assemble import assemble, members_first, read_only, without_members
from uq_tracking.inputs.convert import Source, read_floats
from uq_tracking.inputs.validation import Wording, check_shapes

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_SAMPLES = Wording(
    mean="the mean of samples",
    std="the std of samples",
    non_finite_cure="one bad member spoils the sample",
)
_MEMBERS = Wording(
    mean="the mean of samples",
    std="the std of samples and member_std",
    non_finite_cure="a NaN, an infinity or a negative member_std in one member spoils the sample",
)
_VARIANCE = Wording(
    std="variance",
    negative_cure="pass variances, or use Predictions.from_log_variance",
)
_LOG_VARIANCE = Wording(
    std="exp(log_variance / 2)",
    non_finite_cure="log_variance must be finite, and below 1400 (177 in float32)",
)
_INTERVAL = Wording(
    mean="the midpoint of low and high",
    std="high - low",
    negative_cure="low exceeds high there: swap them",
)
_EVIDENCE = Wording(
    mean="gamma",
    std="the std of nu, alpha and beta",
    non_finite_cure="it is finite only for nu > 0, alpha > 1 and beta > 0",
)


class Options(TypedDict, total=False):
    """Options that every constructor of `Predictions` takes, explained there."""

    mask: Any
    on_invalid: Literal["raise", "drop"]
    std_floor: float | None
    groups: Any
    by: Any
    unit: str | None


class Constructors:
    """The constructors of `Predictions` besides the plain one; each takes its options too."""

    def _fill(self, values: dict[str, Any]) -> Self:
        """Set the attributes of a new object; a frozen dataclass allows no other way."""
        for item in fields(self):  # type: ignore[arg-type]  # Predictions, a dataclass, by the time of the call
            object.__setattr__(self, item.name, values.get(item.name))
        return self

    @classmethod
    def _new(cls, values: dict[str, Any]) -> Self:
        return object.__new__(cls)._fill(values)

    @classmethod
    def from_samples(
        cls,
        y_true: Any,
        samples: Any,
        member_std: Any = None,
        *,
        axis: int = 0,
        ddof: int = 0,
        **options: Unpack[Options],
    ) -> Self:
        """Moments of an ensemble, of Monte-Carlo dropout passes, or of draws from a predictive distribution.

        The members are an equally weighted mixture: its mean is the mean of the members' means; its variance
        is the mean of the members' variances (aleatoric) plus the variance of their means (epistemic);
        Lakshminarayanan et al. 2017, section 2.4. Without ``member_std`` the samples are draws, and the two
        parts cannot be told apart.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        samples : array, shape (M, ...)
            Draws, or with ``member_std`` the members' means; a list of M arrays will do.
        member_std : array, shape (M, ...), optional
            The members' standard deviations.
        axis
            The axis of the M members.
        ddof
            Divide the spread of the members by M - ddof. The default 0 gives the moments of the mixture.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            One member does not have the shape of ``y_true``.
        SettingsError
            A single member without a std has no uncertainty, or ``ddof`` leaves no degree of freedom.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_samples([0.0], [[1.0], [3.0]], [[1.0], [1.0]])
        >>> data.mean, data.std ** 2, data.aleatoric ** 2, data.epistemic ** 2
        (array([2.]), array([2.]), array([1.]), array([1.]))
        """
        truth = read_floats(y_true, "y_true")
        draws = members_first(read_floats(samples, "samples"), axis)
        noise = None if member_std is None else members_first(read_floats(member_std, "member_std"), axis)
        _check_members(truth, draws, noise)
        mixed = moments.mixture(draws.values, None if noise is None else noise.values, ddof)
        sources = (truth, *(without_members(source) for source in (draws, noise) if source is not None))
        wording = _SAMPLES if noise is None else _MEMBERS
        values = assemble(sources, mixed.mean, mixed.std, wording, **options)
        extra = {
            "aleatoric": mixed.aleatoric,
            "epistemic": mixed.epistemic,
            "samples": draws.values,
            "member_std": None if noise is None else noise.values,
        }
        return cls._new({**values, **{name: read_only(array) for name, array in extra.items()}})

    @classmethod
    def from_variance(cls, y_true: Any, y_pred: Any, variance: Any, **options: Unpack[Options]) -> Self:
        """Predictions whose uncertainty is a variance, in the target's unit squared.

        Parameters
        ----------
        y_true, y_pred, variance : arrays of one shape
            A negative variance is an error like a negative std.
        **options
            As for `Predictions`.
        """
        sources = read_equal(y_true=y_true, y_pred=y_pred, variance=variance)
        (std,) = moments.pointwise(moments.root, 1, sources[2].values)
        return cls._new(assemble(sources, sources[1].values, std, _VARIANCE, **options))

    @classmethod
    def from_log_variance(
        cls, y_true: Any, y_pred: Any, log_variance: Any, **options: Unpack[Options]
    ) -> Self:
        """Predictions whose uncertainty is the natural logarithm of a variance, as many networks put out.

        Parameters
        ----------
        y_true, y_pred, log_variance : arrays of one shape
        **options
            As for `Predictions`.
        """
        sources = read_equal(y_true=y_true, y_pred=y_pred, log_variance=log_variance)
        (std,) = moments.pointwise(moments.root_of_log, 1, sources[2].values)
        return cls._new(assemble(sources, sources[1].values, std, _LOG_VARIANCE, **options))

    @classmethod
    def from_interval(
        cls, y_true: Any, low: Any, high: Any, level: float, **options: Unpack[Options]
    ) -> Self:
        """Predictions given as a central interval, read as that of a Gaussian.

        The mean is the midpoint, the standard deviation (high - low) / (2 Q((1 + level) / 2)) with the
        standard normal quantile Q.

        Parameters
        ----------
        y_true, low, high : arrays of one shape, in the target's unit
        level
            Probability inside the interval, for example 0.9.
        **options
            As for `Predictions`.

        Raises
        ------
        SettingsError
            ``level`` does not lie between 0 and 1.
        InvalidValueError
            ``low`` exceeds ``high``.
        """
        if not 0 < level < 1:
            raise SettingsError(f"level={level!r}; pass a probability between 0 and 1, for example 0.9")
        sources = read_equal(y_true=y_true, low=low, high=high)
        to_moments = moments.interval_moments(2 * NormalDist().inv_cdf((1 + level) / 2))
        mean, std = moments.pointwise(to_moments, 2, sources[1].values, sources[2].values)
        return cls._new(assemble(sources, mean, std, _INTERVAL, **options))

    @classmethod
    def from_evidential(
        cls, y_true: Any, gamma: Any, nu: Any, alpha: Any, beta: Any, **options: Unpack[Options]
    ) -> Self:
        """Moments of deep evidential regression (Amini et al. 2020, eq. 5): a normal-inverse-gamma each.

        The mean is gamma, the aleatoric variance beta / (alpha - 1), the epistemic one
        beta / (nu (alpha - 1)); their sum is the square of ``std``.

        Parameters
        ----------
        y_true, gamma, nu, alpha, beta : arrays of one shape
            nu > 0, alpha > 1 (the variance is infinite below), beta > 0.
        **options
            As for `Predictions`.

        Raises
        ------
        InvalidValueError
            Parameters whose variance is not finite.
        """
        sources = read_equal(y_true=y_true, gamma=gamma, nu=nu, alpha=alpha, beta=beta)
        evidence = [source.values for source in sources[2:]]
        std, aleatoric, epistemic = moments.pointwise(moments.evidential_moments, 3, *evidence)
        values = assemble(sources, sources[1].values, std, _EVIDENCE, **options)
        return cls._new({**values, "aleatoric": read_only(aleatoric), "epistemic": read_only(epistemic)})


def read_equal(**arrays: Any) -> tuple[Source, ...]:
    """Read arrays of real numbers, by their argument names, and refuse unequal shapes."""
    sources = tuple(read_floats(value, name) for name, value in arrays.items())
    check_shapes(*((source.name, source.values.shape) for source in sources))
    return sources


def _check_members(truth: Source, draws: Source, noise: Source | None) -> None:
    shape, expected = draws.values.shape, truth.values.shape
    if shape[1:] != expected:
        raise ShapeError(
            f"with its members first, samples has shape {shape}, and y_true has {expected}: one member must "
            "have the shape of y_true; say which axis holds the members, for example axis=-1"
        )
    if noise is not None and noise.values.shape != shape:
        raise ShapeError(f"samples has shape {shape} and member_std {noise.values.shape}; they must be equal")
    if expected == ():
        raise ShapeError("y_true is a single number; pass arrays, for example [y_true]")
    if shape[0] == 0:
        raise EmptyInputError("samples has no members (M = 0 along the axis of members)")
    if shape[0] == 1 and noise is None:
        raise SettingsError(
            "samples has a single member (M = 1), so its spread is zero and says nothing about uncertainty; "
            "pass more members, their own member_std, or the right axis="
        )
