"""Mapping between message files and canonical messages, in both directions: pure functions.

`docs/connectors/dropbox.md` documents the mapping. `engine.connectors.dropbox.file_name` parses and writes file names.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from engine.connectors.base import RESERVED, RefusedError
from engine.connectors.dropbox.file_name import LONGEST_BYTES, DropboxName, encode, fitted
from engine.message import BODY_TYPES, NO_BODY, NULL_BODY, ORIGIN, BodyType, Message
from engine.property_names import not_kept
from routes.properties import HEADER_FIELDS, JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.base import Outgoing

__all__ = ["Filename", "to_filename", "to_message"]

_PROVIDER = "JMS_"
"""Prefix of properties that a JMS provider sets, such as those of an AMQP source. They describe how the message was
received, so they are not sent."""
_MOST_BYTES = 16 * 1024 * 1024
_PREFIX = "ID:"
_KINDS = ("queue", "topic")
_BODIES: Mapping[str, BodyType] = {
    "M": BodyType.TEXT,
    "B": BodyType.BYTES,
    "S": BodyType.STREAM,
    "P": BodyType.MAP,
    "O": BodyType.OBJECT,
    "T": BodyType.TEXT,
}
_CLASSES = {kind: letter for letter, kind in _BODIES.items()}
_NO_BODY = "M"
"""Letter of a message without a body."""
_PROPERTY_FIELDS = frozenset({"JMSXGroupID", "JMSXGroupSeq"})
"""JMS fields without a field in a DropboxMQ name; they travel as properties, which JMS defines them to be."""
_PRIORITY = 4
_PRIORITIES = range(-(1 << 31), 1 << 31)
_TIMES = range(1, 1 << 63)
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_POSITION = re.compile(r"(?::([0-9]{1,9}):([0-9]{1,18})(?::[0-9]{1,9})?|([0-9]{1,18}))$")
"""Partition, offset and perhaps the copy at the end of a message's id, or a number alone."""


class Filename(NamedTuple):
    """File name of a message."""

    text: str
    message_id: str
    long: str | None
    """Full name if it is too long for a file name, and `text` is the part that fits; else None."""


def to_message(
    name: DropboxName, body: bytes, destination: str, source: str, modified_ms: int, *, redelivered: bool
) -> Message:
    """Returns the canonical message of a file.

    `modified_ms`, the modification time in milliseconds since 1970, is the timestamp if the name has no time.
    """
    timestamp = modified_ms if name.timestamp is None else name.timestamp
    fields = {
        "JMSMessageID": name.message_id if name.message_id.startswith(_PREFIX) else _PREFIX + name.message_id,
        "JMSDestination": destination,
        "JMSPriority": str(name.priority),
        "JMSTimestamp": str(timestamp),
        "JMSRedelivered": "true" if redelivered else "false",
    }
    if name.expiration:
        fields["JMSExpiration"] = str(name.expiration)
    if name.correlation_id is not None:
        fields["JMSCorrelationID"] = name.correlation_id
    if name.reply_to is not None:
        is_whole = name.reply_to.partition(":")[0] in _KINDS
        fields["JMSReplyTo"] = name.reply_to if is_whole else f"queue:{name.reply_to}"
    if name.type is not None:
        fields["JMSType"] = name.type
    properties: dict[str, Property] = {}
    origins: tuple[str, ...] = ()
    body_types = NO_BODY if name.message_class == _NO_BODY and not body else ""
    for key, value in name.properties.items():
        if key in _PROPERTY_FIELDS:
            fields[key] = value.text
        elif key == ORIGIN:
            origins = tuple(value.text.split(","))
        elif key == BODY_TYPES and value.text == NULL_BODY and name.message_class == "T" and not body:
            body_types = NULL_BODY
        elif _is_property(key):
            properties[key] = value
    return Message(body, _body_type(name.message_class, body), fields, properties, source, origins, body_types)


def to_filename(outgoing: Outgoing) -> Filename:
    """Returns the file name of a message, which is the same each time the message is sent again.

    Raises:
        RefusedError: the full name has more than 16 MiB.
    """
    message = outgoing.message
    properties = {
        key: value for key, value in message.named().items() if _is_property(key) and not key.startswith(_PROVIDER)
    }
    if "" in message.properties:
        not_kept("", "a property in a file name has a name")
    if group := message.headers.get("JMSXGroupID"):
        properties["JMSXGroupID"] = Property(group, JmsType.STRING)
    if (sequence := message.headers.get("JMSXGroupSeq")) is not None:
        properties["JMSXGroupSeq"] = Property(sequence, JmsType.INT)
    is_text = message.body_type is BodyType.TEXT
    if is_text and message.body_types == NULL_BODY:
        properties[BODY_TYPES] = Property(NULL_BODY, JmsType.STRING)
    if message.origins:
        properties[ORIGIN] = Property(",".join(message.origins), JmsType.STRING)
    name = DropboxName(
        _message_id(outgoing),
        _number(message, "JMSPriority", _PRIORITIES, _PRIORITY),
        _NO_BODY if is_text and message.body_types == NO_BODY else _CLASSES[message.body_type],
        _number(message, "JMSExpiration", _TIMES, 0),
        message.headers.get("JMSCorrelationID"),
        _reply_to(outgoing.reply_to),
        message.headers.get("JMSType"),
        properties,
    )
    text = encode(name)
    if len(text) <= LONGEST_BYTES:
        return Filename(text, name.message_id, None)
    if len(text) > _MOST_BYTES:
        raise RefusedError(f"its headers and properties have {len(text)} bytes in a name, more than {_MOST_BYTES}")
    return Filename(encode(fitted(name)), name.message_id, text)


def _message_id(outgoing: Outgoing) -> str:
    """Returns a message id in DropboxMQ's form, `MICROSECONDS-` followed by digits.

    The digits are partition and offset in the journal, and a hash that distinguishes journals. Consumers take files in
    the order of their ids, so messages of one key, which come from one partition, keep their order.
    """
    match = _POSITION.search(outgoing.id)
    partition, offset = (match[1] or 0, match[2] or match[3]) if match else (0, 0)
    distinct = int.from_bytes(hashlib.sha256(outgoing.id.encode()).digest()[:8]) % 1_000_000
    return f"{outgoing.timestamp_ms:013}000-{int(partition):03}{int(offset):012}{distinct:06}"


def _reply_to(address: str | None) -> str | None:
    """Returns the reply-to field for an address: `NAME` for a queue, `topic:NAME` for a topic."""
    if address is None:
        return None
    kind, separator, name = address.removeprefix("/").replace("/", ":", 1).partition(":")
    if not separator or kind not in _KINDS:
        return address
    return name if kind == "queue" else f"{kind}:{name}"


def _number(message: Message, field: str, bounds: range, default: int) -> int:
    text = message.headers.get(field, "")
    if not _WHOLE.fullmatch(text):
        return default
    number = int(text)
    return number if number in bounds else default


def _is_property(name: str) -> bool:
    return bool(name) and name not in HEADER_FIELDS and not name.startswith(RESERVED)


def _body_type(letter: str, body: bytes) -> BodyType:
    """Returns the body type for a message class; a text that is not UTF-8 is bytes."""
    kind = _BODIES[letter]
    return BodyType.of(body) if kind is BodyType.TEXT else kind
