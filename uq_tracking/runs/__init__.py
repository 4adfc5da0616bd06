"""After the runs: read logged runs back, rescore them and pool them."""

from uq_tracking.runs.outcomes import Outcome, Summary
from uq_tracking.runs.pool import pool
from uq_tracking.runs.read import LoggedRun, logged_run, logged_runs, run_recalibration
from uq_tracking.runs.request import RescoreOptions
from uq_tracking.runs.rescore import rescore

__all__ = [
    "LoggedRun",
    "Outcome",
    "RescoreOptions",
    "Summary",
    "logged_run",
    "logged_runs",
    "pool",
    "rescore",
    "run_recalibration",
]
