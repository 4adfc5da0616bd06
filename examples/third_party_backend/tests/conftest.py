"""trackio writes to a folder of the tests and makes no network requests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def trackio_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """trackio reads its folder once, when it is first imported."""
    folder = tmp_path_factory.mktemp("trackio")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACKIO_DIR", str(folder))
        patch.setenv("HF_HUB_OFFLINE", "1")
        for name in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID", "TRACKIO_DATASET_ID"):
            patch.delenv(name, raising=False)
        import trackio

        assert Path(trackio.TRACKIO_DIR) == folder, (
            "trackio was imported before the tests could set its folder"
        )
        yield folder


@pytest.fixture
def project() -> str:
    """The name of a project used by only one test."""
    return f"test-{uuid.uuid4().hex[:12]}"
