"""Projects, runs and their files: what the API shows of them, and what clients may change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from .filters import matches
from .graphql import connection
from .state import State, StoredRun, now, opaque_id

Node = dict[str, Any]

_INPUTS = {
    "displayName": "display_name",
    "config": "config",
    "state": "state",
}
_DETAILS = ("notes", "groupName", "jobType", "tags", "description", "commit", "host")
_STREAMS = {"wandb-history.jsonl": "history", "wandb-events.jsonl": "events", "output.log": "console"}


class ArtifactNodes(Protocol):
    """The artifacts' side, which runs and projects point to."""

    def node(self, artifact_id: str) -> Node | None: ...
    def named(self, entity: str, project: str, name: str) -> Node | None: ...
    def type_node(self, entity: str, project: str, name: str) -> Node | None: ...
    def membership(self, entity: str, project: str, name: str) -> Node | None: ...


class Runs:
    """Resolvers of users, projects and runs."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.artifacts: ArtifactNodes

    # --- what the API shows

    def viewer(self) -> Node:
        """The account behind every API key."""
        name = self._state.entity
        return {
            "__typename": "User",
            "id": opaque_id("User:1"),
            "name": name,
            "username": name,
            "entity": name,
            "email": f"{name}@localhost",
            "admin": False,
            "flags": "{}",
            "deletedAt": None,
            "teams": connection([self.entity(name)]),
            "apiKeys": connection([]),
            "defaultEntity": self.entity(name),
        }

    def entity(self, name: str | None) -> Node:
        """A user or team."""
        name = name or self._state.entity
        return {
            "__typename": "Entity",
            "id": opaque_id(f"Entity:{name}"),
            "name": name,
            "isTeam": False,
            "organization": None,
            "project": lambda name=None: self.project(name, None),
        }

    def project(self, name: str | None = None, entityName: str | None = None) -> Node | None:
        """A project; null while nobody has logged to it."""
        entity = entityName or self._state.entity
        if name is None or not self._state.project_runs(entity, name):
            return None
        return self.project_node(entity, name)

    def project_node(self, entity: str, name: str) -> Node:
        def run(name: str, project: str = name) -> Node | None:
            found = self._state.run(entity, project, name)
            return self.node(found) if found else None

        return {
            "__typename": "Project",
            "id": opaque_id(f"Project:{entity}/{name}"),
            "internalId": opaque_id(f"ProjectInternalId:{entity}/{name}"),
            "name": name,
            "entityName": entity,
            "entity": self.entity(entity),
            "createdAt": now(),
            "readOnly": False,
            "isBenchmark": False,
            "run": run,
            "allViews": lambda viewType=None, viewName=None, userName=None: self._views(
                entity, name, viewName
            ),
            "bucket": lambda name, missingOk=None: run(name),
            "runs": lambda filters=None, order=None, first=None, after=None: self._listed(
                entity, name, filters, order, first, after
            ),
            "runCount": lambda filters=None: len(self._matching(entity, name, filters)),
            "artifact": lambda name, project=name: self.artifacts.named(entity, project, name),
            "artifactType": lambda name, project=name: self.artifacts.type_node(entity, project, name),
            "artifactCollectionMembership": lambda name, project=name: self.artifacts.membership(
                entity, project, name
            ),
        }

    def _matching(self, entity: str, project: str, filters: str | None) -> list[StoredRun]:
        wanted = json.loads(filters or "{}") or {}
        return [run for run in self._state.project_runs(entity, project) if matches(wanted, run)]

    def _listed(
        self,
        entity: str,
        project: str,
        filters: str | None,
        order: str | None,
        first: int | None,
        after: str | None,
    ) -> Node:
        runs = self._matching(entity, project, filters)
        if order not in (None, "", "+created_at", "-created_at"):
            raise ValueError(f"order {order!r} is not implemented")
        if order == "-created_at":
            runs.reverse()
        return connection([self.node(run) for run in runs], first, after)

    def node(self, run: StoredRun) -> Node:
        """A run as the API shows it."""
        project = {**self._bare_project(run)}
        return {
            "__typename": "Run",
            "id": run.id,
            "name": run.name,
            "displayName": run.display_name,
            "state": run.state,
            "config": run.config,
            "summaryMetrics": json.dumps(run.summary),
            "systemMetrics": "{}",
            "createdAt": run.created_at,
            "heartbeatAt": now(),
            "updatedAt": now(),
            "user": self.viewer(),
            "project": project,
            "projectId": 1,
            "sweepName": None,
            "readOnly": False,
            "stopped": False,
            "shouldStop": False,
            **{key: run.details.get(key) for key in ("notes", "description", "jobType", "commit", "host")},
            "tags": run.details.get("tags") or [],
            "group": run.details.get("groupName"),
            **self._history_fields(run),
            "fileCount": len(run.files),
            "files": lambda names=None, first=None, after=None, upload=None, pattern=None: self._files(
                run, names, first, after, upload, pattern
            ),
            "outputArtifacts": lambda first=None, after=None: connection(
                [self.artifacts.node(key) for key in run.outputs if self._state.artifacts[key].committed],
                first,
                after,
            ),
            "inputArtifacts": lambda first=None, after=None: connection([], first, after),
            "wandbConfig": lambda keys: json.dumps(_wandb_config(run, keys)),
        }

    def _bare_project(self, run: StoredRun) -> Node:
        return {
            "__typename": "Project",
            "id": opaque_id(f"Project:{run.entity}/{run.project}"),
            "internalId": opaque_id(f"ProjectInternalId:{run.entity}/{run.project}"),
            "name": run.project,
            "entityName": run.entity,
            "entity": self.entity(run.entity),
        }

    def _history_fields(self, run: StoredRun) -> Node:
        rows = run.rows()
        last = max((row.get("_step", 0) for row in rows), default=-1)

        def history(minStep: int = 0, maxStep: int | None = None, samples: int | None = None) -> list[str]:
            end = last + 1 if maxStep is None else maxStep
            return [
                line for line, row in zip(run.history, rows, strict=True) if minStep <= row["_step"] < end
            ]

        return {
            "historyLineCount": len(run.history),
            "eventsLineCount": len(run.events),
            "logLineCount": len(run.console),
            "historyTail": json.dumps(run.history[-1:]),
            "eventsTail": json.dumps(run.events[-1:]),
            "historyKeys": {"keys": _typed_keys(rows), "sets": [], "lastStep": last} if rows else None,
            "history": history,
            "sampledHistory": lambda specs: [_sampled(rows, json.loads(spec)) for spec in specs],
            "events": run.events,
            "parquetHistory": lambda liveKeys=None: {"parquetUrls": [], "liveData": rows},
        }

    def _files(
        self,
        run: StoredRun,
        names: list[str] | None,
        first: int | None,
        after: str | None,
        upload: bool | None,
        pattern: str | None,
    ) -> Node:
        """Files of a run: those named, or those that match an SQL ``LIKE`` pattern."""
        found = list(names or []) if upload else [name for name in run.files if not names or name in names]
        if pattern:
            expression = re.compile(re.escape(pattern).replace("%", ".*"))
            found = [name for name in found if expression.fullmatch(name)]
        nodes = [self._state.file_node(storage_key(run, name), name) for name in found]
        return {"uploadHeaders": [], **connection(nodes, first, after)}

    # --- what clients change

    def upsert_view(self, input: Mapping[str, Any]) -> Node:
        """Store a saved view, such as a workspace; one that exists is named by its id."""
        is_new = input.get("id") is None
        key = input["id"] if not is_new else opaque_id(f"View:{input['name']}")
        if is_new == (key in self._state.views):
            raise KeyError(key)
        self._state.views[key] = {**input, "id": key}
        return {"view": {"id": key, "name": input["name"]}, "inserted": is_new}

    def _views(self, entity: str, project: str, name: str | None) -> Node:
        of_project = [
            view
            for view in self._state.views.values()
            if (view["entityName"], view["projectName"], view["name"]) == (entity, project, name)
        ]
        return connection(of_project)

    def upsert(self, input: Mapping[str, Any]) -> Node:
        """Create a run, or update what the input names."""
        run = self._find(input)
        inserted = run is None
        if run is None:
            run = self._insert(input)
        for key, attribute in _INPUTS.items():
            if input.get(key) is not None:
                setattr(run, attribute, input[key])
        run.details.update({key: input[key] for key in _DETAILS if input.get(key) is not None})
        if input.get("summaryMetrics") is not None:
            run.summary = json.loads(input["summaryMetrics"])
        return {"bucket": self.node(run), "inserted": inserted}

    def _find(self, input: Mapping[str, Any]) -> StoredRun | None:
        if input.get("id"):
            return next((run for run in self._state.runs.values() if run.id == input["id"]), None)
        return self._state.run(
            input.get("entityName"), input.get("modelName") or "uncategorized", input.get("name")
        )

    def _insert(self, input: Mapping[str, Any]) -> StoredRun:
        entity = input.get("entityName") or self._state.entity
        project = input.get("modelName") or "uncategorized"
        run = StoredRun(entity, project, input["name"], display_name=input["name"])
        self._state.runs[(entity, project, run.name)] = run
        return run

    def create_files(self, input: Mapping[str, Any]) -> Node:
        """Announce files of a run; the answer says where to put them."""
        run = self._state.run(input["entityName"], input["projectName"], input["runName"])
        assert run is not None
        run.files.extend(name for name in input["files"] if name not in run.files)
        nodes = [self._state.file_node(storage_key(run, name), name) for name in input["files"]]
        return {"runID": run.id, "uploadHeaders": [], "files": nodes}

    def stream(self, entity: str, project: str, name: str, body: Mapping[str, Any]) -> None:
        """Take history rows, the summary and console lines of a running run."""
        run = self._state.run(entity, project, name)
        assert run is not None, f"file stream for unknown run {name}"
        for file, part in (body.get("files") or {}).items():
            if file == "wandb-summary.json":
                run.summary = json.loads(part["content"][-1])
                continue
            lines = getattr(run, _STREAMS[file])
            start = part.get("offset", 0)
            lines[start : start + len(part["content"])] = part["content"]
        if body.get("complete"):
            run.state = "failed" if body.get("exitcode") else "finished"
        else:
            run.state = "running"


def storage_key(run: StoredRun, name: str) -> str:
    """Where the bytes of a run's file are stored."""
    return f"run/{run.entity}/{run.project}/{run.name}/{name}"


def _wandb_config(run: StoredRun, keys: list[str]) -> Node:
    inner = (json.loads(run.config).get("_wandb") or {}).get("value") or {}
    return {key: value for key, value in inner.items() if key in keys}


def _sampled(rows: list[dict[str, Any]], spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows that have all keys, reduced to these; too many for the tests would have to be sampled."""
    keys = spec["keys"]
    found = [{key: row[key] for key in keys} for row in rows if all(key in row for key in keys)]
    assert len(found) <= spec["samples"], "sampling is not implemented"
    return found


def _typed_keys(rows: list[dict[str, Any]]) -> Node:
    """Which keys the history has, of which type, and how often."""
    found: Node = {}
    for key, value in (item for row in rows for item in row.items()):
        kind = "number" if isinstance(value, (int, float)) else "map"
        entry = found.setdefault(key, {"typeCounts": [{"type": kind, "count": 0}], "monotonic": False})
        entry["typeCounts"][0]["count"] += 1
    return found
