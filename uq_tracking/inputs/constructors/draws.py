"""Predictions from draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.checks import check_flag
from uq_tracking.inputs.assemble import members_first, read_only, without_members
from uq_tracking.inputs.constructors.base import Makes, Options, assembled, check_members, with_vectors
from uq_tracking.inputs.convert import read_floats
from uq_tracking.inputs.forms.draws import score_draws
from uq_tracking.inputs.lazy import is_lazy
from uq_tracking.inputs.validation import Wording

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_DRAWS = Wording(
    mean="the mean of the draws",
    std="the std of the draws",
    non_finite_cure="every sample needs at least two finite draws; NaN draws are ignored",
)


class FromDraws(Makes):
    """The constructor of `Predictions` from draws."""

    @classmethod
    def from_samples(
        cls, y_true: Any, draws: Any, *, axis: int = 0, joint: bool = False, **options: Unpack[Options]
    ) -> Self:
        """Draws from the predictive distribution, scored as they are: nothing is fitted to them.

        The truth's rank among the draws gives its probability integral transform, spread over the gap it falls into,
        so that coverage and calibration do not depend on the number of draws; ``crps`` is the fair estimator. The
        mean is that of the draws, the variance ``1 + 1/M`` times theirs. Draws have no density, so ``nll`` is
        undefined.

        For members that each predict a mean (and a std), see `from_ensemble`.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        draws : array, shape (M, ...)
            Exchangeable draws, or a list of M arrays. NaN (or masked) draws are left out, so samples may have
            different numbers of draws, but at least two.
        axis
            The axis of the M draws.
        joint : bool
            The last axis of ``y_true`` holds the components of vectors, and each draw is a draw of whole vectors:
            ``energy_score`` and ``variogram_score`` are also computed, from M^2 / 2 distances per vector.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            A draw does not have the shape of ``y_true``.
        SettingsError
            There is only one draw, which says nothing about uncertainty.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_samples([2.0], [[1.0], [2.0], [4.0]])
        >>> data.scored.columns["pit_low"], data.scored.columns["pit_high"]
        (array([0.25]), array([0.75]))
        """
        check_flag("joint", joint)
        if is_lazy(y_true):
            arrays, arguments = {"y_true": y_true, "draws": draws}, {"joint": joint}
            return cls._later("from_samples", arrays, {"draws": axis}, arguments, options)
        truth, source = read_floats(y_true, "y_true"), members_first(read_floats(draws, "draws"), axis)
        check_members(truth, source, None, "draws")
        if source.left_out is not None:
            source = source._replace(values=np.where(source.left_out, np.nan, source.values), left_out=None)
        scored = score_draws(truth.values, source.values)
        made = assembled((truth, without_members(source)), scored, _DRAWS, source.values.dtype, options)
        if joint:
            from uq_tracking.inputs.forms.joint import draw_vectors

            draws_last = np.moveaxis(source.values, 0, -2)
            cost = draws_last.shape[-2] * (2 + draws_last.shape[-1]) * 3
            made = with_vectors(made, draw_vectors, (truth.values, draws_last), cost)
        return cls._new({**made, "samples": read_only(source.values)})
