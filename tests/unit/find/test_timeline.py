"""Timelines of messages, told from each of their records, with topics in memory in the place of Kafka."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.message import timeline_json, timeline_text
from engine.dead_letters.audit import Action, Actor, AuditEntry
from engine.dead_letters.letter import DeadLetter, original
from engine.errors import UsageError
from engine.explain.explanation import published_headers
from engine.find.timeline import timeline
from engine.kafka.partitions import partition_of
from engine.kafka.reader import Position
from engine.message import BodyType, Message, Record
from engine.rerouting.replay import copy_of
from engine.router.generation import Start
from routes.config import loads
from routes.model import HeaderStyle
from routes.properties import Property
from routes.targets import REPLY_TO
from tests.commands import finished
from tests.unit.find.memory import CONFIGURATION, MemoryKafka

if TYPE_CHECKING:
    from pathlib import Path

    from engine.find.timeline import Timeline, TimelineEvent

NOON = 1_800_000_000_000
SINK_TOPIC = "jms-bridge.sink.nats"


class Story(MemoryKafka):
    """A bridge that has routed one message, step by step."""

    def __init__(self, more: str = "") -> None:
        super().__init__()
        self.config = loads(CONFIGURATION + more)
        self.sink = next(each for each in self.config.sinks if each.name == "nats")

    def journal(self, time_ms: int = NOON, offset: int | None = None, **headers: str) -> Position:
        fields = {
            "JMSMessageID": "ID:1",
            "JMSDestination": "queue:orders",
            "JMSCorrelationID": "42",
            "JMSTimestamp": str(time_ms - 5),
        }
        return self.add(
            "journal", Message(b"body", BodyType.TEXT, fields | headers, {}, "jms").to_record(), time_ms, 0, offset
        )

    def generation(self, sequence: int, position: int, routes: str | None = None, after: str | None = None) -> None:
        """The note about the start of a run of the router."""
        start = Start(
            "journal",
            "id",
            {0: position},
            {},
            "b1",
            CONFIGURATION if routes is None else routes,
            f"run {sequence}",
            f"run {sequence - 1}" if after is None else after,
            sequence=sequence,
        )
        note = {"version": 1, "time_ms": NOON - 1000, **asdict(start), "host": "h", "path": "p"}
        name = f"b1 journal kept {sequence % 32}"
        for key in (name, "b1 journal start"):
            record = Record(key.encode(), json.dumps(note).encode(), ())
            self.add(self.config.journal.state_topic, record, NOON - 1000)

    def noted(self, sequence: int, position: int) -> None:
        """The note about the progress of a run."""
        committed = {"positions": {"0": position}, "time_ms": NOON}
        note = {"version": 1, "time_ms": NOON, "run": f"run {sequence}", "committed": committed, "stopped": None}
        self.add(self.config.journal.state_topic, Record(b"b1 journal place", json.dumps(note).encode(), ()), NOON)

    def publish(self, topic: str, at: Position, number: int = 0, key: str = "42", after_ms: int = 10) -> Position:
        """A copy of the message in a topic, as the router writes it."""
        (journaled,) = (each for each in self.topics["journal"][0] if each.position == at)
        place = f"{at}:{number}" if number else str(at)
        headers = published_headers(journaled.record, HeaderStyle.TEXT, "b1", place)
        if topic == self.sink.topic:
            headers += (("jmsbridge.destination", b"orders"), ("jmsbridge.route", b"orders"))
        record = Record(key.encode(), journaled.record.value, headers)
        return self.add(topic, record, journaled.time_ms + after_ms, partition_of(key.encode(), self.partitions))

    def bury(
        self, at: Position, number: int = 0, stage: str = "key", after_ms: int = 10, topic: str = "dead"
    ) -> Position:
        (journaled,) = (each for each in self.topics["journal"][0] if each.position == at)
        own = {
            "jmsbridge.origin": "b1",
            "jmsbridge.position": f"{at}:{number}" if number else str(at),
            "jmsbridge.reason": "refused" if stage.startswith("sink") else "key-invalid",
            "jmsbridge.route": "orders",
            "__connect.errors.stage": stage,
            "__connect.errors.exception.message": "because",
        }
        headers = (*journaled.record.headers, *((name, text.encode()) for name, text in own.items()))
        return self.add(topic, replace(journaled.record, headers=headers), journaled.time_ms + after_ms)

    def settle(self, letter: Position, action: Action, copy: Position | None = None, journal: str = "") -> None:
        time = "2027-01-15T08:00:01.000Z"
        actor = Actor("alice", "host-1", "dlt replay --all")
        entry = AuditEntry(letter, action, time, str(copy or ""), journal=journal, actor=actor)
        audit = self.config.letter_topics[1]
        self.add(audit, Record(str(letter).encode(), entry.to_json().encode(), ()), NOON + 1000)

    def replay(self, letter: Position, time_ms: int) -> Position:
        (located,) = (each for each in self.topics["dead"][0] if each.position == letter)
        found = DeadLetter(located)
        copy = self.add("journal", original(found, "b1"), time_ms)
        self.settle(letter, Action.REPLAYED, copy, found.journal_position)
        return copy

    def route_again(self, at: Position, time_ms: int) -> Position:
        """A journal record replayed, and the note about it."""
        (located,) = (each for each in self.topics["journal"][0] if each.position == at)
        copy = self.add("journal", copy_of(located), time_ms)
        self.settle(at, Action.ROUTED_AGAIN, copy, str(at))
        return copy

    def of(self, position: Position) -> Timeline:
        return timeline(self.config, position)


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    return prepared(monkeypatch)


def prepared(monkeypatch: pytest.MonkeyPatch, more: str = "") -> Story:
    made = Story(more)
    made.patch(monkeypatch)
    made.generation(1, 0, after="")
    made.add("dead", Record(None, b"", ()), NOON - 600_000)
    return made


def names(found: Timeline) -> list[str]:
    return [event.what for event in found.events]


def only(found: Timeline, what: str) -> TimelineEvent:
    (event,) = (event for event in found.events if event.what == what)
    return event


def test_a_message_with_two_destinations_is_followed_from_each_of_its_records(story: Story) -> None:
    at = story.journal()
    kafka = story.publish("orders", at)
    sink = story.publish(story.sink.topic, at, 1, after_ms=20)
    told = {position: story.of(position) for position in (at, kafka, sink)}
    assert {found.events for found in told.values()} == {told[at].events}
    assert {position: found.record.position for position, found in told.items()} == {each: each for each in told}
    assert names(told[at]) == ["sent", "journaled", "routed", "published", "published", "waiting"]
    assert [event.record for event in told[at].events if event.what == "published"] == [kafka, sink]
    assert [event.at for event in told[at].events] == [NOON - 5, NOON, None, NOON + 10, NOON + 20, None]
    routed = only(told[at], "routed").detail
    assert "route 'orders' takes it: msg.address==orders" in routed
    assert "1 other route was tried and did not" in routed
    assert "by the routes in force from 2027-" in routed
    assert only(told[at], "waiting").detail.startswith("for sink 'nats', which has confirmed nothing")


def test_a_sink_that_has_confirmed_the_record_has_delivered_it(story: Story) -> None:
    at = story.journal()
    story.publish("orders", at)
    sink = story.publish(story.sink.topic, at, 1)
    story.committed["b1.sink.nats", story.sink.topic, sink.partition] = sink.offset + 1
    delivered = only(story.of(at), "delivered")
    assert (delivered.at, delivered.detail.startswith("by sink 'nats'; the time is not known")) == (None, True)


def test_records_before_it_are_counted_while_a_sink_is_behind(story: Story) -> None:
    at = story.journal()
    story.publish("orders", at)
    for _ in range(3):
        story.publish(story.sink.topic, at, 7)
    sink = story.publish(story.sink.topic, at, 1)
    story.committed["b1.sink.nats", story.sink.topic, sink.partition] = 1
    assert only(story.of(at), "waiting").detail == "for sink 'nats': 2 records are before it"


def test_a_message_that_a_sink_refused_is_a_dead_letter_of_that_sink(story: Story) -> None:
    at = story.journal()
    story.publish("orders", at)
    sink = story.publish(story.sink.topic, at, 1)
    letter = story.bury(at, 1, "sink nats", after_ms=500)
    story.committed["b1.sink.nats", story.sink.topic, sink.partition] = sink.offset + 1
    for position in (at, sink, letter):
        found = story.of(position)
        assert names(found) == ["sent", "journaled", "routed", "published", "published", "dead letter", "open"]
        assert "sink 'nats' could not deliver it" in only(found, "dead letter").detail


def test_a_replayed_message_is_followed_from_the_first_failure_to_its_destination(story: Story) -> None:
    at = story.journal()
    letters = [story.bury(at), story.bury(at, 1)]
    story.settle(letters[1], Action.DISCARDED, journal=f"{at}:1")
    copy = story.replay(letters[0], NOON + 2000)
    kafka = story.publish("orders", copy)
    sink = story.publish(story.sink.topic, copy, 1)
    told = {position: story.of(position) for position in (at, *letters, copy, kafka, sink)}
    assert {found.events for found in told.values()} == {told[at].events}
    assert names(told[at]) == [
        "sent",
        "journaled",
        "routed",
        "dead letter",
        "dead letter",
        "replayed",
        "discarded",
        "journaled",
        "routed",
        "published",
        "published",
        "waiting",
    ]
    replayed = only(told[at], "replayed")
    assert replayed.record == copy
    assert replayed.detail == "by alice on host-1, with: dlt replay --all"
    assert "by replay 1 of a dead letter" in [e for e in told[at].events if e.what == "journaled"][1].detail


def test_a_message_that_no_route_took_is_followed_to_the_copy_that_was_routed_again(story: Story) -> None:
    at = story.journal(JMSDestination="queue:nobody")
    story.noted(1, 100)
    copy = story.route_again(at, NOON + 2000)
    letter = story.bury(copy)
    again = story.replay(letter, NOON + 4000)
    told = {position: story.of(position) for position in (at, copy, letter, again)}
    assert {found.events for found in told.values()} == {told[at].events}
    assert names(told[at])[:4] == ["sent", "journaled", "not routed", "routed again"]
    assert only(told[at], "routed again").record == copy
    assert [event.record for event in told[at].events if event.what == "journaled"] == [at, copy, again]


def test_a_letter_that_the_bridge_retries_says_when(monkeypatch: pytest.MonkeyPatch) -> None:
    story = prepared(monkeypatch, "routing.retry=5s, 1m\n")
    at = story.journal()
    letter = story.bury(at)
    story.bury(at, 1)
    first, _ = (event for event in story.of(letter).events if event.what == "open")
    assert first.detail == (
        "the bridge replays it by itself after 2027-01-15T08:00:05.010Z (retry 1 of 2, routing.retry)"
    )


def test_a_message_in_quarantine_is_followed_from_there(story: Story) -> None:
    at = story.journal()
    letter = story.bury(at)
    story.bury(at, 1)
    quarantine = story.config.letter_topics[2]
    copy = story.bury(at, topic=quarantine)
    story.settle(letter, Action.QUARANTINED, copy, str(at))
    for position in (at, letter, copy):
        found = story.of(position)
        assert only(found, "quarantined").record == copy
        assert any(event.detail.startswith("the message in quarantine is neither") for event in found.events)


def test_routes_of_then_explain_the_message_and_those_of_today_are_told_if_they_differ(story: Story) -> None:
    then = CONFIGURATION.replace("orders, nats:orders", "orders-then")
    story.topics.clear()
    story.generation(1, 0, then, after="")
    at = story.journal(offset=10)
    kafka = story.publish("orders-then", at)
    story.add("dead", Record(None, b"", ()), NOON)
    story.generation(2, 11)
    found = story.of(at)
    assert only(found, "published").record == kafka
    today = only(found, "today").detail
    assert "kafka:orders by route 'orders', key 42" in today
    assert "nats:orders" in today
    # The one behind a generation that is not noted any more.
    story.generation(4, 20)
    assert "those of then are not known" in only(story.of(story.journal(offset=15)), "routed").detail


def test_a_message_that_the_router_has_not_come_to_waits(story: Story) -> None:
    story.journal()
    at = story.journal()
    story.noted(1, 0)
    found = story.of(at)
    assert names(found) == ["sent", "journaled", "routed", "waiting"]
    assert "at offset 0 of partition 0, 1 before this message" in only(found, "waiting").detail


def test_a_record_that_is_not_found_is_told_with_the_extent_of_the_search(story: Story) -> None:
    at = story.journal()
    story.noted(1, at.offset + 1)
    story.publish("orders", at, 7)
    missing = [event.detail for event in story.of(at).events if event.what == "not found"]
    assert [text.partition(": not found ")[2] for text in missing] == [
        "among 1 records of 'orders' from 2027-01-15T07:59:00.000Z on, to the end",
        f"there is no topic '{story.sink.topic}'",
    ]


@pytest.mark.parametrize("others", [b"journal:1:%d", b"other:0:%d", b""])
def test_a_record_that_a_late_router_published_is_found_far_behind_its_time(story: Story, others: bytes) -> None:
    for number in range(200):
        story.journal(offset=396 * number)
    at = story.topics["journal"][0][-2].position
    partition = partition_of(b"42", story.partitions)
    for offset in range(0, 120_000, 2):
        place = b"journal:0:%d" % offset if offset % 6 == 0 else others % offset if others else b""
        found = Record(b"42", b"", (("jmsbridge.position", place),))
        story.add("orders", found, NOON + 7_200_000, partition, offset=offset)
    published = only(story.of(at), "published")
    assert published.record == Position("orders", partition, at.offset)
    assert story.read["orders"] < 20_000


def test_a_message_without_a_route_is_not_routed(story: Story) -> None:
    story.noted(1, 1)
    found = story.of(story.journal(JMSDestination="queue:other"))
    assert "waiting" not in names(found)
    assert only(found, "not routed").detail.startswith("no route takes it; counted as unmatched (by the routes")


def test_a_reply_is_found_in_the_journal(story: Story) -> None:
    at = story.journal(JMSReplyTo="queue:answers")
    story.publish("orders", at)
    story.publish(story.sink.topic, at, 1)
    assert "the sink waits" in only(story.of(at), "no reply").detail
    partition = partition_of(b"42", story.partitions)
    for asked_from in ("queue:of.another", "queue:answers"):
        to = {REPLY_TO: Property(asked_from)}
        answer = Message(b"yes", BodyType.TEXT, {"JMSCorrelationID": "42"}, to, "nats.replies").to_record()
        reply = story.add("journal", answer, NOON + 300, partition)
    found = only(story.of(at), "reply")
    assert (found.at, found.record) == (NOON + 300, reply)
    request = only(story.of(reply), "request")
    assert (request.at, request.record) == (NOON, at)
    story.topics["journal"][0].remove(next(each for each in story.topics["journal"][0] if each.position == at))
    assert "found among" in only(story.of(reply), "no request").detail


def test_what_the_journal_has_no_longer_is_said_and_not_guessed(story: Story) -> None:
    at = story.journal()
    kafka = story.publish("orders", at)
    story.topics["journal"] = {0: [], 1: []}
    found = story.of(kafka)
    assert names(found) == ["not known", "not known", "published"]
    assert found.events[-1].record == kafka
    assert "retention may have removed it" in found.events[0].detail


def test_a_dead_letter_stands_for_a_message_that_the_journal_has_no_longer(story: Story) -> None:
    at = story.journal()
    letter = story.bury(at)
    story.topics["journal"] = {0: [], 1: []}
    found = story.of(letter)
    assert "route 'orders' takes it" in only(found, "routed").detail
    assert only(found, "dead letter").record == letter


def test_dead_letters_that_may_be_missing_are_told(story: Story) -> None:
    at = story.journal()
    story.topics["dead"] = {0: [], 1: []}
    assert "not known" not in names(story.of(at))
    story.add("dead", Record(None, b"", ()), NOON + 5, offset=7)
    assert only(story.of(at), "not known").detail.endswith("retention has removed older ones")


def test_the_position_that_another_bridge_gave_to_a_message_is_not_mistaken_for_its_own(story: Story) -> None:
    story.journal()
    (first,) = story.topics["journal"][0]
    headers = (*first.record.headers, ("jmsbridge.origin", b"b0"), ("jmsbridge.position", b"journal:0:1:1"))
    at = story.add("journal", replace(first.record, headers=headers), NOON)
    assert names(story.of(at)) == ["sent", "journaled", "routed", "waiting"]


def test_more_replays_than_are_followed_are_told(story: Story) -> None:
    at = story.journal()
    for number in range(25):
        story.bury(at, 1)
        at = story.replay(story.bury(at), NOON + 1000 * (number + 1))
    assert [event.detail for event in story.of(Position("journal", 0, 0)).events if event.what == "not known"] == [
        "later replays: 20 are followed; jms-bridge message journal:0:21"
    ]


def test_a_dead_letter_of_a_source_was_never_in_the_journal(story: Story) -> None:
    record = Message(b"body", headers={"JMSMessageID": "ID:1"}, source="jms").to_record()
    headers = (*record.headers, ("jmsbridge.reason", b"too-large"), ("jmsbridge.route", b""))
    found = story.of(story.add("dead", replace(record, headers=headers), NOON))
    assert names(found) == ["sent", "not journaled", "dead letter", "open"]


def test_the_copy_that_another_program_made_of_a_record_is_told_from_the_record(story: Story) -> None:
    at = story.journal()
    kafka = story.publish("orders", at)
    copied = story.publish("orders", at)
    found = story.of(copied)
    assert (only(found, "published").record, only(found, "this record").record) == (kafka, copied)


def test_a_record_in_a_topic_that_the_routes_of_today_do_not_name_is_told(story: Story) -> None:
    story.topics[story.config.journal.state_topic] = {0: [], 1: []}
    at = story.journal()
    kafka = story.publish("former", at)
    found = only(story.of(kafka), "published")
    assert (found.record, found.detail) == (kafka, "to kafka:former, key 42")


def test_records_of_others_and_records_that_are_not_there_are_refused(story: Story) -> None:
    with pytest.raises(UsageError, match="has no valid header"):
        story.of(story.add("orders", Record(None, b"x", ()), NOON))
    with pytest.raises(UsageError, match="no such record"):
        story.of(Position("orders", 0, 17))


@pytest.mark.parametrize("text", [b"", b"x", b"journal:0", b"journal:0:1:x", b":0:1", b"a:b:0:1", b"\xff:0:1:1:1"])
def test_no_value_of_the_header_breaks_the_reading(story: Story, text: bytes) -> None:
    record = Record(None, b"", (("jmsbridge.position", text),))
    with pytest.raises(UsageError, match="has no valid header"):
        story.of(story.add("orders", record, NOON))


def test_the_trace_of_a_message_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    story = prepared(monkeypatch)
    story.config = loads(CONFIGURATION + "tracing.link=https://jaeger.example/trace/{trace-id}\n")
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    links = {f"00-{trace}-00f067aa0ba902b7-01": f"https://jaeger.example/trace/{trace}", "javascript:alert(1)": ""}
    for parent, link in links.items():
        at = story.add("journal", Record(None, b"", (("traceparent", parent.encode()),)), NOON)
        found = story.of(at)
        assert [event.link for event in found.events if event.what == "journaled"] == [link]
        assert (f"    {link}" in timeline_text(found)) is bool(link)
        journaled = [each for each in timeline_json(found)["events"] if each["what"] == "journaled"]
        assert journaled[0]["link"] == (link or None)


TEXTS = st.binary() | st.sampled_from(
    [b"journal:0:0", b"journal:0:1:1", b"dead:0:0", b"-1", b"9" * 18, b"9" * 5000, b"42"]
)
NAMES = st.sampled_from(
    [
        "jmsbridge.position",
        "jmsbridge.replays",
        "jmsbridge.reason",
        "jmsbridge.source",
        "jmsbridge.claim",
        "__connect.errors.stage",
        "jms.JMSTimestamp",
        "jms.JMSExpiration",
        "jms.JMSReplyTo",
        "jms.JMSDestination",
        "jms.JMSCorrelationID",
        "jms.JMSXDeliveryCount",
        "traceparent",
    ]
)
RECORDS = st.builds(
    Record, st.none() | st.binary(), st.none() | st.binary(), st.lists(st.tuples(NAMES, st.none() | TEXTS)).map(tuple)
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["journal", "orders", SINK_TOPIC, "dead", "dead.replayed"]), RECORDS), min_size=1
    )
)
def test_no_content_of_records_breaks_a_timeline(records: list[tuple[str, Record]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        story = prepared(monkeypatch)
        for topic, record in records:
            at = story.add(topic, record, NOON)
        try:
            found = story.of(at)
        except UsageError:
            return
        assert at in [event.record for event in found.events]
        assert timeline_text(found)
        assert timeline_json(found)


def test_lines_for_people_have_times_durations_and_eighty_columns(story: Story) -> None:
    at = story.journal()
    story.publish("orders", at)
    lines = timeline_text(story.of(at))
    assert lines[2] == "2027-01-15T08:00:00.000Z     +5 ms  journaled  journal:0:0"
    assert lines[3] == "    by source 'jms'"
    assert max(map(len, lines)) <= 80
    (event,) = (each for each in timeline_json(story.of(at))["events"] if each["what"] == "published")
    assert (event["after_ms"], event["record"].partition(":")[0]) == (10, "orders")


def test_the_command_takes_a_position_with_or_without_a_topic(
    story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(CONFIGURATION)
    story.journal()
    for position in ("0:0", "journal:0:0"):
        code, out, _ = finished(capsys, "message", position, "--json", "-c", file)
        found = json.loads(out)
        assert (code, found["offset"], found["body"], len(found["events"])) == (0, 0, "body", 4)
    for wrong, text in (("x", "is not a position"), ("journal:0:9", "no such record"), ("gone:0:0", "does not exist")):
        code, _, err = finished(capsys, "message", wrong, "-c", file)
        assert (code, text in err) == (UsageError.exit_code, True)


def test_control_characters_of_a_message_do_not_reach_the_terminal(story: Story) -> None:
    at = story.journal(JMSMessageID="ID:\x1b[31m")
    assert not any("\x1b" in line for line in timeline_text(story.of(at)))
