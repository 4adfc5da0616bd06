"""Format of numbers and users' text in every table, figure, page and message."""

from __future__ import annotations

import codecs
import math
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count

from uq_tracking.errors import printable

COLORS = ("#074a8e", "#d06537", "#029b6d", "#88205a", "#cb8700", "#6c87bf", "#5e4700", "#8d8898")
"""Colors of methods, in every tracker, figure and page; further methods repeat them with other dashes.

Any two differ by 18 in CIE Lab, also as seen with protanopia, deuteranopia and tritanopia.
"""

SCORE_DIGITS = 4
"""Significant digits of a score wherever it is printed."""
MINUS = "\N{MINUS SIGN}"
PLAIN = "uq_tracking.plain"
"""Name of the error handler that writes what an encoding lacks in plain letters."""
_PLAIN_LETTERS = dict(
    zip("\N{MINUS SIGN}\N{EN DASH}\N{MULTIPLICATION SIGN}±µ…→↑↓≤", "--x~u.>^v<", strict=True)
)
_LARGEST_PLAIN = 1e8
_MOST_DECIMALS = 6
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def format_number(value: float, digits: int = 3, *, padded: bool = False, compact: bool = False) -> str:
    """Format a number for display.

    Parameters
    ----------
    value : float
    digits : int
        Significant digits; digits before the decimal point are never rounded away below 10^8.
    padded : bool
        Keep trailing zeros, so that columns of numbers line up.
    compact : bool
        Write numbers from 10^5 up with an exponent.

    Examples
    --------
    >>> [format_number(x) for x in (0.0123456, 0.7, 12.3456, 12345.678, 0.0, -1.5e-7, 2e9)]
    ['0.0123', '0.7', '12.3', '12,346', '0', '-1.5e-7', '2e9']
    >>> format_number(0.7, padded=True), format_number(120000.0, compact=True)
    ('0.700', '1.2e5')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    size = abs(value)
    if compact and size >= 1e5:
        return _with_exponent(f"{value:.{digits - 1}e}", padded=False)
    if 10.0 ** (digits - 1) <= size < _LARGEST_PLAIN:
        return f"{value:,.0f}"
    text = f"{value:{'#' if padded else ''},.{digits}g}"
    return _with_exponent(text, padded=padded) if "e" in text else text.rstrip(".")


def _with_exponent(text: str, *, padded: bool) -> str:
    """``1.50e-07`` as ``1.5e-7``."""
    mantissa, _, exponent = text.partition("e")
    if not padded and "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def run_text(name: str, uri: str) -> str:
    """A run's name and address, in messages; the name alone if it has no address, and once if it ends the address.

    >>> run_text("bagging", "dir:runs/20250101-bagging-1a2b"), run_text("a", "dir:a"), run_text("a report", "")
    ('bagging (dir:runs/20250101-bagging-1a2b)', 'dir:a', 'a report')
    """
    if not uri:
        return name
    return uri if re.split("[:/]", uri)[-1] == name else f"{name} ({uri})"


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A message with options of the command line in place of the arguments that it names.

    >>> options = {"where": "--where", "std_floor": "--std-floor", "on_invalid": "--on-invalid"}
    >>> with_options("exclude it with where=, mask= or on_invalid='drop'", options)
    'exclude it with --where, mask= or --on-invalid drop'
    >>> with_options("std_floor is -1.0; pass a standard deviation", options)
    '--std-floor is -1.0; pass a standard deviation'
    """
    if not options:
        return text
    name = "|".join(options)
    text = re.sub(rf"^({name})(?= is )", lambda found: options[found[1]], text)

    def option(found: re.Match[str]) -> str:
        value = found[2] or ""
        return f"{options[found[1]]} {value if ' ' in value or len(value) == 2 else value[1:-1]}".rstrip()

    return re.sub(rf"\b({name})=('[^']*'|(?=[\s:;,.)]|$))", option, text)


def format_score(value: float) -> str:
    """Format a score, with trailing zeros.

    >>> format_score(12345.678), format_score(0.5), format_score(1.5e-7)
    ('12,346', '0.5000', '1.500e-7')
    """
    return format_number(value, SCORE_DIGITS, padded=True)


def format_percent(share: float) -> str:
    """Format a relative change with its sign and two digits.

    >>> format_percent(0.1234), format_percent(-0.00031), format_percent(2.5), format_percent(0.0)
    ('+12 %', '-0.031 %', '+250 %', '0 %')
    """
    return f"{'+' if share > 0 else ''}{format_number(100 * share, 2)} %"


def format_levels(levels: Sequence[float], most: int = 9) -> str:
    """Format levels of quantiles; of more than ``most`` only the ends, with their number.

    >>> format_levels([0.04999999999999999, 0.95]), format_levels([k / 100 for k in range(1, 100)])
    ('0.05, 0.95', '0.01, 0.02, 0.03 ... 0.99 (99 in all)')
    """
    texts = [f"{level:g}" for level in levels]
    return (
        ", ".join(texts)
        if len(texts) <= most
        else f"{', '.join(texts[:3])} ... {texts[-1]} ({len(texts)} in all)"
    )


def format_interval(interval: tuple[float, float]) -> str:
    """Format a confidence interval to two digits of its width, since more are noise.

    >>> format_interval((0.68523, 0.71957)), format_interval((-120.4, 12345.678)), format_interval((0.5, 0.5))
    ('[0.685, 0.720]', '[-120, 12,346]', '[0.5000, 0.5000]')
    """
    low, high = interval
    width = high - low
    decimals = 1 - math.floor(math.log10(width)) if 0 < width < math.inf else _MOST_DECIMALS + 1
    if decimals > _MOST_DECIMALS or max(abs(low), abs(high)) >= _LARGEST_PLAIN:
        return f"[{format_score(low)}, {format_score(high)}]"
    return f"[{_rounded(low, decimals)}, {_rounded(high, decimals)}]"


def format_factors(value: float, low: float, high: float) -> list[str]:
    """Format a factor and the ends of its interval, with enough decimals to tell the ends apart, and from 1.

    >>> format_factors(2.5, 2.496, 2.504), format_factors(1.04, 1.0032, 1.08)
    (['2.500', '2.496', '2.504'], ['1.04', '1.003', '1.08'])
    """
    half = (high - low) / 2
    decimals = max(2, -math.floor(math.log10(half))) if 0 < half < math.inf else 2
    decimals, texts = min(decimals, _MOST_DECIMALS), []
    for part in (value, low, high):
        digits = decimals
        while part not in (1, value) and digits < _MOST_DECIMALS and round(part, digits) == 1:
            digits += 1
        texts.append(f"{part:.{digits}f}" if part < 100 else format_number(part, compact=True))
    return texts


def _rounded(value: float, decimals: int) -> str:
    """Round to this many decimals, without negative zero."""
    places = max(decimals, 0)
    return f"{round(value, places) + 0.0:,.{places}f}"


def typographic(number: str) -> str:
    """Replace the hyphen of a formatted number with a minus sign, for figures and pages.

    >>> typographic("-1.5e-7")
    '−1.5e−7'
    """
    return number.replace("-", MINUS).replace("inf", "\N{INFINITY}")


def one_line(text: object) -> str:
    r"""Put a user's text on one line, without control characters that a terminal would act on.

    >>> one_line("a\tb\n\x1b[31mred\x07")
    'a b red\\x07'
    """
    return printable(" ".join(_TERMINAL_SEQUENCE.sub("", str(text)).split()))


def plain_letters(error: UnicodeError) -> tuple[str, int]:
    """Replace characters one by one, so that columns stay aligned; a handler of errors of encoding."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_PLAIN_LETTERS.get(letter, "?") for letter in lost), error.end


codecs.register_error(PLAIN, plain_letters)


def encodable(text: str, encoding: str | None = None) -> str:
    """Return a text as an encoding, by default that of the terminal, can show it.

    >>> encodable("\N{MINUS SIGN}0.5 \N{MICRO SIGN}m", "ascii")
    '-0.5 um'
    """
    encoding = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, PLAIN).decode(encoding)


def axis_label(label: str, unit: str = "", target_unit: object = None) -> str:
    """Add a unit in brackets to an axis label; ``target`` in it stands for the target's unit, if known.

    >>> axis_label("RMSE", "target", "m"), axis_label("RMSE", "target"), axis_label("NLL", "nats")
    ('RMSE [m]', 'RMSE', 'NLL [nats]')
    """
    if target_unit in (None, ""):
        unit = "" if "target" in unit else unit
    else:
        unit = unit.replace("target", shorten(one_line(target_unit), 16))
    return f"{label} [{unit}]" if unit else label


def free_look(mark: int, taken: Collection[int]) -> int:
    """Return the first color from ``mark`` on that is free; from 8 on it is one of them again, with other dashes."""
    colors = len(COLORS)
    return next(look for k in count() if (look := k // colors * colors + (mark + k) % colors) not in taken)


def looks(names: Iterable[str], known: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return the place in ``COLORS`` of each name's color: the same for the same names, whatever their order.

    >>> looks(["mc-dropout", "bagging"]) == looks(["bagging", "mc-dropout"])
    True
    >>> sorted(looks(f"method {k}" for k in range(8)).values())
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    found = dict(known or {})
    for name in sorted(set(names) - found.keys()):
        found[name] = free_look(checksum(name), found.values())
    return found


def checksum(name: str) -> int:
    """Return a number that is the same for the same name in every process."""
    return zlib.crc32(name.encode("utf-8", "replace"))


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Join names as a sentence does, at most so many.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], 2)
    ('a', 'a, b and c', 'a and 2 more')
    """
    if most is not None and len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def some_of(names: Iterable[object], most: int) -> str:
    """Return the first of some names, and how many more there are.

    >>> some_of(["a", "b", "c"], 2), some_of(["a"], 2)
    ('a, b and 1 more', 'a')
    """
    texts = list(map(str, names))
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def shorten(text: str, letters: int) -> str:
    """Cut a text to at most this many characters, with an ellipsis for what is left out.

    >>> shorten("deep-ensemble", 8), shorten("gp", 8)
    ('deep-en…', 'gp')
    """
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def shortened(names: Sequence[str], letters: int) -> list[str]:
    """The names cut to this many characters, or as many more as keep them distinct.

    >>> shortened(["ensemble of 20 networks, seed 1", "ensemble of 20 networks, seed 2"], 16)
    ['ensemb…s, seed 1', 'ensemb…s, seed 2']
    """
    for room in range(letters, max(map(len, names), default=0)):
        found = [shorten_middle(name, room) for name in names]
        if len(set(found)) == len(set(names)):
            return found
    return list(names)


def shorten_middle(name: str, letters: int) -> str:
    """Cut a name to this many characters, keeping the beginning and the end, where run names often differ.

    >>> shorten_middle("ensemble of 20 networks, seed 1", 16)
    'ensemb…s, seed 1'
    """
    tail = letters // 2 + 1
    return name if len(name) <= letters else shorten(name, letters - tail) + name[-tail:]
