"""Messages in the frames of the process that runs a provider's client, and the settings of its sources and sinks."""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from engine.connectors.base import Delivery, Outgoing, RefusedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.jms_client.class_files import Classes, parse
from engine.connectors.jms_client.message import deliveries, encoded
from engine.connectors.jms_client.process import ClientProcess, Frame, connection_settings, texts, texts_at
from engine.connectors.jms_client.providers import provider_of
from engine.connectors.jms_client.settings import JmsClientConfig, JmsClientSinkConfig, JmsClientSourceConfig
from engine.connectors.jms_client.sink import JmsClientSink
from engine.connectors.jms_client.source import JmsClientSource
from engine.embedded.artemis import artemis_home
from engine.message import BodyType, Message
from routes import config as configuration
from routes.config import lint
from routes.errors import ConfigurationError
from routes.properties import JmsType, Property
from tests.conftest import JARS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from routes.errors import Fault

FACTORY = "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory"
LIB = artemis_home(JARS) / "lib"


def framed(letter: str, values: list[str], body: bytes = b"", size: int | None = None, channel: int = 3) -> bytes:
    """A frame with one message, as the child process writes it.

    `values` are names and values by turns, each value with the letter of its type before it.
    """
    named = [value[0] + name for name, value in zip(values[::2], values[1::2], strict=True)]
    shared = sorted({*named, *(value[1:] for value in values[1::2])})
    frame = struct.pack(">II", channel, 1) + texts(shared)
    frame += struct.pack(f">{2 + len(named)}I", 1, len(named), *map(shared.index, named))
    frame += struct.pack(">QBI", len(body) if size is None else size, ord(letter), 0)
    frame += struct.pack(f">{len(named)}I", *(shared.index(value[1:]) for value in values[1::2]))
    return frame + struct.pack(">I", len(body)) + body


def received(letter: str, values: list[str], body: bytes = b"", size: int | None = None) -> Delivery:
    """The delivery of a frame with one message; for `values` see `framed`."""
    (found,) = deliveries(framed(letter, values, body, size), "src", 41, 1000)
    return found


def block(*entries: tuple[str, str, bytes]) -> bytes:
    """Entries of a structured body, as both sides write them."""
    found = struct.pack(">I", len(entries))
    for name, letter, value in entries:
        found += struct.pack(">I", len(name)) + name.encode() + letter.encode() + struct.pack(">I", len(value)) + value
    return found


class Sent:
    """A message as the child process reads it."""

    def __init__(self, outgoing: Outgoing) -> None:
        data = encoded(outgoing)
        self.number, letter = struct.unpack_from(">QB", data)
        self.letter = chr(letter)
        (self.address, self.reply_to, self.id, _, *pairs), at = texts_at(data, 9)
        self.values = dict(zip(pairs[::2], pairs[1::2], strict=True))
        self.body = data[at + 4 :]


def sent(message: Message, address: str = "queue/orders", reply_to: str | None = None) -> Sent:
    return Sent(Outgoing(7, message, address, "b1/1/j:0:5", reply_to))


def test_fields_and_properties_are_received_with_their_types() -> None:
    values = ["JMSMessageID", "HID:1", "JMSPriority", "H4", "amount", "i5", "rate", "f0.1", "large", "d1.0E10"]
    values += ["on", "Ztrue", "text", "S", "raw", "BAQI=", "JMS_IBM_Format", "SMQSTR", "_AMQ_DUPL_ID", "Sx"]
    found = received("t", [*values, "jmsbridge.origin", "Sb1,b2", "jmsbridge.other", "Sx"], b"hello")
    assert found.token == (3, 42)
    assert found.size is None
    assert found.fault is None
    assert found.message == Message(
        b"hello",
        BodyType.TEXT,
        {"JMSMessageID": "ID:1", "JMSPriority": "4"},
        {
            "amount": Property("5", JmsType.INT),
            "rate": Property("0.1", JmsType.FLOAT),
            "large": Property("10000000000.0", JmsType.DOUBLE),
            "on": Property("true", JmsType.BOOLEAN),
            "text": Property("", JmsType.STRING),
            "raw": Property("AQI=", JmsType.BYTES),
            "JMS_IBM_Format": Property("MQSTR", JmsType.STRING),
        },
        "src",
        ("b1", "b2"),
    )


def test_a_message_that_cannot_be_read_has_its_fault_and_a_large_one_its_size() -> None:
    assert received("b", ["", "Fno way to the bytes"]).fault == "no way to the bytes"
    assert received("b", [], b"begin", 1001).size == 1001
    assert received("b", [], b"all", 1000).size is None


@pytest.mark.parametrize(("settings", "is_content"), [("", False), ("source.mq.identity=content\n", True)])
def test_a_message_without_an_id_gets_one_and_one_by_its_content_only_on_request(
    monkeypatch: pytest.MonkeyPatch, settings: str, is_content: bool
) -> None:
    config = configuration.loads(
        "bridge.id=b1\nroutes.a.in.include=TRUE\nroutes.a.out.topic=out\nsource.mq.type=jms\n"
        f"source.mq.destinations=queue:q\nsource.mq.connection-factory={FACTORY}\n"
        f"source.mq.class-path={LIB}/artemis-jms-client-*.jar, {LIB}/artemis-core-client-*.jar\n{settings}"
    )
    (own,) = config.sources
    assert isinstance(own, JmsClientSourceConfig)
    source = JmsClientSource(SystemEndpoint.of(config, own), 1)
    frames = iter(
        Frame(ord("M"), framed("t", ["JMSRedelivered", f"H{redelivered}", *identity], b"same", channel=0))
        for redelivered, identity in (("false", []), ("true", []), ("false", ["JMSMessageID", "HID:own"]))
    )
    monkeypatch.setattr(source._process, "next", lambda _: next(frames))

    first, again, other = (source.receive(1) for _ in range(3))

    assert first is not None
    assert again is not None
    assert other is not None
    ids = [each.message.headers["JMSMessageID"] for each in (first, again)]
    assert [each.startswith("ID:content-") for each in ids] == [is_content] * 2
    assert [each.startswith("ID:") for each in ids] == [True] * 2
    assert (ids[0] == ids[1]) is is_content
    assert [first.has_own_id, again.has_own_id, other.has_own_id] == [is_content, is_content, True]
    assert other.message.headers["JMSMessageID"] == "ID:own"
    assert [each.token for each in (first, again, other)] == [(0, 1), (0, 2), (0, 3)]


def test_structured_bodies_are_received_and_sent_alike() -> None:
    entries = [
        ("a", "i", b"5"),
        ("b", "N", b""),
        ("c", "B", b"\1\2"),
        ("d", "f", b"1.5"),
        ("e", "c", b"x"),
        ("f", "Z", b"true"),
    ]
    found = received("m", [], block(*entries)).message
    assert found.body == b'{"a":5,"b":null,"c":"AQI=","d":1.5,"e":"x","f":true}'
    assert sent(found).letter == "m"
    assert sent(found).body == block(*entries)
    unnamed = [("", *entry[1:]) for entry in entries]
    stream = received("s", [], block(*unnamed)).message
    assert stream.body_types == "int,null,bytes,float,char,boolean"
    assert sent(stream).body == block(*unnamed)


def test_an_object_is_carried_as_its_bytes_and_a_single_value_as_a_value() -> None:
    serialized = b"\xac\xed\x00\x05t\x00\x01o"
    found = received("o", [], serialized).message
    assert (found.body, found.body_type) == (serialized, BodyType.OBJECT)
    assert (sent(found).letter, sent(found).body) == ("o", serialized)
    value = sent(Message(b"5", BodyType.OBJECT, body_types="long"))
    assert (value.letter, value.body) == ("v", block(("", "l", b"5")))


def test_what_a_sender_can_set_is_sent() -> None:
    headers = {"JMSMessageID": "ID:1", "JMSCorrelationID": "c", "JMSXGroupSeq": "x", "JMSReplyTo": "topic:replies"}
    properties = {"n": Property("5", JmsType.INT), "bad": Property("x", JmsType.INT), "JMSXUserID": Property("me")}
    found = sent(Message(b"\xe2\x82\xac", headers=headers, properties=properties, origins=("b0",)), "topic/prices")
    assert (found.number, found.letter, found.address) == (7, "t", "topic:prices")
    assert (found.reply_to, found.id, found.body) == ("topic:replies", "b1/1/j:0:5", b"\xe2\x82\xac")
    assert found.values == {"JMSCorrelationID": "Hc", "n": "i5", "bad": "Sx", "jmsbridge.origin": "Sb0"}
    assert sent(Message(b""), reply_to="queue:mine").reply_to == "queue:mine"


@pytest.mark.parametrize(
    "message", [Message(b"5", BodyType.MAP), Message(b"{}", BodyType.STREAM), Message(b"\xff", BodyType.TEXT)]
)
def test_what_is_no_such_body_is_refused(message: Message) -> None:
    with pytest.raises(RefusedError):
        sent(message)


def test_texts_of_any_kind_come_back() -> None:
    values = ["", "a\0b", "ümlaut ☃ \U0001f600", "x" * 100_000]
    assert texts_at(texts(values), 0) == (values, len(texts(values)))
    assert texts_at(texts(["\ud800"]), 0)[0] == ["?"]


# settings


@pytest.fixture
def lines(tmp_path: Path) -> dict[str, str]:
    return {
        "bridge.id": "b1",
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "routes.all.in.include": "TRUE",
        "routes.all.out.topic": "out",
        "embedded.data": str(tmp_path / "data"),
        "source.mq.type": "jms",
        "source.mq.destinations": "queue:ORDERS",
        "source.mq.class-path": f"{LIB}/artemis-jms-client-*.jar, {LIB}/artemis-core-client-*.jar",
        "source.mq.connection-factory": FACTORY,
        "source.mq.connection-factory.brokerURL": "tcp://broker:61616?trustStorePassword=hunter2",
    }


def faults(folder: Path, lines: Mapping[str, str | None]) -> list[Fault]:
    file = folder / "b.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items() if value is not None), encoding="utf-8")
    return list(lint(file).faults)


def told(folder: Path, lines: Mapping[str, str | None], **changed: str | None) -> str:
    """The one fault, with key and hint."""
    changes = {f"source.mq.{key.replace('__', '.').replace('_', '-')}": value for key, value in changed.items()}
    (fault,) = faults(folder, {**lines, **changes})
    assert fault.line
    return f"{fault.message} ({fault.hint})"


def test_a_right_configuration_has_no_fault_and_shows_no_secret(tmp_path: Path, lines: dict[str, str]) -> None:
    given = {"source.mq.connection-factory.password": "geheim-1", "source.mq.heap": "64MiB"}
    assert faults(tmp_path, lines | given) == []
    config = configuration.load(tmp_path / "b.properties")
    (source,) = config.sources
    assert isinstance(source, JmsClientSourceConfig)
    assert config.url(source) == f"jms://{FACTORY}?brokerURL=tcp://broker:61616"
    assert "geheim-1" in source.secrets
    assert connection_settings(source)["property.password"] == "geheim-1"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"factory": "com.sun.messaging.ConnectionFactory"}, (100, 500, None)),
        ({"factory": FACTORY}, (4000, 500, "_AMQ_DUPL_ID")),
        ({"factory": "com.ibm.mq.jms.MQConnectionFactory"}, (4000, 500, None)),
        (
            {"jndi": {"java.naming.factory.initial": "com.solacesystems.jndi.SolJNDIInitialContextFactory"}},
            (200, 200, None),
        ),
    ],
    ids=["OpenMQ", "Artemis", "IBM MQ", "Solace by JNDI"],
)
def test_a_provider_is_known_by_its_classes(settings: dict[str, Any], expected: tuple[int, int, str | None]) -> None:
    found = provider_of(JmsClientConfig(type="jms", name="mq", **settings))
    assert (found.most_received, found.most_sent, found.duplicate_id) == expected


def test_a_batch_of_a_sink_is_not_larger_than_its_setting(
    tmp_path: Path, lines: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_sink = {key.replace("source.mq", "sink.out"): text for key, text in lines.items() if "source.mq." in key}
    del of_sink["sink.out.destinations"]
    assert faults(tmp_path, lines | of_sink | {"sink.out.batch": "2"}) == []
    config = configuration.load(tmp_path / "b.properties")
    (settings,) = config.sinks
    assert isinstance(settings, JmsClientSinkConfig)
    sink = JmsClientSink(SystemEndpoint.of(config, settings), 1)
    counts: list[int] = []
    monkeypatch.setattr(
        ClientProcess, "write", lambda _, __, content: counts.append(struct.unpack_from(">I", content)[0])
    )
    sink.send([Outgoing(number, Message(b"x"), "queue/a", str(number)) for number in range(5)])
    assert counts == [2, 2, 1]


def test_jars_that_are_missing_are_named(tmp_path: Path, lines: dict[str, str]) -> None:
    assert "there is no file 'lib/*.jar'" in told(tmp_path, lines, class_path="lib/*.jar")
    assert "has no client jars" in told(tmp_path, lines, class_path=None)
    assert "is not a Maven package" in told(tmp_path, lines, packages="artemis-jms-client")


def test_a_class_that_is_missing_or_no_connection_factory_is_named(tmp_path: Path, lines: dict[str, str]) -> None:
    alone = {name: text for name, text in lines.items() if not name.endswith("brokerURL")}
    mistyped = told(tmp_path, alone, connection_factory=FACTORY.replace("ActiveMQConn", "ActivMQConn"))
    assert f"no class {FACTORY.replace('ActiveMQConn', 'ActivMQConn')} in the class path (artemis-" in mistyped
    assert f"did you mean {FACTORY}" in mistyped
    other = told(tmp_path, alone, connection_factory=FACTORY.replace("Factory", "MetaData"))
    assert "ActiveMQConnectionMetaData of artemis-jms-client-" in other
    assert "is not a connection factory of javax.jms or jakarta.jms" in other
    assert "has no connection factory" in told(tmp_path, alone, connection_factory=None)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "client.jar").touch()
    assert f"write {tmp_path / 'lib'}/*" in told(tmp_path, alone, class_path=str(tmp_path / "lib"))
    (both,) = faults(tmp_path, lines | {"source.mq.jndi.connection-factory": "CF"})
    assert "both a class and a JNDI name" in both.message


def test_properties_that_a_factory_does_not_have_are_named(tmp_path: Path, lines: dict[str, str]) -> None:
    (case,) = faults(tmp_path, lines | {"source.mq.connection-factory.brokerUrl": "x"})
    assert f"{FACTORY} has no property 'brokerUrl'" in case.message
    assert case.hint == "did you mean brokerURL?"
    (near,) = faults(tmp_path, lines | {"source.mq.connection-factory.callTimout": "5"})
    assert near.hint == "did you mean callTimeout?"
    (number,) = faults(tmp_path, lines | {"source.mq.connection-factory.callTimeout": "5s"})
    assert "takes for 'callTimeout' a whole number of 64 bits" in number.message
    (flag,) = faults(tmp_path, lines | {"source.mq.connection-factory.blockOnAcknowledge": "yes"})
    assert "true or false" in flag.message


def test_a_client_for_both_apis_at_once_is_refused(tmp_path: Path, lines: dict[str, str]) -> None:
    """As artemis-jms-client and artemis-jakarta-client, whose classes have the same names."""
    (jar,) = LIB.glob("artemis-jms-client-*.jar")
    with zipfile.ZipFile(jar) as javax, zipfile.ZipFile(tmp_path / "jakarta.jar", "w") as jakarta:
        for name in javax.namelist():
            jakarta.writestr(name, renamed(javax.read(name)) if name.endswith(".class") else javax.read(name))
    path = f"{lines['source.mq.class-path']}, jakarta.jar"
    mixed = told(tmp_path, lines, class_path=path)
    assert f"{FACTORY} is there for javax.jms and for jakarta.jms" in mixed
    assert "jakarta.jar (jakarta.jms)" in mixed


def renamed(data: bytes) -> bytes:
    """A class file whose texts name jakarta.jms in place of javax.jms."""
    for name in (b"javax/jms/ConnectionFactory", b"javax/jms/XAConnectionFactory"):
        new = name.replace(b"javax", b"jakarta")
        data = data.replace(b"\1" + struct.pack(">H", len(name)) + name, b"\1" + struct.pack(">H", len(new)) + new)
    return data


def test_packages_that_are_not_fetched_yet_are_not_looked_into(tmp_path: Path, lines: dict[str, str]) -> None:
    given: dict[str, str | None] = {**lines, "source.mq.class-path": None, "source.mq.packages": "a:b:1"}
    assert faults(tmp_path, given) == []


def test_a_sink_has_no_keys_of_sources(tmp_path: Path, lines: dict[str, str]) -> None:
    own = {key.replace("source.mq", "sink.out"): text for key, text in lines.items() if key.startswith("source.mq.c")}
    given = (
        lines | own | {"sink.out.type": "jms", "routes.all.out.topic": "out:queue/x", "sink.out.reply-to": "queue:r"}
    )
    assert faults(tmp_path, given) == []


def test_bytes_that_are_no_class_are_refused() -> None:
    for data in (b"", b"\xca\xfe\xba\xbe", b"PK\3\4" + bytes(100)):
        with pytest.raises(ValueError, match="no class file"):
            parse(data)


def test_class_files_tell_superclasses_and_setters(tmp_path: Path) -> None:
    with Classes(sorted(LIB.glob("artemis-*.jar"))) as classes:
        found = classes.find(FACTORY)
        assert found is not None
        assert dict(found.setters)["callTimeout"] == "J"
        assert "javax.jms.ConnectionFactory" in classes.above(found)
        assert classes.find("no.such.Class") is None
    (tmp_path / "broken.jar").write_bytes(b"no jar")
    with Classes([tmp_path / "broken.jar", tmp_path]) as classes:
        assert classes.holders(FACTORY) == []


def test_a_configuration_that_is_refused_says_where(tmp_path: Path, lines: dict[str, str]) -> None:
    faults(tmp_path, lines | {"source.mq.connection-factory.hostNam": "x"})
    with pytest.raises(ConfigurationError, match=r"b\.properties:11:\d+: error: .* has no property 'hostNam'"):
        configuration.load(tmp_path / "b.properties")


@pytest.mark.parametrize(
    ("letter", "body_type", "body_types"),
    [
        ("t", BodyType.TEXT, ""),
        ("z", BodyType.TEXT, "null"),
        ("n", BodyType.TEXT, "none"),
        ("b", BodyType.BYTES, ""),
    ],
)
def test_empty_bodies_of_each_kind_are_told_apart(letter: str, body_type: BodyType, body_types: str) -> None:
    found = received(letter, []).message
    assert (found.body, found.body_type, found.body_types, found.has_null_value) == (b"", body_type, body_types, False)
    assert sent(found).letter == letter


def test_names_that_jms_does_not_allow_are_spelled_and_turned_back() -> None:
    names = ("NOT", "content-type", "X-Request-Id", "größe", "a_DOT_b")
    out = sent(Message(properties={name: Property("1", JmsType.INT) for name in names})).values
    spellings = ["_U004E_OT", "content_HYPHEN_type", "X_HYPHEN_Request_HYPHEN_Id", "größe", "a_U005F_DOT_b"]
    assert list(out) == spellings
    found = received("t", [part for pair in out.items() for part in pair]).message
    assert found.properties == {name: Property("1", JmsType.INT) for name in names}
    assert found.lookup("content_HYPHEN_type") == Property("1", JmsType.INT)


def test_a_name_goes_by_the_spelling_that_routes_know_and_the_property_of_names_tells_it() -> None:
    properties = {"trace-id": Property("1"), "b_c": Property("2"), "other": Property("3")}
    spellings = {"trace_id": "trace-id", "b_c": "b-c"}
    out = sent(Message(properties=properties, spellings=spellings)).values
    assert out == {"trace_id": "S1", "b_c": "S2", "other": "S3", "jmsbridge.names": "Sb_c=b-c,trace_id=trace-id"}
    for told in ("jmsbridge.names", "jmsbridge_names"):
        given = ["trace_id", "S1", "b_c", "S2", told, out["jmsbridge.names"]]
        found = received("t", given).message
        assert set(found.properties) == {"trace-id", "b-c"}
        assert found.spellings == spellings


@pytest.mark.parametrize(
    "told", ["a=JMSType", "a=jmsbridge.position", "a=JMS_JmsBridge_x", "a=b", "a=x,b=x", "c=d", "a"]
)
def test_told_names_forge_no_field_and_take_no_place_of_another_property(told: str) -> None:
    found = received("t", ["a", "S1", "b", "S2", "jmsbridge.names", f"S{told}"]).message
    assert found.properties == {"a": Property("1", JmsType.STRING), "b": Property("2", JmsType.STRING)}


@pytest.mark.parametrize("name", ["jmsbridge_DOT_position", "jmsbridge_DOT_origin"])
def test_a_spelling_cannot_pass_for_a_property_of_a_bridge(name: str) -> None:
    assert not received("t", [name, "Sx"]).message.properties
