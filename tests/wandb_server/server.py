"""The server: GraphQL roots, file stream, storage, and faults on demand."""

from __future__ import annotations

import gzip
import json
import re
import threading
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote

from .artifacts import Artifacts
from .graphql import Query
from .runs import Runs
from .state import State, StoredRun, md5

_STREAM = re.compile(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream")
_ARTIFACT_FILE = re.compile(r"/artifactsV2/default/[^/]+/[^/]+/[^/]+/([^/]+)/([0-9a-f]+)/[^/]+")
_TELEMETRY = "/sdk/otel"


@dataclass(frozen=True)
class Request:
    """A request as the server saw it; ``operation`` is the GraphQL operation or method and path."""

    operation: str
    path: str
    body: Any = None


@dataclass(frozen=True)
class Answer:
    """Status and bytes."""

    status: int = 200
    body: bytes = b""

    @classmethod
    def json(cls, content: Any, status: int = 200) -> Answer:
        return cls(status, json.dumps(content).encode())


@dataclass
class WandbServer:
    """A W&B server on a loopback port, for the real SDK and its Go core.

    Use it as a context manager. ``fault`` is asked for every request and may return an HTTP status to answer with
    instead. ``unknown`` collects what clients asked for and this server does not know: a test that leaves
    something there must fail.
    """

    entity: str = "tester"
    fault: Callable[[Request], int | None] | None = None
    requests: list[Request] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.state = State(self.entity)
        self._runs = Runs(self.state)
        self._artifacts = Artifacts(self.state, self._runs)
        self._runs.artifacts = self._artifacts
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.is_down = False

    def __enter__(self) -> WandbServer:
        self._listen(0)
        return self

    def _listen(self, port: int) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._http.daemon_threads = True
        self.state.base_url = self.url
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def go_down(self) -> None:
        """Refuse connections, and break off those there are at their next request, as a server that was killed."""
        self.is_down = True
        self._close()

    def come_back(self) -> None:
        """Listen again, at the same port, with all that was stored."""
        assert self._http is not None
        self.is_down = False
        self._listen(self._http.server_address[1])

    def _close(self) -> None:
        assert self._http is not None
        assert self._thread is not None
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Base URL, for ``WANDB_BASE_URL``."""
        assert self._http is not None
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def run(self, project: str, name: str) -> StoredRun:
        """A stored run of the default entity."""
        return self.state.runs[(self.entity, project, name)]

    def operations(self) -> list[str]:
        """Operations in the order they came."""
        return [request.operation for request in self.requests]

    def answer(self, method: str, path: str, data: bytes) -> Answer:
        """Answer one request."""
        if path == "/graphql":
            return self._graphql(json.loads(data))
        if stream := _STREAM.fullmatch(path):
            return self._stream(Request("file stream", path, json.loads(data)), *stream.groups())
        request = Request(f"{method} {path}", path)
        if (status := self._faulty(request)) is not None:
            return Answer(status)
        if path.startswith("/storage/"):
            return self._storage(method, path.removeprefix("/storage/"), data)
        if file := _ARTIFACT_FILE.fullmatch(path):
            return self._artifact_file(*file.groups())
        if not path.startswith(_TELEMETRY):  # the SDK's own statistics are refused, which it accepts
            self.unknown.add(request.operation)
        return Answer(404)

    def _faulty(self, request: Request) -> int | None:
        self.requests.append(request)
        return self.fault(request) if self.fault else None

    def _graphql(self, body: dict[str, Any]) -> Answer:
        query = Query.of(body["query"], body.get("variables"))
        if (status := self._faulty(Request(query.name, "/graphql", body))) is not None:
            return Answer.json({"errors": [{"message": "injected fault"}]}, status)
        try:
            with self.state.lock:
                content = query.run(self._roots())
        except Exception as error:
            self.unknown.add(f"{query.name}: {error!r}")
            return Answer.json({"data": None, "errors": [{"message": repr(error)}]})
        finally:
            self.unknown |= query.unknown
        return Answer.json({"data": content})

    def _stream(self, request: Request, entity: str, project: str, name: str) -> Answer:
        if (status := self._faulty(request)) is not None:
            return Answer(status)
        with self.state.lock:
            self._runs.stream(entity, project, name, request.body)
        return Answer.json({"limits": {}})

    def _storage(self, method: str, key: str, data: bytes) -> Answer:
        if method == "PUT":
            self.state.blobs[key] = data
            return Answer()
        return Answer(body=self.state.blobs[key]) if key in self.state.blobs else Answer(404)

    def _artifact_file(self, artifact_id: str, digest: str) -> Answer:
        """A file by the version that brought it and its hexadecimal MD5."""
        keys = self.state.artifacts[artifact_id].files.values()
        found = [data for key in keys if b64decode(md5(data := self.state.blobs[key])).hex() == digest]
        return Answer(body=found[0]) if found else Answer(404)

    def _roots(self) -> dict[str, dict[str, Any]]:
        project = self._runs.project
        query = {
            "viewer": self._runs.viewer(),
            "serverInfo": {"features": [], "latestLocalVersionInfo": None},
            "project": project,
            "model": project,
            "entity": lambda name=None: self._runs.entity(name),
            "artifact": lambda id: self._artifacts.node(id),
            "clientIDMapping": lambda clientID: {"serverID": self.state.client_ids.get(clientID)},
        }
        mutation = {
            "upsertBucket": lambda input: self._runs.upsert(input),
            "upsertView": lambda input: self._runs.upsert_view(input),
            "createRunFiles": lambda input: self._runs.create_files(input),
            "createArtifact": lambda input: self._artifacts.create(input),
            "commitArtifact": lambda input: self._artifacts.commit(input),
            "createArtifactManifest": lambda input: self._artifacts.create_manifest(input),
            "createArtifactFiles": lambda input: self._artifacts.create_files(input),
        }
        return {"query": query, "mutation": mutation}


def _handler(server: WandbServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body in one packet: the second of two would wait 40 ms for the first one's receipt.
        wbufsize = -1
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the tests' output clean."""

        def _handle(self) -> None:
            body = self._body()
            if server.is_down:
                self.close_connection = True
                return
            answer = server.answer(self.command, unquote(self.path.split("?")[0]), body)
            with suppress(ConnectionError):  # a client that no longer waits
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

        def _body(self) -> bytes:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

        do_GET = do_POST = do_PUT = _handle  # noqa: N815  (names that http.server looks up)

    return Handler
