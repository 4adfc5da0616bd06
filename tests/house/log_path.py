"""Print, as JSON, which of our functions one `uq.log` of small maps to an MLflow run passes, and how deep they nest.

A process of its own, because what other tests have cached would be missing. The first call of a process collects
plugins; the second one is counted. Named functions count, in all threads: neither class bodies nor lambdas nor
comprehensions do, though their frames add to the depth, as they do in a traceback.
"""

from __future__ import annotations

import json
import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import mlflow
import numpy as np

import uq_tracking as uq

ROOT = Path(uq.__file__).parents[1]
OURS = tuple(f"{ROOT / folder}/" for folder in ("uq_tracking", "plugins"))

passed: set[CodeType] = set()
deepest: list[CodeType] = []


def note(frame: FrameType, event: str, argument: Any) -> None:
    """Count the function that has just been called."""
    global deepest
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(OURS):
        return
    passed.add(code)
    stack: list[CodeType] = []
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_filename.startswith(OURS):
            stack.append(above.f_code)
        above = above.f_back
    if len(stack) > len(deepest):
        deepest = stack


def is_named(code: CodeType) -> bool:
    """True for functions, which class bodies, modules, lambdas and comprehensions are not."""
    return bool(code.co_flags & CO_OPTIMIZED) and not code.co_name.startswith("<")


def shown(code: CodeType) -> str:
    """Return the file and the name of a function."""
    return f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_name}"


def main(folder: str) -> None:
    """Log twice to a new store in a folder; count the second time."""
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("maps", f"{folder}/artifacts")
    mlflow.set_experiment("maps")
    rng = np.random.default_rng(0)
    y_true = rng.normal(size=(3, 24, 32))
    y_pred = y_true + 0.3 * rng.normal(size=y_true.shape)
    y_std = 0.3 * rng.uniform(0.5, 2.0, y_true.shape)
    with mlflow.start_run():
        uq.log(y_true, y_pred, y_std, method="example", deadline=300)
    with mlflow.start_run() as run:
        threading.setprofile(note)
        sys.setprofile(note)
        uq.log(y_true, y_pred, y_std, method="example", deadline=300)
        sys.setprofile(None)
        threading.setprofile(None)
    stored = mlflow.MlflowClient().get_run(run.info.run_id).data
    functions = sorted(shown(code) for code in passed if is_named(code))
    print(
        json.dumps(
            {
                "functions": functions,
                "files": sorted({name.partition(":")[0] for name in functions}),
                "deepest": [shown(code) for code in reversed(deepest)],
                "metrics": sorted(stored.metrics),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
