"""The JMSMapping inbound transformer: AMQP messages to JMS messages, by the tables in `docs/connectors/amqp.md`.

A value that JMS cannot hold is left out, and a property `<name>_ERROR` describes it. A message of a JMS client,
marked by an annotation, keeps the types that its sender meant where the tables would change them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.connectors.amqp import ids
from engine.connectors.amqp.annotations import (
    DELIVERY_TIME,
    DESTINATION,
    JMS_TYPE,
    KINDS,
    MESSAGE,
    MESSAGE_TYPE,
    MESSAGE_TYPES,
    REPLY_TO,
    SERIALIZED,
)
from engine.connectors.amqp.bodies import Body, read_body
from engine.connectors.amqp.codec.sections import Header, Properties, Sections, decode
from engine.connectors.amqp.codec.values import AmqpError, AmqpMap, Byte, Symbol, Timestamp, ULong
from engine.connectors.amqp.conversion import ERROR_SUFFIX, ERROR_TEXT, UnfitError, to_property
from engine.connectors.amqp.names import TranslationError, Translator, is_reversible, translator
from engine.connectors.amqp.traits import SPECIFIED, AmqpTraits
from engine.connectors.base import RESERVED
from engine.connectors.content_id import new_message_id
from engine.message import ORIGIN, BodyType, Message
from engine.property_names import SYMBOLS, not_kept
from routes.properties import HEADER_FIELDS, JmsType, Property

if TYPE_CHECKING:
    from engine.connectors.amqp.transformer_settings import TransformerSettings

__all__ = ["JmsMappingInbound", "TransformError"]

_MARKS = frozenset((MESSAGE_TYPE, DESTINATION, REPLY_TO, JMS_TYPE, DELIVERY_TIME))
_TIMES = (int, Timestamp, ULong)
_AMQP_PRIORITY, _MOST_PRIORITY = 4, 9
_MOST_INT = (1 << 31) - 1
_UINTS = 1 << 32
_LONGEST_KNOWN = 100
_MOST_KNOWN = 1000
_MOST_PAIRS = 16
_NUMBERS = (int, float)
_NO_HEADER, _NO_PROPERTIES, _NO_PAIRS = Header(), Properties(), AmqpMap()
_NOT_NATIVE = Property("false", JmsType.BOOLEAN)
_STRING = JmsType.STRING


class TransformError(ValueError):
    """An AMQP message cannot be read by its transformer. The text is one line for users."""


class JmsMappingInbound:
    """Converts AMQP messages to JMS messages."""

    def __init__(self, settings: TransformerSettings, traits: AmqpTraits = SPECIFIED) -> None:
        self._settings = settings
        self._destination_at = traits.destination
        self._jms_marks = traits.jms_marks
        self._unpacked = traits.unpacked
        self._marks_redelivery = traits.marks_redelivery
        self._returns = traits.returns
        named = settings.name_translator or "InvalidToUnderscore"
        translate, restores = translator(named), is_reversible(named)
        self._vendor = vendor = settings.prefix_vendor
        self._delivery_annotations = _Names(vendor + settings.prefix_delivery_annotations, translate, restores)
        self._message_annotations = _Names(vendor + settings.prefix_message_annotations, translate, restores)
        self._footer = _Names(vendor + settings.prefix_footer, translate, restores)
        self._application_properties = _Names("", translate, restores)
        self._format, self._native = f"{vendor}MESSAGE_FORMAT", f"{vendor}NATIVE"
        self._known: dict[tuple[object, ...], _Given] = {}
        """Cache by the header's fields and by the identity of the decoded annotations: decoding returns the same object
        for the same bytes."""

    def to_message(self, encoded: bytes, message_format: int, address: str, source: str) -> Message:
        """Makes the canonical message of an encoded AMQP message.

        Raises:
            TransformError: the bytes are not an AMQP message, or the name translator fails on a name in it.
        """
        try:
            sections = decode(encoded)
        except AmqpError as error:
            raise TransformError(f"no AMQP 1.0 message: {error}") from error
        if self._unpacked is not None:
            sections = self._unpacked(sections)
        header = sections.header or _NO_HEADER
        given = self._given(header, sections.message_annotations or _NO_PAIRS)
        draft = _Draft(
            given.delivery.copy(),
            given.properties.copy(),
            given.spellings.copy(),
            [*given.faults],
            exact=given.is_of_jms,
        )
        properties = sections.properties or _NO_PROPERTIES
        self._expiration(draft, header, properties)
        self._properties(draft, properties, given.marks, address)
        draft.fields.update(given.fields)
        for name, value in sections.delivery_annotations or ():
            draft.add(self._delivery_annotations[name], value)
        for name, value in sections.footer or ():
            draft.add(self._footer[name], value)
        origins = self._application(draft, sections.application_properties or _NO_PAIRS)
        body, body_type, body_types = self._body(draft, sections, _message_type(given, properties, sections))
        for name, why in draft.faults:
            not_kept(name, why)
        draft.properties[self._format] = _format(message_format)
        draft.properties[self._native] = _NOT_NATIVE
        return Message(
            body, body_type, draft.fields, draft.properties, source, origins, body_types, spellings=draft.spellings
        )

    def _given(self, header: Header, annotations: AmqpMap) -> _Given:
        """Returns the facts from header and annotations, from the cache for a pair that was seen before."""
        key = id(annotations), header.durable, header.priority, header.first_acquirer, header.delivery_count
        known = self._known.get(key)
        if known is not None and known.annotations is annotations:
            return known
        given = self._read(header, annotations)
        if _is_short(annotations):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = given
        return given

    def _read(self, header: Header, annotations: AmqpMap) -> _Given:
        marks = {name: value for name, value in annotations if type(name) is Symbol and name in _MARKS}
        mark = marks.get(MESSAGE_TYPE)
        is_of_jms = any(type(marks.get(name)) is Byte for name in self._jms_marks)
        given = _Given(annotations, marks, int(mark) if type(mark) is Byte else None, is_of_jms)
        draft = _Draft(given.delivery, given.properties, given.spellings, given.faults, exact=is_of_jms)
        returns = 0
        for name, value in annotations:
            if type(name) is Symbol and name in self._returns and isinstance(value, int):
                returns = max(int(value), returns)
            elif type(name) is not Symbol or name != JMS_TYPE:
                draft.add(self._message_annotations[name], value)
        if isinstance(jms_type := marks.get(JMS_TYPE), str):
            given.fields["JMSType"] = str(jms_type)
        delivery_time = marks.get(DELIVERY_TIME)
        if isinstance(delivery_time, _TIMES) and delivery_time > 0:
            given.fields["JMSDeliveryTime"] = str(int(delivery_time))
        self._header(draft, header, returns)
        return given

    def _header(self, draft: _Draft, header: Header, returns: int) -> None:
        settings, fields = self._settings, draft.fields
        durable, priority = header.durable, header.priority
        # JMS clients leave out fields that have AMQP's default value, so an absent field means that default.
        if durable is None:
            fields["JMSDeliveryMode"] = "NON_PERSISTENT" if draft.exact else settings.default_delivery_mode
        else:
            fields["JMSDeliveryMode"] = "PERSISTENT" if durable else "NON_PERSISTENT"
        if priority is None:
            fields["JMSPriority"] = str(_AMQP_PRIORITY if draft.exact else settings.default_priority)
        else:
            fields["JMSPriority"] = str(min(priority, _MOST_PRIORITY))
        comes_again = self._marks_redelivery and header.first_acquirer is False
        failed = max(header.delivery_count or 0, int(comes_again), returns)
        fields["JMSXDeliveryCount"] = str(min(failed + 1, _MOST_INT))
        fields["JMSRedelivered"] = "true" if failed else "false"
        if header.first_acquirer is not None:
            draft.properties[f"{self._vendor}FirstAcquirer"] = to_property(header.first_acquirer, exact=True)

    def _expiration(self, draft: _Draft, header: Header, properties: Properties) -> None:
        # A zero from the sender means that the message never expires; only an absent ttl gets the default.
        expires_at: int | None = properties.absolute_expiry_time
        if expires_at is None:
            time_to_live = self._settings.default_ttl_ms if header.ttl is None else header.ttl
            expires_at = time.time_ns() // 1_000_000 + time_to_live if time_to_live else 0
        if expires_at:
            draft.fields["JMSExpiration"] = str(int(expires_at))

    def _properties(self, draft: _Draft, properties: Properties, marks: Mapping[Symbol, Any], address: str) -> None:
        fields = draft.fields
        own = properties.message_id is None or self._settings.overwrite_message_id
        fields["JMSMessageID"] = new_message_id() if own else ids.message_id(properties.message_id)  # type: ignore[arg-type]
        kind = address.partition(":")[0]
        fields["JMSDestination"] = (
            self._destination(properties.to, marks.get(DESTINATION), kind) if properties.to else address
        )
        if properties.reply_to:
            fields["JMSReplyTo"] = self._destination(properties.reply_to, marks.get(REPLY_TO), "queue")
        if properties.correlation_id is not None:
            fields["JMSCorrelationID"] = ids.correlation_id(properties.correlation_id)
        if properties.creation_time:
            fields["JMSTimestamp"] = str(properties.creation_time)
        if properties.group_id is not None:
            fields["JMSXGroupID"] = properties.group_id
        if properties.group_sequence is not None:
            # Java has no unsigned numbers: the upper half becomes negative, as in Qpid JMS.
            number = properties.group_sequence
            fields["JMSXGroupSeq"] = str(number if number <= _MOST_INT else number - _UINTS)
        if properties.user_id:
            _user(draft, properties.user_id)
        self._texts(draft, properties)

    def _destination(self, text: str, mark: Any, default: str) -> str:
        """Returns `queue:NAME` or `topic:NAME`: the kind from the annotation, else from a prefix, else `default`."""
        kind = KINDS[mark] if type(mark) is Byte and 0 <= mark < len(KINDS) else None
        return self._destination_at(text, kind, default)

    def _texts(self, draft: _Draft, properties: Properties) -> None:
        """Adds the properties for subject, content type, content encoding and reply-to group."""
        vendor = self._vendor
        if properties.subject is not None:
            draft.properties[f"{vendor}Subject"] = Property(str(properties.subject), _STRING)
            if draft.exact:
                draft.fields["JMSType"] = properties.subject
        if properties.content_type is not None:
            draft.properties[f"{vendor}ContentType"] = Property(str(properties.content_type), _STRING)
        if properties.content_encoding is not None:
            draft.properties[f"{vendor}ContentEncoding"] = Property(str(properties.content_encoding), _STRING)
        if properties.reply_to_group_id is not None:
            draft.properties[f"{vendor}ReplyToGroupID"] = Property(str(properties.reply_to_group_id), _STRING)

    def _application(self, draft: _Draft, pairs: AmqpMap) -> tuple[str, ...]:
        """Adds the application properties; returns the ids of the bridges that the message came through."""
        origins: tuple[str, ...] = ()
        type_property = self._settings.jms_type_property
        names = self._application_properties
        for name, value in pairs:
            translated = names[name]
            if translated is None:
                if name == ORIGIN and isinstance(value, str):
                    origins = tuple(value.split(","))
            elif name == type_property and isinstance(value, str):
                draft.fields["JMSType"] = str(value)
            else:
                draft.add(translated, value)
        return origins

    def _body(self, draft: _Draft, sections: Sections, message_type: int | None) -> Body:
        errors: dict[str, str] = {}
        body = read_body(sections, message_type, errors, exact=draft.exact)
        for name, what in errors.items():
            entry = name if body[1] is BodyType.MAP else f"{self._vendor}Body_{name}" if name else f"{self._vendor}Body"
            draft.fault(entry, what)
        return body


class _Names(dict[Any, tuple[str, str] | None]):
    """Cache of JMS names by AMQP name, with a prefix; None for a name that is reserved for bridges.

    A JMS name comes with the AMQP name behind the prefix; the two are the same unless `restores`.
    """

    def __init__(self, prefix: str, translate: Translator, restores: bool) -> None:
        super().__init__()
        self._prefix = prefix
        self._translate = translate
        self._restores = restores

    def __missing__(self, name: Any) -> tuple[str, str] | None:
        text = SYMBOLS.decoded(str(name)) if self._prefix else str(name)
        try:
            translated = self._prefix + self._translate(text)
        except TranslationError as error:
            raise TransformError(str(error)) from error
        found: tuple[str, str] | None = (translated, self._prefix + text if self._restores else translated)
        if translated.startswith(RESERVED) or text.startswith(RESERVED):
            found = None
        # Names recur; the bounds keep arbitrary names of senders from filling the memory.
        if len(text) <= _LONGEST_KNOWN and len(self) < _MOST_KNOWN:
            self[name] = found
        return found


@dataclass(frozen=True, slots=True)
class _Given:
    """Facts from the header and the message annotations of a message, which many messages share."""

    annotations: AmqpMap
    marks: Mapping[Symbol, Any]
    message_type: int | None
    """Message type of a JMS client; None if the message has none."""
    is_of_jms: bool
    """True if the message is one of a JMS client."""
    fields: dict[str, str] = field(default_factory=dict)
    """JMS fields from the annotations, which win over those of other sections."""
    delivery: dict[str, str] = field(default_factory=dict)
    """JMS fields from the header, without the expiration, which the properties decide too."""
    properties: dict[str, Property] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    faults: list[tuple[str, str]] = field(default_factory=list)


class _Draft:
    """Fields and properties of a message under construction."""

    __slots__ = ("exact", "faults", "fields", "properties", "spellings")

    def __init__(
        self,
        fields: dict[str, str],
        properties: dict[str, Property],
        spellings: dict[str, str],
        faults: list[tuple[str, str]],
        *,
        exact: bool,
    ) -> None:
        self.exact = exact
        """True if types are kept because the sender is a JMS client, see `conversion`."""
        self.fields = fields
        self.properties = properties
        self.spellings = spellings
        """Names in AMQP by names of properties that differ from them."""
        self.faults = faults
        """Names of the values that could not be held, with reasons."""

    def add(self, names: tuple[str, str] | None, value: Any) -> None:
        """Adds a property, or an error property if JMS cannot hold the value or the name is taken.

        `names` are its names in JMS and in AMQP. Skips null values and reserved names (None).
        """
        if value is None or names is None:
            return
        name = self._free(*names)
        if not name:
            # JMS has no property with an empty name (Jakarta Messaging 3.1, 3.5.1).
            self.fault(name, f"{str(value)[:200]!r}, as its name is empty")
            return
        if name in self.properties or name in HEADER_FIELDS:
            self.fault(name, f"{str(value)[:200]!r}, as another field or property has this name")
            return
        try:
            self.properties[name] = to_property(value, exact=self.exact)
        except UnfitError as error:
            self.fault(name, str(error))
            return
        if name != names[1]:
            self.spellings[name] = names[1]

    def _free(self, name: str, own: str) -> str:
        """Returns the name for a property; of two that become the same by translation, each keeps its own one."""
        if name not in self.properties:
            return name
        if own not in (name, self.spellings.get(name)):
            return own
        if own == name and (other := self.spellings.pop(name, None)) is not None:
            self.properties[other] = self.properties.pop(name)
        return name

    def fault(self, name: str, what: str) -> None:
        """Adds the property that tells which value could not be held."""
        self.faults.append((name, ERROR_TEXT + what))
        self.properties[name + ERROR_SUFFIX] = Property(ERROR_TEXT + what, _STRING)


def _message_type(given: _Given, properties: Properties, sections: Sections) -> int | None:
    """Returns the message type: the one given, else the one that the body shows where a JMS client gives none."""
    if given.message_type is not None or not given.is_of_jms:
        return given.message_type
    if properties.content_type == SERIALIZED:
        return MESSAGE_TYPES[BodyType.OBJECT]
    if sections.content is None:
        return MESSAGE if sections.body is None else MESSAGE_TYPES[BodyType.TEXT]
    return None


def _is_short(annotations: AmqpMap) -> bool:
    """Returns True if annotations may stay in the cache; arbitrary ones of senders would fill the memory."""
    return len(annotations) <= _MOST_PAIRS and all(
        len(each) <= _LONGEST_KNOWN if isinstance(each, str | bytes) else isinstance(each, _NUMBERS)
        for pair in annotations
        for each in pair
    )


@lru_cache(256)
def _format(message_format: int) -> Property:
    return Property(str(message_format), JmsType.LONG)


def _user(draft: _Draft, user: bytes) -> None:
    try:
        draft.fields["JMSXUserID"] = user.decode()
    except UnicodeDecodeError:
        draft.fault("JMSXUserID", f"binary {user[:100].hex()}")
