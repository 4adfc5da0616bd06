"""What one thread that sends to a tracker may read, from whom, and until when.

Trackers' packages send with ``requests``, with time-outs and retries of minutes, and read whatever comes. In a thread
that has a `Limit`, and only there, requests go over connections of our own: without retries, to no other server than
the one asked, with answers that are counted while they are unpacked, and until the deadline, when connections in use
are shut. So an answer that never ends costs neither memory nor time after the call.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

from uq_tracking.errors import PermissionDeniedError, TrackerUnreachableError

ANSWER = 8 * 2**20
"""Bytes of an answer, unpacked, that a job reads: it may take ten times as much to understand them."""
LONG_ANSWER = 32 * ANSWER
"""The same for commands that a person started."""
DOWNLOAD = 8 * 2**30
"""Bytes of a download, which is written to disk as it comes."""
REFUSAL = 64 * 2**10
"""Bytes of an answer that says why something is refused, and of the headers of any."""
SHOWN = 200
"""Characters of a refusal that are shown."""
PACKED = ("", "identity", "gzip", "x-gzip", "deflate")
"""Encodings that unpack to at most a thousand times their size, so that a piece of an answer stays small."""


class Limit:
    """What a thread may read of one answer, in bytes, and how long it may take, in seconds, in all."""

    def __init__(self, seconds: float, most: int = ANSWER) -> None:
        self.most = most
        self.connections: list[Any] = []
        """Connections that this thread has used."""
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until the deadline."""
        return self._end - time.monotonic()

    def extend(self, seconds: float) -> None:
        """Allow so many seconds from now on, because something has arrived."""
        self._end = time.monotonic() + seconds

    def cut(self) -> None:
        """Shut the connections that this thread is using, so that it waits no longer."""
        self._end = -math.inf
        for connection in list(self.connections):
            if connection.limit is self:
                with suppress(OSError, AttributeError):
                    connection.opened.shutdown(2)


LIMIT: ContextVar[Limit | None] = ContextVar("uq_tracking_limit", default=None)


@contextmanager
def limited(seconds: float, most: int = ANSWER) -> Iterator[Limit]:
    """Limit the requests of this thread inside the block."""
    limit, done = Limit(seconds, most), threading.Event()

    def wait() -> None:
        while not done.wait(min(max(limit.left(), 0.0), threading.TIMEOUT_MAX)):
            if limit.left() <= 0:
                return limit.cut()

    token = LIMIT.set(limit)
    threading.Thread(target=wait, name="uq-tracking deadline", daemon=True).start()
    watch()
    try:
        yield limit
    finally:
        done.set()
        LIMIT.reset(token)


def watch() -> None:
    """Put the guard into ``requests``, if a tracker's package has imported it."""
    adapters = sys.modules.get("requests.adapters")
    adapter = getattr(adapters, "HTTPAdapter", None)  # None while another thread imports it
    if adapter is None or getattr(adapter.send, "is_guarded", False):
        return
    original = adapter.send

    def send(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        limit = LIMIT.get()
        if limit is None or hasattr(self, "send_limited"):
            return original(self, request, *args, **options)
        pid, own = vars(self).get("limited", (None, None))
        if pid != os.getpid():  # a forked child must not share its parent's connections
            own = _adapter()(self.poolmanager.connection_pool_kw)
            self.limited = os.getpid(), own
        return own.send_limited(limit, request, *args, **options)

    send.is_guarded = True  # type: ignore[attr-defined]
    adapter.send = send


@cache
def _adapter() -> Any:
    """Return the class of adapters that hold our own connections, set up as those of another adapter."""
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.poolmanager import pool_classes_by_scheme

    class UnreachableError(requests.ConnectionError, TrackerUnreachableError):
        """A server that does not do what was asked, as both packages call it."""

    class DeniedError(requests.RequestException, PermissionDeniedError):
        """A server that forbids this, as both packages call it."""

    def watched(pool: Any) -> Any:
        """Return a class of pools whose connections know which thread uses them."""

        class Connection(pool.ConnectionCls):  # type: ignore[misc]
            limit: Limit | None = None
            opened: Any = None

            def connect(self) -> None:
                super().connect()
                self.opened = self.sock  # which http.client forgets while it reads a last answer

            def request(self, *args: Any, **options: Any) -> None:
                self.limit = LIMIT.get()
                if self.limit is not None:
                    self.limit.connections.append(self)
                super().request(*args, **options)

        return type("Pool", (pool,), {"ConnectionCls": Connection})

    def refuse(answer: Any, why: str) -> None:
        """Read no more of an answer."""
        answer.close()
        raise UnreachableError(why)

    def counted(answer: Any, limit: Limit, most: int, server: str) -> Callable[..., Iterator[bytes]]:
        """Return a stream that ends with an error after too many bytes, or when the deadline has passed."""
        stream = answer.raw.stream

        def pieces(*args: Any, **options: Any) -> Iterator[bytes]:
            count = 0
            for piece in stream(*args, **options):
                count += len(piece)
                if count > most:
                    refuse(answer, f"the answer of {server} is longer than {most:,} bytes")
                yield piece
                if limit.left() <= 0:
                    break
            if limit.left() <= 0:  # a connection that was shut looks like the end of an answer
                refuse(answer, f"the answer of {server} did not end in time")

        return pieces

    pools = {scheme: watched(pool) for scheme, pool in pool_classes_by_scheme.items()}

    class Adapter(HTTPAdapter):
        def __init__(self, options: dict[str, Any]) -> None:
            super().__init__()
            self.init_poolmanager(self._pool_connections, **options)

        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, **options)
            self.poolmanager.pool_classes_by_scheme = pools

        def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
            manager = super().proxy_manager_for(*args, **options)
            manager.pool_classes_by_scheme = pools
            return manager

        def send_limited(
            self, limit: Limit, request: Any, stream: bool = False, timeout: Any = None, **options: Any
        ) -> Any:
            """Send a request, and check its answer as far as it has come."""
            left = limit.left()
            server = "{0.scheme}://{0.hostname}".format(urlsplit(request.url))
            if left <= 0:
                raise UnreachableError(f"{server} was not asked: the deadline has passed")
            given = timeout if isinstance(timeout, tuple) else (timeout, timeout)
            waits = [min(wait, left) if isinstance(wait, int | float) else left for wait in given]
            if "Accept-Encoding" in request.headers:
                request.headers["Accept-Encoding"] = "gzip, deflate"
            connect, read = (None if math.isinf(wait) else wait for wait in waits)
            answer = self.send(request, stream=True, timeout=(connect, read), **options)
            del limit.connections[:-1]
            is_download = stream and request.method == "GET"
            most = DOWNLOAD if is_download else limit.most
            status = answer.status_code
            answer.raw.stream = counted(answer, limit, most if status < 400 else REFUSAL, server)
            if not stream:
                answer.encoding = answer.encoding or "utf-8"  # guessing takes long for a long answer
            packed = answer.headers.get("Content-Encoding", "").strip().lower()
            if sum(map(len, answer.headers.values())) > REFUSAL:  # cookies would go into all later requests
                refuse(answer, f"{server} sends headers of more than {REFUSAL:,} bytes")
            if packed not in PACKED:
                refuse(answer, f"{server} packs its answer as {packed[:40]!r}, which was not asked for")
            if answer.is_redirect and not is_download:
                target = urljoin(request.url, answer.headers["location"])
                if requests.Session().should_strip_auth(request.url, target):
                    host = urlsplit(target).hostname
                    refuse(answer, f"{server} redirects to another server, {host}, which is sent nothing")
            if status in (401, 403, 407, 408, 429) or status >= 500:
                text = " ".join(answer.text.split())[:SHOWN]
                if status == 403:
                    raise DeniedError(f"{server} denies permission (status 403: {text})")
                what = "refuses the credentials" if status in (401, 407) else "fails"
                raise UnreachableError(f"{server} {what} (status {status}: {text})")
            return answer

    return Adapter
