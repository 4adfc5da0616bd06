"""Damages files of every kind and reads them, and passes nonsense to the verbs. Writes docs/evidence.md.

A reader returns something sound or refuses by its own errors; a verb scores or refuses.
``python benchmarks/fuzz.py`` tries 100 000 cases of each kind, in over an hour; ``python benchmarks/fuzz.py CASES
NAME ...`` so many of these kinds, and writes their rows only. ``UQ_FUZZ_SEED`` names other cases. What is found
belongs into tests/fuzz. Ends with 1 when something is found.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from benchmarks.fuzz_cases import Case, cases, outcome
from benchmarks.pages import part_of, replace_part

SEED = int(os.environ.get("UQ_FUZZ_SEED", "0"))
LONGEST = 20
"""Seconds after which a case counts as a hang, which is a finding."""
MEMORY = Path("/dev/shm")
HEAD = """
| file read or function called | cases | accepted | refused | findings |
|---|---|---|---|---|
"""


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    found = 0
    signal.signal(signal.SIGALRM, _hangs)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        os.chdir(place)
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        for name, case in cases(Path(place)):
            if not sys.argv[2:] or name in sys.argv[2:]:
                start = time.perf_counter()
                outcomes, bad = tried(name, case, number)
                found += len(bad)
                row = f"{outcomes['read']} | {outcomes['refused']} | {len(bad)} |"
                print(f"| {name} | {number} | {row} {time.perf_counter() - start:.0f} s", flush=True)
                for text, first in bad.items():
                    print(f"  {outcomes[text]} times, first in case {first}: {text}", flush=True)
                write(name, f"| {name} | {number} | {row}")
    sys.exit(1 if found else 0)


def tried(name: str, case: Case, number: int) -> tuple[Counter[str], dict[str, int]]:
    """How often each outcome was found, and the first case of each that is none."""
    outcomes: Counter[str] = Counter()
    bad: dict[str, int] = {}
    for each in range(number):
        signal.alarm(LONGEST)
        found = outcome(case, Random(f"{SEED} {name} {each}"))
        outcomes[found] += 1
        if found not in ("read", "refused"):
            bad.setdefault(found, each)
    signal.alarm(0)
    return outcomes, bad


def _hangs(*_: object) -> None:
    raise TimeoutError(f"a case takes more than {LONGEST} s")


def write(name: str, row: str) -> None:
    """Put a row into the page's table, in the place of the older one."""
    rows = [line for line in part_of("evidence.md", "fuzz").splitlines() if line.startswith("|")][2:]
    known = {line.split("|")[1].strip(): line for line in rows} | {name: row}
    replace_part("evidence.md", "fuzz", HEAD + "\n".join(known.values()))


if __name__ == "__main__":
    main()
