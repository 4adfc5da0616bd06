"""Typing helpers: ``override``, and records read from files, whose values are checked against their fields' types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import override as override
else:

    def override(method: T) -> T:
        """Mark a method documented in its base class; ``typing.override`` from Python 3.12 on."""
        return method


DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What values from a damaged file may raise when first used."""


def record(kind: type[T], values: Mapping[str, Any]) -> T:
    """Make a dataclass from plain values.

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
    made = kind(**values)
    for name, wanted in _fields_of(cast("Any", kind)).items():
        if not is_a(found := getattr(made, name), wanted):
            raise TypeError(f"{name} of {kind.__name__} is {found!r}")
    return made


@lru_cache(maxsize=64)
def _fields_of(kind: type[Any]) -> Mapping[str, Any]:
    """Types of a dataclass's fields; evaluating them takes longer than everything else."""
    return get_type_hints(kind)


def is_a(value: Any, wanted: Any) -> bool:
    """Whether a value read from JSON matches an annotation; whole numbers also count as floats."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        return any(is_a(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if wanted is None:
        return value is None
    if wanted is Any:
        return True
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is tuple and inner[-1] is Ellipsis:
        return isinstance(value, tuple) and all(is_a(item, inner[0]) for item in value)
    if origin is tuple:
        return (
            isinstance(value, tuple)
            and len(value) == len(inner)
            and all(is_a(item, each) for item, each in zip(value, inner, strict=True))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        keys, items = inner
        return isinstance(value, Mapping) and all(is_a(k, keys) and is_a(v, items) for k, v in value.items())
    return isinstance(value, origin or wanted)
