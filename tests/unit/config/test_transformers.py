"""AMQP transformers in a configuration: what keys become, and which faults are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.connectors.amqp.transformer_settings import CLASSES, Transformer, Transformers, TransformerSettings
from routes.config import lint, loads

LEAST = """\
bridge.id=b
routes.r.in.include=TRUE
routes.r.out.topic=t
source.plant.type=amqp
source.plant.destinations=queue:orders
sink.out.type=amqp
"""
PACKAGE = "com.swiftmq.impl.amqp.amqp.v01_00_00.transformer"
MAPPING = TransformerSettings()


def test_without_a_key_there_is_the_mapping() -> None:
    config = loads(LEAST)
    for broker in (config.sources[0], config.sinks[0]):
        assert broker.transformers == Transformers((MAPPING,))


@pytest.mark.parametrize("spelling", CLASSES)
def test_a_transformer_without_properties_needs_no_declaration(spelling: str) -> None:
    config = loads(f"{LEAST}source.plant.transformer={spelling}\n")
    assert config.sources[0].transformers.declared == (TransformerSettings(transformer=CLASSES[spelling]),)


def test_every_property_takes_its_place() -> None:
    config = loads(
        f"""{LEAST}
transformer.raw.class={PACKAGE}.AMQPNativeInboundTransformer
transformer.raw.destinations=queue:raw, /topic/prices
transformer.raw.message-format=7
transformer.mine.class=JMSMapping
transformer.mine.name-translator={PACKAGE}.UnderscoreToDashNameTranslator
transformer.mine.prefix-vendor=V_
transformer.mine.prefix-delivery-annotations=D_
transformer.mine.prefix-message-annotations=M_
transformer.mine.prefix-footer=F_
transformer.mine.default-delivery-mode=NON_PERSISTENT
transformer.mine.default-priority=9
transformer.mine.default-ttl=1m
transformer.mine.overwrite-message-id=true
transformer.mine.jms-type-property=kind
transformer.mine.message-factory={PACKAGE}.BodyTypeMessageFactory
transformer.mine.body-factory=MessageTypeBodyFactory
source.plant.transformer=raw, mine
"""
    )
    raw = TransformerSettings(
        transformer=Transformer.AMQP_NATIVE,
        message_format=7,
        destinations=frozenset(("queue:raw", "topic:prices")),
    )
    mine = TransformerSettings(
        name_translator=f"{PACKAGE}.UnderscoreToDashNameTranslator",
        prefix_vendor="V_",
        prefix_delivery_annotations="D_",
        prefix_message_annotations="M_",
        prefix_footer="F_",
        default_delivery_mode="NON_PERSISTENT",
        default_priority=9,
        default_ttl_ms=60_000,
        overwrite_message_id=True,
        jms_type_property="kind",
    )
    found = config.sources[0].transformers
    assert found == Transformers((raw, mine))
    assert found.settings("queue:raw", 7) == raw
    assert found.settings("topic:prices", 7) == raw
    assert found.settings("queue:raw", 0) == mine
    assert found.settings("queue:other", 0) == mine
    assert found.settings("queue:other", 7) is None
    assert config.sinks[0].transformers == Transformers((MAPPING,))


def test_the_defaults_of_the_keys_are_those_of_the_settings() -> None:
    config = loads(f"{LEAST}transformer.mine.class=JMSMapping\nsource.plant.transformer=mine\n")
    assert config.sources[0].transformers.declared == (MAPPING,)


@pytest.mark.parametrize(
    ("lines", "message", "hint"),
    [
        (
            "source.plant.transformer=raw",
            "there is no transformer 'raw'",
            "declare it: transformer.raw.class=JMSMapping",
        ),
        ("source.plant.transformer=JmsMapping", "there is no transformer 'JmsMapping'", "did you mean JMSMapping?"),
        ("source.plant.transformer=a,,b", "a name is missing between commas", "as in raw, JMSMapping"),
        ("source.plant.transformer=JMSMapping, JMSMapping", "'JMSMapping' is listed twice", "as in raw, JMSMapping"),
        (
            "source.plant.transformer=JMSMapping, AMQPNative",
            "'JMSMapping' and 'AMQPNative' are both for message format 0 of every other destination",
            "leave out one of them, or give it destinations of its own",
        ),
        (
            "transformer.a.class=JMSMapping\ntransformer.a.destinations=queue:x\n"
            "transformer.b.class=AMQPNative\ntransformer.b.destinations=queue/x\nsource.plant.transformer=a, b",
            "'a' and 'b' are both for message format 0 of queue:x",
            "leave out one of them, or give it destinations of its own",
        ),
        (
            "transformer.a.class=JMSMapping\ntransformer.a.destinations=x\nsource.plant.transformer=a",
            "'x' is neither a queue nor a topic",
            "as in queue:orders, topic:prices",
        ),
        (
            "transformer.a.class=JMSMaping\nsource.plant.transformer=a",
            "'JMSMaping' is not JMSMapping or AMQPNative",
            "did you mean JMSMapping?",
        ),
        (
            "transformer.a.prefix-vendor=x\nsource.plant.transformer=a",
            "transformer 'a' has no 'transformer.a.class'",
            "as in transformer.a.class=AMQPNative",
        ),
        (
            "transformer.a.class=JMSMapping\ntransformer.a.name-translator=a b\nsource.plant.transformer=a",
            "'a b' is not a name translator",
            "write InvalidToUnderscore, UnderscoreToDash, Null or module:function",
        ),
        (
            "transformer.a.class=JMSMapping\ntransformer.a.name-translator=no_such:f\nsource.plant.transformer=a",
            "there is no name translator 'no_such:f': No module named 'no_such'",
            "write InvalidToUnderscore, UnderscoreToDash, Null, module:function, or the name of an entry point of "
            "group jms_bridge.name_translators",
        ),
        (
            "transformer.a.class=JMSMapping\ntransformer.a.name-translator=string:digits\nsource.plant.transformer=a",
            "name translator 'string:digits' is a str, not a function of a name",
            "",
        ),
        (
            "transformer.a.class=JMSMapping\ntransformer.a.message-factory=Mine\nsource.plant.transformer=a",
            "'Mine' is not BodyTypeMessageFactory",
            "there is no other; the line can go",
        ),
        (
            "transformer.AMQPNative.class=JMSMapping\nsource.plant.transformer=AMQPNative",
            "'AMQPNative' is the transformer of that name",
            "choose another name",
        ),
        (
            "transformer.a.class=JMSMapping",
            "no source and no sink uses transformer 'a'",
            "as in source.NAME.transformer=a",
        ),
        (
            "source.s.type=stomp\nsource.s.destinations=queue:q\nsource.s.transformer=AMQPNative",
            "'source.s.transformer' is for type amqp, not stomp",
            "remove the line",
        ),
    ],
)
def test_each_fault_is_reported(lines: str, message: str, hint: str, tmp_path: Path) -> None:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(f"{LEAST}{lines}\n", encoding="utf-8")
    assert [(fault.message, fault.hint) for fault in lint(file).faults] == [(message, hint)]
