"""The whole bridge from nothing: embedded brokers, source and router, until a JMS message has become a Kafka record."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
import uuid
from typing import TYPE_CHECKING

import stomp
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from bench.processes import running
from bench.programs import ROOT
from engine.embedded import free_ports
from engine.embedded.ports import LOOPBACK, accepts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bench.options import Options

__all__ = ["whole_start"]

_TOPIC = "orders"
_PATIENCE_SECONDS = 180.0
_POLL_SECONDS = 0.1


def whole_start(options: Options, launcher: str = "") -> tuple[float, float]:
    """Seconds and CPU-seconds from the start of `run` to the first record in the destination topic.

    All data is new, and removed afterwards. `launcher` is the start of the command line.
    """
    folder = options.folder / uuid.uuid4().hex[:8]
    folder.mkdir(parents=True)
    kafka, core, text, amqp, http = free_ports(5)
    settings = {
        "bridge.id": "bench",
        "embedded": "on",
        "embedded.data": str(folder),
        "embedded.kafka.port": kafka,
        "embedded.artemis.port": core,
        "embedded.stomp.port": text,
        "embedded.amqp.port": amqp,
        "http.address": f"{LOOPBACK}:{http}",
        "router.checkpoint": str(folder / "checkpoint"),
        "source.jms.type": "stomp",
        "source.jms.destinations": "queue:orders",
        "routes.orders.in.include": "msg.address==orders",
        "routes.orders.out.topic": _TOPIC,
        **options.settings,
    }
    file = folder / "bridge.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [*shlex.split(launcher), sys.executable, "-m", "engine", "run", "--config", str(file)]
    with running(command, folder / "bridge.log", ROOT) as bridge:

        def until(condition: Callable[[], bool]) -> None:
            while not condition():
                bridge.check()
                if time.time() - bridge.started > _PATIENCE_SECONDS:
                    msg = f"no message arrived, see {bridge.log}"
                    raise RuntimeError(msg)
                time.sleep(_POLL_SECONDS)

        until(lambda: accepts(text) and _sent(text))
        until(lambda: accepts(kafka) and _arrived(f"{LOOPBACK}:{kafka}"))
        now = time.time()
        found = now - bridge.started, bridge.cpu_seconds(bridge.started, now)
    _remove(folder)
    return found


def _sent(port: int) -> bool:
    connection = stomp.Connection12([(LOOPBACK, port)], reconnect_attempts_max=1)
    try:
        connection.connect(wait=True)
        connection.send("orders", "hello", headers={"destination-type": "ANYCAST"}, receipt="first")
        connection.disconnect()
    except stomp.exception.ConnectFailedException:
        return False
    return True


def _arrived(bootstrap: str) -> bool:
    # A new client each time: one that has seen no leader for a partition does not look again.
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        partitions = admin.list_topics(_TOPIC, timeout=5).topics[_TOPIC].partitions
        end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        found = admin.list_offsets({TopicPartition(_TOPIC, each): end for each in partitions}) if partitions else {}
        return any(each.result().offset for each in found.values())
    except KafkaException:
        return False


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
