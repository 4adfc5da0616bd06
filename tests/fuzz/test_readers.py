"""Readers of files raise FileFormatError or return something sound, whatever the bytes are.

``UQ_FUZZ_EXAMPLES=100000 pytest tests/fuzz`` looks longer. What was once found stands in ``CORPUS``.
"""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import uq_tracking as uq
from uq_tracking.errors import FileFormatError, TrackingWarning, UQTrackingError
from uq_tracking.report import Report
from uq_tracking.statistics.store import read_statistics, write_statistics
from uq_tracking.tracking.directory import DirectoryStore
from uq_tracking.tracking.journal import parsed
from uq_tracking.tracking.spool import Origin, keep, read_entry

EXAMPLES = int(os.environ.get("UQ_FUZZ_EXAMPLES", "150"))
QUICK = settings(
    max_examples=EXAMPLES,
    deadline=timedelta(seconds=20),
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
TRUTH, MEAN, STD = [1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.6], [0.1, 0.2, 0.3, 0.4]
CORPUS = [
    b"",
    b"PK",
    b"PK\x05\x06" + b"\0" * 18,
    b"\x93NUMPY",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 20_000,
    b"\xff\xfe",
]


def files(folder):
    """A sound file of every kind, and its reader."""
    report = uq.evaluate(TRUTH, MEAN, STD)
    report.to_json(folder / "report.json")
    report.to_npz(folder / "report.npz")
    write_statistics(folder / "statistics.npz", report.statistics, data="0" * 16)
    uq.Predictions(TRUTH, MEAN, STD).save(folder / "predictions.npz")
    (folder / "content").write_bytes(b"content")
    entry = keep(
        Origin("dir", "", "dir:x"),
        [
            [
                ("a", lambda run: run.log_scalars({"a": 1.0})),
                ("b", lambda run: run.log_file(folder / "content", "b")),
            ]
        ],
    )
    entry.rename(folder / "entry.zip")
    return {
        "report.json": Report.from_json,
        "report.npz": Report.from_npz,
        "statistics.npz": read_statistics,
        "predictions.npz": uq.Predictions.load,
        "entry.zip": read_whole_entry,
    }


def read_whole_entry(path):
    entry = read_entry(path)
    return [entry.member(name) for name in entry.members]


class Sound(dict):
    """Content and reader by file name; Hypothesis shows it in a line."""

    def __repr__(self):
        return "sound files"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    before = os.getcwd()
    os.chdir(folder)
    try:
        readers = files(folder)
    finally:
        os.chdir(before)
    return Sound((name, ((folder / name).read_bytes(), read)) for name, read in readers.items())


NAMES = ["report.json", "report.npz", "statistics.npz", "predictions.npz", "entry.zip"]


def reads_or_refuses(read, path):
    try:
        return read(path)
    except FileFormatError:
        return None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("content", CORPUS, ids=range(len(CORPUS)))
def test_what_was_found_before(sound, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError):
        sound[name][1](tmp_path / name)


@pytest.mark.parametrize("name", NAMES)
@QUICK
@given(data=st.data())
def test_damaged_bytes(sound, tmp_path, name, data):
    content = bytearray(sound[name][0])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "repeat"]))
        if kind == "flip":
            content[place] ^= data.draw(st.integers(1, 255))
        elif kind == "cut":
            del content[place : place + data.draw(st.integers(1, 50))]
        elif kind == "insert":
            content[place:place] = data.draw(st.binary(min_size=1, max_size=20))
        else:
            content[place:place] = content[place : place + 100]
        if not content:
            break
    (tmp_path / name).write_bytes(content)
    reads_or_refuses(sound[name][1], tmp_path / name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def paths_in(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_in(inner, (*path, key))


PLACES = st.integers(0, 10**6)


@QUICK
@given(place=PLACES, new=JSON)
def test_reports_with_other_values(sound, tmp_path, place, new):
    values = json.loads(sound["report.json"][0])
    paths = list(paths_in(values))[1:]
    path = paths[place % len(paths)]
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    (tmp_path / "report.json").write_text(json.dumps(values), encoding="utf-8")
    report = reads_or_refuses(Report.from_json, tmp_path / "report.json")
    if report is not None:
        assert Report.from_json(report.to_json()) == report


ARRAYS = [
    None,
    np.zeros(0),
    np.asarray(3.0),
    np.asarray("text"),
    np.full(4, np.nan),
    np.full(4, -1.0),
    np.zeros((2, 2)),
    np.asarray([2**62, -(2**62)]),
    np.asarray([1 + 2j]),
    np.asarray(["a"]),
    np.zeros(4, dtype="V3"),
]


@pytest.mark.parametrize("name", ["statistics.npz", "predictions.npz"])
@QUICK
@given(place=PLACES, new=st.integers(0, len(ARRAYS) - 1))
def test_archives_with_other_arrays(sound, tmp_path, name, place, new):
    with np.load(io.BytesIO(sound[name][0])) as archive:
        arrays = {key: archive[key] for key in archive.files if key != "binding"}
    arrays[sorted(arrays)[place % len(arrays)]] = ARRAYS[new]
    buffer = io.BytesIO()
    np.savez(buffer, **{key: array for key, array in arrays.items() if array is not None})
    (tmp_path / name).write_bytes(buffer.getvalue())
    reads_or_refuses(sound[name][1], tmp_path / name)


@QUICK
@given(text=st.text() | JSON.map(json.dumps) | st.dictionaries(
    st.sampled_from(["step", "scalars", "tags", "time"]), JSON, max_size=4).map(json.dumps))  # fmt: skip
def test_lines_of_a_journal(text):
    line = parsed(text)
    assert line is None or all(isinstance(value, float) for value in line.scalars.values())


@QUICK
@given(
    head=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()),
    log=st.binary(max_size=60),
)
def test_a_damaged_run_hides_no_other(tmp_path_factory, head, log):
    store = DirectoryStore(tmp_path_factory.mktemp("runs"))
    store.create("good").log_scalars({"a": 1.0})
    bad = store.create("bad").path
    (bad / "run.json").write_bytes(head)
    (bad / "log.jsonl").write_bytes(log)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrackingWarning)
        names = [run.name for run in store.runs()]
    assert "good" in names


FLOATS = st.floats(width=32) | st.sampled_from([0.0, 1.0, np.inf, np.nan, -1.0, 1e-300, 1e300])


ROWS = st.lists(st.tuples(FLOATS, FLOATS, FLOATS), max_size=8)
OPTIONS = st.sampled_from(["alpha", "n_bins", "std_floor", "on_invalid", "unit", "mask", "intervals"])


@QUICK
@given(rows=ROWS, options=st.dictionaries(OPTIONS, JSON, max_size=2))
def test_evaluate_raises_only_its_own_errors(rows, options):
    truth, mean, std = (np.asarray([row[k] for row in rows]) for k in range(3))
    try:
        report = uq.evaluate(truth, mean, std, **options)
    except (UQTrackingError, TypeError):
        return
    assert Report.from_json(report.to_json()) == report


def test_a_zip_of_other_things_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "entry.zip", "w") as archive:
        archive.writestr("entry.json", json.dumps({"format": "uq_tracking.spool"}))
    with pytest.raises(FileFormatError, match="is damaged"):
        read_entry(tmp_path / "entry.zip")
