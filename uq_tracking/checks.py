"""Checks of the options of any function: the right type, or an error that names the option and says what to pass."""

from __future__ import annotations

import inspect
import json
import math
import operator
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from uq_tracking.errors import FileFormatError, SettingsError, UnknownOptionError, closest

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

LONGEST = 80
"""Characters of a value that a message repeats; a longer one is named by its type."""


def value_text(value: object) -> str:
    """A value as messages repeat it.

    >>> value_text("nll"), value_text(list(range(1000)))
    ("'nll'", 'a value of type list')
    """
    text = repr(value)
    return text if len(text) <= LONGEST and "\n" not in text else f"a value of type {type(value).__name__}"


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise SettingsError unless an option is one of these words."""
    if not isinstance(value, str) or value not in choices:
        near = closest(value, choices) if isinstance(value, str) else ""
        among = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
        raise SettingsError(f"{name} is {value_text(value)}; choose {among}{near}")


def check_flag(name: str, value: Any) -> None:
    """Raise SettingsError unless an option is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise SettingsError(f"{name} is {value_text(value)}; pass True or False")


def check_text(name: str, value: Any, example: str) -> None:
    """Raise SettingsError unless an option is text or None."""
    if value is not None and not isinstance(value, str):
        raise SettingsError(f"{name} is {value_text(value)}; pass text, such as {example}")


def check_callable(name: str, value: Any) -> None:
    """Raise SettingsError unless an option is a function or None."""
    if value is not None and not callable(value):
        raise SettingsError(f"{name} is {value_text(value)}; pass a function")


def as_names(name: str, value: str | Iterable[Any]) -> tuple[str, ...]:
    """One name, or several, as a tuple of text.

    Raises
    ------
    SettingsError
        The option is neither text nor a collection.

    Examples
    --------
    >>> as_names("metrics", "nll"), as_names("metrics", ["nll", "crps"])
    (('nll',), ('nll', 'crps'))
    """
    try:
        return (value,) if isinstance(value, str) else tuple(map(str, value))
    except TypeError:
        raise SettingsError(f"{name} is {value_text(value)}; pass a name or a list of names") from None


def whole_number(name: str, value: Any) -> int:
    """An option as an int; SettingsError unless it is a whole number."""
    try:
        if isinstance(value, bool):
            raise TypeError("a boolean is no number here")
        return operator.index(value)
    except TypeError:
        raise SettingsError(f"{name} is {value_text(value)}; pass a whole number") from None


def path_of(path: Any) -> Path:
    """A path as given; SettingsError unless it is text or a path."""
    try:
        return Path(path)
    except TypeError:
        raise SettingsError(
            f"path is {value_text(path)}; pass the path of a file, as text or a pathlib.Path"
        ) from None


def listing(*sources: Callable[..., Any], **more: Any) -> Callable[[F], F]:
    """Make ``help``, ``inspect.signature`` and completion list the options that a function takes as ``**options``.

    They are the keyword arguments of the sources, and ``more`` with these defaults.
    """

    def listed(function: F) -> F:
        own, by_name = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
        items = [item for item in own.parameters.values() if item.kind is not item.VAR_KEYWORD]
        for source in sources:
            theirs = inspect.signature(source).parameters.values()
            items += [item for item in theirs if item.kind is by_name]
        items += [inspect.Parameter(name, by_name, default=value) for name, value in more.items()]
        distinct = {item.name: item for item in reversed(items)}
        vars(function)["__signature__"] = own.replace(
            parameters=[item for item in items if distinct[item.name] is item]
        )
        return function

    return listed


LONGEST_TEXT = 2**28
"""Bytes of the longest text that is read at once."""


def check_plain(path: Path, most: int) -> None:
    """Raise FileFormatError if reading a file might never end: a pipe, a device, or more bytes than ``most``."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > most:
        raise FileFormatError(f"{path} is not a plain file of at most {most:,} bytes")


def plain_text(path: Path) -> str:
    """Return the text of a plain file; ValueError if it is not text, too long or without an end."""
    check_plain(path, LONGEST_TEXT)
    return path.read_text(encoding="utf-8")


LONGEST_STRING = 2**20
"""Characters of one text in a stored report: wrapping, drawing or printing a hundred million takes a minute."""


def check_values(value: Any) -> None:
    """Raise ValueError if plain values hold what no report does: a very long text, or a number that is not finite.

    JSON allows 1e999, which is read as infinite.
    """
    if isinstance(value, str) and len(value) > LONGEST_STRING:
        raise ValueError(f"it holds a text of {len(value):,} characters")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"it holds the number {value}")
    if isinstance(value, Mapping):
        for name, item in value.items():
            check_values(name)
            check_values(item)
    elif isinstance(value, list):
        with suppress(TypeError, OverflowError):
            if math.isfinite(sum(value)):  # a column of numbers, at once
                return
        for item in value:
            check_values(item)


def check_version(what: object, version: object, newest: int) -> None:
    """Raise FileFormatError unless this package can read files of the version that one states."""
    if not isinstance(version, int):
        raise FileFormatError(f"{what} was not written by uq_tracking: it states no version")
    if version > newest:
        raise FileFormatError(
            f"{what} has format version {version}, but this package reads up to {newest}; upgrade uq-tracking"
        )


def written(text: str, path: str | Path | None) -> str:
    """Return a text, after writing it to a file if a path is given."""
    if path is not None:
        path_of(path).write_text(text, encoding="utf-8")
    return text


def read_json(source: str | Path, **hooks: Any) -> Any:
    """Return the values of a JSON text, or of the file at a path; FileFormatError if it is not JSON.

    ``hooks`` are those of ``json.loads``, which raise ValueError for what they refuse.
    """
    is_path = not isinstance(source, str) or not source.lstrip().startswith("{")
    try:
        text = plain_text(path_of(source)) if is_path else str(source)
        return json.loads(text, **hooks)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{source if is_path else 'the text'} is not JSON ({error})") from error


@contextmanager
def usual_errors() -> Iterator[None]:
    """Let numpy treat overflows and the like as it does by default, whatever the job has set for itself."""
    with np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
        yield


def named_options(function: Callable[P, R]) -> Callable[P, R]:
    """Make a verb or a constructor answer an unknown keyword with the name that was probably meant."""
    known = inspect.signature(function).parameters.keys() - {"self"}
    name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if unknown := kwargs.keys() - known:
            raise UnknownOptionError(name, unknown, known)
        return function(*args, **kwargs)

    return call
