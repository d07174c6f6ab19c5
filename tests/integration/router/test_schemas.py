"""Bodies with a schema in the router as a process on a real Kafka: it waits for the registry, and loses nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine.message import BodyType, Message
from routes.properties import Property
from tests.integration.router.bench import wait_for
from tests.registry_server import RegistryServer, registry_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.router.bench import Bench

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "long"}]}
READ = """\
routes.even.in.include=msg.body.n >= 0 AND color IS NOT NULL
routes.even.in.schema=avro:orders-value
routes.even.out.topic={red}
"""
WRITTEN = """\
routes.all.in.include=color IS NOT NULL
routes.all.out.schema=avro:orders-value
routes.all.out.topic={red}, {blue}
"""
ID = 7


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        answer = {"version": 1, "id": ID, "schema": json.dumps(ORDER)}
        server.answers["/subjects/orders-value/versions/latest"] = [(200, answer)]
        server.answers[f"/schemas/ids/{ID}"] = [(200, answer)]
        yield server


def value(number: int) -> bytes:
    """Confluent's wire format of an order, whose number is below 64."""
    return b"\0" + ID.to_bytes(4, "big") + bytes([2 * (number % 64)])


def send(bench: Bench, count: int, *, written: bool) -> None:
    for number in range(bench.count, bench.count + count):
        body, kind = (value(number), BodyType.BYTES) if written else (b'{"n": %d}' % (number % 64), BodyType.TEXT)
        fields = {"JMSMessageID": f"ID:{number}"}
        record = Message(body, kind, fields, {"color": Property("red")}).to_record()
        bench._put(bench._producer, bench.journal, record)
    bench.count += count
    assert bench._producer.flush(60) == 0


def published(bench: Bench, *topics: str) -> list[int]:
    found = []
    for record in bench.records(*topics).values():
        number = int((record.header("jms.JMSMessageID") or "").removeprefix("ID:"))
        assert record.value == value(number)
        found.append(number)
    return sorted(found)


def settings(bench: Bench, registry: RegistryServer) -> dict[str, str]:
    copies = str(bench.folder / "copies")
    return {"schema.registry.url": registry.url, "schema.registry.timeout": "1s", "schema.copies": copies}


def test_messages_wait_for_the_registry_and_copies_carry_a_restart(bench: Bench, registry: RegistryServer) -> None:
    registry.fault = (503, {})
    send(bench, 20, written=True)
    router = bench.start("realtime", READ, **settings(bench, registry))
    wait_for(lambda: any("the schema registry" in str(line.get("detail")) for line in router.lines), 120)
    assert router.state == "degraded"
    registry.fault = None
    wait_for(lambda: len(published(bench, bench.red)) == 20, 120)
    assert router.stop() == 0
    registry.fault = (503, {})
    send(bench, 20, written=True)
    router = bench.start("realtime", READ, **settings(bench, registry)).wait_ready()
    wait_for(lambda: len(published(bench, bench.red)) == 40, 120)
    assert router.stop() == 0
    assert published(bench, bench.red) == list(range(40))
    assert bench.records(bench.dead) == {}


def test_an_unknown_schema_is_waited_for_while_the_router_runs(bench: Bench, registry: RegistryServer) -> None:
    plain = READ.replace("routes.even.in.schema=avro:orders-value\n", "routes.even.in.body=avro\n")
    router = bench.start("realtime", plain, **settings(bench, registry)).wait_ready()
    registry.fault = (503, {})
    send(bench, 10, written=True)
    wait_for(lambda: router.state == "degraded", 60)
    assert published(bench, bench.red) == []
    registry.fault = None
    wait_for(lambda: len(published(bench, bench.red)) == 10, 120)
    wait_for(lambda: router.state == "ready", 60)
    assert router.stop() == 0
    assert bench.records(bench.dead) == {}


@pytest.mark.kills
def test_each_body_is_written_once_to_each_topic_across_kills(bench: Bench, registry: RegistryServer) -> None:
    for mode in ("realtime", "batch", "realtime"):
        before = 2 * bench.count
        send(bench, 300, written=False)
        router = bench.start(mode, WRITTEN, **settings(bench, registry)).wait_ready()
        wait_for(lambda before=before: len(bench.records(bench.red, bench.blue)) > before, 60)
        send(bench, 1000, written=False)
        router.kill()
    router = bench.start("batch", WRITTEN, **settings(bench, registry)).wait_ready()
    wait_for(lambda: len(bench.records(bench.red, bench.blue)) >= 2 * bench.count, 120)
    assert router.stop() == 0
    for topic in (bench.red, bench.blue):
        assert published(bench, topic) == list(range(bench.count))
    assert bench.records(bench.dead) == {}
