"""The bounds of an AMQP listener's clients, one by one: counts, bytes and times of a simulated clock."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.sections import VALUE, Sections, encode_sections
from engine.connectors.amqp.codec.values import AmqpMap
from engine.connectors.amqp.frames import PROTOCOL_HEADER, AmqpFrameParser, frame
from engine.connectors.amqp.links import IncomingTransfer
from engine.connectors.amqp.performatives import Code, Condition, Role, Terminus, condition_of
from engine.connectors.amqp.server_performatives import FRAMING_ERROR, INVALID_FIELD, RESOURCE_LIMIT
from engine.connectors.amqp_listener.limits import ListenerLimits, Pool
from engine.connectors.amqp_listener.server import _Slice
from engine.connectors.amqp_listener.source import AmqpListenerSource, Arrivals
from engine.connectors.amqp_listener.turns import ClientTurns, Owner
from engine.connectors.endpoint import SystemEndpoint
from engine.limits import MOST_HEADERS
from routes.config import loads
from tests.unit.connectors.amqp_listener_house import Client, House, attach, message, said
from tests.unit.connectors.test_amqp_listener_attackers import OPEN, QUEUE, Listening, heard, limited

LIMITS = ListenerLimits()
ECHO = said(performatives.performative(Code.FLOW, 0, 1, 0, 1, None, None, None, None, None, True))


def reason(answers: list[tuple[int, list[Any]]], code: Code, field: int) -> Condition:
    condition = condition_of(next(fields[field] for found, fields in answers if found == code))
    assert condition is not None
    return condition


class Timed:
    """A client that uses time."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.used = 0.0


def served(turns: ClientTurns[Timed], costs: dict[Timed, float], count: int) -> list[Timed]:
    """Who had a turn, each of which costs what it does; all have always more to say."""
    found = []
    for _ in range(count):
        client = turns.pop()
        turns.charge(client, costs[client])
        turns.add(client)
        found.append(client)
    return found


def test_clients_of_one_address_get_equal_time_whatever_a_turn_of_theirs_costs() -> None:
    owner, turns = Owner("a"), ClientTurns[Timed]()
    cheap, dear = Timed(owner), Timed(owner)
    for each in (cheap, dear):
        turns.add(each)
    found = served(turns, {cheap: 1, dear: 10}, 110)
    assert found.count(dear) == 10


def test_an_address_with_many_clients_gets_no_more_time_than_one_with_one() -> None:
    turns = ClientTurns[Timed]()
    many, one = [Timed(Owner("a"))], Timed(Owner("b"))
    many += [Timed(many[0].owner) for _ in range(99)]
    for each in (*many, one):
        turns.add(each)
    found = served(turns, dict.fromkeys((*many, one), 1), 200)
    assert found.count(one) == 100
    assert {found.count(each) for each in many} == {1}


def test_time_that_was_not_used_is_not_saved_up() -> None:
    owner, turns = Owner("a"), ClientTurns[Timed]()
    busy, idle = Timed(owner), Timed(owner)
    turns.add(busy)
    served(turns, {busy: 1}, 1000)
    turns.add(idle)
    assert served(turns, {busy: 1, idle: 1}, 100).count(idle) in (50, 51)
    turns.discard(busy)
    assert turns.pop() is idle
    assert not turns


def test_a_share_is_left_for_each_when_a_pool_is_used_up() -> None:
    pool = Pool(100, 10)
    assert not pool.is_spent(50, 99)
    assert pool.is_spent(50, 100)
    assert not pool.is_spent(9, 150)
    assert pool.is_spent(10, 150)


def test_a_turn_of_a_client_ends_by_frames_and_by_time() -> None:
    client = Client(House()).opened()
    client.peer.receive(ECHO * 1000, 0.0)
    for clock, most in ((lambda: 0.0, LIMITS.slice_frames), (Steps(0.001), LIMITS.slice_seconds / 0.001)):
        assert client.peer.work(_Slice(LIMITS, clock).is_spent)
        assert client.peer.outgoing.count(b"\x53\x13") == most
        client.peer.outgoing.clear()


class Steps:
    """A clock on which each look takes a while."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_four_floods_do_not_hold_up_the_frame_of_another_client() -> None:
    with Listening(House()) as listening, ExitStack() as opened:
        flooders = [opened.enter_context(listening.connect(OPEN)) for _ in range(4)]
        other = opened.enter_context(listening.connect(OPEN))
        listening.turn()
        for each in (*flooders, other):
            heard(each)
        # Each look at the clock takes a millisecond of it, so a turn of 10 ms is at most 10 frames.
        listening.server._clock = clock = Steps(0.001)
        clock.now = time.monotonic()
        for each in flooders:
            each.send(ECHO * 5000)
        listening.turn(3)
        other.send(ECHO)
        time.sleep(0.05)
        turns = 0
        while not heard(other):
            listening.turn(1)
            turns += 1
        assert turns <= 3


def test_a_frame_has_to_come_whole_in_time() -> None:
    client = Client(House()).opened()
    client.peer.feed(ECHO[:5], 1.0)
    client.peer.tick(29.0)
    client.peer.feed(ECHO[5:] + ECHO[:5], 29.0)
    client.peer.tick(30.9)
    assert not client.peer.ended
    client.peer.feed(ECHO[5:6], 50.0)
    client.peer.tick(58.9)
    assert not client.peer.ended
    client.peer.feed(ECHO[6:7], 59.0)
    client.peer.tick(59.1)
    assert client.peer.ended


def test_time_in_which_nothing_is_read_does_not_count_for_a_frame() -> None:
    client = Client(House()).opened()
    client.peer.feed(ECHO[:5], 1.0)
    client.peer.excuse(29.0)
    client.peer.tick(58.0)
    assert not client.peer.ended
    client.peer.tick(59.1)
    assert client.peer.ended


def test_a_begun_message_has_to_go_on() -> None:
    client = Client(House()).opened()
    client.sending()
    client.peer.feed(message(0, more=True), 0.0)
    for now in (20.0, 40.0, 55.0):
        client.peer.feed(ECHO, now)
        client.peer.tick(now)
    assert not client.peer.ended
    client.peer.feed(ECHO, 61.0)
    client.peer.tick(61.0)
    assert client.peer.ended


def test_begun_frames_count_as_memory_of_their_client() -> None:
    with Listening(limited(unfinished_bytes_of_all=100_000)) as listening, ExitStack() as opened:
        begun = (120_000).to_bytes(4) + b"\2\0\0\0" + b"x" * 19_992
        clients = [opened.enter_context(listening.connect(OPEN + begun)) for _ in range(30)]
        listening.turn(20)
        held = sum(client.peer.held_bytes for client in listening.server._clients)
        assert 80_000 <= held <= 101_000
        assert sum(RESOURCE_LIMIT.encode() in (heard(client) or b"") for client in clients) == 25


def test_of_two_addresses_the_one_that_holds_more_loses_a_connection() -> None:
    with Listening(limited(unfinished_bytes_of_all=100_000), "0.0.0.0") as listening, ExitStack() as opened:  # noqa: S104
        begun = (120_000).to_bytes(4) + b"\2\0\0\0"
        large = opened.enter_context(listening.connect(OPEN + begun + b"x" * 30_000, "127.0.0.2"))
        for _ in range(30):
            opened.enter_context(listening.connect(OPEN + begun + b"x" * 5_000))
        listening.turn(20)
        heard(large)
        assert heard(large) == b""
        assert listening.server._owners["127.0.0.2"].clients == 1


@pytest.mark.parametrize("pieces", ["frame", "message", "empty parts"])
def test_what_comes_in_single_bytes_takes_no_more_memory_than_its_bytes(pieces: str) -> None:
    house = House()
    house.max_bytes = 1_000_000
    client = Client(house).opened()
    client.sending()
    data = {
        "frame": [(120_000).to_bytes(4) + b"\2\0\0\0", *[b"x"] * 100_000],
        "message": [message(0, b"x", more=True)] * 30_000,
        "empty parts": [message(0, b"", more=True)] * 30_000,
    }[pieces]
    tracemalloc.start()
    try:
        for each in data:
            client.peer.feed(each, 0.0)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not client.peer.ended
    assert size < 200_000


def test_the_frames_that_are_taken_are_as_announced() -> None:
    client = Client(House())
    answers = client.say(PROTOCOL_HEADER, said(performatives.open_("c", "h", 0, "test")))
    assert answers[0][1][2] == LIMITS.frame_bytes
    parser = AmqpFrameParser(LIMITS.frame_bytes)
    assert len(list(parser.feed(frame(0, b"x" * (LIMITS.frame_bytes - 8))))) == 1


def test_a_performative_is_bounded_and_a_transfer_may_fill_its_frame() -> None:
    house = House()
    house.max_bytes = LIMITS.frame_bytes
    client = Client(house).opened()
    client.sending()
    client.say(message(0, b"x" * (LIMITS.frame_bytes - 100)))
    assert len(house.taken) == 1
    answers = client.say(said(performatives.open_("x" * LIMITS.performative_bytes, "h", 0, "test")))
    assert reason(answers, Code.CLOSE, 0).name == FRAMING_ERROR


def test_a_long_selector_is_refused_with_its_link_alone() -> None:
    client = Client(House()).opened()
    for length, name in ((LIMITS.selector_bytes, "amqp:not-allowed"), (LIMITS.selector_bytes + 1, INVALID_FIELD)):
        source = Terminus("a", "queue", "x" * length).source()
        wish = performatives.attach("r", 0, Role.RECEIVER, source, Terminus("x", "queue").target())
        assert reason(client.say(said(wish)), Code.DETACH, 2).name == name
        client.say(said(performatives.detach(0, closed=True)))
    assert not client.peer.ended


def test_the_links_of_all_clients_leave_a_share_for_each() -> None:
    house = House(limits=ListenerLimits(clients=10, links_of_all=50, handles=100))
    many, few = Client(house).opened(), Client(house).opened()
    taken = [many.say(said(attach(QUEUE.target(), handle)))[1][0] == Code.FLOW for handle in range(60)]
    assert taken == [True] * 50 + [False] * 10
    taken = [few.say(said(attach(QUEUE.target(), handle)))[1][0] == Code.FLOW for handle in range(10)]
    assert taken == [True] * 5 + [False] * 5
    many.say(said(performatives.end()))
    assert house.links == 5
    assert few.say(said(attach(QUEUE.target(), 20)))[1][0] == Code.FLOW


def test_the_messages_of_clients_go_on_in_turns() -> None:
    house = House()
    clients = [Client(house).opened() for _ in range(3)]
    for client, count in zip(clients, (5, 2, 1), strict=True):
        client.sending()
        client.say(*(message(number) for number in range(count)))
    arrivals = Arrivals()
    for each in house.taken:
        arrivals.add(each)
    assert arrivals.bytes == sum(arrivals.bytes_of(client.peer) for client in clients) > 8 * 500
    order = []
    while arrivals:
        order.append(number_of(clients, arrivals.pop()))
    assert order == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (0, 2), (0, 3), (0, 4)]
    assert arrivals.bytes == 0


def number_of(clients: list[Client], incoming: IncomingTransfer) -> tuple[int, int]:
    peers = [client.peer for client in clients]
    return peers.index(cast("Any", incoming.receiver.session).peer), incoming.delivery_id


@pytest.fixture
def source() -> AmqpListenerSource:
    text = "bridge.id=b1\nsource.l.type=amqp\nsource.l.destinations=queue:a\nsource.l.listen=amqp://127.0.0.1:5673\n"
    config = loads(text + "routes.r.in.include=TRUE\nroutes.r.out.topic=t\n", Path())
    return AmqpListenerSource(SystemEndpoint.of(config, config.sources[0]), 1)


def test_a_message_with_too_many_properties_is_rejected_alone_or_in_a_transaction(source: AmqpListenerSource) -> None:
    class Receiver:
        terminus = Terminus("a", "queue")

    for count in (MOST_HEADERS, 60_000):
        pairs = AmqpMap([(f"p{number}", True) for number in range(count)])
        encoded = encode_sections(Sections(application_properties=pairs, body=VALUE, content=""))
        found = source._message(IncomingTransfer(cast("Any", Receiver()), 0, 0, encoded, len(encoded), False, None))
        assert isinstance(found, Condition) == (count > MOST_HEADERS)
    assert str(found) == f"it has 60,002 headers; a message may have 1,000 ({RESOURCE_LIMIT})"


def test_a_client_whose_messages_wait_is_not_read_and_others_are(source: AmqpListenerSource) -> None:
    clients = [Client(cast("House", source)).opened() for _ in range(20)]
    payload = b"x" * 100_000
    for client in clients:
        client.sending()
        number = 0
        while source.takes(client.peer):
            client.peer.feed(message(number, payload), 0.0)
            number += 1
        assert number * 100_000 <= LIMITS.waiting_bytes + 100_000
    assert source._arrivals.bytes <= LIMITS.waiting_bytes_of_all + 20 * 101_000
    # Each of them had its turn.
    assert all(source._arrivals.bytes_of(client.peer) for client in clients)
    assert source.takes(Client(cast("House", source)).peer)


def test_small_messages_that_wait_count_with_the_memory_around_them(source: AmqpListenerSource) -> None:
    client = Client(cast("House", source)).opened()
    for handle in range(20):
        client.say(said(attach(QUEUE.target(), handle)))
    number = 0
    while source.takes(client.peer):
        client.peer.feed(said(performatives.transfer(number % 20, number, b"t", 0, more=False) + b"x"), 0.0)
        number += 1
    assert number < LIMITS.waiting_bytes / 400


def test_a_client_that_reads_nothing_is_disconnected() -> None:
    with Listening(House()) as listening, ExitStack() as opened:
        flooder = opened.enter_context(listening.connect(OPEN))
        listening.turn()
        (client,) = listening.server._clients
        client.peer.write(b"x" * 20_000_000)
        listening.turn()
        assert len(client.peer.outgoing) > 1_000_000
        for seconds, left in ((29.0, 1), (31.0, 0)):
            listening.server._tick(client.progress + seconds)
            assert listening.clients == left
        assert heard(flooder)
