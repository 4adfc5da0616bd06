"""Links in a folder of runs lead nowhere: what they point to is not copied, listed or sent."""

from __future__ import annotations

import pytest
from tensorboardX import SummaryWriter

import uq_tracking as uq
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.spool import Origin, keep

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
SECRET = b"a private key"


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """A folder of somebody's beside the one in which the test works."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "key").write_bytes(SECRET)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


def holds_secret(folder):
    return [path for path in folder.rglob("*") if path.is_file() and SECRET in path.read_bytes()]


@pytest.mark.parametrize("tracker", ["dir", "tensorboard"])
def test_a_run_with_links_is_copied_without_what_they_point_to(secret, tmp_path, tracker):
    runs = tmp_path / "work" / "runs"
    if tracker == "dir":
        run = FolderStore(runs).create("job")
        uq.log(TRUTH, MEAN, STD, run=run, figures=False)
        folder = run.path
    else:
        folder = runs / "job" / "uq"
        with SummaryWriter(str(runs / "job")) as writer:
            uq.log(TRUTH, MEAN, STD, run=writer, figures=False)
    (folder / "stolen.txt").symlink_to(secret / "key")
    (folder / "uq" / "folder").symlink_to(secret, target_is_directory=True)
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "uq" / "report.json").unlink()
    (folder / "uq" / "report.json").symlink_to(secret / "key")
    summary = uq.sync(f"{tracker}:{runs}", f"dir:{tmp_path}/copies")
    assert [outcome.status for outcome in summary.outcomes] == ["done"], summary
    (copy,) = FolderStore(tmp_path / "copies").runs()
    assert copy.scalars["uq/rmse"] > 0
    assert holds_secret(tmp_path / "copies") == []


def test_an_entry_that_is_a_link_is_refused_by_name(secret, tmp_path):
    store = FolderStore(tmp_path / "runs")
    run = store.create("job")
    entry = keep(
        Origin("dir", str(store.path), run.uri), [[("x", lambda to: to.log_file(secret / "key", "x"))]]
    )
    entry.rename(secret / entry.name)
    entry.symlink_to(secret / entry.name)
    (outcome,) = uq.sync().outcomes
    assert outcome.status == "failed"
    assert entry.name in outcome.reason
    assert "link" in outcome.reason
    assert holds_secret(run.path) == []
    assert entry.is_symlink()
