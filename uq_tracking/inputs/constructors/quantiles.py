"""Predictions from quantiles and intervals."""

from __future__ import annotations

from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from uq_tracking.checks import value_text
from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs import moments
from uq_tracking.inputs.assemble import members_first, without_members
from uq_tracking.inputs.constructors.base import Makes, Options, assembled, check_members
from uq_tracking.inputs.convert import FloatArray, read_floats
from uq_tracking.inputs.lazy import is_lazy
from uq_tracking.inputs.validation import Wording, check_shapes

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_QUANTILES = Wording(
    mean="the point prediction of the quantiles",
    std="the spread of the quantiles",
    non_finite_cure="every quantile must be finite",
)
_INTERVAL = Wording(
    mean="the midpoint of low and high",
    std="high - low",
    negative_cure="low exceeds high there; swap them",
)


class FromQuantiles(Makes):
    """The constructors of `Predictions` from quantiles and intervals."""

    @classmethod
    def from_quantiles(
        cls,
        y_true: Any,
        quantiles: Any,
        levels: Any,
        y_pred: Any = None,
        *,
        axis: int = -1,
        **options: Unpack[Options],
    ) -> Self:
        """Predictive quantiles at any levels.

        ``pinball`` is the mean over these levels, ``wis`` the weighted interval score, ``crps`` (approximate) the
        trapezoid over them. ``coverage_90`` and the like are defined if both levels of that interval are given.
        Nothing is interpolated between the levels, and ``nll`` is undefined.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        quantiles : array, shape (..., K)
            Crossing quantiles are sorted, and their samples counted in ``n_crossed``.
        levels : sequence of K floats
            Between 0 and 1, in the order of the quantiles.
        y_pred : array, shape (...), optional
            Your point prediction; by default the median, interpolated if it is not among the levels.
        axis
            The axis of the K quantiles.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            Shapes do not match.
        SettingsError
            Levels are not probabilities or occur twice, or they do not enclose the median and ``y_pred`` is not
            given.
        """
        if is_lazy(y_true):
            arrays = {"y_true": y_true, "quantiles": quantiles} | (
                {} if y_pred is None else {"y_pred": y_pred}
            )
            return cls._later("from_quantiles", arrays, {"quantiles": axis}, {"levels": levels}, options)
        truth, source = (
            read_floats(y_true, "y_true"),
            members_first(read_floats(quantiles, "quantiles"), axis),
        )
        check_members(truth, source, None, "quantiles", fewest=1)
        from uq_tracking.inputs.forms.quantiles import score_quantiles

        given, order = _levels(levels, len(source.values))
        sources, point = [truth, without_members(source)], None
        if y_pred is not None:
            own = read_floats(y_pred, "y_pred")
            check_shapes((truth.name, truth.values.shape), (own.name, own.values.shape))
            sources, point = [*sources, own], own.values
        scored = score_quantiles(truth.values, source.values[order], given, point)
        return cls._new(assembled(sources, scored, _QUANTILES, source.values.dtype, options))

    @classmethod
    def from_interval(
        cls,
        y_true: Any,
        low: Any,
        high: Any,
        level: float,
        y_pred: Any = None,
        **options: Unpack[Options],
    ) -> Self:
        """Predictions given as a central interval: two quantiles, with no assumption about what lies between.

        ``interval_coverage`` is the share of targets inside. The mean is ``y_pred``, else the midpoint; the std,
        used only by rankings and rescaling, is ``(high - low) / (2 Q((1 + level) / 2))`` with the standard normal
        quantile Q.

        Parameters
        ----------
        y_true, low, high : arrays of one shape, in the target's unit
        level
            Probability inside the interval, for example 0.9.
        y_pred : array of that shape, optional
            Your point prediction.
        **options
            As for `Predictions`.

        Raises
        ------
        SettingsError
            ``level`` is not between 0 and 1.
        InvalidValueError
            ``low`` exceeds ``high``.
        """
        from uq_tracking.inputs.forms.quantiles import score_quantiles

        if not (isinstance(level, Real) and 0 < level < 1):
            raise SettingsError(
                f"level is {value_text(level)}; pass a probability between 0 and 1, for example 0.9"
            )
        names = {"y_true": y_true, "low": low, "high": high} | ({} if y_pred is None else {"y_pred": y_pred})
        sources = [read_floats(value, name) for name, value in names.items()]
        check_shapes(*((source.name, source.values.shape) for source in sources))
        truth, below, above = sources[:3]
        dtype = np.result_type(below.values, above.values)
        edges = np.stack([below.values, above.values])
        levels = np.asarray([(1 - level) / 2, (1 + level) / 2])
        point = None if y_pred is None else sources[3].values
        scored = score_quantiles(truth.values, edges, levels, point, form="interval")
        width = 2 * NormalDist().inv_cdf((1 + level) / 2)
        to_moments = moments.interval_moments(width)
        middle, std = moments.pointwise(to_moments, 2, below.values, above.values)
        scored = scored.with_columns(std=std, mean=middle if point is None else point)
        return cls._new(assembled(sources, scored, _INTERVAL, dtype, options))


def _levels(levels: Any, size: int) -> tuple[FloatArray, Any]:
    """Levels in ascending order, and the permutation that sorts them."""
    try:
        given = np.asarray(levels, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise SettingsError(f"levels is {value_text(levels)}; pass shares, such as [0.1, 0.5, 0.9]") from None
    if given.shape != (size,):
        raise ShapeError(f"levels has shape {given.shape} for {size} quantiles; pass one level for each")
    order = np.argsort(given)
    given = given[order]
    if not (np.all(given > 0) and np.all(given < 1)):
        raise SettingsError("levels holds values not between 0 and 1; pass shares, such as 0.9")
    if np.any(np.diff(given) < 1e-9):
        raise SettingsError("levels contains a duplicate; pass each level once")
    return given, order
