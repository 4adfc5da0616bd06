"""Offline runs as a store: read from their run directories, extended by further fragments."""

from __future__ import annotations

import glob
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from uq_tracking.errors import BackendError, FileFormatError, RunNotFoundError, printable, warn
from uq_tracking.tracking.backend import Run, RunStore, StoredRun
from uq_tracking_wandb.artifacts import artifact_name, is_of_others
from uq_tracking_wandb.fragment import Fragment, read_fragment, started
from uq_tracking_wandb.names import OFFLINE, config_with, media_files, numbers, run_folder, tags_in
from uq_tracking_wandb.run import OwnedRun, open_run

EXIT_SECONDS = 5.0
"""Seconds a finished run's last record may take to arrive in its file."""

_PROJECT = "uncategorized"


class OfflineRun(OwnedRun):
    """An offline run opened by this package: once it is closed, its file can be read."""

    def close(self) -> None:
        """Finish the run, and wait until its last record is written."""
        path = run_folder(self.sdk_run) / f"run-{self.sdk_run.id}.wandb"
        super().close()
        _wait_for(lambda: path.exists() and read_fragment(path, history=False).exit_code is not None)


class OfflineStore(RunStore):
    """Runs in the ``offline-run-*`` folders of a directory.

    Parameters
    ----------
    folder
        The directory, the one above it (which holds ``wandb/``), or one of the run folders.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.parent if folder.name.startswith("offline-run-") else folder

    def runs(self, where: str | None = None) -> Iterator[StoredRun]:
        """Runs in the directory, oldest first; offline runs have no filter language."""
        if where is not None:
            raise BackendError(
                f"{OFFLINE}: offline runs cannot be filtered; sync them, or choose by tag in Python"
            )
        for run_id, paths in self._paths().items():
            try:
                yield self._stored(run_id, read_fragment(*paths, history=False))
            except FileFormatError as error:  # one damaged run does not hide the others
                warn(f"run skipped: {printable(str(error))}")

    def files(self, run_id: str) -> list[str]:
        """Names of the files of the run's artifact, its images and the tables of its curves."""
        return sorted(self._where(self._read(run_id)))

    def fetch(self, run_id: str, name: str, folder: Path) -> Path:
        """Copy a file from where ``wandb`` keeps it until it is synced."""
        where = self._where(self._read(run_id))
        if name not in where:
            raise FileNotFoundError(
                f"{self._uri(run_id)} has no file {name}; it has {', '.join(sorted(where)) or 'none'}"
            )
        if not where[name].is_file():
            raise FileNotFoundError(
                f"{self._uri(run_id)}: {name} was kept at {where[name]}, which is gone. Artifact files lie in "
                "$WANDB_DATA_DIR/artifacts/staging of the machine that logged them until they are synced; "
                "read a synced run at wandb:ENTITY/PROJECT/RUN"
            )
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(where[name], target)
        return target

    def reopen(self, run_id: str) -> Run:
        """Open a further fragment of the run, which repeats its config and summary.

        A sync replaces the run's config and summary with those of the last fragment, hence the repetition. Existing
        files stay unchanged.
        """
        _wait_for(lambda: self._read(run_id).exit_code is not None)
        content = self._read(run_id, history=True)
        if content.exit_code is None:
            raise BackendError(
                f"{self._uri(run_id)} has no exit record: it is still being written, or its process was killed. "
                "Log inside the open run, `wandb sync` it and use wandb:ENTITY/PROJECT/RUN, or sync to a destination"
            )
        sdk_run = self._open(content.options, content.config)
        # Its row follows those of the earlier fragments.
        sdk_run.log({}, step=content.next_step, commit=False)
        sdk_run.summary.update(content.own_summary)
        run = OfflineRun(sdk_run, _artifact_files(content), lambda keys: content.history)
        run.failed = bool(content.exit_code)
        return run

    def create(self, name: str, tags: Mapping[str, str] | None = None) -> Run:
        """Open a new offline run in this directory."""
        return OfflineRun(self._open({"project": _PROJECT, "name": name}, config_with({}, tags or {})))

    def show(self) -> str | None:
        """Return the command that uploads the runs to a server."""
        return f"wandb sync {self._folder}/offline-run-*"

    def _paths(self, name: str = "*") -> dict[str, list[Path]]:
        """Files of the runs with a matching id, by id, oldest first: ``wandb.init(dir=X)`` makes them in X/wandb."""
        pattern, roots = f"offline-run-*/run-{name}.wandb", (self._folder, self._folder / "wandb")
        found: dict[str, list[Path]] = {}
        for path in sorted((path for root in roots for path in root.glob(pattern)), key=started):
            found.setdefault(path.stem.removeprefix("run-"), []).append(path)
        return found

    def _read(self, run_id: str, *, history: bool = False) -> Fragment:
        paths = self._paths(glob.escape(run_id)).get(run_id)
        if paths is None:
            raise RunNotFoundError(
                f"{self._folder} has no offline run {run_id!r}; list them with ls {self._folder}"
            )
        return read_fragment(*paths, history=history)

    def _open(self, options: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
        """Open an offline run in this directory."""
        home = self._folder.parent if self._folder.name in ("wandb", ".wandb") else self._folder
        return open_run(mode="offline", dir=str(home), config=dict(config), **options)

    def _stored(self, run_id: str, content: Fragment) -> StoredRun:
        return StoredRun(
            uri=self._uri(run_id),
            run_id=run_id,
            name=content.options.get("name", run_id),
            status=content.status,
            tags=tags_in(content.config),
            scalars=numbers(content.summary),
        )

    def _where(self, content: Fragment) -> dict[str, Path]:
        """Every listed file by name, with its location."""
        media = {name: content.media.get(path) for name, path in media_files(content.summary).items()}
        shown = {name: path for name, path in media.items() if path is not None}
        return _files_of_others(content) | shown | _artifact_files(content)

    def _uri(self, run_id: str) -> str:
        return f"{OFFLINE}:{self._folder}/{run_id}"


def _wait_for(is_written: Callable[[], bool]) -> None:
    """Wait a while for the ``exit`` record, which wandb-core writes after ``finish`` returns."""
    end = time.monotonic() + EXIT_SECONDS
    while not is_written() and time.monotonic() < end:
        time.sleep(0.02)


def _artifact_files(content: Fragment) -> dict[str, Path]:
    """Files of the last version of the run's artifact."""
    name = artifact_name(content.options.get("id", ""))
    versions = [artifact.files for artifact in content.artifacts if artifact.name == name]
    return dict(versions[-1]) if versions else {}


def _files_of_others(content: Fragment) -> dict[str, Path]:
    """Files of the user's own artifacts as ``artifact/path``, in their last versions."""
    others = {artifact.name: artifact for artifact in content.artifacts if is_of_others(artifact.type)}
    return {
        f"{name}/{path}": file for name, artifact in others.items() for path, file in artifact.files.items()
    }
