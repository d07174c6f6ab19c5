"""Frames that are not STOMP 1.2, at a source: each is one unreadable message, and the next one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.connectors.stomp_broker import opened as opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.connectors.stomp.source import StompSource
    from tests.unit.connectors.stomp_broker import Broker


@pytest.mark.parametrize(
    ("malformed", "says", "acknowledged"),
    [
        (
            b"ack:9\nmessage-id:1\nsubscription:1\ndestination:/queue/a\nfonts:Arial\r\nBold\r",
            "without a colon: 'Bold'",
            True,
        ),
        (
            b"ack:9\nmessage-id:1\nsubscription:1\ndestination:/queue/a\ncontent-length:ten",
            "is not a number: 'ten'",
            True,
        ),
        (b"ack:9\nmessage-id:1\nsubscription:1\ndestination:/queue/a\ncontent-length:2", "after its 2 bytes", True),
        (b"ack:9\nmessage-id:1\nsubscription:1\ndestination:/queue/a\na:\\t", "an unknown escape", True),
        (b"ack:9\nmessage-id:1\nsubscription:1\ndestination:/queue/a\na:\xff", "that is not UTF-8", True),
        (b"ack:9\nmessage-id:1\nsubscription:1", "without the header destination", True),
        (b"ack:9\nmessage-id:1\ndestination:/queue/a", "without the header subscription", True),
        (b"ack:9\nsubscription:1\ndestination:/queue/a", "without the header message-id", True),
        (b"message-id:1\nsubscription:1\ndestination:/queue/a", "cannot be acknowledged", False),
        (b"ack:\nmessage-id:1\nsubscription:1\ndestination:/queue/a", "cannot be acknowledged", False),
    ],
)
@pytest.mark.parametrize("mode", ["individual", "cumulative"])
def test_a_malformed_frame_is_one_unreadable_message(
    opened: Callable[..., tuple[StompSource, Broker]], malformed: bytes, says: str, acknowledged: bool, mode: str
) -> None:
    sound = b"MESSAGE\nack:10\nmessage-id:2\nsubscription:1\ndestination:/queue/a\n\nnext\0"
    frames = [b"MESSAGE\n" + malformed + b"\n\nbody\0", sound]
    source, broker = opened("other", f"acknowledge={mode}", frames=frames)

    first, after = source.receive(5), source.receive(5)
    assert first is not None
    assert after is not None
    source.acknowledge([first.token])
    source.acknowledge([after.token])
    source.close()

    assert first.fault is not None
    assert says in first.fault
    assert (first.message.body, first.message.body_type) == (b"body", "bytes")
    assert first.message.headers["JMSDestination"] == "queue:a"
    assert (after.message.body, after.fault) == (b"next", None)
    assert (b"ACK\nid:9\n" in broker.heard) is acknowledged
    assert b"ACK\nid:10\n" in broker.heard
