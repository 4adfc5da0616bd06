"""The contract of a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking import plugins
from uq_tracking.errors import RecalibrationError, SettingsError
from uq_tracking.inference.verdict import Tests
from uq_tracking.inputs.forecast import Forecast, entry_of, outputs_of
from uq_tracking.inputs.predictions import Case, Predictions
from uq_tracking.inputs.validation import check_shapes
from uq_tracking.recalibration.base import Recalibration
from uq_tracking.settings import SCORE_OPTIONS, Settings
from uq_tracking.statistics.layout import Layout, Rows
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.typed import override

INPUT_OPTIONS = ("mask", "weights", "groups", "order", "by", "on_invalid")
"""Options of the input that every form has."""

Fit = Callable[[type[Recalibration]], Recalibration]


class Samples(ABC):
    """Samples to fit a recalibration to, or to recalibrate and score."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of samples."""

    @property
    @abstractmethod
    def codes(self) -> npt.NDArray[Any] | None:
        """Number of each sample's group, shape (n,); None without groups."""

    @abstractmethod
    def part(self, keep: npt.NDArray[np.bool_]) -> Samples:
        """The samples that ``keep``, shape (n,), selects."""

    @abstractmethod
    def fit(self, method: type[Recalibration], settings: Settings) -> Recalibration:
        """Parameters of a method, fitted to these samples."""

    @abstractmethod
    def rows(self) -> Iterator[Rows]:
        """Rows as they are, block by block."""

    @abstractmethod
    def recalibrated(self, fitted: Recalibration) -> Iterator[Rows]:
        """Rows after the recalibration, block by block."""


@dataclass(frozen=True, eq=False)
class FormSamples(Samples):
    """Truth and forecast of samples, in a form whose recalibration statistics cannot hold."""

    data: Predictions

    @property
    @override
    def n(self) -> int:
        return self.data.n

    @property
    @override
    def codes(self) -> npt.NDArray[Any] | None:
        return None if self.data.groups is None else self.data.select(self.data.label_codes("groups")[1])

    @override
    def part(self, keep: npt.NDArray[np.bool_]) -> Samples:
        valid = np.zeros(self.data.shape, dtype=bool)
        valid[np.ones(self.data.shape, dtype=bool) if self.data.valid is None else self.data.valid] = keep
        return FormSamples(self.data.part(valid))

    @override
    def fit(self, method: type[Recalibration], settings: Settings) -> Recalibration:
        return method.fit_to(self.data)

    @override
    def rows(self) -> Iterator[Rows]:
        yield from self.data.row_blocks()

    @override
    def recalibrated(self, fitted: Recalibration) -> Iterator[Rows]:
        if fitted.task != self.data.task:
            raise SettingsError(
                f"{fitted.method} recalibrates a {fitted.task}; pass a recalibration of a {self.data.task}"
            )
        yield from self.data.with_form(self.data.form.recalibrated(fitted)).row_blocks()


class Task(ABC):
    """What a task does in its own way.

    Attributes
    ----------
    name : str
    layout : Layout
        What its statistics consist of.
    settings : tuple of str
        Names of the `Settings` that affect its numbers; a report states them.
    without : tuple of str
        Names of the `ScoreOptions` that have no meaning for it.
    forecast : str
        What is scored, in words.
    recalibration : str
        The default method.
    curves : tuple of str
        Curves available on request.
    case_score : str
        Name of what ``case_error`` measures.
    accuracy : dict of str
        Accuracy of exact and sketched statistics, in words.
    tests : type of Tests
        The tests behind its verdict.
    overview : tuple of str
        Names of the figures on the sheet that shows the most important ones.
    factor : str
        What the scale of a verdict multiplies, in words; empty if it multiplies standard deviations.
    uncertainty : str
        What sorts its samples in a sparsification, in words.
    """

    name: ClassVar[str]
    layout: ClassVar[Layout]
    settings: ClassVar[tuple[str, ...]]
    without: ClassVar[tuple[str, ...]]
    forecast: ClassVar[str]
    recalibration: ClassVar[str] = ""
    curves: ClassVar[tuple[str, ...]] = ("stability",)
    case_score: ClassVar[str]
    accuracy: ClassVar[Mapping[str, str]]
    tests: ClassVar[type[Tests]]
    overview: ClassVar[tuple[str, ...]]
    factor: ClassVar[str] = ""
    uncertainty: ClassVar[str] = "uncertainty"

    @property
    def options(self) -> frozenset[str]:
        """Names of all options of a forecast of this task."""
        forms = [form for form in plugins.forms().values() if form.task == self.name]
        own = {name for form in forms for name in form.options}
        return (SCORE_OPTIONS - {*self.without}) | own | {*INPUT_OPTIONS}

    def layout_for(self, facts: Mapping[str, Any]) -> Layout:
        """What statistics with these facts consist of."""
        return self.layout

    def split(
        self, forecast: Forecast, outputs: Sequence[str], options: Mapping[str, Any]
    ) -> dict[str, tuple[Predictions, dict[str, Any]]]:
        """Predictions of each output along the last axis of the truth, and the other options split to match."""
        kind = forecast.kind
        if not kind.takes or forecast.arrays.keys() != {*kind.takes}:
            *first, last = kind.truth_is.split()[0], *kind.takes
            raise SettingsError(
                f"outputs= splits arrays along their last axis; pass {', '.join(first)} and {last}"
            )
        names = {*INPUT_OPTIONS, *kind.options, "unit"}
        own = {name: value for name, value in options.items() if name in names and value is not None}
        parts = outputs_of(forecast, outputs, own)
        rest = {name: value for name, value in options.items() if name not in names}
        return {
            name: (part, self.of_output(rest, name, k, len(parts)))
            for k, (name, part) in enumerate(parts.items())
        }

    def of_output(self, options: Mapping[str, Any], output: str, k: int, size: int) -> dict[str, Any]:
        """Options that apply to output k of several."""
        return {name: entry_of(value, name, output) for name, value in options.items()}

    def lazy(
        self, arrays: dict[str, Any], options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Check dask arrays, move the axes that only predictions have to the end, and adapt the options."""
        check_shapes(*((name, array.shape) for name, array in arrays.items()))
        return arrays, dict(options)

    def recalibration_of(self, facts: Mapping[str, Any]) -> str:
        """The default method for what has statistics with these facts."""
        return self.recalibration

    def reference(self, reference: Any, data: Any) -> Any:
        """Check what ``kl_to_reference`` compares with."""
        return reference

    @abstractmethod
    def targets(self, statistics: Statistics) -> dict[str, float]:
        """Facts that show whether two runs were scored on the same truth, whatever its order, dtype or batches."""

    @abstractmethod
    def map_options(self, report: Any) -> dict[str, Any]:
        """Keyword arguments of the map panels of this task."""

    @abstractmethod
    def case_error(self, case: Case) -> float:
        """How wrong the predictions of a 2-D case are, NaN without truth; used to choose the worst case."""

    @property
    def needs_predictions(self) -> str:
        """Why a recalibration needs predictions, not only statistics; empty if it does not."""
        return f"a recalibration changes {self.forecast}, which statistics do not hold"

    def samples(self, statistics: Statistics, data: Any) -> Samples:
        """The samples behind a report; RecalibrationError if neither data nor statistics hold them."""
        if data is None:
            raise RecalibrationError(f"{self.needs_predictions}; pass the predictions")
        return FormSamples(data)

    def second_set(self, calibration: Any, data: Any, settings: Settings) -> Fit:
        """The function that fits a method to a second set; error messages list what a set may be."""
        kind = next(form for form in plugins.forms().values() if form.task == self.name)
        if isinstance(calibration, tuple) and len(calibration) == 1 + len(kind.takes) and data is not None:
            arrays = dict(zip(kind.takes, calibration[1:], strict=True))
            calibration = Predictions.of(kind, calibration[0], arrays, **data.form.input_options)
        if not (isinstance(calibration, Predictions) and calibration.task == self.name):
            given = repr(calibration) if isinstance(calibration, str) else f"a {type(calibration).__name__}"
            raise SettingsError(
                f"calibration is {given}; pass a second set ({', '.join((kind.truth_name, *kind.takes))}), "
                f"{kind.made_by}(...), a fitted recalibration, or True to fit on one half of the samples"
            )
        return lambda method: method.fit_to(calibration)
