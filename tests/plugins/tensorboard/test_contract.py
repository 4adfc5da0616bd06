"""TensorBoard passes the suite that every backend has to pass, by its own event files and by torch's writer."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from uq_tracking.testing import Capabilities, RunContract, StoreContract
from uq_tracking_tensorboard.backend import TensorBoardRun, TensorBoardStore
from uq_tracking_tensorboard.events import read_points


class TensorBoard:
    capabilities = Capabilities(where=None, listing=100)

    @pytest.fixture
    def store(self, tmp_path):
        return TensorBoardStore(tmp_path / "runs")

    def series(self, store, run_id, name):
        return read_points(store.path / run_id).get(name, [])

    curve_points = series

    @contextmanager
    def outage(self, store, run):
        """The run's folder is gone."""
        elsewhere = run.folder.with_name("moved-away")
        shutil.move(run.folder, elsewhere)
        yield TensorBoardRun(run.folder)
        shutil.move(elsewhere, run.folder)

    refusal = outage


class Adopted(TensorBoard):
    """Runs that are written to through a writer which is open on them."""

    @contextmanager
    def writing(self, store, run_id=None, name="sample"):
        from torch.utils.tensorboard import SummaryWriter

        run_id = store.create(name).folder.name if run_id is None else run_id
        with SummaryWriter(str(Path(store.path, run_id))) as writer:
            yield TensorBoardRun(Path(writer.log_dir), writer)


class TestRun(TensorBoard, RunContract):
    pass


class TestStore(TensorBoard, StoreContract):
    pass


class TestAdoptedRun(Adopted, RunContract):
    pass
