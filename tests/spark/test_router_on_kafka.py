"""The router on a real Kafka, in this process: what stops it, what it counts, and what it leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from engine.connectors.kafka.message import RecordConverter, SourceRecord
from engine.connectors.kafka.settings import KafkaSourceConfig
from engine.connectors.kafka.system import SYSTEM
from engine.errors import HardFailureError
from engine.kafka.topics import BridgeTopics
from engine.message import Record
from engine.router import runtime
from engine.router.last_progress import check_progress
from engine.router.row_counters import RowCounters
from engine.spark import session
from engine.spark.checkpoint_lock import CheckpointLock
from routes.config import load
from routes.targets import KAFKA_TOPIC, Reference, Template
from tests.integration.router.bench import ROUTES, Bench, RouterThread, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory

BLUE_BY_REGION = """\
routes.red.in.include=color='red'
routes.red.out.topic={red}
routes.blue.in.include=color='blue'
routes.blue.out.topic={blue}
routes.blue.conv.key=region
"""


@pytest.fixture
def bench(
    spark: SparkSession, tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench[RouterThread]]:
    """A bench whose routers run, one after the other, on the session of all tests."""
    locks: list[CheckpointLock] = []

    def locked(*arguments: object) -> CheckpointLock:
        locks.append(CheckpointLock(*arguments))  # type: ignore[arg-type]
        return locks[-1]

    def end(_: SparkSession) -> None:
        """What else the end of the JVM does."""
        RowCounters(spark).reset()
        lock = locks.pop()
        if lock._lock.isValid():
            lock.release()

    monkeypatch.setattr(runtime, "CheckpointLock", locked)
    monkeypatch.setattr(session, "start", lambda *_: spark)
    monkeypatch.setattr(session, "close", end)
    made = Bench(tmp_path, kafka.bootstrap, topic, RouterThread)
    yield made
    made.close()


def test_headers_and_null_values_of_kafka_reach_kafka_as_they_were(bench: Bench) -> None:
    headers = (("trace-id", b"1"), ("trace_id", b"2"), ("trace.id", b"3"), ("größe", b"7"), ("a-b", b"x"))
    more = (("empty", None), ("twice", b"1"), ("twice", b"2"), ("NOT", b"8"))
    source = KafkaSourceConfig(
        name="in", type=SYSTEM, destinations=("t",), address=Template(("topic:", Reference(KAFKA_TOPIC)))
    )
    converter = RecordConverter(source, "bench")
    for offset, value in enumerate((None, b"", b"x")):
        record = Record(b"k", value, (*headers, *more))
        message, _ = converter.message(SourceRecord(record, "t", 0, offset, 1000))
        bench.put(bench.journal, message.to_record())
    routes = (
        "routes.red.in.include=\"trace-id\"='1' AND trace_id='2' AND \"trace.id\"='3' AND größe='7' AND gr__e='7' "
        "AND a_b='x' AND empty IS NULL AND twice='1' AND \"NOT\"='8' AND a_c IS NULL\n"
        "routes.red.out.topic={red}\nroutes.red.conv.key=a_b\n"
    )
    bench.start(routes=routes).wait_ready()
    wait_for(lambda: len(bench.records(bench.red)) == 3, 60)

    found = sorted(bench.records(bench.red).values(), key=lambda record: record.header("jms.JMS_Kafka_Offset") or "")
    assert [record.value for record in found] == [None, b"", b"x"]
    for record in found:
        assert record.key == b"x"
        assert sorted(
            header for header in record.headers if header[0].removeprefix("jms.") in dict((*headers, *more))
        ) == (sorted((f"jms.{name}", value) for name, value in (*headers, *more)))


def test_headers_are_edited_and_those_of_other_routes_are_not(bench: Bench) -> None:
    for number in range(40):
        color = "red" if number % 2 else "blue"
        types = b"color=string,n=int"
        headers = (
            ("jms.color", color.encode()),
            ("jms.n", b"%d" % number),
            ("jms.x-a", None),
            ("jmsbridge.types", types),
        )
        own = (("jms.JMSMessageID", b"ID:%d" % number), (f"jms.own-{number}", b"o"))
        bench.put(bench.journal, Record(b"k", b'{"a": %d}' % number, (*headers, *own)))
    routes = BLUE_BY_REGION.replace("routes.blue.conv.key=region\n", "")
    edits = (
        "out.remove-headers=x-*, color",
        "out.rename-header.n=number",
        "out.header.b=${{msg.body.a}}/${{msg.header.n}}",
    )
    bench.start(routes=routes + "".join(f"routes.red.{edit}\n" for edit in edits)).wait_ready()
    wait_for(lambda: len(bench.records(bench.red)) == len(bench.records(bench.blue)) == 20, 60)

    for topic, first in ((bench.red, 1), (bench.blue, 0)):
        found = {record.header("jms.JMSMessageID"): record for record in bench.records(topic).values()}
        for number in range(first, 40, 2):
            record = found[f"ID:{number}"]
            own = {
                name: value for name, value in record.headers if name.startswith("jms.") or name == "jmsbridge.types"
            }
            text = b"%d" % number
            kept = {"jms.JMSMessageID": b"ID:" + text, f"jms.own-{number}": b"o"}
            edited = {"jms.number": text, "jms.b": text + b"/" + text, "jmsbridge.types": b"number=int"}
            came = {"jms.color": b"blue", "jms.n": text, "jms.x-a": None, "jmsbridge.types": b"color=string,n=int"}
            assert own == kept | (edited if first else came)
            assert record.value == b'{"a": %d}' % number


def test_a_message_that_stops_the_router_waits_for_a_route_that_takes_it(bench: Bench) -> None:
    bench.send(20, region="emea")
    bench.send(1, region="?")
    router = bench.start(routes=BLUE_BY_REGION)
    assert router.wait_end() == 5
    assert "route 'blue' cannot take the message at" in router.error
    assert "(key-invalid)" in router.error
    assert "\n" not in router.error
    labels = {"route": "blue", "destination": f"kafka:{bench.blue}", "reason": "key-invalid", "policy": "stop"}
    assert router.metric("jmsbridge_failed_messages_total", **labels) == 1

    bench.start(routes=BLUE_BY_REGION + "routes.blue.on-soft-failure=dead-letter\n").wait_ready()
    bench.wait_numbers(21)
    assert bench.numbers() == dict.fromkeys(range(21), 1)
    assert bench.numbers(bench.dead) == {20: 1}


BY_TEMPLATE = """\
routes.red.in.include=color='red'
routes.red.out.topic={red}
routes.other.in.include=color IS NOT NULL
routes.other.out.topic=${{msg.header.where}}
"""


def lives(admin: AdminClient, topic: str) -> bool:
    return topic in admin.list_topics(timeout=10).topics


@pytest.mark.parametrize(
    ("mode", "routes"),
    [
        pytest.param("realtime", ROUTES, id="realtime-fixed"),
        pytest.param("batch", BY_TEMPLATE, id="batch-template"),
        pytest.param("realtime", BY_TEMPLATE, id="realtime-template", marks=pytest.mark.further_cases),
        pytest.param("batch", ROUTES, id="batch-fixed", marks=pytest.mark.further_cases),
    ],
)
def test_messages_for_a_topic_that_vanishes_while_the_router_runs_become_dead_letters(
    bench: Bench, mode: str, routes: str
) -> None:
    properties = {"where": bench.blue}
    router = bench.start(mode, routes, "1s" if mode == "batch" else "5s").wait_ready()
    bench.send(10, **properties)
    bench.wait_numbers(10)
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    admin.delete_topics([bench.blue])[bench.blue].result(30)
    wait_for(lambda: not lives(admin, bench.blue), 30)
    bench.send(10, **properties)
    wait_for(lambda: bench.numbers(bench.dead).keys() >= set(range(10, 20, 2)), 90)
    # What was in the topic and is not committed yet is gone with it, and becomes a dead letter too.
    dead = bench.numbers(bench.dead)
    assert dead == dict.fromkeys(dead, 1)
    assert dead.keys() <= set(range(0, 20, 2))
    assert bench.numbers(bench.red) == dict.fromkeys(range(1, 20, 2), 1)
    letter = next(iter(bench.records(bench.dead).values()))
    headers = {name: bytes(value or b"").decode() for name, value in letter.headers}
    assert headers["jmsbridge.reason"] == "not-published"
    assert headers["__connect.errors.exception.message"] == f"topic '{bench.blue}' does not exist"
    # The policy of the routes is `stop`, which is for faults of routes.
    destination = "kafka:${msg.header.where}" if routes == BY_TEMPLATE else f"kafka:{bench.blue}"
    route = {"route": headers["jmsbridge.route"], "destination": destination}
    labels = {**route, "reason": "not-published", "policy": "dead-letter"}
    # Each message counts once: what was in the topic counted as routed.
    wait_for(lambda: router.metric("jmsbridge_failed_messages_total", **labels) == 5, 30)
    wait_for(lambda: router.state == "degraded", 30)
    assert f"topic '{bench.blue}' does not exist" in router.lines[-1]["detail"]

    admin.create_topics([NewTopic(bench.blue, 1, 1)])[bench.blue].result(30)
    wait_for(lambda: router.state == "ready", 60)
    bench.send(10, **properties)
    wait_for(lambda: bench.numbers(bench.blue).total() == 5, 60)
    assert bench.numbers(bench.blue) == dict.fromkeys(range(20, 30, 2), 1)
    wait_for(lambda: bench.numbers(bench.red).total() == 15, 60)
    assert bench.numbers(bench.red) == dict.fromkeys(range(1, 30, 2), 1)
    assert router.stop() == 0
    assert bench.numbers(bench.dead) == dead


def test_a_record_that_kafka_refuses_for_its_own_sake_is_its_own_dead_letter(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A limit that the bridge may not read.
    monkeypatch.setattr(BridgeTopics, "limits", lambda *_: {})
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    resource = ConfigResource(ResourceType.TOPIC, bench.blue)
    resource.add_incremental_config(
        ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    )
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(30)
    router = bench.start().wait_ready()
    bench.send(10)
    bench.wait_numbers(10)
    # Alone in its batch: Kafka's client divides a batch with smaller records again and again, which no limit ends.
    bench.send(2, filling="x" * 5_000)
    wait_for(lambda: bench.numbers(bench.dead).total() == 1, 90)
    bench.send(10)
    assert bench.wait_numbers(22) == dict.fromkeys(range(22), 1)
    assert bench.numbers(bench.dead) == {10: 1}
    (letter,) = bench.records(bench.dead).values()
    headers = {name: bytes(value or b"").decode() for name, value in letter.headers}
    assert headers["jmsbridge.reason"] == "not-published"
    why = f"topic '{bench.blue}' does not take the record: Kafka does not take a record because of its size: "
    assert headers["__connect.errors.exception.message"].startswith(why)
    wait_for(lambda: router.state == "ready", 30)
    assert router.stop() == 0


def test_a_tail_of_transaction_markers_is_no_lag_and_a_journal_that_was_made_anew_is_refused(
    bench: Bench,
) -> None:
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

    start = next(bench.checkpoint.glob("*/start.json"))
    text = start.read_text()
    start.write_text(text.replace('"journal_id": "', '"journal_id": "x'))
    with pytest.raises(HardFailureError, match="was deleted and created again") as refused:
        check_progress(load(bench.folder / "jms-bridge.properties"), leads=True)
    assert refused.value.exit_code == 4
