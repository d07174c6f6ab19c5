"""What counts as the same message, and where the tail of the journal begins; without any server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.delivery.deduplication.clean_ends import CleanEnds
from engine.delivery.deduplication.out_of_order_detector import OutOfOrderDetector
from engine.delivery.deduplication.seen_messages import SeenMessages, digest
from engine.kafka.reader import LocatedRecord, Position
from engine.message import BodyType, Message, Record
from engine.rerouting.replay import copy_of
from routes.properties import JmsType, Property

FIELDS = {"JMSMessageID": "ID:1", "JMSTimestamp": "1700000000000", "JMSDestination": "queue:orders"}
ORDER = Message(b"ten bolts", headers=FIELDS, properties={"region": Property("emea", JmsType.STRING)}, source="src")
UNDATED = replace(ORDER, headers={"JMSMessageID": "ID:1", "JMSDestination": "queue:orders"})


def redelivered(message: Message, count: int = 2) -> Message:
    told = {"JMSRedelivered": "true", "JMSXDeliveryCount": str(count)}
    return replace(message, headers={**message.headers, **told})


def first(message: Message) -> Message:
    return replace(message, headers={**message.headers, "JMSRedelivered": "false", "JMSXDeliveryCount": "1"})


def known(*messages: Message, most: int = 100) -> SeenMessages:
    found = SeenMessages(most)
    for message in messages:
        found.add(message.headers["JMSMessageID"], message.to_record())
    return found


def test_a_message_of_the_journal_is_known_once_for_each_record() -> None:
    journal = known(first(ORDER))

    assert "ID:1" in journal.ids
    assert journal.take(redelivered(ORDER).to_record())
    assert not journal.take(redelivered(ORDER).to_record())
    assert not journal


def test_a_broker_that_forgot_that_it_delivered_is_believed_if_the_message_has_a_time() -> None:
    assert known(first(ORDER)).take(first(ORDER).to_record())
    assert known(first(ORDER)).take(ORDER.to_record())


def test_equal_messages_of_one_id_without_a_time_are_different_ones_unless_the_broker_says_again() -> None:
    assert not known(first(UNDATED)).take(first(UNDATED).to_record())
    assert known(first(UNDATED)).take(redelivered(UNDATED).to_record())


def test_a_sender_that_uses_an_id_twice_is_not_believed_without_the_brokers_word() -> None:
    journal = known(first(ORDER), first(ORDER))

    assert not journal.take(first(ORDER).to_record())
    assert [journal.take(redelivered(ORDER).to_record()) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    "other",
    [
        replace(ORDER, body=b"ten nuts"),
        replace(ORDER, body_type=BodyType.BYTES),
        replace(ORDER, headers={**FIELDS, "JMSTimestamp": "1700000000001"}),
        replace(ORDER, headers={**FIELDS, "JMSCorrelationID": "c"}),
        replace(ORDER, properties={"region": Property("apac", JmsType.STRING)}),
        replace(ORDER, properties={"region": Property("emea")}),
        replace(ORDER, properties={}),
        replace(ORDER, origins=("b2",)),
    ],
    ids=["body", "kind of body", "time", "field", "property", "type", "no property", "origin"],
)
def test_one_id_with_anything_else_is_another_message(other: Message) -> None:
    assert not known(ORDER).take(redelivered(other).to_record())


def test_what_tells_of_a_delivery_does_not_tell_messages_apart() -> None:
    later = redelivered(replace(ORDER, headers={**FIELDS, "JMSExpiration": "1700000099999"}), 7)
    reordered = replace(later, headers=dict(reversed(later.headers.items())))

    assert digest(ORDER.to_record()) == digest(later.to_record()) == digest(reordered.to_record())


def test_large_messages_are_compared_without_the_size_that_their_record_notes() -> None:
    large = replace(ORDER, body=b"x" * 300_000)

    assert digest(large.to_record()) == digest(redelivered(large, 1000).to_record())


def test_more_than_it_can_hold_is_forgotten_from_the_oldest_on() -> None:
    messages = [replace(ORDER, headers={**FIELDS, "JMSMessageID": f"ID:{n}"}) for n in range(250)]
    journal = known(*messages, most=100)

    taken = [journal.take(redelivered(message).to_record()) for message in messages]

    assert not any(taken[:100])
    assert all(taken[150:])
    journal.clear()
    assert not journal
    assert "ID:249" not in journal.ids


headers = st.dictionaries(st.text(max_size=3), st.binary(max_size=3), max_size=3)


@given(st.binary(max_size=4), headers, st.binary(max_size=4), headers)
def test_digests_are_equal_only_for_equal_content(
    body: bytes, some: dict[str, bytes], other_body: bytes, others: dict[str, bytes]
) -> None:
    one = Record(None, body, tuple(some.items()))
    two = Record(None, other_body, tuple(others.items()))

    assert (digest(one) == digest(two)) == (body == other_body and some == others)


def test_an_end_counts_when_all_that_was_received_before_is_acknowledged_and_nobody_has_missed_that() -> None:
    ends = CleanEnds(doubt_seconds=30)
    ends.mark({0: 17}, received=5)
    ends.acknowledged(4, now=1)
    assert not ends.wants_ends
    ends.acknowledged(5, now=10)

    assert ends.wants_ends
    assert ends.due(39.9) is None
    assert ends.due(40) == {0: 17}
    assert ends.due(41) is None


def test_the_latest_end_of_those_that_count_is_reported() -> None:
    ends = CleanEnds(doubt_seconds=30)
    for now in (0, 5, 10, 15):
        ends.mark({0: now}, received=now)
        ends.acknowledged(now, now)

    assert ends.due(41) == {0: 10}
    assert ends.due(100) == {0: 15}


@given(st.lists(st.sampled_from(["receive", "acknowledge", "mark", "later", "due"]), max_size=60))
def test_no_position_ever_passes_what_is_not_acknowledged(steps: list[str]) -> None:
    ends, now, received, acknowledged = CleanEnds(doubt_seconds=2), 0.0, 0, 0
    acknowledged_at: list[float] = []
    for step in steps:
        if step == "receive":
            # Its record is the next of the journal.
            received += 1
        elif step == "acknowledge" and acknowledged < received:
            acknowledged += 1
            acknowledged_at.append(now)
            ends.acknowledged(acknowledged, now)
        elif step == "mark" and ends.wants_ends:
            ends.mark({0: received}, received)
            ends.acknowledged(acknowledged, now)
        elif step == "later":
            now += 1
        elif step == "due" and (found := ends.due(now)) is not None:
            assert len(acknowledged_at) >= found[0]
            assert all(at + 2 <= now for at in acknowledged_at[: found[0]])


def test_a_message_that_was_sent_before_others_of_its_destination_is_late() -> None:
    order = OutOfOrderDetector()

    def late(destination: str, sent: str | None) -> bool:
        return order.is_late({"JMSDestination": destination} | ({} if sent is None else {"JMSTimestamp": sent}))

    assert not late("queue:a", "999")
    assert not late("queue:a", "1000")
    assert not late("queue:a", "1000")
    assert late("queue:a", "999")
    assert late("queue:a", "999")
    assert not late("queue:b", "5")
    assert not late("queue:a", None)
    assert not any(late(f"queue:{n}", "1") for n in range(5000))


def test_a_span_that_the_bridge_put_on_a_record_makes_no_other_message_of_it() -> None:
    parents = [{"traceparent": f"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b{digit}-01"} for digit in "67"]
    journal = SeenMessages()
    journal.add("ID:1", first(ORDER).to_record(parents[0]))

    assert journal.take(redelivered(ORDER).to_record())
    assert digest(ORDER.to_record(parents[0])) == digest(ORDER.to_record({**parents[1], "tracestate": "a=1"}))


def test_messages_of_different_traces_are_different_ones() -> None:
    others = [replace(ORDER, properties={"traceparent": Property(text)}) for text in ("a", "b")]

    assert digest(others[0].to_record()) != digest(others[1].to_record())


def test_a_copy_that_a_replay_wrote_is_no_delivery_of_the_message() -> None:
    record = first(ORDER).to_record()
    copy = copy_of(LocatedRecord(Position("journal", 0, 7), 0, record))
    assert digest(copy) != digest(record)
    journal = known(first(ORDER))
    journal.add("ID:1", copy)
    assert journal.take(redelivered(ORDER).to_record())
    assert not journal.take(redelivered(ORDER).to_record())
