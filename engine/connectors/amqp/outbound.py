"""The JMSMapping outbound transformer: JMS messages to AMQP messages, by the tables in `docs/connectors/amqp.md`.

Beyond SwiftMQ's tables it writes the annotations from which current JMS clients take the class of a message and the
kinds of its destinations, so a client receives from the bridge what another client gave to the bridge.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.connectors.addresses import kind_and_name, parsed
from engine.connectors.amqp import ids
from engine.connectors.amqp.annotations import (
    DELIVERY_TIME,
    DESTINATION,
    JMS_TYPE,
    MESSAGE,
    MESSAGE_TYPE,
    MESSAGE_TYPES,
    REPLY_TO,
    SERIALIZED,
)
from engine.connectors.amqp.bodies import is_serialized, write_body
from engine.connectors.amqp.codec.sections import Header, Properties, Sections, encode_sections
from engine.connectors.amqp.codec.values import AmqpError, AmqpMap, Byte, Symbol, Timestamp, UByte, UInt
from engine.connectors.amqp.conversion import ERROR_SUFFIX, ERROR_TEXT, property_of
from engine.connectors.amqp.names import TranslationError, translator
from engine.connectors.amqp.traits import SPECIFIED, AmqpTraits
from engine.connectors.base import RESERVED, RefusedError
from engine.connectors.products import COMMANDS
from engine.message import NO_BODY, ORIGIN, BodyType
from engine.property_names import SYMBOLS, not_kept

if TYPE_CHECKING:
    from engine.connectors.amqp.transformer_settings import TransformerSettings
    from engine.message import Message
    from routes.properties import Property

__all__ = ["JmsMappingOutbound"]

_KINDS = {"queue": Byte(0), "topic": Byte(1)}
_OWN = frozenset(name.replace("-", "_") for name in (MESSAGE_TYPE, DESTINATION, REPLY_TO, JMS_TYPE, DELIVERY_TIME))
"""Annotations that are written anew, with the underscores that a name translator may have put into their names."""
_LEFT_OUT = _OWN | {
    *("x_opt_routing_type", "x_opt_delivery_delay"),
    *("x_exchange", "x_routing_key"),
}
"""Annotations that are not copied: those written anew, those that instruct a broker, and those by which RabbitMQ tells
how a message came."""
_OPTIONAL = "x-opt-"
"""Beginning of the annotations that senders may define (AMQP 1.0, 3.2.10); all other names are reserved."""
_UNDERSCORED = _OPTIONAL.replace("-", "_")
_ELSEWHERE = (
    *("FirstAcquirer", "Subject", "ContentType", "ContentEncoding", "ReplyToGroupID"),
    *("MESSAGE_FORMAT", "NATIVE"),
)
"""Vendor properties that are not copied: they have an AMQP field of their own, or only tell how the message arrived."""
_DELIVERY, _MESSAGE, _APPLICATION, _FOOTER = range(4)
"""Sections that take properties, as indexes into the maps of `encoded`."""
_RESERVED = -1
"""Place of annotations that no sender may make."""
_LONGEST_KNOWN = 100
_MOST_KNOWN = 1000
_UINTS = 1 << 32
_PRIORITIES = range(10)
_DEFAULT_PRIORITY = UByte(4)
_TIMES = range(1, 1 << 63)
_COUNTS = range(1, 1 << 31)
_INTS = range(-(1 << 31), 1 << 31)
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_FORMAT = 0


class JmsMappingOutbound:
    """Converts JMS messages to AMQP messages."""

    def __init__(self, settings: TransformerSettings, traits: AmqpTraits = SPECIFIED) -> None:
        self._settings = settings
        self._traits = traits
        self._vendor = vendor = settings.prefix_vendor
        self._message_type = f"{vendor}{settings.prefix_message_annotations}{MESSAGE_TYPE.replace('-', '_')}"
        self._places = _Places(settings)
        self._may_repeat = settings.name_translator is not None
        """True if a name translator is set, which may map two names of properties to one."""

    def encoded(self, message: Message, address: str, reply_to: str | None) -> tuple[bytes, int]:
        """Returns the encoded message and its message format, 0.

        Raises:
            RefusedError: AMQP cannot carry the message.
        """
        kind, to = kind_and_name(address)
        sections = Sections(header=self._header(message))
        sections.properties = self._properties(message, to)
        annotations = AmqpMap([(MESSAGE_TYPE, self._type(message)), (DESTINATION, _KINDS[kind])])
        if reply := parsed(reply_to or message.headers.get("JMSReplyTo", "")):
            sections.properties.reply_to = self._traits.spelling(*reply)
            annotations.append((REPLY_TO, _KINDS[reply[0]]))
        application = self._jms_type(message, sections.properties, annotations)
        if delivery := _number(message.headers, "JMSDeliveryTime", _TIMES):
            annotations.append((DELIVERY_TIME, delivery))
        maps = (AmqpMap(), annotations, application, AmqpMap())
        for name, value in message.named().items():
            if (place := self._places[name]) is None or (place[0] != _APPLICATION and _is_error(name, value)):
                continue
            if place[0] == _RESERVED:
                not_kept(place[1], f"AMQP reserves annotations that do not begin with {_OPTIONAL}")
            else:
                maps[place[0]].append((place[1], property_of(value)))
        if message.origins:
            application.append((ORIGIN, ",".join(message.origins)))
        if self._may_repeat:
            for pairs in maps:
                _drop_repeated(pairs)
        (
            sections.delivery_annotations,
            sections.message_annotations,
            sections.application_properties,
            sections.footer,
        ) = maps
        write_body(message, sections)
        try:
            return encode_sections(sections), _FORMAT
        except AmqpError as error:
            raise RefusedError(str(error)) from error

    def _header(self, message: Message) -> Header:
        fields = message.headers
        header = Header(durable=fields.get("JMSDeliveryMode") != "NON_PERSISTENT")
        if (priority := _number(fields, "JMSPriority", _PRIORITIES)) is not None:
            header.priority = UByte(priority)
        elif self._traits.needs_priority:
            header.priority = _DEFAULT_PRIORITY
        if expiration := _number(fields, "JMSExpiration", _TIMES):
            left = max(expiration - time.time_ns() // 1_000_000, 1)
            # A time to live beyond 32 bits does not fit this field; the absolute expiry time still holds it.
            header.ttl = UInt(left) if left < _UINTS else None
        count = _number(fields, "JMSXDeliveryCount", _COUNTS)
        if count is not None and count > 1:
            header.delivery_count = UInt(count - 1)
        acquirer = message.properties.get(f"{self._vendor}FirstAcquirer")
        if acquirer is not None:
            header.first_acquirer = acquirer.text == "true"
        return header

    def _properties(self, message: Message, to: str) -> Properties:
        fields = message.headers
        properties = Properties(to=to, group_id=fields.get("JMSXGroupID"))
        if (text := fields.get("JMSMessageID")) is not None:
            properties.message_id = ids.to_amqp(text)
        if (text := fields.get("JMSCorrelationID")) is not None:
            properties.correlation_id = ids.to_amqp(text)
        if text := fields.get("JMSXUserID"):
            if self._traits.checks_users:
                not_kept("JMSXUserID", "the broker takes no user there but the one that logs in")
            else:
                properties.user_id = text.encode("utf-8", "replace")
        if expiration := _number(fields, "JMSExpiration", _TIMES):
            properties.absolute_expiry_time = Timestamp(expiration)
        if (created := _number(fields, "JMSTimestamp", _TIMES)) is not None:
            properties.creation_time = Timestamp(created)
        if (sequence := _number(fields, "JMSXGroupSeq", _INTS)) is not None:
            properties.group_sequence = UInt(sequence % _UINTS)
        properties.subject = self._text(message, "Subject")
        properties.content_type = self._text(message, "ContentType") or (SERIALIZED if is_serialized(message) else None)
        properties.content_encoding = self._text(message, "ContentEncoding")
        properties.reply_to_group_id = self._text(message, "ReplyToGroupID")
        return properties

    def _text(self, message: Message, name: str) -> str | None:
        value = message.properties.get(self._vendor + name)
        return None if value is None else value.text

    def _jms_type(self, message: Message, properties: Properties, annotations: AmqpMap) -> AmqpMap:
        """Writes the JMSType to its fields.

        Returns the application properties: with the JMSType if it has a property there, else empty.
        """
        jms_type = message.headers.get("JMSType")
        if jms_type is None:
            return AmqpMap()
        if properties.subject is None:
            # Current JMS clients read the JMSType from the subject.
            properties.subject = jms_type
        if self._settings.jms_type_property is not None:
            return AmqpMap([(self._settings.jms_type_property, jms_type)])
        annotations.append((JMS_TYPE, jms_type))
        return AmqpMap()

    def _type(self, message: Message) -> Byte:
        """Returns the message type for JMS clients."""
        if message.body_type is BodyType.TEXT and message.body_types:
            return Byte(MESSAGE) if message.body_types == NO_BODY else Byte(MESSAGE_TYPES[BodyType.TEXT])
        given = message.properties.get(self._message_type)
        if given is not None and given.text == str(MESSAGE) and not message.body:
            return Byte(MESSAGE)
        return Byte(MESSAGE_TYPES[message.body_type])


class _Places(dict[str, tuple[int, str] | None]):
    """Cache of where properties go: section and AMQP name by JMS name; None for a property that is not copied."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        vendor = settings.prefix_vendor
        self._translate = translator(settings.name_translator or "Null")
        self._type_property = settings.jms_type_property
        self._elsewhere = frozenset(vendor + name for name in _ELSEWHERE)
        self._prefixes = (
            (vendor + settings.prefix_delivery_annotations, _DELIVERY),
            (vendor + settings.prefix_message_annotations, _MESSAGE),
            (vendor + settings.prefix_footer, _FOOTER),
        )

    def __missing__(self, name: str) -> tuple[int, str] | None:
        try:
            place = self._found(name)
        except TranslationError as error:
            raise RefusedError(str(error)) from error
        # Names recur; the bounds keep arbitrary names from filling the memory.
        if len(name) <= _LONGEST_KNOWN and len(self) < _MOST_KNOWN:
            self[name] = place
        return place

    def _found(self, name: str) -> tuple[int, str] | None:
        if name in self._elsewhere or name.startswith(RESERVED):
            return None
        for prefix, section in self._prefixes:
            if name.startswith(prefix):
                return self._annotation(section, name[len(prefix) :])
        translated = self._translate(name)
        return None if translated == self._type_property or COMMANDS.match(translated) else (_APPLICATION, translated)

    def _annotation(self, section: int, name: str) -> tuple[int, str] | None:
        """Returns the place of an annotation or an entry of the footer, which has names of the same kind."""
        if name.startswith(_UNDERSCORED):
            # A Java identifier whose name in AMQP nobody tells: annotations in use have hyphens throughout.
            name = name.replace("_", "-")
        translated = self._translate(name)
        if section == _MESSAGE and translated.replace("-", "_") in _LEFT_OUT:
            return None
        is_allowed = translated.startswith(_OPTIONAL)
        return (section, Symbol(SYMBOLS.encoded(translated))) if is_allowed else (_RESERVED, translated)


def _is_error(name: str, value: Property) -> bool:
    """Returns True for a property by which a source tells that it could not hold a value."""
    return name.endswith(ERROR_SUFFIX) and value.text.startswith(ERROR_TEXT)


def _drop_repeated(pairs: AmqpMap) -> None:
    """Keeps the first pair of each name: an AMQP map may not hold a key twice (AMQP 1.0, 1.6.23)."""
    first: dict[str, Any] = {}
    for name, value in pairs:
        first.setdefault(name, value)
    pairs[:] = first.items()


def _number(fields: Mapping[str, str], name: str, numbers: range) -> int | None:
    """Returns a numeric field; None if it is absent, not a number, or outside the range `numbers`."""
    text = fields.get(name)
    if text is None or not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if number in numbers else None
