"""A server's answers cost a job neither memory nor time after the call, and no other server gets anything."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
import time
from contextlib import suppress

import pytest
import requests

from uq_tracking.errors import PermissionDeniedError, TrackerUnreachableError
from uq_tracking.tracking.deadline import THREADS, Budget
from uq_tracking.tracking.guard import ANSWER, LIMIT, limited


class Server(http.server.ThreadingHTTPServer):
    """Answers as ``answer`` says, and counts what it has been asked and has sent."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.bodies, self.sent = [], 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, request, client_address):
        """Clients that went away are expected here."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        """Keep quiet."""

    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        status, headers, pieces = self.server.answer()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                self.server.sent += len(piece)
        self.close_connection = "Content-Length" not in headers

    do_GET = do_POST  # noqa: N815  (a name that http.server looks up)


@pytest.fixture
def server():
    found = Server()
    yield found
    found.shutdown()
    found.server_close()


def whole(content, status=200, **headers):
    return status, {"Content-Length": str(len(content)), **headers}, [content]


def without_end(piece, pause=0.0):
    while True:
        yield piece
        time.sleep(pause)


def test_without_a_limit_requests_pass_as_they_are(server):
    server.answer = lambda: whole(b"x" * (ANSWER + 1))
    with limited(10):
        pass
    assert LIMIT.get() is None
    assert len(requests.post(server.url, timeout=10).content) == ANSWER + 1


def test_an_answer_is_read_as_ever(server):
    server.answer = lambda: whole(
        gzip.compress(json.dumps({"a": 1}).encode()), **{"Content-Encoding": "gzip"}
    )
    with limited(10):
        assert requests.post(server.url, json={"b": 2}, timeout=10).json() == {"a": 1}
        assert requests.post(server.url, timeout=None).json() == {"a": 1}
    assert json.loads(server.bodies[0]) == {"b": 2}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: whole(gzip.compress(bytes(64 * 2**20)), **{"Content-Encoding": "gzip"}), "longer than"),
        (lambda: whole(b"x", **{"Content-Encoding": "gzip, gzip"}), "packs its answer as 'gzip, gzip'"),
        (
            lambda: whole(b"x", **{f"Cookie{n}": "x" * 60_000 for n in range(2)}),
            "sends headers of more than 65,536",
        ),
        (lambda: (200, {}, without_end(b"[1, " * 10000)), "longer than 8,388,608 bytes"),
        (lambda: (500, {}, without_end(b"[1, " * 10000)), "longer than 65,536 bytes"),
        (lambda: whole(b"sick", 503), "fails .status 503: sick"),
        (lambda: whole(b"sick", 429, **{"Retry-After": "100000"}), "fails .status 429"),
        (lambda: whole(b"who?", 401), "refuses the credentials .status 401: who"),
    ],
)
def test_what_a_server_should_not_do(server, answer, message):
    server.answer = answer
    start = time.monotonic()
    with limited(20), pytest.raises(TrackerUnreachableError, match=message) as caught:
        requests.post(server.url, timeout=20)
    assert isinstance(caught.value, requests.RequestException)
    assert time.monotonic() - start < 10
    assert server.sent < 4 * ANSWER
    assert len(server.bodies) == 1


def test_what_is_forbidden_says_so(server):
    server.answer = lambda: whole(b"Permission denied", 403)
    with limited(10), pytest.raises(PermissionDeniedError, match="status 403: Permission denied"):
        requests.post(server.url, timeout=10)


@pytest.mark.parametrize("status", [302, 307, 308])
def test_a_redirect_to_another_server_is_refused(server, status):
    other = Server()
    other.answer = lambda: whole(b"{}")
    server.answer = lambda: whole(b"", status, Location=f"{other.url.replace('127.0.0.1', 'localhost')}/api")
    with limited(10), pytest.raises(TrackerUnreachableError, match="redirects to another server, localhost"):
        requests.post(server.url, json={"rmse": 1.0}, timeout=10)
    assert other.bodies == []
    other.shutdown()
    other.server_close()


def test_a_redirect_on_the_same_server_is_followed(server):
    answers = [whole(b"", 307, Location="/elsewhere"), whole(b"[1]")]
    server.answer = lambda: answers.pop(0)
    with limited(10):
        assert requests.post(server.url, json={"rmse": 1.0}, timeout=10).json() == [1]
    assert server.bodies[0] == server.bodies[1]


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_drip_ends_at_the_deadline_with_its_thread(server, monkeypatch, part):
    if part == "head":
        monkeypatch.setattr(Handler, "end_headers", lambda self: self.flush_headers())
    server.answer = lambda: (200, {}, without_end(b"x", 0.05))
    start, answers = time.monotonic(), []
    ending = Budget(0.5).begin(lambda: answers.append(requests.post(server.url, timeout=100)), [])
    assert isinstance(ending(), TrackerUnreachableError)
    while any(thread.name == THREADS for thread in threading.enumerate()) and time.monotonic() - start < 5:
        time.sleep(0.01)
    assert time.monotonic() - start < 3
    assert answers == []
