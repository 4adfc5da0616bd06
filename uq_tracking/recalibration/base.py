"""What a recalibration is: frozen parameters that know what they were fitted on; and the installed methods."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.checks import path_of, value_text
from uq_tracking.errors import FileFormatError, InputTypeError, InvalidValueError, SettingsError, ShapeError
from uq_tracking.families import Standard, family_of
from uq_tracking.inputs.convert import Source, read_floats
from uq_tracking.inputs.labels import spread
from uq_tracking.metrics.registry import TaskName
from uq_tracking.settings import Family, Settings
from uq_tracking.typed import DAMAGE, record

if TYPE_CHECKING:
    from typing_extensions import Self

    from uq_tracking.inputs import Predictions

FloatArray = npt.NDArray[np.float64]

FORMAT = "uq_tracking.recalibration"
SCHEMA = 1
"""Version of the file format; increased when older readers would misread new files."""


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
    """Fitted parameters as plain data: compared by value, hashable, unchanged by a round trip through JSON."""

    method: ClassVar[str]
    """Name of the method, as in the registry."""
    task: ClassVar[TaskName]

    fitted_on: FittedOn

    @abstractmethod
    def scalars(self) -> dict[str, float]:
        """The few numbers worth plotting across runs, by name."""

    def parameters(self) -> dict[str, Any]:
        """Every parameter as plain values."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "fitted_on"}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``from_dict`` reads back."""
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "method": self.method,
            "parameters": self.parameters(),
            "fitted_on": asdict(self.fitted_on),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return strict JSON; also write it to ``path`` if given."""
        text = json.dumps(self.to_dict(), allow_nan=False, indent=1)
        if path is not None:
            path_of(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of ``to_dict``; for any method if called on ``Recalibration``.

        Raises
        ------
        FileFormatError
            The values are foreign, damaged, too new, or from a method other than this class's.
        """
        kind = _kind(values)
        if not issubclass(kind, cls):
            raise FileFormatError(f"this is a recalibration by {kind.method}; read it with {kind.__name__}")
        try:
            parameters = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values["parameters"].items()
            }
            return kind(fitted_on=record(FittedOn, values["fitted_on"]), **parameters)
        except DAMAGE as error:
            raise FileFormatError(f"the recalibration by {kind.method} is damaged ({error})") from error

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Read what ``to_json`` returned or wrote: the text, or the path of its file; errors as for ``from_dict``."""
        return cls.from_dict(read_json(source))


def read_json(source: str | Path) -> Any:
    """Values from a JSON text, or from the file at a path; FileFormatError if it is not JSON."""
    is_path = not isinstance(source, str) or not source.lstrip().startswith("{")
    try:
        return json.loads(path_of(source).read_text(encoding="utf-8") if is_path else str(source))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{source if is_path else 'the text'} is not JSON ({error})") from error


def _kind(values: Any) -> type[Any]:
    """The class of the recalibration that values describe."""
    if not isinstance(values, Mapping) or values.get("format") != FORMAT:
        raise FileFormatError(f"this is not a recalibration: it does not state the format {FORMAT!r}")
    schema = values.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise FileFormatError(
            f"the recalibration has schema {schema!r}, but this version reads up to {SCHEMA}; upgrade uq-tracking"
        )
    method, known = str(values.get("method")), plugins.recalibrators()
    if method not in known:
        raise FileFormatError(
            f"no installed package knows the recalibration method {method!r}; known are {', '.join(known)}"
        )
    return known[method].kind


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

    @abstractmethod
    def new_std(self, std: FloatArray) -> FloatArray:
        """Recalibrated standard deviations, for float64 input >= 0; NaN stays NaN."""

    def floored(self, std: FloatArray) -> FloatArray:
        """Standard deviations as the method saw them: raised to the floor of the set it was fitted on."""
        floor = self.fitted_on.std_floor
        return std if floor is None else np.maximum(std, floor)

    def new_mean(self, mean: FloatArray, std: FloatArray) -> FloatArray:
        """Recalibrated means, given the original standard deviations; most methods leave means unchanged."""
        return mean

    def new_std_by(self, std: FloatArray, labels: npt.NDArray[Any] | None) -> FloatArray:
        """Recalibrated standard deviations of samples with these values of ``by``, which few methods need."""
        return self.new_std(std)

    @property
    def shape(self) -> Standard | None:
        """Distribution of the standardized error after recalibration, if the method has its own."""
        return None

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
        if mean_in.values.shape != std_in.values.shape:
            raise ShapeError(
                f"mean has shape {mean_in.values.shape}, std {std_in.values.shape}; pass equal shapes"
            )
        try:
            labels = None if by is None else np.asarray(by)
        except ValueError:
            raise InputTypeError(
                f"by is {value_text(by)}; pass the group of each sample, in the shape of std"
            ) from None
        if labels is not None and labels.shape != std_in.values.shape:
            raise ShapeError(f"by has shape {labels.shape}, std {std_in.values.shape}; pass equal shapes")
        mean64, std64 = mean_in.values.astype(np.float64), self.floored(std_in.values.astype(np.float64))
        return _like(mean_in, self.new_mean(mean64, std64)), _like(std_in, self.new_std_by(std64, labels))

    def apply_std(self, std: Any) -> npt.NDArray[Any]:
        """Recalibrate standard deviations alone; parameters, result and errors as for ``apply``."""
        source = _read_std(std)
        return _like(source, self.new_std(self.floored(source.values.astype(np.float64))))

    def quantile(self, mean: Any, std: Any, q: npt.ArrayLike) -> npt.NDArray[Any]:
        """Quantiles of the recalibrated predictions.

        Parameters
        ----------
        mean, std : arrays of one shape
            Predictions before recalibration.
        q : float or array of floats in [0, 1]
            Levels.

        Returns
        -------
        array, float64
            In the shape of ``q`` followed by the shape of ``mean``.
        """
        levels = np.asarray(q, dtype=np.float64)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise SettingsError("q holds levels outside [0, 1]; pass shares, such as 0.975")
        mean, std = self.apply(mean, std)
        standard = self.shape or family_of(Settings(family=self.family, dof=self.dof))
        z = standard.quantile(levels).reshape(levels.shape + (1,) * mean.ndim)
        return np.asarray(mean.astype(np.float64) + std.astype(np.float64) * z)

    def apply_to(self, predictions: Predictions) -> Predictions:
        """Recalibrate ``Predictions``; left-out samples stay unchanged."""
        valid = predictions.valid
        by = predictions.by
        labels = None if by is None else spread(by, predictions.shape)
        if valid is None:
            mean, std = self.apply(predictions.mean, predictions.std, labels)
            return predictions.replace(mean=mean, std=std)
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

    n_logits: int

    @abstractmethod
    def new_logarithms(self, logarithms: FloatArray) -> FloatArray:
        """Log recalibrated probabilities from the original log probabilities or logits, shape (n, C).

        A binary classifier with one logit has C = 2, with logit 0 for class 0.
        """

    def apply(self, logits: Any, class_axis: int = -1) -> npt.NDArray[Any]:
        """Recalibrated probabilities.

        Parameters
        ----------
        logits : array, shape (..., C), from any array library
            Logits, or log probabilities; of any shape for a binary classifier with one logit.
        class_axis : int
            Axis of the classes: 1 for (N, C, H, W).

        Returns
        -------
        array
            Probabilities in the shape and floating-point type of the logits.

        Raises
        ------
        ShapeError
            The axis does not hold the classes to which it was fitted.
        """
        values = read_floats(logits, "logits").values
        if self.n_logits == 1:
            pair = np.stack([np.zeros(values.size), values.reshape(-1).astype(np.float64)], axis=1)
            return np.exp(self.new_logarithms(pair)[:, 1]).reshape(values.shape).astype(values.dtype)
        ndim = values.ndim
        if not -ndim <= class_axis < ndim or values.shape[class_axis] != self.n_logits:
            raise ShapeError(
                f"{self.method} was fitted to {self.n_logits} classes, but axis {class_axis} of the logits, of shape "
                f"{values.shape}, does not hold as many; pass class_axis="
            )
        last = np.moveaxis(values, class_axis, -1)
        new = np.exp(self.new_logarithms(last.reshape(-1, self.n_logits).astype(np.float64)))
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
    """Values in the source's type, masked where the source is; never sharing its memory."""
    new = np.array(values, dtype=source.values.dtype)
    return new if source.left_out is None else np.ma.MaskedArray(new, source.left_out)


@dataclass(frozen=True)
class Recalibrator:
    """A recalibration method, as registered by plugins with the hook ``uq_recalibrators``.

    Attributes
    ----------
    name : str
        ``uq.recalibrate(..., name)``.
    kind : type
        Class of the fitted parameters, whose ``method`` is the name.
    fit : callable
        ``fit(statistics, settings, fitted_on)`` for regression statistics, or ``fit(labels, logits, fitted_on,
        ignore_label)`` for a classification, with ``weights=`` only if samples have weights. Raises
        ``RecalibrationError`` for input it cannot be fitted to.
    summary, source : str
        A one-line description, and its source.
    fit_by : callable, optional
        ``fit_by(rows, labels, settings, fitted_on)`` for a method fitted by groups: columns ``target``, ``mean`` and
        ``std`` of the samples, and each sample's value of ``by``. ``fit`` then raises.
    """

    name: str
    kind: type[Recalibration]
    fit: Callable[..., Recalibration]
    summary: str
    source: str
    fit_by: Callable[..., Recalibration] | None = None

    @property
    def task(self) -> TaskName:
        """Whether it recalibrates a regression or a classification."""
        return self.kind.task
