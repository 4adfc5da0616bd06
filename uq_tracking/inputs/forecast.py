"""The arrays of a call by name, and the form in which they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from uq_tracking import plugins
from uq_tracking.errors import InputTypeError, SettingsError
from uq_tracking.inputs.constructors import Constructors
from uq_tracking.inputs.convert import IN_A_TABLE, LazyPredictions, Pieces, engine_of
from uq_tracking.inputs.forms.form import Form
from uq_tracking.inputs.forms.mean_std import MeanStd
from uq_tracking.inputs.forms.probabilities import look_like_probabilities
from uq_tracking.inputs.labels import Series
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
        if kind is MeanStd and given.keys() == {"y_pred"} and _look_like_classes(y_true, given["y_pred"]):
            raise SettingsError(
                "y_std is missing, and these look like labels and class probabilities; pass those as probs=, "
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


def _look_like_classes(labels: Any, probs: Any) -> bool:
    """Return True for whole numbers and an array with an added axis, or of shares in the same shape.

    Also for anything with shares that sum to 1 along an added axis.
    """
    try:
        shape, spread = np.shape(labels), np.shape(probs)
        if len(spread) == len(shape) + 1 and look_like_probabilities(np.asarray(probs)):
            return True
        if np.asarray(labels).dtype.kind not in "biu" or not shape:
            return False
        if len(spread) > len(shape):
            return True
        values = np.asarray(probs, dtype=float)
        return spread == shape and bool(np.all((values >= 0) & (values <= 1)))
    except (
        TypeError,
        ValueError,
        RuntimeError,
    ):  # not arrays that numpy reads; the constructor says what is wrong
        return False
