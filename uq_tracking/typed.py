"""Typing helpers, and records as plain values and back, checked against their fields' types."""

from __future__ import annotations

import base64
import functools
import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import repeat
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

if TYPE_CHECKING:
    from functools import cached_property as cached_property

    from typing_extensions import Self as Self
    from typing_extensions import Unpack as Unpack
    from typing_extensions import override as override
else:
    Self = Unpack = Any

    class Unlocked(functools.cached_property):
        """Compute a property once, without the lock that Python 3.10 and 3.11 hold: a child forked then hangs."""

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            self.lock = nullcontext()

    cached_property = Unlocked

    def override(method: T) -> T:
        """Mark a method documented in its base class; ``typing.override`` from Python 3.12 on."""
        return method


DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What values from a damaged file may raise when first used."""


def record(kind: type[T], values: Mapping[str, Any]) -> T:
    """Make a dataclass from plain values, as `plain` makes them; also the records and tuples within it.

    Raises
    ------
    TypeError
        A name is missing or unknown, or a value is not of the field's type.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: float
    >>> record(Point, {"x": 1})
    Point(x=1)
    >>> record(Point, {"x": "1"})
    Traceback (most recent call last):
    TypeError: x of Point is '1'
    """
    known = _fields_of(cast("Any", kind))
    found = {
        name: read(value, known[name], f"{name} of {kind.__name__}") if name in known else value
        for name, value in values.items()
    }
    return kind(**found)


def read(value: Any, wanted: Any, name: str) -> Any:
    """Return a plain value as what the annotation says; TypeError if it is something else."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        (kind,) = (each for each in inner if each is not NoneType)
        return read(value, kind, name)
    if origin is tuple and isinstance(value, list | tuple):
        kinds = repeat(inner[0], len(value)) if inner[-1] is Ellipsis else inner
        return tuple(read(item, each, name) for item, each in zip(value, kinds, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return {read(k, inner[0], name): read(item, inner[1], name) for k, item in value.items()}
    if wanted is bytes and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if isinstance(value, Mapping) and hasattr(wanted, "from_dict"):
        return wanted.from_dict(value)
    if isinstance(value, Mapping) and is_dataclass(wanted):
        return record(cast("Any", wanted), value)
    if not _is_a(value, wanted):
        raise TypeError(f"{name} is {value!r}")
    return value


def plain(value: Any) -> Any:
    """Return a record, or anything made of records, as values for JSON; bytes as base64, infinity as None."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


_fields_of = lru_cache(maxsize=64)(get_type_hints)
"""Types of a dataclass's fields; evaluating them takes longer than everything else."""


def _is_a(value: Any, wanted: Any) -> bool:
    """True if a value read from JSON is of the annotation's type; whole numbers also count as floats."""
    if get_origin(wanted) is Literal:
        return value in get_args(wanted)
    if wanted is None or wanted is Any:
        return wanted is Any or value is None
    if wanted in (float, int):
        kinds = int | float if wanted is float else int
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, get_origin(wanted) or wanted)
