"""Topics of topologies that lose records, are made anew, and get partitions; and topologies that lose their state."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.integration.topologies.conftest import PARTITIONS, TopologyBench
from tests.topic_records import ordered_producer
from tests.waiting import patience, until

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka


class Cluster:
    """What an operator does to the topics of a bench."""

    def __init__(self, kafka: EmbeddedKafka, bench: TopologyBench) -> None:
        self._bootstrap = kafka.bootstrap
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        self._bench = bench

    def remove_records(self, topic: str) -> None:
        """Removes all records that a topic has, as retention does."""
        places = [TopicPartition(self._name(topic), partition, -1) for partition in range(PARTITIONS)]
        for done in self._admin.delete_records(places).values():
            done.result(30)

    def make_anew(self, topic: str) -> None:
        name = self._name(topic)
        self._admin.delete_topics([name])[name].result(30)
        until(lambda: not self._bench.has(topic))
        self.make(name)

    def make(self, name: str) -> None:
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1, config={"retention.ms": "-1"})])[name].result(30)
        until(lambda: name in self._admin.list_topics(timeout=10).topics)

    def add_partition(self, topic: str) -> None:
        name = self._name(topic)
        self._admin.create_partitions([NewPartitions(name, PARTITIONS + 1)])[name].result(30)

    def send_to(self, topic: str, partition: int, count: int) -> None:
        producer = ordered_producer(self._bootstrap)
        for number in range(count):
            value = json.dumps({"page": "p", "n": number})
            until(lambda value=value: self._takes(producer, topic, value, partition))
        assert producer.flush(30) == 0

    def _takes(self, producer: Producer, topic: str, value: str, partition: int) -> bool:
        producer.produce(self._name(topic), value, "k", partition=partition, timestamp=1_000_000_000_000)
        return producer.flush(30) == 0

    def _name(self, topic: str) -> str:
        return f"{self._bench.prefix}-{topic}"


@pytest.fixture
def cluster(kafka: EmbeddedKafka, bench: TopologyBench) -> Cluster:
    return Cluster(kafka, bench)


def state(bench: TopologyBench, name: str) -> Path:
    return bench.folder / "var" / "topologies" / f"{bench.prefix}-{name}"


@pytest.mark.parametrize("mode", ["realtime", "batch"])
def test_records_that_are_gone_are_said_and_the_topology_goes_on(
    bench: TopologyBench, cluster: Cluster, mode: str
) -> None:
    first = bench.start("copied", "--mode", mode)
    bench.send_clicks(100)
    bench.comes_to("counts-out", 100)
    bench.stop(first)
    bench.send_clicks(100)
    cluster.remove_records("clicks")
    bench.send_clicks(50)
    second = bench.start("copied", "--mode", mode)
    bench.comes_to("counts-out", 150)
    bench.stop(second)
    third = bench.start("copied", "--mode", mode)
    bench.send_clicks(50)
    bench.comes_to("counts-out", 200)
    bench.stop(third)
    said = [line for line in bench.log.read_text().splitlines() if "records are gone before" in line]
    assert len(said) == PARTITIONS, said
    assert all(f"topic={bench.prefix}-clicks" in line and "from_offset=" in line for line in said)


def test_a_topic_that_is_another_one_is_refused_by_its_id(bench: TopologyBench, cluster: Cluster) -> None:
    first = bench.start("copied")
    bench.send_clicks(100)
    bench.comes_to("counts-out", 100)
    cluster.make_anew("clicks")
    # While it runs, and at the next start.
    assert first.wait(patience(120)) == 3
    assert "deleted and created again" in bench.log.read_text().splitlines()[-1]
    code, told = bench.fails("copied")
    assert code == 3
    assert f"'{bench.prefix}-clicks' (Kafka's id is" in told
    assert f"jms-bridge topology reset {bench.prefix}-copied" in told


def test_added_partitions_are_read_where_no_state_depends_on_them(bench: TopologyBench, cluster: Cluster) -> None:
    for name, output in (("copied", "counts-out"), ("processed", "processed-out")):
        process = bench.start(name, "--guarantee", "at_least_once")
        before = len(bench.published(output))
        bench.send_clicks(100)
        bench.comes_to(output, before + 100)
        if name == "copied":
            cluster.add_partition("clicks")
        cluster.send_to("clicks", PARTITIONS, 10)
        bench.comes_to(output, before + 110)
        bench.stop(process)
    again = bench.start("copied", "--guarantee", "at_least_once")
    before = len(bench.published("counts-out"))
    cluster.send_to("clicks", PARTITIONS, 10)
    bench.comes_to("counts-out", before + 10)
    bench.stop(again)


def test_added_partitions_that_state_depends_on_are_said(bench: TopologyBench, cluster: Cluster) -> None:
    bench.send_pages()
    running = bench.start("tables", "--mode", "batch")
    until(lambda: len(bench.latest("pages-log")) == 20 if bench.has("pages-log") else False, 120, "the table")
    cluster.add_partition("pages")
    said = f"topic '{bench.prefix}-pages' has 3 partitions and topology '{bench.prefix}-tables' reads 2"
    until(lambda: said in bench.log.read_text(), 60, "the warning")
    bench.stop(running)
    code, told = bench.fails("tables", "--mode", "batch")
    assert code == 3
    assert said in told
    assert "--drop pages" in told
    done = bench.command("migrate", bench.function("tables"), "--drop", "pages", "--yes")
    assert "drop the state of pages" in done
    again = bench.start("tables", "--mode", "batch")
    cluster.send_to("pages", PARTITIONS, 1)
    until(lambda: "k" in bench.latest("pages-log"), 120, "the record of the new partition")
    bench.stop(again)


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_topology_that_lost_its_state_does_not_begin_with_none(bench: TopologyBench, guarantee: str) -> None:
    options = ("--mode", "batch", "--guarantee", guarantee)
    first = bench.start("copied", *options)
    bench.send_clicks(100)
    bench.comes_to("counts-out", 100)
    bench.stop(first)
    shutil.rmtree(state(bench, "copied"))
    code, told = bench.fails("copied", *options)
    assert code == 3
    assert "has no state in" in told
    assert f"its group '{bench.prefix}-copied' has positions in topic '{bench.prefix}-clicks'" in told
    assert f"jms-bridge topology reset {bench.function('copied')}" in told
    assert bench.command("reset", bench.function("copied"), "--yes").startswith("positions of the group")
    again = bench.start("copied", *options)
    bench.comes_to("counts-out", 200)
    bench.stop(again)


def test_a_reset_deletes_what_its_topology_has_and_nothing_else(bench: TopologyBench, cluster: Cluster) -> None:
    name = f"{bench.prefix}-processed"
    other = f"{name}-2-totals-repartition"
    cluster.make(other)
    running = bench.start("processed")
    bench.send_clicks(100)
    bench.comes_to("processed-out", 100)
    assert f"topology '{name}' runs" in bench.command("reset", name, "--yes")
    bench.stop(running)
    told = bench.command("reset", f"{name}-2", "--yes")
    assert f"has no state of a topology '{name}-2', only of: {name}" in told

    note = state(bench, "processed") / "reset.json"
    note.write_text(json.dumps([f"{name}-repartition-1-repartition"]))
    code, told = bench.fails("processed")
    assert code == 3
    assert "was cut short: finish it with" in told
    gone = bench.command("reset", name, "--yes").splitlines()
    assert gone[0].startswith(f"internal topic {name}-")
    assert gone[-2:] == [f"positions of the group {name}", f"state in {state(bench, 'processed')}"]
    assert not state(bench, "processed").exists()
    assert bench.has("processed-2-totals-repartition")
