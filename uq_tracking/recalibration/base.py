"""Base of every method: frozen parameters that know what they were fitted on, how they are stored and checked."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.checks import check_version, read_json, value_text, written
from uq_tracking.errors import (
    FileFormatError,
    InputTypeError,
    InvalidValueError,
    RecalibrationError,
    SettingsError,
    ShapeError,
)
from uq_tracking.families import Standard, family_of
from uq_tracking.inputs.convert import Source, read_floats
from uq_tracking.inputs.forms.probabilities import (
    Probabilities,
    are_probabilities,
    probabilities_of,
    refuse_probabilities,
)
from uq_tracking.inputs.labels import spread
from uq_tracking.metrics.registry import TaskName
from uq_tracking.settings import Family, Settings
from uq_tracking.statistics.layout import Rows
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.weights import WEIGHT
from uq_tracking.typed import DAMAGE, Self, override, plain, record

if TYPE_CHECKING:
    from uq_tracking.inputs import Predictions

FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Logits = npt.NDArray[Any]
Weights = npt.NDArray[Any] | None

FORMAT = "uq_tracking.recalibration"
SCHEMA = 1
"""Version of the file format; increased when older readers would misread new files."""
AT_ONCE = 1 << 22
"""Samples recalibrated at a time."""


@dataclass(frozen=True)
class FittedOn:
    """The set on which parameters were fitted.

    Attributes
    ----------
    n : int
        Number of samples.
    source : {"exact", "sketch", "arrays"}
        Kind of the statistics, or the arrays themselves.
    split : str or None
        Name of the set, such as "validation".
    digest : str or None
        Digest of its predictions; see ``Predictions.digest``.
    std_floor : float or None
        The floor to which its standard deviations were raised.
    """

    n: int
    source: str
    split: str | None = None
    digest: str | None = None
    std_floor: float | None = None


@dataclass(frozen=True, kw_only=True)
class Recalibration(ABC):
    """Fitted parameters as plain data: compared by value, hashable, unchanged by a round trip through JSON.

    A method is a subclass under ``@recalibrator``. Its fields are the parameters, and its classmethod ``fit`` finds
    them; what it receives is stated by `RegressionRecalibration` and `ClassificationRecalibration`. One
    ``of_samples`` has ``fit_to`` instead.

    Attributes
    ----------
    method : str
        Name of the method: ``uq.recalibrate(..., name)``.
    task : str
    """

    method: ClassVar[str]
    task: ClassVar[TaskName]

    of_samples: ClassVar[bool] = False
    """True for a method that is fitted to predictions, because statistics do not hold what it needs."""

    fitted_on: FittedOn

    @classmethod
    def fit(cls, *data: Any, **options: Any) -> Self:
        """Find the parameters; the classes of the tasks say from what."""
        raise NotImplementedError

    @classmethod
    def fit_to(cls, data: Predictions, settings: Settings, fitted_on: FittedOn) -> Self:
        """Fit to predictions, where statistics do not hold what is fitted."""
        raise NotImplementedError

    @abstractmethod
    def rows_after(self, data: Predictions) -> Iterator[Rows]:
        """Return the rows of predictions of its task after the recalibration, block by block."""

    @staticmethod
    def _check_finite(name: str, values: Sequence[float]) -> None:
        """Raise RecalibrationError if a parameter is not a finite number."""
        if not all(isinstance(value, float | int) and math.isfinite(value) for value in values):
            raise RecalibrationError(
                f"{name} must hold finite numbers; the input overflows, or the file is damaged"
            )

    @classmethod
    def _check_positive(cls, name: str, values: Sequence[float]) -> None:
        """Raise RecalibrationError if a parameter is not a finite number above zero."""
        cls._check_finite(name, values)
        if not all(value > 0 for value in values):
            raise RecalibrationError(f"{name} must be above 0")

    @classmethod
    def _check_increasing(cls, name: str, values: Sequence[float]) -> None:
        """Raise RecalibrationError if a table decreases."""
        cls._check_finite(name, values)
        if any(b < a for a, b in pairwise(values)):
            raise RecalibrationError(f"{name} must not decrease from one entry to the next")

    @classmethod
    def _check_line(cls, name: str, stated: Sequence[float], observed: Sequence[float]) -> None:
        """Raise RecalibrationError unless these are points of an increasing line, with ``observed`` above zero."""
        cls._check_increasing(name, stated)
        cls._check_increasing("observed", observed)
        cls._check_positive("observed", observed)
        if len(stated) != len(observed) or not stated:
            raise RecalibrationError(f"{name} and observed must be two columns of one table")

    @property
    def shape(self) -> Standard | None:
        """Distribution of the standardized error after recalibration, if the method has its own."""
        return None

    @abstractmethod
    def scalars(self) -> dict[str, float]:
        """Return the few numbers worth plotting across runs, by name."""

    def parameters(self) -> dict[str, Any]:
        """Return every parameter as plain values."""
        return {
            item.name: plain(getattr(self, item.name)) for item in fields(self) if item.name != "fitted_on"
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that ``from_dict`` reads back."""
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "method": self.method,
            "parameters": self.parameters(),
            "fitted_on": asdict(self.fitted_on),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return strict JSON; also write it to ``path`` if given."""
        return written(json.dumps(self.to_dict(), allow_nan=False, indent=1), path)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what ``to_dict`` returned, of any method if called on ``Recalibration``.

        Raises
        ------
        FileFormatError
            The values are foreign, damaged, too new, or from a method other than this class's.
        """
        kind = _kind(values)
        if not issubclass(kind, cls):
            raise FileFormatError(f"this is a recalibration by {kind.method}; read it with {kind.__name__}")
        try:
            parameters = {name: _tuples(value) for name, value in values["parameters"].items()}
            return kind(fitted_on=record(FittedOn, values["fitted_on"]), **parameters)
        except DAMAGE as error:
            raise FileFormatError(f"the recalibration by {kind.method} is damaged ({error})") from error

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Read what ``to_json`` returned or wrote: the text, or the path of its file; errors as for ``from_dict``."""
        return cls.from_dict(read_json(source))


def _kind(values: Any) -> type[Any]:
    """Return the class of the recalibration that values describe."""
    if not isinstance(values, Mapping) or values.get("format") != FORMAT:
        raise FileFormatError(f"this is not a recalibration: it does not state the format {FORMAT!r}")
    check_version("the recalibration", values.get("schema"), SCHEMA)
    method, known = str(values.get("method")), plugins.recalibrators()
    if method not in known:
        raise FileFormatError(
            f"no installed package knows the recalibration method {method!r}; known are {', '.join(known)}"
        )
    return known[method]


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


M = TypeVar("M", bound=type[Recalibration])


def recalibrator(method: M) -> M:
    """Declare a method: a plugin whose module holds the class offers it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @recalibrator
    ... @dataclass(frozen=True, kw_only=True)
    ... class Doubled(RegressionRecalibration):
    ...     "Every standard deviation times two."
    ...     method = "doubled"
    ...     def new_std(self, std):
    ...         return 2 * std
    ...     @classmethod
    ...     def fit(cls, statistics, settings, fitted_on):
    ...         return cls.fitted(settings, fitted_on)
    ...     def scalars(self):
    ...         return {}
    >>> Doubled(fitted_on=FittedOn(0, "exact")).apply_std([1.0])
    array([2.])
    """
    return plugins.declare("uq_recalibrators", method, method)


@dataclass(frozen=True, kw_only=True)
class RegressionRecalibration(Recalibration):
    """Recalibration of a mean and a standard deviation.

    ``family`` and ``dof`` name the distribution whose quantiles the recalibrated prediction has, as in
    ``Settings``.
    """

    task: ClassVar[TaskName] = "regression"

    family: Family = "gaussian"
    dof: float = 5.0

    def __post_init__(self) -> None:
        Settings(family=self.family, dof=self.dof)

    @classmethod
    @override
    def fit(cls, statistics: Statistics, settings: Settings, fitted_on: FittedOn) -> Self:
        """Fit to regression statistics.

        Raises
        ------
        RecalibrationError
            The method cannot be fitted to them; the message says why and what to do.
        """
        raise NotImplementedError

    @classmethod
    def fitted(cls, settings: Settings, fitted_on: FittedOn, **parameters: Any) -> Self:
        """Return the recalibration with these parameters, for the settings' family; arrays become tuples."""
        plain = {
            name: tuple(value.tolist()) if isinstance(value, np.ndarray) else value
            for name, value in parameters.items()
        }
        return cls(family=settings.family, dof=settings.dof, fitted_on=fitted_on, **plain)

    @classmethod
    def _require_samples(cls, statistics: Statistics, needed: int) -> None:
        """Raise RecalibrationError unless there are enough samples."""
        n = statistics.counts["n"]
        if n < needed:
            raise RecalibrationError(
                f"{cls.method} needs at least {needed} samples, but there are {n}; pass a larger set"
            )

    @classmethod
    def _require_positive_std(cls, statistics: Statistics) -> None:
        """Raise RecalibrationError if a standard deviation of zero leaves no standardized error."""
        if statistics.moments["std"].low <= 0:
            raise RecalibrationError(
                f"{cls.method} divides by std, which is 0 for {statistics.counts['n_zero_std']} samples; "
                "set std_floor="
            )

    @classmethod
    def _require_variance(cls, settings: Settings) -> None:
        """Raise RecalibrationError if the declared family has no variance to compare squared errors with."""
        if not family_of(settings).has_variance:
            raise RecalibrationError(
                f"{cls.method} compares squared errors with variances, which a Student t with "
                f"dof={settings.dof:g} lacks; use std_scaling, which uses the scale"
            )

    @abstractmethod
    def new_std(self, std: FloatArray) -> FloatArray:
        """Return recalibrated standard deviations, for float64 input >= 0; NaN stays NaN."""

    def floored(self, std: FloatArray) -> FloatArray:
        """Raise standard deviations to the floor of the set that the method was fitted on."""
        floor = self.fitted_on.std_floor
        return std if floor is None else np.maximum(std, floor)

    def new_mean(self, mean: FloatArray, std: FloatArray) -> FloatArray:
        """Return recalibrated means, given the original standard deviations; most methods leave means unchanged."""
        return mean

    def rules_for(self, labels: npt.NDArray[Any] | None) -> Iterator[tuple[RegressionRecalibration, Any]]:
        """Yield what recalibrates samples with these values of ``by``, and the index of these: itself, for all."""
        yield self, ()

    @override
    def rows_after(self, data: Predictions) -> Iterator[Rows]:
        labels, codes = (None, None) if data.by is None else data.label_codes("by")
        for block in data.row_blocks(codes=codes):
            for start in range(0, len(block["std"]), AT_ONCE):
                rows = {name: column[start : start + AT_ONCE] for name, column in block.items()}
                own = None if labels is None else labels[rows["codes"]]
                mean, std = self._new(rows["mean"], rows["std"], own)
                weight = {WEIGHT: rows[WEIGHT]} if WEIGHT in rows else {}
                yield {"target": rows["target"].astype(np.float64), "mean": mean, "std": std, **weight}

    def _new(
        self, mean: npt.NDArray[Any], std: npt.NDArray[Any], labels: npt.NDArray[Any] | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return recalibrated means and standard deviations in float64."""
        mean, std = mean.astype(np.float64), self.floored(std.astype(np.float64))
        for rule, place in self.rules_for(labels):
            mean[place] = rule.new_mean(mean[place], std[place])
            std[place] = rule.new_std(std[place])
        return mean, std

    def apply(self, mean: Any, std: Any, by: Any = None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Recalibrate predictions.

        Parameters
        ----------
        mean, std : arrays of one shape, from any array library
            Predictive means and standard deviations, in the target's unit; std >= 0. NaN stays NaN. A std below
            ``fitted_on.std_floor`` is raised to it, as it was for the fit.
        by : labels of that shape, optional
            The group of each prediction, for methods that are fitted by groups.

        Returns
        -------
        mean, std : new numpy arrays
            In the input's shape and floating-point type (integers become float64); masked arrays stay masked.

        Raises
        ------
        ShapeError
            The shapes differ.
        InvalidValueError
            A standard deviation is negative.
        """
        mean_in, std_in = read_floats(mean, "mean"), _read_std(std)
        new_mean, new_std = self._new(mean_in.values, std_in.values, self._labels(mean_in, std_in, by))
        return _like(mean_in, new_mean), _like(std_in, new_std)

    @staticmethod
    def _labels(mean: Source, std: Source, by: Any) -> npt.NDArray[Any] | None:
        """Return the groups, if given; ShapeError unless all shapes are equal."""
        shape = std.values.shape
        if mean.values.shape != shape:
            raise ShapeError(f"mean has shape {mean.values.shape}, std {shape}; pass equal shapes")
        try:
            labels = None if by is None else np.asarray(by)
        except ValueError:
            raise InputTypeError(
                f"by is {value_text(by)}; pass the group of each sample, in the shape of std"
            ) from None
        if labels is not None and labels.shape != shape:
            raise ShapeError(f"by has shape {labels.shape}, std {shape}; pass equal shapes")
        return labels

    def apply_std(self, std: Any) -> npt.NDArray[Any]:
        """Recalibrate standard deviations alone; parameters, result and errors as for ``apply``."""
        source = _read_std(std)
        return _like(source, self.new_std(self.floored(source.values.astype(np.float64))))

    def quantile(self, mean: Any, std: Any, q: npt.ArrayLike, by: Any = None) -> npt.NDArray[Any]:
        """Return quantiles of the recalibrated predictions.

        Parameters
        ----------
        mean, std : arrays of one shape
            Predictions before recalibration.
        q : float or array of floats in [0, 1]
            Levels.
        by : labels of that shape, optional
            As for ``apply``.

        Returns
        -------
        array, float64
            In the shape of ``q`` followed by the shape of ``mean``.
        """
        levels = np.asarray(q, dtype=np.float64)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise SettingsError("q holds levels outside [0, 1]; pass shares, such as 0.975")
        mean, std = (np.asarray(each, dtype=np.float64) for each in self.apply(mean, std, by))
        made = np.empty(levels.shape + mean.shape)
        for rule, place in self.rules_for(None if by is None else np.asarray(by)):
            standard = rule.shape or family_of(Settings(family=self.family, dof=self.dof))
            z = standard.quantile(levels).reshape(levels.shape + (1,) * mean[place].ndim)
            made[(..., *place)] = mean[place] + std[place] * z
        return made

    def apply_to(self, predictions: Predictions) -> Predictions:
        """Recalibrate ``Predictions``; left-out samples stay unchanged."""
        valid = ... if predictions.valid is None else predictions.valid
        labels = None if predictions.by is None else spread(predictions.by, predictions.shape)
        mean, std = predictions.mean.copy(), predictions.std.copy()
        mean[valid], std[valid] = self.apply(
            mean[valid], std[valid], None if labels is None else labels[valid]
        )
        return predictions.replace(mean=mean, std=std)


@dataclass(frozen=True, kw_only=True)
class ClassificationRecalibration(Recalibration):
    """Recalibration of class probabilities.

    Attributes
    ----------
    n_logits : int
        Logits per sample along the last axis; 1 for a binary classifier with one logit and no such axis.
    """

    task: ClassVar[TaskName] = "classification"
    of_samples: ClassVar[bool] = True
    takes_certainty: ClassVar[bool] = False
    """True for a method of two classes that can be fitted to probabilities of 0 and 1, whose logits are infinite."""

    n_logits: int

    @classmethod
    def fit(
        cls, labels: Labels, logits: Logits, fitted_on: FittedOn | None = None, weights: Weights = None
    ) -> Self:
        """Fit to classes, shape (n,), and the logits of each, shape (n, C), or (n,) of class 1 of two.

        Raises
        ------
        RecalibrationError
            Logits are not finite, or the method finds no best parameters.
        """
        binary = logits.ndim == 1
        scores = np.stack([np.zeros_like(logits), logits], axis=-1) if binary else logits
        are_finite = np.isfinite(scores)
        if scores.shape[-1] > 2:
            are_finite |= np.isneginf(scores) & are_finite.any(axis=-1, keepdims=True)
        elif cls.takes_certainty:
            are_finite = ~np.isnan(scores)
        if bad := int(np.count_nonzero(~are_finite.all(axis=-1))):
            raise RecalibrationError(
                f"{cls.method} cannot be fitted to probabilities of 0 or 1, which {bad} samples have; use logistic"
            )
        about = fitted_on or FittedOn(len(labels), "arrays")
        n_logits = 1 if binary else scores.shape[-1]
        return cls(n_logits=n_logits, fitted_on=about, **cls.best(labels, scores, weights))

    @classmethod
    @abstractmethod
    def best(cls, labels: Labels, logits: Logits, weights: Weights) -> dict[str, Any]:
        """Find the parameters from labels (n,), logits (n, C) and, if samples have them, weights (n,).

        Logits are finite, but for probabilities of 0 of more than two classes, and as `takes_certainty` says.
        """

    @classmethod
    @override
    def fit_to(cls, data: Predictions, settings: Settings, fitted_on: FittedOn) -> Self:
        weights = None if data.weights is None else data.select(data.weights)
        return cls.fit(*probabilities_of(data).logits_of(data), fitted_on, weights)

    @override
    def rows_after(self, data: Predictions) -> Iterator[Rows]:
        form = probabilities_of(data)
        if self.n_logits != form.n_logits:
            raise SettingsError(
                f"{self.method} was fitted to {self.n_logits} logits per sample, but these predictions have "
                f"{form.n_logits}; fit it to predictions of the same model"
            )
        return data.with_form(replace(form, transform=self.new_logarithms)).row_blocks()

    @abstractmethod
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        """Return log recalibrated probabilities from the original log probabilities or logits, shape (n, C).

        A binary classifier with one logit has C = 2, with logit 0 for class 0.
        """

    def apply(self, probs: Any, *, logits: bool = False, class_axis: int = -1) -> npt.NDArray[Any]:
        """Return recalibrated probabilities.

        Parameters
        ----------
        probs : array, shape (..., C), from any array library
            Probabilities, or logits; of any shape for a binary classifier with one number per sample.
        logits : bool
            Whether ``probs`` holds logits, or log probabilities.
        class_axis : int
            Axis of the classes: 1 for (N, C, H, W).

        Returns
        -------
        array
            Probabilities in the shape and floating-point type of the input; NaN stays NaN.

        Raises
        ------
        ShapeError
            The axis does not hold the classes to which it was fitted.
        InvalidValueError
            These are logits without ``logits=True``, or probabilities with it.
        """
        values = read_floats(probs, "probs").values
        ndim = values.ndim
        if self.n_logits == 1:
            last = values[..., None]
        elif not -ndim <= class_axis < ndim or values.shape[class_axis] != self.n_logits:
            raise ShapeError(
                f"{self.method} was fitted to {self.n_logits} classes, but axis {class_axis} of the probabilities, "
                f"of shape {values.shape}, does not hold as many; pass class_axis="
            )
        else:
            last = np.moveaxis(values, class_axis, -1)
        if not logits and not are_probabilities(last):
            raise InvalidValueError(
                "these are no probabilities, which lie between 0 and 1 and sum to 1; pass logits=True if they are "
                "logits or log probabilities"
            )
        form = Probabilities(values=last.reshape(1, -1, self.n_logits), logits=logits)
        refuse_probabilities(form)
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            new = np.exp(self.new_logarithms(form.logarithms((slice(None),))))
        if self.n_logits == 1:
            return new[:, 1].reshape(values.shape).astype(values.dtype)
        return np.moveaxis(new.reshape(last.shape), -1, class_axis).astype(values.dtype)


def _read_std(std: Any) -> Source:
    source = read_floats(std, "std")
    hidden = False if source.left_out is None else source.left_out
    negative = int(np.count_nonzero((source.values < 0) & ~np.asarray(hidden)))
    if negative:
        raise InvalidValueError(
            f"std has {negative} negative values; pass standard deviations, which are >= 0"
        )
    return source


def _like(source: Source, values: FloatArray) -> npt.NDArray[Any]:
    """Return a copy of the values in the source's type, masked where the source is."""
    new = np.array(values, dtype=source.values.dtype)
    return new if source.left_out is None else np.ma.MaskedArray(new, source.left_out)
