"""What a tracker must be able to do: three small abstract classes that know nothing about uncertainty.

A *backend* finds runs, a *run* is written to, a *store* reads runs back. Everything written to a run goes through
these methods, so all trackers log and rescore alike.
"""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uq_tracking.errors import BackendError
from uq_tracking.tracking.places import scratch_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from uq_tracking.curves import Curve
    from uq_tracking.tracking.overview import Dataset, Description


Image = npt.NDArray[np.uint8]
Cell = str | float | None
"""A table cell."""


def finite(scalars: Mapping[str, float]) -> dict[str, float]:
    """Keep the finite numbers, as Python floats; trackers hide or corrupt the others.

    >>> finite({"uq/nll": 1, "uq/r2": float("nan")})
    {'uq/nll': 1.0}
    """
    return {name: float(value) for name, value in scalars.items() if math.isfinite(value)}


def name_parts(name: str) -> tuple[str, ...]:
    """Split the name of a stored file into its folders and its file name.

    Raises
    ------
    BackendError
        The name is absolute, has an empty part or a backslash, or leaves its folder.

    Examples
    --------
    >>> name_parts("uq/report.json")
    ('uq', 'report.json')
    """
    parts = tuple(name.split("/"))
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise BackendError(f"{name!r} cannot name a stored file; use a relative path such as uq/report.json")
    return parts


def picture_file(name: str) -> str:
    """Name the PNG file of a figure or map, at the root of the run.

    >>> picture_file("uq_map/3")
    'uq_map_3.png'
    """
    return f"{name.replace('/', '_')}.png"


def points_of(curve: Curve) -> dict[int, float]:
    """Return the finite values of a curve by step, for trackers that draw lines over integer steps.

    A curve without ``steps`` is not a line (a two-dimensional histogram) and has none.
    """
    if curve.steps is None:
        return {}
    values = np.asarray(curve.columns[curve.main], dtype=np.float64).tolist()
    points = zip(curve.steps.tolist(), values, strict=True)
    return {step: value for step, value in points if math.isfinite(value)}


class Run(ABC):
    """A run open for writing.

    Three methods are abstract. The others have a default built on those three, to be overridden where the
    tracker has something native. A method raises when it fails; the caller decides whether that matters.
    """

    uri: str
    """Address under which ``Backend.store`` finds the run again, e.g. ``mlflow:7/1f3a``; no credentials."""

    @property
    def place(self) -> str:
        """Place of the tracker, such as its server's address: runs in one place fail together; no credentials."""
        return ""

    @abstractmethod
    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Write numbers under their names; logging the same again at the same step changes nothing.

        Non-finite numbers are left out (``finite``). Without a step they are the run's final numbers, which
        ``StoredRun.scalars`` shows afterwards.
        """

    def log_again(self, scalars: Mapping[str, float], *, step: int) -> None:
        """Write numbers of `unconfirmed`, unless the step had them once: they may have been replaced since."""
        self.log_scalars(scalars, step=step)

    @abstractmethod
    def log_file(self, path: Path, name: str) -> None:
        """Store a copy of the file ``path`` under ``name`` (``/`` makes folders), replacing any older one.

        Names that ``name_parts`` rejects are rejected.
        """

    @abstractmethod
    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set text tags, replacing older values."""

    def seal(self, tags: Mapping[str, str]) -> None:
        """Set the tags that say everything else has arrived; by default at once.

        A tracker that sends in the background sets them once the rest is known to have arrived, at the latest in
        `close`, which raises if it has not.
        """
        self.set_tags(tags)

    def arrival(self) -> Callable[[], None] | None:
        """Return a function that waits until the tracker has the written files, and raises if it rejects them.

        None, the default, means that `log_file` itself waits. A tracker that uploads in the background, and would
        lose uploads in flight when the process ends, returns one: until it returns, the files stay in the spool.
        """
        return None

    def unconfirmed(self) -> Mapping[int, Mapping[str, float]]:
        """Return the scalars by step that this process has sent and not yet read back; by default none.

        A call that cannot be delivered keeps them, because the tracker may have accepted them without keeping them.
        """
        return {}

    def confirm(self) -> None:  # noqa: B027  (a tracker that raises for whatever it does not keep)
        """Read back what was written; TrackerUnreachableError if the tracker has accepted but not kept something.

        By default nothing is read. Called at the end of a final call, and when spooled calls have been sent.
        """

    def log_curve(self, name: str, curve: Curve) -> None:  # noqa: B027  (a tracker without charts keeps the report)
        """Write a curve to the tracker's own charts, if it has any.

        A curve without ``steps`` is not a line (a two-dimensional histogram); it is left to the report.
        """

    def log_figure(self, name: str, figure: Figure) -> None:
        """Store a figure under ``name`` (no suffix, at the root), by default as a PNG file.

        Folders in the name become underscores: ``uq_map/3`` is stored as ``uq_map_3.png``.
        """
        from uq_tracking.drawings import png_of  # imports the metrics, which a tracker need not load

        with scratch_folder() as folder:
            path = folder / picture_file(name)
            path.write_bytes(png_of(figure))
            self.log_file(path, path.name)

    def log_map(self, name: str, figure: Figure) -> None:
        """Store the map panel of one case under ``name`` (``uq_map/<case>``), by default like a figure."""
        self.log_figure(name, figure)

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:  # noqa: B027
        """Write a table, if the tracker shows any; a cell that names a map already logged shows its picture."""

    def describe(self, description: Description) -> None:  # noqa: B027  (a tracker without such a page)
        """Put the description on the tracker's page of the run, if it shows one; the user's own text stays."""

    def use_dataset(self, dataset: Dataset) -> None:  # noqa: B027  (a tracker without data sets)
        """Record which truth was scored, unless the run already names its data."""

    def relate(self, model_id: str | None, dataset: Mapping[str, str] | None) -> None:  # noqa: B027
        """Name the logged model and the data set that scores written next belong to, if the tracker has such.

        The data set has a ``name``, a ``digest`` and what else its tracker stores of it.
        """

    def show(self) -> str | None:
        """Update the tracker's page of all runs with what was logged, where the tracker lets a program do so.

        Returns
        -------
        str or None
            Address of that page, or the command that opens it. `overview` says which charts it should have.
        """
        return None

    def batch(self) -> AbstractContextManager[object]:
        """Group the calls inside into as few requests as the tracker allows; by default no grouping."""
        return nullcontext()

    def close(self) -> None:  # noqa: B027  (most runs have nothing to release)
        """Release what ``RunStore.create`` or ``reopen`` holds open; what the user opened stays open.

        Called when the writer is done with the run.
        """


@dataclass(frozen=True)
class StoredRun:
    """A run as listed by its store. ``scalars`` are the last values."""

    uri: str
    run_id: str
    name: str
    status: str
    tags: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, float] = field(default_factory=dict)
    created: str = ""
    """Creation time, where run ids alone do not distinguish runs of different stores."""
    color: str | None = None
    """The color in which the tracker shows the run, as ``#rrggbb``, if it is known."""


class RunStore(ABC):
    """The reading side: lists runs, fetches their files, reopens them for writing."""

    @abstractmethod
    def runs(self, where: str | None = None) -> Iterator[StoredRun]:
        """List the runs of this store, oldest first; ``where`` is the tracker's own filter expression."""

    @abstractmethod
    def files(self, run_id: str) -> list[str]:
        """Names of the run's stored files, with their folders, sorted."""

    @abstractmethod
    def fetch(self, run_id: str, name: str, folder: Path) -> Path:
        """Bring one stored file into ``folder`` and return its path; RunNotFoundError, FileNotFoundError."""

    def series(self, run: StoredRun) -> dict[tuple[int | None, str], float]:
        """Scalars of a listed run by step and name; the step None holds the final ones.

        By default only the final ones: most trackers return more only scalar by scalar.
        """
        return {(None, name): value for name, value in run.scalars.items()}

    def lines(self, run_id: str) -> Sequence[dict[str, Any]]:
        """Lines of the run's journal other than scalars and tags, if the store keeps one; see `journal`.

        By default none: curves, figures, maps and the description of a copy are then made from the run's report and
        the names of its files.
        """
        return ()

    def size(self, run_id: str, name: str) -> int | None:
        """Size of a stored file in bytes, if the tracker knows it without fetching the file."""
        return None

    @abstractmethod
    def reopen(self, run_id: str) -> Run:
        """Reopen a run for further writing, without touching its status, end time or other content."""

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> Run:
        """Create a new, finished run; stores that cannot do so raise BackendError."""
        raise BackendError(f"{type(self).__name__} cannot create runs; start one with the tracker itself")

    def show(self) -> str | None:
        """Create or update the page that shows all runs at a glance; return its address, or a command, if any."""
        return None


@dataclass(frozen=True)
class BackendStatus:
    """State of a backend on this machine, and the remedy if it cannot be used."""

    name: str
    usable: bool
    version: str | None = None
    hint: str | None = None

    @classmethod
    def of_package(cls, name: str, hint: str, *more: str, oldest: tuple[int, ...] = ()) -> BackendStatus:
        """Report which version of a tracker's package is installed, from its metadata.

        Parameters
        ----------
        name
            Name of the backend, and of its package.
        hint
            The command that installs it.
        more
            Other names of the package.
        oldest
            The first version that can be used, major and minor.
        """
        for package in (name, *more):
            with suppress(metadata.PackageNotFoundError):
                version = metadata.version(package)
                if is_at_least(version, oldest):
                    return cls(name, usable=True, version=version)
                return cls(name, False, version, f"{name} {version} is too old: {hint} --upgrade")
        return cls(name, usable=False, hint=hint)


def is_at_least(version: str, oldest: tuple[int, ...]) -> bool:
    """Compare major and minor version.

    >>> is_at_least("3.9.0", (3, 11)), is_at_least("3.11.0rc1", (3, 11))
    (False, True)
    """
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) >= oldest


class Backend(ABC):
    """One tracker. Its module must import without the tracker's own package."""

    name: str
    """URI scheme, and the name users type."""

    schemes: tuple[str, ...] = ()
    """Further URI schemes this backend answers to."""

    @abstractmethod
    def status(self) -> BackendStatus:
        """Return whether it is installed and usable, its version, or an install hint; imports nothing heavy."""

    @abstractmethod
    def active_run(self) -> Run | None:
        """Return the run open in this process, without importing a tracker that is not yet loaded."""

    def own_run(self) -> Run | None:
        """Return the active run unless other processes of a distributed job share it.

        Ranks other than zero log only into such a run. By default every active run qualifies; a tracker whose runs
        are inherited by forked processes, or named by the environment, leaves those out.
        """
        return self.active_run()

    def ended_run(self) -> Run | None:
        """Return the run that ended last in this thread, unless another is open in this process; by default None.

        Training frameworks end their run before the final report is due, which `log` then adds to it.
        """
        return None

    def place(self, address: str, *, scheme: str | None = None) -> str:
        """Return the ``place`` of the runs at an address, without contacting the tracker."""
        return ""

    def probe(self, place: str) -> None:  # noqa: B027  (a tracker without a server is always there)
        """Ask the tracker at a place something short; TrackerUnreachableError if it does not answer.

        Called in a background thread that waits a few seconds, before what was spooled is sent. By default nothing
        is asked, and the spooled calls themselves show whether the tracker is back.
        """

    @abstractmethod
    def adopt(self, run: Any) -> Run | None:
        """Return a ``Run`` for the tracker's own run object or run id, or None if it is not this tracker's.

        The tracker is not contacted, so a wrong argument cannot be mistaken for a failing tracker. A logger that
        keeps its run in the rank-zero process raises NoRunHereError in the others.
        """

    @abstractmethod
    def store(self, address: str, *, scheme: str | None = None) -> tuple[RunStore, str | None]:
        """Open the store of a URI, given the part after its scheme; also return the run id if the URI names one."""


_call: ContextVar[tuple[float, bool] | None] = ContextVar("uq_tracking_call", default=None)
"""The time of the call being written, and whether it comes late."""


def called_at() -> float:
    """Return the time of the call being written, in seconds since 1970; outside a call, the current time.

    A tracker that stores a time should store this one: rows sent twice then carry the same time, and trackers that
    drop identical rows keep one of them.
    """
    call = _call.get()
    return time.time() if call is None else call[0]


def is_late() -> bool:
    """Return whether the call being written comes late, so that part of it may already have arrived."""
    call = _call.get()
    return call is not None and call[1]


@contextmanager
def calling(at: float | None = None) -> Iterator[None]:
    """Make ``called_at`` return this time inside the block, by default the current time."""
    token = _call.set((time.time() if at is None else at, at is not None))
    try:
        yield
    finally:
        _call.reset(token)
