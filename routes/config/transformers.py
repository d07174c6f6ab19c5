"""AMQP message transformers in a configuration: the checks between their keys, and their values."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

from routes.errors import Level
from routes.name_translators import custom_translator
from routes.transformers import CLASSES, NAME_TRANSLATORS, Transformers, TransformerSettings

if TYPE_CHECKING:
    from routes.config.binding import Settings

__all__ = ["TRANSFORMER_CHECKS", "transformers"]

_SECTIONS = ("source", "sink")
_DESTINATION = re.compile(r"/?(queue|topic)[/:](.+)")


def transformers(settings: Settings, section: str, name: str) -> Transformers:
    """Returns the transformers of a source or sink, in the order in which it names them.

    To be called only when lint found no error.
    """
    return Transformers(tuple(_transformer(settings, each) for each in _named(settings, section, name)))


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


def names(settings: Settings) -> None:
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


def destinations(settings: Settings) -> None:
    """Checks that the destinations of a transformer are queues and topics."""
    for name in settings.names("transformer"):
        for each in settings.get("transformer.NAME.destinations", name) or ():
            if not _DESTINATION.fullmatch(each):
                hint = "as in queue:orders, topic:prices"
                settings.fault("transformer.NAME.destinations", name, f"'{each}' is no queue and no topic", hint)


def name_translators(settings: Settings) -> None:
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


def used_transformers(settings: Settings) -> None:
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


TRANSFORMER_CHECKS = (names, destinations, name_translators, used_transformers)
