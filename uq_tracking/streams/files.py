"""The format of an accumulator's file, in which it also travels between processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np

from uq_tracking.errors import FileFormatError
from uq_tracking.npz import Arrays
from uq_tracking.typed import DAMAGE

FORMAT = "uq_tracking.streams.accumulator"
VERSION = 1
ABOUT = "about"
"""Entry of the file that holds format, version, task and settings as JSON."""


def packed(task: str | None, settings: Mapping[str, Any], counted: Arrays) -> Arrays:
    """Everything in the file of an accumulator."""
    about = {"format": FORMAT, "version": VERSION, "task": task, "settings": settings}
    return {ABOUT: np.asarray(json.dumps(about)), **counted}


def settings_of(arrays: Arrays, source: str) -> tuple[str | None, dict[str, Any]]:
    """Return task and settings of a file, after checking that it is one of ours."""
    try:
        about = json.loads(str(arrays[ABOUT]))
        found, version, task = about["format"], int(about["version"]), about["task"]
        settings = dict(about["settings"])
    except DAMAGE as error:
        raise FileFormatError(f"{source} was not written by Accumulator.save ({error!r})") from error
    if found != FORMAT:
        raise FileFormatError(f"{source} holds {found!r}, not {FORMAT!r}")
    if version > VERSION:
        raise FileFormatError(
            f"{source} has format version {version}, but this package reads up to {VERSION}; upgrade it"
        )
    return task, settings


def to_bytes(arrays: Arrays) -> bytes:
    """Arrays in the compact form for other processes."""
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def from_bytes(data: bytes) -> Arrays:
    """What ``to_bytes`` was given."""
    with np.load(BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
