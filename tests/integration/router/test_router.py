"""The router as a process on a real Kafka: each journal record is routed once, whatever happens to the process."""

from __future__ import annotations

import hmac
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.message import ORIGIN, POSITION, BodyType, Message, Record
from routes.properties import Property
from tests.integration.router.bench import wait_for

if TYPE_CHECKING:
    from tests.integration.router.bench import Bench

ALL_RED = """\
routes.red.in.include=color IS NOT NULL
routes.red.out.topic={red}
"""
MASK = """\
routes.red.out.mask=msg.body.card
routes.red.out.mask-with=hash
routes.red.out.mask-secret=${{env:MASK_SECRET}}
"""
MASK_SECRET = b"0123456789abcdef0123456789abcdef"


COPIES = """\
routes.red.in.include=color='red'
routes.red.in.continue=true
routes.red.out.topic={red}, {blue}
routes.all.in.include=color IS NOT NULL
routes.all.out.topic={blue}, {red}
"""
"""Odd numbers are red, and have four copies; even ones have two."""


def copies(count: int) -> dict[int, int]:
    return {number: 4 if number % 2 else 2 for number in range(count)}


@pytest.mark.kills
def test_routes_each_record_once_across_stops_kills_and_changes_of_mode(bench: Bench) -> None:
    bench.send(500)
    router = bench.start("realtime").wait_ready()
    bench.wait_numbers(500)
    wait_for(lambda: router.metric("jmsbridge_routed_messages_total", route="red", topic=bench.red) == 250, 30)
    assert router.metric("jmsbridge_routing_latency_seconds_count") == 500
    assert router.stop() == 0
    assert router.metric("jmsbridge_journal_lag_records", partition="0") == 0

    for mode in ("batch", "realtime"):
        before = bench.count
        bench.send(500)
        router = bench.start(mode).wait_ready()
        bench.wait_numbers(before + 1)
        bench.send(2000)
        router.kill()

    router = bench.start("batch").wait_ready()
    assert bench.wait_numbers(5500) == dict.fromkeys(range(5500), 1)
    assert router.stop() == 0


@pytest.mark.kills
def test_after_a_crash_what_was_left_out_is_routed_as_the_routes_were_then(bench: Bench) -> None:
    bench.send(10)
    router = bench.start().wait_ready()
    bench.wait_numbers(10)
    assert router.stop() == 0
    # As a crash leaves it that came when number 16 was published and nothing else of what was under way.
    next(bench.checkpoint.glob("*/stop.json")).unlink()
    # The run is one of a version without seals, which this version understands.
    file = next(bench.checkpoint.glob("*/start.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "seal": ""}))
    bench.send(10)
    journal = bench.records(bench.journal)
    (_, partition, offset), last = next(item for item in journal.items() if item[1].value == b"16")
    position = f"{bench.journal}:{partition}:{offset}"
    bench.put(bench.blue, replace(last, headers=(*last.headers, (ORIGIN, b"bench"), (POSITION, position.encode()))))

    router = bench.start("batch", ALL_RED).wait_ready(240)
    assert bench.wait_numbers(20) == dict.fromkeys(range(20), 1)
    assert router.stop() == 0
    then = {int(record.value or b"") for at, record in journal.items() if at[1] == partition and at[2] <= offset}
    assert set(bench.numbers(bench.blue)) == {n for n in range(20) if n % 2 == 0 and (n < 10 or n in then)}


@pytest.mark.kills
def test_each_copy_is_published_once_across_kills_and_changes_of_mode(bench: Bench) -> None:
    bench.send(100)
    router = bench.start("realtime", COPIES).wait_ready()
    assert bench.wait_numbers(300) == copies(100)
    assert router.stop() == 0
    for mode in ("batch", "realtime"):
        published = 3 * bench.count
        bench.send(500)
        router = bench.start(mode, COPIES).wait_ready()
        bench.wait_numbers(published + 1)
        bench.send(2000)
        router.kill()
    router = bench.start("batch", COPIES).wait_ready()
    assert bench.wait_numbers(15_300) == copies(5100)
    assert bench.numbers(bench.red) == bench.numbers(bench.blue)
    assert router.stop() == 0


@pytest.mark.kills
def test_a_crash_between_two_copies_leaves_neither_out(bench: Bench) -> None:
    bench.send(10)
    router = bench.start("realtime", COPIES).wait_ready()
    bench.wait_numbers(30)
    assert router.stop() == 0
    # As a crash leaves it: of number 16 the second copy alone is published, of number 17 all but the third.
    next(bench.checkpoint.glob("*/stop.json")).unlink()
    file = next(bench.checkpoint.glob("*/start.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "seal": ""}))
    bench.send(10)
    for (_, partition, offset), record in bench.records(bench.journal).items():
        wanted = {b"16": {1: bench.red}, b"17": {0: bench.red, 1: bench.blue, 3: bench.red}}
        for copy, topic in wanted.get(record.value or b"", {}).items():
            position = f"{bench.journal}:{partition}:{offset}" + (f":{copy}" if copy else "")
            bench.put(
                topic, replace(record, headers=(*record.headers, (ORIGIN, b"bench"), (POSITION, position.encode())))
            )

    router = bench.start("batch", COPIES).wait_ready(240)
    assert bench.wait_numbers(60) == copies(20)
    assert bench.numbers(bench.red) == bench.numbers(bench.blue)
    assert router.stop() == 0


@pytest.mark.kills
def test_a_copy_that_stops_the_router_waits_for_another_policy_of_its_route(bench: Bench) -> None:
    routes = "routes.all.in.include=color IS NOT NULL\nroutes.all.out.topic={red}, {blue}, {red}.${{msg.header.x}}\n"
    bench.send(1)
    for _ in range(2):
        router = bench.start("batch", routes)
        assert router.wait_end() == 5
        assert "destination-unresolved" in router.error
    router = bench.start("batch", routes + "routes.all.on-soft-failure=dead-letter\n").wait_ready()
    bench.wait_numbers(3)
    assert [bench.numbers(topic) for topic in (bench.red, bench.blue, bench.dead)] == [{0: 1}] * 3
    assert router.stop() == 0


def test_after_a_crash_what_was_left_out_is_masked_as_it_was_then(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def order(number: int) -> Record:
        fields = {"JMSMessageID": f"ID:{number}", "JMSXGroupID": "one partition"}
        return Message(b'{"card":%d}' % number, headers=fields, properties={"color": Property("red")}).to_record()

    def bodies() -> set[bytes]:
        return {record.value or b"" for record in bench.records(bench.red).values()}

    def masked(number: int) -> bytes:
        return b'{"card":"%s"}' % hmac.digest(MASK_SECRET, b"%d" % number, "sha256").hex().encode()

    monkeypatch.setenv("MASK_SECRET", MASK_SECRET.decode())
    bench.put(bench.journal, order(0))
    router = bench.start(routes=ALL_RED + MASK).wait_ready()
    wait_for(lambda: bodies() == {masked(0)}, 60)
    assert router.stop() == 0
    # As a crash leaves it that came when the third of three was published alone, by a version without seals.
    next(bench.checkpoint.glob("*/stop.json")).unlink()
    file = next(bench.checkpoint.glob("*/start.json"))
    assert MASK_SECRET.decode() not in file.read_text()
    file.write_text(json.dumps({**json.loads(file.read_text()), "seal": ""}))
    for number in (1, 2, 3):
        bench.put(bench.journal, order(number))
    (_, partition, offset), last = max(bench.records(bench.journal).items())
    position = f"{bench.journal}:{partition}:{offset}"
    headers = (*last.headers, (ORIGIN, b"bench"), (POSITION, position.encode()))
    bench.put(bench.red, replace(last, value=masked(3), headers=headers))

    monkeypatch.delenv("MASK_SECRET")
    router = bench.start(routes=ALL_RED)
    assert router.wait_end() == 4
    assert "the environment has no variable 'MASK_SECRET'" in router.error
    monkeypatch.setenv("MASK_SECRET", MASK_SECRET.decode())
    router = bench.start(routes=ALL_RED).wait_ready(240)
    bench.put(bench.journal, order(4))
    wait_for(lambda: bodies() == {*map(masked, range(4)), b'{"card":4}'}, 60)
    assert router.stop() == 0
    assert len(bench.records(bench.red)) == 5


@pytest.mark.kills
def test_records_that_retention_removed_are_told_and_nobody_else_may_route_meanwhile(
    bench: Bench,
) -> None:
    bench.send(10)
    router = bench.start().wait_ready()
    bench.wait_numbers(10)
    assert router.stop() == 0
    bench.send(40)
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    ends = [TopicPartition(bench.journal, partition, OFFSET_END) for partition in range(2)]
    for future in admin.delete_records(ends).values():
        future.result(30)
    bench.send(10)
    router = bench.start().wait_ready()
    bench.wait_numbers(20)
    assert set(bench.numbers()) == {*range(10), *range(50, 60)}
    wait_for(lambda: router.metric("jmsbridge_unrouted_messages_total", reason="retention") == 40, 30)

    second = bench.start()
    assert second.wait_end() == 3
    assert "works with the checkpoint" in second.error


@pytest.mark.parametrize("mode", ["realtime", "batch"])
def test_the_default_heap_takes_the_largest_messages_one_after_the_other(bench: Bench, mode: str) -> None:
    body = os.urandom(8 << 20)
    for number in range(24):
        color = Property(f"shade {number}")
        message = Message(body, BodyType.BYTES, {"JMSMessageID": f"ID:{number}"}, {"color": color})
        bench.put(bench.journal, message.to_record())

    router = bench.start(mode, ALL_RED, **{"journal.max-message-bytes": "9MiB"}).wait_ready()
    wait_for(lambda: router.metric("jmsbridge_routed_messages_total", route="red", topic=bench.red) == 24, 90)
    assert router.stop() == 0
    found = bench.records(bench.red).values()
    assert all(record.value == body for record in found)
    assert {dict(record.headers)["jms.color"] for record in found} == {b"shade %d" % n for n in range(24)}
    assert len(found) == 24
