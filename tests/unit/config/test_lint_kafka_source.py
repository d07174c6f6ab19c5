"""What lint finds in the keys of a source of type `kafka`."""

from __future__ import annotations

import pytest

from routes.config import lint_text

START = """\
bridge.id=b
source.s.type=stomp
source.s.destinations=queue:q
routes.r.in.include=msg.address==q
routes.r.out.topic=t
"""
"""A configuration without a fault, five lines long."""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "source.k.destinations=a(",
            "'a(' is not a regular expression: missing ), unterminated subpattern at position 1",
        ),
        ("source.k.destinations=jms-bridge.journal", "'jms-bridge.journal' is a topic of the bridge itself"),
        ("source.k.destinations=jms-bridge.journal.state", "'jms-bridge.journal.state' is a topic of the bridge"),
        (
            "routing.dead-letter-topic=d\nsource.k.destinations=d.quarantine",
            "'d.quarantine' is a topic of the bridge itself",
        ),
        ("source.k.url=stomp://h:1", "'source.k.url' is for type stomp, amqp or nats, not kafka"),
        ("source.k.password=secret", "'source.k.password' is for type stomp, amqp, jms or nats, not kafka"),
        ("source.k.selector=a = 1", "'source.k.selector' is for type stomp, amqp or jms, not kafka"),
        ("source.k.address=a.${topics}", "'${topics}' is not ${topic} or ${msg.header.NAME}"),
        ("source.k.address=a.${topic", "'${' without its '}'"),
        ("source.k.address=queue:", "'queue:' has no name"),
        ("source.k.message.type=txt", "'txt' is not auto, TEXT or BYTES"),
        (
            "embedded=off\nkafka.bootstrap.servers=h:1\nsource.s.url=stomp://h:1\nsource.k.hops=x",
            "'x' is not a whole number from 0 to 100",
        ),
        ("source.k.hops=-1", "'-1' is not a whole number from 0 to 100"),
        ("sink.k.type=kafka", "Kafka needs no sink"),
        ("routes.r.out.topic=k:abc", "'k' is neither kafka nor a sink"),
    ],
)
def test_slips_with_a_kafka_source(line: str, message: str) -> None:
    lines = ["source.k.type=kafka", *(["source.k.destinations=a"] if "destinations" not in line else []), line]
    found = [each.message for each in lint_text(START + "\n".join(lines)).errors]
    assert found[0].startswith(message)


def test_a_kafka_source_without_a_fault() -> None:
    lines = ("source.k.type=kafka", "source.k.destinations=a, b\\\\..*", "source.k.message.type=bytes")
    elsewhere = ("embedded=off", "kafka.bootstrap.servers=h:1", "source.s.url=stomp://h:1")
    linted = lint_text(START + "\n".join((*lines, *elsewhere, "source.k.address=queue:${topic}.${msg.header.a}")))
    assert linted.faults == ()
    config = linted.config
    assert config is not None
    source = config.sources[1]
    assert source.destinations == ("a", "b\\..*")
    assert str(source.address) == "queue:${topic}.${msg.header.a}"
