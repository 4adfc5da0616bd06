"""Write a spool entry into a run, in the order and with the time of the original call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from uq_tracking.errors import FileFormatError, TrackerUnreachableError, redact
from uq_tracking.tracking.backend import Run, calling
from uq_tracking.tracking.operations import OPERATIONS
from uq_tracking.tracking.places import scratch_folder
from uq_tracking.tracking.spool import Entry
from uq_tracking.typed import DAMAGE

_log = logging.getLogger("uq_tracking")


def replay(entry: Entry, run: Run, after_group: Callable[[], None] = lambda: None) -> None:
    """Write everything the entry holds; what the run already holds stays as it is.

    Parameters
    ----------
    entry, run
        What to write, and where to.
    after_group
        Called after each group of writes the run has accepted.
    """
    with calling(entry.called), scratch_folder() as folder:
        for group in entry.groups:
            with run.batch():
                for operation in group:
                    _write(entry, run, operation, folder)
            after_group()


def _write(entry: Entry, run: Run, operation: Sequence[Any], folder: Path) -> None:
    name, *parts = operation
    kind = OPERATIONS[name]
    if kind.is_file:
        content = entry.member(parts[-1])
        parts[-1] = folder / "content"
        parts[-1].write_bytes(content)
    if kind.read is not None:
        try:
            parts[-1] = kind.read(parts[-1])
        except DAMAGE as error:
            raise FileFormatError(f"{entry.path} is damaged: {error}") from error
    try:
        kind.write(run, *parts)
    except TrackerUnreachableError:
        raise
    except Exception as error:  # trackers raise whatever their libraries raise
        if not kind.is_display:
            raise
        _log.debug("the run's page was not updated: %s", redact(str(error)))
