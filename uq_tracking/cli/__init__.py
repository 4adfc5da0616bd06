"""The command line: parse, call a verb, print. One file per family of verbs."""

from uq_tracking.cli import comparing, discovery, logged, reproducing, scoring, showing
from uq_tracking.cli.app import app

__all__ = ["app", "comparing", "discovery", "logged", "reproducing", "scoring", "showing"]
