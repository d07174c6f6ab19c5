"""A message's trace through a whole bridge, as a collector of OpenTelemetry sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.bridge_process import wait
from tests.integration.connectors.running import read

if TYPE_CHECKING:
    from tests.integration.bridge_process import Bridge
    from tests.integration.default_bridge.collector import Collector

pytest.importorskip("opentelemetry.sdk", reason="make setup-dev installs OpenTelemetry")

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


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
    wait(lambda: collector.named("receive to.jms") and collector.named("send from.jms"))
    (received,), (sent,) = collector.named("receive to.jms"), collector.named("send from.jms")
    assert received.parent_span_id == b""
    assert (sent.trace_id, sent.parent_span_id) == (received.trace_id, received.span_id)
