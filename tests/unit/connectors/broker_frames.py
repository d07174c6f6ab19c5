"""Frames of real brokers on connecting, and a broker that says them.

The brokers are ActiveMQ Artemis 2.40.0, ActiveMQ Classic 5.18.3, RabbitMQ 3.10.8 and 4.0.5, Qpid Broker-J 9.2.1 and
OpenMQ 6.5.0.
"""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.values import AmqpMap, Array, Described, Symbol, UByte, UInt, ULong, UShort
from engine.connectors.amqp.frames import PROTOCOL_HEADER, SASL, SASL_HEADER, AmqpFrameParser, frame
from engine.connectors.amqp.performatives import Code

if TYPE_CHECKING:
    from collections.abc import Sequence


ARTEMIS, CLASSIC, RABBITMQ, BROKER_J, OPENMQ = "Artemis", "Classic", "RabbitMQ", "Broker-J", "OpenMQ"
RABBITMQ_4, OTHER = "RabbitMQ 4", "other"

CONNECTED = {
    ARTEMIS: "server:ActiveMQ-Artemis/2.40.0 ActiveMQ Artemis Messaging Engine",
    CLASSIC: "server:ActiveMQ/5.18.3",
    RABBITMQ: "server:RabbitMQ/3.10.8",
    RABBITMQ_4: "server:RabbitMQ/4.0.5",
    OPENMQ: "server:Eclipse OpenMQ(tm)",
    OTHER: "server:Coil/1.0",
}
BAD_CONNECT = (
    b"ERROR\nmessage:Bad CONNECT\ncontent-type:text/plain\nversion:1.0,1.1,1.2\ncontent-length:38\n\n"
    b"Virtual host '127.0.0.1' access denied\x00\n"
)


def stomp(broker: str) -> bytes:
    """The answer to CONNECT, and receipts for two subscriptions."""
    receipts = "".join(f"RECEIPT\nreceipt-id:subscribed-{number}\n\n\0" for number in (1, 2))
    return f"CONNECTED\nversion:1.2\nheart-beat:0,0\n{CONNECTED[broker]}\n\n\0{receipts}".encode()


def performative(code: int, *fields: object) -> bytes:
    return frame(0, encode(Described(ULong(code), list(fields))))


def symbols(*names: str) -> Array:
    return Array(0xA3, tuple(map(Symbol, names)))


OPENED: dict[str, tuple[Sequence[str], dict[str, str]]] = {
    ARTEMIS: (
        ("sole-connection-for-container", "DELAYED_DELIVERY", "SHARED-SUBS", "ANONYMOUS-RELAY"),
        {"product": "apache-activemq-artemis", "version": "2.40.0"},
    ),
    CLASSIC: (
        ("ANONYMOUS-RELAY", "DELAYED_DELIVERY"),
        {"product": "ActiveMQ", "topic-prefix": "topic://", "queue-prefix": "queue://", "version": "5.18.3"},
    ),
    RABBITMQ: (
        (),
        {"cluster_name": "try@vm", "platform": "Erlang/OTP 25.2.3", "product": "RabbitMQ", "version": "3.10.8"},
    ),
    RABBITMQ_4: (
        ("LINK_PAIR_V1_0", "ANONYMOUS-RELAY"),
        {"cluster_name": "try@vm", "platform": "Erlang/OTP 27.3.4", "product": "RabbitMQ", "version": "4.0.5"},
    ),
    BROKER_J: (
        ("ANONYMOUS-RELAY", "SHARED-SUBS", "sole-connection-for-container"),
        {"product": "Apache Qpid Broker-J Core", "version": "9.2.1"},
    ),
    OTHER: ((), {"product": "Other", "version": "1"}),
}


def amqp(broker: str) -> bytes:
    """All that the broker says until the session has begun."""
    offered, told = OPENED[broker]
    properties = AmqpMap([(Symbol(name), value) for name, value in told.items()])
    login = frame(0, encode(Described(ULong(Code.SASL_MECHANISMS), [symbols("ANONYMOUS", "PLAIN")])), SASL)
    welcome = frame(0, encode(Described(ULong(Code.SASL_OUTCOME), [UByte(0)])), SASL)
    limits = (UInt(131072), UShort(0), UInt(0), None, None)
    opened = performative(Code.OPEN, "broker", None, *limits, symbols(*offered) if offered else None, None, properties)
    begun = performative(Code.BEGIN, UShort(0), UInt(0), UInt(100), UInt(100))
    return SASL_HEADER + login + welcome + PROTOCOL_HEADER + opened + begun


def attached(name: str, kinds: Sequence[str], durable: int = 0, selector: str | None = None) -> bytes:
    """The broker's end of a receiving link, with what it says of its source."""
    code, key = 0x0000_468C_0000_0004, Symbol("apache.org:selector-filter:string")
    filters = None if selector is None else AmqpMap([(key, Described(ULong(code), selector))])
    fields: list[Any] = ["a", UInt(durable), None, None, None, None, None, filters, None, None, symbols(*kinds)]
    source = Described(ULong(0x28), fields)
    return performative(Code.ATTACH, name, UInt(0), False, UByte(0), UByte(0), source, None, None, None, UInt(0))


ATTACH, CLOSE, DISCONNECT = b"\0\x53\x12", b"\0\x53\x18", b"DISCONNECT"


def attach_of(heard: bytes) -> list[Any]:
    """The fields of the first attach in what the bridge has sent."""
    parser = AmqpFrameParser()
    _, _, frames = heard.partition(PROTOCOL_HEADER)
    for _, _, body in parser.feed(frames):
        code, fields = performatives.read(body)
        if code == Code.ATTACH:
            return fields
    raise AssertionError("no attach")


def source_of(heard: bytes) -> list[Any]:
    """The fields of the source in the first attach."""
    fields: list[Any] = attach_of(heard)[5].value
    return fields


class ScriptedBroker:
    """Says what it has to say, whatever it hears: one part at once, the other when it is asked for a link."""

    def __init__(self, script: bytes, attach: bytes = b"") -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._script, self._attach = script, attach
        self.heard = b""
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.sendall(self._script)
            while data := connection.recv(65536):
                self.heard += data
                if self._attach and ATTACH in self.heard:
                    connection.sendall(self._attach)
                    self._attach = b""
                if CLOSE in self.heard or DISCONNECT in self.heard:
                    return

    def close(self) -> None:
        self._listener.close()
        self._thread.join(10)
