"""Tests for backends to inherit: a backend that passes them can be logged to, rescored and compared.

A backend joins with about fifteen lines in its own test file::

    from uq_tracking.testing import Capabilities, RunContract, StoreContract

    class MyBackend:
        capabilities = Capabilities(where=lambda tag, value: f"{tag} == '{value}'")

        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(tmp_path)

        def series(self, store, run_id, name):
            return [(point.step, point.value) for point in store.client.history(run_id, name)]

        @contextmanager
        def outage(self, store, run):
            yield MyRun(run.id, address_where_nobody_answers)

    class TestRun(MyBackend, RunContract): ...
    class TestStore(MyBackend, StoreContract): ...

A tracker declares what it cannot do in its `Capabilities`; the suite then checks that it says so instead of silently
losing anything, and skips nothing. Needs pytest.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("uq_tracking.testing.runs", "uq_tracking.testing.stores")

from uq_tracking.testing.case import (  # noqa: E402  # noqa: E402
    BackendCase,
    Capabilities,
    sample_curve,
    sample_figure,
    sample_predictions,
)
from uq_tracking.testing.runs import RunContract  # noqa: E402
from uq_tracking.testing.stores import StoreContract  # noqa: E402

__all__ = [
    "BackendCase",
    "Capabilities",
    "RunContract",
    "StoreContract",
    "sample_curve",
    "sample_figure",
    "sample_predictions",
]
