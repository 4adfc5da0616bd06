"""One line for a person who has just logged something: the verdict, and where to view the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from uq_tracking.report import Report

ASKED = "UQ_TRACKING_HINT"
"""1 always writes the line, 0 never."""


def hint(report: Report, pages: Iterable[str | None]) -> None:
    """Write the line to an interactive terminal or notebook; stay silent in an unattended job."""
    where = next((page for page in pages if page), None)
    if where is None or not _is_watched():
        return
    label = "look" if where.startswith("http") else "look with"
    sys.stderr.write(f"uq_tracking: {report.verdict.short}; {label}: {where}\n")


def _is_watched() -> bool:
    """Whether a person is watching."""
    asked = os.environ.get(ASKED)
    if asked in ("0", "1"):
        return asked == "1"
    return "ipykernel" in sys.modules or bool(getattr(sys.stderr, "isatty", lambda: False)())
