"""Nothing heavy is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("mlflow", "wandb", "matplotlib", "torch", "pandas", "sqlalchemy")


def loaded_by(code, tmp_path):
    text = f"{code}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        "import uq_tracking",
        "from uq_tracking import plugins; plugins.backends(); [b.status() for b in plugins.backends().values()]",
        "import uq_tracking as uq; uq.log([1., 2.], [1., 2.5], [.1, .2], figures=False)",
        "from uq_tracking.tracking.resolve import targets_of; targets_of('0' * 32, 'mlflow', name='x')",
    ],
)
def test_no_tracker_is_loaded(code, tmp_path):
    assert loaded_by(code, tmp_path) == "[]"


def test_figures_load_matplotlib_alone(tmp_path):
    code = "import uq_tracking as uq; uq.log([1., 2.], [1., 2.5], [.1, .2])"
    assert loaded_by(code, tmp_path) == "['matplotlib']"
