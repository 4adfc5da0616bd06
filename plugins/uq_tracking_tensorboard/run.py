"""A TensorBoard run open for writing: drawn from event files, kept whole in a folder beside them.

TensorBoard has no files or tags, shows numbers in single precision and never forgets a point. So everything is kept
in ``<run>/uq``, as the ``dir:`` backend keeps a run, and event files receive only what is new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from uq_tracking.tracking.backend import picture_file, points_of
from uq_tracking.tracking.folder import KeptRun
from uq_tracking.tracking.journal import csv_of
from uq_tracking_tensorboard.events import EventWriter, Writer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.curves import Curve
    from uq_tracking.tracking.overview import Description


class TensorBoardRun(KeptRun):
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
        super().__init__(path, "tensorboard")
        self._given = writer
        self._own: EventWriter | None = None

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Draw the numbers that are new; without a step, at each one's last step; see `Run`."""
        self._check_exists()
        for name, value, place in self.new(scalars, step):
            self._writer().add_scalar(name, value, place)
        self._flush()
        super().log_scalars(scalars, step=step)

    def log_curve(self, name: str, curve: Curve) -> None:
        """Draw the curve as a scalar over integer steps, which the charts overlay run by run.

        Points cannot be taken back: a curve with other values becomes ``<name>-2``.
        """
        content = csv_of(curve)
        for version in count(1):
            key = name if version == 1 else f"{name}-{version}"
            stored = self.path / f"{key}.csv"
            if not stored.is_file():
                self._check_exists()
                for step, value in points_of(curve).items():
                    self._writer().add_scalar(key, value, step)
                self._flush()
                break
            if stored.read_bytes() == content:
                break
        self._note_curve(name, curve, f"{key}.csv")

    def describe(self, description: Description) -> None:
        """Show verdict and headline among the texts, if they are new; see `Run`."""
        self._check_exists()
        shown = [line["values"] for line in self.journal.others() if line["kind"] == "description"]
        if asdict(description) not in shown:
            name = f"uq/{description.split}/verdict" if description.split else "uq/verdict"
            self._writer().add_text(name, description.text, 0)
            self._flush()
        super().describe(description)

    def link(self) -> str | None:
        """Return the command that shows the run."""
        return f"tensorboard --logdir {self.folder}"

    def start(self) -> None:
        """Create the event file, by which TensorBoard recognizes a run."""
        self._writer().flush()

    def close(self) -> None:
        """Close the event file, unless it belongs to the user's own writer."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _note_picture(self, kind: str, name: str, figure: Figure) -> None:
        """Show a figure or map among the images, unless it is the one that is kept, and keep it."""
        from uq_tracking.figures import to_png, to_rgb

        stored = self.path / picture_file(name)
        self._check_exists()
        if not stored.is_file() or stored.read_bytes() != to_png(figure):
            self._writer().add_image(name, to_rgb(figure), 0, dataformats="HWC")
            self._flush()
        super()._note_picture(kind, name, figure)

    def _writer(self) -> Writer:
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = EventWriter(self.folder)
        return self._own

    def _flush(self) -> None:
        writer = self._given or self._own
        if writer is not None:
            writer.flush()
