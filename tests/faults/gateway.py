"""A gateway in front of a real server that fails on demand: the process that the fault matrix turns sick.

``python -m tests.faults.gateway PORT TARGET_PORT FOLDER``: serves ``PORT`` and passes requests on. The file
``FOLDER/mode`` says what happens to requests other than ``/health``, which is always well: ``pass``, a status
(``500``), ``slow SECONDS``, ``garbage``, ``half``, ``hang``, ``status 503 /path`` for the paths that hold a text,
``forbid TEXT`` for the requests that hold one, ``once MODE`` for the next request only, ``later`` (429 for a day),
``empty`` (200 and ``{}``; with a word, for the paths that end in it), ``lose TEXT`` (all is kept but the numbers
whose names hold it), ``cookies`` (more than a server reads), ``redirect URL``, or answers without an end: ``drip``,
``endless``, ``bomb`` (3 MB that unpack to 3 GB).
"""

from __future__ import annotations

import gzip
import http.client
import http.server
import json
import sys
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def drip() -> Iterator[bytes]:
    while True:
        yield b" "
        time.sleep(1.0)


def endless() -> Iterator[bytes]:
    yield b'{"runs": ['
    while True:
        yield b"1, " * 10_000


@cache
def bomb() -> bytes:
    return gzip.compress(bytes(2**26)) * 48


class Gateway(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, target: int, folder: Path) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.target, self.folder = target, folder

    def mode(self) -> list[str]:
        try:
            return (self.folder / "mode").read_text().split() or ["pass"]
        except OSError:
            return ["pass"]

    def handle_error(self, request, client_address):
        """Clients that went away are expected here."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet
    server: Gateway

    def log_message(self, *arguments):
        """Keep quiet."""

    def _handle(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mode = ["pass"] if self.path.startswith("/health") else self.server.mode()
        if mode[0] == "once":
            (self.server.folder / "mode").write_text("pass")
            mode = mode[1:]
        if mode[0] == "status":
            mode = [mode[1]] if mode[2] in self.path else ["pass"]
        if mode[0] == "forbid":
            mode = ["403"] if mode[1] in self.path or mode[1].encode() in body else ["pass"]
        if mode[0] == "404":  # as of a proxy that has lost its route
            return self._answer(404, b"<html>not found</html>", [("Content-Type", "text/html")])
        if mode[0].isdigit():
            return self._answer(int(mode[0]), b'{"error_code": "TEMPORARILY_UNAVAILABLE", "message": "sick"}')
        if mode[0] == "garbage":
            return self._answer(200, b"\x00\xff<html>not json")
        if mode[0] == "later":
            return self._answer(429, b"{}", [("Retry-After", "100000")])
        if mode[0] == "empty" and mode[-1] in ("empty", self.path.rpartition("/")[2]):
            return self._answer(200, b"{}", [("Content-Type", "application/json")])
        if mode[0] == "lose" and b'"metrics"' in body:
            kept = json.loads(body)
            kept["metrics"] = [metric for metric in kept["metrics"] if mode[1] not in metric["key"]]
            body = json.dumps(kept).encode()
        if mode[0] == "redirect":
            return self._answer(307, b"", [("Location", mode[1] + self.path)])
        if mode[0] == "bomb":
            return self._answer(200, bomb(), [("Content-Encoding", "gzip")])
        if mode[0] in ("drip", "endless"):
            return self._without_end(drip() if mode[0] == "drip" else endless())
        if mode[0] == "hang":
            time.sleep(3600)
        if mode[0] == "slow":
            time.sleep(float(mode[1]))
        status, headers, content = self._pass_on(body)
        if mode[0] == "half":
            self.send_response(status)
            self.send_header("Content-Length", str(len(content) + 100))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return None
        if mode[0] == "cookies":
            headers += [("Set-Cookie", f"{uuid.uuid4()}={'x' * 60_000}") for _ in range(50)]
        return self._answer(status, content, headers)

    def _without_end(self, pieces):
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()

    def _pass_on(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=60)
        own = ("host", "content-length")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in own}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        kept = [
            (k, v) for k, v in answer.getheaders() if k.lower() in ("content-type", "content-disposition")
        ]
        connection.close()
        return answer.status, kept, content

    def _answer(self, status, content, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815  (names that http.server looks up)


if __name__ == "__main__":
    Gateway(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])).serve_forever()
