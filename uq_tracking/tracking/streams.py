"""What the verb does with an accumulator, and with arrays that are lazy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uq_tracking.errors import SettingsError
from uq_tracking.inputs.lazy import is_lazy
from uq_tracking.settings import Method
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.streams.dask_arrays import count_dask
from uq_tracking.tracking.cases import Case, Maps, check_images, choose_cases

AFTER = ("calibration", "recalibration", "intervals", "level", "n_boot", "seed")
"""Options of ``Accumulator.compute``."""


def as_stream(
    y_true: Any,
    y_pred: Any,
    y_std: Any,
    *,
    unit: str | None,
    statistics: Method,
    maps: Maps,
    images: Any,
    options: Mapping[str, Any],
) -> Any:
    """An accumulator of lazy arrays; anything else as it is."""
    if not is_lazy(y_true):
        return y_true
    shape = tuple(y_true.shape)
    chosen = choose_cases(shape, maps)
    check_images(shape, images)
    counting = {name: value for name, value in options.items() if name not in AFTER}
    return count_dask(
        y_true, y_pred, y_std, unit=unit, method=statistics, cases=chosen, images=images, **counting
    )


def check_stream(
    unit: str | None, options: Mapping[str, Any], maps: Maps, images: Any, predictions: Any
) -> None:
    """SettingsError for what an accumulator was to be given when it was made."""
    spare = [name for name in options if name not in AFTER]
    spare += ["unit"] if unit is not None else []
    if spare:
        raise SettingsError(f"an Accumulator has its settings already; pass {', '.join(spare)} to it")
    if maps not in ("auto", True, False):
        raise SettingsError(
            f"maps={maps!r}: say so to the Accumulator, which keeps only the cases it is told to"
        )
    if images is not None:
        raise SettingsError("images: pass them to Accumulator.update, batch by batch")
    if predictions is True:
        raise SettingsError("predictions=True needs predictions; an Accumulator holds none")


def kept_cases(stream: Accumulator) -> list[Case]:
    """The cases that an accumulator kept, in order."""
    return [
        Case(str(number), case.target, case.mean, case.std, case.image)
        for number, case in sorted(stream.cases.items())
    ]
