"""Spans as OpenTelemetry makes them: their place in a trace, sampling, and an endpoint that is not there."""

from __future__ import annotations

import socket
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import structlog

from engine.errors import SetupError
from engine.telemetry import tracing
from engine.telemetry.tracing import Operation
from engine.tracing_section import TracingConfig
from routes.config import loads
from routes.model import Config

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CAME = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=1"}
NOT_RECORDED = {"traceparent": f"00-{TRACE}-{SPAN}-00"}


def config(*lines: str) -> Config:
    start = "bridge.id=b1\nsource.s.type=stomp\nsource.s.destinations=queue:q\n"
    return loads(start + "routes.r.in.include=TRUE\nroutes.r.out.topic=t\n" + "\n".join(lines), base=Path())


def opened(config: Config) -> AbstractContextManager[tracing.Tracing | None]:
    return tracing.opened(config.section(TracingConfig), config.bridge_id, "source:s")


def test_nothing_is_imported_where_no_endpoint_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "engine.telemetry.otlp", None)
    with opened(config()) as found:
        assert found is None


def test_a_library_that_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "engine.telemetry.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.context", None)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    traced = config("tracing.endpoint=http://127.0.0.1:4318")
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    extra = {needed.partition(">=")[0] for needed in pyproject["project"]["optional-dependencies"]["tracing"]}
    with pytest.raises(SetupError, match="no module 'opentelemetry") as told, opened(traced):
        pass
    assert set(str(told.value).partition("pip install ")[2].partition(",")[0].split()) == extra


class WithTheLibrary:
    """What needs it."""

    @pytest.fixture(autouse=True)
    def library(self) -> None:
        pytest.importorskip("opentelemetry.sdk", reason="make setup-dev installs OpenTelemetry")


class Spans:
    """What was exported."""

    def __init__(self, ratio: float = 1.0) -> None:
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        from engine.telemetry.otlp import Otlp

        self._exporter = InMemorySpanExporter()
        self.otlp = Otlp(TracingConfig(endpoint="http://c:1/", sample_ratio=ratio), "b1", "source:s", self._exporter)

    def sent(self) -> tuple[Any, ...]:
        self.otlp.close()
        return self._exporter.get_finished_spans()


class TestSpans(WithTheLibrary):
    def test_a_span_belongs_to_the_trace_of_its_message_which_goes_on_with_it(self) -> None:
        spans = Spans()
        begun = spans.otlp.begin(Operation.RECEIVE, "orders", CAME, {"messaging.system": "jms"})
        begun.end()

        (span,) = spans.sent()
        assert (span.name, span.kind.name) == ("receive orders", "CONSUMER")
        assert f"{span.parent.span_id:016x}" == SPAN
        assert begun.context == {
            "traceparent": f"00-{TRACE}-{span.context.span_id:016x}-01",
            "tracestate": "a=1",
        }
        assert dict(span.attributes) == {
            "messaging.operation.name": "receive",
            "messaging.operation.type": "receive",
            "messaging.system": "jms",
        }
        assert span.resource.attributes["service.name"] == "jms-bridge"
        assert span.resource.attributes["service.instance.id"] == "b1/source:s"

    def test_a_span_of_a_sink_produces(self) -> None:
        spans = Spans()
        spans.otlp.begin(Operation.SEND, "orders", CAME, {}).end("refused")
        (span,) = spans.sent()
        assert (span.name, span.kind.name, span.status.status_code.name) == ("send orders", "PRODUCER", "ERROR")
        assert span.attributes["error.type"] == "refused"

    def test_without_a_context_each_message_begins_a_trace_of_its_own(self) -> None:
        spans = Spans()
        contexts = [spans.otlp.begin(Operation.RECEIVE, "orders", {}, {}).context["traceparent"] for _ in range(2)]
        assert contexts[0][:35] != contexts[1][:35]

    def test_the_ratio_is_for_traces_that_begin_here(self) -> None:
        spans = Spans(ratio=0)
        begun = spans.otlp.begin(Operation.RECEIVE, "new", {}, {})
        begun.end()
        spans.otlp.begin(Operation.RECEIVE, "recorded", CAME, {}).end()
        assert int(begun.context["traceparent"][-2:], 16) & 1 == 0, "whoever comes next does not record it either"
        assert [span.name for span in spans.sent()] == ["receive recorded"]

    def test_what_its_sender_does_not_record_is_not_recorded_here(self) -> None:
        spans = Spans()
        begun = spans.otlp.begin(Operation.RECEIVE, "orders", NOT_RECORDED, {})
        begun.end()
        assert begun.context["traceparent"].startswith(f"00-{TRACE}-")
        assert spans.sent() == ()

    def test_what_never_ends_is_never_sent(self) -> None:
        spans = Spans()
        spans.otlp.begin(Operation.RECEIVE, "orders", CAME, {})
        assert spans.sent() == ()

    def test_an_environment_that_switches_it_off_gives_no_context(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        spans = Spans()
        begun = spans.otlp.begin(Operation.RECEIVE, "orders", {}, {})
        begun.end("refused")
        assert begun.context == {}
        assert spans.sent() == ()


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        # Bound and not listening: connections are refused, and nobody else can take it.
        yield taken.getsockname()[1]


class TestAnEndpointThatIsNotThere(WithTheLibrary):
    def test_it_holds_nothing_up_and_is_told_once(self, closed_port: int) -> None:
        endpoint = f"http://127.0.0.1:{closed_port}/v1/traces"
        with structlog.testing.capture_logs() as lines:
            began = time.monotonic()
            with opened(config(f"tracing.endpoint={endpoint}")) as spans:
                assert spans is not None
                for _ in range(5_000):
                    spans.begin(Operation.RECEIVE, "orders", CAME, {}).end()
                used = time.monotonic() - began
            closed = time.monotonic() - began - used
        assert used < 10, "5,000 spans take a fraction of a second"
        assert closed < 10, "the end waits three seconds at most"
        (line,) = [line for line in lines if line["event"] == "spans are lost"]
        assert line["where"] == endpoint
        assert line["spans"] > 0
        assert line["why"] != ""
