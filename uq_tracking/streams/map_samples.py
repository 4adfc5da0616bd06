"""The few cases of a stream of spatial batches that are kept, to be drawn as maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.inputs.base import Case

Wanted = Literal["auto"] | int | Sequence[int] | bool

AUTO_CASES = 4
AUTO_MIN_SIDE = 16
AUTO_MAX_RATIO = 8

IMAGE = "image"
"""Entry of a case's input image among its stored arrays."""


def looks_spatial(shape: tuple[int, ...]) -> bool:
    """Whether the last two axes look like a picture: both at least 16 long, neither 8 times the other."""
    if len(shape) < 2:
        return False
    short, long = sorted(shape[-2:])
    return short >= AUTO_MIN_SIDE and long <= AUTO_MAX_RATIO * short


class MapSamples:
    """The first cases of a stream, or those of given numbers, counted over all batches.

    Parameters
    ----------
    wanted : "auto", bool, int or list of int
        ``"auto"``: the first four when the last two axes look like a picture; True: the first four; an int: so many;
        a list: these numbers; False: none.
    """

    def __init__(self, wanted: Wanted = "auto") -> None:
        if isinstance(wanted, str) and wanted != "auto":
            raise SettingsError(
                f"maps is {wanted!r}; choose 'auto', True, False, a number or a list of numbers"
            )
        self.wanted = wanted
        self.seen = 0
        self.cases: dict[int, Case] = {}

    def choose(self, shape: tuple[int, ...]) -> list[int]:
        """Which cases of the next batch, of this shape, to keep: their numbers within the batch.

        Raises
        ------
        SettingsError
            Cases are asked for and the batch is not spatial.
        """
        if self.wanted is False or (self.wanted == "auto" and not looks_spatial(shape)):
            return []
        if len(shape) < 2:
            raise SettingsError(
                f"maps={self.wanted!r} needs batches of shape (..., height, width), not {shape}"
            )
        count = _count(shape)
        if isinstance(self.wanted, Sequence) and not isinstance(self.wanted, str):
            return [number - self.seen for number in self.wanted if 0 <= number - self.seen < count]
        return list(range(min(count, self._limit - len(self.cases))))

    @property
    def _limit(self) -> int:
        if isinstance(self.wanted, bool) or self.wanted == "auto":
            return AUTO_CASES
        return self.wanted if isinstance(self.wanted, int) else len(self.wanted)

    def add(self, shape: tuple[int, ...], chosen: Sequence[int], cut: Callable[[Any], Case]) -> None:
        """Keep the chosen cases of a batch; ``cut`` makes one from its index."""
        for number in chosen:
            self.cases[self.seen + number] = cut(
                np.unravel_index(number, shape[:-2]) if len(shape) > 2 else ()
            )
        self.seen += _count(shape)

    def merge(self, other: MapSamples) -> None:
        """Take in the cases of a stream that comes after this one."""
        listed = isinstance(self.wanted, Sequence) and not isinstance(self.wanted, str)
        for number, case in other.cases.items():
            if listed:
                self.cases.setdefault(number, case)
            elif len(self.cases) < self._limit:
                self.cases[self.seen + number] = case
        self.seen += other.seen

    def to_host(self) -> None:
        """Bring cases that were left on a device to the host."""
        for number, case in self.cases.items():
            arrays = {name: _on_host(array) for name, array in case.arrays.items()}
            self.cases[number] = Case(arrays, _on_host(case.image))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Plain arrays that ``load`` reads."""
        arrays: dict[str, npt.NDArray[Any]] = {"seen": np.asarray(self.seen)}
        for number, case in self.cases.items():
            arrays |= {f"{number}/{name}": array for name, array in case.arrays.items()}
            arrays |= {} if case.image is None else {f"{number}/{IMAGE}": case.image}
        return arrays

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what ``to_arrays`` gave."""
        self.seen = int(arrays["seen"])
        columns: dict[int, dict[str, npt.NDArray[Any]]] = {}
        for key, value in arrays.items():
            number, _, name = key.partition("/")
            if name:
                columns.setdefault(int(number), {})[name] = value
        self.cases = {number: Case(column, column.pop(IMAGE, None)) for number, column in columns.items()}


def _on_host(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def case_number(place: Any, shape: tuple[int, ...]) -> Any:
    """Index of a case's image in a batch, from the case's place; a batch that is a single case has one image."""
    return int(np.ravel_multi_index(place, shape[:-2])) if place else ...


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape[:-2])) if len(shape) > 2 else 1


def check_image_count(shape: tuple[int, ...], images: Any) -> None:
    """ShapeError unless there is one input image per case of a batch."""
    if images is None or len(shape) <= 2:
        return
    if len(images) != _count(shape):
        raise ShapeError(
            f"images holds {len(images)} images for {_count(shape)} cases of a batch {shape}; pass one image per "
            "case, shape (cases, height, width) or (cases, height, width, channels)"
        )
