"""A tracker made for the tests: its runs are folders, and it has an active run when told so."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager

from uq_tracking import plugins
from uq_tracking.hookspecs import hookimpl
from uq_tracking.tracking.backend import Backend, BackendStatus
from uq_tracking.tracking.folder import FolderStore


class FolderTracker(Backend):
    def __init__(self, name, active=None, error=None):
        self.name, self.active, self.error = name, active, error

    def status(self):
        return BackendStatus(self.name, usable=True)

    def active_run(self):
        if self.error is not None:
            raise self.error
        return self.active

    def adopt(self, run):
        return None

    def store(self, address, *, scheme=None):
        return FolderStore(address), None


@contextmanager
def plugin(name: str, **functions) -> Iterator[None]:
    """A plugin with these hooks, for a while."""
    module = types.ModuleType(name)
    for hook, result in functions.items():
        setattr(module, hook, hookimpl(lambda result=result: result))
    plugins.manager().register(module, name)
    plugins.forget()
    try:
        yield
    finally:
        plugins.manager().unregister(module)
        plugins.forget()
