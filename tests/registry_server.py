"""Schema registry in the test's own process, which answers as it is told and keeps what it was asked."""

from __future__ import annotations

import json
import ssl
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["Asked", "RegistryServer", "registry_server"]


class Asked(NamedTuple):
    """Request as the server got it."""

    path: str
    login: str | None
    """The header Authorization."""
    body: object = None
    """What was posted, from JSON."""
    headers: Mapping[str, str] = MappingProxyType({})
    """All headers, by names in lower case."""


class RegistryServer:
    """Answers of a registry by path, and the requests that came."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[Asked] = []
        self.answers: dict[str, list[tuple[int, object]]] = {}
        """Status and body for each request of a path, one after the other; the last one stays. Others get 404."""
        self.fault: tuple[int, object] | None = None
        """The answer to all requests while the server is out of order."""
        self.admits: Callable[[str | None], bool] = lambda _: True
        """Function that tells if the server takes a login, the header Authorization; others get 401."""
        self.hanging: set[str] = set()
        """Paths that get no answer before the end of the server."""
        self.stalling: set[str] = set()
        """Paths that get the head of an answer, and its body at the end of the server."""
        self.delay_seconds = 0.0
        self.most_at_once = 0
        """Greatest number of requests that waited for their answers at a time."""
        self.is_over = Event()
        self._lock = Lock()
        self._at_once = 0

    def answer(self, path: str, login: str | None = None) -> tuple[int, object]:
        """Takes the next answer for a path."""
        if self.fault is not None:
            return self.fault
        if not self.admits(login):
            return 401, {"error_code": 401, "message": "who are you?"}
        known = self.answers.get(path, [(404, {"error_code": 40403, "message": "not found"})])
        return known.pop(0) if len(known) > 1 else known[0]

    @contextmanager
    def answering(self, path: str) -> Iterator[None]:
        """Waits as long as a client has to, and counts the request meanwhile."""
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        if path in self.hanging:
            self.is_over.wait()
        time.sleep(self.delay_seconds)
        yield
        with self._lock:
            self._at_once -= 1


@contextmanager
def registry_server(certificates: Path | None = None) -> Iterator[RegistryServer]:
    """Runs a server on loopback; with the files of `certify` by TLS, for clients that their authority has signed."""

    class Handler(_Handler):
        """Requests to this server."""

    server = _Server(("127.0.0.1", 0), Handler)
    if certificates is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates / "ca.pem")
        context.load_cert_chain(certificates / "broker.pem", certificates / "broker.key")
        context.verify_mode = ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if certificates is None else "https"
    registry = Handler.registry = RegistryServer(f"{scheme}://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        registry.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    registry: RegistryServer

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, asked: object) -> None:
        registry = self.registry
        login = self.headers["Authorization"]
        shown = {name.lower(): text for name, text in self.headers.items()}
        registry.asked.append(Asked(self.path, login, asked, shown))
        with registry.answering(self.path):
            status, body = registry.answer(self.path, login)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.path in registry.stalling:
            registry.is_over.wait()
        self.wfile.write(data)

    def handle(self) -> None:
        """Serves a connection until its client has gone, also in the middle of an answer."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002 - the name of the class above
        """Prints nothing."""
