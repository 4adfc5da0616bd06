"""The program, its consoles, and how a mistake is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from uq_tracking._version import __version__
from uq_tracking.errors import UQTrackingError

EXIT_CODES = (
    "Exit codes: 0 done; 1 a mistake in the input, or runs that failed; 2 a mistake in the command line."
)


ORDER = ("log", "report", "plot", "compare", "view", "rescore", "recalibrate", "pool", "sync")
"""Verbs as the help lists them; the others follow."""


class _InOrder(TyperGroup):
    """The verbs that are used most come first."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    cls=_InOrder,
    help="Judge predictive uncertainty where you already compare your models.",
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
messages = Console(stderr=True)
"""Progress and errors, so that what is printed can be piped."""


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show a mistake of the user as one line and exit with 1; anything else is a bug and keeps its traceback."""
    try:
        yield
    except (UQTrackingError, FileNotFoundError) as error:
        messages.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None


def say(text: object) -> None:
    """Print a text as it is."""
    console.print(str(text), markup=False, highlight=False, soft_wrap=True)


def _version(show: bool) -> None:
    if show:
        console.print(__version__, highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Judge predictive uncertainty where you already compare your models."""
