"""A router with a sink of each system, killed and started: the routes kept of its last run are read for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.embedded.artemis import artemis_home
from routes.systems import SYSTEMS
from tests.conftest import JARS
from tests.integration.router.bench import wait_for

if TYPE_CHECKING:
    from tests.conftest import TopicFactory
    from tests.integration.router.bench import Bench

LIB = artemis_home(JARS) / "lib"
SINKS = {
    "stomp": "sink.stomp.url=stomp://127.0.0.1:1\n",
    "amqp": "sink.amqp.url=amqp://127.0.0.1:1\nsink.amqp.position-queue=positions\n",
    "jms": (
        f"sink.jms.class-path={LIB}/artemis-*.jar\n"
        "sink.jms.connection-factory=org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory\n"
        "sink.jms.connection-factory.brokerURL=tcp://127.0.0.1:1\n"
    ),
    "nats": "sink.nats.url=nats://127.0.0.1:1\n",
    "dropbox": "sink.dropbox.root={folder}\n",
}


@pytest.mark.kills
def test_after_a_kill_the_routes_to_sinks_of_every_system_are_read(bench: Bench, topic: TopicFactory) -> None:
    assert set(SYSTEMS) == {*SINKS, "kafka"}
    topics = {name: topic(name) for name in SINKS}
    (bench.folder / "root").mkdir()
    lines = ""
    for name, more in SINKS.items():
        lines += f"sink.{name}.type={name}\nsink.{name}.topic={topics[name]}\n"
        lines += more.format(folder=bench.folder / "root")
        address = "orders" if name == "nats" else "queue/orders"
        lines += f"routes.{name}.in.include=system = '{name}'\nroutes.{name}.out.topic={name}:{address}\n"

    def send(count: int) -> None:
        for name in SINKS:
            bench.send(count, system=name)

    def check() -> None:
        wait_for(lambda: bench.numbers(*topics.values()).total() >= bench.count, 90)
        assert bench.numbers(*topics.values()) == dict.fromkeys(range(bench.count), 1)

    send(10)
    router = bench.start(routes=lines).wait_ready(240)
    check()
    send(50)
    router.kill()
    send(10)
    router = bench.start(routes=lines).wait_ready(240)
    check()
    router.kill()
    router = bench.start("batch", routes=lines).wait_ready(240)
    send(1)
    check()
    assert router.stop() == 0
