"""What the two sides of an AMQP 1.0 connection say to each other: performatives, as bytes and back.

Specification: OASIS AMQP 1.0, parts 2.7 (transport), 3.4 and 3.5 (outcomes, termini), 4.5 (transactions), 5.3 (SASL).
Here is what the bridge says and hears, no more. A transfer is read by hand: there is one for each message.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.codecs.amqp.decoding import decode_at
from engine.codecs.amqp.encoding import encode
from engine.codecs.amqp.values import AmqpError, Array, Described, Map, Symbol, UByte, UInt, ULong, UShort
from engine.connectors.amqp.frames import MAX_FRAME_BYTES
from engine.connectors.wire import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ACCEPTED",
    "MAX_WINDOW",
    "RELEASED",
    "Code",
    "Condition",
    "Outcome",
    "Request",
    "Role",
    "Terminus",
    "Transfer",
    "attach",
    "begin",
    "close",
    "condition_of",
    "detach",
    "disposition",
    "end",
    "field",
    "flow",
    "is_transfer",
    "number",
    "open_",
    "outcome_of",
    "read",
    "read_transfer",
    "sasl_init",
    "transaction_of",
    "transfer",
]

_SYMBOL = 0xB3
_MOST_HANDLE = 2**16 - 1
MAX_WINDOW = 2**31 - 1
"""Of a session: how many frames may come. TCP and the credit of links limit what does."""


class Code(IntEnum):
    """Descriptors of performatives."""

    OPEN = 0x10
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18
    SASL_MECHANISMS = 0x40
    SASL_INIT = 0x41
    SASL_OUTCOME = 0x44


class Role(IntEnum):
    """Of a link's end, as attach and disposition tell it."""

    SENDER = 0
    RECEIVER = 1


class Outcome(IntEnum):
    """Descriptors of delivery states."""

    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27
    DECLARED = 0x33
    TRANSACTIONAL = 0x34


class Request(IntEnum):
    """Descriptors of what is asked of a coordinator."""

    DECLARE = 0x31
    DISCHARGE = 0x32


_ERROR, _SOURCE, _TARGET = 0x1D, 0x28, 0x29
_SELECTOR = "apache.org:selector-filter:string"
_SELECTOR_CODE = 0x0000_468C_0000_0004
_NEVER = "never"
_DURABLE = 2

ACCEPTED = Described(ULong(Outcome.ACCEPTED), [])
RELEASED = Described(ULong(Outcome.RELEASED), [])
_OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")


class Condition(NamedTuple):
    """An error as the other side tells it."""

    name: str
    """`amqp:not-found` and the like."""
    description: str

    def __str__(self) -> str:
        text = one_line(self.description)
        return f"{text} ({self.name})" if text else self.name


class Terminus(NamedTuple):
    """A source or target: where messages of a link come from or go to."""

    address: str
    kind: str
    """`queue` or `topic`, which becomes a capability."""
    selector: str | None = None
    durable: bool = False
    shared: bool = False
    shared_by_all: bool = False
    """By connections of all containers, not only by those of ours."""

    @property
    def destination(self) -> str:
        """`queue:NAME` or `topic:NAME`."""
        return f"{self.kind}:{self.address}"

    @property
    def capabilities(self) -> Sequence[str]:
        """Words that JMS clients use for it (JMS mapping of AMQP, 5)."""
        words = {"shared": self.shared, "global": self.shared_by_all}
        return (self.kind, *(word for word, holds in words.items() if holds))

    def source(self) -> Described:
        """As a source, with the outcomes that we may tell."""
        selector = Described(ULong(_SELECTOR_CODE), self.selector)
        return _described(
            _SOURCE,
            self.address,
            UInt(_DURABLE if self.durable else 0),
            Symbol(_NEVER) if self.durable else None,
            *(None, None, None, None),
            Map([(Symbol(_SELECTOR), selector)]) if self.selector else None,
            # What is left of a link that breaks goes back as delivered in vain.
            _described(Outcome.MODIFIED, True),
            _symbols(_OUTCOMES),
            _symbols(self.capabilities),
        )

    def target(self) -> Described:
        """As a target."""
        return _described(_TARGET, self.address, *(None,) * 5, _symbols(self.capabilities))


class Transfer(NamedTuple):
    """A transfer, or one of several that a message takes."""

    handle: int
    delivery_id: int | None
    """None in transfers after the first."""
    message_format: int | None
    settled: bool
    more: bool
    aborted: bool
    payload: bytes
    state: Any = None
    """Of the delivery, which may say what transaction it is part of."""


def open_(container: str, host: str, idle_milliseconds: int, product: str) -> bytes:
    """Who we are."""
    properties = Map([(Symbol("product"), product)])
    limits = (UInt(MAX_FRAME_BYTES), UShort(0), UInt(idle_milliseconds))
    return _performative(Code.OPEN, container, host, *limits, *(None, None, None, None), properties)


def begin() -> bytes:
    """A session whose frames count from 0."""
    return _performative(Code.BEGIN, None, UInt(0), UInt(MAX_WINDOW), UInt(MAX_WINDOW), UInt(_MOST_HANDLE))


def attach(name: str, handle: int, role: Role, source: Described, target: Described) -> bytes:
    """A link that settles no message before it has its outcome. A sender counts its deliveries from 0."""
    modes = (UByte(0), UByte(0))
    count = UInt(0) if role is Role.SENDER else None
    fields = (name, UInt(handle), bool(role), *modes, source, target, None, None, count)
    return _performative(Code.ATTACH, *fields)


def flow(next_incoming: int, next_outgoing: int, *link: int) -> bytes:
    """Where we are; with handle, delivery count and credit for the sender on the other side of a link."""
    window = (next_incoming, MAX_WINDOW, next_outgoing, MAX_WINDOW)
    return _performative(Code.FLOW, *map(UInt, (*window, *link)))


def transfer(handle: int, delivery_id: int, tag: bytes, message_format: int, *, more: bool) -> bytes:
    """The head of a transfer that is not settled; its part of the message follows."""
    fields = (UInt(handle), UInt(delivery_id), tag, UInt(message_format), False)
    return _performative(Code.TRANSFER, *fields, True) if more else _performative(Code.TRANSFER, *fields)


def disposition(role: Role, first: int, last: int, state: Described) -> bytes:
    """What became of deliveries, settled."""
    return _performative(Code.DISPOSITION, bool(role), UInt(first), UInt(last), True, state)


def detach(handle: int, *, closed: bool) -> bytes:
    """The end of a link, for good or for now."""
    return _performative(Code.DETACH, UInt(handle), closed)


def end() -> bytes:
    """The end of the session."""
    return _performative(Code.END)


def close() -> bytes:
    """The end of the connection."""
    return _performative(Code.CLOSE)


def sasl_init(mechanism: str, response: bytes, host: str) -> bytes:
    """The way in that we choose, and what it takes."""
    return _performative(Code.SASL_INIT, Symbol(mechanism), response, host)


def is_transfer(body: bytes) -> bool:
    """Whether a frame is a transfer."""
    return body.startswith(_TRANSFER)


def read(body: bytes) -> tuple[int, list[Any]]:
    """Descriptor and fields of a performative; AmqpError if it is none."""
    value, _ = decode_at(body, 0)
    if not isinstance(value, Described) or type(value.value) is not list:
        raise AmqpError("a frame without a performative")
    return _code(value.descriptor), value.value


def field(fields: Sequence[Any], index: int) -> Any:
    """A field; None if it is left out."""
    return fields[index] if index < len(fields) else None


def number(fields: Sequence[Any], index: int, otherwise: int = 0) -> int:
    """A field that is one; AmqpError if it is something else."""
    value = field(fields, index)
    if value is None:
        return otherwise
    if not isinstance(value, int):
        raise AmqpError(f"field {index} of a performative is no number")
    return value


_TRANSFER = b"\x00\x53\x14"
_HANDLE, _ID, _FORMAT, _SETTLED, _MORE, _STATE, _ABORTED = 0, 1, 3, 4, 5, 7, 9


def read_transfer(body: bytes) -> Transfer:
    """A transfer; AmqpError if it is none."""
    try:
        count, at, end = _extent(body)
        fields: list[Any] = []
        for _ in range(count):
            code = body[at]
            if code == 0x52:
                fields.append(body[at + 1])
                at += 2
            elif code in _CONSTANTS:
                fields.append(_CONSTANTS[code])
                at += 1
            elif code == 0x70:
                fields.append(int.from_bytes(body[at + 1 : at + 5]))
                at += 5
            elif code == 0xA0:
                fields.append(None)
                at += 2 + body[at + 1]
            else:
                value, at = decode_at(body, at)
                fields.append(value)
        handle = fields[_HANDLE]
    except IndexError as error:
        raise AmqpError("a transfer that is cut off") from error
    if at != end or not isinstance(handle, int):
        raise AmqpError("a transfer that does not end where it should")
    number(fields, _ID)
    number(fields, _FORMAT)
    fields += [None] * (_ABORTED + 1 - len(fields))
    return Transfer(
        handle,
        fields[_ID],
        fields[_FORMAT],
        bool(fields[_SETTLED]),
        bool(fields[_MORE]),
        bool(fields[_ABORTED]),
        body[end:],
        fields[_STATE],
    )


_CONSTANTS: dict[int, Any] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0}


def _extent(body: bytes) -> tuple[int, int, int]:
    """How many fields a performative's list has, where they begin and where they end."""
    code = body[3]
    if code == 0xC0:
        return body[5], 6, 5 + body[4]
    if code == 0xD0:
        return int.from_bytes(body[8:12]), 12, 8 + int.from_bytes(body[4:8])
    raise AmqpError("a transfer without fields")


def outcome_of(state: Any) -> tuple[int, list[Any]]:
    """Descriptor and fields of a delivery state, or of another composite type; 0 if it is none."""
    if not isinstance(state, Described) or type(state.value) is not list:
        return 0, []
    return _code(state.descriptor), state.value


def transaction_of(state: Any) -> tuple[bytes | None, Any]:
    """Which transaction a delivery state is part of, None: of none; and the outcome that it is to have there.

    AmqpError if it does not say which.
    """
    code, fields = outcome_of(state)
    if code != Outcome.TRANSACTIONAL:
        return None, state
    identity = field(fields, 0)
    if not isinstance(identity, bytes):
        raise AmqpError("a transactional state without a transaction")
    return identity, field(fields, 1)


def condition_of(error: Any) -> Condition | None:
    """What an error field says; None if there is none."""
    if not isinstance(error, Described) or type(error.value) is not list or not error.value:
        return None
    name, text = error.value[0], field(error.value, 1)
    return Condition(str(name), text if isinstance(text, str) else "")


_CODES = {
    "amqp:open:list": Code.OPEN,
    "amqp:begin:list": Code.BEGIN,
    "amqp:attach:list": Code.ATTACH,
    "amqp:flow:list": Code.FLOW,
    "amqp:transfer:list": Code.TRANSFER,
    "amqp:disposition:list": Code.DISPOSITION,
    "amqp:detach:list": Code.DETACH,
    "amqp:end:list": Code.END,
    "amqp:close:list": Code.CLOSE,
    "amqp:sasl-mechanisms:list": Code.SASL_MECHANISMS,
    "amqp:sasl-outcome:list": Code.SASL_OUTCOME,
    "amqp:accepted:list": Outcome.ACCEPTED,
    "amqp:rejected:list": Outcome.REJECTED,
    "amqp:released:list": Outcome.RELEASED,
    "amqp:modified:list": Outcome.MODIFIED,
    "amqp:received:list": Outcome.RECEIVED,
    "amqp:declare:list": Request.DECLARE,
    "amqp:discharge:list": Request.DISCHARGE,
    "amqp:declared:list": Outcome.DECLARED,
    "amqp:transactional-state:list": Outcome.TRANSACTIONAL,
}


def _code(descriptor: Any) -> int:
    if isinstance(descriptor, int):
        return descriptor
    return _CODES.get(descriptor, 0) if isinstance(descriptor, str) else 0


def _performative(code: Code, *fields: Any) -> bytes:
    return encode(_described(code, *fields))


def _described(code: int, *fields: Any) -> Described:
    """A list with its descriptor, without the fields at its end that are not set."""
    last = len(fields)
    while last and fields[last - 1] is None:
        last -= 1
    return Described(ULong(code), list(fields[:last]))


def _symbols(values: Sequence[str]) -> Array:
    return Array(_SYMBOL, tuple(map(Symbol, values)))
