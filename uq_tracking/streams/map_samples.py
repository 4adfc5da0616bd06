"""The few cases of a stream of spatial batches that are kept for drawing as maps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from uq_tracking.checks import value_text
from uq_tracking.errors import InputTypeError, SettingsError, ShapeError, warn
from uq_tracking.inputs.predictions import Case, case_count, case_place, looks_spatial

WantedMaps = Literal["auto"] | int | Sequence[int] | bool

AUTO_CASES = 4


IMAGE = "image"
"""Name of a case's input image among its stored arrays."""
PARTS = ("epistemic", "aleatoric")
CHANNELS = (1, 3, 4)
"""Possible numbers of channels of a picture: grey, color, color with opacity."""
ALIKE = 0.9
"""How far the proportions of a picture and its map may differ unremarked."""


def checked_maps(wanted: Any, *, addresses: bool = False) -> str | bool | int | list[int]:
    """A choice of maps as plain values; SettingsError for anything else, also for other text unless it may be one.

    >>> checked_maps("auto"), checked_maps(range(3))
    ('auto', [0, 1, 2])
    """
    if isinstance(wanted, str) and (addresses or wanted == "auto"):
        return wanted
    if isinstance(wanted, bool | np.bool_):
        return bool(wanted)
    with suppress(TypeError):
        return operator.index(wanted)
    with suppress(TypeError):
        if not isinstance(wanted, str):
            return [operator.index(number) for number in wanted]
    raise SettingsError(
        f"maps is {value_text(wanted)}; choose 'auto', True, False, a whole number or a list of whole numbers"
    )


def has_cases(shape: tuple[int, ...], maps: Any, what: str = "predictions") -> bool:
    """Return whether there are cases to draw; SettingsError if there should be, but a shape is not spatial."""
    if maps is False or (maps == "auto" and not looks_spatial(shape)):
        return False
    if len(shape) < 2:
        raise SettingsError(f"maps={maps!r} needs {what} of shape (..., height, width), not {shape}")
    return True


class MapSamples:
    """The first cases of a stream, or those of given numbers, counted over all batches.

    Parameters
    ----------
    wanted : "auto", bool, int or list of int
        ``"auto"``: the first four if the last two axes look like a picture; True: the first four; an int: the first
        that many; a list: these numbers; False: none.
    """

    def __init__(self, wanted: WantedMaps = "auto") -> None:
        self.wanted = wanted
        self.numbers = None if isinstance(wanted, str | int) else wanted
        self.limit = wanted if isinstance(wanted, int) and not isinstance(wanted, bool) else AUTO_CASES
        self.seen = 0
        self.cases: dict[int, Case] = {}

    def choose(self, shape: tuple[int, ...]) -> list[int]:
        """Which cases of the next batch, of this shape, to keep, numbered within the batch.

        Raises
        ------
        SettingsError
            Cases are requested but the batch is not spatial.
        """
        if not has_cases(shape, self.wanted, "batches"):
            return []
        count = case_count(shape)
        if self.numbers is not None:
            return [number - self.seen for number in self.numbers if 0 <= number - self.seen < count]
        return list(range(min(count, self.limit - len(self.cases))))

    def add(self, shape: tuple[int, ...], chosen: Sequence[int], cut: Callable[[Any], Case]) -> None:
        """Keep the chosen cases of a batch, and count them all; ``cut`` extracts one by its index."""
        for number in chosen:
            self.cases[self.seen + number] = cut(case_place(number, shape))
        self.skip(shape)

    def skip(self, shape: tuple[int, ...]) -> None:
        """Count the cases of a batch of which none is kept."""
        self.seen += case_count(shape)

    def merge(self, other: MapSamples) -> None:
        """Add the cases of a stream that follows this one."""
        for number, case in other.cases.items():
            if self.numbers is not None:
                self.cases.setdefault(number, case)
            elif len(self.cases) < self.limit:
                self.cases[self.seen + number] = case
        self.seen += other.seen

    def to_host(self) -> None:
        """Bring cases left on a device to the host."""
        for number, case in self.cases.items():
            arrays = {name: _on_host(array) for name, array in case.arrays.items()}
            self.cases[number] = Case(arrays, _on_host(case.image), case.parts)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Plain arrays that ``load`` reads."""
        return {"seen": np.asarray(self.seen), **case_arrays(self.cases)}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore what ``to_arrays`` returned."""
        self.seen = int(arrays["seen"])
        self.cases = cases_of(arrays)


def case_arrays(cases: Mapping[int, Case]) -> dict[str, npt.NDArray[Any]]:
    """Plain arrays that ``cases_of`` reads."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for number, case in cases.items():
        arrays |= {f"{number}/{name}": array for name, array in {**case.arrays, **case.parts}.items()}
        arrays |= {} if case.image is None else {f"{number}/{IMAGE}": case.image}
    return arrays


def cases_of(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[int, Case]:
    """Cases by number, from what ``case_arrays`` made; other arrays are ignored."""
    columns: dict[int, dict[str, npt.NDArray[Any]]] = {}
    for key, value in arrays.items():
        number, _, name = key.partition("/")
        if name:
            columns.setdefault(int(number), {})[name] = value
    found: dict[int, Case] = {}
    for place, column in columns.items():
        image = column.pop(IMAGE, None)
        parts = {name: column.pop(name) for name in PARTS if name in column}
        found[place] = Case(column, image, parts)
    return found


def _on_host(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def case_image(images: Any, place: Any, shape: tuple[int, ...]) -> Any:
    """The input image of a case, channels last; a batch that is a single case has one image."""
    if images is None:
        return None
    image = images[int(np.ravel_multi_index(place, shape[:-2])) if place else ...]
    image = image.detach() if hasattr(image, "detach") else np.asarray(image)
    return image if _channels_last(tuple(image.shape)) else image.swapaxes(0, 1).swapaxes(1, 2)


def _channels_last(shape: tuple[int, ...]) -> bool:
    """Whether an image has its channels last, or none; otherwise they come first."""
    return len(shape) == 2 or shape[-1] in CHANNELS


def check_image_count(shape: tuple[int, ...], images: Any) -> None:
    """Raise ShapeError unless there is one input image per case of a batch, with channels first or last.

    Raises InputTypeError for anything but an array of numbers.
    """
    try:
        array = images if hasattr(images, "shape") else np.asarray(images)
    except ValueError as error:
        raise InputTypeError(f"images is not an array ({error}); pass pictures of equal size") from None
    if getattr(getattr(array, "dtype", None), "kind", "f") not in "biuf":
        raise InputTypeError(f"images holds {array.dtype}; pass an array of numbers")
    found = tuple(array.shape)
    one = found[1:] if len(shape) > 2 else found
    if len(one) not in (2, 3) or (len(one) == 3 and not {one[0], one[-1]}.intersection(CHANNELS)):
        raise ShapeError(
            f"images has shape {found}, but a picture is (height, width), or has {', '.join(map(str, CHANNELS))} "
            "channels, first or last; select the channels to show, such as images[..., :3]"
        )
    if len(shape) > 2 and len(images) != case_count(shape):
        raise ShapeError(
            f"images holds {len(images)} images for {case_count(shape)} cases of a batch {shape}; pass one image per "
            "case, shape (cases, height, width) or (cases, height, width, channels)"
        )
    height, width = one[:2] if _channels_last(one) else one[1:]
    if not ALIKE < (height * shape[-1]) / (width * shape[-2]) < 1 / ALIKE:
        shown, of = f"{height} x {width}", f"{shape[-2]} x {shape[-1]}"
        warn(f"images are {shown}, of another shape than maps of {of}: drawn as they are")
