"""On a machine without a browser the tests of pages are skipped with one line; in CI they fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEST = "tests/comparison/test_browser.py::test_the_page_never_scrolls_sideways"


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
@pytest.mark.slow
def test_a_missing_browser_is_told_in_one_line(tmp_path: Path, ci: str, status: int) -> None:
    bare = os.environ | {"PATH": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path), "CI": ci}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", TEST]
    done = subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout
    told = [line for line in done.stdout.splitlines() if "python -m playwright install" in line]
    if ci:
        assert "3 errors" in done.stdout
    else:
        assert "3 skipped" in done.stdout
        assert len(told) == 1
        assert told[0].startswith(
            "3 TESTS OF PAGES DID NOT RUN: no Chromium that starts was found; install Chrom"
        )
