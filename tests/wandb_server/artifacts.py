"""Artifacts: versions, aliases, manifests and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .graphql import connection
from .runs import Node, Runs
from .state import State, StoredArtifact, now, opaque_id


class Artifacts:
    """Resolvers of artifacts and what clients do with them."""

    def __init__(self, state: State, runs: Runs) -> None:
        self._state = state
        self._runs = runs

    # --- what the API shows

    def node(self, artifact_id: str | None) -> Node | None:
        """An artifact by its id."""
        stored = self._state.artifacts.get(artifact_id or "")
        return self._node(stored) if stored else None

    def named(self, entity: str, project: str, name: str) -> Node | None:
        """A version by ``collection:alias``, ``collection:v3`` or ``collection:digest``."""
        found = self._find(entity, project, name)
        return self._node(found) if found else None

    def membership(self, entity: str, project: str, name: str) -> Node | None:
        """A version as a member of its collection."""
        found = self._find(entity, project, name)
        if found is None:
            return None
        return {
            "__typename": "ArtifactCollectionMembership",
            "id": opaque_id(f"Membership:{found.id}"),
            "createdAt": found.created_at,
            "versionIndex": found.version,
            "aliases": self._aliases(found),
            "artifactCollection": self._collection(found),
            "artifact": self._node(found),
            "files": lambda first=None, after=None, names=None: self._files(found, first, after, names),
        }

    def type_node(self, entity: str, project: str, name: str) -> Node | None:
        """An artifact type of a project."""
        if not any(a.type == name for a in self._state.artifacts.values() if a.committed):
            return None
        return {
            "__typename": "ArtifactType",
            "id": opaque_id(f"ArtifactType:{name}"),
            "name": name,
            "artifact": lambda name: self.named(entity, project, name),
        }

    def _find(self, entity: str, project: str, name: str) -> StoredArtifact | None:
        collection, _, version = name.partition(":")
        wanted = version or "latest"
        for candidate in reversed(self._state.versions(entity, project, collection)):
            if wanted in (*candidate.aliases, f"v{candidate.version}", candidate.digest):
                return candidate
        return None

    def _node(self, stored: StoredArtifact) -> Node:
        run = self._state.run(stored.entity, stored.project, stored.run_name)
        manifest = {
            "id": opaque_id(f"Manifest:{stored.id}"),
            "file": {"directUrl": self._manifest_url(stored)},
        }
        return {
            "__typename": "Artifact",
            "id": stored.id,
            "digest": stored.digest,
            "state": stored.state,
            "versionIndex": stored.version,
            "artifactType": {"id": opaque_id(f"ArtifactType:{stored.type}"), "name": stored.type},
            "artifactSequence": self._collection(stored),
            "aliases": self._aliases(stored),
            "tags": [],
            "description": stored.details.get("description"),
            "metadata": stored.details.get("metadata"),
            "size": sum(len(self._state.blobs.get(key, b"")) for key in stored.files.values()),
            "fileCount": len(stored.files),
            "commitHash": stored.id[-8:],
            "createdAt": stored.created_at,
            "updatedAt": now(),
            "ttlDurationSeconds": -2,
            "ttlIsInherited": True,
            "historyStep": stored.details.get("historyStep"),
            "currentManifest": manifest,
            "createdBy": self._runs.node(run) if run else None,
            "files": lambda first=None, after=None, names=None: self._files(stored, first, after, names),
        }

    def _manifest_url(self, stored: StoredArtifact) -> str | None:
        return self._state.url_of(stored.manifest) if stored.manifest else None

    def _collection(self, stored: StoredArtifact) -> Node:
        return {
            "__typename": "ArtifactSequence",
            "__interfaces": ("ArtifactCollection",),
            "id": opaque_id(f"ArtifactSequence:{stored.collection}"),
            "name": stored.collection,
            "project": self._runs.project_node(stored.entity, stored.project),
        }

    def _aliases(self, stored: StoredArtifact) -> list[Node]:
        return [
            {
                "__typename": "ArtifactAlias",
                "id": opaque_id(f"Alias:{stored.id}:{alias}"),
                "alias": alias,
                "artifactCollection": self._collection(stored),
                "artifactCollectionName": stored.collection,
            }
            for alias in stored.aliases
        ]

    def _files(
        self, stored: StoredArtifact, first: int | None, after: str | None, names: list[str] | None
    ) -> Node:
        chosen = {name: key for name, key in stored.files.items() if not names or name in names}
        return connection([self._state.file_node(key, name) for name, key in chosen.items()], first, after)

    # --- what clients change

    def create(self, input: Mapping[str, Any]) -> Node:
        """Start a version; content that the collection has already is the version it has."""
        entity, project = input["entityName"] or self._state.entity, input["projectName"]
        collection = input.get("artifactCollectionName") or input["artifactCollectionNames"][0]
        versions = self._state.versions(entity, project, collection)
        stored = next((a for a in versions if a.digest == input["digest"]), None)
        if stored is None or not input.get("enableDigestDeduplication"):
            stored = self._start(input, collection)
        for key in ("clientID", "sequenceClientID"):
            if input.get(key):
                self._state.client_ids[input[key]] = stored.id
        run = self._state.run(entity, project, input.get("runName"))
        if run is not None and stored.id not in run.outputs:
            run.outputs.append(stored.id)
        latest = {"id": versions[-1].id, "versionIndex": versions[-1].version} if versions else None
        sequence = {"id": opaque_id(f"ArtifactSequence:{collection}"), "latestArtifact": latest}
        return {"artifact": {"id": stored.id, "state": stored.state, "artifactSequence": sequence}}

    def _start(self, input: Mapping[str, Any], collection: str) -> StoredArtifact:
        stored = StoredArtifact(
            id=self._state.new_id("Artifact"),
            entity=input["entityName"] or self._state.entity,
            project=input["projectName"],
            collection=collection,
            type=input["artifactTypeName"],
            digest=input["digest"],
            run_name=input.get("runName"),
            wanted_aliases=[alias["alias"] for alias in input.get("aliases") or []],
            details={key: input.get(key) for key in ("description", "metadata", "historyStep")},
        )
        self._state.artifacts[stored.id] = stored
        return stored

    def commit(self, input: Mapping[str, Any]) -> Node:
        """Make a version visible: it gets its number and the alias ``latest``."""
        stored = self._state.artifacts[input["artifactID"]]
        if not stored.committed:
            earlier = self._state.versions(stored.entity, stored.project, stored.collection)
            stored.version, stored.state = len(earlier), "COMMITTED"
            stored.aliases = list(dict.fromkeys([*stored.wanted_aliases, "latest"]))
            for other in earlier:
                other.aliases = [alias for alias in other.aliases if alias not in stored.aliases]
        return {"artifact": self._node(stored)}

    def create_manifest(self, input: Mapping[str, Any]) -> Node:
        """Announce a manifest; the answer says where to put it."""
        manifest_id = self._state.new_id("ArtifactManifest")
        key = f"manifest/{manifest_id}"
        self._state.artifacts[input["artifactID"]].manifest = key
        file = self._state.file_node(key, input["name"])
        return {"artifactManifest": {"id": manifest_id, "file": file}}

    def create_files(self, input: Mapping[str, Any]) -> Node:
        """Announce files of versions; the answer says where to put them."""
        nodes = []
        for spec in input["artifactFiles"]:
            stored = self._state.artifacts[spec["artifactID"]]
            key = f"artifact/{stored.id}/{spec['name']}"
            stored.files[spec["name"]] = key
            nodes.append({**self._state.file_node(key, spec["name"]), "artifact": {"id": stored.id}})
        return {"files": connection(nodes)}
