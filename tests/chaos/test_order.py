"""Messages of one key keep their order when Kafka takes records so slowly that producers give some up."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from engine.embedded import EmbeddedKafka, free_ports
from engine.java import find_java
from engine.message import Message
from tests.conftest import JARS
from tests.integration.bridge_process import Bridge, wait
from tests.integration.connectors.running import bodies, numbers
from tests.topic_records import ordered_producer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import TopicFactory

CONFIGURATION = """\
bridge.id={name}
embedded=off
kafka.bootstrap.servers={bootstrap}
kafka.producer.client.id={routed}
kafka.producer.delivery.timeout.ms=6000
kafka.producer.request.timeout.ms=3000
embedded.data={folder}/var
http.address=127.0.0.1:{http}
journal.topic={journal}
router.mode={mode}
router.interval={interval}
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:9
source.jms.destinations=queue:orders
routes.all.in.include=TRUE
routes.all.out.topic={routed}
"""
COUNT, SIZE = 3000, 4000


def limit(kafka: EmbeddedKafka, client: str, change: str) -> None:
    """Changes how much a client may send."""
    command = [find_java(), "-cp", f"{JARS}/kafka/*", "kafka.admin.ConfigCommand"]
    where = ["--bootstrap-server", kafka.bootstrap, "--entity-type", "clients", "--entity-name", client]
    subprocess.run([*command, *where, "--alter", *change.split()], check=True, capture_output=True, timeout=60)


@pytest.mark.kills
@pytest.mark.parametrize(("mode", "interval"), [("realtime", "5s"), ("batch", "200ms")])
def test_nothing_overtakes_a_record_that_a_producer_has_given_up(
    tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory, mode: str, interval: str
) -> None:
    journal, routed = topic("journal", 1), topic("routed", 1)
    file, (http,) = tmp_path / "jms-bridge.properties", free_ports(1)
    names = {"name": routed, "journal": journal, "routed": routed, "mode": mode, "interval": interval}
    file.write_text(CONFIGURATION.format(folder=tmp_path, bootstrap=kafka.bootstrap, http=http, **names))
    producer = ordered_producer(kafka.bootstrap)
    bridge = Bridge(file)
    bridge.start("--only", "router")
    try:
        bridge.wait_ready()
        limit(kafka, routed, "--add-config producer_byte_rate=20000")
        for number in range(COUNT):
            headers = {"JMSMessageID": f"ID:{number}", "JMSCorrelationID": "one", "JMSDestination": "queue:orders"}
            record = Message(str(number).encode().ljust(SIZE, b"."), headers=headers).to_record()
            producer.produce(journal, record.value, "one", headers=list(record.headers))
            producer.flush(10)
            time.sleep(0.004)
        wait(lambda: "has ended" in bridge.output or "starts again" in bridge.output, lambda: bridge.output, 60)
        limit(kafka, routed, "--delete-config producer_byte_rate")
        wait(lambda: len(bodies(kafka.bootstrap, routed)) >= COUNT, lambda: bridge.output)
        assert numbers(kafka.bootstrap, routed) == list(range(COUNT))
        assert "Traceback" not in bridge.output
    finally:
        bridge.end()
