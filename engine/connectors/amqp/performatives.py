"""Performatives, the commands of the AMQP 1.0 protocol: encoded for sending, and decoded.

Only those that the bridge sends and receives: OASIS AMQP 1.0, parts 2.7 (transport), 3.4 and 3.5 (outcomes, termini),
4.5 (transactions), 5.3 (SASL). A transfer has a decoder of its own for speed, as there is one for each message.
Performatives that only a listener sends are in `server_performatives`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.connectors.amqp.codec.decoding import decode_at
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.values import AmqpError, AmqpMap, Array, Described, Symbol, UByte, UInt, ULong, UShort
from engine.connectors.amqp.frames import MAX_FRAME_BYTES
from engine.connectors.wire import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ACCEPTED",
    "COORDINATOR",
    "MAX_WINDOW",
    "RELEASED",
    "Code",
    "Condition",
    "DeliveryState",
    "Request",
    "Role",
    "Terminus",
    "Transfer",
    "attach",
    "begin",
    "close",
    "condition_of",
    "coordinator_target",
    "declare",
    "detach",
    "discharge",
    "disposition",
    "end",
    "field",
    "flow",
    "is_transfer",
    "names",
    "number",
    "open_",
    "outcome_of",
    "performative",
    "read",
    "read_transfer",
    "sasl_init",
    "sasl_response",
    "serial",
    "symbols",
    "transaction_of",
    "transactional",
    "transfer",
]

_SYMBOL = 0xB3
_SERIAL = 0xFFFF_FFFF
_MOST_HANDLE = 2**16 - 1
MAX_WINDOW = 2**31 - 1
"""Session window that the bridge gives, in frames. It never limits: TCP and the credit of links do."""


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
    SASL_CHALLENGE = 0x42
    SASL_RESPONSE = 0x43
    SASL_OUTCOME = 0x44


class Role(IntEnum):
    """Role of a link's end in attach and disposition."""

    SENDER = 0
    RECEIVER = 1


class DeliveryState(IntEnum):
    """Descriptors of delivery states."""

    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27
    DECLARED = 0x33
    TRANSACTIONAL = 0x34


class Request(IntEnum):
    """Descriptors of requests to a transaction coordinator."""

    DECLARE = 0x31
    DISCHARGE = 0x32


COORDINATOR = 0x30
"""Descriptor of the coordinator, the target of a link for transactions (part 4.5)."""
_TRANSACTIONS = ("amqp:local-transactions",)
"""Capabilities of the coordinator: a transaction belongs to one session."""
_ERROR, _SOURCE, _TARGET = 0x1D, 0x28, 0x29
_SELECTOR = "apache.org:selector-filter:string"
_SELECTOR_CODE = 0x0000_468C_0000_0004
_NEVER = "never"
_DURABLE = 2

ACCEPTED = Described(ULong(DeliveryState.ACCEPTED), [])
RELEASED = Described(ULong(DeliveryState.RELEASED), [])
_OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")


class Condition(NamedTuple):
    """An error as the remote end reports it."""

    name: str
    """Symbol of the error, such as `amqp:not-found`."""
    description: str

    def __str__(self) -> str:
        text = one_line(self.description)
        return f"{text} ({self.name})" if text else self.name


class Terminus(NamedTuple):
    """The source or target of a link: a queue or topic that messages come from or go to."""

    address: str
    """Name of the queue or topic."""
    kind: str
    """`queue` or `topic`; sent as a capability."""
    selector: str | None = None
    durable: bool = False
    shared: bool = False
    shared_by_all: bool = False
    """True if connections of all containers share the subscription, not only those of the attaching container."""
    spelt: str | None = None
    """Address in the broker's own spelling, which is sent in place of `address`; None: `address`."""
    is_declared: bool = False
    """True to have the broker make a missing queue durable."""
    is_dynamic: bool = False
    """True to have the broker make a queue for a receiver, under a name of its own, until the connection ends."""

    @property
    def destination(self) -> str:
        """`queue:NAME` or `topic:NAME`."""
        return f"{self.kind}:{self.address}"

    @property
    def capabilities(self) -> Sequence[str]:
        """Capabilities by which JMS clients express the kind and the sharing (JMS mapping of AMQP, 5)."""
        words = {"shared": self.shared, "global": self.shared_by_all}
        return (self.kind, *(word for word, holds in words.items() if holds))

    def source(self) -> Described:
        """Builds the source of an attach, with the outcomes that the bridge supports."""
        selector = Described(ULong(_SELECTOR_CODE), self.selector)
        return _described(
            _SOURCE,
            None if self.is_dynamic else self._sent_address,
            UInt(_DURABLE if self.durable or self.is_declared else 0),
            Symbol(_NEVER) if self.durable else None,
            *(None, self.is_dynamic or None, None, None),
            AmqpMap([(Symbol(_SELECTOR), selector)]) if self.selector else None,
            # Default outcome: messages that a broken link leaves without an outcome return as failed deliveries.
            _described(DeliveryState.MODIFIED, True),
            symbols(_OUTCOMES),
            symbols(self.capabilities),
        )

    def target(self) -> Described:
        """Builds the target of an attach."""
        durability = UInt(_DURABLE) if self.is_declared else None
        return _described(_TARGET, self._sent_address, durability, *(None,) * 4, symbols(self.capabilities))

    @property
    def _sent_address(self) -> str:
        return self.address if self.spelt is None else self.spelt


class Transfer(NamedTuple):
    """A transfer performative with its payload: a message, or one of several parts of it."""

    handle: int
    delivery_id: int | None
    """None in the transfers of a message after the first."""
    message_format: int | None
    settled: bool
    more: bool
    aborted: bool
    payload: bytes
    state: Any = None
    """Delivery state, which may name the transaction that the message belongs to."""


def open_(
    container: str, host: str, idle_milliseconds: int, product: str, desired_capabilities: Sequence[str] = ()
) -> bytes:
    """Encodes an open: container id, host, largest frame, idle time-out, the product's name, desired capabilities."""
    properties = AmqpMap([(Symbol("product"), product)])
    limits = (UInt(MAX_FRAME_BYTES), UShort(0), UInt(idle_milliseconds))
    desired = symbols(desired_capabilities) if desired_capabilities else None
    return performative(Code.OPEN, container, host, *limits, *(None, None, None), desired, properties)


def begin() -> bytes:
    """Encodes the begin of a session that numbers its transfers from 0."""
    return performative(Code.BEGIN, None, UInt(0), UInt(MAX_WINDOW), UInt(MAX_WINDOW), UInt(_MOST_HANDLE))


def attach(name: str, handle: int, role: Role, source: Described, target: Described) -> bytes:
    """Encodes an attach of a link whose messages are settled only with their outcome.

    A sender counts its deliveries from 0.
    """
    modes = (UByte(0), UByte(0))
    count = UInt(0) if role is Role.SENDER else None
    fields = (name, UInt(handle), bool(role), *modes, source, target, None, None, count)
    return performative(Code.ATTACH, *fields)


def flow(next_incoming: int, next_outgoing: int, *link: int) -> bytes:
    """Encodes a flow with the session's state.

    `link`, which is handle, delivery count and credit, also gives credit to the sender at the remote end of a link.
    """
    window = (next_incoming, MAX_WINDOW, next_outgoing, MAX_WINDOW)
    return performative(Code.FLOW, *map(UInt, (*window, *link)))


def transfer(
    handle: int, delivery_id: int, tag: bytes, message_format: int, *, more: bool, state: Described | None = None
) -> bytes:
    """Encodes the head of an unsettled transfer; a part of the message is to follow it.

    `state` names the transaction that the message belongs to.
    """
    fields = (UInt(handle), UInt(delivery_id), tag, UInt(message_format), False)
    if state is not None:
        return performative(Code.TRANSFER, *fields, more, None, state)
    return performative(Code.TRANSFER, *fields, True) if more else performative(Code.TRANSFER, *fields)


def disposition(role: Role, first: int, last: int, state: Described) -> bytes:
    """Encodes a disposition that settles a range of deliveries with an outcome."""
    return performative(Code.DISPOSITION, bool(role), UInt(first), UInt(last), True, state)


def coordinator_target() -> Described:
    """Builds the target of a link over which a client declares and discharges transactions."""
    return Described(ULong(COORDINATOR), [symbols(_TRANSACTIONS)])


def declare() -> Described:
    """Builds the request for a new transaction, the content of a message to the coordinator."""
    return Described(ULong(Request.DECLARE), [])


def discharge(transaction: bytes) -> Described:
    """Builds the request to commit a transaction, the content of a message to the coordinator."""
    return Described(ULong(Request.DISCHARGE), [transaction, False])


def transactional(transaction: bytes, outcome: Described | None = None) -> Described:
    """Builds the delivery state of a transfer in a transaction, or of an outcome that takes effect with its commit."""
    return Described(ULong(DeliveryState.TRANSACTIONAL), [transaction] if outcome is None else [transaction, outcome])


def detach(handle: int, *, closed: bool) -> bytes:
    """Encodes a detach, which ends a link for good or, if not `closed`, for now."""
    return performative(Code.DETACH, UInt(handle), closed)


def end() -> bytes:
    """Encodes the end of the session."""
    return performative(Code.END)


def close() -> bytes:
    """Encodes the close of the connection."""
    return performative(Code.CLOSE)


def sasl_init(mechanism: str, response: bytes | None, host: str) -> bytes:
    """Encodes the chosen SASL mechanism and its initial response, if it has one."""
    return performative(Code.SASL_INIT, Symbol(mechanism), response, host)


def sasl_response(response: bytes) -> bytes:
    """Encodes the response to a SASL challenge."""
    return performative(Code.SASL_RESPONSE, response)


def is_transfer(body: bytes) -> bool:
    """Returns True if the body of a frame is a transfer, in any encoding of its descriptor."""
    return body.startswith(_TRANSFERS)


def read(body: bytes) -> tuple[int, list[Any]]:
    """Decodes a performative to its descriptor and fields; AmqpError if the body of a frame is not a performative."""
    value, _ = decode_at(body, 0)
    if not isinstance(value, Described) or type(value.value) is not list:
        raise AmqpError("a frame without a performative")
    return _code(value.descriptor), value.value


def field(fields: Sequence[Any], index: int) -> Any:
    """Returns a field; None if it is absent."""
    return fields[index] if index < len(fields) else None


def number(fields: Sequence[Any], index: int, otherwise: int = 0) -> int:
    """Returns a numeric field, or `otherwise` if it is absent; AmqpError if it is not a number."""
    value = field(fields, index)
    if value is None:
        return otherwise
    if not isinstance(value, int) or isinstance(value, bool):
        raise AmqpError(f"field {index} of a performative is not a number")
    return value


def names(value: Any) -> list[str]:
    """Symbols of a field that holds one symbol, an array of symbols, or nothing."""
    if isinstance(value, str):
        return [str(value)]
    return [str(each) for each in value.values] if isinstance(value, Array) else []


def serial(number: int) -> int:
    """Wraps a delivery or transfer number to 32 bits (serial numbers, RFC 1982)."""
    return number & _SERIAL


_TRANSFER = b"\x00\x53\x14"
_TRANSFERS = (
    _TRANSFER,
    b"\x00\x80" + Code.TRANSFER.to_bytes(8),
    b"\x00\xa3\x12amqp:transfer:list",
    b"\x00\xb3\x00\x00\x00\x12amqp:transfer:list",
)
"""Beginnings of a transfer: its descriptor as a small or large ulong, or as a short or long symbol."""
_HANDLE, _ID, _FORMAT, _SETTLED, _MORE, _STATE, _ABORTED = 0, 1, 3, 4, 5, 7, 9


def read_transfer(body: bytes) -> Transfer:
    """Decodes the body of a frame that is a transfer; AmqpError if it is malformed."""
    try:
        count, offset, end = _extent(body)
        fields: list[Any] = []
        for _ in range(count):
            code = body[offset]
            if code == 0x52:
                fields.append(body[offset + 1])
                offset += 2
            elif code in _CONSTANTS:
                fields.append(_CONSTANTS[code])
                offset += 1
            elif code == 0x70:
                fields.append(int.from_bytes(body[offset + 1 : offset + 5]))
                offset += 5
            elif code == 0xA0:
                fields.append(None)
                offset += 2 + body[offset + 1]
            else:
                value, offset = decode_at(body, offset)
                fields.append(value)
        handle = fields[_HANDLE]
    except IndexError as error:
        raise AmqpError("a transfer that is cut off") from error
    if offset != end or not isinstance(handle, int) or isinstance(handle, bool):
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
    """Returns the number of fields in a transfer's list, the offset of the first, and the offset behind the last."""
    offset = len(_TRANSFER if body.startswith(_TRANSFER) else next(filter(body.startswith, _TRANSFERS), _TRANSFER))
    code = body[offset]
    if code == 0xC0:
        return body[offset + 2], offset + 3, offset + 2 + body[offset + 1]
    if code == 0xD0:
        return (
            int.from_bytes(body[offset + 5 : offset + 9]),
            offset + 9,
            offset + 5 + int.from_bytes(body[offset + 1 : offset + 5]),
        )
    raise AmqpError("a transfer without fields")


def outcome_of(state: Any) -> tuple[int, list[Any]]:
    """Returns descriptor and fields of a delivery state or another composite type; 0 and no fields for other values."""
    if not isinstance(state, Described) or type(state.value) is not list:
        return 0, []
    return _code(state.descriptor), state.value


def transaction_of(state: Any) -> tuple[bytes | None, Any]:
    """Splits a delivery state into the id of its transaction, None outside of transactions, and the outcome.

    AmqpError if a transactional state has no transaction id.
    """
    code, fields = outcome_of(state)
    if code != DeliveryState.TRANSACTIONAL:
        return None, state
    identity = field(fields, 0)
    if not isinstance(identity, bytes):
        raise AmqpError("a transactional state without a transaction")
    return identity, field(fields, 1)


def condition_of(error: Any) -> Condition | None:
    """Returns the condition in an error field; None if there is no error."""
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
    "amqp:sasl-init:list": Code.SASL_INIT,
    "amqp:sasl-outcome:list": Code.SASL_OUTCOME,
    "amqp:accepted:list": DeliveryState.ACCEPTED,
    "amqp:rejected:list": DeliveryState.REJECTED,
    "amqp:released:list": DeliveryState.RELEASED,
    "amqp:modified:list": DeliveryState.MODIFIED,
    "amqp:received:list": DeliveryState.RECEIVED,
    "amqp:declare:list": Request.DECLARE,
    "amqp:discharge:list": Request.DISCHARGE,
    "amqp:declared:list": DeliveryState.DECLARED,
    "amqp:transactional-state:list": DeliveryState.TRANSACTIONAL,
}


def _code(descriptor: Any) -> int:
    if isinstance(descriptor, int):
        return descriptor
    return _CODES.get(descriptor, 0) if isinstance(descriptor, str) else 0


def performative(code: Code, *fields: Any) -> bytes:
    """Returns an encoded performative, without the unset fields at its end."""
    return encode(_described(code, *fields))


def _described(code: int, *fields: Any) -> Described:
    """Makes a described list, without the unset fields at its end."""
    last = len(fields)
    while last and fields[last - 1] is None:
        last -= 1
    return Described(ULong(code), list(fields[:last]))


def symbols(values: Sequence[str]) -> Array:
    """Returns an array of symbols; `names` has the other direction."""
    return Array(_SYMBOL, tuple(map(Symbol, values)))
