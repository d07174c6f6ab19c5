"""Search over a real Kafka: it finds what reading everything finds, whatever gaps and times the topics have."""

from __future__ import annotations

import json
import os
import random
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import psutil
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from engine.embedded import EmbeddedKafka
from engine.errors import SetupError
from engine.find import filter_upkeep, id_filters, stretches
from engine.find.filter_upkeep import FilterUpkeep
from engine.find.question import FindQuestion, TopicKind
from engine.find.scanner import Scanner
from engine.find.search import FindProgress, FoundRecord, find
from engine.find.stretches import Piece
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import KafkaTopicReader, LocatedRecord
from engine.message import Message
from routes.config import loads
from routes.model import Config
from routes.predicate import parse
from tests.commands import finished
from tests.conftest import TopicFactory
from tests.registry_server import registry_server
from tests.schema_bodies import framed
from tests.topic_records import transactions_have_ended
from tests.waiting import until

RECORDS = 6_000
DAY = (time.time_ns() // 86_400_000_000_000 - 2) * 86_400_000
"""Begin of a day that is over, in milliseconds since 1970."""
Takes = Callable[[LocatedRecord], bool]


@dataclass(frozen=True)
class Filled:
    """A bridge whose topics have records in them, and the text of its configuration."""

    config: Config
    text: str
    kafka: EmbeddedKafka

    @property
    def topics(self) -> dict[str, TopicKind]:
        return {
            self.config.journal.topic: TopicKind.JOURNAL,
            self.config.routes[0].targets[0].topics[0]: TopicKind.DESTINATION,
            self.config.sinks[0].topic: TopicKind.SINK,
            self.config.letter_topic: TopicKind.DEAD_LETTERS,
        }

    def plain(self, takes: Takes) -> set[str]:
        """Positions of the records that a filter in Python takes."""
        found = set()
        for topic in self.topics:
            with KafkaTopicReader(KafkaClients(self.config.kafka_access), topic) as reader:
                found |= {str(located.position) for located in reader.present() if takes(located)}
        return found


@pytest.fixture(scope="module")
def filled(kafka: EmbeddedKafka, topic: TopicFactory, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    journal, orders, sink, dead = topic("journal", 3), topic("orders", 2), topic("sink"), topic("dead")
    text = (
        f"bridge.id=b\nkafka.bootstrap.servers={kafka.bootstrap}\nembedded=off\njournal.topic={journal}\n"
        f"routing.dead-letter-topic={dead}\nembedded.data={tmp_path_factory.mktemp('data')}\n"
        f"sink.out.type=nats\nsink.out.url=nats://127.0.0.1:1\nsink.out.topic={sink}\n"
        f"routes.a.in.include=x=1\nroutes.a.out.topic={orders}\n"
    )
    made = Filled(loads(text), text, kafka)
    for name in made.topics:
        fill(kafka, name, RECORDS if name == journal else 500)
    # The beginning of a partition goes, as by retention.
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for gone in admin.delete_records([TopicPartition(journal, 1, 300)]).values():
        gone.result(30)
    return made


def fill(kafka: EmbeddedKafka, topic: str, records: int) -> None:
    """Writes records in transactions, of which each third is aborted, with times of a day in no order."""
    chance = random.Random(topic.partition("-")[0])  # noqa: S311
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"of {topic} {time.time_ns()}", "log_level": 0}
    )
    producer.init_transactions(30)
    for number in range(0, records, 100):
        producer.begin_transaction()
        for each in range(number, number + 100):
            headers: list[tuple[str, str | bytes | None]] = [
                ("jms.JMSMessageID", f"ID:{topic}-{each}"),
                ("jms.JMSCorrelationID", f"order-{each // 4}"),
                ("jms.JMSDestination", f"queue:{chance.choice(['orders', 'prices'])}"),
                ("jms.region", chance.choice(["emea", "apac"])),
                ("jmsbridge.body", "text"),
            ]
            amount = chance.randrange(2_000)
            body = json.dumps({"amount": amount, "note": f"für {each}"}, ensure_ascii=False)
            at = DAY + chance.randrange(86_400_000)
            producer.produce(topic, body, f"order-{each // 4}", headers=headers, timestamp=at)
        if number % 300 == 200:
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    transactions_have_ended(kafka.bootstrap, topic)


def searched(config: Config, question: FindQuestion) -> tuple[list[FoundRecord], FindProgress]:
    found, last = [], None
    for each in find(config, question, Event()):
        if isinstance(each, FindProgress):
            last = each
        else:
            found.append(each)
    assert last is not None
    return found, last


def positions(found: list[FoundRecord]) -> list[str]:
    return [str(each.located.position) for each in found]


def message(located: LocatedRecord) -> Message:
    return Message.from_record(located.record)


CASES: dict[str, tuple[FindQuestion, Takes]] = {
    "predicate": (
        FindQuestion(where="region = 'emea' AND msg.body.amount > 1000"),
        lambda each: message(each).fulfils(parse("region = 'emea' AND msg.body.amount > 1000")),
    ),
    "time": (
        FindQuestion(since=DAY + 3_600_000, until=DAY + 7_200_000),
        lambda each: DAY + 3_600_000 <= each.time_ms < DAY + 7_200_000,
    ),
    "correlation id": (
        FindQuestion(correlation_id="order-17"),
        lambda each: each.record.header("jms.JMSCorrelationID") == "order-17",
    ),
    "key": (FindQuestion(key="order-18"), lambda each: each.record.key == b"order-18"),
    "text": (FindQuestion(text="für 44"), lambda each: "für 44".encode() in (each.record.value or b"")),
    "headers": (
        FindQuestion(headers=(("region", "apac"), ("Destination", "queue:orders"))),
        lambda each: (
            each.record.header("jms.region") == "apac" and each.record.header("jms.JMSDestination") == "queue:orders"
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_search_finds_what_reading_everything_finds(filled: Filled, name: str) -> None:
    question, takes = CASES[name]
    found, last = searched(filled.config, replace(question, most=10_000))
    assert sorted(positions(found)) == sorted(filled.plain(takes))
    assert len(found) == last.found > 0
    assert {each.located.position.topic: each.kind for each in found}.items() <= filled.topics.items()
    assert last.done
    assert last.resume is None
    assert last.read == last.total
    # Markers and aborted records are offsets without a record that could be read.
    assert last.records < last.read


def test_an_id_leads_to_one_record_with_all_it_has(filled: Filled) -> None:
    journal = filled.config.journal.topic
    (found,), last = searched(filled.config, FindQuestion(message_id=f"{journal}-4511"))
    with KafkaTopicReader(KafkaClients(filled.config.kafka_access), journal) as reader:
        at = found.located.position
        assert reader.at(at.partition, at.offset) == found.located
    assert found.text("JMSMessageID") == f"ID:{journal}-4511"
    assert searched(filled.config, FindQuestion(either_id=f"{journal}-4511"))[0] == [found]
    assert last.done


def test_records_of_a_stretch_come_newest_first(filled: Filled) -> None:
    found, _ = searched(filled.config, FindQuestion(kinds=frozenset({TopicKind.DEAD_LETTERS}), most=500))
    times = [each.located.time_ms for each in found]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("most", [40, 400])
def test_a_search_goes_on_with_exactly_the_rest(filled: Filled, most: int) -> None:
    question = FindQuestion(where="msg.body.amount > 1950", most=most)
    whole, _ = searched(filled.config, replace(question, most=10_000))
    parts: list[str] = []
    last = None
    while last is None or last.resume is not None:
        found, last = searched(filled.config, replace(question, resume=last and last.resume))
        assert len(found) <= most
        assert last.found == len(parts) + len(found)
        assert last.read >= last.records > 0
        parts += positions(found)
    assert last.done
    assert last.read == last.total
    assert parts == positions(whole)


def test_the_process_of_a_search_gives_way_to_processes_of_other_sessions(filled: Filled) -> None:
    others = psutil.Process().children()
    with Scanner(filled.config, FindQuestion()):
        (process,) = (each for each in psutil.Process().children() if each not in others)
        until(lambda: process.nice() == 10)
        assert os.getsid(process.pid) == process.pid
        session = Path(f"/proc/{process.pid}/autogroup")
        if session.exists():
            assert session.read_text().split()[-2:] == ["nice", "10"]


def test_a_process_of_a_search_that_dies_is_told(filled: Filled) -> None:
    others = psutil.Process().children()
    with Scanner(filled.config, FindQuestion()) as scanner:
        (process,) = (child for child in psutil.Process().children() if child not in others)
        process.kill()
        until(lambda: process.status() == psutil.STATUS_ZOMBIE)
        with pytest.raises(SetupError, match="the Java process of the search has ended: "):
            list(scanner.scan([Piece(filled.config.journal.topic, 0, 0, 1)], 1, None))


def test_a_search_that_is_stopped_goes_on_as_well(filled: Filled) -> None:
    question = FindQuestion(where="msg.body.amount > 1980", most=10_000)
    whole, _ = searched(filled.config, question)
    stop, parts, last = Event(), [], None
    for each in find(filled.config, question, stop):
        if isinstance(each, FoundRecord):
            parts.append(str(each.located.position))
            stop.set()
        else:
            last = each
    assert last is not None
    assert not last.done
    rest, last = searched(filled.config, replace(question, resume=last.resume))
    assert parts + positions(rest) == positions(whole)
    assert last.done


def test_records_of_an_open_transaction_are_mentioned(filled: Filled, topic: TopicFactory) -> None:
    journal = topic("journal")
    config = loads(filled.text.replace(f"journal.topic={filled.config.journal.topic}", f"journal.topic={journal}"))
    producer = Producer({"bootstrap.servers": filled.kafka.bootstrap, "transactional.id": journal, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(journal, "body")
    producer.flush(30)
    asked = FindQuestion(kinds=frozenset({TopicKind.JOURNAL}))
    found, last = searched(config, asked)
    assert not found
    assert last.notes == (f"the last 1 offsets of '{journal}' are of open transactions",)
    producer.commit_transaction(30)
    until(lambda: len(searched(config, asked)[0]) == 1)


def test_what_retention_removes_meanwhile_is_told(filled: Filled, topic: TopicFactory) -> None:
    journal = topic("journal")
    config = loads(filled.text.replace(f"journal.topic={filled.config.journal.topic}", f"journal.topic={journal}"))
    fill(filled.kafka, journal, 5_000)
    question = FindQuestion(where="msg.body.amount >= 0", kinds=frozenset({TopicKind.JOURNAL}), most=1)
    _, first = searched(config, question)
    admin = AdminClient({"bootstrap.servers": filled.kafka.bootstrap, "log_level": 0})
    for gone in admin.delete_records([TopicPartition(journal, 0, 3_000)]).values():
        gone.result(30)
    found, last = searched(config, replace(question, resume=first.resume, most=10_000))
    assert last.done
    assert last.removed == 3_000
    assert last.read + last.removed == last.total
    assert min(each.located.position.offset for each in found) >= 3_000


def test_compacted_records_are_offsets_without_records(filled: Filled, topic: TopicFactory) -> None:
    settings = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    journal = topic("journal", config=settings)
    config = loads(filled.text.replace(f"journal.topic={filled.config.journal.topic}", f"journal.topic={journal}"))
    producer = Producer({"bootstrap.servers": filled.kafka.bootstrap, "log_level": 0})

    def write(records: int) -> None:
        for number in range(records):
            producer.produce(journal, f"body {number}", f"key {number % 10}")
        producer.flush(30)

    write(2_000)
    time.sleep(0.2)
    write(1)
    asked = FindQuestion(kinds=frozenset({TopicKind.JOURNAL}), most=100, text="body")
    until(lambda: searched(config, asked)[1].done, 60)
    found, last = searched(config, asked)
    assert last.done
    assert last.read == last.total == 2_001
    assert len(found) == last.records


def test_a_predicate_reads_bodies_with_a_schema(filled: Filled, topic: TopicFactory) -> None:
    journal = topic("journal")
    producer = Producer({"bootstrap.servers": filled.kafka.bootstrap, "log_level": 0})
    # 1500 and 500 as long values of Avro.
    for value in (b"\xb8\x17", b"\xe8\x07"):
        producer.produce(journal, framed(1, value))
    producer.flush(30)
    schema = {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "long"}]}
    with registry_server() as registry:
        registry.answers["/schemas/ids/1"] = [(200, {"schema": json.dumps(schema)})]
        text = filled.text.replace(f"journal.topic={filled.config.journal.topic}", f"journal.topic={journal}")
        config = loads(f"{text}schema.registry.url={registry.url}\n")
        asked = FindQuestion(where="msg.body.amount > 1000", kinds=frozenset({TopicKind.JOURNAL}))
        found, last = searched(config, asked)
    assert positions(found) == [f"{journal}:0:0"]
    assert last.done


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("JMSType = 'a' AND JMSPriority > 5", [0, 1, 2]),
        ("price BETWEEN 1.4 AND 1.6 AND region = 'emea'", [0, 1, 2]),
        ("JMSType IS NULL", []),
    ],
)
def test_a_predicate_reads_headers_in_all_styles(
    filled: Filled, topic: TopicFactory, where: str, found: list[int]
) -> None:
    journal = topic("journal")
    producer = Producer({"bootstrap.servers": filled.kafka.bootstrap, "log_level": 0})
    types = ("jmsbridge.types", b"price=float")
    own = ("jms.price", b"1.5"), ("jms.region", b"emea"), types
    producer.produce(journal, "text", headers=[("jms.JMSType", b"a"), ("jms.JMSPriority", b"7"), *own])
    producer.produce(journal, "short", headers=[("jms.Type", b"a"), ("jms.Priority", b"7"), *own])
    typed = ("jms.string.JMSType", b"a"), ("jms.int.JMSPriority", struct.pack(">i", 7)), ("jms.string.region", b"emea")
    producer.produce(journal, "typed", headers=[*typed, ("jms.float.price", struct.pack(">f", 1.5)), types])
    producer.flush(30)
    config = loads(filled.text.replace(f"journal.topic={filled.config.journal.topic}", f"journal.topic={journal}"))
    records, _ = searched(config, FindQuestion(where=where, kinds=frozenset({TopicKind.JOURNAL})))
    assert sorted(each.located.position.offset for each in records) == found


def test_an_id_is_found_without_blocks_that_cannot_have_it(
    filled: Filled, topic: TopicFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (stretches, id_filters):
        monkeypatch.setattr(module, "PIECE", 500)
    journal = topic("journal", 2)
    config = loads(filled.text.replace(f"journal.topic={filled.config.journal.topic}", f"journal.topic={journal}"))
    fill(filled.kafka, journal, 9_000)
    asked = FindQuestion(kinds=frozenset({TopicKind.JOURNAL}), correlation_id="ID:order-17")
    before, whole = searched(config, asked)
    assert whole.excluded == 0
    after, less = searched(config, asked)
    assert positions(after) == positions(before)
    assert len(after) == 4
    assert less.excluded > less.read
    assert less.excluded + less.read == less.total == whole.total
    assert f"{less.excluded:,} cannot have the id" in less.summary(asked)
    either, fewer = searched(config, replace(asked, correlation_id=None, either_id="order-17"))
    assert (positions(either), fewer.excluded) == (positions(before), less.excluded)
    # A topic of the same name with other records.
    admin = AdminClient({"bootstrap.servers": filled.kafka.bootstrap, "log_level": 0})
    admin.delete_topics([journal])[journal].result(30)
    until(lambda: journal not in admin.list_topics(timeout=10).topics)
    admin.create_topics([NewTopic(journal, 2, 1)])[journal].result(30)
    until(lambda: journal in admin.list_topics(timeout=10).topics)
    fill(filled.kafka, journal, 9_000)
    found, anew = searched(config, asked)
    assert len(found) == 4
    assert anew.excluded == 0


def test_the_bridge_writes_filters_before_anyone_searches(
    filled: Filled, topic: TopicFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (stretches, id_filters):
        monkeypatch.setattr(module, "PIECE", 500)
    monkeypatch.setattr(filter_upkeep, "_REST", 0.0)
    monkeypatch.setattr(filter_upkeep, "_AT_ONCE", 100)
    journal = topic("journal", 2)
    text = filled.text.replace(f"journal.topic={filled.config.journal.topic}", f"journal.topic={journal}")
    config = loads(text)
    fill(filled.kafka, journal, 9_000)
    upkeep = FilterUpkeep(lambda: config, lambda: True)
    assert upkeep.write(config) >= 14
    assert upkeep.write(config) == 0
    asked = FindQuestion(kinds=frozenset({TopicKind.JOURNAL}), correlation_id="ID:order-17")
    found, last = searched(config, asked)
    assert len(found) == 4
    assert last.excluded > last.read
    assert last.excluded + last.read == last.total


def test_a_topic_that_is_missing_is_named(filled: Filled) -> None:
    text = filled.text.replace(".out.topic=orders", ".out.topic=missing.orders")
    _, last = searched(loads(text), FindQuestion(kinds=frozenset({TopicKind.DESTINATION})))
    assert last.done
    assert [note for note in last.notes if note.startswith("topic 'missing.orders-")]


@pytest.fixture
def call(
    filled: Filled, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    file = tmp_path_factory.mktemp("bridge") / "b.properties"
    file.write_text(filled.text)

    return lambda *arguments: finished(capsys, "find", "-c", str(file), *arguments)


def test_the_command_shows_records_and_how_to_go_on(filled: Filled, call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = call("--correlation-id", "order-17", "--in", "journal", "-n", "3")
    assert code == 0
    assert out.count("  journal       ") == 3
    assert f"    ID:{filled.config.journal.topic}-" in out
    assert "; 3 found\n" in err
    assert "continue with: jms-bridge find --correlation-id order-17 --in journal -n 3 -c " in err
    token = err.split("--resume ")[1].strip()
    code, rest, err = call("--correlation-id", "order-17", "--in", "journal", "-n", "3", "--resume", token)
    assert code == 0
    assert rest.count("  journal       ") == 1
    assert "; 4 found\n" in err
    assert "continue" not in err


def test_the_command_tells_programs_everything(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("--correlation-id", "order-17", "--in", "journal", "--json")
    *records, last = map(json.loads, out.splitlines())
    assert code == 0
    assert len(records) == last["found"] == 4
    assert last["done"] is True
    assert {"kind", "topic", "partition", "offset", "time", "key", "headers", "body"} == records[0].keys()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--where", "amount >"], "--where:9: error: "),
        (["--since", "yesterday"], "--since 'yesterday': expected a time"),
        (["--in", "journals"], "the bridge has no topic 'journals'; a search reads journal, destination, sink, dead"),
        (["--header", "x"], "--header 'x': expected NAME=VALUE"),
        (["--resume", "x"], "the token is incomplete or none at all"),
        (["--text", ""], "--text is empty"),
    ],
)
def test_the_command_refuses_what_makes_no_question(
    call: Callable[..., tuple[int, str, str]], arguments: list[str], what: str
) -> None:
    code, _, err = call(*arguments)
    assert code == 64
    assert what in err
