"""The plugin is there for every test and example, also where the distribution is not installed."""

from __future__ import annotations

import pytest

import uq_tracking_ordered
from uq_tracking import plugins


@pytest.fixture(autouse=True)
def _registered() -> None:
    if "ordered" not in plugins.tasks():
        plugins.manager().register(uq_tracking_ordered, "ordered")
        plugins.forget()
