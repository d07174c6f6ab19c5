"""Soft failures: the checks of a message as conditions over its row, and the dead letters of messages that fail one.

Every failure has a reason (also the label of the metric), a stage, and a sentence. Headers of a dead letter have the
names of Kafka Connect where it defines one, so that tools for Kafka Connect can read them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.errors import SoftFailureError
from engine.message import BODY, LARGE_BYTES, SIZE, TARGET, BodyType
from engine.printable import LONGEST_REASON
from engine.router.plan.changes import changed_body, conversion_fault, is_changed
from engine.router.plan.headers import header, position
from engine.router.plan.language import declared_type, field_text
from engine.router.plan.masks import mask_fails, mask_fault
from engine.router.plan.refusals import NO_REFUSALS, Refusals
from engine.router.plan.route_settings import JOURNAL_KEY, ROUTES, ByBranch, RouteSettings
from engine.router.plan.row import PlanFunction, PlanRow
from engine.router.plan.schemas import schema_fault
from engine.telemetry.metrics import UNMATCHED
from engine.topologies.library.casts import INT, STRING, STRINGS, cast, from_json, try_cast
from engine.topologies.library.row import JvmFunctions
from routes.keys.pattern import plain_characters
from routes.model import Publication
from routes.predicate.mask import UNMASKABLE
from routes.sections import HELD, HELD_BECAUSE

__all__ = [
    "CHECKS",
    "NOT_PUBLISHED",
    "UNMATCHED",
    "FailureCheck",
    "StoppedByPolicyError",
    "checks",
    "dead_letter",
    "key_check",
    "stop_message",
    "stopped_by_policy",
]

CHECKS = "checks"
"""Name of the split whose branches are the checks: a message takes the branch of the first check that it fails."""

NOT_PUBLISHED = "not-published"
"""Reason of a message that Kafka does not take while the router runs. It stops no router, whatever the policy."""

_STOP = "jms-bridge:stop:"
"""Prefix of the text of the error that ends a query by policy `stop`."""

FRAMING_BYTES = 4096
"""Bytes that the bridge's own headers and Kafka's framing may add to the journal record."""

_STRUCTURED = (BodyType.MAP.value, BodyType.STREAM.value, BodyType.OBJECT.value)
"""Kinds of body that are JSON if their source could read them."""

KEPT_BYTES = 64 * 1024
"""Bytes kept, at most, of a body that is too large for the dead-letter topic."""


class StoppedByPolicyError(SoftFailureError):
    """A message failed softly, and the policy of its route is `stop`."""

    def __init__(self, route: str, destination: str, reason: str, position: str, detail: str) -> None:
        self.route, self.destination, self.reason, self.position = route, destination, reason, position
        super().__init__(
            f"route {route!r} cannot take the message at {position}: {detail} ({reason}). "
            "Correct the route, or set on-soft-failure to skip or dead-letter for it, and start again: "
            "the message is still in the journal"
        )


@dataclass(frozen=True, slots=True)
class FailureCheck:
    """Check of a message before it is published; a message that fails it fails softly."""

    reason: str
    """Name of the check, and the reason in dead letters and metrics."""
    stage: str
    """Stage of the flow: `convert`, `key` or `publish`."""
    fails: PlanFunction
    """True for a row that fails the check. The function gets the row with the key already chosen."""
    says: PlanFunction
    """Sentence for the dead letter about a row that fails the check."""
    stops: Callable[[Publication], str]
    """The sentence for the error that stops the query: without details of the message."""


def checks(settings: RouteSettings, refusals: Refusals = NO_REFUSALS) -> tuple[FailureCheck, ...]:
    """The checks that these routes need, in the order in which they are made.

    Without a limit that a journal record could exceed, no size is checked.
    """
    made = [_paused(settings)] if settings.paused.values else []
    made.append(_body(settings))
    if settings.body_formats.values or settings.masks.values:
        made.append(_body_format(settings))
    if settings.schemas.values:
        made.append(_schema(settings))
    made.append(_key_found(settings))
    if settings.configured_keys.values:
        made.append(_key_valid(settings))
    if settings.templates.values:
        made.append(_destination(settings))
    most = settings.max_message_bytes + FRAMING_BYTES + settings.growth
    # A changed body may be larger than the one in the journal.
    growing = {
        topic
        for each in settings.publications
        if each.route.mask or each.route.converts
        for topic in each.target.topics
    }
    if limits := {topic: limit for topic, limit in settings.limits.items() if limit < most or topic in growing}:
        made.append(_size(settings, limits))
    if refusals:
        made.append(_not_published(settings, refusals))
    return tuple(made)


def _paused(settings: RouteSettings) -> FailureCheck:
    """The check that holds the messages of paused routes, before any other: their policy is `dead-letter`."""

    def fails(row: PlanRow) -> Column:
        return settings.paused(row).isNotNull()

    return FailureCheck(HELD, "publish", fails, lambda _: F.lit(HELD_BECAUSE), lambda _: HELD_BECAUSE)


def _body(settings: RouteSettings) -> FailureCheck:
    def is_other(row: PlanRow) -> Column:
        kind = F.coalesce(row.header(BODY), F.lit(BodyType.TEXT.value))
        other = ~kind.isin(BodyType.TEXT.value, BodyType.BYTES.value)
        if settings.any_body.values:
            other &= settings.any_body(row).isNull()
        if not settings.json_body.values:
            return other
        is_json = F.coalesce(F.get_json_object(cast(row.value, STRING), "$").isNotNull(), F.lit(False))
        return other & ~(settings.json_body(row).isNotNull() & kind.isin(*_STRUCTURED) & is_json)

    def fails(row: PlanRow) -> Column:
        other = is_other(row)
        if row.left is None or not settings.converted_kinds.values:
            return other
        return other | (row.left.isNull() & conversion_fault(row, settings).isNotNull())

    def says(row: PlanRow) -> Column:
        kind = F.substring(row.header(BODY), 1, LONGEST_REASON)
        other = F.concat(F.lit("the body is of type "), kind, F.lit(", neither text nor bytes"))
        if not settings.converted_kinds.values:
            return other
        return F.when(is_other(row), other).otherwise(conversion_fault(row, settings))

    def stops(publication: Publication) -> str:
        steps, schema = publication.route.steps, publication.route.written_schema
        parts = ["the body is neither text nor bytes"]
        parts += [f"not one for the steps {steps}"] if steps else []
        parts += [f"does not fit {schema}"] if schema else []
        return ", or ".join(parts)

    return FailureCheck("body-not-convertible", "convert", fails, says, stops)


def _body_format(settings: RouteSettings) -> FailureCheck:
    def fault(row: PlanRow) -> Column:
        """The reason why the body is not of the format that its route names; NULL if it is."""
        names = settings.body_formats
        fault = F.lit(None).cast("string")
        for name in sorted(set(names.values.values())):
            fault = F.when(names(row) == name, row.header_view.call(f"body-fault:{name}", row.value)).otherwise(fault)
        return fault

    def fails(row: PlanRow) -> Column:
        wrong = fault(row).isNotNull()
        return wrong | mask_fails(row, settings) if settings.masks.values else wrong

    def says(row: PlanRow) -> Column:
        return F.coalesce(fault(row), mask_fault(row, settings)) if settings.masks.values else fault(row)

    def stops(publication: Publication) -> str:
        if publication.route.read_as is None:
            return f"{UNMASKABLE}the body is not JSON"
        return f"the body is not {publication.route.read_as}, which in.body or in.schema names"

    return FailureCheck("body-unreadable", "convert", fails, says, stops)


def _schema(settings: RouteSettings) -> FailureCheck:
    def fails(row: PlanRow) -> Column:
        return schema_fault(row, settings).isNotNull()

    def says(row: PlanRow) -> Column:
        return schema_fault(row, settings)

    def stops(publication: Publication) -> str:
        return f"the body does not fit {publication.route.schema}, which in.schema names"

    return FailureCheck("body-invalid", "convert", fails, says, stops)


def _destination(settings: RouteSettings) -> FailureCheck:
    def says(row: PlanRow) -> Column:
        filled = F.substring(F.make_valid_utf8(settings.address(row)), 1, 100)
        found = F.coalesce(
            F.concat(F.lit(": '"), filled, F.lit("' is not a destination")), F.lit(": a value is missing or empty")
        )
        return F.concat(F.lit("the destination "), settings.targets(row), F.lit(" cannot be made"), found)

    def stops(publication: Publication) -> str:
        return f"the destination {publication.target} cannot be made of the message, or is not there"

    return FailureCheck("destination-unresolved", "publish", settings.is_unresolved, says, stops)


def _key_found(settings: RouteSettings) -> FailureCheck:
    names = settings.keys

    def fails(row: PlanRow) -> Column:
        missing = row.key.isNull()
        return missing & (names(row) != JOURNAL_KEY) if JOURNAL_KEY in names.values.values() else missing

    def says(row: PlanRow) -> Column:
        return F.concat(F.lit("there is no value under '"), names(row), F.lit("' to take the key from"))

    def stops(publication: Publication) -> str:
        return f"there is no value under '{names.values[publication.name]}' to take the key from"

    return FailureCheck("key-not-found", "key", fails, says, stops)


def _key_valid(settings: RouteSettings) -> FailureCheck:
    names = settings.configured_keys

    def kind(row: PlanRow) -> Column:
        """Declared type of the property that the key was taken from."""
        *others, last = dict.fromkeys(names.values.values())
        found = declared_type(row.header_view, last)
        for name in others:
            found = F.when(names(row) == name, declared_type(row.header_view, name)).otherwise(found)
        return found

    def fails(row: PlanRow) -> Column:
        fails = ~key_check(row.header_view.functions, settings.key_pattern, kind(row), row.key)
        return fails if len(names.values) == len(settings.publications) else names(row).isNotNull() & fails

    neither = "is neither a number nor text that matches routing.key-pattern"

    def says(row: PlanRow) -> Column:
        shown = F.substring(F.make_valid_utf8(cast(row.key, STRING)), 1, 100)
        return F.concat(F.lit("the key '"), shown, F.lit("' from '"), names(row), F.lit(f"' {neither}"))

    def stops(publication: Publication) -> str:
        return f"the key from '{settings.keys.values[publication.name]}' {neither}"

    return FailureCheck("key-invalid", "key", fails, says, stops)


def key_check(functions: JvmFunctions, pattern: str, kind: Column, key: Column) -> Column:
    """True for a key (binary) that is a number, by its declared type, or text that the pattern matches as a whole."""
    letters, others = plain_characters(pattern)
    check = json.dumps({"pattern": pattern, "letters": letters, "others": others})
    return functions.call(f"key-check:{check}", kind, key)


def _size(settings: RouteSettings, limits: Mapping[str, int]) -> FailureCheck:
    """The check of sizes; `limits` has the topics that do not take everything that can be in the journal."""
    constant = ByBranch(
        ROUTES, {name: str(limits[topic]) for name, topic in settings.constant_topics.values.items() if topic in limits}
    )
    chosen = {topic: str(limits[topic]) for topic in settings.topics_to_choose if topic in limits}
    measure = _measured if min(limits.values()) < LARGE_BYTES + FRAMING_BYTES + settings.growth else _declared_size

    def size(row: PlanRow) -> Column:
        """The size that the record may have after its headers are edited and its body is changed."""
        size = measure(row)
        if settings.changes_bodies:
            left = row.replace(value=changed_body(row, settings))
            size = F.when(is_changed(row, settings), _measured(left)).otherwise(size)
        return size + F.coalesce(cast(settings.growths(row), INT), F.lit(0)) if settings.growth else size

    def allowed(row: PlanRow) -> Column:
        return F.coalesce(constant(row), _looked_up(chosen, settings.topics(row))) if chosen else constant(row)

    def fails(row: PlanRow) -> Column:
        return F.coalesce(size(row) + FRAMING_BYTES > cast(allowed(row), INT), F.lit(False))

    def says(row: PlanRow) -> Column:
        parts = ("the record has ", size(row), " bytes, its topic takes ", allowed(row))
        return F.concat(*(F.lit(part) if isinstance(part, str) else cast(part, STRING) for part in parts))

    def stops(publication: Publication) -> str:
        limit = limits.get(publication.target.topic or "")
        return "the record is larger than its topic takes" + ("" if limit is None else f" ({limit} bytes)")

    return FailureCheck("too-large", "publish", fails, says, stops)


def _not_published(settings: RouteSettings, refusals: Refusals) -> FailureCheck:
    places = {":".join(map(str, place)): why for place, why in refusals.messages.items()}

    def why(row: PlanRow) -> Column:
        """The reason; NULL for a message that Kafka takes, as far as is known."""
        place = F.concat_ws(":", *(cast(each, STRING) for each in (row.partition, row.offset, row.copy)))
        return F.coalesce(_looked_up(refusals.topics, settings.topics(row)), _looked_up(places, place))

    def fails(row: PlanRow) -> Column:
        return why(row).isNotNull()

    return FailureCheck(NOT_PUBLISHED, "publish", fails, why, lambda _: "Kafka does not take the record")


def _looked_up(texts: Mapping[str, str], key: Column) -> Column:
    """The text of a key; NULL for any other key."""
    found = cast(F.lit(None), STRING)
    for text in dict.fromkeys(texts.values()):
        found = F.when(key.isin(*(each for each, its in texts.items() if its == text)), F.lit(text)).otherwise(found)
    return found


def _declared_size(row: PlanRow) -> Column:
    """Size in bytes of a record that has the header of large records; NULL for all others, below `LARGE_BYTES`."""
    return try_cast(row.header(SIZE), INT)


def _measured(row: PlanRow) -> Column:
    """Size in bytes of key, value and headers, counted for each record."""
    zero = F.lit(0)
    each = F.aggregate(
        row.headers,
        zero,
        lambda total, item: (
            total + F.octet_length(item.getField("key")) + F.coalesce(F.octet_length(item.getField("value")), zero)
        ),
    )
    parts = (F.octet_length(row.source_key), F.octet_length(row.value), each)
    first, *others = (F.coalesce(part, zero) for part in parts)
    return sum(others, first)


def dead_letter(row: PlanRow, settings: RouteSettings, made: tuple[FailureCheck, ...], now: Column) -> PlanRow:
    """The row as a dead letter: the message as it was read, and headers about its failure.

    A message that exceeds the limit of the dead-letter topic loses the end of its body, and also its headers if key and
    headers exceed half of the limit; `jmsbridge.truncated` then tells the original size in bytes.
    """
    limit = settings.letter_limit
    more = error_headers(row, settings, made, now)
    if limit is None or limit >= settings.max_message_bytes + FRAMING_BYTES:
        return row.replace(key=row.source_key, trail=more)
    # `_measured` costs time for every record: it needs a function that Spark generates no code for.
    size = _measured(row) if limit < LARGE_BYTES + FRAMING_BYTES else _declared_size(row)
    too_large = F.coalesce(size + FRAMING_BYTES > limit, F.lit(False))
    kept = min(KEPT_BYTES, limit // 4)
    headers = F.when(too_large & (size - F.octet_length(row.value) > limit // 2), F.lit(None)).otherwise(row.headers)
    cut = F.array(header("jmsbridge.truncated", cast(size, STRING)))
    return row.replace(
        key=row.source_key,
        value=F.when(too_large, F.substring(row.value, 1, kept)).otherwise(row.value),
        headers=headers,
        trail=F.when(too_large, F.concat(more, cut)).otherwise(more),
    )


def error_headers(row: PlanRow, settings: RouteSettings, made: tuple[FailureCheck, ...], now: Column) -> Column:
    """Headers of a dead letter about its failure, as an array."""
    stages = ByBranch(CHECKS, {check.reason: check.stage for check in made})
    why = _reason(row, made)
    texts = {
        "jmsbridge.reason": why,
        "jmsbridge.route": F.coalesce(settings.names(row), F.lit("")),
        "jmsbridge.time": _iso(now),
        "__connect.errors.topic": row.topic,
        "__connect.errors.partition": cast(row.partition, STRING),
        "__connect.errors.offset": cast(row.offset, STRING),
        "__connect.errors.stage": F.coalesce(stages(row), F.lit("match")),
        "__connect.errors.exception.class.name": F.concat(F.lit("jmsbridge."), why),
        "__connect.errors.exception.message": _sentence(row, made),
    }
    if settings.numbered.values:
        texts[TARGET] = F.coalesce(settings.numbered(row), F.lit(""))
    return F.array(*(header(name, text) for name, text in texts.items()))


def stop_message(row: PlanRow, settings: RouteSettings, made: tuple[FailureCheck, ...]) -> Column:
    """The text of the error that stops the query: `_STOP`, then JSON with its parts."""
    # Texts are made here, all but the position, so that Spark generates little code for them into the routing.
    known = [
        json.dumps(
            {
                "route": publication.route.name,
                "destination": str(publication.target),
                "reason": check.reason,
                "detail": check.stops(publication),
            }
        )[:-1]
        for check in made
        for publication in settings.publications
    ]
    texts = from_json(F.lit(json.dumps(known)), STRINGS)
    index = row.branch(CHECKS) * len(settings.publications) + row.branch(ROUTES)
    return F.concat(F.lit(_STOP), F.get(texts, index), F.lit(', "position": "'), position(row), F.lit('"}'))


def stopped_by_policy(text: str) -> StoppedByPolicyError | None:
    """The error that `stop_message` made the text for; None for a text with another origin."""
    # Spark's text about any failure of a query shows its plan, which has the constant in front of an expression.
    at = text.find(_STOP + "{")
    if at < 0:
        return None
    fields, _ = json.JSONDecoder().raw_decode(text, at + len(_STOP))
    return StoppedByPolicyError(
        *(str(fields[name]) for name in ("route", "destination", "reason", "position", "detail"))
    )


def _reason(row: PlanRow, made: tuple[FailureCheck, ...]) -> Column:
    values = ByBranch(CHECKS, {check.reason: check.reason for check in made})
    return F.coalesce(values(row), F.lit(UNMATCHED))


def _sentence(row: PlanRow, made: tuple[FailureCheck, ...]) -> Column:
    given = F.substring(F.make_valid_utf8(field_text(row.header_view, "JMSDestination")), 1, LONGEST_REASON)
    text = F.concat(F.lit("no route wants a message to "), F.coalesce(given, F.lit("no destination")))
    for index, check in enumerate(made):
        text = F.when(row.branch(CHECKS) == index, check.says(row)).otherwise(text)
    return F.coalesce(text, _reason(row, made))


def _iso(milliseconds: Column) -> Column:
    """The time as ISO 8601 text in UTC, such as `2026-11-21T05:50:52.123Z`, in any time zone of the session."""
    utc = F.to_utc_timestamp(F.timestamp_millis(milliseconds), F.current_timezone())
    return F.date_format(utc, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
