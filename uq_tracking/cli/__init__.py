"""The command line: parse, call a function, print. One file per family of commands."""

from uq_tracking.cli import comparing, discovery, logged, scoring, showing
from uq_tracking.cli.app import app

__all__ = ["app", "comparing", "discovery", "logged", "scoring", "showing"]
