"""Timeline of one message, told from any of its records: in the journal, in a destination, for a sink, a dead letter.

The record leads to the journal, and through the audit of dead letters to the first of several replays. From there it
goes forward: the generation that routed the message, and its routes; the records that they published; dead letters,
who settled them, and the story of a replayed copy; sinks and replies. Every search is bounded, and an event says what
is not known, and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.dead_letters.audit import Action, entries, settled
from engine.dead_letters.letter import DeadLetter, original
from engine.dead_letters.replay import retry_due
from engine.dead_letters.store import DeadLetterStore
from engine.errors import HardFailureError, UsageError
from engine.explain import Ending, explain
from engine.find import sentences
from engine.find.record_lookup import RecordLookup
from engine.kafka.clients import KafkaClients, sink_group
from engine.kafka.reader import Position
from engine.message import COPY_OF, DESTINATION, POSITION, REPLAYS, SOURCE, Message
from engine.record import key_text
from engine.router.past_routes import configuration_of, generation_of
from engine.router.position_store import PositionStore
from engine.schemas.documents import documents_of
from engine.schemas.route_schemas import route_schemas
from engine.times import iso, milliseconds
from engine.trace_context import trace_id
from engine.tracing_section import TracingConfig
from routes.errors import BridgeError
from routes.targets import REPLY_TO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.dead_letters.audit import AuditEntry
    from engine.explain import Explanation
    from engine.find.record_lookup import LookUp
    from engine.kafka.reader import LocatedRecord
    from engine.message import Record
    from routes.model import Config, SinkConfig

__all__ = ["Timeline", "TimelineEvent", "timeline"]

_COPYING = (Action.REPLAYED, Action.ROUTED_AGAIN)
"""Actions that write a copy of a message into the journal."""
_MOST_REPLAYS = 20
"""Greatest number of replays of one message that are followed."""
_COPY_PARTS = 4
"""Number of parts of a position with the number of a copy."""
_NUMBER = re.compile("[0-9]{1,9}")
_MILLISECONDS = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """Event in the life of a message."""

    at: int | None
    """Time in milliseconds since 1970; None if it is not known, or if the event is a state at present."""
    what: str
    """The event in a short phrase, such as `published`."""
    detail: str
    """A sentence about it; also what is not known, and why."""
    record: Position | None = None
    """The record that shows the event; None if there is none."""
    link: str = ""
    """URL of the message's trace, as `tracing.link` makes it; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Account of one message."""

    record: LocatedRecord
    """The record that was asked about."""
    events: tuple[TimelineEvent, ...]
    """Events in the order of time; one without a time stands behind its cause."""
    records: tuple[LocatedRecord, ...] = ()
    """All records of the message that were found, whose values the details may quote."""
    keys: tuple[str, ...] = ()
    """Keys that routes chose, also of records that were not found; the details may quote them."""
    commands: tuple[str, ...] = ()
    """Commands that settled dead letters or repeated records; the details may quote them."""


def timeline(config: Config, position: Position) -> Timeline:
    """Returns the account of the message that a record belongs to.

    Raises:
        UsageError: there is no record at the position, or it is not one of this bridge.
        UnreachableError: Kafka does not answer.
        HardFailureError: Kafka refuses access.
    """
    lookup = RecordLookup(KafkaClients(config.kafka_access))
    story = _Story(config, lookup, lookup.at(position))
    story.tell()
    return Timeline(
        story.asked, _in_order(story.events), tuple(story.records), tuple(story.keys), tuple(story.commands)
    )


@dataclass(frozen=True, slots=True)
class _Copy:
    """Value of the header `POSITION`: a journal position, and the number of a copy of that message, from 0."""

    place: Position
    number: int

    @staticmethod
    def parse(text: str) -> _Copy | None:
        """Reads the header; None for any other text."""
        parts = text.split(":")
        number = parts.pop() if len(parts) == _COPY_PARTS else "0"
        try:
            place = Position.parse(":".join(parts), "")
        except UsageError:
            return None
        is_topic = place.topic != "" and ":" not in place.topic
        return _Copy(place, int(number)) if is_topic and _NUMBER.fullmatch(number) else None

    @staticmethod
    def of(record: Record) -> _Copy | None:
        """Reads the last such header of a record, which the last bridge has written; None if there is none."""
        return _Copy.parse(_position(record).decode("utf-8", "replace"))

    @property
    def text(self) -> str:
        """The header, as the router writes it."""
        return f"{self.place}:{self.number}" if self.number else str(self.place)

    def is_in(self, located: LocatedRecord) -> bool:
        """True if a record is this copy of the message."""
        return _position(located.record) == self.text.encode()

    def order(self, located: LocatedRecord) -> int | None:
        """Place of a published record relative to this copy, in the order of their journal partition.

        0 for the copy itself; None for a record of another partition, and for other copies of the message.
        """
        other = _Copy.of(located.record)
        if other is None or (other.place.topic, other.place.partition) != (self.place.topic, self.place.partition):
            return None
        if other.place.offset == self.place.offset:
            return 0 if other.number == self.number else None
        return other.place.offset - self.place.offset


def _position(record: Record) -> bytes:
    """The last header `POSITION` of a record; empty if it has none."""
    return next((value for name, value in reversed(record.headers) if name == POSITION), None) or b""


class _Story:
    """The events of one message, as they are found."""

    def __init__(self, config: Config, lookup: RecordLookup, asked: LocatedRecord) -> None:
        self.asked = asked
        self.events: list[TimelineEvent] = []
        self.records: list[LocatedRecord] = [asked]
        self.keys: list[str] = []
        self.commands: list[str] = []
        self._config = config
        self._lookup = lookup
        self._store = DeadLetterStore.of(config)
        self._notes = PositionStore(self._store.kafka, config.bridge_id, config.journal)
        self._told: list[Position] = []
        """Journal positions whose events are told."""

    def tell(self) -> None:
        """Finds the events; UsageError if the record is not one of this bridge."""
        position = self.asked.position
        if position.topic == self._config.journal.topic:
            self._tell(self._first(_Copy(position, 0), self.asked.record))
        elif copy := _Copy.of(self.asked.record):
            self._tell(self._first(copy, self.asked.record))
        elif self._is_letter(position) and DeadLetter(self.asked).reason:
            letter = DeadLetter(self.asked)
            message = Message.from_record(self.asked.record)
            self._sent(message)
            self._add(letter.time_ms, "not journaled", f"source '{message.source}' took it, and wrote a dead letter")
            self._letters([letter])
        else:
            msg = (
                f"{position}: the record has no valid header {POSITION}, so it is not one that this bridge has "
                f"written; expected a record of the journal '{self._config.journal.topic}', of a destination, of a "
                "sink's topic or of the dead letters"
            )
            raise UsageError(msg)
        if all(event.record != position for event in self.events):
            text = "it has the position of the message, as a record has that another program has copied"
            self._add(self.asked.time_ms, "this record", text, position)

    def _add(self, time_ms: int | None, what: str, detail: str, record: Position | None = None, link: str = "") -> None:
        self.events.append(
            TimelineEvent(None if time_ms is None or time_ms < 0 else time_ms, what, detail, record, link)
        )

    def _is_letter(self, position: Position) -> bool:
        return position.topic in (self._store.topic, self._store.quarantine)

    def _first(self, copy: _Copy, record: Record) -> Position:
        """The journal position of the message before its replays, as far as the audit knows it."""
        if record.header(REPLAYS) is None and record.header(COPY_OF) is None:
            return copy.place
        by_copy = {entry.copy: entry for entry in entries(self._store, self._store.keys())}
        place = copy.place
        for _ in range(_MOST_REPLAYS):
            entry = by_copy.get(str(place))
            before = None if entry is None or entry.action not in _COPYING else _Copy.parse(entry.journal)
            if before is None:
                break
            place = before.place
        if place == copy.place and not self._is_letter(self.asked.position):
            text = "from a dead letter or a journal record that is not known: the audit has no entry about this copy"
            self._add(None, "replayed", text)
        return place

    def _tell(self, place: Position) -> None:
        """Tells the events of the message at a journal position, and of its replayed copies."""
        if place in self._told:
            return
        if len(self._told) > _MOST_REPLAYS:
            self._add(None, "not known", f"later replays: {_MOST_REPLAYS} are followed; jms-bridge message {place}")
            return
        self._told.append(place)
        located = self._journaled(place)
        since_ms = self.asked.time_ms if located is None else located.time_ms
        prefix = f"{place}:".encode()
        looked = self._lookup.look(
            self._store.topic, since_ms, lambda each: (_position(each.record) + b":").startswith(prefix)
        )
        letters = list(map(DeadLetter, looked.found))
        self.records += looked.found
        own_copy, position = _Copy.of(self.asked.record), self.asked.position
        is_new = all(each.position != position for each in letters) and (
            position.topic == self._store.topic or not letters
        )
        if self._is_letter(position) and is_new and own_copy and own_copy.place == place:
            letters.append(DeadLetter(self.asked))
        record = located.record if located else self._kept(letters)
        explanation = self._routed(place, record, since_ms)
        self._published(place, explanation, since_ms, record, letters, looked)
        if not looked.is_complete or looked.has_gap:
            self._add(None, "not known", f"other dead letters of the message: not found {looked.extent}")
        self._letters(letters)
        self._copied(place)

    def _copied(self, place: Position) -> None:
        """The events of the user who wrote the journal record, or of its replay and of its copy."""
        if place.topic != self._config.journal.topic:
            return
        bounds, topic_id = self._lookup.bounds(place.topic), self._lookup.offsets.identity(place.topic)
        entry = settled(self._store, place.topic, topic_id, bounds, (place,)).get(place)
        if entry is None or (copy := _Copy.parse(entry.copy)) is None:
            return
        if entry.action is Action.SENT:
            self._add(milliseconds(entry.time), "entered", self._settled_by(entry), place)
            return
        self._add(milliseconds(entry.time), "routed again", self._settled_by(entry), copy.place)
        self._tell(copy.place)

    def _journaled(self, place: Position) -> LocatedRecord | None:
        """The journal record, with the events that it tells; None if it is gone."""
        try:
            located = self.asked if place == self.asked.position else self._lookup.at(place)
            self.records.append(located)
        except UsageError as error:
            self._add(None, "not known", f"the record in the journal: {error}; retention may have removed it")
            return None
        message = Message.from_record(located.record)
        if not {REPLAYS, COPY_OF} & dict(located.record.headers).keys():
            self._sent(message)
        link = self._config.section(TracingConfig).link_to(trace_id(located.record.headers))
        self._add(located.time_ms, "journaled", sentences.journaled(located.record, message), place, link)
        self._request(located, message)
        return located

    def _sent(self, message: Message) -> None:
        timestamp = message.headers.get("JMSTimestamp", "")
        sent_ms = int(timestamp) if _MILLISECONDS.fullmatch(timestamp) else 0
        self._add(sent_ms or None, "sent", sentences.sent(message))

    def _kept(self, letters: Iterable[DeadLetter]) -> Record | None:
        """The message as a dead letter has kept it; None if none has it whole."""
        whole = (each for each in letters if not each.truncated)
        return next((original(each, self._config.bridge_id) for each in whole), None)

    def _routed(self, place: Position, record: Record | None, now_ms: int) -> Explanation | None:
        """The explanation by the routes that were in force, or by the present ones; with its events."""
        if record is None:
            self._add(None, "not known", "the route, since the message is no longer in the journal")
            return None
        if place.topic != self._config.journal.topic:
            self._add(None, "not known", f"the route: another bridge routed it, whose journal is '{place.topic}'")
            return None
        then, why = self._routes(place)
        present = self._explained(record, self._config, place, now_ms)
        past = None if then is None else self._explained(record, then, place, now_ms)
        explanation = present if past is None else past
        made = [each for each in (past, present) if each is not None and not isinstance(each, str)]
        self.keys += [copy.key for each in made for copy in each.publications if copy.key is not None]
        if isinstance(explanation, str):
            self._add(None, "not known", f"the route: {explanation}")
            return None
        what = "routed" if explanation.publication else "not routed"
        self._add(None, what, f"{sentences.routed(explanation)} ({why})")
        if past is not None and not isinstance(present, str):
            now = sentences.outcomes(present)
            if now != sentences.outcomes(explanation):
                self._add(None, "today", f"it would be {'; '.join(now)} (jms-bridge explain --journal {place})")
        return explanation

    def _routes(self, place: Position) -> tuple[Config | None, str]:
        """The configuration with the routes that were in force for a journal record, and a text about them."""
        unknown = "by the routes of today; those of then are not known: "
        try:
            starts = self._notes.starts(self._store.keys(), self._lookup.offsets.identity(self._store.journal.topic))
            found = generation_of(starts, place.partition, place.offset)
            if found is None:
                return None, unknown + "the start of that run of the router is no longer noted in journal.state-topic"
            then = configuration_of(found.start, self._config)
        except BridgeError as error:
            return None, f"{unknown}{error}"
        return then, f"by the routes in force from {iso(found.time_ms)} on"

    def _explained(self, record: Record, config: Config, place: Position, now_ms: int) -> Explanation | str:
        """The explanation, or the reason why there is none."""
        try:
            return explain(
                record,
                config,
                position=str(place),
                now_ms=now_ms,
                documents=documents_of(config),
                schemas=route_schemas(config),
            )
        except BridgeError as error:
            return str(error)

    def _published(
        self,
        place: Position,
        explanation: Explanation | None,
        since_ms: int,
        record: Record | None,
        letters: list[DeadLetter],
        looked: LookUp,
    ) -> None:
        """The events of each publication of a message, but for those of its dead letters."""
        dead = {copy.number for each in letters if not each.sink and (copy := _Copy.of(each.located.record))}
        publications = () if explanation is None else explanation.publications
        is_output = self.asked.position.topic != self._config.journal.topic and not self._is_letter(self.asked.position)
        own_copy = _Copy.of(self.asked.record) if is_output else None
        texts: dict[int, str] = {}
        for number, each in enumerate(publications):
            if number in dead or each.ending is Ending.COUNTED:
                continue
            if each.ending is Ending.PUBLISHED:
                texts[number] = self._publication(each, _Copy(place, number), since_ms, own_copy, letters)
            elif each.ending is Ending.DEAD_LETTER:
                texts[number] = f"{sentences.outcome(each)}: not found {looked.extent}"
            else:
                self._add(None, str(each.ending), sentences.outcome(each))
        missing = [text for text in texts.values() if text]
        is_new = not dead and len(missing) == len(texts) and publications
        if own_copy and own_copy.place == place and own_copy.number >= len(publications):
            self._one(None, self.asked, letters)
        elif is_new and (waiting := self._waiting(place)):
            self._add(None, "waiting", waiting)
            return
        expires = 0 if record is None else Message.from_record(record).expiration_ms
        expired = f"; it may have expired before it was routed, at {iso(expires)}" if expires else ""
        for text in missing:
            self._add(None, "not found", text + expired)

    def _publication(
        self, explanation: Explanation, copy: _Copy, since_ms: int, own: _Copy | None, letters: list[DeadLetter]
    ) -> str:
        """The events of one publication; returns a text about a record that is not found, else an empty one."""
        topic, key = explanation.topic or "", explanation.key
        try:
            looked = self._lookup.look(
                topic,
                since_ms,
                copy.is_in,
                key=None if key is None else key.encode("utf-8", "replace"),
                only_first=True,
                order=copy.order,
            )
        except HardFailureError as error:
            return f"{sentences.outcome(explanation)}: the record is not known: {error}"
        found = looked.found[0] if looked.found else self.asked if own == copy else None
        if found is None:
            return f"{sentences.outcome(explanation)}: not found {looked.extent}"
        self._one(explanation if found.position.topic == topic else None, found, letters)
        return ""

    def _waiting(self, place: Position) -> str | None:
        """A sentence about a message that the router has not come to yet; None if it has."""
        try:
            noted = self._notes.read(self._store.keys())
        except BridgeError:
            return None
        if noted is None:
            return "for the router, which has not run yet"
        at = noted.progress.positions.get(place.partition, 0)
        if at > place.offset:
            return None
        return (
            f"for the router, by its last note: at {iso(noted.time_ms)} it was at offset {at:,} of partition "
            f"{place.partition}, {place.offset - at:,} before this message"
        )

    def _one(self, explanation: Explanation | None, located: LocatedRecord, letters: list[DeadLetter]) -> None:
        """The events of one published record."""
        self.records.append(located)
        sink = next((each for each in self._config.sinks if each.topic == located.position.topic), None)
        by = f" by route '{explanation.route.name}'" if explanation and explanation.route else ""
        key = "" if located.record.key is None else f", key {located.record.key.decode('utf-8', 'replace')}"
        to = f"to kafka:{located.position.topic}"
        if sink:
            to = f"for sink '{sink.name}', to {located.record.header(DESTINATION)}"
        self._add(located.time_ms, "published", f"{to}{by}{key}{sentences.claimed(located.record)}", located.position)
        if sink is None:
            return
        copy = _Copy.of(located.record)
        if not any(each.sink == sink.name and _Copy.of(each.located.record) == copy for each in letters):
            self._add(None, *self._at_sink(sink, located))
        self._reply(sink, located)

    def _at_sink(self, sink: SinkConfig, located: LocatedRecord) -> tuple[str, str]:
        """The state of a sink's record for which the sink has written no dead letter."""
        position = located.position
        group = sink_group(self._config.bridge_id, sink.name)
        try:
            committed = self._lookup.offsets.committed(group, position.topic, [position.partition]).get(
                position.partition
            )
        except HardFailureError as error:
            return "not known", f"whether sink '{sink.name}' has delivered it: {error}"
        if committed is None:
            return (
                "waiting",
                f"for sink '{sink.name}', which has confirmed nothing of partition {position.partition} yet",
            )
        if committed <= position.offset:
            return "waiting", f"for sink '{sink.name}': {position.offset - committed:,} records are before it"
        expires = Message.from_record(located.record).expiration_ms
        expired = f", or dropped if it had expired by then ({iso(expires)})" if expires else ""
        return "delivered", f"by sink '{sink.name}'{expired}; the time is not known, since Kafka notes offsets alone"

    def _reply(self, sink: SinkConfig, sent: LocatedRecord) -> None:
        """The reply to a sink's record, if it asks for one."""
        message = Message.from_record(sent.record)
        if not (asked_from := message.headers.get("JMSReplyTo")):
            return
        beside = self._config.sink_beside(message.source)
        if beside is None or sink.reply_to is None:
            self._add(None, "not known", f"a reply: the bridge carries none from sink '{sink.name}' to {asked_from}")
            return
        if beside.type is sink.type and self._config.url(beside) == self._config.url(sink):
            self._add(None, "not known", f"a reply: it goes to {asked_from} at the same broker, past the bridge")
            return
        known_by = _known_by(message)

        def takes(located: LocatedRecord) -> bool:
            if located.record.header(SOURCE) != sink.reply_source:
                return False
            found = Message.from_record(located.record)
            return found.text_of(REPLY_TO) == asked_from and found.headers.get("JMSCorrelationID") == known_by

        text = f"received by sink '{sink.name}', for {asked_from}"
        wait = f"; the sink waits {sink.reply_timeout_seconds:g} s from when it has sent the request"
        self._linked("reply", text, known_by, sent.time_ms, takes, wait)

    def _request(self, reply: LocatedRecord, message: Message) -> None:
        """The request to which a journal record is the reply, if it is one."""
        sink = next((each for each in self._config.sinks if message.source == each.reply_source), None)
        asked_from = message.text_of(REPLY_TO)
        if sink is None or asked_from is None:
            return
        known_by = message.headers.get("JMSCorrelationID")

        def takes(located: LocatedRecord) -> bool:
            found = Message.from_record(located.record)
            return found.headers.get("JMSReplyTo") == asked_from and _known_by(found) == known_by

        since_ms = reply.time_ms - round(sink.reply_timeout_seconds * 1000)
        self._linked("request", "this message is the reply to it", known_by, since_ms, takes)

    def _linked(
        self,
        what: str,
        text: str,
        known_by: str | None,
        since_ms: int,
        takes: Callable[[LocatedRecord], bool],
        otherwise: str = "",
    ) -> None:
        """The event of another message in the journal, whose key is most likely `known_by`."""
        key = None if known_by is None else key_text(known_by).encode("utf-8", "replace")
        looked = self._lookup.look(self._config.journal.topic, since_ms, takes, key=key, only_first=True)
        if looked.found:
            position = looked.found[0].position
            self._add(looked.found[0].time_ms, what, f"{text}; its timeline: jms-bridge message {position}", position)
        else:
            self._add(None, f"no {what}", f"found {looked.extent}{otherwise}")

    def _letters(self, letters: list[DeadLetter]) -> None:
        """The events of dead letters: the failure, who settled them, and the story of a copy."""
        for each in letters:
            self._add(each.time_ms, "dead letter", sentences.letter_reason(each), each.position)
            entry = self._entry(each)
            if entry is None:
                text = retry_due(each, self._store.retries)
                text = text or f"it is neither replayed nor discarded (jms-bridge dlt replay {each.position})"
                self._add(None, "open", text, each.position)
                continue
            copy = _Copy.parse(entry.copy)
            self._add(
                milliseconds(entry.time), str(entry.action), self._settled_by(entry), copy.place if copy else None
            )
            if entry.action is Action.REPLAYED and copy is not None:
                self._tell(copy.place)
            elif entry.action is Action.QUARANTINED and copy is not None:
                self._quarantined(copy.place)

    def _settled_by(self, entry: AuditEntry) -> str:
        """A sentence about who settled a dead letter, or repeated a journal record."""
        self.commands.append(entry.actor.command)
        return sentences.settled_by(entry)

    def _quarantined(self, position: Position) -> None:
        """The events of a dead letter in quarantine."""
        try:
            letter = DeadLetter(self.asked if position == self.asked.position else self._lookup.at(position))
            self.records.append(letter.located)
        except UsageError as error:
            self._add(None, "not known", f"the message in quarantine: {error}")
            return
        entry = self._entry(letter)
        if entry is None:
            self._add(None, "open", "the message in quarantine is neither replayed nor discarded", position)
            return
        copy = _Copy.parse(entry.copy)
        self._add(milliseconds(entry.time), str(entry.action), self._settled_by(entry), copy.place if copy else None)
        if copy is not None:
            self._tell(copy.place)

    def _entry(self, letter: DeadLetter) -> AuditEntry | None:
        """The entry of the audit that settles a letter, or another letter of the same failure; None for an open one."""
        topic, position = letter.position.topic, letter.position
        bounds = self._lookup.bounds(topic)
        origins = (letter.origin,) if letter.origin else ()
        known = settled(self._store, topic, self._lookup.offsets.identity(topic), bounds, (position,), origins)
        entry = known.get(position) or next(iter(known.values()), None)
        return entry if entry is not None and entry.settles(has_seal=letter.has_seal) else None


def _known_by(message: Message) -> str | None:
    """The id by which the sender of a request knows its reply."""
    return message.headers.get("JMSCorrelationID") or message.headers.get("JMSMessageID")


def _in_order(events: Iterable[TimelineEvent]) -> tuple[TimelineEvent, ...]:
    """The events by their times; one without a time stays behind the one that it was found after."""
    keyed: list[tuple[int, TimelineEvent]] = []
    last = 0
    for event in events:
        last = last if event.at is None else event.at
        keyed.append((last, event))
    return tuple(event for _, event in sorted(keyed, key=lambda pair: pair[0]))
