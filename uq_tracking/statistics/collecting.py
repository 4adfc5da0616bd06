"""Statistics of predictions, and of streams of which only the statistics are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, Literal, get_args

import numpy as np

from uq_tracking.checks import check_choice
from uq_tracking.inputs.predictions import Predictions
from uq_tracking.parallel import map_threads, worker_count
from uq_tracking.settings import EXACT_LIMIT, Settings
from uq_tracking.statistics.blocks import BlockCounter, Blocks
from uq_tracking.statistics.classification import class_sums
from uq_tracking.statistics.groups import GroupTables, GroupTally, count_groups, plain_labels
from uq_tracking.statistics.layout import BUILD_BLOCK, Layout, Rows, row_count
from uq_tracking.statistics.statistics import Statistics

How = Literal["auto", "exact", "sketch"]


def build_statistics(
    layout: Layout,
    data: Predictions,
    statistics: How = "auto",
    *,
    rows: Rows | None = None,
    lazy: bool = False,
    classes: bool = True,
) -> Statistics:
    """Return statistics of predictions: exact, or with "auto" sketched above its limit.

    Exact statistics are made of ``rows`` of the predictions, if they are given; with ``lazy`` they keep these, to
    compute from when first asked. Without ``classes``, the probabilities of classes are not summed.
    """
    if wants_exact(data.n, statistics):
        columns = data.rows() if rows is None else rows
        made = Statistics.exact(layout, columns, facts=data.facts, lazy=lazy)
    else:
        workers = worker_count() if data.n > 8 * BUILD_BLOCK else 1

        def count(share: int) -> Statistics:
            return Statistics.counted(layout, data.row_blocks(share, workers), facts=data.facts)

        made = reduce(Statistics.__add__, map_threads(count, range(workers)))
    made = made.with_counts(data.counts)
    return replace(made, classes=class_sums(data)) if classes else made


def blocks_of(
    layout: Layout, data: Predictions, settings: Settings, rows: Rows | None = None
) -> Blocks | None:
    """Sums of losses over consecutive samples of predictions, whose ``rows`` are read if they are not given."""
    made = BlockCounter(layout, data.facts, settings)
    for part in data.row_blocks() if rows is None else [rows]:
        made.add(part)
    return made.finished()


def statistics_of_rows(layout: Layout, rows: Rows, facts: Mapping[str, Any], statistics: How) -> Statistics:
    """Statistics of validated rows, as by `build_statistics`; without rows, an empty sketch."""
    n = row_count(rows)
    if n and wants_exact(n, statistics):
        return Statistics.exact(layout, rows, facts=facts)
    return Statistics.counted(layout, [rows], facts=facts)


def wants_exact(n: int, statistics: How) -> bool:
    """Whether n samples get exact statistics; SettingsError for an unknown choice."""
    check_choice("statistics", statistics, get_args(How))
    return statistics == "exact" or (statistics == "auto" and n <= EXACT_LIMIT)


def build_groups(layout: Layout, data: Predictions, wanted: bool | None = None) -> GroupTables | None:
    """Coarse statistics of the groups of predictions.

    Parameters
    ----------
    layout, data
        What the statistics consist of, and predictions of any task.
    wanted : bool, optional
        None builds them if there are groups; True treats samples as groups if there are none.
    """
    if wanted is False or (wanted is None and data.groups is None):
        return None
    if data.groups is None:
        codes = np.zeros(data.shape, dtype=np.int64)
        codes[np.ones(data.shape, dtype=bool) if data.valid is None else data.valid] = np.arange(data.n)
        blocks = data.row_blocks(codes=codes)
        return count_groups(GroupTally(layout, data.facts), range(data.n), blocks, data.target_digest())
    labels, codes = data.label_codes("groups")
    used = np.unique(data.select(codes))
    number = np.zeros(len(labels), dtype=np.int64)
    number[used] = np.arange(len(used))
    known = ({**rows, "codes": number[rows["codes"]]} for rows in data.row_blocks(codes=codes))
    return count_groups(GroupTally(layout, data.facts), plain_labels(labels[used]), known)
