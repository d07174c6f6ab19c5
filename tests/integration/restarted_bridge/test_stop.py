"""The bridge as its users run it, with embedded brokers, killed and stopped in all ways."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.integration.bridge_process import descendants, part, wait, wait_arrived
from tests.processes import gone
from tests.waiting import patience

if TYPE_CHECKING:
    from tests.integration.bridge_process import Bridge

TOTAL = "jmsbridge_routed_messages_total"


@pytest.mark.kills
def test_a_router_that_is_killed_comes_back_and_publishes_nothing_twice(bridge: Bridge) -> None:
    restarts = bridge.metric("jmsbridge_component_restarts_total", component="router")
    bridge.send(range(2000, 2020))
    os.kill(part(bridge, "router"), signal.SIGKILL)
    bridge.send(range(2020, 2040))
    wait(lambda: bridge.metric("jmsbridge_component_restarts_total", component="router") > restarts)
    wait_arrived(bridge, *range(2000, 2040))


@pytest.mark.kills
def test_a_jvm_that_is_killed_comes_back_without_a_stack_trace(bridge: Bridge) -> None:
    (jvm,) = [pid for pid in descendants(part(bridge, "router")) if Path(f"/proc/{pid}/comm").read_text() == "java\n"]
    said = len(bridge.output)
    restarts = bridge.metric("jmsbridge_component_restarts_total", component="router")
    os.kill(jvm, signal.SIGKILL)
    wait(lambda: bridge.metric("jmsbridge_component_restarts_total", component="router") > restarts)
    bridge.send(range(2500, 2510))
    wait_arrived(bridge, *range(2500, 2510))
    assert "Spark's Java process has ended" in bridge.output[said:]
    assert "Traceback" not in bridge.output[said:]


@pytest.mark.kills
def test_an_embedded_kafka_that_dies_comes_back_and_messages_go_on(bridge: Bridge) -> None:
    (jvm,) = [pid for pid in descendants(part(bridge, "kafka")) if Path(f"/proc/{pid}/comm").read_text() == "java\n"]
    said = len(bridge.output)
    restarts = bridge.metric("jmsbridge_component_restarts_total", component="kafka")
    os.kill(jvm, signal.SIGKILL)
    wait(lambda: bridge.metric("jmsbridge_component_restarts_total", component="kafka") > restarts)
    bridge.send(range(3000, 3010))
    bridge.wait_ready()
    wait_arrived(bridge, *range(3000, 3010))
    assert "down: embedded Kafka ended by itself; see" in bridge.output[said:]
    assert "Traceback" not in bridge.output[said:]


def take_port(host: str, port: int) -> socket.socket:
    """The port of a process that has just been killed, whose threads may take a moment to end."""
    deadline = time.monotonic() + patience(5)
    while True:
        try:
            return socket.create_server((host, port))
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.kills
def test_an_embedded_broker_that_cannot_start_again_for_a_while_is_tried_again(bridge: Bridge) -> None:
    (jvm,) = [pid for pid in descendants(part(bridge, "kafka")) if Path(f"/proc/{pid}/comm").read_text() == "java\n"]
    host, port = bridge.bootstrap.split(":")
    said = len(bridge.output)
    os.kill(jvm, signal.SIGKILL)
    wait(lambda: gone(jvm))
    with take_port(host, int(port)):
        wait(lambda: f"why='port {port} is in use by" in bridge.output[said:], lambda: bridge.output)
    bridge.wait_ready()
    bridge.send(range(4000, 4010))
    wait_arrived(bridge, *range(4000, 4010))
    assert "Traceback" not in bridge.output[said:]


def test_partitions_that_are_added_to_a_running_journal_are_routed(bridge: Bridge) -> None:
    journal = bridge.settings.get("journal.topic", "jms-bridge.journal")
    admin = AdminClient({"bootstrap.servers": bridge.bootstrap})
    number = len(admin.list_topics(journal).topics[journal].partitions)
    admin.create_partitions([NewPartitions(journal, number + 1)])[journal].result(30)
    # A new source sees the partitions at once, one that runs after some minutes.
    os.kill(part(bridge, "source:jms"), signal.SIGKILL)
    bridge.wait_ready()
    bridge.send(range(5000, 5100))
    wait_arrived(bridge, *range(5000, 5100))
    consumer = Consumer({"bootstrap.servers": bridge.bootstrap, "group.id": "test"})
    assert consumer.get_watermark_offsets(TopicPartition(journal, number))[1] > 0
    consumer.close()


def test_ctrl_c_stops_everything_and_the_next_start_goes_on_from_there(bridge: Bridge) -> None:
    assert bridge.process
    started = descendants(bridge.process.pid)
    assert len(started) > 5
    assert bridge.interrupt() == 0
    assert [pid for pid in started if not gone(pid)] == []
    bridge.start()
    bridge.wait_ready()
    bridge.send(range(6000, 6010))
    wait_arrived(bridge, *range(6000, 6010))
    wait(lambda: bridge.metric(TOTAL) == 10)


def test_nothing_is_left_of_a_bridge_that_is_killed(bridge: Bridge) -> None:
    assert bridge.process
    started = descendants(bridge.process.pid)
    bridge.process.kill()
    bridge.process.wait()
    wait(lambda: all(gone(pid) for pid in started), lambda: [cmdline(pid) for pid in started if not gone(pid)])


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
