"""Who gets which message of a sink that listens: turns, selectors, answers and clients that leave, without a socket."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from engine.connectors import expiry
from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.sections import VALUE, Sections, encode_sections
from engine.connectors.amqp.codec.values import AmqpMap, Described, Symbol, UInt, ULong
from engine.connectors.amqp.frames import PROTOCOL_HEADER, AmqpFrameParser, frame
from engine.connectors.amqp.performatives import Code, Role, Terminus, condition_of, field
from engine.connectors.amqp_listener.connection import ServerConnection
from engine.connectors.amqp_listener.sink import AmqpListenerSink
from engine.connectors.base import Outcome, Outgoing, RefusedError
from engine.connectors.endpoint import SystemEndpoint
from engine.message import Message
from routes.config import loads
from routes.properties import JmsType, Property
from tests.unit.clock import Clock

BASE = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:a
sink.l.type=amqp
sink.l.listen=amqp://127.0.0.1:5674
routes.r.in.include=TRUE
routes.r.out.topic=l:queue/a
"""


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def sink(clock: Clock) -> AmqpListenerSink:
    config = loads(BASE, Path())
    sink = AmqpListenerSink(SystemEndpoint.of(config, config.sinks[0]), 1)
    sink._queue._clock = clock
    return sink


class Client:
    """Receives, and answers as a test wants."""

    def __init__(self, sink: AmqpListenerSink, *, translates: bool = False, max_frame: int = 0) -> None:
        self.peer = ServerConnection(sink, "client", 0.0)
        self._parser = AmqpFrameParser()
        capabilities = performatives.symbols(["APACHE.ORG:SELECTOR"]) if translates else None
        most = UInt(max_frame) if max_frame else None
        opened = encode(Described(ULong(Code.OPEN), ["c", None, most, *[None] * 5, capabilities]))
        self.say(PROTOCOL_HEADER, opened, performatives.begin())

    def say(self, *bodies: bytes) -> list[tuple[int, list[Any]]]:
        self.peer.feed(b"".join(body if body == PROTOCOL_HEADER else frame(0, body) for body in bodies), 0.0)
        return self.heard()

    def heard(self) -> list[tuple[int, list[Any]]]:
        answer = bytes(self.peer.outgoing).removeprefix(PROTOCOL_HEADER)
        self.peer.outgoing.clear()
        return [performatives.read(body) for _, _, body in self._parser.feed(answer)]

    def attach(self, address: str = "a", selector: str | None = None, credit: int = 10, handle: int = 0) -> list[Any]:
        kind, _, name = address.rpartition(":")
        source = Terminus(name, kind or "queue", selector).source()
        target = Terminus("here", "queue").target()
        answers = self.say(performatives.attach(f"l{handle}", handle, Role.RECEIVER, source, target))
        return answers + self.flow(credit, handle=handle) if len(answers) == 1 else answers

    def flow(self, credit: int, *, count: int = 0, handle: int = 0, drain: bool = False) -> list[Any]:
        fields = [*map(UInt, (0, 1000, 0, 1000, handle, count, credit)), None, drain]
        return self.say(encode(Described(ULong(Code.FLOW), fields)))

    def got(self) -> list[int]:
        """Delivery ids that came."""
        return [fields[1] for code, fields in self.heard() if code == Code.TRANSFER]

    def declare(self) -> bytes:
        """Begins a transaction; the id."""
        answers = self._coordinator(Described(ULong(0x31), []))
        return bytes(next(fields[4].value[0] for code, fields in answers if code == Code.DISPOSITION))

    def discharge(self, transaction: bytes, *, fail: bool) -> None:
        self._coordinator(Described(ULong(0x32), [transaction, fail]))

    def _coordinator(self, request: Described) -> list[tuple[int, list[Any]]]:
        target, source = Described(ULong(0x30), []), Terminus("here", "queue").source()
        if 9 not in self.peer.sessions[0].links:
            self.say(performatives.attach("c", 9, Role.SENDER, source, target))
        head = performatives.transfer(9, 0, b"t", 0, more=False)
        return self.say(head + encode_sections(Sections(body=VALUE, content=request)))

    def answer(self, first: int, state: Described, last: int | None = None) -> None:
        self.say(performatives.disposition(Role.RECEIVER, first, first if last is None else last, state))


ACCEPTED = performatives.ACCEPTED
RELEASED = performatives.RELEASED
REJECTED = Described(ULong(0x25), [Described(ULong(0x1D), [Symbol("amqp:not-allowed"), "no"])])
FAILED = Described(ULong(0x27), [True])
UNDELIVERABLE = Described(ULong(0x27), [True, True])


def give(sink: AmqpListenerSink, *numbers: int, address: str = "queue/a") -> None:
    sink.send(
        [
            Outgoing(n, Message(str(n).encode(), properties={"n": Property(str(n), JmsType.INT)}), address, f"id-{n}")
            for n in numbers
        ]
    )


def known(sink: AmqpListenerSink) -> list[Outcome]:
    found, sink._queue.known = sink._queue.known, []
    return found


def give_expiring(sink: AmqpListenerSink, number: int, after_ms: int, address: str = "queue/a") -> None:
    headers = {"JMSExpiration": str(round(time.time() * 1000) + after_ms)}
    sink.send([Outgoing(number, Message(b"", headers=headers), address, f"id-{number}")])


def expire(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute passes."""
    late = time.time() + 60
    monkeypatch.setattr(expiry.time, "time", lambda: late)


def test_what_expires_while_it_waits_is_dropped_whether_or_not_there_is_a_receiver(
    sink: AmqpListenerSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_expiring(sink, 1, 1_000)
    give_expiring(sink, 2, 600_000)
    slow = Client(sink)
    slow.attach("topic:t", credit=0)
    give_expiring(sink, 3, 1_000, "topic/t")
    expire(monkeypatch)
    sink._queue.serve()
    assert sorted(known(sink), key=lambda each: each.number) == [Outcome(1, expired=True), Outcome(3, expired=True)]
    client = Client(sink)
    assert [code for code, _ in client.attach()].count(Code.TRANSFER) == 1
    slow.flow(1)
    assert slow.got() == []
    slow.peer.gone()
    assert known(sink) == []


@pytest.mark.parametrize("state", [RELEASED, FAILED, UNDELIVERABLE])
def test_what_a_client_gives_back_after_it_has_expired_is_dropped(
    sink: AmqpListenerSink, monkeypatch: pytest.MonkeyPatch, state: Described
) -> None:
    """Qpid JMS answers that an expired message is undeliverable here."""
    client = Client(sink)
    client.attach()
    give_expiring(sink, 1, 1_000)
    expire(monkeypatch)
    client.answer(*client.got(), state)
    assert known(sink) == [Outcome(1, expired=True)]
    assert client.got() == []


def test_messages_wait_for_a_receiver_and_go_as_far_as_its_credit(sink: AmqpListenerSink) -> None:
    give(sink, 1, 2, 3)
    client = Client(sink)
    assert [code for code, _ in client.attach(credit=2)] == [Code.ATTACH, Code.TRANSFER, Code.TRANSFER]
    assert sink.given == 2
    client.answer(0, ACCEPTED, 1)
    assert known(sink) == [Outcome(1), Outcome(2)]
    assert [code for code, _ in client.flow(1, count=2)] == [Code.TRANSFER]


def test_receivers_of_a_queue_take_turns(sink: AmqpListenerSink) -> None:
    clients = [Client(sink), Client(sink)]
    for client in clients:
        client.attach()
    give(sink, 1, 2)
    give(sink, 3)
    assert [len(client.got()) for client in clients] == [2, 1]


def test_all_receivers_of_a_topic_get_a_message_and_none_refuses_for_others(sink: AmqpListenerSink) -> None:
    clients = [Client(sink), Client(sink)]
    for client in clients:
        client.attach("topic:a", credit=1)
    give(sink, 1, address="topic/a")
    clients[0].answer(*clients[0].got(), REJECTED)
    assert known(sink) == []
    clients[1].answer(*clients[1].got(), ACCEPTED)
    assert known(sink) == [Outcome(1)]


def test_a_topics_message_that_cannot_be_encoded_again_stays_with_who_has_it(
    sink: AmqpListenerSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Client(sink), Client(sink)
    for client, credit in ((first, 1), (second, 0)):
        client.attach("topic:a", credit=credit)
    give(sink, 1, address="topic/a")
    (delivery,) = first.got()
    monkeypatch.setattr(sink._queue, "_encoded", refuse)
    second.flow(1)
    assert (second.got(), known(sink)) == ([], [])
    first.answer(delivery, ACCEPTED)
    assert known(sink) == [Outcome(1)]
    assert not sink._queue._held


def test_a_topics_message_that_cannot_be_encoded_for_any_receiver_is_refused(
    sink: AmqpListenerSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink._queue, "_encoded", refuse)
    for _ in range(2):
        Client(sink).attach("topic:a", credit=1)
    give(sink, 1, address="topic/a")
    assert known(sink) == [Outcome(1, "it cannot be encoded")]


def refuse(_: object) -> tuple[bytes, int]:
    raise RefusedError("it cannot be encoded")


def test_a_cleared_stock_has_nothing_left_to_do(sink: AmqpListenerSink) -> None:
    stock = sink._queue
    stock._undecided, stock._unvisited, stock._is_postponed = 1, 1, True
    stock.clear()
    assert (stock.given, stock.is_unfinished) == (0, False)


def test_a_topic_without_receivers_and_one_whose_receivers_leave_keep_nothing(sink: AmqpListenerSink) -> None:
    give(sink, 1, address="topic/a")
    assert known(sink) == [Outcome(1)]
    client = Client(sink)
    client.attach("topic:a", credit=1)
    give(sink, 2, 3, address="topic/a")
    client.peer.gone()
    assert sorted(each.number for each in known(sink)) == [2, 3]


@pytest.mark.parametrize(
    ("state", "refusal"),
    [
        (REJECTED, "the client says: no (amqp:not-allowed)"),
        (UNDELIVERABLE, "the client says that it cannot be delivered"),
    ],
)
def test_what_a_client_will_never_take_is_refused(sink: AmqpListenerSink, state: Described, refusal: str) -> None:
    client = Client(sink)
    client.attach()
    give(sink, 1)
    client.answer(*client.got(), state)
    assert known(sink) == [Outcome(1, refusal)]


@pytest.mark.parametrize(("state", "failed"), [(RELEASED, 0), (FAILED, 1)])
def test_what_is_given_back_comes_again(sink: AmqpListenerSink, state: Described, failed: int) -> None:
    client = Client(sink)
    client.attach()
    give(sink, 1)
    client.answer(*client.got(), state)
    sink._queue.serve()
    assert client.got() == [1]
    assert [held.failed for held in sink._queue._held.values()] == [failed]


def test_what_a_client_had_goes_to_another_in_its_order(sink: AmqpListenerSink) -> None:
    first, second = Client(sink), Client(sink)
    first.attach(credit=2)
    give(sink, 1, 2, 3)
    assert len(first.got()) == 2
    first.peer.gone()
    second.attach()
    assert [(held.outgoing.number, held.failed) for held in sink._queue._held.values()] == [(1, 1), (2, 1), (3, 0)]
    second.answer(0, ACCEPTED)
    assert known(sink) == [Outcome(1)]


def test_a_selector_passes_over_what_is_for_others(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    client.attach(selector="n > 1")
    give(sink, 1, 2)
    client.answer(*client.got(), ACCEPTED)
    assert known(sink) == [Outcome(2)]


def test_names_of_qpid_are_understood_from_a_client_that_says_so(sink: AmqpListenerSink) -> None:
    for translates, count in ((True, 1), (False, 0)):
        client = Client(sink, translates=translates)
        client.attach(f"{translates}", "amqp.priority = 4 OR n = 7")
        message = Message(b"x", headers={"JMSPriority": "4"})
        sink.send([Outgoing(count + 1, message, f"queue/{translates}", "id")])
        assert len(client.got()) == count


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (Terminus("a", "queue", "n >").source(), "amqp:invalid-field"),
        (Terminus("a", "topic", durable=True).source(), "amqp:not-implemented"),
        (Described(ULong(0x28), ["a", None, None, None, None, None, Symbol("copy")]), "amqp:not-implemented"),
        (Described(ULong(0x28), [None, None, None, None, True]), "amqp:not-implemented"),
        (Described(ULong(0x28), []), "amqp:invalid-field"),
    ],
)
def test_a_receiver_that_may_not_be_is_refused(sink: AmqpListenerSink, source: Described, name: str) -> None:
    client = Client(sink)
    target = Terminus("here", "queue").target()
    (_, fields), (_, why) = client.say(performatives.attach("l", 0, Role.RECEIVER, source, target))
    condition = condition_of(why[2])
    assert field(fields, 5) is None
    assert condition is not None
    assert condition.name == name


def test_a_filter_that_is_no_selector_chooses_nothing(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    filters = AmqpMap([(Symbol("no-local"), Described(Symbol("apache.org:no-local-filter:list"), []))])
    source = Described(ULong(0x28), ["a", *[None] * 6, filters])
    answers = client.say(performatives.attach("l", 0, Role.RECEIVER, source, Terminus("h", "queue").target()))
    assert [code for code, _ in answers] == [Code.ATTACH]


def test_who_drains_its_credit_gets_what_is_there_and_its_credit_back(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    client.attach(credit=0)
    give(sink, 1)
    answers = client.flow(5, drain=True)
    assert [code for code, _ in answers] == [Code.TRANSFER, Code.FLOW]
    assert answers[1][1][5:7] == [5, 0]


def test_an_address_that_is_none_is_refused(sink: AmqpListenerSink) -> None:
    give(sink, 1, address="nowhere")
    ((outcome),) = known(sink)
    assert outcome.refusal == "'nowhere' is not an address of a listener; expected queue/NAME or topic/NAME"


def within(transaction: bytes, outcome: Described) -> Described:
    return Described(ULong(0x34), [transaction, outcome])


def test_an_answer_in_a_transaction_counts_when_that_is_committed(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    client.attach()
    give(sink, 1, 2, 3)
    client.got()
    transaction = client.declare()
    client.answer(0, within(transaction, ACCEPTED), 1)
    client.answer(2, within(transaction, REJECTED))
    assert (known(sink), sink.given) == ([], 3)
    client.discharge(transaction, fail=False)
    assert known(sink) == [Outcome(1), Outcome(2), Outcome(3, "the client says: no (amqp:not-allowed)")]
    assert sink.given == 0


@pytest.mark.parametrize("leaves", [False, True])
def test_what_was_taken_in_a_transaction_that_is_rolled_back_comes_again_in_order(
    sink: AmqpListenerSink, leaves: bool
) -> None:
    client, other = Client(sink), Client(sink)
    client.attach(credit=2)
    give(sink, 1, 2, 3)
    deliveries = client.got()
    assert deliveries == [0, 1]
    transaction = client.declare()
    for delivery in deliveries:
        client.answer(delivery, within(transaction, ACCEPTED))
    other.attach(credit=10)
    assert len(other.got()) <= 1
    if leaves:
        client.peer.gone()
    else:
        client.discharge(transaction, fail=True)
    assert [(held.outgoing.number, held.failed) for held in sink._queue._held.values()] == [(1, 1), (2, 1), (3, 0)]
    sink._queue.serve()
    assert len(other.got()) == 2
    assert (known(sink), sink.given) == ([], 3)


def test_a_topics_message_comes_again_to_who_rolled_back_and_to_nobody_who_left(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    client.attach("topic:a")
    give(sink, 1, 2, address="topic/a")
    client.got()
    transaction = client.declare()
    client.answer(0, within(transaction, ACCEPTED), 1)
    client.discharge(transaction, fail=True)
    sink._queue.serve()
    assert client.got() == [2, 3]
    transaction = client.declare()
    client.answer(2, within(transaction, ACCEPTED), 3)
    client.say(performatives.detach(0, closed=True))
    client.discharge(transaction, fail=True)
    assert sorted(each.number for each in known(sink)) == [1, 2]


@pytest.mark.parametrize("state", [ACCEPTED, RELEASED])
def test_who_answers_a_message_of_which_only_a_part_has_come_is_sent_away_and_another_gets_it_once(
    sink: AmqpListenerSink, state: Described
) -> None:
    client, other = Client(sink, max_frame=512), Client(sink)
    client.attach(credit=0)
    one_frame_at_a_time = [*map(UInt, (0, 1, 0, 1000, 0, 0, 10)), None, False]
    client.say(encode(Described(ULong(Code.FLOW), one_frame_at_a_time)))
    sink.send([Outgoing(1, Message(b"x" * 5000), "queue/a", "id-1")])
    assert client.got() == [0]
    client.answer(0, state)
    assert client.peer.ended
    client.peer.gone()
    answers = other.attach()
    assert len({fields[1] for code, fields in answers if code == Code.TRANSFER and fields[1] is not None}) == 1
    assert known(sink) == []
    other.answer(0, ACCEPTED)
    assert known(sink) == [Outcome(1)]


def test_messages_are_not_acquired_in_transactions(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    client.attach(credit=0)
    give(sink, 1)
    fields = [
        *map(UInt, (0, 1000, 0, 1000, 0, 0, 5)),
        None,
        False,
        False,
        AmqpMap([(Symbol("txn-id"), client.declare())]),
    ]
    ((code, why),) = client.say(encode(Described(ULong(Code.FLOW), fields)))
    condition = condition_of(why[2])
    assert code == Code.DETACH
    assert condition is not None
    assert condition.name == "amqp:not-implemented"


def test_an_answer_in_a_transaction_that_is_not_there_ends_the_connection(sink: AmqpListenerSink) -> None:
    client = Client(sink)
    client.attach()
    give(sink, 1)
    client.answer(*client.got(), within(b"?", ACCEPTED))
    assert client.peer.ended
    assert known(sink) == []
