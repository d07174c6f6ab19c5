"""Topologies and a schema registry that answers some ids badly, or nothing, or has later versions."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from tests.integration.topologies.conftest import TopologyBench
from tests.registry_server import RegistryServer, registry_server
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = {"name": "page", "type": "string"}
FIRST = {"type": "record", "name": "Click", "fields": [PAGE, {"name": "n", "type": "int"}]}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
SECOND = {**FIRST, "fields": [*FIRST["fields"], NOTE]}
THIRD = {**FIRST, "fields": [PAGE, {"name": "n", "type": "long"}]}
FAULTY = {8: 302, 9: 400, 10: 401, 11: 403, 12: 422, 13: 500, 14: 0}
FLOOD, GOOD = 10_000, 500


@pytest.fixture
def registry(bench: TopologyBench) -> Iterator[RegistryServer]:
    with registry_server() as server:
        register(server, bench, 1, FIRST)
        with bench.file.open("a") as file:
            file.write(f"schema.registry.url={server.url}\nschema.registry.timeout=2s\n")
            file.write(f"topologies.clicks.build={bench.function('registered')}\n")
        yield server


def register(server: RegistryServer, bench: TopologyBench, number: int, schema: Any) -> None:
    """Makes a schema the latest version, whose number is its id as well."""
    text = json.dumps(schema)
    versions = f"/subjects/{bench.prefix}-clicks-value/versions"
    for path in ("latest", str(number)):
        server.answers[f"{versions}/{path}"] = [(200, {"version": number, "id": number, "schema": text})]
    server.answers[f"/schemas/ids/{number}"] = [(200, {"schema": text})]


def click(number: int, schema: Any, **fields: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), fields)
    return struct.pack(">bi", 0, number) + out.getvalue()


def send(bench: TopologyBench, values: list[bytes]) -> None:
    producer = bench._producer()
    for value in values:
        producer.produce(f"{bench.prefix}-clicks", value, "k")
        producer.poll(0)
    assert producer.flush(60) == 0


def rejected(bench: TopologyBench) -> float:
    labels = {"topology": "clicks", "reason": "rejected_records"}
    return bench.metric("jmsbridge_topology_unprocessed_records_total", **labels) or 0


def numbers(bench: TopologyBench) -> list[int]:
    return sorted(value["n"] for _, value in bench.published("counts-out"))


def test_ids_that_are_unknown_or_answered_badly_hold_no_other_records(
    bench: TopologyBench, registry: RegistryServer
) -> None:
    bridge = bench.run_part("topology:clicks")
    send(bench, [click(1, FIRST, page="p", n=0)])
    bench.comes_to("counts-out", 1)

    registry.delay_seconds = 0.04
    values = [struct.pack(">bi", 0, 100_000 + number) + b"x" for number in range(FLOOD)]
    for number in range(1, GOOD):
        values.insert(number * (FLOOD // GOOD), click(1, FIRST, page="p", n=number))
    send(bench, values)
    # One after the other they would take 400 s, and a lag that is told by the last fetch would be too small.
    until(lambda: (bench.metric("jmsbridge_topology_lag_records", topology="clicks") or 0) > FLOOD / 2, 20, "the lag")
    until(lambda: rejected(bench) == FLOOD, 90, "the dead letters")
    bench.comes_to("counts-out", GOOD)
    assert numbers(bench) == list(range(GOOD))
    asked = [each.path for each in registry.asked]
    assert len(asked) == len(set(asked))
    assert registry.most_at_once <= 32
    until(lambda: bench.metric("jmsbridge_topology_lag_records", topology="clicks") == 0, 30, "no lag")

    registry.delay_seconds = 0.0
    for number, status in FAULTY.items():
        registry.answers[f"/schemas/ids/{number}"] = [(status, {"message": "no"})]
        if not status:
            registry.hanging.add(f"/schemas/ids/{number}")
    send(bench, [click(each, FIRST, page="p", n=GOOD) for each in (*FAULTY, 1)])
    until(lambda: rejected(bench) == FLOOD + len(FAULTY), 60, "the dead letters of the ids")
    bench.comes_to("counts-out", GOOD + 1)
    assert bridge.poll() is None

    register(registry, bench, 2, SECOND)
    registry.fault = (401, {"message": "who are you?"})
    send(bench, [click(2, SECOND, page="p", n=GOOD + 1, note=None)])
    told = f"degraded: waiting for the schema registry: {registry.url} answers 401"
    until(lambda: told in bench.log.read_text(), 60, "the reason")
    registry.fault = None
    bench.comes_to("counts-out", GOOD + 2)
    assert rejected(bench) == FLOOD + len(FAULTY)
    bench.stop(bridge)

    # The latest version has one more field now, which is none of the state's.
    bridge = bench.run_part("topology:clicks")
    send(bench, [click(2, SECOND, page="p", n=GOOD + 2, note="x")])
    bench.comes_to("counts-out", GOOD + 3)
    bench.stop(bridge)
    register(registry, bench, 3, THIRD)
    code, told = bench.fails("registered")
    assert code == 3
    assert "does not fit the topology any more (changed: totals" in told
    assert "Four ways out" in told


def test_a_registry_that_is_away_for_too_long_ends_no_other_part_of_the_bridge(
    bench: TopologyBench, registry: RegistryServer
) -> None:
    with bench.file.open("a") as file:
        file.write("schema.registry.outage-timeout=3s\nrouting.create-topics=true\njournal.partitions=1\n")
    bridge = bench.run_part()
    send(bench, [click(1, FIRST, page="p", n=0)])
    bench.comes_to("counts-out", 1)
    until(lambda: bench.ready()["router"].startswith("ready"), 60, "the router")

    register(registry, bench, 2, SECOND)
    registry.fault = (401, {"message": "who are you?"})
    send(bench, [click(2, SECOND, page="p", n=1, note=None)])
    restarts = "jmsbridge_component_restarts_total"
    until(lambda: (bench.metric(restarts, component="topology:clicks") or 0) >= 1, 120, "another start")
    assert "the schema registry has been away for" in bench.log.read_text()
    assert bench.ready()["router"].startswith("ready")
    assert not bench.metric(restarts, component="router")

    registry.fault = None
    bench.comes_to("counts-out", 2)
    assert numbers(bench) == [0, 1]
    assert rejected(bench) == 0
    bench.stop(bridge)
