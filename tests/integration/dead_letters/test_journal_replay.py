"""Journal records are routed again in a real Kafka: the right ones, each once, whatever interrupts it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from engine.dead_letters.audit import Action, last
from engine.dead_letters.replay import ReplayOutcome
from engine.embedded import EmbeddedKafka
from engine.errors import UsageError
from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.reader import KafkaTopicReader, LocatedRecord, Position
from engine.kafka.topics import BridgeTopics
from engine.message import COPY_OF, Record
from engine.rerouting.replay import JournalReplay, ReroutingOptions, copy_of
from engine.rerouting.selection import JournalSelection
from engine.router.generation import Generation, Start
from engine.router.past_routes import routes_text
from engine.router.position_store import PositionStore
from routes.config import load
from routes.predicate import parse
from tests.conftest import TopicFactory
from tests.integration.buried import Bridge, dead_letters_of, message
from tests.topic_records import ordered_producer
from tests.waiting import until

ADDED = """\
routes.late.in.include=msg.address==late
routes.late.out.topic=late
"""
ALL = JournalSelection(partition=0)


@pytest.fixture
def bridge(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Bridge:
    return dead_letters_of(kafka, topic, tmp_path)


def journaled(bridge: Bridge, *records: Record, partition: int = 0, time_ms: int = 0) -> None:
    producer = ordered_producer(bridge.kafka.bootstrap)
    for record in records:
        headers = list(record.headers)
        producer.produce(
            bridge.config.journal.topic, record.value, record.key, partition, headers=headers, timestamp=time_ms
        )
    assert producer.flush(10) == 0


def late(number: int, **headers: str) -> Record:
    return message(number, JMSDestination="queue:late", **headers)


def started(bridge: Bridge, *positions: int, number: int = 1) -> None:
    """Notes that a generation reads by the routes of the file from these offsets on, by partition."""
    config = bridge.config
    BridgeTopics(config).ensure_state_topic()
    store = PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal)
    store.open()
    identity = KafkaOffsets(KafkaClients(config.kafka_access)).identity(config.journal.topic)
    routes, run, after = routes_text(config.text), f"run-{number}", f"run-{number - 1}"
    start = Start(config.journal.topic, identity, dict(enumerate(positions)), {}, "b1", routes, run, after)
    store.begin(Generation(config.path.parent / str(number), replace(start, sequence=number)))


def with_late(bridge: Bridge) -> Bridge:
    """The bridge with a route more in its file."""
    path = bridge.config.path
    path.write_text(path.read_text() + ADDED)
    return replace(bridge, config=load(path))


def rerouted(bridge: Bridge, selection: JournalSelection, **options: bool) -> list[tuple[int, ReplayOutcome]]:
    made = JournalReplay(bridge.config, ReroutingOptions(selection, **options))  # type: ignore[arg-type]
    return [(each.position.offset, each.outcome) for each in made.run(Event())]


def copies(bridge: Bridge) -> Counter[str]:
    """How often each position was copied."""
    found = (record.header(COPY_OF) for record in bridge.journal())
    return Counter(at.rpartition(":")[2] for at in found if at)


def test_what_no_route_took_is_routed_again_once_a_route_takes_it(bridge: Bridge) -> None:
    started(bridge, 0, 0)
    journaled(bridge, message(0), late(1), message(2), late(3), late(4, JMSExpiration="1"))
    bridge = with_late(bridge)
    started(bridge, 5, 0, number=2)
    journaled(bridge, late(5), message(6, JMSDestination="queue:never"))
    unrouted = JournalSelection(is_unrouted=True)
    assert rerouted(bridge, unrouted) == [
        (1, ReplayOutcome.REPLAYED),
        (3, ReplayOutcome.REPLAYED),
        (4, ReplayOutcome.NOT_REPLAYABLE),
    ]
    again = [outcome for _, outcome in rerouted(bridge, unrouted)]
    assert again == [ReplayOutcome.ALREADY_REPLAYED, ReplayOutcome.ALREADY_REPLAYED, ReplayOutcome.NOT_REPLAYABLE]
    assert copies(bridge) == {"1": 1, "3": 1}


def test_a_copy_is_the_record_itself_and_names_its_original(bridge: Bridge) -> None:
    original = Record(b"key", None, (("jms.JMSDestination", b"queue:orders"), ("traceparent", b"00-1"), ("x", None)))
    journaled(bridge, original)
    journal = bridge.config.journal.topic
    (done,) = JournalReplay(bridge.config, ReroutingOptions(JournalSelection((Position(journal, 0, 0),)))).run(Event())
    # Kafka shows the records of a transaction a moment after it was committed.
    until(lambda: len(bridge.journal()) == 2)
    at = Position.parse(done.detail, "")
    with KafkaTopicReader(KafkaClients(bridge.config.kafka_access), journal) as reader:
        copy = reader.at(at.partition, at.offset).record
    assert copy == replace(original, headers=(*original.headers, (COPY_OF, f"{journal}:0:0".encode())))
    assert (done.address, done.routes) == ("orders", ("orders",))


def test_the_audit_says_who_and_when_and_another_copy_has_to_be_asked_for(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    journaled(bridge, message(0))
    assert bridge.command("journal", "replay", "0:0") == 0
    assert bridge.command("journal", "replay", "0:0") == 0
    first, second = capsys.readouterr().out.splitlines()
    journal = bridge.config.journal.topic
    assert first.startswith(f"{journal}:0:0  replayed to {journal}:")
    assert second == first.replace("replayed to", "already replayed to")
    assert bridge.command("journal", "replay", "0:0", "--again") == 0
    assert copies(bridge) == {"0": 2}
    *_, entry = last(bridge.store, 5)
    assert (entry.action, str(entry.position)) == (Action.ROUTED_AGAIN, f"{journal}:0:0")
    assert (entry.actor.command, bool(entry.actor.user), bool(entry.time)) == (
        "journal replay POSITION... --again",
        True,
        True,
    )
    assert bridge.command("dlt", "audit") == 0
    assert "journal replay" in capsys.readouterr().out


def test_ranges_of_offsets_and_times_and_predicates_select(bridge: Bridge) -> None:
    journaled(bridge, message(0), message(1), time_ms=1_000_000)
    journaled(bridge, message(2), time_ms=3_000_000)
    journaled(bridge, message(3), time_ms=2_000_000)
    for selection, offsets in (
        (JournalSelection(partition=0, first=1, last=2), [1, 2]),
        (JournalSelection(partition=0, first=3), [3]),
        (JournalSelection(since_ms=2_000_000), [2, 3]),
        (JournalSelection(since_ms=2_000_000, until_ms=3_000_000), [3]),
        (JournalSelection(where=parse("msg.header.MessageId == 'ID:1'")), [1]),
        (JournalSelection(where=parse("msg.text LIKE '%body 2%'")), [2]),
    ):
        found = JournalReplay(bridge.config, ReroutingOptions(selection)).survey()
        assert [each.position.offset for each in found] == offsets


@pytest.mark.parametrize(
    ("selection", "why"),
    [
        (JournalSelection(), "say which records: positions"),
        (JournalSelection(first=1), "--from-offset and --to-offset need --partition"),
        (JournalSelection(partition=0, first=5, last=3), "--from-offset 5 is after --to-offset 3"),
        (JournalSelection(since_ms=2000, until_ms=1000), "1970-01-01T00:00:02.000Z is not before --until 1970"),
        (JournalSelection(partition=7), "has no partition 7, only 0 to 1"),
        (
            JournalSelection(partition=0, first=9),
            "--from-offset 9: no such record; partition 0 of .* holds offsets 0 ",
        ),
        (JournalSelection(partition=1, last=0), "--to-offset 0: no such record; partition 1 of .* is empty"),
        (JournalSelection((Position("other", 0, 0),)), "other:0:0: the journal is"),
    ],
)
def test_what_cannot_be_selected_says_why(bridge: Bridge, selection: JournalSelection, why: str) -> None:
    journaled(bridge, message(0), message(1))
    with pytest.raises(UsageError, match=why):
        list(JournalReplay(bridge.config, ReroutingOptions(selection)).survey())


def test_a_dry_run_counts_by_address_and_route_and_writes_nothing(
    bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    journaled(bridge, message(0), message(1), late(2))
    assert bridge.command("journal", "replay", "--partition", "0", "--dry-run", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["address"], row["routes"], row["outcome"], row["detail"], row["count"]) for row in rows] == [
        ("orders", ["orders"], "would replay", "", 2),
        ("late", [], "not replayable", "no route takes it", 1),
    ]
    assert bridge.command("journal", "replay", "--partition", "0", "--dry-run") == 0
    assert "2 would replay, 1 not replayable" in capsys.readouterr().err
    assert len(bridge.journal()) == 3


def test_many_messages_need_a_confirmation(bridge: Bridge, capsys: pytest.CaptureFixture[str]) -> None:
    journaled(bridge, message(0))
    assert bridge.command("journal", "replay", "--partition", "0") == UsageError.exit_code
    assert "1 message would be replayed: add --yes" in capsys.readouterr().err
    assert copies(bridge) == {}
    assert bridge.command("journal", "replay", "--partition", "0", "--yes") == 0
    assert copies(bridge) == {"0": 1}


def test_a_file_with_other_routes_than_the_bridge_is_refused(bridge: Bridge) -> None:
    started(bridge, 0, 0)
    journaled(bridge, late(0))
    changed = with_late(bridge)
    with pytest.raises(UsageError, match="the bridge routes by other routes than those in"):
        rerouted(changed, ALL)
    (foretold,) = JournalReplay(changed.config, ReroutingOptions(JournalSelection(is_unrouted=True))).survey()
    assert (foretold.outcome, foretold.routes) == (ReplayOutcome.WOULD_REPLAY, ("late",))


def test_records_from_before_the_routes_were_kept_are_counted_and_left_alone(bridge: Bridge) -> None:
    journaled(bridge, late(0), late(1))
    started(bridge, 1, 0)
    made = JournalReplay(bridge.config, ReroutingOptions(JournalSelection(is_unrouted=True)))
    assert list(made.survey()) == []
    assert made.unknown == 1


def test_a_replay_that_is_killed_goes_on_where_it_ended(bridge: Bridge) -> None:
    journaled(bridge, *map(message, range(3000)))
    command = [sys.executable, "-m", "engine", "journal", "replay", "--partition", "0", "--yes"]
    with subprocess.Popen(
        [*command, "-c", str(bridge.config.path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    done = Counter(outcome for _, outcome in rerouted(bridge, ALL))
    assert done[ReplayOutcome.ALREADY_REPLAYED] > 0
    assert done.total() == 3000
    found = copies(bridge)
    assert len(found) == found.total() == 3000


def test_of_two_replays_the_later_one_goes_on(bridge: Bridge) -> None:
    journaled(bridge, *map(message, range(500)))
    earlier = JournalReplay(bridge.config, ReroutingOptions(ALL)).run(Event())
    next(earlier)
    rerouted(bridge, ALL)
    with pytest.raises(UsageError, match="another replay for bridge 'b1' took over"):
        list(earlier)
    assert copies(bridge).total() == 500


def test_a_large_copy_says_its_size_as_the_router_measures_it() -> None:
    large = Record(b"k", b"x" * 300_000, (("jmsbridge.size", b"300015"),))
    copy = copy_of(LocatedRecord(Position("j", 0, 1), 0, large))
    *rest, (name, size) = copy.headers
    assert (name, size) == ("jmsbridge.size", str(replace(copy, headers=tuple(rest)).size).encode())
