"""The browser that opens our pages: an installed one, else one that is fetched, else the tests of pages are skipped.

``make test`` runs this file to fetch a Chromium where none is installed. Where none can be had, the tests are skipped
and the last line of the run says so; where ``CI`` is set, they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Names that programs have which Playwright can drive."""

CURE = "install Chromium or Chrome, or run `python -m playwright install --with-deps chromium`"
MISSING = f"no Chromium that starts was found; {CURE}"

FETCH_SECONDS = 600.0


def is_demanded() -> bool:
    """Whether a missing browser is a failure."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def find(playwright: Playwright) -> str | None:
    """Path of a Chromium that starts: from the PATH, or the one that Playwright has downloaded."""
    programs = [*map(shutil.which, INSTALLED), playwright.chromium.executable_path]
    return next((program for program in programs if program and _starts(program)), None)


def _starts(program: str) -> bool:
    """Whether it runs at all: a download may lack its libraries, and some systems install a placeholder."""
    if not Path(program).is_file():
        return False
    try:
        return _quietly([program, "--headless", "--no-sandbox", "--version"], seconds=60)
    except OSError:
        return False


def _quietly(command: list[str], seconds: float = FETCH_SECONDS) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=seconds, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def fetch() -> str | None:
    """Look for a browser, download one, or install the distribution's as root; the first that starts."""
    with sync_playwright() as playwright:
        for way in (lambda: True, _download, _install):
            if way() and (program := find(playwright)):
                return program
    return None


def _download() -> bool:
    return _quietly([sys.executable, "-m", "playwright", "install", "chromium"])


def _install() -> bool:
    """Install Debian's or Ubuntu's package, which brings its libraries."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    impatient = ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-qq"]
    _quietly(["apt-get", *impatient, "update"])
    return _quietly(["apt-get", *impatient, "install", "--yes", "--no-install-recommends", "chromium"])


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A running Chromium; the test is skipped where there is none, and fails where ``CI`` is set."""
    with sync_playwright() as playwright:
        program = find(playwright)
        if program is None and is_demanded():
            pytest.fail(MISSING)
        if program is None:
            pytest.skip(MISSING)
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


def is_skipped_for_it(report: pytest.TestReport) -> bool:
    """Whether a test was skipped because there is no browser."""
    return MISSING in str(report.longrepr)


if __name__ == "__main__":
    found = fetch()
    print(
        f"browser of the tests: {found}" if found else f"NO BROWSER FOR THE TESTS: {MISSING}", file=sys.stderr
    )
    sys.exit(found is None and is_demanded())
