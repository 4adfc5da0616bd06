"""Event files: what TensorBoard draws."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uq_tracking.errors import FileFormatError
from uq_tracking.tracking.backend import Image


class EventWriter:
    """The parts used of a ``SummaryWriter``, torch's or tensorboardX's, with its own event file in ``folder``."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._file = EventFileWriter(str(folder), filename_suffix=".uq")

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Write a number in single precision: TensorBoard's data server ignores all others."""
        self._add(self._summary.Value(tag=tag, simple_value=scalar_value), global_step)

    def add_image(self, tag: str, img_tensor: Image, global_step: int, *, dataformats: str = "HWC") -> None:
        """Write pixels of shape (height, width, 3), for ``dataformats="HWC"``."""
        import PIL.Image

        height, width, _ = img_tensor.shape
        image = self._summary.Image(height=height, width=width, colorspace=3)
        buffer = io.BytesIO()
        PIL.Image.fromarray(img_tensor).save(buffer, format="PNG")
        image.encoded_image_string = buffer.getvalue()
        self._add(self._summary.Value(tag=tag, image=image), global_step)

    def add_text(self, tag: str, text_string: str, global_step: int) -> None:
        """Write Markdown."""
        from tensorboard.plugins.text.summary_v2 import text_pb

        self._add(text_pb(tag, text_string).value[0], global_step)

    def flush(self) -> None:
        """Flush to disk."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _add(self, value: Any, step: int) -> None:
        summary = self._summary(value=[value])
        self._file.add_event(self._event(wall_time=time.time(), step=step, summary=summary))


def event_files(folder: Path) -> list[Path]:
    """The event files in the folder itself, oldest first."""
    return sorted(folder.glob("*tfevents*"))


def started(folder: Path) -> float:
    """Return the time of the first event, in seconds."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    events = LegacyEventFileLoader(str(event_files(folder)[0])).Load()
    with _reading(folder):
        return float(next((event.wall_time for event in events), 0.0))


def read_points(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Every number in the folder's event files by name, as (step, value) in writing order."""
    from tensorboard.backend.event_processing import event_accumulator as reader
    from tensorboard.util.tensor_util import make_ndarray

    everything = {reader.SCALARS: 0, reader.TENSORS: 0, reader.IMAGES: 1}
    found: dict[str, list[tuple[int, float]]] = {}
    with _reading(folder):
        events = reader.EventAccumulator(str(folder), size_guidance=everything).Reload()
        for tag in events.Tags()[reader.SCALARS]:
            found[tag] = [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()[reader.TENSORS]:
            if events.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
                values = [(each.step, float(make_ndarray(each.tensor_proto))) for each in events.Tensors(tag)]
                found.setdefault(tag, []).extend(values)
    return found


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turn what protobuf, tensorboard and numpy raise for damaged events into FileFormatError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise FileFormatError(f"{folder} holds events that cannot be read: {error}") from error
