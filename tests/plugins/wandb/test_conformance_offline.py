"""The conformance suite over offline runs, as their reader finds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.plugins.wandb.writer import write_run
from uq_tracking.testing import Capabilities, RunContract, StoreContract
from uq_tracking.tracking.backend import Run
from uq_tracking_wandb.fragment import Fragment, read_fragment
from uq_tracking_wandb.offline import OfflineStore


class Offline:
    capabilities = Capabilities(writers=1)

    @pytest.fixture
    def store(self, wandb_offline: Path) -> OfflineStore:
        wandb_offline.mkdir()
        return OfflineStore(wandb_offline)

    @pytest.fixture(autouse=True)
    def _home(self, wandb_offline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = wandb_offline, monkeypatch

    def content(self, run_id: str) -> Fragment:
        paths = sorted(
            self.folder.glob(f"offline-run-*/run-{run_id}.wandb"), key=lambda path: path.stat().st_mtime
        )
        return read_fragment(*paths)

    def series(self, store: OfflineStore, run_id: str, name: str) -> list[tuple[int, float]]:
        rows = [row for row in self.content(run_id).history if name in row]
        return sorted((row["uq/step"], row[name]) for row in rows)

    def curve_points(self, store: OfflineStore, run_id: str, name: str) -> list[tuple[float, float]]:
        table = json.loads(store.fetch(run_id, f"{name}.table.json", self.folder / "fetched").read_text())
        return [(row[0], row[1]) for row in table["data"]]

    @contextmanager
    def outage(self, store: OfflineStore, run: Run) -> Iterator[Run]:
        """A data directory that cannot be written to."""
        blocker = self.folder / "no-folder"
        blocker.write_text("a file where wandb wants a folder")
        with self.patch.context() as patch:
            patch.setenv("WANDB_DATA_DIR", str(blocker))
            yield run

    def fill(self, store: OfflineStore, count: int) -> None:
        for number in range(count):
            write_run(self.folder, f"r{number:04}", f"run {number}", started=1_700_000_000 + number)


class TestOfflineRun(Offline, RunContract):
    pass


class TestOfflineStore(Offline, StoreContract):
    pass
