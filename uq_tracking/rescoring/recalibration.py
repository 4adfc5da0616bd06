"""The recalibration of a stored run: the one logged with it, or one fitted to its statistics."""

from __future__ import annotations

from typing import Any

from uq_tracking.errors import RecalibrationError, SettingsError
from uq_tracking.logged_run import logged_run
from uq_tracking.recalibration import Recalibration, read_recalibrations, recalibrate
from uq_tracking.tracking.names import RECALIBRATION_FILE, REPORT_FILE, STATISTICS_FILE, check_split


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
    unknown = set(options) - {"family", "dof", "n_bins"}
    if unknown:
        raise SettingsError(
            f"unknown option {', '.join(sorted(unknown))}; choose from family, dof and n_bins"
        )
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
