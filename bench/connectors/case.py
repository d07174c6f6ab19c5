"""Base of all measured sources and sinks: servers, load, settings, and progress of a contestant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.broker import PARTITIONS
from engine.message import DESTINATION, ORIGIN, POSITION, ROUTE, Message
from routes.properties import JmsType, Property

if TYPE_CHECKING:
    from pathlib import Path

    from bench.broker import Broker

__all__ = ["BODY", "JOURNAL", "PART", "Case", "Servers", "Sink", "Source", "headers_of", "message_of"]

PART = "measured"
"""Name of the source or sink in the bridge's configuration."""
JOURNAL = "bench.journal"
BODY = b"x" * 400
_KEYS = 1000
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers that run during the measurement."""

    kafka: Broker
    nats: str
    """The url; empty where no case needs the server, as the next one."""
    stomp: str
    amqp: str
    """URL of the same broker over AMQP."""
    dropbox: Path
    """The folder of dropboxes; it goes with the servers."""


class Case(ABC):
    """Source or sink to measure: `open`, for each pass `begin`, `feed` and `count` in turns, `left`, `end`; `close`."""

    name: ClassVar[str]
    kind: ClassVar[str]
    """`source` or `sink`."""
    loop: ClassVar[str]
    """The bare loop, see `bare`."""

    def __init__(self, servers: Servers, messages: int) -> None:
        self.servers = servers
        self.messages = messages
        self.kafka = servers.kafka
        self.place = f"bench-{self.name}"
        """Stream, subject or queue."""

    @abstractmethod
    def open(self) -> None:
        """Prepares the case before the first pass."""

    @abstractmethod
    def begin(self, run: str) -> None:
        """There is nothing yet where the messages of this pass are to go."""

    def feed(self, arrived: int) -> None:  # noqa: B027 # most have it all beforehand
        """Gives what is not there beforehand, when so much has come out."""

    @abstractmethod
    def count(self, run: str) -> int:
        """Messages that have arrived on the other side."""

    def left(self, run: str) -> int:
        """Messages that a pass which has ended would be given again."""
        return 0

    @abstractmethod
    def end(self, run: str) -> None:
        """Removes everything that the pass has created."""

    @abstractmethod
    def close(self) -> None:
        """Cleans up after the last pass."""

    @abstractmethod
    def bare(self, run: str) -> Mapping[str, str]:
        """Arguments of the bare loop, apart from `bootstrap`."""

    @abstractmethod
    def settings(self, run: str) -> Mapping[str, str]:
        """The bridge's; a key that begins with a dot is one of the source or sink."""


class Source(Case):
    """Source that moves messages from NATS into a topic of each pass."""

    kind = "source"

    def begin(self, run: str) -> None:
        """See `Case`."""
        self.kafka.create(run)

    def count(self, run: str) -> int:
        """See `Case`."""
        return self.kafka.count([run])

    def end(self, run: str) -> None:
        """See `Case`."""
        self.kafka.delete(run)

    def bare(self, run: str) -> Mapping[str, str]:
        """See `Case`."""
        return {"url": self.servers.nats, "address": self.place, "topic": run}

    def settings(self, run: str) -> Mapping[str, str]:
        """See `Case`."""
        nats = {".type": "nats", ".url": self.servers.nats, ".destinations": self.place}
        return {"bridge.id": run, "journal.topic": run, **nats}


class Sink(Case):
    """Sink that reads a full topic, with a consumer group for each pass."""

    kind = "sink"
    address: ClassVar[str] = "{}"
    """Address of the destination in a route, as a format string."""

    def open(self) -> None:
        """See `Case`."""
        self._topic = f"{self.place}.out"
        self.kafka.create(self._topic)
        _fill(self.kafka, self._topic, self.address.format(self.place), self.messages)

    def left(self, run: str) -> int:
        """See `Case`."""
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": _group(run), "log_level": 0})
        try:
            places = [TopicPartition(self._topic, partition) for partition in range(PARTITIONS)]
            committed = consumer.committed(places, timeout=_ANSWER_SECONDS)
        finally:
            consumer.close()
        return self.messages - sum(max(place.offset, 0) for place in committed)

    def close(self) -> None:
        """See `Case`."""
        self.kafka.delete(self._topic)

    def bare(self, run: str) -> Mapping[str, str]:
        """See `Case`."""
        url = self.servers.nats or self.servers.stomp
        return {"url": url, "address": self.place, "topic": self._topic, "group": _group(run)}

    def settings(self, run: str) -> Mapping[str, str]:
        """See `Case`."""
        nats = {".type": "nats", ".url": self.servers.nats}
        return {"bridge.id": run, "journal.topic": JOURNAL, ".topic": self._topic, **nats}


def _group(run: str) -> str:
    """Name of the consumer group of the sink of bridge `run`."""
    return f"{run}.sink.{PART}"


def headers_of(number: int) -> dict[str, str]:
    """Headers of message `number`, as an application sends them."""
    return {
        "JMSCorrelationID": f"key-{number % _KEYS}",
        "JMSType": "order",
        "region": ("emea", "apac", "amer")[number % 3],
        "amount": f"{number}.25",
        "urgent": "true" if number % 2 else "false",
    }


def message_of(number: int) -> Message:
    """Message `number` as a source receives it."""
    headers = {"JMSMessageID": f"ID:bench:{number}", "JMSCorrelationID": f"key-{number % _KEYS}"}
    headers["JMSTimestamp"] = str(1_795_240_301_012 + number)
    properties = {"region": Property("emea", JmsType.STRING), "amount": Property(f"{number}.25", JmsType.DOUBLE)}
    return Message(BODY, headers=headers, properties=properties, source="bench")


def _fill(kafka: Broker, topic: str, address: str, messages: int) -> None:
    """A sink's topic as the router leaves it."""
    failed: list[object] = []
    settings = {"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True, "partitioner": "murmur2_random"}
    producer = Producer({**settings, "on_delivery": lambda error, _: failed.append(error) if error else None})
    own = {ORIGIN: "bench", DESTINATION: address, ROUTE: "r"}
    for number in range(messages):
        record = message_of(number).to_record()
        added = {**own, POSITION: f"{JOURNAL}:0:{number}"}
        headers: Any = [*record.headers, *((name, text.encode()) for name, text in added.items())]
        while True:
            try:
                producer.produce(topic, record.value, record.key, headers=headers)
            except BufferError:
                producer.poll(1)
            else:
                break
    if producer.flush(_ANSWER_SECONDS) or failed:
        msg = f"topic {topic} could not be filled: {failed[:3]}"
        raise RuntimeError(msg)
