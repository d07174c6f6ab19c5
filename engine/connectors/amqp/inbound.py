"""The JMSMapping inbound transformer: an AMQP message as a JMS message, by the tables in `docs/connectors/amqp.md`.

What JMS cannot hold is left out, and a property `<name>_ERROR` says what it was. Messages of JMS clients, which say so
by an annotation, keep what their senders meant where the tables would make something else of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from engine.codecs.amqp.sections import Header, Properties, Sections, decode
from engine.codecs.amqp.values import AmqpError, Byte, Map, Symbol, Timestamp, ULong
from engine.connectors.amqp import ids
from engine.connectors.amqp.annotations import (
    DELIVERY_TIME,
    DESTINATION,
    JMS_TYPE,
    KINDS,
    MESSAGE_TYPE,
    PREFIXES,
    REPLY_TO,
)
from engine.connectors.amqp.bodies import Body, read_body
from engine.connectors.amqp.conversion import UnfitError, to_property
from engine.connectors.amqp.names import Translator, translator
from engine.connectors.amqp.native import new_message_id
from engine.message import ORIGIN, BodyType, Message
from routes.properties import HEADER_FIELDS, JmsType, Property

if TYPE_CHECKING:
    from routes.transformers import TransformerSettings

__all__ = ["JmsMappingInbound", "TransformError"]

_BRIDGE = ("jmsbridge.", "JMS_JmsBridge_")
"""How names begin that only a bridge may use; no sender from outside can pass for one."""
_MARKS = frozenset((MESSAGE_TYPE, DESTINATION, REPLY_TO, JMS_TYPE, DELIVERY_TIME))
_TIMES = (int, Timestamp, ULong)
_AMQP_PRIORITY, _MOST_PRIORITY = 4, 9
_MOST_INT = (1 << 31) - 1
_UINTS = 1 << 32
_LONGEST_NAME = 200
_NO_HEADER, _NO_PROPERTIES, _NO_PAIRS = Header(), Properties(), Map()
_NOT_NATIVE = Property("false", JmsType.BOOLEAN)
_STRING = JmsType.STRING


class TransformError(ValueError):
    """An AMQP message cannot be read as its transformer should. One line for users."""


class JmsMappingInbound:
    """From AMQP to JMS."""

    def __init__(self, settings: TransformerSettings) -> None:
        self._settings = settings
        self._translate = translator(settings.name_translator or "InvalidToUnderscore")
        self._vendor = vendor = settings.prefix_vendor
        self._delivery_annotations = vendor + settings.prefix_delivery_annotations
        self._message_annotations = vendor + settings.prefix_message_annotations
        self._footer = vendor + settings.prefix_footer

    def to_message(self, encoded: bytes, message_format: int, address: str, source: str) -> Message:
        """The canonical message.

        Raises:
            TransformError: the bytes are no AMQP message.
        """
        try:
            sections = decode(encoded)
        except AmqpError as error:
            raise TransformError(f"no AMQP 1.0 message: {error}") from error
        annotations = sections.message_annotations or _NO_PAIRS
        marks = {name: value for name, value in annotations if type(name) is Symbol and name in _MARKS}
        mark = marks.get(MESSAGE_TYPE)
        message_type = int(mark) if type(mark) is Byte else None
        draft = _Draft(self._translate, exact=message_type is not None)
        properties = sections.properties or _NO_PROPERTIES
        self._header(draft, sections.header or _NO_HEADER, properties)
        self._properties(draft, properties, marks, address)
        _marked(draft, marks)
        draft.add_all(self._delivery_annotations, sections.delivery_annotations)
        draft.add_all(self._message_annotations, [pair for pair in annotations if pair[0] != JMS_TYPE])
        draft.add_all(self._footer, sections.footer)
        origins = self._application(draft, sections.application_properties or _NO_PAIRS)
        body, body_type, body_types = self._body(draft, sections, message_type)
        draft.properties[f"{self._vendor}MESSAGE_FORMAT"] = Property(str(message_format), JmsType.LONG)
        draft.properties[f"{self._vendor}NATIVE"] = _NOT_NATIVE
        return Message(body, body_type, draft.fields, draft.properties, source, origins, body_types)

    def _header(self, draft: _Draft, header: Header, properties: Properties) -> None:
        settings, fields = self._settings, draft.fields
        durable, priority = header.durable, header.priority
        # JMS clients leave out what AMQP has as its default, and mean that.
        if durable is None:
            fields["JMSDeliveryMode"] = "NON_PERSISTENT" if draft.exact else settings.default_delivery_mode
        else:
            fields["JMSDeliveryMode"] = "PERSISTENT" if durable else "NON_PERSISTENT"
        if priority is None:
            fields["JMSPriority"] = str(_AMQP_PRIORITY if draft.exact else settings.default_priority)
        else:
            fields["JMSPriority"] = str(min(priority, _MOST_PRIORITY))
        time_to_live = header.ttl or settings.default_ttl_ms
        if properties.absolute_expiry_time:
            fields["JMSExpiration"] = str(properties.absolute_expiry_time)
        elif time_to_live:
            fields["JMSExpiration"] = str(time.time_ns() // 1_000_000 + time_to_live)
        failed = header.delivery_count or 0
        fields["JMSXDeliveryCount"] = str(failed + 1)
        fields["JMSRedelivered"] = "true" if failed else "false"
        if header.first_acquirer is not None:
            draft.properties[f"{self._vendor}FirstAcquirer"] = to_property(header.first_acquirer, exact=True)

    def _properties(self, draft: _Draft, found: Properties, marks: Mapping[Symbol, Any], address: str) -> None:
        fields, vendor = draft.fields, self._vendor
        own = found.message_id is None or self._settings.overwrite_message_id
        fields["JMSMessageID"] = new_message_id() if own else ids.message_id(found.message_id)  # type: ignore[arg-type]
        kind = address.partition(":")[0]
        fields["JMSDestination"] = _destination(found.to, marks.get(DESTINATION), kind) if found.to else address
        if found.reply_to:
            fields["JMSReplyTo"] = _destination(found.reply_to, marks.get(REPLY_TO), "queue")
        if found.correlation_id is not None:
            fields["JMSCorrelationID"] = ids.correlation_id(found.correlation_id)
        if found.creation_time:
            fields["JMSTimestamp"] = str(found.creation_time)
        if found.group_id is not None:
            fields["JMSXGroupID"] = found.group_id
        if found.group_sequence is not None:
            # Java has no unsigned numbers: the larger half is negative, as in Qpid JMS.
            number = found.group_sequence
            fields["JMSXGroupSeq"] = str(number if number <= _MOST_INT else number - _UINTS)
        if found.user_id:
            _user(draft, found.user_id)
        if found.subject is not None and draft.exact:
            fields["JMSType"] = found.subject
        for name, value in (
            ("Subject", found.subject),
            ("ContentType", found.content_type),
            ("ContentEncoding", found.content_encoding),
            ("ReplyToGroupID", found.reply_to_group_id),
        ):
            if value is not None:
                draft.properties[vendor + name] = Property(str(value), _STRING)

    def _application(self, draft: _Draft, pairs: Map) -> tuple[str, ...]:
        """Adds the application properties; gives the bridges that the message came through."""
        origins: tuple[str, ...] = ()
        type_property = self._settings.jms_type_property
        for name, value in pairs:
            if name == ORIGIN and isinstance(value, str):
                origins = tuple(value.split(","))
            elif name == type_property and isinstance(value, str):
                draft.fields["JMSType"] = str(value)
            else:
                draft.add("", name, value)
        return origins

    def _body(self, draft: _Draft, sections: Sections, message_type: int | None) -> Body:
        errors: dict[str, str] = {}
        body = read_body(sections, message_type, errors)
        for name, what in errors.items():
            entry = name if body[1] is BodyType.MAP else f"{self._vendor}Body_{name}" if name else f"{self._vendor}Body"
            draft.fault(entry, what)
        return body


class _Draft:
    """A message in the making."""

    __slots__ = ("_translate", "exact", "fields", "properties")

    def __init__(self, translate: Translator, *, exact: bool) -> None:
        self._translate = translate
        self.exact = exact
        """Whether types are meant as those of JMS, see `conversion`."""
        self.fields: dict[str, str] = {}
        self.properties: dict[str, Property] = {}

    def add_all(self, prefix: str, pairs: Iterable[tuple[Any, Any]] | None) -> None:
        """Adds properties with a prefix."""
        for name, value in pairs or ():
            self.add(prefix, name, value)

    def add(self, prefix: str, name: Any, value: Any) -> None:
        """Adds a property under its translated name, or the fault why it is none; null is no value."""
        translated = prefix + self._translate(name if isinstance(name, str) else str(name)[:_LONGEST_NAME])
        if value is None or translated.startswith(_BRIDGE) or (type(name) is str and name.startswith(_BRIDGE)):
            return
        if translated in self.properties or translated in HEADER_FIELDS:
            self.fault(translated, f"{name!r:.200} would have the name of another field or property")
            return
        try:
            self.properties[translated] = to_property(value, exact=self.exact)
        except UnfitError as error:
            self.fault(translated, str(error))

    def fault(self, name: str, what: str) -> None:
        """Says what a property could not hold."""
        self.properties[f"{name}_ERROR"] = Property(f"no JMS value: {what}", _STRING)


def _marked(draft: _Draft, marks: Mapping[Symbol, Any]) -> None:
    """Sets what only annotations tell."""
    if isinstance(jms_type := marks.get(JMS_TYPE), str):
        draft.fields["JMSType"] = str(jms_type)
    delivery_time = marks.get(DELIVERY_TIME)
    if isinstance(delivery_time, _TIMES) and delivery_time > 0:
        draft.fields["JMSDeliveryTime"] = str(int(delivery_time))


def _user(draft: _Draft, user: bytes) -> None:
    try:
        draft.fields["JMSXUserID"] = user.decode()
    except UnicodeDecodeError:
        draft.fault("JMSXUserID", f"binary {user[:100].hex()}")


def _destination(text: str, mark: Any, default: str) -> str:
    """`queue:NAME` or `topic:NAME`; the kind by the annotation, the prefix, or as given."""
    kind = KINDS[mark] if type(mark) is Byte and 0 <= mark < len(KINDS) else None
    for prefix, its_kind in PREFIXES.items():
        if text.startswith(prefix):
            return f"{kind or its_kind}:{text[len(prefix) :]}"
    return f"{kind or default}:{text}"
