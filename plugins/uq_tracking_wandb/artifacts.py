"""A run's files: one artifact ``uq-<run id>``, a new version per batch, every version complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from uq_tracking.errors import BackendError, TrackerUnreachableError

if TYPE_CHECKING:
    import wandb

ARTIFACT_TYPE = "uq"
UPLOAD_SECONDS = 30
"""Seconds that a new version may wait for the upload of the one it extends."""


def is_of_others(kind: str) -> bool:
    """Return whether this is the type of a user's own artifact: not ours, nor one that ``wandb`` makes of tables."""
    return kind not in (ARTIFACT_TYPE, "run_table", "job") and not kind.startswith("wandb-")


def artifact_name(run_id: str) -> str:
    """Return the name of the run's artifact; W&B allows letters, digits, ``.``, ``_`` and ``-``."""
    return f"uq-{re.sub(r'[^A-Za-z0-9._-]', '_', run_id)}"


class RunFiles:
    """Collects the files of a batch and logs them as one version of the run's artifact.

    Parameters
    ----------
    run
        The open run.
    stored
        Offline only: files of earlier fragments of this run, by name, that a new version must also hold.
    patience
        Seconds to wait until the server has a version; None leaves the upload to the background.
    """

    def __init__(
        self, run: wandb.Run, stored: Mapping[str, Path] | None = None, patience: int | None = None
    ) -> None:
        self._run = run
        self._patience = patience
        self._staged = dict(stored or {})
        self._draft: wandb.Artifact | None = None
        self._last: wandb.Artifact | None = None
        self._looked_up = False

    def add(self, path: Path, name: str) -> None:
        """Copy a file into the batch; ``wandb`` stages it, so the original may be deleted."""
        import wandb

        if self._draft is None:
            self._draft = wandb.Artifact(artifact_name(self._run.id), ARTIFACT_TYPE)
        self._draft.add_file(str(path), name=name, overwrite=True)

    def discard(self) -> None:
        """Forget the files of the batch."""
        self._draft = None

    def flush(self) -> None:
        """Log the batch as a new version, unless the last version has the same content.

        Raises
        ------
        BackendError
            With ``patience``: the server rejected the upload; TrackerUnreachableError if it takes too long.
        """
        draft, self._draft = self._draft, None
        if draft is None:
            return
        version = self._complete_offline(draft) if self._run.offline else self._complete_online(draft)
        if self._last is not None and version.digest == self._last.digest:
            return
        self._run.log_artifact(version)
        if self._patience is not None:
            wait_for(version, self._patience)
        self._last = version

    def arrival(self) -> Callable[[], None] | None:
        """A function that waits until the server has the last version; None if nothing is being uploaded."""
        version = self._last
        if version is None or self._patience is not None or self._run.offline:
            return None
        return lambda: wait_for(version, None)

    def _complete_offline(self, draft: wandb.Artifact) -> wandb.Artifact:
        """Add those files of the last version that the batch does not replace, from where they are staged."""
        for name, path in self._staged.items():
            if name in draft.manifest.entries:
                continue
            if not path.is_file():
                raise BackendError(
                    f"{draft.name}: a new version must keep {name}, but its staged copy {path} is gone; "
                    "a synced run is extended online, at wandb:ENTITY/PROJECT/RUN"
                )
            draft.add_file(str(path), name=name, policy="immutable")
        entries = draft.manifest.entries.items()
        self._staged = {name: Path(entry.local_path) for name, entry in entries if entry.local_path}
        return draft

    def _complete_online(self, draft: wandb.Artifact) -> wandb.Artifact:
        """Build on the last version, here or on the server, if it has files that the batch does not replace."""
        if self._last is None and self._run.resumed and not self._looked_up:
            path = f"{self._run.entity}/{self._run.project}/{artifact_name(self._run.id)}:latest"
            self._last = latest_version(path)
            self._looked_up = True
        last = self._last
        if last is None or set(last.manifest.entries) <= set(draft.manifest.entries):
            return draft
        version = last.wait(UPLOAD_SECONDS).new_draft()
        for name, entry in draft.manifest.entries.items():
            version.add_file(str(entry.local_path), name=name, policy="immutable", overwrite=True)
        return version


def wait_for(version: wandb.Artifact, patience: int | None) -> None:
    """Wait until the server has committed a logged version; without patience, for as long as it takes.

    Raises
    ------
    BackendError
        The upload failed; TrackerUnreachableError if it took longer than ``patience`` seconds.
    """
    from wandb.sdk.artifacts.exceptions import WaitTimeoutError

    name = version.name
    try:
        version.wait(patience)
    except WaitTimeoutError as error:
        raise TrackerUnreachableError(
            f"{name} was not uploaded within {patience} s; try again later"
        ) from error
    except ValueError as error:
        raise BackendError(f"{name} was not uploaded: {error}") from error


def latest_version(path: str) -> wandb.Artifact | None:
    """Artifact at ``ENTITY/PROJECT/NAME:latest``, or None if the project has none of that name."""
    import wandb

    try:
        found: wandb.Artifact = wandb.Api().artifact(path, type=ARTIFACT_TYPE)
    except wandb.errors.CommError as error:
        if is_missing(error):
            return None
        raise
    return found


def is_missing(error: Exception) -> bool:
    """Return whether the public API says that something does not exist; it has no error class for that."""
    return any(words in str(error) for words in ("not found", "not find", "does not exist"))
