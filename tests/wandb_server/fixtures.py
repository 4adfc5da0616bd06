"""Fixtures for tests that use ``wandb``: every directory under ``tmp_path``, nothing left running.

A ``conftest.py`` imports those it needs::

    from tests.wandb_server.fixtures import wandb_home, wandb_offline, wandb_online
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .server import WandbServer

__all__ = ["child_processes", "wandb_home", "wandb_offline", "wandb_online", "wandb_stopped"]

_FOLDERS = ("WANDB_DIR", "WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_ARTIFACT_DIR")


@pytest.fixture
def wandb_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that holds everything ``wandb`` writes; its service is stopped at the end."""
    if "wandb" in sys.modules:
        _stop_wandb()  # the client keeps the settings of whoever used it first in this process
    home = tmp_path / "wandb-home"
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    for name in _FOLDERS:
        folder = home / name.removeprefix("WANDB_").lower()
        folder.mkdir(parents=True)
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("NETRC", str(home / "netrc"))
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_CONSOLE", "off")
    monkeypatch.setenv("WANDB_X_DISABLE_STATS", "true")
    for service in ("GRAPHQL", "FILE_STREAM", "FILE_TRANSFER"):  # by default up to a minute between attempts
        monkeypatch.setenv(f"WANDB_X_{service}_RETRY_WAIT_MIN_SECONDS", "0.1")
        monkeypatch.setenv(f"WANDB_X_{service}_RETRY_WAIT_MAX_SECONDS", "0.5")
    yield home
    _stop_wandb()


@pytest.fixture
def wandb_stopped() -> Iterator[None]:
    """For tests that set everything else up themselves: the service is stopped before and after."""
    if "wandb" in sys.modules:
        _stop_wandb()
    yield
    _stop_wandb()


@pytest.fixture
def wandb_offline(wandb_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``wandb`` in offline mode; the value is the folder with the ``offline-run-*`` folders."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    return wandb_home / "dir" / "wandb"


@pytest.fixture
def wandb_online(wandb_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    """``wandb`` online against a server of our own; the test fails when the client asks what it does not know."""
    with WandbServer() as server:
        monkeypatch.setenv("WANDB_MODE", "online")
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        monkeypatch.setenv("WANDB_API_KEY", "x" * 40)
        yield server
        server.fault = None
        _stop_wandb()
    assert not server.unknown, (
        f"the W&B client asked what the test server does not know: {sorted(server.unknown)}"
    )


def _stop_wandb() -> None:
    import wandb

    wandb.teardown()
    end = time.monotonic() + 10
    while left := child_processes("wandb-core"):
        assert time.monotonic() < end, f"wandb-core is still running: {left}"
        time.sleep(0.05)


def child_processes(name: str, parent_id: int | None = None) -> list[int]:
    """Process ids of a process' living children whose command has that name; by default of this process."""
    wanted = os.getpid() if parent_id is None else parent_id
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            command, rest = stat.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended meanwhile
            continue
        state, parent = rest.split()[:2]
        if command.startswith(name) and int(parent) == wanted and state != "Z":
            found.append(int(stat.parent.name))
    return found
