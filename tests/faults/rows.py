"""Every row of the fault matrix: a tracker, and what happens to it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.matrix import Change, Fault, fill, free, moved, small_disk
from tests.faults.stores import (
    MLflowHttp,
    Store,
    directory_store,
    mlflow_store,
    since,
    sqlite_store,
    substitute_of,
    tensorboard_store,
    wandb_offline_store,
    wandb_store,
)
from tests.wandb_server.server import WandbServer

Rows = Iterator[tuple[Store, Fault]]
ANSWERS = (
    ("500, but the health check says 200", "500"),
    ("503, but the health check says 200", "503"),
    ("429, too many requests", "429"),
    ("401, token expired", "401"),
    ("403", "403"),
    ("404 from a proxy", "404"),
    ("garbage instead of JSON", "garbage"),
    ("garbage to one request", "once garbage"),
    ("truncated responses", "half"),
    ("never responds", "hang"),
    ("each request takes 0.3 s", "slow 0.3"),
    ("429, try again in a day", "later"),
    ("one byte of the response per second", "drip"),
    ("endless responses", "endless"),
    ("compressed responses that unpack to 3 GB", "bomb"),
    ("429 to what is logged, a quota", "status 429 log-batch"),
    ("200 and {} to everything", "empty"),
    ("200 and {} to what is logged, nothing kept", "empty log-batch"),
    ("keeps all but one score of each request", "lose crps"),
    ("3 MB of cookies with each response", "cookies"),
    ("redirects to another server", "redirect http://localhost:9"),
)


def on_mlflow_server(folder: Path) -> Rows:
    with MLflowHttp(folder) as http:
        store, well = http.store(), http.mode("pass")
        for name, mode in ANSWERS:
            yield store, Fault(name, http.mode(mode), well)
        yield (
            store,
            Fault(
                "503 until the job ends, then two `sync` at once",
                http.mode("503"),
                well,
                "exit",
                syncs=2,
            ),
        )
        beside = store.new()["experiment"]
        yield (
            store,
            Fault(
                "403 to one run; strict calls to another are taken",
                lambda: http.mode(f"forbid {newest_run(store, beside)}")(),
                well,
                job={"beside": beside},
            ),
        )
        refused = http.mode("status 503 mlflow-artifacts")
        yield store, Fault("storage returns 503, the API works", refused, well, "exit")
        yield store, Fault("suspended (SIGSTOP), then resumed", http.stop, http.go_on)
        yield store, Fault("suspended until the job ends", http.stop, http.go_on, "exit")
        yield store, Fault("killed (SIGKILL), then restarted", http.server.kill, http.server.start)
        yield store, Fault("killed, restarted after the job", http.server.kill, http.server.start, "exit")
        yield store, deleted_run(store, folder)
        interrupt, end = signal.SIGINT, signal.SIGTERM
        yield (
            store,
            Fault("KeyboardInterrupt during a waiting call", http.stop, http.go_on, interruption=interrupt),
        )
        yield store, Fault("SIGTERM during a waiting call, turned into SystemExit by the job", http.stop, http.go_on,
                           interruption=end, job={"terminates": True})  # fmt: skip
        for kind in ("threads", "fork"):
            workers = {"workers": (kind, 8)}
            yield (
                store,
                Fault(f"503, and 8 workers ({kind}) log too", http.mode("503"), well, "exit", workers),
            )
        yield (
            store,
            Fault("503, and the clock is set back a day", http.mode("503"), well, job={"clock": -86400.0}),
        )


def deleted_run(store: Store, folder: Path) -> Fault:
    """Somebody deletes the run on the server while the job runs."""
    import mlflow

    uri = store.arguments["tracking_uri"]

    def delete() -> None:
        mlflow.MlflowClient(uri).delete_run(newest_run(store))

    return Fault(
        "the run is deleted",
        delete,
        until="exit",
        instead=lambda run: substitute_of(uri, run),
        compare=lambda content: since(2, {**content, "run": {}, "tags": without_origin(content["tags"])}),
        loses="equal from the deletion on, in a new run that names it",
    )


def newest_run(store: Store, *others: str) -> str:
    """Return the id of the run that was made last, in none of these other experiments."""
    import mlflow

    client = mlflow.MlflowClient(store.arguments["tracking_uri"])
    experiments = {experiment.experiment_id for experiment in client.search_experiments()}.difference(others)
    order = ["attributes.start_time DESC"]
    found: str = client.search_runs(sorted(experiments), order_by=order, max_results=1)[0].info.run_id
    return found


def without_origin(tags: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if name != "uq.origin"}


def on_mlflow_server_with_full_disk(folder: Path) -> Rows:
    with small_disk(folder / "disk", "8m") as disk, MLflowHttp(folder, disk / "artifacts") as http:
        store = http.store()
        store.name += ", artifacts on a disk"
        yield (
            store,
            Fault(
                "disk full until the job ends",
                lambda: fill(disk),
                lambda: free(disk),
                "exit",
            ),
        )


def on_sqlite(folder: Path) -> Rows:
    store = sqlite_store(folder)
    yield store, Fault("database locked by another process", *locked(folder / "mlflow.db"))
    yield store, Fault("locked until the job ends", *locked(folder / "mlflow.db"), until="exit")
    with small_disk(folder / "disk", "8m") as disk:
        full = sqlite_store(folder / "full", disk / "artifacts")
        full.name += ", artifacts on a disk"
        yield full, Fault("disk full until the job ends", lambda: fill(disk), lambda: free(disk), "exit")


def locked(path: Path) -> tuple[Change, Change]:
    """Another process that holds the database, as a backup does."""
    import sqlite3

    holders: list[sqlite3.Connection] = []

    def start() -> None:
        holders.append(sqlite3.connect(path, timeout=30, isolation_level=None))
        holders[-1].execute("BEGIN EXCLUSIVE")

    def end() -> None:
        holders[-1].execute("ROLLBACK")
        holders[-1].close()

    return start, end


def on_mlflow_files(folder: Path) -> Rows:
    folder.mkdir(parents=True)
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    store = mlflow_store("MLflow, files", (folder / "mlruns").as_uri())
    yield store, Fault("file system unavailable for a while", *moved(folder / "mlruns"))
    yield store, Fault("unavailable until the job ends", *moved(folder / "mlruns"), until="exit")
    with small_disk(folder / "disk", "64m") as disk:
        full = mlflow_store("MLflow, files", (disk / "mlruns").as_uri())
        full.calm, full.calm_memory = store.calm, store.calm_memory
        yield full, Fault("disk full for a while", lambda: fill(disk), lambda: free(disk))
        yield full, Fault("disk full until the job ends", lambda: fill(disk), lambda: free(disk), "exit")


def on_tensorboard(folder: Path) -> Rows:
    runs = folder / "runs"
    runs.mkdir(parents=True)
    store = tensorboard_store(runs)
    yield store, Fault("file system unavailable for a while", *moved(runs))
    yield store, Fault("unavailable until the job ends", *moved(runs), until="exit")
    with small_disk(folder / "disk", "8m") as disk:
        full = tensorboard_store(disk)
        full.calm, full.calm_memory = store.calm, store.calm_memory
        yield full, Fault("disk full until the job ends", lambda: fill(disk), lambda: free(disk), "exit")


def on_folders(folder: Path) -> Rows:
    runs = folder / "runs"
    runs.mkdir(parents=True)
    store = directory_store(runs)
    yield store, Fault("file system unavailable for a while", *moved(runs))
    yield store, Fault("unavailable until the job ends", *moved(runs), until="exit")
    gone = folder / "gone"
    gone.mkdir()
    start, end = moved(runs)
    yield (
        store,
        Fault(
            "working directory deleted, file system unavailable, no temporary directory",
            lambda: (start(), gone.rmdir()),
            end,
            "exit",
            {"cwd": str(gone)},
            temporary=folder / "missing",
        ),
    )
    for kind in ("spawn", "fork"):
        workers = {"workers": (kind, 8)}
        yield store, Fault(f"8 processes ({kind}) log to one run", job=workers)
        yield (
            store,
            Fault(
                f"8 processes ({kind}) log to one run, which is unavailable",
                *moved(runs),
                until="exit",
                job=workers,
            ),
        )
    yield store, Fault("unavailable, and the clock is set back a day", *moved(runs), job={"clock": -86400.0})
    with small_disk(folder / "disk") as disk:
        full = directory_store(disk / "runs")
        full.calm, full.calm_memory = store.calm, store.calm_memory
        yield full, Fault("disk full until the job ends", lambda: fill(disk), lambda: free(disk), "exit")
        fill(disk)
        yield store, Fault("temporary directory full", temporary=disk)


def on_wandb(folder: Path) -> Rows:
    with WandbServer() as server:
        store = wandb_store(server, folder)

        def faulty(path: str) -> tuple[Change, Change]:
            def start() -> None:
                server.fault = lambda request: 503 if path in request.path else None

            def end() -> None:
                server.fault = None

            return start, end

        def silent() -> tuple[Change, Change]:
            answers = threading.Event()

            def start() -> None:
                answers.clear()
                server.fault = lambda request: 503 if not answers.wait(120) else None

            def end() -> None:
                server.fault = None
                answers.set()

            return start, end

        runs = folder / "dir" / "wandb"
        short: dict[str, Any] = {"finish_timeout": 5}
        yield store, Fault("503 to everything", *faulty(""))
        yield store, Fault("storage returns 503, the API works", *faulty("/storage"))
        yield store, Fault("killed, then restarted", server.go_down, server.come_back)
        yield store, Fault("never responds", *silent())
        yield store, Fault("503 to everything until the job ends, then `wandb sync`", *faulty(""), until="exit",
                           job=short, wandb_sync=runs)  # fmt: skip
        yield store, Fault("storage returns 503 until the job ends, then `wandb sync`", *faulty("/storage"),
                           until="exit", job=short, wandb_sync=runs)  # fmt: skip


def on_wandb_offline(folder: Path) -> Rows:
    store = wandb_offline_store(folder)
    data = folder / "data_dir"
    yield store, Fault("its data directory is unavailable until the job ends", *moved(data), until="end")
    with small_disk(folder / "disk", "64m") as disk:
        full = wandb_offline_store(disk)
        full.calm, full.calm_memory = store.calm, store.calm_memory
        yield full, Fault("disk full", lambda: fill(disk), lambda: free(disk))


GROUPS: dict[str, Callable[[Path], Rows]] = {
    "mlflow-server": on_mlflow_server,
    "mlflow-disk": on_mlflow_server_with_full_disk,
    "mlflow-sqlite": on_sqlite,
    "mlflow-files": on_mlflow_files,
    "tensorboard": on_tensorboard,
    "folders": on_folders,
    "wandb": on_wandb,
    "wandb-offline": on_wandb_offline,
}
"""What makes the rows of a tracker; the next row is asked for when one has been run."""
