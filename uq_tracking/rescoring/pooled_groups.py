"""The groups of several runs as those of one: which are the same, and what was assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from uq_tracking.report import same_targets
from uq_tracking.rescoring.parts import Part
from uq_tracking.statistics.group_pooling import digest_of
from uq_tracking.statistics.group_tables import GroupTables

MOST_SHOWN = 3
"""How many labels or runs a message names."""
Held = Sequence[tuple[Part, GroupTables]]


def groups_of(parts: Sequence[Part]) -> tuple[GroupTables | None, list[str]]:
    """The groups of all parts, if all have them, and what the user should know of them."""
    held = [(part, tables) for part in parts if (tables := part.statistics.groups) is not None]
    lacking = [part for part in parts if part.statistics.groups is None]
    if held and lacking:
        return None, [
            f"no intervals, as there are runs scored without groups ({_some(lacking)}); log all with groups="
        ]
    if len(held) < 2:
        return next((tables for _, tables in held), None), []
    first, *rest = _labelled([tables for _, tables in held])
    merged = first.merge(*rest)
    if merged is None:
        return None, []
    lost = {tables.members: tables.n_groups - len(tables) for _, tables in held}
    return replace(merged, n_groups=merged.n_groups + sum(lost.values())), [*_shared(held), *_apart(held)]


def _labelled(every: Sequence[GroupTables]) -> list[GroupTables]:
    """The tables; groups whose labels are unknown get labels that only runs of the same groups share."""
    fewest: dict[str, int] = {}
    for tables in every:
        if not _has_labels(tables):
            fewest[tables.members] = min(len(tables), fewest.get(tables.members, len(tables)))
    return [
        _renamed(tables.pooled_to(fewest[tables.members])) if tables.members in fewest else tables
        for tables in every
    ]


def _renamed(tables: GroupTables) -> GroupTables:
    labels = tuple(f"{tables.members} {number:06}" for number in range(len(tables)))
    return replace(tables, labels=labels, n_groups=len(labels))


def _has_labels(tables: GroupTables) -> bool:
    """Whether its groups have the user's labels: not if they were pooled to be stored, or are single samples."""
    return len(tables) == tables.n_groups and tables.members == digest_of(tables.labels)


def _shared(held: Held) -> list[str]:
    """What was assumed of groups that have equal labels in runs of different targets."""
    labels: dict[tuple[type, object], None] = {}
    for (one, own), (other, theirs) in combinations(held, 2):
        if _has_labels(own) and _has_labels(theirs) and not same_targets(one.report, other.report):
            known = {(type(label), label) for label in theirs.labels}
            labels |= dict.fromkeys(item for label in own.labels if (item := (type(label), label)) in known)
    if not labels:
        return []
    shown = ", ".join(repr(label) for _, label in list(labels)[:MOST_SHOWN])
    more = f" and {len(labels) - MOST_SHOWN} more" if len(labels) > MOST_SHOWN else ""
    return [
        f"runs of different targets share labels of groups ({shown}{more}), each of which is taken for one group; if "
        "they are different images, log the runs again with labels that no two runs share"
    ]


def _apart(held: Held) -> list[str]:
    """What was assumed of groups that were pooled to be stored, which lost their labels."""
    if len({tables.members for _, tables in held}) < 2:
        return []
    pooled = [part for part, tables in held if len(tables) < tables.n_groups < part.report.counts["n"]]
    if not pooled:
        return []
    return [
        f"the groups of {_some(pooled)} were too many to be stored with their labels, and are taken for others than "
        "those of the other runs"
    ]


def _some(parts: Sequence[Part]) -> str:
    names = list(dict.fromkeys(map(str, parts)))
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more
