"""The order in which deliveries are taken and acknowledged, with a source and a journal that are lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from engine.connectors.base import Delivery
from engine.delivery.ingress_pipeline import IngressPipeline
from engine.kafka.retry import StoppedError
from engine.limits import MOST_HEADERS
from engine.message import Message
from engine.property_names import not_kept, take_not_kept
from engine.telemetry.meters import SourceMetrics
from routes import config as configuration
from routes.properties import Property

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from engine.message import Record

CONFIGURATION = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:x
routes.a.in.include=TRUE
routes.a.out.topic=out
"""


class Three:
    """A source of three messages."""

    address = "three"
    redelivery = None

    def __init__(self) -> None:
        self.acknowledged: list[object] = []
        self._deliveries = [Delivery(Message(str(number).encode()), number) for number in (3, 2, 1)]

    def receive(self, timeout_seconds: float) -> Delivery | None:
        return self._deliveries.pop() if self._deliveries else None

    def acknowledge(self, tokens: Sequence[object]) -> None:
        self.acknowledged += tokens

    def tend(self) -> None: ...


class Full:
    """A journal that is asked to stop and has no room for the second one, which is large, but for the third one."""

    def __init__(self) -> None:
        self._open: list[Callable[[Exception | None], None]] = []

    def append(self, message: Message, done: Callable[[Exception | None], None]) -> bool:
        if message.body == b"2":
            return False
        self._open.append(done)
        return True

    def poll(self, timeout_seconds: float = 0) -> None: ...

    def hurry(self) -> None: ...

    def flush(self, timeout_seconds: float) -> bool:
        for done in self._open:
            done(None)
        return True


def test_nothing_is_taken_behind_a_message_that_stays_with_the_broker(tmp_path: Path) -> None:
    file = tmp_path / "b.properties"
    file.write_text(CONFIGURATION)
    source, metrics = Three(), SourceMetrics(CollectorRegistry(), "s", "source:s")
    flow = IngressPipeline(configuration.load(file), source, Full(), None, metrics)  # type: ignore[arg-type]
    with pytest.raises(StoppedError):
        flow.step()
    flow.settle()
    assert source.acknowledged == [1]


class Journal(Full):
    """A journal with room for everything."""

    def append(self, message: Message, done: Callable[[Exception | None], None]) -> bool:
        self._open.append(done)
        return True


class NothingKnown:
    """A deduplicator that has seen nothing."""

    def suspects(self, message: Message) -> bool:
        return False

    def tend(self, received: int, acknowledged: int) -> None: ...


@pytest.mark.parametrize(("deduplicator", "counted"), [(NothingKnown(), 2), (None, 0)])
def test_messages_without_an_id_are_counted_where_they_may_be_delivered_again(
    tmp_path: Path, deduplicator: NothingKnown | None, counted: int
) -> None:
    file = tmp_path / "b.properties"
    file.write_text(CONFIGURATION)
    registry, source = CollectorRegistry(), Three()
    source._deliveries[1] = Delivery(Message(b"2", headers={"JMSMessageID": "ID:2"}), 2)
    source._deliveries[0] = Delivery(Message(b"3", headers={"JMSMessageID": "ID:made-up"}), 3, has_own_id=False)
    flow = IngressPipeline(
        configuration.load(file),
        source,
        Journal(),  # type: ignore[arg-type]
        deduplicator,  # type: ignore[arg-type]
        SourceMetrics(registry, "s", "source:s"),
    )
    flow.step()
    flow.settle()
    assert source.acknowledged == [1, 2, 3]
    assert registry.get_sample_value("jmsbridge_source_unidentified_messages_total", {"source": "s"}) == counted


class Letters(Journal):
    """A journal that keeps the dead letters written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.letters: list[Record] = []

    def write(self, topic: str, record: Record, done: Callable[[Exception | None], None]) -> bool:
        self.letters.append(record)
        self._open.append(done)
        return True


@pytest.mark.parametrize("kind", ["properties", "origins"])
def test_a_message_with_too_many_headers_is_a_dead_letter(tmp_path: Path, kind: str) -> None:
    names = [f"n{number}" for number in range(60_000)]
    faulty = (
        Message(b"2", properties={name: Property("x") for name in names})
        if kind == "properties"
        else Message(b"2", origins=tuple(names))
    )
    file = tmp_path / "b.properties"
    file.write_text(CONFIGURATION)
    registry, source, journal = CollectorRegistry(), Three(), Letters()
    source._deliveries[1] = Delivery(faulty, 2)
    flow = IngressPipeline(
        configuration.load(file),
        source,
        journal,
        None,
        SourceMetrics(registry, "s", "source:s"),  # type: ignore[arg-type]
    )
    flow.step()
    flow.settle()
    assert source.acknowledged == [1, 2, 3]
    (letter,) = journal.letters
    assert letter.header("jmsbridge.reason") == "unreadable"
    assert letter.header("__connect.errors.exception.message") == "it has 60,000 headers; a message may have 1,000"
    assert len(letter.headers) < MOST_HEADERS + 20
    rejected = {"source": "s", "reason": "unreadable"}
    assert registry.get_sample_value("jmsbridge_source_rejected_messages_total", rejected) == 1


def test_headers_that_could_not_be_kept_are_counted_for_the_source(tmp_path: Path) -> None:
    file = tmp_path / "b.properties"
    file.write_text(CONFIGURATION)
    registry = CollectorRegistry()
    metrics = SourceMetrics(registry, "s", "source:s")
    flow = IngressPipeline(configuration.load(file), Three(), Journal(), None, metrics)  # type: ignore[arg-type]
    take_not_kept()
    not_kept("a", "why", 2)
    for _ in range(2):
        flow.count()
    assert registry.get_sample_value("jmsbridge_source_headers_not_kept_total", {"source": "s"}) == 2
