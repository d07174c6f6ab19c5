"""The keys of AMQP message transformers: part of the field table in `fields`.

A transformer is declared once, `transformer.NAME.*`, and sources and sinks name the ones that they use.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from enum import StrEnum

from routes.config.addresses import DESTINATIONS
from routes.config.table import Field
from routes.config.values import FLAG, TEXT, BadValueError, ValueKind, choice, duration, one_of, parse_text, whole
from routes.targets import System
from routes.transformers import CLASSES, NAME_TRANSLATORS, Transformer, TransformerSettings

__all__ = ["TRANSFORMER_FIELDS"]

_PACKAGE = "com.swiftmq.impl.amqp.amqp.v01_00_00.transformer."
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*|[\w.-]+")
_MOST_FORMAT = (1 << 32) - 1
_DEFAULTS = TransformerSettings()


class _Mode(StrEnum):
    PERSISTENT = "PERSISTENT"
    NON_PERSISTENT = "NON_PERSISTENT"


def _parse_class(text: str) -> Transformer:
    if text in CLASSES:
        return CLASSES[text]
    listed = [each.value for each in Transformer]
    near = get_close_matches(text.rpartition(".")[2], CLASSES, n=1, cutoff=0.5)
    raise BadValueError(f"'{text}' is not {one_of(listed)}", f"did you mean {CLASSES[near[0]].value}?" if near else "")


def _parse_translator(text: str) -> str:
    parse_text(text)
    if text not in NAME_TRANSLATORS and not _FUNCTION.fullmatch(text):
        known = ", ".join(dict.fromkeys(NAME_TRANSLATORS.values()))
        raise BadValueError(f"'{text}' is no name translator", f"write {known} or module:function")
    return text


def _factory(name: str) -> ValueKind:
    """Makes the kind of a name that SwiftMQ's documentation asks for, with only one possible value."""

    def parse(text: str) -> str:
        if text.removeprefix(_PACKAGE) != name:
            raise BadValueError(f"'{text}' is not {name}", "there is no other; the line can go")
        return name

    return ValueKind(f"`{name}`", name, parse)


def _parse_names(text: str) -> tuple[str, ...]:
    names = [part.strip() for part in parse_text(text).split(",")]
    for name in names:
        if not name or names.count(name) > 1:
            problem = f"'{name}' is listed twice" if name else "a name is missing between commas"
            raise BadValueError(problem, "as in raw, JMSMapping")
    return tuple(names)


_CLASS = ValueKind(
    " \\| ".join(f"`{each}`" for each in Transformer), one_of([each.value for each in Transformer]), _parse_class
)
_TRANSLATOR = ValueKind("name translator", "a name translator", _parse_translator)
_NAMES = ValueKind("list of transformers", "transformers such as raw, JMSMapping", _parse_names)
_NAME = "transformer.NAME"


def _used_by(section: str, what: str) -> Field:
    return Field(
        f"{section}.NAME.transformer",
        _NAMES,
        f"What makes {what}: `JMSMapping`, `AMQPNative`, or NAMEs of `transformer.NAME.class`; several where they are "
        "for different destinations or message formats.",
        default="JMSMapping",
        example="raw, JMSMapping",
        systems=(System.AMQP,),
    )


TRANSFORMER_FIELDS = (
    _used_by("source", "JMS messages of AMQP messages"),
    _used_by("sink", "AMQP messages of JMS messages"),
    Field(
        f"{_NAME}.class",
        _CLASS,
        "What it does: sections of AMQP and fields of JMS become one another, or the encoded message is a body.",
        example="AMQPNative",
        required=True,
    ),
    Field(
        f"{_NAME}.destinations",
        DESTINATIONS,
        "The queues and topics whose messages it is for.",
        default_note="all that no other is for",
        example="queue:raw, topic:prices",
    ),
    Field(f"{_NAME}.message-format", whole(0, _MOST_FORMAT), "The message format id that it is for.", default="0"),
    Field(
        f"{_NAME}.name-translator",
        _TRANSLATOR,
        "What becomes of names: `InvalidToUnderscore`, `UnderscoreToDash`, `Null`, or a function of your own, as "
        "`module:function` or the name of an entry point.",
        default_note="`InvalidToUnderscore` in sources, `Null` in sinks",
        example="UnderscoreToDash",
    ),
    Field(
        f"{_NAME}.prefix-vendor",
        TEXT,
        "How the names of properties begin that hold what JMS has no field for.",
        default=_DEFAULTS.prefix_vendor,
    ),
    Field(
        f"{_NAME}.prefix-delivery-annotations",
        TEXT,
        "What follows in the names of delivery annotations.",
        default=_DEFAULTS.prefix_delivery_annotations,
    ),
    Field(
        f"{_NAME}.prefix-message-annotations",
        TEXT,
        "The same of message annotations.",
        default=_DEFAULTS.prefix_message_annotations,
    ),
    Field(f"{_NAME}.prefix-footer", TEXT, "The same of the footer.", default=_DEFAULTS.prefix_footer),
    Field(
        f"{_NAME}.default-delivery-mode",
        choice(_Mode),
        "Sources: the JMSDeliveryMode of messages that do not say.",
        default=_DEFAULTS.default_delivery_mode,
    ),
    Field(
        f"{_NAME}.default-priority",
        whole(0, 9),
        "Sources: the JMSPriority of messages that do not say.",
        default=str(_DEFAULTS.default_priority),
    ),
    Field(
        f"{_NAME}.default-ttl",
        duration("0ms", "36500d"),
        "Sources: after how long messages expire that do not say; `0ms`: never.",
        default="0ms",
    ),
    Field(
        f"{_NAME}.overwrite-message-id",
        FLAG,
        "Sources: whether every message gets a JMSMessageID of its own, in place of the one that it has.",
        default="false",
    ),
    Field(
        f"{_NAME}.jms-type-property",
        TEXT,
        "Name of the application property that holds the JMSType.",
        default_note="message annotation `x-opt-jms-type`",
        example="type",
    ),
    Field(
        f"{_NAME}.message-factory",
        _factory("BodyTypeMessageFactory"),
        "Sources: what makes the JMS message.",
        default="BodyTypeMessageFactory",
    ),
    Field(
        f"{_NAME}.body-factory",
        _factory("MessageTypeBodyFactory"),
        "Sinks: what makes the body of the AMQP message.",
        default="MessageTypeBodyFactory",
    ),
)
"""The keys by which sources and sinks name transformers, and the keys of transformers."""
