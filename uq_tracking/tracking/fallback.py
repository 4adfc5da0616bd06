"""The run in ``./uq_runs`` for calls without a tracker, so that nothing is lost."""

from __future__ import annotations

import os
import threading
import uuid
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from uq_tracking.tracking.directory import DirectoryRun, DirectoryStore, slug
from uq_tracking.tracking.places import in_first_place, places
from uq_tracking.tracking.resolve import Opened, Target


class _Thread(threading.local):
    """The runs of one thread in one process; forked children and other threads have their own."""

    def __init__(self) -> None:
        self.pid = 0
        self.stamp = ""
        self.runs: dict[tuple[str, Path | None], list[tuple[DirectoryRun, set[str | None]]]] = {}

    def of_this_process(self) -> _Thread:
        """Discard what a fork has copied."""
        if self.pid != os.getpid():
            self.pid = os.getpid()
            self.stamp = f"{datetime.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"
            self.runs = {}
        return self


@lru_cache(maxsize=1)
def _threads() -> _Thread:
    return _Thread()


def fallback_target(method: str | None, split: str | None, step: int | None) -> tuple[Target, bool]:
    """Return the folder this call belongs to, and whether it is new.

    Calls of the same thread and method share a run, as they would share a tracker's: one line per step, one report
    per split. A second report of the same split opens another run instead of replacing the first.

    Raises
    ------
    BackendError
        No folder can be created anywhere.
    """
    here = _threads().of_this_process()
    runs = here.runs.setdefault((method or "run", next(places(), None)), [])
    is_new = not runs or not runs[-1][0].path.is_dir() or (step is None and split in runs[-1][1])
    if is_new:
        name = f"{here.stamp}-{slug(method or 'run')}" + (f"+{len(runs) + 1}" if runs else "")
        runs.append((in_first_place(lambda place: _make(place, name, method or "run")), set()))
    run, splits = runs[-1]
    if step is None:
        splits.add(split)
    return Target("dir", run.uri, lambda: Opened(run), place=run.place), is_new


def _make(place: Path, run_id: str, name: str) -> DirectoryRun:
    return DirectoryStore(place).open(run_id, name)
