"""The router on a real Kafka: each journal record is routed once, whatever happens to the process."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.errors import HardFailureError
from engine.message import ORIGIN, POSITION, BodyType, Message
from engine.spark.last_progress import check_progress
from routes.config import load
from routes.properties import Property
from tests.integration.spark.bench import wait_for

if TYPE_CHECKING:
    from tests.integration.spark.bench import Bench

pytestmark = pytest.mark.timeout(600)

ALL_RED = """\
routes.red.in.include=color IS NOT NULL
routes.red.out.topic={red}
"""
BLUE_BY_REGION = """\
routes.red.in.include=color='red'
routes.red.out.topic={red}
routes.blue.in.include=color='blue'
routes.blue.out.topic={blue}
routes.blue.conv.key=region
"""


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
    bench.send(10)
    journal = bench.records(bench.journal)
    (_, partition, offset), last = next(item for item in journal.items() if item[1].value == b"16")
    position = f"{bench.journal}:{partition}:{offset}"
    bench.put(bench.blue, replace(last, headers=(*last.headers, (ORIGIN, b"bench"), (POSITION, position.encode()))))

    router = bench.start("batch", ALL_RED).wait_ready()
    assert bench.wait_numbers(20) == dict.fromkeys(range(20), 1)
    assert router.stop() == 0
    then = {int(record.value or b"") for at, record in journal.items() if at[1] == partition and at[2] <= offset}
    assert set(bench.numbers(bench.blue)) == {n for n in range(20) if n % 2 == 0 and (n < 10 or n in then)}


def test_a_message_that_stops_the_router_waits_for_a_route_that_takes_it(bench: Bench) -> None:
    bench.send(20, region="emea")
    bench.send(1, region="?")
    router = bench.start(routes=BLUE_BY_REGION)
    assert router.wait_end() == 5
    assert "route 'blue' cannot take the message at" in router.error
    assert "(key-invalid)" in router.error
    assert "\n" not in router.error
    labels = {"route": "blue", "reason": "key-invalid", "policy": "stop"}
    assert router.metric("jmsbridge_failed_messages_total", **labels) == 1

    bench.start(routes=BLUE_BY_REGION + "routes.blue.on-soft-failure=dead-letter\n").wait_ready()
    bench.wait_numbers(21)
    assert bench.numbers() == dict.fromkeys(range(21), 1)
    assert bench.numbers(bench.dead) == {20: 1}


def test_a_topic_that_vanishes_while_the_router_runs_ends_it_with_a_clear_error(bench: Bench) -> None:
    router = bench.start().wait_ready()
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    admin.delete_topics([bench.blue])[bench.blue].result(30)
    bench.send(10)
    assert router.wait_end() == 4
    assert bench.blue in router.error


@pytest.mark.kills
def test_records_that_retention_removed_are_told_and_nobody_else_may_route_meanwhile(bench: Bench) -> None:
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


def test_a_tail_of_transaction_markers_is_no_lag(bench: Bench) -> None:
    def lag() -> float:
        return sum(router.metric("jmsbridge_journal_lag_records", partition=number) for number in "01")

    router = bench.start().wait_ready()
    bench.send_in_transaction(10)
    bench.send_in_transaction(5, abort=True)
    bench.send_in_transaction(5)
    assert bench.wait_numbers(15) == dict.fromkeys(range(15), 1)
    assert "jmsbridge_journal_lag_seconds" in router.lines[-1]["metrics"]
    wait_for(lambda: lag() == 0, 30)
    assert router.stop() == 0
    assert json.loads(next(bench.checkpoint.glob("*/stop.json")).read_text())["decided"]


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


def test_a_journal_that_was_made_anew_is_refused(bench: Bench) -> None:
    bench.send(10)
    router = bench.start().wait_ready()
    bench.wait_numbers(10)
    assert router.stop() == 0

    start = next(bench.checkpoint.glob("*/start.json"))
    text = start.read_text()
    start.write_text(text.replace('"journal_id": "', '"journal_id": "x'))
    with pytest.raises(HardFailureError, match="was deleted and created again") as refused:
        check_progress(load(bench.folder / "jms-bridge.properties"), leads=True)
    assert refused.value.exit_code == 4
