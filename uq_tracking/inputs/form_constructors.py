"""Constructors of predictions from distributions of every form: draws, ensembles, quantiles, intervals, objects."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from uq_tracking.errors import EmptyInputError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.inputs import moments
from uq_tracking.inputs.assemble import assemble, members_first, read_only, without_members
from uq_tracking.inputs.convert import FloatArray, Source, read_floats
from uq_tracking.inputs.forms.draws import score_draws
from uq_tracking.inputs.forms.scored import Scored
from uq_tracking.inputs.validation import Wording, check_shapes

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from uq_tracking.inputs.constructors import Options

QUANTILES_UP_TO = 5_000
"""Samples up to which the 199 quantiles that some scores need are searched for without being asked for."""

_DRAWS = Wording(
    mean="the mean of the draws",
    std="the std of the draws",
    non_finite_cure="every sample needs two draws that are finite; NaN draws are left out",
)
_MEMBERS = Wording(
    mean="the mean of the members",
    std="the std of the members",
    non_finite_cure="a NaN, an infinity or a negative std in one member spoils the sample",
)
_COMPONENTS = Wording(
    mean="the mean of the mixture",
    std="the std of the mixture",
    non_finite_cure="every component needs a finite mean and a std above 0",
)
_QUANTILES = Wording(
    mean="the point prediction of the quantiles",
    std="the spread of the quantiles",
    non_finite_cure="every quantile must be finite",
)
_INTERVAL = Wording(
    mean="the midpoint of low and high",
    std="high - low",
    negative_cure="low exceeds high there: swap them",
)
_LAW = Wording(
    mean="the distribution's mean or F(y)",
    std="the distribution's std",
    non_finite_cure="its parameters must be finite; for one without a variance pass an object that has quantiles",
)
_DENSITY = Wording(mean="y_pred or pit", std="y_std", non_finite_cure="pit lies between 0 and 1")


class FormConstructors:
    """The constructors of `Predictions` that keep the form of the predicted distribution."""

    if TYPE_CHECKING:

        @classmethod
        def _new(cls, values: dict[str, Any]) -> Self: ...

    @classmethod
    def from_samples(cls, y_true: Any, draws: Any, *, axis: int = 0, **options: Unpack[Options]) -> Self:
        """Draws from the predictive distribution, scored as what they are: nothing is fitted to them.

        The truth's rank among the draws gives its probability integral transform, spread over the gap it falls
        into, so that coverage and calibration do not depend on the number of draws; ``crps`` is the fair estimator.
        The mean is that of the draws, the variance ``1 + 1/M`` times theirs. Draws have no density: ``nll`` is
        undefined.

        For members that predict a mean (and a std) each, see `from_ensemble`.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        draws : array, shape (M, ...)
            Exchangeable draws; a list of M arrays will do. NaN (or masked) draws are left out, so that samples may
            have different numbers of them, two at least.
        axis
            The axis of the M draws.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            One draw does not have the shape of ``y_true``.
        SettingsError
            A single draw says nothing about uncertainty.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_samples([2.0], [[1.0], [2.0], [4.0]])
        >>> data.scored.columns["pit_low"], data.scored.columns["pit_high"]
        (array([0.25]), array([0.75]))
        """
        truth, source = read_floats(y_true, "y_true"), members_first(read_floats(draws, "draws"), axis)
        _check_members(truth, source, None, "draws")
        if source.left_out is not None:
            source = source._replace(values=np.where(source.left_out, np.nan, source.values), left_out=None)
        scored = score_draws(truth.values, source.values)
        made = _assembled((truth, without_members(source)), scored, _DRAWS, source.values.dtype, options)
        return cls._new({**made, "samples": read_only(source.values)})

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
        """Members of an ensemble or Monte-Carlo passes, each with a mean and, where it predicts one, a std.

        ``combine="gaussian"`` is the normal distribution with the moments of the equally weighted mixture: its mean
        is the mean of the members' means; its variance the mean of the members' variances (aleatoric) plus the
        variance of their means (epistemic); Lakshminarayanan et al. 2017, section 2.4. ``combine="mixture"`` scores
        the mixture of the members' normal distributions itself.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        means : array, shape (M, ...)
            The members' means; a list of M arrays will do.
        stds : array, shape (M, ...), optional
            The members' standard deviations; a mixture needs them.
        axis
            The axis of the M members.
        combine : {"gaussian", "mixture"}
        ddof
            Divide the spread of the means by M - ddof. The default 0 gives the moments of the mixture.
        quantile_scores : bool, optional
            Whether a mixture's quantiles are searched for, for ``pinball``, ``interval_score`` and
            ``interval_width_95``; by default up to 5000 samples.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            One member does not have the shape of ``y_true``.
        SettingsError
            A single member without a std has no uncertainty, a mixture has no stds, or ``ddof`` leaves no degree of
            freedom.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_ensemble([0.0], [[1.0], [3.0]], [[1.0], [1.0]])
        >>> data.mean, data.std ** 2, data.aleatoric ** 2, data.epistemic ** 2
        (array([2.]), array([2.]), array([1.]), array([1.]))
        """
        if combine not in ("gaussian", "mixture"):
            raise SettingsError(f"combine={combine!r}; choose gaussian or mixture")
        truth, source = read_floats(y_true, "y_true"), members_first(read_floats(means, "means"), axis)
        noise = None if stds is None else members_first(read_floats(stds, "stds"), axis)
        _check_members(truth, source, noise, "means")
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

            wanted = _wants_quantiles(truth, quantile_scores)
            scored = score_mixture(truth.values, source.values, noise.values, quantiles=wanted)
            values = _assembled(sources, scored, _COMPONENTS, mixed.mean.dtype, options)
        extra = {
            "aleatoric": mixed.aleatoric,
            "epistemic": mixed.epistemic,
            "samples": source.values,
            "member_std": None if noise is None else noise.values,
        }
        return cls._new({**values, **{name: read_only(array) for name, array in extra.items()}})

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
        trapezoid over them. ``coverage_90`` and the like are defined where both levels of that interval are given.
        Between the levels nothing is filled in, and ``nll`` is undefined.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        quantiles : array, shape (..., K)
            Where they cross they are sorted, and the samples counted in ``n_crossed``.
        levels : sequence of K floats
            Between 0 and 1, in the order of the quantiles.
        y_pred : array, shape (...), optional
            Your point prediction; by default the median, interpolated where it is not among the levels.
        axis
            The axis of the K quantiles.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            Shapes do not fit.
        SettingsError
            Levels are no probabilities, occur twice or do not enclose the median, and ``y_pred`` is not given.
        """
        truth, source = (
            read_floats(y_true, "y_true"),
            members_first(read_floats(quantiles, "quantiles"), axis),
        )
        _check_members(truth, source, None, "quantiles", fewest=1)
        from uq_tracking.inputs.forms.quantiles import score_quantiles

        given, order = _levels(levels, len(source.values))
        sources, point = [truth, without_members(source)], None
        if y_pred is not None:
            own = read_floats(y_pred, "y_pred")
            check_shapes((truth.name, truth.values.shape), (own.name, own.values.shape))
            sources, point = [*sources, own], own.values
        scored = score_quantiles(truth.values, source.values[order], given, point)
        return cls._new(_assembled(sources, scored, _QUANTILES, source.values.dtype, options))

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
        """Predictions given as a central interval: two quantiles, and nothing is assumed of what lies between.

        ``interval_coverage`` is the share of the truth inside. The mean is ``y_pred``, else the midpoint; the std,
        which only rankings and rescaling read, ``(high - low) / (2 Q((1 + level) / 2))`` with the standard normal
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
            ``level`` does not lie between 0 and 1.
        InvalidValueError
            ``low`` exceeds ``high``.
        """
        from uq_tracking.inputs.forms.quantiles import score_quantiles

        if not 0 < level < 1:
            raise SettingsError(f"level={level!r}; pass a probability between 0 and 1, for example 0.9")
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
        return cls._new(_assembled(sources, scored, _INTERVAL, dtype, options))

    @classmethod
    def from_distribution(
        cls,
        y_true: Any,
        dist: Any,
        *,
        quantile_scores: bool | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """A distribution object of scipy.stats, torch, NGBoost, GPyTorch, TensorFlow Probability or like these.

        Whatever has a distribution function and a log density, one distribution per sample. ``crps`` is a closed
        form where one is known (normal, Laplace, logistic, uniform, Student t, gamma, exponential, lognormal,
        mixtures of normals; sums for discrete distributions), else a quadrature to 1e-6. Where the variance does not
        exist, location and scale are the median and the interquartile range, and what needs a variance is undefined.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        dist
            Its parameters have the shape of ``y_true``, or broadcast to it.
        quantile_scores : bool, optional
            Whether to evaluate the quantiles for ``pinball``, ``interval_score`` and ``interval_width_95``, where the
            object has them; by default up to 5000 samples.
        **options
            As for `Predictions`.

        Raises
        ------
        InputTypeError
            The object has no distribution function or density.
        ShapeError
            Its parameters have another shape.
        """
        from uq_tracking.inputs.forms.distribution import score_distribution

        truth = read_floats(y_true, "y_true")
        check_shapes((truth.name, truth.values.shape))
        scored = score_distribution(truth.values, dist, quantiles=_wants_quantiles(truth, quantile_scores))
        return cls._new(_assembled((truth,), scored, _LAW, np.dtype(np.float64), options))

    @classmethod
    def from_density(
        cls,
        y_true: Any,
        *,
        pit: Any,
        y_pred: Any,
        y_std: Any,
        log_density: Any = None,
        crps: Any = None,
        **options: Unpack[Options],
    ) -> Self:
        """Any distribution at all, by what it says of each sample; for example an energy-based model on a grid.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        pit : array, shape (...), or a pair of arrays
            Distribution function at the truth, ``F(y)``; for a distribution with atoms ``F`` below and at the truth.
        y_pred, y_std : arrays, shape (...)
            Mean and standard deviation.
        log_density : array, shape (...), optional
            Natural logarithm of the density at the truth; without it ``nll`` is undefined.
        crps : array, shape (...), optional
            The CRPS of each sample; without it ``crps`` is undefined.
        **options
            As for `Predictions`.

        Raises
        ------
        InvalidValueError
            ``pit`` does not lie between 0 and 1, or falls within a pair.
        """
        low, high = pit if isinstance(pit, tuple | list) and len(pit) == 2 else (pit, pit)
        given = {"y_true": y_true, "y_pred": y_pred, "y_std": y_std, "pit": low, "upper pit": high}
        given |= {} if log_density is None else {"log_density": log_density}
        given |= {} if crps is None else {"crps": crps}
        sources = {name: read_floats(value, name) for name, value in given.items()}
        check_shapes(*((source.name, source.values.shape) for source in sources.values()))
        values = {name: source.values for name, source in sources.items()}
        outside = (values["pit"] < 0) | (values["upper pit"] > 1) | (values["upper pit"] < values["pit"])
        if np.any(outside & np.isfinite(values["y_true"])):
            raise InvalidValueError(
                f"pit has {int(np.count_nonzero(outside))} values outside [0, 1], or pairs that fall; pass F(y)"
            )
        columns = {
            "mean": values["y_pred"],
            "std": values["y_std"],
            "pit_low": values["pit"].astype(np.float64),
            "pit_high": values["upper pit"].astype(np.float64),
        }
        if log_density is not None:
            columns["nll"] = -values["log_density"].astype(np.float64)
        if crps is not None:
            columns["crps"] = values["crps"].astype(np.float64)
        dtype = np.result_type(values["y_pred"], values["y_std"])
        scored = Scored("density", columns)
        return cls._new(_assembled(list(sources.values()), scored, _DENSITY, dtype, options))


def _assembled(
    sources: Any, scored: Scored, wording: Wording, dtype: np.dtype[Any], options: Any
) -> dict[str, Any]:
    """The attributes of `Predictions`; a sample whose PIT is not known is as bad as one without a mean."""
    mean = np.where(np.isfinite(scored.columns["pit_low"]), scored.columns["mean"], np.nan).astype(dtype)
    values = assemble(tuple(sources), mean, scored.columns["std"].astype(dtype), wording, **options)
    kept: dict[str, FloatArray] = {}
    for name, column in scored.columns.items():
        if name not in ("mean", "std"):
            kept[name] = column.view()
            kept[name].flags.writeable = False
    return {**values, "scored": Scored(scored.form, kept, scored.facts)}


def _wants_quantiles(truth: Source, asked: bool | None) -> bool:
    return truth.values.size <= QUANTILES_UP_TO if asked is None else asked


def _levels(levels: Any, size: int) -> tuple[FloatArray, Any]:
    """Levels in ascending order, and the order that makes them so."""
    given = np.asarray(levels, dtype=np.float64)
    if given.shape != (size,):
        raise ShapeError(f"levels has shape {given.shape} for {size} quantiles; pass one level for each")
    order = np.argsort(given)
    given = given[order]
    if not (np.all(given > 0) and np.all(given < 1)):
        raise SettingsError("levels holds values that do not lie between 0 and 1; pass shares, such as 0.9")
    if np.any(np.diff(given) < 1e-9):
        raise SettingsError("levels holds a level twice; pass each once")
    return given, order


def _check_members(
    truth: Source, members: Source, noise: Source | None, name: str, *, fewest: int = 2
) -> None:
    shape, expected = members.values.shape, truth.values.shape
    what = "quantile" if name == "quantiles" else "member"
    if shape[1:] != expected:
        raise ShapeError(
            f"with its {what}s first, {name} has shape {shape}, and y_true has {expected}: one {what} must "
            f"have the shape of y_true; say which axis holds the {what}s, for example axis=-1"
        )
    if noise is not None and noise.values.shape != shape:
        raise ShapeError(f"{name} has shape {shape} and stds {noise.values.shape}; they must be equal")
    if expected == ():
        raise ShapeError("y_true is a single number; pass arrays, for example [y_true]")
    if shape[0] == 0:
        raise EmptyInputError(f"{name} has no {what}s (M = 0 along the axis of {what}s)")
    if shape[0] < fewest and noise is None:
        raise SettingsError(
            f"{name} has a single {what} (M = 1), so its spread is zero and says nothing about uncertainty; "
            "pass more, their own stds (from_ensemble), or the right axis="
        )
