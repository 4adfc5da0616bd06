"""Switch off MLflow's progress bar for every downloaded file while we download.

Only a process-wide environment variable controls it. It is set while any of our threads downloads and restored after
the last one, so nothing but a bar can go missing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"


class _Silence:
    """Counts the threads that need silence."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted_by = 0
        self._before: str | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            if self._wanted_by == 0:
                self._before = os.environ.get(VARIABLE)
                os.environ[VARIABLE] = "false"
            self._wanted_by += 1

    def _leave(self) -> None:
        with self._lock:
            self._wanted_by -= 1
            if self._wanted_by > 0:
                return
            if self._before is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = self._before


no_progress_bar = _Silence()
"""Use as ``with no_progress_bar():`` around a download."""
