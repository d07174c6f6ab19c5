"""What tests of sinks need: the brokers' side, a sink running in a thread, and its topic filled as the router does."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from nats.aio.client import Client

from engine.delivery.sink_loop import run_sink
from engine.kafka.errors import PASSING
from engine.kafka.topics import BridgeTopics
from engine.message import DESTINATION, ORIGIN, POSITION, ROUTE, Message
from engine.telemetry.status import State
from routes import config as configuration
from routes.properties import Property
from tests.integration.connectors.running import Worker
from tests.topic_records import ORDERED
from tests.waiting import patience, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from nats.js import JetStreamContext

    from engine.embedded import EmbeddedNats
    from routes.model import Config
    from tests.integration.connectors.stomp_harness import StompHarness

SINK = "out"
T = TypeVar("T")


@dataclass(frozen=True)
class Arrived:
    """A message on the other side."""

    body: bytes
    headers: Mapping[str, str]


class SinkHarness(Protocol):
    """One running broker. To join the suite a connector adds its harness to `SINKS` in `systems`."""

    @property
    def port(self) -> int:
        """Where it listens, for a proxy to stand in front."""

    def settings(self, port: int | None = None) -> Mapping[str, str]:
        """Keys of `sink.out`, with their dot, by that port if not its own."""

    def address(self, name: str) -> str:
        """The destination of that name, as a route names it."""

    def refused(self, message: Message) -> tuple[str, Message]:
        """An address and the message changed so that the other side will never take it."""

    def create(self, name: str) -> None:
        """The destination exists and keeps what comes."""

    def arrived(self, name: str, count: int) -> list[Arrived]:
        """All that came so far, once there are so many; what more comes within a moment as well."""

    def kill(self) -> None:
        """The broker is gone without a word."""

    def start(self) -> None:
        """The broker is back with everything it had."""


class StompSinkHarness:
    """Queues of an Artemis."""

    def __init__(self, stomp: StompHarness) -> None:
        self._stomp = stomp
        self.kill, self.start = stomp.kill, stomp.start

    @property
    def port(self) -> int:
        return self._stomp.port

    def settings(self, port: int | None = None) -> Mapping[str, str]:
        return {".type": "stomp", ".url": f"stomp://127.0.0.1:{port or self.port}", ".heartbeat": "1s"}

    def address(self, name: str) -> str:
        return f"queue/{name}"

    def refused(self, message: Message) -> tuple[str, Message]:
        # A frame ends at a NUL, and STOMP knows no escape for one in a header.
        return "queue/any", replace(message, properties={"x": Property("a\0b")})

    def create(self, name: str) -> None:
        self._stomp.create(name)

    def arrived(self, name: str, count: int) -> list[Arrived]:
        until(lambda: self._stomp.waiting(name) >= count, 60, f"{count} in {name}")
        time.sleep(0.3)
        count = self._stomp.waiting(name)
        with self._stomp.peer() as peer:
            peer.subscribe(name, "auto")
            frames = [peer.expect("MESSAGE") for _ in range(count)]
        return [Arrived(frame.body, dict(frame.headers)) for frame in frames]


class NatsSinkHarness:
    """Streams of a NATS server."""

    def __init__(self, server: EmbeddedNats) -> None:
        self._server = server
        self._url = server.url

    @property
    def port(self) -> int:
        return int(self._url.rpartition(":")[2])

    def settings(self, port: int | None = None) -> Mapping[str, str]:
        return {".type": "nats", ".url": f"nats://127.0.0.1:{port or self.port}", ".heartbeat": "1s", ".stream": "true"}

    def address(self, name: str) -> str:
        return f"{name}.all"

    def refused(self, message: Message) -> tuple[str, Message]:
        return "no.stream.takes.this", message

    def create(self, name: str) -> None:
        async def make(stream: JetStreamContext) -> None:
            await stream.add_stream(name=name, subjects=[f"{name}.>"])

        self._with_stream(make)

    def arrived(self, name: str, count: int) -> list[Arrived]:
        async def read(stream: JetStreamContext) -> list[Arrived]:
            deadline = time.monotonic() + patience(60)
            while (total := (await stream.stream_info(name)).state.messages) < count:
                assert time.monotonic() < deadline, f"{total} of {count}"
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.3)
            total = (await stream.stream_info(name)).state.messages
            subscription = await stream.pull_subscribe("", stream=name)
            found: list[Arrived] = []
            while len(found) < total:
                for message in await subscription.fetch(min(total - len(found), 500), timeout=10):
                    found.append(Arrived(message.data, dict(message.headers or {})))
                    await message.ack()
            return found

        return self._with_stream(read)

    def kill(self) -> None:
        assert self._server.pid is not None
        os.kill(self._server.pid, signal.SIGKILL)
        self._server.stop()

    def start(self) -> None:
        self._server.start()

    def _with_stream(self, work: Callable[[JetStreamContext], Awaitable[T]]) -> T:
        async def run() -> T:
            client = Client()
            await client.connect(self._url, allow_reconnect=False)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(run())


def configure(
    folder: Path, bootstrap: str, name: str, settings: Mapping[str, str], *, dead_letters: bool = True
) -> Config:
    """A bridge with one sink `out`, whose topics exist; `settings` as for sources (`running.configure`).

    `dead_letters`: whether it names a topic for them.
    """
    lines = {
        "bridge.id": f"b-{name}",
        "kafka.bootstrap.servers": bootstrap,
        "journal.topic": f"journal-{name}",
        "journal.partitions": "2",
        **({"routing.dead-letter-topic": f"dead-{name}", "routing.create-topics": "true"} if dead_letters else {}),
        "routes.r.in.include": "TRUE",
        "routes.r.out.topic": f"routed-{name}",
        f"sink.{SINK}.topic": f"sink-{name}",
    }
    lines |= {f"sink.{SINK}{key}" if key.startswith(".") else key: value for key, value in settings.items()}
    file = folder / "bridge.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), encoding="utf-8")
    config = configuration.load(file)
    BridgeTopics(config).ensure_journal()
    BridgeTopics(config).ensure_sink_topics()
    BridgeTopics(config).create_missing()
    return config


class RouterStandIn:
    """Writes a sink's topic as the router would, without Spark: each record with its position in a journal."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topic = config.sinks[0].topic
        self._producer = Producer({"bootstrap.servers": config.bootstrap_servers, **ORDERED})
        self._offset = 0
        self._failures: list[object] = []

    def give(self, address: str, messages: Sequence[Message], route: str = "r") -> None:
        """Returns when Kafka has them."""
        self.add(address, *messages, route=route)
        self.flush()

    def add(self, address: str, *messages: Message, route: str = "r") -> None:
        """Hands them to Kafka's client."""
        for message in messages:
            record = message.to_record()
            own = {
                ORIGIN: self._config.bridge_id,
                POSITION: f"{self._config.journal.topic}:0:{self._offset}",
                DESTINATION: address,
                ROUTE: route,
            }
            self._offset += 1
            headers: list[tuple[str, str | bytes | None]] = [*record.headers]
            headers += ((name, text.encode()) for name, text in own.items())
            self._producer.produce(
                self._topic,
                record.value,
                record.key,
                headers=headers,
                on_delivery=lambda error, _: self._failures.append(error) if error else None,
            )
            self._producer.poll(0)

    def flush(self) -> None:
        """Returns when Kafka has all that was added."""
        assert self._producer.flush(60) == 0
        assert not self._failures


def numbered(count: int, begin: int = 0, keys: int = 5, size: int = 0) -> list[Message]:
    """Messages whose bodies are numbers, filled up to `size`, of so many groups that keep their order."""
    return [
        Message(
            str(n).encode().ljust(size, b"."),
            headers={"JMSMessageID": f"ID:{n}", "JMSCorrelationID": f"key-{n % keys}"},
        )
        for n in range(begin, begin + count)
    ]


def numbers(arrived: Sequence[Arrived]) -> list[int]:
    """The numbers in their bodies."""
    return [int(each.body.rstrip(b".")) for each in arrived]


def in_order(found: Sequence[int], keys: int = 5) -> bool:
    """Whether those of each group stand in their order."""
    groups = [[n for n in found if n % keys == key] for key in range(keys)]
    return all(group == sorted(group) for group in groups)


class RunningSink(Worker):
    """A worker of the sink."""

    def __init__(self, config: Config, worker: int = 1) -> None:
        super().__init__("sink:out", lambda status, stop: run_sink(config, SINK, worker, status, stop))

    def count(self, what: str, **labels: str) -> int:
        """`delivered_messages`, `rejected_messages`, `reconnects`, `requests`, `replies`, `request_timeouts`."""
        return self.sample(f"jmsbridge_sink_{what}_total", sink=SINK, **labels)

    def delivers(self, count: int, seconds: float = 60) -> None:
        """Waits until so many are confirmed."""
        self.comes_to(lambda: self.count("delivered_messages"), count, "delivered", seconds)


def is_waited_for(sink: RunningSink) -> None:
    """Returns when the sink says that its system is away; AssertionError if it was ready before."""

    def is_away() -> bool:
        state = sink.status.current.state
        assert state is not State.READY
        return state is State.DEGRADED

    until(is_away, 60, "degraded")


def committed(config: Config) -> int:
    """How many records of the sink's topic are dealt with for good."""
    group = f"{config.bridge_id}.sink.{SINK}"
    consumer = Consumer({"bootstrap.servers": config.bootstrap_servers, "group.id": group})
    try:
        places = [TopicPartition(config.sinks[0].topic, partition) for partition in range(config.journal.partitions)]
        for _ in range(20):
            try:
                return sum(max(place.offset, 0) for place in consumer.committed(places, timeout=10))
            except KafkaException as error:
                # A group that has no coordinator yet gets one in a moment.
                if error.args[0].code() not in PASSING:
                    raise
            time.sleep(0.5)
        raise AssertionError("no coordinator")
    finally:
        consumer.close()
