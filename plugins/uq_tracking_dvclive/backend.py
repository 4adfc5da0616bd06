"""DVCLive runs: what DVC shows in DVCLive's files, everything in a folder beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from uq_tracking.errors import FileFormatError
from uq_tracking.tracking.backend import BackendStatus, Run, picture_file, points_of
from uq_tracking.tracking.folder import KEPT, FolderBackend, FolderStore, KeptRun, KeptStore, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.curves import Curve


METRICS = "metrics.json"
"""The last value of every number, in objects nested by the parts of its name."""


class DVCLiveRun(KeptRun):
    """The run in the folder ``path``.

    Parameters
    ----------
    path : Path
        Folder of the run, ``Live.dir``.
    live : dvclive.Live, optional
        Whoever trains; its summary takes our numbers, or it would write metrics.json without them.
    """

    def __init__(self, path: Path, live: Any = None) -> None:
        super().__init__(path, "dvclive")
        self._live = live

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Add the numbers that are new to their plots, with a step, and to the metrics; see `Run`."""
        self._check_exists()
        with FileLock(self.folder / ".uq.lock"):
            new = {name: value for name, value, _ in self.new(scalars, step)}
            if step is not None:
                for name, value in new.items():
                    self._plot(name, {**self._points(name), step: value})
            metrics = read_metrics(self.folder)
            for summary in (metrics,) if self._live is None else (metrics, self._live.summary):
                for name, value in new.items():
                    _put(summary, name, value)
            write_whole(self.folder / METRICS, json.dumps(metrics, indent=4).encode())
            super().log_scalars(scalars, step=step)

    def log_curve(self, name: str, curve: Curve) -> None:
        """Plot the curve over integer steps, as DVC plots a metric; see `Run`."""
        self._check_exists()
        if curve.steps is not None:  # else it is not a line, but a two-dimensional histogram
            self._plot(name, points_of(curve))
        super().log_curve(name, curve)

    def _check_exists(self) -> None:
        super()._check_exists()
        if not (self.folder / METRICS).is_file():
            write_whole(self.folder / METRICS, b"{}")

    def start(self) -> None:
        """Write metrics.json, by which a run is recognized."""
        self._check_exists()

    def _points(self, name: str) -> dict[int, float]:
        """Points that this package added to a plot."""
        points = self.journal.scalars().items()
        return {step: value for (step, key), value in points if key == name and step is not None}

    def _plot(self, name: str, points: Mapping[int, float]) -> None:
        path = self.folder / "plots" / "metrics" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"step\t{path.stem}", *(f"{step}\t{value!r}" for step, value in sorted(points.items()))]
        write_whole(path, ("\n".join(rows) + "\n").encode())

    def _note_picture(self, kind: str, name: str, figure: Figure) -> None:
        """Keep a figure or map, and show it among the images."""
        super()._note_picture(kind, name, figure)
        kept = self.path / picture_file(name)
        if self._live is not None:  # which then lists the images in dvc.yaml
            self._live.log_image(kept.name, kept)
            return
        path = self.folder / "plots" / "images" / kept.name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, kept)


def read_metrics(folder: Path) -> dict[str, Any]:
    """Read metrics.json; FileFormatError if it is damaged."""
    try:
        return dict(json.loads((folder / METRICS).read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(f"{folder / METRICS} cannot be read: {error}") from error


def _put(summary: dict[str, Any], name: str, value: float) -> None:
    """Put a number where DVCLive does, below the parts of its name."""
    *outer, last = name.split("/")
    for part in outer:
        summary = summary.setdefault(part, {})
    summary[last] = value


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


class DVCLiveBackend(FolderBackend):
    """DVCLive's folders. There is no active run: pass the ``Live`` as ``run=``."""

    name = "dvclive"
    kind = DVCLiveStore

    def status(self) -> BackendStatus:
        """Report which DVCLive is installed, from its metadata."""
        return BackendStatus.of_package(self.name, "pip install 'uq-tracking[dvclive]'")

    def adopt(self, run: Any) -> Run | None:
        """Adopt a ``Live``, or a logger of Lightning that holds one."""
        live = run.experiment if type(run).__name__ == "DVCLiveLogger" else run
        return DVCLiveRun(Path(live.dir), live) if type(live).__name__ == "Live" else None
