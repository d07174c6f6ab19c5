"""The pages of dead letters: the list with its filters, one letter with headers and body, and the audit."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from engine.dead_letters.audit import last, settled
from engine.dead_letters.filters import NO_ROUTE, Filters
from engine.dead_letters.letter import DeadLetter, milliseconds
from engine.dead_letters.replay import source_topic
from engine.dead_letters.search import Found, search
from engine.errors import UsageError
from engine.kafka.reader import KafkaTopicReader, Position
from engine.kafka.topics import exists, identity
from engine.message import Message
from engine.page.render import rendered
from engine.telemetry.metrics import DEAD_LETTER_REASONS
from routes.errors import BridgeError, PredicateError
from routes.keys.values import BadValueError, duration
from routes.predicate import parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.dead_letters.audit import AuditEntry
    from engine.page.threads import Threads
    from engine.page.view import View

__all__ = ["audit", "letter", "letters"]

_ON_A_PAGE = 50
_MOST_PAGES = 20
_AUDIT_LINES = 200
_MOST_WHERE = 4096
"""Limit of a predicate's characters: long enough in practice, and parsed in a tenth of a second."""
_ANSWER_SECONDS = 2.0
_AGO = duration("1ms", "36500d")
_FILTERS = ("reason", "route", "since", "until", "where")


def letters(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the list; its filters are in the URL, so that it can be kept and shared."""

    async def page(request: Request) -> Response:
        config, asked = view.config(), _Asked.of(request.query_params)
        found: Found | None = None
        fault, status = "", 200
        try:
            topic = source_topic(config, quarantine=asked.quarantine)
            count = asked.number * _ON_A_PAGE + 1

            def look() -> Found:
                # The quarantine topic is created with its first message.
                if asked.quarantine and not exists(config, topic, _ANSWER_SECONDS):
                    return Found((), 0, is_complete=True)
                return search(config, topic, asked.filters(), count, _ANSWER_SECONDS)

            found = await threads.ask(config.bootstrap_servers, look)
        except BridgeError as error:
            fault, status = str(error), _status(error)
        shown = found.letters[(asked.number - 1) * _ON_A_PAGE : asked.number * _ON_A_PAGE] if found else ()
        return await rendered(
            request,
            view,
            "letters.html",
            status=status,
            fault=fault,
            asked=asked,
            found=found,
            letters=[(each, view.is_open(each.position)) for each in shown],
            reasons=DEAD_LETTER_REASONS,
            routes=[*(route.name for route in config.routes), NO_ROUTE],
            census=view.census(),
            newer=asked.address(asked.number - 1) if asked.number > 1 else "",
            older=asked.address(asked.number + 1) if found and _has_more(found, asked.number) else "",
        )

    return page


def letter(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page of one dead letter: headers, body, and whether it was replayed or discarded."""

    async def page(request: Request) -> Response:
        config = view.config()
        quarantine = request.query_params.get("quarantine") == "1"
        shown: dict[str, Any] = {}
        fault, status = "", 200
        try:
            topic = source_topic(config, quarantine=quarantine)
            at = Position.parse("{partition}:{offset}".format(**request.path_params), topic)

            def read() -> tuple[DeadLetter, AuditEntry | None]:
                with KafkaTopicReader(config, topic, _ANSWER_SECONDS) as reader:
                    found = DeadLetter(reader.at(at.partition, at.offset))
                    bounds = reader.bounds()
                known = identity(config, topic, _ANSWER_SECONDS)
                return found, settled(config, topic, known, bounds, (at,)).get(at)

            found, entry = await threads.ask(config.bootstrap_servers, read)
            record = found.located.record
            shown = {
                "letter": found,
                "entry": entry,
                "body": record.value,
                "body_type": Message.from_record(record).body_type,
                "headers": record.headers,
            }
        except UsageError as error:
            fault, status = str(error), 404
        except BridgeError as error:
            fault, status = str(error), _status(error)
        return await rendered(request, view, "letter.html", status=status, fault=fault, quarantine=quarantine, **shown)

    return page


def audit(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the audit page: replays and discards of dead letters, the newest first."""

    async def page(request: Request) -> Response:
        config = view.config()
        entries: list[AuditEntry] = []
        fault, status = "", 200
        try:
            source_topic(config, quarantine=False)
            entries = await threads.ask(config.bootstrap_servers, lambda: last(config, _AUDIT_LINES)[::-1])
        except BridgeError as error:
            fault, status = str(error), _status(error)
        return await rendered(
            request, view, "audit.html", status=status, fault=fault, entries=entries, milliseconds=milliseconds
        )

    return page


@dataclass(frozen=True, slots=True)
class _Asked:
    """Query of the list of dead letters, as it stands in the URL."""

    reason: str = ""
    route: str = ""
    since: str = ""
    until: str = ""
    where: str = ""
    quarantine: bool = False
    number: int = 1
    """Number of the page, from 1."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> _Asked:
        number = query.get("page", "1")
        return cls(
            **{name: query.get(name, "").strip() for name in _FILTERS},
            quarantine=query.get("quarantine") == "1",
            number=min(max(int(number), 1), _MOST_PAGES) if number.isdecimal() and len(number) < 4 else 1,
        )

    def filters(self) -> Filters:
        """The query as filters for a search; UsageError names the one that is invalid."""
        if len(self.where) > _MOST_WHERE:
            msg = f"where has {len(self.where):,} characters; at most {_MOST_WHERE:,} are taken here"
            raise UsageError(msg)
        try:
            where = parse(self.where) if self.where else None
        except PredicateError as error:
            raise UsageError(str(replace(error.fault, file="where"))) from error
        return Filters(
            frozenset({self.reason} if self.reason else ()),
            frozenset({self.route} if self.route else ()),
            _moment("from", self.since),
            _moment("until", self.until),
            where=where,
        )

    @property
    def given(self) -> bool:
        """True if any filter is set."""
        return any(getattr(self, name) for name in _FILTERS)

    def address(self, number: int) -> str:
        """The URL of another page of the same list."""
        fields = {name: getattr(self, name) for name in _FILTERS if getattr(self, name)}
        fields |= {"quarantine": "1"} if self.quarantine else {}
        return "/dead-letters?" + urlencode(fields | {"page": number})


def _status(error: BridgeError) -> int:
    return 400 if isinstance(error, UsageError) else 503


def _has_more(found: Found, number: int) -> bool:
    return number < _MOST_PAGES and len(found.letters) > number * _ON_A_PAGE


def _moment(name: str, text: str) -> int | None:
    """Parses a time or an age (`2h`) into milliseconds since 1970; None for an empty text."""
    if not text:
        return None
    moment = milliseconds(text)
    if moment is not None:
        return moment
    try:
        return round(time.time() * 1000 - float(_AGO.parse(text)) * 1000)
    except BadValueError as error:
        msg = f"{name} {text!r}: expected a time, as 2026-11-22T06:00 (UTC), or how long ago, as 30s, 5m, 2h or 7d"
        raise UsageError(msg) from error
