"""Constructors of predictions from what models output instead of a std: variances and evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uq_tracking.inputs import moments
from uq_tracking.inputs.assemble import assemble, read_only
from uq_tracking.inputs.constructors.base import Makes, Options, read_equal
from uq_tracking.inputs.validation import Wording

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_VARIANCE = Wording(
    std="variance",
    negative_cure="pass variances, or use Predictions.from_log_variance",
)
_LOG_VARIANCE = Wording(
    std="exp(log_variance / 2)",
    non_finite_cure="log_variance must be finite and below 1400 (177 in float32)",
)
_EVIDENCE = Wording(
    mean="gamma",
    std="the std of nu, alpha and beta",
    non_finite_cure="it is finite only for nu > 0, alpha > 1 and beta > 0",
)


class FromVariances(Makes):
    """The constructors of `Predictions` from variances and evidence."""

    @classmethod
    def from_variance(cls, y_true: Any, y_pred: Any, variance: Any, **options: Unpack[Options]) -> Self:
        """Predictions whose uncertainty is a variance, in the target's unit squared.

        Parameters
        ----------
        y_true, y_pred, variance : arrays of one shape
            A negative variance is an error, like a negative std.
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
        """Predictions whose uncertainty is the natural log of a variance, as many networks output.

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
    def from_evidential(
        cls, y_true: Any, gamma: Any, nu: Any, alpha: Any, beta: Any, **options: Unpack[Options]
    ) -> Self:
        """Deep evidential regression (Amini et al. 2020, eq. 5): one normal-inverse-gamma per sample, by its moments.

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
            The variance is not finite for some parameters.
        """
        sources = read_equal(y_true=y_true, gamma=gamma, nu=nu, alpha=alpha, beta=beta)
        evidence = [source.values for source in sources[2:]]
        std, aleatoric, epistemic = moments.pointwise(moments.evidential_moments, 3, *evidence)
        values = assemble(sources, sources[1].values, std, _EVIDENCE, **options)
        return cls._new({**values, "aleatoric": read_only(aleatoric), "epistemic": read_only(epistemic)})
