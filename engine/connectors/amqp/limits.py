"""Bounds of an AMQP listener: the memory, places and processor time that clients may use, each and all together.

`docs/security.md` lists them; the tests in `test_amqp_listener_bounds.py` measure them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from routes.immutable import immutable

if TYPE_CHECKING:
    from routes.model import BrokerConfig

__all__ = ["ListenerLimits", "Pool", "TransactionUse"]

_KIB, _MIB = 1024, 1024 * 1024


@immutable
class Pool:
    """An amount that all clients share. A client below its equal share gets something also when the pool is used up."""

    total: int
    shares: int

    def is_spent(self, used_by_client: int, used_by_all: int, wanted: int = 1) -> bool:
        """Whether this client does not get so much more. All clients together get at most twice `total`."""
        return used_by_all + wanted > self.total and used_by_client + wanted > self.total // self.shares


@dataclass(slots=True)
class TransactionUse:
    """Amount that the open transactions of one client take."""

    open: int = 0
    messages: int = 0
    bytes: int = 0


@immutable
class ListenerLimits:
    """Bounds of one listener."""

    clients: int = 500
    transaction_seconds: float = 120.0
    """From the first message of a transaction to its end."""

    hello_seconds: float = 15.0
    """From the connection to its open: TLS handshake, login and AMQP open."""
    before_open_bytes: int = 64 * _KIB
    frame_bytes: int = 128 * _KIB
    performative_bytes: int = 64 * _KIB
    """A frame that is no transfer."""
    frame_seconds: float = 30.0
    """From the first byte of a frame to its last."""
    part_seconds: float = 60.0
    """From one transfer of a message to the next one."""
    unfinished_bytes: int = 16 * _MIB
    """Begun frames and messages of one client, beside one message of the largest size."""
    unfinished_bytes_of_all: int = 128 * _MIB
    unread_bytes: int = 256 * _KIB
    """Answers and messages that a client has not read; nothing is read from it while it has so many."""
    unread_seconds: float = 30.0
    """For how long a client may read nothing."""

    channels: int = 256
    handles: int = 256
    """Links of one session."""
    links: int = 1000
    """Links of one client."""
    links_of_all: int = 20_000
    selector_bytes: int = 16 * _KIB
    selector_likes: int = 32
    """LIKE conditions of one selector: each takes time in proportion to the text."""

    transactions: int = 256
    """Open transactions of one client."""
    transaction_messages: int = 10_000
    """Messages in open transactions of one client."""
    transaction_messages_of_all: int = 40_000
    transaction_bytes: int = 32 * _MIB
    transaction_bytes_of_all: int = 128 * _MIB

    waiting_bytes: int = 4 * _MIB
    """Messages of one client that wait for the journal; nothing is read from it while it has so many."""
    waiting_bytes_of_all: int = 32 * _MIB

    slice_frames: int = 128
    """Frames of one client before it is another one's turn."""
    slice_seconds: float = 0.004
    turn_seconds: float = 0.01
    """All slices before answers are sent and new connections are looked at."""
    selecting_seconds: float = 0.002
    """Evaluations of one receiver's selector before it is another receiver's turn."""

    stalled_seconds: float = 60.0
    """From the last message that the clients of an address have taken until it has to make room for others."""
    stalled_messages: int = 1000
    """Messages that all such addresses keep then."""
    stalled_bytes: int = 16 * _MIB

    @classmethod
    def of(cls, broker: BrokerConfig) -> ListenerLimits:
        """The limits that a source or sink sets, and the defaults of all others."""
        return cls(clients=broker.max_clients, transaction_seconds=broker.transaction_timeout_seconds)

    @property
    def link_pool(self) -> Pool:
        """Links of all clients."""
        return Pool(self.links_of_all, self.clients)

    @property
    def message_pool(self) -> Pool:
        """Messages in open transactions of all clients."""
        return Pool(self.transaction_messages_of_all, self.clients)

    @property
    def byte_pool(self) -> Pool:
        """Bytes in open transactions of all clients."""
        return Pool(self.transaction_bytes_of_all, self.clients)
