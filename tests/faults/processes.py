"""Real processes for the fault matrix: an MLflow server, the gateway before it, and a training job."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    """The environment of this process, with the package found where the tests find it."""
    paths = [str(ROOT), str(ROOT / "plugins"), os.environ.get("PYTHONPATH", "")]
    known = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "WANDB_", "UQ_"))}
    known["GIT_PYTHON_REFRESH"] = "quiet"
    return {**known, "PYTHONPATH": os.pathsep.join(path for path in paths if path), **more}


def wait_for(url: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                if answer.status == 200:
                    return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@dataclass
class Process:
    """A process group that is started, stopped, killed and started again."""

    command: list[str]
    folder: Path
    ready: str
    variables: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=environment(**self.variables),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(self.ready)

    def signal(self, number: int) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.signal(signal.SIGCONT)
                self.signal(signal.SIGKILL)
            self.process.wait(20)
            self.process = None


def mlflow_server(folder: Path, port: int, artifacts: Path | None = None) -> Process:
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}", "--workers", "1"]
    command += ["--artifacts-destination", str(artifacts or folder / "artifacts")]
    variables = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    return Process(command, folder, f"http://127.0.0.1:{port}/health", variables)


def gateway(folder: Path, port: int, target: int) -> Process:
    command = [sys.executable, "-m", "tests.faults.gateway", str(port), str(target), str(folder)]
    return Process(command, folder, f"http://127.0.0.1:{port}/health")


@dataclass
class Job:
    """A training job in a process of its own; it waits at the steps that it is told to."""

    folder: Path
    arguments: dict[str, Any]
    variables: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.job", json.dumps(self.arguments)],
                cwd=self.arguments.get("cwd", self.folder),
                env=environment(**self.variables),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def reached(self, mark: str, seconds: float = 120.0) -> None:
        """Wait until the job has reached a mark."""
        end = time.monotonic() + seconds
        while not (self.folder / f"at-{mark}").exists():
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the job did not reach {mark}:\n{self.log()}")
            time.sleep(0.02)

    def go_on(self, mark: str) -> None:
        (self.folder / f"go-{mark}").touch()

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-6000:]

    def result(self, seconds: float = 180.0) -> dict[str, Any]:
        """What the job has measured, with the time that its end took."""
        assert self.process is not None
        self.process.wait(seconds)
        ended = time.monotonic()
        path = self.folder / "result.json"
        if not path.exists():
            raise RuntimeError(f"the job did not end:\n{self.log()}")
        result: dict[str, Any] = json.loads(path.read_text())
        result["exit_seconds"] = ended - result["ended"]
        return result

    def send(self, number: int) -> None:
        """Send a signal to the job alone, as a scheduler or a person does."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.process is not None and self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            self.process.wait(20)
