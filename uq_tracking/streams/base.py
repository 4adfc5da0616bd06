"""What all stream counters share: settings, merging, files, and combining processes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import FileFormatError, IncompatibleStatisticsError, SettingsError
from uq_tracking.npz import read_arrays, write_arrays
from uq_tracking.typed import DAMAGE

if TYPE_CHECKING:
    from typing_extensions import Self

    from uq_tracking.report import Report

Arrays = dict[str, npt.NDArray[Any]]

FORMAT = "uq_tracking.streams.accumulator"
VERSION = 1
ABOUT = "about"
"""Entry of the file that holds format, version, task and settings as JSON."""


class Streaming(ABC):
    """Counts a stream of batches and makes one report from it.

    A task gives ``update`` its own arguments and defines how its state starts, merges and becomes arrays.
    """

    kind: ClassVar[Any]
    """The task being counted."""
    free: ClassVar[tuple[str, ...]] = ()
    """Settings that may differ when merging, because they do not affect any number."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        """The given options by name: plain values, ready for JSON."""
        self.reset()

    def reset(self) -> None:
        """Forget every sample; the settings stay."""
        self._is_union = False
        self._start()

    def merge(self, other: Self) -> Self:
        """Add the samples of another accumulator in place; the other one is left unchanged.

        The order of merging changes nothing beyond rounding (1e-12), and a fresh accumulator adds nothing.

        Raises
        ------
        IncompatibleStatisticsError
            The settings differ; the message names which.
        """
        self._check_open()
        self._check_settings(other)
        self._absorb(other)
        return self

    def _check_settings(self, other: Streaming) -> None:
        if not isinstance(other, Streaming):
            raise IncompatibleStatisticsError(
                f"{type(other).__name__} is not an accumulator; merge accumulators, or pool reports with uq.pool"
            )
        if other.task != self.task:
            raise IncompatibleStatisticsError(f"task differs ({self.task} and {other.task})")
        for name, value in self.settings.items():
            if name not in self.free and other.settings[name] != value:
                raise IncompatibleStatisticsError(
                    f"{name} differs ({value} and {other.settings[name]}); count both with the same settings"
                )

    def _check_open(self) -> None:
        if self._is_union:
            raise SettingsError(
                "this accumulator has held the samples of all processes since all_reduce(); reset() it before "
                "counting on, or samples would count once per process"
            )

    def all_reduce(self, group: Any = None) -> Self:
        """Replace this process's samples with those of all processes, with torch.distributed (gloo or nccl).

        Every process must call it, and afterwards holds the same samples, merged in rank order. A few megabytes are
        exchanged, whatever the number of samples. Nothing more can be counted until ``reset``.

        Parameters
        ----------
        group : torch.distributed.ProcessGroup, optional
            By default all processes.

        Raises
        ------
        SettingsError
            There is no process group.
        IncompatibleStatisticsError
            The processes have different settings.
        """
        from uq_tracking.streams.ranks import gather

        self._check_open()
        parts = [type(self)._from_bytes(data) for data in gather(self._to_bytes(), group)]
        self.reset()
        for part in parts:
            self.merge(part)
        self._is_union = True
        return self

    def save(self, path: str | Path) -> None:
        """Write everything counted so far, to continue later or elsewhere; the file appears whole or not at all."""
        path = Path(path)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}; create it before saving {path.name}")
        part = path.with_name(f".{path.name}.part")
        try:
            write_arrays(part, self._packed(), compressed=True)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote; continuing from it gives the report of an uninterrupted run.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FileFormatError
            The file is damaged, foreign, too new, or for another task.
        """
        return cls._unpacked(read_arrays(Path(path)), str(path))

    def _packed(self) -> Arrays:
        about = {"format": FORMAT, "version": VERSION, "task": self.task, "settings": self.settings}
        return {
            ABOUT: np.asarray(json.dumps(about)),
            "is_union": np.asarray(self._is_union),
            **self._to_arrays(),
        }

    @classmethod
    def _unpacked(cls, arrays: Arrays, source: str) -> Self:
        settings = _settings_of(arrays, cls.kind.name, source)
        try:
            made = cls(**settings)
            made._load(arrays)
            made._is_union = bool(arrays["is_union"])
        except Exception as error:  # damaged values fail wherever they are first used
            raise FileFormatError(f"{source} is a damaged accumulator ({error!r})") from error
        return made

    def _to_bytes(self) -> bytes:
        buffer = BytesIO()
        np.savez(buffer, allow_pickle=False, **self._packed())
        return buffer.getvalue()

    @classmethod
    def _from_bytes(cls, data: bytes) -> Self:
        with np.load(BytesIO(data), allow_pickle=False) as archive:
            return cls._unpacked({name: archive[name] for name in archive.files}, "what another process sent")

    def __reduce__(self) -> tuple[Any, ...]:  # pickled in the compact form
        return type(self)._from_bytes, (self._to_bytes(),)

    @property
    @abstractmethod
    def task(self) -> str:
        """Name of the task."""

    @abstractmethod
    def compute(self) -> Report:
        """Return the report of everything counted so far; counting can continue."""

    @abstractmethod
    def _start(self) -> None:
        """Start without samples."""

    @abstractmethod
    def _absorb(self, other: Any) -> None:
        """Add the samples of another accumulator of equal settings."""

    @abstractmethod
    def _to_arrays(self) -> Arrays:
        """Everything counted, as plain arrays."""

    @abstractmethod
    def _load(self, arrays: Arrays) -> None:
        """Restore what ``_to_arrays`` returned."""


def _settings_of(arrays: Arrays, task: str, source: str) -> dict[str, Any]:
    """The settings in a file, after checking that it is one of ours."""
    try:
        about = json.loads(str(arrays[ABOUT]))
        found, version, of_task = about["format"], int(about["version"]), about["task"]
        settings = dict(about["settings"])
    except DAMAGE as error:
        raise FileFormatError(f"{source} was not written by Accumulator.save ({error!r})") from error
    if found != FORMAT:
        raise FileFormatError(f"{source} holds {found!r}, not {FORMAT!r}")
    if version > VERSION:
        raise FileFormatError(
            f"{source} has format version {version}, but this package reads up to {VERSION}; upgrade it"
        )
    if of_task != task:
        raise FileFormatError(f"{source} holds a {of_task} accumulator, not a {task} one")
    return settings


def under(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> Arrays:
    """The arrays whose names start with ``prefix/``, without that prefix."""
    return {name[len(prefix) + 1 :]: value for name, value in arrays.items() if name.startswith(f"{prefix}/")}


def beneath(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """The arrays, with ``prefix/`` added to their names."""
    return {f"{prefix}/{name}": value for name, value in arrays.items()}
