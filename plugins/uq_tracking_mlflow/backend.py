"""Find MLflow runs: the active one, one that a user holds, or the store behind an address."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from uq_tracking.errors import BackendError, NoRunHereError
from uq_tracking.tracking.backend import Backend, BackendStatus, Run, RunStore
from uq_tracking_mlflow.connection import OLDEST, Connection, place_of, read_run
from uq_tracking_mlflow.experiment import MLflowStore, find_experiment
from uq_tracking_mlflow.run import MLflowRun

_HINT = "pip install 'uq-tracking[mlflow]'"
_RUN_ID = re.compile(r"[0-9a-f]{32}")


class MLflowBackend(Backend):
    """MLflow, at MLflow's own tracking URI."""

    name = "mlflow"

    def status(self) -> BackendStatus:
        """Report which MLflow is installed, full or skinny."""
        return BackendStatus.of_package(self.name, _HINT, "mlflow-skinny", oldest=OLDEST)

    def active_run(self) -> Run | None:
        """Return this thread's active run, else the run that ``MLFLOW_RUN_ID`` names."""
        run_id = os.environ.get("MLFLOW_RUN_ID") if "mlflow" in sys.modules else None
        return self.own_run() or (MLflowRun(run_id) if run_id else None)

    def own_run(self) -> Run | None:
        """Return this thread's active run; ``MLFLOW_RUN_ID`` names the same run to all processes of a job."""
        active = getattr(sys.modules.get("mlflow"), "active_run", None)
        run = None if active is None else active()
        return None if run is None else MLflowRun(run.info.run_id, experiment_id=run.info.experiment_id)

    def ended_run(self) -> Run | None:
        """Return this thread's last run by id: MLflow's own ``last_active_run`` would ask the server for it."""
        fluent: Any = sys.modules.get("mlflow.tracking.fluent")
        if fluent is None or any(fluent._active_run_stack.get_all_thread_values().values()):
            return None
        run_id = fluent._last_active_run_id.get()
        return None if run_id is None else MLflowRun(run_id)

    def place(self, address: str, *, scheme: str | None = None) -> str:
        """Return MLflow's tracking URI; see `Backend`."""
        _mlflow()
        return place_of(None)

    def probe(self, place: str) -> None:
        """Ask for one experiment; see `Backend`."""
        client = _client()
        if place_of(client) == place:
            Connection(client).call(
                "asking whether it is back", lambda: client.search_experiments(max_results=1)
            )

    def adopt(self, run: Any) -> Run | None:
        """Adopt an MLflow run, a run id (32 hexadecimal digits), or Lightning's ``MLFlowLogger``."""
        if isinstance(run, str):
            return MLflowRun(run) if _RUN_ID.fullmatch(run) else None
        if any(kind.__name__ == "MLFlowLogger" for kind in type(run).__mro__):
            return _of_lightning(run)
        entity = getattr(sys.modules.get("mlflow.entities"), "Run", None)
        if entity is not None and isinstance(run, entity):
            return MLflowRun(run.info.run_id, experiment_id=run.info.experiment_id)
        return None

    def store(self, address: str, *, scheme: str | None = None) -> tuple[RunStore, str | None]:
        """Open ``EXPERIMENT``, ``EXPERIMENT/RUN_ID`` or ``RUN_ID``.

        An experiment is given by its name, which may contain slashes, or its id. It need not exist yet to create runs
        in it.
        """
        if not address:
            raise BackendError(
                "mlflow: does not name an experiment; write mlflow:EXPERIMENT or mlflow:EXPERIMENT/RUN_ID"
            )
        client = _client()
        experiment, _, run_id = address.rpartition("/")
        if not _RUN_ID.fullmatch(run_id) or find_experiment(Connection(client), address) is not None:
            return MLflowStore(client, address), None
        if not experiment:
            run = read_run(Connection(client), f"reading run {run_id}", run_id)
            experiment = str(run.info.experiment_id)
        return MLflowStore(client, experiment), run_id


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError as error:
        raise BackendError(f"MLflow cannot be imported ({error}); {_HINT}") from error
    return mlflow


def _client() -> Any:
    return _mlflow().MlflowClient()


def _of_lightning(logger: Any) -> Run:
    client, run_id = logger.experiment, logger.run_id
    if run_id is None:
        raise NoRunHereError(
            "this process is not rank zero, where Lightning keeps its MLflow run; "
            "merge the ranks and log on rank zero (trainer.is_global_zero)"
        )
    return MLflowRun(run_id, client, logger.experiment_id)
