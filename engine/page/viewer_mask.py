"""Masks of `http.viewer.mask`: records as viewers see them, and questions that would tell a masked value."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.dead_letters.letter import DETAIL
from engine.errors import UsageError
from engine.find.header_names import header_names
from engine.message import Message
from engine.telemetry.http_section import KEY, HttpConfig
from routes.config.mask_checks import covers
from routes.predicate.bodies import Body, body_path
from routes.predicate.mask import Mask, MaskMethod
from routes.predicate.nodes import BodyPath, BodyText, DocumentFormat, Identifier, XmlPath, walk
from routes.predicate.xml_mask import XmlMask
from routes.properties import SEED_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.find.question import FindQuestion
    from engine.find.timeline import Timeline, TimelineEvent
    from engine.kafka.reader import LocatedRecord
    from engine.record import Record
    from routes.model import Config, Route
    from routes.predicate import Predicate
    from routes.predicate.bodies import DocumentReader
    from routes.predicate.nodes import ValuePath

__all__ = ["STARS", "MaskedError", "MaskedRecord", "ViewerMask"]

STARS = "***"
"""Text in the place of a masked value."""
_KEY_FIELDS = frozenset({"JMSXGroupID", "JMSCorrelationID", "JMSMessageID"})
"""Fields of which the journal takes the key of a record."""
_LEAST = 4
"""Characters of a masked value from which on it is looked for in other headers, which have short texts by chance."""
_BEGINNING = 40
"""Characters of a masked value that are looked for in texts which may quote its beginning alone."""
_COMMON = ("true", "false", "null")
"""Masked values that tell nothing where they stand elsewhere."""
_WHY = "http.viewer.mask"


class MaskedError(UsageError):
    """Request of a viewer that would show or tell a masked value."""


@dataclass(frozen=True, slots=True)
class MaskedRecord:
    """Record without its masked values."""

    located: LocatedRecord
    hidden: str = ""
    """Reason why the body is not in it; empty if it is, or if the record has none."""


class ViewerMask:
    """The mask of a configuration that has one."""

    def __init__(self, config: Config, documents: DocumentReader | None) -> None:
        """`documents` tells which bodies have a schema; None if there are no schemas."""
        masked = config.section(HttpConfig).viewer.masked
        paths = [each for each in masked if isinstance(each, BodyPath)]
        json_paths = tuple(path for path in paths if path.steps)
        self._bounds = config.routing.bounds
        self._documents = documents
        self._whole = len(json_paths) < len(paths)
        self._json = Mask(json_paths, MaskMethod.REPLACE, None) if json_paths else None
        xml_paths = tuple(each for each in masked if isinstance(each, XmlPath))
        self._xml = XmlMask(xml_paths) if xml_paths else None
        self._names = {each for each in masked if isinstance(each, str)}
        self._names |= {SEED_NAMES[name] for name in self._names & SEED_NAMES.keys()}
        self._names |= {name for route in config.routes for name in self._copies(route)}
        self._headers = frozenset(header for name in self._names for header in header_names(name))
        keys = (route.key for route in config.routes if route.key)
        self._hides_key = KEY in self._names or bool(_KEY_FIELDS & self._names) or any(map(self._hides, keys))

    @property
    def has_bodies(self) -> bool:
        """True if something in bodies is masked."""
        return self._whole or self._json is not None or self._xml is not None

    def record(self, located: LocatedRecord, *, is_cut: bool = False) -> MaskedRecord:
        """Returns a record without its masked values; `is_cut`: it has a part of its body alone.

        A masked value is also masked where it stands in the key, or in a header of another name.
        """
        record = located.record
        body, why, values = self._body(record, is_cut=is_cut)
        values += self._header_values(record)

        def shown(name: str, value: bytes | None) -> bytes | None:
            if value is None:
                return None
            is_masked = name in self._headers or _tells(_text(value), values, is_prose=name == DETAIL)
            # A text about a body that is not shown may quote it.
            return STARS.encode() if is_masked or (why and name == DETAIL) else value

        key = STARS.encode() if self._hides_key and record.key is not None else shown("", record.key)
        headers = tuple((name, shown(name, value)) for name, value in record.headers)
        return MaskedRecord(replace(located, record=type(record)(key, body, headers)), why)

    def document(self, content: bytes) -> bytes | None:
        """Returns the content of a body with a schema, which is JSON, without its masked values; None to show none."""
        if not self.has_bodies:
            return content
        return None if self._whole or self._json is None else self._json.body(content, self._bounds)

    def events(self, told: Timeline) -> tuple[TimelineEvent, ...]:
        """Returns the events of a timeline, without masked values in their details."""
        values = list(told.commands)
        values += told.keys if self._hides_key else ()
        for located in told.records:
            record = located.record
            _, why, in_body = self._body(record)
            values += in_body + self._header_values(record)
            values += [_text(record.key)] if self._hides_key and record.key else []
            values += [_text(value) for name, value in record.headers if why and name == DETAIL and value]
        return tuple(replace(event, detail=_without(event.detail, values)) for event in told.events)

    def check(self, predicate: Predicate | None, field: str = "where") -> None:
        """Raises MaskedError if a predicate asks for something that is masked; `field` has the predicate."""
        for node in walk(predicate.root) if predicate else ():
            if isinstance(node, BodyText):
                hides, name = self.has_bodies, str(node)
            elif isinstance(node, BodyPath | XmlPath):
                hides, name = self._hides_path(node), str(node)
            elif isinstance(node, Identifier):
                hides, name = node.name in self._names, node.name
            else:
                continue
            if hides:
                raise _refused(field, f"asks for '{name}'")

    def check_question(self, question: FindQuestion) -> None:
        """Raises MaskedError if a search asks for something that is masked."""
        self.check(question.predicate)
        if question.text is not None and self.has_bodies:
            raise _refused("text", "asks for bodies")
        if question.key is not None and self._hides_key:
            raise _refused("key", "asks for keys")
        fields = {"JMSMessageID": question.message_id, "JMSCorrelationID": question.correlation_id}
        for name, asked in fields.items():
            if name in self._names and (asked is not None or question.either_id is not None):
                raise _refused("an id", f"asks for '{name}'")
        for name, _ in question.headers:
            if self._headers.intersection(header_names(name)):
                raise _refused("header", f"asks for '{name}'")

    def _body(self, record: Record, *, is_cut: bool = False) -> tuple[bytes | None, str, list[str]]:
        """The body without its masked values, the reason why it is not shown, and the values."""
        body = record.value
        if not body or not self.has_bodies:
            return body, "", []
        if self._whole:
            return None, f"{_WHY} has msg.body", []
        if is_cut:
            return None, "a list masks whole bodies alone, and this one is too large for it; open the record", []
        origin = Message.from_record(record).origin
        if self._documents is not None and self._documents.has_schema(body, origin):
            return None, "a body with a schema has no mask; its content is shown with one", []
        read = Body(body, self._bounds)
        if (fault := read.fault(DocumentFormat.JSON)) is None:
            if self._json is None:
                return None, f"it is JSON, and {_WHY} has no path into JSON", []
            return self._masked(self._json.body(body, self._bounds), list(self._json.hidden(body)))
        if read.fault(DocumentFormat.XML) is None:
            if self._xml is None:
                return None, f"it is XML, and {_WHY} has no path into XML", []
            return self._masked(self._xml.body(body, self._bounds), list(self._xml.hidden(body, self._bounds)))
        is_large = len(body) > self._bounds.size
        return None, fault if is_large else "it is neither JSON nor XML that can be read, so it cannot be masked", []

    def _masked(self, body: bytes | None, values: list[str]) -> tuple[bytes | None, str, list[str]]:
        return body, "the masked body is too large" if body is None else "", values

    def _header_values(self, record: Record) -> list[str]:
        return [_text(value) for name, value in record.headers if name in self._headers and value]

    def _copies(self, route: Route) -> Iterator[str]:
        """The names of headers that a route makes of masked values."""
        yield from (new for old, new in route.edits.renamed if self._hides(old))
        for name, text in route.edits.given:
            if any(self._hides(reference.name) for reference in text.references):
                yield name

    def _hides(self, name: str) -> bool:
        """True if a name of the routing language, or a path into the body, has a masked value."""
        path = body_path(name)
        return name in self._names if path is None else self._hides_path(path)

    def _hides_path(self, path: ValuePath) -> bool:
        if self._whole or not self.has_bodies:
            return self._whole
        if isinstance(path, BodyPath):
            # Bodies of a format without a masked path are not shown at all.
            return self._json is None or any(covers(each, path) for each in self._json.paths)
        return self._xml is None or any(_overlap(each, path) for each in self._xml.paths)


def _overlap(mask: XmlPath, path: XmlPath) -> bool:
    """True if a path may name a masked value, or an element around it, whose text includes it."""
    names = zip(mask.steps, path.steps, strict=False)
    return all(one.name == other.name for one, other in names)


def _refused(field: str, what: str) -> MaskedError:
    return MaskedError(f"{field}: it {what}, and {_WHY} hides that from viewers; ask without it, or as an operator")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _tells(text: str, values: Iterable[str], *, is_prose: bool) -> bool:
    """True if a text has one of the values, or, if it is prose, may quote one that is short or cut."""
    if is_prose:
        return _without(text, values) != text
    return any(len(value) >= _LEAST and value not in _COMMON and value in text for value in values)


def _without(text: str, values: Iterable[str]) -> str:
    """The text with stars in the place of the values, and of all behind the beginning of a long one."""
    for value in sorted({*values} - {"", *_COMMON}, key=len, reverse=True):
        if len(value) > _BEGINNING:
            at = text.find(value[:_BEGINNING])
            text = text if at < 0 else text[:at] + STARS
        elif len(value) >= _LEAST:
            text = text.replace(value, STARS)
        else:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", STARS, text)
    return text
