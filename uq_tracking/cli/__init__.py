"""The command line: parse, call a function, print. One file per family of commands."""

from uq_tracking.cli import discovery, files, runs
from uq_tracking.cli.app import app

__all__ = ["app", "discovery", "files", "runs"]
