"""Request and reply across systems without stored state: the request itself carries the return address of its reply.

A sink gives each request a token (`ReturnAddress`) that its system sends back with the reply: as the correlation id
over JMS, as the last word of the reply subject over NATS. `ReplySource` receives replies and decodes the token; the
reply then passes through journal and router like any message, to the sink that leads back to the requester. Restarts in
between do no harm. Only the figures of timeouts are kept in memory, and their loss is harmless.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

import structlog

from engine.connectors.base import WrappedSource
from routes.properties import JmsType, Property
from routes.targets import REPLY_FORMAT, REPLY_SINK, REPLY_TO, REQUEST_FORMAT

if TYPE_CHECKING:
    from engine.connectors.base import Delivery, Source
    from engine.message import Message
    from engine.telemetry.meters import SinkMetrics
    from routes.model import Config, SinkConfig, SourceConfig

__all__ = ["ReplySource", "Requests", "ReturnAddress", "listener"]

_PREFIX = "jb1-"
_FIELDS = 5
_MOST_WATCHED = 100_000
_TIMES = range(1, 10**18)
"""Range of deadlines that a reply can carry; a token made up by hand may contain any number."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReturnAddress:
    """Return address of a reply, in a form that survives every system: letters, digits, `-` and `_`."""

    sink: str
    """Name of the sink that leads back to the requester."""
    address: str
    """Address to which that sink sends the reply."""
    correlation_id: str | None
    """Id by which the requester recognises the reply."""
    deadline_ms: int
    """Milliseconds since 1970 at which the request counts as timed out, and its reply expires."""
    format: str | None = None
    """Wire format of the request, and so of its reply; None if the requester's system has only one."""

    def encode(self) -> str:
        """Encodes the address as a token; without a format it is a token of earlier versions."""
        own = () if self.format is None else (self.format,)
        fields = [self.sink, self.address, self.correlation_id, self.deadline_ms, *own]
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        return _PREFIX + base64.urlsafe_b64encode(text).decode().rstrip("=")

    @staticmethod
    def decode(token: str | None) -> ReturnAddress | None:
        """Decodes a token; None for any text that is not a token."""
        if token is None or not token.startswith(_PREFIX):
            return None
        text = token.removeprefix(_PREFIX)
        try:
            fields = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            # Tokens of earlier versions have no format.
            sink, address, correlation_id, deadline, form = [*fields, None][:_FIELDS]
        except (ValueError, TypeError, binascii.Error, RecursionError):
            return None
        known = isinstance(sink, str) and isinstance(address, str) and isinstance(deadline, int)
        if not known or not isinstance(correlation_id, str | None) or not isinstance(form, str | None):
            return None
        return ReturnAddress(sink, address, correlation_id, deadline, form)


class Requests:
    """Requests of one worker of a sink: assigns their return addresses and counts timeouts. Thread-safe."""

    def __init__(self, config: Config, sink: SinkConfig, worker: int, metrics: SinkMetrics) -> None:
        self._config = config
        self._sink = sink
        self._metrics = metrics
        self.worker = worker
        """Number of the sink's worker, from 1."""
        self.reply_to = None if sink.reply_to is None else sink.reply_to + (f".{worker}" if worker > 1 else "")
        """Address to which services send replies for this worker; None if the sink takes no replies."""
        self._lock = Lock()
        self._open: OrderedDict[str, int] = OrderedDict()
        self._warned: set[str] = set()
        self._warned_of: set[str] = set()
        """Sources already logged for a reply address to which no reply may go."""

    def outgoing(self, message: Message) -> tuple[Message, str | None]:
        """Returns the message to be sent, and its reply address; None unless it is a request that gets a reply."""
        asked_from = message.headers.get("JMSReplyTo")
        if not asked_from:
            return message, None
        beside = self._config.sink_beside(message.source)
        if not (beside or self._sink).type.may_be_sent_to(asked_from):
            return self._without_reply(message, asked_from), None
        if beside is not None and self._same_broker(beside):
            return message, asked_from
        if beside is None or self.reply_to is None:
            return message, self._unanswerable(message.source, asked_from)
        known_by = message.headers.get("JMSCorrelationID") or message.headers.get("JMSMessageID")
        deadline = _now_ms() + round(self._sink.reply_timeout_seconds * 1000)
        form = message.properties.get(REQUEST_FORMAT)
        token = ReturnAddress(beside.name, asked_from, known_by, deadline, form.text if form else None).encode()
        self._watch(token, deadline)
        if self._sink.type.token_in_address:
            return message, f"{self.reply_to}.{token}"
        return replace(message, headers={**message.headers, "JMSCorrelationID": token}), self.reply_to

    def answered(self, token: str) -> None:
        """Notes that a reply arrived; it may be the second one to a request."""
        with self._lock:
            self._open.pop(token, None)
        self._metrics.replied()

    def count_timeouts(self) -> None:
        """Counts the requests that have timed out since the last call; the loop calls it regularly."""
        now, late = _now_ms(), 0
        with self._lock:
            # All requests have the same timeout, so they stand in the order of their deadlines.
            while self._open and next(iter(self._open.values())) <= now:
                self._open.popitem(last=False)
                late += 1
        if late:
            self._metrics.timed_out(late)
            _log.warning("requests without a reply", sink=self._sink.name, requests=late)

    def _watch(self, token: str, deadline_ms: int) -> None:
        self._metrics.requested()
        with self._lock:
            self._open[token] = deadline_ms
            if len(self._open) > _MOST_WATCHED:
                self._open.popitem(last=False)

    def _same_broker(self, other: SinkConfig) -> bool:
        return other.type is self._sink.type and self._config.url(other) == self._config.url(self._sink)

    def leads_back(self, to: ReturnAddress) -> bool:
        """Returns True if a reply may be sent to that address.

        A client that answers can make up a token with an address of its own choice.
        """
        types = {sink.name: sink.type for sink in self._config.sinks}
        return to.sink not in types or types[to.sink].may_be_sent_to(to.address)

    def _without_reply(self, message: Message, asked_from: str) -> Message:
        """Returns the message without its reply address, because a reply there would manage a server."""
        if message.source not in self._warned_of:
            self._warned_of.add(message.source)
            _log.warning(
                "a reply address is left out: no reply may go there", source=message.source, address=asked_from[:200]
            )
        headers = {name: text for name, text in message.headers.items() if name != "JMSReplyTo"}
        return replace(message, headers=headers)

    def _unanswerable(self, source: str, asked_from: str) -> str | None:
        """Returns the reply address, or None, of a request whose reply the bridge cannot bring back.

        Within one kind of system the address stays as it is, because a broker beside it may know the address. Kafka has
        no such addresses of its own: one in a record comes from elsewhere, and may belong to this system.
        """
        came_from = next((each.type for each in self._config.sources if each.name == source), None)
        if came_from is not None and (came_from is self._sink.type or came_from.own_cluster):
            return asked_from
        if source not in self._warned:
            self._warned.add(source)
            own = self._sink.name
            missing = f"sink.{own}.reply-to" if self.reply_to is None else f"a sink beside source '{source}'"
            _log.warning("requests go out without a reply address", source=source, sink=own, missing=missing)
        return None


class ReplySource(WrappedSource):
    """Source of replies: a reply with a token goes back to the requester, any other is an ordinary message."""

    def __init__(self, source: Source, sink: SinkConfig, requests: Requests) -> None:
        super().__init__(source)
        self._sink = sink
        self._requests = requests

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next delivery; a reply with a token gets properties that say where it goes."""
        delivery = super().receive(timeout_seconds)
        if delivery is None:
            return None
        token = self._token(delivery.message)
        address = ReturnAddress.decode(token)
        if address is None or token is None or not self._requests.leads_back(address):
            return delivery
        self._requests.answered(token)
        return replace(delivery, message=self._returned(delivery.message, address))

    def _returned(self, message: Message, to: ReturnAddress) -> Message:
        """Returns the reply as it goes to the requester, with an expiration no later than the request's deadline.

        A service may have copied all headers of the request into its reply.
        """
        headers = dict(message.headers)
        headers.pop("JMSCorrelationID", None)
        if to.correlation_id:
            headers["JMSCorrelationID"] = to.correlation_id
        if _spelt(headers.get("JMSReplyTo")) == _spelt(self._requests.reply_to):
            headers.pop("JMSReplyTo", None)
        expiration_ms = message.expiration_ms or to.deadline_ms
        if to.deadline_ms in _TIMES:
            headers["JMSExpiration"] = str(min(expiration_ms, to.deadline_ms))
        own = {REPLY_SINK: to.sink, REPLY_TO: to.address}
        if to.format is not None:
            own[REPLY_FORMAT] = to.format
        properties = {**message.properties, **{name: Property(text, JmsType.STRING) for name, text in own.items()}}
        # A reply is not on its way round a circle of bridges, whatever message its headers were copied from.
        return replace(message, headers=headers, properties=properties, origins=())

    def _token(self, message: Message) -> str | None:
        if self._sink.type.token_in_address:
            return message.headers.get("JMSDestination", "").rpartition(".")[2]
        return message.headers.get("JMSCorrelationID")


def listener(sink: SinkConfig, reply_to: str) -> SourceConfig:
    """Configuration of the source that receives replies for one worker of a sink, on a connection like the sink's."""
    assert sink.type.source is not None
    connection = sink.shared() | {"name": sink.reply_source, "workers": 1}
    return sink.type.source(**connection, destinations=(reply_to + sink.type.reply_wildcard,))


def _spelt(address: str | None) -> str | None:
    """Normalises an address: `/queue/a` and `queue/a` become `queue:a`."""
    return None if address is None else address.removeprefix("/").replace("/", ":", 1)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
