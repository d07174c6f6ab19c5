"""Reads the parameters in the URL of a page or of the API; UsageError names the one that is invalid."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.find.question import FindQuestion, TopicKind
from engine.page.forms import ForeignRequestError
from engine.page.viewer_mask import MaskedError
from engine.times import read_moment
from routes.errors import BridgeError, PredicateError
from routes.predicate import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import QueryParams

    from routes.predicate import Predicate

__all__ = [
    "FIND_FIELDS",
    "NotThereError",
    "find_question",
    "flag",
    "moment",
    "number",
    "offsets",
    "offsets_text",
    "predicate",
    "status_of",
]

FIND_FIELDS = (
    "id",
    "message_id",
    "correlation_id",
    "key",
    "header",
    "where",
    "text",
    "since",
    "until",
    "kind",
    "topic",
)
"""Names of the parameters that ask for a search."""
_MOST_WHERE = 4096
"""Limit of a predicate's characters: long enough in practice, and parsed in a tenth of a second."""
_OFFSET = re.compile("([0-9]{1,9}):([0-9]{1,19})")
_MOST_FOUND = 1000


class NotThereError(UsageError):
    """The path of a request names a topic or record that is not there, or nothing at all."""


def predicate(text: str) -> Predicate | None:
    """The predicate in the field `where`; None for an empty text."""
    if len(text) > _MOST_WHERE:
        msg = f"the field 'where' has {len(text):,} characters; at most {_MOST_WHERE:,} are taken here"
        raise UsageError(msg)
    try:
        return parse(text) if text else None
    except PredicateError as error:
        raise UsageError(str(replace(error.fault, file="where"))) from error


def moment(name: str, text: str) -> int | None:
    """A time, or how long ago it was, in milliseconds since 1970; None for an empty text."""
    return read_moment(name, text, round(time.time() * 1000)) if text else None


def number(name: str, text: str, default: int, most: int) -> int:
    """A whole number from 1 to `most`; `default` for an empty text."""
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 0 < int(text) <= most):
        msg = f"{name} {text!r}: expected a number from 1 to {most}"
        raise UsageError(msg)
    return int(text)


def flag(name: str, text: str, *, default: bool) -> bool:
    """True for `true` and False for `false`; `default` for an empty text."""
    if text not in ("", "true", "false"):
        msg = f"{name} {text[:100]!r}: expected true or false"
        raise UsageError(msg)
    return text == "true" if text else default


def offsets(name: str, text: str) -> dict[int, int]:
    """Offsets by partition, as `0:17,1:12`; empty for an empty text."""
    found = [_OFFSET.fullmatch(part) for part in text.split(",")] if text else []
    if not all(found):
        msg = f"{name} {text[:100]!r}: expected PARTITION:OFFSET for each partition, as 0:17,1:12"
        raise UsageError(msg)
    return {int(each[1]): int(each[2]) for each in found if each}


def offsets_text(found: Mapping[int, int]) -> str:
    """The text of which `offsets` makes these."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(found.items()))


def find_question(query: QueryParams, most: int) -> FindQuestion:
    """The question of a search; `most` is the number of records to find if the parameters do not say."""

    def given(name: str) -> str | None:
        return query.get(name, "").strip() or None

    where = given("where") or ""
    predicate(where)
    kinds = query.getlist("kind")
    if unknown := [kind for kind in kinds if kind not in TopicKind.__members__.values()]:
        msg = f"kind {unknown[0]!r}: expected one of {', '.join(TopicKind)}"
        raise UsageError(msg)
    return FindQuestion(
        message_id=given("message_id"),
        correlation_id=given("correlation_id"),
        key=given("key"),
        headers=tuple(_header(line) for text in query.getlist("header") for line in text.splitlines() if line.strip()),
        where=where or None,
        text=query.get("text") or None,
        since=moment("since", given("since") or ""),
        until=moment("until", given("until") or ""),
        kinds=frozenset(map(TopicKind, kinds)) or frozenset(TopicKind),
        most=number("most", query.get("most", ""), most, _MOST_FOUND),
        resume=given("resume"),
        topics=frozenset(topic for topic in query.getlist("topic") if topic),
        either_id=given("id"),
    )


def _header(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not name.strip():
        msg = f"header {line[:100]!r}: expected NAME=VALUE"
        raise UsageError(msg)
    return name.strip(), value


def status_of(error: BridgeError) -> int:
    """The HTTP status of an error: 404, 403 or 400 for a wrong request, 503 if Kafka or the bridge cannot answer it."""
    if isinstance(error, NotThereError | ForeignRequestError | MaskedError):
        return 404 if isinstance(error, NotThereError) else 403
    return 400 if isinstance(error, UsageError | PredicateError) else 503
