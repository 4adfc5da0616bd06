"""Predictions from the members of an ensemble."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from uq_tracking.checks import check_choice, whole_number
from uq_tracking.errors import SettingsError
from uq_tracking.inputs import moments
from uq_tracking.inputs.assemble import assemble, members_first, read_only, without_members
from uq_tracking.inputs.constructors.base import Makes, Options, assembled, check_members, wants_quantiles
from uq_tracking.inputs.convert import read_floats
from uq_tracking.inputs.lazy import is_lazy
from uq_tracking.inputs.validation import Wording

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_MEMBERS = Wording(
    mean="the mean of the members",
    std="the std of the members",
    non_finite_cure="a NaN, infinity or negative std in any member invalidates the sample",
)
_COMPONENTS = Wording(
    mean="the mean of the mixture",
    std="the std of the mixture",
    non_finite_cure="every component needs a finite mean and a std above 0",
)


class FromEnsembles(Makes):
    """The constructor of `Predictions` from ensembles."""

    @classmethod
    def from_ensemble(
        cls,
        y_true: Any,
        means: Any,
        stds: Any = None,
        *,
        axis: int = 0,
        combine: Literal["gaussian", "mixture"] = "gaussian",
        ddof: int = 0,
        quantile_scores: bool | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Ensemble members or Monte Carlo passes, each with a mean and, if it predicts one, a std.

        ``combine="gaussian"`` is the normal distribution with the moments of the equally weighted mixture: its mean
        is the mean of the members' means; its variance is the mean of the members' variances (aleatoric) plus the
        variance of their means (epistemic); Lakshminarayanan et al. 2017, section 2.4. ``combine="mixture"`` scores
        the mixture of the members' normal distributions itself.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        means : array, shape (M, ...)
            The members' means, or a list of M arrays.
        stds : array, shape (M, ...), optional
            The members' standard deviations; a mixture needs them.
        axis
            The axis of the M members.
        combine : {"gaussian", "mixture"}
        ddof
            Divide the spread of the means by M - ddof. The default 0 gives the moments of the mixture.
        quantile_scores : bool, optional
            Whether to compute a mixture's quantiles, for ``pinball``, ``interval_score`` and ``interval_width_95``;
            by default for up to 5000 samples.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            A member does not have the shape of ``y_true``.
        SettingsError
            A single member has no std and hence no uncertainty, a mixture has no stds, or ``ddof`` leaves no degrees
            of freedom.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_ensemble([0.0], [[1.0], [3.0]], [[1.0], [1.0]])
        >>> data.mean, data.std ** 2, data.aleatoric ** 2, data.epistemic ** 2
        (array([2.]), array([2.]), array([1.]), array([1.]))
        """
        check_choice("combine", combine, ("gaussian", "mixture"))
        ddof = whole_number("ddof", ddof)
        if is_lazy(y_true):
            arrays = {"y_true": y_true, "means": means} | ({} if stds is None else {"stds": stds})
            wanted = wants_quantiles(math.prod(y_true.shape), quantile_scores)
            arguments = {"combine": combine, "ddof": ddof, "quantile_scores": wanted}
            return cls._later(
                "from_ensemble", arrays, dict.fromkeys(list(arrays)[1:], axis), arguments, options
            )
        truth, source = read_floats(y_true, "y_true"), members_first(read_floats(means, "means"), axis)
        noise = None if stds is None else members_first(read_floats(stds, "stds"), axis)
        check_members(truth, source, noise, "means")
        if combine == "mixture" and noise is None:
            raise SettingsError(
                "a mixture needs the members' stds; pass them, or combine='gaussian', or draws with from_samples"
            )
        mixed = moments.mixture(source.values, None if noise is None else noise.values, ddof)
        sources = (truth, *(without_members(part) for part in (source, noise) if part is not None))
        if noise is None or combine == "gaussian":
            values = assemble(sources, mixed.mean, mixed.std, _MEMBERS, **options)
        else:
            from uq_tracking.inputs.forms.mixture import score_mixture

            wanted = wants_quantiles(truth.values.size, quantile_scores)
            scored = score_mixture(truth.values, source.values, noise.values, quantiles=wanted)
            values = assembled(sources, scored, _COMPONENTS, mixed.mean.dtype, options)
        extra = {
            "aleatoric": mixed.aleatoric,
            "epistemic": mixed.epistemic,
            "samples": source.values,
            "member_std": None if noise is None else noise.values,
        }
        return cls._new({**values, **{name: read_only(array) for name, array in extra.items()}})
