"""A training job as users write it: some steps, then the final report. Run as ``python -m tests.faults.job JSON``."""

from __future__ import annotations

import json
import multiprocessing
import signal
import sys
import threading
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FINAL = 99
"""Seed of the final report's arrays."""


@dataclass
class Found:
    """What the job has noticed."""

    run: str = ""
    seconds: list[float] = field(default_factory=list)
    """How long each call took."""
    blocked: list[float] = field(default_factory=list)
    """The same, less the time in which the thread could have run but had no processor."""
    worked: list[float] = field(default_factory=list)
    """The processor time of the thread."""
    raised: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    ended: float = 0.0
    memory: float = 0.0
    """The most that the process has used, in MB, where the system tells."""


def main(arguments: dict[str, Any]) -> None:
    folder = Path(arguments["folder"])
    found = Found()
    import uq_tracking as uq
    from uq_tracking.errors import TrackingWarning

    def note(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, TrackingWarning):
            found.warned.append(str(message))

    warnings.showwarning = note
    warnings.simplefilter("always")
    if arguments.get("terminates"):  # as launchers of jobs and trainers do, to save a checkpoint
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def pause(mark: str) -> None:
        if mark in arguments.get("marks", ()):
            (folder / f"at-{mark}").touch()
            while not (folder / f"go-{mark}").exists():
                time.sleep(0.02)

    run = opened(arguments)
    found.run = run if isinstance(run, str) else run.id if arguments.get("sdk") == "wandb" else run.logdir
    (folder / "run").write_text(found.run)
    options = {"run": run, "method": "m", "split": arguments.get("split")}
    beside = opened({**arguments, "experiment": arguments["beside"]}) if "beside" in arguments else None
    for step in range(arguments["steps"]):
        pause(f"step{step}")
        if step == 3 and arguments.get("clock"):
            set_clock(arguments["clock"])
        _log(uq, step, found, {**options, "step": step})
        with (folder / "done").open("a") as done:
            done.write(f"{step}\n")
        if beside is not None:  # a run that nothing disturbs
            _log(
                uq, step, Found(raised=found.raised), {**options, "run": beside, "step": step, "strict": True}
            )
        if step == 2 and arguments.get("workers"):
            work_together(run, found, *arguments["workers"])
        time.sleep(arguments.get("every", 0.0))
    pause("final")
    _log(uq, FINAL, found, {**options, "figures": arguments.get("figures", False), "maps": False})
    pause("end")
    if arguments.get("sdk") == "wandb":
        start = time.perf_counter()
        try:
            run.finish()
        except Exception as error:
            found.warned.append(f"finish: {error!r}")  # the tracker's own, which its users know
        (folder / "finish").write_text(f"{time.perf_counter() - start}")
    found.memory = most_memory()
    found.ended = time.monotonic()
    (folder / "result.json").write_text(json.dumps(asdict(found)))


def most_memory() -> float:
    with suppress(OSError, IndexError):
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    return 0.0


def opened(arguments: dict[str, Any]) -> Any:
    """What the user passes as ``run=``, opened as its package does."""
    sdk = arguments.get("sdk")
    if sdk == "mlflow":
        import mlflow

        mlflow.set_tracking_uri(arguments["tracking_uri"])
        return mlflow.MlflowClient().create_run(arguments["experiment"]).info.run_id
    if sdk == "wandb":
        import wandb

        settings = wandb.Settings(finish_timeout=arguments.get("finish_timeout", 20))
        return wandb.init(project="faults", id=arguments["id"], settings=settings)
    if sdk == "tensorboard":
        from tensorboardX import SummaryWriter

        return SummaryWriter(arguments["logdir"])
    return arguments["run"]


def set_clock(seconds: float) -> None:
    """Let this process see another time from now on, as after a correction of the machine's clock."""
    import time_machine

    time_machine.travel(time.time() + seconds, tick=True).start()


def arrays(seed: int) -> tuple[Any, Any, Any]:
    """Truth, means and standard deviations of a step."""
    rng = np.random.default_rng(seed)
    std = rng.uniform(0.5, 2.0, 400)
    truth = rng.normal(size=400)
    return truth, truth + std * rng.normal(size=400), std


def work_together(run: Any, found: Found, kind: str, count: int) -> None:
    """Let workers log into the same run at the same time, each under a split of its own."""
    if kind == "threads":
        workers: list[Any] = [
            threading.Thread(target=_worker, args=(run, number, found)) for number in range(count)
        ]
    else:
        context = multiprocessing.get_context(kind)
        workers = [context.Process(target=_worker, args=(run, number)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found.raised += [f"a worker ended with {code}" for w in workers if (code := getattr(w, "exitcode", 0))]


def _worker(run: Any, number: int, found: Found | None = None) -> None:
    import uq_tracking as uq

    if found is None:  # in a process of its own, whose exit code tells
        warnings.simplefilter("ignore")
    for step in range(2):
        uq.log(*arrays(10 * number + step), run=run, method="m", split=f"worker{number}", step=step)


def _log(uq: Any, seed: int, found: Found, options: dict[str, Any]) -> None:
    data = arrays(seed)
    start, waited, worked = time.perf_counter(), _without_processor(), time.thread_time()
    try:
        uq.log(*data, **options)
    except BaseException:
        found.raised.append(traceback.format_exc())
    seconds = time.perf_counter() - start
    found.seconds.append(seconds)
    found.blocked.append(seconds - (_without_processor() - waited))
    found.worked.append(time.thread_time() - worked)


def _without_processor() -> float:
    """Seconds that this thread was ready to run and did not, where the system tells (Linux)."""
    with suppress(OSError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    return 0.0


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
