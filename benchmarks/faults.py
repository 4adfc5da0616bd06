"""The whole fault matrix: real processes that fail, and what a training job notices. Writes docs/reliability.md.

``python benchmarks/faults.py`` takes some minutes; ``python benchmarks/faults.py killed sqlite`` runs the rows whose
names hold one of the words, and writes nothing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults import matrix
from tests.faults.matrix import Row, Store, run_job
from tests.wandb_server.server import WandbServer

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
Nothing = Callable[[], None]
KILLED: list[tuple[int, int]] = []
"""Calls that jobs had kept when they were killed, and how many of these are damaged."""


def nothing() -> None:
    """No fault."""


def all_rows(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Row]:
    number = iter(range(1000))

    def job(store: Store, fault: str, start: Nothing, end: Nothing, **more: Any) -> Iterator[Row]:
        if not wanted(f"{store.name} {fault}"):
            return
        if store.calm is None:
            run_job(store, folder / f"calm{next(number)}", **fresh(store))
        row = run_job(store, folder / f"job{next(number)}", fault, start, end, **fresh(store), **more)
        print(
            f"{row.tracker}: {fault}: {row.first:.2f} {row.later:.3f} kept {row.kept} left {row.left}",
            end=" ",
        )
        print(
            f"exit {row.exit_seconds:.1f} raised {row.raised} failed {row.failed} differing {row.differing[:4]}"
        )
        yield row

    def fresh(store: Store) -> dict[str, str]:
        if store.name == "folder":
            return {"run": matrix.new_directory_run(store.folder or folder / "runs")}
        return {"id": uuid.uuid4().hex[:8]} if store.name.startswith("W&B") else {}

    with matrix.MLflowHttp(folder / "http") as http:
        store = http.store()
        well = http.mode("pass")
        for fault, mode in (
            ("500, its health says 200", "500"),
            ("503, its health says 200", "503"),
            ("429, too many requests", "429"),
            ("401, the token has expired", "401"),
            ("403", "403"),
            ("garbage instead of JSON", "garbage"),
            ("answers that break off", "half"),
            ("never answers", "hang"),
            ("each request takes 0.3 s", "slow 0.3"),
        ):
            yield from job(store, fault, http.mode(mode), well)
        yield from job(store, "storage refuses, the API answers", http.mode("status 503 mlflow-artifacts"), well,
                       well_from="exit")  # fmt: skip
        yield from job(store, "stopped (SIGSTOP), then continued", http.stop, http.go_on)
        yield from job(store, "stopped until the job has ended", http.stop, http.go_on, well_from="exit")
        yield from job(store, "killed (SIGKILL), then started", http.server.kill, http.server.start)
        yield from job(store, "killed, started after the job", http.server.kill, http.server.start,
                       well_from="exit")  # fmt: skip
    store = matrix.sqlite_store(folder / "sqlite")
    lock = matrix.locked_database(folder / "sqlite" / "mlflow.db")
    yield from job(store, "database locked by another process", lock.__enter__, leave(lock))
    lock = matrix.locked_database(folder / "sqlite" / "mlflow.db")
    yield from job(store, "locked until the job has ended", lock.__enter__, leave(lock), well_from="exit")
    runs = matrix.directory_store(folder / "runs")
    yield from job(runs, "file system away for a while", *moved(folder / "runs"))
    yield from job(runs, "away until the job has ended", *moved(folder / "runs"), well_from="exit")
    yield from job(runs, "working directory deleted, file system away", *gone(folder), well_from="exit",
                   cwd=str(folder / "gone"), temporary=folder / "missing")  # fmt: skip
    with matrix.small_disk(folder / "disk") as disk:
        full = matrix.directory_store(disk / "runs")
        full.calm, full.folder = runs.calm, disk / "runs"
        yield from job(full, "disk full", lambda: matrix.fill(disk), lambda: matrix.free(disk))
        matrix.fill(disk)
        yield from job(runs, "temporary directory full", nothing, nothing, temporary=disk)
    if wanted("folder killed"):
        kept = [matrix.killed(folder / f"kill{n}", 0.1 + n / 20) for n in range(20)]
        print(f"killed at 20 moments: kept and damaged {kept}")
        KILLED.extend(kept)
    with WandbServer() as server:
        store = matrix.wandb_store(server, folder / "wandb")
        yield from job(store, "503 to everything", faulty(server, ""), faulty(server, None), well_from="end")
        yield from job(
            store,
            "storage refuses, the API answers",
            faulty(server, "/storage"),
            faulty(server, None),
            well_from="end",
        )


def gone(folder: Path) -> tuple[Nothing, Nothing]:
    start, end = moved(folder / "runs")
    (folder / "gone").mkdir()

    def both() -> None:
        start()
        (folder / "gone").rmdir()

    return both, end


def leave(context: object) -> Nothing:
    def end() -> None:
        context.__exit__(None, None, None)  # type: ignore[attr-defined]

    return end


def faulty(server: WandbServer, path: str | None) -> Nothing:
    def change() -> None:
        server.fault = None if path is None else lambda request: 503 if path in request.path else None

    return change


def moved(folder: Path) -> tuple[Nothing, Nothing]:
    away = folder.with_name(f"{folder.name}-away")

    def start() -> None:
        shutil.move(folder, away)
        folder.write_text("a file where the folder was")

    def end() -> None:
        folder.unlink()
        shutil.move(away, folder)

    return start, end


HEAD = """# Reliability

What a training job notices when its tracker fails, measured by [benchmarks/faults.py](../benchmarks/faults.py) on
real processes. Each job logs {steps} steps and a final report with `deadline={deadline:g}`. The fault begins before step 2
and ends before step 6, or after the job where the table says so. Then `uq-tracking sync` runs, and the run is
compared with an undisturbed one: every value of every score at every step, every tag, every stored file byte for byte.

| tracker | fault | raised | slowest call, s | slowest step after it, s | all calls, s | kept | left at the end | end of program, s | after `sync` |
|---|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501  (a table's head is one line)

FOOT = """
- **kept**: calls in `uq_runs/spool` when the fault was over. **left**: those that the program had not sent by its
  end; it tries for the deadline at most, and `sync` sends the rest.
- Calls that the tracker takes, if slowly, are not kept.
- Jobs killed (SIGKILL) at {kills} moments while they kept calls: {entries} entries, {damaged} of them damaged.
- An undisturbed call takes {calm:.2f} s here ({tracker}).
- The W&B server is the project's own ([tests/wandb_server](../tests/wandb_server)), which the real SDK and its core
  run against; what only wandb.ai can show is not in the table. `wandb` sends scalars in the background and repeats
  them by itself.

## How it works

1. **Deadline.** Everything that one `uq.log` waits for, on all trackers together, has one budget: `deadline=`, else
   `UQ_TRACKING_DEADLINE`, else 10 s. Calls run in threads that are left behind when it has passed, three per tracker
   at most; time-outs and other settings of the tracker's package stay as they are.
2. **Circuit breaker.** A tracker that has failed is asked again after 1, 2, 4 ... 60 s by a thread of its own. Until
   it answers, calls are kept at once, without a further warning.
3. **Spool.** A kept call is one file in `./uq_runs/spool`, else in the user's state directory, else in a temporary
   one; written under another name, brought to disk, renamed. It holds all that the call would have written, and for
   which run. Forks, threads and hosts cannot collide.
4. **Recovery.** When the tracker answers, kept calls are sent in order, with the time at which they were made, into
   the same run. What has arrived already changes nothing.
5. **`uq-tracking sync`** sends what was left: into the same run; if that is gone, into one beside it whose tag
   `uq.origin` names it. It may be interrupted, repeated, and run twice at once. `--dry-run` tells what it would do,
   `--keep` keeps the files.

## What is not covered

- A call that no folder takes (every disk full) is lost, with a warning that says so.
- The process that is killed by the system loses the call that it is in; an entry is there whole or not at all.
- Metrics that you log yourself, and starting a run on a tracker that is down, are up to the tracker's package.
"""


def page(rows: list[Row], calm: float, tracker: str) -> str:
    lines = []
    for row in rows:
        after = (
            "equal" if not (row.differing or row.failed) else "; ".join([*row.failed, *row.differing])[:200]
        )
        cells = [row.tracker, row.fault, "nothing" if not row.raised else str(len(row.raised))]
        cells += [
            f"{row.first:.2f}",
            f"{row.later:.3f}",
            f"{sum(row.seconds):.2f}",
            str(row.kept),
            str(row.left),
        ]
        lines.append("| " + " | ".join([*cells, f"{row.exit_seconds:.1f}", after]) + " |")
    head = HEAD.format(steps=matrix.STEPS, deadline=matrix.DEADLINE)
    return (
        head
        + "\n".join(lines)
        + "\n"
        + FOOT.format(
            calm=calm,
            tracker=tracker,
            kills=len(KILLED),
            entries=sum(kept for kept, _ in KILLED),
            damaged=sum(damaged for _, damaged in KILLED),
        )
    )


def main() -> None:
    words = sys.argv[1:]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = list(all_rows(Path(folder), lambda name: not words or any(word in name for word in words)))
    print(f"{len(found)} rows in {time.perf_counter() - start:.0f} s")
    if not words:
        PAGE.write_text(page(found, min(found[0].seconds[1:2]), found[0].tracker), encoding="utf-8")


if __name__ == "__main__":
    main()
