"""Random cases for benchmarks/fuzz.py: damaged files, and arguments that make no sense."""

from __future__ import annotations

import json
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import uq_tracking as uq
from tests.fuzz.seeds import Archive, JsonText
from tests.fuzz.sound import ARCHIVES, sound_files
from tests.fuzz.test_inputs import ABOUT_NAMES, DTYPE_NAMES, OPTION_NAMES
from tests.fuzz.test_readers import ARRAYS, damaged
from uq_tracking.errors import FileFormatError, TrackingWarning, UQTrackingError
from uq_tracking.report import Report
from uq_tracking.tracking.folder import FolderStore
from uq_tracking.tracking.health import forget_health

Case = Callable[[Random], bool]
"""Tries something; whether it was taken. What it raises beyond refusals is a finding."""
REFUSED = (UQTrackingError, TypeError)
NUMBERS = (
    *(0.0, 1.0, float("inf"), float("nan"), -1.0),
    *(1e-320, 1e-300, 1e-160, 1e-30, 1e30, 1e160, -1e160, 1e300, 1.7e308),
)
VALUES = (
    *(None, True, False, 0, -1, 3, 10**30, 1e308, -0.5, 0.5, float("nan"), float("inf")),
    *("", "x", "1", "\ud800", "all", "auto", "sketch"),
)


def cases(folder: Path) -> Iterator[tuple[str, Case]]:
    """What is tried: a file of every kind, a run's folder, and the arguments of the verbs."""
    for name, content, read in list(sound_files(folder)):
        yield name, file_case(folder / name, content, read)
    yield "run.json, log.jsonl", run_case(folder)
    yield "evaluate", _evaluate
    yield "evaluate with probs=", _evaluate_classification
    yield "log", partial(_log, folder)


def outcome(case: Case, rng: Random) -> str:
    """What became of a case: "read", "refused", or what is wrong, in words."""
    try:
        return "read" if case(rng) else "refused"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:80]} ({Path(last.filename).name}, line {last.lineno})"


def file_case(path: Path, content: bytes, read: Callable[[Path], Any]) -> Case:
    """The reader of a file gets it with another value, where its kind has such, or with other bytes."""
    other = _other_of(path.name, content)
    own: Any = UQTrackingError if path.name.startswith("table") else FileFormatError

    def case(rng: Random) -> bool:
        path.write_bytes(other(rng))
        try:
            read(path)
        except own:
            return False
        return True

    return case


def _other_of(name: str, content: bytes) -> Callable[[Random], bytes]:
    """A function that makes another content."""
    makes = [partial(_other_bytes, content)]
    if name.endswith(".json"):
        makes.append(partial(_other_value, JsonText(content.decode())))
    elif name in ARCHIVES:
        makes.append(partial(_other_arrays, Archive(content)))
    return lambda rng: makes[-1 if rng.random() < 0.67 else 0](rng)


def _other_bytes(content: bytes, rng: Random) -> bytes:
    return damaged(content, [damage(rng) for _ in range(rng.randint(1, 4))])


def _other_value(text: JsonText, rng: Random) -> bytes:
    return text.changed(rng.randrange(10**6), value(rng)).encode()


def _other_arrays(archive: Archive, rng: Random) -> bytes:
    return archive.changed(_arrays(archive, rng))


def _arrays(archive: Archive, rng: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(rng.randint(1, 2)):
        key = rng.choice(archive.names)
        if key in archive.texts and rng.random() < 0.8:
            found[key] = np.asarray(archive.texts[key].changed(rng.randrange(10**6), value(rng)))
        else:
            found[key] = rng.choice(ARRAYS)
    return found


def run_case(folder: Path) -> Case:
    """A run whose own two files are damaged is left out or read; the one beside it is always read."""
    store = FolderStore(folder / "runs-of-two")
    store.create("good").log_scalars({"a": 1.0})
    bad = store.create("bad", {"tag": "x"})
    bad.log_scalars({"a": 1.0}, step=1)
    others = {}
    for name in ("run.json", "log.jsonl"):
        path = bad.path / name
        content = json.dumps(json.loads(path.read_text())).encode() + b"\n"
        others[path] = content, _other_of("x.json", content)

    def case(rng: Random) -> bool:
        for path, (content, other) in others.items():
            path.write_bytes(other(rng) if rng.random() < 0.7 else content)
        names = [run.name for run in store.runs()]
        if "good" not in names:
            raise RuntimeError("a damaged run hides another one")
        return len(names) == 2

    return case


def _evaluate(rng: Random) -> bool:
    with np.errstate(all="ignore"):
        try:
            shape = rng.choice([(-1,), (-1, 1), (1, -1), (1, 1, -1)])
            dtype = rng.choice(DTYPE_NAMES) if rng.random() < 0.5 else "f8"
            count, share = rng.choice([rng.randint(0, 8), 40]), rng.choice([0.0, 0.05, 0.3])
            arrays = [np.asarray(_numbers(rng, count, share)).astype(dtype).reshape(shape) for _ in range(3)]
            if rng.random() < 0.7:  # extreme, but finite
                arrays = [np.nan_to_num(array, posinf=1.0, neginf=1.0) for array in arrays]
            arrays[2] = abs(arrays[2]) if rng.random() < 0.7 else arrays[2]
        except (ValueError, OverflowError, TypeError):  # numpy cannot make such an array
            return False
    return _scored(lambda: uq.evaluate(*arrays, **_options(rng, OPTION_NAMES, 2)))


def _evaluate_classification(rng: Random) -> bool:
    classes, count = rng.randint(0, 3), rng.randint(0, 6)
    labels = [
        rng.randint(-2, 4) if rng.random() < 0.05 else rng.randrange(max(classes, 2)) for _ in range(count)
    ]
    shape = (count, classes) if classes else (-1,)
    if rng.random() < 0.2:
        probabilities = np.asarray(_numbers(rng, count * max(classes, 1), 0.05)).reshape(shape)
    else:
        probabilities = np.asarray([rng.random() for _ in range(count * max(classes, 1))]).reshape(shape)
        probabilities = probabilities / probabilities.sum(-1, keepdims=True) if classes else probabilities
    names = (*OPTION_NAMES, "logits", "class_axis", "ignore_label")
    return _scored(lambda: uq.evaluate(labels, probs=probabilities, **_options(rng, names, 2)))


def _log(folder: Path, rng: Random) -> bool:
    """Whatever is said about a call, it is refused before anything is written, or written without a warning."""
    runs = folder / "logged"
    call = {
        "figures": False,
        "maps": False,
        "run": f"dir:{runs}",
        **_options(rng, ABOUT_NAMES, 3),
        **_options(rng, OPTION_NAMES, 1),
    }
    if call.get("deadline") in (0.5, 3):
        call["deadline"] = 60.0  # on a busy machine even a folder may take longer
    try:
        taken = _scored(lambda: uq.log([1.0, 2.0, 4.0], [1.5, 2.0, 3.0], [1.0, 0.5, 1.0], **call))
        if bool(list(runs.glob("*/log.jsonl"))) is not taken:
            raise RuntimeError(f"{'nothing' if taken else 'something'} is written")
        return taken
    finally:
        forget_health()
        shutil.rmtree(runs, ignore_errors=True)


def _scored(call: Callable[[], Report]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", ".*did not take", TrackingWarning)
        try:
            report = call()
        except REFUSED:
            return False
    if Report.from_json(report.to_json()) != report:
        raise RuntimeError("the report is another one when it is read back")
    return True


def _options(rng: Random, names: tuple[str, ...], most: int) -> dict[str, Any]:
    return {rng.choice(names): value(rng) for _ in range(rng.randint(0, most))}


def _numbers(rng: Random, count: int, share: float) -> list[float]:
    """Plain numbers, of which a share is replaced by extreme ones."""
    return [rng.choice(NUMBERS) if rng.random() < share else rng.gauss(1.0, 0.5) for _ in range(count)]


def damage(rng: Random) -> tuple[int, str, int, bytes]:
    kind = rng.choice(["flip", "cut", "insert", "repeat"])
    return rng.randrange(2**20), kind, rng.randint(1, 255), rng.randbytes(rng.randint(1, 12))


def value(rng: Random, depth: int = 2) -> Any:
    """A value that JSON can hold."""
    if depth and rng.random() < 0.3:
        inner = [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
        return inner if rng.random() < 0.5 else {str(number): item for number, item in enumerate(inner)}
    return rng.choice(VALUES)
