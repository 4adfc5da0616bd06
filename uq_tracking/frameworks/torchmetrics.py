"""A `torchmetrics.Metric` over the accumulator, for ``MetricCollection``, Lightning's ``self.log``, plain loops."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors

from uq_tracking.metrics.registry import check_known, every_metric
from uq_tracking.streams.accumulator import Accumulator
from uq_tracking.typed import override


class UncertaintyMetric(Metric):
    """Scores of predictive uncertainty, counted batch by batch in constant memory, over all processes.

    In a ``MetricCollection`` pass arguments by name, because others do not take a std:
    ``collection.update(preds=mean, target=y, std=std)``. ``uq.log(metric.accumulator)`` logs the whole report of what
    this process counted.

    Parameters
    ----------
    metric : str, or a sequence of str
        Key of a metric, as in ``uq-tracking metrics``; with several, `compute` returns a dict.
    **options
        As for `Accumulator`.

    Raises
    ------
    UnknownMetricError
        There is no such metric.
    SettingsError
        An option is unknown or out of range.

    Examples
    --------
    >>> metric = UncertaintyMetric("crps")
    >>> metric.update(torch.zeros(4), torch.tensor([0.1, -0.2, 0.0, 0.3]), torch.full((4,), 0.2))
    >>> round(metric.compute().item(), 3)
    0.108
    """

    full_state_update = True
    is_differentiable = False

    accumulator: Accumulator
    """What was counted since the last ``reset``."""

    def __init__(self, metric: str | Sequence[str], **options: Any) -> None:
        super().__init__()
        self.keys = [metric] if isinstance(metric, str) else list(metric)
        self.is_single = isinstance(metric, str)
        known = {each.key: each.direction for each in every_metric()}
        check_known(self.keys, known, "no metric is called", "`uq-tracking metrics` lists them")
        self.direction = known[self.keys[0]] if self.is_single else None
        self.options = {**options, "metrics": self.keys}
        self.accumulator = Accumulator(**self.options)

    @property
    def higher_is_better(self) -> bool | None:  # type: ignore[override]
        """Whether more is better; None for several metrics, and for one with a target value or none."""
        return self.direction == "higher" if self.direction in ("higher", "lower") else None

    @override
    def update(
        self,
        preds: Any,
        target: Any,
        std: Any = None,
        mask: Any = None,
        weights: Any = None,
        groups: Any = None,
        by: Any = None,
    ) -> None:
        """Count a batch: means, targets and stds; without ``std``, class probabilities and labels."""
        forecast = {"probs": preds} if std is None else {"y_pred": preds, "y_std": std}
        self.accumulator.update(target, **forecast, mask=mask, weights=weights, groups=groups, by=by)

    @override
    def compute(self) -> Any:
        """Return the score, or a dict of scores by key, as tensors; NaN if undefined."""
        scores = self.accumulator.compute(intervals=False).scores
        found = {key: torch.tensor(scores.get(key, math.nan), device=self.device) for key in self.keys}
        return found[self.keys[0]] if self.is_single else found

    @override
    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self.accumulator = Accumulator(**self.options)

    @override
    def _copy_state_dict(self) -> dict[str, Any]:
        """What torchmetrics restores after it has synchronized, or computed a batch alone."""
        return {"accumulator": self.accumulator}

    @override
    def _sync_dist(self, dist_sync_fn: Any = gather_all_tensors, process_group: Any = None) -> None:
        """Replace the accumulator by that of all processes, until torchmetrics restores it."""
        union = copy.deepcopy(self.accumulator)
        self.accumulator = union.all_reduce(process_group or self.process_group)
