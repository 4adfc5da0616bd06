"""Progress and outcome of a rescore or sync, in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from uq_tracking.rescoring.summary import Outcome, Summary
from uq_tracking.rescoring.verb import Progress as Report

STYLE = {"done": "green", "skipped": "dim", "failed": "red"}
MOST = 20
"""Maximum number of table rows for runs with the same status."""


@contextmanager
def progress_bar(console: Console, what: str) -> Iterator[Report]:
    """A progress bar on a terminal; call what it yields with every outcome."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def advance(outcome: Outcome, total: int) -> None:
            bar.update(task, total=total, advance=1)

        yield advance


def show_summary(summary: Summary, console: Console, told: Callable[[str], str]) -> None:
    """Print one line per run, all failed ones last, and the number of each kind; ``told`` words the reasons."""
    table = Table("run", "status", show_edge=False, pad_edge=False)
    sources = any(outcome.source for outcome in summary.outcomes)
    for name in ["from"] * sources + ["what"]:
        table.add_column(name)
    for status in ("done", "skipped", "failed"):
        found = [outcome for outcome in summary.outcomes if outcome.status == status]
        shown = found if status == "failed" else found[:MOST]
        for outcome in shown:
            source = [outcome.source or ""] * sources
            table.add_row(
                escape(outcome.name), status, *source, escape(told(outcome.reason)), style=STYLE[status]
            )
        if len(found) > len(shown):
            table.add_row("...", f"{len(found) - len(shown)} more {status}", style=STYLE[status])
    if summary.outcomes:
        console.print(table)
    console.print(str(summary).partition("\n")[0], markup=False, highlight=False, soft_wrap=True)
