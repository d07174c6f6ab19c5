"""Where messages end: how many are there now, and all of them at the end.

Nothing is taken away while the bridge runs, so that what is read at the end is everything that has ever arrived, and a
reader that is disturbed loses nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import nats
from confluent_kafka import Consumer, TopicPartition

from engine.kafka.reader import LocatedRecord
from tests.chaos.ledger import Number
from tests.chaos.verdict import Arrival, Position
from tests.dropboxes import files
from tests.integration.connectors.stomp_harness import Peer
from tests.topic_records import committed_records

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from nats.js import JetStreamContext

    from engine.message import Record

__all__ = ["JOURNAL", "ArtemisQueue", "Dropbox", "Journal", "KafkaTopics", "Output", "Stream", "quiet", "with_streams"]

T = TypeVar("T")

JOURNAL = "jms-bridge.journal"
"""The topic, by its name of default."""

_JOURNALED = re.compile(rf"{re.escape(JOURNAL)}:(\d+):(\d+)$")
_FILE_ID = re.compile(r"\d{16}-(\d{3})(\d{12})\d{6}")
_SECONDS = 5.0


class Output(Protocol):
    """A destination."""

    def count(self) -> int:
        """How many messages there are; any exception when it cannot be asked now."""

    def arrivals(self) -> Sequence[Arrival]:
        """All of them, those of one key in their order."""

    def close(self) -> None:
        """Hangs up."""


class KafkaTopics:
    """One or more topics."""

    def __init__(self, bootstrap: str, *topics: str) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        self._consumer: Consumer | None = None

    def count(self) -> int:
        if self._consumer is None:
            settings = {"bootstrap.servers": self._bootstrap, "group.id": "chaos", "log_level": 0}
            self._consumer = Consumer(settings)
        found = 0
        for topic in self._topics:
            for partition in self._consumer.list_topics(topic, _SECONDS).topics[topic].partitions:
                low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), _SECONDS)
                found += high - low
        return found

    def arrivals(self) -> Sequence[Arrival]:
        return [
            Arrival(Number.of(record.value or b""), _position(record.header("jmsbridge.position")))
            for topic in self._topics
            for _, _, record in _records(self._bootstrap, topic)
        ]

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class Journal:
    """The journal itself, whose records stand where they say they come from."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def arrivals(self) -> Sequence[Arrival]:
        return [
            Arrival(Number.of(record.value or b""), Position(partition, offset))
            for partition, offset, record in _records(self._bootstrap, JOURNAL)
        ]


class ArtemisQueue:
    """A queue, counted by Artemis' management and read by STOMP."""

    def __init__(self, port: int, queue: str) -> None:
        self._port = port
        self._queue = queue
        self._peer: Peer | None = None

    def count(self) -> int:
        asked = {"_AMQ_ResourceName": f"queue.{self._queue}", "_AMQ_Attribute": "messageCount"}
        to = {"destination": "activemq.management", "reply-to": f"counts.{self._queue}"}
        try:
            if self._peer is None:
                self._peer = Peer(self._port, _SECONDS)
                self._peer.subscribe(f"counts.{self._queue}", "auto")
            self._peer.write(self._peer.frame("SEND", to | asked, b"[]"))
            return int(json.loads(self._peer.expect("MESSAGE").body)[0])
        except BaseException:
            self.close()
            raise

    def arrivals(self) -> Sequence[Arrival]:
        # Artemis hangs up on who has been silent for a minute.
        self.close()
        count = self.count()
        with Peer(self._port) as peer:
            peer.subscribe(self._queue, "auto")
            frames = [peer.expect("MESSAGE") for _ in range(count)]
        return [Arrival(Number.of(frame.body), _position(frame.headers.get("_AMQ_DUPL_ID"))) for frame in frames]

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None


class Stream:
    """A stream of JetStream."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name

    def count(self) -> int:
        async def ask(streams: JetStreamContext) -> int:
            return (await streams.stream_info(self._name)).state.messages

        return with_streams(self._url, ask)

    def arrivals(self) -> Sequence[Arrival]:
        async def read(streams: JetStreamContext) -> list[Arrival]:
            total = (await streams.stream_info(self._name)).state.messages
            subscription = await streams.pull_subscribe("", stream=self._name)
            found: list[Arrival] = []
            while len(found) < total:
                for message in await subscription.fetch(min(total - len(found), 500), timeout=_SECONDS):
                    position = _position((message.headers or {}).get("Nats-Msg-Id"))
                    found.append(Arrival(Number.of(message.data), position))
                    await message.ack()
            return found

        return with_streams(self._url, read)

    def close(self) -> None:
        pass


class Dropbox:
    """The folder of a queue."""

    def __init__(self, box: Path) -> None:
        self._target = box / "target"

    def count(self) -> int:
        return sum(1 for _ in self._target.iterdir())

    def arrivals(self) -> Sequence[Arrival]:
        return [self._arrival(self._target / name) for name in files(self._target)]

    def close(self) -> None:
        pass

    @staticmethod
    def _arrival(file: Path) -> Arrival:
        found = _FILE_ID.fullmatch(file.name.split(".")[1])
        position = Position(int(found[1]), int(found[2])) if found else None
        return Arrival(Number.of(file.read_bytes()), position)


def with_streams(url: str, work: Callable[[JetStreamContext], Awaitable[T]]) -> T:
    """Does something with JetStream, on a connection of its own."""

    async def run() -> T:
        client = await nats.connect(url, allow_reconnect=False, connect_timeout=_SECONDS, error_cb=quiet)
        try:
            return await work(client.jetstream(timeout=_SECONDS))
        finally:
            await client.close()

    return asyncio.run(run())


async def quiet(_: Exception) -> None:
    """For clients of NATS: each error is also that of a call."""


def _records(bootstrap: str, topic: str) -> Iterator[tuple[int, int, Record]]:
    """Partition, offset and content of every record in a topic now, but for those of aborted transactions."""
    for message in committed_records(bootstrap, topic):
        read = LocatedRecord.of(message)
        yield read.position.partition, read.position.offset, read.record


def _position(text: str | None) -> Position | None:
    """What a header says, with or without the id of the bridge before it."""
    found = _JOURNALED.search(text or "")
    return Position(int(found[1]), int(found[2])) if found else None
