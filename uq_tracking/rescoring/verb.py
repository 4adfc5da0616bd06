"""The function `rescore`: rescore logged runs on any tracker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from uq_tracking.checks import check_callable, check_flag, whole_number
from uq_tracking.errors import RunNotFoundError, SettingsError, TrackerUnreachableError
from uq_tracking.logged_run import LoggedRun, logged_runs
from uq_tracking.npz import LIMIT
from uq_tracking.rescoring.common import CommonPredictor, common_predictor, prefix_of
from uq_tracking.rescoring.request import Figures, make_request
from uq_tracking.rescoring.summary import Outcome, Summary
from uq_tracking.rescoring.work import Work
from uq_tracking.settings import Family
from uq_tracking.tracking.content import Scores
from uq_tracking.tracking.names import COMPARISON_NAME

Progress = Callable[[Outcome, int], object]
"""Called with every outcome, as soon as it is available, and the total number of runs."""


def rescore(
    uri: str,
    *,
    where: str | None = None,
    split: str | None = None,
    metrics: str | Iterable[str] | None = None,
    scores: Scores = "headline",
    alpha: float | None = None,
    n_bins: int | None = None,
    family: Family | None = None,
    dof: float | None = None,
    unit: str | None = None,
    std_floor: float | None = None,
    calibration: Any = None,
    recalibration: str | Iterable[str] | None = None,
    calibration_split: str | None = None,
    predictions: str | None = None,
    columns: Mapping[str, str] | None = None,
    prediction_from: str | None = None,
    figures: Figures = "auto",
    dry_run: bool = False,
    workers: int = 1,
    force: bool = False,
    limit: int = LIMIT,
    progress: Progress | None = None,
) -> Summary:
    """Rescore logged runs: new metrics, other settings, recalibrations, figures.

    A run is scored from its stored statistics if they suffice, else from its stored predictions; its report says
    which (``provenance["rescored"]["from"]``). Settings that are not given stay those of the run's own report. The
    scores are written to the same run, whose status and end time stay unchanged; nothing is replaced by something
    less complete. A run already rescored as requested, with the same version and metrics, is skipped, so an
    interrupted call continues where it stopped.

    Parameters
    ----------
    uri : str
        Runs: ``mlflow:EXPERIMENT[/RUN_ID]``, ``wandb:ENTITY/PROJECT[/RUN_ID]``, ``wandb-offline:DIR``,
        ``dir:PATH`` ...
    where : str, optional
        Filter expression, in the tracker's own syntax; for MLflow, for example, ``tags.`uq.rescored` IS NULL``.
    split : str, optional
        The split to rescore.
    metrics : str or iterable of str, optional
        Keys to compute besides the default suite and what the run has.
    scores : "headline" or "all"
        Which scores the tracker shows: the headline, those named in ``metrics`` and those the run already shows; or
        all.
    alpha, n_bins, family, dof, unit : optional
        As for ``Settings``.
    std_floor : float, optional
        Smaller standard deviations are raised to it; 0 removes the floor of an earlier rescore. Needs the
        predictions.
    calibration : optional
        Adds scores after recalibration: fitted parameters, or the path of their JSON file; True or names of methods
        to cross-fit.
    recalibration : str or iterable of str, optional
        Methods to fit; by default ``std_scaling``.
    calibration_split : str, optional
        Fit on each run's stored statistics of this split, such as ``val``.
    predictions : str, optional
        For runs not logged by this package: a stored file, a folder of files or a glob such as ``out/*.npz``; npz,
        npy, csv, parquet, zarr, and tables from MLflow's ``log_table`` or W&B (json).
    columns : mapping, optional
        Column names in those files by role, such as ``{"target": "y", "mean": "mu", "std": "sigma"}``; see
        ``uq_tracking.files.read_predictions``.
    prediction_from : str, optional
        A run: score each run's standard deviations against this run's means, under ``uq/common/<key>``. The targets
        must be the same, in the same order.
    figures : "auto" or bool
        "auto" draws the figures that a run has and whose numbers changed; True draws all; False none.
    dry_run : bool
        Read and score, but write nothing.
    workers : int
        Number of runs to process in parallel.
    force : bool
        Also rescore runs already rescored as requested, and rewrite everything.
    limit : int
        Bytes above which a stored file is not read.
    progress : callable, optional
        ``progress(outcome, total)`` is called after every run.

    Returns
    -------
    Summary
        ``done``, ``skipped`` and ``failed``, each with reasons. A failed run keeps what it has.

    Raises
    ------
    SettingsError
        An option is out of range, or a metric is unknown (UnknownMetricError).
    BackendError
        No backend handles the URI, or its tracker is unavailable; RunNotFoundError if there is no such run.

    Examples
    --------
    >>> import uq_tracking as uq
    >>> _ = uq.log([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3], run="dir:rescored", method="example")
    >>> summary = uq.rescore("dir:rescored", alpha=0.9)
    >>> [(outcome.status, outcome.source) for outcome in summary.outcomes]
    [('done', 'exact statistics')]
    >>> len(uq.rescore("dir:rescored", alpha=0.9).skipped)
    1
    """
    for name, flag in {"dry_run": dry_run, "force": force}.items():
        check_flag(name, flag)
    check_callable("progress", progress)
    if whole_number("workers", workers) < 1:
        raise SettingsError(f"workers is {workers}; pass at least 1")
    if columns is not None and predictions is None:
        raise SettingsError("columns= names columns in the files given by predictions=; pass both")
    common = None if prediction_from is None else common_predictor(prediction_from, split, limit)
    request = make_request(
        split,
        metrics,
        std_floor,
        calibration,
        recalibration,
        calibration_split,
        {"alpha": alpha, "n_bins": n_bins, "family": family, "dof": dof, "unit": unit},
        predictions=predictions,
        columns=columns,
        figures=figures,
        scores=scores,
        limit=limit,
        **_other_means(common, split, predictions),
    )
    runs = [run for run in logged_runs(uri, where=where, split=split) if not _is_of_a_comparison(run)]
    if not runs and where is None:
        raise RunNotFoundError(f"{uri}: there is no run to rescore; check the address")
    return Summary(
        list(worked(runs, Work(request, common, force, dry_run), workers, progress)), dry_run=dry_run
    )


def _other_means(
    common: CommonPredictor | None, split: str | None, predictions: str | None
) -> dict[str, Any]:
    """What a common predictor adds to the request."""
    if common is None:
        return {}
    if predictions is not None:
        raise SettingsError("prediction_from= reads the stored predictions; omit predictions=")
    return {"prefix": prefix_of(split), "source_digest": common.predictions.digest()}


def _is_of_a_comparison(run: LoggedRun) -> bool:
    """Whether ``Comparison.log`` made the run; only the files of runs with its name are listed."""
    try:
        return run.name == COMPARISON_NAME and run.holds_comparison()
    except Exception:  # the run's own outcome says what is wrong with it
        return False


def worked(
    runs: Sequence[LoggedRun], work: Callable[[LoggedRun], Outcome], workers: int, progress: Progress | None
) -> Iterator[Outcome]:
    """Outcomes in the order of the runs; once the tracker is gone, the remaining runs are not tried."""
    gone = threading.Event()

    def one(run: LoggedRun) -> Outcome:
        if gone.is_set():
            return Outcome(run.stored.uri, run.name, "failed", "not tried: the tracker stopped answering")
        outcome = work(run)
        if _is_unreachable(outcome.error):
            gone.set()
        return outcome

    def told(outcome: Outcome) -> Outcome:
        if progress is not None:
            progress(outcome, len(runs))
        return outcome

    if workers == 1:
        yield from (told(one(run)) for run in runs)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="uq-rescore")
    try:
        yield from (told(outcome) for outcome in pool.map(one, runs))
    finally:
        pool.shutdown(cancel_futures=True)


def _is_unreachable(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, TrackerUnreachableError):
            return True
        error = error.__cause__
    return False
