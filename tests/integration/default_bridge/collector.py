"""A collector of OpenTelemetry, as far as tests need one."""

from __future__ import annotations

import gzip
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

__all__ = ["Collector"]


class Collector:
    """Takes spans over HTTP, as OTLP has them."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.take(self.rfile.read(int(self.headers["Content-Length"])), self.headers["Content-Encoding"])
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def take(self, data: bytes, encoding: str | None) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        request = ExportTraceServiceRequest.FromString(gzip.decompress(data) if encoding == "gzip" else data)
        for resource in request.resource_spans:
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]
