"""Writes ``.wandb`` files record by record, to check the reader and to make many runs quickly."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from wandb.proto import wandb_internal_pb2 as pb

BLOCK = 32768
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def framed(payloads: Iterable[bytes]) -> bytes:
    """File content that holds the payloads."""
    content = bytearray(struct.pack("<4sHB", b":W&B", 0xBEE1, 0))
    for payload in payloads:
        _append(content, payload)
    return bytes(content)


def _append(content: bytearray, payload: bytes) -> None:
    kind_of_first = True
    while True:
        left = BLOCK - len(content) % BLOCK
        if left < 7:
            content += bytes(left)
            continue
        part, payload = payload[: left - 7], payload[left - 7 :]
        kind = (FULL if kind_of_first else LAST) if not payload else (FIRST if kind_of_first else MIDDLE)
        checksum = zlib.crc32(part, zlib.crc32(bytes([kind])))
        content += struct.pack("<IHB", checksum, len(part), kind) + part
        kind_of_first = False
        if not payload:
            return


def write_run(folder: Path, run_id: str, name: str, started: int) -> Path:
    """A finished offline run with nothing in it."""
    run = pb.Record()
    run.run.run_id, run.run.display_name, run.run.project = run_id, name, "p"
    run.run.start_time.seconds = started
    end = pb.Record()
    end.exit.exit_code = 0
    path = folder / f"offline-run-20260101_000000-{run_id}" / f"run-{run_id}.wandb"
    path.parent.mkdir(parents=True)
    path.write_bytes(framed([run.SerializeToString(), end.SerializeToString()]))
    return path
