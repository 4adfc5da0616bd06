"""The DVCLive runs below a folder: every folder with metrics.json is a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from uq_tracking.tracking.folder import KEPT, FolderStore, KeptStore
from uq_tracking_dvclive.run import METRICS, DVCLiveRun, read_metrics


class DVCLiveStore(KeptStore):
    """The runs below ``path``; a run's id is its folder's path relative to it."""

    scheme, tracker, evidence = "dvclive", "DVCLive", METRICS

    def is_run(self, folder: Path) -> bool:
        """Whether a folder holds metrics.json."""
        return (folder / METRICS).is_file()

    def folders(self) -> Iterable[Path]:
        """Find all folders with metrics.json."""
        return {file.parent for file in self.path.rglob(METRICS)}

    def started(self, folder: Path) -> float:
        """Return when this package first wrote to the run, else when its numbers were written last."""
        for run in FolderStore(folder).runs():
            if run.run_id == KEPT:
                return datetime.fromisoformat(run.created).timestamp()
        return (folder / METRICS).stat().st_mtime

    def last_scalars(self, folder: Path) -> dict[str, float]:
        """Read every number in metrics.json."""
        return dict(_numbers(read_metrics(folder), ""))

    def opened(self, folder: Path) -> DVCLiveRun:
        """Open a run without a ``Live``."""
        return DVCLiveRun(folder)


def _numbers(values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, float]]:
    """Numbers of nested objects, by the joined parts of their names."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            yield f"{prefix}{name}", float(value)
