"""The conformance suite over a W&B server, with the real client and its Go core."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import wandb

from tests.wandb_server import WandbServer
from tests.wandb_server.state import StoredRun
from uq_tracking.testing import Capabilities, RunContract, StoreContract
from uq_tracking.tracking.backend import Run
from uq_tracking_wandb.names import OnlineAddress
from uq_tracking_wandb.online import OnlineStore

pytestmark = pytest.mark.slow

ENTITY, PROJECT = "tester", "p"


class Online:
    capabilities = Capabilities(
        writers=1, where=lambda tag, value: json.dumps({f"config.{tag}": value}), patience=8.0
    )

    @pytest.fixture
    def store(self, wandb_online: WandbServer) -> OnlineStore:
        self.server = wandb_online
        return OnlineStore(OnlineAddress(ENTITY, PROJECT))

    def series(self, store: OnlineStore, run_id: str, name: str) -> list[tuple[int, float]]:
        run = wandb.Api().run(f"{ENTITY}/{PROJECT}/{run_id}")
        return sorted((row["uq/step"], row[name]) for row in run.scan_history(keys=["uq/step", name]))

    def curve_points(self, store: OnlineStore, run_id: str, name: str) -> list[tuple[float, float]]:
        run = wandb.Api().run(f"{ENTITY}/{PROJECT}/{run_id}")
        path = run.summary_metrics[f"{name}_table"]["path"]
        table = json.loads(self.server.state.blobs[f"run/{ENTITY}/{PROJECT}/{run_id}/{path}"])
        return [(row[0], row[1]) for row in table["data"]]

    @contextmanager
    def outage(self, store: OnlineStore, run: Run) -> Iterator[Run]:
        """A server that answers every request with 503."""
        self.server.fault = lambda request: 503
        yield run
        self.server.fault = None

    def fill(self, store: OnlineStore, count: int) -> None:
        for number in range(count):
            run = StoredRun(ENTITY, PROJECT, f"r{number:04}", display_name=f"run {number}", state="finished")
            self.server.state.runs[(ENTITY, PROJECT, run.name)] = run


class TestOnlineRun(Online, RunContract):
    pass


class TestOnlineStore(Online, StoreContract):
    pass
