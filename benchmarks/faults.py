"""The whole fault matrix: real processes that fail, and what a training job notices. Writes docs/evidence.md.

``python benchmarks/faults.py`` takes about ten minutes; ``python benchmarks/faults.py folders wandb`` runs these
groups and writes their rows only; with other words, such as ``folders full``, the rows whose faults hold one of
them, and writes nothing.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.pages import part_of, replace_part
from tests.faults.matrix import STEPS, Killed, Row, killed, run_fault
from tests.faults.rows import GROUPS
from tests.faults.stores import WANDB_DEADLINE

ROWS = (*GROUPS, "killed")
HEAD = f"""
Each job logs {STEPS} steps of 400 samples and a final report, with `deadline=2` (W&B: {WANDB_DEADLINE:g}). The fault begins before step 2
and ends before step 6, or later if the table says so. Then `uq-tracking sync` runs, and the run is compared with that of an
undisturbed job: every value of every score at every step, the number of rows, every tag, the description or notes, the
datasets, the view of the experiment, and every stored file, byte for byte.

| tracker | fault | raised | slowest call, s | slowest later step, ms | CPU time of a later step, ms | all calls, s | spooled | left at exit | exit, s | after `sync` |
|---|---|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501  (a table's head is one line)
LEGEND = """
- **slowest call**: the slowest from the fault on. It includes scoring and drawing, which do not count toward the
  deadline. **all calls**: the total for the job.
- **slowest later step**: the slowest step after the one that hit the fault, while the fault lasted, not counting time
  spent waiting for a free CPU; **CPU time of a later step**: the most that any of these steps used. Both are empty if
  the tracker still accepted the steps, however slowly.
- **spooled**: calls in `uq_runs/spool` when the fault ended; **left at exit**: calls that the program had not sent
  when it ended, more than were spooled if the tracker's own writer does not recover within the program. At exit it
  keeps trying for the deadline at most (**exit**: how long the interpreter took to exit, W&B's own shutdown
  included); `sync` sends the rest.
- **after `sync`**: "equal" also says that the job warned once at most and, for an MLflow server, that it needed at
  most 100 MB more memory than the undisturbed one.
"""


def main() -> None:
    groups, words = (
        [word for word in sys.argv[1:] if word in ROWS],
        [w for w in sys.argv[1:] if w not in ROWS],
    )
    start, number = time.perf_counter(), 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        for group in groups or ROWS:
            if group == "killed":
                lines = list(map(told, killed_jobs(Path(place)).items()))
            else:
                found = list(rows_of(group, Path(place), words))
                number += len(found)
                lines = list(map(line, found))
            if not words:
                write(lines)
    print(f"{number} rows in {time.perf_counter() - start:.0f} s")


def rows_of(group: str, place: Path, words: Sequence[str]) -> Iterator[Row]:
    """Run the rows of a group whose faults hold one of the words."""
    for number, (store, fault) in enumerate(GROUPS[group](place / group)):
        if not words or any(word in fault.name for word in words):
            row = run_fault(store, place / f"{group}-row{number}", fault)
            show(row)
            yield row


def write(new: Sequence[str]) -> None:
    """Put a group's lines into the page, in the place of those of the same trackers, or of jobs that were ended."""
    known = part_of("evidence.md", "faults").splitlines()
    known = [text for text in known if text.startswith(("| ", "- Jobs"))]
    own = {of(text) for text in new}
    kept = [text for text in known if of(text) not in own]
    places = [number for number, text in enumerate(known) if of(text) in own]
    beside = [number + 1 for number, text in enumerate(kept) if text.split(",")[0] == new[0].split(",")[0]]
    first = places[0] if places else max(beside, default=len(kept))
    kept[first:first] = new
    rows = [text for text in kept if text.startswith("|") and of(text) != "tracker"]
    ended = [text for text in kept if text.startswith("- ")]
    replace_part("evidence.md", "faults", "\n".join([HEAD.rstrip("\n"), *rows, LEGEND.rstrip("\n"), *ended]))


def of(text: str) -> str:
    """The tracker of a row; what jobs were ended have in common."""
    return text.split("|")[1].strip() if text.startswith("|") else "ended"


def killed_jobs(place: Path) -> dict[str, list[Killed]]:
    """Jobs that keep their calls and are ended at many moments."""
    moments = [0.05 + number / 20 for number in range(20)]
    ended = {
        "SIGKILL": [killed(place / f"kill{n}", after) for n, after in enumerate(moments)],
        "SIGKILL, with the first `sync` killed as well": [
            killed(place / f"sync{n}", after, interrupted_sync=True) for n, after in enumerate(moments[::4])
        ],
        "SIGTERM": [
            killed(place / f"term{n}", after, signal.SIGTERM) for n, after in enumerate(moments[::4])
        ],
    }
    for how, each in ended.items():
        print(told((how, each)))
    return ended


def told(item: tuple[str, list[Killed]]) -> str:
    how, each = item
    kept, damaged, steps, lost = (sum(numbers) for numbers in zip(*map(astuple, each), strict=True))
    return (
        f"- Jobs ended by {how}, at {len(each)} different moments while their folder was unavailable: {steps} calls "
        f"had returned and {kept} were spooled, {damaged} of them damaged; after `sync`, {lost} calls are missing."
    )


def show(row: Row) -> None:
    print(line(row), flush=True)
    for text in (*row.raised, *row.warned[1:]):
        print("   ", text[-300:].replace("\n", " "))


def line(row: Row) -> str:
    cells = [
        row.tracker,
        row.fault,
        raised(row),
        f"{row.slowest:.2f}",
        *map(milliseconds, (row.later, row.later_work)),
    ]
    cells += [f"{sum(row.seconds):.1f}", str(row.kept), str(row.left), f"{row.exit_seconds:.1f}", row.outcome]
    return "| " + " | ".join(cells) + " |"


def raised(row: Row) -> str:
    names = {text.strip().splitlines()[-1].partition(":")[0] for text in row.raised}
    return ", ".join(sorted(names)) or "nothing"


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.0f}"


if __name__ == "__main__":
    main()
