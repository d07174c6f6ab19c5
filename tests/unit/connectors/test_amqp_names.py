"""Names, ids and selectors between AMQP and JMS."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp import ids
from engine.connectors.amqp import names as name_translators
from engine.connectors.amqp.codec.values import ULong
from engine.connectors.amqp.names import GROUP, TranslationError, translator
from engine.connectors.amqp.transformers import TransformerSettings, inbound, translated_selector
from routes.errors import BridgeError

PACKAGE = "com.swiftmq.impl.amqp.amqp.v01_00_00.transformer"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "plain"),
        ("x-opt.jms/it", "x_opt_jms_it"),
        ("1st", "_st"),
        ("a1", "a1"),
        ("_$a", "_$a"),
        ("", ""),
        ("größe", "größe"),
        ("название", "название"),
        ("名前", "名前"),
        ("€uro", "€uro"),
        ("a b", "a_b"),
        ("a😀b", "a_b"),
        ("e\u0301", "e\u0301"),
        ("\u0301e", "_e"),
        ("x²", "x_"),
        ("ⅷ", "ⅷ"),
        ("‿x", "‿x"),
        ("a\u200db", "a\u200db"),
        ("٣a٣", "_a٣"),
        ("\x00a\x00\t", "_a\x00_"),
    ],
)
def test_invalid_to_underscore_follows_the_rules_of_java_identifiers(name: str, expected: str) -> None:
    assert translator("InvalidToUnderscore")(name) == expected


def test_the_other_translators() -> None:
    assert translator("UnderscoreToDash")("_a_b-c") == "-a-b-c"
    assert translator("Null")("a-b_c d") == "a-b_c d"


@pytest.mark.parametrize("spelling", ["{}", "{}NameTranslator", PACKAGE + ".{}NameTranslator"])
def test_every_spelling_is_known(spelling: str) -> None:
    assert translator(spelling.format("InvalidToUnderscore"))("a-b") == "a_b"
    assert translator(spelling.format("UnderscoreToDash"))("a_b") == "a-b"
    assert translator(spelling.format("Null"))("a-b") == "a-b"


@given(st.text(max_size=150))
def test_what_is_translated_is_a_name_for_a_selector(name: str) -> None:
    found = translator("InvalidToUnderscore")(name)
    assert len(found) == len(name)
    assert translator("InvalidToUnderscore")(found) == found
    assert found.isidentifier() or not found.isascii() or not found or "$" in found or not found.isprintable()


def test_a_translator_may_be_a_function_of_some_module() -> None:
    assert translator("string:capwords")("a b") == "A B"
    assert inbound(TransformerSettings(name_translator="string:capwords"))


def test_a_translator_may_be_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    found = EntryPoints([EntryPoint("Capitals", "string:capwords", GROUP)])
    monkeypatch.setattr(name_translators, "entry_points", lambda **wanted: found.select(**wanted))
    assert translator("Capitals")("a b") == "A B"


@pytest.mark.parametrize(
    "name", ["Nil", "no_such_module:translate", "string:nothing", "string:", ":x", "string:digits"]
)
def test_a_translator_that_is_not_there_is_said(name: str) -> None:
    with pytest.raises(BridgeError, match=f"name translator '{name}'"):
        translator(name)


def test_what_a_translator_does_wrong_is_said() -> None:
    with pytest.raises(TranslationError, match=r"name translator 'builtins:int' failed on 'x': ValueError: "):
        translator("builtins:int")("x")
    with pytest.raises(TranslationError, match="name translator 'builtins:len' gave a int for 'x', not a text"):
        translator("builtins:len")("x")


IDS = [
    ("ID:abc", "ID:abc", "ID:abc"),
    ("abc", "ID:AMQP_NO_PREFIX:abc", "abc"),
    ("", "ID:AMQP_NO_PREFIX:", ""),
    ("ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x"),
    (UUID(int=7), f"ID:AMQP_UUID:{UUID(int=7)}", f"ID:AMQP_UUID:{UUID(int=7)}"),
    (ULong(42), "ID:AMQP_ULONG:42", "ID:AMQP_ULONG:42"),
    (b"\x0a\x1f", "ID:AMQP_BINARY:0A1F", "ID:AMQP_BINARY:0A1F"),
]


@pytest.mark.parametrize(("amqp", "message", "correlation"), IDS)
def test_ids_are_those_of_jms_clients(amqp: ids.Id, message: str, correlation: str) -> None:
    assert ids.message_id(amqp) == message
    assert ids.correlation_id(amqp) == correlation
    for text in (message, correlation):
        back = ids.to_amqp(text)
        assert (back, type(back)) == (amqp, type(amqp))


@given(st.one_of(st.text(), st.uuids(), st.binary(), st.integers(0, 2**64 - 1).map(ULong)))
def test_every_id_comes_back(amqp: ids.Id) -> None:
    for make in (ids.message_id, ids.correlation_id):
        back = ids.to_amqp(make(amqp))
        assert (back, type(back)) == (amqp, type(amqp))


@pytest.mark.parametrize(
    "text",
    [
        *("ID:AMQP_UUID:7", "ID:AMQP_ULONG:x", "ID:AMQP_ULONG:18446744073709551616", "ID:AMQP_ULONG:٣"),
        *("ID:AMQP_BINARY:0", "ID:AMQP_BINARY:0A 1F"),
    ],
)
def test_what_only_looks_like_an_id_of_a_type_is_a_text(text: str) -> None:
    assert ids.to_amqp(text) == text


FIELDS = {
    "durable": "JMSDeliveryMode",
    "delivery_mode": "JMSDeliveryMode",
    "priority": "JMSPriority",
    "ttl": "JMSExpiration",
    "first_acquirer": "JMS_AMQP_FirstAcquirer",
    "delivery_count": "JMSXDeliveryCount",
    "redelivered": "JMSRedelivered",
    "message_id": "JMSMessageID",
    "user_id": "JMSXUserID",
    "to": "JMSDestination",
    "subject": "JMS_AMQP_Subject",
    "reply_to": "JMSReplyTo",
    "correlation_id": "JMSCorrelationID",
    "content_type": "JMS_AMQP_ContentType",
    "content_encoding": "JMS_AMQP_ContentEncoding",
    "absolute_expiry_time": "JMSExpiration",
    "creation_time": "JMSTimestamp",
    "group_id": "JMSXGroupID",
    "group_sequence": "JMSXGroupSeq",
    "reply_to_group_id": "JMS_AMQP_ReplyToGroupID",
    "annotation": "JMSType",
    "jms_type": "JMSType",
}


@pytest.mark.parametrize(("field", "expected"), FIELDS.items())
def test_each_field_of_a_selector_is_translated(field: str, expected: str) -> None:
    assert translated_selector(f"amqp.{field} = 4") == f"{expected} = 4"
    assert translated_selector(f"(amqp.{field}<>'amqp.{field}')") == f"({expected}<>'amqp.{field}')"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("amqp.correlation_id = 'it''s amqp.to' AND x = 1", "JMSCorrelationID = 'it''s amqp.to' AND x = 1"),
        ("amqp.durable = TRUE", "JMSDeliveryMode = 'PERSISTENT'"),
        ("amqp.durable <> true", "JMSDeliveryMode <> 'PERSISTENT'"),
        ("x OR amqp.durable=false", "x OR JMSDeliveryMode = 'NON_PERSISTENT'"),
        ("amqp.durable = trueish", "JMSDeliveryMode = trueish"),
        ("my.amqp.priority = 1", "my.amqp.priority = 1"),
        ("amqp.priority.x = 2 AND $amqp.to = 3", "amqp.priority.x = 2 AND $amqp.to = 3"),
        ("amqp.unknown = 1", "amqp.unknown = 1"),
        ("x = 'amqp.priority", "x = 'amqp.priority"),
        ('"amqp.priority" = 4', '"amqp.priority" = 4'),
        ("JMSPriority = 4", "JMSPriority = 4"),
        ("", ""),
    ],
)
def test_only_whole_names_outside_of_literals_are_translated(selector: str, expected: str) -> None:
    assert translated_selector(selector) == expected
