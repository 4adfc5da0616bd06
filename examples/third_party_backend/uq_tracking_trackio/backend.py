"""Finds trackio runs: the active one, one passed by the user, or the project behind an address."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any

from uq_tracking.errors import BackendError
from uq_tracking.tracking.backend import Backend, BackendStatus, Run, RunStore

_HINT = "pip install trackio"


class TrackioBackend(Backend):
    """trackio's local projects; runs on a Space or a server are refused."""

    name = "trackio"

    def status(self) -> BackendStatus:
        """Return the installed version of trackio, from its metadata."""
        try:
            return BackendStatus(self.name, usable=True, version=metadata.version("trackio"))
        except metadata.PackageNotFoundError:
            return BackendStatus(self.name, usable=False, hint=_HINT)

    def active_run(self) -> Run | None:
        """Return the run that ``trackio.init`` opened, if trackio is loaded at all."""
        variable = getattr(sys.modules.get("trackio.context_vars"), "current_run", None)
        live = None if variable is None else variable.get()
        return None if live is None else _of_live(live)

    def adopt(self, run: Any) -> Run | None:
        """Adopt what ``trackio.init`` or ``trackio.Api().runs`` returns."""
        if _is_a(run, "trackio", "Run"):
            return _of_live(run)
        if _is_a(run, "trackio.api", "Run"):
            from uq_tracking_trackio.run import TrackioRun

            return TrackioRun(run.project, run.id, run.name)
        return None

    def store(self, address: str, *, scheme: str | None = None) -> tuple[RunStore, str | None]:
        """Open ``PROJECT`` or ``PROJECT/RUN``, where the run is an id or a name."""
        project, _, run = address.partition("/")
        if not project:
            raise BackendError(
                "trackio: does not name a project; write trackio:PROJECT or trackio:PROJECT/RUN"
            )
        try:
            from uq_tracking_trackio.store import TrackioStore
        except ImportError as error:
            raise BackendError(f"trackio cannot be imported ({error}); {_HINT}") from error
        store = TrackioStore(project)
        return store, store.id_of(run) if run else None


def _is_a(run: Any, module: str, name: str) -> bool:
    """Return whether it is an instance of a trackio class, without importing trackio."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(run, kind)


def _of_live(live: Any) -> Run:
    from uq_tracking_trackio.run import TrackioRun

    if live.url is not None:
        raise BackendError(f"trackio sends run {live.name!r} to {live.url}; only local runs can be logged to")
    return TrackioRun(live.project, live.id, live.name, live)
