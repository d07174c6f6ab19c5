"""Loss of a broker of three under a router's load: nothing is lost, doubled or out of order.

KAFKA_KILLS=3 sets how many brokers are killed in each mode, one after the other.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from engine.embedded import free_ports
from routes.config import load
from tests.conftest import JARS
from tests.integration.bridge_process import Bridge
from tests.kafka_cluster import KafkaCluster, kafka_cluster
from tests.router_load import CONFIGURATION, Load, faults_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RATE = 300
KILLS = int(os.environ.get("KAFKA_KILLS", "3"))
BEYOND_SESSION = 6.0
"""Seconds for which a broker is away: longer than its session, so that others lead its partitions."""

FAR = """\
sink.far.type=stomp
sink.far.url=stomp://127.0.0.1:9
routing.create-topics=true
routes.far.in.include=region = 'apac'
routes.far.out.topic=far:queue/orders
"""

pytestmark = pytest.mark.kills


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path_factory.mktemp("kafka"), JARS) as running:
        yield running


@pytest.mark.parametrize(("mode", "interval"), [("realtime", "10s"), ("batch", "500ms")])
def test_the_loss_of_a_broker_loses_doubles_and_reorders_nothing(
    tmp_path: Path, cluster: KafkaCluster, mode: str, interval: str
) -> None:
    (http,), routed = free_ports(1), f"{mode}.routed"
    file = tmp_path / "jms-bridge.properties"
    names = {"mode": mode, "interval": interval, "http": http, "folder": tmp_path, "bootstrap": cluster.bootstrap}
    file.write_text(CONFIGURATION.format(**names, journal=f"{mode}.journal", routed=routed) + FAR)
    bridge, config = Bridge(file), load(file)
    bridge.start("--only", "router")
    try:
        bridge.wait_ready()
        made = [config.journal.topic, config.journal.state_topic, config.letter_topic, config.sinks[0].topic, routed]
        assert {topic: cluster.copies(topic) for topic in made} == {topic: {3} for topic in made}

        messages = Load(cluster.bootstrap, config.journal.topic, RATE)
        try:
            for number in range(KILLS):
                time.sleep(3.0)
                cluster.kill(number % len(cluster.nodes))
                begun = time.monotonic()
                time.sleep(BEYOND_SESSION)
                cluster.nodes[number % len(cluster.nodes)].start()
                bridge.wait_ready(120)
                cluster.await_copies()
                print(f"{mode}: broker {number} is back after {time.monotonic() - begun:.1f} s", flush=True)
        finally:
            count = messages.stop()
        assert faults_of(cluster.bootstrap, routed, count, 120) == []
        assert "Traceback" not in bridge.output
    finally:
        bridge.end()
