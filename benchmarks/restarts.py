"""The demo on an MLflow server that is killed and started again in its middle. Writes a part of docs/evidence.md.

The server dies while the second method predicts, and is started when that method's ``uq.log`` has returned.
``uq.sync`` sends what was kept; then the demo's table must be that of an undisturbed demo.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console

import uq_tracking as uq
from benchmarks.pages import replace_part
from tests.faults.processes import free_port, mlflow_server
from uq_tracking.demo.methods import FAST, choose
from uq_tracking.demo.run import MLflow, run_method
from uq_tracking.demo.terrain import load_terrain
from uq_tracking.tracking.spool import entries

DEADLINE = 5.0


class OnServer(MLflow):
    """The demo's MLflow tracker, on a server that may fail: logged to as training does."""

    log_options = MappingProxyType({"deadline": DEADLINE})

    def __init__(self, folder: Path, uri: str, experiment: str) -> None:
        super().__init__(folder)
        self.uri, self.name, self.address = uri, experiment, f"mlflow:{experiment}"

    def _experiment(self) -> str:
        import mlflow

        return str(mlflow.create_experiment(self.name))


def main() -> None:
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = (
        "7"  # MLflow's own calls, which end the run, wait for the server
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        os.chdir(place)
        os.environ["XDG_STATE_HOME"] = place  # only what this demo keeps is sent
        port, terrain = free_port(), load_terrain(0, fast=True)
        server = mlflow_server(Path(place) / "server", port)
        server.start()
        found: dict[str, tuple[str, list[float], int]] = {}
        try:
            for name in ("undisturbed", "restarted"):
                tracker = OnServer(Path(place), f"http://127.0.0.1:{port}", name)
                found[name] = demo(tracker, terrain, server if name == "restarted" else None)
        finally:
            server.kill()
    (calm, usual, _), (table, seconds, kept) = found["undisturbed"], found["restarted"]
    if table != calm:
        raise SystemExit(f"the tables differ:\n{calm}\n{table}")
    told = (
        f"The demo (`--fast`, {len(seconds)} methods, `deadline={DEADLINE:g}`) runs against an MLflow server that\n"
        "is killed while the second method predicts and restarted once its `uq.log` has returned. That call took\n"
        f"{seconds[1]:.1f} s (undisturbed: {usual[1]:.1f} s), later calls at most {max(seconds[2:]):.1f} s "
        f"(undisturbed: {max(usual[2:]):.1f} s). {kept} calls\n"
        "were spooled, and after `uq-tracking sync` the demo's table is identical, digit for digit."
    )
    print(told)
    replace_part("evidence.md", "restart", told)


def demo(tracker: OnServer, terrain: Any, server: Any) -> tuple[str, list[float], int]:
    """The table of the demo, the seconds that each method's log call took, and how many calls were kept."""
    seconds: list[float] = []
    log, kept = uq.log, 0

    def timed(*arrays: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return log(*arrays, **options)
        finally:
            seconds.append(time.perf_counter() - start)

    uq.log = timed  # type: ignore[assignment]
    try:
        with tracker.session():
            for number, name in enumerate(choose(None)):
                is_hit = server is not None and number == 1
                with restarted(tracker, server if is_hit else None):
                    run_method(name, terrain, FAST, 0, tracker, Console())
                kept = max(kept, len(list(entries())))
            summary = uq.sync()
            summary.raise_failures()
            return uq.compare(tracker.address).to_markdown("all"), seconds, kept
    finally:
        uq.log = log


@contextmanager
def restarted(tracker: OnServer, server: Any) -> Iterator[None]:
    """Kill the server in the next run, when that has been made; start it when its last call has returned."""
    if server is None:
        yield
        return
    run = tracker.run

    @contextmanager
    def disturbed(name: str) -> Iterator[None]:
        with run(name):
            server.kill()
            yield
            server.start()

    tracker.run = disturbed  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        del tracker.run


if __name__ == "__main__":
    main()
