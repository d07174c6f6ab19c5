"""Names and bodies through the sink and the source of each system, and of each pair of systems, and back."""

from __future__ import annotations

import struct
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.connectors.amqp.transformer_settings import TransformerSettings
from engine.connectors.amqp.transformers import inbound, outbound
from engine.connectors.base import RESERVED, Outgoing
from engine.connectors.dropbox import file_name
from engine.connectors.dropbox import message as dropbox
from engine.connectors.jms_client.message import deliveries, encoded
from engine.connectors.jms_client.process import texts, texts_at
from engine.connectors.kafka.message import RecordConverter, SourceRecord
from engine.connectors.kafka.settings import KafkaSourceConfig
from engine.connectors.kafka.system import SYSTEM
from engine.connectors.nats import message as nats
from engine.connectors.nats.settings import WireFormat
from engine.connectors.products import ARTEMIS, COMMANDS, OPENMQ, Product
from engine.connectors.stomp.frames import StompFrameParser
from engine.connectors.stomp.message import to_frame, to_message
from engine.connectors.stomp.traits import traits_of
from engine.message import BodyType, Message
from engine.property_names import take_not_kept
from routes.properties import JmsType, Property
from routes.targets import KAFKA_TOPIC, Reference, Template

if TYPE_CHECKING:
    from collections.abc import Callable

KAFKA = KafkaSourceConfig(
    name="in", type=SYSTEM, destinations=("t",), address=Template(("topic:", Reference(KAFKA_TOPIC)))
)
NAMES = (
    *("trace-id", "trace_id", "trace.id", "größe", "gr__e", "NOT", "in", "content-type", "X-Request-Id", "a b", "1st"),
    *("a_HYPHEN_b", "a_DOT_b", "a_U005F_DOT_b", "a,b=c%", "a:b", "{x}", "\N{PARTY POPPER}", "$", "ab\tc"),
)

NAMES_OF_SENDERS = st.text(max_size=12).filter(
    lambda name: not name.startswith(("JMS", *RESERVED)) and not COMMANDS.match(name)
)
"""Hypothesis tries words of this project's sources too; names of JMS, of the bridge and of brokers are not sent on."""


def outgoing(message: Message) -> Outgoing:
    return Outgoing(7, message, "queue/q", "b1/1/j:0:5", None)


def by_kafka(message: Message) -> Message:
    record = message.to_record()
    return RecordConverter(KAFKA, "b1").message(SourceRecord(record, "t", 0, 1, 1000))[0]


def by_jms(message: Message) -> Message:
    """The message as a provider would give it to a source that takes what a sink sends."""
    data = encoded(outgoing(message))
    _, letter = struct.unpack_from(">QB", data)
    (_, _, _, _, *pairs), at = texts_at(data, 9)
    names = [value[0] + name for name, value in zip(pairs[::2], pairs[1::2], strict=True)]
    values = [value[1:] for value in pairs[1::2]]
    shared = sorted({*names, *values})
    body = data[at + 4 :]
    frame = (
        struct.pack(">II", 0, 1)
        + texts(shared)
        + struct.pack(f">{2 + len(names)}I", 1, len(names), *map(shared.index, names))
    )
    frame += struct.pack(">QBI", len(body), letter, 0) + struct.pack(f">{len(values)}I", *map(shared.index, values))
    (found,) = deliveries(frame + struct.pack(">I", len(body)) + body, "s", 0, 1000)
    return found.message


def by_amqp(message: Message) -> Message:
    sent, form = outbound(TransformerSettings()).encoded(message, "queue/q", None)
    return inbound(TransformerSettings()).to_message(sent, form, "queue:q", "s")


def by_stomp(message: Message, broker: Product) -> Message:
    data = to_frame(outgoing(message), traits_of(broker))
    (frame,) = StompFrameParser(1 << 20, 1 << 20).feed(b"MESSAGE" + data.removeprefix(b"SEND"))
    return to_message(frame, "queue", "s", traits_of(broker))


def by_nats(message: Message) -> Message:
    headers, body = nats.to_wire(message, WireFormat.HEADERS, "id")
    incoming = nats.IncomingMessage("q", "", headers, body)
    return nats.to_message(incoming, None, WireFormat.AUTO, "s", lambda: ("ID:1", 1))[0]


def by_dropbox(message: Message) -> Message:
    found = dropbox.to_filename(outgoing(message))
    name = file_name.decode(found.long or found.text)
    return dropbox.to_message(name, message.body, "queue:q", "s", 1, redelivered=False)


SYSTEMS: dict[str, Callable[[Message], Message]] = {
    "kafka": by_kafka,
    "jms": by_jms,
    "amqp": by_amqp,
    "stomp": lambda message: by_stomp(message, ARTEMIS),
    "stomp at OpenMQ": lambda message: by_stomp(message, OPENMQ),
    "nats": by_nats,
    "dropbox": by_dropbox,
}
PAIRS = list(product(SYSTEMS, SYSTEMS))


def through(message: Message, *systems: str) -> Message:
    """The message behind the systems, with the journal between them."""
    for system in systems:
        message = Message.from_record(SYSTEMS[system](Message.from_record(message.to_record())).to_record())
    return message


def texts_of(message: Message, names: set[str]) -> dict[str, str]:
    return {name: value.text for name, value in message.named().items() if name in names}


@pytest.mark.parametrize(("there", "next_one"), PAIRS)
@given(st.sets(st.sampled_from(NAMES), min_size=1))
def test_names_come_back_through_every_pair_of_systems(there: str, next_one: str, names: set[str]) -> None:
    texts = {name: f"v-{name}" for name in names}
    if "content-type" in names and "OpenMQ" in there + next_one:
        # A command to that broker, which a sink must not pass on.
        names = names - {"content-type"}
        texts.pop("content-type", None)
    message = Message(b"x", headers={"JMSMessageID": "ID:1"}, properties={n: Property(t) for n, t in texts.items()})
    take_not_kept()
    found = through(message, there, next_one, there)
    assert texts_of(found, names) == texts
    assert take_not_kept() == 0


@pytest.mark.parametrize("system", SYSTEMS)
@given(st.dictionaries(NAMES_OF_SENDERS, st.text("ab", max_size=3), max_size=4))
@example({"jmsbridge:": "a", "jmsbridge_x": "b"})
def test_any_name_comes_back_or_is_counted(system: str, texts: dict[str, str]) -> None:
    message = Message(b"x", headers={"JMSMessageID": "ID:1"}, properties={n: Property(t) for n, t in texts.items()})
    if "stomp" in system and any("\0" in name for name in texts):
        return
    take_not_kept()
    found = texts_of(through(message, system), set(texts))
    assert found.items() <= texts.items()
    assert len(texts) - len(found) == take_not_kept()


@pytest.mark.parametrize("names", [("trace-id",), ("trace-id", "trace_id"), ("a.b", "a-b", "größe")])
@pytest.mark.parametrize(("there", "next_one"), PAIRS)
def test_headers_of_kafka_come_back_through_every_pair_of_systems(
    there: str, next_one: str, names: tuple[str, ...]
) -> None:
    """Also where a sink writes a spelling that routes know."""
    message = by_kafka(Message(b"x", properties={name: Property(name, JmsType.STRING) for name in names}))
    assert texts_of(through(message, there, next_one), set(names)) == {name: name for name in names}


@pytest.mark.parametrize("text", [None, b"", b"text"])
@pytest.mark.parametrize(("there", "next_one"), PAIRS)
def test_null_empty_and_no_body_are_told_apart(there: str, next_one: str, text: bytes | None) -> None:
    message = Message(b"x" if text is None else text, headers={"JMSMessageID": "ID:1"})
    if text is None:
        message = Message(b"", body_types="null", has_null_value=True)
    found = through(message, there, next_one)
    assert (found.body, found.body_type) == (text or b"", BodyType.TEXT)
    assert found.body_types == ("null" if text is None else "")
    assert found.has_null_value is (text is None and there == next_one == "kafka")


@pytest.mark.parametrize(("there", "next_one"), PAIRS)
def test_a_message_without_a_body_stays_one(there: str, next_one: str) -> None:
    found = through(Message(headers={"JMSMessageID": "ID:1"}, body_types="none"), there, next_one)
    assert (found.body, found.body_type, found.body_types) == (b"", BodyType.TEXT, "none")
    assert not found.has_null_value
