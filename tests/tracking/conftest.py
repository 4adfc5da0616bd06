"""Fixtures of the tracking tests."""

from __future__ import annotations

import pytest

from tests.tracking.helpers import FolderTracker, plugin
from uq_tracking.tracking.folder import FolderStore


@pytest.fixture
def trackers(tmp_path):
    """Two trackers called ``one`` and ``two``, each with an active run."""
    stores = {name: FolderStore(tmp_path / name) for name in ("one", "two")}
    backends = [FolderTracker(name, store.create("active")) for name, store in stores.items()]
    with plugin("test-trackers", uq_backends=backends):
        yield {backend.name: backend for backend in backends}


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """The test runs in a folder of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    return folder
