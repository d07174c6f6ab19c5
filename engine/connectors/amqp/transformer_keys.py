"""The keys of AMQP message transformers, the checks between them, and the transformers made of them.

A transformer is declared once, `transformer.NAME.*`, and sources and sinks name the ones that they use.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from routes.errors import Level
from routes.keys.addresses import DESTINATIONS
from routes.keys.table import Field, key
from routes.keys.values import FLAG, TEXT, BadValueError, ValueKind, choice, duration, one_of, parse_text, whole
from routes.name_translators import custom_translator
from routes.transformers import CLASSES, NAME_TRANSLATORS, Transformer, Transformers, TransformerSettings

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["ROWS", "SECTION", "SECTION_TEXT", "check_transformers", "transformers_of", "used_by"]

SECTION = "transformer"
SECTION_TEXT = (
    "Transformers of AMQP messages, for the sources and sinks that name them: "
    "[connectors/amqp.md](connectors/amqp.md). NAME is yours to choose."
)
_PACKAGE = "com.swiftmq.impl.amqp.amqp.v01_00_00.transformer."
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*|[\w.-]+")
_MOST_FORMAT = (1 << 32) - 1
_SECTIONS = ("source", "sink")
_DESTINATION = re.compile(r"/?(queue|topic)[/:](.+)")
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


def used_by(section: str, what: str) -> Any:
    """Declares the key by which sources or sinks name their transformers."""
    return key(
        "transformer",
        _NAMES,
        f"What makes {what}: `JMSMapping`, `AMQPNative`, or NAMEs of `transformer.NAME.class`; several where they are "
        "for different destinations or message formats.",
        default="JMSMapping",
        example="raw, JMSMapping",
        made=lambda names, settings, _: transformers_of(settings, names),
        factory=Transformers,
    )


ROWS: tuple[Field, ...] = (
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
"""The keys of transformers."""


def transformers_of(settings: Settings, names: tuple[str, ...]) -> Transformers:
    """Returns the transformers of a source or sink, in the order in which it names them.

    To be called only when lint found no error.
    """
    return Transformers(tuple(_transformer(settings, each) for each in names))


def _transformer(settings: Settings, name: str) -> TransformerSettings:
    if name not in settings.names("transformer"):
        return TransformerSettings(transformer=CLASSES[name])

    get = partial(_get, settings, name)
    return TransformerSettings(
        transformer=get("class"),
        name_translator=get("name-translator"),
        prefix_vendor=get("prefix-vendor"),
        prefix_delivery_annotations=get("prefix-delivery-annotations"),
        prefix_message_annotations=get("prefix-message-annotations"),
        prefix_footer=get("prefix-footer"),
        default_delivery_mode=get("default-delivery-mode").value,
        default_priority=get("default-priority"),
        default_ttl_ms=round(get("default-ttl") * 1000),
        overwrite_message_id=get("overwrite-message-id"),
        jms_type_property=get("jms-type-property"),
        message_format=get("message-format"),
        destinations=frozenset(_canonical(each) for each in get("destinations") or ()),
    )


def check_transformers(settings: Settings) -> None:
    """Adds the faults of transformers, and of sources and sinks that name them."""
    _check_names(settings)
    _check_destinations(settings)
    _check_name_translators(settings)
    _check_used(settings)


def _check_names(settings: Settings) -> None:
    """Checks that a transformer's name is not that of a built-in one; warns if no source or sink uses it."""
    used = {each for section, name in _brokers(settings) for each in _named(settings, section, name)}
    for name in settings.names("transformer"):
        entry = settings.first_entry("transformer", name)
        if name in CLASSES:
            settings.faults.append(entry.key_fault(f"'{name}' is the transformer of that name", "choose another name"))
        elif name not in used:
            message = f"no source and no sink uses transformer '{name}'"
            hint = f"as in source.NAME.transformer={name}"
            settings.faults.append(entry.key_fault(message, hint, Level.WARNING))


def _check_destinations(settings: Settings) -> None:
    """Checks that the destinations of a transformer are queues and topics."""
    for name in settings.names("transformer"):
        for each in settings.get("transformer.NAME.destinations", name) or ():
            if not _DESTINATION.fullmatch(each):
                hint = "as in queue:orders, topic:prices"
                settings.fault("transformer.NAME.destinations", name, f"'{each}' is no queue and no topic", hint)


def _check_name_translators(settings: Settings) -> None:
    """Checks that a name translator is a built-in one, or can be loaded."""
    key = "transformer.NAME.name-translator"
    for name in settings.names("transformer"):
        translator = settings.get(key, name)
        if translator is None or translator in NAME_TRANSLATORS:
            continue
        try:
            custom_translator(translator)
        except LookupError as error:
            message, _, hint = str(error).partition("; ")
            settings.fault(key, name, message, hint)


def _check_used(settings: Settings) -> None:
    """Checks that the transformers which a source or sink names exist, and that at most one fits each message."""
    declared = settings.names("transformer")
    for section, name in _brokers(settings):
        taken: dict[tuple[int, str], str] = {}
        for each in _named(settings, section, name):
            key = f"{section}.NAME.transformer"
            if each not in declared and each not in CLASSES:
                near = get_close_matches(each, [*declared, *CLASSES], n=1)
                hint = f"did you mean {near[0]}?" if near else f"declare it: transformer.{each}.class=JMSMapping"
                settings.fault(key, name, f"there is no transformer '{each}'", hint)
                continue
            for place in _places(settings, each):
                if place in taken:
                    where = place[1] or "every other destination"
                    message = f"'{taken[place]}' and '{each}' are both for message format {place[0]} of {where}"
                    settings.fault(key, name, message, "leave out one of them, or give it destinations of its own")
                taken.setdefault(place, each)


def _places(settings: Settings, name: str) -> list[tuple[int, str]]:
    """Returns message format and destination of all that a transformer is for; the destination empty for all others."""
    if name in CLASSES:
        return [(0, "")]
    message_format = settings.get("transformer.NAME.message-format", name) or 0
    found = settings.get("transformer.NAME.destinations", name) or ()
    return [(message_format, _canonical(each)) for each in found] or [(message_format, "")]


def _brokers(settings: Settings) -> list[tuple[str, str]]:
    return [(section, name) for section in _SECTIONS for name in settings.names(section)]


def _named(settings: Settings, section: str, name: str) -> tuple[str, ...]:
    return settings.get(f"{section}.NAME.transformer", name) or ()


def _get(settings: Settings, name: str, key: str) -> Any:
    return settings.get(f"transformer.NAME.{key}", name)


def _canonical(destination: str) -> str:
    """Converts `queue/orders` or `/queue/orders` to `queue:orders`."""
    return _DESTINATION.sub(r"\1:\2", destination)
