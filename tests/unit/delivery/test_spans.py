"""When spans of sources and sinks begin and end, what they say, and in which context the message goes on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import Outcome, Outgoing
from engine.delivery.spans import SinkSpans, SourceSpans
from engine.kafka.journal import JournalError, JournalTooLargeError
from engine.message import ROUTE, Message, Record
from engine.telemetry.tracing import Operation
from engine.trace_context import of_properties
from routes.config import loads
from routes.model import SinkConfig, SourceConfig
from routes.properties import Property
from routes.systems import system_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.kafka.journal import Done
    from engine.trace_context import Context

CONFIG = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:q
sink.n.type=nats
routes.one.in.include=TRUE
routes.one.out.topic=nats:orders.eu
routes.many.in.include=TRUE
routes.many.out.topic=nats:orders.${msg.header.region}
"""
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736"
CAME = f"{TRACE}-00f067aa0ba902b7-01"
FIELDS = {"JMSMessageID": "ID:1", "JMSDestination": "queue:orders", "JMSCorrelationID": "c"}
MESSAGE = Message(b"x", headers=FIELDS, properties={"traceparent": Property(CAME), "tracestate": Property("a=1")})


@dataclass
class Kept:
    """A span that is kept for a look at it."""

    operation: Operation
    destination: str
    parent: dict[str, str]
    attributes: dict[str, str]
    context: Context
    ends: list[str | None] = field(default_factory=list)

    def end(self, error: str | None = None) -> None:
        self.ends.append(error)


class Keeper:
    """Keeps all spans; the first is span 1 of the one trace that there is."""

    def __init__(self, *, switched_off: bool = False) -> None:
        self.spans: list[Kept] = []
        self._switched_off = switched_off

    def begin(self, operation: Operation, destination: str, parent: Context, attributes: Mapping[str, str]) -> Kept:
        context = {} if self._switched_off else {"traceparent": f"{TRACE}-{len(self.spans) + 1:016x}-01"}
        self.spans.append(Kept(operation, destination, dict(parent), dict(attributes), context))
        return self.spans[-1]


class Taking:
    """A journal that takes or does not; what is told of a message is up to the test."""

    def __init__(self, takes: bool | Exception = True) -> None:
        self._takes = takes
        self.records: list[Record] = []
        self.done: list[Done] = []

    def append(self, message: Message, done: Done, trace: Mapping[str, str] | None = None) -> bool:
        if isinstance(self._takes, Exception):
            raise self._takes
        self.records.append(message.to_record(of_properties(message.properties) if trace is None else trace))
        self.done.append(done)
        return self._takes


def take(message: Message, journal: Taking, keeper: Keeper, system: str = "stomp") -> list[Exception | None]:
    """What is told of a message that a source appends."""
    told: list[Exception | None] = []
    source = SourceConfig(name="s", type=system_named(system), destinations=("q",))
    SourceSpans(keeper, source).append(journal, message, told.append)  # type: ignore[arg-type]
    return told


def test_a_message_stands_in_the_journal_as_it_came_with_its_span_beside() -> None:
    keeper, journal = Keeper(), Taking()
    take(MESSAGE, journal, keeper)

    (span,), (record,) = keeper.spans, journal.records
    assert span.parent == {"traceparent": CAME, "tracestate": "a=1"}
    assert record.header("traceparent") == span.context["traceparent"]
    assert Message.from_record(record) == MESSAGE


def test_a_span_of_a_source_says_what_the_conventions_ask_for() -> None:
    keeper = Keeper()
    take(MESSAGE, Taking(), keeper)

    (span,) = keeper.spans
    assert (span.operation, span.destination) == (Operation.RECEIVE, "orders")
    assert span.attributes == {
        "messaging.system": "jms",
        "messaging.destination.name": "orders",
        "messaging.message.id": "ID:1",
        "messaging.message.conversation_id": "c",
        "jmsbridge.source": "s",
    }


def test_a_span_of_kafka_is_called_after_the_topic() -> None:
    keeper = Keeper()
    take(Message(properties={"JMS_Kafka_Topic": Property("prices")}), Taking(), keeper, "kafka")
    assert keeper.spans[0].destination == "prices"
    assert keeper.spans[0].attributes["messaging.system"] == "kafka"


def test_a_message_without_a_context_begins_a_trace_and_goes_on_in_it() -> None:
    keeper, journal = Keeper(), Taking()
    take(replace(MESSAGE, properties={}), journal, keeper)
    assert keeper.spans[0].parent == {}
    assert journal.records[0].header("traceparent") == keeper.spans[0].context["traceparent"]
    assert journal.records[0].header("jms.traceparent") is None


def test_a_message_keeps_its_context_where_opentelemetry_is_switched_off() -> None:
    journal = Taking()
    take(MESSAGE, journal, Keeper(switched_off=True))
    assert journal.records[0].header("traceparent") == CAME


@pytest.mark.parametrize(("error", "end"), [(None, None), (JournalError("gone"), "JournalError")])
def test_a_span_of_a_source_ends_when_the_journal_says_so(error: Exception | None, end: str | None) -> None:
    keeper, journal = Keeper(), Taking()
    told = take(MESSAGE, journal, keeper)
    assert keeper.spans[0].ends == []

    journal.done[0](error)
    assert keeper.spans[0].ends == [end]
    assert told == [error]


def test_a_span_of_a_message_that_never_fits_ends_at_once() -> None:
    keeper = Keeper()
    with pytest.raises(JournalTooLargeError):
        take(MESSAGE, Taking(JournalTooLargeError(9, 8)), keeper)
    assert keeper.spans[0].ends == ["JournalTooLargeError"]


def test_a_span_of_a_message_that_stays_with_its_broker_is_never_sent() -> None:
    keeper = Keeper()
    take(MESSAGE, Taking(takes=False), keeper)
    assert keeper.spans[0].ends == []


# Sinks


def sink(keeper: Keeper, kind: str = "nats") -> SinkSpans:
    return SinkSpans(
        keeper, loads(CONFIG, base=Path()).routes, SinkConfig(name="n", type=system_named(kind), topic="t")
    )


def routed(route: str = "one", trace: Mapping[str, str] | None = None) -> Record:
    record = MESSAGE.to_record(trace or {})
    return replace(record, headers=(*record.headers, (ROUTE, route.encode())))


def outgoing(number: int = 1, address: str = "orders.eu") -> Outgoing:
    return Outgoing(number, MESSAGE, address, f"b1/{number}")


def test_a_message_leaves_a_sink_in_the_context_of_its_span() -> None:
    keeper = Keeper()
    of_source = {"traceparent": f"{TRACE}-{'f' * 16}-01"}
    given = sink(keeper).begin(outgoing(), routed(trace=of_source))

    (span,) = keeper.spans
    assert span.parent == of_source
    assert given.message.properties["traceparent"].text == span.context["traceparent"]
    assert "tracestate" not in given.message.properties
    assert replace(given, message=MESSAGE) == outgoing()


def test_a_record_from_before_has_the_context_of_its_properties() -> None:
    keeper = Keeper()
    sink(keeper).begin(outgoing(), routed())
    assert keeper.spans[0].parent == {"traceparent": CAME, "tracestate": "a=1"}


def test_a_message_leaves_as_it_came_where_opentelemetry_is_switched_off() -> None:
    given = sink(Keeper(switched_off=True)).begin(outgoing(), routed())
    assert of_properties(given.message.properties) == of_properties(MESSAGE.properties)


def test_a_span_of_a_sink_is_called_after_the_template_of_its_route() -> None:
    keeper = Keeper()
    spans = sink(keeper)
    spans.begin(outgoing(), routed())
    spans.begin(outgoing(), routed("many"))

    plain, template = keeper.spans
    assert (plain.operation, plain.destination) == (Operation.SEND, "orders.eu")
    assert template.destination == "orders.${msg.header.region}"
    assert template.attributes == {
        **plain.attributes,
        "messaging.destination.template": "orders.${msg.header.region}",
        "jmsbridge.route": "many",
    }
    assert plain.attributes["messaging.system"] == "nats"
    assert plain.attributes["messaging.destination.name"] == "orders.eu"


def test_queues_are_called_by_their_names() -> None:
    keeper = Keeper()
    sink(keeper, "amqp").begin(outgoing(address="queue/orders"), routed())
    assert keeper.spans[0].destination == "orders"
    assert keeper.spans[0].attributes["messaging.system"] == "jms"


def test_spans_of_a_sink_end_with_their_outcomes_once() -> None:
    keeper = Keeper()
    spans = sink(keeper)
    for number in (1, 2, 3):
        spans.begin(outgoing(number), routed())
    spans.end([Outcome(2), Outcome(1, "no such queue"), Outcome(9)])
    spans.end([Outcome(2)])
    assert [span.ends for span in keeper.spans] == [["refused"], [None], []]


def test_what_another_worker_sends_again_has_no_span_here() -> None:
    keeper = Keeper()
    spans = sink(keeper)
    spans.begin(outgoing(), routed())
    spans.forget([1, 2])
    spans.end([Outcome(1)])
    assert keeper.spans[0].ends == []
