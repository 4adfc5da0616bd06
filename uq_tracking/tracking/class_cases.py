"""2-D cases of class predictions, such as segmented images, to be drawn as maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uq_tracking.inputs.classification import ClassPredictions

NO_LABEL = -1


@dataclass(frozen=True)
class ClassCase:
    """One 2-D case: labels, shape (h, w), -1 where there is none; probabilities, shape (h, w, C)."""

    name: str
    labels: npt.NDArray[np.int64]
    probs: npt.NDArray[np.float32]
    image: npt.NDArray[Any] | None = None

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What is drawn, in the order that map panels take it."""
        return self.labels, self.probs


def class_cases(data: ClassPredictions, chosen: Sequence[int], images: Any = None) -> Iterator[ClassCase]:
    """Cut the chosen cases out of the predictions, one at a time; arguments as for ``cases``."""
    shape = data.shape
    for index in chosen:
        place: tuple[Any, ...] = np.unravel_index(index, shape[:-2]) if len(shape) > 2 else ()
        labels = data.labels[place].astype(np.int64)
        if data.valid is not None:
            labels[~data.valid[place]] = NO_LABEL
        image = None if images is None else np.asarray(images[index] if len(shape) > 2 else images)
        yield ClassCase(str(index), labels, _probabilities(data, place), image)


def _probabilities(data: ClassPredictions, place: tuple[Any, ...]) -> npt.NDArray[np.float32]:
    """Probabilities of one case, a few rows at a time."""
    height, width = data.shape[-2:]
    made = np.empty((height, width, data.n_classes), dtype=np.float32)
    step = max(1, (1 << 18) // (width * data.n_classes))
    for start in range(0, height, step):
        rows = slice(start, start + step)
        made[rows] = data.scores.probabilities((*place, rows)).reshape(-1, width, data.n_classes)
    return made
