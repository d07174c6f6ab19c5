"""Sources and sinks of type amqp in a configuration: what is in order, and what is told of the rest."""

from __future__ import annotations

import pytest

from routes.config import lint_text, loads
from routes.systems import system_named

BASE = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:a
routes.r.in.include=msg.address==a
routes.r.out.topic=t
"""
PLANT = "source.p.type=amqp\nsource.p.destinations=queue:a, topic:b\n"
LISTENER = ("source.p.type=amqp", "source.p.destinations=queue:a, topic:b.*", "source.p.listen=amqp://127.0.0.1:5673")


def faults(*lines: str) -> list[str]:
    return [str(each) for each in lint_text(BASE + "\n".join(lines)).faults]


@pytest.mark.parametrize(
    ("lines", "place", "message"),
    [
        (("sink.n.type=amqp", "sink.n.url=stomp://h:1"), "7:12", "'stomp://h:1' is not a URL for type amqp"),
        (("sink.n.type=amqp", "sink.n.url=amqp://h:x"), "7:21", "'x' is not a port"),
        (("sink.n.type=amqp", "sink.n.url=amqp://h:1/vhost"), "7:19", "has more than a host and a port"),
        (("sink.n.type=amqp", "sink.n.url=amqps://u:p@h:1"), "7:12", "a URL holds no user name and no password"),
        (("sink.n.type=amqp", "sink.n.tls.verify=false"), "7:1", "'sink.n.tls.verify' has no effect without TLS"),
        (("sink.n.type=amqp", "sink.n.url=amqps://h:1", "sink.n.tls.ca=no.pem"), "8:15", "there is no file 'no.pem'"),
        (("sink.n.type=amqp", "sink.n.password=x"), "7:17", "a password without a user name"),
        (("sink.n.type=amqp", "sink.n.reply-to=replies"), "7:17", "'replies' is not a place for replies"),
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
            "'a' is not a destination of type amqp (queue/NAME or topic/NAME, as in amqp:queue/orders)",
        ),
        (
            (*LISTENER, "source.p.url=amqp://h:1"),
            "9:14",
            "a listener has no url: it either connects to a broker or listens (keep one of the two)",
        ),
        ((*LISTENER, "source.p.selector=a = 1"), "9:19", "no broker applies a selector (put it into routes.NAME"),
        ((*LISTENER, "source.p.subscription=x"), "9:23", "a listener has no subscription: clients send to it"),
        (("sink.p.type=amqp", "sink.p.max-clients=5"), "7:20", "max-clients is for a listener: no client connects"),
        (
            ("sink.p.type=amqp", "sink.p.transaction-timeout=5s"),
            "7:28",
            "no client connects (remove the line, or set sink.p.listen)",
        ),
        ((*LISTENER, "source.p.max-clients=0"), "9:22", "'0' is not a whole number from 1 to 10000"),
        ((*LISTENER, "source.p.workers=2"), "9:18", "a listener has one worker: its port is one process's"),
        (
            (*PLANT.splitlines(), "source.p.sole-connection=true", "source.p.workers=2"),
            "8:26",
            "each worker has a connection of its own (remove the line, or use one worker)",
        ),
        (
            (*LISTENER, "source.p.sole-connection=true"),
            "9:26",
            "a listener has no sole-connection: it takes connections",
        ),
        ((*LISTENER, "source.p.password=x"), "9:19", "a password without a user name"),
        ((*LISTENER, "source.p.tls.verify=false"), "9:1", "no effect without TLS (write source.p.listen=amqps://…)"),
        (
            (*LISTENER, "sink.l.type=amqp", "sink.l.listen=amqp://127.0.0.1:5673"),
            "10:15",
            "port 5673 is also the one of 'source.p.listen'",
        ),
        ((*LISTENER[:2], "source.p.listen=amqps://h:1"), "8:17", "TLS without a certificate to show to clients"),
        ((*LISTENER[:2], "source.p.listen=stomp://h:1"), "8:17", "'stomp://h:1' is not amqp://host:port or amqps://"),
        (("source.s.listen=amqp://h:1",), "6:1", "'source.s.listen' is for type amqp, not stomp"),
        (("source.p.type=amqp", "source.p.destinations=*"), "7:23", "'*' is not a destination"),
        (
            ("sink.l.type=amqp", "sink.l.listen=amqp://h:1", "sink.l.reply-to=queue:r"),
            "8:17",
            "a listener has no reply-to",
        ),
        ((*PLANT.splitlines(), "source.p.broker=openqm"), "8:17", "rabbitmq, broker-j, openmq or jms-bridge (did you"),
        ((*PLANT.splitlines(), "source.p.broker=classic"), "8:17", "(did you mean activemq-classic?)"),
        (("source.s.broker=ibm",), "6:17", "(remove the line for another broker)"),
        ((*LISTENER, "source.p.broker=openmq"), "9:17", "a listener has no broker: it is not a client of a broker"),
        (("source.p.type=ampq",), "6:15", "'ampq' is not a known type (did you mean amqp?)"),
    ],
)
def test_what_is_wrong_is_reported(lines: tuple[str, ...], place: str, message: str) -> None:
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
    assert (source.type, source.url, source.subscription) == (system_named("amqp"), "amqps://h:1", "x")
    assert (sink.type, config.url(sink), sink.reply_to) == (
        system_named("amqp"),
        "amqp://127.0.0.1:5672",
        "queue:replies",
    )
    assert [str(route.targets[0]) for route in config.own_routes] == ["kafka:t", "n:topic/${msg.header.region}"]


def test_a_source_without_a_url_brings_the_embedded_artemis_with_it() -> None:
    only = BASE.replace("source.s.type=stomp", "source.s.type=amqp")
    assert loads(only).embedded_artemis
    assert not loads(only + "source.s.url=amqp://h:1\n").embedded_artemis


def test_a_listener_takes_any_destination_or_what_begins_alike_and_needs_no_broker() -> None:
    only = "".join(line + "\n" for line in BASE.splitlines() if not line.startswith("source."))
    config = loads(only + "source.p.type=amqp\nsource.p.destinations=*\nsource.p.listen=amqp://127.0.0.1:5673\n")
    assert config.sources[0].destinations == ("*",)
    assert config.url(config.sources[0]) == "amqp://127.0.0.1:5673"
    assert not config.embedded_artemis


def test_a_listener_is_enough_where_nothing_is_embedded() -> None:
    text = BASE.replace("source.s.type=stomp", "source.s.type=amqp\nsource.s.listen=amqp://127.0.0.1:5673")
    loads(text + "embedded=off\nkafka.bootstrap.servers=h:1\n")
