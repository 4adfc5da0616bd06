"""The writing side: one row per batch in the open run, beside the rows of the training loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from uq_tracking.curves import Curve
from uq_tracking.errors import BackendError
from uq_tracking.tracking.backend import Run, finite, name_parts
from uq_tracking_wandb.address import uri_of
from uq_tracking_wandb.artifacts import RunFiles
from uq_tracking_wandb.charts import chart
from uq_tracking_wandb.images import rgb
from uq_tracking_wandb.tags import config_with

if TYPE_CHECKING:
    import wandb
    from matplotlib.figure import Figure

STEP = "uq/step"

Recall = Callable[[Sequence[str]], Iterable[Mapping[str, Any]]]
"""From keys to the rows of a run's history that hold all of them."""


@dataclass
class _Row:
    """What a batch has collected for the run's history."""

    media: dict[str, Any] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    """Of the media's content, to recognise what is logged again."""
    step: int | None = None


class WandbRun(Run):
    """An open W&B run.

    A batch becomes one ``run.log(..., commit=False)`` without a step: the values join the row that the training
    loop writes next (or the last one, at ``finish``), so that no row of the loop is closed early or refused.
    The x axis of ``uq/*`` is ``uq/step``.

    Parameters
    ----------
    run
        The open run; it is never started or finished here.
    stored
        Offline only: staged files of earlier fragments of this run.
    recall
        For a reopened run: its earlier history rows that hold the keys, so that nothing is written twice.
    """

    def __init__(
        self, run: wandb.Run, stored: Mapping[str, Path] | None = None, recall: Recall | None = None
    ) -> None:
        self.uri = uri_of(run)
        self.sdk_run = run
        self._files = RunFiles(run, stored)
        self._recall = recall
        self._row = _Row()
        self._lock = RLock()
        self._depth = 0
        self._defined = False
        self._written: dict[tuple[str, int], float] = {}
        self._recalled: set[str] = set()
        self._shown: dict[str, str] = {}
        self._open_row: tuple[int, int] | None = None
        """The run's step and the ``uq/step`` at which scores were written last."""

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Write the finite numbers; ``step`` becomes ``uq/step``, without one it stays what it was, at first 0."""
        with self.batch():
            if step is not None and self._row.step not in (None, step):
                self._write_row()
            self._row.step = self._row.step if step is None else int(step)
            self._row.scalars.update(finite(scalars))

    def log_curve(self, name: str, curve: Curve) -> None:
        """Write a curve as a table with a line plot that the page overlays over all visible runs."""
        values = {column: [float(value) for value in curve.columns[column]] for column in curve.columns}
        with self.batch():
            content = json.dumps([values, curve.x, curve.main, curve.title]).encode()
            self._add_media(name, content, lambda: chart(curve))

    def log_figure(self, name: str, figure: Figure) -> None:
        """Write a figure as an image panel."""
        import wandb

        pixels = rgb(figure)
        with self.batch():
            self._add_media(name, pixels.tobytes(), lambda: wandb.Image(pixels, file_type="png"))

    def log_file(self, path: Path, name: str) -> None:
        """Put a file into the run's artifact."""
        name_parts(name)
        with self.batch():
            self._files.add(path, name)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags in the run's config, where the page filters and groups by them."""
        with self.batch():
            config: Any = self.sdk_run.config
            config.update(config_with(dict(config), tags), allow_val_change=True)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Collect the calls inside; one row and one artifact version at the end.

        What was collected before an exception is written as well; threads take turns.
        """
        with self._lock:
            if is_finished(self.sdk_run):
                raise finished_error(self.uri)
            self._depth += 1
            try:
                yield
            except Exception:
                self._leave(failed=True)
                raise
            except BaseException:
                self._forget()
                raise
            else:
                self._leave(failed=False)

    def link(self) -> str | None:
        """Address of the run's page; None offline."""
        return None if self.sdk_run.offline else self.sdk_run.url

    def _leave(self, *, failed: bool) -> None:
        """End one level of ``batch`` and write what it collected at the outermost."""
        self._depth -= 1
        if self._depth:
            return
        try:
            self._write_row()
            self._files.flush()
        except Exception:
            self._files.discard()
            if not failed:  # else the error of the batch's body is the one to show
                raise

    def _forget(self) -> None:
        """Drop what was collected: the user has interrupted the program."""
        self._depth -= 1
        self._row = _Row()
        self._files.discard()

    def _add_media(self, key: str, content: bytes, make: Callable[[], Any]) -> None:
        """Add a chart or an image to the row, unless the run shows the same under this key already."""
        digest = sha256(content).hexdigest()
        if self._shown.get(key) != digest:
            self._row.media[key], self._row.digests[key] = make(), digest

    def _write_row(self) -> None:
        row, self._row = self._row, _Row()
        if not (row.media or row.scalars):
            return
        self._define_axis()
        summary: Any = self.sdk_run.summary
        step = int(summary.get(STEP, 0)) if row.step is None else row.step
        self._remember(row.scalars)
        scalars = {
            key: value for key, value in row.scalars.items() if self._written.get((key, step)) != value
        }
        if scalars:
            self._keep_earlier(step)
            scalars[STEP] = step
        if row.media or scalars:
            self.sdk_run.log({**row.media, **scalars}, commit=False)
            self._shown.update(row.digests)
        if scalars:
            # The row is sent when the loop writes its next one; the summary shows the scores at once.
            summary.update(scalars)
            self._written.update({(key, step): value for key, value in scalars.items()})
            self._open_row = (self.sdk_run.step, step)

    def _remember(self, keys: Iterable[str]) -> None:
        """Note what a reopened run's history holds of scalars that are to be written."""
        unasked = [key for key in keys if key not in self._recalled]
        if self._recall is None or not unasked:
            return
        self._recalled.update(unasked)
        for row in self._recall([*unasked, STEP]):
            found = {(key, int(row[STEP])): row[key] for key in unasked if key in row and STEP in row}
            self._written.update(found)

    def _define_axis(self) -> None:
        if not self._defined:
            self.sdk_run.define_metric(STEP)
            self.sdk_run.define_metric("uq/*", step_metric=STEP)
            self._defined = True

    def _keep_earlier(self, step: int) -> None:
        """Close the row if it holds scores of another ``uq/step``, which would be overwritten in it.

        That happens only when the training loop has started no new row in between.
        """
        if (
            self._open_row is not None
            and self._open_row[0] == self.sdk_run.step
            and self._open_row[1] != step
        ):
            self.sdk_run.log({}, commit=True)


class DisabledRun(Run):
    """A run of ``mode="disabled"``: the user wants nothing logged, so nothing is."""

    uri = "wandb:disabled"

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Do nothing."""

    def log_file(self, path: Path, name: str) -> None:
        """Do nothing."""

    def log_figure(self, name: str, figure: Figure) -> None:
        """Do nothing."""

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Do nothing."""


def is_finished(run: wandb.Run) -> bool:
    """Whether the run has been finished; the SDK tells only by refusing to log."""
    return bool(getattr(run, "_is_finished", False))


def finished_error(uri: str) -> BackendError:
    """Build the error that says what to do with a finished run."""
    return BackendError(f"{uri} is finished; log before run.finish(), or pass run={uri!r} to reopen it")
