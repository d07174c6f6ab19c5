"""What a message file means in JMS, and the name of the file that a message goes in."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from engine.connectors.base import Outgoing, RefusedError
from engine.connectors.dropbox.file_name import LONGEST_BYTES, decode
from engine.connectors.dropbox.message import to_filename, to_message
from engine.message import BodyType, Message
from routes.properties import JmsType, Property

FULL = "7.1140429201295000-9262574723.T.1140429211295.corr1283.TestQueue1.XYZType.prop1S=hello"
PROPERTIES = {
    "boolean": Property("true", JmsType.BOOLEAN),
    "byte": Property("-1", JmsType.BYTE),
    "short": Property("2", JmsType.SHORT),
    "int": Property("3", JmsType.INT),
    "long": Property("4", JmsType.LONG),
    "float": Property("1.5", JmsType.FLOAT),
    "double": Property("NaN", JmsType.DOUBLE),
    "string": Property("a b.c/d", JmsType.STRING),
}


def message(filename: str, body: bytes = b"hello", *, redelivered: bool = False) -> Message:
    return to_message(decode(filename), body, "queue:orders", "src", 1_700_000_000_123, redelivered=redelivered)


def outgoing(given: Message = Message(b"hello"), reply_to: str | None = None) -> Outgoing:  # noqa: B008 # frozen
    return Outgoing(1, given, "queue/orders", "b1/journal:3:42", reply_to, 1_700_000_000_123)


def test_each_field_of_a_name_is_one_of_jms() -> None:
    assert message(FULL) == Message(
        b"hello",
        BodyType.TEXT,
        {
            "JMSMessageID": "ID:1140429201295000-9262574723",
            "JMSDestination": "queue:orders",
            "JMSPriority": "7",
            "JMSTimestamp": "1140429201295",
            "JMSRedelivered": "false",
            "JMSExpiration": "1140429211295",
            "JMSCorrelationID": "corr1283",
            "JMSReplyTo": "queue:TestQueue1",
            "JMSType": "XYZType",
        },
        {"prop1": Property("hello", JmsType.STRING)},
        "src",
    )


def test_a_file_of_any_name_has_it_as_message_id_and_the_time_of_the_file() -> None:
    found = message("invoice 7.pdf", b"\xff", redelivered=True)
    assert found.body_type is BodyType.BYTES
    assert found.headers == {
        "JMSMessageID": "ID:invoice 7.pdf",
        "JMSDestination": "queue:orders",
        "JMSPriority": "4",
        "JMSTimestamp": "1700000000123",
        "JMSRedelivered": "true",
    }


@pytest.mark.parametrize(
    ("letter", "body", "kind"),
    [
        ("T", b"text", BodyType.TEXT),
        ("T", b"\xff", BodyType.BYTES),
        ("M", b"", BodyType.TEXT),
        ("B", b"text", BodyType.BYTES),
        ("S", b"", BodyType.STREAM),
        ("P", b"", BodyType.MAP),
        ("O", b"", BodyType.OBJECT),
    ],
)
def test_the_class_says_what_the_body_is(letter: str, body: bytes, kind: BodyType) -> None:
    assert message(f"4.id.{letter}", body).body_type is kind


def test_a_message_id_has_one_prefix() -> None:
    assert message("4.ID%3A7.T").headers["JMSMessageID"] == "ID:7"


def test_a_reply_goes_to_a_queue_unless_it_says_topic() -> None:
    assert message("4.id.T...topic%3Anews").headers["JMSReplyTo"] == "topic:news"
    assert message("4.id.T...queue%3Anews").headers["JMSReplyTo"] == "queue:news"


def test_nobody_can_pass_for_a_bridge() -> None:
    pairs = ["JMSXGroupIDS=g", "JMSXGroupSeqI=2", "JMSTypeS=x", "jmsbridge.originS=a,b", "jmsbridge.routeS=r"]
    found = message(f"4.id.T.....{'&'.join([*pairs, 'JMS_JmsBridge_ReplySinkS=s'])}")
    assert found.properties == {}
    assert found.origins == ("a", "b")
    assert found.headers["JMSXGroupID"] == "g"
    assert found.headers["JMSXGroupSeq"] == "2"
    assert "JMSType" not in found.headers


def test_what_is_written_is_read_again_with_every_type_of_property() -> None:
    headers = {
        "JMSPriority": "-3",
        "JMSExpiration": "1800000000000",
        "JMSCorrelationID": "ID:a/b.c",
        "JMSType": "invoice",
        "JMSXGroupID": "é",
        "JMSXGroupSeq": "1",
    }
    for properties in ({name: PROPERTIES[name]} for name in PROPERTIES):
        filename = to_filename(
            outgoing(Message(b"hello", headers=headers, properties=properties, origins=("b1",)))
        ).text
        found = message(filename)
        assert found.properties == properties
        assert found.origins == ("b1",)
        assert {name: found.headers[name] for name in headers} == headers
        assert found.headers["JMSTimestamp"] == "1700000000123"


@pytest.mark.parametrize("kind", BodyType)
def test_the_class_of_each_kind_of_body(kind: BodyType) -> None:
    assert message(to_filename(outgoing(Message(b"", kind))).text, b"").body_type is kind


@pytest.mark.parametrize(
    ("reply_to", "field"),
    [("queue:r", "r"), ("queue/r", "r"), ("/queue/r", "r"), ("topic/r", "topic:r"), ("r", "r"), (None, None)],
)
def test_reply_addresses(reply_to: str | None, field: str | None) -> None:
    assert decode(to_filename(outgoing(reply_to=reply_to)).text).reply_to == field


def test_numbers_that_are_none_are_left_out() -> None:
    found = decode(to_filename(outgoing(Message(headers={"JMSPriority": "high", "JMSExpiration": "-1"}))).text)
    assert (found.priority, found.expiration) == (4, 0)


def test_what_only_the_other_side_may_say_is_left_out() -> None:
    headers = {"JMSMessageID": "ID:1", "JMSDestination": "queue:a", "JMSRedelivered": "true", "JMSReplyTo": "queue:b"}
    assert to_filename(outgoing(Message(headers=headers))) == to_filename(outgoing(Message()))


def test_the_name_is_the_same_again_and_another_for_every_other_message() -> None:
    one = outgoing()
    assert re.fullmatch(r"4\.1700000000123000-003000000000042[0-9]{6}\.T", to_filename(one).text)
    assert to_filename(one) == to_filename(replace(one, number=9))
    others = [replace(one, id=other) for other in ("b2/journal:3:42", "b1/journal:4:42", "b1/journal:3:43", "cli", "")]
    assert len({to_filename(each) for each in (one, *others)}) == 1 + len(others)


def test_names_of_one_partition_sort_as_its_offsets() -> None:
    names = [to_filename(replace(outgoing(), id=f"b1/journal:3:{offset}")) for offset in (2, 10, 9_999, 1_000_000)]
    assert names == sorted(names)


def test_copies_of_a_message_have_names_of_their_own_in_its_place() -> None:
    journal = "b1/journal7:3:42"
    names = [to_filename(replace(outgoing(), id=journal + copy)).text for copy in ("", ":1", ":12")]
    assert len(set(names)) == 3
    assert all(re.match(r"4\.1700000000123000-003000000000042", name) for name in names)


def test_what_the_amqp_source_says_of_a_message_is_left_out() -> None:
    properties = {
        "JMS_AMQP_MA_x_opt_jms_msg_type": Property("5", JmsType.BYTE),
        "JMS_AMQP_NATIVE": Property("false", JmsType.BOOLEAN),
        "JMS_AMQP_MESSAGE_FORMAT": Property("0", JmsType.LONG),
        "JMS_Kafka_Topic": Property("orders", JmsType.STRING),
        "region": Property("emea", JmsType.STRING),
    }
    found = to_filename(outgoing(Message(properties=properties)))
    assert decode(found.text).properties == {"region": properties["region"]}
    assert len(found.text) < 80


def test_what_no_file_name_can_hold_is_in_a_long_name() -> None:
    original = Message(
        b"hello",
        headers={"JMSCorrelationID": "c" * 220, "JMSType": "invoice"},
        properties={"x": Property("y" * 230, JmsType.STRING)},
        origins=("b1",),
    )
    found = to_filename(outgoing(original, "queue:r"))
    assert found.long is not None
    assert len(found.text) <= LONGEST_BYTES
    part, whole = message(found.text), message(found.long)
    assert part.headers["JMSCorrelationID"] == found.message_id
    assert part.headers["JMSReplyTo"] == whole.headers["JMSReplyTo"] == "queue:r"
    assert part.properties == {}
    assert (whole.headers["JMSCorrelationID"], whole.properties, whole.origins) == (
        "c" * 220,
        original.properties,
        original.origins,
    )
    assert to_filename(outgoing(original, "queue:r")) == found


def test_only_more_than_any_file_should_hold_is_refused() -> None:
    with pytest.raises(
        RefusedError, match=r"its headers and properties have [0-9]+ bytes in a name, more than 16777216"
    ):
        to_filename(outgoing(Message(properties={"x": Property("y" * (16 * 1024 * 1024))})))
