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
losing anything, and skips nothing. These classes need pytest.

`conformance` tells which reading of a score's name a function follows, for other libraries' own tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uq_tracking.testing.runs import (
        BackendCase,
        Capabilities,
        RunContract,
        StoreContract,
        sample_curve,
        sample_figure,
        sample_predictions,
    )

__all__ = [
    "BackendCase",
    "Capabilities",
    "RunContract",
    "StoreContract",
    "sample_curve",
    "sample_figure",
    "sample_predictions",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest

    pytest.register_assert_rewrite(f"{__name__}.runs")
    return getattr(import_module(f"{__name__}.runs"), name)
