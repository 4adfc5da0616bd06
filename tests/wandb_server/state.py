"""What the server stores: runs, artifacts and bytes."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any


def now() -> str:
    """The time as W&B writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def opaque_id(text: str) -> str:
    """An id as GraphQL servers make them."""
    return base64.b64encode(text.encode()).decode()


def md5(data: bytes) -> str:
    """Digest of a file as W&B writes it."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


@dataclass
class StoredRun:
    """A run; history rows are JSON texts, as they come."""

    entity: str
    project: str
    name: str
    """The run id, which the API calls its name."""
    display_name: str
    config: str = "{}"
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    """Ids of the artifacts that the run logged."""
    state: str = "running"
    created_at: str = field(default_factory=now)
    details: dict[str, Any] = field(default_factory=dict)
    """Notes, group, job type, tags, host and the like."""

    @property
    def id(self) -> str:
        return opaque_id(f"Run:v1:{self.name}:{self.project}:{self.entity}")

    def rows(self) -> list[dict[str, Any]]:
        """History as dictionaries."""
        return [json.loads(line) for line in self.history]

    def config_value(self, path: str) -> Any:
        """Config value under ``key`` or ``key.inner``; the server stores ``{"key": {"value": ...}}``."""
        key, *inner = path.split(".")
        value = json.loads(self.config).get(key, {}).get("value")
        for name in inner:
            value = value.get(name) if isinstance(value, dict) else None
        return value


@dataclass
class StoredArtifact:
    """A version of an artifact."""

    id: str
    entity: str
    project: str
    collection: str
    type: str
    digest: str
    run_name: str | None
    wanted_aliases: list[str]
    details: dict[str, Any]
    """Description, metadata, tags and the like, as the client gave them."""
    state: str = "PENDING"
    version: int | None = None
    aliases: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Storage key by file name."""
    manifest: str | None = None
    """Storage key of the manifest."""
    created_at: str = field(default_factory=now)

    @property
    def committed(self) -> bool:
        return self.state == "COMMITTED"


@dataclass
class State:
    """Everything on the server. ``lock`` is held while a request changes or reads it."""

    entity: str
    base_url: str = ""
    runs: dict[tuple[str, str, str], StoredRun] = field(default_factory=dict)
    artifacts: dict[str, StoredArtifact] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    client_ids: dict[str, str] = field(default_factory=dict)
    """Server id of an artifact by the id that the client made up for it."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def new_id(self, kind: str) -> str:
        """A fresh id."""
        return opaque_id(f"{kind}:{next(self._numbers)}")

    def run(self, entity: str | None, project: str, name: str | None) -> StoredRun | None:
        """A run by its address."""
        return self.runs.get((entity or self.entity, project, name or ""))

    def project_runs(self, entity: str, project: str) -> list[StoredRun]:
        """Runs of a project, oldest first."""
        return [run for run in self.runs.values() if (run.entity, run.project) == (entity, project)]

    def versions(self, entity: str, project: str, collection: str) -> list[StoredArtifact]:
        """Committed versions of an artifact, oldest first."""
        return [
            a
            for a in self.artifacts.values()
            if a.committed and (a.entity, a.project, a.collection) == (entity, project, collection)
        ]

    def url_of(self, key: str) -> str:
        """Where the bytes under a storage key are put and got."""
        from urllib.parse import quote

        return f"{self.base_url}/storage/{quote(key)}"

    def file_node(self, key: str, name: str) -> dict[str, Any]:
        """A stored file as the API shows it."""
        data = self.blobs.get(key, b"")
        url = self.url_of(key)
        return {
            "__typename": "File",
            "id": opaque_id(key),
            "name": name,
            "displayName": name,
            "url": lambda upload=None: url,
            "directUrl": url,
            "uploadUrl": url,
            "uploadHeaders": [],
            "uploadMultipartUrls": None,
            "storagePath": key,
            "sizeBytes": len(data),
            "mimetype": "application/octet-stream",
            "updatedAt": now(),
            "md5": md5(data),
            "digest": md5(data),
        }
