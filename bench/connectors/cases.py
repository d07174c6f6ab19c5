"""What is measured: each source and sink with its servers, its load, and how to tell how far a contestant is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.broker import PARTITIONS
from bench.connectors.amqp_side import fill
from bench.connectors.artemis_side import Queues
from bench.connectors.nats_side import Counter, Publisher, Streams, line
from engine.message import DESTINATION, ORIGIN, POSITION, ROUTE, Message
from routes.properties import JmsType, Property

if TYPE_CHECKING:
    from bench.broker import Broker

__all__ = ["CASES", "JOURNAL", "PART", "Case", "Servers"]

PART = "measured"
"""Name of the source or sink in the bridge's configuration."""
JOURNAL = "bench.journal"
_BODY = b"x" * 400
_KEYS = 1000
_AHEAD = 40_000
"""Messages without a stream that may be on their way: the server keeps 64 MiB of them for a slow reader."""
_CHUNK = 500
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Servers:
    """What runs for the time of the measurement."""

    kafka: Broker
    nats: str
    """The url; empty where no case needs the server, as the next one."""
    stomp: str
    amqp: str
    """Of the same broker."""


class Case(ABC):
    """One source or sink. `open`, then for each pass `begin`, `feed` and `count` in turns, `left`, `end`; `close`."""

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
        """Before the first pass."""

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
        """What the pass has made goes."""

    @abstractmethod
    def close(self) -> None:
        """After the last pass."""

    @abstractmethod
    def bare(self, run: str) -> Mapping[str, str]:
        """Arguments of the bare loop, apart from `bootstrap`."""

    @abstractmethod
    def settings(self, run: str) -> Mapping[str, str]:
        """The bridge's; a key that begins with a dot is one of the source or sink."""


class _Source(Case):
    """From NATS into a topic of each pass."""

    kind = "source"

    def begin(self, run: str) -> None:
        self.kafka.create(run)

    def count(self, run: str) -> int:
        return self.kafka.count([run])

    def end(self, run: str) -> None:
        self.kafka.delete(run)

    def bare(self, run: str) -> Mapping[str, str]:
        return {"url": self.servers.nats, "address": self.place, "topic": run}

    def settings(self, run: str) -> Mapping[str, str]:
        nats = {".type": "nats", ".url": self.servers.nats, ".destinations": self.place}
        return {"bridge.id": run, "journal.topic": run, **nats}


class _CoreSource(_Source):
    name, loop = "nats-source", "core-source"

    def open(self) -> None:
        self._publisher = Publisher(self.servers.nats)

    def begin(self, run: str) -> None:
        super().begin(run)
        self._published = 0

    def feed(self, arrived: int) -> None:
        if not self._published:
            # Before somebody listens everything would be lost.
            self._published = int(self._publisher.heard(self.place, _headers(0), _BODY))
            return
        while self._published < min(self.messages, arrived + _AHEAD):
            numbers = range(self._published, min(self._published + _CHUNK, self.messages))
            self._publisher.publish(b"".join(line(self.place, _headers(number), _BODY) for number in numbers))
            self._published = numbers.stop

    def close(self) -> None:
        self._publisher.close()


class _StreamSource(_Source):
    name, loop = "nats-stream-source", "stream-source"

    def open(self) -> None:
        self._streams = Streams(self.servers.nats)
        self._streams.make(self.place)
        self._streams.fill(self.place, _headers, _BODY, self.messages)

    def left(self, run: str) -> int:
        return self._streams.left(self.place, run)

    def close(self) -> None:
        self._streams.close()

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "stream": self.place, "consumer": run}

    def settings(self, run: str) -> Mapping[str, str]:
        return {**super().settings(run), ".stream": self.place, ".consumer": run}


class _Sink(Case):
    """From a topic that is full from the beginning, by a group of each pass."""

    kind = "sink"
    address: ClassVar[str] = "{}"
    """How a route names the place."""

    def open(self) -> None:
        self._topic = f"{self.place}.out"
        self.kafka.create(self._topic)
        _fill(self.kafka, self._topic, self.address.format(self.place), self.messages)

    def left(self, run: str) -> int:
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": _group(run), "log_level": 0})
        try:
            places = [TopicPartition(self._topic, partition) for partition in range(PARTITIONS)]
            committed = consumer.committed(places, timeout=_ANSWER_SECONDS)
        finally:
            consumer.close()
        return self.messages - sum(max(place.offset, 0) for place in committed)

    def close(self) -> None:
        self.kafka.delete(self._topic)

    def bare(self, run: str) -> Mapping[str, str]:
        url = self.servers.nats or self.servers.stomp
        return {"url": url, "address": self.place, "topic": self._topic, "group": _group(run)}

    def settings(self, run: str) -> Mapping[str, str]:
        nats = {".type": "nats", ".url": self.servers.nats}
        return {"bridge.id": run, "journal.topic": JOURNAL, ".topic": self._topic, **nats}


class _CoreSink(_Sink):
    name, loop = "nats-sink", "core-sink"

    def begin(self, run: str) -> None:
        self._counter = Counter(self.servers.nats, self.place)

    def count(self, run: str) -> int:
        return self._counter.count

    def end(self, run: str) -> None:
        self._counter.close()


class _StreamSink(_Sink):
    name, loop = "nats-stream-sink", "stream-sink"

    def open(self) -> None:
        super().open()
        self._streams = Streams(self.servers.nats)

    def begin(self, run: str) -> None:
        self._streams.make(self.place)

    def count(self, run: str) -> int:
        return self._streams.count(self.place)

    def end(self, run: str) -> None:
        self._streams.remove(self.place)

    def close(self) -> None:
        super().close()
        self._streams.close()

    def settings(self, run: str) -> Mapping[str, str]:
        return {**super().settings(run), ".stream": "true"}


class _QueueSink(_Sink):
    name, loop = "stomp-sink", "queue-sink"
    address = "queue/{}"

    def open(self) -> None:
        super().open()
        self._queues = Queues(self.servers.stomp)

    def begin(self, run: str) -> None:
        self._queues.remove(self.place)

    def count(self, run: str) -> int:
        return self._queues.count(self.place)

    def end(self, run: str) -> None:
        self._queues.remove(self.place)

    def close(self) -> None:
        super().close()
        self._queues.close()

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "url": self.servers.stomp}

    def settings(self, run: str) -> Mapping[str, str]:
        return {**super().settings(run), ".type": "stomp", ".url": self.servers.stomp}


class _AmqpSource(_Source):
    name, loop = "amqp-source", "amqp-source"

    def open(self) -> None:
        self._queues = Queues(self.servers.stomp)

    def begin(self, run: str) -> None:
        super().begin(run)
        self._queues.remove(self.place)
        fill(self.servers.amqp, self.place, map(_message, range(self.messages)))

    def left(self, run: str) -> int:
        return self._queues.count(self.place)

    def close(self) -> None:
        self._queues.close()

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "url": self.servers.amqp}

    def settings(self, run: str) -> Mapping[str, str]:
        amqp = {".type": "amqp", ".url": self.servers.amqp, ".destinations": f"queue:{self.place}"}
        return {**super().settings(run), **amqp}


class _AmqpSink(_QueueSink):
    name, loop = "amqp-sink", "amqp-sink"

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "url": self.servers.amqp}

    def settings(self, run: str) -> Mapping[str, str]:
        return {**super().settings(run), ".type": "amqp", ".url": self.servers.amqp}


CASES: Mapping[str, Callable[[Servers, int], Case]] = {
    case.name: case for case in (_CoreSource, _StreamSource, _AmqpSource, _CoreSink, _StreamSink, _QueueSink, _AmqpSink)
}
"""By name."""


def _group(run: str) -> str:
    """As a sink of bridge `run` calls it."""
    return f"{run}.sink.{PART}"


def _headers(number: int) -> dict[str, str]:
    return {
        "JMSCorrelationID": f"key-{number % _KEYS}",
        "JMSType": "order",
        "region": ("emea", "apac", "amer")[number % 3],
        "amount": f"{number}.25",
        "urgent": "true" if number % 2 else "false",
    }


def _message(number: int) -> Message:
    """As a source takes it in."""
    headers = {"JMSMessageID": f"ID:bench:{number}", "JMSCorrelationID": f"key-{number % _KEYS}"}
    headers["JMSTimestamp"] = str(1_795_240_301_012 + number)
    properties = {"region": Property("emea", JmsType.STRING), "amount": Property(f"{number}.25", JmsType.DOUBLE)}
    return Message(_BODY, headers=headers, properties=properties, source="bench")


def _fill(kafka: Broker, topic: str, address: str, messages: int) -> None:
    """A sink's topic as the router leaves it."""
    failed: list[object] = []
    settings = {"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True, "partitioner": "murmur2_random"}
    producer = Producer({**settings, "on_delivery": lambda error, _: failed.append(error) if error else None})
    own = {ORIGIN: "bench", DESTINATION: address, ROUTE: "r"}
    for number in range(messages):
        record = _message(number).to_record()
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
