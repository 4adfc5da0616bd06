"""A TensorBoard run open for writing: drawn from event files, kept whole in a folder beside them.

TensorBoard has no files or tags, shows numbers in single precision and never forgets a point. So everything is kept
in ``<run>/uq``, as the ``dir:`` backend keeps a run, and event files receive only what is new.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from uq_tracking.errors import RunNotFoundError
from uq_tracking.tracking.backend import Run, finite
from uq_tracking.tracking.folder import LOG_FILE, DirectoryRun, DirectoryStore
from uq_tracking.tracking.journal import Journal
from uq_tracking.tracking.places import scratch_folder
from uq_tracking_tensorboard.events import EventWriter, Writer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.curves import Curve

KEPT = "uq"
"""The subfolder of a run's folder for what event files cannot hold."""


class TensorBoardRun(Run):
    """The run in the folder ``path``.

    Parameters
    ----------
    path
        Folder of the run.
    writer
        The writer open on it, if any. Without its fast data server, a running TensorBoard follows only a run's newest
        event file: a second one would hide what the first writer still adds.
    """

    def __init__(self, path: Path, writer: Writer | None = None) -> None:
        self.path = path.absolute()
        self.uri = f"tensorboard:{self.path}"
        self._given = writer
        self._own: EventWriter | None = None

    @property
    def place(self) -> str:
        """The folder that contains the run's folder; see `Run`."""
        return str(self.path.parent)

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Draw the numbers that are new; without a step, at each one's last step; see `Run`."""
        kept = self._kept()
        journal = Journal(kept.path / LOG_FILE)
        known = journal.known(step)
        new = {name: value for name, value in finite(scalars).items() if known.get(name) != value}
        last = _last_steps(journal) if new and step is None else {}
        for name, value in new.items():
            self._writer().add_scalar(name, value, last.get(name, 0) if step is None else step)
        self._flush()
        kept.log_scalars(scalars, step=step)

    def log_file(self, path: Path, name: str) -> None:
        """Keep a copy of the file; see `Run`."""
        self._kept().log_file(path, name)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Keep the tags; see `Run`."""
        self._kept().set_tags(tags)

    def log_curve(self, name: str, curve: Curve) -> None:
        """Draw the curve as a scalar over integer steps, which the charts overlay run by run.

        Points cannot be taken back: a curve with other values becomes ``<name>-2``.
        """
        if curve.steps is None:
            return
        text = json.dumps(curve.to_dict())
        for version in count(1):
            key = name if version == 1 else f"{name}-{version}"
            stored = self._kept().path / f"{key}.json"
            if not stored.is_file():
                break
            if stored.read_text(encoding="utf-8") == text:
                return
        for step, value in zip(curve.steps, curve.columns[curve.main], strict=True):
            if np.isfinite(value):
                self._writer().add_scalar(key, float(value), int(step))
        self._flush()
        self._keep(f"{key}.json", text.encode())

    def log_figure(self, name: str, figure: Figure) -> None:
        """Show the figure among the images and keep it as a PNG file; see `Run`."""
        from uq_tracking.figures import to_png, to_rgb

        file, png = f"{name.replace('/', '_')}.png", to_png(figure)
        stored = self._kept().path / file
        if stored.is_file() and stored.read_bytes() == png:
            return
        self._writer().add_image(name, to_rgb(figure), 0, dataformats="HWC")
        self._flush()
        self._keep(file, png)

    def link(self) -> str | None:
        """Return the command that shows the run."""
        return f"tensorboard --logdir {self.path}"

    def start(self) -> None:
        """Create the event file, by which TensorBoard recognizes a run."""
        self._writer().flush()

    def close(self) -> None:
        """Close the event file, unless it belongs to the user's own writer."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _kept(self) -> DirectoryRun:
        if not self.path.is_dir():
            raise RunNotFoundError(f"{self.path} holds no run; was it moved or deleted?")
        return DirectoryStore(self.path).open(KEPT, self.path.name)

    def _keep(self, name: str, content: bytes) -> None:
        with scratch_folder() as folder:
            path = folder / "content"
            path.write_bytes(content)
            self.log_file(path, name)

    def _writer(self) -> Writer:
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = EventWriter(self.path)
        return self._own

    def _flush(self) -> None:
        writer = self._given or self._own
        if writer is not None:
            writer.flush()


def _last_steps(journal: Journal) -> dict[str, int]:
    """The last step of every scalar that has steps."""
    found: dict[str, int] = {}
    for step, name in journal.scalars():
        if step is not None:
            found[name] = max(step, found.get(name, step))
    return found
