"""Entries of the spool: atomic, unique, self-contained, refused when damaged, found where they were written."""

from __future__ import annotations

import gc
import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
from datetime import datetime, timezone
from pathlib import Path

import pytest
import time_machine

import uq_tracking as uq
from uq_tracking.errors import BackendError, FileFormatError, printable, redact
from uq_tracking.npz import Archive
from uq_tracking.testing import sample_curve, sample_figure
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.places import places
from uq_tracking.tracking.spool import ENTRY, Origin, _process, entries, keep, read_entry

TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]


@pytest.fixture(scope="module")
def before_any_test():
    return list(places())


def test_tests_keep_nothing_in_the_users_own_folder(before_any_test):
    own = Path.home() / ".local" / "state"
    assert not [place for place in (*before_any_test, *places()) if place.is_relative_to(own)]


def origin(**changes):
    return Origin(**{"tracker": "dir", "place": "/x", "uri": "dir:/x/run", "step": 3, **changes})


def groups(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    return [
        [
            ("tags", lambda run: run.set_tags({"uq.method": "m", "note": "lone \ud800"})),
            ("scores", lambda run: run.log_scalars({"uq/nll": 1 / 3, "uq/nan": float("nan")}, step=3)),
            ("curve", lambda run: run.log_curve("uq_curve/sample", sample_curve((0.0, 0.5, 1.0)))),
        ],
        [("file", lambda run: run.log_file(tmp_path / "file", "uq/x.bin"))],
        [("figure", lambda run: run.log_figure("uq_calibration", sample_figure(0.2)))],
        [("map", lambda run: run.log_map("uq_map/1", sample_figure(0.7)))],
    ]


@pytest.fixture
def entry(in_folder, tmp_path):
    return keep(origin(), groups(tmp_path))


def test_what_was_kept_is_written_as_the_call_would_have(entry, tmp_path):
    stored = {}
    for name, write in {
        "direct": lambda run: [action(run) for group in groups(tmp_path) for _, action in group],
        "late": lambda run: read_entry(entry).send(run),
    }.items():
        run = FolderStore(tmp_path / name).create("a")
        write(run)
        files = {
            p.relative_to(run.path).as_posix(): p.read_bytes() for p in run.path.rglob("*") if p.is_file()
        }
        del files["run.json"], files["log.jsonl"]
        (listed,) = FolderStore(tmp_path / name).runs()
        stored[name] = files, listed.scalars, listed.tags
    assert stored["late"] == stored["direct"]
    assert {"uq/x.bin", "uq_calibration.png", "uq_map_1.png"} <= stored["late"][0].keys()


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_entries_are_for_their_user_alone(entry):
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700


@pytest.mark.slow
def test_an_archive_that_an_interruption_leaves_behind_says_nothing(tmp_path):
    with (tmp_path / "part").open("wb") as file:
        archive = Archive(file, "w")
        archive.writestr("a", b"b")
    del archive
    gc.collect()  # an error in here would fail the test


def test_entries_stand_in_the_order_of_the_calls(in_folder):
    paths = [keep(origin(step=step), []) for step in (5, 1, 3)]
    assert list(entries()) == list(entries(in_folder / "uq_runs")) == paths
    assert [read_entry(path).origin.step for path in paths] == [5, 1, 3]
    assert not list((in_folder / "uq_runs" / "spool").glob("*.part"))


def test_a_clock_that_is_set_back_changes_no_order(in_folder, tmp_path):
    """Neither between two calls nor between two jobs, nor when another place serves meanwhile."""
    paths = []
    for day, job in ((20, 1), (19, 1), (18, 2), (17, 2)):
        if day == 18:
            _process.cache_clear()  # as another process
        (in_folder / "uq_runs").mkdir(exist_ok=True)
        if job == 1 and paths:
            (in_folder / "uq_runs").rename(tmp_path / "away")
            (in_folder / "uq_runs").write_text("in the way")
        with time_machine.travel(datetime(2026, 1, day, tzinfo=timezone.utc)):
            paths.append(keep(origin(step=len(paths)), []))
        if (tmp_path / "away").exists():
            (in_folder / "uq_runs").unlink()
            (tmp_path / "away").rename(in_folder / "uq_runs")
    assert [path.is_relative_to(in_folder) for path in paths] == [True, False, True, True]
    assert [read_entry(path).origin.step for path in entries()] == [0, 1, 2, 3]


def test_what_workers_keep_comes_before_what_follows_them(in_folder):
    _process.cache_clear()
    keep(origin(step=0), [])
    parent = _process(os.getpid())
    for step in (1, 2, 3):
        _process.cache_clear()  # as a worker
        keep(origin(step=step), [])
    assert parent.next(in_folder / "uq_runs" / "spool").startswith("00000005-")


@pytest.mark.parametrize(
    "damage", ["cut", "flipped", "empty", "foreign", "swapped", "link", "pipe", "too new"]
)
def test_a_damaged_entry_is_refused_by_name(entry, tmp_path, damage):
    content = bytearray(entry.read_bytes())
    if damage == "cut":
        entry.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        place = content.index(b'"uq/nll"') + 2
        content[place] ^= 1
        entry.write_bytes(content)
    elif damage == "empty":
        entry.write_bytes(b"")
    elif damage == "link":
        entry.rename(tmp_path / "elsewhere")
        entry.symlink_to(tmp_path / "elsewhere")
    elif damage == "pipe":  # reading it would wait for ever
        entry.unlink()
        os.mkfifo(entry) if hasattr(os, "mkfifo") else entry.mkdir()
    else:
        with zipfile.ZipFile(entry) as archive:
            about = json.loads(archive.read(ENTRY))
        change = {"foreign": {"format": "x"}, "swapped": {"groups": []}, "too new": {"version": 99}}[damage]
        with zipfile.ZipFile(entry, "w") as archive:
            archive.writestr(ENTRY, json.dumps(about | change))
    with pytest.raises(FileFormatError, match=entry.name):
        read_entry(entry)


def test_what_is_packed_is_not_unpacked(entry):
    with zipfile.ZipFile(entry) as archive:
        about = archive.read(ENTRY)
    with zipfile.ZipFile(entry, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ENTRY, about)
        archive.writestr("bomb", bytes(2**20))
    with pytest.raises(FileFormatError, match="it is packed, as entries are not"):
        read_entry(entry)


def test_the_next_place_serves_when_one_does_not(in_folder, tmp_path, monkeypatch):
    (in_folder / "uq_runs").write_text("in the way")
    assert tmp_path / "state" in keep(origin(), []).parents
    (tmp_path / "state").rename(tmp_path / "old")
    (tmp_path / "state").write_text("in the way")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert temporary in keep(origin(), []).parents
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "state"))
    with pytest.raises(BackendError, match="no folder is writable"):
        keep(origin(), [])


@pytest.mark.slow
def test_threads_without_a_tracker_keep_a_report_each(in_folder):
    def work(number):
        uq.log([1.0 * number, 2.0, 3.0], MEAN[:3], STD[:3], method="m", figures=False, maps=False)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runs = list(FolderStore(in_folder / "uq_runs").runs())
    assert len(runs) == 8
    assert len({run.scalars["uq/rmse"] for run in runs}) == 8


FORKED = """
import os, warnings, uq_tracking as uq
warnings.simplefilter("ignore")
def log(k): uq.log([1.0 * k, 2.0, 3.0], [1.0, 2.5, 3.0], [1.0, 1.0, 1.0], method="m", figures=False, maps=False)
log(100)
children = []
for k in range(8):
    child = os.fork()
    if child == 0:
        for step in range(3):
            uq.log([1.0 * k, 2.0, 3.0 + step], [1.0, 2.5, 3.0], [1.0, 1.0, 1.0], method="m", step=step)
        log(k + 2)
        os._exit(0)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.slow
def test_forked_workers_keep_a_report_each(in_folder):
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120, capture_output=True)
    store = FolderStore(in_folder / "uq_runs")
    runs = list(store.runs())
    assert len(runs) == 9
    assert len({run.scalars["uq/rmse"] for run in runs}) == 9
    assert sorted(len({step for step, _ in store.series(run)}) for run in runs) == [1] + [4] * 8


def test_a_deleted_working_directory_stops_nothing(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    Path(gone).rmdir()
    report = uq.log(TRUTH, MEAN, STD, figures=False)
    (run,) = FolderStore(tmp_path / "state" / "uq_tracking" / "uq_runs").runs()
    assert run.scalars["uq/rmse"] == report.scores["rmse"]


def test_a_missing_temporary_directory_stops_nothing(in_folder, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(in_folder / "missing"))
    report = uq.log(TRUTH, MEAN, STD, method="m")
    store = FolderStore(in_folder / "uq_runs")
    (run,) = store.runs()
    assert run.scalars["uq/rmse"] == report.scores["rmse"]
    assert {"uq/report.json", "uq/statistics.npz", "uq/predictions.npz"} <= set(store.files(run.run_id))


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("https://me:p@ss/wo@rd@host/x failed", "https://***@host/x failed"),
        ("s3://b?X-Amz-Signature=ab12&x=1", "s3://b?X-Amz-Signature=***&x=1"),
        ("abfs://c?sv=1&sig=a%2Fb%3D", "abfs://c?sv=1&sig=***"),
        ("gs://b?access_key=k secret_access_key=s", "gs://b?access_key=*** secret_access_key=***"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: ***"),
        ("https://host:8080/path stays", "https://host:8080/path stays"),
    ],
)
def test_credentials_are_hidden(text, safe):
    assert redact(text) == safe


def test_what_a_terminal_obeys_is_shown_as_text():
    assert printable("a\x1b[31mb\ud800\nc\x9b") == "a\\x1b[31mb\\ud800\nc\\x9b"
