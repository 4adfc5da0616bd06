"""Write a spool entry into a run, in the order and with the time of the original call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

from uq_tracking.curves import Curve
from uq_tracking.errors import FileFormatError, TrackerUnreachableError
from uq_tracking.tracking.backend import Run
from uq_tracking.tracking.clock import calling
from uq_tracking.tracking.description import Dataset, Description
from uq_tracking.tracking.places import scratch_folder
from uq_tracking.tracking.redaction import redact
from uq_tracking.tracking.spool import Entry
from uq_tracking.typed import DAMAGE, record

T = TypeVar("T")
_log = logging.getLogger("uq_tracking")

PICTURE = "uq_tracking.figures.picture:picture"
"""Turns a stored picture into a figure; named as text, because tracking may not import drawing."""


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
    kind, *values = operation
    if kind == "scalars":
        run.log_scalars(values[1], step=values[0])
    elif kind == "tags":
        run.set_tags(values[0])
    elif kind == "seal":
        run.seal(values[0])
    elif kind == "table":
        run.log_table(*values)
    elif kind == "curve":
        run.log_curve(values[0], _read(entry, lambda: Curve.from_dict(values[1])))
    elif kind == "description":
        _present(partial(run.describe, _read(entry, lambda: record(Description, values[0]))))
    elif kind == "dataset":
        _present(partial(run.use_dataset, _read(entry, lambda: record(Dataset, values[0]))))
    elif kind == "page":
        _present(partial(run.show, [str(name) for name in values[0]]))
    else:
        path = folder / "content"
        path.write_bytes(entry.member(values[1]))
        _write_file(run, kind, values[0], path)


def _read(entry: Entry, make: Callable[[], T]) -> T:
    """Make what the entry describes; FileFormatError if that is impossible."""
    try:
        return make()
    except DAMAGE as error:
        raise FileFormatError(f"{entry.path} is damaged: {error}") from error


def _present(action: Callable[[], object]) -> None:
    """Do something that is only for display, if the tracker allows; see ``RunWriter.present``."""
    try:
        action()
    except TrackerUnreachableError:
        raise
    except Exception as error:  # nothing is lost with it
        _log.debug("the run's page was not updated: %s", redact(str(error)))


def _write_file(run: Run, kind: str, name: str, path: Path) -> None:
    if kind == "file":
        run.log_file(path, name)
        return
    picture = resolve_name(PICTURE)
    if kind == "figure":
        run.log_figure(name, picture(path))
    else:
        run.log_map(name, picture(path))
