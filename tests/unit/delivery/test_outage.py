"""A system that cannot be reached: its source stays degraded and tries again, however long that takes."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from engine.connectors.base import NotConnectedError, Redelivery
from engine.delivery import sink_loop, source_loop
from engine.delivery.back_off import BackOff
from engine.delivery.deduplication.deduplicator import Deduplicator
from engine.delivery.replies import Requests
from engine.delivery.reply_receiver import ReplyReceiver
from engine.delivery.sink_letters import SinkLetters
from engine.delivery.sink_loop import SinkLoop
from engine.delivery.source_loop import SourceLoop, SourceWorker
from engine.errors import HardFailureError, SetupError
from engine.kafka.journal import JournalError
from engine.kafka.retry import StoppedError
from engine.telemetry.meters import SinkMetrics, SourceMetrics
from engine.telemetry.status import PartStates, State
from routes.config import loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Delivery, Outcome, Outgoing

CONFIG = loads("""
bridge.id=b1
router.outage-timeout=1s
routes.a.in.include=TRUE
routes.a.out.topic=out
source.jms.type=stomp
source.jms.destinations=queue:q
sink.out.type=stomp
kafka.bootstrap.servers=127.0.0.1:1
""")
HOUR = 3600.0
STILL = SimpleNamespace(stalled_seconds=0.0)
"""A journal that takes everything at once."""


class Unreachable:
    """A source whose broker refuses the login."""

    address = "stomp://127.0.0.1:1 (queue:q)"
    redelivery: Redelivery | None = None

    def connect(self) -> None:
        raise NotConnectedError("the broker says: access refused", 30)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        raise AssertionError

    def acknowledge(self, tokens: Sequence[object]) -> None:
        raise AssertionError

    def tend(self) -> None:
        raise AssertionError

    def close(self) -> None:
        pass


class Redelivering(Unreachable):
    """A source that connects, and whose broker may deliver messages again."""

    redelivery: Redelivery | None = Redelivery(1.0, 0.0)

    def connect(self) -> None:
        pass


class RefusingLater(Unreachable):
    """A source whose broker is away at first and then does not honour what is asked of it."""

    def __init__(self, *before: Exception | None) -> None:
        self._before = list(before)

    def connect(self) -> None:
        if self._before and (error := self._before.pop(0)) is not None:
            raise error
        raise HardFailureError("source.jms asks for a selector (a = 1), which Coil does not honour over STOMP: …")


class UnreachableSink:
    """A sink whose broker refuses the login."""

    address = "stomp://127.0.0.1:1"
    most_under_way = 10
    settle_seconds = 0.0

    def connect(self) -> None:
        raise NotConnectedError("the broker says: access refused", 30)

    def send(self, messages: Sequence[Outgoing]) -> None:
        raise AssertionError

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        raise AssertionError

    def close(self) -> None:
        pass


class Said:
    """The states that were told."""

    def __init__(self) -> None:
        self.states: list[tuple[State | str, str]] = []

    def state(self, state: State | str, detail: str = "") -> None:
        self.states.append((state, detail))


class Hours(BackOff):
    """Waits that last an hour each without taking any time; the tenth is the last."""

    def __init__(self, stop: Event) -> None:
        super().__init__(self._clock)
        self.waits: list[float] = []
        self._stop = stop

    def _clock(self) -> float:
        return HOUR * len(self.waits)

    def next(self, at_least_seconds: float | None = None) -> float:
        self.waits.append(super().next(at_least_seconds))
        if len(self.waits) == 10:
            self._stop.set()
        return 0.0


def test_a_source_tries_again_long_after_the_outage_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, said, registry = Event(), Said(), CollectorRegistry()
    hours = Hours(stop)
    monkeypatch.setattr(source_loop, "BackOff", lambda: hours)
    metrics = SourceMetrics(registry, "jms", "source:jms")

    SourceLoop(CONFIG, SourceWorker("jms", 1, 1), Unreachable(), metrics, said).run(stop)

    assert said.states == [(State.DEGRADED, f"{Unreachable.address}: the broker says: access refused")] * 10
    assert min(hours.waits) >= 30, "a refused login is not asked for at once"
    assert registry.get_sample_value("jmsbridge_connection_up", {"component": "source:jms"}) == 0


class HangingUp:
    """The flow of a connection that ends right behind the acknowledgement of its first message."""

    def __init__(self) -> None:
        self._steps = iter([True])

    def step(self) -> bool:
        if next(self._steps, False):
            return True
        raise NotConnectedError("the broker has closed the connection")


def test_pauses_grow_while_connections_end_right_behind_an_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    class Still(Hours):
        def _clock(self) -> float:
            return 0.0

    stop = Event()
    hours = Still(stop)
    monkeypatch.setattr(source_loop, "BackOff", lambda: hours)
    monkeypatch.setattr(SourceLoop, "_serve", lambda self, stop: self._steps(HangingUp(), STILL, stop))
    metrics = SourceMetrics(CollectorRegistry(), "jms", "source:jms")

    SourceLoop(CONFIG, SourceWorker("jms", 1, 1), Redelivering(), metrics, Said()).run(stop)

    for wait, whole in zip(hours.waits, [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30], strict=True):
        assert whole / 2 <= wait <= whole


def test_a_refusal_that_comes_later_than_at_the_first_attempt_stops_only_its_own_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop, said = Event(), Said()
    hours = Hours(stop)
    monkeypatch.setattr(source_loop, "BackOff", lambda: hours)
    metrics = SourceMetrics(CollectorRegistry(), "jms", "source:jms")
    source = RefusingLater(NotConnectedError("Connection refused"))

    SourceLoop(CONFIG, SourceWorker("jms", 1, 1), source, metrics, said).run(stop)

    refusal = f"{source.address}: source.jms asks for a selector (a = 1), which Coil does not honour over STOMP: …"
    assert said.states == [
        (State.DEGRADED, f"{source.address}: Connection refused"),
        *[(State.DEGRADED, refusal)] * 9,
    ]
    assert min(hours.waits[1:]) >= 30


def test_a_refusal_at_the_first_attempt_ends_the_source() -> None:
    metrics = SourceMetrics(CollectorRegistry(), "jms", "source:jms")
    loop = SourceLoop(CONFIG, SourceWorker("jms", 1, 1), RefusingLater(), metrics, Said())
    with pytest.raises(HardFailureError, match="asks for a selector"):
        loop.run(Event())


@pytest.mark.parametrize(
    "error", [HardFailureError("source.jms asks for a selector"), SetupError("Java does not start: no memory")]
)
def test_what_is_refused_to_a_source_of_a_bridge_at_work_stops_only_that_source(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    stop, said = Event(), Said()
    hours = Hours(stop)
    monkeypatch.setattr(source_loop, "BackOff", lambda: hours)
    metrics = SourceMetrics(CollectorRegistry(), "jms", "source:jms")
    source = RefusingLater(*[error] * 10)

    SourceLoop(CONFIG, SourceWorker("jms", 1, 1), source, metrics, said, is_first=False).run(stop)

    assert said.states == [(State.DEGRADED, f"{source.address}: {error}")] * 10
    assert min(hours.waits) >= 30


def test_what_is_refused_to_a_sink_of_a_bridge_at_work_stops_only_that_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect() -> None:
        raise HardFailureError("sink.out asks for messages to a topic")

    stop, said, registry = Event(), Said(), CollectorRegistry()
    hours, sink = Hours(stop), UnreachableSink()
    monkeypatch.setattr(sink_loop, "BackOff", lambda: hours)
    monkeypatch.setattr(SinkLetters, "open", lambda _: None)
    monkeypatch.setattr(sink, "connect", connect)
    own, voice = CONFIG.sinks[0], PartStates(said).voice()
    metrics = SinkMetrics(registry, "out", "sink:out")
    requests = Requests(CONFIG, own, 1, metrics)
    listener = ReplyReceiver(CONFIG, own, requests, registry, PartStates(said).voice(), is_first=False)

    SinkLoop(CONFIG, own, sink, requests, metrics, voice, is_first=False).run(stop, listener)

    assert said.states[-1] == (State.DEGRADED, "stomp://127.0.0.1:1: sink.out asks for messages to a topic")
    assert min(hours.waits) >= 30


def test_a_source_is_not_ready_before_it_has_looked_for_repeated_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, said = Event(), Said()

    def begin(_: Deduplicator) -> None:
        stop.set()
        raise StoppedError

    monkeypatch.setattr(Deduplicator, "begin", begin)
    metrics = SourceMetrics(CollectorRegistry(), "jms", "source:jms")

    SourceLoop(CONFIG, SourceWorker("jms", 1, 1), Redelivering(), metrics, said).run(stop)

    assert stop.is_set()
    assert State.READY not in [state for state, _ in said.states]


def test_a_sink_tries_again_long_after_the_outage_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, said, registry = Event(), Said(), CollectorRegistry()
    hours = Hours(stop)
    monkeypatch.setattr(sink_loop, "BackOff", lambda: hours)
    # It would wait for a Kafka.
    monkeypatch.setattr(SinkLetters, "open", lambda _: None)
    own, voice = CONFIG.sinks[0], PartStates(said).voice()
    metrics = SinkMetrics(registry, "out", "sink:out")
    requests = Requests(CONFIG, own, 1, metrics)
    listener = ReplyReceiver(CONFIG, own, requests, registry, PartStates(said).voice())

    SinkLoop(CONFIG, own, UnreachableSink(), requests, metrics, voice).run(stop, listener)

    assert said.states[-1] == (State.DEGRADED, "stomp://127.0.0.1:1: the broker says: access refused")
    assert min(hours.waits) >= 30, "a refused login is not asked for at once"
    assert registry.get_sample_value("jmsbridge_connection_up", {"component": "sink:out"}) == 0


def test_a_refusal_that_comes_later_than_at_the_first_attempt_stops_only_its_own_sink(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop, said, registry = Event(), Said(), CollectorRegistry()
    hours = Hours(stop)
    monkeypatch.setattr(sink_loop, "BackOff", lambda: hours)
    monkeypatch.setattr(SinkLetters, "open", lambda _: None)
    own, voice = CONFIG.sinks[0], PartStates(said).voice()
    metrics = SinkMetrics(registry, "out", "sink:out")
    requests = Requests(CONFIG, own, 1, metrics)
    listener = ReplyReceiver(CONFIG, own, requests, registry, PartStates(said).voice())
    errors = [NotConnectedError("Connection refused"), *[HardFailureError("sink.out asks for messages to a topic")] * 9]
    sink = UnreachableSink()

    def connect() -> None:
        raise errors.pop(0)

    monkeypatch.setattr(sink, "connect", connect)
    SinkLoop(CONFIG, own, sink, requests, metrics, voice).run(stop, listener)

    assert said.states[-1] == (State.DEGRADED, "stomp://127.0.0.1:1: sink.out asks for messages to a topic")
    assert min(hours.waits[1:]) >= 30
    assert not errors


def test_a_sink_that_waits_for_kafka_names_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: SinkLetters) -> None:
        raise JournalError("a transaction at 127.0.0.1:1: timed out")

    stop, said = Event(), Said()
    monkeypatch.setattr(sink_loop, "BackOff", lambda: Hours(stop))
    monkeypatch.setattr(SinkLetters, "open", away)
    own, registry, voice = CONFIG.sinks[0], CollectorRegistry(), PartStates(said).voice()
    metrics = SinkMetrics(registry, "out", "sink:out")
    requests = Requests(CONFIG, own, 1, metrics)
    listener = ReplyReceiver(CONFIG, own, requests, registry, PartStates(said).voice())

    SinkLoop(CONFIG, own, UnreachableSink(), requests, metrics, voice).run(stop, listener)

    assert said.states[-1] == (State.DEGRADED, "Kafka at 127.0.0.1:1: a transaction at 127.0.0.1:1: timed out")
