"""Predictions: a truth and a forecast in any form, checked once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from uq_tracking import plugins
from uq_tracking.checks import check_choice, listing, named_options, path_of, value_text
from uq_tracking.errors import (
    EmptyInputError,
    FileFormatError,
    InputError,
    InputTypeError,
    InvalidValueError,
    SettingsError,
    ShapeError,
)
from uq_tracking.inputs.constructors import PER_SAMPLE, Constructors, Options
from uq_tracking.inputs.convert import (
    IN_A_TABLE,
    AnyArray,
    BoolArray,
    FloatArray,
    Pieces,
    Source,
    check_alignment,
    check_units,
    engine_of,
    is_dask,
    read,
    read_mask,
)
from uq_tracking.inputs.fingerprint import digest, sum_of_hashes
from uq_tracking.inputs.forms.form import Form, Place, Rows, picked, places
from uq_tracking.inputs.forms.mean_std import MeanStd, Numbers
from uq_tracking.inputs.forms.probabilities import look_like_probabilities
from uq_tracking.inputs.labels import (
    Series,
    check_weights,
    join_labels,
    read_labels,
    read_weights,
    spread,
    zero_where_left_out,
)
from uq_tracking.inputs.validation import check_shapes, cure_of_members, lazy_axes
from uq_tracking.npz import ABOUT, VERSION, read_about, read_arrays, write_arrays
from uq_tracking.parallel import map_threads, worker_count
from uq_tracking.typed import DAMAGE, Self, Unpack

FORMAT = "uq_tracking.predictions"
BESIDE = ("valid", "weights", "groups", "clock", "by")
BESIDE_ARGUMENTS = ("mask", "weights", "on_invalid", "groups", "by", "unit")

DIGEST_BLOCK = 1 << 18
"""Samples hashed at a time: many, because the statistics computed in parallel wait at every hand-over."""


AUTO_MIN_SIDE = 16
AUTO_MAX_RATIO = 8


@dataclass(frozen=True, eq=False)
class Case:
    """One 2-D case of spatial predictions.

    Attributes
    ----------
    arrays : dict of arrays, shape (height, width, ...)
        In the order that map panels expect: ``target`` (NaN for samples that do not count), ``mean``, ``std``; or
        ``labels`` (-1 for samples that do not count) and ``probs``.
    image : array or None
        The input image.
    parts : dict of arrays, shape (height, width)
        ``epistemic`` and ``aleatoric`` std, if known.
    """

    arrays: Mapping[str, Any]
    image: Any = None
    parts: Mapping[str, Any] = field(default_factory=dict)

    def copy(self) -> Case:
        """Return a copy of the case in its own memory."""
        arrays, parts = (
            {name: np.array(array) for name, array in each.items()} for each in (self.arrays, self.parts)
        )
        return Case(arrays, self.image, parts)


def looks_spatial(shape: tuple[int, ...]) -> bool:
    """Check whether the last two axes look like a picture: both at least 16 long, neither 8 times the other."""
    if len(shape) < 2:
        return False
    short, long = sorted(shape[-2:])
    return short >= AUTO_MIN_SIDE and long <= AUTO_MAX_RATIO * short


def case_count(shape: tuple[int, ...]) -> int:
    """Number of 2-D cases in spatial predictions of this shape."""
    return math.prod(shape[:-2])


def case_place(number: int, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Index of a numbered case into all axes but the last two."""
    return np.unravel_index(number, shape[:-2]) if len(shape) > 2 else ()


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Predictions(Constructors):
    """The truth, the forecast in its form, and which samples count.

    Arrays may be numpy arrays (masked ones too), lists, torch tensors (any device, with or without gradient), xarray
    or pandas objects, or anything with ``__array__``. Their shapes must be equal: nothing is broadcast, and labelled
    arrays (xarray, pandas) must have equal labels. float32 and float64 are kept, float16 and bfloat16 become float32,
    integers float64. Attributes are read-only views of the input wherever possible.

    Parameters
    ----------
    y_true : array of any shape, in the target's unit
        Truth. Samples with a non-finite value have no ground truth: they are left out and counted in ``n_missing``.
    y_pred : array of the same shape, in the target's unit
        Predictive mean.
    y_std : array of the same shape, in the target's unit, or one number for all samples
        Predictive standard deviation, >= 0. Zeros are counted in ``n_zero_std``.
    mask : bool array of the same shape, optional
        True leaves a sample out, as in ``numpy.ma``; the masks of masked arrays are added to it.
    weights : array, optional
        How much each sample counts, such as the area of its grid cell: 0, which excludes a sample like a mask, or
        1e-100 to 1e100. One per sample, one per entry of the first axes, or with axes of length 1 along which
        weights repeat; an xarray DataArray with some of the target's dimensions also works. A common factor changes
        nothing.
    on_invalid : {"raise", "drop"}
        What to do with samples that have a non-finite mean or std, or a negative std, although the truth is present
        and not masked. "drop" leaves them out and counts them in ``n_invalid``.
    std_floor : float, optional
        Smaller standard deviations are raised to this value, after zeros are counted.
    groups : labels or False, optional
        Image, scene or block of each sample, for confidence intervals: an array of the target's shape, or one
        label per entry of its first axis (one per image). By default the verdict finds out whether neighbors in a map
        or series are alike; False says that samples are independent.
    by : labels, optional
        Strata to score separately; shapes as for ``groups``, or one label per entry of the last axes (one per lead
        time or output), or with axes of length 1, along which labels repeat. Several sets as a mapping, such as
        ``{"organ": organs, "site": sites}``. For maps of class labels, "boundary" tells pixels within 2 pixels of
        another class in the same image from the interior.
    unit : str, optional
        Unit of the target, for axis labels; by default the ``units`` attribute of an xarray target. If arrays in the
        target's unit state different ``units``, this accepts them as they are.

    Raises
    ------
    InputTypeError
        An argument is not an array of real numbers.
    ShapeError, AlignmentError
        Shapes, axis labels or units differ.
    InvalidValueError
        There are bad values under ``on_invalid="raise"``.
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

    truth: AnyArray
    """Targets, or labels of classes, in the input's shape."""
    form: Form
    """The forecast, without truth, weights and labels: `MeanStd`, `Draws`, `Probabilities` ..."""
    valid: BoolArray | None
    """Which samples count; None when all do."""
    counts: dict[str, int]
    """``n`` samples count; those that do not are counted by reason."""
    weights: FloatArray | None
    """How much each sample counts, in the input's shape; None when all count the same."""
    groups: AnyArray | None
    """Labels of the truth's shape, one per entry of the first axis, or with axes of length 1."""
    independent: bool
    """Whether ``groups=False`` said that samples are independent."""
    clock: AnyArray | None
    """Time of each sample, in steps, if groups are blocks of a series, in the order of their numbers."""
    by: AnyArray | None
    """Labels like ``groups``."""
    unit: str | None
    """Unit of the target."""

    @named_options
    @listing(mask=None, weights=None, on_invalid="raise", std_floor=None, groups=None, by=None, unit=None)
    def __init__(self, y_true: Any, y_pred: Any, y_std: Any = None, **options: Unpack[Options]) -> None:
        self._fill(vars(self.of(MeanStd, y_true, {"y_pred": y_pred, "y_std": y_std}, **options)))

    def _fill(self, values: Mapping[str, Any]) -> Self:
        """Set the attributes of a new object; a frozen dataclass allows no other way."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
        return self

    @classmethod
    def made(
        cls,
        sources: Sequence[Source],
        form: Form,
        *,
        mask: Any = None,
        weights: Any = None,
        on_invalid: str = "raise",
        groups: Any = None,
        by: Any = None,
        unit: str | None = None,
    ) -> Self:
        """Join a form to the truth, the first source, and check them; the one route of every constructor."""
        check_choice("on_invalid", on_invalid, ("raise", "drop"))
        truth, independent = sources[0], groups is False
        groups = None if independent else groups
        beside = [] if mask is None else [_read_mask(mask, truth)]
        check_alignment([(source.name, source.axes) for source in (*sources, *beside)])
        if unit is None and form.in_unit:
            check_units((source.name, source.unit) for source in sources)
        given = None if weights is None else read_weights(weights, truth)
        beside += [] if given is None else [given]
        hidden = [source.left_out for source in (*sources, *beside) if source.left_out is not None]
        left_out = np.logical_or.reduce(hidden) if hidden else None
        form, valid, counts = form.checked(truth.values, left_out, on_invalid)
        if given is not None:
            check_weights(given.values, valid)
        unit = truth.unit if unit is None and form.in_unit else unit
        kept = {item.name: read_only(getattr(form, item.name)) for item in fields(form)}  # type: ignore[arg-type]
        data = object.__new__(cls)._fill(
            {
                "truth": read_only(truth.values),
                "form": replace(form, **kept),  # type: ignore[type-var]
                "valid": read_only(valid),
                "counts": counts,
                "weights": None if given is None else read_only(given.values),
                "groups": read_only(_labels(groups, "groups", truth, valid, form)),
                "independent": independent,
                "clock": None,
                "by": read_only(_labels(by, "by", truth, valid, form)),
                "unit": unit,
            }
        )
        if isinstance(groups, Series):
            found = list(data.row_blocks(codes=spread(groups.times, data.shape)))
            times = np.concatenate([rows["codes"] for rows in found])
            losses = zip(*(form.losses(rows) for rows in found), strict=True)
            labels = groups.labels(times, [np.concatenate(parts) for parts in losses])
            data._fill({"groups": read_only(labels), "clock": read_only(spread(groups.clock, data.shape))})
        return data

    @classmethod
    def of(cls, kind: type[Form], y_true: Any, arrays: Mapping[str, Any], **options: Any) -> Self:
        """Read a truth and the arrays of a form, with the options of the form and of all predictions.

        For dask arrays, return what `evaluate` and `log` make predictions from block by block.
        """
        if is_dask(y_true) and kind.splits:
            axes = lazy_axes(arrays, tuple(y_true.shape), options.pop("axis", None), kind.member)
            return cast("Self", Forecast(y_true, arrays, kind, options, axes))
        beside = {name: options.pop(name) for name in BESIDE_ARGUMENTS if name in options}
        form, sources = kind.read(y_true, **arrays, **options)
        return cls.made(sources, form, **beside)

    def with_form(self, form: Form) -> Self:
        """Return the same samples with another form of the same shape."""
        return object.__new__(type(self))._fill({**vars(self), "form": form})

    @property
    def task(self) -> str:
        """Name of the task that scores them."""
        return self.form.task

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the truth."""
        return self.truth.shape

    @property
    def n(self) -> int:
        """Number of samples that count."""
        return self.counts["n"]

    @property
    def numbers(self) -> Numbers:
        """The form of a forecast of numbers; SettingsError for other forms."""
        if not isinstance(self.form, Numbers):
            raise SettingsError(f"{self.form.name} have no mean and std")
        return self.form

    @property
    def mean(self) -> FloatArray:
        """Predictive mean."""
        return self.numbers.mean

    @property
    def std(self) -> FloatArray:
        """Predictive standard deviation, raised to ``std_floor`` if that was given."""
        return self.numbers.std

    @property
    def facts(self) -> dict[str, Any]:
        """What must agree for statistics of two sets to be merged."""
        return {**self.form.facts, **({} if self.weights is None else {"weighted": True})}

    @property
    def about(self) -> dict[str, Any]:
        """Facts about the input, for the settings of a report."""
        return {**self.facts, **self.form.about}

    @property
    def input_options(self) -> dict[str, Any]:
        """Options that make other predictions of the same samples."""
        return {
            "mask": None if self.valid is None else ~self.valid,
            "weights": self.weights,
            "std_floor": self.numbers.std_floor,
        }

    @property
    def nbytes(self) -> int:
        """Size in bytes of the arrays that ``save`` writes."""
        return sum(array.nbytes for array in self._stored().values())

    def __repr__(self) -> str:
        left_out = "".join(
            f", {name}={count}" for name, count in self.counts.items() if count and name != "n"
        )
        return f"Predictions({self.form.name}, n={self.n}, shape={self.shape}{left_out})"

    def pieces(self) -> Iterator[tuple[Place, BoolArray | None]]:
        """Indices of the pieces in which the form is read, and which samples of each count."""
        for place in self.form.places(self.shape):
            yield place, None if self.valid is None else self.valid[place].reshape(-1)

    def row_blocks(self, share: int = 0, of: int = 1, codes: AnyArray | None = None) -> Iterator[Rows]:
        """Columns of the samples that count, block by block, for one of several nearly equal shares.

        With ``codes``, in the shape of the predictions, each block gets its samples' codes as the column ``codes``.
        """
        pieces = list(self.pieces())
        beside = {"weight": self.weights, "codes": codes}
        alone = len(pieces) == 1
        for place, keep in (
            pieces if alone else pieces[len(pieces) * share // of : len(pieces) * (share + 1) // of]
        ):
            columns = self.form.rows(self.truth, place, keep)
            for name, array in beside.items():
                if array is not None:
                    columns[name] = picked(array, place, keep, self.truth.ndim)
            if "weight" in columns:
                columns["weight"] = columns["weight"].astype(np.float64)
            part = slice(self.n * share // of, self.n * (share + 1) // of) if alone else slice(None)
            yield {name: column[part] for name, column in columns.items()}

    def rows(self) -> Rows:
        """Columns of all samples that count, in C order, as the task's statistics expect them."""
        pieces = sum(1 for _ in self.form.places(self.shape))
        if pieces == 1:
            return next(self.row_blocks())
        workers = max(min(worker_count(), pieces), 1)
        parts = map_threads(lambda share: list(self.row_blocks(share, workers)), range(workers))
        found = [rows for part in parts for rows in part]
        types = self.form.row_types(self.n)
        return {
            name: np.concatenate([rows[name] for rows in found], dtype=types.get(name)) for name in found[0]
        }

    def part(self, keep: BoolArray) -> Self:
        """Return the same predictions with only the samples in ``keep``, an array of the truth's shape."""
        valid = keep if self.valid is None else keep & self.valid
        counts = {**self.counts, "n": int(np.count_nonzero(valid))}
        if "n_zero_std" in counts:
            counts["n_zero_std"] = self.numbers.zeros(valid)
        return object.__new__(type(self))._fill({**vars(self), "valid": read_only(valid), "counts": counts})

    def case(self, place: tuple[Any, ...], image: Any = None) -> Case:
        """Return the 2-D case at an index into all axes but the last two."""
        arrays, parts = self.form.case(self.truth, self.valid, place)
        return Case(arrays, image, parts)

    def select(self, array: AnyArray) -> AnyArray:
        """Pick the samples that count from an array of the truth's shape: 1-D, in C order."""
        if array.shape != self.shape:
            raise ShapeError(f"the array has shape {array.shape}, but the predictions have {self.shape}")
        return array.reshape(-1) if self.valid is None else array[self.valid]

    def placed(self, values: AnyArray) -> AnyArray:
        """Put back what `select` picks: an array of the truth's shape, with 0 for samples that do not count."""
        if self.valid is None:
            return values.reshape(self.shape)
        array = np.zeros(self.shape, dtype=values.dtype)
        array[self.valid] = values
        return array

    def flat(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(target, mean, std) of the samples that count, 1-D; views if all count and memory is in C order."""
        return self.select(self.truth), self.select(self.mean), self.select(self.std)

    def flat_labels(self, name: Literal["groups", "by"]) -> AnyArray:
        """Label of each sample that counts, 1-D; SettingsError if there are no such labels."""
        return self.select(spread(self._labels_of(name), self.shape))

    def label_codes(self, name: Literal["groups", "by"]) -> tuple[AnyArray, AnyArray]:
        """Distinct labels, sorted, and the position of each sample's label among them, in the shape of the truth.

        Uses less memory than `flat_labels` if the labels are text. The distinct labels include those of left-out
        samples.
        """
        labels = self._labels_of(name)
        distinct, codes = np.unique(labels, return_inverse=True)
        return distinct, spread(codes.reshape(labels.shape), self.shape)

    def _labels_of(self, name: Literal["groups", "by"]) -> AnyArray:
        labels = self.groups if name == "groups" else self.by
        if labels is None:
            raise SettingsError(f"these predictions have no {name}; pass {name}= when making them")
        return labels

    def replace(
        self,
        *,
        mean: Any = None,
        std: Any = None,
        std_floor: float | None = None,
        groups: Any = None,
        by: Any = None,
        unit: str | None = None,
    ) -> Predictions:
        """Return the same truth and samples with the given arguments replaced, such as a recalibrated std.

        The parts and samples behind mean and std are kept only if neither is replaced.
        """
        numbers = self.numbers
        options = {**self.input_options, "std_floor": numbers.std_floor if std_floor is None else std_floor}
        new = Predictions(
            self.truth,
            numbers.mean if mean is None else mean,
            numbers.std if std is None else std,
            groups=(False if self.independent else self.groups) if groups is None else groups,
            by=self.by if by is None else by,
            unit=self.unit if unit is None else unit,
            **options,
        )
        if mean is None and std is None:
            new = new.with_form(replace(numbers, std=new.std, std_floor=options["std_floor"]))
        zeros = self.counts["n_zero_std"] if std is None else new.counts["n_zero_std"]
        new._fill({"clock": self.clock if groups is None else new.clock})
        return new._fill({"counts": {**self.counts, "n_zero_std": zeros}})

    def sum_of_hashes(self) -> int:
        """Sum of the samples' hashes, which depends neither on their order nor on batches and dtype."""
        total, arrays = 0, [self.truth, *self.form.digested([])[0]]
        for place, keep in self.pieces():
            columns = [picked(array, place, keep, self.truth.ndim) for array in arrays]
            if self.weights is not None:
                columns.append(picked(self.weights, place, keep, self.truth.ndim).astype(np.float64))
            total += sum_of_hashes(*columns)
        return total

    def target_digest(self) -> str:
        """Sixteen hexadecimal digits, equal for two runs scored on the same truth.

        The digest covers the truth of samples that count, in C order, as float64: so it is independent of the dtype
        (a float32 array and its float64 copy agree), the array library and the shape, but depends on the order of the
        samples and on which of them count.
        """
        return self._digest([self.truth], "")

    def digest(self) -> str:
        """Sixteen hexadecimal digits of truth, forecast and weights, like `target_digest`."""
        arrays, about = self.form.digested([] if self.weights is None else [self.weights])
        return self._digest([self.truth, *arrays], about)

    def digest_of(self, rows: Rows) -> Callable[[], str]:
        """Return a function that gives the digest, if possible from ``rows`` of these predictions when called."""
        names = self.form.digested_rows
        if not names:
            found = self.digest()
            return lambda: found
        columns = [rows[name] for name in names if name in rows]
        return lambda: digest(columns)

    def _digest(self, arrays: Sequence[AnyArray], about: str) -> str:
        def parts() -> Iterator[AnyArray]:
            for array in arrays:
                extra = math.prod(array.shape[self.truth.ndim :])
                for place in places(self.shape, max(DIGEST_BLOCK // max(extra, 1), 1)):
                    yield array[place] if self.valid is None else array[place][self.valid[place]]

        return digest(parts(), about)

    def _stored(self) -> dict[str, AnyArray]:
        beside = {name: getattr(self, name) for name in BESIDE}
        return {
            self.form.truth_name: self.truth,
            **self.form.arrays(),
            **{name: array for name, array in beside.items() if array is not None},
        }

    def save(self, path: str | Path) -> Path:
        """Write an npz file, without pickles, that `load` reads back with equal values, dtypes and shapes."""
        about = {
            "format": FORMAT,
            "version": VERSION,
            "form": self.form.name,
            "facts": self.form.stored_facts,
            "counts": self.counts,
            "unit": self.unit,
            "independent": self.independent,
        }
        write_arrays(path_of(path), {**self._stored(), ABOUT: np.asarray(json.dumps(about))})
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file written by `save`.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FileFormatError
            The file is damaged, foreign, too new, or of a form that no installed package brings.
        """
        path = path_of(path)
        arrays = {name: read_only(array) for name, array in read_arrays(path).items()}
        cure = "; read other files with uq_tracking.files.read_predictions"
        about = read_about(arrays, path, FORMAT, "Predictions.save", cure)
        kind = plugins.forms().get(str(about.get("form")))
        if kind is None:
            raise FileFormatError(
                f"{path} holds {about.get('form')!r}, a form that no installed package brings"
            )
        try:
            return cls._loaded(kind, about, arrays)
        except KeyError as error:
            raise FileFormatError(f"{path} is damaged: no {error.args[0]}") from error
        except DAMAGE as error:
            raise FileFormatError(f"{path} is damaged: {error}") from error

    @classmethod
    def _loaded(cls, kind: type[Form], about: Mapping[str, Any], arrays: dict[str, Any]) -> Self:
        """Make predictions of what a file holds; ValueError if its parts do not fit together."""
        truth = arrays.pop(kind.truth_name)
        beside = {name: arrays.pop(name, None) for name in BESIDE}
        valid, counts = beside["valid"], about["counts"]
        if valid is not None and (valid.dtype != bool or valid.shape != truth.shape):
            raise ValueError("valid must be bool and have the shape of the truth")
        mask = None if valid is None else ~valid
        form = kind.from_stored(arrays, about["facts"])
        try:
            data = cls.made(
                [Source("truth", truth)], form, mask=mask, weights=beside["weights"], unit=about["unit"]
            )
        except (EmptyInputError, InvalidValueError) as error:
            raise ValueError(f"values and counts disagree ({error})") from error
        if data.n != counts["n"]:
            raise ValueError("values and counts disagree")
        for name in ("groups", "clock", "by"):
            if beside[name] is not None:
                spread(beside[name], truth.shape)
        independent = about.get("independent", False)
        return data._fill({**beside, "independent": independent, "weights": data.weights, "counts": counts})


def read_only(value: Any) -> Any:
    """Return a read-only view of an array, or of those in a mapping; the user's own arrays stay writable."""
    if isinstance(value, Mapping):
        return {name: read_only(each) for name, each in value.items()}
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _read_mask(mask: Any, truth: Source) -> Source:
    source = read_mask(mask, "mask")
    check_shapes((truth.name, truth.values.shape), ("mask", source.values.shape))
    hidden = source.values if source.left_out is None else source.values | source.left_out
    return source._replace(left_out=hidden)


def _labels(value: Any, name: str, truth: Source, valid: BoolArray | None, form: Form) -> AnyArray | None:
    """Read labels, or those of several sets as one; strata may be named by text."""
    if value is None:
        return None
    if isinstance(value, Mapping) and name == "by":
        sets = {key: _labels(labels, f"by[{key!r}]", truth, valid, form) for key, labels in value.items()}
        known = {str(key): labels for key, labels in sets.items() if labels is not None}
        return join_labels(known, truth.values.ndim)
    is_named = isinstance(value, str) and name != "groups"
    return read_labels(form.strata(value, truth.values) if is_named else value, name, truth, valid)


@dataclass(frozen=True, eq=False)
class Forecast:
    """A truth and the arrays of a forecast, not yet read: as given to a verb, or lazy ones given to a constructor.

    Attributes
    ----------
    y_true : array, Predictions, Pieces or Forecast
        The truth, or what already holds it and the forecast.
    arrays : dict
        By name, as the form ``takes`` them, without those that are None; lazy or not. A list of arrays holds members.
    kind : type of Form
    options : dict
        Options of `Predictions`, and of the constructor.
    axes : dict of int
        The axis of members, draws or levels, of the lazy arrays that have one.
    """

    y_true: Any
    arrays: Mapping[str, Any]
    kind: type[Form]
    options: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, y_true: Any, arrays: Mapping[str, Any], options: dict[str, Any] | None = None) -> Forecast:
        """Find the form of these arrays, taking those of a plugin's form out of the options.

        Raises
        ------
        SettingsError
            Two forms are given, or arrays look like labels and class probabilities without being named so.
        InputTypeError
            Names of columns are given instead of arrays.
        """
        known = {name for kind in plugins.forms().values() for name in kind.takes}
        more = {} if options is None else {name: options.pop(name) for name in known & options.keys()}
        given = {name: array for name, array in {**arrays, **more}.items() if array is not None}
        if isinstance(y_true, Predictions):
            return cls(y_true, given, type(y_true.form))
        if isinstance(y_true, Forecast | Pieces):
            return cls(y_true, given, y_true.kind)
        if isinstance(y_true, str) or any(isinstance(array, str) for array in given.values()):
            raise InputTypeError(f"y_true, y_pred and y_std are arrays; {IN_A_TABLE}")
        if not given and engine_of(y_true) not in (None, "iterator"):
            raise InputTypeError(f"y_true is a table of {engine_of(y_true)}; {IN_A_TABLE}")
        kinds = [kind for kind in plugins.forms().values() if given.keys() & {*kind.takes}]
        if len(kinds) > 1:
            named = " and ".join(", ".join(given.keys() & {*kind.takes}) for kind in kinds)
            raise SettingsError(f"{named} are two forecasts; pass one")
        kind = kinds[0] if kinds else MeanStd
        if kind is MeanStd and "y_pred" in given and _look_like_classes(y_true, **given):
            missing = "" if "y_std" in given else "y_std is missing, and "
            raise SettingsError(
                f"{missing}these look like labels and class probabilities; pass those as probs=, "
                "for example uq.evaluate(labels, probs=probs)"
            )
        return cls(y_true, given, kind)

    @property
    def is_lazy(self) -> bool:
        """Whether it is read in pieces."""
        return isinstance(self.y_true, Pieces) or is_dask(self.y_true)

    def check_whole(self, *of_pieces: str) -> None:
        """Refuse arrays and options beside an input that has its own, and missing arrays.

        Options that are None count as not given; those ``of_pieces`` are not the input's.
        """
        made_by = self.y_true.made_by if isinstance(self.y_true, Pieces) else self.kind.made_by
        if not isinstance(self.y_true, Predictions | Forecast | Pieces):
            wanted = {"y_true": self.y_true, **{name: self.arrays.get(name) for name in self.kind.takes}}
            missing = [name for name, array in wanted.items() if array is None]
            if missing:
                verb, also = "are" if len(missing) > 1 else "is", ""
                if missing == ["y_std"] and (cure := _cure_of_members(self.y_true, self.arrays["y_pred"])):
                    raise SettingsError(f"y_std is missing; {cure}")
                if self.kind is MeanStd:
                    also = f" (made by {MADE_BY}); for class probabilities, labels and probs="
                raise SettingsError(
                    f"{' and '.join(missing)} {verb} missing; pass {', '.join(wanted)}, or one {made_by}{also}"
                )
            return
        given = {name: value for name, value in self.options.items() if name not in of_pieces}
        if isinstance(given.get("groups"), Series):
            raise SettingsError(
                f"order= is for arrays; make the {made_by} with groups=Series(order), from "
                "uq_tracking.inputs.labels"
            )
        spare = [name for name, value in given.items() if value is not None and name != "unit"]
        if spare := [*spare, *self.arrays]:
            raise SettingsError(
                f"pass {', '.join(spare)} to {made_by} instead, which already holds the input"
            )

    def predictions(self, **options: Any) -> Predictions:
        """Read the arrays as predictions, with these options too; options that are None count as not given."""
        whole = replace(self, options={**self.options, **options})
        whole.check_whole()
        if isinstance(self.y_true, Predictions):
            return self.y_true
        given = {name: value for name, value in whole.options.items() if value is not None}
        return Predictions.of(self.kind, self.y_true, self.arrays, **given)


MADE_BY = ", ".join(name for name in vars(Constructors) if name.startswith("from_"))


def _cure_of_members(truth: Any, means: Any) -> str:
    try:
        return cure_of_members(np.shape(truth), np.shape(means))
    except (TypeError, ValueError, RuntimeError):  # not arrays that numpy reads
        return ""


def _look_like_classes(labels: Any, y_pred: Any, y_std: Any = None) -> bool:
    """Return True for anything with shares that sum to 1 along an added axis.

    Without a std also for whole numbers and an array with an added axis, or of shares in the same shape.
    """
    try:
        shape, spread = np.shape(labels), np.shape(y_pred)
        if len(spread) == len(shape) + 1 and look_like_probabilities(np.asarray(y_pred)):
            return True
        if y_std is not None or np.asarray(labels).dtype.kind not in "biu" or not shape:
            return False
        if len(spread) > len(shape):
            return True
        values = np.asarray(y_pred, dtype=float)
        return spread == shape and bool(np.all((values >= 0) & (values <= 1)))
    except (TypeError, ValueError, RuntimeError):
        return False  # not arrays that numpy reads; the constructor says what is wrong


def outputs_of(
    forecast: Forecast, outputs: Sequence[str], options: Mapping[str, Any]
) -> dict[str, tuple[Predictions, dict[str, Any]]]:
    """Read arrays of a form as a whole, and make predictions of each entry of the truth's last axis.

    Options that are not of predictions are returned beside them, as far as they are about that entry.
    """
    check_names(outputs)
    kind = forecast.kind
    if not kind.takes or forecast.arrays.keys() != {*kind.takes}:
        *first, last = kind.truth_is.split()[0], *kind.takes
        raise SettingsError(
            f"outputs= splits arrays along their last axis; pass {', '.join(first)} and {last}"
        )
    given = {name: value for name, value in options.items() if value is not None}
    own = {name: given.pop(name) for name in kind.options if name in given}
    form, sources = kind.read(forecast.y_true, **forecast.arrays, **own)
    check_alignment([(source.name, source.axes) for source in sources])
    truth, shape = sources[0], sources[0].values.shape
    if shape[-1] != len(outputs):
        raise ShapeError(
            f"the last axis of shape {shape} has {shape[-1]} entries for {len(outputs)} outputs: {outputs}"
        )
    if "weights" in given:
        given["weights"] = zero_where_left_out(read_weights(given["weights"], truth))
    found, whole = {}, [source._replace(values=truth.values) for source in sources]
    for k, name in enumerate(outputs):
        entry = _Entry(name, k, shape, isinstance(form, Numbers))
        rest = {key: entry.of_option(value, key) for key, value in given.items()}
        beside = {key: rest.pop(key) for key in BESIDE_ARGUMENTS if key in rest}
        try:
            data = Predictions.made([each.output(k) for each in whole], form.output(k), **beside)
        except InputError as error:
            raise type(error)(f"output {name!r}: {error}") from error
        found[name] = data, rest
    return found


def check_names(outputs: Sequence[str]) -> None:
    """Raise SettingsError unless these are distinct names."""
    named = isinstance(outputs, Sequence) and not isinstance(outputs, str) and len(outputs) > 0
    if not named or not all(isinstance(name, str) and name for name in outputs):
        raise SettingsError(
            f"outputs is {value_text(outputs)}; pass a list of names, one per entry of the last axis"
        )
    if len(set(outputs)) < len(outputs) or any("/" in name for name in outputs):
        raise SettingsError(f"outputs={outputs!r}; names must be distinct and contain no slash")


class _Entry(NamedTuple):
    """An output: an entry of the last axis of a truth of this shape."""

    name: str
    k: int
    shape: tuple[int, ...]
    has_pairs: bool
    """Whether arrays in a tuple, such as a second set, have the truth's axes, too."""

    def of_option(self, value: Any, option: str) -> Any:
        """Return what an option says about the output: its entry in a mapping or in arrays, or else all."""
        if isinstance(value, Mapping) and option in PER_SAMPLE:
            return {key: self.of_option(labels, option) for key, labels in value.items()}
        if isinstance(value, Mapping):
            if self.name not in value:
                raise SettingsError(
                    f"{option} has no entry for output {self.name!r}; it has {', '.join(value)}"
                )
            return value[self.name]
        if self.has_pairs and isinstance(value, tuple) and not isinstance(value[0], str):
            return tuple(self._of_array(part, option) for part in value)
        if option not in PER_SAMPLE or np.ndim(value) < len(self.shape):
            return value
        return self._of_array(value, option)

    def _of_array(self, value: Any, option: str) -> AnyArray:
        source = read(value, option)
        shape = source.values.shape
        if shape[-1:] != self.shape[-1:]:
            raise ShapeError(
                f"{option} has shape {shape}; its last axis must hold the {self.shape[-1]} outputs"
            )
        one = source.output(self.k)
        return one.values if one.left_out is None else np.ma.MaskedArray(one.values, one.left_out)
