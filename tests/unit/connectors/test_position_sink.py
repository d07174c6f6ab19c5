"""Sinks that keep their position at the broker, with a broker that keeps transactions in memory."""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.connectors.base import Exclusive, NotConnectedError, Outcome, Outgoing
from engine.connectors.position_seals import PositionSeals
from engine.connectors.position_sink import PositionMessage, PositionSink
from engine.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Connect = Callable[..., tuple[PositionSink, "Connection"]]

BEGUN_MS = 1_700_000_000_000


class Broker:
    """What is committed, and what connections hold."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sent: list[str] = []
        self.positions: list[tuple[str, str]] = []
        self.held: dict[int, tuple[str, str]] = {}
        self.tokens = 0

    def given(self, name: str) -> tuple[int, str] | None:
        """A position of that name which no connection holds, with its token."""
        for each in self.positions:
            if each[0] == name:
                self.positions.remove(each)
                self.tokens += 1
                self.held[self.tokens] = each
                return self.tokens, each[1]
        return None


class Connection:
    """A `TransactedSink` at that broker, which refuses bodies of `bad`."""

    most_under_way = 10
    settle_seconds = 7.0
    address = "memory"

    def __init__(self, broker: Broker, bad: Iterable[str] = (), *, spoils: bool = True) -> None:
        self.broker = broker
        self.bad, self.spoils = set(bad), spoils
        self.is_silent = False
        self.lost: str | None = None
        self._told: list[Outcome] = []
        self._watched: list[str] = []
        self._tokens: list[int] = []
        self._forget()

    def _forget(self) -> None:
        self._messages: list[str] = []
        self._replaced: list[tuple[Sequence[int], str, str]] = []
        self._is_spoilt = False

    def connect(self) -> None:
        self.close()
        self.lost = None

    def close(self) -> None:
        self._forget()
        self._watched, self._told = [], []
        for token in self._tokens:
            if token in self.broker.held:
                self.broker.positions.append(self.broker.held.pop(token))
        self._tokens = []

    def begin(self, number: int) -> None:
        assert not self._messages
        assert not self._replaced
        self._told.append(Outcome(number))

    def watch(self, name: str) -> None:
        self._watched.append(name)

    def arrived(self) -> Sequence[PositionMessage]:
        found = []
        for name in self._watched:
            while (given := self.broker.given(name)) is not None:
                self._tokens.append(given[0])
                found.append(PositionMessage(name, given[1], given[0]))
        return found

    def send(self, messages: Sequence[Outgoing]) -> None:
        for each in messages:
            body = each.message.body.decode()
            if body in self.bad:
                self._is_spoilt = self._is_spoilt or self.spoils
                self._told.append(Outcome(each.number, "it is bad"))
            else:
                self._messages.append(body)
                self._told.append(Outcome(each.number))

    def replace(self, number: int, tokens: Sequence[Any], name: str, text: str) -> None:
        self._check()
        self._replaced.append((tokens, name, text))
        self._told.append(Outcome(number))

    def commit(self, number: int) -> None:
        self._check()
        self.broker.sent += self._messages
        for tokens, name, text in self._replaced:
            for token in tokens:
                del self.broker.held[token]
            self.broker.positions.append((name, text))
        self._forget()
        self._told.append(Outcome(number))

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        self.broker.now += timeout_seconds
        if self.lost is not None:
            raise NotConnectedError(self.lost)
        if self.is_silent:
            return []
        told, self._told = self._told, []
        return told

    def _check(self) -> None:
        if self._is_spoilt:
            raise NotConnectedError("undone")


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def connected(broker: Broker) -> Connect:
    def make(bad: Iterable[str] = (), **more: bool) -> tuple[PositionSink, Connection]:
        connection = Connection(broker, bad, **more)
        sink = PositionSink(connection, "b/out", lambda: broker.now)
        sink.connect()
        return sink, connection

    return make


def records(offsets: Iterable[int], partition: int = 0, later_ms: int = 0) -> list[Outgoing]:
    return [
        Outgoing(
            1000 * partition + offset,
            Message(f"{partition}:{offset}".encode()),
            "queue/a",
            "id",
            timestamp_ms=BEGUN_MS + offset + later_ms,
            partition=partition,
            offset=offset,
        )
        for offset in offsets
    ]


def told(sink: PositionSink, count: int, steps: int = 1000) -> dict[int, str | None]:
    found: dict[int, str | None] = {}
    for _ in range(steps):
        found |= {each.number: each.refusal for each in sink.outcomes(0.1)}
        if len(found) == count:
            break
    return found


def give(sink: PositionSink, messages: Sequence[Outgoing]) -> dict[int, str | None]:
    sink.send(messages)
    found = told(sink, len(messages))
    assert found.keys() == {each.number for each in messages}
    return found


def bodies(offsets: Iterable[int], partition: int = 0) -> list[str]:
    return [f"{partition}:{offset}" for offset in offsets]


def test_what_one_connection_has_sent_the_next_one_leaves_out(broker: Broker, connected: Connect) -> None:
    first, _ = connected()
    give(first, [*records(range(5)), *records(range(3), partition=1)])
    first.close()
    second, _ = connected()
    assert give(second, records(range(3, 8))) == dict.fromkeys(range(3, 8))
    give(second, records(range(5), partition=1))
    assert broker.sent == [*bodies(range(5)), *bodies(range(3), 1), *bodies(range(5, 8)), *bodies(range(3, 5), 1)]
    second.close()
    assert sorted(name for name, _ in broker.positions) == ["b/out/0", "b/out/1"]


def test_a_transaction_that_a_connection_leaves_open_is_sent_by_the_next_one(
    broker: Broker, connected: Connect
) -> None:
    first, connection = connected()
    give(first, records(range(2)))
    first.send(records(range(2, 5)))
    connection.is_silent = True
    assert told(first, 3, steps=10) == {}
    assert broker.sent == bodies(range(2))
    first.close()
    second, _ = connected()
    give(second, records(range(2, 5)))
    assert broker.sent == bodies(range(5))


def test_a_large_number_of_messages_goes_in_several_transactions(broker: Broker, connected: Connect) -> None:
    sink, _ = connected()
    sink.send(records(range(800)))
    found = told(sink, 500)
    assert len(found) == 500
    assert broker.sent == bodies(range(500))
    assert len(told(sink, 300)) == 300
    assert broker.sent == bodies(range(800))


def test_a_topic_that_was_made_anew_is_sent_though_its_offsets_are_small(broker: Broker, connected: Connect) -> None:
    first, _ = connected()
    give(first, records(range(5)))
    first.close()
    second, _ = connected()
    give(second, records(range(3), later_ms=1000))
    assert len(broker.sent) == 8


@pytest.mark.parametrize("spoils", [True, False])
def test_a_refused_message_is_told_and_the_others_are_sent_once(
    broker: Broker, connected: Connect, *, spoils: bool
) -> None:
    sink, _ = connected(["0:1"], spoils=spoils)
    messages = records(range(3))
    sink.send(messages)
    if spoils:
        with pytest.raises(NotConnectedError, match="undone"):
            told(sink, 3)
        assert broker.sent == []
        sink.close()
        sink.connect()
        sink.send(messages)
    assert told(sink, 3) == {0: None, 1: "it is bad", 2: None}
    assert broker.sent == bodies([0, 2])


def test_a_message_that_was_refused_is_tried_again_when_it_comes_again(broker: Broker, connected: Connect) -> None:
    first, _ = connected(["0:1"], spoils=False)
    give(first, records(range(3)))
    first.close()
    second, _ = connected()
    assert give(second, records(range(1, 4))) == {1: None, 2: None, 3: None}
    assert broker.sent == bodies([0, 2, 1, 3])
    assert broker.positions == []
    second.close()
    assert broker.positions == [("b/out/0", f"3 {BEGUN_MS + 3}")]


def test_a_position_that_another_connection_holds_is_waited_for(broker: Broker, connected: Connect) -> None:
    first, _ = connected()
    give(first, records(range(2)))
    second, _ = connected()
    second.send(records(range(1, 3)))
    assert told(second, 2, steps=300) == {}
    first.close()
    assert told(second, 2) == {1: None, 2: None}
    assert broker.sent == bodies(range(3))


def test_a_partition_without_a_position_begins_after_a_wait(broker: Broker, connected: Connect) -> None:
    sink, _ = connected()
    began = broker.now
    give(sink, records([7]))
    assert 45 <= broker.now - began < 60
    first, _ = connected()
    began = broker.now
    give(first, records([0], partition=1))
    assert broker.now - began < 5


def test_a_position_that_another_connection_moves_ends_the_connection(broker: Broker, connected: Connect) -> None:
    sink, _ = connected()
    give(sink, records([0]))
    broker.positions.append(("b/out/0", "9 9"))
    sink.send(records([1]))
    with pytest.raises(NotConnectedError, match="another connection has moved the position b/out/0"):
        told(sink, 1)


def test_several_positions_of_a_partition_become_one(broker: Broker, connected: Connect) -> None:
    broker.positions += [("b/out/0", "2 1700000000009"), ("b/out/0", "4 1700000000004 1")]
    sink, _ = connected()
    give(sink, records(range(6)))
    assert broker.sent == bodies([1, 5])
    sink.close()
    assert broker.positions == [("b/out/0", "5 1700000000009")]


HOSTILE = [
    "hello",
    "",
    "9223372036854775807 9223372036854775807",
    "6 9223372036854775807",
    "1e9 1",
    "5",
    "5 6 -1",
    "٣ ٣",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_message_of_others_in_the_position_queue_is_left_out_and_removed(
    broker: Broker, connected: Connect, text: str
) -> None:
    broker.positions += [("b/out/0", text), ("b/out/0", "1 1700000000009")]
    sink, _ = connected()
    give(sink, [replace(each, end=6) for each in records(range(6))])
    assert broker.sent == bodies([2, 3, 4, 5])
    sink.close()
    assert broker.positions == [("b/out/0", "5 1700000000009")]


def test_a_position_is_believed_up_to_the_greatest_end_that_was_ever_known(broker: Broker, connected: Connect) -> None:
    # The first message is sent again with the end that was known when it was taken.
    broker.positions.append(("b/out/0", "4 1700000000009"))
    sink, _ = connected()
    ends = [3, 3, 3, 6, 6, 6]
    give(sink, [replace(each, end=end) for each, end in zip(records(range(6)), ends, strict=True)])
    assert broker.sent == bodies([5])


def test_a_broker_that_goes_on_no_more_is_noticed(connected: Connect) -> None:
    sink, connection = connected()
    give(sink, records([0]))
    sink.send(records([1]))
    connection.is_silent = True
    with pytest.raises(NotConnectedError, match="has not gone on for 60 s in a transaction"):
        told(sink, 1)


def test_a_message_that_is_from_no_topic_leaves_the_positions_alone(broker: Broker, connected: Connect) -> None:
    sink, _ = connected()
    assert give(sink, [Outgoing(1, Message(b"by hand"), "queue/a", "id")]) == {1: None}
    sink.close()
    assert broker.sent == ["by hand"]
    assert broker.positions == []


def test_results_that_are_known_are_told_before_a_loss(
    connected: Connect,
) -> None:
    sink, connection = connected()
    give(sink, records([0]))
    sink.send(records([0, 1]))
    connection.lost = "gone"
    assert [each.number for each in sink.outcomes(0)] == [0]
    with pytest.raises(NotConnectedError, match="gone"):
        sink.outcomes(0)


def test_another_worker_needs_the_end_of_the_connection(
    connected: Connect,
) -> None:
    sink, _ = connected()
    assert isinstance(sink, Exclusive)
    assert sink.holds_partitions


KEY, OTHER_KEY = b"k" * 32, b"o" * 32
LATE_MS = BEGUN_MS + 1_000_000


def sealing(broker: Broker, *keys: bytes) -> PositionSink:
    sink = PositionSink(Connection(broker), "b/out", lambda: broker.now, lambda: keys)
    sink.connect()
    return sink


FORGED = [
    f"4 {LATE_MS}",
    f"4 {LATE_MS} #",
    f"4 {LATE_MS} #{'0' * 32}",
    PositionSeals(lambda: (OTHER_KEY,)).sealed("b/out/0", f"4 {LATE_MS}"),
]


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("begins_at", [0, 2])
def test_a_forged_position_in_the_range_of_the_topic_loses_nothing(broker: Broker, forged: str, begins_at: int) -> None:
    if begins_at:
        first = sealing(broker, KEY)
        give(first, records(range(begins_at)))
        first.close()
    broker.positions.insert(0, ("b/out/0", forged))
    second = sealing(broker, KEY)
    give(second, [replace(each, end=6) for each in records(range(begins_at, 6))])
    assert broker.sent == bodies(range(6))
    second.close()
    expected = PositionSeals(lambda: (KEY,)).sealed("b/out/0", f"5 {BEGUN_MS + 5}")
    assert broker.positions == [("b/out/0", expected)]


def test_a_forged_position_neither_ends_nor_outlasts_a_wait_for_the_own_one(broker: Broker) -> None:
    first = sealing(broker, KEY)
    give(first, records(range(2)))
    broker.positions.append(("b/out/0", FORGED[0]))
    second = sealing(broker, KEY)
    second.send([replace(each, end=6) for each in records(range(2, 6))])
    assert told(second, 4, steps=100) == {}
    first.close()
    assert len(told(second, 4)) == 4
    assert broker.sent == bodies(range(6))


def test_a_forged_position_does_not_end_a_connection_that_works(broker: Broker) -> None:
    sink = sealing(broker, KEY)
    give(sink, records([0]))
    broker.positions.append(("b/out/0", FORGED[0]))
    give(sink, records([1]))
    give(sink, records([2]))
    sink.close()
    assert broker.sent == bodies(range(3))
    assert len(broker.positions) == 1


def test_a_position_of_an_older_version_counts_at_the_upgrade(broker: Broker) -> None:
    broker.positions.append(("b/out/0", f"4 {BEGUN_MS + 4}"))
    sink = sealing(broker, KEY)
    give(sink, records(range(2, 7)))
    assert broker.sent == bodies([5, 6])


def test_a_position_sealed_with_the_former_secret_counts_where_both_are_known(broker: Broker) -> None:
    first = sealing(broker, OTHER_KEY)
    give(first, records(range(3)))
    first.close()
    second = sealing(broker, KEY, OTHER_KEY)
    began = broker.now
    give(second, records(range(1, 4)))
    assert broker.sent == bodies(range(4))
    assert broker.now - began < 5


def test_the_seal_is_the_one_that_the_java_client_writes() -> None:
    sealed = PositionSeals(lambda: (bytes(range(32)),)).sealed("b/out/0", "4 9 1")
    expected = hmac.new(bytes(range(32)), b"b/out/0\n4 9 1", "sha256").hexdigest()[:32]
    assert sealed == f"4 9 1 #{expected}"
