"""What one ``.wandb`` file says about its run, and how the fragments of a run combine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from uq_tracking.errors import FileFormatError
from uq_tracking_wandb.records import read_records


@dataclass
class Identity:
    """How the run was started; further fragments repeat it so that a sync does not change it."""

    run_id: str = ""
    project: str = ""
    entity: str = ""
    name: str = ""
    group: str = ""
    job_type: str = ""
    notes: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoggedArtifact:
    """A version of an artifact and where its files are staged."""

    name: str
    type: str
    files: Mapping[str, Path]


@dataclass
class Fragment:
    """Content of one file, or of several files of the same run."""

    folder: Path
    """Folder ``files`` of the run, which holds its media."""
    identity: Identity = field(default_factory=Identity)
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    axes: dict[str, str] = field(default_factory=dict)
    """Maps a metric name or pattern to the metric that is its x axis."""
    artifacts: list[LoggedArtifact] = field(default_factory=list)
    media: dict[str, Path] = field(default_factory=dict)
    """Media file by its path inside the run."""
    exit_code: int | None = None
    """None without an ``exit`` record: the run is still going, or its process was killed."""

    @property
    def next_step(self) -> int:
        """Step of the next row added to the history."""
        return max((row["_step"] + 1 for row in self.history), default=0)

    @property
    def own_summary(self) -> dict[str, Any]:
        """Summary without W&B's own entries."""
        return {key: value for key, value in self.summary.items() if not key.startswith("_")}

    @property
    def status(self) -> str:
        """W&B's word for the state of the run."""
        if self.exit_code is None:
            return "running"
        return "failed" if self.exit_code else "finished"


def read_fragment(path: Path, *, history: bool = True) -> Fragment:
    """Read a ``.wandb`` file, without ``history`` for listings; FileFormatError if it is damaged."""
    fragment = Fragment(path.parent / "files")
    try:
        for record in read_records(path):
            kind = record.WhichOneof("record_type")
            reader = _READERS.get(kind)
            if reader is not None and (history or kind != "history"):
                reader(fragment, getattr(record, kind))
    except (FileFormatError, OSError):
        raise
    except Exception as error:  # protobuf and json may raise anything for foreign data
        raise FileFormatError(f"{path} holds a record that cannot be read: {error}") from error
    return fragment


def started(path: Path) -> float:
    """When the run of a ``.wandb`` file was started, in seconds since 1970; 0 if not yet written."""
    with suppress(FileFormatError):  # reading the rest will say what is wrong
        for record in read_records(path):
            if record.WhichOneof("record_type") == "run":
                return float(record.run.start_time.ToNanoseconds() / 1e9)
    return 0.0


def joined(fragments: Iterable[Fragment]) -> Fragment:
    """One run from its fragments, oldest first, as if each continued where the previous one stopped."""
    return reduce(_joined, fragments)


def _joined(earlier: Fragment, later: Fragment) -> Fragment:
    return Fragment(
        folder=later.folder,
        identity=later.identity,
        config=earlier.config | later.config,
        summary=earlier.summary | later.summary,
        history=earlier.history + later.history,
        axes=earlier.axes | later.axes,
        artifacts=earlier.artifacts + later.artifacts,
        media=earlier.media | later.media,
        exit_code=later.exit_code,
    )


def _read_run(fragment: Fragment, run: Any) -> None:
    fragment.identity = Identity(
        run.run_id,
        run.project,
        run.entity,
        run.display_name,
        run.run_group,
        run.job_type,
        run.notes,
        tuple(run.tags),
    )
    _update(fragment.config, run.config.update)


def _read_config(fragment: Fragment, config: Any) -> None:
    _update(fragment.config, config.update)
    _remove(fragment.config, config.remove)


def _read_summary(fragment: Fragment, summary: Any) -> None:
    _update(fragment.summary, summary.update)
    _remove(fragment.summary, summary.remove)


def _read_history(fragment: Fragment, history: Any) -> None:
    row: dict[str, Any] = {}
    _update(row, history.item)
    fragment.history.append(row)


def _read_metric(fragment: Fragment, metric: Any) -> None:
    if metric.step_metric:
        fragment.axes[metric.name or metric.glob_name] = metric.step_metric


def _read_artifact(fragment: Fragment, artifact: Any) -> None:
    files = {entry.path: Path(entry.local_path) for entry in artifact.manifest.contents}
    fragment.artifacts.append(LoggedArtifact(artifact.name, artifact.type, files))


def _read_files(fragment: Fragment, files: Any) -> None:
    fragment.media.update({item.path: fragment.folder / item.path for item in files.files})


def _read_exit(fragment: Fragment, exit_record: Any) -> None:
    fragment.exit_code = exit_record.exit_code


_READERS = {
    "run": _read_run,
    "config": _read_config,
    "summary": _read_summary,
    "history": _read_history,
    "metric": _read_metric,
    "artifact": _read_artifact,
    "files": _read_files,
    "exit": _read_exit,
}


def _keys(item: Any) -> list[str]:
    return list(item.nested_key) or [item.key]


def _update(target: dict[str, Any], items: Iterable[Any]) -> None:
    """Set the (nested) keys of summary, history or config items."""
    for item in items:
        *outer, last = _keys(item)
        inner = target
        for key in outer:
            if not isinstance(inner.get(key), dict):
                inner[key] = {}
            inner = inner[key]
        inner[last] = json.loads(item.value_json)


def _remove(target: dict[str, Any], items: Iterable[Any]) -> None:
    for item in items:
        *outer, last = _keys(item)
        inner: Any = target
        for key in outer:
            inner = inner.get(key, {})
        inner.pop(last, None)
