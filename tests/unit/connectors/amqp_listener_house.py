"""An AMQP listener for tests, without socket and journal, and a client that says what a test wants it to say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.connectors.amqp import performatives
from engine.connectors.amqp.frames import AMQP, PROTOCOL_HEADER, SASL, SASL_HEADER, AmqpFrameParser, frame
from engine.connectors.amqp.performatives import Code, Condition, Role, Terminus
from engine.connectors.amqp.settings import AmqpSourceConfig
from engine.connectors.amqp.system import SYSTEM
from engine.connectors.amqp_listener.access import Logins
from engine.connectors.amqp_listener.connection import ServerConnection
from engine.connectors.amqp_listener.limits import ListenerLimits

if TYPE_CHECKING:
    from engine.connectors.amqp.codec.values import Described
    from engine.connectors.amqp.links import IncomingTransfer, Link, Sender
    from engine.connectors.amqp_listener.coordinator import Transaction
    from engine.connectors.amqp_listener.session import ClientConnection, ServerSession


BAD = b"bad"
"""A message that no transaction takes."""


class House:
    """What clients connect to, without a journal."""

    container = "bridge"
    heartbeat_seconds = 10.0
    offered: tuple[str, ...] = ("ANONYMOUS-RELAY",)
    max_bytes = 1000
    links = 0

    def __init__(
        self, username: str | None = None, password: str | None = None, limits: ListenerLimits | None = None
    ) -> None:
        self.limits = limits or ListenerLimits()
        config = AmqpSourceConfig(name="l", type=SYSTEM, destinations=(), username=username, password=password)
        self.logins = Logins(config)
        self.taken: list[IncomingTransfer] = []
        self.gone: list[Link] = []
        self.committing: list[Transaction] = []
        self.undone: list[list[bytes]] = []
        """The work of transactions that were rolled back."""

    def sends(self, terminus: Terminus | None) -> Condition | None:
        allowed = terminus is None or terminus.destination == "queue:a"
        return None if allowed else Condition("amqp:not-found", "no such queue")

    def receives(self, link: Sender) -> Condition | None:
        return Condition("amqp:not-allowed", link.terminus.destination)

    def takes(self, peer: ClientConnection) -> bool:
        return True

    def arrived(self, incoming: IncomingTransfer) -> None:
        self.taken.append(incoming)

    def posted(self, transaction: Transaction, incoming: IncomingTransfer) -> Condition | None:
        if incoming.encoded == BAD:
            return Condition("amqp:decode-error", "bad")
        transaction.work.append(incoming.encoded)
        return None

    def commit(self, transaction: Transaction) -> None:
        self.committing.append(transaction)

    def roll_back(self, transaction: Transaction) -> None:
        self.undone.append(transaction.work)
        transaction.work = []

    def credited(self, link: Sender) -> None:
        """Clients get no messages here."""

    def settled(self, session: ServerSession, fields: list[Any], outcome: Any, transaction: Transaction | None) -> None:
        """Clients get no messages here."""

    def left(self, link: Link) -> None:
        self.gone.append(link)


class Client:
    """Says what a test wants it to say, and reads what comes back."""

    def __init__(self, house: House) -> None:
        self.peer = ServerConnection(house, "client", 0.0)
        self._parser = AmqpFrameParser()
        self.headers: list[bytes] = []

    def say(self, *data: bytes) -> list[tuple[int, list[Any]]]:
        """The answers."""
        self.peer.feed(b"".join(data), 0.0)
        answer = bytes(self.peer.outgoing)
        self.peer.outgoing.clear()
        while answer.startswith(b"AMQP"):
            self.headers.append(answer[:8])
            answer = answer[8:]
            if self.headers[-1] == SASL_HEADER:
                found = self._parser.one(answer)
                assert found is not None or not answer
                return [] if found is None else [performatives.read(found[2])]
        return [performatives.read(body) for _, _, body in self._parser.feed(answer)]

    def opened(self) -> Client:
        """Connected, with a session on channel 0."""
        answers = self.say(PROTOCOL_HEADER, said(performatives.open_("c", "h", 0, "test")), said(performatives.begin()))
        assert [code for code, _ in answers] == [Code.OPEN, Code.BEGIN]
        return self

    def sending(self, address: str = "a", handle: int = 0) -> list[tuple[int, list[Any]]]:
        return self.say(said(attach(Terminus(address, "queue").target(), handle)))


def said(body: bytes, channel: int = 0, kind: int = AMQP) -> bytes:
    return frame(channel, body, kind)


def attach(target: Described | None, handle: int = 0) -> bytes:
    source = Terminus("here", "queue").source()
    return performatives.attach(f"link {handle}", handle, Role.SENDER, source, target)  # type: ignore[arg-type]


def message(number: int, payload: bytes = b"x", *, more: bool = False) -> bytes:
    return said(performatives.transfer(0, number, b"t", 0, more=more) + payload)


def init(mechanism: str, response: bytes) -> bytes:
    return said(performatives.sasl_init(mechanism, response, "h"), kind=SASL)
