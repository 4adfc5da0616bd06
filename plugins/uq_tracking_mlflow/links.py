"""Addresses of MLflow's pages, without credentials."""

from __future__ import annotations

import shlex
from urllib.parse import urlsplit, urlunsplit

from uq_tracking.errors import redact

CLASSIC = "?workflowType=machine_learning"
"""Without it, MLflow 3 opens its pages for language models."""


def base_address(tracking_uri: str) -> str | None:
    """Return the server's address for a browser, or None if the tracking URI is not a server.

    >>> base_address("https://me:secret@mlflow.example.org/team/")
    'https://mlflow.example.org/team'
    """
    if not tracking_uri.startswith(("http://", "https://")):
        return None
    parts = urlsplit(tracking_uri)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def run_link(tracking_uri: str, experiment_id: str, run_id: str) -> str | None:
    """Return the address of a run's page."""
    base = base_address(tracking_uri)
    return None if base is None else f"{base}/#/experiments/{experiment_id}/runs/{run_id}{CLASSIC}"


def view_command(tracking_uri: str, experiment_id: str) -> str:
    """Return the command that opens an experiment's view from a shell without the tracking URI set.

    >>> view_command("sqlite:///mlflow.db", "1")
    'MLFLOW_TRACKING_URI=sqlite:///mlflow.db uq-tracking view mlflow:1'
    """
    return f"MLFLOW_TRACKING_URI={shlex.quote(redact(tracking_uri))} uq-tracking view mlflow:{experiment_id}"


def experiment_link(tracking_uri: str, experiment_id: str) -> str:
    """Return the address of an experiment's runs, or the command that starts a server which shows them."""
    base = base_address(tracking_uri)
    if base is None:
        return f"mlflow ui --backend-store-uri {redact(tracking_uri)}"
    return f"{base}/#/experiments/{experiment_id}{CLASSIC}"
