"""The bridge as its users run it, with embedded brokers, killed and stopped in all ways."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from engine.embedded import EmbeddedArtemis, EmbeddedKafka, free_ports
from tests.integration.bridge_process import (
    ROOT,
    Bridge,
    configuration,
    descendants,
    elsewhere,
    part,
    run_to_its_end,
    wait,
)
from tests.processes import gone

TOTAL = "jmsbridge_routed_messages_total"


@pytest.fixture(scope="module")
def one_bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    bridge = Bridge(configuration(tmp_path_factory.mktemp("bridge")))
    yield bridge
    bridge.end()


@pytest.fixture
def bridge(one_bridge: Bridge) -> Bridge:
    """The bridge, running and ready, with what tests before have left in its topics."""
    if not one_bridge.running:
        one_bridge.start()
    one_bridge.wait_ready()
    return one_bridge


def wait_arrived(bridge: Bridge, *keys: int, topic: str = "routed") -> None:
    """Waits for the records of these keys, and sees that none is there twice."""
    wait(lambda: {str(key) for key in keys} <= {key for key, _ in bridge.records(topic)}, lambda: bridge.output)
    assert [key for key, count in Counter(key for key, _ in bridge.records(topic)).items() if count > 1] == []


def test_a_start_tells_what_runs_where_and_what_to_try(bridge: Bridge) -> None:
    wait(lambda: "Ctrl-C stops" in bridge.output, lambda: bridge.output)
    lines = bridge.output.splitlines()
    assert re.fullmatch(r"jms-bridge \S+  test  .*/jms-bridge\.properties", lines[0])
    assert lines[1] == "starting kafka, artemis, router, source:jms"
    for name in ("kafka      ", "artemis    ", "router     ", "source:jms "):
        assert any(line.startswith(f"  ✓ {name} ") for line in lines), bridge.output
    assert f"status page and metrics on {bridge.url}" in bridge.output
    assert '  try  jms-bridge send queue:orders --property region=emea "hello"\n' in bridge.output
    assert "       jms-bridge receive kafka:routed\n" in bridge.output
    assert lines[-1] == "Ctrl-C stops"


def test_messages_arrive_and_the_figures_equal_what_is_in_the_topics(bridge: Bridge) -> None:
    bridge.send(range(1000, 1050))
    bridge.send(range(1), number="not a key!")
    wait_arrived(bridge, *range(1000, 1050))
    wait(lambda: bridge.metric("jmsbridge_failed_messages_total", reason="key-invalid") == 1)
    wait(lambda: bridge.metric(TOTAL, route="orders", topic="routed") == 50)
    wait(lambda: bridge.metric("jmsbridge_source_acknowledged_messages_total", source="jms") == 51)
    assert bridge.metric("jmsbridge_source_journaled_messages_total") == 51
    assert bridge.metric("jmsbridge_routing_latency_seconds_count") == 50
    assert len(bridge.records("routed")) == 50
    assert len(bridge.records("dead")) == 1
    wait(lambda: bridge.metric("jmsbridge_journal_lag_records") == 0)


def test_a_second_bridge_on_the_same_data_is_refused_in_one_line(bridge: Bridge) -> None:
    code, out, err = run_to_its_end(bridge.file)
    assert bridge.process
    assert (code, out) == (3, "")
    assert err == (
        f"jms-bridge: another bridge (process {bridge.process.pid}) runs kafka on {bridge.file.parent}/var; "
        "stop it, or set embedded.data to another folder\n"
    )


@pytest.mark.kills
def test_a_router_that_is_killed_comes_back_and_publishes_nothing_twice(bridge: Bridge) -> None:
    bridge.send(range(2000, 2020))
    os.kill(part(bridge, "router"), signal.SIGKILL)
    bridge.send(range(2020, 2040))
    wait(lambda: bridge.metric("jmsbridge_component_restarts_total", component="router") >= 1)
    wait_arrived(bridge, *range(2000, 2040))


@pytest.mark.kills
def test_a_jvm_that_is_killed_comes_back_without_a_stack_trace(bridge: Bridge) -> None:
    (jvm,) = [pid for pid in descendants(part(bridge, "router")) if Path(f"/proc/{pid}/comm").read_text() == "java\n"]
    restarts = bridge.metric("jmsbridge_component_restarts_total", component="router")
    os.kill(jvm, signal.SIGKILL)
    wait(lambda: bridge.metric("jmsbridge_component_restarts_total", component="router") > restarts)
    bridge.send(range(2500, 2510))
    wait_arrived(bridge, *range(2500, 2510))
    assert "Spark's Java process has ended" in bridge.output
    assert "Traceback" not in bridge.output


@pytest.mark.kills
def test_an_embedded_kafka_that_dies_comes_back_and_messages_go_on(bridge: Bridge) -> None:
    (jvm,) = [pid for pid in descendants(part(bridge, "kafka")) if Path(f"/proc/{pid}/comm").read_text() == "java\n"]
    os.kill(jvm, signal.SIGKILL)
    wait(lambda: bridge.metric("jmsbridge_component_restarts_total", component="kafka") >= 1)
    bridge.send(range(3000, 3010))
    bridge.wait_ready()
    wait_arrived(bridge, *range(3000, 3010))
    assert "down: embedded Kafka ended by itself; see" in bridge.output
    assert "Traceback" not in bridge.output


def take_port(host: str, port: int) -> socket.socket:
    """The port of a process that has just been killed, whose threads may take a moment to end."""
    deadline = time.monotonic() + 5
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
    os.kill(jvm, signal.SIGKILL)
    wait(lambda: gone(jvm))
    with take_port(host, int(port)):
        wait(lambda: f"why='port {port} is in use by" in bridge.output, lambda: bridge.output)
    bridge.wait_ready()
    bridge.send(range(4000, 4010))
    wait_arrived(bridge, *range(4000, 4010))
    assert "Traceback" not in bridge.output


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


def test_a_missing_topic_ends_the_bridge_with_its_own_exit_code(tmp_path: Path, kafka: EmbeddedKafka) -> None:
    more = f"kafka.bootstrap.servers={kafka.bootstrap}\njournal.topic=journal-{tmp_path.name}\n"
    code, _, err = run_to_its_end(configuration(tmp_path, more), "--only", "router")
    assert code == 4
    assert re.search(r"^jms-bridge: .*\brouted\b.*does not exist", err, re.MULTILINE | re.DOTALL), err
    assert "Traceback" not in err


def test_a_taken_http_address_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, out, err = run_to_its_end(configuration(tmp_path, f"http.address={address}\n"))
    assert (code, out) == (3, "")
    assert err == f"jms-bridge: http.address={address} is in use; set http.address to another port\n"


def test_a_kafka_that_comes_later_than_the_bridge_is_waited_for(tmp_path: Path, artemis: EmbeddedArtemis) -> None:
    (port,) = free_ports(1)
    more = f"kafka.bootstrap.servers=127.0.0.1:{port}\nsource.jms.url={artemis.stomp_url}\n"
    bridge, kafka = Bridge(configuration(tmp_path, more)), EmbeddedKafka(tmp_path, port, ROOT / ".jars")
    try:
        bridge.start("--only", "sources")
        wait(lambda: f"no Kafka at 127.0.0.1:{port}" in bridge.get("/ready")[1], lambda: bridge.output)
        assert bridge.get("/ready")[0] == 503
        assert bridge.get("/health")[0] == 200
        kafka.start()
        bridge.wait_ready()
        assert bridge.interrupt() == 0
    finally:
        bridge.end()
        kafka.stop()


def test_a_kafka_that_does_not_come_ends_the_bridge_with_its_own_exit_code(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    more = (
        f"kafka.bootstrap.servers=127.0.0.1:{port}\nrouter.outage-timeout=3s\nsource.jms.url=stomp://127.0.0.1:{port}\n"
    )
    code, _, err = run_to_its_end(configuration(tmp_path, more), "--only", "sources")
    assert code == 6
    assert err.startswith(f"jms-bridge: no Kafka at 127.0.0.1:{port} for "), err
    assert len(err.splitlines()) == 1


def test_brokers_that_stay_away_or_refuse_the_login_stop_nothing_but_their_own_sources_and_sinks(
    tmp_path: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis
) -> None:
    (port,) = free_ports(1)
    name = "one-stays-away"
    more = elsewhere(name, kafka, artemis) + (
        "router.outage-timeout=5s\nsource.away.type=stomp\n"
        f"source.away.url=stomp://127.0.0.1:{port}\nsource.away.destinations=queue:other\n"
        # It takes no login by AMQP there.
        f"source.out.type=amqp\nsource.out.url={artemis.stomp_url.replace('stomp:', 'amqp:')}\n"
        "source.out.destinations=queue:other\nsource.out.username=nobody\nsource.out.password=wrong\n"
        f"sink.away.type=amqp\nsink.away.url=amqp://127.0.0.1:{port}\nsink.away.reply-to=queue:replies\n"
        "routes.away.in.include=region = 'nowhere'\nroutes.away.out.topic=away:queue/other\n"
    )
    away = ("source:away", "source:out", "sink:away")
    bridge = Bridge(configuration(tmp_path, more))
    try:
        bridge.start()
        wait(lambda: bridge.get("/ready")[0] == 503, lambda: bridge.output)
        wait(lambda: bridge.ready()["components"]["source:jms"]["state"] == "ready", lambda: bridge.output)
        for part in away:
            wait(lambda part=part: bridge.ready()["components"][part]["state"] == "degraded", lambda: bridge.output)
        time.sleep(6)
        bridge.send([1], name)
        wait_arrived(bridge, 1, topic=f"{name}.routed")
        assert {bridge.ready()["components"][part]["state"] for part in away} == {"degraded"}
        assert [bridge.metric("jmsbridge_connection_up", component=part) for part in away] == [0, 0, 0]
        assert bridge.interrupt() == 0
    finally:
        bridge.end()


def test_parts_of_one_bridge_can_run_apart(tmp_path: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis) -> None:
    name = "parts-apart"
    more = elsewhere(name, kafka, artemis)
    for folder in ("sources", "router"):
        (tmp_path / folder).mkdir()
    sources, router = (Bridge(configuration(tmp_path / folder, more)) for folder in ("sources", "router"))
    try:
        sources.start("--only", "source:jms")
        router.start("--only", "router")
        sources.wait_ready()
        router.wait_ready()
        assert list(sources.ready()["components"]) == ["source:jms"]
        assert list(router.ready()["components"]) == ["router"]
        sources.send(range(5), name)
        wait(lambda: router.metric(TOTAL) == 5, lambda: (sources.output, router.output))
        assert sources.interrupt() == 0
        assert router.interrupt() == 0
    finally:
        sources.end()
        router.end()


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
