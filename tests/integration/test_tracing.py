"""A message's trace through a whole bridge, as a collector of OpenTelemetry sees it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tests.integration.bridge_process import Bridge, configuration, wait
from tests.integration.connectors.running import read

pytest.importorskip("opentelemetry.sdk", reason="make setup-dev installs OpenTelemetry")

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SYSTEMS = """\
tracing.endpoint=http://127.0.0.1:{port}
source.jms.destinations=queue:orders, queue:to.jms
sink.jms.type=stomp
routes.to-jms.in.include=msg.address==to.jms
routes.to-jms.out.topic=jms:queue/from.jms
"""


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

    def take(self, data: bytes, encoding: str | None) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        request = ExportTraceServiceRequest.FromString(gzip.decompress(data) if encoding == "gzip" else data)
        for resource in request.resource_spans:
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    found = Collector()
    thread = Thread(target=found.server.serve_forever, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Bridge]:
    more = SYSTEMS.format(port=collector.server.server_port)
    file = configuration(tmp_path_factory.mktemp("bridge"), more)
    found = Bridge(file, environment={"OTEL_BSP_SCHEDULE_DELAY": "200"})
    found.start()
    try:
        found.wait_ready()
        yield found
    finally:
        found.end()


def test_a_message_to_kafka_goes_on_in_the_span_of_its_source(bridge: Bridge, collector: Collector) -> None:
    came = f"00-{TRACE}-{SPAN}-01"
    bridge.send(range(1), traceparent=came)
    wait(lambda: collector.named("receive orders"))
    (span,) = collector.named("receive orders")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, SPAN)

    wait(lambda: read(bridge.bootstrap, "routed"))
    (record,) = [located.record for located in read(bridge.bootstrap, "routed")]
    assert record.header("jms.traceparent") == came
    assert record.header("traceparent") == f"00-{TRACE}-{span.span_id.hex()}-01"


def test_a_message_to_jms_is_one_trace_through_source_and_sink(bridge: Bridge, collector: Collector) -> None:
    bridge.send(range(1), destination="to.jms")
    wait(lambda: collector.named("send from.jms"))
    (received,), (sent,) = collector.named("receive to.jms"), collector.named("send from.jms")
    assert received.parent_span_id == b""
    assert (sent.trace_id, sent.parent_span_id) == (received.trace_id, received.span_id)
