"""Names and empty bodies through a real Artemis and back, by the protocols that carry them as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.message import BodyType, Message
from routes.properties import JmsType, Property

if TYPE_CHECKING:
    from engine.embedded import EmbeddedArtemis
    from tests.integration.connectors.conftest import MakeEnds

NAMES = ("trace-id", "trace_id", "trace.id", "größe", "NOT", "content-type", "X-Request-Id", "a b", "a_DOT_b")
EMPTY = [
    Message(body_types="none"),
    Message(body_types="null"),
    Message(body_type=BodyType.BYTES),
]


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_names_and_empty_bodies_come_back(artemis: EmbeddedArtemis, ends: MakeEnds, queue: str, protocol: str) -> None:
    url = artemis.amqp_url if protocol == "amqp" else artemis.stomp_url
    both = ends({".type": protocol, ".url": url})
    both.sink.connect()
    both.source.connect()
    properties = {name: Property(name, JmsType.STRING) for name in NAMES}
    annotation = {"JMS_AMQP_MA_x-opt-my_note": Property("a", JmsType.STRING)} if protocol == "amqp" else {}
    # A text before the empty ones shows that the source takes those as well.
    sent = [Message(b"x", properties=properties | annotation), *EMPTY, Message(b"end")]
    assert both.send(f"queue/{queue}", *sent) == dict.fromkeys(range(len(sent)))

    found = both.receive(len(sent))
    texts = {name: value.text for name, value in found[0].named().items()}
    assert {name: texts.get(name) for name in (*NAMES, *annotation)} == {name: name for name in NAMES} | (
        dict.fromkeys(annotation, "a")
    )
    assert [(each.body, each.body_types) for each in found] == [(each.body, each.body_types) for each in sent]
