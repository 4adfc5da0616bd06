"""A training job as users write it: some steps, then the final report. Run as ``python -m tests.faults.job JSON``."""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np


def main(arguments: dict[str, Any]) -> None:
    folder = Path(arguments["folder"])
    warned: list[str] = []
    import uq_tracking as uq
    from uq_tracking.errors import TrackingWarning

    def note(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, TrackingWarning):
            warned.append(str(message))

    warnings.showwarning = note
    warnings.simplefilter("always")

    def pause(mark: str) -> None:
        if mark in arguments.get("marks", ()):
            (folder / f"at-{mark}").touch()
            while not (folder / f"go-{mark}").exists():
                time.sleep(0.02)

    seconds: list[float] = []
    raised: list[str] = []
    uri = arguments.get("run")
    handle: Any = uri
    if arguments.get("sdk") == "mlflow":
        import mlflow

        mlflow.set_tracking_uri(arguments["tracking_uri"])
        active = mlflow.MlflowClient().create_run(arguments["experiment"])
        handle = uri = active.info.run_id
    elif arguments.get("sdk") == "wandb":
        import wandb

        handle = wandb.init(project="faults", id=arguments["id"], settings=wandb.Settings(finish_timeout=20))
        uri = handle.id
    options = {"run": handle, "method": "m", "split": arguments.get("split")}
    for step in range(arguments["steps"]):
        pause(f"step{step}")
        _log(uq, step, seconds, raised, {**options, "step": step})
        time.sleep(arguments.get("every", 0.0))
    pause("final")
    _log(uq, 99, seconds, raised, {**options, "figures": arguments.get("figures", False), "maps": False})
    pause("end")
    if arguments.get("sdk") == "wandb":
        try:
            handle.finish()
        except Exception as error:
            raised.append(f"finish: {error!r}")
    found = {"run": uri, "seconds": seconds, "raised": raised, "warned": warned, "ended": time.time()}
    (folder / "result.json").write_text(json.dumps(found))


def arrays(seed: int) -> tuple[Any, Any, Any]:
    """Truth, means and standard deviations of a step."""
    rng = np.random.default_rng(seed)
    std = rng.uniform(0.5, 2.0, 400)
    truth = rng.normal(size=400)
    return truth, truth + std * rng.normal(size=400), std


def _log(uq: Any, seed: int, seconds: list[float], raised: list[str], options: dict[str, Any]) -> None:
    data = arrays(seed)
    start = time.perf_counter()
    try:
        uq.log(*data, **options)
    except BaseException:
        raised.append(traceback.format_exc())
    seconds.append(time.perf_counter() - start)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
