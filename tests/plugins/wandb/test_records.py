"""The reader of ``.wandb`` files: framing, and exactly what an offline run wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import wandb
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.wandb.helpers import fragment_of, train
from tests.plugins.wandb.writer import BLOCK, framed, write_run
from uq_tracking.curves import Curve
from uq_tracking.errors import FileFormatError
from uq_tracking.tracking.names import SECTIONS
from uq_tracking_wandb.fragment import _payloads, read_fragment, read_records, started
from uq_tracking_wandb.run import WandbRun

HEADERS = 7 + 7  # of the file and of the first chunk


@given(sizes=st.lists(st.integers(0, 3 * BLOCK), max_size=6))
@settings(max_examples=50)
def test_payloads_of_any_size_come_back(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    payloads = [np.random.default_rng(size).bytes(size) for size in sizes]
    path = tmp_path_factory.mktemp("framing") / "run-x.wandb"
    path.write_bytes(framed(payloads))
    assert list(_payloads(path)) == payloads


@pytest.mark.parametrize("left", range(9))
def test_the_tail_of_a_block_is_padding_when_no_header_fits(tmp_path: Path, left: int) -> None:
    payloads = [b"x" * (BLOCK - HEADERS - left), b"second"]
    path = tmp_path / "run-x.wandb"
    path.write_bytes(framed(payloads))
    assert list(_payloads(path)) == payloads


def test_a_file_that_is_being_written_ends_at_its_last_whole_record(tmp_path: Path) -> None:
    whole = framed([b"first", b"second"])
    path = tmp_path / "run-x.wandb"
    for size, expected in [(len(whole) - 1, [b"first"]), (20, [b"first"]), (15, []), (7, []), (0, [])]:
        path.write_bytes(whole[:size])
        assert list(_payloads(path)) == expected


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    content = bytearray(framed([b"first", b"second"]))
    content[16] ^= 1
    path = tmp_path / "run-x.wandb"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="wrong checksum before byte 19"):
        list(read_records(path))


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.wandb"
    path.write_text("something else")
    with pytest.raises(FileFormatError, match=r"notes\.wandb is not a \.wandb file"):
        list(read_records(path))


def test_the_start_is_read_from_the_first_records(tmp_path: Path) -> None:
    assert started(write_run(tmp_path, "a", "name", started=1_700_000_000)) == 1_700_000_000


@pytest.mark.slow
def test_an_offline_run_is_read_back_exactly(wandb_offline: Path, curve: Curve, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}")
    with wandb.init(project="p", name="n", group="g", notes="why", tags=["t"], config={"lr": 0.1}) as sdk_run:
        train(sdk_run, [0, 1])
        run = WandbRun(sdk_run)
        with run.batch():
            run.log_scalars({"uq/nll": 1 / 3, "uq/mae": 2.0}, step=7)
            run.log_curve("uq_curve/calibration", curve)
            run.log_file(tmp_path / "report.json", "uq/report.json")
            run.set_tags({"uq.method": "mc", "note": "x"})
        train(sdk_run, [2])
    found = fragment_of(wandb_offline, sdk_run.id)
    options = {"name": "n", "group": "g", "notes": "why", "project": "p", "tags": ("t",), "id": sdk_run.id}
    assert found.options.items() >= options.items()
    assert {key: found.config[key] for key in ("lr", "uq", "note")} == {
        "lr": 0.1,
        "uq": {"method": "mc"},
        "note": "x",
    }
    assert [
        (row["_step"], row.get("loss"), row.get("uq/nll"), row.get("uq/step")) for row in found.history
    ] == [
        (0, 1.0, None, None),
        (1, 0.5, 1 / 3, 7),
        (2, 1 / 3, None, None),
    ]
    assert found.own_summary["uq/nll"] == 1 / 3
    assert found.own_summary["loss"] == 1 / 3
    scalars = (*(f"{section}/*" for section in SECTIONS), "uq/nll", "uq/mae")
    assert found.axes == dict.fromkeys(scalars, "uq/step")
    artifact = next(item for item in found.artifacts if item.type == "uq")
    assert artifact.name == f"uq-{sdk_run.id}"
    assert {name: path.read_text() for name, path in artifact.files.items()} == {"uq/report.json": "{}"}
    table = found.media[found.history[1]["uq_curve/calibration_table"]["path"]]
    assert json.loads(table.read_text())["columns"] == ["expected", "observed"]
    assert (found.exit_code, found.status) == (0, "finished")


def test_without_history_everything_else_is_read(wandb_offline: Path) -> None:
    with wandb.init(project="p") as sdk_run:
        train(sdk_run, range(3))
    whole = fragment_of(wandb_offline, sdk_run.id)
    path = next(wandb_offline.glob("offline-run-*/*.wandb"))
    light = read_fragment(path, history=False)
    assert len(whole.history) == 3
    assert light.history == []
    assert light.summary == whole.summary
