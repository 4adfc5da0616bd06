"""What is written to the run's history, alongside the rows of the training loop.

``run.log`` without a step would close the loop's row, so that W&B drops its next ``log(step=same)``; a lower step is
dropped at once. So everything is logged with ``commit=False`` and without a step: it joins the row that the loop
writes next, or the last one at ``finish``. The x axis is a separate metric, ``uq/step``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uq_tracking.tracking.names import SECTIONS

if TYPE_CHECKING:
    import wandb

STEP = "uq/step"

Recall = Callable[[Sequence[str]], Iterable[Mapping[str, Any]]]
"""Maps keys to the rows of a run's history that hold all of them."""


@dataclass
class Row:
    """Content of a batch."""

    scalars: dict[str, float] = field(default_factory=dict)
    media: dict[str, Any] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    """Digests of the media's content, to recognize what is logged again."""
    step: int | None = None


class History:
    """Writes rows, each value only once.

    Parameters
    ----------
    run
        The open run.
    recall
        For a reopened run: reads its existing history.
    """

    def __init__(self, run: wandb.Run, recall: Recall | None = None) -> None:
        self._run = run
        self._recall = recall
        self._recalled: set[str] = set()
        self._written: dict[tuple[str, int], float] = {}
        self._shown: dict[str, str] = {}
        self._with_axis: set[str] = set()
        self._open_row: tuple[int, int] | None = None
        """The run's step and the ``uq/step`` at which scalars were last written."""

    def shows(self, key: str, digest: str) -> bool:
        """Return whether the run's chart or image under this key has this content."""
        return self._shown.get(key) == digest

    def write(self, row: Row) -> None:
        """Write a row; only for tables does ``run.log`` contact the server."""
        if row.scalars:
            self._write_scalars(row)
        if row.media:
            self._run.log(row.media, commit=False)
            self._shown.update(row.digests)

    def _write_scalars(self, row: Row) -> None:
        summary: Any = self._run.summary
        step = int(summary.get(STEP, 0)) if row.step is None else row.step
        self._remember(row.scalars)
        new = {key: value for key, value in row.scalars.items() if self._written.get((key, step)) != value}
        # A killed writer may have left a row but no summary.
        if self._recall is not None and row.step is None:
            shown = self._summary(row.scalars)
            new |= {
                key: value
                for key, value in row.scalars.items()
                if not isinstance(shown[key], Mapping) and shown[key] != value
            }
        if not new:
            return
        self._define_axis(new)
        self._keep_earlier(step)
        self._run.log({**new, STEP: step}, commit=False)
        self._summarize({**new, STEP: step})
        self._written.update({(key, step): value for key, value in new.items()})
        self._open_row = (self._run.step, step)

    def _remember(self, keys: Iterable[str]) -> None:
        """Note what a reopened run's history holds of the scalars to be written."""
        unasked = [key for key in keys if key not in self._recalled]
        if self._recall is None or not unasked:
            return
        for row in self._recall([*unasked, STEP]):
            found = {(key, int(row[STEP])): row[key] for key in unasked if key in row and STEP in row}
            self._written.update(found)
        self._recalled.update(unasked)

    def _define_axis(self, keys: Iterable[str]) -> None:
        """Make ``uq/step`` the x axis of all scalars.

        Each is also named individually, because Lightning declares another axis for ``*``, which also matches
        ``uq/*``; a key with a dot cannot be named, because W&B takes the dot for nesting.
        """
        if not self._with_axis:
            self._run.define_metric(STEP)
            for section in SECTIONS:
                self._run.define_metric(f"{section}/*", step_metric=STEP)
        new = {key for key in keys if "." not in key} - self._with_axis
        self._define(sorted(new))
        self._with_axis |= {STEP, *new}

    def _summarize(self, values: Mapping[str, float]) -> None:
        """Put the values into the summary at once; the row is sent when the loop writes its next one.

        A user may have requested a summary other than the last value (``define_metric(key, summary="min")``), which
        the client does not reveal. A value set in the summary replaces such a definition until the metric is defined
        again: then the summary no longer holds the bare value, and the key is left to W&B.
        """
        summary: Any = self._run.summary
        before = self._summary(values)
        set_now = {key: value for key, value in values.items() if not isinstance(before[key], Mapping)}
        summary.update(set_now)
        first = [key for key in set_now if before[key] is None and key in self._with_axis and key != STEP]
        self._define(first)
        after = self._summary(first)
        others = [key for key in first if after[key] != set_now[key]]
        for key in others:
            del summary[key]  # it aggregates no rows yet, and reads 0
        self._define(others)

    def _summary(self, keys: Iterable[str]) -> dict[str, Any]:
        """Entries of the summary, None if absent, requested once: every item costs a request."""
        found = self._run.summary._as_dict()  # type: ignore[no-untyped-call]
        return {key: found.get(key) for key in keys}

    def _define(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._run.define_metric(key, step_metric=STEP)

    def _keep_earlier(self, step: int) -> None:
        """Close the row if it holds scalars of another ``uq/step``, which would be overwritten.

        That happens only if the training loop has not started a new row in between.
        """
        if self._open_row is not None and self._open_row[0] == self._run.step and self._open_row[1] != step:
            self._run.log({}, commit=True)
