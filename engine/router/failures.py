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

from engine.message import BODY, LARGE_BYTES, SIZE, BodyType
from engine.router.addresses import address, has_templates, is_unresolved
from engine.router.headers import appended, header, position
from engine.router.routes import ROUTES, by_route
from engine.streams.nodes import ByBranch
from engine.streams.row import Row
from routes.model import BodyConversion, Config, Route
from routes.properties import NUMBERS, JmsType

__all__ = [
    "CHECKS",
    "JOURNAL_KEY",
    "STOP",
    "UNMATCHED",
    "FailureCheck",
    "checks",
    "dead_letter",
    "key_name",
    "stop_message",
]

CHECKS = "checks"
"""Name of the split whose branches are the checks: a message takes the branch of the first check that it fails."""

JOURNAL_KEY = ""
"""Stands for a header's name in `key_name`: the key is that of the journal record, and may be missing."""

UNMATCHED = "unmatched"
"""Reason of a message that no route takes."""

STOP = "jms-bridge:stop:"
"""Prefix of the text of the error that ends a query by policy `stop`."""

FRAMING_BYTES = 4096
"""Bytes that the bridge's own headers and Kafka's framing may add to the journal record."""

_STRUCTURED = (BodyType.MAP.value, BodyType.STREAM.value, BodyType.OBJECT.value)
"""Kinds of body that are JSON if their source could read them."""

KEPT_BYTES = 64 * 1024
"""Bytes kept, at most, of a body that is too large for the dead-letter topic."""


@dataclass(frozen=True, slots=True)
class FailureCheck:
    """Check of a message before it is published; a message that fails it fails softly."""

    reason: str
    """Name of the check, and the reason in dead letters and metrics."""
    stage: str
    """Stage of the flow: `convert`, `key` or `publish`."""
    fails: Callable[[Row], Column]
    """True for a row that fails the check. The function gets the row with the key already chosen."""
    says: Callable[[Row], Column]
    """Sentence for the dead letter about a row that fails the check."""
    stops: Callable[[Route], str]
    """The sentence for the error that stops the query: made from the route alone, without details of the message."""


def key_name(route: Route) -> str:
    """Name of the JMS field or property that a route takes its key from, or `JOURNAL_KEY`."""
    return route.key or (JOURNAL_KEY if route.target.sink else "JMSMessageID")


def checks(config: Config, limits: Mapping[str, int]) -> tuple[FailureCheck, ...]:
    """The checks that this configuration needs, in the order in which they are made.

    `limits` is `max.message.bytes` by topic. Without a limit that a journal record could exceed, no size is checked.
    """
    made = [_body(config), _key_found(config)]
    if any(route.key for route in config.routes):
        made.append(_key_valid(config))
    if has_templates(config):
        made.append(_destination(config))
    known = {route.name: [limits[topic] for topic in route.target.topics if topic in limits] for route in config.routes}
    routes = {name: min(found) for name, found in known.items() if found}
    if any(limit < config.journal.max_message_bytes + FRAMING_BYTES for limit in routes.values()):
        made.append(_size(routes))
    return tuple(made)


def _body(config: Config) -> FailureCheck:
    any_routes = by_route(config, lambda route: "" if route.conversion is BodyConversion.ANY else None)
    json_routes = by_route(config, lambda route: "" if route.conversion is BodyConversion.JSON else None)

    def fails(row: Row) -> Column:
        kind = F.coalesce(row.header(BODY), F.lit(BodyType.TEXT.value))
        other = ~kind.isin(BodyType.TEXT.value, BodyType.BYTES.value)
        if any_routes.values:
            other &= row.pick(any_routes).isNull()
        if not json_routes.values:
            return other
        is_json = F.coalesce(F.get_json_object(row.value.cast("string"), "$").isNotNull(), F.lit(False))
        return other & ~(row.pick(json_routes).isNotNull() & kind.isin(*_STRUCTURED) & is_json)

    def says(row: Row) -> Column:
        return F.concat(F.lit("the body is of type "), row.header(BODY), F.lit(", neither text nor bytes"))

    return FailureCheck("body-not-convertible", "convert", fails, says, lambda _: "the body is neither text nor bytes")


def _destination(config: Config) -> FailureCheck:
    targets = by_route(config, lambda route: str(route.target))

    def says(row: Row) -> Column:
        filled = F.substring(F.make_valid_utf8(address(row, config)), 1, 100)
        found = F.coalesce(F.concat(F.lit(": '"), filled, F.lit("' is none")), F.lit(": a header is missing or empty"))
        return F.concat(F.lit("the destination "), row.pick(targets), F.lit(" cannot be made"), found)

    def stops(route: Route) -> str:
        return f"the destination {route.target} cannot be made of its headers, or is not there"

    return FailureCheck("destination-unresolved", "publish", lambda row: is_unresolved(row, config), says, stops)


def _key_found(config: Config) -> FailureCheck:
    names = by_route(config, key_name)

    def fails(row: Row) -> Column:
        missing = row.key.isNull()
        return missing & (row.pick(names) != JOURNAL_KEY) if JOURNAL_KEY in names.values.values() else missing

    def says(row: Row) -> Column:
        return F.concat(F.lit("there is no value under '"), row.pick(names), F.lit("' to take the key from"))

    def stops(route: Route) -> str:
        return f"there is no value under '{key_name(route)}' to take the key from"

    return FailureCheck("key-not-found", "key", fails, says, stops)


def _key_valid(config: Config) -> FailureCheck:
    names = by_route(config, lambda route: route.key)
    # Flags of Java's regular expressions for Python's meaning: U, \w and the like match letters and digits of any
    # script; d, only \n ends a line.
    text, number = f"(?:{JmsType.STRING})?", "|".join(NUMBERS)
    valid = f"(?Ud)\\A(?:{text} (?:{config.routing.key_pattern})|(?:{number}) [^\\n]+)\\z"

    def kind(row: Row) -> Column:
        """Declared type of the property that the key was taken from."""
        *others, last = dict.fromkeys(names.values.values())
        found = row.declared_type(last)
        for name in others:
            found = F.when(row.pick(names) == name, row.declared_type(name)).otherwise(found)
        return found

    def fails(row: Row) -> Column:
        # One expression for type and text keeps the generated code small; the JVM does not compile large methods, see
        # `error_headers`.
        fails = ~F.coalesce(F.concat(kind(row), F.lit(" "), row.key.cast("string")).rlike(valid), F.lit(False))
        return fails if all(route.key for route in config.routes) else row.pick(names).isNotNull() & fails

    neither = "is neither a number nor text that matches routing.key-pattern"

    def says(row: Row) -> Column:
        shown = F.substring(F.make_valid_utf8(row.key.cast("string")), 1, 100)
        return F.concat(F.lit("the key '"), shown, F.lit("' from '"), row.pick(names), F.lit(f"' {neither}"))

    return FailureCheck("key-invalid", "key", fails, says, lambda route: f"the key from '{key_name(route)}' {neither}")


def _size(limits: Mapping[str, int]) -> FailureCheck:
    allowed = ByBranch(ROUTES, {name: str(limit) for name, limit in limits.items()})
    measure = _measured if min(limits.values()) < LARGE_BYTES + FRAMING_BYTES else _declared_size

    def fails(row: Row) -> Column:
        limit = row.pick(allowed).cast("int")
        return F.coalesce(measure(row) + FRAMING_BYTES > limit, F.lit(False))

    def says(row: Row) -> Column:
        parts = ("the record has ", measure(row), " bytes, its topic takes ", row.pick(allowed))
        return F.concat(*(F.lit(part) if isinstance(part, str) else part.cast("string") for part in parts))

    def stops(route: Route) -> str:
        return f"the record is larger than its topic takes ({limits.get(route.name)} bytes)"

    return FailureCheck("too-large", "publish", fails, says, stops)


def _declared_size(row: Row) -> Column:
    """Size in bytes of a record that has the header of large records; NULL for all others, below `LARGE_BYTES`."""
    return row.header(SIZE).try_cast("int")


def _measured(row: Row) -> Column:
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


def dead_letter(row: Row, config: Config, made: tuple[FailureCheck, ...], now: Column, limit: int | None) -> Row:
    """The row as a dead letter: the message as it was read, and headers about its failure.

    A message that exceeds `limit`, the dead-letter topic's `max.message.bytes`, loses the end of its body, and also its
    headers if key and headers exceed half of `limit`; `jmsbridge.truncated` then tells the original size in bytes.
    """
    more = error_headers(row, config, made, now)
    if limit is None or limit >= config.journal.max_message_bytes + FRAMING_BYTES:
        return row.replace(key=row.source_key, headers=F.concat(appended(row.headers, row, config.bridge_id), more))
    # `_measured` costs time for every record: it needs a function that Spark generates no code for.
    size = _measured(row) if limit < LARGE_BYTES + FRAMING_BYTES else _declared_size(row)
    too_large = F.coalesce(size + FRAMING_BYTES > limit, F.lit(False))
    kept = min(KEPT_BYTES, limit // 4)
    headers = F.when(too_large & (size - F.octet_length(row.value) > limit // 2), F.lit(None)).otherwise(row.headers)
    whole = F.concat(appended(headers, row, config.bridge_id), more)
    cut = F.array(header("jmsbridge.truncated", size.cast("string")))
    return row.replace(
        key=row.source_key,
        value=F.when(too_large, F.substring(row.value, 1, kept)).otherwise(row.value),
        headers=F.when(too_large, F.concat(whole, cut)).otherwise(whole),
    )


def error_headers(row: Row, config: Config, made: tuple[FailureCheck, ...], now: Column) -> Column:
    """Headers of a dead letter about its failure, as an array."""
    stages = ByBranch(CHECKS, {check.reason: check.stage for check in made})
    why = _reason(row, made)
    texts = {
        "jmsbridge.reason": why,
        "jmsbridge.route": F.coalesce(row.pick(by_route(config, lambda route: route.name)), F.lit("")),
        "jmsbridge.time": _iso(now),
        "__connect.errors.topic": row.topic,
        "__connect.errors.partition": row.partition.cast("string"),
        "__connect.errors.offset": row.offset.cast("string"),
        "__connect.errors.stage": F.coalesce(row.pick(stages), F.lit("match")),
        "__connect.errors.exception.class.name": F.concat(F.lit("jmsbridge."), why),
        "__connect.errors.exception.message": _sentence(row, made),
    }
    pairs = F.array(*(F.struct(F.lit(name).alias("key"), text.alias("value")) for name, text in texts.items()))
    # Deliberately a higher-order function: Spark generates no code for it, and therefore compiles the publishing step
    # separately from the routing, in small methods. Both in one method would exceed the size that the JVM compiles.
    return F.transform(pairs, lambda pair: header(pair.getField("key"), pair.getField("value")))


def stop_message(row: Row, config: Config, made: tuple[FailureCheck, ...]) -> Column:
    """The text of the error that stops the query: `STOP`, then JSON with route, reason, detail and position."""
    # Texts are made here, all but the position, so that Spark generates little code for them into the routing.
    known = [
        json.dumps({"route": route.name, "reason": check.reason, "detail": check.stops(route)})[:-1]
        for check in made
        for route in config.routes
    ]
    texts = F.from_json(F.lit(json.dumps(known)), "array<string>")
    index = row.branch(CHECKS) * len(config.routes) + row.branch(ROUTES)
    return F.concat(F.lit(STOP), F.get(texts, index), F.lit(', "position": "'), position(row), F.lit('"}'))


def _reason(row: Row, made: tuple[FailureCheck, ...]) -> Column:
    values = ByBranch(CHECKS, {check.reason: check.reason for check in made})
    return F.coalesce(row.pick(values), F.lit(UNMATCHED))


def _sentence(row: Row, made: tuple[FailureCheck, ...]) -> Column:
    destination = F.coalesce(F.make_valid_utf8(row.property("JMSDestination")), F.lit("no destination"))
    text = F.concat(F.lit("no route wants a message to "), destination)
    for index, check in enumerate(made):
        text = F.when(row.branch(CHECKS) == index, check.says(row)).otherwise(text)
    return F.coalesce(text, _reason(row, made))


def _iso(milliseconds: Column) -> Column:
    """The time as ISO 8601 text in UTC, such as `2026-11-21T05:50:52.123Z`, in any time zone of the session."""
    utc = F.to_utc_timestamp(F.timestamp_millis(milliseconds), F.current_timezone())
    return F.date_format(utc, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
