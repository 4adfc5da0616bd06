"""The page of a comparison in a tracker."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from uq_tracking.comparison.collect import PAGE_FILE
from uq_tracking.errors import BackendError
from uq_tracking.tracking.resolve import targets_of
from uq_tracking.tracking.run_writer import RunWriter

if TYPE_CHECKING:
    from uq_tracking.comparison.result import Comparison

RUN_NAME = "uq comparison"


def log_page(comparison: Comparison, run: Any = None) -> None:
    """Write the page into a run, or into a new one where an address names none; see ``Comparison.log``."""
    targets = targets_of(run, None, name=RUN_NAME)
    if not targets:
        raise BackendError(
            "no tracker has an active run; pass run=, for example mlflow:EXPERIMENT, or write a file with to_html"
        )
    with TemporaryDirectory(prefix="uq_tracking_") as folder:
        path = Path(folder) / PAGE_FILE
        comparison.to_html(path)
        writers = [RunWriter(target) for target in targets]
        for writer in writers:
            writer.write_together([("the comparison", lambda run: run.log_file(path, PAGE_FILE))])
            writer.close()
    problems = [problem for writer in writers if (problem := writer.problem())]
    if problems:
        raise BackendError(" ".join(problems))
