"""Sources and sinks of type amqp in a configuration: what is in order, and what is told of the rest."""

from __future__ import annotations

import pytest

from routes.config import lint_text, loads
from routes.targets import System

BASE = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:a
routes.r.in.include=msg.address==a
routes.r.out.topic=t
"""
PLANT = "source.p.type=amqp\nsource.p.destinations=queue:a, topic:b\n"


def faults(*lines: str) -> list[str]:
    return [str(each) for each in lint_text(BASE + "\n".join(lines)).faults]


@pytest.mark.parametrize(
    ("lines", "place", "message"),
    [
        (("sink.n.type=amqp", "sink.n.url=stomp://h:1"), "7:12", "'stomp://h:1' is no URL for type amqp"),
        (("sink.n.type=amqp", "sink.n.url=amqp://h"), "7:19", "'h' is not a host and a port"),
        (("sink.n.type=amqp", "sink.n.url=amqp://h:1/vhost"), "7:19", "has more than a host and a port"),
        (("sink.n.type=amqp", "sink.n.url=amqps://u:p@h:1"), "7:12", "a URL holds no user name and no password"),
        (("sink.n.type=amqp", "sink.n.tls.verify=false"), "7:1", "'sink.n.tls.verify' has no effect without TLS"),
        (("sink.n.type=amqp", "sink.n.url=amqps://h:1", "sink.n.tls.ca=no.pem"), "8:15", "there is no file 'no.pem'"),
        (("sink.n.type=amqp", "sink.n.password=x"), "7:17", "a password without a user name"),
        (("sink.n.type=amqp", "sink.n.reply-to=replies"), "7:17", "'replies' is no place for replies"),
        (("sink.n.type=amqp", "sink.n.stream=true"), "7:1", "'sink.n.stream' is for type nats, not amqp"),
        (("sink.n.type=amqp", "sink.n.token=x"), "7:1", "'sink.n.token' is for type nats, not amqp"),
        (("source.p.type=amqp", "source.p.destinations=b"), "7:23", "'b' is not a destination (write queue:b"),
        ((*PLANT.splitlines(), "source.p.acknowledge=cumulative"), "8:1", "is for type stomp, not amqp"),
        (
            ("source.p.type=amqp", "source.p.destinations=queue:b", "source.p.subscription=x"),
            "8:23",
            "a durable subscription of no topic",
        ),
        (
            ("sink.n.type=amqp", "routes.q.in.include=x=1", "routes.q.out.topic=n:a"),
            "8:20",
            "'a' is no destination of type amqp (queue/NAME or topic/NAME, as in amqp:queue/orders)",
        ),
        (("source.p.type=ampq",), "6:15", "'ampq' is no known type (did you mean amqp?)"),
    ],
)
def test_what_is_wrong_is_told(lines: tuple[str, ...], place: str, message: str) -> None:
    found = [fault.splitlines()[0] for fault in faults(*lines) if fault.startswith(f"{place}: error: ")]
    assert any(message in fault for fault in found), faults(*lines)


def test_what_is_in_order_is_read() -> None:
    config = loads(
        BASE
        + PLANT
        + "source.p.url=amqps://h:1\nsource.p.selector=a = 1\nsource.p.subscription=x\nsource.p.workers=2\n"
        + "sink.n.type=amqp\nsink.n.reply-to=queue:replies\n"
        + "routes.q.in.include=x=1\nroutes.q.out.topic=amqp:topic/${msg.header.region}\n"
    )
    source, sink = config.sources[1], config.sinks[0]
    assert (source.type, source.url, source.subscription) == (System.AMQP, "amqps://h:1", "x")
    assert (sink.type, config.url(sink), sink.reply_to) == (System.AMQP, "amqp://127.0.0.1:5672", "queue:replies")
    assert [str(route.target) for route in config.own_routes] == ["kafka:t", "n:topic/${msg.header.region}"]


def test_a_source_without_a_url_brings_the_embedded_artemis_with_it() -> None:
    only = BASE.replace("source.s.type=stomp", "source.s.type=amqp")
    assert loads(only).embedded_artemis
    assert not loads(only + "source.s.url=amqp://h:1\n").embedded_artemis
