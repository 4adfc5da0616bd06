"""The arrays of a call by name, the form in which they come, and those of several outputs of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from uq_tracking import plugins
from uq_tracking.checks import value_text
from uq_tracking.errors import InputError, InputTypeError, SettingsError, ShapeError
from uq_tracking.inputs.constructors import PER_SAMPLE, Constructors
from uq_tracking.inputs.convert import IN_A_TABLE, LazyPredictions, Pieces, check_alignment, engine_of, read
from uq_tracking.inputs.forms.form import Form
from uq_tracking.inputs.forms.mean_std import MeanStd
from uq_tracking.inputs.forms.probabilities import look_like_probabilities
from uq_tracking.inputs.labels import Series, read_weights, zero_where_left_out
from uq_tracking.inputs.predictions import Predictions
from uq_tracking.inputs.validation import cure_of_members

MADE_BY = ", ".join(name for name in vars(Constructors) if name.startswith("from_"))


class Forecast(NamedTuple):
    """A truth and the arrays of a forecast, as given to a verb; or existing predictions."""

    y_true: Any
    arrays: Mapping[str, Any]
    """By name, as the form ``takes`` them; without those that are None."""
    kind: type[Form]

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
        if isinstance(y_true, LazyPredictions | Pieces):
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

    def check_whole(self, options: Mapping[str, Any]) -> None:
        """Refuse arrays and options of the input beside predictions, and missing arrays.

        Options that are None count as not given.
        """
        made_by = self.y_true.made_by if isinstance(self.y_true, Pieces) else self.kind.made_by
        if not isinstance(self.y_true, Predictions | LazyPredictions | Pieces):
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
        spare = [name for name, value in options.items() if value is not None and name != "unit"]
        if isinstance(options.get("groups"), Series):
            raise SettingsError(
                f"order= is for arrays; make the {made_by} with groups=Series(order), from "
                "uq_tracking.inputs.labels"
            )
        if spare := [*spare, *self.arrays]:
            raise SettingsError(
                f"pass {', '.join(spare)} to {made_by} instead, which already holds the input"
            )

    def predictions(self, **options: Any) -> Predictions:
        """Read the arrays as predictions; options that are None count as not given."""
        self.check_whole(options)
        if isinstance(self.y_true, Predictions):
            return self.y_true
        given = {name: value for name, value in options.items() if value is not None}
        return Predictions.of(self.kind, self.y_true, self.arrays, **given)


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


def outputs_of(forecast: Forecast, outputs: Sequence[str], options: dict[str, Any]) -> dict[str, Predictions]:
    """Read arrays of a form as a whole, and make predictions of each entry of the truth's last axis."""
    check_names(outputs)
    kind = forecast.kind
    own = {name: options.pop(name) for name in kind.options if name in options}
    form, sources = kind.read(forecast.y_true, **forecast.arrays, **own)
    check_alignment([(source.name, source.axes) for source in sources])
    truth, shape = sources[0], sources[0].values.shape
    if shape[-1] != len(outputs):
        raise ShapeError(
            f"the last axis of shape {shape} has {shape[-1]} entries for {len(outputs)} outputs: {outputs}"
        )
    if options.get("weights") is not None:
        options["weights"] = zero_where_left_out(read_weights(options["weights"], truth))
    found, whole = {}, [source._replace(values=truth.values) for source in sources]
    for k, name in enumerate(outputs):
        beside = {key: _of_output(value, key, k, len(shape)) for key, value in options.items()}
        try:
            found[name] = Predictions.made([each.output(k) for each in whole], form.output(k), **beside)
        except InputError as error:
            raise type(error)(f"output {name!r}: {error}") from error
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


def entry_of(given: Any, option: str, output: str) -> Any:
    """What an option says about one output: its entry in a mapping, or else the option itself."""
    if not isinstance(given, Mapping):
        return given
    if output not in given:
        raise SettingsError(f"{option} has no entry for output {output!r}; it has {', '.join(given)}")
    return given[output]


def _of_output(value: Any, name: str, k: int, ndim: int) -> Any:
    """Return what an option says about output k: its entry along the last axis, if it has the truth's axes."""
    if value is None or name not in PER_SAMPLE:
        return value
    if isinstance(value, Mapping):
        return {key: _of_output(labels, name, k, ndim) for key, labels in value.items()}
    source = read(value, name)
    if source.values.ndim < ndim:
        return value
    one = source.output(k)
    return one.values if one.left_out is None else np.ma.MaskedArray(one.values, one.left_out)
