"""Bare values of Avro from a JMS broker and from Kafka, read by the schema that their sources name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import stomp

from tests.integration.bridge_process import wait
from tests.integration.commands import printed
from tests.topic_records import committed_records, ordered_producer

if TYPE_CHECKING:
    from tests.integration.bridge_process import Bridge

TEXT = b'{"id": 7, "country": "AT"}'


def order(number: int, country: str) -> bytes:
    """An order of a number below 64, which happens to be UTF-8."""
    return bytes((2 * number, 2 * len(country))) + country.encode()


def keys(bridge: Bridge, topic: str) -> list[bytes | None]:
    return sorted(record.key() or b"" for record in committed_records(bridge.bootstrap, topic))


def test_values_are_routed_by_their_fields(bridge: Bridge) -> None:
    port = int(bridge.settings["embedded.stomp.port"])
    connection = stomp.Connection12([("127.0.0.1", port)], auto_content_length=False)
    connection.connect(wait=True)
    for body in (order(5, "DE"), order(1, "DE"), order(6, "FR")[:-1], TEXT):
        # With a length, Artemis makes a bytes message of it.
        length = {} if body is TEXT else {"content-length": str(len(body))}
        connection.send("bare", body, headers={"destination-type": "ANYCAST", "persistent": "true", **length})
    connection.disconnect(receipt="done")
    wait(lambda: len(keys(bridge, "ticks")) == 2, lambda: bridge.output)
    producer = ordered_producer(bridge.bootstrap)
    for body in (order(9, "FR"), order(2, "FR"), b"damaged"):
        producer.produce("ticks", body)
    assert producer.flush(30) == 0
    # The JSON text has crossed Kafka, where it is a bare value as any other, and not a good one.
    wait(lambda: len(keys(bridge, "ticks-out")) == 2, lambda: bridge.output)
    assert keys(bridge, "ticks") == [b"", b"", b"", b"5", b"7"]
    assert keys(bridge, "ticks-out") == [b"5", b"9"]
    shown = lines_of(bridge, "journal", "tail", "-n", "100", "--where", "msg.body.country = 'FR'", "--json")
    assert len(shown) == 2
    received = lines_of(bridge, "receive", "jms:queue/ticks.FR", "--count", "1", "--timeout", "60s", "--json")
    assert len(received) == 1


def lines_of(bridge: Bridge, *arguments: str) -> list[object]:
    """The values that a command prints."""
    return [json.loads(line) for line in printed(bridge.file, *arguments).splitlines()]
