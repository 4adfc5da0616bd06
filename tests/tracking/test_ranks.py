"""Which processes of a distributed job log: rank zero, and those that have a run of their own."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pytest

import uq_tracking as uq
from tests.tracking.helpers import FolderTracker, plugin
from uq_tracking.errors import InputError, NoRunHereError, TrackingWarning
from uq_tracking.tracking import resolve
from uq_tracking.tracking.folder import FolderStore

DATA = ([1.0, 2.0, 3.0], [1.1, 1.9, 3.3], [0.1, 0.2, 0.3])
LABELS = ([0, 1, 1], [0.2, 0.9, 0.4])
NAMES = [name for variables, size in resolve._LAUNCHERS for name in (*variables, size)]

PROGRAM = """
import json, logging, os, sys
from functools import partial
import numpy as np
import torch.distributed as dist
import uq_tracking as uq

folder = sys.argv[1]
other = os.fork()  # of two that share their imports
rank = int(other == 0)
os.chdir(folder)
os.environ.update(RANK=str(1 - rank), WORLD_SIZE="2")  # the process group knows better
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
heard = []
logger = logging.getLogger("uq_tracking")
logger.setLevel(logging.INFO)
logger.addFilter(lambda record: heard.append([record.levelname, record.getMessage()]))

data = np.random.default_rng(7).normal(size=(2, 1000))
target, mean, std = data[0][rank::2], data[1][rank::2], np.full(500, 1.5)
accumulator = uq.Accumulator()
accumulator.update(target, mean, std)
accumulator.all_reduce()
log = partial(uq.log, figures=False)
union = log(accumulator, method="union")
share = log(target, mean, std, method="share")
labels = log([0, 1, 1], probs=[0.2, 0.9, 0.4], method="classes")
log(target, mean, std, method="all", every_rank=True)
log(target, mean, std, method="given", run=f"dir:{folder}/given")
result = {"union": union.to_json(), "n": share.counts["n"], "accuracy": labels.scores["accuracy"], "heard": heard}
with open(f"{folder}/{rank}.json", "w") as file:
    json.dump(result, file)
dist.barrier()
dist.destroy_process_group()
if other:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""


@pytest.fixture
def second_of_two(in_folder, monkeypatch):
    """This process is the second of two that torchrun has started."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    resolve.log_once.cache_clear()
    return in_folder


def methods(folder) -> list[str]:
    return sorted(run.tags["uq.method"] for run in FolderStore(folder).runs())


@pytest.mark.faults
def test_two_processes_log_once(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]

    assert found[0]["union"] == found[1]["union"]
    assert uq.Report.from_json(found[0]["union"]).counts["n"] == 1000
    assert [result["n"] for result in found] == [500, 500]
    assert [result["accuracy"] for result in found] == [2 / 3, 2 / 3]
    assert methods(tmp_path / "uq_runs") == ["all", "all", "classes", "share", "union"]
    assert methods(tmp_path / "given") == ["given", "given"]
    (notice,) = [text for level, text in found[1]["heard"] if level == "INFO"]
    assert "every_rank=True" in notice
    assert not [text for level, text in found[0]["heard"] if level == "INFO"]


@pytest.mark.parametrize(
    ("environment", "is_zero"),
    [
        ({}, True),
        ({"RANK": "1", "WORLD_SIZE": "2"}, False),
        ({"RANK": "0", "WORLD_SIZE": "2"}, True),
        ({"RANK": "1"}, True),  # of nobody knows what
        ({"RANK": "first", "WORLD_SIZE": "2"}, True),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "4"}, False),
        ({"LOCAL_RANK": "0", "NODE_RANK": "1", "WORLD_SIZE": "4"}, False),
        ({"LOCAL_RANK": "0", "NODE_RANK": "0", "WORLD_SIZE": "4"}, True),
        ({"RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}, False),
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, False),
        ({"PMI_RANK": "3", "PMI_SIZE": "4"}, False),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, False),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, True),
        (
            {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "RANK": "0", "WORLD_SIZE": "1"},
            True,
        ),  # torchrun on each
    ],
)
def test_the_launchers_environment_tells_the_rank(monkeypatch, environment, is_zero):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert resolve.is_rank_zero() is is_zero


def test_another_rank_scores_and_makes_no_folder(second_of_two, caplog):
    with caplog.at_level(logging.INFO, "uq_tracking"):
        reports = [uq.log(*DATA, method="m"), uq.log(*DATA, step=3), uq.log(*DATA, to="dir")]
        uq.log(LABELS[0], probs=LABELS[1])
        both = uq.log([[1.0, 2.0]] * 3, [[1.1, 2.1]] * 3, [[0.1, 0.2]] * 3, outputs=["a", "b"])
    assert [report.scores == uq.evaluate(*DATA).scores for report in reports] == [True] * 3
    assert sorted(both) == ["a", "b"]
    assert not list(second_of_two.iterdir())
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_what_cannot_be_scored_raises_on_every_rank(second_of_two):
    with pytest.raises(InputError, match="shape"):
        uq.log([1.0, 2.0], [1.0], [1.0])


def test_another_rank_logs_into_runs_of_its_own_only(second_of_two, tmp_path):
    class Shared(FolderTracker):
        def own_run(self):
            return None

    stores = {name: FolderStore(tmp_path / name) for name in ("own", "shared")}
    backends = [
        kind(kind.__name__, store.create("active"))
        for kind, store in zip((FolderTracker, Shared), stores.values(), strict=True)
    ]
    with plugin("test-ranks", uq_backends=backends):
        uq.log(*DATA, strict=True)
        scalars = {name: next(store.runs()).scalars for name, store in stores.items()}
        assert "uq/rmse" in scalars["own"]
        assert not scalars["shared"]
        uq.log(*DATA, strict=True, every_rank=True)
        assert "uq/rmse" in next(stores["shared"].runs()).scalars
    assert not list(second_of_two.iterdir())


@pytest.mark.parametrize("rank", [0, 1])
def test_a_logger_that_has_no_run_here_is_left_to_rank_zero(second_of_two, monkeypatch, rank):
    class Logger(FolderTracker):
        def adopt(self, run):
            raise NoRunHereError("its run is elsewhere")

    monkeypatch.setenv("RANK", str(rank))
    with plugin("test-logger", uq_backends=[Logger("logger")]):
        if rank:
            uq.log(*DATA, run=[object()], to="logger", strict=True)
            assert not list(second_of_two.iterdir())
        else:
            with pytest.warns(TrackingWarning, match="its run is elsewhere"):
                uq.log(*DATA, run=[object()], to="logger")


@pytest.mark.slow
def test_torch_is_not_loaded_to_find_out():
    code = (
        "import sys, uq_tracking as uq; uq.log([1.0, 2.0], [1.1, 2.3], [0.1, 0.2], figures=False);"
        "assert 'torch' not in sys.modules"
    )
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "2"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=environment)
