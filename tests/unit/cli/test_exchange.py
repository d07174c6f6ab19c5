"""What a command makes of what a sink or source tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from engine.cli import exchange
from engine.cli.destination import BrokerDestination, broker_destination
from engine.connectors.base import Delivery, NotConnectedError, Outcome, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.errors import HardFailureError, UnreachableError
from engine.message import Message
from routes.config import loads
from routes.systems import system_named

CONFIG = loads(
    "bridge.id=b1\nsink.out.type=nats\nsink.out.url=nats://127.0.0.1:1\n"
    "routes.r.in.include=msg.address==orders\nroutes.r.out.topic=orders\n"
)


class FakeSink:
    """Confirms what it is given, except for what the test says of one message."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.told = 0
        self.most = 0
        self.closed = False
        self.at: dict[int, Outcome | NotConnectedError] = {}
        self.fails: NotConnectedError | None = None

    @property
    def address(self) -> str:
        return "nats://127.0.0.1:1"

    def connect(self) -> None:
        if self.fails:
            raise self.fails

    def send(self, messages: Sequence[Outgoing]) -> None:
        self.sent += messages
        self.most = max(self.most, len(self.sent) - self.told)

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        if timeout_seconds == 0 or self.told == len(self.sent):
            return []
        found = self.at.get(self.told + 1, Outcome(self.told + 1))
        if isinstance(found, NotConnectedError):
            raise found
        self.told += 1
        return [found]

    def close(self) -> None:
        self.closed = True


class FakeSource:
    """Has these deliveries; remembers what was acknowledged."""

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        self.deliveries = list(deliveries)
        self.acknowledged: list[object] = []
        self.closed = False

    @property
    def address(self) -> str:
        return "nats://127.0.0.1:1"

    def connect(self) -> None:
        pass

    def receive(self, timeout_seconds: float) -> Delivery | None:
        return self.deliveries.pop(0) if self.deliveries else None

    def acknowledge(self, tokens: Sequence[object]) -> None:
        self.acknowledged += tokens

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> FakeSink:
    fake = FakeSink()
    monkeypatch.setattr(system_named("nats"), "make_sink", lambda *_: fake)
    return fake


@pytest.fixture
def target() -> BrokerDestination:
    return broker_destination(CONFIG, "nats:orders", None, None, to_send=True)


@pytest.fixture
def give(target: BrokerDestination) -> Callable[..., None]:
    def call(number: int = 1, body: bytes = b"", reply_to: str = "") -> None:
        exchange.give(target, SystemEndpoint.of(CONFIG, target.sink("me")), Message(body), reply_to, number)

    return call


def test_messages_go_out_in_order_under_ids_of_their_own(sink: FakeSink, give: Callable[..., None]) -> None:
    give(10_000, reply_to="answers")
    assert [each.number for each in sink.sent] == list(range(1, 10_001))
    assert len({each.id for each in sink.sent}) == 10_000
    assert {(each.address, each.reply_to) for each in sink.sent} == {("orders", "answers")}
    assert 500 < sink.most <= 4_000
    assert sink.closed


def test_few_large_messages_are_under_way_at_a_time(sink: FakeSink, give: Callable[..., None]) -> None:
    give(20, body=bytes(20_000_000))
    assert (len(sink.sent), sink.most) == (20, 3)


def test_a_refusal_is_told_with_what_arrived_before(sink: FakeSink, give: Callable[..., None]) -> None:
    sink.at[1] = Outcome(1, "too large")
    with pytest.raises(HardFailureError, match=r"^nats://127\.0\.0\.1:1 refuses the message: too large$"):
        give()
    sink.at = {3: Outcome(3, "too large")}
    sink.sent, sink.told = [], 0
    told = "refuses the message, after 2 of 5 messages; 2 more were sent, and may have arrived: too large"
    with pytest.raises(HardFailureError, match=told):
        give(5)
    assert sink.closed


def test_a_connection_that_ends_is_told_with_what_arrived_before(sink: FakeSink, give: Callable[..., None]) -> None:
    sink.at[3] = NotConnectedError("the server has closed the connection")
    with pytest.raises(UnreachableError) as caught:
        give(5)
    assert str(caught.value) == (
        "nats://127.0.0.1:1 does not answer (the server has closed the connection, after 2 of 5 messages; "
        "3 more were sent, and may have arrived); is the broker running, and is this its client port?"
    )


def test_receipts_that_wait_when_sending_fails_are_counted(sink: FakeSink, give: Callable[..., None]) -> None:
    def send(messages: Sequence[Outgoing]) -> None:
        sink.sent += messages
        if len(sink.sent) > 2_000:
            raise NotConnectedError("the server has closed the connection")

    sink.send = send  # type: ignore[method-assign]
    receipts = [Outcome(number) for number in range(1, 1_501)]
    sink.outcomes = lambda seconds: receipts if len(sink.sent) > 2_000 else []  # type: ignore[method-assign]
    with pytest.raises(
        UnreachableError, match="after 1500 of 5000 messages; 1000 more were sent, and may have arrived"
    ):
        give(5_000)


@pytest.mark.parametrize(
    "error",
    [
        NotConnectedError("the server refuses the login: authorization violation", 30.0),
        NotConnectedError("the broker says: not allowed"),
    ],
)
def test_a_broker_that_says_no_is_not_one_that_does_not_answer(
    sink: FakeSink, give: Callable[..., None], error: NotConnectedError
) -> None:
    sink.fails = error
    with pytest.raises(HardFailureError) as caught:
        give()
    assert str(caught.value) == f"nats://127.0.0.1:1 refuses: {error}"
    assert sink.closed


def test_a_question_is_not_asked_twice(sink: FakeSink, give: Callable[..., None]) -> None:
    sink.fails = NotConnectedError("it does not greet like a NATS server; is this its client port?")
    with pytest.raises(UnreachableError) as caught:
        give()
    assert str(caught.value) == f"nats://127.0.0.1:1 does not answer ({sink.fails})"


def test_a_message_is_acknowledged_when_it_has_been_shown(
    monkeypatch: pytest.MonkeyPatch, target: BrokerDestination
) -> None:
    source = FakeSource([Delivery(Message(b"%d" % number), number) for number in range(5)])
    monkeypatch.setattr(system_named("nats"), "make_source", lambda *_: source)
    shown = exchange.take(target, SystemEndpoint.of(CONFIG, target.source("me")), 3, None)
    for number in range(3):
        assert next(shown).record.value == b"%d" % number
        assert source.acknowledged == list(range(number))
    assert list(shown) == []
    assert (source.acknowledged, source.closed) == ([0, 1, 2], True)


def test_a_message_that_is_cut_or_faulty_is_shown_with_a_remark(
    capsys: pytest.CaptureFixture[str], target: BrokerDestination
) -> None:
    exchange.item(target, Delivery(Message(b"x"), 1, size=100, fault="a faulty frame"))
    assert capsys.readouterr().err.splitlines() == [
        "the next message cannot be read as its format says: a faulty frame",
        "the next body is larger than journal.max-message-bytes: only its beginning of 100 bytes",
    ]
