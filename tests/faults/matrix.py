"""The fault matrix: a training job on real processes that fail, and whether its run ends as an undisturbed one."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.processes import Job, Process, environment, free_port, gateway, mlflow_server

DEADLINE = 2.0
STEPS = 8
SICK_FROM, WELL_FROM = "step2", "step6"

Content = dict[str, Any]


@dataclass
class Row:
    """What one fault did."""

    tracker: str
    fault: str
    seconds: list[float] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    kept: int = 0
    """Calls in the spool when the fault was over."""
    left: int = 0
    """Calls in the spool when the program had ended."""
    exit_seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    """What `sync` could not send."""
    differing: list[str] = field(default_factory=list)
    """Fields in which the run differs from an undisturbed one."""

    @property
    def first(self) -> float:
        """Seconds of the slowest call from the fault on; the very first one loads the tracker's package."""
        return max(self.seconds[2:])

    @property
    def later(self) -> float:
        """Seconds of the slowest step after the one that found the fault, while it lasted."""
        return max(self.seconds[3:6])


@dataclass
class Store:
    """A tracker as the matrix uses it."""

    name: str
    arguments: dict[str, Any]
    variables: dict[str, str]
    content: Callable[[str], Content]
    calm: Content | None = None
    folder: Path | None = None
    """Of a store whose runs the matrix makes."""


def spooled(folder: Path) -> int:
    return len([*folder.glob("uq_runs/spool/*.zip"), *folder.glob("state/uq_tracking/uq_runs/spool/*.zip")])


def run_job(
    store: Store,
    folder: Path,
    fault: str = "none",
    start: Callable[[], None] = lambda: None,
    end: Callable[[], None] = lambda: None,
    *,
    well_from: str = WELL_FROM,
    temporary: Path | None = None,
    **arguments: Any,
) -> Row:
    """Run the job, with the fault from ``SICK_FROM`` to ``well_from``; then `sync`, then compare."""
    folder.mkdir(parents=True)
    row = Row(store.name, fault)
    marks = [SICK_FROM, *([well_from] if well_from != "exit" else [])]
    given = {"folder": str(folder), "steps": STEPS, "marks": marks, **store.arguments, **arguments}
    variables = {
        "UQ_TRACKING_DEADLINE": str(DEADLINE),
        "XDG_STATE_HOME": str(folder / "state"),
        **store.variables,
        **({} if temporary is None else {"TMPDIR": str(temporary)}),
    }
    job = Job(folder, given, variables)
    job.start()
    try:
        job.reached(SICK_FROM)
        start()
        job.go_on(SICK_FROM)
        if well_from != "exit":
            job.reached(well_from)
            row.kept = spooled(folder)
            end()
            job.go_on(well_from)
        found = job.result()
    finally:
        job.kill()
        if well_from == "exit":
            row.kept = spooled(folder)
            end()
    row.seconds, row.raised, row.warned = found["seconds"], found["raised"], found["warned"]
    row.exit_seconds, row.left = found["exit_seconds"], spooled(folder)
    row.failed = synced(folder, variables)
    content = store.content(found["run"])
    if store.calm is None:
        store.calm = content
    row.differing = differences(store.calm, content)
    return row


def synced(folder: Path, variables: dict[str, str]) -> list[str]:
    """Send what is left as a user would; the reasons of what could not be sent."""
    code = "import json, uq_tracking as uq; print(json.dumps([o.reason for o in uq.sync().failed]))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    failed: list[str] = json.loads(found.stdout.splitlines()[-1])
    return failed


def differences(calm: Content, found: Content) -> list[str]:
    """Names of what is not equal; [] when all is."""
    return sorted(
        f"{kind}: {name}"
        for kind in calm
        for name in calm[kind].keys() | found[kind].keys()
        if calm[kind].get(name) != found[kind].get(name)
    )


class MLflowHttp:
    """A real MLflow server behind a gateway that fails on demand."""

    def __init__(self, folder: Path) -> None:
        port, self.port = free_port(), free_port()
        self.server: Process = mlflow_server(folder / "server", port)
        self.gateway: Process = gateway(folder / "gateway", self.port, port)
        self.uri = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> MLflowHttp:
        self.server.start()
        self.gateway.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.kill()
        self.server.kill()

    def mode(self, text: str) -> Callable[[], None]:
        def change() -> None:
            (self.gateway.folder / "mode").write_text(text)

        return change

    def store(self) -> Store:
        return mlflow_store("MLflow, server", self.uri)

    def stop(self) -> None:
        self.server.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.server.signal(signal.SIGCONT)


def mlflow_store(name: str, uri: str) -> Store:
    with warnings.catch_warnings():  # MLflow's own imports warn of what its dependencies deprecate
        warnings.simplefilter("ignore")
        import mlflow
        import mlflow.store.tracking.sqlalchemy_store

    experiment = mlflow.MlflowClient(uri).create_experiment("faults")
    arguments = {"sdk": "mlflow", "tracking_uri": uri, "experiment": experiment}
    return Store(name, arguments, {"MLFLOW_TRACKING_URI": uri}, lambda run: mlflow_content(uri, run))


def mlflow_content(uri: str, run_id: str) -> Content:
    """Every value of every metric by step, our tags, and every artifact's bytes."""
    import mlflow
    from mlflow.artifacts import download_artifacts

    client = mlflow.MlflowClient(uri)
    run = client.get_run(run_id)
    history = {
        key: sorted({(metric.step, metric.value) for metric in client.get_metric_history(run_id, key)})
        for key in run.data.metrics
    }
    counts = {key: len(client.get_metric_history(run_id, key)) for key in ("uq/rmse", "uq/nll")}
    folder = Path(download_artifacts(run_id=run_id, tracking_uri=uri))
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    tags = {name: value for name, value in run.data.tags.items() if name.startswith("uq.")}
    last = dict(run.data.metrics)
    return {"series": history, "rows": counts, "last": last, "tags": tags, "files": files}


def sqlite_store(folder: Path) -> Store:
    folder.mkdir(parents=True)
    return mlflow_store("MLflow, sqlite", f"sqlite:///{folder / 'mlflow.db'}")


@contextmanager
def locked_database(path: Path) -> Iterator[None]:
    """Another process that holds the database, as a backup does."""
    holder = sqlite3.connect(path, timeout=30, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


def directory_store(folder: Path) -> Store:
    """A run in a folder."""
    from uq_tracking.tracking.directory import DirectoryStore

    runs = DirectoryStore(folder)

    def content(uri: str) -> Content:
        run_id = uri.rpartition("/")[2]
        (run,) = [run for run in runs.runs() if run.run_id == run_id]
        files = {name: (folder / run_id / name).read_bytes() for name in runs.files(run_id)}
        return {"series": runs.series(run), "tags": dict(run.tags), "files": files}

    return Store("folder", {}, {}, content)


def new_directory_run(folder: Path) -> str:
    from uq_tracking.tracking.directory import DirectoryStore

    return DirectoryStore(folder).create("job").uri


def wandb_store(server: Any, folder: Path) -> Store:
    """Runs on a W&B server of our own (tests/wandb_server), through the real SDK and its core."""
    variables = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": "x" * 40, "WANDB_MODE": "online"}
    variables |= {"WANDB_SILENT": "true", "WANDB_CONSOLE": "off", "WANDB_X_DISABLE_STATS": "true"}
    for name in ("DIR", "DATA_DIR", "CACHE_DIR", "CONFIG_DIR", "ARTIFACT_DIR"):
        (folder / name.lower()).mkdir(parents=True)
        variables[f"WANDB_{name}"] = str(folder / name.lower())
    for service in ("GRAPHQL", "FILE_STREAM", "FILE_TRANSFER"):  # by default up to a minute between attempts
        variables[f"WANDB_X_{service}_RETRY_WAIT_MIN_SECONDS"] = "0.1"
        variables[f"WANDB_X_{service}_RETRY_WAIT_MAX_SECONDS"] = "0.5"
    return Store("W&B, online", {"sdk": "wandb"}, variables, lambda run: wandb_content(server, run))


def wandb_content(server: Any, run_id: str) -> Content:
    """Every score by step, the summary, our tags, and the files of the artifact's last version."""
    run = server.run("faults", run_id)
    series: dict[str, list[tuple[int, float]]] = {}
    for row in run.rows():
        for key, value in row.items():
            if key.startswith("uq/") and isinstance(value, int | float) and "uq/step" in row:
                series.setdefault(key, []).append((row["uq/step"], value))
    versions = server.state.versions(server.entity, "faults", f"uq-{run_id}")
    files = {name: server.state.blobs[key] for name, key in versions[-1].files.items()} if versions else {}
    summary = {
        key: value for key, value in run.summary.items() if isinstance(value, int | float) and key[0] != "_"
    }
    tags = run.config_value("uq") or {}
    return {
        "series": {k: sorted(set(v)) for k, v in series.items()},
        "last": summary,
        "tags": tags,
        "files": files,
    }


@contextmanager
def small_disk(folder: Path, size: str = "4m") -> Iterator[Path]:
    """A disk of its own, which a file can fill; PermissionError where nobody may mount one."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise PermissionError(f"nothing can be mounted at {folder}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(folder: Path) -> None:
    """Write until nothing fits."""
    with suppress(OSError), (folder / "ballast").open("wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()


def free(folder: Path) -> None:
    (folder / "ballast").unlink()


def killed(folder: Path, seconds: float) -> tuple[int, int]:
    """Kill a job that is spooling after so many seconds; how many calls it has kept, and how many are damaged."""
    from uq_tracking.errors import FileFormatError
    from uq_tracking.tracking.spool import entries, read_entry

    folder.mkdir(parents=True)
    run = new_directory_run(folder / "runs")
    arguments = {"folder": str(folder), "steps": 10_000, "marks": ["step2"], "run": run}
    job = Job(folder, arguments, {"XDG_STATE_HOME": str(folder / "state")})
    job.start()
    job.reached("step2")
    (folder / "runs").rename(folder / "away")
    (folder / "runs").write_text("a file where the folder was")
    job.go_on("step2")
    time.sleep(seconds)
    job.kill()
    kept = list(entries(folder / "uq_runs"))
    damaged = 0
    for path in kept:
        try:
            read_entry(path)
        except FileFormatError:
            damaged += 1
    return len(kept), damaged
