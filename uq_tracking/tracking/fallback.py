"""The run in ``./uq_runs`` for calls without a tracker, or whose tracker failed: nothing is lost."""

from __future__ import annotations

import uuid
from datetime import datetime
from functools import lru_cache
from itertools import count
from pathlib import Path

from uq_tracking.tracking.directory import RUN_FILE, DirectoryStore, slug
from uq_tracking.tracking.names import REPORT_FILE, file_name
from uq_tracking.tracking.resolve import Opened, Target

FOLDER = "uq_runs"


def fallback_target(method: str | None, split: str | None, step: int | None) -> tuple[Target, bool]:
    """Tell the folder this call belongs to, and whether it is new.

    The calls of one process and method share a run, as they would share a tracker's: one line per step, one
    report per split. A second report of the same split opens another run instead of replacing the first.
    """
    store = DirectoryStore(Path(FOLDER))
    name = method or "run"
    base = f"{_process_stamp()}-{slug(name)}"
    number = next(k for k in count(1) if not (store.path / _numbered(base, k + 1)).exists())
    if step is None and (store.path / _numbered(base, number) / file_name(REPORT_FILE, split)).exists():
        number += 1
    run_id = _numbered(base, number)
    is_new = not (store.path / run_id / RUN_FILE).is_file()
    return Target("dir", f"dir:{store.path / run_id}", lambda: Opened(store.open(run_id, name))), is_new


def _numbered(base: str, number: int) -> str:
    return base if number == 1 else f"{base}+{number}"  # no name that ``slug`` makes holds a plus


@lru_cache(maxsize=1)
def _process_stamp() -> str:
    """Return the time of this process's first call, and four digits that tell processes apart."""
    return f"{datetime.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"
