"""Readers of files raise FileFormatError or return something sound, whatever the bytes are.

``UQ_FUZZ_EXAMPLES=5000 pytest tests/fuzz`` looks longer, ``python benchmarks/fuzz.py`` longest. What was once found
stands in ``CORPUS`` and in ``test_findings.py``.
"""

from __future__ import annotations

import io
import json
import os
import struct
import warnings
import zipfile
import zlib
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import uq_tracking as uq
from tests.fuzz.seeds import Archive, JsonText
from tests.fuzz.sound import ARCHIVES, NAMES, sound_files
from uq_tracking.errors import FileFormatError, TrackingWarning, UQTrackingError
from uq_tracking.report import Report
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.journal import parsed
from uq_tracking.tracking.spool import read_entry

EXAMPLES = int(os.environ.get("UQ_FUZZ_EXAMPLES", "25"))
QUICK = settings(
    max_examples=EXAMPLES,
    derandomize="UQ_FUZZ_EXAMPLES" not in os.environ,  # the same cases every day; more of them on demand
    deadline=timedelta(seconds=20),
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
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
        return Sound((name, (content, read)) for name, content, read in sound_files(folder))
    finally:
        os.chdir(before)


def test_every_kind_is_tried(sound):
    assert tuple(sound) == NAMES


def reads_or_refuses(sound, name, content, folder):
    """What the reader returns; None when it refuses the file. Tables of users may also hold what cannot be scored."""
    (folder / name).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other packages warn of damaged files
        try:
            return sound[name][1](folder / name)
        except UQTrackingError as error:
            if not (isinstance(error, FileFormatError) or name.startswith("table")):
                raise AssertionError(f"{name}: {error!r}") from error
            return None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("content", CORPUS, ids=range(len(CORPUS)))
def test_what_was_found_before(sound, tmp_path, name, content):
    found = reads_or_refuses(sound, name, content, tmp_path)
    assert found is None or (content == b"" and name == "run-x.wandb")  # a run that has just been started


DAMAGES = st.lists(
    st.tuples(
        st.integers(0, 2**20),
        st.sampled_from(["flip", "cut", "insert", "repeat"]),
        st.integers(1, 255),
        st.binary(min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=4,
)


def damaged(content, damages):
    content = bytearray(content)
    for place, kind, number, new in damages:
        place %= max(len(content), 1)
        if kind == "flip" and content:
            content[place] ^= number
        elif kind == "cut":
            del content[place : place + number]
        elif kind == "insert":
            content[place:place] = new
        else:
            content[place:place] = content[place : place + number]
    return bytes(content)


@pytest.mark.parametrize("name", NAMES)
@QUICK
@given(damages=DAMAGES)
def test_damaged_bytes(sound, tmp_path, name, damages):
    reads_or_refuses(sound, name, damaged(sound[name][0], damages), tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


PLACES = st.integers(0, 10**6)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".json")])
@QUICK
@given(place=PLACES, new=JSON)
def test_json_with_other_values(sound, tmp_path, name, place, new):
    content = JsonText(sound[name][0].decode()).changed(place, new).encode()
    found = reads_or_refuses(sound, name, content, tmp_path)
    if isinstance(found, Report | uq.Comparison):
        assert type(found).from_json(found.to_json()).to_json() == found.to_json()
        str(found)


ARRAYS = [
    None,
    np.zeros(0),
    np.asarray(3.0),
    np.asarray("text"),
    np.asarray("{}"),
    np.asarray('{"format": "uq_tracking.predictions"}'),
    np.full(4, np.nan),
    np.full(4, -1.0),
    np.full(4, np.inf),
    np.zeros((2, 2)),
    np.asarray([2**62, -(2**62)]),
    np.asarray([1 + 2j]),
    np.asarray(["a"]),
    np.zeros(4, dtype="V3"),
    np.zeros(4, dtype="M8[s]"),
    np.zeros(4, dtype=bool),
    np.arange(100.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
@QUICK
@given(changes=st.lists(st.tuples(PLACES, st.integers(0, len(ARRAYS) - 1)), min_size=1, max_size=3))
def test_archives_with_other_arrays(sound, tmp_path, name, changes):
    archive = Archive(sound[name][0])
    new = {archive.names[place % len(archive.names)]: ARRAYS[kind] for place, kind in changes}
    reads_or_refuses(sound, name, archive.changed(new), tmp_path)


def packed(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
@QUICK
@given(place=PLACES, new=JSON, which=PLACES)
def test_archives_with_other_facts(sound, tmp_path, name, place, new, which):
    archive = Archive(sound[name][0])
    key = sorted(archive.texts)[which % len(archive.texts)]
    facts = np.asarray(archive.texts[key].changed(place, new))
    reads_or_refuses(sound, name, archive.changed({key: facts}), tmp_path)


@QUICK
@given(place=PLACES, new=JSON)
def test_entries_with_other_content_and_a_fitting_digest(sound, tmp_path, place, new):
    import hashlib

    with zipfile.ZipFile(io.BytesIO(sound["entry.zip"][0])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(JsonText(members["entry.json"].decode()).changed(place, new))
    content = {key: about.get(key) for key in ("groups", "members")}
    about["digest"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    members["entry.json"] = json.dumps(about).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    reads_or_refuses(sound, "entry.zip", buffer.getvalue(), tmp_path)


@QUICK
@given(
    records=st.lists(st.binary(max_size=40), min_size=1, max_size=4), kind=st.integers(0, 5), damages=DAMAGES
)
def test_wandb_files_with_other_records_and_fitting_checksums(sound, tmp_path, records, kind, damages):
    content = sound["run-x.wandb"][0]
    own = content[14 : 14 + struct.unpack("<IHB", content[7:14])[1]]
    framed = content[:7]
    for data in (*records, damaged(own, damages)):
        head = struct.pack("<IHB", zlib.crc32(data, zlib.crc32(bytes([kind]))), len(data), kind)
        framed += head + data
    reads_or_refuses(sound, "run-x.wandb", framed, tmp_path)


@QUICK
@given(text=st.text() | JSON.map(json.dumps) | st.dictionaries(
    st.sampled_from(["kind", "step", "values", "name", "file", "about", "time"]),
    JSON | st.sampled_from(["scalars", "tags", "curve", "figure", "table", "description", "dataset", "view"]),
    max_size=5).map(json.dumps))  # fmt: skip
def test_lines_of_a_journal(text):
    line = parsed(text)
    numbers = line["values"] if line is not None and line["kind"] == "scalars" else {}
    assert all(isinstance(value, float) for value in numbers.values())


@QUICK
@given(
    head=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()),
    log=st.binary(max_size=60),
)
def test_a_damaged_run_hides_no_other(tmp_path_factory, head, log):
    store = FolderStore(tmp_path_factory.mktemp("runs"))
    store.create("good").log_scalars({"a": 1.0})
    bad = store.create("bad").path
    (bad / "run.json").write_bytes(head)
    (bad / "log.jsonl").write_bytes(log)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrackingWarning)
        names = [run.name for run in store.runs()]
    assert "good" in names


def test_a_zip_of_other_things_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "entry.zip", "w") as archive:
        archive.writestr("entry.json", json.dumps({"format": "uq_tracking.spool"}))
    with pytest.raises(FileFormatError, match="is damaged"):
        read_entry(tmp_path / "entry.zip")
