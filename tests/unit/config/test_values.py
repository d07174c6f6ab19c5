"""Each kind of value: what it takes, what it refuses and why, and where in the text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from routes.config.fields import FIELDS
from routes.keys import addresses, values
from routes.keys.addresses import Destination
from routes.keys.language import KEY_HEADER
from routes.keys.table import key, rows_of
from routes.keys.values import BadValueError, ValueKind
from routes.model import Policy
from routes.targets import Reference, Template

SYSTEM = FIELDS.row("source.NAME.type").kind
URL = addresses.url({"stomp": 61613, "stomp+ssl": 61612})
TIME = values.duration("100ms", "1h")
SIZE = values.size("1KiB", "1GiB")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (values.choice(Policy), "dead-letter", Policy.DEAD_LETTER),
        (values.whole(1, 10), "10", 10),
        (TIME, "500ms", 0.5),
        (TIME, "1.5s", 1.5),
        (TIME, "5 m", 300.0),
        (values.RETENTION, "7d", 604800.0),
        (values.RETENTION, "forever", -0.001),
        (SIZE, "8MiB", 8 * 1024 * 1024),
        (SIZE, "2048", 2048),
        (SIZE, "2048B", 2048),
        (URL, "stomp://broker.example:61613", "stomp://broker.example:61613"),
        (URL, "stomp+ssl://[::1]:1/", "stomp+ssl://[::1]:1"),
        (addresses.HOST_PORT, "[::1]:0", ("::1", 0)),
        (addresses.HOST_PORTS, "a:1, b:2", "a:1,b:2"),
        (addresses.DESTINATIONS, "queue:a.b/c , topic:d e", ("queue:a.b/c", "topic:d e")),
        (addresses.TARGETS, "orders", (Destination("kafka", Template(("orders",))),)),
        (addresses.TARGETS, "kafka:orders", (Destination("kafka", Template(("orders",))),)),
        (addresses.TARGETS, "a.${msg.header.x}", (Destination("kafka", Template(("a.", Reference("x")))),)),
        (addresses.TARGETS, "nats:orders.eu", (Destination("nats", Template(("orders.eu",))),)),
        (addresses.TARGETS, "stomp:queue:a", (Destination("stomp", Template(("queue:a",))),)),
        (
            addresses.TARGETS,
            "nats:orders.${msg.header.region}.x",
            (Destination("nats", Template(("orders.", Reference("region"), ".x"))),),
        ),
        (
            addresses.TARGETS,
            "s-1:${msg.address}${msg.header.Type}",
            (Destination("s-1", Template((Reference("msg.address"), Reference("JMSType")))),),
        ),
        (
            addresses.TARGETS,
            'orders, nats:a.${msg.body."x,y"},s:queue/x',
            (
                Destination("kafka", Template(("orders",))),
                Destination("nats", Template(("a.", Reference('msg.body."x,y"')))),
                Destination("s", Template(("queue/x",))),
            ),
        ),
        (addresses.TOPIC, "a" * 249, "a" * 249),
        (values.PATH, "a/b", Path("a/b")),
        (values.FLAG, "false", False),
        (values.CREATE_TOPICS, "auto", None),
        (values.REPLICATION, "broker", -1),
        (KEY_HEADER, "msg.header.CorrelationId", "JMSCorrelationID"),
        (KEY_HEADER, "JMSCorrelationID", "JMSCorrelationID"),
        (KEY_HEADER, 'msg.header."order no"', "order no"),
        (KEY_HEADER, "region", "region"),
        (KEY_HEADER, 'msg.header."customer-id"', "customer-id"),
    ],
)
def test_a_value_is_read(kind: ValueKind, text: str, value: Any) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "message", "hint", "offset"),
    [
        (values.choice(Policy), "Stop", "'Stop' is not stop, skip or dead-letter", "did you mean stop?", 0),
        (values.choice(Policy), "xyz", "'xyz' is not stop, skip or dead-letter", "", 0),
        (values.whole(1, 10), "11", "'11' is not a whole number from 1 to 10", "", 0),
        (values.whole(1, 10), "1.0", "'1.0' is not a whole number from 1 to 10", "", 0),
        (values.whole(1, 10), "\u0661", "'\u0661' is not a whole number from 1 to 10", "", 0),
        (TIME, "30", "'30' is not a time from 100ms to 1h with its unit: ms, s, m, h or d", "write 30s for seconds", 0),
        (TIME, "99ms", "'99ms' is not a time from 100ms to 1h with its unit: ms, s, m, h or d", "", 0),
        (SIZE, "8MB", "'8MB' is not a size from 1KiB to 1GiB", "as in 512KiB, 8MiB or 1048576, which is bytes", 0),
        (
            URL,
            "stmop://h:1",
            "'stmop://h:1' is not stomp://host:port or stomp+ssl://host:port",
            "did you mean stomp://?",
            0,
        ),
        (URL, "stomp://", "'' is not a host and a port", "as in 127.0.0.1:9092", 8),
        (URL, "stomp://h:70000", "'70000' is not a port", "a number from 1 to 65535", 10),
        (
            URL,
            "stomp://h:1/x",
            "'stomp://h:1/x' has more than a host and a port",
            "expected stomp://host:port or stomp+ssl://host:port",
            8,
        ),
        (addresses.HOST_PORTS, "a:1, b", "'b' is not a host and a port", "as in 127.0.0.1:9092", 5),
        (
            addresses.HOST_PORTS,
            "a:1,::1:2",
            "'::1' is not a host name",
            "an IPv6 address goes in brackets: [::1]:9092",
            4,
        ),
        (
            addresses.PEERS,
            "a:1,[::1::]:2",
            "'[::1::]' is not a host name",
            "an IPv6 address goes in brackets: [::1]:9092",
            4,
        ),
        (
            addresses.DESTINATIONS,
            "queue:a,,",
            "a destination is missing between commas",
            "as in queue:orders, topic:prices",
            8,
        ),
        (addresses.DESTINATIONS, "queue:a,queue:a", "'queue:a' is listed twice", "name each destination once", 8),
        (
            addresses.TARGETS,
            "nats:",
            "'nats:' names no destination",
            "as in kafka:orders, nats:orders.eu, stomp:queue/orders",
            0,
        ),
        (
            addresses.TARGETS,
            "nats:a.${msg.header.x",
            "'${' without its '}'",
            "as in orders.${msg.header.region}",
            7,
        ),
        (
            addresses.TARGETS,
            "nats:a.${env:HOME} b",
            "'env:HOME' is not the name of a header",
            "as in ${msg.header.region}",
            9,
        ),
        (
            addresses.TARGETS,
            "kafka:or ders",
            "'or ders' is not a valid Kafka topic name",
            "letters, digits, '.', '_' and '-', 249 at most",
            8,
        ),
        (
            addresses.TOPIC,
            "..",
            "'..' is not a valid Kafka topic name",
            "letters, digits, '.', '_' and '-', 249 at most",
            0,
        ),
        (addresses.TOPIC, "", "the value is empty", "remove the line if nothing is to be set", 0),
        (values.TEXT, "a\tb", "the value holds a control character, U+0009", "", 1),
        (SYSTEM, "NATS", "'NATS' is not a known type", "did you mean nats?", 0),
        (
            FIELDS.row("source.NAME.type").kind,
            "mqtt",
            "'mqtt' is not a known type",
            "write stomp, amqp, jms, nats, dropbox or kafka",
            0,
        ),
        (values.REPLICATION, "0", "'0' is not a whole number from 1 to 32767, or 'broker'", "", 0),
        (
            KEY_HEADER,
            "msg.address",
            "'msg.address' is not the name of a header",
            'as in msg.header.CorrelationId, msg.header."any name", JMSType, region or msg.body.order.id',
            0,
        ),
        (
            KEY_HEADER,
            "msg.header.customer-id",
            "'msg.header.customer-id' is not the name of a header",
            'write msg.header."customer-id"',
            0,
        ),
        (
            KEY_HEADER,
            '"msg.body.x"',
            "a property named msg.body.x gives no key and no destination",
            'as in msg.header.CorrelationId, msg.header."any name", JMSType, region or msg.body.order.id',
            0,
        ),
        (
            KEY_HEADER,
            "msg.body.lines[*].id",
            "'msg.body.lines[*].id' names many values",
            "write [0] for the first element, [-1] for the last",
            0,
        ),
        (
            KEY_HEADER,
            "a = 1",
            "'a = 1' is not the name of a header",
            'as in msg.header.CorrelationId, msg.header."any name", JMSType, region or msg.body.order.id',
            0,
        ),
        (
            KEY_HEADER,
            "a IS NULL OR b",
            "'a IS NULL OR b' is not the name of a header",
            'as in msg.header.CorrelationId, msg.header."any name", JMSType, region or msg.body.order.id',
            0,
        ),
    ],
)
def test_a_value_is_refused_with_a_reason(kind: ValueKind, text: str, message: str, hint: str, offset: int) -> None:
    with pytest.raises(BadValueError) as raised:
        kind.parse(text)
    assert (str(raised.value), raised.value.hint, raised.value.offset) == (message, hint, offset)


@pytest.mark.parametrize("text", ["a" * 250, "a/b", "ä", ".", "a b"])
def test_what_kafka_does_not_take_for_a_topic_is_refused(text: str) -> None:
    with pytest.raises(BadValueError, match="is not a valid Kafka topic name"):
        addresses.TOPIC.parse(text)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("stomp://broker.example", "stomp://broker.example:61613"),
        ("stomp+ssl://broker.example/", "stomp+ssl://broker.example:61612"),
        ("amqp://[::1]", "amqp://[::1]:5672"),
        ("amqps://h", "amqps://h:5671"),
        ("nats://h", "nats://h:4222"),
        ("tls://h", "tls://h:4222"),
        ("stomp://h:1", "stomp://h:1"),
    ],
)
def test_a_port_that_is_left_out_is_that_of_the_scheme(written: str, read: str) -> None:
    kind = FIELDS.row("source.NAME.url").kind
    assert kind.parse(written) == read


def test_systems_declare_a_key_that_they_share_in_the_same_words() -> None:
    @dataclass(frozen=True)
    class One:
        window: int = key("window", values.whole(1, 10), "messages in flight", default="5")

    @dataclass(frozen=True)
    class Same:
        window: int = key("window", values.whole(1, 10), "messages in flight", default="5")

    @dataclass(frozen=True)
    class Other:
        window: int = key("window", values.whole(1, 20), "messages in flight", default="5")

    (row,) = rows_of("sink.NAME.", systems=[(One, "one"), (Same, "same")])
    assert row.systems == ("one", "same")
    with pytest.raises(TypeError, match=r"sink\.NAME\.window is declared differently by other and by one"):
        list(rows_of("sink.NAME.", systems=[(One, "one"), (Other, "other")]))
