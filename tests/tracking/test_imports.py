"""Nothing heavy is loaded before it is used."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("mlflow", "wandb", "matplotlib", "torch", "pandas", "sqlalchemy")
STEPS = (
    "import uq_tracking as uq",
    "from uq_tracking import plugins; plugins.backends(); [b.status() for b in plugins.backends().values()]",
    "uq.log([1., 2.], [1., 2.5], [.1, .2], figures=False)",
    "from uq_tracking.tracking.resolve import targets_of; targets_of('0' * 32, 'mlflow', name='x')",
    "uq.log([1., 2.], [1., 2.5], [.1, .2])",
)


def test_no_tracker_is_loaded_and_figures_load_matplotlib_alone(tmp_path):
    tell = f"print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    lines = ["import json, sys"]
    for step in STEPS:
        lines += [step, tell]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[], [], [], [], ["matplotlib"]]
