"""Sound files of which one value, or one array, is replaced at a time, without reading or writing the rest."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

END = 22
"""Bytes that end an archive without a comment."""


class JsonText:
    """A JSON text that knows where its values stand.

    Parameters
    ----------
    text
        An object or a list that holds something.
    """

    def __init__(self, text: str) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._add(json.loads(text), 0)
        self._text = "".join(self._pieces)

    def changed(self, place: int, new: Any) -> str:
        """The text with another value somewhere, shallow places as often as deep ones."""
        depths = len(self._places) - 1
        places = self._places[1 + place % depths]
        start, end = places[place // 8 % len(places)]
        return f"{self._text[:start]}{json.dumps(new)}{self._text[end:]}"

    def _add(self, value: Any, depth: int) -> None:
        start = self._length
        if isinstance(value, dict):
            self._put("{")
            for number, (key, inner) in enumerate(value.items()):
                self._put(f"{', ' if number else ''}{json.dumps(key)}: ")
                self._add(inner, depth + 1)
            self._put("}")
        elif isinstance(value, list):
            self._put("[")
            for number, inner in enumerate(value):
                self._put(", " if number else "")
                self._add(inner, depth + 1)
            self._put("]")
        else:
            self._put(json.dumps(value))
        self._places.setdefault(depth, []).append((start, self._length))

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)


class Archive:
    """An npz file without its binding, which any other array would break."""

    def __init__(self, content: bytes) -> None:
        with np.load(io.BytesIO(content)) as archive:
            arrays = {key: archive[key] for key in archive.files if key != "binding"}
        self.names = sorted(arrays)
        self.texts = {
            key: JsonText(str(array))
            for key, array in arrays.items()
            if array.dtype.kind == "U" and str(array).startswith("{") and len(str(array)) > 2
        }
        self._members = {key: member(key, array) for key, array in arrays.items()}

    def changed(self, new: Mapping[str, Any]) -> bytes:
        """The file with other arrays in the place of some; None leaves one out."""
        members = dict(self._members)
        for key, array in new.items():
            del members[key]
            if array is not None:
                members[key] = member(key, array)
        return joined(list(members.values()))


def member(name: str, array: Any) -> tuple[bytes, bytes]:
    """An array of an archive, and its line in the list of contents."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array})
    content = buffer.getvalue()
    with zipfile.ZipFile(buffer) as archive:
        start = archive.start_dir
    return content[:start], content[start:-END]


def joined(members: list[tuple[bytes, bytes]]) -> bytes:
    """The archive of members."""
    place, heads = 0, []
    for data, head in members:
        heads.append(head[:42] + struct.pack("<L", place) + head[46:])
        place += len(data)
    listed = b"".join(heads)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(members), len(members), len(listed), place, 0)
    return b"".join(data for data, _ in members) + listed + end
