"""Rescorings that are killed, each a process forked from one that has imported what all of them need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

SCRIPT = """
import importlib, os, sys
import uq_tracking as uq

uri, *needed = sys.argv[1:]
for name in needed:
    importlib.import_module(name)
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        print("process", os.getpid(), flush=True)
        tell = lambda outcome, total: print("outcome", outcome.status, flush=True)
        uq.rescore(uri, alpha=0.8, n_bins=7, progress=tell)
        os._exit(0)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
DRAWING = ("matplotlib.backends.backend_agg", "scipy.optimize", "scipy.stats")


class Rescorings:
    """Rescorings of a place; the last one is that which is killed."""

    def __init__(self, uri, folder, *needed):
        self.file, self.before = folder / "told.txt", 0
        environment = {
            name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"
        }  # a core of its own
        with self.file.open("w") as told:
            self.parent = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", SCRIPT, uri, *DRAWING, *needed],
                stdin=subprocess.PIPE,
                stdout=told,
                stderr=told,
                env={**environment, "PYTHONWARNINGS": "ignore"},
                start_new_session=True,
            )

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        self.parent.stdin.close()
        if failure is not None:
            os.killpg(self.parent.pid, signal.SIGKILL)
        self.parent.wait(60)

    def lines(self):
        """All that is told, in whole lines."""
        return self.file.read_text().split("\n")[:-1]

    def told(self, kind):
        """What the last rescoring has said of a kind."""
        said = (line.partition(" ") for line in self.lines()[self.before :])
        return [rest for first, _, rest in said if first == kind]

    def wait_for(self, kind, count=1, seconds=120):
        """Wait until so much was said."""
        end = time.monotonic() + seconds
        while len(said := self.told(kind)) < count:
            assert self.parent.poll() is None, self.file.read_text()
            assert kind == "ended" or not self.told("ended"), self.file.read_text()
            assert time.monotonic() < end, self.file.read_text()
            time.sleep(0.005)
        return said

    def start(self):
        """Begin the next one; the id of its process."""
        self.before = len(self.lines())
        self.parent.stdin.write(b"\n")
        self.parent.stdin.flush()
        return int(self.wait_for("process")[0])

    def kill(self, process):
        """Kill it, which must not have ended."""
        os.kill(process, signal.SIGKILL)
        assert self.wait_for("ended") == [str(-signal.SIGKILL)], self.file.read_text()
