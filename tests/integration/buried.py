"""A configuration with dead letters in a real Kafka, and what tests do with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.dead_letters.replay import Options, ReplayOutcome, replay
from engine.dead_letters.store import DeadLetterStore
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import KafkaTopicReader, Position
from engine.message import BodyType, Message, Record
from routes.config import load
from tests.commands import exit_code
from tests.topic_records import ordered_producer

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.conftest import TopicFactory

__all__ = ["Bridge", "added", "dead_letters_of", "message", "replayed"]

CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers={kafka}
journal.topic={journal}
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
routing.dead-letter-topic={dead}
routing.on-soft-failure=dead-letter
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=orders
routes.orders.conv.key=msg.header.CorrelationId
"""


@dataclass
class Bridge:
    """A configuration and what its topics hold."""

    config: Config
    kafka: EmbeddedKafka

    @property
    def store(self) -> DeadLetterStore:
        return DeadLetterStore.of(self.config)

    @property
    def dead(self) -> str:
        assert self.config.routing.dead_letter_topic is not None
        return self.config.routing.dead_letter_topic

    def bury(self, *records: Record, partition: int = 0) -> None:
        """Write dead letters as the router does."""
        complete = (
            replace(record, headers=(*record.headers, *added(self.config.journal.topic, number)))
            for number, record in enumerate(records)
        )
        self.bury_as_it_is(*complete, partition=partition)

    def bury_as_it_is(self, *records: Record, partition: int = 0) -> None:
        producer = ordered_producer(self.kafka.bootstrap, {"message.max.bytes": 2_000_000})
        for record in records:
            producer.produce(self.dead, record.value, record.key, partition, headers=list(record.headers))
            producer.poll(0)
        assert producer.flush(10) == 0

    def journal(self) -> list[Record]:
        return self.records(self.config.journal.topic)

    def records(self, topic: str) -> list[Record]:
        with KafkaTopicReader(KafkaClients(self.config.kafka_access), topic) as reader:
            # Kafka shows the records of a transaction a moment after it was committed; the end is looked for last.
            starts = {partition: low for partition, (low, _) in reader.bounds().items()}
            return [located.record for located in reader.read(starts)]

    def replay(
        self, *offsets: int, dry_run: bool = False, options: Options | None = None
    ) -> list[tuple[int, ReplayOutcome]]:
        positions = [Position(self.dead, 0, offset) for offset in offsets] or None
        done = replay(self.store, positions, dry_run=dry_run, options=options)
        return [(each.position.offset, each.outcome) for each in done]

    def command(self, *arguments: str) -> int:
        return exit_code(*arguments, "-c", str(self.config.path))


def added(journal: str, offset: int, reason: str = "key-not-found") -> list[tuple[str, bytes]]:
    """The headers that make a journal record a dead letter."""
    return [
        ("jmsbridge.origin", b"b1"),
        ("jmsbridge.position", f"{journal}:0:{offset}".encode()),
        ("jmsbridge.reason", reason.encode()),
        ("jmsbridge.route", b"orders"),
        ("jmsbridge.time", b"2026-11-21T06:00:00.123Z"),
        ("__connect.errors.topic", journal.encode()),
        ("__connect.errors.partition", b"0"),
        ("__connect.errors.offset", str(offset).encode()),
        ("__connect.errors.stage", b"key"),
        ("__connect.errors.exception.class.name", f"jmsbridge.{reason}".encode()),
        ("__connect.errors.exception.message", b"there is no value under 'JMSCorrelationID' to take the key from"),
    ]


def message(number: int, **headers: str) -> Record:
    fields = {"JMSMessageID": f"ID:{number}", "JMSDestination": "queue:orders", **headers}
    return Message(f"body {number}".encode(), BodyType.TEXT, fields, {}, "s", ("other-bridge",)).to_record()


def replayed(record: Record, times: int = 1) -> Record:
    """The message as the journal has it after so many replays."""
    return replace(record, headers=(*record.headers, ("jmsbridge.replays", str(times).encode())))


def dead_letters_of(kafka: EmbeddedKafka, topic: TopicFactory, folder: Path, more: str = "") -> Bridge:
    """A bridge with topics of its own, and `more` lines in its file."""
    file = folder / "jms-bridge.properties"
    dead = topic("dead", partitions=2, config={"max.message.bytes": "2000000"})
    journal = topic("journal", partitions=2, config={"max.message.bytes": "1000000"})
    file.write_text(CONFIGURATION.format(kafka=kafka.bootstrap, journal=journal, dead=dead) + more)
    return Bridge(load(file), kafka)
