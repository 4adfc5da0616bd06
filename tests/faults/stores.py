"""Trackers as the fault matrix uses them: how a job logs to them, and what they hold, field by field."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.processes import Process, environment, free_port, gateway, mlflow_server
from uq_tracking_mlflow.connection import no_progress_bar

Content = dict[str, Any]
WANDB_DEADLINE = 6.0
SHOWN = ("mlflow.note.content", "mlflow.loggedImages")
"""MLflow's own tags that a call sets: the description, and that there are images."""


@dataclass
class Store:
    """A tracker, and how a job's run in it is read back."""

    name: str
    arguments: dict[str, Any]
    content: Callable[[str], Content]
    variables: dict[str, str] = field(default_factory=dict)
    new: Callable[[], dict[str, Any]] = dict
    """Arguments of the next job, such as the run that it logs to."""
    deadline: float = 2.0
    """Seconds; more where an undisturbed call takes long on a busy machine."""
    calm: dict[str, Content] = field(default_factory=dict)
    """What undisturbed runs hold, by the jobs' options."""
    calm_memory: dict[str, float] = field(default_factory=dict)
    """The most that undisturbed jobs have used, in MB."""


def differences(calm: Content, found: Content) -> list[str]:
    """Names of what is not equal; [] when all is."""
    return sorted(
        f"{kind}: {name}"
        for kind in calm
        for name in calm[kind].keys() | found[kind].keys()
        if calm[kind].get(name) != found[kind].get(name)
    )


def since(step: int, content: Content) -> Content:
    """The content without what was logged at earlier steps."""
    series = {name: [point for point in points if point[0] is None or point[0] >= step]
              for name, points in content["series"].items()}  # fmt: skip
    return {**content, "series": {name: points for name, points in series.items() if points}, "rows": {}}


class MLflowHttp:
    """A real MLflow server behind a gateway that fails on demand."""

    def __init__(self, folder: Path, artifacts: Path | None = None) -> None:
        port, self.port = free_port(), free_port()
        self.server: Process = mlflow_server(folder / "server", port, artifacts)
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


def mlflow_store(name: str, uri: str, artifacts: str | None = None) -> Store:
    with warnings.catch_warnings():  # MLflow's own imports warn of what its dependencies deprecate
        warnings.simplefilter("ignore")
        import mlflow
        import mlflow.store.tracking.sqlalchemy_store

    def experiment() -> dict[str, Any]:
        made = mlflow.MlflowClient(uri).create_experiment(f"faults-{uuid.uuid4().hex}", artifacts)
        return {"experiment": made}

    arguments = {"sdk": "mlflow", "tracking_uri": uri}
    variables = {"MLFLOW_TRACKING_URI": uri, "MLFLOW_ALLOW_FILE_STORE": "true"}
    return Store(name, arguments, lambda run: mlflow_content(uri, run), variables, experiment)


def sqlite_store(folder: Path, artifacts: Path | None = None) -> Store:
    folder.mkdir(parents=True, exist_ok=True)
    place = None if artifacts is None else artifacts.as_uri()
    return mlflow_store("MLflow, sqlite", f"sqlite:///{folder / 'mlflow.db'}", place)


def mlflow_content(uri: str, run_id: str) -> Content:
    """All that a run shows: metrics, tags, description, data sets, artifacts, and the view of its experiment.

    Metrics are every value by step, and how many rows hold them.
    """
    import mlflow
    from mlflow.artifacts import download_artifacts

    client = mlflow.MlflowClient(uri)
    run = client.get_run(run_id)
    rows = {key: client.get_metric_history(run_id, key) for key in run.data.metrics}
    with no_progress_bar():
        folder = Path(download_artifacts(run_id=run_id, tracking_uri=uri))
    return {
        "series": {
            key: sorted({(metric.step, metric.value) for metric in found}) for key, found in rows.items()
        },
        "rows": {key: len(found) for key, found in rows.items()},
        "last": dict(run.data.metrics),
        "tags": {
            name: value.replace(run_id, "RUN")
            for name, value in run.data.tags.items()
            if name in SHOWN or name.startswith("uq.")
        },
        "data": {
            item.dataset.name: (
                item.dataset.digest,
                item.dataset.source,
                item.dataset.profile,
                [vars(tag) for tag in item.tags],
            )
            for item in run.inputs.dataset_inputs
        },
        "view": {
            name: value
            for name, value in client.get_experiment(run.info.experiment_id).tags.items()
            if "sharedViewState" in name
        },
        "run": {
            "status": run.info.status,
            "name": bool(run.info.run_name),
            "stage": run.info.lifecycle_stage,
        },
        "files": files_in(folder),
    }


def substitute_of(uri: str, run_id: str) -> str:
    """The run in the experiment of an MLflow run that stands for it."""
    import mlflow

    client = mlflow.MlflowClient(uri)
    (found,) = [
        run.info.run_id
        for run in client.search_runs([client.get_run(run_id).info.experiment_id])
        if run.data.tags.get("uq.origin", "").endswith(run_id)
    ]
    return str(found)


def directory_store(folder: Path) -> Store:
    """A run in a folder."""
    from uq_tracking.tracking.folder import FolderStore

    runs = FolderStore(folder)

    def content(uri: str) -> Content:
        run_id = uri.rpartition("/")[2]
        (run,) = [run for run in runs.runs() if run.run_id == run_id]
        return {
            "series": by_name(runs.series(run)),
            "rows": {"log": sum(map(is_line, (folder / run_id / "log.jsonl").read_text().splitlines()))},
            "tags": dict(run.tags),
            "files": {name: (folder / run_id / name).read_bytes() for name in runs.files(run_id)},
        }

    return Store("folder", {}, content, new=lambda: {"run": FolderStore(folder).create("job").uri})


def is_line(text: str) -> bool:
    """Whether a line of a journal is whole: a full disk may have cut one, which was written again."""
    from uq_tracking.tracking.journal import parsed

    return parsed(text) is not None


def by_name(series: dict[tuple[int | None, str], float]) -> dict[str, list[tuple[int | None, float]]]:
    found: dict[str, list[tuple[int | None, float]]] = {}
    for (step, name), value in series.items():
        found.setdefault(name, []).append((step, value))
    return {name: sorted(points, key=str) for name, points in found.items()}


def files_in(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def tensorboard_store(folder: Path) -> Store:
    """Runs of tensorboardX's writer; what event files show and what is kept beside them."""
    from uq_tracking_tensorboard.backend import TensorBoardStore

    def content(logdir: str) -> Content:
        path = Path(logdir)
        store = TensorBoardStore(path.parent)
        run = store._stored(path, 0.0)
        return {
            "series": by_name(store.series(run)),
            "shown": dict(run.scalars),
            "tags": dict(run.tags),
            "files": {name: (path / "uq" / name).read_bytes() for name in store.files(path.name)},
        }

    return Store(
        "TensorBoard",
        {"sdk": "tensorboard"},
        content,
        new=lambda: {"logdir": str(folder / f"run{uuid.uuid4().hex[:8]}")},
    )


def wandb_variables(folder: Path) -> dict[str, str]:
    variables = {"WANDB_API_KEY": "x" * 40, "WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}
    variables |= {"WANDB_X_DISABLE_STATS": "true"}
    for name in ("DIR", "DATA_DIR", "CACHE_DIR", "CONFIG_DIR", "ARTIFACT_DIR"):
        (folder / name.lower()).mkdir(parents=True, exist_ok=True)
        variables[f"WANDB_{name}"] = str(folder / name.lower())
    for service in ("GRAPHQL", "FILE_STREAM", "FILE_TRANSFER"):  # by default up to a minute between attempts
        variables[f"WANDB_X_{service}_RETRY_WAIT_MIN_SECONDS"] = "0.1"
        variables[f"WANDB_X_{service}_RETRY_WAIT_MAX_SECONDS"] = "0.5"
    return variables


def wandb_store(server: Any, folder: Path) -> Store:
    """Runs on a W&B server of our own (tests/wandb_server), through the real SDK and its core."""
    variables = {**wandb_variables(folder), "WANDB_BASE_URL": server.url, "WANDB_MODE": "online"}
    content = partial(wandb_content, server)
    return Store("W&B, online", {"sdk": "wandb"}, content, variables, new_id, WANDB_DEADLINE)


def new_id() -> dict[str, Any]:
    return {"id": uuid.uuid4().hex[:8]}


def wandb_content(server: Any, run_id: str) -> Content:
    """Every score by step, the summary, our tags, the notes, and the files of the artifact's last version.

    Of charts and images the summary holds the digests of their files.
    """
    run = server.run("faults", run_id)
    series: dict[str, list[tuple[int, float]]] = {}
    for row in run.rows():
        for key, value in row.items():
            if key.startswith("uq") and isinstance(value, int | float) and "uq/step" in row:
                series.setdefault(key, []).append((row["uq/step"], value))
    versions = server.state.versions(server.entity, "faults", f"uq-{run_id}")
    files = {name: server.state.blobs[key] for name, key in versions[-1].files.items()} if versions else {}
    summary = {
        key: value.get("sha256") if isinstance(value, dict) else value
        for key, value in run.summary.items()
        if key[0] != "_"
    }
    return {
        "series": {key: sorted(set(points)) for key, points in series.items()},
        "last": summary,
        "tags": run.config_value("uq") or {},
        "notes": {"notes": run.details.get("notes")},
        "files": files,
    }


def wandb_offline_store(folder: Path) -> Store:
    """Offline runs of the real SDK and its core, read from their files in a process of their own."""
    variables = {**wandb_variables(folder), "WANDB_MODE": "offline"}
    reader = """
import base64, json, sys, tempfile
from pathlib import Path
from uq_tracking_wandb.offline import OfflineStore
folder, run_id = Path(sys.argv[1]), sys.argv[2]
store = OfflineStore(folder)
content = store._read(run_id, history=True)
run = store._stored(run_id, content)
series = {}
for row in content.history:
    for key, value in row.items():
        if key.startswith("uq") and isinstance(value, int | float) and "uq/step" in row:
            series.setdefault(key, set()).add((row["uq/step"], value))
files = {}
with tempfile.TemporaryDirectory() as place:
    for name in store.files(run_id):
        if not name.startswith("media"):
            files[name] = base64.b64encode(store.fetch(run_id, name, Path(place)).read_bytes()).decode()
print(json.dumps({"series": {k: sorted(map(list, v)) for k, v in series.items()}, "last": dict(run.scalars),
                  "tags": dict(run.tags), "notes": {"notes": content.options.get("notes")}, "files": files}))
"""

    def content(run_id: str) -> Content:
        found = subprocess.run(
            [sys.executable, "-c", reader, str(folder / "dir" / "wandb"), run_id],
            env=environment(**variables),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if found.returncode:
            raise RuntimeError(found.stderr[-2000:])
        content: Content = json.loads(found.stdout.splitlines()[-1])
        return content

    return Store("W&B, offline", {"sdk": "wandb"}, content, variables, new_id, WANDB_DEADLINE)
