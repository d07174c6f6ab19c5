"""Mapping between NATS messages and canonical messages, in both directions: pure functions.

JMS headers travel as NATS headers, in a frame of the Java bridge (`header_frame`), or not at all; `WireFormat` selects
the form. `docs/connectors/nats.md` documents the mapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from engine.connectors.base import RESERVED, RefusedError
from engine.connectors.nats import header_frame, json_frame, typed_frame
from engine.connectors.nats.header_frame import FrameError
from engine.connectors.nats.headers import NameCache, pack, parse
from engine.connectors.nats.settings import WireFormat
from engine.connectors.numbers import whole
from engine.message import BODY, BODY_TYPES, NO_BODY, NULL_BODY, ORIGIN, TYPES, BodyType, Message
from engine.property_names import NATS, not_kept
from engine.trace_context import of_properties, with_context
from routes.properties import HEADER_FIELDS, JmsType, Property, decode_types, encode_types
from routes.targets import REPLY_FORMAT, REQUEST_FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MESSAGE_ID", "FrameFault", "IncomingMessage", "Stored", "reply_format", "stored", "to_message", "to_wire"]

MESSAGE_ID = "Nats-Msg-Id"
"""Header by which JetStream recognises a message that was published before."""

_BRIDGE = "jmsbridge."
_PROVIDER = "JMS_JmsBridge_"
"""Prefix of properties that only a bridge may set; they are dropped from incoming messages."""
_SERVER = "nats-"
"""Prefix of headers that command the server, such as to delete a stream's messages; compared in lower case, since the
server ignores case."""
_NOT_SENT = frozenset({"JMSDestination", "JMSReplyTo", "JMSRedelivered", "JMSXDeliveryCount"})
"""Fields that describe how the bridge received the message; the receiver sets its own."""
_WITHOUT_TEXT = (NULL_BODY, NO_BODY)
_BODIES = {kind.value: kind for kind in BodyType if kind is not BodyType.TEXT}
_CODES = {WireFormat.TYPED: typed_frame.CODES_0_3, WireFormat.TYPED_1_0: typed_frame.CODES_1_0}
_FORMATS = {each: Property(each.value, JmsType.STRING) for each in WireFormat}
_SHORT_ACK_TOKENS = 9
_FIELD, _OWN, _PROPERTY, _NOTHING = range(4)


class IncomingMessage(NamedTuple):
    """NATS message as received."""

    subject: str
    reply: str
    """Reply subject, empty if there is none; for a message of a stream, the subject of its acknowledgement."""
    headers: bytes
    """Header block, empty if there is none."""
    body: bytes


class Stored(NamedTuple):
    """Facts about a message that JetStream delivers, taken from its acknowledgement subject."""

    stream: str
    sequence: str
    """Sequence number in the stream; at most 19 digits."""
    deliveries: int
    """Number of deliveries, including this one."""
    milliseconds: int
    """Time at which the stream stored the message, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class FrameFault:
    """Reason why a frame cannot be decoded; the whole payload is then the body of the message."""

    why: str
    body_only: bool
    """True if the payload counts as an ordinary body, as the Java bridge treats faulty typed frames."""


def stored(reply: str) -> Stored | None:
    """Parses an acknowledgement subject (ADR-15 of nats-architecture-and-design); None if `reply` is not one.

    The form is `$JS.ACK.STREAM.CONSUMER.DELIVERIES.SEQUENCE.CONSUMER-SEQUENCE.NANOSECONDS.PENDING`; newer servers
    insert a domain and an account after `ACK`.
    """
    tokens = reply.split(".")
    if tokens[:2] != ["$JS", "ACK"]:
        return None
    if len(tokens) != _SHORT_ACK_TOKENS:
        del tokens[2:4]
        if len(tokens) < _SHORT_ACK_TOKENS:
            return None
    deliveries, sequence, nanoseconds = whole(tokens[4]), whole(tokens[5]), whole(tokens[7])
    if deliveries is None or sequence is None or nanoseconds is None:
        return None
    return Stored(tokens[2], tokens[5], deliveries, nanoseconds // 1_000_000)


def to_message(
    incoming: IncomingMessage,
    facts: Stored | None,
    wire: WireFormat,
    source: str,
    default: Callable[[], tuple[str, int]],
    *,
    propagates: bool = True,
) -> tuple[Message, FrameFault | None]:
    """Returns the canonical message and the fault of its frame, None if there is none.

    `facts` is None for messages that are not from a stream. `default` supplies the message id and the time in
    milliseconds since 1970 for a message that has neither. With `propagates`, a trace context in the NATS headers is
    used even where other NATS headers are ignored.
    """
    fields, properties, bridge_headers, origins = _native(parse(incoming.headers) if incoming.headers else [])
    # Frames have no field for a message id, so the sender's id in the NATS headers counts also beside a frame.
    given = fields.get("JMSMessageID") or _given_id(bridge_headers)
    native = properties
    body, (framed, came_in, fault) = incoming.body, _framed(incoming.body, wire)
    body_types = bridge_headers.get(BODY_TYPES, "")
    if framed is not None:
        fields, properties = _of_frame(framed)
        body, body_type = framed.body, framed.body_type
    elif fault is not None and not fault.body_only:
        fields, properties, body_type = {}, {}, BodyType.BYTES
    elif wire is WireFormat.RAW:
        fields, properties, body_type = {}, {}, BodyType.of(body)
    else:
        body_type = _body_type(bridge_headers.get(BODY), body)
    if propagates and properties is not native and (beside := of_properties(native)):
        properties = with_context(properties, beside)
    _complete(fields, incoming, facts, given, default)
    if "JMSReplyTo" in fields:
        properties[REQUEST_FORMAT] = _FORMATS[came_in]
    is_without_text = not body and body_type is BodyType.TEXT and body_types in _WITHOUT_TEXT
    return Message(body, body_type, fields, properties, source, origins, body_types if is_without_text else ""), fault


def _framed(body: bytes, wire: WireFormat) -> tuple[Message | None, WireFormat, FrameFault | None]:
    """Returns the message in a frame, the format of the payload, and the fault of the frame.

    The message is None if the payload is not a frame of an expected format, or a faulty frame.
    """
    plain = WireFormat.RAW if wire is WireFormat.RAW else WireFormat.HEADERS
    try:
        if wire in (WireFormat.AUTO, WireFormat.JSON) and body.startswith(json_frame.MARKER):
            return header_frame.to_message(json_frame.decode(body)), WireFormat.JSON, None
    except FrameError as error:
        return None, plain, FrameFault(f"a faulty JSON frame: {error}", body_only=False)
    typed = WireFormat.TYPED if wire is WireFormat.AUTO else wire
    try:
        if (codes := _CODES.get(typed)) is not None and body.startswith(typed_frame.MARKER):
            return header_frame.to_message(typed_frame.decode(body, codes), known=codes.fields), typed, None
    except FrameError as error:
        return None, plain, FrameFault(f"a faulty typed frame: {error}", body_only=True)
    return None, plain, None


def _of_frame(framed: Message) -> tuple[dict[str, str], dict[str, Property]]:
    """Returns fields and properties of a frame; JMS fields that the frame carries as properties become fields."""
    fields = dict(framed.headers)
    properties: dict[str, Property] = {}
    for name, value in framed.properties.items():
        if name in HEADER_FIELDS:
            fields.setdefault(name, value.text)
        elif not _is_reserved(name):
            properties[name] = value
    return fields, properties


def _native(
    headers: list[tuple[str, str]],
) -> tuple[dict[str, str], dict[str, Property], dict[str, str], tuple[str, ...]]:
    """Splits NATS headers into fields, properties, the bridge's own headers with `Nats-Msg-Id`, and origins.

    Names are those before a sink spelled them for NATS. Of a repeated header the first counts, except that all origins
    are kept.
    """
    fields: dict[str, str] = {}
    texts: dict[str, str] = {}
    bridge_headers: dict[str, str] = {}
    origins = []
    for name, text in headers:
        meaning = _MEANINGS[name]
        if meaning == _PROPERTY:
            if texts.setdefault(_OWN_NAMES[name], text) is not text:
                not_kept(name, "NATS headers of one name: the first is the property")
        elif meaning == _FIELD:
            fields.setdefault(name, text)
        elif name == ORIGIN:
            origins.append(text)
        elif meaning == _OWN:
            bridge_headers.setdefault(name, text)
    types = decode_types(bridge_headers.get(TYPES, ""))
    properties = {name: Property(text, types.get(name)) for name, text in texts.items()}
    return fields, properties, bridge_headers, tuple(origins)


_OWN_NAMES = NameCache(NATS.decoded)


def _meaning(name: str) -> int:
    if name in HEADER_FIELDS:
        return _FIELD
    if name.startswith(_BRIDGE) or name == MESSAGE_ID:
        return _OWN
    return _NOTHING if _is_reserved(name) else _PROPERTY


_SPELLINGS = NameCache(NATS.encoded)
_MEANINGS = NameCache(_meaning)


def _is_reserved(name: str) -> bool:
    return name.startswith((_PROVIDER, _BRIDGE)) or name[: len(_SERVER)].lower() == _SERVER


def _body_type(declared: str | None, body: bytes) -> BodyType:
    # A declared text is checked all the same: a body that is not UTF-8 is bytes.
    return _BODIES.get(declared or "") or BodyType.of(body)


def _complete(
    fields: dict[str, str],
    incoming: IncomingMessage,
    facts: Stored | None,
    given: str | None,
    default: Callable[[], tuple[str, int]],
) -> None:
    """Adds fields from the subject, the server and the sender's id, and defaults for those every message must have."""
    fields["JMSDestination"] = f"topic:{incoming.subject}"
    for name in ("JMSMessageID", "JMSTimestamp"):
        if not fields.get(name, "set"):
            # An empty value says nothing, and redelivery is recognised by the message id.
            del fields[name]
    if given:
        fields.setdefault("JMSMessageID", given)
    if facts is not None:
        fields["JMSRedelivered"] = "true" if facts.deliveries > 1 else "false"
        fields["JMSXDeliveryCount"] = str(facts.deliveries)
        fields.setdefault("JMSMessageID", f"ID:{facts.stream}:{facts.sequence}")
        fields.setdefault("JMSTimestamp", str(facts.milliseconds))
        return
    if incoming.reply:
        fields["JMSReplyTo"] = f"topic:{incoming.reply}"
    fields.setdefault("JMSRedelivered", "false")
    if "JMSMessageID" not in fields or "JMSTimestamp" not in fields:
        fresh, now = default()
        fields.setdefault("JMSMessageID", fresh)
        fields.setdefault("JMSTimestamp", str(now))


def _given_id(bridge_headers: dict[str, str]) -> str | None:
    """Returns `Nats-Msg-Id` as a JMSMessageID, with the prefix `ID:`; None without that header."""
    given = bridge_headers.get(MESSAGE_ID)
    return given and (given if given.startswith("ID:") else f"ID:{given}")


def reply_format(message: Message) -> WireFormat | None:
    """Returns the wire format of a reply, which is that of its request.

    None if the message is not a reply, or if its request had no known format.
    """
    value = message.properties.get(REPLY_FORMAT)
    return None if value is None else next((each for each in _FORMATS if each == value.text), None)


def to_wire(message: Message, wire: WireFormat, identity: str, *, propagates: bool = True) -> tuple[bytes, bytes]:
    """Returns header block and payload of a message; `identity` becomes its `Nats-Msg-Id`.

    With `propagates`, the trace context is in the headers even in formats whose headers carry no properties.

    Raises:
        RefusedError: the message cannot be expressed in that format.
    """
    if wire is WireFormat.JSON:
        payload = json_frame.encode(header_frame.from_message(message))
    elif (codes := _CODES.get(wire)) is not None:
        try:
            payload = typed_frame.encode(header_frame.from_message(message, codes.fields), codes)
        except FrameError as error:
            raise RefusedError(str(error)) from error
    else:
        payload = message.body
    headers = [(MESSAGE_ID, identity), *[(ORIGIN, origin) for origin in message.origins]]
    if message.body_types in _WITHOUT_TEXT and message.body_type is BodyType.TEXT:
        headers.append((BODY_TYPES, message.body_types))
    if wire in (WireFormat.HEADERS, WireFormat.AUTO):
        headers += _native_headers(message)
    elif propagates:
        headers += of_properties(message.properties).items()
    return pack(headers), payload


def _native_headers(message: Message) -> list[tuple[str, str]]:
    headers = [(name, text) for name, text in message.headers.items() if name not in _NOT_SENT]
    typed: list[tuple[str, JmsType]] = []
    for name, value in message.named().items():
        if not name or _MEANINGS[name] != _PROPERTY:
            if not name.startswith(RESERVED):
                not_kept(name, "the name has a meaning for NATS" if name else "NATS has no header without a name")
            continue
        headers.append((_SPELLINGS[name], value.text))
        if value.type is not None:
            typed.append((name, value.type))
    if typed:
        headers.append((TYPES, encode_types(typed)))
    if message.body_type is not BodyType.TEXT:
        headers.append((BODY, message.body_type.value))
    return headers
