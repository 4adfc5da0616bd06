"""The other constructors of `Predictions`: what models output instead of a mean and a standard deviation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from uq_tracking.checks import check_choice, check_flag, value_text, whole_number
from uq_tracking.errors import (
    EmptyInputError,
    InputTypeError,
    InvalidValueError,
    SettingsError,
    ShapeError,
    closest,
)
from uq_tracking.inputs.convert import FloatArray, LazyPredictions, Source, is_lazy, read_floats
from uq_tracking.inputs.forms.form import Columns, Form, Scored, in_blocks
from uq_tracking.inputs.forms.numbers import (
    Density,
    MeanStd,
    Numbers,
    Wording,
    combined_members,
    evidential_stds,
)
from uq_tracking.inputs.forms.probabilities import Probabilities
from uq_tracking.inputs.validation import check_shapes

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

QUANTILES_UP_TO = 5_000
"""The 199 quantiles that some scores need are computed by default for up to this many samples."""

COLUMN_OPTIONS = ("mask", "weights", "groups", "by")
"""Options that may also name a column."""
MOST_LISTED = 40

_VARIANCE = Wording(std="variance", negative_cure="pass variances, or use Predictions.from_log_variance")
_LOG_VARIANCE = Wording(
    std="exp(log_variance / 2)",
    non_finite_cure="log_variance must be finite and below 1400 (177 in float32)",
)
_EVIDENCE = Wording(
    mean="gamma",
    std="the std of nu, alpha and beta",
    non_finite_cure="it is finite only for nu > 0, alpha > 1 and beta > 0",
)
_VARIANCES = Wording(
    std="the root of the diagonal of cov",
    non_finite_cure="every variance on the diagonal must be finite and non-negative",
)
_DRAWS = Wording(
    mean="the mean of the draws",
    std="the std of the draws",
    non_finite_cure="every sample needs at least two finite draws; NaN draws are ignored",
)
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
_LAW = Wording(
    mean="the distribution's mean or F(y)",
    std="the distribution's std",
    non_finite_cure="its parameters must be finite; if it has no variance, pass an object with quantiles",
)
_DENSITY = Wording(mean="y_pred or pit", std="y_std", non_finite_cure="pit must be between 0 and 1")


class Beside(TypedDict, total=False):
    """Options that every constructor of `Predictions` accepts, explained there."""

    mask: Any
    weights: Any
    on_invalid: Literal["raise", "drop"]
    groups: Any
    by: Any


class Options(Beside, total=False):
    """Options of the constructors from forecasts of numbers."""

    std_floor: float | None
    unit: str | None


class Constructors:
    """The constructors of `Predictions` from what models output instead of a mean and a std."""

    @classmethod
    def made(cls, sources: Sequence[Source], form: Form, *args: Any, **options: Any) -> Self:
        """Join a form to a truth and check them, as `Predictions` does."""
        raise NotImplementedError

    @classmethod
    def of(cls, kind: type[Form], y_true: Any, arrays: Mapping[str, Any], **options: Any) -> Self:
        """Read a truth and the arrays that a form takes, as `Predictions` does."""
        raise NotImplementedError

    def with_vectors(
        self, function: Callable[..., Columns], arrays: tuple[FloatArray, ...], cost: int
    ) -> Self:
        """Add what ``function`` says about vectors along the target's last axis, as `Predictions` does."""
        raise NotImplementedError

    @classmethod
    def _of(cls, sources: Sequence[Source], form: Numbers, options: Options) -> Self:
        """Join a forecast of numbers, raised to the floor, to a truth."""
        own: Any = dict(options)
        return cls.made(sources, replace(form, std_floor=own.pop("std_floor", None)), **own)

    @classmethod
    def _later(
        cls,
        constructor: str,
        arrays: Mapping[str, Any],
        axes: Mapping[str, int],
        arguments: Mapping[str, Any],
        options: Any,
    ) -> Self:
        """Stand in for predictions of lazy arrays; `evaluate` and `log` make predictions from it block by block."""
        lazy: Any = LazyPredictions(constructor, arrays, axes, arguments, options)
        made: Self = lazy
        return made

    @classmethod
    def from_probs(
        cls,
        labels: Any,
        probs: Any,
        *,
        logits: bool = False,
        class_axis: int | None = None,
        members_axis: int | None = None,
        ignore_label: int | None = None,
        class_names: Sequence[str] | None = None,
        **options: Unpack[Beside],
    ) -> Self:
        """The predicted probability of each class, and the true class of each sample or pixel.

        float32 and float64 are kept as they are, float16 and bfloat16 become float32; samples are read piece by
        piece, never copied to float64 as a whole.

        Parameters
        ----------
        labels : integer array of any shape
            True classes 0 ... C - 1.
        probs : array of the labels' shape with an added axis of C classes
            Class probabilities, summing to 1, or logits. An array of exactly the labels' shape is a binary
            classifier's probability (or logit) of class 1. With ``members_axis`` the array has one more axis.
        logits : bool
            Whether ``probs`` holds logits; their softmax (a binary classifier's sigmoid) is then scored.
        class_axis : int, optional
            Axis of the classes in ``probs``; by default the one that the labels lack, such as 1 for (N, C, H, W).
            If two axes fit, it is the one along which probabilities sum to 1; logits need ``class_axis``.
        members_axis : int, optional
            Axis of the ensemble members, or Monte Carlo passes, in ``probs``; their probabilities are averaged with
            equal weights. A list of M arrays has its members on axis 0.
        ignore_label : int, optional
            Label of samples without a class; they are left out and counted in ``n_ignored``.
        class_names : sequence of str, optional
            Names of the classes, for figures.
        **options
            ``mask``, ``weights``, ``on_invalid``, ``groups`` and ``by``, as for `Predictions`. Invalid are samples
            whose probabilities are non-finite, negative or do not sum to 1.

        Raises
        ------
        InputTypeError
            Labels are not integers, or probabilities are not real numbers.
        ShapeError, AlignmentError
            Shapes or axis labels do not match, or two readings of the shapes fit.
        InvalidValueError
            Some labels are not a class, or probabilities are bad under ``on_invalid="raise"``.
        EmptyInputError
            No sample is left.
        SettingsError
            An option is out of range.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]
        >>> data = Predictions.from_probs([0, 2, 255], probs, ignore_label=255)
        >>> data.n, data.form.n_classes, data.counts["n_ignored"]
        (2, 3, 1)
        """
        return cls.of(
            Probabilities,
            labels,
            {"probs": probs},
            logits=logits,
            class_axis=class_axis,
            members_axis=members_axis,
            ignore_label=ignore_label,
            class_names=class_names,
            **options,
        )

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
        given = sources[2].values
        std = np.copysign(np.sqrt(np.abs(given)), given)  # negative ones stay negative, and are counted
        return cls._of(sources, MeanStd(mean=sources[1].values, std=std, wording=_VARIANCE), options)

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
        given = sources[2].values
        with np.errstate(all="ignore"):  # checks find and name non-finite values
            std = np.exp(0.5 * given, dtype=np.float64).astype(given.dtype)
        return cls._of(sources, MeanStd(mean=sources[1].values, std=std, wording=_LOG_VARIANCE), options)

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
        stds: dict[str, Any] = evidential_stds(*evidence)
        return cls._of(sources, MeanStd(mean=sources[1].values, wording=_EVIDENCE, **stds), options)

    @classmethod
    def from_ensemble(
        cls,
        y_true: Any,
        means: Any,
        stds: Any = None,
        *,
        axis: int | None = None,
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
        means : array, shape (M, ...) or (..., M)
            The members' means, or a list of M arrays.
        stds : array of that shape, optional
            The members' standard deviations; a mixture needs them.
        axis : int, optional
            The axis of the M members; by default the one that the truth lacks.
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
            A member does not have the shape of ``y_true``, or two axes may hold the members.
        SettingsError
            A single member has no std and hence no uncertainty, a mixture has no stds, or ``ddof`` leaves no degrees
            of freedom.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_ensemble([0.0], [[1.0], [3.0]], [[1.0], [1.0]])
        >>> data.mean, data.std ** 2, data.form.aleatoric ** 2, data.form.epistemic ** 2
        (array([2.]), array([2.]), array([1.]), array([1.]))
        """
        check_choice("combine", combine, ("gaussian", "mixture"))
        ddof = whole_number("ddof", ddof)
        if is_lazy(y_true):
            arrays = {"y_true": y_true, "means": means} | ({} if stds is None else {"stds": stds})
            wanted = wants_quantiles(math.prod(y_true.shape), quantile_scores)
            arguments = {"combine": combine, "ddof": ddof, "quantile_scores": wanted}
            axis = lazy_axis("means", means, y_true.shape, axis, "members")
            return cls._later(
                "from_ensemble", arrays, dict.fromkeys(list(arrays)[1:], axis), arguments, options
            )
        truth = read_floats(y_true, "y_true")
        source = members_first(means, "means", truth, axis, "member")
        noise = None if stds is None else members_first(stds, "stds", truth, axis, "member")
        check_members(truth, source, noise, "member")
        from uq_tracking.inputs.forms.mixture import Mixture, score_mixture

        if combine == "mixture" and noise is None:
            raise SettingsError(
                "a mixture needs the members' stds; pass them, or combine='gaussian', or draws with from_samples"
            )
        given = [part for part in (source, noise) if part is not None]
        members: dict[str, Any] = dict(
            zip(("samples", "member_std"), (part.values for part in given), strict=False)
        )
        if not 0 <= ddof < len(source.values):
            raise SettingsError(
                f"ddof={ddof} with {len(source.values)} samples leaves no degrees of freedom; pass 0 <= ddof < M"
            )
        dtype = np.result_type(*members.values())
        combined = partial(combined_members, ddof=ddof)
        found = in_blocks(combined, truth.values, *members.values(), cost=len(source.values))
        moments: dict[str, Any] = {name: column.astype(dtype) for name, column in found.items()}
        if noise is None or combine == "gaussian":
            form: Numbers = MeanStd(wording=_MEMBERS, **moments, **members)
        else:
            wanted = wants_quantiles(truth.values.size, quantile_scores)
            scored = score_mixture(truth.values, *members.values(), quantiles=wanted)
            parts = {name: moments[name] for name in ("aleatoric", "epistemic")}
            form = Mixture.of(scored, _COMPONENTS, dtype, **parts, **members)
        return cls._of((truth, *map(without_members, given)), form, options)

    @classmethod
    def from_samples(
        cls,
        y_true: Any,
        draws: Any,
        *,
        axis: int | None = None,
        joint: bool = False,
        **options: Unpack[Options],
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
        draws : array, shape (M, ...) or (..., M)
            Exchangeable draws, or a list of M arrays. NaN (or masked) draws are left out, so samples may have
            different numbers of draws, but at least two.
        axis : int, optional
            The axis of the M draws; by default the one that the truth lacks.
        joint : bool
            The last axis of ``y_true`` holds the components of vectors, and each draw is a draw of whole vectors:
            ``energy_score`` and ``variogram_score`` are also computed, from M^2 / 2 distances per vector.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            A draw does not have the shape of ``y_true``, or two axes may hold the draws.
        SettingsError
            There is only one draw, which says nothing about uncertainty.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_samples([2.0], [[1.0], [2.0], [4.0]])
        >>> data.form.columns["pit_low"], data.form.columns["pit_high"]
        (array([0.25]), array([0.75]))
        """
        check_flag("joint", joint)
        if is_lazy(y_true):
            arrays, arguments = {"y_true": y_true, "draws": draws}, {"joint": joint}
            axis = lazy_axis("draws", draws, y_true.shape, axis, "draws")
            return cls._later("from_samples", arrays, {"draws": axis}, arguments, options)
        truth = read_floats(y_true, "y_true")
        source = members_first(draws, "draws", truth, axis, "draw")
        check_members(truth, source, None, "draw")
        if source.left_out is not None:
            source = source._replace(values=np.where(source.left_out, np.nan, source.values), left_out=None)
        from uq_tracking.inputs.forms.draws import Draws, score_draws

        scored = score_draws(truth.values, source.values)
        form = Draws.of(scored, _DRAWS, source.values.dtype, samples=source.values)
        made = cls._of((truth, without_members(source)), form, options)
        if not joint:
            return made
        draws_last = np.moveaxis(source.values, 0, -2)
        cost = draws_last.shape[-2] * (2 + draws_last.shape[-1]) * 3
        from uq_tracking.inputs.forms.joint import draw_vectors

        return made.with_vectors(draw_vectors, (truth.values, draws_last), cost)

    @classmethod
    def from_quantiles(
        cls,
        y_true: Any,
        quantiles: Any,
        levels: Any,
        y_pred: Any = None,
        *,
        axis: int | None = None,
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
        quantiles : array, shape (..., K) or (K, ...)
            Crossing quantiles are sorted, and their samples counted in ``n_crossed``.
        levels : sequence of K floats
            Between 0 and 1, in the order of the quantiles.
        y_pred : array, shape (...), optional
            Your point prediction; by default the median, interpolated if it is not among the levels.
        axis : int, optional
            The axis of the K quantiles; by default the one that the truth lacks.
        **options
            As for `Predictions`.

        Raises
        ------
        ShapeError
            Shapes do not match, or two axes may hold the quantiles.
        SettingsError
            Levels are not probabilities or occur twice, or they do not enclose the median and ``y_pred`` is not
            given.
        """
        if is_lazy(y_true):
            arrays = {"y_true": y_true, "quantiles": quantiles} | (
                {} if y_pred is None else {"y_pred": y_pred}
            )
            axis = lazy_axis("quantiles", quantiles, y_true.shape, axis, "quantiles")
            return cls._later("from_quantiles", arrays, {"quantiles": axis}, {"levels": levels}, options)
        truth = read_floats(y_true, "y_true")
        source = members_first(quantiles, "quantiles", truth, axis, "quantile")
        check_members(truth, source, None, "quantile", fewest=1)
        from uq_tracking.inputs.forms.quantiles import Quantiles, score_quantiles

        given, order = _levels(levels, len(source.values))
        sources, point = [truth, without_members(source)], None
        if y_pred is not None:
            own = read_floats(y_pred, "y_pred")
            check_shapes((truth.name, truth.values.shape), (own.name, own.values.shape))
            sources, point = [*sources, own], own.values
        scored = score_quantiles(truth.values, source.values[order], given, point)
        return cls._of(sources, Quantiles.of(scored, _QUANTILES, source.values.dtype), options)

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
        if not (isinstance(level, Real) and 0 < level < 1):
            raise SettingsError(
                f"level is {value_text(level)}; pass a probability between 0 and 1, for example 0.9"
            )
        from uq_tracking.inputs.forms.quantiles import Interval, score_quantiles

        names = {"y_true": y_true, "low": low, "high": high} | ({} if y_pred is None else {"y_pred": y_pred})
        sources = read_equal(**names)
        truth, below, above = sources[:3]
        edges = np.stack([below.values, above.values])
        levels = np.asarray([(1 - level) / 2, (1 + level) / 2])
        point = None if y_pred is None else sources[3].values
        scored = score_quantiles(truth.values, edges, levels, point)
        with np.errstate(all="ignore"):  # checks find and name non-finite values
            gap = np.subtract(above.values, below.values, dtype=np.float64)
            middle = below.values + 0.5 * gap if point is None else point
        std = gap / (2 * NormalDist().inv_cdf((1 + level) / 2))
        columns = {**scored.columns, "std": std, "mean": middle}
        del columns["crps"]  # a trapezoid over two levels says next to nothing about it
        dtype = np.result_type(below.values, above.values)
        return cls._of(sources, Interval.of(Scored(columns, scored.facts), _INTERVAL, dtype), options)

    @classmethod
    def from_distribution(
        cls,
        y_true: Any,
        dist: Any,
        *,
        quantile_scores: bool | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """A distribution object from scipy.stats, torch, NGBoost, GPyTorch, TensorFlow Probability or similar.

        Any object with a distribution function and a log density, with one distribution per sample. ``crps`` uses a
        closed form if one is known (normal, Laplace, logistic, uniform, Student t, gamma, exponential, lognormal,
        mixtures of normals; sums for discrete distributions), else quadrature to 1e-6. If the variance does not
        exist, location and scale are the median and the interquartile range, and anything that needs a variance is
        undefined.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        dist
            Distribution whose parameters have the shape of ``y_true`` or broadcast to it.
        quantile_scores : bool, optional
            Whether to compute the quantiles for ``pinball``, ``interval_score`` and ``interval_width_95``, if the
            object provides them; by default for up to 5000 samples.
        **options
            As for `Predictions`.

        Raises
        ------
        InputTypeError
            The object has no distribution function or density.
        ShapeError
            Its parameters have another shape.
        """
        truth = read_floats(y_true, "y_true")
        check_shapes((truth.name, truth.values.shape))
        wanted = wants_quantiles(truth.values.size, quantile_scores)
        from uq_tracking.inputs.forms.distribution import Distribution, score_distribution
        from uq_tracking.inputs.forms.laws import read_law
        from uq_tracking.inputs.forms.mixture import Mixture

        law = read_law(dist)
        kind: type[Numbers] = Distribution if law.mixture is None else Mixture
        scored = score_distribution(truth.values, dist, law, quantiles=wanted)
        return cls._of((truth,), kind.of(scored, _LAW, np.dtype(np.float64)), options)

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
        """Any distribution at all, by its values at each sample; for example an energy-based model on a grid.

        Parameters
        ----------
        y_true : array, shape (...)
            Truth.
        pit : array, shape (...), or a pair of arrays
            Distribution function at the truth, ``F(y)``; for a distribution with atoms, ``F`` just below and at the
            truth.
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
            ``pit`` is not between 0 and 1, or decreases within a pair.
        """
        low, high = pit if isinstance(pit, tuple | list) and len(pit) == 2 else (pit, pit)
        given = {"y_true": y_true, "y_pred": y_pred, "y_std": y_std, "pit": low, "upper pit": high}
        given |= {} if log_density is None else {"log_density": log_density}
        given |= {} if crps is None else {"crps": crps}
        sources = read_equal(**given)
        values = {source.name: source.values for source in sources}
        outside = (values["pit"] < 0) | (values["upper pit"] > 1) | (values["upper pit"] < values["pit"])
        if np.any(outside & np.isfinite(values["y_true"])):
            raise InvalidValueError(
                f"pit has {int(np.count_nonzero(outside))} values outside [0, 1], or decreasing pairs; pass F(y)"
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
        return cls._of(sources, Density.of(Scored(columns), _DENSITY, dtype), options)

    @classmethod
    def from_covariance(
        cls, y_true: Any, y_pred: Any, cov: Any, *, joint: bool = True, **options: Unpack[Options]
    ) -> Self:
        """Vectors, each predicted by a multivariate normal distribution, such as those of a Gaussian process.

        Components are scored by their mean and variance, as individual samples. Whole vectors, without missing or
        masked components, give ``energy_score``, ``variogram_score`` and ``joint_nll``; ``joint_ks`` and
        ``joint_coverage_90`` check whether their Mahalanobis distances follow chi-square.

        Parameters
        ----------
        y_true, y_pred : arrays, shape (..., D)
            Truth and mean of vectors with D components.
        cov : array, shape (..., D, D) or (D, D)
            Covariance of each vector, or one for all.
        joint : bool
            Whether to score whole vectors, which requires the eigenvalues of each covariance.
        **options
            As for `Predictions`; ``mask``, ``groups`` and ``by`` in the shape of ``y_true``.

        Raises
        ------
        ShapeError
            Shapes do not fit.
        InvalidValueError
            A covariance is not symmetric or not positive definite.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> data = Predictions.from_covariance([[0.0, 1.0]], [[0.0, 0.0]], [[4.0, 1.0], [1.0, 9.0]])
        >>> data.std
        array([[2., 3.]])
        """
        check_flag("joint", joint)
        truth, mean = read_equal(y_true=y_true, y_pred=y_pred)
        given, shape = read_floats(cov, "cov").values, truth.values.shape
        if not shape or given.shape not in ((*shape, shape[-1]), (shape[-1], shape[-1])):
            wanted = (*shape, *shape[-1:])
            raise ShapeError(
                f"cov has shape {given.shape}; pass {wanted}, or one {wanted[-2:]} for all vectors"
            )
        every = np.broadcast_to(given, (*shape, shape[-1]))
        variance = np.einsum("...ii->...i", every).astype(np.float64)
        with np.errstate(invalid="ignore"):
            std = np.sqrt(variance).astype(np.result_type(mean.values, given))
        made = cls._of((truth, mean), MeanStd(mean=mean.values, std=std, wording=_VARIANCES), options)
        if not joint:
            return made
        cost = 6 * shape[-1] * shape[-1]
        from uq_tracking.inputs.forms.joint import gaussian_vectors

        return made.with_vectors(gaussian_vectors, (truth.values, mean.values, every), cost)

    @classmethod
    def from_frame(
        cls,
        table: Any,
        y_true: str,
        y_pred: str | None = None,
        y_std: str | float | None = None,
        *,
        quantiles: Mapping[float, str] | None = None,
        interval: tuple[str, str, float] | None = None,
        samples: str | Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Columns of a table by name: pandas, polars, a dict of arrays, or anything similar.

        State the uncertainty exactly once, by ``y_std``, ``quantiles``, ``interval`` or ``samples``.

        Parameters
        ----------
        table
            Any object with ``columns`` (or ``column_names``, or a mapping's keys) and ``table[name]``.
        y_true : str
            Column of the truth.
        y_pred : str, optional
            Column of the point prediction; required with ``y_std``.
        y_std : str or float, optional
            Column of the standard deviation, or one number for all samples.
        quantiles : dict of float to str, optional
            Columns of quantiles by their levels, as for `from_quantiles`.
        interval : (str, str, float), optional
            Columns of the lower and upper ends, and the probability between them, as for `from_interval`.
        samples : str or sequence of str, optional
            Columns of draws, or a pattern such as ``"draw_*"``, as for `from_samples`.
        **options
            As for `Predictions`; ``mask``, ``weights``, ``groups`` and ``by`` may also name columns.

        Raises
        ------
        SettingsError
            The table has no such column, or the uncertainty is not stated exactly once.
        InputTypeError
            It is not a table.

        Examples
        --------
        >>> from uq_tracking.inputs import Predictions
        >>> table = {"y": [1.0, 2.0], "low": [0.0, 0.5], "high": [3.0, 2.5]}
        >>> Predictions.from_frame(table, "y", interval=("low", "high", 0.9)).mean
        array([1.5, 1.5])
        """
        own: Any = dict(options)
        names, build = column_names(table), _stated(y_std, quantiles, interval, samples)
        for option in COLUMN_OPTIONS:
            if isinstance(own.get(option), str):
                own[option] = _column(table, names, own[option], option)
        truth = _column(table, names, y_true, "y_true")
        point = None if y_pred is None else _column(table, names, y_pred, "y_pred")
        if build == "quantiles" and quantiles:
            columns = [
                _column(table, names, name, f"quantiles[{level}]") for level, name in quantiles.items()
            ]
            return cls.from_quantiles(truth, columns, list(quantiles), point, axis=0, **own)
        if build == "interval" and interval:
            low, high = (_column(table, names, name, "interval") for name in interval[:2])
            return cls.from_interval(truth, low, high, interval[2], point, **own)
        if build == "samples":
            draws = [_column(table, names, name, "samples") for name in _several(samples, names)]
            return cls.from_samples(truth, draws, axis=0, **own)
        if point is None:
            raise SettingsError("y_std needs a point prediction; name its column with y_pred=")
        std = y_std if isinstance(y_std, Real) else _column(table, names, y_std, "y_std")
        return cls.of(MeanStd, truth, {"y_pred": point, "y_std": std}, **own)


def read_equal(**arrays: Any) -> tuple[Source, ...]:
    """Read arrays of real numbers by argument name, and reject unequal shapes."""
    sources = tuple(read_floats(value, name) for name, value in arrays.items())
    check_shapes(*((source.name, source.values.shape) for source in sources))
    return sources


def wants_quantiles(size: int, asked: bool | None) -> bool:
    """Return True if the quantiles of a continuous distribution are to be computed."""
    if asked is None:
        return size <= QUANTILES_UP_TO
    check_flag("quantile_scores", asked)
    return bool(asked)


def members_first(value: Any, name: str, truth: Source, axis: int | None, what: str) -> Source:
    """Read an array and move its axis of members, draws or quantiles to the front.

    Raises
    ------
    ShapeError
        There is no such axis, or several may be meant.
    """
    source = read_floats(value, name)
    values = source.values
    if axis is None:
        axis = _named_axis(truth, source)
    if axis is None and is_list_of(value, truth.values.shape):
        axis = 0
    axis = axis_of(name, values.shape, truth.values.shape, axis, what)
    axes = list(source.axes)
    if axes:
        axes.insert(0, axes.pop(axis))
    left_out = None if source.left_out is None else np.moveaxis(source.left_out, axis, 0)
    return source._replace(values=np.moveaxis(values, axis, 0), left_out=left_out, axes=tuple(axes))


def is_list_of(value: Any, shape: tuple[int, ...]) -> bool:
    """Return True for a list of arrays of this shape."""
    return isinstance(value, list | tuple) and all(
        tuple(getattr(item, "shape", ())) == shape != () for item in value
    )


def _named_axis(truth: Source, source: Source) -> int | None:
    """Return the axis of an xarray DataArray whose name the truth lacks."""
    if not truth.axes or len(source.axes) != len(truth.axes) + 1:
        return None
    known = {axis.name for axis in truth.axes if axis is not None}
    spare = [
        place
        for place, axis in enumerate(source.axes)
        if axis is not None and axis.package == "xarray" and axis.name not in known
    ]
    return spare[0] if len(spare) == 1 else None


def axis_of(name: str, shape: tuple[int, ...], truth: tuple[int, ...], axis: int | None, what: str) -> int:
    """Return the axis that the truth lacks; ShapeError if there is no such axis, or if several fit.

    Examples
    --------
    >>> axis_of("draws", (100, 7), (7,), None, "draw"), axis_of("draws", (7, 100), (7,), None, "draw")
    (0, 1)
    """
    if axis is not None:
        axis = whole_number("axis", axis)
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(f"{name} has shape {shape}, so there is no {what}s axis {axis}")
        return axis % len(shape)
    fits = [place for place in range(len(shape)) if (*shape[:place], *shape[place + 1 :]) == truth]
    if len(fits) > 1 and shape[fits[0]] > 1:
        choices = " or ".join(f"axis={place}" for place in fits)
        raise ShapeError(
            f"{name} has shape {shape} and y_true {truth}, so more than one axis may hold the {what}s; say which: "
            f"{choices}"
        )
    if not fits and len(shape):
        raise ShapeError(
            f"{name} has shape {shape}, but y_true has {truth}: each {what} must have the shape of y_true, and one "
            f"axis more holds the {what}s"
        )
    return fits[0] if fits else 0


def lazy_axis(name: str, value: Any, truth: tuple[int, ...], axis: int | None, what: str) -> int:
    """Return the axis of members of a lazy array, or of a list of lazy arrays, which is the first."""
    if isinstance(value, list | tuple):
        return 0 if axis is None else axis
    if axis is not None:
        return axis
    return axis_of(name, tuple(value.shape), tuple(truth), None, what.removesuffix("s"))


def without_members(source: Source) -> Source:
    """Masks and axes per sample: left out if any member is."""
    left_out = None if source.left_out is None else np.asarray(source.left_out.any(axis=0))
    return source._replace(left_out=left_out, axes=source.axes[1:])


def check_members(
    truth: Source, members: Source, noise: Source | None, what: str, *, fewest: int = 2
) -> None:
    """Reject members or quantiles if one does not have the target's shape, or if there are too few."""
    name, shape, expected = members.name, members.values.shape, truth.values.shape
    if shape[1:] != expected:
        raise ShapeError(
            f"with its {what}s first, {name} has shape {shape}, but y_true has {expected}: each {what} must "
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


def column_names(table: Any) -> list[Any]:
    """Names of the columns of any table; InputTypeError if it is not a table.

    Examples
    --------
    >>> column_names({"y": [1.0], "mu": [2.0]})
    ['y', 'mu']
    """
    if isinstance(table, Mapping):
        return list(table)
    for attribute in ("column_names", "columns"):
        names = getattr(table, attribute, None)
        if names is not None and hasattr(table, "__getitem__"):
            return list(names)
    raise InputTypeError(
        f"column names were given, but a {type(table).__name__} has no columns; pass a table first (a DataFrame or a "
        "dict of arrays), or pass arrays of quantiles, interval ends or draws to Predictions.from_quantiles, "
        "from_interval or from_samples"
    )


def _column(table: Any, names: Sequence[Any], name: Any, role: str) -> Any:
    try:
        known = name in names
    except (TypeError, ValueError):  # an array instead of a name
        known = False
    if known:
        return table[name]
    if not isinstance(name, str):
        raise SettingsError(f"{role} is a {type(name).__name__}; with a table, pass the name of a column")
    listed = ", ".join(map(str, names[:MOST_LISTED])) + (" ..." if len(names) > MOST_LISTED else "")
    raise SettingsError(f"the table has no column {name!r} for {role}{closest(name, names)}; it has {listed}")


def _several(samples: Any, names: Sequence[Any]) -> list[Any]:
    if not isinstance(samples, str):
        if not isinstance(samples, Iterable):
            raise SettingsError(
                f"samples is {value_text(samples)}; pass the columns of the draws, or a pattern"
            )
        return list(samples)
    found = [name for name in names if fnmatchcase(str(name), samples)]
    if not found:
        raise SettingsError(
            f"no column of the table matches {samples!r} for samples{closest(samples, names)}"
        )
    return found


def _stated(y_std: Any, quantiles: Any, interval: Any, samples: Any) -> str:
    """The one way in which the uncertainty is stated."""
    given = {"y_std": y_std, "quantiles": quantiles, "interval": interval, "samples": samples}
    found = [name for name, value in given.items() if value is not None]
    if len(found) != 1:
        raise SettingsError(
            f"the uncertainty is stated by {' and '.join(found) or 'no column'}; state it once: y_std=, "
            "quantiles={0.1: 'q10', ...}, interval=('low', 'high', 0.9) or samples="
        )
    if quantiles is not None and not isinstance(quantiles, Mapping):
        raise SettingsError(f"quantiles={quantiles!r}; pass columns by level: {{0.1: 'q10', 0.9: 'q90'}}")
    if interval is not None and not (isinstance(interval, tuple | list) and len(interval) == 3):
        raise SettingsError(
            f"interval is {value_text(interval)}; pass two columns and a level: ('low', 'high', 0.9)"
        )
    return found[0]
