"""Records that Kafka does not take from a topology, and topics that a topology lacks: nothing else is held up."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.topologies.conftest import PARTITIONS, TopologyBench
from tests.topic_records import committed_records, ordered_producer
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.embedded import EmbeddedKafka


class Topics:
    """Topics of a test, made, deleted and read by their names without the prefix."""

    def __init__(self, bench: TopologyBench, kafka: EmbeddedKafka) -> None:
        self._prefix, self._bootstrap = bench.prefix, kafka.bootstrap
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})

    def name(self, topic: str) -> str:
        return f"{self._prefix}-{topic}"

    def make(self, topic: str, **config: str) -> None:
        new = NewTopic(self.name(topic), PARTITIONS, 1, config={"retention.ms": "-1", **config})
        self._admin.create_topics([new])[self.name(topic)].result(30)
        until(lambda: self.name(topic) in self._admin.list_topics(timeout=10).topics)

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([self.name(topic)])[self.name(topic)].result(30)
        until(lambda: self.name(topic) not in self._admin.list_topics(timeout=10).topics)

    def send(self, topic: str, *values: Mapping[str, Any]) -> None:
        producer = ordered_producer(self._bootstrap)
        for number, value in enumerate(values):
            producer.produce(self.name(topic), json.dumps(value), f"k{number}")
        assert producer.flush(60) == 0

    def read(self, topic: str) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
        """Values and headers of what readers of committed records see."""
        for record in committed_records(self._bootstrap, self.name(topic)):
            headers = {key: bytes(value or b"").decode() for key, value in record.headers() or ()}
            yield json.loads(record.value() or b"null"), headers

    def numbers(self, topic: str) -> list[int]:
        return sorted(value["n"] for value, _ in self.read(topic))


@pytest.fixture
def topics(bench: TopologyBench, kafka: EmbeddedKafka) -> Topics:
    return Topics(bench, kafka)


def started(bench: TopologyBench, build: str, mode: str, guarantee: str) -> Any:
    with bench.file.open("a") as file:
        file.write(
            f"topologies.t.build={bench.function(build)}\ntopologies.t.mode={mode}\n"
            f"topologies.t.guarantee={guarantee}\n"
        )
    return bench.run_part("topology:t")


def state(bench: TopologyBench) -> str:
    """State and detail of the topology; empty before the bridge serves it."""
    try:
        return bench.ready()["topology:t"]
    except OSError:
        return ""


MODES = [("realtime", "exactly_once"), ("batch", "at_least_once")]
FURTHER_MODES = [("realtime", "at_least_once"), ("batch", "exactly_once")]


@pytest.mark.parametrize(
    ("mode", "guarantee"), [*MODES, *(pytest.param(*each, marks=pytest.mark.further_cases) for each in FURTHER_MODES)]
)
def test_a_record_that_kafka_does_not_take_is_its_own_dead_letter_and_nothing_starts_again(
    bench: TopologyBench, topics: Topics, mode: str, guarantee: str
) -> None:
    topics.make("small", **{"max.message.bytes": "1000"})
    topics.make("good")
    good, small, missing = (topics.name(each) for each in ("good", "small", "missing"))
    bridge = started(bench, "chosen", mode, guarantee)
    topics.send("clicks", *({"page": good, "n": n} for n in range(50)))
    until(lambda: topics.numbers("good") == list(range(50)), 120)

    bad = [(missing, ""), ("no name?", ""), ("__consumer_offsets", ""), (small, "x" * 2_000)]
    many = [{"page": missing, "n": n} for n in range(1_000, 2_000)]
    fits = [{"page": page, "n": n} for n in range(50, 100) for page in (good, small)]
    letters = [{"page": page, "n": n, "note": note} for n, (page, note) in enumerate(bad)]
    topics.send("clicks", *fits[:50], *letters, *many, *fits[50:])

    until(lambda: len(list(topics.read("chosen-dead-letters"))) == 1_004, 120)
    until(lambda: topics.numbers("good") == list(range(100)) and topics.numbers("small") == list(range(50, 100)), 60)
    found = {value["n"]: headers for value, headers in topics.read("chosen-dead-letters") if value["n"] < 4}
    assert {n: headers["jmsbridge.error"].partition(":")[0] for n, headers in found.items()} == {
        0: f"topic '{missing}' does not exist",
        1: "topic 'no name?' is not a valid name for a topic",
        2: "topic '__consumer_offsets' is one of Kafka's own, which nobody else may write",
        3: found[3]["jmsbridge.error"],
    }
    assert f"topic '{small}' takes 1000 bytes and the record has 2" in found[3]["jmsbridge.error"]
    assert {headers["jmsbridge.reason"] for headers in found.values()} == {"publish"}
    assert {headers["jmsbridge.node"] for headers in found.values()} == {"out"}
    assert found[0]["jmsbridge.position"].startswith(f"{topics.name('clicks')}:")
    assert bench.metric("jmsbridge_component_restarts_total", component="topology:t") in (None, 0)
    rejected = {"topology": "t", "reason": "rejected_records"}
    until(lambda: bench.metric("jmsbridge_topology_unprocessed_records_total", **rejected) == 1_004)
    assert "query starts again" not in bench.log.read_text()

    # A topic that appears is used.
    topics.make("missing")
    n = 5_000

    def arrives() -> bool:
        nonlocal n
        n += 1
        topics.send("clicks", {"page": missing, "n": n})
        return bool(topics.numbers("missing"))

    until(arrives, 60)
    bench.stop(bridge)


@pytest.mark.parametrize(("mode", "guarantee"), MODES)
def test_a_topology_waits_for_its_own_topics_and_goes_on_by_itself(
    bench: TopologyBench, topics: Topics, mode: str, guarantee: str
) -> None:
    bridge = started(bench, "relayed", mode, guarantee)
    until(lambda: f"reads '{topics.name('late')}', which Kafka does not have" in state(bench), 120)
    assert state(bench).startswith("degraded")
    topics.make("late")
    topics.send("late", *({"page": "a", "n": n} for n in range(20)))
    until(lambda: f"topic '{topics.name('late-out')}'" in state(bench), 60)
    assert "does not exist" in state(bench)
    topics.make("late-out")
    until(lambda: topics.numbers("late-out") == list(range(20)), 60)
    until(lambda: state(bench).startswith("ready"), 60)

    topics.delete("late-out")
    topics.send("late", *({"page": "a", "n": n} for n in range(20, 40)))
    until(lambda: f"topic '{topics.name('late-out')}'" in state(bench), 60)
    assert state(bench).startswith("degraded")
    topics.make("late-out")
    # What had arrived before went with the topic; with at least once some of it may come again.
    until(lambda: set(range(20, 40)) <= set(topics.numbers("late-out")), 60)
    if guarantee == "exactly_once":
        assert topics.numbers("late-out") == list(range(20, 40))
    assert list(topics.read("relayed-dead-letters")) == []
    assert bench.metric("jmsbridge_component_restarts_total", component="topology:t") in (None, 0)
    assert os.getpgid(bridge.pid)
    bench.stop(bridge)
