"""Settings of AMQP message transformers, each field with its key, and the checks between the keys.

A transformer turns the bytes of an AMQP message into a JMS message (inbound) or back (outbound). It is declared once,
`transformer.NAME.*`, and sources and sinks name the ones that they use. Names, properties and defaults are those of
SwiftMQ; `docs/connectors/amqp.md` describes each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.connectors.amqp.names import NAME_TRANSLATORS, PACKAGE, custom_translator, spellings
from routes.errors import Level
from routes.keys.addresses import DESTINATIONS
from routes.keys.table import key
from routes.keys.values import FLAG, TEXT, BadValueError, ValueKind, choice, duration, one_of, parse_text, whole
from routes.systems import SystemSection

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["CLASSES", "SECTION", "Transformer", "TransformerSettings", "Transformers", "check_transformers", "used_by"]

_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*|[\w.-]+")
_MOST_FORMAT = (1 << 32) - 1
_SECTIONS = ("source", "sink")
_DESTINATION = re.compile(r"/?(queue|topic)[/:](.+)")


class Transformer(StrEnum):
    """The built-in transformers."""

    JMS_MAPPING = "JMSMapping"
    """Sections of AMQP and JMS fields are mapped to each other."""
    AMQP_NATIVE = "AMQPNative"
    """The encoded AMQP message is the body of a BytesMessage."""


CLASSES: Mapping[str, Transformer] = {
    spelling: each for each in Transformer for spelling in spellings(each, "InboundTransformer", "OutboundTransformer")
}
"""Every spelling of the transformers."""


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
        raise BadValueError(f"'{text}' is not a name translator", f"write {known} or module:function")
    return text


def _factory(name: str) -> ValueKind:
    """Makes the kind of a name that SwiftMQ's documentation asks for, with only one possible value."""

    def parse(text: str) -> str:
        if text.removeprefix(f"{PACKAGE}.") != name:
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


def _canonical(destination: str) -> str:
    """Converts `queue/orders` or `/queue/orders` to `queue:orders`."""
    return _DESTINATION.sub(r"\1:\2", destination)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerSettings:
    """A transformer with its properties; each direction uses those that it knows."""

    transformer: Transformer = key(
        "class",
        _CLASS,
        "Kind of transformer: `JMSMapping` maps the sections of AMQP and the fields of JMS to each other, "
        "`AMQPNative` makes the encoded AMQP message the body.",
        example="AMQPNative",
        required=True,
        value=Transformer.JMS_MAPPING,
    )
    destinations: frozenset[str] = key(
        "destinations",
        DESTINATIONS,
        "Queues and topics whose messages the transformer is for.",
        default_note="all without a transformer of their own",
        example="queue:raw, topic:prices",
        made=lambda found, *_: frozenset(map(_canonical, found or ())),
        value=frozenset(),
    )
    """Destinations that the transformer is for, `queue:NAME` or `topic:NAME`; empty: all that no other is for."""
    message_format: int = key(
        "message-format", whole(0, _MOST_FORMAT), "Message format id that the transformer is for.", default="0"
    )
    name_translator: str | None = key(
        "name-translator",
        _TRANSLATOR,
        "Translator of names: `InvalidToUnderscore`, `UnderscoreToDash`, `Null`, or a function of your own, as "
        "`module:function` or the name of an entry point.",
        default_note="`InvalidToUnderscore` in sources, `Null` in sinks",
        example="UnderscoreToDash",
    )
    """None: InvalidToUnderscore inbound, Null outbound."""
    prefix_vendor: str = key(
        "prefix-vendor",
        TEXT,
        "Prefix in the names of properties that hold values without a field in JMS.",
        default="JMS_AMQP_",
    )
    prefix_delivery_annotations: str = key(
        "prefix-delivery-annotations",
        TEXT,
        "Second prefix, behind `prefix-vendor`, in the names of delivery annotations.",
        default="DA_",
    )
    prefix_message_annotations: str = key(
        "prefix-message-annotations",
        TEXT,
        "Second prefix, behind `prefix-vendor`, in the names of message annotations.",
        default="MA_",
    )
    prefix_footer: str = key(
        "prefix-footer",
        TEXT,
        "Second prefix, behind `prefix-vendor`, in the names of entries of the footer.",
        default="FT_",
    )
    default_delivery_mode: str = key(
        "default-delivery-mode",
        choice(_Mode),
        "JMSDeliveryMode of messages that state none, in sources.",
        default="PERSISTENT",
        made=lambda mode, *_: mode.value,
    )
    """PERSISTENT or NON_PERSISTENT."""
    default_priority: int = key(
        "default-priority", whole(0, 9), "JMSPriority of messages that state none, in sources.", default="4"
    )
    default_ttl_ms: int = key(
        "default-ttl",
        duration("0ms", "36500d"),
        "Time after which messages expire that state no time, in sources; `0ms`: never.",
        default="0ms",
        made=lambda seconds, *_: round(seconds * 1000),
    )
    """Time to live; 0: messages do not expire."""
    overwrite_message_id: bool = key(
        "overwrite-message-id",
        FLAG,
        "`true`: in sources, every message gets a new JMSMessageID in place of the one that it has.",
        default="false",
    )
    jms_type_property: str | None = key(
        "jms-type-property",
        TEXT,
        "Name of the application property that holds the JMSType.",
        default_note="message annotation `x-opt-jms-type`",
        example="type",
    )
    """Application property that holds the JMSType; None: message annotation `x-opt-jms-type`."""
    message_factory: str = key(
        "message-factory",
        _factory("BodyTypeMessageFactory"),
        "Factory of JMS messages, in sources.",
        default="BodyTypeMessageFactory",
    )
    """The only one; SwiftMQ's documentation asks for the key."""
    body_factory: str = key(
        "body-factory",
        _factory("MessageTypeBodyFactory"),
        "Factory of the bodies of AMQP messages, in sinks.",
        default="MessageTypeBodyFactory",
    )
    """The only one, as `message_factory`."""


SECTION = SystemSection(
    "transformer",
    "Transformers of AMQP messages, for the sources and sinks that name them: "
    "[connectors/amqp.md](connectors/amqp.md). NAME is yours to choose.",
    TransformerSettings,
)


@dataclass(frozen=True, slots=True)
class Transformers:
    """All transformers of a source or sink; the first that fits is taken."""

    declared: tuple[TransformerSettings, ...] = ()

    @property
    def all(self) -> tuple[TransformerSettings, ...]:
        """The declared transformers and the default one: every result that `settings` can return."""
        return (*self.declared, _DEFAULT)

    def settings(self, destination: str, message_format: int) -> TransformerSettings | None:
        """Returns the transformer for a destination in canonical spelling; None if the message format has none.

        A transformer that names the destination comes first, then one that names none, then for format 0 the default
        one; so for format 0 there always is one.
        """
        fits = [each for each in self.declared if each.message_format == message_format]
        for each in fits:
            if destination in each.destinations:
                return each
        for each in fits:
            if not each.destinations:
                return each
        return _DEFAULT if message_format == 0 else None


_DEFAULT = TransformerSettings()


def used_by(section: str, what: str) -> Any:
    """Declares the key by which sources or sinks name their transformers."""
    return key(
        "transformer",
        _NAMES,
        f"Transformers that make {what}: `JMSMapping`, `AMQPNative`, or NAMEs of `transformer.NAME.class`; several if "
        "they are for different destinations or message formats.",
        default="JMSMapping",
        example="raw, JMSMapping",
        made=lambda names, settings, _: Transformers(tuple(_transformer(settings, each) for each in names)),
        factory=Transformers,
    )


def _transformer(settings: Settings, name: str) -> TransformerSettings:
    if name not in settings.names("transformer"):
        return TransformerSettings(transformer=CLASSES[name])
    return TransformerSettings(**settings.made(TransformerSettings, "transformer.NAME.", name))


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
                settings.fault("transformer.NAME.destinations", name, f"'{each}' is neither a queue nor a topic", hint)


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
    destinations = settings.get("transformer.NAME.destinations", name) or ()
    return [(message_format, _canonical(each)) for each in destinations] or [(message_format, "")]


def _brokers(settings: Settings) -> list[tuple[str, str]]:
    return [(section, name) for section in _SECTIONS for name in settings.names(section)]


def _named(settings: Settings, section: str, name: str) -> tuple[str, ...]:
    return settings.get(f"{section}.NAME.transformer", name) or ()
