"""Parts of a bridge that run apart, and starts that are refused or have to wait."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

from engine.embedded import EmbeddedArtemis, EmbeddedKafka, free_ports
from tests.integration.bridge_process import ROOT, Bridge, configuration, elsewhere, run_to_its_end, wait, wait_arrived


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


def test_parts_run_apart_and_brokers_that_stay_away_or_refuse_the_login_stop_nothing_but_their_own(
    tmp_path: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis
) -> None:
    (port,) = free_ports(1)
    name = "parts-apart"
    more = elsewhere(name, kafka, artemis) + (
        "router.outage-timeout=5s\nsource.away.type=stomp\n"
        f"source.away.url=stomp://127.0.0.1:{port}\nsource.away.destinations=queue:other\n"
        # It takes no login by AMQP there.
        f"source.out.type=amqp\nsource.out.url={artemis.stomp_url.replace('stomp:', 'amqp:')}\n"
        "source.out.destinations=queue:other\nsource.out.username=nobody\nsource.out.password=wrong\n"
        f"sink.away.type=amqp\nsink.away.url=amqp://127.0.0.1:{port}\nsink.away.reply-to=queue:replies\n"
        "routes.away.in.include=region = 'nowhere'\nroutes.away.out.topic=away:queue/other\n"
    )
    bridges = {}
    for only in ("sources", "sinks", "router"):
        (tmp_path / only).mkdir()
        bridges[only] = Bridge(configuration(tmp_path / only, more))
    sources, sinks, router = bridges.values()
    away = [(sources, "source:away"), (sources, "source:out"), (sinks, "sink:away")]

    def state(bridge: Bridge, part: str) -> str:
        return str(bridge.ready()["components"][part]["state"])

    try:
        for only, bridge in bridges.items():
            bridge.start("--only", only)
        router.wait_ready()
        wait(lambda: sources.get("/ready")[0] == sinks.get("/ready")[0] == 503, lambda: (sources.output, sinks.output))
        wait(lambda: state(sources, "source:jms") == "ready", lambda: sources.output)
        for each in away:
            wait(lambda each=each: state(*each) == "degraded", lambda each=each: each[0].output)  # type: ignore[misc]
        assert set(sources.ready()["components"]) == {"source:jms", "source:away", "source:out"}
        assert set(sinks.ready()["components"]) == {"sink:away"}
        assert set(router.ready()["components"]) == {"router"}
        time.sleep(6)
        sources.send([1], name)
        wait_arrived(router, 1, topic=f"{name}.routed")
        wait(lambda: router.metric("jmsbridge_routed_messages_total") == 1, lambda: router.output)
        assert {state(*each) for each in away} == {"degraded"}
        assert [bridge.metric("jmsbridge_connection_up", component=part) for bridge, part in away] == [0, 0, 0]
        assert [bridge.interrupt() for bridge in bridges.values()] == [0, 0, 0]
    finally:
        for bridge in bridges.values():
            bridge.end()
