"""The command line: parse, call a function, print. One file per family of commands."""

from uq_tracking.cli import discovery, logged, scoring
from uq_tracking.cli.app import app

__all__ = ["app", "discovery", "logged", "scoring"]
