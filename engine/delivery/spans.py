"""Spans of messages that sources receive and sinks send, by the semantic conventions of OpenTelemetry for messaging.

A source's span lasts until the journal has the message, a sink's until the system has confirmed it. The message goes on
in the context of its span: in the journal as record headers, beside the properties it came with; from a sink as the
properties `traceparent` and `tracestate`. Spans are made only where `tracing.endpoint` is configured.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.connectors.addresses import parsed
from engine.message import ROUTE
from engine.telemetry.tracing import Operation
from engine.trace_context import of_headers, of_properties, with_context

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.connectors.base import Outcome, Outgoing
    from engine.kafka.journal import Done, Journal
    from engine.message import Message, Record
    from engine.telemetry.tracing import Span, Tracing
    from routes.model import BrokerConfig, Route, SinkConfig

__all__ = ["SinkSpans", "SourceSpans"]

_KAFKA_TOPIC = "JMS_Kafka_Topic"
_EXPIRED = "expired"
_REFUSED = "refused"


class SourceSpans:
    """Spans of one source's messages."""

    def __init__(self, tracing: Tracing, source: BrokerConfig) -> None:
        self._tracing = tracing
        self._source = source
        self._system = _system(source)

    def append(self, journal: Journal, message: Message, done: Done) -> bool:
        """Appends a message to the journal within a span; returns and raises as `Journal.append` does."""
        destination = self._destination(message)
        attributes = {**_common(self._system, destination, message), "jmsbridge.source": self._source.name}
        span = self._tracing.begin(Operation.RECEIVE, destination, of_properties(message.properties), attributes)

        def journaled(error: Exception | None) -> None:
            span.end(None if error is None else type(error).__name__)
            done(error)

        try:
            # A message that is not taken is delivered again, and then gets another span.
            return journal.append(message, journaled, span.context or None)
        except Exception as error:
            span.end(type(error).__name__)
            raise

    def _destination(self, message: Message) -> str:
        if self._source.type.own_cluster and (topic := message.properties.get(_KAFKA_TOPIC)):
            return topic.text
        return _name(message.headers.get("JMSDestination", ""))


class SinkSpans:
    """Spans of the messages of one worker of a sink."""

    def __init__(self, tracing: Tracing, routes: Iterable[Route], sink: SinkConfig) -> None:
        self._tracing = tracing
        self._sink = sink
        self._system = _system(sink)
        publications = (each for route in routes for each in route.publications if each.target.sink == sink.name)
        self._templates = {
            each.route.name: str(each.target.address) for each in publications if each.target.address.references
        }
        self._open: dict[int, Span] = {}
        """Open spans by the number of the message."""

    def begin(self, outgoing: Outgoing, record: Record) -> Outgoing:
        """Begins a message's span and puts its context into the message; a message sent again keeps its span."""
        route = record.header(ROUTE) or ""
        destination, template = _name(outgoing.address), _name(self._templates.get(route, ""))
        attributes = _common(self._system, destination, outgoing.message)
        attributes |= {"jmsbridge.sink": self._sink.name, "jmsbridge.route": route}
        if template:
            attributes["messaging.destination.template"] = template
        message = outgoing.message
        parent = of_headers(record.headers) or of_properties(message.properties)
        span = self._open[outgoing.number] = self._tracing.begin(
            Operation.SEND, template or destination, parent, attributes
        )
        properties = with_context(message.properties, span.context or parent)
        return replace(outgoing, message=replace(message, properties=properties))

    def end(self, outcomes: Iterable[Outcome]) -> None:
        """Ends the spans of messages that the system has confirmed or refused, or that have expired."""
        for outcome in outcomes:
            if (span := self._open.pop(outcome.number, None)) is not None:
                span.end(_EXPIRED if outcome.expired else None if outcome.refusal is None else _REFUSED)

    def forget(self, numbers: Sequence[int]) -> None:
        """Forgets the spans of messages that another worker sends again."""
        for number in numbers:
            self._open.pop(number, None)


def _system(broker: BrokerConfig) -> str:
    """Returns the value of `messaging.system`; a system that is not a JMS broker has the bridge's own name."""
    return "jms" if broker.type.is_jms else broker.type.name


def _common(system: str, destination: str, message: Message) -> dict[str, str]:
    attributes = {"messaging.system": system, "messaging.destination.name": destination}
    if message_id := message.headers.get("JMSMessageID"):
        attributes["messaging.message.id"] = message_id
    if correlation_id := message.headers.get("JMSCorrelationID"):
        attributes["messaging.message.conversation_id"] = correlation_id
    return attributes


def _name(address: str) -> str:
    """Returns the name in an address, such as `orders` of `queue:orders`."""
    parts = parsed(address)
    return parts[1] if parts else address
