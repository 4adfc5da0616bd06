"""Base of the suite: what a backend declares and provides, and samples to log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from uq_tracking.curves import Curve
from uq_tracking.errors import PermissionDeniedError
from uq_tracking.inputs import Predictions
from uq_tracking.tracking.backend import Run, RunStore, StoredRun
from uq_tracking.tracking.health import forget_health

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TagFilter = Callable[[str, str], str]


@dataclass(frozen=True)
class Capabilities:
    """Abilities of a tracker. For what it cannot do, its methods must raise BackendError."""

    series: bool = True
    """Scalars keep their value at every step, and ``series`` reads them."""
    curves: bool = True
    """``log_curve`` stores points that ``curve_points`` reads."""
    files: bool = True
    """Files and images can be stored and fetched."""
    where: TagFilter | None = None
    """The filter expression that selects runs by the value of a tag, if the tracker has filters."""
    writers: int = 4
    """Threads that may write to one run at the same time; 1 if the tracker allows only one."""
    listing: int = 1000
    """Number of runs with which the listing is tested."""
    patience: float = 30.0
    """Seconds within which a dead tracker must be given up."""


class BackendCase:
    """Base of the suite's classes: what a backend's tests provide."""

    capabilities: Capabilities = Capabilities()

    @pytest.fixture(autouse=True)
    def _every_tracker_is_well(self) -> Iterator[None]:
        """Keep one test's outage from affecting the next."""
        forget_health()
        yield
        forget_health()

    @pytest.fixture
    def store(self, tmp_path: Path) -> RunStore:
        """An empty store."""
        raise NotImplementedError("give the suite a store to test")

    def series(self, store: RunStore, run_id: str, name: str) -> Sequence[tuple[int, float]]:
        """Every (step, value) the tracker holds for a scalar, by step; read with the tracker's own API."""
        raise NotImplementedError("read a scalar's history, or declare Capabilities(series=False)")

    def curve_points(self, store: RunStore, run_id: str, name: str) -> Sequence[tuple[float, float]]:
        """Every (x, y) that the tracker's charts show for a curve; x may be the curve's ``steps``."""
        raise NotImplementedError("read a curve, or declare Capabilities(curves=False)")

    def outage(self, store: RunStore, run: Run) -> AbstractContextManager[Run]:
        """Make the tracker fail; yield the run that then sees the failure."""
        raise NotImplementedError("make the tracker fail")

    @contextmanager
    def refusal(self, store: RunStore, run: Run) -> Iterator[Run]:
        """Make the tracker refuse this run and no other; yield the run that sees it.

        By default every write raises what a run that may not be written raises; override it with the tracker's own
        refusal, for example by deleting the run.
        """

        def refuse(*_: object, **__: object) -> None:
            raise PermissionDeniedError("this run may not be written")

        writes = ("log_scalars", "log_file", "set_tags", "seal", "log_curve", "log_figure", "log_map")
        vars(run).update(dict.fromkeys(writes, refuse))
        try:
            yield run
        finally:
            for name in writes:
                del vars(run)[name]

    def fill(self, store: RunStore, count: int) -> None:
        """Create many runs, named ``run 0``, ``run 1`` ...; override if the tracker has a faster way."""
        for number in range(count):
            store.close_run(store.create(f"run {number}"))

    @contextmanager
    def writing(self, store: RunStore, run_id: str | None = None, name: str = "sample") -> Iterator[Run]:
        """A run to write to, new or reopened, which can be read afterwards."""
        run = store.create(name) if run_id is None else store.reopen(run_id)
        try:
            yield run
        finally:
            store.close_run(run)

    @pytest.fixture
    def run_id(self, store: RunStore) -> str:
        """The id of an empty run in the store."""
        with self.writing(store) as run:
            return run_id_of(run)

    def stored(self, store: RunStore, run_id: str) -> StoredRun:
        """The run as listed by the store."""
        found = [run for run in store.runs() if run.run_id == run_id]
        assert len(found) == 1, f"the store lists run {run_id} {len(found)} times"
        return found[0]


def run_id_of(run: Run) -> str:
    """The run id: the last part of every run's URI."""
    return run.uri.replace(":", "/").rpartition("/")[2]


def sample_predictions(cases: int = 2, side: int = 20, seed: int = 0) -> Predictions:
    """Predictions of pictures with honest standard deviations and some missing targets.

    Parameters
    ----------
    cases, side
        The arrays have shape (cases, side, side).
    seed
        Random seed.
    """
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(cases, side, side))
    std = rng.uniform(0.1, 1.0, size=target.shape)
    mean = target + std * rng.standard_normal(target.shape)
    target[:, 0, :3] = np.nan
    return Predictions(target, mean, std, unit="m")


def sample_curve(values: tuple[float, ...] = (0.0, 0.5, 0.75, 1.0), name: str = "sample") -> Curve:
    """A curve over 0 ... 100 per cent through the given values."""
    steps = np.linspace(0, 100, len(values)).round().astype(np.int64)
    columns = {"expected": steps / 100, "observed": np.asarray(values, dtype=np.float64)}
    return Curve(
        name=name,
        columns=columns,
        x="expected",
        main="observed",
        x_label="expected share",
        y_label="observed share",
        title="A sample curve",
        steps=steps,
    )


def sample_figure(shade: float = 0.5) -> Figure:
    """A uniformly grey figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(1, 1), dpi=40, facecolor=(shade, shade, shade))
