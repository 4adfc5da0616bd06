"""The writing side: an open W&B run, one that the user has disabled, and runs that this package opens itself."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from uq_tracking.curves import Curve
from uq_tracking.errors import RunFinishedError, RunNotFoundError, TrackerUnreachableError, redact
from uq_tracking.tracking.backend import Cell, Image, Run, finite, name_parts
from uq_tracking.tracking.names import MAPS
from uq_tracking_wandb.artifacts import RunFiles
from uq_tracking_wandb.charts import chart, rgb
from uq_tracking_wandb.history import History, Recall, Row
from uq_tracking_wandb.names import config_with, numbers, run_folder, tags_in, uri_of, verdicts_in

if TYPE_CHECKING:
    import wandb
    from matplotlib.figure import Figure
    from wandb.apis.public import Run as ApiRun

    from uq_tracking.tracking.overview import Description


ROOM = 8 * 2**20
"""With less free space than this, in bytes, nothing is entrusted to an offline run."""


class WandbRun(Run):
    """An open W&B run. A batch adds to one history row and makes one version of the run's artifact.

    Parameters
    ----------
    run
        The open run; it is never started or finished here.
    stored
        Offline only: staged files of earlier fragments of this run.
    recall
        For a reopened run: reads its existing history, so that nothing is written twice.
    patience
        Seconds to wait for every version of the artifact; None leaves the upload to the background.
    """

    def __init__(
        self,
        run: wandb.Run,
        stored: Mapping[str, Path] | None = None,
        recall: Recall | None = None,
        patience: int | None = None,
    ) -> None:
        self.uri = uri_of(run)
        self.sdk_run = run
        self._files = RunFiles(run, stored, patience)
        self._history = History(run, recall)
        self._row = Row()
        self._lock = RLock()
        self._depth = 0
        self._maps: dict[str | float | None, Image] = {}

    @property
    def place(self) -> str:
        """The server's address, or the folder of an offline run; see `Run`."""
        run = self.sdk_run
        return str(run_folder(run).parent) if run.offline else redact(str(run.settings.base_url))

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Write the finite numbers; ``step`` becomes ``uq/step``, which otherwise stays as it was, initially 0."""
        with self.batch():
            if step is not None and self._row.step not in (None, step):
                self._write_row()
            self._row.step = self._row.step if step is None else int(step)
            self._row.scalars.update(finite(scalars))

    def log_curve(self, name: str, curve: Curve) -> None:
        """Write a curve as a table with a line plot, overlaid for all visible runs on the page."""
        values = {column: [float(value) for value in curve.columns[column]] for column in curve.columns}
        content = json.dumps([values, curve.x, curve.main, curve.title]).encode()
        self._log_media(name, content, lambda: chart(curve))

    def log_figure(self, name: str, figure: Figure) -> None:
        """Write a figure as an image panel."""
        import wandb

        pixels = rgb(figure)
        self._log_media(name, pixels.tobytes(), lambda: wandb.Image(pixels, file_type="png"))
        if name.startswith(MAPS):
            self._maps[name] = pixels

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Write a table, with the pictures of maps drawn by this writer."""
        import wandb

        def shown(cell: Cell) -> Any:
            pixels = self._maps.get(cell) if isinstance(cell, str) else None
            return cell if pixels is None else wandb.Image(pixels, file_type="png")

        pictures = [self._maps[cell].tobytes() for row in rows for cell in row if cell in self._maps]
        content = b"".join([json.dumps([columns, rows]).encode(), *pictures])
        self._log_media(
            name,
            content,
            lambda: wandb.Table(columns=[*columns], data=[[shown(cell) for cell in row] for row in rows]),
        )

    def log_file(self, path: Path, name: str) -> None:
        """Put a file into the run's artifact."""
        name_parts(name)
        with self.batch():
            self._files.add(path, name)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags in the run's config, by which the page filters and groups; verdicts also in the summary.

        Only entries of the summary become columns of the table of runs, next to the scores.
        """
        with self.batch():
            config: Any = self.sdk_run.config
            config.update(config_with(dict(config), tags), allow_val_change=True)
            verdicts = verdicts_in(tags)
            if verdicts:
                summary: Any = self.sdk_run.summary
                summary.update(verdicts)

    def describe(self, description: Description) -> None:
        """Put the verdict into the run's notes, as a paragraph that begins with ``uq_tracking``; see `Run`."""
        start = f"uq_tracking{f' {description.split}' if description.split else ''}: "
        ours = start + description.verdict
        with self._lock:
            before = self.sdk_run.notes or ""
            parts = [ours if part.startswith(start) else part for part in before.split("\n\n") if part]
            text = "\n\n".join(parts if ours in parts else [*parts, ours])
            if text != before:
                self.sdk_run.notes = text

    def show(self) -> str | None:
        """Return the address of the run's page, if online: W&B has no page of all runs that a run could write."""
        return None if self.sdk_run.offline else self.sdk_run.url

    def arrival(self) -> Callable[[], None] | None:
        """Wait for the last version of the artifact, the only thing that `wandb sync` does not send; see `Run`."""
        return self._files.arrival()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Collect the calls inside and write them at the end.

        What was collected before an exception is also written; threads take turns.
        """
        with self._lock:
            if is_finished(self.sdk_run):
                raise RunFinishedError(self.uri)
            self._check_room()
            # Attaches a forked worker to the run, which reading its summary would not do.
            _ = self.sdk_run.step
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

    def _check_room(self) -> None:
        """Raise RunNotFoundError if an offline run is about to stop silently.

        Once a write has failed, ``wandb-core`` records nothing more, even when there is room again, and does not say
        so.
        """
        if self.sdk_run.offline and shutil.disk_usage(self.sdk_run.dir).free < ROOM:
            raise RunNotFoundError(
                f"{self.uri}: its disk is nearly full, and wandb stops recording a run for good when a write fails; "
                "free some space before the next run"
            )

    def _log_media(self, key: str, content: bytes, make: Callable[[], Any]) -> None:
        """Add a chart or an image to the row, unless the run already shows the same under this key.

        A dot becomes a hyphen (``uq_curve/reliability-bins20``), because W&B takes a dot for nesting.
        """
        key = key.replace(".", "-")
        digest = sha256(content).hexdigest()
        with self.batch():
            if not self._history.shows(key, digest):
                self._row.media[key], self._row.digests[key] = make(), digest

    def _leave(self, *, failed: bool) -> None:
        """End one level of ``batch``; at the outermost, write what was collected."""
        self._depth -= 1
        if self._depth:
            return
        try:
            self._write_row()
            self._files.flush()
        except Exception:
            self._files.discard()
            if not failed:  # otherwise the error of the batch's body is the one to show
                raise

    def _write_row(self) -> None:
        row, self._row = self._row, Row()
        self._history.write(row)

    def _forget(self) -> None:
        """Drop what was collected: the user has interrupted the program."""
        self._depth -= 1
        self._row = Row()
        self._files.discard()


class DisabledRun(Run):
    """A run with ``mode="disabled"``: the user wants nothing logged, so nothing is."""

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
    """Return whether the run has been finished; the SDK shows that only by refusing to log."""
    return bool(getattr(run, "_is_finished", False))


FINISH_SECONDS = 120.0
"""Seconds that closing a run may wait for its uploads."""

_QUIET: dict[str, Any] = {
    "console": "off",
    "silent": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
    "disable_git": True,
    "disable_code": True,
    "finish_timeout": FINISH_SECONDS,
    "finish_timeout_raises": True,
}
"""No console capture, machine statistics or code of this process: the run belongs to another one."""


def open_run(**options: Any) -> wandb.Run:
    """Open a run alongside the active ones; ``wandb.run`` is unchanged."""
    import wandb

    known = {name: value for name, value in _QUIET.items() if name in wandb.Settings.model_fields}
    return wandb.init(reinit="create_new", settings=wandb.Settings(**known), **options)


class OwnedRun(WandbRun):
    """A run that this package opened and therefore closes."""

    failed = False
    """True if the run had failed before it was reopened; it then stays failed."""

    def close(self) -> None:
        """Finish the run, with the exit code that keeps its status; TimeoutError if uploads take too long."""
        if not is_finished(self.sdk_run):
            self.sdk_run.finish(exit_code=int(self.failed))


SHOWN_SECONDS = 30.0
"""Seconds the server may take to show what it has accepted."""

_PAUSE = 0.25
"""Seconds before asking the server again, doubled every time."""


class OnlineRun(OwnedRun):
    """An online run opened by this package: it waits for every version of its artifact, and sets ``seal`` last.

    Parameters
    ----------
    run, recall
        As for ``WandbRun``.
    read
        Requests the run from the server.
    """

    def __init__(self, run: wandb.Run, read: Callable[[], ApiRun], recall: Recall | None = None) -> None:
        super().__init__(run, recall=recall, patience=int(FINISH_SECONDS))
        self._read = read
        self._scalars: dict[str, float] = {}
        self._tags: dict[str, str] = {}
        self._seal: dict[str, str] = {}

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Write the finite numbers; see `WandbRun`."""
        super().log_scalars(scalars, step=step)
        self._scalars.update(finite(scalars))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags in the run's config; see `WandbRun`."""
        super().set_tags(tags)
        self._tags.update({name: str(value) for name, value in tags.items()})

    def seal(self, tags: Mapping[str, str]) -> None:
        """Set these tags when the run is closed, after everything else has arrived."""
        self._seal.update(tags)

    def close(self) -> None:
        """Finish the run; then, if it has a seal, wait until the server shows what was written and set the seal.

        Raises
        ------
        TimeoutError
            Uploads take too long; TrackerUnreachableError if the server does not show them. In both cases no seal is
            set.
        """
        super().close()
        seal, self._seal = self._seal, {}
        if seal:
            run = self._shown()
            run.config.update(config_with(run.config, seal))
            run.update()

    def _shown(self) -> ApiRun:
        """The complete run from the server, because ``ApiRun.update`` writes back everything it has read."""
        end, pause = time.monotonic() + SHOWN_SECONDS, _PAUSE
        while not self._is_complete(run := self._read()):
            if time.monotonic() > end:
                raise TrackerUnreachableError(
                    f"{self.uri}: the server does not show the scores {SHOWN_SECONDS:g} s after they were sent; "
                    "the run is not marked as done; try again later"
                )
            time.sleep(pause)
            pause *= 2
        return run

    def _is_complete(self, run: ApiRun) -> bool:
        summary, tags = run.summary_metrics, tags_in(run.config)
        scalars = numbers(summary)
        shown = all(
            isinstance(summary.get(key), Mapping)  # an aggregate defined by the user
            or math.isclose(scalars.get(key, math.nan), value, rel_tol=1e-9)
            for key, value in self._scalars.items()
        )
        return shown and all(tags.get(name) == value for name, value in self._tags.items())
