"""Trackers of the demo, with runs opened the way their own users do."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from uq_tracking.errors import BackendError, SettingsError
from uq_tracking.tracking.deadline import PATIENCE
from uq_tracking.tracking.resolve import find_backend

EXPERIMENT = "uq-demo-terrain"
INSTALL = 'pip install "uq-tracking[demo]"'
PORT = 5000


class Directory:
    """A tracker that the demo can log to, with its files below one folder: plain folders in ``uq_runs``.

    Attributes
    ----------
    address : str
        Where ``uq.rescore`` and ``uq.compare`` find the runs while the session is open.
    log_options : mapping
        Options for ``uq.log``: a person is waiting for the demo, and wants to see failures.
    """

    log_options: Mapping[str, Any] = MappingProxyType({"strict": True, "deadline": PATIENCE})

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"dir:{folder / 'uq_runs'}"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Point the tracker to the folder, and restore it at the end."""
        yield

    @contextmanager
    def run(self, name: str) -> Iterator[str | None]:
        """Open a run and finish it; yield ``run`` for ``uq.log``: an address, or None for the active run."""
        yield self.address

    def how_to_look(self) -> list[str]:
        """Lines to print: the command that shows the runs, and the link to open."""
        return [f"ls {shlex.quote(str(self.folder / 'uq_runs'))}"]


class MLflow(Directory):
    """The sqlite store ``mlflow.db`` in the folder, with the artifacts in ``mlruns`` beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.address = f"mlflow:{EXPERIMENT}"
        self.uri = f"sqlite:///{(folder / 'mlflow.db').resolve()}"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Use the store, whatever tracking URI was set, and keep the steps of creating it quiet."""
        mlflow: Any = import_module("mlflow")
        before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
        loggers = [logging.getLogger(name) for name in ("mlflow", "alembic")]
        levels = [logger.level for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(logging.WARNING)
            mlflow.set_tracking_uri(self.uri)
            self.experiment_id = self._experiment()
            yield
        finally:
            mlflow.set_tracking_uri(before)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)

    def _experiment(self) -> str:
        import mlflow

        found = mlflow.get_experiment_by_name(EXPERIMENT)
        if found is not None:
            return str(found.experiment_id)
        artifacts = (self.folder / "mlruns").resolve().as_uri()
        return str(mlflow.create_experiment(EXPERIMENT, artifact_location=artifacts))

    @contextmanager
    def run(self, name: str) -> Iterator[None]:
        """Open a run by ``mlflow.start_run``."""
        import mlflow

        with mlflow.start_run(run_name=name, experiment_id=self.experiment_id):
            yield

    def how_to_look(self) -> list[str]:
        """The command that serves the store and the link to the experiment's page."""
        command = f"{_program('mlflow')} ui --backend-store-uri {shlex.quote(self.uri)} --port {PORT}"
        view = "viewStateShareKey=uq-overview&compareRunsMode=CHART"
        page = f"#/experiments/{self.experiment_id}/runs?workflowType=machine_learning&{view}"
        return [command, f"http://127.0.0.1:{PORT}/{page}"]


class Wandb(Directory):
    """Offline runs of W&B below ``wandb`` in the folder; no account is needed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.address = f"wandb-offline:{folder / 'wandb'}"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep the artifacts beside the runs: W&B stages them below its data folder, unless the user names one."""
        own = "WANDB_DATA_DIR" not in os.environ
        os.environ.setdefault("WANDB_DATA_DIR", str((self.folder / "wandb").resolve()))
        try:
            yield
        finally:
            if own:
                del os.environ["WANDB_DATA_DIR"]

    @contextmanager
    def run(self, name: str) -> Iterator[None]:
        """Open a run by ``wandb.init``."""
        import wandb

        settings = wandb.Settings(silent=True, console="off")
        with wandb.init(
            project=EXPERIMENT, name=name, mode="offline", dir=str(self.folder), settings=settings
        ):
            yield

    def how_to_look(self) -> list[str]:
        """The command that uploads the runs to a W&B account."""
        return [f"{_program('wandb')} sync {shlex.quote(str(self.folder / 'wandb'))}/offline-run-*"]


TRACKERS: Mapping[str, type[Directory]] = {"mlflow": MLflow, "wandb": Wandb, "dir": Directory}


def tracker_named(name: str, folder: Path) -> Directory:
    """Return the tracker, once it and scikit-learn, which fits the Gaussian process, are known to be installed."""
    if name not in TRACKERS:
        raise SettingsError(f"the demo cannot log to {name!r}; choose from {', '.join(TRACKERS)}")
    try:
        import_module("sklearn")
    except ImportError as error:
        raise BackendError(f"the demo's models need scikit-learn; install it: {INSTALL}") from error
    status = find_backend(name).status()
    if not status.usable:
        cure = INSTALL if name == "mlflow" else status.hint
        raise BackendError(f"the demo logs to {name}, which is missing or too old; install it: {cure}")
    return TRACKERS[name](folder)


def _program(name: str) -> str:
    """Return what to type for a program in this environment: its name if the shell finds it, else its path."""
    own, found = Path(sys.executable).with_name(name), shutil.which(name)
    if not own.exists() or (found is not None and own.samefile(found)):
        return name
    return shlex.quote(str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own))
