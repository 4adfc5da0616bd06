"""The samples of a stream that a verdict looks at: some of all, evenly spread, as `samples` describes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np

from uq_tracking.inference.class_samples import ClassSamples
from uq_tracking.inference.samples import RUN_BITS, Samples, child, chosen, halvings_for, labels_of
from uq_tracking.inputs.forms.probabilities import Probabilities
from uq_tracking.inputs.predictions import Predictions, looks_spatial
from uq_tracking.npz import Arrays, prefixed, under
from uq_tracking.statistics.groups import Label, plain_labels
from uq_tracking.statistics.layout import joined_rows
from uq_tracking.statistics.orders import IntArray

PLACE, CASE, CELL, LABELS = "place", "case", "cell", ("groups", "by")
MOST_CELLS = 1 << 22
"""Places of an array, masked ones included, up to which its shape is looked at."""
MOST_PARTS = 256
"""Batches whose samples are held apart."""


def codes_of(data: Any) -> dict[str, Any]:
    """Return the distinct labels of each kind that predictions have, and the code of each sample's."""
    return {name: data.label_codes(name) for name in LABELS if getattr(data, name) is not None}


class EvenSamples:
    """Samples of a stream, evenly spread.

    Parameters
    ----------
    samples, first : int
        Number of all samples and place of the first one among them, if parts are counted apart and then merged.
    origin, shape : tuple of int
        Index of the first sample into the whole, and the shape of that, of a part of an array.
    """

    def __init__(
        self, samples: int = 0, first: int = 0, origin: tuple[int, ...] = (), shape: tuple[int, ...] = ()
    ) -> None:
        self._halvings, self._end, self._total = halvings_for(samples), first, samples
        self._form: dict[str, Any] = {"n_classes": 1}
        """Of classes, their number, which of two is the event, and whether a sample has a single probability."""
        self._origin, self._shape = origin, shape
        self._parts: list[Mapping[str, Any]] = []
        self._cases = self._cells = self._count = 0
        self._independent = False
        self._sides: set[tuple[int, ...]] = set()
        """Shapes of cases; () of one-dimensional data."""
        self._names: dict[str, dict[Label, int]] = {name: {} for name in LABELS}
        """Numbers of the labels."""

    def add(self, data: Any, codes: Mapping[str, Any]) -> None:
        """Keep some samples of a batch; ``codes`` are those of its labels."""
        first, form = self._end, data.form
        self._end += data.n
        self._count += data.n
        self._independent |= data.independent
        of_classes = isinstance(form, Probabilities) and not form.top_label_only
        if of_classes:
            self._form = {name: getattr(form, name) for name in ("n_classes", "event", "binary")}
        self._halve()
        place = chosen(first, data.n, self._halvings) - first
        at = place if data.valid is None else np.flatnonzero(data.valid)[place]
        located = self._located(data, at)
        if not len(at):
            return
        if of_classes:
            index = np.unravel_index(at, data.shape)
            columns = {
                "truth": data.truth[index].astype(np.int64),
                "logs": form.logarithms(index).astype(np.float32),
                **({} if data.weights is None else {"weight": data.weights[index].astype(np.float64)}),
            }
        else:
            keep = np.zeros(math.prod(data.shape), dtype=bool)
            keep[at] = True
            columns = data.part(keep.reshape(data.shape)).rows()
            if "mean" not in columns:
                return
        columns |= {PLACE: place + first, **located}
        for name, (labels, code) in codes.items():
            used, number = np.unique(data.select(code)[place], return_inverse=True)
            columns[name] = self._numbers(name, plain_labels(labels[used]))[number]
        self._add(columns)

    def _numbers(self, name: str, labels: Iterable[Label]) -> IntArray:
        """Return the numbers of labels; new ones are numbered."""
        known = self._names[name]
        return np.asarray([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)

    def _add(self, columns: Mapping[str, Any]) -> None:
        self._parts.append(columns)
        if len(self._parts) > MOST_PARTS:
            self._parts = [joined_rows(self._parts)]

    def _located(self, data: Any, at: IntArray) -> dict[str, IntArray]:
        """Return the case of samples at these places of a batch, and their places among all, and count its cases."""
        shape, whole = data.shape, self._shape or data.shape
        leading = len(whole) - 2 if looks_spatial(whole) else 1
        side = whole[leading:]
        self._sides.add(side)
        if self._shape:
            index = np.add(np.unravel_index(at, shape), np.reshape(self._origin, (-1, 1)))
            cell = np.ravel_multi_index(tuple(index), whole)
            return {CASE: cell // math.prod(side), CELL: cell}
        found = {CASE: at // math.prod(side) + self._cases, CELL: at + self._cells}
        self._cases += math.prod(shape[:leading])
        self._cells += math.prod(shape)
        return found

    def _halve(self, least: int = 0) -> None:
        """Keep only what is kept of so many samples, or at this number of halvings."""
        samples = self._total if self._shape else self._end
        while self._halvings < max(halvings_for(samples, self._form["n_classes"]), least):
            self._halvings += 1
            parts = []
            for columns in self._parts:
                run = columns[PLACE] >> RUN_BITS
                node, side = run >> self._halvings, (run >> self._halvings - 1) & 1
                stays = side == child(node, self._halvings)
                parts.append({name: column[stays] for name, column in columns.items()})
            self._parts = [joined_rows(parts)] if parts else []

    def merge(self, other: EvenSamples) -> None:
        """Add those that another stream has kept, which is left unchanged."""
        added = copy(other)
        for one, halvings in ((self, added._halvings), (added, self._halvings)):
            one._halve(halvings)
        whole = self._halvings + RUN_BITS * bool(self._halvings)
        shift = 0 if other._shape else -(-self._end >> whole) << whole
        for columns in added._parts:
            moved = {**columns, PLACE: columns[PLACE] + shift}
            moved |= {CASE: columns[CASE] + self._cases, CELL: columns[CELL] + self._cells}
            for name in moved.keys() & set(LABELS):
                moved[name] = self._numbers(name, added._names[name])[columns[name]]
            self._add(moved)
        self._end = max(self._end, shift + added._end)
        self._cases += added._cases
        self._cells += added._cells
        self._count += added._count
        self._sides |= added._sides
        self._independent |= added._independent
        self._form = added._form if added._parts else self._form
        self._shape, self._total = self._shape or added._shape, self._total or added._total
        self._halve()

    def samples(self) -> Samples | ClassSamples | None:
        """Return what was kept, as a verdict looks at it; None of predictions that have no mean and no classes."""
        columns = dict(joined_rows(self._parts))
        if not columns:
            return None
        order = np.argsort(columns[PLACE], kind="stable")
        columns = {name: column[order] for name, column in columns.items() if name != PLACE}
        case, cell, group, by = (columns.pop(name, None) for name in (CASE, CELL, *LABELS))
        side = max(self._sides, key=len)
        cells = math.prod(self._shape) if self._shape else self._cells
        is_whole = len(self._sides) == 1 and not self._halvings and cells <= MOST_CELLS
        shape: tuple[int, ...] = (len(order),)
        valid = None
        if is_whole and side:
            shape = (cells // math.prod(side), *side)
            valid = np.zeros(shape, dtype=bool)
            valid.reshape(-1)[cell] = True
        if group is not None:  # numbered as tables of groups are
            known = [(type(label).__name__, label) for label in self._names["groups"]]
            rank = np.argsort(sorted(range(len(known)), key=known.__getitem__))
            group = np.unique(rank[group], return_inverse=True)[1]
        about: dict[str, Any] = {
            "group": group,
            "independent": self._independent,
            "shape": shape,
            "valid": valid,
            "spatial": len(side) == 2,
            "by": None if by is None else labels_of(list(self._names["by"]), by),
            "case": None if is_whole or () in self._sides else case,
            "total": self._count if self._halvings else None,
        }
        if "logs" not in columns:
            return Samples(columns, **about)
        logs, form = columns["logs"], self._form
        binary = form["binary"]
        data = Predictions.from_probs(
            columns["truth"],
            np.exp(logs[:, 1], dtype=np.float64) if binary else logs,
            logits=not binary,
            class_axis=None if binary else 1,
            event=form["event"] if form["n_classes"] == 2 else None,
            weights=columns.get("weight"),
            groups=about["group"],
        )
        return ClassSamples(data, **about)

    def to_arrays(self) -> Arrays:
        """Return plain arrays from which ``load`` continues."""
        names = {name: list(known) for name, known in self._names.items()}
        sides = sorted(self._sides)
        counts = (self._halvings, self._end, self._total, self._cases, self._cells, self._count)
        about = (counts, self._shape, self._independent, self._form, sides, names)
        return {"about": np.asarray(json.dumps(about)), **prefixed("column", joined_rows(self._parts))}

    def load(self, arrays: Arrays) -> None:
        """Continue from what ``to_arrays`` returned, bit for bit as if never interrupted."""
        about = json.loads(str(arrays["about"]))
        counts, shape, self._independent, self._form, sides, names = about
        self._halvings, self._end, self._total, self._cases, self._cells, self._count = counts
        self._shape, self._sides = tuple(shape), {tuple(side) for side in sides}
        self._names = {name: {label: place for place, label in enumerate(names[name])} for name in LABELS}
        columns = under("column", arrays)
        self._parts = [columns] if columns else []
