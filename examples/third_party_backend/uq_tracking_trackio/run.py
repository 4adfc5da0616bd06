"""A trackio run to write to.

Rows go directly to trackio's storage. ``trackio.log`` returns before anything is stored, turns every error into a
warning, and would advance the step of the training loop.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.tracking.backend import Run, finite, name_parts
from uq_tracking_trackio.project import Project, image

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIRST_ROW = 1.5
"""Seconds after which trackio's thread has stored what a training loop logged (it checks every half second)."""


class TrackioRun(Run):
    """The run ``run_id`` of a project; ``live`` is the object from ``trackio.init`` while the run is open."""

    def __init__(self, project: str, run_id: str, name: str, live: Any = None) -> None:
        self.uri = f"trackio:{project}/{run_id}"
        self.project = Project(project)
        self.run_id = run_id
        self.name = name
        self._live = live

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Add the new numbers; without a step, each at its own last step; see `Run`."""
        self._check_exists()
        with self.project.lock():
            known = self.project.scalars(self.run_id)
            rows: dict[int, dict[str, float]] = {}
            for name, value in finite(scalars).items():
                points = known.get(name, {})
                place = max(points, default=0) if step is None else step
                if points.get(place) != value:
                    rows.setdefault(place, {})[name] = value
            if rows:
                self.project.append(self.run_id, self.name, rows)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Put the tags into the run's configuration; see `Run`."""
        self._check_exists()
        texts = {name: str(value) for name, value in tags.items()}
        own = {} if self._live is None else self._settled_config(texts)
        with self.project.lock():
            config = self.project.config(self.run_id)
            new = {**own, **config, **texts}
            if new != config:
                self.project.append(self.run_id, self.name, {0: {}}, new)

    def log_file(self, path: Path, name: str) -> None:
        """Copy a file to the run's folder; readers see the old or the new file, never part of one; see `Run`."""
        target = self.project.folder(self.run_id).joinpath(*name_parts(name))
        self._check_exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{uuid.uuid4().hex}.part")
        try:
            shutil.copyfile(path, part)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)

    def log_figure(self, name: str, figure: Figure) -> None:
        """Store the figure as a file, and show that file in the run's media."""
        super().log_figure(name, figure)
        value = image(self.project.folder(self.run_id) / f"{name.replace('/', '_')}.png")
        with self.project.lock():
            if not self.project.holds(self.run_id, name, value):
                self.project.append(self.run_id, self.name, {0: {name: value}})

    def _check_exists(self) -> None:
        if self._live is None:
            self.project.find(self.run_id)

    def _settled_config(self, tags: Mapping[str, str]) -> dict[str, Any]:
        """The open run's configuration, with the tags.

        trackio stores it once, with the loop's first row, and replaces what is there. If that has not happened yet,
        the tags are stored with it; if it is under way, we wait for it.
        """
        config: dict[str, Any] = self._live.config
        config.update(tags)
        deadline = time.monotonic() + _FIRST_ROW
        while not self.project.config(self.run_id) and time.monotonic() < deadline:
            time.sleep(0.05)
        return config
