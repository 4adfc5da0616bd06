"""The runs that a user gave to a callback: checked before training, and opened once where an address makes runs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from uq_tracking.tracking.names import ORIGIN_TAG
from uq_tracking.tracking.resolve import Opened, Target, reopened, targets_of


def _new_fit() -> str:
    return f"fit-{uuid.uuid4().hex}"


@dataclass
class GivenRuns:
    """Runs, addresses and ids, in the order given, and the name and tags of runs to be created."""

    given: list[Any]
    name: str
    tags: Mapping[str, str]
    made: dict[str, str] = field(default_factory=dict)
    """Addresses of the runs that were made, by the address given."""
    fit: str = field(default_factory=_new_fit)
    """Names the fit in its run, so that calls that a tracker takes only when the job is over find that run."""

    def check_kinds(self) -> None:
        """Refuse what no tracker recognizes; ids, folders and loggers need not exist yet, and are not opened.

        Raises
        ------
        SettingsError
            It is no run, or a scheme without an address.
        UnknownBackendError
            No installed backend has the scheme of an address.
        """
        for run in self.given:
            is_id = isinstance(run, str) and ":" not in run
            is_opened_by_asking = isinstance(run, PathLike) or hasattr(run, "log_metrics")
            if not is_id and not is_opened_by_asking:
                self._targets_of(run)

    def check_names(self) -> None:
        """Raise SettingsError for text that is neither an address nor the id of a run."""
        for run in self.given:
            if isinstance(run, str):
                self._targets_of(run)

    def forget(self) -> None:
        """Make new runs from now on."""
        self.made.clear()
        self.fit = _new_fit()

    def opened_once(self) -> list[Any]:
        """What to log to: an address that makes a run in every call makes one in the first, and the others join."""
        return [self._once(run) if isinstance(run, str) else run for run in self.given]

    def _once(self, run: str) -> Any:
        if run in self.made:
            return self.made[run]
        (target,) = self._targets_of(run)
        if not target.is_address:
            return run

        def open_it() -> Opened:
            opened = reopened(self.made[run]) if run in self.made else target.open()
            self.made[run] = opened.run.uri
            return replace(opened, is_new=False)

        return replace(target, open=open_it)

    def _targets_of(self, run: Any) -> list[Target]:
        tags = {**self.tags, ORIGIN_TAG: self.fit}
        return targets_of([run], None, name=self.name, tags=tags, every_rank=True)


def given_runs(run: Any, name: str, tags: Mapping[str, str]) -> GivenRuns:
    """Runs given one by one or as a list."""
    return GivenRuns(list(run) if isinstance(run, list | tuple) else [run], name, tags)
