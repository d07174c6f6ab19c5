"""Codec of the names of DropboxMQ message files, which hold everything of a message but its body.

    4.1140429201295000-9262574723.T.1140429211295.corr1283.TestQueue1.XYZType.prop1S=hello

A name has eight fields, separated by dots: priority, message id, message class, expiration, correlation id, reply-to,
type, properties. Absent fields are empty. The first three are required; absent fields at the end may be left out with
their dots. Texts are URL-encoded as by Java's `URLEncoder`, which leaves `.` and `*` as they are. `encode` escapes
those, too: a dot would end the field, and Windows does not allow `*` in file names. `decode` accepts both forms, but
unescaped dots only in the properties, which end the name.

Any file name is a message. A name of another form is foreign: as a whole it is the message id, the other fields have
their defaults, and the time of sending is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import quote_plus, unquote_plus

from routes.properties import JmsType, Property

__all__ = ["CLASSES", "LONG", "LONGEST_BYTES", "DropboxName", "Rank", "decode", "encode", "escape", "fitted", "rank"]

LONGEST_BYTES = 255
"""Largest length of a file name on all usual file systems."""
LONG = "jmsbridge.long"
"""Property that marks a file name which holds only a part of its message's fields, see `fitted`."""
CLASSES = frozenset("MBSPOT")
"""Letters of the message classes: Message, BytesMessage, StreamMessage, MapMessage, ObjectMessage, TextMessage."""

_PRIORITY = 4
_CLASS = "B"
_FIELDS = 8
_REQUIRED = 3
_INT = range(-(1 << 31), 1 << 31)
_TIMES = range(1 << 63)
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_FRACTION = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|[+-]?Infinity|NaN")
_SENT = re.compile(r"([0-9]{13,19})-.+", re.DOTALL)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PLAIN = re.compile(r"[A-Za-z0-9_-]*")
_TRUE = Property("true", JmsType.BOOLEAN)
_LETTERS: Mapping[JmsType, str] = {
    JmsType.BOOLEAN: "B",
    JmsType.BYTE: "Y",
    JmsType.SHORT: "H",
    JmsType.INT: "I",
    JmsType.LONG: "L",
    JmsType.FLOAT: "F",
    JmsType.DOUBLE: "D",
    JmsType.STRING: "S",
}
_BOUNDS = {"Y": range(-128, 128), "H": range(-(1 << 15), 1 << 15), "I": _INT, "L": range(-(1 << 63), 1 << 63)}


@dataclass(frozen=True, slots=True)
class DropboxName:
    """The fields of a message that its file name holds."""

    message_id: str
    """The JMSMessageID without its `ID:`."""
    priority: int = _PRIORITY
    message_class: str = _CLASS
    """A letter of `CLASSES`."""
    expiration: int = 0
    """Milliseconds since 1970; 0 if the message never expires."""
    correlation_id: str | None = None
    reply_to: str | None = None
    type: str | None = None
    properties: Mapping[str, Property] = field(default_factory=dict)
    is_foreign: bool = False
    """True if the file name has another form; the whole name is then the message id."""

    @property
    def sent_microseconds(self) -> int | None:
        """Time of sending in microseconds since 1970, as DropboxMQ writes it into message ids; None without it."""
        match = None if self.is_foreign else _SENT.fullmatch(self.message_id)
        return None if match is None else int(match[1])

    @property
    def timestamp(self) -> int | None:
        """Time of sending in milliseconds since 1970; None as for `sent_microseconds`."""
        microseconds = self.sent_microseconds
        return None if microseconds is None else microseconds // 1000


class Rank(NamedTuple):
    """Sort key of a waiting file: the file with the lowest rank is taken first."""

    descending_priority: int
    microseconds: int
    """Time of sending since 1970, from the message id, else the time of the file."""
    filename: str


def encode(name: DropboxName) -> str:
    """Encodes the fields as ASCII text of any length, with at least three fields."""
    fields = [
        str(name.priority),
        escape(name.message_id),
        name.message_class,
        str(name.expiration) if name.expiration else "",
        escape(name.correlation_id or ""),
        escape(name.reply_to or ""),
        escape(name.type or ""),
        "&".join([_pair(key, value) for key, value in name.properties.items()]),
    ]
    while len(fields) > _REQUIRED and not fields[-1]:
        fields.pop()
    return ".".join(fields)


def fitted(name: DropboxName) -> DropboxName:
    """Returns the name itself if a file name can hold it, else as much of it as fits, with the property `LONG`.

    The properties go first. Then the message id, which is shorter, replaces the correlation id. Then the type and the
    reply-to go. The rest fits with any message id of up to 80 bytes.
    """
    if _fits(name):
        return name
    part = replace(name, properties={LONG: _TRUE})
    if not _fits(part) and part.correlation_id:
        part = replace(part, correlation_id=part.message_id)
    if not _fits(part):
        part = replace(part, type=None)
    return part if _fits(part) else replace(part, reply_to=None)


def decode(filename: str) -> DropboxName:
    """Decodes a file name. Never fails.

    A name is foreign if any part of it is not of the form above: fewer than three fields, a priority that is not a
    32-bit number, no message id, an unknown class, a faulty number, a property without a type, or a `%` that escapes
    nothing.
    So each of `10.csv` and `2024.report.pdf` is an id that no other file of its folder has. Bytes of a foreign name
    that are not UTF-8 become U+FFFD.
    """
    try:
        return _decoded(filename)
    except ValueError:
        return DropboxName(filename.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), is_foreign=True)


def rank(filename: str, modified: Callable[[], float]) -> Rank:
    """Returns the rank of a file.

    `modified` returns the file's time in seconds since 1970; it is called only if the name does not tell the time of
    sending.
    """
    name = decode(filename)
    sent = name.sent_microseconds
    return Rank(-name.priority, round(modified() * 1e6) if sent is None else sent, filename)


def escape(text: str) -> str:
    """Escapes a text for a file or folder name: `+` for a blank, `%` and upper-case hex for special characters.

    A lone surrogate, which is not a character, becomes an escaped `?`.
    """
    if _PLAIN.fullmatch(text):
        return text
    encoded = quote_plus(text.encode("utf-8", "replace"), safe="")
    return encoded.replace(".", "%2E").replace("~", "%7E")


def _fits(name: DropboxName) -> bool:
    return len(encode(name)) <= LONGEST_BYTES


def _pair(name: str, value: Property) -> str:
    letter = "S" if value.type is None else _LETTERS.get(value.type, "S")
    try:
        _value(letter, value.text)
    except ValueError:
        # A number that does not fit its type is written as a text.
        letter = "S"
    return f"{escape(name + letter)}={escape(value.text)}"


def _decoded(filename: str) -> DropboxName:
    # Raises UnicodeEncodeError for surrogates, which stand for bytes that are not UTF-8.
    filename.encode()
    fields = filename.split(".", _FIELDS - 1)
    if len(fields) < _REQUIRED:
        raise ValueError(filename)
    fields += [""] * (_FIELDS - len(fields))
    priority, message_id, message_class, expiration, correlation_id, reply_to, jms_type, properties = fields
    if not message_id or (message_class and message_class not in CLASSES):
        raise ValueError(filename)
    return DropboxName(
        _text(message_id),
        _number(priority, _INT) if priority else _PRIORITY,
        message_class or _CLASS,
        _number(expiration, _TIMES) if expiration else 0,
        _text(correlation_id) or None,
        _text(reply_to) or None,
        _text(jms_type) or None,
        _properties(properties.rstrip(".")),
    )


def _properties(text: str) -> dict[str, Property]:
    properties = {}
    for pair in text.split("&") if text else ():
        encoded, equals, value = pair.partition("=")
        name = _text(encoded)
        if not equals or len(name) < 2:  # one letter for the name, one for the type
            raise ValueError(pair)
        properties[name[:-1]] = _value(name[-1], _text(value))
    return properties


def _value(letter: str, text: str) -> Property:
    """Returns the property with a type letter and a text; ValueError if the text is not a value of that type."""
    if letter == "S":
        return Property(text, JmsType.STRING)
    if letter == "B":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return Property(text.lower(), JmsType.BOOLEAN)
    kind = _KINDS.get(letter)
    if kind is None:
        raise ValueError(letter)
    if letter in _BOUNDS:
        return Property(str(_number(text, _BOUNDS[letter])), kind)
    if not _FRACTION.fullmatch(text):
        raise ValueError(text)
    # Java allows a type suffix behind a number.
    number = text if text.endswith(("Infinity", "NaN")) else text.rstrip("fFdD")
    return Property(Property.of(float(number)).text, kind)


_KINDS = {letter: kind for kind, letter in _LETTERS.items()}


def _number(text: str, bounds: range) -> int:
    if not _WHOLE.fullmatch(text) or (number := int(text)) not in bounds:
        raise ValueError(text)
    return number


def _text(encoded: str) -> str:
    if "%" not in encoded and "+" not in encoded:
        return encoded
    if _BROKEN_ESCAPE.search(encoded):
        raise ValueError(encoded)
    return unquote_plus(encoded, errors="replace")
