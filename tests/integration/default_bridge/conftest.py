"""The bridge that all tests of this folder share: without a word about policies and dead letters, and traced.

It has to be there and ready in the end, with no part started twice.
"""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from engine.embedded import find_nats_server, free_ports
from engine.errors import SetupError
from tests.integration.bridge_process import Bridge, configuration
from tests.integration.default_bridge.collector import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEMS = """\
source.jms.destinations=queue:orders, queue:to.jms
sink.jms.type=stomp
routes.to-jms.in.include=msg.address==to.jms
routes.to-jms.out.topic=jms:queue/from.jms
"""
NATS = """\
embedded.nats.port={nats}
source.jms.destinations=queue:orders, queue:to.jms, queue:ask.nats
source.nats.type=nats
source.nats.destinations=ask.>
sink.amqp.type=amqp
sink.amqp.reply-to=queue:bridge.amqp.replies
sink.slow.type=amqp
sink.slow.reply-to=queue:bridge.slow.replies
sink.slow.reply-timeout=1s
sink.nats.type=nats
sink.nats.reply-to=bridge.replies
routes.jms.in.include=msg.address==ask.jms
routes.jms.out.topic=amqp:queue/service
routes.slow.in.include=msg.address==ask.slow
routes.slow.out.topic=slow:queue/slow.service
routes.nats.in.include=msg.address==ask.nats
routes.nats.out.topic=nats:service.nats
"""


@pytest.fixture(scope="package")
def collector() -> Iterator[Collector]:
    with Collector() as found:
        yield found


@pytest.fixture(scope="package")
def bridge(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Bridge]:
    more = SYSTEMS
    (nats,) = free_ports(1)
    with suppress(SetupError):
        find_nats_server()
        more += NATS.format(nats=nats)
    if importlib.util.find_spec("opentelemetry") and importlib.util.find_spec("opentelemetry.sdk"):
        more += f"tracing.endpoint=http://127.0.0.1:{collector.server.server_port}\n"
    file = configuration(tmp_path_factory.mktemp("bridge"), more)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("routing.")))
    bridge = Bridge(file, environment={"OTEL_BSP_SCHEDULE_DELAY": "200"})
    bridge.start()
    try:
        bridge.wait_ready(300)
        yield bridge
        assert bridge.get("/ready")[0] == 200, bridge.output
        assert bridge.metric("jmsbridge_component_restarts_total") == 0
    finally:
        bridge.end()
