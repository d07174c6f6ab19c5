"""What only the side that is connected to says: the login it offers, answers to what a client asks for, and errors.

Beside `performatives`, which has what both sides say. Specification: OASIS AMQP 1.0, parts 2.7, 2.8, 3.4, 3.5, 4.5
and 5.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.codecs.amqp.encoding import encode
from engine.codecs.amqp.values import Array, Described, Map, Symbol, UByte, UInt, ULong, UShort
from engine.connectors.amqp.performatives import MAX_WINDOW, Code, Condition, Outcome, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "COORDINATOR",
    "DECODE_ERROR",
    "FORCED",
    "FRAMING_ERROR",
    "ILLEGAL_STATE",
    "INTERNAL_ERROR",
    "INVALID_FIELD",
    "NOT_ALLOWED",
    "NOT_FOUND",
    "NOT_IMPLEMENTED",
    "RESOURCE_LIMIT",
    "ROLLBACK",
    "SIZE_EXCEEDED",
    "TRANSACTION_TIMEOUT",
    "TRANSFER_LIMIT",
    "UNATTACHED_HANDLE",
    "UNKNOWN_TRANSACTION",
    "anonymous_target",
    "attached",
    "begun",
    "closed",
    "coordinator_target",
    "declared",
    "detached",
    "ended",
    "names",
    "opened",
    "rejected",
    "sasl_mechanisms",
    "sasl_outcome",
    "transactional",
]

COORDINATOR = 0x30
"""Descriptor of a target that is for transactions (part 4.5)."""

DECODE_ERROR = "amqp:decode-error"
FORCED = "amqp:connection:forced"
FRAMING_ERROR = "amqp:connection:framing-error"
ILLEGAL_STATE = "amqp:illegal-state"
INTERNAL_ERROR = "amqp:internal-error"
INVALID_FIELD = "amqp:invalid-field"
NOT_ALLOWED = "amqp:not-allowed"
NOT_FOUND = "amqp:not-found"
NOT_IMPLEMENTED = "amqp:not-implemented"
RESOURCE_LIMIT = "amqp:resource-limit-exceeded"
ROLLBACK = "amqp:transaction:rollback"
SIZE_EXCEEDED = "amqp:link:message-size-exceeded"
TRANSACTION_TIMEOUT = "amqp:transaction:timeout"
TRANSFER_LIMIT = "amqp:link:transfer-limit-exceeded"
UNATTACHED_HANDLE = "amqp:session:unattached-handle"
UNKNOWN_TRANSACTION = "amqp:transaction:unknown-id"

_ERROR, _TARGET = 0x1D, 0x29
_UNSETTLED, _MIXED = 0, 2
_SYMBOL = 0xB3
_TRANSACTIONS = ("amqp:local-transactions",)
"""What the coordinator is capable of: a transaction is one session's."""


def sasl_mechanisms(mechanisms: Sequence[str]) -> bytes:
    """The ways in."""
    return encode(Described(ULong(Code.SASL_MECHANISMS), [_symbols(mechanisms)]))


def sasl_outcome(*, welcome: bool) -> bytes:
    """Whether the login is good."""
    return encode(Described(ULong(Code.SASL_OUTCOME), [UByte(0 if welcome else 1)]))


def opened(
    container: str,
    idle_milliseconds: int,
    max_frame_bytes: int,
    most_channel: int,
    offered: Sequence[str],
    version: str,
) -> bytes:
    """Who the bridge is, what it takes and what it offers."""
    properties = Map([(Symbol("product"), "jms-bridge"), (Symbol("version"), version)])
    limits = (UInt(max_frame_bytes), UShort(most_channel), UInt(idle_milliseconds))
    return _performative(Code.OPEN, container, None, *limits, None, None, _symbols(offered), None, properties)


def begun(channel: int, most_handle: int) -> bytes:
    """The answer to the begin of a session on `channel`; frames to the client count from 0."""
    return _performative(Code.BEGIN, UShort(channel), UInt(0), UInt(MAX_WINDOW), UInt(MAX_WINDOW), UInt(most_handle))


def attached(
    name: str, handle: int, role: Role, source: Described | None, target: Described | None, max_bytes: int | None
) -> bytes:
    """The answer to an attach, `role` being ours; without its own terminus it says that a detach follows."""
    # A client chooses for each message whether it settles it; what it gets is not settled.
    modes = (UByte(_UNSETTLED if role is Role.SENDER else _MIXED), UByte(0))
    count = UInt(0) if role is Role.SENDER else None
    most = None if max_bytes is None else ULong(max_bytes)
    fields = (name, UInt(handle), bool(role), *modes, source, target, None, None, count, most)
    return _performative(Code.ATTACH, *fields)


def anonymous_target() -> Described:
    """The target for messages that each say where they go."""
    return Described(ULong(_TARGET), [])


def coordinator_target() -> Described:
    """The target for what a client wants of its transactions."""
    return Described(ULong(COORDINATOR), [_symbols(_TRANSACTIONS)])


def declared(transaction: bytes) -> Described:
    """The outcome of a declare: the transaction that it has begun."""
    return Described(ULong(Outcome.DECLARED), [transaction])


def transactional(transaction: bytes, outcome: Described) -> Described:
    """An outcome that holds once its transaction does."""
    return Described(ULong(Outcome.TRANSACTIONAL), [transaction, outcome])


def detached(handle: int, condition: Condition | None, *, closed: bool = True) -> bytes:
    """The end of a link, with why."""
    return _performative(Code.DETACH, UInt(handle), closed, _error(condition))


def ended() -> bytes:
    """The end of a session."""
    return _performative(Code.END)


def closed(condition: Condition | None) -> bytes:
    """The end of the connection, with why."""
    return _performative(Code.CLOSE, _error(condition))


def rejected(condition: Condition) -> Described:
    """The outcome of a message that will never be taken."""
    return Described(ULong(Outcome.REJECTED), [_error(condition)])


def names(value: Any) -> list[str]:
    """Symbols, one or several, of a field that may be left out."""
    if isinstance(value, str):
        return [str(value)]
    return [str(each) for each in value.values] if isinstance(value, Array) else []


def _error(condition: Condition | None) -> Described | None:
    if condition is None:
        return None
    return Described(ULong(_ERROR), [Symbol(condition.name), condition.description])


def _symbols(values: Sequence[str]) -> Array:
    return Array(_SYMBOL, tuple(map(Symbol, values)))


def _performative(code: Code, *fields: Any) -> bytes:
    last = len(fields)
    while last and fields[last - 1] is None:
        last -= 1
    return encode(Described(ULong(code), list(fields[:last])))
