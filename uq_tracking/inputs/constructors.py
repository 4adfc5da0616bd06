"""The other constructors of `Predictions`: what models output instead of a mean and a standard deviation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from numbers import Real
from typing import Any, Literal, TypedDict, cast

import numpy as np

from uq_tracking.checks import check_flag, listing, value_text
from uq_tracking.errors import InputTypeError, SettingsError, ShapeError, closest
from uq_tracking.formatting import some_of
from uq_tracking.inputs.convert import Pieces, engine_of, read_floats
from uq_tracking.inputs.forms.form import Form
from uq_tracking.inputs.forms.mean_std import Density, MeanStd, Wording, evidential_stds
from uq_tracking.inputs.forms.probabilities import Probabilities
from uq_tracking.inputs.validation import read_equal
from uq_tracking.typed import Self, Unpack

PER_SAMPLE = ("mask", "weights", "groups", "by")
"""Options that say something of each sample; for a table they may also name a column."""
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


class OfClasses(TypedDict, total=False):
    """Options of class probabilities, explained in `Predictions.from_probs`."""

    logits: bool
    class_axis: int | None
    members_axis: int | None
    ignore_label: int | None
    classes: Sequence[str | int] | None
    event: int | str | None


OF_CLASSES: dict[str, Any] = {**dict.fromkeys(OfClasses.__annotations__), "logits": False}
"""These options and their defaults."""


class ProbsOptions(Beside, OfClasses):
    """Options of `Predictions.from_probs`."""


class FrameOptions(Options, OfClasses):
    """Options of `Predictions.from_frame`."""


class Constructors:
    """The constructors of `Predictions` from what models output instead of a mean and a std."""

    @classmethod
    def of(cls, kind: type[Form], y_true: Any, arrays: Mapping[str, Any], **options: Any) -> Self:
        """Read a truth and the arrays that a form takes, as `Predictions` does."""
        raise NotImplementedError

    @classmethod
    @listing(**OF_CLASSES, mask=None, weights=None, on_invalid="raise", groups=None, by=None)
    def from_probs(cls, labels: Any, probs: Any, **options: Unpack[ProbsOptions]) -> Self:
        """The predicted probability of each class, and the true class of each sample or pixel.

        float32 and float64 are kept as they are, float16 and bfloat16 become float32; samples are read piece by
        piece, never copied to float64 as a whole.

        Parameters
        ----------
        labels : array of integers, or of names, of any shape
            True classes 0 ... C - 1, or their names in ``classes``.
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
        classes : sequence of str or int, optional
            Names of the classes, in the order of ``probs``; the labels may then be these names. Whole numbers other
            than 0 ... C - 1 must be.
        event : int or str, optional
            Of two classes, the number or name of the one whose probability is judged; by default class 1.
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
        return cls.of(Probabilities, labels, {"probs": probs}, **options)

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
        source = read_floats(variance, "variance")
        std = np.copysign(np.sqrt(np.abs(source.values)), source.values)  # negative ones are counted
        arrays = {"y_pred": y_pred, "y_std": source._replace(values=std)}
        return cls.of(MeanStd, y_true, arrays, wording=_VARIANCE, **options)

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
        source = read_floats(log_variance, "log_variance")
        with np.errstate(all="ignore"):  # checks find and name non-finite values
            std = np.exp(0.5 * source.values, dtype=np.float64).astype(source.values.dtype)
        arrays = {"y_pred": y_pred, "y_std": source._replace(values=std)}
        return cls.of(MeanStd, y_true, arrays, wording=_LOG_VARIANCE, **options)

    @classmethod
    def from_evidential(
        cls, y_true: Any, gamma: Any, nu: Any, alpha: Any, beta: Any, **options: Unpack[Options]
    ) -> Self:
        """Deep evidential regression (Amini 2020, equation 5): one normal-inverse-gamma per sample, by its moments.

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
        truth, mean, *evidence = read_equal(y_true=y_true, gamma=gamma, nu=nu, alpha=alpha, beta=beta)
        parts = evidential_stds(*(source.values for source in evidence))
        std = evidence[0]._replace(values=parts.pop("std"))
        arrays = {"y_pred": mean, "y_std": std, "beside": evidence[1:], **parts}
        return cls.of(MeanStd, truth, arrays, wording=_EVIDENCE, **options)

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
        from uq_tracking.inputs.forms.distribution import Mixture

        return cls.of(
            Mixture,
            y_true,
            {"means": means, "stds": stds},
            axis=axis,
            combine=combine,
            ddof=ddof,
            quantile_scores=quantile_scores,
            **options,
        )

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
        from uq_tracking.inputs.forms.draws import Draws

        return cls.of(Draws, y_true, {"draws": draws}, axis=axis, joint=joint, **options)

    @classmethod
    def from_quantiles(
        cls,
        y_true: Any,
        quantiles: Any,
        levels: Any = None,
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
        from uq_tracking.inputs.forms.quantiles import Quantiles

        arrays = {"quantiles": quantiles, "y_pred": y_pred}
        return cls.of(Quantiles, y_true, arrays, levels=levels, axis=axis, **options)

    @classmethod
    def from_interval(
        cls,
        y_true: Any,
        low: Any,
        high: Any,
        level: float | Sequence[float],
        y_pred: Any = None,
        *,
        axis: int | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Predictions given as a central interval: two quantiles, with no assumption about what lies between.

        ``interval_coverage`` is the share of targets inside. The mean is ``y_pred``, else the midpoint; the std,
        used only by rankings and rescaling, is ``(high - low) / (2 Q((1 + level) / 2))`` with the standard normal
        quantile Q. Intervals at several levels are scored as quantiles, by `from_quantiles`.

        Parameters
        ----------
        y_true : array, shape (...)
        low, high : arrays of that shape, in the target's unit
            For several levels with an axis of levels, shape (..., K) or (K, ...), as MAPIE's ``intervals[:, 0]`` and
            ``intervals[:, 1]`` have it.
        level : float, or a sequence of K floats
            Probability inside the interval, for example 0.9.
        y_pred : array, shape (...), optional
            Your point prediction.
        axis : int, optional
            The axis of the K levels in ``low`` and ``high``; by default the one that the truth lacks.
        **options
            As for `Predictions`.

        Raises
        ------
        SettingsError
            ``level`` is not between 0 and 1.
        ShapeError
            Shapes do not match, or two axes may hold the levels.
        InvalidValueError
            ``low`` exceeds ``high``; at several levels these are sorted, and counted in ``n_crossed``.
        """
        from uq_tracking.inputs.forms.quantiles import Interval

        arrays = {"low": low, "high": high, "y_pred": y_pred}
        return cls.of(Interval, y_true, arrays, level=level, axis=axis, **options)

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
        closed form if one is known (normal, Laplace, logistic, uniform, Student t, gamma, beta, exponential,
        lognormal, mixtures of normals; sums for discrete distributions), else quadrature to 1e-6. If the variance
        does not exist, location and scale are the median and the interquartile range, and anything that needs a
        variance is undefined.

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
        from uq_tracking.inputs.forms.distribution import Distribution

        return cls.of(Distribution, y_true, {"dist": dist}, quantile_scores=quantile_scores, **options)

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
        arrays = {"pit": pit, "y_pred": y_pred, "y_std": y_std, "log_density": log_density, "crps": crps}
        return cls.of(Density, y_true, arrays, **options)

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
        own: Any = {"wording": _VARIANCES}
        if joint:
            from uq_tracking.inputs.forms.draws import gaussian_vectors, spread_over_vectors

            arrays, cost = (truth.values, mean.values, every), 6 * shape[-1] * shape[-1]
            own["vectors"] = partial(spread_over_vectors, gaussian_vectors, arrays, cost)
        return cls.of(MeanStd, truth, {"y_pred": mean, "y_std": std}, **own, **options)

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
        probs: str | Sequence[str] | None = None,
        **options: Unpack[FrameOptions],
    ) -> Self:
        """Columns of a table by name: pandas, polars, a dict of arrays, or anything similar.

        State the uncertainty exactly once, by ``y_std``, ``quantiles``, ``interval``, ``samples`` or ``probs``.

        A table that an engine holds (a Spark, Ray or dask DataFrame, a polars LazyFrame, a pyarrow dataset), a cursor
        of a database and an iterator of tables are not read here: `evaluate` and `log` count their pieces where they
        are, and add up.

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
        probs : str or sequence of str, optional
            Columns of class probabilities in the order of the classes, or a pattern; or one column, of lists of them
            or of the probability of class 1. As for `from_probs`, whose options then apply.
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
        stated: Any = {
            "y_std": y_std,
            "quantiles": quantiles,
            "interval": interval,
            "samples": samples,
            "probs": probs,
        }
        build, engine = _stated(stated, y_pred), engine_of(table)
        columns: dict[str, Any] = {"y_true": [y_true]} | ({} if y_pred is None else {"y_pred": [y_pred]})
        columns |= {option: [own[option]] for option in PER_SAMPLE if isinstance(own.get(option), str)}
        sets = own["by"] if isinstance(own.get("by"), Mapping) else {}
        columns |= {f"by[{name!r}]": [column] for name, column in sets.items() if isinstance(column, str)}
        ways = {"y_std": [y_std], "interval": [*(interval or ())][:2], "samples": samples, "probs": probs}
        if not isinstance(y_std, Real):
            columns[build] = list(quantiles.values()) if quantiles is not None else ways[build]
        if engine not in WITHOUT_NAMES:
            columns = _found_columns(table, columns)
        if engine is not None:
            of_tables = {**own, "by": None} if sets else own
            if arrays := [key for key in PER_SAMPLE if not isinstance(of_tables.get(key), str | None)]:
                raise SettingsError(
                    f"{', '.join(arrays)}: name a column, because this table is read in pieces"
                )
            pieces = Pieces(
                table,
                None if engine in WITHOUT_NAMES else [name for names in columns.values() for name in names],
                Probabilities if build == "probs" else MeanStd,
                partial(cls.from_frame, y_true=y_true, y_pred=y_pred, **stated, **own),
                {name: own[name] for name in ("on_invalid", "std_floor", "unit") if name in own},
            )
            return cast("Self", pieces)
        found = {role: [table[name] for name in names] for role, names in columns.items()}
        own |= {option: found[option][0] for option in PER_SAMPLE if option in found}
        if sets:
            own["by"] = {name: found.get(f"by[{name!r}]", [labels])[0] for name, labels in sets.items()}
        (truth,), (point,) = found["y_true"], found.get("y_pred", [None])
        if quantiles is not None:
            return cls.from_quantiles(truth, found["quantiles"], list(quantiles), point, axis=0, **own)
        if interval is not None:
            low, high = found["interval"]
            return cls.from_interval(truth, low, high, interval[2], point, **own)
        if samples is not None:
            return cls.from_samples(truth, found["samples"], axis=0, **own)
        if probs is not None:
            return cls.from_probs(truth, _matrix(found["probs"]), **own)
        std = y_std if isinstance(y_std, Real) else found["y_std"][0]
        return cls.of(MeanStd, truth, {"y_pred": point, "y_std": std}, **own)


WITHOUT_NAMES = ("iterator", "cursor")
"""Sources of tables whose columns are only known once a table has been read."""


def column_names(table: Any) -> list[Any]:
    """Names of the columns of any table; InputTypeError if it is not a table.

    Examples
    --------
    >>> column_names({"y": [1.0], "mu": [2.0]})
    ['y', 'mu']
    """
    if isinstance(table, Mapping):
        return list(table)
    if hasattr(table, "collect_schema"):
        return list(table.collect_schema().names())  # a polars LazyFrame warns if asked for its columns
    for source in (table, getattr(table, "schema", None)):
        for attribute in ("column_names", "columns", "names"):
            names = getattr(source, attribute, None)
            if names is not None and (hasattr(table, "__getitem__") or engine_of(table) is not None):
                return list(names() if callable(names) else names)
    raise InputTypeError(
        f"column names were given, but a {type(table).__name__} has no columns; pass a table first (a DataFrame or a "
        "dict of arrays), or pass arrays of quantiles, interval ends or draws to Predictions.from_quantiles, "
        "from_interval or from_samples"
    )


def _found_columns(table: Any, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the names of columns by role, with patterns resolved; SettingsError if the table lacks one."""
    names, found = column_names(table), {}
    for role, wanted in columns.items():
        found[role] = _several(wanted, names, role) if role in ("samples", "probs") else list(wanted)
        for name in found[role]:
            try:
                known = name in names
            except (TypeError, ValueError):  # an array instead of a name
                known = False
            if known:
                continue
            if not isinstance(name, str):
                raise SettingsError(
                    f"{role} is a {type(name).__name__}; with a table, pass the name of a column"
                )
            raise SettingsError(
                f"the table has no column {name!r} for {role}{closest(name, names)}; "
                f"it has {some_of(names, MOST_LISTED)}"
            )
    return found


def _several(wanted: Any, names: Sequence[Any], role: str) -> list[Any]:
    if not isinstance(wanted, str):
        if not isinstance(wanted, Iterable):
            what = "the draws" if role == "samples" else "the classes"
            raise SettingsError(f"{role} is {value_text(wanted)}; pass the columns of {what}, or a pattern")
        return list(wanted)
    found = [name for name in names if fnmatchcase(str(name), wanted)]
    if not found:
        raise SettingsError(f"no column of the table matches {wanted!r} for {role}{closest(wanted, names)}")
    return found


def _matrix(columns: Sequence[Any]) -> Any:
    """Join columns of one number per class, or read a single one of lists of them."""
    if len(columns) > 1:
        return np.stack([np.asarray(column) for column in columns], axis=-1)
    lists = np.asarray(columns[0])
    return np.stack(list(lists)) if lists.dtype == object and lists.size else columns[0]


def _stated(ways: Mapping[str, Any], y_pred: str | None) -> str:
    """The one way in which the uncertainty is stated."""
    found = [name for name, value in ways.items() if value is not None]
    if len(found) != 1:
        raise SettingsError(
            f"the uncertainty is stated by {' and '.join(found) or 'no column'}; state it once: y_std=, "
            "quantiles={0.1: 'q10', ...}, interval=('low', 'high', 0.9), samples= or probs="
        )
    (way,) = found
    value = ways[way]
    if way == "quantiles" and not isinstance(value, Mapping):
        raise SettingsError(f"quantiles={value!r}; pass columns by level: {{0.1: 'q10', 0.9: 'q90'}}")
    if way == "interval" and not (isinstance(value, tuple | list) and len(value) == 3):
        raise SettingsError(
            f"interval is {value_text(value)}; pass two columns and a level: ('low', 'high', 0.9)"
        )
    if way == "y_std" and y_pred is None:
        raise SettingsError("y_std needs a point prediction; name its column with y_pred=")
    return way
