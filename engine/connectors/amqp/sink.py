"""Sink for AMQP 1.0 brokers: each message is an unsettled transfer, confirmed by its outcome.

Many messages are under way at once. Each address has a link of its own, which keeps the order of sending. Artemis
settles a message when it has stored it, and drops one that comes again with the same id, so messages that a lost
connection left in doubt are simply sent again.

A message that the broker rejects, and all messages for an address that the broker does not let the bridge send to, are
refused for good. A condition that may pass, such as a full address, ends the connection, so that everything is sent
again in order.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from engine.connectors.addresses import kind_and_name
from engine.connectors.amqp.encoded_edits import with_duplicate_id
from engine.connectors.amqp.links import Sender
from engine.connectors.amqp.performatives import (
    ACCEPTED,
    Condition,
    DeliveryState,
    Role,
    Terminus,
    condition_of,
    disposition,
    field,
    number,
    outcome_of,
    serial,
    transaction_of,
)
from engine.connectors.amqp.session import AmqpSession
from engine.connectors.amqp.traits import SPECIFIED
from engine.connectors.amqp.transformer_settings import Transformer
from engine.connectors.amqp.transformers import outbound_of
from engine.connectors.base import NotConnectedError, Outcome, RefusedError
from engine.connectors.expiry import ExpiryTimes
from engine.connectors.features import Feature, is_topic, require
from engine.connectors.jms import MOST_IN_DOUBT, MOST_IN_FLIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.amqp.settings import AmqpSinkConfig
    from engine.connectors.base import Outgoing
    from engine.connectors.endpoint import SystemEndpoint

__all__ = ["AmqpSink"]

_MOST_LINKS = 200
_MOST_DOUBTS = 3
_DOUBT_SECONDS = 5.0
_LAST_WORDS_SECONDS = 0.5
_REFUSING = frozenset(
    {
        "amqp:decode-error",
        "amqp:invalid-field",
        "amqp:link:message-size-exceeded",
        "amqp:not-allowed",
        "amqp:not-found",
        "amqp:not-implemented",
        "amqp:precondition-failed",
        "amqp:unauthorized-access",
    }
)
"""Error conditions that no other try can change."""
_PASSING = frozenset({"amqp:resource-limit-exceeded", "amqp:resource-locked"})
"""Error conditions that pass by themselves."""


class AmqpSink:
    """Sink that sends the messages of one worker over a connection of its own."""

    most_under_way = MOST_IN_FLIGHT
    settle_seconds = 0.0
    gives_duplicate_ids = True
    """True if each message has an id by which Artemis drops it when it comes again."""

    def __init__(self, endpoint: SystemEndpoint[AmqpSinkConfig], worker: int) -> None:
        """Sets up the sink without connecting. SetupError if a TLS file is missing or invalid."""
        sink = endpoint.settings
        self._endpoint = endpoint
        self._sink = sink
        container = sink.client_id or f"{endpoint.bridge_id}.sink.{sink.name}"
        self._session = AmqpSession(sink, f"sink '{sink.name}'", endpoint.url, f"{container}.{worker}")
        self._session.on_disposition = self._settled
        self._transformers = sink.transformers
        self._traits = SPECIFIED
        self._outbound = outbound_of(sink.transformers, self._traits)
        self._links: OrderedDict[str, Sender] = OrderedDict()
        """Links by destination, least recently used first."""
        self._open: dict[int, str] = {}
        """Destinations of the messages without an outcome, by message number."""
        self._deliveries: dict[int, int] = {}
        """Message numbers of the deliveries without an outcome, by delivery id."""
        self._named = 0
        """Number of links made so far; makes link names unique, as the broker may still know a link that has ended."""
        self._expiry = ExpiryTimes()
        self._known: list[Outcome] = []
        self._doubts: dict[int, int] = {}
        """Rejections for unexplained reasons so far, by message number."""
        self._failure: NotConnectedError | None = None
        self._suspected: dict[str, None] = {}
        """Destinations whose links the broker had not answered when it ended a session. RabbitMQ does so at a link that
        it refuses, and does not say at which. So their links are asked for one after the other, the first alone."""
        self._held: list[Outgoing] = []
        """Messages to the other destinations of these, and those behind one that is sent alone."""
        self._alone = 0
        """Number of messages that are sent one at a time, since the broker ended a session at one of them. RabbitMQ
        does so at a message that it does not take, and does not say at which."""

    @property
    def address(self) -> str:
        """Broker as `amqp://host:port`."""
        return str(self._session.endpoint)

    def connect(self) -> None:
        """Connects and logs in; NotConnectedError with a longer back-off after a refused login.

        HardFailureError if a route sends to a topic and the broker would put the message into a queue.
        """
        self._links.clear()
        self._open.clear()
        self._deliveries.clear()
        self._expiry.clear()
        self._known.clear()
        self._held.clear()
        self._failure = None
        self._session.open()
        require(self._endpoint, self._session)
        self.most_under_way = MOST_IN_FLIGHT if self._session.traits.drops_duplicates else MOST_IN_DOUBT
        if self._session.traits != self._traits:
            self._traits = self._session.traits
            self._outbound = outbound_of(self._transformers, self._traits)

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Sends as many messages as there is credit for, in one write; the rest follows with further credit."""
        try:
            if self._failure:
                # The messages would be sent ahead of those that have to be sent again.
                raise self._failure
            for each in messages:
                self._add(each)
            if self._held:
                self._go_on()
            self._push()
        except NotConnectedError as error:
            # The outcomes that the broker has already told are returned before the error is raised.
            self._lost(error)
            if not self._known:
                raise

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Returns the outcomes that arrived; NotConnectedError after a loss, once all known outcomes are returned."""
        if not self._known and self._failure is None:
            if time.monotonic() >= self._session.renew_at:
                # No more is taken, so that nothing is in doubt when the connection ends.
                self.most_under_way = 0
                self._session.check_login(is_idle=not (self._open or self._held))
            self._listen(timeout_seconds)
        if self._failure and not self._known:
            raise self._failure
        known, self._known = self._known, []
        return known

    def close(self) -> None:
        """Detaches the links and closes the connection in order."""
        self._session.close(list(self._links.values()))

    def _add(self, outgoing: Outgoing) -> None:
        try:
            if (self._alone and self._open) or self._is_held(outgoing.address):
                self._held.append(outgoing)
                return
            link = self._link(outgoing.address)
            encoded, form = self._outbound.encoded(outgoing.message, outgoing.address, outgoing.reply_to)
        except RefusedError as error:
            self._known.append(Outcome(outgoing.number, str(error)))
            return
        if self.gives_duplicate_ids and self._traits.drops_duplicates and not self._is_native(link, form):
            encoded = with_duplicate_id(encoded, outgoing.id)
        self._open[outgoing.number] = link.terminus.destination
        self._expiry.add(outgoing)
        link.add(outgoing.number, encoded, form)

    def _is_held(self, address: str) -> bool:
        """Returns True if the link of an address waits for that of another one, see `_suspected`."""
        if not self._suspected:
            return False
        destination = self._terminus(address).destination
        return destination in self._suspected and destination != next(iter(self._suspected))

    def _is_native(self, link: Sender, form: int) -> bool:
        """Returns True if the message is sent as it once came (AMQPNative), so that the bridge may not change it."""
        used = self._transformers.settings(link.terminus.destination, form)
        return used is not None and used.transformer is Transformer.AMQP_NATIVE

    def _link(self, address: str) -> Sender:
        if is_topic(address) and (instead := self._traits.lacks.get(Feature.WRITE_TOPIC)):
            raise RefusedError(f"{self._session.server} does not honour {Feature.WRITE_TOPIC} over AMQP: {instead}")
        terminus = self._terminus(address)
        link = self._links.get(terminus.destination)
        if link is None:
            self._make_room()
            self._named += 1
            link = Sender(self._session, f"{terminus.destination}#{self._named}", terminus)
            self._links[terminus.destination] = link
            self._session.attach(link)
        else:
            self._links.move_to_end(terminus.destination)
        return link

    def _terminus(self, address: str) -> Terminus:
        kind, name = kind_and_name(address)
        is_declared = kind == "queue" and self._traits.declares_queues
        return Terminus(name, kind, spelt=self._traits.spelling(kind, name), is_declared=is_declared)

    def _make_room(self) -> None:
        """Ends the least recently used link without messages under way, if there are too many links."""
        if len(self._links) < _MOST_LINKS:
            return
        busy = set(self._open.values())
        for address, link in self._links.items():
            if address not in busy and link.attached:
                del self._links[address]
                self._session.detach(link)
                return

    def _push(self) -> None:
        frames: list[bytes] = []
        self._drop_expired()
        for link in self._links.values():
            frames += link.frames(self._deliveries)
            for message in link.too_large():
                self._record_outcome(message, f"it is larger than the broker takes for {link.terminus.address}")
        if frames:
            self._session.write(b"".join(frames))

    def _listen(self, timeout_seconds: float) -> None:
        """Handles frames that have arrived, waiting for them at most `timeout_seconds`."""
        try:
            while self._session.pump(timeout_seconds) and self._failure is None:
                self._check_links()
                if self._suspected or self._held:
                    self._go_on()
                self._push()
                timeout_seconds = 0
            while self._failure is not None and self._open and self._session.pump(_LAST_WORDS_SECONDS):
                pass
        except NotConnectedError as error:
            self._lost(error)
        self._drop_expired()

    def _lost(self, error: NotConnectedError) -> None:
        """Keeps the first failure of a connection, and suspects the links that the broker has ended a session for."""
        if self._failure is not None:
            return
        self._failure = error
        condition = self._session.ended
        waiting = [(each, link) for each, link in self._links.items() if not link.attached and not link.fault]
        if condition is None:
            return
        if not waiting:
            self._suspect_messages(condition)
            return
        if len(waiting) == 1 and waiting[0][0] in self._suspected:
            ((address, link),) = waiting
            for message in link.unsent:
                if self._is_final(message, condition):
                    self._record_outcome(message, f"the broker says: {condition}; may the bridge send to {address}?")
        self._suspected |= dict.fromkeys(address for address, _ in waiting)

    def _suspect_messages(self, condition: Condition) -> None:
        """Refuses a message that went alone when the broker ended the session; else has all in doubt sent alone."""
        if self._alone and len(self._open) == 1:
            (message,) = self._open
            if self._is_final(message, condition):
                self._record_outcome(message, f"the broker says: {condition}")
            return
        self._alone = len(self._open)

    def _go_on(self) -> None:
        """Sends the messages that were held, as far as the link before theirs is there."""
        while self._suspected:
            first = next(iter(self._suspected))
            self._release()
            link = self._links.get(first)
            if link is not None and not link.attached:
                return
            del self._suspected[first]
        self._release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for each in held:
            self._add(each)

    def _drop_expired(self) -> None:
        """Drops messages that have expired while they waited for credit."""
        if expired := self._expiry.due():
            for link in self._links.values():
                for message in link.withdraw(expired):
                    self._record_outcome(message, expired=True)

    def _check_links(self) -> None:
        """Removes links that the broker has ended, and decides about their messages.

        The messages are refused if that is final for all of them; else NotConnectedError, so that they are sent again.
        """
        ended = [(each, link, link.fault) for each, link in self._links.items() if link.fault]
        busy = set(self._open.values()) if ended else set()
        for address, link, condition in ended:
            if address not in busy:
                # For example the link to a temporary queue whose owner has left.
                del self._links[address]
                continue
            final = not link.sent and [each for each in link.unsent if self._is_final(each, condition)]
            if not final or len(final) < len(link.unsent):
                raise self._session.fail(f"the broker says of {address}: {condition}", _DOUBT_SECONDS)
            del self._links[address]
            for each in final:
                self._record_outcome(each, f"the broker says: {condition}; may the bridge send to {address}?")

    def _settled(self, fields: Sequence[Any]) -> None:
        """Handles a disposition of the broker."""
        if not field(fields, 0):
            return
        first = number(fields, 1)
        last = number(fields, 2, first)
        state, details = outcome_of(transaction_of(field(fields, 4))[1])
        if state in (0, DeliveryState.RECEIVED):
            return
        if not field(fields, 3):
            self._session.send(disposition(Role.SENDER, first, last, ACCEPTED))
        for delivery in self._among(first, last):
            self._outcome(self._deliveries.pop(delivery), state, details)

    def _among(self, first: int, last: int) -> list[int]:
        """Returns the delivery ids of a range that have no outcome yet."""
        if first == last:
            return [first] if first in self._deliveries else []
        length = serial(last - first)
        return [delivery for delivery in self._deliveries if serial(delivery - first) <= length]

    def _outcome(self, message: int, state: int, details: Sequence[Any]) -> None:
        address = self._open.get(message)
        if address is None:
            return
        is_unroutable = state == DeliveryState.RELEASED and self._traits.releases_unroutable
        # As everywhere, a topic that nobody has subscribed to takes a message, and keeps none.
        if state == DeliveryState.ACCEPTED or (is_unroutable and address.startswith("topic:")):
            self._record_outcome(message)
            return
        if is_unroutable:
            self._record_outcome(message, f"the broker releases it: no queue takes messages to {address}")
            return
        if state == DeliveryState.REJECTED:
            condition = condition_of(field(details, 0)) or Condition("amqp:rejected", "")
            if self._is_final(message, condition):
                self._record_outcome(message, f"the broker says: {condition}")
                return
            why = f"the broker says of {address}: {condition}"
        elif state == DeliveryState.MODIFIED and field(details, 1):
            self._record_outcome(message, f"the broker says that it cannot be delivered to {address}")
            return
        else:
            why = f"the broker does not take messages to {address} just now"
        self._failure = self._failure or NotConnectedError(why, _DOUBT_SECONDS)

    def _record_outcome(self, message: int, refusal: str | None = None, *, expired: bool = False) -> None:
        del self._open[message]
        self._alone = max(self._alone - 1, 0)
        self._expiry.discard(message)
        self._doubts.pop(message, None)
        self._known.append(Outcome(message, refusal, expired))

    def _is_final(self, message: int, condition: Condition) -> bool:
        """Returns True if a message is refused for good; for an unexplained reason, only after some tries."""
        if condition.name in _PASSING:
            return False
        if condition.name in _REFUSING or condition.description.startswith(self._traits.final_errors):
            return True
        self._doubts[message] = self._doubts.get(message, 0) + 1
        return self._doubts[message] >= _MOST_DOUBTS
