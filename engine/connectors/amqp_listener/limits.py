"""Limits of an AMQP listener: memory, connections, links and processor time of one client and of all clients.

`docs/security.md` lists them; the tests in `test_amqp_listener_bounds.py` measure them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from routes.immutable import immutable

if TYPE_CHECKING:
    from engine.connectors.amqp.settings import AmqpConfig

__all__ = ["ListenerLimits", "Pool", "TransactionUse"]

_KIB, _MIB = 1024, 1024 * 1024


@immutable
class Pool:
    """Amount that all clients share.

    A client that has less than its equal share still gets something when the pool is used up.
    """

    total: int
    shares: int

    def is_spent(self, used_by_client: int, used_by_all: int, wanted: int = 1) -> bool:
        """Returns True if the client may not have `wanted` more. All clients together get at most twice `total`."""
        return used_by_all + wanted > self.total and used_by_client + wanted > self.total // self.shares


@dataclass(slots=True)
class TransactionUse:
    """Number, messages and bytes of one client's open transactions."""

    open: int = 0
    messages: int = 0
    bytes: int = 0


@immutable
class ListenerLimits:
    """Limits of one listener.

    Fields whose names end in `_of_all` limit all clients together.
    """

    clients: int = 500
    """Connections at a time."""
    transaction_seconds: float = 120.0
    """Seconds from the first message or answer in a transaction to the transaction's end."""

    hello_seconds: float = 15.0
    """Seconds from the connection to its open: TLS handshake, login and AMQP open."""
    before_open_bytes: int = 64 * _KIB
    """Bytes that a client may send until its connection is open."""
    frame_bytes: int = 128 * _KIB
    """Largest frame that a client may send."""
    performative_bytes: int = 64 * _KIB
    """Largest performative that a client may send, transfers excepted."""
    frame_seconds: float = 30.0
    """Seconds from the first byte of a frame to its last."""
    part_seconds: float = 60.0
    """Seconds from one transfer of a message to the next."""
    unfinished_bytes: int = 16 * _MIB
    """Bytes of one client's incomplete messages, in addition to one message of the largest size."""
    unfinished_bytes_of_all: int = 128 * _MIB
    """Bytes of all clients' incomplete frames and messages, in addition to one message of the largest size."""
    unread_bytes: int = 256 * _KIB
    """Bytes of answers and messages that a client has not read.

    From this amount on the listener reads nothing from the client.
    """
    unread_seconds: float = 30.0
    """Seconds after which a client that reads nothing is disconnected."""

    channels: int = 256
    """Sessions of one client."""
    handles: int = 256
    """Links of one session."""
    links: int = 1000
    """Links of one client."""
    links_of_all: int = 20_000
    selector_bytes: int = 16 * _KIB
    """Largest selector in bytes, as UTF-8."""
    selector_likes: int = 32
    """LIKE conditions of one selector; each takes time in proportion to the text."""

    transactions: int = 256
    """Open transactions of one client."""
    transaction_messages: int = 10_000
    """Messages in the open transactions of one client.

    A Kafka transaction that holds as many takes in no further client's transaction.
    """
    transaction_messages_of_all: int = 40_000
    transaction_bytes: int = 32 * _MIB
    """Encoded bytes of messages in the open transactions of one client."""
    transaction_bytes_of_all: int = 128 * _MIB

    waiting_bytes: int = 4 * _MIB
    """Bytes of one client's messages that wait for the journal.

    From this amount on the listener reads nothing from the client.
    """
    waiting_bytes_of_all: int = 32 * _MIB

    slice_frames: int = 128
    """Frames of one client before another client's turn."""
    slice_seconds: float = 0.004
    """Seconds of one client before another client's turn."""
    turn_seconds: float = 0.01
    """Seconds for the turns of all clients before answers are sent and new connections are accepted.

    Also the seconds of a sink for one round of handing out messages.
    """
    selecting_seconds: float = 0.002
    """Seconds for evaluating one receiver's selector before another receiver's turn."""

    stalled_seconds: float = 60.0
    """Seconds without a message taken from an address, after which the address is stalled.

    A stalled address has to make room for others.
    """
    stalled_messages: int = 1000
    """Messages that all stalled addresses together keep when they make room."""
    stalled_bytes: int = 16 * _MIB
    """Bytes of message bodies that all stalled addresses together keep when they make room."""

    @classmethod
    def of(cls, broker: AmqpConfig) -> ListenerLimits:
        """Limits that a source or sink configures, with the defaults of all others."""
        return cls(clients=broker.max_clients, transaction_seconds=broker.transaction_timeout_seconds)

    @property
    def link_pool(self) -> Pool:
        """Pool of all clients' links."""
        return Pool(self.links_of_all, self.clients)

    @property
    def message_pool(self) -> Pool:
        """Pool of messages in all clients' open transactions."""
        return Pool(self.transaction_messages_of_all, self.clients)

    @property
    def byte_pool(self) -> Pool:
        """Pool of bytes in all clients' open transactions."""
        return Pool(self.transaction_bytes_of_all, self.clients)
