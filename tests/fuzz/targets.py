"""What reads bytes of strangers, each as a function to be fed with anything, and what it may answer.

A target takes any bytes in bounded time and memory, and raises nothing but the errors that its module promises.
Seeds are well-formed inputs, from which wrong ones are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from engine import jms_values
from engine.connectors.amqp import encoded_edits, performatives
from engine.connectors.amqp import frames as amqp_frames
from engine.connectors.amqp.codec import decoding, encoding, sections
from engine.connectors.amqp.codec.values import AmqpError, AmqpMap, Array, Byte, Described, Symbol, UByte, UInt, ULong
from engine.connectors.amqp.performatives import Role, Terminus
from engine.connectors.amqp.transformers import TransformError, TransformerSettings, inbound, outbound
from engine.connectors.amqp_listener.connection import ServerConnection
from engine.connectors.base import RefusedError
from engine.connectors.dropbox import file_name
from engine.connectors.dropbox.box import locate
from engine.connectors.kafka.message import RecordConverter, SourceRecord
from engine.connectors.kafka.settings import KafkaSourceConfig
from engine.connectors.nats import headers as nats_headers
from engine.connectors.nats import json_frame, typed_frame
from engine.connectors.nats import message as nats_message
from engine.connectors.nats.client import Parser
from engine.connectors.nats.header_frame import FrameError, HeaderFrame
from engine.connectors.nats.settings import WireFormat
from engine.connectors.stomp import frames as stomp_frames
from engine.connectors.stomp.message import to_message as stomp_message
from engine.connectors.stomp.traits import SPECIFICATION, TRAITS
from engine.delivery.replies import ReturnAddress
from engine.kafka.security import read_jaas
from engine.message import Message, Record
from engine.route_tests import read_cases
from routes.config import lint_text, loads
from routes.errors import ConfigurationError, PredicateError
from routes.keys.values import BadValueError
from routes.predicate import evaluate, parse
from routes.properties import JmsType, Property
from tests.unit.connectors.amqp_listener_house import House

if TYPE_CHECKING:
    from engine.connectors.amqp.links import IncomingTransfer, Sender
    from engine.connectors.amqp.performatives import Condition
    from engine.connectors.amqp_listener.coordinator import Transaction

__all__ = ["TARGETS", "Target"]

MOST_BYTES = 4096
"""Of an input that fuzzing makes."""


@dataclass(frozen=True)
class Target:
    """One reader."""

    name: str
    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    """What it may raise."""
    seeds: Sequence[bytes]

    def feed(self, data: bytes) -> None:
        """Raises what the target should not have raised."""
        with suppress(*self.errors):
            self.read(data)


def pieces(data: bytes) -> Iterator[bytes]:
    """The bytes behind the first, cut as that says: a stream comes in any pieces."""
    size = data[0] if data else 0
    rest = data[1:]
    for start in range(0, len(rest), size or len(rest) or 1):
        yield rest[start : start + (size or len(rest))]


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


# AMQP

VALUE = [1, "text", b"bytes", Symbol("s"), AmqpMap([("k", 1.5), (UInt(1), None)]), Array(0xA1, ("a", "b")), True]


def section(code: int, value: Any) -> bytes:
    return encoding.encode(Described(ULong(code), value))


MESSAGE = (
    section(0x70, [True, UByte(3)])
    + section(0x72, AmqpMap([(Symbol("x-opt-jms-msg-type"), Byte(5))]))
    + section(0x73, ["id", b"user", "queue/a", "subject", "queue/r", ULong(7)])
    + section(0x74, AmqpMap([("p", 1), ("q", "x")]))
)
BODIES = [section(0x75, b"bytes"), section(0x77, "text"), section(0x77, AmqpMap([("k", 1)])), section(0x76, [1])]
MESSAGES = [MESSAGE + body for body in BODIES]
SOURCE = Terminus("a", "queue")
PERFORMATIVES = [
    performatives.open_("c", "h", 1000, "p"),
    performatives.begin(),
    performatives.attach("l", 0, Role.SENDER, SOURCE.source(), SOURCE.target()),
    performatives.attach("m", 1, Role.RECEIVER, SOURCE.source(), SOURCE.target()),
    performatives.flow(0, 0, 1, 0, 100),
    performatives.transfer(0, 0, b"tag", 0, more=True) + MESSAGES[0],
    performatives.transfer(0, 0, b"tag", 0, more=False) + MESSAGES[1],
    performatives.disposition(Role.RECEIVER, 0, 2**32 - 1, performatives.ACCEPTED),
    performatives.detach(0, closed=True),
    performatives.end(),
    performatives.close(),
]
SAID = b"".join(amqp_frames.frame(0, body) for body in PERFORMATIVES)
LOGIN = amqp_frames.frame(0, performatives.sasl_init("PLAIN", b"\0app\0s3cret", "h"), amqp_frames.SASL)
WITH_LOGIN = amqp_frames.SASL_HEADER + LOGIN + amqp_frames.PROTOCOL_HEADER + SAID


class OpenHouse(House):
    """A listener for clients that say anything, and get whatever they ask for."""

    def receives(self, link: Sender) -> Condition | None:
        return None

    def arrived(self, incoming: IncomingTransfer) -> None:
        incoming.receiver.taken()

    def commit(self, transaction: Transaction) -> None:
        transaction.work.clear()


def amqp_peer(data: bytes) -> None:
    peer = ServerConnection(OpenHouse(*(("app", "s3cret") if data[:1] > b"\x7f" else ())), "client", 0.0)
    for piece in pieces(data):
        peer.feed(piece, 0.0)
        assert len(peer.outgoing) < 100 * MOST_BYTES
    peer.tick(100.0)
    assert peer.ended


def amqp_frames_(data: bytes) -> None:
    parser = amqp_frames.AmqpFrameParser()
    found = [frame for piece in pieces(data) for frame in parser.feed(piece)]
    whole = list(amqp_frames.AmqpFrameParser().feed(data[1:]))
    assert found == whole


def amqp_performative(data: bytes) -> None:
    if performatives.is_transfer(data):
        performatives.read_transfer(data)
    _, fields = performatives.read(data)
    for index in range(12):
        value = performatives.field(fields, index)
        performatives.condition_of(value)
        performatives.outcome_of(value)
        with suppress(AmqpError):
            performatives.number(fields, index)


@cache
def transformers() -> tuple[Any, Any]:
    return inbound(TransformerSettings()), outbound(TransformerSettings())


def amqp_message(data: bytes) -> None:
    reading, writing = transformers()
    message = Message.from_record(reading.to_message(data, 0, "queue:a", "source").to_record())
    with suppress(RefusedError):
        encoded, _ = writing.encoded(message, "queue/b", None)
        sections.decode(encoded)


def amqp_splicing(data: bytes) -> None:
    encoded_edits.shortened(data, 10)
    encoded_edits.with_duplicate_id(data, "id")


# STOMP

STOMP = (
    b"CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0\n",
    b"MESSAGE\r\ndestination:/queue/a\nmessage-id:1\nx\\cy:a\\nb\ncontent-length:3\n\na\0b\0",
    b"MESSAGE\ndestination:a\nJMSXGroupID:g\njmsbridge.origin:x,y\n\n" + b"b" * 200 + b"\0",
    b"ERROR\nmessage:no\n\ntext\0\n\nRECEIPT\nreceipt-id:7\n\n\0",
)


def stomp(data: bytes) -> None:
    parser = stomp_frames.StompFrameParser(100, 10)
    for piece in pieces(data):
        for frame in parser.feed(piece):
            for traits in (*TRAITS.values(), SPECIFICATION):
                stomp_message(frame, "queue", "source", traits).to_record()


# NATS


class Server:
    """What nats-py does with what is not a message of ours."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def nothing(*_: object, **__: object) -> None: ...

        return nothing


def nats_protocol(data: bytes) -> None:
    client: Any = Server()
    parser = Parser(client, {1: lambda *_: None}, lambda: None)
    for piece in pieces(data):
        with suppress(StopIteration):
            parser.parse(piece).send(None)


NATS = (
    b'INFO {"max_payload":1048576}\r\nPING\r\nPONG\r\n+OK\r\n',
    b"MSG orders.new 1 5\r\nhello\r\nMSG a 2 reply 2\r\nhi\r\n",
    b"HMSG orders 1 _INBOX.x 18 23\r\nNATS/1.0\r\na: b\r\n\r\nhello\r\n-ERR 'Authorization Violation'\r\n",
)
NATS_HEADERS = (
    b"NATS/1.0\r\njmsbridge.types: a=int,b=long\r\na: 1\r\nb: 2\r\nJMSType: t\r\nNats-Msg-Id: 7\r\n\r\n",
    b"NATS/1.0 503 No Responders\r\n\r\n",
)


def nats_message_(data: bytes) -> None:
    block, _, body = data.partition(b"\r\n\r\n")
    incoming = nats_message.IncomingMessage("a.b", text(body[:200]), block, body)
    nats_headers.status(block)
    facts = nats_message.stored(incoming.reply)
    message, _ = nats_message.to_message(incoming, facts, WireFormat.AUTO, "source", lambda: ("ID:1", 1))
    for wire in (WireFormat.HEADERS, WireFormat.JSON, WireFormat.TYPED):
        with suppress(RefusedError):
            nats_message.to_wire(Message.from_record(message.to_record()), wire, "id")


FRAME = HeaderFrame(b"body", {"BRIDGE_mode": Property("2", JmsType.INT), "n": Property("1.5", JmsType.DOUBLE)})


def frame_of(codec: Any) -> Callable[[bytes], object]:
    def read(data: bytes) -> None:
        assert codec.decode(codec.encode(codec.decode(data))) is not None

    return read


# Folders, records, configuration


def dropbox(data: bytes) -> None:
    name = text(data).replace("/", "").replace("\0", "")
    found = file_name.decode(name)
    encoded = file_name.encode(found)
    assert "/" not in encoded
    assert not encoded.startswith(".")
    file_name.decode(encoded)
    file_name.rank(name, lambda: 0.0)


def dropbox_address(data: bytes) -> None:
    root = Path("spool")
    box = locate(root, text(data))
    path = Path(box.path)
    assert path.is_relative_to(root)
    assert ".." not in path.parts
    assert "\0" not in box.path


def bodies(data: bytes) -> None:
    types, _, body = data.partition(b"\n")
    declared = types.decode("utf-8", "replace")
    for decode in (jms_values.decode_map, jms_values.decode_stream, jms_values.decode_object):
        with suppress(jms_values.StructureError):
            decode(body, declared)


def record_of(data: bytes) -> Record:
    key, _, rest = data.partition(b"\n")
    value, *headers = rest.split(b"\n\n")
    pairs = (header.partition(b"=") for header in headers)
    return Record(key, value, tuple((name.decode("utf-8", "replace"), value) for name, _, value in pairs))


@cache
def reader() -> RecordConverter:
    lines = (
        "bridge.id=b\nsource.k.type=kafka\nsource.k.destinations=t\nsource.k.address=queue:${topic}.${msg.header.a}\n"
    )
    config = loads(f"{lines}routes.r.in.include=TRUE\nroutes.r.out.topic=o\n")
    (source,) = config.sources
    assert isinstance(source, KafkaSourceConfig)
    return RecordConverter(source, "b")


def record(data: bytes) -> None:
    found = record_of(data)
    message, _ = reader().message(SourceRecord(found, "t", 0, 0, -1))
    Message.from_record(message.to_record())


def predicate(data: bytes) -> None:
    given = {"a": Property("1", JmsType.INT), "b": Property("x%y"), "JMSType": Property("t", JmsType.STRING)}
    evaluate(parse(data.decode("utf-8", "replace")), given.get)


def route_tests(data: bytes) -> None:
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        read_cases(Path(file.name))


def return_address(data: bytes) -> None:
    found = ReturnAddress.decode("jb1-" + text(data))
    assert found is None or ReturnAddress.decode(found.encode()) is not None


PREDICATES = (
    b"msg.address==foo && !(a > 1.5e3 OR b LIKE 'x\\%%_' ESCAPE '\\') AND c NOT IN ('a', 'b', 'it''s')",
    b'a BETWEEN 1 AND -0x1F AND "x-y" IS NOT NULL || msg.header."q" != bare-word AND a + 1 * (2 - b) / 3 <> 017',
)
PROPERTIES = (
    b"bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:a, topic:b\nsource.s.password=${env:NONE}\n"
    b"routes.r.in.include=a = 1\nroutes.r.out.topic=kafka:${msg.header.x}\n",
    b"# c\nkafka.bootstrap.servers=h:1,[::1]:2\n"
    b"routing.key-pattern=[a-z]+\\\n   x\nhttp.address=0.0.0.0:1\n\\u0041=\\q\n",
    b"sink.n.type=nats\nsink.n.url=tls://h:1\nsource.k.type=kafka\nsource.k.destinations=a.*, b\nrouter.interval=5s\n",
)
ROUTE_TESTS = (
    b"tests:\n- name: a\n  message: {address: queue:a, headers: {JMSType: t}, properties: {n: {type: int, value: 5}}}\n"
    b"  expect:\n    route: a\n    headers: {x: ~, y: {base64: AAE=}}\n",
    b'# c\ntests:\n  - message: &m {body_json: {a: [1, 1.5e3, null, true, "\\u00e9"]}}\n    expect: none\n'
    b"  - message: *m\n    expect: {dead-letter: key-not-found, topic: dead}\n",
)
JAAS = b'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="a\\"b";'
TOKEN = ReturnAddress("nats", "a.b", "id", 5).encode().removeprefix("jb1-").encode()

TARGETS = (
    Target("amqp value", decoding.decode, (AmqpError,), [encoding.encode(value) for value in (VALUE, *VALUE)]),
    Target("amqp sections", sections.decode, (AmqpError,), MESSAGES),
    Target("amqp message", amqp_message, (TransformError,), MESSAGES),
    Target("amqp splicing", amqp_splicing, (), MESSAGES),
    Target("amqp performative", amqp_performative, (AmqpError,), PERFORMATIVES),
    Target("amqp frames", amqp_frames_, (amqp_frames.AmqpFrameError,), [b"\x07" + SAID, b"\0" + SAID]),
    Target("amqp peer", amqp_peer, (), [b"\0" + amqp_frames.PROTOCOL_HEADER + SAID, b"\xff" + WITH_LOGIN]),
    Target("stomp", stomp, (stomp_frames.StompFrameError,), [b"\x05" + seed for seed in STOMP]),
    # Whatever it raises ends the connection, which then says that this is not NATS.
    Target("nats protocol", nats_protocol, (Exception,), [b"\x09" + seed for seed in NATS]),
    Target("nats message", nats_message_, (), [block + json_frame.encode(FRAME) for block in NATS_HEADERS]),
    Target("json frame", frame_of(json_frame), (FrameError,), [json_frame.encode(FRAME)]),
    Target("typed frame", frame_of(typed_frame), (FrameError,), [typed_frame.encode(FRAME)]),
    Target("structured bodies", bodies, (), [b'a=int,b=float\n{"a":1,"b":"NaN"}', b'int,bytes\n[1,"aGk="]']),
    Target("kafka record", record, (), [b"key\nvalue\n\njms.a=1\n\njmsbridge.types=a=int\n\njms.int.b=\0\0\0\1"]),
    Target("dropbox file name", dropbox, (), [b"4.1140429201295000-92.T.1.corr%2E1.Queue1.Type.aS=hello&bI=1"]),
    Target("dropbox address", dropbox_address, (RefusedError,), [b"queue/orders", b"topic/a.b", b"/queue:x"]),
    Target("return address", return_address, (), [TOKEN]),
    Target("predicate", predicate, (PredicateError,), PREDICATES),
    Target("properties", lambda data: lint_text(data.decode("utf-8", "replace"), env={}), (), PROPERTIES),
    Target("route tests", route_tests, (ConfigurationError,), ROUTE_TESTS),
    Target("jaas", lambda data: read_jaas(data.decode("utf-8", "replace")), (BadValueError,), [JAAS]),
)
