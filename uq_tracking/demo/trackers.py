"""Where the demo's runs go: each tracker, with runs opened the way its own users do."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
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


class Tracker(ABC):
    """A tracker that the demo can log to, with its files below one folder."""

    address: str
    """Address at which ``uq.rescore`` and ``uq.compare`` find the runs while the session is open."""
    log_options: Mapping[str, Any] = MappingProxyType({"strict": True, "deadline": PATIENCE})
    """Options for ``uq.log``: a person is waiting for the demo, and wants to see failures."""

    def session(self) -> AbstractContextManager[None]:
        """Point the tracker to the folder, and restore it at the end."""
        return nullcontext()

    @abstractmethod
    def run(self, name: str) -> AbstractContextManager[Any]:
        """Open a run and finish it; pass what it yields to ``uq.log`` as ``run``, None for an active run."""

    @abstractmethod
    def how_to_look(self) -> list[str]:
        """Lines to print: the command that shows the runs, and the link to open."""


class MLflow(Tracker):
    """The sqlite store ``mlflow.db`` in the folder, with the artifacts in ``mlruns`` beside it."""

    address = f"mlflow:{EXPERIMENT}"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = f"sqlite:///{(folder / 'mlflow.db').resolve()}"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Use the store, whatever tracking URI was set, and restore that afterwards."""
        mlflow: Any = import_module("mlflow")
        before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
        with quiet("mlflow", "alembic"):
            mlflow.set_tracking_uri(self.uri)
            try:
                self.experiment_id = self._experiment()
                yield
            finally:
                mlflow.set_tracking_uri(before)

    def _experiment(self) -> str:
        import mlflow

        found = mlflow.get_experiment_by_name(EXPERIMENT)
        if found is not None:
            return str(found.experiment_id)
        artifacts = (self.folder / "mlruns").resolve().as_uri()
        return str(mlflow.create_experiment(EXPERIMENT, artifact_location=artifacts))

    @contextmanager
    def run(self, name: str) -> Iterator[None]:
        """``mlflow.start_run`` and its end; see `Tracker`."""
        import mlflow

        with mlflow.start_run(run_name=name, experiment_id=self.experiment_id):
            yield

    def how_to_look(self) -> list[str]:
        """The command that serves the store and the link to the experiment's page."""
        command = f"{_program('mlflow')} ui --backend-store-uri {shlex.quote(self.uri)} --port {PORT}"
        view = "viewStateShareKey=uq-overview&compareRunsMode=CHART"
        page = f"#/experiments/{self.experiment_id}/runs?workflowType=machine_learning&{view}"
        return [command, f"http://127.0.0.1:{PORT}/{page}"]


class Wandb(Tracker):
    """Offline runs of W&B below ``wandb`` in the folder; no account is needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"wandb-offline:{folder / 'wandb'}"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Keep the artifacts beside the runs: W&B stages them below its data folder."""
        with _variable("WANDB_DATA_DIR", str((self.folder / "wandb").resolve())):
            yield

    @contextmanager
    def run(self, name: str) -> Iterator[None]:
        """``wandb.init`` and the run's end; see `Tracker`."""
        import wandb

        settings = wandb.Settings(silent=True, console="off")
        with wandb.init(
            project=EXPERIMENT, name=name, mode="offline", dir=str(self.folder), settings=settings
        ):
            yield

    def how_to_look(self) -> list[str]:
        """The command that uploads the runs to a W&B account."""
        return [f"{_program('wandb')} sync {shlex.quote(str(self.folder / 'wandb'))}/offline-run-*"]


class Directory(Tracker):
    """Plain folders below ``uq_runs``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "uq_runs"
        self.address = f"dir:{self.folder}"

    @contextmanager
    def run(self, name: str) -> Iterator[str]:
        """Yield the address: each call of ``uq.log`` creates a run there."""
        yield self.address

    def how_to_look(self) -> list[str]:
        """The folder."""
        return [f"ls {shlex.quote(str(self.folder))}"]


TRACKERS: dict[str, type[MLflow] | type[Wandb] | type[Directory]] = {
    "mlflow": MLflow,
    "wandb": Wandb,
    "dir": Directory,
}


def tracker_named(name: str, folder: Path) -> Tracker:
    """Return the tracker.

    Raises
    ------
    SettingsError
        The demo does not know it.
    BackendError
        It is not installed or too old.
    """
    if name not in TRACKERS:
        raise SettingsError(f"the demo cannot log to {name!r}; choose from {', '.join(TRACKERS)}")
    status = find_backend(name).status()
    if not status.usable:
        cure = INSTALL if name == "mlflow" else status.hint
        raise BackendError(f"the demo logs to {name}, which is missing or too old; install it: {cure}")
    return TRACKERS[name](folder)


def check_scikit_learn() -> None:
    """Raise BackendError with an install hint if scikit-learn, which fits the Gaussian process, is missing."""
    try:
        import_module("sklearn")
    except ImportError as error:
        raise BackendError(f"the demo's models need scikit-learn; install it: {INSTALL}") from error


@contextmanager
def quiet(*loggers: str) -> Iterator[None]:
    """Silence the loggers below warnings, such as the steps of creating a database."""
    before = {name: logging.getLogger(name).level for name in loggers}
    for name in before:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable unless the user has already set it."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)


def _program(name: str) -> str:
    """Return what to type for a program in this environment: its name if the shell finds it, else its path."""
    own = Path(sys.executable).parent / name
    found = shutil.which(name)
    if found is not None and own.exists() and not Path(found).samefile(own):
        found = None
    if found is not None or not own.exists():
        return name
    path = own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own
    return shlex.quote(str(path))
