"""The recalibration of a stored run: the one logged with it, or one fitted to its statistics."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from uq_tracking.errors import RecalibrationError, RunNotFoundError, SettingsError
from uq_tracking.recalibration import Recalibration, read_recalibrations, recalibrate
from uq_tracking.report import Report
from uq_tracking.statistics.store import read_statistics
from uq_tracking.tracking.backend import RunStore
from uq_tracking.tracking.names import (
    RECALIBRATION_FILE,
    REPORT_FILE,
    STATISTICS_FILE,
    check_split,
    file_name,
)
from uq_tracking.tracking.resolve import open_store


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
        The split it was logged under.
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
    check_split(split)
    store, run_id = open_store(uri)
    run_id = run_id or _only_run(store, uri)
    with TemporaryDirectory(prefix="uq_tracking_") as folder:
        stored = _Files(store, run_id, Path(folder), split)
        logged = {} if options else _logged(stored)
        if method is None and logged:
            return next(iter(logged.values()))
        if method in logged:
            return logged[method]
        return _fitted(stored, uri, method or "std_scaling", split, options)


class _Files:
    """Stored files of one run, by their plain names."""

    def __init__(self, store: RunStore, run_id: str, folder: Path, split: str | None) -> None:
        self._store, self._run_id, self._folder, self._split = store, run_id, folder, split
        self.names = set(store.files(run_id))

    def fetch(self, file: str) -> Path | None:
        """Path of a local copy; None if the run has no such file."""
        name = file_name(file, self._split)
        return self._store.fetch(self._run_id, name, self._folder) if name in self.names else None


def _logged(stored: _Files) -> dict[str, Recalibration]:
    path = stored.fetch(RECALIBRATION_FILE)
    return {} if path is None else read_recalibrations(path)


def _fitted(
    stored: _Files, uri: str, method: str, split: str | None, options: dict[str, Any]
) -> Recalibration:
    statistics, report = stored.fetch(STATISTICS_FILE), stored.fetch(REPORT_FILE)
    if statistics is None:
        of_split = "" if split is None else f" of split {split!r}"
        raise RecalibrationError(
            f"{uri} stores no statistics{of_split} to fit to; name the split it was logged under, if any"
        )
    unknown = set(options) - {"family", "dof", "n_bins"}
    if unknown:
        raise SettingsError(
            f"unknown option {', '.join(sorted(unknown))}; choose from family, dof and n_bins"
        )
    made = read_statistics(statistics)
    if report is None:
        return recalibrate(made, method, split=split, **options)
    whole = Report.from_dict(Report.from_json(report).to_dict(), made)
    return recalibrate(whole, method, split=split, **options)


def _only_run(store: RunStore, uri: str) -> str:
    runs = list(store.runs())
    if len(runs) == 1:
        return runs[0].run_id
    listed = ", ".join(run.uri for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
    raise RunNotFoundError(f"{uri} holds {len(runs)} runs; name one{': ' + listed if runs else ''}")
