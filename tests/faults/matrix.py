"""The fault matrix: a training job on real processes that fail, and whether its run ends as an undisturbed one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.processes import Job, environment
from tests.faults.stores import Content, Store, differences, directory_store

STEPS = 8
SICK_STEP, WELL_STEP = 2, 6
SICK_FROM = f"step{SICK_STEP}"
MEMORY = 100.0
"""MB that a disturbed job may need more than an undisturbed one."""
OF_JOB = ("workers", "finish_timeout", "split", "figures")
"""Options by which an undisturbed job differs from another."""

Change = Callable[[], object]


def nothing() -> None:
    """No fault."""


@dataclass(frozen=True)
class Fault:
    """What fails in the middle of a job, and until when."""

    name: str
    start: Change = nothing
    end: Change = nothing
    until: str = f"step{WELL_STEP}"
    """A step, "end" (before the tracker's own end of the run), or "exit" (of the program)."""
    job: dict[str, Any] = field(default_factory=dict)
    """Options of the job."""
    temporary: Path | None = None
    """Its temporary directory."""
    interruption: int | None = None
    """Sent to the job inside the call that finds the fault."""
    syncs: int = 1
    """How many processes send at the same time what is left."""
    wandb_sync: Path | None = None
    """Folder whose runs W&B's own command sends too, as its users do."""
    instead: Callable[[str], str] = str
    """The run that holds the rest, where the job's own is gone."""
    compare: Callable[[Content], Content] = lambda content: content
    """The part of the run in which it must be as an undisturbed one."""
    loses: str = ""
    """What cannot be restored, in words."""


@dataclass
class Row:
    """What one fault did."""

    tracker: str
    fault: str
    seconds: list[float] = field(default_factory=list)
    blocked: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    sick: range = range(0)
    """The calls after the one that found the fault, while it lasted."""
    kept: int = 0
    """Calls in the spool when the fault was over."""
    left: int = 0
    """Calls in the spool when the program had ended."""
    exit_seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    """What `sync` could not send."""
    differing: list[str] = field(default_factory=list)
    """Fields in which the run differs from an undisturbed one."""
    loses: str = ""
    memory: float = 0.0
    """The most that the job has used, in MB."""

    @property
    def slowest(self) -> float:
        """Seconds of the slowest call from the fault on; the very first call loads the tracker's package."""
        return max(self.seconds[SICK_STEP:])

    @property
    def later(self) -> float | None:
        """Seconds that the slowest step blocked that was kept after the one that found the fault."""
        return max((self.blocked[step] for step in self.sick), default=None) if self.are_kept else None

    @property
    def later_work(self) -> float | None:
        """Processor time of the most expensive of these steps."""
        return max((self.worked[step] for step in self.sick), default=None) if self.are_kept else None

    @property
    def are_kept(self) -> bool:
        """Whether the steps went into the spool, not to the tracker."""
        return self.kept >= len(self.sick)

    @property
    def outcome(self) -> str:
        """What `sync` has restored."""
        wrong = [*self.failed, *self.differing]
        return "; ".join(wrong)[:300] if wrong else self.loses or "equal"


def spooled(folder: Path) -> int:
    return len([*folder.glob("uq_runs/spool/*.zip"), *folder.glob("state/uq_tracking/uq_runs/spool/*.zip")])


def run_fault(store: Store, folder: Path, fault: Fault) -> Row:
    """Run a job with the fault, `sync` what is left, and compare its run with an undisturbed one."""
    options = json.dumps({key: fault.job[key] for key in OF_JOB if key in fault.job}, sort_keys=True)
    if options not in store.calm:
        calm = _run(store, folder / "calm", Fault("none", job=json.loads(options)), 60.0)
        if calm.raised or calm.failed or calm.warned:
            raise RuntimeError(f"an undisturbed job: {calm.raised} {calm.failed} {calm.warned}")
        store.calm[options] = store.content((folder / "calm" / "run").read_text())
        store.calm_memory[options] = calm.memory
    row = _run(store, folder / "job", fault, store.deadline)
    found = store.content(fault.instead((folder / "job" / "run").read_text()))
    row.differing = differences(fault.compare(store.calm[options]), fault.compare(found))
    if len(told := [text for text in row.warned if not text.startswith("finish: ")]) > 1:
        row.differing.append(f"{len(told)} warnings")
    if (more := row.memory - store.calm_memory[options]) > MEMORY:
        row.differing.append(f"the job needed {more:.0f} MB more")
    return row


def _run(store: Store, folder: Path, fault: Fault, deadline: float) -> Row:
    folder.mkdir(parents=True)
    row = Row(store.name, fault.name, loses=fault.loses)
    until_step = int(fault.until.removeprefix("step")) if fault.until.startswith("step") else STEPS
    row.sick = range(SICK_STEP + 1, until_step)
    marks = [] if fault.name == "none" else [SICK_FROM, *([fault.until] if fault.until != "exit" else [])]
    given = {"folder": str(folder), "steps": STEPS, "marks": marks}
    given |= {**store.arguments, **store.new(), **fault.job}
    variables = {"UQ_TRACKING_DEADLINE": str(deadline), "XDG_STATE_HOME": str(folder / "state")}
    variables |= store.variables | ({} if fault.temporary is None else {"TMPDIR": str(fault.temporary)})
    job = Job(folder, given, variables)
    job.start()
    try:
        found = _disturbed(job, fault, row) if marks else job.result()
    finally:
        job.kill()
    row.seconds, row.blocked, row.worked = found["seconds"], found["blocked"], found["worked"]
    row.raised, row.warned = found["raised"], found["warned"]
    row.memory = found["memory"]
    row.exit_seconds, row.left = found["exit_seconds"], spooled(folder)
    if fault.wandb_sync is not None:
        _wandb_sync(fault.wandb_sync, variables)
    row.failed = synced(folder, variables, fault.syncs)
    return row


def _disturbed(job: Job, fault: Fault, row: Row) -> dict[str, Any]:
    is_over = False
    try:
        job.reached(SICK_FROM)
        fault.start()
        job.go_on(SICK_FROM)
        if fault.interruption is not None:
            time.sleep(0.7)  # the call waits for the tracker
            job.send(fault.interruption)
        if fault.until != "exit":
            job.reached(fault.until)
            row.kept = spooled(job.folder)
            is_over = True
            fault.end()
            job.go_on(fault.until)
        return job.result()
    finally:
        if not is_over:
            row.kept = spooled(job.folder)
            fault.end()


def _wandb_sync(folder: Path, variables: dict[str, str]) -> None:
    runs = [str(path) for path in folder.glob("run-*")]
    command = [sys.executable, "-m", "wandb", "sync", "--no-skip-online", *runs]
    subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, timeout=300, check=True
    )


def synced(folder: Path, variables: dict[str, str], processes: int = 1) -> list[str]:
    """Send what is left as a user would, in so many processes at once; the reasons of what could not be sent."""
    code = "import json, uq_tracking as uq; print(json.dumps([o.reason for o in uq.sync().failed]))"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=folder,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    failed: list[str] = []
    for process in started:
        told, errors = process.communicate(timeout=300)
        failed += json.loads(told.splitlines()[-1]) if process.returncode == 0 else [errors[-500:]]
    return failed


@contextmanager
def small_disk(folder: Path, size: str = "4m") -> Iterator[Path]:
    """A disk of its own, which a file can fill; PermissionError where nobody may mount one."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise PermissionError(f"nothing can be mounted at {folder}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(folder: Path) -> None:
    """Write until nothing fits."""
    with suppress(OSError), (folder / "ballast").open("wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()


def free(folder: Path) -> None:
    (folder / "ballast").unlink()


def moved(folder: Path) -> tuple[Change, Change]:
    """Take a folder away, as a file system that is not mounted; and bring it back."""
    away = folder.with_name(f"{folder.name}-away")

    def start() -> None:
        folder.rename(away)
        folder.write_text("a file where the folder was")

    def end() -> None:
        folder.unlink()
        away.rename(folder)

    return start, end


@dataclass
class Killed:
    """What a job leaves that a signal has ended."""

    kept: int = 0
    damaged: int = 0
    steps: int = 0
    """Calls that had returned."""
    lost: int = 0
    """Of these, how many the run lacks, or holds with other values, after `sync`."""


def killed(
    folder: Path, seconds: float, number: int = signal.SIGKILL, *, interrupted_sync: bool = False
) -> Killed:
    """End a job that keeps its calls after so many seconds; then `sync`, and look what is there.

    With ``interrupted_sync`` a first `sync` is killed as well, after so many seconds.
    """
    from uq_tracking.errors import FileFormatError
    from uq_tracking.tracking.spool import entries, read_entry

    folder.mkdir(parents=True)
    store = directory_store(folder / "runs")
    run = store.new()["run"]
    arguments = {"folder": str(folder), "steps": 10_000, "marks": [SICK_FROM], "run": run}
    variables = {"XDG_STATE_HOME": str(folder / "state")}
    job = Job(folder, arguments, variables)
    job.start()
    job.reached(SICK_FROM)
    start, end = moved(folder / "runs")
    start()
    job.go_on(SICK_FROM)
    time.sleep(seconds)
    job.kill(number)
    found = Killed()
    for path in entries(folder / "uq_runs"):
        found.kept += 1
        try:
            read_entry(path)
        except FileFormatError:
            found.damaged += 1
    end()
    if interrupted_sync:
        _killed_sync(folder, variables, seconds)
    synced(folder, variables)
    there = dict(store.content(run)["series"][_rmse()])
    done = [int(line) for line in (folder / "done").read_text().splitlines()]
    found.steps = len(done)
    found.lost = sum(abs(there.get(step, float("inf")) - _rmse_of(step)) > 1e-12 for step in done)
    return found


def _killed_sync(folder: Path, variables: dict[str, str], seconds: float) -> None:
    code = "import uq_tracking as uq, pathlib; pathlib.Path('syncing').touch(); uq.sync()"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=folder, env=environment(**variables))
    while not (folder / "syncing").exists():
        time.sleep(0.01)
    time.sleep(0.1 + seconds / 4)
    process.kill()
    process.wait()


def _rmse() -> str:
    from uq_tracking.tracking.names import scalar_name

    return scalar_name("rmse", None)


def _rmse_of(step: int) -> float:
    import numpy as np

    from tests.faults.job import arrays

    truth, mean, _ = arrays(step)
    return float(np.sqrt(np.mean((mean - truth) ** 2)))
