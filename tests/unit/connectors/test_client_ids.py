"""Client ids of connections to JMS brokers, which refuse a second connection with an id that is in use."""

from __future__ import annotations

import pytest

from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.stomp.sink import StompSink
from engine.connectors.stomp.source import StompSource
from routes.config import loads

CONFIG = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:9
source.s.type=stomp
source.s.url=stomp://127.0.0.1:9
routes.r.in.include=TRUE
routes.r.out.topic=t
sink.out.type=stomp
sink.out.url=stomp://127.0.0.1:9
"""
QUEUE, BOTH = "source.s.destinations=queue:a\n", "source.s.destinations=queue:a, topic:b\n"
DURABLE, OWN = "source.s.subscription=keep\n", "source.s.client-id=mine\nsink.out.client-id=yours\n"


@pytest.mark.parametrize(
    ("lines", "worker", "expected"),
    [
        (QUEUE, 1, None),
        (BOTH, 1, None),
        (BOTH + DURABLE, 1, "b1.s"),
        # Worker 1 alone subscribes to topics.
        (BOTH + DURABLE, 2, None),
        (BOTH + DURABLE + OWN, 1, "mine"),
        (QUEUE + OWN, 2, "mine.2"),
    ],
)
def test_a_stomp_source_has_one_where_a_subscription_needs_it(lines: str, worker: int, expected: str | None) -> None:
    config = loads(CONFIG + lines)
    assert StompSource(SystemEndpoint.of(config, config.sources[0]), worker)._session._client_id == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "worker", "expected"), [(QUEUE, 1, None), (QUEUE + OWN, 1, "yours"), (QUEUE + OWN, 2, "yours.2")]
)
def test_a_stomp_sink_has_one_only_if_it_is_given(lines: str, worker: int, expected: str | None) -> None:
    config = loads(CONFIG + lines)
    assert StompSink(SystemEndpoint.of(config, config.sinks[0]), worker)._session._client_id == expected  # type: ignore[arg-type]
