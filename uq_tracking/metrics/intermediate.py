"""Work shared by several metrics and curves, done once per set of statistics."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def intermediate(function: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Cache the results of a function of statistics for as long as the statistics live.

    Parameters
    ----------
    function : callable
        ``function(statistics, *arguments)`` of immutable statistics; the result may depend on nothing else, and the
        arguments must be hashable. Exceptions are not cached. The result must not refer to the statistics.

    Examples
    --------
    >>> class Numbers(list):
    ...     __hash__ = object.__hash__
    >>> @intermediate
    ... def power_sum(numbers, exponent):
    ...     print("summing")
    ...     return sum(number**exponent for number in numbers)
    >>> numbers = Numbers([1, 2, 3])
    >>> power_sum(numbers, 2), power_sum(numbers, 2), power_sum(numbers, 1)
    summing
    summing
    (14, 14, 6)
    """
    cache: WeakKeyDictionary[Any, dict[Any, T]] = WeakKeyDictionary()
    lock = Lock()

    @wraps(function)
    def shared(statistics: S, /, *arguments: P.args, **options: P.kwargs) -> T:
        key = (arguments, tuple(sorted(options.items())))
        with lock:
            results = cache.setdefault(statistics, {})
        if key not in results:  # two threads may both get here, with the same result
            results[key] = function(statistics, *arguments, **options)
        return results[key]

    return shared
