"""Find the run that a user means: from URIs, run objects, run ids and active runs, in the process that may log."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from uq_tracking import plugins
from uq_tracking.checks import as_names, value_text
from uq_tracking.errors import (
    BackendError,
    NoRunHereError,
    RunFinishedError,
    RunNotFoundError,
    SettingsError,
    UnknownBackendError,
    log_once,
    printable,
    warn,
)
from uq_tracking.tracking.backend import Backend, Run, RunStore
from uq_tracking.tracking.names import ORIGIN_TAG


@dataclass
class Target:
    """A run that will be written to; ``open`` is the first step that may contact the tracker."""

    backend: str
    label: str
    """Human-readable name, or the address; no credentials."""
    given: Callable[[], Run] | None = None
    """Returns the run; None for an address, of a run or of a place for new ones."""
    place: str = ""
    """Place of the tracker: runs in one place fail together; no credentials."""
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Name and tags of a run to be created."""
    is_joined: bool = False
    """True if later calls join the run that the first one makes."""
    uri: str | None = None
    """Address of the run itself, once it is known."""
    is_new: bool = False
    """True if a run is made, or was to be made, when it is opened."""

    def open(self) -> Run:
        """Open the run: that of an address is made once, and then reopened.

        Raises
        ------
        BackendError
            The tracker has been set to another place since.
        """
        given = None if self.given is None else self.given()
        check_place(self.backend, self.place, None if given is None else given.place)
        run = self._found() if given is None else given
        self.uri = run.uri
        return run

    def _found(self) -> Run:
        """Return the run of an address, made if it is new."""
        if self.uri is not None:
            return reopened(self.uri)
        store, run_id = open_store(self.label)
        if run_id is not None:
            return store.reopen(run_id)
        is_first, self.is_new = not self.is_new, True
        return store.create(self.name, self.tags) if is_first else create_once(store, self.name, self.tags)


def find_backend(name: str) -> Backend:
    """Look up a backend by its name or one of its URI schemes.

    Raises
    ------
    UnknownBackendError
        No installed plugin provides it.
    """
    found = plugins.backends()
    for backend in found.values():
        if name == backend.name or name in backend.schemes:
            return backend
    schemes = sorted({scheme for backend in found.values() for scheme in (backend.name, *backend.schemes)})
    raise UnknownBackendError(
        f"no installed backend is called {name!r}; choose from {', '.join(schemes)} (see `uq-tracking backends`)"
    )


def check_place(tracker: str, place: str, current: str | None = None) -> None:
    """Raise BackendError if a call for one server would go to another, as the tracker is set now."""
    current = find_backend(tracker).place("") if current is None else current
    if "://" in place and current and current != place:
        raise BackendError(
            f"it belongs to {place}, but {tracker} is set to {current}; set the former, as by MLFLOW_TRACKING_URI or "
            "WANDB_BASE_URL, and sync again"
        )


def open_store(uri: str) -> tuple[RunStore, str | None]:
    """Open the store that a URI names; also return the run id if it names a run.

    Parameters
    ----------
    uri
        ``mlflow:EXPERIMENT[/RUN_ID]``, ``wandb:ENTITY/PROJECT[/RUN_ID]``, ``dir:PATH``, or another plugin's.

    Raises
    ------
    BackendError
        It is not a URI, no backend handles it (UnknownBackendError), its tracker is not installed or does not answer,
        or it has no such experiment or run (RunNotFoundError).
    """
    if not isinstance(uri, str):
        raise SettingsError(
            f"an address of runs is text such as mlflow:EXPERIMENT or dir:PATH, not {value_text(uri)}"
        )
    scheme, colon, address = uri.partition(":")
    if not colon:
        raise BackendError(
            f"{uri!r} is not an address of runs; write, for example, mlflow:{uri} or dir:{uri}"
        )
    backend = find_backend(scheme)
    check_usable(backend)
    return backend.store(address, scheme=scheme)


def create_once(store: RunStore, name: str, tags: Mapping[str, str]) -> Run:
    """Create a run, or reopen the one of the same ``uq.origin``: an answer that was lost may have made it."""
    try:
        made = next((run for run in store.runs() if run.tags.get(ORIGIN_TAG) == tags[ORIGIN_TAG]), None)
    except RunNotFoundError:  # the experiment is created with its first run
        made = None
    return store.create(name, tags) if made is None else store.reopen(made.run_id)


def check_usable(backend: Backend) -> None:
    """Raise BackendError, with the install command, unless the tracker's package is installed."""
    status = backend.status()
    if not status.usable:
        what = "is not installed" if status.version is None else "cannot be used here"
        raise BackendError(f"{status.name} {what}; {status.hint}")


def reopened(uri: str) -> Run:
    """Reopen the run that a URI names, to write more to it.

    Raises
    ------
    BackendError
        As for `open_store`; RunNotFoundError also if the URI does not name a run.
    """
    store, run_id = open_store(uri)
    if run_id is None:
        raise RunNotFoundError(f"{uri} does not name a run")
    return store.reopen(run_id)


def address_target(uri: str, name: str) -> Target:
    """The target of an address that a person typed."""
    (target,) = targets_of(uri, None, name=printable(name), every_rank=True)
    return target


def targets_of(
    run: Any,
    to: str | Sequence[str] | None,
    *,
    name: str,
    tags: Mapping[str, str] | None = None,
    every_rank: bool = False,
) -> list[Target]:
    """Determine which runs to write to, without contacting a tracker.

    Parameters
    ----------
    run
        A tracker's run object or run id, a `Run`, a URI, a path, or a list of these; None for the active runs.
    to
        Names of the backends to consider; None for all.
    name, tags
        For a run to be created, where a URI names only a store.
    every_rank
        Treat every process of a distributed job like rank zero. Otherwise the others use only active runs of
        their own, and loggers only if they have a run here.

    Returns
    -------
    list of Target
        Without a given or active run, the one that ended last in this thread; empty if there is none, or if the run
        is rank zero's.

    Raises
    ------
    UnknownBackendError
        ``to`` or the scheme of a URI does not name an installed backend.
    SettingsError
        No backend recognizes ``run``, or it is a scheme without an address.
    """
    backends = (
        list(plugins.backends().values()) if to is None else [find_backend(n) for n in as_names("to", to)]
    )
    leads = every_rank or is_rank_zero()
    if run is not None:
        runs = run if isinstance(run, list | tuple) else [run]
        targets = [_given(item, backends, name, tags, leads) for item in runs]
        return [target for target in targets if target is not None]
    active = list(_runs_of(backends, "active_run" if leads else "own_run", "active run"))
    if active or not leads:
        return active
    ended = next(_runs_of(backends, "ended_run", "run that ended last"), None)
    if ended is None:
        return []
    log_once(
        logging.WARNING,
        "no tracker has an active run: logging to the run that ended last, %s; to log elsewhere, start a run first "
        "or pass run=",
        ended.label,
    )
    return [ended]


def _runs_of(backends: Sequence[Backend], which: str, words: str) -> Iterator[Target]:
    """Ask backend by backend for its run; a broken plugin or tracker does not stop the others."""
    for backend in backends:
        try:
            found = getattr(backend, which)()
        except (Exception, SystemExit) as error:
            warn(f"{backend.name}: cannot determine the {words}: {error}; pass it with run=")
            continue
        if found is not None:
            yield _opened(backend.name, found)


def _given(
    run: Any, backends: Sequence[Backend], name: str, tags: Mapping[str, str] | None, leads: bool
) -> Target | None:
    """The target of one given run; None for a logger whose run belongs to rank zero."""
    if isinstance(run, Target):
        return run
    if isinstance(run, Run):
        return _opened(run.uri.partition(":")[0], run)
    if isinstance(run, str) and _is_uri(run):
        return _addressed(run, name, tags)
    for backend in backends:
        try:
            adopted = backend.adopt(run)
        except Exception as error:  # it is this backend's run, but cannot be written to
            if isinstance(error, NoRunHereError) and not leads:
                return None
            address = error.uri if isinstance(error, RunFinishedError) else _describe(run)
            return Target(backend.name, address, partial(_fail, error))
        if adopted is not None:
            return _opened(backend.name, adopted)
    names = ", ".join(backend.name for backend in backends)
    raise SettingsError(
        f"run={_describe(run)} is not a run of {names}; pass the tracker's run object, its run id, or an address "
        "such as mlflow:EXPERIMENT/RUN_ID or dir:PATH"
    )


def _fail(error: Exception) -> Run:
    raise error


def _opened(backend: str, run: Run) -> Target:
    return Target(backend, run.uri, lambda: run, place=run.place)


def _is_uri(text: str) -> bool:
    scheme, colon, _ = text.partition(":")
    return bool(colon) and len(scheme) > 1 and os.sep not in scheme


def _addressed(uri: str, name: str, tags: Mapping[str, str] | None) -> Target:
    scheme, _, address = uri.partition(":")
    backend = find_backend(scheme)
    if not address.strip():
        raise SettingsError(f"run={uri!r} names no place; write for example {scheme}:depth")
    text = {ORIGIN_TAG: uuid.uuid4().hex[:12]} | {key: str(value) for key, value in (tags or {}).items()}
    return Target(backend.name, uri, None, backend.place(address, scheme=scheme), name, text)


def _describe(run: Any) -> str:
    if run is None or isinstance(run, str | int | float | bool):
        return repr(run)
    return object.__repr__(run)  # tells runs apart


_LAUNCHERS = (
    (("RANK",), "WORLD_SIZE"),  # torchrun, accelerate, deepspeed
    (("LOCAL_RANK", "NODE_RANK"), "WORLD_SIZE"),  # Lightning's own launcher
    (("OMPI_COMM_WORLD_RANK",), "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    (("PMI_RANK",), "PMI_SIZE"),  # MPICH, Intel MPI
    (("SLURM_PROCID",), "SLURM_NTASKS"),  # srun
)
"""Variables that are zero on rank zero, and the number of processes, by launcher: inner before outer."""


def is_rank_zero() -> bool:
    """Return whether this process is the first of its job, or alone.

    The process group of ``torch.distributed`` decides if there is one; else the environment set by the innermost
    launcher. A variable counts only together with that launcher's number of processes, since ``RANK`` alone could be
    anyone's.
    """
    group = sys.modules.get("torch.distributed")
    if group is not None and group.is_available() and group.is_initialized():
        return int(group.get_rank()) == 0
    known = {name: value.strip() for name, value in os.environ.items() if value.strip().isdecimal()}
    for variables, size in _LAUNCHERS:
        if variables[0] in known and size in known:
            return not any(int(known.get(variable, "0")) for variable in variables)
    return True
