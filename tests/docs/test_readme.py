"""Every code block of the README does what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.pictures

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run_script(text, folder):
    """Run a script as a user would: a process of its own, in a folder of its own."""
    (folder / "script.py").write_text(text)
    fresh = {
        name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")
    }  # others set some
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=fresh, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder in which the Python blocks ran one after the other, and what they printed."""
    folder = tmp_path_factory.mktemp("readme")
    check = """
assert not summary.failed, summary
assert len(summary.done) == 2, summary
"""
    return folder, run_script("\n".join(blocks("python")) + check, folder)


@pytest.mark.slow
def test_the_python_blocks_run_in_order(ran):
    folder, printed = ran
    assert "mc-dropout" in printed
    assert "recalibrated" in printed
    assert (folder / "mlflow.db").exists()


@pytest.mark.slow
def test_the_first_block_prints_what_it_says(ran):
    promised = re.search(r"# (0\.\d+):", blocks("python")[0])
    assert promised is not None
    verdict, coverage = ran[1].splitlines()[:2]
    assert float(coverage) == pytest.approx(float(promised[1]), abs=0.005)
    said = re.search(r"# (Overconfident.*(?:\n# .*)*)", blocks("python")[0])
    assert said is not None
    assert verdict == said[1].replace("\n# ", " ")


def test_the_shell_blocks_name_targets_and_extras_that_exist():
    lines = [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines]
    assert commands
    pyproject = (ROOT / "pyproject.toml").read_text()
    for command in commands:
        if command[0] == "make":
            subprocess.run(["make", "--dry-run", *command[1:]], cwd=ROOT, check=True, capture_output=True)
        else:
            assert command[:2] == ["pip", "install"]
            for extra in re.findall(r"\[(\w+)\]", command[2]):
                assert f"\n{extra} = [" in pyproject


def test_every_picture_and_page_exists():
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", README):
        assert (ROOT / target).exists(), target
