"""Scores the same data in every container, dtype, order, offset and scale, with 4 GB of addresses.

Scores must be equal, or the data refused because float64 cannot hold them. ``python benchmarks/same.py`` tries
100 000 cases in two hours; ``python benchmarks/same.py CASES [FIRST]`` so many. What is found belongs into
tests/fuzz/test_same.py. Ends with 1 when something is found.
"""

from __future__ import annotations

import resource
import sys
import traceback
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fuzz.same import case

LIMIT = 4 * 2**30
"""Bytes of address space."""


def main() -> None:
    number, first = ([int(text) for text in sys.argv[1:]] + [100_000, 0][len(sys.argv) - 1 :])[:2]
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    outcomes: Counter[str] = Counter()
    for each in range(first, first + number):
        try:
            found = case(Random(f"same {each}"))
        except Exception:
            found = traceback.format_exc()
        known = found in ("equal", "refused", "not the same")
        outcomes[found if known else "found"] += 1
        if not known:
            print(f"case {each}: {found}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(", ".join(f"{count} {name}" for name, count in outcomes.items()), f"; {peak} MB at most")
    sys.exit(1 if outcomes["found"] else 0)


if __name__ == "__main__":
    main()
