"""An entry of the spool written into a run, in the order and with the time of the call that it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from uq_tracking.curves import Curve
from uq_tracking.tracking.backend import Run
from uq_tracking.tracking.clock import calling
from uq_tracking.tracking.places import scratch_folder
from uq_tracking.tracking.spool import Entry

PICTURE = "uq_tracking.figures.picture:picture"
"""Makes a figure of a stored picture; by its name, because drawing stands beside tracking, not above it."""


def replay(entry: Entry, run: Run, after_group: Callable[[], None] = lambda: None) -> None:
    """Write everything that the entry holds; what the run holds already stays as it is.

    Parameters
    ----------
    entry, run
        What, and where to.
    after_group
        Called after each group of writes that the run has taken.
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
        run.log_curve(values[0], Curve.from_dict(values[1]))
    else:
        path = folder / "content"
        path.write_bytes(entry.member(values[1]))
        _write_file(run, kind, values[0], path)


def _write_file(run: Run, kind: str, name: str, path: Path) -> None:
    if kind == "file":
        run.log_file(path, name)
        return
    picture = resolve_name(PICTURE)
    if kind == "figure":
        run.log_figure(name, picture(path))
    else:
        run.log_map(name, picture(path))
