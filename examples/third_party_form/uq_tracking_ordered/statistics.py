"""What the statistics of ordered classes hold: sums of scores, and samples sorted by every cumulative probability."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.statistics.layout import Layout, Rows

SCORES = ("label", "mean_class", "class_variance", "class_error", "rps", "expected_rps", "rps_variance")


class OrderedLayout(Layout):
    """Orders by the score that the probabilities imply, and by each cumulative probability."""

    task = "ordered"
    moments = ("label",)
    counts = ("n", "n_missing", "n_masked", "n_invalid")
    alike: ClassVar[Mapping[str, str]] = {"n_classes": "the number of classes"}

    def columns(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of the samples, and the variance that is stated of each event."""
        made = {name: np.asarray(column, dtype=np.float64) for name, column in rows.items()}
        stated = {name: column for name, column in made.items() if name.startswith("stated_")}
        return {**made, **{f"variance{name[6:]}": each * (1 - each) for name, each in stated.items()}}


@lru_cache
def layout_of(n_classes: int) -> OrderedLayout:
    """Return the layout for this number of classes; always the same object, so that statistics can be merged."""
    thresholds = range(n_classes - 1)
    events = {f"stated_{k}": (f"stated_{k}", f"event_{k}") for k in thresholds}
    columns = (*SCORES, *(name for pair in events.values() for name in pair))
    members = {
        "orders": {"expected_rps": ("expected_rps", "rps"), "rps": ("rps",), **events},
        "sums": (*columns, *(f"variance_{k}" for k in thresholds)),
        "kept": columns,
    }
    made: OrderedLayout = type("OrderedLayout", (OrderedLayout,), members)()
    return made
