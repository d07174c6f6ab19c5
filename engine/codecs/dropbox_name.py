"""The name of a DropboxMQ message file, which holds all of a message but its body.

    4.1140429201295000-9262574723.T.1140429211295.corr1283.TestQueue1.XYZType.prop1S=hello

Eight fields between dots: priority, message id, message class, expiration, correlation id, reply-to, type, properties.
Fields that are not there are empty. The first three are required; those behind the last one that is there, dots
included, may be left out. Texts are
URL-encoded as by Java's `URLEncoder`. That leaves `.` and `*` as they are: here both are encoded, since the one ends a
field and the other is no letter of file names on Windows. Read are both forms, raw dots only in the properties, which
end the name.

Any file name is a message: one that is not of this form is foreign. It is itself the message id, with defaults for the
rest, and says no time.
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
"""Of a file name, on all usual file systems."""
LONG = "jmsbridge.long"
"""Property of a name that holds only a part of what its message carries, see `fitted`."""
CLASSES = frozenset("MBSPOT")
"""Message, BytesMessage, StreamMessage, MapMessage, ObjectMessage, TextMessage."""

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
    """What a file name says of its message."""

    message_id: str
    """Without the `ID:` of JMS."""
    priority: int = _PRIORITY
    message_class: str = _CLASS
    """One of `CLASSES`."""
    expiration: int = 0
    """Milliseconds since 1970; 0: never."""
    correlation_id: str | None = None
    reply_to: str | None = None
    type: str | None = None
    properties: Mapping[str, Property] = field(default_factory=dict)
    is_foreign: bool = False
    """Whether the file has a name of another form, which as a whole is the message id."""

    @property
    def sent_microseconds(self) -> int | None:
        """When it was sent, since 1970; None if the message id does not say, as DropboxMQ's do."""
        found = None if self.is_foreign else _SENT.fullmatch(self.message_id)
        return None if found is None else int(found[1])

    @property
    def timestamp(self) -> int | None:
        """When it was sent, milliseconds since 1970; None as for `sent_microseconds`."""
        microseconds = self.sent_microseconds
        return None if microseconds is None else microseconds // 1000


class Rank(NamedTuple):
    """The place of a file among those that wait: what sorts first is taken first."""

    descending_priority: int
    microseconds: int
    """Since 1970: what its message id says, or the time of the file."""
    filename: str


def encode(name: DropboxName) -> str:
    """The eight fields as text: ASCII, of any length, at least three fields."""
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
    """The name itself where a file name can hold it, else as much of it as fits, with the property `LONG`.

    Properties go first; then the message id, which is shorter, takes the place of the correlation id; then type and
    reply-to go. What is left fits with any message id of up to 80 bytes.
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
    """What a file name says. Never fails.

    A name is of the form above only as a whole: one with fewer than three fields, with a priority that is no 32-bit
    number, without a message id, with an unknown class, a faulty number, a property without a type, or a `%` that
    escapes nothing is foreign. So `10.csv` and `2024.report.pdf` have ids that no other file of their folder has. Bytes
    of a name that are no UTF-8 become U+FFFD.
    """
    try:
        return _decoded(filename)
    except ValueError:
        return DropboxName(filename.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), is_foreign=True)


def rank(filename: str, modified: Callable[[], float]) -> Rank:
    """The rank of a file; `modified` is asked only where its name does not say when it was sent.

    `modified` is in seconds since 1970.
    """
    name = decode(filename)
    sent = name.sent_microseconds
    return Rank(-name.priority, round(modified() * 1e6) if sent is None else sent, filename)


def escape(text: str) -> str:
    """A text as it stands in a file or folder name: `+` for a blank, `%` and capitals, `?` for what is no character."""
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
        # A number that does not fit its type stays what it says, as text.
        letter = "S"
    return f"{escape(name + letter)}={escape(value.text)}"


def _decoded(filename: str) -> DropboxName:
    # Raises for the surrogates that stand for bytes which are no UTF-8.
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
    found = {}
    for pair in text.split("&") if text else ():
        encoded, equals, value = pair.partition("=")
        name = _text(encoded)
        if not equals or len(name) < 2:  # a letter of its own, and that of its type
            raise ValueError(pair)
        found[name[:-1]] = _value(name[-1], _text(value))
    return found


def _value(letter: str, text: str) -> Property:
    """The property of that text; ValueError where it is none of that type."""
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
    # Java may end a number with its type.
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
