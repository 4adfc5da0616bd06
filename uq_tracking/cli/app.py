"""The program, its consoles, and how errors are shown."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from uq_tracking import plugins
from uq_tracking._version import __version__
from uq_tracking.cli.options import PARSERS, SHARED
from uq_tracking.errors import PluginError, SettingsError, TrackingWarning, UQTrackingError, warn
from uq_tracking.formatting import PLAIN, with_options
from uq_tracking.typed import cached_property

HELP = {"help_option_names": ["-h", "--help"]}
EXIT_CODES = "Exit codes: 0 success; 1 invalid input or failed runs; 2 invalid command line; 3 --fail-if."


ORDER = ("log", "report", "plot", "compare", "view", "rescore", "recalibrate", "pool", "sync")
"""Commands in the order the help lists them; the others follow."""


ELSEWHERE = {"reproduce": "uq-tracking-papers"}
"""Commands of distributions that may not be installed."""


class _Commands(TyperGroup):
    """The package's commands, most-used first, and those that plugins bring."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(sys.stdout, TextIOWrapper):  # a terminal without our symbols shows plain letters
            sys.stdout.reconfigure(errors=PLAIN)
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: Any) -> list[str]:
        names = [*super().list_commands(ctx), *self._brought]
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name) or self._brought.get(cmd_name)
        if found is None and cmd_name in ELSEWHERE:
            ctx.fail(f"{cmd_name} comes with another distribution: pip install {ELSEWHERE[cmd_name]}")
        return found

    @cached_property
    def _brought(self) -> dict[str, Any]:
        """Commands of plugins; one that cannot be made is reported and left out."""
        found: dict[str, Any] = {}
        with shown_errors(main):
            for name, function in plugins.commands().items():
                try:
                    if name in self.commands:
                        raise PluginError("a command of uq-tracking has that name; rename it")
                    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
                    alone.command(name, context_settings=HELP)(made(function))
                    found[name] = typer.main.get_command(alone)
                except Exception as error:  # another package's function may have any signature
                    warn(f"command {name!r} of {function.__module__} was skipped: {error}")
        return found


app = typer.Typer(
    cls=_Commands,
    help="Judge predictive uncertainty where you already compare your models.",
    epilog=EXIT_CODES,
    context_settings=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console(emoji=False)
messages = Console(stderr=True, emoji=False)
"""Progress and errors go to stderr, so that output can be piped. Names such as ``:smile:`` stay as they are."""


def made(function: Callable[..., None], *shared: str) -> Callable[..., None]:
    """Give a function some options of `SHARED` besides its own, and show users' mistakes in it in one line.

    It receives those that are given, parsed, as keyword arguments.
    """
    own = signature(function, eval_str=True)
    items = own.parameters.values()
    options = [item for item in items if item.kind is not item.VAR_KEYWORD and item.name not in shared]
    options += [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=SHARED[name])
        for name in shared
    ]

    @wraps(function)
    def command(**given: Any) -> None:
        with shown_errors(command):
            for name in shared:
                value = given.pop(name)
                if value is not None:
                    given[name] = PARSERS[name](value) if name in PARSERS else value
            function(**given)

    vars(command)["__signature__"] = own.replace(parameters=options)
    command.__annotations__ = {item.name: item.annotation for item in options}
    return command


def command(*shared: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command of the program, with some options of `SHARED`."""
    return lambda function: app.command()(made(function, *shared))


@contextmanager
def shown_errors(command: Callable[..., None]) -> Iterator[None]:
    """Show a user's mistake in one line and exit with 1; anything else is a bug and keeps its traceback.

    Warnings take a line each. Messages name the options of the command, not the arguments of functions.
    """

    def show_warning(message: Warning | str, *_about: object, **_more: object) -> None:
        _tell(f"warning: {in_options(str(message), command)}", "yellow")

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", TrackingWarning)
            warnings.showwarning = show_warning
            yield
    except (UQTrackingError, FileNotFoundError) as error:
        _tell(f"error: {in_options(str(error), command)}", "red")
        raise typer.Exit(1) from None


def in_options(text: str, command: Callable[..., None]) -> str:
    """A message with the command's options in place of the arguments that it names."""
    names = [name for name, item in signature(command).parameters.items() if item.default is not item.empty]
    options = {name: f"--{name.replace('_', '-')}" for name in names}
    place = options.get("to") or options.get("log")  # what functions call the run to write to
    if place is not None:
        options["run"] = place
    if "calibration" in options:
        text = text.replace("calibration=True", "calibration='halves'")
    return with_options(text, options)


def _tell(text: str, style: str) -> None:
    messages.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def prepared(path: Path) -> Path:
    """The path of a file to write, once its folder exists."""
    if path.is_dir():
        raise SettingsError(f"{path} is a folder; name the file to write")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error}") from error
    return path


def say(text: object) -> None:
    """Print text verbatim."""
    console.print(str(text), markup=False, highlight=False, soft_wrap=True)


def _version(show: bool) -> None:
    if show:
        console.print(__version__, highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Judge predictive uncertainty where you already compare your models."""
