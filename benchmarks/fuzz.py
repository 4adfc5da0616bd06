"""Damages files of every kind and reads them: a reader returns something sound or refuses by its own errors.

``python benchmarks/fuzz.py [CASES [NAME ...]]``: by default 100 000 cases of each kind, which takes hours. The tests
of tests/fuzz try some; what is found belongs there. Ends with 1 when something is found.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fuzz.sound import ARCHIVES, sound_files
from tests.fuzz.test_readers import ARRAYS, changed, damaged, packed
from uq_tracking.errors import FileFormatError, UQTrackingError

SEED = int(os.environ.get("UQ_FUZZ_SEED", "0"))
TABLE_ERRORS, OWN_ERRORS = UQTrackingError, FileFormatError


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    found = 0
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        for name, content, read in list(sound_files(Path(place))):
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            start, outcomes = time.perf_counter(), Counter[str]()
            for number in range(cases):
                outcomes[
                    one_case(Path(place) / name, content, read, random.Random(f"{SEED} {name} {number}"))
                ] += 1
            bad = {text: count for text, count in outcomes.items() if text not in ("read", "refused")}
            found += len(bad)
            told = f"{outcomes['read']} read, {outcomes['refused']} refused, {len(bad)} findings"
            print(f"{name}: {cases} cases, {told}, {time.perf_counter() - start:.0f} s", flush=True)
            for text, count in bad.items():
                print(f"  {count} times: {text}", flush=True)
    sys.exit(1 if found else 0)


def one_case(path: Path, content: bytes, read: Callable[[Path], Any], rng: random.Random) -> str:
    path.write_bytes(other(path.name, content, rng))
    expected = TABLE_ERRORS if path.name.startswith("table") else OWN_ERRORS
    try:
        read(path)
    except expected:
        return "refused"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:80]} ({Path(last.filename).name}, line {last.lineno})"
    return "read"


def other(name: str, content: bytes, rng: random.Random) -> bytes:
    """The file with other values, where its kind has such; else, and every third time, with other bytes."""
    if name.endswith(".json") and rng.random() < 0.67:
        return json.dumps(changed(json.loads(content), rng.randrange(10**6), value(rng))).encode()
    if name in ARCHIVES and rng.random() < 0.67:
        return packed(other_arrays(content, rng))
    return damaged(content, [damage(rng) for _ in range(rng.randint(1, 4))])


def other_arrays(content: bytes, rng: random.Random) -> dict[str, Any]:
    with np.load(io.BytesIO(content)) as archive:
        arrays = {key: archive[key] for key in archive.files if key != "binding"}
    for _ in range(rng.randint(1, 2)):
        key = rng.choice(sorted(arrays))
        text = str(arrays[key]) if arrays[key] is not None and arrays[key].dtype.kind == "U" else ""
        if text.startswith("{") and len(text) > 2 and rng.random() < 0.8:
            arrays[key] = np.asarray(json.dumps(changed(json.loads(text), rng.randrange(10**6), value(rng))))
        else:
            arrays[key] = rng.choice(ARRAYS)
    return arrays


def damage(rng: random.Random) -> tuple[int, str, int, bytes]:
    kind = rng.choice(["flip", "cut", "insert", "repeat"])
    return rng.randrange(2**20), kind, rng.randint(1, 255), rng.randbytes(rng.randint(1, 12))


def value(rng: random.Random, depth: int = 2) -> Any:
    """A value that JSON can hold."""
    plain = [
        None,
        True,
        False,
        0,
        -1,
        10**30,
        1e308,
        -0.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "1",
        "\ud800",
    ]
    if depth and rng.random() < 0.3:
        inner = [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
        return inner if rng.random() < 0.5 else {str(number): item for number, item in enumerate(inner)}
    return rng.choice(plain)


if __name__ == "__main__":
    main()
