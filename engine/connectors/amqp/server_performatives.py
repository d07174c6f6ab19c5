"""Performatives that only an AMQP server sends: login offers, answers to a client's requests, and errors.

`performatives` has those that both sides send. Specification: OASIS AMQP 1.0, parts 2.7, 2.8, 3.4, 3.5, 4.5 and 5.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.values import AmqpMap, Described, Symbol, UByte, UInt, ULong, UShort
from engine.connectors.amqp.performatives import (
    MAX_WINDOW,
    Code,
    Condition,
    DeliveryState,
    Role,
    performative,
    symbols,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
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
    "declared",
    "detached",
    "ended",
    "opened",
    "rejected",
    "sasl_mechanisms",
    "sasl_outcome",
]

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


def sasl_mechanisms(mechanisms: Sequence[str]) -> bytes:
    """Frame body that offers SASL mechanisms to the client."""
    return encode(Described(ULong(Code.SASL_MECHANISMS), [symbols(mechanisms)]))


def sasl_outcome(*, welcome: bool) -> bytes:
    """Frame body that says whether the login is accepted."""
    return encode(Described(ULong(Code.SASL_OUTCOME), [UByte(0 if welcome else 1)]))


def opened(
    container: str,
    idle_milliseconds: int,
    max_frame_bytes: int,
    most_channel: int,
    offered: Sequence[str],
    version: str,
) -> bytes:
    """Open of the listener: its container id, limits, offered capabilities and product version."""
    properties = AmqpMap([(Symbol("product"), "jms-bridge"), (Symbol("version"), version)])
    limits = (UInt(max_frame_bytes), UShort(most_channel), UInt(idle_milliseconds))
    return performative(Code.OPEN, container, None, *limits, None, None, symbols(offered), None, properties)


def begun(channel: int, most_handle: int) -> bytes:
    """Begin that answers a client's begin on `channel`; transfers to the client count from 0."""
    return performative(Code.BEGIN, UShort(channel), UInt(0), UInt(MAX_WINDOW), UInt(MAX_WINDOW), UInt(most_handle))


def attached(
    name: str, handle: int, role: Role, source: Described | None, target: Described | None, max_bytes: int | None
) -> bytes:
    """Attach that answers a client's attach; `role` is the listener's.

    Without the listener's own terminus (source of a sender, target of a receiver) it announces that a detach with an
    error follows.
    """
    # A client may settle each message that it sends or not; messages to a client are sent unsettled.
    modes = (UByte(_UNSETTLED if role is Role.SENDER else _MIXED), UByte(0))
    count = UInt(0) if role is Role.SENDER else None
    most_bytes = None if max_bytes is None else ULong(max_bytes)
    fields = (name, UInt(handle), bool(role), *modes, source, target, None, None, count, most_bytes)
    return performative(Code.ATTACH, *fields)


def anonymous_target() -> Described:
    """Target without an address, for a link whose messages each name their destination."""
    return Described(ULong(_TARGET), [])


def declared(transaction: bytes) -> Described:
    """Outcome of a declare, with the id of the new transaction."""
    return Described(ULong(DeliveryState.DECLARED), [transaction])


def detached(handle: int, condition: Condition | None, *, closed: bool = True) -> bytes:
    """Detach that ends a link, with the error if there is one; `closed`: for good."""
    return performative(Code.DETACH, UInt(handle), closed, _error(condition))


def ended() -> bytes:
    """End of a session."""
    return performative(Code.END)


def closed(condition: Condition | None) -> bytes:
    """Close of the connection, with the error if there is one."""
    return performative(Code.CLOSE, _error(condition))


def rejected(condition: Condition) -> Described:
    """Outcome of a delivery that is refused for good: a message, a declare or a discharge."""
    return Described(ULong(DeliveryState.REJECTED), [_error(condition)])


def _error(condition: Condition | None) -> Described | None:
    if condition is None:
        return None
    return Described(ULong(_ERROR), [Symbol(condition.name), condition.description])
