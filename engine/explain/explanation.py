"""Explanation of one message's way: each route tried, the values in its predicate, the key, and the published record.

Computes in Python, for one message, what the router does in Spark for all (`router.plan`, `router.failures`); a test
checks that both agree. Needs no server. Sizes are not checked, because the limits are those of the topics.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.claims.claim import CLAIM, Claim
from engine.explain.edited_headers import edited
from engine.message import (
    BODY,
    BODY_TYPES,
    DESTINATION,
    ONLY,
    ORIGIN,
    POSITION,
    ROUTE,
    TARGET,
    TYPES,
    BodyType,
    Message,
    Record,
)
from engine.schemas.body_json import UnfitBodyError
from routes.body_steps import UnconvertibleBodyError, not_converted
from routes.model import BodyConversion, HeaderStyle, NonDurable, Unmatched
from routes.predicate import evaluate, trace
from routes.predicate.mask import UNMASKABLE, too_large
from routes.predicate.nodes import DocumentFormat
from routes.properties import HEADER_FIELDS, NUMBERS, SEED_NAMES, JmsType, decode_types
from routes.sections import HELD, HELD_BECAUSE
from routes.targets import KAFKAS_OWN, TOPIC

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from engine.schemas.route_schemas import SchemaReader
    from routes.model import Config, Publication, Route, SinkConfig, Target
    from routes.predicate import Trace
    from routes.predicate.bodies import Bounds, DocumentReader
    from routes.predicate.mask import Mask

__all__ = [
    "Ending",
    "Explanation",
    "Failure",
    "Step",
    "explain",
    "no_route_takes",
    "published_headers",
    "result",
    "rows",
]

_JMS = "jms."
_SHORT = {name: short for short, name in SEED_NAMES.items()}
_INTEGERS = {JmsType.BYTE: ">b", JmsType.SHORT: ">h", JmsType.INT: ">i", JmsType.LONG: ">q"}
_FLOATS = {JmsType.FLOAT: ">f", JmsType.DOUBLE: ">d"}
_BASE64 = re.compile(r"([A-Za-z0-9+/]*)(={0,2})")
_BLANKS = re.compile(r"\s")
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


class Ending(StrEnum):
    """Final outcome of a message."""

    PUBLISHED = "published"
    COUNTED = "counted"
    """The message is not routed, only counted."""
    STOP = "stop"
    """The message failed in its route, whose policy stops the bridge."""
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class Step:
    """A route that was tried, with the values in its predicates."""

    route: Route
    include: Trace
    exclude: Trace | None
    fault: str = ""
    """Reason why the body is not of the route's format, if the route takes the message to fail it for that."""

    @property
    def wanted(self) -> bool:
        """True if the route takes the message: include is true, or could be with a readable body; exclude is not."""
        is_included = self.include.value is True or self.fault != ""
        return is_included and (self.exclude is None or self.exclude.value is not True)


@dataclass(frozen=True, slots=True)
class Failure:
    """A reason why a message cannot be published by the route that takes it."""

    reason: str
    """Reason as in dead letters and metrics."""
    detail: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Full account of the router's treatment of one message."""

    message: Message
    ending: Ending
    reason: str
    """Reason it is not published: `own-origin`, `non-durable`, `expired`, `unmatched`, or that of the first failure."""
    steps: tuple[Step, ...]
    """Routes in the order they were tried, the last one that takes the message last; empty if it is not routed at
    all."""
    publication: Publication | None
    """Route that takes the message, and destination; None if no route does."""
    key_name: str | None
    """Name of the value from which the route takes the key."""
    key: str | None
    failures: tuple[Failure, ...]
    """Failures in the order in which they are checked; the first decides."""
    topic: str | None
    """Topic of the published record; for a dead letter the dead-letter topic."""
    destination: str | None
    """Destination to which the route's sink sends the message from that topic; None without a sink."""
    headers: tuple[tuple[str, bytes | None], ...]
    """Headers of the published record; empty if the message is not published."""
    changed_body: bytes | None = None
    """Body that leaves, if the route changes bodies; None if it leaves as it came, or not at all."""
    claim: Claim | None = None
    """Claim that the published record has in place of the body, which leaves as a file; None if it has the body."""
    copies: tuple[Explanation, ...] = ()
    """Explanations of the further publications of the message."""

    @property
    def route(self) -> Route | None:
        """Route that takes the message."""
        return self.publication.route if self.publication else None

    @property
    def publications(self) -> tuple[Explanation, ...]:
        """The explanations of all publications, of which this one is the first."""
        return self, *self.copies


def explain(
    record: Record,
    config: Config,
    *,
    position: str | None = None,
    now_ms: int | None = None,
    documents: DocumentReader | None = None,
    schemas: SchemaReader | None = None,
) -> Explanation:
    """Explains the router's treatment of this journal record, now or at `now_ms` (milliseconds since 1970).

    `position` is the record's `topic:partition:offset` in the journal, for the published header. `documents` reads
    bodies with a schema; None if there is no registry. `schemas` finds those that routes name; without it bodies count
    as fitting them, and leave as they are.
    """
    message = Message.from_record(record, documents, config.routing.bounds)
    if reason := _guard(
        message, config.bridge_id, config.routing.non_durable, int(time.time() * 1000) if now_ms is None else now_ms
    ):
        return _ended(message, Ending.COUNTED, reason)
    steps = _steps(message, config.routes)
    publications = [publication for step in steps if step.wanted for publication in step.route.publications]
    if config.has_copies and (only := record.header(ONLY)) is not None:
        publications = [publication for publication in publications if publication.label == only]
    if not publications:
        dead = config.routing.on_unmatched is Unmatched.DEAD_LETTER
        ending = Ending.DEAD_LETTER if dead else Ending.COUNTED
        return _ended(message, ending, "unmatched", steps, config.letter_topic if dead else None)
    place = position or f"{config.journal.topic}:?:?"
    places = (place, *(f"{place}:{number}" for number in range(1, len(publications))))
    first, *copies = (
        _published(record, message, config, steps, each, at, schemas)
        for each, at in zip(publications, places, strict=True)
    )
    return replace(first, copies=tuple(copies))


def no_route_takes(record: Record, config: Config, documents: DocumentReader | None = None) -> bool:
    """Returns True if a journal record is not passed over, and yet none of the routes takes it; as `explain` tells.

    Faster than `explain`, since nothing is traced. A message that has expired counts as any other. `documents` as for
    `explain`.
    """
    message = Message.from_record(record, documents, config.routing.bounds)
    if _guard(message, config.bridge_id, config.routing.non_durable, now_ms=0):
        return False
    only = record.header(ONLY) if config.has_copies else None
    return not any(
        (only is None or any(each.label == only for each in route.publications))
        and message.fulfils(route.taken)
        and not (route.exclude is not None and message.fulfils(route.exclude))
        for route in config.routes
    )


def _published(
    record: Record,
    message: Message,
    config: Config,
    steps: tuple[Step, ...],
    publication: Publication,
    place: str,
    schemas: SchemaReader | None,
) -> Explanation:
    """The explanation of one publication of a message; `place` is the header `jmsbridge.position`."""
    route, target = publication.route, publication.target
    name, key = _key(record, message, publication)
    destination = _destination(message, target, config.sinks, config.own_topics)
    failures = _failures(record, message, publication, config.routing.key_pattern, destination, schemas)
    ending = Ending(route.on_soft_failure.value) if failures else Ending.PUBLISHED
    topic = target.topic or destination
    topics = {Ending.PUBLISHED: topic, Ending.DEAD_LETTER: config.letter_topic}
    style = HeaderStyle.TEXT if target.sink else config.routing.headers
    leaving = replace(record, headers=edited(record.headers, route.edits, message.text_of))
    if not failures:
        leaving = _changed(leaving, route, message.bounds, schemas)
    published = published_headers(leaving, style, config.bridge_id, place)
    body = leaving.value if (route.mask or route.converts) and ending is Ending.PUBLISHED else None
    is_large = route.claim_above is not None and len(leaving.value or b"") > route.claim_above
    claim = Claim.on(leaving.value or b"") if is_large and ending is Ending.PUBLISHED else None
    if claim is not None:
        published += ((CLAIM, str(claim).encode()),)
    if target.sink and destination is not None:
        published += ((DESTINATION, destination.encode()), (ROUTE, route.name.encode()))
        published += ((TARGET, publication.mark.encode()),) * config.has_copies
    return Explanation(
        message,
        ending,
        failures[0].reason if failures else "",
        steps,
        publication,
        name,
        key,
        failures,
        topics.get(ending),
        destination if target.sink and ending is Ending.PUBLISHED else None,
        published if ending is Ending.PUBLISHED else (),
        body,
        claim,
    )


def _ended(
    message: Message, ending: Ending, reason: str, steps: tuple[Step, ...] = (), topic: str | None = None
) -> Explanation:
    return Explanation(message, ending, reason, steps, None, None, None, (), topic, None, ())


def _guard(message: Message, bridge_id: str, non_durable: NonDurable, now_ms: int) -> str:
    """The reason why the message is not routed at all; empty if it is."""
    if bridge_id in message.origins:
        return "own-origin"
    if non_durable is NonDurable.DROP and message.headers.get("JMSDeliveryMode") == "NON_PERSISTENT":
        return "non-durable"
    expires = message.headers.get("JMSExpiration", "")
    if re.fullmatch(r"\s*\+?[0-9]{1,19}\s*", expires) and 0 < int(expires) <= now_ms:
        return "expired"
    return ""


def _steps(message: Message, routes: Iterable[Route]) -> tuple[Step, ...]:
    steps = []
    body = message.content
    for route in routes:
        exclude = None if route.exclude is None else trace(route.exclude, message.lookup, body)
        steps.append(Step(route, trace(route.include, message.lookup, body), exclude, _body_fault(message, route)))
        if steps[-1].wanted and not route.goes_on:
            break
    return tuple(steps)


def _body_fault(message: Message, route: Route) -> str:
    if route.read_as is None or not evaluate(route.taken, message.lookup, message.content):
        return ""
    return message.content.fault(route.read_as) or ""


def _changed(record: Record, route: Route, bounds: Bounds, schemas: SchemaReader | None) -> Record:
    """The record with its body as mask, steps and schema of the route leave it, for a body that they can change."""
    if route.mask:
        record = _masked(record, route.mask, bounds)
    if not route.converts:
        return record
    headers = (header for header in record.headers if header[0] not in (BODY, BODY_TYPES))
    value = _converted(record.value, route, bounds, schemas)
    return replace(record, value=value, headers=(*headers, (BODY, route.left_kind.encode())))


def _converted(body: bytes | None, route: Route, bounds: Bounds, schemas: SchemaReader | None) -> bytes | None:
    """The body as steps and schema of the route leave it; UnconvertibleBodyError or UnfitBodyError if they cannot."""
    if route.steps:
        body = route.steps.body(body, bounds)
    if route.written_schema is None or schemas is None:
        return body
    return schemas.written(route.written_schema, body, from_xml=route.steps is not None and route.steps.reads_xml)


def _conversion_fault(
    message: Message, kind: str, publication: Publication, schemas: SchemaReader | None
) -> str | None:
    """The reason why a body cannot be converted as its route says; None if it can, or if the mask cannot be applied."""
    route, body, bounds = publication.route, None if message.has_null_value else message.body, message.bounds
    if not route.converts or _mask_fault(message, route):
        return None
    if kind not in (BodyType.TEXT, BodyType.BYTES) and not publication.converts_json:
        return not_converted(kind)
    try:
        _converted(route.mask.body(body, bounds) if route.mask else body, route, bounds, schemas)
    except (UnconvertibleBodyError, UnfitBodyError) as error:
        return str(error)
    return None


def _mask_fault(message: Message, route: Route) -> str | None:
    """The reason why the mask of a route cannot be applied; None if it can, or if there is none."""
    if route.mask is None:
        return None
    content = message.content
    if content.has_schema:
        return UNMASKABLE + (content.fault(DocumentFormat.JSON) or too_large(message.bounds))
    return route.mask.fault(None if message.has_null_value else message.body, message.bounds)


def _masked(record: Record, mask: Mask, bounds: Bounds) -> Record:
    """The record with the body, and the types of its values, as the mask leaves them; for a body that is JSON."""
    body, kind, types = record.value or b"", record.header(BODY), record.header(BODY_TYPES)
    headers = record.headers
    if types is not None and kind in (BodyType.MAP, BodyType.STREAM):
        left = mask.types(body, types, is_map=kind == BodyType.MAP).encode()
        headers = tuple((name, left if name == BODY_TYPES else value) for name, value in headers)
    return replace(record, value=mask.body(body, bounds), headers=headers)


def _failures(
    record: Record,
    message: Message,
    publication: Publication,
    key_pattern: str,
    destination: str | None,
    schemas: SchemaReader | None,
) -> tuple[Failure, ...]:
    route, target = publication.route, publication.target
    failures = [Failure(HELD, HELD_BECAUSE)] if route.paused else []
    body = record.header(BODY) or BodyType.TEXT
    if not _convertible(body, message.body, publication.conversion):
        detail = f"the body is of type {body}, neither text nor bytes"
        failures.append(Failure("body-not-convertible", detail))
    elif unconvertible := _conversion_fault(message, body, publication, schemas):
        failures.append(Failure("body-not-convertible", unconvertible))
    if fault := _body_fault(message, route) or _mask_fault(message, route):
        failures.append(Failure("body-unreadable", fault))
    if route.schema and schemas and (unfit := schemas.fault(route.schema, message.body, message.origin)):
        failures.append(Failure("body-invalid", unfit))
    name, key = _key(record, message, publication)
    found = message.lookup(name)
    if key is None and (route.key or not target.sink):
        failures.append(Failure("key-not-found", f"there is no value under '{name}' to take the key from"))
    elif route.key and found and not _key_is_valid(found.text, found.type, key_pattern):
        detail = f"the key '{found.text[:100]}' from '{name}' is neither a number nor text that matches"
        failures.append(Failure("key-invalid", f"{detail} routing.key-pattern"))
    if destination is None:
        detail = f"the destination {target} cannot be made: a value is missing, empty, or none that fits there"
        failures.append(Failure("destination-unresolved", detail))
    return tuple(failures)


def _key(record: Record, message: Message, publication: Publication) -> tuple[str, str | None]:
    """The name of the key's source, and the key; None if there is no key, or an empty one."""
    if publication.target.sink and not publication.route.key:
        return "the journal", (record.key or b"").decode("utf-8", "replace") or None
    name = publication.route.key or "JMSMessageID"
    return name, message.text_of(name) or None


def _destination(
    message: Message, target: Target, sinks: Iterable[SinkConfig], own_topics: Collection[str]
) -> str | None:
    """The destination of the message in a route with that target; None if it cannot be made."""
    filled = target.address.fill(message.text_of)
    if filled is None:
        return None
    if target.sink is None:
        # Without Kafka, it is not known which topics exist.
        if target.topics:
            return filled if filled in target.topics else None
        is_another = filled not in own_topics and not filled.startswith(KAFKAS_OWN)
        return filled if is_another and TOPIC.fullmatch(filled) else None
    types = {sink.name: sink.type for sink in sinks}
    return filled if types[target.sink].may_be_sent_to(filled) else None


def _convertible(kind: str, body: bytes, conversion: BodyConversion) -> bool:
    if conversion is BodyConversion.ANY or kind in (BodyType.TEXT, BodyType.BYTES):
        return True
    if conversion is BodyConversion.AS_IS or kind not in (BodyType.MAP, BodyType.STREAM, BodyType.OBJECT):
        return False
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _key_is_valid(text: str, declared: JmsType | None, pattern: str) -> bool:
    if declared in NUMBERS:
        return True
    return declared in (None, JmsType.STRING) and re.fullmatch(pattern, text) is not None


def result(explanation: Explanation) -> str:
    """The outcome of the message, in a sentence."""
    why = explanation.reason
    route = f"route '{explanation.route.name}'" if explanation.route else ""
    match explanation.ending:
        case Ending.PUBLISHED:
            place = f"kafka:{explanation.topic}"
            if explanation.publication and (sink := explanation.publication.target.sink):
                place = f"{sink}:{explanation.destination} (by way of {place})"
            claim = explanation.claim
            body = f"its body of {claim.size:,} bytes as a file in claim-check.folder, " if claim else ""
            return f"published to {place} by {route}, key {explanation.key}, {body}with headers"
        case Ending.COUNTED:
            return {
                "own-origin": "not routed: this bridge routed it before (jmsbridge.origin); counted as own-origin",
                "non-durable": "not routed: routing.non-durable=drop and it is NON_PERSISTENT; counted as non-durable",
                "expired": "not routed: it has expired (JMSExpiration); counted as expired",
                "unmatched": "not routed: no route takes it; counted as unmatched",
            }[why]
        case Ending.STOP:
            return f"the bridge stops with exit code 5: {why}, and {route} has on-soft-failure=stop"
        case Ending.SKIP:
            return f"skipped and logged: {why}, and {route} has on-soft-failure=skip"
        case Ending.DEAD_LETTER:
            return f"dead letter in kafka:{explanation.topic}: {why}"


def rows(trace: Trace, depth: int = 0) -> Iterator[tuple[int, str, str]]:
    """The rows of a predicate and its parts: depth, text, and value for the message."""
    yield depth, trace.text, _value(trace)
    for part in trace.parts:
        yield from rows(part, depth + 1)


def _value(trace: Trace) -> str:
    if trace.value is None:
        return "unknown" if trace.is_condition else "(not set)"
    place = f", {trace.place}" if trace.place else ""
    if isinstance(trace.value, bool):
        return ("true" if trace.value else "false") + place
    return (f"'{trace.value}'" if isinstance(trace.value, str) else str(trace.value)) + place


Headers = tuple[tuple[str, bytes | None], ...]


def published_headers(record: Record, style: HeaderStyle, bridge_id: str, position: str) -> Headers:
    """The record's headers in a style, followed by this bridge as origin and the journal position."""
    if style is HeaderStyle.TEXT:
        headers = record.headers
    elif style is HeaderStyle.SHORT:
        headers = tuple((_short(name), value) for name, value in record.headers)
    else:
        types = decode_types(record.header(TYPES) or "")
        headers = tuple(_typed(name, value, types) for name, value in record.headers)
    return (*headers, (ORIGIN, bridge_id.encode()), (POSITION, position.encode()))


def _short(name: str) -> str:
    bare = name.removeprefix(_JMS)
    return _JMS + _SHORT[bare] if bare != name and bare in _SHORT else name


def _typed(name: str, value: bytes | None, types: Mapping[str, JmsType]) -> tuple[str, bytes | None]:
    if not name.startswith(_JMS):
        return name, value
    bare = name[len(_JMS) :]
    kind = HEADER_FIELDS.get(bare) or types.get(bare, JmsType.STRING)
    encoded = None if value is None else _encoded(value, kind)
    if encoded is None:
        return f"{_JMS}{JmsType.STRING}.{bare}", value
    return f"{_JMS}{kind}.{bare}", encoded


def _encoded(value: bytes, kind: JmsType) -> bytes | None:
    """The value in Kafka's binary form of the type; None if it does not fit the type."""
    text = value.decode("utf-8", "replace")
    try:
        if kind in _INTEGERS:
            return struct.pack(_INTEGERS[kind], int(text)) if _INTEGER.fullmatch(text) else None
        if kind in _FLOATS:
            return struct.pack(_FLOATS[kind], float(text))
        if kind is JmsType.BYTES:
            return _from_base64(text)
    except OverflowError:
        return struct.pack(_FLOATS[kind], float("-inf" if text.startswith("-") else "inf"))
    except (ValueError, struct.error):
        return None
    return value


def _from_base64(text: str) -> bytes | None:
    """Decodes base64 as Spark does: padding may be missing but not wrong, blanks are ignored; None if invalid."""
    bare = _BLANKS.sub("", text)
    match = _BASE64.fullmatch(bare)
    if match is None or len(match[1]) % 4 == 1 or (match[2] and len(bare) % 4 != 0):
        return None
    return base64.b64decode(match[1] + "=" * (-len(match[1]) % 4))
