"""Judge predictive uncertainty where you already compare your models.

>>> import uq_tracking as uq
>>> report = uq.evaluate([1.5, 3.0, 2.0], [1.0, 2.0, 3.0], [0.1, 0.5, 1.0])
>>> round(report.scores["rmse"], 3)
0.866
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from uq_tracking._version import __version__ as __version__

if TYPE_CHECKING:
    from uq_tracking.comparison.compare import Comparison as Comparison
    from uq_tracking.comparison.compare import compare as compare
    from uq_tracking.inputs import Predictions as Predictions
    from uq_tracking.recalibration import Recalibration as Recalibration
    from uq_tracking.recalibration import recalibrate as recalibrate
    from uq_tracking.report import Report as Report
    from uq_tracking.runs.pool import pool as pool
    from uq_tracking.runs.rescore import rescore as rescore
    from uq_tracking.runs.sync import sync as sync
    from uq_tracking.streams.accumulator import Accumulator as Accumulator
    from uq_tracking.tracking.log import log as log
    from uq_tracking.verbs import evaluate as evaluate

_HOME = {
    "Accumulator": "streams.accumulator",
    "Comparison": "comparison.compare",
    "Predictions": "inputs",
    "Recalibration": "recalibration",
    "Report": "report",
    "compare": "comparison.compare",
    "evaluate": "verbs",
    "log": "tracking.log",
    "pool": "runs.pool",
    "recalibrate": "recalibration",
    "rescore": "runs.rescore",
    "sync": "runs.sync",
}
"""Where each public name lives; it is imported when first used, so that importing the package stays cheap."""

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
