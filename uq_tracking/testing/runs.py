"""The contracts of `Run` and `RunStore`: what a backend declares and provides, samples to log, and the tests.

What is written arrives exactly once, and a failing tracker says so; runs are listed, read back whole, and reopened.
"""

# ruff: noqa: D102  (the names of the tests are sentences)

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from uq_tracking.curves import Curve
from uq_tracking.errors import BackendError, PermissionDeniedError, RunNotFoundError, TrackingWarning
from uq_tracking.inputs import Predictions
from uq_tracking.report import Report
from uq_tracking.statistics.store import read_statistics
from uq_tracking.tracking.backend import Run, RunStore, StoredRun
from uq_tracking.tracking.content import logged_scores
from uq_tracking.tracking.deadline import Budget
from uq_tracking.tracking.health import forget_health
from uq_tracking.tracking.log import log
from uq_tracking.tracking.spool import entries, read_entry

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
            store.create(f"run {number}").close()

    @contextmanager
    def writing(self, store: RunStore, run_id: str | None = None, name: str = "sample") -> Iterator[Run]:
        """A run to write to, new or reopened, which can be read afterwards."""
        with closing(store.create(name) if run_id is None else store.reopen(run_id)) as run:
            yield run

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


NAMES = (
    "uq/nll",
    "uq/test/nll",
    "uq_recalibrated/nll",
    "uq_recalibration/std_scale",
    "uq_ranking/test/spearman",
    "uq/my split-1.0/nll",
)
BAD_FILE_NAMES = ("", "/etc/x", "../x", "a/../../x", "a//b", "a\\b", "a/", "./a")
QUICK: dict[str, Any] = {"method": "m", "figures": False, "maps": False}
PNG = b"\x89PNG\r\n\x1a\n"


class _Silence(BaseException):
    """No error was raised."""


class RunContract(BackendCase):
    """Inherit to test a backend's `Run`."""

    @pytest.mark.parametrize("name", [*NAMES, "uq/" + "x" * 200])
    def test_a_scalar_keeps_its_name_and_every_digit(self, store: RunStore, run_id: str, name: str) -> None:
        with self.writing(store, run_id) as run:
            run.log_scalars({name: 1 / 3})
        assert self.stored(store, run_id).scalars[name] == 1 / 3

    @pytest.mark.parametrize("value", [0.0, -1.5e300, 5e-324, np.float32(0.1), np.int64(7)])
    def test_extreme_and_numpy_numbers_arrive_unchanged(
        self, store: RunStore, run_id: str, value: float
    ) -> None:
        with self.writing(store, run_id) as run:
            run.log_scalars({"uq/x": value})
        assert self.stored(store, run_id).scalars["uq/x"] == float(value)

    def test_non_finite_numbers_are_left_out(self, store: RunStore, run_id: str) -> None:
        with self.writing(store, run_id) as run:
            run.log_scalars({"uq/nan": np.nan, "uq/inf": np.inf, "uq/ninf": -np.inf, "uq/fine": 1.0})
        kept = {name for name in self.stored(store, run_id).scalars if name.startswith("uq/")}
        assert kept - {"uq/step"} == {"uq/fine"}

    def test_a_series_keeps_its_steps(self, store: RunStore, run_id: str) -> None:
        with self.writing(store, run_id) as run:
            for step in (0, 1, 5):
                run.log_scalars({"uq/nll": 10.0 - step}, step=step)
        assert self.stored(store, run_id).scalars["uq/nll"] == 5.0
        if self.capabilities.series:
            assert list(self.series(store, run_id, "uq/nll")) == [(0, 10.0), (1, 9.0), (5, 5.0)]

    def test_the_same_scalars_again_change_nothing(self, store: RunStore, run_id: str) -> None:
        for _ in range(2):
            with self.writing(store, run_id) as run:
                run.log_scalars({"uq/nll": 3.0}, step=1)
                run.log_scalars({"uq/nll": 2.0}, step=2)
                run.log_scalars({"uq/mae": 1.0})
        scalars = self.stored(store, run_id).scalars
        assert (scalars["uq/nll"], scalars["uq/mae"]) == (2.0, 1.0)
        if self.capabilities.series:
            assert list(self.series(store, run_id, "uq/nll")) == [(1, 3.0), (2, 2.0)]
            assert len(self.series(store, run_id, "uq/mae")) == 1

    @pytest.mark.parametrize("new", [1.0, 3.0])
    def test_a_new_final_value_replaces_the_old_one(self, store: RunStore, run_id: str, new: float) -> None:
        for value in (2.0, new):
            with self.writing(store, run_id) as run:
                run.log_scalars({"uq/nll": value})
        assert self.stored(store, run_id).scalars["uq/nll"] == new

    def test_the_final_value_is_shown_after_a_series(self, store: RunStore, run_id: str) -> None:
        with self.writing(store, run_id) as run:
            run.log_scalars({"uq/nll": 2.0}, step=10)
            run.log_scalars({"uq/nll": 1.0})
        assert self.stored(store, run_id).scalars["uq/nll"] == 1.0

    def test_tags_are_set_and_replaced(self, store: RunStore, run_id: str) -> None:
        with self.writing(store, run_id) as run:
            run.set_tags({"uq.method": "old", "uq.note": "Größe ≤ 3 µm, “quoted”\nsecond line"})
            run.set_tags({"uq.method": "new", "uq.long": "x" * 2000})
        tags = self.stored(store, run_id).tags
        assert tags["uq.method"] == "new"
        assert tags["uq.note"] == "Größe ≤ 3 µm, “quoted”\nsecond line"
        assert tags["uq.long"] == "x" * 2000

    def test_a_batch_arrives_whole(self, store: RunStore, run_id: str) -> None:
        with self.writing(store, run_id) as run, run.batch():
            run.set_tags({"uq.method": "a"})
            run.log_scalars({f"uq/{number}": float(number) for number in range(50)})
            run.log_scalars({"uq/0": 7.0}, step=3)
            run.log_curve("uq_curve/sample", sample_curve())
        found = self.stored(store, run_id)
        assert found.tags["uq.method"] == "a"
        assert found.scalars["uq/49"] == 49.0

    def test_a_curve_arrives_and_again_changes_nothing(self, store: RunStore, run_id: str) -> None:
        curve = sample_curve((0.0, 0.25, 1.0))
        for _ in range(2):
            with self.writing(store, run_id) as run:
                run.log_curve("uq_curve/sample", curve)
        if self.capabilities.curves:
            points = np.asarray(self.curve_points(store, run_id, "uq_curve/sample"), dtype=np.float64)
            np.testing.assert_allclose(points[:, 1], [0.0, 0.25, 1.0], rtol=0, atol=0)
            np.testing.assert_allclose(points[:, 0] / points[-1, 0], [0.0, 0.5, 1.0], rtol=0, atol=1e-12)

    def test_a_curve_with_a_hole_is_logged(self, store: RunStore, run_id: str) -> None:
        with self.writing(store, run_id) as run:
            run.log_curve("uq_curve/sample", sample_curve((0.0, np.nan, 1.0)))
        if self.capabilities.curves:
            points = np.asarray(self.curve_points(store, run_id, "uq_curve/sample"), dtype=np.float64)
            finite = points[np.isfinite(points[:, 1])]
            np.testing.assert_allclose(finite[:, 1], [0.0, 1.0], rtol=0, atol=0)

    def test_files_arrive_byte_for_byte_in_folders(
        self, store: RunStore, run_id: str, tmp_path: Path
    ) -> None:
        content = np.random.default_rng(0).bytes(300_000)
        source = tmp_path / "anything.bin"
        source.write_bytes(content)
        if not self.capabilities.files:
            with self.writing(store, run_id) as run, pytest.raises(BackendError):
                run.log_file(source, "uq/statistics.npz")
            return
        with self.writing(store, run_id) as run:
            run.log_file(source, "uq/test/statistics.npz")
            run.log_file(source, "root.bin")
        assert {"uq/test/statistics.npz", "root.bin"} <= set(store.files(run_id))
        assert self._content(store, run_id, "uq/test/statistics.npz", tmp_path) == content
        assert self._content(store, run_id, "root.bin", tmp_path) == content

    def test_a_file_is_replaced_whole(self, store: RunStore, run_id: str, tmp_path: Path) -> None:
        if not self.capabilities.files:
            return
        for content in (b"a longer first version", b"second"):
            (tmp_path / "report.json").write_bytes(content)
            with self.writing(store, run_id) as run:
                run.log_file(tmp_path / "report.json", "uq/report.json")
        assert store.files(run_id).count("uq/report.json") == 1
        assert self._content(store, run_id, "uq/report.json", tmp_path) == b"second"

    @pytest.mark.parametrize("name", BAD_FILE_NAMES)
    def test_a_name_that_leaves_the_run_is_refused(
        self, store: RunStore, run_id: str, name: str, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_bytes(b"x")
        with self.writing(store, run_id) as run, pytest.raises(BackendError):
            run.log_file(tmp_path / "file", name)

    def test_figures_and_maps_are_stored_as_images(
        self, store: RunStore, run_id: str, tmp_path: Path
    ) -> None:
        for _ in range(2):
            with self.writing(store, run_id) as run:
                run.log_figure("uq_calibration", sample_figure(0.2))
                run.log_map("uq_map/3", sample_figure(0.8))
        if not self.capabilities.files:
            return
        files = store.files(run_id)
        assert len(files) == len(set(files))
        figures = [name for name in files if "uq_calibration" in name]
        maps = [name for name in files if "uq_map" in name and name.endswith(".png")]
        assert figures
        assert maps
        assert self._content(store, run_id, figures[0], tmp_path).startswith(PNG)
        assert self._content(store, run_id, maps[0], tmp_path).startswith(PNG)

    def test_writing_more_keeps_what_was_there(self, store: RunStore, run_id: str) -> None:
        with self.writing(store, run_id) as run:
            run.log_scalars({"uq/old": 1.0})
            run.set_tags({"uq.old": "kept"})
        before = self.stored(store, run_id)
        with self.writing(store, run_id) as run:
            run.log_scalars({"uq/new": 2.0})
        after = self.stored(store, run_id)
        assert (after.name, after.status, after.uri) == (before.name, before.status, before.uri)
        assert (after.scalars["uq/old"], after.scalars["uq/new"], after.tags["uq.old"]) == (1.0, 2.0, "kept")

    def test_writers_at_the_same_time_lose_nothing(
        self, store: RunStore, run_id: str, tmp_path: Path
    ) -> None:
        def write(number: int) -> None:
            path = tmp_path / f"{number}.txt"
            path.write_text(str(number))
            with self.writing(store, run_id) as run:
                for step in range(3):
                    run.log_scalars({f"uq/{number}": float(step)}, step=step)
                run.set_tags({f"uq.{number}": "set"})
                if self.capabilities.files:
                    run.log_file(path, f"uq/{number}.txt")

        numbers = range(self.capabilities.writers)
        with ThreadPoolExecutor(len(numbers)) as pool:
            list(pool.map(write, numbers))
        found = self.stored(store, run_id)
        assert {f"uq/{number}": found.scalars.get(f"uq/{number}") for number in numbers} == {
            f"uq/{number}": 2.0 for number in numbers
        }
        assert all(found.tags.get(f"uq.{number}") == "set" for number in numbers)
        if self.capabilities.files:
            assert {f"uq/{number}.txt" for number in numbers} <= set(store.files(run_id))

    def test_a_link_holds_no_credentials(self, store: RunStore, run_id: str) -> None:
        with self.writing(store, run_id) as run:
            run.log_scalars({"uq/x": 1.0})
            for address in (run.show(), store.show(), run.uri):
                assert address is None or "@" not in address

    def test_a_failing_tracker_raises_or_is_given_up(
        self, store: RunStore, run_id: str, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_bytes(b"x")
        with self.writing(store, run_id) as run, self.outage(store, run) as broken:
            start, budget = time.monotonic(), Budget(self.capabilities.patience)
            with pytest.raises(Exception):  # noqa: B017, PT011  (any error will do, silence will not)
                raise budget.begin(lambda: _write_one_of_each(broken, tmp_path / "file"), [])() or _Silence()
            assert time.monotonic() - start < self.capabilities.patience + 1.0

    def test_a_failing_tracker_never_stops_training(
        self, store: RunStore, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with self.writing(store, run_id) as run:
            run.log_scalars({"uq/before": 1.0})
            with self.outage(store, run) as broken:
                with pytest.warns(TrackingWarning, match="Everything is kept in") as warned:
                    report = log(sample_predictions(), run=broken, deadline=5.0, **QUICK)
                start = time.monotonic()
                with pytest.raises(BackendError, match="did not take"):
                    log(sample_predictions(), run=broken, strict=True, deadline=5.0, **QUICK)
                assert time.monotonic() - start < self.capabilities.patience
        assert len([item for item in warned if item.category is TrackingWarning]) == 1
        kept = [read_entry(path) for path in entries(tmp_path / "uq_runs")]
        assert len(kept) == 2
        with self.writing(store, run_id) as run:
            for entry in kept:
                entry.send(run)
        scalars = self.stored(store, run_id).scalars
        assert scalars["uq/before"] == 1.0
        assert logged_scores(report).items() <= scalars.items()
        if self.capabilities.files:
            read = Report.from_json(store.fetch(run_id, "uq/report.json", tmp_path / "fetched"))
            assert read == report

    def test_a_run_that_is_refused_does_not_hold_back_another_of_the_same_place(
        self, store: RunStore, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        patience = self.capabilities.patience
        with self.writing(store, name="other") as other:
            with self.writing(store, run_id) as run, self.refusal(store, run) as refused:
                assert refused.place == other.place
                with pytest.warns(TrackingWarning, match="Everything is kept in"):
                    log(sample_predictions(), run=refused, deadline=patience, **QUICK)
                report = log(sample_predictions(), run=other, strict=True, deadline=patience, **QUICK)
            other_id = run_id_of(other)
        assert logged_scores(report).items() <= self.stored(store, other_id).scalars.items()

    def _content(self, store: RunStore, run_id: str, name: str, tmp_path: Path) -> bytes:
        return store.fetch(run_id, name, tmp_path / "fetched").read_bytes()


def _write_one_of_each(run: Run, path: Path) -> None:
    run.log_scalars({"uq/x": 1.0})
    run.set_tags({"uq.x": "y"})
    run.log_file(path, "uq/x.txt")


MISSING_RUN = "0123456789abcdef0123456789abcdef"


class StoreContract(BackendCase):
    """Inherit to test a backend's `RunStore`."""

    def test_runs_are_listed_oldest_first_with_what_they_hold(self, store: RunStore) -> None:
        ids = []
        for number in range(3):
            with self.writing(store, name=f"run {number}") as run:
                run.log_scalars({"uq/nll": float(number)})
                run.set_tags({"uq.method": f"m{number}"})
                ids.append(run_id_of(run))
        runs = [run for run in store.runs() if run.run_id in ids]
        assert [run.run_id for run in runs] == ids
        assert [run.name for run in runs] == ["run 0", "run 1", "run 2"]
        assert [run.scalars["uq/nll"] for run in runs] == [0.0, 1.0, 2.0]
        assert [run.tags["uq.method"] for run in runs] == ["m0", "m1", "m2"]
        assert all(run.uri.endswith(run.run_id) for run in runs)
        assert not any("running" in run.status.lower() for run in runs)

    def test_the_trackers_own_filter_selects(self, store: RunStore) -> None:
        if self.capabilities.where is None:
            return
        for method in ("a", "b", "a"):
            with self.writing(store) as run:
                run.set_tags({"uq.method": method})
        assert [run.tags["uq.method"] for run in store.runs(self.capabilities.where("uq.method", "a"))] == [
            "a",
            "a",
        ]
        assert list(store.runs(self.capabilities.where("uq.method", "c"))) == []

    def test_every_run_of_a_long_list_is_listed_once(self, store: RunStore) -> None:
        self.fill(store, self.capabilities.listing)
        names = [run.name for run in store.runs()]
        assert len(names) == self.capabilities.listing
        assert set(names) == {f"run {number}" for number in range(self.capabilities.listing)}

    def test_runs_can_be_changed_while_they_are_listed(self, store: RunStore) -> None:
        for _ in range(3):
            with self.writing(store) as run:
                run.set_tags({"uq.method": "a"})
        where = None if self.capabilities.where is None else self.capabilities.where("uq.method", "a")
        seen = []
        for stored in store.runs(where):
            with self.writing(store, stored.run_id) as run:
                run.set_tags({"uq.method": "b"})
            seen.append(stored.run_id)
        assert len(set(seen)) == 3
        assert {run.tags["uq.method"] for run in store.runs()} == {"b"}

    def test_a_logged_run_reads_back_whole(self, store: RunStore, run_id: str, tmp_path: Path) -> None:
        predictions = sample_predictions()
        with self.writing(store, run_id) as run:
            report = log(predictions, run=run, method="m", split="test", strict=True)
        stored = self.stored(store, run_id)
        assert logged_scores(report, "test").items() <= stored.scalars.items()
        assert stored.tags["uq.method"] == "m"
        if not self.capabilities.files:
            return
        folder = tmp_path / "fetched"
        size = store.fetch(run_id, "uq/test/statistics.npz", folder).stat().st_size
        assert store.size(run_id, "uq/test/statistics.npz") in (None, size)
        assert store.series(stored).items() >= {(None, "uq/test/rmse"): report.scores["rmse"]}.items()
        assert Report.from_json(store.fetch(run_id, "uq/test/report.json", folder)) == report
        statistics = read_statistics(store.fetch(run_id, "uq/test/statistics.npz", folder))
        assert statistics.counts == report.counts
        stored_predictions = Predictions.load(store.fetch(run_id, "uq/test/predictions.npz", folder))
        np.testing.assert_array_equal(stored_predictions.truth, predictions.truth)
        np.testing.assert_array_equal(stored_predictions.std, predictions.std)

    def test_a_missing_file_is_named(self, store: RunStore, run_id: str, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"uq/report\.json"):
            store.fetch(run_id, "uq/report.json", tmp_path)

    @pytest.mark.parametrize("name", BAD_FILE_NAMES)
    def test_nothing_outside_the_run_is_fetched(
        self, store: RunStore, run_id: str, name: str, tmp_path: Path
    ) -> None:
        with pytest.raises((BackendError, FileNotFoundError)):
            store.fetch(run_id, name, tmp_path)

    def test_a_missing_run_is_named(self, store: RunStore, run_id: str, tmp_path: Path) -> None:
        with pytest.raises(RunNotFoundError, match=MISSING_RUN):
            store.files(MISSING_RUN)
        with pytest.raises(RunNotFoundError, match=MISSING_RUN):
            store.fetch(MISSING_RUN, "uq/report.json", tmp_path)
        with pytest.raises(RunNotFoundError, match=MISSING_RUN):
            store.reopen(MISSING_RUN)

    def test_an_empty_run_holds_no_files(self, store: RunStore, run_id: str) -> None:
        assert [name for name in store.files(run_id) if name.startswith("uq")] == []
