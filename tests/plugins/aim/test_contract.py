"""Aim passes the suite that every backend has to pass, in repositories of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from uq_tracking.testing import Capabilities, RunContract, StoreContract
from uq_tracking_aim.backend import AimRun, AimStore

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("default")]


def reindex(root):
    """What a user types before Aim's readers see a run."""
    command = "from aim.cli.cli import cli_entry_point; cli_entry_point()"
    arguments = ["storage", "--repo", str(root), "reindex", "--yes"]
    subprocess.run([sys.executable, "-c", command, *arguments], check=True, capture_output=True)


class Aim:
    capabilities = Capabilities(where=None, listing=20)

    @pytest.fixture
    def store(self, tmp_path):
        return AimStore(tmp_path / "repository")

    def series(self, store, run_id, name):
        """What Aim reads once its index is built."""
        from aim import Repo

        reindex(store.root)
        (metric,) = [each for each in Repo(str(store.root)).get_run(run_id).metrics() if each.name == name]
        table = metric.dataframe()
        return list(zip(table["step"], table["value"], strict=True))

    curve_points = series

    @contextmanager
    def outage(self, store, run):
        """The repository is gone."""
        elsewhere = store.root.with_name("moved-away")
        run.close()
        shutil.move(store.root, elsewhere)
        yield AimRun(store.root, run.hash)
        shutil.rmtree(store.root, ignore_errors=True)
        shutil.move(elsewhere, store.root)

    @contextmanager
    def refusal(self, store, run):
        """The run was deleted."""
        run.close()
        shutil.rmtree(store.chunks / run.hash)
        yield run


class TestRun(Aim, RunContract):
    pass


class TestStore(Aim, StoreContract):
    pass
