"""Logged runs of any tracker, read back: the reports, statistics and predictions that ``uq.log`` stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from uq_tracking.checks import check_text
from uq_tracking.errors import (
    FileFormatError,
    RecalibrationError,
    RunNotFoundError,
    UnknownOptionError,
    UQTrackingError,
)
from uq_tracking.inputs.predictions import Predictions
from uq_tracking.npz import LIMIT
from uq_tracking.recalibration import Recalibration, read_recalibrations, recalibrate
from uq_tracking.report import Report
from uq_tracking.statistics.statistics import Statistics
from uq_tracking.statistics.store import read_statistics
from uq_tracking.tracking.backend import RunStore, StoredRun
from uq_tracking.tracking.cases import DrawnCases
from uq_tracking.tracking.content import scores_digest
from uq_tracking.tracking.names import (
    MAPS_FILE,
    METHOD_TAG,
    PAGE_FILE,
    PREDICTIONS_FILE,
    RECALIBRATION_FILE,
    REPORT_FILE,
    SCORES_TAG,
    STATISTICS_FILE,
    check_split,
    file_name,
    tag_name,
)
from uq_tracking.tracking.places import scratch_folder
from uq_tracking.tracking.resolve import open_store
from uq_tracking.typed import cached_property

T = TypeVar("T")

MOST_NAMED = 5
"""Runs that a message names."""


NO_REPORT = Report(
    task="regression", scores={}, undefined={}, curves={}, counts={}, settings={}, provenance={}
)
"""What a run without a report shows."""


@dataclass(frozen=True)
class LoggedRun:
    """One run of a store, of which one split is read."""

    store: RunStore
    stored: StoredRun
    split: str | None = None

    @property
    def name(self) -> str:
        """Human-readable name of the run."""
        return self.stored.name or self.stored.run_id

    @property
    def method(self) -> str | None:
        """Name of the uncertainty method, from the run's tags."""
        return self.stored.tags.get(METHOD_TAG)

    @property
    def whole(self) -> LoggedRun:
        """The run, of which no split is read."""
        return replace(self, split=None)

    @cached_property
    def files(self) -> list[str]:
        """Names of the stored files."""
        return self.store.files(self.stored.run_id)

    def has(self, file: str) -> bool:
        """True if the run has one of our files (``report.json``, ``statistics.npz`` ...) for this split."""
        return file_name(file, self.split) in self.files

    def splits(self) -> list[str]:
        """Splits and outputs below this one for which the run stored a report."""
        own = file_name(REPORT_FILE, self.split)
        start = own.removesuffix(REPORT_FILE)
        names = (name for name in self.files if name.startswith(start) and name != own)
        found = (name for name in names if name.endswith(f"/{REPORT_FILE}"))
        return sorted(name.removeprefix("uq/").removesuffix(f"/{REPORT_FILE}") for name in found)

    def holds_comparison(self) -> bool:
        """True if the run holds the page of a comparison, and no report."""
        return PAGE_FILE in self.files and not self.whole.has(REPORT_FILE) and not self.whole.splits()

    def settled(self) -> LoggedRun:
        """Return the run itself; or, if it has no report at this level, its only split or output below."""
        splits = [] if self.has(REPORT_FILE) else self.splits()
        return replace(self, split=splits[0]) if len(splits) == 1 else self

    def lacking(self) -> str:
        """Text that names the report that the run lacks at this level, and those that it has."""
        whole, is_whole = self.whole, self.whole.has(REPORT_FILE)
        lacking = "no report of its own" if self.split is None else f"no report of split {self.split!r}"
        if self.split is not None and is_whole:
            lacking += "; omit split= for the one it has without a split"
        if splits := self.splits() or whole.splits():
            return f"{lacking}; choose one with split=: {', '.join(splits)}"
        if self.has(STATISTICS_FILE) or self.has(PREDICTIONS_FILE):
            return f"{lacking}; rescore the run to make one"
        return lacking if is_whole else f"{lacking}; uq.log writes one when called without step="

    def report(self) -> Report:
        """Read the stored report, without statistics; FileNotFoundError or FileFormatError says what is wrong."""
        return self.read(REPORT_FILE, Report.from_json)

    def matches(self, report: Report) -> bool | None:
        """True if a report holds the scores that the run was tagged with; None without the tag."""
        stated = self.stored.tags.get(tag_name(SCORES_TAG, self.split))
        return None if stated is None else stated == scores_digest(report)

    def statistics(self, report: Report | None = None) -> Statistics:
        """Read the stored statistics; FileFormatError if they describe other data than the report beside them."""
        data = None if report is None else report.provenance.get("digest")
        return self.read(STATISTICS_FILE, lambda path: read_statistics(path, data=data))

    def predictions(self) -> Any:
        """Read the stored predictions."""
        return self.read(PREDICTIONS_FILE, Predictions.load)

    def drawn(self) -> DrawnCases:
        """Read the cases that the run drew, with their arrays, which its predictions hold if it stores them."""
        found = self.read(MAPS_FILE, DrawnCases.load)
        return found if all(case.arrays for case in found.cases.values()) else found.of(self.predictions())

    def scored(self) -> Report:
        """Read the stored report together with its statistics, if stored."""
        report = self.report()
        return replace(report, statistics=self.statistics(report)) if self.has(STATISTICS_FILE) else report

    def fetch(self, name: str, folder: Path) -> Path:
        """Copy any stored file of the run into a folder; FileFormatError if it is longer than any that is read."""
        size = self.store.size(self.stored.run_id, name)
        if size is not None and size > LIMIT:
            raise FileFormatError(f"{name} has {size:,} bytes, more than the limit of {LIMIT:,}")
        return self.store.fetch(self.stored.run_id, name, folder)

    def read(self, file: str, read: Callable[[Path], T]) -> T:
        """Fetch one of our files for this split, and read it; FileNotFoundError, FileFormatError."""
        name = file_name(file, self.split)
        with scratch_folder() as folder:
            path = self.fetch(name, folder)
            try:
                return read(path)
            except FileFormatError as error:
                raise FileFormatError(f"{name} of run {self.name}: {error}") from error


def logged_runs(uri: str, *, where: str | None = None, split: str | None = None) -> Iterator[LoggedRun]:
    """List the runs that a URI names, oldest first.

    Parameters
    ----------
    uri : str
        ``mlflow:EXPERIMENT[/RUN_ID]``, ``wandb:ENTITY/PROJECT[/RUN_ID]``, ``wandb-offline:DIR``, ``dir:PATH`` ...
    where : str, optional
        Filter expression, in the tracker's own syntax.
    split : str, optional
        Which of the run's splits to read.

    Raises
    ------
    RunNotFoundError
        The URI names a run that its store does not have.
    BackendError
        No backend handles the URI, or its tracker is unavailable.
    """
    check_text("where", where, "uq.method=bagging")
    check_text("split", split, "'test'")
    store, run_id = open_store(uri)
    found = False
    for stored in store.runs(where):
        if run_id in (None, stored.run_id):
            found = True
            yield LoggedRun(store, stored, split)
    if run_id is not None and not found:
        such = "no such run" if where is None else "no such run that matches where="
        raise RunNotFoundError(f"{uri}: there is {such}{_newest(list(store.runs()))}")


def logged_run(uri: str, *, split: str | None = None) -> LoggedRun:
    """Return the one run that a URI names; RunNotFoundError if it names several, or none."""
    runs = list(logged_runs(uri, split=split))
    if not runs:
        raise RunNotFoundError(f"{uri}: there is no such run{_beside(uri)}")
    if len(runs) > 1:
        some = _newest([run.stored for run in runs])
        raise RunNotFoundError(f"{uri} names {len(runs)} runs; add the id of one{some}")
    return runs[0]


def _beside(uri: str) -> str:
    """End of a message that names runs of the place that would hold this one."""
    above, _, name = uri.rpartition("/")
    try:
        return _newest(list(open_store(above)[0].runs())) if above and name else ""
    except UQTrackingError:
        return ""


def _newest(runs: Sequence[StoredRun]) -> str:
    """End of a message that names the newest runs."""
    return f"; the newest are {', '.join(run.uri for run in runs[-MOST_NAMED:])}" if runs else ""


def run_recalibration(
    uri: str, method: str | None = None, *, split: str | None = None, **options: Any
) -> Recalibration:
    """Return the recalibration of a logged run; its predictions are not needed.

    Parameters
    ----------
    uri : str
        A run, such as ``mlflow:EXPERIMENT/RUN_ID`` or ``dir:PATH``; or a store that holds one run.
    method : str, optional
        By default the first one that the run logged, else ``std_scaling``. A method the run did not log is fitted to
        its stored statistics.
    split : str, optional
        The split it was logged under; by default the only one, if there is no other.
    **options
        ``family``, ``dof`` and ``n_bins`` as for ``recalibrate``; any of them makes the method be refitted.

    Returns
    -------
    Recalibration
        Its ``fitted_on`` says which data it was fitted on.

    Raises
    ------
    RunNotFoundError
        There is no such run, or more than one.
    RecalibrationError
        The run stores neither parameters nor statistics, or the method cannot be fitted to them.
    """
    if unknown := options.keys() - {"family", "dof", "n_bins"}:
        raise UnknownOptionError("run_recalibration", unknown, ("family", "dof", "n_bins"))
    run = logged_run(uri, split=check_split(split)).settled()
    if run.has(RECALIBRATION_FILE) and not options:
        logged = run.read(RECALIBRATION_FILE, read_recalibrations)
        known = logged.get(method) if method else next(iter(logged.values()), None)
        if known is not None:
            return known
    if not run.has(STATISTICS_FILE):
        of_split = "" if run.split is None else f" of split {run.split!r}"
        raise RecalibrationError(
            f"{uri} stores no statistics{of_split} to fit to; name the split it was logged under, if any"
        )
    source = run.scored() if run.has(REPORT_FILE) else run.statistics()
    return recalibrate(source, method or "std_scaling", split=run.split, **options)
