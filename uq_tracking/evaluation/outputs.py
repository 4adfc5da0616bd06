"""Several outputs of one model, along the last axis: scored each on its own, shown side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs import Predictions
from uq_tracking.inputs.convert import read
from uq_tracking.inputs.outputs import split_outputs
from uq_tracking.report import Report
from uq_tracking.tables.report import outputs_table

INPUT = ("mask", "groups", "by", "std_floor", "on_invalid", "unit")


@dataclass(frozen=True, eq=False)
class Reports(Mapping[str, Report]):
    """A report per output, in the order of the outputs.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> boxes = uq.evaluate([[0.0, 5.0], [1.0, 6.0]], [[0.1, 4.0], [0.8, 6.5]], [[0.1, 1.0], [0.2, 1.0]],
    ...                     outputs=["x", "y"], metrics=["mae", "rmse"])
    >>> round(boxes["y"].scores["mae"], 3)
    0.75
    >>> print(boxes)
    output       x       y
    ----------------------
    mae     0.1500  0.7500
    rmse    0.1581  0.7906
    """

    reports: Mapping[str, Report]

    def __getitem__(self, output: str) -> Report:
        return self.reports[output]

    def __iter__(self) -> Iterator[str]:
        return iter(self.reports)

    def __len__(self) -> int:
        return len(self.reports)

    def __str__(self) -> str:
        from uq_tracking.tables.terminal import tables_text

        return tables_text([outputs_table(self)], width=1000)

    def _repr_html_(self) -> str:
        from uq_tracking.tables.html import tables_html

        return tables_html([outputs_table(self)])


def split_all(
    y_true: Any, y_pred: Any, y_std: Any, outputs: Sequence[str], options: Mapping[str, Any]
) -> dict[str, tuple[Predictions, dict[str, Any]]]:
    """Predictions of each output, and the other options cut to it.

    ``calibration`` may be a tuple of arrays (..., K), or a mapping with an entry per output; ``reference`` a pair of
    arrays (..., K).

    Raises
    ------
    SettingsError
        The input is no arrays, names are bad, or a mapping lacks an output.
    ShapeError
        The last axis does not have one entry per name.
    """
    if isinstance(y_true, Predictions) or y_pred is None or y_std is None:
        raise SettingsError("outputs= cuts arrays along their last axis; pass y_true, y_pred and y_std")
    own: Any = {name: options[name] for name in INPUT if options.get(name) is not None}
    parts = split_outputs(y_true, y_pred, y_std, outputs, **own)
    rest = {name: value for name, value in options.items() if name not in INPUT}
    return {name: (part, _cut(rest, name, k, outputs)) for k, (name, part) in enumerate(parts.items())}


def _cut(options: Mapping[str, Any], name: str, k: int, outputs: Sequence[str]) -> dict[str, Any]:
    own = dict(options)
    calibration, reference = own.get("calibration"), own.get("reference")
    if isinstance(calibration, Mapping):
        if name not in calibration:
            raise SettingsError(
                f"calibration has no entry for output {name!r}; it has {', '.join(calibration)}"
            )
        own["calibration"] = calibration[name]
    elif isinstance(calibration, tuple) and len(calibration) == 3 and not isinstance(calibration[0], str):
        own["calibration"] = tuple(_last(part, "calibration", k, outputs) for part in calibration)
    if reference is not None:
        own["reference"] = tuple(_last(part, "reference", k, outputs) for part in reference)
    return own


def _last(values: Any, name: str, k: int, outputs: Sequence[str]) -> Any:
    array = read(values, name).values
    if not array.ndim or array.shape[-1] != len(outputs):
        raise ShapeError(
            f"{name} has shape {array.shape}; its last axis must hold the outputs {list(outputs)}"
        )
    return array[..., k]
