"""A schema registry of the benchmarks, which has one schema."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["record", "registry"]


def record(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the Avro schema of a record whose fields have these types."""
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields.items()]}


@contextmanager
def registry(schema: Mapping[str, Any]) -> Iterator[str]:
    """Starts a registry on loopback that answers any question with the schema; yields its URL."""
    answer = json.dumps({"version": 1, "id": 1, "schema": json.dumps(schema)}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Writes no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
