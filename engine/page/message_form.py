"""A message in a form: read from what was entered, and filled in with a record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.dead_letters.letter import DeadLetter, original
from engine.errors import UsageError
from engine.find.question import TopicKind
from engine.limits import MOST_HEADERS
from engine.message import ORIGIN, BodyType, Message
from engine.page.body_text import text_body
from engine.page.forms import Form
from engine.page.messages import record_at
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from engine.find.browse import BrowsedTopic
    from engine.kafka.reader import Position
    from engine.looks.look import LookWay
    from engine.message import Record
    from engine.page.sight import Sight
    from routes.model import Config
    from routes.schema_names import SourceSchema

__all__ = ["FIELDS", "form_of", "form_values", "message_in", "unrouted_record"]

FIELDS = ("address", "properties", "body", "kind", "source")
"""Names of the fields of the form."""


def form_values(form: Form, schemas: Iterable[SourceSchema]) -> dict[str, Any]:
    """Values for the template of the form, with the names of the sources that have `schemas`."""
    return {
        **{name: form.text(name) for name in FIELDS},
        "kind": form.text("kind") or BodyType.TEXT,
        "kinds": list(BodyType),
        "sources": [schema.source for schema in schemas],
        "types": list(JmsType),
    }


def form_of(message: Message, without: Collection[str] = ()) -> Form:
    """Fills in a form with a message, as far as the form can have it, but for some of its JMS fields."""
    left = {"JMSDestination", *without}
    lines = [f"{name}={value}" for name, value in message.headers.items() if name not in left]
    lines += [
        f"{name}:{value.type}={value.text}" if value.type else f"{name}={value.text}"
        for name, value in message.properties.items()
    ]
    form = {
        "address": message.headers.get("JMSDestination", ""),
        "properties": "\n".join(line for line in lines if "\n" not in line),
        "body": message.body.decode("utf-8", "replace"),
        "kind": str(message.body_type),
        "source": message.source,
    }
    return Form({name: [value] for name, value in form.items()})


def message_in(form: Form, fields: Mapping[str, str]) -> Message:
    """The message in a form, with JMS fields that it has unless the form says otherwise.

    Raises:
        UsageError: names the first line or field that is wrong.
    """
    found = dict(fields)
    if address := form.text("address").strip():
        found["JMSDestination"] = address
    properties: dict[str, Property] = {}
    lines = form.text("properties").splitlines()
    if len(lines) > MOST_HEADERS:
        msg = f"there are {len(lines):,} headers; at most {MOST_HEADERS:,} are taken here"
        raise UsageError(msg)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        name, _, kind = name.strip().partition(":")
        full = SEED_NAMES.get(name, name)
        if not equals or not name:
            msg = f"line {number} of the headers: {line!r} is not a header; expected NAME=VALUE or NAME:TYPE=VALUE"
            raise UsageError(msg)
        if kind and kind not in JmsType.__members__.values():
            msg = f"line {number} of the headers: there is no type '{kind}'; expected one of {', '.join(JmsType)}"
            raise UsageError(msg)
        if full in HEADER_FIELDS:
            found[full] = value
        else:
            properties[name] = Property(value, JmsType(kind) if kind else None)
    kind = form.text("kind") or BodyType.TEXT
    if kind not in BodyType.__members__.values():
        msg = f"there is no kind of body '{kind}'; expected one of {', '.join(BodyType)}"
        raise UsageError(msg)
    return Message(text_body(form.text("body")), BodyType(kind), found, properties, form.text("source"))


def unrouted_record(position: Position, config: Config, sight: Sight, way: LookWay) -> tuple[BrowsedTopic, Record]:
    """The record at a position as it would be in the journal, without the traces of its routing.

    The user of `sight` sees it, so the look is noted; raises what `record_at` and `Sight.only` do.
    """
    topic, found = record_at(config, position)
    located = sight.only(way, found)
    if topic.kind is TopicKind.DEAD_LETTERS:
        return topic, original(DeadLetter(located), config.bridge_id)
    bridge = config.bridge_id.encode()
    record = located.record
    # The bridge would take a message that it has published for one that comes back.
    return topic, replace(record, headers=tuple(each for each in record.headers if each != (ORIGIN, bridge)))
