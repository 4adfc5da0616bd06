"""Predictions: truth, predictive mean and standard deviation, checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from uq_tracking.errors import EmptyInputError, SettingsError, ShapeError
from uq_tracking.inputs import moments, storage
from uq_tracking.inputs.assemble import assemble, members_first, read_only, without_members
from uq_tracking.inputs.convert import AnyArray, BoolArray, FloatArray, read_floats
from uq_tracking.inputs.labels import spread
from uq_tracking.inputs.validation import BLOCK, Wording, blocks, check_shapes

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Options(TypedDict, total=False):
    """Options that every constructor of `Predictions` takes, explained there."""

    mask: Any
    on_invalid: Literal["raise", "drop"]
    std_floor: float | None
    groups: Any
    by: Any
    unit: str | None


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Predictions:
    """What was true, what was predicted, and how uncertain the prediction was.

    Every array may come from numpy (masked arrays too), lists, torch (any device, with or without gradient),
    xarray, pandas, or anything with ``__array__``. Their shapes must be equal: nothing is broadcast, and labelled
    arrays (xarray, pandas) must carry equal labels. float32 and float64 are kept, float16 and bfloat16 become
    float32, integers float64. The attributes are read-only views of the input wherever that is possible.

    Parameters
    ----------
    y_true : array of any shape, in the target's unit
        Truth. A non-finite value means "no ground truth here": left out and counted in ``n_missing``.
    y_pred : array of the same shape, in the target's unit
        Predictive mean.
    y_std : array of the same shape, in the target's unit
        Predictive standard deviation, >= 0. Zeros are counted in ``n_zero_std``.
    mask : bool array of the same shape, optional
        True leaves a sample out, as in ``numpy.ma``; the masks of masked arrays are added to it.
    on_invalid : {"raise", "drop"}
        What to do about a non-finite mean or std, or a negative std, where neither truth is missing nor masked.
        "drop" leaves such samples out and counts them in ``n_invalid``.
    std_floor : float, optional
        Smaller standard deviations are raised to it, after counting zeros.
    groups : labels, optional
        Samples that belong together, for honest confidence intervals: the image, scene or block of each sample.
        Of the target's shape, or one per entry of the first axis (one per image).
    by : labels, optional
        Strata to score separately; shapes as for ``groups``.
    unit : str, optional
        Unit of the target, for axes; read from the ``units`` attribute of an xarray target when not given.

    Raises
    ------
    InputTypeError
        Something is not an array of real numbers.
    ShapeError, AlignmentError
        Shapes, or labels of axes, differ.
    InvalidValueError
        Bad values under ``on_invalid="raise"``.
    EmptyInputError
        No sample is left.
    SettingsError
        An option is out of range.

    Examples
    --------
    >>> data = Predictions([1.0, float("nan"), 3.0], [1.5, 2.0, 2.0], [0.5, 1.0, 0.0])
    >>> data.n, data.counts["n_missing"], data.counts["n_zero_std"]
    (2, 1, 1)
    >>> target, mean, std = data.flat()
    >>> std
    array([0.5, 0. ])
    """

    target: FloatArray
    """Truth, in the input's shape."""
    mean: FloatArray
    """Predictive mean."""
    std: FloatArray
    """Predictive standard deviation, raised to ``std_floor`` where that was given."""
    valid: BoolArray | None
    """Which samples count; None when all do."""
    counts: dict[str, int]
    """``n`` (samples that count), ``n_missing``, ``n_masked``, ``n_invalid``, ``n_zero_std`` (among the ``n``)."""
    groups: AnyArray | None
    """Labels of the target's shape, or one per entry of the first axis."""
    by: AnyArray | None
    """Labels like ``groups``."""
    aleatoric: FloatArray | None
    """Standard deviation due to noise in the data, where the constructor can tell it apart."""
    epistemic: FloatArray | None
    """Standard deviation due to the model's ignorance, where the constructor can tell it apart."""
    samples: FloatArray | None
    """(M, ...) draws from the predictive distribution; the members' means when ``member_std`` is there."""
    member_std: FloatArray | None
    """(M, ...) standard deviations of the members."""
    std_floor: float | None
    """The floor that was applied."""
    unit: str | None
    """Unit of the target."""

    def __init__(
        self,
        y_true: Any,
        y_pred: Any,
        y_std: Any,
        *,
        mask: Any = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        std_floor: float | None = None,
        groups: Any = None,
        by: Any = None,
        unit: str | None = None,
    ) -> None:
        sources = (read_floats(y_true, "y_true"), read_floats(y_pred, "y_pred"), read_floats(y_std, "y_std"))
        check_shapes(*((source.name, source.values.shape) for source in sources))
        options = Options(
            mask=mask, on_invalid=on_invalid, std_floor=std_floor, groups=groups, by=by, unit=unit
        )
        self._fill(assemble(sources, sources[1].values, sources[2].values, Wording(), **options))

    def _fill(self, values: dict[str, Any]) -> Self:
        """Set the attributes of a new object; a frozen dataclass allows no other way."""
        for item in fields(self):
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

        The members are an equally weighted mixture: its mean is the mean of the members' means; its variance is the
        mean of the members' variances (aleatoric) plus the variance of their means (epistemic); Lakshminarayanan
        et al. 2017, section 2.4. Without ``member_std`` the samples are draws and the two parts cannot be told apart.

        Parameters
        ----------
        y_true : array, shape (...)
        samples : array, shape (M, ...)
            Draws, or with ``member_std`` the members' means; a list of M arrays will do.
        member_std : array, shape (M, ...), optional
            The members' standard deviations.
        axis
            The axis of the M members.
        ddof
            Divide the spread of the members by M - ddof. The default 0 gives the moments of the mixture itself.
        **options
            As for `Predictions`.

        Raises
        ------
        SettingsError
            A single member without a std has no uncertainty, or ``ddof`` leaves no degree of freedom.

        Examples
        --------
        >>> data = Predictions.from_samples([0.0], [[1.0], [3.0]], [[1.0], [1.0]])
        >>> data.mean, data.std ** 2, data.aleatoric ** 2, data.epistemic ** 2
        (array([2.]), array([2.]), array([1.]), array([1.]))
        """
        truth = read_floats(y_true, "y_true")
        draws = members_first(read_floats(samples, "samples"), axis)
        noise = None if member_std is None else members_first(read_floats(member_std, "member_std"), axis)
        check_shapes(("y_true", truth.values.shape), ("one member of samples", draws.values.shape[1:]))
        if noise is not None:
            check_shapes(("samples", draws.values.shape), ("member_std", noise.values.shape))
        _check_members(draws.values, noise is not None)
        spread_of = "samples" if noise is None else "samples and member_std"
        cure = "a NaN, an infinity or a negative member_std in any member spoils the sample"
        wording = Wording("y_true", "the mean of samples", f"the std of {spread_of}", cure)
        mixed = moments.mixture(draws.values, None if noise is None else noise.values, ddof)
        others = [without_members(source) for source in (draws, noise) if source is not None]
        values = assemble((truth, *others), mixed.mean, mixed.std, wording, **options)
        parts = {
            "aleatoric": mixed.aleatoric,
            "epistemic": mixed.epistemic,
            "samples": read_only(draws.values),
        }
        return cls._new({**values, **parts, "member_std": None if noise is None else read_only(noise.values)})

    @classmethod
    def from_variance(cls, y_true: Any, y_pred: Any, variance: Any, **options: Unpack[Options]) -> Self:
        """Predictions whose uncertainty is a variance, in the target's unit squared; options as for `Predictions`."""
        wording = Wording(std="variance", std_cure="pass variances, or use from_log_variance")
        return cls._from_spread(y_true, y_pred, variance, "variance", moments.root, wording, options)

    @classmethod
    def from_log_variance(
        cls, y_true: Any, y_pred: Any, log_variance: Any, **options: Unpack[Options]
    ) -> Self:
        """Predictions whose uncertainty is the natural logarithm of a variance; options as for `Predictions`."""
        wording = Wording(std="exp(log_variance / 2)")
        return cls._from_spread(
            y_true, y_pred, log_variance, "log_variance", moments.root_of_log, wording, options
        )

    @classmethod
    def _from_spread(
        cls,
        y_true: Any,
        y_pred: Any,
        spread: Any,
        name: str,
        to_std: moments.Moments,
        wording: Wording,
        options: Options,
    ) -> Self:
        sources = (read_floats(y_true, "y_true"), read_floats(y_pred, "y_pred"), read_floats(spread, name))
        check_shapes(*((source.name, source.values.shape) for source in sources))
        (std,) = moments.pointwise(to_std, 1, sources[2].values)
        return cls._new(assemble(sources, sources[1].values, std, wording, **options))

    @classmethod
    def from_interval(
        cls, y_true: Any, low: Any, high: Any, level: float, **options: Unpack[Options]
    ) -> Self:
        """Predictions given as a central interval, read as that of a Gaussian.

        The mean is the midpoint, the standard deviation (high - low) / (2 Q((1 + level) / 2)) with the standard
        normal quantile Q.

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
        sources = (read_floats(y_true, "y_true"), read_floats(low, "low"), read_floats(high, "high"))
        check_shapes(*((source.name, source.values.shape) for source in sources))
        width = 2 * NormalDist().inv_cdf((1 + level) / 2)
        mean, std = moments.pointwise(
            moments.interval_moments(width), 2, sources[1].values, sources[2].values
        )
        wording = Wording(
            "y_true", "the midpoint of low and high", "high - low", "low exceeds high there: swap them"
        )
        return cls._new(assemble(sources, mean, std, wording, **options))

    @classmethod
    def from_evidential(
        cls, y_true: Any, gamma: Any, nu: Any, alpha: Any, beta: Any, **options: Unpack[Options]
    ) -> Self:
        """Moments of deep evidential regression (Amini et al. 2020, eq. 5): a normal-inverse-gamma per sample.

        The mean is gamma, the aleatoric variance beta / (alpha - 1), the epistemic one beta / (nu (alpha - 1)); both
        add up in ``std``.

        Parameters
        ----------
        y_true, gamma, nu, alpha, beta : arrays of one shape
            nu > 0, alpha > 1 (the variance is infinite below), beta > 0.
        **options
            As for `Predictions`.
        """
        given = {"y_true": y_true, "gamma": gamma, "nu": nu, "alpha": alpha, "beta": beta}
        sources = tuple(read_floats(value, name) for name, value in given.items())
        check_shapes(*((source.name, source.values.shape) for source in sources))
        std, aleatoric, epistemic = moments.pointwise(
            moments.evidential_moments, 3, *(source.values for source in sources[2:])
        )
        cure = "the variance is finite only for nu > 0, alpha > 1 and beta > 0"
        wording = Wording("y_true", "gamma", "the std of nu, alpha and beta", cure)
        values = assemble(sources, sources[1].values, std, wording, **options)
        return cls._new({**values, "aleatoric": read_only(aleatoric), "epistemic": read_only(epistemic)})

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return self.counts["n"]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the input."""
        return self.target.shape

    def __repr__(self) -> str:
        left_out = "".join(
            f", {name}={count}" for name, count in self.counts.items() if count and name != "n"
        )
        return f"Predictions(n={self.n}, shape={self.shape}, dtype={self.std.dtype}{left_out})"

    def select(self, array: AnyArray) -> AnyArray:
        """The samples that count, 1-D in C order, of any array of the shape of ``target``; a view where possible."""
        if array.shape != self.shape:
            raise ShapeError(f"the array has shape {array.shape}, the predictions have {self.shape}")
        return array.reshape(-1) if self.valid is None else array[self.valid]

    def flat(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(target, mean, std) of the samples that count, 1-D; views when all count and memory is in C order."""
        return self.select(self.target), self.select(self.mean), self.select(self.std)

    def flat_labels(self, name: Literal["groups", "by"]) -> AnyArray:
        """The label of each sample that counts, 1-D.

        Raises
        ------
        SettingsError
            There are no such labels.
        """
        return self.select(spread(self._labels(name), self.shape))

    def label_codes(self, name: Literal["groups", "by"]) -> tuple[AnyArray, AnyArray]:
        """The distinct labels, sorted, and for each sample that counts the position of its label among them (int64).

        Lean where one label stands for a whole image: the labels themselves are not repeated.
        """
        labels = self._labels(name)
        distinct, codes = np.unique(labels, return_inverse=True)
        return distinct, self.select(spread(codes.reshape(labels.shape), self.shape))

    def _labels(self, name: Literal["groups", "by"]) -> AnyArray:
        labels = {"groups": self.groups, "by": self.by}[name]
        if labels is None:
            raise SettingsError(f"these predictions have no {name}; pass {name}= when making them")
        return labels

    def flat_samples(self) -> FloatArray | None:
        """(M, n) samples at the places that count, or None."""
        if self.samples is None:
            return None
        return (
            self.samples.reshape(len(self.samples), -1) if self.valid is None else self.samples[:, self.valid]
        )

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """(target, mean, std) of the samples that count, in 1-D blocks; reads any memory layout without a full copy.

        A block may be shorter than ``size``, and is only good until the next one is asked for.
        """
        if self.valid is None:
            yield from blocks(self.target, self.mean, self.std, size=size)
            return
        for target, mean, std, valid in blocks(self.target, self.mean, self.std, self.valid, size=size):
            if valid.any():
                yield target[valid], mean[valid], std[valid]

    def replace(self, *, mean: Any = None, std: Any = None) -> Predictions:
        """The same truth, samples and labels with another mean or std, for example after recalibration."""
        hidden = None if self.valid is None else ~self.valid
        new = Predictions(
            self.target,
            self.mean if mean is None else mean,
            self.std if std is None else std,
            mask=hidden,
            groups=self.groups,
            by=self.by,
            unit=self.unit,
        )
        new.counts.update({name: self.counts[name] for name in self.counts if name != "n_zero_std"})
        return new

    def target_digest(self) -> str:
        """Sixteen hexadecimal digits that two runs share if they were scored on the same truth.

        It covers the targets that count, in C order, as float64: so it does not depend on the dtype (a float32 array
        and its float64 copy agree), the array library or the shape, but on the order and on which samples count.
        """
        return storage.digest([self.target], self.valid)

    def digest(self) -> str:
        """Sixteen hexadecimal digits of targets, means and stds, made like `target_digest`."""
        return storage.digest([self.target, self.mean, self.std], self.valid)

    def save(self, path: str | Path) -> Path:
        """Write an npz file that `load` reads back with equal values, dtypes and shapes; it holds no pickles."""
        storage.write(Path(path), {item.name: getattr(self, item.name) for item in fields(self)})
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FileFormatError
            The file is damaged, foreign or too new.
        """
        values = storage.read(Path(path))
        arrays = (*storage.REQUIRED, *storage.OPTIONAL)
        return cls._new(
            {name: read_only(value) if name in arrays else value for name, value in values.items()}
        )


def _check_members(samples: FloatArray, have_std: bool) -> None:
    if samples.shape[0] == 0:
        raise EmptyInputError("samples has no members (M = 0 along the axis of members)")
    if samples.shape[0] == 1 and not have_std:
        raise SettingsError(
            "samples has a single member (M = 1), so its spread is zero and says nothing about uncertainty; "
            "pass more members, their own member_std, or the right axis="
        )
