"""MLflow: log to the active run and read runs back, with any tracking URI that MLflow accepts.

Importing this package does not import ``mlflow``; that happens when a run or a store is used.
"""

from __future__ import annotations

from uq_tracking.hookspecs import hookimpl
from uq_tracking.tracking.backend import Backend


@hookimpl
def uq_backends() -> list[Backend]:
    """Return the MLflow backend."""
    from uq_tracking_mlflow.backend import MLflowBackend

    return [MLflowBackend()]
